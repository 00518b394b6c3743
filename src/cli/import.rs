//! `evals import`: converts a recorded session, or one that an agent kept on disk, to a trace. Events are written to a
//! temporary file until the header is complete. With `--explain`, shows the translation of each line instead.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::SpooledTempFile;

use super::list::OutputFormat;
use super::output::{self, Content};
use super::{CliError, inputs, terminal};
use crate::adapter::explain::Watcher;
use crate::adapter::json_stream::Knowing;
use crate::adapter::session_file::{Format, Formats};
use crate::adapter::{self, Translation, replay};
use crate::harness::catalog::{Catalog, Origin};
use crate::harness::{Adapter, Manifest, built_in};
use crate::report::explain::Page;
use crate::trace::recorder::Finished;
use crate::trace::{Header, jsonl};
use crate::wire::{self, Dir, WireLine};

mod ahead;
mod behind;
pub mod kept_session;

use ahead::Ahead;
use behind::Behind;
use kept_session::Again;

/// The key of a manifest that recognises the stream of an agent; a built-in manifest without it is not parsed.
const KNOWN_BY: &str = "\nknown-by:";

/// The maximum size of events in memory, in bytes; larger ones use a temporary file.
const IN_MEMORY: usize = 4 << 20;

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// Protocol of the session (default: detected)
    #[arg(long, conflicts_with = "harness")]
    adapter: Option<Adapter>,
    /// Harness of the session, whose manifest defines how to read it (default: detected)
    #[arg(long)]
    harness: Option<String>,
    /// Recording: a wire log, the agent's own standard output, or a session file that the agent kept on disk; - is
    /// standard input
    file: PathBuf,
    /// In a session file with several branches: the ID of a line of the branch, or a prefix of the ID (default: the
    /// branch of the last line)
    #[arg(long, value_name = "ID")]
    branch: Option<String>,
    /// Output file (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Instead of the trace, show for each line the events that it becomes, and the rule of the manifest that matched
    #[arg(long, conflicts_with = "output")]
    explain: bool,
    /// Output format of --explain
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, requires = "explain")]
    format: OutputFormat,
    /// The trace, if it is for this program alone and must not reach the disk.
    #[arg(skip)]
    memory: Option<Memory>,
}

/// A trace in memory.
pub type Memory = Arc<Mutex<Vec<u8>>>;

impl ImportArgs {
    /// Makes the arguments that import a file into memory.
    pub fn into_memory(
        file: PathBuf,
        memory: Memory,
        adapter: Option<Adapter>,
        harness: Option<String>,
        branch: Option<String>,
    ) -> Self {
        let format = OutputFormat::Table;
        Self { adapter, harness, file, branch, output: None, explain: false, format, memory: Some(memory) }
    }

    /// Returns the name of the recording for messages.
    fn shown(&self) -> String {
        if self.file == Path::new("-") { "standard input".to_owned() } else { self.file.display().to_string() }
    }

    /// Returns the maximum size of data in memory, in bytes; larger data go to a temporary file.
    fn in_memory(&self) -> usize {
        if self.memory.is_some() { usize::MAX } else { IN_MEMORY }
    }
}

pub fn run(args: &ImportArgs) -> Result<u8, CliError> {
    let (catalog, names) = inputs::catalog(args.harness.as_slice())?;
    let named = match &args.harness {
        Some(harness) => {
            let name = names.first().map_or(harness.as_str(), String::as_str);
            Some(Manifest::clone(&catalog.get(name).map_err(|error| CliError::all([error]))?.manifest))
        }
        None => None,
    };
    if may_be_kept(args.adapter, named.as_ref()) {
        let formats = formats_of(&catalog);
        let mut file = kept_session::lines(&formats, &args.file)?;
        if let Some(format) = formats.detect(BufReader::new(&mut file))? {
            return kept_on_disk(args, format, named.as_ref(), file);
        }
        file.rewind()?;
        no_branch(args)?;
        return recording(args, &catalog, named, Input::Again(file));
    }
    no_branch(args)?;
    let input = match args.file == Path::new("-") {
        true => Input::Once(Box::new(io::stdin())),
        false => Input::of(kept_session::open(&args.file)?),
    };
    recording(args, &catalog, named, input)
}

/// The recording that is imported.
enum Input {
    /// An input that can be read once: standard input, or a pipe.
    Once(Box<dyn Read + Send>),
    Again(Box<dyn Again>),
}

impl Input {
    fn of(file: File) -> Self {
        match file.metadata().is_ok_and(|meta| meta.is_file()) {
            true => Self::Again(Box::new(file)),
            false => Self::Once(Box::new(file)),
        }
    }

    /// Returns the input for reading it from its beginning; what can be read once is copied first.
    fn again(&mut self) -> io::Result<&mut dyn Again> {
        if let Self::Once(input) = self {
            *self = Self::Again(Box::new(kept(input)?));
        }
        match self {
            Self::Again(input) => {
                input.rewind()?;
                Ok(input.as_mut())
            }
            Self::Once(_) => Err(io::Error::other("the input could not be copied")),
        }
    }

    /// Returns the input for translating it from its beginning.
    fn lines(self) -> io::Result<BufReader<Box<dyn Read + Send>>> {
        let input: Box<dyn Read + Send> = match self {
            Self::Once(input) => input,
            Self::Again(mut input) => {
                input.rewind()?;
                Box::new(input)
            }
        };
        Ok(BufReader::with_capacity(256 << 10, input))
    }
}

/// Returns true if the file may be one in which an agent keeps a session: a protocol that only occurs between programs
/// excludes this.
fn may_be_kept(adapter: Option<Adapter>, named: Option<&Manifest>) -> bool {
    let adapter = adapter.or(named.map(|manifest| manifest.adapter));
    // An agent that speaks ACP may also keep session files, and people use the same name for both.
    let by_harness = named.is_some_and(|manifest| manifest.adapter.may_have_session_files());
    by_harness || adapter.is_none_or(Adapter::resembles_session_files)
}

fn no_branch(args: &ImportArgs) -> Result<(), CliError> {
    match &args.branch {
        Some(branch) => Err(CliError::unreadable(format!(
            "--branch {branch} is for session files that agents keep on disk, and {} is none",
            args.file.display()
        ))),
        None => Ok(()),
    }
}

/// Returns the formats of session files that the manifests describe.
pub fn formats_of(catalog: &Catalog) -> Formats {
    // A manifest of the user's own may replace a built-in one without describing the session files.
    let lacks = |name: &str| catalog.get(name).is_ok_and(|entry| entry.manifest.session_file.is_none());
    let built_in = built_in::containing("\nsession-file:").filter(|it| it.session_file.is_some() && lacks(&it.name));
    let built_in: Vec<&Manifest> = built_in.collect();
    // The format of Claude Code is known without a key of its manifest.
    let parts = ["\nsession-file:", "\nname: claude-code-stream\n"];
    Formats::of(catalog.entries_containing(&parts).map(|entry| &*entry.manifest).chain(built_in))
}

/// Returns an input that can be read twice: the file itself, or a copy of standard input or of a pipe.
pub fn again(path: &Path) -> Result<Box<dyn Again>, CliError> {
    if path == Path::new("-") {
        return Ok(Box::new(kept(&mut io::stdin().lock())?));
    }
    match Input::of(kept_session::open(path)?) {
        Input::Again(file) => Ok(file),
        Input::Once(mut pipe) => Ok(Box::new(kept(&mut pipe)?)),
    }
}

/// Imports a session file that an agent kept on disk.
fn kept_on_disk(
    args: &ImportArgs,
    format: &Format,
    named: Option<&Manifest>,
    input: Box<dyn Again>,
) -> Result<u8, CliError> {
    if let Some(named) = named.filter(|named| named.name != format.harness) {
        let (of, name) = (&format.harness, &named.name);
        terminal::note(format_args!(
            "note: the file is a session that `{of}` kept, so `{name}` does not define how it is read"
        ));
    }
    let request = || kept_session::Request {
        format,
        harness: named.map(|named| named.name.clone()),
        branch: args.branch.as_deref(),
        path: Some(args.file.as_path()).filter(|path| *path != Path::new("-")),
        input,
    };
    if args.explain {
        return explain(args.format, |watch| Ok(kept_session::translated(request(), watch)?.finish()));
    }
    let mut events = Behind::new(events_of(args))?;
    let translation = kept_session::translated(request(), |_, _, translation| {
        translation.drain().try_for_each(|event| events.event(event))
    })?;
    let finished = translation.finish_into(|event| {
        // `finish` returns the error of writing.
        let _ = events.event(event);
    });
    write_trace(args, &finished.header, events.finish()?)
}

/// Imports a wire log, or an agent's own output.
fn recording(
    args: &ImportArgs,
    catalog: &Catalog,
    harness: Option<Manifest>,
    mut input: Input,
) -> Result<u8, CliError> {
    let named = harness.is_some();
    let is_detected = args.adapter.is_none() && !named;
    let adapter = args.adapter.unwrap_or(Adapter::Replay);
    let mut manifest = harness.unwrap_or_else(|| Manifest::bare(adapter));
    let mut adapter = manifest.adapter;
    if named && let Some(stream) = stream_beside(&manifest)? {
        let recorded = replay::recorded(BufReader::new(input.again()?), &Knowing::of(std::iter::once(&stream)))?;
        if recorded.adapter == stream.adapter && !is_final_json(input.again()?)? {
            let name = &stream.name;
            terminal::note(format_args!("note: the recording is a stream of JSON, read as one of harness `{name}`"));
            (adapter, manifest) = (stream.adapter, stream);
        }
    }
    if adapter == Adapter::Replay || (adapter == Adapter::JsonStream && !named) {
        // The protocol of the recording must be detected before the recording is read.
        if let Ok(trace) = jsonl::Reader::new(BufReader::new(input.again()?)) {
            return rewritten(trace, args);
        }
        let knowing = Knowing::of(catalog.entries_containing(&[KNOWN_BY]).map(|entry| &*entry.manifest));
        let recorded = replay::recorded(BufReader::new(input.again()?), &knowing)?;
        if is_detected && recorded.adapter == Adapter::OutputOnly && !is_wire_log(input.again()?)? {
            return Err(unknown(args, catalog, input.again()?));
        }
        if adapter == Adapter::Replay {
            adapter = recorded.adapter;
        }
        let known = recorded.harness.filter(|_| recorded.adapter == adapter);
        match known.and_then(|name| of_adapter(catalog, &name, adapter)) {
            Some(known) if adapter == Adapter::JsonStream && manifest.stream.is_empty() => manifest = known,
            _ if !named => manifest = Manifest::bare(adapter),
            _ => {}
        }
        if adapter == Adapter::JsonStream && manifest.stream.is_empty() {
            terminal::note(format_args!(
                "note: no manifest matches this stream, so its lines are not understood; name its agent with --harness"
            ));
        }
    }
    if !named
        && let Some((_, name)) = replay::named(BufReader::new(input.again()?))?.filter(|(of, _)| *of == adapter)
        && let Some(known) = of_adapter(catalog, &name, adapter)
    {
        // A wire log names the harness that it was made with.
        manifest = known;
    } else if adapter == Adapter::Acp && !named {
        // An agent is recognised by its own name, as with --harness; the user's own manifests come first.
        let name = introduced(BufReader::new(input.again()?))?;
        if let Some(known) = name.map(|name| by_name(&name)).transpose()?.flatten() {
            manifest = known;
        }
    }
    if args.explain {
        return explain(args.format, |watch| {
            Ok(adapter::import_watched(adapter, &manifest, named, input.lines()?, watch)?)
        });
    }
    // Three threads: the first reads, this one translates, the third writes.
    let mut events = Behind::new(events_of(args))?;
    let lines = Ahead::new(input.lines()?)?;
    let imported = adapter::import_lines(adapter, &manifest, named, lines, |event| events.event(event));
    let events = events.finish()?;
    write_trace(args, &imported?.header, events)
}

/// Returns the manifest of a harness, if it is known and speaks this protocol.
fn of_adapter(catalog: &Catalog, name: &str, adapter: Adapter) -> Option<Manifest> {
    let known = catalog.get(name).ok().filter(|entry| entry.manifest.adapter == adapter)?;
    Some(Manifest::clone(&known.manifest))
}

/// Returns true if the lines of a recording have directions.
fn is_wire_log(whole: &mut dyn Again) -> io::Result<bool> {
    let mut reader = wire::Reader::new(BufReader::new(whole));
    reader.next_line()?;
    Ok(reader.is_wire_log())
}

/// Returns the error for a file of an unknown format, with the names of the known ones.
fn unknown(args: &ImportArgs, catalog: &Catalog, whole: &mut dyn Again) -> CliError {
    let shown = args.file.display();
    let what = args.shown();
    if BufReader::new(&mut *whole).bytes().all(|byte| byte.is_ok_and(|byte| byte.is_ascii_whitespace())) {
        return CliError::unreadable(format!("{what} is empty"));
    }
    if whole.rewind().is_ok() && is_utf_16(whole) {
        return CliError::unreadable(format!(
            "{what} is in UTF-16, and only UTF-8 is read; convert it, for example with `iconv -f UTF-16 -t UTF-8 {shown} > \
             utf8.jsonl`, or in PowerShell with `Get-Content {shown} | Set-Content -Encoding utf8 utf8.jsonl`"
        ));
    }
    let formats = formats_of(catalog);
    let sessions: Vec<&str> = formats.names().collect();
    let streams = catalog.entries_containing(&[KNOWN_BY]).filter(|it| it.manifest.known_by.is_some());
    let streams: Vec<&str> = streams.map(|it| it.manifest.name.as_str()).collect();
    CliError::unreadable(format!(
        "the format of {shown} is unknown: its first lines are those of no trace, no wire log, no session of ACP or Claude \
         Code, no session file of {}, and no stream of {}; name the agent with --harness, or the protocol with \
         --adapter (`output-only` for plain text)",
        sessions.join(", "),
        streams.join(", ")
    ))
}

/// Returns true if a text in UTF-16 begins here: with a byte order mark, or with an ASCII character of which one byte is 0.
fn is_utf_16(text: &mut dyn Again) -> bool {
    let mut begin = [0; 2];
    let marks_or_ascii = |begin: [u8; 2]| matches!(begin, [0xff, 0xfe] | [0xfe, 0xff] | [0, 1..=0x7f] | [1..=0x7f, 0]);
    text.read_exact(&mut begin).is_ok() && marks_or_ascii(begin)
}

/// Returns what the events are written to until the header is complete.
fn events_of(args: &ImportArgs) -> BufWriter<SpooledTempFile> {
    BufWriter::with_capacity(256 << 10, tempfile::spooled_tempfile(args.in_memory()))
}

/// Writes a trace: its header, then the events that were stored meanwhile.
fn write_trace(args: &ImportArgs, header: &Header, events: BufWriter<SpooledTempFile>) -> Result<u8, CliError> {
    let mut events = events.into_inner().map_err(io::IntoInnerError::into_error)?;
    events.rewind()?;
    let mut events = BufReader::with_capacity(256 << 10, events);
    write(args, |out| {
        jsonl::write_header(&mut &mut *out, header)?;
        loop {
            let part = events.fill_buf()?;
            if part.is_empty() {
                return Ok(());
            }
            out.write_all(part)?;
            let taken = part.len();
            events.consume(taken);
        }
    })
}

/// The number of lines of a recording in which an agent may introduce itself.
const OPENING: usize = 200;

/// Returns the name by which the agent of an ACP session introduces itself.
fn introduced<R: BufRead>(input: R) -> io::Result<Option<String>> {
    let mut reader = wire::Reader::new(input);
    for _ in 0..OPENING {
        let Some(line) = reader.next_line()? else { break };
        let message: serde_json::Value = serde_json::from_str(&line.line).unwrap_or_default();
        let name = ["agentInfo", "info"].iter().find_map(|key| message.get("result")?.get(*key)?.get("name")?.as_str());
        if let Some(name) = name.filter(|_| line.dir == Dir::Recv) {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// Returns the ACP manifest of the agent that introduces itself by this name; the user's own manifests take
/// precedence.
fn by_name(name: &str) -> Result<Option<Manifest>, CliError> {
    let (catalog, _) = inputs::catalog(&[])?;
    let mut known: Vec<_> = catalog
        .entries_containing(&[name])
        .filter(|entry| entry.manifest.adapter == Adapter::Acp && entry.manifest.agent_info.as_deref() == Some(name))
        .collect();
    known.sort_by_key(|entry| entry.origin == Origin::BuiltIn);
    Ok(known.first().map(|entry| Manifest::clone(&entry.manifest)))
}

/// Returns the manifest `NAME-stream`, if it exists: an agent that speaks ACP or prints its answer may also have its own
/// stream, and people use the same name for all of them.
fn stream_beside(manifest: &Manifest) -> Result<Option<Manifest>, CliError> {
    match manifest.adapter {
        Adapter::Acp | Adapter::OutputOnly => {}
        Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl | Adapter::JsonStream | Adapter::Replay => {
            return Ok(None);
        }
    }
    let (catalog, _) = inputs::catalog(&[])?;
    Ok(catalog.get(&format!("{}-stream", manifest.name)).ok().map(|entry| Manifest::clone(&entry.manifest)))
}

/// Returns true if a recording begins with the result of a session: the agent printed its answer as JSON.
fn is_final_json(whole: &mut dyn Again) -> io::Result<bool> {
    let first = wire::Reader::new(BufReader::new(whole)).next_line()?;
    let first = first.and_then(|line| serde_json::from_str::<serde_json::Value>(&line.line).ok());
    Ok(first.is_some_and(|line| line["type"] == "result"))
}

/// Returns the whole input, so that it can be read more than once: the first data of a pipe may be less than a
/// line.
fn kept(input: &mut impl Read) -> io::Result<tempfile::SpooledTempFile> {
    let mut whole = tempfile::spooled_tempfile(IN_MEMORY);
    io::copy(input, &mut whole)?;
    whole.rewind()?;
    Ok(whole)
}

/// The function that is called after each line of a recording.
type Watch<'a> = &'a mut dyn FnMut(&WireLine, u64, &mut Translation) -> io::Result<()>;

/// Shows the translation of a recording line by line.
fn explain(
    format: OutputFormat,
    translate: impl FnOnce(Watch<'_>) -> Result<Finished, CliError>,
) -> Result<u8, CliError> {
    let look = terminal::stdout_look();
    let mut out = output::stdout(Content::json(matches!(format, OutputFormat::Json)));
    let mut watcher = Watcher::default();
    // A reader that has read enough closes the pipe, which is no error.
    let mut closed = false;
    let mut until_closed = |written: io::Result<()>| match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            closed = true;
            Ok(())
        }
        other => other,
    };
    match format {
        OutputFormat::Table => {
            let mut page = Page::new(look, &mut out);
            let done = translate(&mut |line, number, translation| {
                until_closed(page.line(&watcher.line(line, number, translation)))
            })?;
            until_closed(page.line(&watcher.end(done.events)))?;
        }
        OutputFormat::Json => {
            let mut lines = Vec::new();
            let done = translate(&mut |line, number, translation| {
                lines.push(watcher.line(line, number, translation));
                Ok(())
            })?;
            lines.push(watcher.end(done.events));
            let document = serde_json::json!({"header": done.header, "lines": lines});
            until_closed(writeln!(out, "{document:#}"))?;
        }
    }
    if !closed {
        ignore_closed_pipe(out.flush())?;
    }
    Ok(0)
}

/// Writes a trace again in the form of this version.
fn rewritten<R: BufRead>(mut trace: jsonl::Reader<R>, args: &ImportArgs) -> Result<u8, CliError> {
    let header = trace.header().clone();
    let mut unreadable = None;
    let written = write(args, |mut out| {
        jsonl::write_header(&mut out, &header)?;
        let mut next = || trace.next_event().map_err(|error| io::Error::other(unreadable.insert(error).to_string()));
        while let Some(event) = next()? {
            jsonl::write_event(&mut out, &event)?;
        }
        Ok(())
    });
    match unreadable {
        // Writing ended because the trace could not be read.
        Some(error) => Err(CliError::unreadable(format!("{}: {error}", args.shown()))),
        None => written,
    }
}

fn write(args: &ImportArgs, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u8, CliError> {
    if let Some(memory) = &args.memory {
        write(&mut *memory.lock().unwrap_or_else(PoisonError::into_inner))?;
        return Ok(0);
    }
    match args.output.as_deref() {
        Some(path) => crate::run::user_file::write_named(path, write)?,
        None => {
            let mut out = output::stdout(Content::Json);
            ignore_closed_pipe(write(&mut out).and_then(|()| out.flush()))?;
        }
    }
    Ok(0)
}

/// Ignores an error from a closed pipe: the reader has read enough.
pub fn ignore_closed_pipe(result: io::Result<()>) -> Result<(), CliError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| super::not_written(&error)),
    }
}

//! `evals import`: converts a recorded session to a trace. Events are written to a temporary file until the header is
//! complete. With `--explain`, shows the translation of each line instead.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::door::{self, Content};
use super::list::OutputFormat;
use super::{CliError, inputs, terminal};
use crate::adapter::explain::Watcher;
use crate::adapter::json_stream::Knowing;
use crate::adapter::{self, replay};
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::harness::catalog::Origin;
use crate::report::explain::Page;
use crate::trace::jsonl;
use crate::wire::{self, Dir};

/// The maximum size of events in memory, in bytes; larger ones use a temporary file.
const IN_MEMORY: usize = 4 << 20;

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// Protocol of the session
    #[arg(long, required_unless_present = "harness", conflicts_with = "harness")]
    adapter: Option<Adapter>,
    /// Harness of the session, whose manifest defines how to read it
    #[arg(long)]
    harness: Option<String>,
    /// Recording: a wire log, or the agent's own standard output; - is standard input
    file: PathBuf,
    /// Output file
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Show the events that each line becomes, and the rule, instead of the trace
    #[arg(long, conflicts_with = "output")]
    explain: bool,
    /// Output format of --explain
    #[arg(long, value_enum, default_value_t = OutputFormat::Table, requires = "explain")]
    format: OutputFormat,
}

pub fn run(args: &ImportArgs) -> Result<u8, CliError> {
    let (adapter, manifest, named) = match (&args.adapter, &args.harness) {
        (Some(adapter), _) => (*adapter, Manifest::bare(*adapter), false),
        (None, Some(harness)) => {
            let (catalog, names) = inputs::catalog(std::slice::from_ref(harness))?;
            let name = names.first().map_or(harness.as_str(), String::as_str);
            let manifest = catalog.get(name).map_err(|error| CliError::all([error]))?.manifest.clone();
            (manifest.adapter, manifest, true)
        }
        (None, None) => return Err(CliError::unreadable("name the protocol with --adapter, or a --harness")),
    };
    let input: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let failed = |error| CliError::unreadable(format!("could not read {}: {error}", args.file.display()));
        let file = File::open(&args.file).map_err(failed)?;
        if file.metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(CliError::unreadable(format!("{} is a folder, not a recording", args.file.display())));
        }
        Box::new(file)
    };
    let mut events = BufWriter::with_capacity(256 << 10, tempfile::spooled_tempfile(IN_MEMORY));
    let mut input: Box<dyn BufRead> = Box::new(BufReader::with_capacity(256 << 10, input));
    let (mut adapter, mut manifest) = (adapter, manifest);
    if named && let Some(stream) = stream_beside(&manifest)? {
        let mut whole = kept(&mut input)?;
        let recorded = replay::recorded(BufReader::new(&mut whole), &Knowing::of(std::iter::once(&stream)))?;
        whole.rewind()?;
        input = Box::new(BufReader::with_capacity(256 << 10, whole));
        if recorded.adapter == Adapter::JsonStream {
            let name = &stream.name;
            terminal::note(format_args!("note: the recording is a stream of JSON, read as one of harness `{name}`"));
            (adapter, manifest) = (stream.adapter, stream);
        }
    }
    if adapter == Adapter::Replay || (adapter == Adapter::JsonStream && !named) {
        // The protocol of the recording must be detected before the recording is read.
        let mut whole = kept(&mut input)?;
        if let Ok(trace) = jsonl::Reader::new(BufReader::new(&mut whole)) {
            return again(trace, args.output.as_deref());
        }
        whole.rewind()?;
        let (catalog, _) = inputs::catalog(&[])?;
        let knowing = Knowing::of(catalog.entries().map(|entry| &entry.manifest));
        let recorded = replay::recorded(BufReader::new(&mut whole), &knowing)?;
        whole.rewind()?;
        let known = recorded.harness.as_deref().and_then(|name| catalog.get(name).ok());
        if adapter == Adapter::JsonStream && recorded.adapter != Adapter::JsonStream
            || (recorded.adapter == Adapter::JsonStream && known.is_none() && manifest.stream.is_empty())
        {
            let message = "no manifest matches this stream; name its agent with --harness";
            return Err(CliError::unreadable(message));
        }
        adapter = recorded.adapter;
        match known {
            Some(entry) if adapter == Adapter::JsonStream && manifest.stream.is_empty() => {
                manifest = entry.manifest.clone();
            }
            _ if !named => manifest = Manifest::bare(adapter),
            _ => {}
        }
        input = Box::new(BufReader::with_capacity(256 << 10, whole));
    }
    if adapter == Adapter::Acp && !named {
        // An agent is recognised by its own name, as with --harness; the user's own manifests come first.
        let mut whole = kept(&mut input)?;
        let name = introduced(BufReader::new(&mut whole))?;
        whole.rewind()?;
        input = Box::new(BufReader::with_capacity(256 << 10, whole));
        if let Some(known) = name.map(|name| by_name(&name)).transpose()?.flatten() {
            manifest = known;
        }
    }
    if args.explain {
        return explain(adapter, &manifest, named, input, args.format);
    }
    let header = adapter::import(adapter, &manifest, named, input, |event| jsonl::write_event(&mut events, &event))?;
    let mut events = events.into_inner().map_err(io::IntoInnerError::into_error)?;
    events.rewind()?;
    write(args.output.as_deref(), |out| {
        jsonl::write_header(&mut &mut *out, &header)?;
        io::copy(&mut events, out).map(|_| ())
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
        .entries()
        .filter(|entry| entry.manifest.adapter == Adapter::Acp && entry.manifest.agent_info.as_deref() == Some(name))
        .collect();
    known.sort_by_key(|entry| entry.origin == Origin::BuiltIn);
    Ok(known.first().map(|entry| entry.manifest.clone()))
}

/// Returns the manifest `NAME-stream`, if it exists: an agent that speaks ACP may also have its own stream, and
/// people use the same name for both.
fn stream_beside(manifest: &Manifest) -> Result<Option<Manifest>, CliError> {
    if manifest.adapter != Adapter::Acp {
        return Ok(None);
    }
    let (catalog, _) = inputs::catalog(&[])?;
    Ok(catalog.get(&format!("{}-stream", manifest.name)).ok().map(|entry| entry.manifest.clone()))
}

/// Returns the whole input, so that it can be read more than once: the first data of a pipe may be less than a
/// line.
fn kept(input: &mut impl Read) -> io::Result<tempfile::SpooledTempFile> {
    let mut whole = tempfile::spooled_tempfile(IN_MEMORY);
    io::copy(input, &mut whole)?;
    whole.rewind()?;
    Ok(whole)
}

/// Shows the translation of a recording line by line.
fn explain(
    adapter: Adapter,
    manifest: &Manifest,
    named: bool,
    input: Box<dyn BufRead>,
    format: OutputFormat,
) -> Result<u8, CliError> {
    let look = terminal::stdout_look();
    let mut out = door::stdout(Content::json(matches!(format, OutputFormat::Json)));
    let mut watcher = Watcher::default();
    let shown = match format {
        OutputFormat::Table => {
            let mut page = Page::new(look, &mut out);
            let done = adapter::import_watched(adapter, manifest, named, input, |line, number, translation| {
                page.line(&watcher.line(line, number, translation))
            });
            done.and_then(|done| page.line(&watcher.end(done.events)))
        }
        OutputFormat::Json => {
            let mut lines = Vec::new();
            let done = adapter::import_watched(adapter, manifest, named, input, |line, number, translation| {
                lines.push(watcher.line(line, number, translation));
                Ok(())
            });
            done.and_then(|done| {
                lines.push(watcher.end(done.events));
                let document = serde_json::json!({"header": done.header, "lines": lines});
                writeln!(out, "{document:#}")
            })
        }
    };
    ignore_closed_pipe(shown.and_then(|()| out.flush()))?;
    Ok(0)
}

/// Writes a trace again in the form of this version.
fn again<R: BufRead>(mut trace: jsonl::Reader<R>, output: Option<&Path>) -> Result<u8, CliError> {
    let header = trace.header().clone();
    write(output, |mut out| {
        jsonl::write_header(&mut out, &header)?;
        while let Some(event) = trace.next_event().map_err(io::Error::other)? {
            jsonl::write_event(&mut out, &event)?;
        }
        Ok(())
    })
}

fn write(output: Option<&Path>, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u8, CliError> {
    match output {
        Some(path) => crate::run::user_file::write_named(path, write)?,
        None => {
            let mut out = door::stdout(Content::Json);
            ignore_closed_pipe(write(&mut out).and_then(|()| out.flush()))?;
        }
    }
    Ok(0)
}

/// Ignores an error from a closed pipe: the reader has read enough.
pub fn ignore_closed_pipe(result: io::Result<()>) -> Result<(), CliError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| CliError::unreadable(format!("could not write to standard output: {error}"))),
    }
}

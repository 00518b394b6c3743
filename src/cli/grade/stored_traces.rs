//! Single traces, graded by one case: files, or the output of `evals import` on standard input.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{GradeArgs, Plan, Work};
use crate::case::{Case, EvidenceKeys, load_all};
use crate::cli::engine::{self, default_jobs};
use crate::cli::left_above::LeftAbove;
use crate::cli::run::record;
use crate::cli::{CliError, inputs, terminal};
use crate::environment;
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::harness::catalog::Catalog;
use crate::ids::TrialRecord;
use crate::regular;
use crate::result::TrialResult;
use crate::run::folder::RunFolder;
use crate::run::{CaseRecord, HarnessRecord, Keep, RunOptions, RunRecord, integrity};
use crate::sandbox;
use crate::secrets::Masker;
use crate::text::some_of;
use crate::trace::jsonl::{ReadError, Reader};
use crate::trace::{Body, Event, Header, Role};
use crate::trial::Attempt;
use crate::trial::regrade::{InputsOfAgent, StoredFiles};

/// The name of standard input.
pub const STDIN: &str = "-";

/// Returns true if the names are trace files instead of a run.
pub fn are_meant(names: &[String]) -> Result<bool, CliError> {
    let traces = names.iter().filter(|name| *name == STDIN || of_folder(name).is_some()).count();
    if names.iter().filter(|name| *name == STDIN).count() > 1 {
        return Err(CliError::unreadable("`-` is given twice, but there is only one standard input"));
    }
    match traces {
        0 if names.len() > 1 && names.iter().any(|name| name.ends_with(".jsonl")) => {
            let lost: Vec<&str> = names.iter().map(String::as_str).filter(|name| !Path::new(name).exists()).collect();
            Err(CliError::unreadable(format!("there is no {}", lost.join(", no "))))
        }
        0 => Ok(false),
        all if all == names.len() => Ok(true),
        _ => {
            let other = names.iter().find(|name| *name != STDIN && of_folder(name).is_none());
            let other = other.map_or("", String::as_str);
            Err(CliError::unreadable(format!("`{other}` is not the file of a trace; name traces, or one run")))
        }
    }
}

/// Returns the file of a trace: the path itself, or the trace in a trial's folder.
pub fn of_folder(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(name);
    let inner = path.join("trace.jsonl");
    match () {
        () if path.is_file() => Some(path),
        () if inner.is_file() => Some(inner),
        () => None,
    }
}

/// Copies the traces into the private folder, redacted, and plans a trial for each.
pub(super) fn plan(args: &GradeArgs, temporary: &Path) -> Result<Plan, CliError> {
    let case = Arc::new(case(&args.cases)?);
    super::prices(None, [case.as_ref()])?;
    let catalog = inputs::catalog(&[]).ok().map(|(catalog, _)| catalog);
    let mut harnesses: Vec<HarnessRecord> = Vec::new();
    let mut works: Vec<Work> = Vec::new();
    let mut taken: HashSet<(String, String, u32)> = HashSet::new();
    let env = engine::environment();
    let mut others = Others::default();
    for (number, name) in args.stored.iter().enumerate() {
        let beside = if name == STDIN { None } else { of_folder(name) };
        let copy = temporary.join(format!("trace-{number}.jsonl"));
        let shown = if name == STDIN { "standard input" } else { name };
        let failed = |error: &dyn std::fmt::Display| {
            CliError::unreadable(format!(
                "{shown}: {error}\nrecorded sessions become traces first: evals import --adapter A FILE | evals grade - --case FILE"
            ))
        };
        let masker_of = |header: Option<&Header>| masker(&case, &env, header, catalog.as_ref());
        copied(beside.as_deref(), &copy, masker_of).map_err(|error| failed(&error))?;
        let (header, prompts) = match with_prompts(&copy, &case) {
            Err(error @ ReadError::Line { .. }) => return Err(CliError::unreadable(format!("{shown}: {error}"))),
            read => read.map_err(|error| failed(&error))?,
        };
        let masker = masker_of(Some(&header)).map_err(|error| failed(&error))?;
        let had_other_prompt = others.add(shown, &header, &prompts, &case, &masker);
        let manifest = manifest(&header, catalog.as_ref());
        if !harnesses.iter().any(|known| known.name == manifest.name) {
            harnesses.push(HarnessRecord::of(&manifest, "trace".to_owned()));
        }
        let arm = header.model.requested.clone().unwrap_or_else(|| "default".to_owned());
        let free = |n: &u32| !taken.contains(&(manifest.name.clone(), arm.clone(), *n));
        let trial = header.trial.filter(free).or_else(|| (1..).find(free)).unwrap_or(1);
        taken.insert((manifest.name.clone(), arm, trial));
        let sandbox = sandbox::kind(args.sandbox, case.sandbox.as_ref(), manifest.sandbox.as_ref());
        let model = header.model.requested.clone();
        let trial = TrialRecord { trial, ..TrialRecord::alone(&case.id, &manifest.name, model, sandbox) };
        let folder = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
        let judged = beside.as_deref().map(integrity::beside).unwrap_or_default();
        let (keys, unknown_keys) = match beside.as_deref().zip(judged.result.as_ref()) {
            Some((trace, result)) => keys_of(trace, result).map_or_else(|why| (None, Some(why)), |keys| (keys, None)),
            None => (None, None),
        };
        // Without its digest in such a result, another program made the folder.
        let is_kept = judged.workspace.is_some() || judged.result.is_none();
        let files = StoredFiles {
            trace: Some(copy),
            patch: folder.as_ref().map(|at| at.join("workspace.patch")).filter(|path| path.is_file()),
            kept: folder.as_ref().map(|at| at.join("workspace")).filter(|path| is_kept && path.is_dir()),
            kept_digest: judged.workspace,
            no_source: Some("a single trace has no workspace".to_owned()),
            doubt: None,
            keys,
            inputs: if had_other_prompt { InputsOfAgent::Other } else { InputsOfAgent::Unknown },
            changed: judged.changed.or(judged.patch_changed).or(unknown_keys),
            earlier: None,
            beside: judged.result,
            error: judged.error,
        };
        let attempt = Attempt::alone(case.clone(), Arc::new(manifest), trial.clone(), temporary.to_owned());
        let (with, files) = (Ok(Arc::new(attempt)), Arc::new(files));
        works.push(Work { trial, attempt: 1, with, files, shown: shown.to_owned(), folder: None });
    }
    others.tell(&case.id);
    let mut record = RunRecord {
        label: args.label.clone(),
        // The input of the agents of single traces is unknown.
        cases: vec![CaseRecord { workspace: None, played: None, evidence: None, ..record::case_record(&case, None)? }],
        harnesses,
        trials: works.iter().map(|work| work.trial.clone()).collect(),
        options: RunOptions {
            jobs: default_jobs(),
            keep_workspace: Keep::Never,
            sandbox: args.sandbox,
            ..RunOptions::default()
        },
        graded: true,
        ..RunRecord::blank()
    };
    record::begin(&mut record);
    record.ends = false;
    let (without_result, left_above) = (Vec::new(), LeftAbove::default());
    Ok(Plan { record, works, nothing_finished: None, without_result, sandbox: args.sandbox, left_above })
}

/// Returns the keys of the case under which the evidence of a trace was taken, if the trace lies in the folder of its run and
/// the run records them. `result` is the result beside the trace.
///
/// # Errors
/// Returns the reason if `run.json` cannot be read.
fn keys_of(trace: &Path, result: &TrialResult) -> Result<Option<EvidenceKeys>, String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("the run.json of its run cannot be read: {error}");
    let trace = std::path::absolute(trace).map_err(|error| unreadable(&error))?;
    let is_run = |above: &&Path| trace.starts_with(above.join("trials")) && above.join("run.json").is_file();
    let Some(run) = trace.ancestors().skip(1).find(is_run) else { return Ok(None) };
    let record = RunFolder::open(run).record().map_err(|error| unreadable(&error))?;
    Ok(record.case(&result.case).and_then(|known| known.evidence.clone()))
}

/// Returns the case for the traces.
pub fn case(files: &[PathBuf]) -> Result<Case, CliError> {
    if files.is_empty() {
        return Err(CliError::unreadable(
            "a trace does not contain its graders; give its case with --case FILE, such as --case cases/fix.yaml",
        ));
    }
    let mut cases = inputs::cases_alone(|context| load_all(files, context))?;
    match (cases.pop(), cases.len()) {
        (Some(case), 0) => Ok(case),
        (_, more) => {
            Err(CliError::unreadable(format!("--case names {} cases, but traces are graded by exactly one", more + 1)))
        }
    }
}

/// Returns a masker for the secrets of the environment and of the manifest of the harness in the first line, so
/// that no file of a run folder contains them.
pub fn masker(
    case: &Case,
    env: &BTreeMap<String, String>,
    header: Option<&Header>,
    catalog: Option<&Catalog>,
) -> io::Result<Masker> {
    let manifest = header.map_or_else(|| Manifest::bare(Adapter::OutputOnly), |header| manifest(header, catalog));
    environment::masker(env, &case.env, &manifest, &environment::given_by(case)).map_err(io::Error::other)
}

/// Copies a trace line by line and redacted; the first line names its harness.
pub fn copied(
    from: Option<&Path>,
    to: &Path,
    masker: impl FnOnce(Option<&Header>) -> io::Result<Masker>,
) -> io::Result<()> {
    const PIECE: usize = 256 << 10;
    let input: Box<dyn Read> = match from {
        Some(path) => Box::new(regular::open(path)?),
        None => Box::new(io::stdin()),
    };
    let mut input = BufReader::with_capacity(PIECE, input);
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    let masker = masker(Reader::new(&line[..]).ok().as_ref().map(Reader::header))?;
    let mut out = BufWriter::with_capacity(PIECE, File::create(to)?);
    if masker.is_empty() {
        out.write_all(&line)?;
        out.flush()?;
        return io::copy(&mut input, out.get_mut()).map(|_| ());
    }
    while !line.is_empty() {
        match masker.mask_bytes(&line) {
            Cow::Borrowed(same) => out.write_all(same)?,
            Cow::Owned(masked) => out.write_all(&masked)?,
        }
        line.clear();
        input.read_until(b'\n', &mut line)?;
    }
    out.flush()
}

/// Reads a trace to its end and returns its header. A trace that breaks a law is refused before anything is graded.
pub fn header(path: &Path) -> Result<Header, ReadError> {
    read(path, |_| ())
}

fn read(path: &Path, mut look_at: impl FnMut(&Event)) -> Result<Header, ReadError> {
    let file = regular::open(path).map_err(|source| ReadError::Io { line: 1, source })?;
    let mut reader = Reader::lawful(BufReader::with_capacity(256 << 10, file))?;
    while let Some(event) = reader.next_event()? {
        look_at(&event);
    }
    Ok(reader.header().clone())
}

/// Reads a trace to its end and returns its header, and as many of its first prompts as the case has.
fn with_prompts(path: &Path, case: &Case) -> Result<(Header, Vec<String>), ReadError> {
    let mut prompts = Vec::new();
    let header = read(path, |event| {
        if prompts.len() < case.turns.len() {
            prompts.extend(prompt_of(event).map(str::to_owned));
        }
    })?;
    Ok((header, prompts))
}

/// Returns true if the agent of a stored trace got another prompt than the case names. A trace that cannot be read shows none.
pub(super) fn had_other_prompt(trace: &Path, case: &Case, masker: &Masker) -> bool {
    with_prompts(trace, case).is_ok_and(|(_, prompts)| differ(&prompts, case, masker))
}

/// Returns true if a prompt is not that of the case.
fn differ(prompts: &[String], case: &Case, masker: &Masker) -> bool {
    // An agent that has no key for a system prompt gets it before the first prompt.
    let is_other = |(got, turn): (&String, &String)| !got.contains(&*masker.mask(turn.trim()));
    prompts.iter().zip(&case.turns).any(is_other)
}

fn prompt_of(event: &Event) -> Option<&str> {
    match &event.body {
        Body::Message(message) if message.role == Role::User && event.parent.is_none() => Some(&message.text),
        _ => None,
    }
}

/// The traces that are not of the case that grades them.
#[derive(Default)]
struct Others {
    /// The traces that name another case, each with that case.
    of_case: Vec<String>,
    /// The traces in which the agent got another prompt.
    of_prompt: Vec<String>,
}

impl Others {
    /// Adds a trace, and returns true if its agent got another prompt.
    fn add(&mut self, shown: &str, header: &Header, prompts: &[String], case: &Case, masker: &Masker) -> bool {
        // The id of a case depends on the folder that it is read from.
        let ends_with =
            |id: &str, end: &str| id.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let named = header.case.as_deref();
        if let Some(other) = named.filter(|id| !ends_with(id, &case.id) && !ends_with(&case.id, id)) {
            self.of_case.push(format!("{shown} (`{other}`)"));
        }
        let has_other = differ(prompts, case, masker);
        if has_other {
            self.of_prompt.push(shown.to_owned());
        }
        has_other
    }

    /// Prints a note for each kind of difference.
    fn tell(&self, case: &str) {
        if !self.of_case.is_empty() {
            let traces = some_of(&self.of_case, 5);
            terminal::note(format_args!("note: graded by case `{case}`, but the trace names another case: {traces}"));
        }
        if !self.of_prompt.is_empty() {
            let traces = some_of(&self.of_prompt, 5);
            terminal::note(format_args!("note: the agent had another prompt than case `{case}` names: {traces}"));
        }
    }
}

/// Returns the manifest of the trace's agent. If the catalog does not have it, returns an empty manifest with the
/// trace's adapter.
pub fn manifest(header: &Header, catalog: Option<&crate::harness::catalog::Catalog>) -> Manifest {
    let named = header.harness.as_deref();
    let known = named.and_then(|name| catalog?.get(name).ok()).map(|entry| Manifest::clone(&entry.manifest));
    known.unwrap_or_else(|| {
        let adapter = header.adapter.parse::<Adapter>().ok();
        let mut manifest = Manifest::bare(adapter.unwrap_or(Adapter::OutputOnly));
        manifest.name = named.unwrap_or(&header.adapter).to_owned();
        manifest
    })
}

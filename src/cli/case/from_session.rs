//! `evals case from-session`: imports a session, finds the state before it in a repository, and writes the draft of a
//! case with the session's snapshot.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use crate::case::provenance::Provenance;
use crate::case::{Case, load_all};
use crate::cli::import::{self, ImportArgs, Memory, kept_session};
use crate::cli::output::{self, Content};
use crate::cli::{CliError, engine, inputs, terminal};
use crate::environment;
use crate::from_session::Observed;
use crate::from_session::commands::configures;
use crate::from_session::redact::Redactor;
use crate::from_session::write::{self as draft, Before, Draft};
use crate::harness::Adapter;
use crate::ids::{ArmOf, SnapshotCellId};
use crate::mine::repository::{Repository, RepositoryError};
use crate::mine::role::{Role, Roles};
use crate::mine::runner::Tree;
use crate::mine::write::repository_path;
use crate::own_environment;
use crate::secrets::Masker;
use crate::snapshot::normalise::{Watching, shows_nothing};
use crate::snapshot::set::Accepted;
use crate::snapshot::{form, store};
use crate::text::{one_line, plural};
use crate::trace::{Body, Event, Header, KeptSession, NoticeCode, StopReason, jsonl};
use crate::values::escaped_glob;
use crate::whole_file::write_whole;

/// The maximum number of globs of protected files in a case.
const MAX_PROTECTED_GLOBS: usize = 200;

/// The codes of the notices that a reader of the draft must know.
const REPORTED_CODES: [NoticeCode; 7] = [
    NoticeCode::OtherBranches,
    NoticeCode::SessionTree,
    NoticeCode::SubAgentLeftOut,
    NoticeCode::HiddenSubAgent,
    NoticeCode::Rewound,
    NoticeCode::SessionReplaced,
    NoticeCode::ResultContradicts,
];

#[derive(Debug, clap::Args)]
pub struct FromSessionArgs {
    /// Session file that an agent kept on disk, another recording, or a trace
    file: PathBuf,
    /// Folder for the case
    #[arg(short, long = "output", value_name = "DIR", default_value = "cases/sessions")]
    out: PathBuf,
    /// Repository of the session (default: the folder in which it ran)
    #[arg(long, value_name = "PATH")]
    repo: Option<PathBuf>,
    /// Mask home folders and e-mail addresses; secrets are always masked
    #[arg(long)]
    redact: bool,
    /// Write no snapshot of the session
    #[arg(long)]
    no_snapshot: bool,
    /// Replace the files of a case with the same name
    #[arg(long)]
    force: bool,
    /// Protocol of the session (default: detected)
    #[arg(long, conflicts_with = "harness")]
    adapter: Option<Adapter>,
    /// Harness of the session (default: detected)
    #[arg(long)]
    harness: Option<String>,
    /// In a session file with several branches: the ID of a line of the branch, or a prefix of the ID
    #[arg(long, value_name = "ID")]
    branch: Option<String>,
}

pub fn run(args: &FromSessionArgs) -> Result<u8, CliError> {
    let env = own_environment::texts();
    let redactor = Redactor::new(Masker::of_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[]));
    let values =
        |names: &[&str]| -> Vec<&str> { names.iter().filter_map(|name| env.get(*name)).map(String::as_str).collect() };
    let (homes, names) = (values(&["HOME", "USERPROFILE"]), values(&["USER", "LOGNAME", "USERNAME"]));
    let mut redactor = if args.redact { redactor.with_persons(&homes, &names) } else { redactor };
    draft_of(args, &mut redactor).map_err(|error| {
        let text = error.text();
        let masked = redactor.text(&text);
        // A snippet of a file may show what the message does not.
        if masked == text && !args.redact { error } else { CliError::unreadable(masked) }
    })
}

fn draft_of(args: &FromSessionArgs, redactor: &mut Redactor) -> Result<u8, CliError> {
    let (mut header, events) = imported(args, redactor)?;
    if header.cwd.is_none() {
        // Some agents do not keep the folder of a session.
        header.cwd = args.repo.as_ref().and_then(|repo| Some(repo.canonicalize().ok()?.to_string_lossy().into_owned()));
        redactor.learn(header.cwd.as_deref().unwrap_or_default());
    }
    let redactor = &*redactor;
    let observed = Observed::of(&header, &events);
    if !observed.prompts.iter().any(|prompt| !prompt.trim().is_empty()) {
        return Err(CliError::unreadable(format!(
            "{} shows no message of the user, so a case from it would have no prompt; choose another session, or another \
             branch of it with --branch",
            args.file.display()
        )));
    }
    let harness = harness_of(args, &header)?;
    let session = header.session.clone().unwrap_or_default();
    let id = session.id.as_deref().map(|id| redactor.text(id)).unwrap_or_default();
    let first = observed.prompts.first().map(|prompt| redactor.text(prompt)).unwrap_or_default();
    let name = draft::name(&first, &id);
    let file = args.out.join(format!("{name}.yaml"));
    let snapshots = store::folder(&file);
    if let Some(known) = [&file, &snapshots].into_iter().find(|path| path.exists() && !args.force) {
        return Err(CliError::unreadable(format!(
            "{} exists already; remove it, name another folder with -o, or replace it with --force",
            known.display()
        )));
    }
    let State { mut before, protect, remarks } = before(args, &header, &session, &observed)?;
    if let Before::Commit { path, .. } = &before
        && redactor.text(path) != *path
    {
        let why =
            "the path of its repository would identify a person; put the repository into the project, or write its URL";
        before = Before::Unknown(why.to_owned());
    }
    let provenance = Provenance {
        session: Some(id).filter(|id| !id.is_empty()),
        agent: header.agent.as_ref().map(|agent| agent.name.clone()),
        version: header.agent.as_ref().and_then(|agent| agent.version.clone()),
        model: header.model.effective.clone(),
        tool: Some(concat!("evals case from-session ", env!("CARGO_PKG_VERSION")).to_owned()),
        date: session.started.as_deref().and_then(|at| at.get(..10)).map(str::to_owned),
        prompt: Some("the user's messages of the session".to_owned()),
        ..Provenance::default()
    };
    let (text, remarks) = draft::text(
        &Draft {
            observed: &observed,
            before: &before,
            protect: &protect,
            of_state: &remarks,
            cwd: header.cwd.as_deref(),
            harness: harness.as_deref(),
            provenance,
        },
        redactor,
    );
    fs::create_dir_all(&args.out)
        .map_err(|error| CliError::unreadable(format!("could not make the folder {}: {error}", args.out.display())))?;
    if args.force && snapshots.is_dir() {
        crate::workspace::remove::remove(&snapshots)?;
    }
    let is_new = file.symlink_metadata().is_err();
    write_whole(&file, |out| out.write_all(text.as_bytes()))?;
    let shown = |path: &Path| redactor.text(&path.display().to_string());
    // A draft whose workspace is to be written is refused by `check`, with its place.
    let case = match &before {
        Before::Commit { .. } => Some(loaded(&file).inspect_err(|_| {
            // A case file that cannot be loaded would prevent the next call.
            let aside = file.with_extension("yaml.draft");
            if is_new && fs::rename(&file, &aside).is_ok() {
                terminal::note(format_args!(
                    "note: the draft cannot be loaded, so it is now in {}; correct the error and rename it to {}",
                    shown(&aside),
                    shown(&file)
                ));
            }
        })?),
        Before::Unknown(_) => None,
    };
    let mut out = output::stdout(Content::Text);
    writeln!(out, "{}", shown(&file))?;
    for remark in &remarks {
        terminal::note(format_args!("note: {remark}"));
    }
    if let Some(case) = case.filter(|_| !args.no_snapshot) {
        match snapshot(&case, harness.as_deref(), &header, &events, redactor)? {
            Ok(path) => writeln!(out, "{}", shown(&path))?,
            Err(why) => terminal::note(format_args!("note: no snapshot was written: {}", redactor.text(&why))),
        }
    }
    terminal::note(format_args!(
        "note: the case is a draft: read it, run `evals check --audit {}`, and remove `review: needed`",
        shown(&file)
    ));
    Ok(0)
}

/// Imports the session as `evals import` does.
fn imported(args: &FromSessionArgs, redactor: &mut Redactor) -> Result<(Header, Vec<Event>), CliError> {
    // The trace is not masked as the case is, so it does not reach the disk.
    let memory = Memory::default();
    let (file, harness, branch) = (args.file.clone(), args.harness.clone(), args.branch.clone());
    import::run(&ImportArgs::into_memory(file, Memory::clone(&memory), args.adapter, harness, branch))?;
    let trace = std::mem::take(&mut *memory.lock().unwrap_or_else(PoisonError::into_inner));
    let failed = |error: jsonl::ReadError| CliError::unreadable(format!("{}: {error}", args.file.display()));
    let mut reader = jsonl::Reader::new(trace.as_slice()).map_err(failed)?;
    let header = reader.header().clone();
    redactor.learn(header.cwd.as_deref().unwrap_or_default());
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().map_err(failed)? {
        if let Body::Notice { code, text, .. } = &event.body
            && REPORTED_CODES.contains(code)
        {
            terminal::note(format_args!("note: {}", redactor.text(&one_line(text))));
        }
        events.push(event);
    }
    Ok((header, events))
}

/// Returns the harness of the session: the named one, else the one in the trace, else the one whose session file it is.
fn harness_of(args: &FromSessionArgs, header: &Header) -> Result<Option<String>, CliError> {
    if header.harness.is_some() || args.file == Path::new("-") || header.session.is_none() {
        return Ok(header.harness.clone());
    }
    let (catalog, _) = inputs::catalog(&[])?;
    let formats = import::formats_of(&catalog);
    let mut file = kept_session::lines(&formats, &args.file)?;
    Ok(formats.detect(BufReader::new(&mut file))?.map(|format| format.harness.clone()))
}

/// The state before the session.
struct State {
    before: Before,
    /// Globs of the tests and settings in it that the session did not change.
    protect: Vec<String>,
    /// Remarks about what is uncertain in it.
    remarks: Vec<String>,
}

impl State {
    fn unknown(why: impl Into<String>) -> Self {
        Self { before: Before::Unknown(why.into()), protect: Vec::new(), remarks: Vec::new() }
    }
}

/// Finds the commit at which the session began, and the tests in it that the session did not change.
fn before(
    args: &FromSessionArgs,
    header: &Header,
    session: &KeptSession,
    observed: &Observed,
) -> Result<State, CliError> {
    let cwd = header.cwd.as_deref().map(Path::new).filter(|cwd| cwd.is_absolute());
    let Some(folder) = args.repo.as_deref().or(cwd) else {
        return Ok(State::unknown("the session does not show its folder; name the repository with --repo"));
    };
    let temporary = engine::temporary()?;
    let env = environment::allowed(&own_environment::texts());
    engine::runtime()?.block_on(async {
        let home = temporary.path().join("git-home");
        fs::create_dir(&home)?;
        let mut env: BTreeMap<String, String> = env;
        env.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
        let repository = match Repository::open(folder, env).await {
            Ok(repository) => repository,
            Err(error) => {
                let why = match error {
                    RepositoryError::NotARepository { folder, .. } => {
                        format!("{} is not a git repository; name the one of the session with --repo", folder.display())
                    }
                    other => other.to_string(),
                };
                // A repository that the user named has to be one.
                if args.repo.is_some() {
                    return Err(CliError::unreadable(why));
                }
                return Ok(State::unknown(why));
            }
        };
        let (rev, how) = match commit(&repository, session).await {
            Ok(found) => found,
            Err(why) => return Ok(State::unknown(why)),
        };
        let Ok(listed) = repository.run(&["ls-tree", "-r", "-z", "--name-only", rev.as_str()], None).await else {
            return Ok(State::unknown(format!("the files of the commit {rev} could not be listed")));
        };
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let files: BTreeSet<String> = listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        let (subdir, remark) = match subfolder(args.repo.as_deref(), cwd, &repository.folder, &files, observed) {
            Ok(found) => found,
            Err(why) => return Ok(State::unknown(format!("{why} (commit {rev})"))),
        };
        let files = match &subdir {
            Some(subdir) => {
                let inside = files.iter().filter_map(|path| path.strip_prefix(subdir.as_str())?.strip_prefix('/'));
                inside.map(str::to_owned).collect()
            }
            None => files,
        };
        let tree = Tree { files, ..Tree::default() };
        let roles = Roles::of_trees(&[&tree]);
        let is_protected = |path: &String| {
            let is_meant = roles.of(path) == Role::Test || observed.checks.iter().any(|it| configures(path, &it.check));
            is_meant && !observed.touched.contains(path)
        };
        let (protect, left_out) = match observed.checks.is_empty() {
            true => (Vec::new(), 0),
            false => protected(&tree.files, &observed.touched, is_protected),
        };
        let mut remarks: Vec<String> = remark.into_iter().collect();
        if left_out > 0 {
            remarks.push(format!(
                "{} that the session did not change {} not in `workspace.protect`, because there are too many: add globs \
                 of their folders.",
                plural(left_out, "test file"),
                if left_out == 1 { "is" } else { "are" }
            ));
        }
        let path = repository_path(&repository.folder, &std::env::current_dir()?, &args.out);
        Ok(State { before: Before::Commit { path, rev, subdir, how }, protect, remarks })
    })
}

/// Returns the folder of the repository in which the session ran, absent for the top folder, and a remark if this is a guess. `top`
/// is the folder of the repository, and `files` are those of the commit.
///
/// The session's folder decides if it is on this machine. If it is not, the folder that `--repo` names, the last steps of the
/// session's folder, and the top folder are compared: most of the files that the session changed exist in the right one. If they
/// exist in several, or in none, a folder below the top that `--repo` names decides.
fn subfolder(
    repo: Option<&Path>,
    cwd: Option<&Path>,
    top: &Path,
    files: &BTreeSet<String>,
    observed: &Observed,
) -> Result<(Option<String>, Option<String>), String> {
    let below = |folder: &Path| {
        let folder = folder.canonicalize().ok()?;
        Some(folder.strip_prefix(top).ok()?.to_string_lossy().into_owned())
    };
    let is_folder = |folder: &String| {
        let start = format!("{folder}/");
        files.range(start.clone()..).next().is_some_and(|path| path.starts_with(&start))
    };
    match cwd.and_then(below) {
        Some(folder) if folder.is_empty() => return Ok((None, None)),
        Some(folder) if is_folder(&folder) => return Ok((Some(folder), None)),
        Some(folder) if repo.is_none() => {
            return Err(format!("the folder of the session, {folder}, is not in the commit"));
        }
        _ => {}
    }
    let is_same_name = cwd.is_some_and(|cwd| cwd.file_name() == top.file_name());
    let steps: Vec<String> =
        cwd.into_iter().flat_map(Path::iter).skip(1).map(|step| step.to_string_lossy().into_owned()).collect();
    let ends = (0..steps.len()).map(|first| steps[first..].join("/"));
    let named = repo.and_then(below).filter(is_folder);
    let mut candidates: Vec<String> = ends.filter(is_folder).collect();
    candidates.insert(if is_same_name { 0 } else { candidates.len() }, String::new());
    if let Some(named) = &named {
        candidates.insert(0, named.clone());
    }
    let count = |folder: &String| {
        let path_of = |path: &String| if folder.is_empty() { path.clone() } else { format!("{folder}/{path}") };
        observed.touched.iter().filter(|path| files.contains(&path_of(path))).count()
    };
    let most = candidates.iter().map(count).max().unwrap_or_default();
    let mut best = candidates.iter().filter(|folder| count(folder) == most);
    let chosen = best.next().cloned().unwrap_or_default();
    let is_only = best.all(|other| *other == chosen);
    let shown = cwd.map(|cwd| cwd.display().to_string()).unwrap_or_default();
    // The commands and the changed files begin with the way to the repository.
    let way = cwd.and_then(|cwd| top.strip_prefix(cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned())).ok());
    if let Some(way) = way.filter(|_| most == 0) {
        return Err(format!(
            "the session ran in {shown}, above the repository: a workspace needs it in `{}`",
            way.display()
        ));
    }
    let is_certain = named.as_ref() == Some(&chosen) || is_only && (most > 0 || is_same_name);
    let place = if chosen.is_empty() { "the top folder".to_owned() } else { format!("the folder `{chosen}`") };
    let remark = format!(
        "A GUESS: the session ran in {place} of the repository, because its folder {shown} is not in it on this machine. If this \
         is wrong, correct `workspace.git.subdir`."
    );
    Ok((Some(chosen).filter(|folder| !folder.is_empty()), (!is_certain).then_some(remark)))
}

/// Returns globs for the files that are protected, and how many files no glob matches. If there are too many files, whole folders
/// stand for them, unless another file or a file that the session changed is in it.
fn protected(
    files: &BTreeSet<String>,
    touched: &BTreeSet<String>,
    is_protected: impl Fn(&String) -> bool,
) -> (Vec<String>, usize) {
    fn folders(path: &str) -> impl Iterator<Item = &str> {
        path.match_indices('/').map(|(at, _)| &path[..at])
    }
    let (meant, others): (Vec<&String>, Vec<&String>) = files.iter().partition(|path| is_protected(path));
    if meant.len() <= MAX_PROTECTED_GLOBS {
        return (meant.into_iter().map(|path| escaped_glob(path)).collect(), 0);
    }
    let mixed: HashSet<&str> = others.into_iter().chain(touched).flat_map(|path| folders(path)).collect();
    let mut globs: BTreeMap<String, usize> = BTreeMap::new();
    for path in meant {
        let folder = folders(path).find(|folder| !mixed.contains(folder));
        let glob = folder.map_or_else(|| escaped_glob(path), |folder| format!("{}/**", escaped_glob(folder)));
        *globs.entry(glob).or_default() += 1;
    }
    let mut globs: Vec<(String, usize)> = globs.into_iter().collect();
    globs.sort_by_key(|(_, count)| Reverse(*count));
    let left_out = globs.iter().skip(MAX_PROTECTED_GLOBS).map(|(_, count)| count).sum();
    globs.truncate(MAX_PROTECTED_GLOBS);
    (globs.into_iter().map(|(glob, _)| glob).collect(), left_out)
}

/// Returns the commit at which the session began and how it was found, or why there is none.
async fn commit(repository: &Repository, session: &KeptSession) -> Result<(String, String), String> {
    let exists = |rev: String| async move {
        repository
            .line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{rev}^{{commit}}")])
            .await
            .ok()
    };
    if let Some(commit) = &session.commit {
        return match exists(commit.clone()).await {
            Some(rev) => Ok((rev.clone(), format!("the commit {rev}, which the session names"))),
            None => Err(format!(
                "the session began at the commit {}, which is not in {}",
                one_line(commit),
                repository.folder.display()
            )),
        };
    }
    let Some(started) = &session.started else {
        return Err("the session shows neither its commit nor its time".to_owned());
    };
    let (branch, of) = match &session.branch {
        Some(branch) => match exists(format!("refs/heads/{branch}")).await {
            Some(_) => (format!("refs/heads/{branch}"), format!("on the branch {branch}")),
            None => return Err(format!("the branch {} of the session is not in the repository", one_line(branch))),
        },
        None => ("HEAD".to_owned(), "in the history of HEAD, as the session names no branch".to_owned()),
    };
    let before = format!("--before={started}");
    // The commits of a branch that was merged later were not on this one yet.
    match repository.line(&["rev-list", "-1", "--first-parent", &before, "--end-of-options", &branch]).await {
        Ok(rev) if !rev.is_empty() => {
            let since = format!("{rev}..{branch}");
            let merges = ["rev-list", "--first-parent", "--merges", "--count", "--end-of-options", &since];
            let merges =
                repository.line(&merges).await.ok().and_then(|count| count.parse::<u64>().ok()).unwrap_or_default();
            let doubt = match merges {
                0 => String::new(),
                _ => {
                    format!("; {} came after it, so the session may have begun at another one", plural(merges, "merge"))
                }
            };
            Ok((
                rev.clone(),
                format!("a GUESS: the commit {rev}, the last one before the session began ({started}) {of}{doubt}"),
            ))
        }
        _ => Err(format!("no commit {of} is older than the session ({started})")),
    }
}

/// Loads the written case, as `evals check` does.
fn loaded(file: &Path) -> Result<Case, CliError> {
    let cases = inputs::cases_alone(|context| load_all(&[file.to_owned()], context))?;
    cases.into_iter().next().ok_or_else(|| CliError::unreadable(format!("{} holds no case", file.display())))
}

/// Writes the snapshot of the session beside the case. Returns why there is none, if there is none.
fn snapshot(
    case: &Case,
    harness: Option<&str>,
    header: &Header,
    events: &[Event],
    redactor: &Redactor,
) -> Result<Result<PathBuf, String>, CliError> {
    let Some(harness) = harness else { return Ok(Err("the harness of the session is unknown".to_owned())) };
    let (catalog, _) = inputs::catalog(&[])?;
    let renames = catalog
        .get(harness)
        .is_ok_and(|entry| entry.manifest.session_file.as_ref().is_some_and(|file| !file.tool_kinds.is_empty()));
    if renames {
        return Ok(Err(format!("the session files of `{harness}` name its tools differently than a run shows them")));
    }
    if let Some(why) = shows_nothing(header, &case.snapshot) {
        return Ok(Err(why.to_owned()));
    }
    let stop = events.iter().rev().find_map(|event| match &event.body {
        Body::Stop(stop) => Some(stop.reason),
        _ => None,
    });
    if matches!(stop, None | Some(StopReason::Error | StopReason::Crashed)) {
        return Ok(Err("the session did not finish".to_owned()));
    }
    let mut watching = Watching::default();
    events.iter().for_each(|event| watching.event(event));
    let shape = watching.shape(header, &case.snapshot);
    let id = SnapshotCellId::new(&case.id, harness, ArmOf::default());
    let file = store::file(&store::folder(&case.file), harness, id.arm())?;
    let (text, several) = (case.snapshot.text, case.snapshot.several);
    let accepted = Accepted { id, text, several, ..Accepted::default() }.with(&[shape], false);
    let text = redactor.text(&form::write(&accepted));
    if form::read(&text).is_err() {
        return Ok(Err("it could not be redacted without becoming unreadable".to_owned()));
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    write_whole(&file, |out| out.write_all(text.as_bytes()))?;
    Ok(Ok(crate::paths::shown(&file)))
}

//! Runs the session of a trial, and passes every event to its observers: graders, counters, and the trace file.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::check_loaded::{self, Loaded};
use super::ending::error_of;
use super::followed_links::{NamedFiles, States};
use super::gateway::{self, Gateway, SessionEnd};
use super::hooks::{self, InCommands};
use super::metrics::Observed;
use super::prepare::PreparedTrial;
use super::read_outside::Outside;
use super::sandboxing::{outside, temporary};
use super::silent_turns::SilentTurns;
use super::task::{header_of, trace_of_recording};
use super::trace_file::TraceFile;
use super::{Attempt, Ended, Engine, Folders, Outcome, TrialError, io, on_blocking_thread, protected, refusal, usage};
use crate::adapter::{self, Translation, replay};
use crate::driver::{Task, drive};
use crate::gateway::totals::Totals;
use crate::grader::Grading;
use crate::harness::{Adapter, Manifest};
use crate::price;
use crate::project;
use crate::regular;
use crate::secrets::{self, Masker};
use crate::session::{self, Session, SessionRemains, Setup};
use crate::trace::jsonl::Reader;
use crate::trace::recorder::{Finished, Recorder};
use crate::trace::{ErrorCategory, Event, FollowedLink, Header, NoticeCode, StopReason};
use crate::whole_file::PartFile;
use crate::wire::EngineLine;

/// A finished session.
pub(super) struct Played {
    /// The header, and the usage.
    pub finished: Finished,
    /// Facts that only the process reported.
    pub remains: SessionRemains,
    /// The counts.
    pub observed: Observed,
    /// The graders.
    pub grading: Grading,
    /// The trace, in a temporary file.
    pub trace: PartFile,
    /// The gateway's facts about the session.
    pub gateway: Option<gateway::Ended>,
    /// The skills that the agent loaded.
    pub loaded: Loaded,
}

impl Played {
    /// Returns the time of the answer, if the agent gave one.
    pub(super) fn answered(&self) -> Option<SystemTime> {
        let stop = self.observed.stop.as_ref()?;
        let is_answer = matches!(stop.reason, StopReason::EndTurn | StopReason::MaxTokens | StopReason::Refusal);
        let since = self.remains.lasted.checked_sub(self.observed.lasted())?;
        SystemTime::now().checked_sub(since).filter(|_| is_answer)
    }
}

/// Runs the session to its end.
pub(super) async fn play(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    prepared: &mut PreparedTrial,
) -> Result<Played, Ended> {
    let (case, masker, task) = (&attempt.case, prepared.masker.clone(), &mut prepared.task);
    let header = header_at_start(attempt, folders, task);
    let as_begun = header.clone();
    let watched = outside(&prepared.inside, folders, case, &task.command);
    let observers = || Watch::of(attempt, &as_begun, &masker, watched.clone());
    let watch = Arc::new(Mutex::new(observers()));
    let sink = {
        let watch = watch.clone();
        Box::new(move |event: Event| lock(&watch).take(event))
    };
    let is_of_trace = trace_of_recording(task).is_some();
    let (mut finished, mut remains, mut loaded) = match trace_of_recording(task) {
        Some(path) => match lawful(path.as_ref()).and_then(|()| replay::trace(&path, header, sink)) {
            Ok(finished) => (finished, SessionRemains::default(), Loaded::default()),
            Err(error) => {
                let why = format!("the recording {} could not be read: {error}", path.display());
                return Err(Ended::without_agent(attempt, &masker, ErrorCategory::StartFailed, why));
            }
        },
        None => {
            let setup = Setup {
                wire: attempt.folder.join("wire.jsonl"),
                stderr: attempt.folder.join("stderr.log"),
                masker: masker.clone(),
                limits: case.limits,
                interrupt: engine.interrupt.clone(),
                limit: prepared.gateway.as_ref().map(|gateway| gateway.exceeded.clone()),
                sink,
                max_wire: session::MAX_WIRE,
            };
            let about = About {
                version: prepared.version.as_deref(),
                workspace: &folders.workspace,
                before: &prepared.before.path,
                home: &folders.home,
                temporary: temporary(&prepared.inside),
                gateway: prepared.gateway.as_ref(),
            };
            run_session(setup, attempt, header, about, task, &watch).await?
        }
    };
    let watch = Arc::try_unwrap(watch).ok().and_then(|watch| watch.into_inner().ok());
    let Some(mut watch) = watch else {
        return Err(io("end the session")(std::io::Error::other("the trace is still being written")).into());
    };
    if (watch.file.joined_a_secret() || remains.split_secret) && !is_of_trace {
        let wire = attempt.folder.join("wire.jsonl");
        remains.stderr_tail = masked(&wire, &attempt.folder.join("stderr.log"), masker.clone()).await?;
        // A part of a secret in an event cannot be recognised there, so the events are derived from the masked lines.
        watch = observers();
        finished = derived(&wire, attempt, task, &mut watch).map_err(io("read the wire log"))?;
    }
    let Watch { grading, observed, file, silent, .. } = watch;
    let is_answered = observed.stop.as_ref().is_some_and(|stop| stop.reason == StopReason::EndTurn);
    if is_answered && silent.any() {
        loaded.wrong = loaded.wrong.or_else(|| prepared.gateway.as_ref()?.unsent_prompt());
    }
    let trace = file.write(&attempt.folder.join("trace.jsonl"), &finished.header)?;
    let gateway = match prepared.gateway.take() {
        Some(gateway) => {
            let how = SessionEnd {
                enforces: engine.gateway.enforce.is_some(),
                ended_by_engine: observed.stopped_by_engine,
                failed: observed.stop.as_ref().and_then(error_of).is_some(),
            };
            Some(gateway.end(attempt, finished.header.agent.clone(), &how).await?)
        }
        None => None,
    };
    if remains.interrupted {
        return Err(Ended::With(Outcome::Interrupted));
    }
    if let Some(kind) = remains.log_failed {
        return Err(io("write the wire log")(kind.into()).into());
    }
    Ok(Played { finished, remains, observed, grading, trace, gateway, loaded })
}

/// Returns the header with which a session begins.
fn header_at_start(attempt: &Attempt, folders: &Folders, task: &Task) -> Header {
    let mut header = header_of(attempt, &folders.workspace);
    if let Some(path) = task.recording.as_deref()
        && let Ok(recorded) = replay::recorded_in(path)
    {
        // A replayed recording can show what the original showed, and its lines are read in the original
        // protocol.
        recorded.adapter.word().clone_into(&mut header.adapter);
        header.capabilities = recorded.capabilities;
        // A stored trace has a header of its own, which states whether its session had times.
        let has_times = || recorded.is_timed && replay::has_times(path).unwrap_or(true);
        header.timed = (trace_of_recording(task).is_none() && !has_times()).then_some(false);
    }
    header
}

/// Masks the secrets of a session's files that came in pieces, and returns the last lines of standard error.
async fn masked(wire: &Path, stderr: &Path, masker: Arc<Masker>) -> Result<String, TrialError> {
    let (wire, stderr) = (wire.to_owned(), stderr.to_owned());
    // Rewriting a long log takes time, and other trials share this thread.
    let done = tokio::task::spawn_blocking(move || secrets::split::mask_wire(&wire, &stderr, &masker)).await;
    Ok(done.map_err(|error| io("mask the wire log")(std::io::Error::other(error)))??)
}

/// Derives a session's events from its wire log, for these observers.
fn derived(wire: &Path, attempt: &Attempt, task: &Task, watch: &mut Watch) -> std::io::Result<Finished> {
    let (adapter, manifest) = protocol(attempt, task);
    let lines = BufReader::with_capacity(256 << 10, regular::open(wire)?);
    adapter::import_finished(adapter, manifest, true, lines, |event| {
        watch.take(event);
        Ok(())
    })
}

/// The observers of the events of a session.
struct Watch {
    grading: Grading,
    observed: Observed,
    file: TraceFile,
    outside: Outside,
    silent: SilentTurns,
    named: NamedFiles,
    hooks: InCommands,
}

/// Takes the observer of paths outside the trial, and returns the paths that calls named, including calls that have not ended.
fn take_watched_outside(watch: &Mutex<Watch>, recorder: &Recorder) -> Vec<String> {
    let mut outside = std::mem::take(&mut lock(watch).outside);
    recorder.pending().for_each(|event| outside.event(event));
    outside.notices()
}

/// Takes the observer of named files, with the calls that have not ended.
fn take_named_files(watch: &Mutex<Watch>, recorder: &Recorder) -> NamedFiles {
    let mut named = std::mem::take(&mut lock(watch).named);
    recorder.pending().for_each(|event| named.event(event));
    named
}

/// Returns the paths of calls that lead to other files by links or may have been moved to them. Runs on another thread, because
/// it may have to read what the agent left.
async fn followed_links(
    named: NamedFiles,
    about: &About<'_>,
    ignore: &[String],
) -> Result<Vec<FollowedLink>, TrialError> {
    if named.is_empty() {
        return Ok(Vec::new());
    }
    let [workspace, before] = [about.workspace, about.before].map(Path::to_owned);
    let (temporary, ignore) = (about.temporary.map(Path::to_owned), ignore.to_owned());
    on_blocking_thread(move || {
        let states = States { workspace: &workspace, before: &before, ignore: &ignore };
        named.followed(states, temporary.as_deref())
    })
    .await
}

/// Takes the observer of hooks, and returns the files with hooks that commands named, including commands of calls that have not
/// ended.
fn take_hooks_in_commands(watch: &Mutex<Watch>, recorder: &Recorder) -> BTreeSet<String> {
    let mut hooks = std::mem::take(&mut lock(watch).hooks);
    recorder.pending().for_each(|event| hooks.event(event));
    hooks.named()
}

/// Returns the files with hooks of the agent: in the workspace before and after the session, in the private home, and where the
/// agent's command names them. `changed` are the paths that calls changed, `words` are those of [`words_of_command`].
async fn found_hooks(
    changed: Vec<String>,
    words: Vec<String>,
    about: &About<'_>,
    manifest: &Manifest,
) -> Result<BTreeSet<String>, TrialError> {
    if manifest.hooks.is_empty() {
        return Ok(BTreeSet::new());
    }
    let folders = [about.home, about.before, about.workspace].map(Path::to_owned);
    let files = manifest.hooks.clone();
    on_blocking_thread(move || {
        let mut found = hooks::found(&files, &folders, &changed);
        found.extend(hooks::found_by_words(&files, &folders, &words));
        found
    })
    .await
}

/// Returns the arguments of the agent's command, and the values of the environment variables that the case and the manifest name.
fn words_of_command(attempt: &Attempt, task: &Task, about: &About<'_>) -> Vec<String> {
    let [home, workspace] = [about.home, about.workspace].map(|path| path.to_string_lossy().into_owned());
    let root = project::root().to_string_lossy().into_owned();
    let fill =
        |word: &String| word.replace("{home}", &home).replace("{workspace}", &workspace).replace("{project}", &root);
    let manifest = &task.manifest;
    let names = attempt.case.env.keys().chain(manifest.env.set.keys()).chain(&manifest.env.pass);
    let values = names.filter_map(|name| task.env.get(name).cloned());
    manifest.command.iter().skip(1).map(fill).chain(values).collect()
}

impl Watch {
    /// Makes the observers of a session that begins with this header.
    fn of(attempt: &Attempt, header: &Header, masker: &Arc<Masker>, outside: Outside) -> Self {
        let (case, manifest) = (&attempt.case, &attempt.manifest);
        let workspace = header.cwd.as_deref().unwrap_or_default();
        Self {
            grading: Grading::new(&case.graders, header, Some(manifest)).with_secrets(case.secrets_in_graders(masker)),
            observed: Observed::default(),
            file: TraceFile::new(&attempt.folder, masker.clone()),
            outside,
            silent: SilentTurns::default(),
            named: NamedFiles::new(workspace).with_moves(manifest.edits_may_move),
            hooks: InCommands::new(&manifest.hooks, workspace),
        }
    }

    fn take(&mut self, event: Event) {
        // Graders read the redacted trace, so that every verdict can be explained from the stored files.
        let event = self.file.take(event);
        self.observed.event(&event);
        self.outside.event(&event);
        self.silent.event(&event);
        self.named.event(&event);
        self.hooks.event(&event);
        self.grading.event(&event);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The parts of a trial's preparation that its session needs.
#[derive(Clone, Copy)]
struct About<'a> {
    /// The version that the agent's program printed.
    version: Option<&'a str>,
    workspace: &'a Path,
    /// The workspace before the agent.
    before: &'a Path,
    /// The private home.
    home: &'a Path,
    /// The folder that is `/tmp` to the agent, if it has one of its own.
    temporary: Option<&'a Path>,
    gateway: Option<&'a Gateway>,
}

/// Runs the agent's session, or replays a recording.
async fn run_session(
    setup: Setup,
    attempt: &Attempt,
    header: Header,
    about: About<'_>,
    task: &mut Task,
    watch: &Mutex<Watch>,
) -> Result<(Finished, SessionRemains, Loaded), TrialError> {
    let (adapter, manifest) = protocol(attempt, task);
    let (masker, wire) = (setup.masker.clone(), setup.wire.clone());
    let translation = Translation::new(adapter, manifest, header.clone());
    let mut session = Session::begin(setup, translation).map_err(io("begin the wire log"))?;
    session.engine(&EngineLine::Start { header: Box::new(header) });
    if let Some(version) = about.version {
        let name = attempt.manifest.agent_info.as_ref().unwrap_or(&attempt.manifest.name).clone();
        session.engine(&EngineLine::AgentVersion { name, version: version.to_owned() });
    }
    let patience = drive(&mut session, task).await;
    let mut ended = session.close(patience).await;
    let totals = match about.gateway {
        Some(gateway) => Some(gateway.settled().await),
        None => None,
    };
    let has_usage = totals.as_ref().is_some_and(|totals| record_totals(&mut ended, totals, attempt));
    // A cost that the agent did not report may be calculated from its tokens and a price table.
    if let Some(line) = price::line_for(ended.recorder()).filter(|_| !has_usage) {
        ended.engine(&line);
    }
    for text in take_watched_outside(watch, ended.recorder()) {
        ended.engine(&EngineLine::Notice { code: NoticeCode::ReadOutside, text });
    }
    // A recording was made in another workspace.
    if task.recording.is_none() {
        let words = words_of_command(attempt, task, &about);
        record_hooks_and_links(&mut ended, attempt, words, &about, watch).await?;
        record_protected(&mut ended, attempt, &about).await?;
    }
    let offered = about.gateway.and_then(|gateway| gateway.wrong_arm());
    let checked = match task.recording {
        None => check_loaded::check(attempt, &wire, about.before),
        Some(_) => Ok(Loaded::default()),
    };
    let (mut loaded, unread) = match checked {
        Ok(loaded) => (loaded, None),
        Err(error) => (Loaded::default(), Some(error)),
    };
    loaded.wrong = loaded.wrong.or(offered);
    if !loaded.unexpected.is_empty() {
        let text = format!("the agent loaded skills that its trial should not have: {}", loaded.unexpected.join(", "));
        ended.engine(&EngineLine::Notice { code: NoticeCode::UnexpectedSkill, text });
    }
    let joined = lock(watch).file.joined_a_secret() || masker.finds(&ended.recorder().answer());
    if ended.holds_split_secret() || joined {
        let text = "a secret came in pieces over several lines; they are masked in this log".to_owned();
        ended.engine(&EngineLine::Notice { code: NoticeCode::SecretSplit, text });
    }
    let (finished, remains) = ended.finish();
    // A log that could not be written is an error of its own.
    match unread.filter(|_| remains.log_failed.is_none()) {
        Some(error) => Err(io("read the wire log")(error)),
        None => Ok((finished, remains, loaded)),
    }
}

/// Records what the gateway knows of the session: its usage, and the requests that were refused, filtered or ended early. Returns
/// true if the usage is that of the whole session.
fn record_totals(ended: &mut session::Ended, totals: &Totals, attempt: &Attempt) -> bool {
    let usage_lines = usage::lines_for(totals, ended.recorder());
    usage_lines.iter().for_each(|line| ended.engine(line));
    let lines = [refusal::line_for(totals), refusal::limit_line(totals), refusal::filter_line(totals)];
    lines.into_iter().flatten().for_each(|line| ended.engine(&line));
    let broken = refusal::broken_line(totals, &ended.recorder().answer());
    broken.into_iter().for_each(|line| ended.engine(&line));
    if let Some(line) = refusal::answer_line(totals, &attempt.manifest, attempt.case.turns.len()) {
        ended.engine(&line);
    }
    usage::has_usage(&usage_lines)
}

/// Records the hooks of the agent that may have changed calls, and the links that calls followed. `words` are those of
/// [`words_of_command`].
async fn record_hooks_and_links(
    ended: &mut session::Ended,
    attempt: &Attempt,
    words: Vec<String>,
    about: &About<'_>,
    watch: &Mutex<Watch>,
) -> Result<(), TrialError> {
    let named = take_named_files(watch, ended.recorder());
    let mut changed = named.changed();
    changed.extend(take_hooks_in_commands(watch, ended.recorder()));
    let hooks = found_hooks(changed, words, about, &attempt.manifest).await?;
    if !hooks.is_empty() {
        let files: Vec<String> = hooks.iter().map(|file| format!("`{file}`")).collect();
        let text = format!("hooks of the agent may have changed calls that it shows unchanged: {}", files.join(", "));
        ended.engine(&EngineLine::Notice { code: NoticeCode::UnshownAction, text });
    }
    for link in followed_links(named, about, &attempt.case.workspace.ignore).await? {
        ended.engine(&EngineLine::Followed { link });
    }
    Ok(())
}

/// Records the protected files that changed while the agent worked. They are restored when its change is measured.
async fn record_protected(ended: &mut session::Ended, attempt: &Attempt, about: &About<'_>) -> Result<(), TrialError> {
    if attempt.case.workspace.protect.is_empty() {
        return Ok(());
    }
    let case = attempt.case.clone();
    let [workspace, before] = [about.workspace, about.before].map(Path::to_owned);
    // What cannot be read now is an error, or a warning, when the change is measured.
    let found = on_blocking_thread(move || protected::notices(&case.workspace, &before, &workspace)).await?;
    for text in found.unwrap_or_default() {
        ended.engine(&EngineLine::Notice { code: NoticeCode::ProtectedFile, text });
    }
    Ok(())
}

/// Returns the protocol of a trial's session, and the manifest that says how its lines are read.
fn protocol<'a>(attempt: &'a Attempt, task: &Task) -> (Adapter, &'a Manifest) {
    let recorded = task.recording.as_ref().and_then(|path| replay::recorded_in(path).ok());
    let adapter = match (&task.recording, &recorded) {
        (Some(_), Some(recorded)) => recorded.adapter,
        (Some(_), None) => Adapter::OutputOnly,
        (None, _) => attempt.manifest.adapter,
    };
    // The lines of a stream are interpreted by the manifest of the agent that was recorded.
    let recorded_with = recorded.and_then(|recorded| recorded.harness).filter(|_| attempt.manifest.stream.is_empty());
    let manifest = recorded_with.and_then(|name| crate::harness::built_in::named(&name));
    (adapter, manifest.unwrap_or(&*attempt.manifest))
}

/// Checks the laws of a stored trace, which is graded as if its session were played now.
fn lawful(path: &Path) -> std::io::Result<()> {
    let input = BufReader::with_capacity(256 << 10, regular::open(path)?);
    let mut reader = Reader::lawful(input).map_err(std::io::Error::other)?;
    reader.try_for_each(|event| event.map(drop)).map_err(std::io::Error::other)
}

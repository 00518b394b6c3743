//! The model gateway of a trial: its server, the agent that is pointed at it, and what its log says about the trial.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::check_requests::{self, Sought};
use super::task::model_asked;
use super::{Attempt, Engine, Folders, command};
use crate::adapter::errors;
use crate::environment::Placeholders;
use crate::gateway::canonical::{Canon, Here, Rules};
use crate::gateway::cassette::{self, Cassette, Header};
use crate::gateway::exchange::{Exchange, FailureKind, Source};
use crate::gateway::guard::{Budget, Guard};
use crate::gateway::log::{Log, LogFile, Logged};
use crate::gateway::player::Player;
use crate::gateway::refused::CaseTexts;
use crate::gateway::route::{CaseModel, Route};
use crate::gateway::script::Script;
use crate::gateway::server::{self, Bound, Options, Plays, Running};
use crate::gateway::settings::Settings;
use crate::gateway::tape::Tape;
use crate::gateway::totals::Totals;
use crate::gateway::upstream::Upstream;
use crate::harness::Pointed;
use crate::ids::TrialRecord;
use crate::limits::LimitKey;
use crate::proxy::is_proxy;
use crate::result::{Unrecorded, Warning};
use crate::run::RunError;
use crate::sandbox::{Network, Sandbox, TrialSandbox};
use crate::secrets::Masker;
use crate::text::plural;
use crate::trace::{Agent, ErrorCategory};
use crate::whole_file::{PartFile, PartWriter};

/// The name of the log in the trial's folder.
pub(super) const LOG: &str = "llm.jsonl";

/// The name of the socket in the folder that is mounted as `/tmp` in the sandbox.
const SOCKET: &str = "model.sock";

/// A port in a sandbox that is connected to a socket, by its path in the sandbox.
pub(super) struct Relay {
    pub(super) port: u16,
    pub(super) socket: PathBuf,
}

/// A gateway that has an address but does not answer yet. Its log masks secrets, and these depend on the variables that
/// the agent gets, which contain the address.
pub(super) struct Reserved {
    bound: Bound,
    relay: Option<Relay>,
}

/// The gateway of a trial.
pub(super) struct Gateway {
    running: Running,
    route: Route,
    canon: Canon,
    file: LogFile,
    turns: usize,
    /// The version of the agent that was recorded.
    version: Option<String>,
    /// The texts that are looked for in the requests.
    sought: Vec<Sought>,
    /// Gets the limit that a request exceeded.
    pub(super) exceeded: watch::Receiver<Option<(LimitKey, String)>>,
    /// The connection to the server if the sandbox has no network.
    pub(super) relay: Option<Relay>,
}

/// The gateway's facts about a trial whose session is over.
pub(super) struct Ended {
    /// The log of the exchanges.
    pub(super) part: PartFile,
    /// The reason why the trial is errored, whatever the agent answered.
    pub(super) error: Option<(ErrorCategory, String)>,
    pub(super) warnings: Vec<Warning>,
    /// Warnings for an agent that ended without intervention.
    pub(super) left: Vec<Warning>,
    /// The source of the model's answers.
    pub(super) source: Option<Source>,
    /// The cassette to keep if the trial is not errored.
    pub(super) recorded: Option<Recorded>,
}

/// A recording that is kept if its trial is not errored.
pub(super) struct Recorded {
    pub(super) file: PathBuf,
    pub(super) cassette: Cassette,
}

/// Reserves the address of a trial's gateway; `None` if its agent reaches its model without one.
///
/// # Errors
/// Returns the reason why there is no address.
pub(super) async fn reserve(attempt: &Attempt, inside: &TrialSandbox) -> Result<Option<Reserved>, String> {
    if attempt.route.is_none() {
        return Ok(None);
    }
    let apart = matches!(inside.sandbox, Sandbox::Bwrap { network: Network::Loopback | Network::None, .. });
    let socket = apart.then(|| inside.places.scratch.join(SOCKET));
    let bound = server::bind(0, socket.as_deref()).await;
    let bound = bound.map_err(|error| format!("the model gateway could not listen on loopback: {error}"))?;
    let relay = apart.then(|| Relay { port: bound.port(), socket: Path::new("/tmp").join(SOCKET) });
    Ok(Some(Reserved { bound, relay }))
}

/// Returns the attempt with an agent that is pointed at the gateway; `None` if its manifest does not define how.
///
/// # Errors
/// Returns the reason why the agent cannot be pointed there in this mode, or why it cannot be started without a model.
pub(super) fn pointed(engine: &Engine, attempt: &Attempt) -> Result<Option<Attempt>, String> {
    let pointed = at_gateway(engine, attempt)?;
    let attempt = pointed.as_ref().unwrap_or(attempt);
    let of_gateway = attempt.manifest.gateway.as_ref().filter(|_| attempt.route.is_some());
    let has_model = model_asked(attempt).requested.is_some() || of_gateway.is_some_and(|it| it.model.is_some());
    if !has_model {
        command::check_without_model(&attempt.manifest)?;
    }
    Ok(pointed)
}

fn at_gateway(engine: &Engine, attempt: &Attempt) -> Result<Option<Attempt>, String> {
    let (Some(route), Some(at)) = (&attempt.route, &attempt.manifest.gateway) else { return Ok(None) };
    let how = match route {
        Route::Script(_) => Pointed::Script,
        Route::Replay(_) => Pointed::Recording,
        Route::Observe | Route::Record(_) | Route::Auto(_) => Pointed::Service {
            env: &engine.env,
            has_key: engine.gateway.upstream(&engine.env).map_err(|error| error.to_string())?.has_key(at.api),
        },
    };
    let asked = attempt.trial.model.as_deref();
    let manifest = attempt.manifest.at_gateway(&how, asked)?;
    Ok(Some(Attempt { manifest: Arc::new(manifest), ..attempt.clone() }))
}

impl Reserved {
    pub(super) fn base_url(&self) -> String {
        self.bound.base_url()
    }

    /// Starts to answer.
    ///
    /// # Errors
    /// Returns the reason why the gateway cannot answer.
    pub(super) fn start(
        self,
        engine: &Engine,
        attempt: &Attempt,
        folders: &Folders,
        scratch: &Path,
        masker: &Masker,
    ) -> Result<Gateway, String> {
        let route = attempt.route.clone().ok_or("the trial has no gateway")?;
        let at = attempt.manifest.gateway.clone();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let here = Here { workspace: text(&folders.workspace), home: text(&folders.home), temporary: text(scratch) };
        let of_case = matches!(attempt.case.model, Some(CaseModel::Cassette { ignore_results: true, .. }));
        let rules = Rules {
            normalise: at.iter().flat_map(|at| at.normalise.clone()).collect(),
            ignore_results: of_case || at.as_ref().is_some_and(|at| at.ignores_results()),
        };
        let canon = Canon::new(&here, rules, masker.clone());
        let (mut turns, mut version) = (0, None);
        let mut aside = at.as_ref().map(|at| at.aside.clone()).unwrap_or_default();
        let plays = match &route {
            Route::Script(path) => {
                let mut script = Script::load(path).map_err(|errors| {
                    let first = errors.first().map(ToString::to_string).unwrap_or_default();
                    format!("the model's script cannot be read: {first}")
                })?;
                script.aside.append(&mut aside);
                aside.clone_from(&script.aside);
                turns = script.turns.len();
                let player = Player::new(script, Some(here.workspace.clone()), attempt.case.turns.clone());
                Plays::Script(Box::new(player))
            }
            Route::Observe | Route::Record(_) => Plays::Upstream(self.upstream(engine, attempt)?),
            Route::Replay(path) => {
                let cassette = load(path)?;
                version = cassette.header.agent.as_ref().and_then(|agent| agent.version.clone());
                Plays::Tape(Tape::new(cassette, &canon))
            }
            Route::Auto(path) => {
                let tape = Tape::new(if path.exists() { load(path)? } else { Cassette::default() }, &canon);
                Plays::TapeOrUpstream(tape, self.upstream(engine, attempt)?)
            }
        };
        let writer = PartWriter::create(&attempt.folder.join(LOG)).map_err(|error| error.to_string())?;
        let (log, file) = Log::to_file(writer, masker.clone());
        let sought = check_requests::sought(attempt, &folders.workspace);
        let sought = sought.map_err(|error| format!("the instruction file of the arm cannot be read: {error}"))?;
        let prompts = attempt.case.turns.iter().filter(|prompt| !prompt.trim().is_empty()).cloned().collect();
        let log = log.looking_for(sought.iter().map(|it| it.text.clone()).collect());
        let is_of_account: fn(&str) -> bool = errors::is_of_account;
        let log = log.of_case(CaseTexts { prompts, aside: aside.clone(), is_of_account: Some(is_of_account) });
        let (sender, exceeded) = watch::channel(None);
        let Settings { timing, enforce, .. } = &engine.gateway;
        let guard = Guard {
            model: enforce.filter(|_| route.reaches_the_service()).zip(attempt.trial.model.clone()),
            budget: Some(Budget { limits: attempt.case.limits, exceeded: sender }),
        };
        let options = Options {
            api: at.map(|at| at.api),
            canon: canon.clone(),
            aside,
            guard,
            timing: *timing,
            records: route.records().is_some(),
            log,
        };
        let Self { bound, relay } = self;
        Ok(Gateway {
            running: bound.serve(plays, options),
            route,
            canon,
            file,
            turns,
            version,
            sought,
            exceeded,
            relay,
        })
    }

    fn upstream(&self, engine: &Engine, attempt: &Attempt) -> Result<Upstream, String> {
        let upstream = engine.gateway.upstream(&engine.env).map_err(|error| error.to_string())?;
        let placeholders = attempt.manifest.gateway.iter().flat_map(|at| at.placeholders());
        Ok(upstream.with_placeholders(placeholders.collect()))
    }
}

fn load(path: &Path) -> Result<Cassette, String> {
    cassette::load(path).map_err(|error| error.to_string())
}

impl Gateway {
    /// Returns the sums over the requests so far.
    pub(super) fn totals(&self) -> Totals {
        self.running.totals()
    }

    /// Waits until the requests of an agent that has ended are logged, and returns the sums over them: lower bounds if some are
    /// not logged in time.
    pub(super) async fn settled(&self) -> Totals {
        let unlogged = self.running.settle().await;
        let mut totals = self.totals();
        totals.add_unlogged(unlogged);
        totals
    }

    /// Returns the reason if the requests show that the trial does not have its files, or has those of another arm.
    pub(super) fn wrong_arm(&self) -> Option<String> {
        // Requests that are not logged yet were not searched.
        let all_are_logged = self.running.unlogged() == 0;
        let totals = self.totals();
        let all_were_searched = all_are_logged && totals.unread.is_none();
        check_requests::wrong(&self.sought, &totals.found, totals.answers > 0 && all_were_searched)
    }

    /// Returns the reason if the requests lack a prompt of a session with a turn in which the agent showed nothing.
    pub(super) fn unsent_prompt(&self) -> Option<String> {
        // A request that is not logged yet may contain the prompt.
        let all_are_logged = self.running.unlogged() == 0;
        let totals = self.totals();
        let all_were_searched = all_are_logged && totals.unread.is_none();
        check_requests::unsent_prompt(&self.sought, &totals.found).filter(|_| all_were_searched)
    }

    /// Ends the server, and reads from its log what it means for the trial.
    ///
    /// # Errors
    /// Returns an error if the log could not be written.
    pub(super) async fn end(
        self,
        attempt: &Attempt,
        agent: Option<Agent>,
        how: &SessionEnd,
    ) -> Result<Ended, RunError> {
        let Self { running, route, canon, file, turns, version, .. } = self;
        let server::Ended { logged, left } = running.stop().await;
        let Logged { requests, kept, error, totals } = logged;
        let part = file.finish(error)?;
        let mut warnings: Vec<Warning> =
            totals.script.problems.iter().map(|it| Warning::ScriptedModel { problem: it.clone() }).collect();
        let complete = kept == requests;
        warnings.extend((!complete).then_some(Warning::ModelLogCut { asked: requests, kept }));
        let now = agent.as_ref().and_then(|agent| agent.version.clone());
        if let (Some(recorded), Some(now)) = (version, now)
            && recorded != now
        {
            warnings.push(Warning::CassetteAgent { recorded, now });
        }
        if how.enforces && attempt.trial.model.is_none() && route.reaches_the_service() {
            warnings.push(Warning::NothingToEnforce);
        }
        if let Some((requests, first)) = totals.unknown.clone() {
            warnings.push(Warning::NotRecordable { requests, first });
        }
        if let Some((requests, why)) = totals.unread.clone() {
            warnings.push(Warning::UnreadRequests { requests, why });
        }
        if let Some((requests, names)) = totals.left_out.clone() {
            warnings.push(Warning::KeyLeftOut { requests, names });
        }
        let aside = totals.failure(FailureKind::Aside);
        warnings.extend(aside.map(|(_, requests)| Warning::AsideNotRecorded { requests }));
        let error = error_of(&totals, &route, attempt)
            .or_else(|| never_asked(requests, &route, how))
            .or_else(|| never_begun(&totals, turns, how));
        if requests == 0 && error.is_none() {
            warnings.push(Warning::NoRequest);
        }
        let played = totals.answers_from(Source::Cassette);
        if played > 0 && totals.answers_from(Source::Upstream) > 0 {
            warnings.push(Warning::PlayedInPart { played, of: totals.answers });
        }
        let recorded = match route.records().filter(|_| error.is_none()) {
            // The session of an agent that was ended would be played to its unfinished end.
            Some(_) if how.ended_by_engine => {
                warnings.push(Warning::NothingRecorded { why: Unrecorded::Ended });
                None
            }
            Some(file) if complete && totals.answers > 0 => {
                let left_out = totals.not_recordable.clone();
                warnings.extend(left_out.map(|(requests, first)| Warning::RecordedInPart { requests, first }));
                recorded(file, &route, part.written(), attempt, agent, &canon)?
            }
            Some(_) if complete => {
                warnings.push(Warning::NothingRecorded { why: Unrecorded::NoAnswer });
                None
            }
            _ => None,
        };
        // An errored trial names them too: after a miss, they show what the agent did not ask.
        warnings.extend((!left.is_empty()).then_some(Warning::CassetteLeft { entries: left }));
        let missed = totals.failure(FailureKind::Miss).map(|(_, requests)| Warning::CassetteMissed { requests });
        warnings.extend(missed);
        let left = left_of_script(&totals, &route, turns);
        Ok(Ended { part, error, warnings, left, source: totals.source(), recorded })
    }
}

/// The facts about the end of a session that its gateway needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionEnd {
    /// True if the run enforces its model.
    pub(super) enforces: bool,
    /// True if the engine ended the agent.
    pub(super) ended_by_engine: bool,
    /// True if the session ended with an error, which explains why the agent made no request.
    pub(super) failed: bool,
}

/// Returns the reason why a trial is errored whose agent made no request: it used another model than the gateway's, or
/// none.
fn never_asked(requests: u64, route: &Route, how: &SessionEnd) -> Option<(ErrorCategory, String)> {
    // A recording or a script that was not played shows nothing about the agent, whatever ended it.
    let is_played = matches!(route, Route::Script(_) | Route::Replay(_));
    if requests > 0 || how.failed || (how.ended_by_engine && !is_played) {
        return None;
    }
    let why = match route {
        Route::Script(_) => "so no turn of the script was played",
        Route::Replay(_) => "so the cassette was not played",
        _ if how.enforces => "so its model is not known to be the one that the run asks for",
        _ => return None,
    };
    Some((ErrorCategory::Setup, format!("the agent made no request to the gateway, {why}")))
}

/// Returns the reason why a trial is errored, whatever its agent answered.
fn error_of(totals: &Totals, route: &Route, attempt: &Attempt) -> Option<(ErrorCategory, String)> {
    if matches!(route, Route::Script(_)) {
        return totals.script.not_played.clone().map(of_script);
    }
    let message = |kind: FailureKind| {
        totals.failure(kind).map(|(failure, count)| (failure.message.clone().unwrap_or_default(), count))
    };
    if let Some((text, count)) = message(FailureKind::Miss) {
        let more = if count > 1 { format!(" ({})", plural(count, "such request")) } else { String::new() };
        let again = again(attempt, route);
        return Some((ErrorCategory::Provider, format!("{text}{more}; {again}")));
    }
    if let Some((text, _)) = message(FailureKind::Model) {
        return Some((ErrorCategory::Provider, text));
    }
    if let Some(why) = totals.undecoded.clone() {
        return Some((ErrorCategory::Setup, format!("the gateway: {why}")));
    }
    let kind = totals.unsent_at_the_end?;
    let category = if kind == FailureKind::Key { ErrorCategory::Auth } else { ErrorCategory::Provider };
    message(kind).map(|(text, _)| (category, text))
}

/// Returns how to record a cassette again.
fn again(attempt: &Attempt, route: &Route) -> String {
    let file = route.plays().map_or_else(String::new, |file| crate::paths::shown(file).display().to_string());
    let TrialRecord { harness, model, .. } = &attempt.trial;
    if attempt.trial.arm_of().variant.is_some() {
        return format!("to record {file} again, run the experiment with --gateway record");
    }
    let model = model.as_ref().map(|model| format!(" --model {model}")).unwrap_or_default();
    let case = attempt.case.shown().display();
    format!("to record {file} again: evals run {case} --harness {harness}{model} --gateway record")
}

fn of_script(problem: String) -> (ErrorCategory, String) {
    (ErrorCategory::Setup, format!("the scripted model: {problem}"))
}

/// Returns the reason why a trial is errored whose agent never got a turn of the script, of which there are `turns`.
fn never_begun(totals: &Totals, turns: usize, how: &SessionEnd) -> Option<(ErrorCategory, String)> {
    let tally = &totals.script;
    let is_explained = how.failed || tally.played_sub_agent || turns == 0;
    let why = match (tally.strangers, tally.without_tools) {
        _ if tally.turns > 0 => return None,
        (1.., _) => {
            format!("none of {} with tools contains the case's prompt", plural(tally.strangers, "request"))
        }
        _ if is_explained => return None,
        (0, 1..) => {
            let requests = plural(tally.without_tools, "request");
            format!(
                "{requests} without tools got an answer aside; `without-tools: play` in the script plays its turns to them"
            )
        }
        (0, 0) => "no request of the agent continues the case's conversation".to_owned(),
    };
    Some(of_script(format!("no turn of the script was played, because {why}")))
}

/// Returns warnings about script turns that were not requested, and about further requests.
fn left_of_script(totals: &Totals, route: &Route, turns: usize) -> Vec<Warning> {
    if !matches!(route, Route::Script(_)) {
        return Vec::new();
    }
    let tally = &totals.script;
    let left = (tally.turns < turns && !tally.ended_by_choice)
        .then_some(Warning::ScriptLeft { played: tally.turns as u64, turns: turns as u64 });
    let more = (tally.after_the_last > 0).then_some(Warning::ScriptExceeded { requests: tally.after_the_last });
    left.into_iter().chain(more).collect()
}

/// Makes the cassette of a trial from its log; `None` if it holds nothing new. The log is read again, so that a long
/// session is not held in memory while it runs.
fn recorded(
    file: &Path,
    route: &Route,
    log: &Path,
    attempt: &Attempt,
    agent: Option<Agent>,
    canon: &Canon,
) -> Result<Option<Recorded>, RunError> {
    let of_log = |source| RunError::Io { doing: "read", path: log.to_owned(), source };
    let mut exchanges = Vec::new();
    for line in io::BufReader::new(std::fs::File::open(log).map_err(of_log)?).lines() {
        let line = line.map_err(of_log)?;
        let exchange: Exchange = serde_json::from_str(&line).map_err(|error| of_log(error.into()))?;
        exchanges.extend((exchange.source == Source::Upstream).then_some(exchange));
    }
    let api = exchanges.iter().find_map(|exchange| exchange.api);
    let new = cassette::entries(exchanges, canon);
    if new.is_empty() {
        return Ok(None);
    }
    let old = match route {
        Route::Auto(file) if file.exists() => {
            let malformed = |message| RunError::Malformed { path: file.clone(), message };
            load(file).map_err(malformed)?.entries
        }
        _ => Vec::new(),
    };
    let header = Header {
        cassette: cassette::VERSION,
        harness: Some(attempt.manifest.name.clone()),
        agent,
        api,
        recorded: Some(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ..Header::default()
    };
    let cassette = Cassette { header, entries: cassette::numbered(old.into_iter().chain(new)) };
    Ok(Some(Recorded { file: file.to_owned(), cassette }))
}

/// Returns the environment of an agent whose model is behind the gateway: the gateway's variables override those of
/// the case, and no proxy is used for it.
pub(super) fn environment(
    mut env: BTreeMap<String, String>,
    attempt: &Attempt,
    placeholders: &Placeholders,
) -> BTreeMap<String, String> {
    if attempt.route.as_ref().is_some_and(Route::reaches_the_service) {
        // The agent's other connections go on using the proxy.
        for name in ["NO_PROXY", "no_proxy"] {
            let own = env.get(name).filter(|own| !own.is_empty()).map(|own| format!("{own},"));
            env.insert(name.to_owned(), format!("{}127.0.0.1,localhost", own.unwrap_or_default()));
        }
    } else {
        env.retain(|name, _| !is_proxy(name));
    }
    let route = attempt.manifest.gateway.iter().flat_map(|route| &route.env);
    env.extend(route.map(|(name, value)| (name.clone(), placeholders.fill(value))));
    env
}

//! The warnings of a result: information for the user besides the verdict, as data for regrading and as text for
//! people.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use super::old_warnings;
use crate::text::plural;
use crate::values::Time;
use crate::word::word;

/// The reason why no cassette was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unrecorded {
    /// The service answered no request.
    NoAnswer,
    /// The engine ended the agent.
    Ended,
}

/// A warning of a trial.
///
/// In `result.json` each warning is an object `{code, …fields, text}`. Programs read `code` and the fields.
/// `text` is made from them whenever a result is written, and is not read back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "snake_case")]
#[cfg_attr(test, schemars(transform = with_text))]
pub enum Warning {
    /// The agent used the user's own home.
    UserHome,
    /// The agent loaded skills that are neither its own nor those of its trial.
    UnexpectedSkill {
        /// The names of the skills.
        names: Vec<String>,
    },
    /// The agent listed no skills, although its harness says where it lists them: which it loaded was not verified.
    SkillsNotListed,
    /// The agent listed no MCP servers, although its harness says where it lists them: which it loaded was not verified.
    ServersNotListed,
    /// The harness cannot ask for permission, so the policy had no effect.
    NoPermissions {
        /// The harness.
        harness: String,
        /// The requested policy.
        policy: String,
    },
    /// The system prompt was put before the first prompt.
    SystemPromptInPrompt,
    /// The agent reported more tokens than the gateway saw: it may have used a model beside the gateway.
    BesideGateway {
        /// The tokens that the agent reported.
        agent: u64,
        /// The tokens that the gateway saw. The figures of the result are these.
        gateway: u64,
    },
    /// Not every prompt was sent: the agent ended an earlier turn in another way than by its answer, or a limit was reached.
    PromptsNotSent {
        /// The number of prompts sent.
        sent: u64,
        /// The number of prompts of the case.
        planned: u64,
    },
    /// A secret is too short to be redacted.
    ShortSecret {
        /// The environment variable.
        name: String,
        /// The minimum number of characters of values that are redacted.
        shortest: u64,
    },
    /// A request to the scripted model could not be answered as scripted.
    ScriptedModel {
        /// The problem with the request.
        problem: String,
    },
    /// The gateway got more requests than `llm.jsonl` contains.
    ModelLogCut {
        /// The number of requests.
        asked: u64,
        /// The number of requests in `llm.jsonl`.
        kept: u64,
    },
    /// The agent made requests that its cassette does not hold. The trial is errored, and is not retried.
    CassetteMissed {
        /// The number of requests.
        requests: u64,
    },
    /// The agent did not make all requests of the cassette.
    CassetteLeft {
        /// The numbers of the entries that were not played.
        entries: Vec<u64>,
    },
    /// The cassette was recorded with another version of the agent.
    CassetteAgent {
        /// The version that was recorded.
        recorded: String,
        /// The version that ran now.
        now: String,
    },
    /// Requests that none of the gateway's APIs defines were answered with status 404, because a recording cannot
    /// contain them.
    NotRecordable {
        /// The number of requests.
        requests: u64,
        /// The method and path of the first request.
        first: String,
    },
    /// The recording has no requests outside the conversation that the agent made now, and it got errors for them.
    AsideNotRecorded {
        /// The number of requests.
        requests: u64,
    },
    /// The agent made no request to the gateway.
    NoRequest,
    /// Some answers of the model came from a cassette, and the others from the service.
    PlayedInPart {
        /// The answers from the cassette.
        played: u64,
        /// All answers.
        of: u64,
    },
    /// No cassette was written.
    NothingRecorded {
        /// The reason.
        why: Unrecorded,
    },
    /// The cassette lacks requests of the session, because no API describes their path or their stream was malformed.
    RecordedInPart {
        /// The number of requests.
        requests: u64,
        /// The method and path of the first request.
        first: String,
    },
    /// No model was asked for, so there was none to enforce.
    NothingToEnforce,
    /// The agent did not request all turns of the model's script.
    ScriptLeft {
        /// Turns that were played.
        played: u64,
        /// Turns of the script.
        turns: u64,
    },
    /// The agent made further requests after the last turn of the model's script.
    ScriptExceeded {
        /// The number of requests after the last turn.
        requests: u64,
    },
    /// The workspace contained files of the case itself, so the agent could read how it is judged, or the solution.
    CaseInWorkspace {
        /// The first files, relative to the workspace.
        files: Vec<String>,
        /// The number of files.
        count: u64,
    },
    /// The agent removed its workspace.
    WorkspaceLost,
    /// Files and folders of the workspace could not be read, and were made readable.
    OpenedUp {
        /// The number of files and folders.
        count: u64,
    },
    /// Folders of the workspace were nested too deeply and were removed.
    TooDeep {
        /// The number of folders.
        count: u64,
        /// The maximum number of levels.
        levels: u64,
        /// The maximum length of a path, in bytes.
        path_bytes: u64,
        /// The beginning of the first folder's path.
        first: String,
    },
    /// `workspace.patch` omits the content of some files.
    PatchLeftOut {
        /// The number of files.
        files: u64,
        /// Their size in bytes.
        bytes: u64,
        /// The maximum size of a file in a patch, in bytes.
        largest: u64,
        /// The maximum size of a patch, in bytes.
        most: u64,
    },
    /// Files and folders of the workspace could not be read, and count as changed.
    Unread {
        /// The number of files and folders.
        count: u64,
        /// The first of these files or folders, with the reason.
        first: String,
    },
    /// `workspace.patch` contained secrets and was redacted.
    PatchMasked,
    /// Ignored files are not part of the workspace's change.
    IgnoredFiles {
        /// Their size in bytes.
        bytes: u64,
    },
    /// The agent changed a protected file.
    ProtectedFile {
        /// The path of the file in the workspace.
        path: String,
        /// The kind of change.
        change: FileChange,
        /// True if the file was restored before grading.
        put_back: bool,
        /// True if this fails the trial (`protect-strict`).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fails: bool,
    },
    /// The agent changed further protected files, which are not listed. All of them were restored before
    /// grading.
    ProtectedFiles {
        /// The number of files.
        more: u64,
    },
    /// The agent left links that lead to hidden files. They were replaced by what they led to when the agent ended.
    LinksToHidden {
        /// The paths of the links in the workspace, or the first of them.
        links: String,
    },
    /// The workspace could not be kept.
    WorkspaceNotKept {
        /// The reason.
        error: String,
        /// True if a part of the workspace could not be removed and remains.
        partly_left: bool,
    },
    /// A part of the workspace could not be copied when the workspace was kept.
    WorkspaceKeptInPart {
        /// The reason.
        error: String,
    },
    /// Files of the kept workspace contained secrets and were redacted.
    KeptMasked {
        /// The number of files.
        files: u64,
    },
    /// Files were not kept because their names contain a secret, or because they contain a secret and are too
    /// large to be redacted.
    KeptWithoutSecrets {
        /// The number of files.
        files: u64,
        /// The maximum size of a file that is redacted, in bytes.
        largest: u64,
    },
    /// Files were not kept because the workspace is too large.
    KeptUpToLimit {
        /// The number of files.
        files: u64,
        /// Their size in bytes.
        bytes: u64,
        /// The maximum size of a kept workspace, in bytes.
        most: u64,
    },
    /// Files were not kept because they could not be read.
    KeptWithoutUnread {
        /// The number of files.
        files: u64,
    },
    /// The trial already fails without the graders that call a model.
    FailsWithoutModels,
    /// The session was interrupted before the agent had answered, so nothing can be judged.
    Interrupted,
    /// A limit was reached and ended the trial.
    LimitReached {
        /// The name of the limit in the case.
        key: String,
    },
    /// A limit was exceeded by a value that was known only at the end.
    LimitExceeded {
        /// The name of the limit in the case.
        key: String,
        /// The limit; in seconds for `time` and `idle`.
        limit: f64,
        /// The value.
        value: f64,
        /// True if the value is a lower bound.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        at_least: bool,
    },
    /// A limit may have been exceeded: its value, or a part of the value, is unknown.
    LimitUnknown {
        /// The name of the limit in the case.
        key: String,
        /// The limit; in seconds for `time` and `idle`.
        limit: f64,
        /// The known part of the value. Absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_least: Option<f64>,
        /// The reason why the value is unknown.
        gap: LimitGap,
    },
    /// The trial failed in another run and passed in this one.
    Flaky {
        /// The run in which the trial failed.
        run: String,
    },
    /// The agent's process did not exit after its answer.
    HeldOn,
    /// The agent changed files of the workspace after its answer. The figures and limits of time exclude this work.
    WorkedOn {
        /// The file that was written last.
        path: String,
        /// The time from the answer to the file, in milliseconds.
        ms: u64,
    },
    /// The agent ended or stopped the process that supervised it, so it is unknown how it ended after its answer.
    ExitUnknown,
    /// The agent exited with a non-zero code after its answer.
    ExitCode {
        /// The exit code.
        exit: i64,
    },
    /// The agent's process was ended by a signal after its answer.
    ExitSignal {
        /// The signal number.
        signal: i64,
    },
    /// The policy `llm` answered permission requests without a model.
    NoModel {
        /// The number of requests.
        requests: u64,
        /// The reason why no model answered the first request.
        why: String,
    },
    /// The stored trial could not be graded again.
    NotGradedAgain {
        /// The reason.
        why: String,
    },
    /// Graders that need the workspace could not judge.
    NoWorkspace {
        /// The reason why the workspace is missing.
        why: String,
    },
    /// The workspace was rebuilt from its source and patch, and is incomplete.
    RebuiltInPart {
        /// The missing parts.
        lost: Vec<String>,
    },
    /// The kept workspace is incomplete.
    KeptInPart {
        /// The missing parts.
        lost: Vec<String>,
    },
    /// The stored result is not the result that was judged, so the trial does not count.
    NotAsJudged {
        /// The evidence.
        why: String,
    },
    /// `results.jsonl` of the run was changed after the run. It was rebuilt from the trials, and the changed
    /// file is kept.
    ResultsChanged {
        /// The path of the changed file.
        file: String,
        /// The first changed line, from 1.
        line: u64,
        /// The evidence.
        why: String,
    },
    /// Files were in the trial's folder before the trial began. They were moved and are ignored.
    ForeignFiles {
        /// Their names, up to a maximum number.
        names: Vec<String>,
        /// The folder in the trial's folder that contains them now.
        moved_to: String,
    },
    /// A warning of an older version, which wrote text only.
    Text {
        /// The text.
        #[serde(skip_serializing, default)]
        #[cfg_attr(test, schemars(skip))]
        said: String,
    },
    /// A warning of a newer version, unchanged.
    #[serde(skip)]
    Unknown(Map<String, Value>),
}

/// The reason why it is unknown whether a limit was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitGap {
    /// The agent did not report the value.
    NotReported,
    /// The agent reported only a part of the value.
    Partial,
    /// The harness shows no tool calls.
    NoToolCalls,
    /// The stored trace has no times.
    NoTimes,
    /// The stored trace does not show when the agent's messages ended.
    TimesOfText,
}

impl LimitGap {
    fn told(self) -> &'static str {
        match self {
            LimitGap::NotReported => "the agent did not report the figure",
            LimitGap::Partial => "the agent reported a part of the figure only",
            LimitGap::NoToolCalls => "the harness shows no tool calls",
            LimitGap::NoTimes => "the trace has no times",
            LimitGap::TimesOfText => "the trace does not show when the agent's texts ended",
        }
    }
}

/// Formats the value of a limit: a duration for `time` and `idle`.
fn figure_of(key: &str, value: f64) -> String {
    let time = ["time", "idle"].contains(&key).then(|| Duration::try_from_secs_f64(value).ok()).flatten();
    time.map_or_else(|| value.to_string(), |time| Time(time).to_string())
}

/// The action of an agent on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FileChange {
    /// Created the file.
    Created,
    /// Changed the file.
    Changed,
    /// Deleted the file.
    Deleted,
}

word!(FileChange);

impl Warning {
    /// Returns true if the warning names information that cannot be determined when a stored trial is graded again.
    pub fn tells_of_a_lack(&self) -> bool {
        use Warning::{KeptInPart, NoWorkspace, NotGradedAgain, RebuiltInPart};
        matches!(self, NotGradedAgain { .. } | NoWorkspace { .. } | RebuiltInPart { .. } | KeptInPart { .. })
    }

    /// Returns true if a kept workspace differs from the workspace as the agent left it.
    pub fn tells_of_a_loss(&self) -> bool {
        use Warning::{KeptMasked, KeptUpToLimit, KeptWithoutSecrets, KeptWithoutUnread, WorkspaceKeptInPart};
        matches!(
            self,
            KeptMasked { .. }
                | KeptUpToLimit { .. }
                | KeptWithoutSecrets { .. }
                | KeptWithoutUnread { .. }
                | WorkspaceKeptInPart { .. }
                | Warning::WorkspaceNotKept { .. }
        )
    }

    /// Returns the variable of a secret that is not masked, if the warning is about one.
    pub fn unmasked(&self) -> Option<&str> {
        match self {
            Warning::ShortSecret { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Returns true if the warning fails the trial, regardless of its graders.
    pub fn fails_the_trial(&self) -> bool {
        matches!(self, Warning::ProtectedFile { fails: true, .. })
    }

    /// Returns true if the warning comes from grading, so that the next grading creates it again or omits it.
    pub fn is_of_grading(&self) -> bool {
        use Warning::{
            FailsWithoutModels, Flaky, Interrupted, LimitExceeded, LimitReached, LimitUnknown, ProtectedFile,
            ProtectedFiles,
        };
        match self {
            ProtectedFile { .. }
            | ProtectedFiles { .. }
            | FailsWithoutModels
            | Interrupted
            | LimitReached { .. }
            | LimitExceeded { .. }
            | LimitUnknown { .. }
            | Flaky { .. } => true,
            other => other.tells_of_a_lack(),
        }
    }

    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(old_warnings::read(text)),
            Value::Object(map) => {
                let Some(Value::String(code)) = map.get("code") else {
                    return Err("a warning has no `code`".to_owned());
                };
                if code == TEXT {
                    let said = map.get("text").and_then(Value::as_str).unwrap_or_default();
                    return Ok(Warning::Text { said: said.to_owned() });
                }
                Ok(serde_json::from_value(Value::Object(map.clone())).unwrap_or(Warning::Unknown(map)))
            }
            other => Err(format!("a warning is neither an object nor a text: {other}")),
        }
    }

    fn write(&self) -> Value {
        if let Warning::Unknown(map) = self {
            return Value::Object(map.clone());
        }
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(map) = &mut value {
            map.insert("text".to_owned(), Value::String(self.to_string()));
        }
        value
    }
}

/// The code of a warning that consists of text only.
const TEXT: &str = "text";

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::UserHome => out.write_str("the agent had the user's own home, as its manifest requests"),
            Warning::SkillsNotListed => {
                out.write_str("the agent listed no skills, so which it loaded was not verified")
            }
            Warning::ServersNotListed => {
                out.write_str("the agent listed no MCP servers, so which it loaded was not verified")
            }
            Warning::UnexpectedSkill { names } => {
                write!(out, "the agent loaded skills that its trial should not have: {}", names.join(", "))
            }
            Warning::NoPermissions { harness, policy } => write!(
                out,
                "harness `{harness}` does not ask for permission; its own default counts instead of `{policy}`"
            ),
            Warning::SystemPromptInPrompt => out.write_str("the system prompt was put before the first prompt"),
            Warning::BesideGateway { agent, gateway } => write!(
                out,
                "the agent reported {agent} tokens, and the gateway saw {gateway}; it may have used a model beside the \
                 gateway, whose tokens and cost the figures leave out"
            ),
            Warning::PromptsNotSent { sent, planned } => {
                write!(
                    out,
                    "{sent} of {planned} prompts were sent, because the agent did not end the last of them by its answer, a \
                     limit was reached, the workspace was gone, or the recording ends there"
                )
            }
            Warning::ShortSecret { name, shortest } => {
                write!(out, "the value of {name} is under {shortest} characters and is not masked")
            }
            Warning::ScriptedModel { problem } => write!(out, "the scripted model: {problem}"),
            Warning::ModelLogCut { asked, kept } => {
                write!(out, "the gateway got {asked} requests; `llm.jsonl` holds {kept} of them")
            }
            Warning::CassetteMissed { requests } => {
                write!(out, "the agent made {} that the cassette does not hold", plural(*requests, "request"))
            }
            Warning::CassetteLeft { entries } => {
                let numbers: Vec<String> = entries.iter().map(u64::to_string).collect();
                let noun = if entries.len() == 1 { "entry" } else { "entries" };
                write!(out, "the agent did not make all requests of the cassette: {noun} {} left", numbers.join(", "))
            }
            Warning::CassetteAgent { recorded, now } => {
                write!(out, "the cassette was recorded with version {recorded} of the agent, and version {now} ran now")
            }
            Warning::NotRecordable { requests, first } => write!(
                out,
                "{} got status 404, because a cassette has no such paths; the first: {first}",
                plural(*requests, "request")
            ),
            Warning::AsideNotRecorded { requests } => write!(
                out,
                "the cassette lacks {} outside the conversation (manifest key `gateway.aside`), answered with an error",
                plural(*requests, "request")
            ),
            Warning::NoRequest => out.write_str("the agent made no request to the gateway"),
            Warning::PlayedInPart { played, of } => {
                write!(out, "{played} of the {of} answers of the model were played from a cassette")
            }
            Warning::NothingRecorded { why } => write!(
                out,
                "no cassette was written, because {}",
                match why {
                    Unrecorded::NoAnswer => "the service answered no request",
                    Unrecorded::Ended => "the agent was ended before its session was complete",
                }
            ),
            Warning::RecordedInPart { requests, first } => write!(
                out,
                "the cassette lacks {} that cannot be recorded, so a replay may miss; the first: {first}",
                plural(*requests, "request")
            ),
            Warning::NothingToEnforce => out.write_str("--enforce-model had no effect, because no model was asked for"),
            Warning::ScriptLeft { played, turns } => {
                write!(out, "the agent asked for {played} of the {turns} turns of the model's script")
            }
            Warning::ScriptExceeded { requests } => {
                let times = if *requests == 1 { "once".to_owned() } else { format!("{requests} times") };
                write!(out, "after the last turn of the model's script the agent asked {times} more")
            }
            Warning::Flaky { run } => write!(out, "flaky: it failed in run {run} and passed now"),
            Warning::WorkedOn { path, ms } => write!(
                out,
                "the agent wrote `{path}` {} after its answer, which counts for the result, but not for its time",
                Time(Duration::from_millis(*ms))
            ),
            Warning::HeldOn => out.write_str("the agent did not exit after its answer and was ended"),
            Warning::ExitUnknown => out.write_str(
                "how the agent ended after its answer is unknown, because its supervisor was ended or stopped",
            ),
            Warning::ExitCode { exit } => write!(out, "the agent exited {exit} after its answer"),
            Warning::ExitSignal { signal } => write!(out, "the agent was ended by signal {signal} after its answer"),
            Warning::NoModel { requests, why } => {
                let requests =
                    if *requests == 1 { "1 request was".to_owned() } else { format!("{requests} requests were") };
                write!(out, "{requests} answered without a model by the policy `llm`: {why}")
            }
            Warning::Interrupted => {
                out.write_str("the session was interrupted before the agent had answered, so it is not judged")
            }
            Warning::FailsWithoutModels => {
                out.write_str("it fails without the graders that ask a model, and that stands")
            }
            Warning::LimitReached { key } => write!(out, "limit `{key}` was reached and ended the trial"),
            Warning::LimitExceeded { key, limit, value, at_least } => {
                let (limit, value) = (figure_of(key, *limit), figure_of(key, *value));
                let least = if *at_least { ">= " } else { "" };
                write!(out, "limit `{key}` is {limit} and was exceeded: {least}{value}")
            }
            Warning::LimitUnknown { key, limit, at_least, gap } => {
                let known = at_least.map_or_else(String::new, |value| format!(" (>= {})", figure_of(key, value)));
                let limit = figure_of(key, *limit);
                write!(out, "limit `{key}` is {limit} and could not be checked{known}: {}", gap.told())
            }
            Warning::NotGradedAgain { why } => write!(out, "it could not be graded again: {why}"),
            Warning::NoWorkspace { why } => write!(out, "graders that need the workspace could not judge: {why}"),
            Warning::RebuiltInPart { lost } => {
                write!(out, "the workspace was made again and is not whole: {}", lost.join("; "))
            }
            Warning::KeptInPart { lost } => write!(out, "the workspace was kept and is not whole: {}", lost.join("; ")),
            Warning::ResultsChanged { file, line, why } => {
                write!(
                    out,
                    "{file} was changed after the run, line {line}: {why}; the results come from the trials' folders"
                )
            }
            Warning::NotAsJudged { why } => write!(out, "the stored result is not the one that was judged: {why}"),
            Warning::ForeignFiles { names, moved_to } => write!(
                out,
                "files lay in the trial's folder before it began and were moved to {moved_to}: {}",
                names.join(", ")
            ),
            Warning::Text { said } => out.write_str(said),
            Warning::Unknown(map) => match (map.get("text"), map.get("code")) {
                (Some(Value::String(text)), _) => out.write_str(text),
                (_, code) => write!(out, "{}", code.and_then(Value::as_str).unwrap_or("a warning without a text")),
            },
            of_workspace => of_workspace.fmt_of_workspace(out),
        }
    }
}

impl Warning {
    /// Writes the text of the warnings about the workspace.
    fn fmt_of_workspace(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::CaseInWorkspace { files, count } => {
                let others = if *count > files.len() as u64 { " and others" } else { "" };
                write!(
                    out,
                    "the workspace contained files of the case itself ({}{others}), so the agent could read how it is \
                     judged; use a commit without them, or keep the cases outside of this repository",
                    files.join(", ")
                )
            }
            Warning::WorkspaceLost => {
                out.write_str("the agent removed its workspace; an empty one was put in its place")
            }
            Warning::OpenedUp { count } => {
                write!(out, "{count} files and folders of the workspace could not be read; they were made readable")
            }
            Warning::TooDeep { count, levels, path_bytes, first } => write!(
                out,
                "{count} folders lay below {levels} levels, or had paths of over {path_bytes} bytes, and were removed \
                 with what was in them, the first in {first}…"
            ),
            Warning::PatchLeftOut { files, bytes, largest, most } => write!(
                out,
                "workspace.patch leaves out the content of {files} changed files, {bytes} bytes: it holds files up to {} \
                 MiB, and {} MiB in all",
                largest >> 20,
                most >> 20
            ),
            Warning::Unread { count, first } => {
                write!(out, "{count} files and folders could not be read and count as changed, the first: {first}")
            }
            Warning::PatchMasked => out.write_str("workspace.patch held secrets and was masked"),
            Warning::IgnoredFiles { bytes: 0 } => {
                out.write_str("ignored files are not part of the workspace's change; 0 bytes of them are left")
            }
            Warning::IgnoredFiles { bytes } => {
                write!(out, "{bytes} bytes of ignored files are not part of the workspace's change")
            }
            Warning::ProtectedFile { path, change, put_back, fails: _ } => {
                let put_back = match (put_back, change) {
                    (true, FileChange::Created) => "; it was removed before grading",
                    (true, _) => "; it was put back before grading",
                    (false, _) => "",
                };
                write!(out, "the agent {} the protected file {path}{put_back}", change.word())
            }
            Warning::ProtectedFiles { more } => {
                write!(out, "{more} more protected files were put back before grading")
            }
            Warning::LinksToHidden { links } => write!(
                out,
                "the agent left links to hidden files: {links}; for grading, each was replaced by what it led to before"
            ),
            Warning::WorkspaceNotKept { error, partly_left } => {
                let left = if *partly_left { ", and what is there of it could not be removed" } else { "" };
                write!(out, "the workspace could not be kept: {error}{left}")
            }
            Warning::WorkspaceKeptInPart { error } => write!(out, "the workspace could not be kept whole: {error}"),
            Warning::KeptMasked { files } => {
                write!(out, "{files} files of the kept workspace held secrets and were masked")
            }
            Warning::KeptWithoutSecrets { files, largest } => write!(
                out,
                "{files} files of the workspace were not kept: a secret is in their name, or they hold one and are over \
                 {} MiB",
                largest >> 20
            ),
            Warning::KeptUpToLimit { files, bytes, most } => write!(
                out,
                "{files} files of the workspace were not kept, {bytes} bytes: it is kept up to {} GiB",
                most >> 30
            ),
            Warning::KeptWithoutUnread { files } => {
                write!(out, "{files} files of the workspace were not kept: they could not be read")
            }
            _ => Ok(()),
        }
    }
}

/// Adds the key `text`, which every warning has when it is written, to the schema.
#[cfg(test)]
fn with_text(schema: &mut schemars::Schema) {
    for variant in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::Object(properties)) = variant.get_mut("properties") {
            let text = serde_json::json!({"type": "string", "description": "the warning for people"});
            properties.insert("text".to_owned(), text);
        }
        if let Some(Value::Array(required)) = variant.get_mut("required") {
            required.push("text".into());
        }
    }
}

/// Serializes the warnings of a result. For `#[serde(with)]`.
pub mod list {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;

    use super::Warning;

    /// Writes each warning with its text.
    ///
    /// # Errors
    /// Returns an error if the serializer fails.
    pub fn serialize<S: Serializer>(warnings: &[Warning], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(warnings.iter().map(Warning::write))
    }

    /// Reads warnings of any version.
    ///
    /// # Errors
    /// Returns an error if an entry is neither an object with a `code` nor a text.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Warning>, D::Error> {
        let values = Vec::<Value>::deserialize(deserializer)?;
        values.into_iter().map(|value| Warning::read(value).map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Warning {
        Warning::read(value).unwrap()
    }

    #[test]
    fn the_text_is_made_from_the_fields_and_not_read_back() {
        let told = json!({"code": "ignored_files", "bytes": 7, "text": "9 bytes of something else"});
        assert_eq!(read(told), Warning::IgnoredFiles { bytes: 7 });
        let written = Warning::IgnoredFiles { bytes: 7 }.write();
        let text = "7 bytes of ignored files are not part of the workspace's change";
        assert_eq!(written, json!({"code": "ignored_files", "bytes": 7, "text": text}));
    }

    #[test]
    fn a_warning_of_a_newer_version_survives() {
        for newer in [
            json!({"code": "of_tomorrow", "x": [1], "text": "something new"}),
            json!({"code": "protected_file", "path": "a", "change": "renamed", "put_back": true, "text": "something new"}),
        ] {
            let warning = read(newer.clone());
            assert_eq!((warning.write(), warning.to_string()), (newer, "something new".to_owned()));
        }
        assert_eq!(read(json!({"code": "of_tomorrow"})).to_string(), "of_tomorrow");
        assert!(Warning::read(json!({"text": "x"})).is_err() && Warning::read(json!(1)).is_err());
    }

    #[test]
    fn what_an_older_version_wrote_stays_text() {
        let old = read(json!("the agent exited 3 after its answer"));
        assert_eq!(old.write(), json!({"code": "text", "text": "the agent exited 3 after its answer"}));
        assert_eq!(read(old.write()), old);
    }
}

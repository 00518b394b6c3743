//! The warnings of a result: information for the user besides the verdict.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::word::word;

pub mod list;
mod text;

/// The entry of [`Warning::CaseInWorkspace`] for the texts that a variant adds to the prompts.
pub const PROMPT_OF_VARIANT: &str = "prompt of the variant";

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
        /// The name of the harness.
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
    /// Not every prompt was sent: the agent ended an earlier turn in another way than by its answer, a limit was reached, or the
    /// case had fewer prompts when the agent ran than now.
    PromptsNotSent {
        /// The number of prompts sent.
        sent: u64,
        /// The number of prompts of the case.
        planned: u64,
    },
    /// A stored trial was graded by a case that names other inputs than its agent had: another prompt, workspace, environment,
    /// policy or limits.
    OtherInputs,
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
    /// The gateway could not read requests that it sent to the service.
    UnreadRequests {
        /// The number of requests.
        requests: u64,
        /// The reason for the first request.
        why: String,
    },
    /// The gateway left keys of another service out of requests.
    KeyLeftOut {
        /// The number of requests.
        requests: u64,
        /// The names of the headers, and of the parts of the query, that the first request lost.
        names: String,
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
        /// The first files, relative to the workspace, or below `~/` if they were laid into the home; `prompt of the variant` for
        /// the texts that a variant adds to the prompts.
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
    /// The agent changed further protected files, which are not listed. They were restored before grading, unless a stored
    /// trial was graded again without a workspace.
    ProtectedFiles {
        /// The number of files.
        more: u64,
    },
    /// Globs of `workspace.protect` begin with a folder that neither the workspace nor the hidden files have, so they
    /// protect no file that was there.
    ProtectMatchedNothing {
        /// The globs without a match.
        globs: Vec<String>,
    },
    /// The agent left links that lead to hidden files. They were replaced by what they led to when the agent ended.
    LinksToHidden {
        /// The paths of the links in the workspace, or the first of them.
        links: String,
    },
    /// Hidden files changed while a grader ran commands. They were put back before the next grader that runs commands.
    HiddenPutBack {
        /// The paths of the files in the workspace, or the first of them.
        files: String,
    },
    /// Protected files changed while a grader ran commands. They were put back before the next grader that runs commands.
    ProtectedPutBack {
        /// The paths of the files in the workspace, or the first of them.
        files: String,
    },
    /// Another program, such as the agent or code of the agent that a grader ran, changed files of the engine during the trial.
    EvidenceChanged {
        /// The files, or the first of them.
        files: String,
        /// True if grades depend on the files. All grades of the trial are ungraded then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ungraded: bool,
    },
    /// An agent left or changed files in the folders above the workspace, where test runners and build tools look for
    /// settings.
    FilesAboveWorkspace {
        /// The first paths, relative to the workspace; absolute if they are outside the engine's folders.
        paths: Vec<String>,
        /// The number of paths.
        count: u64,
        /// True if all of them were removed before grading. Otherwise, they may have decided it.
        put_back: bool,
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
        /// The value that exceeded the limit, in the same unit.
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
    /// The engine itself was stopped during the session. The times of the trial include this time, in which the agent may have
    /// worked.
    EngineStopped {
        /// The time for which the engine was stopped, in milliseconds.
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
    /// A limit of time ended the agent while it repeated a request that its model's service had not answered.
    RepeatedRequest {
        /// The agent's report of the last attempt.
        why: String,
    },
    /// The policy `llm` answered permission requests without a model.
    NoModel {
        /// The number of requests.
        requests: u64,
        /// The reason why no model answered the first request.
        why: String,
        /// The event (`seq`) of the first request that got the policy's default answer. A trial with it is ungraded. Absent if
        /// each request was too long to be shown, and in results of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<u64>,
    },
    /// The stored trial could not be graded again.
    NotGradedAgain {
        /// The reason.
        why: String,
    },
    /// Graders that need the workspace are ungraded.
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
    /// The trial's `result.json` was removed or replaced after the trial was judged. The result comes from another copy, which
    /// the journal confirms.
    ResultFromCopy,
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
    /// Files that the engine had not written were in the trial's folder, before the trial or at its end. They were moved and are
    /// ignored.
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

/// The property of a warning by which grading and reports treat it in its own way.
enum Property<'a> {
    /// The warning comes from grading, so that the next grading creates it again or omits it.
    OfGrading {
        /// True if the warning fails the trial, regardless of its graders.
        fails: bool,
    },
    /// The warning names information that cannot be determined when a stored trial is graded again.
    Lack,
    /// A kept workspace differs from the workspace as the agent left it.
    Loss,
    /// The variable of a secret that is not masked.
    Unmasked(&'a str),
    /// The paths above the workspace that may have decided the grading.
    SettingsAbove(&'a [String]),
    /// The warning only informs.
    Plain,
}

impl Warning {
    fn property(&self) -> Property<'_> {
        match self {
            Warning::ProtectedFile { fails, .. } => Property::OfGrading { fails: *fails },
            Warning::ProtectedFiles { .. }
            | Warning::ProtectedPutBack { .. }
            | Warning::FailsWithoutModels
            | Warning::HiddenPutBack { .. }
            | Warning::Interrupted
            | Warning::LimitReached { .. }
            | Warning::LimitExceeded { .. }
            | Warning::LimitUnknown { .. }
            | Warning::PromptsNotSent { .. }
            | Warning::OtherInputs
            | Warning::NoModel { .. }
            | Warning::Flaky { .. } => Property::OfGrading { fails: false },
            Warning::NotGradedAgain { .. }
            | Warning::NoWorkspace { .. }
            | Warning::RebuiltInPart { .. }
            | Warning::KeptInPart { .. } => Property::Lack,
            Warning::KeptMasked { .. }
            | Warning::KeptUpToLimit { .. }
            | Warning::KeptWithoutSecrets { .. }
            | Warning::KeptWithoutUnread { .. }
            | Warning::WorkspaceKeptInPart { .. }
            | Warning::WorkspaceNotKept { .. } => Property::Loss,
            Warning::ShortSecret { name, .. } => Property::Unmasked(name),
            Warning::FilesAboveWorkspace { paths, put_back: false, .. } => Property::SettingsAbove(paths),
            Warning::FilesAboveWorkspace { put_back: true, .. }
            | Warning::UserHome
            | Warning::UnexpectedSkill { .. }
            | Warning::SkillsNotListed
            | Warning::ServersNotListed
            | Warning::NoPermissions { .. }
            | Warning::SystemPromptInPrompt
            | Warning::BesideGateway { .. }
            | Warning::ScriptedModel { .. }
            | Warning::ModelLogCut { .. }
            | Warning::CassetteMissed { .. }
            | Warning::CassetteLeft { .. }
            | Warning::CassetteAgent { .. }
            | Warning::NotRecordable { .. }
            | Warning::AsideNotRecorded { .. }
            | Warning::NoRequest
            | Warning::PlayedInPart { .. }
            | Warning::NothingRecorded { .. }
            | Warning::RecordedInPart { .. }
            | Warning::UnreadRequests { .. }
            | Warning::KeyLeftOut { .. }
            | Warning::NothingToEnforce
            | Warning::ScriptLeft { .. }
            | Warning::ScriptExceeded { .. }
            | Warning::CaseInWorkspace { .. }
            | Warning::WorkspaceLost
            | Warning::OpenedUp { .. }
            | Warning::TooDeep { .. }
            | Warning::PatchLeftOut { .. }
            | Warning::Unread { .. }
            | Warning::PatchMasked
            | Warning::IgnoredFiles { .. }
            | Warning::ProtectMatchedNothing { .. }
            | Warning::LinksToHidden { .. }
            | Warning::EvidenceChanged { .. }
            | Warning::HeldOn
            | Warning::WorkedOn { .. }
            | Warning::EngineStopped { .. }
            | Warning::ExitUnknown
            | Warning::ExitCode { .. }
            | Warning::ExitSignal { .. }
            | Warning::RepeatedRequest { .. }
            | Warning::NotAsJudged { .. }
            | Warning::ResultFromCopy
            | Warning::ResultsChanged { .. }
            | Warning::ForeignFiles { .. }
            | Warning::Text { .. }
            | Warning::Unknown(_) => Property::Plain,
        }
    }

    /// Returns true if the warning names information that cannot be determined when a stored trial is graded again.
    pub fn tells_of_a_lack(&self) -> bool {
        matches!(self.property(), Property::Lack)
    }

    /// Returns true if a kept workspace differs from the workspace as the agent left it.
    pub fn tells_of_a_loss(&self) -> bool {
        matches!(self.property(), Property::Loss)
    }

    /// Returns the variable of a secret that is not masked, if the warning is about one.
    pub fn unmasked(&self) -> Option<&str> {
        if let Property::Unmasked(name) = self.property() { Some(name) } else { None }
    }

    /// Returns the paths above the workspace that may have decided the grading, if the warning is about them.
    pub fn settings_above(&self) -> &[String] {
        if let Property::SettingsAbove(paths) = self.property() { paths } else { &[] }
    }

    /// Returns true if the warning fails the trial, regardless of its graders.
    pub fn fails_the_trial(&self) -> bool {
        matches!(self.property(), Property::OfGrading { fails: true })
    }

    /// Returns true if the trial is ungraded because of the warning, regardless of its graders.
    pub fn withholds_the_verdict(&self) -> bool {
        matches!(self, Warning::NoModel { event: Some(_), .. })
    }

    /// Returns true if the warning comes from grading, so that the next grading creates it again or omits it.
    pub fn is_of_grading(&self) -> bool {
        matches!(self.property(), Property::OfGrading { .. } | Property::Lack)
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

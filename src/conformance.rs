//! Conformance of a harness: what its real agent was seen doing, item by item, with the lines that show it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::harness::Tier;
use crate::harness::login::Login;

pub mod carry_out;
pub mod judge;
pub mod observed;
pub mod probes;

/// What is looked for, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// Its program starts and says something.
    Starts,
    /// It tells its version.
    Version,
    /// It answers the first request of its protocol.
    Handshake,
    /// It opens a session.
    Sessions,
    /// A model that does not exist is refused or noticed, and one that was asked for is the one that answers.
    ModelChoice,
    /// A prompt is answered.
    Prompt,
    /// Its answer comes in several pieces.
    Streaming,
    /// It shows its calls.
    ToolCalls,
    /// Each call shows its input.
    ToolInput,
    /// Each call shows its result.
    ToolResults,
    /// It asks for permission, and does what was allowed.
    PermissionApprove,
    /// It asks for permission, and leaves what was rejected.
    PermissionReject,
    /// It ends its turn when it is told to.
    Cancel,
    /// It tells what it used.
    Usage,
    /// It ends by itself when nobody talks to it any more.
    CleanExit,
    /// Nothing that it started outlives it.
    NoOrphans,
}

impl Item {
    /// Every item, in order.
    pub const ALL: [Item; 16] = [
        Item::Starts,
        Item::Version,
        Item::Handshake,
        Item::Sessions,
        Item::ModelChoice,
        Item::Prompt,
        Item::Streaming,
        Item::ToolCalls,
        Item::ToolInput,
        Item::ToolResults,
        Item::PermissionApprove,
        Item::PermissionReject,
        Item::Cancel,
        Item::Usage,
        Item::CleanExit,
        Item::NoOrphans,
    ];

    /// The item's word, as it stands in reports.
    pub fn word(self) -> &'static str {
        match self {
            Item::Starts => "starts",
            Item::Version => "version",
            Item::Handshake => "handshake",
            Item::Sessions => "sessions",
            Item::ModelChoice => "model-choice",
            Item::Prompt => "prompt",
            Item::Streaming => "streaming",
            Item::ToolCalls => "tool-calls",
            Item::ToolInput => "tool-input",
            Item::ToolResults => "tool-results",
            Item::PermissionApprove => "permission-approve",
            Item::PermissionReject => "permission-reject",
            Item::Cancel => "cancel",
            Item::Usage => "usage",
            Item::CleanExit => "clean-exit",
            Item::NoOrphans => "no-orphans",
        }
    }
}

/// What came of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was seen.
    Seen,
    /// It was looked for and did not show, which may be how the agent is.
    NotSeen,
    /// Its protocol or its manifest has no such thing.
    NotApplicable,
    /// It was not looked for, or what it needs was not there.
    NotChecked,
    /// The agent did what it must not do.
    Failed,
}

impl Outcome {
    /// The outcome in words.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Seen => "seen",
            Outcome::NotSeen => "not seen",
            Outcome::NotApplicable => "not applicable",
            Outcome::NotChecked => "not checked",
            Outcome::Failed => "failed",
        }
    }
}

/// A line that shows something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The file, relative to the check's folder.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

/// What came of one item, and what shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The item.
    pub item: Item,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen, in words.
    pub text: String,
    /// The lines that show it.
    pub evidence: Vec<Place>,
}

/// An oddity: a notice of the Trace, a warning of the trial, or a model request that could not be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Oddity {
    /// The word for its kind.
    pub code: String,
    /// How often it was met.
    pub count: u64,
    /// The first one, in words.
    pub text: String,
    /// Where the first one was met, where that is a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// Who stood in for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelSource {
    /// A scripted model on loopback, which the agent was pointed at.
    Scripted,
    /// The agent's own script: it has no model.
    Own,
    /// The model that the agent is set up for, which may cost money.
    Live,
    /// Nobody: nothing that needs a model was looked for.
    None,
}

impl ModelSource {
    /// The source in words.
    pub fn word(self) -> &'static str {
        match self {
            ModelSource::Scripted => "a scripted model",
            ModelSource::Own => "the agent's own script",
            ModelSource::Live => "the agent's own model",
            ModelSource::None => "no model",
        }
    }
}

/// The report on one harness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Its name.
    pub harness: String,
    /// Its id in the protocol's own registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_id: Option<String>,
    /// The protocol it speaks.
    pub adapter: String,
    /// Where its manifest comes from.
    pub origin: String,
    /// When it was checked, RFC 3339 in UTC.
    pub checked: String,
    /// Who stood in for the model.
    pub model: ModelSource,
    /// The folder that holds the evidence; absent where nothing was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The version that it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The last version that its manifest says was seen at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// What it needs to log in, and what of it is there; absent if its manifest says nothing of a login.
    #[serde(default, skip_serializing_if = "Login::is_empty")]
    pub login: Login,
    /// What came of each item, in order.
    pub items: Vec<Finding>,
    /// The tier that follows from what was seen; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The tier that its manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_tier: Option<Tier>,
    /// Everything odd that was met.
    pub oddities: Vec<Oddity>,
}

/// What `evals harness check` tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// One report for each harness.
    pub checks: Vec<Report>,
}

impl Report {
    /// What came of an item.
    pub fn outcome(&self, item: Item) -> Option<Outcome> {
        self.items.iter().find(|finding| finding.item == item).map(|finding| finding.outcome)
    }
}

/// The exit code: 1 where anything failed, 3 where anything was not seen or not looked for, else 0.
pub fn exit_code(reports: &[Report]) -> u8 {
    let any = |outcomes: &[Outcome]| {
        reports.iter().flat_map(|report| &report.items).any(|finding| outcomes.contains(&finding.outcome))
    };
    if any(&[Outcome::Failed]) {
        1
    } else if any(&[Outcome::NotSeen, Outcome::NotChecked]) || reports.is_empty() {
        3
    } else {
        0
    }
}

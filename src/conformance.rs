//! The conformance of a harness: the observed behaviour of its real agent, item by item, with the lines that show it.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::harness::Tier;
use crate::harness::login::Login;
use crate::word::word;

pub mod carry_out;
pub mod evaluate;
pub mod observed;
pub mod probes;

/// An item of the check, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Item {
    /// The program starts and produces output.
    Starts,
    /// The agent reports its version.
    Version,
    /// The agent answers the first request of its protocol.
    Handshake,
    /// The agent opens a session.
    Sessions,
    /// The agent refuses or reports a model that does not exist, and answers with the requested model.
    ModelChoice,
    /// A prompt is answered.
    Prompt,
    /// The answer is streamed in several pieces.
    Streaming,
    /// The agent shows its tool calls.
    ToolCalls,
    /// Each call shows its input.
    ToolInput,
    /// Each call shows its result.
    ToolResults,
    /// The agent asks for permission, and makes the call if it is allowed.
    PermissionApprove,
    /// The agent asks for permission, and does not make the call if it is rejected.
    PermissionReject,
    /// The agent ends its turn when asked to cancel.
    Cancel,
    /// The agent reports its usage.
    Usage,
    /// The agent exits without intervention when its input is closed.
    CleanExit,
    /// No process that the agent started outlives the agent.
    NoOrphans,
}

word!(Item);

impl Item {
    /// Every item, in order.
    pub const ALL: &'static [Item] = Item::VARIANTS;
}

/// The outcome of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The agent showed the behaviour.
    Seen,
    /// Checked, but not observed, which may be normal for the agent.
    NotSeen,
    /// Not supported by the protocol or the manifest.
    NotApplicable,
    /// Not checked, or a requirement of the check was missing.
    NotChecked,
    /// The agent showed behaviour that is not permitted.
    Failed,
}

impl Outcome {
    /// Returns the outcome in words.
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

/// A line of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EvidenceLine {
    /// The file, relative to the check's folder.
    pub file: String,
    /// The number of the line, from 1.
    pub line: u64,
}

/// The finding about one item, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// The behaviour that was checked.
    pub item: Item,
    /// The outcome.
    pub outcome: Outcome,
    /// The observation, in words.
    pub text: String,
    /// The lines that show the finding.
    pub evidence: Vec<EvidenceLine>,
}

/// An anomaly: a notice of the trace, a warning of the trial, or a model request that could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Oddity {
    /// The code of the notice or warning, or the kind of failure of the request.
    pub code: String,
    /// The number of occurrences.
    pub count: u64,
    /// The first occurrence, in words.
    pub text: String,
    /// The place of the first occurrence, if it is a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<EvidenceLine>,
}

/// The source of the model's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ModelSource {
    /// A scripted model on loopback.
    Scripted,
    /// The agent plays a script and has no model.
    Own,
    /// The agent's configured model, which may cost money.
    Live,
    /// No model: items that need a model were not checked.
    None,
}

impl ModelSource {
    /// Returns the source in words.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// The harness's name.
    pub harness: String,
    /// The harness's id in the protocol's own registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_id: Option<String>,
    /// The protocol, as `adapter` of the manifest names it.
    pub adapter: String,
    /// The origin of the manifest: `built in`, or the path of its file.
    pub origin: String,
    /// The time of the check, in RFC 3339 and UTC.
    pub checked: String,
    /// The source of the model's answers.
    pub model: ModelSource,
    /// The folder with the evidence. Absent if nothing was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The version that the agent reported, or else the line that its `version` command printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The last verified version in the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// The agent's login methods and the availability of each. Absent if the manifest has no login entries.
    #[serde(default, skip_serializing_if = "Login::is_empty")]
    pub login: Login,
    /// The finding about each item, in order.
    pub items: Vec<Finding>,
    /// The tier that follows from the observations. Absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The tier that the manifest claims (`tier`). Absent if it claims none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_tier: Option<Tier>,
    /// All anomalies.
    pub oddities: Vec<Oddity>,
}

/// The output of `evals harness check`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checks {
    /// The report of each harness.
    pub checks: Vec<Report>,
}

impl Report {
    /// Returns the outcome of an item, or `None` if the report does not list the item.
    pub fn outcome(&self, item: Item) -> Option<Outcome> {
        self.items.iter().find(|finding| finding.item == item).map(|finding| finding.outcome)
    }
}

/// Returns the exit code: 1 if an item failed, 3 if an item was not observed or not checked, else 0.
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

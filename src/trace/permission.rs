//! Permission requests of the agent, and their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::{Location, RequestSubject, ToolKind};
use crate::word::word;

/// A permission request of the agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionRequest {
    /// The call that needs permission.
    pub call: String,
    /// Id of the request, unique in the trace.
    pub request: String,
    /// The answers that the agent offers. Empty if it offers none.
    pub options: Vec<PermissionOption>,
    /// The call's details in the request, if they differ from the announced call. A different input is in the
    /// answer's `updated_input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedCall>,
}

/// The call's details in a permission request that differ from the announced call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AskedCall {
    /// The kind that the request names. Absent unless it differs from the announced one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The tool that the request names. Absent unless it differs from the announced one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments in the request. Absent unless they differ from the announced ones, even if only in their wording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The files that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Location>>,
    /// The subject of the request when the agent asked. Absent unless the request and its call, as the trace has them, show less
    /// of an action: the agent described the call otherwise, before the request or after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<RequestSubject>,
}

impl AskedCall {
    /// Returns true if nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A possible answer to a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionOption {
    /// The agent's id of the option.
    pub option: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or the agent's own word.
    pub kind: String,
    /// The text that the agent shows to a person for this option.
    #[serde(default)]
    pub label: String,
}

/// The outcome of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PermissionOutcome {
    /// The call is allowed.
    Allowed,
    /// The call is rejected.
    Rejected,
    /// There was no decision: the turn or the session ended, or no option was suitable.
    Cancelled,
}

word!(PermissionOutcome);

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionResponse {
    /// The call that needs permission.
    pub call: String,
    /// The id of the request that was answered.
    pub request: String,
    /// The answer that the agent got.
    pub outcome: PermissionOutcome,
    /// `rejected`, if the policy rejected the request and no option of the agent could say so: the request was answered
    /// `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<PermissionOutcome>,
    /// The agent's id of the chosen option.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The interaction policy that decided, or `engine` if the engine itself cancelled the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The rule of the policy that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The policy's reason for its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The requested or allowed input, if it differs from the announced one: the request contained another
    /// input, or the policy replaced it. Matchers see this input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
}

impl PermissionResponse {
    /// Returns the decision of the policy: the outcome, unless the agent offered no option for the decision.
    pub fn decision(&self) -> PermissionOutcome {
        self.decided.unwrap_or(self.outcome)
    }
}

//! Interaction Policies: how the agent's permission requests are answered, as a case or `--interaction` says it.

use std::path::Path;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::ToolKind;
use crate::values::{NameGlob, PathGlob, Pattern};

mod adviser;
mod choice;
mod engine;
mod form;
mod named;
mod person;
mod policy;

pub use adviser::{Advice, Adviser, Llm};
pub use choice::{Chosen, choose};
pub use engine::{Asked, Counters, Decision, decide, decide_by_rule};
pub use form::{Field, Form};
pub use named::{NamedPolicy, PolicyFolder};
pub use person::{Person, Question};
pub use policy::{Policy, Reply};

/// A policy. Written as a word, or as a one-key map where it has settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interaction {
    /// Every request is allowed once.
    #[default]
    AutoApprove,
    /// Every request is rejected once.
    AutoReject,
    /// The first rule that matches answers.
    Scripted(Scripted),
    /// A person answers.
    Manual,
    /// A model answers.
    Llm(Llm),
    /// A policy in `policies/`, by its name.
    Use(String),
}

impl Interaction {
    /// The policy's word, as it stands in traces.
    pub fn word(&self) -> &'static str {
        match self {
            Interaction::AutoApprove => "auto-approve",
            Interaction::AutoReject => "auto-reject",
            Interaction::Scripted(_) => "scripted",
            Interaction::Manual => "manual",
            Interaction::Llm(_) => "llm",
            Interaction::Use(_) => "use",
        }
    }

    /// The policy itself, where it is named.
    ///
    /// # Errors
    /// The name, which nobody knows.
    pub fn resolved(self, named: &PolicyFolder) -> Result<Self, String> {
        match self {
            Interaction::Use(name) => named.get(&name).map(|found| found.policy.clone()).ok_or(name),
            other => Ok(other),
        }
    }

    /// The policy as `--interaction` takes it, for the record of a run.
    pub fn to_text(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(word)) => word,
            Ok(settings) => settings.to_string(),
            Err(_) => self.word().to_owned(),
        }
    }

    /// Whether the policy means anything only with a harness that asks: without one, nothing would be refused.
    pub fn needs_interaction(&self) -> bool {
        !matches!(self, Interaction::AutoApprove)
    }
}

impl FromStr for Interaction {
    type Err = String;

    /// A policy as `--interaction` names it: a word, or the YAML of a policy with settings.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto-approve" => Ok(Interaction::AutoApprove),
            "auto-reject" => Ok(Interaction::AutoReject),
            "manual" => Ok(Interaction::Manual),
            "scripted" => Err("`scripted` needs settings; write them in the case, or as `{scripted: …}`".to_owned()),
            "llm" => Ok(Interaction::Llm(Llm::default())),
            yaml if yaml.contains(':') => {
                crate::yaml::parse(Path::new("--interaction"), yaml).map_err(|error| match error.way_out() {
                    Some(help) => format!("{error}; {help}"),
                    None => error.to_string(),
                })
            }
            // Whether there is one of that name shows when the folder is read.
            name => Ok(Interaction::Use(name.to_owned())),
        }
    }
}

/// Rules, and the answer where none matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Scripted {
    /// First match wins.
    pub rules: Vec<Rule>,
    /// Where no rule matches; rejected where this is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// What it is called in the trace, in the place of its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it matches; every part of it must hold, and without any it matches everything.
    #[serde(default)]
    pub when: When,
    /// What it answers.
    pub answer: Answer,
    /// Keys of the call's input that are put in the place of the agent's, where the protocol takes that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<serde_json::Map<String, Value>>,
}

/// An answer to the agent's questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuestionAnswer {
    /// Which questions it answers.
    pub question: Pattern,
    /// What it answers.
    pub answer: String,
}

/// What a rule matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct When {
    /// What the tool does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// What the agent calls the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<NameGlob>,
    /// The agent's line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<NameGlob>,
    /// One of the paths it touches, relative to the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathGlob>,
    /// Over the input as canonical JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Pattern>,
    /// Over the command's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// Only the n-th request, from 1, of those that the other parts match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
}

/// An answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// This once.
    AllowOnce,
    /// This and its like.
    AllowAlways,
    /// Not this once.
    RejectOnce,
    /// Not this and its like.
    RejectAlways,
    /// No decision: the request is cancelled.
    Cancel,
}

/// The answer where no rule matches: any answer, or `allow` and `reject` for this once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultAnswer {
    /// This once.
    Allow,
    /// Not this once.
    #[default]
    Reject,
    /// This once.
    AllowOnce,
    /// This and its like.
    AllowAlways,
    /// Not this once.
    RejectOnce,
    /// Not this and its like.
    RejectAlways,
    /// No decision: the request is cancelled.
    Cancel,
}

impl From<DefaultAnswer> for Answer {
    fn from(default: DefaultAnswer) -> Self {
        match default {
            DefaultAnswer::Allow | DefaultAnswer::AllowOnce => Answer::AllowOnce,
            DefaultAnswer::Reject | DefaultAnswer::RejectOnce => Answer::RejectOnce,
            DefaultAnswer::AllowAlways => Answer::AllowAlways,
            DefaultAnswer::RejectAlways => Answer::RejectAlways,
            DefaultAnswer::Cancel => Answer::Cancel,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Interaction {
        crate::yaml::parse(Path::new("a.yaml"), text).unwrap()
    }

    #[test]
    fn policies_are_words_or_one_key_maps() {
        assert_eq!(parse("auto-reject"), Interaction::AutoReject);
        let text = "scripted: {rules: [{when: {kind: edit, path: 'src/**'}, answer: allow-once}], default: cancel}";
        let Interaction::Scripted(scripted) = parse(text) else { panic!("{text}") };
        assert_eq!(scripted.rules[0].when.kind, Some(ToolKind::Edit));
        assert_eq!(scripted.default, Some(DefaultAnswer::Cancel));
        assert_eq!(Interaction::Scripted(scripted), format!("{{{text}}}").parse().unwrap());
        let Interaction::Llm(llm) = parse("llm: {model: 'anthropic:m', instructions: Nothing outside.}") else {
            panic!()
        };
        assert_eq!(llm.model.map(|model| model.to_string()).as_deref(), Some("anthropic:m"));
    }

    #[test]
    fn what_is_no_policy_is_refused_with_the_way_out() {
        // Any other word is a name, which the folder knows or not.
        let named: Interaction = "auto-aprove".parse().unwrap();
        let error = named.resolved(&PolicyFolder::default()).unwrap_err();
        assert!(PolicyFolder::default().known(&error).contains("did you mean `auto-approve`"), "{error}");
        let error = "scripted".parse::<Interaction>().unwrap_err();
        assert!(error.contains("needs settings"), "{error}");
        let error = "scripted: {rules: [{when: {kid: edit}, answer: allow-once}]}".parse::<Interaction>().unwrap_err();
        assert!(error.contains("--interaction:1:28: unknown key `kid`"), "{error}");
    }
}

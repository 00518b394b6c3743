//! Interaction policies: how the agent's permission requests are answered, as set by a case or `--interaction`.

use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use crate::trace::ToolKind;
use crate::values::{NameGlob, PathGlob, Pattern};
use crate::word::word;
use crate::yaml::lists::OneOrList;

mod adviser;
mod ask;
mod decision;
mod engine;
mod form;
mod named;
mod person;
mod policy;
mod request;

pub use adviser::{Adviser, Llm};
pub use decision::Decision;
pub use engine::{Counters, decide, decide_by_rule};
pub use form::Form;
pub use named::{NamedPolicy, PolicyFolder};
pub use person::Person;
pub use policy::{DEFAULT_RULE, Policy};
pub use request::Request;

/// An interaction policy. Written as a word, or as a map with one key if it has settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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

word!(&Interaction);

impl Interaction {
    /// Replaces a named policy by its definition.
    ///
    /// # Errors
    /// Returns the name as the error, if no policy has it.
    pub fn resolved(self, named: &PolicyFolder) -> Result<Self, String> {
        match self {
            Interaction::Use(name) => named.get(&name).map(|found| found.policy.clone()).ok_or(name),
            other => Ok(other),
        }
    }

    /// Returns the policy in the form that `--interaction` takes, for the record of a run.
    pub fn to_text(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::String(word)) => word,
            Ok(settings) => settings.to_string(),
            Err(_) => self.word().to_owned(),
        }
    }

    /// Returns true if the policy is meaningful only with a harness that asks for permission: without requests,
    /// nothing would be refused.
    pub fn needs_interaction(&self) -> bool {
        !matches!(self, Interaction::AutoApprove)
    }
}

impl FromStr for Interaction {
    type Err = String;

    /// Parses a policy as given to `--interaction`: a word, or the YAML of a policy with settings.
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
            // The existence of a policy with this name is checked when the folder is read.
            name => Ok(Interaction::Use(name.to_owned())),
        }
    }
}

/// Rules, and the default answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Scripted {
    /// The rules. The first matching rule answers.
    pub rules: Vec<Rule>,
    /// The answer if no rule matches. Default: `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// The name of the rule in the trace. Default: its position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The conditions of the rule. All of them must hold; a rule without conditions matches every request.
    #[serde(default)]
    pub when: When,
    /// The answer to the requests that the rule matches.
    pub answer: Answer,
    /// Keys that replace those of the call's input, if the protocol supports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<serde_json::Map<String, Value>>,
    /// The mark that replaces a secret of the conditions in requests.
    #[serde(skip)]
    pub mark: Option<String>,
}

/// An answer to the agent's questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QuestionAnswer {
    /// The pattern of the questions that it answers.
    pub question: Pattern,
    /// The answer to the questions that match.
    pub answer: String,
}

/// The conditions of a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct When {
    /// The kind of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The agent's name of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<NameGlob>,
    /// The agent's title of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<NameGlob>,
    /// The paths that the call touches, relative to the workspace and also as links lead to them: all of them for a rule
    /// that allows, any of them for other rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathGlob>,
    /// A pattern searched in the input as canonical JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Pattern>,
    /// A pattern searched in the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Pattern>,
    /// A pattern, or a list of patterns, for one of the commands that the command line runs: the program without its folder, then
    /// its arguments, separated by one blank. Blanks within an argument are `␣`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<OneOrList<Pattern>>,
    /// Matches only the n-th request, from 1, of those that match the other conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
}

/// An answer to a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Allow this request.
    AllowOnce,
    /// Allow this request and similar ones.
    AllowAlways,
    /// Reject this request.
    RejectOnce,
    /// Reject this request and similar ones.
    RejectAlways,
    /// Cancel the request without a decision.
    Cancel,
}

/// The answer if no rule matches: any answer, or `allow` and `reject` for a single request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DefaultAnswer {
    /// Allow this request.
    Allow,
    /// Reject this request.
    #[default]
    Reject,
    /// Allow this request.
    AllowOnce,
    /// Allow this request and similar ones.
    AllowAlways,
    /// Reject this request.
    RejectOnce,
    /// Reject this request and similar ones.
    RejectAlways,
    /// Cancel the request without a decision.
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
        // Any other word is a name, which may or may not exist in the folder.
        let named: Interaction = "auto-aprove".parse().unwrap();
        let error = named.resolved(&PolicyFolder::default()).unwrap_err();
        assert!(PolicyFolder::default().known(&error).contains("did you mean `auto-approve`"), "{error}");
        let error = "scripted".parse::<Interaction>().unwrap_err();
        assert!(error.contains("needs settings"), "{error}");
        let error = "scripted: {rules: [{when: {kid: edit}, answer: allow-once}]}".parse::<Interaction>().unwrap_err();
        assert!(error.contains("--interaction:1:28: unknown key `kid`"), "{error}");
    }
}

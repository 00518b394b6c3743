//! The `stream` of a manifest: rules that give each line of an agent's JSON stream its meaning, as written.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess};
use serde::{Deserialize, Serialize, Serializer};

use crate::yaml::forms::{self, Forms, ParsedNumber, deserialize_forms};
use crate::yaml::lists;

pub mod compile;

/// A rule. The first rule whose `when` is true handles the line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// The name of the rule in notices and in `import --explain`. Default: its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The input of the rule: a `line` of JSON, a `text` that is not JSON, a line of `stderr`, or the `end` of a
    /// stream that did not report how it ended.
    #[serde(default, skip_serializing_if = "On::is_line")]
    pub on: On,
    /// The condition of the rule. Default: always. A condition that reads a missing key is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Formula>,
    /// A list: the rule is applied once to each of its elements, as `it`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Formula>,
    /// Variables kept for later lines, as `kept.NAME`. A variable whose expression is absent is removed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Formula>,
    /// The events that the rule emits: one event, or several in this order.
    #[serde(default, skip_serializing_if = "Events::is_empty")]
    pub emit: Events,
    /// Rules for the input of this rule, for each element separately. The first matching rule handles it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// If `true`, the line produces no event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore: bool,
    /// If `true`, the rules below may handle the line, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub go_on: bool,
}

impl Rule {
    /// Returns true if the rule, or a rule within it, can emit an event of this kind.
    pub fn emits(&self, kind: Kind) -> bool {
        let is_emitted = |emit: &Emit| emit.events().iter().any(|(emitted, _)| *emitted == kind);
        self.emit.0.iter().any(is_emitted) || self.rules.iter().any(|rule| rule.emits(kind))
    }
}

/// The input of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// A line that contains a JSON object, as `line`.
    #[default]
    Line,
    /// A line that does not contain a JSON object, as `text`.
    Text,
    /// A line that the program printed on standard error, as `text`.
    Stderr,
    /// The end of a stream that did not report how it ended. `exit` is `{code, signal, stderr}` of the process, or null
    /// if unknown.
    End,
}

impl On {
    fn is_line(&self) -> bool {
        *self == On::Line
    }
}

/// An expression in CEL. Texts within the expression are quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula(pub String);

impl Forms<'_> for Formula {
    const EXPECTED: &'static str = "an expression";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Formula(text.to_owned()))
    }

    fn from_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Ok(Formula(flag.to_string()))
    }

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        Ok(Formula(match number {
            ParsedNumber::Float(number) => format!("{number:?}"),
            whole => whole.to_string(),
        }))
    }
}

deserialize_forms!(Formula, deserialize_any);

impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
impl JsonSchema for Formula {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Formula".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number", "boolean"],
            "description": "An expression in CEL, such as `line.item.text`. A text in an expression is written in quotes: `'done'`."
        })
    }
}

/// The events of a rule: a single event, or a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Events(pub Vec<Emit>);

impl Events {
    /// Returns true if there are no events.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Forms<'de> for Events {
    const EXPECTED: &'static str = "an event such as `{message: {text: line.text}}`, or a list of events";

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Emit::deserialize(MapAccessDeserializer::new(map)).map(|one| Events(vec![one]))
    }

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        forms::list(list).map(Events)
    }
}

deserialize_forms!(Events, deserialize_any);

impl Serialize for Events {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        lists::write(&self.0, serializer)
    }
}

#[cfg(test)]
impl JsonSchema for Events {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Events".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        forms::one_or_list::<Emit>(generator)
    }
}

/// Declares the events and their fields: their written form, and a list of them for the compiler.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $variant:ident $key:ident $word:literal {
            $( $(#[$field_doc:meta])* $field:ident $name:literal ),* $(,)?
        }
    )*) => {
        /// An event that a rule emits. Exactly one event key is required.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct Emit {
            /// The condition under which the event is emitted.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub when: Option<Formula>,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $key: Option<$variant>,
            )*
        }

        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $( $(#[$doc])* $variant, )*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// Returns the key of the event.
            pub fn word(self) -> &'static str {
                match self { $( Kind::$variant => $word, )* }
            }
        }

        impl Emit {
            /// Returns the events with the fields that were written.
            pub fn events(&self) -> Vec<(Kind, Vec<(&'static str, &Formula)>)> {
                let mut events = Vec::new();
                $(
                    if let Some(event) = &self.$key {
                        let fields: Vec<(&'static str, Option<&Formula>)> = vec![$(($name, event.$field.as_ref())),*];
                        let written = fields.into_iter().filter_map(|(name, formula)| Some((name, formula?)));
                        events.push((Kind::$variant, written.collect()));
                    }
                )*
                events
            }
        }

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
            #[cfg_attr(test, derive(schemars::JsonSchema))]
            #[serde(deny_unknown_fields, rename_all = "kebab-case")]
            pub struct $variant {
                $(
                    $(#[$field_doc])*
                    #[serde(default, skip_serializing_if = "Option::is_none")]
                    pub $field: Option<Formula>,
                )*
            }
        )*
    };
}

events! {
    /// Facts about the session, for the trace's header.
    Header header "header" {
        /// The agent's name.
        agent "agent",
        /// The agent's version.
        version "version",
        /// The model that answers.
        model "model",
        /// The working directory of the agent.
        cwd "cwd",
        /// The agent's id of the session. The first value counts, as for `branch` and `commit`.
        session "session",
        /// The branch of the repository in which the session began.
        branch "branch",
        /// The commit at which the session began.
        commit "commit",
    }
    /// A message: one of `text`, `delta` and `snapshot`; optional if it has `attachments`.
    Message message "message" {
        /// `agent` (the default) or `user`.
        role "role",
        /// The complete text of a block. Text that was already sent in pieces under this id is not repeated.
        text "text",
        /// A piece of text that continues the previous piece.
        delta "delta",
        /// The complete text of a block so far. Only the new part is added.
        snapshot "snapshot",
        /// The content that is not text: a map with `kind`, `media_type`, `uri`, `data`, or a list of these.
        attachments "attachments",
        /// The id of the message or block.
        id "id",
        /// `true` if the text begins another answer: texts before it are then not part of the final answer. Default: `false`,
        /// so that all texts after the last call are.
        begins_answer "begins-answer",
        /// The call that started the sub-agent which sends the message.
        parent "parent",
    }
    /// A thought: exactly one of `text`, `delta` and `snapshot`, as in a message.
    Thought thought "thought" {
        /// The complete text of a block.
        text "text",
        /// A piece of text.
        delta "delta",
        /// The complete text of a block so far.
        snapshot "snapshot",
        /// Marks the pieces of one thought.
        id "id",
        /// The call that started the sub-agent which thinks.
        parent "parent",
    }
    /// The agent's plan, which replaces the previous one.
    Plan plan "plan" {
        /// A list of maps with `text`, `status`, `priority`.
        entries "entries",
        /// The call that started the sub-agent which made the plan.
        parent "parent",
    }
    /// A new tool call, or further details of an open one.
    ToolCall tool_call "tool-call" {
        /// The agent's id of the call.
        id "id",
        /// The agent's name of the tool; `tool-kinds` gives its kind.
        name "name",
        /// The kind, if it does not follow from the name. `unknown` if the agent does not show it.
        kind "kind",
        /// The agent's title of the call.
        title "title",
        /// The arguments: a value, or a text with a value as JSON.
        input "input",
        /// A piece of the arguments. The joined pieces are complete JSON.
        input_delta "input-delta",
        /// The files that the call touches: a path, a list of paths, or a list of maps with `path`, `line`.
        locations "locations",
        /// The folder in which the call runs: a path, or a URL of the scheme `file`.
        cwd "cwd",
        /// The id of the agent's message that contains the call: calls of one message share a step.
        group "group",
        /// The call that started the sub-agent which makes this call.
        parent "parent",
    }
    /// The end of a tool call.
    ToolResult tool_result "tool-result" {
        /// The agent's id of the call.
        id "id",
        /// `ok` (the default), `error`, `denied` or `cancelled`.
        status "status",
        /// The result as text.
        output "output",
        /// The exit code of a command.
        exit_code "exit-code",
        /// A list of maps with `path`, `old`, `new`.
        diffs "diffs",
        /// `true` if the agent reports that the output was truncated.
        truncated "truncated",
    }
    /// A refused tool call: it ends as denied, regardless of its result.
    Denied denied "denied" {
        /// The agent's id of the call.
        id "id",
    }
    /// A permission request of the agent.
    PermissionRequest permission_request "permission-request" {
        /// The agent's id of the request.
        request "request",
        /// The agent's id of the call.
        id "id",
        /// A list of maps with `option`, `kind`, `label`.
        options "options",
    }
    /// The answer to a permission request.
    PermissionResponse permission_response "permission-response" {
        /// The agent's id of the request.
        request "request",
        /// `allowed`, `rejected` or `cancelled`.
        outcome "outcome",
        /// The agent's id of the chosen option.
        option "option",
        /// The reason for the answer.
        reason "reason",
    }
    /// Token usage and cost. The manifest's `usage` states which token counts include others.
    Usage usage "usage" {
        /// `call`, `turn` or `session`. Default: the manifest's `usage.scope`, else `turn`.
        scope "scope",
        /// Input tokens.
        input "input",
        /// Output tokens.
        output "output",
        /// Tokens read from the cache.
        cache_read "cache-read",
        /// Tokens written to the cache.
        cache_write "cache-write",
        /// Tokens of thoughts.
        thought "thought",
        /// All tokens, as summed by the agent.
        total "total",
        /// Cost in US dollars.
        cost_usd "cost-usd",
        /// Tokens that are currently in the model's context.
        context_used "context-used",
        /// Size of the model's context.
        context_size "context-size",
        /// The model that used the tokens.
        model "model",
    }
    /// Information for the reader that does not belong to any other event.
    Notice notice "notice" {
        /// A code for the kind of notice.
        code "code",
        /// The text of the notice.
        text "text",
        /// The content of the line that no event shows: `line` (anything), `call` (an action) or `text`. Graders then do not pass
        /// because something is absent. `outcome`: a call ended otherwise than its event shows. `speaker`: the text before is not
        /// the agent's. Default: nothing.
        lost "lost",
    }
    /// The agent's report of how its turn ended.
    Stop stop "stop" {
        /// The reason: a stop reason of the trace such as `end_turn` or `error`. Any other word becomes
        /// `other`, with the word as detail.
        reason "reason",
        /// The agent's own word, or the text of the error.
        detail "detail",
        /// The category of the error. Default: derived from `http` or from the text.
        category "category",
        /// The HTTP status of an error.
        http "http",
        /// The final answer, added only if the session has no message.
        output "output",
    }
}

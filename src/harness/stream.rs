//! The `stream` of a manifest: rules that say what each line of an agent's JSON stream is, as people write them.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

pub mod compile;

/// One rule. Of the rules for a line the first one whose `when` holds takes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// What the rule is called in notices and in `import --explain`; its number otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it looks at: a `line` of JSON, a `text` that is no JSON, or the `end` of a stream that did not say how it
    /// ended.
    #[serde(default, skip_serializing_if = "On::is_line")]
    pub on: On,
    /// Whether it takes the line; without it, always. What asks for a key that is not there does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Formula>,
    /// A list: the rule is carried out once for each of its elements, `it`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Formula>,
    /// Variables kept for later lines, as `kept.NAME`; one that comes out absent is forgotten.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Formula>,
    /// What it makes of the line: one event or several, in this order.
    #[serde(default, skip_serializing_if = "Events::is_empty")]
    pub emit: Events,
    /// Rules for what this one has taken, each element by itself: the first that holds takes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The line says nothing that is an event.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore: bool,
    /// Rules below may take the line, too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub go_on: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// What a rule looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum On {
    /// A line that holds a JSON object, as `line`.
    #[default]
    Line,
    /// A line that holds none, as `text`.
    Text,
    /// The end of a stream that did not say how it ended; `exit` is the process' own, or null where nobody saw it.
    End,
}

impl On {
    fn is_line(&self) -> bool {
        *self == On::Line
    }
}

/// An expression in CEL. A text within it stands in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Formula(pub String);

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Formula;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an expression")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Formula, E> {
                Ok(Formula(text.to_owned()))
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Formula, E> {
                Ok(Formula(flag.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Formula, E> {
                Ok(Formula(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Formula, E> {
                Ok(Formula(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Formula, E> {
                Ok(Formula(format!("{number:?}")))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for Formula {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl JsonSchema for Formula {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Formula".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "number", "boolean"],
            "description": "an expression in CEL, such as line.item.text; a text within it stands in quotes: 'done'"
        })
    }
}

/// One event, or a list of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Events(pub Vec<Emit>);

impl Events {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Events {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Several(PhantomData<Emit>);
        impl<'de> Visitor<'de> for Several {
            type Value = Events;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event such as `{message: {text: line.text}}`, or a list of events")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Events, A::Error> {
                Emit::deserialize(MapAccessDeserializer::new(map)).map(|one| Events(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Events, A::Error> {
                let mut events = Vec::new();
                while let Some(event) = list.next_element()? {
                    events.push(event);
                }
                Ok(Events(events))
            }
        }
        deserializer.deserialize_any(Several(PhantomData))
    }
}

impl Serialize for Events {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            list => list.serialize(serializer),
        }
    }
}

impl JsonSchema for Events {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Events".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Emit>();
        json_schema!({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})
    }
}

/// Declares the events and their fields: what people write, and a list of it for the compiler.
macro_rules! events {
    ($(
        $(#[$doc:meta])*
        $variant:ident $key:ident $word:literal {
            $( $(#[$field_doc:meta])* $field:ident $name:literal ),* $(,)?
        }
    )*) => {
        /// An event that a rule makes. Exactly one key.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct Emit {
            /// It is made only where this holds.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub when: Option<Formula>,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $key: Option<$variant>,
            )*
        }

        /// Which event it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $( $(#[$doc])* $variant, )*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            /// Its key.
            pub fn word(self) -> &'static str {
                match self { $( Kind::$variant => $word, )* }
            }
        }

        impl Emit {
            /// Its events, with the fields that were written.
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
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What the session tells of itself, for the Trace's header.
    Header header "header" {
        /// The agent's name.
        agent "agent",
        /// Its version.
        version "version",
        /// The model that answers.
        model "model",
        /// The folder it works in.
        cwd "cwd",
    }
    /// A message: exactly one of `text`, `delta` and `snapshot`.
    Message message "message" {
        /// `agent` (the default) or `user`.
        role "role",
        /// All of a block. What was told in pieces under the same id is not said again.
        text "text",
        /// A piece that goes on where the last one ended.
        delta "delta",
        /// All of a block so far: what is new in it is said.
        snapshot "snapshot",
        /// The message or block it is part of.
        id "id",
        /// The call that started the sub-agent which speaks.
        parent "parent",
    }
    /// A thought: exactly one of `text`, `delta` and `snapshot`, as in a message.
    Thought thought "thought" {
        /// All of a block.
        text "text",
        /// A piece.
        delta "delta",
        /// All of a block so far.
        snapshot "snapshot",
        /// The thought it is part of.
        id "id",
        /// The call that started the sub-agent which thinks.
        parent "parent",
    }
    /// The agent's plan, which replaces the one before.
    Plan plan "plan" {
        /// A list of maps of `text`, `status`, `priority`.
        entries "entries",
        /// The call that started the sub-agent whose plan it is.
        parent "parent",
    }
    /// A call is announced, or more is told of one that is open.
    ToolCall tool_call "tool-call" {
        /// The agent's id of the call.
        id "id",
        /// What the agent calls the tool; `tool-kinds` gives its kind.
        name "name",
        /// The kind, where the name does not tell it.
        kind "kind",
        /// The agent's line for people.
        title "title",
        /// Its arguments: a value, or a text that holds one as JSON.
        input "input",
        /// A piece of its arguments, as JSON that is complete when the pieces are joined.
        input_delta "input-delta",
        /// Files it touches: a path, a list of paths, or of maps of `path`, `line`.
        locations "locations",
        /// The agent's message that it is part of: calls of one message share a step.
        group "group",
        /// The call that started the sub-agent which makes it.
        parent "parent",
    }
    /// A call ends.
    ToolResult tool_result "tool-result" {
        /// The agent's id of the call.
        id "id",
        /// `ok` (the default), `error`, `denied` or `cancelled`.
        status "status",
        /// What it said, as text.
        output "output",
        /// The exit code of a command.
        exit_code "exit-code",
        /// A list of maps of `path`, `old`, `new`.
        diffs "diffs",
        /// Whether the agent says that the output was cut.
        truncated "truncated",
    }
    /// A call was refused: it ends as denied, whatever its result says.
    Denied denied "denied" {
        /// The agent's id of the call.
        id "id",
    }
    /// The agent asks for permission.
    PermissionRequest permission_request "permission-request" {
        /// The agent's id of the request.
        request "request",
        /// The agent's id of the call.
        id "id",
        /// A list of maps of `option`, `kind`, `label`.
        options "options",
    }
    /// A request for permission was answered.
    PermissionResponse permission_response "permission-response" {
        /// The agent's id of the request.
        request "request",
        /// `allowed`, `rejected` or `cancelled`.
        outcome "outcome",
        /// The agent's id of the option.
        option "option",
        /// Why.
        reason "reason",
    }
    /// What was spent. Which tokens are part of which is said by the manifest's `usage`.
    Usage usage "usage" {
        /// `call`, `turn` or `session`; the manifest's `usage.scope` otherwise, else `turn`.
        scope "scope",
        /// Tokens sent.
        input "input",
        /// Tokens received.
        output "output",
        /// Tokens read from the cache.
        cache_read "cache-read",
        /// Tokens written to the cache.
        cache_write "cache-write",
        /// Tokens of thought.
        thought "thought",
        /// All tokens, as the agent adds them up.
        total "total",
        /// Money, in US dollars.
        cost_usd "cost-usd",
        /// Tokens now in the model's context.
        context_used "context-used",
        /// Size of that context.
        context_size "context-size",
        /// The model they were spent on.
        model "model",
    }
    /// Something a reader should know that is no other event.
    Notice notice "notice" {
        /// A word for its kind.
        code "code",
        /// What it says.
        text "text",
    }
    /// The agent says how its turn ended.
    Stop stop "stop" {
        /// Why: a word of the Trace such as `end_turn` or `error`; another word is `other`, with the word as detail.
        reason "reason",
        /// Its own word, or the error's text.
        detail "detail",
        /// What kind of error; told by `http` or by the text otherwise.
        category "category",
        /// The HTTP status of an error.
        http "http",
        /// The final answer, said only where no message came through.
        output "output",
    }
}

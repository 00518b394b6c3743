//! Turns a scripted question into a call of the tool by which an agent asks its user.

use serde_json::{Map, Value, json};

use super::{ToolError, field, is_list, made, plain_name, sample};
use crate::gateway::script::Ask;
use crate::gateway::{Call, Tool};

/// Names of tools in lower case without punctuation, the most likely first.
const ASK: [&str; 9] = [
    "askuserquestion",
    "askuser",
    "requestuserinput",
    "askfollowupquestion",
    "askquestion",
    "askquestions",
    "askuserquestions",
    "question",
    "humaninput",
];

/// Names of input keys with different agents, by meaning.
const QUESTIONS: &[&str] = &["questions"];
const QUESTION: &[&str] = &["question", "prompt", "message"];
const OPTIONS: &[&str] = &["options", "choices", "suggestions", "follow_up"];

/// The maximum number of characters of a header: agents show it as a small label.
const HEADER: usize = 12;

/// Returns a call that asks the question; `None` if the agent offers no tool for it.
pub(super) fn call(ask: &Ask, offered: &[Tool]) -> Option<Result<Call, ToolError>> {
    let fits = |tool: &&Tool| field(tool, QUESTIONS).is_some() || field(tool, QUESTION).is_some();
    let tool = ASK.iter().find_map(|name| offered.iter().filter(fits).find(|tool| plain_name(&tool.name) == *name))?;
    Some(input(ask, tool).map(|input| made(tool, input)))
}

fn input(ask: &Ask, tool: &Tool) -> Result<Value, ToolError> {
    let schema = Schema { root: &tool.schema, at: &tool.schema };
    let Some(key) = field(tool, QUESTIONS) else { return question(ask, tool, schema) };
    let list = schema.property(key);
    let one = question(ask, tool, list.items().unwrap_or(list))?;
    let mut input = schema.rest(&[key]);
    input.insert(key.to_owned(), if is_list(list.at) { json!([one]) } else { one });
    Ok(Value::Object(input))
}

/// Returns the object of one question.
fn question(ask: &Ask, tool: &Tool, schema: Schema<'_>) -> Result<Value, ToolError> {
    let mut object = Map::new();
    let key = schema.first_of(QUESTION).unwrap_or("question");
    object.insert(key.to_owned(), json!(ask.question));
    if let Some(key) = schema.first_of(OPTIONS) {
        if !ask.options.is_empty() {
            let shape = schema.property(key).items();
            let options = ask.options.iter().map(|label| option(label, shape));
            object.insert(key.to_owned(), options.collect());
        } else if schema.requires(key) {
            return Err(ToolError::Options { tool: tool.name.clone() });
        }
    }
    // Some tools have several kinds of question.
    let kinds = schema.property("type").at.get("enum").and_then(Value::as_array);
    let kind = if ask.options.is_empty() { "text" } else { "choice" };
    if kinds.is_some_and(|kinds| kinds.contains(&json!(kind))) {
        object.insert("type".to_owned(), json!(kind));
    }
    for name in ["header", "id"].into_iter().filter(|name| schema.requires(name)) {
        object.insert(name.to_owned(), json!(header(&ask.question)));
    }
    let given: Vec<&str> = object.keys().map(String::as_str).collect();
    let rest = schema.rest(&given);
    object.extend(rest);
    Ok(Value::Object(object))
}

fn option(label: &str, shape: Option<Schema<'_>>) -> Value {
    let Some(shape) = shape.filter(|shape| shape.at.get("properties").is_some()) else { return json!(label) };
    let mut object = shape.rest(&[]);
    let texts = ["label", "value", "name", "title", "text", "description"];
    for key in texts.into_iter().filter(|key| shape.requires(key)) {
        object.insert(key.to_owned(), json!(label));
    }
    if object.is_empty() {
        object.insert(shape.first_of(&texts).unwrap_or("label").to_owned(), json!(label));
    }
    Value::Object(object)
}

/// Returns the beginning of a question as a label.
fn header(question: &str) -> String {
    let word = question.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("question");
    word.chars().take(HEADER).collect::<String>().to_lowercase()
}

/// A part of a tool's JSON Schema.
#[derive(Clone, Copy)]
struct Schema<'a> {
    /// The whole schema, which references begin at.
    root: &'a Value,
    at: &'a Value,
}

impl<'a> Schema<'a> {
    /// Returns the schema that a reference names, and of alternatives the first that is not null.
    fn resolved(self, at: &'a Value) -> Self {
        let at = self.pointed(at);
        let alternatives = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| at.get(key)?.as_array());
        let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
        let first = alternatives.and_then(|all| all.iter().find(|schema| !is_null(schema)));
        Self { at: first.map_or(at, |first| self.pointed(first)), ..self }
    }

    fn pointed(self, at: &'a Value) -> &'a Value {
        let pointer = at.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
        pointer.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(at)
    }

    fn property(self, key: &str) -> Self {
        self.resolved(self.at.get("properties").and_then(|all| all.get(key)).unwrap_or(&Value::Null))
    }

    fn items(self) -> Option<Self> {
        self.at.get("items").map(|items| self.resolved(items))
    }

    fn first_of(self, names: &[&'static str]) -> Option<&'static str> {
        names.iter().copied().find(|name| self.at.get("properties").is_some_and(|all| all.get(name).is_some()))
    }

    fn required(self) -> impl Iterator<Item = &'a str> {
        self.at.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    fn requires(self, key: &str) -> bool {
        self.required().any(|name| name == key)
    }

    /// Returns the simplest values of the required keys besides these.
    fn rest(self, besides: &[&str]) -> Map<String, Value> {
        let keys = self.required().filter(|key| !besides.contains(key));
        keys.map(|key| (key.to_owned(), sample(self.property(key).at))).collect()
    }
}

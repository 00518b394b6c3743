//! An event as shown to a judge: a line of JSON, whose texts are complete or cut by rules, with its source. Pure.

use serde_json::{Map, Value, json};

use crate::trace::Event;

/// The maximum number of characters shown of a text: at its beginning, and at its end.
const MAX_TEXT_CHARS: (usize, usize) = (2500, 1500);
/// The maximum for the change of the workspace.
const PATCH: (usize, usize) = (9000, 3000);
/// The maximum for a key.
const KEY: (usize, usize) = (100, 0);
/// The maximum number of parts shown of a value.
const PARTS: usize = 200;
/// No limit.
const ALL: (usize, usize) = (usize::MAX, 0);

/// The source of an event's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    User,
    /// A message of the agent.
    Agent,
    Call,
    Result,
    /// The change of the workspace.
    Change,
    /// A thought, a plan, a permission, or how the session ended.
    Other,
}

/// An event as shown to a judge.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// `seq` of the event.
    pub seq: u64,
    /// The source of the line's text.
    pub source: Source,
    /// The event as JSON, on one line.
    pub json: String,
    /// The texts in the event that the user, the agent or a tool wrote.
    pub texts: Vec<String>,
    /// The parts of the JSON besides number and type.
    pub(in crate::judge) body: String,
    /// The number of characters that were left out.
    pub(super) cut: usize,
}

impl Line {
    /// Makes the line of an event: number, type, sub-agent, and the shown content.
    pub(super) fn of(event: &Event, source: Source, shown: Value, whole: bool) -> Self {
        let mut map = Map::new();
        map.insert("seq".to_owned(), json!(event.seq));
        map.insert("type".to_owned(), json!(event.body.word()));
        if let Some(parent) = &event.parent {
            map.insert("sub_agent_of".to_owned(), json!(parent));
        }
        let mut body = Map::new();
        let mut cutter = Cutter::new(whole);
        if let Value::Object(shown) = shown {
            for (key, value) in shown.into_iter().filter(|(_, value)| !value.is_null() && *value != json!([])) {
                match key.as_str() {
                    "role" | "call" => drop(map.insert(key, value)),
                    // Words of the engine, not text of a participant.
                    "kind" | "status" | "outcome" | "reason" => drop(body.insert(key, value)),
                    _ => drop(body.insert(key, cutter.value(value))),
                }
            }
        }
        let text = Value::Object(body.clone()).to_string();
        map.extend(body);
        let json = Value::Object(map).to_string();
        Self { seq: event.seq, source, json, texts: cutter.texts, body: text, cut: cutter.missing }
    }

    /// Makes the line of the workspace's change, after the last event.
    pub(super) fn change(seq: u64, patch: &str, whole: bool) -> Self {
        let (patch, missing) = cut(patch, if whole { ALL } else { PATCH });
        let json = json!({"seq": seq, "type": "workspace_change", "patch": patch}).to_string();
        Self { seq, source: Source::Change, json, texts: vec![patch], body: String::new(), cut: missing }
    }

    /// Returns the size of the line in characters.
    pub(super) fn size(&self) -> usize {
        self.json.chars().count()
    }
}

/// Cuts the texts of a value, and records them.
struct Cutter {
    whole: bool,
    parts: usize,
    missing: usize,
    texts: Vec<String>,
}

impl Cutter {
    fn new(whole: bool) -> Self {
        Self { whole, parts: 0, missing: 0, texts: Vec::new() }
    }

    fn value(&mut self, value: Value) -> Value {
        self.parts += 1;
        if self.parts > PARTS && !self.whole {
            self.missing += value.to_string().chars().count();
            return json!("[… left out …]");
        }
        match value {
            Value::String(text) => {
                let text = self.cut(&text, MAX_TEXT_CHARS);
                self.texts.push(text.clone());
                Value::String(text)
            }
            Value::Array(list) => Value::Array(list.into_iter().map(|value| self.value(value)).collect()),
            Value::Object(map) => {
                let shorter = map.into_iter().map(|(key, value)| (self.cut(&key, KEY), self.value(value)));
                Value::Object(shorter.collect())
            }
            other => {
                self.texts.push(other.to_string());
                other
            }
        }
    }

    fn cut(&mut self, text: &str, most: (usize, usize)) -> String {
        let (text, missing) = cut(text, if self.whole { ALL } else { most });
        self.missing += missing;
        text
    }
}

/// Returns the beginning and the end of a long text, with the number of missing characters between them, and
/// that number.
fn cut(text: &str, (first, last): (usize, usize)) -> (String, usize) {
    let length = text.chars().count();
    if length <= first.saturating_add(last) {
        return (text.to_owned(), 0);
    }
    let start: String = text.chars().take(first).collect();
    let end: String = text.chars().skip(length - last).collect();
    let missing = length - first - last;
    (format!("{start}[… {missing} characters left out …]{end}"), missing)
}

//! One event as a judge is shown it: a line of JSON, whose texts are whole or cut by rule, and whose words it holds. Pure.

use serde_json::{Map, Value, json};

use crate::trace::Event;

/// Characters of one text that are shown: so many of its beginning, and so many of its end.
const TEXT: (usize, usize) = (2500, 1500);
/// The same for the change of the workspace.
const PATCH: (usize, usize) = (9000, 3000);
/// Characters of a key.
const KEY: (usize, usize) = (100, 0);
/// Parts of one value that are shown.
const PARTS: usize = 200;
/// No limit.
const ALL: (usize, usize) = (usize::MAX, 0);

/// What an event's words are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The user's.
    User,
    /// A message of the agent.
    Agent,
    /// A call.
    Call,
    /// A result.
    Result,
    /// The change of the workspace.
    Change,
    /// A thought, a plan, a permission, or how the session ended.
    Other,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its `seq`.
    pub seq: u64,
    /// What its words are.
    pub source: Source,
    /// As JSON, on one line.
    pub json: String,
    /// The texts in it that were written by the user, by the agent or by a tool.
    pub texts: Vec<String>,
    /// What of the JSON is not about the event itself.
    pub(in crate::judge) body: String,
    /// Characters of its texts that are left out.
    pub(super) cut: usize,
}

impl Line {
    /// An event: its number, its type, whose it is, and what of it is shown.
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
                    // The engine's words, and nobody's text.
                    "kind" | "status" | "outcome" | "reason" => drop(body.insert(key, value)),
                    _ => drop(body.insert(key, cutter.value(value))),
                }
            }
        }
        let said = Value::Object(body.clone()).to_string();
        map.extend(body);
        let json = Value::Object(map).to_string();
        Self { seq: event.seq, source, json, texts: cutter.texts, body: said, cut: cutter.missing }
    }

    /// The change of the workspace, after the last event.
    pub(super) fn change(seq: u64, patch: &str, whole: bool) -> Self {
        let (patch, missing) = cut(patch, if whole { ALL } else { PATCH });
        let json = json!({"seq": seq, "type": "workspace_change", "patch": patch}).to_string();
        Self { seq, source: Source::Change, json, texts: vec![patch], body: String::new(), cut: missing }
    }

    /// What it takes of the room for a session.
    pub(super) fn size(&self) -> usize {
        self.json.len()
    }
}

/// Cuts the texts of a value, and notes them.
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
                let text = self.cut(&text, TEXT);
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

/// The beginning and the end of a text that is too long, and how much is missing between them: in it, and as a number.
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

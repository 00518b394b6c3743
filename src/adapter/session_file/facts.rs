//! The facts of a line of a session file that decide whether it is read and when: its time, its id and its place in
//! the tree of the conversation.

use jiff::Timestamp;
use serde_json::Value;

use crate::expression::{Expression, Scope, Work};
use crate::gateway::api::message_tokens;
use crate::harness::SessionFile;

/// The facts of a line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The id of the line. A line without one belongs to no branch and is always read.
    pub id: Option<String>,
    /// The id of the line before it in the conversation.
    pub parent: Option<String>,
    /// True if the line has no parent although the conversation began before it: the first line after a compaction.
    pub continues: bool,
    /// The time in milliseconds since 1970.
    pub at: Option<i64>,
    /// The id of the model's message that the line is a part of. All lines of a message are in the same branches.
    pub message: Option<String>,
    /// The usage of that message, as this line reports it.
    pub tokens: Option<Tokens>,
    /// True if the line is in each branch that its parent is in, even if nothing follows it: a result of one of
    /// several parallel calls.
    pub follows_parent: bool,
    /// True if the line is not part of the main conversation: a line of a sub-agent.
    pub is_aside: bool,
    /// True if the user or the agent speaks in the line.
    pub speaks: bool,
    /// A hash of what the line says, without what differs in the copies of a fork.
    pub content: u64,
    /// The id of the earlier line from which on the user took the session back: that line is left out, too.
    pub rewind: Option<String>,
    /// The place of the line in the chain of all lines of the file.
    pub link: Link,
    /// The facts about the end of a call that the line shows, with the id of the call.
    pub end: Option<(String, EndShown)>,
    /// The id of a sub-agent, and the id of the call that started it.
    pub started: Option<(String, String)>,
}

/// The place of a line in the chain of the lines of a file, in which each line names the line before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// The key of the line.
    pub key: Option<String>,
    /// The key of the line before it.
    pub after: Option<String>,
    /// True if the line shows that the file has such a chain.
    pub shows_chain: bool,
}

/// The facts about the end of a call that lines beside its result show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndShown {
    pub exit_code: Option<i64>,
    /// True if a line reports a failure.
    pub failed: bool,
    /// True if a line reports a success.
    pub succeeded: bool,
    /// True if two lines report different exit codes.
    pub differs: bool,
}

impl EndShown {
    /// Adds the facts that another line shows about the same call.
    pub fn add(&mut self, other: EndShown) {
        self.differs |= other.differs || self.exit_code.zip(other.exit_code).is_some_and(|(a, b)| a != b);
        self.exit_code = self.exit_code.or(other.exit_code);
        self.failed |= other.failed;
        self.succeeded |= other.succeeded;
    }
}

/// The token counts of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tokens {
    /// Input tokens, without cached ones.
    pub input: Option<u64>,
    /// Output tokens, including thoughts.
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    /// Tokens written to the cache.
    pub cache_write: Option<u64>,
    pub thought: Option<u64>,
    /// Tokens of other models that the service called for the message.
    pub of_others: u64,
    /// True if the message may have used more tokens than these.
    pub is_partial: bool,
    /// True if a count is not a number from 0.
    pub is_invalid: bool,
}

impl Tokens {
    /// Takes the larger count of each kind: the first lines of a message may be written before the model has ended it.
    pub fn grow(&mut self, other: &Tokens) {
        let parts = [
            (&mut self.input, other.input),
            (&mut self.output, other.output),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.thought, other.thought),
        ];
        for (part, other) in parts {
            *part = (*part).max(other);
        }
        self.of_others = self.of_others.max(other.of_others);
        self.is_partial |= other.is_partial;
        self.is_invalid |= other.is_invalid;
    }
}

/// The method of finding the facts of a line.
#[derive(Debug, Clone)]
pub(super) enum Reading {
    /// By the keys of Claude Code.
    Claude,
    /// By the expressions of a manifest.
    Rules(Box<LineKeys>),
}

/// The expressions of a manifest for the facts of a line.
#[derive(Debug, Clone)]
pub(super) struct LineKeys {
    time: Option<Expression>,
    id: Option<Expression>,
    parent: Option<Expression>,
    rewind: Option<Expression>,
    chain: Option<ChainKeys>,
    ends: Option<[Expression; 3]>,
}

/// The expressions for the place of a line in the chain.
#[derive(Debug, Clone)]
struct ChainKeys {
    key: Expression,
    after: Expression,
    /// `None` if each file has a chain.
    known_by: Option<Expression>,
}

impl Reading {
    pub(super) fn of(file: &SessionFile) -> Self {
        let compiled = |formula: &Option<crate::harness::stream::Formula>| {
            formula.as_ref().and_then(|formula| Expression::compile(&formula.0, &["line"]).ok())
        };
        let ends = file.ends.as_ref().and_then(|ends| {
            let one = |formula: &crate::harness::stream::Formula| Expression::compile(&formula.0, &["line"]).ok();
            Some([one(&ends.id)?, one(&ends.exit_code)?, one(&ends.failed)?])
        });
        let chain = file.chain.as_ref().and_then(|chain| {
            let one = |formula: &crate::harness::stream::Formula| Expression::compile(&formula.0, &["line"]).ok();
            let known_by = match &chain.known_by {
                Some(formula) => Some(one(formula)?),
                None => None,
            };
            Some(ChainKeys { key: one(&chain.key)?, after: one(&chain.after)?, known_by })
        });
        let keys = LineKeys {
            time: compiled(&file.time),
            id: compiled(&file.id),
            parent: compiled(&file.parent),
            rewind: compiled(&file.rewind),
            chain,
            ends,
        };
        Self::Rules(Box::new(keys))
    }

    pub(super) fn facts(&self, line: &Value) -> Facts {
        match self {
            Reading::Claude => of_claude(line),
            Reading::Rules(keys) => {
                let work = Work::default();
                let one = |expression: &Expression| {
                    expression.run(&Scope::new(&work).with("line", line)).ok().filter(|value| !value.is_null())
                };
                let value = |expression: &Option<Expression>| one(expression.as_ref()?);
                let end = keys.ends.as_ref().and_then(|[id, exit_code, failed]| {
                    let id = one(id).and_then(word)?;
                    let failed = one(failed).and_then(|failed| failed.as_bool());
                    let exit_code = one(exit_code).and_then(|code| code.as_i64());
                    let shown = EndShown {
                        exit_code,
                        failed: failed == Some(true) || exit_code.is_some_and(|code| code != 0),
                        succeeded: failed == Some(false) || exit_code == Some(0),
                        differs: false,
                    };
                    Some((id, shown))
                });
                let link = keys.chain.as_ref().map(|chain| Link {
                    key: one(&chain.key).and_then(word),
                    after: one(&chain.after).and_then(word),
                    shows_chain: chain
                        .known_by
                        .as_ref()
                        .is_none_or(|known_by| known_by.holds(&Scope::new(&work).with("line", line)) == Ok(true)),
                });
                Facts {
                    link: link.unwrap_or_default(),
                    id: value(&keys.id).and_then(word),
                    parent: value(&keys.parent).and_then(word),
                    at: value(&keys.time).as_ref().and_then(moment),
                    rewind: value(&keys.rewind).and_then(word),
                    content: hash(line),
                    end,
                    speaks: true,
                    ..Facts::default()
                }
            }
        }
    }
}

/// Keys whose values may differ in the copy of a line that a fork or a resumed session has.
const OF_COPY: [&str; 6] = ["sessionId", "session_id", "cwd", "version", "gitBranch", "timestamp"];

fn hash(line: &Value) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    match line {
        Value::Object(map) => {
            let entries = map.iter().filter(|(key, _)| !OF_COPY.contains(&key.as_str()));
            entries.for_each(|(key, value)| (key, value.to_string()).hash(&mut hasher));
        }
        other => other.to_string().hash(&mut hasher),
    }
    hasher.finish()
}

fn word(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text).filter(|text| !text.is_empty()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a time in milliseconds since 1970.
fn moment(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond),
        Value::Number(number) => {
            number.as_i64().or_else(|| number.as_f64().map(|number| number as i64)).filter(|ms| *ms > 0)
        }
        _ => None,
    }
}

fn of_claude(line: &Value) -> Facts {
    let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_true = |key: &str| line.get(key) == Some(&Value::Bool(true));
    let message = line.get("message");
    let blocks = message.and_then(|message| message.get("content")).and_then(Value::as_array);
    let block_kind = |block: &Value| block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let only_results = blocks.is_some_and(|blocks| {
        !blocks.is_empty() && blocks.iter().all(|block| block_kind(block).ends_with("tool_result"))
    });
    let is_of_model = kind == "assistant"
        && message.and_then(|message| message.get("model")).and_then(Value::as_str) != Some("<synthetic>");
    let id = message.filter(|_| is_of_model).and_then(|message| message.get("id")).and_then(Value::as_str);
    let agent = line.get("toolUseResult").and_then(|result| result.get("agentId")).and_then(Value::as_str);
    let call = match blocks.map(Vec::as_slice) {
        Some([block]) => block.get("tool_use_id").and_then(Value::as_str),
        _ => None,
    };
    // After a compaction the conversation begins anew; this key names the line before it.
    let parent = text("parentUuid").or_else(|| text("logicalParentUuid"));
    let is_boundary = kind == "system" && line.get("subtype").and_then(Value::as_str) == Some("compact_boundary");
    Facts {
        content: message.and_then(|message| message.get("content")).map(hash).unwrap_or_default(),
        started: agent.zip(call).map(|(agent, call)| (agent.to_owned(), call.to_owned())),
        id: text("uuid"),
        continues: parent.is_none() && (is_boundary || is_true("isCompactSummary")),
        parent,
        at: line.get("timestamp").and_then(moment),
        message: id.map(str::to_owned),
        tokens: id.and_then(|_| Some(tokens(message?.get("usage")?, message?.get("model").and_then(Value::as_str)))),
        follows_parent: kind == "user" && only_results,
        is_aside: is_true("isSidechain"),
        speaks: matches!(kind, "user" | "assistant") && !is_true("isMeta"),
        ..Facts::default()
    }
}

/// Reads the usage of a message. `model` is the model that wrote it.
fn tokens(usage: &Value, model: Option<&str>) -> Tokens {
    const KEYS: [&str; 4] = ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let is_invalid = KEYS.iter().filter_map(|key| usage.get(*key)).any(|figure| !figure.is_null() && !figure.is_u64());
    let read = message_tokens(usage, model);
    let figures = KEYS.map(|key| usage.get(key).and_then(Value::as_u64));
    let counts = if is_invalid { figures } else { std::array::from_fn(|n| figures[n].max(read.counts[n])) };
    let [input, output, cache_read, cache_write] = counts;
    Tokens {
        input,
        output,
        cache_read,
        cache_write,
        thought: usage.get("output_tokens_details").and_then(|it| it.get("thinking_tokens")).and_then(Value::as_u64),
        of_others: read.of_others,
        is_partial: read.is_partial,
        is_invalid,
    }
}

/// Returns true if only a session file of Claude Code holds such a line.
pub(super) fn is_claude(line: &Value) -> bool {
    let has = |key: &str| line.get(key).is_some();
    let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
    matches!(kind, "user" | "assistant" | "system" | "attachment")
        && has("uuid")
        && has("parentUuid")
        && has("isSidechain")
        && has("sessionId")
}

//! Recognises the requests of one conversation by digests of their messages. Pure.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::ModelRequest;
use super::words::text;
use crate::text::first_chars;

/// The number of characters at the beginning of the instructions by which requests without tools are distinguished.
const HEAD: usize = 64;

/// Digests of a whole request: of its messages, and of its kind.
pub type RequestKey = (u64, u64);

/// The place of a request in the conversations of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestPlace {
    /// The digest of the messages up to each of them, without instructions.
    beginnings: Vec<u64>,
    /// Equal for requests that offer tools. Without tools, a digest of the beginning of the instructions: an agent
    /// sends the messages of a conversation to its model for a title, too.
    kind: u64,
    /// True if the request offers tools.
    pub offers: bool,
    /// The id of the answer that the request continues, if the service keeps the conversation.
    pub previous: Option<String>,
}

impl RequestPlace {
    /// Returns the place of a request in its conversation.
    pub fn of(asked: &ModelRequest, request: &Value) -> Self {
        let offers = !asked.tools.is_empty() || asked.functions;
        let mut kind = DefaultHasher::new();
        (!offers).then(|| first_chars(&asked.preamble, HEAD)).hash(&mut kind);
        let previous = request["previous_response_id"].as_str().map(str::to_owned);
        let mut so_far = DefaultHasher::new();
        previous.hash(&mut so_far);
        let digests = messages(request).into_iter().map(|message| {
            hash_value(message, &mut so_far);
            so_far.finish()
        });
        Self { beginnings: digests.collect(), kind: kind.finish(), offers, previous }
    }

    /// Returns the digests of the whole request. Returns `None` if it has no messages.
    pub fn key(&self) -> Option<RequestKey> {
        self.beginnings.last().map(|digest| (*digest, self.kind))
    }

    /// Returns true if both requests offer tools, or both offer none and have equal instructions.
    pub fn is_like(&self, other: &Self) -> bool {
        self.kind == other.kind
    }

    /// Returns true if the first messages of both requests are equal.
    pub fn begins_as(&self, other: &Self) -> bool {
        self.beginnings.first().is_some_and(|first| other.beginnings.first() == Some(first))
    }

    /// Returns true if the messages of one of these requests are the beginning of this longer request.
    pub fn continues(&self, known: &HashSet<RequestKey>) -> bool {
        let earlier = self.beginnings.split_last().map_or(&[][..], |(_, earlier)| earlier);
        earlier.iter().any(|digest| known.contains(&(*digest, self.kind)))
    }
}

fn messages(request: &Value) -> Vec<&Value> {
    match ["messages", "input", "contents"].iter().find_map(|key| request.get(*key)) {
        Some(Value::Array(items)) => {
            items.iter().filter(|item| !matches!(text(item, "role"), "system" | "developer")).collect()
        }
        Some(only) => vec![only],
        None => Vec::new(),
    }
}

/// Adds a value to a digest without the marks of the cache, which move through a conversation.
fn hash_value(value: &Value, into: &mut DefaultHasher) {
    match value {
        Value::Array(items) => {
            items.len().hash(into);
            items.iter().for_each(|item| hash_value(item, into));
        }
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "cache_control") {
                key.hash(into);
                hash_value(value, into);
            }
        }
        Value::String(text) => text.hash(into),
        other => other.to_string().hash(into),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::gateway::Api;

    fn place(request: &Value) -> RequestPlace {
        RequestPlace::of(&Api::OpenaiChat.asked("/v1/chat/completions", request), request)
    }

    #[test]
    fn a_conversation_is_known_by_its_messages_and_the_kind_of_its_requests() {
        let user = json!({"role": "user", "content": "Do it."});
        let marked = json!({"role": "user", "content": "Do it.", "cache_control": {"type": "ephemeral"}});
        let answer = json!({"role": "assistant", "content": "ls"});
        let system = json!({"role": "system", "content": "Write a title"});
        let first = place(&json!({"messages": [user]}));
        let longer = place(&json!({"messages": [marked, answer]}));
        let title = place(&json!({"messages": [system, user]}));
        let known = HashSet::from_iter(first.key());
        assert!(longer.begins_as(&first) && longer.is_like(&first) && longer.continues(&known));
        assert!(!first.continues(&known) && first.key() != longer.key());
        assert!(title.begins_as(&first) && !title.is_like(&first) && title.key() != first.key());
        let offers = |key: &str, value: Value| place(&json!({"messages": [user], key: value}));
        let old = offers("functions", json!([{"name": "sh"}]));
        assert!(old.offers && old.is_like(&offers("tools", json!([{"type": "function", "function": {"name": "sh"}}]))));
        assert!(!old.is_like(&first) && place(&json!({})).key().is_none());
    }
}

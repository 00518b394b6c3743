//! Finds the recorded answer to a request. Pure: it neither reads files nor waits.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::Value;

use super::Api;
use super::canonical::{Canon, Canonical};
use super::cassette::{Cassette, Entry};
use super::difference;

/// A cassette that is played.
#[derive(Debug)]
pub struct Tape {
    entries: Vec<Entry>,
    /// The requests in the form in which they are compared, by entry.
    compared: Vec<Value>,
    /// The entries that were not played yet, by the digest of their request.
    waiting: HashMap<blake3::Hash, VecDeque<usize>>,
    played: BTreeSet<usize>,
}

/// A request without a recorded answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// The number of the entry whose request is nearest, and the first difference.
    pub nearest: Option<(u64, Difference)>,
}

/// The difference between a request and an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The requests differ at this place.
    At(String),
    /// The requests are equal, and each entry with this request was already played.
    PlayedBefore,
}

impl Tape {
    /// Prepares a cassette. `canon` has the rules that hold now, which may be newer than the cassette.
    pub fn new(cassette: Cassette, canon: &Canon) -> Self {
        let entries = cassette.entries;
        let compared: Vec<Value> = entries.iter().map(|entry| canon.again(entry.api, &entry.request)).collect();
        let mut waiting: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (at, (entry, body)) in entries.iter().zip(&compared).enumerate() {
            waiting.entry(digest(entry.api, &entry.method, &entry.path, body)).or_default().push_back(at);
        }
        Self { entries, compared, waiting, played: BTreeSet::new() }
    }

    /// Takes the recorded answer to a request. Equal requests are answered in the recorded order.
    ///
    /// # Errors
    /// Returns the nearest entry if no entry that is still to be played has this request.
    pub fn take(&mut self, api: Api, method: &str, request: &Canonical, canon: &Canon) -> Result<&Entry, Miss> {
        let body = canon.again(api, &request.body);
        let waiting = self.waiting.get_mut(&digest(api, method, &request.path, &body));
        let Some(queue) = waiting else { return Err(self.miss(api, method, &request.path, &body)) };
        let Some(at) = queue.pop_front() else { return Err(self.miss(api, method, &request.path, &body)) };
        self.played.insert(at);
        self.entries.get(at).ok_or(Miss { nearest: None })
    }

    /// Returns the numbers of the entries that were not played.
    pub fn left(&self) -> Vec<u64> {
        let left = self.entries.iter().enumerate().filter(|(at, _)| !self.played.contains(at));
        left.map(|(_, entry)| entry.n).collect()
    }

    fn miss(&self, api: Api, method: &str, path: &str, body: &Value) -> Miss {
        let same_kind = |entry: &Entry| entry.api == api && entry.method == method;
        // An entry that was not played yet is nearer than one that was, unless it is for something else.
        let rank = |at: usize, entry: &Entry| {
            let likeness = self.compared.get(at).map_or(0.0, |old| difference::likeness(old, body));
            let path_fits = if entry.path == path { 1.0 } else { 0.0 };
            let fresh = if self.played.contains(&at) { 0.0 } else { 0.001 };
            path_fits + likeness + fresh
        };
        let candidates = self.entries.iter().enumerate().filter(|(_, entry)| same_kind(entry));
        let nearest = candidates
            .map(|(at, entry)| (rank(at, entry), at, entry))
            .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)));
        let Some((_, at, entry)) = nearest else { return Miss { nearest: None } };
        let of_path = difference::first(&Value::from(entry.path.as_str()), &Value::from(path))
            .map(|difference| difference.replacen("``", "the path", 1));
        let old = self.compared.get(at).unwrap_or(&Value::Null);
        let difference = of_path.or_else(|| difference::first(old, body));
        Miss { nearest: Some((entry.n, difference.map_or(Difference::PlayedBefore, Difference::At))) }
    }
}

impl std::fmt::Display for Miss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.nearest {
            None => f.write_str("the cassette has no entry for this kind of request"),
            Some((n, Difference::At(difference))) => {
                write!(f, "the cassette has no such request; nearest is entry {n}: {difference}")
            }
            Some((n, Difference::PlayedBefore)) => {
                write!(f, "the agent sends the request of entry {n} more often than it was recorded")
            }
        }
    }
}

fn digest(api: Api, method: &str, path: &str, body: &Value) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for text in [api.word(), method, path] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    add(&mut hasher, body);
    hasher.finalize()
}

/// Adds a value to a digest. The order of keys in objects makes no difference.
fn add(hasher: &mut blake3::Hasher, value: &Value) {
    match value {
        Value::Array(items) => {
            hasher.update(b"[").update(&(items.len() as u64).to_le_bytes());
            items.iter().for_each(|item| add(hasher, item));
        }
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            hasher.update(b"{").update(&(keys.len() as u64).to_le_bytes());
            for key in keys {
                hasher.update(&(key.len() as u64).to_le_bytes()).update(key.as_bytes());
                add(hasher, fields.get(key).unwrap_or(&Value::Null));
            }
        }
        Value::String(text) => {
            hasher.update(b"\"").update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        plain => {
            hasher.update(b"=").update(plain.to_string().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::canonical::{Here, Rules};
    use super::super::cassette::Header;
    use super::*;
    use crate::secrets::Masker;

    fn canon(ignore_results: bool) -> Canon {
        Canon::new(&Here::default(), Rules { ignore_results, ..Rules::default() }, Masker::default())
    }

    fn entry(n: u64, request: Value, says: &str) -> Entry {
        Entry {
            n,
            api: Api::Anthropic,
            method: "POST".into(),
            path: "/v1/messages".into(),
            request,
            status: 200,
            headers: Default::default(),
            response: json!(says),
            error: None,
            ms: None,
        }
    }

    fn ask(tape: &mut Tape, canon: &Canon, body: Value) -> Result<String, String> {
        let request = canon.request(Api::Anthropic, "/v1/messages", &body);
        let taken = tape.take(Api::Anthropic, "POST", &request, canon);
        taken.map(|entry| entry.response.to_string()).map_err(|miss| miss.to_string())
    }

    #[test]
    fn equal_requests_are_answered_in_order_and_one_more_is_a_miss() {
        let canon = canon(false);
        let request = json!({"messages": [{"role": "user", "content": "hi"}], "model": "m"});
        let other = json!({"model": "m", "messages": [{"content": "hi", "role": "user"}]});
        let cassette = Cassette {
            header: Header::default(),
            entries: vec![entry(1, request.clone(), "busy"), entry(2, request, "hello"), entry(3, json!({}), "-")],
        };
        let mut tape = Tape::new(cassette, &canon);
        assert_eq!(ask(&mut tape, &canon, other.clone()).unwrap(), "\"busy\"");
        assert_eq!(ask(&mut tape, &canon, other.clone()).unwrap(), "\"hello\"");
        let error = ask(&mut tape, &canon, other).unwrap_err();
        assert!(error.contains("entry 1 more often than it was recorded"), "{error}");
        assert_eq!(tape.left(), [3]);
    }

    #[test]
    fn a_miss_names_the_nearest_entry_and_the_first_difference() {
        let canon = canon(false);
        let ask_for = |text: &str| json!({"model": "m", "messages": [{"role": "user", "content": text}]});
        let entries = vec![entry(1, ask_for("write a poem"), "a"), entry(2, ask_for("read the file a.txt"), "b")];
        let mut tape = Tape::new(Cassette { header: Header::default(), entries }, &canon);
        let error = ask(&mut tape, &canon, ask_for("read the file b.txt")).unwrap_err();
        assert_eq!(
            error,
            "the cassette has no such request; nearest is entry 2: `messages[0].content` was \
             \"read the file a.txt\", and is \"read the file b.txt\" now"
        );
    }

    #[test]
    fn results_of_tools_are_compared_unless_they_are_ignored() {
        let with = |result: &str| {
            json!({"messages": [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_0123456789ab", "content": result}]}]})
        };
        for (ignore, hit) in [(false, false), (true, true)] {
            let canon = canon(ignore);
            let stored = canon.request(Api::Anthropic, "/v1/messages", &with("1.01 s")).body;
            let cassette = Cassette { header: Header::default(), entries: vec![entry(1, stored, "ok")] };
            let mut tape = Tape::new(cassette, &canon);
            assert_eq!(ask(&mut tape, &canon, with("0.99 s")).is_ok(), hit);
        }
    }
}

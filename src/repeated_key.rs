//! Finds an object of a line that has a key twice. Readers of JSON take one of the two values without a word, so what the
//! agent said is unknown.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::memchr2;

/// The number of keys of an object from which they are looked up in a set.
const MANY: usize = 32;

/// Returns a key that an object of this JSON text has twice, or `None` if there is none or the text is no object or list.
pub(crate) fn repeated_key(text: &str) -> Option<Cow<'_, str>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let bytes = text.as_bytes();
    let mut open: Vec<Keys<'_>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => open.push(Keys::default()),
            b'}' | b']' => _ = open.pop(),
            b'"' => {
                let begin = at;
                at = end_of_text(bytes, begin)?;
                let is_key = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                if is_key && let Some(keys) = open.last_mut() {
                    let key = unescaped(text.get(begin..at)?);
                    if !keys.add(key.clone()) {
                        return Some(key);
                    }
                }
                at += 1;
            }
            _ => {}
        }
    }
    None
}

/// Returns the place of the quotation mark that ends a text.
fn end_of_text(bytes: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// Returns a key without its escapes.
fn unescaped(key: &str) -> Cow<'_, str> {
    let read = || serde_json::from_str(&format!("\"{key}\"")).ok();
    if key.contains('\\') { read().map_or(Cow::Borrowed(key), Cow::Owned) } else { Cow::Borrowed(key) }
}

/// The keys of an open object.
#[derive(Default)]
struct Keys<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Keys<'a> {
    /// Adds a key. Returns false if it is known.
    fn add(&mut self, key: Cow<'a, str>) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < MANY {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::repeated_key;

    #[test]
    fn a_key_counts_within_its_own_object() {
        for text in [
            "",
            "text \"a\": 1, \"a\": 2",
            "{}",
            r#"{"a": {"a": [{"a": 1}, {"a": 2}]}, "b": "a"}"#,
            r#"["a", "a", {"b": "a"}]"#,
            r#"{"a": "\"a\": 1, \\", "b": "{\"b\": 1, \"b\": 2}"}"#,
            r#"{"a": 1, "A": 2, "a ": 3}"#,
            r#"{"a": 1, "b"#,
        ] {
            assert_eq!(repeated_key(text), None, "{text}");
        }
        for text in [
            r#"{"a": 1, "a": 2}"#,
            r#"  {"b": {"c": [], "a": {"a": 1}, "a" : null}}"#,
            r#"[1, {"a": {}, "b": [], "a": 0}]"#,
            r#"{"a": 1, "\u0061": 2}"#,
            r#"{"c": "\\", "a": "\"", "a": ""}"#,
        ] {
            assert_eq!(repeated_key(text).as_deref(), Some("a"), "{text}");
        }
    }

    #[test]
    fn an_object_may_have_many_keys() {
        let keys: Vec<String> = (0..100_000).map(|number| format!("\"k{number}\":1")).collect();
        let text = format!("{{{}}}", keys.join(","));
        assert_eq!(repeated_key(&text), None);
        for key in ["k5", "k99999"] {
            let text = format!("{},\"{key}\":2}}", text.trim_end_matches('}'));
            assert_eq!(repeated_key(&text).as_deref(), Some(key));
        }
    }
}

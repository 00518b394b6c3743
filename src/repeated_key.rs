//! Finds an object of a line that has a key twice. Readers of JSON take one of the two values silently, so what the
//! agent said is unknown.

use std::borrow::Cow;

use memchr::memchr2;

/// The number of keys of an object up to which each new one is compared with those before it.
const MAX_KEYS_IN_LIST: usize = 64;

/// The number of bytes of a text from which its end is searched for.
const SHORT: usize = 32;

/// Returns a key that an object of this JSON text has twice, or `None` if there is none or the text is no object or list.
pub fn repeated_key(text: &str) -> Option<Cow<'_, str>> {
    KeyFinder::default().repeated(text)
}

/// A key that an object has twice, with the place of the second one: its line, and the column of its end, both from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct RepeatedKey<'a> {
    pub key: Cow<'a, str>,
    pub line: usize,
    pub column: usize,
}

impl<'a> RepeatedKey<'a> {
    /// Finds a key that an object of this JSON text has twice, as [`repeated_key`] does.
    pub fn find(text: &'a str) -> Option<Self> {
        let key = KeyFinder::default().find(text)?;
        let before = text.get(..=key.end)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        Some(Self { key: key.of(text), line, column: before.len() - line_start })
    }
}

/// A search for repeated keys that can be used for many lines.
#[derive(Debug, Default)]
pub struct KeyFinder {
    /// The keys of the open objects.
    keys: Vec<Key>,
    /// The number of keys before each open object or list.
    open: Vec<usize>,
}

/// The key of an open object. A key with escapes can equal one without, so keys with different marks are only known to
/// differ if neither has escapes.
#[derive(Debug, Clone, Copy)]
struct Key {
    /// The first bytes and the length, or 0 if the key has escapes.
    mark: u64,
    begin: usize,
    end: usize,
}

impl KeyFinder {
    /// Returns a key that an object of this JSON text has twice, as [`repeated_key`] does.
    pub fn repeated<'a>(&mut self, text: &'a str) -> Option<Cow<'a, str>> {
        self.find(text).map(|key| key.of(text))
    }

    /// Returns the second one of two equal keys of an object.
    fn find(&mut self, text: &str) -> Option<Key> {
        if !text.trim_start().starts_with(['{', '[']) {
            return None;
        }
        self.keys.clear();
        self.open.clear();
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => self.open.push(self.keys.len()),
                b'}' | b']' => {
                    if let Some(found) = self.close(text) {
                        return Some(found);
                    }
                }
                b'"' => {
                    let begin = at;
                    let has_escapes;
                    (at, has_escapes) = end_of_text(bytes, begin)?;
                    let is_key = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                    if is_key && let Some(found) = self.add(text, begin, at, has_escapes) {
                        return Some(found);
                    }
                    at += 1;
                }
                _ => {}
            }
        }
        None
    }

    /// Adds a key to the innermost object. Returns it if it is known.
    fn add(&mut self, text: &str, begin: usize, end: usize, has_escapes: bool) -> Option<Key> {
        let first = *self.open.last()?;
        let mark = if has_escapes { 0 } else { mark(text.as_bytes(), begin, end - begin) };
        let key = Key { mark, begin, end };
        let before = &self.keys[first..];
        // Each key may equal one with escapes.
        let may_be = |known: &&Key| known.mark == key.mark || known.mark == 0 || key.mark == 0;
        if before.len() < MAX_KEYS_IN_LIST && before.iter().filter(may_be).any(|known| known.of(text) == key.of(text)) {
            return Some(key);
        }
        self.keys.push(key);
        None
    }

    /// Ends the innermost object. Returns a key that it has twice, if it has so many that they were not compared before.
    fn close(&mut self, text: &str) -> Option<Key> {
        let first = self.open.pop()?;
        let mut found = None;
        if self.keys.len() - first > MAX_KEYS_IN_LIST {
            let mut all: Vec<(Cow<'_, str>, Key)> = self.keys[first..].iter().map(|key| (key.of(text), *key)).collect();
            all.sort_by(|one, other| one.0.cmp(&other.0));
            found = all.windows(2).find(|two| two[0].0 == two[1].0).map(|two| two[1].1);
        }
        self.keys.truncate(first);
        found
    }
}

impl Key {
    /// Returns the key without its escapes.
    fn of<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let key = text.get(self.begin..self.end).unwrap_or_default();
        let read = || serde_json::from_str(&format!("\"{key}\"")).ok();
        if self.mark == 0 { read().map_or(Cow::Borrowed(key), Cow::Owned) } else { Cow::Borrowed(key) }
    }
}

/// Returns the place of the quotation mark that ends a text, and whether the text has escapes.
fn end_of_text(bytes: &[u8], begin: usize) -> Option<(usize, bool)> {
    let (mut at, mut has_escapes) = (begin, false);
    loop {
        at = match eight(bytes, at) {
            // Eight bytes at a time, because most texts are short and a search costs more to begin.
            Some(word) if at < begin + SHORT => match first_of_two(word, b'"', b'\\') {
                Some(within) => at + within,
                None => {
                    at += 8;
                    continue;
                }
            },
            _ => at + memchr2(b'"', b'\\', bytes.get(at..)?)?,
        };
        if bytes[at] == b'"' {
            return Some((at, has_escapes));
        }
        has_escapes = true;
        at += 2;
    }
}

/// Returns the eight bytes from a place.
fn eight(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Returns the place of the first of eight bytes that is one of two.
fn first_of_two(word: u64, one: u8, other: u8) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    // The lowest marked byte is right; higher ones may be marked by its carry.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let found = zero(word ^ (ONES * u64::from(one))) | zero(word ^ (ONES * u64::from(other)));
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// Returns the first bytes and the length of a key as one number.
fn mark(bytes: &[u8], begin: usize, length: usize) -> u64 {
    // The last key of a line may have less than eight bytes after it.
    let few = || bytes.iter().skip(begin).take(7).rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let first = eight(bytes, begin).unwrap_or_else(few);
    let kept = if length < 7 { (1 << (8 * length)) - 1 } else { u64::MAX >> 8 };
    (first & kept) | (u64::try_from(length.clamp(1, 255)).unwrap_or(1) << 56)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

    use super::{RepeatedKey, repeated_key};

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
    fn the_place_of_a_repeated_key_is_its_second_occurrence() {
        let many: Vec<String> = (0..100).map(|number| format!("\"k{number}\":1")).collect();
        for text in [
            "{\"a\": 1,\n\"b\": {},\n  \"a\": 2}",
            "[\n{\"b\":\n{\"\": 0, \"\": 0}}]",
            &format!("{{\"a\":0,{},\n\n  \"a\":1}}", many.join(",")),
        ] {
            let found = RepeatedKey::find(text).unwrap();
            let column = if found.key == "a" { 5 } else { 10 };
            assert_eq!((found.line, found.column), (3, column), "{text}");
        }
    }

    /// The answer of serde's own reader: true if an object has a key twice.
    struct Twice(bool);

    impl<'de> Deserialize<'de> for Twice {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> Visitor<'de> for Reader {
                type Value = Twice;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("JSON")
                }

                fn visit_u64<E>(self, _: u64) -> Result<Twice, E> {
                    Ok(Twice(false))
                }

                fn visit_str<E>(self, _: &str) -> Result<Twice, E> {
                    Ok(Twice(false))
                }

                fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Twice, A::Error> {
                    let mut found = false;
                    while let Some(Twice(within)) = list.next_element()? {
                        found |= within;
                    }
                    Ok(Twice(found))
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Twice, A::Error> {
                    let (mut found, mut keys) = (false, Vec::new());
                    while let Some((key, Twice(within))) = map.next_entry::<String, Twice>()? {
                        found |= within || keys.contains(&key);
                        keys.push(key);
                    }
                    Ok(Twice(found))
                }
            }
            deserializer.deserialize_any(Reader)
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let key =
            || prop::sample::select(vec!["a", r"\u0061", "", "abcdefg", "abcdefgh", r#"b\""#, r"\\", "\u{e4}: {"]);
        let leaf = prop_oneof![Just("1".to_owned()), key().prop_map(|text| format!("\"{text}\""))];
        leaf.prop_recursive(4, 40, 80, move |inner| {
            let entry = (key(), inner.clone()).prop_map(|(key, value)| format!("\"{key}\" :{value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
                prop::collection::vec(entry, 0..5).prop_map(|entries| format!("{{{}}}", entries.join(","))),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_finds_what_a_reader_of_json_sees(text in json()) {
            let Twice(twice) = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(repeated_key(&text).is_some(), twice, "{}", text);
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

//! Refuses JSON that has a key twice in one object. Readers of JSON take one of the two values silently.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Checks that no object of a JSON text has a key twice.
///
/// # Errors
/// Returns an error with the key and its line if an object has a key twice, or if the text is not JSON.
pub fn check(text: &[u8]) -> Result<(), String> {
    serde_json::from_slice::<UniqueKeys>(text).map(drop).map_err(|error| error.to_string())
}

/// A JSON value in which no object has a key twice. The value itself is not kept.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeys, A::Error> {
        while list.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format!("`{key}` occurs twice in the same object")));
            }
            keys.insert(key);
            map.next_value::<UniqueKeys>()?;
        }
        Ok(UniqueKeys)
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn a_key_counts_within_its_own_object() {
        let text = r#"{"a": {"a": [{"a": 1.5}, {"a": -2}]}, "b": [null, true, "a", 3]}"#;
        assert_eq!(check(text.as_bytes()), Ok(()));
        for text in ["{\"a\": 1,\n\"b\": {},\n\"a\": 2}", "[\n{\"b\":\n{\"a\": [], \"\\u0061\": 0}}]"] {
            let error = check(text.as_bytes()).unwrap_err();
            assert!(error.starts_with("`a` occurs twice in the same object at line 3 "), "{error}");
        }
    }
}

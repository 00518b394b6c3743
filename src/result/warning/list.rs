//! Reads and writes the warnings of a result as data, for `#[serde(with)]`.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

use super::Warning;
use crate::result::old_warnings;

/// The code of a warning that consists of text only.
const TEXT: &str = "text";

/// Writes each warning with its text.
///
/// # Errors
/// Returns an error if the serializer fails.
pub fn serialize<S: Serializer>(warnings: &[Warning], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(warnings.iter().map(Warning::write))
}

/// Reads warnings of any version.
///
/// # Errors
/// Returns an error if an entry is neither an object with a `code` nor a text.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Warning>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    values.into_iter().map(|value| Warning::read(value).map_err(D::Error::custom)).collect()
}

impl Warning {
    fn read(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(old_warnings::read(text)),
            Value::Object(map) => {
                let Some(Value::String(code)) = map.get("code") else {
                    return Err("a warning has no `code`".to_owned());
                };
                if code == TEXT {
                    let said = map.get("text").and_then(Value::as_str).unwrap_or_default();
                    return Ok(Warning::Text { said: said.to_owned() });
                }
                Ok(serde_json::from_value(Value::Object(map.clone())).unwrap_or(Warning::Unknown(map)))
            }
            other => Err(format!("a warning is neither an object nor a text: {other}")),
        }
    }

    fn write(&self) -> Value {
        if let Warning::Unknown(map) = self {
            return Value::Object(map.clone());
        }
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(map) = &mut value {
            map.insert("text".to_owned(), Value::String(self.to_string()));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Warning {
        Warning::read(value).unwrap()
    }

    #[test]
    fn the_text_is_made_from_the_fields_and_not_read_back() {
        let told = json!({"code": "ignored_files", "bytes": 7, "text": "9 bytes of something else"});
        assert_eq!(read(told), Warning::IgnoredFiles { bytes: 7 });
        let written = Warning::IgnoredFiles { bytes: 7 }.write();
        let text = "7 bytes of ignored files are not part of the workspace's change";
        assert_eq!(written, json!({"code": "ignored_files", "bytes": 7, "text": text}));
    }

    #[test]
    fn a_warning_of_a_newer_version_survives() {
        for newer in [
            json!({"code": "of_tomorrow", "x": [1], "text": "something new"}),
            json!({"code": "protected_file", "path": "a", "change": "renamed", "put_back": true, "text": "something new"}),
        ] {
            let warning = read(newer.clone());
            assert_eq!((warning.write(), warning.to_string()), (newer, "something new".to_owned()));
        }
        assert_eq!(read(json!({"code": "of_tomorrow"})).to_string(), "of_tomorrow");
        assert!(Warning::read(json!({"text": "x"})).is_err() && Warning::read(json!(1)).is_err());
    }

    #[test]
    fn what_an_older_version_wrote_stays_text() {
        let old = read(json!("the agent exited 3 after its answer"));
        assert_eq!(old.write(), json!({"code": "text", "text": "the agent exited 3 after its answer"}));
        assert_eq!(read(old.write()), old);
    }
}

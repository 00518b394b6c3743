//! The form of `--retries` in `run.json`: `retries` is 0 if the option is absent, and `no_retries` is true if it is 0.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

// Without a doc comment, which would become the description of the options in the schema.
#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WrittenRetries {
    /// The maximum number of retries of an errored trial.
    retries: u32,
    /// True if no trial is retried, whatever its case says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_retries: bool,
}

pub fn serialize<S: Serializer>(most: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    WrittenRetries { retries: most.unwrap_or(0), no_retries: *most == Some(0) }.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let WrittenRetries { retries, no_retries } = WrittenRetries::deserialize(deserializer)?;
    Ok(match (retries, no_retries) {
        (_, true) => Some(0),
        (0, false) => None,
        (most, false) => Some(most),
    })
}

#[cfg(test)]
mod tests {
    use crate::run::RunOptions;

    #[test]
    fn an_absent_option_is_not_no_retries() {
        for (most, written) in [(None, "0,"), (Some(0), "0,\"no_retries\":true,"), (Some(2), "2,")] {
            let text = serde_json::to_string(&RunOptions { retries: most, ..RunOptions::default() }).unwrap();
            let expected = format!("\"keep_workspace\":\"failed\",\"retries\":{written}\"fail_fast\":false");
            assert!(text.contains(&expected), "{text}");
            assert_eq!(serde_json::from_str::<RunOptions>(&text).unwrap().retries, most, "{text}");
        }
        assert_eq!(serde_json::from_str::<RunOptions>("{}").unwrap().retries, None);
    }
}

//! The home directory that an agent works with.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::yaml::forms::{Forms, deserialize_forms};

/// The reason why the environment of a case, a manifest or a variant cannot set the home.
pub const HOME_IS_PRIVATE: &str =
    "`HOME` is the trial's private home, which keeps the user's own skills out of every arm";

/// The home directory of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Home {
    /// `home: user`: the user's own home, which is reported as a warning in every result.
    Named(HomeName),
    /// A private home.
    Private(PrivateHome),
}

// Not derived: an untagged enum loses which key was wrong, and where.
impl<'de> Forms<'de> for Home {
    const EXPECTED: &'static str = "`user`, or a map such as `{copy: [.my-agent/login.json]}`";

    fn from_text<E: serde::de::Error>(name: &str) -> Result<Self, E> {
        HomeName::deserialize(serde::de::IntoDeserializer::into_deserializer(name)).map(Home::Named)
    }

    fn from_map<A: serde::de::MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        PrivateHome::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Home::Private)
    }
}

deserialize_forms!(Home, deserialize_any);

/// A home by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HomeName {
    /// The user's own home.
    User,
}

/// A private home.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PrivateHome {
    /// Files and folders copied from the user's home, if they exist.
    #[serde(default)]
    pub copy: Vec<PathBuf>,
}

impl Default for Home {
    fn default() -> Self {
        Home::Private(PrivateHome::default())
    }
}

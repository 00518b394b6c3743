//! A cassette: the recorded exchanges of a session with a model, as a file that people review.
//!
//! The first line is the header; each other line is an exchange in its canonical form. What an earlier request already
//! holds is referred to by the number of its entry, and large texts and lists lie in files of their own, in the folder
//! `<name>.bodies` beside the cassette.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Api;
use super::exchange::Failure;
use crate::trace::Agent;

mod compact;
mod read;
mod record;
mod write;

pub use read::{load, may_replace};
pub use record::{entries, numbered};
pub use write::save;

/// The version of the format that this program writes, and the newest that it reads.
pub const VERSION: u64 = 1;

/// A recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cassette {
    pub header: Header,
    /// The exchanges.
    pub entries: Vec<Entry>,
}

/// The first line of a cassette.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Header {
    /// The version of the format.
    pub cassette: u64,
    /// The harness. Absent in a recording by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The agent and its version, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The API of the first exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The time of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// For each entry, the milliseconds from the request to the first and to the last part of the answer. They are
    /// stored together here, so that a new recording changes no other line without need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ms: Vec<Option<(u64, u64)>>,
}

/// A recorded exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The number of the entry, from 1.
    pub n: u64,
    /// The model API of the request.
    pub api: Api,
    /// The HTTP method.
    pub method: String,
    /// The path, including the query.
    pub path: String,
    /// The body of the request.
    #[serde(default)]
    pub request: Value,
    /// The HTTP status of the answer.
    pub status: u16,
    /// Headers of the answer that influence how an agent continues.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body of the answer.
    #[serde(default)]
    pub response: Value,
    /// The failure that ended the exchange, such as a stream that was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Milliseconds from the request to the first and to the last part of the answer, as the header of the file has
    /// them.
    #[serde(skip)]
    pub ms: Option<(u64, u64)>,
}

/// Returns the folder of the large texts of a cassette. A name without `.jsonl` is kept whole, so that `a.v1` and `a.v2`
/// have different folders.
pub fn bodies(cassette: &Path) -> PathBuf {
    let name = cassette.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".jsonl").unwrap_or(&name);
    cassette.with_file_name(format!("{stem}.bodies"))
}

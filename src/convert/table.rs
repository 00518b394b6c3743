//! Tables of samples: JSON Lines, JSON lists and CSV.

use std::path::Path;

use serde_json::{Map, Value};

use super::{csv, source, whole};
use crate::yaml::{self, YamlError};

/// A sample with its line.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The line in the file, from 1, if the file has one sample in each line.
    pub line: Option<usize>,
    /// The place in the file, for a file that is one list.
    pub key: String,
    pub columns: Map<String, Value>,
}

/// Returns the samples of a file.
///
/// # Errors
/// Returns an error with its line if the file is not a table of samples.
pub fn read(path: &Path) -> Result<Vec<Sample>, YamlError> {
    if path.is_dir() {
        return Err(whole(path, "this is a folder; name a file of samples"));
    }
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return Err(whole(path, "Parquet is not read; export the samples as JSON Lines"));
    }
    let text = yaml::read(path)?;
    if text.trim().is_empty() {
        return Err(whole(path, "the file is empty"));
    }
    if path.extension().is_some_and(|extension| extension == "csv") {
        let rows = csv::rows(path, &text)?.into_iter();
        let sample = |row: csv::Row| Sample {
            line: Some(row.line),
            key: String::new(),
            columns: row.cells.into_iter().map(|(name, value)| (name, Value::String(value))).collect(),
        };
        return Ok(rows.map(sample).collect());
    }
    let is_list = text.trim_start().starts_with('[');
    let values: Vec<(Option<usize>, String, Value)> = if is_list {
        let Value::Array(list) = source::json(path, &text)? else { return Err(whole(path, "this is not a list")) };
        list.into_iter().enumerate().map(|(at, value)| (None, format!("[{at}]"), value)).collect()
    } else {
        let lines = source::json_lines(path, &text)?;
        lines.into_iter().map(|(line, value)| (Some(line), String::new(), value)).collect()
    };
    let sample = |(line, key, value): (Option<usize>, String, Value)| match value {
        Value::Object(columns) => Ok(Sample { line, key, columns }),
        _ => Err(match line {
            Some(line) => whole(path, format!("line {line}: a sample must be a map of keys")),
            None => whole(path, format!("`{key}`: a sample must be a map of keys")),
        }),
    };
    values.into_iter().map(sample).collect()
}

//! The rows of a dataset of coder-eval, and `${row.FIELD}` in its texts.

use std::path::Path;

use serde_json::{Map, Value};

use super::super::parts::scalar;
use super::super::refused::{Refused, refused};
use super::super::{python, source, typed};
use crate::yaml::{self, Step, StepPart, YamlError};

/// The maximum number of rows.
const MAX_ROWS: usize = 10_000;
/// The maximum number of rows in whose text places are searched: the search parses the file again for each value.
const MAX_SEARCHED_ROWS: usize = 1_000;
/// The begin of a place that a row fills.
const MARK: &str = "${row.";

/// A row of a dataset.
pub struct Row {
    pub id: String,
    columns: Map<String, Value>,
    /// The position in `dataset.rows`, from 0; `None` for a row of a JSON Lines file.
    number: Option<usize>,
}

/// The text of the file of a task.
pub struct TaskText {
    text: String,
    has_other_forms: bool,
}

impl TaskText {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn read(file: &Path) -> Result<Self, YamlError> {
        let text = yaml::read(file)?;
        Ok(Self { has_other_forms: python::has_other_forms(&text), text })
    }

    /// Returns what is written for a value of a row, if its place is found.
    fn written(&self, row: usize, name: &str) -> Option<String> {
        let steps = [Step::Key("dataset"), Step::Key("rows"), Step::Item(row), Step::Key(name)];
        let place = (row < MAX_SEARCHED_ROWS).then(|| yaml::find(&self.text, &steps, StepPart::Value)).flatten()?;
        self.text.get(place).map(str::to_owned)
    }
}

/// Returns the rows of a task: one `None` if it has no dataset.
///
/// # Errors
/// Returns the key that is wrong.
pub fn of_task(file: &Path, keys: &Map<String, Value>) -> Result<Vec<Option<Row>>, Refused> {
    let Some(dataset) = keys.get("dataset").filter(|dataset| !dataset.is_null()) else { return Ok(vec![None]) };
    let own = typed::list(dataset.get("rows"), "dataset.rows")?.iter().cloned().enumerate();
    let mut values: Vec<(Option<usize>, Value)> = own.map(|(number, value)| (Some(number), value)).collect();
    for path in typed::texts(dataset.get("paths"), "dataset.paths")? {
        let rows = source::named(&source::folder(file), &path).map_err(|why| refused("dataset.paths", why))?;
        let text = yaml::read(&rows).map_err(|error| refused("dataset.paths", error.to_string()))?;
        let lines = source::json_lines(&rows, &text).map_err(|error| refused("dataset.paths", error.to_string()))?;
        values.extend(lines.into_iter().map(|(_, value)| (None, value)));
    }
    if values.is_empty() || values.len() > MAX_ROWS {
        return Err(refused("dataset", format!("it has {} rows; 1 to {MAX_ROWS} can be converted", values.len())));
    }
    let id = typed::text(dataset.get("id_field"), "dataset.id_field")?.unwrap_or("id");
    let row = |(number, value): (Option<usize>, Value)| match value {
        Value::Object(columns) => match columns.get(id).and_then(scalar) {
            Some(id) => Ok(Some(Row { id, columns, number })),
            None => Err(refused("dataset", format!("a row has no `{id}`"))),
        },
        _ => Err(refused("dataset", "a row is not a map of keys")),
    };
    values.into_iter().map(row).collect()
}

impl Row {
    /// Returns a text with its `${row.FIELD}` replaced once, as in the source.
    ///
    /// # Errors
    /// Returns the key of a value that the row does not have, or whose text is not known.
    pub fn fill(&self, text: &str, task: &TaskText) -> Result<String, Refused> {
        let mut done = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(MARK) {
            done.push_str(before);
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
            let (name, behind) = after.split_at(end);
            let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
            match behind.strip_prefix('}').filter(|_| is_name) {
                Some(behind) => {
                    done.push_str(&self.value(name, task)?);
                    rest = behind;
                }
                None => {
                    done.push_str(MARK);
                    rest = after;
                }
            }
        }
        done.push_str(rest);
        Ok(done)
    }

    /// Returns a value with `${row.FIELD}` replaced in all its texts.
    ///
    /// # Errors
    /// Returns the key of a value that the row does not have, or whose text is not known.
    pub fn fill_all(&self, value: &Value, task: &TaskText) -> Result<Value, Refused> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill(text, task)?),
            Value::Array(list) => {
                Value::Array(list.iter().map(|item| self.fill_all(item, task)).collect::<Result<_, _>>()?)
            }
            Value::Object(map) => {
                let pairs = map.iter().map(|(key, value)| self.fill_all(value, task).map(|value| (key.clone(), value)));
                Value::Object(pairs.collect::<Result<_, _>>()?)
            }
            other => other.clone(),
        })
    }

    /// Returns the text that the source puts in the place of `${row.NAME}`.
    fn value(&self, name: &str, task: &TaskText) -> Result<String, Refused> {
        let place = match self.number {
            Some(number) => format!("dataset.rows[{number}].{name}"),
            None => "dataset.paths".to_owned(),
        };
        let wrong = |why: String| refused(&place, format!("`{MARK}{name}}}`: {why}"));
        let value = self.columns.get(name).ok_or_else(|| wrong("the row has no such key".to_owned()))?;
        if value.is_array() || value.is_object() {
            return Err(wrong("the value is a list or a map, which the source does not put into a text".to_owned()));
        }
        let text = match self.number {
            Some(number) => python::yaml_text(value, task.has_other_forms, || task.written(number, name)),
            None => python::text(value),
        };
        // The source writes nothing for null.
        text.map(Option::unwrap_or_default).map_err(wrong)
    }
}

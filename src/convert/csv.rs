//! Reads tables of comma-separated values, by RFC 4180.

use std::path::Path;

use super::whole;
use crate::yaml::YamlError;

/// A row with its names, in the order of the header.
#[derive(Debug, Clone)]
pub struct Row {
    /// The line in the file, from 1.
    pub line: usize,
    /// The cells: the name of the column and the value.
    pub cells: Vec<(String, String)>,
}

/// Returns the rows below the header.
///
/// # Errors
/// Returns an error if a quote is not closed, the header has a name twice, or a row has more cells than the header.
pub fn rows(path: &Path, text: &str) -> Result<Vec<Row>, YamlError> {
    let mut records = records(path, text)?.into_iter();
    let Some((_, header)) = records.next() else { return Ok(Vec::new()) };
    let names: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
    for (at, name) in names.iter().enumerate() {
        if names.iter().take(at).any(|other| other == name) {
            return Err(whole(path, format!("the header has the column `{name}` twice")));
        }
    }
    let mut rows = Vec::new();
    for (line, cells) in records {
        if cells.len() > names.len() {
            let message = format!("line {line}: the row has {} cells, and the header {}", cells.len(), names.len());
            return Err(whole(path, message));
        }
        rows.push(Row { line, cells: names.iter().cloned().zip(cells).collect() });
    }
    Ok(rows)
}

/// Returns the records, each with its line. Empty lines are left out.
fn records(path: &Path, text: &str) -> Result<Vec<(usize, Vec<String>)>, YamlError> {
    let mut records = Vec::new();
    let (mut line, mut start) = (1, 1);
    let (mut cells, mut cell) = (Vec::new(), String::new());
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\n' {
            line += 1;
        }
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            _ if is_quoted => cell.push(c),
            '"' if cell.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            ',' => {
                cells.push(std::mem::take(&mut cell));
                was_quoted = false;
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                cells.push(std::mem::take(&mut cell));
                let record = std::mem::take(&mut cells);
                if record.len() > 1 || was_quoted || record.iter().any(|cell| !cell.is_empty()) {
                    records.push((start, record));
                }
                was_quoted = false;
                start = line;
            }
            _ => cell.push(c),
        }
    }
    if is_quoted {
        return Err(whole(path, format!("line {start}: a quote is not closed")));
    }
    if !cell.is_empty() || !cells.is_empty() || was_quoted {
        cells.push(cell);
        records.push((start, cells));
    }
    Ok(records)
}

//! Finds the line of each note by its key.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Converted, Note};
use crate::yaml::{self, Step, StepPart};

/// The maximum size of a file that is searched: the search parses the file again for each note.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of notes that are searched.
const MOST: usize = 500;

/// Sets the line of every note whose key is found in its file.
pub fn find(converted: &mut Converted) {
    let cases = converted.groups.iter_mut().flat_map(|group| &mut group.cases).flat_map(|case| &mut case.notes);
    let mut texts: HashMap<PathBuf, Option<String>> = HashMap::new();
    for note in converted.notes.iter_mut().chain(cases).filter(|note| note.line.is_none()).take(MOST) {
        let text = texts.entry(note.file.clone()).or_insert_with_key(|file| content(file));
        note.line = text.as_deref().and_then(|text| line(note, text));
    }
}

/// Returns the part of a file that is YAML or JSON: the whole, or the front matter.
fn content(file: &Path) -> Option<String> {
    if !file.is_file() {
        return None;
    }
    let text = yaml::read(file).ok().filter(|text| text.len() <= MAX_BYTES)?;
    let is_front = file.extension().is_some_and(|extension| extension == "md") && text.starts_with("---");
    let end = if is_front { text.get(3..)?.find("\n---").map(|at| at + 4) } else { None };
    Some(end.and_then(|end| text.get(..end)).unwrap_or(&text).to_owned())
}

fn line(note: &Note, text: &str) -> Option<usize> {
    let steps = steps(&note.key);
    // A key that is missing is noted at the nearest place around it.
    let places = (1..=steps.len()).rev().filter_map(|length| steps.get(..length));
    let range = places.map(|steps| yaml::find(text, steps, StepPart::Key)).find(Option::is_some)??;
    Some(text.get(..range.start)?.matches('\n').count() + 1)
}

/// Returns the steps of a key such as `evals[0].files[1]`.
fn steps(key: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in key.split('.') {
        let (name, rest) = part.split_once('[').map_or((part, ""), |(name, _)| (name, &part[name.len()..]));
        if !name.is_empty() {
            steps.push(Step::Key(name));
        }
        let items = rest.split('[').filter_map(|item| item.strip_suffix(']')?.parse().ok());
        steps.extend(items.map(Step::Item));
    }
    steps
}

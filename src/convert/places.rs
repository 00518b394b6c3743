//! Finds the line of each note by its key.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Converted, Note};
use crate::yaml::{self, Step, StepPart};

/// The maximum size in bytes of a file that is searched.
const MAX_BYTES: usize = 1 << 20;
/// The maximum number of notes that are searched.
const MAX_NOTES: usize = 500;
/// The maximum number of bytes that all searches parse: each search parses its file again.
const MAX_PARSED_BYTES: usize = 128 << 20;

/// Sets the line of the notes whose key is found in their file. The last ones of many in large files get no line.
pub fn find(converted: &mut Converted) {
    find_within(converted, MAX_PARSED_BYTES);
}

fn find_within(converted: &mut Converted, mut left: usize) {
    let cases = converted.groups.iter_mut().flat_map(|group| &mut group.cases).flat_map(|case| &mut case.notes);
    let mut texts: HashMap<PathBuf, Option<String>> = HashMap::new();
    for note in converted.notes.iter_mut().chain(cases).filter(|note| note.line.is_none()).take(MAX_NOTES) {
        let text = texts.entry(note.file.clone()).or_insert_with_key(|file| content(file));
        note.line = text.as_deref().and_then(|text| line(note, text, &mut left));
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

/// Returns the line of a note, unless more bytes than those `left` would have to be parsed.
fn line(note: &Note, text: &str, left: &mut usize) -> Option<usize> {
    let steps = steps(&note.key);
    // A key that is missing is noted at the nearest place around it.
    for steps in (1..=steps.len()).rev().filter_map(|length| steps.get(..length)) {
        *left = left.checked_sub(text.len())?;
        if let Some(range) = yaml::find(text, steps, StepPart::Key) {
            return Some(text.get(..range.start)?.matches('\n').count() + 1);
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_are_parsed_than_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        let text = "a: 1\nb: {c: 2}\n";
        std::fs::write(&file, text).unwrap();
        let lines = |searches: usize| {
            let keys = ["b.c", "b.gone", "a"];
            let notes = keys.map(|key| Note::new(&file, key, "left out")).to_vec();
            let mut converted = Converted { notes, ..Converted::default() };
            find_within(&mut converted, searches * text.len());
            converted.notes.iter().map(|note| note.line).collect::<Vec<_>>()
        };
        // The search for a key that is missing goes on with the key around it.
        assert_eq!(lines(4), [Some(2), Some(2), Some(1)]);
        assert_eq!(lines(2), [Some(2), None, None]);
        assert_eq!(lines(0), [None, None, None]);
    }
}

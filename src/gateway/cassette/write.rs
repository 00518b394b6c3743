//! Writes a cassette: the files of its large texts first, then the cassette itself, whole or not at all.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::compact::{Bodies, compact, compact_answer};
use super::{Cassette, Entry, Header, bodies};
use crate::whole_file::{FileError, write_whole};

/// Writes a cassette, and removes the files of the previous cassette that are no longer used.
///
/// # Errors
/// Returns an error if a file cannot be written. A former cassette is then still complete.
pub fn save(path: &Path, cassette: &Cassette) -> Result<(), FileError> {
    let (text, contents) = text_of(cassette);
    let folder = bodies(path);
    for parent in path.parent().into_iter().chain((!contents.is_empty()).then_some(folder.as_path())) {
        fs::create_dir_all(parent).map_err(FileError::io("make the folder", parent))?;
    }
    for (name, content) in &contents {
        let file = folder.join(name);
        // The name holds the digest of the content, which an edit may have changed.
        if fs::read(&file).is_ok_and(|old| old == content.as_bytes()) {
            continue;
        }
        write_whole(&file, |out| out.write_all(content.as_bytes()))?;
    }
    write_whole(path, |out| out.write_all(text.as_bytes()))?;
    let used: BTreeSet<&str> = contents.keys().map(String::as_str).collect();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if !used.contains(&*entry.file_name().to_string_lossy()) {
            // A file that is left over does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
    if used.is_empty() {
        let _ = fs::remove_dir(&folder);
    }
    Ok(())
}

fn text_of(cassette: &Cassette) -> (String, Bodies) {
    let mut contents = Bodies::new();
    let ms = cassette.entries.iter().map(|entry| entry.ms).collect();
    let mut text = line(&Header { ms, ..cassette.header.clone() });
    let mut before: Vec<(u64, &Value)> = Vec::new();
    for entry in &cassette.entries {
        let request = compact(&entry.request, &before, &mut contents);
        let response = compact_answer(&entry.response, &mut contents);
        text.push_str(&line(&Entry { request, response, ..entry.clone() }));
        before.push((entry.n, &entry.request));
    }
    (text, contents)
}

fn line(value: &impl serde::Serialize) -> String {
    // Maps with text keys are always JSON.
    let mut line = serde_json::to_string(value).unwrap_or_default();
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{VERSION, load};
    use super::*;
    use crate::gateway::Api;

    #[test]
    fn what_was_written_is_read_and_files_that_are_not_used_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.cassettes/demo.jsonl");
        let large = |letter: &str| {
            let request = json!({"system": letter.repeat(9000), "$x": {"$body": "y"}});
            let entry = Entry {
                n: 1,
                api: Api::Anthropic,
                method: "POST".into(),
                path: "/v1/messages".into(),
                request,
                status: 200,
                headers: Default::default(),
                response: json!({"text": letter}),
                error: None,
                ms: Some((1, 2)),
            };
            let again = Entry { n: 2, ..entry.clone() };
            Cassette { header: Header { cassette: VERSION, ..Header::default() }, entries: vec![entry, again] }
        };
        for letter in ["a", "b"] {
            save(&path, &large(letter)).unwrap();
            let read = load(&path).unwrap();
            assert_eq!(read.entries, large(letter).entries);
            assert_eq!(read.header.ms, [Some((1, 2)), Some((1, 2))]);
            assert_eq!(fs::read_dir(bodies(&path)).unwrap().count(), 1, "{letter}");
            assert!(fs::read_to_string(&path).unwrap().len() < 1000);
        }
        // Cassettes whose names differ only in their ends.
        let beside = ["tape.v1", "tape.v2", "tape.json", "tape.jsonl"].map(|name| folder.path().join(name));
        for (path, letter) in beside.iter().zip(["a", "b", "c", "d"]) {
            save(path, &large(letter)).unwrap();
        }
        for (path, letter) in beside.iter().zip(["a", "b", "c", "d"]) {
            assert_eq!(load(path).unwrap().entries, large(letter).entries);
        }
    }
}

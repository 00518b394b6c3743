//! Masks secrets whose halves an agent sent in different lines: in the finished wire log, once a Trace has shown them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use serde::de::IgnoredAny;

use super::Masker;
use super::escapes;
use crate::whole_file::FileError;
use crate::whole_file::write_whole;
use crate::wire::{Dir, Reader, WireLine};

/// Writes a wire log anew with every secret masked that is whole only over several lines.
///
/// # Errors
/// The log could not be read or written; it stays as it was.
pub fn mask_wire(path: &Path, masker: &Masker) -> Result<(), FileError> {
    let io = |doing, source| FileError::Io { doing, path: path.to_owned(), source };
    let open = || Ok(Reader::new(BufReader::new(File::open(path)?)));
    let mut reader = open().map_err(|error| io("read", error))?;
    let mut streams = Streams::default();
    for number in 0.. {
        let Some(line) = reader.next_line().map_err(|error| io("read", error))? else { break };
        streams.take(number, &line);
    }
    let edits = streams.edits(masker);
    let mut reader = open().map_err(|error| io("read", error))?;
    write_whole(path, |mut out| {
        for number in 0.. {
            let Some(mut line) = reader.next_line()? else { break };
            if let Some(edits) = edits.get(&number) {
                apply(&mut line, edits);
            }
            line.write(&mut out)?;
        }
        Ok(())
    })
}

/// The texts of a log that go on from line to line, each by the path of keys that leads to it.
#[derive(Default)]
struct Streams(HashMap<String, Stream>);

#[derive(Default)]
struct Stream {
    /// All that was said.
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

/// What one line says of a stream.
struct Piece {
    /// Where it ends in the stream.
    end: usize,
    line: usize,
    /// Where it stands in the line.
    at: Range<usize>,
    escaped: bool,
}

/// A part of a line that is masked.
struct Edit {
    /// Where the text stands in the line.
    at: Range<usize>,
    escaped: bool,
    /// Which part of what the text says.
    part: Range<usize>,
    mark: String,
}

impl Streams {
    fn take(&mut self, number: usize, line: &WireLine) {
        if line.dir != Dir::Recv {
            return;
        }
        let text = &line.line;
        let structured = text.trim_start().starts_with(['{', '[']);
        if structured && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            strings(text, |path, at| self.piece(path, number, text, at, true));
        } else {
            // Plain output: a secret may be broken by a line's end.
            self.piece("", number, text, 0..text.len(), false);
        }
    }

    fn piece(&mut self, path: &str, line: usize, text: &str, at: Range<usize>, escaped: bool) {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), Stream::default());
        }
        let (Some(stream), Some(said)) = (self.0.get_mut(path), text.get(at.clone())) else { return };
        if escaped && said.contains('\\') {
            stream.text.extend_from_slice(&escapes::undone(said.as_bytes()).text);
        } else {
            stream.text.extend_from_slice(said.as_bytes());
        }
        stream.pieces.push(Piece { end: stream.text.len(), line, at, escaped });
    }

    /// What is to be masked in which line: the mark stands in the first piece of a secret, the rest is taken out.
    fn edits(&self, masker: &Masker) -> BTreeMap<usize, Vec<Edit>> {
        let mut edits: BTreeMap<usize, Vec<Edit>> = BTreeMap::new();
        for stream in self.0.values() {
            for (secret, mark) in masker.places(&stream.text) {
                let mut mark = mark.to_owned();
                let first = stream.pieces.partition_point(|piece| piece.end <= secret.start);
                let mut start = first.checked_sub(1).and_then(|at| stream.pieces.get(at)).map_or(0, |piece| piece.end);
                for piece in stream.pieces.iter().skip(first) {
                    if start >= secret.end {
                        break;
                    }
                    let part = secret.start.max(start) - start..secret.end.min(piece.end) - start;
                    start = piece.end;
                    if !part.is_empty() {
                        let edit = Edit {
                            at: piece.at.clone(),
                            escaped: piece.escaped,
                            part,
                            mark: std::mem::take(&mut mark),
                        };
                        edits.entry(piece.line).or_default().push(edit);
                    }
                }
            }
        }
        for edits in edits.values_mut() {
            edits.sort_by_key(|edit| (edit.at.start, edit.part.start));
        }
        edits
    }
}

fn apply(line: &mut WireLine, edits: &[Edit]) {
    let mut masked = String::with_capacity(line.line.len());
    let mut copied = 0;
    for Edit { at, escaped, part, mark } in edits {
        let said = line.line.get(at.clone()).unwrap_or_default();
        let part = if *escaped { escapes::undone(said.as_bytes()).original(part.clone()) } else { part.clone() };
        masked.push_str(line.line.get(copied..at.start + part.start).unwrap_or_default());
        masked.push_str(mark);
        copied = at.start + part.end;
    }
    masked.push_str(line.line.get(copied..).unwrap_or_default());
    line.line = masked;
    // The bytes would still say what the text no longer does.
    line.bytes_b64 = None;
}

/// Tells where each string of a JSON value stands, and the path of keys that leads to it.
fn strings(line: &str, mut each: impl FnMut(&str, Range<usize>)) {
    let bytes = line.as_bytes();
    let mut path = String::new();
    // Whether it is an object, and how long the path to it is.
    let mut open: Vec<(bool, usize)> = Vec::new();
    let mut key = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                key = *byte == b'{';
                open.push((key, path.len()));
            }
            b'}' | b']' => {
                if let Some((_, outside)) = open.pop() {
                    path.truncate(outside);
                }
            }
            b',' => {
                if let Some((object, outside)) = open.last() {
                    path.truncate(*outside);
                    key = *object;
                }
            }
            b'"' => {
                let start = at + 1;
                at = end_of_string(bytes, start);
                if key {
                    path.push('/');
                    path.push_str(line.get(start..at).unwrap_or_default());
                    key = false;
                } else {
                    each(&path, start..at);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn end_of_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(lines: &[String], secret: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wire.jsonl");
        let mut log = Vec::new();
        for line in lines {
            WireLine::text(0, Dir::Recv, line).write(&mut log).unwrap();
        }
        std::fs::write(&path, log).unwrap();
        mask_wire(&path, &Masker::new(&[("KEY".to_owned(), secret.to_owned())].into())).unwrap();
        let mut reader = Reader::new(BufReader::new(File::open(&path).unwrap()));
        std::iter::from_fn(|| reader.next_line().unwrap()).map(|line| line.line).collect()
    }

    fn chunk(text: &str) -> String {
        format!(
            r#"{{"method": "session/update", "n": [1, "x"], "update": {{"id": {{}}, "content": {{"text": "{text}"}}}}}}"#
        )
    }

    #[test]
    fn halves_in_different_lines_are_masked_and_the_joined_text_is_the_same_as_the_traces() {
        let said = ["it is hun", "ter2-hun", "ter2, ok hunter2", "-hunter2"].map(chunk);
        let expected = ["it is [redacted:KEY]", "", ", ok [redacted:KEY]", ""].map(chunk);
        assert_eq!(masked(&said, "hunter2-hunter2"), expected);
        let said = ["it is hun".to_owned(), "ter2-hunter2".to_owned(), "and more".to_owned()];
        assert_eq!(masked(&said, "hunter2-hunter2"), ["it is [redacted:KEY]", "", "and more"]);
    }

    #[test]
    fn halves_that_are_spelled_in_escapes_are_masked_and_the_rest_of_their_lines_stays() {
        let said = [r"\/ \u00e4 p\u00e4s", r"s\u0026\/w", r"\u006Frd \u0026\n"].map(chunk);
        let expected = [r"\/ \u00e4 [redacted:KEY]", "", r" \u0026\n"].map(chunk);
        assert_eq!(masked(&said, "päss&/word"), expected);
    }

    #[test]
    fn a_secret_that_is_said_often_in_single_characters_costs_no_more_than_its_lines() {
        let secret = "abcdefgh-12345678";
        let said: Vec<String> = secret.repeat(2_000).chars().map(|char| chunk(&char.to_string())).collect();
        let begun = std::time::Instant::now();
        let masked = masked(&said, secret);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
        assert_eq!(masked.iter().filter(|line| **line == chunk("[redacted:KEY]")).count(), 2_000);
        assert_eq!(masked.iter().filter(|line| **line == chunk("")).count(), 2_000 * (secret.len() - 1));
    }
}

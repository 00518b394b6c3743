//! Masks secrets that an agent sent in pieces, in different lines: in the finished wire log, once a trace has shown
//! them.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use serde::de::IgnoredAny;

use super::Masker;
use super::escapes;
use crate::whole_file::FileError;
use crate::whole_file::write_whole;
use crate::wire::{Dir, Reader, WireLine, trimmed};

/// The number of bytes of a text that are searched at once.
const WINDOW: usize = 256 << 10;

/// The maximum number of texts that are followed at once: an agent decides how many keys its lines have.
const MAX_STREAMS: usize = 10_000;

/// The number of bytes of the last lines of standard error that are returned.
const TAIL: u64 = 2048;

/// Rewrites a wire log, and the file with the lines of standard error, with every secret masked that extends over
/// several lines. Returns the last lines of standard error.
///
/// # Errors
/// Returns an error if a file cannot be read or written; it is left unchanged.
pub fn mask_wire(path: &Path, stderr: &Path, masker: &Masker) -> Result<String, FileError> {
    let io = |doing, source| FileError::Io { doing, path: path.to_owned(), source };
    let open = || Ok(Reader::new(BufReader::new(File::open(path)?)));
    let mut reader = open().map_err(|error| io("read", error))?;
    let mut streams = Streams::default();
    let mut edits = Edits::default();
    for number in 0.. {
        let Some(line) = reader.next_line().map_err(|error| io("read", error))? else { break };
        streams.take(number, &line, masker, &mut edits);
    }
    streams.rest(masker, &mut edits);
    for edits in edits.values_mut() {
        edits.sort_by_key(|edit| (edit.at.start, edit.part.start));
    }
    let mut reader = open().map_err(|error| io("read", error))?;
    let mut in_stderr = false;
    write_whole(path, |mut out| {
        for number in 0.. {
            let Some(mut line) = reader.next_line()? else { break };
            if let Some(edits) = edits.get(&number) {
                in_stderr |= line.dir == Dir::Stderr;
                apply(&mut line, edits);
            }
            line.write(&mut out)?;
        }
        Ok(())
    })?;
    if !stderr.exists() {
        return Ok(String::new());
    }
    if !in_stderr {
        return tail(stderr).map_err(|error| io("read", error));
    }
    let mut reader = open().map_err(|error| io("read", error))?;
    write_whole(stderr, |out| {
        while let Some(line) = reader.next_line()? {
            if line.dir == Dir::Stderr {
                writeln!(out, "{}", line.line)?;
            }
        }
        Ok(())
    })?;
    tail(stderr).map_err(|error| io("read", error))
}

/// Returns the last lines of a file.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_start_matches(char::REPLACEMENT_CHARACTER).to_owned())
}

/// Detects, while a wire log is written, secrets that extend over several lines of kinds that the trace may not show:
/// standard error and plain output.
#[derive(Default)]
pub struct Watch {
    streams: Streams,
    found: Edits,
}

impl Watch {
    /// Adds the next line.
    pub fn take(&mut self, line: &WireLine, masker: &Masker) {
        if self.found.is_empty() && !masker.is_empty() && (line.dir == Dir::Stderr || !is_structured(&line.line)) {
            self.streams.take(0, line, masker, &mut self.found);
        }
    }

    /// Returns true if a secret was found in the lines that were searched.
    pub fn found(&mut self, masker: &Masker) -> bool {
        if self.found.is_empty() && !masker.is_empty() {
            self.streams.rest(masker, &mut self.found);
        }
        !self.found.is_empty()
    }
}

/// The parts to mask, by line.
type Edits = BTreeMap<usize, Vec<Edit>>;

/// The texts of a log that continue from line to line, by the hash of direction and path of keys: a path may be long, and
/// many texts may have it.
#[derive(Default)]
struct Streams(HashMap<u64, Stream>);

/// A text that arrives in pieces: the end of it that was not searched yet.
#[derive(Default)]
struct Stream {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A string of a JSON line.
struct TextInLine<'l> {
    number: usize,
    line: &'l str,
    /// The place in the line.
    at: Range<usize>,
    escaped: bool,
}

/// The part of a stream that comes from one line.
struct Piece {
    /// The place in the stream's text.
    text: Range<usize>,
    /// The number of bytes at the beginning of the piece that have been dropped.
    forgotten: usize,
    line: usize,
    /// The place in the line.
    at: Range<usize>,
    escaped: bool,
}

/// A part of a line to mask.
struct Edit {
    /// The place of the text in the line.
    at: Range<usize>,
    escaped: bool,
    /// The part of the decoded text to mask.
    part: Range<usize>,
    mark: String,
}

impl Streams {
    fn take(&mut self, number: usize, line: &WireLine, masker: &Masker, edits: &mut Edits) {
        let name = match line.dir {
            Dir::Recv => "stdout",
            Dir::Stderr => "stderr",
            Dir::Send | Dir::Engine | Dir::Exit => return,
        };
        let (line, path) = (line.line.as_str(), path_below(0, name));
        if is_structured(line) {
            strings(line, path, |path, at| {
                self.stream(path, masker, edits).piece(TextInLine { number, line, at, escaped: true }, masker, edits);
            });
        } else {
            // Plain output: a line end may break a secret.
            let stream = self.stream(path, masker, edits);
            stream.piece(TextInLine { number, line, at: 0..line.len(), escaped: false }, masker, edits);
            stream.text.push(b'\n');
        }
    }

    fn stream(&mut self, path: u64, masker: &Masker, edits: &mut Edits) -> &mut Stream {
        if !self.0.contains_key(&path) && self.0.len() >= MAX_STREAMS {
            self.rest(masker, edits);
        }
        self.0.entry(path).or_default()
    }

    /// Searches the unsearched text at the end of the log.
    fn rest(&mut self, masker: &Masker, edits: &mut Edits) {
        for (_, mut stream) in self.0.drain() {
            stream.search(stream.text.len(), masker, edits);
        }
    }
}

impl Stream {
    fn piece(&mut self, place: TextInLine<'_>, masker: &Masker, edits: &mut Edits) {
        let TextInLine { number, line, at, escaped } = place;
        let Some(text) = line.get(at.clone()) else { return };
        let start = self.text.len();
        if escaped && text.contains('\\') {
            self.text.extend_from_slice(&escapes::undone(text.as_bytes()).text);
        } else {
            self.text.extend_from_slice(text.as_bytes());
        }
        self.pieces.push(Piece { text: start..self.text.len(), forgotten: 0, line: number, at, escaped });
        // A secret that is broken into many lines is longer by its line ends and indentation.
        let kept = (WINDOW / 4).max(2 * masker.overlap());
        if self.text.len() > 4 * kept {
            self.search(self.text.len() - kept, masker, edits);
        }
    }

    /// Masks the secrets that begin before a place, and drops the text before that place and the text of these secrets.
    /// The mark replaces the first piece of a secret; the other pieces are removed.
    fn search(&mut self, until: usize, masker: &Masker, edits: &mut Edits) {
        let mut done = until;
        // Each line of a secret is a separate place. Only the first has a mark.
        let mut is_later = false;
        for (secret, mark) in masker.places(&self.text) {
            is_later = if mark.is_empty() { is_later } else { secret.start >= until };
            if is_later {
                continue;
            }
            done = done.max(secret.end);
            let mut mark = mark.to_owned();
            let first = self.pieces.partition_point(|piece| piece.text.end <= secret.start);
            for piece in self.pieces.iter().skip(first).take_while(|piece| piece.text.start < secret.end) {
                let start = piece.text.start;
                let part = secret.start.max(start) - start..secret.end.min(piece.text.end) - start;
                if !part.is_empty() {
                    let part = part.start + piece.forgotten..part.end + piece.forgotten;
                    let (at, mark) = (piece.at.clone(), std::mem::take(&mut mark));
                    edits.entry(piece.line).or_default().push(Edit { at, escaped: piece.escaped, part, mark });
                }
            }
        }
        let first = self.pieces.partition_point(|piece| piece.text.end <= done);
        self.pieces.drain(..first);
        self.text.drain(..done);
        for piece in &mut self.pieces {
            piece.forgotten += done.saturating_sub(piece.text.start);
            piece.text = piece.text.start.saturating_sub(done)..piece.text.end - done;
        }
    }
}

fn is_structured(line: &str) -> bool {
    let line = trimmed(line);
    line.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(line).is_ok()
}

fn apply(line: &mut WireLine, edits: &[Edit]) {
    let mut masked = String::with_capacity(line.line.len());
    let mut copied = 0;
    for Edit { at, escaped, part, mark } in edits {
        let text = line.line.get(at.clone()).unwrap_or_default();
        let part = if *escaped { escapes::undone(text.as_bytes()).original(part.clone()) } else { part.clone() };
        masked.push_str(line.line.get(copied..at.start + part.start).unwrap_or_default());
        masked.push_str(mark);
        copied = at.start + part.end;
    }
    masked.push_str(line.line.get(copied..).unwrap_or_default());
    line.line = masked;
    // The original bytes would still contain the secret.
    line.bytes_b64 = None;
}

/// Returns the hash of the path to a key below the value with this path.
fn path_below(path: u64, key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path, key).hash(&mut hasher);
    hasher.finish()
}

/// Calls `each` with the hash of the path of keys to each string in a JSON value, and with its place. `path` is the path to
/// the value.
fn strings(line: &str, mut path: u64, mut each: impl FnMut(u64, Range<usize>)) {
    let bytes = line.as_bytes();
    // For each open value: whether it is an object, and the path to it.
    let mut open: Vec<(bool, u64)> = Vec::new();
    let mut key = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                key = *byte == b'{';
                open.push((key, path));
            }
            b'}' | b']' => {
                if let Some((_, outside)) = open.pop() {
                    path = outside;
                }
            }
            b',' => {
                if let Some((object, outside)) = open.last() {
                    path = *outside;
                    key = *object;
                }
            }
            b'"' => {
                let start = at + 1;
                at = end_of_string(bytes, start);
                if key {
                    path = path_below(path, line.get(start..at).unwrap_or_default());
                    key = false;
                } else {
                    each(path, start..at);
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
        let stderr = folder.path().join("stderr.log");
        mask_wire(&path, &stderr, &Masker::new(&[("KEY".to_owned(), secret.to_owned())].into())).unwrap();
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
        let lines = ["it is hun", "ter2-hun", "ter2, ok hunter2", "-hunter2"].map(chunk);
        let expected = ["it is [redacted:KEY]", "", ", ok [redacted:KEY]", ""].map(chunk);
        assert_eq!(masked(&lines, "hunter2-hunter2"), expected);
        let lines = ["it is hun".to_owned(), "ter2-hunter2".to_owned(), "and more".to_owned()];
        assert_eq!(masked(&lines, "hunter2-hunter2"), ["it is [redacted:KEY]", "", "and more"]);
    }

    #[test]
    fn halves_that_are_spelled_in_escapes_are_masked_and_the_rest_of_their_lines_stays() {
        let lines = [r"\/ \u00e4 p\u00e4s", r"s\u0026\/w", r"\u006Frd \u0026\n"].map(chunk);
        let expected = [r"\/ \u00e4 [redacted:KEY]", "", r" \u0026\n"].map(chunk);
        assert_eq!(masked(&lines, "päss&/word"), expected);
    }

    #[test]
    fn many_texts_below_a_long_key_cost_no_more_than_their_line() {
        let line = format!("{{\"{}\": [\"a\"{}]}}", "k".repeat(500_000), ", \"a\"".repeat(100_000));
        let begun = std::time::Instant::now();
        assert_eq!(masked(std::slice::from_ref(&line), "hunter2-hunter2"), [line]);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_secret_that_is_said_often_in_single_characters_costs_no_more_than_its_lines() {
        let secret = "abcdefgh-12345678";
        let lines: Vec<String> = secret.repeat(2_000).chars().map(|char| chunk(&char.to_string())).collect();
        let begun = std::time::Instant::now();
        let masked = masked(&lines, secret);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
        assert_eq!(masked.iter().filter(|line| **line == chunk("[redacted:KEY]")).count(), 2_000);
        assert_eq!(masked.iter().filter(|line| **line == chunk("")).count(), 2_000 * (secret.len() - 1));
    }
}

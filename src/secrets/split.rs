//! Masks secrets whose halves an agent sent in different lines: in the finished wire log, once a Trace has shown them.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde_json::Value;

use super::{Masker, escaped};
use crate::run::{RunError, write_whole};
use crate::wire::{Dir, Reader, WireLine};

/// Writes a wire log anew with every secret masked that is whole only over several lines.
///
/// # Errors
/// The log could not be read or written; it stays as it was.
pub fn mask_wire(path: &Path, masker: &Masker) -> Result<(), RunError> {
    let io = |doing, source| RunError::Io { doing, path: path.to_owned(), source };
    let mut reader = Reader::new(BufReader::new(File::open(path).map_err(|error| io("read", error))?));
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().map_err(|error| io("read", error))? {
        lines.push(line);
    }
    mask_lines(&mut lines, masker);
    write_whole(path, |mut out| {
        for line in &lines {
            line.write(&mut out)?;
        }
        Ok(())
    })
}

/// A text in a line that goes on in a later line at the same place.
struct Piece {
    line: usize,
    text: String,
}

fn mask_lines(lines: &mut [WireLine], masker: &Masker) {
    // Each pass masks one of each stream, since it changes what the pieces say.
    while mask_one_each(lines, masker) {}
}

/// Masks the first split secret of each stream. Answers whether there was one.
fn mask_one_each(lines: &mut [WireLine], masker: &Masker) -> bool {
    let mut streams: HashMap<String, Vec<Piece>> = HashMap::new();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.dir == Dir::Recv) {
        match serde_json::from_str::<Value>(&line.line) {
            Ok(value) => texts(&value, &mut String::new(), number, &mut streams),
            // Plain output: a secret may be broken by a line's end.
            Err(_) => {
                streams.entry(String::new()).or_default().push(Piece { line: number, text: line.line.clone() });
            }
        }
    }
    let mut masked = false;
    for pieces in streams.values() {
        let whole: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let found = masker.values.iter().find_map(|(name, value)| {
            let mut places = whole.match_indices(value.as_str()).map(|(at, _)| at..at + value.len());
            places.find(|place| !lies_in_one(pieces, place)).map(|place| (name, place))
        });
        if let Some((name, place)) = found {
            mask_pieces(lines, pieces, place, name);
            masked = true;
        }
    }
    masked
}

fn lies_in_one(pieces: &[Piece], place: &std::ops::Range<usize>) -> bool {
    let mut start = 0;
    pieces.iter().any(|piece| {
        let end = start + piece.text.len();
        let inside = place.start >= start && place.end <= end;
        start = end;
        inside
    })
}

/// Every text of a line, under the path of keys that leads to it.
fn texts(value: &Value, path: &mut String, line: usize, streams: &mut HashMap<String, Vec<Piece>>) {
    match value {
        Value::String(text) => {
            streams.entry(path.clone()).or_default().push(Piece { line, text: text.clone() });
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, path, line, streams)),
        Value::Object(map) => {
            for (key, item) in map {
                let before = path.len();
                path.push('/');
                path.push_str(key);
                texts(item, path, line, streams);
                path.truncate(before);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks what of a secret lies in each piece: the mark stands in the first, the rest is taken out.
fn mask_pieces(lines: &mut [WireLine], pieces: &[Piece], secret: std::ops::Range<usize>, name: &str) {
    let mut start = 0;
    let mut first = true;
    for piece in pieces {
        let end = start + piece.text.len();
        let (from, to) = (secret.start.max(start), secret.end.min(end));
        if from < to {
            let mark = if first { format!("[redacted:{name}]") } else { String::new() };
            let masked = format!("{}{mark}{}", &piece.text[..from - start], &piece.text[to - start..]);
            first = false;
            if let Some(line) = lines.get_mut(piece.line) {
                let (old, new) = (escaped(&piece.text), escaped(&masked));
                line.line = if line.line == piece.text { masked } else { line.line.replacen(&old, &new, 1) };
            }
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_in_different_lines_are_masked_and_the_joined_text_is_the_same_as_the_traces() {
        let masker = Masker::new(&[("KEY".to_owned(), "hunter2-hunter2".to_owned())].into());
        let chunk =
            |text: &str| format!(r#"{{"method": "session/update", "update": {{"content": {{"text": "{text}"}}}}}}"#);
        let mut lines: Vec<WireLine> = ["it is hun", "ter2-hun", "ter2, ok hunter2", "-hunter2"]
            .iter()
            .map(|text| WireLine::text(0, Dir::Recv, chunk(text)))
            .collect();
        mask_lines(&mut lines, &masker);
        let texts: Vec<&str> = lines.iter().map(|line| line.line.as_str()).collect();
        assert_eq!(texts, [chunk("it is [redacted:KEY]"), chunk(""), chunk(", ok [redacted:KEY]"), chunk("")]);
    }
}

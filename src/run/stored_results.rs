//! `results.jsonl`, read line by line; and its results, read again one at a time after the whole file was checked.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::regular;
use crate::result::TrialResult;

type LineDigest = [u8; 16];

/// A line with its place in the file.
pub(super) struct StoredLine<'a> {
    /// The line without its end.
    pub(super) text: &'a str,
    pub(super) place: Place,
}

/// The place of a line, and its digest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    start: u64,
    length: usize,
    digest: LineDigest,
}

/// The lines of a file, one at a time.
pub(super) struct Lines<'a> {
    file: BufReader<&'a File>,
    buffer: String,
    at: u64,
}

impl<'a> Lines<'a> {
    /// Begins where the file is.
    pub(super) fn of(file: &'a File) -> Self {
        Self { file: BufReader::new(file), buffer: String::new(), at: 0 }
    }

    /// Returns the next line, or `None` at the end.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the line is not UTF-8.
    pub(super) fn next(&mut self) -> io::Result<Option<StoredLine<'_>>> {
        self.buffer.clear();
        let read = self.file.read_line(&mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        let start = self.at;
        self.at += read as u64;
        let text = self.buffer.strip_suffix('\n').unwrap_or(&self.buffer);
        let text = text.strip_suffix('\r').unwrap_or(text);
        Ok(Some(StoredLine { text, place: Place { start, length: text.len(), digest: digest(text.as_bytes()) } }))
    }
}

/// A `results.jsonl` that contains exactly the results that count, to be read again.
#[derive(Debug, Clone)]
pub struct StoredResults {
    path: PathBuf,
    file: Arc<File>,
    lines: Vec<Place>,
    /// The indexes of the results whose trials have no `result.json`.
    from_copy: BTreeSet<usize>,
}

impl StoredResults {
    /// Remembers the lines of a file that was checked.
    pub(super) fn new(path: PathBuf, file: File, lines: Vec<Place>) -> Self {
        Self { path, file: Arc::new(file), lines, from_copy: BTreeSet::new() }
    }

    /// Adds the warning `result_from_copy` to the results at these places when they are read.
    pub(super) fn with_copies(self, places: BTreeSet<usize>) -> Self {
        Self { from_copy: places, ..self }
    }

    /// Returns the result at a place, from 0.
    ///
    /// # Errors
    /// Returns an error if there is no such line, if the file cannot be read, or if the line is no longer what was
    /// checked.
    pub fn get(&self, place: usize) -> io::Result<TrialResult> {
        self.parsed(&self.read(place)?, place)
    }

    /// Returns the text of the line at a place, from 0.
    ///
    /// # Errors
    /// Returns an error if there is no such line, if the file cannot be read, or if the line is no longer what it was.
    pub(super) fn text(&self, place: usize) -> io::Result<Vec<u8>> {
        let text = self.read(place)?;
        self.compared(&text, place)?;
        Ok(text)
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        let place = self.lines.get(place).ok_or(io::ErrorKind::NotFound)?;
        let mut text = vec![0; place.length];
        let read = self.file.read_exact_at(&mut text, place.start);
        read.map_err(
            |error| if error.kind() == io::ErrorKind::UnexpectedEof { self.changed("it is shorter") } else { error },
        )?;
        Ok(text)
    }

    /// Processes the results in order, one at a time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, if its content is no longer what was checked, or if `see` does.
    pub fn each(&self, mut see: impl FnMut(&TrialResult) -> io::Result<()>) -> io::Result<()> {
        let file = regular::open_own(&self.path)?;
        let mut read = Lines::of(&file);
        for place in 0..self.lines.len() {
            let line = read.next()?.ok_or_else(|| self.changed("it is shorter"))?;
            see(&self.parsed(line.text.as_bytes(), place)?)?;
        }
        if read.next()?.is_some() { Err(self.changed("it is longer")) } else { Ok(()) }
    }

    fn parsed(&self, text: &[u8], place: usize) -> io::Result<TrialResult> {
        self.compared(text, place)?;
        let result: TrialResult = serde_json::from_slice(text).map_err(|error| self.changed(&error.to_string()))?;
        Ok(if self.from_copy.contains(&place) { result.marked_as_copy() } else { result })
    }

    fn compared(&self, text: &[u8], place: usize) -> io::Result<()> {
        let is_it = self.lines.get(place).is_some_and(|place| digest(text) == place.digest);
        if is_it { Ok(()) } else { Err(self.changed("it has another digest")) }
    }

    fn changed(&self, why: &str) -> io::Error {
        io::Error::other(format!("{} was changed while the report was written: {why}", self.path.display()))
    }
}

fn digest(line: &[u8]) -> LineDigest {
    let mut digest = LineDigest::default();
    blake3::Hasher::new().update(line).finalize_xof().fill(&mut digest);
    digest
}

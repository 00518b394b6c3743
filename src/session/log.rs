//! The wire log on disk: redacted, limited in size, with the agent's standard error in a second file.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::regular;
use crate::secrets::Masker;
use crate::secrets::split::Watch;
use crate::wire::{Dir, WireLine};

/// The number of bytes beyond the maximum size that are reserved for lines that say how the session ends.
const RESERVE: u64 = 32 << 20;

/// The number of bytes from which lines are written to the file without waiting for more.
const AT_ONCE: usize = 64 << 10;

/// The importance of a line once the log is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// The line is dropped.
    Agent,
    /// The line says how the session continues or ends. It is kept until the reserve is used up.
    Ending,
    /// The engine wrote the line, and there are only a few of its kind. It is always kept.
    Engine,
}

/// The wire log on disk.
pub(super) struct Log {
    wire: File,
    wire_path: PathBuf,
    /// The digest of everything that was written to the file.
    wire_digest: blake3::Hasher,
    /// Complete lines that are not in the file yet.
    unwritten: Vec<u8>,
    stderr: Option<BufWriter<File>>,
    stderr_path: PathBuf,
    stderr_digest: blake3::Hasher,
    /// Redacts secrets in what is written.
    pub(super) masker: Arc<Masker>,
    most: u64,
    written: u64,
    full: bool,
    /// The first error of writing, if one occurred.
    pub(super) failed: Option<io::ErrorKind>,
    /// The last lines of standard error.
    pub(super) tail: String,
    /// The number of lines that were dropped, and their size in bytes.
    pub(super) cut: (u64, u64),
    /// True if one of these lines is not of standard error, so that it may have shown an action.
    pub(super) lost: bool,
    /// The search for secrets that are complete only over several lines.
    split: Watch,
}

/// The result of writing a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The line is in the log.
    Kept,
    /// The line is in the log, and the log is now full.
    Last,
    /// The line was dropped.
    Cut,
}

impl Log {
    pub(super) fn create(wire: &Path, stderr: &Path, masker: Arc<Masker>, most: u64) -> io::Result<Self> {
        Ok(Self {
            wire: create(wire)?,
            wire_path: wire.to_owned(),
            wire_digest: blake3::Hasher::new(),
            unwritten: Vec::new(),
            stderr: None,
            stderr_path: stderr.to_owned(),
            stderr_digest: blake3::Hasher::new(),
            masker,
            most,
            written: 0,
            full: false,
            failed: None,
            tail: String::new(),
            cut: (0, 0),
            lost: false,
            split: Watch::default(),
        })
    }

    /// Returns true if the log is full, so that only the most important lines are still kept.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the maximum size of the log in bytes.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Returns true if plain output or standard error holds a secret that is complete only over several lines.
    pub(super) fn holds_split_secret(&mut self) -> bool {
        self.split.found(&self.masker)
    }

    /// Writes a line, unless the log is full.
    pub(super) fn write(&mut self, line: &WireLine, weight: Weight) -> Written {
        if line.dir == Dir::Stderr {
            self.remember(&line.line);
        }
        let reserved = self.written < self.most.saturating_add(RESERVE);
        if self.full && !(weight == Weight::Engine || (weight == Weight::Ending && reserved)) {
            self.cut.0 += 1;
            self.cut.1 += line.line.len() as u64 + line.cut.unwrap_or(0);
            self.lost |= line.dir != Dir::Stderr;
            return Written::Cut;
        }
        let before = self.unwritten.len();
        let written = line.write(&mut self.unwritten);
        self.keep_failure(&written);
        self.split.take(line, &self.masker);
        self.written += (self.unwritten.len() - before) as u64;
        if self.unwritten.len() >= AT_ONCE {
            self.write_lines();
        }
        if line.dir == Dir::Stderr {
            self.write_stderr(&line.line);
        }
        if self.written > self.most && !self.full {
            self.full = true;
            return Written::Last;
        }
        Written::Kept
    }

    fn remember(&mut self, line: &str) {
        const KEPT: usize = 2048;
        self.tail.push_str(line);
        self.tail.push('\n');
        if self.tail.len() > 2 * KEPT {
            let from = self.tail.ceil_char_boundary(self.tail.len() - KEPT);
            self.tail.drain(..from);
        }
    }

    fn write_stderr(&mut self, line: &str) {
        if self.stderr.is_none() {
            // A file that begins later would look complete.
            if self.failed.is_some() {
                return;
            }
            match create(&self.stderr_path) {
                Ok(file) => self.stderr = Some(BufWriter::new(file)),
                Err(error) => self.failed = Some(error.kind()),
            }
        }
        if let Some(out) = &mut self.stderr {
            self.written += line.len() as u64 + 1;
            self.stderr_digest.update(line.as_bytes()).update(b"\n");
            let written = writeln!(out, "{line}");
            self.keep_failure(&written);
        }
    }

    /// Writes whole lines, so that the file never ends within a line unless the engine is killed while it writes.
    fn write_lines(&mut self) {
        let written = self.wire.write_all(&self.unwritten);
        self.keep_failure(&written);
        self.wire_digest.update(&self.unwritten);
        self.unwritten.clear();
        // A long line must not hold its memory until the end of the session.
        self.unwritten.shrink_to(AT_ONCE);
    }

    /// Hands all data to the operating system. It is synced to disk together with the trial.
    pub(super) fn flush(&mut self) {
        if !self.unwritten.is_empty() {
            self.write_lines();
        }
        if let Some(out) = &mut self.stderr {
            let written = out.flush();
            self.keep_failure(&written);
        }
    }

    /// Returns true if the wire log is not what was written to it: another program changed, replaced or removed the file.
    pub(super) fn is_wire_changed(&self) -> bool {
        differs(&self.wire_path, &self.wire_digest)
    }

    /// Returns true if the file of the agent's standard error is not what was written to it. A file that was never written must
    /// not exist.
    pub(super) fn is_stderr_changed(&self) -> bool {
        match self.stderr {
            Some(_) => differs(&self.stderr_path, &self.stderr_digest),
            None => self.stderr_path.symlink_metadata().is_ok(),
        }
    }

    /// Keeps the first error, because later errors may be its consequences.
    fn keep_failure(&mut self, written: &io::Result<()>) {
        if let Err(error) = written {
            self.failed.get_or_insert(error.kind());
        }
    }
}

/// Creates a file whose writes go to its end, also if another program cuts it. A file that lies there was made by another program.
fn create(path: &Path) -> io::Result<File> {
    let open = || File::options().append(true).create_new(true).open(path);
    match open() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            open()
        }
        outcome => outcome,
    }
}

/// Returns true if a file has another content than what was written to it, or cannot be read.
fn differs(path: &Path, written: &blake3::Hasher) -> bool {
    regular::open_own(path).and_then(regular::digest).ok() != Some(written.finalize())
}

//! Writes `trace.jsonl`: events as they arrive, and the header when it is complete. Redacted, and written
//! completely or not at all.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::secrets::{Masker, Numbers};
use crate::trace::{Event, Header, jsonl};
use crate::whole_file::FileError;
use crate::whole_file::PartFile;
use crate::whole_file::write_part;

/// The maximum size of events in memory, in bytes; more go to a temporary file.
const IN_MEMORY: usize = 1 << 20;

/// The keys of an event whose numbers the agent chose.
const INPUTS: [&str; 2] = ["input", "updated_input"];

/// The events of an unfinished trace.
pub struct TraceFile {
    folder: PathBuf,
    masker: Arc<Masker>,
    buffer: Vec<u8>,
    spilled: Option<File>,
    failed: Option<io::Error>,
    joined: bool,
}

impl TraceFile {
    /// Starts a trace with this folder for its temporary file.
    pub fn new(folder: &Path, masker: Arc<Masker>) -> Self {
        Self { folder: folder.to_owned(), masker, buffer: Vec::new(), spilled: None, failed: None, joined: false }
    }

    /// Adds an event, and returns it as written to the file: a secret that was split over chunks is redacted
    /// now.
    pub fn take(&mut self, event: Event) -> Event {
        let start = self.buffer.len();
        if let Err(error) = jsonl::write_event(&mut self.buffer, &event) {
            self.failed.get_or_insert(error);
        }
        let masked = match self.masker.mask_bytes(&self.buffer[start..]) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        };
        let event = match masked {
            Some(masked) => {
                // Every line was already redacted, so a secret found now was split over several.
                self.joined = true;
                self.buffer.truncate(start);
                let kept = jsonl::read_event(&masked);
                if kept.is_some() {
                    self.buffer.extend_from_slice(&masked);
                }
                kept.unwrap_or_else(|| self.take_redacted(event))
            }
            None => event,
        };
        if self.buffer.len() > IN_MEMORY {
            self.spill();
        }
        event
    }

    /// Adds an event of which only texts and inputs are redacted: a figure of the engine, such as a number of tokens,
    /// happens to contain the secret.
    fn take_redacted(&mut self, event: Event) -> Event {
        let mut value = serde_json::to_value(&event).unwrap_or_default();
        for (key, field) in value.as_object_mut().into_iter().flatten() {
            let numbers = if INPUTS.contains(&key.as_str()) { Numbers::Redacted } else { Numbers::Kept };
            self.masker.mask_value(field, numbers);
        }
        let event = jsonl::read_event(value.to_string().as_bytes()).unwrap_or(event);
        if let Err(error) = jsonl::write_event(&mut self.buffer, &event) {
            self.failed.get_or_insert(error);
        }
        event
    }

    /// Returns true if a secret was found that was split over several lines.
    pub fn joined_a_secret(&self) -> bool {
        self.joined
    }

    fn spill(&mut self) {
        let spilled = match &mut self.spilled {
            Some(file) => file.write_all(&self.buffer),
            None => tempfile::tempfile_in(&self.folder).and_then(|mut file| {
                file.write_all(&self.buffer)?;
                self.spilled = Some(file);
                Ok(())
            }),
        };
        if let Err(error) = spilled {
            self.failed.get_or_insert(error);
        }
        self.buffer.clear();
    }

    /// Writes the complete trace to a temporary file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or an earlier write of an event failed.
    pub fn write(mut self, path: &Path, header: &Header) -> Result<PartFile, FileError> {
        if let Some(source) = self.failed.take() {
            return Err(FileError::Io { doing: "write", path: path.to_owned(), source });
        }
        let masker = self.masker.clone();
        write_part(path, |out| {
            let mut head = Vec::new();
            jsonl::write_header(&mut head, header)?;
            out.write_all(&masker.mask_bytes(&head))?;
            if let Some(file) = &mut self.spilled {
                file.rewind()?;
                let mut chunk = vec![0; 256 << 10];
                loop {
                    match file.read(&mut chunk)? {
                        0 => break,
                        n => out.write_all(&chunk[..n])?,
                    }
                }
            }
            out.write_all(&self.buffer)
        })
    }
}

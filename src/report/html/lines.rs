//! Finds the lines of the wire log from which each event of a trace was made, by translating the log again.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;

use serde_json::{Value, json};

use crate::adapter::{self, Translation};
use crate::harness::Manifest;
use crate::trace::Event;

/// The maximum size of a wire log that is translated again, in bytes. Events that grow over many lines make the
/// translation of a long log slow; the page then finds lines by time.
pub const MAX_WIRE_BYTES: u64 = 4 << 20;
/// The maximum number of events that are compared after a line.
const MAX_PENDING: usize = 64;

/// Returns the lines of each event as JSON: `lines` has, at the position of each event, the first and the last line
/// of each run of lines. `None` if the log cannot be translated.
pub fn of_log(manifest: &Manifest, file: File) -> Option<String> {
    let mut found = Found::default();
    let input = Box::new(BufReader::new(file));
    let watch = |_: &crate::wire::WireLine, number: u64, translation: &mut Translation| {
        found.line(number, translation);
        Ok(())
    };
    let done = adapter::import_watched(manifest.adapter, manifest, true, input, watch).ok()?;
    let events = done.events.iter().map(|event| event.seq + 1).max().unwrap_or_default().max(found.lines.len() as u64);
    let lines: Vec<Value> = found.lines.into_iter().map(|runs| json!(runs.concat())).collect();
    Some(json!({"events": events, "lines": lines}).to_string())
}

#[derive(Debug, Default)]
struct Found {
    /// The runs of lines by the number of the event.
    lines: Vec<Vec<[u64; 2]>>,
    /// A digest of each event that later lines may still change.
    pending: HashMap<u64, blake3::Hash>,
}

impl Found {
    fn line(&mut self, number: u64, translation: &mut Translation) {
        for event in translation.drain() {
            let before = self.pending.remove(&event.seq);
            if before != Some(digest(&event)) {
                self.touch(event.seq, number);
            }
        }
        let pending: Vec<(u64, blake3::Hash)> =
            translation.recorder().pending().take(MAX_PENDING).map(|event| (event.seq, digest(event))).collect();
        for (seq, now) in pending {
            if self.pending.insert(seq, now) != Some(now) {
                self.touch(seq, number);
            }
        }
    }

    fn touch(&mut self, seq: u64, line: u64) {
        let Ok(at) = usize::try_from(seq) else { return };
        if self.lines.len() <= at {
            self.lines.resize(at + 1, Vec::new());
        }
        let Some(runs) = self.lines.get_mut(at) else { return };
        match runs.last_mut() {
            Some([_, last]) if *last + 1 >= line => *last = line,
            _ => runs.push([line, line]),
        }
    }
}

fn digest(event: &Event) -> blake3::Hash {
    blake3::hash(&serde_json::to_vec(event).unwrap_or_default())
}

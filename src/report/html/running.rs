//! Makes the events of a running trial from its wire log: the trace is written when the trial has ended.

use std::fs::File;
use std::io::{self, BufReader, Read as _};

use crate::adapter;
use crate::harness::Manifest;
use crate::own_environment;
use crate::secrets::Masker;
use crate::trace::jsonl;

/// The maximum number of bytes of a wire log that are translated.
const MAX_WIRE_BYTES: u64 = 64 << 20;

/// Returns the events so far as lines of a trace.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn events(manifest: &Manifest, log: File) -> io::Result<Vec<u8>> {
    // Each line of the log is masked. A secret that was split over lines is complete in an event alone.
    let env = own_environment::texts();
    let masker = Masker::of_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[]);
    let mut events = Vec::new();
    let input = BufReader::with_capacity(256 << 10, log.take(MAX_WIRE_BYTES));
    let header = adapter::import_so_far(manifest.adapter, manifest, input, |event| {
        let mut line = Vec::new();
        jsonl::write_event(&mut line, event)?;
        events.extend_from_slice(&masker.mask_bytes(&line));
        Ok(())
    })?;
    let mut text = Vec::new();
    jsonl::write_header(&mut text, &header)?;
    text.append(&mut events);
    Ok(text)
}

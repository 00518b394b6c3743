//! Limits of the texts that the recorder keeps.

use super::MAX_TEXT;
use crate::text::first_bytes;

/// Appends the part that fits within [`MAX_TEXT`], and returns the number of bytes that did not fit.
pub(super) fn push_bounded(kept: &mut String, text: &str) -> u64 {
    let room = MAX_TEXT.saturating_sub(kept.len());
    let fits = first_bytes(text, room);
    kept.push_str(fits);
    (text.len() - fits.len()) as u64
}

/// Cuts a text to the part that fits within [`MAX_TEXT`], and returns the number of bytes that did not fit.
pub(super) fn cut_to_bound(text: &mut String) -> u64 {
    let fits = first_bytes(text, MAX_TEXT).len();
    let cut = text.len() - fits;
    text.truncate(fits);
    cut as u64
}

/// Shortens a text to the part that a notice quotes.
pub(super) fn shorten(text: &str) -> String {
    const MAX_QUOTED_BYTES: usize = 500;
    if text.len() <= MAX_QUOTED_BYTES {
        return text.to_owned();
    }
    format!("{}… ({} bytes)", first_bytes(text, MAX_QUOTED_BYTES), text.len())
}

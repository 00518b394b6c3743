//! Merges texts that are sent in pieces, complete, repeatedly or as growing snapshots, so that no text is
//! repeated.

use std::collections::{HashSet, VecDeque};

use crate::adapter::hash;
use crate::trace::NoticeCode;
use crate::trace::recorder::{Continuation, MAX_TEXT, Recorder, Voice};

/// The maximum number of texts that may still grow; older ones are final.
const MAX_STREAMS: usize = 64;

/// The texts received until now, as far as the agent may repeat them.
#[derive(Default)]
pub(super) struct Texts {
    streams: VecDeque<Stream>,
    /// Hashes of the blocks that were sent complete under an id.
    wholes: HashSet<u64>,
    parts: u64,
}

/// The speaker and the id of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TextKey {
    pub(super) thought: bool,
    pub(super) parent: Option<String>,
    pub(super) id: Option<String>,
}

impl TextKey {
    fn voice(&self) -> Voice {
        if self.thought { Voice::Thought } else { Voice::Agent }
    }
}

struct Stream {
    key: TextKey,
    text: String,
    part: String,
}

impl Stream {
    /// Replaces the text: withdraws the part that the new text does not have, and adds the rest of the new text. Returns
    /// false if it is too late to withdraw a part.
    fn replace(&mut self, text: &str, recorder: &mut Recorder) -> bool {
        let common = self.text.char_indices().zip(text.chars()).take_while(|((_, one), other)| one == other);
        let length = common.last().map_or(0, |((at, c), _)| at + c.len_utf8());
        let (voice, parent) = (self.key.voice(), &self.key.parent);
        let old = &self.text[length..];
        if !old.is_empty() && !recorder.take_back(voice, parent.as_ref(), &self.part, old) {
            return false;
        }
        recorder.say(voice, parent.clone(), &text[length..], Continuation::Of(self.part.clone()));
        self.text.truncate(length);
        self.text.push_str(&text[length..]);
        true
    }
}

impl Texts {
    /// Adds a piece that continues the last one.
    pub(super) fn delta(&mut self, key: TextKey, text: &str, recorder: &mut Recorder) {
        let stream = self.stream(key);
        if stream.text.len() <= MAX_TEXT {
            stream.text.push_str(text);
        }
        recorder.say(stream.key.voice(), stream.key.parent.clone(), text, Continuation::Of(stream.part.clone()));
    }

    /// Takes the whole text so far, in the place of the one before it.
    pub(super) fn snapshot(&mut self, key: TextKey, text: &str, recorder: &mut Recorder) {
        let stream = self.stream(key.clone());
        // White space at the end is no text.
        let is_shorter = stream.text.strip_prefix(text).is_some_and(|rest| rest.trim().is_empty());
        if is_shorter || text.is_empty() || stream.replace(text, recorder) {
            return;
        }
        recorder.lost_text(
            NoticeCode::StreamDiffers,
            "a snapshot of a text differs from the text that was streamed before it",
        );
        self.forget(&key);
        self.delta(key, text, recorder);
    }

    /// Takes a complete block.
    pub(super) fn whole(&mut self, key: TextKey, text: &str, recorder: &mut Recorder) {
        if text.is_empty() {
            return;
        }
        if key.id.is_some() && !self.wholes.insert(hash(&(&key, text))) {
            return;
        }
        if let Some(mut stream) = self.forget(&key) {
            if stream.text.trim() == text.trim() || stream.replace(text, recorder) {
                return;
            }
            recorder.lost_text(
                NoticeCode::StreamDiffers,
                "a complete block differs from the pieces that were streamed before it",
            );
        }
        let part = self.fresh();
        recorder.say(key.voice(), key.parent, text, Continuation::Of(part));
    }

    /// Ends the texts without an id, because another event follows: a later text without an id starts a new message.
    pub(super) fn break_off(&mut self) {
        self.streams.retain(|stream| stream.key.id.is_some());
    }

    fn forget(&mut self, key: &TextKey) -> Option<Stream> {
        let at = self.streams.iter().position(|stream| stream.key == *key)?;
        self.streams.remove(at)
    }

    fn stream(&mut self, key: TextKey) -> &mut Stream {
        let stream = match self.forget(&key) {
            Some(stream) => stream,
            None => Stream { key, text: String::new(), part: self.fresh() },
        };
        if self.streams.len() >= MAX_STREAMS {
            self.streams.pop_front();
        }
        self.streams.push_back(stream);
        let last = self.streams.len() - 1;
        &mut self.streams[last]
    }

    fn fresh(&mut self) -> String {
        self.parts += 1;
        self.parts.to_string()
    }
}

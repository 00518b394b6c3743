//! Merges messages that are sent both in pieces and complete, so that no text is repeated.

use serde_json::Value;

use crate::adapter::surrogates::Cut;
use crate::big_numbers;
use crate::repeated_key::repeated_key;
use crate::trace::recorder::{MAX_TEXT, Voice};

use super::tools::fullness;

/// The maximum number of blocks of one message whose pieces are joined. Messages have a few dozen.
const MAX_BLOCKS: usize = 1_000;

/// The message that one speaker is streaming.
#[derive(Debug, Default)]
pub(crate) struct Streamed {
    pub(crate) message: String,
    blocks: Vec<StreamedBlock>,
    /// The types of blocks whose pieces cannot be read, and which the complete block must show. A piece of an unknown
    /// block has an empty type.
    unread: Vec<String>,
}

#[derive(Debug)]
struct StreamedBlock {
    index: u64,
    /// True if the complete block was seen.
    whole: bool,
    what: PartKind,
}

#[derive(Debug)]
enum PartKind {
    Text { voice: Voice, so_far: String, part: String, cut: Cut },
    Call(StreamedCall),
}

/// A call whose input comes in pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamedCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The input so far, as JSON.
    pub(crate) json: String,
    /// The half of a character with which that JSON ends.
    cut: Cut,
    /// True if that JSON is too long, and its end is left out.
    is_cut: bool,
    /// The fullness of the recorded input.
    pub(crate) recorded: usize,
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The part that the piece belongs to.
    pub(crate) part: String,
    /// The character of which the piece before ends with the first half, and this one began with the second.
    pub(crate) whole: Option<char>,
    /// The text, without that half.
    pub(crate) text: &'a str,
}

/// The relation of a complete block to its streamed parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// The block was streamed up to here; the rest continues this part.
    Rest {
        /// The number of bytes already streamed.
        from: usize,
        /// The part that the block belongs to.
        part: String,
    },
    /// No incomplete block was streamed.
    New,
    /// No streamed block matches, although one is still incomplete.
    Differs,
}

impl Streamed {
    /// Begins a message.
    pub(crate) fn new(message: &str) -> Self {
        Self { message: message.to_owned(), ..Self::default() }
    }

    /// Notes a piece of a block of this type that cannot be read.
    pub(crate) fn cannot_read(&mut self, kind: &str) {
        if !self.unread.iter().any(|known| known == kind) {
            self.unread.push(kind.to_owned());
        }
    }

    /// Notes that a complete block of this type has arrived.
    pub(crate) fn has_whole(&mut self, kind: &str) {
        self.unread.retain(|unread| !unread.is_empty() && unread != kind);
    }

    /// Returns the types of blocks that arrived neither complete nor in pieces that can be read.
    pub(crate) fn unread(&self) -> &[String] {
        &self.unread
    }

    /// Returns the texts of the agent whose complete blocks were not seen, each with its part. Further pieces of them are not
    /// recorded.
    pub(crate) fn cut_texts(&mut self) -> impl Iterator<Item = (&str, &str)> {
        self.blocks.iter_mut().filter(|block| !block.whole).filter_map(|block| match &block.what {
            PartKind::Text { voice: Voice::Agent, so_far, part, .. } if !so_far.is_empty() => {
                block.whole = true;
                Some((so_far.as_str(), part.as_str()))
            }
            PartKind::Text { .. } | PartKind::Call(_) => None,
        })
    }

    /// Begins or continues a block of text or thought. Returns the piece, if the text is new: pieces after the complete
    /// block only repeat it. `marked` is the text as [`marked`](crate::adapter::surrogates::marked) reads it.
    pub(crate) fn text<'a>(
        &mut self,
        index: u64,
        voice: Voice,
        text: &'a str,
        marked: Option<&str>,
        fresh: impl FnOnce() -> String,
    ) -> Option<Piece<'a>> {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) {
            return match &mut block.what {
                PartKind::Text { so_far, part, cut, .. } if !block.whole => {
                    let (whole, text) = cut.take(text, marked);
                    // The recorder keeps no more either.
                    if so_far.len() <= MAX_TEXT {
                        if let Some(whole) = whole {
                            so_far.pop();
                            so_far.push(whole);
                        }
                        so_far.push_str(text);
                    }
                    Some(Piece { part: part.clone(), whole, text })
                }
                _ => None,
            };
        }
        if self.blocks.len() >= MAX_BLOCKS {
            self.cannot_read(if voice == Voice::Thought { "thinking" } else { "text" });
            return None;
        }
        let (part, mut cut) = (fresh(), Cut::default());
        let (whole, text) = cut.take(text, marked);
        let what = PartKind::Text { voice, so_far: text.to_owned(), part: part.clone(), cut };
        self.blocks.push(StreamedBlock { index, whole: false, what });
        Some(Piece { part, whole, text })
    }

    /// Begins a call. If the message has too many blocks, the pieces of the call's input cannot be read.
    pub(crate) fn call(&mut self, index: u64, id: &str, name: &str) {
        let call = StreamedCall { id: id.to_owned(), name: name.to_owned(), ..StreamedCall::default() };
        self.blocks.retain(|block| block.index != index);
        if self.blocks.len() >= MAX_BLOCKS {
            return;
        }
        self.blocks.push(StreamedBlock { index, whole: false, what: PartKind::Call(call) });
    }

    /// Adds a piece to a call's input, with the piece as [`marked`](crate::adapter::surrogates::marked) reads it. Returns false
    /// if no block has begun at this place.
    pub(crate) fn input(&mut self, index: u64, json: &str, marked: Option<&str>) -> bool {
        let block = self.blocks.iter_mut().find(|block| block.index == index);
        let begun = block.is_some();
        if let Some(PartKind::Call(call)) = block.map(|block| &mut block.what) {
            if call.json.len() <= MAX_TEXT {
                call.cut.push(&mut call.json, json, marked);
            } else {
                call.is_cut = true;
            }
        }
        begun
    }

    /// Returns the call at this place.
    pub(crate) fn call_at(&mut self, index: u64) -> Option<&mut StreamedCall> {
        self.blocks.iter_mut().find(|block| block.index == index).and_then(|block| block.what.call())
    }

    pub(crate) fn call_of(&mut self, id: &str) -> Option<&mut StreamedCall> {
        self.blocks.iter_mut().filter_map(|block| block.what.call()).find(|call| call.id == id)
    }

    /// Returns every call.
    pub(crate) fn calls(&mut self) -> impl Iterator<Item = &mut StreamedCall> {
        self.blocks.iter_mut().filter_map(|block| block.what.call())
    }

    /// Handles a complete block of text or thought.
    pub(crate) fn whole(&mut self, voice: Voice, text: &str) -> Whole {
        let mut differs = false;
        for block in &mut self.blocks {
            let PartKind::Text { voice: spoken, so_far, part, .. } = &mut block.what else { continue };
            if block.whole || *spoken != voice {
                continue;
            }
            if text.starts_with(so_far.as_str()) || so_far.starts_with(text) {
                block.whole = true;
                return Whole::Rest { from: so_far.len().min(text.len()), part: part.clone() };
            }
            differs = true;
        }
        if differs { Whole::Differs } else { Whole::New }
    }
}

impl PartKind {
    fn call(&mut self) -> Option<&mut StreamedCall> {
        match self {
            PartKind::Call(call) => Some(call),
            PartKind::Text { .. } => None,
        }
    }
}

impl StreamedCall {
    /// Returns the streamed input, if it is complete and contains more than the recorded input.
    pub(crate) fn fuller(&self) -> Option<Value> {
        if self.is_cut {
            return None;
        }
        let input: Value = serde_json::from_str(&big_numbers::as_texts(&self.json)).ok()?;
        if repeated_key(&self.json).is_some() {
            return None;
        }
        (fullness(&input) > self.recorded).then_some(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_told_whole_adds_only_what_is_missing() {
        let mut streamed = Streamed::new("m");
        let part = streamed.text(0, Voice::Agent, "one ", None, || "p".into()).unwrap().part;
        assert_eq!(streamed.text(0, Voice::Agent, "two", None, || "q".into()).unwrap().part, "p");
        assert_eq!(streamed.whole(Voice::Thought, "one two"), Whole::New);
        assert_eq!(streamed.whole(Voice::Agent, "one two three"), Whole::Rest { from: 7, part });
        assert_eq!(streamed.text(0, Voice::Agent, " three", None, || "q".into()), None, "it was told with the whole");
        assert_eq!(streamed.whole(Voice::Agent, "one two three"), Whole::New, "a block is told whole once");
    }

    #[test]
    fn a_block_that_differs_is_said() {
        let mut streamed = Streamed::new("m");
        streamed.text(0, Voice::Agent, "one", None, || "p".into());
        streamed.text(1, Voice::Agent, "two", None, || "q".into());
        assert_eq!(streamed.whole(Voice::Agent, "two"), Whole::Rest { from: 3, part: "q".into() });
        assert_eq!(streamed.whole(Voice::Agent, "three"), Whole::Differs);
    }

    #[test]
    fn texts_without_their_complete_blocks_are_cut_once() {
        let mut streamed = Streamed::new("m");
        for (index, voice) in [(0, Voice::Thought), (1, Voice::Agent), (2, Voice::Agent)] {
            streamed.text(index, voice, ["a", "b", "c"][index as usize], None, || index.to_string());
        }
        assert_eq!(streamed.whole(Voice::Agent, "b!"), Whole::Rest { from: 1, part: "1".into() });
        assert_eq!(streamed.cut_texts().collect::<Vec<_>>(), [("c", "2")]);
        assert_eq!(streamed.cut_texts().count(), 0);
        assert_eq!(streamed.text(2, Voice::Agent, "d", None, || "q".into()), None);
        assert_eq!(streamed.whole(Voice::Agent, "cd"), Whole::New);
    }

    #[test]
    fn the_fuller_input_is_kept() {
        let mut call = StreamedCall { json: r#"{"a":1,"b":2}"#.into(), ..StreamedCall::default() };
        assert!(call.fuller().is_some());
        call.recorded = 2;
        assert!(call.fuller().is_none());
        call = StreamedCall { json: r#"{"a":1,"b"#.into(), ..StreamedCall::default() };
        assert!(call.fuller().is_none(), "it is not complete");
    }

    #[test]
    fn an_input_that_is_too_long_is_kept_in_part_and_never_read() {
        let mut streamed = Streamed::new("m");
        streamed.call(0, "c", "Bash");
        assert!(streamed.input(0, r#"{"command":"ls"}"#, None));
        assert!(streamed.call_at(0).unwrap().fuller().is_some());
        let blank = " ".repeat(MAX_TEXT);
        for _ in 0..3 {
            assert!(streamed.input(0, &blank, None));
        }
        let call = streamed.call_at(0).unwrap();
        assert!(call.json.len() <= 2 * MAX_TEXT && call.fuller().is_none());
    }

    #[test]
    fn a_text_that_is_too_long_is_kept_in_part() {
        let mut streamed = Streamed::new("m");
        let text = "x".repeat(MAX_TEXT);
        for _ in 0..4 {
            assert!(streamed.text(0, Voice::Agent, &text, None, || "p".into()).is_some());
        }
        let whole = Whole::Rest { from: 2 * MAX_TEXT, part: "p".into() };
        assert_eq!(streamed.whole(Voice::Agent, &"x".repeat(5 * MAX_TEXT)), whole);
    }

    #[test]
    fn the_pieces_of_further_blocks_are_not_read() {
        let mut streamed = Streamed::new("m");
        for index in 0..MAX_BLOCKS as u64 {
            assert!(streamed.text(index, Voice::Agent, "x", None, || "p".into()).is_some());
        }
        let next = MAX_BLOCKS as u64;
        assert_eq!(streamed.text(next, Voice::Agent, "x", None, || "p".into()), None);
        assert_eq!(streamed.unread(), ["text"]);
        streamed.call(next, "c", "Bash");
        assert!(!streamed.input(next, "{}", None));
    }
}

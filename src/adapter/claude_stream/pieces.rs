//! The lines of `--include-partial-messages`: pieces of messages that are also sent complete.

use super::Translator;
use super::lines::{Line, Message, StreamEvent};
use super::partial::{Piece, Streamed};
use super::tools;
use super::withdrawn::MAX_SHOWN;
use crate::text::first_bytes;
use crate::trace::NoticeCode;
use crate::trace::recorder::{CallReport, Continuation, Recorder, SentText, Voice, is_empty};

/// The maximum number of texts without their complete blocks that are remembered in one turn.
const MAX_CUT: usize = 1_000;

impl Translator {
    pub(super) fn stream_event(&mut self, line: &Line<'_>, text: &str, recorder: &mut Recorder) {
        let Some(event) = &line.event.0 else { return recorder.notice(NoticeCode::UnknownLine, text) };
        let parent = line.parent();
        match event.kind.or_empty() {
            "message_start" => {
                self.settle(&parent, recorder);
                if parent.is_none() {
                    self.turn.spoken = true;
                }
                let message = event.message.0.as_ref();
                if parent.is_none()
                    && let Some(message) = message
                {
                    self.model(message, recorder);
                }
                let id = message.and_then(|message| message.id.get()).unwrap_or(line.api_message_id.or_empty());
                self.streamed.insert(parent, Streamed::new(id));
            }
            "content_block_start" => self.block_start(line, event, &parent, recorder),
            "content_block_delta" => self.block_delta(line, event, &parent, recorder),
            "content_block_stop" => {
                let id =
                    event.index.0.and_then(|index| Some(self.streamed.get_mut(&parent)?.call_at(index)?.id.clone()));
                if let Some(id) = id {
                    self.fill_call(&parent, &id, recorder);
                }
            }
            "message_delta" => {
                if let (None, Some(reason)) =
                    (&parent, event.delta.0.as_ref().and_then(|delta| delta.stop_reason.owned()))
                {
                    self.turn.stop_reason = Some(reason);
                }
            }
            "message_stop" | "ping" => {}
            // The agent repeats the request, or reports the outcome in its result.
            "error" => recorder.notice(NoticeCode::ApiError, text),
            _ => recorder.notice(NoticeCode::UnknownLine, text),
        }
    }

    /// Notes that a complete block of a message has arrived, which may be one that was sent in pieces.
    pub(super) fn whole_block(&mut self, parent: &Option<String>, message: &Message<'_>, kind: &str) {
        if let Some(streamed) = self.streamed.get_mut(parent).filter(|it| Some(it.message.as_str()) == message.id.get())
        {
            streamed.has_whole(kind);
        }
    }

    /// Takes a complete message. If it is not the one that its speaker streams, the streamed texts that are still incomplete are
    /// withdrawn: the connection to the model broke, and the agent's program asked again.
    pub(super) fn replaces_cut_texts(
        &mut self,
        parent: &Option<String>,
        message: &Message<'_>,
        recorder: &mut Recorder,
    ) {
        self.has_whole = true;
        if let Some(mut streamed) = self.streamed.remove(parent) {
            if Some(streamed.message.as_str()) != message.id.get() {
                self.keep_cut_texts(parent, &mut streamed, recorder);
            }
            self.streamed.insert(parent.clone(), streamed);
        }
        let texts = self.take_cut_texts(parent);
        if !self.turn.interrupted {
            withdraw_cut_texts(texts, recorder);
        }
    }

    /// Remembers the texts of a streamed message whose complete blocks did not follow. What an interrupted turn streamed stays.
    fn keep_cut_texts(&mut self, parent: &Option<String>, streamed: &mut Streamed, recorder: &Recorder) {
        for (text, part) in streamed.cut_texts() {
            if !self.turn.interrupted && self.cut.len() < MAX_CUT {
                let begins = first_bytes(text, MAX_SHOWN).to_owned();
                let (parent, part) = (parent.clone(), part.to_owned());
                self.cut.push(SentText { parent, part, begins, last_event: recorder.last_event() });
            }
        }
    }

    /// Takes the remembered texts of a speaker.
    pub(super) fn take_cut_texts(&mut self, parent: &Option<String>) -> Vec<SentText> {
        let texts = std::mem::take(&mut self.cut);
        let (of_speaker, others) = texts.into_iter().partition(|text| text.parent == *parent);
        self.cut = others;
        of_speaker
    }

    fn block_start(
        &mut self,
        line: &Line<'_>,
        event: &StreamEvent<'_>,
        parent: &Option<String>,
        recorder: &mut Recorder,
    ) {
        let (Some(index), Some(block)) = (event.index.0, &event.content_block.0) else {
            return self.stream_of(line, parent).cannot_read("");
        };
        match block.kind.or_empty() {
            "text" => self.piece(line, index, Voice::Agent, parent, block.text.or_empty(), recorder),
            "thinking" => self.piece(line, index, Voice::Thought, parent, block.thinking.or_empty(), recorder),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                let (Some(id), Some(name)) = (block.id.get(), block.name.get()) else {
                    return self.stream_of(line, parent).cannot_read(block.kind.or_empty());
                };
                let streamed = self.stream_of(line, parent);
                // A call that was sent complete before its pieces is not recorded again.
                let recorded = block.input.as_ref().map_or(0, tools::fullness);
                streamed.call(index, id, name);
                if let Some(call) = streamed.call_at(index) {
                    call.recorded = recorded;
                }
                let message = Some(streamed.message.clone()).filter(|id| !id.is_empty());
                // An empty input is still being written.
                let input = block.input.clone().filter(|input| !is_empty(input));
                self.call(parent, message.as_deref(), id, name, input, recorder);
            }
            "redacted_thinking" => {}
            kind => self.stream_of(line, parent).cannot_read(kind),
        }
    }

    fn block_delta(
        &mut self,
        line: &Line<'_>,
        event: &StreamEvent<'_>,
        parent: &Option<String>,
        recorder: &mut Recorder,
    ) {
        let (Some(index), Some(delta)) = (event.index.0, &event.delta.0) else {
            return self.stream_of(line, parent).cannot_read("");
        };
        match delta.kind.or_empty() {
            "text_delta" => self.piece(line, index, Voice::Agent, parent, delta.text.or_empty(), recorder),
            "thinking_delta" => self.piece(line, index, Voice::Thought, parent, delta.thinking.or_empty(), recorder),
            "input_json_delta" => {
                let marked = self.marked_piece("partial_json");
                let streamed = self.stream_of(line, parent);
                if !streamed.input(index, delta.partial_json.or_empty(), marked.as_deref()) {
                    streamed.cannot_read("");
                }
            }
            "signature_delta" | "citations_delta" => {}
            _ => self.stream_of(line, parent).cannot_read(""),
        }
    }

    fn piece(
        &mut self,
        line: &Line<'_>,
        index: u64,
        voice: Voice,
        parent: &Option<String>,
        text: &str,
        recorder: &mut Recorder,
    ) {
        let fresh = self.fresh_part();
        let marked = self.marked_piece(if voice == Voice::Thought { "thinking" } else { "text" });
        let piece = self.stream_of(line, parent).text(index, voice, text, marked.as_deref(), || fresh);
        let Some(Piece { part, whole, text }) = piece else { return };
        if let Some(whole) = whole {
            recorder.complete(voice, parent.clone(), whole, Continuation::Of(part.clone()));
        }
        recorder.say(voice, parent.clone(), text, Continuation::Of(part));
    }

    /// Returns a text of the event's piece as [`surrogates::marked`](crate::adapter::surrogates::marked) reads it, if the line
    /// has unpaired surrogates.
    fn marked_piece(&self, key: &str) -> Option<String> {
        let event = self.marked.as_ref()?.get("event")?;
        let piece = event.get("delta").or_else(|| event.get("content_block"))?;
        piece.get(key)?.as_str().map(str::to_owned)
    }

    /// Returns the state of this speaker's stream. The beginning of the message may be missing.
    fn stream_of(&mut self, line: &Line<'_>, parent: &Option<String>) -> &mut Streamed {
        self.streamed.entry(parent.clone()).or_insert_with(|| Streamed::new(line.api_message_id.or_empty()))
    }

    /// Records the input that was streamed for a call, if it contains more than the known input.
    fn fill_call(&mut self, parent: &Option<String>, id: &str, recorder: &mut Recorder) {
        let Some(call) = self.streamed.get_mut(parent).and_then(|it| it.call_of(id)) else { return };
        let Some(input) = call.fuller() else { return };
        call.recorded = tools::fullness(&input);
        call.json.clear();
        let name = call.name.clone();
        if !recorder.is_open(id) {
            return;
        }
        let plan = tools::plan(&name, &input);
        let locations = tools::locations(&input);
        recorder.update(id, CallReport { input: Some(input), locations, ..CallReport::default() }, false);
        if let Some(entries) = plan {
            recorder.plan(parent.clone(), entries);
        }
    }

    /// Records the streamed input of a call that is about to end: no more pieces will follow.
    pub(super) fn settle_call(&mut self, id: &str, recorder: &mut Recorder) {
        let of_call = self.streamed.iter_mut().filter_map(|(parent, it)| it.call_of(id).map(|_| parent.clone()));
        let parents: Vec<Option<String>> = of_call.collect();
        for parent in parents {
            self.fill_call(&parent, id, recorder);
        }
    }

    /// Ends the message, which may be cut.
    fn settle(&mut self, parent: &Option<String>, recorder: &mut Recorder) {
        let Some(mut streamed) = self.streamed.remove(parent) else { return };
        for kind in streamed.unread() {
            let text = match kind.as_str() {
                "" => "pieces of a content block cannot be read, and its complete form did not follow".to_owned(),
                kind => format!("a content block of the type `{kind}` began, and its complete form did not follow"),
            };
            recorder.lost(NoticeCode::UnknownBlock, text);
        }
        self.keep_cut_texts(parent, &mut streamed, recorder);
        let calls: Vec<_> = streamed.calls().map(|call| call.clone()).collect();
        self.streamed.insert(parent.clone(), streamed);
        for call in calls {
            if call.recorded == 0 && call.fuller().is_none() && !call.json.is_empty() && recorder.is_open(&call.id) {
                recorder.notice(
                    NoticeCode::InputCut,
                    format!("the input of the call {} is incomplete: {}", call.id, call.json),
                );
            }
            self.fill_call(parent, &call.id, recorder);
        }
        self.streamed.remove(parent);
    }

    pub(super) fn settle_all(&mut self, recorder: &mut Recorder) {
        let mut parents: Vec<Option<String>> = self.streamed.keys().cloned().collect();
        parents.sort();
        for parent in parents {
            self.settle(&parent, recorder);
        }
    }
}

/// Withdraws texts that were streamed and never completed.
pub(super) fn withdraw_cut_texts(texts: Vec<SentText>, recorder: &mut Recorder) {
    for text in texts {
        recorder.notice(
            NoticeCode::WithdrawnMessage,
            format!("a text was streamed and not completed, so it is withdrawn: {}", text.begins),
        );
        recorder.withdraw_text(text);
    }
}

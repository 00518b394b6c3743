//! Any command: its standard output is the final message. Claude Code's final JSON is recognised.

use super::claude_stream::{Line, outcome};
use super::{EndReport, Translate, errors};
use crate::harness::Manifest;
use crate::trace::recorder::{Continuation, MAX_TEXT, Recorder, Voice};
use crate::trace::{Agent, Exit, StopReason};
use crate::values::Pattern;
use crate::wire::WireLine;

/// A translator of a command's output.
pub struct Translator {
    error_text: Vec<Pattern>,
    /// The output until now, while it may still become one JSON value.
    pending: Option<String>,
    /// True if the output begins like a JSON value.
    may_be_json: bool,
    /// Blank lines and line ends after the last text, which belong to the message only if more text follows.
    blank: String,
    begun: bool,
}

impl Translator {
    /// Returns a translator for sessions of this harness.
    pub fn new(manifest: &Manifest) -> Self {
        Self {
            error_text: manifest.error_text.clone(),
            pending: Some(String::new()),
            may_be_json: false,
            blank: String::new(),
            begun: false,
        }
    }

    fn say(&mut self, line: &str, recorder: &mut Recorder) {
        if self.begun && self.blank.len() < MAX_TEXT {
            self.blank.push('\n');
        }
        self.begun = true;
        if line.trim().is_empty() {
            if self.blank.len() < MAX_TEXT {
                self.blank.push_str(line);
            }
            return;
        }
        recorder.say(Voice::Agent, None, &std::mem::take(&mut self.blank), Continuation::Chunk);
        recorder.say(Voice::Agent, None, line, Continuation::Chunk);
    }

    /// Records the held output as text, because it is not JSON.
    fn let_go(&mut self, recorder: &mut Recorder) {
        if let Some(pending) = self.pending.take()
            && !pending.is_empty()
        {
            for line in pending.split_terminator('\n') {
                self.say(line, recorder);
            }
        }
    }

    /// Takes the whole output as Claude Code's final JSON: its `result` line, alone or at the end of a list of all
    /// lines.
    fn envelope(&self, text: &str, recorder: &mut Recorder) -> Option<EndReport> {
        let text = text.trim();
        let lines: Vec<Line<'_>> = if text.starts_with('[') {
            let raw: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
            let raw = raw.into_iter().map(|raw| raw.get()).filter(|raw| raw.starts_with('{'));
            raw.filter_map(|raw| serde_json::from_str(raw).ok()).collect()
        } else {
            vec![serde_json::from_str(text).ok()?]
        };
        // Any program may write JSON of the type `result`; that of Claude Code says more.
        let is_result = |line: &&Line<'_>| line.kind.get() == Some("result") && line.says_how_it_ended();
        let result = lines.iter().rev().find(is_result)?;
        let init = lines.iter().find(|line| line.kind.get() == Some("system") && line.subtype.get() == Some("init"));
        let header = recorder.header();
        header.agent = Some(Agent {
            name: "Claude Code".to_owned(),
            version: init.and_then(|init| init.claude_code_version.owned()),
        });
        if let Some(init) = init {
            header.cwd = init.cwd.owned().or(header.cwd.take());
            header.model.effective = init.model.owned().or(header.model.effective.take());
        }
        if let Some(model) = outcome::only_model(result) {
            header.model.effective = Some(model);
        }
        // A list of all lines shows who wrote the last message.
        let last = lines.iter().rev().find(|line| line.kind.get() == Some("assistant") && line.parent().is_none());
        let by_model = last.map(|line| !line.is_of_program());
        let turn = outcome::Turn { error_text: &self.error_text, by_model, ..outcome::Turn::default() };
        let answer = outcome::answer(result, &turn);
        // A message of the agent's program about an error is not a message of the agent.
        if !result.is_error.is_true() && matches!(answer, EndReport::Ended { .. }) {
            recorder.say(Voice::Agent, None, result.result.or_empty(), Continuation::Block);
        }
        for usage in outcome::usages(result) {
            recorder.usage(usage, false);
        }
        Some(answer)
    }
}

impl Translate for Translator {
    fn reads_json(&self) -> bool {
        false
    }

    fn recv(&mut self, line: &WireLine, recorder: &mut Recorder) {
        let Some(pending) = &mut self.pending else { return self.say(&line.line, recorder) };
        let text: &str = &line.line;
        // A byte order mark before the first line states the encoding and does not belong to the answer.
        let text = text.strip_prefix('\u{feff}').filter(|_| pending.is_empty()).unwrap_or(text);
        pending.push_str(text);
        pending.push('\n');
        // Until a line begins like a JSON value, the lines before it are blank.
        let start = text.trim_start();
        self.may_be_json |= start.starts_with(['{', '[']);
        let is_text = !self.may_be_json && !start.is_empty();
        if is_text || pending.len() > MAX_TEXT {
            self.let_go(recorder);
        }
    }

    /// Ignores the command's input: it is the prompt, which the engine records.
    fn send(&mut self, _line: &WireLine, _recorder: &mut Recorder) {}

    fn finish(&mut self, recorder: &mut Recorder, exit: Option<Exit>) -> EndReport {
        if let Some(pending) = self.pending.take() {
            if let Some(answer) = self.envelope(&pending, recorder) {
                return answer;
            }
            self.pending = Some(pending);
            self.let_go(recorder);
        }
        let answer = &*recorder.answer();
        let failed = exit.is_some_and(|exit| exit.code != Some(0));
        let is_error = self.error_text.iter().any(|pattern| pattern.is_match(answer));
        // A failing program may report a missing or refused login or key, or a limited rate, on either stream.
        if is_error || (failed && errors::refused_in(answer).is_some()) {
            return EndReport::Failed { category: errors::by_text(answer), detail: answer.to_owned() };
        }
        // If the exit is unknown, as in a recording of the output alone, the output is the answer.
        if failed {
            return EndReport::None;
        }
        EndReport::Ended { reason: StopReason::EndTurn, detail: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Translation;
    use crate::harness::Adapter;
    use crate::trace::{Body, Header, Role, Seen, Stop, UsageScope};
    use crate::trace::{ErrorCategory, Event};
    use crate::wire::{Dir, EngineLine};

    fn run(lines: &[&str], exit: Option<i32>) -> (Vec<Event>, Header) {
        let mut manifest = Manifest::bare(Adapter::OutputOnly);
        manifest.error_text = vec!["^API Error:".parse().unwrap()];
        let header = Header::new("output-only", Seen { tracing: false, interaction: false });
        let mut translation = Translation::new(Adapter::OutputOnly, &manifest, header);
        translation.line(&WireLine::engine(0, &EngineLine::Prompt { text: "do it".into() }));
        for line in lines {
            translation.line(&WireLine::text(1, Dir::Recv, *line));
        }
        if let Some(code) = exit {
            translation.line(&WireLine::text(2, Dir::Exit, format!(r#"{{"code":{code},"signal":null}}"#)));
        }
        let mut events: Vec<Event> = translation.drain().collect();
        let finished = translation.finish();
        events.extend(finished.events);
        (events, finished.header)
    }

    fn stop(events: &[Event]) -> &Stop {
        match &events.last().unwrap().body {
            Body::Stop(stop) => stop,
            other => panic!("the last event is {other:?}"),
        }
    }

    #[test]
    fn what_is_printed_is_the_answer_to_the_prompt() {
        let (events, _) = run(&["one", " ", "two  ", "", ""], Some(0));
        assert_eq!(events.len(), 3);
        let Body::Message(prompt) = &events[0].body else { panic!() };
        assert_eq!((prompt.role, prompt.text.as_str(), events[0].host), (Role::User, "do it", false));
        let Body::Message(message) = &events[1].body else { panic!() };
        assert_eq!((message.role, message.text.as_str()), (Role::Agent, "one\n \ntwo  "));
        assert_eq!(stop(&events).reason, StopReason::EndTurn);
        assert_eq!(stop(&events).output.as_deref(), Some("one\n \ntwo  "));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_answer() {
        for text in ["42", r#"{"a":1}"#, ""] {
            let (events, _) = run(&[&format!("\u{feff}{text}"), "\u{feff}more"], Some(0));
            let expected = format!("{text}\n\u{feff}more");
            assert_eq!(stop(&events).output.as_deref().map(str::trim_start), Some(expected.trim_start()));
        }
    }

    #[test]
    fn a_bad_exit_is_a_crash_and_an_unseen_one_is_not() {
        let (events, _) = run(&["half"], Some(3));
        assert_eq!((stop(&events).reason, stop(&events).category), (StopReason::Crashed, Some(ErrorCategory::Crashed)));
        assert_eq!(stop(&events).output.as_deref(), Some("half"));
        assert_eq!(stop(&run(&["half"], None).0).reason, StopReason::EndTurn);
        let (events, _) = run(&[], Some(0));
        assert_eq!((stop(&events).reason, &stop(&events).output), (StopReason::EndTurn, &None));
    }

    #[test]
    fn an_error_text_is_an_error() {
        let (events, _) = run(&["API Error: 429 slow down"], Some(0));
        assert_eq!((stop(&events).reason, stop(&events).category), (StopReason::Error, Some(ErrorCategory::RateLimit)));
    }

    #[test]
    fn json_that_is_no_envelope_is_text() {
        let result = r#"{"type":"result","result":"42"}"#;
        for text in [result, r#"{"type":"result"}"#, r#"{"a":1}"#, "[1, 2]", "{broken", "[info] started"] {
            let (events, header) = run(&[text, "more"], Some(0));
            assert_eq!(stop(&events).output.as_deref(), Some(format!("{text}\nmore").as_str()));
            let (events, _) = run(&[text], Some(0));
            assert_eq!(stop(&events).output.as_deref(), Some(text));
            assert_eq!(header.agent, None);
        }
    }

    #[test]
    fn very_many_blank_lines_are_read_in_one_pass() {
        let count = 200_000;
        let mut lines = vec![""; count];
        lines.push(r#" {"a":1}"#);
        let (events, _) = run(&lines, Some(0));
        let output = stop(&events).output.as_deref().unwrap();
        assert_eq!((output.len(), output.trim()), (count + 8, r#"{"a":1}"#));
    }

    #[test]
    fn claudes_envelope_is_understood_and_decides() {
        let result = r#"{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","result":"42",
            "total_cost_usd":0.5,"modelUsage":{"opus":{"inputTokens":1,"outputTokens":2}}}"#;
        let list = format!(r#"[{{"type":"system","subtype":"init","claude_code_version":"2.1.330"}},{result}]"#);
        for (text, version) in [(result, None), (list.as_str(), Some("2.1.330"))] {
            let lines: Vec<&str> = text.lines().collect();
            let (events, header) = run(&lines, Some(1));
            assert_eq!((stop(&events).reason, stop(&events).output.as_deref()), (StopReason::EndTurn, Some("42")));
            assert_eq!(header.model.effective.as_deref(), Some("opus"));
            assert_eq!(header.agent.unwrap().version.as_deref(), version);
            let usage = events.iter().find_map(|event| match &event.body {
                Body::Usage(usage) => Some(usage),
                _ => None,
            });
            let usage = usage.unwrap();
            assert_eq!((usage.scope, usage.input_tokens, usage.cost_usd), (UsageScope::Session, Some(1), Some(0.5)));
        }
    }

    #[test]
    fn an_envelope_of_an_error_is_an_error_and_no_message() {
        let (events, _) = run(
            &[
                r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"API Error: no"}"#,
            ],
            Some(0),
        );
        assert_eq!((stop(&events).reason, stop(&events).category), (StopReason::Error, Some(ErrorCategory::Auth)));
        assert_eq!(stop(&events).output, None);
        let (events, _) = run(&[r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#], Some(1));
        assert_eq!(stop(&events).reason, StopReason::MaxTurns);
    }
}

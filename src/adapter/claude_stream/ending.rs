//! The end of a turn: what a `result` line adds to the trace.

use std::collections::BTreeMap;

use serde_json::Value;

use super::lines::{Denial, Line};
use super::outcome::{self, Turn};
use super::pieces::withdraw_cut_texts;
use super::{Translator, hash};
use crate::adapter::EndReport;
use crate::text::{first_bytes, plural};
use crate::trace::recorder::{Continuation, Recorder, Voice};
use crate::trace::usage::Measure;
use crate::trace::{NoticeCode, StopReason, UsageScope};

/// The maximum number of different denials without the ID of a call that are looked for in the trace.
const MAX_UNNAMED: usize = 100;

impl Translator {
    /// Takes a `result` line, which ends the turn unless a sub-agent wrote it.
    pub(super) fn result(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        if line.parent().is_some() {
            return recorder
                .notice(NoticeCode::SubAgentResult, "a result line of a sub-agent, which does not end the turn");
        }
        self.settle_all(recorder);
        self.settle_repeated(recorder);
        self.take_denials(line, recorder);
        let turn = std::mem::take(&mut self.turn);
        let mut shown_answer = recorder.answer().into_owned();
        // The text may be the answer of an earlier turn.
        let is_later = self.is_over() || self.own_turn.is_some();
        let is_of_before = is_later && !turn.spoken && is_another(line.result.or_empty(), &shown_answer);
        let answer = outcome::answer(
            line,
            &Turn {
                interrupted: turn.interrupted,
                api_error: turn.api_error.as_deref(),
                error_word: turn.error_word.as_deref(),
                text: &shown_answer,
                by_program: turn.by_program.as_deref(),
                by_model: turn.by_model,
                stop_reason: turn.stop_reason.as_deref(),
                error_text: &self.error_text,
            },
        );
        let cut = self.take_cut_texts(&None);
        let has_answered =
            matches!(answer, EndReport::Ended { reason: StopReason::EndTurn | StopReason::MaxTokens, .. });
        // An agent that shows no complete messages never completes a text.
        let completes_texts = self.has_whole || is_another(line.result.or_empty(), &shown_answer);
        if has_answered && !turn.interrupted && completes_texts && !cut.is_empty() {
            withdraw_cut_texts(cut, recorder);
            shown_answer = if recorder.is_answer_withdrawn() { String::new() } else { recorder.answer().into_owned() };
        }
        // If the message itself did not arrive, its last block is in the `result` line.
        let lost = (shown_answer.is_empty() || is_of_before) && !turn.synthetic;
        if lost && has_answered {
            let part = Continuation::Of(self.fresh_part());
            let structured = line.structured_output.as_ref().filter(|value| !value.is_null()).map(Value::to_string);
            let answer = line.result.get().filter(|text| !text.is_empty()).or(structured.as_deref());
            recorder.say(Voice::Agent, None, answer.unwrap_or_default(), part);
        } else if matches!(answer, EndReport::Ended { reason: StopReason::EndTurn, .. }) {
            let by_program = turn.by_program.as_deref().is_some_and(|text| !is_another(line.result.or_empty(), text));
            if !by_program && is_another(line.result.or_empty(), &shown_answer) {
                let text = first_bytes(line.result.or_empty(), 200);
                recorder.notice(
                    NoticeCode::AnswerDiffers,
                    format!("the end of the turn gives another answer than its messages: {text}"),
                );
            }
        }
        self.take_figures(line, recorder);
        recorder.end_turn(matches!(answer, EndReport::Ended { reason: StopReason::Cancelled, .. }));
        recorder.complete_answer();
        let is_own = line.is_of_task() && self.background.is_prompt_open();
        (self.answer, self.own_turn) = if is_own { (EndReport::None, Some(answer)) } else { (answer, None) };
    }

    /// Takes the denied calls of a `result` line.
    fn take_denials(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        if line.permission_denials.is_odd {
            recorder.lost(NoticeCode::UnknownCall, "the list of denied calls cannot be read");
        }
        self.denied.clear();
        let mut shown = std::mem::take(&mut self.refused);
        let mut unnamed: BTreeMap<u64, (&Denial<'_>, usize)> = BTreeMap::new();
        for denial in &line.permission_denials.list {
            let Some(denial) = denial.0.as_ref() else {
                recorder.lost(NoticeCode::UnknownCall, "an item of the list of denied calls cannot be read");
                continue;
            };
            let Some(id) = denial.tool_use_id.get() else {
                let key = hash(&(denial.tool_name.get(), &denial.tool_input));
                unnamed.entry(key).or_insert((denial, 0)).1 += 1;
                continue;
            };
            let name = denial.tool_name.get();
            if let Some(name) = name.filter(|_| !recorder.was_announced(id)) {
                // The denial is all that the agent shows of the attempt.
                self.call(&None, None, id, name, denial.tool_input.clone(), recorder);
                self.refuse(id, recorder);
                continue;
            }
            if let Some(call) = name.and_then(|name| recorder.deny_failure(id, name, denial.tool_input.as_ref())) {
                self.sub_agents.refused(&call);
                continue;
            }
            match shown.get_mut(&hash(id)).filter(|count| **count > 0) {
                // The result of the call has shown it.
                Some(count) => *count -= 1,
                None => self.refuse(id, recorder),
            }
        }
        self.denied_without_ids(unnamed, recorder);
        recorder.settle_failures(0);
    }

    /// Takes the web requests and the usage of a `result` line.
    fn take_figures(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let served = outcome::served(line);
        if served > 0 && !std::mem::replace(&mut self.has_searched, true) {
            let text = format!("the service carried out {}, and no call shows one", plural(served, "web request"));
            recorder.did_unseen(NoticeCode::UnseenSearch, text);
        }
        let unreadable = outcome::unreadable_models(line);
        if unreadable > 0 {
            let text = format!("the usage of {} is not an object and is left out", plural(unreadable as u64, "model"));
            recorder.notice(NoticeCode::UsageInvalid, text);
        }
        for mut usage in outcome::usages(line) {
            // The figures of a turn leave out sub-agents; the figures by model include them.
            let has_sub_agents = self.sub_agents.any() || recorder.usage_total().activity().sub_agent_spoke();
            if usage.scope == UsageScope::Turn && has_sub_agents {
                usage.at_least(Measure::TOKENS);
            }
            recorder.usage(usage, false);
        }
    }

    /// Takes the denials that do not state the IDs of their calls, each with the number of times that the line lists it.
    fn denied_without_ids(&mut self, unnamed: BTreeMap<u64, (&Denial<'_>, usize)>, recorder: &mut Recorder) {
        for (n, (denial, count)) in unnamed.into_values().enumerate() {
            match denial.tool_name.get().filter(|_| n < MAX_UNNAMED) {
                Some(name) => {
                    for call in recorder.deny_without_id(name, denial.tool_input.as_ref(), count) {
                        self.sub_agents.refused(&call);
                    }
                }
                None => {
                    recorder.lost(NoticeCode::UnknownCall, "a denied call without an id");
                    recorder.contradicted(
                        NoticeCode::LateDenial,
                        "the agent does not show which call it reports as denied",
                    );
                }
            }
        }
    }
}

/// Returns true if the final text of a turn is another one than that of its messages.
fn is_another(result: &str, messages: &str) -> bool {
    // Blocks are joined in several ways.
    let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
    let (messages, result) = (without_spaces(messages), without_spaces(result));
    !result.is_empty() && !messages.is_empty() && !messages.contains(result.trim_end_matches('…'))
}

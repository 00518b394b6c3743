//! Translates streams of JSON lines by the rules of the manifest.
//!
//! This module is independent of any agent. A line without a matching rule, and an expression that cannot be
//! evaluated, becomes a notice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::session_file::facts::EndShown;
use super::{EndReport, Translate, errors};
use crate::adapter::call_progress::{NewOfCalls, names_a_call, new_of_calls};
use crate::adapter::surrogates;
use crate::adapter::torn::{Keys, may_hold_message, may_hold_message_within};
use crate::adapter::unknown_block::{
    all_calls, are_several_of_one_id, call_blocks, has_action_under, holds_call, ids_of_call, is_known_call,
    lists_other_call, may_be_answer, may_be_of_call, may_hold,
};
use crate::expression::{Failed, Scope, Work};
use crate::harness::Manifest;
use crate::harness::stream::Kind;
use crate::text::first_bytes;
use crate::trace::recorder::{QuotedLine, Recorder};
use crate::trace::{CallStatus, Exit, NoticeCode};
use crate::values::Pattern;
use crate::wire::{EngineLine, WireLine, trimmed};

mod events;
mod detect;
mod texts;
mod values;

pub use detect::Knowing;

use crate::harness::stream::compile::{self, Event, Mapping, Rule, compile};
use events::Session;
use values::Values;

/// The maximum bytes of JSON in all variables kept between lines.
const MAX_KEPT: usize = 1 << 20;
/// The maximum bytes of text outside JSON that are kept as the message of a failure.
const MAX_FAILURE_TEXT: usize = 4096;
/// The maximum number of calls in content blocks that are remembered until they are announced.
const MAX_AWAITED: usize = 1000;
/// The maximum bytes of a content block in a notice.
const MAX_SHOWN: usize = 400;

/// A translator of the lines of a stream.
pub struct Translator {
    mapping: Arc<Mapping>,
    error_text: Vec<Pattern>,
    session: Session,
    kept: Value,
    /// The text outside the stream, from the first text that the manifest lists as an error.
    failed: Option<String>,
    taken: String,
    /// The values that the rules looked for in the line and did not find.
    not_found: Vec<String>,
    /// The end of standard error.
    stderr: String,
    /// The lines of standard error for the rules, until the next line of the stream.
    printed: Vec<String>,
    /// Calls that no rule takes, by their ids, until they are announced.
    awaited: BTreeMap<Vec<String>, Awaited>,
    /// Calls that lines without a rule report as failed, by their ids, until they end.
    failed_calls: BTreeMap<String, FailedCall>,
    /// The keys by whose texts the rules distinguish the lines.
    type_keys: BTreeSet<String>,
}

/// A call that may still be announced.
struct Awaited {
    /// The text of the notice, if the call is not announced.
    notice: String,
    /// The line that lists the call.
    line: QuotedLine,
}

/// A call that a line without a rule reports as failed.
struct FailedCall {
    /// The text of the line.
    text: String,
    line: QuotedLine,
    /// True if a notice already reports the line.
    is_told: bool,
}

impl Translator {
    /// Returns a translator for sessions of this harness.
    pub fn new(manifest: &Manifest) -> Self {
        let (mapping, _) = compile(manifest);
        let conditions = mapping.lines.iter().filter_map(|rule| rule.when.as_ref());
        // The role `tool` is that of a message with a result.
        let compared = conditions.flat_map(|when| when.compared_keys("line")).filter(|key| *key != "role");
        let type_keys = compared.map(str::to_owned).collect();
        Self {
            type_keys,
            mapping: Arc::new(mapping),
            error_text: manifest.error_text.clone(),
            session: Session::new(manifest),
            kept: Value::Object(Map::new()),
            failed: None,
            taken: String::new(),
            not_found: Vec::new(),
            stderr: String::new(),
            printed: Vec::new(),
            awaited: BTreeMap::new(),
            failed_calls: BTreeMap::new(),
        }
    }

    /// Returns a translator of the lines of session files. The manifest holds their rules as its `stream`. `ends` are
    /// the facts about the ends of calls that lines beside the results show.
    pub fn of_file(manifest: &Manifest, ends: HashMap<String, EndShown>) -> Self {
        Self { session: Session::of_file(manifest, ends), ..Self::new(manifest) }
    }

    /// Runs the rules. The first match takes the values that the variables show, and ends the search unless the rule
    /// lets later rules run, too. Returns what the rules made, or `None` if no rule matches.
    fn run(&mut self, rules: &[Rule], seen: &LineValues<'_>, recorder: &mut Recorder) -> Option<RuleOutcome> {
        let mut taken: Option<(&Rule, RuleOutcome)> = None;
        let before_line = recorder.call_count();
        for rule in rules {
            let applies = match &rule.when {
                Some(when) => when.holds(&seen.scope(&self.kept)),
                None => Ok(true),
            };
            match applies {
                Ok(true) => {}
                Ok(false) => continue,
                Err(failed) => {
                    seen.tell_or_lose(recorder, &rule.label, "when", &failed);
                    continue;
                }
            }
            self.note(&rule.label);
            let outcome = match &rule.for_each {
                Some(list) => match list.run(&seen.scope(&self.kept)) {
                    Ok(Value::Array(items)) => {
                        let mut of_items = RuleOutcome::Nothing;
                        for (index, item) in items.iter().enumerate() {
                            let index = json!(index);
                            let seen = seen.within(item, &index);
                            let before_item = recorder.call_count();
                            let mut outcome = self.carry_out(rule, &seen, recorder);
                            if self.tell_left_out(rule, outcome, before_item, &seen, recorder) {
                                outcome = RuleOutcome::Settled;
                            }
                            of_items = of_items.max(outcome).max(RuleOutcome::Other);
                        }
                        of_items
                    }
                    Ok(Value::Null) | Err(Failed::Absent(_)) => RuleOutcome::Nothing,
                    Ok(_) => {
                        lose(recorder, &rule.label, "for-each", &Failed::Broken("the value is not a list".to_owned()));
                        RuleOutcome::Settled
                    }
                    Err(failed) => {
                        lose(recorder, &rule.label, "for-each", &failed);
                        RuleOutcome::Settled
                    }
                },
                None => self.carry_out(rule, seen, recorder),
            };
            let before = taken.map_or(RuleOutcome::Nothing, |(_, outcome)| outcome);
            taken = Some((rule, outcome.max(before)));
            if !rule.go_on {
                break;
            }
        }
        let (rule, outcome) = taken?;
        let is_left_out = self.tell_left_out(rule, outcome, before_line, seen, recorder);
        Some(if is_left_out { RuleOutcome::Settled } else { outcome })
    }

    /// Records a line or an item from which the matching rules made no event, or not one for each call that it lists:
    /// the manifest does not describe this form. The line or item is recorded only if it may be about a call that the
    /// trace does not show. `calls_before` is the number of calls announced before the line or the item. Returns true
    /// if the line or item was recorded.
    fn tell_left_out(
        &mut self,
        rule: &Rule,
        outcome: RuleOutcome,
        calls_before: u64,
        seen: &LineValues<'_>,
        recorder: &mut Recorder,
    ) -> bool {
        let inner = seen.innermost();
        let (is_left_out, what) = match outcome {
            RuleOutcome::Nothing => {
                let named = || names_a_call(inner, recorder);
                (lists_other_call(inner, recorder) || (seen.may_be_of_call() && !named()), "no event")
            }
            RuleOutcome::Other => {
                (lists_other_call(inner, recorder) || !self.await_blocks(inner, rule, recorder), "no call")
            }
            RuleOutcome::Call => {
                let announced = recorder.call_count().saturating_sub(calls_before);
                (!self.await_others(inner, rule, announced, recorder), "fewer calls than are listed")
            }
            RuleOutcome::Settled => (false, ""),
        };
        if is_left_out {
            recorder.did_unseen(NoticeCode::UnmappedLine, format!("{} made {what} of {}", rule.label, seen.shown()));
        }
        is_left_out
    }

    /// Remembers the calls of a line that lists several, of which a rule announced some. `announced` is the number of calls
    /// that the rules announced. Returns false if a call cannot be recognised later.
    fn await_others(&mut self, line: &Value, rule: &Rule, announced: u64, recorder: &Recorder) -> bool {
        let listed = all_calls(line, recorder);
        let unknown: Vec<&Value> = listed.iter().filter(|call| !is_known_call(call, recorder)).copied().collect();
        let is_by_other_ids = unknown.len() == listed.len() && (announced == 0 || announced >= unknown.len() as u64);
        if listed.len() < 2 || is_by_other_ids {
            return true;
        }
        unknown.into_iter().all(|call| self.await_call(call, rule, recorder))
    }

    /// Remembers the calls in content blocks of a line that were not announced: an agent may show a message before it
    /// announces the calls in it. Returns false if there is one that cannot be recognised later.
    fn await_blocks(&mut self, line: &Value, rule: &Rule, recorder: &Recorder) -> bool {
        let mut blocks = Vec::new();
        call_blocks(line, &mut blocks);
        if are_several_of_one_id(&blocks) {
            return false;
        }
        blocks.retain(|block| !is_known_call(block, recorder));
        blocks.into_iter().all(|block| self.await_call(block, rule, recorder))
    }

    /// Remembers a call that was not announced. Returns false if it has no ID, or too many are remembered.
    fn await_call(&mut self, call: &Value, rule: &Rule, recorder: &Recorder) -> bool {
        let ids: Vec<String> = ids_of_call(call).collect();
        let has_place = self.awaited.len() < MAX_AWAITED || self.awaited.contains_key(&ids);
        if ids.is_empty() || !has_place {
            return false;
        }
        let notice = || format!("{} made no call of {}", rule.label, first_bytes(&call.to_string(), MAX_SHOWN));
        self.awaited.entry(ids).or_insert_with(|| Awaited { notice: notice(), line: recorder.this_line() });
        true
    }

    /// Records the calls in content blocks that were never announced.
    fn tell_awaited(&mut self, recorder: &mut Recorder) {
        for (ids, Awaited { notice, line }) in std::mem::take(&mut self.awaited) {
            if !ids.iter().any(|id| recorder.was_announced(id)) {
                recorder.about(line, |recorder| recorder.did_unseen(NoticeCode::UnmappedLine, notice));
            }
        }
    }

    /// Takes a line that no rule takes.
    fn take_unmapped(&mut self, line: &Value, text: &str, recorder: &mut Recorder) {
        let is_type_key = |key: &str| self.type_keys.contains(key);
        let new = match self.may_be_of_call(line) {
            true => new_of_calls(line, is_type_key, recorder),
            false => NewOfCalls::default(),
        };
        if new.is_other {
            recorder.did_unseen(NoticeCode::UnmappedLine, text);
        }
        match new.failed {
            Some(call) if self.failed_calls.len() < MAX_AWAITED || self.failed_calls.contains_key(&call) => {
                let failed = || FailedCall {
                    text: first_bytes(text, MAX_SHOWN).to_owned(),
                    line: recorder.this_line(),
                    is_told: new.is_other,
                };
                self.failed_calls.entry(call).or_insert_with(failed);
            }
            Some(_) => recorder.contradicted(NoticeCode::UnmappedLine, text),
            None if new.is_other => {}
            None if may_be_answer(line) => recorder.lost_text(NoticeCode::UnmappedLine, text),
            None => recorder.notice(NoticeCode::UnmappedLine, text),
        }
    }

    /// Records the lines without a rule that report a call as failed, when the call has ended, or at the end of the stream. The
    /// outcome of the call is unknown unless it ended as a failure.
    fn tell_failed(&mut self, at_end: bool, recorder: &mut Recorder) {
        let ended = self.failed_calls.keys().filter(|call| at_end || !recorder.is_open(call));
        for call in ended.cloned().collect::<Vec<_>>() {
            let Some(FailedCall { text, line, is_told }) = self.failed_calls.remove(&call) else { continue };
            let end = recorder.ended_as(&call);
            let is_shown = matches!(end, Some(CallStatus::Error | CallStatus::Denied | CallStatus::Cancelled));
            recorder.about(line, |recorder| match is_shown {
                true if is_told => {}
                true => recorder.notice(NoticeCode::UnmappedLine, text),
                false => recorder.contradicted(NoticeCode::UnmappedLine, text),
            });
        }
    }

    /// Returns true if a line that no rule takes may be about a call, also by the keys that the rules compare.
    fn may_be_of_call(&self, line: &Value) -> bool {
        may_be_of_call(line) || has_action_under(line, self.type_keys.iter().map(String::as_str))
    }

    /// Makes the events of a rule.
    fn carry_out(&mut self, rule: &Rule, seen: &LineValues<'_>, recorder: &mut Recorder) -> RuleOutcome {
        for (name, expression) in &rule.keep {
            let value = match expression.run(&seen.scope(&self.kept)) {
                Ok(value) => Some(value),
                Err(Failed::Absent(_)) => None,
                Err(failed) => {
                    tell(recorder, &rule.label, &format!("keep.{name}"), &failed);
                    continue;
                }
            };
            self.keep(rule, name, value, recorder);
        }
        // A rule without events means to ignore the line, or to keep its values.
        let means_it = rule.emit.is_empty() && rule.rules.is_empty();
        let mut outcome = if means_it { RuleOutcome::Settled } else { RuleOutcome::Nothing };
        for event in &rule.emit {
            outcome = outcome.max(self.emit(rule, event, seen, recorder));
        }
        if rule.rules.is_empty() {
            return outcome;
        }
        if let Some(within) = self.run(&rule.rules, seen, recorder) {
            return outcome.max(within);
        }
        let text = format!("no rule of {} matches {}", rule.label, seen.shown());
        match seen.item {
            Some((item, _)) if may_hold(item) || holds_call(item) => recorder.lost(NoticeCode::UnmappedLine, text),
            None if self.may_be_of_call(seen.value) && !names_a_call(seen.value, recorder) => {
                recorder.did_unseen(NoticeCode::UnmappedLine, text);
            }
            _ => recorder.notice(NoticeCode::UnmappedLine, text),
        }
        RuleOutcome::Settled
    }

    fn keep(&mut self, rule: &Rule, name: &str, value: Option<Value>, recorder: &mut Recorder) {
        let Value::Object(kept) = &mut self.kept else { return };
        let Some(value) = value else {
            kept.remove(name);
            return;
        };
        let others = kept.iter().filter(|(known, _)| *known != name).map(|(_, value)| size(value)).sum::<usize>();
        if others + size(&value) > MAX_KEPT {
            let failed = Failed::Broken(format!("the kept values would exceed {MAX_KEPT} bytes"));
            return tell(recorder, &rule.label, &format!("keep.{name}"), &failed);
        }
        kept.insert(name.to_owned(), value);
    }

    /// Records the event of a rule, unless its `when` is false or a field cannot be computed.
    fn emit(&mut self, rule: &Rule, event: &Event, seen: &LineValues<'_>, recorder: &mut Recorder) -> RuleOutcome {
        let scope = seen.scope(&self.kept);
        match event.when.as_ref().map(|when| when.holds(&scope)) {
            None | Some(Ok(true)) => {}
            Some(Ok(false)) => return RuleOutcome::Nothing,
            Some(Err(failed)) => {
                seen.tell_or_lose(recorder, &rule.label, &format!("{}.when", event.kind.word()), &failed);
                return RuleOutcome::Settled;
            }
        }
        let mut values = Values::new(event.kind);
        for (field, expression) in &event.fields {
            let scope = scope.with_words(compile::words_of(event.kind, field));
            match expression.run(&scope) {
                Ok(value) => values.add(field, value),
                Err(Failed::Absent(why)) => values.absent(field, why),
                Err(failed) => {
                    values.breaks(field);
                    let what = format!("{}.{field}", event.kind.word());
                    match values.loses_with(field) {
                        true => lose(recorder, &rule.label, &what, &failed),
                        false => tell(recorder, &rule.label, &what, &failed),
                    }
                }
            }
        }
        drop(scope);
        let absent = values.absent_fields().map(|(field, why)| format!("{}.{field}: {why}", event.kind.word()));
        self.not_found.extend(absent);
        let outcome = match event.kind {
            Kind::Message | Kind::Thought if values.says_nothing() => RuleOutcome::Nothing,
            Kind::Header | Kind::Message | Kind::Thought | Kind::Plan | Kind::Usage | Kind::Stop => RuleOutcome::Other,
            // A notice that reports no loss may be about another part of a line that lists calls.
            Kind::Notice if !values.has("lost") => RuleOutcome::Other,
            Kind::ToolCall | Kind::ToolResult | Kind::Denied => RuleOutcome::Call,
            Kind::PermissionRequest | Kind::PermissionResponse | Kind::Notice => RuleOutcome::Settled,
        };
        self.session.event(&mut values, recorder);
        for (field, why) in values.wrong() {
            let text = format!("{}: {}.{field}: {}", rule.label, event.kind.word(), Failed::Broken(why));
            match values.loses() || values.loses_with(field) {
                true => recorder.lost(NoticeCode::MappingFailed, text),
                false => recorder.notice(NoticeCode::MappingFailed, text),
            }
        }
        outcome
    }

    fn begin(&mut self) {
        self.taken.clear();
        self.not_found.clear();
        self.session.begin_line();
    }

    fn note(&mut self, label: &str) {
        if !self.taken.is_empty() {
            self.taken.push_str(", ");
        }
        self.taken.push_str(label);
    }

    /// Runs the rules for lines of standard error.
    fn take_printed(&mut self, recorder: &mut Recorder) {
        let mapping = self.mapping.clone();
        for line in std::mem::take(&mut self.printed) {
            let (work, shown) = (Work::default(), Value::String(line));
            self.run(&mapping.stderr, &LineValues::new("text", &shown, &work), recorder);
        }
    }

    /// Takes a line that is not a JSON object, with its value if it is other JSON.
    fn text(&mut self, text: &str, parsed: Option<&Value>, recorder: &mut Recorder) {
        let mapping = self.mapping.clone();
        let (work, shown) = (Work::default(), Value::String(text.to_owned()));
        if self.run(&mapping.texts, &LineValues::new("text", &shown, &work), recorder).is_some() {
            return;
        }
        let is_lost = match parsed {
            Some(value) => may_hold_message_within(value, &Keys::ANY),
            None => may_hold_message(text, &Keys::ANY),
        };
        match is_lost {
            true => recorder.lost(NoticeCode::MalformedLine, text),
            false => recorder.notice(NoticeCode::MalformedLine, text),
        }
        let is_error = self.error_text.iter().any(|pattern| pattern.is_match(text));
        match &mut self.failed {
            Some(failed) if failed.len() + text.len() < MAX_FAILURE_TEXT => {
                failed.push('\n');
                failed.push_str(text);
            }
            Some(_) => {}
            None if is_error => {
                self.failed = Some(first_bytes(text, MAX_FAILURE_TEXT).to_owned());
            }
            None => {}
        }
    }
}

/// Returns the approximate size of a value in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(size).sum::<usize>() + 8,
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>() + 8,
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

fn tell(recorder: &mut Recorder, label: &str, what: &str, failed: &Failed) {
    recorder.notice(NoticeCode::MappingFailed, format!("{label}: {what}: {failed}"));
}

/// The result of the rules for a line or an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RuleOutcome {
    /// No event.
    Nothing,
    /// Only events that are not about a call, such as a text.
    Other,
    /// An event of a call.
    Call,
    /// A notice that reports a loss, an event about a permission, or what the author of the manifest says of the line.
    Settled,
}

/// Records a failure that may have hidden an event.
fn lose(recorder: &mut Recorder, label: &str, what: &str, failed: &Failed) {
    recorder.lost(NoticeCode::MappingFailed, format!("{label}: {what}: {failed}"));
}

/// The values of one line that rules can access.
#[derive(Clone, Copy)]
struct LineValues<'a> {
    name: &'static str,
    value: &'a Value,
    item: Option<(&'a Value, &'a Value)>,
    work: &'a Work,
}

impl<'a> LineValues<'a> {
    fn new(name: &'static str, value: &'a Value, work: &'a Work) -> Self {
        Self { name, value, item: None, work }
    }

    fn within(self, item: &'a Value, index: &'a Value) -> Self {
        Self { item: Some((item, index)), ..self }
    }

    fn scope<'b>(&'b self, kept: &'b Value) -> Scope<'b> {
        let scope = Scope::new(self.work).with(self.name, self.value).with("kept", kept);
        match self.item {
            Some((item, index)) => scope.with("it", item).with("index", index),
            None => scope,
        }
    }

    fn shown(&self) -> String {
        self.innermost().to_string()
    }

    /// Returns the item, or the line if there is none.
    fn innermost(&self) -> &'a Value {
        self.item.map_or(self.value, |(item, _)| item)
    }

    fn may_be_of_call(&self) -> bool {
        may_be_of_call(self.innermost())
    }

    /// Records that a condition could not be evaluated. It may have hidden a call.
    fn tell_or_lose(&self, recorder: &mut Recorder, label: &str, what: &str, failed: &Failed) {
        match self.may_be_of_call() {
            true => recorder.did_unseen(NoticeCode::MappingFailed, format!("{label}: {what}: {failed}")),
            false => tell(recorder, label, what, failed),
        }
    }
}

impl Translate for Translator {
    fn recv(&mut self, line: &WireLine, recorder: &mut Recorder) {
        self.take_printed(recorder);
        self.begin();
        let text = trimmed(&line.line);
        if text.is_empty() {
            return;
        }
        let parsed = if text.starts_with(['{', '[', '"']) { surrogates::parse(text).ok() } else { None };
        let value = match parsed {
            Some(value @ Value::Object(_)) => value,
            other => return self.text(text, other.as_ref(), recorder),
        };
        let (mapping, work) = (self.mapping.clone(), Work::default());
        if let Some(started) = &mapping.started
            && started.holds(&Scope::new(&work).with("line", &value)) == Ok(true)
        {
            recorder.started();
            // A recording may go on with that of a resumed session, which has an end of its own.
            self.session.begins_again();
        }
        if self.run(&mapping.lines, &LineValues::new("line", &value, &work), recorder).is_none() {
            self.take_unmapped(&value, text, recorder);
        }
        self.tell_failed(false, recorder);
    }

    /// Ignores the agent's input: it is the prompt, which the engine records.
    fn send(&mut self, _line: &WireLine, _recorder: &mut Recorder) {}

    fn engine(&mut self, line: &EngineLine, _recorder: &mut Recorder) {
        match line {
            EngineLine::Prompt { text } => self.session.prompted(text),
            EngineLine::Answered { text } => self.session.model_answered(text),
            EngineLine::Start { .. }
            | EngineLine::AgentVersion { .. }
            | EngineLine::NotStarted { .. }
            | EngineLine::Handshake { .. }
            | EngineLine::Unattended { .. }
            | EngineLine::Limit { .. }
            | EngineLine::Interrupted
            | EngineLine::Cancel
            | EngineLine::CloseStdin
            | EngineLine::Signal { .. }
            | EngineLine::Stopped { .. }
            | EngineLine::Escaped { .. }
            | EngineLine::Restart
            | EngineLine::Terminal { .. }
            | EngineLine::Permission { .. }
            | EngineLine::Priced { .. }
            | EngineLine::Gateway { .. }
            | EngineLine::Refused { .. }
            | EngineLine::OutputLimit
            | EngineLine::Filtered
            | EngineLine::Followed { .. }
            | EngineLine::Notice { .. }
            | EngineLine::Unknown => {}
        }
    }

    fn ends(&self, line: &WireLine) -> bool {
        let Ok(value @ Value::Object(_)) = surrogates::parse(trimmed(&line.line)) else { return false };
        let work = Work::default();
        let seen = LineValues::new("line", &value, &work);
        let scope = seen.scope(&self.kept);
        let ends = |rule: &Rule| rule.emit.iter().any(|event| event.kind == Kind::Stop);
        let holds = |rule: &Rule| rule.when.as_ref().is_none_or(|when| when.holds(&scope) == Ok(true));
        self.mapping.lines.iter().any(|rule| (ends(rule) || rule.rules.iter().any(ends)) && holds(rule))
    }

    fn taken_by(&self) -> Option<&str> {
        Some(self.taken.as_str()).filter(|taken| !taken.is_empty())
    }

    fn not_found(&self) -> &[String] {
        &self.not_found
    }

    /// Keeps the line if a rule may take it.
    fn stderr(&mut self, line: &str) {
        let (work, shown) = (Work::default(), Value::String(line.to_owned()));
        let seen = LineValues::new("text", &shown, &work);
        let may_take =
            |rule: &Rule| rule.when.as_ref().is_none_or(|when| when.holds(&seen.scope(&self.kept)) != Ok(false));
        if self.mapping.stderr.iter().any(may_take) {
            self.printed.push(line.to_owned());
        }
    }

    fn last_words(&mut self, stderr: &str) {
        stderr.trim_end().clone_into(&mut self.stderr);
    }

    fn finish(&mut self, recorder: &mut Recorder, exit: Option<Exit>) -> EndReport {
        let has_failed = exit.and_then(|exit| exit.code).is_some_and(|code| code != 0);
        self.take_printed(recorder);
        self.begin();
        self.tell_awaited(recorder);
        self.session.settle_all(recorder);
        self.session.settle_requests(recorder);
        self.tell_failed(true, recorder);
        if *self.session.answer() == EndReport::None && self.failed.is_none() {
            let (mapping, work) = (self.mapping.clone(), Work::default());
            let mut exit = serde_json::to_value(exit).unwrap_or_default();
            if let Value::Object(exit) = &mut exit {
                exit.insert("stderr".to_owned(), std::mem::take(&mut self.stderr).into());
            }
            self.run(&mapping.ends, &LineValues::new("exit", &exit, &work), recorder);
        }
        self.session.tell_unfinished(recorder);
        match (self.session.take_answer(has_failed), self.failed.take()) {
            (EndReport::None, Some(text)) => EndReport::Failed { category: errors::by_text(&text), detail: text },
            (answer, _) => answer,
        }
    }
}

//! Adds the events of the rules to the trace, for every agent. Only this module does so.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::texts::{TextKey, Texts};
use super::values::Values;
use crate::adapter::acp::usage::{Figures, is_left_out};
use crate::adapter::requests::Requests;
use crate::adapter::session_file::facts::EndShown;
use crate::adapter::typed_input::{self, TypedInput};
use crate::adapter::{EndReport, errors, hash};
use crate::big_numbers;
use crate::harness::stream::Kind;
use crate::harness::{Manifest, ToolKinds, UsageConvention, UsageOf};
use crate::repeated_key::repeated_key;
use crate::text::first_bytes;
use crate::trace::recorder::{
    Answered, CallReport, Continuation, DecidedBy, MAX_TEXT, QuotedLine, Recorder, ReportedStatus, ResultReport, Voice,
};
use crate::trace::usage::Measure;
use crate::trace::view;
use crate::trace::{Agent, ErrorCategory, NoticeCode, PermissionOutcome, Role, StopReason, ToolKind, UsageScope};
use crate::values::Pattern;

use crate::harness::stream::compile::{UNKNOWN_KIND, category_of};

/// The fields of a usage report that count tokens.
const TOKEN_COUNTS: [&str; 6] = ["input", "output", "thought", "cache-read", "cache-write", "total"];

/// The status of a call that goes on after this output. A later result ends the call.
const RUNNING: &str = "running";
/// The status of a call that the agent reports as a success, although it may have failed. The outcome is unknown.
const NOT_SHOWN: &str = "unknown success";

/// The maximum number of answered requests, and of requested calls, that are remembered.
const MAX_ANSWERED: usize = 10_000;

/// The parts of a session's events that later events depend on.
pub(super) struct Session {
    kinds: ToolKinds,
    usage: UsageConvention,
    error_text: Vec<Pattern>,
    texts: Texts,
    /// Arguments of open calls that are sent in pieces.
    pieces: HashMap<String, String>,
    /// Hashes of the user's known prompts, so that an echo does not count as another prompt.
    prompts: HashSet<u64>,
    /// The permission requests without an answer, by their ids in the trace.
    requests: Requests<String>,
    /// The answers to earlier requests, by the agent's id.
    answered: HashMap<String, PermissionOutcome>,
    /// The calls that requests were about before they were announced, with the lines of the requests.
    asked_of: BTreeMap<String, QuotedLine>,
    answer: EndReport,
    /// True if the answer is an error because of its text alone.
    is_error_by_text: bool,
    /// The model's last answer, if the gateway saw it and it looks like an error.
    answer_of_model: Option<String>,
    /// True if the lines are from a session file: each text of the user is a prompt, and the session continues after
    /// the end of a turn.
    kept_on_disk: bool,
    /// The facts about the ends of calls that lines of a session file show, beside the results.
    ends: HashMap<String, EndShown>,
    /// True after the first prompt of the user.
    has_prompt: bool,
    /// The commands that wait for input, if the agent does not show what it types.
    typed_input: Option<TypedInput>,
    /// True if an earlier line reported the end of the session.
    had_ended: bool,
    /// True if the main agent spoke or made a call after the last end that it reported.
    went_on: bool,
}

impl Session {
    pub(super) fn new(manifest: &Manifest) -> Self {
        Self {
            kinds: manifest.tool_kinds.clone(),
            usage: manifest.usage.clone(),
            error_text: manifest.error_text.clone(),
            texts: Texts::default(),
            pieces: HashMap::new(),
            prompts: HashSet::new(),
            requests: Requests::default(),
            answered: HashMap::new(),
            asked_of: BTreeMap::new(),
            answer: EndReport::None,
            is_error_by_text: false,
            answer_of_model: None,
            kept_on_disk: false,
            ends: HashMap::new(),
            has_prompt: false,
            typed_input: typed_input::is_unshown(manifest).then(TypedInput::default),
            had_ended: false,
            went_on: false,
        }
    }

    pub(super) fn of_file(manifest: &Manifest, ends: HashMap<String, EndShown>) -> Self {
        // The file shows all calls.
        Self { kept_on_disk: true, ends, typed_input: None, ..Self::new(manifest) }
    }

    pub(super) fn prompted(&mut self, text: &str) {
        self.prompts.insert(hash(text.trim()));
        self.begins_again();
    }

    /// Forgets how the session ended, because the agent has started again.
    pub(super) fn begins_again(&mut self) {
        self.answer = EndReport::None;
        (self.had_ended, self.went_on) = (false, false);
    }

    /// Begins a line. What the line of the end itself shows is no work after the end.
    pub(super) fn begin_line(&mut self) {
        self.had_ended = !self.kept_on_disk && self.answer != EndReport::None;
    }

    /// Reports, at the end of the session, that the agent went on after the end that it reported, and reported no other.
    pub(super) fn tell_unfinished(&mut self, recorder: &mut Recorder) {
        if std::mem::take(&mut self.went_on) && matches!(self.answer, EndReport::Ended { .. }) {
            let text = "the agent went on after the end that it reported, and reported no other end";
            recorder.lost_text(NoticeCode::UnfinishedTurn, text);
        }
    }

    pub(super) fn answer(&self) -> &EndReport {
        &self.answer
    }

    /// Takes the model's last answer, which looks like an error, as the gateway saw it.
    pub(super) fn model_answered(&mut self, text: &str) {
        self.answer_of_model = Some(text.trim().to_owned());
    }

    /// Returns how the agent ended the session. If its text alone makes the answer an error, and the model gave this text, it
    /// is no error. `has_failed` is true if the exit code shows a failure.
    pub(super) fn take_answer(&mut self, has_failed: bool) -> EndReport {
        let may_be_by_model = self.is_error_by_text && !has_failed;
        let by_model = self.answer_of_model.as_deref().filter(|_| may_be_by_model);
        match std::mem::replace(&mut self.answer, EndReport::None) {
            EndReport::Failed { detail, .. } if by_model == Some(detail.trim()) => {
                EndReport::Ended { reason: StopReason::EndTurn, detail: None }
            }
            answer => answer,
        }
    }

    pub(super) fn event(&mut self, values: &mut Values, recorder: &mut Recorder) {
        if self.kept_on_disk && matches!(values.kind, Kind::Message | Kind::Thought | Kind::ToolCall) {
            self.answer = EndReport::None;
        }
        let is_of_main = self.had_ended && !values.has("parent");
        let before = is_of_main.then(|| (recorder.answer().into_owned(), recorder.call_count()));
        let is_thought = values.kind == Kind::Thought && !values.says_nothing();
        let is_call = values.kind == Kind::ToolCall;
        self.record(values, recorder);
        if let Some((answer, calls)) = before.filter(|_| self.had_ended) {
            let now = recorder.answer();
            // A repetition of the answer is no news.
            let repeats = |text: &str| text.trim() == answer.trim();
            let is_message =
                !now.is_empty() && !repeats(&now) && !now.strip_prefix(answer.trim_end()).is_some_and(repeats);
            self.went_on |= is_thought || is_message || (is_call && recorder.call_count() > calls);
        }
    }

    fn record(&mut self, values: &mut Values, recorder: &mut Recorder) {
        match values.kind {
            Kind::Header => header(values, self.kept_on_disk, self.has_prompt, recorder),
            Kind::Message | Kind::Thought => self.speak(values, recorder),
            Kind::Plan => {
                let entries = values.plan("entries");
                let parent = parent(values, recorder);
                if values.wrong_is_empty() || !entries.is_empty() {
                    recorder.plan(parent, entries);
                }
            }
            Kind::ToolCall => self.call(values, recorder),
            Kind::ToolResult => self.result(values, recorder),
            Kind::Denied => {
                if let Some(id) = values.needed("id") {
                    recorder.deny(&id);
                }
            }
            Kind::PermissionRequest => {
                let (Some(request), Some(id)) = (values.needed("request"), values.needed("id")) else { return };
                let unique = recorder.request(&request, &id, values.options("options"));
                self.requests.ask(&request, Some(id.as_str()), unique, recorder);
                if recorder.was_announced(&id) || self.asked_of.contains_key(&id) {
                    return;
                }
                if self.asked_of.len() < MAX_ANSWERED {
                    self.asked_of.insert(id, recorder.this_line());
                } else {
                    let text = format!("the agent asked for permission for the call {id} before it described the call");
                    recorder.did_unseen(NoticeCode::TooManyRequests, text);
                }
            }
            Kind::PermissionResponse => self.respond(values, recorder),
            Kind::Usage => self.usage(values, recorder),
            Kind::Notice => {
                let (Some(code), Some(text)) = (values.needed("code"), values.needed("text")) else { return };
                let code = NoticeCode::from(code.as_str());
                match values.word("lost").as_deref() {
                    None => recorder.notice(code, text),
                    Some("line") => recorder.lost(code, text),
                    Some("call") => recorder.did_unseen(code, text),
                    Some("text") => recorder.lost_text(code, text),
                    Some("speaker") => recorder.end_other_text(code, &text),
                    Some("outcome") => recorder.contradicted(code, text),
                    Some(other) => {
                        let why = format!("`{other}` is not a loss; expected line, call, text, speaker or outcome");
                        values.refuse("lost", why);
                        recorder.lost(code, text);
                    }
                }
            }
            Kind::Stop => self.stop(values, recorder),
        }
    }

    fn speak(&mut self, values: &mut Values, recorder: &mut Recorder) {
        let parent = parent(values, recorder);
        if let Some(parent) = parent.as_ref().filter(|parent| !recorder.was_recorded(parent)) {
            // Whether the text is the main agent's is unknown.
            let text = format!("a text names {parent} as its parent, but no such call was made");
            recorder.lost_text(NoticeCode::UnknownParent, text);
        }
        let thought = values.kind == Kind::Thought;
        let role = values.word("role").unwrap_or_default();
        let id = values.word("id");
        let role = match role.as_str() {
            "user" => Role::User,
            "" | "agent" => Role::Agent,
            other => return values.refuse("role", format!("`{other}` is not a role; expected `agent` or `user`")),
        };
        let attachments = values.attachments("attachments");
        if values.flag("begins-answer") && role == Role::Agent && parent.is_none() {
            recorder.complete_answer();
        }
        let key = TextKey { thought, parent: parent.clone(), id };
        match ["text", "delta", "snapshot"].into_iter().find(|field| values.has(field)) {
            None => values.lacks_text(),
            Some(field) => match (role, field, values.text(field)) {
                (_, _, None) => {}
                (Role::User, _, Some(text)) => self.user(parent.clone(), &text, recorder),
                (Role::Agent, "delta", Some(text)) => self.texts.delta(key, &text, recorder),
                (Role::Agent, "snapshot", Some(text)) => self.texts.snapshot(key, &text, recorder),
                (Role::Agent, _, Some(text)) => self.texts.whole(key, &text, recorder),
            },
        }
        for attachment in attachments {
            self.has_prompt |= role == Role::User && parent.is_none();
            recorder.attach(role, parent.clone(), attachment);
        }
    }

    /// Records a text in the user's name: the prompt, unless it is known already, or a sub-agent's prompt.
    fn user(&mut self, parent: Option<String>, text: &str, recorder: &mut Recorder) {
        if parent.is_none() && !self.prompts.insert(hash(text.trim())) && !self.kept_on_disk {
            return;
        }
        self.has_prompt |= parent.is_none();
        recorder.say(Voice::User, parent, text, Continuation::Block);
    }

    fn call(&mut self, values: &mut Values, recorder: &mut Recorder) {
        let Some(id) = values.needed("id") else { return };
        let parent = parent(values, recorder);
        let name = values.word("name");
        let kind_word = values.word("kind");
        let kind = kind_word.as_deref().and_then(ToolKind::from_word);
        if let Some(word) = kind_word.as_deref().filter(|word| kind.is_none() && *word != UNKNOWN_KIND) {
            values.refuse("kind", format!("`{word}` is not a tool kind"));
        }
        let is_unknown = kind_word.is_some() && kind.is_none();
        let mut report = CallReport {
            kind: kind.or_else(|| self.kinds.of(name.as_deref().filter(|_| !is_unknown)?)),
            parent,
            group: values.word("group"),
            name,
            title: values.word("title"),
            input: values.take("input").map(unpacked),
            locations: values.locations("locations"),
            cwd: values.word("cwd").map(|folder| view::of_url(&folder).into_owned()),
            ..CallReport::default()
        };
        // Without a kind of its own and a name that the table lists, the kind is unknown, unless an earlier announcement
        // had one.
        let is_first = |recorder: &mut Recorder| !recorder.is_open(&id) || recorder.is_another(&id, &report);
        report.unknown_kind = is_unknown || (report.kind.is_none() && is_first(recorder));
        let piece = values.text("input-delta");
        self.texts.break_off();
        if recorder.may_end_calls() {
            self.settle_all(recorder);
        }
        let command = report.input.clone().filter(|_| report.kind == Some(ToolKind::Execute));
        recorder.call(&id, report);
        if let Some((typed, command)) = self.typed_input.as_mut().zip(command) {
            typed.look_at(&id, &command, recorder);
        }
        if let Some(piece) = piece {
            let pieces = self.pieces.entry(id.clone()).or_default();
            // A piece after one that was left out would make another input.
            if pieces.len() <= MAX_TEXT {
                pieces.push_str(&piece);
            } else {
                let text =
                    format!("the input of the call {id} is longer than {MAX_TEXT} bytes, and its end is left out");
                recorder.did_unseen(NoticeCode::InputCut, text);
            }
        }
    }

    /// Completes a call's arguments that arrived in pieces. A fuller input that was sent complete stays.
    fn settle(&mut self, id: &str, recorder: &mut Recorder) {
        let Some(pieces) = self.pieces.remove(id) else { return };
        let input = unpacked(Value::String(pieces));
        recorder.showed_first(id, &input);
        recorder.update(id, CallReport { input: Some(input), ..CallReport::default() }, true);
    }

    pub(super) fn settle_all(&mut self, recorder: &mut Recorder) {
        let mut ids: Vec<String> = self.pieces.keys().cloned().collect();
        ids.sort();
        for id in ids {
            self.settle(&id, recorder);
        }
    }

    /// Reports, at the end of the session, the commands that wait for input and did not end, and the calls that the agent asked
    /// about and never described.
    pub(super) fn settle_requests(&mut self, recorder: &mut Recorder) {
        if let Some(typed) = &mut self.typed_input {
            typed.finish(recorder);
        }
        for (id, line) in std::mem::take(&mut self.asked_of) {
            if !recorder.was_announced(&id) {
                let text = format!("the agent asked for permission for the call {id}, which it never described");
                recorder.about(line, |recorder| recorder.did_unseen(NoticeCode::UnknownCall, text));
            }
        }
    }

    fn result(&mut self, values: &mut Values, recorder: &mut Recorder) {
        let Some(id) = values.needed("id") else { return };
        self.settle(&id, recorder);
        let outcome = outcome(values);
        let goes_on = matches!(outcome, Outcome::GoesOn);
        let outcome = match outcome {
            Outcome::Reported(status) => Some(status),
            Outcome::GoesOn | Outcome::Unknown => None,
        };
        let states_exit = values.has("exit-code") || values.is_broken("exit-code");
        let mut report = ResultReport {
            outcome: outcome.unwrap_or_default(),
            output: values.text("output"),
            diffs: values.diffs("diffs"),
            exit_code: values.integer("exit-code"),
            truncated: values.flag("truncated"),
        };
        self.texts.break_off();
        if outcome.is_none() || (outcome == Some(ReportedStatus::Ok) && states_exit && report.exit_code.is_none()) {
            // The call stays open, and ends as unfinished with what is known of it.
            let so_far = CallReport { output: report.output, diffs: report.diffs, ..CallReport::default() };
            recorder.update(&id, so_far, false);
            if !goes_on {
                recorder.unclear_outcome(&id);
            }
            return;
        }
        if let Some(shown) = self.ends.get(&id) {
            agree(&id, &mut report, shown, recorder);
        }
        if let Some(typed) = &mut self.typed_input {
            typed.result(&id, &report);
        }
        recorder.end_or_repeat(&id, &id, report);
        if let Some(typed) = &mut self.typed_input {
            typed.ended(&id, recorder);
        }
    }

    fn respond(&mut self, values: &mut Values, recorder: &mut Recorder) {
        let (Some(request), Some(outcome)) = (values.needed("request"), values.needed("outcome")) else { return };
        let outcome = match outcome.as_str() {
            "allowed" => PermissionOutcome::Allowed,
            "rejected" => PermissionOutcome::Rejected,
            "cancelled" => PermissionOutcome::Cancelled,
            other => {
                return values.refuse(
                    "outcome",
                    format!("`{other}` is not an outcome; expected allowed, rejected or cancelled"),
                );
            }
        };
        let Some((unique, _)) = self.requests.pop(&request) else {
            let text = format!("an answer to the request {request}, which is not open");
            return match self.answered.get(&request) == Some(&outcome) {
                true => recorder.notice(NoticeCode::UnknownRequest, text),
                false => recorder.lost(NoticeCode::UnknownRequest, text),
            };
        };
        if self.answered.len() < MAX_ANSWERED {
            self.answered.insert(request, outcome);
        }
        let (option, reason) = (values.word("option"), values.word("reason"));
        let answered =
            Answered { outcome, option, by: DecidedBy { reason, ..DecidedBy::default() }, updated_input: None };
        recorder.respond(&unique, answered);
    }

    fn usage(&mut self, values: &mut Values, recorder: &mut Recorder) {
        let Some(scope) = self.usage_scope(values) else {
            return recorder.notice(NoticeCode::UsageIncomplete, "a usage report with an unreadable scope is left out");
        };
        let figures = Figures {
            input: values.count("input"),
            output: values.count("output"),
            thought: values.count("thought"),
            cache_read: values.count("cache-read"),
            cache_write: values.count("cache-write"),
            total: values.count("total"),
        };
        let mut usage = figures.as_usage(scope, &self.usage);
        usage.cost_usd = values.amount("cost-usd");
        if values.is_unreadable("cost-usd") {
            usage.lacks_cost();
        }
        usage.context_used = values.count("context-used");
        usage.context_size = values.count("context-size");
        usage.model = values.word("model");
        if is_left_out(&self.usage, recorder.usage_total().activity()) {
            usage.at_least(Measure::all());
        }
        if TOKEN_COUNTS.iter().any(|field| values.is_unreadable(field)) {
            recorder.notice(
                NoticeCode::UsageIncomplete,
                "a count of a usage report cannot be read, so the totals are lower bounds",
            );
        }
        recorder.usage(usage, false);
    }

    /// Returns the scope of a usage report, or `None` if the report states one that cannot be read.
    fn usage_scope(&self, values: &mut Values) -> Option<UsageScope> {
        match values.word("scope").as_deref() {
            Some("call") => Some(UsageScope::Call),
            Some("turn") => Some(UsageScope::Turn),
            Some("session") => Some(UsageScope::Session),
            Some(other) => {
                values.refuse("scope", format!("`{other}` is not a scope; expected call, turn or session"));
                None
            }
            None if values.is_unreadable("scope") => None,
            None => Some(match self.usage.scope {
                Some(UsageOf::Call) => UsageScope::Call,
                Some(UsageOf::Session) => UsageScope::Session,
                Some(UsageOf::Turn) | None => UsageScope::Turn,
            }),
        }
    }

    fn stop(&mut self, values: &mut Values, recorder: &mut Recorder) {
        (self.had_ended, self.went_on) = (false, false);
        self.settle_all(recorder);
        self.texts.break_off();
        let reason = values.text("reason");
        let (detail, output) = (values.word("detail"), values.word("output"));
        if let Some(why) = values.absence_of("output").filter(|_| recorder.answer().is_empty()) {
            recorder.lost_text(
                NoticeCode::AnswerNotShown,
                format!("the end of the session does not show the answer: {why}"),
            );
        }
        let category = values.word("category").and_then(|word| {
            let category = category_of(&word);
            if category.is_none() {
                values.refuse(
                    "category",
                    format!("`{word}` is not a category; expected auth, rate_limit, provider or protocol"),
                );
            }
            category
        });
        let http = values.count("http").and_then(errors::by_status);
        let ended = |reason, detail: Option<String>| EndReport::Ended { reason, detail };
        self.is_error_by_text = false;
        let answer = match reason.as_deref() {
            None | Some("") => {
                values.lacks("reason");
                let detail = detail.unwrap_or_else(|| "the agent's stop event has no reason".to_owned());
                EndReport::Failed { category: ErrorCategory::Protocol, detail }
            }
            Some("error") => {
                let detail =
                    detail.or_else(|| output.clone()).unwrap_or_else(|| "the agent gave no details".to_owned());
                let category = category.or(http).unwrap_or_else(|| errors::by_text(&detail));
                EndReport::Failed { category, detail }
            }
            Some("end_turn") => self.end_turn(detail, output.as_deref(), recorder),
            Some("max_tokens") => {
                self.say_lost(output.as_deref(), recorder);
                ended(StopReason::MaxTokens, detail)
            }
            Some("max_turns") => ended(StopReason::MaxTurns, detail),
            Some("max_budget") => ended(StopReason::MaxBudget, detail),
            Some("refusal") => ended(StopReason::Refusal, detail),
            Some("cancelled") => ended(StopReason::Cancelled, detail),
            Some(other) => {
                let detail = detail.map_or_else(|| other.to_owned(), |detail| format!("{other}: {detail}"));
                ended(StopReason::Other, Some(detail))
            }
        };
        recorder.end_turn(matches!(answer, EndReport::Ended { reason: StopReason::Cancelled, .. }));
        if self.kept_on_disk {
            // The agent may begin the next turn itself, without a prompt.
            recorder.complete_answer();
        }
        self.answer = answer;
    }

    /// Ends the turn at the agent's word; its answer may still be an error.
    fn end_turn(&mut self, detail: Option<String>, output: Option<&str>, recorder: &mut Recorder) -> EndReport {
        let answer = recorder.answer().into_owned();
        let answer_text = if answer.is_empty() { output.unwrap_or_default() } else { &answer };
        if self.error_text.iter().any(|pattern| pattern.is_match(answer_text)) {
            self.is_error_by_text = !answer.is_empty();
            return EndReport::Failed { category: errors::by_text(answer_text), detail: answer_text.to_owned() };
        }
        let is_other = |output: &&str| {
            let (answer_text, output) = (answer.trim(), output.trim());
            !answer_text.is_empty()
                && !output.is_empty()
                && !answer_text.contains(output)
                && !output.contains(answer_text)
        };
        if let Some(output) = output.filter(is_other) {
            let text = first_bytes(output, 200);
            let text = format!("the end of the session gives another answer than its messages: {text}");
            recorder.lost_text(NoticeCode::AnswerDiffers, text);
        }
        self.say_lost(output, recorder);
        EndReport::Ended { reason: StopReason::EndTurn, detail }
    }

    /// Records the final answer instead of a message that did not arrive.
    fn say_lost(&mut self, output: Option<&str>, recorder: &mut Recorder) {
        if let Some(output) = output.filter(|_| recorder.answer().is_empty()) {
            self.texts.whole(TextKey { thought: false, parent: None, id: None }, output, recorder);
        }
    }
}

/// The outcome of a call that a result shows.
enum Outcome {
    /// The outcome that the agent reports.
    Reported(ReportedStatus),
    /// None yet: the call goes on.
    GoesOn,
    /// An unknown outcome: the agent does not show it, the rule looks for it and does not find it, its expression fails, or its
    /// word is not a status.
    Unknown,
}

/// Returns the outcome of a call.
fn outcome(values: &mut Values) -> Outcome {
    if let Some(why) = values.absence_of("status") {
        values.refuse("status", why);
        return Outcome::Unknown;
    }
    if values.is_broken("status") {
        // The notice exists already.
        return Outcome::Unknown;
    }
    let is_stated = values.has("status");
    match values.word("status").as_deref() {
        Some("ok") => Outcome::Reported(ReportedStatus::Ok),
        Some("error") => Outcome::Reported(ReportedStatus::Failed),
        Some("denied") => Outcome::Reported(ReportedStatus::Denied),
        Some("cancelled") => Outcome::Reported(ReportedStatus::Cancelled),
        Some(RUNNING) => Outcome::GoesOn,
        Some(NOT_SHOWN) => {
            values.refuse("status", "the agent does not show whether the call failed");
            Outcome::Unknown
        }
        Some(other) => {
            let why = format!("`{other}` is not a status; expected ok, error, denied or cancelled");
            values.refuse("status", why);
            Outcome::Unknown
        }
        None if is_stated => Outcome::Unknown,
        None => Outcome::Reported(ReportedStatus::Ok),
    }
}

/// Returns the sub-agent that makes the event, as the id in the trace of the call that started it.
fn parent(values: &mut Values, recorder: &Recorder) -> Option<String> {
    values.word("parent").map(|id| recorder.call_id(&id))
}

/// Compares a result with the facts that other lines show about the end of its call. If they contradict each other, the
/// outcome is an error without an exit code.
fn agree(id: &str, report: &mut ResultReport, shown: &EndShown, recorder: &mut Recorder) {
    if !matches!(report.outcome, ReportedStatus::Ok | ReportedStatus::Failed) {
        return;
    }
    let failed = report.outcome == ReportedStatus::Failed || report.exit_code.is_some_and(|code| code != 0);
    let says_so = failed || report.exit_code == Some(0);
    let codes_differ = report.exit_code.zip(shown.exit_code).is_some_and(|(one, other)| one != other);
    let contradicts = codes_differ
        || shown.differs
        || (shown.failed && shown.succeeded)
        || (failed && shown.succeeded)
        || (says_so && !failed && shown.failed);
    if contradicts {
        let word = |failed: bool| if failed { "failed" } else { "succeeded" };
        let text = format!(
            "the result of the call {id} says that it {}, and another line that it {}; the outcome is unknown and counts \
             as an error",
            word(failed),
            word(if codes_differ || shown.differs { shown.failed } else { !failed })
        );
        recorder.notice(NoticeCode::ResultContradicts, text);
        (report.outcome, report.exit_code) = (ReportedStatus::Failed, None);
        return;
    }
    report.exit_code = report.exit_code.or(shown.exit_code);
    if shown.failed {
        report.outcome = ReportedStatus::Failed;
    }
}

/// Parses arguments that are sent as a JSON text. A text with a key twice in an object stays a text.
fn unpacked(input: Value) -> Value {
    match &input {
        Value::String(text) if repeated_key(text).is_some() => input,
        Value::String(text) => match serde_json::from_str::<Value>(&big_numbers::as_texts(text)) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => value,
            _ => input,
        },
        _ => input,
    }
}

fn header(values: &mut Values, kept_on_disk: bool, has_prompt: bool, recorder: &mut Recorder) {
    let (name, version) = (values.word("agent"), values.word("version"));
    let (model, cwd) = (values.word("model"), values.word("cwd"));
    let origin = ["session", "branch", "commit"].map(|field| values.word(field));
    let header = recorder.header();
    if origin.iter().any(Option::is_some) {
        let [id, branch, commit] = origin;
        let kept = header.session.get_or_insert_default();
        kept.id = kept.id.take().or(id);
        // A fork of a session begins with its own state, and then repeats the original from its beginning.
        let (branch_before, commit_before) = (kept.branch.take(), kept.commit.take());
        let is_later = has_prompt || !kept_on_disk;
        kept.branch = if is_later { branch_before.or(branch) } else { branch.or(branch_before) };
        kept.commit = if is_later { commit_before.or(commit) } else { commit.or(commit_before) };
    }
    if let Some(name) = name {
        let version = version.or_else(|| header.agent.take().and_then(|agent| agent.version));
        header.agent = Some(Agent { name, version });
    } else if let (Some(version), Some(agent)) = (version, &mut header.agent) {
        agent.version = Some(version);
    }
    // A session on disk may go on in another folder. Its calls name theirs.
    header.cwd = if kept_on_disk { header.cwd.take().or(cwd) } else { cwd.or(header.cwd.take()) };
    let Some(model) = model else { return };
    let before = header.model.effective.replace(model.clone());
    if let Some(before) = before.filter(|before| *before != model) {
        recorder.notice(NoticeCode::ModelChanged, format!("the model changed from {before} to {model}"));
    }
}

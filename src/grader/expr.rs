//! `expr`: evaluates an expression over a trial. It keeps only the data that the expression uses, which may be
//! all calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use super::trial_json::{self, Account, CALLS_BY_KIND};
use crate::reason_text;
use crate::text::plural;
use crate::trace::{FollowedLink, Lost, ToolKind, UnseenAction};
use crate::yaml::forms::{Forms, deserialize_forms};
use crate::yaml::lists::not_null;
use async_trait::async_trait;

use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject, WrongExpression};
use bounds::LowerBounds;

use crate::expression::{Expression, Failed, Scope, Untrue, Work, Wrong};
use crate::grade::{Bounds, Grade, Score};
use crate::harness::reading;
use crate::judgement::tolerance;
use crate::trace::{Body as EventBody, Event, Seen};
use crate::values::Fraction;

mod bounds;
mod types;

/// The variables of expressions.
const VARIABLES: [&str; 8] = ["calls", "messages", "output", "stop", "usage", "permissions", "files", "metrics"];

/// An expression that gives true, false, or a share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a map such as `{cel: size(calls) > 0}`")]
pub struct Expr {
    /// The expression, in CEL: true, false, or a number from 0 to 1.
    pub cel: Cel,
    /// The minimum result to pass, for an expression that gives a number. Default: 1.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
}

/// An expression as written, and the result of compiling it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cel {
    text: String,
    compiled: Result<Expression, Wrong>,
}

impl Cel {
    fn of(text: &str) -> Self {
        let compiled = Expression::compile(text, &VARIABLES).and_then(|compiled| {
            types::check(text, compiled.program())?;
            Ok(compiled)
        });
        Self { text: text.to_owned(), compiled }
    }
}

impl Forms<'_> for Cel {
    const EXPECTED: &'static str = "an expression such as `size(calls) < 10`";

    // Errors in the expression are reported later, with line and column within it.
    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(Cel::of(text))
    }

    fn from_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Err(E::custom(format_args!("`{flag}` is always {flag}: this would check nothing")))
    }
}

deserialize_forms!(Cel, deserialize_any);

impl Serialize for Cel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
impl JsonSchema for Cel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cel".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "minLength": 1, "description": "an expression in CEL"})
    }
}

impl GraderSpec for Expr {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        let Ok(compiled) = &self.cel.compiled else { return true };
        let names = |names: &[&str]| names.iter().any(|name| types::names(compiled.program(), name));
        match lost {
            Lost::Line => true,
            // The final answer, the end and the workspace are known whatever calls there were.
            Lost::Call => names(&["calls", "messages", "usage", "permissions", "metrics"]),
            Lost::Outcome | Lost::Caller => names(&["calls", "permissions", "metrics"]),
            Lost::Text | Lost::Speaker => names(&["calls", "messages", "output", "stop", "permissions"]),
        }
    }

    fn reads_answer(&self) -> bool {
        self.cel.compiled.as_ref().is_ok_and(|it| {
            let program = it.program();
            types::names(program, "output") || (types::names(program, "stop") && types::reads_field(program, "output"))
        })
    }

    fn reads_answer_alone(&self) -> bool {
        let names = |name: &&str| self.cel.compiled.as_ref().is_ok_and(|it| types::names(it.program(), name));
        self.reads_answer() && !["calls", "messages", "permissions"].iter().any(names)
    }

    fn needs() -> Needs {
        Needs { calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        (self.min == Some(Fraction::ZERO)).then(|| "checks nothing: with `min: 0` it always passes".to_owned())
    }

    fn wrong_expression(&self) -> Option<WrongExpression<'_>> {
        let wrong = self.cel.compiled.as_ref().err()?;
        Some(WrongExpression { key: "cel", text: &self.cel.text, wrong })
    }

    fn watch(&self) -> Box<dyn Observer> {
        let names = |name| self.cel.compiled.as_ref().is_ok_and(|it| types::names(it.program(), name));
        let reads = |field| self.cel.compiled.as_ref().is_ok_and(|it| types::reads_field(it.program(), field));
        let of_files = names("calls") && (reads("kind") || reads("paths"));
        let of_kinds = names("metrics") && reads(CALLS_BY_KIND);
        Box::new(ExprObserver {
            of_actions: of_files || of_kinds,
            of_tools: of_kinds || (names("calls") && (reads("kind") || reads("name"))),
            actions: Vec::new(),
            of_links: names("calls") && reads("paths"),
            links: Vec::new(),
            of_calls: names("calls"),
            of_messages: names("messages"),
            of_permissions: names("permissions"),
            unknown_kinds: 0,
            unknown_ends: 0,
            wanted: self.clone(),
            account: Account::default(),
        })
    }
}

/// The observer of an `expr` grader: keeps the data that the expression uses.
struct ExprObserver {
    wanted: Expr,
    of_calls: bool,
    of_messages: bool,
    of_permissions: bool,
    /// True if a file that the engine used for the agent can change the result: the expression reads kinds or paths.
    of_actions: bool,
    /// True if a call of a tool that the agent never shows can change the result: the expression reads kinds or names.
    of_tools: bool,
    /// The different files that the engine used without a call, with the first notice about each.
    actions: Vec<(UnseenAction, u64)>,
    /// True if the expression reads the paths of calls.
    of_links: bool,
    /// The paths of calls that lead to other files by links, each with its notice.
    links: Vec<(FollowedLink, u64)>,
    /// The number of calls whose kind is unknown.
    unknown_kinds: u64,
    /// The number of calls of which it is unknown whether they succeeded. Their status is absent.
    unknown_ends: u64,
    account: Account,
}

/// Returns whether a result is a pass, or `None` if it is no grade.
fn verdict(result: &Result<Value, Failed>, min: Option<Fraction>) -> Option<bool> {
    match result {
        Ok(Value::Bool(passed)) => Some(*passed),
        Ok(Value::Number(number)) => {
            let value = number.as_f64().and_then(Fraction::new)?;
            Some(tolerance::reaches(value.get(), min.unwrap_or(Fraction::ONE).get()))
        }
        _ => None,
    }
}

/// The maximum number of files used without a call for which an expression is evaluated again.
const MAX_FILE_ACTIONS: usize = 16;

/// Adds a call that would show an action of the engine, at its place in the list.
fn insert_action(calls: &mut Vec<Value>, metrics: &mut Value, (action, seq): &(UnseenAction, u64)) -> usize {
    let at = calls.partition_point(|call| call["seq"].as_u64() < Some(*seq));
    calls.insert(at, json!({"seq": seq, "kind": action.kind, "paths": [action.path]}));
    count_call(metrics, action.kind);
    at
}

fn count_call(metrics: &mut Value, kind: ToolKind) {
    if let Some(counts) = metrics.get_mut(CALLS_BY_KIND).and_then(Value::as_object_mut) {
        let count = counts.get(kind.word()).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(kind.word().to_owned(), Value::from(count + 1));
    }
}

/// The maximum number of possible targets of moves for which an expression is evaluated again.
const MAX_MOVE_TARGETS: usize = 64;

/// Returns the calls with the files to which their paths lead by links.
fn with_files(calls: &[Value], links: &[&(FollowedLink, u64)]) -> Vec<Value> {
    let files: HashMap<&str, &str> = links.iter().map(|(link, _)| (link.path.as_str(), link.to.as_str())).collect();
    let mut calls = calls.to_vec();
    let paths = calls.iter_mut().filter_map(|call| call.get_mut("paths")?.as_array_mut()).flatten();
    for path in paths {
        if let Some(to) = path.as_str().and_then(|path| files.get(path)) {
            *path = Value::from(*to);
        }
    }
    calls
}

/// Returns the calls with a possible target of a move beside the path that it was moved from.
fn with_target(calls: &[Value], link: &FollowedLink) -> Vec<Value> {
    let mut calls = calls.to_vec();
    for paths in calls.iter_mut().filter_map(|call| call.get_mut("paths")?.as_array_mut()) {
        if paths.iter().any(|path| path == &link.path) {
            paths.push(Value::from(link.to.as_str()));
        }
    }
    calls
}

#[async_trait]
impl Observer for ExprObserver {
    fn event(&mut self, event: &Event) {
        let is_kept = match event.body {
            EventBody::Message(_) => self.of_messages,
            EventBody::PermissionRequest(_) | EventBody::PermissionResponse(_) => self.of_permissions,
            _ => false,
        };
        if is_kept {
            self.account.event(event);
        }
        if let EventBody::Notice { action: Some(action), .. } = &event.body
            && self.of_actions
            && self.actions.len() <= MAX_FILE_ACTIONS
            && !self.actions.iter().any(|(known, _)| known == action)
        {
            self.actions.push((action.clone(), event.seq));
        }
        if let EventBody::Notice { link: Some(link), .. } = &event.body
            && self.of_links
        {
            self.links.push((link.clone(), event.seq));
        }
    }

    fn call(&mut self, call: &Subject<'_>) {
        self.unknown_kinds += u64::from(call.call.unknown_kind);
        self.unknown_ends += u64::from(call.may_have_failed());
        if self.of_calls {
            self.account.call(call);
        } else if self.of_permissions {
            self.account.asked_for(call);
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl ExprObserver {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let Self { wanted: Expr { cel, min }, account, unknown_kinds, unknown_ends, actions, links, of_tools, .. } =
            self;
        let shown = format!("`{}`", reason_text::short(&cel.text, 300));
        let expression = match cel.compiled {
            Ok(expression) => expression,
            Err(wrong) => return Grade::ungraded(format!("{shown} could not be graded: {wrong}")),
        };
        if let Some(why) = account.too_large() {
            return Grade::ungraded(format!("{shown} could not be graded: {why}"));
        }
        if let Some(why) = account.unknown_ends() {
            return Grade::ungraded(format!("{shown} could not be graded, {why}"));
        }
        let (seen, why_unasked) = (evidence.seen(), evidence.why_unasked());
        let mut listed = account.calls;
        trial_json::without_truncated_outputs(&mut listed);
        let metrics = trial_json::metrics(evidence, unknown_kinds > 0);
        let known = Variables {
            seen,
            messages: Value::Array(account.messages),
            permissions: Value::Array(account.permissions),
            output: Value::from(evidence.output),
            stop: trial_json::stop(evidence.stop),
            files: trial_json::files(evidence),
            usage: trial_json::usage(evidence.usage),
        };
        let is_change_known = evidence.change.is_some();
        let unshown_tools = if of_tools { reading(evidence.header).unshown_tools } else { BTreeMap::new() };
        let mut evaluation = Evaluation { expression, known, calls: listed, metrics, min };
        in_time(&shown.clone(), move || {
            let alternatives = evaluation.alternatives(&actions, &links, unshown_tools);
            let Evaluation { expression, known, calls, metrics, .. } = evaluation;
            let (work, calls) = (Work::default(), Value::Array(calls));
            let scope = known.scope(&work, &calls, &metrics);
            let ungraded = |why: &str| {
                let mut reason = format!("{shown} could not be graded: {why}");
                if !seen.tracing && types::names(expression.program(), "calls") {
                    reason.push_str("; the harness shows no tool calls");
                } else if !seen.interaction && types::names(expression.program(), "permissions") {
                    let why = why_unasked.as_deref().unwrap_or("the harness has no way to ask for permission");
                    reason.push_str(&format!("; {why}"));
                } else if !is_change_known && types::names(expression.program(), "files") {
                    reason.push_str("; the change of the workspace is not known");
                } else if unknown_kinds > 0 && expression.keys_of("metrics").iter().any(|(key, _)| key == CALLS_BY_KIND)
                {
                    reason.push_str(&format!("; the kind of {} is unknown", plural(unknown_kinds, "call")));
                } else if unknown_ends > 0 && types::reads_field(expression.program(), "status") {
                    reason.push_str(&format!("; whether {} succeeded is unknown", plural(unknown_ends, "call")));
                }
                Grade::ungraded(reason)
            };
            if let Some(why) = LowerBounds::of(&known.usage, &metrics, &known.files).leave_open(&expression, &scope) {
                return ungraded(&why);
            }
            let result = expression.run(&scope);
            let here = verdict(&result, min);
            if let Some((why, _)) = alternatives.iter().find(|(_, other)| here.is_some() && *other != here) {
                return ungraded(why);
            }
            match result {
                Err(Failed::Absent(why) | Failed::Broken(why)) => ungraded(&why),
                Ok(Value::Bool(true)) => Grade::pass(format!("{shown} is true")),
                Ok(Value::Bool(false)) => {
                    let (why, events) = why_untrue(&expression.untrue(&scope), cel.text.trim());
                    Grade::fail(format!("{shown} is false{why}")).pointing_at(events)
                }
                Ok(Value::Number(number)) => match number.as_f64().and_then(Fraction::new) {
                    Some(value) => {
                        let min = min.unwrap_or(Fraction::ONE);
                        let passed = tolerance::reaches(value.get(), min.get());
                        let word = if passed { "at least" } else { "below" };
                        let reason = format!("{shown} is {value}, {word} {min}");
                        let all = Bounds { low: Fraction::ZERO, high: Fraction::ONE };
                        let bounds = (!passed && !actions.is_empty()).then_some(all);
                        Grade::Scored(Score { bounds, ..Score::new(value, passed, reason) })
                    }
                    None => ungraded(&format!("it returned {number}, which is not between 0 and 1")),
                },
                Ok(other) => ungraded(&format!("it returned {}, not true, false or a number", kind_of(&other))),
            }
        })
    }
}

/// An expression, and the variables of a trial.
struct Evaluation {
    expression: Expression,
    known: Variables,
    calls: Vec<Value>,
    metrics: Value,
    min: Option<Fraction>,
}

impl Evaluation {
    /// Returns the verdicts with what the trace does not show, each with the reason for it. A verdict is absent if it is no grade,
    /// or if the expression was not evaluated.
    fn alternatives(
        &mut self,
        actions: &[(UnseenAction, u64)],
        links: &[(FollowedLink, u64)],
        unshown_tools: BTreeMap<String, ToolKind>,
    ) -> Vec<(String, Option<bool>)> {
        let mut found = self.with_actions(actions);
        found.extend(self.with_links(links));
        found.extend(unshown_tools.into_iter().map(|(tool, kind)| self.with_tool(&tool, kind)));
        found
    }

    /// Returns the verdict with other calls and metrics.
    fn verdict_with(&self, calls: &Value, metrics: &Value) -> Option<bool> {
        let work = Work::default();
        verdict(&self.expression.run(&self.known.scope(&work, calls, metrics)), self.min)
    }

    /// Returns the verdicts with calls that show the files which the engine used: one of them, or the first of them.
    fn with_actions(&mut self, actions: &[(UnseenAction, u64)]) -> Vec<(String, Option<bool>)> {
        let why = |seq: u64| format!("the engine used a file for the agent that no call shows (event {seq})");
        if let Some((_, seq)) = actions.get(MAX_FILE_ACTIONS) {
            return vec![(why(*seq), None)];
        }
        let mut found = Vec::new();
        let sets = actions.iter().map(std::slice::from_ref);
        for set in sets.chain((2..=actions.len()).filter_map(|count| actions.get(..count))) {
            let mut counted = self.metrics.clone();
            let places: Vec<usize> = set.iter().map(|it| insert_action(&mut self.calls, &mut counted, it)).collect();
            let calls = Value::Array(std::mem::take(&mut self.calls));
            let verdict = self.verdict_with(&calls, &counted);
            found.extend(set.last().map(|(_, seq)| (why(*seq), verdict)));
            if let Value::Array(calls) = calls {
                self.calls = calls;
            }
            places.into_iter().rev().for_each(|at| drop(self.calls.remove(at)));
        }
        found
    }

    /// Returns the verdicts with the files to which the paths of calls lead: all links at once, and each target of a move.
    fn with_links(&self, links: &[(FollowedLink, u64)]) -> Vec<(String, Option<bool>)> {
        let (targets, followed): (Vec<_>, Vec<_>) = links.iter().partition(|(link, _)| link.moved);
        let led_by = |(link, notice): &(FollowedLink, u64), calls: Vec<Value>| {
            let why = format!("{} (event {notice})", link.doubt());
            (why, self.verdict_with(&Value::Array(calls), &self.metrics))
        };
        let by_links = followed.first().map(|first| led_by(first, with_files(&self.calls, &followed)));
        let moves = targets.iter().take(MAX_MOVE_TARGETS);
        let by_moves = moves.map(|target| led_by(target, with_target(&self.calls, &target.0)));
        let too_many = targets.get(MAX_MOVE_TARGETS).map(|(link, _)| (link.doubt().to_owned(), None));
        by_links.into_iter().chain(by_moves).chain(too_many).collect()
    }

    /// Returns the verdict with a call of a tool whose calls the agent never shows.
    fn with_tool(&self, tool: &str, kind: ToolKind) -> (String, Option<bool>) {
        let mut counted = self.metrics.clone();
        count_call(&mut counted, kind);
        let call = json!({"name": tool, "kind": kind, "status": "ok"});
        let calls = Value::Array(self.calls.iter().cloned().chain([call]).collect());
        (format!("the agent does not show calls of its tool `{tool}`"), self.verdict_with(&calls, &counted))
    }
}

/// The variables of an expression besides the calls and the metrics.
struct Variables {
    seen: Seen,
    messages: Value,
    permissions: Value,
    output: Value,
    stop: Value,
    files: Value,
    usage: Value,
}

impl Variables {
    fn scope<'v>(&'v self, work: &'v Work, calls: &'v Value, metrics: &'v Value) -> Scope<'v> {
        let mut scope = Scope::new(work)
            .with("messages", &self.messages)
            .with("output", &self.output)
            .with("stop", &self.stop)
            .with("usage", &self.usage)
            .with("files", &self.files)
            .with("metrics", metrics);
        // If calls cannot be seen, their list is unknown instead of empty.
        if self.seen.tracing {
            scope = scope.with("calls", calls);
        }
        if self.seen.interaction {
            scope = scope.with("permissions", &self.permissions);
        }
        scope
    }
}

/// The timeout of an expression. The size of its input is limited, but not the number of loops over lists in
/// it.
const TIME: Duration = Duration::from_secs(5);
/// The maximum number of expressions that may continue after their timeout: they cannot be stopped, and each
/// uses a processor.
const MAX_ENDLESS_EXPRESSIONS: usize = 4;
/// The number of expressions that continued after their timeout.
static ENDLESS: AtomicUsize = AtomicUsize::new(0);

/// Evaluates in a separate thread, and gives up after [`TIME`].
fn in_time(shown: &str, evaluate: impl FnOnce() -> Grade + Send + 'static) -> Grade {
    let ungraded = |why: &str| Grade::ungraded(format!("{shown} could not be graded: {why}"));
    if ENDLESS.load(Ordering::Relaxed) >= MAX_ENDLESS_EXPRESSIONS {
        return ungraded("too many expressions of this run did not end in time");
    }
    let (done, graded) = sync_channel(1);
    let work = move || {
        // After the timeout, the receiver is closed.
        let _ = done.send(evaluate());
    };
    match thread::Builder::new().name("expr".to_owned()).spawn(work).map(|_| graded.recv_timeout(TIME)) {
        Ok(Ok(grade)) => grade,
        Ok(Err(RecvTimeoutError::Timeout)) => {
            ENDLESS.fetch_add(1, Ordering::Relaxed);
            ungraded(&format!("it took longer than {} s", TIME.as_secs()))
        }
        Ok(Err(RecvTimeoutError::Disconnected)) => ungraded("the evaluator failed"),
        Err(error) => ungraded(&format!("no thread could be started: {error}")),
    }
}

/// Returns a description of the parts that are not true, and the events that they concern.
fn why_untrue(parts: &[Untrue], whole: &str) -> (String, Vec<u64>) {
    let (mut reasons, mut events) = (Vec::new(), Vec::new());
    for part in parts {
        let mut why = part.sentence();
        if let Some(members) = &part.members {
            events.extend(members.first.iter().filter_map(|member| member["seq"].as_u64()));
            why = format!("does not hold for {} of {}", members.count, members.of);
            if let Some(first) = members.first.first() {
                why.push_str(&format!(", first {}", member(first)));
            }
        }
        let alone = parts.len() == 1 && part.text == whole.split_whitespace().collect::<Vec<_>>().join(" ");
        match (alone, why.is_empty()) {
            (true, true) => {}
            (true, false) => reasons.push(why),
            (false, true) => reasons.push(format!("`{}` is false", reason_text::short(&part.text, 200))),
            (false, false) => reasons.push(format!("`{}` is false ({why})", reason_text::short(&part.text, 200))),
        }
    }
    let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
    (reasons, events)
}

/// Formats an item of a list: an event as an event, anything else by its value.
fn member(value: &Value) -> String {
    let seq = value["seq"].as_u64().map(|seq| format!(" (event {seq})"));
    let name = ["name", "role", "kind"].iter().find_map(|key| value[*key].as_str());
    match (name, seq) {
        (Some(name), Some(seq)) => format!("{}{seq}", reason_text::short(name, 80)),
        _ => reason_text::short(&value.to_string(), 120),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

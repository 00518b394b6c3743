//! `rules`: checks which events must happen, must not happen, and in which order. Each rule is true, false, or
//! vacuous.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::checks::Checks;
use super::speakers::Span;
use async_trait::async_trait;

use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::Grade;
use crate::judgement::Judgement;
use crate::reason_text;
use crate::text::plural;
use crate::trace::{
    Body as EventBody, Event, FollowedLink, Lost, NoticeCode, PermissionOutcome, PermissionResponse, Role, ToolKind,
    UnseenAction,
};
use crate::values::Fraction;

mod decide;
mod event;
mod hits;
mod spec;

use decide::{Finding, NO_ORDER, NOT_SHOWN, SessionFacts, decide};
use event::{EventType, RuleEvent, text_of};
use hits::{EventPlace, FoundEvents, Hit};
use spec::{Bounds, Takes};
pub use spec::{Rule, Rules};

/// The maximum number of events whose labels are kept for a reason.
const LABELS: usize = 400;
/// The maximum number of events in a reason.
const SHOWN: usize = 4;

impl GraderSpec for Rules {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        match lost {
            Lost::Line | Lost::Call => true,
            Lost::Outcome => self.rules.iter().any(Rule::depends_on_outcomes),
            // Two calls of one speaker are in the order of their steps.
            Lost::Caller => self.rules.iter().any(|rule| {
                let has_order = !matches!(rule, Rule::Never(_) | Rule::Eventually(_) | Rule::Count(_));
                has_order || rule.matchers().into_iter().any(|(_, matcher, _)| matcher.call.names_speaker())
            }),
            Lost::Text | Lost::Speaker => {
                self.rules.iter().flat_map(Rule::matchers).any(|(_, matcher, _)| matcher.reads_text())
            }
        }
    }

    fn only_finds(&self) -> bool {
        self.rules.iter().all(|rule| match rule {
            Rule::Eventually(_) => true,
            Rule::Count(count) => count.max.is_none(),
            _ => false,
        })
    }

    fn finds_in_longer_texts(&self, _: Option<&str>) -> bool {
        self.rules.iter().flat_map(Rule::matchers).all(|(_, matcher, _)| matcher.finds_in_longer_texts())
    }

    fn fails_by_outcome(&self) -> bool {
        self.rules.iter().any(|rule| match rule {
            // Too many attempts stay too many, however few of them were executed.
            Rule::Count(bounds) => bounds.max.is_some() && bounds.matcher.depends_on_outcome(Takes::Tried),
            rule => rule.breaks_by_events() && rule.depends_on_outcomes(),
        })
    }

    fn depends_on_action(&self, action: &UnseenAction, workspace: Option<&str>) -> bool {
        self.rules.iter().flat_map(Rule::matchers).any(|(_, matcher, _)| matcher.call.may_be(action, workspace))
    }

    fn depends_on_tool(&self, tool: &str, kind: ToolKind) -> bool {
        self.rules.iter().flat_map(Rule::matchers).any(|(_, matcher, _)| matcher.call.asks_for(tool, kind))
    }

    fn depends_on_path_name(&self, link: &FollowedLink, workspace: Option<&str>) -> bool {
        self.rules.iter().flat_map(Rule::matchers).any(|(_, matcher, _)| matcher.call.distinguishes(link, workspace))
    }

    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let refused =
            self.rules.iter().zip(1..).find_map(|(rule, n)| {
                Some(format!("checks nothing: rule {n}, `{}`, {}", rule.word(), rule.refusal()?))
            });
        refused.or_else(|| {
            (self.rules.is_empty() || self.min == Some(Fraction::ZERO))
                .then(|| "checks nothing; write a rule, for example `never: {kind: delete}`".to_owned())
        })
    }

    fn watch(&self) -> Box<dyn Observer> {
        let watches = self
            .rules
            .iter()
            .map(|rule| rule.matchers().iter().map(|_| FoundEvents::new(rule.looks_at_each())).collect());
        Box::new(RulesObserver {
            hits: watches.collect(),
            needs_steps: self.rules.iter().any(|rule| matches!(rule, Rule::Immediately(_))),
            wanted: self.clone(),
            steps: BTreeSet::new(),
            announced: 0,
            asked: HashMap::new(),
            labels: HashMap::new(),
            refused: vec![None; self.rules.len()],
            unsure: vec![None; self.rules.len()],
        })
    }
}

/// A request or an answer whose call has not ended yet.
struct PendingEvent {
    event: EventType,
    /// Id of the request.
    request: String,
    seq: u64,
    at_ms: u64,
    place: EventPlace,
    outcome: Option<PermissionOutcome>,
    decided: Option<PermissionOutcome>,
    text: Option<String>,
    parent: Option<String>,
}

struct RulesObserver {
    wanted: Rules,
    /// For each rule, the findings of each of its matchers.
    hits: Vec<Vec<FoundEvents>>,
    /// For each rule, the first event that was not shown completely.
    unsure: Vec<Option<u64>>,
    /// The ranks of the steps with calls, if a rule needs them.
    steps: BTreeSet<u64>,
    needs_steps: bool,
    /// The number of steps announced so far.
    announced: u64,
    asked: HashMap<String, Vec<PendingEvent>>,
    labels: HashMap<u64, String>,
    /// For each rule, the first refused call that would otherwise have matched.
    refused: Vec<Option<u64>>,
}

#[async_trait]
impl Observer for RulesObserver {
    fn event(&mut self, event: &Event) {
        let place = EventPlace::after_steps(self.announced, event.seq);
        let asked = |request: &str, reply: Option<&PermissionResponse>| PendingEvent {
            event: EventType::of(&event.body),
            request: request.to_owned(),
            seq: event.seq,
            at_ms: event.at_ms,
            place,
            outcome: reply.map(|reply| reply.outcome),
            decided: reply.and_then(|reply| reply.decided),
            text: text_of(&event.body).map(Cow::into_owned),
            parent: event.parent.clone(),
        };
        match &event.body {
            // A call is handled together with its result.
            EventBody::ToolCall(call) => {
                self.announced = self.announced.max(call.step.saturating_add(1));
                if self.needs_steps {
                    self.steps.insert(EventPlace::in_step(call.step).rank);
                }
            }
            EventBody::ToolResult(_) => {}
            EventBody::PermissionRequest(request) => {
                self.asked.entry(request.call.clone()).or_default().push(asked(&request.request, None));
            }
            EventBody::PermissionResponse(response) => {
                self.asked.entry(response.call.clone()).or_default().push(asked(&response.request, Some(response)));
            }
            body => {
                let role = match body {
                    EventBody::Message(message) => Some(message.role),
                    _ => None,
                };
                let seen = RuleEvent {
                    event: EventType::of(body),
                    seq: event.seq,
                    at_ms: event.at_ms,
                    parent: event.parent.as_deref(),
                    call: None,
                    text: text_of(body),
                    outcome: None,
                    decided: None,
                    role,
                };
                self.see(&seen, place);
                if matches!(body, EventBody::Notice { code: NoticeCode::SilentTurn, .. }) {
                    // The message before it holds the prompts of two turns.
                    let prompt = RuleEvent { event: EventType::Message, role: Some(Role::User), text: None, ..seen };
                    self.see(&prompt, place);
                }
            }
        }
    }

    fn call(&mut self, call: &Subject<'_>) {
        let place = EventPlace::in_step(call.call.step);
        let seen = |event: EventType, seq: u64, at_ms: u64| RuleEvent {
            event,
            seq,
            at_ms,
            parent: call.parent,
            call: Some(call),
            text: None,
            outcome: None,
            decided: None,
            role: None,
        };
        self.see(&seen(EventType::ToolCall, call.seq, call.at_ms), place);
        for asked in self.asked.remove(&call.call.call).unwrap_or_default() {
            let text = asked.text.as_deref().map(Cow::Borrowed);
            let form = call.asked_as(&asked.request);
            let seen = RuleEvent {
                call: Some(&form),
                outcome: asked.outcome,
                decided: asked.decided,
                text,
                ..seen(asked.event, asked.seq, asked.at_ms)
            };
            self.see(&seen, place);
        }
        self.see(&seen(EventType::ToolResult, call.result_seq, call.result_at_ms), place);
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl RulesObserver {
    fn grade(mut self, evidence: &Evidence<'_>) -> Grade {
        self.see_what_has_no_call();
        let header = evidence.header;
        let stopped_ms = header.stopped_ms.unwrap_or_default();
        let session = SessionFacts { steps: &self.steps, is_timed: header.is_timed(), stopped_ms };
        let (mut checks, mut broken) = (Checks::default(), Vec::new());
        let rules = self.wanted.rules.iter().zip(&self.hits).zip(self.refused.iter().zip(&self.unsure));
        for ((rule, hits), (refused, unsure)) in rules {
            let asks = rule.matchers().iter().any(|(_, matcher, _)| matcher.is_about_permissions());
            let worlds = decide(rule, hits, &session);
            let is_vacuous = worlds.is_vacuous();
            let sentence = rule.sentence();
            let found = match evidence.why_unasked() {
                _ if !asks || evidence.seen().interaction => worlds.agree(rule.vacuous()),
                None => Finding::Unknown("the harness has no way to ask for permission"),
                Some(why) => match worlds.agree(rule.vacuous()) {
                    found if !is_vacuous && stands_with_more_requests(rule, hits, &found) => found,
                    _ => {
                        checks.unknown(format!("{sentence}: {why}"));
                        continue;
                    }
                },
            };
            if matches!(found, Finding::Broken(_)) && broken.len() < MAX_NAMED_RULES {
                broken.push(reason_text::short(&sentence, RULE));
            }
            match found {
                Finding::Holds(_) if is_vacuous => {
                    checks.held(format!("{sentence}, and {} never occurred", rule.premise()), []);
                }
                Finding::Holds(events) => checks.held(format!("{sentence}, and that holds"), events),
                Finding::Broken(_) if is_vacuous => {
                    checks.violated(format!("{sentence}, and {} never occurred", rule.premise()), []);
                }
                Finding::Broken(events) => {
                    let reason = format!("{sentence}; {}", self.breach(rule, hits, &events, *refused));
                    match stays_broken(rule, hits) {
                        true => checks.violated(reason, events),
                        false => checks.lacking(reason, events),
                    }
                }
                Finding::Vacuous => checks.unknown(format!(
                    "{sentence}: vacuous, because {} never occurred (the rule may say `vacuous: pass` or `fail`)",
                    rule.premise()
                )),
                Finding::Unknown(why) => {
                    let why = if why == NOT_SHOWN && unsure.is_none() { NO_ORDER } else { why };
                    let of = unsure.filter(|_| why == NOT_SHOWN).map(|seq| format!(": {}", self.label(seq)));
                    checks.unknown(format!("{sentence}: {why}{}", of.unwrap_or_default()));
                }
            }
        }
        let mut grade = checks.grade_at_least(self.wanted.min);
        if let Grade::Scored(score) = &mut grade {
            score.broken = broken;
        }
        grade
    }
}

/// Returns true if a broken rule would stay broken with further events: it is broken by what occurred, and not by
/// something that did not.
fn stays_broken(rule: &Rule, hits: &[FoundEvents]) -> bool {
    match rule {
        Rule::Count(bounds) => bounds.max.zip(hits.get(1)).is_some_and(|(max, tried)| tried.surely.count > max),
        rule => rule.breaks_by_events(),
    }
}

/// Returns true if a finding about permission requests would not change with further requests, from an agent
/// that did not ask for everything.
fn stands_with_more_requests(rule: &Rule, hits: &[FoundEvents], found: &Finding) -> bool {
    // For each matcher, whether it looks for requests.
    let asks: Vec<bool> = rule.matchers().iter().map(|(_, matcher, _)| matcher.is_about_permissions()).collect();
    let only = |n: usize| asks.iter().enumerate().all(|(place, asks)| *asks == (place == n));
    let is_broken = matches!(found, Finding::Broken(_));
    let holds = matches!(found, Finding::Holds(_));
    match rule {
        Rule::Never(_) | Rule::NeverAfter(_) => is_broken,
        Rule::Eventually(_) => holds,
        Rule::Count(bounds) if bounds.max.is_some() => is_broken && stays_broken(rule, hits),
        Rule::Count(_) => holds,
        // A further event of the premise can only break the rule, and a further event that was needed can only
        // satisfy it.
        Rule::Before(_) => (is_broken && only(1)) || (holds && only(0)),
        Rule::Response(_) | Rule::Immediately(_) | Rule::Within(_) => (is_broken && only(0)) || (holds && only(1)),
        Rule::AbsentBetween(_) => is_broken && only(2),
    }
}

/// The maximum number of broken rules that are named.
const MAX_NAMED_RULES: usize = 50;
/// The maximum number of characters of a rule.
const RULE: usize = 200;

impl RulesObserver {
    fn see(&mut self, seen: &RuleEvent<'_>, place: EventPlace) {
        let mut is_found = false;
        let span = match (seen.event, seen.call) {
            (EventType::ToolCall, Some(call)) => Span::of_call(call),
            _ => Span::of_event(seen.parent, seen.seq),
        };
        let marks = self.refused.iter_mut().zip(&mut self.unsure);
        for ((rule, hits), (refused, unsure)) in self.wanted.rules.iter().zip(&mut self.hits).zip(marks) {
            for ((_, matcher, takes), found) in rule.matchers().into_iter().zip(hits) {
                let fits = matcher.fits(seen);
                let takes = Judgement::from(takes == Takes::Tried).or(|| matcher.finds(seen));
                let hit = Hit { place, seq: seen.seq, at_ms: seen.at_ms, span };
                is_found |= fits.may_be_true();
                match takes.and(|| fits) {
                    Judgement::True => found.surely.add(hit),
                    Judgement::Unknown => {
                        found.perhaps.add(hit);
                        unsure.get_or_insert(seen.seq);
                    }
                    Judgement::False if fits.is_true() => {
                        refused.get_or_insert(seen.seq);
                    }
                    Judgement::False => {}
                }
            }
        }
        if is_found && self.labels.len() < LABELS {
            self.labels.entry(seen.seq).or_insert_with(|| seen.label());
        }
    }

    /// Handles requests about unknown calls.
    fn see_what_has_no_call(&mut self) {
        let mut rest: Vec<PendingEvent> = std::mem::take(&mut self.asked).into_values().flatten().collect();
        rest.sort_by_key(|asked| asked.seq);
        for asked in rest {
            let seen = RuleEvent {
                event: asked.event,
                seq: asked.seq,
                at_ms: asked.at_ms,
                parent: asked.parent.as_deref(),
                call: None,
                text: asked.text.as_deref().map(Cow::Borrowed),
                outcome: asked.outcome,
                decided: asked.decided,
                role: None,
            };
            self.see(&seen, asked.place);
        }
    }

    fn label(&self, seq: u64) -> String {
        match self.labels.get(&seq) {
            Some(label) => format!("{label} (event {seq})"),
            None => format!("event {seq}"),
        }
    }

    /// Describes the calls that break a rule.
    fn breach(&self, rule: &Rule, hits: &[FoundEvents], events: &[u64], refused: Option<u64>) -> String {
        let label = |seq: &u64| self.label(*seq);
        let shown = reason_text::first_few_long(&events.iter().map(label).collect::<Vec<_>>(), SHOWN);
        let refused = match refused {
            Some(seq) => format!("; {} was refused or cancelled", label(&seq)),
            None => String::new(),
        };
        match rule {
            Rule::Eventually(_) => format!("it never happened{refused}"),
            Rule::Never(_) => format!("it happened: {shown}"),
            Rule::Count(Bounds { max, .. }) => {
                let count = |n: usize| hits.get(n).map_or(0, |found| found.surely.count);
                let (done, tried) = (count(0), count(1));
                match max {
                    Some(max) if tried > *max => format!("it happened {}, too many: {shown}", plural(tried, "time")),
                    _ => format!("it happened {}{refused}", plural(done, "time")),
                }
            }
            Rule::Before(_) => format!("it is missing before {shown}{refused}"),
            Rule::Response(_) | Rule::Immediately(_) | Rule::Within(_) => {
                format!("it is missing after {shown}{refused}")
            }
            Rule::NeverAfter(_) | Rule::AbsentBetween(_) => format!("it happened: {shown}"),
        }
    }
}

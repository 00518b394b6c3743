//! `errors`: limits failed calls, and checks that each was followed by a successful one. Memory use is small
//! and per kind of tool.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::speakers::Span;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject};
use crate::grade::Grade;
use crate::judgement::Judgement;
use crate::reason_text;
use crate::text::plural;
use crate::trace::{CallStatus, Lost, ToolKind};
use crate::yaml::lists::not_null;

/// The maximum number of failed calls kept of each speaker and kind, and of events in the evidence of a check.
const KEPT: usize = 40;

/// A bound on failed calls, and the calls that must follow them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{max: 0}`")]
pub struct Errors {
    /// The maximum number of failed calls. Refused and cancelled calls did not fail.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// If `true`, a successful call of the same kind must follow each failed call, in a later step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

impl GraderSpec for Errors {
    fn depends_on_loss(&self, lost: Lost) -> bool {
        match lost {
            Lost::Line | Lost::Call | Lost::Outcome => true,
            // A later call recovers a failed one, and two calls of one speaker are in the order of their steps.
            Lost::Caller => self.recovered,
            Lost::Text | Lost::Speaker => false,
        }
    }

    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        (self.max.is_none() && !self.recovered)
            .then(|| "checks nothing; write `max: 0`, or `recovered: true`".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(ErrorsObserver {
            wanted: self.clone(),
            count: 0,
            first: Vec::new(),
            excess: Vec::new(),
            by_kind: BTreeMap::new(),
            of_unknown_kind: OfKind::default(),
            unknown: 0,
            unknown_kinds: 0,
        })
    }
}

/// The position of a call.
#[derive(Clone, Copy)]
struct At {
    step: u64,
    span: Span,
}

impl At {
    /// Returns whether this call is in a later step than another one.
    fn is_after(&self, other: &At) -> Judgement {
        other.span.is_before(self.span, self.step > other.step)
    }
}

/// The last call of each speaker.
#[derive(Default)]
struct LastCalls(BTreeMap<Option<u64>, At>);

impl LastCalls {
    fn add(&mut self, at: At) {
        // Calls of a speaker arrive in the order of their steps.
        self.0.insert(at.span.speaker, at);
    }

    /// Returns whether any of the calls is in a later step than a failed one.
    fn any_after(&self, failure: &Failure) -> Judgement {
        Judgement::any(self.0.values().map(|at| at.is_after(&failure.at)))
    }
}

/// The reason why the outcome of a call is unknown.
const UNTOLD: &str = "the agent did not report it, or the engine ended the call before the agent did";

#[derive(Clone)]
struct Failure {
    at: At,
    seq: u64,
    result_seq: u64,
    label: String,
}

/// The state for calls of one kind.
#[derive(Default)]
struct OfKind {
    /// The last calls that succeeded.
    ok: LastCalls,
    /// The last calls whose outcome is unknown.
    unknown: LastCalls,
    /// The calls of each speaker that failed in its latest steps. If all of these were recovered, all earlier ones of the speaker
    /// were, too.
    failed: BTreeMap<Option<u64>, Vec<Failure>>,
}

impl OfKind {
    fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.failed.values().flatten()
    }

    /// Returns true if a call after a failed one succeeded or may have succeeded.
    fn may_follow(&self, failure: &Failure) -> bool {
        self.ok.any_after(failure).may_be_true() || self.unknown.any_after(failure).may_be_true()
    }
}

struct ErrorsObserver {
    wanted: Errors,
    count: u64,
    /// The first failed calls, which the reason of the grade lists.
    first: Vec<Failure>,
    /// The events of calls above the maximum.
    excess: Vec<u64>,
    by_kind: BTreeMap<ToolKind, OfKind>,
    /// The state for calls of unknown kinds: each may be of any kind.
    of_unknown_kind: OfKind,
    /// The number of calls whose outcome is unknown.
    unknown: u64,
    /// The number of calls whose kind is unknown.
    unknown_kinds: u64,
}

#[async_trait]
impl Observer for ErrorsObserver {
    fn call(&mut self, call: &Subject<'_>) {
        let at = At { step: call.call.step, span: Span::of_call(call) };
        self.unknown_kinds += u64::from(call.call.unknown_kind);
        let of_kind = match call.call.unknown_kind {
            true => &mut self.of_unknown_kind,
            false => self.by_kind.entry(call.call.kind).or_default(),
        };
        match call.status {
            // A refused call that may have been carried out is no error, and may be a recovery.
            _ if call.contested => of_kind.unknown.add(at),
            _ if call.is_cut || call.may_have_failed() => {
                self.unknown += 1;
                of_kind.unknown.add(at);
            }
            CallStatus::Ok => of_kind.ok.add(at),
            CallStatus::Error => {
                self.count += 1;
                let failure = Failure { at, seq: call.seq, result_seq: call.result_seq, label: call.label() };
                if self.wanted.max.is_some_and(|max| self.count > max) && self.excess.len() < KEPT {
                    self.excess.extend([call.seq, call.result_seq]);
                }
                if self.first.len() < KEPT {
                    self.first.push(failure.clone());
                }
                let failed = of_kind.failed.entry(at.span.speaker).or_default();
                let place = failed.partition_point(|known| known.at.step <= at.step);
                failed.insert(place, failure);
                if failed.len() > KEPT {
                    failed.remove(0);
                }
            }
            CallStatus::Denied | CallStatus::Cancelled | CallStatus::Unfinished => {}
        }
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        self.grade().into()
    }
}

impl ErrorsObserver {
    fn grade(self) -> Grade {
        let list = |failures: &[&Failure]| {
            let texts: Vec<String> =
                failures.iter().map(|failure| format!("{} (event {})", failure.label, failure.result_seq)).collect();
            reason_text::first_few_long(&texts, 5)
        };
        let mut checks = Checks::default();
        if let Some(max) = self.wanted.max {
            let failed = plural(self.count, "call");
            if self.count <= max && self.unknown > max - self.count {
                let unknown = plural(self.unknown, "call");
                checks.unknown(format!("{failed} failed, and how {unknown} ended is unknown: {UNTOLD}"));
            } else if self.count <= max {
                checks.held(format!("{failed} failed, at most {max} allowed"), []);
            } else {
                let all: Vec<&Failure> = self.first.iter().collect();
                checks.violated(format!("{failed} failed, at most {max} allowed: {}", list(&all)), self.excess.clone());
            }
        }
        if self.wanted.recovered {
            self.check_recovered(&mut checks, list);
        }
        checks.grade()
    }

    /// Checks that a successful call of its kind followed each failed one. A call of an unknown kind may be of the kind of
    /// the failed one, and a call with an unknown outcome may have succeeded.
    fn check_recovered(&self, checks: &mut Checks, list: impl Fn(&[&Failure]) -> String) {
        let known = self.by_kind.values().flat_map(|of_kind| of_kind.failures().map(move |it| (it, Some(of_kind))));
        let failures = known.chain(self.of_unknown_kind.failures().map(|failure| (failure, None)));
        let (mut open, mut is_unsure, mut has_no_order) = (Vec::new(), false, None);
        for (failure, of_kind) in failures {
            let may_follow = |of_kind: &OfKind| of_kind.may_follow(failure);
            let is_possible = match of_kind {
                Some(of_kind) => may_follow(of_kind),
                None => self.by_kind.values().any(may_follow),
            };
            let recovered = of_kind.map_or(Judgement::Unknown, |of_kind| of_kind.ok.any_after(failure));
            if !is_possible && !may_follow(&self.of_unknown_kind) {
                open.push(failure);
            } else if !recovered.is_true() {
                is_unsure = true;
                if of_kind.is_some() && recovered.is_unknown() {
                    has_no_order = has_no_order.or(Some(failure));
                }
            }
        }
        open.sort_by_key(|failure| failure.seq);
        if !open.is_empty() {
            let reason = format!("no later call of the same kind succeeded after {}", list(&open));
            checks.lacking(reason, open.iter().flat_map(|failure| [failure.seq, failure.result_seq]));
        } else if let Some(failure) = has_no_order {
            checks.unknown(format!(
                "whether a call of the same kind succeeded after {} is unknown: the order of calls of different agents \
                 decides, and their steps and results do not agree about it",
                list(&[failure])
            ));
        } else if is_unsure && self.unknown_kinds > 0 {
            let unknown = plural(self.unknown_kinds, "call");
            checks.unknown(format!(
                "whether each failure was followed by a success of its kind is unknown: the kind of {unknown} is unknown"
            ));
        } else if self.unknown > 0 {
            let unknown = plural(self.unknown, "call");
            checks
                .unknown(format!("whether each failure was followed by a success is unknown for {unknown}: {UNTOLD}"));
        } else {
            let reason = match self.count {
                0 => "no call failed",
                _ => "each failed call was followed by a successful one of the same kind",
            };
            checks.held(reason, []);
        }
    }
}

//! `errors`: limits failed calls, and checks that each was followed by a successful one. Memory use is small
//! and per kind of tool.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Subject, text};
use crate::grade::Grade;
use crate::text::plural;
use crate::trace::{CallStatus, ToolKind};
use crate::yaml::lists::said;

/// The maximum number of failed calls kept per kind, and of events in the evidence of a check.
const KEPT: usize = 40;

/// A bound on failed calls, and the calls that must follow them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Errors {
    /// The maximum number of failed calls. Refused and cancelled calls did not fail.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// If `true`, a successful call of the same kind must follow each failed call, in a later step.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovered: bool,
}

impl GraderSpec for Errors {
    fn needs() -> Needs {
        Needs { trace: true, calls: true, ..Needs::NONE }
    }

    fn refusal(&self) -> Option<String> {
        (self.max.is_none() && !self.recovered)
            .then(|| "checks nothing; write `max: 0`, or `recovered: true`".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(ErrorsJudge {
            wanted: self.clone(),
            count: 0,
            first: Vec::new(),
            over: Vec::new(),
            by_kind: BTreeMap::new(),
            unknown: 0,
            unknown_kinds: 0,
        })
    }
}

/// Why the outcome of a call is unknown.
const UNTOLD: &str = "the agent did not report it, or the engine ended the call before the agent did";

#[derive(Clone)]
struct Failure {
    step: u64,
    seq: u64,
    result_seq: u64,
    label: String,
}

/// The state for calls of one kind.
#[derive(Default)]
struct OfKind {
    /// The last step in which a call succeeded.
    last_ok: Option<u64>,
    /// The last step with a call whose outcome is unknown.
    last_unknown: Option<u64>,
    /// The calls that failed in the latest steps. If all of these were recovered, all earlier ones were, too.
    failed: Vec<Failure>,
}

impl OfKind {
    /// Returns the failed calls that were not followed by a successful one in a later step.
    fn open(&self) -> impl Iterator<Item = &Failure> {
        self.failed.iter().filter(|failure| self.last_ok.is_none_or(|last| last <= failure.step))
    }
}

struct ErrorsJudge {
    wanted: Errors,
    count: u64,
    /// The first failed calls, for the reason.
    first: Vec<Failure>,
    /// The events of calls above the maximum.
    over: Vec<u64>,
    by_kind: BTreeMap<ToolKind, OfKind>,
    /// The number of calls whose outcome is unknown.
    unknown: u64,
    /// The number of calls whose kind is unknown.
    unknown_kinds: u64,
}

#[async_trait]
impl Observer for ErrorsJudge {
    fn call(&mut self, call: &Subject<'_>) {
        let step = call.call.step;
        self.unknown_kinds += u64::from(call.call.unknown_kind);
        let of_kind = self.by_kind.entry(call.call.kind).or_default();
        match call.status {
            _ if call.is_cut || call.contradicts_itself() => {
                self.unknown += 1;
                of_kind.last_unknown = of_kind.last_unknown.max(Some(step));
            }
            CallStatus::Ok => {
                of_kind.last_ok = Some(of_kind.last_ok.map_or(step, |last| last.max(step)));
            }
            CallStatus::Error => {
                self.count += 1;
                let failure = Failure { step, seq: call.seq, result_seq: call.result_seq, label: call.label() };
                if self.wanted.max.is_some_and(|max| self.count > max) && self.over.len() < KEPT {
                    self.over.extend([call.seq, call.result_seq]);
                }
                if self.first.len() < KEPT {
                    self.first.push(failure.clone());
                }
                let at = of_kind.failed.partition_point(|known| known.step <= step);
                of_kind.failed.insert(at, failure);
                if of_kind.failed.len() > KEPT {
                    of_kind.failed.remove(0);
                }
            }
            CallStatus::Denied | CallStatus::Cancelled | CallStatus::Unfinished => {}
        }
    }

    async fn finish(self: Box<Self>, _: &Evidence<'_>) -> Findings {
        self.grade().into()
    }
}

impl ErrorsJudge {
    fn grade(self) -> Grade {
        let told = |failures: &[&Failure]| {
            let told: Vec<String> =
                failures.iter().map(|failure| format!("{} (event {})", failure.label, failure.result_seq)).collect();
            text::first_few_long(&told, 5)
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
                checks.violated(format!("{failed} failed, at most {max} allowed: {}", told(&all)), self.over.clone());
            }
        }
        if self.wanted.recovered && self.count > 0 && self.unknown_kinds > 0 {
            let unknown = plural(self.unknown_kinds, "call");
            checks.unknown(format!(
                "whether each failure was followed by a success of its kind is unknown: the kind of {unknown} is unknown"
            ));
        } else if self.wanted.recovered {
            // A call that may have succeeded may be the recovery.
            let surely = |of_kind: &OfKind, failure: &Failure| of_kind.last_unknown.is_none_or(|it| it <= failure.step);
            let open = self.by_kind.values().flat_map(|it| it.open().filter(move |failure| surely(it, failure)));
            let mut open: Vec<&Failure> = open.collect();
            open.sort_by_key(|failure| failure.seq);
            if open.is_empty() && self.unknown > 0 {
                let unknown = plural(self.unknown, "call");
                checks.unknown(format!(
                    "whether each failure was followed by a success is unknown for {unknown}: {UNTOLD}"
                ));
            } else if open.is_empty() {
                let reason = match self.count {
                    0 => "no call failed",
                    _ => "each failed call was followed by a successful one of the same kind",
                };
                checks.held(reason, []);
            } else {
                let reason = format!("no later call of the same kind succeeded after {}", told(&open));
                checks.lacking(reason, open.iter().flat_map(|failure| [failure.seq, failure.result_seq]));
            }
        }
        checks.grade()
    }
}

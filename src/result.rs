//! `result.json`: the result of a trial, for reports and programs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::gateway::exchange::Source;
use crate::grade::GradeRecord;
use crate::grade::judge_record::{AskedFigures, EarlierUsage, JudgeRecord, PolicyRecord};
use crate::ids::{CellId, TrialId, TrialRecord};
use crate::trace::amount::Amount;
use crate::trace::usage::Measure;
use crate::trace::{Agent, ErrorCategory, Model, StopReason, ToolKind};
use crate::values::Fraction;
use crate::verdict::Verdict;
use crate::word::word;

mod beside_patch;
mod old_warnings;
pub mod warning;

pub use beside_patch::BesidePatch;
pub use warning::{LimitGap, Unrecorded, Warning};

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialResult {
    /// The case's `id`, or its path below the root of the cases without extension.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The requested model and the model that answered.
    pub model: Model,
    /// The agent's program, as it identified itself. Absent if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Number of the trial, from 1.
    pub trial: u32,
    /// The verdict of the trial.
    pub verdict: Verdict,
    /// The score. Only `pass` and `fail` have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Fraction>,
    /// The grade of each grader.
    pub grades: Vec<GradeRecord>,
    /// The usage of the model that answered permission requests for the policy `llm`; it is not part of the
    /// agent's usage. Absent if no model was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_model: Option<PolicyRecord>,
    /// Duration, calls, tokens and cost. An unknown figure is absent.
    pub metrics: Metrics,
    /// The end of the session. Absent if no session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRecord>,
    /// The error of an `errored` trial. The reason of a skipped one is in `skipped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// The source of the model's answers, if they came through the gateway. A recording and a script cost nothing and
    /// measure no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_from: Option<Source>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// The attempts before this one, which count in no score. Absent for the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_attempts: Option<EarlierAttempts>,
    /// The arm, as a folder name: the model or the variant, `default` if there is neither, or `NAME#2` for a second arm
    /// of the same name, as with `--aa`.
    pub arm: String,
    /// The calls of each step, each as `kind:name`.
    pub shape: Vec<Vec<String>>,
    /// Digests (BLAKE3) of the files that the verdict depends on, by name. Absent in results of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Warnings for the user besides the verdict.
    #[serde(default, with = "warning::list")]
    #[cfg_attr(test, schemars(with = "Vec<Warning>"))]
    pub warnings: Vec<Warning>,
    /// The reason why the trial was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// True if the trial passed after it had failed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// True if the policy was `manual`. A person's answers are not reproducible, so comparisons leave the trial
    /// out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// Changes of the agent that are recorded nowhere, in the workspace (such as in `.git`) or in what setup left
    /// beside it: a rebuilt workspace lacks them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beyond_patch: Vec<String>,
    /// Changes of the agent in the workspace besides `workspace.patch`, as far as they are recorded. Absent in results of
    /// older versions, and if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_patch: Option<BesidePatch>,
    /// The sockets, devices or pipes, and the hard links, that the kept workspace has, in the words of `beyond_patch`. Absent if
    /// `beyond_patch` names neither, if no workspace was kept, and in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_beyond_patch: Option<Vec<String>>,
    /// The result before the trial was graded again. Absent if the result has not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<ResultBefore>,
}

impl TrialResult {
    /// Returns the usage of the judges of this attempt, one for each grade of judges.
    pub fn used_by_judges(&self) -> impl Iterator<Item = AskedFigures> {
        self.grades.iter().filter_map(|grade| grade.judge.as_ref()).map(JudgeRecord::used)
    }

    /// Returns the usage of the policy's model in this attempt, if it was called.
    pub fn used_by_policy(&self) -> Option<AskedFigures> {
        self.policy_model.as_ref().map(PolicyRecord::used)
    }

    /// Returns the cost in US dollars of the models that the engine itself called: judges, and the policy's model.
    pub fn asked_cost(&self) -> Amount<f64> {
        let asked = self.used_by_judges().chain(self.used_by_policy());
        asked.fold(Amount::Exact(0.0), |sum, used| sum.plus(used.cost()))
    }

    /// Returns the cost in US dollars of the agent and of the models that the engine itself called. Another program may
    /// have written the figures: a negative cost is ignored.
    pub fn spent(&self) -> Amount<f64> {
        let of_agent = match self.metrics.cost() {
            Some(cost) if self.was_paid() => cost,
            None if self.metrics.measured_ms.is_some() && self.was_paid() => Amount::AtLeast(0.0),
            _ => Amount::Exact(0.0),
        };
        let not_negative = |cost: Amount<f64>| Amount::new(cost.value().max(0.0), cost.is_exact());
        not_negative(of_agent).plus(not_negative(self.asked_cost()))
    }

    /// Returns the time that the agent took, in milliseconds. Returns `None` if it is unknown, also because the engine was stopped
    /// meanwhile: the agent may have worked or waited in that time.
    pub fn duration_ms(&self) -> Option<u64> {
        let was_stopped = self.warnings.iter().any(|warning| matches!(warning, Warning::EngineStopped { .. }));
        self.metrics.measured_ms.filter(|_| !was_stopped)
    }

    /// Returns the model that answered. Returns `None` if it is unknown, or if the trial was errored: an agent names a model before
    /// any has answered.
    pub fn model_that_answered(&self) -> Option<&str> {
        self.model.effective.as_deref().filter(|_| self.verdict != Verdict::Errored)
    }

    /// Returns true if an agent ran, so that money may have been spent. After an error of the set-up it ran if it got its
    /// prompt: some of these errors are found when the agent has ended.
    pub fn agent_ran(&self) -> bool {
        let rarely = [ErrorCategory::NotInstalled, ErrorCategory::StartFailed, ErrorCategory::Setup];
        let has_run = self.metrics.measured_ms.is_some() || self.metrics.cost_usd.is_some();
        let may_not_have = self.error.as_ref().is_some_and(|error| rarely.contains(&error.category));
        self.verdict != Verdict::Skipped && (has_run || !may_not_have)
    }

    /// Returns true if an agent ran whose model was neither a recording nor a script.
    pub fn was_paid(&self) -> bool {
        self.agent_ran() && !matches!(self.model_from, Some(Source::Cassette | Source::Script))
    }

    /// Returns the earlier attempts with the same inputs as the attempt that counts. `None` if there are none.
    pub fn retried_attempts(&self) -> Option<EarlierAttempts> {
        self.earlier_attempts.and_then(|earlier| earlier.without_discarded())
    }

    /// Returns the earlier attempts with other inputs, whose results were discarded. `None` if there are none.
    pub fn discarded_attempts(&self) -> Option<DiscardedAttempts> {
        self.earlier_attempts.and_then(|earlier| earlier.discarded)
    }

    /// Returns the known costs of the trial in US dollars: of the attempt that counts, and of earlier attempts, without those
    /// whose results were discarded.
    pub fn costs_usd(&self) -> impl Iterator<Item = f64> + use<> {
        let own = self.metrics.cost_usd.filter(|_| self.was_paid());
        [own, self.retried_attempts().and_then(|earlier| earlier.cost_usd)].into_iter().flatten()
    }

    /// Returns true if all of these costs are known.
    pub fn cost_is_known(&self) -> bool {
        (!self.was_paid() || self.metrics.cost().is_some_and(Amount::is_exact))
            && self.retried_attempts().is_none_or(|earlier| earlier.cost_unknown == 0)
    }

    /// Returns true if the stored verdict differs from the recorded verdict.
    pub fn is_not_as_judged(&self) -> bool {
        self.not_as_judged().is_some()
    }

    /// Returns the reason if the stored verdict differs from the recorded verdict.
    pub fn not_as_judged(&self) -> Option<&str> {
        self.warnings.iter().find_map(|warning| match warning {
            Warning::NotAsJudged { why } => Some(&**why),
            _ => None,
        })
    }

    /// Returns the result with the warning that the trial's `result.json` is missing or was changed, so that it comes from
    /// another copy.
    #[must_use]
    pub fn marked_as_copy(mut self) -> Self {
        self.warnings.push(Warning::ResultFromCopy);
        self
    }

    /// Returns the result as it was graded, without the warning of [`TrialResult::marked_as_copy`].
    #[must_use]
    pub fn without_copy_mark(mut self) -> Self {
        self.warnings.retain(|warning| *warning != Warning::ResultFromCopy);
        self
    }

    /// Returns true if the trial's `result.json` is missing or was changed, so that the result comes from another copy.
    pub fn is_from_copy(&self) -> bool {
        self.warnings.contains(&Warning::ResultFromCopy)
    }

    /// Returns the trial's identity in its run.
    pub fn id(&self) -> TrialId {
        let (case, harness, arm) = (self.case.clone(), self.harness.clone(), self.arm.clone());
        TrialId { case, harness, arm, trial: self.trial }
    }

    /// Returns the identity of the trial's cell.
    pub fn cell(&self) -> CellId {
        CellId::new(&self.case, &self.harness, &self.arm)
    }

    /// Makes a result of a trial with nothing but its verdict.
    pub fn blank(trial: &TrialRecord, verdict: Verdict) -> Self {
        Self {
            case: trial.case.clone(),
            harness: trial.harness.clone(),
            model: Model { requested: trial.model.clone(), effective: None },
            agent: None,
            trial: trial.trial,
            verdict,
            score: None,
            grades: Vec::new(),
            policy_model: None,
            metrics: Metrics::default(),
            stop: None,
            error: None,
            model_from: None,
            attempt: 0,
            earlier_attempts: None,
            arm: trial.arm.clone(),
            shape: Vec::new(),
            files: BTreeMap::new(),
            warnings: Vec::new(),
            skipped: None,
            flaky: false,
            manual: false,
            beyond_patch: Vec::new(),
            beside_patch: None,
            kept_beyond_patch: None,
            was: None,
        }
    }

    /// Makes the result of a trial that is skipped because of a requirement of its case.
    pub fn skipped(trial: &TrialRecord, reason: &str) -> Self {
        Self { skipped: Some(reason.to_owned()), ..Self::blank(trial, Verdict::Skipped) }
    }
}

/// The attempts before the last one, which counts. Their costs are included in the total.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EarlierAttempts {
    /// The number of attempts before the one that counts, discarded ones included.
    pub count: u32,
    /// The reported cost in US dollars. Absent if no attempt reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Attempts in which an agent ran and whose cost is unknown or a lower bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_unknown: u32,
    /// Attempts that finished by the journal and whose files are missing. `count` and `cost_unknown` include them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u32,
    /// The usage of judge models in these attempts. Absent if none was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judges: Option<EarlierUsage>,
    /// The usage of the model of the policy `llm` in these attempts. Absent if none was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<EarlierUsage>,
    /// The attempts among these whose results were discarded, with those before them (`--changed rerun`). Absent if there are
    /// none, and in results of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<DiscardedAttempts>,
    /// True if the trial had finished and a resumed run ran it again (`--rerun`, `--changed rerun`), so that it ran later than
    /// the other trials. Absent in results of older versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran_later: bool,
}

/// Attempts of a trial with other inputs than the attempt that counts. Their cost was spent, and is not that of the trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiscardedAttempts {
    /// The number of these attempts.
    pub count: u32,
    /// The number of the last of these attempts. Those after it count.
    pub last: u32,
    /// The reported cost in US dollars. Absent if no attempt reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Attempts in which an agent ran and whose cost is unknown or a lower bound.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_unknown: u32,
}

impl EarlierAttempts {
    /// Returns these attempts without those whose results were discarded, or `None` if there are no others.
    pub fn without_discarded(&self) -> Option<Self> {
        let Some(discarded) = self.discarded else { return Some(*self) };
        let count = self.count.saturating_sub(discarded.count);
        // If nothing is left, none of the others reported a cost.
        let cost = self.cost_usd.map(|cost| cost - discarded.cost_usd.unwrap_or(0.0));
        (count > 0).then(|| Self {
            count,
            cost_usd: cost.filter(|cost| *cost > 0.0),
            cost_unknown: self.cost_unknown.saturating_sub(discarded.cost_unknown),
            missing: self.missing.min(count),
            discarded: None,
            ..*self
        })
    }

    /// Returns the cost in US dollars of the models that the engine itself called.
    pub fn asked_cost(&self) -> Amount<f64> {
        let asked = self.judges.iter().chain(&self.policy).map(EarlierUsage::used);
        asked.fold(Amount::Exact(0.0), |sum, used| sum.plus(used.cost()))
    }

    /// Adds the usage of the models that the engine itself called in another attempt.
    pub fn add_asked(&mut self, result: &TrialResult) {
        result.used_by_judges().for_each(|used| EarlierUsage::add_to(&mut self.judges, &used));
        result.used_by_policy().iter().for_each(|used| EarlierUsage::add_to(&mut self.policy, used));
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The result of a trial before it was graded again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResultBefore {
    /// The verdict in the run that was graded again.
    pub verdict: Verdict,
    /// The score in that run. Absent unless that verdict was `pass` or `fail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Fraction>,
    /// The graders whose result has changed.
    pub graders: Vec<GraderWas>,
}

/// A grader whose result has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GraderWas {
    /// The grader's name in the case.
    pub name: String,
    /// The old result. Absent if the grader did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<GradeWord>,
    /// The new result. Absent if the grader no longer exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<GradeWord>,
}

/// The result of a grader in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum GradeWord {
    /// The grader passed.
    Passed,
    /// The grader failed.
    Failed,
    /// The grader gave no score.
    Ungraded,
}

word!(GradeWord);

impl GradeWord {
    fn of(grade: &GradeRecord) -> Self {
        match grade.passed {
            Some(true) => GradeWord::Passed,
            Some(false) => GradeWord::Failed,
            None => GradeWord::Ungraded,
        }
    }
}

impl ResultBefore {
    /// Returns the differences of an earlier result from this one, or `None` if they agree.
    pub fn of(before: &TrialResult, now: &TrialResult) -> Option<Self> {
        let said =
            |result: &TrialResult, name: &str| result.grades.iter().find(|grade| grade.name == name).map(GradeWord::of);
        let mut graders: Vec<GraderWas> = Vec::new();
        for grade in now.grades.iter().chain(&before.grades) {
            let (was, is) = (said(before, &grade.name), said(now, &grade.name));
            if was != is && !graders.iter().any(|known| known.name == grade.name) {
                graders.push(GraderWas { name: grade.name.clone(), was, now: is });
            }
        }
        let same = before.verdict == now.verdict && graders.is_empty();
        (!same).then_some(Self { verdict: before.verdict, score: before.score, graders })
    }
}

/// Duration, calls, tokens and cost of a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Metrics {
    /// Time from the first prompt to the answer, in milliseconds, without the time that the agent waited for
    /// the decision of a person or a model.
    // For figures, use `TrialResult::duration_ms`: this time may include one in which the engine was stopped.
    #[serde(rename = "duration_ms", default, skip_serializing_if = "Option::is_none")]
    pub measured_ms: Option<u64>,
    /// Time from the start of the agent's process to the first prompt, in milliseconds. Absent if the start-up
    /// cannot be measured separately; it is part of `duration_ms` then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Number of tool calls. Absent if they were not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Number of tool calls by kind; a kind without calls is left out. Absent if calls were not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls_by_kind: Option<BTreeMap<ToolKind, u64>>,
    /// Number of tool calls that failed. Absent if calls were not visible, or if it is unknown how some ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_calls: Option<u64>,
    /// Number of files that the agent changed, created or deleted. Absent if the change was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<u64>,
    /// Number of steps: rounds of tool calls. Absent if calls were not visible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Input tokens, without cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, including thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input tokens that the service read from its cache. They are not part of `input_tokens`. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input tokens that the service wrote to its cache. They are not part of `input_tokens`. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Cost in US dollars, as reported, or by the price table (`cost_source`). Absent if neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// `priced` if the cost comes from a price table instead of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<String>,
    /// Counts of the agent's requests for permissions, without questions and approvals of plans. Absent if the harness cannot
    /// ask, or if it is unknown whether a request is a question or an approval of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionCounts>,
    /// Keys of the figures above that are lower bounds, because a part of them is known to be missing. Absent
    /// if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<Measure>,
}

impl Metrics {
    /// Returns all tokens: as reported, else input plus output plus the known cached tokens. Without the input or the
    /// output, and where the reported total is less than both together, the sum is a lower bound.
    pub fn tokens(&self) -> Option<Amount<u64>> {
        use Measure::{CacheReadTokens, CacheWriteTokens, InputTokens, OutputTokens, TotalTokens};
        let sum = |parts: &[Option<u64>]| parts.iter().flatten().copied().reduce(u64::saturating_add);
        let both = [self.input_tokens, self.output_tokens];
        if let Some(total) = self.total_tokens {
            let parts = sum(&both).unwrap_or(0);
            return Some(Amount::new(total.max(parts), self.is_whole(TotalTokens) && parts <= total));
        }
        let [input, output] = both;
        let all = sum(&[input, output, self.cache_read_tokens, self.cache_write_tokens])?;
        let parts = [InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens];
        let is_whole = input.is_some() && output.is_some() && parts.into_iter().all(|part| self.is_whole(part));
        Some(Amount::new(all, is_whole))
    }

    /// Returns the cost in US dollars.
    pub fn cost(&self) -> Option<Amount<f64>> {
        self.cost_usd.map(|cost| Amount::new(cost, self.is_whole(Measure::CostUsd)))
    }

    /// Returns true if a figure is not a lower bound.
    pub fn is_whole(&self, measure: Measure) -> bool {
        !self.lower_bounds.contains(&measure)
    }
}

/// The number of permission requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PermissionCounts {
    /// All permission requests of the agent. Questions and approvals of plans are not permissions.
    pub requested: u64,
    /// Requests that the policy rejected, also if they were answered `cancelled` because the agent offered no option for it.
    pub rejected: u64,
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StopRecord {
    /// The reason why the session ended.
    pub reason: StopReason,
    /// The limit's key, the agent's own word, or the error's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The exit of the agent's process. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<crate::trace::Exit>,
    /// The end of standard error, if the session ended abnormally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

/// The error of an `errored` trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ErrorRecord {
    /// The category of the error, as in `retries.on` of a case.
    pub category: ErrorCategory,
    /// The error, with a fix if one is known.
    pub message: String,
}

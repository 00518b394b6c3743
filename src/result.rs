//! `result.json`: what came of one Trial, for reports and for programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grade::GradeRecord;
use crate::grade::judge_record::PolicyRecord;
use crate::ids::{TrialId, TrialRecord};
use crate::trace::amount::Amount;
use crate::trace::usage::Measure;
use crate::trace::{Agent, ErrorCategory, Model, StopReason, ToolKind};
use crate::values::Fraction;
use crate::verdict::Verdict;

mod old_warnings;
pub mod warning;

pub use warning::{LimitGap, Warning};

/// What came of one Trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialResult {
    /// Id of the Case.
    pub case: String,
    /// Name of the Harness.
    pub harness: String,
    /// The model asked for, and the one that answered.
    pub model: Model,
    /// The agent's program, as it named itself; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Number of the Trial, from 1.
    pub trial: u32,
    /// Its verdict.
    pub verdict: Verdict,
    /// Its score; only `pass` and `fail` have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Fraction>,
    /// What each grader said.
    pub grades: Vec<GradeRecord>,
    /// What the model used that answered permission requests for the policy `llm`: no part of what the agent used. Absent if
    /// no model was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_model: Option<PolicyRecord>,
    /// What it took. An unknown figure is absent.
    pub metrics: Metrics,
    /// How the session ended; absent where none began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<StopRecord>,
    /// Why it is `errored`, or why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What the attempts before this one came to, which count in no score; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_attempts: Option<EarlierAttempts>,
    /// The column it belongs to: the model's folder name, `default` where none was asked for.
    pub arm: String,
    /// `kind:name` of the calls of each step.
    pub shape: Vec<Vec<String>>,
    /// Digests (BLAKE3) of the files that the judgement rests on, by name; absent in results of older versions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// What the user should know beside the verdict.
    #[serde(default, with = "warning::list")]
    #[schemars(with = "Vec<Warning>")]
    pub warnings: Vec<Warning>,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Whether it passed where it had failed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// Whether its policy was `manual`: what a person answers is not the same twice, so comparisons leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub manual: bool,
    /// What was said of it before it was graded again; absent where that is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Was>,
}

impl TrialResult {
    /// What its judges cost, as far as that is known.
    pub fn judges_cost_usd(&self) -> f64 {
        self.grades.iter().filter_map(|grade| grade.judge.as_ref()?.cost_usd).sum()
    }

    /// What the model of its policy cost, as far as that is known.
    pub fn policy_cost_usd(&self) -> f64 {
        self.policy_model.as_ref().and_then(|used| used.cost_usd).unwrap_or_default()
    }

    /// Whether there was an agent that could have spent something.
    pub fn agent_ran(&self) -> bool {
        let never = [ErrorCategory::NotInstalled, ErrorCategory::StartFailed, ErrorCategory::Setup];
        self.verdict != Verdict::Skipped && !self.error.as_ref().is_some_and(|error| never.contains(&error.category))
    }

    /// What is known to have been spent on it: US dollars of the attempt that counts, and of those before.
    pub fn costs_usd(&self) -> impl Iterator<Item = f64> + use<> {
        let own = self.metrics.cost_usd.filter(|_| self.agent_ran());
        [own, self.earlier_attempts.and_then(|earlier| earlier.cost_usd)].into_iter().flatten()
    }

    /// Whether that is everything.
    pub fn cost_is_known(&self) -> bool {
        (!self.agent_ran() || self.metrics.cost().is_some_and(Amount::is_exact))
            && self.earlier_attempts.is_none_or(|earlier| earlier.cost_unknown == 0)
    }

    /// Returns true if the stored verdict is not the one that was judged.
    pub fn is_not_as_judged(&self) -> bool {
        self.warnings.iter().any(|warning| matches!(warning, Warning::NotAsJudged { .. }))
    }

    /// The trial's identity in its run.
    pub fn id(&self) -> TrialId {
        let (case, harness, arm) = (self.case.clone(), self.harness.clone(), self.arm.clone());
        TrialId { case, harness, arm, trial: self.trial }
    }

    /// A result that says nothing yet of a trial but its verdict.
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
            attempt: 0,
            earlier_attempts: None,
            arm: trial.arm.clone(),
            shape: Vec::new(),
            files: BTreeMap::new(),
            warnings: Vec::new(),
            skipped: None,
            flaky: false,
            manual: false,
            was: None,
        }
    }

    /// The result of a trial that is not run, for what its case demands.
    pub fn skipped(trial: &TrialRecord, reason: &str) -> Self {
        Self { skipped: Some(reason.to_owned()), ..Self::blank(trial, Verdict::Skipped) }
    }
}

/// What the attempts before the one that counts came to. They were paid for all the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierAttempts {
    /// How many there were.
    pub count: u32,
    /// US dollars of those that told; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Those in which an agent ran and whose cost is unknown, or known in part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_unknown: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What was said of a Trial before it was graded again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Was {
    /// Its verdict.
    pub verdict: Verdict,
    /// Its score, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Fraction>,
    /// The graders that say something else now.
    pub graders: Vec<GraderWas>,
}

/// A grader that says something else than before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraderWas {
    /// Its name in the case.
    pub name: String,
    /// What it said; absent where it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<Said>,
    /// What it says; absent where it is not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Said>,
}

/// What a grader said, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// It could not judge.
    Ungraded,
}

impl Said {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Said::Passed => "passed",
            Said::Failed => "failed",
            Said::Ungraded => "ungraded",
        }
    }

    fn of(grade: &GradeRecord) -> Self {
        match grade.passed {
            Some(true) => Said::Passed,
            Some(false) => Said::Failed,
            None => Said::Ungraded,
        }
    }
}

impl Was {
    /// What an earlier result said that this one does not; nothing where they agree.
    pub fn of(before: &TrialResult, now: &TrialResult) -> Option<Self> {
        let said =
            |result: &TrialResult, name: &str| result.grades.iter().find(|grade| grade.name == name).map(Said::of);
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

/// What a Trial took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// From the first prompt to the answer, in milliseconds, without what the agent waited for a person or a model to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// From the start of the agent's process to the first prompt, in milliseconds; absent if the start-up cannot be told
    /// apart, and then it is a part of `duration_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// Tool calls; absent where they could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// The same, by kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls_by_kind: Option<BTreeMap<ToolKind, u64>>,
    /// Steps: rounds of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Tokens sent, without cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// `priced` where the cost comes from a price table and not from the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<String>,
    /// Permission requests; absent where the harness cannot ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permissions: Option<PermissionCounts>,
    /// Keys of the figures above that are lower bounds, because a part of them is known to be missing; absent if none is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<Measure>,
}

impl Metrics {
    /// All tokens: as reported, else input and output (both needed) and what is known of the cache.
    pub fn tokens(&self) -> Option<Amount<u64>> {
        use Measure::{CacheReadTokens, CacheWriteTokens, InputTokens, OutputTokens, TotalTokens};
        if let Some(total) = self.total_tokens {
            return Some(Amount::new(total, self.is_whole(TotalTokens)));
        }
        let sum = self.input_tokens?.saturating_add(self.output_tokens?);
        let cache = [self.cache_read_tokens, self.cache_write_tokens].into_iter().flatten();
        let parts = [InputTokens, OutputTokens, CacheReadTokens, CacheWriteTokens];
        let is_whole = parts.into_iter().all(|part| self.is_whole(part));
        Some(Amount::new(cache.fold(sum, u64::saturating_add), is_whole))
    }

    /// Money in US dollars.
    pub fn cost(&self) -> Option<Amount<f64>> {
        self.cost_usd.map(|cost| Amount::new(cost, self.is_whole(Measure::CostUsd)))
    }

    fn is_whole(&self, measure: Measure) -> bool {
        !self.lower_bounds.contains(&measure)
    }
}

/// How often an agent asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionCounts {
    /// Requests.
    pub requested: u64,
    /// Those that were rejected.
    pub rejected: u64,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StopRecord {
    /// Why.
    pub reason: StopReason,
    /// The limit's key, the agent's own word, or the error's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How the process ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<crate::trace::Exit>,
    /// The end of its standard error, where it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

/// Why a Trial is `errored`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRecord {
    /// What kind of error.
    pub category: ErrorCategory,
    /// What happened, and the way out where there is one.
    pub message: String,
}

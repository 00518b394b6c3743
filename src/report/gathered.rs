//! What a report needs of all results together, gathered in one pass, so that no result has to stay in memory.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::Summary;
use super::activation::Activations;
use super::asked::AskedModels;
use super::cells::CellFolds;
use super::note_facts::NoteFacts;
use crate::compare::self_check::Halves;
use crate::models;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::trace::ErrorCategory;
use crate::verdict::Verdict;

/// The parts of a report that need all results together.
#[derive(Debug)]
pub struct Gathered {
    pub(super) summary: Summary,
    pub(super) cells: CellFolds,
    /// The cases with a trial that passed after it had failed before.
    pub(super) again: HashSet<String>,
    pub(super) asked: AskedModels,
    /// The halves of an arm that is compared with itself, if the run does that.
    pub(super) halves: Option<Halves>,
    pub(super) activation: Activations,
    pub(super) note_facts: NoteFacts,
    pub(super) trials: Vec<TrialInBrief>,
    pub(super) models: Vec<ColumnModels>,
}

/// The part of each trial that a report keeps.
#[derive(Debug, Clone)]
pub struct TrialInBrief {
    /// The place of its cell among the cells of the report.
    pub cell: usize,
    /// The number of the trial, from 1.
    pub trial: u32,
    pub verdict: Verdict,
    /// The number of the attempt, from 1, or 0 if the trial was skipped.
    pub attempt: u32,
    /// True if an agent was started, so that the agent could read files.
    pub began: bool,
    /// The digest of its error. Equal errors have equal digests.
    pub error: Option<ErrorDigest>,
}

/// The digest of an error: its category and its message.
pub type ErrorDigest = [u8; 16];

#[derive(Debug, Clone, Default)]
pub struct ColumnModels {
    /// The models that answered.
    pub effective: BTreeSet<String>,
    /// The model that was requested first.
    pub requested: Option<String>,
    /// The number of trials that another model than the requested one answered, by the requested model and the one that
    /// answered.
    pub others: BTreeMap<(String, String), usize>,
}

impl Gathered {
    /// Begins with a plan.
    pub fn new(run: &RunRecord) -> Self {
        Self {
            summary: Summary::default(),
            cells: CellFolds::new(run),
            again: HashSet::new(),
            asked: AskedModels::default(),
            halves: Halves::of(run),
            activation: Activations::default(),
            note_facts: NoteFacts::default(),
            trials: Vec::new(),
            models: Vec::new(),
        }
    }

    /// Adds the next result, in the order of the plan, and the evidence that its trial lacks in the folder of the run.
    pub fn add_stored(&mut self, result: &TrialResult, folder: &RunFolder) {
        self.add(result);
        self.note_facts.add_missing(folder.missing_evidence(result));
    }

    /// Adds the next result, in the order of the plan.
    pub fn add(&mut self, result: &TrialResult) {
        self.summary.add(result.verdict);
        let (cell, column) = self.cells.add(result);
        if result.flaky && result.verdict == Verdict::Pass && !self.again.contains(&result.case) {
            self.again.insert(result.case.clone());
        }
        self.asked.add(result);
        if let Some(halves) = &mut self.halves {
            halves.add(result);
        }
        if !self.cells.is_quarantined(&result.case) {
            self.activation.add(result);
        }
        self.note_facts.add(self.trials.len(), result);
        if self.models.len() <= column {
            self.models.resize_with(column + 1, ColumnModels::default);
        }
        if let Some(models) = self.models.get_mut(column) {
            models.add(result);
        }
        self.trials.push(TrialInBrief {
            cell,
            trial: result.trial,
            verdict: result.verdict,
            attempt: result.attempt,
            began: began(result),
            error: result.error.as_ref().map(|error| error_digest(error.category, &error.message)),
        });
    }
}

impl ColumnModels {
    fn add(&mut self, result: &TrialResult) {
        if let Some(model) = result.model_that_answered().filter(|model| !self.effective.contains(*model)) {
            self.effective.insert(model.to_owned());
        }
        if self.requested.is_none() {
            self.requested.clone_from(&result.model.requested);
        }
        if let (Some(requested), Some(effective)) = (&result.model.requested, result.model_that_answered())
            && !models::same(requested, effective)
        {
            *self.others.entry((requested.clone(), effective.to_owned())).or_default() += 1;
        }
    }
}

/// Returns true if an agent was started. One that never started could not read anything.
fn began(result: &TrialResult) -> bool {
    let error = result.error.as_ref().map(|error| error.category);
    result.stop.is_some() && !matches!(error, Some(ErrorCategory::NotInstalled | ErrorCategory::StartFailed))
}

fn error_digest(category: ErrorCategory, message: &str) -> ErrorDigest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(category.word().as_bytes()).update(b"\n").update(message.as_bytes());
    let mut digest = ErrorDigest::default();
    hasher.finalize_xof().fill(&mut digest);
    digest
}

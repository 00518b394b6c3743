//! Counts and first examples from the results, from which a report's notes are written. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::gateway::exchange::Source;
use crate::ids::column_name;
use crate::result::{TrialResult, Unrecorded, Warning};
use crate::verdict::Verdict;

/// The number of notes about models that were recordings.
pub const PLAYED: usize = 9;

/// Counts and first examples from results.
#[derive(Debug, Clone, Default)]
pub struct NoteFacts {
    /// True if the policy of any trial was `manual`.
    pub manual: bool,
    /// Trials that passed after they had failed before.
    pub again: usize,
    /// Trials for each note about a model that was a recording, in the order of the notes.
    pub played: [usize; PLAYED],
    /// The reasons why trials were skipped, each with the number of its trials, in the order of the results.
    pub skipped: Vec<(String, usize)>,
    /// Trials whose cost comes from a price table.
    pub priced: usize,
    /// Harnesses, each with a version of its agent.
    pub versions: BTreeSet<(String, String)>,
    /// Harnesses of trials whose time does not include the start of the program.
    pub start_apart: BTreeSet<String>,
    /// Harnesses of trials whose time includes the start of the program.
    pub start_within: BTreeSet<String>,
    /// Grades that a named judge did not give.
    pub unjudged: usize,
    /// The reason of the first of them.
    pub first_unjudged: Option<String>,
    /// Judge models on which a score depends and which have no calibration.
    pub uncalibrated: BTreeSet<String>,
    /// Trials whose stored results were changed after they were graded.
    pub not_as_judged: usize,
    /// The error of the first of them.
    pub first_not_as_judged: Option<String>,
    /// Trials whose `result.json` is missing or was changed, so that their results come from other copies.
    pub from_copies: usize,
    /// Trials of which evidence is missing that their results have digests of.
    pub without_evidence: usize,
    /// The names of the missing files.
    pub missing_files: BTreeSet<String>,
    /// The first warning about changed results of the run.
    pub results_changed: Option<String>,
    /// Trials in which the policy `llm` got no answer from a model.
    pub unadvised: usize,
    /// Those among them that are ungraded for it.
    pub withheld: usize,
    /// Trials in which not every prompt was sent.
    pub prompts_not_sent: usize,
    /// Trials that were graded by a case that names other inputs than their agents had.
    pub other_inputs: usize,
    /// Trials whose workspace contained files of their own case.
    pub case_in_workspace: usize,
    /// The first of these files, relative to the workspace.
    pub files_of_case: BTreeSet<String>,
    /// Trials in which globs of protected files protected no file.
    pub protected_nothing: usize,
    /// Trials with more than one attempt.
    pub tried_again: usize,
    /// The attempts of these trials before the last ones, without discarded ones.
    pub earlier_attempts: usize,
    /// Trials that ran again because their inputs had changed.
    pub run_anew: usize,
    /// The attempts of these trials whose results were discarded, with those before them.
    pub discarded_attempts: usize,
    /// The number of trials of each case that had finished and ran again in a resumed run, by case and column.
    pub ran_later: BTreeMap<String, BTreeMap<String, usize>>,
    /// The earlier attempts whose files are missing.
    pub missing_attempts: usize,
    /// Trials with a result in their folders that the journal does not know.
    pub unknown_to_journal: usize,
    /// Trials with an attempt that has no result, in which an agent was started.
    pub unfinished: usize,
    /// Trials whose agent did not list the skills that it loaded.
    pub skills_not_listed: usize,
    /// Trials whose agent did not list the MCP servers that it loaded.
    pub servers_not_listed: usize,
    /// Trials that did not run behind the gateway.
    pub without_gateway: usize,
    /// Trials that were not skipped.
    pub with_agent: usize,
    /// The warnings that each of these trials has, without those that fail a trial.
    common: Vec<Warning>,
    /// The places of the trials whose verdict was changed by grading again.
    pub changed: Vec<usize>,
    /// The places of the trials whose results were changed, about which a note says so.
    pub doubted: Vec<usize>,
}

impl NoteFacts {
    pub(super) fn add(&mut self, place: usize, result: &TrialResult) {
        self.manual |= result.manual;
        self.again += usize::from(result.flaky);
        self.skip(result);
        self.priced += usize::from(result.metrics.cost_source.is_some() && result.was_paid());
        if let Some(version) = result.agent.as_ref().and_then(|agent| agent.version.as_ref()) {
            self.versions.insert((result.harness.clone(), version.clone()));
        }
        if result.duration_ms().is_some() {
            let apart = result.metrics.start_ms.is_some();
            let harnesses = if apart { &mut self.start_apart } else { &mut self.start_within };
            if !harnesses.contains(&result.harness) {
                harnesses.insert(result.harness.clone());
            }
        }
        self.judges(result);
        self.warnings(place, result);
        if let Some(count) = result.retried_attempts().map(|it| it.count as usize).filter(|count| *count > 0) {
            self.tried_again += 1;
            self.earlier_attempts += count;
        }
        if let Some(discarded) = result.discarded_attempts() {
            self.run_anew += 1;
            self.discarded_attempts += discarded.count as usize;
        }
        if result.earlier_attempts.is_some_and(|earlier| earlier.ran_later) {
            let of_case = self.ran_later.entry(result.case.clone()).or_default();
            *of_case.entry(column_name(&result.harness, &result.arm)).or_default() += 1;
        }
        self.missing_attempts += result.earlier_attempts.map_or(0, |it| it.missing as usize);
        self.without_gateway += usize::from(result.model_from.is_none());
        if result.was.as_ref().is_some_and(|was| was.verdict != result.verdict) {
            self.changed.push(place);
        }
    }

    /// Adds the evidence of a trial that is missing, by the names of its files.
    pub(super) fn add_missing(&mut self, files: Vec<String>) {
        self.without_evidence += usize::from(!files.is_empty());
        self.missing_files.extend(files);
    }

    fn skip(&mut self, result: &TrialResult) {
        let Some(reason) = &result.skipped else { return };
        match self.skipped.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => self.skipped.push((reason.clone(), 1)),
        }
    }

    fn judges(&mut self, result: &TrialResult) {
        for grade in &result.grades {
            let Some(judge) = &grade.judge else { continue };
            if !judge.model.is_empty() && grade.passed.is_none() {
                self.unjudged += 1;
                self.first_unjudged.get_or_insert_with(|| grade.reason.clone());
            }
            if !grade.diagnostic && grade.passed.is_some() && judge.calibrated == Some(false) {
                self.uncalibrated.insert(judge.model.clone());
            }
        }
    }

    fn warnings(&mut self, place: usize, result: &TrialResult) {
        let has = |holds: fn(&Warning) -> bool| result.warnings.iter().any(holds);
        let played = [
            result.model_from == Some(Source::Cassette),
            has(|it| matches!(it, Warning::CassetteLeft { .. })),
            has(|it| matches!(it, Warning::CassetteAgent { .. })),
            has(|it| matches!(it, Warning::PlayedInPart { .. })),
            // An agent that did not start or did not answer used no model at all.
            result.error.is_none() && result.warnings.contains(&Warning::NoRequest),
            has(|it| matches!(it, Warning::AsideNotRecorded { .. })),
            has(|it| matches!(it, Warning::NothingRecorded { why: Unrecorded::NoAnswer })),
            has(|it| matches!(it, Warning::NothingRecorded { why: Unrecorded::Ended })),
            has(|it| matches!(it, Warning::RecordedInPart { .. })),
        ];
        for (count, holds) in self.played.iter_mut().zip(played) {
            *count += usize::from(holds);
        }
        self.unadvised += usize::from(has(|it| matches!(it, Warning::NoModel { .. })));
        self.withheld += usize::from(has(Warning::withholds_the_verdict));
        self.prompts_not_sent += usize::from(has(|it| matches!(it, Warning::PromptsNotSent { .. })));
        self.other_inputs += usize::from(result.warnings.contains(&Warning::OtherInputs));
        for warning in &result.warnings {
            if let Warning::CaseInWorkspace { files, .. } = warning {
                self.case_in_workspace += 1;
                self.files_of_case.extend(files.iter().cloned());
            }
        }
        self.protected_nothing += usize::from(has(|it| matches!(it, Warning::ProtectMatchedNothing { .. })));
        self.skills_not_listed += usize::from(result.warnings.contains(&Warning::SkillsNotListed));
        self.servers_not_listed += usize::from(result.warnings.contains(&Warning::ServersNotListed));
        let changed = result.warnings.iter().find(|it| matches!(it, Warning::ResultsChanged { .. }));
        if let Some(changed) = changed {
            self.results_changed.get_or_insert_with(|| changed.to_string());
        }
        self.from_copies += usize::from(result.is_from_copy());
        let not_as_judged = result.is_not_as_judged();
        if not_as_judged {
            if self.not_as_judged == 0 {
                self.first_not_as_judged = result.error.as_ref().map(|error| error.message.clone());
            }
            self.not_as_judged += 1;
        }
        if not_as_judged || changed.is_some() {
            self.doubted.push(place);
        }
        if result.verdict == Verdict::Skipped {
            return;
        }
        match self.with_agent {
            // A warning that fails a trial is a failed line of each.
            0 => self.common = result.warnings.iter().filter(|it| !it.fails_the_trial()).cloned().collect(),
            _ => self.common.retain(|warning| result.warnings.contains(warning)),
        }
        self.with_agent += 1;
    }

    /// Returns the warnings that each of several trials has, so that they are shown once.
    pub fn common_warnings(&self) -> &[Warning] {
        if self.with_agent > 1 { &self.common } else { &[] }
    }
}

//! Finds facts about a case in the stored runs: graders that never failed, and arms with the same verdicts. Pure.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::quality::Finding;
use crate::case::{Case, CaseKind};
use crate::gateway::exchange::Source;
use crate::grader::unique_names;
use crate::ids::{TrialId, column_name};
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::verdict::Verdict;

/// The minimum number of decided trials after which a grader that never failed is reported.
pub const ENOUGH: usize = 5;
/// The key of the trace in the digests of a result.
const TRACE: &str = "trace.jsonl";

/// The stored trials of the cases in their present content.
#[derive(Debug, Default)]
pub struct Stored {
    cases: BTreeMap<String, OfCase>,
    /// The traces that were counted: regraded and merged runs contain trials of other runs.
    traces: HashSet<(TrialId, String)>,
}

/// The stored trials of a case.
#[derive(Debug, Default)]
struct OfCase {
    /// The number of trials in which each grader gave a pass or a fail, and whether it failed in any stored trial.
    graders: BTreeMap<String, (usize, bool)>,
    arms: BTreeMap<(String, String), Vec<Verdict>>,
}

impl Stored {
    /// Adds a run; the newest comes first. `digests` are the present digests of the cases: trials of another content of
    /// a case show nothing about it.
    ///
    /// A trial counts if its verdict is `pass` or `fail`, it was not in quarantine, and an agent decided what it did: not
    /// a script, a recording or a person. A grade that failed counts in every trial, since "never failed" would be wrong.
    pub fn add(&mut self, run: &RunRecord, results: &[TrialResult], digests: &BTreeMap<String, String>) {
        for result in results.iter().filter(|result| !result.is_not_as_judged()) {
            let Some(record) = run.case(&result.case).filter(|record| record.is_present(digests)) else {
                continue;
            };
            match result.files.get(TRACE) {
                Some(trace) if !self.traces.insert((result.id(), trace.clone())) => continue,
                // The trials that a regraded run was made from may be counted too.
                None if run.graded => continue,
                _ => {}
            }
            let of_case = self.cases.entry(record.id.clone()).or_default();
            let counts = matches!(result.verdict, Verdict::Pass | Verdict::Fail)
                && run.quarantine(&record.id).is_none()
                && is_of_an_agent(run, result);
            for grade in &result.grades {
                let (judged, failed) = of_case.graders.entry(grade.name.clone()).or_default();
                *judged += usize::from(counts && grade.passed.is_some());
                *failed |= grade.passed == Some(false);
            }
            if counts {
                let arm = (result.harness.clone(), result.arm.clone());
                of_case.arms.entry(arm).or_default().push(result.verdict);
            }
        }
    }

    /// Returns the findings about a case. A regression case is supposed to pass always, so nothing is reported for it.
    pub fn findings(&self, case: &Case) -> Vec<Finding> {
        let Some(of_case) = self.cases.get(&case.id).filter(|_| case.kind == CaseKind::Capability) else {
            return Vec::new();
        };
        let names = unique_names(case.graders.iter().map(AsRef::as_ref));
        let counting = case.graders.iter().zip(names).filter(|(grader, _)| grader.counts()).map(|(_, name)| name);
        let never_failed = counting.filter_map(|grader| match of_case.graders.get(&grader) {
            Some((trials, false)) if *trials >= ENOUGH => Some(Finding::NeverFailed { grader, trials: *trials }),
            _ => None,
        });
        never_failed.chain(of_case.not_told_apart()).collect()
    }
}

impl OfCase {
    fn not_told_apart(&self) -> Option<Finding> {
        let verdicts: BTreeSet<&str> = self.arms.values().flatten().map(|verdict| verdict.word()).collect();
        let verdict = *self.arms.values().flatten().next()?;
        (self.arms.len() >= 2 && verdicts.len() == 1).then(|| Finding::NotToldApart {
            arms: self.arms.keys().map(|(harness, arm)| column_name(harness, arm)).collect(),
            trials: self.arms.values().map(Vec::len).sum(),
            verdict,
        })
    }
}

/// Returns true if an agent with a model decided what the trial did.
fn is_of_an_agent(run: &RunRecord, result: &TrialResult) -> bool {
    let manifest = run.harnesses.iter().find(|record| record.name == result.harness).map(|it| &it.manifest);
    !result.manual
        && manifest.is_none_or(|it| it.adapter.starts_a_process() && !it.plays_a_script())
        && !matches!(result.model_from, Some(Source::Cassette | Source::Script))
}

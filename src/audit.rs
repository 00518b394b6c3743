//! The audit of a case: three built-in agents whose verdicts are known in advance, and the meaning of other
//! verdicts. Pure; `cli/check/audit.rs` runs them.

use serde::Serialize;
use strum::{EnumCount, IntoStaticStr};

use crate::grade::GradeRecord;
use crate::grader::{Grader, unique_names};
use crate::result::{TrialResult, Warning};
use crate::verdict::Verdict;
use crate::word::word;

pub mod answers;
pub mod definitions;
pub mod duplicates;
pub mod leaks;
pub mod mutants;
pub mod mutation;
pub mod quality;
pub mod stored;
pub mod syntax;
pub mod vandal;

use mutation::Mutants;
use quality::Finding;

/// A built-in agent of the audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumCount, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Agent {
    /// Changes nothing and sends no message.
    Null,
    /// Applies the reference solution.
    Oracle,
    /// Deletes and overwrites tests and fixtures, claims that everything passed, and exits with 0.
    Vandal,
}

word!(Agent);

impl Agent {
    /// All agents, in the order of a report.
    pub const ALL: [Agent; Agent::COUNT] = [Agent::Null, Agent::Oracle, Agent::Vandal];

    /// Returns the verdict that a sound case gives to the agent.
    pub fn must(self) -> Verdict {
        match self {
            Agent::Oracle => Verdict::Pass,
            Agent::Null | Agent::Vandal => Verdict::Fail,
        }
    }
}

/// An audited case.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Audited {
    /// Id of the case.
    pub case: String,
    /// The case file.
    pub path: String,
    /// True if the agents decide whether the case is sound. If they do not, it is neither sound nor unsound.
    pub audited: bool,
    /// True if the case was audited, and every agent that was run got the required verdict.
    pub sound: bool,
    /// The result of each agent.
    pub agents: Vec<Tried>,
    /// Graders that call a judge model; an audit leaves them out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks_models: Vec<String>,
    /// Findings about the quality of the case. They are warnings: the case can be sound nevertheless.
    pub findings: Vec<Finding>,
    /// The mutations of the reference solution. Absent if the case has no sound reference solution, or if no
    /// mutations were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutants: Option<Mutants>,
}

/// The result of one agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tried {
    /// The built-in agent that made the workspace.
    pub agent: Agent,
    /// The variant, if the agent has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<&'static str>,
    /// The required verdict.
    pub must: Verdict,
    /// The actual verdict. Absent if the agent could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// True if the verdict is the required one; also true if the case has no oracle and another agent was run.
    pub sound: bool,
    /// The graders that caused a wrong verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<Blamed>,
    /// Graders that were not audited, because they judge something that a folder of files does not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_audited: Vec<String>,
    /// The error, limit or missing file that explains the verdict. Absent if graders explain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A grader that caused a wrong verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blamed {
    /// The name of the grader in the case.
    pub name: String,
    /// The kind of the grader.
    pub grader: String,
    /// The reason in its grade.
    pub reason: String,
}

impl Audited {
    /// Makes the audit of a case from the results of its agents and the graders that were left out because they
    /// call a model.
    pub fn of(case: &str, path: String, agents: Vec<Tried>, asks_models: Vec<String>) -> Self {
        let all_sound = agents.iter().all(|tried| tried.sound);
        let audited = !(all_sound && agents.iter().any(Tried::shows_nothing_that_counts));
        let (case, sound) = (case.to_owned(), all_sound && audited);
        Self { case, path, audited, sound, agents, asks_models, findings: Vec::new(), mutants: None }
    }

    /// Makes the result of a case of which no agent can be run, because only judge models grade it.
    pub fn not_audited(case: &str, path: String, asks_models: Vec<String>) -> Self {
        let why = "only judge models grade it, and the audit calls none; add a grader that needs no model";
        let agent = |agent| Tried { sound: false, ..Tried::without(agent, why, Vec::new()) };
        let agents = Agent::ALL.map(agent).into();
        Self { audited: false, ..Self::of(case, path, agents, asks_models) }
    }

    /// Returns true if the case has a reference solution of files alone, and no grader that counts reads files.
    pub fn has_blind_oracle(&self) -> bool {
        self.agents.iter().any(Tried::shows_nothing_that_counts)
    }

    /// Returns true if an agent came to a wrong verdict, or could not be tried.
    pub fn is_unsound(&self) -> bool {
        self.audited && !self.sound
    }

    /// Adds the mutants of the reference solution.
    #[must_use]
    pub fn with(mut self, mutants: Option<Mutants>) -> Self {
        self.findings.extend(mutants.as_ref().and_then(Mutants::finding));
        self.mutants = mutants;
        self
    }
}

impl Tried {
    /// Makes the result of an agent from its trial.
    pub fn of(agent: Agent, how: Option<&'static str>, result: &TrialResult) -> Self {
        // An agent that can read its case needs no skill, whatever the agents of the audit do.
        let can_read = |warning: &Warning| matches!(warning, Warning::CaseInWorkspace { .. });
        let is_open = agent == Agent::Null && result.warnings.iter().any(can_read);
        let sound = result.verdict == agent.must() && !is_open;
        let counts = |grade: &&GradeRecord| !grade.diagnostic && (grade.gate || grade.weight > 0.0);
        let blamed = |grade: &&GradeRecord| match (agent.must(), result.verdict) {
            _ if sound => false,
            // The agent should fail but passed: all graders that passed are responsible.
            (Verdict::Fail, Verdict::Pass) => grade.passed == Some(true),
            // The agent did not fail, and some graders were ungraded.
            (Verdict::Fail, _) => grade.passed.is_none(),
            (_, _) => grade.passed != Some(true),
        };
        let graders = result.grades.iter().filter(counts).filter(blamed).map(|grade| Blamed {
            name: grade.name.clone(),
            grader: grade.grader.clone(),
            reason: grade.reason.clone(),
        });
        let graders: Vec<Blamed> = graders.collect();
        let mut said: Vec<String> = Vec::new();
        if !sound {
            said.extend(result.error.as_ref().map(|error| format!("{}: {}", error.category.word(), error.message)));
            // A limit or a protected file fails a trial without any grader.
            said.extend(result.warnings.iter().filter(|_| graders.is_empty()).map(Warning::to_string));
        }
        let note = (!said.is_empty()).then(|| said.join("; "));
        let (must, verdict) = (agent.must(), Some(result.verdict));
        Self { agent, how, must, verdict, sound, graders, not_audited: Vec::new(), note }
    }

    /// Makes the result of an agent that could not be run: the case is not sound, because its verdict is
    /// unknown.
    pub fn impossible(agent: Agent, how: Option<&'static str>, why: String) -> Self {
        let must = agent.must();
        Self {
            agent,
            how,
            must,
            verdict: None,
            sound: false,
            graders: Vec::new(),
            not_audited: Vec::new(),
            note: Some(why),
        }
    }

    /// Returns true if an oracle shows nothing of what the graders that count judge.
    fn shows_nothing_that_counts(&self) -> bool {
        self.agent == Agent::Oracle && self.sound && self.verdict.is_none() && !self.not_audited.is_empty()
    }

    /// Makes the result for an oracle that is missing or shows nothing that counts, which is not an error.
    pub fn without(agent: Agent, why: impl Into<String>, not_audited: Vec<String>) -> Self {
        let note = Some(why.into());
        Self {
            agent,
            how: None,
            must: agent.must(),
            verdict: None,
            sound: true,
            graders: Vec::new(),
            not_audited,
            note,
        }
    }
}

/// Returns the graders that run commands, and the tests of `fail-to-pass`, that pass without any change. `result` is that
/// of the null agent. Graders that only guard what already works are left out.
pub fn passes_without_change(case_graders: &[std::sync::Arc<Grader>], result: &TrialResult) -> Vec<Finding> {
    // If the null agent passes, the audit names all graders that let it through.
    if result.verdict != Verdict::Fail {
        return Vec::new();
    }
    let names = unique_names(case_graders.iter().map(AsRef::as_ref));
    let graders = case_graders
        .iter()
        .zip(names)
        .filter(|(grader, _)| grader.counts() && grader.kind.needs().commands && !grader.kind.spec().only_guards());
    let finding = |(_, name): (_, String)| {
        let grade = result.grades.iter().find(|grade| grade.name == name)?;
        let tests = grade.tests.as_ref().map(|tests| tests.fail_to_pass_passed.clone()).unwrap_or_default();
        match grade.passed {
            Some(true) => Some(Finding::PassesWithoutChange { grader: name, tests: Vec::new() }),
            _ if !tests.is_empty() => Some(Finding::PassesWithoutChange { grader: name, tests }),
            _ => None,
        }
    };
    graders.filter_map(finding).collect()
}

/// Returns true if a folder as the reference solution contains what the grader examines: the workspace, but neither
/// messages nor calls.
pub fn shown_by_folder(grader: &Grader) -> bool {
    grader.kind.needs().grades_workspace()
}

/// Returns the names of the graders for which such a solution shows nothing.
pub fn not_shown_by_folder<'a>(graders: impl IntoIterator<Item = &'a Grader> + Clone) -> Vec<String> {
    let names = unique_names(graders.clone());
    graders.into_iter().zip(names).filter(|(grader, _)| !shown_by_folder(grader)).map(|(_, name)| name).collect()
}

//! The audit of a case: three built-in agents whose verdicts are known before they begin, and what it means when a case
//! gives others. Pure; `cli/check/audit.rs` plays them.

use serde::Serialize;

use crate::grade::GradeRecord;
use crate::grader::{Grader, unique_names};
use crate::result::{TrialResult, Warning};
use crate::verdict::Verdict;

pub mod vandal;

/// The agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// Does nothing and says nothing.
    Null,
    /// Applies the reference solution.
    Oracle,
    /// Deletes and overwrites tests and fixtures, says that all passed, and exits 0.
    Vandal,
}

impl Agent {
    /// All of them, in the order of a report.
    pub const ALL: [Agent; 3] = [Agent::Null, Agent::Oracle, Agent::Vandal];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Agent::Null => "null",
            Agent::Oracle => "oracle",
            Agent::Vandal => "vandal",
        }
    }

    /// The verdict that a sound case gives it.
    pub fn must(self) -> Verdict {
        match self {
            Agent::Oracle => Verdict::Pass,
            Agent::Null | Agent::Vandal => Verdict::Fail,
        }
    }
}

/// A case, audited.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Audited {
    /// Id of the case.
    pub case: String,
    /// Its file.
    pub path: String,
    /// Whether every agent that was tried got the verdict it must.
    pub sound: bool,
    /// What each agent came to.
    pub agents: Vec<Tried>,
    /// Graders that ask a model, which no audit does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks_models: Vec<String>,
}

/// What one agent came to.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct Tried {
    /// Which.
    pub agent: Agent,
    /// What it did, where it can do several things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub how: Option<&'static str>,
    /// The verdict it must get.
    pub must: Verdict,
    /// The verdict it got; absent where it could not be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether that is as it must be. An agent that there is none of is as it must be, too.
    pub sound: bool,
    /// The graders to blame where it is not: those that let it through, or that did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub graders: Vec<Blamed>,
    /// Graders that were not tried: a folder of files does not show what they judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_audited: Vec<String>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A grader that is to blame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Blamed {
    /// Its name in the case.
    pub name: String,
    /// Its kind.
    pub grader: String,
    /// What it said.
    pub reason: String,
}

impl Audited {
    /// Of a case, what its agents came to, and which graders were left out since they ask a model.
    pub fn of(case: &str, path: String, agents: Vec<Tried>, asks_models: Vec<String>) -> Self {
        let sound = agents.iter().all(|tried| tried.sound);
        Self { case: case.to_owned(), path, sound, agents, asks_models }
    }
}

impl Tried {
    /// What an agent came to, from the result of its trial.
    pub fn of(agent: Agent, how: Option<&'static str>, result: &TrialResult) -> Self {
        let sound = result.verdict == agent.must();
        let counts = |grade: &&GradeRecord| !grade.diagnostic && (grade.gate || grade.weight > 0.0);
        let blamed = |grade: &&GradeRecord| match (agent.must(), result.verdict) {
            _ if sound => false,
            // One that must fail passed: by everybody who let it.
            (Verdict::Fail, Verdict::Pass) => grade.passed == Some(true),
            // It failed nowhere, and somebody could not tell.
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
            // A limit, or a protected file, fails a trial without any grader.
            said.extend(result.warnings.iter().filter(|_| graders.is_empty()).map(Warning::to_string));
        }
        let note = (!said.is_empty()).then(|| said.join("; "));
        let (must, verdict) = (agent.must(), Some(result.verdict));
        Self { agent, how, must, verdict, sound, graders, not_audited: Vec::new(), note }
    }

    /// An agent that could not be tried: the case is not sound, since nobody can tell.
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

    /// An oracle that was not tried, which is no fault.
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

/// Whether a reference solution that is a folder shows what a grader judges: the workspace, and neither words nor calls.
pub fn shown_by_folder(grader: &Grader) -> bool {
    grader.kind.needs().judges_workspace()
}

/// The names of the graders that such a solution does not show anything to.
pub fn not_shown_by_folder<'a>(graders: impl IntoIterator<Item = &'a Grader> + Clone) -> Vec<String> {
    let names = unique_names(graders.clone());
    graders.into_iter().zip(names).filter(|(grader, _)| !shown_by_folder(grader)).map(|(_, name)| name).collect()
}

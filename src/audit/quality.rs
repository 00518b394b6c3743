//! The findings of an audit about the quality of a case. Each has a code; none of them makes a case unsound.

use serde::Serialize;
use strum::IntoStaticStr;

use super::answers::Answer;
use crate::verdict::Verdict;
use crate::word::word;

/// A finding about the quality of a case.
#[derive(Debug, Clone, PartialEq, Serialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "code", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Finding {
    /// A grader passed in every stored trial that counts.
    NeverFailed {
        /// The name of the grader in the case.
        grader: String,
        /// The number of trials in which it was graded.
        trials: usize,
    },
    /// Every stored trial of every arm has the same verdict.
    NotToldApart {
        /// The arms, as reports name their columns.
        arms: Vec<String>,
        /// The number of trials.
        trials: usize,
        /// Their verdict.
        verdict: Verdict,
    },
    /// The case has almost the same prompt as an earlier case, and almost the same workspace.
    NearDuplicate {
        /// Id of the other case.
        of: String,
        /// The Jaccard similarity of the sets of word triples of both prompts, from 0.8 to 1.
        similarity: f64,
        /// The Jaccard similarity of the sets of lines of both workspaces, from 0.8 to 1. 1 if they are equal or differ
        /// only in comments and blanks.
        workspaces: f64,
    },
    /// The prompt contains parts of the solution, or values that the hidden tests expect.
    AnswerInPrompt {
        /// The parts of the solution, and the expected values, that the prompt contains.
        parts: Vec<Answer>,
    },
    /// A grader that runs commands passes without any change, so it does not constrain the change.
    PassesWithoutChange {
        /// The name of the grader in the case.
        grader: String,
        /// The tests of `fail-to-pass` that pass without any change. Absent if the whole grader passes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tests: Vec<String>,
    },
    /// Mutations of the reference solution that pass. They are listed under `mutants`.
    MutantsNotNoticed {
        /// The number of mutations that pass.
        not_noticed: usize,
        /// The number of mutations that were graded.
        judged: usize,
    },
}

word!(&Finding);

//! Graders: each grades one aspect of a trial. This file has the closed list of their kinds; each file below it is one kind.
//!
//! A [`GraderEntry`] is a grader as written in a case, a [`Grader`] is the result when every `use` is resolved, and a
//! [`Grading`] grades one trial while its events arrive.

use crate::yaml::wrong_part::WrongPart;

mod trial_json;
mod aliases;
mod answer_losses;
mod assign;
mod calibrate;
mod shared_keys;
mod checks;
mod entry;
mod evidence;
mod grading;
mod lasting_answer;
mod library;
mod needs;
mod observer;
mod sequence;
mod speakers;
mod spec;
mod surroundings;

mod budget;
mod command;
mod diff;
mod errors;
mod expr;
mod files;
mod loops;
mod model;
mod output;
mod pairwise;
mod permissions;
mod rubric;
mod rules;
mod scope;
mod script;
mod skills;
mod snapshot;
mod stop;
pub mod test_run;
mod tool_calls;
mod trajectory;

pub use crate::matcher::subject::Subject;
pub use aliases::WORDS as ALIASES;
pub use calibrate::{Calibrate, JudgedSession, LabelValue, Verdicts};
pub use entry::{Common, GraderEntry, GraderOrName, Use};
pub use evidence::Evidence;
pub use grading::{Grading, unique_names};
pub use library::{GraderError, Library, NamedGrader, expand};
pub use needs::{Needs, Workspace};
pub use spec::{CaseOf, WrongExpression};
pub use surroundings::{Renewed, Surroundings};

use observer::{Finding, Findings, Observer};
use spec::GraderSpec;

/// Declares the kinds of grader, one line each. Reading, writing and the schema follow from this list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $word:literal),* $(,)?) => {
        /// A grader's kind, with its settings.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "a case has a few graders, and each is behind an `Arc`")]
        pub enum Kind {
            $($(#[$doc])* $variant($body)),*
        }

        impl Kind {
            /// The name of each kind, as used in cases.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// Returns the kind's name.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Kind::$variant(_) => $word),*
                }
            }

            /// Reads the body of a kind; `word` is one of [`Kind::WORDS`].
            fn read<'de, D: serde::Deserializer<'de>>(word: &str, body: D) -> Result<Self, D::Error> {
                match word {
                    $($word => <$body as serde::Deserialize>::deserialize(body).map(Kind::$variant),)*
                    other => Err(serde::de::Error::custom(format_args!("unknown grader `{other}`"))),
                }
            }

            /// Returns the body as JSON, without the keys that every grader takes.
            fn body_json(&self) -> serde_json::Result<serde_json::Value> {
                match self {
                    $(Kind::$variant(body) => serde_json::to_value(body)),*
                }
            }

            /// Returns name and schema of each body, without the keys that every grader takes.
            #[cfg(test)]
            fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($word, <$body as schemars::JsonSchema>::json_schema(generator))),*]
            }

            /// Returns the needs of graders of a kind. An unknown kind has none.
            pub fn needs_of(word: &str) -> Needs {
                match word {
                    $($word => <$body as GraderSpec>::needs(),)*
                    _ => Needs::NONE,
                }
            }

            /// Returns the specification, which answers for this kind.
            pub fn spec(&self) -> &dyn GraderSpec {
                match self {
                    $(Kind::$variant(body) => body),*
                }
            }

            /// Returns the specification, to complete its settings.
            pub fn spec_mut(&mut self) -> &mut dyn GraderSpec {
                match self {
                    $(Kind::$variant(body) => body),*
                }
            }
        }
    };
}

kinds! {
    /// Checks the final answer.
    Output(output::Output) = "output",
    /// Checks files in the workspace.
    Files(files::Files) = "files",
    /// Runs a command and checks its exit code and output.
    Command(command::RunCommand) = "command",
    /// Checks the change of the workspace.
    Diff(diff::Diff) = "diff",
    /// Checks which tool calls were made.
    ToolCalls(tool_calls::ToolCalls) = "tool-calls",
    /// Compares the tool calls with the expected ones.
    Trajectory(trajectory::Trajectory) = "trajectory",
    /// Checks which skills were used.
    Skills(skills::Skills) = "skills",
    /// Checks the order of events.
    Rules(rules::Rules) = "rules",
    /// Limits immediate repetitions of the same call.
    Loops(loops::Loops) = "loops",
    /// Limits failed tool calls.
    Errors(errors::Errors) = "errors",
    /// Checks which files were touched.
    Scope(scope::Scope) = "scope",
    /// Evaluates an expression over the whole trial.
    Expr(expr::Expr) = "expr",
    /// Runs tests and checks which of them pass.
    Tests(test_run::Tests) = "tests",
    /// Runs a program of the case, which returns the grade.
    Script(script::Script) = "script",
    /// Checks permission requests and their outcomes.
    Permissions(permissions::Permissions) = "permissions",
    /// Checks how the session ended.
    Stop(stop::StopIs) = "stop",
    /// Limits cost, tokens, calls and time.
    Budget(budget::Budget) = "budget",
    /// Checks which model answered.
    Model(model::ModelIs) = "model",
    /// Compares the trial with the accepted snapshot of its cell.
    Snapshot(snapshot::Snapshot) = "snapshot",
    /// Asks a judge model about criteria.
    Rubric(crate::judge::rubric::Rubric) = "rubric",
    /// Asks a judge model to compare with a reference.
    Pairwise(pairwise::Pairwise) = "pairwise",
}

impl Kind {
    /// Returns the needs of graders of this kind.
    pub fn needs(&self) -> Needs {
        Self::needs_of(self.word())
    }
}

/// A grader, ready to be applied: its kind and its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Grader {
    /// The name in the case; [`unique_names`] makes equal names distinct.
    pub name: String,
    /// The weight in the mean.
    pub weight: f64,
    /// True if the grader's failure fails the trial.
    pub gate: bool,
    /// True if the grader is only reported.
    pub diagnostic: bool,
    /// The kind and its settings.
    pub kind: Kind,
}

impl Grader {
    /// Returns true if the grade can change a verdict.
    pub fn counts(&self) -> bool {
        !self.diagnostic && (self.gate || self.weight > 0.0)
    }
}

/// Refuses a case whose graders make its verdict meaningless.
///
/// # Errors
/// Returns an error if the case asserts nothing; the text states why and how to fix it.
pub fn refuse_empty(graders: &[Grader]) -> Result<(), String> {
    for (grader, name) in graders.iter().zip(unique_names(graders)) {
        if let Some(reason) = grader.kind.spec().refusal() {
            return Err(format!("the grader `{name}` {reason}"));
        }
        if let Some(WrongPart { why, .. }) = grader.kind.spec().wrong_part() {
            return Err(format!("the grader `{name}` {why}"));
        }
        if let Some(WrongExpression { key, wrong, .. }) = grader.kind.spec().wrong_expression() {
            return Err(format!("the grader `{name}` has a `{key}` that cannot be used: {wrong}"));
        }
    }
    if graders.is_empty() {
        Err("the case has no grader, so it asserts nothing; add one under `graders`".to_owned())
    } else if graders.iter().all(|grader| grader.diagnostic) {
        Err("every grader of the case is diagnostic, so it asserts nothing; let at least one count".to_owned())
    } else if !graders.iter().any(Grader::counts) {
        Err("every grader of the case has weight 0, so it asserts nothing; let at least one count".to_owned())
    } else {
        Ok(())
    }
}

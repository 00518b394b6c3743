//! Graders: each judges one aspect of a Trial. This is the closed list of their kinds; a file below it is one kind.
//!
//! A [`GraderEntry`] is what a case says, a [`Grader`] what is left when every `use` is resolved, and a
//! [`Grading`] the judgement of one Trial, made while its events go by.

use std::path::Path;

use crate::model_client::ModelName;
use crate::trace::Lost;
use crate::yaml::wrong_part::WrongPart;

mod trial_json;
mod aliases;
mod arguments;
mod assign;
mod shared_keys;
mod checks;
mod entry;
mod evidence;
mod grading;
mod library;
pub mod matcher;
mod needs;
mod observer;
mod sequence;
mod spec;
mod text;

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
mod snapshot;
mod stop;
mod test_run;
mod tool_calls;
mod trajectory;

pub use aliases::WORDS as ALIASES;
pub use entry::{Common, GraderEntry, Use, What};
pub use evidence::Evidence;
pub use grading::{Grading, unique_names};
pub use library::{GraderError, Library, NamedGrader, expand};
pub use matcher::Subject;
pub use needs::{Needs, Workspace};
pub use pairwise::{PAIR, Pairwise};
pub use spec::{Calibrated, CaseOf, WrongExpression};

use observer::{Finding, Findings, Observer};
use spec::GraderSpec;

/// The kinds of grader: one line each, and all that reads, writes and describes them follows from it.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $word:literal),* $(,)?) => {
        /// What a grader judges, with what it was told to look for.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(clippy::large_enum_variant, reason = "a case has a few graders, and each is behind an `Arc`")]
        pub enum Kind {
            $($(#[$doc])* $variant($body)),*
        }

        impl Kind {
            /// The word of each kind, as it stands in cases.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The kind's word.
            pub fn word(&self) -> &'static str {
                match self {
                    $(Kind::$variant(_) => $word),*
                }
            }

            /// Reads the body of the kind that a word names; the word is one of [`Kind::WORDS`].
            fn read<'de, D: serde::Deserializer<'de>>(word: &str, body: D) -> Result<Self, D::Error> {
                match word {
                    $($word => <$body as serde::Deserialize>::deserialize(body).map(Kind::$variant),)*
                    other => Err(serde::de::Error::custom(format_args!("unknown grader `{other}`"))),
                }
            }

            /// The body as JSON, without the keys that every grader takes.
            fn body_json(&self) -> serde_json::Result<serde_json::Value> {
                match self {
                    $(Kind::$variant(body) => serde_json::to_value(body)),*
                }
            }

            /// Word and schema of each body, without the keys that every grader takes.
            fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($word, <$body as schemars::JsonSchema>::json_schema(generator))),*]
            }

            /// What graders of the kind that a word names need. An unknown word needs nothing.
            pub fn needs_of(word: &str) -> Needs {
                match word {
                    $($word => <$body as GraderSpec>::needs(),)*
                    _ => Needs::NONE,
                }
            }

            fn spec(&self) -> &dyn GraderSpec {
                match self {
                    $(Kind::$variant(body) => body),*
                }
            }

            fn spec_mut(&mut self) -> &mut dyn GraderSpec {
                match self {
                    $(Kind::$variant(body) => body),*
                }
            }
        }
    };
}

kinds! {
    /// The final answer.
    Output(output::Output) = "output",
    /// Files in the workspace.
    Files(files::Files) = "files",
    /// A command's exit code and output.
    Command(command::RunCommand) = "command",
    /// What changed in the workspace.
    Diff(diff::Diff) = "diff",
    /// Which calls were made.
    ToolCalls(tool_calls::ToolCalls) = "tool-calls",
    /// Whether the calls are the expected ones.
    Trajectory(trajectory::Trajectory) = "trajectory",
    /// What happened in which order.
    Rules(rules::Rules) = "rules",
    /// How often the same was done again at once.
    Loops(loops::Loops) = "loops",
    /// Which calls failed.
    Errors(errors::Errors) = "errors",
    /// Which files were touched.
    Scope(scope::Scope) = "scope",
    /// An expression over all of it.
    Expr(expr::Expr) = "expr",
    /// Which tests pass.
    Tests(test_run::Tests) = "tests",
    /// What a program of the case's says.
    Script(script::Script) = "script",
    /// What the agent asked for, and what became of it.
    Permissions(permissions::Permissions) = "permissions",
    /// How the session ended.
    Stop(stop::StopIs) = "stop",
    /// What it cost.
    Budget(budget::Budget) = "budget",
    /// Which model answered.
    Model(model::ModelIs) = "model",
    /// Whether it did what is accepted for its cell.
    Snapshot(snapshot::Snapshot) = "snapshot",
    /// What a model makes of it, by criteria.
    Rubric(crate::judge::rubric::Rubric) = "rubric",
    /// What a model makes of it beside a reference.
    Pairwise(pairwise::Pairwise) = "pairwise",
}

impl Kind {
    /// What graders of this kind need.
    pub fn needs(&self) -> Needs {
        Self::needs_of(self.word())
    }

    /// Returns true if what is missing in a Trace can change a grade of this kind.
    pub fn misses(&self, lost: Lost) -> bool {
        self.spec().misses(lost)
    }

    /// Returns true if no further event can turn a pass into another grade.
    pub fn only_finds(&self) -> bool {
        self.spec().only_finds()
    }

    /// The files that it reads or runs, as they are written.
    pub fn named_files(&self) -> Vec<&Path> {
        self.spec().named_files()
    }

    /// The file that it names and that does not exist, if its paths count from this folder.
    pub fn missing_file(&self, folder: &Path) -> Option<WrongPart> {
        self.spec().missing_file(folder)
    }

    /// Returns true if it passes because of something that it does not find in the workspace.
    pub fn passes_on_absence(&self) -> bool {
        self.spec().passes_on_absence()
    }

    /// The models that it names as judges.
    pub fn judges(&self) -> &[ModelName] {
        self.spec().judges()
    }

    /// The file of its calibration, as it is written or beside the file that the grader stands in.
    pub fn calibration(&self) -> Option<&Path> {
        self.spec().calibration()
    }

    /// The grader as `evals calibrate` takes it, if it asks a model.
    pub fn calibrated(&self) -> Option<Calibrated> {
        self.spec().calibrated()
    }
}

/// A grader as it is applied: its kind, and what it counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Grader {
    /// Its name in the case; [`unique_names`] tells graders of the same name apart.
    pub name: String,
    /// Its weight in the mean.
    pub weight: f64,
    /// Whether its failure fails the trial.
    pub gate: bool,
    /// Whether it is only reported.
    pub diagnostic: bool,
    /// What it judges.
    pub kind: Kind,
}

impl Grader {
    /// Returns true if its grade can change a verdict.
    pub fn counts(&self) -> bool {
        !self.diagnostic && (self.gate || self.weight > 0.0)
    }

    /// Makes its relative paths count from the folder of the file that it is written in.
    pub fn count_from(&mut self, folder: &Path) {
        self.kind.spec_mut().count_from(folder);
    }

    /// Tells it which case it judges.
    pub fn belongs_to(&mut self, case: &CaseOf<'_>) {
        self.kind.spec_mut().belongs_to(case);
    }

    /// Tells it that the run accepts what its trials do.
    pub fn run_accepts(&mut self) {
        self.kind.spec_mut().run_accepts();
    }

    /// The files that it reads or runs, as they are written.
    pub fn named_files(&self) -> Vec<&Path> {
        self.kind.named_files()
    }
}

/// What a case's graders lack for its verdict to mean anything.
///
/// # Errors
/// The case asserts nothing: the reason says why and what to do.
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

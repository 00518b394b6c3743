//! Graders: each judges one aspect of a Trial. This is the closed list of their kinds; a file below it is one kind.
//!
//! A [`GraderEntry`] is what a case says, a [`Grader`] what is left when every `use` is resolved, and a
//! [`Grading`] the judgement of one Trial, made while its events go by.

use std::path::Path;

use crate::case::SnapshotSettings;
use crate::expression::Wrong;
use crate::grade::Grade;
use crate::judge::Judges;
use crate::judge::view::View;
use crate::model_client::ModelName;
use crate::result::Metrics;
use crate::shell::Shell;
use crate::trace::usage::UsageTotal;
use crate::trace::{Event, Header, Stop};
use crate::workspace::change::Change;
use crate::yaml::{OwnedStep, Step};

mod account;
mod aliases;
mod arguments;
mod assign;
mod beside;
mod checks;
mod entry;
mod grading;
mod library;
mod lists;
pub mod matcher;
mod sequence;
mod words;

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
pub use grading::{Grading, unique_names};
pub use library::{GraderError, Library, NamedGrader, expand};
pub use lists::OneOrList;
pub use matcher::Subject;
pub use pairwise::{PAIR, Pairwise};

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

            fn body(&self) -> &dyn Body {
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
    /// Whether it looks into the workspace, and so has nothing to say where that is gone.
    pub fn looks_into_workspace(&self) -> bool {
        Self::word_looks_into_workspace(self.word())
    }

    /// The same of a kind by its word.
    pub fn word_looks_into_workspace(word: &str) -> bool {
        LOOK_INTO_WORKSPACE.contains(&word)
    }

    /// Whether it looks into the workspace and can judge without one, too: a script is told whether there is one.
    pub fn judges_without_workspace(&self) -> bool {
        Self::word_judges_without_workspace(self.word())
    }

    /// The same of a kind by its word.
    pub fn word_judges_without_workspace(word: &str) -> bool {
        word == "script"
    }

    /// Whether it passes for what it does not find in the workspace.
    pub fn asks_what_is_absent(&self) -> bool {
        matches!(self, Kind::Files(files) if !files.absent.is_empty())
    }

    /// Whether it asks a model.
    pub fn asks_a_model(&self) -> bool {
        ["rubric", "pairwise"].contains(&self.word())
    }

    /// Those it names to judge; none where it asks no model.
    pub fn judges_named(&self) -> &[ModelName] {
        match self {
            Kind::Rubric(rubric) => rubric.judges(),
            Kind::Pairwise(pairwise) => pairwise.judges(),
            _ => &[],
        }
    }

    /// The file that it compares with and that is not there, or is none, in the folder from which its paths count.
    fn lacks(&self, folder: &Path) -> Option<WrongPart> {
        match self {
            Kind::Pairwise(pairwise) => pairwise.lacks(folder),
            _ => None,
        }
    }

    /// The file that it compares with and that does not exist in the folder from which its paths count. Without it the grader
    /// is ungraded.
    pub fn missing_file(&self, folder: &Path) -> Option<WrongPart> {
        match self {
            Kind::Files(files) => files.lacks(folder),
            Kind::Output(output) => output.lacks(folder),
            _ => None,
        }
    }

    /// Whether it judges what came of a session, and not how it went.
    pub fn judges_outcome(&self) -> bool {
        judges_what_is_left(self.word()) || self.word() == "output"
    }
}

/// The kinds that look into the workspace.
const LOOK_INTO_WORKSPACE: [&str; 4] = ["files", "command", "tests", "script"];

/// Whether graders of the kind with this word judge what is left of the workspace: neither words nor calls.
pub fn judges_what_is_left(kind: &str) -> bool {
    LOOK_INTO_WORKSPACE.contains(&kind) || kind == "diff"
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
    /// Whether its grade can change a verdict.
    pub fn counts(&self) -> bool {
        !self.diagnostic && (self.gate || self.weight > 0.0)
    }

    /// Makes the paths of its files count from the folder of the file that it is written in.
    pub fn count_from(&mut self, folder: &Path) {
        match &mut self.kind {
            Kind::Files(files) => files.count_from(folder),
            Kind::Output(output) => output.count_from(folder),
            Kind::Script(script) => script.count_from(folder),
            Kind::Pairwise(pairwise) => pairwise.count_from(folder),
            Kind::Rubric(rubric) => rubric.count_from(folder),
            _ => {}
        }
    }

    /// Tells one that compares with accepted snapshots where those of its case lie.
    pub fn has_snapshots_in(&mut self, folder: &Path, settings: &SnapshotSettings, case: &str) {
        if let Kind::Snapshot(snapshot) = &mut self.kind {
            snapshot.lies_in(folder.to_owned(), settings.clone(), case);
        }
    }

    /// Tells the same that the run accepts what its trials do.
    pub fn is_of_a_run_that_accepts(&mut self) {
        if let Kind::Snapshot(snapshot) = &mut self.kind {
            snapshot.is_accepted();
        }
    }

    /// Whether it runs a command.
    pub fn runs_a_command(&self) -> bool {
        matches!(self.kind, Kind::Command(_) | Kind::Tests(_) | Kind::Script(_))
    }

    /// Files beside the case that it compares with, as they are written there.
    pub fn named_files(&self) -> Vec<&Path> {
        self.kind.named_files()
    }
}

impl Kind {
    /// The file of its calibration, as it is written or beside the file that the grader stands in.
    pub fn calibration(&self) -> Option<&Path> {
        match self {
            Kind::Rubric(rubric) => rubric.calibrated().file,
            Kind::Pairwise(pairwise) => pairwise.calibrated().file,
            _ => None,
        }
    }

    /// Files that it compares with or runs, as they are written.
    pub fn named_files(&self) -> Vec<&Path> {
        match self {
            Kind::Files(files) => files.named_files().collect(),
            Kind::Script(script) => script.named_files().collect(),
            Kind::Output(output) => output.named_files().collect(),
            Kind::Pairwise(pairwise) => pairwise.named_files().collect(),
            _ => Vec::new(),
        }
    }
}

/// What a case's graders lack for its verdict to mean anything.
///
/// # Errors
/// The case asserts nothing: the reason says why and what to do.
pub fn refuse_empty(graders: &[Grader]) -> Result<(), String> {
    for (grader, name) in graders.iter().zip(unique_names(graders)) {
        if let Some(reason) = grader.kind.body().refusal() {
            return Err(format!("the grader `{name}` {reason}"));
        }
        if let Some(WrongPart { why, .. }) = grader.kind.body().wrong_part() {
            return Err(format!("the grader `{name}` {why}"));
        }
        if let Some(WrongExpression { key, wrong, .. }) = grader.kind.body().wrong_expression() {
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

/// An expression that can't be used.
#[derive(Debug, Clone, Copy)]
pub struct WrongExpression<'a> {
    /// The key of the grader's body that it stands under.
    pub key: &'static str,
    /// The expression.
    pub text: &'a str,
    /// What is wrong with it.
    pub wrong: &'a Wrong,
}

/// A part of a grader that can't be used, and where in its body it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongPart {
    /// The way to it; where it leads to nothing, that is what is missing.
    pub at: Vec<OwnedStep>,
    /// Why. The text goes on from the grader's name.
    pub why: String,
}

impl WrongPart {
    /// What is wrong at a place of the body.
    pub fn new(at: &[Step<'_>], why: impl Into<String>) -> Self {
        Self { at: OwnedStep::all(at), why: why.into() }
    }
}

/// What a grader of one kind was told: the part of it that differs from kind to kind.
trait Body {
    /// Why it can't be applied: it has nothing to check, or contradicts itself. The text goes on from its name.
    fn refusal(&self) -> Option<String>;

    /// Someone who watches one Trial go by; nothing for a kind that only runs once the Trial is over.
    fn judge(&self) -> Option<Box<dyn Judge>>;

    /// An expression in it that can't be used, to be told by its own line and column.
    fn wrong_expression(&self) -> Option<WrongExpression<'_>> {
        None
    }

    /// A part of it that can't be used, to be told at its own place. What is told so is no refusal.
    fn wrong_part(&self) -> Option<WrongPart> {
        None
    }

    /// Whether its judge looks at calls: joining them with their results is work that others are spared.
    fn sees_calls(&self) -> bool {
        false
    }
}

/// Watches the events of one Trial, keeps only what it needs of them, and gives a Grade at the end.
pub trait Judge: Send {
    /// Takes the next event.
    fn event(&mut self, _event: &Event) {}

    /// Takes the next call with its result. Calls come in the order in which they were announced.
    fn call(&mut self, _call: &Subject<'_>) {}

    /// Gives away what it kept for a model that judges.
    fn view(&mut self) -> Option<View> {
        None
    }

    /// Gives away what it kept for a judge of the case's own.
    fn account(&mut self) -> Option<account::Account> {
        None
    }

    /// Says how it was.
    fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Grade;
}

/// What is known of a Trial when it is over, beside its events.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The header, complete.
    pub header: &'a Header,
    /// Name of the Harness, as the plan has it.
    pub harness: &'a str,
    /// The model that the plan asks for; what a manifest adds by itself is none.
    pub model: Option<&'a str>,
    /// How the session ended.
    pub stop: &'a Stop,
    /// What it spent.
    pub usage: &'a UsageTotal,
    /// The final answer; empty where there was none.
    pub output: &'a str,
    /// What it took, as it stands in the result.
    pub metrics: &'a Metrics,
    /// From the first prompt to the answer; absent where nobody measured it.
    pub duration_ms: Option<u64>,
    /// The workspace as it is graded; absent where it is gone.
    pub workspace: Option<&'a Path>,
    /// What became of the workspace; absent where nobody measured it.
    pub change: Option<&'a Change>,
    /// The folder of the case file, from which the paths in it count.
    pub case_folder: &'a Path,
    /// The file of the trace, by its whole path; absent where it is in none.
    pub trace: Option<&'a Path>,
    /// The file that says how the workspace changed; absent where nobody measured it.
    pub patch: Option<&'a Path>,
    /// Runs grading commands in the workspace, or in an empty folder where there was none. Without a folder nothing can be
    /// run: the workspace is lost.
    pub shell: &'a Shell,
    /// Asks models.
    pub judges: &'a Judges,
}

impl Evidence<'_> {
    /// The grade of a grader that needs to see calls, where none can be seen.
    fn without_tracing(&self) -> Option<Grade> {
        (!self.header.capabilities.tracing)
            .then(|| Grade::ungraded("could not be judged, because the harness shows no tool calls"))
    }

    /// The grade of a grader that needs to see requests, if the harness has no way to ask for permission. What the agent
    /// asked for before it changed into a mode in which it does not ask is evidence: see [`Evidence::unasked_mode`].
    fn without_interaction(&self) -> Option<Grade> {
        (!self.header.capabilities.interaction && self.header.unattended_mode.is_none())
            .then(|| Grade::ungraded("could not be judged, because the harness has no way to ask for permission"))
    }

    /// The mode in which the agent worked without asking for every permission, in all of the session or in a part of it.
    /// A request that was made is known; that none was made says nothing.
    fn unasked_mode(&self) -> Option<&str> {
        self.header.unattended_mode.as_deref().filter(|_| !self.header.capabilities.interaction)
    }
}

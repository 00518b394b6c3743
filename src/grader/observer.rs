//! The trait of observers, which watch one trial for a grader, and the findings that they return.

use async_trait::async_trait;

use super::command::Run;
use super::{Evidence, Subject};
use crate::grade::judge_record::JudgeRecord;
use crate::grade::{ComparedWith, Grade, SkillUse, TestsSeen};
use crate::harness::Manifest;
use crate::trace::{Event, Header};

/// Observes the events of one trial, keeps the data it needs, and grades the trial at the end.
#[async_trait]
pub trait Observer: Send {
    /// Handles the data that are known before the first event: the header, and the manifest of the harness, if
    /// available.
    fn begin(&mut self, _header: &Header, _manifest: Option<&Manifest>) {}

    /// Handles the next event.
    fn event(&mut self, _event: &Event) {}

    /// Handles the next call with its result, if the kind needs calls. Calls arrive in the order of their
    /// announcement.
    fn call(&mut self, _call: &Subject<'_>) {}

    /// Returns the command that [`Observer::finish`] runs, if it runs one.
    fn run(&mut self) -> Option<&mut Run> {
        None
    }

    /// Grades the trial. Everything that the kind declared in its needs is available.
    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings;
}

/// The findings of a grader about a trial: usually one grade.
#[derive(Debug)]
pub struct Findings(pub Vec<Finding>);

/// A grade, with its details in the result.
#[derive(Debug)]
pub struct Finding {
    /// A separate name. Absent: the grader's name.
    pub name: Option<String>,
    pub grade: Grade,
    /// The answers of the judge model, if one was called.
    pub judge: Option<JudgeRecord>,
    /// The skills that the grader names, each with its use.
    pub skills: Vec<SkillUse>,
    /// The tests that the grader ran, if it runs tests.
    pub tests: Option<TestsSeen>,
    /// The snapshot, if the grader compared the trial with one.
    pub snapshot: Option<ComparedWith>,
}

impl From<Grade> for Finding {
    fn from(grade: Grade) -> Self {
        Self { name: None, grade, judge: None, skills: Vec::new(), tests: None, snapshot: None }
    }
}

impl From<Grade> for Findings {
    fn from(grade: Grade) -> Self {
        Self(vec![grade.into()])
    }
}

//! The trait of what observes one trial for a grader, and the findings that it ends with.

use async_trait::async_trait;

use super::{Evidence, Subject};
use crate::grade::Grade;
use crate::grade::judge_record::JudgeRecord;
use crate::trace::Event;

/// Observes the events of one trial, keeps what it needs of them, and grades the trial at the end.
#[async_trait]
pub(super) trait Observer: Send {
    /// Takes the next event.
    fn event(&mut self, _event: &Event) {}

    /// Takes the next call with its result, if its kind needs calls. Calls come in the order in which they were announced.
    fn call(&mut self, _call: &Subject<'_>) {}

    /// Grades the trial. What its kind needs is there.
    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings;
}

/// What a grader finds of a trial: usually one grade.
#[derive(Debug)]
pub(super) struct Findings(pub Vec<Finding>);

/// One grade, with what stands beside it in the result.
#[derive(Debug)]
pub(super) struct Finding {
    /// A name of its own; absent if it goes by the grader's name.
    pub name: Option<String>,
    /// The grade.
    pub grade: Grade,
    /// How the model answered, if one was asked.
    pub judge: Option<JudgeRecord>,
}

impl From<Grade> for Findings {
    fn from(grade: Grade) -> Self {
        Self(vec![Finding { name: None, grade, judge: None }])
    }
}

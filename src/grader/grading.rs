//! Judges one Trial: hands its events to every grader while they go by, and collects the Grades.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Evidence, Grader, Judge, Kind, Subject};
use crate::grade::{Grade, GradeRecord, Outcome};
use crate::trace::calls::{Call, Joiner};
use crate::trace::{Event, Header};

/// The judgement of one Trial. What it keeps does not grow with the session.
pub struct Grading {
    /// Absent where no grader looks at calls.
    joiner: Option<Joiner>,
    workspace: Option<String>,
    seats: Vec<Seat>,
}

/// A grader with the one who watches for it.
struct Seat {
    grader: Arc<Grader>,
    name: String,
    judge: Option<Box<dyn Judge>>,
}

impl Grading {
    /// Begins to judge. Of the header only the workspace's path has to be known by now.
    pub fn new(graders: &[Arc<Grader>], header: &Header) -> Self {
        let names = unique_names(graders.iter().map(Arc::as_ref));
        let seats = graders.iter().zip(names).map(|(grader, name)| {
            let judge = grader.kind.body().judge();
            Seat { grader: Arc::clone(grader), name, judge }
        });
        let sees_calls = graders.iter().any(|grader| grader.kind.body().sees_calls());
        Self { joiner: sees_calls.then(Joiner::default), workspace: header.cwd.clone(), seats: seats.collect() }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        for judge in self.seats.iter_mut().filter_map(|seat| seat.judge.as_mut()) {
            judge.event(event);
        }
        if let Some(joiner) = &mut self.joiner {
            let calls = joiner.event(event);
            self.calls(&calls);
        }
    }

    fn calls(&mut self, calls: &[Call]) {
        for call in calls {
            let subject = Subject::of(call, self.workspace.as_deref());
            for judge in self.seats.iter_mut().filter_map(|seat| seat.judge.as_mut()) {
                judge.call(&subject);
            }
        }
    }

    /// Ends: the Grades, in the order of the graders.
    pub async fn finish(mut self, evidence: &Evidence<'_>) -> Vec<GradeRecord> {
        if let Some(joiner) = &mut self.joiner {
            let rest = joiner.rest();
            self.calls(&rest);
        }
        let mut records = Vec::with_capacity(self.seats.len());
        for Seat { grader, name, judge } in self.seats {
            let grade = match (judge, &grader.kind) {
                (Some(judge), _) => judge.finish(evidence),
                (None, Kind::Command(command)) => command.grade(evidence).await,
                (None, other) => Grade::ungraded(format!("nobody judges a grader of kind {}", other.word())),
            };
            records.push(record(&grader, name, grade));
        }
        records
    }
}

/// A name for each grader that no other of them has: the second `files` is `files#2`.
pub fn unique_names<'a>(graders: impl IntoIterator<Item = &'a Grader>) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names = Vec::new();
    for grader in graders {
        let numbered = (2_u32..).map(|n| format!("{}#{n}", grader.name));
        let free = std::iter::once(grader.name.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = free.unwrap_or_else(|| grader.name.clone());
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

fn record(grader: &Grader, name: String, grade: Grade) -> GradeRecord {
    let (outcome, value, passed, reason, evidence) = match grade {
        Grade::Scored(score) => (Outcome::Scored, Some(score.value), Some(score.passed), score.reason, score.evidence),
        Grade::Ungraded { reason } => (Outcome::Ungraded, None, None, reason, Vec::new()),
    };
    GradeRecord {
        name,
        grader: grader.kind.word().to_owned(),
        outcome,
        value,
        passed,
        weight: grader.weight,
        gate: grader.gate,
        diagnostic: grader.diagnostic,
        reason,
        evidence,
    }
}

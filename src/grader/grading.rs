//! Judges one Trial: hands its events to every grader while they go by, and collects the Grades.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Evidence, Grader, Judge, Kind, Subject, rubric};
use crate::grade::{Grade, GradeRecord, Outcome, Score};
use crate::harness::reading;
use crate::trace::calls::{Call, Joiner};
use crate::trace::facts::Reading;
use crate::trace::{Event, Header};

/// The judgement of one Trial. It keeps what its graders keep: most of them an amount that does not grow with the session.
pub struct Grading {
    /// Absent where no grader looks at calls.
    joiner: Option<Joiner>,
    reading: Reading,
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
        Self { joiner: sees_calls.then(Joiner::default), reading: reading(header), seats: seats.collect() }
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
            let subject = Subject::of(call, &self.reading);
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
        let mut taken: HashSet<String> = self.seats.iter().map(|seat| seat.name.clone()).collect();
        for Seat { grader, name, judge } in self.seats {
            let grade = match (judge, &grader.kind) {
                (Some(mut judge), Kind::Script(script)) => {
                    let account = judge.account().unwrap_or_default();
                    // The first grade without a name of its own goes by the grader's.
                    let mut own = Some(name.clone());
                    for (given, grade) in script.grades(evidence, account).await {
                        let is_own = given.as_ref().is_none_or(|given| *given == name);
                        let free = if is_own { own.take() } else { None };
                        let name = free.unwrap_or_else(|| free_name(given.as_deref().unwrap_or(&name), &mut taken));
                        records.push(record(&grader, name, grade));
                    }
                    continue;
                }
                (Some(mut judge), Kind::Rubric(_) | Kind::Pairwise(_)) => {
                    let Some(view) = judge.view() else { continue };
                    let judged = match &grader.kind {
                        Kind::Pairwise(pairwise) => pairwise.ask(view, evidence).await,
                        Kind::Rubric(rubric) => rubric::ask(rubric, view, evidence).await,
                        _ => continue,
                    };
                    let judge = Some(judged.record);
                    records.push(GradeRecord { judge, ..record(&grader, name, judged.grade) });
                    continue;
                }
                (Some(judge), _) => judge.finish(evidence),
                (None, Kind::Command(command)) => command.grade(evidence).await,
                (None, Kind::Tests(tests)) => tests.grade(evidence).await,
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
        names.push(free_name(&grader.name, &mut taken));
    }
    names
}

/// A name, or one with a number where it is taken.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u32..).map(|n| format!("{name}#{n}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or_else(|| name.to_owned());
    taken.insert(name.clone());
    name
}

fn record(grader: &Grader, name: String, grade: Grade) -> GradeRecord {
    let score = |score: Score| {
        (Outcome::Scored, Some(score.value), Some(score.passed), score.reason, score.evidence, score.broken)
    };
    let (outcome, value, passed, reason, evidence, broken) = match grade {
        Grade::Scored(it) => score(it),
        Grade::Ungraded { reason } => (Outcome::Ungraded, None, None, reason, Vec::new(), Vec::new()),
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
        broken,
        judge: None,
    }
}

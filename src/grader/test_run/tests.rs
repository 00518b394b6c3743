//! Tests of the parsers and of the grades, on output of real runners.

use super::*;

macro_rules! runner {
    ($name:literal) => {
        // Relative to the files that use the macro.
        include_str!(concat!("../../../../tests/traces/graders/runners/", $name))
    };
}

mod lists;
mod no_pass;
mod output;
mod settings;
mod shares;

fn outcome(stdout: &str, code: i32) -> CommandOutcome {
    let exit = Some(Exit { code: Some(code), signal: None });
    CommandOutcome { exit, memory_limit: None, stdout: stdout.into(), stderr: Vec::new() }
}

fn report(format: &str, stdout: &str) -> Report {
    let tests: Tests = serde_yaml::from_str(&format!("{{run: x, format: {format}}}")).unwrap();
    tests.read(&outcome(stdout, 1)).unwrap()
}

fn counts(report: &Report) -> (u64, u64, u64) {
    let counts = report.counts();
    (counts.passed, counts.failed, counts.skipped)
}

fn grade(grader: &str, stdout: &str, code: i32) -> Grade {
    let tests: Tests = serde_yaml::from_str(grader).unwrap();
    let outcome = outcome(stdout, code);
    match tests.read(&outcome) {
        Ok(report) => tests.grade_report("`it`", &report, &outcome),
        Err(why) => Grade::fail(format!("`it` {why}")),
    }
}

/// Grades a run whose end is unknown.
fn grade_lost(grader: &str, stdout: &str) -> Grade {
    let tests: Tests = serde_yaml::from_str(grader).unwrap();
    let outcome = CommandOutcome { exit: Some(LOST), ..outcome(stdout, 0) };
    tests.grade_run("`it`", Path::new("/nowhere"), Path::new("/nowhere"), None, None, &outcome).0
}

#[test]
fn a_run_whose_end_is_unknown_fails_only_by_a_failed_test() {
    let (passed, failed) = ("1..2\nok 1 - a\nok 2 - b\n", "1..2\nok 1 - a\nnot ok 2 - b\n");
    let listed = "{run: x, format: tap, pass-to-pass: [a]}";
    for (grader, stdout) in [
        ("{run: x, format: tap}", passed),
        ("{run: x, format: tap}", "nothing"),
        ("{run: x, format: tap, min: 0.5}", failed),
        (listed, passed),
        (listed, failed),
    ] {
        let grade = grade_lost(grader, stdout);
        assert!(matches!(&grade, Grade::Ungraded { reason } if reason.contains("supervisor was lost")), "{grade:?}");
    }
    for grader in ["{run: x, format: tap}", "{run: x, format: tap, fail-to-pass: [b]}"] {
        assert!(!scored(grade_lost(grader, failed)).0, "{grader}");
    }
}

fn scored(grade: Grade) -> (bool, f64, String) {
    match grade {
        Grade::Scored(score) => (score.passed, (score.value.get() * 1000.0).round() / 1000.0, score.reason),
        Grade::Ungraded { reason } => panic!("ungraded: {reason}"),
    }
}

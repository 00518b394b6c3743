//! A run with everything that a report has to show, and with words that try to break out of it.

use std::fs;
use std::path::Path;

use evals::internal::case::GraderPlace;
use evals::internal::report::Report;
use evals::internal::result::{StopRecord, TrialResult, Warning};
use evals::internal::verdict::{PassTrials, Verdict};
use evals::trace::{ErrorCategory, StopReason};

use super::{errored, grade, record, result, took};

/// Ends tags, tables, code, details and lines; commands a service; mentions people; turns text round; cannot be in XML.
pub const WORDS: &str = "</pre></details><script>alert(1)</script> | a | `b` ``` @everyone #1 https://evil.example/x www.evil.example\n\
    ::error file=x::owned\r\n\u{1}\u{1b}[31mred\u{1b}[0m\u{fffe}\u{202e}dlrow ]]> </system-out> &amp; [[ATTACHMENT|/etc/passwd]] %0A, :";
/// An id that a case may have.
pub const CASE: &str = "odd/a|b `<b>` @all";

pub const COLUMNS: [(&str, &str); 3] = [("claude", "opus-4-8"), ("claude", "sonnet,4:8"), ("gemini", "default")];
const CASES: [&str; 9] =
    ["passes", "fails", "flaky-and-passes", "flaky-and-fails", "ungraded", "errored", "errored-too", CASE, "skipped"];

/// Three columns; two trials of each cell; what is last in the plan was not run.
pub fn rich(folder: &Path) -> Report {
    let mut planned = Vec::new();
    for case in CASES.into_iter().chain(["not-run"]) {
        for (harness, arm) in COLUMNS {
            planned.extend([(case, harness, arm, 1), (case, harness, arm, 2)]);
        }
    }
    let mut run = record(&planned, "all");
    for case in &mut run.cases {
        if case.id == "flaky-and-passes" {
            case.pass = PassTrials::Any;
        }
        case.path = Path::new("/repository/suites/odd, and: long")
            .join(format!("{}.yaml", case.path.file_stem().unwrap().to_string_lossy()));
        let place = |name: &str, line| GraderPlace { name: name.into(), file: case.path.clone(), line };
        case.graders = vec![place("edits", 7), place("tests", 9), place("answer", 12)];
    }
    let mut results = Vec::new();
    for (case, harness, arm, trial) in planned.iter().filter(|(case, ..)| *case != "not-run") {
        let one = one(case, harness, arm, *trial);
        results.push(one);
    }
    let report = Report::new(&run, results, 6, folder);
    for result in report.whole().unwrap().all_results().iter().filter(|result| result.skipped.is_none()) {
        store(&report, result);
    }
    Report { root: Some("/repository".into()), ..report }
}

fn one(case: &str, harness: &str, arm: &str, trial: u32) -> TrialResult {
    let make =
        |verdict| took(result(case, harness, arm, trial, verdict), 1_500 * u64::from(trial), Some(0.02), Some(1_200));
    let passed = || {
        let mut passed = make(Verdict::Pass);
        passed.grades = vec![grade("tests", "command", Some(true), "exit 0", &[])];
        passed
    };
    let failed = |reason: &str| {
        let mut failed = make(Verdict::Fail);
        let mut gate = grade("tests", "command", Some(false), reason, &[8]);
        gate.gate = true;
        let mut aside = grade("style", "files", Some(false), "no newline at the end", &[]);
        aside.diagnostic = true;
        failed.grades = vec![aside, grade("cost", "budget", None, "no cost was told", &[]), gate];
        failed
    };
    match case {
        "passes" if trial == 2 && harness == "gemini" => TrialResult { attempt: 2, ..passed() },
        "passes" => passed(),
        "fails" if harness == "gemini" => {
            let mut limited = make(Verdict::Fail);
            limited.stop = Some(StopRecord {
                reason: StopReason::TimedOut,
                detail: Some("time".into()),
                exit: None,
                stderr_tail: Some(WORDS.into()),
            });
            limited.warnings = vec![Warning::Text { said: "time: 2m0.1s, at most 2m".into() }];
            limited
        }
        "fails" => failed("`cargo test` exited 101, 0 was expected"),
        "flaky-and-passes" | "flaky-and-fails" if trial == 1 => passed(),
        "flaky-and-passes" | "flaky-and-fails" => failed("`cargo test` exited 101, 0 was expected"),
        "ungraded" => {
            let mut open = make(Verdict::Ungraded);
            open.grades = vec![grade("answer", "output", None, "the harness shows no output", &[])];
            open
        }
        "errored" | "errored-too" => errored(
            result(case, harness, arm, trial, Verdict::Errored),
            ErrorCategory::RateLimit,
            "the service answered 429",
        ),
        "skipped" => {
            let mut skipped = result(case, harness, arm, trial, Verdict::Skipped);
            skipped.skipped = Some("the case requires interaction, which the harness has not".into());
            skipped
        }
        _ => failed(&format!("{WORDS}{}", " and so on".repeat(2_000))),
    }
}

/// What the trial left: its trace, with an answer, and an earlier attempt.
fn store(report: &Report, result: &TrialResult) {
    let folder = report.trial_folder(&result.id()).unwrap();
    fs::create_dir_all(&folder).unwrap();
    let answer = if result.case == CASE { WORDS.to_owned() } else { "All done.".to_owned() };
    let header = serde_json::json!({"type": "trace", "version": 1, "adapter": "acp", "capabilities": {"tracing": true, "interaction": true}, "agent": {"name": result.harness, "version": "2.1"}});
    let stop = serde_json::json!({"seq": 0, "at_ms": 0, "type": "stop", "reason": "end_turn", "output": answer});
    fs::write(folder.join("trace.jsonl"), format!("{header}\n{stop}\n")).unwrap();
    if result.attempt > 1 {
        let earlier = super::result(&result.case, &result.harness, &result.arm, result.trial, Verdict::Errored);
        let earlier = errored(earlier, ErrorCategory::Provider, "the service answered 500");
        let place = folder.join("attempts/1");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("result.json"), serde_json::to_vec(&earlier).unwrap()).unwrap();
    }
}

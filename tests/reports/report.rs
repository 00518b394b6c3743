//! What a user sees of results: figures, exit codes, the table, a trace, the formats for programs, the displays.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod formats;
mod hostile;

use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use evals::internal::case::CaseKind;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::internal::ids::TrialId;
use evals::internal::ids::TrialRecord;
use evals::internal::report::format::{Format, write};
use evals::internal::report::list::{self, CaseRow, HarnessRow, ListForm, RunRow};
use evals::internal::report::progress::{Live, LiveConditions, Plain, Size, Watch};
use evals::internal::report::text::{Look, width_of};
use evals::internal::report::{Report, Summary, exit_code, show, trials_named};
use evals::internal::result::{ErrorRecord, Metrics, StopRecord, TrialResult, Warning};
use evals::internal::run::events::RunEvent;
use evals::internal::run::{CaseRecord, HarnessRecord, RunRecord};
use evals::internal::values::Fraction;
use evals::internal::verdict::{PassTrials, Verdict};
use evals::trace::jsonl::Reader;
use evals::trace::{ErrorCategory, StopReason};
use evals::{GradeRecord, Outcome};
use proptest::prelude::*;

fn look(width: usize) -> Look {
    Look { width, colour: false, unicode: true }
}

fn pass_rule(text: &str) -> PassTrials {
    match text {
        "all" => PassTrials::All,
        "any" => PassTrials::Any,
        share => PassTrials::Share(share.parse().unwrap()),
    }
}

fn record(trials: &[(&str, &str, &str, u32)], pass: &str) -> RunRecord {
    let mut cases: Vec<CaseRecord> = Vec::new();
    let mut harnesses: Vec<HarnessRecord> = Vec::new();
    for (case, harness, _, _) in trials {
        if cases.iter().all(|known| known.id != *case) {
            cases.push(CaseRecord {
                judged_by: std::collections::BTreeMap::new(),
                resolved: None,
                played: None,
                evidence: None,
                mixed: false,
                id: (*case).to_owned(),
                path: format!("cases/{case}.yaml").into(),
                digest: "d".into(),
                workspace: None,
                tags: vec![],
                pass: pass_rule(pass),
                threshold: Fraction::ONE,
                limits: serde_json::json!({}),
                interaction: "auto-approve".into(),
                kind: CaseKind::Capability,
                graders: vec![],
                critical: false,
                quarantine: None,
            });
        }
        if harnesses.iter().all(|known| known.name != *harness) {
            harnesses.push(HarnessRecord {
                name: (*harness).to_owned(),
                origin: "built in".into(),
                digest: "d".into(),
                manifest: Manifest::bare(Adapter::Acp),
                mixed: false,
            });
        }
    }
    let trial = |(case, harness, arm, trial): &(&str, &str, &str, u32)| TrialRecord {
        case: (*case).to_owned(),
        harness: (*harness).to_owned(),
        model: (*arm != "default").then(|| (*arm).to_owned()),
        arm: (*arm).to_owned(),
        trial: *trial,
        skip: None,
        failed_in: None,
        sandbox: evals::internal::sandbox::Kind::None,
    };
    RunRecord {
        run: "20261121-201500-ab12".into(),
        started: "2026-11-21T20:15:00Z".into(),
        evals: "0.1.0".into(),
        argv: vec!["run".into()],
        label: Some("nightly".into()),
        cases,
        harnesses,
        trials: trials.iter().map(trial).collect(),
        ..RunRecord::blank()
    }
}

fn result(case: &str, harness: &str, arm: &str, trial: u32, verdict: Verdict) -> TrialResult {
    let score = match verdict {
        Verdict::Pass => Some(Fraction::ONE),
        Verdict::Fail => Some(Fraction::ZERO),
        _ => None,
    };
    let planned = TrialRecord {
        case: case.into(),
        harness: harness.into(),
        model: (arm != "default").then(|| arm.to_owned()),
        arm: arm.into(),
        trial,
        skip: None,
        failed_in: None,
        sandbox: evals::internal::sandbox::Kind::None,
    };
    TrialResult { score, attempt: 1, ..TrialResult::blank(&planned, verdict) }
}

fn took(mut result: TrialResult, ms: u64, cost: Option<f64>, tokens: Option<u64>) -> TrialResult {
    result.metrics.measured_ms = Some(ms);
    result.metrics.cost_usd = cost;
    result.metrics.total_tokens = tokens;
    result
}

fn errored(mut result: TrialResult, category: ErrorCategory, message: &str) -> TrialResult {
    result.error = Some(ErrorRecord { category, message: message.into() });
    result
}

fn grade(name: &str, grader: &str, passed: Option<bool>, reason: &str, evidence: &[u64]) -> GradeRecord {
    GradeRecord {
        name: name.into(),
        grader: grader.into(),
        outcome: if passed.is_some() { Outcome::Scored } else { Outcome::Ungraded },
        value: passed.map(|passed| if passed { Fraction::ONE } else { Fraction::ZERO }),
        bounds: None,
        passed,
        weight: 1.0,
        gate: false,
        diagnostic: false,
        reason: reason.into(),
        evidence: evidence.to_vec(),
        broken: vec![],
        skills: Vec::new(),
        judge: None,
        tests: None,
        snapshot: None,
    }
}

const TRACE: &str = r##"{"type":"trace","version":1,"case":"fixing/off-by-one","harness":"claude","adapter":"claude-code-stream","trial":1,"cwd":"/w","capabilities":{"tracing":true,"interaction":true},"model":{"requested":"opus","effective":"claude-opus-4-8"},"agent":{"name":"Claude Code","version":"2.1.330"},"started":"2026-11-21T20:15:00Z"}
{"seq":0,"at_ms":0,"type":"message","role":"user","text":"The last element is skipped. Fix it and run the tests."}
{"seq":1,"at_ms":900,"type":"thought","text":"I should look at the loop first, since an off-by-one error is most often in the bound of a loop and not elsewhere."}
{"seq":2,"at_ms":1000,"type":"plan","entries":[{"text":"read the code","status":"completed"},{"text":"fix it","status":"in_progress"},{"text":"run the tests","status":"pending"}]}
{"seq":3,"at_ms":1500,"type":"tool_call","call":"c1","step":0,"kind":"edit","name":"Edit","input":{"file_path":"/w/src/sum.rs","old_string":"a","new_string":"b"},"locations":[{"path":"/w/src/sum.rs","line":3}]}
{"seq":4,"at_ms":1600,"type":"permission_request","call":"c1","request":"p1","options":[{"option":"a","kind":"allow_once","label":"Yes"},{"option":"r","kind":"reject_once","label":"No"}]}
{"seq":5,"at_ms":1700,"type":"permission_response","call":"c1","request":"p1","outcome":"allowed","option":"a","policy":"scripted","rule":"1"}
{"seq":6,"at_ms":2000,"type":"tool_result","call":"c1","status":"ok","diffs":[{"path":"/w/src/sum.rs","old":"fn sum(v: &[i32]) -> i32 {\n    let mut s = 0;\n    for i in 0..v.len() - 1 {\n        s += v[i];\n    }\n    s\n}\n","new":"fn sum(v: &[i32]) -> i32 {\n    let mut s = 0;\n    for i in 0..v.len() {\n        s += v[i];\n    }\n    s\n}\n"}]}
{"seq":7,"at_ms":2500,"type":"tool_call","call":"c2","step":1,"kind":"think","name":"Task","input":{"prompt":"run the tests"}}
{"seq":8,"at_ms":2600,"type":"tool_call","call":"c3","step":0,"kind":"execute","name":"Bash","input":{"command":"cargo test"},"parent":"c2"}
{"seq":9,"at_ms":61000,"type":"tool_result","call":"c3","status":"error","exit_code":101,"output":"\u001b[31mtest sum ... FAILED\u001b[0m\u001b]0;owned\u0007\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n","parent":"c2"}
{"seq":10,"at_ms":62000,"type":"tool_result","call":"c2","status":"ok","output":"one test failed"}
{"seq":11,"at_ms":62100,"type":"usage","scope":"session","input_tokens":1200,"output_tokens":340,"cost_usd":0.0213,"model":"claude-opus-4-8"}
{"seq":12,"at_ms":62200,"type":"notice","code":"late-update","text":"an update came after the answer","line":88}
{"seq":13,"at_ms":62300,"type":"message","role":"agent","text":"The bound of the loop was wrong; it is `v.len()` now."}
{"seq":14,"at_ms":62400,"type":"stop","reason":"timed_out","detail":"time","output":"The bound","exit":{"code":null,"signal":15},"host":true}
"##;

/// One column, three cases: a pass, a fail with evidence, errors.
fn one_column(folder: &Path) -> Report {
    let run = record(
        &[
            ("fixing/off-by-one", "claude", "default", 1),
            ("fixing/off-by-one", "claude", "default", 2),
            ("reading/find-it", "claude", "default", 1),
            ("writing/a-case-with-a-rather-long-name", "claude", "default", 1),
            ("writing/another", "claude", "default", 1),
        ],
        "all",
    );
    let mut failed =
        took(result("fixing/off-by-one", "claude", "default", 1, Verdict::Fail), 62_400, Some(0.0213), Some(1540));
    failed.stop = Some(StopRecord {
        reason: StopReason::TimedOut,
        detail: Some("time".into()),
        exit: None,
        stderr_tail: Some("warning: slow network\nkilled\n".into()),
    });
    failed.warnings.push(Warning::Text { said: "harness `claude` does not ask for permission".into() });
    let mut gate = grade("tests", "command", Some(false), "`cargo test` exited 101, 0 was expected", &[8, 9]);
    gate.gate = true;
    failed.grades = vec![
        grade("edits", "tool-calls", Some(true), "1 of 1", &[3]),
        gate,
        grade("cost", "budget", None, "the agent reported no cost", &[]),
    ];
    let path = folder.join("trials/fixing/off-by-one/claude/default/1");
    std::fs::create_dir_all(path.join("workspace")).unwrap();
    std::fs::write(path.join("trace.jsonl"), TRACE).unwrap();
    let passed = took(result("fixing/off-by-one", "claude", "default", 2, Verdict::Pass), 30_000, None, Some(900));
    let found = took(result("reading/find-it", "claude", "default", 1, Verdict::Pass), 850, Some(0.5), Some(12_345));
    let missing = |case: &str| {
        let result = result(case, "claude", "default", 1, Verdict::Errored);
        errored(result, ErrorCategory::NotInstalled, "`claude` was not found; npm install -g claude")
    };
    let results =
        vec![failed, passed, found, missing("writing/a-case-with-a-rather-long-name"), missing("writing/another")];
    Report::new(&run, results, 0, folder)
}

/// Three columns, with skipped trials and some that were not run.
fn three_columns() -> Report {
    let columns = [("claude", "opus-4-8"), ("claude", "sonnet-4-8"), ("gemini", "default")];
    let mut planned = Vec::new();
    for case in ["fixing/off-by-one", "reading/find-it"] {
        for (harness, arm) in columns {
            planned.extend([(case, harness, arm, 1), (case, harness, arm, 2)]);
        }
    }
    let run = record(&planned, "all");
    let mut results = Vec::new();
    for (n, (case, harness, arm, trial)) in planned.iter().enumerate().take(11) {
        let verdict = match n % 6 {
            5 => Verdict::Fail,
            4 => Verdict::Ungraded,
            _ => Verdict::Pass,
        };
        results.push(took(result(case, harness, arm, *trial, verdict), 1000 * n as u64, Some(0.01), Some(1000)));
    }
    for result in &mut results[6..8] {
        result.verdict = Verdict::Skipped;
        result.score = None;
        result.metrics = Metrics::default();
        result.skipped = Some("the case requires interaction, which harness `claude` does not have".into());
    }
    results[2] = errored(
        result("fixing/off-by-one", "claude", "sonnet-4-8", 1, Verdict::Errored),
        ErrorCategory::RateLimit,
        "the service answered 429",
    );
    Report::new(&run, results, 1, Path::new(".evals/runs/20261121-201500-ab12"))
}

fn rendered(format: Format, report: &Report, look: &Look) -> String {
    let mut out = Vec::new();
    write(format, report, look, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_table_fits_terminals_of_any_width() {
    let folder = tempfile::tempdir().unwrap();
    let report = one_column(folder.path());
    for width in [40, 60, 80, 100, 160, 200] {
        let text = rendered(Format::Table, &report, &look(width)).replace(&*folder.path().to_string_lossy(), "RUN");
        insta::assert_snapshot!(format!("one_column_{width}"), text);
        let three = rendered(Format::Table, &three_columns(), &look(width));
        // What is to be copied, a command or a path, stays on its line.
        let copied = ["  show ", "  again ", "  trace ", "  workspace ", "run folder"];
        for line in text.lines().chain(three.lines()).filter(|line| !copied.iter().any(|it| line.starts_with(it))) {
            assert!(width_of(line) <= width, "{width}: {line}");
        }
        insta::assert_snapshot!(format!("three_columns_{width}"), three);
    }
}

#[test]
fn plain_output_has_no_sign_beyond_ascii_and_colours_come_only_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let report = one_column(folder.path());
    let plain = rendered(Format::Table, &report, &Look::PLAIN);
    assert!(plain.is_ascii(), "{plain}");
    assert!(!plain.contains('\x1b'));
    assert!(plain.contains(">=$0.52"), "{plain}");
    let coloured = rendered(Format::Table, &report, &Look { colour: true, ..look(100) });
    assert!(coloured.contains("\x1b["));
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), rendered(Format::Table, &report, &look(100)));
}

#[test]
fn many_failures_are_counted_and_one_error_is_told_once() {
    let names: Vec<String> = (0..40).map(|n| format!("case-{n}")).collect();
    let planned: Vec<_> = names.iter().map(|name| (&**name, "demo", "default", 1)).collect();
    let fail = |name: &String| result(name, "demo", "default", 1, Verdict::Fail);
    let report = Report::new(&record(&planned, "all"), names.iter().map(fail).collect(), 0, Path::new("r"));
    let text = rendered(Format::Table, &report, &look(80));
    // 20 with their reasons, and all in the list at the end.
    assert_eq!(text.matches("FAIL  ").count(), 20 + 40);
    assert!(text.contains("and 20 more; "), "{text}");
    assert!(text.find("FAIL      case-39").unwrap() > text.find("and 20 more; ").unwrap(), "{text}");
    let broken = |name: &String| {
        let result = result(name, "demo", "default", 1, Verdict::Errored);
        errored(result, ErrorCategory::Auth, "the key was refused")
    };
    let report = Report::new(&record(&planned, "all"), names.iter().map(broken).collect(), 0, Path::new("r"));
    let text = rendered(Format::Table, &report, &look(80));
    assert_eq!(text.matches("the key was refused").count(), 1);
    assert!(text.contains("and 34 more"), "{text}");
}

#[test]
fn figures_are_means_over_cases_and_unknown_is_never_zero() {
    let run = record(&[("a", "h", "default", 1), ("a", "h", "default", 2), ("b", "h", "default", 1)], "all");
    let results = vec![
        took(result("a", "h", "default", 1, Verdict::Pass), 10, None, None),
        took(result("a", "h", "default", 2, Verdict::Fail), 20, None, Some(7)),
        errored(result("b", "h", "default", 1, Verdict::Errored), ErrorCategory::Crashed, "gone"),
    ];
    let report = Report::new(&run, results, 0, Path::new("r"));
    let column = &report.columns[0];
    // The case is the unit: `a` scores 0.5, `b` nothing, or 0 with errors as failures.
    assert_eq!(column.score, Some(0.5));
    assert_eq!(column.score_with_errors, Some(0.25));
    assert_eq!(column.completion, Some(2.0 / 3.0));
    let figures = serde_json::to_value(column.figures).unwrap();
    assert_eq!(
        figures,
        serde_json::json!({"median_duration_ms": 15, "cost_unknown": 3, "tokens": 7, "tokens_unknown": 2})
    );
    assert!(report.cells[0].flaky());
}

#[test]
fn the_exit_code_follows_the_cells() {
    use Verdict::{Errored, Fail, Pass, Skipped, Ungraded};
    let code = |pass: &str, verdicts: &[&[Verdict]], not_run: usize| {
        let names: Vec<String> = (0..verdicts.len()).map(|n| format!("c{n}")).collect();
        let mut planned = Vec::new();
        let mut results = Vec::new();
        for (name, verdicts) in names.iter().zip(verdicts) {
            for (n, verdict) in (1u32..).zip(*verdicts) {
                planned.push((&**name, "h", "default", n));
                results.push(result(name, "h", "default", n, *verdict));
            }
        }
        planned.extend((0..not_run as u32).map(|n| ("c0", "h", "default", 100 + n)));
        exit_code(&Report::new(&record(&planned, pass), results, not_run, Path::new("r")))
    };
    assert_eq!(code("all", &[&[Pass], &[Pass, Pass]], 0), 0, "everything passed");
    assert_eq!(code("all", &[&[Pass], &[Fail]], 0), 1, "one case failed");
    assert_eq!(code("all", &[&[Errored], &[Ungraded], &[Fail]], 0), 1, "a fail beats everything");
    assert_eq!(code("all", &[&[Pass], &[Errored]], 0), 3, "errored");
    assert_eq!(code("all", &[&[Pass], &[Ungraded]], 0), 3, "ungraded");
    assert_eq!(code("all", &[&[Pass], &[Skipped]], 0), 0, "skipped changes nothing");
    assert_eq!(code("all", &[&[Skipped], &[Skipped]], 0), 3, "everything skipped");
    assert_eq!(code("all", &[], 0), 3, "nothing at all");
    assert_eq!(code("all", &[&[Pass]], 1), 3, "not run, nothing failed");
    assert_eq!(code("all", &[&[Fail]], 1), 1, "not run, and something failed");
    assert_eq!(code("any", &[&[Fail, Pass]], 0), 0, "one pass is enough");
    assert_eq!(code("any", &[&[Fail, Errored]], 0), 3, "the errored trial could have passed");
    assert_eq!(code("any", &[&[Fail, Pass]], 1), 3, "passed already, and yet not run whole");
    assert_eq!(code("0.5", &[&[Fail, Pass]], 0), 0, "a share");
    assert_eq!(code("0.8", &[&[Fail, Pass]], 0), 1, "a share that was missed");
}

#[test]
fn json_has_what_the_contract_names() {
    let report = three_columns();
    let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json, &report, &look(80))).unwrap();
    assert_eq!(json["run"], "20261121-201500-ab12");
    assert_eq!(
        json["summary"],
        serde_json::json!({"pass": 5, "fail": 1, "ungraded": 2, "errored": 1, "skipped": 2, "not_run": 1})
    );
    insta::assert_json_snapshot!("json_without_results", {
        let mut json = json.clone();
        json.as_object_mut().unwrap().remove("results");
        json
    });
    let lines = rendered(Format::Jsonl, &report, &look(80));
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json["results"], serde_json::Value::Array(lines));
    assert_eq!(json["results"][0], serde_json::to_value(&report.whole().unwrap().all_results()[0]).unwrap());
}

fn shown(trace: &str, full: bool, look: &Look) -> String {
    let mut out = Vec::new();
    show::trace(&mut Reader::new(BufReader::new(trace.as_bytes())).unwrap(), full, look, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_trace_can_be_read_in_a_terminal() {
    insta::assert_snapshot!("show_80", shown(TRACE, false, &look(80)));
    insta::assert_snapshot!("show_60_full", shown(TRACE, true, &look(60)));
    let coloured = shown(TRACE, false, &Look { colour: true, ..look(80) });
    assert!(coloured.contains("\x1b[31m-    for i in 0..v.len() - 1 {\x1b[0m"), "{coloured:?}");
    assert!(coloured.contains("\x1b[32m+    for i in 0..v.len() {\x1b[0m"));
    assert!(!coloured.contains("\x1b]"));
}

#[test]
fn a_trace_that_was_cut_short_is_shown_as_far_as_it_goes() {
    let half: String = TRACE.lines().take(5).map(|line| format!("{line}\n")).collect();
    let text = shown(&half, false, &Look::PLAIN);
    assert!(text.contains("> edit src/sum.rs") && text.contains("without a stop"), "{text}");
    let mut out = Vec::new();
    let torn = format!("{half}{{\"seq\":4,");
    let error = show::trace(&mut Reader::new(torn.as_bytes()).unwrap(), false, &Look::PLAIN, &mut out).unwrap_err();
    assert!(error.to_string().contains("line 6"), "{error}");
    assert!(String::from_utf8(out).unwrap().contains("> edit src/sum.rs"));
}

#[test]
fn the_verdict_of_a_trial_comes_with_every_grade() {
    let folder = tempfile::tempdir().unwrap();
    let report = one_column(folder.path());
    let mut out = Vec::new();
    show::result(&report.run, Path::new("nowhere"), &report.whole().unwrap().all_results()[0], &look(80), &mut out)
        .unwrap();
    insta::assert_snapshot!("show_result", String::from_utf8(out).unwrap());
}

#[test]
fn commands_run_the_same_again() {
    let mut run = record(&[("dir/a b[1]", "mine", "x=y", 3)], "all");
    run.harnesses[0].origin = "other/mine.yaml".into();
    run.options.interaction = Some("auto-reject".into());
    run.options.limits = vec!["time=2m".into()];
    let failed = result("dir/a b[1]", "mine", "x=y", 3, Verdict::Fail);
    assert_eq!(
        evals::internal::report::commands::again(&run, &failed),
        "evals run 'cases/dir/a b[1].yaml' --harness other/mine.yaml --model mine=x=y --case 'dir/a b[[]1[]]' \
         --trials 1 --interaction auto-reject --limit time=2m"
    );
    let show = |folder: &str| evals::internal::report::commands::show(&run, Path::new(folder), &failed);
    assert_eq!(show(".evals/runs/20261121-201500-ab12"), "evals show 20261121-201500-ab12 'dir/a b[1]/mine/x=y/3'");
    assert_eq!(show("/else where/r"), "evals show '/else where/r' 'dir/a b[1]/mine/x=y/3'");
    // A name that begins with `-` is no option.
    let run = record(&[("-dash", "demo", "default", 1)], "all");
    let failed = result("-dash", "demo", "default", 1, Verdict::Fail);
    assert_eq!(
        evals::internal::report::commands::again(&run, &failed),
        "evals run cases/-dash.yaml --harness demo --case=-dash --trials 1"
    );
    let show = |folder: &str| evals::internal::report::commands::show(&run, Path::new(folder), &failed);
    assert_eq!(show(".evals/runs/20261121-201500-ab12"), "evals show 20261121-201500-ab12 -- -dash/demo/default/1");
    assert_eq!(show("-runs/r"), "evals show ./-runs/r -- -dash/demo/default/1");
}

#[test]
fn a_trial_is_named_by_its_place() {
    let run = record(&[("a", "h", "default", 1), ("a", "h", "default", 2), ("a/b", "h", "default", 1)], "all");
    let named = |name: &str| trials_named(&run, name).len();
    assert_eq!([named("a"), named("a/h/default/2"), named("a/b"), named("a/h"), named("x")], [2, 1, 1, 2, 0]);
}

#[test]
fn lists_are_tables_or_json() {
    let rows = [
        CaseRow {
            id: "fixing/off-by-one".into(),
            path: "cases/fixing/off-by-one.yaml".into(),
            description: Some("The last element is skipped".into()),
            tags: vec!["rust".into()],
            trials: 3,
            ..CaseRow::default()
        },
        CaseRow { id: "b".into(), path: "cases/b.yaml".into(), trials: 1, ..CaseRow::default() },
    ];
    let mut out = Vec::new();
    list::cases(&rows, ListForm::Table(look(80)), &mut out).unwrap();
    let harness = HarnessRow { name: "demo".into(), adapter: "acp".into(), ..HarnessRow::default() };
    list::harnesses(&[harness], ListForm::Table(look(80)), &mut out).unwrap();
    let run =
        RunRow { run: "r1".into(), summary: Some(Summary { pass: 2, ..Summary::default() }), ..RunRow::default() };
    list::runs(&[run], ListForm::Table(look(80)), &mut out).unwrap();
    list::named("grader", &[], ListForm::Table(look(80)), &mut out).unwrap();
    insta::assert_snapshot!("lists", String::from_utf8(out).unwrap());
    let mut out = Vec::new();
    list::cases(&rows, ListForm::Json, &mut out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((json[0]["id"].as_str(), json[1].get("description")), (Some("fixing/off-by-one"), None));
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn events() -> Vec<RunEvent> {
    let id = |trial| TrialId { case: "a".into(), harness: "demo".into(), arm: "default".into(), trial };
    let started = |trial| RunEvent::Started { trial: id(trial), attempt: 1 };
    let passed = took(result("a", "demo", "default", 1, Verdict::Pass), 1200, Some(0.25), None);
    let mut failed = took(result("a", "demo", "default", 2, Verdict::Fail), 800, None, None);
    failed.grades = vec![grade("tests", "command", Some(false), "exit 1\x1b[2J\nmore", &[])];
    vec![
        RunEvent::Planned { trials: 3, skipped: 1 },
        started(1),
        started(2),
        RunEvent::Retry { trial: id(2), attempt: 1, why: "rate_limit: 429".into() },
        RunEvent::Finished { result: Box::new(passed) },
        RunEvent::Finished { result: Box::new(failed) },
        RunEvent::NotRun { count: 1, why: "the first failure ends the run".into() },
    ]
}

#[test]
fn where_nothing_moves_each_trial_is_a_line() {
    let out = Shared::default();
    let mut plain = Plain::new(out.clone(), Look::PLAIN);
    events().iter().for_each(|event| plain.see(event));
    plain.end();
    insta::assert_snapshot!("plain_progress", out.text());
}

#[test]
fn the_live_display_shows_what_runs_and_keeps_only_what_did_not_pass() {
    let out = Shared::default();
    let mut live =
        Live::new(out.clone(), look(80), Box::new(|| Some(Size { columns: 80, rows: 24 })), Box::new(|| None));
    events().iter().for_each(|event| live.see(event));
    live.end();
    let written = out.text();
    assert!(written.contains("s  a  demo") && written.contains("s  a #2  demo"), "{written}");
    assert!(written.contains("1/3  1 passed, 1 skipped  $0.25"), "{written}");
    assert!(written.contains("2/3  1 passed, 1 failed, 1 skipped  ≥$0.25"), "{written}");
    assert!(written.contains("FAIL      a #2  demo  800ms"), "{written}");
    assert!(!written.contains("PASS"), "{written}");
    assert!(!written.contains("\x1b[2J"), "{written}");
}

#[test]
fn a_display_moves_only_on_a_terminal_of_a_person() {
    let person = LiveConditions { is_terminal: true, in_ci: false, is_disabled: false };
    assert_eq!(person.may_move(), std::env::var_os("TERM").is_none_or(|name| name != "dumb"));
    assert!(!LiveConditions { is_terminal: false, ..person }.may_move());
    assert!(!LiveConditions { in_ci: true, ..person }.may_move());
    assert!(!LiveConditions { is_disabled: true, ..person }.may_move());
}

/// Strings as agents and users may write them.
fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "\\PC{0,80}",
        "[\\x00-\\x1f\\x7f-\\u{9f}a-z ]{0,40}",
        "[\u{4e00}-\u{4e20}\u{1f600}-\u{1f64f}\u{200d}\u{fe0f}\u{300}]{0,60}",
        "[a-z]{0,200}",
    ]
}

proptest! {
    #![proptest_config(crate::properties::tries(64))]

    #[test]
    fn no_odd_string_breaks_the_table(
        cases in prop::collection::vec(odd(), 0..4),
        harness in odd(),
        arms in prop::collection::vec(odd(), 1..4),
        reason in odd(),
        width in 40usize..200,
        unicode in any::<bool>(),
    ) {
        let mut planned = Vec::new();
        for case in &cases {
            for arm in &arms {
                planned.push((&**case, &*harness, &**arm, 1));
            }
        }
        let results = planned.iter().enumerate().map(|(n, (case, harness, arm, trial))| {
            let verdict = [Verdict::Pass, Verdict::Fail, Verdict::Errored, Verdict::Ungraded][n % 4];
            let mut result = took(result(case, harness, arm, *trial, verdict), 5, Some(1.0), None);
            result.grades = vec![grade(&reason, "command", None, &reason, &[1, 2])];
            result.warnings = vec![Warning::Text { said: reason.clone() }];
            result
        });
        let mut run = record(&planned, "all");
        run.label = Some(reason.clone());
        let report = Report::new(&run, results.collect(), 0, Path::new("r"));
        let text = rendered(Format::Table, &report, &Look { width, colour: false, unicode });
        for line in text.lines() {
            // Paths and commands stay whole, so that they can be copied.
            let to_copy = ["  again ", "  show ", "  trace ", "  workspace "].iter().any(|label| line.starts_with(label));
            prop_assert!(to_copy || width_of(line) <= width, "{} > {width}: {line:?}", width_of(line));
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        }
        let coloured = rendered(Format::Table, &report, &Look { width, colour: true, unicode });
        prop_assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), text);
    }

    #[test]
    fn no_odd_string_breaks_a_trace(text in odd(), name in odd(), full in any::<bool>(), width in 40usize..160) {
        let header = TRACE.lines().next().unwrap();
        let events = [
            serde_json::json!({"seq": 0, "type": "message", "role": "agent", "text": text}),
            serde_json::json!({"seq": 1, "type": "tool_call", "call": "c", "step": 0, "kind": "execute", "name": name,
                "input": {"command": text}}),
            serde_json::json!({"seq": 2, "type": "tool_result", "call": "c", "status": "ok", "output": text,
                "diffs": [{"path": name, "old": name, "new": text}], "parent": name}),
            serde_json::json!({"seq": 3, "type": "stop", "reason": "other", "detail": text}),
        ];
        let lines: Vec<String> = events.iter().map(|event| format!("{event}\n")).collect();
        let shown = shown(&format!("{header}\n{}", lines.concat()), full, &look(width));
        for line in shown.lines() {
            prop_assert!(width_of(line) <= width, "{} > {width}: {line:?}", width_of(line));
            prop_assert!(!line.chars().any(char::is_control), "{line:?}");
        }
    }
}

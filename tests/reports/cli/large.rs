//! Reports of stored runs with many trials: what is kept of a trial in memory, how often is written, how the time grows, and that
//! nothing is missing in the reports.

use std::fmt::Write as _;
use std::sync::Arc;

use evals::internal::report::format::{Format, write};
use evals::internal::report::text::Look;
use evals::internal::report::{Report, RunContext};
use evals::internal::run::folder::RunFolder;
use serde_json::{Value, json};

use crate::project::{Project, lines, strace};

/// The number of trials of a case.
const TRIALS: usize = 8;
/// The most bytes by which the peak may grow with a trial. A whole result takes 6 KB.
const MOST: u64 = 1_500;
/// Starts a program and writes the most memory that it took, in KiB, to standard error.
const PEAK: &str = "import resource, subprocess, sys\n\
    code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)\n\
    sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n\
    sys.exit(code)";

/// Starts a program and writes the seconds that it ran in its own code to standard error.
const WORKED: &str = "import resource, subprocess, sys\n\
    code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n\
    sys.stderr.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime))\n\
    sys.exit(code)";

/// Writes a run of a version without digests, of which every seventh trial failed and every eleventh was errored.
fn stored(project: &Project, cases: usize) -> String {
    let folder = format!(".evals/runs/run-{cases}");
    let (mut plan, mut results, mut journal) = (Vec::new(), String::new(), String::new());
    for number in 0..cases * TRIALS {
        let (case, trial) = (format!("group/case-{}", number / TRIALS), number % TRIALS + 1);
        let verdict = match number {
            _ if number % 7 == 3 => "fail",
            _ if number % 11 == 5 => "errored",
            _ => "pass",
        };
        plan.push(json!({"case": case, "harness": "agent", "arm": "default", "trial": trial}));
        let (passed, score) =
            (verdict == "pass", (verdict != "errored").then_some(f64::from(u8::from(verdict == "pass"))));
        let grade = |name: &str| {
            json!({"name": name, "grader": name, "outcome": "scored", "value": score, "passed": passed,
                "weight": 1.0, "gate": false, "diagnostic": false, "reason": format!("{name} of {number}"), "evidence": [3, 5]})
        };
        let grades = if verdict == "errored" { vec![] } else { vec![grade("files"), grade("tests"), grade("rules")] };
        let mut result = json!({"case": case, "harness": "agent", "arm": "default", "trial": trial, "attempt": 1,
            "model": {}, "verdict": verdict, "score": score, "grades": grades, "warnings": [],
            "shape": vec![["execute:Bash"]; 12], "stop": {"reason": "end_turn"},
            "metrics": {"duration_ms": 1000 + number, "tool_calls": 12, "tool_calls_by_kind": {"execute": 12},
                "input_tokens": number, "output_tokens": 1, "cost_usd": 0.25}});
        if verdict == "errored" {
            result["error"] = json!({"category": "crashed", "message": format!("broken {}", number % 3)});
        }
        if score.is_none() {
            result.as_object_mut().unwrap().remove("score");
        }
        writeln!(results, "{result}").unwrap();
        for event in ["started", "finished"] {
            let mut line = json!({"at": "2026-11-21T20:15:00Z", "event": event, "case": case, "harness": "agent",
                "model": "default", "trial": trial, "attempt": 1});
            if event == "finished" {
                line["verdict"] = verdict.into();
            }
            writeln!(journal, "{line}").unwrap();
        }
    }
    let case = |number: usize| {
        let id = format!("group/case-{number}");
        json!({"path": format!("cases/{id}.yaml"), "id": id, "digest": "d", "pass": "all", "threshold": 1.0,
            "limits": {}, "interaction": "auto-approve"})
    };
    let manifest = json!({"name": "agent", "adapter": "acp", "command": ["agent"]});
    let record = json!({"version": 1, "run": format!("run-{cases}"), "started": "2026-11-21T20:15:00.000Z",
        "evals": "0.1.0", "argv": ["run"], "cases": (0..cases).map(case).collect::<Vec<_>>(), "trials": plan,
        "harnesses": [{"name": "agent", "origin": "built in", "digest": "d", "manifest": manifest}], "options": {}});
    project.write(&format!("{folder}/run.json"), &record.to_string());
    // The results are written before the last line of the journal.
    project.write(&format!("{folder}/results.jsonl"), &results);
    project.write(&format!("{folder}/journal.jsonl"), &journal);
    folder
}

#[test]
fn the_memory_of_a_report_grows_little_with_each_trial() {
    let project = Project::new();
    let (few, many) = (100, 400);
    for cases in [few, many] {
        stored(&project, cases);
    }
    let peak = |cases: usize, format: &str| {
        let args = ["report", &format!("run-{cases}"), "--format", format];
        let ran = project.under("python3", &["-c", PEAK], &args).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stderr).trim().parse::<u64>().unwrap()
    };
    for format in ["table", "json", "jsonl", "junit", "markdown"] {
        let grown = peak(many, format).saturating_sub(peak(few, format)) * 1024 / ((many - few) * TRIALS) as u64;
        assert!(grown < MOST, "{format}: {grown} bytes a trial");
    }
}

#[test]
fn a_report_is_written_in_large_pieces() {
    if !strace() {
        return;
    }
    let project = Project::new();
    for cases in [3, 10] {
        stored(&project, cases);
        for format in ["table", "json", "jsonl", "junit", "markdown"] {
            let log = project.path("calls");
            let own = ["-f", "-qq", "-e", "trace=write,writev", "-o", log.to_str().unwrap()];
            let args = ["report", &format!("run-{cases}"), "--format", format];
            let traced = project.under("strace", &own, &args).output().unwrap();
            assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
            let calls = std::fs::read_to_string(&log).unwrap();
            let writes = calls.lines().filter(|line| line.contains("write(") || line.contains("writev(")).count();
            let most = traced.stdout.len() / (32 << 10) + 20;
            assert!(writes <= most, "{format} of {cases} cases: {writes} writes for {} bytes", traced.stdout.len());
        }
    }
}

/// Fails if four times as many trials take more than eight times the time of the program's own code. The shorter time counts as a
/// tenth of a second at least, and of several tries the best counts.
#[track_caller]
fn grows_with_the_trials(what: &str, worked: impl Fn(usize) -> f64) {
    let best = |place| (0..3).map(|_| worked(place)).fold(f64::INFINITY, f64::min);
    let (few, many) = (best(0), best(1));
    assert!(many < 8.0 * few.max(0.1), "{what}: {few} s, and {many} s with four times the trials");
}

fn worked(project: &Project, args: &[&str]) -> f64 {
    let ran = project.under("python3", &["-c", WORKED], args).output().unwrap();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stderr).trim().parse().unwrap()
}

#[test]
#[ignore = "slow: reports of 16,000 trials"]
fn the_work_of_a_report_grows_with_the_trials_and_not_with_their_square() {
    let project = Project::new();
    let runs = [500, 2_000].map(|cases| {
        stored(&project, cases);
        format!("run-{cases}")
    });
    for format in ["table", "json", "jsonl", "junit", "markdown"] {
        grows_with_the_trials(format, |place| worked(&project, &["report", &runs[place], "--format", format]));
    }
}

#[test]
#[ignore = "slow: 2,000 trials"]
fn the_work_of_a_merge_grows_with_the_trials_and_not_with_their_square() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", "");
    }
    project.harness("h", "adapter: output-only\ncommand: [/bin/true]");
    for trials in ["200", "800"] {
        for shard in ["1/2", "2/2"] {
            let label = format!("{trials}-{}", &shard[..1]);
            let run = ["run", "--harness", "h", "--trials", trials, "--shard", shard, "--label", &label, "--jobs", "8"];
            project.evals(&run).exits(0);
        }
    }
    let shards = [["200-1", "200-2"], ["800-1", "800-2"]];
    grows_with_the_trials("merge", |place| {
        worked(&project, &[&["merge", "-o", "merged"], &shards[place][..]].concat())
    });
}

#[test]
fn a_report_whose_results_are_read_again_is_that_of_the_results_in_memory() {
    let project = Project::new();
    let folder = stored(&project, 12);
    let results = lines(&project.read(&format!("{folder}/results.jsonl")));
    let told = project.evals(&["report", "run-12", "--format", "jsonl"]).exits(0).out;
    assert!(lines(&told) == results, "the lines differ");
    let whole = project.evals(&["report", "run-12", "--format", "json"]).exits(0).json();
    assert!(whole["results"] == Value::Array(results), "the results of the object differ");

    let run = RunFolder::open(&project.path(&folder));
    let record = run.record().unwrap();
    let of_all = Report::new(&record, run.results(&record).unwrap(), 0, &run.path);
    let of_file = Report::of_folder(&run, Arc::new(record), RunContext::default()).unwrap();
    assert!(of_file.whole().is_err(), "no result stays in memory");
    for format in
        [Format::Table, Format::Json, Format::Jsonl, Format::Junit, Format::Markdown, Format::Github, Format::Benchmark]
    {
        let text = |report: &Report| {
            let mut out = Vec::new();
            write(format, report, &Look::PLAIN, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(&of_file), text(&of_all), "{format:?}");
    }
}

#[test]
fn results_that_change_while_a_report_is_written_are_an_error() {
    let project = Project::new();
    let folder = stored(&project, 2);
    let run = RunFolder::open(&project.path(&folder));
    let record = Arc::new(run.record().unwrap());
    let report = Report::of_folder(&run, record, RunContext::default()).unwrap();
    let text = project.read(&format!("{folder}/results.jsonl"));
    project.write(&format!("{folder}/results.jsonl"), &text.replacen("\"fail\"", "\"pass\"", 1));
    for format in [Format::Table, Format::Json, Format::Jsonl, Format::Junit, Format::Markdown, Format::Github] {
        let error = write(format, &report, &Look::PLAIN, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains("was changed while the report was written"), "{error}");
    }
}

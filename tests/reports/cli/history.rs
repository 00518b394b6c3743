//! `evals history`: the figures of cells over the runs of a folder.

use serde_json::Value;

use crate::pages;
use crate::project::{Project, copy};

const PASS: &str = "steps: [{say: done}]";
const FAIL: &str = "steps: [{stop: refusal}]";

fn points(project: &Project, case: &str) -> Vec<Value> {
    let json = project.evals(&["history", case, "--format", "json"]).exits(0).json();
    let cell = json["cells"][0].clone();
    assert_eq!((&cell["case"], &cell["harness"], &cell["arm"]), (&case.into(), &"demo".into(), &"default".into()));
    cell["points"].as_array().unwrap().clone()
}

#[test]
fn scores_of_the_runs_stand_in_their_order_with_what_changed_between_them() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run", "--trials", "2", "--label", "first"]).exits(0);
    project.evals(&["run", "--label", "second"]).exits(0);
    // A changed script of the agent is part of the case.
    project.case("a", "", FAIL);
    project.evals(&["run", "--label", "third"]).exits(1);
    // A derived run is no point.
    project.evals(&["grade", "third"]).exits(1);
    let points = points(&project, "a");
    let of = |key: &str| points.iter().map(|point| point[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("score"), [1.0.into(), 1.0.into(), Value::from(0.0)]);
    assert_eq!(of("passes"), [2, 1, 0].map(Value::from));
    assert_eq!(of("trials"), [2, 1, 1].map(Value::from));
    assert_eq!(points[0]["breaks"], serde_json::json!([]));
    assert_eq!(points[1]["breaks"], serde_json::json!([]));
    assert!(points.iter().all(|point| point["duration_ms"].is_u64() && point["at"].is_string()), "{points:?}");
    let case = project.read("cases/a.yaml");
    project.write("cases/a.yaml", &format!("{case}tags: [changed]\n"));
    project.evals(&["run", "--case", "a"]).exits(1);
    assert_eq!(self::points(&project, "a").last().unwrap()["breaks"], serde_json::json!(["case"]));
    let table = project.evals(&["history"]).exits(0);
    table.says("|0").says("case changed: a (demo)").says("b");
}

#[test]
fn a_further_model_changes_nothing_for_the_others() {
    let project = Project::new();
    project.case("a", "graders: [{snapshot: {}}]", PASS);
    for models in [&["a"][..], &["a", "b"], &["b"]] {
        let models = models.iter().flat_map(|model| ["--model", model]);
        project.evals(&["run"].into_iter().chain(models).collect::<Vec<_>>()).exits(3);
    }
    let json = project.evals(&["history", "--format", "json"]).exits(0).json();
    for cell in json["cells"].as_array().unwrap() {
        let points = cell["points"].as_array().unwrap();
        assert_eq!(points.len(), 2, "{cell}");
        assert!(points.iter().all(|point| point["breaks"] == serde_json::json!([])), "{cell}");
    }
    // The snapshot of another cell judges nothing here, and the cell's own one does.
    project.evals(&["snapshot", "accept", "latest"]).exits(0);
    project.evals(&["run", "--model", "a", "--model", "b"]).exits(3);
    let json = project.evals(&["history", "--format", "json"]).exits(0).json();
    let last = |arm: &str| {
        let cell = json["cells"].as_array().unwrap().iter().find(|cell| cell["arm"] == arm).unwrap();
        cell["points"].as_array().unwrap().last().unwrap()["breaks"].clone()
    };
    assert_eq!((last("a"), last("b")), (serde_json::json!([]), serde_json::json!(["grader"])));
}

#[test]
fn an_accepted_snapshot_is_a_mark_only_if_a_grader_compares_with_it() {
    let project = Project::new();
    project.case("plain", "", PASS);
    project.case("graded", "graders: [{snapshot: {}}]", PASS);
    project.evals(&["run"]).exits(3);
    project.evals(&["snapshot", "accept"]).exits(0);
    project.evals(&["run"]).exits(0);
    let last = |case: &str| points(&project, case).last().unwrap()["breaks"].clone();
    assert_eq!((last("plain"), last("graded")), (serde_json::json!([]), serde_json::json!(["grader"])));
}

#[test]
fn another_version_of_the_agent_is_a_mark_and_an_errored_run_has_no_score() {
    let project = Project::new();
    project.case("a", "", PASS);
    let agent = |version: &str| {
        project.write("agent.sh", &format!("#!/bin/sh\necho done\nexit {}\n", if version == "broken" { 1 } else { 0 }));
        let path = project.path("agent.sh");
        let version = if version == "broken" { String::new() } else { format!("version: [echo, '{version}']\n") };
        project.harness("own", &format!("adapter: output-only\ncommand: [sh, {}]\n{version}", path.display()));
    };
    for (version, code) in [("1.0", 0), ("1.0", 0), ("broken", 3), ("2.0", 0)] {
        agent(version);
        assert_eq!(project.evals(&["run", "--harness", "own"]).code, code, "{version}");
    }
    let json = project.evals(&["history", "a", "--format", "json"]).exits(0).json();
    let points = json["cells"][0]["points"].as_array().unwrap();
    let breaks: Vec<String> = points.iter().map(|point| point["breaks"].to_string()).collect();
    assert_eq!(breaks, ["[]", "[]", "[]", "[\"agent\"]"]);
    assert!(points[2].get("score").is_none() && points[2]["passes"] == 0 && points[2]["trials"] == 1);
    project.evals(&["history"]).exits(0).says("x marks a run in which the cell has no score");
}

#[test]
fn only_trials_that_were_run_count() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", "steps: [{usage: {cost-usd: 1}}, {say: done}]");
    }
    project.evals(&["run", "--trials", "2", "--jobs", "1", "--max-cost", "1"]).exits(3);
    let history = project.evals(&["history", "--format", "json"]).exits(0).json();
    assert_eq!(history["cells"].as_array().unwrap().len(), 1, "of the other case nothing was run: {history}");
    let point = &history["cells"][0]["points"][0];
    assert_eq!([&point["passes"], &point["trials"], &point["not_run"]], [1, 1, 1], "{point}");
    project.evals(&["history"]).exits(0).says("1/1, 1 not run");
    assert!(project.evals(&["history", "--format", "html"]).exits(0).out.contains("1/1, 1 not run"));
    project.evals(&["run", "--case", "b"]).exits(0);
    let history = project.evals(&["history", "b", "--format", "json"]).exits(0).json();
    let last = history["cells"][0]["points"].as_array().unwrap().last().unwrap().clone();
    assert!(last["trials"] == 1 && last.get("not_run").is_none(), "{last}");
}

#[test]
fn an_unknown_case_and_a_folder_without_runs_are_told() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["history"]).exits(2).says("there are no runs in");
    project.evals(&["run"]).exits(0);
    project.evals(&["history", "zz"]).exits(2).says("has a case `zz`");
    project.evals(&["history", "a*"]).exits(0);
}

#[test]
fn a_point_in_quarantine_is_marked() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run"]).exits(0);
    project.case("a", "quarantine: {until: 2999-01-01, why: the mirror is slow}", FAIL);
    project.evals(&["run"]).exits(0);
    let points = points(&project, "a");
    assert!(points[0].get("quarantined").is_none() && points[1]["quarantined"] == true, "{points:?}");
    let table = project.evals(&["history", "a"]).exits(0);
    table.says("9|0q").says("q marks a run in which the case was in quarantine");
    assert!(!project.evals(&["history", "b"]).exits(0).out.contains("quarantine"));
    let page = project.evals(&["history", "--format", "html"]).exits(0).out;
    assert_eq!(page.matches("in quarantine (q)</td>").count(), 1);
    assert!(page.contains("class=\"point aside\""));
}

#[test]
fn the_page_of_the_history_is_a_file_that_asks_for_nothing() {
    let project = pages::history();
    project.evals(&["history", "--format", "html", "-o", "out/history.html"]).exits(0);
    let page = project.read("out/history.html");
    assert_eq!(project.evals(&["history", "--format", "html", "-o", "-"]).exits(0).out, page);
    let policy = regex::Regex::new("http-equiv=\"Content-Security-Policy\" content=\"([^\"]*)\"").unwrap();
    let policy = policy.captures(&page).unwrap().get(1).unwrap().as_str().to_owned();
    let style = &page[page.find("<style>").unwrap() + 7..page.find("</style>").unwrap()];
    let hash = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        ring::digest::digest(&ring::digest::SHA256, style.as_bytes()),
    );
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && policy.contains(&hash), "{policy}");
    assert!(!policy.contains("script-src") && !page.contains("<script"));
    let addresses = regex::Regex::new(r#"\s(?:src|href|srcset|action|data|poster|style|on\w+)="([^"]*)""#).unwrap();
    let shown = page.replace(style, "");
    let elsewhere: Vec<&str> = addresses.captures_iter(&shown).map(|it| it.get(1).unwrap().as_str()).collect();
    assert!(!elsewhere.is_empty() && elsewhere.iter().all(|it| it.starts_with("#cell-")), "{elsewhere:?}");
    // Names are text.
    for name in pages::NAMES {
        assert!(!page.contains(name), "{name}");
    }
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && page.contains("\\u{202e}"));
    // Every mark is told in words: in the table, and at the chart.
    for words in ["case changed", "agent changed", "flaky", "in quarantine (q)", "has no score in the run"] {
        assert!(page.contains(words), "{words}");
    }
    for title in ["Score", "Passed trials", "Median time"] {
        assert!(page.contains(&format!("<figcaption>{title}</figcaption>")), "{title}");
    }
    // The agent `own` reports no cost, and so it has no chart of costs.
    let cells: Vec<&str> = page.split("<section id=\"cell-").skip(1).collect();
    let (own, demo): (Vec<&str>, Vec<&str>) = cells.iter().partition(|cell| cell.contains(" · own</h2>"));
    assert!(own.iter().all(|cell| !cell.contains("<figcaption>Cost</figcaption>")));
    assert!(demo.iter().all(|cell| cell.contains("<figcaption>Cost</figcaption>")));
    assert_eq!(page.matches("<section id=\"cell-").count(), page.matches("href=\"#cell-").count());
    project.evals(&["history", "--format", "html", "-o", "out"]).exits(2).says("out is a folder");
    let json = project.evals(&["history", "-o", "history.json", "--format", "json"]).exits(0);
    assert_eq!(json.out, "");
    assert!(project.read("history.json").starts_with('{'));
}

#[test]
fn other_inputs_of_the_agent_are_a_mark() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    project.evals(&["run"]).exits(0);
    project.evals(&["run", "--limit", "time=1m"]).exits(0);
    let breaks: Vec<Value> = points(&project, "a").iter().map(|point| point["breaks"].clone()).collect();
    assert_eq!(breaks, [serde_json::json!([]), serde_json::json!([]), serde_json::json!(["inputs"])]);
}

#[test]
fn another_model_and_other_variables_of_the_user_are_marks() {
    let mut project = Project::new();
    project.env("EFFORT", "high");
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    project.evals(&["run", "--env", "EFFORT"]).exits(0);
    let found = points(&project, "a");
    let breaks: Vec<&Value> = found.iter().map(|point| &point["breaks"]).collect();
    assert_eq!(breaks, [&serde_json::json!([]), &serde_json::json!(["inputs"])]);
    let project = Project::new();
    project.case("a", "", "");
    for model in ["m-1", "m-1", "m-2"] {
        project.reports_model("said", model);
        project.evals(&["run", "--harness", "said"]).exits(0);
    }
    let json = project.evals(&["history", "a", "--format", "json"]).exits(0).json();
    let points = json["cells"][0]["points"].as_array().unwrap();
    let breaks: Vec<&Value> = points.iter().map(|point| &point["breaks"]).collect();
    assert_eq!(breaks, [&serde_json::json!([]), &serde_json::json!([]), &serde_json::json!(["model"])]);
    project.evals(&["history"]).exits(0).says("model changed: a (said)");
}

/// Runs the two shards `s1` and `s2` of the plan.
fn shards(project: &Project, more: &[&str], code: i32) {
    for (part, label) in [("1/2", "s1"), ("2/2", "s2")] {
        project.evals(&[&["run", "--shard", part, "--label", label], more].concat()).exits(code);
    }
}

/// Returns the runs and scores of the points of each cell.
fn scores(project: &Project) -> Vec<Vec<(String, Option<f64>)>> {
    let json = project.evals(&["history", "--format", "json"]).exits(0).json();
    let point = |point: &Value| (point["run"].as_str().unwrap().to_owned(), point["score"].as_f64());
    let cells = json["cells"].as_array().unwrap().iter();
    cells.map(|cell| cell["points"].as_array().unwrap().iter().map(point).collect()).collect()
}

fn id(project: &Project, label: &str) -> String {
    project.run_named(label).rsplit('/').next().unwrap().to_owned()
}

#[test]
fn a_merged_run_that_was_resumed_is_shown_and_kept_beside_a_newer_merge_without_its_results() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    shards(&project, &["--max-time", "0"], 3);
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(3);
    project.evals(&["run", "--resume", "m", "--max-time", "1h"]).exits(0);
    let resumed = id(&project, "m");
    // The ID of a run has a fraction of the second, so the next merged run is the newer one.
    project.evals(&["merge", "s1", "s2", "--label", "again"]).exits(3);
    assert_eq!(scores(&project), vec![vec![(resumed.clone(), Some(1.0))]; 2]);
    assert_eq!(project.evals(&["report", "latest", "--format", "json"]).exits(0).json()["run"], *resumed);
    project.evals(&["prune", "--keep", "1"]).exits(0).says("2 of 4 runs remain");
    let report = project.evals(&["report", "m", "--format", "json"]).exits(0).json();
    assert_eq!((&report["summary"]["pass"], &report["summary"]["not_run"]), (&2.into(), &0.into()));
}

#[test]
fn shards_that_were_run_again_after_the_merge_are_shown_and_kept() {
    let project = Project::new();
    project.case("a", "", "");
    project.case("b", "", "");
    project.write("agent.sh", "echo done\nexit 1\n");
    let command = format!("adapter: output-only\ncommand: [sh, {}]", project.path("agent.sh").display());
    project.harness("own", &command);
    project.evals(&["run", "--harness", "own", "--label", "older"]).exits(3);
    shards(&project, &["--harness", "own"], 3);
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(3);
    project.write("agent.sh", "echo done\n");
    let older = (id(&project, "older"), None);
    let merged = (id(&project, "m"), None);
    assert_eq!(scores(&project), vec![vec![older.clone(), merged]; 2]);
    for label in ["s1", "s2"] {
        project.evals(&["run", "--resume", label, "--rerun", "errored"]).exits(0);
    }
    let of_shard = |label: &str| vec![older.clone(), (id(&project, label), Some(1.0))];
    assert_eq!(scores(&project), [of_shard("s1"), of_shard("s2")]);
    project.evals(&["history"]).exits(0).says("is left out: its shards have all its results and further ones");
    // A merged run and its shards are one run.
    project.evals(&["prune", "--keep", "2"]).exits(0).says("4 of 4 runs remain");
    project.evals(&["prune", "--keep", "1"]).exits(0).says("3 of 4 runs remain");
    assert_eq!(project.evals(&["report", "s1", "--format", "json"]).exits(0).json()["summary"]["pass"], 1);
    project.evals(&["merge", "s1", "s2", "--label", "again"]).exits(0);
    assert_eq!(scores(&project), vec![vec![(id(&project, "again"), Some(1.0))]; 2]);
}

#[test]
fn a_copy_of_a_merged_run_hides_nothing() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run", "--label", "older"]).exits(0);
    shards(&project, &[], 0);
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(0);
    let (older, merged) = (id(&project, "older"), id(&project, "m"));
    copy(&project.path(&format!(".evals/runs/{merged}")), &project.path(".evals/runs/copy"));
    assert_eq!(scores(&project), vec![vec![(older, Some(1.0)), (merged.clone(), Some(1.0))]; 2]);
    project.evals(&["history"]).exits(0).says(&format!("runs/copy is left out: it is a copy of run {merged}"));
    assert_eq!(project.evals(&["report", "latest", "--format", "json"]).exits(0).json()["run"], *merged);
    // Shards whose results are in the merged run take no place among the newest.
    project.evals(&["prune", "--keep", "2"]).exits(0).says("5 of 5 runs remain");
    project.evals(&["prune", "--keep", "1"]).exits(0).says("2 of 5 runs remain");
}

#[test]
fn of_copies_of_a_run_the_one_with_more_results_is_shown() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", "");
    project.write("agent.sh", "echo done\nexit 1\n");
    let command = format!("adapter: output-only\ncommand: [sh, {}]", project.path("agent.sh").display());
    project.harness("own", &command);
    project.evals(&["run", "--harness", "own", "--label", "p"]).exits(3);
    let run = id(&project, "p");
    let (own, copied) = (format!(".evals/runs/{run}"), ".evals/runs/copy");
    copy(&project.path(&own), &project.path(copied));
    project.write("agent.sh", "echo done\n");
    project.evals(&["run", "--resume", copied, "--rerun", "errored"]).exits(0);
    assert_eq!(scores(&project), vec![vec![(run.clone(), Some(1.0))]]);
    let says = format!("{own} is left out: it is a copy of run {run}: all its results are in {copied}");
    project.evals(&["history"]).exits(0).says(&says);
    for name in [&*run, "p", "latest"] {
        let report = project.evals(&["report", name, "--format", "json"]).exits(0).json();
        assert_eq!(report["summary"]["pass"], 1, "{name}");
    }
    // Each of the two has a result that the other lacks.
    project.write("agent.sh", "echo nothing\n");
    project.evals(&["run", "--resume", &own, "--rerun", "errored"]).exits(1);
    assert_eq!(scores(&project), vec![vec![(run.clone(), Some(1.0)), (run.clone(), Some(0.0))]]);
    project.evals(&["history"]).exits(0).says(&format!("are copies of run {run} with different results"));
}

/// Replaces a file, which a merged run may share with its shard.
fn replace(project: &Project, path: &str, text: &str) {
    std::fs::remove_file(project.path(path)).unwrap();
    project.write(path, text);
}

#[test]
fn of_copies_of_a_run_the_one_with_whole_results_is_shown() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run", "--label", "p"]).exits(0);
    let run = id(&project, "p");
    let (own, copied) = (format!(".evals/runs/{run}"), ".evals/runs/copy");
    copy(&project.path(&own), &project.path(copied));
    let result = |folder: &str, case: &str| format!("{folder}/trials/{case}/demo/default/1/result.json");
    let whole = project.read(&result(&own, "a"));
    replace(&project, &result(&own, "a"), &whole.replace("pass", "fail"));
    assert_eq!(scores(&project), vec![vec![(run.clone(), Some(1.0))]; 2]);
    let says = format!("{own} is left out: it is a copy of run {run}: all its results are in {copied}");
    project.evals(&["history"]).exits(0).says(&says);
    assert_eq!(project.evals(&["report", &run, "--format", "json"]).exits(0).json()["summary"]["pass"], 2);
    // Each of the two has a result that the other lost.
    std::fs::remove_file(project.path(&result(copied, "b"))).unwrap();
    project.evals(&["history"]).exits(0).says(&format!("are copies of run {run} with different results"));
    // A result that no folder has whole makes no difference between them.
    replace(&project, &result(&own, "a"), &whole);
    std::fs::remove_file(project.path(&result(&own, "b"))).unwrap();
    project.evals(&["history"]).exits(0).says(&format!("runs/copy is left out: it is a copy of run {run}"));
}

#[test]
fn a_merged_run_with_a_damaged_trial_does_not_replace_the_shard_that_has_it_whole() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    shards(&project, &[], 0);
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(0);
    let trial = format!("{}/trials/a/demo/default/1", project.run_named("m"));
    let remain = |says: &str| project.evals(&["prune", "--keep", "1", "--dry-run"]).exits(0).says(says);
    for file in ["result.json", "trace.jsonl", "wire.jsonl"] {
        let file = format!("{trial}/{file}");
        let whole = project.read(&file);
        replace(&project, &file, "{}\n");
        remain("2 of 3 runs would remain");
        std::fs::remove_file(project.path(&file)).unwrap();
        remain("2 of 3 runs would remain");
        project.write(&file, &whole);
        remain("1 of 3 runs would remain");
    }
    let result = project.read(&format!("{trial}/result.json"));
    replace(&project, &format!("{trial}/result.json"), &result.replace("pass", "fail"));
    let (shard, merged) = (id(&project, "s1"), id(&project, "m"));
    // The copy in results.jsonl counts.
    let of_a = vec![(shard, Some(1.0)), (merged.clone(), Some(1.0))];
    assert_eq!(scores(&project), [of_a, vec![(merged, Some(1.0))]]);
    project.evals(&["prune", "--keep", "1"]).exits(0).says("2 of 3 runs remain");
    assert_eq!(project.evals(&["report", "s1", "--format", "json"]).exits(0).json()["summary"]["pass"], 1);
}

#[test]
fn an_attempt_that_a_merged_run_has_as_an_earlier_one_is_not_kept_twice() {
    let project = Project::new();
    project.case("a", "", "");
    project.case("b", "", "");
    project.write("agent.sh", "echo done\nexit 1\n");
    let command = format!("adapter: output-only\ncommand: [sh, {}]", project.path("agent.sh").display());
    project.harness("own", &command);
    shards(&project, &["--harness", "own"], 3);
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(3);
    project.write("agent.sh", "echo done\n");
    project.evals(&["run", "--resume", "m", "--rerun", "errored"]).exits(0);
    project.evals(&["prune", "--keep", "1"]).exits(0).says("1 of 3 runs remain");
}

#[test]
fn a_merged_run_that_lost_the_folder_of_a_trial_does_not_replace_its_shards() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    shards(&project, &[], 0);
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(0);
    let trial = project.path(&format!("{}/trials/a/demo/default/1", project.run_named("m")));
    std::fs::remove_file(trial.join("trace.jsonl")).unwrap();
    project.evals(&["prune", "--keep", "1"]).exits(0).says("2 of 3 runs remain");
    std::fs::remove_dir_all(project.path(&format!("{}/trials/a", project.run_named("m")))).unwrap();
    project.evals(&["prune", "--keep", "1"]).exits(0).says("2 of 2 runs remain");
    let shown = project
        .evals(&["show", "m", "a"])
        .exits(0)
        .says("trace.jsonl is missing, so only the result of the trial is shown");
    shown.says("the result comes from another copy");
    project.evals(&["show", "s1", "a"]).exits(0).says("done");
}

#[test]
fn shards_of_one_plan_are_kept_or_removed_together() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    shards(&project, &[], 0);
    project.evals(&["prune", "--keep", "1"]).exits(0).says("2 of 2 runs remain");
    project.evals(&["merge", "s1", "s2", "--label", "m"]).exits(0);
    // Nothing tells which shards an unreadable run was merged from.
    project.write(&format!("{}/run.json", project.run_named("m")), "");
    project.evals(&["prune", "--keep", "1"]).exits(0).says("3 of 3 runs remain");
    project.evals(&["merge", "s1", "s2", "--label", "again"]).exits(0);
    // The same plan was run once more, and its shards are not merged yet.
    shards(&project, &[], 0);
    project.evals(&["prune", "--keep", "1"]).exits(0).says("3 of 6 runs remain");
    project.evals(&["merge", "s1", "s2", "--label", "newest"]).exits(0);
}

#[test]
fn a_history_without_a_run_that_can_be_read_says_why() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    project.write(&format!("{}/run.json", project.run_folder()), "garbage");
    project.evals(&["history"]).exits(2).says("no run could be read").says("run.json cannot be read");
}

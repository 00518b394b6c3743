//! `run --shard` and `evals merge`: the merged run is the run that would have been made without shards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::project::{Project, copy, lines, wait_for};

const PASS: &str = "steps: [{say: done}]";
const FAIL: &str = "steps: [{stop: refusal}]";

/// A project with five cases, of which `c` fails and `d/e` is skipped.
fn five() -> Project {
    let project = Project::new();
    for case in ["a", "b", "z"] {
        project.case(case, "", PASS);
    }
    project.case("c", "", FAIL);
    project.case("d/e", "requires: {model-selection: true}", PASS);
    project.demo("plain", "");
    project
}

const ARGS: [&str; 5] = ["run", "--trials", "2", "--harness", "plain"];

fn shard(project: &Project, shard: &str, more: &[&str]) {
    let args = [&ARGS, &["--shard", shard, "--label", shard][..], more].concat();
    let code = project.evals(&args).code;
    assert!([0, 1, 3].contains(&code), "{code}");
}

fn record(project: &Project, folder: &str) -> Value {
    serde_json::from_str(&project.read(&format!("{folder}/run.json"))).unwrap()
}

/// Returns the run that was made last.
fn merged(project: &Project) -> String {
    let folders = project.runs().into_iter().map(|run| format!(".evals/runs/{run}"));
    let mut merged: Vec<String> = folders.filter(|run| project.path(&format!("{run}/merged.json")).exists()).collect();
    assert_eq!(merged.len(), 1, "{merged:?}");
    merged.remove(0)
}

/// Replaces times, ids, and digests of what contains times.
fn timeless(value: &mut Value) {
    const TIMES: [&str; 9] = ["run", "place", "started", "at", "chain", "plan", "files", "session", "session_id"];
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if TIMES.contains(&&**key) || key.ends_with("_ms") { *value = json!("…") } else { timeless(value) }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(timeless),
        _ => {}
    }
}

fn normal(text: &str) -> Vec<Value> {
    let mut values: Vec<Value> = serde_json::Deserializer::from_str(text).into_iter().map(Result::unwrap).collect();
    values.iter_mut().for_each(timeless);
    values
}

#[test]
fn merged_shards_are_the_run_without_shards() {
    let parts = five();
    parts.evals(&ARGS).exits(1);
    let of_whole = parts.run_folder();
    for part in ["1/3", "2/3", "3/3"] {
        let args = [&ARGS, &["--shard", part][..]].concat();
        parts.evals(&args);
    }
    let mut shards = parts.runs();
    shards.retain(|run| !of_whole.ends_with(run.as_str()));
    let done = parts.evals(&[&["merge"], &*shards.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    let done = done.exits(1).says("merged 3 shards");
    let (whole, of_merged) = (&parts, merged(&parts));
    let report = |project: &Project, run: &str| {
        let run = run.rsplit('/').next().unwrap().to_owned();
        project.evals(&["report", &run, "--format", "json"]).exits(0).out
    };
    assert_eq!(normal(&report(whole, &of_whole)), normal(&report(&parts, &of_merged)));
    for file in ["run.json", "results.jsonl"] {
        let of = |project: &Project, run: &str| normal(&project.read(&format!("{run}/{file}")));
        assert_eq!(of(whole, &of_whole), of(&parts, &of_merged), "{file}");
    }
    let sorted = |project: &Project, run: &str| {
        let mut lines = normal(&project.read(&format!("{run}/journal.jsonl")));
        // The digest of a result covers its times.
        lines.iter_mut().filter_map(Value::as_object_mut).for_each(|line| drop(line.remove("digest")));
        let mut journal: Vec<String> = lines.iter().map(Value::to_string).collect();
        journal.sort();
        journal
    };
    assert_eq!(sorted(whole, &of_whole), sorted(&parts, &of_merged));
    let names =
        |project: &Project, run: &str| -> Vec<String> { project.files(&format!("{run}/trials")).into_keys().collect() };
    assert_eq!(names(whole, &of_whole), names(&parts, &of_merged));
    // Nothing of the merged run is doubted, and the evidence is that of the shards.
    assert!(!done.err.contains("does not count"), "{}", done.err);
    for shard in &shards {
        for (name, bytes) in parts.files(&format!(".evals/runs/{shard}/trials")) {
            assert_eq!(fs::read(parts.path(&format!("{of_merged}/trials/{name}"))).unwrap(), bytes, "{name}");
        }
    }
    let from: Value = serde_json::from_str(&parts.read(&format!("{of_merged}/merged.json"))).unwrap();
    let numbers: Vec<&Value> = from["shards"].as_array().unwrap().iter().map(|it| &it["shard"]).collect();
    assert_eq!(numbers, [&json!({"k": 1, "n": 3}), &json!({"k": 2, "n": 3}), &json!({"k": 3, "n": 3})]);
}

#[test]
fn a_shard_records_the_whole_plan_and_plays_its_part() {
    let project = five();
    project.evals(&ARGS).exits(1);
    let whole = record(&project, &project.run_folder());
    shard(&project, "2/2", &[]);
    let folder = project.run_named("2/2");
    let part = record(&project, &folder);
    assert_eq!(part["shard"], json!({"k": 2, "n": 2}));
    assert_eq!(part["cases"], whole["cases"]);
    assert_eq!(part["trials"], whole["trials"]);
    let played: Vec<String> = lines(&project.read(&format!("{folder}/results.jsonl")))
        .iter()
        .map(|result| result["case"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(played, ["b", "b", "d/e", "d/e"]);
    let out = project.evals(&["report", "2/2", "--format", "json"]).exits(0).json();
    assert_eq!(out["summary"]["not_run"], 0, "trials of other shards are not missing");
    project.evals(&["report", "2/2"]).says("shard 2/2 of a plan");
    project.evals(&["list", "runs"]).says("(shard");
    let runs = project.evals(&["list", "runs", "--format", "json"]).json();
    assert_eq!(runs[0]["shard"], json!({"k": 2, "n": 2}));
    // Resuming plays no trial of another shard.
    project.evals(&["run", "--resume", "2/2"]).exits(0);
    assert_eq!(record(&project, &folder)["trials"], whole["trials"]);
    assert_eq!(lines(&project.read(&format!("{folder}/results.jsonl"))).len(), 4);
}

#[test]
fn what_does_not_make_one_run_is_refused_with_its_cells() {
    let project = five();
    for part in ["1/2", "2/2"] {
        shard(&project, part, &[]);
    }
    let runs = project.runs();
    let refused = |args: &[&str], says: &[&str]| {
        let mut done = project.evals(&[&["merge"], args].concat()).exits(2);
        for text in says {
            done = done.says(text);
        }
        done
    };
    refused(&["1/2"], &["shard 2/2 is missing; merge it to get these cells: ", "b (plain)", "d/e (plain)"]);
    refused(&["1/2", "1/2"], &["is given twice"]);
    project.evals(&[&ARGS[..], &["--shard", "1/2", "--label", "again"]].concat()).exits(1);
    refused(&["1/2", "again", "2/2"], &["shard 1/2 is given twice", "a (plain)", "c (plain)", "z (plain)"]);
    project.evals(&[&ARGS[..], &["--label", "whole"]].concat()).exits(1);
    refused(&["1/2", "whole"], &["is not a shard"]);
    shard(&project, "1/3", &[]);
    refused(&["2/2", "1/3"], &["shard 1/3", "shard 2/2", "merge only runs"]);
    project.evals(&["grade", "2/2", "--label", "judged"]);
    refused(&["1/2", "judged"], &["was made from run"]);
    refused(&["1/2", "nothing"], &["no run is called `nothing`"]);
    project.evals(&["merge"]).exits(2);
    // Nothing was written.
    let made: Vec<String> = project.runs().into_iter().filter(|run| run.starts_with(".merge")).collect();
    assert!(
        made.is_empty()
            && project.runs().iter().all(|run| !project.path(&format!(".evals/runs/{run}/merged.json")).exists())
    );
    assert!(runs.iter().all(|run| project.path(&format!(".evals/runs/{run}/run.json")).exists()));
}

#[test]
#[ignore = "slow: runs many trials"]
fn shards_with_other_inputs_are_refused() {
    type Change = fn(&Project);
    let change: [(&str, Change, &[&str], &str); 5] = [
        ("case", |project| project.case("b", "tags: [new]", PASS), &[], "the case `b` differs; concerned: b (plain)"),
        ("further case", |project| project.case("y", "", PASS), &[], "the case `y` is only in the first"),
        ("trials", |_| {}, &["--trials", "3"], "the plan of 5 trials"),
        ("option", |_| {}, &["--retries", "1"], "the option `retries`"),
        ("limit", |_| {}, &["--limit", "time=9m"], "the option `limits`"),
    ];
    for (name, change, more, says) in change {
        let project = five();
        project.evals(&["run", "--harness", "plain", "--trials", "2", "--shard", "1/2", "--label", "one"]);
        change(&project);
        let mut args = vec!["run", "--harness", "plain", "--shard", "2/2", "--label", "two"];
        if !more.contains(&"--trials") {
            args.extend(["--trials", "2"]);
        }
        project.evals(&[&args, more].concat());
        let done = project.evals(&["merge", "one", "two"]).exits(2);
        let done = done.says("have other inputs").says(says);
        assert_eq!(project.runs().len(), 2, "{name}: {}", done.err);
    }
    // The number of concurrent trials is no input.
    let project = five();
    shard(&project, "1/2", &["--jobs", "1"]);
    shard(&project, "2/2", &["--jobs", "3"]);
    project.evals(&["merge", "1/2", "2/2"]).exits(1);
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_changed_shard_is_not_merged() {
    type Change = fn(&Project, &str);
    let changes: [(Change, &str); 7] = [
        (
            |project, run| {
                let path = format!("{run}/journal.jsonl");
                project.write(&path, &project.read(&path).replace("\"verdict\":\"fail\"", "\"verdict\":\"pass\""));
            },
            "journal.jsonl was changed",
        ),
        (
            |project, run| {
                let path = format!("{run}/run.json");
                project.write(&path, &project.read(&path).replace("\"threshold\": 1.0", "\"threshold\": 1.00"));
            },
            "run.json was changed",
        ),
        (
            |project, run| fs::remove_dir_all(project.path(&format!("{run}/trials/c"))).unwrap(),
            "trial c/plain/default/1: its result.json was removed or replaced; repair the shard with: evals run --resume",
        ),
        (
            |project, run| {
                let path = format!("{run}/trials/c/plain/default/1/result.json");
                project.write(&path, &project.read(&path).replace("\"fail\"", "\"pass\""));
            },
            "trial c/plain/default/1: its result.json was removed or replaced",
        ),
        (
            |project, run| {
                let path = format!("{run}/journal.jsonl");
                project.write(&path, &project.read(&path).repeat(2));
            },
            "journal.jsonl was changed, or the line before it was removed",
        ),
        (
            |project, run| {
                let (trial, elsewhere) = (project.path(&format!("{run}/trials/c")), project.path("elsewhere"));
                fs::rename(&trial, &elsewhere).unwrap();
                symlink(&elsewhere, &trial).unwrap();
            },
            "trials/c is a link, which evals did not make",
        ),
        (
            |project, run| {
                let log = project.path(&format!("{run}/trials/c/plain/default/1/stderr.log"));
                fs::remove_file(&log).ok();
                symlink("/etc/passwd", &log).unwrap();
            },
            "stderr.log is a link, a pipe or a device",
        ),
    ];
    for (change, says) in changes {
        let project = five();
        for part in ["1/2", "2/2"] {
            shard(&project, part, &[]);
        }
        change(&project, &project.run_named("1/2"));
        project.evals(&["merge", "1/2", "2/2"]).exits(2).says(says);
        assert_eq!(project.runs().len(), 2);
    }
}

#[test]
fn an_agent_that_writes_a_merge_into_its_run_hides_nothing() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run", "--label", "good"]).exits(0);
    let good = project.run_named("good");
    project.case("a", "", FAIL);
    project.evals(&["run", "--label", "bad"]).exits(1);
    let bad = project.run_named("bad");
    let id = |run: &str| run.rsplit('/').next().unwrap().to_owned();
    for (folder, named) in [(&bad, &bad), (&good, &bad), (&bad, &good)] {
        let text = json!({"shards": [{"run": id(named), "shard": {"k": 1, "n": 1}}]});
        project.write(&format!("{folder}/merged.json"), &text.to_string());
        let latest = project.evals(&["report", "latest", "--format", "json"]).json();
        assert_eq!(latest["run"], id(&bad), "{folder} names {named}");
        let history = project.evals(&["history", "--format", "json"]).json();
        assert_eq!(history["cells"][0]["points"].as_array().unwrap().len(), 2);
        fs::remove_file(project.path(&format!("{folder}/merged.json"))).unwrap();
    }
}

#[test]
fn a_copy_of_a_run_counts_once() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    let runs = project.path(".evals/runs");
    let run = project.runs().remove(0);
    // The name sorts before that of the run and after it.
    for name in ["0-copy", "a-copy"] {
        copy(&runs.join(&run), &runs.join(name));
    }
    let history = project.evals(&["history", "--format", "json"]);
    assert_eq!(history.json()["cells"][0]["points"].as_array().unwrap().len(), 1);
    history.says("0-copy is left out: it is a copy of run").says(&format!("in .evals/runs/{run}"));
    project.evals(&["run"]).exits(0);
    let pruned = project.evals(&["prune", "--keep", "2"]).exits(0);
    assert!(pruned.out.contains("4 of 4 runs remain"), "{}", pruned.out);
    let pruned = project.evals(&["prune", "--keep", "1"]).exits(0);
    assert!(pruned.out.contains(&format!("removed {run} in 0-copy")), "{}", pruned.out);
    assert!(pruned.out.contains("1 of 4 runs remain"), "{}", pruned.out);
}

#[test]
fn the_merged_run_ends_as_the_run_would_have() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", PASS);
    }
    let both = |label: &str, more: &[&str]| {
        for part in ["1/2", "2/2"] {
            let label = format!("{label}-{}", part.split('/').next().unwrap());
            project.evals(&[&["run", "--shard", part, "--label", &label], more].concat());
        }
        project.evals(&["merge", &format!("{label}-1"), &format!("{label}-2")])
    };
    both("good", &[]).exits(0);
    // A snapshot that differs: each shard has its own, and the merged run has all.
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    both("same", &["--snapshot", "check"]).exits(0);
    project.case("b", "", "steps: [{run: {command: 'true'}}, {say: done}]");
    both("differs", &["--snapshot", "check"]).exits(1).says("b");
    both("asked", &[]).exits(1);
    // Without the cases, nothing says that the snapshots are the same.
    fs::rename(project.path("cases"), project.path("elsewhere")).unwrap();
    project.evals(&["merge", "asked-1", "asked-2"]).exits(2).says("snapshots of the run cannot be compared");
    project.evals(&["merge", "asked-1", "asked-2", "--snapshot", "off"]).exits(0);
}

#[test]
fn trials_that_were_not_run_stay_so_and_the_merged_run_goes_on() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", PASS);
    }
    project.case("slow", "", "steps: [{sleep: 20s}, {say: done}]");
    project.case("y", "", PASS);
    let args = ["run", "--shard", "1/2", "--label", "one", "--jobs", "1", "--seed", "1", "--no-progress"];
    let mut first = project.command(&args).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the journal", || {
        project.runs().iter().any(|run| {
            let journal = fs::read_to_string(project.path(&format!(".evals/runs/{run}/journal.jsonl")));
            journal.is_ok_and(|text| text.contains("\"slow\""))
        })
    });
    project.evals(&["run", "--shard", "2/2", "--label", "two"]).exits(0);
    project.evals(&["merge", "one", "two"]).exits(2).says("another evals process is using");
    first.kill().unwrap();
    first.wait().unwrap();
    project.evals(&["merge", "one", "two", "--label", "all"]).exits(3).says("goes on");
    project.case("slow", "", "steps: [{say: done}]");
    project.evals(&["run", "--resume", "all", "--changed", "keep"]).exits(0);
    let out = project.evals(&["report", "all", "--format", "json"]).json();
    assert_eq!((&out["summary"]["pass"], &out["summary"]["not_run"]), (&json!(4), &json!(0)));
}

#[test]
fn results_that_a_shard_discarded_do_not_come_back_in_the_merged_run() {
    let project = Project::new();
    project.demo("plain", "");
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    for part in ["1/2", "2/2"] {
        project.evals(&["run", "--harness", "plain", "--shard", part, "--label", part]).exits(0);
    }
    let results = format!("{}/results.jsonl", project.run_named("1/2"));
    let before = project.read(&results);
    project.demo("plain", "timeouts: {start: 59s}");
    project.evals(&["run", "--resume", "1/2", "--changed", "rerun", "--max-time", "0"]).exits(3);
    project.evals(&["run", "--resume", "2/2", "--changed", "rerun"]).exits(0);
    // The results of an engine that was killed before it wrote them anew.
    project.write(&results, &before);
    project.evals(&["merge", "1/2", "2/2", "--label", "all"]).exits(3);
    let counts = || {
        let summary = project.evals(&["report", "all", "--format", "json"]).exits(0).json()["summary"].clone();
        (summary["pass"].clone(), summary["not_run"].clone())
    };
    assert_eq!(counts(), (json!(1), json!(1)));
    project.evals(&["run", "--resume", "all"]).exits(0);
    assert_eq!(counts(), (json!(2), json!(0)));
}

#[test]
fn shards_that_ran_a_changed_case_again_make_one_run() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", PASS);
    }
    for part in ["1/2", "2/2"] {
        project.evals(&["run", "--shard", part, "--label", part]).exits(0);
    }
    for case in ["a", "b"] {
        project.case(case, "description: other", PASS);
    }
    project.evals(&["run", "--resume", "1/2", "--changed", "rerun"]).exits(0);
    project.evals(&["merge", "1/2", "2/2"]).exits(2).says("have other inputs");
    project.evals(&["run", "--resume", "2/2", "--changed", "rerun"]).exits(0);
    project.evals(&["merge", "1/2", "2/2", "--label", "all"]).exits(0);
    let report = project.evals(&["report", "all", "--format", "json"]).exits(0).json();
    assert_eq!((&report["summary"]["pass"], &report["summary"]["not_run"]), (&json!(2), &json!(0)));
}

#[test]
fn a_merged_run_stands_for_its_shards() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", PASS);
    }
    for part in ["1/2", "2/2"] {
        project.evals(&["run", "--shard", part, "--label", part]).exits(0);
    }
    project.evals(&["merge", "1/2", "2/2"]).exits(0);
    let latest = project.evals(&["report", "latest", "--format", "json"]).json();
    assert_eq!(format!(".evals/runs/{}", latest["run"].as_str().unwrap()), merged(&project));
    let history = project.evals(&["history", "--format", "json"]).json();
    let points: BTreeMap<String, usize> = history["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| (cell["case"].as_str().unwrap().to_owned(), cell["points"].as_array().unwrap().len()))
        .collect();
    assert_eq!(points, BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 1)]));
    // Shards from other machines are paths, and the run is written where it is asked for.
    fs::rename(project.path(".evals/runs"), project.path("shards")).unwrap();
    let runs = fs::read_dir(project.path("shards")).unwrap().map(|it| it.unwrap().path());
    let runs: Vec<String> =
        runs.filter(|run| !run.join("merged.json").exists()).map(|it| it.display().to_string()).collect();
    let paths: Vec<&str> = runs.iter().map(String::as_str).collect();
    project.evals(&[&["merge", "-o", "made"], &*paths].concat()).exits(0);
    assert_eq!(fs::read_dir(project.path("made")).unwrap().count(), 1);
}

#[test]
fn the_newest_merged_run_is_found_and_kept_before_its_shards() {
    let project = five();
    for part in ["1/2", "2/2"] {
        project.evals(&[&ARGS[..], &["--shard", part, "--label", "both"]].concat());
    }
    let shards = project.runs();
    let merge = || project.evals(&[&["merge"], &*shards.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    merge().exits(1);
    merge().exits(1);
    let report = project.evals(&["report", "both", "--format", "json"]).json();
    assert_eq!(report["results"].as_array().unwrap().len(), 10, "a label that they share names the merged run");
    let history = project.evals(&["history", "--format", "json"]).json();
    let points = |cell: &Value| cell["points"].as_array().unwrap().len();
    assert!(history["cells"].as_array().unwrap().iter().all(|cell| points(cell) == 1), "{history}");
    project.evals(&["prune", "--keep", "1"]).exits(0);
    assert!(merged(&project).ends_with(report["run"].as_str().unwrap()));
}

#[test]
fn a_shared_label_stands_for_all_shards_of_the_newest_plan() {
    let project = five();
    let run = |part: &str| {
        let code = project.evals(&[&ARGS[..], &["--shard", part, "--label", "sh"]].concat()).code;
        assert!([0, 1, 3].contains(&code), "{code}");
    };
    ["1/2", "2/2"].into_iter().for_each(run);
    project.evals(&["merge", "sh"]).exits(1).says("merged 2 shards");
    // The merged run has the label, too, and is not a shard.
    project.evals(&["merge", "sh", "--label", "again"]).exits(1).says("merged 2 shards");
    ["1/3", "2/3"].into_iter().for_each(run);
    project.evals(&["merge", "sh"]).exits(2).says("shard 3/3 is missing").says("note: left out, because their plan");
    run("3/3");
    project.evals(&["merge", "sh", "--label", "three"]).exits(1).says("merged 3 shards");
    run("3/3");
    // An earlier result of the shard is not chosen silently.
    project.evals(&["merge", "sh"]).exits(2).says("shard 3/3 is given twice");
}

#[test]
fn a_run_that_a_label_and_another_argument_name_is_one_shard() {
    let project = five();
    for part in ["1/2", "2/2"] {
        project.evals(&[&ARGS[..], &["--shard", part, "--label", "sh"]].concat());
    }
    let runs = project.runs();
    let both: Vec<&str> = runs.iter().map(String::as_str).collect();
    project.evals(&["merge", "sh", both[0]]).exits(1).says("merged 2 shards");
    project.evals(&["merge", both[1], "sh", both[0], "--label", "all"]).exits(1).says("merged 2 shards");
    project.evals(&["merge", "sh", both[0], both[0]]).exits(2).says("is given twice");
}

#[test]
fn a_merged_run_comes_before_a_shard_of_the_same_second() {
    let project = Project::new();
    project.case("a", "", PASS);
    for number in 0..3 {
        let label = format!("n{number}");
        project.evals(&["run", "--shard", "1/1", "--label", &label]).exits(0);
        let shard = project.run_named(&label);
        let done = project.evals(&["merge", shard.rsplit('/').next().unwrap()]).exits(0);
        let named = project.evals(&["report", &label, "--format", "json"]).json();
        assert!(done.err.contains(named["run"].as_str().unwrap()), "{label}: {} {named}", done.err);
    }
}

#[test]
fn a_folder_stands_for_the_runs_below_it() {
    let project = five();
    for (part, to) in [("1/2", "shards/one/runs"), ("2/2", "shards/two/runs")] {
        project.evals(&[&ARGS[..], &["--shard", part, "--out", to]].concat());
    }
    project.evals(&["merge", "shards/one"]).exits(2).says("shard 2/2 is missing");
    project.evals(&["merge", "shards"]).exits(1).says("merged 2 shards");
    // The folder of the shards may have the merged run.
    project.evals(&["merge", "shards", "-o", "shards"]).exits(1).says("merged 2 shards");
    project.evals(&["merge", "shards", "-o", "shards"]).exits(1).says("merged 2 shards");
    project.evals(&["merge", "cases"]).exits(2).says("there is no run in the folder cases");
}

#[test]
fn what_finished_does_not_become_what_was_not_run() {
    for change in ["last line", "file"] {
        let project = five();
        for part in ["1/2", "2/2"] {
            shard(&project, part, &[]);
        }
        let journal = format!("{}/journal.jsonl", project.run_named("1/2"));
        let text = project.read(&journal);
        if change == "file" {
            fs::remove_file(project.path(&journal)).unwrap();
        } else {
            let lines: Vec<&str> = text.lines().collect();
            project.write(&journal, &format!("{}\n", lines[..lines.len() - 1].join("\n")));
        }
        project.evals(&["merge", "1/2", "2/2"]).exits(2).says("results.jsonl has 6 results, but the journal records");
    }
}

#[test]
fn shards_of_which_one_was_resumed_without_accepting_are_compared_and_nothing_is_accepted() {
    let project = five();
    for part in ["1/2", "2/2"] {
        shard(&project, part, &["--snapshot", "update"]);
    }
    project.evals(&["run", "--resume", "1/2", "--snapshot", "check"]);
    project.evals(&["merge", "1/2", "2/2"]).says("merged 2 shards");
    assert_eq!(record(&project, &merged(&project))["options"]["snapshot"], "check");
}

#[test]
fn shards_whose_snapshots_were_not_accepted_are_not_merged_without_them() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "graders: [{snapshot: {}}]", PASS);
    }
    let parts = ["1/2", "2/2"];
    for part in parts {
        project.evals(&["run", "--shard", part, "--label", part, "--snapshot", "update"]).exits(0);
        project.without_end(&project.run_named(part));
        // The snapshots of the other shard do not exist.
        ["a", "b"].iter().for_each(|case| _ = fs::remove_dir_all(project.path(&format!("cases/{case}.snapshots"))));
        project.evals(&["run", "--resume", part, "--snapshot", "check"]).exits(1);
    }
    let off = ["merge", "1/2", "2/2", "--snapshot", "off", "--label", "whole"];
    project.evals(&off).exits(2).says("these were not accepted");
    parts.iter().for_each(|part| _ = project.evals(&["snapshot", "accept", part]).exits(0));
    project.evals(&off).exits(0);
    // The merged run knows what its shards accepted.
    project.evals(&["baseline", "set", "whole"]).exits(0);
}

#[test]
fn snapshots_are_compared_as_in_the_strictest_shard() {
    let project = five();
    shard(&project, "1/2", &[]);
    shard(&project, "2/2", &["--snapshot", "check"]);
    project.evals(&["merge", "1/2", "2/2"]).exits(1);
    assert_eq!(record(&project, &merged(&project))["options"]["snapshot"], "check");
}

#[test]
fn a_shard_that_another_version_resumed_is_merged_and_both_versions_are_recorded() {
    let project = five();
    let now = env!("CARGO_PKG_VERSION");
    for (part, version) in [("1/2", "0.0.1".to_owned()), ("2/2", format!("0.0.1, {now}"))] {
        shard(&project, part, &[]);
        let folder = project.run_named(part);
        project.without_digests(&folder);
        let mut changed = record(&project, &folder);
        changed["evals"] = version.into();
        project.write(&format!("{folder}/run.json"), &changed.to_string());
    }
    project.evals(&["merge", "1/2", "2/2"]).exits(1);
    assert_eq!(record(&project, &merged(&project))["evals"], format!("0.0.1, {now}"));
}

#[test]
fn what_a_merge_left_that_was_killed_is_removed_by_the_next() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run", "--shard", "1/1", "--label", "one"]).exits(0);
    project.write(".evals/runs/.unfinished-left/20260101-000000-0000/.lock", "");
    // An engine that was killed before it made a lock. Another one may be about to make one.
    for (name, age) in [("old", 100), ("new", 0)] {
        let folder = project.path(&format!(".evals/runs/.unfinished-{name}"));
        fs::create_dir(&folder).unwrap();
        let changed = SystemTime::now() - Duration::from_secs(age);
        fs::File::open(&folder).unwrap().set_modified(changed).unwrap();
    }
    project.evals(&["merge", "one"]).exits(0);
    let left = ["left", "old", "new"].map(|name| project.path(&format!(".evals/runs/.unfinished-{name}")).exists());
    assert_eq!(left, [false, false, true]);
}

#[test]
fn trials_are_not_added_to_a_part_of_a_plan() {
    let project = five();
    let args = ["run", "--trials", "auto", "--harness", "demo", "--harness", "plain", "--shard", "1/2"];
    project.evals(&args).exits(2).says("--shard 1/2 plays a part of them");
    project.evals(&["run", "--shard", "6/6"]).exits(2).says("contains none of the 5 cases");
}

#[test]
fn a_shard_is_no_baseline_and_its_reports_begin_with_its_number() {
    let project = five();
    shard(&project, "2/2", &[]);
    let refused = project.evals(&["baseline", "set", "2/2"]).exits(2);
    refused.says("is shard 2/2 of a plan").says("`evals merge`").says("--file");
    assert!(!project.path("cases/baseline.json").exists());
    project.evals(&["baseline", "set", "2/2", "--file", "part.json"]).exits(0);
    project.evals(&["report", "2/2"]).exits(0).says(", shard 2/2:");
    project.evals(&["report", "2/2", "--format", "markdown"]).exits(0).says("evals: shard 2/2: ");
    // The only shard is the whole plan.
    shard(&project, "1/1", &[]);
    project.evals(&["baseline", "set", "1/1"]).exits(0);
    assert!(!project.evals(&["report", "1/1", "--format", "markdown"]).out.contains("evals: shard"));
}

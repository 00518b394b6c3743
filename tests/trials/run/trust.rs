//! Changed files of a run are reported, and do not count: the verdict is the one that was graded.

use std::fs;

use serde_json::{Value, json};

use super::again::{RUN, project};
use crate::project::{Project, lines};

const FAILS: &str = "graders: [{output: {equals: something else}}]";
const TRIAL: &str = "a/sh/default/1";

fn failed() -> Project {
    let project = project("true");
    project.case("a", FAILS, "");
    project.evals(&RUN).exits(1);
    project
}

fn summary(project: &Project) -> Value {
    project.evals(&["report", "--format", "json"]).exits(0).json()
}

fn rewrite_plan(project: &Project, change: impl Fn(&mut Value)) {
    let path = format!("{}/run.json", project.run_folder());
    let mut record: Value = serde_json::from_str(&project.read(&path)).unwrap();
    change(&mut record);
    project.write(&path, &record.to_string());
}

const PLAN: &str = "run.json was changed after the trial was graded";

/// Turns the stored failure into a pass.
fn forge(project: &Project) -> Value {
    let mut result = project.result(TRIAL);
    (result["verdict"], result["score"]) = (json!("pass"), json!(1.0));
    result["grades"][0]["passed"] = json!(true);
    project.write(&format!("{}/trials/{TRIAL}/result.json", project.run_folder()), &result.to_string());
    result
}

fn rewrite_journal(project: &Project, change: impl Fn(Vec<String>) -> Vec<String>) {
    let path = format!("{}/journal.jsonl", project.run_folder());
    let lines = change(project.read(&path).lines().map(str::to_owned).collect());
    project.write(&path, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
}

#[track_caller]
fn does_not_count(project: &Project, why: &str) {
    let report = summary(project);
    assert_eq!((&report["summary"]["pass"], &report["summary"]["errored"]), (&json!(0), &json!(1)), "{report}");
    assert_eq!(report["exit_code"], 3);
    let error = &report["results"][0]["error"];
    assert_eq!(error["category"], "internal");
    assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    assert!(report["notes"].to_string().contains("not the ones that were graded"), "{report}");
}

#[test]
fn a_forged_result_is_told_and_counts_in_no_command() {
    let project = failed();
    let result = forge(&project);
    project.write(&format!("{}/results.jsonl", project.run_folder()), &format!("{result}\n"));
    does_not_count(&project, "result.json was changed");
    let text = "the journal has another digest";
    project.evals(&["report"]).exits(0).says(text);
    project.evals(&["show", "latest", "a"]).exits(0).says(text);
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    assert_eq!((&again["summary"]["pass"], &again["summary"]["errored"]), (&json!(0), &json!(1)), "{again}");
    fs::remove_dir_all(project.path(&format!(".evals/runs/{}", again["run"].as_str().unwrap()))).unwrap();
    project.evals(&["snapshot", "check", "latest"]).says("was changed after it was graded");
    let run = project.runs()[0].clone();
    let compared = project.evals(&["compare", &run, &run]);
    assert!(compared.code != 0, "{compared:?}");
    compared.says(text);
    project.evals(&["run", "--resume", "latest"]).exits(3).says(text);
    // The trial is run again with the errored trials.
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(1).says(text);
    assert_eq!(summary(&project)["summary"]["fail"], 1);
}

#[test]
fn a_result_that_was_changed_beside_results_that_were_not_is_told_by_every_command() {
    let project = project("true");
    project.case("a", FAILS, "");
    project.case("b", FAILS, "");
    project.evals(&RUN).exits(1);
    assert_eq!(summary(&project)["summary"]["fail"], 2);
    forge(&project);
    // The journal confirms the copy in results.jsonl.
    let report = summary(&project);
    assert_eq!((&report["summary"]["fail"], &report["summary"]["errored"]), (&json!(2), &json!(0)), "{report}");
    for command in [&["report"][..], &["show", "latest", "a"]] {
        project.evals(command).exits(0).says("from another copy");
    }
    // Without a copy, it does not count.
    fs::remove_file(project.path(&format!("{}/results.jsonl", project.run_folder()))).unwrap();
    let report = summary(&project);
    assert_eq!((&report["summary"]["fail"], &report["summary"]["errored"]), (&json!(1), &json!(1)), "{report}");
    for command in [&["report"][..], &["list", "runs"], &["history"], &["show", "latest", "a"]] {
        project.evals(command).exits(0).says("the journal has another digest");
    }
    project.evals(&["baseline", "set"]).says("the journal has another digest");
}

#[test]
fn results_that_were_forged_beside_trials_that_were_not_are_not_believed() {
    let project = failed();
    let before = project.of_trial(TRIAL, "result.json");
    let result = forge(&project);
    project.write(&format!("{}/trials/{TRIAL}/result.json", project.run_folder()), &before);
    project.write(&format!("{}/results.jsonl", project.run_folder()), &format!("{result}\n"));
    let ran = project.evals(&["report", "--format", "json"]).exits(0);
    let report = ran.json();
    assert_eq!(report["summary"]["fail"], 1);
    told_of_line(&ran.err, &report, 1, "it was changed: the journal has another digest");
    // The file is repaired, and the changed one is kept.
    let again = project.evals(&["report", "--format", "json"]).exits(0);
    assert!(!again.err.contains("results.jsonl") && again.json()["summary"]["fail"] == 1, "{again:?}");
    let kept = project.read(&format!("{}/results.changed-1.jsonl", project.run_folder()));
    assert_eq!(kept, format!("{result}\n"));
}

#[test]
fn lines_that_are_removed_from_the_journal_are_told_and_no_failure_becomes_a_pass_in_silence() {
    let two = || {
        let project = project("true");
        project.case("a", FAILS, "");
        project.case("b", "", "");
        project.evals(&[&RUN[..], &["--jobs", "1"]].concat()).exits(1);
        project
    };
    // Nothing but the beginning of the first trial is left.
    let project = two();
    rewrite_journal(&project, |lines| lines.into_iter().take(1).collect());
    let run = project.runs()[0].clone();
    for args in [&["report"][..], &["history"], &["run", "--resume", &run]] {
        let ran = project.evals(args);
        let said: Vec<&str> = ran.err.split_whitespace().filter(|word| *word != "│").collect();
        let why = "line 1 of results.jsonl has a result, but only 0 trials finished";
        assert!(said.join(" ").contains(why), "{args:?} {ran:?}");
    }
    project.evals(&["run", "--resume", &run]).exits(2).says("remove results.jsonl to play the trials again");
    // The end of the failed trial is removed.
    let project = two();
    std::fs::remove_file(project.path(&format!("{}/results.jsonl", project.run_folder()))).unwrap();
    rewrite_journal(&project, |lines| {
        let is_end = |line: &String| line.contains("\"finished\"") && line.contains("\"a\"");
        lines.into_iter().filter(|line| !is_end(line)).collect()
    });
    for args in [&["report"][..], &["run", "--resume", "latest"], &["report"]] {
        project
            .evals(args)
            .says("journal.jsonl was changed after the run, line ")
            .says("or the line before it was removed");
    }
}

/// Checks that both standard error and the report name the file and the line.
#[track_caller]
fn told_of_line(err: &str, report: &Value, line: u64, why: &str) {
    let warnings = report["results"].as_array().unwrap().iter().flat_map(|it| it["warnings"].as_array().unwrap());
    let warning = warnings.clone().find(|warning| warning["code"] == "results_changed");
    let warning = warning.unwrap_or_else(|| panic!("no warning: {report}"));
    assert_eq!(warning["line"], line, "{warning}");
    assert!(warning["file"].as_str().unwrap().ends_with("results.jsonl"), "{warning}");
    assert!(warning["why"].as_str().unwrap().contains(why), "{warning}");
    for text in [err, &report["notes"].to_string()] {
        assert!(
            text.contains("results.jsonl was changed after the run") && text.contains(&format!("line {line}")),
            "{text}"
        );
    }
}

#[test]
fn results_that_were_changed_removed_or_added_are_told_with_their_line_by_every_command_that_reads_them() {
    let project = project("true");
    project.case("a", FAILS, "");
    project.case("b", "", "");
    project.case("c", "requires: {tracing: true}", "");
    project.evals(&RUN).exits(1);
    let path = format!("{}/results.jsonl", project.run_folder());
    let good = project.read(&path);
    let all: Vec<&str> = good.lines().collect();
    let passed = all[0].replacen("\"verdict\":\"fail\"", "\"verdict\":\"pass\"", 1);
    let mut skipped: Value = serde_json::from_str(all[2]).unwrap();
    assert_eq!(skipped["verdict"], "skipped");
    (skipped["verdict"], skipped["score"]) = (json!("pass"), json!(1.0));
    skipped.as_object_mut().unwrap().remove("skipped");
    let skipped = skipped.to_string();
    for (lines, line, why) in [
        (vec![&*passed, all[1], all[2]], 1, "it was changed"),
        (vec![all[0], all[1], &skipped], 3, "run.json records it as skipped"),
        (vec![all[0], all[1]], 3, "the file ends too early"),
        (vec![all[0], all[1], all[2], all[1]], 4, "only 3 trials finished"),
        (vec![all[1], all[0], all[2]], 1, "it was changed"),
        (vec![all[0], "{\"case\": 1}", all[2]], 2, "invalid type"),
        (vec![all[0], "", all[2]], 2, "EOF"),
    ] {
        for command in [
            &["report", "--format", "json"][..],
            &["list", "runs"],
            &["show", "latest"],
            &["compare", "latest", "latest"],
        ] {
            project.write(&path, &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
            let ran = project.evals(command);
            assert!(ran.err.contains("results.jsonl was changed after the run"), "{command:?} {why}: {ran:?}");
            if command[0] == "report" {
                told_of_line(&ran.err, &ran.json(), line, why);
                let summary = &ran.json()["summary"];
                assert_eq!([&summary["pass"], &summary["fail"], &summary["skipped"]], [1, 1, 1]);
            }
            assert_eq!(project.read(&path), good, "{why}");
        }
    }
}

#[test]
fn a_trial_that_run_json_skips_afterwards_is_told() {
    let project = failed();
    let path = format!("{}/run.json", project.run_folder());
    let mut record: Value = serde_json::from_str(&project.read(&path)).unwrap();
    record["trials"][0]["skip"] = json!("not today");
    project.write(&path, &record.to_string());
    does_not_count(&project, PLAN);
    // The same holds for a version whose journal does not name `run.json`.
    rewrite_plan(&project, |record| _ = record["trials"][0].as_object_mut().unwrap().remove("skip"));
    project.without_digests(&project.run_folder());
    assert_eq!(summary(&project)["summary"]["fail"], 1);
    rewrite_plan(&project, |record| record["trials"][0]["skip"] = json!("not today"));
    does_not_count(&project, "run.json records it as skipped");
}

#[test]
fn a_line_of_the_journal_that_was_changed_removed_or_added_is_noticed() {
    for (how, why) in [
        ("changed", "line 2 of journal.jsonl was changed"),
        ("without digests", "line 2 of journal.jsonl was changed"),
        ("added", "was changed, or the line before it was removed"),
        ("removed", "line 1 of journal.jsonl was changed, or the line before it was removed"),
    ] {
        let project = failed();
        let digest = |result: &Value| blake3::hash(result.to_string().as_bytes()).to_hex().to_string();
        let result = forge(&project);
        rewrite_journal(&project, |mut all| {
            let mut last: Value = serde_json::from_str(&all[1]).unwrap();
            (last["verdict"], last["digest"]) = (json!("pass"), json!(digest(&result)));
            match how {
                "changed" => all[1] = last.to_string(),
                "without digests" => {
                    last.as_object_mut().unwrap().retain(|key, _| key != "digest" && key != "chain");
                    all[1] = last.to_string();
                }
                "added" => all.push(last.to_string()),
                _ => _ = all.remove(0),
            }
            all
        });
        if how == "removed" {
            // The remaining verdict is that of an attempt that never began.
            let report = summary(&project);
            assert_eq!((&report["summary"]["pass"], &report["exit_code"]), (&json!(0), &json!(3)), "{report}");
        } else {
            does_not_count(&project, why);
        }
    }
}

#[test]
fn a_verdict_that_was_taken_out_of_its_line_brings_back_no_earlier_one() {
    let project = project("true");
    project.case("a", "graders: [{output: {equals: ok}}]", "");
    project.evals(&RUN).exits(0);
    project.case("a", FAILS, "");
    project.evals(&["run", "--resume", "latest", "--changed", "rerun"]).exits(1);
    rewrite_journal(&project, |mut all| {
        let last = all.iter_mut().rfind(|line| line.contains("finished")).unwrap();
        *last = last.replace(r#","verdict":"fail""#, "");
        all
    });
    does_not_count(&project, "of journal.jsonl was changed");
}

#[test]
fn what_an_agent_writes_into_the_run_while_it_goes_on_changes_no_verdict() {
    // The agent of the second trial rewrites the first one: the result, the results and a journal whose digests agree.
    let project = Project::new();
    let forge = r#"
import glob, hashlib, json, os, sys
root = sys.argv[1]
here = glob.glob(root + "/.evals/runs/*/trials/a/sh/default/1/result.json")
print("ok")
if here:
    result = json.load(open(here[0]))
    result.update(verdict="pass", score=1.0)
    open(here[0], "w").write(json.dumps(result))
    run = here[0].split("/trials/")[0]
    lines = [line for line in open(run + "/journal.jsonl").read().splitlines()]
    out = []
    for line in lines:
        line = json.loads(line)
        line.pop("chain"); line.pop("digest", None)
        if line["event"] == "finished": line["verdict"] = "pass"
        out.append(json.dumps(line, separators=(",", ":")))
    os.unlink(run + "/journal.jsonl")
    open(run + "/journal.jsonl", "w").write("".join(line + "\n" for line in out))
    record = json.load(open(run + "/run.json"))
    record.pop("digests"); record["trials"] = record["trials"][:1]
    open(run + "/run.json", "w").write(json.dumps(record))
"#;
    project.write("agent.py", forge);
    let (agent, root) = (project.path("agent.py"), project.path(""));
    let command = format!("command: [python3, {}, {}]", agent.display(), root.display());
    project.harness("sh", &format!("adapter: output-only\n{command}\nprompt-via: stdin"));
    project.case("a", "trials: 2\ngraders: [{output: {equals: something else}}]", "");
    let ran = project.evals(&["run", "--harness", "sh", "--jobs", "1"]).exits(1);
    let ran = ran.says("the journal was changed during the run");
    ran.says("run.json was changed during the run").says("the changed file is kept as");
    let report = summary(&project);
    assert_eq!(
        (&report["summary"]["pass"], &report["summary"]["fail"], &report["summary"]["errored"]),
        (&json!(0), &json!(2), &json!(0)),
        "{report}"
    );
    assert_eq!(project.journal().len(), 4);
    assert!(project.path(&format!("{}/journal.changed-1.jsonl", project.run_folder())).is_file(), "it is evidence");
}

#[test]
fn files_that_lie_in_a_trial_before_it_begins_are_no_attempt() {
    let project = project("true");
    let planted = r#"mkdir -p "$T/attempts/1" "$T/attempts/7"; for at in "$T" "$T/attempts/1" "$T/attempts/7"; do echo '{"case":"b","harness":"sh","model":{},"trial":1,"verdict":"pass","score":1.0,"grades":[],"metrics":{"cost_usd":9.0},"attempt":1,"arm":"default","shape":[],"warnings":[]}' > "$at/result.json"; done; echo ok"#;
    let planted = planted.replace("$T", "$1/$(ls \"$1\" | head -n 1)/trials/b/sh/default/1");
    project.write("agent.sh", &format!("if ! test -e started; then {planted}; fi"));
    let (agent, runs) = (project.path("agent.sh"), project.path(".evals/runs"));
    let command = format!("command: [sh, {}, {}]", agent.display(), runs.display());
    project.harness("sh", &format!("adapter: output-only\n{command}\nprompt-via: stdin"));
    project.case("a", "", "");
    project.case("b", FAILS, "");
    project.evals(&["run", "--harness", "sh", "--jobs", "1"]).exits(1);
    let report = summary(&project);
    assert_eq!((&report["summary"]["pass"], &report["summary"]["fail"]), (&json!(1), &json!(1)), "{report}");
    let result = project.result("b/sh/default/1");
    assert_eq!((&result["attempt"], &result["earlier_attempts"]), (&json!(1), &Value::Null), "{result}");
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "foreign_files");
    assert_eq!(told.unwrap()["names"], json!(["attempts", "result.json"]));
    let folder =
        format!("{}/trials/b/sh/default/1/{}", project.run_folder(), told.unwrap()["moved_to"].as_str().unwrap());
    assert_eq!(project.files(&folder).len(), 3, "nothing of it is deleted");
}

#[test]
fn a_run_without_digests_is_read_and_a_verdict_that_differs_in_it_does_not_count() {
    let project = failed();
    let folder = project.run_folder();
    project.without_digests(&folder);
    fs::remove_file(project.path(&format!("{folder}/results.jsonl"))).unwrap();
    assert_eq!(summary(&project)["summary"]["fail"], 1);
    fs::remove_file(project.path(&format!("{folder}/results.jsonl"))).unwrap();
    forge(&project);
    does_not_count(&project, "its journal line says `fail`, but its result.json says `pass`");
    // The run is resumed, and new lines have digests.
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(1);
    assert_eq!(summary(&project)["summary"]["fail"], 1);
    let last = lines(&project.read(&format!("{folder}/journal.jsonl"))).pop().unwrap();
    assert!(last["chain"].is_string() && last["digest"].is_string(), "{last}");
}

#[test]
fn a_trace_that_was_changed_is_judged_by_nobody() {
    let project = project("true");
    project.case("a", FAILS, "");
    project.evals(&RUN).exits(1);
    let trace = project.of_trial(TRIAL, "trace.jsonl");
    let forged = trace.replace(r#""output":"ok""#, r#""output":"something else""#);
    assert_ne!(trace, forged);
    project.write(&format!("{}/trials/{TRIAL}/trace.jsonl", project.run_folder()), &forged);
    project.evals(&["show", "latest", "a"]).exits(0).says("the trace is not the one that was graded");
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    assert_eq!(again["summary"]["ungraded"], 1, "{again}");
    assert!(again["results"][0]["warnings"].to_string().contains("its trace.jsonl was changed"), "{again}");
}

/// Makes a run in which one trial passes and one fails, and whose case requires both.
fn one_of_two() -> Project {
    let project = project("true");
    let mark = project.path("mark").display().to_string();
    project.write("agent.sh", &format!("if test -e '{mark}'; then echo no; else touch '{mark}'; echo ok; fi\n"));
    project.case("a", "trials: 2\ngraders: [{output: {equals: ok}}]", "");
    project.case("b", "requires: {tracing: true}", "");
    project.evals(&[&RUN[..], &["--jobs", "1"]].concat()).exits(1);
    assert_eq!(summary(&project)["summary"]["pass"], 1);
    project
}

#[track_caller]
fn all_errored(project: &Project, results: usize) {
    let report = summary(project);
    assert_eq!(report["exit_code"], 3, "{report}");
    assert_eq!(report["summary"]["errored"], results, "{report}");
    for result in report["results"].as_array().unwrap() {
        assert_eq!(
            (&result["error"]["category"], result["warnings"][0]["code"].as_str()),
            (&json!("internal"), Some("not_as_judged"))
        );
        assert!(result["error"]["message"].as_str().unwrap().contains(PLAN), "{result}");
    }
}

#[test]
fn a_plan_that_was_changed_after_its_trials_were_judged_is_not_believed() {
    type Change = fn(&mut Value);
    let changes: [(Change, usize); 5] = [
        (|record| record["cases"][0]["pass"] = json!("any"), 3),
        (|record| record["cases"][0]["threshold"] = json!(0.0), 3),
        (|record| _ = record["trials"].as_array_mut().unwrap().remove(1), 2),
        (|record| record["digests"] = json!(false), 3),
        (|record| record["replaces"] = json!("0".repeat(64)), 3),
    ];
    let project = one_of_two();
    let path = format!("{}/run.json", project.run_folder());
    let honest = project.read(&path);
    assert!(!honest.contains("replaces"), "{honest}");
    for (change, errored) in changes {
        rewrite_plan(&project, change);
        all_errored(&project, errored);
        let ran = project.evals(&["report", "--format", "json"]).exits(0);
        assert!(!ran.err.contains("results.jsonl"), "only run.json was changed: {}", ran.err);
        project.evals(&["show", "latest", "a"]).says(PLAN);
        project.evals(&["grade", "latest"]).exits(3).says(PLAN);
        let refused = project.evals(&["baseline", "set"]);
        assert!(refused.code != 0, "{refused:?}");
        let accepted = project.evals(&["snapshot", "accept"]);
        assert!(accepted.code != 0, "{accepted:?}");
        accepted.says("was changed after it was graded");
        // White space does not count.
        project.write(&path, &serde_json::from_str::<Value>(&honest).unwrap().to_string());
        project.write(&path, &honest);
        assert_eq!(summary(&project)["summary"]["pass"], 1);
        // Runs of one second are in no order by name.
        for run in project.runs().into_iter().filter(|run| !path.contains(run.as_str())) {
            fs::remove_dir_all(project.path(&format!(".evals/runs/{run}"))).unwrap();
        }
    }
    // Without a judged trial there is nothing to show.
    rewrite_plan(&project, |record| record["trials"] = json!([]));
    project.evals(&["report"]).exits(2).says("run.json was changed").says("restore a copy");
}

#[test]
fn a_changed_plan_stays_unbelieved_when_the_run_goes_on_with_it() {
    let project = one_of_two();
    rewrite_plan(&project, |record| {
        record["cases"][0]["pass"] = json!("any");
        let mut more = record["trials"][1].clone();
        more["trial"] = json!(3);
        record["trials"].as_array_mut().unwrap().insert(2, more);
    });
    project.evals(&["run", "--resume", "latest"]).exits(3).says(PLAN);
    let report = summary(&project);
    assert_eq!(
        report["summary"],
        json!({"pass": 0, "fail": 1, "ungraded": 0, "errored": 2, "skipped": 1, "not_run": 0})
    );
    project.evals(&["run", "--resume", "latest", "--fail-under", "0.1"]);
    assert_eq!(summary(&project)["summary"]["errored"], 2, "an honest rewrite makes it no better");
    // A trial that is run again is judged by the current plan.
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(1);
    assert_eq!(summary(&project)["summary"]["errored"], 0);
}

#[test]
fn a_plan_that_the_engine_wrote_anew_is_believed_and_no_other() {
    let project = one_of_two();
    let folder = project.run_folder();
    let (path, journal) = (format!("{folder}/run.json"), format!("{folder}/journal.jsonl"));
    let first = project.read(&path);
    let passed = |project: &Project| summary(project)["summary"]["pass"] == 1;
    for (number, score) in [(1, "0.9"), (2, "0.8")] {
        project.evals(&["run", "--resume", "latest", "--fail-under", score]).exits(1);
        assert!(passed(&project));
        let planned = project.journal().into_iter().filter(|line| line["event"] == "planned").count();
        assert_eq!(planned, number, "{}", project.read(&journal));
        // An engine that was killed between the two writes has not written the last line.
        let lines = project.read(&journal);
        let (before, _) = lines.trim_end().rsplit_once('\n').unwrap();
        project.write(&journal, &format!("{before}\n"));
        assert!(passed(&project));
        project.evals(&["run", "--resume", "latest"]).exits(1);
        assert_eq!(project.journal().len(), lines.lines().count());
        assert!(passed(&project));
        rewrite_plan(&project, |record| record["cases"][0]["pass"] = json!("any"));
        all_errored(&project, 3);
        let mut honest: Value = serde_json::from_str(&project.read(&path)).unwrap();
        honest["cases"][0]["pass"] = json!("all");
        project.write(&path, &honest.to_string());
        assert!(passed(&project));
    }
    // The earlier plan is not the one that counts.
    project.write(&path, &first);
    all_errored(&project, 3);
}

#[test]
fn digests_that_were_taken_away_do_not_make_a_run_an_old_one() {
    let project = failed();
    forge(&project);
    rewrite_journal(&project, |all| {
        let without = |line: &String| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line.as_object_mut().unwrap().retain(|key, _| !["chain", "digest", "plan"].contains(&key.as_str()));
            if line["event"] == "finished" {
                line["verdict"] = json!("pass");
            }
            line.to_string()
        };
        all.iter().map(without).collect()
    });
    rewrite_plan(&project, |record| record["digests"] = json!(false));
    does_not_count(&project, "its journal line has none");
    // Or from the first lines alone, in a run of a version whose lines do not name `run.json`.
    let project = one_of_two();
    rewrite_plan(&project, |record| _ = record.as_object_mut().unwrap().remove("digests"));
    rewrite_journal(&project, |all| {
        let mut last = String::new();
        let mut out = Vec::new();
        for (number, line) in all.iter().enumerate() {
            let mut line: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
            line.retain(|key, _| !["chain", "plan"].contains(&key.as_str()));
            let body = Value::Object(line).to_string();
            last = blake3::hash(format!("{last}{body}").as_bytes()).to_hex().to_string()[..32].to_owned();
            let chained = format!("{},\"chain\":\"{last}\"}}", body.strip_suffix('}').unwrap());
            out.push(if number < 2 { body } else { chained });
        }
        out
    });
    let report = summary(&project);
    assert_eq!((&report["summary"]["pass"], &report["summary"]["errored"]), (&json!(0), &json!(1)), "{report}");
    assert!(report.to_string().contains("digests were removed"), "{report}");
}

#[test]
fn a_snapshot_is_not_accepted_from_a_trace_that_was_changed() {
    let project = failed();
    let path = format!("{}/trials/{TRIAL}/trace.jsonl", project.run_folder());
    project.write(&path, &project.read(&path).replace("ok", "no"));
    for command in ["accept", "check"] {
        for of in [&["latest"][..], &[&*path, "--case", "cases/a.yaml"]] {
            let ran = project.evals(&[&["snapshot", command][..], of].concat());
            assert_eq!(ran.code, if command == "accept" { 2 } else { 3 }, "{ran:?}");
            ran.says("has a trace that was changed after it was graded");
        }
    }
    project.evals(&["show", &path]).exits(0).says("the trace is not the one that was graded");
    assert!(!project.path("cases/a.snapshots").exists());
    // The results still count.
    assert_eq!(summary(&project)["summary"]["fail"], 1);
}

#[test]
fn a_kept_workspace_that_was_edited_after_the_run_makes_nothing_pass() {
    let project = project("echo bad > f.txt; echo '#!/bin/sh' > run; ln -s f.txt link; mkdir empty");
    project.case("a", "graders: [{files: {contains: {f.txt: good}}}, {output: {equals: ok}}]", "");
    type Edit = fn(&std::path::Path);
    let edits: [(&str, Edit); 6] = [
        ("content", |at| fs::write(at.join("f.txt"), "good\n").unwrap()),
        ("added", |at| fs::write(at.join("new"), "").unwrap()),
        ("removed", |at| fs::remove_file(at.join("run")).unwrap()),
        ("mode", |at| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(at.join("run"), mode).unwrap();
        }),
        ("link", |at| {
            fs::remove_file(at.join("link")).unwrap();
            std::os::unix::fs::symlink("run", at.join("link")).unwrap();
        }),
        ("folder", |at| fs::remove_dir(at.join("empty")).unwrap()),
    ];
    for (name, edit) in edits {
        project.evals(&RUN).exits(1);
        let run = project.runs().pop().unwrap();
        let trial = format!(".evals/runs/{run}/trials/{TRIAL}");
        assert!(project.result(TRIAL)["files"]["workspace"].is_string(), "{name}");
        // An unchanged workspace has the same verdict, also as a copy, and from a derived run.
        let again = project.evals(&["grade", &run, "--format", "json"]).exits(1).json();
        assert_eq!(again["results"][0]["verdict"], "fail", "{name}");
        let derived = again["run"].as_str().unwrap();
        edit(&project.path(&format!("{trial}/workspace")));
        for graded in [&*run, derived] {
            let ran = project.evals(&["grade", graded, "--format", "json"]).exits(3);
            assert!(ran.err.contains("the kept workspace was changed after the trial was graded"), "{name}: {ran:?}");
            let result = ran.json()["results"][0].clone();
            assert_eq!(result["grades"][0]["outcome"], "ungraded", "{name}: {result}");
            assert_eq!(result["grades"][1]["passed"], true, "{name}: {result}");
        }
        // The same holds for the trace alone, beside that workspace.
        let ran = project.evals(&["grade", &format!("{trial}/trace.jsonl"), "--case", "cases/a.yaml"]).exits(3);
        ran.says("the kept workspace was changed after the trial was graded");
        // A version without digests is trusted as before.
        if name == "content" {
            project.without_digests(&format!(".evals/runs/{run}"));
            project.evals(&["grade", &run]).exits(0).says("fail -> pass");
        }
        fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn a_trace_beside_its_result_is_held_to_its_digest_when_it_is_named_alone() {
    let project = failed();
    let trace = format!("{}/trials/{TRIAL}/trace.jsonl", project.run_folder());
    project.write(&trace, &project.read(&trace).replace("\"output\":\"ok\"", "\"output\":\"something else\""));
    let ran = project.evals(&["grade", &trace, "--case", "cases/a.yaml"]).exits(3);
    ran.says("its trace.jsonl was changed: result.json has another digest");
}

#[test]
fn a_trace_beside_a_result_that_cannot_be_read_is_not_trusted() {
    let project = failed();
    let trial = format!("{}/trials/{TRIAL}", project.run_folder());
    let trace = format!("{trial}/trace.jsonl");
    let result = project.read(&format!("{trial}/result.json"));
    project.write(&format!("{trial}/result.json"), &result[..result.len() / 2]);
    let why = "the result.json beside it cannot be read";
    project.evals(&["grade", &trace, "--case", "cases/a.yaml"]).exits(3).says(why);
    project.evals(&["show", &trace]).exits(0).says(why);
}

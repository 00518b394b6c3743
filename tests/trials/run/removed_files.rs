//! Files of a run that were removed, by an agent or afterwards: results that the journal confirms count, others are errored and
//! can be run again, and every report says what is missing.

use std::fs;

use serde_json::{Value, json};

use crate::project::Project;

const PASS: &str = "steps: [{say: done}]";

/// A run of two trials that pass.
fn run_of_two() -> (Project, String) {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "", PASS);
    project.evals(&["run"]).exits(0);
    let run = project.run_folder();
    (project, run)
}

fn report(project: &Project) -> Value {
    project.evals(&["report", "latest", "--format", "json"]).exits(0).json()
}

fn remove(project: &Project, path: &str) {
    let path = project.path(path);
    if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
}

#[test]
fn a_removed_result_comes_from_results_jsonl_and_a_resume_writes_it_again() {
    let (project, run) = run_of_two();
    remove(&project, &format!("{run}/trials/a"));
    let shown = report(&project);
    assert_eq!(shown["summary"]["pass"], 2, "{shown}");
    assert!(shown["notes"].to_string().contains("the result.json of 1 trial was removed or replaced"), "{shown}");
    assert!(shown["results"][0]["warnings"].to_string().contains("result_from_copy"), "{shown}");
    project.evals(&["grade", "latest"]).says("the result.json of a/demo/default/1 was removed or replaced");
    let before = project.read(&format!("{run}/results.jsonl"));
    let newest = ["run", "--resume", run.rsplit('/').next().unwrap()];
    project.evals(&newest).exits(0).says("it was written again from a copy");
    assert_eq!(project.read(&format!("{run}/results.jsonl")), before);
    let restored = project.read(&format!("{run}/trials/a/demo/default/1/result.json"));
    assert_eq!(restored.trim_end(), before.lines().next().unwrap());
    let shown = project.evals(&["report", newest[2], "--format", "json"]).exits(0).json();
    assert!(!shown.to_string().contains("removed or replaced"), "{shown}");
    // What else the folder held is not restored.
    let missing = "files of 1 trial are missing (trace.jsonl, workspace.patch): its result is left";
    assert!(shown["notes"].to_string().contains(missing), "{shown}");
}

#[test]
fn a_trial_whose_result_is_lost_is_errored_and_is_run_again_with_the_errored_ones() {
    let (project, run) = run_of_two();
    for path in ["trials/a", "results.jsonl"] {
        remove(&project, &format!("{run}/{path}"));
    }
    let shown = report(&project);
    assert_eq!((&shown["summary"]["pass"], &shown["summary"]["errored"]), (&json!(1), &json!(1)), "{shown}");
    let graded = project.evals(&["grade", "latest", "--label", "graded", "--format", "json"]).exits(3).json();
    assert_eq!((&graded["summary"]["pass"], &graded["summary"]["errored"]), (&json!(1), &json!(1)), "{graded}");
    project.evals(&["run", "--resume", &run]).exits(3).says("its result.json was removed or replaced");
    project.evals(&["run", "--resume", &run, "--rerun", "errored"]).exits(0);
    let result: Value =
        serde_json::from_str(&project.read(&format!("{run}/trials/a/demo/default/1/result.json"))).unwrap();
    // What the lost attempt had cost is unknown.
    let earlier = json!({"count": 1, "cost_unknown": 1, "missing": 1, "ran_later": true});
    assert_eq!(result["earlier_attempts"], earlier, "{result}");
    project.evals(&["report", &run]).says("1 earlier attempt is missing, and the cost excludes what is missing");
}

#[test]
fn a_run_whose_only_result_is_lost_can_be_read_and_resumed() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    let run = project.run_folder();
    for path in ["trials", "results.jsonl"] {
        remove(&project, &format!("{run}/{path}"));
    }
    assert_eq!(report(&project)["summary"]["errored"], 1);
    project.evals(&["run", "--resume", "latest"]).exits(3);
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(0);
}

/// Runs `a`, and then `b`, whose agent carries out a command first. `$RUN` in it is the folder of the run.
fn while_b_runs(graders: &str, command: &str, more: &[&str]) -> (Project, crate::project::Ran) {
    let project = Project::new();
    let runs = project.path(".evals/runs").display().to_string();
    project.write("agent.sh", &format!("[ \"$1\" = a ] || for RUN in '{runs}'/*; do {command}; done; echo \"$1\"\n"));
    let agent = project.path("agent.sh").display().to_string();
    project.harness("sh", &format!("adapter: output-only\ncommand: [sh, '{agent}', '{{prompt}}']"));
    for case in ["a", "b"] {
        project.write(&format!("cases/{case}.yaml"), &format!("prompt: {case}\ngraders: [{graders}]\n"));
    }
    let ran = project.evals(&[&["run", "--harness", "sh", "--jobs", "1"], more].concat());
    (project, ran)
}

#[test]
fn an_agent_that_removes_the_result_of_another_trial_takes_no_failure_away() {
    for removes in ["rm -rf \"$RUN/trials/a\"", "rm \"$RUN/trials/a/sh/default/1/result.json\""] {
        let (project, ran) = while_b_runs("{output: {equals: b}}", removes, &[]);
        ran.exits(1)
            .says("the result.json of a/sh/default/1 was removed or replaced; it was written again from a copy");
        assert_eq!(project.result("a/sh/default/1")["verdict"], "fail");
        let shown = report(&project);
        assert_eq!((&shown["summary"]["pass"], &shown["summary"]["fail"]), (&json!(1), &json!(1)), "{shown}");
    }
}

#[test]
fn an_agent_that_changes_the_result_of_another_trial_takes_no_failure_away() {
    for changes in [
        "sed -i s/fail/pass/ \"$RUN/trials/a/sh/default/1/result.json\"",
        ": > \"$RUN/trials/a/sh/default/1/result.json\"",
        "(cd \"$RUN/trials/a/sh/default/1\"; rm result.json; mkdir result.json)",
    ] {
        let (project, ran) = while_b_runs("{output: {equals: b}}", changes, &[]);
        ran.exits(1).says("it was written again from a copy").says("the changed file is kept as");
        assert_eq!(project.result("a/sh/default/1")["verdict"], "fail");
        let shown = report(&project);
        assert_eq!((&shown["summary"]["pass"], &shown["summary"]["fail"]), (&json!(1), &json!(1)), "{shown}");
        let trial = format!("{}/trials/a/sh/default/1", project.run_folder());
        assert!(project.path(&trial).join("result.changed-1.json").exists());
    }
}

#[test]
fn an_agent_that_removes_all_trials_ends_the_run_and_takes_no_failure_away() {
    let (project, ran) = while_b_runs("{output: {equals: b}}", "rm -rf \"$RUN/trials\"", &[]);
    ran.exits(4).says("the run cannot continue").says("it was written again from a copy");
    let shown = report(&project);
    assert_eq!((&shown["summary"]["fail"], &shown["summary"]["not_run"]), (&json!(1), &json!(1)), "{shown}");
    let missing = "files of 1 trial are missing (trace.jsonl, workspace.patch)";
    assert!(shown["notes"].to_string().contains(missing), "{shown}");
}

#[test]
fn a_journal_that_was_removed_during_the_run_is_written_again_and_the_report_says_so() {
    let (project, ran) =
        while_b_runs("{stop: {reason: [end_turn]}}", "rm \"$RUN/journal.jsonl\"", &["--reporter", "json"]);
    let ran = ran.exits(0).says("the journal was removed during the run; it was written again");
    assert!(!ran.err.contains("journal.changed"), "{}", ran.err);
    assert!(ran.json()["notes"].to_string().contains("the journal was removed during the run"), "{}", ran.out);
    assert_eq!(project.journal().len(), 4);
}

#[test]
fn results_that_the_journal_does_not_know_are_told() {
    let (project, run) = run_of_two();
    for path in ["journal.jsonl", "results.jsonl"] {
        remove(&project, &format!("{run}/{path}"));
    }
    let told = "the journal does not know 2 results that are in the folders of the trials, so they do not count";
    let shown = report(&project);
    assert_eq!(shown["summary"]["not_run"], 2, "{shown}");
    assert!(shown["notes"].to_string().contains(told), "{shown}");
    project.evals(&["grade", "latest"]).says(told);
    project.evals(&["run", "--resume", &run]).exits(0).says(told);
    assert!(!project.evals(&["report", &run]).exits(0).out.contains("the journal does not know"));
}

#[test]
fn a_shard_that_lost_a_result_names_the_command_that_repairs_it() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", PASS);
    }
    // Limits of a run are no inputs.
    project.evals(&["run", "--shard", "1/2", "--label", "one", "--max-time", "9m"]).exits(0);
    project.evals(&["run", "--shard", "2/2", "--label", "two", "--max-cost", "9", "--fail-fast"]).exits(0);
    let one = project.run_named("one");
    remove(&project, &format!("{one}/trials/a/demo/default/1/result.json"));
    let merge = || project.evals(&["merge", "one", "two"]);
    merge().exits(2).says(&format!("repair the shard with: evals run --resume {one}"));
    project.evals(&["run", "--resume", "one"]).exits(0);
    let missing = "files of 1 trial are missing";
    assert!(!merge().exits(0).out.contains(missing));
    remove(&project, &format!("{one}/trials/a/demo/default/1/trace.jsonl"));
    merge().exits(0).says(missing);
}

#[test]
fn the_cost_of_earlier_attempts_counts_though_an_agent_removes_their_folders() {
    let project = Project::new();
    let (second, runs) = (project.path("second"), project.path(".evals/runs"));
    let line = |subtype: &str, rest: &str| {
        format!(r#"echo '{{"type":"result","subtype":"{subtype}","session_id":"s","num_turns":1,{rest}}}'"#)
    };
    let script = [
        r#"echo '{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}'"#.to_owned(),
        format!("if ! [ -e '{}' ]; then touch '{0}'", second.display()),
        line("error_during_execution", r#""is_error":true,"result":"API Error: 500 boom","total_cost_usd":5.0"#),
        "exit 1; fi".to_owned(),
        format!("rm -rf '{}'/*/trials/a/claude/default/1/attempts", runs.display()),
        line("success", r#""is_error":false,"stop_reason":"end_turn","result":"done","total_cost_usd":0.5"#),
    ];
    project.write("agent.sh", &format!("{}\n", script.join("\n")));
    let agent = project.path("agent.sh").display().to_string();
    project.harness("claude", &format!("adapter: claude-code-stream\ncommand: [sh, '{agent}']"));
    project.case("a", "", "");
    project.evals(&["run", "--harness", "claude", "--retries", "1"]).exits(0);
    let result = project.result("a/claude/default/1");
    assert_eq!(result["earlier_attempts"], json!({"count": 1, "cost_usd": 5.0}), "{result}");
    assert!(result["warnings"].to_string().contains("`attempts`"), "{result}");
    assert_eq!(report(&project)["columns"][0]["cost_usd"], 5.5);
}

#[test]
fn an_agent_of_a_resumed_run_takes_no_earlier_failure_away() {
    let (project, ran) =
        while_b_runs("{output: {equals: b}}", "rm -rf \"$RUN/trials/a\" \"$RUN/results.jsonl\"", &["--fail-fast"]);
    ran.exits(1).says("1 trial was not run");
    let resumed = project.evals(&["run", "--resume", "latest"]).exits(1);
    resumed.says("the result.json of a/sh/default/1 was removed or replaced; it was written again from a copy");
    let shown = report(&project);
    assert_eq!((&shown["summary"]["pass"], &shown["summary"]["fail"]), (&json!(1), &json!(1)), "{shown}");
}

#[test]
fn a_run_without_its_journal_is_not_graded() {
    let (project, run) = run_of_two();
    remove(&project, &format!("{run}/journal.jsonl"));
    for command in ["report", "grade"] {
        project.evals(&[command, "latest"]).exits(2).says("restore a copy of the run's folder");
    }
}

#[test]
fn results_that_the_engine_wrote_for_lost_ones_are_not_changed_results() {
    let (project, run) = run_of_two();
    for path in ["trials/a", "results.jsonl"] {
        remove(&project, &format!("{run}/{path}"));
    }
    project.evals(&["run", "--resume", "latest"]).exits(3);
    assert!(project.path(&format!("{run}/results.jsonl")).exists());
    let shown = report(&project);
    assert_eq!((&shown["summary"]["pass"], &shown["summary"]["errored"]), (&json!(1), &json!(1)), "{shown}");
    assert!(!shown.to_string().contains("was changed after the run"), "{shown}");
    assert!(!project.path(&format!("{run}/results.changed-1.jsonl")).exists());
    // A further change is still seen.
    let file = format!("{run}/results.jsonl");
    let text = project.read(&file);
    assert!(text.contains("\"verdict\":\"pass\""), "{text}");
    project.write(&file, &text.replace("\"verdict\":\"pass\"", "\"verdict\":\"fail\""));
    project.evals(&["report"]).exits(0).says("was changed after the run, line 2");
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(0);
    assert_eq!(report(&project)["summary"]["pass"], 2);
}

#[test]
fn a_run_without_its_plan_is_named() {
    let (project, run) = run_of_two();
    remove(&project, &format!("{run}/run.json"));
    let told = "run.json cannot be read: it does not exist, and the folder has other files of a run; restore a copy of run.json";
    let id = run.rsplit('/').next().unwrap();
    for name in ["latest", id, &*run] {
        project.evals(&["report", name]).exits(2).says(told);
        project.evals(&["run", "--resume", name]).exits(2).says(told);
    }
    project.evals(&["grade", id]).exits(2).says(told);
    project.evals(&["report", "a-label"]).exits(2).says("the labels of these runs are unknown").says("run.json");
    project.evals(&["list", "runs"]).exits(0).says(told);
    project.evals(&["merge", &run]).exits(2).says(told);
    project.evals(&["merge", ".evals"]).exits(2).says(told);
    remove(&project, &format!("{run}/journal.jsonl"));
    project.evals(&["report", id]).exits(2).says(told);
}

#[test]
fn a_folder_with_a_journal_of_another_program_hides_no_label() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "nightly"]).exits(0);
    project.write("nightly/journal.jsonl", "");
    project.evals(&["report", "nightly"]).exits(0);
    project.evals(&["report", "./nightly"]).exits(2).says("run.json cannot be read");
}

#[test]
fn snapshots_of_a_run_without_its_journal_are_not_compared() {
    let (project, run) = run_of_two();
    remove(&project, &format!("{run}/journal.jsonl"));
    for command in ["check", "accept"] {
        project.evals(&["snapshot", command]).exits(2);
    }
}

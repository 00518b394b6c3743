//! Resumed runs: no finished trial is run again, and no unfinished trial is lost.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::project::{Project, copy, lines, wait_for};

/// Makes two cases that are quick and one that waits for a file. Returns the file.
fn project() -> (Project, String) {
    let project = Project::new();
    let flag = project.path("flag").display().to_string();
    let waits = format!("n=0; while [ ! -e {flag} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done");
    project.case("a", "", "steps: [{say: done}]");
    project.case("b", "", &format!("steps:\n  - run:\n      command: |\n        {waits}\n  - say: done\n"));
    project.case("c", "", "steps: [{say: done}]");
    (project, flag)
}

/// Returns the doubts about the validity of a comparison of two runs.
fn doubts(project: &Project, old: &str, new: &str) -> Vec<String> {
    let ran = project.evals(&["compare", old, new, "--format", "json"]);
    let found: Value = serde_json::from_str(&ran.out)
        .unwrap_or_else(|_| serde_json::json!({"pairs": [{"doubts": [{"text": ran.err}]}]}));
    let doubts = found["pairs"][0]["doubts"].as_array().unwrap();
    // A separate doubt reports that changed trials were run again.
    let doubts = doubts.iter().filter(|doubt| doubt["about"] != "retries");
    doubts.map(|doubt| doubt["text"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_refused_resume_leaves_the_run_as_it_was() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--max-time", "0", "--label", "waits"]).exits(3);
    let plan = format!("{}/run.json", project.run_folder());
    let before = project.read(&plan);
    project.evals(&["run", "--resume", "waits", "--env", "EVALS_NOT_SET"]).exits(2).says("is not set");
    project.evals(&["run", "--resume", "waits", "--env", "PATH", "--reporter", "json=cases"]).exits(2);
    assert_eq!(project.read(&plan), before);
    project.evals(&["run", "--resume", "waits", "--max-time", "100"]).exits(0);
}

#[test]
fn variables_that_finished_trials_did_not_get_are_refused() {
    let mut project = Project::new();
    project.env("LEVEL", "high");
    project.case("a", "trials: 2", "steps: [{usage: {cost-usd: 1}}, {say: done}]");
    project.evals(&["run", "--jobs", "1", "--max-cost", "1"]).exits(3);
    let before = project.files(".evals");
    let resume = ["run", "--resume", "latest", "--max-cost", "9"];
    let with = |more: &[&str]| project.evals(&[&resume[..], &["--env", "LEVEL"], more].concat());
    with(&[]).exits(2).says("`--env LEVEL` would pass a variable that the finished trial did not get");
    assert!(project.files(".evals") == before, "the run was changed");
    project.evals(&resume).exits(0);
    with(&[]).exits(2).says("that 2 finished trials did not get");
}

#[test]
fn variables_are_passed_to_trials_that_are_all_run_again() {
    let mut project = Project::new();
    project.env("LEVEL", "high");
    let agent = |otherwise: &str| {
        let line = format!("test -n \"$LEVEL\" && echo fine || {otherwise}");
        project.write("agent.sh", &line);
    };
    project.harness("sh", "adapter: output-only\ncommand: [sh, '{project}/agent.sh', '{prompt}']");
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    agent("exit 1");
    project.evals(&["run", "--harness", "sh"]).exits(3);
    let resume = ["run", "--resume", "latest", "--env", "LEVEL"];
    project.evals(&resume).exits(2).says("run these trials again with --rerun errored");
    project.evals(&[&resume[..], &["--rerun", "errored"]].concat()).exits(0);
    let record: Value = serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
    assert_eq!(record["options"]["env"], serde_json::json!(["LEVEL"]));
    // The rerun of failed trials is a run of its own.
    agent("echo no");
    project.evals(&["run", "--harness", "sh", "--label", "fails"]).exits(1);
    project.evals(&["run", "--resume", "fails", "--rerun", "failed", "--env", "LEVEL"]).exits(0);
}

#[test]
fn a_run_that_another_version_resumes_records_both_versions() {
    let project = Project::new();
    project.case("a", "trials: 2", "steps: [{usage: {cost-usd: 1}}, {say: done}]");
    project.evals(&["run", "--jobs", "1", "--max-cost", "1"]).exits(3);
    let run = project.run_folder();
    project.without_digests(&run);
    let plan = format!("{run}/run.json");
    let mut record: Value = serde_json::from_str(&project.read(&plan)).unwrap();
    record["evals"] = "0.0.1".into();
    project.write(&plan, &record.to_string());
    let resume = ["run", "--resume", "latest", "--max-cost", "9"];
    project.evals(&resume).exits(0).says("was begun by evals 0.0.1");
    let now = env!("CARGO_PKG_VERSION");
    let recorded = || serde_json::from_str::<Value>(&project.read(&plan)).unwrap()["evals"].clone();
    assert_eq!(recorded(), format!("0.0.1, {now}"));
    assert!(!project.evals(&resume).exits(0).err.contains("was begun by"));
    assert_eq!(recorded(), format!("0.0.1, {now}"));
}

#[test]
fn a_run_beside_the_working_folder_is_resumed() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--max-time", "0"]).exits(3);
    std::fs::rename(project.path(&project.run_folder()), project.path("moved")).unwrap();
    project.evals(&["report", "moved"]).exits(0).says("evals run --resume moved");
    project.evals(&["run", "--resume", "moved", "--max-time", "100"]).exits(0);
}

#[test]
fn a_copied_project_goes_on_with_its_own_cases() {
    let original = Project::new();
    original.case("a", "", "steps: [{say: done}]");
    original.evals(&["run", "--max-time", "0"]).exits(3);
    let copied = Project::new();
    copy(&original.path(""), &copied.path(""));
    let go_on = ["run", "--resume", "latest", "--max-time", "100"];
    let other = "graders: [{output: {contains: other}}]";
    copied.case("a", other, "");
    copied.evals(&go_on).exits(2).says("`a` changed");
    // A project that was moved has no original.
    copy(&original.path("cases"), &copied.path("cases"));
    drop(original);
    copied.evals(&go_on).exits(0).says("its cases are now read in");
    copied.case("a", other, "");
    copied.evals(&["grade", "latest"]).exits(1);
}

#[test]
fn a_run_in_the_folder_of_another_project_keeps_its_own_cases() {
    let (own, other) = (Project::new(), Project::new());
    own.case("a", "", "steps: [{say: done}]");
    other.case("a", "graders: [{output: {contains: other}}]", "steps: [{say: done}]");
    let runs = other.path(".evals/runs");
    let out = runs.display().to_string();
    own.evals(&["run", "--max-time", "0", "--out", &out]).exits(3);
    own.evals(&["run", "--resume", "latest", "--max-time", "100", "--out", &out]).exits(0);
    std::os::unix::fs::symlink(other.path(".evals"), own.path(".evals")).unwrap();
    own.evals(&["run", "--max-time", "0"]).exits(3);
    own.evals(&["run", "--resume", "latest", "--max-time", "100"]).exits(0);
    own.evals(&["grade", "latest"]).exits(0);
}

#[test]
fn a_run_of_another_project_has_the_graders_and_programs_of_its_own_one() {
    let project = Project::new();
    // The agent of each project makes what only the grader of the other one wants.
    for (folder, makes, wants) in [("own", "a.txt", "b.txt"), ("other", "b.txt", "a.txt")] {
        project.write(&format!("{folder}/cases/c.yaml"), "prompt: x\ngraders: [{use: made}]\n");
        project.write(&format!("{folder}/graders/made.yaml"), &format!("files: {{exists: [{wants}]}}\n"));
        project.write(&format!("{folder}/agent.sh"), &format!("echo x > {makes}; echo done\n"));
        let command = "command: [sh, '{project}/agent.sh', '{prompt}']";
        project.write(&format!("{folder}/harnesses/t.yaml"), &format!("name: t\nadapter: output-only\n{command}\n"));
    }
    let evals = |folder: &str, args: &[&str]| {
        let done = project.command(args).current_dir(project.path(folder)).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).replace('\n', " "))
    };
    let run = ["run", "--harness", "t", "--label", "one"];
    assert_eq!(evals("own", &run).0, Some(1));
    std::os::unix::fs::symlink("../own/.evals", project.path("other/.evals")).unwrap();
    let apart = project.path("apart").display().to_string();
    assert_eq!(evals("own", &[&run[..], &["--out", &apart]].concat()).0, Some(1));
    for args in [
        &["grade", "one"][..],
        &["run", "--resume", "one", "--rerun", "failed"],
        &["grade", "one", "--out", &apart],
        &["run", "--resume", "one", "--rerun", "failed", "--out", &apart],
    ] {
        let (code, said) = evals("other", args);
        assert_eq!(code, Some(1), "{args:?}: {said}");
        assert!(said.contains("the project in which it was made"), "{args:?}: {said}");
    }
    // The finished trial stays, because nothing of its own project changed.
    assert_eq!(evals("other", &["run", "--resume", "one"]).0, Some(1));
}

#[test]
fn arms_and_cases_whose_trials_would_share_a_folder_are_refused() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    for models in [["a#2", "a", "a"], ["a", "a", "a#2"]] {
        let models = models.iter().flat_map(|model| ["--model", model]);
        let ran = project.evals(&["run"].into_iter().chain(models).collect::<Vec<_>>()).exits(2);
        ran.says("two arms of harness `demo` are named `a#2`");
    }
    project.case("a/demo/default/1", "", "steps: [{say: done}]");
    for command in [&["run"][..], &["check"]] {
        project.evals(command).exits(2).says("is the folder of a trial of case `a`");
    }
    assert!(project.runs().is_empty());
    std::fs::remove_file(project.path("cases/a/demo/default/1.yaml")).unwrap();
    // The harness of the inner case has the name of a number.
    project.case("a/demo/default", "", "steps: [{say: done}]");
    project.demo("1", "");
    let ran = project.evals(&["run", "--harness", "demo", "--harness", "1"]).exits(2);
    ran.says("would have its trials in the folder of a trial of case `a`");
}

#[test]
#[ignore = "slow: runs many trials"]
fn trials_that_a_budget_keeps_from_starting_are_counted_also_if_they_were_added() {
    let project = Project::new();
    for case in ["a", "b", "c"] {
        project.case(case, "", "steps: [{say: done}]");
    }
    let models = ["run", "--model", "a", "--model", "b", "--trials", "auto", "--jobs", "1"];
    project.write("agent.sh", "echo '{\"say\":\"done\",\"cost\":0.1}'\n");
    let agent = project.path("agent.sh").display().to_string();
    project.harness(
        "paid",
        &format!(
            "adapter: json-stream\ncommand: [sh, {agent}]\nprompt-via: stdin\nmodel: {{via: env, env: MODEL}}\nusage: {{scope: session}}\nstream:\n  - when: has(line.say)\n    emit: [{{message: {{text: line.say}}}}, {{usage: {{cost-usd: line.cost}}}}, {{stop: {{reason: end_turn}}}}]\n"
        ),
    );
    // 12 trials cost 1.2 dollars: the budget ends within the next stage, or at its beginning.
    for (most, begun) in [("1.3", 13), ("1.2", 12)] {
        let args = [&models[..], &["--harness", "paid", "--max-cost", most, "--label", most]].concat();
        let ran = project.evals(&args).exits(3);
        ran.says("NOT RUN");
        let report = project.evals(&["report", most, "--format", "json"]).exits(0).json();
        let counts = (&report["summary"]["pass"], &report["summary"]["not_run"]);
        assert_eq!(counts, (&begun.into(), &(24 - begun).into()), "{report}");
    }
    project.evals(&["run", "--resume", "1.3", "--max-cost", "100"]).exits(0).says("the maximum");
    // An engine that was killed before it looked at the results may not have planned all trials.
    project.without_end(&project.run_named("1.3"));
    let report = project.evals(&["report", "1.3", "--format", "json"]).exits(0).json();
    assert_eq!((&report["exit_code"], &report["summary"]["not_run"]), (&3.into(), &0.into()), "{report}");
    assert!(report["notes"].to_string().contains("further trials may be missing (--trials auto)"), "{report}");
    for command in [&["compare", "1.3"][..], &["compare", "1.3", "--gate"], &["baseline", "set", "1.3"]] {
        project.evals(command).exits(2).says("is not finished").says("further trials may be missing (--trials auto)");
    }
    project.evals(&["grade", "1.3", "--label", "graded"]).exits(3).says("trials of its source may be missing");
    project.evals(&["baseline", "set", "graded"]).exits(2).says("is not finished");
    project.evals(&["run", "--resume", "1.3"]).exits(0).says("the maximum");
    project.evals(&["baseline", "set", "1.3"]).exits(0);
}

#[test]
fn what_was_changed_in_the_middle_of_a_run_is_not_compared_as_if_it_were_one_thing() {
    let project = Project::new();
    project.case("a", "trials: 2", "steps: [{stop: refusal}]");
    project.case("b", "trials: 2", "steps: [{say: done}]");
    project.demo("mine", "");
    // One trial is run, and it fails.
    let args = ["run", "--harness", "mine", "--jobs", "1", "--label", "stopped", "--fail-fast"];
    project.evals(&args).exits(1);
    project.case("a", "trials: 2\ndescription: other", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "mine", "--label", "now"]).exits(0);
    project.evals(&["run", "--resume", "stopped", "--changed", "keep"]).exits(1);
    let record: Value =
        serde_json::from_str(&project.read(&format!("{}/run.json", project.run_named("stopped")))).unwrap();
    assert_eq!((&record["cases"][0]["mixed"], &record["cases"][1].get("mixed")), (&true.into(), &None));
    let said = doubts(&project, "stopped", "now");
    assert!(said[0].contains("1 case is left out: it changed during one of the runs"), "{said:?}");
    // A resume asks the user again, and trials that are run again all have the same case.
    project.evals(&["run", "--resume", "stopped"]).exits(2).says("`a` changed");
    project.evals(&["run", "--resume", "stopped", "--changed", "rerun"]).exits(0);
    assert_eq!(doubts(&project, "stopped", "now"), Vec::<String>::new());
    project.evals(&["run", "--resume", "stopped"]).exits(0);
    // The same holds for a manifest: the finished trials were run with another one.
    project.demo("mine", "timeouts: {start: 59s}");
    project.evals(&["run", "--resume", "now", "--rerun", "errored", "--changed", "keep"]).exits(0);
    let said = doubts(&project, "stopped", "now");
    assert_eq!(said, Vec::<String>::new(), "nothing was run by the new one");
    project.evals(&["run", "--resume", "now", "--changed", "rerun"]).exits(0);
    assert_eq!(doubts(&project, "stopped", "now"), ["the manifest of harness `mine` has changed"]);
}

#[test]
fn trials_of_changed_cases_that_a_failure_keeps_from_running_again_count_as_not_run() {
    let project = Project::new();
    project.demo("mine", "");
    for case in ["a", "b", "c"] {
        project.case(case, "", "steps: [{say: done}]");
    }
    project.evals(&["run", "--harness", "mine", "--jobs", "1", "--fail-fast"]).exits(0);
    for case in ["a", "b", "c"] {
        project.case(case, "description: other", "steps: [{stop: refusal}]");
    }
    let ran = project.evals(&["run", "--resume", "latest", "--changed", "rerun"]).exits(1);
    let ran = ran.says("NOT RUN   2 trials: --fail-fast: a trial failed");
    let ran = ran.says("--fail-fast: a trial failed; 2 trials were not run");
    assert!(!ran.err.contains("every trial had finished") && !ran.err.contains("earlier results"), "{ran:?}");
    let left = summary(&project);
    assert_eq!((&left["fail"], &left["pass"], &left["not_run"]), (&1.into(), &0.into(), &2.into()));
    for case in ["a", "b", "c"] {
        project.case(case, "description: third", "steps: [{say: done}]");
    }
    project.evals(&["run", "--resume", "latest", "--changed", "rerun"]).exits(0);
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(summary(&project)["pass"], 3);
}

#[test]
fn results_of_a_changed_case_do_not_count_if_a_spent_budget_keeps_its_trials_from_running_again() {
    for limit in [&["--max-time", "0", "--max-cost", "100"][..], &[]] {
        let project = Project::new();
        let steps = "steps: [{usage: {cost-usd: 1}}, {say: done}]";
        let wants = |text: &str| project.case("a", &format!("graders: [{{output: {{contains: {text}}}}}]"), steps);
        wants("done");
        project.case("b", "", steps);
        project.evals(&["run", "--jobs", "1", "--max-cost", "2", "--label", "v"]).exits(0);
        wants("other");
        let before = project.files(".evals");
        project.evals(&["run", "--resume", "v", "--changed", "rerun", "--dry-run"]).exits(0);
        assert!(project.files(".evals") == before, "a dry run discards nothing");
        let results = project.read(&format!("{}/results.jsonl", project.run_folder()));
        let ran = project.evals(&[&["run", "--resume", "v", "--changed", "rerun"][..], limit].concat()).exits(3);
        let ran = ran.says("1 trial was not run").says("resume it with a higher limit than");
        assert!(!ran.err.contains("--changed rerun"), "{ran:?}");
        let counts = |folder: &str| {
            let report = project.evals(&["report", folder, "--format", "json"]).exits(0).json();
            let count = |verdict: &str| report["summary"][verdict].as_u64().unwrap();
            let cost = report["columns"][0]["cost_usd"].as_f64().unwrap();
            ([count("pass"), count("fail"), count("not_run")], report["exit_code"].clone(), cost)
        };
        assert_eq!(counts("v"), ([1, 0, 1], 3.into(), 2.0), "what the earlier attempt cost counts");
        // The results of an engine that was killed before it wrote them anew.
        let journal = project.path(&format!("{}/journal.jsonl", project.run_folder()));
        project.write(&format!("{}/results.jsonl", project.run_folder()), &results);
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
        std::fs::File::options().append(true).open(journal).unwrap().set_modified(later).unwrap();
        assert_eq!(counts("v"), ([1, 0, 1], 3.into(), 2.0));
        assert!(!project.path(&format!("{}/results.changed-1.jsonl", project.run_folder())).exists());
        // The evidence stays, and a plain resume has one trial to run.
        assert_eq!(project.result("a/demo/default/1")["verdict"], "pass");
        project.evals(&["run", "--resume", "v"]).exits(3).says("1 trial was not run");
        project.evals(&["run", "--resume", "v", "--max-cost", "100"]).exits(1);
        assert_eq!(counts("v"), ([1, 1, 0], 1.into(), 3.0));
        assert_eq!(project.result("a/demo/default/1/attempts/1")["verdict"], "pass");
    }
}

#[test]
fn a_resume_that_cannot_start_discards_no_result() {
    let mut project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "v"]).exits(0);
    project.case("a", "description: other", "steps: [{say: done}]");
    let before = project.files(".evals");
    let missing = project.temporary().join("missing").display().to_string();
    project.env("TMPDIR", &missing);
    project.evals(&["run", "--resume", "v", "--changed", "rerun"]).exits(2).says("could not make a private folder in");
    assert!(project.files(".evals") == before, "the run was changed");
    assert_eq!(summary(&project)["pass"], 1);
}

#[test]
fn trials_that_a_spent_budget_keeps_from_running_again_are_not_compared_by_their_earlier_results() {
    let project = Project::new();
    let steps = "steps: [{usage: {cost-usd: 1}}, {say: done}]";
    project.case("a", "", steps);
    project.case("b", "", steps);
    project.evals(&["run", "--jobs", "1", "--max-cost", "2", "--label", "old"]).exits(0);
    project.case("a", "description: other", steps);
    project.evals(&["run", "--label", "new"]).exits(0);
    project.evals(&["run", "--resume", "old", "--changed", "rerun"]).exits(3);
    project
        .evals(&["compare", "old", "new"])
        .exits(2)
        .says("is not finished, so it cannot be compared: 1 trial of 2 not");
}

#[test]
fn results_of_what_changed_do_not_count_if_the_run_ends_before_it_has_run_them_again() {
    let (project, flag) = project();
    project.demo("mine", "");
    std::fs::write(&flag, "").unwrap();
    project.evals(&["run", "--harness", "mine", "--jobs", "1"]).exits(0);
    std::fs::remove_file(&flag).unwrap();
    project.demo("mine", "timeouts: {start: 59s}");
    let attempt_of_b = |number: u64| {
        let lines = project.journal();
        lines.iter().any(|line| line["case"] == "b" && line["attempt"] == number)
    };
    let rerun = ["run", "--resume", "latest", "--changed", "rerun"];
    let child = until(&project, &rerun, "the second attempt", || attempt_of_b(2));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    let counts = || {
        let left = summary(&project);
        (left["pass"].clone(), left["not_run"].clone())
    };
    assert_eq!(counts(), (1.into(), 2.into()), "only `a` has run again");
    let mut child = until(&project, &["run", "--resume", "latest"], "the third attempt", || attempt_of_b(3));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(counts(), (1.into(), 2.into()));
    std::fs::write(&flag, "").unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(counts(), (3.into(), 0.into()));
}

/// Starts a run and waits until the waiting case has begun and the first one has finished.
fn begin(project: &Project) -> Child {
    begin_as(project, &mut project.command(&["run", "--jobs", "1"]))
}

fn begin_as(project: &Project, command: &mut Command) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the second trial", || {
        let Some(run) = project.runs().first().cloned() else { return false };
        let folder = format!(".evals/runs/{run}");
        let wire = project.path(&format!("{folder}/trials/b/demo/default/1/wire.jsonl"));
        // The call is in the wire log once the agent has been prompted.
        std::fs::read_to_string(wire).is_ok_and(|text| text.contains("tool_call"))
    });
    child
}

fn finished(project: &Project) -> Vec<(String, u64)> {
    let journal = project.journal();
    let done = journal.iter().filter(|line| line["event"] == "finished");
    done.map(|line| (line["case"].as_str().unwrap().to_owned(), line["attempt"].as_u64().unwrap())).collect()
}

fn summary(project: &Project) -> Value {
    project.evals(&["report", "--format", "json"]).exits(0).json()["summary"].clone()
}

#[test]
fn a_killed_engine_loses_nothing_and_its_run_goes_on() {
    let (project, flag) = project();
    let mut child = begin(&project);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(finished(&project), [("a".to_owned(), 1)]);
    let left = summary(&project);
    assert_eq!((&left["pass"], &left["not_run"]), (&1.into(), &2.into()));
    // An incomplete last line is ignored.
    let journal = format!("{}/journal.jsonl", project.run_folder());
    project.write(&journal, &format!("{}{{\"at\":\"2026", project.read(&journal)));

    std::fs::write(flag, "").unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(0);
    let text = project.read(&journal);
    let whole: Vec<&str> = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).collect();
    let whole = lines(&whole.join("\n"));
    let done = |case: &str| whole.iter().filter(|line| line["case"] == case && line["event"] == "finished").count();
    assert_eq!((done("a"), done("b"), done("c")), (1, 1, 1), "every trial is counted once");
    let now = summary(&project);
    assert_eq!((&now["pass"], &now["not_run"]), (&3.into(), &0.into()));
    // The interrupted attempt is kept.
    assert!(project.of_trial("b/demo/default/1", "attempts/1/wire.jsonl").contains("tool_call"));
    assert_eq!(project.result("b/demo/default/1")["attempt"], 2);
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new(), "what the dead engine left is tidied");
    // There is nothing left to do.
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(project.runs().len(), 1);
}

#[test]
fn a_reader_changes_nothing_of_a_run_that_is_going_on() {
    let (project, flag) = project();
    let child = begin(&project);
    let results = format!("{}/results.jsonl", project.run_folder());
    assert_eq!(summary(&project)["pass"], 1);
    assert!(!project.path(&results).exists());
    // The results that another reader saw before the first trial had ended.
    project.write(&results, "");
    assert_eq!(summary(&project)["pass"], 1);
    assert!(!project.path(&format!("{}/results.changed-1.jsonl", project.run_folder())).exists());
    assert_eq!(project.read(&results), "");
    std::fs::write(flag, "").unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(lines(&project.read(&results)).len(), 3);
}

#[test]
fn temporary_files_of_a_killed_engine_are_removed_when_its_run_goes_on() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--max-time", "0"]).exits(3);
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let part = format!("{}/results.jsonl.{}-5.part", project.run_folder(), ended.id());
    project.write(&part, "{");
    project.evals(&["run", "--resume", "latest", "--max-time", "100"]).exits(0);
    assert!(!project.path(&part).exists());
}

#[test]
fn a_kill_before_the_journal_names_a_new_plan_discards_no_result_of_the_next_resume() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let journal = format!("{}/journal.jsonl", project.run_folder());
    let before = project.read(&journal);
    project.evals(&["run", "--resume", "latest", "--fail-under", "0.5"]).exits(0);
    assert_ne!(project.read(&journal), before);
    // The engine was killed when it had replaced `run.json`.
    project.write(&journal, &before);
    project.evals(&["run", "--resume", "latest", "--fail-under", "0.6"]).exits(0);
    let now = summary(&project);
    assert_eq!((&now["pass"], &now["errored"]), (&1.into(), &0.into()));
}

#[test]
fn an_interrupted_run_ends_with_130_and_goes_on() {
    let (project, flag) = project();
    let args = ["run", "--jobs", "1", "--reporter", "json=out.json"];
    let child = begin_as(&project, &mut project.command(&args));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stderr).contains("evals run --resume"));
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!((&report["exit_code"], &report["summary"]["not_run"]), (&130.into(), &2.into()));
    assert_eq!(finished(&project), [("a".to_owned(), 1)]);
    let trace = project.trace("b/demo/default/1");
    assert_eq!(trace.last().unwrap()["reason"], "cancelled", "what was done is on disk");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    std::fs::write(flag, "").unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(finished(&project), [("a".to_owned(), 1), ("b".to_owned(), 2), ("c".to_owned(), 1)]);
    assert_eq!(project.trace("b/demo/default/1/attempts/1").last().unwrap()["reason"], "cancelled");
}

#[test]
fn what_an_interrupted_attempt_had_cost_counts_in_the_resumed_run() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", "");
    }
    let agent = r#"cd "$(dirname "$0")"; echo '{"cost":3}'; [ -e flag ] || sleep 60; echo '{"say":"done"}'"#;
    project.write("agent.sh", agent);
    project.harness(
        "paid",
        "adapter: json-stream\ncommand: [sh, '{project}/agent.sh']\nprompt-via: stdin\nstream:\n  - when: has(line.cost)\n    emit: [{usage: {scope: session, cost-usd: line.cost}}]\n  - when: has(line.say)\n    emit: [{message: {text: line.say}}, {stop: {reason: end_turn}}]\n",
    );
    let args = ["run", "--jobs", "1", "--harness", "paid", "--max-cost", "2"];
    let child = until(&project, &args, "the cost was read", || {
        let files = project.files(".evals").into_iter();
        files
            .filter(|(name, _)| name.ends_with("wire.jsonl"))
            .any(|(_, text)| text.windows(6).any(|it| it == b"cost\\\""))
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    std::fs::write(project.path("flag"), "").unwrap();
    let cost = || {
        let report = project.evals(&["report", "latest", "--format", "json"]).exits(0).json();
        (report["columns"][0]["cost_usd"].clone(), report["columns"][0]["cost_unknown"].clone())
    };
    assert_eq!(cost(), (3.0.into(), 1.into()), "a report before the trial runs again has the cost, too");
    project.evals(&["report", "latest"]).exits(0).says("1 trial has an attempt without a result");
    project.evals(&["run", "--resume", "latest"]).exits(3).says("US dollars are spent");
    assert_eq!(cost(), (3.0.into(), 1.into()));
    project.evals(&["run", "--resume", "latest", "--max-cost", "100"]).exits(0);
    let earlier = project.result("a/paid/default/1")["earlier_attempts"].clone();
    assert_eq!((&earlier["count"], &earlier["cost_usd"]), (&1.into(), &3.0.into()), "{earlier}");
    assert_eq!(earlier["cost_unknown"], 1, "the agent may have cost more: {earlier}");
}

#[test]
fn a_terminal_that_closes_interrupts_the_run_once() {
    let (project, flag) = project();
    // The tests themselves may run under `nohup`, which their children would inherit.
    let program =
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])";
    let mut python = project.under("python3", &["-c", program], &["run", "--jobs", "1"]);
    let child = begin_as(&project, &mut python);
    // The terminal sends the signal, and then the shell.
    for _ in 0..2 {
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(project.trace("b/demo/default/1").last().unwrap()["reason"], "cancelled", "what was done is on disk");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    std::fs::write(flag, "").unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(0);
}

#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let (project, flag) = project();
    let mut shell = project.under("sh", &["-c", "trap '' HUP; exec \"$0\" \"$@\""], &["run", "--jobs", "1"]);
    let child = begin_as(&project, &mut shell);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    std::fs::write(flag, "").unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(finished(&project).len(), 3);
}

#[test]
fn an_engine_that_is_stuck_is_ended_by_the_second_interrupt() {
    let project = Project::new();
    // Each expression is evaluated until its timeout, and no thread is left to handle a signal.
    let list = format!("[{}]", vec!["1"; 60].join(","));
    let endless = ["a", "b", "c", "d", "e", "f"]
        .iter()
        .fold("a > 0".to_owned(), |inner, name| format!("{list}.all({name}, {inner})"));
    let jobs = (2 * std::thread::available_parallelism().unwrap().get()).to_string();
    let keys = format!("trials: {jobs}\ngraders: [{{expr: {{cel: 'size(output) >= 0 && {endless}'}}}}]");
    project.case("a", &keys, "steps: [{write: {path: a.txt, text: x}}]");
    let child =
        project.command(&["run", "--jobs", &jobs]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patches = || project.files(".evals").keys().filter(|path| path.contains("workspace.patch")).count();
    wait_for("trials that are being judged", || patches() >= 1);
    std::thread::sleep(std::time::Duration::from_secs(1));
    for _ in 0..2 {
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let begun = std::time::Instant::now();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn setup_and_grading_commands_do_not_hold_an_interrupt_up() {
    for (keys, mark) in [
        ("workspace: {setup: ['touch MARK; sleep 60']}", "setup"),
        ("graders: [{command: {run: 'touch MARK; sleep 60'}}]", "grading"),
    ] {
        let project = Project::new();
        let mark = project.path(mark);
        project.case("a", &keys.replace("MARK", &mark.display().to_string()), "steps: [{say: done}]");
        let child = project.command(&["run"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("the command", || mark.exists());
        let begun = std::time::Instant::now();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
        assert!(begun.elapsed().as_secs() < 20, "the command was waited for");
        assert_eq!(finished(&project), []);
        assert_eq!(summary(&project)["not_run"], 1);
        assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn a_run_at_work_is_not_gone_on_with_by_another() {
    let (project, flag) = project();
    let mut child = begin(&project);
    project.evals(&["run", "--resume", "latest"]).exits(2).says("another evals process is using");
    std::fs::write(flag, "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_workspace_of_a_case_that_changed_during_the_run_is_not_rebuilt_from_its_new_source() {
    let project = Project::new();
    let (graders, keep) = ("graders: [{files: {exists: [made]}}]", ["--keep-workspace", "never"]);
    project.case("a", &format!("trials: 2\n{graders}"), "");
    // The second trial crashes until the mark of the first is removed.
    let once = "[ -e '{project}/once' ] && exit 7; touch '{project}/once'; echo done";
    project.harness("mine", &format!("adapter: output-only\ncommand: [sh, -c, \"{once}\"]"));
    project.evals(&[&["run", "--harness", "mine", "--jobs", "1"][..], &keep].concat());
    assert_eq!(project.result("a/mine/default/1")["verdict"], "fail");
    assert_eq!(project.result("a/mine/default/2")["verdict"], "errored");
    std::fs::remove_file(project.path("once")).unwrap();
    project.case("a", &format!("trials: 2\nworkspace: {{files: {{made: x}}}}\n{graders}"), "");
    project.evals(&["run", "--resume", "latest", "--rerun", "errored", "--changed", "keep"]);
    let graded = project.evals(&["grade", "latest", "--format", "json"]).json();
    let first = graded["results"].as_array().unwrap().iter().find(|result| result["trial"] == 1).unwrap().clone();
    assert_eq!(first["verdict"], "ungraded", "{first}");
    assert!(first.to_string().contains("changed during the run"), "{first}");
}

#[test]
fn what_changed_since_is_named_and_the_user_decides() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.case("b", "", "steps: [{say: done}]");
    project.demo("mine", "");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    project.case("b", "description: other", "steps: [{stop: refusal}]");
    let before = project.files(".evals");
    let refused = project.evals(&["run", "--resume", "latest"]).exits(2).says("`b` changed").says("--changed keep");
    assert!(!refused.err.contains("`a`"), "{}", refused.err);
    assert!(project.files(".evals") == before, "nothing was started");
    project.evals(&["run", "--resume", "latest", "--changed", "keep"]).exits(0);
    assert_eq!(finished(&project).len(), 2);
    project.evals(&["run", "--resume", "latest", "--changed", "rerun"]).exits(1);
    assert_eq!(finished(&project)[2..], [("b".to_owned(), 2)]);
    assert_eq!(project.result("b/mine/default/1/attempts/1")["verdict"], "pass");
    assert_eq!(project.result("b/mine/default/1")["verdict"], "fail");
    // A manifest is part of the inputs of a run, and so is a file that a grader compares with.
    project.demo("mine", "timeouts: {start: 59s}");
    project.evals(&["run", "--resume", "latest"]).exits(2).says("`mine`");
    let project = Project::new();
    project.case("a", "graders: [{files: {equals: {x: wanted.txt}}}]", "steps: [{write: {path: x, text: one}}]");
    project.write("cases/wanted.txt", "one");
    project.evals(&["run"]).exits(0);
    project.write("cases/wanted.txt", "two");
    project.evals(&["run", "--resume", "latest"]).exits(2).says("`a` changed");
}

#[test]
fn errored_and_ungraded_trials_are_run_again_in_place() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    project.case("b", "graders: [{output: {equals: fine}}]", "");
    let at = project.path("is-up").display().to_string();
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, 'test -e {at} || exit 1; echo fine']"));
    project.evals(&["run", "--harness", "shaky"]).exits(3);
    let stale = project.read(&format!("{}/results.jsonl", project.run_folder()));
    std::fs::write(&at, "").unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(3);
    assert_eq!(finished(&project).len(), 2, "what finished is not run again unless it is asked for");
    // Unlike results of what changed, errors stay the results of their trials until these run again.
    let ran = project.evals(&["run", "--resume", "latest", "--rerun", "errored", "--max-time", "0"]).exits(3);
    let ran = ran.says("KEPT 2 trials not run again").says("2 trials were not run again, so earlier results count");
    assert!(ran.err.contains(" --rerun errored --max-time MORE\n"), "{}", ran.err);
    assert_eq!(summary(&project)["errored"], 2);
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(0);
    assert_eq!(summary(&project)["pass"], 2);
    assert_eq!(project.result("a/shaky/default/1/attempts/1")["verdict"], "errored");
    // Stale results, as an engine leaves them that is killed before it writes the new ones, are not trusted.
    project.write(&format!("{}/results.jsonl", project.run_folder()), &stale);
    assert_eq!(summary(&project)["pass"], 2);
}

#[test]
fn failed_trials_are_run_again_as_a_run_of_their_own_and_what_passes_is_flaky() {
    let project = Project::new();
    let at = project.path("is-up").display().to_string();
    let waits = format!("adapter: output-only\ncommand: [sh, -c, 'test -e {at} && echo fine || echo no']");
    project.harness("shaky", &waits);
    project.case("never", "graders: [{output: {equals: other}}]", "");
    project.case("sometimes", "graders: [{output: {equals: fine}}]", "");
    project.case("always", "graders: [{output: {not-contains: x}}]", "");
    project.evals(&["run", "--harness", "shaky", "--label", "first"]).exits(1);
    let first = project.runs()[0].clone();
    let before = project.files(&format!(".evals/runs/{first}/trials"));
    std::fs::write(&at, "").unwrap();
    let rerun = ["run", "--resume", "latest", "--rerun", "failed"];
    project.evals(&[&rerun[..], &["--dry-run"]].concat()).exits(0).says("2 trials, 0 skipped");
    assert_eq!(project.runs().len(), 1);
    let ran = project.evals(&rerun).exits(1);
    ran.says("flaky: 1 trial passed that had failed before").says(&format!("made from run {first}"));
    let second = project.runs().into_iter().find(|run| *run != first).unwrap();
    let report = project.evals(&["report", &second, "--format", "json"]).json();
    assert_eq!(report["derived_from"], first.as_str());
    let of = |case: &str| report["results"].as_array().unwrap().iter().find(|result| result["case"] == case).cloned();
    assert!(of("always").is_none());
    assert_eq!(of("never").unwrap().get("flaky"), None);
    let flaky = of("sometimes").unwrap();
    assert_eq!((&flaky["verdict"], &flaky["flaky"]), (&"pass".into(), &true.into()));
    // The failed trials are unchanged, and their run is still the latest.
    assert!(project.files(&format!(".evals/runs/{first}/trials")) == before);
    assert_eq!(project.evals(&["report", "latest", "--format", "json"]).json()["run"], first.as_str());
    // A selection by the outcome is not compared, also after it was graded again and the graded run is gone.
    let graded = project.evals(&["grade", &second, "--format", "json"]).exits(1).json();
    project.evals(&["report", graded["run"].as_str().unwrap(), "--format", "html", "-o", "graded.html"]).exits(0);
    let why = format!("could not be compared: it contains only the failed trials of run {first}");
    assert!(project.read("graded.html").contains(&why), "{why}");
    let folder = project.path(&format!(".evals/runs/{second}"));
    std::fs::rename(&folder, project.path("gone")).unwrap();
    let ran = project.evals(&["compare", &first, graded["run"].as_str().unwrap()]).exits(2);
    ran.says(&format!("contains only the failed trials of run {first}"));
    std::fs::rename(project.path("gone"), &folder).unwrap();
    std::fs::remove_file(&at).unwrap();
    project.case("never", "graders: [{output: {equals: other}}]\ndescription: changed", "");
    project.evals(&rerun).exits(2).says("`never` changed");
    project.evals(&["run", "--resume", &second, "--rerun", "errored", "--changed", "keep"]).exits(1);
    project.evals(&["run", "--case", "always", "--harness", "shaky"]).exits(0);
    project.evals(&rerun).exits(2).says("failed, so there is nothing to run again");
}

#[test]
fn an_unfinished_rerun_of_failed_trials_is_the_latest_run_to_resume() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: other}}]", "");
    project.harness("no", "adapter: output-only\ncommand: [echo, no]");
    project.evals(&["run", "--harness", "no"]).exits(1);
    let first = project.runs()[0].clone();
    project.evals(&["run", "--resume", "latest", "--rerun", "failed", "--max-time", "0"]).exits(3);
    let second = project.runs().into_iter().find(|run| *run != first).unwrap();
    assert_eq!(project.evals(&["report", "latest", "--format", "json"]).json()["run"], first.as_str());
    let resumed = |args: &[&str], run: &str| {
        // The rerun keeps its limit unless it gets another one.
        let latest = ["run", "--resume", "latest", "--max-time", "1h", "--reporter", "json"];
        let ran = project.evals(&[&latest[..], args].concat()).json();
        assert_eq!((ran["run"].as_str(), &ran["summary"]["fail"]), (Some(run), &1.into()), "{args:?}");
    };
    resumed(&["--rerun", "errored"], &first);
    resumed(&[], &second);
    // What is finished is not resumed, so the run that is the latest everywhere else is shown.
    resumed(&[], &first);
}

#[test]
fn an_engine_killed_while_it_ran_a_finished_trial_again_leaves_a_run_that_can_be_read() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: fine}}]", "");
    let up = project.path("is-up").display().to_string();
    let flag = project.path("flag").display().to_string();
    let line = format!(
        "test -e {up} || exit 1; n=0; while [ ! -e {flag} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; echo fine"
    );
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
    project.evals(&["run", "--harness", "shaky"]).exits(3);
    std::fs::write(&up, "").unwrap();
    let args = ["run", "--resume", "latest", "--rerun", "errored"];
    let mut child = project.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the second attempt", || project.journal().iter().any(|line| line["attempt"] == 2));
    child.kill().unwrap();
    child.wait().unwrap();
    // The last finished attempt counts until another one finishes.
    assert_eq!(summary(&project)["errored"], 1);
    project.evals(&["baseline", "set"]).exits(2).says("is not finished, so it cannot be a baseline: 1 trial of 1 not");
    project.evals(&["list", "runs"]).exits(0);
    std::fs::write(&flag, "").unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(project.result("a/shaky/default/1")["attempt"], 3);
    assert_eq!(project.result("a/shaky/default/1/attempts/1")["attempt"], 1);
}

#[test]
fn cases_whose_ids_count_from_the_folder_that_was_named_are_found_again() {
    let project = Project::new();
    for folder in ["x", "y"] {
        project.write(&format!("mine/{folder}/a.yaml"), "prompt: p\ngraders: [{output: {contains: done}}]\n");
        project.write(&format!("mine/{folder}/a.demo.yaml"), "steps: [{say: done}]");
    }
    project.write("agent.yaml", "name: elsewhere\nadapter: output-only\ncommand: [echo, done]\n");
    project.evals(&["run", "mine", "--harness", "./agent.yaml"]).exits(0);
    let ids: Vec<String> = finished(&project).into_iter().map(|(case, _)| case).collect();
    assert!(ids.contains(&"x/a".to_owned()) && ids.contains(&"y/a".to_owned()), "{ids:?}");
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(finished(&project).len(), 2);
}

#[test]
fn runs_are_named_by_id_by_a_start_of_it_by_label_and_by_path() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "first try"]).exits(0);
    let id = project.runs()[0].clone();
    let folder = project.path(".evals/runs").join(&id).display().to_string();
    for name in [id.as_str(), &id[..id.len() - 2], "first try", "latest", &folder] {
        let report = project.evals(&["report", name, "--format", "json"]).exits(0).json();
        assert_eq!(report["run"], id.as_str(), "{name}");
    }
    project.evals(&["report", "nothing"]).exits(2).says("no run is called `nothing`").says(&id);
    project.evals(&["run", "--resume", "nothing"]).exits(2);
    project.evals(&["run"]).exits(0);
    project.evals(&["report", "20"]).exits(2).says("could be any of");
}

/// Makes a case whose agent is interrupted the first time, breaks the second time, and answers the third.
fn breaks_once() -> Project {
    let project = Project::new();
    let state = project.path("state").display().to_string();
    std::fs::create_dir(&state).unwrap();
    let line = format!("mkdir {state}/1 2>/dev/null && exec sleep 5; mkdir {state}/2 2>/dev/null && exit 7; echo fine");
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
    project.case("a", "harnesses: [shaky]\nretries: {max: 1}\ngraders: [{output: {equals: fine}}]", "");
    project
}

/// Returns true if an attempt has broken and is in the journal.
fn has_broken(project: &Project) -> bool {
    let files = project.files(".evals");
    let journal = files.iter().find(|(name, _)| name.ends_with("journal.jsonl"));
    journal.is_some_and(|(_, text)| String::from_utf8_lossy(text).contains(r#""verdict":"errored""#))
}

/// Starts or resumes a run, and waits for a condition.
fn until(project: &Project, args: &[&str], what: &str, holds: impl Fn() -> bool) -> Child {
    let child = project.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(what, holds);
    child
}

#[test]
fn an_engine_that_was_killed_takes_no_retry_with_it() {
    let project = breaks_once();
    let mut child = until(&project, &["run"], "the first attempt", || project.path("state/1").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let resume = ["run", "--resume", "latest"];
    let mut child = until(&project, &resume, "the second attempt", || has_broken(&project));
    // The engine waits before it retries.
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(finished(&project), [("a".to_owned(), 2)]);
    assert_eq!(summary(&project)["errored"], 1);
    project.evals(&resume).exits(0);
    assert_eq!(finished(&project), [("a".to_owned(), 2), ("a".to_owned(), 3)]);
    assert_eq!(project.result("a/shaky/default/1/attempts/2")["verdict"], "errored");
    // No partial file of the interrupted attempt is kept.
    let kept: Vec<String> = project.files(".evals").into_keys().filter(|name| name.contains("attempts/1/")).collect();
    assert!(!kept.is_empty() && !kept.iter().any(|name| name.ends_with(".part")), "{kept:?}");
}

#[test]
fn a_retry_that_an_interrupt_came_before_is_told_and_made_later() {
    let project = breaks_once();
    std::fs::create_dir(project.path("state/1")).unwrap();
    let child = until(&project, &["run"], "the first attempt", || has_broken(&project));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("interrupted; 1 trial was not tried again"), "{said}");
    assert!(said.contains("evals run --resume"), "{said}");
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(project.result("a/shaky/default/1")["attempt"], 2);
}

#[test]
fn a_finished_attempt_that_was_put_aside_for_one_that_never_began_still_counts() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let run = project.run_folder();
    let trial = project.path(&format!("{run}/trials/a/demo/default/1"));
    std::fs::create_dir_all(trial.join("attempts/1")).unwrap();
    for name in ["result.json", "trace.jsonl"] {
        std::fs::rename(trial.join(name), trial.join("attempts/1").join(name)).unwrap();
    }
    std::fs::remove_file(project.path(&format!("{run}/results.jsonl"))).unwrap();
    assert_eq!(summary(&project)["pass"], 1);
    // A line that finishes the trial without a verdict does not withdraw the earlier verdict.
    let journal = format!("{run}/journal.jsonl");
    let text = project.read(&journal);
    let last = text.lines().rfind(|line| line.contains("finished")).unwrap().replace(r#","verdict":"pass""#, "");
    project.write(&journal, &format!("{}{last}\n", project.read(&journal)));
    assert_eq!((&summary(&project)["pass"], &summary(&project)["not_run"]), (&1.into(), &0.into()));
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert!(!trial.join("attempts/2").exists());
}

#[test]
fn a_run_whose_time_is_over_says_that_it_needs_more() {
    let project = Project::new();
    project.case("a", "", "steps: [{usage: {cost-usd: 2}}, {say: done}]");
    let more = "resume it with a higher limit than 0s: evals run --resume ";
    let ran = project.evals(&["run", "--max-time", "0s"]).exits(3).says(more);
    let ran = ran.says("goes on, with --max-time 0s again unless you give more");
    assert!(ran.err.contains(" --max-time MORE\n"), "{}", ran.err);
    // The recorded limit holds again.
    project.evals(&["run", "--resume", "latest"]).exits(3).says(more);
    project.evals(&["run", "--resume", "latest", "--max-time", "100s"]).exits(0);
    project.case("b", "", "steps: [{say: done}]");
    let ran = project.evals(&["run", "--max-time", "0s", "--max-cost", "0"]).exits(3);
    ran.says("resume it with a higher limit than 0 or 0s: ").says(" --max-cost MORE --max-time MORE");
}

#[test]
fn a_run_that_goes_on_has_one_budget_and_takes_what_is_said_now() {
    let project = Project::new();
    project.case("a", "trials: 6", "steps: [{usage: {cost-usd: 0.6}}, {say: done}]");
    let go_on = ["run", "--resume", "latest", "--jobs", "1"];
    project
        .evals(&["run", "--max-cost", "1", "--jobs", "1"])
        .exits(3)
        .says("4 trials were not run")
        .says("--max-cost MORE");
    project.evals(&go_on).exits(3).says("1.2 US dollars are spent");
    assert_eq!(finished(&project).len(), 2, "what was spent before counts");
    project.evals(&[&go_on[..], &["--max-cost", "1.5", "--keep-workspace", "always"]].concat()).exits(3);
    assert_eq!(finished(&project).len(), 3);
    assert!(project.path(&format!("{}/trials/a/demo/default/3/workspace", project.run_folder())).exists());
    project.evals(&[&go_on[..], &["--max-cost", "100"]].concat()).exits(0);
    assert_eq!(finished(&project).len(), 6);
}

#[test]
fn a_run_whose_folder_is_removed_is_not_said_to_be_resumable() {
    let project = Project::new();
    let runs = project.path(".evals/runs").display().to_string();
    project.write("agent.sh", &format!("[ \"$1\" = keep ] || rm -rf '{runs}'/*; echo ok\n"));
    let agent = project.path("agent.sh").display().to_string();
    project.harness("sh", &format!("adapter: output-only\ncommand: [sh, '{agent}', '{{prompt}}']"));
    for (case, prompt) in [("a", "keep"), ("b", "remove")] {
        let text = format!("prompt: {prompt}\ngraders: [{{output: {{contains: ok}}}}]\n");
        project.write(&format!("cases/{case}.yaml"), &text);
    }
    let ran = project.evals(&["run", "--harness", "sh", "--jobs", "1"]).exits(4);
    let ran = ran.says("the run cannot be resumed; run the cases again");
    assert!(!ran.err.contains("--resume"), "{}", ran.err);
}

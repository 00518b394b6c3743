//! The inputs of a run must not change after it began; a changed input is named, and trials are not judged by it.

use serde_json::json;

use super::again::{RUN, grade, project};
use crate::project::Project;

/// Each input, with the keys that name it and its content.
const INPUTS: [(&str, &str, &str); 5] = [
    ("cases/a.hidden/check.sh", "hidden: a.hidden\ngraders: [{command: {run: sh check.sh}}]", "exit 1"),
    ("cases/fix/f", "workspace: {copy: fix}\ngraders: [{files: {exists: [f]}}]", "one"),
    ("cases/golden", "graders: [{files: {equals: {made: golden}}}]", "old"),
    ("cases/judge.sh", "graders: [{script: {run: [sh, judge.sh]}}]", "echo '{\"passed\": false}'"),
    ("cases/form.json", "graders: [{output: {json-schema: form.json}}]", "{\"type\": \"string\"}"),
];

fn changed(input: &str, keys: &str, content: &str, does: &str) -> serde_json::Value {
    let project = project("");
    let path = project.path(input).display().to_string();
    let does = does.replace("$F", &format!("'{path}'"));
    project.write("agent.sh", &format!("{does}\necho new > made\necho ok\n"));
    project.write(input, &format!("{content}\n"));
    project.case("a", &format!("trials: 2\n{keys}"), "");
    let ran = project.evals(&[&RUN[..], &["--jobs", "1"]].concat());
    let first = project.result("a/sh/default/1");
    let second = project.result("a/sh/default/2");
    if does.is_empty() {
        assert_ne!((&first["verdict"], &second["verdict"]), (&json!("errored"), &json!("errored")), "{first}");
        return second;
    }
    assert_eq!(ran.code, 3, "{ran:?}");
    for result in [&first, &second] {
        assert_eq!(
            (&result["verdict"], &result["error"]["category"]),
            (&json!("errored"), &json!("setup")),
            "{result}"
        );
        assert_eq!(result["grades"], json!([]));
    }
    let message = first["error"]["message"].as_str().unwrap();
    assert!(message.contains(&path) && message.contains("was changed while the trial ran"), "{message}");
    second
}

#[test]
fn an_agent_that_rewrites_what_judges_it_is_not_judged_by_that_and_the_file_is_named() {
    for (input, keys, content) in INPUTS {
        let rewritten = content.replace('1', "0").replace("false", "true").replace("old", "new").replace("one", "two");
        let rewritten = rewritten.replace("string", "number");
        let second =
            changed(input, keys, content, &format!("printf '%s\\n' '{}' > $F", rewritten.replace('\'', "'\\''")));
        let message = second["error"]["message"].as_str().unwrap();
        assert!(message.contains("was changed since the run began"), "{input}: {message}");
    }
}

#[test]
fn a_change_shows_though_it_is_taken_back_or_hides_its_time() {
    let (input, keys, content) = INPUTS[0];
    let taken_back = "cp -p $F kept; sleep 0.2; echo 'exit 0' > $F; sleep 0.2; cat kept > $F; touch -r kept $F";
    let second = changed(input, keys, content, taken_back);
    assert!(second["error"]["message"].as_str().unwrap().contains("while the trial ran"), "{second}");
}

#[test]
fn a_folder_that_a_case_names_by_a_link_is_held_too() {
    let project = project("");
    let file = project.path("cases/shared/f").display().to_string();
    project.write("cases/shared/f", "one\n");
    std::os::unix::fs::symlink("shared", project.path("cases/app")).unwrap();
    project.write("agent.sh", &format!("echo two > '{file}'\necho ok\n"));
    project.case("a", "trials: 2\nworkspace: {copy: app}\ngraders: [{files: {exists: [f]}}]", "");
    project.evals(&[&RUN[..], &["--jobs", "1"]].concat()).exits(3);
    for (trial, when) in [("a/sh/default/1", "while the trial ran"), ("a/sh/default/2", "since the run began")] {
        let result = project.result(trial);
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("shared/f, an input of case `a`, was changed") && message.contains(when), "{message}");
    }
}

#[test]
fn a_source_behind_a_link_that_has_changed_is_not_graded_again() {
    let project = project("true");
    project.write("cases/shared/f", "one\n");
    std::os::unix::fs::symlink("shared", project.path("cases/app")).unwrap();
    project.case("a", "workspace: {copy: app}\ngraders: [{command: {run: grep -q one f}}]", "");
    project.evals(&RUN).exits(0);
    project.write("cases/shared/f", "two\n");
    let report = grade(&project, &project.runs()[0], &[], 3);
    let reason = report["results"][0]["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("has changed since"), "{reason}");
}

/// Removes from the record of a run what links lead to, as in versions that did not read it.
fn without_targets(project: &Project, run: &str) {
    project.without_digests(&format!(".evals/runs/{run}"));
    let path = format!(".evals/runs/{run}/run.json");
    let mut record: serde_json::Value = serde_json::from_str(&project.read(&path)).unwrap();
    for key in ["digest", "workspace", "played"] {
        let digest = record["cases"][0][key].as_str().unwrap();
        let (parts, _) = digest.split_once('+').unwrap();
        record["cases"][0][key] = json!(parts);
    }
    project.write(&path, &record.to_string());
}

#[test]
fn a_run_of_a_version_that_did_not_read_what_links_lead_to_is_graded_resumed_and_compared() {
    let project = project("true");
    project.write("cases/shared/f", "one\n");
    std::os::unix::fs::symlink("shared", project.path("cases/app")).unwrap();
    project.case("a", "workspace: {copy: app}\ngraders: [{command: {run: grep -q one f}}]", "");
    project.evals(&RUN).exits(0);
    let old = project.runs()[0].clone();
    without_targets(&project, &old);
    let report = grade(&project, &old, &[], 0);
    assert_eq!(report["results"][0]["verdict"], "pass", "{report}");
    // The record does not show whether the files behind the link changed.
    project.evals(&["run", "--resume", &old]).exits(2).says("it is unknown whether `a` changed");
    project.evals(&["run", "--resume", &old, "--changed", "keep"]).exits(0);
    project.evals(&[&RUN[..], &["--label", "new"]].concat()).exits(0);
    let compared = project.evals(&["compare", &old, "new"]);
    assert!(!compared.out.contains("other inputs"), "{compared:?}");
    compared.says("1 case may have changed: the digests of one side do not cover the files that links lead to");
    // Another link is another case.
    project.write("cases/other/f", "one\n");
    std::fs::remove_file(project.path("cases/app")).unwrap();
    std::os::unix::fs::symlink("other", project.path("cases/app")).unwrap();
    let report = grade(&project, &old, &[], 3);
    let reason = report["results"][0]["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("has changed since"), "{reason}");
}

#[test]
fn what_stays_as_it_was_is_judged() {
    for (input, keys, content) in INPUTS {
        let second = changed(input, keys, content, "");
        assert_ne!(second["verdict"], "errored", "{input}: {second}");
    }
}

#[test]
fn the_repository_of_a_fixture_is_held_too_except_for_what_git_rewrites_by_itself() {
    let git = "git -c user.name=a -c user.email=a@b";
    let commits = format!("{git} commit -q --allow-empty -m solved");
    for (does, is_changed) in [(&*commits, true), ("git read-tree HEAD; echo x > .git/FETCH_HEAD", false)] {
        let project = project("");
        project.write("cases/fix/a.txt", "hello\n");
        let fixture = project.path("cases/fix").display().to_string();
        let in_fixture = |line: &str| format!("(cd '{fixture}' && {{ {line}; }}) > /dev/null");
        let sh = |line: &str| {
            let done = std::process::Command::new("sh").args(["-c", &in_fixture(line)]).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        };
        sh(&format!("git init -q . && git add . && {git} commit -qm first"));
        project.write("agent.sh", &format!("{}\necho ok\n", in_fixture(does)));
        let grader = "graders: [{command: {run: 'git log --format=%s | grep -q first'}}]";
        project.case("a", &format!("trials: 2\nworkspace: {{copy: fix}}\n{grader}"), "");
        let code = if is_changed { 3 } else { 0 };
        project.evals(&[&RUN[..], &["--jobs", "1"]].concat()).exits(code);
        for (trial, when) in [("a/sh/default/1", "while the trial ran"), ("a/sh/default/2", "since the run began")] {
            let result = project.result(trial);
            let message = result["error"]["message"].as_str().unwrap_or_default();
            assert_eq!(message.contains(when), is_changed, "{does}: {result}");
            assert_eq!(message.contains(&format!("{fixture}/.git/")), is_changed, "{does}: {result}");
        }
        if !is_changed {
            // Another history is another source.
            sh(&format!("{git} commit -q --amend -m second"));
            let report = grade(&project, &project.runs()[0], &[], 3);
            let reason = report["results"][0]["grades"][0]["reason"].as_str().unwrap();
            assert!(reason.contains("has changed since"), "{reason}");
        }
    }
}

#[test]
fn the_index_of_a_fixture_is_a_part_of_its_source_and_objects_that_nothing_names_are_none() {
    let project = project("true");
    project.write("cases/fix/a.txt", "hello\n");
    let git = |line: &str| {
        let line = format!("git -c user.name=a -c user.email=a@b {line}");
        let done = std::process::Command::new("sh").args(["-c", &line]).current_dir(project.path("cases/fix")).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    for line in ["init -q .", "add .", "commit -qm first"] {
        git(line);
    }
    project.case("a", "workspace: {copy: fix}\ngraders: [{command: {run: 'git ls-files --error-unmatch a.txt'}}]", "");
    project.evals(&[&RUN[..], &["--keep-workspace", "never"]].concat()).exits(0);
    let run = project.runs()[0].clone();
    git("hash-object -w .git/config");
    grade(&project, &run, &[], 0);
    git("prune --expire=now");
    grade(&project, &run, &[], 0);
    git("rm -q --cached a.txt");
    let report = grade(&project, &run, &[], 3);
    let reason = report["results"][0]["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("has changed since"), "{reason}");
}

#[test]
fn a_helper_beside_a_grading_script_is_held_too() {
    for helper in [Some("cases/grade/lib.sh"), Some("cases/grade/new.sh"), None] {
        let project = project("");
        project.write("pass.sh", "echo '{\"passed\": true}'\n");
        let path = project.path(helper.unwrap_or("unused")).display().to_string();
        let from = project.path("pass.sh").display().to_string();
        project.write("agent.sh", &format!("cp '{from}' '{path}'\necho ok\n"));
        project.write("cases/grade/judge.sh", ". \"$(dirname \"$0\")/lib.sh\"\n");
        project.write("cases/grade/lib.sh", "echo '{\"passed\": false, \"reason\": \"no\"}'\n");
        project.case("a", "graders: [{script: {run: [sh, grade/judge.sh]}}]", "");
        let ran = project.evals(&[&RUN[..], &["--jobs", "1"]].concat());
        let result = project.result("a/sh/default/1");
        if helper.is_none() {
            assert_eq!((ran.code, &result["verdict"]), (1, &json!("fail")), "{result}");
        } else {
            assert_eq!((ran.code, &result["error"]["category"]), (3, &json!("setup")), "{result}");
            assert!(result["error"]["message"].as_str().unwrap().contains(&path), "{result}");
        }
    }
}

#[test]
fn the_script_of_a_scripted_agent_is_held_too() {
    let project = Project::new();
    let script = project.path("cases/a.demo.yaml").display().to_string();
    project.case(
        "a",
        "trials: 2",
        &format!("steps: [{{run: {{command: \"echo '# more' >> '{script}'\"}}}}, {{say: done}}]\n"),
    );
    project.evals(&["run", "--jobs", "1"]).exits(3);
    for (trial, when) in [("a/demo/default/1", "while the trial ran"), ("a/demo/default/2", "since the run began")] {
        let error = project.result(trial)["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(error["category"] == "setup" && message.contains(&script) && message.contains(when), "{error}");
    }
}

#[test]
fn the_files_that_are_read_once_are_held_too() {
    let named = "graders/named.yaml";
    for (input, adds) in [("cases/a.yaml", "# more"), (named, "# more"), ("harnesses/sh.yaml", "jobs: 9")] {
        let project = project(&format!("echo '{adds}' >> \"$(cat at)\""));
        project.write("graders/named.yaml", "description: d\noutput: {contains: ok}\n");
        let at = project.path(input).display().to_string();
        project.case("a", &format!("trials: 2\nworkspace: {{files: {{at: '{at}'}}}}\ngraders: [{{use: named}}]"), "");
        rewritten(&project, &[&RUN[..], &["--jobs", "1"]].concat(), ["a/sh/default/1", "a/sh/default/2"], input);
    }
    // A quarantine changes nothing about what is measured, nor does a comment in a manifest.
    for (input, adds) in [
        ("cases/a.yaml", "quarantine: {until: 2999-01-01, why: x}\\n"),
        ("cases/a.yaml", "\\nquarantine:\\n  until: 2999-01-01\\n  why: |\\n    one\\n\\n    two"),
        ("harnesses/sh.yaml", "# more\\n"),
    ] {
        let project = project(&format!("printf '{adds}' >> \"$(cat at)\""));
        let at = project.path(input).display().to_string();
        project.case("a", &format!("trials: 2\nworkspace: {{files: {{at: '{at}'}}}}"), "");
        project.evals(&[&RUN[..], &["--jobs", "1"]].concat()).exits(0);
    }
}

/// Runs a case twice whose demo agent rewrites an input in its first trial, and checks that both trials are errored.
fn rewritten(project: &Project, run: &[&str], trials: [&str; 2], input: &str) {
    project.evals(run).exits(3);
    let path = project.path(input).display().to_string();
    for (trial, when) in trials.into_iter().zip(["while the trial ran", "since the run began"]) {
        let result = project.result(trial);
        let message = result["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(
            (&result["verdict"], &result["error"]["category"]),
            (&json!("errored"), &json!("setup")),
            "{result}"
        );
        assert!(message.contains(&path) && message.contains(when), "{message}");
        assert_eq!(result["grades"], json!([]));
    }
}

#[test]
fn an_attachment_is_held() {
    let project = Project::new();
    let path = project.path("cases/note.md").display().to_string();
    project.write("cases/note.md", "the task");
    let steps = format!("steps: [{{run: {{command: \"echo another >> '{path}'\"}}}}, {{say: done}}]");
    project.case("a", "trials: 2\nattachments: [note.md]", &steps);
    rewritten(&project, &["run", "--jobs", "1"], ["a/demo/default/1", "a/demo/default/2"], "cases/note.md");
}

/// Makes a project with an accepted snapshot, which its demo agent rewrites.
fn with_a_snapshot(keys: &str) -> Project {
    let project = Project::new();
    let path = project.path("cases/a.snapshots/demo.snap").display().to_string();
    let steps = |does: &str| format!("steps: [{{run: {{command: \"{does}\"}}}}, {{say: done}}]");
    project.case("a", keys, &steps("true"));
    project.evals(&["run", "--snapshot", "update", "--label", "old"]).exits(0);
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.case("a", &format!("trials: 2\n{keys}"), &steps(&format!("[ ! -e '{path}' ] || echo >> '{path}'")));
    project
}

#[test]
fn the_accepted_snapshot_that_a_trial_is_judged_by_is_held_with_a_grader_and_without() {
    for keys in ["graders: [{snapshot: {}}]", "graders: [{stop: {reason: [end_turn]}}]"] {
        let project = with_a_snapshot(keys);
        let trials = ["a/demo/default/1", "a/demo/default/2"];
        rewritten(&project, &["run", "--jobs", "1"], trials, "cases/a.snapshots/demo.snap");
    }
}

#[test]
fn a_run_that_accepts_is_not_held_to_what_was_accepted_before() {
    let project = with_a_snapshot("graders: [{stop: {reason: [end_turn]}}]");
    project.evals(&["run", "--jobs", "1", "--snapshot", "update"]).exits(0);
}

#[test]
fn a_run_goes_on_with_the_snapshot_it_began_with_or_says_that_it_changed() {
    let project = Project::new();
    let steps = |says: &str| format!("steps: [{{say: {says}}}]");
    project.case("a", "graders: [{snapshot: {}}]", &steps("one"));
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.evals(&["run"]).exits(0);
    let snapshot = project.read("cases/a.snapshots/demo.snap");
    project.write("cases/a.snapshots/demo.snap", &format!("{snapshot}\n"));
    project.evals(&["run", "--resume", "latest"]).exits(2).says("`a` changed");
    project.evals(&["run", "--resume", "latest", "--changed", "keep"]).exits(0);
}

#[test]
fn a_case_whose_trials_are_all_kept_keeps_the_digests_of_the_files_they_were_judged_by() {
    let project = Project::new();
    project.case("a", "graders: [{snapshot: {}}]", "steps: [{say: one}]");
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.case("b", "workspace: {setup: ['exit 1']}", "steps: [{say: done}]");
    project.evals(&["run"]).exits(3);
    let judged_by = || {
        let record = project.read(&format!("{}/run.json", project.run_folder()));
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        record["cases"][0]["judged_by"].clone()
    };
    let before = judged_by();
    assert!(before.to_string().contains("a.snapshots/demo.snap"), "{before}");
    let snapshot = project.read("cases/a.snapshots/demo.snap");
    project.write("cases/a.snapshots/demo.snap", &format!("{snapshot}\n"));
    let resume = ["run", "--resume", "latest", "--rerun", "errored"];
    project.evals(&[&resume[..], &["--changed", "keep"]].concat()).exits(3);
    assert_eq!(judged_by(), before);
    // So the next resume asks again.
    project.evals(&resume).exits(2).says("`a` changed");
}

#[test]
fn a_resumed_run_reads_the_price_table_that_its_command_line_named() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.write("mine.yaml", "date: '2026-01-02'\nmodels: {dear: {input: 1.5, output: 4}}\n");
    project.evals(&["run", "--prices", "mine.yaml", "--max-time", "0"]).exits(3);
    project.evals(&["run", "--resume", "latest", "--max-time", "100"]).exits(0);
    project.write("mine.yaml", "date: '2026-01-02'\nmodels: {dear: {input: 3, output: 4}}\n");
    project.evals(&["run", "--resume", "latest"]).exits(2).says("the price table changed");
}

#[test]
fn a_price_table_that_changes_prices_nothing_of_the_run_and_a_resumed_run_says_so() {
    let project = Project::new();
    let prices = |input: &str| format!("date: '2026-01-02'\nmodels: {{dear: {{input: {input}, output: 4}}}}\n");
    let path = project.path("prices.yaml").display().to_string();
    let cheaper = format!("sed -i s/1.5/0.1/ '{path}'");
    let steps = format!(
        "steps: [{{run: {{command: \"{cheaper}\"}}}}, {{usage: {{input-tokens: 2000000, output-tokens: 1000000}}}}, {{say: done}}]"
    );
    project.case("a", "trials: 2", &steps);
    project.write("prices.yaml", &prices("1.5"));
    project.evals(&["run", "--model", "dear", "--jobs", "1"]).exits(0);
    assert_eq!(project.read("prices.yaml"), prices("0.1"));
    for trial in ["a/demo/dear/1", "a/demo/dear/2"] {
        assert_eq!(project.result(trial)["metrics"]["cost_usd"], 7.0);
    }
    let record: serde_json::Value =
        serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
    assert_eq!(record["prices"]["digest"], blake3::hash(prices("1.5").as_bytes()).to_hex().as_str(), "{record}");
    project.evals(&["run", "--resume", "latest"]).exits(2).says("the price table changed");
    project.evals(&["run", "--resume", "latest", "--changed", "keep"]).exits(0);
}

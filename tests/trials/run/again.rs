//! `evals grade`: stored runs and traces are graded again, without an agent, and without a change to the stored files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::project::{Project, bubblewrap, wait_for};

/// Makes a project whose agent is a script that leaves a mark outside the workspace each time it is started.
pub fn project(script: &str) -> Project {
    let project = Project::new();
    let mark = project.path("started").display().to_string();
    project.write("agent.sh", &format!("echo x >> '{mark}'\n{script}\necho ok\n"));
    let agent = project.path("agent.sh");
    project.harness("sh", &format!("adapter: output-only\ncommand: [sh, {}]\nprompt-via: stdin", agent.display()));
    project
}

pub const RUN: [&str; 3] = ["run", "--harness", "sh"];

/// Grades a run again, which must not change the run and start no agent. Returns the derived run as JSON.
#[track_caller]
pub fn grade(project: &Project, run: &str, more: &[&str], code: i32) -> Value {
    let folder = format!(".evals/runs/{run}");
    let started = || std::fs::read(project.path("started")).unwrap_or_default().len();
    let (before, agents): (BTreeMap<_, _>, usize) = (project.files(&folder), started());
    let latest = || project.evals(&["report", "latest", "--format", "json"]).json()["run"].clone();
    let newest = latest();
    let ran = project.evals(&[&["grade", run, "--format", "json"], more].concat()).exits(code);
    assert!(project.files(&folder) == before, "the source was changed");
    assert_eq!(started(), agents, "an agent was started");
    assert_eq!(latest(), newest, "`latest` is another run");
    let left: Vec<_> = project.left_over();
    assert!(left.is_empty(), "{left:?}");
    ran.json()
}

pub fn only(report: &Value) -> &Value {
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{report}");
    &results[0]
}

pub fn grader<'a>(result: &'a Value, name: &str) -> &'a Value {
    let grades = result["grades"].as_array().unwrap();
    grades.iter().find(|grade| grade["name"] == name).unwrap_or_else(|| panic!("no {name}: {result}"))
}

#[test]
fn what_has_not_changed_is_judged_as_it_was_from_kept_workspaces_and_from_patches() {
    let change =
        "printf 'new\\n' > made; chmod 755 made; rm gone; printf '\\000\\001' > bin; ln -s made link; echo two >> f";
    for keep in ["always", "never"] {
        let project = project(change);
        project.write("cases/fix/gone", "x\n");
        project.write("cases/fix/f", "one\n");
        project.write("cases/a.hidden/check.sh", "grep -q two f && test -x made && test ! -e gone && test -L link\n");
        let keys = "workspace: {copy: fix, setup: ['echo set > up', 'echo home > $HOME/kept']}\nhidden: a.hidden\n\
                    graders: [{command: {run: 'sh check.sh && grep -q set up && grep -q home $HOME/kept'}}, \
                    {files: {exists: [made, bin], contains: {f: two}}}, \
                    {diff: {created: [made, bin, link], changed: [f], deleted: [gone]}}, {output: {equals: ok}}]";
        project.case("a", keys, "");
        project.evals(&[&RUN[..], &["--keep-workspace", keep]].concat()).exits(0);
        let run = project.runs()[0].clone();
        let before = project.result("a/sh/default/1");
        let report = grade(&project, &run, &[], 0);
        assert_eq!(only(&report), &before, "{keep}");
        assert_eq!((&report["derived_from"], &report["summary"]["pass"]), (&run.clone().into(), &1.into()));
        let derived = report["run"].as_str().unwrap().to_owned();
        let record: Value = serde_json::from_str(&project.read(&format!(".evals/runs/{derived}/run.json"))).unwrap();
        assert_eq!((&record["derived_from"], &record["graded"]), (&run.clone().into(), &true.into()));
        project.evals(&["show", &derived, "a"]).exits(0).says("PASS a sh trial 1");
        project.evals(&["report", &derived]).exits(0).says(&format!("run {run}, graded again"));
        project.evals(&["run", "--resume", &derived]).exits(2).says(&format!("resume run {run}"));
        // The derived run can be graded again, even if the original run no longer exists.
        assert_eq!(only(&grade(&project, &derived, &[], 0)), &before, "{keep}");
        std::fs::remove_dir_all(project.path(&format!(".evals/runs/{run}"))).unwrap();
        let again = project.evals(&["grade", &derived, "--format", "json"]).exits(0).json();
        assert_eq!(only(&again), &before, "{keep}");
    }
}

#[test]
fn verdicts_that_change_are_shown_with_the_graders_that_changed_them() {
    let project = project("echo new > made");
    project.case("a", "graders: [{files: {name: made, exists: [made]}}, {output: {equals: ok}}]", "");
    project.case("b", "graders: [{files: {exists: [other]}}]", "");
    project.evals(&RUN).exits(1);
    let run = project.runs()[0].clone();
    project.case("a", "graders: [{files: {name: made, contains: {made: old}}}, {command: {run: 'true'}}]", "");
    project.case("b", "graders: [{files: {exists: [made]}}]", "");
    let report = grade(&project, &run, &[], 1);
    let of = |case: &str| {
        report["results"].as_array().unwrap().iter().find(|result| result["case"] == case).cloned().unwrap()
    };
    assert_eq!((&of("a")["verdict"], &of("b")["verdict"]), (&"fail".into(), &"pass".into()));
    assert_eq!((&of("a")["was"]["verdict"], &of("b")["was"]["verdict"]), (&"pass".into(), &"fail".into()));
    assert_eq!(of("a")["was"]["graders"][0], serde_json::json!({"name": "made", "was": "passed", "now": "failed"}));
    assert_eq!(of("a")["was"]["graders"][1], serde_json::json!({"name": "command", "now": "passed"}));
    assert_eq!(of("a")["was"]["graders"][2], serde_json::json!({"name": "output", "was": "passed"}));
    let ran = project.evals(&["grade", &run]).exits(1).says("2 verdicts changed");
    let ran = ran.says("pass -> fail a sh trial 1 by made: passed -> failed");
    ran.says("fail -> pass b sh trial 1 by files: failed -> passed");
    // A later report contains the same.
    let derived = report["run"].as_str().unwrap();
    project.evals(&["report", derived]).exits(0).says("2 verdicts changed");
}

#[test]
fn protected_files_limits_and_thresholds_count_as_they_are_now() {
    let project = project("echo evil > tests/x; echo fine > src");
    project.write("cases/fix/tests/x", "right\n");
    let keys = "workspace: {copy: fix}\ngraders: [{command: {run: 'grep -q evil tests/x'}}]";
    for keep in ["always", "never"] {
        project.case("a", keys, "");
        project.evals(&[&RUN[..], &["--keep-workspace", keep]].concat()).exits(0);
        let run = project.runs().pop().unwrap();
        let now = "graders: [{command: {run: 'grep -q right tests/x'}}]";
        project.case("a", &format!("workspace: {{copy: fix, protect: [tests/**]}}\n{now}"), "");
        let report = grade(&project, &run, &[], 0);
        assert!(only(&report)["warnings"].to_string().contains("changed the protected file tests/x"), "{report}");
        project.case("a", &format!("workspace: {{copy: fix, protect: [tests/**], protect-strict: true}}\n{now}"), "");
        assert_eq!(only(&grade(&project, &run, &[], 1))["score"], 0.0, "{keep}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn what_an_old_run_cannot_answer_is_ungraded_and_told() {
    // Ignored files are in no patch.
    let project = project("mkdir -p target; echo built > target/out; echo x > made");
    project.write("cases/fix/.gitignore", "target/\n");
    let keys = "workspace: {copy: fix}\ngraders: [{command: {name: built, run: 'test -e target/out'}}, {diff: {created: [made]}}]";
    project.case("a", keys, "");
    project.evals(&RUN).exits(0);
    let run = project.runs()[0].clone();
    let report = grade(&project, &run, &[], 3);
    let reason = grader(only(&report), "built")["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("there were 6 bytes of them, and now there are 0") && reason.contains("exited with 1"),
        "{reason}"
    );
    assert_eq!(grader(only(&report), "diff")["passed"], true);
    project.evals(&["grade", &run]).exits(3).says("note: 1 trial: the workspace was made again and is not whole");

    // The source has changed.
    project.write("cases/fix/more", "x\n");
    let report = grade(&project, &run, &[], 3);
    assert!(grader(only(&report), "built")["reason"].as_str().unwrap().contains("has changed since"), "{report}");
    std::fs::remove_file(project.path("cases/fix/more")).unwrap();

    // The case has moved to another file.
    std::fs::rename(project.path("cases/a.yaml"), project.path("cases/b.yaml")).unwrap();
    let report = grade(&project, &run, &[], 3);
    assert!(only(&report)["warnings"].to_string().contains("its case no longer exists at"), "{report}");
    assert_eq!(only(&report)["grades"], Value::Array(Vec::new()));
    let report = grade(&project, &run, &["--case", "cases/b.yaml"], 3);
    assert_eq!((&only(&report)["case"], only(&report)["grades"].as_array().unwrap().len()), (&"a".into(), 2));
}

#[test]
fn a_repository_is_checked_out_again_at_its_commit_and_one_of_an_old_run_that_moved_is_told() {
    let project = project("echo two > f");
    let git = |line: &str| {
        let line = format!("cd '{}' && git -c user.name=a -c user.email=a@b {line}", project.path("repo").display());
        let done = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    project.write("repo/f", "one\n");
    git("init -q .");
    git("add f");
    git("commit -qm one");
    let commit = git("rev-parse HEAD");
    let grader = "graders: [{command: {run: 'grep -q two f'}}]";
    project.case("fixed", &format!("workspace: {{git: {{path: ../repo, rev: {commit}}}}}\n{grader}"), "");
    project.case("moving", &format!("workspace: {{git: {{path: ../repo}}}}\n{grader}"), "");
    project.evals(&RUN).exits(0);
    let run = project.runs()[0].clone();
    let report = grade(&project, &run, &[], 0);
    assert!(!report["results"][0]["warnings"].to_string().contains("not whole"), "{report}");
    assert!(!report["results"][1]["warnings"].to_string().contains("so it may have changed"), "{report}");
    // Versions that did not resolve revisions recorded no commit.
    project.without_digests(&format!(".evals/runs/{run}"));
    let path = format!(".evals/runs/{run}/run.json");
    let recorded = project.read(&path);
    let mut old: Value = serde_json::from_str(&recorded).unwrap();
    let moving = old["cases"][1].as_object_mut().unwrap();
    moving.retain(|key, _| !["resolved", "workspace", "played"].contains(&key.as_str()));
    let old = old.to_string();
    project.write(&path, &old);
    let report = grade(&project, &run, &[], 0);
    assert!(report["results"][1]["warnings"].to_string().contains("so it may have changed"), "{report}");
    project.write("repo/f", "three\n");
    git("commit -qam three");
    project.write(&path, &recorded);
    grade(&project, &run, &[], 0);
    project.write(&path, &old);
    let report = grade(&project, &run, &[], 3);
    assert_eq!(
        (&report["results"][0]["verdict"], &report["results"][1]["verdict"]),
        (&"pass".into(), &"ungraded".into())
    );
    let reason = grader_of(&report["results"][1]);
    assert!(reason.contains("`f` is not what the patch was made from"), "{reason}");
}

fn grader_of(result: &Value) -> &str {
    result["grades"][0]["reason"].as_str().unwrap()
}

#[test]
fn what_no_patch_holds_is_neither_passed_nor_failed_without_it() {
    let project = Project::new();
    let works = "rm only/a; mkdir new; git init -q .; git -c user.name=x -c user.email=x commit -qm WIP --allow-empty";
    project.harness("works", &format!("adapter: output-only\ncommand: [sh, -c, \"{works}; echo done\"]"));
    let workspace = "prompt: x\nworkspace: {files: {only/a: '1', b.txt: hello}}\n";
    for (name, grader) in [
        ("gone", "files: {absent: [new, only]}"),
        ("committed", "command: {run: \"git log --oneline | grep -q WIP\"}"),
        ("uncommitted", "command: {run: \"! git log --oneline 2>/dev/null | grep -q WIP\"}"),
        ("content", "files: {contains: {b.txt: hello}}"),
    ] {
        project.write(&format!("cases/{name}.yaml"), &format!("{workspace}graders: [{grader}]\n"));
    }
    project.evals(&["run", "--harness", "works", "--keep-workspace", "never"]).exits(1);
    let report = grade(&project, "latest", &[], 1);
    let of = |case: &str| report["results"].as_array().unwrap().iter().find(|it| it["case"] == case).cloned().unwrap();
    // The new and the empty folder are recorded, and no commit makes them.
    assert_eq!((&of("gone")["verdict"], of("gone").get("was")), (&"fail".into(), None));
    for case in ["committed", "uncommitted"] {
        let result = of(case);
        assert_eq!(result["verdict"], "ungraded", "{result}");
        let reason = result["grades"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("the agent changed what no patch holds"), "{reason}");
    }
    assert_eq!(of("content")["verdict"], "pass");
    assert_eq!(of("content")["beyond_patch"], serde_json::json!(["the repository in `.git`"]));
    assert_eq!(
        of("content")["beside_patch"],
        serde_json::json!({"changed": [".git"], "folders": ["new", "only"], "unmeasured": [".git"]})
    );
}

#[test]
fn ignored_files_that_the_agent_changed_are_passed_by_no_grader_of_a_rebuilt_workspace() {
    let project = Project::new();
    let works = "rm built/gone; echo two > built/same; rmdir built/empty; echo new > built/new; rm -r bare";
    project.harness("works", &format!("adapter: output-only\ncommand: [sh, -c, \"{works}; echo done\"]"));
    let workspace = "prompt: x\nworkspace:\n  files: {.gitignore: 'built/', src/a: '1'}\n  \
                     setup: ['mkdir -p built/empty bare', 'echo one > built/gone; echo one > built/same']\n";
    let passes =
        [("source", "files: {exists: [src/a, src], contains: {src/a: '1'}}"), ("change", "diff: {none: true}")];
    let cases = [
        ("deleted", "files: {exists: [built/gone]}"),
        ("pattern", "files: {exists: ['**/gone']}"),
        ("replaced", "files: {contains: {built/same: one}}"),
        ("folder", "files: {exists: [built/empty]}"),
        ("command", "command: {run: test -e built/gone}"),
        ("tests", "tests: {run: 'test -e built/gone && printf \"1..1\\nok 1 - a\\n\"', format: tap}"),
    ];
    // A deleted folder is recorded.
    let fails = [("bare", "files: {exists: [bare]}")];
    for (name, grader) in cases.iter().chain(&passes).chain(&fails) {
        project.write(&format!("cases/{name}.yaml"), &format!("{workspace}graders: [{grader}]\n"));
    }
    project.evals(&["run", "--harness", "works", "--keep-workspace", "never"]).exits(1);
    let report = grade(&project, "latest", &[], 1);
    let of = |case: &str| report["results"].as_array().unwrap().iter().find(|it| it["case"] == case).cloned().unwrap();
    for (case, _) in cases {
        let result = of(case);
        assert_eq!(result["was"]["verdict"], "fail", "{case}: {result}");
        assert_eq!(result["verdict"], "ungraded", "{case}: {result}");
        let why = grader_of(&result);
        assert!(why.contains("ignored files are not part of the patch, and `built` changed"), "{why}");
        assert_eq!(result["beyond_patch"], serde_json::json!(["ignored files"]));
        assert_eq!(
            result["beside_patch"],
            serde_json::json!({"changed": ["built"], "deleted_folders": ["bare"], "unmeasured": ["built"]})
        );
    }
    assert_eq!((&of("bare")["verdict"], of("bare").get("was")), (&"fail".into(), None));
    for (case, _) in passes {
        let result = of(case);
        assert_eq!(result["verdict"], "pass", "{case}: {result}");
    }
}

#[test]
fn what_a_patch_leaves_out_or_masks_is_told() {
    let mut project = project("truncate -s 20M big; echo \"token $SOME_TOKEN\" > note");
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    let agent = project.path("agent.sh").display().to_string();
    let line = format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\nenv: {{pass: [SOME_TOKEN]}}");
    project.harness("sh", &line);
    project.case("a", "graders: [{files: {exists: [big, note]}}]", "");
    project.evals(&RUN).exits(0);
    let run = project.runs()[0].clone();
    let report = grade(&project, &run, &[], 3);
    let reason = grader(only(&report), "files")["reason"].as_str().unwrap();
    assert!(reason.contains("leaves out the content of 1 changed file, the first is `big`"), "{report}");
    let warnings = only(&report)["warnings"].to_string();
    assert!(warnings.contains("the patch held secrets and was masked"), "{warnings}");
    // The existing files are judged all the same.
    project.case("a", "graders: [{files: {exists: [note]}}, {diff: {created: [big, note]}}]", "");
    grade(&project, &run, &[], 0);
}

#[test]
fn a_trace_that_is_gone_or_damaged_is_not_judged_and_an_errored_trial_stays_errored() {
    let project = project("true");
    project.case("a", "graders: [{output: {equals: ok}}]", "");
    project.case("b", "graders: [{output: {equals: ok}}]\nworkspace: {setup: ['exit 7']}", "");
    project.evals(&RUN).exits(3);
    let run = project.runs()[0].clone();
    let report = grade(&project, &run, &[], 3);
    assert_eq!(report["results"][1]["error"]["category"], "setup");
    assert_eq!((&report["summary"]["pass"], &report["summary"]["errored"]), (&1.into(), &1.into()));
    let trace = format!(".evals/runs/{run}/trials/a/sh/default/1/trace.jsonl");
    let text = project.read(&trace);
    std::fs::remove_file(project.path(&trace)).unwrap();
    project.write(&trace, &text.replacen("\"seq\":0", "\"seq\":", 1));
    let report = grade(&project, &run, &[], 3);
    assert!(report["results"][0]["warnings"].to_string().contains("could not be read: line 2"), "{report}");
    std::fs::remove_file(project.path(&trace)).unwrap();
    let report = grade(&project, &run, &[], 3);
    assert!(report["results"][0]["warnings"].to_string().contains("its trace is missing"), "{report}");
    assert_eq!(report["results"][0]["verdict"], "ungraded");
}

#[test]
fn skipped_and_unfinished_trials_are_what_they_were() {
    let project = project("true");
    project.case("a", "graders: [{output: {equals: ok}}]", "");
    project.case("b", "graders: [{tool-calls: {none: true}}]\nrequires: {tracing: true}", "");
    project.case("c", "graders: [{output: {equals: other}}]", "");
    project.case("d", "graders: [{output: {equals: ok}}]", "");
    project.evals(&[&RUN[..], &["--fail-fast", "--jobs", "1"]].concat()).exits(1);
    let run = project.runs()[0].clone();
    project.case("c", "graders: [{output: {equals: ok}}]", "");
    let report = grade(&project, &run, &[], 3);
    let summary = &report["summary"];
    assert_eq!((&summary["pass"], &summary["skipped"], &summary["not_run"]), (&2.into(), &1.into(), &1.into()));
    // A derived run cannot be resumed, so its report names the run that can.
    let derived = report["run"].as_str().unwrap().to_owned();
    let twice = grade(&project, &derived, &[], 3)["run"].as_str().unwrap().to_owned();
    let says = format!("1 trial not run; `evals run --resume {run}` goes on");
    for id in [&run, &derived, &twice] {
        project.evals(&["report", id]).exits(0).says(&says);
    }
}

#[test]
fn graders_run_their_commands_in_the_sandbox() {
    if !bubblewrap() {
        return;
    }
    let project = project("true");
    let secret = project.path("secret");
    project.write("secret", "x");
    project.case("a", &format!("graders: [{{command: {{run: 'cat {}'}}}}]", secret.display()), "");
    project.evals(&RUN).exits(0);
    let run = project.runs()[0].clone();
    grade(&project, &run, &[], 0);
    grade(&project, &run, &["--sandbox", "bwrap"], 1);
}

#[test]
fn an_interrupted_grade_leaves_nothing() {
    let project = project("true");
    let begun = project.path("begun");
    project.case("a", "graders: [{output: {equals: ok}}]", "");
    project.evals(&RUN).exits(0);
    project.case("a", &format!("graders: [{{command: {{run: 'touch {}; sleep 60'}}}}]", begun.display()), "");
    let run = project.runs()[0].clone();
    let child = project.command(&["grade", &run]).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the grader", || begun.exists());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("interrupted") && !said.contains("recorded"), "{said}");
    assert_eq!(project.runs(), [run]);
    wait_for("an empty temporary folder", || project.left_over().is_empty());
}

#[test]
fn single_traces_and_imported_sessions_are_judged_by_the_case_that_is_named() {
    let project = Project::new();
    let keys = "graders: [{tool-calls: {require: [{kind: execute}]}}, {output: {name: said, contains: done}}]";
    project.case("a", keys, "steps: [{run: {command: echo hi}}, {say: done}]");
    project.evals(&["run"]).exits(0);
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder());
    project.write("lone.jsonl", &project.read(&trace));
    let judge = "graders: [{tool-calls: {require: [{kind: execute}]}}, {files: {exists: [x]}}, {diff: {none: true}}]";
    project.case("b", judge, "");
    let report = project.evals(&["grade", "lone.jsonl", "lone.jsonl", "--case", "cases/b.yaml", "--format", "json"]);
    let report = report.exits(3).json();
    assert_eq!(report["results"].as_array().unwrap().len(), 2);
    let result = &report["results"][0];
    assert_eq!((&result["case"], &result["harness"], &result["trial"]), (&"b".into(), &"demo".into(), &1.into()));
    assert_eq!(report["results"][1]["trial"], 2);
    assert_eq!(grader(result, "tool-calls")["passed"], true);
    for name in ["files", "diff"] {
        assert_eq!(grader(result, name)["outcome"], "ungraded", "{result}");
    }
    // The derived run can be shown like any run, but is never the latest.
    project.evals(&["show", report["run"].as_str().unwrap(), "b/demo/default/2"]).exits(0);
    assert_eq!(project.evals(&["report", "--format", "json"]).json()["results"][0]["case"], "a");
    // A patch beside a trace shows what changed.
    let beside = project.evals(&["grade", &trace, "--case", "cases/b.yaml", "--format", "json"]).exits(3).json();
    assert_eq!(grader(only(&beside), "diff")["passed"], true);
}

#[test]
fn a_single_trace_of_another_case_or_with_other_prompts_is_told() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder());
    project.write("lone.jsonl", &project.read(&trace));
    project.case("more", "turns: [Do it., Delete it.]", "");
    project.case("other", "turns: [Something else.]", "");
    let of = |case: &str| {
        let case = format!("cases/{case}.yaml");
        project.evals(&["grade", "lone.jsonl", "--case", &case, "--format", "json"])
    };
    let same = of("a").exits(0);
    assert_eq!((same.err.as_str(), &only(&same.json())["warnings"]), ("", &serde_json::json!([])));
    // A prompt that was never sent is not a task done.
    let more = of("more").exits(3);
    let report = more.json();
    let warning = &only(&report)["warnings"][0];
    assert_eq!((&warning["code"], &warning["sent"]), (&"prompts_not_sent".into(), &1.into()), "{report}");
    assert_eq!(warning["planned"], 2);
    let more = more.says("note: graded by case `more`, but the trace names another case: lone.jsonl (`a`)");
    assert!(!more.err.contains("another prompt"), "{}", more.err);
    let other = of("other").exits(0);
    assert_eq!(only(&other.json())["warnings"][0]["code"], "other_inputs");
    let run = other.json()["run"].as_str().unwrap().to_owned();
    other.says("note: the agent had another prompt than case `other` names: lone.jsonl");
    // A run of single traces is compared with its case as that is now.
    let codes = |run: &str| {
        let graded = project.evals(&["grade", run, "--format", "json"]).exits(0);
        let report = graded.json();
        assert_eq!(
            graded.err.contains("had another prompt than the case names now"),
            !only(&report)["warnings"][0].is_null()
        );
        (report["run"].as_str().unwrap().to_owned(), only(&report)["warnings"].to_string())
    };
    let (run, warnings) = codes(&run);
    assert!(warnings.contains("other_inputs"), "{warnings}");
    project.write("cases/other.yaml", &project.read("cases/a.yaml"));
    let (run, warnings) = codes(&run);
    assert_eq!(warnings, "[]");
    project.case("other", "turns: [Something else.]", "");
    assert!(codes(&run).1.contains("other_inputs"));
}

/// Runs a command, and passes its output to another command.
fn piped(project: &Project, first: &[&str], second: &[&str]) -> (String, String, i32) {
    let imported = project.evals(first).exits(0).out;
    let mut command = project.command(second);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(imported.as_bytes());
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr), done.status.code().unwrap())
}

#[test]
fn recordings_are_piped_from_import() {
    let project = Project::new();
    let recordings = std::path::absolute("tests/recordings").unwrap();
    project.case("a", "graders: [{tool-calls: {require: [{kind: edit}]}}, {budget: {time: 5m, diagnostic: true}}]", "");
    let whole = std::fs::read_to_string(recordings.join("claude-code/write.jsonl")).unwrap();
    let without_its_end = whole.trim_end().rsplit_once('\n').unwrap().0;
    project.write("cut.jsonl", without_its_end);
    for (file, code, verdict, category) in [
        (recordings.join("claude-code/write.jsonl"), 0, "pass", None),
        (recordings.join("claude-code/err400.jsonl"), 3, "errored", Some("provider")),
        (project.path("cut.jsonl"), 3, "errored", Some("crashed")),
    ] {
        let path = file.display().to_string();
        let file = &path;
        let import = ["import", "--adapter", "claude-code-stream", &path];
        let grade = ["grade", "-", "--case", "cases/a.yaml", "--format", "json"];
        let (out, err, exit) = piped(&project, &import, &grade);
        assert_eq!(exit, code, "{file}: {out}\n{err}");
        let report: Value = serde_json::from_str(&out).unwrap();
        let result = only(&report);
        assert_eq!((&result["verdict"], result["error"]["category"].as_str()), (&verdict.into(), category), "{file}");
        assert_eq!(result["metrics"].get("duration_ms"), None, "{file} has no times");
        if verdict == "pass" {
            let reason = grader(result, "budget")["reason"].as_str().unwrap();
            assert_eq!(grader(result, "budget")["outcome"], "ungraded", "{reason}");
        }
    }
}

#[test]
fn a_trace_is_masked_before_it_lies_in_a_run() {
    let mut project = Project::new();
    project.case("a", "graders: [{output: {no-secrets: true}}]", "steps: [{say: the key is a-secret-of-the-user}]");
    project.evals(&["run"]).exits(0);
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder());
    project.write("lone.jsonl", &project.read(&trace));
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    project.evals(&["grade", "lone.jsonl", "--case", "cases/a.yaml"]).exits(1);
    for (path, bytes) in project.files(".evals") {
        assert!(!String::from_utf8_lossy(&bytes).contains("a-secret-of-the-user"), "{path}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.case("b", "", "steps: [{say: done}]");
    project.evals(&["grade", "latest"]).exits(2).says("there are no runs yet");
    project.evals(&["run"]).exits(0);
    let run = project.runs()[0].clone();
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder());
    let wire = trace.replace("trace.jsonl", "wire.jsonl");
    let text = project.read(&trace);
    project.write("broken.jsonl", &text.replacen("\"seq\":0", "\"seq\":", 1));
    project.write("newer.jsonl", &text.replacen("\"version\":1", "\"version\":99", 1));
    project.write("cases/c.yaml", "prompt: x\n");
    let refused = |args: &[&str], says: &str| {
        project.evals(&[&["grade"], args].concat()).exits(2).says(says);
    };
    refused(&[], "required");
    refused(&[&trace], "give its case with --case FILE");
    refused(&[&trace, &run, "--case", "cases/a.yaml"], "is not the file of a trace");
    refused(&[&run, &run], "name one run");
    refused(&["gone.jsonl", "lost.jsonl", "--case", "cases/a.yaml"], "there is no gone.jsonl, no lost.jsonl");
    refused(&["broken.jsonl", "--case", "cases/a.yaml"], "broken.jsonl: line 2");
    refused(&["newer.jsonl", "--case", "cases/a.yaml"], "newer.jsonl: the trace has version 99");
    refused(&[&wire, "--case", "cases/a.yaml"], "evals import --adapter A FILE | evals grade - --case FILE");
    refused(&["-", "--case", "cases/a.yaml"], "standard input: the trace is empty");
    refused(&[&trace, "--case", "cases/c.yaml"], "no grader");
    std::fs::remove_file(project.path("cases/c.yaml")).unwrap();
    refused(&[&trace, "--case", "cases"], "--case names 2 cases");
    project.write("other/x.yaml", &project.read("cases/a.yaml"));
    refused(&[&run, "--case", "other/x.yaml"], "has no case `x`");
    assert_eq!(project.runs(), [run]);
}

#[test]
fn a_derived_run_goes_where_it_is_asked_to() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: ok}]");
    project.evals(&["run"]).exits(0);
    let run = project.runs()[0].clone();
    project.evals(&["grade", &run, "--out", "apart"]).exits(0).says("apart/");
    project.evals(&["grade", "latest", "--out", "apart"]).exits(0);
    assert_eq!((project.runs().len(), std::fs::read_dir(project.path("apart")).unwrap().count()), (1, 2));
    project.evals(&["grade", "nobody", "--out", "apart"]).exits(2).says("no run is called `nobody` in");
}

#[test]
fn steps_of_a_sub_agent_count_in_the_figures_the_limits_and_the_budget() {
    let project = Project::new();
    let header =
        r#"{"type":"trace","version":1,"adapter":"acp","capabilities":{"tracing":true,"interaction":true},"model":{}}"#;
    let mut lines =
        vec![header.to_owned(), r#"{"seq":0,"at_ms":0,"type":"message","role":"user","text":"go"}"#.to_owned()];
    let mut push = |text: String| lines.push(format!(r#"{{"seq":{},"at_ms":1,{text}}}"#, lines.len() - 1));
    push(r#""type":"tool_call","call":"t","step":0,"kind":"think","name":"Task""#.to_owned());
    // The numbers of the steps are the sub-agent's own.
    for step in 0..3 {
        push(format!(r#""type":"tool_call","call":"s{step}","step":{step},"kind":"read","parent":"t""#));
        push(format!(r#""type":"tool_result","call":"s{step}","status":"ok","parent":"t""#));
    }
    push(r#""type":"tool_result","call":"t","status":"ok""#.to_owned());
    push(r#""type":"stop","reason":"end_turn","output":"done""#.to_owned());
    project.write("sub.jsonl", &format!("{}\n", lines.join("\n")));
    for (limit, verdict) in [(3, "fail"), (4, "pass")] {
        for keys in [format!("graders: [{{budget: {{steps: {limit}}}}}]"), format!("limits: {{steps: {limit}}}")] {
            let graders = if keys.contains("graders") { "" } else { "\ngraders: [{errors: {max: 0}}]" };
            project.case("a", &format!("{keys}{graders}"), "");
            let report = project.evals(&["grade", "sub.jsonl", "--case", "cases/a.yaml", "--format", "json"]).json();
            let result = only(&report);
            assert_eq!(
                (&result["verdict"], &result["metrics"]["steps"]),
                (&verdict.into(), &4.into()),
                "{keys}: {result}"
            );
        }
    }
}

#[test]
fn a_run_in_which_nothing_has_finished_is_graded_as_not_run() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--max-cost", "0"]).exits(3);
    let run = project.runs()[0].clone();
    let report = project.evals(&["grade", &run, "--format", "json"]).exits(3).says("nothing to grade").json();
    assert_eq!((&report["summary"]["not_run"], report["results"].as_array().map(Vec::len)), (&1.into(), Some(0)));
    assert_eq!(project.runs(), [run], "an empty run was written");
}

#[test]
fn a_run_that_is_graded_while_it_goes_on_says_to_grade_it_again() {
    let project = Project::new();
    let flag = project.path("flag").display().to_string();
    project.case("a", "", "steps: [{say: done}]");
    let wait = format!("n=0; while [ ! -e {flag} ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done");
    project.case("b", "", &format!("steps: [{{run: {{command: '{wait}'}}}}, {{say: done}}]"));
    let args = ["run", "--jobs", "1", "--label", "whole"];
    let mut child = project.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the second trial", || {
        let runs = project.runs();
        let journal = runs.first().map(|run| project.path(&format!(".evals/runs/{run}/journal.jsonl")));
        journal.and_then(|path| fs::read_to_string(path).ok()).is_some_and(|text| text.contains("\"b\""))
    });
    let run = project.runs()[0].clone();
    let wanted = format!("the run was going on when it was graded; grade it again: `evals grade {run}`");
    let graded = project.evals(&["grade", &run, "--label", "early"]).exits(3).says(&wanted);
    assert!(!graded.out.contains("--resume"), "{}", graded.out);
    project.evals(&["report", "early"]).exits(0).says(&wanted);
    fs::write(flag, "").unwrap();
    child.wait().unwrap();
    project.evals(&["grade", &run]).exits(0);
}

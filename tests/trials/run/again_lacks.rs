//! `evals grade`: missing parts of a stored workspace are reported, and no grader passes or fails because of them.

use serde_json::Value;

use super::again::{RUN, grade, grader, only, project};
use crate::project::Project;

fn run(project: &Project, keep: &str, code: i32) -> String {
    project.evals(&[&RUN[..], &["--keep-workspace", keep]].concat()).exits(code);
    project.runs().pop().unwrap()
}

fn reason<'a>(result: &'a Value, name: &str) -> &'a str {
    assert_eq!(grader(result, name)["outcome"], "ungraded", "{result}");
    assert_eq!(grader(result, name).get("passed"), None, "{result}");
    grader(result, name)["reason"].as_str().unwrap()
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "`{part}` is not in: {text}");
}

#[test]
fn what_is_known_of_protected_files_stays_known_without_a_workspace() {
    let project = project("echo evil > tests/x; echo fine > src");
    project.write("cases/fix/tests/x", "right\n");
    let graders = "graders: [{output: {equals: ok}}, {command: {run: 'true', diagnostic: true}}]";
    project.case("a", &format!("workspace: {{copy: fix, protect: [tests/**], protect-strict: true}}\n{graders}"), "");
    let run = run(&project, "never", 1);
    project.write("cases/fix/other", "x\n");
    let report = grade(&project, &run, &[], 1);
    assert_eq!((&only(&report)["verdict"], &only(&report)["score"]), (&"fail".into(), &0.0.into()));
    has(reason(only(&report), "command"), "has changed since");
    // Nothing was restored, so the warning does not claim it.
    let warnings = only(&report)["warnings"].to_string();
    has(&warnings, "the agent changed the protected file tests/x\"");
    assert!(!warnings.contains("put back"), "{warnings}");
    // A derived run reports it as well.
    let derived = report["run"].as_str().unwrap().to_owned();
    assert_eq!(only(&grade(&project, &derived, &[], 1))["warnings"], only(&report)["warnings"]);
}

#[test]
fn a_script_of_several_grades_does_not_shift_the_graders_behind_it() {
    let project = project("mkdir -p target; echo built > target/out");
    project.write("cases/fix/.gitignore", "target/\n");
    project.write("cases/judge.sh", "test -e target/out && p=true || p=false\n\
         echo '[{\"name\": \"one\", \"passed\": '$p'}, {\"name\": \"two\", \"passed\": '$p'}, {\"name\": \"three\", \"passed\": true}]'\n");
    let graders = "[{script: {run: [sh, judge.sh]}}, {output: {equals: ok}}, {files: {exists: [target/out]}}]";
    project.case("a", &format!("workspace: {{copy: fix}}\ngraders: {graders}"), "");
    let run = run(&project, "never", 0);
    let report = grade(&project, &run, &[], 3);
    for name in ["one", "two", "files"] {
        has(reason(only(&report), name), "failed in an incomplete workspace");
    }
    assert_eq!(
        (&grader(only(&report), "three")["passed"], &grader(only(&report), "output")["passed"]),
        (&true.into(), &true.into())
    );
}

#[test]
fn a_setup_that_fails_today_makes_nobody_pass_or_fail_in_a_kept_workspace() {
    let project = project("echo evil > tests/x; echo fine > src");
    project.write("cases/fix/tests/x", "right\n");
    project.write("here", "");
    let here = project.path("here").display().to_string();
    let with = |protect: &str, run: &str| {
        let workspace =
            format!("workspace: {{copy: fix, setup: ['test -e {here} && echo home > $HOME/kept']{protect}}}");
        let graders = format!("graders: [{{command: {{run: '{run}'}}}}, {{files: {{contains: {{src: fine}}}}}}]");
        project.case("a", &format!("{workspace}\n{graders}"), "");
    };
    with("", "grep -q home $HOME/kept");
    let run = run(&project, "always", 0);
    assert!(!only(&grade(&project, &run, &[], 0))["warnings"].to_string().contains("not whole"));
    std::fs::remove_file(project.path("here")).unwrap();
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "the files that setup creates beside it are missing: setup command");
    assert_eq!(grader(only(&report), "files")["passed"], true);
    // The missing parts are reported on standard error.
    project
        .evals(&["grade", &run])
        .exits(3)
        .says("note: 1 trial: the workspace was kept and is not whole: the files that setup creates");
    // Changed protected files are not judged: unrestored, they could make the trial fail or pass.
    for test in ["grep -q right tests/x", "grep -q evil tests/x"] {
        with(", protect: [tests/**]", test);
        let report = grade(&project, &run, &[], 3);
        has(reason(only(&report), "command"), "protected files could not be put back: setup command");
    }
    // The same holds for a source that has changed since.
    project.write("here", "");
    project.write("cases/fix/tests/x", "another\n");
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "protected files could not be put back: it was not kept");
    with("", "! grep -q home $HOME/kept");
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "beside it may differ");
}

#[test]
fn ignored_files_that_the_agent_deleted_or_made_are_unknown_in_a_workspace_made_again() {
    let project = project("rm -rf out; mkdir -p target; echo built > target/out");
    project.write("cases/fix/.gitignore", "out/\ntarget/\n");
    project.write("cases/fix/out/a", "old\n\n\n");
    // The same number of bytes exists in the end, but absent files are still known to differ from the original.
    let graders =
        "graders: [{command: {run: 'test ! -e out/a'}}, {files: {absent: [target/out], exists: [.gitignore]}}]";
    project.case("a", &format!("workspace: {{copy: fix}}\n{graders}"), "");
    project.write("cases/fix/out/b", "more\n");
    let first = run(&project, "never", 1);
    let report = grade(&project, &first, &[], 3);
    has(reason(only(&report), "command"), "there were 6 bytes of them, and now there are 11");
    has(reason(only(&report), "files"), "found no file that must be absent in an incomplete workspace");

    // All of them are gone.
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.write("agent.sh", "rm -rf out\necho ok\n");
    let second = run(&project, "never", 0);
    let report = grade(&project, &second, &[], 3);
    has(reason(only(&report), "command"), "there were 0 bytes of them, and now there are 11");
}

#[test]
fn a_kept_workspace_that_lost_something_is_told() {
    let mut project = project("echo \"token $SOME_TOKEN\" > note");
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    let agent = project.path("agent.sh").display().to_string();
    let line = format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\nenv: {{pass: [SOME_TOKEN]}}");
    project.harness("sh", &line);
    project.case("a", "graders: [{command: {run: grep -q a-secret note}}]", "");
    let run = run(&project, "always", 0);
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "1 files of the kept workspace held secrets");
    let said = project.evals(&["grade", &run]).exits(3);
    said.says("note: 1 trial: the workspace was kept and is not whole: 1 files of the kept workspace held secrets and were masked");
    // Graded once more, it is reported once.
    let derived = report["run"].as_str().unwrap().to_owned();
    let again = grade(&project, &derived, &[], 3);
    assert_eq!(only(&again)["warnings"], only(&report)["warnings"]);
}

#[test]
fn a_script_judges_a_single_trace_in_an_empty_folder_and_not_a_run_whose_workspace_is_lost() {
    let project = project("echo new > made");
    let judge = "import json, os, sys\n\
                 told = json.load(sys.stdin)\n\
                 alone = 'workspace' not in told and 'patch' not in told and os.listdir('.') == []\n\
                 print(json.dumps({'passed': told['output'] == 'ok', 'reason': f'alone: {alone}, PATH: {\"PATH\" in os.environ}'}))\n";
    project.write("cases/judge.py", judge);
    project.write("cases/fix/a", "x\n");
    project.case("a", "workspace: {copy: fix}\ngraders: [{script: {run: [python3, judge.py]}}]", "");
    let run = run(&project, "never", 0);
    let trace = format!(".evals/runs/{run}/trials/a/sh/default/1/trace.jsonl");
    project.write("lone.jsonl", &project.read(&trace));
    let ran = project.evals(&["grade", "lone.jsonl", "--case", "cases/a.yaml", "--format", "json"]).exits(0);
    assert_eq!(ran.err, "", "nothing is missing");
    let report = ran.json();
    assert_eq!(grader(only(&report), "script")["reason"], "alone: True, PATH: True");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    // The graders that have no workspace are reported.
    project.case("b", "graders: [{script: {run: [python3, judge.py]}}, {files: {exists: [made]}}]", "");
    let ran = project.evals(&["grade", "lone.jsonl", "--case", "cases/b.yaml"]).exits(3);
    ran.says("graders that need the workspace could not judge: a single trace has no workspace");
    std::fs::remove_file(project.path("cases/b.yaml")).unwrap();

    project.write("cases/fix/other", "x\n");
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "script"), "could not be judged, because the workspace is missing: it was not kept, and");
}

#[test]
fn a_single_trace_is_masked_by_what_the_manifest_of_its_harness_and_the_servers_of_its_case_call_secret() {
    let mut project = Project::new();
    project.demo("mine", "env: {secret: [PLAIN_NAME]}");
    let says = "steps: [{say: value-of-the-plain-name and value-of-a-header}]";
    project.case("a", "graders: [{output: {no-secrets: true}}]", says);
    project.evals(&["run", "--harness", "mine"]).exits(0);
    let trace = format!("{}/trials/a/mine/default/1/trace.jsonl", project.run_folder());
    project.write("lone.jsonl", &project.read(&trace));
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    let servers = "mcp-servers: [{type: http, name: s, url: 'http://127.0.0.1:9', headers: [{name: Authorization, value: value-of-a-header}]}]";
    project.case("a", &format!("graders: [{{output: {{no-secrets: true}}}}]\n{servers}"), "");
    project.env("PLAIN_NAME", "value-of-the-plain-name");
    project.evals(&["grade", "lone.jsonl", "--case", "cases/a.yaml"]).exits(1);
    for (path, bytes) in project.files(".evals") {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("value-of-the-plain-name"), "{path}: {text}");
        assert!(!path.ends_with("trace.jsonl") || !text.contains("value-of-a-header"), "{path}: {text}");
    }
}

#[test]
fn an_ignored_place_that_changed_is_known_when_graded_again() {
    let project = Project::new();
    project.write("cases/fix/.gitignore", "target/\n");
    project.write("cases/fix/target/old", "1\n");
    // A file of the same size is compared by its content.
    for (case, command) in [("a", "echo n > target/new"), ("same", "echo 2 > target/old")] {
        let steps = format!("steps: [{{run: {{command: '{command}'}}}}, {{say: ok}}]");
        project.case(case, "workspace: {copy: fix}\ngraders: [{scope: {never: ['target/**']}}]", &steps);
    }
    for keep in ["never", "always"] {
        project.evals(&["run", "--keep-workspace", keep]).exits(3);
        project.evals(&["grade", "latest"]).exits(3).says("`target` changed and is not measured");
    }
}

#[test]
fn a_grader_that_failed_in_the_trial_does_not_pass_in_an_incomplete_workspace() {
    let project = Project::new();
    project.case(
        "a",
        "workspace: {files: {'.gitignore': \"*.log\\n\"}}\ngraders: [{command: {run: 'test ! -e crash.log'}}]",
        "steps: [{run: {command: 'echo x > crash.log'}}]",
    );
    project.evals(&["run", "--keep-workspace", "never"]).exits(1);
    let ran = project.evals(&["grade", "latest", "--format", "json"]).exits(3);
    let grade = &ran.json()["results"][0]["grades"][0];
    assert_eq!(grade["outcome"], "ungraded", "{grade}");
    assert!(
        grade["reason"].as_str().unwrap().starts_with("failed in the trial and passed in an incomplete workspace"),
        "{grade}"
    );
}

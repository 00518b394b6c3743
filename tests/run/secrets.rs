//! Secrets never reach a file of the run folder or the terminal, whichever way they came in.

use crate::project::{Project, Ran, of_type};

const SECRET: &str = "s3cr3t-of-the-user-0451";

fn nowhere(project: &Project, ran: &Ran, secret: &str) {
    for (path, bytes) in project.files(".evals") {
        let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "the secret stands in {path}:\n{}", String::from_utf8_lossy(&bytes));
    }
    assert!(!ran.out.contains(secret) && !ran.err.contains(secret), "{ran:?}");
}

#[test]
fn a_secret_of_the_user_does_not_reach_an_agent_that_is_not_given_it() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SECRET_TOKEN", SECRET);
    project.case("a", "", "steps: [{run: {command: 'env; echo \"seen=$EVALS_TEST_SECRET_TOKEN\"'}}]");
    let ran = project.evals(&["run", "--keep-workspace", "always"]).exits(0);
    let trace = project.trace("a/demo/default/1");
    let seen = of_type(&trace, "tool_result")[0]["output"].as_str().unwrap();
    assert!(seen.contains("seen=\n") && !seen.contains("EVALS_TEST_SECRET_TOKEN="), "{seen}");
    nowhere(&project, &ran, SECRET);
}

#[test]
fn a_secret_that_an_agent_is_given_is_masked_wherever_it_puts_it() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SECRET_TOKEN", SECRET);
    let script = "\
steps:
  - run: {command: 'env; echo $EVALS_TEST_SECRET_TOKEN > stolen.txt; mkdir d; echo \"x=$EVALS_TEST_SECRET_TOKEN\" > d/b.txt; echo $EVALS_TEST_SECRET_TOKEN | base64 > c.txt; echo $EVALS_TEST_SECRET_TOKEN >&2'}
  - read: {path: stolen.txt}
  - run: {command: 'cat stolen.txt; exit 3'}
";
    let keys = "graders: [{output: {no-secrets: true}}, {command: {run: 'cat stolen.txt; exit 1'}}, {files: {contains: {stolen.txt: nothing of it}}}]";
    project.case("a", keys, script);
    project.demo("mine", "env: {pass: [EVALS_TEST_SECRET_TOKEN]}");
    let ran = project.evals(&[
        "run",
        "--harness",
        "mine",
        "--keep-workspace",
        "always",
        "--reporter",
        "json=.evals/out.json",
    ]);
    let ran = ran.exits(1);
    nowhere(&project, &ran, SECRET);
    let mark = "[redacted:EVALS_TEST_SECRET_TOKEN]";
    let trial = "a/mine/default/1";
    for file in
        ["trace.jsonl", "wire.jsonl", "workspace.patch", "result.json", "workspace/stolen.txt", "workspace/d/b.txt"]
    {
        assert!(project.of_trial(trial, file).contains(mark), "{file} does not say that it was masked");
    }
    let result = project.result(trial);
    assert!(
        result["warnings"].to_string().contains("masked"),
        "a patch or workspace that was masked says so: {result}"
    );
    let shown = project.evals(&["show"]).exits(0);
    nowhere(&project, &shown, SECRET);
    let imported =
        project.evals(&["import", "--harness", "mine", &format!("{}/trials/{trial}/wire.jsonl", project.run_folder())]);
    assert_eq!(imported.out, project.of_trial(trial, "trace.jsonl"));
}

#[test]
fn secrets_in_cases_and_manifests_are_masked_too() {
    let project = Project::new();
    let keys =
        "env: {CASE_API_KEY: case-secret-0451}\nworkspace: {setup: ['echo $CASE_API_KEY; echo $CASE_API_KEY > a.txt']}";
    project.case("a", keys, "steps: [{run: {command: 'echo $CASE_API_KEY $SET_TOKEN $ODD'}}]");
    project.demo("mine", "env: {set: {SET_TOKEN: manifest-secret-0451, ODD: odd-secret-0451}, secret: [ODD]}");
    let ran = project.evals(&["run", "--harness", "mine", "--keep-workspace", "always"]).exits(0);
    for secret in ["case-secret-0451", "manifest-secret-0451", "odd-secret-0451"] {
        nowhere(&project, &ran, secret);
    }
    // Masking what the run records does not make its harness look changed.
    project.evals(&["run", "--resume", "latest"]).exits(0);
}

#[test]
fn a_setup_command_that_fails_tells_no_secret() {
    let project = Project::new();
    let keys = "env: {CASE_API_KEY: case-secret-0451}\nworkspace: {setup: ['echo $CASE_API_KEY; exit 1']}";
    project.case("a", keys, "steps: [{say: done}]");
    let ran = project.evals(&["run"]).exits(3).says("[redacted:CASE_API_KEY]");
    nowhere(&project, &ran, "case-secret-0451");
}

#[test]
fn a_secret_too_short_to_mask_is_a_warning() {
    let mut project = Project::new();
    project.env("EVALS_TEST_SHORT_KEY", "abc");
    project.case("a", "", "steps: [{say: abc}]");
    project.demo("mine", "env: {pass: [EVALS_TEST_SHORT_KEY]}");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    assert!(project.result("a/mine/default/1")["warnings"].to_string().contains("EVALS_TEST_SHORT_KEY"));
}

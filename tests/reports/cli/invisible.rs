//! Characters that nobody sees: a byte order mark at the start of a file, and invisible characters in reasons.

use crate::project::Project;

const MARK: char = '\u{feff}';

#[test]
fn files_may_begin_with_a_byte_order_mark() {
    let project = Project::new();
    let files = [
        ("cases/suite.yaml", "tags: [a]\n"),
        (
            "cases/a.yaml",
            "prompt: x\ninteraction: {use: careful}\ngraders: [{use: said}, {output: {json-schema: ../answer.json}}]\n",
        ),
        ("cases/a.demo.yaml", "steps: [{say: '{}'}]\n"),
        ("graders/said.yaml", "output: {contains: '{}'}\n"),
        ("policies/careful.yaml", "policy: {scripted: {default: reject}}\n"),
        ("answer.json", r#"{"type": "object"}"#),
        ("prices.yaml", "date: \"2026-01-01\"\nsource: mine\nmodels: {}\n"),
    ];
    for (path, text) in files {
        project.write(path, &format!("{MARK}{text}"));
    }
    project.demo("mine", "");
    let manifest = project.read("harnesses/mine.yaml");
    project.write("harnesses/mine.yaml", &format!("{MARK}{manifest}"));
    project.evals(&["run", "--harness", "mine"]).exits(0);
    // What was written by the engine and saved again by an editor is still read.
    project.evals(&["baseline", "set"]).exits(0);
    let saved = project.read("cases/baseline.json");
    project.write("cases/baseline.json", &format!("{MARK}{saved}"));
    project.evals(&["compare", "cases/baseline.json", "latest"]).exits(3);
    let wire = project.of_trial("a/mine/default/1", "wire.jsonl");
    project.write("wire.jsonl", &format!("{MARK}{wire}"));
    project.evals(&["import", "--harness", "mine", "wire.jsonl"]).exits(0).says("{}");
}

#[test]
fn an_error_after_a_byte_order_mark_names_the_right_place() {
    let project = Project::new();
    project.write("cases/a.yaml", &format!("{MARK}promt: x\ngraders: [{{diff: {{none: true}}}}]\n"));
    project.evals(&["run"]).exits(2).says("cases/a.yaml:1:1").says("unknown key `promt`");
}

#[test]
fn a_dry_run_shows_the_invisible_characters_of_names() {
    let mut project = Project::new();
    project.case("a\u{202e}b", "", "steps: [{say: ab}]");
    project.case("c\u{200d}d", "requires: {model-selection: true}", "steps: [{say: ab}]");
    project.demo("plain", "");
    project.env("LC_ALL", "C");
    let out = project.evals(&["run", "--dry-run", "--harness", "plain"]).exits(0).out;
    assert!(out.contains(r"run   a\u{202e}b  plain  1 x"), "{out}");
    assert!(out.contains(r"skip  c\u{200d}d  plain  "), "{out}");
}

#[test]
fn a_reason_shows_what_nobody_sees() {
    let project = Project::new();
    let grader = "graders: [{output: {equals: 'a\u{200b}b'}}]";
    project.case("a", grader, "steps: [{say: ab}]");
    project.evals(&["run"]).exits(1).says(r"a\u{200b}b");
    let result = project.of_trial("a/demo/default/1", "result.json");
    assert!(result.contains(r"a\\u{200b}b"), "{result}");
}

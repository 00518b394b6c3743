//! What a run is made from stays what it was when the run began; what changed under it is named, and judges nothing.

use serde_json::json;

use crate::again::{RUN, project};
use crate::project::Project;

/// Each input, with the keys that name it and what it holds.
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
fn what_stays_as_it_was_is_judged() {
    for (input, keys, content) in INPUTS {
        let second = changed(input, keys, content, "");
        assert_ne!(second["verdict"], "errored", "{input}: {second}");
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

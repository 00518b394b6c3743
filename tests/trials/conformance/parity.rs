//! Parity: the same case inside the engine and by the agent's own command, with what differs told.

use crate::project::Project;

#[test]
fn the_demo_agent_does_the_same_both_ways() {
    let project = Project::new();
    let report = project.evals(&["harness", "parity", "demo", "--format", "json"]).exits(0).json();
    assert_eq!((&report["harness"], &report["outside"]), (&"demo".into(), &"harness `demo-stream`".into()));
    let case = &report["cases"][0];
    assert_eq!((&case["outcome"]["same"], &case["tools"]["same"]), (&"same".into(), &"same".into()));
    assert_eq!(case["tools"]["text"], "read, edit, execute");
    for which in ["inside", "outside"] {
        assert!(project.path(case["folder"].as_str().unwrap()).join(which).join("trace.jsonl").is_file());
    }
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_cannot_be_compared_says_so() {
    let project = Project::new();
    // Its last words alone: what it left can be compared, and its calls cannot.
    let ran = project.evals(&["harness", "parity", "demo-text"]).exits(0);
    ran.says("the inside trial shows no calls").says("`files` passed");
    project.case("silent", "", "steps: [{say: done}]");
    project
        .evals(&["harness", "parity", "demo", "cases/silent.yaml"])
        .exits(3)
        .says("no grader that looks at the workspace");
    project.evals(&["harness", "parity", "command"]).exits(2).says("has no one-shot command");
    project.case("scripted", "graders: [{files: {exists: [a]}}]", "");
    project.evals(&["harness", "parity", "demo", "cases/scripted.yaml"]).exits(2).says("has no script");
}

#[test]
fn a_command_that_does_something_else_differs() {
    let project = Project::new();
    let write = "steps: [{write: {path: made.txt, text: heron}}, {say: done}]";
    project.case("a", "graders: [{files: {contains: {made.txt: heron}}}]", write);
    project.demo("mine", "parity: {command: [sh, -c, 'echo \"asked: $1\" > other.txt', sh, '{prompt}']}");
    let report = project.evals(&["harness", "parity", "mine", "cases/a.yaml", "--format", "json"]).exits(1).json();
    let case = &report["cases"][0];
    assert_eq!(case["outcome"]["text"], "`files` passed inside and failed outside");
    assert_eq!(
        (&case["tools"]["same"], &case["tools"]["text"]),
        (&"unknown".into(), &"the outside trial shows no calls".into())
    );
    project.demo("mine", "parity: {command: [sh, -c, 'printf heron > made.txt']}");
    project.evals(&["harness", "parity", "mine", "cases/a.yaml"]).exits(0).says("same");
    project.demo("mine", "parity: {command: [no-such-agent-anywhere]}");
    project.evals(&["harness", "parity", "mine", "cases/a.yaml"]).exits(3).says("the outside trial was errored");
    project.demo("mine", "parity: {harness: nobody}");
    project.evals(&["harness", "parity", "mine", "cases/a.yaml"]).exits(2).says("no harness is named `nobody`");
}

#[test]
fn a_known_difference_is_told_before_what_cannot_be_told() {
    let project = Project::new();
    let write = "steps: [{write: {path: made.txt, text: heron}}, {say: done}]";
    // A script is a grader of the workspace, too; this one says nothing that can be read.
    let graders = "graders: [{script: {run: [echo, nothing]}}, {files: {contains: {made.txt: heron}}}]";
    project.case("a", graders, write);
    project.demo("mine", "parity: {command: [sh, -c, 'printf other > made.txt']}");
    let report = project.evals(&["harness", "parity", "mine", "cases/a.yaml", "--format", "json"]).exits(1).json();
    let text = report["cases"][0]["outcome"]["text"].as_str().unwrap();
    assert_eq!(text, "`files` passed inside and failed outside; `script` is ungraded inside and ungraded outside");
    // Where nothing else differs, that it cannot be told is what is told.
    project.demo("mine", "parity: {command: [sh, -c, 'printf heron > made.txt']}");
    project.evals(&["harness", "parity", "mine", "cases/a.yaml"]).exits(3).says("`script` is ungraded inside");
    // A script names its grades itself: those of one name are compared.
    let named = r#"printf '[{"name": "%s", "passed": false}, {"name": "both", "passed": true}]' $(cat made.txt)"#;
    project.case("b", &format!("graders: [{{script: {{run: [sh, -c, '{}']}}}}]", named.replace('\'', "''")), write);
    project.demo("mine", "parity: {command: [sh, -c, 'printf robin > made.txt']}");
    let ran = project.evals(&["harness", "parity", "mine", "cases/b.yaml"]).exits(3);
    ran.says("heron` is graded only inside").says("robin` is graded only outside");
}

#[test]
fn a_model_is_asked_of_both_sides_or_of_none() {
    let project = Project::new();
    let say = "models: [small]\nsteps: [{write: {path: made.txt, text: heron}}, {say: done}]";
    project.case("a", "graders: [{files: {contains: {made.txt: heron}}}]", say);
    let command = "sh, -c, 'echo \"$1 $SMALL\" > made.txt; echo heron >> made.txt', sh";
    let with =
        |model: &str, end: &str| project.demo("mine", &format!("{model}\nparity: {{command: [{command}{end}]}}"));
    let parity = |more: &[&str]| {
        let args = [&["harness", "parity", "mine", "cases/a.yaml", "--format", "json"], more].concat();
        project.evals(&args)
    };
    let made = |report: &serde_json::Value| {
        let folder = report["cases"][0]["folder"].as_str().unwrap().to_owned();
        project.read(&format!("{folder}/outside/workspace.patch"))
    };
    let none = "command `sh -c";
    for (model, end) in
        [("model: {via: config-option}", ""), ("model: {via: set-model}", ""), ("model: {via: none}", ", '{model}'")]
    {
        with(model, end);
        let told = if end.is_empty() { none } else { "harness `mine`" };
        parity(&["--model", "small"]).exits(2).says(told).says("cannot be asked for the model `small`");
        parity(&[]).exits(0);
    }
    for (model, end) in [
        ("model: {via: config-option}", ", '{model}'"),
        ("model: {via: config-option}\nenv: {set: {SMALL: '{model}'}}", ""),
    ] {
        with(model, end);
        let report = parity(&["--model", "small"]).exits(0).json();
        assert!(made(&report).contains("small"), "{model}: {}", made(&report));
    }
}

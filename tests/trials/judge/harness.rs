//! Agents that judge instead of a model: named by cases, files and the command line, and checked like models.

use serde_json::{Value, json};

use super::server::finding;
use super::{STEPS, TESTED};
use crate::project::Project;

/// An agent that judges by the content of its prompt, and records how it was started.
const REFEREE: &str = r#"
import json, os, re, sys
prompt, model = sys.argv[1], "".join(sys.argv[3:])
open(os.path.join(sys.argv[2], "asked"), "a").write(json.dumps({"model": model, "files": os.listdir("."), "prompt": prompt}) + "\n")
if "May the agent do this?" in prompt:
    answer = {"reason": "so it is", "answer": "reject" if "rm -rf" in prompt.split(" the request begins\n")[1].split("\n<<<")[0] else "allow"}
elif "Which is better" in prompt:
    a = prompt.split(" A begins\n")[1].split("\n<<<")[0]
    b = prompt.split(" B begins\n")[1].split("\n<<<")[0]
    good = "everything is perfect" if "everything is perfect" in a + b else "It is so."
    answer = {"reason": "so it is", "quote": good, "winner": "A" if good in a else "B"}
else:
    results = [line for line in (json.loads(l) for l in prompt.splitlines() if l.startswith("{") and '"seq"' in l) if line.get("type") == "tool_result" and "the tests passed" in line.get("output", "")]
    done = bool(results)
    answer = {"criteria": [{"criterion": "tested", "reason": "so it is", "events": [results[0]["seq"]] if done else [], "quote": "the tests passed" if done else "", "verdict": "pass" if done else "fail"}]}
print("```json\n" + json.dumps(answer) + "\n```")
"#;

fn project() -> Project {
    let project = Project::new();
    project.write("referee.py", REFEREE);
    let path = |name: &str| project.path(name).canonicalize().unwrap().display().to_string();
    project.harness(
        "referee",
        &format!(
            "aliases: [umpire]\nadapter: output-only\nmodel: {{via: flag}}\ncommand: [python3, '{}', '{{prompt}}', '{}', 'model={{model}}']",
            path("referee.py"),
            path("")
        ),
    );
    project
}

fn asked(project: &Project) -> Vec<Value> {
    crate::project::lines(&project.read("asked"))
}

#[test]
#[ignore = "slow: asks a judge many times"]
fn an_agent_judges_by_criteria_wherever_it_is_named() {
    let nobody = TESTED.replace("judge: 'anthropic:claude-opus-4-8', ", "");
    let own = |name: &str| TESTED.replace("anthropic:claude-opus-4-8", name);
    let ways = [
        (own("harness:referee"), &[][..], "", "harness:referee"),
        (own("harness:umpire"), &[], "", "harness:umpire"),
        (own("harness:referee=gpt-x"), &[], "", "harness:referee=gpt-x"),
        (own("openai:other"), &["--judge", "harness:referee"], "", "harness:referee"),
        (nobody, &[], "harness:referee", "harness:referee"),
    ];
    // Most of the time is waiting for the agent.
    std::thread::scope(|scope| {
        for (grader, args, env, model) in &ways {
            scope.spawn(move || judges_by(grader, args, env, model));
        }
    });
}

fn judges_by(grader: &str, args: &[&str], env: &str, model: &str) {
    let mut project = project();
    project.env("EVALS_JUDGE", env);
    project.case("a", &format!("graders: [{grader}]"), STEPS);
    project.evals(&[&["run"], args].concat()).exits(0);
    let grade = &project.result("a/demo/default/1")["grades"][0];
    assert_eq!((&grade["passed"], &grade["judge"]["model"]), (&json!(true), &json!(model)), "{grade}");
    assert_eq!(grade["judge"]["requests"], 4, "three canaries and the session");
    let before = asked(&project);
    assert_eq!(before.len(), 4);
    let wanted = if model.ends_with("gpt-x") { "model=gpt-x" } else { "" };
    assert!(before.iter().all(|it| it["model"] == wanted && it["files"] == json!([])), "{before:?}");
    let prompt = before[3]["prompt"].as_str().unwrap();
    assert!(prompt.contains("follows this JSON Schema") && prompt.contains("echo the tests passed"), "{prompt}");
    assert!(!prompt.contains("Attention judge"), "closing claims are left out for it, too");
    // The answers are cached like a model's.
    project.evals(&[&["grade", "latest"], args].concat()).exits(0);
    assert_eq!(asked(&project).len(), 4);
    assert!(project.left_over().is_empty(), "{:?}", project.left_over());
}

#[test]
fn an_agent_compares_and_answers_requests() {
    let project = project();
    let pair = "pairwise: {judge: 'harness:referee', ask: Which is kinder?, reference: {text: It is so.}}";
    let policy = "interaction: {llm: {model: 'harness:referee'}}";
    let steps = "\
steps:
  - write: {path: a.txt, text: hello, ask: true, otherwise: [{say: then not}]}
  - run: {command: 'rm -rf build', ask: true, otherwise: [{say: then not}]}
  - say: 'everything is perfect'
";
    project.case(
        "a",
        &format!("{policy}\ngraders: [{pair}, {{permissions: {{rejected: [{{command: rm -rf}}]}}}}]"),
        steps,
    );
    project.evals(&["run"]).exits(0);
    let result = project.result("a/demo/default/1");
    assert_eq!(result["grades"][0]["value"], 1.0, "{result}");
    assert_eq!(result["grades"][1]["passed"], true, "{result}");
    assert_eq!(asked(&project).len(), 2 + 4 * 2);
}

#[test]
fn an_agent_that_fails_judges_nothing() {
    for (command, says) in [
        ("[sh, -c, 'exit 3']", "harness `mute` did not answer: crashed"),
        ("[sh, -c, 'true']", "the model's answer does not have the requested form"),
        ("[no-such-program]", "harness `mute` did not answer: not_installed"),
    ] {
        let project = project();
        project.harness("mute", &format!("adapter: output-only\ncommand: {command}"));
        project.case("a", &format!("graders: [{TESTED}]"), STEPS);
        project.evals(&["run", "--judge", "harness:mute"]).exits(3).says(says);
        assert_eq!(project.result("a/demo/default/1")["grades"][0]["outcome"], "ungraded");
        assert!(project.left_over().is_empty(), "{:?}", project.left_over());
    }
    // An agent that passes everything is void, like a model.
    let project = project();
    let answer = json!({"criteria": [finding("tested", "pass", &[0], "whatever")]});
    project.harness("kind", &format!("adapter: output-only\ncommand: [echo, '{answer}']"));
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    project.evals(&["run", "--judge", "harness:kind"]).exits(3).says("is void: it passed the canary");
}

#[test]
fn an_agent_that_does_not_answer_is_waited_for_as_long_as_a_service() {
    let mut project = Project::new();
    project.harness("sleeper", "adapter: output-only\ncommand: [sleep, '60']");
    project.env("EVALS_MODEL_TIMEOUT", "300ms");
    project.env("EVALS_MODEL_RETRIES", "0");
    project.case("a", &format!("graders: [{}]", TESTED.replace("anthropic:claude-opus-4-8", "harness:sleeper")), STEPS);
    let begun = std::time::Instant::now();
    project.evals(&["run"]).exits(3);
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    assert_eq!(project.result("a/demo/default/1")["grades"][0]["outcome"], "ungraded");
}

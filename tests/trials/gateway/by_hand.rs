//! `evals gateway record` and `replay`: any command, with the variables that point agents at the gateway.

use serde_json::json;

use super::client::Gateway;
use super::stand::{ANSWERS, KEY, project};
use crate::project::{Project, lines};

const COMMAND: &str =
    "AGENT_URL=$ANTHROPIC_BASE_URL AGENT_API_KEY=$ANTHROPIC_API_KEY python3 agent.py 'Write forty-two.'";

fn stand() -> (Project, Gateway) {
    let service = Gateway::play(ANSWERS);
    let mut project = project("");
    project.env("EVALS_UPSTREAM_ANTHROPIC", &service.base_url());
    project.env("ANTHROPIC_API_KEY", KEY);
    (project, service)
}

#[test]
fn a_command_is_recorded_and_played_again() {
    let (project, service) = stand();
    let ran = project.evals(&["gateway", "record", "-o", "tapes/a.jsonl", "--", "sh", "-c", COMMAND]).exits(0);
    assert!(ran.out.contains("a.txt holds forty-two."), "the command's output is its own");
    ran.says("3 exchanges in tapes/a.jsonl");
    let log = lines(&project.read("tapes/llm.jsonl"));
    assert_eq!((log.len(), &log[0]["source"]), (3, &json!("upstream")));
    assert!(!project.read("tapes/llm.jsonl").contains(KEY) && !project.read("tapes/a.jsonl").contains(KEY));
    drop(service);
    std::fs::remove_file(project.path("a.txt")).unwrap();
    let ran = project.evals(&["gateway", "replay", "tapes/a.jsonl", "--", "sh", "-c", COMMAND]).exits(0);
    assert!(ran.out.contains("a.txt holds forty-two."));
    assert_eq!(project.read("a.txt"), "forty-two\n");
    assert_eq!(lines(&project.read("tapes/llm.jsonl"))[0]["source"], "cassette");
    project.evals(&["gateway", "show", "tapes/llm.jsonl"]).exits(0).says("result: written");
}

#[test]
fn the_exit_code_is_the_command_s_and_a_miss_is_told() {
    let (project, _service) = stand();
    project.evals(&["gateway", "record", "--", "sh", "-c", COMMAND]).exits(0);
    let other = COMMAND.replace("forty-two", "forty-three");
    let missed = ["gateway", "replay", "cassette.jsonl", "--", "sh", "-c"];
    let with = |command: &str| project.evals(&[&missed[..], &[command]].concat());
    with(&format!("{other} || true")).exits(1).says("nearest is entry 1");
    with(&format!("{other} || exit 7")).exits(7);
    with("exit 5").exits(5).says("entries of the cassette that were not played: 1, 2, 3");
    // A command that fails replaces no recording.
    let before = project.read("cassette.jsonl");
    let failing = format!("{other}; exit 9");
    project.evals(&["gateway", "record", "--", "sh", "-c", &failing]).exits(9).says("was not replaced");
    assert_eq!(project.read("cassette.jsonl"), before);
    project.evals(&["gateway", "record", "-o", "none.jsonl", "--", "true"]).exits(0).says("no answer of a model");
    assert!(!project.path("none.jsonl").exists());
    project.evals(&["gateway", "record", "--", "no-such-program"]).exits(2).says("could not run no-such-program");
    project.evals(&["gateway", "replay", "gone.jsonl", "--", "true"]).exits(2).says("gone.jsonl cannot be read");
}

#[test]
fn a_log_without_a_request_is_shown_as_such_and_not_played() {
    let project = Project::with(&[("llm.jsonl", ""), ("empty.jsonl", "{\"cassette\":1}\n")]);
    for file in ["llm.jsonl", "empty.jsonl"] {
        assert_eq!(project.evals(&["gateway", "show", file]).exits(0).out, "no exchange\n", "{file}");
    }
    project.evals(&["gateway", "replay", "llm.jsonl", "--", "true"]).exits(2).says("the cassette is empty");
}

#[test]
fn while_a_cassette_is_played_the_command_has_no_key() {
    let (project, _service) = stand();
    project.evals(&["gateway", "record", "--", "sh", "-c", COMMAND]).exits(0);
    let ran = project.evals(&["gateway", "replay", "cassette.jsonl", "--", "env"]);
    assert!(!ran.out.contains(KEY) && ran.out.contains("OPENAI_BASE_URL=http://127.0.0.1:"), "{}", ran.out);
}

#[test]
fn an_unknown_path_goes_on_to_the_service_whose_variable_was_used() {
    let (mut project, service) = stand();
    project.env("EVALS_UPSTREAM_OPENAI", &format!("{}/v1", service.base_url()));
    let python = "\
import os, urllib.request
try:
    urllib.request.urlopen(os.environ['OPENAI_BASE_URL'] + '/embeddings', b'{}')
except urllib.error.HTTPError as error:
    print(error)
";
    project.evals(&["gateway", "record", "-o", "e.jsonl", "--", "python3", "-c", python]).exits(0);
    assert_eq!(service.log()[0]["path"], "/v1/embeddings");
}

#[test]
fn a_port_that_is_taken_is_told() {
    let gateway = Gateway::play(ANSWERS);
    let project = Project::with(&[("x.yaml", ANSWERS)]);
    let told = format!("could not listen on port {}", gateway.port());
    project.evals(&["gateway", "script", "x.yaml", "--port", &gateway.port()]).exits(2).says(&told);
}

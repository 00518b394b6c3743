//! Agents and services that would make a recording, a limit or a report say something untrue.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::passing::STREAM;
use super::service::{Request, Service};
use super::stand::{ANSWERS, CASSETTE, KEY, Stand, TRIAL, project};
use crate::project::{Project, lines};

const EVENTS: &str = "content-type: text/event-stream\r\n";

/// A stream that the service ends with an error after its first words.
pub(super) const BROKEN: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\
     \"role\":\"assistant\",\"model\":\"m1\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":7,\
     \"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
     \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\
     \"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"It is 42.\"}}\n\nevent: error\n\
     data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";

/// Breaks its first answer.
fn broken_once(_: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let is_first = ASKED.fetch_add(1, Ordering::SeqCst) == 0;
    (200, EVENTS, if is_first { vec![(0, BROKEN)] } else { STREAM.to_vec() })
}

fn reaching(address: &str, keys: &str) -> Project {
    let mut project = project(keys);
    project.env("EVALS_UPSTREAM_ANTHROPIC", address);
    project.env("ANTHROPIC_API_KEY", KEY);
    project
}

fn of(project: &Project, label: &str, file: &str) -> String {
    project.read(&format!("{}/trials/{TRIAL}/{file}", project.run_named(label)))
}

fn result(project: &Project, label: &str) -> Value {
    serde_json::from_str(&of(project, label, "result.json")).unwrap()
}

fn changed(project: &Project, from: &str, to: &str) {
    let agent = project.read("agent.py");
    let now = agent.replace(from, to);
    assert_ne!(agent, now);
    project.write("agent.py", &now);
}

/// An agent that makes no request and writes the answer all the same.
fn silent(project: &Project) {
    changed(
        project,
        "        message = ask(messages)\n",
        "        message = {\"content\": [{\"type\": \"text\", \"text\": \"done\"}], \"usage\": {\"input_tokens\": 0, \"output_tokens\": 0}}\n",
    );
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_played_as_it_was() {
    let service = Service::start(broken_once);
    let project = reaching(&service.base_url(), "");
    // It stops reading at an error and asks again, as real agents do.
    changed(
        &project,
        "            if event[\"type\"] == \"message_start\":",
        "            if event[\"type\"] == \"error\":\n                again = ask(messages)\n                again[\"content\"][-1][\"text\"] += \" after \" + event[\"error\"][\"type\"]\n                return again\n            if event[\"type\"] == \"message_start\":",
    );
    project.evals(&["run", "--gateway", "record", "--label", "live"]).exits(0);
    let entry = lines(&project.read(CASSETTE))[1].clone();
    assert_eq!(entry["error"]["event"]["error"]["type"], "overloaded_error", "{entry}");
    project.evals(&["run", "--gateway", "replay", "--label", "played"]).exits(0);
    for label in ["live", "played"] {
        let stop = lines(&of(&project, label, "trace.jsonl")).pop().unwrap();
        assert_eq!(stop["output"], "It is 42. after overloaded_error", "{label}");
    }
    let log = lines(&of(&project, "played", "llm.jsonl"));
    assert_eq!(log[0]["error"]["kind"], "service", "{log:?}");
}

/// An agent may take a prompt for a command of its own.
#[test]
fn a_turn_without_a_request_and_without_an_answer_is_not_graded() {
    let stand = Stand::with(ANSWERS, "graders: [{output: {not-contains: hunter2}}]");
    silent(&stand.project);
    stand.run("observe", &["--label", "text"]).exits(0);
    changed(&stand.project, "\"text\": \"done\"", "\"text\": \"\"");
    stand.run("observe", &["--label", "nothing"]).exits(3);
    let error = stand.result("nothing")["error"].clone();
    let begins = "the agent showed nothing in a turn, and no request to its model contains the prompt `Do it.`";
    assert_eq!(error["category"], "setup", "{error}");
    assert!(error["message"].as_str().unwrap().starts_with(begins), "{error}");
}

#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn an_agent_that_makes_no_request_is_not_judged_by_a_recording_or_a_script() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let kept = stand.project.read(CASSETTE);
    silent(&stand.project);
    stand.run("replay", &[]).exits(3);
    let error = stand.result("replay")["error"].clone();
    assert_eq!(error["category"], "setup");
    assert!(error["message"].as_str().unwrap().starts_with("the agent made no request to the gateway"), "{error}");
    stand.run("observe", &["--label", "seen"]).exits(0).says("in 1 trial the agent made no request to the gateway");
    // An agent that did not start used no other model.
    let manifest = stand.project.read("harnesses/small.yaml");
    stand.project.write("harnesses/small.yaml", &manifest.replace("python3", "no-such-agent"));
    let told = stand.run("observe", &["--label", "gone"]).exits(3);
    assert!(!told.out.contains("used another model"), "{}", told.out);
    stand.project.write("harnesses/small.yaml", &manifest);
    stand.run("observe", &["--label", "enforced", "--model", "m", "--enforce-model", "refuse"]).exits(3);
    stand.run("record", &["--label", "again"]).exits(0).says("no cassette was written, because the service answered");
    assert_eq!(stand.project.read(CASSETTE), kept);
    stand.project.write("script.yaml", ANSWERS);
    let case = format!("{}model: {{script: ../script.yaml}}\n", stand.project.read("cases/a.yaml"));
    stand.project.write("cases/a.yaml", &case);
    stand.project.evals(&["run", "--label", "script"]).exits(3);
    assert_eq!(result(&stand.project, "script")["error"]["category"], "setup");
    // An agent that does not know an option of its command line.
    let refuses = "[sh, -c, \"printf 'error: unknown option\\n(Did you mean --prompt?)\\n' >&2; exit 1\", ";
    stand.project.write("harnesses/small.yaml", &manifest.replace("[python3, ", refuses));
    stand.project.evals(&["run", "--label", "refusing"]).exits(3);
    let error = result(&stand.project, "refusing")["error"].clone();
    assert_eq!(error["category"], "crashed");
    let why = "the agent exited 1 before it answered: error: unknown option (Did you mean --prompt?)";
    assert_eq!(error["message"], why);
    // The last line names a page.
    let page = "\\nConfiguration Error:\\nUnknown model: m\\n\\nCommon models: a, b\\n\\nVisit https://agent.example/ for more\\n";
    let refuses = format!("[sh, -c, \"printf '{page}' >&2; exit 1\", ");
    stand.project.write("harnesses/small.yaml", &manifest.replace("[python3, ", &refuses));
    stand.project.evals(&["run", "--label", "paged"]).exits(3);
    let error = result(&stand.project, "paged")["error"].clone();
    let why = "the agent exited 1 before it answered: Configuration Error: Unknown model: m";
    assert_eq!((&error["category"], &error["message"]), (&json!("crashed"), &json!(why)), "{error}");
}

#[test]
fn a_session_that_the_engine_ended_replaces_no_cassette() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let kept = stand.project.read(CASSETTE);
    stand.run("record", &["--label", "cut", "--limit", "tokens=125"]).exits(1).says("because the agent was ended");
    assert_eq!(stand.project.read(CASSETTE), kept);
}

#[test]
fn requests_that_a_cassette_cannot_hold_are_told_when_it_is_recorded() {
    let stand = Stand::with(ANSWERS, "");
    changed(
        &stand.project,
        "def main():\n",
        "def main():\n    try:\n        urllib.request.urlopen(os.environ[\"AGENT_URL\"] + \"/v1/other\", b\"{}\")\n    except urllib.error.HTTPError:\n        pass\n",
    );
    stand.run("record", &[]).exits(0).says("the cassette lacks requests that cannot be recorded");
    let warnings = stand.result("record")["warnings"].to_string();
    assert!(warnings.contains("recorded_in_part") && warnings.contains("POST /v1/other"), "{warnings}");
}

#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn another_model_reaches_no_endpoint_when_the_model_is_enforced() {
    fn any(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        assert!(!request.body.contains("m2") && !request.line.contains("m2"), "{request:?}");
        let answer = r#"{"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}"#;
        (200, "content-type: application/json\r\n", vec![(0, answer)])
    }
    let requests = [
        ("/v1/completions", "{\"model\":\"m2\"}"),
        ("/v1/messages/count_tokens", "{\"model\":\"m2\"}"),
        ("/v1beta/models/m2:batchEmbedContents", "{}"),
        ("/v1beta/models/m2%3AgenerateContent", "{}"),
        ("/v1beta/tunedModels/m2:generateContent", "{}"),
    ];
    for how in ["refuse", "rewrite"] {
        for (path, body) in requests {
            let service = Service::start(any);
            let mut project = reaching(&service.base_url(), "");
            for api in ["OPENAI", "GEMINI"] {
                project.env(&format!("EVALS_UPSTREAM_{api}"), &service.base_url());
                project.env(&format!("{api}_API_KEY"), KEY);
            }
            silent(&project);
            changed(
                &project,
                "def main():\n",
                &format!(
                    "def main():\n    try:\n        urllib.request.urlopen(os.environ[\"AGENT_URL\"] + \"{path}\", b'{body}').read()\n    except urllib.error.HTTPError:\n        pass\n"
                ),
            );
            let ran = project.evals(&["run", "--gateway", "observe", "--model", "m1", "--enforce-model", how]);
            // `rewrite` makes the request ask for the right model where that can be done.
            let rewritten = how == "rewrite" && path == "/v1beta/models/m2%3AgenerateContent";
            assert_eq!(ran.code, if rewritten { 0 } else { 3 }, "{how} {path} {}", ran.out);
            assert!(service.requests().iter().all(|it| !it.line.contains("m2") && !it.body.contains("m2")), "{path}");
        }
    }
}

#[test]
fn tokens_of_every_endpoint_and_of_abandoned_requests_count() {
    let usage = "{\"id\":\"x\",\"model\":\"m1\",\"usage\":{\"input_tokens\":5000,\"output_tokens\":500}}";
    fn with_usage(request: &Request) -> (u16, &'static str, Vec<(u64, &'static str)>) {
        match request.line.starts_with("POST /v1/messages ") {
            true => (200, EVENTS, vec![(1500, BROKEN)]),
            false => (
                200,
                "content-type: application/json\r\n",
                vec![(0, "{\"id\":\"x\",\"model\":\"m1\",\"usage\":{\"input_tokens\":5000,\"output_tokens\":500}}")],
            ),
        }
    }
    let service = Service::start(with_usage);
    let project = reaching(&service.base_url(), "");
    silent(&project);
    changed(
        &project,
        "def main():\n",
        &format!(
            "def main():\n    urllib.request.urlopen(os.environ[\"AGENT_URL\"] + \"/v1/complete\", b'{{}}').read()\n    try:\n        urllib.request.urlopen(os.environ[\"AGENT_URL\"] + \"/v1/messages\", b'{{}}', timeout=20)\n    except Exception:\n        pass  # {}\n",
            usage.len()
        ),
    );
    project.evals(&["run", "--gateway", "observe", "--label", "seen"]).exits(0);
    let metrics = result(&project, "seen")["metrics"].clone();
    assert_eq!(metrics["total_tokens"], 5500, "{metrics}");
    assert!(metrics["lower_bounds"].to_string().contains("total_tokens"), "{metrics}");
}

#[test]
fn recorded_answers_cost_nothing() {
    let stand = Stand::with(&ANSWERS.replace("turns:", "model: claude-opus-4-8\nturns:"), "trials: 3");
    stand.run("record", &["--trials", "1"]).exits(0);
    assert!(stand.result("record")["metrics"]["cost_usd"].as_f64().unwrap() > 0.0);
    let ran = stand.run("replay", &["--max-cost", "0.0001", "--jobs", "1"]).exits(0);
    assert!(!ran.out.contains("price table"), "{}", ran.out);
    let folder = stand.project.run_named("replay");
    let report = stand.project.evals(&["report", "replay", "--format", "json"]).json();
    assert!(report["columns"][0]["cost_usd"].is_null(), "{folder}: {}", report["columns"]);
    stand.project.evals(&["baseline", "set", "replay"]).exits(0);
    let baseline: Value = serde_json::from_str(&stand.project.read("cases/baseline.json")).unwrap();
    let cost = &baseline["arms"][0]["cases"]["a"]["cost"];
    assert_eq!(cost["told"], json!(0), "{cost}");
}

#[test]
fn a_recording_replaces_nothing_but_a_cassette() {
    let stand = Stand::with(ANSWERS, "model: {cassette: a.yaml}");
    let case = stand.project.read("cases/a.yaml");
    stand.run("record", &[]).exits(2).says("is not a cassette, so it is not replaced");
    assert_eq!(stand.project.read("cases/a.yaml"), case);
    stand.project.write("cases/a.yaml", &case.replace("a.yaml", "folder"));
    stand.project.write("cases/folder/x", "");
    stand.run("record", &[]).exits(2).says("is a folder");
    assert!(stand.service.log().is_empty(), "a session was paid for");
    stand.project.write("precious.txt", "precious\n");
    stand.project.evals(&["gateway", "record", "-o", "precious.txt", "--", "true"]).exits(2).says("is not a cassette");
    assert_eq!(stand.project.read("precious.txt"), "precious\n");
}

#[test]
fn the_model_of_recorded_answers_cannot_be_enforced() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    stand.run("replay", &["--enforce-model", "refuse"]).exits(2).says("--enforce-model has no effect");
}

#[test]
fn answers_from_a_cassette_beside_those_of_the_service_are_told() {
    let stand = Stand::with(ANSWERS, "");
    stand.run("record", &[]).exits(0);
    let text = stand.project.read(CASSETTE);
    let shorter: Vec<&str> = text.lines().take(3).collect();
    stand.project.write(CASSETTE, &format!("{}\n", shorter.join("\n")));
    stand.run("auto", &[]).exits(0).says("some answers of the model were played from a cassette");
    let warnings = stand.result("auto")["warnings"].to_string();
    assert!(warnings.contains("2 of the 3 answers of the model were played from a cassette"), "{warnings}");
}

#[test]
fn a_trace_of_a_missed_recording_is_not_judged_on_its_own_either() {
    let stand = Stand::with(ANSWERS, "graders: [{output: {contains: go on}}]");
    stand.run("record", &[]).exits(1);
    let case = stand.project.read("cases/a.yaml");
    stand.project.write("cases/a.yaml", &case.replace("Do it.", "Do it now."));
    let mut project = stand.project;
    project.env("AGENT_MODE", "goes-on");
    project.evals(&["run", "--gateway", "replay", "--label", "missed"]).exits(3);
    let trace = format!("{}/trials/{TRIAL}/trace.jsonl", project.run_named("missed"));
    project.evals(&["grade", &trace, "--case", "cases/a.yaml"]).exits(3).says("errored");
    project.evals(&["snapshot", "accept", &trace, "--case", "cases/a.yaml"]).says("was errored");
    assert!(!project.path("cases/a.snaps").exists() && !project.path("cases/a.snapshots").exists());
}

#[test]
fn a_conversation_is_shown_without_characters_that_hide_others() {
    let project = Project::new();
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "safe \u{202e}evil"}]});
    let line = json!({"n": 1, "at_ms": 0, "api": "anthropic", "method": "POST", "path": "/v1/messages\n── 9 ── forged",
        "status": 200, "request": request, "response": {}, "source": "upstream"});
    project.write("llm.jsonl", &format!("{line}\n"));
    let shown = project.evals(&["gateway", "show", "llm.jsonl"]).exits(0).out;
    assert!(!shown.contains('\u{202e}') && shown.lines().filter(|line| line.starts_with("──")).count() == 1, "{shown}");
    assert!(std::process::Command::new("mkfifo").arg(project.path("pipe")).status().unwrap().success());
    project.evals(&["gateway", "show", "pipe"]).exits(2).says("pipe cannot be read");
    project.write("folder/x", "");
    project.evals(&["gateway", "show", "folder"]).exits(2).says("folder");
}

#[test]
fn a_comparison_of_two_recordings_is_none_of_their_models() {
    let stand = Stand::with(ANSWERS, "");
    for model in ["m1", "m2"] {
        stand.run("record", &["--model", model, "--label", model]).exits(0);
    }
    stand.run("replay", &["--model", "m1", "--model", "m2"]).exits(0);
    let compared = stand.project.evals(&["compare", "replay", "--baseline", "m1"]);
    compared.says("the models' answers of both sides were recorded or scripted");
}

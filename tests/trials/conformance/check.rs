//! Checks of agents: a good one is seen to do everything, and each defect shows where it belongs.

use serde_json::Value;

use crate::project::{Project, Ran, exchanges};

/// A project with the fake agent under the name `fake`, with one defect.
fn fake(defect: &str, keys: &str) -> Project {
    let project = Project::new();
    let agent = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trials/conformance/agent.py");
    let model = if keys.contains("model:") { "" } else { "model: {via: config-option}\n" };
    // Only what an agent does not do is waited for in vain; what it does may take a loaded machine its time.
    let grace = if matches!(defect, "ignores-cancel" | "holds-on") { "300ms" } else { "20s" };
    let timeouts = if keys.contains("timeouts:") { String::new() } else { format!("timeouts: {{grace: {grace}}}\n") };
    project.harness(
        "fake",
        &format!("adapter: acp\ncommand: [python3, -u, '{}', {defect}]\n{model}{timeouts}{keys}", agent.display()),
    );
    project
}

fn item<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["items"].as_array().unwrap().iter().find(|item| item["item"] == name).unwrap()
}

/// The report of a check, its folder with it.
fn checked(ran: &Ran) -> Value {
    ran.json()["checks"][0].clone()
}

fn outcome(report: &Value, name: &str) -> String {
    item(report, name)["outcome"].as_str().unwrap().to_owned()
}

#[test]
fn of_the_demo_agent_everything_is_seen() {
    let project = Project::new();
    let ran = project.evals(&["harness", "check", "demo", "--format", "json"]).exits(0);
    let report = checked(&ran);
    for item in report["items"].as_array().unwrap() {
        assert_eq!(item["outcome"], "seen", "{item}");
    }
    assert_eq!((&report["model"], &report["tier"]), (&"own".into(), &"runnable".into()));
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    // Each piece of evidence is a line that is there, and shows what it is said to show.
    let folder = report["folder"].as_str().unwrap();
    let mut places = 0;
    for place in report["items"].as_array().unwrap().iter().flat_map(|item| item["evidence"].as_array().unwrap()) {
        let text = project.read(&format!("{folder}/{}", place["file"].as_str().unwrap()));
        assert!(text.lines().nth(place["line"].as_u64().unwrap() as usize - 1).is_some(), "{place}");
        places += 1;
    }
    assert!(places >= 15, "{places}");
    let refused = &item(&report, "model-choice")["evidence"][1];
    let text = project.read(&format!("{folder}/{}", refused["file"].as_str().unwrap()));
    let line = text.lines().nth(refused["line"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(line.contains("unknown model"), "{line}");
    assert_eq!(project.read(&format!("{folder}/report.json")).parse::<Value>().unwrap(), report);
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    assert!(project.read(".evals/.gitignore").contains('*'));
}

/// A program over Claude Code's control protocol that refuses every model, without naming it.
const REFUSES_MODELS: &str = r#"
import json, sys
for line in sys.stdin:
    line = json.loads(line)
    if line.get("type") != "control_request":
        continue
    fine = line["request"]["subtype"] == "initialize"
    answer = {"subtype": "success", "response": {}} if fine else {"subtype": "error", "error": "not today"}
    print(json.dumps({"type": "control_response", "response": {"request_id": line["request_id"], **answer}}), flush=True)
"#;

#[test]
fn a_model_that_is_refused_over_the_control_protocol_is_seen_by_its_answer() {
    let project = Project::new();
    project.write("agent.py", REFUSES_MODELS);
    let at = project.path("agent.py").display().to_string();
    project.harness(
        "control",
        &format!("adapter: claude-code-control\ncommand: [python3, -u, '{at}']\nmodel: {{via: set-model}}"),
    );
    let report = checked(&project.evals(&["harness", "check", "control", "--format", "json"]));
    assert_eq!(outcome(&report, "handshake"), "seen", "{report}");
    let model = item(&report, "model-choice");
    assert_eq!(
        (&model["outcome"], &model["text"]),
        (&"seen".into(), &"a model that does not exist was refused".into()),
        "{report}"
    );
    let place = &model["evidence"][0];
    let text = project.read(&format!("{}/{}", report["folder"].as_str().unwrap(), place["file"].as_str().unwrap()));
    let line = text.lines().nth(place["line"].as_u64().unwrap() as usize - 1).unwrap();
    assert!(line.contains("not today"), "{line}");
}

#[test]
fn what_a_protocol_has_not_is_no_fault() {
    let project = Project::new();
    let ran = project.evals(&["harness", "check", "demo-stream", "demo-text", "--format", "json"]).exits(3);
    let reports = ran.json();
    let stream = &reports["checks"][0];
    for (name, expected) in [
        ("handshake", "not-applicable"),
        ("sessions", "not-applicable"),
        ("model-choice", "seen"),
        ("prompt", "seen"),
        ("streaming", "not-seen"),
        ("tool-results", "seen"),
        ("permission-reject", "not-applicable"),
        ("cancel", "not-applicable"),
        ("usage", "seen"),
        ("clean-exit", "seen"),
    ] {
        assert_eq!(outcome(stream, name), expected, "{name}");
    }
    let text = &reports["checks"][1];
    assert_eq!((outcome(text, "tool-calls"), outcome(text, "usage")), ("not-applicable".into(), "not-seen".into()));
    assert_eq!(outcome(text, "version"), "not-seen");
}

#[test]
fn a_good_agent_of_anybodys_is_seen_to_be_one() {
    let project = fake("none", "registry-id: fake-acp");
    let ran = project.evals(&["harness", "check", "acp:fake-acp", "--live", "--model", "better"]).exits(0);
    ran.says("fake 7.7 (acp, acp:fake-acp), with the agent's own model")
        .says("handshake seen protocol version 1 model/wire.jsonl:3")
        .says("streaming seen the text came in 3 pieces")
        .says("tier: runnable");
    let args = ["harness", "check", "fake", "--live", "--model", "better", "--format", "json"];
    let report = checked(&project.evals(&args).exits(0));
    let text = item(&report, "model-choice")["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with("`better` was requested and answered"), "{text}");
}

/// Runs the check of a defect, and compares outcome and text of one item.
#[track_caller]
fn shows(defect: &str, keys: &str, name: &str, expected: &str, text: &str, code: i32) -> (Project, Value) {
    let project = fake(defect, keys);
    let ran = project.evals(&["harness", "check", "fake", "--live", "--format", "json"]).exits(code);
    let report = checked(&ran);
    let found = item(&report, name);
    assert_eq!(found["outcome"], expected, "{defect}: {found}");
    assert!(found["text"].as_str().unwrap().contains(text), "{defect}: {found}");
    assert!(expected != "failed" || !found["evidence"].as_array().unwrap().is_empty(), "{defect}: {found}");
    (project, report)
}

#[test]
#[ignore = "slow: runs many conversations"]
fn a_choice_of_the_model_that_means_nothing_is_found() {
    shows("accepts-any", "", "model-choice", "failed", "accepted silently", 1);
    shows("silent-model", "timeouts: {start: 5s}", "model-choice", "failed", "set_config_option was not answered", 1);
    shows("keeps-its-model", "", "model-choice", "seen", "the agent reported `good` instead", 0);
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_turn_that_is_not_what_it_should_be_is_found() {
    shows("one-piece", "", "streaming", "not-seen", "in one piece", 3);
    shows("no-usage", "", "usage", "not-seen", "it reported no usage", 3);
    shows("no-input", "", "tool-input", "not-seen", "of 0 of 3 calls", 3);
    shows("no-result", "", "tool-results", "not-seen", "of 0 of 3 calls", 3);
    shows("never-asks", "", "permission-approve", "not-seen", "it asked for no permission", 3);
    shows("disobeys", "", "permission-reject", "failed", "of kind edit was rejected, but its effect was found", 1);
    // Of a call that is neither an edit nor a command nobody knows which thing it was to do.
    let cannot_tell = "of kind other was rejected; whether it took effect is unknown";
    shows("disobeys-other", "", "permission-reject", "not-checked", cannot_tell, 3);
    shows("calls-all-other", "", "permission-reject", "seen", "did not carry out what was rejected", 0);
}

#[test]
fn a_cancel_that_is_not_obeyed_is_found() {
    let (_, report) = shows("ignores-cancel", "", "cancel", "failed", "was ended", 1);
    assert_eq!(outcome(&report, "prompt"), "seen");
    shows("cancel-is-an-end", "", "cancel", "seen", "with the stop reason end_turn", 0);
}

#[test]
#[ignore = "slow: runs many trials"]
fn what_an_agent_leaves_behind_is_found() {
    let (_, report) = shows("orphan", "", "no-orphans", "failed", "left processes in its group", 1);
    assert_eq!(outcome(&report, "clean-exit"), "seen");
    shows("runaway", "", "no-orphans", "failed", "had left its group", 1);
    shows("bad-exit", "", "clean-exit", "failed", "exited 3", 1);
}

#[test]
fn an_agent_that_does_not_go_is_found() {
    let (_, report) = shows("holds-on", "", "clean-exit", "not-seen", "did not exit when its input was closed", 3);
    assert_eq!(outcome(&report, "no-orphans"), "seen");
}

#[test]
#[ignore = "slow: runs many conversations"]
fn an_opening_that_fails_is_found_and_nothing_else_is_claimed() {
    let (_, report) = shows("version-2", "", "handshake", "failed", "protocol version 2", 1);
    assert_eq!(outcome(&report, "sessions"), "not-checked");
    let (_, report) = shows("login", "", "sessions", "not-checked", "the agent requires a login", 3);
    for name in ["prompt", "streaming", "tool-calls", "permission-approve", "cancel", "usage"] {
        assert_eq!(outcome(&report, name), "not-checked", "{name}");
    }
    assert_eq!(report["tier"], "catalog");
    shows("no-session", "", "sessions", "failed", "the database is locked", 1);
    let (_, report) = shows("dies", "", "starts", "failed", "no configuration was found", 1);
    assert_eq!((outcome(&report, "prompt"), &report["tier"]), ("failed".into(), &"catalog".into()));
    let (_, report) = shows("noise", "", "handshake", "seen", "protocol version 1", 0);
    let odd = report["oddities"].as_array().unwrap();
    let noise = odd.iter().find(|odd| odd["code"] == "malformed_line").unwrap();
    assert!(noise["text"].as_str().unwrap().contains("Welcome"), "{noise}");
    assert_eq!((noise["count"].as_u64(), noise["place"]["line"].as_u64()), (Some(5), Some(3)));
}

#[test]
fn without_a_model_only_what_needs_none_is_looked_for() {
    let mut project = fake(
        "none",
        "env: {pass: [MY_API_KEY, MY_HINT], secret: [MY_API_KEY]}\nrequires-env: [MY_API_KEY]\nhome: {copy: [login]}\n\
         version: [python3, -c, 'import os; print(sorted(k for k in os.environ if k.startswith(\"MY_\")))']",
    );
    project.env("MY_API_KEY", "sk-0123456789abcdef");
    project.env("MY_HINT", "hint");
    let ran = project.evals(&["harness", "check", "fake", "--format", "json"]).exits(3);
    let report = checked(&ran);
    for name in ["starts", "version", "handshake", "sessions", "model-choice", "clean-exit", "no-orphans"] {
        assert_eq!(outcome(&report, name), "seen", "{name}");
    }
    for name in ["prompt", "streaming", "tool-calls", "permission-approve", "permission-reject", "cancel", "usage"] {
        assert_eq!(outcome(&report, name), "not-checked", "{name}");
    }
    assert_eq!((&report["model"], &report["tier"]), (&"none".into(), &"catalog".into()));
    // No prompt was sent, and no key was handed on.
    let folder = report["folder"].as_str().unwrap();
    for (path, bytes) in project.files(folder) {
        assert!(!String::from_utf8_lossy(&bytes).contains("session/prompt"), "{path}");
    }
}

#[test]
fn a_scripted_model_answers_where_the_manifest_says_how() {
    let mut project = fake(
        "none",
        "env: {pass: [FAKE_API_KEY], secret: [FAKE_API_KEY]}\nrequires-env: [FAKE_API_KEY]\n\
         gateway:\n  api: openai-chat\n  model: scripted\n\
         \x20 env: {FAKE_GATEWAY: '{gateway}', FAKE_MODEL: '{model}', FAKE_API_KEY: scripted-key}",
    );
    project.env("FAKE_API_KEY", "sk-of-the-user-0123456789");
    let report = checked(&project.evals(&["harness", "check", "fake", "--format", "json"]).exits(0));
    assert_eq!((&report["model"], &report["tier"]), (&"scripted".into(), &"wired".into()));
    let folder = report["folder"].as_str().unwrap();
    let asked = exchanges(&project.read(&format!("{folder}/answer/llm.jsonl")));
    assert!(!asked.is_empty() && asked.iter().all(|exchange| exchange["model"] == "scripted"), "{asked:?}");
    // With --live it is the user's own model that is asked, and the key is the user's.
    let args = ["harness", "check", "fake", "--live", "--format", "json"];
    assert_eq!(checked(&project.evals(&args).exits(0))["tier"], "runnable");
}

#[test]
fn a_harness_that_cannot_be_started_says_why() {
    let project = Project::new();
    project.harness("gone", "adapter: acp\ncommand: [no-such-agent-anywhere]\ninstall: npm install -g gone");
    project.harness("recipe", "adapter: acp\ntier: catalog\nverified: []\nquirks: [nobody knows its launch]");
    project.harness("played", "adapter: replay\nrecording: x.wire.jsonl");
    project.evals(&["harness", "check", "gone"]).exits(3).says("was not found on PATH").says("npm install -g gone");
    project.evals(&["harness", "check", "recipe"]).exits(3).says("it cannot be launched");
    project.evals(&["harness", "check", "played"]).exits(2).says("plays a recording");
    project.evals(&["harness", "check", "gnoe"]).exits(2).says("did you mean `gone`");
    project.evals(&["harness", "check"]).exits(2);
    project.evals(&["harness", "check", "demo", "--timeout", "0s"]).exits(2).says("more than 0");
    project.case("a", "", "");
    project.evals(&["run", "--harness", "recipe"]).exits(2).says("its manifest has no command");
    let report = checked(&project.evals(&["harness", "check", "gone", "--format", "json"]).exits(3));
    assert!(report.get("folder").is_none() && report.get("tier").is_none(), "{report}");
}

#[test]
#[ignore = "slow: runs many conversations"]
fn all_that_are_installed_stand_side_by_side() {
    let mut project = fake("disobeys", "");
    project.env("NO_COLOR", "1");
    // The PATH has no agents of this machine.
    let bin = project.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let python = std::process::Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let python = String::from_utf8(python.unwrap().stdout).unwrap();
    for (name, program) in
        [("sh", "/bin/sh"), ("sleep", "/bin/sleep"), ("touch", "/bin/touch"), ("python3", python.trim())]
    {
        std::fs::write(bin.join(name), format!("#!/bin/sh\nexec {program} \"$@\"\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(bin.join(name), mode).unwrap();
    }
    project.env("PATH", &bin.display().to_string());
    let ran = project.evals(&["harness", "check", "fake", "demo", "recipe-less", "--live"]);
    assert_eq!(ran.code, 2);
    let ran = project.evals(&["harness", "check", "fake", "demo", "--live"]).exits(1);
    ran.says("fake: permission-reject failed (reject/wire.jsonl").says("12 permission-reject");
    let ran = project.evals(&["harness", "check", "fake", "demo", "--live", "--format", "markdown"]).exits(1);
    let row = ran.out.lines().find(|line| line.starts_with("| `fake`")).unwrap();
    assert!(row.contains("| failed |") && row.ends_with("| runnable |"), "{row}");
    let all = project.evals(&["harness", "check", "--all", "--timeout", "20s", "--format", "json"]).json();
    let names: Vec<&str> = all["checks"].as_array().unwrap().iter().map(|it| it["harness"].as_str().unwrap()).collect();
    assert!(["demo", "demo-stream", "demo-text", "fake"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(!names.contains(&"goose"), "{names:?}");
}

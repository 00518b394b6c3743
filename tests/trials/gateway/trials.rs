//! Cases whose model is a script: a real child process asks the model, and the trace contains what the script says.

use serde_json::{Value, json};

use crate::project::{Project, bubblewrap, lines, of_type};

const AGENT: &str = include_str!("agent.py");

const MANIFEST: &str = r#"
adapter: claude-code-stream
command: [python3, AGENT, "{prompt}"]
model: {via: env, env: AGENT_MODEL}
env: {pass: [AGENT_API_KEY, AGENT_MODE], secret: [AGENT_API_KEY]}
requires-env: [AGENT_API_KEY]
home: {copy: [login.json]}
gateway:
  api: anthropic
  model: usual
  env: {AGENT_URL: "{gateway}", AGENT_API_KEY: "{key}"}
  args: [--offline, "{model}"]
"#;

const SCRIPT: &str = "\
turns:
  - thinking: A file first.
    text: I write it.
    calls:
      - write: {path: a.txt, text: \"forty-two\\n\"}
      - execute: {command: cat a.txt}
    usage: {input: 100, output: 20}
  - calls: [{execute: {command: exit 3}}]
    usage: {input: 110, output: 10}
  - text: a.txt holds forty-two.
    usage: {input: 120, output: 12}
";

/// Makes a project with the small agent, and a case that a script plays.
fn project(script: &str, keys: &str) -> Project {
    let project = Project::new();
    project.write("agent.py", AGENT);
    let agent = project.path("agent.py").canonicalize().unwrap();
    project.harness("small", &MANIFEST.replace("AGENT,", &format!("{},", agent.display())));
    project.write("scripts/a.model.yaml", script);
    project.case("a", &format!("model: {{script: ../scripts/a.model.yaml}}\nharnesses: [small]\n{keys}"), "");
    project
}

const TRIAL: &str = "a/small/default/1";

#[test]
fn the_trace_says_what_the_script_said() {
    let mut project = project(
        SCRIPT,
        "graders: [{files: {equals: {a.txt: ../wanted.txt}}}, {output: {equals: a.txt holds forty-two.}}]",
    );
    project.write("wanted.txt", "forty-two\n");
    project.env("AGENT_API_KEY", "the-user's-own-key");
    project.env("AGENT_MODE", "quiet");
    project.env("http_proxy", "http://127.0.0.1:9");
    project.env("HTTPS_PROXY", "http://127.0.0.1:9");
    std::fs::write(project.home().join("login.json"), "{}").unwrap();
    project.evals(&["run", "--interaction", "auto-approve"]).exits(0);

    let trace = project.trace(TRIAL);
    let cwd = trace[0]["cwd"].as_str().unwrap();
    assert_eq!(trace[0]["model"], json!({"requested": "usual", "effective": "usual"}));
    let calls: Vec<Value> = of_type(&trace, "tool_call")
        .iter()
        .map(|call| json!([call["call"], call["step"], call["kind"], call["name"], call["input"]]))
        .collect();
    assert_eq!(
        calls,
        [
            json!(["toolu_scripted_0_0", 0, "edit", "Write", {"file_path": format!("{cwd}/a.txt"), "content": "forty-two\n"}]),
            json!(["toolu_scripted_0_1", 0, "execute", "Bash", {"command": "cat a.txt"}]),
            json!(["toolu_scripted_1_0", 1, "execute", "Bash", {"command": "exit 3"}]),
        ]
    );
    let statuses: Vec<&Value> = of_type(&trace, "tool_result").iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, ["ok", "ok", "error"]);
    assert_eq!(of_type(&trace, "thought")[0]["text"], "A file first.");
    let result = project.result(TRIAL);
    assert_eq!((&result["metrics"]["input_tokens"], &result["metrics"]["output_tokens"]), (&json!(330), &json!(42)));
    let warnings = result["warnings"].to_string();
    assert!(!warnings.contains("script"), "{warnings}");
    // The manifest's placeholder of the key is shorter than any secret, and no secret.
    assert!(!warnings.contains("AGENT_API_KEY"), "{warnings}");
    // The agent reports the same figures as its model, so there is no notice.
    let of_gateway = json!({"scope": "session", "source": "gateway", "input_tokens": 330, "output_tokens": 42});
    let usage = of_type(&trace, "usage");
    let last = usage.last().unwrap();
    for (key, value) in of_gateway.as_object().unwrap() {
        assert_eq!(last[key], *value, "{last}");
    }
    assert_eq!(usage.iter().filter(|usage| usage["source"] == "gateway").count(), 1, "{usage:?}");
    assert!(of_type(&trace, "notice").is_empty(), "{trace:?}");

    let log = lines(&project.of_trial(TRIAL, "llm.jsonl"));
    let schema = jsonschema::validator_for(&evals::internal::schema::schema("exchange").unwrap()).unwrap();
    assert!(log.iter().all(|line| schema.is_valid(line)), "{log:?}");
    let numbers: Vec<&Value> = log.iter().map(|line| &line["n"]).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let log = project.model_log(TRIAL);
    let turns: Vec<&Value> = log.iter().map(|line| &line["turn"]).collect();
    assert_eq!(turns, [0, 1, 2]);
    assert_eq!(log[0]["tools"], json!(["Write", "Bash"]));
    assert_eq!(log[0]["calls"][0]["call"], "toolu_scripted_0_0");
    assert_eq!(log[0]["model"], "usual");

    // None of the user's own keys, logins and proxies has reached the agent.
    let wire = project.of_trial(TRIAL, "wire.jsonl");
    let wire_lines = lines(&wire);
    let said = wire_lines.iter().rfind(|line| line["dir"] == "recv").unwrap()["line"].as_str().unwrap();
    let said: Value = serde_json::from_str(said).unwrap();
    let env: Vec<&str> = said["env"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(env.contains(&"AGENT_MODE") && env.contains(&"AGENT_API_KEY"));
    assert!(!env.iter().any(|name| name.to_ascii_uppercase().ends_with("_PROXY")), "{env:?}");
    assert_eq!(said["argv"], json!(["--offline", "usual"]));
    assert!(!wire.contains("the-user's-own-key"));
}

#[test]
fn the_model_that_is_asked_for_is_asked_for() {
    let project = project(SCRIPT, "");
    project.evals(&["run", "--model", "other"]).exits(0);
    let trial = "a/small/other/1";
    let asked = project.of_trial(trial, "llm.jsonl");
    assert_eq!(project.model_log(trial)[0]["model"], "other");
    assert_eq!(project.trace(trial)[0]["model"]["effective"], "other");
    // Graded again, the trial has the same evidence.
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(0).json();
    let derived = again["run"].as_str().unwrap();
    assert_eq!(project.read(&format!(".evals/runs/{derived}/trials/{trial}/llm.jsonl")), asked);
}

/// The service of the small agent must report tokens, and reports 0 if the script sets none.
#[test]
fn usage_that_the_script_does_not_set_is_unknown() {
    for (turn, left_out) in [("", true), (", usage: {input: 5, output: 3}", false)] {
        let script = format!("turns:\n  - {{calls: [{{execute: {{command: ls}}}}]{turn}}}\n  - {{text: Done so.}}\n");
        let project = project(&script, "");
        project.evals(&["run"]).exits(0);
        let trace = project.trace(TRIAL);
        assert_eq!(trace[0]["model"]["effective"], "usual");
        let usage = of_type(&trace, "usage");
        // A figure of the gateway would be a lower bound, and the agent's own one claims to be complete.
        assert!(usage.iter().all(|usage| usage["source"] != "gateway"), "{usage:?}");
        let log = project.model_log(TRIAL);
        assert_eq!(log[0]["usage"].is_null(), left_out);
        assert!(log[1]["usage"].is_null(), "{log:?}");
    }
}

#[test]
fn files_may_point_an_agent_too_and_a_command_take_the_others_place() {
    let project = project(SCRIPT, "");
    let text = project.read("harnesses/small.yaml");
    let (before, _) = text.split_once("gateway:").unwrap();
    let agent = project.path("agent.py").canonicalize().unwrap();
    let gateway = format!(
        r#"gateway:
  api: anthropic
  env: {{AGENT_CONFIG: .agent/config.json}}
  files: {{".agent/config.json": '{{"AGENT_URL": "{{gateway}}", "AGENT_API_KEY": "no-key-at-all"}}'}}
  command: [python3, {}, "{{prompt}}", --from-the-gateway]
"#,
        agent.display()
    );
    project.write("harnesses/small.yaml", &format!("{before}{gateway}"));
    project.evals(&["run"]).exits(0);
    assert!(project.of_trial(TRIAL, "wire.jsonl").contains("--from-the-gateway"));
}

/// The example of `docs/scripted-model.md` also runs with an unknown agent.
#[test]
fn the_example_says_what_it_should() {
    let project = project(SCRIPT, "");
    for file in ["write-and-check.yaml", "write-and-check.model.yaml"] {
        let text = std::fs::read_to_string(format!("examples/scripted-model/cases/{file}")).unwrap();
        project.write(&format!("example/cases/{file}"), &text);
    }
    project.evals(&["check", "example"]).exits(0);
    project.evals(&["run", "example", "--harness", "small"]).exits(0);
}

#[test]
fn several_trials_have_a_server_each() {
    let project = project(SCRIPT, "trials: 3");
    project.evals(&["run", "--jobs", "3"]).exits(0);
    for trial in 1..=3 {
        let log = project.model_log(&format!("a/small/default/{trial}"));
        assert_eq!(log.len(), 3);
    }
    assert!(project.left_over().is_empty());
}

/// Messages of an agent to its model before the case's prompt, or outside its conversation, use no turn of the script.
#[test]
fn an_exchange_before_the_prompt_takes_no_turn() {
    for (mode, asides) in [("context", 0), ("warm-up", 1), ("title", 1)] {
        let mut project = project(SCRIPT, "graders: [{output: {equals: a.txt holds forty-two.}}]");
        project.env("AGENT_API_KEY", "the-user's-own-key");
        project.env("AGENT_MODE", mode);
        project.evals(&["run", "--interaction", "auto-approve"]).exits(0);
        let log = project.model_log(TRIAL);
        let turns: Vec<&Value> = log.iter().map(|line| &line["turn"]).filter(|turn| !turn.is_null()).collect();
        assert_eq!(turns, [0, 1, 2], "{mode}");
        assert_eq!(log.iter().filter(|line| line["played"] == "aside").count(), asides, "{mode}");
        assert_eq!(log.iter().any(|line| line["without_prompt"] == true), mode == "warm-up", "{mode}");
    }
}

/// If the prompt is not recognised, the agent does not fail: no turn of the script was played.
#[test]
fn a_script_that_never_began_is_not_judged() {
    let mut project = project(SCRIPT, "");
    project.env("AGENT_API_KEY", "the-user's-own-key");
    project.env("AGENT_MODE", "riddle");
    project.evals(&["run"]).exits(3).says("none of 1 request with tools contains the case's prompt");
    let result = project.result(TRIAL);
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&json!("errored"), &json!("setup")));
}

#[test]
fn a_script_of_which_no_turn_was_played_is_not_judged() {
    let project = project("turns: [{text: That is all.}]", "graders: [{diff: {none: true}}]");
    let agent = project.read("agent.py");
    let without_tools = agent.replace("\"tools\": TOOLS,", "");
    assert_ne!(agent, without_tools);
    project.write("agent.py", &without_tools);
    project.evals(&["run"]).exits(3);
    let error = project.result(TRIAL)["error"].clone();
    let message = error["message"].as_str().unwrap();
    let begins = "the scripted model: no turn of the script was played, because 1 request without tools";
    assert!(error["category"] == "setup" && message.starts_with(begins), "{error}");
    assert!(message.contains("`without-tools: play`"), "{error}");
    project.write("scripts/a.model.yaml", "without-tools: play\nturns: [{text: That is all.}]");
    project.evals(&["run"]).exits(0);
}

/// With `on-limit: grade`, an agent that did nothing would pass.
#[test]
fn a_script_of_which_no_turn_was_played_before_a_limit_is_not_judged() {
    let keys = "limits: {time: 3s, on-limit: grade}\ngraders: [{diff: {none: true}}]";
    let project = project("turns: [{text: That is all.}]", keys);
    let agent = project.read("agent.py");
    let sleeping = agent.replace("    text = \"\"\n    while", "    time.sleep(60)\n    text = \"\"\n    while");
    assert_ne!(agent, sleeping);
    project.write("agent.py", &sleeping);
    project.evals(&["run"]).exits(3);
    let error = project.result(TRIAL)["error"].clone();
    let begins = "the agent made no request to the gateway, so no turn of the script was played";
    assert!(error["category"] == "setup" && error["message"].as_str().unwrap().starts_with(begins), "{error}");
}

#[test]
fn a_turn_that_the_agent_cannot_be_given_is_not_judged() {
    let project = project("turns: [{calls: [{edit: {path: a, old: b, new: c}}]}, {text: later}]", "");
    project.evals(&["run"]).exits(3).says("the agent offers no tool that can edit; it offers Write, Bash");
    let error = &project.result(TRIAL)["error"];
    assert_eq!(error["category"], "setup");
    assert!(error["message"].as_str().unwrap().starts_with("the scripted model: turn 0"), "{error}");
}

const DEPENDS: &str = "\
turns:
  - calls: [{execute: {command: 'test -e wanted.txt'}}]
  - either:
      - when: {status: ok}
        text: It is there.
      - when: {status: error, result: 'Exit code 1'}
        calls: [{write: {path: wanted.txt, text: x}}]
  - text: Now it is there.
";

#[test]
fn a_turn_depends_on_what_the_agent_did() {
    for mode in ["quiet", "context"] {
        for (files, said) in [("{}", "Now it is there."), ("{wanted.txt: x}", "It is there.")] {
            let graders = format!("graders: [{{files: {{exists: [wanted.txt]}}}}, {{output: {{equals: {said}}}}}]");
            let mut project = project(DEPENDS, &format!("workspace: {{files: {files}}}\n{graders}"));
            project.env("AGENT_MODE", mode);
            project.evals(&["run", "--interaction", "auto-approve"]).exits(0);
            // The last turn belongs to the other alternative, so it is not missed.
            let warnings = project.result(TRIAL)["warnings"].to_string();
            assert!(!warnings.contains("turns of the model's script"), "{warnings}");
        }
    }
}

#[test]
fn a_result_that_the_script_does_not_know_is_not_judged() {
    let script = DEPENDS.replace("Exit code 1", "Exit code 2");
    let project = project(&script, "");
    project.evals(&["run", "--interaction", "auto-approve"]).exits(3);
    let error = project.result(TRIAL)["error"].clone();
    let message = error["message"].as_str().unwrap();
    let wanted = "the scripted model: turn 1 of the script cannot be played: no alternative fits the results of the \
                  calls: call 0 of turn 0 (error): \"Exit code 1";
    assert!(error["category"] == "setup" && message.starts_with(wanted), "{error}");
}

#[test]
fn a_condition_that_never_holds_is_found_before_anything_runs() {
    let script = DEPENDS.replace("status: ok", "status: ok, of: 1");
    let project = project(&script, "");
    for command in ["check", "run"] {
        let ran = project.evals(&[command]).exits(2);
        ran.says("scripts/a.model.yaml:4").says("turn 1 does not come before turn 1");
    }
    assert!(project.runs().is_empty());
}

#[test]
fn turns_that_nobody_asked_for_are_a_warning() {
    let project = project("turns: [{text: That is all.}, {text: It is not.}]", "");
    project.evals(&["run"]).exits(0);
    let warnings = project.result(TRIAL)["warnings"].to_string();
    assert!(warnings.contains("the agent asked for 1 of the 2 turns of the model's script"), "{warnings}");
}

#[test]
fn a_harness_that_cannot_be_pointed_at_it_is_skipped() {
    let project = project(SCRIPT, "");
    project.demo("other", "");
    let ran = project.evals(&["run", "--harness", "small", "--harness", "other"]).exits(0);
    let ran = ran.says("the manifest of harness `other` has no `gateway`");
    ran.says("these can: claude-agent-acp").says("small");
    // Without other harnesses, nothing is left to be judged, and no demo script is required.
    project.evals(&["run", "--harness", "demo"]).exits(3).says("skipped");
}

#[test]
fn a_script_that_is_wrong_is_found_before_anything_runs() {
    let project = project("turns:\n  - txt: hi\n", "");
    for command in ["check", "run"] {
        project.evals(&[command]).exits(2).says("scripts/a.model.yaml").says("unknown key `txt`");
    }
    assert!(project.runs().is_empty());
}

#[test]
fn a_script_that_changed_is_noticed_when_a_run_goes_on() {
    let project = project(SCRIPT, "");
    project.evals(&["run"]).exits(0);
    project.write("scripts/a.model.yaml", "turns: [{text: something else}]");
    let run = project.runs()[0].clone();
    project.evals(&["run", "--resume", &run, "--rerun", "errored"]).exits(2).says("`a` changed");
}

#[test]
fn a_manifest_that_points_nowhere_is_refused() {
    let project = project(SCRIPT, "");
    project.harness("lost", "adapter: acp\ncommand: [x]\ngateway: {api: openai-chat, env: {URL: here}}");
    project.evals(&["check"]).exits(2).says("the address of the model server does not reach the agent");
    project.harness("lost", "adapter: acp\ncommand: [x]\ngateway: {api: openai, args: ['{gateway}']}");
    project.evals(&["check"]).exits(2).says("`openai` is not known").says("openai-chat");
    project.harness("lost", "adapter: acp\ncommand: [x]\ngateway: {api: gemini, files: {../x: '{gateway}'}}");
    project.evals(&["check"]).exits(2).says("the file `../x` is outside the home");
}

#[test]
fn the_agent_is_ended_by_its_limits_while_the_model_takes_its_time() {
    let project = project("turns: [{text: too late, delay: 1h}]", "limits: {time: 8s}");
    project.evals(&["run"]).exits(1);
    assert_eq!(project.result(TRIAL)["stop"]["reason"], "timed_out");
    assert_eq!(project.model_log(TRIAL)[0]["turn"], 0);
}

#[test]
fn secrets_are_masked_in_what_the_model_was_asked() {
    let mut project = project("turns: [{calls: [{execute: {command: echo a-very-secret-value}}]}, {text: done}]", "");
    project.env("MY_TOKEN", "a-very-secret-value");
    project.evals(&["run"]).exits(0);
    let log = project.of_trial(TRIAL, "llm.jsonl");
    assert!(log.contains("[redacted:MY_TOKEN]") && !log.contains("a-very-secret-value"), "{log}");
}

#[test]
fn a_sandbox_without_a_network_reaches_its_model() {
    if !bubblewrap() {
        return;
    }
    for network in ["none", "loopback", "all"] {
        let project = project(SCRIPT, &format!("sandbox: {{kind: bwrap, network: {network}}}"));
        let ran = project.evals(&["run"]);
        assert_eq!(ran.code, 0, "{network}: {ran:?}\n{}", project.of_trial(TRIAL, "stderr.log"));
        assert_eq!(project.model_log(TRIAL).len(), 3);
    }
}

#[test]
fn a_script_that_is_changed_under_the_run_ends_the_trials_that_follow() {
    let project = Project::new();
    let script = project.path("scripts/a.model.yaml").display().to_string();
    let turns =
        format!("turns:\n  - calls: [{{execute: {{command: \"echo '# more' >> '{script}'\"}}}}]\n  - text: done\n");
    project.write("agent.py", AGENT);
    let agent = project.path("agent.py").canonicalize().unwrap();
    project.harness("small", &MANIFEST.replace("AGENT,", &format!("{},", agent.display())));
    project.write("scripts/a.model.yaml", &turns);
    let keys = "model: {script: ../scripts/a.model.yaml}\nharnesses: [small]\ntrials: 2";
    project.case("a", keys, "");
    project.evals(&["run", "--jobs", "1", "--interaction", "auto-approve"]).exits(3);
    for (trial, when) in [(TRIAL, "while the trial ran"), ("a/small/default/2", "since the run began")] {
        let error = project.result(trial)["error"].clone();
        let message = error["message"].as_str().unwrap_or_default();
        assert!(error["category"] == "setup" && message.contains("a.model.yaml") && message.contains(when), "{error}");
    }
}

/// Nothing is sent to the user's service, and the user's key is not used.
#[test]
fn parity_plays_the_script_to_both_sides() {
    let mut project = project(SCRIPT, "graders: [{files: {contains: {a.txt: forty-two}}}]");
    project.env("AGENT_API_KEY", "the-user's-own-key");
    let agent = project.path("agent.py").canonicalize().unwrap();
    let parity = format!("parity: {{command: [python3, {}, \"{{prompt}}\"]}}\n", agent.display());
    let manifest = project.read("harnesses/small.yaml");
    project.write("harnesses/small.yaml", &format!("{manifest}{parity}"));
    let report = project.evals(&["harness", "parity", "small", "cases/a.yaml", "--format", "json"]).exits(0).json();
    let case = &report["cases"][0];
    assert_eq!(case["outcome"]["text"], "`files` passed");
    for which in ["inside", "outside"] {
        let log = lines(&project.read(&format!("{}/{which}/llm.jsonl", case["folder"].as_str().unwrap())));
        let sources: Vec<&Value> = log.iter().map(|line| &line["source"]).collect();
        assert_eq!(sources, ["script"; 3], "{which}");
    }
    let without_gateway = manifest.split("gateway:").next().unwrap();
    project.write("harnesses/small.yaml", &format!("{without_gateway}{parity}"));
    project.evals(&["harness", "parity", "small", "cases/a.yaml"]).exits(2).says("has no `gateway`");
}

#[test]
fn arguments_of_a_variant_reach_a_command_for_the_gateway() {
    let project = project(SCRIPT, "");
    let agent = project.path("agent.py").canonicalize().unwrap();
    let own = format!("  command: [python3, {}, \"{{prompt}}\"]\n", agent.display());
    let manifest = project.read("harnesses/small.yaml");
    project.write("harnesses/small.yaml", &format!("{manifest}{own}"));
    project.evals(&["run", "cases", "--variant", "a=", "--variant", "b={args: [--deep]}"]).exits(0);
    let argv = |arm: &str| -> Value {
        let wire = lines(&project.of_trial(&format!("a/small/{arm}/1"), "wire.jsonl"));
        let said = wire.iter().rfind(|line| line["dir"] == "recv").unwrap()["line"].as_str().unwrap();
        serde_json::from_str::<Value>(said).unwrap()["argv"].clone()
    };
    assert_eq!(argv("a"), json!(["--offline", "usual"]));
    assert_eq!(argv("b"), json!(["--deep", "--offline", "usual"]));
}

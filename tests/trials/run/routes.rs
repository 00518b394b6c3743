//! How a case's system prompt and MCP servers reach an agent, in the agent's own form.

use serde_json::{Value, json};

use crate::project::{Project, lines, of_type};

const CASE: &str = "\
prompt: Do it.
system-prompt: |
  Be brief: -- {model} \"$HOME\"
mcp-servers:
- {name: files, command: /bin/true, args: [-x], env: [{name: GH_TOKEN, value: mcp-secret-0451}]}
- {name: web, type: http, url: 'http://localhost', headers: {Authorization: Bearer header-secret-0451}}
graders: [{output: {regex: '.'}}]
";

/// Prints its arguments as JSON, with the content of each file among them.
const SHOW: &str = r#"
import sys, json, os
def shown(word): return {word: open(word).read()} if os.path.isfile(word) else word
print(json.dumps([shown(word) for word in sys.argv[1:]]))
"#;

fn project(keys: &str) -> Project {
    let project = Project::new();
    project.write("cases/a.yaml", CASE);
    project.write("show.py", SHOW);
    let at = project.path("show.py").display().to_string();
    project.harness("shows", &format!("adapter: output-only\ncommand: [python3, {at}, '{{prompt}}']\n{keys}"));
    project
}

#[test]
fn an_agent_with_flags_gets_them_and_a_file_that_is_masked_and_gone() {
    let project = project(
        "model: {via: flag, flag: --model}\nsystem-prompt: {via: flag, flag: --system}\nmcp-servers: {via: flag, flag: --mcp}",
    );
    let ran = project.evals(&["run", "--harness", "shows", "--model", "big"]).exits(0);
    let trace = project.trace("a/shows/big/1");
    let output = trace.last().unwrap()["output"].as_str().unwrap();
    let words: Vec<Value> = serde_json::from_str(output).unwrap();
    assert_eq!(
        words[..6],
        ["Do it.", "--model", "big", "--system", "Be brief: -- {model} \"$HOME\"\n", "--mcp"].map(Value::from)
    );
    let (path, text) = words[6].as_object().unwrap().iter().next().unwrap();
    assert!(path.ends_with("/home/mcp-servers.json") && !std::path::Path::new(path).exists(), "{path}");
    let servers: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    let files = json!({"command": "/bin/true", "args": ["-x"], "env": {"GH_TOKEN": "[redacted:GH_TOKEN]"}});
    let header = json!({"Authorization": "[redacted:Authorization]"});
    let web = json!({"type": "http", "url": "http://localhost", "headers": header});
    assert_eq!(servers, json!({"mcpServers": {"files": files, "web": web}}));
    // The user's prompt is unchanged, and there is no warning.
    assert_eq!(of_type(&trace, "message")[0]["text"], "Do it.");
    assert!(!project.result("a/shows/big/1")["warnings"].to_string().contains("system prompt"));
    for (path, bytes) in project.files(".evals") {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("mcp-secret-0451") && !text.contains("header-secret-0451"), "{path}: {text}");
    }
    assert!(!ran.out.contains("secret-0451") && !ran.err.contains("secret-0451"));
}

#[test]
fn without_flags_the_case_is_skipped_for_its_servers_and_runs_without_them() {
    let project = project("");
    project
        .evals(&["run", "--harness", "shows"])
        .exits(3)
        .says("the case offers MCP servers, and harness `shows` takes none");
    let plain = CASE.split("mcp-servers:").next().unwrap().to_owned() + "graders: [{output: {regex: '.'}}]\n";
    project.write("cases/a.yaml", &plain);
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.evals(&["run", "--harness", "shows"]).exits(0);
    let trace = project.trace("a/shows/default/1");
    assert_eq!(trace.last().unwrap()["output"], r#"["Be brief: -- {model} \"$HOME\"\n\n\nDo it."]"#);
    assert!(project.result("a/shows/default/1")["warnings"].to_string().contains("before the first prompt"));
}

/// Returns the message that opened the demo agent's session.
fn opened(project: &Project, harness: &str) -> Value {
    let wire = lines(&project.of_trial(&format!("a/{harness}/default/1"), "wire.jsonl"));
    let mut sent = wire.iter().filter(|line| line["dir"] == "send").map(|line| line["line"].as_str().unwrap());
    let opened = sent.find(|line| line.contains("session/new")).unwrap();
    serde_json::from_str::<Value>(opened).unwrap()["params"].clone()
}

#[test]
fn over_acp_the_session_takes_both_where_the_manifest_says_so() {
    let project = Project::new();
    project.write("cases/a.yaml", CASE);
    project.write("cases/a.demo.yaml", "steps: [{say: done}]");
    project.demo("meta", "system-prompt: {via: session-meta}");
    project.demo("bare", "mcp-servers: {via: none}");
    project.evals(&["run", "--harness", "meta", "--harness", "bare"]).exits(0).says("harness `bare` takes none");
    let params = opened(&project, "meta");
    assert_eq!(params["_meta"], json!({"systemPrompt": {"append": "Be brief: -- {model} \"$HOME\"\n"}}));
    assert_eq!(params["mcpServers"][0]["env"], json!([{"name": "GH_TOKEN", "value": "[redacted:GH_TOKEN]"}]));
    assert_eq!(params["mcpServers"].as_array().unwrap().len(), 2);
    assert_eq!(of_type(&project.trace("a/meta/default/1"), "message")[0]["text"], "Do it.");
    assert!(!project.result("a/meta/default/1")["warnings"].to_string().contains("system prompt"));
}

#[test]
fn routes_that_lead_nowhere_are_refused() {
    for (adapter, keys, says) in [
        ("output-only", "system-prompt: {via: flag}", "the system prompt does not reach the agent: `flag` is missing"),
        (
            "claude-code-control",
            "system-prompt: {via: session-meta}",
            "the adapter `claude-code-control` does not use `session/new`",
        ),
        ("output-only", "mcp-servers: {via: flag}", "the MCP servers do not reach the agent: `flag` is missing"),
        (
            "claude-code-stream",
            "mcp-servers: {via: session}",
            "the adapter `claude-code-stream` does not use `session/new`",
        ),
        ("acp", "system-prompt: {via: sesion-meta}", "did you mean `session-meta`"),
        ("acp", "mcp-servers: [x]", "bad.yaml:4"),
    ] {
        let project = Project::new();
        project.case("a", "", "");
        project.harness("bad", &format!("adapter: {adapter}\ncommand: [echo, '{{prompt}}']\n{keys}"));
        project.evals(&["run", "--harness", "bad"]).exits(2).says(says);
    }
}

#[test]
fn a_server_s_command_counts_from_the_file_it_is_written_in() {
    let project = project("mcp-servers: {via: flag, flag: --mcp}");
    std::fs::remove_file(project.path("cases/a.yaml")).unwrap();
    for server in ["cases/tools/of-suite", "cases/sub/tools/of-case"] {
        project.write(server, "#!/bin/sh\n");
    }
    project.write("cases/suite.yaml", "mcp-servers: [{name: suite, command: tools/of-suite}]\n");
    let servers = "mcp-servers: [{name: case, command: ./tools/of-case}, {name: path, command: cat}]";
    project.case("sub/deep", servers, "");
    project.case("sub/plain", "", "");
    project.evals(&["run", "--harness", "shows"]).exits(0);
    let commands = |trial: &str| -> Vec<String> {
        let trace = project.trace(trial);
        let words: Vec<Value> = serde_json::from_str(trace.last().unwrap()["output"].as_str().unwrap()).unwrap();
        let file = words.last().unwrap().as_object().unwrap().values().next().unwrap().clone();
        let file: Value = serde_json::from_str(file.as_str().unwrap()).unwrap();
        let servers = file["mcpServers"].as_object().unwrap().values();
        servers.map(|server| server["command"].as_str().unwrap().to_owned()).collect()
    };
    let whole = |path: &str| project.path(path).display().to_string();
    let (of_suite, of_case) = (whole("cases/tools/of-suite"), whole("cases/sub/tools/of-case"));
    assert_eq!(commands("sub/plain/shows/default/1"), [&*of_suite]);
    let mut of_deep = commands("sub/deep/shows/default/1");
    of_deep.sort();
    assert!(of_deep.contains(&of_case) && of_deep.contains(&"cat".to_owned()), "{of_deep:?}");
    // A server of a suite is still relative to the suite, whether or not the case adds servers.
    assert!(
        of_deep.iter().all(|command| *command == of_case || *command == of_suite || command == "cat"),
        "{of_deep:?}"
    );
}

#[test]
fn a_case_with_a_server_over_a_transport_that_the_agent_does_not_take_is_skipped() {
    let project = Project::new();
    project.demo("remote", "mcp-servers: {via: session, transports: [http, sse]}");
    let keys = |servers: &str| format!("harnesses: [remote]\nmcp-servers: {servers}");
    project.case("local", &keys("{files: {command: /bin/true}}"), "steps: [{say: done}]");
    project.case("web", &keys("{web: {type: http, url: 'http://localhost'}}"), "steps: [{say: done}]");
    project.evals(&["run"]).exits(0).says("skipped");
    let ran = project.evals(&["report", "--format", "json"]).exits(0).json();
    let results = ran["results"].as_array().unwrap();
    let of = |case: &str| results.iter().find(|result| result["case"] == case).unwrap();
    assert!(of("local")["skipped"].as_str().unwrap().contains("the MCP server `files` over stdio"), "{ran}");
    assert_eq!(of("web")["verdict"], "pass", "{ran}");
    let variant = "with={mcp-servers: {files: {command: /bin/true}}}";
    let variants = ["run", "cases/web.yaml", "--variant", "without=", "--variant", variant];
    project.evals(&variants).exits(2).says("cannot take the variant `with`");
    project.evals(&["run", "cases/local.yaml", "--harness", "copilot"]).exits(3).says("`files` over stdio");
}

#[test]
fn a_case_names_a_manifest_by_its_path() {
    let project = Project::new();
    let manifest =
        |name: &str| format!("name: {name}\nadapter: output-only\ncommand: [echo, '{name}', '{{prompt}}']\n");
    project.write("cases/agents/own.yaml", &manifest("own"));
    project.case("sub/a", "harnesses: [../agents/own.yaml]\ngraders: [{output: {contains: own}}]", "");
    project.evals(&["check"]).exits(0);
    project.evals(&["run"]).exits(0);
    assert_eq!(project.result("sub/a/own/default/1")["verdict"], "pass");
    project.evals(&["grade", "latest"]).exits(0);
    // Another harness of this name would be confused with it.
    project.write("cases/agents/own.yaml", &manifest("demo"));
    project.case("b", "harnesses: [demo]", "steps: [{say: done}]");
    project.evals(&["check"]).exits(2).says("which is also that of another harness");
    // Two manifests of one name are confused with each other.
    for folder in ["x", "y"] {
        project.write(&format!("cases/{folder}/twice.yaml"), &manifest("twice"));
    }
    project.write("cases/agents/own.yaml", &manifest("own"));
    project.case("b", "harnesses: [x/twice.yaml, y/twice.yaml]", "");
    project.evals(&["check"]).exits(2).says("both have the name `twice`");
    project.case("b", "", "steps: [{say: done}]");
    project.case("sub/a", "harnesses: [../agents/gone.yaml]", "");
    project.evals(&["check"]).exits(2).says("cases/sub/a.yaml:2:13").says("does not exist");
}

#[test]
fn keys_of_servers_that_only_the_agent_knows_are_noted() {
    let project = Project::new();
    project.case("a", "mcp-servers: {web: {httpUrl: 'http://localhost', disabled: true, envFile: .env}}", "");
    let ran = project.evals(&["check"]).exits(0);
    ran.says("the MCP server `web` has keys that evals does not know, and that agents get as they are: `envFile`");
}

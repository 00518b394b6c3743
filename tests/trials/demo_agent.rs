//! Drives the demo agent as what it is: a program of its own, spoken to over its standard input and output.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use evals::internal::harness::Manifest;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::protocol::wrong;

/// A workspace, and a script beside it.
struct Stand {
    folder: TempDir,
}

impl Stand {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        fs::write(folder.path().join("x.demo.yaml"), script).unwrap();
        Self { folder }
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn work(&self) -> std::path::PathBuf {
        self.folder.path().join("work")
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }

    fn command(&self, speak: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evals"));
        command.args(["demo-agent", "--speak", speak, "--script"]).arg(self.folder.path().join("x.demo.yaml"));
        command.args(more).current_dir(self.work()).stdin(Stdio::null());
        command
    }

    fn run(&self, speak: &str, more: &[&str]) -> Output {
        self.command(speak, more).output().unwrap()
    }

    fn connect(&self, more: &[&str]) -> Client {
        let mut command = self.command("acp", more);
        // The session's folder counts, not the one the program was started in.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Client { child, input: Some(input), output, next: 0, session: String::new() }
    }

    fn session(&self) -> Client {
        let mut client = self.connect(&[]);
        client.open(&self.work());
        client
    }
}

/// A client that writes its lines by hand.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    session: String,
}

impl Client {
    fn raw(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.raw(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.line();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    fn open(&mut self, cwd: &Path) -> Value {
        let hello = self.ask("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(hello["result"]["protocolVersion"], 1);
        conforms("InitializeResponse", &hello["result"]);
        assert_eq!(hello["result"]["agentInfo"]["name"], "evals-demo");
        let answer = self.ask("session/new", json!({"cwd": cwd, "mcpServers": []}));
        conforms("NewSessionResponse", &answer["result"]);
        self.session = answer["result"]["sessionId"].as_str().unwrap_or_default().to_owned();
        answer
    }

    fn start(&mut self) -> u64 {
        let session = self.session.clone();
        self.request("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]}))
    }

    fn permit(&mut self, request: &Value, outcome: Value) {
        self.raw(&json!({"jsonrpc": "2.0", "id": request["id"], "result": {"outcome": outcome}}).to_string());
    }

    /// Plays a turn, answering requests with these options in turn. Gives the updates, and the answer last.
    fn prompt(&mut self, options: &[&str]) -> Vec<Value> {
        let id = self.start();
        let mut options = options.iter();
        let mut seen = Vec::new();
        loop {
            let line = self.line();
            if line["method"] == "session/request_permission" {
                let outcome = match options.next().expect("a request that was not expected") {
                    &"cancelled" => json!({"outcome": "cancelled"}),
                    option => json!({"outcome": "selected", "optionId": option}),
                };
                self.permit(&line, outcome);
                conforms("RequestPermissionRequest", &line["params"]);
                seen.push(line);
            } else if line["method"] == "session/update" {
                assert_eq!(line["params"]["sessionId"], json!(self.session));
                conforms("SessionNotification", &line["params"]);
                seen.push(line["params"]["update"].clone());
            } else {
                assert_eq!(line["id"], json!(id));
                seen.push(line);
                assert_eq!(options.next(), None, "fewer requests than expected");
                return seen;
            }
        }
    }

    fn close(mut self) -> i32 {
        drop(self.input.take());
        let code = self.child.wait().unwrap().code();
        code.expect("the demo agent was killed")
    }
}

/// Whether the protocol's own types take a message without losing anything of it.
/// Panics unless a message is one of this type of the protocol.
fn conforms(name: &str, message: &Value) {
    assert_eq!(wrong(name, message), [""; 0], "{message}");
}

fn words(seen: &[Value]) -> Vec<&str> {
    seen.iter().filter_map(|update| update["sessionUpdate"].as_str()).collect()
}

fn said(seen: &[Value]) -> String {
    let chunks = seen.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// Status and first text of each call's end, by id.
fn ends(seen: &[Value]) -> Vec<(String, String)> {
    let ends = seen.iter().filter(|update| matches!(update["status"].as_str(), Some("completed" | "failed")));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ends.map(|end| (text(&end["status"]), text(&end["content"][0]["content"]["text"]))).collect()
}

fn stop(seen: &[Value]) -> &Value {
    &seen.last().unwrap()["result"]["stopReason"]
}

#[test]
fn a_turn_over_acp_is_shown_and_done() {
    let stand = Stand::new(
        r#"
steps:
  - thought: I should look first.
  - say: I will fix the loop.
  - plan: [{text: fix it, status: in_progress, priority: high}]
  - read: {path: src/sum.sh}
  - search: {pattern: seq, path: .}
  - edit: {path: src/sum.sh, old: seq 3, new: seq 4, name: str_replace, title: Fix the loop}
  - edit: {path: src/sum.sh, old: nowhere, new: x}
  - write: {path: new/a.txt, text: "hello\n"}
  - write: {path: ../out.txt, text: no}
  - move: {from: new/a.txt, to: b.txt}
  - delete: {path: old.txt}
  - run: {command: "sh src/sum.sh; echo oops >&2; exit 3"}
  - fetch: {url: "https://example.com", output: a page}
  - read: {path: b.txt, fails: the disk is on fire}
  - usage: {input-tokens: 1200, output-tokens: 80, cache-read-tokens: 5, cost-usd: 0.1}
  - usage: {input-tokens: 100, output-tokens: 20, cost-usd: 0.2}
  - say: Done.
"#,
    )
    .file("src/sum.sh", "seq 3\n")
    .file("old.txt", "old\n");
    let mut client = stand.session();
    let seen = client.prompt(&[]);
    assert_eq!(said(&seen), "I will fix the loop.Done.");
    assert_eq!(words(&seen)[..9].iter().filter(|word| **word == "agent_thought_chunk").count(), 4);
    assert_eq!(
        ends(&seen).iter().map(|(status, text)| (status.as_str(), text.as_str())).collect::<Vec<_>>(),
        [
            ("completed", "seq 3\n"),
            ("completed", "src/sum.sh:1:seq 3\n"),
            ("completed", "edited src/sum.sh"),
            ("failed", "src/sum.sh: the text to replace is not found"),
            ("completed", "wrote 6 bytes to new/a.txt"),
            ("failed", "../out.txt: outside of the workspace"),
            ("completed", "moved new/a.txt to b.txt"),
            ("completed", "deleted old.txt"),
            ("failed", "1\n2\n3\n4\noops\n"),
            ("completed", "a page"),
            ("failed", "the disk is on fire"),
        ]
    );
    let plan = seen.iter().find(|update| update["sessionUpdate"] == "plan").unwrap();
    assert_eq!(plan["entries"], json!([{"content": "fix it", "status": "in_progress", "priority": "high"}]));
    let path = stand.work().join("src/sum.sh");
    let call = seen.iter().find(|update| update["title"] == "Fix the loop").unwrap();
    assert_eq!(
        *call,
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "call_3", "name": "str_replace", "title": "Fix the loop",
            "kind": "edit", "rawInput": {"path": "src/sum.sh", "old": "seq 3", "new": "seq 4"},
            "locations": [{"path": path}], "status": "pending",
        })
    );
    let diff = seen.iter().find(|update| update["toolCallId"] == "call_3" && update["status"] == "completed").unwrap();
    assert_eq!(diff["content"][1], json!({"type": "diff", "path": path, "oldText": "seq 3\n", "newText": "seq 4\n"}));
    let run = seen.iter().find(|update| update["rawOutput"].is_object()).unwrap();
    assert_eq!(run["rawOutput"], json!({"output": "1\n2\n3\n4\noops\n", "exitCode": 3}));
    let cost = seen.iter().find(|update| update["sessionUpdate"] == "usage_update").unwrap();
    assert_eq!(cost["cost"], json!({"amount": 0.3, "currency": "USD"}));
    let usage = json!({"inputTokens": 1300, "outputTokens": 100, "cachedReadTokens": 5, "totalTokens": 1405});
    assert_eq!(seen.last().unwrap()["result"], json!({"stopReason": "end_turn", "usage": usage}));
    assert_eq!(stand.text("src/sum.sh").unwrap(), "seq 4\n");
    assert_eq!(stand.text("b.txt").unwrap(), "hello\n");
    assert_eq!((stand.text("old.txt"), stand.text("new/a.txt")), (None, None));
    assert!(!stand.folder.path().join("out.txt").exists());
    assert_eq!(client.close(), 0);
}

#[test]
fn permission_is_asked_for_and_respected() {
    let stand = Stand::new(
        r#"
turns:
  - steps:
      - write: {path: once.txt, text: a, ask: true}
      - write: {path: no.txt, text: a, ask: true, otherwise: [{say: Then not.}, {write: {path: instead.txt, text: a}}]}
      - run: {command: touch always.txt, ask: true}
      - run: {command: touch later.txt, ask: true}
  - steps:
      - run: {command: touch next-turn.txt, ask: true}
      - parallel:
          - write: {path: c1.txt, text: a, ask: true, otherwise: [{say: As you wish.}]}
          - write: {path: c2.txt, text: a}
      - say: never said
"#,
    );
    let mut client = stand.session();
    let seen = client.prompt(&["allow-once", "reject-once", "allow-always"]);
    let asked: Vec<&Value> = seen.iter().filter(|line| line["method"].is_string()).collect();
    assert_eq!(asked.iter().map(|line| &line["id"]).collect::<Vec<_>>(), [0, 1, 2]);
    let kinds: Vec<&str> =
        asked[0]["params"]["options"].as_array().unwrap().iter().filter_map(|o| o["kind"].as_str()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert_eq!(asked[1]["params"]["toolCall"]["rawInput"], json!({"path": "no.txt", "text": "a"}));
    assert_eq!(ends(&seen)[1], ("failed".to_owned(), "rejected".to_owned()));
    assert_eq!(said(&seen), "Then not.");
    assert_eq!(stop(&seen), "end_turn");
    assert!(seen.last().unwrap()["result"].get("usage").is_none());
    for (path, there) in
        [("once.txt", true), ("no.txt", false), ("instead.txt", true), ("always.txt", true), ("later.txt", true)]
    {
        assert_eq!(stand.work().join(path).exists(), there, "{path}");
    }
    let seen = client.prompt(&["cancelled"]);
    assert_eq!(stop(&seen), "cancelled");
    assert_eq!(said(&seen), "As you wish.");
    assert!(stand.work().join("next-turn.txt").exists(), "`allow always` holds for the session");
    assert!(!stand.work().join("c1.txt").exists() && !stand.work().join("c2.txt").exists());
    let announced = words(&seen).iter().position(|word| *word == "tool_call_update").unwrap();
    assert_eq!(words(&seen)[..announced], ["tool_call"]);
    let seen = client.prompt(&[]);
    assert_eq!((said(&seen).as_str(), stop(&seen)), ("The script has no further turn.", &json!("end_turn")));
    assert_eq!(client.close(), 0);
}

#[test]
fn parallel_calls_are_announced_together() {
    let stand =
        Stand::new("steps: [{parallel: [{read: {path: a}}, {read: {path: b}}]}, {stop: gone fishing}, {say: x}]")
            .file("a", "A")
            .file("b", "B");
    let mut client = stand.session();
    let seen = client.prompt(&[]);
    assert_eq!(words(&seen)[..2], ["tool_call", "tool_call"]);
    assert_eq!(ends(&seen).len(), 2);
    assert_eq!(said(&seen), "");
    assert_eq!(stop(&seen), "gone fishing");
}

#[test]
fn a_cancel_ends_the_turn_soon() {
    for script in [
        "turns: [{steps: [{say: x}, {sleep: 1m}, {write: {path: late, text: x}}]}, {steps: [{say: again}]}]",
        "turns: [{steps: [{say: x}, {run: {command: sleep 60; touch late}}]}, {steps: [{say: again}]}]",
        "turns: [{steps: [{say: x}, {write: {path: late, text: x, ask: true}}]}, {steps: [{say: again}]}]",
    ] {
        let stand = Stand::new(script);
        let mut client = stand.session();
        // A cancel between turns cancels nothing.
        let session = client.session.clone();
        let cancel =
            json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}).to_string();
        client.raw(&cancel);
        let id = client.start();
        let started = Instant::now();
        assert_eq!(client.line()["params"]["update"]["sessionUpdate"], "agent_message_chunk");
        std::thread::sleep(Duration::from_millis(30));
        client.raw(&cancel);
        let answer = loop {
            let line = client.line();
            if line["method"] == "session/request_permission" {
                client.permit(&line, json!({"outcome": "cancelled"}));
            } else if line["id"] == json!(id) {
                break line;
            }
        };
        assert_eq!(answer["result"]["stopReason"], "cancelled", "{script}");
        assert!(started.elapsed() < Duration::from_secs(30), "{script}");
        assert!(!stand.work().join("late").exists(), "{script}");
        let seen = client.prompt(&[]);
        assert_eq!((said(&seen).as_str(), stop(&seen)), ("again", &json!("end_turn")));
        assert_eq!(client.close(), 0);
    }
}

#[test]
fn closing_the_input_ends_it_in_the_middle_of_a_turn() {
    let stand = Stand::new("steps: [{say: x}, {sleep: 1m}]");
    let mut client = stand.session();
    client.start();
    client.line();
    let started = Instant::now();
    assert_eq!(client.close(), 0);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[test]
fn the_model_is_chosen_over_the_protocol() {
    let stand = Stand::new("models: [demo-1, demo-2]\nsteps: []");
    let mut client = stand.connect(&["--model", "demo-2"]);
    let opened = client.open(&stand.work());
    let option = &opened["result"]["configOptions"][0];
    assert_eq!((&option["category"], &option["type"]), (&json!("model"), &json!("select")));
    assert_eq!(option["currentValue"], "demo-2");
    let session = client.session.clone();
    let set = |value: &str| json!({"sessionId": session, "configId": "model", "value": value});
    let answer = client.ask("session/set_config_option", set("demo-1"));
    assert_eq!(answer["result"]["configOptions"][0]["currentValue"], "demo-1");
    assert_eq!(client.ask("session/set_config_option", set("demo-3"))["error"]["code"], -32602);
    let set = |model: &str| json!({"sessionId": session, "modelId": model});
    assert_eq!(client.ask("session/set_model", set("demo-2"))["result"], json!({}));
    assert_eq!(client.ask("session/set_model", set("demo-3"))["error"]["code"], -32602);
    assert_eq!(client.close(), 0);

    // Without a list any model will do, and it is listed from then on.
    let stand = Stand::new("steps: []");
    let mut client = stand.session();
    let set = json!({"sessionId": client.session, "configId": "model", "value": "other"});
    let answer = client.ask("session/set_config_option", set);
    assert_eq!(
        answer["result"]["configOptions"][0]["options"],
        json!([{"value": "demo-1", "name": "demo-1"}, {"value": "other", "name": "other"}])
    );
}

#[test]
fn what_it_does_not_know_is_refused_in_the_protocols_way() {
    let stand = Stand::new("steps: []");
    let mut client = stand.connect(&[]);
    client.open(&stand.work());
    assert_eq!(client.ask("session/fork", json!({}))["error"]["code"], -32601);
    assert_eq!(client.ask("session/prompt", json!({"sessionId": "no", "prompt": []}))["error"]["code"], -32602);
    assert_eq!(client.ask("session/new", json!({"cwd": "relative", "mcpServers": []}))["error"]["code"], -32602);
    let missing = stand.work().join("missing");
    assert_eq!(client.ask("session/new", json!({"cwd": missing, "mcpServers": []}))["error"]["code"], -32602);
    client.raw(r#"{"jsonrpc":"2.0","method":"_unknown/notification"}"#);
    client.raw("this is no JSON");
    let answer = client.line();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32700)));
    client.raw(r#"{"jsonrpc":"2.0","id":"a text","method":"session/list"}"#);
    assert_eq!(client.line()["id"], "a text");
    assert_eq!(client.close(), 0);
}

const ONE_WAY: &str = r#"
steps:
  - thought: Two files at once.
  - plan: [{text: read them}]
  - parallel:
      - read: {path: a}
      - run: {command: "echo partial; exit 3"}
  - say: Now I write.
  - write: {path: new.txt, text: "n\n", ask: true}
  - edit: {path: a, old: A, new: B}
  - edit: {path: a, old: A, new: B}
  - usage: {input-tokens: 10, output-tokens: 2, cost-usd: 0.5}
  - say: First words.
  - say: Last words.
"#;

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_stream_is_shaped_like_claude_codes() {
    let stand = Stand::new(ONE_WAY).file("a", "A\n");
    let output = stand.run("stream-json", &["- do it, --please", "--model", "demo-9"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&output);
    assert_eq!((&lines[0]["type"], &lines[0]["subtype"]), (&json!("system"), &json!("init")));
    assert_eq!(lines[0]["model"], "demo-9");
    assert_eq!(lines[0]["claude_code_version"], concat!("demo-", env!("CARGO_PKG_VERSION")));
    let shape: Vec<(&str, &str, &str)> = lines[1..lines.len() - 1]
        .iter()
        .map(|line| {
            let block = &line["message"]["content"][0];
            let id = line["message"]["id"].as_str().unwrap_or_default();
            (id, block["type"].as_str().unwrap(), block["name"].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        shape,
        [
            ("msg_1", "thinking", ""),
            ("msg_1", "tool_use", "Read"),
            ("msg_1", "tool_use", "Bash"),
            ("", "tool_result", ""),
            ("", "tool_result", ""),
            ("msg_2", "text", ""),
            ("msg_2", "tool_use", "Write"),
            ("", "tool_result", ""),
            ("msg_3", "tool_use", "Edit"),
            ("", "tool_result", ""),
            ("msg_4", "tool_use", "Edit"),
            ("", "tool_result", ""),
            ("msg_5", "text", ""),
            ("msg_5", "text", ""),
        ]
    );
    let failed = &lines[5];
    let block = &failed["message"]["content"][0];
    assert_eq!(block["tool_use_id"], "call_2");
    assert_eq!((&block["is_error"], &block["content"]), (&json!(true), &json!("Exit code 3\npartial\n")));
    assert_eq!(failed["tool_use_result"], "Error: Exit code 3\npartial\n");
    assert_eq!(lines[8]["tool_use_result"]["type"], "create");
    assert_eq!(lines[10]["tool_use_result"]["originalFile"], "A\n");
    let result = lines.last().unwrap();
    assert_eq!((&result["type"], &result["subtype"]), (&json!("result"), &json!("success")));
    assert_eq!((&result["stop_reason"], &result["result"]), (&json!("end_turn"), &json!("Last words.")));
    assert_eq!(result["usage"], json!({"input_tokens": 10, "output_tokens": 2}));
    assert_eq!(result["modelUsage"], json!({"demo-9": {"inputTokens": 10, "outputTokens": 2, "costUSD": 0.5}}));
    assert_eq!((&result["total_cost_usd"], &result["num_turns"]), (&json!(0.5), &json!(5)));
    assert_eq!((stand.text("new.txt").unwrap(), stand.text("a").unwrap()), ("n\n".to_owned(), "B\n".to_owned()));
}

#[test]
fn a_stream_that_ends_badly_says_so() {
    let stand = Stand::new("models: [demo-1]\nsteps: [{say: x}, {stop: max_turn_requests}]");
    let output = stand.run("stream-json", &["go"]);
    assert_eq!(output.status.code(), Some(1));
    let result = lines(&output).pop().unwrap();
    assert_eq!((&result["subtype"], result.get("result")), (&json!("error_max_turns"), None));
    assert!(result.get("usage").is_none() && result.get("total_cost_usd").is_none());
    let output = stand.run("stream-json", &["go", "--model", "demo-2"]);
    assert_eq!(output.status.code(), Some(1));
    let result = lines(&output).pop().unwrap();
    assert_eq!((&result["is_error"], &result["api_error_status"]), (&json!(true), &json!(404)));
}

#[test]
fn as_text_only_the_last_words_are_printed() {
    let stand = Stand::new(ONE_WAY).file("a", "A\n");
    let output = stand.run("text", &["go"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Last words.\n");
    assert_eq!((stand.text("new.txt").unwrap(), stand.text("a").unwrap()), ("n\n".to_owned(), "B\n".to_owned()));
    let output = stand.run("text", &["--turn", "2"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "The script has no further turn.\n");
}

#[test]
fn a_wrong_script_is_refused_with_its_place() {
    let stand = Stand::new("steps:\n  - say: hi\n  - write: {path: a, txt: b}\n");
    for speak in ["acp", "stream-json", "text"] {
        let output = stand.run(speak, &[]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("x.demo.yaml:3:22: ") && message.contains("unknown key `txt`"), "{message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn the_manifests_are_read_and_the_example_command_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("harnesses");
    let manifest = |name: &str| -> Manifest {
        let text = fs::read_to_string(folder.join(name).with_extension("yaml")).unwrap();
        let manifest: Manifest = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(manifest.name, name);
        manifest
    };
    for (name, speak) in [("demo", "acp"), ("demo-stream", "stream-json"), ("demo-text", "text")] {
        let command = manifest(name).command;
        assert_eq!(command[..6], ["{self}", "demo-agent", "--script", "{script}", "--speak", speak], "{name}");
    }
    let stand = Stand::new("steps: []").file("README.md", "# A title\nmore\n");
    let command: Vec<String> =
        manifest("command").command.iter().map(|word| word.replace("{prompt}", "$(id) '")).collect();
    let output = Command::new(&command[0]).args(&command[1..]).current_dir(stand.work()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "asked: $(id) '\n# A title\n");
}

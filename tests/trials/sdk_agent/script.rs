//! Scripts for the agent made with the SDK, and the program that plays them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::live::Stand;

/// The kinds of options that the protocol knows.
pub const KINDS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

/// The agent, which is built if it is not there or older than its source.
pub fn program() -> PathBuf {
    static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
        let tests = std::env::current_exe().unwrap();
        let profile = tests.parent().and_then(Path::parent).unwrap();
        let program = profile.join("evals-sdk-agent");
        let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk-agent/src/main.rs");
        let current = || changed(&program).is_ok_and(|built| built >= changed(&source).unwrap());
        if !current() {
            let name = profile.file_name().unwrap().to_str().unwrap().replace("debug", "dev");
            let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = Command::new(cargo);
            build.args(["build", "--locked", "--quiet", "--package", "evals-sdk-agent", "--profile", &name]);
            build.arg("--target-dir").arg(profile.parent().unwrap());
            build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
        }
        assert!(current(), "{} is not there or old: `cargo build --package evals-sdk-agent`", program.display());
        program
    });
    BUILT.clone()
}

/// A project with that agent. It gets a short time to obey a cancel.
pub fn stand() -> Stand {
    Stand::new("acp", &[program().to_str().unwrap()], "timeouts: {grace: 2s}")
}

/// The turns of a case, each a script.
pub fn turns(scripts: &[Vec<Value>]) -> String {
    let prompts: Vec<String> = scripts.iter().map(|script| json!(script).to_string()).collect();
    format!("turns: {}", json!(prompts))
}

pub fn say(text: &str) -> Value {
    update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}))
}

pub fn call(id: &str, kind: &str) -> Value {
    let input = json!({"path": format!("{id}.txt")});
    update(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": id, "kind": kind, "rawInput": input}))
}

pub fn finish(id: &str, status: &str) -> Value {
    update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status}))
}

fn update(update: Value) -> Value {
    json!({"update": update})
}

pub fn ask(method: &str, params: Value, wait: &str) -> Value {
    json!({"ask": {"method": method, "params": params, "wait": wait}})
}

/// Asks for permission: the options' ids say nothing of their kinds, and their labels lie.
pub fn permission(call: Value, kinds: &[&str], wait: &str) -> Value {
    let label = |kind: &str| if kind.starts_with("allow") { "Do not allow" } else { "Allow" };
    let option = |(n, kind): (usize, &&str)| json!({"optionId": format!("o{n}"), "kind": kind, "name": label(kind)});
    let options: Vec<Value> = kinds.iter().enumerate().map(option).collect();
    ask("session/request_permission", json!({"toolCall": call, "options": options}), wait)
}

/// A call as a permission request names it, without a word about what it is.
pub fn named(id: &str) -> Value {
    json!({"toolCallId": id})
}

/// A call that the permission request itself describes.
pub fn described(id: &str) -> Value {
    json!({"toolCallId": id, "title": "Run it", "kind": "execute", "rawInput": {"command": "true"}})
}

pub fn end(reason: &str) -> Value {
    json!({"end": reason})
}

/// One request of each kind that is no permission request, and of each kind that nobody knows.
pub fn others(wait: &str) -> Vec<Value> {
    let form = json!({"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]});
    let of_terminal = |method: &str| ask(method, json!({"terminalId": "$TERMINAL 3"}), wait);
    vec![
        ask("fs/read_text_file", json!({"path": "$CWD/kept.txt"}), wait),
        ask("fs/read_text_file", json!({"path": "$CWD/kept.txt", "line": 2, "limit": 1}), wait),
        ask("fs/write_text_file", json!({"path": "$CWD/made.txt", "content": "made\n"}), wait),
        ask("terminal/create", json!({"command": "echo", "args": ["hello"], "outputByteLimit": 100}), wait),
        of_terminal("terminal/output"),
        of_terminal("terminal/wait_for_exit"),
        of_terminal("terminal/kill"),
        of_terminal("terminal/release"),
        ask("elicitation/create", json!({"mode": "form", "message": "Which color?", "requestedSchema": form}), wait),
        ask(
            "elicitation/create",
            json!({"mode": "url", "message": "Sign in", "url": "https://example.com/", "elicitationId": "e1"}),
            wait,
        ),
        ask("craft/drain", json!({}), wait),
        ask("_example.com/extension", json!({"some": [1, 2]}), wait),
        ask("session/new", json!({"cwd": "/", "mcpServers": []}), wait),
    ]
}

//! Agents whose JSON stream is mapped by a manifest, started for real against a scripted model: what the Trace says is
//! what the script said. The pinned agents of `tests/agents/`; one that is not installed is reported as not run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use serde_json::{Value, json};

use crate::installed::{self, Agent, Check};
use crate::live::{Stand, Trial};

/// What is known of an agent's stream.
struct Stream {
    agent: Agent,
    /// Its manifest, which is built in.
    harness: &'static str,
    /// The kinds of the calls by which it writes, runs, reads and edits.
    kinds: [&'static str; 4],
    /// Whether it tells what its model thinks.
    thinks: bool,
    /// Whether calls of one message share a step.
    together: bool,
    /// What it makes of a command that exits with 3.
    failing: (&'static str, Option<i64>),
    /// Input, output, cached and all tokens, as far as it tells them.
    usage: [Option<u64>; 4],
    /// True if it asks its model to go on after the output limit. The script's next answer is complete.
    asks_on: bool,
}

const NPM: Agent = Agent { name: "", part: "large/npm", pins: "large/package-lock.json", program: "" };

/// What most are like.
const USUAL: Stream = Stream {
    agent: NPM,
    harness: "",
    kinds: ["edit", "execute", "read", "edit"],
    thinks: true,
    together: true,
    failing: ("error", Some(3)),
    usage: [Some(920), Some(58), Some(40), Some(1018)],
    asks_on: false,
};

static STREAMS: [Stream; 6] = [
    Stream {
        agent: Agent { name: "Codex, its stream", program: "node_modules/.bin/codex", ..NPM },
        harness: "codex",
        // It reads in the shell.
        kinds: ["edit", "execute", "execute", "edit"],
        together: false,
        ..USUAL
    },
    Stream {
        agent: Agent { name: "Gemini CLI, its stream", program: "node_modules/.bin/gemini", ..NPM },
        harness: "gemini-stream",
        thinks: false,
        failing: ("ok", None),
        // How much of its output were thoughts it does not say.
        usage: [Some(920), None, Some(40), Some(1018)],
        ..USUAL
    },
    Stream {
        agent: Agent { name: "OpenCode, its stream", program: "node_modules/.bin/opencode", ..NPM },
        harness: "opencode-stream",
        ..USUAL
    },
    Stream {
        agent: Agent { name: "Qwen Code, its stream", program: "node_modules/.bin/qwen", ..NPM },
        harness: "qwen-stream",
        asks_on: true,
        ..USUAL
    },
    Stream {
        agent: Agent { name: "Copilot CLI, its stream", program: "node_modules/.bin/copilot", ..NPM },
        harness: "copilot-stream",
        usage: [None; 4],
        asks_on: true,
        ..USUAL
    },
    Stream {
        agent: Agent {
            name: "Mistral Vibe, its stream",
            part: "large/vibe",
            pins: "large/vibe.txt",
            program: "venv/bin/vibe",
        },
        harness: "vibe-stream",
        together: false,
        failing: ("error", None),
        usage: [None; 4],
        ..USUAL
    },
];

#[test]
#[ignore = "slow: starts installed agents"]
fn what_a_stream_tells_is_what_the_model_said() {
    let checks: Vec<Check> = STREAMS
        .iter()
        .flat_map(|stream| {
            let check = |what, run| Check { agent: &stream.agent, what, run };
            [
                check("it does what its model says", follows as fn(&Agent, &Path)),
                check("calls in parallel", parallel),
                check("a refused request is the service's failure", refused),
                check("a model that is cut off", cut_off),
            ]
        })
        .collect();
    installed::run("streams of coding agents", 3, 2, &checks.iter().collect::<Vec<_>>());
}

/// The agents that `docs/scripted-model.md` shows with the bundled example.
static SHOWN: [(Agent, &str); 2] = [
    (Agent { name: "Claude Code, the example", program: "node_modules/.bin/claude", ..NPM }, "claude-code-stream"),
    (Agent { name: "codex-acp, the example", program: "node_modules/.bin/codex-acp", ..NPM }, "codex-acp"),
];

#[test]
#[ignore = "slow: starts installed agents"]
fn the_bundled_example_passes_with_real_agents() {
    let check = |agent| Check { agent, what: "it passes", run: example };
    let checks: Vec<Check> = SHOWN.iter().map(|(agent, _)| check(agent)).collect();
    installed::run("the example with coding agents", 2, 2, &checks.iter().collect::<Vec<_>>());
}

fn example(agent: &Agent, program: &Path) {
    let harness = SHOWN.iter().find(|(shown, _)| shown.name == agent.name).unwrap().1;
    let stand = Stand::built_in(harness, program.parent().unwrap());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scripted-model/cases");
    for file in ["write-and-check.yaml", "write-and-check.model.yaml"] {
        stand.project.write(&format!("cases/{file}"), &std::fs::read_to_string(folder.join(file)).unwrap());
    }
    let ran = stand.run(&["--harness", harness]);
    let trial = stand.trial("write-and-check");
    assert_eq!((ran.code, &trial.result["verdict"]), (0, &json!("pass")), "{}\n{}", trial.result, trial.text);
}

fn play(agent: &Agent, program: &Path, script: &str, keys: &str, exits: &[i32]) -> (&'static Stream, Trial) {
    let stream = STREAMS.iter().find(|stream| stream.agent.name == agent.name).unwrap();
    let stand = Stand::built_in(stream.harness, program.parent().unwrap());
    stand.project.write("cases/a.model.yaml", script);
    stand.case("a", &format!("prompt: Do it.\nmodel: {{script: a.model.yaml}}\n{keys}"));
    let ran = stand.run(&["--keep-workspace", "never"]);
    let trial = stand.trial("a");
    assert!(exits.contains(&ran.code), "{}\n{}", trial.result, trial.text);
    for code in ["mapping_failed", "unmapped_line", "unknown_line", "stream_differs", "unknown_call"] {
        assert!(!trial.text.contains(&format!("\"code\":\"{code}\"")), "{}", trial.text);
    }
    let asked = stand.project.model_log(&stand.folder("a"));
    let problems: Vec<&Value> = asked.iter().filter_map(|exchange| exchange.get("problem")).collect();
    assert!(problems.is_empty(), "{problems:?}");
    (stream, trial)
}

fn follows(agent: &Agent, program: &Path) {
    let script = r#"
turns:
  - thinking: The file has to be there first.
    text: I write the file.
    calls: [{write: {path: hello.txt, text: "hello\n"}}]
    usage: {input: 100, output: 20, thought: 5, cache-read: 40}
  - {calls: [{execute: {command: "cat hello.txt && echo told"}}], usage: {input: 150, output: 10}}
  - {calls: [{read: {path: hello.txt}}], usage: {input: 200, output: 10}}
  - {calls: [{edit: {path: hello.txt, old: hello, new: hello you}}, {execute: {command: "echo broken >&2; exit 3"}}], usage: {input: 220, output: 10}}
  - {text: The file says hello., usage: {input: 250, output: 8}}
"#;
    let graders = "
graders:
  - tool-calls: {order: [{kind: edit, path: hello.txt, status: ok}, {kind: execute, command: 'cat hello.txt && echo told'}, {kind: edit, path: hello.txt, status: ok}], min: 5, max: 5}
  - diff: {created: [hello.txt], only: [hello.txt]}
  - files: {matches: {hello.txt: '^hello you\\n$'}}
  - output: {equals: The file says hello.}
  - stop: {reason: [end_turn]}";
    let (stream, trial) = play(agent, program, script, graders, &[0]);
    let calls = trial.of("tool_call");
    let kinds: Vec<&str> = calls.iter().map(|call| call["kind"].as_str().unwrap()).collect();
    assert_eq!((&kinds[..4], kinds[4]), (&stream.kinds[..], "execute"), "{}", trial.text);
    let results = trial.of("tool_result");
    let of = |call: &Value| *results.iter().find(|result| result["call"] == call["call"]).unwrap();
    assert_eq!(of(calls[1])["status"], "ok", "{}", trial.text);
    let output = of(calls[1])["output"].as_str().unwrap();
    assert!(output.contains("hello\ntold"), "{output}");
    let failed = of(calls[4]);
    assert_eq!((failed["status"].as_str().unwrap(), failed["exit_code"].as_i64()), stream.failing, "{failed}");
    assert!(failed["output"].as_str().unwrap().contains("broken"), "{failed}");
    assert_eq!(trial.messages(), ["I write the file.", "The file says hello."]);
    let thoughts: Vec<&Value> = trial.of("thought").iter().map(|thought| &thought["text"]).collect();
    assert_eq!(thoughts, vec!["The file has to be there first."; usize::from(stream.thinks)]);
    assert_eq!(trial.usage_of_agent(), stream.usage);
    // Some agents also send requests beside the conversation, whose tokens are not known.
    let metrics = &trial.result["metrics"];
    if let Some(known) = trial.usage_of_gateway() {
        assert_eq!(known, USUAL.usage);
        let told = ["input_tokens", "output_tokens", "cache_read_tokens", "total_tokens"];
        assert_eq!(told.map(|key| metrics[key].as_u64()), USUAL.usage, "{metrics}");
    }
}

fn parallel(agent: &Agent, program: &Path) {
    let script = "turns: [{calls: [{read: {path: a.txt}}, {read: {path: b.txt}}]}, {calls: [{read: {path: a.txt}}]}, {text: Read.}]";
    let files = "workspace: {files: {a.txt: one, b.txt: two}}";
    let (stream, trial) = play(agent, program, script, files, &[0]);
    let calls = trial.of("tool_call");
    let steps: Vec<u64> = calls.iter().map(|call| call["step"].as_u64().unwrap()).collect();
    // Others tell a call when it is made or when it is over, and not that it was one of several.
    assert_eq!(steps, if stream.together { [0, 0, 1] } else { [0, 1, 2] }, "{}", trial.text);
    assert!(calls.iter().all(|call| call["kind"] == stream.kinds[2]));
    assert!(trial.of("tool_result").iter().all(|result| result["status"] == "ok"), "{}", trial.text);
    assert_eq!(trial.messages(), ["Read."]);
}

fn refused(agent: &Agent, program: &Path) {
    let script = "turns: [{fault: {http-error: {status: 400, message: not like this}}}]";
    let (_, trial) = play(agent, program, script, "", &[3]);
    assert_eq!((&trial.result["verdict"], &trial.result["score"]), (&json!("errored"), &Value::Null));
    assert_eq!(trial.result["error"]["category"], "provider", "{}", trial.result);
    assert!(trial.of("tool_call").is_empty());
}

fn cut_off(agent: &Agent, program: &Path) {
    let script = "turns: [{text: It goes on and, stop: max-tokens}]";
    let (stream, trial) = play(agent, program, script, "", &[0, 1, 3]);
    let stop = *trial.of("stop").last().unwrap();
    // Some report a complete answer, but the gateway saw that it is not.
    let reason = if stream.asks_on { "end_turn" } else { "max_tokens" };
    assert_eq!(stop["reason"], reason, "{stop}");
    // Some ask again; then every answer has the text, and those that did not count are none.
    assert!(trial.messages().iter().all(|said| said.contains("It goes on and")), "{}", trial.text);
    assert!(stream.harness != "vibe-stream" || trial.messages() == ["It goes on and"], "{}", trial.text);
}

//! Coding agents as people install them, each against a scripted model on loopback: it says what they do, and the Trace
//! must show it. No key and no network is needed.

use std::path::Path;

use serde_json::{Value, json};

use crate::installed::{Agent, Check};
use crate::live::{Stand, Trial};
use crate::project::bubblewrap;

/// What is known of an agent. Another one is added to the table below.
struct Coder {
    agent: Agent,
    /// Its manifest, which is built in.
    harness: &'static str,
    /// Keys of a case in which it asks before it edits; nothing where it never does.
    asks: Option<&'static str>,
    /// Keys of a case in which it goes ahead.
    works: &'static str,
    /// Whether it tells the inputs of its calls, and the outputs.
    tells: bool,
    /// Whether it tells what its model thinks.
    thinks: bool,
    /// Whether it announces all calls of a message before it makes the first.
    together: bool,
    /// What it makes of a command that exits with 3.
    failing: &'static str,
    /// What it tells of what was used.
    usage: Usage,
}

/// What an agent tells of usage, where the model used 700 tokens in and 48 out in four calls.
enum Usage {
    /// Both figures.
    All,
    /// Their sum.
    Total,
    /// The last call's.
    Last,
    /// Nothing.
    None,
}

const NPM: Agent = Agent { name: "", part: "large/npm", pins: "large/package-lock.json", program: "" };

/// What most are like.
const USUAL: Coder = Coder {
    agent: NPM,
    harness: "",
    asks: Some(""),
    works: "",
    tells: true,
    thinks: true,
    together: true,
    failing: "error",
    usage: Usage::All,
};

static CODERS: [Coder; 10] = [
    Coder {
        agent: Agent { name: "Claude Code, its stream", program: "node_modules/.bin/claude", ..NPM },
        harness: "claude-code-stream",
        asks: None,
        ..USUAL
    },
    Coder {
        agent: Agent { name: "Claude Code, both ways", program: "node_modules/.bin/claude", ..NPM },
        harness: "claude-code-control",
        ..USUAL
    },
    Coder {
        agent: Agent { name: "claude-agent-acp", program: "node_modules/.bin/claude-agent-acp", ..NPM },
        harness: "claude-agent-acp",
        ..USUAL
    },
    Coder {
        agent: Agent { name: "codex-acp", program: "node_modules/.bin/codex-acp", ..NPM },
        harness: "codex-acp",
        // In the mode that is its own another model reviews each edit.
        asks: Some("env: {INITIAL_AGENT_MODE: read-only}"),
        works: "env: {INITIAL_AGENT_MODE: agent-full-access}",
        together: false,
        ..USUAL
    },
    Coder {
        agent: Agent { name: "Gemini CLI", program: "node_modules/.bin/gemini", ..NPM },
        harness: "gemini",
        tells: false,
        together: false,
        failing: "ok",
        usage: Usage::Total,
        ..USUAL
    },
    Coder {
        agent: Agent { name: "OpenCode", program: "node_modules/.bin/opencode", ..NPM },
        harness: "opencode",
        // Its own way is to ask for nothing.
        asks: Some(r#"env: {OPENCODE_PERMISSION: '{"edit": "ask"}'}"#),
        usage: Usage::Last,
        ..USUAL
    },
    Coder {
        agent: Agent { name: "Qwen Code", program: "node_modules/.bin/qwen", ..NPM },
        harness: "qwen",
        asks: None,
        ..USUAL
    },
    Coder {
        agent: Agent { name: "Copilot CLI", program: "node_modules/.bin/copilot", ..NPM },
        harness: "copilot",
        ..USUAL
    },
    Coder {
        agent: Agent { name: "Mistral Vibe", part: "large/vibe", pins: "large/vibe.txt", program: "venv/bin/vibe-acp" },
        harness: "vibe",
        // Edits are accepted in the mode that is its own.
        asks: None,
        failing: "ok",
        ..USUAL
    },
    Coder {
        agent: Agent {
            name: "fast-agent",
            part: "large/fast-agent",
            pins: "large/fast-agent.txt",
            program: "venv/bin/fast-agent-acp",
        },
        harness: "fast-agent",
        thinks: false,
        usage: Usage::None,
        ..USUAL
    },
];

/// What a coder is held to.
struct Task {
    what: &'static str,
    run: fn(&Agent, &Path),
    /// Whether it is for those that ask alone.
    asks: bool,
}

const TASKS: [Task; 7] = [
    Task { what: "it starts and works in bubblewrap", run: confined, asks: false },
    Task { what: "it does what its model says", run: follows, asks: false },
    Task { what: "a command that fails is told", run: fails, asks: false },
    Task { what: "calls in parallel share a step", run: parallel, asks: false },
    Task { what: "a refused request is the service's failure", run: refused, asks: false },
    Task { what: "it obeys a cancel", run: cancelled, asks: false },
    Task { what: "a rejected edit is not made", run: rejected, asks: true },
];

/// For one agent on each adapter over which agents ask.
const POLICIES: Task = Task { what: "each policy answers it, in three turns too", run: answered, asks: true };
const ASKERS: [&str; 2] = ["claude-code-control", "claude-agent-acp"];

/// For agents that offer their model a tool for questions, and hand the questions on.
const QUESTIONS: Task = Task { what: "its question is answered by the case", run: questioned, asks: true };

/// For agents on each kind of adapter, whose ids, times and folders are another each time.
const GOLDEN: Task = Task { what: "what it does otherwise is all that differs", run: differs, asks: false };
const COMPARED: [&str; 4] = ["claude-code-stream", "claude-agent-acp", "codex-acp", "opencode"];

/// The checks of all coders.
pub fn checks() -> Vec<Check> {
    let tasks = |coder: &'static Coder| {
        let more = ASKERS.contains(&coder.harness).then_some(POLICIES);
        let questions = ASKERS.contains(&coder.harness).then_some(QUESTIONS);
        let golden = COMPARED.contains(&coder.harness).then_some(GOLDEN);
        TASKS.into_iter().chain(more).chain(questions).chain(golden).filter(|task| !task.asks || coder.asks.is_some())
    };
    let of = |coder: &'static Coder| {
        tasks(coder).map(|task| Check { agent: &coder.agent, what: task.what, run: task.run }).collect::<Vec<_>>()
    };
    CODERS.iter().flat_map(of).collect()
}

fn coder(agent: &Agent) -> &'static Coder {
    CODERS.iter().find(|coder| coder.agent.name == agent.name).unwrap()
}

/// Its package, interpreter or virtual environment is all that it has beside its workspace and home.
fn confined(agent: &Agent, program: &Path) {
    if !bubblewrap() {
        return;
    }
    let keys = format!(
        "sandbox: bwrap\n{}\ngraders:\n  - files: {{exists: [hello.txt]}}\n  - stop: {{reason: [end_turn]}}",
        coder(agent).works
    );
    play(agent, program, &keys, FOLLOWS, 0);
}

/// Runs one case with this model.
fn play(agent: &Agent, program: &Path, keys: &str, script: &str, exit: i32) -> Trial {
    play_on(&Stand::built_in(coder(agent).harness, program.parent().unwrap()), keys, script, exit)
}

fn play_on(stand: &Stand, keys: &str, script: &str, exit: i32) -> Trial {
    stand.project.write("cases/a.model.yaml", script);
    stand.case("a", &format!("prompt: Do it.\nmodel: {{script: a.model.yaml}}\n{keys}"));
    let ran = stand.run(&["--keep-workspace", "never"]);
    let trial = stand.trial("a");
    let asked = stand.project.model_log(&stand.folder("a"));
    assert_eq!(ran.code, exit, "{}\n{}\n{asked:#?}", trial.result, trial.text);
    // Whatever the script wanted, the agent had a tool for it.
    let problems: Vec<&Value> = asked.iter().filter_map(|exchange| exchange.get("problem")).collect();
    assert!(problems.is_empty(), "{problems:?}");
    trial
}

const FOLLOWS: &str = r#"
turns:
  - thinking: The file has to be there first.
    text: I write the file.
    calls: [{write: {path: hello.txt, text: "hello\n"}}]
    usage: {input: 100, output: 20}
  - {calls: [{execute: {command: "cat hello.txt && echo told"}}], usage: {input: 150, output: 10}}
  - {calls: [{read: {path: hello.txt}}], usage: {input: 200, output: 10}}
  - {text: The file says hello., usage: {input: 250, output: 8}}
"#;

fn follows(agent: &Agent, program: &Path) {
    let coder = coder(agent);
    let command = if coder.tells { ", command: 'cat hello.txt'" } else { "" };
    let graders = format!(
        "graders:\n\
         \x20 - tool-calls: {{order: [{{kind: edit, path: hello.txt, status: ok}}, {{kind: execute{command}}}, \
           {{kind: read, path: hello.txt, status: ok}}], min: 3, max: 3}}\n\
         \x20 - files: {{equals: {{hello.txt: hello.expected}}}}\n\
         \x20 - diff: {{created: [hello.txt], only: [hello.txt]}}\n\
         \x20 - output: {{equals: The file says hello.}}\n\
         \x20 - stop: {{reason: [end_turn]}}"
    );
    let stand = Stand::built_in(coder.harness, program.parent().unwrap());
    stand.project.write("cases/hello.expected", "hello\n");
    let trial = play_on(&stand, &format!("{}\n{graders}", coder.works), FOLLOWS, 0);
    let kinds: Vec<(&Value, &Value)> =
        trial.of("tool_call").iter().map(|call| (&call["kind"], &call["step"])).collect();
    assert_eq!(kinds, [(&json!("edit"), &json!(0)), (&json!("execute"), &json!(1)), (&json!("read"), &json!(2))]);
    let thoughts = trial.of("thought");
    assert!(
        !coder.thinks || thoughts.iter().any(|it| it["text"].as_str().unwrap().contains("The file has to be there")),
        "{thoughts:?}"
    );
    let said = trial.messages();
    assert!(said[0].contains("I write the file.") && said.last() == Some(&"The file says hello."), "{said:?}");
    assert_eq!(trial.of("tool_result")[1]["status"], "ok", "{}", trial.text);
    if coder.tells {
        let output = trial.of("tool_result")[1]["output"].as_str().unwrap_or_default().to_owned();
        assert!(output.contains("hello\ntold"), "{output}");
    }
    let told = trial.usage_of_agent();
    match coder.usage {
        Usage::None => assert_eq!(told, [None; 4]),
        Usage::All => assert_eq!(told[..2], [Some(700), Some(48)]),
        Usage::Total => assert_eq!((told[3], told[0]), (Some(748), None)),
        Usage::Last => assert_eq!(told[3], Some(258)),
    }
    // Some agents also send requests beside the conversation, whose tokens are not known.
    let metrics = &trial.result["metrics"];
    if let Some(known) = trial.usage_of_gateway() {
        assert_eq!((known[0], known[1], known[3]), (Some(700), Some(48), Some(748)));
        assert_eq!((&metrics["input_tokens"], &metrics["output_tokens"]), (&json!(700), &json!(48)), "{metrics}");
    }
}

fn fails(agent: &Agent, program: &Path) {
    let coder = coder(agent);
    let script = "turns: [{calls: [{execute: {command: 'echo broken >&2; exit 3'}}]}, {text: It failed.}]";
    let trial = play(agent, program, coder.works, script, 0);
    let results = trial.of("tool_result");
    let told: Vec<&Value> = results.iter().map(|result| &result["status"]).collect();
    assert_eq!(told, [coder.failing], "{results:?}");
    // Where it tells an exit code, that is the command's.
    assert!(results[0]["exit_code"].is_null() || results[0]["exit_code"] == 3, "{results:?}");
    assert_eq!(trial.messages().last(), Some(&"It failed."));
}

fn parallel(agent: &Agent, program: &Path) {
    let keys = format!("{}\nworkspace: {{files: {{a.txt: one, b.txt: two}}}}", coder(agent).works);
    let script = "turns: [{calls: [{read: {path: a.txt}}, {read: {path: b.txt}}]}, {calls: [{read: {path: a.txt}}]}, {text: Read.}]";
    let trial = play(agent, program, &keys, script, 0);
    let calls: Vec<_> = trial.of("tool_call").iter().map(|call| (call["kind"].clone(), call["step"].clone())).collect();
    assert!(calls.len() == 3 && calls.iter().all(|(kind, _)| kind == "read"), "{calls:?}");
    // Others make one call after the other, and it is a matter of time what they announce first.
    let together = [0, 0, 1].iter().zip(&calls).all(|(expected, (_, step))| step == expected);
    assert!(together || !coder(agent).together && calls[1].1 != calls[2].1, "{calls:?}");
}

fn refused(agent: &Agent, program: &Path) {
    let script = "turns: [{fault: {http-error: {status: 400, message: not like this}}}]";
    let trial = play(agent, program, coder(agent).works, script, 3);
    assert_eq!(trial.result["verdict"], "errored");
    assert_eq!(trial.result["error"]["category"], "provider", "{}", trial.result);
    assert!(trial.result["score"].is_null() && trial.of("tool_call").is_empty());
}

fn cancelled(agent: &Agent, program: &Path) {
    let graders = "limits: {tool-calls: 1, time: 100s}\ngraders: [{stop: {reason: [max_turns]}}]";
    let script =
        "turns: [{calls: [{execute: {command: echo begun}}]}, {calls: [{execute: {command: tail -f /dev/null}}]}]";
    let trial = play(agent, program, &format!("{}\n{graders}", coder(agent).works), script, 1);
    // The engine ended it at the second call, and whatever that had begun is gone.
    assert_eq!(trial.of("stop")[0]["host"], true);
    let statuses: Vec<&Value> = trial.of("tool_result").iter().map(|result| &result["status"]).collect();
    // Some say themselves what became of the call that was cut.
    assert!(statuses.len() == 2 && statuses[0] == "ok" && statuses[1] != "ok", "{statuses:?}");
    assert!(trial.result["metrics"]["duration_ms"].as_u64().unwrap() < 80_000, "{}", trial.result);
}

fn rejected(agent: &Agent, program: &Path) {
    let coder = coder(agent);
    let graders = "graders:\n  - permissions: {rejected: [{kind: edit}], respected: true}\n  - diff: {none: true}";
    let keys = format!("{}\ninteraction: auto-reject\n{graders}", coder.asks.unwrap());
    let script = "turns: [{calls: [{write: {path: hello.txt, text: hello}}]}, {text: Then not.}]";
    let trial = play(agent, program, &keys, script, 0);
    assert_eq!(trial.answers(), ["rejected auto-reject - denied"]);
}

fn answered(agent: &Agent, program: &Path) {
    let script = "turns: [{calls: [{write: {path: hello.txt, text: hello}}]}, {text: Then not.}]";
    let untouched = "graders: [{diff: {none: true}}]";
    for (policy, told) in [
        ("{use: read-only}", "rejected scripted - "),
        ("manual", "rejected manual"),
        (
            "{scripted: {rules: [{name: no-text, when: {path: '*.txt'}, answer: reject-once}]}}",
            "rejected scripted no-text",
        ),
    ] {
        let trial = play(agent, program, &format!("interaction: {policy}\n{untouched}"), script, 0);
        let answers = trial.answers();
        assert!(answers.len() == 1 && answers[0].starts_with(told) && answers[0].ends_with("denied"), "{answers:?}");
    }
    // One session, in which the second request is another one than the first.
    let stand = Stand::built_in(coder(agent).harness, program.parent().unwrap());
    let keys = "turns: [Write a., Write b., What is there?]
interaction: {scripted: {rules: [{name: b, when: {path: b.txt}, answer: allow-once}], default: reject}}
graders:
  - permissions: {rejected: [{path: a.txt, policy: scripted}], allowed: [{path: b.txt, rule: b}], respected: true}
  - diff: {created: [b.txt], only: [b.txt]}
  - output: {equals: Only b.}";
    stand.project.write(
        "cases/a.model.yaml",
        "turns:
  - {calls: [{write: {path: a.txt, text: a}}]}
  - {text: Not a.}
  - {calls: [{write: {path: b.txt, text: b}}]}
  - {text: There is b.}
  - {text: Only b.}
",
    );
    stand.case("a", &format!("model: {{script: a.model.yaml}}\n{keys}"));
    let ran = stand.run(&["--keep-workspace", "never"]);
    let trial = stand.trial("a");
    assert_eq!(ran.code, 0, "{}\n{}", trial.result, trial.text);
    assert_eq!(trial.of("message").iter().filter(|message| message["role"] == "user").count(), 3);
}

/// The next turn depends on the answer, which the agent reports to its model as the result of the call.
fn questioned(agent: &Agent, program: &Path) {
    let script = "
turns:
  - calls: [{ask: {question: 'Which database?', options: [SQLite, Postgres]}}]
  - either:
      - {when: {result: Postgres}, text: Then Postgres.}
      - {when: {result: SQLite}, text: Then SQLite.}
";
    let keys = "answers: [{question: database, answer: Postgres}]\ngraders: [{output: {equals: Then Postgres.}}]";
    play(agent, program, keys, script, 0);
}

/// Accepts what it does, and then has its model make one call more.
fn differs(agent: &Agent, program: &Path) {
    let coder = coder(agent);
    let stand = Stand::built_in(coder.harness, program.parent().unwrap());
    let run = |script: &str, args: &[&str]| {
        stand.project.write("cases/a.model.yaml", script);
        let keys =
            format!("prompt: Do it.\nmodel: {{script: a.model.yaml}}\nsnapshot: {{text: full}}\n{}", coder.works);
        stand.case("a", &keys);
        stand.run(&[args, &["--keep-workspace", "never"]].concat())
    };
    run(FOLLOWS, &["--snapshot", "update"]).exits(0);
    let file = format!("cases/a.snapshots/{}.snap", coder.harness);
    run(FOLLOWS, &["--snapshot", "check", "--trials", "2"]).exits(0);
    // Its own read comes between a step before and one after it that are as accepted.
    let more = "  - {calls: [{execute: {command: 'printf more'}}]}\n  - {calls: [{read:";
    run(&FOLLOWS.replace("  - {calls: [{read:", more), &["--snapshot", "check"]).exits(1);
    let told = stand.project.evals(&["snapshot", "check", "--format", "json"]).exits(1).json();
    let differing = told["snapshots"][0]["differing"].as_array().unwrap();
    let accepted = stand.project.read(&file);
    assert_eq!(differing.len(), 1, "{told}\n{accepted}");
    let differences = differing[0]["differences"].as_array().unwrap();
    assert_eq!(differences.len(), 1, "{told}\n{accepted}");
    assert_eq!((&differences[0]["sign"], &differences[0]["place"]), (&json!("added"), &json!("step 3")), "{told}");
    assert!(differences[0]["what"].as_str().unwrap().starts_with("execute"), "{told}");
    assert!(differences[0]["lines"].to_string().contains("printf more"), "{told}");
}

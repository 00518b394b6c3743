//! Coding agents whose conversations with a model are recorded, and played again in another folder and another home: the
//! tools run for real, and the trace is the same. The recorded service is a scripted model.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::installed::{self, Agent, Check};
use crate::live::Stand;
use crate::project::{Project, lines};

/// An agent whose sessions are recorded. Another one is added to the table below.
struct Recorded {
    agent: Agent,
    /// Its manifest, which is built in.
    harness: &'static str,
    /// The model to ask for. Agents whose settings name their model need one.
    model: Option<&'static str>,
    /// True if it makes requests outside the conversation that it does not wait for (manifest key `gateway.aside`): a
    /// recording has them or not, and so has a replay.
    aside: bool,
}

const NPM: Agent = Agent { name: "", part: "large/npm", pins: "large/package-lock.json", program: "" };

const USUAL: Recorded = Recorded { agent: NPM, harness: "", model: None, aside: false };

/// A model that the agent has no list of.
const ANY: Option<&str> = Some("scripted-1");

static RECORDED: [Recorded; 16] = [
    Recorded {
        agent: Agent { name: "Claude Code, its stream", program: "node_modules/.bin/claude", ..NPM },
        harness: "claude-code-stream",
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Claude Code, both ways", program: "node_modules/.bin/claude", ..NPM },
        harness: "claude-code-control",
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "claude-agent-acp", program: "node_modules/.bin/claude-agent-acp", ..NPM },
        harness: "claude-agent-acp",
        aside: true,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Codex, its stream", program: "node_modules/.bin/codex", ..NPM },
        harness: "codex",
        // To models that it does not know it offers no tool that changes files.
        model: Some("gpt-5.5"),
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "codex-acp", program: "node_modules/.bin/codex-acp", ..NPM },
        harness: "codex-acp",
        model: Some("gpt-5.5"),
        aside: true,
    },
    Recorded {
        agent: Agent { name: "Gemini CLI, its stream", program: "node_modules/.bin/gemini", ..NPM },
        harness: "gemini-stream",
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Gemini CLI", program: "node_modules/.bin/gemini", ..NPM },
        harness: "gemini",
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "OpenCode, its stream", program: "node_modules/.bin/opencode", ..NPM },
        harness: "opencode-stream",
        model: ANY,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "OpenCode", program: "node_modules/.bin/opencode", ..NPM },
        harness: "opencode",
        model: ANY,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Qwen Code, its stream", program: "node_modules/.bin/qwen", ..NPM },
        harness: "qwen-stream",
        aside: true,
        model: ANY,
    },
    Recorded {
        agent: Agent { name: "Qwen Code", program: "node_modules/.bin/qwen", ..NPM },
        harness: "qwen",
        aside: true,
        model: ANY,
    },
    Recorded {
        agent: Agent { name: "Copilot CLI, its stream", program: "node_modules/.bin/copilot", ..NPM },
        harness: "copilot-stream",
        model: ANY,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Copilot CLI", program: "node_modules/.bin/copilot", ..NPM },
        harness: "copilot",
        model: ANY,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Mistral Vibe", part: "large/vibe", pins: "large/vibe.txt", program: "venv/bin/vibe-acp" },
        harness: "vibe",
        model: ANY,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Pi", program: "node_modules/.bin/pi", ..NPM },
        harness: "pi",
        model: ANY,
        ..USUAL
    },
    Recorded {
        agent: Agent { name: "Cline", program: "node_modules/.bin/cline", ..NPM },
        harness: "cline-stream",
        model: ANY,
        ..USUAL
    },
];

#[test]
#[ignore = "slow: starts installed agents"]
fn a_recorded_agent_does_the_same_again() {
    let check = |recorded: &'static Recorded| Check {
        agent: &recorded.agent,
        what: "recorded and played twice",
        run: recorded_and_played,
    };
    let checks: Vec<Check> = RECORDED.iter().map(check).collect();
    installed::run("recorded coding agents", 3, 3, &checks.iter().collect::<Vec<_>>());
}

/// A full task: think, write, run, read, fail, answer. The failing command takes a moment, because Qwen Code sometimes
/// loses the output of a command that ends at once.
const SCRIPT: &str = r#"
turns:
  - thinking: The file has to be there first.
    text: I write the file.
    calls: [{write: {path: answer.txt, text: "42\n"}}]
    usage: {input: 100, output: 20, thought: 5}
  - {text: Now I look at it., calls: [{execute: {command: cat answer.txt}}], usage: {input: 150, output: 10}}
  - {calls: [{read: {path: answer.txt}}], usage: {input: 200, output: 10}}
  - {calls: [{execute: {command: "echo broken >&2; sleep 0.3; exit 3"}}], usage: {input: 250, output: 8}}
  - {text: answer.txt holds 42., usage: {input: 300, output: 12}}
"#;

const CASE: &str = r#"prompt: Write 42 into answer.txt, check it, and say what it holds.
graders:
  - output: {contains: "42"}
  - diff: {created: [answer.txt], only: [answer.txt]}
  - files: {matches: {answer.txt: "^42\n$"}}
"#;

/// The tokens that the model said it used, by the names of the metrics.
const USED: [(&str, u64); 2] = [("input_tokens", 1000), ("output_tokens", 60)];

/// A scripted model in a project of its own. It is ended when it is dropped.
pub struct Service(Child, String, #[allow(dead_code, reason = "its folder is removed with it")] Project);

impl Service {
    pub fn start(script: &str) -> Self {
        let project = Project::new();
        project.write("service.yaml", script);
        let mut child = project.command(&["gateway", "script", "service.yaml"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().to_owned(), project)
    }

    pub fn url(&self) -> &str {
        &self.1
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn recorded_and_played(agent: &Agent, program: &Path) {
    let recorded = RECORDED.iter().find(|recorded| recorded.agent.name == agent.name).unwrap();
    let arm = recorded.model.unwrap_or("default");
    let cassette = match recorded.model {
        Some(model) => format!("cases/a.cassettes/{}@{model}.jsonl", recorded.harness),
        None => format!("cases/a.cassettes/{}.jsonl", recorded.harness),
    };
    let mut args = vec!["--interaction", "auto-approve"];
    args.extend(recorded.model.iter().flat_map(|model| ["--model", model]));

    let mut first = Stand::built_in(recorded.harness, program.parent().unwrap());
    first.case("a", CASE);
    let service = Service::start(SCRIPT);
    point(&mut first.project, service.url());
    let ran = first.run(&[&args[..], &["--gateway", "record"]].concat());
    let trial = first.trial_of("a", arm);
    assert_eq!((ran.code, &trial.result["verdict"]), (0, &"pass".into()), "{}\n{}", trial.result, ran.out);
    used_what_the_model_said(&trial.result, &lines(&first.project.of_trial(&first.folder_of("a", arm), "llm.jsonl")));
    drop(service);

    // The original traces differ in nothing but the ids of calls, and so do the traces of two replays.
    let wanted = normal(&trial.normalised());
    for _ in 0..2 {
        let mut second = Stand::built_in(recorded.harness, program.parent().unwrap());
        second.case("a", CASE);
        second.project.write(&cassette, &first.project.read(&cassette));
        copy_bodies(&first.project, &second.project, cassette.trim_end_matches(".jsonl"));
        // Nothing answers there.
        point(&mut second.project, "http://127.0.0.1:9");
        let ran = second.run(&[&args[..], &["--gateway", "replay"]].concat());
        let played = second.trial_of("a", arm);
        assert_eq!((ran.code, &played.result["verdict"]), (0, &"pass".into()), "{}\n{}", played.result, ran.out);
        let left = played.result["warnings"].to_string().contains("cassette_left");
        assert!(!left || recorded.aside, "{}", played.result["warnings"]);
        same_lines(&normal(&played.normalised()), &wanted);
        let log = lines(&second.project.of_trial(&second.folder_of("a", arm), "llm.jsonl"));
        assert!(log.iter().all(|line| line["source"] == "cassette"), "{log:?}");
        used_what_the_model_said(&played.result, &log);
    }
}

fn point(project: &mut Project, url: &str) {
    project.env("EVALS_UPSTREAM_ANTHROPIC", url);
    project.env("EVALS_UPSTREAM_OPENAI", &format!("{url}/v1"));
    project.env("EVALS_UPSTREAM_GEMINI", url);
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"] {
        project.env(name, "sk-the-user's-own-key");
    }
}

fn copy_bodies(from: &Project, to: &Project, stem: &str) {
    let folder = format!("{stem}.bodies");
    for entry in std::fs::read_dir(from.path(&folder)).into_iter().flatten().flatten() {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        to.write(&name, &from.read(&name));
    }
}

/// Fails if the tokens that the gateway saw, or a figure of the trial, are not those that the model said. Requests beside
/// the conversation are answered by the scripted model without figures.
fn used_what_the_model_said(result: &Value, log: &[Value]) {
    for (metric, wanted) in USED {
        let seen: u64 = log.iter().filter_map(|line| line["usage"][metric].as_u64()).sum();
        assert_eq!(seen, wanted, "{metric}: {log:?}");
        let told = &result["metrics"][metric];
        assert!(told.is_null() || *told == wanted, "{metric}: {}", result["metrics"]);
    }
}

/// Fails at the first line that differs.
#[track_caller]
fn same_lines(now: &str, then: &str) {
    for (now, then) in now.lines().zip(then.lines()) {
        assert_eq!(now, then, "the replay differs from the recording");
    }
    assert_eq!(now.lines().count(), then.lines().count(), "a trace is longer: {now}\n{then}");
}

/// Returns a trace with its ids numbered by their first use, and without the numbers that belong to one run. Its usage
/// and the exit of the agent are left out, as in a snapshot: bridges send the one concurrently with other updates, and an
/// agent that is told to end may do so before it is killed.
fn normal(trace: &str) -> String {
    let is_usage = |line: &&str| line.contains(r#","type":"usage","#);
    let trace: String = trace.lines().filter(|line| !is_usage(line)).flat_map(|line| [line, "\n"]).collect();
    let numbers = [
        r"(?:toolu|call|chatcmpl|fc|msg|resp|rs)[-_][A-Za-z0-9_-]+",
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        r"Chunk ID: \w+|Wall time: [\d.]+ seconds|(?:Process Group PGID|Background PIDs): [\d, ]+",
        // The number of a line, which depends on the order of the agent's own notices, and times.
        r#""(?:seq|duration_ms|start_ms|took_ms|line)":\d+,?"#,
        r#""(?:exit|agent)":\{[^}]*\},?"#,
        // Titles with a shortened path.
        r#""title":"[^"]*(?:tmp/|evals-run|/trial-)[^"]*""#,
        r"/tmp/[^\s\x22']+",
    ];
    let pattern = regex::Regex::new(&numbers.join("|")).unwrap();
    let mut known: Vec<String> = Vec::new();
    let text = pattern.replace_all(&trace, |found: &regex::Captures<'_>| {
        let text = found[0].to_owned();
        // The version of an agent is unknown if its program takes too long to tell it, and the field is absent then.
        if text.starts_with("\"exit") || text.starts_with("\"agent") {
            return String::new();
        }
        if text.starts_with("Chunk") || text.starts_with("Wall") || text.contains("PID") || text.starts_with('"') {
            return "-".to_owned();
        }
        let at = known.iter().position(|it| *it == text).unwrap_or_else(|| {
            known.push(text);
            known.len() - 1
        });
        format!("ID{at}")
    });
    text.into_owned()
}

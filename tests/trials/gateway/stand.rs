//! A project with the small agent, whose model is behind the gateway, and a scripted model as the service.

use serde_json::Value;

use super::client::Gateway;
use crate::project::{Project, Ran, lines};

pub const AGENT: &str = include_str!("agent.py");

/// The manifest of the small agent. It names a placeholder where a key belongs.
pub const MANIFEST: &str = r#"
adapter: claude-code-stream
command: [python3, AGENT, "{prompt}"]
model: {via: env, env: AGENT_MODEL}
env: {pass: [AGENT_API_KEY, AGENT_MODE, AGENT_TELLS], secret: [AGENT_API_KEY]}
requires-env: [AGENT_API_KEY]
gateway:
  api: anthropic
  env: {AGENT_URL: "{gateway}", AGENT_API_KEY: "{key}"}
"#;

/// What the service answers: it writes a file, reads it, and says what it holds.
pub const ANSWERS: &str = "\
turns:
  - thinking: A file first.
    text: I write it.
    calls:
      - write: {path: a.txt, text: \"forty-two\\n\"}
      - execute: {command: cat a.txt; pwd}
    usage: {input: 100, output: 20}
  - calls: [{execute: {command: exit 3}}]
    usage: {input: 110, output: 10}
  - text: a.txt holds forty-two.
    usage: {input: 120, output: 12}
";

/// The key of the user.
pub const KEY: &str = "sk-the-user's-own-key";

/// The trial of the only cell.
pub const TRIAL: &str = "a/small/default/1";

/// The cassette of the only cell.
pub const CASSETTE: &str = "cases/a.cassettes/small.jsonl";

/// A project, and the service that its agent reaches.
pub struct Stand {
    pub project: Project,
    pub service: Gateway,
}

impl Stand {
    /// Makes a stand whose service plays a script.
    pub fn with(answers: &str, keys: &str) -> Self {
        let service = Gateway::play(answers);
        let mut project = project(keys);
        project.env("EVALS_UPSTREAM_ANTHROPIC", &service.base_url());
        project.env("ANTHROPIC_API_KEY", KEY);
        Self { project, service }
    }

    /// Runs the cases with these arguments, labelled by their gateway mode unless they have a label.
    pub fn run(&self, mode: &str, more: &[&str]) -> Ran {
        let label: &[&str] = if more.contains(&"--label") { &[] } else { &["--label", mode] };
        self.project.evals(&[&["run", "--gateway", mode], label, more].concat())
    }

    /// Returns a file of the trial in the run with this label.
    #[track_caller]
    pub fn of(&self, label: &str, file: &str) -> String {
        self.project.read(&format!("{}/trials/{TRIAL}/{file}", self.project.run_named(label)))
    }

    /// Returns the exchanges of the trial in the run with this label.
    #[track_caller]
    pub fn exchanges(&self, label: &str) -> Vec<Value> {
        lines(&self.of(label, "llm.jsonl"))
    }

    /// Returns the result of the trial in the run with this label.
    #[track_caller]
    pub fn result(&self, label: &str) -> Value {
        serde_json::from_str(&self.of(label, "result.json")).unwrap()
    }

    /// Returns the trace of the trial in the run with this label.
    #[track_caller]
    pub fn trace(&self, label: &str) -> Vec<Value> {
        lines(&self.of(label, "trace.jsonl"))
    }
}

/// Makes a project with the small agent and one case.
pub fn project(keys: &str) -> Project {
    let mut project = Project::new();
    project.write("agent.py", AGENT);
    let agent = project.path("agent.py").canonicalize().unwrap();
    project.harness("small", &MANIFEST.replace("AGENT,", &format!("{},", agent.display())));
    project.case("a", &format!("harnesses: [small]\n{keys}"), "");
    project.env("AGENT_TELLS", "1");
    project
}

/// Returns a trace without what differs between two runs: times, paths and ids.
pub fn normal(trace: &[Value]) -> String {
    let cwd = trace[0]["cwd"].as_str().unwrap().to_owned();
    let mut text = String::new();
    for event in trace {
        let mut event = event.clone();
        for key in ["at_ms", "started", "start_ms"] {
            event.as_object_mut().unwrap().remove(key);
        }
        text.push_str(&event.to_string().replace(&cwd, "WORKSPACE"));
        text.push('\n');
    }
    let id = regex::Regex::new(r"toolu_\w+").unwrap();
    let mut ids: Vec<String> = Vec::new();
    id.replace_all(&text, |found: &regex::Captures<'_>| {
        let id = found[0].to_owned();
        let at = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
            ids.push(id);
            ids.len() - 1
        });
        format!("ID{at}")
    })
    .into_owned()
}

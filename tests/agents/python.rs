//! The example agents of the protocol's Python SDK: one echoes, the other repeats what it was sent and keeps a log.

use std::path::Path;

use serde_json::json;

use crate::installed::{Agent, Check};
use crate::live::Stand;

static ECHO: Agent = Agent {
    name: "Python SDK 0.12.1, echo_agent.py",
    part: "small/python",
    pins: "small/python.txt",
    program: "source/examples/echo_agent.py",
};

static EXAMPLE: Agent = Agent { name: "Python SDK 0.12.1, agent.py", program: "source/examples/agent.py", ..ECHO };

pub static CHECKS: &[Check] = &[
    Check { agent: &ECHO, what: "it echoes, turn by turn", run: echoes },
    Check { agent: &ECHO, what: "what is not ASCII comes back as it was", run: echoes_everything },
    Check { agent: &EXAMPLE, what: "it repeats what it was sent", run: repeats },
];

fn stand(agent: &Agent, program: &Path) -> Stand {
    let python = agent.file("venv/bin/python");
    Stand::new("acp", &[python.to_str().unwrap(), program.to_str().unwrap()], "")
}

fn echoes(agent: &Agent, program: &Path) {
    let stand = stand(agent, program);
    stand.case("a", "turns: [first, second, third]\ngraders: [{output: {equals: third}}, {tool-calls: {none: true}}]");
    stand.run(&[]).exits(0);
    let trial = stand.trial("a");
    assert_eq!(trial.result["stop"]["exit"], json!({"code": 0, "signal": null}), "{}", trial.result);
    insta::assert_snapshot!("python_echoes", trial.normalised());
}

fn echoes_everything(agent: &Agent, program: &Path) {
    let stand = stand(agent, program);
    // A line separator that is no line end in JSON, a surrogate pair, a right-to-left mark, quotes and a long line.
    let odd = format!("Grüße 👋🏽 \u{2028}\u{200f} \"quoted\" \\ back\n\ttabbed {}", "x".repeat(200_000));
    // In YAML that separator is a line end, unless it is escaped.
    stand.case("a", &format!("prompt: {}", json!(odd).to_string().replace('\u{2028}', "\\u2028")));
    stand.run(&[]).exits(0);
    assert!(stand.trial("a").messages() == [odd], "{:.300}", stand.trial("a").messages().concat());
}

fn repeats(agent: &Agent, program: &Path) {
    let stand = stand(agent, program);
    stand.case("a", "turns: [hello, again]");
    stand.run(&[]).exits(0);
    let trial = stand.trial("a");
    assert_eq!(trial.trace[0]["agent"], json!({"name": "example-agent", "version": "0.1.0"}));
    assert_eq!(trial.messages(), ["Client sent:hello", "Client sent:again"]);
    let log: Vec<_> = trial.wire.iter().filter(|line| line["dir"] == "stderr").collect();
    let prompts = log.iter().filter(|line| line["line"].as_str().unwrap().contains("Received prompt request"));
    assert_eq!(prompts.count(), 2, "{log:?}");
}

//! Every trial records the version of its agent: as the agent reports it, or as its program prints it, once per run.

use serde_json::{Value, json};

use crate::project::Project;

/// Makes an agent that reports no version, whose program prints its version and counts the calls.
fn project(version: &str, keys: &str) -> Project {
    let project = Project::new();
    let log = project.path("asked.txt").display().to_string();
    let agent = "printf '%s\\n' '{\"say\": \"42\"}'\n";
    project.write(
        "agent.sh",
        &format!("if [ \"$1\" = --version ]; then echo \"$HOME $KEY\" >> '{log}'; {version}; exit; fi\n{agent}"),
    );
    let at = project.path("agent.sh").display().to_string();
    project.harness("agent", &format!(
        "adapter: json-stream\ncommand: [sh, '{at}', '{{prompt}}']\nversion: [sh, '{at}', --version]\nenv: {{set: {{KEY: of-the-manifest}}}}\nstream:\n  - {{when: has(line.say), emit: [{{message: {{text: line.say}}}}, {{stop: {{reason: end_turn}}}}]}}\n{keys}"
    ));
    for case in ["a", "b"] {
        project.case(case, "trials: 2", "");
    }
    project
}

fn header(project: &Project, trial: &str) -> Value {
    project.trace(trial).remove(0)
}

#[test]
fn a_stream_s_version_is_asked_once_and_stands_in_every_header() {
    let project = project("echo 'agent-cli v0.169.0 (abc)'", "");
    project.evals(&["run", "--harness", "agent", "--jobs", "4", "--keep-workspace", "never"]).exits(0);
    let asked = project.read("asked.txt");
    assert_eq!(asked.lines().count(), 1, "{asked}");
    assert!(asked.ends_with(" of-the-manifest\n"), "{asked}");
    // In a home of its own, which no trial has.
    assert!(!asked.starts_with(&project.home().display().to_string()), "{asked}");
    for trial in ["a/agent/default/1", "a/agent/default/2", "b/agent/default/1", "b/agent/default/2"] {
        assert_eq!(header(&project, trial)["agent"], json!({"name": "agent", "version": "0.169.0"}));
        assert_eq!(project.result(trial)["agent"]["version"], "0.169.0");
    }
    // The wire log alone gives the same trace.
    let text = project.of_trial("a/agent/default/1", "trace.jsonl");
    let wire = format!("{}/trials/a/agent/default/1/wire.jsonl", project.run_folder());
    assert_eq!(project.evals(&["import", "--harness", "agent", &wire]).exits(0).out, text);
    assert!(project.read(&wire).contains("agent_version"));
}

#[test]
fn what_the_agent_says_of_itself_counts_before_what_its_program_prints() {
    for (says, name, version) in
        [(r#"{agent: "'Agent'", version: "'2.0'"}"#, "Agent", "2.0"), (r#"{agent: "'Agent'"}"#, "Agent", "1.0")]
    {
        let project = project("echo 1.0", "");
        let manifest = project.read("harnesses/agent.yaml").replace("emit: [", &format!("emit: [{{header: {says}}}, "));
        project.write("harnesses/agent.yaml", &manifest);
        project.evals(&["run", "--harness", "agent", "--case", "a", "--keep-workspace", "never"]).exits(0);
        assert_eq!(header(&project, "a/agent/default/1")["agent"], json!({"name": name, "version": version}));
    }
}

#[test]
fn a_version_that_is_not_to_be_had_is_unknown() {
    for version in ["exit 3", "echo 1.2.3; exit 1", "echo hello", "false"] {
        let project = project(version, "");
        project.evals(&["run", "--harness", "agent", "--case", "a", "--keep-workspace", "never"]).exits(0);
        let header = header(&project, "a/agent/default/1");
        assert_eq!(header.get("agent"), None, "{version}: {header}");
        assert!(!project.of_trial("a/agent/default/1", "wire.jsonl").contains("agent_version"));
    }
}

#[test]
fn a_version_other_than_the_verified_one_is_a_note() {
    let verified =
        "verified: [{version: '0.160', date: '2026-01-01', by: a}, {version: 0.168.0, date: '2026-01-02', by: b}]";
    for (printed, says) in
        [("0.169.0", true), ("0.160", false), ("0.168.0-beta", false), ("0.1681.0", true), ("0.16", true)]
    {
        let project = project(&format!("echo {printed}"), verified);
        let ran = project.evals(&["run", "--harness", "agent", "--case", "a", "--keep-workspace", "never"]).exits(0);
        let note = format!("agent: the agent is version {printed}, its manifest was verified with 0.168.0");
        assert_eq!(ran.out.contains(&note) || ran.err.contains(&note), says, "{printed}: {ran:?}");
    }
}

#[test]
fn a_comparison_does_not_call_an_unknown_version_the_same() {
    let doubts = |project: &Project| {
        let compared = project.evals(&["compare", "one", "two", "--format", "json"]).json();
        let doubts = compared["pairs"][0]["doubts"].as_array().unwrap_or_else(|| panic!("{compared:#}")).clone();
        doubts
            .into_iter()
            .filter(|it| it["about"] == "agent" || it["about"] == "unknown-version")
            .map(|it| it["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let runs = |first: &str, second: &str| {
        let project = project(first, "");
        project.evals(&["run", "--harness", "agent", "--label", "one"]).exits(0);
        let script = project.read("agent.sh").replace(first, second);
        project.write("agent.sh", &script);
        project.evals(&["run", "--harness", "agent", "--label", "two"]).exits(0);
        project
    };
    let told = doubts(&runs("echo 0.160.0", "echo 0.169.0"));
    assert_eq!(told, ["the agent is not the same: agent 0.160.0 before, agent 0.169.0 now"]);
    assert_eq!(doubts(&runs("echo 0.160.0", "echo 0.160.0 now")), [""; 0]);
    let told = doubts(&runs("echo 0.160.0", "echo none"));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("version is unknown"), "{told:?}");
    let told = doubts(&runs("echo none", "echo nothing"));
    assert_eq!((told.len(), told[0].matches("agent (").count()), (1, 2), "{told:?}");
    assert!(told[0].starts_with("the agent's version is unknown: "), "{told:?}");
}

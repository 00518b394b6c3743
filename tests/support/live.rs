//! Agents of others, started through the real program in a user's project: what every trial of theirs is held to.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::laws::assert_lawful;
use crate::project::{Project, Ran, lines};

/// A project with one harness, whose processes can be told from all others: they know its folders.
pub struct Stand {
    pub project: Project,
    harness: &'static str,
}

/// What is known of a trial when it is over.
pub struct Trial {
    /// The Trace as it was written, its events with the header first.
    pub text: String,
    pub trace: Vec<Value>,
    pub wire: Vec<Value>,
    pub result: Value,
}

/// The name of a harness that has no other.
const HARNESS: &str = "theirs";

/// How long a run may take, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

impl Stand {
    /// With a manifest that starts this command, and more keys of it.
    pub fn new(adapter: &str, command: &[&str], keys: &str) -> Self {
        let project = Project::new();
        project.harness(HARNESS, &format!("adapter: {adapter}\ncommand: {}\n{keys}", json!(command)));
        Self { project, harness: HARNESS }
    }

    /// With a manifest that is built in, and its program found in this folder.
    pub fn built_in(harness: &'static str, programs: &Path) -> Self {
        let mut project = Project::new();
        let path = std::env::var("PATH").unwrap();
        project.env("PATH", &format!("{}:{path}", programs.display()));
        Self { project, harness }
    }

    /// A case for it.
    pub fn case(&self, id: &str, keys: &str) {
        let text = format!("harnesses: [{}]\n{keys}\n", self.harness);
        let graders = if keys.contains("graders:") { "" } else { "graders: [{stop: {reason: [end_turn]}}]\n" };
        self.project.write(&format!("cases/{id}.yaml"), &format!("{text}{graders}"));
    }

    /// Runs the cases, all at once. The engine must end, and leave nobody behind.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Ran {
        let path = |name: &str| self.project.path(name);
        let mut command = self.project.command(&["run", "--jobs", "8"]);
        command.args(args);
        command.stdout(fs::File::create(path("out.txt")).unwrap());
        command.stderr(fs::File::create(path("err.txt")).unwrap());
        let code = ends_within(command.spawn().unwrap(), PATIENCE);
        assert_eq!(self.survivors(), Vec::<String>::new(), "processes outlive the run");
        Ran { out: self.project.read("out.txt"), err: self.project.read("err.txt"), code }
    }

    /// A trial of the only run: its Trace holds the laws, and its wire log gives the same Trace again.
    #[track_caller]
    pub fn trial(&self, case: &str) -> Trial {
        let folder = self.folder(case);
        let text = self.project.of_trial(&folder, "trace.jsonl");
        assert_lawful(&text);
        let wire = format!("{}/trials/{folder}/wire.jsonl", self.project.run_folder());
        let again = self.project.evals(&["import", "--harness", self.harness, &wire]).exits(0).out;
        assert_eq!(again, text, "the same wire log gave another Trace");
        let trace = lines(&text);
        Trial { trace, wire: lines(&self.project.read(&wire)), result: self.project.result(&folder), text }
    }

    /// The folder of a case's trial, below `trials/`.
    pub fn folder(&self, case: &str) -> String {
        format!("{case}/{}/default/1", self.harness)
    }

    /// Processes that are alive and were given this project's folders, as every agent is: its home lies there.
    fn survivors(&self) -> Vec<String> {
        let mark = self.project.temporary().display().to_string();
        let holds = |bytes: &[u8]| bytes.windows(mark.len()).any(|part| part == mark.as_bytes());
        let read = |entry: &fs::DirEntry, name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        let knows = |entry: &fs::DirEntry| ["environ", "cmdline"].iter().any(|name| holds(&read(entry, name)));
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let command = |entry| String::from_utf8_lossy(&read(&entry, "cmdline")).replace('\0', " ");
        entries.filter(knows).map(command).collect()
    }
}

/// The exit code of a child that must end in time.
#[track_caller]
fn ends_within(mut child: Child, patience: Duration) -> i32 {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if begun.elapsed() > patience {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the run did not end within {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Trial {
    /// The events without what differs from run to run: a line of JSON for each.
    pub fn normalised(&self) -> String {
        let folder = self.trace[0]["cwd"].as_str().unwrap().to_owned();
        let plain = |event: &Value| {
            let mut event = event.clone();
            event.as_object_mut().unwrap().retain(|key, _| !["at_ms", "started"].contains(&key.as_str()));
            // The line that a notice quotes holds ids that differ from session to session.
            let said = event["text"].as_str().filter(|_| event["type"] == "notice").map(str::to_owned);
            if let Some(said) = said {
                event["text"] = said.split("; the line begins: ").next().into();
            }
            format!("{}\n", event.to_string().replace(&folder, "[workspace]"))
        };
        self.trace.iter().map(plain).collect()
    }

    /// The events of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        crate::project::of_type(&self.trace, kind)
    }

    /// Everything that one side told or asked over ACP, with the number of its line.
    pub fn said(&self, dir: &str) -> Vec<(usize, Value)> {
        let lines = self.wire.iter().enumerate().filter(|(_, line)| line["dir"] == dir);
        lines.filter_map(|(n, line)| Some((n, serde_json::from_str(line["line"].as_str()?).ok()?))).collect()
    }

    /// What the engine did, by its own words.
    pub fn engine(&self) -> Vec<Value> {
        self.said("engine").into_iter().map(|(_, line)| line).collect()
    }

    /// Outcome, policy and rule of each answer to a permission request, and what became of the call.
    pub fn answers(&self) -> Vec<String> {
        let results = self.of("tool_result");
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let told = self.of("permission_response").into_iter().map(|answer| {
            let result = results.iter().find(|result| result["call"] == answer["call"]);
            let status = result.map_or("-".to_owned(), |result| word(&result["status"]));
            format!("{} {} {} {status}", word(&answer["outcome"]), word(&answer["policy"]), word(&answer["rule"]))
        });
        told.collect()
    }

    /// What the agent said, message by message.
    pub fn messages(&self) -> Vec<&str> {
        let said = self.of("message").into_iter().filter(|event| event["role"] == "agent");
        said.map(|event| event["text"].as_str().unwrap()).collect()
    }
}

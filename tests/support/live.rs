//! Agents of other vendors, started through the real program in a user's project, and the checks of each of their
//! trials.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use evals::trace::amount::Amount;
use evals::trace::jsonl::read_event;
use evals::trace::usage::{GATEWAY, UsageTotal};
use evals::trace::{Body, Event};
use serde_json::{Value, json};

use crate::laws::assert_lawful;
use crate::project::{Project, Ran, lines};

/// A project with one harness, whose processes are recognised by the project's folders in their environment.
pub struct Stand {
    pub project: Project,
    harness: &'static str,
}

/// A finished trial.
pub struct Trial {
    /// The trace as written, and its events with the header first.
    pub text: String,
    pub trace: Vec<Value>,
    pub wire: Vec<Value>,
    pub result: Value,
}

/// The default name of a harness.
const HARNESS: &str = "theirs";

/// The timeout of a run, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

impl Stand {
    /// Makes a project with a manifest that starts this command and has more keys.
    pub fn new(adapter: &str, command: &[&str], keys: &str) -> Self {
        let project = Project::on_disk();
        project.harness(HARNESS, &format!("adapter: {adapter}\ncommand: {}\n{keys}", json!(command)));
        Self { project, harness: HARNESS }
    }

    /// Makes a project with a built-in manifest, whose program is in this folder.
    pub fn built_in(harness: &'static str, programs: &Path) -> Self {
        let mut project = Project::on_disk();
        let path = crate::project::path().to_str().unwrap();
        project.env("PATH", &format!("{}:{path}", programs.display()));
        Self { project, harness }
    }

    /// Writes a case for the harness.
    pub fn case(&self, id: &str, keys: &str) {
        let text = format!("harnesses: [{}]\n{keys}\n", self.harness);
        let graders = if keys.contains("graders:") { "" } else { "graders: [{stop: {reason: [end_turn]}}]\n" };
        self.project.write(&format!("cases/{id}.yaml"), &format!("{text}{graders}"));
    }

    /// Runs all cases at once. The engine must end, and leave no process behind.
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

    /// Returns a trial of the only run. Its trace must be lawful, and its wire log must give the same trace.
    #[track_caller]
    pub fn trial(&self, case: &str) -> Trial {
        self.trial_of(case, "default")
    }

    /// Returns the trial of an arm, as `trial` does.
    #[track_caller]
    pub fn trial_of(&self, case: &str, arm: &str) -> Trial {
        let folder = self.folder_of(case, arm);
        let text = self.project.of_trial(&folder, "trace.jsonl");
        assert_lawful(&text);
        let wire = format!("{}/trials/{folder}/wire.jsonl", self.project.run_folder());
        let again = self.project.evals(&["import", "--harness", self.harness, &wire]).exits(0).out;
        assert_eq!(again, text, "the same wire log gave another Trace");
        let trace = lines(&text);
        Trial { trace, wire: lines(&self.project.read(&wire)), result: self.project.result(&folder), text }
    }

    /// Returns the folder of a case's trial, below `trials/`.
    pub fn folder(&self, case: &str) -> String {
        self.folder_of(case, "default")
    }

    /// Returns the folder of the trial of an arm, below `trials/`.
    pub fn folder_of(&self, case: &str, arm: &str) -> String {
        format!("{case}/{}/{arm}/1", self.harness)
    }

    /// Returns the living processes that have this project's folders, as every agent has: its home is in them.
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

/// Returns the exit code of a child that must end in time.
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
    /// Returns the events without values that differ from run to run, one line of JSON for each.
    pub fn normalised(&self) -> String {
        let folder = self.trace[0]["cwd"].as_str().unwrap().to_owned();
        let plain = |event: &Value| {
            let mut event = event.clone();
            event.as_object_mut().unwrap().retain(|key, _| !["at_ms", "started"].contains(&key.as_str()));
            // The line that a notice quotes contains ids that differ from session to session.
            let said = event["text"].as_str().filter(|_| event["type"] == "notice").map(str::to_owned);
            if let Some(said) = said {
                event["text"] = said.split("; the line begins: ").next().into();
            }
            format!("{}\n", event.to_string().replace(&folder, "[workspace]"))
        };
        self.trace.iter().map(plain).collect()
    }

    /// Returns the events of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        crate::project::of_type(&self.trace, kind)
    }

    /// Returns all messages of one side over ACP, with the numbers of their lines.
    pub fn said(&self, dir: &str) -> Vec<(usize, Value)> {
        let lines = self.wire.iter().enumerate().filter(|(_, line)| line["dir"] == dir);
        lines.filter_map(|(n, line)| Some((n, serde_json::from_str(line["line"].as_str()?).ok()?))).collect()
    }

    /// Returns the engine's lines in the wire log.
    pub fn engine(&self) -> Vec<Value> {
        self.said("engine").into_iter().map(|(_, line)| line).collect()
    }

    /// Returns outcome, policy and rule of each answer to a permission request, and the status of the call.
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

    /// Returns input, output, cached and all tokens as far as the agent itself reports them.
    pub fn usage_of_agent(&self) -> [Option<u64>; 4] {
        let mut total = UsageTotal::default();
        let of_gateway =
            |event: &Event| matches!(&event.body, Body::Usage(it) if it.source.as_deref() == Some(GATEWAY));
        let events = self.text.lines().skip(1).map(|line| read_event(line.as_bytes()).unwrap());
        events.filter(|event| !of_gateway(event)).for_each(|event| total.event(&event));
        [total.input_tokens(), total.output_tokens(), total.cache_read_tokens(), total.tokens()]
            .map(|amount| amount.map(Amount::value))
    }

    /// Returns the same figures as the model's service reported them to the gateway; `None` if it did not report all.
    pub fn usage_of_gateway(&self) -> Option<[Option<u64>; 4]> {
        let all = self.of("usage").into_iter().filter(|event| event["source"] == GATEWAY).collect::<Vec<_>>();
        assert!(all.len() <= 1, "{all:?}");
        let figures = ["input_tokens", "output_tokens", "cache_read_tokens", "total_tokens"];
        all.first().map(|event| figures.map(|key| event[key].as_u64()))
    }

    /// Returns the agent's messages.
    pub fn messages(&self) -> Vec<&str> {
        let said = self.of("message").into_iter().filter(|event| event["role"] == "agent");
        said.map(|event| event["text"].as_str().unwrap()).collect()
    }
}

//! Drives an agent that misbehaves in every way we know of through `evals run`, and holds each trial to the contract.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stderr, reason = "what was measured is for whoever looks")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use evals::internal::adapter::import;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::trace::jsonl;
use serde_json::Value;

mod modes;

use crate::laws;
use modes::{MODES, Mode};

/// Most memory that the engine may take with eight such agents at once, the line of 100 MB and the floods included.
const MEMORY_MB: u64 = 1024;

/// How the table for people begins.
const HEAD: &str = include_str!("hostile/head.md");

/// A folder with harnesses and cases, in which the engine runs.
struct Stand {
    folder: tempfile::TempDir,
    mark: String,
}

/// A trial's files.
struct Trial {
    folder: PathBuf,
    result: Value,
}

impl Stand {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("hostile-{}-{}", std::process::id(), folder.path().file_name().unwrap().to_string_lossy());
        let stand = Self { folder, mark };
        let agent = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trials/hostile/agent.py");
        // An agent of ACP answers its cancellation, for which a busy machine needs more time than to end a process.
        for (name, adapter, speak, start, grace) in [
            ("acp", "acp", "acp", "60s", "5s"),
            ("acp-impatient", "acp", "acp", "6s", "500ms"),
            ("stream", "claude-code-stream", "stream", "60s", "500ms"),
            ("output", "output-only", "output", "60s", "500ms"),
        ] {
            let manifest = format!(
                "name: {name}\nadapter: {adapter}\ncommand: [python3, -u, '{}', {speak}]\n\
                 timeouts: {{start: {start}, grace: {grace}}}\n\
                 env: {{set: {{HOSTILE_MARK: '{}', HOSTILE_STATE: '{}'}}}}\n",
                agent.display(),
                stand.mark,
                stand.path("state").display(),
            );
            stand.write(&format!("harnesses/{name}.yaml"), &manifest);
        }
        stand
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn case(&self, mode: &Mode, more: &str) {
        let (limits, grader) = (mode.limits, mode.grader);
        let text = format!(
            "prompt: do it\nharnesses: [{}]\nlimits: {{{limits}}}\n\
             env: {{HOSTILE_MODE: {}, HOSTILE_COUNT: '1000000'}}\ngraders:\n  - {grader}\n{more}",
            mode.harness, mode.name
        );
        self.write(&format!("cases/{}/{}.yaml", mode.harness, mode.name), &text);
    }

    fn run(&self, more: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evals"));
        command.args(["run", "cases", "--no-progress", "--keep-workspace", "never"]).args(more);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn trial(&self, case: &str, harness: &str) -> Trial {
        let run =
            fs::read_dir(self.path(".evals/runs")).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
        let folder = run.path().join("trials").join(case).join(harness).join("default/1");
        let text = fs::read_to_string(folder.join("result.json"));
        let text = text.unwrap_or_else(|error| panic!("{case}: {}: {error}", folder.display()));
        Trial { result: serde_json::from_str(&text).unwrap(), folder }
    }

    /// Processes of the agents that are alive, by their arguments and environments.
    fn survivors(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let (environ, cmdline) = (read("environ"), read("cmdline"));
            let holds = |bytes: &[u8]| bytes.windows(self.mark.len()).any(|part| part == self.mark.as_bytes());
            if holds(&environ) || holds(&cmdline) {
                found.push(String::from_utf8_lossy(&cmdline).replace('\0', " "));
            }
        }
        found
    }
}

impl Trial {
    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.join(path)).unwrap_or_default()
    }

    /// The codes of its notices, in alphabetical order.
    fn notices(&self) -> Vec<String> {
        let trace = self.text("trace.jsonl");
        let events = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut codes: Vec<String> = events.filter_map(|event| Some(event.get("code")?.as_str()?.to_owned())).collect();
        codes.sort();
        codes.dedup();
        codes
    }

    fn wire(&self) -> Vec<Value> {
        self.text("wire.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Waits for the engine. Answers the most memory it took, in MB.
fn wait_watching(engine: &mut Child, most: Duration) -> u64 {
    let begun = Instant::now();
    let mut peak = 0;
    while engine.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", engine.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kb: Option<u64> = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
        peak = peak.max(kb.unwrap_or(0) / 1024);
        if begun.elapsed() > most {
            engine.kill().unwrap();
            panic!("the run did not end within {most:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    peak
}

/// Every tenth mode that is not a flood.
#[test]
#[ignore = "slow: runs many trials"]
fn an_agent_can_neither_hold_nor_harm_the_run() {
    let table = run_of(MODES.iter().filter(|mode| !mode.limits.contains("10m")).step_by(10).collect());
    assert_eq!(table.0.len(), 3, "a protocol has no mode");
    let begins = fs::read_to_string(kept()).is_ok_and(|kept| kept.starts_with(HEAD));
    assert!(begins, "{} does not begin as tests/trials/hostile/head.md", kept().display());
}

#[test]
#[ignore = "slow: all modes, among them a million updates and lines of 100 MB"]
fn no_agent_of_any_mode_can_hold_or_harm_the_run() {
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile-agents.md");
    let text = run_of(MODES.iter().collect()).text();
    fs::write(&written, &text).unwrap();
    let kept_text = fs::read_to_string(kept()).unwrap();
    let not_in = |one: &str, other: &str| -> Vec<String> {
        one.lines().filter(|line| !other.lines().any(|it| it == *line)).map(str::to_owned).collect()
    };
    assert!(
        kept_text == text,
        "{} is not what the trials came to; if they are right: cp {} {}\nkept:  {}\nfound: {}",
        kept().display(),
        written.display(),
        kept().display(),
        not_in(&kept_text, &text).join("\n       "),
        not_in(&text, &kept_text).join("\n       "),
    );
}

/// The table of all modes.
fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/hostile-agents.md")
}

/// Runs agents of these modes at once, holds their trials to the contract, and returns the table of what the engine did.
fn run_of(modes: Vec<&Mode>) -> Table {
    let stand = Stand::new();
    for &mode in &modes {
        stand.case(mode, "");
    }
    stand.write("cases/good.yaml", "prompt: hello\nharnesses: [demo]\ngraders:\n  - output: {contains: hello}\n");
    stand.write("cases/good.demo.yaml", "steps:\n  - say: hello\n");
    let mut engine = stand.run(&["--jobs", "8"]);
    let begun = Instant::now();
    let peak = wait_watching(&mut engine, Duration::from_secs(600));
    eprintln!("{} modes in {:?}, at most {peak} MB", modes.len(), begun.elapsed());
    assert_eq!(stand.survivors(), Vec::<String>::new());
    assert!(peak < MEMORY_MB, "the engine took {peak} MB");

    let good = stand.trial("good", "demo").result;
    assert_eq!(good["verdict"], "pass", "{good}");
    assert!(good["metrics"]["duration_ms"].as_u64().unwrap() < 10_000, "{good}");

    let mut wrong = Vec::new();
    let mut table = Table::default();
    let mut noticed: Vec<u64> = Vec::new();
    for &mode in &modes {
        let trial = stand.trial(&format!("{}/{}", mode.harness, mode.name), mode.harness);
        let found = judge(mode, &trial);
        if let Err(broken) = found {
            wrong.push(format!("{} {}: {broken}\n{}", mode.harness, mode.name, trial.result));
        }
        noticed.extend(time_to_notice(mode, &trial));
        table.add(mode, &trial);
    }
    assert!(wrong.is_empty(), "{} modes are not as they should be:\n{}", wrong.len(), wrong.join("\n"));

    noticed.sort_unstable();
    eprintln!("milliseconds from the last sign of life to the end: {noticed:?}");
    // One that the machine was slow about does not count.
    assert!(noticed[noticed.len() / 2] < 1000, "a dead agent was noticed after {noticed:?} ms");
    table
}

fn judge(mode: &Mode, trial: &Trial) -> Result<(), String> {
    let result = &trial.result;
    let is = |what: &str, value: &Value, expected: &str| {
        let value = value.as_str().unwrap_or("-");
        if value == expected { Ok(()) } else { Err(format!("{what} is {value} and not {expected}")) }
    };
    is("verdict", &result["verdict"], mode.verdict)?;
    is("stop", &result["stop"]["reason"], mode.stop)?;
    is("error", &result["error"]["category"], mode.error)?;
    if !result["error"].is_null() && result["error"]["message"].as_str().is_none_or(str::is_empty) {
        return Err("the error says nothing".to_owned());
    }
    let exit = result["stop"]["exit"].as_object().ok_or("no exit")?;
    if exit["code"].is_null() && exit["signal"].is_null() {
        return Err("the exit is not known".to_owned());
    }
    let notices = trial.notices();
    if notices != mode.notices {
        return Err(format!("notices are {notices:?} and not {:?}", mode.notices));
    }
    let warnings = result["warnings"].to_string();
    for word in mode.warns {
        if !warnings.contains(word) {
            return Err(format!("no warning says `{word}`: {warnings}"));
        }
    }
    let trace = trial.text("trace.jsonl");
    laws::check(&trace)?;
    // By far the longest; the other floods show the same of it.
    if mode.name != "million-updates" {
        follows_from_the_wire(mode, trial, &trace)?;
    }
    let wire = trial.text("wire.jsonl");
    let heard = |line: &str| line.contains(r#""dir":"recv""#) && line.contains("before");
    if wire.lines().any(heard) && !trace.contains("before") {
        return Err("what the agent said before is not in the trace".to_owned());
    }
    if mode.name.contains("login") || mode.name.ends_with("in-a-call") || mode.name.starts_with("exits-3-at") {
        let said = fs::read_to_string(trial.folder.join("stderr.log")).unwrap_or_default();
        let tail = result["stop"]["stderr_tail"].as_str().unwrap_or_default();
        if said.trim() != tail.trim() {
            return Err(format!("the end of stderr is {tail:?} and not {said:?}"));
        }
    }
    let cut = wire.lines().filter_map(|line| line.rsplit_once(r#","cut":"#)?.1.strip_suffix('}')?.parse::<u64>().ok());
    let cut: u64 = cut.sum();
    if (mode.name == "line-of-100-mb") != (cut == 100_000_000 - (16 << 20)) {
        return Err(format!("{cut} bytes were cut"));
    }
    Ok(())
}

/// The Trace follows from the wire log alone, byte for byte.
fn follows_from_the_wire(mode: &Mode, trial: &Trial, trace: &str) -> Result<(), String> {
    let adapter = match mode.harness {
        "stream" => Adapter::ClaudeCodeStream,
        "output" => Adapter::OutputOnly,
        _ => Adapter::Acp,
    };
    let wire = fs::File::open(trial.folder.join("wire.jsonl")).map_err(|error| error.to_string())?;
    let mut events = Vec::new();
    let header = import(adapter, &Manifest::bare(adapter), false, std::io::BufReader::new(wire), |event| {
        jsonl::write_event(&mut events, &event)
    });
    let mut again = Vec::new();
    jsonl::write_header(&mut again, &header.map_err(|error| error.to_string())?).unwrap();
    again.extend(events);
    if again == trace.as_bytes() { Ok(()) } else { Err("the wire log gives another trace".to_owned()) }
}

/// Milliseconds from the last line of an agent that dies to its exit in the wire log.
fn time_to_notice(mode: &Mode, trial: &Trial) -> Option<u64> {
    if mode.stop != "crashed" || mode.name.contains("stdout") && !mode.name.contains("holds") {
        return None;
    }
    let wire = trial.wire();
    let at = |dir: &str| wire.iter().rfind(|line| line["dir"] == dir)?["at_ms"].as_u64();
    Some(at("exit")?.saturating_sub(at("recv")?))
}

/// What the engine does, for people.
#[derive(Default)]
struct Table(BTreeMap<&'static str, Vec<String>>);

impl Table {
    fn add(&mut self, mode: &Mode, trial: &Trial) {
        let protocol = mode.harness.split('-').next().unwrap_or_default();
        let protocol = match protocol {
            "acp" => "ACP",
            "stream" => "Claude Code's stream",
            _ => "Output only",
        };
        let warnings = trial.result["warnings"].as_array().unwrap().iter();
        let kept = warnings.filter(|warning| warning["code"] != "no_permissions");
        // On a busy machine, an agent that exits by itself may need longer than it is given.
        let kept = kept.filter(|warning| warning["code"] != "held_on" || mode.warns.contains(&"did not exit"));
        let kept = kept.filter_map(|warning| warning["text"].as_str());
        let told: Vec<String> =
            trial.notices().into_iter().map(|code| format!("`{code}`")).chain(kept.map(str::to_owned)).collect();
        let row = format!(
            "| {} | {} | {} | {} | {} |",
            mode.name.replace('-', " "),
            mode.stop,
            mode.verdict,
            mode.error.replace('-', "–"),
            told.join("; ")
        );
        self.0.entry(protocol).or_default().push(row);
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (protocol, rows) in &self.0 {
            write!(text, "\n## {protocol}\n\n").unwrap();
            text.push_str(
                "| the agent … | stop | verdict | error | notices, warnings |\n| --- | --- | --- | --- | --- |\n",
            );
            for row in rows {
                writeln!(text, "{}", row.trim_end()).unwrap();
            }
        }
        text
    }
}

#[test]
fn errored_trials_are_tried_again_and_every_attempt_is_kept() {
    let stand = Stand::new();
    let mode = MODES.iter().find(|mode| mode.name == "noise").unwrap();
    let fails_once = Mode { name: "fails-once", ..*mode };
    stand.case(&fails_once, "");
    let code = stand.run(&["--retries", "2"]).wait().unwrap().code();
    assert_eq!(code, Some(0));
    let trial = stand.trial("acp/fails-once", "acp");
    assert_eq!((trial.result["verdict"].as_str(), trial.result["attempt"].as_u64()), (Some("pass"), Some(2)));
    let first: Value = serde_json::from_str(&trial.text("attempts/1/result.json")).unwrap();
    assert_eq!((first["verdict"].as_str(), first["attempt"].as_u64()), (Some("errored"), Some(1)));
    assert_eq!(first["error"]["category"], "rate_limit");
    laws::assert_lawful(&trial.text("attempts/1/trace.jsonl"));
    laws::assert_lawful(&trial.text("trace.jsonl"));
    let journal = fs::read_to_string(trial.folder.ancestors().nth(6).unwrap().join("journal.jsonl")).unwrap();
    let events: Vec<(String, u64)> = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| (line["event"].as_str().unwrap().to_owned(), line["attempt"].as_u64().unwrap()))
        .collect();
    let expected = [("started", 1), ("finished", 1), ("started", 2), ("finished", 2)];
    assert_eq!(events, expected.map(|(event, attempt)| (event.to_owned(), attempt)));
}

#[test]
fn only_the_errors_that_a_case_names_are_tried_again() {
    let stand = Stand::new();
    let mode = MODES.iter().find(|mode| mode.name == "error-429").unwrap();
    stand.case(mode, "retries: {max: 1, on: [auth, crashed]}\n");
    let mode = MODES.iter().find(|mode| mode.name == "exits-3-at-start").unwrap();
    stand.case(mode, "retries: {max: 1, on: [auth, crashed]}\n");
    // A failed task is not an error.
    let mode = MODES.iter().find(|mode| mode.name == "cancels-by-itself").unwrap();
    stand.case(mode, "retries: {max: 1}\n");
    assert_eq!(stand.run(&[]).wait().unwrap().code(), Some(1));
    let attempts = |case: &str| stand.trial(&format!("acp/{case}"), "acp").result["attempt"].as_u64().unwrap();
    assert_eq!([attempts("error-429"), attempts("exits-3-at-start"), attempts("cancels-by-itself")], [1, 2, 1]);
}

//! `script`: runs a program as the grader. It gets the trial as JSON, and returns its grades as JSON. It needs
//! the whole trace.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::command::{Run, five_minutes};
use super::trial_json::{self, Account};
use super::{Evidence, Finding, Findings, GraderSpec, Needs, Observer, Subject, Workspace};
use crate::grade::{Grade, Score};
use crate::reason_text;
use crate::repeated_key::RepeatedKey;
use crate::shell::{Command, CommandOutcome, KEPT, Shell};
use crate::trace::{Event, Exit, Lost, UnseenAction};
use crate::values::{Fraction, Time};

/// The maximum number of grades of a script.
const MAX_GRADES: usize = 1000;

/// A program that grades.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a map such as `{run: python3 grade.py}`")]
pub struct Script {
    /// The program and its arguments: a line for `sh -c`, or a list. An element of a list that names a file beside the
    /// case is replaced by its path.
    pub run: Run,
    /// The timeout. A script that exceeds it leaves the grader ungraded.
    #[serde(default = "five_minutes")]
    pub timeout: Time,
}

impl GraderSpec for Script {
    fn depends_on_loss(&self, _: Lost) -> bool {
        true
    }

    fn depends_on_action(&self, _: &UnseenAction, _: Option<&str>) -> bool {
        true
    }

    fn needs() -> Needs {
        Needs { calls: true, workspace: Workspace::FilesIfThere, commands: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        if self.run.is_empty() {
            Some("runs nothing: `run` is empty".to_owned())
        } else if self.timeout.0.is_zero() {
            Some("has a `timeout` of 0, which no script can meet".to_owned())
        } else {
            None
        }
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(Watch { account: Account::default(), last_event: 0, wanted: self.clone() })
    }

    fn named_files(&self) -> Vec<&Path> {
        let words: &[String] = match &self.run {
            Run::Line(_) | Run::Rest { .. } => &[],
            Run::Program(words) => words,
        };
        words.iter().filter(|word| may_be_a_file(word)).map(Path::new).collect()
    }

    fn runs_named_files(&self) -> bool {
        true
    }

    fn count_from(&mut self, folder: &Path) {
        if let Run::Program(words) = &mut self.run {
            for word in words {
                if let Some(file) = file_in(folder, word) {
                    *word = file.to_string_lossy().into_owned();
                }
            }
        }
    }
}

/// Keeps the input of the script.
struct Watch {
    account: Account,
    /// The number of the trace's last event.
    last_event: u64,
    wanted: Script,
}

#[async_trait]
impl Observer for Watch {
    fn event(&mut self, event: &Event) {
        self.account.event(event);
        self.last_event = event.seq;
    }

    fn call(&mut self, call: &Subject<'_>) {
        self.account.call(call);
    }

    fn run(&mut self) -> Option<&mut Run> {
        Some(&mut self.wanted.run)
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        let Self { account, last_event, wanted } = *self;
        match wanted.run(evidence, account, last_event).await {
            Ok(named) => Findings(named.into_iter().map(|(name, grade)| Finding { name, ..grade.into() }).collect()),
            Err(why) => Grade::ungraded(why).into(),
        }
    }
}

/// A grade of a script, with the name that the script gives it.
type Named = (Option<String>, Grade);

impl Script {
    async fn run(&self, evidence: &Evidence<'_>, account: Account, last_event: u64) -> Result<Vec<Named>, String> {
        if evidence.shell.folder.as_os_str().is_empty() {
            return Err("could not be graded, because the workspace is missing".to_owned());
        }
        let (command, files) = self.command(evidence.case_folder);
        let shown = format!("`{}`", reason_text::short(&self.run.to_string(), 200));
        if let Some(why) = account.too_large() {
            return Err(format!("{shown} was not run: {why}"));
        }
        if let Some(why) = account.unknown_ends() {
            return Err(format!("{shown} could not be graded, {why}"));
        }
        let shell = shell_for(evidence, files);
        let input = input(evidence, account).to_string().into_bytes();
        let outcome = shell.run(&command, Some(input), self.timeout.0).await;
        let outcome = outcome.map_err(|error| format!("{shown} could not be started: {error}"))?;
        if let Some(exceeded) = outcome.memory_exceeded() {
            return Err(format!("{shown} {exceeded}{}", outcome.end()));
        }
        match outcome.exit {
            None => {
                Err(format!("{shown} took longer than its timeout of {} and was ended{}", self.timeout, outcome.end()))
            }
            Some(Exit { code: Some(0), .. }) => {
                read(&outcome, last_event).map_err(|why| format!("{shown} {why}{}", outcome.end()))
            }
            Some(Exit { code: Some(code), .. }) => {
                let hint = hint_at_file_beside(&self.run, evidence.case_folder, &evidence.shell.folder);
                Err(format!("{shown} exited with {code}{hint}{}", outcome.end()))
            }
            Some(Exit { signal: Some(signal), .. }) => {
                Err(format!("{shown} was ended by signal {signal}{}", outcome.end()))
            }
            Some(Exit { code: None, signal: None }) => {
                Err(format!("{shown} ended without an exit code{}", outcome.end()))
            }
        }
    }

    /// Returns the command, and the files beside the case that it names.
    fn command(&self, folder: &Path) -> (Command, Vec<PathBuf>) {
        let words = match &self.run {
            Run::Line(_) | Run::Rest { .. } => return (self.run.command(), Vec::new()),
            Run::Program(words) => words,
        };
        let mut files = Vec::new();
        let words = words.iter().map(|word| match file_in(folder, word) {
            Some(file) => {
                files.push(file.clone());
                file.to_string_lossy().into_owned()
            }
            None => word.clone(),
        });
        (Command::Program(words.collect()), files)
    }
}

/// Returns a hint if a command line names a file that lies beside the case and not in the workspace, else an empty text.
fn hint_at_file_beside(run: &Run, case_folder: &Path, workspace: &Path) -> String {
    let (Run::Line(line) | Run::Rest { line, .. }) = run else { return String::new() };
    let is_only_beside = |word: &&str| file_in(case_folder, word).is_some() && !workspace.join(word).exists();
    line.split_whitespace().find(is_only_beside).map_or_else(String::new, |word| {
        format!(
            "; `{word}` lies beside the case and not in the workspace: write `run` as a list, in which it is replaced by \
             its path"
        )
    })
}

fn may_be_a_file(word: &str) -> bool {
    !word.starts_with('-') && word.contains(['.', '/']) && !word.contains(['\n', '\0'])
}

/// Returns the file in a folder that a word names.
fn file_in(folder: &Path, word: &str) -> Option<PathBuf> {
    let file = may_be_a_file(word).then(|| folder.join(word).canonicalize().ok()).flatten()?;
    file.is_file().then_some(file)
}

/// Returns the graders' shell, with read access to the script and its input files.
fn shell_for(evidence: &Evidence<'_>, files: Vec<PathBuf>) -> Shell {
    let mut shell = evidence.shell.clone();
    if let Some(inside) = &mut shell.inside {
        inside.places.reads.extend(files);
        inside.places.reads.extend([evidence.trace, evidence.patch].into_iter().flatten().map(Path::to_path_buf));
    }
    shell
}

fn input(evidence: &Evidence<'_>, account: Account) -> Value {
    let header = evidence.header;
    let mut input = json!({
        "model": header.model,
        "output": evidence.output,
        "stop": trial_json::stop(evidence.stop),
        "usage": trial_json::usage(evidence.usage),
        "metrics": trial_json::metrics(evidence, account.has_unknown_kinds()),
        "messages": account.messages,
    });
    let mut put = |key: &str, value: Option<Value>| {
        if let (Value::Object(map), Some(value)) = (&mut input, value) {
            map.insert(key.to_owned(), value);
        }
    };
    // Data that could not be seen is absent instead of an empty list.
    let seen = evidence.seen();
    let path = |path: Option<&Path>| path.map(|path| Value::from(path.to_string_lossy()));
    put("case", header.case.clone().map(Value::from));
    put("harness", header.harness.clone().map(Value::from));
    put("trial", header.trial.map(Value::from));
    put("calls", seen.tracing.then(|| Value::Array(account.calls)));
    put("permissions", seen.interaction.then(|| Value::Array(account.permissions)));
    put("files", evidence.change.map(|_| trial_json::files(evidence)));
    put("trace", path(evidence.trace));
    put("workspace", path(evidence.workspace));
    put("patch", path(evidence.patch));
    input
}

/// Parses the grades that a script printed.
fn read(outcome: &CommandOutcome, last_event: u64) -> Result<Vec<Named>, String> {
    if outcome.stdout.len() >= KEPT {
        return Err(format!("printed more than {KEPT} bytes, the maximum"));
    }
    let text = std::str::from_utf8(&outcome.stdout).map_err(|_| "printed text that is not UTF-8".to_owned())?;
    if text.trim().is_empty() {
        return Err("printed nothing; expected a grade such as {\"passed\": true}".to_owned());
    }
    let value: Value = serde_json::from_str(text).map_err(|error| format!("did not print JSON: {error}"))?;
    // It is unclear which of the two values is meant.
    if let Some(RepeatedKey { key, line, column }) = RepeatedKey::find(text) {
        return Err(format!("printed no grade: the key `{key}` occurs twice at line {line} column {column}"));
    }
    let list = match value {
        Value::Array(list) => list,
        one => vec![one],
    };
    if list.is_empty() {
        return Err("printed no grade: its list is empty".to_owned());
    }
    if list.len() > MAX_GRADES {
        return Err(format!("printed {} grades, but at most {MAX_GRADES} are accepted", list.len()));
    }
    let one = list.len() == 1;
    let numbered = list.iter().zip(1..);
    numbered
        .map(|(grade, n)| {
            grade_of(grade, last_event).map_err(|why| {
                if one { format!("printed no grade: {why}") } else { format!("printed no grade in entry {n}: {why}") }
            })
        })
        .collect()
}

fn grade_of(grade: &Value, last_event: u64) -> Result<Named, String> {
    let Value::Object(map) = grade else { return Err("it is not a JSON object".to_owned()) };
    let text = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if key != "name" || !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is not a text")),
    };
    let name = text("name")?;
    if let Some(why) = text("ungraded")? {
        return Ok((name, Grade::ungraded(reason_text::short(&why, 1200))));
    }
    let passed = match map.get("passed") {
        Some(Value::Bool(passed)) => *passed,
        Some(_) => return Err("`passed` is neither true nor false".to_owned()),
        None => return Err("it has neither `passed` nor `ungraded`".to_owned()),
    };
    let value = match map.get("value") {
        None | Some(Value::Null) => Fraction::of(usize::from(passed), 1),
        Some(value) => value.as_f64().and_then(Fraction::new).ok_or_else(|| {
            format!("`value` is {}, not a number from 0 to 1", reason_text::short(&value.to_string(), 60))
        })?,
    };
    let evidence: Vec<u64> = match map.get("evidence") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list
            .iter()
            .map(|seq| seq.as_u64().ok_or_else(|| "`evidence` is not a list of event numbers".to_owned()))
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("`evidence` is not a list of event numbers".to_owned()),
    };
    if let Some(none) = evidence.iter().find(|seq| **seq > last_event) {
        return Err(format!("`evidence` names event {none}, but the last event of the trace is {last_event}"));
    }
    let reason = match text("reason")? {
        Some(reason) => reason_text::short(&reason, 1200),
        None if passed => "the script reported a pass without a reason".to_owned(),
        None => "the script reported a failure without a reason".to_owned(),
    };
    let grade = Grade::Scored(Score::new(value, passed, reason));
    Ok((name, grade.pointing_at(evidence.into_iter().take(100))))
}

//! A user's project in a folder of its own, and the real program run in it, with nothing of this machine except
//! `PATH`.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder with `project/`, where commands run, `home/` and `tmp/`.
pub struct Project {
    root: tempfile::TempDir,
    env: BTreeMap<String, String>,
}

/// The output and exit code of a command.
#[derive(Debug)]
pub struct Ran {
    pub out: String,
    pub err: String,
    pub code: i32,
}

impl Ran {
    /// Parses the single JSON value on standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        // Long messages are wrapped, so white space and the frame around them are not compared.
        let plain = |text: &str| text.replace(['│', '×'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let all = format!("{}\n{}", self.out, self.err);
        assert!(
            plain(&all).contains(&plain(text)),
            "`{text}` is not said\nstdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }
}

impl Project {
    /// Makes an empty project, in memory where the machine has room for it: it takes a third of the time off a test.
    pub fn new() -> Self {
        Self::within(memory().map_or_else(std::env::temp_dir, Path::to_owned))
    }

    /// Makes an empty project in the system's temporary folder, for tests in which the file system counts, or an agent
    /// that hides `/dev` from its own commands.
    pub fn on_disk() -> Self {
        Self::within(std::env::temp_dir())
    }

    fn within(folder: PathBuf) -> Self {
        let root = tempfile::tempdir_in(folder).unwrap();
        for folder in ["project", "home", "tmp"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, env: BTreeMap::new() }
    }

    /// Makes a project with files, by their paths.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let project = Self::new();
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    /// Makes a project with the cases that the program ships.
    pub fn bundled() -> Self {
        let project = Self::new();
        copy(Path::new("cases"), &project.path("cases"));
        project
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a case without a workspace and with these keys, and the steps of the demo agent for it.
    pub fn case(&self, id: &str, keys: &str, steps: &str) {
        let graders = if keys.contains("graders:") { "" } else { "graders: [{stop: {reason: [end_turn]}}]\n" };
        let prompt = if keys.contains("turns:") { "" } else { "prompt: Do it.\n" };
        self.write(&format!("cases/{id}.yaml"), &format!("{prompt}{keys}\n{graders}"));
        if !steps.is_empty() {
            self.write(&format!("cases/{id}.demo.yaml"), steps);
        }
    }

    /// Writes a manifest to `harnesses/`.
    pub fn harness(&self, name: &str, keys: &str) {
        self.write(&format!("harnesses/{name}.yaml"), &format!("name: {name}\n{keys}\n"));
    }

    /// Writes a manifest of the demo agent under another name, with more keys.
    pub fn demo(&self, name: &str, keys: &str) {
        let command = r#"command: ["{self}", demo-agent, --script, "{script}", --speak, acp]"#;
        self.harness(name, &format!("adapter: acp\n{command}\nagent-info: evals-demo\n{keys}"));
    }

    /// Writes a manifest of an agent that answers with `done` and reports this model, whatever model is requested.
    pub fn reports_model(&self, name: &str, model: &str) {
        let lines = format!(
            r#"echo '{{"kind":"hello","model":"{model}"}}'
echo '{{"kind":"say","text":"done"}}'
echo '{{"kind":"bye"}}'
"#
        );
        self.write(&format!("{name}.sh"), &lines);
        let path = self.path(&format!("{name}.sh"));
        let stream = r#"stream:
  - {when: line.kind == 'hello', emit: {header: {agent: "'Fake'", model: line.model}}}
  - {when: line.kind == 'say', emit: {message: {text: line.text}}}
  - {when: line.kind == 'bye', emit: {stop: {reason: end_turn}}}"#;
        let model = "model: {via: flag, flag: --model}";
        let command = format!("command: [sh, {}, \"{{prompt}}\"]", path.display());
        self.harness(name, &format!("adapter: json-stream\n{command}\n{model}\n{stream}"));
    }

    /// Sets a variable of the user's environment.
    pub fn env(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.path().join("project").join(path)
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evals"));
        command.args(args).current_dir(self.path("")).env_clear().stdin(Stdio::null());
        command.env("PATH", path());
        command.env("HOME", self.home()).env("TMPDIR", self.temporary()).envs(&self.env);
        command
    }

    /// Returns the program started by another program, which gets its path and arguments after `own`.
    pub fn under(&self, program: &str, own: &[&str], args: &[&str]) -> Command {
        let evals = self.command(args);
        let mut command = Command::new(program);
        command.args(own).arg(evals.get_program()).args(evals.get_args());
        command.current_dir(self.path("")).env_clear().stdin(Stdio::null());
        command.envs(evals.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    }

    pub fn evals(&self, args: &[&str]) -> Ran {
        let done = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { out: text(done.stdout), err: text(done.stderr), code: done.status.code().unwrap_or(-1) }
    }

    /// Returns the folder of the only run, relative to the project.
    #[track_caller]
    pub fn run_folder(&self) -> String {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        format!(".evals/runs/{}", runs[0])
    }

    /// Returns the folder of the run with a label.
    #[track_caller]
    pub fn run_named(&self, label: &str) -> String {
        let folders = self.runs().into_iter().map(|run| format!(".evals/runs/{run}"));
        let named = |folder: &String| {
            let record: Value = serde_json::from_str(&self.read(&format!("{folder}/run.json"))).unwrap();
            record["label"] == label
        };
        folders.into_iter().find(named).unwrap_or_else(|| panic!("no run is labelled {label}"))
    }

    /// Returns the ids of the runs.
    pub fn runs(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path(".evals/runs")).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Reads a file of a trial of the only run. `trial` is the trial's folder below `trials/`.
    #[track_caller]
    pub fn of_trial(&self, trial: &str, file: &str) -> String {
        self.read(&format!("{}/trials/{trial}/{file}", self.run_folder()))
    }

    #[track_caller]
    pub fn result(&self, trial: &str) -> Value {
        serde_json::from_str(&self.of_trial(trial, "result.json")).unwrap()
    }

    /// Returns the exchanges of a trial with its model, as [`exchanges`] does.
    #[track_caller]
    pub fn model_log(&self, trial: &str) -> Vec<Value> {
        exchanges(&self.of_trial(trial, "llm.jsonl"))
    }

    /// Returns the events of a trial's trace, the header first.
    #[track_caller]
    pub fn trace(&self, trial: &str) -> Vec<Value> {
        lines(&self.of_trial(trial, "trace.jsonl"))
    }

    /// Removes the digests from a run, as in versions that wrote none.
    pub fn without_digests(&self, folder: &str) {
        let without = |text: &str, keys: &[&str]| {
            let keep = |mut value: Value| {
                value.as_object_mut().unwrap().retain(|key, _| !keys.contains(&key.as_str()));
                format!("{value}\n")
            };
            serde_json::Deserializer::from_str(text).into_iter().map(|value| keep(value.unwrap())).collect::<String>()
        };
        for path in self.files(folder).into_keys() {
            let keys: &[&str] = match path.rsplit('/').next() {
                Some("run.json") => &["digests", "ends", "replaces"],
                Some("journal.jsonl") => &["chain", "digest", "plan"],
                Some("result.json" | "results.jsonl") => &["files"],
                _ => continue,
            };
            let path = format!("{folder}/{path}");
            self.write(&path, &without(&self.read(&path), keys));
        }
    }

    /// Leaves a run as an engine does that is killed after the last trial.
    #[track_caller]
    pub fn without_end(&self, folder: &str) {
        fs::remove_file(self.path(&format!("{folder}/end.json"))).unwrap();
        fs::remove_file(self.path(&format!("{folder}/results.jsonl"))).unwrap();
        // A run that compared nothing has no such file.
        let _ = fs::remove_file(self.path(&format!("{folder}/snapshots.json")));
    }

    #[track_caller]
    pub fn journal(&self) -> Vec<Value> {
        lines(&self.read(&format!("{}/journal.jsonl", self.run_folder())))
    }

    /// Returns every file below a folder of the project, with its bytes.
    pub fn files(&self, below: &str) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.path(below), Path::new(""), &mut found);
        found
    }

    /// Returns the remaining files in the system's temporary folder.
    pub fn left_over(&self) -> Vec<PathBuf> {
        fs::read_dir(self.temporary()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

/// Parses the lines of a JSON Lines file.
pub fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Parses the lines of a log of exchanges, with the keys of `script` among those of the exchange, and the model that was
/// asked for as `model`.
#[track_caller]
pub fn exchanges(text: &str) -> Vec<Value> {
    let mut exchanges = lines(text);
    for exchange in &mut exchanges {
        let exchange = exchange.as_object_mut().unwrap();
        if let Some(Value::Object(played)) = exchange.remove("script") {
            for (key, value) in played {
                assert!(exchange.insert(key.clone(), value).is_none(), "`{key}` is a key of both");
            }
        }
        let asked = exchange["model"].get("asked").cloned().unwrap_or_default();
        exchange.insert("model".to_owned(), asked);
    }
    exchanges
}

/// Returns the events of a type.
pub fn of_type<'a>(trace: &'a [Value], kind: &str) -> Vec<&'a Value> {
    trace.iter().filter(|event| event["type"] == kind).collect()
}

/// Says on standard error that a test is not run here, because the machine lacks something. Fails if the variable
/// `EVALS_REQUIRE_*` is set, as in `.ci/run` on a machine that has it.
#[allow(dead_code, reason = "not every binary of tests needs it")]
pub fn not_run(variable: &str, missing: &str) {
    assert!(std::env::var_os(variable).is_none(), "{variable} is set, but {missing}");
    say_not_run(missing);
}

fn say_not_run(missing: &str) {
    use std::io::Write;
    // Not by `eprintln!`, which the test's runner keeps for itself.
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let mut out = std::io::stderr();
    writeln!(out, "not run: {test}: {missing}").unwrap();
}

/// Returns true if bubblewrap works. Otherwise says that the test is not run, and fails if `EVALS_REQUIRE_BWRAP` is set.
pub fn bubblewrap() -> bool {
    let works = evals::internal::sandbox::bwrap::works();
    if let Err(error) = &works {
        not_run("EVALS_REQUIRE_BWRAP", &format!("bubblewrap does not work: {error}"));
    }
    works.is_ok()
}

/// Returns true if strace can be used here. Otherwise says that the test is not run, and fails if `EVALS_REQUIRE_STRACE` is set.
#[allow(dead_code, reason = "not every binary of tests needs it")]
pub fn strace() -> bool {
    let works = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        not_run("EVALS_REQUIRE_STRACE", "strace is not installed, or may not trace");
    }
    works
}

/// Returns true if programs and files of test runners are there. Otherwise says that the test is not run, and fails if
/// `EVALS_REQUIRE_RUNNERS` names the missing program.
pub fn runners(needs: &[&str]) -> bool {
    let folders: Vec<_> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    let is_there = |name: &str| match name.starts_with('/') {
        true => Path::new(name).exists(),
        false => folders.iter().any(|folder| folder.join(name).is_file()),
    };
    let Some(missing) = needs.iter().find(|name| !is_there(name)) else { return true };
    let required = std::env::var("EVALS_REQUIRE_RUNNERS").unwrap_or_default();
    let is_required = required.split_whitespace().any(|name| name == *missing);
    assert!(!is_required, "EVALS_REQUIRE_RUNNERS names `{missing}`, which is not there");
    say_not_run(&format!("`{missing}` is not there"));
    false
}

/// Requires mounts of one's own, another user, `/dev/full` and tmux.
#[allow(dead_code, reason = "not every binary of tests needs it")]
pub const MACHINE: &str = "EVALS_REQUIRE_MACHINE";

/// Waits until a condition holds.
#[track_caller]
pub fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn collect(folder: &Path, name: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = name.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &name, found);
        } else {
            found.insert(name.display().to_string(), fs::read(entry.path()).unwrap_or_default());
        }
    }
}

/// Returns the folder of a file system in memory, if it has room for the tests and programs may start in it.
fn memory() -> Option<&'static Path> {
    const ROOM: u64 = 4 << 30;
    static FOLDER: OnceLock<Option<&Path>> = OnceLock::new();
    *FOLDER.get_or_init(|| {
        let folder = Path::new("/dev/shm");
        let system = rustix::fs::statvfs(folder).ok()?;
        let has_room = system.f_bavail.saturating_mul(system.f_frsize) >= ROOM;
        let starts = !system.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
        (has_room && starts && tempfile::tempdir_in(folder).is_ok()).then_some(folder)
    })
}

/// Returns `PATH`, with the folder of the first real `python3` first if `PATH` leads to a shim of a version manager. A
/// shim starts several programs before Python, and the tests start Python some thousand times.
pub fn path() -> &'static OsStr {
    static FOUND: OnceLock<OsString> = OnceLock::new();
    FOUND.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let is_program = |folder: &&PathBuf| fs::read(folder.join("python3")).is_ok_and(|it| !it.starts_with(b"#!"));
        match folders.iter().find(is_program) {
            Some(folder) => std::env::join_paths(std::iter::once(folder).chain(&folders)).unwrap(),
            // A version manager has the only one.
            None => {
                let python =
                    Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
                let program = PathBuf::from(String::from_utf8(python.stdout).unwrap().trim());
                let folder = program.parent().unwrap().to_owned();
                std::env::join_paths(std::iter::once(folder).chain(folders)).unwrap()
            }
        }
    })
}

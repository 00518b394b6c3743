//! touchstone: a folder with `case.yaml`, whose hidden tests may lie in a repository of fixtures.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::parts::{self, scalar};
use super::refused::{Refused, refused};
use super::{
    Choices, Content, Converted, HOME_LEFT_OUT, NewCase, Note, copied, folders, one_line, slug, source, typed, unique,
};
use crate::text::shell_word;
use crate::yaml::{self, YamlError};

mod graders;

/// A program that replaces the body of a Python function, as the source does.
const STUB: &str = include_str!("touchstone/stub.py");
/// The folder of the hidden files in the workspace while no command of a grader runs.
const HIDDEN: &str = ".evals-hidden";

/// The maps of a case, and the keys that are read from each.
const MAPS: [(&[&str], &[&str]); 10] = [
    (&["task"], &["prompt", "system_prompt", "instruction_files", "turns"]),
    (&["source"], &["path", "repo", "commit", "subdir", "isolation"]),
    (&["fixtures"], &["repo", "commit", "subdir"]),
    (&["matrix"], &["harnesses", "models", "entries", "trials"]),
    (
        &["environment"],
        &[
            "kind",
            "venv",
            "system_site_packages",
            "requirements",
            "requirement_files",
            "install",
            "pip_args",
            "commands",
            "env",
            "timeout_s",
        ],
    ),
    (&["environment", "env"], &[]),
    (&["setup"], &["stub", "run"]),
    (&["observe"], &["tracing", "interaction"]),
    (&["observe", "interaction"], &["policy", "model", "guidelines", "guidelines_file", "fallback"]),
    (&["expect"], &["pass_threshold"]),
];

/// Reads the case of a folder, or the cases below it.
pub fn convert(path: &Path, choices: &Choices) -> Result<Converted, Vec<YamlError>> {
    let mut converted = Converted::default();
    let (name, found) = folders::tasks_below(path, "case.yaml", &mut converted.notes)?;
    let mut cases = Vec::new();
    for folder in &found {
        let file = folder.join("case.yaml");
        let is_it = |keys: &Map<String, Value>| keys.contains_key("task") && keys.contains_key("graders");
        let other = "this is not a case of touchstone: it has no `task` and no `graders`";
        let before = converted.notes.len();
        let keys = source::of_format(&file, found.len() == 1, is_it, other, &mut converted.notes)?;
        let Some(keys) = keys else {
            if converted.notes.len() == before {
                converted.notes.push(Note::new(&file, "", format!("no case was written: {other}")));
            }
            continue;
        };
        let id = keys.get("id").and_then(Value::as_str).and_then(slug);
        let own = unique(id.or_else(|| slug(&folders::name(folder))).unwrap_or_else(|| "case".to_owned()), &cases);
        let case = NewCase::new(own, &file);
        let mut reader = Reader { folder, file: &file, keys: &keys, choices, case, injected: Vec::new() };
        match reader.translate() {
            Ok(()) => cases.push(reader.case),
            Err((key, why)) => {
                converted.notes.extend(reader.case.notes);
                converted.notes.push(Note::new(&file, key, format!("no case was written: {why}")));
            }
        }
    }
    converted.add(name.clone(), "Cases", &name, cases);
    Ok(converted)
}

struct Reader<'a> {
    folder: &'a Path,
    file: &'a Path,
    keys: &'a Map<String, Value>,
    choices: &'a Choices,
    case: NewCase,
    /// The hidden files, in the order in which the source injects them.
    injected: Vec<Injected>,
}

/// A hidden file of a grader.
struct Injected {
    /// The file's path in the folder of the hidden files.
    from: String,
    /// The path to which the grader copies it.
    to: String,
}

impl Reader<'_> {
    fn at(&self, path: &[&str]) -> Option<&Value> {
        parts::at(self.keys, path)
    }

    fn text(&self, path: &[&str]) -> Result<Option<&str>, Refused> {
        Ok(typed::text(self.at(path), &path.join("."))?.filter(|text| !text.trim().is_empty()))
    }

    fn list(&self, path: &[&str]) -> Result<Vec<String>, Refused> {
        typed::texts(self.at(path), &path.join("."))
    }

    fn flag(&self, path: &[&str]) -> Result<Option<bool>, Refused> {
        typed::flag(self.at(path), &path.join("."))
    }

    /// Refuses a key that is no map: the keys below it would not be read.
    fn maps(&self) -> Result<(), Refused> {
        let mut paths = MAPS.into_iter().map(|(path, _)| path);
        let other = paths.find(|path| self.at(path).is_some_and(|value| !value.is_object()));
        other.map_or(Ok(()), |path| Err(refused(&path.join("."), "this is not a map")))
    }

    /// Adds a note for each key of a map that the source does not define. The variables of `environment.env` have any name.
    fn unknown_keys(&mut self) {
        let mut unknown = Vec::new();
        for (path, known) in MAPS.into_iter().filter(|(path, _)| *path != ["environment", "env"]) {
            let keys = self.at(path).and_then(Value::as_object).into_iter().flat_map(Map::keys);
            let other = keys.filter(|key| !known.contains(&key.as_str()));
            unknown.extend(other.map(|key| format!("{}.{key}", path.join("."))));
        }
        let stubs = self.at(&["setup", "stub"]).and_then(Value::as_array).into_iter().flatten();
        for (at, stub) in stubs.enumerate() {
            let keys = stub.as_object().into_iter().flat_map(Map::keys);
            let other = keys.filter(|key| !["file", "function"].contains(&key.as_str()));
            unknown.extend(other.map(|key| format!("setup.stub[{at}].{key}")));
        }
        for key in unknown {
            self.note(&key, super::UNKNOWN);
        }
    }

    fn note(&mut self, key: &str, message: impl Into<String>) {
        self.case.notes.push(Note::new(self.file, key, message));
    }

    fn translate(&mut self) -> Result<(), Refused> {
        self.maps()?;
        self.prompt()?;
        if let Some(text) = self.text(&["description"])? {
            let text = one_line(text);
            self.case.keys.insert("description".to_owned(), json!(text));
        }
        let mut setup = Vec::new();
        self.source()?;
        self.environment(&mut setup)?;
        self.setup(&mut setup)?;
        if !setup.is_empty() {
            let workspace = self.case.keys.entry("workspace").or_insert_with(|| json!({}));
            if let Some(map) = workspace.as_object_mut() {
                map.insert("setup".to_owned(), json!(setup));
            }
        }
        self.observe()?;
        if self.at(&["container"]).is_some() {
            self.note("container", "left out: setup and graders run without it; add a `sandbox` with an image");
        }
        if self.at(&["artifacts"]).is_some_and(|value| *value != json!({})) {
            return Err(refused(
                "artifacts",
                "its skills, commands and plugins have no equivalent; name skills in the case",
            ));
        }
        if let Some(trials) =
            typed::whole(self.at(&["matrix", "trials"]), "matrix.trials")?.filter(|trials| *trials > 1)
        {
            self.case.keys.insert("trials".to_owned(), json!(trials));
        }
        self.note("matrix", "harnesses and models are left out; run the case with --harness and --model");
        let threshold = match self.at(&["expect", "pass_threshold"]) {
            None => 1.0,
            Some(value) => {
                let threshold = value.as_f64().filter(|threshold| *threshold > 0.0 && *threshold <= 1.0);
                threshold.ok_or_else(|| refused("expect.pass_threshold", "it is not above 0 and at most 1"))?
            }
        };
        if threshold < 1.0 {
            self.case.keys.insert("pass".to_owned(), json!({"threshold": threshold}));
        }
        self.graders(threshold)?;
        let known = [
            "id",
            "description",
            "task",
            "source",
            "fixtures",
            "artifacts",
            "matrix",
            "environment",
            "container",
            "setup",
            "observe",
            "graders",
            "expect",
            "availability",
        ];
        let unknown: Vec<String> = self.keys.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            self.note(&key, super::UNKNOWN);
        }
        self.unknown_keys();
        Ok(())
    }

    fn prompt(&mut self) -> Result<(), Refused> {
        let prompt = self.text(&["task", "prompt"])?.ok_or_else(|| refused("task.prompt", "it has no prompt"))?;
        let mut prompt = prompt.trim().to_owned();
        for name in self.list(&["task", "instruction_files"])? {
            let file = source::named(self.folder, &name).map_err(|why| refused("task.instruction_files", why))?;
            let text = yaml::read(&file).map_err(|error| refused("task.instruction_files", error.to_string()))?;
            let own = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            prompt.push_str(&format!("\n\n## {own}\n{}", text.trim()));
        }
        let turns = self.list(&["task", "turns"])?;
        if turns.is_empty() {
            self.case.keys.insert("prompt".to_owned(), json!(prompt));
        } else {
            let turns: Vec<String> = std::iter::once(prompt).chain(turns).collect();
            self.case.keys.insert("turns".to_owned(), json!(turns));
        }
        if let Some(system) = self.text(&["task", "system_prompt"])?.map(str::to_owned) {
            self.case.keys.insert("system-prompt".to_owned(), json!(system));
        }
        Ok(())
    }

    fn source(&mut self) -> Result<(), Refused> {
        if self.text(&["source", "isolation"])?.is_some_and(|isolation| isolation != "auto") {
            self.note("source.isolation", "left out: each trial gets a fresh copy of the files");
        }
        if let Some(path) = self.text(&["source", "path"])? {
            let clean = path.trim_start_matches("./");
            let wrong = |why: &str| refused("source.path", format!("its files cannot be copied: {why}"));
            crate::paths::inside(Path::new(clean)).map_err(|why| wrong(&format!("the path `{path}` {why}")))?;
            let files = copied::all(&self.folder.join(clean), Path::new("")).map_err(|why| wrong(&why))?;
            self.case.files = files;
            return Ok(());
        }
        let Some(repo) = self.text(&["source", "repo"])? else { return Ok(()) };
        let commit = self.text(&["source", "commit"])?.ok_or_else(|| refused("source.commit", "there is no commit"))?;
        let mut git = json!({"url": address(repo), "rev": commit});
        if let (Some(subdir), Some(map)) = (self.text(&["source", "subdir"])?, git.as_object_mut()) {
            map.insert("subdir".to_owned(), json!(subdir));
        }
        self.case.keys.insert("workspace".to_owned(), json!({"git": git}));
        Ok(())
    }

    /// Makes a setup command that creates a virtual environment in the private home. Graders get the environment in the
    /// state that setup left.
    fn environment(&mut self, setup: &mut Vec<String>) -> Result<(), Refused> {
        let Some(environment) = self.at(&["environment"]) else { return Ok(()) };
        let is_off = self.flag(&["environment", "venv"])? == Some(false);
        let mut env = Map::new();
        for (name, value) in environment.get("env").and_then(Value::as_object).into_iter().flatten() {
            let text = scalar(value).ok_or_else(|| refused("environment.env", format!("`{name}` is not a text")))?;
            env.insert(name.clone(), json!(text));
        }
        if env.remove("HOME").is_some() {
            self.note("environment.env.HOME", HOME_LEFT_OUT);
        }
        let commands = self.list(&["environment", "commands"])?;
        let kind = self.text(&["environment", "kind"])?.unwrap_or("pip-venv").to_owned();
        if !["pip-venv", "uv", "command"].contains(&kind.as_str()) {
            return Err(refused("environment.kind", format!("the kind `{kind}` is not known")));
        }
        let install = self.text(&["environment", "install"])?.unwrap_or("none");
        if !["none", "editable"].contains(&install) {
            return Err(refused("environment.install", format!("`{install}` is neither `none` nor `editable`")));
        }
        let is_editable = install == "editable";
        let mut lines = Vec::new();
        if kind != "command" && !is_off {
            let args: Vec<String> =
                self.list(&["environment", "pip_args"])?.iter().map(|arg| shell_word(arg)).collect();
            let site = self.flag(&["environment", "system_site_packages"])? == Some(true);
            let flag = if site { " --system-site-packages" } else { "" };
            lines.push(format!("python3 -m venv{flag} \"$HOME/.evals-venv\""));
            let pip = format!("\"$HOME/.evals-venv/bin/pip\" install -q {}", args.join(" ")).trim_end().to_owned();
            let requirements = self.list(&["environment", "requirements"])?;
            if !requirements.is_empty() {
                let words: Vec<String> = requirements.iter().map(|word| shell_word(word)).collect();
                lines.push(format!("{pip} {}", words.join(" ")));
            }
            for name in self.list(&["environment", "requirement_files"])? {
                let file =
                    source::named(self.folder, &name).map_err(|why| refused("environment.requirement_files", why))?;
                let text =
                    yaml::read(&file).map_err(|error| refused("environment.requirement_files", error.to_string()))?;
                let mut found = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                if let Some(line) = found.clone().find(|line| names_file(line)) {
                    let why =
                        format!("`{line}` in {name} names another file; write the lines of that file in its place");
                    return Err(refused("environment.requirement_files", why));
                }
                // `pip install` without a requirement fails. Options and hashes are allowed in a file only.
                if found.next().is_some() {
                    lines.push(format!("printf %s {} | {pip} -r /dev/stdin", shell_word(&text)));
                }
            }
            if is_editable {
                lines.push(format!("{pip} -e ."));
            }
        }
        let is_venv = !lines.is_empty();
        lines.extend(commands.iter().map(|command| with_environment(command, is_venv)));
        setup.extend(lines);
        if !env.is_empty() {
            self.case.keys.insert("env".to_owned(), Value::Object(env));
        }
        if is_venv {
            self.note("environment", "graders use the virtual environment; the agent has it at `$HOME/.evals-venv`");
        }
        if self.at(&["environment", "timeout_s"]).is_some() {
            self.note("environment.timeout_s", "left out: each command of setup has 10 minutes; set `timeouts.setup`");
        }
        Ok(())
    }

    fn has_venv(&self) -> Result<bool, Refused> {
        let is_command = self.text(&["environment", "kind"])? == Some("command");
        let is_off = self.flag(&["environment", "venv"])? == Some(false);
        Ok(self.at(&["environment"]).is_some() && !is_off && !is_command)
    }

    fn setup(&mut self, setup: &mut Vec<String>) -> Result<(), Refused> {
        for (at, stub) in typed::list(self.at(&["setup", "stub"]), "setup.stub")?.iter().enumerate() {
            let word = |key: &str| stub.get(key).and_then(Value::as_str).map(shell_word);
            let (Some(file), Some(function)) = (word("file"), word("function")) else {
                return Err(refused(&format!("setup.stub[{at}]"), "it needs a `file` and a `function`"));
            };
            setup.push(format!("python3 -c {} {file} {function}", shell_word(STUB)));
        }
        let venv = self.has_venv()?;
        setup.extend(self.list(&["setup", "run"])?.iter().map(|command| with_environment(command, venv)));
        Ok(())
    }

    fn observe(&mut self) -> Result<(), Refused> {
        let policy = self.text(&["observe", "interaction", "policy"])?.map(str::to_owned);
        let interaction = match policy.as_deref() {
            None => None,
            Some("auto-approve") => Some(json!("auto-approve")),
            Some("auto-deny") => Some(json!("auto-reject")),
            Some("manual") => Some(json!("manual")),
            Some("llm-based") => Some(self.llm()?),
            Some(other) => {
                let why = format!("the policy `{other}` has rules of another form; write `interaction` by hand");
                return Err(refused("observe.interaction.policy", why));
            }
        };
        if let Some(interaction) = interaction {
            self.case.keys.insert("interaction".to_owned(), interaction);
        }
        if policy.is_some() || self.flag(&["observe", "tracing"])? == Some(true) {
            self.case.keys.insert("requires".to_owned(), json!({"tracing": true}));
        }
        Ok(())
    }

    /// Returns the policy of a model that answers, without its model.
    fn llm(&mut self) -> Result<Value, Refused> {
        if self.at(&["observe", "interaction", "guidelines_file"]).is_some() {
            return Err(refused("observe.interaction.guidelines_file", "write the guidelines in the case"));
        }
        let mut llm = Map::new();
        if let Some(text) = self.text(&["observe", "interaction", "guidelines"])? {
            llm.insert("instructions".to_owned(), json!(text.trim()));
        }
        if self.text(&["observe", "interaction", "fallback"])? == Some("allow") {
            llm.insert("default".to_owned(), json!("allow-once"));
        }
        self.note("observe.interaction", "the model is left out; name it with EVALS_JUDGE");
        Ok(json!({"llm": llm}))
    }

    /// Returns the file of a grader: in the repository of fixtures if the case names one, else beside the case.
    fn asset(&self, path: &str) -> Result<PathBuf, String> {
        let Some(fixtures) = self.at(&["fixtures"]) else { return source::named(self.folder, path) };
        let text = |key: &str| {
            typed::text(fixtures.get(key), &format!("fixtures.{key}")).map_err(|(key, why)| format!("`{key}`: {why}"))
        };
        let Some(root) = &self.choices.fixtures else {
            let (repo, commit) = (address(text("repo")?.unwrap_or_default()), text("commit")?.unwrap_or_default());
            return Err(format!("`{path}` is in {repo} at {commit}; name a checkout of it with --fixtures"));
        };
        let id = self.at(&["id"]).and_then(scalar).unwrap_or_default();
        let subdir = text("subdir")?.unwrap_or(&id);
        crate::paths::inside(Path::new(subdir)).map_err(|why| format!("the path `{subdir}` {why}"))?;
        source::named(&root.join(subdir), path)
    }

    /// Copies the hidden files of a grader, and returns their names.
    fn inject(&mut self, key: &str, grader: &Map<String, Value>) -> Result<Vec<String>, Refused> {
        let mut names = Vec::new();
        let place = format!("{key}.inject");
        for item in typed::list(grader.get("inject"), &place)? {
            let src = item.as_str().or_else(|| item.get("src")?.as_str());
            let src = src.ok_or_else(|| refused(&place, "it is neither a path nor a map with `src`"))?;
            let file = self.asset(src).map_err(|why| refused(&place, why))?;
            let own = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let to = typed::text(item.get("dest"), &format!("{place}.dest"))?.unwrap_or(&own);
            let to = to.trim_start_matches("./").trim_end_matches('/').to_owned();
            crate::paths::inside(Path::new(&to)).map_err(|why| refused(&place, format!("the path `{to}` {why}")))?;
            names.push(Path::new(&to).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
            // Two graders may inject different files at one path.
            let from = format!("{}/{own}", self.injected.len());
            let hidden = self.case.add(&format!("hidden/{HIDDEN}/{from}"), Content::Copy(file));
            self.case.keys.insert("hidden".to_owned(), json!(hidden.split('/').next().unwrap_or_default()));
            self.injected.push(Injected { from, to });
        }
        Ok(names)
    }
}

/// Returns the URL of a repository that may be written as OWNER/NAME.
fn address(repo: &str) -> String {
    if repo.contains("://") || repo.starts_with("git@") {
        repo.to_owned()
    } else {
        format!("https://github.com/{repo}")
    }
}

/// Returns true if a line of requirements reads a further file: `-r other.txt`.
fn names_file(line: &str) -> bool {
    let options = ["-r", "-c", "--requirement", "--constraint"];
    options.into_iter().any(|option| line.strip_prefix(option).is_some_and(|rest| !rest.starts_with('-')))
}

/// Returns a command that finds the programs of the virtual environment first.
fn with_environment(command: &str, is_venv: bool) -> String {
    if is_venv { format!("PATH=\"$HOME/.evals-venv/bin:$PATH\"; export PATH\n{command}") } else { command.to_owned() }
}

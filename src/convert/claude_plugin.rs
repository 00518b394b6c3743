//! `claude plugin eval`: cases of a plugin, each a folder with `prompt.md`, `case.yaml` or both.

use std::collections::BTreeMap;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::source::{self, Visit};
use super::{Converted, Group, HOME_LEFT_OUT, NewCase, Note, UNKNOWN, copied, one_line, slug, unique, whole};
use crate::paths;
use crate::skill::{self, Document, Skill};
use crate::yaml::{self, YamlError};

mod graders;

/// The limits that the source sets if a case sets none.
const USUAL: [(&str, u64); 3] = [("max_turns", 10), ("timeout_seconds", 300), ("runs", 3)];

/// The keys with the task and the expected results of a case.
const OF_CASE: [&str; 5] = ["execution", "prompt", "task", "graders", "expected_outcome"];

/// Reads the cases of a plugin, of a folder of cases, or of one case.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let found = std::fs::metadata(path);
    let kind = found.map_err(|error| vec![whole(path, format!("the path could not be read: {error}"))])?;
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let root = absolute.ancestors().find(|folder| is_plugin(folder)).map(Path::to_owned);
    let mut reader = Reader { skills: Vec::new(), cases: Vec::new(), notes: Vec::new() };
    let mut converted = Converted::default();
    let mut name = None;
    if let Some(root) = &root {
        name = plugin_name(root);
        reader.skills = skills(root, &mut converted.notes);
        converted.skills = reader.skills.iter().map(|skill| skill.folder.clone()).collect();
        for part in ["commands", "agents", "hooks", "output-styles", ".mcp.json", ".lsp.json"] {
            if root.join(part).exists() {
                let message = "this part of the plugin is not in the experiment, which varies skills only";
                converted.notes.push(Note::new(&root.join(part), "", message));
            }
        }
    }
    let mut unsearched = Vec::new();
    let cases = if kind.is_dir() { cases_below(path, root.as_deref(), &mut unsearched) } else { of_file(path) };
    if cases.is_empty() {
        let error = whole(path, "there is no case: no folder contains `prompt.md` or `case.yaml`");
        let error = error.with_help("name the folder of a plugin, its `evals` folder, or a case");
        return Err(source::nothing_found(&unsearched, error));
    }
    converted.notes.extend(unsearched);
    converted.evals = cases.iter().flat_map(|(folder, _)| evals_of(folder)).collect();
    converted.evals.extend(folders_of_cases(path, &cases, &converted.skills));
    let mut errors = Vec::new();
    for (folder, name) in &cases {
        errors.extend(reader.case(folder, name).err().into_iter().flatten());
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mocks = cases.iter().flat_map(|(folder, _)| folder.ancestors().take(3)).map(|folder| folder.join("mocks"));
    let mut mocks: Vec<PathBuf> = mocks.filter(|mocks| mocks.is_dir()).collect();
    mocks.sort();
    mocks.dedup();
    for mocks in mocks {
        let message = "MCP servers and their stand-ins are not taken over; write `mcp-servers` in the cases";
        converted.notes.push(Note::new(&mocks, "", message));
    }
    if converted.skills.is_empty() {
        let message = "no plugin with skills was found above the cases, so no experiment is written";
        converted.notes.push(Note::new(path, "", message));
    }
    let folder = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.or(folder).unwrap_or_else(|| "plugin".to_owned());
    converted.notes.extend(reader.notes);
    if !reader.cases.is_empty() {
        converted.groups.push(Group {
            name: slug(&name).unwrap_or_else(|| "plugin".to_owned()),
            description: one_line(&format!("Do the skills of {name} help?")),
            is_compared: true,
            cases: reader.cases,
        });
    }
    Ok(converted)
}

fn is_plugin(folder: &Path) -> bool {
    [".claude-plugin/plugin.json", "plugin.json", "skills", skill::FILE].iter().any(|name| folder.join(name).exists())
}

fn manifest(root: &Path) -> Value {
    let places = [root.join(".claude-plugin/plugin.json"), root.join("plugin.json")];
    let text = places.iter().find_map(|path| yaml::read(path).ok());
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns the folder of the cases that a manifest names.
fn named_evals(manifest: &Value) -> Option<&str> {
    manifest.pointer("/experimental/evals").and_then(Value::as_str)
}

/// Returns the folder of the cases that the manifest in a folder names.
pub fn evals_of_manifest(root: &Path) -> Option<PathBuf> {
    named_evals(&manifest(root)).map(|name| root.join(name))
}

/// Returns true if a folder is a case with graders. A `case.yaml` alone must have a key of a case: a template may have that name.
pub fn is_graded(folder: &Path) -> bool {
    let has_prompt = folder.join("prompt.md").is_file();
    let has_graders = folder.join("graders").is_dir();
    let file = folder.join("case.yaml");
    has_prompt && has_graders || file.is_file() && (has_prompt || has_graders || has_key_of_case(&file))
}

/// Returns true if a `case.yaml` has a key with the task or the expected results. If its text is not YAML, its lines are read.
fn has_key_of_case(file: &Path) -> bool {
    let Ok(text) = yaml::read(file) else { return false };
    match yaml::parse::<Value>(file, &text) {
        Ok(value) => OF_CASE.iter().any(|key| value.get(key).is_some()),
        Err(_) => {
            let mut keys = text.lines().filter_map(|line| line.split_once(':'));
            keys.any(|(key, _)| OF_CASE.contains(&key.trim_end()))
        }
    }
}

/// Returns the folders that hold the cases, and what these share: notes, answers, data. The folder of a plugin or of a skill is
/// none.
fn folders_of_cases(path: &Path, cases: &[(PathBuf, String)], skills: &[PathBuf]) -> Vec<PathBuf> {
    let graded = cases.iter().map(|(folder, _)| folder).filter(|folder| is_graded(folder));
    let above = graded.filter_map(|folder| Some(paths::real(folder).parent()?.to_owned()));
    let mut folders: Vec<PathBuf> = above.chain(path.is_dir().then(|| paths::real(path))).collect();
    folders.sort();
    folders.dedup();
    folders.retain(|folder| !is_plugin(folder) && !skills.iter().any(|skill| paths::real(skill).starts_with(folder)));
    folders
}

/// Returns the files and folders of a case that an agent must not find: its folder, and the results and stand-ins beside it. The
/// folder may be that of a skill, so the parts of the case are named, too.
pub fn evals_of(folder: &Path) -> Vec<PathBuf> {
    let parts = ["prompt.md", "case.yaml", "graders", "mocks", "results"].map(|name| folder.join(name));
    let above = folder.parent().filter(|above| !is_plugin(above));
    let beside = above.into_iter().flat_map(|above| ["mocks", "results"].map(|name| above.join(name)));
    beside.chain(parts).chain([folder.to_owned()]).collect()
}

fn plugin_name(root: &Path) -> Option<String> {
    let written = manifest(root).get("name").and_then(Value::as_str).map(str::to_owned);
    written.or_else(|| Some(root.file_name()?.to_string_lossy().into_owned()))
}

/// Returns the skills of a plugin.
fn skills(root: &Path, notes: &mut Vec<Note>) -> Vec<Skill> {
    let folder = root.join("skills");
    let entries = if folder.is_dir() { source::entries_in(&folder) } else { Ok(Vec::new()) };
    let entries = entries.unwrap_or_else(|error| {
        notes.push(Note::new(&folder, "", format!("the skills are not in the experiment: {}", error.message())));
        Vec::new()
    });
    // A link to a folder of a skill is followed.
    let mut folders: Vec<PathBuf> = entries.into_iter().map(|(path, _)| path).filter(|path| path.is_dir()).collect();
    if root.join(skill::FILE).is_file() {
        folders.push(root.to_owned());
    }
    let mut skills = Vec::new();
    for folder in folders {
        match skill::read(&folder) {
            Ok(skill) => skills.push(skill),
            Err(error) => notes.push(Note::new(&folder, "", format!("the skill is not in the experiment: {error}"))),
        }
    }
    skills
}

fn is_case(folder: &Path) -> bool {
    folder.join("prompt.md").is_file() || folder.join("case.yaml").is_file()
}

fn of_file(path: &Path) -> Vec<(PathBuf, String)> {
    let is_known = path.file_name().is_some_and(|name| name == "prompt.md" || name == "case.yaml");
    let folder = std::path::absolute(path).ok().and_then(|path| Some(path.parent()?.to_owned()));
    folder.filter(|_| is_known).map(|folder| (folder.clone(), name_of(&folder))).into_iter().collect()
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the case folders below a folder, each with its path below it. Notes say which folders could not be searched.
fn cases_below(path: &Path, root: Option<&Path>, notes: &mut Vec<Note>) -> Vec<(PathBuf, String)> {
    if is_case(path) {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return vec![(path.to_owned(), name_of(&absolute))];
    }
    let manifest = root.map(manifest).unwrap_or_default();
    let places = named_evals(&manifest).into_iter().chain(["evals"]).map(|name| path.join(name));
    let start = places.into_iter().find(|folder| folder.is_dir()).unwrap_or_else(|| path.to_owned());
    let found = source::entries_below(&start, &visit, notes);
    let named = |folder: PathBuf| {
        let name = folder.strip_prefix(&start).unwrap_or(&folder).to_string_lossy().into_owned();
        (folder, name)
    };
    found.into_iter().map(named).collect()
}

/// Takes the folders of cases.
fn visit(path: &Path, kind: FileType) -> io::Result<Visit> {
    let name = name_of(path);
    if !kind.is_dir() || name.starts_with('.') || ["results", "mocks"].contains(&name.as_str()) {
        return Ok(Visit::LeaveOut);
    }
    let is_case = source::has_file(path, "prompt.md")? || source::has_file(path, "case.yaml")?;
    Ok(if is_case { Visit::Take } else { Visit::Search })
}

/// A value, and the file and key that it is from.
type Field = (Value, PathBuf, String);

struct Reader {
    skills: Vec<Skill>,
    cases: Vec<NewCase>,
    notes: Vec<Note>,
}

impl Reader {
    fn case(&mut self, folder: &Path, below: &str) -> Result<(), Vec<YamlError>> {
        let mut fields: BTreeMap<String, Field> = BTreeMap::new();
        let mut sources = Vec::new();
        let mut from = folder.join("prompt.md");
        let file = folder.join("case.yaml");
        if file.is_file() {
            from.clone_from(&file);
            self.case_yaml(&file, &mut fields, &mut sources)?;
        }
        let prompt = folder.join("prompt.md");
        if prompt.is_file() {
            from.clone_from(&prompt);
            let (keys, body) = front(&prompt)?;
            for (key, value) in keys {
                fields.insert(key.clone(), (value, prompt.clone(), key));
            }
            fields.insert("prompt".to_owned(), (json!(body), prompt.clone(), "body".to_owned()));
        }
        sources.extend(grader_files(&folder.join("graders"))?);
        let mut case =
            Case { folder, fields, keys: Map::new(), remarks: Vec::new(), notes: Vec::new(), files: Vec::new() };
        let graders = case.translate().and_then(|()| {
            let has_files = !case.files.is_empty();
            graders::convert(&sources, &self.skills, has_files, &mut case.notes, &mut case.remarks)
        });
        let Case { mut keys, remarks, notes, files, .. } = case;
        match graders {
            Ok(graders) => keys.insert("graders".to_owned(), Value::Array(graders)),
            Err(why) => {
                self.notes.extend(notes);
                self.notes.push(Note::new(&from, "", format!("no case was written: {why}")));
                return Ok(());
            }
        };
        let name: Vec<String> = below.split('/').filter_map(slug).collect();
        let name = if name.is_empty() { "case".to_owned() } else { name.join("/") };
        let name = unique(name, &self.cases);
        self.cases.push(NewCase { keys, remarks, notes, files, ..NewCase::new(name, &from) });
        Ok(())
    }

    fn case_yaml(
        &mut self,
        file: &Path,
        fields: &mut BTreeMap<String, Field>,
        sources: &mut Vec<graders::Source>,
    ) -> Result<(), Vec<YamlError>> {
        let text = yaml::read(file).map_err(|error| vec![error])?;
        let Value::Object(map) = yaml::parse_all::<Value>(file, &text).checked(|_| Vec::new())? else {
            return Err(vec![whole(file, "the file must be a map of keys")]);
        };
        for (key, value) in map {
            match (key.as_str(), value) {
                ("execution" | "context", Value::Object(inner)) => {
                    for (name, value) in inner {
                        let own = if key == "context" { format!("context.{name}") } else { name.clone() };
                        fields.insert(own, (value, file.to_owned(), format!("{key}.{name}")));
                    }
                }
                ("graders", Value::Array(list)) => {
                    for (number, item) in list.into_iter().enumerate() {
                        let key = format!("graders[{number}]");
                        let Value::Object(mut keys) = item else {
                            return Err(vec![whole(file, format!("`{key}` must be a map of keys"))]);
                        };
                        let name = keys.remove("name").and_then(|name| name.as_str().map(str::to_owned));
                        let name = name.unwrap_or_else(|| format!("grader-{}", number + 1));
                        sources.push(graders::Source { file: file.to_owned(), key, name, keys, body: String::new() });
                    }
                }
                ("schema_version", value) => {
                    if !["1.0", "1.1"].contains(&value.as_str().unwrap_or_default()) {
                        let message = format!("version {value} is not known; 1.1 is");
                        self.notes.push(Note::new(file, key, message));
                    }
                }
                (_, value) => drop(fields.insert(key.clone(), (value, file.to_owned(), key))),
            }
        }
        Ok(())
    }
}

/// Returns the front matter and the body of a file. Without front matter, everything is the body.
fn front(file: &Path) -> Result<(Map<String, Value>, String), Vec<YamlError>> {
    let document = Document::read(file).map_err(|error| vec![error])?;
    if document.text().lines().next().map(str::trim_end) != Some("---") {
        return Ok((Map::new(), document.text().trim().to_owned()));
    }
    let front = document.front().map_err(|error| vec![error])?;
    let is_empty = document.text().get(front.inner()).is_some_and(|text| text.trim().is_empty());
    let keys = if is_empty { Map::new() } else { front.keys()? };
    Ok((keys, front.body().1.trim().to_owned()))
}

fn grader_files(folder: &Path) -> Result<Vec<graders::Source>, Vec<YamlError>> {
    let entries = if folder.is_dir() { source::entries_in(folder) } else { Ok(Vec::new()) };
    let mut files: Vec<PathBuf> = entries.map_err(|error| vec![error])?.into_iter().map(|(path, _)| path).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut sources = Vec::new();
    for file in files {
        let (keys, body) = front(&file)?;
        let name = file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        sources.push(graders::Source { key: String::new(), name, keys, body, file });
    }
    Ok(sources)
}

/// One case while it is translated.
struct Case<'a> {
    folder: &'a Path,
    fields: BTreeMap<String, Field>,
    keys: Map<String, Value>,
    remarks: Vec<String>,
    notes: Vec<Note>,
    files: Vec<copied::Copied>,
}

impl Case<'_> {
    fn set(&mut self, key: &str, value: Value) {
        self.keys.insert(key.to_owned(), value);
    }

    fn note(&mut self, field: &Field, message: impl Into<String>) {
        self.notes.push(Note::new(&field.1, field.2.clone(), message));
    }

    /// Takes a text; anything else is noted.
    fn text(&mut self, key: &str) -> Option<(String, Field)> {
        let field = self.fields.remove(key)?;
        match field.0.as_str().map(str::trim) {
            Some("") => None,
            Some(text) => Some((text.to_owned(), field)),
            None => {
                self.note(&field, "left out: this is not a text");
                None
            }
        }
    }

    /// Takes a whole number from 1, or the number that the source uses without one.
    fn number(&mut self, key: &str) -> Option<u64> {
        let usual = USUAL.iter().find(|(name, _)| *name == key).map(|(_, usual)| *usual);
        let Some(field) = self.fields.remove(key) else { return usual };
        let number = field.0.as_u64().filter(|number| *number > 0);
        if number.is_none() {
            self.note(&field, format!("this is not a whole number from 1; {} is used", usual.unwrap_or_default()));
        }
        number.or(usual)
    }

    /// Translates everything but the graders. Fails with the reason if a part that cannot be translated would change
    /// the task.
    fn translate(&mut self) -> Result<(), String> {
        let Some((prompt, _)) = self.text("prompt") else { return Err("it has no prompt".to_owned()) };
        if prompt.lines().any(|line| line.trim_start().starts_with("TODO")) {
            return Err("its prompt still has a TODO".to_owned());
        }
        if self.fields.contains_key("context.history_file") {
            return Err("it continues an earlier conversation (`context.history_file`)".to_owned());
        }
        self.set("prompt", json!(prompt));
        let own = name_of(self.folder);
        if let Some((name, _)) = self.text("name").filter(|(name, _)| *name != own) {
            self.remarks.push(format!("Name: {name}"));
        }
        if let Some((text, _)) = self.text("description") {
            self.set("description", json!(one_line(&text)));
        }
        if let Some((text, _)) = self.text("expected_outcome") {
            self.remarks.push(format!("Expected outcome, not graded: {text}"));
        }
        if let Some((text, _)) = self.text("append_system_prompt") {
            self.set("system-prompt", json!(text));
        }
        if let Some((model, field)) = self.text("model") {
            self.note(&field, format!("left out: a case names no model; run it with --model {model}"));
        }
        if let Some(field) = self.fields.remove("tags") {
            let tags: Vec<&str> = field.0.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            if field.0.as_array().is_none_or(|list| list.len() != tags.len()) {
                self.note(&field, "what is not a text in this list was left out");
            }
            if !tags.is_empty() {
                self.set("tags", json!(tags));
            }
        }
        for key in ["allowed_tools", "disallowed_tools"] {
            if let Some(field) = self.fields.remove(key).filter(|field| field.0 != json!([])) {
                let message = "left out: a case restricts no tools; its `interaction` answers permission requests";
                self.note(&field, message);
            }
        }
        if let Some(field) = self.fields.remove("plugins") {
            self.note(&field, "left out: the experiment uses the skills of the plugin around the cases");
        }
        if let Some(field) = self.fields.remove("env") {
            let texts = field.0.as_object().map(|map| map.values().all(Value::is_string));
            match texts {
                Some(true) => {
                    let mut env = field.0.as_object().cloned().unwrap_or_default();
                    if env.remove("HOME").is_some() {
                        self.note(&field, HOME_LEFT_OUT);
                    }
                    if !env.is_empty() {
                        self.set("env", Value::Object(env));
                    }
                }
                _ => self.note(&field, "left out: this is not a map of texts"),
            }
        }
        let turns = self.number("max_turns");
        let seconds = self.number("timeout_seconds");
        let limits = json!({"time": seconds.map(|seconds| format!("{seconds}s")), "steps": turns});
        self.set("limits", limits);
        if let Some(runs) = self.number("runs") {
            self.set("trials", json!(runs));
        }
        self.workspace()?;
        for (_, field) in std::mem::take(&mut self.fields) {
            self.note(&field, UNKNOWN);
        }
        Ok(())
    }

    fn workspace(&mut self) -> Result<(), String> {
        if let Some(field) = self.fields.remove("context.add_dirs") {
            let folders: Option<Vec<&str>> =
                field.0.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
            for folder in folders.ok_or("its `context.add_dirs` is not a list of texts")? {
                let to = folder.trim_start_matches("./").trim_end_matches('/');
                match copied::below(self.folder, to, Path::new(to)) {
                    Ok(files) => {
                        self.files.extend(files);
                        self.note(&field, format!("`{to}` is in the workspace, where the agent may also change it"));
                    }
                    Err(why) => return Err(format!("its folder `{folder}` cannot be copied: {why}")),
                }
            }
        }
        if let Some((script, field)) = self.text("context.scaffold_script") {
            let path = script.trim_start_matches("./").to_owned();
            let name = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let copied = copied::below(self.folder, &path, Path::new(&name));
            let copied = copied.map_err(|why| format!("its script `{path}` cannot be copied: {why}"))?;
            let quoted = format!("'./{}'", name.replace('\'', r"'\''"));
            self.files.extend(copied);
            self.set("workspace", json!({"setup": [format!("bash {quoted} && rm {quoted}")]}));
            let message = "each trial runs the script in the workspace, without the files beside it; read it first";
            self.note(&field, message);
        }
        Ok(())
    }
}

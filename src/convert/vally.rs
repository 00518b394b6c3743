//! Vally: an `eval.yaml` with stimuli, each of which becomes a case.

use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::parts::{number, scalar};
use super::refused::{Refused, refused, unread};
use super::source::Visit;
use super::{Content, Converted, NewCase, Note, UNKNOWN, copied, one_line, slug, source, typed, unique, whole};
use crate::skill;
use crate::yaml::{self, YamlError};

mod graders;

/// The time limit of the source if an eval sets none.
const TIMEOUT: &str = "2m";
/// The keys of a stimulus that are taken over or noted.
const STIMULUS: [&str; 9] =
    ["name", "prompt", "turns", "tags", "graders", "constraints", "environment", "rubric", "config"];

/// Reads an eval, or all evals below a folder.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let found = std::fs::metadata(path);
    let kind = found.map_err(|error| vec![whole(path, format!("the path could not be read: {error}"))])?;
    let mut unsearched = Vec::new();
    let files = match kind.is_file() {
        true => vec![path.to_owned()],
        false => evals_below(path, &mut unsearched),
    };
    let mut converted = Converted::default();
    let mut is_eval = false;
    for file in &files {
        let is_it = |keys: &Map<String, Value>| keys.get("stimuli").is_some_and(Value::is_array);
        let other = "this is not an eval of Vally: it has no list `stimuli`";
        // Other tools use the same file name.
        let keys = source::of_format(file, kind.is_file(), is_it, other, &mut converted.notes)?;
        let Some(keys) = keys else { continue };
        is_eval = true;
        eval(file, &keys, &mut converted);
    }
    if !is_eval && converted.notes.is_empty() {
        let error = whole(path, "no file here or below is an eval of Vally, with `stimuli`");
        return Err(source::nothing_found(&unsearched, error));
    }
    converted.notes.extend(unsearched);
    Ok(converted)
}

/// Returns true if a file has a list `stimuli`, so that it may be an eval. File names do not decide, because
/// `.vally.yaml` can give evals any name.
fn has_stimuli(path: &Path) -> Result<bool, YamlError> {
    yaml::read(path).map(|text| text.lines().any(|line| line.starts_with("stimuli:")))
}

/// Returns the evals below a folder. Notes say which folders and files could not be read.
fn evals_below(folder: &Path, notes: &mut Vec<Note>) -> Vec<PathBuf> {
    let mut files = source::entries_below(folder, &visit, notes);
    files.retain(|file| match has_stimuli(file) {
        Ok(is_eval) => is_eval,
        Err(error) => {
            notes.push(unread(file, &error));
            false
        }
    });
    files
}

/// Takes YAML files.
fn visit(path: &Path, kind: FileType) -> io::Result<Visit> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let is_yaml = [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
    Ok(match kind.is_dir() {
        true if [".git", "node_modules"].contains(&name.as_str()) => Visit::LeaveOut,
        false if is_yaml => Visit::Take,
        _ => Visit::Search,
    })
}

/// Returns the name of an eval: the name of its file or, if the file is named `eval`, of the nearest folder above that
/// is not named `evals`, `eval` or `tests`.
fn name_of(file: &Path) -> String {
    let own = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = own.split('.').next().unwrap_or_default();
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folders = absolute.ancestors().skip(1).filter_map(|folder| folder.file_name()?.to_str());
    let above = folders.map(str::to_owned).find(|name| !["evals", "eval", "tests"].contains(&name.as_str()));
    let name = if stem == "eval" { above.unwrap_or_default() } else { stem.to_owned() };
    slug(&name).unwrap_or_else(|| "vally".to_owned())
}

fn eval(file: &Path, keys: &Map<String, Value>, converted: &mut Converted) {
    let name = name_of(file);
    let numbered = std::iter::once(name.clone()).chain((2_u32..).map(|n| format!("{name}-{n}")));
    let is_free = |name: &String| !converted.groups.iter().any(|group| group.name == *name);
    let name = numbered.take(10_000).find(is_free).unwrap_or(name);
    let mut notes = of_eval(file, keys);
    let mut cases: Vec<NewCase> = Vec::new();
    for (at, item) in keys.get("stimuli").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let key = format!("stimuli[{at}]");
        let Value::Object(stimulus) = item else {
            notes.push(Note::new(file, key, "no case was written: this is not a map of keys"));
            continue;
        };
        let own = stimulus.get("name").and_then(Value::as_str).and_then(slug);
        let own = unique(own.unwrap_or_else(|| format!("stimulus-{}", at + 1)), &cases);
        let mut reader = Reader { file, eval: keys, stimulus, key: &key, case: NewCase::new(own, file) };
        match reader.translate() {
            Ok(()) => cases.push(reader.case),
            Err((own, why)) => {
                notes.extend(reader.case.notes);
                let key = if own.is_empty() { key.clone() } else { format!("{key}.{own}") };
                notes.push(Note::new(file, key, format!("no case was written: {why}")));
            }
        }
    }
    converted.notes.extend(notes);
    converted.add(name.clone(), "Stimuli", &name, cases);
}

/// Returns the notes on the keys of an eval as a whole.
fn of_eval(file: &Path, keys: &Map<String, Value>) -> Vec<Note> {
    let mut notes = Vec::new();
    for section in ["config", "defaults"] {
        for key in keys.get(section).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            let message = match key.as_str() {
                "runs" | "timeout" => continue,
                "model" => "left out: a case names no model; run it with --model",
                "judge_model" => "left out: name the judge with `evals run --judge`",
                "executor" => "left out: run the cases with --harness",
                _ => UNKNOWN,
            };
            notes.push(Note::new(file, format!("{section}.{key}"), message));
        }
    }
    for key in keys.get("scoring").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        let message = match key.as_str() {
            "weights" => continue,
            "threshold" => "left out: it is about the mean of all stimuli; here each case has to pass all graders",
            _ => UNKNOWN,
        };
        notes.push(Note::new(file, format!("scoring.{key}"), message));
    }
    let weights = keys.get("scoring").and_then(|scoring| scoring.get("weights")).and_then(Value::as_object);
    for (kind, weight) in weights.into_iter().flatten() {
        let message = match weight.as_f64() {
            Some(weight) if weight > 0.0 => continue,
            Some(0.0) => "left out: with a weight of 0 the graders of this type would not count; here they must pass",
            _ => "left out: this is not a number above 0",
        };
        notes.push(Note::new(file, format!("scoring.weights.{kind}"), message));
    }
    let known = [
        "name",
        "description",
        "version",
        "type",
        "tags",
        "environment",
        "config",
        "defaults",
        "scoring",
        "stimuli",
        "graders",
        "metadata",
    ];
    let unknown = keys.keys().filter(|key| !known.contains(&key.as_str()));
    notes.extend(unknown.map(|key| Note::new(file, key, UNKNOWN)));
    notes
}

struct Reader<'a> {
    file: &'a Path,
    eval: &'a Map<String, Value>,
    stimulus: &'a Map<String, Value>,
    /// The place of the stimulus in the file.
    key: &'a str,
    case: NewCase,
}

impl Reader<'_> {
    fn note(&mut self, key: &str, message: impl Into<String>) {
        self.case.notes.push(Note::new(self.file, format!("{}.{key}", self.key), message));
    }

    fn set(&mut self, key: &str, value: Value) {
        self.case.keys.insert(key.to_owned(), value);
    }

    /// Returns a setting of the stimulus, or else of the eval.
    fn setting(&self, key: &str) -> Option<&Value> {
        let is_set = |value: &&Value| !value.is_null();
        let own = self.stimulus.get(key).filter(|_| key == "runs").filter(is_set);
        let sections = [(self.stimulus, "config"), (self.eval, "config"), (self.eval, "defaults")];
        let mut found = sections.into_iter().filter_map(|(keys, section)| keys.get(section)?.get(key));
        own.or_else(|| found.find(is_set))
    }

    fn translate(&mut self) -> Result<(), Refused> {
        self.prompts()?;
        if self.eval.get("type").and_then(Value::as_str) == Some("regression") {
            self.set("kind", json!("regression"));
        }
        let tags: Vec<String> =
            [self.eval.get("tags"), self.stimulus.get("tags")].into_iter().flatten().flat_map(tags).collect();
        if !tags.is_empty() {
            let mut once: Vec<String> = Vec::new();
            tags.into_iter().filter_map(|tag| slug(&tag)).for_each(|tag| {
                if !once.contains(&tag) {
                    once.push(tag);
                }
            });
            self.set("tags", json!(once));
        }
        match self.setting("runs").map(Value::as_u64) {
            Some(Some(0)) => return Err(refused("config.runs", "it is 0, so the source only checks the file")),
            Some(Some(runs)) if runs > 1 => self.set("trials", json!(runs)),
            Some(None) => return Err(refused("config.runs", "this is not a whole number")),
            _ => {}
        }
        self.limits()?;
        self.environment()?;
        self.graders()?;
        let unknown: Vec<String> =
            self.stimulus.keys().filter(|key| !STIMULUS.contains(&key.as_str()) && *key != "runs").cloned().collect();
        unknown.iter().for_each(|key| self.note(key, UNKNOWN));
        Ok(())
    }

    fn prompts(&mut self) -> Result<(), Refused> {
        if let Some(turns) = self.stimulus.get("turns").filter(|turns| !turns.is_null()) {
            let texts: Option<Vec<&str>> = turns.as_array().and_then(|turns| turns.iter().map(Value::as_str).collect());
            let texts = texts.ok_or_else(|| refused("turns", "this is not a list of texts"))?;
            if texts.is_empty() || texts.iter().any(|text| text.trim().is_empty()) {
                return Err(refused("turns", "there are no turns, or one is empty"));
            }
            self.set("turns", json!(texts));
            return Ok(());
        }
        let prompt = self.stimulus.get("prompt").and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let prompt = prompt.ok_or_else(|| refused("prompt", "it has no prompt"))?.to_owned();
        if prompt.contains("{{") {
            return Err(refused("prompt", "it has a placeholder that the source replaces"));
        }
        self.set("prompt", json!(prompt));
        Ok(())
    }

    fn limits(&mut self) -> Result<(), Refused> {
        let constraints = match self.stimulus.get("constraints") {
            None | Some(Value::Null) => Map::new(),
            Some(map) => map.as_object().cloned().ok_or_else(|| refused("constraints", "this is not a map"))?,
        };
        let time = typed::word(self.setting("timeout"), "config.timeout")?.unwrap_or_else(|| TIMEOUT.to_owned());
        let mut times = vec![("config.timeout", time)];
        let mut limits = Map::new();
        for (key, value) in &constraints {
            let place = format!("constraints.{key}");
            let count = || value.as_u64().filter(|count| *count > 0);
            match key.as_str() {
                "max_turns" => {
                    let count = count().ok_or_else(|| refused(&place, "this is not a whole number from 1"))?;
                    limits.insert("steps".to_owned(), json!(count));
                }
                "max_tokens" => {
                    let count = count().ok_or_else(|| refused(&place, "this is not a whole number from 1"))?;
                    limits.insert("tokens".to_owned(), json!(count));
                    self.note(&place, "all tokens count here, cached ones too");
                }
                "max_duration" => times.push(("constraints.max_duration", scalar(value).unwrap_or_default())),
                "expect_skills" => {}
                _ => self.note(&place, UNKNOWN),
            }
        }
        let mut shortest: Option<crate::values::Time> = None;
        for (key, text) in times {
            let time = text.parse::<crate::values::Time>().map_err(|why| refused(key, why))?;
            shortest = Some(shortest.map_or(time, |known| if time.0 < known.0 { time } else { known }));
        }
        if let Some(time) = shortest {
            limits.insert("time".to_owned(), json!(time.to_string()));
        }
        self.set("limits", Value::Object(limits));
        Ok(())
    }

    /// Returns the environments that apply: of the eval, then of the stimulus.
    fn environments(&self) -> Result<Vec<Environment>, Refused> {
        let mut found = Vec::new();
        for value in [self.eval.get("environment"), self.stimulus.get("environment")].into_iter().flatten() {
            match value {
                Value::Object(keys) => {
                    found.push(Environment {
                        keys: keys.clone(),
                        folder: source::folder(self.file),
                        name: String::new(),
                    });
                }
                Value::String(name) => found.push(named(self.file, name)?),
                Value::Null => {}
                _ => return Err(refused("environment", "this is neither a map nor a name")),
            }
        }
        Ok(found)
    }

    fn environment(&mut self) -> Result<(), Refused> {
        let mut setup: Vec<Value> = Vec::new();
        // Each skill as the case names it, with its folder in the source.
        let mut skills: Vec<(String, PathBuf)> = Vec::new();
        for Environment { keys, folder, name } in self.environments()? {
            let of = if name.is_empty() { String::new() } else { format!(" (environment `{name}`)") };
            for (key, value) in &keys {
                let place = format!("environment.{key}");
                let is_empty = value.is_null() || *value == json!([]) || *value == json!({});
                let is_list = !is_empty && ["commands", "files", "skills"].contains(&key.as_str());
                let list = if is_list { typed::list(Some(value), &place)? } else { &[] };
                match key.as_str() {
                    _ if is_empty => {}
                    "commands" => {
                        let lines: Option<Vec<String>> = list.iter().map(scalar).collect();
                        let lines = lines.ok_or_else(|| refused(&place, "a command is not a text"))?;
                        setup.extend(lines.into_iter().map(Value::String));
                    }
                    "files" => {
                        for (at, item) in list.iter().enumerate() {
                            let place = format!("{place}[{at}]");
                            let word = |key: &str| item.get(key).and_then(Value::as_str);
                            let src = word("src").filter(|src| !src.trim().is_empty());
                            let src = src.ok_or_else(|| refused(&place, "it has no `src`"))?;
                            let own = || Path::new(src).file_name().map(|name| name.to_string_lossy().into_owned());
                            let dest = word("dest").map(str::to_owned).or_else(own).unwrap_or_default();
                            let files = below_root(&folder, src, dest.trim_start_matches("./"));
                            let files =
                                files.map_err(|why| refused(&place, format!("`{src}` cannot be copied{of}: {why}")))?;
                            self.case.files.extend(files);
                        }
                    }
                    "skills" => {
                        for item in list {
                            let written = item.as_str().unwrap_or_default();
                            let skill = self.skill(&folder, written);
                            let refuse = |why: &str| refused(&place, format!("the skill `{written}`{of}: {why}"));
                            let skill = skill.map_err(|why| refuse(&why))?;
                            match skills.iter().find(|known| known.0 == skill.0) {
                                Some(known) if known.1 == skill.1 => {}
                                Some(_) => return Err(refuse("another skill has the same folder name")),
                                None => skills.push(skill),
                            }
                        }
                    }
                    "mcpServers" => {
                        let names: Vec<&String> = value.as_object().into_iter().flat_map(Map::keys).collect();
                        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                        let why = format!(
                            "it needs MCP servers of the source: {}{of}; write `mcp-servers`",
                            names.join(", ")
                        );
                        return Err(refused(&place, why));
                    }
                    "git" => {
                        let why = "it is a worktree of a repository on this machine; write `workspace.git`";
                        return Err(refused(&place, format!("{why}{of}")));
                    }
                    _ => self.note(&place, format!("{UNKNOWN}{of}")),
                }
            }
        }
        if !setup.is_empty() {
            self.set("workspace", json!({"setup": setup}));
        }
        if !skills.is_empty() {
            let names: Vec<String> = skills.into_iter().map(|(name, _)| name).collect();
            self.set("skills", json!(names));
        }
        Ok(())
    }

    /// Copies a skill beside the case, without the evals of the source, and returns its folder as the case names it, and
    /// in the source.
    fn skill(&mut self, folder: &Path, written: &str) -> Result<(String, PathBuf), String> {
        let path = folder.join(written);
        let path = if path.is_file() { source::folder(&path) } else { path };
        let real = path.canonicalize().map_err(|_| "the folder does not exist".to_owned())?;
        let own = skill::read(&real).map_err(|error| error.to_string())?;
        let evals = source::folder(self.file).canonicalize().unwrap_or_default();
        let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or(own.name);
        let is_yaml = |file: &Path| file.extension().is_some_and(|end| end == "yaml" || end == "yml");
        let is_below = |file: &Path| evals != real && file.starts_with(&evals);
        let files =
            copied::skill(&real, &|file| is_below(file) || (is_yaml(file) && has_stimuli(file).unwrap_or(true)))?;
        let to = format!("skills/{name}");
        for file in files {
            let suffix = format!("{to}/{}", file.to.display());
            if !self.case.beside.iter().any(|beside| beside.suffix == suffix) {
                self.case.add(&suffix, Content::Copy(file.from));
            }
        }
        let stem = self.case.name.rsplit('/').next().unwrap_or(&self.case.name);
        Ok((format!("{stem}.{to}"), real))
    }

    fn graders(&mut self) -> Result<(), Refused> {
        let mut made: Vec<Value> = Vec::new();
        let own = typed::list(self.stimulus.get("graders"), "graders")?;
        let shared = typed::list(self.eval.get("graders"), "graders")?.iter();
        let mut has_own = own.is_empty();
        let all: Vec<(String, &Value, bool)> = shared
            .enumerate()
            .map(|(at, grader)| (format!("graders[{at}]"), grader, false))
            .chain(own.iter().enumerate().map(|(at, grader)| (format!("{}.graders[{at}]", self.key), grader, true)))
            .collect();
        let rubric = typed::texts(self.stimulus.get("rubric"), "rubric")?;
        let weights = self.eval.get("scoring").and_then(|scoring| scoring.get("weights"));
        for (place, grader, is_own) in all {
            let kind = grader.get("type").and_then(Value::as_str).unwrap_or_default();
            match graders::translate(kind, grader, &rubric) {
                Ok((word, mut body)) => {
                    // A shared judge asks for the stimulus's own rubric.
                    has_own |= is_own || (word == "rubric" && !rubric.is_empty());
                    let left_out = graders::left_out(grader);
                    let left_out = left_out.map(|(key, why)| Note::new(self.file, format!("{place}.{key}"), why));
                    self.case.notes.extend(left_out);
                    let weight = weights.and_then(|weights| weights.get(kind)).and_then(Value::as_f64);
                    if let Some(map) = body.as_object_mut() {
                        let name = grader.get("name").and_then(Value::as_str).unwrap_or(kind);
                        map.insert("name".to_owned(), json!(one_line(name)));
                        // A weight of 0 would be a grader that does not count. It is noted with the eval.
                        if let Some(weight) = weight.filter(|weight| *weight > 0.0) {
                            map.insert("weight".to_owned(), number(weight));
                        }
                    }
                    made.push(json!({word: body}));
                }
                Err((key, why)) => {
                    let place = if key.is_empty() { place } else { format!("{place}.{key}") };
                    let message = format!("the grader `{kind}` has no equivalent: {why}");
                    self.case.notes.push(Note::new(self.file, place, message).of_lost_grader());
                }
            }
        }
        let expected = self.stimulus.get("constraints").and_then(|constraints| constraints.get("expect_skills"));
        let skills = typed::texts(expected, "constraints.expect_skills")?;
        if !skills.is_empty() {
            has_own = true;
            made.push(json!({"skills": {"name": "expect_skills", "used": skills}}));
        }
        if made.is_empty() {
            return Err(refused("graders", "none of its graders has an equivalent"));
        }
        // What is left would be another test: often any answer passes it.
        if !has_own {
            return Err(refused("graders", "none of its own graders has an equivalent"));
        }
        self.set("graders", json!(made));
        Ok(())
    }
}

/// An environment, and the folder that its paths are relative to.
struct Environment {
    keys: Map<String, Value>,
    folder: PathBuf,
    /// The name in `.vally.yaml`, if any.
    name: String,
}

/// Returns the environment of this name from the nearest `.vally.yaml` above a file.
fn named(file: &Path, name: &str) -> Result<Environment, Refused> {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let settings = absolute.ancestors().skip(1).map(|folder| folder.join(".vally.yaml")).find(|path| path.is_file());
    let unknown = |why: &str| refused("environment", format!("the environment `{name}` {why}"));
    let settings = settings.ok_or_else(|| unknown("is not known: there is no `.vally.yaml` above the file"))?;
    let value = source::value(&settings).map_err(|_| unknown("is not known: `.vally.yaml` cannot be read"))?;
    let found = value.get("environments").and_then(|all| all.get(name)).and_then(Value::as_object);
    let keys = found.ok_or_else(|| unknown("is not in `.vally.yaml`"))?.clone();
    // Its paths are relative to the eval that uses it.
    Ok(Environment { keys, folder: source::folder(file), name: name.to_owned() })
}

/// Returns the files at a path that may lead out of the eval's folder, but not out of the project around it.
fn below_root(folder: &Path, src: &str, dest: &str) -> Result<Vec<copied::Copied>, String> {
    let failed = |_| "it does not exist".to_owned();
    let real = folder.join(src).canonicalize().map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    // The project is the repository, or else the folder with the settings.
    let with = |name: &str| folder.ancestors().find(|above| above.join(name).exists());
    let root = with(".git").or_else(|| with(".vally.yaml")).unwrap_or(&folder);
    let below = real.strip_prefix(root).map_err(|_| "it leads out of the project".to_owned())?;
    let to = dest.trim_end_matches('/');
    if to.is_empty() || to == "." {
        return copied::all(&real, Path::new(""));
    }
    copied::below(root, &below.to_string_lossy(), Path::new(to))
}

/// Returns tags: a list, or a map whose entries become `key-value`.
fn tags(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| {
                let values = super::parts::texts(value).unwrap_or_default();
                values.into_iter().map(move |value| format!("{key}-{value}")).collect::<Vec<_>>()
            })
            .collect(),
        other => super::parts::texts(other).unwrap_or_default(),
    }
}

//! Agent Skills: `evals/evals.json` of a skill, and trigger sets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Converted, Group, NewCase, Note, UNKNOWN, copied, one_line, prompt_paths, slug, source, unique, whole};
use crate::skill;
use crate::yaml::{self, YamlError};

/// The maximum number of folders between a file and the skill it belongs to.
const ABOVE: usize = 4;

/// Reads the cases of a skill folder, of its `evals` folder, or of a file.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let files = files(path).map_err(|error| vec![error])?;
    let is_single = files.len() == 1;
    let mut converted = Converted::default();
    let mut evals = Reader::new(path);
    let mut sets = Vec::new();
    for file in &files {
        let value = read(file).map_err(|error| vec![error])?;
        match value {
            Value::Object(map) if map.get("evals").is_some_and(Value::is_array) => {
                converted.evals.push(file.clone());
                evals.evals(file, &map);
            }
            Value::Array(list) if !list.is_empty() && list.iter().all(|item| item.get("query").is_some()) => {
                converted.evals.push(file.clone());
                sets.push((file, list));
            }
            _ => {
                let message = "the file is neither `{skill_name, evals: […]}` nor a list of `{query, should_trigger}`";
                if is_single {
                    return Err(vec![whole(file, message)]);
                }
                converted.notes.push(Note::new(file, "", message));
            }
        }
    }
    let skill = evals.skill.clone();
    let known = evals.name();
    let mut triggers = Reader { cases: Vec::new(), notes: Vec::new(), ..evals.clone() };
    for (file, list) in &sets {
        match &known {
            Some(name) => triggers.triggers(file, list, name),
            None => triggers.notes.push(Note::new(
                file,
                "",
                "no case was written: the name of the skill is unknown, as no SKILL.md belongs to the file",
            )),
        }
    }
    let name = known.unwrap_or_else(|| "skill".to_owned());
    let note = |what: &str| Note::new(path, "", what);
    match &skill {
        Some(folder) => converted.skills.push(folder.clone()),
        None => converted.notes.push(note("no SKILL.md belongs to these files, so no experiment is written")),
    }
    converted.notes.extend(evals.notes);
    converted.notes.extend(triggers.notes);
    let file_name = slug(&name).unwrap_or_else(|| "skill".to_owned());
    for (cases, suffix, is_compared, what) in [
        (evals.cases, "", true, format!("Does the skill {name} help?")),
        (triggers.cases, "-triggers", false, format!("Is the skill {name} used when it should be, and only then?")),
    ] {
        if !cases.is_empty() {
            let description = one_line(&what);
            converted.groups.push(Group { name: format!("{file_name}{suffix}"), description, is_compared, cases });
        }
    }
    Ok(converted)
}

/// Returns the JSON files at a path.
fn files(path: &Path) -> Result<Vec<PathBuf>, YamlError> {
    let found = std::fs::metadata(path).map_err(|error| whole(path, format!("the path could not be read: {error}")))?;
    if !found.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let below = path.join("evals");
    let folder = if below.is_dir() { below } else { path.to_owned() };
    let paths = source::entries_in(&folder)?.into_iter().map(|(path, _)| path);
    let files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "json") && path.is_file()).collect();
    if files.is_empty() {
        let message = "the folder contains no JSON file";
        return Err(whole(&folder, message).with_help("name a skill folder with evals/evals.json, or a JSON file"));
    }
    Ok(files)
}

/// Returns true if a file is JSON with cases, or with a trigger set.
pub fn holds_evals(file: &Path) -> bool {
    let has = |item: &Value, key: &str| item.get(key).is_some();
    let is_case =
        |item: &Value| ["prompt", "expected_output", "expectations", "assertions"].iter().any(|key| has(item, key));
    let is_json = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    match is_json.then(|| read(file)) {
        Some(Ok(Value::Object(map))) => {
            map.get("evals").and_then(Value::as_array).is_some_and(|list| list.iter().any(is_case))
        }
        Some(Ok(Value::Array(list))) => list.iter().any(|item| has(item, "query") && has(item, "should_trigger")),
        _ => false,
    }
}

fn read(path: &Path) -> Result<Value, YamlError> {
    let text = yaml::read(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = (before + error.column().saturating_sub(1)).min(text.len());
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        YamlError::at(path, &text, Some(at..at + 1), format!("this is not JSON: {message}"))
    })
}

/// Reads the files of one skill.
#[derive(Clone)]
struct Reader {
    skill: Option<PathBuf>,
    written_name: Option<String>,
    cases: Vec<NewCase>,
    notes: Vec<Note>,
}

impl Reader {
    fn new(path: &Path) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let above = absolute.ancestors().take(ABOVE).find(|folder| skill::file(folder).is_ok());
        Self { skill: above.map(Path::to_owned), written_name: None, cases: Vec::new(), notes: Vec::new() }
    }

    /// Returns the name by which the agent knows the skill.
    fn name(&self) -> Option<String> {
        let own = self.skill.as_deref().and_then(|folder| skill::read(folder).ok()).map(|skill| skill.name);
        own.or_else(|| self.written_name.clone())
    }

    fn evals(&mut self, file: &Path, map: &Map<String, Value>) {
        for (key, value) in map {
            match (key.as_str(), value) {
                ("skill_name", Value::String(name)) => {
                    self.written_name = Some(name.clone());
                    if let Some(own) = self.name().filter(|own| own != name) {
                        let message = format!("the skill is named `{own}` in its SKILL.md, which is used");
                        self.notes.push(Note::new(file, key, message));
                    }
                }
                ("evals", _) => {}
                _ => self.notes.push(Note::new(file, key, UNKNOWN)),
            }
        }
        for (number, item) in map.get("evals").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let key = format!("evals[{number}]");
            match item {
                Value::Object(item) => self.eval(file, &key, number, item),
                _ => self.notes.push(Note::new(file, key, "no case was written: this is not an object")),
            }
        }
    }

    fn eval(&mut self, file: &Path, key: &str, number: usize, item: &Map<String, Value>) {
        let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let Some(prompt) = text("prompt") else {
            self.notes.push(Note::new(file, key, "no case was written: `prompt` is missing"));
            return;
        };
        let mut notes = Vec::new();
        let known = [
            "id",
            "name",
            "eval_name",
            "prompt",
            "expected_output",
            "files",
            "expectations",
            "assertions",
            "description",
            "note",
            "notes",
        ];
        let remarks = ["description", "note", "notes"].into_iter().filter_map(text).map(str::to_owned).collect();
        for unknown in item.keys().filter(|name| !known.contains(&name.as_str())) {
            notes.push(Note::new(file, format!("{key}.{unknown}"), UNKNOWN));
        }
        let mut criteria = Vec::new();
        for list in ["expectations", "assertions"] {
            let Some(value) = item.get(list) else { continue };
            let Some(entries) = value.as_array() else {
                notes.push(Note::new(file, format!("{key}.{list}"), "left out: this is not a list"));
                continue;
            };
            let mut left = BTreeSet::new();
            for (at, entry) in entries.iter().enumerate() {
                match expectation(entry) {
                    Some((text, others)) => {
                        let id = format!("expectation-{}", criteria.len() + 1);
                        criteria.push(json!({"id": id, "ask": format!("Does this hold? {text}")}));
                        left.extend(others);
                    }
                    None => {
                        let message = "left out: this is neither a text nor a map with a text in it";
                        notes.push(Note::new(file, format!("{key}.{list}[{at}]"), message));
                    }
                }
            }
            if !left.is_empty() {
                let names: Vec<String> = left.iter().map(|name| format!("`{name}`")).collect();
                let message = format!("only the texts are used; left out: {}", names.join(", "));
                notes.push(Note::new(file, format!("{key}.{list}"), message));
            }
        }
        let expected = text("expected_output");
        let mut rubric = Map::new();
        match (expected, criteria.is_empty()) {
            (Some(expected), false) => {
                drop(rubric.insert("about".to_owned(), json!(format!("The expected result: {expected}"))))
            }
            (Some(expected), true) => {
                criteria.push(json!({"id": "expected-output", "ask": format!("Is this the result? {expected}")}));
                let message = "there are no expectations, so this description is the only criterion";
                notes.push(Note::new(file, format!("{key}.expectations"), message));
            }
            (None, false) => {}
            (None, true) => {
                let message = "no case was written: there are neither expectations nor an expected output to grade";
                self.notes.extend(notes);
                self.notes.push(Note::new(file, key, message));
                return;
            }
        }
        // Expectations are about the answer too, which a judge does not see by itself.
        rubric.insert("show".to_owned(), json!(["closing"]));
        rubric.insert("criteria".to_owned(), Value::Array(criteria));
        let mut files = Vec::new();
        match item.get("files") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                let written: BTreeSet<&str> = list.iter().filter_map(Value::as_str).map(clean).collect();
                let mut seen = BTreeSet::new();
                for (at, entry) in list.iter().enumerate() {
                    // The same file is named again.
                    if entry.as_str().is_some_and(|path| !seen.insert(clean(path).trim_end_matches('/'))) {
                        continue;
                    }
                    let place = format!("{key}.files[{at}]");
                    match self.input(file, entry, &written) {
                        Ok((mut copied, to)) => {
                            if !prompt_paths::names(prompt, &to) {
                                let message = match moved(&mut copied, &to, prompt, &files) {
                                    Some(to) => format!("the file is `{to}` in the workspace, as the prompt names it"),
                                    None => {
                                        format!("the file is `{to}` in the workspace, which the prompt does not name")
                                    }
                                };
                                notes.push(Note::new(file, place, message));
                            }
                            files.extend(copied);
                        }
                        Err(why) => {
                            notes.push(Note::new(file, place, format!("the file is not in the workspace: {why}")))
                        }
                    }
                }
            }
            Some(_) => notes.push(Note::new(file, format!("{key}.files"), "left out: this is not a list")),
        }
        if let Some(path) = taken_twice(&files) {
            let path = path.display();
            let message = format!("no case was written: two of its files would be `{path}` in the workspace");
            self.notes.extend(notes);
            self.notes.push(Note::new(file, format!("{key}.files"), message));
            return;
        }
        let id = match item.get("id") {
            Some(Value::String(id)) => Some(id.clone()),
            Some(Value::Number(id)) => Some(format!("eval-{id}")),
            _ => None,
        };
        let name = text("name").or_else(|| text("eval_name")).map(str::to_owned).or(id).as_deref().and_then(slug);
        let name = unique(name.unwrap_or_else(|| format!("eval-{}", number + 1)), &self.cases);
        let mut keys = Map::new();
        keys.insert("prompt".to_owned(), json!(prompt));
        keys.insert("graders".to_owned(), json!([{"rubric": rubric}]));
        self.cases.push(NewCase { keys, remarks, notes, files, ..NewCase::new(name, file) });
    }

    /// Returns the files of an entry of `files`, and the path in the workspace. `all` are the paths of all entries.
    fn input(&self, file: &Path, entry: &Value, all: &BTreeSet<&str>) -> Result<(Vec<copied::Copied>, String), String> {
        let Some(path) = entry.as_str().map(clean) else { return Err("this is not a path".to_owned()) };
        let whole = path.trim_end_matches('/');
        let is_other = |other: &str| other.trim_end_matches('/') != whole;
        let is_taken = all.iter().any(|other| is_other(other) && in_workspace(other) == in_workspace(path));
        let to = if is_taken { whole } else { in_workspace(path) };
        // By the convention, paths are relative to the skill; in some files they are relative to the file.
        let beside = file.parent().map(Path::to_owned);
        let folders: Vec<PathBuf> = self.skill.iter().cloned().chain(beside).collect();
        let mut why = None;
        for folder in &folders {
            match copied::below(folder, path, Path::new(to)) {
                Ok(copied) => return Ok((copied, to.to_owned())),
                Err(error) => why = why.or(Some(error)),
            }
        }
        Err(why.unwrap_or_else(|| "the file does not exist".to_owned()))
    }

    fn triggers(&mut self, file: &Path, list: &[Value], skill: &str) {
        for (number, item) in list.iter().enumerate() {
            let key = format!("[{number}]");
            let query = item.get("query").and_then(Value::as_str).map(str::trim).filter(|query| !query.is_empty());
            let (Some(query), Some(should)) = (query, item.get("should_trigger").and_then(Value::as_bool)) else {
                let message = "no case was written: it needs a text `query`, and `should_trigger` as true or false";
                self.notes.push(Note::new(file, key, message));
                continue;
            };
            let known = |name: &&String| ["query", "should_trigger"].contains(&name.as_str());
            let names = item.as_object().into_iter().flat_map(Map::keys);
            let notes: Vec<Note> = names
                .filter(|name| !known(name))
                .map(|unknown| Note::new(file, format!("{key}.{unknown}"), UNKNOWN))
                .collect();
            let word = if should { "used" } else { "not-used" };
            let mut keys = Map::new();
            keys.insert("prompt".to_owned(), json!(query));
            keys.insert("tags".to_owned(), json!([format!("skill-{word}")]));
            keys.insert("graders".to_owned(), json!([{"skills": {word: [skill]}}]));
            let name = unique(format!("{word}-{}", number + 1), &self.cases);
            self.cases.push(NewCase { keys, notes, ..NewCase::new(name, file) });
        }
    }
}

fn clean(path: &str) -> &str {
    path.trim_start_matches("./")
}

/// Returns the path in the workspace of a path of `files`, unless another one has the same.
fn in_workspace(path: &str) -> &str {
    let own = ["evals/files/", "evals/", "files/"].iter().find_map(|folder| path.strip_prefix(folder));
    own.unwrap_or(path).trim_end_matches('/')
}

/// Returns a path in the workspace that two files would have, or a file and the folder of another one.
fn taken_twice(files: &[copied::Copied]) -> Option<&Path> {
    let mut files: Vec<&copied::Copied> = files.iter().collect();
    // A folder comes directly before what is in it.
    files.sort_by(|one, other| one.to.cmp(&other.to));
    files.windows(2).find_map(|pair| match pair {
        [one, other] => {
            let is_same = one.to == other.to && one.from == other.from;
            (other.to.starts_with(&one.to) && !is_same).then_some(&*one.to)
        }
        _ => None,
    })
}

/// Moves files to the only path of the prompt that ends in their name, and returns it. `others` are files that stay.
fn moved(files: &mut [copied::Copied], to: &str, prompt: &str, others: &[copied::Copied]) -> Option<String> {
    let path = prompt_paths::only_path_to(prompt, Path::new(to).file_name()?.to_str()?)?;
    if others.iter().any(|other| other.to.starts_with(&path)) {
        return None;
    }
    for file in files {
        let below = file.to.strip_prefix(to).unwrap_or(Path::new(""));
        file.to = if below.as_os_str().is_empty() { PathBuf::from(&path) } else { Path::new(&path).join(below) };
    }
    Some(path)
}

/// Returns the text of an expectation, and the keys beside it.
fn expectation(entry: &Value) -> Option<(String, Vec<String>)> {
    let clean = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    match entry {
        Value::String(text) => Some((clean(text)?, Vec::new())),
        Value::Object(map) => {
            let keys = ["text", "description", "expectation", "assertion"];
            let (key, text) = keys.iter().find_map(|key| Some((*key, map.get(*key)?.as_str()?)))?;
            let left = map.keys().filter(|name| *name != key && *name != "id").cloned().collect();
            Some((clean(text)?, left))
        }
        _ => None,
    }
}

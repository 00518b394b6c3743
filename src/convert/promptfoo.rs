//! promptfoo: each test of a configuration, with each prompt, becomes a case.

use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::refused::unread;
use super::source::Visit;
use super::{Converted, Group, NewCase, Note, copied, one_line, slug, source, template, unique, whole};
use crate::yaml::YamlError;

mod asserts;
pub mod check;
mod prompts;
mod rows;
mod script;
pub mod values;

use prompts::Prompt;
use rows::Test;

/// The maximum number of cases of a configuration.
const MAX_CASES: usize = 5_000;
/// The keys of a configuration that do not change what a test checks.
const IDLE: [&str; 15] = [
    "description",
    "prompts",
    "providers",
    "targets",
    "tests",
    "defaultTest",
    "scenarios",
    "evaluateOptions",
    "commandLineOptions",
    "outputPath",
    "sharing",
    "tags",
    "metadata",
    "$schema",
    "assertionTemplates",
];

/// The maps with the number of repetitions, the one that counts first.
const REPEAT: [&str; 2] = ["commandLineOptions", "evaluateOptions"];

/// The maximum number of templates that name another one.
const MAX_TEMPLATE_DEPTH: usize = 8;

/// Puts assertions in the place of references to them, as the source does: keys beside the reference come before those of the
/// template.
fn fill_templates(value: &mut Value, templates: &Map<String, Value>, depth: usize) {
    if let Value::Object(map) = value {
        let reference = map.get("$ref").and_then(Value::as_str);
        let name = reference.and_then(|text| text.strip_prefix("#/assertionTemplates/"));
        let name = name.map(|name| name.replace("~1", "/").replace("~0", "~"));
        if let Some(Value::Object(template)) =
            name.and_then(|name| templates.get(&name)).filter(|_| depth < MAX_TEMPLATE_DEPTH)
        {
            map.remove("$ref");
            let mut whole = template.clone();
            whole.append(map);
            *value = Value::Object(whole);
            return fill_templates(value, templates, depth + 1);
        }
        map.values_mut().for_each(|value| fill_templates(value, templates, depth));
    } else if let Value::Array(list) = value {
        list.iter_mut().for_each(|value| fill_templates(value, templates, depth));
    }
}

fn whole_number(value: &Value) -> Option<u64> {
    value.as_u64().filter(|number| *number > 0)
}

/// Reads the tests of a configuration, or of all configurations below a folder.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let found = std::fs::metadata(path);
    let kind = found.map_err(|error| vec![whole(path, format!("the path could not be read: {error}"))])?;
    let mut converted = Converted::default();
    let files = match kind.is_dir() {
        true => source::entries_below(path, &visit, &mut converted.notes),
        false => vec![path.to_owned()],
    };
    if files.is_empty() {
        let error = whole(path, "there is no promptfooconfig.yaml, .yml or .json in the folder or below it");
        return Err(source::nothing_found(&converted.notes, error.with_help("name the file of a configuration")));
    }
    for file in &files {
        let read = Config::read(file).map(|config| config.group(&mut converted.notes));
        match read {
            Ok(None) => {}
            Ok(Some(mut group)) => {
                let is_taken = |name: &str| converted.groups.iter().any(|group| group.name == name);
                let name = group.name.clone();
                let mut names = std::iter::once(name.clone()).chain((2_u64..).map(|number| format!("{name}-{number}")));
                group.name = names.find(|name| !is_taken(name)).unwrap_or(name);
                converted.groups.push(group);
            }
            Err(errors) if files.len() == 1 => return Err(errors),
            // One configuration that cannot be read does not hide the others.
            Err(errors) => {
                converted.notes.extend(errors.iter().map(|error| unread(error.path(), error)));
            }
        }
    }
    Ok(converted)
}

/// Takes configurations.
fn visit(path: &Path, kind: FileType) -> io::Result<Visit> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if name.starts_with('.') || name == "node_modules" {
        return Ok(Visit::LeaveOut);
    }
    let is_known = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
    let is_wanted = kind.is_file() && name.starts_with("promptfooconfig") && is_known;
    Ok(if is_wanted { Visit::Take } else { Visit::Search })
}

/// A configuration while it is converted.
struct Config<'a> {
    file: &'a Path,
    folder: PathBuf,
    keys: Map<String, Value>,
    notes: Vec<Note>,
    cases: Vec<NewCase>,
    workspace: Vec<copied::Copied>,
}

impl<'a> Config<'a> {
    fn read(file: &'a Path) -> Result<Self, Vec<YamlError>> {
        let name = file.to_string_lossy();
        if [".js", ".ts", ".mjs", ".cjs", ".mts"].iter().any(|end| name.ends_with(end)) {
            let message = "a configuration that is a program cannot be read; write it as YAML or JSON";
            return Err(vec![whole(file, message)]);
        }
        let Value::Object(mut keys) = values::read(file, false)? else {
            return Err(vec![whole(file, "a configuration of promptfoo must be a map of keys")]);
        };
        if !["prompts", "tests", "providers", "targets", "scenarios"].iter().any(|key| keys.contains_key(*key)) {
            return Err(vec![whole(
                file,
                "this is not a configuration of promptfoo: it has no `prompts` and no `tests`",
            )]);
        }
        if let Some(templates) = keys.get("assertionTemplates").and_then(Value::as_object).cloned() {
            for key in ["defaultTest", "scenarios", "tests"] {
                keys.get_mut(key).into_iter().for_each(|value| fill_templates(value, &templates, 0));
            }
        }
        let (notes, cases, workspace) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { file, folder: source::folder(file), keys, notes, cases, workspace })
    }

    fn note(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.notes.push(Note::new(self.file, key, message));
    }

    /// Converts every test, and returns the group unless there is none.
    fn group(mut self, notes: &mut Vec<Note>) -> Option<Group> {
        self.whole_configuration();
        let prompts = prompts::all(self.keys.get("prompts"), self.file, &self.folder, &mut self.notes);
        let (mut defaults, tests) = rows::all(&self.keys, self.file, &self.folder, &mut self.notes);
        if self.is_transformed() {
            let why = "a provider has a `transform`, which changes the answer before it is checked";
            defaults.refuse("providers", why);
        }
        if !prompts.is_empty() {
            for test in &tests {
                self.test(test, &defaults, &prompts);
            }
            if tests.is_empty() {
                self.note("tests", "no case was written: there is no test");
            }
        }
        notes.append(&mut self.notes);
        let stem = self.file.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let absolute = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let parent = absolute.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = match stem.strip_prefix("promptfooconfig") {
            Some(rest) => format!("{parent} {rest}"),
            None => stem,
        };
        let description = self.keys.get("description").and_then(Value::as_str).unwrap_or(&name);
        (!self.cases.is_empty()).then(|| Group {
            name: slug(&name).unwrap_or_else(|| "promptfoo".to_owned()),
            description: one_line(description),
            is_compared: false,
            cases: self.cases,
        })
    }

    /// Adds notes about the keys that belong to no test.
    fn whole_configuration(&mut self) {
        let providers = self.keys.get("providers").or_else(|| self.keys.get("targets")).cloned();
        let key = if self.keys.contains_key("providers") { "providers" } else { "targets" };
        if let Some(providers) = providers {
            let list = match providers {
                Value::Array(list) => list,
                other => vec![other],
            };
            let mut folder = None;
            for provider in &list {
                let config = provider.get("config").or_else(|| provider.as_object()?.values().next()?.get("config"));
                folder = folder.or_else(|| config?.get("working_dir")?.as_str().map(str::to_owned));
            }
            self.note(key, "left out: a case names no model; run it with --harness and --model");
            match folder {
                Some(path) if list.len() == 1 => match copied::all(&self.folder.join(&path), Path::new("")) {
                    Ok(files) => {
                        self.workspace = files;
                        self.note(key, format!("the files of `{path}` are in the workspace, a copy for each trial"));
                    }
                    Err(why) => self.note(key, format!("`{path}` is not in the workspace: {why}")),
                },
                Some(path) => self.note(key, format!("`{path}` is not in the workspace: there are several providers")),
                None => {}
            }
        }
        let unknown: Vec<String> = self.keys.keys().filter(|key| !IDLE.contains(&key.as_str())).cloned().collect();
        for key in unknown {
            let message = match key.as_str() {
                "env" => "left out: write the variables that the code of assertions reads into `env` of the cases",
                _ => "the key has no equivalent, and was left out",
            };
            self.note(key, message);
        }
        for key in ["evaluateOptions", "commandLineOptions"] {
            let names: Vec<String> =
                self.keys.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect();
            for name in names.iter().filter(|name| *name != "repeat") {
                self.note(format!("{key}.{name}"), "left out: `evals run` has options of its own");
            }
        }
        let wrong = REPEAT.iter().find(|key| self.repeat(key).is_some_and(|repeat| whole_number(repeat).is_none()));
        if let Some(key) = wrong {
            self.note(format!("{key}.repeat"), "left out: this is not a whole number from 1");
        }
    }

    /// Returns a number of repetitions.
    fn repeat(&self, key: &str) -> Option<&Value> {
        self.keys.get(key)?.get("repeat").filter(|repeat| !repeat.is_null())
    }

    /// Returns true if a provider changes the answers.
    fn is_transformed(&self) -> bool {
        let providers = ["providers", "targets"].iter().filter_map(|key| self.keys.get(*key)?.as_array()).flatten();
        let mut maps =
            providers.flat_map(|provider| [Some(provider), provider.as_object().and_then(|map| map.values().next())]);
        maps.any(|map| map.and_then(|map| map.get("transform")).is_some_and(|value| !value.is_null()))
    }

    fn trials(&self) -> Option<u64> {
        let repeat = REPEAT.iter().find_map(|key| self.repeat(key))?;
        whole_number(repeat).filter(|repeat| *repeat > 1)
    }

    /// Writes the cases of a test: one for each prompt and each combination of variables.
    fn test(&mut self, test: &Test, defaults: &Test, prompts: &[Prompt]) {
        let merged = test.with_defaults(defaults);
        if let Some((key, why)) = merged.refused() {
            let key = format!("{}.{key}", test.key);
            self.notes.push(Note::new(&test.file, key, format!("no case was written: {why}")).on(test.line));
            return;
        }
        let combinations = merged.combinations(&self.folder);
        let combinations = combinations.and_then(|all| all.iter().try_for_each(values::known).map(|()| all));
        let combinations = match combinations {
            Ok(combinations) => combinations,
            Err(why) => {
                let key = format!("{}.vars", test.key);
                self.notes.push(Note::new(&test.file, key, format!("no case was written: {why}")).on(test.line));
                return;
            }
        };
        let is_wanted = |prompt: &&Prompt| merged.prompts.as_ref().is_none_or(|wanted| prompt.is_one_of(wanted));
        if !prompts.iter().any(|prompt| is_wanted(&prompt)) {
            let why = "no case was written: no prompt has one of these names";
            self.notes.push(Note::new(&test.file, format!("{}.prompts", test.key), why).on(test.line));
        }
        for (number, prompt) in prompts.iter().enumerate().filter(|(_, prompt)| is_wanted(prompt)) {
            for (index, vars) in combinations.iter().enumerate() {
                if self.cases.len() >= MAX_CASES {
                    self.note("tests", format!("there are more than {MAX_CASES} cases; the rest was left out"));
                    return;
                }
                let mut name = merged.name.clone();
                if prompts.len() > 1 {
                    name = format!("{name}-prompt-{}", number + 1);
                }
                if combinations.len() > 1 {
                    name = format!("{name}-{}", index + 1);
                }
                let name = unique(name, &self.cases);
                self.case(name, &merged, prompt, vars);
            }
        }
    }

    fn case(&mut self, name: String, test: &Test, prompt: &Prompt, vars: &Map<String, Value>) {
        let mut case = NewCase::new(name, self.file);
        let here =
            |key: &str, message: String| Note::new(&test.file, format!("{}{key}", test.key), message).on(test.line);
        let mut missing = Vec::new();
        let prefix = test.option_text("prefix");
        let suffix = test.option_text("suffix");
        let filled = prompt.filled(vars, &prefix, &suffix, &mut missing);
        let (system, text) = match filled {
            Ok(filled) => filled,
            Err(why) => {
                let why = format!("no case was written with the prompt `{}`: {why}", prompt.name());
                self.notes.push(here("", why));
                return;
            }
        };
        missing.sort();
        missing.dedup();
        if !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            case.notes.push(here(".vars", format!("no value for {}; the prompt is empty there", names.join(", "))));
        }
        if text.trim().is_empty() {
            self.notes.push(here("", "no case was written: the prompt is empty".to_owned()));
            return;
        }
        if let Some(description) = &test.description {
            let filled = template::fill(description, vars).map(|(text, _)| text);
            case.keys
                .insert("description".to_owned(), json!(one_line(&filled.unwrap_or_else(|_| description.clone()))));
        }
        case.keys.insert("prompt".to_owned(), json!(text));
        if let Some(system) = system {
            case.keys.insert("system-prompt".to_owned(), json!(system));
        }
        if let Some(trials) = self.trials() {
            case.keys.insert("trials".to_owned(), json!(trials));
        }
        case.files.clone_from(&self.workspace);
        case.notes.extend(test.notes.iter().cloned());
        let context =
            asserts::Context { folder: &self.folder, vars, prompt: &text, threshold: test.threshold, own: test.own };
        match asserts::convert(&test.asserts, &context, &mut case) {
            Ok(graders) => {
                case.keys.insert("graders".to_owned(), Value::Array(graders));
                if let Some(threshold) = test.threshold {
                    case.keys.insert("pass".to_owned(), json!({"threshold": threshold}));
                }
                self.cases.push(case);
            }
            Err(why) => {
                self.notes.append(&mut case.notes);
                self.notes.push(here("", format!("no case was written: {why}")));
            }
        }
    }
}

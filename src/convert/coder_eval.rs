//! coder-eval: a task in a YAML file, with one case for each row of its dataset.

use std::collections::HashSet;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::parts::{self, is_one, number, scalar};
use super::refused::{Refused, refused};
use super::restrictions::restricting;
use super::source::Visit;
use super::{Content, Converted, NewCase, Note, UNKNOWN, copied, one_line, slug, source, typed, unique, whole};
use crate::text::shell_word;
use crate::yaml::{self, YamlError};

mod criteria;
mod ignored;
mod rows;

use rows::{Row, TaskText};

/// The keys in which the source puts values of rows.
const FILLED: [&str; 2] = ["initial_prompt", "success_criteria"];

/// The folder of the task's files in the workspace while no command of a grader runs.
const HIDDEN: &str = ".evals-task";
/// The maximum number of the task's files.
const MAX_HIDDEN_FILES: usize = 200;
/// A script that runs a command while the task's files are outside of the workspace, in which the source has none of them.
const WITH_TASK: &str = include_str!("coder_eval/with_task.sh");
/// The name of this script in the folder.
const SCRIPT: &str = "with_task.sh";

/// The conditions, in CEL, that hold unless a limit other than `max_turns` ended the session.
const OTHER_LIMITS: [&str; 4] = [
    "stop.reason != 'timed_out'",
    "stop.reason != 'idle'",
    "stop.reason != 'max_budget'",
    "(!has(stop.detail) || stop.detail != 'tool-calls')",
];
/// The note on a task with `max_turns`.
const AFTER_TURNS: &str = "the criteria decide when the turns are used up (`on-limit: grade`); a limit of tokens or cost that \
    a suite or `--limit` adds fails a trial only if it ends the session";

/// Reads a task, or all tasks below a folder.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let found = std::fs::metadata(path);
    let kind = found.map_err(|error| vec![whole(path, format!("the path could not be read: {error}"))])?;
    let mut unsearched = Vec::new();
    let files = match kind.is_file() {
        true => vec![path.to_owned()],
        false => source::entries_below(path, &visit, &mut unsearched),
    };
    let mut converted = Converted::default();
    let mut cases: Vec<NewCase> = Vec::new();
    let mut is_task = false;
    for file in &files {
        let is_it = |keys: &Map<String, Value>| keys.contains_key("task_id") && keys.contains_key("success_criteria");
        let other = "this is not a task of coder-eval: it has no `task_id` and no `success_criteria`";
        // Experiments and other files lie among the tasks.
        let keys = source::of_format(file, kind.is_file(), is_it, other, &mut converted.notes)?;
        let Some(keys) = keys else { continue };
        is_task = true;
        task(file, &keys, &mut cases, &mut converted.notes);
    }
    if !is_task && converted.notes.is_empty() {
        let error = whole(path, "no file here or below is a task of coder-eval, with `task_id`");
        return Err(source::nothing_found(&unsearched, error));
    }
    converted.notes.extend(unsearched);
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let own = if kind.is_file() { absolute.file_stem() } else { absolute.file_name() };
    let name = own.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = slug(&name).unwrap_or_else(|| "coder-eval".to_owned());
    converted.add(name.clone(), "Tasks", &name, cases);
    Ok(converted)
}

/// Takes YAML files.
fn visit(path: &Path, kind: FileType) -> io::Result<Visit> {
    let is_private = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    Ok(match kind.is_dir() {
        true if is_private => Visit::LeaveOut,
        false if is_yaml => Visit::Take,
        _ => Visit::Search,
    })
}

/// Adds the cases of a task.
fn task(file: &Path, keys: &Map<String, Value>, cases: &mut Vec<NewCase>, notes: &mut Vec<Note>) {
    let rows = rows::of_task(file, keys).and_then(|rows| {
        let text = TaskText::read(file).map_err(|error| refused("dataset", error.to_string()))?;
        Ok((rows, text))
    });
    let (rows, text) = match rows {
        Ok(found) => found,
        Err((key, why)) => return notes.push(Note::new(file, key, format!("no case was written: {why}"))),
    };
    let id = keys.get("task_id").and_then(scalar).unwrap_or_default();
    for row in &rows {
        let written = row.as_ref().map_or_else(|| id.clone(), |row| format!("{id} {}", row.id));
        let name = unique(slug(&written).unwrap_or_else(|| "task".to_owned()), cases);
        let row = row.as_ref().map(|row| (row, &text));
        let mut reader = Reader { file, keys: keys.clone(), row, case: NewCase::new(name, file) };
        match reader.translate() {
            Ok(()) => cases.push(reader.case),
            Err((key, why)) => {
                notes.extend(reader.case.notes);
                notes.push(Note::new(file, key, format!("no case was written for `{written}`: {why}")));
            }
        }
    }
}

struct Reader<'a> {
    file: &'a Path,
    keys: Map<String, Value>,
    row: Option<(&'a Row, &'a TaskText)>,
    case: NewCase,
}

impl Reader<'_> {
    fn at(&self, path: &[&str]) -> Option<&Value> {
        parts::at(&self.keys, path)
    }

    fn note(&mut self, key: &str, message: impl Into<String>) {
        self.case.notes.push(Note::new(self.file, key, message));
    }

    fn set(&mut self, key: &str, value: Value) {
        self.case.keys.insert(key.to_owned(), value);
    }

    /// Refuses a key that is no map: the keys below it would not be read.
    fn maps(&self) -> Result<(), Refused> {
        let keys = ["agent", "sandbox", "run_limits", "simulation"];
        let other = keys.into_iter().find(|key| self.at(&[key]).is_some_and(|value| !value.is_object()));
        other.map_or(Ok(()), |key| Err(refused(key, "this is not a map")))
    }

    fn translate(&mut self) -> Result<(), Refused> {
        self.maps()?;
        if typed::flag(self.at(&["skip"]), "skip")?.unwrap_or(false) {
            return Err(refused("skip", "the source skips it"));
        }
        if typed::flag(self.at(&["simulation", "enabled"]), "simulation.enabled")?.unwrap_or(false) {
            return Err(refused("simulation", "a model plays the user"));
        }
        if self.at(&["agent", "type"]).and_then(Value::as_str) == Some("none") {
            return Err(refused("agent.type", "no agent runs"));
        }
        self.fill()?;
        self.prompt()?;
        if let Some(text) = self.at(&["description"]).and_then(Value::as_str).map(one_line).filter(|it| !it.is_empty())
        {
            self.set("description", json!(text));
        }
        let tags: Vec<String> =
            self.at(&["tags"]).and_then(Value::as_array).into_iter().flatten().filter_map(scalar).collect();
        if !tags.is_empty() {
            self.set("tags", json!(tags));
        }
        self.agent();
        let mut setup = Vec::new();
        self.sandbox(&mut setup)?;
        for (at, item) in typed::list(self.at(&["pre_run"]), "pre_run")?.to_vec().iter().enumerate() {
            let place = format!("pre_run[{at}]");
            let line =
                item.get("command").and_then(Value::as_str).ok_or_else(|| refused(&place, "it has no command"))?;
            self.no_tokens(&place, line)?;
            let fails = typed::flag(item.get("fail_on_error"), &format!("{place}.fail_on_error"))?;
            let may_fail = fails == Some(false);
            setup.push(if may_fail { format!("{{ {line}\n}} || true") } else { line.to_owned() });
        }
        if !setup.is_empty() {
            let workspace = self.case.keys.entry("workspace").or_insert_with(|| json!({}));
            if let Some(map) = workspace.as_object_mut() {
                map.insert("setup".to_owned(), json!(setup));
            }
        }
        let conditions = self.limits()?;
        self.criteria(&conditions)?;
        self.rest();
        Ok(())
    }

    /// Puts the values of the row into the two keys that the source fills.
    fn fill(&mut self) -> Result<(), Refused> {
        let Some((row, task)) = self.row else { return Ok(()) };
        let mut filled = self.keys.iter_mut().filter(|(key, _)| FILLED.contains(&key.as_str()));
        filled.try_for_each(|(_, value)| row.fill_all(value, task).map(|filled| *value = filled))
    }

    /// Notes the keys of the task that are not taken over.
    fn rest(&mut self) {
        const KNOWN: [&str; 14] = [
            "task_id",
            "description",
            "initial_prompt",
            "initial_prompt_file",
            "tags",
            "skip",
            "agent",
            "sandbox",
            "success_criteria",
            "run_limits",
            "pre_run",
            "dataset",
            "simulation",
            "suite_id",
        ];
        let others: Vec<String> = self.keys.keys().filter(|key| !KNOWN.contains(&key.as_str())).cloned().collect();
        for key in others {
            let message = match key.as_str() {
                "post_run" => "left out: the commands run after the verdict",
                "reference" => "left out: if it solves the task, name it as `oracle: {copy: …}`",
                "expected_commands" => "left out: it is reported and decides nothing",
                "checker_context" => "left out: name the judge with `evals run --judge`",
                _ => UNKNOWN,
            };
            self.note(&key, message);
        }
        if self.at(&["dataset", "sample_per_stratum"]).is_some() {
            self.note("dataset.sample_per_stratum", "left out: all rows are cases; select some with --tag or --sample");
        }
    }

    fn prompt(&mut self) -> Result<(), Refused> {
        let text = match (self.at(&["initial_prompt"]), self.at(&["initial_prompt_file"])) {
            (Some(text), _) => text.as_str().map(str::to_owned),
            (None, Some(path)) => {
                let path = path.as_str().unwrap_or_default();
                let file = source::named(&source::folder(self.file), path);
                let file = file.map_err(|why| refused("initial_prompt_file", why))?;
                let text = yaml::read(&file).map_err(|error| refused("initial_prompt_file", error.to_string()))?;
                Some(match self.row {
                    Some((row, task)) => row.fill(&text, task)?,
                    None => text,
                })
            }
            (None, None) => None,
        };
        let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| refused("initial_prompt", "it has no prompt"))?;
        self.set("prompt", json!(text));
        Ok(())
    }

    fn agent(&mut self) {
        let Some(Value::Object(agent)) = self.at(&["agent"]).cloned() else { return };
        for (key, value) in agent {
            let place = format!("agent.{key}");
            match key.as_str() {
                "type" | "model" => self.note(&place, "left out: run the case with --harness and --model"),
                "system_prompt" if value.is_string() => self.set("system-prompt", value),
                "permission_mode" | "allowed_tools" | "disallowed_tools" => {
                    self.note(&place, "left out: `interaction` of the case answers permission requests");
                }
                "plugins" => self.note(&place, "left out: name skills in the case or in an experiment"),
                _ => self.note(&place, "left out: it configures an agent; write a manifest or a variant"),
            }
        }
    }

    /// Refuses commands that read files which only the source has.
    fn no_tokens(&self, place: &str, line: &str) -> Result<(), Refused> {
        let found = ["TASK_DIR", "REFERENCE_DIR"].into_iter().find(|name| line.contains(name));
        match found {
            Some(name) => Err(refused(place, format!("it reads files in `${name}`; put them into `hidden`"))),
            None => Ok(()),
        }
    }

    /// Hides the files of the task's folder beside the case, if a command reads them.
    fn hidden_files(&mut self, place: &str, line: &str) -> Result<(), Refused> {
        let leads_up = ["TASK_DIR/..", "TASK_DIR}/.."].iter().any(|part| line.contains(part));
        if !line.contains("TASK_DIR") || line.contains("REFERENCE_DIR") || leads_up {
            return self.no_tokens(place, line);
        }
        let folder = source::folder(self.file);
        let wrong =
            |why: String| refused(place, format!("it reads files in `$TASK_DIR`, which cannot be copied: {why}"));
        let own = self.file.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let files = copied::all(&folder, Path::new("")).map_err(wrong)?;
        let files: Vec<copied::Copied> = files.into_iter().filter(|file| file.from != own).collect();
        if files.len() > MAX_HIDDEN_FILES {
            return Err(wrong(format!(
                "there are {} files in it, and at most {MAX_HIDDEN_FILES} are copied",
                files.len()
            )));
        }
        for file in files {
            let suffix = format!("hidden/{HIDDEN}/files/{}", file.to.display());
            if !self.case.beside.iter().any(|beside| beside.suffix == suffix) {
                self.case.add(&suffix, Content::Copy(file.from));
            }
        }
        let stem = self.case.name.rsplit('/').next().unwrap_or(&self.case.name).to_owned();
        self.set("hidden", json!(format!("{stem}.hidden")));
        Ok(())
    }

    /// Returns the patterns of the names that the source ignores in templates and in globs.
    fn ignored(&self) -> Result<Vec<String>, Refused> {
        let keys = ["ignore_patterns", "additional_ignore_patterns"];
        let own = keys.into_iter().find_map(|key| self.at(&["sandbox", key]));
        ignored::patterns(&typed::texts(own, "sandbox.ignore_patterns")?)
    }

    fn sandbox(&mut self, setup: &mut Vec<String>) -> Result<(), Refused> {
        let Some(Value::Object(sandbox)) = self.at(&["sandbox"]).cloned() else { return Ok(()) };
        for (key, value) in &sandbox {
            let place = format!("sandbox.{key}");
            let packages = || -> Result<Vec<String>, Refused> {
                let list = typed::texts(value.get("env_packages"), &format!("{place}.env_packages"))?;
                Ok(list.iter().map(|word| shell_word(word)).collect())
            };
            match key.as_str() {
                "driver" if *value == json!("docker") => {
                    return Err(refused(&place, "it needs its container; write `sandbox` with an image"));
                }
                "driver" | "docker" => {}
                "ignore_patterns" | "additional_ignore_patterns" => drop(self.ignored()?),
                "limits" => self.note(&place, "left out: limits of a container"),
                "template_sources" => self.templates(value)?,
                "python" if packages()?.is_empty() => {}
                "python" => {
                    setup.push("python3 -m venv \"$HOME/.evals-venv\"".to_owned());
                    setup.push(format!("\"$HOME/.evals-venv/bin/pip\" install -q {}", packages()?.join(" ")));
                    self.note(
                        &place,
                        "the packages are in `$HOME/.evals-venv`; put its `bin` into the PATH of commands",
                    );
                }
                "node" if packages()?.is_empty() => {}
                "node" => setup.push(format!("npm install --no-save {}", packages()?.join(" "))),
                "mock_path_dirs" | "record_cli" => {
                    return Err(refused(&place, "it replaces programs on the PATH of the agent"));
                }
                _ => self.note(&place, UNKNOWN),
            }
        }
        Ok(())
    }

    fn templates(&mut self, value: &Value) -> Result<(), Refused> {
        let ignored = self.ignored()?;
        for (at, item) in typed::list(Some(value), "sandbox.template_sources")?.iter().enumerate() {
            let place = format!("sandbox.template_sources[{at}]");
            let word = |key: &str| item.get(key).and_then(Value::as_str);
            match word("type").unwrap_or_default() {
                "starter_files" => {
                    for file in typed::list(item.get("files"), &format!("{place}.files"))? {
                        let text = |key: &str| file.get(key).and_then(Value::as_str).map(str::to_owned);
                        let (Some(path), Some(content)) = (text("path"), text("content")) else {
                            return Err(refused(&place, "a file has no `path` or no `content`"));
                        };
                        crate::paths::inside(Path::new(&path))
                            .map_err(|why| refused(&place, format!("the path `{path}` {why}")))?;
                        // Texts lie beside copies of files, in the folder that the case copies.
                        self.case.add(&format!("workspace/{path}"), Content::Text(content));
                        let stem = self.case.name.rsplit('/').next().unwrap_or(&self.case.name).to_owned();
                        self.set("workspace", json!({"copy": format!("{stem}.workspace")}));
                    }
                }
                "template_dir" => {
                    // An empty path would be the folder of the task, with its criteria.
                    let path = word("path").filter(|path| !path.trim().is_empty());
                    let path = path.ok_or_else(|| refused(&place, "it has no `path`"))?;
                    let folder = source::folder(self.file).join(path);
                    let to = typed::text(item.get("mount_point"), &format!("{place}.mount_point"))?.unwrap_or(".");
                    let to = to.trim_end_matches('/');
                    let to = if to == "." { "" } else { to };
                    if let Some(why) = crate::paths::leaves(Path::new(to)).filter(|_| !to.is_empty()) {
                        return Err(refused(&place, format!("the path `{to}` {why}")));
                    }
                    let included = typed::texts(item.get("include_patterns"), "include_patterns")
                        .and_then(|patterns| ignored::included(&patterns))
                        .map_err(|(key, why)| refused(&format!("{place}.{key}"), why))?;
                    let is_left_out = |file: &Path| {
                        ignored::is_ignored(file, &ignored) && !included.is_match(&file.to_string_lossy())
                    };
                    let files = copied::all_but(&folder, Path::new(""), &is_left_out);
                    let mut files =
                        files.map_err(|why| refused(&place, format!("`{path}` cannot be copied: {why}")))?;
                    files.iter_mut().for_each(|file| file.to = Path::new(to).join(&file.to));
                    // A later template replaces files of an earlier one.
                    self.case.files.retain(|known| !files.iter().any(|file| file.to == known.to));
                    self.case.files.extend(files);
                }
                "repo" => return Err(refused(&place, "its files are laid over others; write `workspace.git`")),
                other => return Err(refused(&place, format!("the type `{other}` is not known"))),
            }
        }
        let twice = self.case.files.iter().find(|file| {
            let suffix = format!("workspace/{}", file.to.display());
            self.case.beside.iter().any(|beside| beside.suffix == suffix)
        });
        match twice {
            Some(file) => {
                Err(refused("sandbox.template_sources", format!("`{}` is in two templates", file.to.display())))
            }
            None => self.no_file_is_a_folder(),
        }
    }

    /// Refuses a path that is a file of one template and a folder of another: such files cannot be written.
    fn no_file_is_a_folder(&self) -> Result<(), Refused> {
        let workspace = Path::new("workspace");
        let texts = self.case.beside.iter().map(|beside| PathBuf::from(&beside.suffix));
        let texts = texts.filter(|path| path.starts_with(workspace));
        let all: HashSet<PathBuf> = self.case.files.iter().map(|file| workspace.join(&file.to)).chain(texts).collect();
        let folders = all.iter().flat_map(|path| path.ancestors().skip(1));
        // The smallest, so that each conversion names the same one.
        match folders.filter(|folder| all.contains(*folder)).min() {
            Some(path) => {
                let path = path.strip_prefix(workspace).unwrap_or(path).display();
                let why = format!("`{path}` is a file in one template and a folder in another");
                Err(refused("sandbox.template_sources", why))
            }
            None => Ok(()),
        }
    }

    /// Sets the limits. Returns the conditions, in CEL, without which a trial fails in the source whatever the criteria say.
    fn limits(&mut self) -> Result<Vec<String>, Refused> {
        let Some(Value::Object(written)) = self.at(&["run_limits"]).cloned() else { return Ok(Vec::new()) };
        let counts = |key: &str| {
            let is_counted = typed::flag(written.get(key), &format!("run_limits.{key}"))?;
            Ok::<bool, Refused>(is_counted.unwrap_or(false))
        };
        let mut input = "usage.input_tokens".to_owned();
        if counts("count_cached_input")? {
            input.push_str(" + usage.cache_read_tokens");
        }
        if counts("count_cache_creation")? {
            input.push_str(" + usage.cache_write_tokens");
        }
        let (mut limits, mut conditions, mut times) = (Map::new(), Vec::new(), Vec::new());
        for (key, value) in &written {
            let place = format!("run_limits.{key}");
            let positive = value.as_f64().filter(|it| *it > 0.0);
            let need = || positive.ok_or_else(|| refused(&place, "this is not a number above 0"));
            match key.as_str() {
                _ if value.is_null() => {}
                "max_turns" => drop(limits.insert("steps".to_owned(), number(need()?))),
                "task_timeout" | "turn_timeout" => times.push(need()?),
                "max_usd" => drop(limits.insert("cost-usd".to_owned(), number(need()?))),
                "max_input_tokens" => conditions.push(format!("{input} <= {}", number(need()?))),
                "max_output_tokens" => conditions.push(format!("usage.output_tokens <= {}", number(need()?))),
                "max_total_tokens" => conditions.push(format!("{input} + usage.output_tokens <= {}", number(need()?))),
                "max_tool_calls" => drop(limits.insert("tool-calls".to_owned(), number(need()?))),
                "expected_turns" | "count_cached_input" | "count_cache_creation" => {}
                "stop_early" | "stop_early_gate_threshold" => {
                    self.note(&place, "left out: a trial is never ended early by its graders");
                }
                _ => self.note(&place, UNKNOWN),
            }
        }
        // A task has one turn, so the smaller limit applies first.
        if let Some(time) = times.into_iter().reduce(f64::min) {
            limits.insert("time".to_owned(), json!(format!("{time}s")));
        }
        if limits.contains_key("steps") {
            // After `max_turns` the criteria decide. Other limits, also those of a suite or of a run, fail a trial.
            conditions.extend(OTHER_LIMITS.map(str::to_owned));
            self.note("run_limits.max_turns", AFTER_TURNS);
            conditions.extend(limits.iter().filter_map(|(key, limit)| match key.as_str() {
                "cost-usd" => Some(format!("(!has(metrics.cost_usd) || metrics.cost_usd <= {limit})")),
                "tool-calls" => Some(format!("metrics.tool_calls <= {limit}")),
                _ => None,
            }));
            limits.insert("on-limit".to_owned(), json!("grade"));
        }
        if !limits.is_empty() {
            self.set("limits", Value::Object(limits));
        }
        Ok(conditions)
    }

    /// Sets the graders: those of the criteria, and one of the conditions of the limits.
    fn criteria(&mut self, conditions: &[String]) -> Result<(), Refused> {
        let ignored = self.ignored()?;
        let list = typed::list(self.at(&["success_criteria"]), "success_criteria")?.to_vec();
        let mut graders: Vec<Value> = Vec::new();
        for (at, criterion) in list.iter().enumerate() {
            let place = format!("success_criteria[{at}]");
            let word = |key: &str| criterion.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default();
            let kind = word("type");
            let weight = criterion.get("weight").map_or(Some(1.0), Value::as_f64);
            let weight = weight.filter(|weight| weight.is_finite() && *weight >= 0.0);
            let weight = weight.ok_or_else(|| refused(&format!("{place}.weight"), "this is not a number from 0"))?;
            for key in ["suite_thresholds", "stop_early"].into_iter().filter(|key| criterion.get(*key).is_some()) {
                let message =
                    "left out: it is about all rows, or ends a trial early; the verdict of the case needs neither";
                self.note(&format!("{place}.{key}"), message);
            }
            let made = criteria::translate(kind, criterion, &ignored);
            let made = made.and_then(|made| {
                let line = criterion.get("command").and_then(Value::as_str).unwrap_or_default();
                self.hidden_files("command", line).map(|()| made)
            });
            match made {
                Err((key, why)) => {
                    let key = if key.is_empty() { place } else { format!("{place}.{key}") };
                    let message = format!("the criterion `{kind}` has no equivalent: {why}");
                    self.case.notes.push(Note::new(self.file, key, message).of_lost_grader());
                }
                Ok(criteria::TranslatedCriterion { graders: made, note }) => {
                    if let Some(why) = note {
                        self.note(&place, why);
                    }
                    let share = weight / made.len().max(1) as f64;
                    for (kind, mut body) in made {
                        if let Some(map) = body.as_object_mut() {
                            let name = one_line(word("description"));
                            map.insert("name".to_owned(), json!(if name.is_empty() { kind.to_owned() } else { name }));
                            if weight == 0.0 {
                                map.insert("diagnostic".to_owned(), json!(true));
                            } else if !is_one(share) {
                                map.insert("weight".to_owned(), number(share));
                            }
                        }
                        graders.push(json!({kind: body}));
                    }
                }
            }
        }
        let decides = |grader: &Value| {
            grader.as_object().into_iter().flat_map(Map::values).any(|body| body.get("diagnostic").is_none())
        };
        if !graders.iter().any(decides) {
            return Err(refused("success_criteria", "none of the criteria that decide it has an equivalent"));
        }
        if self.case.keys.contains_key("hidden") {
            self.case.add(&format!("hidden/{HIDDEN}/{SCRIPT}"), Content::Text(WITH_TASK.to_owned()));
            let bodies = graders.iter_mut().filter_map(|grader| grader.get_mut("command")?.get_mut("run"));
            for run in bodies.filter(|run| run.is_string()) {
                *run = json!(format!("sh {HIDDEN}/{SCRIPT} {}", shell_word(run.as_str().unwrap_or_default())));
            }
        }
        if !conditions.is_empty() {
            let body = json!({"cel": conditions.join(" && "), "name": "run_limits", "gate": true});
            graders.push(json!({"expr": restricting(body)}));
        }
        // The source runs all criteria in one environment.
        if graders.iter().filter(|grader| grader.get("command").is_some()).count() > 1 {
            self.set("graders-home", json!("shared"));
        }
        self.set("graders", json!(graders));
        Ok(())
    }
}

//! Harbor: a task folder with `task.toml`, an instruction, an image, and a verifier that writes rewards.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::container::Container;
use super::parts::distinct;
use super::refused::{Refused, refused, unread};
use super::{
    Content, Converted, NewCase, Note, UNKNOWN, copied, dockerfile, folders, one_line, slug, typed, unique, whole,
};
use crate::text::shell_word;
use crate::yaml::{self, YamlError};

/// A script that runs the verifier and prints its rewards as grades.
const VERIFY: &str = include_str!("harbor/verify.sh");
/// The folder of the verifier in the workspace while it is graded.
const FOLDER: &str = ".evals-verifier";
/// The time of a verifier that sets none, in seconds.
const VERIFIER_SECONDS: f64 = 600.0;
/// The time of an agent that has no time limit in the source, in seconds. Its container must end at some time.
const MAX_AGENT_SECONDS: f64 = 86_400.0;

const SIZE: &str = "this is neither a number of megabytes nor a size such as `2G` or `2048M`";

/// Returns a size in megabytes: a number of them, or a text with a unit, as older tasks have it. A kilobyte is 1024 bytes, as in
/// the source.
fn megabytes(value: &Value) -> Option<u64> {
    let size = match value {
        Value::String(text) => {
            let text = text.trim().to_ascii_lowercase();
            let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
            let (number, unit) = text.split_at(end);
            let unit = match unit.trim() {
                "" | "m" | "mb" | "mi" | "mib" => 1.0,
                "g" | "gb" | "gi" | "gib" => 1024.0,
                "t" | "tb" | "ti" | "tib" => 1024.0 * 1024.0,
                "k" | "kb" | "ki" | "kib" => 1.0 / 1024.0,
                _ => return None,
            };
            number.parse::<f64>().ok()? * unit
        }
        number => number.as_f64()?,
    };
    // Up to a petabyte, so that no number is out of range.
    (size >= 1.0 && size <= f64::from(1 << 30)).then_some(size.ceil() as u64)
}

/// Reads the task of a folder, or the tasks below it.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let mut converted = Converted::default();
    let (name, tasks) = folders::tasks_below(path, "task.toml", &mut converted.notes)?;
    let mut cases = Vec::new();
    for folder in &tasks {
        let mut task = match Task::read(folder) {
            Ok(task) => task,
            Err(errors) if tasks.len() == 1 => return Err(errors),
            Err(errors) => {
                converted.notes.extend(errors.iter().map(|error| unread(error.path(), error)));
                continue;
            }
        };
        let own = folders::name(folder);
        let name_of_case = unique(slug(&own).unwrap_or_else(|| "task".to_owned()), &cases);
        match task.case(name_of_case, &name) {
            Ok(case) => cases.push(case),
            Err((key, why)) => {
                let line = line(&task.text, key);
                converted.notes.push(Note::new(&task.file, key, format!("no case was written: {why}")).on(line));
            }
        }
    }
    converted.add(name.clone(), "Tasks", &name, cases);
    Ok(converted)
}

struct Task {
    folder: PathBuf,
    file: PathBuf,
    text: String,
    keys: Value,
}

impl Task {
    fn read(folder: &Path) -> Result<Self, Vec<YamlError>> {
        let file = folder.join("task.toml");
        let text = yaml::read(&file).map_err(|error| vec![error])?;
        let keys = toml::from_str::<toml::Table>(&text).map_err(|error| {
            let message = format!("this is not TOML: {}", error.message());
            vec![YamlError::at(&file, &text, error.span(), message)]
        })?;
        let keys = serde_json::to_value(keys).map_err(|error| vec![whole(&file, format!("{error}"))])?;
        Ok(Self { folder: folder.to_owned(), file, text, keys })
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        let path = format!("/{}", pointer.replace('.', "/"));
        self.keys.pointer(&path).filter(|value| !value.is_null() && **value != json!([]) && **value != json!({}))
    }

    fn text_at(&self, pointer: &str) -> Option<&str> {
        self.at(pointer)?.as_str().filter(|text| !text.is_empty())
    }

    fn seconds(&self, key: &'static str) -> Result<Option<f64>, Refused<&'static str>> {
        let Some(value) = self.at(key) else { return Ok(None) };
        let seconds =
            value.as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0 && *seconds <= MAX_AGENT_SECONDS);
        seconds.map(Some).ok_or((key, format!("this is not a number of seconds up to {MAX_AGENT_SECONDS}")))
    }

    fn note(&self, case: &mut NewCase, key: &str, message: impl Into<String>) {
        case.notes.push(Note::new(&self.file, key, message).on(line(&self.text, key)));
    }

    fn case(&mut self, name: String, group: &str) -> Result<NewCase, Refused<&'static str>> {
        self.typed()?;
        self.refused()?;
        let mut case = NewCase::new(name, &self.file);
        let instruction = self.folder.join("instruction.md");
        let prompt = yaml::read(&instruction).map_err(|_| ("", "it has no instruction.md".to_owned()))?;
        if prompt.trim().is_empty() {
            return Err(("", "its instruction.md is empty".to_owned()));
        }
        case.keys.insert("prompt".to_owned(), json!(prompt.trim()));
        self.describe(&mut case);
        let agent = self.seconds("agent.timeout_sec")?;
        let verifier = self.seconds("verifier.timeout_sec")?.unwrap_or(VERIFIER_SECONDS);
        if agent.is_none() {
            let message = format!("the agent has no time limit in the source; here it has {MAX_AGENT_SECONDS} seconds");
            self.note(&mut case, "agent.timeout_sec", message);
        }
        // The source verifies the work that was done until then.
        let time = format!("{}s", agent.unwrap_or(MAX_AGENT_SECONDS));
        case.keys.insert("limits".to_owned(), json!({"time": time, "on-limit": "grade"}));
        let container = self.container(agent.unwrap_or(MAX_AGENT_SECONDS) + verifier + 600.0, &mut case)?;
        container
            .add(&mut case, group)
            .map_err(|why| ("environment", format!("its image cannot be taken over: {why}")))?;
        self.verifier(&mut case, verifier)?;
        self.rest(&mut case);
        Ok(case)
    }

    /// Fails if a setting has another type than the source reads, so it is unknown what it means.
    fn typed(&self) -> Result<(), Refused<&'static str>> {
        const TEXTS: [&str; 5] = [
            "environment.os",
            "environment.docker_image",
            "environment.network_mode",
            "environment.workdir",
            "verifier.environment_mode",
        ];
        let texts = TEXTS.map(|key| (key, typed::text(self.at(key), key).map(drop)));
        let maps = ["environment.env", "verifier.env", "environment", "verifier", "agent"].map(|key| {
            let is_map = self.at(key).is_none_or(Value::is_object);
            (key, is_map.then_some(()).ok_or_else(|| refused(key, "this is not a table")))
        });
        let others = [
            ("environment.cpus", typed::amount(self.at("environment.cpus"), "").map(drop)),
            ("environment.gpus", typed::whole(self.at("environment.gpus"), "").map(drop)),
            ("environment.allow_internet", typed::flag(self.at("environment.allow_internet"), "").map(drop)),
        ];
        let mut all = texts.into_iter().chain(maps).chain(others);
        all.try_for_each(|(key, is_right)| is_right.map_err(|(_, why)| (key, why)))
    }

    /// Fails if a setting that cannot be converted would change the task.
    fn refused(&self) -> Result<(), Refused<&'static str>> {
        if self.at("steps").is_some() || self.folder.join("steps").is_dir() {
            return Err(("steps", "it has several steps, each with a verifier of its own".to_owned()));
        }
        if self.text_at("environment.os").is_some_and(|os| os != "linux") {
            return Err(("environment.os", "it runs on Windows".to_owned()));
        }
        if self.text_at("verifier.environment_mode").is_some_and(|mode| mode != "shared")
            || self.at("verifier.environment").is_some()
        {
            return Err(("verifier.environment_mode", "its verifier has a container of its own".to_owned()));
        }
        for key in ["agent.user", "verifier.user"] {
            if self.at(key).is_some_and(|user| *user != json!("root") && *user != json!(0)) {
                return Err((key, "agent and verifier run as root here".to_owned()));
            }
        }
        for key in ["verifier.collect", "environment.healthcheck", "environment.tpu"] {
            if self.at(key).is_some() {
                return Err((key, "the key has no equivalent".to_owned()));
            }
        }
        for key in ["agent.network_mode", "verifier.network_mode", "agent.allowed_hosts", "verifier.allowed_hosts"] {
            if self.at(key).is_some() {
                return Err((key, "agent and verifier have the same network here".to_owned()));
            }
        }
        let mode = self.text_at("environment.network_mode").unwrap_or("public");
        if !["public", "no-network"].contains(&mode) {
            return Err(("environment.network_mode", format!("the network `{mode}` has no equivalent")));
        }
        for name in ["docker-compose.yaml", "docker-compose.yml", "compose.yaml"] {
            if self.folder.join("environment").join(name).is_file() {
                return Err((
                    "environment",
                    format!("its environment has a {name}, and one container is started here"),
                ));
            }
        }
        Ok(())
    }

    fn describe(&self, case: &mut NewCase) {
        let description = self.text_at("task.description").or_else(|| self.text_at("metadata.description"));
        if let Some(text) = description {
            case.keys.insert("description".to_owned(), json!(one_line(text)));
        }
        let words = ["metadata.tags", "task.keywords"].iter().filter_map(|key| self.at(key)?.as_array()).flatten();
        let words = words
            .filter_map(Value::as_str)
            .chain(["metadata.difficulty", "metadata.category"].iter().filter_map(|key| self.text_at(key)));
        let tags = distinct(words.filter_map(slug));
        if !tags.is_empty() {
            case.keys.insert("tags".to_owned(), json!(tags));
        }
    }

    fn container(&self, seconds: f64, case: &mut NewCase) -> Result<Container, Refused<&'static str>> {
        let folder = self.folder.join("environment");
        let file = folder.join("Dockerfile");
        let (dockerfile, context) = match self.text_at("environment.docker_image") {
            Some(image) => (format!("FROM {image}\n"), None),
            None => match yaml::read(&file) {
                Ok(text) => (text, Some(folder)),
                Err(_) => {
                    return Err(("environment", "it has neither environment/Dockerfile nor a docker_image".to_owned()));
                }
            },
        };
        dockerfile::check(&dockerfile).map_err(|why| ("environment", why))?;
        if let Some(command) = dockerfile::instruction(&dockerfile, "CMD")
            && !dockerfile::is_idle(&dockerfile::written(&command))
        {
            let number = dockerfile.lines().position(|line| line.trim_start().to_ascii_uppercase().starts_with("CMD"));
            let message = format!("the CMD `{command}` is not started; the source replaces it, too");
            case.notes.push(Note::new(&file, "", message).on(number.map(|number| number + 1)));
        }
        let mut options = Vec::new();
        if self.text_at("environment.network_mode") == Some("no-network")
            || self.at("environment.allow_internet") == Some(&json!(false))
        {
            options.extend(["--network".to_owned(), "none".to_owned()]);
            let message = "the container has no network, so an agent in it reaches no model";
            self.note(case, "environment", message);
        }
        if let Some(cpus) = self.at("environment.cpus").and_then(Value::as_f64) {
            options.extend(["--cpus".to_owned(), cpus.to_string()]);
        }
        if let Some(key) =
            ["environment.memory_mb", "environment.memory"].into_iter().find(|key| self.at(key).is_some())
        {
            let memory = self.at(key).and_then(megabytes).ok_or((key, SIZE.to_owned()))?;
            options.extend(["--memory".to_owned(), format!("{memory}m")]);
        }
        if let Some(gpus) = self.at("environment.gpus").and_then(Value::as_u64).filter(|gpus| *gpus > 0) {
            options.extend(["--gpus".to_owned(), gpus.to_string()]);
        }
        for (name, value) in self.variables("environment.env")? {
            options.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        let workdir = self.text_at("environment.workdir").map(str::to_owned);
        Ok(Container { dockerfile, context, workdir, options, seconds: seconds.ceil() as u64 })
    }

    /// Returns variables with their values, none of them from the environment of the machine.
    fn variables(&self, key: &'static str) -> Result<Vec<(String, String)>, Refused<&'static str>> {
        let mut variables = Vec::new();
        for (name, value) in self.at(key).and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().ok_or((key, format!("the value of `{name}` is not a text")))?;
            if value.contains("${") {
                return Err((key, format!("`{name}` takes its value from the environment of the machine")));
            }
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !is_name || name.starts_with(|c: char| c.is_ascii_digit()) {
                return Err((key, format!("`{name}` is not the name of a variable")));
            }
            variables.push((name.clone(), value.to_owned()));
        }
        Ok(variables)
    }

    fn verifier(&self, case: &mut NewCase, seconds: f64) -> Result<(), Refused<&'static str>> {
        let tests = self.folder.join("tests");
        if !tests.join("test.sh").is_file() {
            return Err(("verifier", "it has no tests/test.sh".to_owned()));
        }
        let files = copied::all(&tests, Path::new("tests"))
            .map_err(|why| ("verifier", format!("its tests cannot be copied: {why}")))?;
        for copied in files {
            case.add(&format!("hidden/{FOLDER}/{}", copied.to.display()), Content::Copy(copied.from));
        }
        let exports: Vec<String> = self
            .variables("verifier.env")?
            .iter()
            .map(|(name, value)| format!("export {name}={}", shell_word(value)))
            .collect();
        let script = VERIFY.replace("@ENV@", &exports.join("\n"));
        let path = case.add(&format!("hidden/{FOLDER}/verify.sh"), Content::Text(script));
        let hidden = path.split('/').next().unwrap_or_default().to_owned();
        case.keys.insert("hidden".to_owned(), json!(hidden));
        let run = ["sh".to_owned(), format!("{FOLDER}/verify.sh")];
        let grader = json!({"script": {"name": "verifier", "run": run, "timeout": format!("{seconds}s")}});
        case.keys.insert("graders".to_owned(), json!([grader]));
        Ok(())
    }

    /// Adds notes about the settings that are left out.
    fn rest(&self, case: &mut NewCase) {
        let known: &[(&str, &[&str])] = &[
            ("task", &["name", "description", "keywords", "version", "authors"]),
            ("agent", &["timeout_sec"]),
            ("verifier", &["timeout_sec", "env", "environment_mode", "user"]),
            (
                "environment",
                &[
                    "build_timeout_sec",
                    "docker_image",
                    "os",
                    "cpus",
                    "memory_mb",
                    "memory",
                    "gpus",
                    "env",
                    "workdir",
                    "network_mode",
                    "allow_internet",
                ],
            ),
        ];
        for (key, value) in self.keys.as_object().into_iter().flatten() {
            let table = known.iter().find(|(name, _)| name == key);
            match (key.as_str(), table, value) {
                ("schema_version" | "version" | "source" | "metadata" | "steps", ..) => {}
                ("artifacts", ..) => self.note(case, key, "left out: the workspace is kept by `--keep-workspace`"),
                ("solution", ..) => {}
                ("multi_step_reward_strategy", ..) => {}
                (_, Some((_, names)), Value::Object(map)) => self.unknown(case, key, map, names),
                _ => self.note(case, key, UNKNOWN),
            }
        }
        if self.folder.join("solution").is_dir() {
            case.notes.push(Note::new(
                &self.folder.join("solution"),
                "",
                "left out: the solution runs only in the container",
            ));
        }
    }

    fn unknown(&self, case: &mut NewCase, table: &str, map: &Map<String, Value>, names: &[&str]) {
        for name in map.keys().filter(|name| !names.contains(&name.as_str())) {
            let key = format!("{table}.{name}");
            if self.at(&key).is_none() {
                continue;
            }
            let message = match key.as_str() {
                "environment.skills_dir" => "left out: name skills with `skills` in the case",
                "environment.mcp_servers" => "left out: write `mcp-servers` in the case",
                "environment.storage_mb" | "environment.storage" | "environment.gpu_types" => {
                    "left out: docker has no such limit here"
                }
                _ => UNKNOWN,
            };
            self.note(case, &key, message);
        }
    }
}

/// Returns the line of a key such as `verifier.timeout_sec`, or of its table.
fn line(text: &str, key: &str) -> Option<usize> {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut current = String::new();
    let mut nearest = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            current = head.trim_start_matches('[').split(']').next().unwrap_or_default().trim().to_owned();
            if current == key {
                return Some(number + 1);
            }
            if current == table {
                nearest = Some(number + 1);
            }
        } else if current == table && line.split('=').next().is_some_and(|word| word.trim() == name) {
            return Some(number + 1);
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_of_megabytes_or_have_a_unit() {
        for (value, size) in [
            (json!(512), Some(512)),
            (json!(512.5), Some(513)),
            (json!("2G"), Some(2048)),
            (json!("2048M"), Some(2048)),
            (json!("2Gi"), Some(2048)),
            (json!("1.5 gb"), Some(1536)),
            (json!("524288K"), Some(512)),
            (json!("512"), Some(512)),
            (json!("much"), None),
            (json!("2X"), None),
            (json!(0), None),
            (json!(-1), None),
            (json!("1e9G"), None),
            (json!(true), None),
        ] {
            assert_eq!(megabytes(&value), size, "{value}");
        }
    }
}

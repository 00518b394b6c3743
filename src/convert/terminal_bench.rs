//! Terminal-Bench 1: a task folder with `task.yaml`, a Dockerfile, and tests whose results a parser reads.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::container::Container;
use super::refused::{Refused, unread};
use super::{
    Content, Converted, NewCase, Note, UNKNOWN, copied, dockerfile, folders, one_line, parts, python, slug, source,
    typed, unique, whole,
};
use crate::yaml::{self, YamlError};

/// A script that runs the tests.
const VERIFY: &str = include_str!("terminal_bench/verify.sh");
/// The folder of the tests in the workspace while it is graded.
const FOLDER: &str = ".evals-verifier";
/// The times that the source uses if a task sets none, in seconds.
const USUAL: [(&str, f64); 2] = [("max_agent_timeout_sec", 360.0), ("max_test_timeout_sec", 60.0)];

/// The keys that say something about a task and do not change it.
const BESIDE: [&str; 6] = [
    "author_name",
    "author_email",
    "disable_asciinema",
    "estimated_duration_sec",
    "expert_time_estimate_min",
    "junior_time_estimate_min",
];

/// Reads the task of a folder, or the tasks below it.
pub fn convert(path: &Path) -> Result<Converted, Vec<YamlError>> {
    let mut converted = Converted::default();
    let (name, tasks) = folders::tasks_below(path, "task.yaml", &mut converted.notes)?;
    let mut cases = Vec::new();
    for folder in &tasks {
        let file = folder.join("task.yaml");
        let errors = match source::value(&file) {
            Ok(Value::Object(keys)) if keys.contains_key("instruction") || keys.contains_key("descriptions") => {
                let own = unique(slug(&folders::name(folder)).unwrap_or_else(|| "task".to_owned()), &cases);
                match case(folder, &file, &keys, own, &name) {
                    Ok(case) => cases.push(case),
                    Err((key, why)) => {
                        converted.notes.push(Note::new(&file, key, format!("no case was written: {why}")));
                    }
                }
                continue;
            }
            Ok(_) => vec![whole(&file, "this is not a task of Terminal-Bench: it has no `instruction`")],
            Err(errors) => errors,
        };
        if tasks.len() == 1 {
            return Err(errors);
        }
        converted.notes.extend(errors.iter().map(|error| unread(&file, error)));
    }
    converted.add(name.clone(), "Tasks", &name, cases);
    Ok(converted)
}

fn case(
    folder: &Path,
    file: &Path,
    keys: &Map<String, Value>,
    name: String,
    group: &str,
) -> Result<NewCase, Refused<&'static str>> {
    let mut case = NewCase::new(name, file);
    let base = || {
        let list = keys.get("descriptions")?.as_array()?;
        let base = list.iter().find(|item| item.get("key").and_then(Value::as_str) == Some("base"))?;
        base.get("description")?.as_str()
    };
    let text = |key: &'static str| typed::text(keys.get(key), key).map_err(|(_, why)| (key, why));
    let prompt = text("instruction")?.or_else(base).unwrap_or_default();
    if prompt.trim().is_empty() {
        return Err(("instruction", "it has no instruction".to_owned()));
    }
    let parser = text("parser_name")?.unwrap_or("pytest");
    if parser != "pytest" {
        return Err(("parser_name", format!("no grader reads what the parser `{parser}` reads")));
    }
    // Its reader takes `no` for false and `1_800` for a number (YAML 1.1).
    let same_shell = keys.get("run_tests_in_same_shell").map(python::of_yaml);
    let same_shell = typed::flag(same_shell.as_ref(), "");
    if same_shell.map_err(|(_, why)| ("run_tests_in_same_shell", why))?.unwrap_or(false) {
        return Err(("run_tests_in_same_shell", "its tests run in the shell of the agent".to_owned()));
    }
    let seconds = |key: &'static str| {
        let usual = USUAL.iter().find(|(name, _)| *name == key).map_or(0.0, |(_, usual)| *usual);
        let value = keys.get(key).map_or(Some(usual), |value| python::of_yaml(value).as_f64());
        value
            .filter(|seconds| seconds.is_finite() && (1.0..86_400.0).contains(seconds))
            .ok_or((key, "this is not a number of seconds".to_owned()))
    };
    let (agent, tests) = (seconds("max_agent_timeout_sec")?, seconds("max_test_timeout_sec")?);
    case.keys.insert("prompt".to_owned(), json!(prompt.trim()));
    // The source runs the tests on the work that was done until then.
    case.keys.insert("limits".to_owned(), json!({"time": format!("{agent}s"), "on-limit": "grade"}));
    let tags = keys.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let others = ["difficulty", "category"].iter().filter_map(|key| keys.get(*key)?.as_str());
    let tags = parts::distinct(tags.chain(others).filter_map(slug));
    if !tags.is_empty() {
        case.keys.insert("tags".to_owned(), json!(tags));
    }
    let container = container(folder, agent + tests + 600.0)?;
    container.add(&mut case, group).map_err(|why| ("", format!("its image cannot be taken over: {why}")))?;
    let script = folder.join("run-tests.sh");
    if !script.is_file() {
        return Err(("", "it has no run-tests.sh".to_owned()));
    }
    let below = folder.join("tests");
    let files = if below.is_dir() { copied::all(&below, Path::new("tests")) } else { Ok(Vec::new()) };
    for file in files.map_err(|why| ("", format!("its tests cannot be copied: {why}")))? {
        case.add(&format!("hidden/{FOLDER}/{}", file.to.display()), Content::Copy(file.from));
    }
    case.add(&format!("hidden/{FOLDER}/run-tests.sh"), Content::Copy(script));
    let verify = case.add(&format!("hidden/{FOLDER}/verify.sh"), Content::Text(VERIFY.to_owned()));
    case.keys.insert("hidden".to_owned(), json!(verify.split('/').next().unwrap_or_default()));
    let grader = json!({"tests": {
        "name": "tests",
        "run": ["sh", format!("{FOLDER}/verify.sh")],
        "format": "pytest",
        "timeout": format!("{tests}s"),
    }});
    case.keys.insert("graders".to_owned(), json!([grader]));
    let known = [
        "instruction",
        "descriptions",
        "difficulty",
        "category",
        "tags",
        "parser_name",
        "max_agent_timeout_sec",
        "max_test_timeout_sec",
        "run_tests_in_same_shell",
    ];
    let has_own = keys.get("instruction").and_then(Value::as_str).is_some();
    let mut is_taken = has_own;
    for (at, item) in keys.get("descriptions").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let own = item.get("key").and_then(Value::as_str).unwrap_or_default();
        if own == "base" && !is_taken {
            is_taken = true;
            continue;
        }
        let which = if has_own { "`instruction`" } else { "the description `base`" };
        let message = format!("left out: the description `{}`; the prompt is {which}", one_line(own));
        case.notes.push(Note::new(file, format!("descriptions[{at}]"), message));
    }
    for key in keys.keys().filter(|key| !known.contains(&key.as_str())) {
        let is_known = BESIDE.contains(&key.as_str());
        let message = if is_known { "left out: the key does not change the task" } else { UNKNOWN };
        case.notes.push(Note::new(file, key.clone(), message));
    }
    for name in ["solution.sh", "solution.yaml"].iter().filter(|name| folder.join(name).is_file()) {
        let message = "left out: the solution runs only in the container";
        case.notes.push(Note::new(&folder.join(name), "", message));
    }
    Ok(case)
}

/// Returns the container of a task. The compose file must not contain settings beyond its Dockerfile.
fn container(folder: &Path, seconds: f64) -> Result<Container, Refused<&'static str>> {
    let mut context = folder.to_owned();
    let mut container = Container { seconds: seconds.ceil() as u64, ..Container::default() };
    let names = ["docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"];
    let (mut has_compose, mut has_command) = (false, false);
    if let Some(compose) = names.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        let wrong = |why: &str| {
            let name = compose.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            ("", format!("its {name} {why}, and one container is started here"))
        };
        let value = source::value(&compose).map_err(|_| wrong("cannot be read"))?;
        let services = value.get("services").and_then(Value::as_object).cloned().unwrap_or_default();
        let (Some(service), 1) = (services.values().next(), services.len()) else {
            return Err(wrong("has not one service"));
        };
        if value.as_object().into_iter().flat_map(Map::keys).any(|key| !["services", "version"].contains(&key.as_str()))
        {
            return Err(wrong("has networks, volumes or other parts"));
        }
        has_compose = true;
        for (key, value) in service.as_object().into_iter().flatten() {
            match key.as_str() {
                "image" | "container_name" | "tty" | "stdin_open" => {}
                "command" if dockerfile::is_idle(value) => has_command = !value.is_null(),
                "command" => {
                    return Err(wrong(&format!("starts the command `{}`", parts::words(value))));
                }
                "build" => context = build(folder, value).map_err(|why| wrong(&why))?,
                "volumes" => {
                    let is_usual = |volume: &Value| volume.as_str().is_some_and(|text| text.starts_with("${T_BENCH_"));
                    if !value.is_null() && !value.as_array().is_some_and(|list| list.iter().all(is_usual)) {
                        return Err(wrong("mounts folders"));
                    }
                }
                "environment" => {
                    for (name, value) in variables(value).ok_or_else(|| {
                        wrong("has an `environment` that is neither a list of `NAME=VALUE` nor a map to texts")
                    })? {
                        // Compose reads `$NAME` as `${NAME}`, and `$$` as `$`.
                        match value.contains('$') {
                            true if name == "TEST_DIR" => {}
                            true => return Err(wrong("takes variables from the machine")),
                            false => container.options.extend(["--env".to_owned(), format!("{name}={value}")]),
                        }
                    }
                }
                "working_dir" if value.as_str().is_some_and(|path| path.contains('$')) => {
                    return Err(wrong("takes variables from the machine"));
                }
                "working_dir" => container.workdir = value.as_str().map(str::to_owned),
                other => return Err(wrong(&format!("has the key `{other}`"))),
            }
        }
    }
    let file = context.join("Dockerfile");
    container.dockerfile = yaml::read(&file).map_err(|_| ("", "it has no Dockerfile".to_owned()))?;
    dockerfile::check(&container.dockerfile).map_err(|why| ("", why))?;
    if has_compose
        && !has_command
        && let Some(command) = dockerfile::instruction(&container.dockerfile, "CMD")
        && !dockerfile::is_idle(&dockerfile::written(&command))
    {
        return Err(("", format!("the image starts the CMD `{command}`, which is not started here")));
    }
    container.context = Some(context);
    Ok(container)
}

fn build(folder: &Path, value: &Value) -> Result<PathBuf, String> {
    let context = match value {
        Value::String(path) => path.as_str(),
        Value::Object(map) => {
            if map.keys().any(|key| !["context", "dockerfile"].contains(&key.as_str())) {
                return Err("builds its image with arguments".to_owned());
            }
            if map.get("dockerfile").is_some_and(|name| *name != json!("Dockerfile")) {
                return Err("builds another Dockerfile".to_owned());
            }
            map.get("context").and_then(Value::as_str).unwrap_or(".")
        }
        _ => return Err("has a service whose `build` is neither a path nor a map".to_owned()),
    };
    let clean = context.trim_start_matches("./").trim_end_matches('/');
    match crate::paths::leaves(Path::new(clean)) {
        _ if clean.is_empty() || clean == "." => Ok(folder.to_owned()),
        None => Ok(folder.join(clean)),
        Some(why) => Err(format!("builds from a path that {why}")),
    }
}

fn variables(value: &Value) -> Option<Vec<(String, String)>> {
    match value {
        Value::Array(list) => {
            let pair =
                |item: &Value| item.as_str()?.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
            list.iter().map(pair).collect()
        }
        Value::Object(map) => map.iter().map(|(name, value)| Some((name.clone(), parts::scalar(value)?))).collect(),
        Value::Null => Some(Vec::new()),
        _ => None,
    }
}

//! Resolves the arms of an experiment: reads the files that they name, and refuses arms with differences that the
//! experiment does not declare.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::Experiment;
use super::arm::Arm;
use super::sources::{Written, WrittenArm};
use super::variant::{KEYS, servers_of};
use crate::case::{LoadError, mcp_servers};
use crate::harness::HOME_IS_PRIVATE;
use crate::interaction::{Interaction, PolicyFolder};
use crate::overlay::{self, ExtraFiles, SkillSource};
use crate::paths;
use crate::secrets::servers::named_values;
use crate::secrets::{looks_secret, url_credentials};
use crate::values::is_hidden;
use crate::yaml::{Step, StepPart, words};

/// Looks up the names that an experiment mentions.
pub struct Resolver<'a> {
    /// The named policies.
    pub policies: &'a PolicyFolder,
    /// Returns the name of a harness's manifest, or the help for a name that has none.
    pub harness: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Resolves the arms of an experiment. The baseline becomes the first one.
///
/// # Errors
/// Returns all errors, each at its place: paths that do not exist, unknown names, equal arms, and differences that are
/// not declared.
pub fn resolve(written: Written, resolver: &Resolver<'_>) -> Result<Experiment, Vec<LoadError>> {
    let mut errors: Vec<LoadError> = Vec::new();
    let mut arms: Vec<Arm> = Vec::new();
    for arm in &written.arms {
        errors.extend(wrong_name(arm, &written.arms));
        arms.push(resolved(arm, resolver, &mut errors));
    }
    if let Some(name) = &written.baseline {
        match arms.iter().position(|arm| arm.name == *name) {
            Some(at) => arms[..=at].rotate_right(1),
            None => {
                let known: Vec<&str> = arms.iter().map(|arm| &*arm.name).collect();
                let message = format!("no variant is named `{}`", words::short(name));
                let help = words::known_words(name, &known, "variants");
                let place = written
                    .source
                    .as_ref()
                    .map(|it| it.below(&[Step::Key("baseline")], StepPart::Value, message, help));
                errors.extend(place);
            }
        }
    }
    if errors.is_empty() {
        errors.extend(undeclared(&arms, written.vary.as_deref()));
        errors.extend(same(&arms));
    }
    // What every arm has is read for each of them.
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|error| seen.insert(error.to_string()));
    if !errors.is_empty() {
        return Err(errors);
    }
    let vary = written.vary.unwrap_or_else(|| differing(&arms));
    Ok(Experiment {
        file: written.file,
        description: written.description,
        trials: written.trials,
        vary,
        axes: written.axes,
        arms,
    })
}

/// Returns an error about the name of an arm.
fn wrong_name(arm: &WrittenArm, all: &[WrittenArm]) -> Option<LoadError> {
    let name = &arm.name;
    let message = if name.trim().is_empty() || name == "." || name == ".." {
        "the name of a variant is empty, or names a folder".to_owned()
    } else if name.chars().any(|c| c.is_control() || is_hidden(c)) {
        "the name of a variant contains a character that cannot be seen".to_owned()
    } else if name == "default" {
        "`default` is the name of a plain run without a model".to_owned()
    } else if super::without_copy(name) != name {
        format!("the variant `{name}` ends in `#` and a number, which names the copy of an arm in `--aa`")
    } else if all.iter().filter(|other| other.name == *name).count() > 1 {
        format!("two variants have the name `{name}`")
    } else {
        return None;
    };
    Some(arm.place.error(StepPart::Key, message, "choose another name"))
}

/// Resolves one arm. Invalid parts are left out of the result, and added to the errors.
fn resolved(written: &WrittenArm, resolver: &Resolver<'_>, errors: &mut Vec<LoadError>) -> Arm {
    let mut arm = Arm {
        name: written.name.clone(),
        layer: written.layer.clone(),
        labels: written.labels.clone(),
        skills: None,
        resolved: Map::new(),
        digest: String::new(),
        sources: BTreeMap::new(),
        secrets: Vec::new(),
        place: written.place.clone(),
        places: written.places.clone(),
    };
    let mut problems = Problems { arm: written, errors };
    harness(&mut arm, resolver, &mut problems);
    interaction(&mut arm, resolver, &mut problems);
    skills(&mut arm, &mut problems);
    files(&mut arm, &mut problems);
    values(&arm, &mut problems);
    let (resolved, sources) = describe(&arm, &mut problems);
    (arm.resolved, arm.sources) = (resolved, sources);
    arm.secrets = secrets(&arm);
    arm.digest = blake3::hash(Value::Object(arm.resolved.clone()).to_string().as_bytes()).to_hex().to_string();
    arm
}

/// The errors of an arm.
struct Problems<'a> {
    arm: &'a WrittenArm,
    errors: &'a mut Vec<LoadError>,
}

impl Problems<'_> {
    fn add(&mut self, key: &str, more: &[Step<'_>], part: StepPart, message: String, help: impl Into<String>) {
        let place = self.arm.places.get(key).unwrap_or(&self.arm.place);
        self.errors.push(place.below(more, part, message, help));
    }
}

fn harness(arm: &mut Arm, resolver: &Resolver<'_>, problems: &mut Problems<'_>) {
    let Some(name) = &mut arm.layer.harness else { return };
    match (resolver.harness)(name) {
        Ok(known) => *name = known,
        Err(help) => {
            let message = format!("no harness is named `{}`", words::short(name));
            problems.add("harness", &[], StepPart::Value, message, help);
        }
    }
}

fn interaction(arm: &mut Arm, resolver: &Resolver<'_>, problems: &mut Problems<'_>) {
    let Some(policy) = arm.layer.interaction.take() else { return };
    match policy.resolved(resolver.policies) {
        Ok(policy) => arm.layer.interaction = Some(policy),
        Err(name) => {
            let message = format!("no policy is named `{}`", words::short(&name));
            problems.add("interaction", &[], StepPart::Value, message, resolver.policies.known(&name));
        }
    }
}

fn skills(arm: &mut Arm, problems: &mut Problems<'_>) {
    let Some(entries) = &arm.layer.skills else { return };
    let mut skills: Vec<SkillSource> = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let at = [Step::Item(number)];
        match SkillSource::read(entry) {
            Ok(skill) if skills.iter().any(|other| other.name == skill.name) => {
                let message = format!("two skills have the name `{}`", skill.name);
                problems.add("skills", &at, StepPart::Value, message, "remove one of them");
            }
            Ok(skill) => match overlay::can_be_laid(&skill.folder) {
                Ok(()) => skills.push(skill),
                Err(why) => {
                    let message = format!("`{}` cannot be laid: {why}", paths::shown(&entry.path).display());
                    problems.add("skills", &at, StepPart::Value, message, "take it out of the skill");
                }
            },
            Err(why) => {
                let message = format!("`{}` is not a skill: {why}", paths::shown(&entry.path).display());
                problems.add("skills", &at, StepPart::Value, message, "write the path of a folder with a SKILL.md");
            }
        }
    }
    arm.skills = Some(skills);
}

fn files(arm: &mut Arm, problems: &mut Problems<'_>) {
    if let Some(file) = arm.layer.instructions.as_ref().and_then(|it| it.file.as_ref())
        && !file.is_file()
    {
        let message = format!("`{}` is not a file", paths::shown(file).display());
        problems.add("instructions", &[], StepPart::Value, message, "write the path of a file, or `{text: …}`");
    }
    match &arm.layer.files {
        Some(ExtraFiles::Folder(folder)) if !folder.is_dir() => {
            let message = format!("`{}` is not a folder", paths::shown(folder).display());
            problems.add(
                "files",
                &[],
                StepPart::Value,
                message,
                "write the path of a folder, or a map from paths to texts",
            );
        }
        Some(ExtraFiles::Texts(texts)) => {
            for path in texts.keys() {
                let holder = texts.keys().find(|other| *other != path && Path::new(path).starts_with(other));
                if let Some(other) = holder {
                    let message =
                        format!("`{}` is in `{}`, which is also a file here", words::short(path), words::short(other));
                    problems.add("files", &[Step::Key(path)], StepPart::Key, message, "rename one of them");
                } else if let Some(why) = paths::leaves(Path::new(path)) {
                    let message = format!("the file `{}` {why}", words::short(path));
                    let help = "files are written inside the workspace: use a relative path without `..`";
                    problems.add("files", &[Step::Key(path)], StepPart::Key, message, help);
                }
            }
        }
        _ => {}
    }
}

fn values(arm: &Arm, problems: &mut Problems<'_>) {
    for (name, value) in arm.layer.env.iter().flatten() {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let message = format!("`{}` cannot be an environment variable", words::short(name));
            problems.add("env", &[Step::Key(name)], StepPart::Key, message, "a name is not empty and holds no `=`");
        }
    }
    for server in servers_of(arm.layer.mcp_servers.clone()) {
        if !server.get("name").is_some_and(Value::is_string) {
            let help = "write `- {name: …, command: …, args: […]}` for each";
            problems.add("mcp-servers", &[], StepPart::Value, "an MCP server has no `name`".to_owned(), help);
        }
        for wrong in mcp_servers::wrong(&server, true) {
            problems.add("mcp-servers", &[], StepPart::Value, wrong.message, &wrong.help);
        }
    }
    if matches!(&arm.layer.mcp_servers, Some(written) if !written.is_array() && !written.is_object()) {
        let help = "write `- {name: …, command: …, args: […]}` for each";
        problems.add("mcp-servers", &[], StepPart::Value, "`mcp-servers` must be a list".to_owned(), help);
    }
    if arm.layer.env.iter().flatten().any(|(name, _)| name == "HOME") {
        problems.add("env", &[Step::Key("HOME")], StepPart::Key, HOME_IS_PRIVATE.to_owned(), "remove it");
    }
    for (key, words) in [("args", &arm.layer.args), ("command", &arm.layer.command)] {
        if words.iter().flatten().any(|word| word.contains('\0')) {
            problems.add(key, &[], StepPart::Value, "an argument holds a NUL character".to_owned(), "remove it");
        }
    }
    if arm.layer.command.as_ref().is_some_and(|command| command.first().is_none_or(String::is_empty)) {
        problems.add("command", &[], StepPart::Value, "the command is empty".to_owned(), "write the program first");
    }
    let empty = [
        ("model", &arm.layer.model),
        ("session-mode", &arm.layer.session_mode),
        ("system-prompt", &arm.layer.system_prompt),
        ("harness", &arm.layer.harness),
    ];
    for (key, value) in empty {
        if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
            problems.add(key, &[], StepPart::Value, format!("`{key}` is empty"), "write it, or remove the key");
        }
    }
}

type Described = (Map<String, Value>, BTreeMap<PathBuf, String>);

/// Describes the settings that an arm overrides. Files and folders are described by their content, independent of their
/// path.
fn describe(arm: &Arm, problems: &mut Problems<'_>) -> Described {
    let layer = &arm.layer;
    let (mut map, mut sources) = (Map::new(), BTreeMap::new());
    let mut digest = |key: &str, path: &Path| match overlay::digest(path) {
        Ok(digest) => {
            sources.insert(path.to_owned(), digest.clone());
            Value::String(digest)
        }
        // A path that is not there was reported before.
        Err(error) => {
            if path.exists() {
                let message = format!("`{}` cannot be read: {error}", paths::shown(path).display());
                problems.add(key, &[], StepPart::Value, message, "make it readable");
            }
            Value::Null
        }
    };
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(key.to_owned(), value);
        }
    };
    put("harness", layer.harness.clone().map(Value::String));
    put("model", layer.model.clone().map(Value::String));
    put(
        "skills",
        arm.skills.as_ref().map(|skills| {
            let mut all: Vec<Value> = Vec::new();
            let mut sorted: Vec<&SkillSource> = skills.iter().collect();
            sorted.sort_by(|one, other| one.name.cmp(&other.name));
            for skill in sorted {
                let mut one = json!({"name": skill.name, "digest": digest("skills", &skill.folder)});
                if let (Some(place), Some(one)) = (skill.place, one.as_object_mut()) {
                    one.insert("in".to_owned(), json!(place));
                }
                all.push(one);
            }
            Value::Array(all)
        }),
    );
    put(
        "instructions",
        layer.instructions.as_ref().map(|it| {
            let mut one = Map::new();
            match (&it.file, &it.text) {
                (Some(file), _) => _ = one.insert("digest".to_owned(), digest("instructions", file)),
                (None, Some(text)) => {
                    let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
                    one.insert("digest".to_owned(), Value::String(hash));
                }
                (None, None) => {}
            }
            one.extend(it.place.map(|place| ("in".to_owned(), json!(place))));
            one.extend(it.mode.map(|mode| ("mode".to_owned(), json!(mode))));
            Value::Object(one)
        }),
    );
    put("mcp-servers", layer.mcp_servers.clone().map(|it| Value::Array(servers_of(Some(it)))));
    put("system-prompt", layer.system_prompt.clone().map(Value::String));
    put("prompt", layer.prompt.as_ref().map(|it| json!(it)));
    put("env", layer.env.as_ref().map(|it| json!(it)));
    put("session-mode", layer.session_mode.clone().map(Value::String));
    put("interaction", layer.interaction().map(Interaction::to_text).map(Value::String));
    put(
        "files",
        layer.files.as_ref().map(|files| match files {
            ExtraFiles::Folder(folder) => json!({"digest": digest("files", folder)}),
            ExtraFiles::Texts(texts) => json!(texts),
        }),
    );
    put("args", layer.args.as_ref().map(|it| json!(it)));
    put("command", layer.command.as_ref().map(|it| json!(it)));
    // A program that the experiment brings is part of the arm, as a skill is.
    let program = layer.command.as_ref().and_then(|command| command.first()).map(Path::new);
    let program = program.filter(|path| path.is_absolute() && path.is_file());
    put("program", program.map(|path| digest("command", path)));
    put("limits", layer.limits.as_ref().map(|it| json!(it)));
    (map, sources)
}

/// Returns the value of a key, or `null`. A key that overrides nothing is as if it was not written.
pub(super) fn value<'a>(arm: &'a Arm, key: &str) -> &'a Value {
    let empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty() && key != "skills" && key != "mcp-servers",
        _ => false,
    };
    arm.resolved.get(key).filter(|value| !empty(value)).unwrap_or(&Value::Null)
}

/// Returns true if two arms have the same value of a key. No skills are the same as none written: whether a case has
/// skills of its own is decided by the case.
pub(super) fn is_same(one: &Arm, other: &Arm, key: &str) -> bool {
    value(one, key) == value(other, key)
}

/// Returns the keys in which arms differ.
fn differing(arms: &[Arm]) -> Vec<String> {
    let Some((first, rest)) = arms.split_first() else { return Vec::new() };
    let differs = |key: &&&str| rest.iter().any(|arm| !is_same(first, arm, key));
    KEYS.iter().filter(differs).map(|key| (*key).to_owned()).collect()
}

/// Returns an error for each key in which an arm differs from the baseline and that is not declared.
fn undeclared(arms: &[Arm], vary: Option<&[String]>) -> Vec<LoadError> {
    let (Some(vary), Some((baseline, rest))) = (vary, arms.split_first()) else { return Vec::new() };
    let mut errors = Vec::new();
    for arm in rest {
        for key in KEYS.iter().filter(|key| !vary.iter().any(|known| known == **key)) {
            if !is_same(baseline, arm, key) {
                let (name, base) = (&arm.name, &baseline.name);
                let hide = |text: String| hidden(arm.secrets.iter().chain(&baseline.secrets), text);
                let (here, there) = (shown(key, value(arm, key), &hide), shown(key, value(baseline, key), &hide));
                let message = format!(
                    "`{key}` of `{name}` differs from the baseline `{base}`, and `vary` does not list it: {here} in \
                     `{name}`, {there} in `{base}`"
                );
                let with = if arm.places.contains_key(key) { arm } else { baseline };
                let help = format!("add `{key}` to `vary`, or write the same value in both");
                errors.push(with.error(Some(key), message, help));
            }
        }
    }
    errors
}

/// Returns the secrets that an arm contains, with their names: values of variables and settings that are named like
/// secrets, and words after options that are named like secrets.
fn secrets(arm: &Arm) -> Vec<(String, String)> {
    let layer = &arm.layer;
    let env = layer.env.iter().flatten().map(|(name, value)| (name.clone(), value.clone()));
    let servers = named_values(&servers_of(layer.mcp_servers.clone()));
    let words: Vec<&String> = layer.command.iter().chain(&layer.args).flatten().collect();
    let options = words.windows(2).filter_map(|pair| match pair {
        [option, value] if option.starts_with('-') => {
            Some((option.trim_start_matches('-').to_owned(), (*value).clone()))
        }
        _ => None,
    });
    let assigned = words.iter().filter(|word| word.starts_with('-')).filter_map(|word| word.split_once('='));
    let assigned = assigned.map(|(name, value)| (name.trim_start_matches('-').to_owned(), value.to_owned()));
    let all = env.chain(servers).chain(options).chain(assigned);
    let secrets_of = |(name, value): (String, String)| match looks_secret(&name) {
        true => vec![(name, value)],
        false => url_credentials(&name, &value).into_iter().map(|part| (name.clone(), part)).collect(),
    };
    all.flat_map(secrets_of).filter(|(_, value)| !value.is_empty()).collect()
}

/// Returns a text with secrets redacted, as they are and as they are written in JSON.
pub(super) fn hidden<'a>(secrets: impl IntoIterator<Item = &'a (String, String)>, text: String) -> String {
    let mut secrets: Vec<&(String, String)> = secrets.into_iter().collect();
    // A secret may be a part of another: the rest of the longer one would be left.
    secrets.sort_by_key(|(_, value)| Reverse(value.len()));
    secrets.into_iter().fold(text, |text, (name, value)| {
        let mark = format!("[redacted:{name}]");
        let quoted = Value::from(value.as_str()).to_string();
        let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
        text.replace(escaped, &mark).replace(value.as_str(), &mark)
    })
}

/// Formats a value for a message. Content is shown by the beginning of its digest. `hide` redacts secrets.
pub(super) fn shown(key: &str, value: &Value, hide: &dyn Fn(String) -> String) -> String {
    let digest = |value: &Value| {
        let digest = value.get("digest").and_then(Value::as_str)?;
        Some(digest.get(..8).unwrap_or(digest).to_owned())
    };
    let skill = |skill: &Value| {
        let name = skill.get("name").and_then(Value::as_str).unwrap_or_default();
        format!("{name} ({})", digest(skill).unwrap_or_default())
    };
    match (key, value) {
        (_, Value::Null) => "not set".to_owned(),
        ("skills", Value::Array(skills)) if skills.is_empty() => "no skills".to_owned(),
        ("skills", Value::Array(skills)) => hide(skills.iter().map(skill).collect::<Vec<_>>().join(", ")),
        ("instructions" | "files", value) if digest(value).is_some() => {
            format!("content {}", digest(value).unwrap_or_default())
        }
        // Secrets are redacted before the text is cut: the beginning of a secret would not be found.
        (_, Value::String(text)) => format!("`{}`", words::short(&hide(text.clone()))),
        (_, other) => format!("`{}`", words::short(&hide(other.to_string()))),
    }
}

/// Returns an error for each arm that equals an earlier one.
fn same(arms: &[Arm]) -> Vec<LoadError> {
    let mut errors = Vec::new();
    for (number, arm) in arms.iter().enumerate() {
        let is_it = |other: &&Arm| KEYS.iter().all(|key| is_same(other, arm, key));
        if let Some(other) = arms.iter().take(number).find(is_it) {
            let message = format!(
                "the variants `{}` and `{}` resolve to the same arm: nothing differs between them",
                other.name, arm.name
            );
            errors.push(arm.error(None, message, "remove one of them, or write what differs"));
        }
    }
    errors
}

//! Imports BenchFlow's declarative manifests (`manifest.toml`, contract 1): parses them with every error at its place,
//! and translates them into manifests of this program. Fields without a counterpart are listed in notes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::catalog::{NAMES, no_name};
use super::{Manifest, ModelRoute, ModelVia, Tier};
use crate::harness::Adapter;
use crate::secrets::looks_secret;
use crate::yaml::{YamlError, words};

/// The major version of the contract that is supported.
const CONTRACT: u64 = 1;

/// The fields that a BenchFlow manifest may have.
const FIELDS: [&str; 16] = [
    "contract_version",
    "name",
    "description",
    "protocol",
    "api_protocol",
    "install_cmd",
    "launch_cmd",
    "install_timeout",
    "env_mapping",
    "acp_model_format",
    "supports_acp_set_model",
    "default_model",
    "skill_paths",
    "home_dirs",
    "requires_env",
    "aliases",
];

/// The characters that end a line of YAML, and therefore a comment.
const LINE_BREAKS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// The prefix of the canonical names of a provider's variables.
const PROVIDER: &str = "BENCHFLOW_PROVIDER_";

/// An imported manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The manifest in this program's fields.
    pub manifest: Manifest,
    /// Fields that have no counterpart or need review, one per line.
    pub notes: Vec<String>,
}

/// Reads a BenchFlow manifest.
///
/// # Errors
/// Returns all errors in the manifest, with their places.
pub fn import(path: &Path, text: &str) -> Result<Imported, Vec<YamlError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let told = |error: &toml::de::Error| YamlError::at(path, text, error.span(), error.message().to_owned());
        return Err(errors.iter().map(told).collect());
    }
    let mut fields = Fields { path, text, table: table.get_ref(), wrong: Vec::new() };
    let declared = fields.read();
    if fields.wrong.is_empty() {
        return Ok(taken_over(declared));
    }
    fields.wrong.sort_by_key(YamlError::place);
    Err(fields.wrong)
}

/// Writes an imported manifest as YAML: fields with their default values are left out, and fields that could
/// not be imported are listed in comments.
pub fn write(imported: &Imported) -> String {
    let mut text = String::from("# Converted from a BenchFlow manifest.toml by `evals harness import`.\n");
    for line in imported.notes.iter().flat_map(|note| note.split(LINE_BREAKS)).filter(|line| !line.is_empty()) {
        // Characters that YAML does not allow are escaped.
        let shown: String =
            line.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect();
        text.push_str(&format!("# {shown}\n"));
    }
    let bare = serde_json::to_value(Manifest::bare(imported.manifest.adapter)).unwrap_or_default();
    let mut value = serde_json::to_value(&imported.manifest).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, value| matches!(key.as_str(), "name" | "adapter") || bare.get(key) != Some(value));
    }
    text.push_str(&crate::yaml::write(&value));
    text.push_str("verified: []\n");
    text
}

/// The declarations of a BenchFlow manifest, with defaults filled in.
#[derive(Debug, Default)]
struct Declared {
    version: String,
    name: String,
    description: Option<String>,
    api_protocol: Option<String>,
    install: String,
    launch: String,
    install_timeout: Option<u64>,
    env_mapping: BTreeMap<String, String>,
    model_format: String,
    set_model: bool,
    default_model: Option<String>,
    skill_paths: Vec<String>,
    home_dirs: Vec<String>,
    requires_env: Vec<String>,
    aliases: Vec<String>,
}

struct Fields<'a> {
    path: &'a Path,
    text: &'a str,
    table: &'a DeTable<'a>,
    wrong: Vec<YamlError>,
}

impl Fields<'_> {
    fn read(&mut self) -> Declared {
        self.unknown();
        let declared = Declared {
            version: self.required("contract_version"),
            name: self.required("name"),
            description: self.word("description"),
            api_protocol: self.word("api_protocol"),
            install: self.required("install_cmd"),
            launch: self.required("launch_cmd"),
            install_timeout: self.seconds("install_timeout"),
            env_mapping: self.map("env_mapping"),
            model_format: self
                .one_of("acp_model_format", &["bare", "provider/model", "registered-provider/model"])
                .unwrap_or_else(|| "bare".to_owned()),
            set_model: self.flag("supports_acp_set_model").unwrap_or(true),
            default_model: self.word("default_model"),
            skill_paths: self.list("skill_paths"),
            home_dirs: self.list("home_dirs"),
            requires_env: self.list("requires_env"),
            aliases: self.list("aliases"),
        };
        self.one_of("protocol", &["acp"]);
        self.check_version(&declared.version);
        self.check_names(&declared);
        declared
    }

    fn at(&mut self, place: Option<Range<usize>>, message: String, help: impl Into<String>) {
        self.wrong.push(YamlError::at(self.path, self.text, place, message).with_help(help));
    }

    fn unknown(&mut self) {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !FIELDS.contains(&name) {
                let message = format!("unknown field `{}`", words::short(name));
                self.at(Some(key.span()), message, words::known_words(name, &FIELDS, "fields"));
            }
        }
    }

    fn get(&self, key: &str) -> Option<&Spanned<DeValue<'_>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// Reads a field of a type, and records an error if the field has another type.
    fn typed<T>(&mut self, key: &str, wanted: &str, read: impl FnOnce(&DeValue<'_>) -> Option<T>) -> Option<T> {
        let value = self.get(key)?;
        let (span, found) = (value.span(), value.get_ref().type_str());
        let read = read(value.get_ref());
        if read.is_none() {
            self.at(
                Some(span),
                format!("`{key}` must be {wanted}, found {}", article(found)),
                format!("write {wanted}"),
            );
        }
        read
    }

    fn word(&mut self, key: &str) -> Option<String> {
        self.typed(key, "a text", |value| value.as_str().map(str::to_owned))
    }

    fn required(&mut self, key: &str) -> String {
        if self.get(key).is_none() {
            self.at(None, format!("the field `{key}` is missing"), format!("write `{key} = \"…\"`"));
            return String::new();
        }
        let word = self.word(key);
        let place = self.get(key).map(Spanned::span);
        match word {
            Some(word) if word.trim().is_empty() => {
                self.at(place, format!("`{key}` is empty"), "write a value");
                word
            }
            Some(word) => word,
            None => String::new(),
        }
    }

    fn flag(&mut self, key: &str) -> Option<bool> {
        self.typed(key, "`true` or `false`", |value| value.as_bool())
    }

    /// Reads a whole number from 1; a float without a fraction is accepted.
    fn seconds(&mut self, key: &str) -> Option<u64> {
        self.typed(key, "a whole number of seconds from 1", |value| {
            let whole = match (value.as_integer(), value.as_float()) {
                (Some(integer), _) => u64::from_str_radix(integer.as_str(), integer.radix()).ok()?,
                (None, Some(float)) => {
                    let float: f64 = float.as_str().parse().ok()?;
                    (float.fract() == 0.0 && (1.0..1e15).contains(&float)).then_some(float as u64)?
                }
                (None, None) => return None,
            };
            (whole >= 1).then_some(whole)
        })
    }

    fn one_of(&mut self, key: &str, known: &[&str]) -> Option<String> {
        let word = self.word(key)?;
        if known.contains(&word.as_str()) {
            return Some(word);
        }
        let place = self.get(key).map(Spanned::span);
        self.at(
            place,
            format!("`{}` is not a valid `{key}`", words::short(&word)),
            words::known_words(&word, known, "words"),
        );
        None
    }

    fn list(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let (place, items) = (value.span(), value.get_ref().as_array());
        let Some(items) = items else {
            let found = value.get_ref().type_str();
            self.at(
                Some(place),
                format!("`{key}` must be a list of texts, found {}", article(found)),
                "write `[\"…\"]`",
            );
            return Vec::new();
        };
        let read: Vec<(Range<usize>, Option<String>)> =
            items.iter().map(|item| (item.span(), item.get_ref().as_str().map(str::to_owned))).collect();
        let mut texts = Vec::new();
        for (place, item) in read {
            match item {
                Some(item) => texts.push(item),
                None => {
                    self.at(Some(place), format!("`{key}` contains a value that is not a text"), "put it in quotes")
                }
            }
        }
        texts
    }

    fn map(&mut self, key: &str) -> BTreeMap<String, String> {
        let Some(value) = self.get(key) else { return BTreeMap::new() };
        let place = value.span();
        let Some(table) = value.get_ref().as_table() else {
            let found = value.get_ref().type_str();
            self.at(
                Some(place),
                format!("`{key}` must be a table, found {}", article(found)),
                format!("write `[{key}]`"),
            );
            return BTreeMap::new();
        };
        let read: Vec<(Range<usize>, String, Option<String>)> = table
            .iter()
            .map(|(name, value)| {
                (value.span(), name.get_ref().to_string(), value.get_ref().as_str().map(str::to_owned))
            })
            .collect();
        let mut map = BTreeMap::new();
        for (place, name, text) in read {
            match text {
                Some(text) => {
                    map.insert(name, text);
                }
                None => self.at(Some(place), format!("`{key}.{name}` must be a text"), "put it in quotes"),
            }
        }
        map
    }

    fn check_version(&mut self, version: &str) {
        if version.is_empty() {
            return;
        }
        let place = self.get("contract_version").map(Spanned::span);
        let parts: Vec<&str> = version.split('.').collect();
        let digits = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !matches!(parts.len(), 2 | 3) || !parts.iter().all(digits) {
            let message = format!("`{}` is not a contract version", words::short(version));
            return self.at(place, message, "write it as `1.0`");
        }
        if parts.first().and_then(|major| major.parse::<u64>().ok()) != Some(CONTRACT) {
            let message =
                format!("the manifest has contract version {}; supported is {CONTRACT}.x", words::short(version));
            self.at(place, message, "use a manifest of a supported version, or write a harness manifest by hand");
        }
    }

    /// Checks that values which become names in the manifest are valid names.
    fn check_names(&mut self, declared: &Declared) {
        let mut wrong = Vec::new();
        // An empty name is reported when it is read.
        if no_name(&declared.name) && !declared.name.trim().is_empty() {
            wrong.push(("name", &declared.name));
        }
        wrong.extend(declared.aliases.iter().filter(|alias| no_name(alias)).map(|alias| ("aliases", alias)));
        for (key, name) in wrong {
            let place = self.get(key).map(Spanned::span);
            self.at(place, format!("`{}` is not a valid harness name", words::short(name)), NAMES);
        }
    }
}

fn article(found: &str) -> String {
    match found {
        "string" => "a text".to_owned(),
        "array" => "a list".to_owned(),
        "table" => "a table".to_owned(),
        "boolean" => "`true` or `false`".to_owned(),
        "integer" | "float" => "a number".to_owned(),
        other => format!("a {other}"),
    }
}

fn taken_over(declared: Declared) -> Imported {
    let mut notes = vec![format!("The source has contract version {}.", declared.version)];
    let mut manifest = Manifest::bare(Adapter::Acp);
    manifest.tier = Some(Tier::Catalog);
    manifest.aliases = declared.aliases.iter().filter(|alias| **alias != declared.name).cloned().collect();
    manifest.install = Some(declared.install.clone());
    launch(&declared.launch, &mut manifest, &mut notes);
    environment(&declared, &mut manifest);
    manifest.model = route(&declared, &mut notes);
    manifest.requires_env = declared.requires_env.clone();
    if let Some(api) = &declared.api_protocol {
        notes.push(format!("api_protocol = \"{api}\": the API between the agent and its model."));
    }
    if declared.model_format != "bare" {
        notes.push(format!(
            "acp_model_format = \"{}\": the form of the model names that the agent takes.",
            declared.model_format
        ));
    }
    if let Some(seconds) = declared.install_timeout {
        notes.push(format!("install_timeout = {seconds}: nothing is installed by evals."));
    }
    for (key, paths) in [("skill_paths", &declared.skill_paths), ("home_dirs", &declared.home_dirs)] {
        if !paths.is_empty() {
            notes.push(format!(
                "{key} = {paths:?}: not converted; to copy files from the user's home, write `home: {{copy: […]}}`."
            ));
        }
    }
    manifest.name = declared.name;
    manifest.description = declared.description;
    Imported { manifest, notes }
}

/// Splits a command line that consists of plain words into a program and its arguments. Any other command line
/// is run by a shell.
fn launch(line: &str, manifest: &mut Manifest, notes: &mut Vec<String>) {
    let plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./=:,@%+".contains(&byte));
    let words: Vec<&str> = line.split_whitespace().collect();
    if !line.trim().contains('\n') && words.iter().all(|word| plain(word)) {
        let is_setting = |word: &&str| {
            let name = word.split_once('=').map(|(name, _)| name).unwrap_or_default();
            !name.is_empty()
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let settings = words.iter().take_while(|word| is_setting(word)).count();
        for setting in words.iter().take(settings) {
            if let Some((name, value)) = setting.split_once('=') {
                manifest.env.set.insert(name.to_owned(), value.to_owned());
            }
        }
        manifest.command =
            words.iter().skip(settings).skip_while(|word| **word == "exec").map(|word| (*word).to_owned()).collect();
        if !manifest.command.is_empty() {
            return;
        }
        manifest.env.set.clear();
    }
    manifest.command = vec!["bash".to_owned(), "-c".to_owned(), line.to_owned()];
    notes.push("launch_cmd is more than a program and its arguments, so bash runs it.".to_owned());
}

/// Collects the environment variables that the agent reads: the targets of the mapping, the required variables, and the
/// variables in its launch command.
fn environment(declared: &Declared, manifest: &mut Manifest) {
    let model = model_variable(declared);
    let renamed = declared.env_mapping.values().filter(|name| Some(name.as_str()) != model);
    let mut pass: Vec<String> = renamed.chain(&declared.requires_env).cloned().collect();
    let read = declared.launch.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    pass.extend(read.filter(|word| word.starts_with(PROVIDER)).map(str::to_owned));
    pass.retain(|name| !manifest.env.set.contains_key(name));
    pass.sort();
    pass.dedup();
    let keys = declared.env_mapping.iter().filter(|(from, _)| from.ends_with("_API_KEY")).map(|(_, to)| to);
    manifest.env.secret =
        pass.iter().filter(|name| looks_secret(name) || keys.clone().any(|key| key == *name)).cloned().collect();
    manifest.env.pass = pass;
}

/// Returns the variable that sets the model, if the mapping names one.
fn model_variable(declared: &Declared) -> Option<&str> {
    declared.env_mapping.get(&format!("{PROVIDER}MODEL")).map(String::as_str)
}

/// Returns how the model is chosen: over the protocol if the manifest states that this works, else by the
/// variable that the mapping names.
fn route(declared: &Declared, notes: &mut Vec<String>) -> ModelRoute {
    let default = declared.default_model.clone();
    let route =
        |via, env: Option<&str>| ModelRoute { via, flag: None, env: env.map(str::to_owned), default: default.clone() };
    match model_variable(declared) {
        Some(variable) if !declared.set_model => route(ModelVia::Env, Some(variable)),
        Some(variable) => {
            notes.push(format!("The model is set over the protocol; the variable {variable} would also set it."));
            route(ModelVia::ConfigOption, None)
        }
        None if declared.set_model => route(ModelVia::ConfigOption, None),
        None => {
            if let Some(model) = &declared.default_model {
                notes.push(format!(
                    "default_model = \"{model}\": not converted, because the agent has no way to select a model."
                ));
            }
            ModelRoute::default()
        }
    }
}

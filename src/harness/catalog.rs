//! The catalog of harnesses by name: built in, from a folder, or from a file. The last definition wins.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

mod placeholders;
mod rules;

use super::{HOME_IS_PRIVATE, Manifest, ModelVia, PromptVia, built_in};
use crate::embedded;
use crate::harness::Adapter;
use crate::trace::view;
use crate::yaml::{self, LeftOut, Step, StepPart, YamlError, words};

/// Manifests by name. Built-in manifests are parsed when they are requested.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// The manifests that were read from files, or given as text.
    own: BTreeMap<String, Entry>,
    /// True if the built-in manifests belong to the catalog; one of `own` takes the place of the built-in one of its name.
    with_built_in: bool,
    /// Warnings about manifests, with the name of the harness.
    warnings: Vec<(String, String)>,
}

/// A manifest and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub manifest: Arc<Manifest>,
    /// The origin of the manifest.
    pub origin: Origin,
}

/// The origin of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built into `evals`.
    BuiltIn,
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str(embedded::ORIGIN),
            Origin::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// The most names that a message lists.
const MAX_NAMES: usize = 12;

/// The prefix of an id of the protocol's own registry.
const REGISTRY: &str = "acp:";

/// An error: no harness has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("no harness is named `{name}`")]
#[diagnostic(help("{help}"))]
pub struct UnknownHarness {
    pub name: String,
    /// Similar names, or how to list all names.
    pub help: String,
}

impl Catalog {
    /// Reads the built-in manifests, the manifests of a folder, which need not exist, and single manifest files.
    ///
    /// # Errors
    /// Returns all errors in any of the manifests.
    pub fn load(built_in: &[(&str, &str)], folder: &Path, extra: &[PathBuf]) -> Result<Self, Vec<YamlError>> {
        let mut catalog = Self::default();
        let mut errors = Vec::new();
        for (name, text) in built_in {
            let shown = PathBuf::from(format!("{name}.yaml ({})", embedded::ORIGIN));
            catalog.add(&shown, (*text).to_owned(), Origin::BuiltIn, name, &mut errors);
        }
        catalog.with_files(folder, extra, errors)
    }

    fn with_files(
        mut self,
        folder: &Path,
        extra: &[PathBuf],
        mut errors: Vec<YamlError>,
    ) -> Result<Self, Vec<YamlError>> {
        let catalog = &mut self;
        let found = yaml::files(folder).unwrap_or_else(|error| {
            errors.push(error);
            Vec::new()
        });
        let mut files: Vec<PathBuf> = found.into_iter().map(|(_, file)| file).collect();
        // A file of the folder that is also named by its path is read once.
        let more = extra.iter().filter(|file| !files.iter().any(|known| is_same(known, file)));
        let more: Vec<PathBuf> = more.cloned().collect();
        files.extend(more);
        for file in files {
            match yaml::read(&file) {
                Ok(text) => {
                    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    catalog.add(&file, text, Origin::File(file.clone()), &stem, &mut errors);
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(self) } else { Err(errors) }
    }

    /// Reads the manifests for a command, including files that `--harness` names by path. Returns the names of
    /// the requested harnesses.
    ///
    /// # Errors
    /// Returns the errors of [`Catalog::load`].
    pub fn for_command(folder: &Path, asked: &[String]) -> Result<(Self, Vec<String>), Vec<YamlError>> {
        let files: Vec<PathBuf> = asked.iter().filter(|text| is_path(text)).map(PathBuf::from).collect();
        let catalog = Self { with_built_in: true, ..Self::default() }.with_files(folder, &files, Vec::new())?;
        let names = asked.iter().map(|text| {
            let is_it = |entry: &Entry| matches!(&entry.origin, Origin::File(file) if is_same(file, Path::new(text)));
            let named = catalog.own.iter().find(|(_, entry)| is_path(text) && is_it(entry));
            named.map_or_else(|| catalog.canonical(text), |(name, _)| name.clone())
        });
        let names = names.collect();
        Ok((catalog, names))
    }

    fn add(&mut self, shown: &Path, text: String, origin: Origin, stem: &str, errors: &mut Vec<YamlError>) {
        let parsed = yaml::parse_all::<Manifest>(shown, &text);
        let left_out = parsed.left_out.clone();
        let mut manifest = match parsed.checked(|manifest| {
            let mut wrong = check(shown, &text, manifest, &left_out);
            // Built-in manifests are checked by a test instead of at every start.
            if origin != Origin::BuiltIn {
                wrong.extend(rules::check(shown, &text, manifest, &left_out));
                wrong.extend(placeholders::check(shown, &text, manifest, &left_out));
            }
            wrong
        }) {
            Ok(manifest) => manifest,
            Err(wrong) => return errors.extend(wrong),
        };
        if manifest.model.via == ModelVia::None
            && yaml::find(&text, &[Step::Key("model")], StepPart::Key).is_none()
            && let Some(via) = manifest.place_of_model()
        {
            manifest.model.via = via;
        }
        if let Origin::File(file) = &origin {
            manifest.folder = std::path::absolute(file).ok().and_then(|file| file.parent().map(Path::to_path_buf));
        }
        // Like the paths in a case, the path of a recording is relative to the file that names it; otherwise to
        // the current directory.
        if let (Some(recording), Origin::File(file)) = (&mut manifest.recording, &origin) {
            let beside = file.parent().unwrap_or(Path::new("")).join(&*recording);
            if beside.exists() {
                *recording = beside;
            }
        }
        // A manifest from a later source wins; the same name in two files of one folder is an error.
        let beside = |other: &Path| matches!(&origin, Origin::File(file) if other.parent() == file.parent());
        if let Some(Entry { origin: Origin::File(other), .. }) = self.own.get(&manifest.name)
            && beside(other)
            && origin != Origin::File(other.clone())
        {
            let message =
                format!("two manifests have the name `{}`; the other is `{}`", manifest.name, other.display());
            let error = YamlError::at_steps(shown, &text, &[Step::Key("name")], StepPart::Value, message);
            return errors.push(error.with_help("give one of them another `name`"));
        }
        let mut warnings = warnings(&manifest, stem);
        warnings.extend(placeholders::doubtful_paths(&manifest));
        let about = |warning: String| (manifest.name.clone(), format!("{}: {warning}", shown.display()));
        self.warnings.extend(warnings.into_iter().map(about));
        let without_effect = manifest.overclaims().into_iter().map(|(key, why)| {
            let steps = [Step::Key("capabilities"), Step::Key(key)];
            let message = format!("`{key}: true` has no effect: {why}; remove it");
            let at = YamlError::at_steps(shown, &text, &steps, StepPart::Value, message);
            (manifest.name.clone(), at.to_string())
        });
        self.warnings.extend(without_effect);
        self.own.insert(manifest.name.clone(), Entry { manifest: Arc::new(manifest), origin });
    }

    /// Returns the manifest with this name or alias, or with this id in the protocol's registry (`acp:ID`).
    ///
    /// # Errors
    /// Returns an error if no harness has this name.
    pub fn get(&self, name: &str) -> Result<&Entry, UnknownHarness> {
        self.find(name).ok_or_else(|| UnknownHarness {
            name: name.to_owned(),
            help: format!(
                "{} `evals list harnesses --all` shows all with their origin; to use a manifest file, give its path, such as ./agent.yaml",
                words::sentence(&self.known(name))
            ),
        })
    }

    /// Returns the manifest with this name, alias, id in the protocol's registry, or path of a file that was read.
    pub fn find(&self, name: &str) -> Option<&Entry> {
        match name.strip_prefix(REGISTRY) {
            Some(id) => self.first(id, |manifest| manifest.registry_id.as_deref() == Some(id)),
            None => self.named(name).or_else(|| self.aliased(name)).or_else(|| self.of_file(name)),
        }
    }

    /// Returns the manifest with exactly this name.
    pub fn named(&self, name: &str) -> Option<&Entry> {
        let built_in = || built_in::file(name).filter(|_| self.with_built_in)?.entry();
        self.own.get(name).or_else(built_in)
    }

    fn of_file(&self, name: &str) -> Option<&Entry> {
        let is_it = |entry: &&Entry| matches!(&entry.origin, Origin::File(file) if is_same(file, Path::new(name)));
        self.own.values().find(is_it).filter(|_| is_path(name))
    }

    fn aliased(&self, name: &str) -> Option<&Entry> {
        self.first(name, |manifest| manifest.aliases.iter().any(|alias| alias == name))
    }

    /// Returns the first manifest of which a condition is true; a manifest of the user's own wins. Built-in manifests
    /// are looked at only if their text contains `word`.
    fn first(&self, word: &str, is_it: impl Fn(&Manifest) -> bool) -> Option<&Entry> {
        let mut own: Vec<&Entry> = self.own.values().filter(|entry| is_it(&entry.manifest)).collect();
        own.sort_by_key(|entry| entry.origin == Origin::BuiltIn);
        let built_in = || self.built_in(built_in::files_containing(word)).find(|entry| is_it(&entry.manifest));
        own.first().copied().or_else(built_in)
    }

    /// Returns the entries of the built-in manifests that belong to the catalog.
    fn built_in(&self, files: impl Iterator<Item = &'static built_in::File>) -> impl Iterator<Item = &Entry> {
        files.filter(|file| self.with_built_in && !self.own.contains_key(file.name)).filter_map(|file| file.entry())
    }

    /// Returns the name of the harness with this name or alias; an unknown name is returned unchanged.
    pub fn canonical(&self, name: &str) -> String {
        self.find(name).map_or_else(|| name.to_owned(), |entry| entry.manifest.name.clone())
    }

    /// Returns help for an unknown name: similar names, or all names if they are few.
    pub fn known(&self, name: &str) -> String {
        let Some(id) = name.strip_prefix(REGISTRY) else {
            let names = self.names();
            // People look for a manifest by the name of its file.
            let named = self.own.values().find_map(|entry| match &entry.origin {
                Origin::File(file) if file.file_stem() == Some(name.as_ref()) => Some((entry, file)),
                _ => None,
            });
            if let Some((entry, file)) = named {
                return format!("did you mean `{}`, the `name` in {}?", entry.manifest.name, file.display());
            }
            return match words::nearest(name, &names) {
                None if names.len() > MAX_NAMES => format!("{} harnesses are known", names.len()),
                _ => words::known_words(name, &names, "harnesses"),
            };
        };
        // If the text after `acp:` is the harness's own name, the help shows its registry id.
        let own = self.named(id).or_else(|| self.aliased(id));
        if let Some(own) = own.and_then(|entry| entry.manifest.registry_id.as_deref()) {
            return format!("did you mean `{REGISTRY}{own}`?");
        }
        let mut ids: Vec<String> = self
            .entries()
            .filter_map(|entry| Some(format!("{REGISTRY}{}", entry.manifest.registry_id.as_ref()?)))
            .collect();
        ids.sort();
        ids.dedup();
        words::known_words(name, &ids, "ids")
    }

    /// Returns all names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let built_in = built_in::files().iter().filter(|_| self.with_built_in).map(|file| file.name);
        let mut names: Vec<&str> = self.own.keys().map(String::as_str).chain(built_in).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns all entries, by name. This parses every built-in manifest.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        let mut entries: Vec<&Entry> = self.own.values().chain(self.built_in(built_in::files().iter())).collect();
        entries.sort_unstable_by(|one, other| one.manifest.name.cmp(&other.manifest.name));
        entries.into_iter()
    }

    /// Returns the entries of the user's own manifests, and those of the built-in ones whose text contains one of these parts, by
    /// name. The other built-in manifests are not parsed.
    pub fn entries_containing<'a>(&'a self, parts: &[&str]) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let files: Vec<_> = parts.iter().flat_map(|part| built_in::files_containing(part)).collect();
        let mut entries: Vec<&Entry> = self.own.values().chain(self.built_in(files.into_iter())).collect();
        entries.sort_unstable_by(|one, other| one.manifest.name.cmp(&other.manifest.name));
        entries.dedup_by(|one, other| one.manifest.name == other.manifest.name);
        entries.into_iter()
    }

    /// Returns the warnings about manifests.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter().map(|(_, warning)| warning)
    }

    /// Returns the warnings about the manifests of these harnesses.
    pub fn warnings_about(&self, names: &[&str]) -> impl Iterator<Item = &String> {
        self.warnings.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, warning)| warning)
    }
}

impl Manifest {
    /// Returns a digest of the manifest's content, independent of its formatting.
    pub fn digest(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        blake3::hash(view::canonical(&value).as_bytes()).to_hex().to_string()
    }
}

/// Returns true if two paths name one file.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns true if `--harness` names a file.
pub fn is_path(text: &str) -> bool {
    text.ends_with(".yaml") || text.contains('/')
}

/// Returns true if a word cannot be the name of a harness, because it would be ambiguous or empty on the
/// command line.
pub(super) fn no_name(name: &str) -> bool {
    name.trim().is_empty()
        || is_path(name)
        || name.starts_with('.')
        || name.starts_with(REGISTRY)
        || name.chars().any(char::is_control)
}

/// The rule for names of harnesses.
pub(super) const NAMES: &str = "a name is a word without `/`, does not end in .yaml and does not begin with `acp:`";

/// Checks the rules for a manifest that its types do not express.
fn check(path: &Path, text: &str, manifest: &Manifest, left_out: &LeftOut) -> Vec<YamlError> {
    use Step::{Item, Key};
    let mut errors = Vec::new();
    let mut add = |steps: &[Step<'_>], part, message: String, help: &str| {
        errors.push(YamlError::at_steps(path, text, &left_out.written(steps), part, message).with_help(help));
    };
    let name = &manifest.name;
    if no_name(name) {
        let message = format!("`{}` is not a valid harness name", words::short(name));
        add(&[Key("name")], StepPart::Value, message, NAMES);
    }
    for (number, alias) in manifest.aliases.iter().enumerate().filter(|(_, alias)| no_name(alias)) {
        let message = format!("`{}` is not a valid harness name", words::short(alias));
        add(&[Key("aliases"), Item(number)], StepPart::Value, message, NAMES);
    }
    if let Some(id) = manifest.registry_id.as_deref().filter(|id| no_name(id)) {
        let message = format!("`{}` is not an ID of the registry", words::short(id));
        add(&[Key("registry-id")], StepPart::Value, message, "write only the ID, such as `qwen-code`");
    }
    for (key, mode) in [("session-mode", &manifest.session_mode), ("asking-mode", &manifest.asking_mode)] {
        let Some(mode) = mode else { continue };
        if manifest.adapter != Adapter::Acp {
            let message = format!("`{key}` is only for the adapter `acp`");
            add(&[Key(key)], StepPart::Key, message, "set the mode with a flag in `command`");
        } else if key == "asking-mode" && manifest.is_unattended(mode) {
            let message =
                format!("`unattended-modes` lists the mode `{}`, in which the agent does not ask", words::short(mode));
            add(&[Key(key)], StepPart::Value, message, "set a mode in which the agent asks for every permission");
        }
    }
    if let Some(parity) = &manifest.parity
        && parity.command.is_empty() == parity.harness.is_none()
    {
        let message = "`parity` needs exactly one of `command` and `harness`".to_owned();
        add(&[Key("parity")], StepPart::Key, message, "write `parity: {command: [program, \"{prompt}\"]}`");
    }
    let no_program = manifest.command.first().is_none_or(|program| program.trim().is_empty());
    let known_only = manifest.command.is_empty() && manifest.tier.is_some_and(super::Tier::is_recipe);
    if no_program && manifest.adapter != Adapter::Replay && !known_only {
        let message = "the harness has no command".to_owned();
        add(&[Key("command")], StepPart::Key, message, "write `command: [program, argument]`");
    }
    if manifest.recording.is_some() && manifest.adapter != Adapter::Replay {
        let message = "`recording` is only for the adapter `replay`".to_owned();
        add(&[Key("recording")], StepPart::Key, message, "remove it, or write `adapter: replay`");
    }
    if manifest.recording.is_none() && manifest.adapter == Adapter::Replay {
        let message = "the adapter `replay` has no recording to play".to_owned();
        add(&[Key("adapter")], StepPart::Value, message, "write `recording: FILE`, which names a wire log or a trace");
    }
    let in_command = |word: &str| manifest.command.iter().any(|argument| argument.contains(word));
    let in_env = |word: &str| manifest.env.set.values().any(|value| value.contains(word));
    match manifest.model.via {
        ModelVia::Flag if manifest.model.flag.is_none() && !in_command("{model}") => {
            let message =
                "the model does not reach the agent: `flag` is missing, and the command has no `{model}`".to_owned();
            add(&[Key("model")], StepPart::Key, message, "write `model: {via: flag, flag: --model}`");
        }
        ModelVia::Env if manifest.model.env.is_none() && !in_env("{model}") => {
            let message = "the model does not reach the agent: `env` is missing".to_owned();
            add(&[Key("model")], StepPart::Key, message, "write `model: {via: env, env: MY_MODEL}`");
        }
        ModelVia::ConfigOption | ModelVia::SetModel
            if matches!(manifest.adapter, Adapter::OutputOnly | Adapter::ClaudeCodeStream)
                && !in_command("{model}")
                && !in_env("{model}") =>
        {
            let message = format!(
                "the model does not reach the agent: the adapter `{}` cannot set a model over its protocol",
                manifest.adapter.word()
            );
            add(&[Key("model")], StepPart::Key, message, "write `model: {via: flag, flag: --model}`");
        }
        _ => {}
    }
    for (key, message, help) in manifest.lost_routes() {
        add(&[Key(key)], StepPart::Key, message, help);
    }
    for wrong in manifest.misplaced() {
        let steps = wrong.keys.map(Key);
        add(&steps, StepPart::Value, wrong.message, wrong.help);
    }
    for (name, value) in &manifest.env.set {
        let steps = [Key("env"), Key("set"), Key(name)];
        if yaml::is_written_null(text, &steps, value) {
            let message = format!("the value of `{}` is null", words::short(name));
            add(&steps, StepPart::Value, message, "write `\"\"` for an empty value, or the word in quotes");
        }
    }
    if matches!(manifest.home, super::Home::Private(_)) {
        const HELP: &str = "remove it; for the user's own home write `home: user`";
        let passed = manifest.env.pass.iter().position(|name| name == "HOME");
        if let Some(number) = passed {
            let steps = [Key("env"), Key("pass"), Item(number)];
            add(&steps, StepPart::Value, HOME_IS_PRIVATE.to_owned(), HELP);
        }
        if manifest.env.set.contains_key("HOME") {
            add(&[Key("env"), Key("set"), Key("HOME")], StepPart::Key, HOME_IS_PRIVATE.to_owned(), HELP);
        }
        if manifest.gateway.as_ref().is_some_and(|route| route.env.contains_key("HOME")) {
            add(&[Key("gateway"), Key("env"), Key("HOME")], StepPart::Key, HOME_IS_PRIVATE.to_owned(), HELP);
        }
        if manifest.model.env.as_deref() == Some("HOME") {
            let help = "name the variable that the agent reads its model from";
            add(&[Key("model"), Key("env")], StepPart::Value, HOME_IS_PRIVATE.to_owned(), help);
        }
    }
    for name in manifest.files.keys() {
        if leaves_home(Path::new(name)) {
            let message = format!("the file `{}` is outside the home", words::short(name));
            add(&[Key("files"), Key(name)], StepPart::Key, message, "write a path relative to the home, without `..`");
        }
    }
    if let Some(route) = &manifest.gateway {
        for name in route.files.keys().filter(|name| leaves_home(Path::new(name))) {
            let message = format!("the file `{}` is outside the home", words::short(name));
            let help = "write a path relative to the home, without `..`";
            add(&[Key("gateway"), Key("files"), Key(name)], StepPart::Key, message, help);
        }
        let words = route.env.values().chain(route.files.values()).chain(&route.args).chain(&route.command);
        if !words.into_iter().any(|word| word.contains("{gateway}")) {
            let message = "the address of the model server does not reach the agent".to_owned();
            let help = "write `{gateway}` in place of the address in `env`, `files`, `args` or `command`";
            add(&[Key("gateway")], StepPart::Key, message, help);
        }
    }
    if let super::Home::Private(home) = &manifest.home {
        for (number, file) in home.copy.iter().enumerate().filter(|(_, file)| leaves_home(file)) {
            let message = format!("`{}` is outside the home", file.display());
            let help = "write a path relative to the home, without `..`";
            add(&[Key("home"), Key("copy"), Item(number)], StepPart::Value, message, help);
        }
    }
    for (number, mount) in manifest.sandbox.iter().flat_map(|sandbox| &sandbox.mount).enumerate() {
        if !mount.path.is_absolute() && !mount.path.starts_with("~") {
            let message = format!("the mount `{}` is not an absolute path", mount.path.display());
            let steps = [Key("sandbox"), Key("mount"), Item(number), Key("path")];
            add(&steps, StepPart::Value, message, "begin it with `/`, or with `~/` for the user's home");
        }
    }
    if manifest.jobs == Some(0) {
        add(&[Key("jobs")], StepPart::Value, "`jobs` is 0, so no trial could run".to_owned(), "write 1 or more");
    }
    errors
}

/// Returns warnings about a manifest: settings that look like mistakes but may be intended.
fn warnings(manifest: &Manifest, stem: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    if manifest.name != stem {
        warnings.push(format!("the harness name `{}` differs from its file name", manifest.name));
    }
    let adapter = manifest.adapter;
    let takes_prompt = matches!(adapter, Adapter::OutputOnly | Adapter::ClaudeCodeStream | Adapter::JsonStream)
        && !manifest.command.is_empty();
    let named = manifest.command.iter().any(|argument| argument.contains("{prompt}"));
    if takes_prompt && manifest.prompt_via != PromptVia::Stdin && !named {
        warnings.push(
            "the command has no `{prompt}`, so the agent gets no prompt; add it, or write `prompt-via: stdin`".into(),
        );
    }
    let has_place = manifest.prompt_via == PromptVia::Argument && manifest.has_prompt_argument();
    if manifest.stdin_prompts.is_some() && !has_place {
        warnings.push("`stdin-prompts` has no effect, because no argument of the command is `{prompt}` alone".into());
    }
    if !manifest.downloads && may_download(&manifest.command) {
        let program = manifest.command.first().map(String::as_str).unwrap_or_default();
        warnings.push(format!(
            "`{program}` may download the agent during a trial, which adds to the trial's time; install the agent and name its own program, or write `downloads: true`"
        ));
    }
    if manifest.seen().interaction
        && let Some(word) = manifest.command.iter().find(|word| asks_nothing(word))
    {
        warnings.push(format!(
            "with `{word}` the agent asks for no permission, so policies and `permissions` graders have nothing to grade; remove it, or write `capabilities: {{interaction: false}}`"
        ));
    }
    if manifest.model.via == ModelVia::None && manifest.model.default.is_some() {
        warnings.push("`model.default` is set, but `model.via` is `none`".to_owned());
    }
    warnings
}

/// Returns true if an argument is one that commonly switches an agent's permission requests off.
fn asks_nothing(argument: &str) -> bool {
    const WORDS: [&str; 8] = [
        "--yolo",
        "--dangerously-skip-permissions",
        "--dangerously-bypass-approvals-and-sandbox",
        "--skip-permissions-unsafe",
        "--allow-all",
        "--allow-all-tools",
        "--auto-approve",
        "--trust-all-tools",
    ];
    WORDS.contains(&argument.split('=').next().unwrap_or_default())
}

/// Returns true if a command is a package runner that downloads missing packages.
fn may_download(command: &[String]) -> bool {
    let mut words = command.iter().map(String::as_str);
    let program = words.next().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let offline = command.iter().any(|word| matches!(word.as_str(), "--no" | "--no-install" | "--offline"));
    let runs = match program {
        "npx" | "bunx" | "uvx" | "pnpx" => true,
        "npm" => matches!(words.next(), Some("exec" | "x")),
        "pnpm" | "yarn" => words.next() == Some("dlx"),
        "uv" => words.next() == Some("tool"),
        "pipx" => words.next() == Some("run"),
        _ => false,
    };
    runs && !offline
}

fn leaves_home(path: &Path) -> bool {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    path.as_os_str().is_empty() || !path.components().all(inside)
}

//! Reads the cases below some paths. Returns all cases, or the errors of all files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::Diagnostic;

use super::file::{Layer, ModelLayer, servers};
use super::{
    Case, GraderFolder, KnownFiles, Oracle, Pass, Retries, Source, Workspace, WorkspaceSource, WrittenGrader, check,
    find,
};
use crate::grader::{self, CaseOf, Grader};
use crate::harness::catalog::Catalog;
use crate::interaction::{Interaction, PolicyFolder};
use crate::overlay::{Overlay, SkillSource};
use crate::paths;
use crate::regular;
use crate::snapshot::settings::SnapshotSettings;
use crate::values::Fraction;
use crate::workspace::git_source::{GitRepository, GitSource};
use crate::yaml::{self, LeftOut, Parsed, Step, StepPart, YamlError, words};

/// The context for reading cases.
#[derive(Debug, Clone, Default)]
pub struct LoadContext {
    /// The named graders.
    pub graders: GraderFolder,
    /// The named policies.
    pub policies: PolicyFolder,
    /// True if no agent is started: what an agent must not get or see is then no error.
    pub without_agents: bool,
}

/// Cases, and notes for the user.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The cases, by id.
    pub cases: Vec<Case>,
    /// Notes, such as files that are not read.
    pub notes: Vec<String>,
}

/// The reason why a case could not be read.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
pub enum LoadError {
    /// An error in a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Yaml(#[from] YamlError),
    /// An error about a path.
    #[error("{message}")]
    #[diagnostic(help("{help}"))]
    Path {
        message: String,
        /// The suggested fix.
        help: String,
    },
}

impl LoadError {
    pub(super) fn path(message: impl Into<String>, help: impl Into<String>) -> Self {
        LoadError::Path { message: message.into(), help: help.into() }
    }
}

/// Reads the cases below these paths, sorted by id.
///
/// # Errors
/// Returns all errors in any file; for a file that is not YAML, only the first.
pub fn load(asked: &[PathBuf], context: &LoadContext) -> Result<Vec<Case>, Vec<LoadError>> {
    load_all(asked, context).map(|loaded| loaded.cases)
}

/// Reads the cases below these paths, with notes.
///
/// # Errors
/// Returns the errors of [`load`].
pub fn load_all(asked: &[PathBuf], context: &LoadContext) -> Result<Loaded, Vec<LoadError>> {
    load_found(find::find(asked), asked, context, !context.without_agents)
}

/// Reads cases with known ids: a file alone does not show which folder its id is relative to. A run of an older version may
/// have cases with `HOME` in `env`; that is no error here, because it matters only to agents that are still to start.
///
/// # Errors
/// Returns the errors of [`load`].
pub fn load_known(known: &[(PathBuf, String)], context: &LoadContext) -> Result<Loaded, Vec<LoadError>> {
    let files: Vec<PathBuf> = known.iter().map(|(file, _)| file.clone()).collect();
    let mut found = find::find(&files);
    let mut ids: HashMap<&Path, &String> = HashMap::new();
    for (file, id) in known {
        ids.entry(file).or_insert(id);
    }
    for candidate in &mut found.candidates {
        let id = ids.get(&*candidate.file).copied();
        if let Some(id) = id.filter(|id| candidate.file.with_extension("").ends_with(id))
            && let Some(root) = candidate.file.ancestors().nth(Path::new(id).components().count())
        {
            candidate.given = root.to_path_buf();
        }
    }
    load_found(found, &files, context, false)
}

/// Returns the case files below these paths, whether or not they can be read.
pub fn case_files(asked: &[PathBuf]) -> Vec<PathBuf> {
    let find::FoundFiles { mut candidates, suites, .. } = find::find(asked);
    let mut files = Files::default();
    candidates.retain(|candidate| !files.is_experiment(&candidate.file));
    files.choose(candidates, suites).into_iter().map(|candidate| candidate.file).collect()
}

/// Reads cases of these files. With `refuses_home`, a case whose `env` has `HOME` is an error.
fn load_found(
    found: find::FoundFiles,
    asked: &[PathBuf],
    context: &LoadContext,
    refuses_home: bool,
) -> Result<Loaded, Vec<LoadError>> {
    let find::FoundFiles { candidates, suites, mut errors, strays } = found;
    let mut files = Files { accepts_home: !refuses_home, ..Files::default() };
    let (experiments, candidates): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| files.is_experiment(&candidate.file));
    let cases = files.choose(candidates, suites);
    let mut notes: Vec<String> =
        strays.into_iter().filter(|(file, _)| !files.is_named(file)).map(|(_, note)| note).collect();
    for candidate in experiments.iter().filter(|candidate| !files.is_named(&candidate.file)) {
        let shown = paths::shown(&candidate.file);
        notes.push(format!("`{0}` is an experiment: run it with `evals run --experiment {0}`", shown.display()));
    }
    let mut loaded = Vec::with_capacity(cases.len());
    for candidate in &cases {
        if let Some(case) = files.case(candidate, context) {
            loaded.push(case);
        }
    }
    notes.extend(find::unused_suites(&loaded));
    errors.extend(files.errors());
    errors.extend(same_ids(&loaded));
    if cases.is_empty() && errors.is_empty() {
        let places: Vec<String> = asked.iter().map(|path| format!("`{}`", path.display())).collect();
        let mut help =
            "a case is a *.yaml file below the folder, other than suite.yaml and x.demo.yaml; `evals init DIR` \
            writes an example suite into an empty folder"
                .to_owned();
        for note in &notes {
            help.push_str("; ");
            help.push_str(note);
        }
        errors.push(LoadError::path(format!("no case found in {}", places.join(", ")), help));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    // No two ids are equal here, and a stable sort would need half the memory of the cases again.
    loaded.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    Ok(Loaded { cases: loaded, notes })
}

/// Returns an error for each harness that a case names and that has no manifest.
pub fn check_harnesses(cases: &[Case], catalog: &Catalog) -> Vec<LoadError> {
    let mut errors: Vec<YamlError> = Vec::new();
    for case in cases {
        for name in case.harnesses.iter().filter(|name| catalog.get(name).is_err()) {
            // The innermost file that sets `harnesses` counts.
            let places = case.sources.iter().rev();
            let place =
                places.filter(|source| yaml::find(&source.text, &[Step::Key("harnesses")], StepPart::Key).is_some());
            let Some(source) = place.take(1).next() else { continue };
            let number = case.harnesses.iter().position(|other| other == name).unwrap_or_default();
            let steps = [Step::Key("harnesses"), Step::Item(number)];
            let message = format!("no harness is named `{}`", words::short(name));
            let error = YamlError::at_steps(&source.shown, &source.text, &steps, StepPart::Value, message)
                .with_help(catalog.known(name));
            if !errors.iter().any(|other| other.to_string() == error.to_string()) {
                errors.push(error);
            }
        }
    }
    errors.into_iter().map(LoadError::Yaml).collect()
}

/// Returns the graders of a case with every named grader resolved. Reports an error if they assert nothing.
fn expanded(
    written: &mut [WrittenGrader],
    folder: &GraderFolder,
    own: &Source,
    wrong: &mut Vec<YamlError>,
) -> Vec<Grader> {
    let library = folder.library();
    let mut graders = Vec::new();
    let mut whole = !written.is_empty();
    for grader in written {
        // An unknown name was already reported with its place.
        if grader.named().is_some_and(|name| library.get(name).is_none()) {
            whole = false;
            continue;
        }
        if let Some(error) = grader.wrong_expression().or_else(|| grader.wrong_part()) {
            whole = false;
            wrong.push(error);
            continue;
        }
        match grader::expand(std::slice::from_ref(&grader.entry), &library) {
            Ok(mut expanded) => {
                // A suite's scripts lie beside the suite.
                expanded.iter_mut().for_each(|of_entry| of_entry.kind.spec_mut().count_from(grader.folder()));
                grader.expands_to = expanded.len();
                graders.extend(expanded);
            }
            Err(error) => {
                whole = false;
                let told = grader.error(error.to_string());
                wrong.push(match error.way_out() {
                    Some(help) => told.with_help(help),
                    None => told,
                });
            }
        }
    }
    // If not all graders of a case could be read, it is unknown whether the case asserts nothing.
    if whole && let Err(message) = grader::refuse_empty(&graders) {
        wrong.push(YamlError::at_steps(&own.shown, &own.text, &[Step::Key("graders")], StepPart::Key, message));
    }
    graders
}

/// A file that was read, with all its errors.
#[derive(Debug)]
struct Read {
    source: Arc<Source>,
    /// The settings of the file, until the case is made from them. In a box, because the table of files has free places.
    layer: Option<Box<Layer>>,
    errors: Vec<YamlError>,
}

impl Read {
    /// Reads a file, or takes its text if it is known.
    fn of(file: &Path, text: Option<String>, is_suite: bool, starts_agents: bool) -> Self {
        let shown = paths::shown(file);
        let (text, parsed) = match text.map_or_else(|| yaml::read(&shown), Ok) {
            Ok(text) => {
                let parsed = yaml::parse_all::<Layer>(&shown, &text);
                (text, parsed)
            }
            Err(error) => {
                let text = regular::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                (text.unwrap_or_default(), Parsed { value: None, left_out: LeftOut::default(), errors: vec![error] })
            }
        };
        let Parsed { value: mut layer, left_out, mut errors } = parsed;
        let source = Source { shown, file: file.to_path_buf(), text, left_out };
        if let Some(layer) = &mut layer {
            layer.rebase(file.parent().unwrap_or(file));
            let more = check::check(&source, layer, is_suite, starts_agents);
            errors.extend(more.into_iter().filter(|error| !error.doubted(&source.left_out)));
        }
        Self { source: Arc::new(source), layer: layer.map(Box::new), errors }
    }
}

/// Every file that was read.
#[derive(Debug, Default)]
struct Files {
    /// True if `HOME` in `env` is no error.
    accepts_home: bool,
    /// The known facts about folders.
    folders: find::Folders,
    /// The digests of files and the folders of skills, shared by all cases.
    known: Arc<KnownFiles>,
    read: HashMap<PathBuf, Read>,
    /// Texts of files that are read for the first time below.
    texts: HashMap<PathBuf, String>,
    order: Vec<PathBuf>,
    /// Files and folders that a case or suite names, with the file that names them.
    named: HashMap<PathBuf, Vec<PathBuf>>,
}

impl Files {
    /// Returns true if a file is an experiment. The text of another file is kept, so that it is read once.
    fn is_experiment(&mut self, file: &Path) -> bool {
        let Ok(text) = yaml::read(file) else { return false };
        let is_experiment = find::is_experiment(&text);
        if !is_experiment {
            self.texts.insert(file.to_owned(), text);
        }
        is_experiment
    }

    /// Reads the found files, and leaves out those in a folder that a case or suite names.
    fn choose(&mut self, candidates: Vec<find::Candidate>, suites: Vec<PathBuf>) -> Vec<find::Candidate> {
        let mut waiting: Vec<(PathBuf, Option<find::Candidate>)> = suites
            .into_iter()
            .map(|folder| (folder.join(find::SUITE), None))
            .chain(candidates.into_iter().map(|candidate| (candidate.file.clone(), Some(candidate))))
            .collect();
        // Shallow files first: they name the deeper folders.
        waiting.sort_by_key(|(file, candidate)| (file.components().count(), candidate.is_some()));
        // Looked up by the folders above a file, so that the cost of many files grows linearly.
        let mut namers: HashMap<PathBuf, Vec<PathBuf>> = HashMap::new();
        let inside = |file: &Path, namers: &HashMap<PathBuf, Vec<PathBuf>>| {
            file.ancestors().filter_map(|above| namers.get(above)).flatten().any(|by| by != file)
        };
        let mut kept = Vec::new();
        for (file, candidate) in waiting {
            if inside(&file, &namers) {
                continue;
            }
            let read = self.read(&file, candidate.is_none());
            let named: Vec<PathBuf> = match &read.layer {
                Some(layer) => layer.names(file.parent().unwrap_or(&file)),
                None => guessed_names(&read.source),
            };
            // A folder that contains the file itself is not excluded: it would exclude every case.
            for folder in named.into_iter().filter(|folder| !file.starts_with(folder)) {
                namers.entry(folder).or_default().push(file.clone());
            }
            kept.push((file, candidate));
        }
        kept.retain(|(file, _)| !inside(file, &namers));
        self.order.retain(|file| !inside(file, &namers));
        self.named = namers;
        kept.into_iter().filter_map(|(_, candidate)| candidate).collect()
    }

    /// Returns true if a case or suite names a file, or a folder that contains the file.
    fn is_named(&self, file: &Path) -> bool {
        file.ancestors().any(|above| self.named.contains_key(above))
    }

    /// Returns what is known of a file, which is read the first time.
    fn read(&mut self, file: &Path, is_suite: bool) -> &mut Read {
        if !self.read.contains_key(file) {
            self.order.push(file.to_path_buf());
        }
        let (text, starts_agents) = (self.texts.remove(file), !self.accepts_home);
        self.read.entry(file.to_path_buf()).or_insert_with(|| Read::of(file, text, is_suite, starts_agents))
    }

    /// Returns the case of a file, unless there are errors in it or in its suites.
    fn case(&mut self, candidate: &find::Candidate, context: &LoadContext) -> Option<Case> {
        let mut layers = Vec::new();
        for folder in self.folders.suites(&candidate.file, &candidate.given) {
            let read = self.read(&folder.join(find::SUITE), true);
            layers.push((read.source.clone(), read.layer.clone()));
        }
        // Each case file is taken once, so that what it sets is not in memory twice.
        let own = self.read(&candidate.file, false);
        layers.push((own.source.clone(), own.layer.take()));
        let mut graders = Vec::new();
        let mut merged = Layer::default();
        let mut sources = Vec::new();
        for (source, layer) in layers {
            // A layer that cannot be read has reported its errors; without it, the case cannot be checked.
            let layer = layer?;
            for (number, entry) in layer.graders.iter().cloned().enumerate() {
                let number = written_number(&source, number);
                graders.push(WrittenGrader { entry, source: source.clone(), number, expands_to: 0 });
            }
            merged = merged.under(*layer);
            sources.push(source);
        }
        graders.shrink_to_fit();
        let own = sources.last()?.clone();
        let mut wrong = Vec::new();
        let id = self.id(&merged, candidate, &own, &mut wrong);
        wrong.extend(check::quarantine(&own, &merged));
        wrong.extend(check::unreachable_servers(&sources, &merged));
        let named_graders = named(&graders, &context.graders, &mut wrong);
        if graders.is_empty() {
            let help = "add one, such as `graders: [{output: {contains: done}}]`";
            let found = yaml::find(&own.text, &[Step::Key("graders")], StepPart::Key);
            let message = "the case has no grader, so it asserts nothing";
            wrong.push(YamlError::at(&own.shown, &own.text, found, message).with_help(help));
        }
        let expanded = expanded(&mut graders, &context.graders, &own, &mut wrong);
        if !context.without_agents {
            wrong.extend(check::leaks(&sources, &merged, &expanded, &self.known));
        }
        let named_policy = named_policy(&mut merged, &sources, &context.policies, &mut wrong);
        // A part that is missing in one file of the case may make another part look wrong.
        wrong.retain(|error| !sources.iter().any(|source| error.doubted(&source.left_out)));
        let whole = wrong.is_empty() && sources.iter().all(|source| source.left_out.is_empty());
        for error in wrong {
            self.note(error);
        }
        if !whole {
            return None;
        }
        let mut case = ready(merged, id, candidate, graders, sources, named_graders);
        case.known_files = self.known.clone();
        case.demo_scripts = self.folders.demo_scripts(&candidate.file);
        case.cases_root = self.folders.outermost(&candidate.file, &candidate.given);
        let snapshots = crate::snapshot::store::folder(&case.file);
        case.graders = expanded
            .into_iter()
            .map(|mut grader| {
                let case = CaseOf { id: &case.id, snapshots: &snapshots, settings: &case.snapshot };
                grader.kind.spec_mut().belongs_to(&case);
                Arc::new(grader)
            })
            .collect();
        // The list was made in the memory of the graders themselves, which are far larger than these pointers.
        case.graders.shrink_to_fit();
        case.named_policy = named_policy;
        Some(case)
    }

    fn id(&self, layer: &Layer, candidate: &find::Candidate, own: &Source, wrong: &mut Vec<YamlError>) -> String {
        if let Some(id) = &layer.id {
            return id.clone();
        }
        let id = find::id(&candidate.file, &self.folders.root(&candidate.file, &candidate.given));
        match id
            .and_then(|id| check::wrong_id(&id).map_or(Ok(id), |why| Err(format!("its path gives an id that {why}"))))
        {
            Ok(id) => id,
            Err(message) => {
                wrong.push(YamlError::at(&own.shown, &own.text, None, message).with_help("write an `id`"));
                String::new()
            }
        }
    }

    /// Records an error with its file, once.
    fn note(&mut self, error: YamlError) {
        let read = self.read.values_mut().find(|read| read.source.shown == error.path());
        if let Some(read) = read
            && !read.errors.iter().any(|other| other.to_string() == error.to_string())
        {
            read.errors.push(error);
        }
    }

    /// Returns all errors, by file.
    fn errors(&self) -> Vec<LoadError> {
        let mut files: Vec<&PathBuf> = self.order.iter().collect();
        files.sort();
        let mut errors = Vec::new();
        for read in files.into_iter().filter_map(|file| self.read.get(file)) {
            let mut own = read.errors.clone();
            own.sort_by_key(YamlError::place);
            errors.extend(own.into_iter().map(LoadError::Yaml));
        }
        errors
    }
}

/// Replaces the name of a policy by the policy. Returns the policy's name and text.
fn named_policy(
    layer: &mut Layer,
    sources: &[Arc<Source>],
    policies: &PolicyFolder,
    wrong: &mut Vec<YamlError>,
) -> Option<(String, String)> {
    let Some(Interaction::Use(name)) = &layer.interaction else { return None };
    let name = name.clone();
    if let Some(found) = policies.get(&name) {
        layer.interaction = Some(found.policy.clone());
        return Some((name, found.text.clone()));
    }
    // The innermost file that sets the key counts.
    let steps = [Step::Key("interaction"), Step::Key("use")];
    let source = sources.iter().rev().find(|source| yaml::find(&source.text, &steps, StepPart::Value).is_some());
    if let Some(Source { shown, text, .. }) = source.or(sources.last()).map(Arc::as_ref) {
        let message = format!("no policy is named `{}`", words::short(&name));
        wrong.push(YamlError::at_steps(shown, text, &steps, StepPart::Value, message).with_help(policies.known(&name)));
    }
    None
}

/// Returns the position of a grader in its file. Invalid graders before it count too.
fn written_number(source: &Source, number: usize) -> usize {
    match source.left_out.written(&[Step::Key("graders"), Step::Item(number)]).as_slice() {
        [_, Step::Item(written)] => *written,
        _ => number,
    }
}

/// Returns the texts of the named graders that the graders use. An unknown name is an error.
fn named(graders: &[WrittenGrader], folder: &GraderFolder, wrong: &mut Vec<YamlError>) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for grader in graders {
        let Some(name) = grader.named() else { continue };
        match folder.get(name) {
            Some((_, text)) => {
                texts.insert(name.to_owned(), text.to_owned());
            }
            None => {
                let message = format!("no grader is named `{}`", words::short(name));
                let known = folder.names();
                let mut help = format!("write it as graders/{}.yaml", words::short(name));
                if !known.is_empty() {
                    help = format!("{}; or {help}", words::known_words(name, &known, "graders"));
                }
                let Source { shown, text, .. } = &*grader.source;
                let entry = [Step::Key("graders"), Step::Item(grader.number), Step::Key("use")];
                let inner = [entry[0], entry[1], entry[2], Step::Key("grader")];
                let steps = if yaml::find(text, &inner, StepPart::Value).is_some() { &inner[..] } else { &entry[..] };
                wrong.push(YamlError::at_steps(shown, text, steps, StepPart::Value, message).with_help(help));
            }
        }
    }
    texts
}

/// Makes a case from its merged layer, with defaults for missing keys.
fn ready(
    layer: Layer,
    id: String,
    candidate: &find::Candidate,
    graders: Vec<WrittenGrader>,
    sources: Vec<Arc<Source>>,
    named_graders: BTreeMap<String, String>,
) -> Case {
    let file = candidate.file.clone();
    let workspace = layer.workspace.unwrap_or_default();
    let git = workspace.git.and_then(|git| {
        let repository = git.path.map(GitRepository::Path).or(git.url.map(GitRepository::Url))?;
        Some(WorkspaceSource::Git(GitSource { repository, rev: git.rev, subdir: git.subdir, commit: None }))
    });
    let source = workspace.copy.map(WorkspaceSource::Copy).or(git);
    let source = source.or(workspace.files.map(WorkspaceSource::Files)).unwrap_or_default();
    let pass = layer.pass.unwrap_or_default();
    let retries = layer.retries.unwrap_or_default();
    let snapshot = layer.snapshot.unwrap_or_default();
    let oracle = layer
        .oracle
        .and_then(|it| it.copy.map(Oracle::Copy).or(it.script.map(Oracle::Script)).or(it.patch.map(Oracle::Patch)));
    Case {
        id,
        description: layer.description,
        kind: layer.kind.unwrap_or_default(),
        tags: layer.tags,
        turns: layer.turns.or(layer.prompt.map(|prompt| vec![prompt])).unwrap_or_default(),
        system_prompt: layer.system_prompt,
        workspace: Workspace {
            source,
            setup: workspace.setup.unwrap_or_default(),
            ignore: workspace.ignore.unwrap_or_default(),
            // Globs that cannot be parsed have been refused.
            protect: workspace.protect.iter().flatten().filter_map(|glob| glob.parse().ok()).collect(),
            protect_strict: workspace.protect_strict.unwrap_or_default(),
        },
        hidden: layer.hidden,
        graders_home: layer.graders_home.unwrap_or_default(),
        harnesses: layer.harnesses.unwrap_or_default(),
        requires: layer.requires.unwrap_or_default(),
        interaction: layer.interaction.unwrap_or_default(),
        limits: layer.limits.unwrap_or_default(),
        setup_time: layer.timeouts.and_then(|timeouts| timeouts.setup),
        trials: layer.trials.map_or(1, std::num::NonZero::get),
        env: layer.env.unwrap_or_default(),
        written_graders: graders,
        pass: Pass { threshold: pass.threshold.unwrap_or(Fraction::ONE), trials: pass.trials.unwrap_or_default() },
        oracle,
        model: layer.model.and_then(ModelLayer::into_model),
        require_model: layer.require_model.unwrap_or_default(),
        answers: layer.answers.unwrap_or_default(),
        mcp_servers: servers(layer.mcp_servers),
        attachments: layer.attachments.unwrap_or_default(),
        overlay: Overlay {
            // A skill that cannot be read was reported by the checks.
            skills: layer.skills.iter().flatten().filter_map(|entry| SkillSource::read(entry).ok()).collect(),
            instructions: layer.instructions,
            files: None,
        },
        session: layer.session.unwrap_or_default(),
        sandbox: layer.sandbox,
        retries: Retries { max: retries.max, on: retries.on.unwrap_or_default() },
        critical: layer.critical.unwrap_or_default(),
        quarantine: layer.quarantine,
        review: layer.review,
        provenance: layer.provenance,
        snapshot: SnapshotSettings {
            text: snapshot.text.unwrap_or_default(),
            normalise: snapshot.normalise.unwrap_or_default(),
            several: snapshot.several.unwrap_or_default(),
        },
        demo_scripts: BTreeMap::new(),
        cases_root: candidate.given.clone(),
        sources,
        named_graders,
        graders: Vec::new(),
        kept_files: Arc::default(),
        known_files: Arc::default(),
        texts_of_arm: Vec::new(),
        without_arm: None,
        named_policy: None,
        file,
    }
}

/// Returns the folders that an unreadable file seems to name, so that files in them are not taken for cases.
fn guessed_names(source: &Source) -> Vec<PathBuf> {
    let folder = source.file.parent().unwrap_or(&source.file);
    let pieces = source.text.split(['\n', '{', ',']).filter_map(|piece| {
        let (key, value) = piece.trim().split_once(':')?;
        let value = value.split(" #").next()?.trim().trim_matches(['"', '\'', '}', ' ']);
        let names = ["copy", "hidden", "path"].contains(&key.trim()) && !value.is_empty();
        names.then(|| paths::absolute(folder, Path::new(value)))
    });
    pieces.collect()
}

/// Returns errors for cases that share an id, one for each except the first.
fn same_ids(cases: &[Case]) -> Vec<LoadError> {
    let mut first: HashMap<&str, &Case> = HashMap::new();
    let mut errors = Vec::new();
    for case in cases {
        let Some(other) = first.get(case.id.as_str()) else {
            first.insert(&case.id, case);
            continue;
        };
        let Some(source) = case.sources.last() else { continue };
        let found = yaml::find(&source.text, &[Step::Key("id")], StepPart::Value);
        let other = paths::shown(&other.file);
        let message = format!("two cases have the id `{}`; the other is `{}`", case.id, other.display());
        let error = YamlError::at(&source.shown, &source.text, found, message);
        errors.push(LoadError::Yaml(error.with_help("give one of them another `id`")));
    }
    errors.extend(cases.iter().filter_map(|case| within_a_trial(case, &first)));
    errors
}

/// Returns an error for a case whose id names the folder of a trial of another case: `ID/HARNESS/ARM/NUMBER`.
fn within_a_trial(case: &Case, by_id: &HashMap<&str, &Case>) -> Option<LoadError> {
    let is_trial = |rest: &str| rest.split('/').nth(2).is_some_and(|number| number.parse::<u32>().is_ok());
    let slashes = case.id.match_indices('/').filter_map(|(at, _)| case.id.split_at_checked(at));
    let (outer, _) = slashes
        .map(|(outer, rest)| (outer, rest.get(1..).unwrap_or_default()))
        .find(|(outer, rest)| by_id.contains_key(outer) && is_trial(rest))?;
    let source = case.sources.last()?;
    let found = yaml::find(&source.text, &[Step::Key("id")], StepPart::Value);
    let message = format!("the id `{}` is the folder of a trial of case `{outer}`", case.id);
    let error = YamlError::at(&source.shown, &source.text, found, message);
    Some(LoadError::Yaml(error.with_help("give one of them another `id`")))
}

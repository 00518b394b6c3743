//! Reads an experiment file and the variants of the command line, each with the places of its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{Axis, ExperimentFile};
use super::variant::{KEYS, VariantLayer};
use crate::case::LoadError;
use crate::harness::catalog::is_path;
use crate::paths;
use crate::yaml::{self, OwnedStep, Parsed, Step, StepPart, YamlError, words};

/// A variant of the command line: `--variant NAME=YAML|FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOff {
    /// The name of the arm.
    pub name: String,
    /// The variant as YAML, or the path of a file with it.
    pub text: String,
}

impl std::str::FromStr for OneOff {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, text)) if !name.trim().is_empty() => {
                Ok(Self { name: name.trim().to_owned(), text: text.to_owned() })
            }
            _ => Err(format!("`{text}` is not NAME=YAML or NAME=FILE, such as with='{{skills: [skills/x]}}'")),
        }
    }
}

/// An experiment as written, with the places of its keys.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The experiment file, if there is one.
    pub file: Option<PathBuf>,
    pub description: Option<String>,
    pub cases: Vec<PathBuf>,
    /// The number of trials of each cell.
    pub trials: Option<u32>,
    /// The keys that may differ between the arms. `None`, for variants of the command line alone: every key in which
    /// the arms differ.
    pub vary: Option<Vec<String>>,
    /// The baseline, if it is named.
    pub baseline: Option<String>,
    /// The axes of a matrix with their labels.
    pub axes: Vec<(String, Vec<String>)>,
    pub arms: Vec<WrittenArm>,
    /// The text of the experiment file.
    pub(super) source: Option<SourcePlace>,
}

#[derive(Debug, Clone)]
pub struct WrittenArm {
    pub name: String,
    /// The keys that the variant overrides, merged with the keys that all arms share.
    pub layer: VariantLayer,
    pub(super) place: SourcePlace,
    /// The place of each key that the variant overrides.
    pub(super) places: BTreeMap<&'static str, SourcePlace>,
    /// The label of each axis.
    pub(super) labels: Vec<(String, String)>,
}

/// A place in a text that a person wrote.
#[derive(Debug, Clone)]
pub struct SourcePlace {
    shown: PathBuf,
    text: Arc<str>,
    steps: Vec<OwnedStep>,
}

impl SourcePlace {
    /// Returns a place in no text.
    pub(super) fn nowhere() -> Self {
        Self { shown: PathBuf::new(), text: Arc::from(""), steps: Vec::new() }
    }

    fn new(shown: &Path, text: &Arc<str>, steps: &[Step<'_>]) -> Self {
        Self { shown: shown.to_owned(), text: text.clone(), steps: OwnedStep::all(steps) }
    }

    /// Returns an error about the value, or the key, at this place.
    pub(super) fn error(&self, part: StepPart, message: String, help: impl Into<String>) -> LoadError {
        self.below(&[], part, message, help)
    }

    /// Returns an error about a value below this place.
    pub(super) fn below(
        &self,
        more: &[Step<'_>],
        part: StepPart,
        message: String,
        help: impl Into<String>,
    ) -> LoadError {
        let steps: Vec<Step<'_>> = self.steps.iter().map(OwnedStep::step).chain(more.iter().copied()).collect();
        let error = match steps.is_empty() {
            true => YamlError::at(&self.shown, &self.text, None, message),
            false => YamlError::at_steps(&self.shown, &self.text, &steps, part, message),
        };
        error.with_help(help).into()
    }
}

/// Reads an experiment file, variants of the command line, or both. `common` are the settings of every arm.
///
/// # Errors
/// Returns all errors in the file and the variants.
pub fn read(file: Option<&Path>, one_offs: &[OneOff], common: &VariantLayer) -> Result<Written, Vec<LoadError>> {
    let mut errors = Vec::new();
    let mut written = Written::default();
    let mut all = common.clone();
    let mut of_all: BTreeMap<&'static str, SourcePlace> = BTreeMap::new();
    for key in common.written() {
        let flag = Path::new(match key {
            "harness" => "--harness",
            "model" => "--model",
            _ => "the command line",
        });
        of_all.insert(key, SourcePlace::new(flag, &Arc::from(""), &[]));
    }
    if let Some(file) = file {
        let shown = paths::shown(&paths::absolute(Path::new(""), file));
        let text = yaml::read(&shown).map_err(|error| vec![error.into()])?;
        let folder = paths::absolute(Path::new(""), &shown).parent().map(Path::to_owned).unwrap_or_default();
        let parsed = yaml::parse_all::<ExperimentFile>(&shown, &text);
        let text: Arc<str> = Arc::from(text);
        let parsed = checked(parsed, &shown, &text, &folder).map_err(yaml_errors)?;
        written = of_file(parsed, &shown, &text, &folder, &mut all, &mut of_all);
    }
    for one_off in one_offs {
        match of_command_line(one_off) {
            Ok((mut layer, shown, text, folder)) => {
                layer.rebase(&folder);
                let text: Arc<str> = Arc::from(text);
                let own = places(&layer, |key| SourcePlace::new(&shown, &text, &[Step::Key(key)]));
                written.arms.push(WrittenArm {
                    name: one_off.name.clone(),
                    layer: all.clone().under(layer),
                    place: SourcePlace::new(&shown, &text, &[]),
                    places: of_all.clone().into_iter().chain(own).collect(),
                    labels: Vec::new(),
                });
            }
            Err(more) => errors.extend(more),
        }
    }
    let mut named: BTreeMap<String, &str> = BTreeMap::new();
    for arm in &written.arms {
        // The manifest that is read last would stand for both.
        if let (Some(path), Some(place)) =
            (arm.layer.harness.as_deref().filter(|path| is_path(path)), arm.places.get("harness"))
            && let Some(name) = name_of(Path::new(path))
            && *named.entry(name.clone()).or_insert(path) != path
        {
            let message = format!("another manifest of the experiment has the name `{name}` too");
            errors.push(place.error(StepPart::Value, message, "give each manifest a name of its own"));
        }
        let missing = arm.layer.harness.as_ref().filter(|path| is_path(path) && !Path::new(path).is_file());
        if let (Some(path), Some(place)) = (missing, arm.places.get("harness")) {
            let message = format!("`{}` is not a file", paths::shown(Path::new(path)).display());
            errors.push(place.error(
                StepPart::Value,
                message,
                "write the name of a harness, or the path of its manifest",
            ));
        }
    }
    if file.is_some() && written.vary.is_none() {
        // Nothing may differ: each difference is then refused with both values, which says what to write.
        written.vary = Some(Vec::new());
    }
    if errors.is_empty() { Ok(written) } else { Err(errors) }
}

/// Returns the name that a manifest has, if it can be read.
fn name_of(path: &Path) -> Option<String> {
    let text = yaml::read(path).ok()?;
    let range = yaml::find(&text, &[Step::Key("name")], StepPart::Value)?;
    text.get(range).map(|name| name.trim_matches(['"', '\'']).to_owned())
}

fn yaml_errors(errors: Vec<YamlError>) -> Vec<LoadError> {
    errors.into_iter().map(LoadError::from).collect()
}

fn places(layer: &VariantLayer, place: impl Fn(&'static str) -> SourcePlace) -> BTreeMap<&'static str, SourcePlace> {
    layer.written().into_iter().map(|key| (key, place(key))).collect()
}

/// Checks the keys that exclude each other, and the axes.
fn checked(
    parsed: Parsed<ExperimentFile>,
    shown: &Path,
    text: &str,
    folder: &Path,
) -> Result<ExperimentFile, Vec<YamlError>> {
    parsed.checked(|file| {
        let mut errors = Vec::new();
        let mut add = |steps: &[Step<'_>], part: StepPart, message: String, help: &str| {
            errors.push(YamlError::at_steps(shown, text, steps, part, message).with_help(help));
        };
        match (&file.variants, &file.matrix) {
            (Some(_), Some(_)) => {
                let message = "the experiment has both `variants` and `matrix`".to_owned();
                add(&[Step::Key("matrix")], StepPart::Key, message, "keep one of them");
            }
            (None, None) => {
                errors.push(
                    YamlError::at(shown, text, None, "the experiment has neither `variants` nor `matrix`")
                        .with_help("write `variants: {without: {}, with: {skills: [skills/x]}}`"),
                );
                return errors;
            }
            (Some(variants), None) if variants.0.is_empty() => {
                add(&[Step::Key("variants")], StepPart::Value, "there are no variants".to_owned(), "write two or more");
            }
            (None, Some(matrix)) => {
                if matrix.0.is_empty() {
                    add(&[Step::Key("matrix")], StepPart::Value, "the matrix has no axis".to_owned(), "write an axis");
                }
                if file.vary.is_some() {
                    let message = "`vary` follows from the axes of `matrix`".to_owned();
                    add(&[Step::Key("vary")], StepPart::Key, message, "remove it");
                }
                for axis in &matrix.0 {
                    let steps = [Step::Key("matrix"), Step::Key(&axis.key)];
                    if axis.values.is_empty() {
                        let message = format!("the axis `{}` has no value", axis.key);
                        add(&steps, StepPart::Value, message, "write a value, or remove the axis");
                    }
                    let mut known = BTreeSet::new();
                    for (label, _) in &axis.values {
                        if !known.insert(label) {
                            let message = format!("the axis `{}` has the value `{label}` twice", axis.key);
                            add(&steps, StepPart::Value, message, "remove one of them");
                        }
                    }
                }
                let values = matrix.0.iter().map(|axis| axis.values.len().max(1));
                let arms = values.fold(1_usize, usize::saturating_mul);
                if arms > MAX_ARMS {
                    let all = if arms == usize::MAX { "too many".to_owned() } else { arms.to_string() };
                    let message = format!("the matrix has {all} combinations; at most {MAX_ARMS} are allowed");
                    add(&[Step::Key("matrix")], StepPart::Key, message, "remove an axis or values");
                }
            }
            _ => {}
        }
        for (number, path) in file.cases.iter().flatten().enumerate() {
            let path = paths::absolute(folder, path);
            if !path.exists() {
                let message = format!("`{}` does not exist", paths::shown(&path).display());
                add(
                    &[Step::Key("cases"), Step::Item(number)],
                    StepPart::Value,
                    message,
                    "paths are relative to this file",
                );
            }
        }
        for (number, key) in file.vary.iter().flatten().enumerate() {
            if !KEYS.contains(&key.as_str()) {
                let message = format!("`{}` is not a key of a variant", words::short(key));
                let help = words::known_words(key, &KEYS, "keys");
                add(&[Step::Key("vary"), Step::Item(number)], StepPart::Value, message, &help);
            }
        }
        errors
    })
}

/// The maximum number of arms of a matrix.
const MAX_ARMS: usize = 256;

fn of_file(
    mut parsed: ExperimentFile,
    shown: &Path,
    text: &Arc<str>,
    folder: &Path,
    all: &mut VariantLayer,
    of_all: &mut BTreeMap<&'static str, SourcePlace>,
) -> Written {
    let mut common = parsed.take_common();
    common.rebase(folder);
    of_all.extend(places(&common, |key| SourcePlace::new(shown, text, &[Step::Key(key)])));
    *all = all.clone().under(common);
    let mut arms = Vec::new();
    for (name, mut layer) in parsed.variants.into_iter().flat_map(|variants| variants.0) {
        layer.rebase(folder);
        let own = places(&layer, |key| {
            SourcePlace::new(shown, text, &[Step::Key("variants"), Step::Key(&name), Step::Key(key)])
        });
        arms.push(WrittenArm {
            layer: all.clone().under(layer),
            place: SourcePlace::new(shown, text, &[Step::Key("variants"), Step::Key(&name)]),
            places: of_all.clone().into_iter().chain(own).collect(),
            labels: Vec::new(),
            name,
        });
    }
    let matrix = parsed.matrix.unwrap_or_default().0;
    let axes: Vec<_> = matrix
        .iter()
        .map(|axis| (axis.key.clone(), axis.values.iter().map(|(label, _)| label.clone()).collect()))
        .collect();
    if !matrix.is_empty() {
        arms.extend(product(&matrix, shown, text, folder, all, of_all));
    }
    let vary = if axes.is_empty() { parsed.vary } else { Some(axes.iter().map(|(key, _)| key.clone()).collect()) };
    Written {
        file: Some(paths::absolute(Path::new(""), shown)),
        description: parsed.description,
        cases: parsed.cases.into_iter().flatten().map(|path| paths::absolute(folder, &path)).collect(),
        trials: parsed.trials.map(std::num::NonZero::get),
        vary,
        baseline: parsed.baseline,
        axes,
        arms,
        source: Some(SourcePlace::new(shown, text, &[])),
    }
}

/// Returns an arm for every combination of the values of the axes; the last axis changes first.
fn product(
    axes: &[Axis],
    shown: &Path,
    text: &Arc<str>,
    folder: &Path,
    all: &VariantLayer,
    of_all: &BTreeMap<&'static str, SourcePlace>,
) -> Vec<WrittenArm> {
    let start = WrittenArm {
        name: String::new(),
        layer: all.clone(),
        place: SourcePlace::new(shown, text, &[Step::Key("matrix")]),
        places: of_all.clone(),
        labels: Vec::new(),
    };
    let mut arms = vec![start];
    for axis in axes {
        let with = |arm: &WrittenArm, number: usize, (label, layer): &(String, VariantLayer)| {
            let mut layer = layer.clone();
            layer.rebase(folder);
            let last = if axis.is_list { Step::Item(number) } else { Step::Key(label) };
            let own =
                places(&layer, |_| SourcePlace::new(shown, text, &[Step::Key("matrix"), Step::Key(&axis.key), last]));
            let comma = if arm.name.is_empty() { "" } else { "," };
            let mut labels = arm.labels.clone();
            labels.push((axis.key.clone(), label.clone()));
            WrittenArm {
                name: format!("{}{comma}{}={label}", arm.name, axis.key),
                layer: arm.layer.clone().under(layer),
                place: SourcePlace::new(shown, text, &[Step::Key("matrix"), Step::Key(&axis.key), last]),
                places: arm.places.clone().into_iter().chain(own).collect(),
                labels,
            }
        };
        arms = arms
            .iter()
            .flat_map(|arm| axis.values.iter().enumerate().map(move |(number, value)| with(arm, number, value)))
            .collect();
    }
    arms
}

type OfCommandLine = (VariantLayer, PathBuf, String, PathBuf);

/// Reads a variant of the command line: YAML, or a file with it.
fn of_command_line(one_off: &OneOff) -> Result<OfCommandLine, Vec<LoadError>> {
    let file = Path::new(&one_off.text);
    let (shown, text, folder) = if file.is_file() {
        let shown = paths::shown(&paths::absolute(Path::new(""), file));
        let text = yaml::read(&shown).map_err(|error| vec![error.into()])?;
        (shown, text, paths::absolute(Path::new(""), file).parent().map(Path::to_owned).unwrap_or_default())
    } else {
        (
            PathBuf::from(format!("--variant {}", one_off.name)),
            one_off.text.clone(),
            paths::absolute(Path::new(""), Path::new(".")),
        )
    };
    if text.trim().is_empty() {
        return Ok((VariantLayer::default(), shown, text, folder));
    }
    let layer = yaml::parse_all::<VariantLayer>(&shown, &text).checked(|_| Vec::new()).map_err(yaml_errors)?;
    Ok((layer, shown, text, folder))
}

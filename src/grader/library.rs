//! Named graders from `graders/`, and the resolution of `use`.

use crate::expression::span;
use crate::yaml::forms::{Forms, deserialize_forms, filled_list};
use crate::yaml::wrong_part::WrongPart;
use crate::yaml::{self, OwnedStep, Step, StepPart, YamlError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Error, MapAccess, SeqAccess};

use super::entry::{EntryBody, KindWord};
use super::{Common, Grader, GraderEntry, GraderOrName};

/// The named graders that a case may use; a later grader replaces an earlier one of the same name.
#[derive(Debug, Clone, Default)]
pub struct Library(BTreeMap<String, NamedGrader>);

/// The file of a named grader.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedGrader {
    /// The origin, for messages: the path of the file, or `built in`.
    pub origin: String,
    /// The folder that paths in the grader are relative to. Absent for a built-in grader.
    pub folder: Option<PathBuf>,
    /// The text of the file.
    pub text: String,
}

/// The reason why a `use` could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum GraderError {
    /// No grader has this name.
    #[error("there is no grader named `{name}` in graders/{}", did_you_mean(.nearest.as_deref()))]
    Unknown {
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// The grader's file is invalid, for one or more reasons.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Unreadable(Vec<YamlError>),
    /// Graders use each other in a cycle.
    #[error("graders use each other in a cycle: {}", .0.join(" uses "))]
    Circle(Vec<String>),
    /// A `use` gives a grader both `gate` and `diagnostic`.
    #[error(
        "the grader `{0}` would be both `gate` and `diagnostic`: a diagnostic grader is reported and never counted"
    )]
    GateAndDiagnostic(String),
}

impl GraderError {
    /// Returns how to fix the error, if known.
    pub fn way_out(&self) -> Option<&str> {
        match self {
            GraderError::Unreadable(errors) => errors.first().and_then(YamlError::way_out),
            GraderError::Unknown { .. } | GraderError::Circle(_) | GraderError::GateAndDiagnostic(_) => None,
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

impl Library {
    /// Adds a named grader.
    pub fn insert(&mut self, name: impl Into<String>, grader: NamedGrader) {
        self.0.insert(name.into(), grader);
    }

    pub fn get(&self, name: &str) -> Option<&NamedGrader> {
        self.0.get(name)
    }

    /// Returns all named graders, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NamedGrader)> {
        self.0.iter().map(|(name, grader)| (name.as_str(), grader))
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let scored = self.0.keys().map(|known| (strsim::jaro_winkler(name, known), known));
        let best = scored.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(_, known)| known.clone())
    }
}

impl NamedGrader {
    /// Parses the file: its description, and its graders.
    ///
    /// # Errors
    /// Returns an error if the text is not YAML, or not the file of a grader. All errors are returned.
    pub fn read(&self) -> Result<NamedFile, Vec<YamlError>> {
        yaml::parse_all(Path::new(&self.origin), &self.text)
            .checked(|file: &NamedFile| [self.wrong_expressions(file), self.wrong_parts(file)].concat())
    }
}

impl NamedGrader {
    /// Returns the errors in parts of its graders.
    fn wrong_parts(&self, file: &NamedFile) -> Vec<YamlError> {
        let entries = file.graders.iter().enumerate();
        entries
            .filter_map(|(n, entry)| {
                let WrongPart { at, why } = entry.wrong_part(self.folder.as_deref())?;
                Some(self.error(n, entry.word(), &at, format!("the grader `{}` {why}", entry.word())))
            })
            .collect()
    }

    /// Returns errors for missing files that its graders name.
    pub fn missing_files(&self, file: &NamedFile) -> Vec<YamlError> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let missing = file.graders.iter().enumerate().filter_map(|(n, entry)| {
            let WrongPart { at, why } = entry.missing_file(folder)?;
            Some(self.error(n, entry.word(), &at, format!("the grader `{}` {why}", entry.word())))
        });
        missing.collect()
    }

    /// Returns an error at a place in the body of one of its graders, wherever that is in the file.
    pub fn error(&self, number: usize, word: &str, at: &[OwnedStep], message: String) -> YamlError {
        let body: Vec<Step<'_>> = [Step::Key(word)].into_iter().chain(at.iter().map(OwnedStep::step)).collect();
        let fronts = fronts(number).map(|front| [front, body.clone()].concat());
        let is_there = |steps: &&Vec<Step<'_>>| {
            let grader = steps.get(..steps.len() - at.len()).unwrap_or_default();
            yaml::find(&self.text, grader, StepPart::Value).is_some()
        };
        let steps = fronts.iter().find(is_there).map_or(body.as_slice(), Vec::as_slice);
        YamlError::at_steps(Path::new(&self.origin), &self.text, steps, StepPart::Key, message)
    }

    /// Returns the errors in its expressions, wherever its graders are in the file.
    fn wrong_expressions(&self, file: &NamedFile) -> Vec<YamlError> {
        let path = Path::new(&self.origin);
        let wrong =
            file.graders.iter().enumerate().filter_map(|(n, entry)| Some((n, entry, entry.wrong_expression()?)));
        wrong
            .map(|(n, entry, found)| {
                let body = [Step::Key(entry.word()), Step::Key(found.key)];
                let all = fronts(n).map(|front| [front, body.to_vec()].concat());
                let is_there = |steps: &&Vec<Step<'_>>| yaml::find(&self.text, steps, StepPart::Value).is_some();
                let steps = all.iter().find(is_there).map(Vec::as_slice).unwrap_or_default();
                span::error(path, &self.text, steps, found.text, found.wrong)
            })
            .collect()
    }
}

/// Returns the possible places of a grader in the file of a named grader.
fn fronts(number: usize) -> [Vec<Step<'static>>; 4] {
    let [graders, grader] = ["graders", "grader"].map(|key| vec![Step::Key(key), Step::Item(number)]);
    [graders, grader, vec![Step::Key("grader")], Vec::new()]
}

/// Returns the graders of a case with every `use` resolved. The keys `name`, `weight`, `gate` and `diagnostic` of a `use`
/// override those of the named grader.
///
/// # Errors
/// Returns an error if a `use` names an unknown or invalid grader, or one that leads back to itself.
pub fn expand(entries: &[GraderEntry], library: &Library) -> Result<Vec<Grader>, GraderError> {
    let mut graders = Vec::new();
    expand_into(&mut graders, entries, &Common::default(), library, &mut Vec::new(), None)?;
    Ok(graders)
}

fn expand_into(
    graders: &mut Vec<Grader>,
    entries: &[GraderEntry],
    overrides: &Common,
    library: &Library,
    using: &mut Vec<String>,
    folder: Option<&Path>,
) -> Result<(), GraderError> {
    for entry in entries {
        let common = Common {
            name: overrides.name.clone().or_else(|| entry.common.name.clone()),
            weight: overrides.weight.or(entry.common.weight),
            gate: overrides.gate.or(entry.common.gate),
            diagnostic: overrides.diagnostic.or(entry.common.diagnostic),
        };
        if common.gate == Some(true) && common.diagnostic == Some(true) {
            let name = using.last().map_or(entry.word(), String::as_str);
            return Err(GraderError::GateAndDiagnostic(name.to_owned()));
        }
        match &entry.what {
            GraderOrName::Kind(kind) => {
                let mut kind = kind.clone();
                // The user of the grader may resolve paths from another folder.
                let absolute = folder.and_then(|folder| std::path::absolute(folder).ok());
                let folder = absolute.as_deref();
                let spec = kind.spec_mut();
                if let Some(folder) = folder {
                    spec.count_from(folder);
                }
                // A built-in grader is calibrated by its users, in their own folder.
                if let Some(name) = using.last() {
                    spec.is_named(folder.unwrap_or(Path::new("graders")), name);
                }
                // A grader without a name gets the name of the `use`.
                let name = common.name.or_else(|| using.last().cloned()).unwrap_or_else(|| kind.word().to_owned());
                graders.push(Grader {
                    name,
                    weight: common.weight.unwrap_or(1.0),
                    gate: common.gate.unwrap_or(false),
                    diagnostic: common.diagnostic.unwrap_or(false),
                    kind,
                });
            }
            GraderOrName::Use(named) => {
                let name = &named.grader;
                if let Some(start) = using.iter().position(|used| used == name) {
                    let circle = using[start..].iter().chain([name]).cloned().collect();
                    return Err(GraderError::Circle(circle));
                }
                let Some(found) = library.get(name) else {
                    return Err(GraderError::Unknown { name: name.clone(), nearest: library.nearest(name) });
                };
                let file = found.read().map_err(GraderError::Unreadable)?;
                using.push(name.clone());
                expand_into(graders, &file.graders, &common, library, using, found.folder.as_deref())?;
                using.pop();
            }
        }
    }
    Ok(())
}

/// The content of a named grader's file.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedFile {
    /// A description in one line.
    pub description: Option<String>,
    pub graders: Vec<GraderEntry>,
}

impl<'de> Forms<'de> for NamedFile {
    const EXPECTED: &'static str = "a named grader: a map of `description` and `grader` or `graders`";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut description: Option<String> = None;
        let mut graders: Option<Vec<GraderEntry>> = None;
        while let Some(key) = map.next_key::<FileKey>()? {
            let read = match key {
                FileKey::Description => {
                    if description.replace(map.next_value()?).is_some() {
                        return Err(A::Error::duplicate_field("description"));
                    }
                    continue;
                }
                FileKey::Graders => map.next_value::<Entries>()?.0,
                FileKey::Kind(KindWord(word)) => vec![map.next_value_seed(EntryBody(word))?],
            };
            if graders.replace(read).is_some() {
                return Err(A::Error::custom(
                    "this file has graders in two places; put them in one list below `graders`",
                ));
            }
        }
        let graders = graders.ok_or_else(|| A::Error::missing_field("graders"))?;
        Ok(NamedFile { description, graders })
    }
}

deserialize_forms!(NamedFile, deserialize_map);

/// A key of a named grader's file. A single grader may be written without `grader`.
enum FileKey {
    Description,
    Graders,
    Kind(KindWord),
}

impl Forms<'_> for FileKey {
    const EXPECTED: &'static str = "`description`, `grader` or `graders`";

    fn from_text<E: Error>(key: &str) -> Result<Self, E> {
        match key {
            "description" => Ok(FileKey::Description),
            "grader" | "graders" => Ok(FileKey::Graders),
            _ => KindWord::known(key)
                .map(FileKey::Kind)
                .ok_or_else(|| E::unknown_field(key, &["description", "grader", "graders"])),
        }
    }
}

deserialize_forms!(FileKey, deserialize_identifier);

/// A grader, or a list of graders.
struct Entries(Vec<GraderEntry>);

impl<'de> Forms<'de> for Entries {
    const EXPECTED: &'static str = "a grader or a list of graders";

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let one = GraderEntry::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(Entries(vec![one]))
    }

    fn from_list<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        filled_list(seq).map(Entries)
    }
}

deserialize_forms!(Entries, deserialize_any);

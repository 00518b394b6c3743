//! Graders of cases: graders written in a case, with their place, and named graders in `graders/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Case, Source};
use crate::embedded;
use crate::expression::span;
use crate::grader::{GraderEntry, GraderOrName, Library, NamedGrader, unique_names};
use crate::paths;
use crate::secrets::Masker;
use crate::yaml::wrong_part::WrongPart;
use crate::yaml::{self, OwnedStep, Step, StepPart, YamlError};

/// A grader of a case, and the place where it is written: in the case itself or in one of its suites.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenGrader {
    pub entry: GraderEntry,
    /// The file in which the grader is written.
    pub source: Arc<Source>,
    /// The position of the grader among the graders of its file.
    pub number: usize,
    /// The number of graders that this entry expands to: one, or the graders of the named grader that it uses.
    pub expands_to: usize,
}

/// The place of a grader of a case, by its name in results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GraderPlace {
    /// The name of the grader.
    pub name: String,
    /// The case or suite in which the grader is written.
    pub file: PathBuf,
    /// The line of the grader in the file, from 1.
    pub line: usize,
}

impl Case {
    /// Returns the place of each grader. The graders of a named grader have the place where it is used.
    pub fn grader_places(&self) -> Vec<GraderPlace> {
        let names = unique_names(self.graders.iter().map(AsRef::as_ref));
        let written = self.written_graders.iter().flat_map(|grader| {
            let line = grader.line();
            std::iter::repeat_n((grader.source.file.clone(), line), grader.expands_to)
        });
        names.into_iter().zip(written).map(|(name, (file, line))| GraderPlace { name, file, line }).collect()
    }

    /// Returns for each grader the mark that replaces the first secret of its text in the trace.
    pub fn secrets_in_graders(&self, masker: &Masker) -> Vec<Option<String>> {
        if masker.is_empty() {
            return Vec::new();
        }
        let marks = self.written_graders.iter().flat_map(|grader| {
            let mark = match grader.named().and_then(|name| self.named_graders.get(name)) {
                Some(text) => masker.mark_in_any_case(text).map(str::to_owned),
                None => grader.secret_in(masker),
            };
            std::iter::repeat_n(mark, grader.expands_to)
        });
        marks.collect()
    }
}

impl WrittenGrader {
    /// Returns the folder that the grader's paths are relative to.
    pub fn folder(&self) -> &Path {
        self.source.file.parent().unwrap_or(&self.source.file)
    }

    /// Returns the name of the grader in `graders/` that this grader uses, if any.
    pub fn named(&self) -> Option<&str> {
        match &self.entry.what {
            GraderOrName::Use(named) => Some(&named.grader),
            _ => None,
        }
    }

    /// Returns the error of an invalid expression in the grader, at the line and column within the expression.
    pub fn wrong_expression(&self) -> Option<YamlError> {
        let found = self.entry.wrong_expression()?;
        let steps = [Step::Key("graders"), Step::Item(self.number), Step::Key(self.entry.word()), Step::Key(found.key)];
        let Source { shown, text, .. } = &*self.source;
        Some(span::error(shown, text, &steps, found.text, found.wrong))
    }

    /// Returns the error of an invalid part of the grader, at that part.
    pub fn wrong_part(&self) -> Option<YamlError> {
        let WrongPart { at, why } = self.entry.wrong_part(Some(self.folder()))?;
        Some(self.error_at(&at, format!("the grader `{}` {why}", self.entry.word())))
    }

    /// Returns the error of a missing file, at the place where the file is named.
    pub fn missing_file(&self) -> Option<YamlError> {
        let WrongPart { at, why } = self.entry.missing_file(self.folder())?;
        Some(self.error_at(&at, format!("the grader `{}` {why}", self.entry.word())))
    }

    /// Returns an error at a place in the grader's body.
    pub fn error_at(&self, at: &[OwnedStep], message: String) -> YamlError {
        let front = [Step::Key("graders"), Step::Item(self.number), Step::Key(self.entry.word())];
        let steps: Vec<Step<'_>> = front.into_iter().chain(at.iter().map(OwnedStep::step)).collect();
        YamlError::at_steps(&self.source.shown, &self.source.text, &steps, StepPart::Key, message)
    }

    /// Returns the mark of the first secret in the grader.
    fn secret_in(&self, masker: &Masker) -> Option<String> {
        let Source { file, text, .. } = &*self.source;
        masker.mark_in_any_case(text)?;
        let written: Value = yaml::parse(file, text).ok()?;
        let grader = written.get("graders")?.get(self.number)?;
        masker.mark_in_any_case(&grader.to_string()).map(str::to_owned)
    }

    /// Returns the grader's first line, from 1.
    fn line(&self) -> usize {
        let steps = [Step::Key("graders"), Step::Item(self.number)];
        let text = &self.source.text;
        let start = yaml::find(text, &steps, StepPart::Value).map_or(0, |found| found.start);
        text.as_bytes().iter().take(start).filter(|byte| **byte == b'\n').count() + 1
    }

    /// Returns an error at the place where the grader is written.
    pub fn error(&self, message: impl Into<String>) -> YamlError {
        let steps = [Step::Key("graders"), Step::Item(self.number)];
        YamlError::at_steps(&self.source.shown, &self.source.text, &steps, StepPart::Value, message)
    }
}

/// The named graders. A file in the project's folder replaces the built-in grader of the same name.
#[derive(Debug, Clone, Default)]
pub struct GraderFolder {
    texts: BTreeMap<String, (String, String)>,
}

impl GraderFolder {
    /// Reads the built-in graders, and the graders of a folder, which need not exist.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn load(folder: &Path) -> Result<Self, Vec<YamlError>> {
        let built_in = embedded::graders().into_iter();
        let mut texts: BTreeMap<_, _> =
            built_in.map(|(name, text)| (name.to_owned(), (embedded::ORIGIN.to_owned(), text.to_owned()))).collect();
        let mut errors = Vec::new();
        for (name, file) in yaml::files(folder).map_err(|error| vec![error])? {
            let shown = paths::shown(&paths::absolute(Path::new(""), &file));
            match yaml::read(&shown) {
                Ok(text) => {
                    texts.insert(name, (shown.display().to_string(), text));
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(Self { texts }) } else { Err(errors) }
    }

    /// Returns the origin (`built in` or a path) and the YAML text of a grader.
    pub fn get(&self, name: &str) -> Option<(&str, &str)> {
        self.texts.get(name).map(|(origin, text)| (origin.as_str(), text.as_str()))
    }

    /// Returns all names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.texts.keys().map(String::as_str).collect()
    }

    /// Returns all graders as a library, for resolving names.
    pub fn library(&self) -> Library {
        let mut library = Library::default();
        for (name, (origin, text)) in &self.texts {
            let folder = (origin != embedded::ORIGIN).then(|| Path::new(origin).parent().map(Path::to_path_buf));
            let grader = NamedGrader { origin: origin.clone(), folder: folder.flatten(), text: text.clone() };
            library.insert(name.clone(), grader);
        }
        library
    }

    /// Iterates over name, origin and text of all graders, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.texts.iter().map(|(name, (origin, text))| (name.as_str(), origin.as_str(), text.as_str()))
    }
}

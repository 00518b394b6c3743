//! The file of labels: JSON Lines, each with one person's label of one criterion of one trace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CliError;
use super::calibrated::Labelled;
use crate::grader::{Calibrate, LabelValue};
use crate::regular;

/// A line of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelLine {
    /// The trace file, relative to the folder of the labels.
    pub trace: PathBuf,
    /// The criterion. Optional for a rubric with one criterion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// For a comparison: the reference, relative to the folder of the labels. Default: the grader's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<PathBuf>,
    /// The person's label. Without a label, the trace is judged, and counts only for the pass rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelValue>,
    /// The model of the agent, if the trace does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A parsed label.
#[derive(Debug, Clone)]
pub struct Label {
    /// The canonical path of the labelled trace, and of its reference if there is one.
    pub of: Labelled,
    pub criterion: String,
    /// The person's label, if there is one.
    pub says: Option<LabelValue>,
    /// The model of the agent.
    pub model: Option<String>,
}

/// All labels of a file.
#[derive(Debug)]
pub struct Labels {
    /// The labels, in the order of the file.
    pub labels: Vec<Label>,
}

impl Labels {
    /// Reads a file, and reports all errors in it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, contains no label, or contains two labels for one criterion and
    /// trace.
    pub fn read(file: &Path, graded: &dyn Calibrate) -> Result<Self, CliError> {
        let text = regular::read_to_string(file)
            .map_err(|error| CliError::unreadable(format!("{}: {error}", file.display())))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut labels = Vec::new();
        let mut seen = BTreeSet::new();
        let mut wrong: Option<CliError> = None;
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            match read_line(line, folder, graded) {
                Ok(label) if seen.insert((label.of.clone(), label.criterion.clone())) => labels.push(label),
                Ok(label) => {
                    let why = format!("this trace already has a label for `{}`", label.criterion);
                    add(&mut wrong, file, number, &why);
                }
                Err(why) => add(&mut wrong, file, number, &why),
            }
        }
        match wrong {
            Some(wrong) => Err(wrong),
            None if labels.iter().all(|label| label.says.is_none()) => {
                let why = "it has no label, so there is nothing to compare a judge with; see `evals calibrate --ask`";
                Err(CliError::unreadable(format!("{}: {why}", file.display())))
            }
            None => Ok(Self { labels }),
        }
    }

    /// Returns the traces with their references, each once.
    pub fn traces(&self) -> BTreeSet<Labelled> {
        self.labels.iter().map(|label| label.of.clone()).collect()
    }
}

fn add(wrong: &mut Option<CliError>, file: &Path, number: usize, why: &str) {
    let error = CliError::unreadable(format!("{}:{number}: {why}", file.display()));
    *wrong = Some(match wrong.take() {
        Some(before) => before.and(error),
        None => error,
    });
}

fn read_line(line: &str, folder: &Path, graded: &dyn Calibrate) -> Result<Label, String> {
    let LabelLine { trace, criterion, reference, label, model, .. } =
        serde_json::from_str(line).map_err(|error| format!("this is not a label: {error}"))?;
    let known: Vec<&str> = graded.questions().into_iter().map(|(id, _)| id).collect();
    let ids = || known.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    let criterion = match (criterion, known.as_slice()) {
        (Some(id), known) if known.contains(&&*id) => id,
        (Some(id), _) => return Err(format!("the rubric has no criterion `{id}`; it has {}", ids())),
        (None, [only]) => (*only).to_owned(),
        (None, _) => return Err(format!("it has no `criterion`; the rubric has {}", ids())),
    };
    if let Some(word) = label.filter(|word| !graded.labels().contains(word)) {
        let words: Vec<String> = graded.labels().iter().map(|word| format!("`{}`", word.text())).collect();
        return Err(format!("the label `{}` is not accepted here; use one of {}", word.text(), words.join(", ")));
    }
    if reference.is_some() && !graded.takes_reference() {
        return Err("a rubric takes no `reference`, but this label has one".to_owned());
    }
    // A file may have several paths, by links or `..`, and its label counts once.
    let there = |what: &str, path: PathBuf| {
        let file = folder.join(path);
        if !file.is_file() {
            return Err(format!("there is no {what} {}", file.display()));
        }
        file.canonicalize().map_err(|error| format!("the {what} {} cannot be read: {error}", file.display()))
    };
    let of = (there("trace", trace)?, reference.map(|path| there("reference", path)).transpose()?);
    Ok(Label { of, criterion, says: label, model })
}

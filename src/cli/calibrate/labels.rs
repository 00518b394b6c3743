//! The file of labels: JSON Lines, each one person's word on one criterion of one trace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::CliError;
use crate::judge::rubric::Rubric;

/// A line as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelLine {
    /// The file of the trace, from the folder of the labels.
    pub trace: PathBuf,
    /// The criterion; a rubric of one criterion needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub criterion: Option<String>,
    /// What a person says; without it the trace is judged, and counts for the rate alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Word>,
    /// The model that made it, where the trace does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A person's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
}

/// A label, ready to be counted.
#[derive(Debug, Clone)]
pub struct Label {
    /// The trace.
    pub file: PathBuf,
    /// The criterion.
    pub criterion: String,
    /// What a person says, if one does.
    pub passes: Option<bool>,
    /// The model that made it.
    pub model: Option<String>,
}

/// All labels of a file.
#[derive(Debug)]
pub struct Labels {
    /// In their order.
    pub labels: Vec<Label>,
}

impl Labels {
    /// Reads a file, and tells everything that is wrong in it.
    ///
    /// # Errors
    /// It cannot be read, holds no label, or two of one criterion and trace.
    pub fn read(file: &Path, rubric: &Rubric) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| CliError::unreadable(format!("{}: {error}", file.display())))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let mut labels = Vec::new();
        let mut seen = BTreeSet::new();
        let mut wrong: Option<CliError> = None;
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty()) {
            match read_line(line, folder, rubric) {
                Ok(label) if seen.insert((label.file.clone(), label.criterion.clone())) => labels.push(label),
                Ok(label) => {
                    let why = format!("there is a label of `{}` for this trace already", label.criterion);
                    add(&mut wrong, file, number, &why);
                }
                Err(why) => add(&mut wrong, file, number, &why),
            }
        }
        match wrong {
            Some(wrong) => Err(wrong),
            None if labels.iter().all(|label| label.passes.is_none()) => {
                let why = "it holds no label, so there is nothing to hold a judge against; see `evals calibrate --ask`";
                Err(CliError::unreadable(format!("{}: {why}", file.display())))
            }
            None => Ok(Self { labels }),
        }
    }

    /// The traces, each once.
    pub fn traces(&self) -> BTreeSet<PathBuf> {
        self.labels.iter().map(|label| label.file.clone()).collect()
    }
}

fn add(wrong: &mut Option<CliError>, file: &Path, number: usize, why: &str) {
    let error = CliError::unreadable(format!("{}:{number}: {why}", file.display()));
    *wrong = Some(match wrong.take() {
        Some(before) => before.and(error),
        None => error,
    });
}

fn read_line(line: &str, folder: &Path, rubric: &Rubric) -> Result<Label, String> {
    let LabelLine { trace, criterion, label, model, .. } =
        serde_json::from_str(line).map_err(|error| format!("this is no label: {error}"))?;
    let ids = || rubric.criteria.iter().map(|it| format!("`{}`", it.id)).collect::<Vec<_>>().join(", ");
    let criterion = match (criterion, rubric.criteria.as_slice()) {
        (Some(id), criteria) if criteria.iter().any(|it| it.id == id) => id,
        (Some(id), _) => return Err(format!("the rubric has no criterion `{id}`; it has {}", ids())),
        (None, [only]) => only.id.clone(),
        (None, _) => return Err(format!("it names no `criterion`; the rubric has {}", ids())),
    };
    let file = folder.join(trace);
    if !file.is_file() {
        return Err(format!("there is no trace {}", file.display()));
    }
    Ok(Label { file, criterion, passes: label.map(|word| word == Word::Pass), model })
}

//! Identities of trials, cells and columns, the planned trial, and display names.

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sandbox;
use crate::whole_file::{FileError, folder_name};

/// The maximum length in bytes of the name of a cell's file; a longer name ends in a digest.
const MAX_FILE_NAME_BYTES: usize = 200;

/// A planned trial in `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialRecord {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The arm, as a folder name: the model or the variant, `default` if there is neither, or `NAME#2` for a second arm
    /// of the same name, as with `--aa`.
    pub arm: String,
    /// Number of the trial, from 1.
    pub trial: u32,
    /// The reason why the trial is skipped. Absent if it is to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The run in which the trial failed, if this is a rerun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<String>,
    /// The kind of sandbox that the agent runs in.
    #[serde(default)]
    pub sandbox: sandbox::Kind,
}

impl TrialRecord {
    /// Makes the only trial of a case with a harness.
    pub fn alone(case: &str, harness: &str, model: Option<String>, sandbox: sandbox::Kind) -> Self {
        Self {
            case: case.to_owned(),
            harness: harness.to_owned(),
            arm: model.clone().unwrap_or_else(|| "default".to_owned()),
            model,
            trial: 1,
            skip: None,
            failed_in: None,
            sandbox,
        }
    }

    /// Returns a trial of case `c` without a model, for tests.
    #[cfg(test)]
    pub fn for_test(harness: &str, trial: u32) -> Self {
        let text = serde_json::json!({"case": "c", "harness": harness, "arm": "default", "trial": trial});
        serde_json::from_value(text).unwrap()
    }

    /// Returns the trial's identity in its run.
    pub fn id(&self) -> TrialId {
        let Self { case, harness, arm, trial, .. } = self.clone();
        TrialId { case, harness, arm, trial }
    }

    /// Returns what distinguishes the trial's arm: a variant or a requested model.
    pub fn arm_of(&self) -> ArmOf<'_> {
        ArmOf::new(&self.arm, self.model.as_deref())
    }

    /// Returns the identity of the trial's cell.
    pub fn cell(&self) -> CellId {
        CellId::new(&self.case, &self.harness, &self.arm)
    }

    /// Returns the identity of the trial's cell for snapshots.
    pub fn snapshot_cell(&self) -> SnapshotCellId {
        SnapshotCellId::new(&self.case, &self.harness, self.arm_of())
    }
}

/// A value with the id of a case.
pub trait HasCaseId {
    fn case_id(&self) -> &str;
}

/// Finds an item by the id of its case. Lists of cases are sorted by id unless an older version wrote them, so the search
/// is quick, and the lookup of each of many cases does not grow with their square.
pub fn by_case_id<'a, T: HasCaseId>(items: &'a [T], id: &str) -> Option<&'a T> {
    match items.binary_search_by(|item| item.case_id().cmp(id)) {
        Ok(at) => items.get(at),
        Err(_) => items.iter().find(|item| item.case_id() == id),
    }
}

/// Returns the ids of the cases of trials.
pub fn cases_of<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> HashSet<&'a str> {
    trials.into_iter().map(|trial| trial.case.as_str()).collect()
}

/// Returns trials by the ids of their cases.
pub fn trials_by_case<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> HashMap<&'a str, Vec<&'a TrialRecord>> {
    let mut by_case: HashMap<&str, Vec<&TrialRecord>> = HashMap::new();
    for trial in trials {
        by_case.entry(&trial.case).or_default().push(trial);
    }
    by_case
}

/// The part that distinguishes an arm: a variant of an experiment, else a requested model, else nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ArmOf<'a> {
    /// The requested model.
    pub model: Option<&'a str>,
    pub variant: Option<&'a str>,
}

impl<'a> ArmOf<'a> {
    /// Returns what distinguishes an arm. A copy of an arm, such as `a#2`, gives the same value as the arm.
    pub fn new(arm: &'a str, model: Option<&'a str>) -> Self {
        let name = without_copy(arm);
        let is_variant = name != model.unwrap_or("default") && arm != model.unwrap_or("default");
        Self { model, variant: is_variant.then_some(name) }
    }

    /// Returns the name: that of the variant, else the model.
    pub fn name(self) -> Option<&'a str> {
        self.variant.or(self.model)
    }

    /// Returns the name of a cell's file without extension: `HARNESS`, `HARNESS@MODEL` or `HARNESS+VARIANT`.
    ///
    /// # Errors
    /// Returns an error if one of the names cannot be the name of a file.
    pub fn file_name(self, harness: &str) -> Result<String, FileError> {
        let mut name = folder_name(harness)?;
        // No name holds a bare `@` or `+`: they would be written `%40` and `%2B`.
        let sign = if self.variant.is_some() { '+' } else { '@' };
        if let Some(of) = self.name() {
            name.push(sign);
            name.push_str(&folder_name(of)?);
        }
        if name.len() > MAX_FILE_NAME_BYTES {
            let digest = blake3::hash(name.as_bytes()).to_hex();
            name.truncate(MAX_FILE_NAME_BYTES - 17);
            name.push('-');
            name.push_str(digest.get(..16).unwrap_or_default());
        }
        Ok(name)
    }
}

/// Returns the name of an arm without the number of its copy, as in `with#2`.
pub fn without_copy(arm: &str) -> &str {
    match arm.rsplit_once('#') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => arm,
    }
}

/// The identity of a trial in its run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrialId {
    pub case: String,
    /// The name of the harness.
    pub harness: String,
    /// The arm, as in [`TrialRecord::arm`].
    pub arm: String,
    /// The number of the trial, from 1.
    pub trial: u32,
}

/// Writes the name of the trial for `evals show`: its place in the run folder, with unescaped names.
impl fmt::Display for TrialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.case, self.harness, self.arm, self.trial)
    }
}

/// The identity of a column: harness × arm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ColumnId {
    /// Name of the harness.
    pub harness: String,
    /// Name of the arm.
    pub arm: String,
}

/// Writes the display name.
impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&column_name(&self.harness, &self.arm))
    }
}

/// The identity of a cell: case × harness × arm.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellId {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// Name of the arm.
    pub arm: String,
}

impl CellId {
    /// Makes the identity from its parts.
    pub fn new(case: &str, harness: &str, arm: &str) -> Self {
        Self { case: case.to_owned(), harness: harness.to_owned(), arm: arm.to_owned() }
    }

    /// Returns the identity of the cell's column.
    pub fn column(&self) -> ColumnId {
        ColumnId { harness: self.harness.clone(), arm: self.arm.clone() }
    }
}

/// Writes the display name.
impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.case, column_name(&self.harness, &self.arm))
    }
}

/// The identity of a cell for snapshots: case × harness × variant or requested model. The copies of an arm have the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SnapshotCellId {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The variant of an experiment. Absent if the arm is a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl SnapshotCellId {
    /// Makes the identity from its parts.
    pub fn new(case: &str, harness: &str, arm: ArmOf<'_>) -> Self {
        let (model, variant) = (arm.model.map(str::to_owned), arm.variant.map(str::to_owned));
        Self { case: case.to_owned(), harness: harness.to_owned(), model, variant }
    }

    /// Returns what distinguishes the arm: a variant or a requested model.
    pub fn arm(&self) -> ArmOf<'_> {
        ArmOf { model: self.model.as_deref(), variant: self.variant.as_deref() }
    }

    /// Returns the identity for reports.
    pub fn cell(&self) -> CellId {
        CellId::new(&self.case, &self.harness, self.arm().name().unwrap_or("default"))
    }
}

/// Writes the name for filters: case, harness and, if there is one, the variant or the requested model.
impl fmt::Display for SnapshotCellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.case, self.harness)?;
        self.arm().name().map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

/// Returns a column's display name: the harness, and the model if one was requested.
pub fn column_name(harness: &str, arm: &str) -> String {
    if arm == "default" { harness.to_owned() } else { format!("{harness} / {arm}") }
}

//! Experiments: several arms that differ in what is named, and in nothing else.
//!
//! An experiment file names a baseline and its variants. Each variant is resolved to an [`Arm`], which is laid over each
//! case and each manifest.

use std::path::{Path, PathBuf};

pub use crate::case::find::is_experiment;
pub use crate::ids::without_copy;
use crate::workspace::walk::{Descend, Unread, walk};

pub mod file;
mod arm;
mod resolve;
mod sources;
mod variant;

pub use arm::Arm;
pub use resolve::{Resolver, resolve};
pub use sources::{OneOff, Written, read};
pub use variant::VariantLayer;

/// A resolved experiment.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    pub description: Option<String>,
    /// The number of trials of each cell, if written.
    pub trials: Option<u32>,
    /// The keys that may differ between the arms.
    pub vary: Vec<String>,
    /// The axes of a matrix, in the order written, each with its labels.
    pub axes: Vec<(String, Vec<String>)>,
    /// The arms; the baseline comes first.
    pub arms: Vec<Arm>,
}

impl Experiment {
    /// Returns the first arm, with which the others are compared.
    pub fn baseline(&self) -> Option<&Arm> {
        self.arms.first()
    }

    /// Returns the arm of a column. The column `NAME#2`, the second one of a comparison of an arm with itself, has the
    /// arm `NAME`.
    pub fn arm(&self, column: &str) -> Option<&Arm> {
        arm_of(&self.arms, column)
    }
}

/// Returns the arm of a column among several.
pub fn arm_of<'a>(arms: &'a [Arm], column: &str) -> Option<&'a Arm> {
    let named = |name: &str| arms.iter().find(|arm| arm.name == name);
    named(column).or_else(|| named(without_copy(column)))
}

/// Returns the experiment files at or below a path, by path, and the folders in which more may be, because they could not
/// be read.
pub fn files_in(path: &Path) -> (Vec<PathBuf>, Vec<(PathBuf, Unread)>) {
    let is_one = |file: &Path| crate::yaml::read(file).is_ok_and(|text| is_experiment(&text));
    if path.is_file() {
        return (Some(path.to_owned()).filter(|file| is_one(file)).into_iter().collect(), Vec::new());
    }
    let mut found = Vec::new();
    let unread = walk(path, |below, meta| {
        let hidden = below.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with('.'));
        if hidden {
            return Descend::Skip;
        }
        let file = path.join(below);
        if meta.is_file() && below.extension().is_some_and(|end| end == "yaml") && is_one(&file) {
            found.push(file);
        }
        Descend::Enter
    });
    found.sort();
    // A path that is not there is reported by the loader of cases.
    let unread = unread.unwrap_or_default().into_iter().map(|(below, why)| (path.join(below), why));
    (found, unread.collect())
}

//! Decides where the answers to an agent's requests come from, for one trial.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The treatment of agents' requests by the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Mode {
    /// Pass requests on, and log them
    Observe,
    /// Pass requests on, and record a cassette beside each case
    Record,
    /// Play the cassette of each case; no request to a model leaves the machine
    Replay,
    /// Play the cassette of each case, and record what it lacks
    Auto,
}

crate::word::word!(Mode);

/// The answers that a case provides in place of a model: a script or a cassette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseModel {
    /// A script that is played.
    Script(PathBuf),
    /// A recording.
    Cassette {
        /// The cassette.
        file: PathBuf,
        /// True if the results of tools are not compared.
        ignore_results: bool,
    },
}

/// The source of the answers in one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Script(PathBuf),
    /// The service.
    Observe,
    /// The service. The answers are recorded in this file.
    Record(PathBuf),
    /// The recording in this file.
    Replay(PathBuf),
    /// The recording in this file. Requests that it does not contain are sent to the service, and the answers are added
    /// to the file.
    Auto(PathBuf),
}

impl CaseModel {
    /// Returns the script, or the cassette.
    pub fn file(&self) -> &Path {
        match self {
            CaseModel::Script(file) | CaseModel::Cassette { file, .. } => file,
        }
    }
}

impl Route {
    /// Returns the route of a trial. `mode` is the mode that the run requests, `own` the cassette of the trial's cell.
    /// `None`: the agent reaches its model without the gateway.
    pub fn of(model: Option<&CaseModel>, mode: Option<Mode>, own: impl FnOnce() -> PathBuf) -> Option<Self> {
        let cassette = match model {
            Some(CaseModel::Script(script)) => return Some(Route::Script(script.clone())),
            Some(CaseModel::Cassette { file, .. }) => Some(file.clone()),
            None => None,
        };
        // A case that names a cassette is replayed unless the run asks for something else.
        let mode = mode.or(cassette.as_ref().map(|_| Mode::Replay))?;
        let file = || cassette.unwrap_or_else(own);
        Some(match mode {
            Mode::Observe => Route::Observe,
            Mode::Record => Route::Record(file()),
            Mode::Replay => Route::Replay(file()),
            Mode::Auto => Route::Auto(file()),
        })
    }

    /// Returns the cassette that is read.
    pub fn plays(&self) -> Option<&Path> {
        match self {
            Route::Replay(file) | Route::Auto(file) => Some(file),
            Route::Script(_) | Route::Observe | Route::Record(_) => None,
        }
    }

    /// Returns the cassette that is written.
    pub fn records(&self) -> Option<&Path> {
        match self {
            Route::Record(file) | Route::Auto(file) => Some(file),
            Route::Script(_) | Route::Observe | Route::Replay(_) => None,
        }
    }

    /// Returns true if requests may leave the machine.
    pub fn reaches_the_service(&self) -> bool {
        matches!(self, Route::Observe | Route::Record(_) | Route::Auto(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_case_and_the_run_decide_together() {
        let own = || PathBuf::from("own.jsonl");
        let script = CaseModel::Script("s.yaml".into());
        let cassette = CaseModel::Cassette { file: "c.jsonl".into(), ignore_results: false };
        for (model, mode, wanted) in [
            (None, None, None),
            (None, Some(Mode::Observe), Some(Route::Observe)),
            (None, Some(Mode::Record), Some(Route::Record("own.jsonl".into()))),
            (Some(&script), Some(Mode::Record), Some(Route::Script("s.yaml".into()))),
            (Some(&cassette), None, Some(Route::Replay("c.jsonl".into()))),
            (Some(&cassette), Some(Mode::Auto), Some(Route::Auto("c.jsonl".into()))),
            (Some(&cassette), Some(Mode::Observe), Some(Route::Observe)),
        ] {
            assert_eq!(Route::of(model, mode, own), wanted);
        }
    }
}

//! The probes of a check: small built-in cases, each with a script for the demo agent and one for a scripted model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use strum::{EnumCount, IntoStaticStr};

use super::ModelSource;
use crate::harness::{Manifest, ModelVia};
use crate::word::word;

static CASES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/conformance/cases");

/// The name of a model that no agent has.
pub const NO_SUCH_MODEL: &str = "evals-no-such-model";

/// The model of the demo agent's scripts for these cases.
pub const SCRIPTS_MODEL: &str = "demo-1";

/// A session with the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumCount, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Probe {
    /// Starts the agent and opens a session, without a prompt.
    Session,
    /// Like `Session`, with a model that does not exist.
    Model,
    /// Requests a text.
    Answer,
    /// Requests tool calls; every permission is given.
    Tools,
    /// Requests tool calls; every permission is refused.
    Reject,
    /// Sends a prompt and cancels it.
    Cancel,
}

word!(Probe);

impl Probe {
    const ALL: [Probe; Probe::COUNT] =
        [Probe::Session, Probe::Model, Probe::Answer, Probe::Tools, Probe::Reject, Probe::Cancel];

    /// Returns the id of the probe's case.
    pub fn case(self) -> &'static str {
        match self {
            Probe::Session | Probe::Model => "answer",
            other => other.word(),
        }
    }

    /// Returns true if the agent gets a prompt, and so calls its model.
    pub fn prompts(self) -> bool {
        !matches!(self, Probe::Session | Probe::Model)
    }

    /// Returns true if the probe can show anything about this harness.
    fn applies(self, manifest: &Manifest, model: ModelSource) -> bool {
        let talks = manifest.adapter.has_conversation();
        match self {
            // A probe with a prompt shows the same.
            Probe::Session => talks && model == ModelSource::None,
            Probe::Model => talks && matches!(manifest.model.via, ModelVia::ConfigOption | ModelVia::SetModel),
            Probe::Answer | Probe::Tools => model != ModelSource::None,
            Probe::Reject => model != ModelSource::None && manifest.seen().interaction,
            Probe::Cancel => model != ModelSource::None && talks,
        }
    }
}

/// Returns the probes for a harness, in order.
pub fn probes(manifest: &Manifest, model: ModelSource) -> Vec<Probe> {
    Probe::ALL.into_iter().filter(|probe| probe.applies(manifest, model)).collect()
}

/// Writes the cases and their scripts into a folder. Returns the root that case ids are relative to.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn write_cases(folder: &Path) -> io::Result<PathBuf> {
    let root = folder.join("cases");
    fs::create_dir_all(&root)?;
    for file in CASES.files() {
        let Some(name) = file.path().file_name() else { continue };
        fs::write(root.join(name), file.contents())?;
    }
    Ok(root)
}

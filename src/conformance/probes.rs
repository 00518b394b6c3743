//! The probes of a check: small built-in cases, each with a script for the demo agent and one for a scripted model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use super::ModelSource;
use crate::harness::Adapter;
use crate::harness::{Manifest, ModelVia};

static CASES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/conformance/cases");

/// A model that no agent has.
pub const NO_SUCH_MODEL: &str = "evals-no-such-model";

/// The model that the demo agent's scripts of these cases are for.
pub const SCRIPTS_MODEL: &str = "demo-1";

/// One session with the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe {
    /// Start, handshake, a session, and no prompt.
    Session,
    /// The same with a model that does not exist.
    Model,
    /// A prompt that wants a text.
    Answer,
    /// A prompt that wants tools, with every permission given.
    Tools,
    /// A prompt that wants tools, with every permission refused.
    Reject,
    /// A prompt that is cancelled.
    Cancel,
}

impl Probe {
    const ALL: [Probe; 6] = [Probe::Session, Probe::Model, Probe::Answer, Probe::Tools, Probe::Reject, Probe::Cancel];

    /// The probe's word: the name of its folder.
    pub fn word(self) -> &'static str {
        match self {
            Probe::Session => "session",
            Probe::Model => "model",
            Probe::Answer => "answer",
            Probe::Tools => "tools",
            Probe::Reject => "reject",
            Probe::Cancel => "cancel",
        }
    }

    /// The id of the case it is made from.
    pub fn case(self) -> &'static str {
        match self {
            Probe::Session | Probe::Model => "answer",
            other => other.word(),
        }
    }

    /// Whether the agent gets a prompt, and so asks its model something.
    pub fn prompts(self) -> bool {
        !matches!(self, Probe::Session | Probe::Model)
    }

    /// Whether there is anything to be learned from it about this harness.
    fn applies(self, manifest: &Manifest, model: ModelSource) -> bool {
        let talks = talks(manifest);
        match self {
            // With a prompt the same is seen.
            Probe::Session => talks && model == ModelSource::None,
            Probe::Model => talks && matches!(manifest.model.via, ModelVia::ConfigOption | ModelVia::SetModel),
            Probe::Answer | Probe::Tools => model != ModelSource::None,
            Probe::Reject => model != ModelSource::None && manifest.seen().interaction,
            Probe::Cancel => model != ModelSource::None && talks,
        }
    }
}

/// The probes for a harness, in order.
pub fn probes(manifest: &Manifest, model: ModelSource) -> Vec<Probe> {
    Probe::ALL.into_iter().filter(|probe| probe.applies(manifest, model)).collect()
}

/// Whether there is a conversation with the agent, and not one command that runs to its end.
pub fn talks(manifest: &Manifest) -> bool {
    matches!(manifest.adapter, Adapter::Acp | Adapter::ClaudeCodeControl)
}

/// Writes the cases and their scripts into a folder, and answers the root that case ids count from.
///
/// # Errors
/// The file system refused.
pub fn write_cases(folder: &Path) -> io::Result<PathBuf> {
    let root = folder.join("cases");
    fs::create_dir_all(&root)?;
    for file in CASES.files() {
        let Some(name) = file.path().file_name() else { continue };
        fs::write(root.join(name), file.contents())?;
    }
    Ok(root)
}

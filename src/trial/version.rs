//! Determines the version of an agent's program by its manifest's `version` command, once per run and in the
//! trial's environment.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use regex::Regex;
use tokio::sync::OnceCell;

use super::{Attempt, Engine};
use crate::environment::{self, Placeholders};
use crate::harness::Manifest;
use crate::run::temporary::Vanishing;
use crate::sandbox::{self, TrialSandbox};
use crate::shell::{Command, Shell};

/// The timeout of the command.
const TIME: Duration = Duration::from_secs(20);

/// The versions determined in this run. Trials with the same program share the result.
#[derive(Debug, Default)]
pub struct Versions(Mutex<HashMap<Program, Arc<OnceCell<Option<Printed>>>>>);

/// The identity of a program: the harness, the command, its search path, and its sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Program {
    harness: String,
    command: Vec<String>,
    path: Option<String>,
    sandbox: &'static str,
}

/// The result of the `version` command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The line with the version, else the first line of the output.
    pub line: String,
    /// The version in that line.
    pub version: Option<String>,
    /// True if the command exited with 0.
    pub ended_well: bool,
}

impl Printed {
    /// Parses the output of a command: a version on standard output is preferred to one on standard error.
    fn of(stdout: &[u8], stderr: &[u8], ended_well: bool) -> Self {
        let texts = [stdout, stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let lines = || texts.iter().flat_map(|text| text.lines()).map(str::trim).filter(|line| !line.is_empty());
        let found = lines().find_map(|line| Some((line, version_in(line)?)));
        let (line, version) = match found {
            Some((line, version)) => (line, Some(version)),
            None => (lines().next().unwrap_or_default(), None),
        };
        Self { line: line.to_owned(), version, ended_well }
    }
}

/// Returns the version that the trial's program prints; `None` if its manifest has no command for it, or if the command
/// fails, takes too long or prints no version.
pub(super) async fn of_trial(engine: &Engine, attempt: &Attempt, inside: &TrialSandbox) -> Option<String> {
    let manifest = &attempt.manifest;
    if manifest.version.is_empty() || !manifest.adapter.starts_a_process() {
        return None;
    }
    let path = attempt.case.env.get("PATH").or_else(|| engine.env.get("PATH")).cloned();
    let sandbox = inside.sandbox.kind().word();
    let program = Program { harness: manifest.name.clone(), command: manifest.version.clone(), path, sandbox };
    let cell = {
        let mut known = engine.versions.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(program).or_default().clone()
    };
    let printed = cell.get_or_init(|| printed(engine, manifest, &attempt.case.env, Some(inside))).await;
    printed.as_ref().filter(|printed| printed.ended_well)?.version.clone()
}

/// Runs the `version` command in the environment that the agent gets, with an empty home and folder. Returns
/// `None` if there is no such command or if it could not be run.
pub async fn printed(
    engine: &Engine,
    manifest: &Manifest,
    case_env: &BTreeMap<String, String>,
    inside: Option<&TrialSandbox>,
) -> Option<Printed> {
    if manifest.version.is_empty() {
        return None;
    }
    let root = Vanishing::make(&engine.temporary, "version-").ok()?;
    let path = root.path().canonicalize().ok()?;
    let folder = |name: &str| {
        let path = path.join(name);
        fs::create_dir(&path).ok().map(|()| path)
    };
    let (home, workspace, scratch) = (folder("home")?, folder("workspace")?, folder("tmp")?);
    let placeholders = Placeholders {
        home: home.to_string_lossy().into_owned(),
        workspace: workspace.to_string_lossy().into_owned(),
        this_program: engine.this_program.to_string_lossy().into_owned(),
        manifest_dir: manifest.folder_text(),
        ..Placeholders::default()
    };
    let env = environment::of_agent(&engine.env, manifest, case_env, &engine.pass, &placeholders);
    let words: Vec<String> = manifest.version.iter().map(|word| placeholders.fill(word)).collect();
    let inside = inside.filter(|inside| inside.sandbox.kind() != sandbox::Kind::None).map(|inside| {
        let mut inside = inside.clone();
        inside.places.home = env.get("HOME").map_or(home, PathBuf::from);
        inside.places.workspace.clone_from(&workspace);
        inside.places.scratch = scratch;
        inside.places.around = None;
        inside.places.reads = words.iter().filter(|word| word.starts_with('/')).map(PathBuf::from).collect();
        inside.places.reads.retain(|path| path.is_file());
        inside
    });
    let shell = Shell { folder: workspace, env, inside, memory: None };
    let outcome = shell.run(&Command::Program(words), None, TIME).await.ok()?;
    let ended_well = outcome.exit.and_then(|exit| exit.code) == Some(0);
    Some(Printed::of(&outcome.stdout, &outcome.stderr, ended_well))
}

/// Returns the version number in a line of output.
fn version_in(line: &str) -> Option<String> {
    let found = VERSION.captures(line)?;
    found.get(1).map(|version| version.as_str().trim_end_matches(['.', '-', '+']).to_owned())
}

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static VERSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?:^|[^0-9A-Za-z.])v?([0-9]+(?:\.[0-9]+)+[0-9A-Za-z.+-]*)").unwrap());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_print() {
        for (printed, version) in [
            ("codex-cli 0.169.0", Some("0.169.0")),
            ("2.1.330 (Claude Code)", Some("2.1.330")),
            ("GitHub Copilot CLI 1.0.102.\nCommit: 7c61e5bb", Some("1.0.102")),
            ("v1.2.3-beta.4+5", Some("1.2.3-beta.4+5")),
            ("(node:12) Warning: soon\nagent version 2026.10.01-abc", Some("2026.10.01-abc")),
            ("agent", None),
            ("", None),
        ] {
            assert_eq!(Printed::of(printed.as_bytes(), b"", true).version.as_deref(), version, "{printed}");
        }
        let both = Printed::of(b"\nagent 2.0\n", b"node v22.1.0 is old\n", true);
        assert_eq!((both.version.as_deref(), both.line.as_str()), (Some("2.0"), "agent 2.0"));
        assert_eq!(Printed::of(b"", b"kimi, version 1.47.0", true).version.as_deref(), Some("1.47.0"));
    }
}

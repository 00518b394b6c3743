//! Sandboxes: the parts of this machine that an agent, and the commands around it, can access.

use std::path::PathBuf;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IntoDeserializer, MapAccess};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::own_environment;
use crate::process::Launch;
use crate::word::word;
use crate::yaml::forms::{Forms, deserialize_forms};

pub mod bwrap;
mod packages;
mod template;

/// Variables with the folder for temporary files, which is a private one in every trial.
pub const TEMPORARY: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// The sandbox of a trial, with all settings of case, manifest and command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// No sandbox: the user's machine.
    None,
    /// bubblewrap.
    Bwrap {
        /// The network access.
        network: Network,
        /// Folders and files besides the system's own.
        mounts: Vec<Mount>,
    },
    /// A command that wraps the agent's command.
    Command(Vec<String>),
}

/// The kinds of sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// No sandbox: the agent can read and write everything that the user can
    #[default]
    None,
    /// bubblewrap: the system read-only, the workspace and a private home, and nothing else
    Bwrap,
    /// The command that the case or the manifest names, such as docker
    Command,
}

word!(Kind);

/// The network access of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// The machine's network.
    All,
    /// Only a private loopback: the sandbox's processes can connect to each other.
    Loopback,
    /// No network. bubblewrap nevertheless provides a private loopback.
    None,
}

/// A folder or a file of this machine that is mounted in a sandbox at the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// The path; `~/` is the user's home.
    pub path: PathBuf,
    /// If `true`, the mount is writable.
    #[serde(default)]
    pub write: bool,
}

/// The sandbox settings of a case or a manifest: a word, or a map.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The kind of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The network access. Default: `all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Mounts besides the system's own folders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mount: Vec<Mount>,
    /// For `command`: program and arguments that wrap the agent's; `{command}` is the agent's command line,
    /// `{env}` is `--env NAME` for each of its variables, `{workspace}` and `{home}` are its folders.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
}

impl Settings {
    /// Merges the settings: these override `under`.
    #[must_use]
    pub fn over(self, under: Settings) -> Settings {
        let mut mount = under.mount;
        mount.retain(|inherited| !self.mount.iter().any(|own| own.path == inherited.path));
        mount.extend(self.mount);
        Settings {
            kind: self.kind.or(under.kind),
            network: self.network.or(under.network),
            mount,
            command: if self.command.is_empty() { under.command } else { self.command },
        }
    }
}

/// Returns the kind of sandbox: the command line overrides the case, and the case overrides the manifest.
pub fn kind(asked: Option<Kind>, case: Option<&Settings>, manifest: Option<&Settings>) -> Kind {
    let said = |settings: Option<&Settings>| settings.and_then(|settings| settings.kind);
    asked.or(said(case)).or(said(manifest)).unwrap_or_default()
}

/// The reason why a sandbox cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The command is not set.
    #[error(
        "the sandbox is `command`, but neither the case nor the manifest sets its command; write `sandbox: {{kind: command, command: [docker, run, --rm, -i, image, '{{command}}']}}`"
    )]
    NoCommand,
    /// A folder to mount does not exist.
    #[error("`sandbox.mount` names `{0}`, which does not exist")]
    NoMount(PathBuf),
    /// A case mounts more than the sandbox of the command line allows.
    #[error(
        "the case or its suite mounts `{}`{} under `sandbox.mount`, but with `--sandbox bwrap` on the command line cases may not mount anything; remove the mount, or run with `--allow-mounts`",
        path.display(), if *write { " writable" } else { "" }
    )]
    NotAllowed {
        /// The path to mount.
        path: PathBuf,
        /// True if the mount is writable.
        write: bool,
    },
    /// bubblewrap is not installed, or the system does not permit it.
    #[error("bubblewrap does not work here: {0}")]
    NoBwrap(String),
}

impl Sandbox {
    /// Returns the sandbox of a trial.
    ///
    /// # Errors
    /// Returns an error if a required setting is missing.
    pub fn decide(
        asked: Option<Kind>,
        case: Option<&Settings>,
        manifest: Option<&Settings>,
    ) -> Result<Self, SandboxError> {
        let all = case.cloned().unwrap_or_default().over(manifest.cloned().unwrap_or_default());
        match kind(asked, case, manifest) {
            Kind::None => Ok(Sandbox::None),
            Kind::Bwrap => {
                let mut mounts = all.mount;
                for mount in &mut mounts {
                    mount.path = under_home(&mount.path);
                    if !mount.path.exists() {
                        return Err(SandboxError::NoMount(mount.path.clone()));
                    }
                }
                Ok(Sandbox::Bwrap { network: all.network.unwrap_or(Network::All), mounts })
            }
            Kind::Command if all.command.is_empty() => Err(SandboxError::NoCommand),
            Kind::Command => Ok(Sandbox::Command(all.command)),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Sandbox::None => Kind::None,
            Sandbox::Bwrap { .. } => Kind::Bwrap,
            Sandbox::Command(_) => Kind::Command,
        }
    }
}

/// Returns a path with `~` replaced by the user's home.
fn under_home(path: &std::path::Path) -> PathBuf {
    match (path.strip_prefix("~"), own_environment::var("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}

/// The sandbox of the commands of one trial.
#[derive(Debug, Clone)]
pub struct TrialSandbox {
    /// The sandbox in which the commands run.
    pub sandbox: Sandbox,
    /// The folders and files of the trial.
    pub places: Places,
}

/// The paths of a trial that are visible in a sandbox, and the paths that must be hidden.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The workspace: the working directory of commands, writable.
    pub workspace: PathBuf,
    /// The home, which is writable.
    pub home: PathBuf,
    /// The folder that is mounted as `/tmp`.
    pub scratch: PathBuf,
    /// Files that the agent's command line names, mounted read-only.
    pub reads: Vec<PathBuf>,
    /// The program that starts the command inside bubblewrap, by its absolute path, and its arguments.
    pub through: Vec<String>,
    /// Folders that are hidden even if a mount includes them: cases, runs, other trials.
    pub hides: Vec<PathBuf>,
    /// Folders of the workspace that bubblewrap mounts at their own place, outer ones first, so that no command can rename or
    /// remove them. A folder that does not exist is left out.
    pub fixed: Vec<PathBuf>,
    /// The folder around the workspace, if bubblewrap mounts it, writable: while setup runs, and if setup left something in it.
    pub around: Option<PathBuf>,
    /// Folders in it that bubblewrap hides: those of the agent, from the graders.
    pub hides_around: Vec<PathBuf>,
}

impl TrialSandbox {
    /// Returns the command line that runs `command` in the sandbox. The program of `command` must exist.
    pub fn around(&self, command: Vec<String>, env: &std::collections::BTreeMap<String, String>) -> Launch {
        match &self.sandbox {
            Sandbox::None => command.into(),
            Sandbox::Bwrap { network, mounts } => bwrap::around(*network, mounts, &self.places, command, env),
            Sandbox::Command(words) => template::around(words, &self.places, command, env).into(),
        }
    }

    /// Returns the reason why a program could not start in its sandbox, according to its last output: missing files of
    /// this machine, and the setting that mounts each.
    pub fn missing(&self, launch: &Launch, words: &str) -> Option<String> {
        const MAX_SHOWN_PLACES: usize = 3;
        let Sandbox::Bwrap { mounts, .. } = &self.sandbox else { return None };
        let inside = |path: &std::path::Path| {
            let places = [&self.places.workspace, &self.places.home];
            let there = launch.seen.iter().chain(places).chain(mounts.iter().map(|mount| &mount.path));
            bwrap::is_of_the_system(path) || there.into_iter().any(|folder| path.starts_with(folder))
        };
        let hidden = |path: &std::path::Path| self.places.hides.iter().any(|hidden| path.starts_with(hidden));
        let interpreters = launch.program().and_then(|program| packages::interpreter_of(std::path::Path::new(program)));
        let named = packages::named_in(words).into_iter().chain(interpreters);
        let missing: Vec<PathBuf> =
            named.filter(|path| !inside(path) && !hidden(path)).take(MAX_SHOWN_PLACES).collect();
        if missing.is_empty() {
            return None;
        }
        let shown: Vec<String> = missing.iter().map(|path| format!("`{}`", path.display())).collect();
        let mounts: Vec<String> = missing.iter().map(|path| format!("{{path: {}}}", path.display())).collect();
        Some(format!(
            "these paths exist on this machine, but not in the sandbox: {}; to add them, write `sandbox: {{mount: [{}]}}` in the manifest, or mount folders above them",
            shown.join(", "),
            mounts.join(", ")
        ))
    }

    /// Returns true if a command can read a file of this machine that is in none of the trial's own folders. Only bubblewrap is
    /// known to hide it.
    pub fn shows(&self, launch: &Launch, file: &std::path::Path) -> bool {
        let Sandbox::Bwrap { mounts, .. } = &self.sandbox else { return true };
        let is_below = |folder: &PathBuf| {
            file.starts_with(folder) || folder.canonicalize().is_ok_and(|folder| file.starts_with(folder))
        };
        let mut mounted = launch.seen.iter().chain(mounts.iter().map(|mount| &mount.path));
        bwrap::is_of_the_system(file) || mounted.any(is_below) || is_below(&self.places.home)
    }

    /// Enables the network: for commands of the case's author that run before the agent.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        if let Sandbox::Bwrap { network, .. } = &mut self.sandbox {
            *network = Network::All;
        }
        self
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Body {
    kind: Option<Kind>,
    network: Option<Network>,
    #[serde(default)]
    mount: Vec<Mount>,
    #[serde(default)]
    command: Vec<String>,
}

impl<'de> Forms<'de> for Settings {
    const EXPECTED: &'static str = "`none`, `bwrap`, `command`, or a map such as `{kind: bwrap, network: none}`";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        let kind = Kind::deserialize(word.into_deserializer())?;
        Ok(Settings { kind: Some(kind), ..Settings::default() })
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let Body { kind, network, mount, command } = Body::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Settings { kind, network, mount, command })
    }
}

deserialize_forms!(Settings, deserialize_any);

#[cfg(test)]
impl JsonSchema for Settings {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sandbox".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, body) = (generator.subschema_for::<Kind>(), generator.subschema_for::<Body>());
        json_schema!({"description": "the sandbox: a word, or a map", "anyOf": [word, body]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        crate::yaml::parse(std::path::Path::new("a.yaml"), text).unwrap()
    }

    #[test]
    fn the_command_line_counts_before_the_case_and_the_case_before_the_manifest() {
        let case = settings("bwrap");
        let manifest = settings("{kind: command, command: [docker], network: none, mount: [{path: /usr}]}");
        assert_eq!(kind(None, None, None), Kind::None);
        assert_eq!(kind(None, None, Some(&manifest)), Kind::Command);
        assert_eq!(kind(None, Some(&case), Some(&manifest)), Kind::Bwrap);
        assert_eq!(kind(Some(Kind::None), Some(&case), Some(&manifest)), Kind::None);
        let usr = Mount { path: "/usr".into(), write: false };
        assert_eq!(
            Sandbox::decide(None, Some(&case), Some(&manifest)),
            Ok(Sandbox::Bwrap { network: Network::None, mounts: vec![usr] })
        );
        let bare = Sandbox::decide(Some(Kind::Bwrap), None, None);
        assert_eq!(bare, Ok(Sandbox::Bwrap { network: Network::All, mounts: Vec::new() }));
    }

    #[test]
    fn what_a_sandbox_needs_and_nobody_names_is_an_error() {
        assert_eq!(Sandbox::decide(Some(Kind::Command), None, None), Err(SandboxError::NoCommand));
        let missing = settings("{kind: bwrap, mount: [{path: /does/not/exist}]}");
        let error = Sandbox::decide(None, Some(&missing), None);
        assert_eq!(error, Err(SandboxError::NoMount("/does/not/exist".into())));
    }

    #[test]
    fn words_and_keys_that_are_not_known_are_refused() {
        for (text, wanted) in [
            ("bwarp", "`bwarp` is not known"),
            ("{kind: bwrap, netwrk: all}", "unknown key `netwrk`"),
            ("{mount: [{pth: x}]}", "unknown key `pth`"),
            ("3", "`none`, `bwrap`, `command`, or a map"),
        ] {
            let error = crate::yaml::parse::<Settings>(std::path::Path::new("a.yaml"), text).unwrap_err();
            assert!(error.message().contains(wanted), "{text}: {}", error.message());
        }
    }
}

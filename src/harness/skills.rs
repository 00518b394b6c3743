//! The folders and files from which an agent reads skills and instructions, and the calls by which it uses a skill.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Manifest;
use crate::trace::Header;
use crate::values::NameGlob;
use crate::yaml::lists::{filled, filled_map, not_null};

mod sign;

pub use sign::{OfSkill, Sign, Signs};

/// The folders from which an agent reads skills, and the calls by which it uses one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Skills {
    /// The folder of the skills of a project, relative to the workspace. Each skill is a folder in it.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The folder of the user's skills, relative to the home.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub user: Option<PathBuf>,
    /// The calls by which the agent uses a skill, with the placeholder `{skill}` for the skill's name. One of them is
    /// enough.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<Sign>,
    /// The line in which the agent lists the skills that it loaded. Claude Code's own protocols need none.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listing>,
    /// The names of the agent's built-in skills. Globs are allowed.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub built_in: Vec<NameGlob>,
}

/// The line in which an agent lists what it loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listing {
    /// The keys of the line with their texts, such as `{type: session.skills_loaded}`.
    #[serde(deserialize_with = "filled_map")]
    pub when: BTreeMap<String, String>,
    /// The keys that lead to the list, joined by dots, such as `data.skills`. An entry is a name, or a map with `name`.
    pub at: String,
}

impl Listing {
    /// Returns the names in a line, if it is the line that lists them.
    pub fn names(&self, line: &Value) -> Option<Vec<String>> {
        names_in(self.list(line)?)
    }

    /// Returns the MCP servers in a line, if it is the line that lists them.
    pub fn servers(&self, line: &Value) -> Option<Vec<Server>> {
        servers_in(self.list(line)?)
    }

    fn list<'a>(&self, line: &'a Value) -> Option<&'a Value> {
        let is_it = |(key, text): (&String, &String)| line.get(key).and_then(Value::as_str) == Some(text);
        let is_the_line = self.when.iter().all(is_it);
        is_the_line.then(|| self.at.split('.').try_fold(line, |value, key| value.get(key))).flatten()
    }
}

/// An MCP server that an agent lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    /// False if the agent reports that it cannot use the server.
    pub works: bool,
}

/// A plugin that an agent lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    pub name: String,
    /// The folder.
    pub path: String,
}

/// Returns the MCP servers in a list: names, or maps with `name` and `status`. Returns `None` if an entry is neither.
pub fn servers_in(list: &Value) -> Option<Vec<Server>> {
    /// The words for a server that the agent cannot use, as Claude Code and Copilot CLI write them.
    const BROKEN: [&str; 5] = ["failed", "error", "needs-auth", "disabled", "not_configured"];
    let names = names_in(list)?;
    let status = |at: usize| list.get(at)?.get("status")?.as_str();
    let of = |(at, name)| Server { name, works: !status(at).is_some_and(|status| BROKEN.contains(&status)) };
    Some(names.into_iter().enumerate().map(of).collect())
}

/// Returns the names in a list: texts, or maps with `name`. Returns `None` if an entry is neither, because an
/// unreadable list does not show that a name is absent.
pub fn names_in(list: &Value) -> Option<Vec<String>> {
    let name = |entry: &Value| entry.as_str().or_else(|| entry.get("name")?.as_str()).map(str::to_owned);
    list.as_array()?.iter().map(name).collect()
}

/// The files from which an agent reads its instructions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Instructions {
    /// The instruction file of a project, relative to the workspace.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The user's instruction file, relative to the home.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub user: Option<PathBuf>,
}

/// An error in `skills` or `instructions`: the keys that lead to it, the error, and how to fix it.
pub(super) struct Misplaced {
    pub keys: [&'static str; 2],
    /// The error.
    pub message: String,
    /// The suggested fix.
    pub help: &'static str,
}

impl Manifest {
    /// Returns the places of `skills` and `instructions` that are not within the workspace or the home.
    pub(super) fn misplaced(&self) -> Vec<Misplaced> {
        let skills = self.skills.iter().flat_map(|it| [("project", &it.project), ("user", &it.user)]);
        let files = self.instructions.iter().flat_map(|it| [("project", &it.project), ("user", &it.user)]);
        let all = skills.map(|it| ("skills", it)).chain(files.map(|it| ("instructions", it)));
        let wrong = all.filter_map(|(of, (key, path))| {
            let path = path.as_ref().filter(|path| !is_below(path))?;
            let (place, help) = match key {
                "user" => ("home", "write a path relative to the home, without `..`"),
                _ => ("workspace", "write a path relative to the workspace, without `..`"),
            };
            let message = format!("`{}` does not lie in the {place}", path.display());
            Some(Misplaced { keys: [of, key], message, help })
        });
        wrong.collect()
    }
}

/// Returns true if a path names something below its folder.
fn is_below(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Returns the signs by which the agent of a session uses skills. They are in the manifest that the agent was run with,
/// or else in the built-in manifest of its harness, because a manifest of an older version states nothing about skills.
///
/// # Errors
/// Returns the reason if there are no signs.
pub fn signs(header: &Header, manifest: Option<&Manifest>) -> Result<Signs, String> {
    let of = |manifest: &Manifest| manifest.skills.as_ref().map(|it| it.used_by.clone()).filter(|it| !it.is_empty());
    // A name decides alone: the agent introduces itself only after the first graders have begun.
    let is_it = |manifest: &&Manifest| header.harness.as_ref().is_none_or(|name| *name == manifest.name);
    let built_in = || super::reading::of_session(header).filter(is_it).find_map(of);
    if let Some(signs) = manifest.and_then(of).or_else(built_in) {
        return Ok(Signs::new(signs));
    }
    Err(match manifest.map(|manifest| manifest.name.as_str()).or(header.harness.as_deref()) {
        Some(name) => format!(
            "it is unknown which calls of the harness `{name}` use a skill: its manifest has no `skills.used-by`, or \
             cannot be found"
        ),
        None => "the trace names no harness, so it is unknown which of its calls use a skill".to_owned(),
    })
}

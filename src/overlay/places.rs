//! Decides the paths at which a harness's agent expects skills, instruction files and other additions. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{ExtraFiles, Instructions, Overlay, OverlayPlace};
use crate::harness::{Home, HomeName, Manifest};

/// A file or folder to add to a trial, with its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// The folder from which the path is resolved: the home or the workspace.
    pub place: OverlayPlace,
    pub path: PathBuf,
    /// The content to place at the path.
    pub what: Laid<'a>,
}

/// The content to place at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Laid<'a> {
    /// The folder of a skill.
    Skill {
        /// The skill's name.
        name: &'a str,
        /// The skill's folder.
        folder: &'a Path,
    },
    /// The instruction file.
    Instructions(&'a Instructions),
    /// Further files.
    Files(&'a ExtraFiles),
}

/// Returns everything that is added to a trial of a harness.
///
/// # Errors
/// Returns the reason why the harness cannot take an item, as a clause that follows "the case …, and".
pub fn items<'a>(overlay: &'a Overlay, manifest: &Manifest) -> Result<Vec<Item<'a>>, String> {
    let mut items = Vec::new();
    let (mut project, mut user) = (None, None);
    if let Some(skills) = &manifest.skills {
        (project, user) = (skills.project.as_deref(), skills.user.as_deref());
    }
    for skill in &overlay.skills {
        let asked = PlaceRequest { key: "skills", what: "skills", place: skill.place, project, user };
        let (place, folder) = asked.decide(manifest)?;
        let what = Laid::Skill { name: &skill.name, folder: &skill.folder };
        items.push(Item { place, path: folder.join(&skill.name), what });
    }
    if let Some(instructions) = &overlay.instructions {
        let of = manifest.instructions.as_ref();
        let (project, user) = (of.and_then(|it| it.project.as_deref()), of.and_then(|it| it.user.as_deref()));
        let place = instructions.place;
        let asked = PlaceRequest { key: "instructions", what: "an instruction file", place, project, user };
        let (place, path) = asked.decide(manifest)?;
        items.push(Item { place, path: path.to_owned(), what: Laid::Instructions(instructions) });
    }
    // Laid first: a skill or an instruction file may then be found to be there twice.
    let files = overlay.files.as_ref();
    items.splice(
        0..0,
        files.map(|it| Item { place: OverlayPlace::Project, path: PathBuf::new(), what: Laid::Files(it) }),
    );
    Ok(items)
}

/// Variables by which an agent reads another folder than this one of its home.
const FOLDERS: [(&str, &str); 6] = [
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CODEX_HOME", ".codex"),
    ("COPILOT_HOME", ".copilot"),
    ("GEMINI_CLI_HOME", ".gemini"),
    ("PI_CODING_AGENT_DIR", ".pi/agent"),
    ("XDG_CONFIG_HOME", ".config"),
];

/// Returns why an agent would not find what is laid into its home, as a clause that follows "the case": a variable of the case or
/// the manifest names another folder. `env` has the variables of the case, in which no placeholders are replaced.
pub fn not_found(overlay: &Overlay, manifest: &Manifest, env: &BTreeMap<String, String>) -> Option<String> {
    in_home(overlay, manifest).into_iter().find_map(|(path, name, folder)| {
        let same = if name == "GEMINI_CLI_HOME" { "{home}".to_owned() } else { format!("{{home}}/{folder}") };
        let set_in = match (env.get(name), manifest.env.set.get(name)) {
            (Some(_), _) => "`env` of the case or the variant".to_owned(),
            (None, Some(value)) if value.trim_end_matches('/') != same => {
                format!("`env.set` of harness `{}`", manifest.name)
            }
            (None, _) => return None,
        };
        Some(elsewhere(&path, name, &format!("is set in {set_in}")))
    })
}

/// Returns why an agent would not find what is laid into its home, as a clause that follows "the case": one of these variables,
/// which the agent gets from the user, names another folder. Variables of the case and the manifest are not among them.
pub fn not_found_by_user(overlay: &Overlay, manifest: &Manifest, of_user: &BTreeSet<String>) -> Option<String> {
    let mut laid = in_home(overlay, manifest).into_iter();
    let (path, name, _) = laid.find(|(_, name, _)| of_user.contains(*name))?;
    Some(elsewhere(&path, name, "is passed on from the environment of `evals`"))
}

/// Returns the names of the variables by which an agent reads another folder of its home.
pub fn folder_variables() -> impl Iterator<Item = &'static str> {
    FOLDERS.into_iter().map(|(name, _)| name)
}

fn elsewhere(path: &Path, name: &str, origin: &str) -> String {
    let path = path.display();
    format!(
        "lays `{path}` into the agent's home, and the variable `{name}` makes the agent look elsewhere: it {origin}"
    )
}

/// Returns what is laid into the home, each with a variable that moves its folder, and with the folder.
fn in_home(overlay: &Overlay, manifest: &Manifest) -> Vec<(PathBuf, &'static str, &'static str)> {
    let items = items(overlay, manifest).unwrap_or_default();
    let of_home = items.iter().filter(|item| item.place == OverlayPlace::User);
    let of_item = |item: &Item<'_>| {
        let path = item.path.clone();
        let above = FOLDERS.into_iter().filter(|(_, folder)| item.path.starts_with(folder));
        above.map(move |(name, folder)| (path.clone(), name, folder)).collect::<Vec<_>>()
    };
    of_home.flat_map(of_item).collect()
}

/// A request for one of the two places of a harness.
struct PlaceRequest<'a> {
    key: &'static str,
    what: &'static str,
    place: Option<OverlayPlace>,
    project: Option<&'a Path>,
    user: Option<&'a Path>,
}

impl<'a> PlaceRequest<'a> {
    /// Returns the place and its path in the manifest. Default: the user's, or the project's if the manifest has no other.
    fn decide(&self, manifest: &Manifest) -> Result<(OverlayPlace, &'a Path), String> {
        let Self { key, what, place, project, user } = *self;
        let name = &manifest.name;
        let default = if user.is_none() && project.is_some() { OverlayPlace::Project } else { OverlayPlace::User };
        let place = place.unwrap_or(default);
        if place == OverlayPlace::User && manifest.home == Home::Named(HomeName::User) {
            return Err(format!(
                "gives the agent {what}, and harness `{name}` runs in the user's own home, where nothing is laid; write \
                 `in: project`"
            ));
        }
        let (path, word) = match place {
            OverlayPlace::User => (user, "user"),
            OverlayPlace::Project => (project, "project"),
        };
        path.map(|path| (place, path)).ok_or_else(|| {
            format!("gives the agent {what}, and the manifest of harness `{name}` has no `{key}.{word}` to lay it in")
        })
    }
}

//! Decides the paths at which a harness's agent expects skills, instruction files and other additions. Pure.

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

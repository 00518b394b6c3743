//! Finds the links of an agent that would lead to hidden files, so that they keep what they led to before.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::workspace::MAX_READ_FILE_BYTES;
use crate::workspace::link_targets::LinkTargets;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, is_incomplete, walk};

/// The maximum number of files that are looked at behind a link that leads out of a workspace. If there are more, it is unknown
/// whether a link among them leads to a hidden file.
const MAX_FILES_BEHIND_LINK: usize = 100_000;

/// The links that an agent made or changed.
pub(super) struct Links {
    /// The workspace, without links in its path.
    root: PathBuf,
    /// The paths of the links, relative to the workspace. Those of links beside it begin with `..`.
    paths: Vec<PathBuf>,
    /// The maximum number of files that are looked at behind a link.
    most_behind_link: usize,
}

/// The places that hidden files take in a workspace.
pub(super) struct Places<'a> {
    /// The paths of hidden files in folders that also hold visible files.
    pub(super) files: &'a BTreeSet<PathBuf>,
    /// The folders that hold only hidden files.
    pub(super) folders: &'a [PathBuf],
}

impl Places<'_> {
    fn hold(&self, path: &Path) -> bool {
        self.files.contains(path) || self.folders.iter().any(|folder| path.starts_with(folder))
    }
}

/// The devices and inodes of hidden files and of folders of hidden files: some file systems find a file by its name in any case.
struct Identities {
    files: BTreeSet<(u64, u64)>,
    folders: BTreeSet<(u64, u64)>,
}

impl Identities {
    /// Looks at hidden files that were laid over a workspace.
    fn of(root: &Path, places: &Places<'_>) -> Self {
        let found = |path: &PathBuf| root.join(path).symlink_metadata().ok().filter(|meta| !meta.is_symlink());
        let files = places.files.iter().filter_map(found).map(|meta| identity(&meta)).collect();
        let folders = places.folders.iter().filter_map(found).map(|meta| identity(&meta)).collect();
        Self { files, folders }
    }

    /// Returns true if a path leads to a hidden file, or to a folder of hidden files or into one.
    fn hold(&self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let is_any = |path: &Path, known: &BTreeSet<(u64, u64)>| {
            path.symlink_metadata().is_ok_and(|meta| known.contains(&identity(&meta)))
        };
        let has_folders = !self.folders.is_empty();
        is_any(&real, &self.files) || (has_folders && real.ancestors().any(|above| is_any(above, &self.folders)))
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

impl Links {
    /// Returns the links in a workspace that were not there, or led elsewhere, before the agent ran, and `beside`, the links that
    /// it made or changed beside the workspace. The paths are relative to the workspace.
    pub(super) fn of(before: &Path, workspace: &Path, beside: &BTreeSet<PathBuf>) -> io::Result<Self> {
        let mut paths: Vec<PathBuf> = beside.iter().cloned().collect();
        walk(workspace, |path, meta| {
            let target = |root: &Path| fs::read_link(root.join(path)).ok();
            if meta.is_symlink() && target(before) != target(workspace) {
                paths.push(path.to_owned());
            }
            Descend::Enter
        })?;
        Ok(Self { root: workspace.canonicalize()?, paths, most_behind_link: MAX_FILES_BEHIND_LINK })
    }

    /// Replaces each link that may lead to a hidden file, and leads to a file of the workspace now, by a copy of this file. Returns
    /// the paths of the links.
    pub(super) fn keep_files(&self, places: &Places<'_>) -> io::Result<Vec<PathBuf>> {
        let mut kept = Vec::new();
        for (path, _) in self.targets(places).filter(|(_, targets)| self.may_lead_to(places, targets)) {
            let link = self.root.join(path);
            // A file elsewhere may be one that the agent could not read, such as the hidden file in the folder of the case.
            let is_own = |file: &PathBuf| file.starts_with(&self.root) && file.is_file();
            let Some(file) = link.canonicalize().ok().filter(is_own) else { continue };
            take_away(&link)?;
            if file.metadata()?.len() <= MAX_READ_FILE_BYTES {
                fs::copy(&file, &link)?;
            }
            kept.push(path.clone());
        }
        Ok(kept)
    }

    /// Removes each link that may lead to a hidden file, or to a folder of hidden files, and each link that may lead anywhere, also
    /// by a link in a folder outside the workspace. The hidden files are laid. Returns the paths of the links.
    pub(super) fn remove(&self, places: &Places<'_>) -> io::Result<Vec<PathBuf>> {
        if self.paths.is_empty() {
            return Ok(Vec::new());
        }
        let laid = Identities::of(&self.root, places);
        let leads = |targets: &LinkTargets| {
            targets.is_unknown
                || self.may_lead_to(places, targets)
                || targets.places.iter().any(|place| laid.hold(place))
        };
        let mut known = BTreeMap::new();
        let mut found: BTreeSet<&PathBuf> = BTreeSet::new();
        for (path, targets) in self.targets(places) {
            if leads(&targets) || self.leads_behind(&targets, &leads, &mut known) {
                found.insert(path);
            }
        }
        for path in &found {
            take_away(&self.root.join(path))?;
        }
        Ok(found.into_iter().cloned().collect())
    }

    /// Returns the links outside the places, each with its targets. A link at such a place is replaced by the hidden files.
    fn targets(&self, places: &Places<'_>) -> impl Iterator<Item = (&PathBuf, LinkTargets)> {
        let outside = self.paths.iter().filter(|path| !places.hold(path));
        let links = outside.map(|path| (path, self.root.join(path))).filter(|(_, link)| link.is_symlink());
        links.map(|(path, link)| (path, LinkTargets::of(&link)))
    }

    /// Returns true if a link leads out of the workspace, to a folder in which a link `leads` on, or to further folders with such a
    /// link, or if this is unknown, because there are too many files or a folder cannot be read. `known` are the folders that were
    /// searched to their end, with false, and those behind which such a link is, or may be, with true.
    fn leads_behind(
        &self,
        targets: &LinkTargets,
        leads: &impl Fn(&LinkTargets) -> bool,
        known: &mut BTreeMap<PathBuf, bool>,
    ) -> bool {
        let outside = |targets: &LinkTargets| -> Vec<PathBuf> {
            let real = targets.places.iter().filter_map(|place| place.canonicalize().ok());
            real.filter(|place| place.is_dir() && !place.starts_with(&self.root)).collect()
        };
        let (mut seen, mut looked_at, mut found) = (BTreeSet::new(), 0, false);
        let mut folders = outside(targets);
        let first = match &folders[..] {
            [folder] => Some(folder.clone()),
            _ => None,
        };
        while let Some(folder) = folders.pop() {
            if known.get(&folder) == Some(&true) {
                found = true;
                break;
            }
            // A walk through a folder has seen the folders in it, too.
            let is_seen = |above: &Path| seen.contains(above) || known.get(above) == Some(&false);
            if folder.ancestors().any(is_seen) {
                continue;
            }
            let walked = walk(&folder, |path, meta| {
                let place = folder.join(path);
                looked_at += 1;
                found |= looked_at > self.most_behind_link;
                if found || place == self.root {
                    return Descend::Skip;
                }
                if meta.is_symlink() {
                    let targets = LinkTargets::of(&place);
                    found |= leads(&targets);
                    folders.extend(outside(&targets));
                }
                Descend::Enter
            });
            if found || is_incomplete(&folder, &walked) {
                found = true;
                break;
            }
            seen.insert(folder);
        }
        let searched = if found { first.into_iter().collect() } else { seen };
        known.extend(searched.into_iter().map(|folder| (folder, found)));
        found
    }

    fn may_lead_to(&self, places: &Places<'_>, targets: &LinkTargets) -> bool {
        let is_hidden = |place: &PathBuf| place.strip_prefix(&self.root).is_ok_and(|place| places.hold(place));
        targets.places.iter().any(is_hidden)
    }
}

/// Removes a link, also from a folder from which the agent took the permission.
fn take_away(link: &Path) -> io::Result<()> {
    if let Some(folder) = link.parent()
        && let Ok(mode) = folder.metadata().map(|meta| meta.permissions().mode())
        && mode & 0o300 != 0o300
    {
        let _ = fs::set_permissions(folder, Permissions::from_mode(mode | 0o700));
    }
    remove(link)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_to_a_folder_that_is_not_searched_to_its_end_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let [before, workspace] = ["before", "workspace"].map(|name| root.path().join(name));
        for path in ["before", "workspace", "few/deep", "many", "next"] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        (0..9).for_each(|n| fs::write(root.path().join(format!("many/{n}")), "").unwrap());
        symlink("../many", root.path().join("next/link")).unwrap();
        symlink("deep", root.path().join("few/link")).unwrap();
        for (link, target) in [("a", "../few"), ("b", "../few/deep"), ("c", "../many"), ("d", "../next")] {
            symlink(target, workspace.join(link)).unwrap();
        }
        let mut links = Links::of(&before, &workspace, &BTreeSet::new()).unwrap();
        let files = BTreeSet::from(["check/expected.txt".into()]);
        let places = Places { files: &files, folders: &[] };
        links.most_behind_link = 5;
        assert_eq!(links.remove(&places).unwrap(), ["c", "d"].map(PathBuf::from));
        assert!(["a", "b"].iter().all(|link| workspace.join(link).is_symlink()));
        assert_eq!(fs::read_dir(root.path().join("many")).unwrap().count(), 9);
    }
}

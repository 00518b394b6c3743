//! Finds the links of an agent that would lead to hidden files, so that they keep what they led to before.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::workspace::LARGEST_FILE;
use crate::workspace::proc_links::leads_through_proc;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};

/// The links that an agent made or changed.
pub(super) struct Links {
    /// The workspace, without links in its path.
    root: PathBuf,
    /// The paths of the links, relative to the workspace.
    paths: Vec<PathBuf>,
}

/// The places that hidden files take in a workspace.
pub(super) struct Places<'a> {
    /// The paths of files in folders that others use, too.
    pub(super) files: &'a BTreeSet<PathBuf>,
    /// The folders that only hidden files use.
    pub(super) folders: &'a [PathBuf],
}

impl Places<'_> {
    fn hold(&self, path: &Path) -> bool {
        self.files.contains(path) || self.folders.iter().any(|folder| path.starts_with(folder))
    }
}

impl Links {
    /// Returns the links in a workspace that were not there, or led elsewhere, before the agent ran.
    pub(super) fn of(before: &Path, workspace: &Path) -> io::Result<Self> {
        let mut paths = Vec::new();
        walk(workspace, |path, meta| {
            let target = |root: &Path| fs::read_link(root.join(path)).ok();
            if meta.is_symlink() && target(before) != target(workspace) {
                paths.push(path.to_owned());
            }
            Descend::Enter
        })?;
        Ok(Self { root: workspace.canonicalize()?, paths })
    }

    /// Replaces each link to a file that a hidden file will replace by a copy of the file. Returns the paths of the links.
    pub(super) fn keep_files(&self, places: &Places<'_>) -> io::Result<Vec<PathBuf>> {
        let mut kept = Vec::new();
        for (path, file) in self.leading_to(places).filter(|(_, file)| file.is_file()) {
            let link = self.root.join(path);
            remove(&link)?;
            if file.metadata()?.len() <= LARGEST_FILE {
                fs::copy(&file, &link)?;
            }
            kept.push(path.clone());
        }
        Ok(kept)
    }

    /// Removes each link that leads to a hidden file now, or to a folder of hidden files, and each link through `/proc`, which may
    /// lead there in another process. Returns the paths of the links.
    pub(super) fn remove(&self, places: &Places<'_>) -> io::Result<Vec<PathBuf>> {
        let is_unknown = |path: &&PathBuf| {
            let link = self.root.join(path);
            !places.hold(path) && link.is_symlink() && leads_through_proc(&link)
        };
        let unknown = self.paths.iter().filter(is_unknown);
        let found: BTreeSet<&PathBuf> = self.leading_to(places).map(|(path, _)| path).chain(unknown).collect();
        for path in &found {
            remove(&self.root.join(path))?;
        }
        Ok(found.into_iter().cloned().collect())
    }

    /// Returns the links that lead to one of the places, each with the file or folder to which it leads. A link at such a
    /// place is replaced by the hidden files.
    fn leading_to(&self, places: &Places<'_>) -> impl Iterator<Item = (&PathBuf, PathBuf)> {
        self.paths.iter().filter(|path| !places.hold(path)).filter_map(|path| {
            let link = self.root.join(path);
            let leads_to =
                link.symlink_metadata().ok().filter(fs::Metadata::is_symlink).and(link.canonicalize().ok())?;
            leads_to.strip_prefix(&self.root).is_ok_and(|place| places.hold(place)).then_some((path, leads_to))
        })
    }
}

//! The evals that lie in a skill, in whatever form and folder: an agent that has the skill must not find the expected results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{agentskills, claude_plugin, copied};
use crate::{paths, skill};

/// The maximum number of paths in a message.
const MAX_NAMED_PATHS: usize = 5;

/// Returns the files and folders with evals in a skill, whether or not they are converted: those that a manifest above names,
/// each case folder of `claude plugin eval`, and each JSON file of Agent Skills. What cannot be read has none.
pub fn below(folder: &Path) -> BTreeSet<PathBuf> {
    let real = paths::real(folder);
    let written = paths::absolute(Path::new(""), folder);
    let above = written.ancestors().chain(real.ancestors());
    let mut found: Vec<PathBuf> = above.filter_map(claude_plugin::evals_of_manifest).collect();
    // The copy of the skill is made of the same files, and links lead to them.
    let is_left_out = |to: &Path| to.starts_with(".git") || real.join(to).is_symlink();
    let files = copied::all_but(&real, Path::new(""), &is_left_out).unwrap_or_default();
    let folders: BTreeSet<&Path> = files.iter().flat_map(|file| file.to.ancestors().skip(1)).collect();
    for folder in folders.into_iter().map(|below| real.join(below)) {
        let evals = folder.join(copied::EVALS);
        if evals.is_symlink() && folder.join(skill::FILE).is_file() {
            found.push(evals);
        }
        if claude_plugin::is_graded(&folder) {
            found.extend(claude_plugin::evals_of(&folder));
        }
    }
    found.extend(files.into_iter().map(|file| file.from).filter(|file| agentskills::holds_evals(file)));
    let found = found.into_iter().filter(|path| path.exists()).map(|path| paths::real(&path));
    found.filter(|path| path.starts_with(&real) && *path != real).collect()
}

/// Returns a part of a message with the paths of evals that are not in the skill's folder `evals`. Empty if there are none.
pub fn named_elsewhere(folder: &Path) -> String {
    let real = paths::real(folder);
    let (found, own) = (below(folder), real.join(copied::EVALS));
    let is_within = |path: &Path| path.starts_with(&own) || path.ancestors().skip(1).any(|above| found.contains(above));
    let others = found.iter().filter(|path| !is_within(path)).filter_map(|path| path.strip_prefix(&real).ok());
    let names: Vec<String> = others.map(|path| format!("`{}`", path.display())).collect();
    match names.get(MAX_NAMED_PATHS..).map_or(0, <[String]>::len) {
        _ if names.is_empty() => String::new(),
        0 => format!(" (also {})", names.join(", ")),
        more => format!(" (also {}, and {more} more)", names.get(..MAX_NAMED_PATHS).unwrap_or_default().join(", ")),
    }
}

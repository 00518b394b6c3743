//! Paths as cases write them: made absolute, and shown as a person would write them.

use std::path::{Component, Path, PathBuf};

use crate::trace::view;

/// A path counted from a folder, without `.` and `..`.
pub fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let joined = folder.join(path);
    view::normalise(&std::path::absolute(&joined).unwrap_or(joined))
}

/// A path as messages show it: relative to the working folder where it lies in it.
pub fn shown(path: &Path) -> PathBuf {
    let inside = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    match inside {
        Some(inside) if !inside.as_os_str().is_empty() => inside,
        _ => path.to_path_buf(),
    }
}

/// Why a path does not stay within the folder it is meant for.
pub fn leaves(path: &Path) -> Option<&'static str> {
    if path.as_os_str().is_empty() {
        return Some("is empty");
    }
    let mut depth = 0_usize;
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => return Some("is absolute"),
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return Some("leads out of its folder"),
            },
        }
    }
    (depth == 0).then_some("names no file")
}

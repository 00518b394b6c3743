//! Paths in cases: made absolute, and formatted for messages.

use std::path::{Component, Path, PathBuf};

use crate::trace::view;

/// The maximum number of links that are followed for one path. Linux gives up at the same number (`ELOOP`).
pub const MAX_LINKS: usize = 40;

/// Returns a path as an absolute path without `.` and `..`. A relative path is resolved from `folder`.
pub fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let joined = folder.join(path);
    view::normalise(&std::path::absolute(&joined).unwrap_or(joined))
}

/// Returns an absolute path in which the links of the part that exists are resolved.
pub fn real(path: &Path) -> PathBuf {
    let path = absolute(Path::new(""), path);
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    known.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))).unwrap_or_else(|| path.clone())
}

/// Returns a path for messages: relative to the working directory if it is inside it.
pub fn shown(path: &Path) -> PathBuf {
    let inside = std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_path_buf));
    match inside {
        Some(inside) if !inside.as_os_str().is_empty() => inside,
        _ => path.to_path_buf(),
    }
}

/// Returns why a path leaves its folder, if it does.
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

/// Refuses a path that [`leaves`] its folder.
///
/// # Errors
/// Returns the same reason.
pub fn inside(path: &Path) -> Result<(), &'static str> {
    leaves(path).map_or(Ok(()), Err)
}

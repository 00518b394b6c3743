//! Compares two files or links: their content, and the permissions of files.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::openat::open_file;

/// The size of the pieces in which files are compared, in bytes.
const PIECE: usize = 64 << 10;

/// Returns true if two paths are files with the same content, or links to the same target. Returns false for folders, and for what
/// cannot be read.
pub fn content(one: &Path, other: &Path) -> bool {
    let (Ok(of_one), Ok(of_other)) = (one.symlink_metadata(), other.symlink_metadata()) else { return false };
    is_same((one, &of_one), (other, &of_other))
}

/// Returns true if a path has the same [`content`] as the original and, if it is a file, at least its permissions.
pub fn with_permissions(original: &Path, path: &Path) -> bool {
    let (Ok(was), Ok(now)) = (original.symlink_metadata(), path.symlink_metadata()) else { return false };
    let needed = if was.is_file() { was.permissions().mode() & 0o777 } else { 0 };
    now.permissions().mode() & needed == needed && is_same((original, &was), (path, &now))
}

fn is_same((one, of_one): (&Path, &Metadata), (other, of_other): (&Path, &Metadata)) -> bool {
    if of_one.is_symlink() && of_other.is_symlink() {
        return fs::read_link(one).is_ok_and(|target| fs::read_link(other).is_ok_and(|of_other| of_other == target));
    }
    let are_files = of_one.is_file() && of_other.is_file() && of_one.len() == of_other.len();
    are_files && have_same_content(one, other).unwrap_or(false)
}

/// Returns true if two regular files have the same content.
///
/// # Errors
/// Returns an error if one of them cannot be read.
pub fn have_same_content(old: &Path, new: &Path) -> io::Result<bool> {
    let (old, new) = (open_file(old)?, open_file(new)?);
    let len = old.metadata()?.len();
    Ok(len == new.metadata()?.len() && have_same_bytes(&old, &new, len, &mut Default::default())?)
}

/// Returns true if two files have the same content. Compares piece by piece. `len` is their length when they were listed.
///
/// # Errors
/// Returns an error if one of them cannot be read.
pub fn have_same_bytes(old: &File, new: &File, len: u64, (a, b): &mut (Vec<u8>, Vec<u8>)) -> io::Result<bool> {
    // One byte more shows the end of a file that did not grow.
    let piece = usize::try_from(len).map_or(PIECE, |len| len.saturating_add(1).min(PIECE));
    if a.len() < piece {
        (*a, *b) = (vec![0; piece], vec![0; piece]);
    }
    loop {
        let (read, other) = (fill(old, a)?, fill(new, b)?);
        if a[..read] != b[..other] {
            return Ok(false);
        }
        if read < a.len() {
            return Ok(true);
        }
    }
}

/// Reads until a piece is full or the file is at its end.
fn fill(mut file: &File, piece: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < piece.len() {
        match file.read(&mut piece[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_the_same_by_their_content_and_links_by_their_target() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        for (name, text) in [("a", "text"), ("b", "text"), ("other", "tex!"), ("longer", "text and more")] {
            fs::write(place(name), text).unwrap();
        }
        symlink("a", place("link")).unwrap();
        symlink("a", place("link-2")).unwrap();
        symlink("b", place("link-to-b")).unwrap();
        fs::create_dir(place("folder")).unwrap();
        for (one, other, expected) in [
            ("a", "b", true),
            ("a", "other", false),
            ("a", "longer", false),
            ("a", "none", false),
            ("link", "link-2", true),
            ("link", "link-to-b", false),
            ("link", "a", false),
            ("a", "link", false),
            ("folder", "folder", false),
        ] {
            assert_eq!(content(&place(one), &place(other)), expected, "{one} {other}");
            assert_eq!(with_permissions(&place(one), &place(other)), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_file_with_fewer_permissions_is_the_same_only_by_its_content() {
        let root = tempfile::tempdir().unwrap();
        let [original, path] = ["original", "path"].map(|name| root.path().join(name));
        for (needed, now, expected) in [(0o644, 0o755, true), (0o755, 0o644, false)] {
            for (path, mode) in [(&original, needed), (&path, now)] {
                fs::write(path, "text").unwrap();
                fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            }
            assert!(content(&original, &path));
            assert_eq!(with_permissions(&original, &path), expected);
        }
    }
}

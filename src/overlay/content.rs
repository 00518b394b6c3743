//! Computes digests of the files that are added to a trial, so that two arms can be compared.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::places::{Item, Laid, items};
use super::{ExtraFiles, Overlay, OverlayPlace, digest};
use crate::harness::Manifest;
use crate::trace::view;
use crate::workspace::walk::{Descend, walk};

/// Returns every added path with a digest of its content, sorted. For a harness that does not support one of the
/// additions, the list is empty.
///
/// # Errors
/// Returns an error if something cannot be read.
pub fn content(overlay: &Overlay, manifest: &Manifest) -> io::Result<Vec<(OverlayPlace, PathBuf, String)>> {
    let mut found = Vec::new();
    for Item { place, path, what } in items(overlay, manifest).unwrap_or_default() {
        match what {
            Laid::Skill { folder, .. } => found.push((place, path, digest(folder)?)),
            Laid::Instructions(instructions) => {
                let text = match &instructions.file {
                    Some(file) => digest(file)?,
                    None => hash(instructions.text.as_deref().unwrap_or_default().as_bytes()),
                };
                found.push((place, path, format!("{:?} {text}", instructions.mode)));
            }
            Laid::Files(ExtraFiles::Texts(texts)) => {
                let of =
                    |(path, text): (&String, &String)| (place, view::normalise(Path::new(path)), hash(text.as_bytes()));
                found.extend(texts.iter().map(of));
            }
            Laid::Files(ExtraFiles::Folder(folder)) => {
                let mut paths = Vec::new();
                let unread = walk(folder, |path, meta| {
                    if !meta.is_dir() {
                        paths.push((path.to_owned(), meta.is_symlink(), meta.permissions().mode()));
                    }
                    Descend::Enter
                })?;
                if let Some((path, why)) = unread.first() {
                    return Err(io::Error::other(format!("{} cannot be read: {why}", folder.join(path).display())));
                }
                for (path, is_link, mode) in paths {
                    let from = folder.join(&path);
                    let text = match () {
                        () if is_link => format!("link to {}", fs::read_link(&from)?.display()),
                        // As in the digest of a folder, only the owner's execute bit counts.
                        () if mode & 0o100 != 0 => format!("executable {}", digest(&from)?),
                        () => digest(&from)?,
                    };
                    found.push((place, path, text));
                }
            }
        }
    }
    found.sort();
    Ok(found)
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

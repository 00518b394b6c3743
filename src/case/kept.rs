//! All that a case keeps from its agent, by path and content: its own file, its reference solution, its hidden files, and the
//! programs of its graders.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use memchr::memmem::Finder;

use super::{Case, check};
use crate::regular;
use crate::workspace::walk::{Descend, walk};

/// The size of the smallest content that is found by itself, in bytes without surrounding white space: many files have a smaller
/// one, such as a number, without being copies.
const MIN_ALONE_BYTES: usize = 16;

/// The size of the smallest content that is found within a longer text.
const MIN_IN_TEXT_BYTES: usize = 64;

/// The size of the largest file whose content is searched in texts.
const MAX_SEARCHED_BYTES: u64 = 64 << 10;

/// The files that a case keeps from its agent. A file is read once, when a file of its size is compared with it.
#[derive(Debug, Default)]
pub struct Kept {
    files: Vec<KeptFile>,
    /// Positions in `files`, by size in bytes.
    of_size: HashMap<u64, Vec<usize>>,
    has_answers: bool,
}

#[derive(Debug)]
struct KeptFile {
    path: PathBuf,
    len: u64,
    kind: KeptKind,
    content: OnceLock<Option<Content>>,
}

#[derive(Debug, Clone)]
enum KeptKind {
    /// The case's own file, a script of the demo agent, or a solution that is one file.
    Own,
    /// A file of the hidden folder, or of a solution that is a folder.
    InFolder {
        /// The name of the folder.
        folder: OsString,
        /// The path in the folder.
        below: PathBuf,
    },
    /// A file that a grader runs.
    OfGrader,
}

#[derive(Debug)]
struct Content {
    digest: blake3::Hash,
    /// The content without surrounding white space, if the file is small.
    trimmed: Option<Vec<u8>>,
}

/// A kept file that a file or a text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// The evidence.
    pub by: ShownBy<'a>,
    /// The size of the kept file, in bytes.
    pub len: u64,
    /// The digest of the kept file.
    pub digest: blake3::Hash,
}

/// The evidence that a file is a copy of a kept file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy<'a> {
    /// It has the content of the case's own file, of a script beside it, or of its solution.
    Own,
    /// It has the content of a file in a kept folder, and is at this path below a folder of the same name.
    Place(&'a Path),
    /// It has the content of a file in a kept folder, or of a file that a grader runs.
    Content,
}

impl Kept {
    /// Lists the files that a case keeps from its agent, without reading them.
    pub fn of(case: &Case) -> Self {
        let mut kept = Self { has_answers: case.hidden.is_some() || case.oracle.is_some(), ..Self::default() };
        for path in case.kept_from_agent() {
            let Ok(meta) = fs::metadata(path) else { continue };
            if meta.is_file() {
                kept.add(path.to_owned(), meta.len(), KeptKind::Own);
                continue;
            }
            let Some(folder) = path.file_name().map(OsString::from) else { continue };
            // What cannot be read is no file that could be compared.
            let _ = walk(path, |below, meta| {
                if meta.is_file() {
                    let kind = KeptKind::InFolder { folder: folder.clone(), below: below.to_owned() };
                    kept.add(path.join(below), meta.len(), kind);
                }
                Descend::Enter
            });
        }
        // An agent may have to copy a file that graders only read.
        let that_run = case.graders.iter().map(Arc::as_ref).filter(|grader| grader.kind.spec().runs_named_files());
        for path in check::files_of_graders(that_run) {
            if let Some(meta) = fs::metadata(path).ok().filter(fs::Metadata::is_file) {
                kept.has_answers = true;
                kept.add(path.to_owned(), meta.len(), KeptKind::OfGrader);
            }
        }
        kept
    }

    fn add(&mut self, path: PathBuf, len: u64, kind: KeptKind) {
        if len > 0 {
            self.of_size.entry(len).or_default().push(self.files.len());
            self.files.push(KeptFile { path, len, kind, content: OnceLock::new() });
        }
    }

    /// Returns true if the case has hidden files, a solution or programs of graders, and not only its own file.
    pub fn has_answers(&self) -> bool {
        self.has_answers
    }

    /// Returns the kept files that a file at this path shows. With `alone`, the same content suffices; otherwise, a file of a kept
    /// folder must lie at its path below a folder of the same name. `digest` is called if a kept file has the size of the file.
    ///
    /// # Errors
    /// Returns the error of `digest`.
    pub fn shown_by(
        &self,
        path: &Path,
        len: u64,
        alone: bool,
        digest: impl FnOnce() -> io::Result<blake3::Hash>,
    ) -> io::Result<Vec<Shown<'_>>> {
        let of_size = self.of_size.get(&len).into_iter().flatten().filter_map(|number| self.files.get(*number));
        let possible: Vec<(&KeptFile, ShownBy<'_>)> =
            of_size.flat_map(|kept| kept.ways(path, alone).map(move |by| (kept, by))).collect();
        if possible.is_empty() {
            return Ok(Vec::new());
        }
        let digest = digest()?;
        let shown = possible.into_iter().filter(|(kept, by)| {
            let suffices = |it: &Content| *by != ShownBy::Content || !it.is_shorter(MIN_ALONE_BYTES);
            kept.content().is_some_and(|it| it.digest == digest && suffices(it))
        });
        Ok(shown.map(|(_, by)| Shown { by, len, digest }).collect())
    }

    /// Returns the kept files whose content a text has, wherever the text is laid: as the whole text, or as a part of it.
    pub fn shown_in_text(&self, text: &[u8]) -> Vec<Shown<'_>> {
        let whole = text.trim_ascii();
        // White space around the kept content does not count, so the kept file may be somewhat longer than the text.
        let longest = u64::try_from(text.len()).unwrap_or(u64::MAX).saturating_mul(2).min(MAX_SEARCHED_BYTES);
        let may_be_in = |kept: &&KeptFile| kept.len <= longest;
        let shown = self.files.iter().filter(may_be_in).filter_map(|kept| {
            let content = kept.content()?;
            let own = content.trimmed.as_deref()?;
            let is_whole = own == whole && own.len() >= MIN_ALONE_BYTES;
            let is_part = || own.len() >= MIN_IN_TEXT_BYTES && Finder::new(own).find(whole).is_some();
            let by = if matches!(kept.kind, KeptKind::Own) { ShownBy::Own } else { ShownBy::Content };
            (is_whole || is_part()).then_some(Shown { by, len: kept.len, digest: content.digest })
        });
        shown.collect()
    }
}

impl KeptFile {
    /// Returns the ways in which a file at this path shows the kept file, if it has the same content.
    fn ways(&self, path: &Path, alone: bool) -> impl Iterator<Item = ShownBy<'_>> {
        let named = match &self.kind {
            KeptKind::Own => Some(ShownBy::Own),
            KeptKind::InFolder { folder, below } => {
                path.ends_with(Path::new(folder).join(below)).then_some(ShownBy::Place(below))
            }
            KeptKind::OfGrader => None,
        };
        let by_content = (alone && !matches!(self.kind, KeptKind::Own)).then_some(ShownBy::Content);
        named.into_iter().chain(by_content)
    }

    /// Returns the content, or `None` if the file can no longer be read.
    fn content(&self) -> Option<&Content> {
        let read = || -> io::Result<Content> {
            if self.len > MAX_SEARCHED_BYTES {
                return Ok(Content { digest: regular::digest(regular::open(&self.path)?)?, trimmed: None });
            }
            let bytes = regular::read(&self.path)?;
            Ok(Content { digest: blake3::hash(&bytes), trimmed: Some(bytes.trim_ascii().to_vec()) })
        };
        self.content.get_or_init(|| read().ok()).as_ref()
    }
}

impl Content {
    fn is_shorter(&self, least: usize) -> bool {
        self.trimmed.as_ref().is_some_and(|trimmed| trimmed.len() < least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(files: &[(&str, KeptKind)]) -> (tempfile::TempDir, Kept) {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Kept::default();
        for (number, (text, kind)) in files.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::write(&path, text).unwrap();
            kept.add(path, text.len() as u64, kind.clone());
        }
        (folder, kept)
    }

    fn hidden(below: &str) -> KeptKind {
        KeptKind::InFolder { folder: "app.hidden".into(), below: below.into() }
    }

    #[test]
    fn a_small_content_shows_a_hidden_file_only_at_its_place() {
        let (_folder, kept) = kept(&[("4711\n", hidden("a/t.txt")), ("the expected answer\n", hidden("b.txt"))]);
        let shown = |path: &str, text: &str, alone: bool| {
            let digest = || Ok(blake3::hash(text.as_bytes()));
            let shown = kept.shown_by(Path::new(path), text.len() as u64, alone, digest).unwrap();
            shown.into_iter().map(|it| it.by).collect::<Vec<_>>()
        };
        assert!(shown("x/t.txt", "4711\n", true).is_empty());
        assert_eq!(shown("x/app.hidden/a/t.txt", "4711\n", false), [ShownBy::Place(Path::new("a/t.txt"))]);
        assert!(shown("x/app.hidden/a/t.txt", "4712\n", true).is_empty());
        assert_eq!(shown("notes.md", "the expected answer\n", true), [ShownBy::Content]);
        assert!(shown("notes.md", "the expected answer\n", false).is_empty());
    }

    #[test]
    fn a_file_without_the_size_of_a_kept_file_is_not_read() {
        let (_folder, kept) = kept(&[("the expected answer\n", hidden("b.txt"))]);
        let read = || Err(io::Error::other("read"));
        assert!(kept.shown_by(Path::new("b.txt"), 3, true, read).unwrap().is_empty());
        assert!(kept.shown_by(Path::new("b.txt"), 20, false, read).unwrap().is_empty());
        assert!(kept.shown_by(Path::new("b.txt"), 20, true, read).is_err());
    }

    #[test]
    fn a_text_shows_a_file_that_it_is_or_contains() {
        let long = "a line of the solution that no one else would write, and then the same line once more\n";
        let (_folder, kept) = kept(&[("the expected answer\n", hidden("b.txt")), (long, hidden("c.txt"))]);
        let shown = |text: &str| kept.shown_in_text(text.as_bytes()).len();
        assert_eq!(shown("the expected answer"), 1);
        assert_eq!(shown("Say the expected answer."), 0);
        assert_eq!(shown(&format!("# Rules\n\n{long}\nBe brief.\n")), 1);
        assert_eq!(shown(""), 0);
    }
}

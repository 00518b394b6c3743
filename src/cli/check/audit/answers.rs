//! Reads the texts of a case in which a prompt may have its answer from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::audit::answers::{Answer, Texts, candidates};
use crate::case::Case;
use crate::regular;
use crate::workspace::walk::{Descend, walk};

/// The maximum number of bytes of a file that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;
/// The maximum number of files that are read.
const MAX_FILES: usize = 20_000;

/// Returns the parts of the answer that the prompts of a case may contain. `patch` is that of the reference solution.
pub fn of(case: &Case, patch: &[u8]) -> Vec<Answer> {
    let mut hidden = Vec::new();
    if let Some(folder) = &case.hidden {
        // Only a text states what a test expects.
        texts_in(folder, |text| hidden.extend((!text.contains(char::REPLACEMENT_CHARACTER)).then_some(text)));
    }
    let sources: Vec<&str> = case.sources.iter().map(|source| source.text.as_str()).collect();
    let texts = Texts { patch: &String::from_utf8_lossy(patch), hidden: &hidden, case: &sources };
    let prompts: Vec<&str> = case.system_prompt.iter().chain(&case.turns).map(String::as_str).collect();
    candidates(&prompts.join("\n\n"), texts)
}

/// The texts of a list that a workspace contains. Absent unless the whole workspace was read.
#[derive(Debug, Clone, Default)]
pub struct TextsFound(Arc<Mutex<Option<BTreeSet<String>>>>);

impl TextsFound {
    /// Returns an act that changes nothing and looks for texts in the workspace.
    pub fn search(&self, texts: Vec<String>) -> impl FnOnce(&Path) -> std::io::Result<()> + Send + 'static {
        let known = self.0.clone();
        move |workspace: &Path| {
            let mut left = texts;
            let mut found = BTreeSet::new();
            let is_whole = left.is_empty()
                || texts_in(workspace, |text| {
                    let (here, rest) = left.drain(..).partition::<Vec<_>, _>(|it| text.contains(it.as_str()));
                    found.extend(here);
                    left = rest;
                });
            *known.lock().unwrap_or_else(PoisonError::into_inner) = is_whole.then_some(found);
            Ok(())
        }
    }

    /// Returns the texts that were found, or `None` if a part of the workspace was not read.
    pub fn texts(&self) -> Option<BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Calls `each` with the text of every file below a folder. Returns false if some of them were not read: larger ones than
/// [`MAX_FILE_BYTES`], those after the first [`MAX_FILES`], and those that the system does not open.
fn texts_in(folder: &Path, mut each: impl FnMut(String)) -> bool {
    let mut paths = Vec::new();
    let mut is_whole = true;
    let unread = walk(folder, |path, meta| {
        if path.file_name().is_some_and(|name| name == ".git") {
            return Descend::Skip;
        }
        if meta.is_file() {
            match meta.len() <= MAX_FILE_BYTES && paths.len() < MAX_FILES {
                true => paths.push(path.to_owned()),
                false => is_whole = false,
            }
        }
        Descend::Enter
    });
    is_whole &= unread.is_ok_and(|unread| unread.is_empty());
    for path in paths {
        match regular::read(folder.join(path)) {
            Ok(bytes) => each(String::from_utf8_lossy(&bytes).into_owned()),
            Err(_) => is_whole = false,
        }
    }
    is_whole
}

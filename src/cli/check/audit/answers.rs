//! Reads the texts of a case in which a prompt may have its answer from.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::audit::answers::{Answer, Texts, candidates};
use crate::case::Case;
use crate::regular;
use crate::workspace::walk::{Descend, walk};

/// The maximum number of bytes of a file that is read.
const LARGEST: u64 = 1 << 20;
/// The maximum number of files that are read.
const MOST: usize = 20_000;

/// Returns the parts of the answer that the prompts of a case may contain. `patch` is that of the reference solution.
pub fn of(case: &Case, patch: &[u8]) -> Vec<Answer> {
    let mut hidden = Vec::new();
    if let Some(folder) = &case.hidden {
        texts_in(folder, |text| hidden.push(text));
    }
    let sources: Vec<&str> = case.sources.iter().map(|source| source.text.as_str()).collect();
    let texts = Texts { patch: &String::from_utf8_lossy(patch), hidden: &hidden, case: &sources };
    let prompts: Vec<&str> = case.system_prompt.iter().chain(&case.turns).map(String::as_str).collect();
    candidates(&prompts.join("\n\n"), texts)
}

/// The texts of a list that a workspace contains.
#[derive(Debug, Clone, Default)]
pub struct TextsFound(Arc<Mutex<BTreeSet<String>>>);

impl TextsFound {
    /// Returns an act that changes nothing and looks for texts in the workspace.
    pub fn search(&self, texts: Vec<String>) -> impl FnOnce(&Path) -> std::io::Result<()> + Send + 'static {
        let known = self.0.clone();
        move |workspace: &Path| {
            let mut left = texts;
            let mut found = BTreeSet::new();
            if !left.is_empty() {
                texts_in(workspace, |text| {
                    let (here, rest) = left.drain(..).partition::<Vec<_>, _>(|it| text.contains(it.as_str()));
                    found.extend(here);
                    left = rest;
                });
            }
            known.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
            Ok(())
        }
    }

    /// Returns the texts that were found.
    pub fn texts(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Calls `each` with every text file below a folder, up to a number of files.
fn texts_in(folder: &Path, mut each: impl FnMut(String)) {
    let mut paths = Vec::new();
    let _ = walk(folder, |path, meta| {
        if path.file_name().is_some_and(|name| name == ".git") {
            return Descend::Skip;
        }
        if meta.is_file() && meta.len() <= LARGEST && paths.len() < MOST {
            paths.push(path.to_owned());
        }
        Descend::Enter
    });
    for path in paths {
        if let Ok(text) = regular::read_to_string(folder.join(path)) {
            each(text);
        }
    }
}

//! Finds the hooks of an agent: programs that may change its calls, so that the trace does not show what was done.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::harness::HookFile;
use crate::regular;

/// The size in bytes from which on a file is not read.
const LARGE: u64 = 16 << 20;

/// The maximum number of files and folders that are looked at for one glob.
const MOST: usize = 10_000;

/// Returns the files below these folders that have hooks of the agent, and those that may have had some: `changed` are paths of
/// calls that change files, relative to the workspace, which is the last folder.
pub(super) fn found(files: &[HookFile], folders: &[PathBuf], changed: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for hooks in files {
        for folder in folders {
            let named = named_in(folder, hooks).into_iter();
            found.extend(named.filter(|path| may_have_hooks(&folder.join(path), hooks)).map(shown));
        }
        let is_gone = |path: &&String| folders.last().is_some_and(|it| it.join(path).symlink_metadata().is_err());
        found.extend(changed.iter().filter(|path| hooks.file.is_match(path)).filter(is_gone).cloned());
    }
    found
}

fn shown(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns true if a file has hooks, or cannot be read.
fn may_have_hooks(path: &Path, hooks: &HookFile) -> bool {
    match text_of(path) {
        Ok(Some(text)) => hooks.has_hooks(&text),
        Ok(None) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns the text of a file; `None` if the file is too large.
fn text_of(path: &Path) -> io::Result<Option<String>> {
    if fs::metadata(path)?.len() > LARGE {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(&regular::read(path)?).into_owned()))
}

/// Returns the files below a folder that a glob names, relative to the folder. Only the folders that the glob names are read.
fn named_in(folder: &Path, hooks: &HookFile) -> Vec<PathBuf> {
    let glob = hooks.file.to_string();
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let plain: PathBuf = Path::new(&glob).components().take_while(is_plain).collect();
    let deepest = if glob.contains("**") { 16 } else { Path::new(&glob).components().count() };
    let (mut waiting, mut found, mut seen) = (vec![plain], Vec::new(), 0);
    while let Some(path) = waiting.pop() {
        let whole = folder.join(&path);
        if !whole.is_dir() {
            found.extend(Some(path).filter(|path| hooks.file.is_match_path(path)));
        } else if path.components().count() < deepest
            && seen < MOST
            && let Ok(entries) = fs::read_dir(&whole)
        {
            let entries: Vec<PathBuf> = entries.flatten().take(MOST).map(|it| path.join(it.file_name())).collect();
            seen += entries.len();
            waiting.extend(entries);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_hooks_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [
            (".agent/settings.json", r#"{"hooks": {"PreToolUse": []}}"#),
            (".agent/settings.local.json", r#"{"hooks": {}}"#),
            (".agent/deep/settings.json", r#"{"hooks": {"PreToolUse": []}}"#),
            (".plugins/a/b.ts", ""),
            (".plugins/a/b.md", ""),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let read = |text: &str| serde_yaml::from_str::<Vec<HookFile>>(text).unwrap();
        let files = read(
            "[{file: '.agent/settings*.json', regex: '\"hooks\": \\{\"'}, {file: '.plugins/**/*.ts'}, {file: .absent/x}]",
        );
        let of = |changed: &[&str]| {
            let changed: Vec<String> = changed.iter().map(|path| (*path).to_owned()).collect();
            found(&files, &[root.to_owned()], &changed).into_iter().collect::<Vec<String>>()
        };
        assert_eq!(of(&[]), [".agent/settings.json", ".plugins/a/b.ts"]);
        // The agent wrote a file that is gone.
        assert_eq!(of(&[".absent/x", "src/x"]), [".absent/x", ".agent/settings.json", ".plugins/a/b.ts"]);
        assert_eq!(of(&[".agent/settings.local.json"]).len(), 2);
    }
}

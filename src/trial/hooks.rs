//! Finds the hooks of an agent: programs that may change its calls, so that the trace does not show what was done.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::HookFile;
use crate::regular;
use crate::trace::{Body, Event, view};
use crate::values::{PathGlob, is_plain};

/// The size in bytes from which on a file is not read.
const LARGE: u64 = 16 << 20;

/// The maximum number of files and folders that are looked at for one glob.
const MAX_ENTRIES: usize = 10_000;

/// The depth to which a folder is searched whose depth no glob limits.
const MAX_GLOB_DEPTH: usize = 16;

/// Returns the files below these folders that have hooks of the agent, and those that may have had some: `changed` are paths of
/// calls that change files, relative to the workspace, which is the last folder.
pub(super) fn found(files: &[HookFile], folders: &[PathBuf], changed: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for hooks in files {
        for folder in folders {
            let FilesBelow { files, is_all } = named_in(folder, hooks);
            found.extend(files.into_iter().filter(|path| may_have_hooks(&folder.join(path), hooks)).map(shown));
            // A file that was not looked at may have hooks.
            found.extend((!is_all).then(|| hooks.file.to_string()));
        }
        let is_gone = |path: &&String| folders.last().is_some_and(|it| it.join(path).symlink_metadata().is_err());
        found.extend(changed.iter().filter(|path| hooks.file.is_match(path)).filter(is_gone).cloned());
    }
    found
}

/// Returns the files with hooks that an argument or an environment variable of the agent's command names, by itself or by a folder
/// that contains them. The last of the folders is the workspace.
pub(super) fn found_by_words(files: &[HookFile], folders: &[PathBuf], words: &[String]) -> BTreeSet<String> {
    let named: Vec<NamedHooks<'_>> = files.iter().map(NamedHooks::of).collect();
    let workspace = folders.last().map(PathBuf::as_path).unwrap_or(Path::new(""));
    let mut found = BTreeSet::new();
    for word in words {
        let flag_value = word.split_once('=').filter(|(flag, _)| flag.starts_with('-')).map(|(_, value)| value);
        let value = flag_value.unwrap_or(word);
        if files.iter().any(|hooks| hooks.regex.is_some() && hooks.has_hooks(value)) {
            found.insert("an argument of its command".to_owned());
        }
        let path = Path::new(value).strip_prefix(workspace).unwrap_or(Path::new(value));
        for folder in folders {
            let whole = folder.join(path);
            let is_around = folders.iter().any(|folder| folder.starts_with(&whole));
            if whole.is_file() {
                found.extend(named.iter().any(|it| it.is_named_file(path, &whole)).then(|| shown(path.to_owned())));
            } else if whole.is_dir() && !is_around {
                let FilesBelow { files, is_all } = files_below(&whole, PathBuf::new(), MAX_GLOB_DEPTH);
                let inner = files.iter().filter(|file| named.iter().any(|it| it.is_in_named_folder(&whole.join(file))));
                found.extend(inner.map(|file| shown(path.join(file))));
                found.extend((!is_all && !named.is_empty()).then(|| shown(path.to_owned())));
            }
        }
    }
    found
}

/// A file with hooks that may be named by a word.
struct NamedHooks<'a> {
    hooks: &'a HookFile,
    /// The last part of the glob, unless it matches every name.
    name: Option<PathGlob>,
    /// The extension of the file, if the glob has one.
    extension: Option<String>,
}

impl<'a> NamedHooks<'a> {
    fn of(hooks: &'a HookFile) -> Self {
        let glob = hooks.file.to_string();
        let name = glob.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_owned());
        let is_any = name.trim_matches('*').is_empty();
        Self { hooks, name: name.parse::<PathGlob>().ok().filter(|_| !is_any), extension }
    }

    fn has_name(&self, path: &Path) -> bool {
        let name = path.file_name().map(Path::new);
        name.is_some_and(|name| self.name.as_ref().is_some_and(|glob| glob.is_match_path(name)))
    }

    /// Returns true if a file has hooks that a word names. The file may have any name with the extension if its text shows hooks.
    fn is_named_file(&self, path: &Path, whole: &Path) -> bool {
        let extension = path.extension().map(|it| it.to_string_lossy().into_owned());
        let is_of_kind = self.hooks.regex.is_some() && extension.is_some() && extension == self.extension;
        let is_own = self.has_name(path) && !path.is_absolute();
        (is_of_kind || is_own) && may_have_hooks(whole, self.hooks)
    }

    fn is_in_named_folder(&self, whole: &Path) -> bool {
        self.has_name(whole) && may_have_hooks(whole, self.hooks)
    }
}

/// The files with hooks that commands of a session name: a command may write such a file and remove it later.
#[derive(Debug, Default)]
pub(super) struct InCommands {
    files: Vec<HookFile>,
    workspace: String,
    named: BTreeSet<String>,
}

impl InCommands {
    /// Watches the calls of a session in this workspace.
    pub(super) fn new(files: &[HookFile], workspace: &str) -> Self {
        Self { files: files.to_owned(), workspace: workspace.to_owned(), named: BTreeSet::new() }
    }

    /// Handles the next event.
    pub(super) fn event(&mut self, event: &Event) {
        match &event.body {
            Body::ToolCall(call) => self.take(call.input.as_ref()),
            Body::PermissionRequest(request) => {
                self.take(request.asked.as_ref().and_then(|asked| asked.input.as_ref()));
            }
            Body::PermissionResponse(response) => self.take(response.updated_input.as_ref()),
            _ => {}
        }
    }

    fn take(&mut self, input: Option<&Value>) {
        if self.files.is_empty() {
            return;
        }
        for line in input.map(view::commands).unwrap_or_default() {
            let ends_word = |c: char| c.is_whitespace() || ";&|<>()'\"`=,".contains(c);
            for word in line.split(ends_word).filter(|word| word.contains(['/', '.'])) {
                let below_home = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|home| word.strip_prefix(home));
                let path = view::relative(below_home.unwrap_or(word), Some(&self.workspace));
                if self.files.iter().any(|hooks| hooks.file.is_match(&path)) {
                    self.named.insert(path);
                }
            }
        }
    }

    /// Returns the paths of the files that commands named.
    pub(super) fn named(self) -> BTreeSet<String> {
        self.named
    }
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

/// Files below a folder, relative to it.
struct FilesBelow {
    files: Vec<PathBuf>,
    /// False if some were not looked at: there are too many, they are too deep, or a folder cannot be read.
    is_all: bool,
}

/// Returns the files below a folder that a glob names. Only the folders that the glob names are read.
fn named_in(folder: &Path, hooks: &HookFile) -> FilesBelow {
    let glob = hooks.file.to_string();
    let plain: PathBuf = glob.split('/').take_while(|part| is_plain(part)).collect();
    let deepest = if glob.contains("**") { MAX_GLOB_DEPTH } else { Path::new(&glob).components().count() };
    let mut found = files_below(folder, plain, deepest);
    found.files.retain(|path| hooks.file.is_match_path(path));
    found
}

/// Returns the files at or below a path in a folder. What is deeper than `deepest` is not asked for, unless that is
/// [`MAX_GLOB_DEPTH`].
fn files_below(folder: &Path, start: PathBuf, deepest: usize) -> FilesBelow {
    let mut found = FilesBelow { files: Vec::new(), is_all: true };
    let (mut waiting, mut seen) = (vec![start], 0);
    while let Some(path) = waiting.pop() {
        let whole = folder.join(&path);
        if !whole.is_dir() {
            found.files.push(path);
            continue;
        }
        if path.components().count() >= deepest {
            found.is_all &= deepest != MAX_GLOB_DEPTH;
            continue;
        }
        let Some(entries) = fs::read_dir(&whole).ok().filter(|_| seen < MAX_ENTRIES) else {
            found.is_all = false;
            continue;
        };
        let entries: Vec<PathBuf> = entries.flatten().take(MAX_ENTRIES).map(|it| path.join(it.file_name())).collect();
        found.is_all &= entries.len() < MAX_ENTRIES;
        seen += entries.len();
        waiting.extend(entries);
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
        // A glob stands for the files that were not looked at: here below a folder that is too deep.
        let deep = (0..MAX_GLOB_DEPTH).fold(root.join(".plugins"), |folder, _| folder.join("d"));
        fs::create_dir_all(deep).unwrap();
        assert_eq!(of(&[]), [".agent/settings.json", ".plugins/**/*.ts", ".plugins/a/b.ts"]);
    }

    #[test]
    #[ignore = "slow: makes many files"]
    fn many_other_files_hide_no_file_with_hooks() {
        let folder = tempfile::tempdir().unwrap();
        let agents = folder.path().join(".agent");
        fs::create_dir(&agents).unwrap();
        for number in 0..MAX_ENTRIES {
            fs::write(agents.join(format!("{number}.txt")), "").unwrap();
        }
        fs::write(agents.join("hooks.json"), "").unwrap();
        let files: Vec<HookFile> = serde_yaml::from_str("[{file: '.agent/*.json'}]").unwrap();
        let found = found(&files, &[folder.path().to_owned()], &[]);
        assert!(found.contains(".agent/*.json"), "{found:?}");
    }

    #[test]
    fn files_with_hooks_are_found_by_the_words_of_the_command() {
        let root = tempfile::tempdir().unwrap();
        let (home, workspace) = (root.path().join("home"), root.path().join("workspace"));
        fs::create_dir_all(&home).unwrap();
        for (path, text) in [
            ("conf/h.json", "\"Before\": [1]"),
            ("conf/none.json", "{}"),
            ("conf/text.txt", "\"Before\": [1]"),
            ("plug/deep/hooks.json", "\"Before\": [1]"),
            ("plug/deep/other.json", "\"Before\": [1]"),
            ("ext/a.ts", ""),
        ] {
            let path = workspace.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = "[{file: '.agent/**/hooks.json', regex: '\"Before\": \\[1'}, {file: '.agent/*.ts'}]";
        let files: Vec<HookFile> = serde_yaml::from_str(files).unwrap();
        let folders = [home, workspace.clone()];
        let absolute = workspace.join("conf/h.json").to_string_lossy().into_owned();
        for (word, expected) in [
            ("conf/h.json", &["conf/h.json"][..]),
            ("--settings=conf/h.json", &["conf/h.json"]),
            (&absolute, &["conf/h.json"]),
            ("conf/none.json", &[]),
            ("conf/text.txt", &[]),
            ("plug", &["plug/deep/hooks.json"]),
            ("./ext/a.ts", &["./ext/a.ts"]),
            ("{\"Before\": [1]}", &["an argument of its command"]),
            (".", &[]),
            ("absent", &[]),
        ] {
            let found: Vec<String> = found_by_words(&files, &folders, &[word.to_owned()]).into_iter().collect();
            assert_eq!(found, expected, "{word}");
        }
    }
}

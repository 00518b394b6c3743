//! `files`: checks the files in the workspace after the agent has stopped.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use absent::{Found, Search};

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer, Workspace};
use crate::grade::Grade;
use crate::judgement::Judgement;
use crate::reason_text;
use crate::regular;
use crate::secrets::mark_in;
use crate::trace::Lost;
use crate::values::{Below, PathGlob, Pattern};
use crate::workspace::beyond_patch::MayDiffer;
use crate::workspace::link_targets::LinkTargets;
use crate::workspace::walk::{Descend, walk};
use crate::yaml::Step;
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::{filled, filled_map};
use crate::yaml::wrong_part::WrongPart;

mod absent;

/// The maximum number of bytes read from a file.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The files that the workspace must contain. Paths are relative to the workspace and stay inside it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{exists: [src/a.rs]}`")]
pub struct Files {
    /// For each of these globs, a matching file or folder must exist.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub exists: Vec<PathGlob>,
    /// For each of these globs, no matching file or folder may exist.
    #[serde(deserialize_with = "filled", skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<PathGlob>,
    /// For each of these files, by path, a text, or a list of texts, that the file must contain.
    #[serde(deserialize_with = "filled_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub contains: BTreeMap<String, OneOrList<String>>,
    /// For each of these files, by path, a regular expression, or a list of them, that must match the text of the file;
    /// unanchored.
    #[serde(deserialize_with = "filled_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<String, OneOrList<Pattern>>,
    /// For each of these files, by path, the file that it must equal, byte for byte. The path of the second file is
    /// relative to the file in which the grader is written.
    #[serde(deserialize_with = "filled_map", skip_serializing_if = "BTreeMap::is_empty")]
    pub equals: BTreeMap<String, PathBuf>,
}

impl GraderSpec for Files {
    fn depends_on_loss(&self, _: Lost) -> bool {
        false
    }

    fn needs() -> Needs {
        Needs { workspace: Workspace::Files, ..Needs::NONE }
    }

    fn refusal(&self) -> Option<String> {
        let Self { exists, absent, contains, matches, equals } = self;
        let globs = exists.iter().chain(absent).map(ToString::to_string);
        let paths = contains.keys().chain(matches.keys()).chain(equals.keys()).cloned();
        for path in globs.chain(paths) {
            if path.is_empty() {
                return Some("checks nothing: a path in it is empty".to_owned());
            }
            if Path::new(&path).components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
                return Some(format!("looks at `{path}`, which is not a path within the workspace"));
            }
        }
        if let Some(path) = contains.iter().find(|(_, texts)| texts.iter().any(String::is_empty)).map(|(path, _)| path)
        {
            return Some(format!("checks nothing: the text for `{path}` under `contains` is empty"));
        }
        let empty = |patterns: &OneOrList<Pattern>| patterns.iter().any(|pattern| pattern.0.as_str().is_empty());
        if let Some(path) = matches.iter().find(|(_, patterns)| empty(patterns)).map(|(path, _)| path) {
            return Some(format!("checks nothing: the regular expression for `{path}` under `matches` is empty"));
        }
        for (path, patterns) in matches {
            if let Some(pattern) = patterns.iter().find(|pattern| pattern.is_in_any_text()) {
                return Some(format!(
                    "checks nothing: the regular expression for `{path}` under `matches` is /{pattern}/, which matches any \
                     text; write `exists` if the file must only exist"
                ));
            }
        }
        if let Some((path, _)) = equals.iter().find(|(_, file)| file.as_os_str().is_empty()) {
            return Some(format!("checks nothing: the file for `{path}` under `equals` is not named"));
        }
        (*self == Files::default())
            .then(|| "checks nothing; add an expectation, for example `exists: [\"src/**\"]`".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(FilesObserver(self.clone()))
    }

    fn named_files(&self) -> Vec<&Path> {
        self.equals.values().map(PathBuf::as_path).collect()
    }

    fn count_from(&mut self, folder: &Path) {
        for file in self.equals.values_mut() {
            *file = folder.join(&*file);
        }
    }

    fn missing_file(&self, folder: &Path) -> Option<WrongPart> {
        self.equals.iter().find_map(|(path, file)| {
            let why = why_no_file(&folder.join(file))?;
            let at = [Step::Key("equals"), Step::Key(path)];
            Some(WrongPart::new(&at, format!("compares with `{}`, which {why}", file.display())))
        })
    }

    fn passes_on_absence(&self) -> bool {
        !self.absent.is_empty()
    }

    fn passes_by(&self, workspace: &Path, may_differ: &MayDiffer) -> bool {
        let MayDiffer { places, folders, left_out, is_masked, .. } = may_differ;
        // A link may lead into such a place.
        let real = |path: &str| -> io::Result<PathBuf> {
            let root = workspace.canonicalize()?;
            let real = root.join(path).canonicalize()?;
            Ok(real.strip_prefix(&root).map(Path::to_owned).unwrap_or_default())
        };
        let is_hidden = |path: &str| {
            let real_is_hidden = |real: PathBuf| places.may_hide(&real.to_string_lossy()).is_some();
            places.may_hide(path).is_some() || real(path).is_ok_and(real_is_hidden)
        };
        let is_left_out = |path: &Path| left_out.iter().any(|place| path.starts_with(place));
        let lacks_content =
            |path: &str| real(path).is_ok_and(|real| is_left_out(&real)) || (*is_masked && holds_mark(workspace, path));
        let has_file = |path: &str| match fs::symlink_metadata(workspace.join(path)) {
            Ok(meta) if meta.is_dir() => holds_file(&workspace.join(path)),
            Ok(meta) => meta.is_file() || meta.is_symlink(),
            Err(_) => false,
        };
        // A file whose content is left out may have become a link that leads to nothing.
        let is_unknown = |glob: &PathGlob| match find(workspace, glob, |path| !is_left_out(path)) {
            Ok(Some(path)) => is_hidden(&path) || (*folders && !has_file(&path)),
            Ok(None) => !left_out.is_empty(),
            Err(_) => false,
        };
        let mut read = self.contains.keys().chain(self.matches.keys()).chain(self.equals.keys());
        self.exists.iter().any(is_unknown) || read.any(|path| is_hidden(path) || lacks_content(path))
    }

    fn lies_outside(&self, workspace: &Path, places: &[String]) -> bool {
        let mut read = self.contains.keys().chain(self.matches.keys()).chain(self.equals.keys());
        self.exists.iter().chain(&self.absent).all(|glob| finds_nothing_in(workspace, glob, places))
            && self.absent.iter().all(|glob| no_link_leads_into(workspace, glob, places))
            && read.all(|path| is_read_outside(workspace, path, places))
    }
}

struct FilesObserver(Files);

#[async_trait]
impl Observer for FilesObserver {
    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl FilesObserver {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let Some(workspace) = evidence.workspace.and_then(|path| path.canonicalize().ok()) else {
            return Grade::ungraded("could not be graded, because the workspace is missing");
        };
        let mut checks = Checks::default();
        for glob in &self.0.exists {
            let is_meant = |path: &Path| {
                let meta = fs::metadata(workspace.join(path));
                meta.is_ok_and(|meta| meta.is_dir() || (meta.is_file() && !glob.is_folder()))
            };
            match find(&workspace, glob, is_meant) {
                Ok(Some(path)) => checks.held(format!("`{path}` exists"), []),
                Ok(None) => match find(&workspace, glob, |_| true) {
                    Ok(Some(path)) => {
                        let wanted = if glob.is_folder() { "folder" } else { "file" };
                        let what = match fs::metadata(workspace.join(&path)) {
                            Ok(meta) => format!("{}, not a {wanted}", kind_of(&meta)),
                            Err(_) => "a link that leads to nothing".to_owned(),
                        };
                        checks.violated(format!("`{path}` is {what}"), []);
                    }
                    _ => checks.violated(format!("nothing matching `{glob}` exists"), []),
                },
                Err(error) => checks.unknown(format!("the search for `{glob}` failed: {error}")),
            }
        }
        let is_of_agent =
            |path: &str| evidence.change.map_or(Judgement::Unknown, |change| change.made_link(&workspace, path));
        for glob in &self.0.absent {
            match (Search { workspace: &workspace, glob, is_of_agent: &is_of_agent }).find(|_| {}) {
                Ok(Found::Nothing) => checks.held(format!("nothing matching `{glob}` exists"), []),
                Ok(Found::Path(path)) => {
                    checks.violated(format!("`{path}` exists, but nothing matching `{glob}` may"), []);
                }
                Ok(Found::Unknown(why)) => {
                    checks.unknown(format!("whether anything matching `{glob}` exists is unknown: {why}"));
                }
                Err(error) => checks.unknown(format!("the search for `{glob}` failed: {error}")),
            }
        }
        for (path, texts) in &self.0.contains {
            let content = content(&mut checks, &workspace, path);
            for text in texts.iter() {
                let Some(content) = &content else { continue };
                let holds = holds_bytes(content, text);
                let word = if holds { "contains" } else { "does not contain" };
                checks.either(holds, format!("`{path}` {word} `{}`", reason_text::short(text, 200)), []);
            }
        }
        for (path, patterns) in &self.0.matches {
            let content = content(&mut checks, &workspace, path);
            for pattern in patterns.iter() {
                let Some(content) = &content else { continue };
                let text = String::from_utf8_lossy(content);
                // A byte order mark states the encoding and does not belong to the text. An expression may ask for it.
                let holds =
                    pattern.is_match(&text) || text.strip_prefix('\u{feff}').is_some_and(|it| pattern.is_match(it));
                let word = if holds { "matches" } else { "does not match" };
                checks.either(holds, format!("`{path}` {word} /{pattern}/"), []);
            }
        }
        let shown = |file: &Path| shown_file(file, evidence.case_folder);
        for (path, file) in &self.0.equals {
            let wanted = match regular::read(evidence.case_folder.join(file)) {
                Ok(wanted) => wanted,
                Err(error) => {
                    checks.unknown(format!("`{}` of the case could not be read: {error}", shown(file)));
                    continue;
                }
            };
            if let Some(content) = content(&mut checks, &workspace, path) {
                let holds = content == wanted;
                let reason = if holds {
                    format!("`{path}` is the same as `{}`", shown(file))
                } else {
                    format!("`{path}` differs from `{}` {}", shown(file), first_difference(&content, &wanted))
                };
                checks.either(holds, reason, []);
            }
        }
        checks.grade()
    }
}

/// Returns the kind of an entry of a folder, for a reason.
fn kind_of(meta: &fs::Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_file() => "a file",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Returns the content of a file. If it does not exist, or is not a file of the workspace, a violation is
/// recorded.
fn content(checks: &mut Checks, workspace: &Path, path: &str) -> Option<Vec<u8>> {
    match read_within(workspace, path) {
        Ok(content) => Some(content),
        Err(Unreadable::Not(reason)) => {
            checks.violated(format!("`{path}` {reason}"), []);
            None
        }
        Err(Unreadable::Unknown(reason)) => {
            checks.unknown(format!("`{path}` {reason}"));
            None
        }
    }
}

/// The reason why a file could not be read: something that the agent did, or something else.
enum Unreadable {
    Not(String),
    Unknown(String),
}

/// Reads a file of the workspace. The path may be anything that an agent created, such as a link out of the
/// workspace, or a pipe that never ends.
fn read_within(workspace: &Path, path: &str) -> Result<Vec<u8>, Unreadable> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Unreadable::Not("does not exist".to_owned()),
        _ if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
            Unreadable::Not("is a link that leads to nothing".to_owned())
        }
        _ => Unreadable::Unknown(format!("could not be read: {error}")),
    };
    let real = workspace.join(path).canonicalize().map_err(failed)?;
    if !real.starts_with(workspace) {
        return Err(Unreadable::Not("is a link that leads out of the workspace".to_owned()));
    }
    if !fs::metadata(&real).map_err(failed)?.is_file() {
        return Err(Unreadable::Not("is not a file".to_owned()));
    }
    let mut content = Vec::new();
    regular::open(&real).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)).map_err(failed)?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(Unreadable::Unknown(format!("is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    Ok(content)
}

/// Returns the first path that matches a glob and is accepted, in the order of names. Links are found, but not followed.
fn find(workspace: &Path, glob: &PathGlob, accepts: impl Fn(&Path) -> bool) -> io::Result<Option<String>> {
    let glob_text = glob.to_string();
    let parts = parts_of(&glob_text);
    let plain: Vec<&str> = parts.iter().copied().take_while(|part| has_no_signs(part)).collect();
    // The fixed beginning of a glob limits the search.
    let mut start = PathBuf::new();
    for (n, part) in plain.iter().enumerate() {
        start.push(part);
        match fs::symlink_metadata(workspace.join(&start)) {
            Ok(_) if n + 1 == parts.len() => {
                return Ok(accepts(&start).then(|| start.to_string_lossy().into_owned()));
            }
            Ok(metadata) if metadata.is_dir() => {}
            Ok(metadata) if metadata.is_symlink() && leads_to_folder(workspace, &start) => {}
            Ok(_) => return Ok(None),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
    let mut folders = vec![start];
    while let Some(folder) = folders.pop() {
        let mut entries = fs::read_dir(workspace.join(&folder))?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        let mut below = Vec::new();
        for entry in entries {
            let path = folder.join(entry.file_name());
            let text = path.to_string_lossy();
            if glob.is_match(&text) && accepts(&path) {
                return Ok(Some(text.into_owned()));
            }
            if entry.file_type()?.is_dir() {
                below.push(path);
            }
        }
        folders.extend(below.into_iter().rev());
    }
    Ok(None)
}

/// Returns the parts of a path or a glob.
fn parts_of(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect()
}

/// Returns true if a part of a glob is a name without signs of a glob.
fn has_no_signs(part: &str) -> bool {
    !part.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// Returns true if the search for a path that must be absent does not look into one of these places, or above one, through a link.
fn no_link_leads_into(workspace: &Path, glob: &PathGlob, places: &[String]) -> bool {
    let Ok(workspace) = workspace.canonicalize() else { return false };
    let mut is_apart = true;
    // What a link that leads to nothing may lead to is compared with the places.
    let is_of_agent = |path: &str| {
        let link = workspace.join(path);
        if link.exists() || LinkTargets::of(&link).is_unknown { Judgement::True } else { Judgement::False }
    };
    let found = Search { workspace: &workspace, glob, is_of_agent: &is_of_agent }.find(|folder| {
        let Ok(folder) = folder.strip_prefix(&workspace) else { return };
        is_apart &= !places.iter().any(|place| folder.starts_with(place) || Path::new(place).starts_with(folder));
    });
    is_apart && !matches!(found, Err(_) | Ok(Found::Unknown(_)))
}

/// Returns true if the search for a glob neither looks into one of these places nor finds a folder above one.
fn finds_nothing_in(workspace: &Path, glob: &PathGlob, places: &[String]) -> bool {
    let text = glob.to_string();
    let parts = parts_of(&text);
    let Ok(glob) = parts.join("/").parse::<PathGlob>() else { return false };
    let is_apart = |place: &String| {
        let above = Path::new(place).ancestors().filter(|folder| !folder.as_os_str().is_empty());
        let finds = above.into_iter().any(|folder| glob.is_match_path(folder));
        !finds && glob.lies_below(place) == Below::None
    };
    // The search follows links on its way, but not at its end.
    let way = &parts[..parts.len().saturating_sub(1)];
    places.iter().all(is_apart) && !has_link(workspace, way)
}

/// Returns true if reading a path opens nothing in one of these places.
fn is_read_outside(workspace: &Path, path: &str, places: &[String]) -> bool {
    let parts = parts_of(path);
    let path: PathBuf = parts.iter().collect();
    let is_apart = |place: &String| !path.starts_with(place) && !Path::new(place).starts_with(&path);
    places.iter().all(is_apart) && !has_link(workspace, &parts)
}

/// Returns true if a path of the workspace passes a link.
fn has_link(workspace: &Path, parts: &[&str]) -> bool {
    let mut at = workspace.to_owned();
    parts.iter().any(|part| {
        at.push(part);
        at.is_symlink()
    })
}

/// Returns true if a file of the workspace contains the mark of a redacted secret.
fn holds_mark(workspace: &Path, path: &str) -> bool {
    let content = workspace.canonicalize().map(|root| read_within(&root, path));
    matches!(content, Ok(Ok(content)) if mark_in(&String::from_utf8_lossy(&content)).is_some())
}

/// Returns true if a folder, or one below it, holds a file or a link.
fn holds_file(folder: &Path) -> bool {
    let mut found = false;
    let _ = walk(folder, |_, meta| {
        found |= meta.is_file() || meta.is_symlink();
        if found { Descend::Skip } else { Descend::Enter }
    });
    found
}

/// Returns true if a link within the workspace points to a folder within the workspace.
fn leads_to_folder(workspace: &Path, link: &Path) -> bool {
    workspace.join(link).canonicalize().is_ok_and(|real| real.starts_with(workspace) && real.is_dir())
}

fn holds_bytes(content: &[u8], text: &str) -> bool {
    // A regular expression finds bytes in linear time; only a huge text is too much for one.
    match regex::bytes::Regex::new(&regex::escape(text)) {
        Ok(pattern) => pattern.is_match(content),
        Err(_) => content.windows(text.len()).any(|window| window == text.as_bytes()),
    }
}

/// Returns the path of a file beside a case for messages: relative to the case's folder, or to the working
/// directory.
pub(super) fn shown_file(file: &Path, case_folder: &Path) -> String {
    match file.strip_prefix(case_folder) {
        Ok(inside) if !case_folder.as_os_str().is_empty() => inside.display().to_string(),
        _ => crate::paths::shown(file).display().to_string(),
    }
}

/// Returns the reason why a path is not a file, or `None` if it is one.
pub(super) fn why_no_file(path: &Path) -> Option<String> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => None,
        Ok(_) => Some("is not a file".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some("does not exist".to_owned()),
        Err(error) => Some(format!("could not be read: {error}")),
    }
}

fn first_difference(content: &[u8], wanted: &[u8]) -> String {
    let same = content.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    let line = content[..same].iter().filter(|byte| **byte == b'\n').count() + 1;
    if same == content.len() {
        format!("in line {line}: it ends, and the other file continues")
    } else if same == wanted.len() {
        format!("in line {line}: the other file ends, and it continues")
    } else {
        format!("in line {line}")
    }
}

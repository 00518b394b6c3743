//! Detects changes to the files of a case since the run began.
//!
//! The content is compared with a digest. The status change times show that no file was changed between the check and
//! its use: unlike modification times, they cannot be set back.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::digest::{file_digest, is_same};
use super::{Case, Source, quarantine};
use crate::embedded;
use crate::harness::catalog::{Catalog, Entry, Origin};
use crate::overlay;
use crate::regular;
use crate::workspace::repository;

/// The resolution of file times: a file changed this recently may be changed again without a visible difference.
const FILE_TIME_RESOLUTION: Duration = Duration::from_millis(100);

/// The maximum number of files, and of their bytes, for a check on the calling thread.
const MAX_QUICK_FILES: usize = 64;
const MAX_QUICK_BYTES: u64 = 256 << 10;

/// The files of a case with their expected digest, and the manifest of a harness.
#[derive(Debug)]
pub struct Seal {
    case: Arc<Case>,
    digests: Arc<Digests>,
    first_states: Arc<FileStates>,
    /// The last state in which the files matched their digests, or `None` if they were not compared yet.
    last_match: Arc<Mutex<Option<FileStates>>>,
    /// The files that were read once, when the run began: the case, its suites, its named graders and policy, and the manifest.
    read: Vec<Arc<SealedFile>>,
}

/// The files of a run that were read once, when the run began, by path. The seals share them.
#[derive(Debug, Default)]
pub struct SealedFiles(HashMap<PathBuf, Arc<SealedFile>>);

impl SealedFiles {
    fn get(&mut self, path: PathBuf, content: impl FnOnce() -> Content) -> Arc<SealedFile> {
        let file = self.0.entry(path).or_insert_with_key(|path| {
            Arc::new(SealedFile { path: path.clone(), content: content(), last_match: Mutex::default() })
        });
        Arc::clone(file)
    }
}

/// A file that was read once, and its content then.
#[derive(Debug)]
struct SealedFile {
    path: PathBuf,
    content: Content,
    /// The last state in which the file had this content.
    last_match: Mutex<Option<Stat>>,
}

/// The content of a file when it was read.
#[derive(Debug)]
enum Content {
    /// A case or a suite.
    Source(Arc<Source>),
    /// A named grader or policy.
    Text(String),
    /// The digest of a manifest.
    Manifest(String),
}

impl Content {
    /// Returns true if a text is that of the file. A quarantine changes nothing about what is measured, nor does a comment in a
    /// manifest, whose digest is in `run.json`.
    fn is_of(&self, path: &Path, text: &str) -> bool {
        match self {
            Self::Source(source) => text == source.text || quarantine::is_all_that_differs(text, &source.text),
            Self::Text(known) => text == known,
            Self::Manifest(digest) => {
                let read = Catalog::load(&[], Path::new(""), &[path.to_owned()]);
                read.is_ok_and(|read| read.entries().any(|entry| entry.manifest.digest() == *digest))
            }
        }
    }
}

impl SealedFile {
    /// Returns true if the file still has the content that was read. Reads it again only if its metadata have changed.
    fn is_unchanged(&self) -> bool {
        let Ok(meta) = fs::metadata(&self.path) else { return false };
        let now = Stat::from(&meta);
        let mut last_match = self.last_match.lock().unwrap_or_else(PoisonError::into_inner);
        if *last_match == Some(now) {
            return true;
        }
        let Ok(text) = regular::read_to_string(&self.path) else { return false };
        let is_unchanged = self.content.is_of(&self.path, &text);
        *last_match = (is_unchanged && is_settled(now.changed)).then_some(now);
        is_unchanged
    }
}

fn is_built_in(files: &[(&str, &str)], name: &str, text: &str) -> bool {
    files.iter().any(|(known, content)| *known == name && *content == text)
}

/// The expected digests of the files of a case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests {
    /// The digest of the case itself.
    pub case: String,
    /// The digest of each file that the trials are graded with and that the case's digest does not cover.
    pub judged_by: BTreeMap<PathBuf, String>,
    /// The digest of each file and folder that an arm of an experiment lays into the trial.
    pub laid: BTreeMap<PathBuf, String>,
}

impl Digests {
    /// Returns the files that trials are graded with, and the targets of links.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.judged_by
            .keys()
            .chain(self.laid.keys())
            .flat_map(|path| [Some(path.clone()), path.canonicalize().ok()].into_iter().flatten())
    }
}

/// The state of every file and folder of a case at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStates {
    files: BTreeMap<PathBuf, Stat>,
    /// True if no file was changed so recently that a further change would be invisible.
    settled: bool,
}

/// The file system's metadata of a file. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    place: (u64, u64),
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for Stat {
    fn from(meta: &Metadata) -> Self {
        Self {
            place: (meta.dev(), meta.ino()),
            mode: meta.mode(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl Seal {
    /// Makes a seal for a case with a known digest.
    ///
    /// # Errors
    /// Returns an error if a file of the case cannot be read.
    pub fn new(case: Arc<Case>, digests: Digests) -> io::Result<Self> {
        let first_states = file_states(&case, &digests)?;
        Ok(Self {
            case,
            digests: Arc::new(digests),
            first_states: Arc::new(first_states),
            last_match: Arc::default(),
            read: Vec::new(),
        })
    }

    /// Returns the seal with the files that were read when the run began: those of the case, its named graders and policy in
    /// these folders, and the manifest of the harness. What is built in has no file.
    pub fn with_files(
        &self,
        files: &mut SealedFiles,
        graders: &Path,
        policies: &Path,
        harness: Option<&Entry>,
    ) -> Self {
        let mut read: Vec<Arc<SealedFile>> = Vec::new();
        for source in &self.case.sources {
            read.push(files.get(source.file.clone(), || Content::Source(Arc::clone(source))));
        }
        for (name, text) in &self.case.named_graders {
            let file = files.get(graders.join(format!("{name}.yaml")), || Content::Text(text.clone()));
            read.extend(
                Some(file).filter(|file| !is_built_in(&embedded::graders(), name, text) || file.is_unchanged()),
            );
        }
        if let Some((name, text)) = &self.case.named_policy {
            let file = files.get(policies.join(format!("{name}.yaml")), || Content::Text(text.clone()));
            read.extend(
                Some(file).filter(|file| !is_built_in(&embedded::policies(), name, text) || file.is_unchanged()),
            );
        }
        if let Some(Entry { manifest, origin: Origin::File(file) }) = harness {
            read.push(files.get(file.clone(), || Content::Manifest(manifest.digest())));
        }
        Self {
            case: Arc::clone(&self.case),
            digests: Arc::clone(&self.digests),
            first_states: Arc::clone(&self.first_states),
            last_match: Arc::clone(&self.last_match),
            read,
        }
    }

    /// Checks that the files have the content they had when the run began. Returns their state.
    ///
    /// # Errors
    /// Returns the name of the file that has changed.
    pub fn check_content(&self) -> Result<FileStates, String> {
        let unreadable = |error: io::Error| format!("an input of case `{}` cannot be read: {error}", self.case.id);
        self.check_read_files("since the run began")?;
        let now = file_states(&self.case, &self.digests).map_err(unreadable)?;
        let mut last_match = self.last_match.lock().unwrap_or_else(PoisonError::into_inner);
        if last_match.as_ref().is_some_and(|last_match| last_match.settled && last_match.files == now.files) {
            return Ok(now);
        }
        let digest = self.case.digest().map_err(unreadable)?;
        if !is_same(&digest, &self.digests.case) {
            return Err(self.changed_files_message(&self.first_states, &now, "since the run began"));
        }
        for (path, digest) in &self.digests.judged_by {
            if file_digest(path).map_err(unreadable)? != *digest {
                return Err(self.message(&path.display().to_string(), "since the run began"));
            }
        }
        for (path, digest) in &self.digests.laid {
            if overlay::digest(path).map_err(unreadable)? != *digest {
                return Err(self.message(&path.display().to_string(), "since the run began"));
            }
        }
        self.check_states(&now)?;
        *last_match = Some(now.clone());
        Ok(now)
    }

    /// Checks that no file was changed since a state, not even temporarily. Of the files that were read when the run began, the
    /// content is compared.
    ///
    /// # Errors
    /// Returns the name of the file that has changed.
    pub fn check_unchanged_since(&self, since: &FileStates) -> Result<(), String> {
        self.check_read_files("while the trial ran")?;
        self.check_states(since)
    }

    fn check_read_files(&self, when: &str) -> Result<(), String> {
        match self.read.iter().find(|file| !file.is_unchanged()) {
            Some(changed) => {
                // A manifest has the path by which it was named.
                let path = std::path::absolute(&changed.path).unwrap_or_else(|_| changed.path.clone());
                Err(self.message(&path.display().to_string(), when))
            }
            None => Ok(()),
        }
    }

    fn check_states(&self, since: &FileStates) -> Result<(), String> {
        let now = file_states(&self.case, &self.digests)
            .map_err(|error| format!("an input of case `{}` cannot be read any more: {error}", self.case.id))?;
        if now.files == since.files {
            Ok(())
        } else {
            Err(self.changed_files_message(since, &now, "while the trial ran"))
        }
    }

    /// Returns true if there are so few files that a check takes less time than handing it to another thread.
    pub fn is_quick(&self) -> bool {
        let files = &self.first_states.files;
        files.len() <= MAX_QUICK_FILES && files.values().map(|stat| stat.size).sum::<u64>() <= MAX_QUICK_BYTES
    }

    fn changed_files_message(&self, before: &FileStates, now: &FileStates, when: &str) -> String {
        let mut all: Vec<&PathBuf> = before.files.keys().chain(now.files.keys()).collect();
        all.sort();
        all.dedup();
        let differs = |path: &&&PathBuf| before.files.get(**path) != now.files.get(**path);
        // If a folder and its content have changed, the content is named, because that is what the user needs to
        // know.
        let changed: Vec<&PathBuf> = all.iter().filter(differs).copied().collect();
        let file = changed.iter().find(|path| !path.is_dir()).or(changed.first());
        let shown = file.map_or_else(|| "a file".to_owned(), |path| path.display().to_string());
        let more = match changed.iter().filter(|path| !path.is_dir()).count() {
            0 | 1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        self.message(&format!("{shown}{more}"), when)
    }

    fn message(&self, files: &str, when: &str) -> String {
        format!(
            "{files}, an input of case `{}`, was changed {when}; put the file back, then run the trials again with: \
             evals run --resume RUN --rerun errored; if the change is intended, add --changed keep or --changed rerun",
            self.case.id
        )
    }
}

fn file_states(case: &Case, digests: &Digests) -> io::Result<FileStates> {
    let mut files = BTreeMap::new();
    for path in case.inputs().into_iter().chain(digests.files()) {
        add(&path, &mut files)?;
    }
    let newest = files.values().map(|stat| stat.changed).max().unwrap_or_default();
    Ok(FileStates { files, settled: is_settled(newest) })
}

/// Returns true if a status change time is so long ago that a further change would be visible.
fn is_settled(changed: (i64, i64)) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = Duration::new(changed.0.try_into().unwrap_or_default(), changed.1.try_into().unwrap_or_default());
    now.checked_sub(changed).is_some_and(|age| age > FILE_TIME_RESOLUTION)
}

fn add(path: &Path, files: &mut BTreeMap<PathBuf, Stat>) -> io::Result<()> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        // A grader reports its missing file itself, and a file that appears later is noticed as a change.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    files.insert(path.to_owned(), Stat::from(&meta));
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let place = entry.path();
            if entry.file_name() != ".git" || !entry.file_type()?.is_dir() {
                add(&place, files)?;
                continue;
            }
            for file in repository::files(&place)? {
                add(&place.join(file), files)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_shows_though_size_and_modification_time_are_set_back() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("check.sh");
        fs::write(&file, "exit 1\n").unwrap();
        let seen = |path: &Path| {
            let mut files = BTreeMap::new();
            add(path, &mut files).unwrap();
            files
        };
        let before = seen(root.path());
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        std::thread::sleep(FILE_TIME_RESOLUTION);
        fs::write(&file, "exit 0\n").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        let after = seen(root.path());
        assert_eq!(before[&file].modified, after[&file].modified);
        assert_ne!(before, after);
    }
}

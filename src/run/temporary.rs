//! The engine's private folder in the system's temporary one, and what engines that died left there.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::workspace::remove;

/// How the folders are named, so that they are known again.
const PREFIX: &str = "evals-run-";

/// What could not be removed.
static LEFT_BEHIND: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The private folder of one engine. It vanishes with it.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    lock: File,
}

impl Temporary {
    /// Makes the folder, and removes those of engines that are gone.
    ///
    /// # Errors
    /// The file system refused.
    pub fn make() -> io::Result<Self> {
        let system = std::env::temp_dir();
        tidy(&system);
        let path = (0..100)
            .map(|n| system.join(format!("{PREFIX}{}-{n}", std::process::id())))
            .find(|path| fs::DirBuilder::new().mode(0o700).create(path).is_ok())
            .ok_or_else(|| io::Error::other(format!("no folder could be made in {}", system.display())))?;
        // Locked before it has the name by which other engines look for it: one that tidies up at this moment would
        // take the folder for a dead engine's.
        let unnamed = path.join(".lock.new");
        let lock = File::create(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&unnamed, path.join(".lock"))?;
        Ok(Self { path, lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = remove::remove(&self.path);
        let _ = flock(&self.lock, FlockOperation::Unlock);
        // What was just being started when its engine died held its folder at the time this one was made.
        if let Some(system) = self.path.parent() {
            tidy(system);
        }
    }
}

/// A folder that vanishes with its holder, whatever programs left in it.
#[derive(Debug)]
pub struct Vanishing(PathBuf);

impl Vanishing {
    /// Makes a folder in another one, under a name that begins so.
    ///
    /// # Errors
    /// The file system refused.
    pub fn make(folder: &Path, prefix: &str) -> io::Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix(prefix).tempdir_in(folder)?.keep()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Vanishing {
    fn drop(&mut self) {
        if let Err(error) = remove::remove(&self.0) {
            let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
            left.push(told(&self.0, &error));
        }
    }
}

/// What could not be removed since this was asked last, each as a line for the user.
pub fn left_behind() -> Vec<String> {
    std::mem::take(&mut LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner))
}

fn told(folder: &Path, error: &io::Error) -> String {
    let shown = folder.display();
    match immutable_in(folder) {
        Some(file) => format!(
            "a trial's private folder {shown} could not be removed: {} is immutable; remove it with: chattr -R -i -a {shown} && rm -rf {shown}",
            file.strip_prefix(folder).unwrap_or(&file).display()
        ),
        None => format!("a trial's private folder {shown} could not be removed: {error}"),
    }
}

/// A file that the system lets nobody change or remove (`chattr +i`, `+a`), looked for among a bounded number.
fn immutable_in(folder: &Path) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, open};
        let mut left = vec![folder.to_owned()];
        for _ in 0..100_000 {
            let path = left.pop()?;
            let Ok(meta) = path.symlink_metadata() else { continue };
            if !meta.is_dir() && !meta.is_file() {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(file) = open(&path, flags, Mode::empty()) else { continue };
            if ioctl_getflags(&file).is_ok_and(|flags| flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND)) {
                return Some(path);
            }
            if meta.is_dir() {
                left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
        }
    }
    let _ = folder;
    None
}

/// Removes the folders of this user's engines that are gone: nobody holds their lock.
fn tidy(system: &Path) {
    let user = rustix::process::getuid().as_raw();
    for entry in fs::read_dir(system).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if !ours {
            continue;
        }
        // One look at the lock decides: one that comes into its place between two looks would make an engine that has
        // just begun look like a dead one.
        let dead = match File::open(entry.path().join(".lock")) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            // An engine that has just made its folder has not locked it yet.
            Err(_) => entry
                .metadata()
                .and_then(|meta| meta.modified())
                .is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() >= 60)),
        };
        if dead {
            remove(&entry.path());
        }
    }
}

/// Removes a folder, its lock last: where an agent of the dead engine still writes, the next try knows the folder again.
fn remove(folder: &Path) {
    let left = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = left.filter(|path| !path.ends_with(".lock")).all(|path| remove::remove(&path).is_ok());
    if all {
        let _ = remove::remove(folder);
    }
}

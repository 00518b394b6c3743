//! The engine's private folder in the system's temporary folder, and the removal of folders of dead engines.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};

use crate::workspace::remove;

/// The prefix of the folders' names.
const PREFIX: &str = "evals-run-";

/// Paths that could not be removed.
static LEFT_BEHIND: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The private folder of one engine, removed with it.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    lock: File,
}

impl Temporary {
    /// Makes the folder, and removes the folders of engines that have ended.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn make() -> io::Result<Self> {
        let system = std::env::temp_dir();
        tidy(&system);
        let path = (0..100)
            .map(|n| system.join(format!("{PREFIX}{}-{n}", std::process::id())))
            .find(|path| fs::DirBuilder::new().mode(0o700).create(path).is_ok())
            .ok_or_else(|| io::Error::other(format!("no folder could be made in {}", system.display())))?;
        // Locked before it gets the name by which other engines find it: otherwise, an engine that cleans up at
        // this moment would take the folder for a dead engine's.
        let unnamed = path.join(".lock.new");
        let lock = File::create(&unnamed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&unnamed, path.join(".lock"))?;
        Ok(Self { path, lock })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = remove::remove(&self.path);
        let _ = flock(&self.lock, FlockOperation::Unlock);
        // A process that was starting when its engine died may still have used that engine's folder when this one was
        // made.
        if let Some(system) = self.path.parent() {
            tidy(system);
        }
    }
}

/// A folder that is removed when dropped, with everything that programs left in it.
#[derive(Debug)]
pub struct Vanishing(PathBuf);

impl Vanishing {
    /// Makes a folder in another one, with this prefix.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn make(folder: &Path, prefix: &str) -> io::Result<Self> {
        Ok(Self(tempfile::Builder::new().prefix(prefix).tempdir_in(folder)?.keep()))
    }

    /// Returns the path.
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

/// Returns the paths that could not be removed since the last call, as lines for the user.
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

/// Returns a file that cannot be changed or removed (`chattr +i`, `+a`), searching a limited number of files.
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

/// Removes the folders of this user's dead engines, whose locks are free.
fn tidy(system: &Path) {
    let user = rustix::process::getuid().as_raw();
    for entry in fs::read_dir(system).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == user);
        if !ours {
            continue;
        }
        // The lock is checked only once: if it appeared between two checks, an engine that has just started
        // would look dead.
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

/// Removes a folder, its lock last: if an agent of the dead engine still writes, the next attempt recognises
/// the folder.
fn remove(folder: &Path) {
    let left = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = left.filter(|path| !path.ends_with(".lock")).all(|path| remove::remove(&path).is_ok());
    if all {
        let _ = remove::remove(folder);
    }
}

//! The engine's private folder in the system's temporary folder, and the removal of folders of dead engines.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock, statvfs};

use crate::resources::Exhausted;
use crate::workspace::remove;

/// The prefix of the folders' names.
const PREFIX: &str = "evals-run-";

/// The number of folders of dead engines with the ID of this process that are passed over.
const MAX_LEFT_FOLDERS: u32 = 100;

/// The number of times that the engine's folder was made again, and the locks of these folders.
static RESTORED: AtomicU32 = AtomicU32::new(0);
static LOCKS: Mutex<Vec<File>> = Mutex::new(Vec::new());

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
        let mut number = 0;
        let path = loop {
            let path = system.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match make_private(&path) {
                Ok(()) => break path,
                Err(error) if error.kind() == ErrorKind::AlreadyExists && number < MAX_LEFT_FOLDERS => number += 1,
                Err(error) => return Err(error),
            }
        };
        let made = Self { lock: lock(&path)?, path };
        // A full disk is noticed before the first trial.
        no_room(&made.path).map_or(Ok(made), Err)
    }

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

fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Makes the lock by which other engines see that the engine of a folder is alive.
fn lock(path: &Path) -> io::Result<File> {
    // Locked before it gets the name by which other engines find it: otherwise, an engine that cleans up at this moment
    // would take the folder for a dead engine's.
    let unnamed = path.join(".lock.new");
    let lock = File::create(&unnamed)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(&unnamed, path.join(".lock"))?;
    Ok(lock)
}

/// Makes the engine's folder again, because a program removed it, such as an agent that removes the folders above its
/// workspace.
fn restore(path: &Path) -> io::Result<()> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    match make_private(path) {
        Ok(()) => {
            RESTORED.fetch_add(1, Ordering::Relaxed);
            locks.push(lock(path)?);
            Ok(())
        }
        // Another trial of this engine was quicker. The folder of another user is not used.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let meta = path.symlink_metadata()?;
            let is_private =
                meta.is_dir() && meta.uid() == rustix::process::getuid().as_raw() && meta.mode() & 0o077 == 0;
            if is_private { Ok(()) } else { Err(error) }
        }
        Err(error) => Err(error),
    }
}

/// Returns how often the engine's folder was made again. Folders that were made in it before are gone.
pub fn restored() -> u32 {
    RESTORED.load(Ordering::Relaxed)
}

/// Returns the error of a file system without room for a small file, or that cannot be written. Returns `None` if a file can
/// be written, or if the reason is not the disk.
pub fn no_room(folder: &Path) -> Option<io::Error> {
    const CONTENT: &[u8] = &[0; 64 << 10];
    // A file costs an inode, so it is written only if there may be no room for it.
    const ENOUGH: u64 = 64 << 20;
    const ENOUGH_FILES: u64 = 1000;
    if let Ok(room) = statvfs(folder) {
        let has_files = room.f_files == 0 || room.f_favail > ENOUGH_FILES;
        if has_files && room.f_bavail.saturating_mul(room.f_frsize) > ENOUGH {
            return None;
        }
    }
    let write = |mut file: File| file.write_all(CONTENT);
    let error = tempfile::tempfile_in(folder).and_then(write).err()?;
    // A limit of file sizes (`ulimit -f`) says nothing about the disk.
    let is_of_disk = Exhausted::of(&error) == Some(Exhausted::Disk) && error.kind() != ErrorKind::FileTooLarge;
    is_of_disk.then_some(error)
}

/// A folder that is removed when dropped, with everything that programs left in it.
#[derive(Debug)]
pub struct Vanishing(PathBuf);

impl Vanishing {
    /// Makes a folder in another one, with this prefix. If the other one is the engine's and was removed, it is made again.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn make(folder: &Path, prefix: &str) -> io::Result<Self> {
        let make = || tempfile::Builder::new().prefix(prefix).tempdir_in(folder);
        let is_engines = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        let made = match make() {
            Err(error) if error.kind() == ErrorKind::NotFound && is_engines => {
                restore(folder)?;
                make()
            }
            made => made,
        };
        Ok(Self(made?.keep()))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Vanishing {
    fn drop(&mut self) {
        if let Err(error) = remove::remove(&self.0) {
            let mut left = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
            left.push(sentence(&self.0, &error));
        }
    }
}

/// Returns the paths that could not be removed since the last call, as lines for the user.
pub fn left_behind() -> Vec<String> {
    std::mem::take(&mut LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner))
}

fn sentence(folder: &Path, error: &io::Error) -> String {
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

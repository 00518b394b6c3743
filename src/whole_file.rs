//! Writes files completely or not at all, and makes names safe for files and folders.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// The reason why a file could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system returned an error.
    #[error("could not {doing} {path}: {source}")]
    Io {
        /// The operation.
        doing: &'static str,
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A name that cannot be a folder.
    #[error("the name `{0}` cannot be the name of a folder of the run; use another name for the harness or model")]
    BadName(String),
}

impl FileError {
    /// Makes the error of an operation on a path.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

/// Writes a file completely or not at all: a temporary file beside it is synced and then renamed.
///
/// # Errors
/// Returns an error if the file cannot be written; no partial file is left under the name.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), FileError> {
    put_in_place([write_part(path, write)?])
}

/// Does what [`write_whole`] does, with a file that has no name while it is written: a process that is ended meanwhile leaves
/// nothing. If the system has no such files, the temporary file has a name.
///
/// # Errors
/// Returns an error if the file cannot be written; no partial file is left under the name.
pub fn write_unnamed(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), FileError> {
    let Some(file) = unnamed_beside(path) else { return write_whole(path, write) };
    let failed = |source| FileError::Io { doing: "write", path: path.to_owned(), source };
    let mut out = io::BufWriter::with_capacity(64 << 10, file);
    write(&mut out).map_err(failed)?;
    let mut file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_data().map_err(failed)?;
    let Some(part) = named_part(&file, path) else {
        file.rewind().map_err(failed)?;
        return write_whole(path, |out| io::copy(&mut file, out).map(drop));
    };
    fs::rename(&part, path).map_err(|source| {
        let _ = fs::remove_file(&part);
        failed(source)
    })
}

/// Creates a file without a name in the folder of a file. Returns `None` if the file system has no such files, or if the file
/// could not get a name later.
#[cfg(target_os = "linux")]
fn unnamed_beside(path: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
    open_file(&file).symlink_metadata().is_ok().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn unnamed_beside(_: &Path) -> Option<File> {
    None
}

/// Gives a file without a name the temporary name of a file. Returns `None` if the system refuses.
#[cfg(target_os = "linux")]
fn named_part(file: &File, path: &Path) -> Option<PathBuf> {
    use rustix::fs::{AtFlags, CWD, linkat};
    loop {
        let part = next_part(path);
        match linkat(CWD, open_file(file), CWD, &part, AtFlags::SYMLINK_FOLLOW) {
            Err(Errno::EXIST) => {}
            named => return named.ok().map(|()| part),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn named_part(_: &File, _: &Path) -> Option<PathBuf> {
    None
}

/// Returns the path by which this process reaches an open file without a name.
#[cfg(target_os = "linux")]
fn open_file(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A file that is written under a temporary name until it is synced and renamed. A dropped file is renamed too,
/// so that evidence is not lost because something else failed.
#[derive(Debug)]
#[must_use]
pub struct PartFile {
    path: PathBuf,
    part: PathBuf,
    file: Option<File>,
    size: u64,
    digest: blake3::Hash,
}

/// Writes a file under a temporary name.
///
/// # Errors
/// Returns an error if the file cannot be written; nothing is left.
pub fn write_part(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<PartFile, FileError> {
    let mut out = PartWriter::create(path)?;
    match write(&mut out) {
        Ok(()) => out.finish(),
        Err(source) => {
            let _ = fs::remove_file(&out.part);
            Err(FileError::Io { doing: "write", path: path.to_owned(), source })
        }
    }
}

/// A file that is written bit by bit under a temporary name.
pub struct PartWriter {
    path: PathBuf,
    part: PathBuf,
    out: io::BufWriter<Hashing>,
}

impl PartWriter {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub fn create(path: &Path) -> Result<Self, FileError> {
        let (part, out) = create_part(path).map_err(FileError::io("write", path))?;
        let hashing = Hashing { out, hasher: blake3::Hasher::new() };
        Ok(Self { path: path.to_owned(), part, out: io::BufWriter::with_capacity(64 << 10, hashing) })
    }

    /// Returns the complete file, which has its temporary name until it is put in place.
    ///
    /// # Errors
    /// Returns an error if the rest cannot be written; nothing is left.
    pub fn finish(self) -> Result<PartFile, FileError> {
        let Self { path, part, out } = self;
        match out.into_inner() {
            Ok(Hashing { out, hasher }) => {
                Ok(PartFile { path, part, file: Some(out), size: hasher.count(), digest: hasher.finalize() })
            }
            Err(error) => {
                let _ = fs::remove_file(&part);
                Err(FileError::Io { doing: "write", path, source: error.into_error() })
            }
        }
    }
}

impl Write for PartWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The ending of temporary names.
const PART: &str = ".part";

/// Returns the next temporary name of a file. It has the ID of this process and a number, so that several processes can write
/// one file at the same time: the file that is put in place last stays.
fn next_part(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut part = path.file_name().unwrap_or_default().to_owned();
    part.push(format!(".{}-{}{PART}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(part)
}

/// Creates the temporary file of a file.
fn create_part(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let part = next_part(path);
        match File::create_new(&part) {
            // A process with the same ID left it, or writes it in another container.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (part, file)),
        }
    }
}

/// Returns the process that made a temporary file, from the file's name.
fn writer_of(name: &str) -> Option<Pid> {
    let (_, numbers) = name.strip_suffix(PART)?.rsplit_once('.')?;
    let (process, number) = numbers.split_once('-')?;
    number.parse::<u64>().ok()?;
    Pid::from_raw(process.parse().ok()?)
}

/// Removes the temporary files that processes left in a folder when they were killed. A file that cannot be removed stays.
pub fn remove_left_parts(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let writer = entry.file_name().to_str().and_then(writer_of);
        let has_ended = writer.is_some_and(|writer| test_kill_process(writer) == Err(Errno::SRCH));
        if has_ended && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs all files, and then renames each to its final name. This costs the file system little more than for one file.
///
/// # Errors
/// Returns an error if the files cannot be written. No final name has a partial file.
pub fn put_in_place<const N: usize>(mut parts: [PartFile; N]) -> Result<(), FileError> {
    for part in &mut parts {
        part.sync()?;
    }
    parts.iter().try_for_each(|part| part.name())
}

/// A writer that computes a digest.
struct Hashing {
    out: File,
    hasher: blake3::Hasher,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl PartFile {
    /// Returns the digest of the written content.
    pub fn digest(&self) -> String {
        self.digest.to_hex().to_string()
    }

    /// Returns the temporary path. The file is complete there, too.
    pub fn written(&self) -> &Path {
        &self.part
    }

    /// Returns the number of bytes that were written.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the metadata of the file that was written, also if its temporary name leads to another file now.
    ///
    /// # Errors
    /// Returns an error if the file was put in place, or the system refuses.
    pub fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.as_ref().map_or(Err(io::ErrorKind::NotFound.into()), File::metadata)
    }

    fn sync(&mut self) -> Result<(), FileError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        // A file without content has only a name, which is synced with its folder.
        if self.size == 0 {
            return Ok(());
        }
        file.sync_data().map_err(|source| self.failed(source))
    }

    fn name(&self) -> Result<(), FileError> {
        fs::rename(&self.part, &self.path).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> FileError {
        let _ = fs::remove_file(&self.part);
        FileError::Io { doing: "write", path: self.path.clone(), source }
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if self.file.is_some() && self.sync().is_ok() {
            let _ = self.name();
        }
    }
}

fn copy_synced(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// Links a file to another name, so that both share the content. If the file system differs or has no hard links, the file is
/// copied, and the copy is synced.
///
/// # Errors
/// Returns an error if the file can be neither linked nor copied.
pub fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| copy_synced(from, to))
}

/// Syncs a folder, so that the names in it are durable.
pub fn sync_folder(folder: &Path) -> Result<(), FileError> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(FileError::io("sync", folder))
}

/// The maximum length of a folder name in bytes. A longer name is cut and ends in a digest.
const MAX_NAME_BYTES: usize = 200;

/// Returns the folder name of a harness or a model: characters other than letters, digits, `.`, `_` and `-` are
/// percent-encoded.
///
/// # Errors
/// Returns an error if the name is `.` or `..`.
pub fn folder_name(name: &str) -> Result<String, FileError> {
    if name.is_empty() || name == "." || name == ".." {
        return Err(FileError::BadName(name.to_owned()));
    }
    let mut folder = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            folder.push(char::from(byte));
        } else {
            folder.push_str(&format!("%{byte:02X}"));
        }
    }
    if folder.len() > MAX_NAME_BYTES {
        let digest = blake3::hash(name.as_bytes()).to_hex();
        folder.truncate(MAX_NAME_BYTES - 17);
        folder.push('-');
        folder.push_str(&digest[..16]);
    }
    Ok(folder)
}

/// Returns the folders of a case's id; each `/` starts a subfolder.
///
/// # Errors
/// Returns an error if a part of the id cannot be a folder name.
pub fn case_folder(id: &str) -> Result<PathBuf, FileError> {
    id.split('/').map(folder_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_nested_and_bounded() {
        assert_eq!(folder_name("openai/gpt-5 x").unwrap(), "openai%2Fgpt-5%20x");
        assert_eq!(case_folder("fixing/off-by-one").unwrap(), PathBuf::from("fixing/off-by-one"));
        assert!(folder_name("..").is_err() && case_folder("a/../b").is_err() && case_folder("a//b").is_err());
        let long = folder_name(&"é".repeat(300)).unwrap();
        assert!(long.len() <= MAX_NAME_BYTES && long != folder_name(&"é".repeat(301)).unwrap());
        assert_eq!(folder_name("a#2").unwrap(), "a%232");
    }

    #[test]
    fn a_file_that_two_write_at_once_is_that_of_the_last() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.json");
        let [first, second] = ["first", "second"].map(|text| {
            let mut out = PartWriter::create(&path).unwrap();
            out.write_all(text.as_bytes()).unwrap();
            out
        });
        put_in_place([second.finish().unwrap()]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        put_in_place([first.finish().unwrap()]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_process_that_is_ended_while_it_writes_an_unnamed_file_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.html");
        let names = || fs::read_dir(root.path()).unwrap().count();
        let has_unnamed = unnamed_beside(&path).is_some();
        for text in ["first", "second"] {
            let before = names();
            let write = |out: &mut dyn Write| -> io::Result<()> {
                out.write_all(text.as_bytes())?;
                assert!(!has_unnamed || names() == before, "a temporary file has a name");
                Ok(())
            };
            write_unnamed(&path, write).unwrap();
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), (text, 1));
        }
        assert!(write_unnamed(&path, |_| Err(ErrorKind::Other.into())).is_err());
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("second", 1));
    }

    #[test]
    fn only_temporary_files_of_processes_that_ended_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let (ended, own) = (child.id(), std::process::id());
        let kept =
            [format!("a.json.{own}-0.part"), "a.part".to_owned(), format!("{ended}-0.part"), "a.json".to_owned()];
        for name in kept.iter().chain([&format!("a.json.{ended}-7.part")]) {
            fs::write(root.path().join(name), "").unwrap();
        }
        remove_left_parts(root.path());
        assert!(kept.iter().all(|name| root.path().join(name).exists()));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), kept.len());
    }
}

//! Files that a case sends with its first prompt: their kinds, and copies that an agent can read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::regular;

/// The maximum size of inline files in one prompt, in bytes; further files are sent as links, if the protocol
/// supports them.
pub const MAX_INLINE_BYTES: u64 = 8 << 20;

/// The folder of the copies, in the home of a trial.
pub const FOLDER: &str = "attachments";

/// A file that is sent with the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The file's name.
    pub name: String,
    /// The copy that the agent can read.
    pub copy: PathBuf,
    /// The kind of the file.
    pub kind: Kind,
    pub media_type: &'static str,
    pub content: Content,
}

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Image,
    /// Sound.
    Audio,
    /// A PDF document.
    Pdf,
    Text,
    /// Anything else.
    Other,
}

/// The content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text in UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl Content {
    /// Returns the length in bytes.
    pub fn size(&self) -> u64 {
        self.bytes().len() as u64
    }

    pub fn base64(&self) -> String {
        STANDARD.encode(self.bytes())
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }
}

impl Attached {
    /// Makes an attachment from a file's bytes.
    pub fn new(name: String, copy: PathBuf, bytes: Vec<u8>) -> Self {
        let content = match String::from_utf8(bytes) {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Bytes(error.into_bytes()),
        };
        let (kind, media_type) = match (by_name(Path::new(&name)), &content) {
            // The extension is that of a text file, but the content is not valid UTF-8.
            (Some((Kind::Text, media_type)), Content::Bytes(_)) => (Kind::Other, media_type),
            (Some(known), _) => known,
            (None, Content::Text(_)) => (Kind::Text, "text/plain"),
            (None, Content::Bytes(_)) => (Kind::Other, "application/octet-stream"),
        };
        Self { name, copy, kind, media_type, content }
    }

    /// Returns the URI of the copy.
    pub fn uri(&self) -> String {
        let mut uri = "file://".to_owned();
        for byte in self.copy.as_os_str().as_encoded_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(*byte as char),
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }
}

/// Returns the kind of a file and its media type, by its name.
pub fn by_name(path: &Path) -> Option<(Kind, &'static str)> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "png" => (Kind::Image, "image/png"),
        "jpg" | "jpeg" => (Kind::Image, "image/jpeg"),
        "gif" => (Kind::Image, "image/gif"),
        "webp" => (Kind::Image, "image/webp"),
        "wav" => (Kind::Audio, "audio/wav"),
        "mp3" => (Kind::Audio, "audio/mpeg"),
        "ogg" | "oga" | "opus" => (Kind::Audio, "audio/ogg"),
        "flac" => (Kind::Audio, "audio/flac"),
        "m4a" => (Kind::Audio, "audio/mp4"),
        "pdf" => (Kind::Pdf, "application/pdf"),
        "md" | "markdown" => (Kind::Text, "text/markdown"),
        "html" | "htm" => (Kind::Text, "text/html"),
        "csv" => (Kind::Text, "text/csv"),
        "json" => (Kind::Text, "application/json"),
        "xml" => (Kind::Text, "application/xml"),
        "yaml" | "yml" => (Kind::Text, "application/yaml"),
        "svg" => (Kind::Text, "image/svg+xml"),
        "txt" | "log" => (Kind::Text, "text/plain"),
        "zip" => (Kind::Other, "application/zip"),
        "gz" | "tgz" => (Kind::Other, "application/gzip"),
        _ => return None,
    })
}

/// Copies files into a new folder, and detects their kinds.
///
/// # Errors
/// Returns an error if a file cannot be read or copied.
pub fn copy(files: &[PathBuf], folder: &Path) -> io::Result<Vec<Attached>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    fs::create_dir_all(folder)?;
    let mut attached: Vec<Attached> = Vec::new();
    for (number, file) in files.iter().enumerate() {
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", file.display()));
        let bytes = regular::read(file).map_err(told)?;
        let own = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_free = |name: &String| attached.iter().all(|other| other.name != *name);
        let mut names = (number + 1..).map(|n| format!("{n}-{own}"));
        let name = Some(own.clone()).filter(is_free).or_else(|| names.find(is_free)).unwrap_or(own);
        let copy = folder.join(&name);
        fs::write(&copy, &bytes).map_err(told)?;
        attached.push(Attached::new(name, copy, bytes));
    }
    Ok(attached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_what_its_name_says_or_what_it_holds() {
        let of = |name: &str, bytes: &[u8]| {
            let file = Attached::new(name.to_owned(), "/x".into(), bytes.to_vec());
            (file.kind, file.media_type)
        };
        assert_eq!(of("a.PNG", b"x"), (Kind::Image, "image/png"));
        assert_eq!(of("a.rs", b"fn"), (Kind::Text, "text/plain"));
        assert_eq!(of("Makefile", b"all:"), (Kind::Text, "text/plain"));
        assert_eq!(of("a.txt", &[0xff, 0]), (Kind::Other, "text/plain"));
        assert_eq!(of("core", &[0xff, 0]), (Kind::Other, "application/octet-stream"));
    }

    #[test]
    fn files_of_one_name_do_not_take_each_others_place() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a", "b"] {
            fs::create_dir(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("x.txt"), folder).unwrap();
        }
        let files = [root.path().join("a/x.txt"), root.path().join("b/x.txt")];
        let attached = copy(&files, &root.path().join("out")).unwrap();
        assert_eq!((attached[0].name.as_str(), attached[1].name.as_str()), ("x.txt", "2-x.txt"));
        assert_eq!(fs::read_to_string(&attached[1].copy).unwrap(), "b");
        fs::write(root.path().join("a/3-x.txt"), "other").unwrap();
        let files = ["a/3-x.txt", "a/x.txt", "b/x.txt"].map(|file| root.path().join(file));
        let attached = copy(&files, &root.path().join("again")).unwrap();
        let names: Vec<&str> = attached.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["3-x.txt", "x.txt", "4-x.txt"]);
        assert_eq!(fs::read_to_string(&attached[0].copy).unwrap(), "other");
        let error = copy(&[root.path().join("gone")], &root.path().join("out")).unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
    }
}

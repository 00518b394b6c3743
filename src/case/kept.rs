//! All that a case keeps from its agent, by path and content: its own file, its reference solution, its hidden files, and the
//! files of its graders.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{Case, check};
use crate::grader::Grader;
use crate::regular;
use crate::workspace::walk::{Descend, walk};

mod shared_by_projects;

/// The size of the smallest content that is found in a file of the same name, in bytes without comments, blank lines and
/// surrounding white space: many files have a smaller one, such as a number, without being copies.
const MIN_NAMED_BYTES: usize = 16;

/// The size of the smallest content that is found by itself, in a file of any name or within a longer text: lines such as
/// `from __future__ import annotations` are in many files.
const MIN_ALONE_BYTES: usize = 64;

/// The size of the largest file whose content is searched in texts.
const MAX_SEARCHED_BYTES: u64 = 64 << 10;

/// The sizes of the files that are searched for texts of kept files.
pub const SEARCHED_BYTES: RangeInclusive<u64> = MIN_NAMED_BYTES as u64..=MAX_SEARCHED_BYTES;

/// The files that a case keeps from its agent. A file is read when a file of its size, or a text, is compared with it.
#[derive(Debug, Default)]
pub struct Kept {
    files: Vec<(Role, Arc<KeptFiles>)>,
    /// The files by the fingerprint of the beginning of their text.
    starts: OnceLock<HashMap<u64, Vec<Place>>>,
}

/// The place of a file: in `Kept::files`, and in the files there.
type Place = (usize, usize);

/// The role of a kept path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    /// The case's own file.
    Case,
    /// A script of the demo agent, or a solution that is one file.
    Own,
    /// The hidden folder, or a solution that is a folder, with its name.
    Folder(OsString),
    /// A file that a grader runs.
    RunByGrader,
    /// A file that graders only read, such as an expected file or a schema.
    ReadByGrader,
}

/// A file or a folder that cases keep from their agents, with its files. Only sizes and digests are in memory.
#[derive(Debug, Default)]
pub struct KeptFiles {
    /// The path of the file or of the folder.
    root: PathBuf,
    files: Vec<KeptFile>,
    /// Positions in `files`, by size in bytes.
    of_size: HashMap<u64, Vec<usize>>,
    /// Positions in `files`, by path in the folder.
    at: HashMap<PathBuf, usize>,
}

#[derive(Debug)]
struct KeptFile {
    /// The path in the folder. Empty if the root is the file.
    below: PathBuf,
    len: u64,
    content: OnceLock<Option<Content>>,
}

#[derive(Debug, Clone)]
struct Content {
    digest: blake3::Hash,
    /// The size without comments, blank lines and surrounding white space, at most.
    len_own: usize,
    /// The content as a text, if the file is small.
    text: Option<Text>,
}

/// The length and digest of the plain form of a text, by which it is found in other texts.
#[derive(Debug, Clone)]
struct Text {
    len: usize,
    digest: blake3::Hash,
    /// The fingerprints of its beginning and its end. Absent if it is too short to be found within another text.
    ends: Option<(u64, u64)>,
}

/// A kept file that a file or a text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a> {
    /// The evidence.
    pub by: ShownBy<'a>,
    /// The size of the kept file, in bytes.
    pub len: u64,
    /// The digest of the kept file.
    pub digest: blake3::Hash,
}

/// The evidence that a file is a copy of a kept file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownBy<'a> {
    /// It has the content of the case's own file, of a script beside it, or of its solution.
    Own,
    /// It has the content of a file in a kept folder, and is at this path below a folder of the same name.
    Place(&'a Path),
    /// It has the content of a file in a kept folder, or of a file that a grader runs.
    Content,
    /// It has the content of a file that graders only read. The case itself may give its agent such a file, for example to copy it.
    ContentOfRead,
}

impl Kept {
    /// Lists the files that a case keeps from its agent, without reading them.
    pub fn of(case: &Case) -> Self {
        let known = &case.known_files;
        let mut files = Vec::new();
        for path in case.kept_from_agent() {
            match path.file_name() {
                Some(name) if path.is_dir() => files.push((Role::Folder(name.to_owned()), known.kept(path))),
                Some(_) if path == case.file => files.push((Role::Case, known.kept(path))),
                Some(_) => files.push((Role::Own, known.kept(path))),
                None => {}
            }
        }
        let graders = case.graders.iter().map(Arc::as_ref);
        let (that_run, that_read): (Vec<&Grader>, Vec<&Grader>) =
            graders.partition(|grader| grader.kind.spec().runs_named_files());
        for (role, graders) in [(Role::RunByGrader, that_run), (Role::ReadByGrader, that_read)] {
            let named = check::files_of_graders(graders).filter(|path| path.is_file());
            files.extend(named.map(|path| (role.clone(), known.kept(path))));
        }
        Self { files, starts: OnceLock::new() }
    }

    /// Returns the kept files that a file at this path shows. With `alone`, the same content suffices if it is long enough, and a
    /// shorter one if the name is the same; otherwise, a file of a kept folder must lie at its path below a folder of the same
    /// name, and be as long, unless no workspace has a folder of this name by chance. `digest` is called if a kept file has the
    /// size of the file.
    ///
    /// # Errors
    /// Returns the error of `digest`.
    pub fn shown_by(
        &self,
        path: &Path,
        len: u64,
        alone: bool,
        digest: impl FnOnce() -> io::Result<blake3::Hash>,
    ) -> io::Result<Vec<Shown<'_>>> {
        let mut possible = Vec::new();
        for (role, kept) in &self.files {
            if !kept.of_size.contains_key(&len) {
                continue;
            }
            match role {
                Role::Case => possible.extend(kept.of_size(len).map(|file| (kept, file, ShownBy::Own, 0))),
                Role::Own => {
                    possible.extend(kept.of_size(len).map(|file| (kept, file, ShownBy::Own, MIN_NAMED_BYTES)));
                }
                Role::Folder(folder) => {
                    let in_place = kept.in_place(folder, path).filter(|file| file.len == len).filter_map(|file| {
                        let least = if is_own_name(folder) { Some(0) } else { kept.least(file, MIN_NAMED_BYTES) };
                        Some((kept, file, ShownBy::Place(&file.below), least?))
                    });
                    possible.extend(in_place);
                }
                Role::RunByGrader | Role::ReadByGrader => {}
            }
            if !alone || role.is_of_case() {
                continue;
            }
            for file in kept.of_size(len) {
                let is_named = kept.name(file) == path.file_name();
                let usual = if is_named { MIN_NAMED_BYTES } else { MIN_ALONE_BYTES };
                possible.extend(kept.least(file, usual).map(|least| (kept, file, role.shown_by_content(), least)));
            }
        }
        if possible.is_empty() {
            return Ok(Vec::new());
        }
        let digest = digest()?;
        let shown = possible.into_iter().filter(|(kept, file, _, least)| {
            file.content(&kept.root).is_some_and(|it| it.digest == digest && it.len_own >= *least)
        });
        Ok(shown.map(|(_, _, by, _)| Shown { by, len, digest }).collect())
    }

    /// Returns the kept files whose text is a part of this text, wherever the text is laid. The case's own file and a solution
    /// that is one file may also be the whole text if they are shorter. Line ends, and white space at the ends of lines and
    /// around the text, do not count.
    pub fn shown_in_text(&self, text: &[u8]) -> Vec<Shown<'_>> {
        let text = plain(text);
        let mut found: BTreeSet<Place> = BTreeSet::new();
        let starts = self.starts();
        if !starts.is_empty() {
            for (at, fingerprint) in fingerprints(&text).enumerate() {
                for place in starts.get(&fingerprint).into_iter().flatten() {
                    if !found.contains(place) && self.text(*place).is_some_and(|kept| kept.is_at(&text, at)) {
                        found.insert(*place);
                    }
                }
            }
        }
        let digest = blake3::hash(&text);
        let is_whole = |kept: &Text| kept.len >= MIN_NAMED_BYTES && kept.digest == digest;
        for (number, (_, kept)) in self.files.iter().enumerate().filter(|(_, (role, _))| role.is_of_case()) {
            let of_case = (0..kept.files.len()).map(|file| (number, file));
            found.extend(of_case.filter(|place| self.text(*place).is_some_and(is_whole)));
        }
        let shown = found.into_iter().filter_map(|place| {
            let (role, kept, file) = self.file(place)?;
            let by = role.shown_by_content();
            Some(Shown { by, len: file.len, digest: file.content(&kept.root)?.digest })
        });
        shown.collect()
    }

    /// Returns the files that can be found within a text, by the fingerprint of their beginning. They are read the first time.
    fn starts(&self) -> &HashMap<u64, Vec<Place>> {
        self.starts.get_or_init(|| {
            let mut starts: HashMap<u64, Vec<Place>> = HashMap::new();
            for (number, (role, kept)) in self.files.iter().enumerate() {
                for (at, file) in kept.files.iter().enumerate() {
                    let least = if role.is_of_case() { Some(0) } else { kept.least(file, MIN_ALONE_BYTES) };
                    let Some(least) = least.filter(|_| SEARCHED_BYTES.contains(&file.len)) else { continue };
                    let content = file.content(&kept.root).filter(|content| content.len_own >= least);
                    let text = content.and_then(|content| content.text.as_ref());
                    if let Some((first, _)) = text.and_then(|text| text.ends) {
                        starts.entry(first).or_default().push((number, at));
                    }
                }
            }
            starts
        })
    }

    fn file(&self, (number, file): Place) -> Option<(&Role, &KeptFiles, &KeptFile)> {
        let (role, kept) = self.files.get(number)?;
        Some((role, &**kept, kept.files.get(file)?))
    }

    fn text(&self, place: Place) -> Option<&Text> {
        let (_, kept, file) = self.file(place)?;
        file.text(&kept.root)
    }
}

impl Role {
    /// Returns true if a file of this role is the case's own: the same content shows it, whatever its name and place are.
    fn is_of_case(&self) -> bool {
        matches!(self, Role::Case | Role::Own)
    }

    /// Returns the evidence that the content of a file of this role is.
    fn shown_by_content<'a>(&self) -> ShownBy<'a> {
        match self {
            Role::Case | Role::Own => ShownBy::Own,
            Role::Folder(_) | Role::RunByGrader => ShownBy::Content,
            Role::ReadByGrader => ShownBy::ContentOfRead,
        }
    }
}

/// Returns true if a kept folder has a name like `app.hidden`, which no workspace has by chance, as `tests`.
fn is_own_name(folder: &OsStr) -> bool {
    Path::new(folder).extension().is_some()
}

impl KeptFiles {
    /// Lists the files of a kept path, without reading them. An empty file shows nothing.
    pub(super) fn list(path: &Path) -> Self {
        let mut kept = Self { root: path.to_owned(), ..Self::default() };
        match fs::metadata(path) {
            Ok(meta) if meta.is_file() => kept.add(PathBuf::new(), meta.len()),
            Ok(meta) if meta.is_dir() => {
                // What cannot be read is no file that could be compared.
                let _ = walk(path, |below, meta| {
                    if meta.is_file() {
                        kept.add(below.to_owned(), meta.len());
                    }
                    Descend::Enter
                });
            }
            Ok(_) | Err(_) => {}
        }
        kept
    }

    fn add(&mut self, below: PathBuf, len: u64) {
        if len > 0 {
            self.of_size.entry(len).or_default().push(self.files.len());
            self.at.insert(below.clone(), self.files.len());
            self.files.push(KeptFile { below, len, content: OnceLock::new() });
        }
    }

    fn of_size(&self, len: u64) -> impl Iterator<Item = &KeptFile> {
        self.of_size.get(&len).into_iter().flatten().filter_map(|number| self.files.get(*number))
    }

    /// Returns the files that are at their path below a folder of this name in this path.
    fn in_place(&self, folder: &OsStr, path: &Path) -> impl Iterator<Item = &KeptFile> {
        let mut components = path.components();
        let below = std::iter::from_fn(move || {
            components.find(|part| part.as_os_str() == folder)?;
            Some(components.as_path())
        });
        below.filter_map(move |below| self.files.get(*self.at.get(below)?))
    }

    /// Returns how much of its own a file must hold to be shown by its content, if `usual` is the least for other names.
    fn least(&self, file: &KeptFile, usual: usize) -> Option<usize> {
        let name = self.name(file).unwrap_or_default().to_string_lossy();
        shared_by_projects::least(&name, file.len, usual)
    }

    fn name<'a>(&'a self, file: &'a KeptFile) -> Option<&'a OsStr> {
        file.below.file_name().or_else(|| self.root.file_name())
    }
}

impl KeptFile {
    /// Returns what is known about the content of the file, or `None` if it can no longer be read.
    fn content(&self, root: &Path) -> Option<&Content> {
        let read = || match self.below.as_os_str().is_empty() {
            true => Content::read(root, self.len),
            false => Content::read(&root.join(&self.below), self.len),
        };
        self.content.get_or_init(|| read().ok()).as_ref()
    }

    fn text(&self, root: &Path) -> Option<&Text> {
        self.content(root)?.text.as_ref()
    }
}

impl Content {
    fn read(path: &Path, len: u64) -> io::Result<Self> {
        if len > MAX_SEARCHED_BYTES {
            let digest = regular::digest(regular::open(path)?)?;
            return Ok(Self { digest, len_own: usize::MAX, text: None });
        }
        let bytes = regular::read(path)?;
        let plain = plain(&bytes);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let len_own = shared_by_projects::len_without_comments(&name, &plain);
        Ok(Self { digest: blake3::hash(&bytes), len_own, text: Some(Text::of(&plain)) })
    }
}

impl Text {
    fn of(text: &[u8]) -> Self {
        let ends = text.first_chunk::<MIN_ALONE_BYTES>().zip(text.last_chunk::<MIN_ALONE_BYTES>());
        let ends = ends.map(|(first, last)| (fingerprint(first), fingerprint(last)));
        Self { len: text.len(), digest: blake3::hash(text), ends }
    }

    /// Returns true if the text is a part of another text, at this byte. Many texts begin alike, such as with a licence, so the
    /// end is compared before a digest is computed.
    fn is_at(&self, other: &[u8], at: usize) -> bool {
        let part = other.get(at..).and_then(|rest| rest.get(..self.len)).unwrap_or_default();
        let last = part.last_chunk::<MIN_ALONE_BYTES>().map(|last| fingerprint(last));
        last.is_some_and(|last| self.ends.is_some_and(|(_, end)| end == last)) && blake3::hash(part) == self.digest
    }
}

/// Returns a text in the form in which texts are compared: without a byte order mark, with newlines as line ends, and without
/// white space at the ends of lines and around the text.
fn plain(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut plain = Vec::with_capacity(text.len());
    for line in text.split(|byte| *byte == b'\n') {
        plain.extend_from_slice(line.trim_ascii_end());
        plain.push(b'\n');
    }
    plain.trim_ascii().to_vec()
}

/// The factor of the fingerprints.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The weight of a byte that leaves a fingerprint when the next one is added.
const WEIGHT_OF_LEAVING: u64 = FACTOR.wrapping_pow(MIN_ALONE_BYTES as u32);

/// Returns a number for some bytes. Equal bytes have equal numbers.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| with_byte(sum, *byte))
}

fn with_byte(sum: u64, byte: u8) -> u64 {
    sum.wrapping_mul(FACTOR).wrapping_add(u64::from(byte) + 1)
}

/// Returns the fingerprint of the [`MIN_ALONE_BYTES`] bytes from each byte of a text that has as many bytes behind it.
fn fingerprints(text: &[u8]) -> impl Iterator<Item = u64> {
    let first = text.first_chunk::<MIN_ALONE_BYTES>().map(|first| fingerprint(first));
    let steps = text.iter().zip(text.iter().skip(MIN_ALONE_BYTES));
    let others = steps.scan(first.unwrap_or_default(), |sum, (leaving, entering)| {
        *sum = with_byte(*sum, *entering).wrapping_sub((u64::from(*leaving) + 1).wrapping_mul(WEIGHT_OF_LEAVING));
        Some(*sum)
    });
    first.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "a line of the solution that no one else would write, and then the same line once more\n";

    /// Returns the kept files of a case with these files in its hidden folder `app.hidden`.
    fn kept(files: &[(&str, &str)]) -> (tempfile::TempDir, Kept) {
        kept_in("app.hidden", files)
    }

    fn kept_in(name: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Kept) {
        let folder = tempfile::tempdir().unwrap();
        let hidden = folder.path().join(name);
        for (below, text) in files {
            let path = hidden.join(below);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
        }
        let files = vec![(Role::Folder(name.into()), Arc::new(KeptFiles::list(&hidden)))];
        (folder, Kept { files, starts: OnceLock::new() })
    }

    fn shown<'a>(kept: &'a Kept, path: &str, text: &str, alone: bool) -> Vec<ShownBy<'a>> {
        let digest = || Ok(blake3::hash(text.as_bytes()));
        let shown = kept.shown_by(Path::new(path), text.len() as u64, alone, digest).unwrap();
        shown.into_iter().map(|it| it.by).collect()
    }

    #[test]
    fn a_small_content_shows_a_hidden_file_only_at_its_place_or_with_its_name() {
        let (_folder, kept) = kept(&[("a/t.txt", "4711\n"), ("b.txt", "the expected answer\n"), ("c.txt", ANSWER)]);
        assert!(shown(&kept, "x/t.txt", "4711\n", true).is_empty());
        assert_eq!(shown(&kept, "x/app.hidden/a/t.txt", "4711\n", false), [ShownBy::Place(Path::new("a/t.txt"))]);
        assert!(shown(&kept, "x/app.hidden/a/t.txt", "4712\n", true).is_empty());
        assert_eq!(shown(&kept, "x/b.txt", "the expected answer\n", true), [ShownBy::Content]);
        assert!(shown(&kept, "notes.md", "the expected answer\n", true).is_empty());
        assert_eq!(shown(&kept, "notes.md", ANSWER, true), [ShownBy::Content]);
        assert!(shown(&kept, "notes.md", ANSWER, false).is_empty());
    }

    #[test]
    fn in_a_folder_with_a_usual_name_a_place_shows_no_content_that_is_small_or_shared() {
        let answer = ("a/tests/x.py", ANSWER);
        let files = [("__init__.py", "\n"), ("one.txt", "1\n"), ("package.json", ANSWER), answer, ("x.py", ANSWER)];
        let (_folder, kept) = kept_in("tests", &files);
        for (below, text) in &files[..3] {
            assert!(shown(&kept, &format!("tests/{below}"), text, false).is_empty(), "{below}");
        }
        // Each folder of the name is looked at.
        let both = [ShownBy::Place(Path::new(answer.0)), ShownBy::Place(Path::new("x.py"))];
        assert_eq!(shown(&kept, "y/tests/a/tests/x.py", ANSWER, false), both);
        assert!(shown(&kept, "y/tests/b/x.py", ANSWER, false).is_empty());
        assert!(shown(&kept, "tests", ANSWER, false).is_empty());
    }

    #[test]
    fn a_solution_that_is_one_file_is_not_shown_by_a_small_one_but_the_case_is() {
        let folder = tempfile::tempdir().unwrap();
        let files = [("a.patch", Role::Own), ("a.yaml", Role::Case)].map(|(name, role)| {
            let path = folder.path().join(name);
            fs::write(&path, "x: 1\n").unwrap();
            (role, Arc::new(KeptFiles::list(&path)))
        });
        let kept = Kept { files: files.into(), starts: OnceLock::new() };
        assert_eq!(shown(&kept, "notes.md", "x: 1\n", false), [ShownBy::Own]);
    }

    #[test]
    fn a_file_that_graders_only_read_is_shown_by_what_is_laid_and_not_by_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("expected.txt");
        fs::write(&path, ANSWER).unwrap();
        let files = vec![(Role::ReadByGrader, Arc::new(KeptFiles::list(&path)))];
        let kept = Kept { files, starts: OnceLock::new() };
        assert_eq!(shown(&kept, "notes.md", ANSWER, true), [ShownBy::ContentOfRead]);
        assert!(shown(&kept, "expected.txt", ANSWER, false).is_empty());
        let within: Vec<ShownBy<'_>> =
            kept.shown_in_text(format!("Answer: {ANSWER}").as_bytes()).into_iter().map(|it| it.by).collect();
        assert_eq!(within, [ShownBy::ContentOfRead]);
    }

    #[test]
    fn a_file_without_the_size_of_a_kept_file_is_not_read() {
        let (_folder, kept) = kept(&[("b.txt", "the expected answer\n")]);
        let read = || Err(io::Error::other("read"));
        assert!(kept.shown_by(Path::new("b.txt"), 3, true, read).unwrap().is_empty());
        assert!(kept.shown_by(Path::new("b.txt"), 20, false, read).unwrap().is_empty());
        assert!(kept.shown_by(Path::new("b.txt"), 20, true, read).is_err());
    }

    #[test]
    fn files_that_many_projects_share_are_no_answers_unless_they_are_long() {
        let licence = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software\n";
        let long = "def answer():\n    return 4711\n\n".repeat(10);
        let module = "{\"type\": \"module\"}\n";
        let settings = "  \"strict\": true,\n".repeat(40);
        let commented = "# the header of a licence that every file of the project has\n\n".repeat(8);
        let files = [
            ("LICENSE-MIT", licence),
            ("package.json", module),
            ("x/conftest.py", "import a_fixture_of_all\n"),
            ("x/empty.py", commented.as_str()),
            ("tsconfig.json", settings.as_str()),
        ];
        let (_folder, kept) = kept(&[&files[..], &[("y/conftest.py", long.as_str())][..]].concat());
        for (path, text) in files {
            assert!(
                shown(&kept, path, text, true).is_empty() && kept.shown_in_text(text.as_bytes()).is_empty(),
                "{path}"
            );
        }
        assert_eq!(shown(&kept, "any.md", &long, true), [ShownBy::Content]);
        assert_eq!(kept.shown_in_text(long.as_bytes()).len(), 1);
    }

    #[test]
    fn a_text_shows_a_file_that_it_contains_whatever_its_line_ends_are() {
        let answer = format!("{ANSWER}  second line\n");
        let (_folder, kept) = kept(&[("b.txt", "the expected answer\n"), ("c.txt", &answer)]);
        let shown = |text: &str| kept.shown_in_text(text.as_bytes()).len();
        assert_eq!(shown("the expected answer"), 0);
        assert_eq!(shown(&format!("# Rules\n\nAnswer: {answer}\nBe brief.\n")), 1);
        assert_eq!(shown(&answer.replace('\n', "\r\n")), 1);
        assert_eq!(shown(&format!("\u{feff}{}\n\n", answer.replace('\n', "  \n"))), 1);
        assert_eq!(shown(&answer.replace("second", "third")), 0);
        assert_eq!(shown(ANSWER), 0);
        assert_eq!(shown(""), 0);
    }

    #[test]
    fn each_part_of_a_text_has_the_fingerprint_of_its_bytes() {
        let text = ANSWER.as_bytes();
        let parts: Vec<u64> = text.windows(MIN_ALONE_BYTES).map(fingerprint).collect();
        assert_eq!(fingerprints(text).collect::<Vec<_>>(), parts);
        assert_eq!(fingerprints(b"short").count(), 0);
    }
}

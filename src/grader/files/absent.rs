//! Searches a workspace for a path that must be absent, also behind links: an agent may move a folder and leave a link in its
//! place.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{has_no_signs, parts_of};
use crate::values::{Below, PathGlob};
use crate::workspace::link_targets::LinkTargets;

/// The maximum number of entries that are looked at in folders outside of the workspace, and behind links in a search that does not
/// recognise folders it has searched.
const MOST_BEHIND_LINKS: usize = 100_000;
/// The maximum number of links that the system follows in one path.
const MOST_LINKS: usize = 40;

/// The result of a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// No path matches.
    Nothing,
    /// A path that matches.
    Path(String),
    /// The reason why it is unknown if a path matches.
    Unknown(String),
}

/// A search in a workspace.
pub(super) struct Search<'a> {
    /// The workspace, without links in its path.
    pub workspace: &'a Path,
    pub glob: &'a PathGlob,
    /// Returns true if a path of the workspace, without links on its way, may be a link that the agent made or changed.
    pub is_of_agent: &'a dyn Fn(&str) -> bool,
}

/// A folder to search.
struct Folder {
    /// The path by which the search reached the folder, relative to the workspace.
    path: PathBuf,
    /// The path without links.
    real: PathBuf,
    positions: u64,
    /// The number of links in `path`.
    links: usize,
}

/// The end of a link.
enum Target {
    /// A folder, by its path without links.
    Folder(PathBuf),
    /// A file, or nothing in the workspace: no path leads further.
    Nothing,
    /// Nothing, at a place outside of the workspace, which may be another one for the agent.
    NothingOutside,
    /// Unknown, for this reason.
    Unknown(String),
}

impl Search<'_> {
    /// Returns the first path that matches. `enter` gets each folder that is searched behind a link, by its path without links.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be read.
    pub(super) fn find(&self, mut enter: impl FnMut(&Path)) -> io::Result<Found> {
        let text = self.glob.to_string();
        let parts = parts_of(&text);
        let positions = Positions::of(&parts, self.glob.is_folder());
        let start = positions.as_ref().map_or(0, Positions::start);
        let mut folder = Folder { path: PathBuf::new(), real: self.workspace.to_owned(), positions: start, links: 0 };
        let mut unknown = None;
        for (n, part) in parts.iter().take_while(|part| has_no_signs(part)).enumerate() {
            let (path, place) = (folder.path.join(part), folder.real.join(part));
            let meta = match place.symlink_metadata() {
                Err(error) if is_missing(&error) => return Ok(end(unknown)),
                meta => meta?,
            };
            if n + 1 == parts.len() {
                return Ok(Found::Path(path.to_string_lossy().into_owned()));
            }
            let positions = positions.as_ref().map_or(0, |it| it.after(folder.positions, part));
            if meta.is_dir() {
                folder = Folder { path, real: place, positions, links: folder.links };
                continue;
            }
            let target = if meta.is_symlink() { self.follow(&place) } else { Target::Nothing };
            let (real, why) = match target {
                Target::Folder(real) if real.starts_with(self.workspace) => (Some(real), None),
                Target::Folder(real) => (Some(real), Some("leads out of the workspace".to_owned())),
                Target::NothingOutside => (None, Some("leads out of the workspace".to_owned())),
                Target::Nothing => (None, None),
                Target::Unknown(why) => (None, Some(why)),
            };
            let why = why.filter(|_| self.may_be_of_agent(&place));
            unknown = unknown.or(why.map(|why| format!("the link `{}` {why}", path.display())));
            let Some(real) = real else { return Ok(end(unknown)) };
            folder = Folder { path, real, positions, links: folder.links + 1 };
        }
        self.find_below(folder, positions.as_ref(), unknown, &mut enter)
    }

    fn find_below(
        &self,
        start: Folder,
        positions: Option<&Positions>,
        mut unknown: Option<String>,
        enter: &mut impl FnMut(&Path),
    ) -> io::Result<Found> {
        // Without positions, two paths to one folder are never alike.
        let key = |folder: &Folder| {
            let path = if positions.is_none() { folder.path.clone() } else { PathBuf::new() };
            (folder.real.clone(), folder.positions, path)
        };
        let is_limited =
            |folder: &Folder| folder.links > 0 && (positions.is_none() || !folder.real.starts_with(self.workspace));
        let (mut searched, mut behind_links) = (BTreeSet::from([key(&start)]), 0_usize);
        let mut folders = vec![start];
        while let Some(folder) = folders.pop() {
            if is_limited(&folder) && behind_links > MOST_BEHIND_LINKS {
                unknown.get_or_insert_with(|| format!("more than {MOST_BEHIND_LINKS} files lie behind links"));
                continue;
            }
            if folder.links > 0 {
                enter(&folder.real);
            }
            let mut entries = fs::read_dir(&folder.real)?.collect::<io::Result<Vec<_>>>()?;
            entries.sort_by_key(DirEntry::file_name);
            behind_links += if is_limited(&folder) { entries.len() } else { 0 };
            let mut below = Vec::new();
            for entry in entries {
                let path = folder.path.join(entry.file_name());
                let text = path.to_string_lossy().into_owned();
                if self.glob.is_match(&text) {
                    return Ok(Found::Path(text));
                }
                let kind = entry.file_type()?;
                let real = match kind.is_symlink() {
                    true if positions.is_none() && folder.links >= MOST_LINKS => None,
                    true => self.folder_behind(&text, &entry.path(), &mut unknown),
                    false => kind.is_dir().then(|| entry.path()),
                };
                let Some(real) = real else { continue };
                let name = entry.file_name();
                let positions = positions.map_or(0, |it| it.after(folder.positions, &name.to_string_lossy()));
                let next = Folder { path, real, positions, links: folder.links + usize::from(kind.is_symlink()) };
                if searched.insert(key(&next)) {
                    below.push(next);
                }
            }
            folders.extend(below.into_iter().rev());
        }
        Ok(end(unknown))
    }

    /// Returns the folder to search behind a link, if a path in it may match. What lies outside of the workspace is searched only
    /// if the agent made the link.
    fn folder_behind(&self, path: &str, place: &Path, unknown: &mut Option<String>) -> Option<PathBuf> {
        if self.glob.lies_below(path) == Below::None {
            return None;
        }
        match self.follow(place) {
            Target::Folder(real) => (real.starts_with(self.workspace) || self.may_be_of_agent(place)).then_some(real),
            Target::Unknown(why) => {
                if self.may_be_of_agent(place) {
                    unknown.get_or_insert_with(|| format!("the link `{path}` {why}"));
                }
                None
            }
            Target::Nothing | Target::NothingOutside => None,
        }
    }

    /// Returns true if the agent may have made a link. A link outside of the workspace is met only behind one of the agent, or
    /// if the glob names the way to it.
    fn may_be_of_agent(&self, place: &Path) -> bool {
        place.strip_prefix(self.workspace).map_or(true, |path| (self.is_of_agent)(&path.to_string_lossy()))
    }

    fn follow(&self, link: &Path) -> Target {
        let real = link.canonicalize();
        let is_within = real.as_ref().is_ok_and(|real| real.starts_with(self.workspace));
        let targets = if is_within { LinkTargets::default() } else { LinkTargets::of(link) };
        match real {
            _ if targets.is_unknown => Target::Unknown("may lead elsewhere for another process".to_owned()),
            Ok(real) if real.is_dir() => Target::Folder(real),
            Ok(_) => Target::Nothing,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Target::Nothing,
            Err(error) if is_missing(&error) => match targets.places.iter().all(|it| it.starts_with(self.workspace)) {
                true => Target::Nothing,
                false => Target::NothingOutside,
            },
            Err(error) => Target::Unknown(format!("could not be followed: {error}")),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn end(unknown: Option<String>) -> Found {
    unknown.map_or(Found::Nothing, Found::Unknown)
}

/// The parts of a glob, of which `None` is `**`. The positions that a path reaches are bits: the same paths match below two
/// folders if their positions are the same.
struct Positions(Vec<Option<PathGlob>>);

impl Positions {
    /// Returns the parts, or `None` if the glob has too many, or alternatives with several folders.
    fn of(parts: &[&str], is_folder: bool) -> Option<Self> {
        let part = |part: &&str| match *part {
            "**" => Some(None),
            part => part.parse::<PathGlob>().ok().map(Some),
        };
        let mut parts = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
        parts.extend(is_folder.then_some(None));
        (parts.len() < 63).then_some(Self(parts))
    }

    fn start(&self) -> u64 {
        self.beside(1)
    }

    /// Returns the positions after a further part of a path.
    fn after(&self, positions: u64, name: &str) -> u64 {
        let mut next = 0;
        for (n, part) in self.0.iter().enumerate().filter(|(n, _)| positions & (1_u64 << n) != 0) {
            match part {
                None => next |= 1 << n,
                Some(glob) if glob.is_match(name) => next |= 1 << (n + 1),
                Some(_) => {}
            }
        }
        self.beside(next)
    }

    /// Returns the positions with those that are reached because `**` matches no folder.
    fn beside(&self, mut positions: u64) -> u64 {
        for n in self.0.iter().enumerate().filter(|(_, part)| part.is_none()).map(|(n, _)| n) {
            positions |= (positions & (1 << n)) << 1;
        }
        positions
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a workspace and a folder beside it, and the search in the workspace.
    struct Stand(tempfile::TempDir);

    impl Stand {
        fn new(files: &[&str], links: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            for file in files {
                let place = root.path().join(file);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::write(place, "").unwrap();
            }
            for (link, target) in links {
                let place = root.path().join("w").join(link);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                symlink(target, place).unwrap();
            }
            Self(root)
        }

        fn find(&self, glob: &str, is_of_agent: bool) -> Found {
            let workspace = self.0.path().join("w").canonicalize().unwrap();
            let glob: PathGlob = glob.parse().unwrap();
            Search { workspace: &workspace, glob: &glob, is_of_agent: &|_| is_of_agent }.find(|_| {}).unwrap()
        }
    }

    #[test]
    fn links_on_the_way_are_followed() {
        let links = [
            ("build", "../out/build"),
            ("src/s", "../d"),
            ("gone", "../out/none"),
            ("inner", "none"),
            ("tool", "../out/file"),
            ("process", "/proc/self/cwd"),
            ("circle", "circle"),
        ];
        let stand = Stand::new(&["out/build/secret.key", "out/file", "w/d/a.orig", "w/src/b"], &links);
        let path = |path: &str| Found::Path(path.to_owned());
        for (glob, expected) in [
            ("build/secret.key", path("build/secret.key")),
            ("b*/*.key", path("build/secret.key")),
            ("src/**/*.orig", path("src/s/a.orig")),
            ("**/s/*.orig", path("src/s/a.orig")),
            ("{src/s,x/y}/a.orig", path("src/s/a.orig")),
            ("src/*.orig", Found::Nothing),
            ("inner/x", Found::Nothing),
            ("circle/x", Found::Nothing),
            ("tool/x", Found::Nothing),
            ("b*/*.pem", Found::Nothing),
        ] {
            assert_eq!(stand.find(glob, true), expected, "{glob}");
        }
        for glob in ["build/none", "gone/x", "process/x", "p*/x"] {
            assert!(matches!(stand.find(glob, true), Found::Unknown(_)), "{glob}");
            assert_eq!(stand.find(glob, false), Found::Nothing, "{glob}");
        }
        // What was outside before the agent is not the agent's, unless the glob names the link.
        assert_eq!(stand.find("b*/*.key", false), Found::Nothing);
        assert_eq!(stand.find("build/*.key", false), path("build/secret.key"));
    }

    #[test]
    fn folders_that_link_to_each_other_are_searched_once() {
        let names: Vec<String> = (0..12).map(|n| format!("p{n}")).collect();
        let mut links = Vec::new();
        for one in &names {
            links.extend(names.iter().map(|other| (format!("{one}/{other}"), format!("../{other}"))));
        }
        let links: Vec<(&str, &str)> = links.iter().map(|(link, target)| (link.as_str(), target.as_str())).collect();
        let stand = Stand::new(&["w/p3/here"], &links);
        for glob in ["**/*.orig", "**/p1/**/p2/x", "p1/*/*/x", "p*/"] {
            let expected = if glob == "p*/" { Found::Path("p0".to_owned()) } else { Found::Nothing };
            assert_eq!(stand.find(glob, true), expected, "{glob}");
        }
        assert_eq!(stand.find("**/p2/p3/here", true), Found::Path("p2/p3/here".to_owned()));
    }
}

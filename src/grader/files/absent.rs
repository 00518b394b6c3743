//! Searches a workspace for a path that must be absent, also behind links: an agent may move a folder and leave a link in its
//! place.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{has_no_signs, parts_of};
use crate::judgement::Judgement;
use crate::paths::MAX_LINKS;
use crate::values::{Below, PathGlob};
use crate::workspace::link_targets::LinkTargets;

/// The maximum number of entries that are looked at in folders outside of the workspace, and behind links in a search that does not
/// recognise folders it has searched.
const MAX_ENTRIES_BEHIND_LINKS: usize = 100_000;
/// The maximum number of globs that a glob with alternatives is expanded to.
const MAX_EXPANDED_GLOBS: usize = 64;

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
    /// Returns whether a path of the workspace, without links on its way, is a link that the agent made or changed.
    pub is_of_agent: &'a dyn Fn(&str) -> Judgement,
}

struct Folder {
    /// The path by which the search reached the folder, relative to the workspace.
    path: PathBuf,
    /// The path without links.
    real: PathBuf,
    positions: u64,
    /// The number of links in `path`.
    links: usize,
    /// True if the agent may have made one of these links. Only known if the search has no positions.
    may_be_of_agent: bool,
    /// True if the folder lies behind a link out of the workspace of which it is unknown whether the agent made it.
    is_doubtful: bool,
}

/// The end of a link.
enum Target {
    /// A folder, by its path without links.
    Folder(PathBuf),
    /// A file, or nothing in the workspace: no path leads further. With the places to which the link may lead.
    Nothing(BTreeSet<PathBuf>),
    /// Nothing, at a place outside of the workspace, where the agent may have found a folder: it had another `/tmp`, or its home.
    NothingOutside(BTreeSet<PathBuf>),
    /// Unknown, for this reason.
    Unknown(String),
}

impl Search<'_> {
    /// Returns the first path that matches. `enter` gets each folder that is searched behind a link, by its path without links, and
    /// each place to which a link that leads to no folder may lead.
    ///
    /// # Errors
    /// Returns an error if a folder cannot be read.
    pub(super) fn find(&self, mut enter: impl FnMut(&Path)) -> io::Result<Found> {
        let text = self.glob.to_string();
        let parts = parts_of(&text);
        let positions = Positions::of(self.glob);
        let start = positions.as_ref().map_or(0, Positions::start);
        let mut folder = Folder {
            path: PathBuf::new(),
            real: self.workspace.to_owned(),
            positions: start,
            links: 0,
            may_be_of_agent: false,
            is_doubtful: false,
        };
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
                folder = Folder { path, real: place, positions, ..folder };
                continue;
            }
            let target = if meta.is_symlink() { self.follow(&place) } else { Target::Nothing(BTreeSet::new()) };
            if let Target::Nothing(places) | Target::NothingOutside(places) = &target {
                places.iter().for_each(|place| enter(place));
            }
            let (real, why) = match target {
                Target::Folder(real) if real.starts_with(self.workspace) => (Some(real), None),
                Target::Folder(real) => (Some(real), Some("leads out of the workspace".to_owned())),
                Target::NothingOutside(_) => (None, Some("leads out of the workspace".to_owned())),
                Target::Nothing(_) => (None, None),
                Target::Unknown(why) => (None, Some(why)),
            };
            let may_be_of_agent = meta.is_symlink() && self.is_made_by_agent(&folder, &place).may_be_true();
            let why = why.filter(|_| may_be_of_agent);
            unknown = unknown.or(why.map(|why| format!("the link `{}` {why}", path.display())));
            let Some(real) = real else { return Ok(end(unknown)) };
            let may_be_of_agent = folder.may_be_of_agent || may_be_of_agent;
            folder = Folder { path, real, positions, links: folder.links + 1, may_be_of_agent, ..folder };
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
            (folder.real.clone(), folder.positions, folder.is_doubtful, path)
        };
        let is_limited =
            |folder: &Folder| folder.links > 0 && (positions.is_none() || !folder.real.starts_with(self.workspace));
        let (mut searched, mut behind_links) = (BTreeSet::from([key(&start)]), 0_usize);
        let mut folders = vec![start];
        while let Some(folder) = folders.pop() {
            if is_limited(&folder) && behind_links > MAX_ENTRIES_BEHIND_LINKS {
                // Without a link of the agent, what lies in the workspace is found on its way without links.
                if folder.may_be_of_agent || !folder.real.starts_with(self.workspace) {
                    unknown
                        .get_or_insert_with(|| format!("more than {MAX_ENTRIES_BEHIND_LINKS} files lie behind links"));
                }
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
                    if !folder.is_doubtful {
                        return Ok(Found::Path(text));
                    }
                    unknown.get_or_insert_with(|| {
                        format!("`{text}` lies behind a link out of the workspace that may be the agent's")
                    });
                }
                let kind = entry.file_type()?;
                let is_link = kind.is_symlink();
                let real = match is_link {
                    true if positions.is_none() && folder.links >= MAX_LINKS => None,
                    true => self.folder_behind(&folder, &text, &entry.path(), &mut unknown, enter),
                    false => kind.is_dir().then(|| entry.path()),
                };
                let Some(real) = real else { continue };
                let by_agent = || self.is_made_by_agent(&folder, &entry.path());
                let leads_out = is_link && !real.starts_with(self.workspace);
                let is_doubtful = folder.is_doubtful || (leads_out && by_agent().is_unknown());
                let may_be = || is_link && positions.is_none() && by_agent().may_be_true();
                let may_be_of_agent = folder.may_be_of_agent || may_be();
                let name = entry.file_name();
                let positions = positions.map_or(0, |it| it.after(folder.positions, &name.to_string_lossy()));
                let links = folder.links + usize::from(is_link);
                let next = Folder { path, real, positions, links, may_be_of_agent, is_doubtful };
                if searched.insert(key(&next)) {
                    below.push(next);
                }
            }
            folders.extend(below.into_iter().rev());
        }
        Ok(end(unknown))
    }

    /// Returns the folder to search behind a link, if a path in it may match. What lies outside of the workspace is searched only
    /// if the agent may have made the link.
    fn folder_behind(
        &self,
        folder: &Folder,
        path: &str,
        place: &Path,
        unknown: &mut Option<String>,
        enter: &mut impl FnMut(&Path),
    ) -> Option<PathBuf> {
        if self.glob.lies_below(path) == Below::None {
            return None;
        }
        let may_be_of_agent = || self.is_made_by_agent(folder, place).may_be_true();
        let why = match self.follow(place) {
            Target::Folder(real) => return (real.starts_with(self.workspace) || may_be_of_agent()).then_some(real),
            Target::Unknown(why) => why,
            Target::NothingOutside(places) => {
                places.iter().for_each(|place| enter(place));
                "leads to nothing outside of the workspace".to_owned()
            }
            Target::Nothing(places) => {
                places.iter().for_each(|place| enter(place));
                return None;
            }
        };
        if may_be_of_agent() {
            unknown.get_or_insert_with(|| format!("the link `{path}` {why}"));
        }
        None
    }

    /// Returns whether the agent made a link in a folder. A link outside of the workspace is met only behind one of the agent, or
    /// if the glob names the way to it.
    fn is_made_by_agent(&self, folder: &Folder, link: &Path) -> Judgement {
        match link.strip_prefix(self.workspace) {
            Ok(path) => (self.is_of_agent)(&path.to_string_lossy()),
            Err(_) if folder.is_doubtful => Judgement::Unknown,
            Err(_) => Judgement::True,
        }
    }

    fn follow(&self, link: &Path) -> Target {
        let real = link.canonicalize();
        let is_within = real.as_ref().is_ok_and(|real| real.starts_with(self.workspace));
        let targets = if is_within { LinkTargets::default() } else { LinkTargets::of(link) };
        match real {
            _ if targets.is_unknown => Target::Unknown("may lead elsewhere for another process".to_owned()),
            Ok(real) if real.is_dir() => Target::Folder(real),
            Ok(real) => Target::Nothing(BTreeSet::from([real])),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Target::Nothing(targets.places),
            Err(error) if is_missing(&error) => match targets.places.iter().all(|it| it.starts_with(self.workspace)) {
                true => Target::Nothing(targets.places),
                false => Target::NothingOutside(targets.places),
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

/// Returns the globs that together match what a glob with alternatives of several folders (`{src/gen,lib}/*`) matches. Returns
/// `None` if they are too many, or if the glob has brackets or backslashes, which may make braces plain characters.
fn alternatives(glob: String) -> Option<Vec<String>> {
    let (mut plain, mut left) = (Vec::new(), vec![glob]);
    while let Some(glob) = left.pop() {
        match braces_with_folders(&glob) {
            None => plain.push(glob),
            Some(_) if glob.contains(['[', '\\']) => return None,
            Some((open, close)) => {
                let mut depth = 0;
                let ends = |c: char| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    c == ',' && depth == 0
                };
                let texts = glob[open + 1..close].split(ends);
                left.extend(texts.map(|text| format!("{}{text}{}", &glob[..open], &glob[close + 1..])));
            }
        }
        if plain.len() + left.len() > MAX_EXPANDED_GLOBS {
            return None;
        }
    }
    Some(plain)
}

/// Returns the places of the first braces that hold a `/`.
fn braces_with_folders(glob: &str) -> Option<(usize, usize)> {
    let (mut depth, mut open) = (0_usize, 0);
    for (n, c) in glob.char_indices() {
        match c {
            '{' => {
                open = if depth == 0 { n } else { open };
                depth += 1;
            }
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && glob[open..n].contains('/') {
                    return Some((open, n));
                }
            }
            _ => {}
        }
    }
    None
}

/// A part of a glob.
enum Part {
    /// `**`.
    Folders,
    Name(PathGlob),
    /// The end of the glob.
    End,
}

/// The parts of one or more globs, each with its end. The positions that a path reaches are bits: the same paths match below two
/// folders if their positions are the same.
struct Positions(Vec<Part>);

impl Positions {
    /// Returns the parts, or `None` if the glob has too many.
    fn of(glob: &PathGlob) -> Option<Self> {
        let (text, is_folder) = (glob.to_string(), glob.is_folder());
        Self::of_all(std::slice::from_ref(&text), is_folder).or_else(|| Self::of_all(&alternatives(text)?, is_folder))
    }

    fn of_all(globs: &[String], is_folder: bool) -> Option<Self> {
        let mut parts = Vec::new();
        for glob in globs {
            for part in parts_of(glob) {
                parts.push(match part {
                    "**" => Part::Folders,
                    part => Part::Name(part.parse().ok()?),
                });
            }
            parts.extend(is_folder.then_some(Part::Folders));
            parts.push(Part::End);
        }
        (parts.len() <= 64).then_some(Self(parts))
    }

    fn start(&self) -> u64 {
        let ends = self.0.iter().enumerate().filter(|(_, part)| matches!(part, Part::End)).map(|(n, _)| n + 1);
        let behind = ends.filter(|n| *n < self.0.len());
        self.beside(behind.fold(1, |positions, n| positions | (1_u64 << n)))
    }

    /// Returns the positions after a further part of a path.
    fn after(&self, positions: u64, name: &str) -> u64 {
        let mut next = 0;
        for (n, part) in self.0.iter().enumerate().filter(|(n, _)| positions & (1_u64 << n) != 0) {
            match part {
                Part::Folders => next |= 1_u64 << n,
                Part::Name(glob) if glob.is_match(name) => next |= 1_u64 << (n + 1),
                Part::Name(_) | Part::End => {}
            }
        }
        self.beside(next)
    }

    /// Returns the positions with those that are reached because `**` matches no folder.
    fn beside(&self, mut positions: u64) -> u64 {
        for (n, _) in self.0.iter().enumerate().filter(|(_, part)| matches!(part, Part::Folders)) {
            positions |= (positions & (1_u64 << n)) << 1;
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

        fn find(&self, glob: &str, is_of_agent: Judgement) -> Found {
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
            assert_eq!(stand.find(glob, Judgement::True), expected, "{glob}");
        }
        for glob in ["build/none", "gone/x", "g*/x", "process/x", "p*/x"] {
            assert!(matches!(stand.find(glob, Judgement::True), Found::Unknown(_)), "{glob}");
            assert_eq!(stand.find(glob, Judgement::False), Found::Nothing, "{glob}");
        }
        // What was outside before the agent is not the agent's, unless the glob names the link.
        assert_eq!(stand.find("b*/*.key", Judgement::False), Found::Nothing);
        assert_eq!(stand.find("build/*.key", Judgement::False), path("build/secret.key"));
        // It may be the agent's, or not.
        let found = stand.find("b*/*.key", Judgement::Unknown);
        assert!(matches!(&found, Found::Unknown(why) if why.contains("`build/secret.key`")), "{found:?}");
        assert_eq!(stand.find("b*/*.pem", Judgement::Unknown), Found::Nothing);
        assert_eq!(stand.find("build/*.key", Judgement::Unknown), path("build/secret.key"));
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
        for glob in ["**/*.orig", "{p0/p1,p2}/**/*.orig", "**/p1/**/p2/x", "p1/*/*/x", "p*/"] {
            let expected = if glob == "p*/" { Found::Path("p0".to_owned()) } else { Found::Nothing };
            assert_eq!(stand.find(glob, Judgement::True), expected, "{glob}");
        }
        assert_eq!(stand.find("**/p2/p3/here", Judgement::True), Found::Path("p2/p3/here".to_owned()));
        assert_eq!(stand.find("{x/y,p2/p3}/here", Judgement::True), Found::Path("p2/p3/here".to_owned()));
    }

    #[test]
    fn alternatives_of_several_folders_become_globs() {
        let sorted = |glob: &str| {
            alternatives(glob.to_owned()).map(|mut globs| {
                globs.sort();
                globs
            })
        };
        assert_eq!(sorted("{src/gen,lib}/*.{a,b}").unwrap(), ["lib/*.{a,b}", "src/gen/*.{a,b}"]);
        assert_eq!(sorted("{a,{b/c,d}}/{x,y/z}").unwrap().len(), 6);
        assert_eq!(sorted("{a/[b],c}"), None);
        assert_eq!(sorted(&"{a/b,c}".repeat(7)), None);
    }
}

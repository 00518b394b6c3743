//! The settings of test runners and build tools in the folders above the engine's own, and their changes: an agent without a
//! sandbox can write there, and what it leaves could decide how its work is graded.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Access, access};

use crate::workspace::stamp::{Stamp, Stamper};
use crate::workspace::walk::{Descend, Unread, walk};

/// Files and folders that test runners, build tools and languages look for in each folder above the one in which they run. The list
/// is for folders in which other files stay: those of the user, and what setup left.
const SETTINGS: [&str; 98] = [
    ".cargo",
    "Cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "setup.py",
    "pyproject.toml",
    "conftest.py",
    "__init__.py",
    "package.json",
    "node_modules",
    ".npmrc",
    ".swcrc",
    "jsconfig.json",
    "deno.json",
    "bunfig.toml",
    "go.mod",
    "go.work",
    "pom.xml",
    ".mvn",
    "gradle.properties",
    "Gemfile",
    ".rspec",
    "composer.json",
    ".tool-versions",
    ".python-version",
    ".node-version",
    ".ruby-version",
    "mise.toml",
    ".mise.toml",
    ".envrc",
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    "rustfmt.toml",
    ".rustfmt.toml",
    "clippy.toml",
    ".clippy.toml",
    ".clang-format",
    ".git",
    "global.json",
    "Directory.Build.props",
    "Directory.Build.targets",
    "deno.jsonc",
    ".pnp.cjs",
    ".yarnrc.yml",
    ".env",
    "mypy.ini",
    ".mypy.ini",
    "pnpm-workspace.yaml",
    ".coveragerc",
    "nose.cfg",
    ".yarnrc",
    ".ignore",
    ".rgignore",
    ".yamllint",
    ".yamllint.yaml",
    ".yamllint.yml",
    ".golangci.yml",
    ".golangci.yaml",
    ".golangci.toml",
    ".golangci.json",
    ".rubocop.yml",
    ".clang-tidy",
    ".editorconfig",
    ".shellcheckrc",
    "biome.json",
    "biome.jsonc",
    "pyrightconfig.json",
    "ty.toml",
    "pylintrc",
    ".pylintrc",
    ".isort.cfg",
    "dprint.json",
    ".oxlintrc.json",
    "uv.toml",
    "dune-project",
    "Directory.Packages.props",
    "Directory.Build.rsp",
    "nuget.config",
    ".rbenv-vars",
    "dune-workspace",
    "nim.cfg",
    "config.nims",
    ".venv",
    "justfile",
    ".justfile",
    "Rakefile",
    "rakefile.rb",
    "Taskfile.yml",
    "Taskfile.yaml",
    "Taskfile.dist.yml",
    "Taskfile.dist.yaml",
];
/// The beginnings of the names of further settings.
const STARTS: [&str; 23] = [
    ".mocharc",
    ".babelrc",
    ".postcssrc",
    ".nycrc",
    ".c8rc",
    "jest.config.",
    "vitest.",
    "vite.config.",
    "ava.config.",
    "babel.config.",
    "postcss.config.",
    "tsconfig.",
    "settings.gradle",
    "build.gradle",
    ".eslintrc",
    "eslint.config.",
    ".prettierrc",
    "prettier.config.",
    "playwright.config.",
    "webdriver",
    "karma.conf.",
    ".stylelintrc",
    "stylelint.config.",
];

/// Other spellings of names in [`SETTINGS`] that tools read.
const SPELLINGS: [&str; 3] = ["NuGet.Config", "NuGet.config", "Justfile"];
/// The usual ends of the names that begin as in [`STARTS`].
const ENDS: [&str; 11] = ["js", "cjs", "mjs", "ts", "cts", "mts", "json", "jsonc", "yml", "yaml", "kts"];

/// The maximum number of entries of a folder of settings, such as `node_modules`, that are looked at. Of a larger folder, it is
/// unknown whether something in it changed.
const MAX_ENTRIES: usize = 100_000;

/// The settings in the folders above the engine's own, as they were before its first agent. They belong to the user, so nothing is
/// removed there. The stamps are in memory: an agent could forge a file or a time that it can write to.
#[derive(Debug, Clone)]
pub struct SettingsAbove {
    folders: Arc<Vec<Folder>>,
    /// Settings that changed while an earlier engine played trials of the run. Each counts as long as it exists: a user who removes
    /// what an agent left can go on.
    earlier: BTreeSet<PathBuf>,
}

#[derive(Debug)]
struct Folder {
    /// The path, without links.
    path: PathBuf,
    /// Absent if the folder can be neither listed nor written to.
    settings: Option<Settings>,
}

#[derive(Debug)]
struct Settings {
    /// False if the folder cannot be listed. Then only files of usual names are known.
    is_listed: bool,
    marks: Marks,
}

/// The settings in a folder by their names, each with its files.
type Marks = BTreeMap<OsString, Vec<Mark>>;

/// The stamps of what is in a folder, each with that of the file to which a link leads. They are made of metadata alone: a folder
/// in memory can be large.
type Entries = BTreeMap<PathBuf, (Stamp, Option<Stamp>)>;

/// Identifies a version of a file.
#[derive(Debug, PartialEq, Eq)]
enum Mark {
    Absent,
    /// The stamp of a file, a link or a folder, and the stamp of the target of a link.
    There(Stamp, Option<Box<Stamp>>),
    /// The stamp of a folder or of a link to one, the stamp of the target of a link, and the stamps of the folder's entries.
    Folder(Stamp, Option<Box<Stamp>>, Entries),
    /// A folder with unknown entries: it is too large, or it can be written to and not read.
    UnknownFolder,
    /// The system does not show the file.
    Unknown(ErrorKind),
}

impl SettingsAbove {
    /// Looks at the folders above the engine's own.
    ///
    /// # Errors
    /// Returns an error if the engine's folder does not exist.
    pub fn of(temporary: &Path) -> io::Result<Self> {
        // Programs look in the folders that are really above their own.
        let real = temporary.canonicalize()?;
        let folder = |path: &Path| Folder { path: path.to_owned(), settings: settings_in(path).ok() };
        Ok(Self { folders: Arc::new(real.ancestors().skip(1).map(folder).collect()), earlier: BTreeSet::new() })
    }

    /// Counts paths as changed if they are in the folders above, or such folders: earlier results of a resumed run name them. What
    /// an agent left there would otherwise be taken for the user's.
    pub fn changed_earlier<'a>(mut self, paths: impl IntoIterator<Item = &'a String>) -> Self {
        let is_above = |path: &&Path| {
            self.folders.iter().any(|folder| folder.path == **path || Some(folder.path.as_path()) == path.parent())
        };
        let found = paths.into_iter().map(|path| Path::new(path.as_str())).filter(is_above).map(Path::to_owned);
        self.earlier.extend(found);
        self
    }

    /// Counts settings as changed if their state last changed within a span of time, in seconds since 1970: an agent ran then, and
    /// no result states what it left above its workspace. No user can set the time of such a change.
    pub fn changed_within(mut self, since: i64, until: Option<i64>) -> Self {
        let is_within = |meta: &Metadata| meta.ctime() >= since && until.is_none_or(|until| meta.ctime() <= until);
        for Folder { path, settings } in &*self.folders {
            let names = settings.iter().flat_map(|settings| settings.marks.keys());
            let changed = names.filter(|name| files(path, name).iter().any(|file| has_changed(file, &is_within)));
            self.earlier.extend(changed.map(|name| path.join(name)));
        }
        self
    }

    /// Returns the paths of the settings that were made, changed or removed since, and the folders in which this is unknown.
    pub(super) fn changed(&self) -> Vec<String> {
        let mut changed = Vec::new();
        for Folder { path, settings } in &*self.folders {
            let now = settings_in(path);
            match (settings, &now) {
                (Some(before), Ok(now)) if before.is_listed == now.is_listed => {
                    let names: BTreeSet<&OsString> = before.marks.keys().chain(now.marks.keys()).collect();
                    let differ = names.into_iter().filter(|name| {
                        let [before, now] = [&before.marks, &now.marks].map(|marks| marks.get(*name));
                        before != now || now.is_some_and(|marks| marks.contains(&Mark::UnknownFolder))
                    });
                    changed.extend(differ.map(|name| path.join(name)));
                }
                // The agent may not write there either.
                (None, Err(_)) if access(path, Access::WRITE_OK).is_err() => {}
                _ => changed.push(path.clone()),
            }
            let is_there = |earlier: &&PathBuf| match &now {
                // The settings in it that changed are unknown.
                Ok(now) if *earlier == path => !now.is_listed || !now.marks.is_empty(),
                Ok(now) => earlier.file_name().is_some_and(|name| now.marks.contains_key(name)),
                Err(_) => true,
            };
            let of_folder = self.earlier.iter().filter(|earlier| *earlier == path || earlier.parent() == Some(&**path));
            let others: Vec<PathBuf> =
                of_folder.filter(is_there).filter(|earlier| !changed.contains(earlier)).cloned().collect();
            changed.extend(others);
        }
        changed.iter().map(|path| path.display().to_string()).collect()
    }
}

/// Returns the settings in a folder of the user, without `.git`: other programs make repositories there, too.
fn settings_in(folder: &Path) -> io::Result<Settings> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // A user who may write there can make files, and find them by their names.
        Err(_) if access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok() => {
            return Ok(Settings { is_listed: false, marks: marks(folder, usual_names()) });
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if is_setting(&name) {
            names.push(name);
        }
    }
    Ok(Settings { is_listed: true, marks: marks(folder, names) })
}

/// Returns the file names that are looked for in a folder that cannot be listed.
fn usual_names() -> Vec<OsString> {
    let mut names: Vec<OsString> = SETTINGS.iter().chain(&SPELLINGS).map(OsString::from).collect();
    for start in STARTS {
        if start.ends_with('.') {
            names.extend(ENDS.map(|end| OsString::from(format!("{start}{end}"))));
        } else {
            names.push(start.into());
            names.extend(ENDS.map(|end| OsString::from(format!("{start}.{end}"))));
        }
    }
    names.extend(ENDS.map(|end| OsString::from(format!("vitest.config.{end}"))));
    names
}

/// Returns the settings of these names that exist in a folder.
fn marks(folder: &Path, names: Vec<OsString>) -> Marks {
    let (mut found, mut stamper) = (Marks::new(), Stamper::default());
    for name in names.into_iter().filter(|name| name != ".git") {
        let marks: Vec<Mark> = files(folder, &name).iter().map(|file| Mark::of(file, &mut stamper)).collect();
        if marks.iter().any(|mark| *mark != Mark::Absent) {
            found.insert(name, marks);
        }
    }
    found
}

/// Returns the paths that a setting consists of.
fn files(folder: &Path, name: &OsStr) -> Vec<PathBuf> {
    let path = folder.join(name);
    // Programs write other files there, such as caches.
    match name == ".cargo" {
        true => vec![path.join("config.toml"), path.join("config")],
        false => vec![path],
    }
}

/// Returns true if the last status change of a setting, of the target of a link, or of an entry of a folder is within a time.
/// Also returns true if this is unknown.
fn has_changed(path: &Path, is_within: &dyn Fn(&Metadata) -> bool) -> bool {
    let Ok(own) = path.symlink_metadata() else { return false };
    let target = path.metadata();
    if is_within(&own) || target.as_ref().is_ok_and(is_within) {
        return true;
    }
    let mut found = false;
    target.is_ok_and(|target| target.is_dir()) && (!visit(path, |_, meta| found |= is_within(meta)) || found)
}

/// Calls `see` for everything in a folder of settings. Returns false if something was not seen.
fn visit(folder: &Path, mut see: impl FnMut(&Path, &Metadata)) -> bool {
    let mut count = 0;
    let walked = walk(folder, |path, meta| {
        count += 1;
        if count > MAX_ENTRIES {
            return Descend::Skip;
        }
        see(path, meta);
        Descend::Enter
    });
    // An agent cannot write there either.
    let is_closed = |path: &Path| access(path, Access::WRITE_OK).is_err();
    let is_seen = match walked {
        Ok(left) => left.iter().all(|(path, why)| matches!(why, Unread::Refused(_)) && is_closed(&folder.join(path))),
        Err(_) => is_closed(folder),
    };
    is_seen && count <= MAX_ENTRIES
}

impl Mark {
    fn of(path: &Path, stamper: &mut Stamper) -> Self {
        match path.symlink_metadata() {
            Ok(meta) => {
                let target = if meta.is_symlink() { path.canonicalize().ok() } else { None };
                let target = target.and_then(|target| Some((target.symlink_metadata().ok()?, target)));
                let is_folder = target.as_ref().map_or(&meta, |(meta, _)| meta).is_dir();
                let target = target.map(|(meta, target)| Box::new(stamper.stamp(&target, &meta)));
                let own = stamper.stamp(path, &meta);
                if is_folder { Self::of_folder(path, own, target) } else { Self::There(own, target) }
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Self::Absent,
            Err(error) => Self::Unknown(error.kind()),
        }
    }

    fn of_folder(path: &Path, own: Stamp, target: Option<Box<Stamp>>) -> Self {
        let mut entries = Entries::new();
        let is_seen = visit(path, |name, meta| {
            let target = if meta.is_symlink() { path.join(name).metadata().ok() } else { None };
            entries.insert(name.to_owned(), (Stamp::of(meta), target.as_ref().map(Stamp::of)));
        });
        if is_seen { Self::Folder(own, target, entries) } else { Self::UnknownFolder }
    }
}

/// Returns true for the name of a file or folder in which test runners, build tools or languages look for settings.
pub(super) fn is_setting(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    // Some tools read their settings under a name in any case, such as `NuGet.Config`.
    SETTINGS.iter().any(|setting| setting.eq_ignore_ascii_case(&name))
        || STARTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::os::unix::fs::symlink;
    use std::thread::sleep;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn settings_are_known_by_their_names_in_any_case() {
        for name in ["NuGet.Config", "nuget.config", "Rakefile", "Justfile", ".venv", "tsconfig.base.json"] {
            assert!(is_setting(OsStr::new(name)), "{name}");
        }
        assert!(!is_setting(OsStr::new("notes.txt")));
    }

    #[test]
    fn settings_of_usual_names_are_found_in_a_folder_that_cannot_be_listed() {
        let names = usual_names();
        assert!(names.iter().all(|name| is_setting(name)), "{names:?}");
        let root = tempfile::tempdir().unwrap();
        for name in ["pytest.ini", "jest.config.ts", ".mocharc.cjs", ".eslintrc", "vitest.config.mts"] {
            fs::write(root.path().join(name), "").unwrap();
        }
        assert_eq!(marks(root.path(), names), settings_in(root.path()).unwrap().marks);
    }

    #[test]
    fn a_path_that_changed_earlier_counts_if_it_is_above() {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().canonicalize().unwrap();
        fs::create_dir_all(above.join("shared/in")).unwrap();
        let path = |name: &str| above.join(name).display().to_string();
        let earlier =
            [path("package.json"), path("shared/package.json"), path("shared/in/x"), "../setup.cfg".to_owned()];
        fs::write(above.join("package.json"), "{}").unwrap();
        fs::write(above.join("shared/package.json"), "{}").unwrap();
        let settings = SettingsAbove::of(&above.join("shared/in")).unwrap().changed_earlier(&earlier);
        assert_eq!(settings.changed(), [&*earlier[1], &*earlier[0]]);
        // A path counts once.
        fs::write(above.join("package.json"), "{ }").unwrap();
        assert_eq!(settings.changed().iter().filter(|path| **path == earlier[0]).count(), 1);
        // What was removed before the engine began decides nothing.
        fs::remove_file(above.join("package.json")).unwrap();
        let settings = SettingsAbove::of(&above.join("shared/in")).unwrap().changed_earlier(&earlier);
        assert_eq!(settings.changed(), earlier[1..2]);
    }

    #[test]
    fn a_setting_counts_whose_state_changed_while_an_agent_ran() {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().canonicalize().unwrap();
        fs::create_dir_all(above.join("shared")).unwrap();
        fs::create_dir_all(above.join("node_modules/u")).unwrap();
        let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        for name in ["package.json", "node_modules/u/index.js"] {
            File::create(above.join(name)).unwrap().set_times(old).unwrap();
        }
        let changed = |since, until| {
            let found = SettingsAbove::of(&above.join("shared")).unwrap().changed_within(since, until).changed();
            let names = found.iter().filter_map(|path| Path::new(path).strip_prefix(&above).ok());
            names.map(|name| name.display().to_string()).collect::<Vec<_>>()
        };
        let now = above.join("package.json").metadata().unwrap().ctime();
        assert_eq!(changed(now - 60, None), ["node_modules", "package.json"]);
        assert_eq!(changed(now - 60, Some(now + 60)).len(), 2);
        assert!(changed(now + 60, None).is_empty() && changed(now - 60, Some(now - 30)).is_empty());
    }

    #[test]
    fn a_setting_of_cargo_counts_under_both_of_its_names() {
        for name in ["config", "config.toml", "registry"] {
            let root = tempfile::tempdir().unwrap();
            let shared = root.path().join("shared");
            fs::create_dir_all(root.path().join(".cargo")).unwrap();
            fs::create_dir(&shared).unwrap();
            let settings = SettingsAbove::of(&shared).unwrap();
            fs::write(root.path().join(".cargo").join(name), "").unwrap();
            let found = settings.changed();
            let of_cargo = root.path().canonicalize().unwrap().join(".cargo").display().to_string();
            assert_eq!(found.contains(&of_cargo), name != "registry", "{name}: {found:?}");
        }
    }

    /// Returns the names of the settings that `act` changes in a folder with a link, of which the engine gets the path of the link.
    fn changed(act: impl FnOnce(&Path)) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().canonicalize().unwrap().join("above");
        fs::create_dir_all(above.join("shared/.git")).unwrap();
        fs::create_dir(above.join("node_modules")).unwrap();
        fs::write(above.join("node_modules/old"), "old").unwrap();
        for name in ["tox.ini", "target", "notes.txt"] {
            fs::write(above.join(name), "old").unwrap();
        }
        symlink("target", above.join("setup.cfg")).unwrap();
        fs::create_dir(root.path().join("links")).unwrap();
        symlink("../above/shared", root.path().join("links/shared")).unwrap();
        let settings = SettingsAbove::of(&root.path().join("links/shared")).unwrap();
        // File systems count time in steps of a few milliseconds.
        sleep(Duration::from_millis(30));
        act(&above);
        let changed = settings.changed();
        let names = changed.iter().filter_map(|path| Path::new(path).strip_prefix(&above).ok());
        names.map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn a_setting_that_is_made_changed_or_removed_in_the_real_folder_is_noticed_whatever_its_time() {
        let old = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        let backdate = |path: PathBuf| File::options().write(true).open(path).unwrap().set_times(old).unwrap();
        let none = Vec::<String>::new();
        assert_eq!(changed(|_| {}), none);
        assert_eq!(changed(|above| fs::write(above.join("notes.txt"), "new").unwrap()), none);
        assert_eq!(changed(|above| fs::write(above.join("node_modules/a"), "new").unwrap()), ["node_modules"]);
        assert_eq!(changed(|above| fs::write(above.join("node_modules/old"), "new").unwrap()), ["node_modules"]);
        let made = |above: &Path| {
            fs::write(above.join("package.json"), "{}").unwrap();
            backdate(above.join("package.json"));
        };
        assert_eq!(changed(made), ["package.json"]);
        let written = |above: &Path| {
            fs::write(above.join("tox.ini"), "new").unwrap();
            backdate(above.join("tox.ini"));
        };
        assert_eq!(changed(written), ["tox.ini"]);
        assert_eq!(changed(|above| fs::remove_file(above.join("tox.ini")).unwrap()), ["tox.ini"]);
        assert_eq!(changed(|above| fs::write(above.join("target"), "new").unwrap()), ["setup.cfg"]);
        // A folder that is gone cannot be looked at.
        let moved = |above: &Path| fs::rename(above, above.with_file_name("else")).unwrap();
        assert_eq!(changed(moved), [""]);
    }
}

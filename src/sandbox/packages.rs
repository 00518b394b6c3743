//! Finds the files that a program needs besides its own to start in bubblewrap: its package, its interpreter, its
//! virtual environment.
//!
//! A program from npm is a link to a script in a package, which loads its siblings and is run by `node`; a
//! program from a Python virtual environment is a script whose interpreter is a link to another installation.
//! All of that is found on the disk, by rules that are not specific to any agent.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::command_line::is_shell;
use crate::process::find;

/// The number of bytes of a script that are read.
const HEAD: u64 = 64 << 10;
/// The maximum number of files that are followed from one to the next.
const MAX_FILES: usize = 64;

/// The files that a program needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// Folders and files, none of which is below another.
    pub mounts: Vec<PathBuf>,
    /// Links outside these folders, with their targets. Programs search for their own files relative to the target of
    /// a link.
    pub links: Vec<(PathBuf, PathBuf)>,
}

/// Returns the files that a program needs, except files that the sandbox contains anyway (`seen`).
pub fn of_program(
    program: &Path,
    path: Option<&str>,
    home: Option<&Path>,
    seen: &dyn Fn(&Path) -> bool,
) -> ProgramFiles {
    let mut found = Search { path, home, seen, followed: HashSet::new(), parts: ProgramFiles::default() };
    found.follow(program);
    let ProgramFiles { mounts, mut links } = found.parts;
    links.retain(|(link, _)| !mounts.iter().any(|mount| link.starts_with(mount)));
    links.sort();
    links.dedup();
    ProgramFiles { mounts, links }
}

/// Returns the folders of the package to which a file belongs that is not a program, such as a script in an argument.
pub fn of_file(file: &Path, home: Option<&Path>, seen: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Search { path: None, home, seen, followed: HashSet::new(), parts: ProgramFiles::default() };
    for name in names(file) {
        found.package(&name);
    }
    found.parts.mounts
}

struct Search<'a> {
    path: Option<&'a str>,
    home: Option<&'a Path>,
    seen: &'a dyn Fn(&Path) -> bool,
    followed: HashSet<PathBuf>,
    parts: ProgramFiles,
}

impl Search<'_> {
    fn add(&mut self, path: &Path) {
        let too_much = path.components().count() < 3 || self.home.is_some_and(|home| home.starts_with(path));
        let there = (self.seen)(path) || self.parts.mounts.iter().any(|known| path.starts_with(known));
        if !too_much && !there && path.exists() {
            self.parts.mounts.retain(|known| !known.starts_with(path));
            self.parts.mounts.push(path.to_owned());
        }
    }

    /// Adds a program, by each of its names, and its interpreter.
    fn follow(&mut self, program: &Path) {
        if self.followed.len() >= MAX_FILES || !self.followed.insert(program.to_owned()) {
            return;
        }
        let names = names(program);
        for name in &names {
            match fs::read_link(name) {
                Ok(target) if !(self.seen)(name) && name.exists() => self.parts.links.push((name.clone(), target)),
                Ok(_) => {}
                Err(_) => self.add(name),
            }
            self.package(name);
        }
        let Some(real) = names.last() else { return };
        let mut head = Vec::new();
        let read = fs::File::open(real).and_then(|file| file.take(HEAD).read_to_end(&mut head));
        if read.is_err() || !head.starts_with(b"#!") {
            return;
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let first = text.lines().next().unwrap_or_default().to_owned();
        let Some(interpreter) = self.interpreter(&first) else { return };
        match interpreter.file_name().and_then(OsStr::to_str).unwrap_or_default() {
            shell if is_shell(shell) => self.wrapper(&text, &names),
            "node" | "bun" | "deno" | "nodejs" | "tsx" => self.script_package(real),
            _ => {}
        }
        self.follow(&interpreter);
    }

    /// Returns the program that a script's first line names.
    fn interpreter(&self, line: &str) -> Option<PathBuf> {
        let mut words = line.strip_prefix("#!")?.split_ascii_whitespace();
        let program = PathBuf::from(words.next()?);
        if program.file_name() != Some(OsStr::new("env")) {
            return Some(program);
        }
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
        self.on_path(name)
    }

    /// Returns the program with this name. If it is a shim, which only starts another program that it finds through
    /// the user's home, a program of the system is preferred.
    fn on_path(&self, name: &str) -> Option<PathBuf> {
        let first = find(name, Path::new("/"), self.path)?;
        let real = first.canonicalize().ok()?;
        let is_shim =
            !real.file_name()?.to_string_lossy().starts_with(name) || first.iter().any(|part| part == "shims");
        if !is_shim {
            return Some(first);
        }
        let folders = std::env::split_paths(self.path?);
        let of_system = folders.filter(|folder| (self.seen)(folder)).map(|folder| folder.join(name));
        Some(of_system.into_iter().find(|file| file.is_file()).unwrap_or(first))
    }

    /// Adds the installation that a file belongs to, according to its path.
    fn package(&mut self, file: &Path) {
        if let Some(modules) = outermost(file, "node_modules") {
            // The complete folder: packages find their dependencies beside themselves and in the folders above.
            self.add(&modules);
        }
        let Some(folder) = file.parent() else { return };
        let Some(root) = folder.parent().filter(|_| folder.ends_with("bin") || folder.ends_with("Scripts")) else {
            return;
        };
        let configuration = fs::read_to_string(root.join("pyvenv.cfg"));
        if let Ok(text) = configuration {
            self.add(root);
            self.linked_sources(root);
            let home = text.lines().find_map(|line| line.split_once('=').filter(|(key, _)| key.trim() == "home"));
            if let Some((_, home)) = home {
                self.python(Path::new(home.trim()));
            }
        } else if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python")) {
            self.python(folder);
        }
    }

    /// Adds a Python installation, by the folder of its programs: the interpreter loads its library from beside that
    /// folder.
    fn python(&mut self, programs: &Path) {
        for programs in [Some(programs.to_owned()), programs.canonicalize().ok()].into_iter().flatten() {
            let Some(prefix) = programs.parent() else { continue };
            let library = fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
            if library.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("python")) {
                self.add(prefix);
            }
        }
    }

    /// Adds packages that a virtual environment loads from their sources, as `pip install -e` records them.
    fn linked_sources(&mut self, root: &Path) {
        let libraries = fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
        for packages in libraries.map(|entry| entry.path().join("site-packages")) {
            let files = fs::read_dir(packages).into_iter().flatten().flatten().map(|entry| entry.path());
            for file in files.filter(|file| file.extension() == Some(OsStr::new("pth"))) {
                let text = fs::read_to_string(file).unwrap_or_default();
                text.lines()
                    .map(str::trim)
                    .filter(|line| line.starts_with('/'))
                    .for_each(|line| self.add(Path::new(line)));
            }
        }
    }

    /// Adds the package of a script that is not in a `node_modules`, such as a linked package.
    fn script_package(&mut self, script: &Path) {
        if outermost(script, "node_modules").is_some() {
            return;
        }
        let Some(root) = script.ancestors().skip(1).find(|folder| folder.join("package.json").is_file()) else {
            return;
        };
        self.add(root);
        // Several packages may share dependencies in a folder above them all.
        for above in root.ancestors().skip(1) {
            self.add(&above.join("node_modules"));
        }
    }

    /// Adds the programs that a shell script starts, as far as its text shows them.
    fn wrapper(&mut self, text: &str, names: &[PathBuf]) {
        for path in ABSOLUTE.captures_iter(text).filter_map(|found| found.get(1)) {
            let path = Path::new(path.as_str());
            if is_started(path) {
                self.follow(path);
            } else if path.is_dir() {
                self.package(&path.join("x"));
            }
        }
        for below in RELATIVE.captures_iter(text).filter_map(|found| found.get(1)) {
            let folders = names.iter().filter_map(|name| name.parent());
            let files: Vec<PathBuf> = folders.map(|folder| lexical(&folder.join(below.as_str()))).collect();
            files.iter().filter(|file| is_started(file)).for_each(|file| self.follow(file));
        }
        for name in EXECUTED.captures_iter(text).filter_map(|found| found.get(1)) {
            if let Some(file) = self.on_path(name.as_str()) {
                self.follow(&file);
            }
        }
    }
}

#[allow(clippy::unwrap_used, reason = "the patterns are constants")]
static ABSOLUTE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"(?:^|[\s"'=:])(/[^\s"'$:;()<>|&]+)"#).unwrap());
/// `$basedir/x`, `"${DIR}"/x`, `$(dirname "$0")/x`.
#[allow(clippy::unwrap_used, reason = "the patterns are constants")]
static RELATIVE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?:\$\{?\w+\}?|dirname[^)\n]*\))"?/([^\s"'$;()<>|&]+)"#).unwrap());
#[allow(clippy::unwrap_used, reason = "the patterns are constants")]
static EXECUTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?m)\bexec\s+([A-Za-z0-9_][\w.+-]*)").unwrap());

/// Returns true if a file that a script names is a program or a script. Data files are excluded, because they could be
/// any file of the user.
fn is_started(file: &Path) -> bool {
    let is_script =
        file.extension().and_then(OsStr::to_str).is_some_and(|end| matches!(end, "js" | "cjs" | "mjs" | "py"));
    file.is_file() && (is_script || rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Returns every path by which a file is reached, link after link, the real path last.
fn names(file: &Path) -> Vec<PathBuf> {
    let mut names = vec![lexical(file)];
    while names.len() < 40 {
        let Some(last) = names.last() else { break };
        let Ok(target) = fs::read_link(last) else { break };
        let next = lexical(&last.parent().unwrap_or(Path::new("/")).join(target));
        if names.contains(&next) {
            break;
        }
        names.push(next);
    }
    // A folder in the path may be a link as well.
    if let Ok(real) = file.canonicalize()
        && names.last() != Some(&real)
    {
        names.push(real);
    }
    names
}

/// Returns the path without `.` and `..`.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the part of a path up to the first folder with this name.
fn outermost(path: &Path, folder: &str) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for part in path.parent()?.components() {
        found.push(part);
        if part.as_os_str() == folder {
            return Some(found);
        }
    }
    None
}

/// Returns the interpreter that a script's first line names by its path, if it exists.
pub fn interpreter_of(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    fs::File::open(script).and_then(|file| file.take(4096).read_to_end(&mut head)).ok()?;
    let text = String::from_utf8_lossy(&head);
    let path = PathBuf::from(text.lines().next()?.strip_prefix("#!")?.split_ascii_whitespace().next()?);
    path.exists().then_some(path)
}

/// Returns the paths in a text that exist on this machine, for example the paths in the error of a program that could
/// not start.
pub fn named_in(text: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for path in ABSOLUTE.captures_iter(text).filter_map(|found| found.get(1)) {
        let path = PathBuf::from(path.as_str().trim_end_matches(['.', ',', '`', ']', '}']));
        if path.components().count() > 2 && !found.contains(&path) && path.exists() {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Disk(tempfile::TempDir);

    impl Disk {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn write(&self, path: &str, text: &str) -> PathBuf {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }

        fn link(&self, path: &str, target: &str) -> PathBuf {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(target, &path).unwrap();
            path
        }

        fn needs(&self, program: &Path, path: &str) -> Vec<String> {
            let path = format!("{}:/usr/bin:/bin", self.at(path).display());
            let seen = |path: &Path| path.starts_with("/usr") || path.starts_with("/bin");
            let parts = of_program(program, Some(&path), Some(&self.at("home")), &seen);
            let links = parts.links.into_iter().map(|(link, _)| link);
            let found: Vec<PathBuf> = parts.mounts.into_iter().chain(links).collect();
            let root = self.at("");
            let mut found: Vec<String> = found
                .iter()
                .map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().trim_end_matches('/').to_owned())
                .collect();
            found.sort();
            found
        }
    }

    #[test]
    fn a_package_of_npm_needs_its_siblings_and_its_interpreter() {
        let disk = Disk::new();
        disk.write("home/.nvm/node/bin/node", "ELF");
        disk.write("home/.npm/lib/node_modules/@x/agent/cli.js", "#!/usr/bin/env -S node --no-warnings\n");
        let program = disk.link("home/.npm/bin/agent", "../lib/node_modules/@x/agent/cli.js");
        let expected = ["home/.npm/bin/agent", "home/.npm/lib/node_modules", "home/.nvm/node/bin/node"];
        assert_eq!(disk.needs(&program, "home/.nvm/node/bin"), expected);
    }

    #[test]
    fn a_linked_package_needs_its_root_and_what_lies_above_it() {
        let disk = Disk::new();
        disk.write("monorepo/packages/agent/package.json", "{}");
        disk.write("monorepo/node_modules/other/package.json", "{}");
        disk.write("monorepo/packages/agent/dist/cli.js", "#!/usr/bin/node\n");
        let program = disk.link("home/bin/agent", "../../monorepo/packages/agent/dist/cli.js");
        assert_eq!(disk.needs(&program, "x"), ["home/bin/agent", "monorepo/node_modules", "monorepo/packages/agent"]);
        // A `package.json` in the home is not a package: everything in the home would be mounted.
        disk.write("home/package.json", "{}");
        let program = disk.write("home/tools/x.js", "#!/usr/bin/node\n");
        assert_eq!(disk.needs(&program, "x"), ["home/tools/x.js"]);
    }

    #[test]
    fn a_virtual_environment_needs_the_installation_that_it_was_made_from() {
        let disk = Disk::new();
        disk.write("home/python/3.12.1/bin/python3.12", "ELF");
        disk.write("home/python/3.12.1/lib/python3.12/os.py", "");
        disk.link("home/python/3.12", "3.12.1");
        let home = disk.at("home/python/3.12/bin");
        disk.write("home/tools/vibe/pyvenv.cfg", &format!("home = {}\nversion = 3.12.1\n", home.display()));
        let interpreter = disk.at("home/python/3.12/bin/python3.12");
        disk.link("home/tools/vibe/bin/python", &interpreter.display().to_string());
        let shebang = format!("#!{}\n", disk.at("home/tools/vibe/bin/python").display());
        disk.write("home/tools/vibe/bin/vibe", &shebang);
        let sources = disk.write("sources/module.py", "");
        let pth = format!("import x\n{}\n", sources.parent().unwrap().display());
        disk.write("home/tools/vibe/lib/python3.12/site-packages/linked.pth", &pth);
        let program = disk.link("home/bin/vibe", "../tools/vibe/bin/vibe");
        let expected = ["home/bin/vibe", "home/python/3.12", "home/python/3.12.1", "home/tools/vibe", "sources"];
        assert_eq!(disk.needs(&program, "x"), expected);
    }

    #[test]
    fn a_wrapper_needs_what_it_starts() {
        let disk = Disk::new();
        disk.write("deep/runtime/bin/node", "ELF");
        disk.write("store/node_modules/.pnpm/agent/cli.js", "#!/usr/bin/env node\n");
        let direct = disk.write("native/agent", "ELF");
        let text = format!(
            "#!/bin/sh\nbasedir=$(dirname \"$0\")\nexport NODE_PATH=\"{}\"\nif [ -x x ]; then exec \"$basedir/../store/node_modules/.pnpm/agent/cli.js\" \"$@\"; fi\nexec node x\n{} \"$@\"\n",
            disk.at("store/node_modules").display(),
            direct.display()
        );
        let program = disk.write("bin/agent", &text);
        let expected = ["bin/agent", "deep/runtime/bin/node", "native/agent", "store/node_modules"];
        assert_eq!(disk.needs(&program, "deep/runtime/bin"), expected);
    }

    #[test]
    fn links_in_a_circle_and_programs_that_are_not_there_need_nothing() {
        let disk = Disk::new();
        let circle = disk.link("a", "b");
        disk.link("b", "a");
        assert_eq!(disk.needs(&circle, "x"), [""; 0]);
        assert_eq!(disk.needs(&disk.at("gone"), "x"), [""; 0]);
    }

    #[test]
    fn paths_in_an_error_are_those_that_are_there() {
        let disk = Disk::new();
        let there = disk.write("lib/there.js", "");
        let text = format!("Error: Cannot find module '{}'.\n at /not/there.js:3, /usr", there.display());
        assert_eq!(named_in(&text), [there]);
    }
}

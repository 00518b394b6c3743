//! The vandal's changes to a workspace. It imitates success in several ways, because a case may be deceived by only
//! one of them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use strum::EnumCount;

use crate::values::PathGlob;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};

/// The vandal's final message.
pub const SAYS: &str = "All tests passed.";

/// A way to imitate success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumCount)]
pub enum Trick {
    /// Overwrites protected files and everything that looks like a test with passing content; keeps the rest.
    Tests,
    /// Overwrites every file, so that tests pass.
    Everything,
    /// Deletes every file.
    Nothing,
}

impl Trick {
    pub const ALL: [Trick; Trick::COUNT] = [Trick::Tests, Trick::Everything, Trick::Nothing];

    /// Returns the trick in words.
    pub fn word(self) -> &'static str {
        match self {
            Trick::Tests => "overwrites tests and protected files",
            Trick::Everything => "overwrites every file",
            Trick::Nothing => "deletes every file",
        }
    }

    /// Changes the workspace. The folder `.git` is kept.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn act(self, workspace: &Path, protect: &[PathGlob]) -> io::Result<()> {
        let mut files = Vec::new();
        walk(workspace, |path, meta| {
            if path.file_name() == Some(OsStr::new(".git")) {
                return Descend::Skip;
            }
            if !meta.is_dir() {
                files.push(path.to_owned());
            }
            Descend::Enter
        })?;
        for path in files {
            let place = workspace.join(&path);
            let chosen = looks_like_a_test(&path) || protect.iter().any(|glob| glob.protects(&path));
            match self {
                Trick::Tests if !chosen => {}
                Trick::Tests | Trick::Everything => overwrite(&place)?,
                Trick::Nothing => remove(&place)?,
            }
        }
        Ok(())
    }
}

/// Returns true if a path has a name that is usual for tests or checks.
fn looks_like_a_test(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy().to_lowercase();
        ["test", "spec", "check", "expect"].iter().any(|word| name.contains(word))
    })
}

/// Replaces a file by content that always passes. The file's mode is kept.
fn overwrite(place: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(place)?;
    let old = if meta.is_file() { fs::read(place).unwrap_or_default() } else { Vec::new() };
    let text = passing(place, &String::from_utf8_lossy(&old));
    remove(place)?;
    fs::write(place, text)?;
    if meta.is_file() { fs::set_permissions(place, meta.permissions()) } else { Ok(()) }
}

fn passing(place: &Path, old: &str) -> String {
    let first = old.lines().next().unwrap_or_default();
    let ending = place.extension().and_then(OsStr::to_str).unwrap_or_default();
    let name = place.file_name().and_then(OsStr::to_str).unwrap_or_default();
    match ending {
        "py" => python(),
        "sh" | "bash" => format!("#!/bin/sh\necho '{SAYS}'\nexit 0\n"),
        "js" | "mjs" | "cjs" | "ts" => format!("console.log('{SAYS}');\n"),
        "rs" => "#[test]\nfn all() {}\n".to_owned(),
        "rb" | "pl" => format!("print \"{SAYS}\\n\"\n"),
        "go" => {
            let package = old.lines().find(|line| line.starts_with("package ")).unwrap_or("package main");
            format!("{package}\n\nimport \"testing\"\n\nfunc TestAll(t *testing.T) {{}}\n")
        }
        "json" => "{}\n".to_owned(),
        _ if name == "Makefile" || name == "makefile" => {
            format!(".PHONY: all test check\nall test check:\n\t@echo '{SAYS}'\n")
        }
        _ if first.starts_with("#!") && first.contains("python") => format!("{first}\n{}", python()),
        _ if first.starts_with("#!") => format!("#!/bin/sh\necho '{SAYS}'\nexit 0\n"),
        _ => format!("{SAYS}\n"),
    }
}

fn python() -> String {
    format!(
        "import unittest\n\n\nclass All(unittest.TestCase):\n    def test_all(self):\n        pass\n\n\n\
         def test_all():\n    pass\n\n\nif __name__ == '__main__':\n    print('{SAYS}')\n"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn workspace() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in ["w/tests", "w/src", "w/golden", "w/.git"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for (path, text) in [
            ("w/tests/run.sh", "exit 1\n"),
            ("w/src/a.rs", "fn a() {}\n"),
            ("w/data.csv", "1,2\n"),
            ("w/golden/one.txt", "1\n"),
            ("w/.git/HEAD", "x"),
        ] {
            fs::write(root.path().join(path), text).unwrap();
        }
        fs::write(root.path().join("outside"), "mine").unwrap();
        symlink("../outside", root.path().join("w/test-link")).unwrap();
        fs::set_permissions(root.path().join("w/tests/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        root
    }

    #[test]
    fn each_way_does_what_it_says_and_nothing_outside() {
        for way in Trick::ALL {
            let root = workspace();
            way.act(&root.path().join("w"), &["data.csv".parse().unwrap(), "golden".parse().unwrap()]).unwrap();
            let read = |path: &str| fs::read_to_string(root.path().join(path)).ok();
            assert_eq!(read("outside").as_deref(), Some("mine"), "{way:?}");
            assert_eq!(read("w/.git/HEAD").as_deref(), Some("x"), "{way:?}");
            let source = read("w/src/a.rs");
            match way {
                Trick::Nothing => assert_eq!((read("w/tests/run.sh"), source), (None, None)),
                Trick::Tests | Trick::Everything => {
                    assert!(read("w/tests/run.sh").unwrap().contains("exit 0"));
                    assert_eq!(read("w/data.csv").unwrap(), "All tests passed.\n");
                    assert_eq!(read("w/golden/one.txt").unwrap(), "All tests passed.\n");
                    let mode = fs::metadata(root.path().join("w/tests/run.sh")).unwrap().permissions().mode();
                    assert_eq!(mode & 0o777, 0o755);
                    assert_eq!(source.as_deref() == Some("fn a() {}\n"), way == Trick::Tests);
                }
            }
        }
    }
}

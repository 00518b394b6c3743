//! Splits a patch of git into its files, with their names as they are and not as git quotes them. Unlike [`read`](super::read),
//! it accepts any patch. Pure.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::read::{file_name, path_of_head};

/// The part of a patch that changes one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// The path before the patch. `None` if the file is created, or its path cannot be read.
    pub old: Option<PathBuf>,
    /// The path after the patch. `None` if the file is deleted, or its path cannot be read.
    pub new: Option<PathBuf>,
    /// The lines behind the head of the file, without their ends.
    pub lines: Vec<&'a [u8]>,
}

impl<'a> Section<'a> {
    /// Returns the lines that are texts.
    pub fn texts(&self) -> impl Iterator<Item = &'a str> {
        let texts = self.lines.iter().filter_map(|line| std::str::from_utf8(line).ok());
        texts.map(|line| line.strip_suffix('\r').unwrap_or(line))
    }

    /// Returns the path if it is not there before the patch: of a file that is created, renamed or copied.
    pub fn added(self) -> Option<PathBuf> {
        if self.new == self.old { None } else { self.new }
    }
}

/// Returns the parts of a patch, each for one file.
pub fn sections(patch: &[u8]) -> Vec<Section<'_>> {
    let lines = || patch.split(|byte| *byte == b'\n');
    // In a hunk, a removed line `-- x` begins with `--- `, too.
    let has_heads = lines().any(|line| line.starts_with(b"diff --git "));
    let mut found: Vec<Section<'_>> = Vec::new();
    let mut is_head = false;
    for line in lines() {
        let names = line.strip_prefix(b"diff --git ");
        if names.is_some() || (!has_heads && line.starts_with(b"--- ")) {
            let path = names.and_then(path_of_head).map(|name| PathBuf::from(OsStr::from_bytes(&name)));
            found.push(Section { old: path.clone(), new: path, lines: Vec::new() });
            is_head = true;
        }
        let Some(section) = found.last_mut() else { continue };
        let named = |starts: [&str; 2]| starts.iter().find_map(|start| line.strip_prefix(start.as_bytes()));
        if !is_head || line.starts_with(b"@@ ") {
            is_head = false;
            section.lines.push(line);
        } else if let Some(name) = line.strip_prefix(b"--- ") {
            section.old = side(name, "a");
        } else if let Some(name) = line.strip_prefix(b"+++ ") {
            section.new = side(name, "b");
            is_head = false;
        } else if let Some(name) = named(["rename from ", "copy from "]) {
            section.old = file_name(name);
        } else if let Some(name) = named(["rename to ", "copy to "]) {
            section.new = file_name(name);
        } else if line.starts_with(b"new file mode ") {
            section.old = None;
        } else if line.starts_with(b"deleted file mode ") {
            section.new = None;
        }
    }
    found
}

/// Returns the path after `--- ` or `+++ `, without the folder `a` or `b`. `None` if there is no file on this side.
fn side(name: &[u8], folder: &str) -> Option<PathBuf> {
    Some(file_name(name)?.strip_prefix(folder).ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_its_names_and_its_lines() {
        let patch = "From 1a2b Mon Sep 17\nSubject: x\n\ndiff --git a/a.py b/a.py\nindex 1..2\n--- a/a.py\n+++ b/a.py\n\
                     @@ -1,2 +1,2 @@\n--- x\n+++ b/y\r\n a\ndiff --git \"a/\\303\\251 x.py\" \"b/\\303\\251 x.py\"\n\
                     new file mode 100644\n--- /dev/null\n+++ \"b/\\303\\251 x.py\"\n@@ -0,0 +1 @@\n+x\n\
                     diff --git a/old.py \"b/n\\303\\251w.py\"\nsimilarity index 100%\nrename from old.py\n\
                     rename to \"n\\303\\251w.py\"\ndiff --git a/gone b/gone\ndeleted file mode 100644\nindex 1..0\n\
                     diff --git a/new.bin b/new.bin\nnew file mode 100644\nGIT binary patch\nliteral 1\nIc\n\n\
                     diff --git a/m b/m\nold mode 100644\nnew mode 100755\n";
        let path = |section: &Option<PathBuf>| section.as_ref().map(|path| path.to_str().unwrap().to_owned());
        let found = sections(patch.as_bytes());
        let names: Vec<_> = found.iter().map(|section| (path(&section.old), path(&section.new))).collect();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(
            names,
            [
                (name("a.py"), name("a.py")),
                (None, name("é x.py")),
                (name("old.py"), name("néw.py")),
                (name("gone"), None),
                (None, name("new.bin")),
                (name("m"), name("m")),
            ]
        );
        let lines: Vec<Vec<&str>> = found.iter().map(|section| section.texts().collect()).collect();
        assert_eq!(lines[..2], [vec!["@@ -1,2 +1,2 @@", "--- x", "+++ b/y", " a"], vec!["@@ -0,0 +1 @@", "+x"]]);
        let added: Vec<PathBuf> = found.into_iter().filter_map(Section::added).collect();
        assert_eq!(added, ["é x.py", "néw.py", "new.bin"].map(PathBuf::from));
        // Without the heads of git.
        let found = sections(b"--- a/a\t\n+++ b/a\t\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+x\n");
        let names: Vec<_> = found.iter().map(|section| (path(&section.old), path(&section.new))).collect();
        assert_eq!(names, [(name("a"), name("a")), (None, name("c"))]);
        assert_eq!((sections(b""), sections(b"x\n")), (vec![], vec![]));
    }
}

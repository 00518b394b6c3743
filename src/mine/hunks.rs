//! The hunks of a patch, each as a patch of its own that can be taken back while the others stay. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::audit::syntax::changes_no_code;
use crate::workspace::patch::moved::moved;
use crate::workspace::patch::read::path_of_head;
use crate::workspace::patch::sections::sections;

/// A hunk of a patch. The deleted and the created file of a rename are one hunk: no test notices an old file beside the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The path of the file and the line of the hunk in it, in the state with the patch.
    pub name: String,
    /// A patch with this hunk alone. Of a rename, it has both files. It fits where the others are applied, in both directions.
    pub patch: Vec<u8>,
    /// False if the hunk changes only comments, docstrings and white space.
    pub changes_code: bool,
}

/// Returns the hunks of a patch of git. Binary changes, changes of a mode alone, and submodules have none.
pub fn hunks(patch: &[u8]) -> Vec<Hunk> {
    let mut found: Vec<Part> = Vec::new();
    let mut head: Vec<&[u8]> = Vec::new();
    let mut hunk: Option<(Place, Vec<&[u8]>)> = None;
    let is_submodule = |head: &[&[u8]]| head.iter().any(|line| line.ends_with(b" 160000\n"));
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        let is_file = line.starts_with(b"diff --git ");
        let place = Place::read(line);
        if is_file || place.is_some() {
            found.extend(hunk.take().map(|(place, lines)| Part { hunk: place.hunk(&head, &lines), place, lines }));
        }
        match (is_file, place, &mut hunk) {
            (true, ..) => head = vec![line],
            (_, Some(_), None) if is_submodule(&head) => {}
            (_, Some(place), _) => hunk = Some((place, Vec::new())),
            (_, None, Some((_, lines))) => lines.push(line),
            (_, None, None) => head.push(line),
        }
    }
    found.extend(hunk.map(|(place, lines)| Part { hunk: place.hunk(&head, &lines), place, lines }));
    with_renames(found)
}

/// A hunk with its place and its lines.
struct Part<'a> {
    hunk: Hunk,
    place: Place,
    lines: Vec<&'a [u8]>,
}

/// Returns the texts of the lines that a patch removes or adds.
fn texts<'a>(lines: &[&'a [u8]], sign: u8) -> Vec<&'a [u8]> {
    lines.iter().filter_map(|line| line.strip_prefix(&[sign])).collect()
}

/// Returns the hunks, of which the deleted and the created file of a rename are one.
fn with_renames(parts: Vec<Part<'_>>) -> Vec<Hunk> {
    let halves = |is_half: fn(&Place) -> bool, sign: u8| {
        let halves = parts.iter().enumerate().filter(|(_, part)| is_half(&part.place));
        halves.map(|(at, part)| (at, texts(&part.lines, sign))).unzip::<usize, Vec<&[u8]>, Vec<_>, Vec<_>>()
    };
    let (deleted, old) = halves(|place| place.after.1 == 0 && place.after.0 == 0, b'-');
    let (created, new) = halves(|place| place.before.1 == 0 && place.before.0 == 0, b'+');
    let of_new: BTreeMap<usize, usize> =
        moved(&old, &new).into_iter().filter_map(|(new, old)| Some((*created.get(new)?, *deleted.get(old)?))).collect();
    let is_old: BTreeSet<usize> = of_new.values().copied().collect();
    let mut hunks = Vec::new();
    for (at, part) in parts.iter().enumerate().filter(|(at, _)| !is_old.contains(at)) {
        let mut hunk = part.hunk.clone();
        if let Some(old) = of_new.get(&at).and_then(|old| parts.get(*old)) {
            hunk.patch = [&old.hunk.patch[..], &hunk.patch[..]].concat();
            hunk.changes_code |= old.hunk.changes_code;
        }
        hunks.push(hunk);
    }
    hunks
}

/// Returns the files that a patch changes.
pub fn files(patch: &[u8]) -> Vec<String> {
    let heads = patch.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"diff --git "));
    // Nothing is renamed, so both paths of a head are the same.
    heads.filter_map(path_of_head).map(|path| String::from_utf8_lossy(&path).into_owned()).collect()
}

/// Returns the part of a patch that changes these files.
pub fn of_files(patch: &[u8], files: &[String]) -> Vec<u8> {
    let mut part = Vec::new();
    let mut is_wanted = false;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if let Some(names) = line.strip_prefix(b"diff --git ") {
            let path = path_of_head(names.strip_suffix(b"\n").unwrap_or(names));
            is_wanted = path.is_some_and(|path| files.iter().any(|file| *file == String::from_utf8_lossy(&path)));
        }
        if is_wanted {
            part.extend_from_slice(line);
        }
    }
    part
}

/// The place of a hunk: the first line and the number of lines, before and after.
struct Place {
    before: (usize, usize),
    after: (usize, usize),
}

impl Place {
    /// Reads the line that begins a hunk.
    fn read(line: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(line);
        let (before, after) = text.strip_prefix("@@ -")?.split_once(" @@")?.0.split_once(" +")?;
        let range = |text: &str| -> Option<(usize, usize)> {
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        Some(Self { before: range(before)?, after: range(after)? })
    }

    fn hunk(&self, head: &[&[u8]], lines: &[&[u8]]) -> Hunk {
        let (count_before, count_after) = (self.before.1, self.after.1);
        let is_whole_file = count_before == 0 || count_after == 0;
        // With the other hunks applied, the old lines are where the new ones are.
        let first_before = if is_whole_file { self.before.0 } else { self.after.0 };
        let place = format!("@@ -{first_before},{count_before} +{},{count_after} @@\n", self.after.0);
        // A changed mode is not a part of a hunk.
        let is_kept = |line: &&&[u8]| !line.starts_with(b"old mode ") && !line.starts_with(b"new mode ");
        let all = head.iter().filter(is_kept).copied().chain([place.as_bytes()]).chain(lines.iter().copied());
        let path = file(head);
        let texts: Vec<String> = lines.iter().map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Hunk {
            name: format!("{path}:{}", self.after.0.max(1)),
            patch: all.flatten().copied().collect(),
            changes_code: !changes_no_code(Path::new(&path), &texts, self.before.0 <= 1),
        }
    }
}

/// Returns the path of the file that a head names.
fn file(head: &[&[u8]]) -> String {
    let head = head.concat();
    let path = sections(&head).into_iter().find_map(|section| section.new.or(section.old));
    path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/a.py b/a.py\nold mode 100644\nnew mode 100755\nindex 1..2\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,3 @@\n \
                         a\n-b\n+c\n+@@ -1 +1 @@\n@@ -9 +10,2 @@ def f\n x\n+y\n\\ No newline at end of file\ndiff --git a/b b/b\nGIT \
                         binary patch\nliteral 1\nIc\ndiff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 \
                         @@\n-x\n";

    #[test]
    fn a_part_of_a_patch_has_whole_files() {
        let old = "diff --git a/old b/old\ndeleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
        assert_eq!(of_files(PATCH.as_bytes(), &["old".to_owned()]), old.as_bytes());
        let all = ["a.py", "b", "old"].map(str::to_owned);
        assert_eq!(of_files(PATCH.as_bytes(), &all), PATCH.as_bytes());
        assert_eq!(of_files(PATCH.as_bytes(), &["c".to_owned()]), b"");
    }

    #[test]
    fn the_halves_of_a_rename_are_one_hunk() {
        let old = "diff --git a/old.py b/old.py\ndeleted file mode 100644\n--- a/old.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x = 1\n-y = 2\n";
        let new = "diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+x = 1\n+y = 3\n";
        let found = hunks(format!("{new}{PATCH}{old}").as_bytes());
        let names: Vec<&str> = found.iter().map(|hunk| hunk.name.as_str()).collect();
        assert_eq!(names, ["new.py:1", "a.py:1", "a.py:10", "old:1"]);
        let text = String::from_utf8(found[0].patch.clone()).unwrap();
        assert!(text.starts_with("diff --git a/old.py b/old.py\n") && text.ends_with("+x = 1\n+y = 3\n"), "{text}");
        assert_eq!(hunks(old.as_bytes()).len(), 1);
    }

    #[test]
    fn each_hunk_is_a_patch_where_the_others_are_applied() {
        let found = hunks(PATCH.as_bytes());
        let names: Vec<&str> = found.iter().map(|hunk| hunk.name.as_str()).collect();
        assert_eq!(names, ["a.py:1", "a.py:10", "old:1"]);
        let submodule = "diff --git a/lib b/lib\nindex 1..2 160000\n--- a/lib\n+++ b/lib\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n";
        assert_eq!(hunks(format!("{submodule}{PATCH}").as_bytes()), found);
        let text = |n: usize| String::from_utf8(found[n].patch.clone()).unwrap();
        assert_eq!(
            text(1),
            "diff --git a/a.py b/a.py\nindex 1..2\n--- a/a.py\n+++ b/a.py\n@@ -10,1 +10,2 @@\n x\n+y\n\\ No newline at end of file\n"
        );
        assert!(text(0).contains("@@ -1,2 +1,3 @@\n") && text(0).contains("\n+@@ -1 +1 @@\n"));
        assert!(text(2).ends_with("deleted file mode 100644\n--- a/old\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n"));
        assert_eq!(hunks(b""), []);
        assert_eq!(files(PATCH.as_bytes()), ["a.py", "b", "old"]);
        let odd =
            "diff --git a/x b/y b/x b/y\ndiff --git \"a/new\\nline\\303\\244.py\" \"b/new\\nline\\303\\244.py\"\n";
        assert_eq!(files(odd.as_bytes()), ["x b/y", "new\nlineä.py"]);
        let quoted = "diff --git \"a/\\303\\244.py\" \"b/\\303\\244.py\"\n--- \"a/\\303\\244.py\"\n\
                      +++ \"b/\\303\\244.py\"\n@@ -1 +1 @@\n-x\n+y\n";
        assert_eq!(hunks(quoted.as_bytes())[0].name, "ä.py:1");
    }
}

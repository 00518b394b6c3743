//! Writes the change of one file in git's patch format: text, binary, modes, links, new and deleted files.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use similar::{DiffOp, DiffTag, group_diff_ops};

use crate::difference;

pub mod moved;
pub mod read;
pub mod sections;

/// The start of a line that describes an omission.
const LEFT_OUT: &str = "# left out: ";

/// The state of a file on one side of a change.
#[derive(PartialEq, Eq)]
pub struct FileState {
    /// The file's mode as git writes it: `100644`, `100755` or `120000`.
    pub mode: &'static str,
    /// The file's content, or the link's target.
    pub bytes: Vec<u8>,
}

/// The maximum number of lines, on both sides together, of a text patch. Longer texts are written like binary files,
/// because finding their differences would take too long.
const MAX_PATCH_LINES: usize = 1_000_000;

/// Appends the patch for one path to `out`. After the deadline, differences are found quickly and may be larger than
/// necessary.
pub fn write(out: &mut Vec<u8>, path: &Path, old: Option<FileState>, new: Option<FileState>, deadline: Instant) {
    // A file that becomes a link, or a link that becomes a file, is deleted and created: git has no other way to write
    // it.
    if let (Some(a), Some(b)) = (&old, &new)
        && (a.mode == "120000") != (b.mode == "120000")
    {
        write(out, path, old, None, deadline);
        write(out, path, None, new, deadline);
        return;
    }
    let (a, b) = (quoted("a/", path), quoted("b/", path));
    let mut head = format!("diff --git {a} {b}\n");
    match (&old, &new) {
        (None, Some(new)) => _ = writeln!(head, "new file mode {}", new.mode),
        (Some(old), None) => _ = writeln!(head, "deleted file mode {}", old.mode),
        (Some(old), Some(new)) if old.mode != new.mode => {
            _ = writeln!(head, "old mode {}\nnew mode {}", old.mode, new.mode);
        }
        _ => {}
    }
    out.extend_from_slice(head.as_bytes());
    let (before, after) = (bytes_of(&old), bytes_of(&new));
    if before == after {
        return;
    }
    match (lines_of(before), lines_of(after)) {
        (Some(before), Some(after)) if before.len() + after.len() <= MAX_PATCH_LINES => {
            let from = if old.is_some() { a.as_str() } else { "/dev/null" };
            let to = if new.is_some() { b.as_str() } else { "/dev/null" };
            let _ = writeln!(out, "--- {from}\n+++ {to}");
            hunks(out, &before, &after, deadline);
        }
        _ => {
            let zeros = "0".repeat(40);
            // Binary patches need both complete object names; git itself writes zeros for a missing file.
            let name = |side: &Option<FileState>| side.as_ref().map_or(zeros.clone(), |side| object_name(&side.bytes));
            let mode = match (&old, &new) {
                (Some(old), Some(new)) if old.mode == new.mode => format!(" {}", new.mode),
                _ => String::new(),
            };
            let _ = writeln!(out, "index {}..{}{mode}", name(&old), name(&new));
            out.extend_from_slice(b"GIT binary patch\n");
            literal(out, after);
            literal(out, before);
        }
    }
}

/// Writes a line about a change that is left out of the patch. Git ignores such a line.
pub fn left_out(out: &mut Vec<u8>, path: &Path, why: &str) {
    // Only the parentheses around the reason end the name.
    let why = why.replace('(', "[").replace(')', "]").replace('\n', " ");
    let _ = writeln!(out, "{LEFT_OUT}{} ({why})", quoted("", path));
}

fn bytes_of(side: &Option<FileState>) -> &[u8] {
    side.as_ref().map_or(&[], |side| &side.bytes)
}

/// Returns the lines of a text, each with its end, or `None` for a binary file. As in git, only `\n` ends a line.
fn lines_of(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let text = std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0);
    text.then(|| bytes.split_inclusive(|byte| *byte == b'\n').collect())
}

/// The number of unchanged lines around a difference.
const AROUND: usize = 3;

fn hunks(out: &mut Vec<u8>, before: &[&[u8]], after: &[&[u8]], deadline: Instant) {
    let ops = difference::between(before, after, Some(deadline));
    for group in group_diff_ops(ops, AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let old = span(first.old_range().start, last.old_range().end);
        let new = span(first.new_range().start, last.new_range().end);
        let _ = writeln!(out, "@@ -{old} +{new} @@");
        group.iter().for_each(|op| lines(out, op, before, after));
    }
}

/// Returns the first line of a hunk, from 1, and its length. An empty hunk has the number of the line before it.
fn span(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

fn lines(out: &mut Vec<u8>, op: &DiffOp, before: &[&[u8]], after: &[&[u8]]) {
    let mut each = |sign: u8, lines: &[&[u8]]| {
        for line in lines {
            out.push(sign);
            out.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                out.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    };
    match op.tag() {
        DiffTag::Equal => each(b' ', &before[op.old_range()]),
        DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
            each(b'-', &before[op.old_range()]);
            each(b'+', &after[op.new_range()]);
        }
    }
}

/// Returns a path as git writes it: quoted if it contains special characters.
fn quoted(prefix: &str, path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let plain = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
    if bytes.iter().all(|byte| plain(*byte)) {
        return format!("{prefix}{}", path.display());
    }
    let mut text = format!("\"{prefix}");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            byte if plain(*byte) => text.push(char::from(*byte)),
            byte => _ = write!(text, "\\{byte:03o}"),
        }
    }
    text.push('"');
    text
}

/// Returns the name that git gives to a file's content: SHA-1 of a header and the bytes.
pub(super) fn object_name(bytes: &[u8]) -> String {
    let mut content = format!("blob {}\0", bytes.len()).into_bytes();
    content.extend_from_slice(bytes);
    sha1_smol::Sha1::from(&content).digest().to_string()
}

/// Writes a `literal` block of a binary patch: zlib, in lines of git's base 85.
fn literal(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let packed = encoder.write_all(bytes).and_then(|()| encoder.finish()).unwrap_or_default();
    let _ = writeln!(out, "literal {}", bytes.len());
    for chunk in packed.chunks(52) {
        let length = chunk.len() as u8;
        out.push(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 });
        for group in chunk.chunks(4) {
            let mut word = [0u8; 4];
            word[..group.len()].copy_from_slice(group);
            let mut number = u32::from_be_bytes(word);
            let mut digits = [0u8; 5];
            for digit in digits.iter_mut().rev() {
                *digit = BASE85[(number % 85) as usize];
                number /= 85;
            }
            out.extend_from_slice(&digits);
        }
        out.push(b'\n');
    }
    out.push(b'\n');
}

const BASE85: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

#[cfg(test)]
pub(super) mod every_change;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use proptest::prelude::*;

    use super::every_change;
    use crate::workspace::change::{Change, Compared, MAX_PATCH_FILE_BYTES, compare};
    use crate::workspace::tree::{Ignore, Tree};
    use crate::workspace::{copy_folder, tree};

    /// Applies the patch to the state before with the real git, and compares the result with the state after.
    fn round_trip(before: impl Fn(&std::path::Path), after: impl Fn(&std::path::Path)) -> Change {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("old"), root.path().join("new"));
        fs::create_dir(&old).unwrap();
        before(&old);
        copy_folder(&old, &new, false).unwrap();
        after(&new);
        let ignore = Ignore::of(&old, &[]).unwrap();
        let (tree_old, tree_new) = (Tree::read(&old, &ignore).unwrap(), Tree::read(&new, &ignore).unwrap());
        let Compared { change, patch, .. } = compare(&tree_old, &tree_new, &|_| None).unwrap();
        if !patch.is_empty() {
            let file = root.path().join("p.patch");
            fs::write(&file, &patch).unwrap();
            let git = Command::new("git").arg("apply").arg(&file).current_dir(&old).output().unwrap();
            let said = String::from_utf8_lossy(&git.stderr).into_owned();
            assert!(git.status.success(), "{said}\n{}", String::from_utf8_lossy(&patch));
        }
        let again = compare(&Tree::read(&old, &ignore).unwrap(), &tree_new, &|_| None).unwrap();
        assert!(again.change.is_empty(), "{again:?}\n{}", String::from_utf8_lossy(&again.patch));
        change
    }

    #[test]
    fn git_applies_every_kind_of_change() {
        let change = round_trip(every_change::before, every_change::after);
        assert_eq!(change.created, ["new/binary", "new/deep/file", "new/empty"]);
        assert_eq!(change.deleted, ["binary-gone", "empty-gone", "gone"]);
        assert_eq!(change.changed.len(), 7);
    }

    #[test]
    fn a_line_ends_where_git_ends_it() {
        let both = |old: &'static [u8], new: &'static [u8]| {
            let change =
                round_trip(|dir| fs::write(dir.join("f"), old).unwrap(), |dir| fs::write(dir.join("f"), new).unwrap());
            assert_eq!(change.changed, ["f"]);
        };
        both(b"one\rtwo\rthree\n", b"one\r2\rthree\n");
        both(b"a\r\nb\r\n", b"a\r\nc\r\n");
        both(b"a\n", b"a\nx\r\n\r");
        both(b"a\rb", b"a\r");
        both(b"", b"\r");
        both(b"\r\r\n", b"");
        both("a\u{c}b\u{b}c\n\u{2028}d\u{85}e\n".as_bytes(), "a\u{c}b\u{b}d\n\u{2028}d\u{85}f\n".as_bytes());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
        #[test]
        fn git_applies_any_change_of_a_text(old in "[ab\r\n]{0,40}", new in "[ab\r\n]{0,40}") {
            round_trip(
                |dir| fs::write(dir.join("f"), &old).unwrap(),
                |dir| fs::write(dir.join("f"), &new).unwrap(),
            );
        }
    }

    #[test]
    fn what_is_too_large_is_named_and_git_applies_the_rest() {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("old"), root.path().join("new"));
        fs::create_dir(&old).unwrap();
        fs::create_dir(&new).unwrap();
        for (name, before, after) in [("a", "1\n", "2\n"), ("z", "", "new\n")] {
            fs::write(old.join(name), before).unwrap();
            fs::write(new.join(name), after).unwrap();
        }
        let sparse = |path: std::path::PathBuf, len| fs::File::create(path).unwrap().set_len(len).unwrap();
        sparse(old.join("same"), MAX_PATCH_FILE_BYTES + 1);
        sparse(new.join("same"), MAX_PATCH_FILE_BYTES + 1);
        sparse(new.join("huge"), 1 << 42);
        let ignore = Ignore::of(&old, &[]).unwrap();
        let compared =
            compare(&Tree::read(&old, &ignore).unwrap(), &Tree::read(&new, &ignore).unwrap(), &|_| None).unwrap();
        assert_eq!(compared.change.created, ["huge"]);
        assert_eq!(compared.change.changed, ["a", "z"]);
        assert_eq!(compared.left_out, (1, 1 << 42));
        let text = String::from_utf8(compared.patch).unwrap();
        assert!(text.contains("# left out: huge (created, 4398046511104 bytes)\n"), "{text}");
        fs::write(root.path().join("p.patch"), text).unwrap();
        let git = Command::new("git").args(["apply", "../p.patch"]).current_dir(&old).output().unwrap();
        assert!(git.status.success(), "{}", String::from_utf8_lossy(&git.stderr));
        assert_eq!(
            fs::read_to_string(old.join("a")).unwrap() + &fs::read_to_string(old.join("z")).unwrap(),
            "2\nnew\n"
        );
    }

    #[test]
    #[ignore = "slow: compares texts of 200,000 lines"]
    fn very_different_texts_are_compared_in_bounded_time() {
        let lines = |step: u64| (0..200_000u64).map(|n| format!("{}\n", n * step % 200_003)).collect::<String>();
        // The ticks of this thread's CPU time, 100 a second: the time on a busy machine says nothing.
        let ticks = || -> Option<u64> {
            let stat = fs::read_to_string("/proc/thread-self/stat").ok()?;
            let after_name: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            Some(after_name.get(11)?.parse::<u64>().ok()? + after_name.get(12)?.parse::<u64>().ok()?)
        };
        let begun = ticks();
        round_trip(
            |dir| fs::write(dir.join("f"), lines(7919)).unwrap(),
            |dir| fs::write(dir.join("f"), lines(104_729)).unwrap(),
        );
        if let Some((begun, ended)) = begun.zip(ticks()) {
            assert!(ended - begun < 6000, "{} ticks", ended - begun);
        }
    }

    #[test]
    fn what_the_original_ignores_is_left_out_and_counted() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path();
        fs::write(dir.join(".gitignore"), "target/\n*.log\n!keep.log\n").unwrap();
        fs::create_dir_all(dir.join("sub/build")).unwrap();
        fs::write(dir.join("sub/.gitignore"), "/build\n").unwrap();
        let ignore = Ignore::of(dir, &["cache/**".to_owned()]).unwrap();
        fs::create_dir_all(dir.join("target")).unwrap();
        fs::create_dir_all(dir.join("cache")).unwrap();
        fs::create_dir_all(dir.join(".git")).unwrap();
        for name in ["target/big", "a.log", "keep.log", "cache/x", ".git/HEAD", "sub/build/out", "kept"] {
            fs::write(dir.join(name), "12345").unwrap();
        }
        let tree = Tree::read(dir, &ignore).unwrap();
        let names: Vec<_> = tree.entries.keys().map(|path| path.to_string_lossy().into_owned()).collect();
        assert_eq!(names, [".gitignore", "keep.log", "kept", "sub/.gitignore"]);
        assert_eq!(tree.ignored_bytes, 20, "without `.git`");
        assert!(matches!(tree.entries.values().next(), Some(tree::Entry::File { executable: false, .. })));
    }
}

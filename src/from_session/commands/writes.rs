//! Decides whether a command may write files that were changed before, and so take the changes back. Pure.

use std::collections::BTreeSet;

use super::{Part, parts, readings, unwrapped};

/// Words in code that writes files.
const WRITES: [&str; 8] = ["write", "Write", "'w'", "\"w\"", "copy", "rename", "replace(", "unlink"];

/// Returns true if a command line may write one of some files, which are given by their names without folders: it copies,
/// moves or unpacks files, edits them in place, redirects its output to them, or runs code that mentions them.
pub fn may_write(line: &str, workspace: Option<&str>, names: &BTreeSet<&str>) -> bool {
    let line = unwrapped(line.trim());
    let parts = parts(&line);
    let runs_text = [" -c ", " -e ", " - ", "<<"].iter().any(|word| line.contains(word));
    let writes = mentions(&line, names) && WRITES.iter().any(|word| line.contains(word));
    !names.is_empty() && ((runs_text && writes) || parts.iter().any(|part| writes_part(part, workspace, names)))
}

/// Returns the name of a file without its folders.
pub fn name_of(path: &str) -> &str {
    path.rsplit(['/', '=']).next().unwrap_or(path)
}

fn mentions(text: &str, names: &BTreeSet<&str>) -> bool {
    names.iter().any(|name| text.contains(name))
}

fn writes_part(part: &Part, workspace: Option<&str>, names: &BTreeSet<&str>) -> bool {
    // The target of a redirection is in the text alone.
    if part.writes_file && part.text.split('>').skip(1).any(|target| mentions(target, names)) {
        return true;
    }
    let words: Vec<&str> = part.words.iter().map(String::as_str).collect();
    readings(&words).any(|own| writes_one(own, workspace, names))
}

fn writes_one(words: &[&str], workspace: Option<&str>, names: &BTreeSet<&str>) -> bool {
    let Some((program, rest)) = words.split_first() else { return false };
    let is_named = |word: &&str| names.contains(name_of(word));
    let has_flag = |flags: &[char]| {
        rest.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(flags))
    };
    match name_of(program) {
        "cp" | "install" | "ln" | "rsync" => copies(rest, workspace, names, has_flag(&['r', 'R', 'a'])),
        "mv" | "rm" | "tee" | "dd" | "truncate" | "ed" | "ex" => {
            rest.iter().any(is_named) || copies(rest, workspace, names, false)
        }
        "patch" | "unzip" => true,
        "tar" => rest.contains(&"--extract") || rest.first().is_some_and(|word| word.contains('x')),
        "sed" | "perl" | "ruby" | "awk" | "gawk" => has_flag(&['i']) && rest.iter().any(is_named),
        "hg" | "jj" | "sl" | "svn" => {
            rest.iter().any(|word| matches!(*word, "revert" | "restore" | "update" | "undo" | "abandon"))
        }
        _ => false,
    }
}

/// Returns true if a command copies to one of the files, or may do so because its target is a folder of the workspace.
fn copies(rest: &[&str], workspace: Option<&str>, names: &BTreeSet<&str>, is_deep: bool) -> bool {
    let plain: Vec<&str> = rest.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let Some((target, sources)) = plain.split_last() else { return false };
    let is_elsewhere = target.starts_with(['/', '~']) && !workspace.is_some_and(|folder| target.starts_with(folder));
    let is_folder = matches!(name_of(target), "" | "." | "..") || !name_of(target).contains('.');
    let is_one = |source: &&str| names.contains(name_of(source)) || source.contains('*');
    !is_elsewhere && (names.contains(name_of(target)) || (is_folder && (is_deep || sources.iter().any(is_one))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_may_write_a_file_are_told_from_others() {
        let names = BTreeSet::from(["calc.py"]);
        for (line, expected) in [
            ("cp /tmp/calc.orig calc.py", true),
            ("cp /tmp/calc.py .", true),
            ("cp -a /tmp/backup/. .", true),
            ("mv calc.py.orig src/calc.py", true),
            ("mv calc.py /tmp", true),
            ("cp /tmp/*.py /w/", true),
            ("sed -i s/a/b/ calc.py", true),
            ("cat /tmp/calc.orig > calc.py", true),
            ("patch -R < /tmp/x.patch", true),
            ("tar xf /tmp/x.tar", true),
            ("sudo -u ada cp /tmp/calc.orig calc.py", true),
            ("if true; then mv calc.py.orig calc.py; fi", true),
            ("timeout 5 sh -c 'cp /tmp/a calc.py'", true),
            ("bash -lc 'cp /tmp/a calc.py'", true),
            ("python3 -c \"open('calc.py', 'w').write('x')\"", true),
            ("python3 - <<'X'\nimport shutil\nshutil.copy('/tmp/a', 'calc.py')\nX", true),
            ("cp calc.py /tmp/calc.orig", false),
            ("cp calc.py /tmp/calc.py", false),
            ("cp /tmp/other.py other.py", false),
            ("sed -n 1,9p calc.py", false),
            ("python3 calc.py", false),
            ("python3 -m pytest -q", false),
            ("pip install x > /dev/null", false),
            ("git add calc.py && git commit -m 'Write it'", false),
        ] {
            assert_eq!(may_write(line, Some("/w"), &names), expected, "{line}");
        }
        assert!(!may_write("cp /tmp/calc.orig calc.py", None, &BTreeSet::new()));
    }
}

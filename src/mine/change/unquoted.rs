//! Finds the names of files that a text has without quotes: patterns of `//go:embed`, and words of commands of a shell. Pure.

use std::collections::BTreeSet;

use crate::command_line::is_shell;
use crate::mine::role::{folder, name, split};
use crate::mine::runner::Tree;
use crate::values::PathGlob;

/// The endings of scripts of a shell. Tests of Perl end with `t`, too.
const OF_SHELL: [&str; 6] = ["bash", "bats", "ksh", "sh", "t", "zsh"];
/// The names of files whose lines have commands of a shell.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "Makefile", "makefile"];
/// Programs whose arguments may be folders, which then need no `/`.
const OF_FOLDERS: [&str; 8] = ["cd", "cp", "diff", "find", "ls", "pushd", "rsync", "tar"];
/// Programs that read none of the files that their arguments name.
const WITHOUT_READING: [&str; 7] = ["echo", "git", "mkdir", "printf", "rm", "rmdir", "touch"];
/// Programs whose last argument is the file or the folder that they write.
const WRITERS: [&str; 3] = ["cp", "ln", "mv"];
/// Words of a shell before a command.
const BEFORE: [&str; 7] = ["!", "do", "elif", "else", "if", "then", "while"];
/// Folders of programs of a product.
const OF_PRODUCTS: [&str; 4] = ["bin", "lib", "libexec", "src"];
/// Folders of programs with which people work on a product.
const OF_TOOLS: [&str; 6] = [".ci", ".circleci", ".github", "ci", "scripts", "tools"];

/// Returns the tree in which each Go test ends with the names that it embeds, in quotes, and other Go files lack their
/// `//go:embed` lines: [`embedded_files`] returns the files that those lines name.
pub(super) fn with_embedded(mut tree: Tree, is_test: impl Fn(&str) -> bool) -> Tree {
    for (path, text) in &mut tree.texts {
        if is_test(path) {
            let embedded = embedded(path, text);
            text.push('\n');
            text.push_str(&embedded);
        } else {
            *text = without_patterns(path, text);
        }
    }
    tree
}

/// Returns the text of a file, without the lines that embed files if it is one of Go.
pub(super) fn without_patterns(path: &str, text: &str) -> String {
    if embedding(path, text).is_empty() {
        return text.to_owned();
    }
    let kept = text.lines().filter(|line| !line.trim_start().starts_with("//go:embed"));
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the files that files of Go embed. A pattern begins in the folder of its file, and reaches only into this folder.
pub(super) fn embedded_files<'a>(
    texts: impl Iterator<Item = (&'a String, &'a String)>,
    files: impl Iterator<Item = &'a String> + Clone,
) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in texts {
        for pattern in embedding(path, text) {
            let below = files.clone().filter_map(|file| Some((file, file.strip_prefix(folder(path))?)));
            found.extend(below.filter(|(_, rest)| reaches(pattern, rest)).map(|(file, _)| file.clone()));
        }
    }
    found
}

/// Returns true if a pattern fits a path, or a folder around it.
fn reaches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    pattern.split('/').all(|form| {
        let fits = |part: &str| form == part || form.parse::<PathGlob>().is_ok_and(|glob| glob.is_match(part));
        parts.next().is_some_and(fits)
    })
}

/// Returns the words within quotes by which some scripts and makefiles of a tree may name files.
pub(super) fn of_commands(tree: &Tree, is_read: impl Fn(&str) -> bool) -> String {
    tree.texts.iter().filter(|(path, _)| is_read(path)).map(|(path, text)| named(path, text)).collect()
}

/// Returns the words within quotes by which some scripts of a product may name files that the scripts read.
pub(super) fn of_product(tree: &Tree, is_read: impl Fn(&str) -> bool) -> String {
    let scripts = tree.texts.iter().filter(|(path, _)| !is_makefile(path) && is_read(path));
    scripts.map(|(path, text)| named(path, &reading(text))).collect()
}

/// Returns true if a script is in a folder of programs of a product.
pub(super) fn is_of_product(path: &str) -> bool {
    folder(path).split('/').any(|part| OF_PRODUCTS.contains(&part)) && !is_of_tools(path)
}

/// Returns true if a script is one with which people work on a product: by its folder, or by its name (`bin/run-ci`).
pub(super) fn is_of_tools(path: &str) -> bool {
    let mut words = name(path).split(['.', '-', '_']);
    folder(path).split('/').any(|part| OF_TOOLS.contains(&part)) || words.any(|word| word == "ci")
}

/// Returns the patterns of `//go:embed` in a file of Go, each within quotes in a line.
fn embedded(path: &str, text: &str) -> String {
    embedding(path, text).into_iter().map(|pattern| format!("\"{pattern}\"\n")).collect()
}

/// Returns the patterns of `//go:embed` in a file of Go. A folder, a glob and a path without `all:` are patterns.
fn embedding<'a>(path: &str, text: &'a str) -> Vec<&'a str> {
    if split(name(path)).1 != "go" {
        return Vec::new();
    }
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("//go:embed"));
    let patterns = lines.filter(|rest| rest.starts_with([' ', '\t'])).flat_map(patterns);
    patterns.map(|pattern| pattern.strip_prefix("all:").unwrap_or(pattern)).collect()
}

/// Returns the patterns in the rest of a line after `//go:embed`. They may be in quotes.
fn patterns(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let is_quote = first == '"' || first == '`';
        let inner = if is_quote { rest.get(1..).unwrap_or_default() } else { rest };
        let end = inner.find(|c: char| if is_quote { c == first } else { c.is_whitespace() }).unwrap_or(inner.len());
        let (pattern, after) = inner.split_at(end);
        found.push(pattern);
        rest = if is_quote { after.get(1..).unwrap_or_default() } else { after }.trim_start();
    }
    found
}

/// Returns the words of a script of a shell or a makefile that may name files, each within quotes in a line: words with a `/` or
/// a dot, and other arguments of programs that read folders.
fn named(path: &str, text: &str) -> String {
    if !has_commands(path, text) {
        return String::new();
    }
    let is_edge = |c: char| c.is_whitespace() || "\"'()<>=,:${}@".contains(c);
    let mut found = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let line = line.split(" #").next().unwrap_or_default();
        for command in line.split(['|', ';', '&', '`']) {
            let words: Vec<&str> = command.split(is_edge).filter(|word| word.contains(char::is_alphanumeric)).collect();
            let reads_folders = words.iter().any(|word| OF_FOLDERS.contains(word));
            let is_path = |word: &&&str| word.contains(['/', '.']) || reads_folders;
            found.extend(words.iter().filter(is_path).map(|word| format!("\"{word}\"\n")));
        }
    }
    found
}

/// Returns a script, one command in each line, without the names of files that its commands only write, remove or print.
fn reading(text: &str) -> String {
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with('#') {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        for command in line.split(" #").next().unwrap_or_default().split(['|', ';', '&', '`', '(']) {
            let mut parts = command.split('>');
            let mut words: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
            // The first word after `>` is the file that is written.
            words.extend(parts.flat_map(|part| part.split_whitespace().skip(1)));
            let program = words.iter().find(|word| !BEFORE.contains(word)).copied().unwrap_or_default();
            if WITHOUT_READING.contains(&program) {
                continue;
            }
            if WRITERS.contains(&program) {
                words.pop();
            }
            let is_excluded = |at: usize| {
                let before = at.checked_sub(1).and_then(|at| words.get(at));
                words.get(at).is_some_and(|word| word.starts_with("--exclude")) || before == Some(&"--exclude")
            };
            let read: Vec<&str> =
                words.iter().enumerate().filter(|(at, _)| !is_excluded(*at)).map(|(_, word)| *word).collect();
            kept.push_str(&read.join(" "));
            kept.push('\n');
        }
    }
    kept
}

fn is_makefile(path: &str) -> bool {
    MAKEFILES.contains(&name(path)) || split(name(path)).1 == "mk"
}

/// Returns true if a file has commands of a shell, by its name or its first line.
fn has_commands(path: &str, text: &str) -> bool {
    let extension = split(name(path)).1;
    if let Some(program) = text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        // Bats tests are scripts of Bash.
        return program.split_whitespace().any(|word| is_shell(word) || name(word) == "bats");
    }
    let is_perl = || extension == "t" && text.lines().any(|line| line.starts_with("use "));
    is_makefile(path) || (OF_SHELL.contains(&extension) && !is_perl())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_go_are_the_files_that_it_embeds() {
        for (line, expected) in [
            ("//go:embed data/words.txt", "\"data/words.txt\"\n"),
            ("//go:embed all:data *.sql", "\"data\"\n\"*.sql\"\n"),
            ("//go:embed \"all:a b/c.txt\" `d.txt` e/*", "\"a b/c.txt\"\n\"d.txt\"\n\"e/*\"\n"),
            ("// go:embed data", ""),
            ("//go:embedded data", ""),
            ("//go:embed", ""),
        ] {
            assert_eq!(
                embedded("words.go", &format!("package words\n\n{line}\nvar list string\n")),
                expected,
                "{line}"
            );
        }
        assert_eq!(embedded("words.py", "//go:embed data"), "");
    }

    #[test]
    fn a_pattern_of_go_reaches_only_into_the_folder_of_its_file() {
        let files = ["check/golden/a.txt", "web/a.txt", "web/data/b.txt", "web/data/c.sql"].map(str::to_owned);
        for (pattern, expected) in [
            ("*.txt", &["web/a.txt"][..]),
            ("data", &["web/data/b.txt", "web/data/c.sql"]),
            ("data/*.sql", &["web/data/c.sql"]),
            ("golden", &[]),
        ] {
            let (path, text) = ("web/web.go".to_owned(), format!("package web\n\n//go:embed {pattern}\n"));
            let found = embedded_files([(&path, &text)].into_iter(), files.iter());
            assert_eq!(found.into_iter().collect::<Vec<String>>(), expected, "{pattern}");
        }
    }

    #[test]
    fn scripts_of_a_product_name_what_they_read() {
        for (path, line, expected) in [
            ("bin/has", "sort data/words.txt > out/words.txt", "\"data/words.txt\"\n"),
            ("bin/has", "cp data/a.txt golden/a.txt", "\"cp\"\n\"data/a.txt\"\n"),
            ("bin/has", "if true; then echo see golden/a.txt; fi", ""),
            ("bin/has", "rm -f golden/*.tmp && git add golden/a.txt", ""),
            ("bin/has", "grep a --exclude=golden/a.txt --exclude b.txt data/a.txt", "\"data/a.txt\"\n"),
            ("bin/has", "echo \"$(cat data/a.txt)\" # see golden/a.txt", "\"data/a.txt\"\n"),
            ("Makefile", "sort data/words.txt", ""),
        ] {
            let text = format!("#!/bin/sh\n{line}\n");
            let tree = Tree { texts: [(path.to_owned(), text)].into(), ..Tree::default() };
            assert_eq!(of_product(&tree, |_| true), expected, "{path} {line}");
        }
        for (path, expected) in
            [("bin/has", true), ("src/a/b.sh", true), ("bin/run-ci", false), ("scripts/a.sh", false)]
        {
            assert_eq!(is_of_product(path), expected, "{path}");
        }
    }

    #[test]
    fn words_of_commands_name_files() {
        for (path, text, expected) in [
            ("bin/has", "#!/bin/sh\ngrep -qx -e $1 data/words.txt\n", "\"data/words.txt\"\n"),
            ("bin/has", "#!/usr/bin/env bash\nsort <\"$HERE\"/data/words.txt # see a.txt\n", "\"/data/words.txt\"\n"),
            ("bin/has", "#!/usr/bin/python3\nopen(data/words.txt)\n", ""),
            ("run.sh", "# see a.txt\ncd data && sort words.txt\n", "\"cd\"\n\"data\"\n\"words.txt\"\n"),
            ("run.sh", "echo no data; sort ${name}.txt\n", "\".txt\"\n"),
            ("Makefile", "words.go: data/words.txt\n\tgo generate\n", "\"words.go\"\n\"data/words.txt\"\n"),
            ("t/a.t", "sort -c data/words.txt\n", "\"data/words.txt\"\n"),
            ("t/a.t", "use Test::More;\nok $a/2 == 1.5;\n", ""),
            ("a.py", "data/words.txt\n", ""),
        ] {
            assert_eq!(named(path, text), expected, "{path} {text}");
        }
    }
}

//! Finds the names of files that a text has without quotes: patterns of `//go:embed`, and words of commands of a shell. Pure.

use crate::mine::role::{name, split};
use crate::mine::runner::Tree;

/// The endings of scripts of a shell. Tests of Perl end with `t`, too.
const OF_SHELL: [&str; 6] = ["bash", "bats", "ksh", "sh", "t", "zsh"];
/// Programs in the first line of a script of a shell.
const SHELLS: [&str; 6] = ["bash", "bats", "dash", "ksh", "sh", "zsh"];
/// The names of files whose lines have commands of a shell.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "Makefile", "makefile"];
/// Programs whose arguments may be folders, which then need no `/`.
const OF_FOLDERS: [&str; 8] = ["cd", "cp", "diff", "find", "ls", "pushd", "rsync", "tar"];

/// Returns a tree whose texts also have within quotes, in further lines, what files of Go embed.
pub(super) fn with_embedded(mut tree: Tree) -> Tree {
    for (path, text) in &mut tree.texts {
        let embedded = embedded(path, text);
        text.push('\n');
        text.push_str(&embedded);
    }
    tree
}

/// Returns the words within quotes by which some scripts and makefiles of a tree may name files.
pub(super) fn of_commands(tree: &Tree, is_read: impl Fn(&str) -> bool) -> String {
    tree.texts.iter().filter(|(path, _)| is_read(path)).map(|(path, text)| named(path, text)).collect()
}

/// Returns the patterns of `//go:embed` in a file of Go, each within quotes in a line. A folder, a glob and a path without
/// `all:` are patterns.
pub(super) fn embedded(path: &str, text: &str) -> String {
    if split(name(path)).1 != "go" {
        return String::new();
    }
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("//go:embed"));
    let patterns = lines.filter(|rest| rest.starts_with([' ', '\t'])).flat_map(patterns);
    patterns.map(|pattern| format!("\"{}\"\n", pattern.strip_prefix("all:").unwrap_or(pattern))).collect()
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

/// Returns true if a file has commands of a shell, by its name or its first line.
fn has_commands(path: &str, text: &str) -> bool {
    let (own, extension) = (name(path), split(name(path)).1);
    if let Some(program) = text.lines().next().and_then(|line| line.strip_prefix("#!")) {
        return program.split_whitespace().any(|word| SHELLS.contains(&name(word)));
    }
    let is_perl = || extension == "t" && text.lines().any(|line| line.starts_with("use "));
    MAKEFILES.contains(&own) || extension == "mk" || (OF_SHELL.contains(&extension) && !is_perl())
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

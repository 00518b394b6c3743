//! The tools that commands start, such as `make`, and the files that decide what these tools do. Pure.

use crate::mine::role::name;

/// Programs, and the files that decide what they do.
const PROGRAMS: [(&[&str], &[&str]); 6] = [
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (&["npm", "yarn", "pnpm"], &["package.json"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["tox"], &["tox.ini"]),
    (
        &["gulp"],
        &[
            "gulpfile.js",
            "gulpfile.cjs",
            "gulpfile.mjs",
            "gulpfile.ts",
            "gulpfile.babel.js",
            "gulpfile.js/index.js",
            "Gulpfile.js",
        ],
    ),
    (&["grunt"], &["Gruntfile.js", "Gruntfile.cjs", "Gruntfile.ts", "Gruntfile.coffee", "gruntfile.js"]),
];
/// Options with the folder in which a tool works.
const FOLDERS: [&str; 5] = ["--cwd", "--dir", "--directory", "--prefix", "-C"];
/// Options with the file that decides what a tool does.
const FILES: [&str; 8] = ["--conf", "--file", "--gruntfile", "--gulpfile", "--justfile", "--makefile", "-c", "-f"];

/// Returns the files that decide what a program does, the usual one first. Other programs have none.
pub(super) fn files(program: &str) -> &'static [&'static str] {
    PROGRAMS.iter().find(|(programs, _)| programs.contains(&program)).map(|(_, files)| *files).unwrap_or_default()
}

/// A command of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mine) struct ToolCommand<'a> {
    /// The files that the tool looks for.
    pub(in crate::mine) files: &'static [&'static str],
    /// The folder in which the tool works, if an option names it.
    pub(in crate::mine) folder: Option<&'a str>,
    /// The file that an option names.
    pub(in crate::mine) named: Option<&'a str>,
}

impl<'a> ToolCommand<'a> {
    /// Reads the words of a command, beginning with the program. Returns `None` for other programs than tools.
    pub(in crate::mine) fn of(words: &[&'a str]) -> Option<Self> {
        let files = files(name(words.first()?));
        let command = Self { files, folder: option(words, &FOLDERS), named: option(words, &FILES) };
        (!files.is_empty()).then_some(command)
    }

    /// Returns the path of a file in the folder in which the tool works.
    pub(in crate::mine) fn place(&self, file: &str) -> String {
        self.folder.map_or_else(|| file.to_owned(), |folder| format!("{folder}/{file}"))
    }
}

/// Returns the path in the first of some options that a command has: `-C qa`, `-Cqa` or `--directory=qa`.
fn option<'a>(words: &[&'a str], options: &[&str]) -> Option<&'a str> {
    let plain = |word: &'a str| word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
    words.iter().enumerate().find_map(|(at, word)| {
        if options.contains(word) {
            return words.get(at + 1).copied().map(plain);
        }
        let value = |option: &&str| match option.starts_with("--") {
            true => word.strip_prefix(*option)?.strip_prefix('='),
            false => word.strip_prefix(*option),
        };
        options.iter().find_map(value).map(plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_show_its_tool_and_its_files() {
        for (line, expected) in [
            ("make test", Some((None, None))),
            ("node_modules/.bin/gulp --gulpfile=./qa/gulpfile.js", Some((None, Some("qa/gulpfile.js")))),
            ("make -C qa/ -f sum.mk", Some((Some("qa"), Some("sum.mk")))),
            ("cmake test", None),
            ("", None),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let found = ToolCommand::of(&words).map(|command| (command.folder, command.named));
            assert_eq!(found, expected, "{line}");
        }
        let words = ["make", "--directory=qa"];
        assert_eq!(ToolCommand::of(&words).map(|command| command.place("Makefile")).as_deref(), Some("qa/Makefile"));
    }
}

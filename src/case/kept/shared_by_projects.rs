//! Files that many projects share: by their names, and by how much of their content is not a comment. Pure.

/// The size of the largest configuration file whose content says nothing about a case, in bytes.
const MAX_CONFIGURATION_BYTES: u64 = 2 << 10;

/// The size of the largest module whose content says nothing about a case, in bytes without comments.
const MAX_MODULE_BYTES: usize = 200;

/// The beginnings of the names of files that hold a licence.
const LICENCES: [&str; 4] = ["COPYING", "LICENCE", "LICENSE", "NOTICE"];

/// The names of lock files that do not end in `.lock`. Package managers write them, whatever the project is.
const LOCK_FILES: [&str; 7] = [
    "bun.lockb",
    "go.sum",
    "gradle.lockfile",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pnpm-lock.yaml",
];

/// The names of files that configure tools, with the same content in many projects.
const CONFIGURATIONS: [&str; 12] = [
    ".editorconfig",
    ".gitattributes",
    ".gitignore",
    ".npmrc",
    "Cargo.toml",
    "go.mod",
    "jsconfig.json",
    "package.json",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "tox.ini",
];

/// The beginnings and ends of further names of such files.
const NAMED_LIKE: [(&str, &str); 6] = [
    (".mocharc.", ""),
    ("jest.config.", ""),
    ("requirements", ".txt"),
    ("tsconfig", ".json"),
    ("vite.config.", ""),
    ("vitest.config.", ""),
];

/// The names of modules of code that are short, and then alike, in many projects.
const MODULES: [&str; 2] = ["__init__.py", "conftest.py"];

/// The extensions of texts in which a line that begins like a comment is none.
const PROSE: [&str; 6] = ["adoc", "markdown", "md", "mdx", "rst", "txt"];

/// Returns the number of bytes without comments, blank lines and surrounding white space that a file of this name and size must
/// have at least to be found by its content, if other files need `usual`. `None` if its content never shows it.
pub fn least(name: &str, len: u64, usual: usize) -> Option<usize> {
    let is_like = |(start, end): &(&str, &str)| name.strip_prefix(*start).is_some_and(|rest| rest.ends_with(*end));
    let is_licence = LICENCES.iter().any(|known| name.starts_with(*known));
    let is_lock_file = name.ends_with(".lock") || LOCK_FILES.contains(&name);
    let is_configuration = CONFIGURATIONS.contains(&name) || NAMED_LIKE.iter().any(is_like);
    if is_licence || is_lock_file || (is_configuration && len <= MAX_CONFIGURATION_BYTES) {
        return None;
    }
    Some(if MODULES.contains(&name) { MAX_MODULE_BYTES + 1 } else { usual })
}

/// Returns the number of bytes of a text without its lines that are blank or hold only a comment. `name` is the name of its file.
/// A text whose language has other comments counts whole.
pub fn len_without_comments(name: &str, text: &[u8]) -> usize {
    let is_prose = name.rsplit_once('.').is_some_and(|(_, extension)| PROSE.contains(&extension));
    let (mut len, mut rest) = (0_usize, text);
    while !rest.is_empty() {
        let (line, following) = first_line(rest);
        let shown = line.trim_ascii();
        if shown.is_empty() || (!is_prose && is_comment(shown)) {
            rest = following;
        } else if let Some(behind) = Some(rest).filter(|_| !is_prose).and_then(behind_comment) {
            rest = behind;
        } else {
            len += line.trim_ascii_end().len() + 1;
            rest = following;
        }
    }
    // The end of the last line does not count.
    len.saturating_sub(1)
}

/// Returns true if a line without surrounding white space is a comment. `#` needs a space behind it: `#define` is none.
fn is_comment(line: &[u8]) -> bool {
    let is_hash = |rest: &[u8]| matches!(rest.first(), None | Some(b' ' | b'\t' | b'#' | b'!'));
    let starts: [&[u8]; 3] = [b"//", b"; ", b"-- "];
    starts.into_iter().any(|start| line.starts_with(start)) || line.strip_prefix(b"#").is_some_and(is_hash)
}

/// Returns the lines behind a comment that begins a text and has an end, if nothing else is in the line of its end.
fn behind_comment(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let pairs: [(&[u8], &[u8]); 2] = [(b"/*", b"*/"), (b"<!--", b"-->")];
    let (inner, end) = pairs.into_iter().find_map(|(start, end)| Some((text.strip_prefix(start)?, end)))?;
    let at = inner.windows(end.len()).position(|part| part == end)?;
    let (of_line, following) = first_line(inner.get(at + end.len()..)?);
    of_line.trim_ascii().is_empty().then_some(following)
}

/// Returns the first line of a text, and what follows its end.
fn first_line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| *byte == b'\n');
    end.and_then(|end| Some((text.get(..end)?, text.get(end + 1..)?))).unwrap_or((text, &[]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_are_no_content() {
        let len = |name: &str, text: &str| len_without_comments(name, text.as_bytes());
        for (name, text) in [
            ("__init__.py", "#!/usr/bin/env python\n# Copyright\n#\n\n## All rights\n"),
            ("a.ts", "/*\n * Copyright\n */\n\n// eslint\n/* one line */\n"),
            ("a.html", "<!-- Copyright\n -->\n"),
            ("a.sql", "-- Copyright\n"),
        ] {
            assert_eq!(len(name, text), 0, "{name}");
        }
        let code = "#define A 1\n/* a */ int b;\n/* c */\n  d();\n";
        assert_eq!(len("a.c", code), code.len() - "/* c */\n\n".len());
        assert_eq!(len("a.glob", "/*\nnever closed\n"), "/*\nnever closed".len());
        assert_eq!(len("a.md", "# Title\n\n<!-- x -->\n"), "# Title\n<!-- x -->".len());
        assert_eq!(len("a.bin", ""), 0);
    }

    #[test]
    fn names_that_many_projects_have_need_more_content_or_never_count() {
        for name in ["LICENSE-MIT", "Cargo.lock", "yarn.lock", "package-lock.json", "go.sum"] {
            assert_eq!(least(name, 1 << 20, 64), None, "{name}");
        }
        for name in ["tsconfig.json", "tsconfig.a.json", "requirements-dev.txt", "vite.config.ts", ".mocharc.yml"] {
            assert_eq!((least(name, 2048, 64), least(name, 2049, 64)), (None, Some(64)), "{name}");
        }
        assert_eq!((least("__init__.py", 900, 16), least("answer.txt", 900, 16)), (Some(201), Some(16)));
        assert_eq!(least("my-requirements.txt.py", 900, 64), Some(64));
    }
}

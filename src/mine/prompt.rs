//! Makes the draft of a prompt from a commit's message and the texts that the message refers to. Pure.

use std::collections::BTreeSet;

use crate::audit::leaks::hashes;
use crate::workspace::patch::sections::sections;

/// The maximum number of lines of a statement that imports names.
const MAX_IMPORT_LINES: usize = 50;

/// The texts that a prompt is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The commit's message.
    pub message: String,
    /// The lines that the commit adds to the project's release notes.
    pub notes: Vec<String>,
    /// The subjects of the earlier commits that the message names.
    pub named: Vec<String>,
    /// True if the commit deletes or changes tests, so that one that passes before it may not pass after it.
    pub changes_tests: bool,
}

/// Lines about people and tools.
const TRAILERS: [&str; 14] = [
    "signed-off-by:",
    "co-authored-by:",
    "reviewed-by:",
    "acked-by:",
    "tested-by:",
    "reported-by:",
    "suggested-by:",
    "change-id:",
    "git-svn-id:",
    "cc:",
    "pull-request:",
    "reviewed-on:",
    "commit-queue:",
    "(cherry picked from",
];

/// Returns a message without lines about people and tools.
fn without_trailers(message: &str) -> String {
    let is_trailer = |line: &&str| {
        let line = line.trim().to_ascii_lowercase();
        TRAILERS.iter().any(|trailer| line.starts_with(trailer))
    };
    let lines: Vec<&str> = message.lines().map(str::trim_end).filter(|line| !is_trailer(line)).collect();
    lines.join("\n").trim().to_owned()
}

/// Returns the prompt.
pub fn draft(sources: &Sources) -> String {
    let mut parts = vec![without_trailers(&sources.message)];
    if !sources.named.is_empty() {
        let named: Vec<String> = sources.named.iter().map(|subject| format!("- {subject}")).collect();
        parts.push(format!("Earlier changes that this one refers to:\n{}", named.join("\n")));
    }
    if !sources.notes.is_empty() {
        parts.push(format!("From the release notes of the change:\n{}", sources.notes.join("\n")));
    }
    let task = "Make this change in the repository. The result is checked by tests that you do not see.";
    parts.push(match sources.changes_tests {
        false => format!("{task} Tests that pass now must still pass."),
        true => task.to_owned(),
    });
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

/// Returns true if a line of JavaScript loads modules and calls nothing else: `const { a } = require('..');`.
fn only_requires(line: &str) -> bool {
    let mut parts = line.split("require(");
    let before = parts.next().unwrap_or_default();
    let after: Vec<&str> = parts.map(|part| part.split_once(')').map_or("", |(_, rest)| rest)).collect();
    !after.is_empty() && !before.contains('(') && !after.iter().any(|rest| rest.contains('('))
}

/// Returns true if a patch of tests deletes or changes a line of a test besides imports, comments and blank lines.
pub fn changes_tests(patch: &str) -> bool {
    sections(patch.as_bytes()).iter().flat_map(|section| section.texts()).any(|line| {
        let removed = line.strip_prefix('-').map(str::trim).unwrap_or_default();
        let is_other = ["//", "#", "import ", "from ", "use "].iter().any(|start| removed.starts_with(start));
        !removed.is_empty() && !is_other && !only_requires(removed)
    })
}

/// Words that say nothing about a task by themselves.
const EMPTY: &[&str] = &[
    "a",
    "add",
    "address",
    "adds",
    "all",
    "an",
    "and",
    "another",
    "bug",
    "bugfix",
    "bugs",
    "change",
    "changes",
    "cleanup",
    "code",
    "comment",
    "comments",
    "commit",
    "coverage",
    "feedback",
    "few",
    "for",
    "from",
    "gh",
    "hotfix",
    "improve",
    "improvement",
    "improvements",
    "in",
    "issue",
    "issues",
    "it",
    "merge",
    "minor",
    "misc",
    "more",
    "new",
    "of",
    "on",
    "pr",
    "problem",
    "pull",
    "ref",
    "refs",
    "request",
    "review",
    "see",
    "small",
    "some",
    "stuff",
    "test",
    "tests",
    "that",
    "the",
    "this",
    "ticket",
    "to",
    "typo",
    "unit",
    "update",
    "wip",
    "with",
];

/// Returns true if a character is of a script that is written without spaces between words.
fn is_without_spaces(c: char) -> bool {
    matches!(c,
        // Thai, Lao, Burmese and Khmer.
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        // Kana, and ideographs of Chinese and Japanese.
        | '\u{3005}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}'
    )
}

/// Returns a text with spaces around its parts in scripts that are written without spaces.
fn with_spaces(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    let mut previous = false;
    for c in text.chars() {
        let is = is_without_spaces(c);
        if is != previous {
            spaced.push(' ');
        }
        spaced.push(c);
        previous = is;
    }
    spaced
}

/// Returns true if a text says something about the task: it has three words or more besides references to issues, commits
/// and addresses, and not only words such as "fix the issue and add tests". In a script without spaces between words, each
/// three characters count as a word.
fn is_telling(text: &str) -> bool {
    const VERBS: [&str; 9] = ["fix", "fixes", "fixed", "close", "closes", "closed", "resolve", "resolves", "resolved"];
    // `GH-12`, `PROJ-345`
    let is_ticket = |word: &str| {
        let parts = word.split_once('-').filter(|(project, _)| project.len() >= 2);
        parts.is_some_and(|(project, number)| {
            let is_project = project.chars().all(|c| c.is_ascii_uppercase()) || project.eq_ignore_ascii_case("gh");
            is_project && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
        })
    };
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let is_reference =
        |word: &str| word.contains("://") || word.contains('#') || is_ticket(&plain(word)) || !hashes(word).is_empty();
    let text = with_spaces(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let has_reference = words.iter().any(|word| is_reference(word));
    let is_verb = |word: &str| VERBS.contains(&word);
    let content: Vec<String> = words
        .iter()
        .filter(|word| !is_reference(word))
        .map(|word| plain(word).to_lowercase())
        .filter(|word| word.chars().any(char::is_alphabetic) && !(has_reference && is_verb(word)))
        .collect();
    let (joined, single): (Vec<&String>, Vec<&String>) =
        content.iter().partition(|word| word.starts_with(is_without_spaces));
    let joined = joined.iter().map(|word| word.chars().count()).sum::<usize>() / 3;
    let has_content = joined > 0 || single.iter().any(|word| !EMPTY.contains(&word.as_str()) && !is_verb(word));
    single.len() + joined >= 3 && has_content
}

/// Returns true if neither the message, without trailers, nor anything else says something about the task.
pub fn is_thin(sources: &Sources) -> bool {
    let message = without_trailers(&sources.message);
    !is_telling(&message) && !is_telling(&sources.notes.join("\n")) && sources.named.is_empty()
}

/// Returns a prompt with what its tests expect of each solution: names, files that they import, and other files that a test
/// needs.
pub fn with_interface(
    prompt: &str,
    names: &BTreeSet<String>,
    imported: &BTreeSet<String>,
    needed: &BTreeSet<String>,
) -> String {
    let sentence = |verb: &str, all: &BTreeSet<String>| {
        let all: Vec<String> = all.iter().map(|name| format!("`{name}`")).collect();
        (!all.is_empty()).then(|| format!("The tests {verb} {}.", all.join(", ")))
    };
    let all = [sentence("use", names), sentence("import", imported), sentence("depend on", needed)];
    let sentences: Vec<String> = all.into_iter().flatten().collect();
    if sentences.is_empty() {
        return prompt.to_owned();
    }
    format!("{}\n\n{}\n", prompt.trim_end(), sentences.join(" "))
}

/// Returns true if a prompt names a file by its path.
pub fn names_file(prompt: &str, path: &str) -> bool {
    let words = prompt.split(|c: char| c.is_whitespace() || "`'\"()<>,;:".contains(c));
    words.map(|word| word.trim_start_matches("./").trim_end_matches(['.', '!', '?'])).any(|word| word == path)
}

/// Returns the statements of tests that import names: `import` and `from` of Python and JavaScript, `use` of Rust, and
/// `require` of Node, with their further lines.
pub fn imports(text: &str) -> String {
    let opened = |line: &str| line.matches(['(', '{']).count();
    let closed = |line: &str| line.matches([')', '}']).count();
    let mut found = String::new();
    let mut lines = text.lines();
    while let Some(first) = lines.next() {
        let start = first.trim_start();
        let is_import = ["import ", "from ", "use ", "pub use "].iter().any(|word| start.starts_with(word));
        let is_taken = ["const {", "let {", "var {"].iter().any(|word| start.starts_with(word));
        if !is_import && !is_taken && !start.contains("require(") {
            continue;
        }
        let mut statement = format!("{first}\n");
        while opened(&statement) > closed(&statement) && statement.lines().count() < MAX_IMPORT_LINES {
            let Some(line) = lines.next() else { break };
            statement.push_str(line);
            statement.push('\n');
        }
        if is_import || statement.contains("require(") {
            found.push_str(&statement);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_references_alone_is_thin() {
        let is_thin = |message: &str| is_thin(&Sources { message: message.to_owned(), ..Sources::default() });
        for message in [
            "fixes #20",
            "closes https://example.org/issues/7",
            "Fix bug",
            "wip",
            "add unit tests",
            "Fixes: a/b#12.",
            "Fix #123",
            "Closes GH-12",
            "Fix PROJ-12 and gh-3 (#4)",
            "Fix #1\n\nSigned-off-by: A B <a@b.example>",
            "Fix the issue in #12 and add tests",
            "Address review comments",
            "修正",
            "バグを修正 (#12)",
            "fix bug 修正",
        ] {
            assert!(is_thin(message), "{message}");
        }
        for message in [
            "Fix the sum",
            "Halve numbers for once (#3)",
            "Fix #12\n\nThe sum was wrong.",
            "値を返す関数を追加する",
            "READMEのmeanの説明を直す",
            "#12を修正：空のリストの平均は零とする",
            "修复空列表的平均值错误",
            "แก้ไขค่าเฉลี่ยของรายการว่าง",
        ] {
            assert!(!is_thin(message), "{message}");
        }
        let with =
            |note: &str| Sources { message: "Fix #12".to_owned(), notes: vec![note.to_owned()], ..Sources::default() };
        assert!(super::is_thin(&with("- Fix #12 (#13)")) && !super::is_thin(&with("- Fix the sum of numbers (#13)")));
    }

    #[test]
    fn imports_of_tests_are_read_with_all_their_lines() {
        let text = "from a import (\n    one,\n    two,\n)\nx = three\nuse b::{four,\n  five};\nconst {\n  six\n} = \
                    require('c')\nconst { seven } = eight\nimport { nine } from 'd'\n";
        let found = imports(text);
        for name in ["one", "two", "four", "five", "six", "nine"] {
            assert!(found.contains(name), "{name}: {found}");
        }
        assert!(!found.contains("three") && !found.contains("seven"), "{found}");
    }

    #[test]
    fn a_prompt_has_the_names_and_the_files_that_tests_expect() {
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        for (names, files, needed, added) in [
            (&["_one"][..], &[][..], &[][..], "\nThe tests use `_one`.\n"),
            (&[], &["lib/a.js", "lib/pad.js"], &[], "\nThe tests import `lib/a.js`, `lib/pad.js`.\n"),
            (&["fill"], &["lib/pad.js"], &[], "\nThe tests use `fill`. The tests import `lib/pad.js`.\n"),
            (&[], &[], &["docs/down.md", "package.json"], "\nThe tests depend on `docs/down.md`, `package.json`.\n"),
            (&[], &[], &[], ""),
        ] {
            let prompt = with_interface("Do it.\n", &all(names), &all(files), &all(needed));
            assert_eq!(prompt, format!("Do it.\n{added}"));
        }
        for (prompt, is_named) in [
            ("Add lib/pad.js.", true),
            ("Pad (`./lib/pad.js`)", true),
            ("Add src/lib/pad.js", false),
            ("Add lib/pad.json", false),
            ("Add pad.js to lib", false),
        ] {
            assert_eq!(names_file(prompt, "lib/pad.js"), is_named, "{prompt}");
        }
    }

    #[test]
    fn a_prompt_has_the_message_without_trailers() {
        let sources = Sources {
            message: "Fix the end\n\nThe last one was skipped.\n\nSigned-off-by: A <a@b>\n".to_owned(),
            notes: vec!["- The last one counts".to_owned()],
            named: vec!["Add the list".to_owned()],
            changes_tests: false,
        };
        let prompt = draft(&sources);
        assert!(prompt.starts_with("Fix the end\n\nThe last one was skipped.\n\nEarlier changes"), "{prompt}");
        assert!(prompt.contains("- Add the list\n\nFrom the release notes of the change:\n- The last one counts\n"));
        assert!(!prompt.contains("Signed-off-by") && prompt.ends_with("Tests that pass now must still pass.\n"));
        let changed = draft(&Sources { changes_tests: true, ..sources });
        assert!(changed.ends_with("by tests that you do not see.\n"), "{changed}");
    }

    #[test]
    fn a_deleted_or_changed_line_of_a_test_changes_tests() {
        let patch = |line: &str| format!("diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n{line}\n+x\n");
        for (line, changes) in [
            ("-    assert gamma() == 3", true),
            ("-}", true),
            ("-from calc import a", false),
            ("-const { a } = require('..');", false),
            ("-const test = require('node:test'), assert = require('node:assert');", false),
            ("-require('node:test')('adds', () => require('assert').equal(1, 1));", true),
            ("-test('adds', () => assert(require('..').a));", true),
            ("-# why", false),
            ("-", false),
            (" assert a", false),
        ] {
            assert_eq!(changes_tests(&patch(line)), changes, "{line}");
        }
        assert!(!changes_tests(""));
    }
}

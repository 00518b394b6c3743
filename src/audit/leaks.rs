//! Finds the parts of a solution in a prompt: lines, words that only the solution introduces, hashes, links to the change
//! and pieces of a patch. Pure.

use std::collections::BTreeSet;

use super::definitions::{self, in_code};

/// The minimum number of characters of a line that is compared.
const MIN_LINE_CHARS: usize = 8;
/// The minimum number of characters, without spaces, of code that is searched for within a prompt.
const CODE: usize = 16;
/// The minimum number of characters of a word that is compared.
const WORD: usize = 4;
/// The maximum number of leaks that are listed.
const MAX_LEAKS: usize = 50;

/// Words of programming languages, and of English in comments, that reveal nothing about a solution.
const COMMON: &str = " abstract after also assert async await because been before bool boolean both break case catch char \
    class const continue could crate default defer delete dict does done double each elif else elseif endif enum except \
    export extends false final finally float from func function global have ident impl implements import instanceof int \
    integer interface into just lambda like list local long loop made make match module more most move must mutable null \
    None only other over package pass print private protected public raise range return returns self short should since \
    some static str string struct such super switch than that their them then there they this throw throws trait true \
    True False type typeof under undefined union unsafe used uses using void were what when where which while will with \
    would yield ";

/// Returns the words of a prompt that the added lines of a patch contain too, also short ones that the patch defines, and
/// the names of the files that it adds. Whether the state before contains them must be found out from the repository.
pub fn shared_words(prompt: &str, patch: &str) -> BTreeSet<String> {
    let mut added: BTreeSet<String> = added(patch).flat_map(words).collect();
    added.extend(definitions::files(patch));
    let defined = definitions::names(patch);
    let kept: BTreeSet<&str> = kept(patch).flat_map(all_words).collect();
    let shared = words(prompt).filter(|word| added.contains(word));
    let short = all_words(prompt).filter(|word| defined.contains(*word)).map(str::to_owned);
    let short =
        short.filter(|word| word.chars().count() >= WORD || !definitions::is_prose(word) || in_code(prompt, word));
    let all = shared.chain(short);
    all.filter(|word| !kept.contains(word.as_str()) && !COMMON.contains(&format!(" {word} "))).collect()
}

/// Returns the words of [`shared_words`] that the prompt uses as names of code, without words that a message and a comment
/// share by chance.
pub fn shared_names(prompt: &str, patch: &str) -> BTreeSet<String> {
    let (code, defined) = (definitions::code_words(patch), definitions::names(patch));
    let is_meant = |word: &String| definitions::is_meant(prompt, word, &code, &defined);
    let files = definitions::files(patch);
    let is_file = |word: &String| files.contains(word) && in_code(prompt, word);
    shared_words(prompt, patch).into_iter().filter(|word| is_meant(word) || is_file(word)).collect()
}

/// Returns the leaks of a prompt. `introduced` are those of [`shared_names`] that the state before does not contain.
pub fn leaks(prompt: &str, patch: &str, introduced: &BTreeSet<String>) -> Vec<String> {
    let mut found = lines(prompt, patch);
    for leak in hashes(prompt).into_iter().chain(introduced.iter().map(String::as_str)) {
        let is_part = |known: &String| known == leak || (is_link(known) && known.contains(leak));
        if !found.iter().any(is_part) {
            found.push(leak.to_owned());
        }
    }
    found.truncate(MAX_LEAKS);
    found
}

/// Returns the leaks of a prompt that are not names: lines of the prompt that the patch adds, or that have the form of
/// a line of a patch (`@@ …`); added lines of the patch whose code the prompt contains within a sentence, with other
/// spaces, or on several lines; and links to a change.
pub fn lines(prompt: &str, patch: &str) -> Vec<String> {
    let all: BTreeSet<&str> = added(patch).map(str::trim).filter(|line| !line.is_empty()).collect();
    let removed: BTreeSet<&str> = kept(patch).filter_map(|line| line.strip_prefix('-')).map(str::trim).collect();
    let lines: BTreeSet<&str> = all.iter().copied().filter(|line| is_telling(line)).collect();
    let mut found: Vec<String> = Vec::new();
    for line in prompt.lines() {
        let plain = line.trim();
        let pasted = [('+', &all), ('-', &removed)].into_iter().find_map(|(sign, lines)| {
            let rest = plain.strip_prefix(sign)?;
            // An item of a list has a space after its sign.
            let is_item = rest.starts_with(' ') && !rest.starts_with("  ");
            (lines.contains(rest.trim()) && (!is_item || !operations(rest.trim()).is_empty())).then(|| rest.trim())
        });
        if pasted.is_some_and(|rest| rest.chars().any(char::is_alphanumeric) && !found.iter().any(|it| it == plain)) {
            found.push(plain.to_owned());
            continue;
        }
        let is_patch = ["diff --git ", "@@ ", "+++ ", "--- a/", "index "].iter().any(|start| plain.starts_with(start));
        let without_sign = plain.trim_start_matches(['+', '-', '*', '>', '`', ' ']).trim_end_matches('`').trim();
        let is_line = lines.contains(plain) || lines.contains(without_sign);
        if ((is_patch && plain.len() >= MIN_LINE_CHARS) || is_line) && !found.iter().any(|known| known == plain) {
            found.push(plain.to_owned());
        }
    }
    let dense = without_space(prompt);
    for line in lines {
        let Some(code) = code(line) else { continue };
        if dense.contains(&code) && !found.iter().any(|known| without_space(known).contains(&code)) {
            found.push(line.to_owned());
        }
    }
    let (tokens, before) = (tokens(prompt), kept(patch).map(tokens).collect::<Vec<_>>());
    for line in all {
        let Some(part) = operations(line).into_iter().find(|part| holds(&tokens, part)) else { continue };
        let is_known = || found.iter().any(|known| holds(&self::tokens(known), &part));
        if !before.iter().any(|tokens| holds(tokens, &part)) && !is_known() {
            found.push(line.to_owned());
        }
    }
    for link in prompt.split(|c: char| c.is_whitespace() || "<>()[]\"'`,;".contains(c)).filter(|word| is_link(word)) {
        let link = link.trim_end_matches(['.', ':', '!', '?']);
        if !found.iter().any(|known| known.contains(link)) {
            found.push(link.to_owned());
        }
    }
    found
}

/// Returns true if a word is the address of a pull request, a merge request or a commit.
fn is_link(word: &str) -> bool {
    let after = |mark: &str| word.split_once(mark).map(|(_, rest)| rest.chars());
    let is_number = ["/pull/", "/pulls/", "/pull-requests/", "/merge_requests/"]
        .iter()
        .any(|mark| after(mark).is_some_and(|mut rest| rest.next().is_some_and(|c| c.is_ascii_digit())));
    let is_commit = ["/commit/", "/commits/"]
        .iter()
        .any(|mark| after(mark).is_some_and(|rest| rest.take_while(char::is_ascii_hexdigit).count() >= 6));
    is_number || is_commit
}

/// Returns the tokens of the code in a line: what is returned, or the whole line and what is assigned. Comments have none,
/// and neither has code without an operation, such as a name or a call, which may be in a prompt by chance.
fn operations(line: &str) -> Vec<Vec<&str>> {
    if is_comment(line) {
        return Vec::new();
    }
    let assigned = line.split_once(" = ").map(|(_, assigned)| assigned);
    [Some(line.strip_prefix("return ").unwrap_or(line)), assigned].into_iter().flatten().filter_map(operation).collect()
}

/// Returns the tokens of code if it has an operation.
fn operation(code: &str) -> Option<Vec<&str>> {
    let part = code.trim_end_matches([';', '{', ',', ' ']);
    let tokens = tokens(part);
    // A quote ends an operand, such as `"$1"`, if it closes a text.
    let is_operand = |before: &[&str]| match before.last() {
        Some(quote @ (&"\"" | &"'")) => before.iter().filter(|token| *token == quote).count().is_multiple_of(2),
        Some(token) => token.starts_with(is_word_char) || *token == ")",
        None => false,
    };
    let operates = tokens.iter().enumerate().any(|(at, token)| match *token {
        "+" | "*" | "%" | "<" | ">" | "=" | "&" | "|" | "^" | "[" => {
            is_operand(tokens.get(..at).unwrap_or_default()) && at + 1 < tokens.len()
        }
        // Without spaces these are in words and paths.
        "-" | "/" => part.contains(&format!(" {token} ")) && at > 0 && at + 1 < tokens.len(),
        _ => false,
    });
    (operates && tokens.len() >= 3).then_some(tokens)
}

/// Returns the words and the other characters of a text, without spaces.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match is_word_char(first) {
            true => rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if tokens contain a part.
fn holds(tokens: &[&str], part: &[&str]) -> bool {
    tokens.windows(part.len().max(1)).any(|window| window == part)
}

fn is_comment(line: &str) -> bool {
    ["#", "//", "/*", "*", "--", "\"\"\"", "'"].iter().any(|start| line.starts_with(start))
}

/// Returns the code of a line without spaces: the assigned or returned value, or the whole line. Returns `None` for a
/// comment, and for code that a prompt may contain by chance: it is short, or has fewer than two operators or brackets.
fn code(line: &str) -> Option<String> {
    if is_comment(line) {
        return None;
    }
    let given = line.split_once(" = ").map_or(line, |(_, given)| given);
    let given = given.strip_prefix("return ").unwrap_or(given).trim_end_matches([';', '{', ',']);
    let dense = without_space(given);
    let marks = dense.chars().filter(|c| "()[]{}<>=+*/%&|!".contains(*c)).count();
    (dense.chars().count() >= CODE && marks >= 2).then_some(dense)
}

fn without_space(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the words of a message that may be the names of commits.
pub fn hashes(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_hash = |word: &&str| {
        (7..=64).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            && word.bytes().any(|byte| byte.is_ascii_digit())
            && word.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    words.filter(is_hash).collect()
}

/// Returns the lines that a patch adds.
fn added(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'))
}

/// Returns the lines of a patch that are in the state before.
fn kept(patch: &str) -> impl Iterator<Item = &str> {
    patch.lines().filter(|line| line.starts_with([' ', '-']) && !line.starts_with("---"))
}

/// Returns true if a line is more than punctuation and a keyword.
fn is_telling(line: &str) -> bool {
    line.chars().count() >= MIN_LINE_CHARS && line.chars().filter(|c| c.is_alphanumeric()).count() >= WORD
}

/// Returns the words of a text as they are written in code: letters, digits and `_`, without plain numbers.
fn words(text: &str) -> impl Iterator<Item = String> {
    all_words(text).filter(|word| word.chars().count() >= WORD).map(str::to_owned)
}

/// Returns the words of a text, also short ones.
fn all_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word_char(c)).filter(|word| word.chars().any(char::is_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@\n def total(items):\n-    return sum(items[:-1])\n+    \
                         checked = validate_items(items)\n+    return sum(checked)\n";

    #[test]
    fn words_that_only_the_solution_has_are_shared() {
        let prompt = "The total of items is wrong: call validate_items and return the sum of the checked ones.";
        let shared: Vec<String> = shared_words(prompt, PATCH).into_iter().collect();
        assert_eq!(shared, ["checked", "validate_items"]);
    }

    #[test]
    fn words_of_prose_are_no_names() {
        let patch = "diff --git a/helper.py b/helper.py\n--- /dev/null\n+++ b/helper.py\n@@ -0,0 +1,6 @@\n+def half(number):\n\
                     +    \"\"\"Divides numbers evenly.\"\"\"\n+    # Otherwise rounding loses digits; see old_name.\n\
                     +    checked = validate_items(number, \"positive\", base64)\n+    return checked // 2\n+def inc(x): pass\n";
        let names = |prompt: &str| shared_names(prompt, patch).into_iter().collect::<Vec<String>>();
        assert_eq!(
            names("Halve evenly: otherwise rounding loses digits of positive numbers. A half is checked."),
            [""; 0]
        );
        assert_eq!(names("The number helper: half of it, in base64."), ["base64"]);
        assert_eq!(names("Add inc and the function half, see old_name."), ["half", "inc", "old_name"]);
        assert_eq!(
            names("Call `half` and validate_items with helper.half, checked()."),
            ["checked", "half", "validate_items"]
        );
        assert_eq!(names("Put it into `helper`."), ["helper"]);
    }

    #[test]
    fn lines_hashes_and_patches_are_leaks() {
        let prompt =
            "Fix total, see 0a1b2c3d.\n\n    return sum(checked)\n- `return sum(checked)`\n@@ -1,3 +1,4 @@\nok\n";
        let found = leaks(prompt, PATCH, &BTreeSet::from(["checked".to_owned()]));
        assert_eq!(found, ["return sum(checked)", "- `return sum(checked)`", "@@ -1,3 +1,4 @@", "0a1b2c3d", "checked"]);
        assert_eq!(leaks("The total is wrong.\n", PATCH, &BTreeSet::new()), Vec::<String>::new());
    }

    #[test]
    fn code_within_a_sentence_is_a_leak() {
        let patch = "+++ b/x.py\n+    result = sum(item.price * item.count for item in items)\n+    # of all (the) items = many\n+    ok = f(x)\n";
        let line = "result = sum(item.price * item.count for item in items)";
        for prompt in [
            "Make it work: sum(item.price*item.count for item in items).",
            "Use `result = sum(item.price * item.count for item in items)`",
            "Use\nresult = sum(item.price *\n   item.count for item\nin items)\n",
        ] {
            assert_eq!(lines(prompt, patch), [line], "{prompt}");
        }
        assert_eq!(lines("Sum of all (the) items = many, with f(x).", patch), Vec::<String>::new());
        // It is listed once.
        assert_eq!(lines(line, patch), [line]);
    }

    #[test]
    fn short_code_is_a_leak_if_it_operates() {
        let patch = "+++ b/x.py\n-    return a - b\n+    return a + b\n+    return x[n - 1]\n+MAX = 7\n+    else:\n+    go(x)\n\
                     +    re-run\n+total = a * b\n+# a = b\n     i = 0\n+    i = 0\n+expr \"$1\" + \"$2\"\n+\"+\",\n";
        for (prompt, expected) in [
            ("add() must return a + b and not a - b", &["return a + b"][..]),
            ("use `a+b`", &["return a + b"]),
            ("data + bytes, a+bc, a +", &[]),
            ("Fix last: the body is now `return x[n - 1]`.", &["return x[n - 1]"]),
            ("diff:\n+MAX = 7", &["+MAX = 7"]),
            ("diff:\n-    return a - b\n+    else:\n", &["-    return a - b", "+    else:"]),
            ("MAX is 7, or else: go(x), and re-run.", &[]),
            ("- else:\n- a = b\n- MAX = 7", &["MAX = 7"]),
            ("total is a * b", &["total = a * b"]),
            ("begin with i = 0", &[]),
            ("Use `expr \"$1\" + \"$2\"`.", &["expr \"$1\" + \"$2\""]),
            ("The operator is \"+\", and not \"$1\".", &[]),
        ] {
            assert_eq!(lines(prompt, patch), expected, "{prompt}");
        }
    }

    #[test]
    fn links_to_the_change_are_leaks() {
        let prompt = "See https://github.com/x/y/pull/3/files, (https://github.com/x/y/commit/abcdef1), \
                      https://gitlab.com/x/-/merge_requests/4. Not https://x.org/pull/up or https://github.com/x/y/issues/3.";
        assert_eq!(
            leaks(prompt, "", &BTreeSet::new()),
            [
                "https://github.com/x/y/pull/3/files",
                "https://github.com/x/y/commit/abcdef1",
                "https://gitlab.com/x/-/merge_requests/4"
            ]
        );
    }

    #[test]
    fn new_files_and_short_functions_are_words_of_the_solution() {
        let patch = "diff --git a/quux_helper.py b/quux_helper.py\nnew file mode 100644\n--- /dev/null\n+++ b/quux_helper.py\n\
                     @@ -0,0 +1 @@\n+V = 1\ndiff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1,4 @@\n def f(a):\n\
                     +def inc(a):\n+    if a: return 1\n+    else: return 2\n+def add(a): pass\n+def set(a): pass\n";
        let shared = |prompt: &str| shared_words(prompt, patch).into_iter().collect::<Vec<String>>();
        assert_eq!(shared("Put V into the new module quux_helper, or else."), ["quux_helper"]);
        assert_eq!(shared("Add inc, which f needs, to add a set."), ["inc"]);
        assert_eq!(shared("Add `add`, and x.set to f(x)."), ["add", "set"]);
    }

    #[test]
    fn hashes_are_words_of_hexadecimal_digits() {
        assert_eq!(hashes("reverts 1a2b3c4 (see 0123456, defaced, 12ab)"), ["1a2b3c4"]);
    }
}

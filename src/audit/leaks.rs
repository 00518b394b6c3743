//! Finds the parts of a solution in a prompt: lines, words that only the solution introduces, hashes and pieces of a
//! patch. Pure.

use std::collections::BTreeSet;

/// The minimum number of characters of a line that is compared.
const LINE: usize = 8;
/// The minimum number of characters, without spaces, of code that is searched for within a prompt.
const CODE: usize = 16;
/// The minimum number of characters of a word that is compared.
const WORD: usize = 4;
/// The maximum number of leaks that are listed.
const MOST: usize = 50;

/// Returns the words of a prompt that the added lines of a patch contain too. Whether the state before contains them
/// must be found out from the repository.
pub fn shared_words(prompt: &str, patch: &str) -> BTreeSet<String> {
    let added: BTreeSet<String> = added(patch).flat_map(words).collect();
    let kept: BTreeSet<String> =
        patch.lines().filter(|line| line.starts_with([' ', '-']) && !line.starts_with("---")).flat_map(words).collect();
    words(prompt).filter(|word| added.contains(word) && !kept.contains(word)).collect()
}

/// Returns the leaks of a prompt. `introduced` are those of [`shared_words`] that the state before does not contain.
pub fn leaks(prompt: &str, patch: &str, introduced: &BTreeSet<String>) -> Vec<String> {
    let mut found = lines(prompt, patch);
    for leak in hashes(prompt).into_iter().chain(introduced.iter().map(String::as_str)) {
        if !found.iter().any(|known| known == leak) {
            found.push(leak.to_owned());
        }
    }
    found.truncate(MOST);
    found
}

/// Returns the lines of a prompt that are lines which a patch adds, or lines of a patch, and the added lines whose code
/// the prompt contains within a sentence, with other spaces, or on several lines.
pub fn lines(prompt: &str, patch: &str) -> Vec<String> {
    let lines: BTreeSet<&str> = added(patch).map(str::trim).filter(|line| is_telling(line)).collect();
    let mut found: Vec<String> = Vec::new();
    for line in prompt.lines() {
        let plain = line.trim();
        let is_patch = ["diff --git ", "@@ ", "+++ ", "--- a/", "index "].iter().any(|start| plain.starts_with(start));
        let without_sign = plain.trim_start_matches(['+', '-', '*', '>', '`', ' ']).trim_end_matches('`').trim();
        let is_line = lines.contains(plain) || lines.contains(without_sign);
        if ((is_patch && plain.len() >= LINE) || is_line) && !found.iter().any(|known| known == plain) {
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
    found
}

/// Returns the code of a line without spaces: what is assigned or returned, or all of it. `None` for a comment, and for
/// code that is too short to be in a prompt only because the solution has it.
fn code(line: &str) -> Option<String> {
    if ["#", "//", "/*", "*", "--", "\"\"\"", "'"].iter().any(|start| line.starts_with(start)) {
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

/// Returns true if a line is more than punctuation and a keyword.
fn is_telling(line: &str) -> bool {
    line.chars().count() >= LINE && line.chars().filter(|c| c.is_alphanumeric()).count() >= WORD
}

/// Returns the words of a text as they are written in code: letters, digits and `_`, without plain numbers.
fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| word.chars().count() >= WORD);
    words.filter(|word| word.chars().any(char::is_alphabetic)).map(str::to_owned)
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
    fn hashes_are_words_of_hexadecimal_digits() {
        assert_eq!(hashes("reverts 1a2b3c4 (see 0123456, defaced, 12ab)"), ["1a2b3c4"]);
    }
}

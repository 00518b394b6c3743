//! Finds the answer in a prompt: lines and identifiers of the reference solution, and values that hidden tests expect.
//! Pure.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{definitions, leaks};

/// The maximum number of parts that are listed.
const MAX_PARTS: usize = 20;
/// The minimum number of characters of an expected text.
const TEXT: usize = 4;
/// The minimum number of digits of an expected number. Shorter ones are in many prompts by chance.
const DIGITS: usize = 3;
/// The words and signs that mark a line of a test as an expectation. The expected value is on either side.
const EXPECTS: [&str; 12] =
    ["==", "assert", "expect", "should", "equal", "to_be", "tobe", "want", "must", "grep", "test ", "diff"];
/// The names of functions whose first text is the title of a test.
const TITLES: [&str; 5] = ["@test", "context", "describe", "it", "test"];

/// A part of the answer in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Answer {
    /// The kind of the part.
    pub kind: AnswerKind,
    /// The text in the prompt.
    pub text: String,
}

/// A kind of part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A line that the reference solution adds.
    Line,
    /// An identifier that only the reference solution introduces.
    Identifier,
    /// A value that hidden tests expect.
    ExpectedValue,
}

/// The texts of a case that a prompt is compared with.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'a> {
    /// The patch of the reference solution, if there is one.
    pub patch: &'a str,
    /// The hidden tests.
    pub hidden: &'a [String],
    /// The case file and its suites. The agent needs to know the names that graders use, so these names are not leaks.
    pub case: &'a [&'a str],
}

/// Returns the parts of the answer that a prompt may contain. The workspace before the agent's work decides whether
/// identifiers and values are new: [`new`] drops those that it contains.
pub fn candidates(prompt: &str, texts: Texts<'_>) -> Vec<Answer> {
    let of = |kind| move |text: String| Answer { kind, text };
    let lines = leaks::lines(prompt, texts.patch).into_iter().map(of(AnswerKind::Line));
    let in_case = |word: &str| texts.case.iter().map(|text| text.matches(word).count()).sum::<usize>();
    // The tests call what the solution defines, so the prompt has to name it. The case file contains the prompt too.
    let is_interface = |word: &str| {
        texts.hidden.iter().any(|text| text.contains(word)) || in_case(word) > prompt.matches(word).count()
    };
    let words = leaks::shared_words(prompt, texts.patch);
    let defined = definitions::names(texts.patch);
    let is_code = |word: &str| defined.contains(word) && definitions::in_code(prompt, word);
    let words =
        words.into_iter().filter(|word| (definitions::is_identifier(word) || is_code(word)) && !is_interface(word));
    let expected: BTreeSet<String> = texts.hidden.iter().flat_map(|text| expected_values(text)).collect();
    // A title often has the name of the function that is tested.
    let is_called = |value: &str| texts.hidden.iter().any(|text| calls(text, value));
    let is_told = |value: &String| has_word(prompt, value) && !is_called(value);
    let expected: Vec<String> = expected.into_iter().filter(is_told).collect();
    // A number in a quoted text is a part of it.
    let is_part = |value: &String| expected.iter().any(|other| other.len() > value.len() && other.contains(value));
    let expected: Vec<String> = expected.iter().filter(|value| !is_part(value)).cloned().collect();
    lines
        .chain(words.map(of(AnswerKind::Identifier)))
        .chain(expected.into_iter().map(of(AnswerKind::ExpectedValue)))
        .collect()
}

/// Returns the candidates that the workspace does not already contain. `known` are the texts found in it, or `None` if a
/// part of it was not read: then only lines are known to be new.
pub fn new(candidates: Vec<Answer>, known: Option<&BTreeSet<String>>) -> Vec<Answer> {
    let is_new =
        |answer: &Answer| answer.kind == AnswerKind::Line || known.is_some_and(|known| !known.contains(&answer.text));
    candidates.into_iter().filter(is_new).take(MAX_PARTS).collect()
}

/// Returns the literals in the lines of a test that state an expectation, without the titles of tests.
fn expected_values(text: &str) -> BTreeSet<String> {
    let of_line = |line: &str| {
        let quoted = texts_in_quotes(line);
        let start = end_of_title(line, &quoted);
        let rest = line.get(start..).unwrap_or_default();
        let lower = rest.to_ascii_lowercase();
        if !EXPECTS.iter().any(|word| lower.contains(word)) {
            return None;
        }
        let texts = quoted.into_iter().filter(|(at, text)| *at >= start && is_telling(text));
        let texts: Vec<String> = texts.map(|(_, text)| text.trim().to_owned()).collect();
        Some(texts.into_iter().chain(numbers(rest)))
    };
    text.lines().filter_map(of_line).flatten().collect()
}

/// Returns the place in a line of a test after the title of the test, or 0 if the line has none. A title is not an expected
/// value, whatever its words are.
fn end_of_title(line: &str, quoted: &[(usize, &str)]) -> usize {
    let trimmed = line.trim_end();
    // `"A stack" should "give its values" in {`
    if trimmed.ends_with(" in {") {
        return line.len();
    }
    let Some((at, title)) = quoted.first() else { return 0 };
    let end = at + title.len() + 1;
    let before = line.get(..at - 1).unwrap_or_default().trim();
    let is_title = match before.strip_suffix('(') {
        // `it.only('adds', () => …`, and not `test("a" == b)`
        Some(name) => {
            let is_followed = line.get(end..).is_some_and(|rest| rest.trim_start().starts_with(','));
            is_followed && name.split('.').next().is_some_and(|name| TITLES.contains(&name))
        }
        // `test "of a title" do` is not the command `test`, and `while test "$a" != "$b"; do` is.
        None => {
            let is_block = trimmed.ends_with(" do") && !trimmed.ends_with("; do");
            before == "@test" || (is_block && TITLES.contains(&before))
        }
    };
    if is_title { end } else { 0 }
}

/// Returns true if a quoted text is long enough to be no coincidence.
fn is_telling(text: &str) -> bool {
    let is_long = text.chars().count() >= TEXT && text.chars().filter(|c| c.is_alphanumeric()).count() >= TEXT;
    is_long && !text.contains('\\')
}

/// Returns the quoted texts of a line, each with its place.
fn texts_in_quotes(line: &str) -> Vec<(usize, &str)> {
    let (mut found, mut rest) = (Vec::new(), line);
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let (_, after) = rest.split_at(start);
        let mut chars = after.chars();
        let Some(quote) = chars.next() else { break };
        let inner = chars.as_str();
        let Some(end) = inner.find(quote) else { break };
        let (value, tail) = inner.split_at(end);
        found.push((line.len() - inner.len(), value));
        rest = tail.get(quote.len_utf8()..).unwrap_or_default();
    }
    found
}

/// Returns the numbers of a line that have enough digits.
fn numbers(line: &str) -> Vec<String> {
    let words = line.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).map(|word| word.trim_matches('.'));
    let is_number = |word: &&str| {
        word.chars().all(|c| c.is_ascii_digit() || c == '.')
            && word.chars().filter(char::is_ascii_digit).count() >= DIGITS
    };
    words.filter(is_number).map(str::to_owned).collect()
}

/// Returns true if a text calls a function.
fn calls(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, found)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at + found.len()..).unwrap_or_default());
        after.starts_with('(') && !before.ends_with(is_part)
    })
}

/// Returns true if a text contains a value that is not a part of a longer word.
fn has_word(text: &str, value: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(value).any(|(at, found)| {
        let (before, after) = (text.get(..at), text.get(at + found.len()..));
        !is_part(before.and_then(|it| it.chars().next_back())) && !is_part(after.and_then(|it| it.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@\n def total(items):\n-    return \
                         sum(items[:-1])\n+    checked = validate_items(items)\n+    return sum(checked)\n";

    fn found(prompt: &str, hidden: &[&str], case: &[&str]) -> Vec<(AnswerKind, String)> {
        let hidden: Vec<String> = hidden.iter().map(|text| (*text).to_owned()).collect();
        let texts = Texts { patch: PATCH, hidden: &hidden, case };
        candidates(prompt, texts).into_iter().map(|it| (it.kind, it.text)).collect()
    }

    #[test]
    fn lines_and_identifiers_of_the_solution_are_found_and_plain_words_are_not() {
        let prompt = "The total is wrong. Call validate_items, then:\n    return sum(checked)\n";
        let all = [
            (AnswerKind::Line, "return sum(checked)".to_owned()),
            (AnswerKind::Identifier, "validate_items".to_owned()),
        ];
        assert_eq!(found(prompt, &[], &[]), all);
        // The prompt itself is a part of the case file.
        assert_eq!(found(prompt, &[], &["prompt: call validate_items\n"])[..1], all[..1]);
    }

    #[test]
    fn what_tests_or_graders_name_is_the_interface() {
        let prompt = "Write validate_items.";
        assert_eq!(found(prompt, &["from x import validate_items\n"], &[]), []);
        let case = "prompt: Write validate_items.\ngraders: [{command: {run: python -c 'validate_items()'}}]";
        assert_eq!(found(prompt, &[], &[case]), []);
        let case = "prompt: Write validate_items.\n";
        assert_eq!(found(prompt, &[], &[case]).len(), 1);
    }

    #[test]
    fn titles_and_names_of_functions_are_no_expected_values() {
        for (test, expected) in [
            ("test('parse', () => assert.equal(parse('one'), 1));\n", &[""; 0][..]),
            ("test('sum of words', () => assert.equal(sum('hello'), 1250));\n", &["1250", "hello"]),
            ("it('should be sum of words', () => {\n", &[]),
            ("test \"sum of words\" do\n  assert_equal 'hello', x\n", &["hello"]),
            ("while test \"$a\" != \"hello\"; do\n", &["hello"]),
            ("if 'hello' == sum()\n", &["hello"]),
            ("if sum() != \"hello\" { t.Errorf(\"got %q, want another\", x) }\n", &["hello"]),
            ("assert x == 'hello'\nassert 'parse' in names\nparse('x')\n", &["hello"]),
            // The value is before the word.
            ("echo 'hello' | diff - out\n", &["hello"]),
            ("printf 'hello' > want; diff want out\n", &["hello"]),
            ("[ \"$(f)\" = 'hello' ] || fail expected\n", &["hello"]),
            ("'hello'.should.equal(f())\n", &["hello"]),
            ("\"hello\" should be (f())\n", &["hello"]),
            ("if got != \"hello\" { t.Fatal(want) }\n", &["hello"]),
            ("test(\"hello\" == f())\n", &["hello"]),
            ("\"sum of words\" should \"be hello\" in {\n", &[]),
            ("it.only('sum of words', () => expect(sum()).toBe('hello'));\n", &["hello"]),
            ("@test \"sum of words\" {\n  test \"$(sum)\" = 'hello'\n", &["hello"]),
        ] {
            let prompt = "The sum of words: hello is 1250, and parse reads words.";
            let found: Vec<String> = found(prompt, &[test], &[]).into_iter().map(|it| it.1).collect();
            assert_eq!(found, expected, "{test}");
        }
    }

    #[test]
    fn values_that_tests_expect_are_found_as_whole_words() {
        let test = "import total\nassert total([1]) == 1250\nassertEqual(name(), \"hello-world\")\nx = 'no telling'\n";
        let texts = |prompt: &str| found(prompt, &[test], &[]).into_iter().map(|it| it.1).collect::<Vec<_>>();
        assert_eq!(texts("The sum is 1250, the slug hello-world."), ["1250", "hello-world"]);
        assert_eq!(texts("The sum is 12503, see hello-worlds; no telling."), Vec::<String>::new());
        let known = BTreeSet::from(["1250".to_owned()]);
        let prompt = "The sum is 1250.";
        let hidden = [test.to_owned()];
        let all = candidates(prompt, Texts { hidden: &hidden, ..Texts::default() });
        assert_eq!((all.len(), new(all.clone(), Some(&known)).len()), (1, 0));
        assert_eq!((new(all.clone(), Some(&BTreeSet::new())).len(), new(all, None).len()), (1, 0));
    }
}

//! Translates regular expressions of JavaScript and Python, or returns the reason why there is no equivalent.

use std::iter::Peekable;
use std::str::Chars;

use crate::values::Pattern;

/// The language of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    JavaScript,
    /// JavaScript with the flag `u`.
    JavaScriptUnicode,
    Python,
}

/// The reader of a translated regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// A grader, or an expression of a case.
    Grader,
    /// A grader of a text in which `\r\n` may be a line end. The source reads it as a line feed.
    AnyLineEnds,
    /// The module `re` of Python, in a program that a grader starts.
    PythonProgram,
}

/// Returns the equivalent of a JavaScript regular expression for a grader.
///
/// # Errors
/// Returns the reason if there is no equivalent: lookaround, references to groups, sticky matches, or a part that means something
/// else here.
pub fn from_javascript(source: &str, flags: &str) -> Result<String, String> {
    translated(source, flags, javascript(flags), Reader::Grader)
}

/// Returns the equivalent of a JavaScript regular expression for a program in Python.
///
/// # Errors
/// Returns the reason if there is no equivalent.
pub fn from_javascript_to_python(source: &str, flags: &str) -> Result<String, String> {
    translated(source, flags, javascript(flags), Reader::PythonProgram)
}

/// Returns the equivalent of a regular expression of Python, with flags as letters, for a grader.
///
/// # Errors
/// Returns the reason if there is no equivalent.
pub fn from_python(source: &str, flags: &str) -> Result<String, String> {
    translated(source, flags, Language::Python, Reader::Grader)
}

/// Returns the equivalent of a regular expression of Python for a grader of files or output that Python reads as text: there,
/// `\r\n` is a line feed. The pattern never takes `\r\n` for two characters.
///
/// # Errors
/// Returns the reason if there is no equivalent.
pub fn from_python_for_text(source: &str, flags: &str) -> Result<String, String> {
    translated(source, flags, Language::Python, Reader::AnyLineEnds)
}

/// Returns a pattern that matches a text whose line feeds may be `\r\n`.
pub fn with_any_line_ends(text: &str) -> String {
    text.split('\n').map(regex::escape).collect::<Vec<String>>().join(LINE_END)
}

const LINE_END: &str = r"(?:\r?\n)";

/// A pattern without a match: a text that Python reads has no carriage return.
const NOTHING: &str = r"[^\s\S]";

fn javascript(flags: &str) -> Language {
    if flags.contains('u') { Language::JavaScriptUnicode } else { Language::JavaScript }
}

fn translated(source: &str, flags: &str, language: Language, reader: Reader) -> Result<String, String> {
    let mut kept = String::new();
    for flag in flags.chars() {
        match flag {
            'i' | 'm' | 's' => kept.push(flag),
            // All matches, indices, code points: whether there is a match does not depend on them.
            'g' | 'd' | 'u' => {}
            other => return Err(format!("the flag `{other}` has no equivalent")),
        }
    }
    if source.is_empty() {
        return Err("the pattern is empty".to_owned());
    }
    if let Some(operator) = set_operator(source) {
        return Err(format!("`{operator}` in a character class means something else here; write it with a backslash"));
    }
    if let Some(part) = other_meaning(source, language) {
        return Err(format!("`{part}` means something else here than in the source, or is wrong in the source"));
    }
    // Then `.` matches no carriage return, and `$` matches before one.
    let has_line_ends = match reader {
        Reader::AnyLineEnds => source.contains(['.', '^', '$']),
        Reader::Grader => language != Language::Python && kept.contains('m') && source.contains(['^', '$']),
        Reader::PythonProgram => false,
    };
    if has_line_ends {
        kept.push('R');
    }
    let written = |reader: Reader| -> Result<String, String> {
        let meant = with_meaning(source, language, &kept, reader)?;
        Ok(if kept.is_empty() { meant } else { format!("(?{kept}){meant}") })
    };
    let checked = if reader == Reader::PythonProgram { Reader::Grader } else { reader };
    match written(checked)?.parse::<Pattern>() {
        Ok(_) => written(reader),
        Err(_) => {
            Err("the pattern uses a feature that regular expressions of evals do not have, such as lookaround"
                .to_owned())
        }
    }
}

/// White space in JavaScript, as members of a class.
pub const SPACE: &str = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff";

/// Characters that end a line in JavaScript, as members of a class.
const LINE_ENDS: &str = r"\n\r\u2028\u2029";

/// Digits in JavaScript, as members of a class.
const DIGIT: &str = "0-9";

/// Characters of words in JavaScript, as members of a class.
const WORD: &str = "0-9A-Za-z_";

/// Returns the pattern in the form that its reader understands: parts that both languages write alike can mean different
/// things. In JavaScript,
/// digits, letters and their boundaries are those of ASCII, and white space is another set. In Python, `$` also matches before
/// a line feed at the end.
fn with_meaning(source: &str, language: Language, flags: &str, reader: Reader) -> Result<String, String> {
    let is_python = language == Language::Python;
    let is_for_python = reader == Reader::PythonProgram;
    let has_any_line_ends = reader == Reader::AnyLineEnds;
    let whole = source.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(flags, _)| flags);
    let whole = whole.filter(|flags| flags.chars().all(|c| c.is_ascii_lowercase()));
    let has_flag = |flag: char| flags.contains(flag) || whole.is_some_and(|flags| flags.contains(flag));
    let (is_multiline, is_dotall) = (has_flag('m'), has_flag('s'));
    let flags_of_groups = |flag: char| {
        source.match_indices("(?").any(|(at, _)| {
            let rest = source.get(at + 2..).unwrap_or_default();
            let flags: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            flags.contains(flag) && rest.get(flags.len()..).is_some_and(|rest| rest.starts_with([':', ')']))
        })
    };
    let mut out = String::new();
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next().unwrap_or_default();
                match (escaped, shorthand(escaped).filter(|_| !is_python)) {
                    (_, Some((set, true))) => out.push_str(&format!("[^{set}]")),
                    (_, Some((set, false))) => out.push_str(&format!("[{set}]")),
                    ('b', _) if !is_python => out.push_str(if is_for_python { r"(?a:\b)" } else { r"(?-u:\b)" }),
                    ('n', _) if has_any_line_ends => out.push_str(LINE_END),
                    ('r', _) if has_any_line_ends => out.push_str(NOTHING),
                    ('s' | 'D' | 'W', _) if has_any_line_ends => out.push_str(&or_line_end(&format!(r"\{escaped}"))),
                    ('B', _) if !is_python => return Err(r"`\B` has no equivalent".to_owned()),
                    _ if is_for_python && has_braces(escaped, &mut chars) => {
                        return Err(format!(r"`\{escaped}{{` has no equivalent in Python"));
                    }
                    _ => out.extend([c, escaped]),
                }
            }
            '[' => {
                let class = Class::read(&mut chars, !is_python);
                if class.has_braces && is_for_python {
                    return Err("braces after a backslash in a character class have no equivalent in Python".to_owned());
                }
                class.write(&mut out, reader);
            }
            '.' if has_any_line_ends && is_dotall => out.push_str(&or_line_end(r"\s\S")),
            '\n' if has_any_line_ends => out.push_str(LINE_END),
            '\r' if has_any_line_ends => out.push_str(NOTHING),
            '$' if is_python && !is_multiline => {
                if flags_of_groups('m') {
                    return Err("`$` in a pattern with inline flags for a group has no equivalent".to_owned());
                }
                if chars.peek().is_some_and(|next| !matches!(next, ')' | '|')) {
                    return Err("`$` before the end of the pattern has no equivalent".to_owned());
                }
                let end = if has_any_line_ends { LINE_END } else { r"\n" };
                out.push_str(&format!(r"(?:{end}?\z)"));
            }
            '$' if is_for_python && !is_multiline => out.push_str(r"\Z"),
            '$' if is_for_python => out.push_str(&format!(r"(?=[{LINE_ENDS}]|\Z)")),
            '^' if is_for_python && is_multiline => out.push_str(&format!("(?<![^{LINE_ENDS}])")),
            '.' if is_for_python && !is_dotall => out.push_str(&format!("[^{LINE_ENDS}]")),
            // A group with a name.
            '(' if is_for_python && chars.clone().take(2).eq(['?', '<']) => {
                chars.next();
                out.push_str("(?P");
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

/// Returns the set of an escape of JavaScript, and whether the escape means all other characters.
fn shorthand(escaped: char) -> Option<(&'static str, bool)> {
    match escaped {
        'd' => Some((DIGIT, false)),
        'w' => Some((WORD, false)),
        's' => Some((SPACE, false)),
        'D' => Some((DIGIT, true)),
        'W' => Some((WORD, true)),
        'S' => Some((SPACE, true)),
        _ => None,
    }
}

/// Returns whether braces belong to an escape, as in `\u{41}` and `\p{L}`.
fn has_braces(escaped: char, after: &mut Peekable<Chars<'_>>) -> bool {
    matches!(escaped, 'u' | 'p' | 'P') && after.peek() == Some(&'{')
}

/// A class of characters, such as `[^a-z\S]`.
struct Class {
    is_negated: bool,
    /// The members between the brackets, except for those of `without`.
    members: String,
    /// The sets of which all other characters are members.
    without: Vec<&'static str>,
    /// True if an escape has braces.
    has_braces: bool,
}

impl Class {
    /// Reads a class behind its first bracket. `expands` says whether sets such as `\d` are written as ranges.
    fn read(chars: &mut Peekable<Chars<'_>>, expands: bool) -> Self {
        let is_negated = chars.next_if_eq(&'^').is_some();
        let mut class = Self { is_negated, members: String::new(), without: Vec::new(), has_braces: false };
        // The first bracket of a class is one of its members.
        class.members.extend(chars.next_if_eq(&']'));
        let mut ends_with_hyphen = false;
        while let Some(c) = chars.next().filter(|c| *c != ']') {
            if c != '\\' {
                ends_with_hyphen = c == '-';
                class.members.push(c);
                continue;
            }
            let escaped = chars.next().unwrap_or_default();
            match shorthand(escaped).filter(|_| expands) {
                None => {
                    class.has_braces |= has_braces(escaped, chars);
                    class.members.extend([c, escaped]);
                }
                Some((set, is_other)) => {
                    // A hyphen beside a set is a plain character.
                    if ends_with_hyphen {
                        class.members.pop();
                        class.members.push_str(r"\-");
                    }
                    match is_other {
                        true => class.without.push(set),
                        false => class.members.push_str(set),
                    }
                    if chars.next_if_eq(&'-').is_some() {
                        class.members.push_str(r"\-");
                    }
                }
            }
            ends_with_hyphen = false;
        }
        class
    }

    /// Returns true if a line feed is one of the members.
    fn names_line_feed(&self) -> bool {
        let mut chars = self.members.chars();
        let mut is_member = false;
        while let Some(c) = chars.next() {
            is_member |= match c {
                '\\' => chars.next().is_some_and(|escaped| "nsDW".contains(escaped)),
                other => other == '\n',
            };
        }
        is_member
    }

    fn write(&self, out: &mut String, reader: Reader) {
        let Self { is_negated, members, without, .. } = self;
        let not = if *is_negated { "^" } else { "" };
        if reader == Reader::AnyLineEnds && (*is_negated || self.names_line_feed()) {
            let whole = format!("{not}{members}");
            out.push_str(&match *is_negated == self.names_line_feed() {
                true => format!(r"[[{whole}]--[\r]]"),
                false => or_line_end(&whole),
            });
            return;
        }
        let others: Vec<String> = without.iter().map(|set| format!("[^{set}]")).collect();
        if reader != Reader::PythonProgram || others.is_empty() {
            out.push_str(&format!("[{not}{members}{}]", others.concat()));
            return;
        }
        // Python has no class within a class.
        let members = if members.is_empty() { None } else { Some(format!("[{not}{members}]")) };
        if *is_negated {
            let refused: String = others.iter().map(|other| format!("(?!{other})")).collect();
            out.push_str(&format!("(?:{refused}{})", members.as_deref().unwrap_or(r"[\s\S]")));
        } else {
            let any: Vec<String> = members.into_iter().chain(others).collect();
            out.push_str(&format!("(?:{})", any.join("|")));
        }
    }
}

/// Returns a pattern of one of these members of a class, among which is the line feed. It may be written as `\r\n`.
fn or_line_end(members: &str) -> String {
    format!(r"(?:\r?\n|[[{members}]--[\r\n]])")
}

/// Returns the first text within a character class that is literal in the source's language and an operator in the
/// regular expressions of Rust.
fn set_operator(source: &str) -> Option<&'static str> {
    let mut rest = source;
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => {
                let escaped = after.chars().next().map_or(0, char::len_utf8);
                rest = after.get(escaped..).unwrap_or_default();
                continue;
            }
            '[' if in_class => return Some("["),
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {
                let found = ["&&", "--", "~~"].into_iter().find(|operator| rest.starts_with(operator));
                if found.is_some() {
                    return found;
                }
            }
            _ => {}
        }
        rest = after;
    }
    None
}

/// The kind of part before a character outside of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Other,
    Quantifier,
    LazyQuantifier,
}

/// Returns the first part of a pattern that the source and the grader accept and read differently, or that only the grader
/// accepts.
fn other_meaning(source: &str, language: Language) -> Option<String> {
    let is_python = language == Language::Python;
    let mut rest = source;
    let mut in_class = false;
    let mut before = Before::Other;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let mut length = c.len_utf8();
        let mut next = Before::Other;
        match c {
            '\\' => match escape(after, in_class, language) {
                Ok(escaped) => length += escaped,
                Err(part) => return Some(format!("\\{part}")),
            },
            ']' if in_class => in_class = false,
            _ if in_class => {}
            '[' => {
                let start = after.strip_prefix('^').unwrap_or(after);
                // An empty class, where the bracket is the first character of the class here.
                if start.starts_with(']') && !is_python {
                    return Some(format!("[{}", after.get(..after.len() - start.len() + 1).unwrap_or_default()));
                }
                length += after.len() - start.len() + usize::from(start.starts_with(']'));
                in_class = true;
            }
            '(' => match group(after, rest.len() == source.len(), is_python) {
                Ok(opened) => length += opened,
                Err(part) => return Some(part),
            },
            '*' | '+' | '?' | '{' => {
                let is_lazy = c == '?' && before == Before::Quantifier;
                if before != Before::Other && !is_lazy {
                    return Some(rest.chars().take(1).collect());
                }
                if c == '{' {
                    let Some(count) = counted(after) else { return Some("{".to_owned()) };
                    length += count;
                }
                next = if is_lazy { Before::LazyQuantifier } else { Before::Quantifier };
            }
            _ => {}
        }
        before = next;
        rest = rest.get(length..).unwrap_or_default();
    }
    None
}

/// Returns the length of an escape after its backslash, or the escape if it has another meaning here.
fn escape(after: &str, in_class: bool, language: Language) -> Result<usize, String> {
    let Some(c) = after.chars().next() else { return Ok(0) };
    let rest = after.get(c.len_utf8()..).unwrap_or_default();
    let is_unicode = language == Language::JavaScriptUnicode;
    let is_python = language == Language::Python;
    let has_digits =
        |count: usize| rest.len() >= count && rest.bytes().take(count).all(|byte| byte.is_ascii_hexdigit());
    let is_same = match c {
        '<' | '>' | 'z' => false,
        'A' | 'a' => is_python,
        'b' | 'B' => in_class || !rest.starts_with('{'),
        'x' => has_digits(2),
        'u' => has_digits(4) || (is_unicode && rest.starts_with('{')),
        'U' => is_python && has_digits(8),
        'p' | 'P' => is_unicode && rest.starts_with('{'),
        _ => true,
    };
    if is_same {
        // The braces of a property or a code point are no quantifier.
        let braces = matches!(c, 'p' | 'P' | 'u') && rest.starts_with('{');
        let end = if braces { rest.find('}').map_or(rest.len(), |at| at + 1) } else { 0 };
        return Ok(c.len_utf8() + end);
    }
    let shown: String = after.chars().take(if rest.starts_with('{') { 2 } else { 1 }).collect();
    Err(shown)
}

/// Returns the length of what makes a group special after its parenthesis, or the part that has another meaning here.
fn group(after: &str, is_first: bool, is_python: bool) -> Result<usize, String> {
    let Some(special) = after.strip_prefix('?') else { return Ok(0) };
    let wrong = || Err(format!("(?{}", special.chars().take(1).collect::<String>()));
    let first = special.chars().next().unwrap_or_default();
    match first {
        ':' | '=' | '!' => Ok(2),
        '<' if !is_python || special.starts_with("<=") || special.starts_with("<!") => Ok(2),
        'P' if is_python => Ok(2),
        'a'..='z' | '-' if is_python => {
            let end = special.find([':', ')']).unwrap_or(special.len());
            let flags = special.get(..end).unwrap_or_default();
            let is_whole = special.get(end..).is_some_and(|rest| rest.starts_with(')'));
            let is_known = flags.chars().all(|flag| "ims-".contains(flag));
            // Python refuses flags of the whole pattern behind its beginning.
            if is_known && (!is_whole || is_first) { Ok(1 + end) } else { wrong() }
        }
        _ => wrong(),
    }
}

/// Returns the length of a count such as `2,3}` after its brace, or `None` if the brace is a plain character in the source.
fn counted(after: &str) -> Option<usize> {
    let (inner, _) = after.split_once('}')?;
    let (from, to) = inner.split_once(',').map_or((inner, None), |(from, to)| (from, Some(to)));
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    (is_number(from) && to.is_none_or(|to| to.is_empty() || is_number(to))).then_some(inner.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_keep_their_meaning_or_are_refused() {
        assert_eq!(from_javascript(r"a\/b", "gi").unwrap(), r"(?i)a\/b");
        assert_eq!(from_javascript(r"[a-z.]+\]", "").unwrap(), r"[a-z.]+\]");
        for (source, flags) in
            [("(?<!a)b", ""), (r"(a)\1", ""), ("a", "y"), ("[[]", ""), ("[a&&b]", ""), ("", ""), ("(", "")]
        {
            assert!(from_javascript(source, flags).is_err(), "{source}");
        }
    }

    /// Patterns of JavaScript, each with a text that it matches and a text that it does not match.
    const OF_JAVASCRIPT: [(&str, &str, &str); 22] = [
        (r"^\d+$", "42", "٤٢"),
        (r"^\w+$", "a_1", "é"),
        (r"^\W$", "é", "a"),
        (r"^[\w-]+$", "a-b", "é-b"),
        (r"^\D$", "٤", "4"),
        (r"^\s$", "\u{feff}", "\u{85}"),
        (r"^\S$", "\u{85}", "\u{a0}"),
        (r"^[\s\d]+$", "4\u{202f}", "x"),
        (r"\bword\b", "éwordé", "aword"),
        ("a$", "ba", "a\n"),
        ("(a|b$)c?", "b", "b\n"),
        (r"^[\s\S]$", "\n", ""),
        (r"^[^\S\n]+$", " \t\u{a0}", "\n"),
        (r"^[^\W_]+$", "aZ9", "a_"),
        (r"^[^\W]$", "a", "é"),
        (r"^[a\W]$", "é", "b"),
        (r"^[\w-.]+$", "a-.b", "a`b"),
        (r"^[\w-~]$", "~", "`"),
        (r"^[+-\d]+$", "+-1", "."),
        (r"^[-\d]+$", "-1", "+"),
        (r"^(?<year>\d{4})$", "2024", "20245"),
        (r"^[\]a]\/$", "]/", "[/"),
    ];

    #[test]
    fn a_program_in_python_reads_a_translated_pattern_as_javascript_does() {
        let with_flags = [
            (r"^[a\D]+X", "im", "0\nA٤x", "0"),
            ("^done$", "m", "ok\r\ndone\r\n", "done it"),
            ("a.b$", "", "a b", "a\rb"),
            ("a.b$", "s", "a\rb", "ab"),
        ];
        let with_flags = with_flags.map(|(source, flags, matches, others)| {
            (from_javascript_to_python(source, flags).unwrap(), matches, others)
        });
        let rows: Vec<(String, &str, &str)> = OF_JAVASCRIPT
            .iter()
            .map(|(source, matches, others)| (from_javascript_to_python(source, "").unwrap(), *matches, *others))
            .chain(with_flags)
            .collect();
        let program = "import json, re, sys\n\
            for pattern, matches, others in json.load(sys.stdin):\n    \
                assert re.search(pattern, matches), (pattern, matches)\n    \
                assert not re.search(pattern, others), (pattern, others)";
        let mut python = std::process::Command::new("python3")
            .args(["-I", "-W", "error", "-c", program])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        serde_json::to_writer(python.stdin.take().unwrap(), &rows).unwrap();
        assert!(python.wait().unwrap().success());
        for (source, flags) in [(r"\p{L}", "u"), (r"\u{41}", "u"), (r"[\u{41}]", "u")] {
            assert!(from_javascript(source, flags).is_ok(), "{source}");
            assert!(from_javascript_to_python(source, flags).is_err(), "{source}");
        }
    }

    #[test]
    fn what_both_sides_read_differently_is_written_in_the_way_of_this_side() {
        let is_match = |pattern: Result<String, String>, text: &str| {
            let pattern: Pattern = pattern.unwrap().parse().unwrap();
            pattern.is_match(text)
        };
        for (source, matches, others) in OF_JAVASCRIPT {
            assert!(is_match(from_javascript(source, ""), matches), "{source}: {matches:?}");
            assert!(!is_match(from_javascript(source, ""), others), "{source}: {others:?}");
        }
        assert!(is_match(from_javascript("^done$", "im"), "ok\r\nDone\r\n"));
        assert!(from_javascript(r"a\Bb", "").is_err());
        for (source, flags, matches, others) in [
            ("foo$", "", "foo\n", "foo\n\n"),
            ("(a|foo$)", "", "foo\n", "foo\nb"),
            ("foo$", "m", "foo\nb", "foox"),
            ("(?m)^foo$", "", "a\nfoo\nb", "foox"),
            ("a[$]b", "", "a$b", "ab"),
            (r"^\d$", "", "٤", "x"),
        ] {
            let flags = if source.starts_with("(?m)") { "" } else { flags };
            assert!(is_match(from_python(source, flags), matches), "{source}: {matches:?}");
            assert!(!is_match(from_python(source, flags), others), "{source}: {others:?}");
        }
        for source in ["a$b", "(?m:a$)", r"a$\n"] {
            assert!(from_python(source, "").is_err(), "{source}");
        }
    }

    #[test]
    fn line_ends_of_any_kind_are_line_feeds_for_a_text_of_python() {
        let is_match = |source: &str, flags: &str, text: &str| {
            let pattern: Pattern = from_python_for_text(source, flags).unwrap().parse().unwrap();
            pattern.is_match(text)
        };
        for (source, flags, matches, others) in [
            ("TODO$", "m", "TODO\nb", "TODO b"),
            ("^b", "m", "a\nb", "ab"),
            ("b$", "", "a\nb\n", "b\n\n"),
            (r"a\nb", "", "a\nb", "a\n\nb"),
            (r"a\r?\nb", "", "a\nb", "a b"),
            ("a\nb", "", "a\nb", "ab"),
            (r"a\sb", "", "a\nb", "a\n\nb"),
            (r"a\W{2}b", "", "a\n b", "a\nb"),
            ("a.b", "", "axb", "a\nb"),
            ("a.", "", "ab", "a\n"),
            (r"a[^\n]", "", "ab", "a\n"),
            (r"a[^-\n]", "", "ab", "a\n"),
            ("a.b", "s", "a\nb", "a\n\nb"),
            ("a..b", "s", "a\n\nb", "a\nb"),
            (r"\n\s*\n", "", "a\n \nb", "a\nb"),
            (r"\s{2}", "", "a\n\nb", "a\nb"),
            (r"a[^x]b", "", "a\nb", "a\n\nb"),
            (r"a[\s\S]{2}b", "", "a\n\nb", "a\nb"),
        ] {
            for line_end in ["\n", "\r\n"] {
                let (matches, others) = (matches.replace('\n', line_end), others.replace('\n', line_end));
                assert!(is_match(source, flags, &matches), "{source}: {matches:?}");
                assert!(!is_match(source, flags, &others), "{source}: {others:?}");
            }
        }
        assert!(!is_match(r"a\r\nb", "", "a\r\nb"));
        assert_eq!(with_any_line_ends("a.b\nc"), r"a\.b(?:\r?\n)c");
        assert_eq!(from_python_for_text("[a-z]+", "").as_deref(), Ok("[a-z]+"));
    }

    #[test]
    fn what_means_something_else_in_the_source_is_refused() {
        for source in [
            r"\<div\>",
            r"exit\zero",
            r"\Access",
            r"\alert",
            r"\x{2}",
            r"\p{L}",
            r"\u{41}",
            r"\U00000041",
            "(?i)a",
            "a(?i:b)",
            "(?P<n>a)",
            "a*+",
            "a++",
            "a??b?+",
            "a{2}{3}",
            "a{,3}",
            "a{ 2 }",
            "a{",
            "x{y}",
            r"\b{start}a",
            "[]a]",
            "[^]",
            r"[\<]",
            r"[\x{41}]",
            r"\x4",
        ] {
            let why = from_javascript(source, "").expect_err(source);
            assert!(why.contains("means something else here"), "{source}: {why}");
        }
        for source in [
            "a.b",
            "a{2}",
            "a{2,}?",
            "a{2,3}b+",
            r"\x41\u0041",
            "(?<n>a)(?:b)",
            r"\{a\}",
            "[a{}*+?<>]",
            "(a*)+",
            r"\.\*\+",
            "[^a]",
        ] {
            assert_eq!(from_javascript(source, "").as_deref(), Ok(source), "{source}");
        }
        assert!(from_javascript(r"\p{L}\u{41}{2}", "u").is_ok() && from_javascript(r"\pL", "u").is_err());
        for source in ["(?i)a", r"\Aa\a", "(?P<n>a)", "(?i:a)b", "[]a]", r"\x41\U00000041"] {
            assert!(from_python(source, "").is_ok(), "{source}");
        }
        for source in
            [r"\<p\>", r"a\z", "a++", "(?<n>a)", r"\p{L}", "a(?i)", "(?x)a b", "(?U)a", r"\x{41}", "a{ 2 }", r"\u{41}"]
        {
            assert!(from_python(source, "").is_err(), "{source}");
        }
    }
}

//! Translates regular expressions of JavaScript and Python, or returns the reason why there is no equivalent.

use crate::values::Pattern;

/// The language of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    JavaScript,
    /// JavaScript with the flag `u`.
    JavaScriptUnicode,
    Python,
}

/// Returns the equivalent of a JavaScript regular expression.
///
/// # Errors
/// Returns the reason if there is no equivalent: lookaround, references to groups, sticky matches, or a part that means something
/// else here.
pub fn pattern(source: &str, flags: &str) -> Result<String, String> {
    let is_unicode = flags.contains('u');
    translated(source, flags, if is_unicode { Language::JavaScriptUnicode } else { Language::JavaScript })
}

/// Returns the equivalent of a regular expression of Python, with flags as letters.
///
/// # Errors
/// Returns the reason if there is no equivalent.
pub fn python(source: &str, flags: &str) -> Result<String, String> {
    translated(source, flags, Language::Python)
}

fn translated(source: &str, flags: &str, language: Language) -> Result<String, String> {
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
    let meant = with_meaning(source, language, kept.contains('m'))?;
    let pattern = if kept.is_empty() { meant } else { format!("(?{kept}){meant}") };
    match pattern.parse::<Pattern>() {
        Ok(_) => Ok(pattern),
        Err(_) => Err("the pattern uses what regular expressions here do not have, such as lookaround".to_owned()),
    }
}

/// White space in JavaScript, as members of a class.
pub const SPACE: &str = r"\t-\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";

/// Returns the pattern with the parts that both sides write alike and read differently in the way of this side. In JavaScript,
/// digits, letters and their boundaries are those of ASCII, and white space is another set. In Python, `$` also matches before
/// a line feed at the end.
fn with_meaning(source: &str, language: Language, is_multiline: bool) -> Result<String, String> {
    let is_python = language == Language::Python;
    let whole = source.strip_prefix("(?").and_then(|rest| rest.split_once(')')).map(|(flags, _)| flags);
    let whole = whole.filter(|flags| flags.chars().all(|c| c.is_ascii_lowercase()));
    let is_multiline = is_multiline || whole.is_some_and(|flags| flags.contains('m'));
    let flags_of_groups = |flag: char| {
        source.match_indices("(?").any(|(at, _)| {
            let rest = source.get(at + 2..).unwrap_or_default();
            let flags: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            flags.contains(flag) && rest.get(flags.len()..).is_some_and(|rest| rest.starts_with([':', ')']))
        })
    };
    let mut out = String::new();
    let mut in_class = false;
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next().unwrap_or_default();
                let class = |members: &str| if in_class { members.to_owned() } else { format!("[{members}]") };
                match escaped {
                    'd' if !is_python => out.push_str(&class("0-9")),
                    'w' if !is_python => out.push_str(&class("0-9A-Za-z_")),
                    's' if !is_python => out.push_str(&class(SPACE)),
                    'D' if !is_python => out.push_str("[^0-9]"),
                    'W' if !is_python => out.push_str("[^0-9A-Za-z_]"),
                    'S' if !is_python => out.push_str(&format!("[^{SPACE}]")),
                    'b' if !is_python && !in_class => out.push_str(r"(?-u:\b)"),
                    'B' if !is_python && !in_class => return Err(r"`\B` has no equivalent".to_owned()),
                    other => out.extend([c, other]),
                }
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '$' if is_python && !in_class && !is_multiline => {
                if flags_of_groups('m') {
                    return Err("`$` beside flags of a part of the pattern has no equivalent".to_owned());
                }
                if chars.peek().is_some_and(|next| !matches!(next, ')' | '|')) {
                    return Err("`$` before the end of the pattern has no equivalent".to_owned());
                }
                out.push_str(r"(?:\n?\z)");
                continue;
            }
            _ => {}
        }
        out.push(c);
        // The first bracket of a class is one of its members.
        if c == '[' {
            out.extend(chars.next_if_eq(&'^'));
            out.extend(chars.next_if_eq(&']'));
        }
    }
    Ok(out)
}

/// Returns characters within a class that are plain in JavaScript and an operator here.
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

/// Returns the first part of a pattern that both sides accept and read differently, or that only this side accepts.
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
        assert_eq!(pattern(r"a\/b", "gi").unwrap(), r"(?i)a\/b");
        assert_eq!(pattern(r"[a-z.]+\]", "").unwrap(), r"[a-z.]+\]");
        for (source, flags) in
            [("(?<!a)b", ""), (r"(a)\1", ""), ("a", "y"), ("[[]", ""), ("[a&&b]", ""), ("", ""), ("(", "")]
        {
            assert!(pattern(source, flags).is_err(), "{source}");
        }
    }

    #[test]
    fn what_both_sides_read_differently_is_written_in_the_way_of_this_side() {
        let is_match = |pattern: Result<String, String>, text: &str| {
            let pattern: Pattern = pattern.unwrap().parse().unwrap();
            pattern.is_match(text)
        };
        for (source, matches, others) in [
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
        ] {
            assert!(is_match(pattern(source, ""), matches), "{source}: {matches:?}");
            assert!(!is_match(pattern(source, ""), others), "{source}: {others:?}");
        }
        assert!(pattern(r"a\Bb", "").is_err());
        for (source, flags, matches, others) in [
            ("foo$", "", "foo\n", "foo\n\n"),
            ("(a|foo$)", "", "foo\n", "foo\nb"),
            ("foo$", "m", "foo\nb", "foox"),
            ("(?m)^foo$", "", "a\nfoo\nb", "foox"),
            ("a[$]b", "", "a$b", "ab"),
            (r"^\d$", "", "٤", "x"),
        ] {
            let flags = if source.starts_with("(?m)") { "" } else { flags };
            assert!(is_match(python(source, flags), matches), "{source}: {matches:?}");
            assert!(!is_match(python(source, flags), others), "{source}: {others:?}");
        }
        for source in ["a$b", "(?m:a$)", r"a$\n"] {
            assert!(python(source, "").is_err(), "{source}");
        }
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
            let why = pattern(source, "").expect_err(source);
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
            assert_eq!(pattern(source, "").as_deref(), Ok(source), "{source}");
        }
        assert!(pattern(r"\p{L}\u{41}{2}", "u").is_ok() && pattern(r"\pL", "u").is_err());
        for source in ["(?i)a", r"\Aa\a", "(?P<n>a)", "(?i:a)b", "[]a]", r"\x41\U00000041"] {
            assert!(python(source, "").is_ok(), "{source}");
        }
        for source in
            [r"\<p\>", r"a\z", "a++", "(?<n>a)", r"\p{L}", "a(?i)", "(?x)a b", "(?U)a", r"\x{41}", "a{ 2 }", r"\u{41}"]
        {
            assert!(python(source, "").is_err(), "{source}");
        }
    }
}

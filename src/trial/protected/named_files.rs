//! Decides whether a glob names a file, and does not match it by its wildcards alone. Pure.

use std::path::Path;
use std::str::Chars;

use crate::values::PathGlob;

/// The maximum number of texts to which the braces of a glob are expanded.
const MAX_TEXTS: usize = 10_000;
/// The endings of compiled modules of Python, before which a tag may be: `calc.cpython-311-x86_64-linux-gnu.so`.
const TAGGED: [&str; 2] = ["pyd", "so"];

/// Returns true if a glob matches a path, and its last part is the name of the file, also as one of the alternatives in its
/// braces: `**/.npmrc` and `src/{calc,text}.{py,pyc}`. `calc.*.so` names the module `calc` with any tag.
pub(super) fn names_file(glob: &PathGlob, path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let text = glob.to_string();
    let is_named = || expanded(last_part(&text)).iter().any(|text| is_name(last_part(text), name));
    glob.is_match_path(path) && is_named()
}

/// Returns the part of a glob behind the last slash that is not in braces.
fn last_part(glob: &str) -> &str {
    let (mut depth, mut start, mut is_escaped) = (0_usize, 0, false);
    for (at, c) in glob.char_indices() {
        match c {
            _ if is_escaped => {}
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' if depth == 0 => start = at + 1,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    glob.get(start..).unwrap_or_default()
}

/// Returns the globs that a glob becomes when its braces are expanded. Escapes and wildcards stay.
fn expanded(glob: &str) -> Vec<String> {
    alternatives(&mut glob.chars(), false)
}

/// Expands the braces up to the end of the text or, within braces, up to their end.
fn alternatives(chars: &mut Chars<'_>, is_inside: bool) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut open = vec![String::new()];
    while let Some(c) = chars.next() {
        match c {
            '{' => {
                let inner = alternatives(chars, true);
                let all = open.iter().flat_map(|start| inner.iter().map(move |end| format!("{start}{end}")));
                open = all.take(MAX_TEXTS).collect();
            }
            '}' if is_inside => break,
            ',' if is_inside => {
                done.append(&mut open);
                open.push(String::new());
            }
            _ => {
                let escaped = if c == '\\' { chars.next() } else { None };
                for text in &mut open {
                    text.push(c);
                    text.extend(escaped);
                }
            }
        }
    }
    done.append(&mut open);
    done
}

/// Returns true if a text without braces is a name, or that of a compiled module of Python whose tag is a wildcard.
fn is_name(text: &str, name: &str) -> bool {
    let is_tagged = |(stem, ending): (&str, &str)| {
        let inside = name.strip_prefix(&plain(stem)?)?.strip_prefix('.')?.strip_suffix(ending)?;
        Some(TAGGED.contains(&ending) && inside.ends_with('.'))
    };
    plain(text).is_some_and(|text| text == name) || text.split_once(".*.").and_then(is_tagged) == Some(true)
}

/// Returns a text without its escapes, or `None` if it has wildcards.
fn plain(text: &str) -> Option<String> {
    text.parse::<PathGlob>().ok()?.path().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_names_a_file_by_its_last_part_or_one_of_its_alternatives() {
        for (glob, path, is) in [
            ("**/.npmrc", "web/.npmrc", true),
            ("**/.npmrc", ".npmrc", true),
            ("tests/settings.local", "tests/settings.local", true),
            ("{fractions,unittest}.{py,pyc,so,*.so}", "fractions.pyc", true),
            ("{fractions,unittest}.{py,pyc,so,*.so}", "unittest.cpython-311-x86_64-linux-gnu.so", true),
            ("{fractions,unittest}.{py,pyc,so,*.so}", "other.pyc", false),
            ("calc/**/{__init__,__init__.*,*}.{py,so}", "calc/deep/__init__.py", true),
            ("calc/**/{__init__,__init__.*,*}.{py,so}", "calc/__init__.abi3.so", true),
            ("calc/**/{__init__,__init__.*,*}.{py,so}", "calc/add.so", false),
            ("{src/{a,b},c}.py", "src/b.py", true),
            ("{src/{a,b},c}.py", "src/a.py", true),
            (r"\{a,b\}.py", "{a,b}.py", true),
            (r"[ab].py", "a.py", false),
            ("*.pyc", "fractions.pyc", false),
            ("**/test_*.py", "tests/test_a.py", false),
            ("calc.*", "calc.o", false),
            ("calc.*.js", "calc.min.js", false),
            ("tests/**", "tests/a.pyc", false),
            ("tests", "tests/a.pyc", false),
        ] {
            assert_eq!(names_file(&glob.parse().unwrap(), Path::new(path)), is, "{glob} {path}");
        }
    }

    #[test]
    fn braces_are_expanded_up_to_a_limit() {
        assert_eq!(expanded("a{,b,c{d,e}}f"), ["af", "abf", "acdf", "acef"]);
        assert_eq!(expanded(r"\{a,b\}{c}"), [r"\{a,b\}c"]);
        assert_eq!(expanded("a{b"), ["ab"]);
        assert!(expanded(&"{a,b}".repeat(40)).len() <= MAX_TEXTS);
    }
}

//! Finds the files that a Markdown text refers to: links, and paths in the usual folders of a skill.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A reference to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The path, without a fragment.
    pub target: String,
    /// The bytes of the reference in the text.
    pub range: Range<usize>,
    /// True if the path is the target of a link.
    pub is_link: bool,
}

/// The target of a link or an image: `[text](target "title")`.
static INLINE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"\]\(\s*(?:<([^<>\n]+)>|([^\s()<>]+))(?:\s+["'(][^)\n]*)?\s*\)"#).ok());

/// The definition of a link: `[name]: target`.
static DEFINITION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^ {0,3}\[[^\]\n]+\]:\s*<?([^\s<>]+)>?").ok());

/// A path that begins with a folder that the specification names.
static PATH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?:^|[\s`"'(=])((?:\./)?(?:scripts|references|assets)/[A-Za-z0-9_](?:[A-Za-z0-9_./-]*[A-Za-z0-9_])?)"#,
    )
    .ok()
});

/// A target with a scheme, such as `https:`.
static SCHEME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[A-Za-z][A-Za-z0-9+.-]*:").ok());

/// Returns the references of a Markdown text, in order, each target once.
pub fn references(text: &str) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let (mut targets, mut ranges) = (HashSet::new(), HashSet::new());
    let mut fence: Option<(char, usize)> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let marker = fence_of(line);
        let mut links = Vec::new();
        match (fence, marker) {
            (None, Some(open)) => fence = Some(open),
            (Some((c, length)), Some((other, closing))) if c == other && closing >= length => fence = None,
            (Some(_), _) => {}
            (None, None) => links = links_of(line),
        }
        let mut paths = captures(&PATH, line);
        paths.retain(|range| !goes_on(line.get(range.end..).unwrap_or_default()));
        let paths = paths.into_iter().map(|range| (range, false));
        for (range, is_link) in links.into_iter().map(|range| (range, true)).chain(paths) {
            let written = line.get(range.clone()).unwrap_or_default();
            let Some(target) = path_of(written) else { continue };
            let at = start + range.start..start + range.end;
            // A link is a path as well.
            if !ranges.contains(&at) && targets.insert(target.clone()) {
                ranges.insert(at.clone());
                found.push(Reference { target, range: at, is_link });
            }
        }
        start += line.len();
    }
    found
}

/// Returns true if a placeholder follows the path: `references/install-{platform}.md`.
fn goes_on(after: &str) -> bool {
    after.trim_start_matches(['-', '.', '/', '_']).starts_with(['{', '<', '*', '$', '['])
}

/// Returns the character and the length of a code fence.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == first).count();
    // A closing backtick in the same line makes it a code span.
    let rest = line.get(length..).unwrap_or_default();
    (length >= 3 && !(first == '`' && rest.contains('`'))).then_some((first, length))
}

fn links_of(line: &str) -> Vec<Range<usize>> {
    let without_code = blanked(line);
    let mut links = captures(&INLINE, &without_code);
    links.extend(captures(&DEFINITION, &without_code));
    links
}

/// Returns the line with its code spans replaced by blanks of the same length.
fn blanked(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(open) = rest.find('`') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let ticks = from.chars().take_while(|c| *c == '`').count();
        let (marker, inner) = from.split_at(ticks);
        let Some(close) = inner.find(marker) else {
            out.push_str(marker);
            rest = inner;
            continue;
        };
        let length = 2 * ticks + close;
        out.extend(std::iter::repeat_n(' ', length));
        rest = from.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns the bytes of the first group of each match.
fn captures(pattern: &LazyLock<Option<Regex>>, line: &str) -> Vec<Range<usize>> {
    let Some(pattern) = LazyLock::force(pattern) else { return Vec::new() };
    let groups = pattern.captures_iter(line).filter_map(|found| found.iter().skip(1).flatten().next());
    groups.map(|group| group.range()).collect()
}

/// Returns the path that a target names, or `None` for a URL, a fragment or a placeholder.
fn path_of(target: &str) -> Option<String> {
    let has_scheme = LazyLock::force(&SCHEME).as_ref().is_some_and(|scheme| scheme.is_match(target));
    if has_scheme || target.starts_with("//") || target.contains(['{', '}', '$', '*', '<', '>', '|']) {
        return None;
    }
    let end = target.find(['#', '?']).unwrap_or(target.len());
    let path = decoded(target.get(..end).unwrap_or_default());
    let is_placeholder = path.contains("...") || path.contains('…');
    (!path.is_empty() && !is_placeholder).then_some(path)
}

/// Decodes percent-encoded characters, such as `%20`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        // `from_str_radix` accepts a sign.
        let hex = after.get(..2).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_are_found_outside_of_code() {
        let text = "See [a](references/a.md#top \"A\"), ![b](<my file.png>), [c](https://x.y/z) and `[d](d.md)`.\n\
                    ```sh\npython scripts/run.py < [e](e.md)\n```\n[f]: f%20f.md\n```not a fence```\nuse ./assets/t.json, \
                    or src/scripts/no.py, scripts/<name>.py, scripts/a-{b}.py, [g](#g), [h]({h}.md), [i](i%+f.md)\n";
        let found: Vec<(String, bool)> =
            references(text).into_iter().map(|found| (found.target, found.is_link)).collect();
        let wanted = [
            ("references/a.md", true),
            ("my file.png", true),
            ("scripts/run.py", false),
            ("f f.md", true),
            // A sign is no digit.
            ("i%+f.md", true),
            ("./assets/t.json", false),
        ];
        assert_eq!(found, wanted.map(|(target, is_link)| (target.to_owned(), is_link)));
        for found in references(text) {
            assert!(text.get(found.range).is_some());
        }
    }
}

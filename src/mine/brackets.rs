//! Splits code at its brackets. Brackets in literals count, too. Pure.

/// Returns a text up to the bracket that closes the one in which it begins.
pub(super) fn inner(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return text.get(..at).unwrap_or_default(),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    text
}

/// Returns the texts within the brackets that each occurrence of a text opens: `a, b` for `f(` in `f(a, b)`.
pub(super) fn contents<'a>(code: &'a str, start: &str) -> Vec<&'a str> {
    code.match_indices(start).filter_map(|(at, _)| code.get(at + start.len()..)).map(inner).collect()
}

/// Returns the parts of a text between commas and semicolons that are in no further brackets.
pub(super) fn items(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' | ';' if depth == 0 => {
                found.extend(text.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found.extend(text.get(start..));
    found.into_iter().map(str::trim).collect()
}

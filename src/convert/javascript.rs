//! Translates regular expressions of JavaScript, or returns the reason why there is no equivalent.

use crate::values::Pattern;

/// Returns the equivalent of a JavaScript regular expression.
///
/// # Errors
/// Returns the reason if there is no equivalent: lookaround, references to groups, or sticky matches.
pub fn pattern(source: &str, flags: &str) -> Result<String, String> {
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
    let pattern = if kept.is_empty() { source.to_owned() } else { format!("(?{kept}){source}") };
    match pattern.parse::<Pattern>() {
        Ok(_) => Ok(pattern),
        Err(_) => Err("the pattern uses what regular expressions here do not have, such as lookaround".to_owned()),
    }
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
}

//! Escapes text of agents and cases for Markdown, XML and workflow commands: the result contains no tags, mentions or
//! commands, and does not break a table.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::text::{Look, harmless, one_line};

/// The look of text for services: no colours, and Unicode signs.
pub const LOOK: Look = Look { width: 100, colour: false, unicode: true };

/// Cuts text to a maximum number of characters, and states how much is missing.
pub fn bounded(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let (head, rest) = text.split_at(end);
            Cow::Owned(format!("{head}… ({} more characters)", rest.chars().count()))
        }
    }
}

/// Returns one line of Markdown for a table or a heading: a code span if the text is plain, else HTML code. Within
/// code, mentions and links have no effect.
pub fn code(text: &str, most: usize) -> String {
    let line = one_line(text, most, &LOOK);
    match line.as_str() {
        "" => String::new(),
        plain if is_plain(plain) => format!("`{plain}`"),
        other => format!("<code>{}</code>", entities(other)),
    }
}

/// Returns one line of running text in Markdown, in which plain code spans are kept. If a service could find a
/// mention or a link in it, all of it becomes code.
pub fn inline(text: &str, most: usize) -> String {
    let line = one_line(text, most, &LOOK);
    if ["@", "#", "://", "www.", "WWW.", "GH-"].iter().any(|sign| line.contains(sign)) {
        return code(&line, most);
    }
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return entities(&line);
    }
    let written = parts.iter().enumerate().map(|(number, part)| match number % 2 {
        0 => entities(part),
        _ if is_plain(part) && !part.is_empty() => format!("`{part}`"),
        _ => format!("&#96;{}&#96;", entities(part)),
    });
    written.collect()
}

/// Returns one line of a text that `evals` wrote, in Markdown.
pub fn plain(text: &str) -> String {
    entities(text)
}

/// Returns true if a code span, also in a table, can contain the text unescaped.
fn is_plain(line: &str) -> bool {
    line.chars().all(|c| c.is_alphanumeric() || " -_./()[],=+%…≥".contains(c))
}

/// Replaces every character with a meaning in Markdown or HTML by a numeric entity.
fn entities(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '&' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '\\' | '@' | '$' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    // Services turn a literal address into a link, in code as well.
    out.replace("://", "&#58;//").replace("www.", "www&#46;").replace("WWW.", "WWW&#46;")
}

/// Returns lines of text as a Markdown block, in which nothing is markup.
pub fn block(text: &str, most: usize) -> String {
    let text = harmless(&bounded(text.trim_end(), most));
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str("<pre>\n");
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out.push_str("\n</pre>");
    out
}

/// Returns text for an HTML document, as content or as an attribute's value in quotation marks. Invisible characters and
/// those that change the direction of text are shown by their numbers.
pub fn html(text: &str) -> String {
    let text = harmless(text);
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns text that an XML document may contain: other characters are escaped, and CI servers find no
/// attachment in it.
pub fn xml(text: &str, most: usize) -> String {
    harmless(&bounded(text, most)).replace("[[ATTACHMENT|", "[ [ATTACHMENT|")
}

/// Returns the message of a workflow command as one line.
pub fn command_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns a property of a workflow command.
pub fn command_property(text: &str) -> String {
    command_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(code("fixing/off-by-one", 80), "`fixing/off-by-one`");
        assert_eq!(code("a|b", 80), "<code>a&#124;b</code>");
        assert_eq!(inline("ask @someone, see www.a.org", 80), "<code>ask &#64;someone, see www&#46;a.org</code>");
        assert_eq!(inline("a*b: `--rerun failed` and `a|b`", 80), "a&#42;b: `--rerun failed` and &#96;a&#124;b&#96;");
        assert_eq!(bounded("abcdef", 4), "abcd… (2 more characters)");
        assert_eq!(command_property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
    }

    proptest! {
        #[test]
        fn nothing_that_an_agent_says_is_markup(text in "\\PC*|[\\x00-\\u{2fff}]*|[|`<>@#:&\\\\/*_\n\r -]*") {
            let spans = regex::Regex::new("`[^`|<>@\\\\]+`").unwrap();
            for line in [code(&text, 200), inline(&text, 200)] {
                let inner = line.strip_prefix("<code>").and_then(|it| it.strip_suffix("</code>")).unwrap_or(&line);
                let inner = spans.replace_all(inner, "");
                prop_assert!(!inner.contains(['<', '>', '|', '`', '@', '\n', '\r', '\\']), "{line:?}");
            }
            let block = block(&text, 200);
            let inner = block.strip_prefix("<pre>\n").and_then(|it| it.strip_suffix("\n</pre>"));
            prop_assert!(inner.is_some_and(|it| !it.contains(['<', '>'])), "{block:?}");
            let xml = xml(&text, 200);
            prop_assert!(!xml.chars().any(|c| c.is_control() && c != '\n' || matches!(c, '\u{fffe}' | '\u{ffff}')), "{xml:?}");
            let data = command_property(&text);
            prop_assert!(!data.contains(['\n', '\r', ':', ',']), "{data:?}");
        }
    }
}

//! Finds the end of the password in a URL. A password may contain characters that end a word in a shell, but a command in
//! its place stays visible.

/// The characters that end a word in a shell.
const ENDS_OF_WORD: [char; 5] = [';', '|', '&', '<', '>'];
/// The characters of a password that also end URLs: those above, and the characters between URLs in a list.
const ENDS_OF_URL: [char; 7] = [';', '|', '&', '<', '>', ',', '\''];
/// The maximum length in bytes of a password with such characters.
const MAX_PASSWORD_BYTES: usize = 256;
/// The maximum length in bytes of the line before a URL in quotes.
const MAX_LINE_BYTES: usize = 4096;

/// Returns the password at the beginning of a text, which is the part of a URL after `user:` with characters that may end
/// the URL. `ahead` is the text before the URL's `://`.
pub(super) fn password<'t>(ahead: &str, text: &'t str) -> Option<&'t str> {
    let before = ahead.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+.-".contains(c));
    // In single quotes, the URL ends at the next `'`.
    let text = text.split('\'').next().filter(|_| before.ends_with('\'')).unwrap_or(text);
    let plain = &text[..text.find(ENDS_OF_URL).unwrap_or(text.len())];
    let is_port = (1..=5).contains(&plain.len()) && plain.chars().all(|c| c.is_ascii_digit());
    if text.starts_with('$') || (is_port && plain.len() < text.len()) {
        return None;
    }
    let last = text.rfind('@')?;
    if last < plain.len() {
        return Some(&text[..last]).filter(|password| !password.is_empty());
    }
    let is_quoted = is_in_quotes(before);
    let near = &text[..text.floor_char_boundary(MAX_PASSWORD_BYTES)];
    let ends = || near.match_indices('@').map(move |(at, _)| (&near[..at], after_host(&near[at + 1..])));
    let first = |is_end: fn(&str) -> bool| {
        let mut found =
            ends().filter(|(password, after)| after.is_some_and(is_end) && (is_quoted || !has_command(password)));
        found.next().map(|(password, _)| password)
    };
    let is_end = |after: &str| after.is_empty() || after.starts_with(['?', '#', ',', '\'', ')', ']']);
    // If a command may begin within the password, the part before the command is masked.
    let part = || {
        let end = plain.rfind('@').or_else(|| text.find(ENDS_OF_WORD))?;
        ends().any(|(_, after)| after.is_some()).then_some(&text[..end])
    };
    let found = first(is_end).or_else(|| first(|after| after.starts_with(ENDS_OF_WORD))).or_else(part);
    found.filter(|password| !password.is_empty())
}

/// Returns true if the last character of a text is a quote that opens a text in a shell.
fn is_in_quotes(text: &str) -> bool {
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_LINE_BYTES))..];
    let line = end.rsplit('\n').next().unwrap_or_default();
    let is_whole = line.len() < end.len() || end.len() == text.len();
    if !line.ends_with(['"', '\'']) || !is_whole {
        return false;
    }
    let (mut open, mut is_escaped) = (None, false);
    for c in line.chars() {
        match (c, open) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            ('"' | '\'', None) => open = Some(c),
            (c, Some(quote)) if c == quote => open = None,
            _ => {}
        }
    }
    open.is_some() && line.ends_with(|c: char| open == Some(c))
}

/// Returns the text after the host and the port of a URL, or `None` if the text does not begin with a host. The host may
/// be left out at the end of the text, where a variable or an address in brackets follows.
fn after_host(text: &str) -> Option<&str> {
    let after = text.trim_start_matches(|c: char| c.is_alphanumeric() || ".-_%".contains(c));
    if after.len() == text.len() {
        return text.is_empty().then_some(text);
    }
    Some(after.strip_prefix(':').map_or(after, |port| port.trim_start_matches(|c: char| c.is_ascii_digit())))
}

/// Returns true if a password may contain a command or the name of a file, as a shell reads it. The last part of a password
/// is none, because the shell adds `@` and the host to the name, but what it begins may be an assignment before a command.
fn has_command(password: &str) -> bool {
    let password = password.replace("&amp;", "");
    let parts: Vec<&str> = password.split(ENDS_OF_WORD).skip(1).collect();
    let Some((last, inner)) = parts.split_last() else { return false };
    let is_name = |part: &&str| {
        let is_lower = part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c));
        let is_word = part.chars().all(|c| c.is_ascii_alphabetic() || "_.-".contains(c));
        part.len() > 1 && (is_lower || is_word && part.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let is_assignment = last.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_+".contains(c))
    });
    let has_file = !inner.is_empty() && password.contains(['<', '>']);
    let is_code = |part: &&str| part.contains(['$', '(', ')', '\'']);
    is_assignment || has_file || inner.iter().any(is_name) || parts.iter().any(is_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_with_ends_of_words_reaches_to_the_host() {
        for (text, found) in [
            ("hunter22@db", "hunter22"),
            ("p@ss:w@host", "p@ss:w"),
            ("pw@", "pw"),
            ("pw@h?mail=a@b", "pw@h?mail=a"),
            ("Tr0ub4dor&3xyz@db.example.com:5432", "Tr0ub4dor&3xyz"),
            ("Xk7pLmQ9|z@github.com", "Xk7pLmQ9|z"),
            ("Zq<8RtY2wPm5@h:6379", "Zq<8RtY2wPm5"),
            ("Xk7pLmQ9;z@h", "Xk7pLmQ9;z"),
            ("Xk7pLmQ9,z@h,i", "Xk7pLmQ9,z"),
            ("Xk7pL'mQ9z@h", "Xk7pL'mQ9z"),
            ("p@ss&w0rd@h", "p@ss&w0rd"),
            ("Ab1&Cd2&Ef3@h?a=b", "Ab1&Cd2&Ef3"),
            ("Tr0ub4dor&amp;3@h", "Tr0ub4dor&amp;3"),
            ("Ab1&c@h)", "Ab1&c"),
            ("pw@h1,h2", "pw"),
            ("pw@h','a@b", "pw"),
        ] {
            assert_eq!(password("x ", text), Some(found), "{text}");
        }
    }

    #[test]
    fn commands_ports_and_variables_are_no_part_of_a_password() {
        for (text, found) in [
            ("pw@h|sh|tee@x", "pw"),
            ("pw@h;rm", "pw"),
            ("Ab1&rm&tee@h", "Ab1"),
            ("Ab1|rm$IFS-rf$IFS.$IFS@h", "Ab1"),
            ("Ab1<(rm)@h", "Ab1"),
            ("Ab1|'rm'|tee@h", "Ab1"),
            ("Ab1;X=1@h", "Ab1"),
            ("Ab1;>x@h", "Ab1"),
            ("Ab1>README>x@h", "Ab1"),
            ("Xk7pLmQ9zT|Rscript|x@h", "Xk7pLmQ9zT"),
        ] {
            assert_eq!(password("curl https", text), Some(found), "{text}");
        }
        for text in ["8080", "8080,a@b", "80|rm|tee@x", "3000','a@b", "$PASS@h", "a;b", "@h", "|rm|x@h"] {
            assert_eq!(password("http", text), None, "{text}");
        }
        let many = format!("x|rm|{}", "@a,".repeat(500_000));
        assert_eq!(password("http", &many), Some("x"));
        assert_eq!(password("['http", "a','b@c"), None);
        assert_eq!(password("\"http", "a','b@c"), Some("a','b"));
    }

    #[test]
    fn a_password_in_quotes_contains_no_command() {
        for (ahead, found) in [
            ("curl 'https", "Ab1;zap;x"),
            ("curl \"https", "Ab1;zap;x"),
            ("echo 'a'https", "Ab1"),
            ("echo \\\"https", "Ab1"),
            ("curl https", "Ab1"),
        ] {
            assert_eq!(password(ahead, "Ab1;zap;x@h"), Some(found), "{ahead}");
        }
    }
}

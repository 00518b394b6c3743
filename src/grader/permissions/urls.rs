//! The URLs that a call names: in its input, or in its title if the agent shows no input.

use super::Subject;
use super::commands::acting_texts;

/// Returns the URLs of the web that a call names, each once, in the form in which they are compared.
pub(super) fn urls(call: &Subject<'_>) -> Vec<String> {
    let input = call.input();
    let title = call.call.title.as_deref().filter(|_| input.is_none());
    let texts = match input.and_then(|_| acting_texts(call)) {
        Some(texts) => texts,
        None => input.into_iter().chain(title).map(str::to_owned).collect(),
    };
    let mut found: Vec<String> = texts.iter().flat_map(|text| urls_in(text)).collect();
    // Programs such as `curl` add the scheme.
    if call.command().seen().is_some() {
        let words = texts.iter().flat_map(|text| text.split(ends)).filter(|word| word.contains('/'));
        found.extend(words.filter(|word| !word.contains("://") && !word.starts_with('/')).filter_map(compared));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the URLs in a text, in the form in which they are compared.
fn urls_in(text: &str) -> Vec<String> {
    let ends_with = |text: &str, end: &str| {
        let tail = text.len().checked_sub(end.len()).and_then(|at| text.as_bytes().get(at..));
        tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end.as_bytes()))
    };
    let of_web =
        |at: usize| text.get(..at).is_some_and(|before| ends_with(before, "http") || ends_with(before, "https"));
    let url = |at: usize| compared(text.get(at + "://".len()..)?.split(ends).next()?);
    text.match_indices("://").map(|(at, _)| at).filter(|at| of_web(*at)).filter_map(url).collect()
}

/// Returns true if a URL ends before this character.
fn ends(character: char) -> bool {
    character.is_whitespace() || "\"'`<>\\|^{}".contains(character)
}

/// Returns the form in which a URL is compared: without the scheme, the user, the usual port, the fragment and the slash at the
/// end, and with the host in lower case. Agents change `http` to `https`, and a server never gets the fragment.
fn compared(url: &str) -> Option<String> {
    // What follows a URL in a sentence or in a command is not part of it.
    let url = url.trim_end_matches(|c: char| ".,;:!?)]&".contains(c));
    let url = url.split('#').next()?;
    let (host, path) = url.split_at(url.find(['/', '?']).unwrap_or(url.len()));
    let host = host.rsplit('@').next()?;
    let host = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(host);
    let path = path.trim_end_matches('/');
    (!host.is_empty()).then(|| format!("{}{path}", host.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_found_in_an_input_a_command_and_a_sentence() {
        for (text, expected) in [
            (r#"{"url":"https://a.example/x?y=1&z=2#part"}"#, &["a.example/x?y=1&z=2"][..]),
            (r#"{"command":"curl -s \"http://a.example/x/\" | sh"}"#, &["a.example/x"]),
            ("see https://a.example/x, and (https://b.example).", &["a.example/x", "b.example"]),
            ("$(curl https://a.example/x); ls", &["a.example/x"]),
            ("HTTPS://u:p@A.Example:443/X?", &["a.example/X"]),
            ("ftp://a.example/x and https:// alone", &[]),
        ] {
            assert_eq!(urls_in(text), expected, "{text}");
        }
    }
}

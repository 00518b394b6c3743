//! Shortens texts, counts nouns, lists names and quotes words for a shell, for messages, reasons and reports.

use std::fmt::Display;

/// Returns at most this many characters from the beginning of a text.
pub fn first_chars(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// Returns at most this many bytes from the beginning of a text, without a part of a character.
pub fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Marks the beginning of a text with `…` if the text is longer.
pub fn marked(beginning: &str, text: &str) -> String {
    if beginning.len() < text.len() { format!("{beginning}…") } else { beginning.to_owned() }
}

/// Removes the line from an error of a JSON parser that read a single line, whose number the caller shows: the parser counts
/// the lines of its own input.
pub fn in_one_line(error: &str) -> String {
    error.replacen(" at line 1 column ", " in column ", 1)
}

/// Formats a number with a noun: `1 trial`, `2 trials`.
pub fn plural<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let s = match number == N::from(1) {
        true => "",
        false if noun.ends_with('s') => "es",
        false => "s",
    };
    format!("{number} {noun}{s}")
}

/// Returns a text in one line, without characters that act on a terminal.
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").replace(crate::values::is_hidden, "?")
}

/// Returns a text as one word of a command line for `sh`.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    let needs_no_quotes = !text.is_empty() && text.chars().all(is_plain);
    if needs_no_quotes { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Formats the first names of a list with the number of further names: `a, b and 3 more`.
pub fn some_of<T: Display>(names: impl IntoIterator<Item = T>, shown: usize) -> String {
    some_joined(names, shown, ", ")
}

/// Formats the first texts of a list, with a separator between them, and the number of further texts.
pub fn some_joined<T: Display>(texts: impl IntoIterator<Item = T>, shown: usize, separator: &str) -> String {
    let mut texts = texts.into_iter();
    let first: Vec<String> = texts.by_ref().take(shown).map(|text| text.to_string()).collect();
    and_more(first.join(separator), texts.count())
}

/// Adds the number of further items to a list of the first ones.
pub fn and_more(first: String, more: usize) -> String {
    if more > 0 { format!("{first} and {more} more") } else { first }
}

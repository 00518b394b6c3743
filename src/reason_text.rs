//! Formats values of any size for a reason that stays one readable line.

use crate::text::{and_more, first_chars};
use crate::values::is_hidden;

/// Returns the text on one line, with blanks for line breaks, cut after a number of characters. Invisible characters
/// become escapes such as `\\u{feff}`, because two texts that differ in one of them must not look the same.
pub fn short(text: &str, limit: usize) -> String {
    let mut line = String::new();
    // A text may be megabytes long, and only its beginning is shown.
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(limit + 1));
        if line.len() > limit * 4 {
            break;
        }
    }
    let mut clean = String::new();
    for c in line.chars().filter(|c| !c.is_control()) {
        if is_hidden(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    let first = first_chars(&clean, limit);
    if first.len() < clean.len() { format!("{}…", first.trim_end()) } else { clean }
}

/// Formats alternatives: `a`, `a or b`, `a, b or c`.
pub fn any_of(words: impl IntoIterator<Item = String>) -> String {
    let mut words: Vec<String> = words.into_iter().collect();
    match words.pop() {
        None => String::new(),
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} or {last}", words.join(", ")),
    }
}

/// Returns the first items of a list, and the number of further ones.
pub fn first_few<T: ToString>(list: impl IntoIterator<Item = T>, shown: usize) -> String {
    let mut list = list.into_iter();
    let words: Vec<String> = list.by_ref().take(shown).map(|word| short(&word.to_string(), 100)).collect();
    and_more(words.join(", "), list.count())
}

/// Formats event numbers: `event 3`, `events 3 and 4`, or the first few of them.
pub fn events(seqs: &[u64]) -> String {
    match seqs {
        [one] => format!("event {one}"),
        many => format!("events {}", first_few(many, 5)),
    }
}

/// Formats an amount of money, rounded to hide errors of binary fractions.
pub fn money(amount: f64) -> String {
    let text = format!("{amount:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the first sentences, and the number of further ones.
pub fn first_few_long(list: &[String], shown: usize) -> String {
    let told = list.iter().take(shown).cloned().collect::<Vec<String>>().join("; ");
    and_more(told, list.len().saturating_sub(shown))
}

//! Formats values of any size for a reason that stays one readable line.

use crate::judgement::tolerance;
use crate::text::{first_chars, some_joined, some_of};
use crate::values::is_hidden;

/// Returns the text on one line, with blanks for line breaks, cut after a number of characters. Control characters become
/// `^@`, `^A` and so on, as in the events of a trace, and invisible ones escapes such as `\\u{feff}`: two texts that
/// differ in one of them must not look the same.
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
    for c in line.chars() {
        match c {
            '\0'..='\x1f' => clean.extend(['^', char::from(c as u8 + 0x40)]),
            '\x7f' => clean.push_str("^?"),
            c if c.is_control() || is_hidden(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    let first = first_chars(&clean, limit);
    if first.len() < clean.len() { format!("{}…", first.trim_end()) } else { clean }
}

/// Returns the text on one line, cut after a number of characters, with escapes for white space other than single blanks,
/// for control and invisible characters, and for backslashes. It is for texts that look the same if [`short`] shows them.
pub fn exact(text: &str, limit: usize) -> String {
    let mut line = String::new();
    let mut before = ' ';
    for (at, c) in text.chars().enumerate() {
        if at == limit {
            line.push('…');
            break;
        }
        match c {
            ' ' if before == ' ' => line.push_str("\\u{20}"),
            ' ' => line.push(' '),
            c if c == '\\' || c.is_whitespace() || c.is_control() || is_hidden(c) => line.extend(c.escape_default()),
            c => line.push(c),
        }
        before = c;
    }
    line
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
    some_of(list.into_iter().map(|word| short(&word.to_string(), 100)), shown)
}

/// Formats event numbers: `event 3`, `events 3 and 4`, or the first few of them.
pub fn events(seqs: &[u64]) -> String {
    match seqs {
        [one] => format!("event {one}"),
        many => format!("events {}", first_few(many, 5)),
    }
}

/// The usual number of decimals of an amount of money, and the highest.
const MONEY_PLACES: (usize, usize) = (6, 12);

/// Formats an amount of money, rounded to hide errors of binary fractions, but so that it differs from 0 and from a bound
/// whenever the amount does.
pub fn money_beside(amount: f64, bound: f64) -> String {
    let is_apart = |text: &str, other: f64| {
        let is_the_same = tolerance::equals(amount, other);
        is_the_same || text.parse::<f64>().is_ok_and(|shown| shown != other)
    };
    let written = |places: usize| {
        let text = format!("{amount:.places$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    let (usual, most) = MONEY_PLACES;
    let text = (usual..=most).map(written).find(|text| is_apart(text, 0.0) && is_apart(text, bound));
    text.unwrap_or_else(|| format!("{amount:e}"))
}

/// Returns the first sentences, and the number of further ones.
pub fn first_few_long(list: &[String], shown: usize) -> String {
    some_joined(list, shown, "; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_a_control_character_look_different() {
        assert_eq!(short("answer\0 4\u{1}2\u{7f}", 200), "answer^@ 4^A2^?");
        assert_eq!(short("\u{1b}[31mred\u{9b}0m\u{feff}", 200), "^[[31mred\\u{9b}0m\\u{feff}");
        assert_eq!(short(" a\n\tb ", 200), "a b");
        assert_eq!(exact(" a\n\tb  c\u{a0}\\", 200), "\\u{20}a\\n\\tb \\u{20}c\\u{a0}\\\\");
        assert_eq!((exact("abc", 3), exact("abc", 2)), ("abc".to_owned(), "ab…".to_owned()));
    }

    #[test]
    fn an_amount_is_not_shown_as_a_bound_that_it_is_not() {
        let shown = [(0.0, 0.0), (0.1 + 0.2, 0.3), (5.0, 100.0), (100.0, 1.0), (0.000_000_4, 0.0), (0.100_000_04, 0.1)];
        let shown = shown.map(|(amount, bound)| money_beside(amount, bound));
        assert_eq!(shown, ["0", "0.3", "5", "100", "0.0000004", "0.10000004"]);
        assert_eq!(money_beside(0.4e-12, 0.0), "4e-13");
    }
}

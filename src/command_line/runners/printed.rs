//! What `echo`, `printf`, `cat`, `sed`, `tee` and `dd` print.

use super::sed::printed_by_sed;
use super::{MAX_OUTPUT_BYTES, NOT_SHOWN, own, text_of, without_end_of_options};
use crate::command_line::expanded::Argument;

/// Returns what a command prints, if its words show it.
pub(in crate::command_line) fn printed(words: &[Argument], input: Option<&str>) -> Option<String> {
    let (program, rest) = own(words)?;
    match program {
        "echo" => {
            let is_option = |word: &&Argument| matches!(word.text.as_str(), "-n" | "-e" | "-E" | "-ne" | "-en");
            let options = rest.iter().take_while(is_option).count();
            Some(unescaped(&text_of(rest.get(options..).unwrap_or_default())))
        }
        "printf" => Some(formatted(without_end_of_options(rest))),
        "cat" if rest.is_empty() || matches!(rest, [only] if only.text == "-") => input.map(str::to_owned),
        // Of the files, those that the line wrote before.
        "cat" => {
            let text: String = rest.iter().filter_map(|file| file.content.as_deref()).collect();
            let is_shown = !text.is_empty();
            is_shown.then(|| if text.len() > MAX_OUTPUT_BYTES { NOT_SHOWN.to_owned() } else { text })
        }
        "sed" | "gsed" => printed_by_sed(rest, input),
        "tee" => input.map(str::to_owned),
        "dd" if !rest.iter().any(|word| word.text.starts_with("if=")) => input.map(str::to_owned),
        _ => None,
    }
}

/// Returns what `printf` prints with these arguments. The output of a sign other than `%s` and `%b` is not shown.
fn formatted(arguments: &[Argument]) -> String {
    let Some((format, mut rest)) = arguments.split_first() else { return String::new() };
    let mut text = String::new();
    loop {
        let before = rest.len();
        let mut parts = format.text.as_str();
        while let Some((plain, behind)) = parts.split_once('%') {
            text.push_str(&unescaped(plain));
            let sign = behind.chars().next().unwrap_or('%');
            if sign == '%' {
                text.push('%');
            } else if let Some((first, others)) = rest.split_first() {
                match sign {
                    's' => text.push_str(&first.text),
                    'b' => text.push_str(&unescaped(&first.text)),
                    _ => text.push_str(NOT_SHOWN),
                }
                rest = others;
            }
            parts = behind.get(sign.len_utf8()..).unwrap_or_default();
        }
        text.push_str(&unescaped(parts));
        if text.len() > MAX_OUTPUT_BYTES {
            return NOT_SHOWN.to_owned();
        }
        if rest.is_empty() || rest.len() == before {
            return text;
        }
    }
}

/// Returns a text after the replacement of its escapes by characters: `\n`, `\x41`, `\101`.
fn unescaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            shown.push(next);
            continue;
        }
        let behind = rest.as_str();
        match behind.chars().next() {
            Some('0') => shown.extend(character(&mut rest, 8, 4)),
            Some('1'..='7') => shown.extend(character(&mut rest, 8, 3)),
            Some(escaped) => {
                rest.next();
                match escaped {
                    'n' => shown.push('\n'),
                    't' => shown.push('\t'),
                    'r' => shown.push('\r'),
                    '\\' => shown.push('\\'),
                    'x' => shown.extend(character(&mut rest, 16, 2)),
                    'u' => shown.extend(character(&mut rest, 16, 4)),
                    'U' => shown.extend(character(&mut rest, 16, 8)),
                    other => shown.extend(['\\', other]),
                }
            }
            None => shown.push('\\'),
        }
    }
    shown
}

/// Reads the number of a character.
fn character(rest: &mut std::str::Chars<'_>, base: u32, most: usize) -> Option<char> {
    let digits: String = rest.clone().take(most).take_while(|c| c.is_digit(base)).collect();
    *rest = rest.as_str().get(digits.len()..).unwrap_or_default().chars();
    char::from_u32(u32::from_str_radix(&digits, base).ok()?)
}

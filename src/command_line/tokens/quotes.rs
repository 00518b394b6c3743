//! Reads texts in quotes.

use std::mem;

use super::{Lexer, Piece};

impl Lexer<'_> {
    /// Reads a text with substitutions up to its closing quote.
    pub(super) fn quoted(&mut self, end: Option<char>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        while let Some(next) = self.peek() {
            if Some(next) == end {
                self.next();
                break;
            }
            match next {
                '\\' => {
                    self.next();
                    match self.peek() {
                        Some('\n') => {
                            self.next();
                        }
                        Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                            text.push(escaped);
                            self.next();
                        }
                        _ => text.push('\\'),
                    }
                }
                '$' | '`' => match self.substitution(true) {
                    Some(piece) => {
                        if !text.is_empty() {
                            pieces.push(Piece::Text { text: mem::take(&mut text), is_quoted: true });
                        }
                        pieces.push(piece);
                    }
                    None => text.push(next),
                },
                _ => {
                    text.push(next);
                    self.next();
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text { text, is_quoted: true });
        }
        pieces
    }

    /// Reads the rest of a text in single quotes.
    pub(super) fn single_quoted(&mut self) -> String {
        let quoted = self.rest().split('\'').next().unwrap_or_default().to_owned();
        self.at = (self.at + quoted.len() + 1).min(self.text.len());
        quoted
    }

    /// Reads the text of `$'…'`.
    pub(super) fn with_escapes(&mut self) -> String {
        let mut text = String::new();
        while let Some(next) = self.next() {
            match next {
                '\'' => break,
                '\\' => {
                    let Some(escaped) = self.next() else { break };
                    match escaped {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'x' => text.extend(self.code(16, 2)),
                        'u' => text.extend(self.code(16, 4)),
                        'U' => text.extend(self.code(16, 8)),
                        '0'..='7' => {
                            self.at -= 1;
                            text.extend(self.code(8, 3));
                        }
                        other => text.push(other),
                    }
                }
                _ => text.push(next),
            }
        }
        text
    }

    /// Reads the number of a character.
    fn code(&mut self, base: u32, most: usize) -> Option<char> {
        let digits: String = self.rest().chars().take(most).take_while(|c| c.is_digit(base)).collect();
        self.at += digits.len();
        char::from_u32(u32::from_str_radix(&digits, base).ok()?)
    }
}

/// Returns false if a shell without `$'…'` ends this text at an escaped quote, and may run a part of it or of the rest.
pub(super) fn is_one_text(written: &str, rest: &str) -> bool {
    let inner = written.strip_suffix('\'').unwrap_or(written);
    let backslashes = inner.len() - inner.trim_end_matches('\\').len();
    let is_ended = inner.len() < written.len() && backslashes.is_multiple_of(2);
    match inner.split_once("\\'") {
        Some((_, behind)) => is_ended && !behind.contains(['#', '\n', '"', '`']) && !rest.contains('\''),
        None => true,
    }
}

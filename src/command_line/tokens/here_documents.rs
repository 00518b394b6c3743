//! Reads here-documents and their delimiters.

use super::{Lexer, Pending, Piece, Word};

impl Lexer<'_> {
    /// Reads the lines of a here-document, up to its delimiter.
    pub(super) fn here_document(&mut self, document: &Pending) -> Word {
        let mut body = String::new();
        let mut is_continued = false;
        while self.at < self.text.len() {
            let rest = self.rest();
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            let size = line.len();
            let whole = line.strip_suffix('\n').unwrap_or(line);
            let whole = if document.strips_tabs { whole.trim_start_matches('\t') } else { whole };
            let plain = whole.strip_suffix('\r').unwrap_or(whole);
            // Within `$(…)`, the closing bracket may follow on the same line.
            let ends = plain == document.delimiter;
            // Some shells compare the carriage returns, others leave them out.
            let compared = if document.has_return { whole.strip_suffix('\r') } else { Some(whole) };
            if ends != (compared == Some(document.delimiter.as_str())) || ends && is_continued {
                self.stop();
                break;
            }
            let backslashes = whole.len() - whole.trim_end_matches('\\').len();
            is_continued = !document.is_quoted && backslashes % 2 == 1;
            if !ends {
                body.push_str(plain);
                body.push('\n');
            }
            self.at += size;
            if ends {
                break;
            }
        }
        if document.is_quoted {
            return Word { pieces: vec![Piece::Text { text: body, is_quoted: true }] };
        }
        let mut inner = Lexer { text: &body, depth: self.depth, ..Lexer::default() };
        let pieces = inner.quoted(None);
        self.is_cut |= inner.is_cut;
        Word { pieces }
    }
}

/// Returns the delimiter of a here-document and whether it is quoted, or `None` if shells read it in different ways.
pub(super) fn delimiter(written: &str) -> Option<(String, bool)> {
    let (mut text, mut is_quoted) = (String::new(), false);
    let mut rest = written.chars();
    while let Some(next) = rest.next() {
        match next {
            '\\' => {
                is_quoted = true;
                text.push(rest.next().filter(|escaped| !matches!(escaped, '\n' | '\r'))?);
            }
            '\'' | '"' => {
                is_quoted = true;
                loop {
                    match rest.next()? {
                        end if end == next => break,
                        '\n' | '\r' => return None,
                        '\\' | '$' | '`' if next == '"' => return None,
                        inner => text.push(inner),
                    }
                }
            }
            '$' if rest.as_str().starts_with(['\'', '"', '(', '[']) => return None,
            '`' | '(' | '\n' | '\r' => return None,
            other => text.push(other),
        }
    }
    Some((text, is_quoted))
}

//! Finds the place of a YAML text at which too many lists and maps in brackets are open. Pure.
//!
//! Follows the scanner of libyaml, which the YAML crate uses: a bracket opens a list or a map only if a token begins with
//! it. Other brackets are parts of texts and comments.

/// Returns the position, in bytes, of the first bracket at which more than `most` brackets are open. Returns `None` if
/// there is none before the text ends, or before the place at which the YAML crate stops with an error.
pub(super) fn exceeding(text: &str, most: usize) -> Option<usize> {
    if text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= most {
        return None;
    }
    let mut scanner = Scanner::new(text);
    while scanner.open <= most {
        scanner.find_token()?;
        scanner.skip_token()?;
    }
    let before = scanner.chars.get(..scanner.at.saturating_sub(1))?;
    Some(before.iter().map(|c| c.len_utf8()).sum())
}

/// A place that may be the key of a map, if `:` follows in its line.
struct Key {
    at: usize,
    line: usize,
    column: usize,
    /// True if nothing but a key can be at this place.
    is_required: bool,
}

/// The state of the scanner of libyaml that decides where tokens begin. Places count characters, as there.
struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: usize,
    line_start: usize,
    /// The number of open brackets.
    open: usize,
    /// The columns of the open lists and maps without brackets.
    indents: Vec<usize>,
    /// The possible key outside brackets.
    key: Option<Key>,
    allows_key: bool,
}

impl Scanner {
    fn new(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let start = usize::from(chars.first() == Some(&'\u{feff}'));
        Self { chars, at: start, line: 0, line_start: start, open: 0, indents: Vec::new(), key: None, allows_key: true }
    }

    /// Returns a character after the current one, and `\0` after the end.
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn column(&self) -> usize {
        self.at - self.line_start
    }

    fn skip(&mut self) {
        let is_line_end = is_break(self.peek(0));
        self.at += 1;
        if is_line_end {
            self.line += 1;
            self.line_start = self.at;
        }
    }

    fn skip_while(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.peek(0) != '\0' && is_skipped(self.peek(0)) {
            self.skip();
        }
    }

    /// Returns the first column of values within the innermost list or map without brackets.
    fn inner(&self) -> usize {
        self.indents.last().map_or(0, |column| column + 1)
    }

    fn is_marker_of_document(&self) -> bool {
        let mark = [self.peek(0), self.peek(1), self.peek(2)];
        self.column() == 0 && (mark == ['-'; 3] || mark == ['.'; 3]) && is_blank_or_end(self.peek(3))
    }

    /// Skips white space and comments. Returns `None` if the YAML crate stops with an error.
    fn find_token(&mut self) -> Option<()> {
        loop {
            if self.column() == 0 && self.peek(0) == '\u{feff}' {
                self.skip();
            }
            let skips_tabs = self.open > 0 || !self.allows_key;
            self.skip_while(|c| c == ' ' || (c == '\t' && skips_tabs));
            if self.peek(0) == '#' {
                self.skip_while(|c| !is_break(c));
            }
            if !is_break(self.peek(0)) {
                break;
            }
            self.skip();
            self.allows_key |= self.open == 0;
        }
        if self.key.as_ref().is_some_and(|key| key.line < self.line || key.at + 1_024 < self.at) {
            self.forget_key()?;
        }
        if self.open == 0 {
            let column = self.column();
            self.unroll(column);
        }
        Some(())
    }

    /// Skips a token. Returns `None` at the end, or if the YAML crate stops with an error.
    fn skip_token(&mut self) -> Option<()> {
        let (first, second) = (self.peek(0), self.peek(1));
        let is_outside = self.open == 0;
        let is_alone = is_blank_or_end(second);
        match first {
            '\0' => return None,
            '%' if self.column() == 0 => {
                self.end_blocks()?;
                self.skip_while(|c| !is_break(c));
            }
            _ if self.is_marker_of_document() => {
                self.end_blocks()?;
                (0..3).for_each(|_| self.skip());
            }
            '[' | '{' => {
                self.save_key()?;
                self.open += 1;
                self.allows_key = true;
                self.skip();
            }
            ']' | '}' => {
                self.forget_own_key()?;
                self.open = self.open.saturating_sub(1);
                self.allows_key = false;
                self.skip();
            }
            ',' => {
                self.forget_own_key()?;
                self.allows_key = true;
                self.skip();
            }
            '-' if is_alone => self.begin_block(true)?,
            '?' if is_alone || !is_outside => self.begin_block(is_outside)?,
            ':' if is_alone || !is_outside => self.value()?,
            '*' | '&' => {
                self.save_key()?;
                self.allows_key = false;
                self.skip();
                self.skip_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
                let is_end = is_blank_or_end(self.peek(0)) || "?:,]}%@`".contains(self.peek(0));
                return is_end.then_some(());
            }
            '!' => self.tag()?,
            '|' | '>' if is_outside => self.block_text()?,
            '\'' | '"' => {
                self.save_key()?;
                self.allows_key = false;
                self.quoted()?;
            }
            // No token begins with them, such as a tab in the indentation.
            '|' | '>' | '%' | '@' | '`' | '\t' => return None,
            _ => {
                self.save_key()?;
                self.allows_key = false;
                self.plain()?;
            }
        }
        Some(())
    }

    fn unroll(&mut self, column: usize) {
        while self.indents.last().is_some_and(|indent| *indent > column) {
            self.indents.pop();
        }
    }

    fn roll(&mut self, column: usize) {
        if self.open == 0 && self.indents.last().is_none_or(|indent| *indent < column) {
            self.indents.push(column);
        }
    }

    /// Ends all lists and maps without brackets, at a directive or a marker of a document.
    fn end_blocks(&mut self) -> Option<()> {
        if self.open == 0 {
            self.indents.clear();
        }
        self.forget_own_key()?;
        self.allows_key = false;
        Some(())
    }

    fn save_key(&mut self) -> Option<()> {
        if self.open == 0 && self.allows_key {
            self.forget_key()?;
            let column = self.column();
            let is_required = self.indents.last() == Some(&column);
            self.key = Some(Key { at: self.at, line: self.line, column, is_required });
        }
        Some(())
    }

    fn forget_key(&mut self) -> Option<()> {
        let is_error = self.key.take().is_some_and(|key| key.is_required);
        (!is_error).then_some(())
    }

    /// Forgets the possible key outside brackets, unless the scanner is within brackets.
    fn forget_own_key(&mut self) -> Option<()> {
        if self.open == 0 { self.forget_key() } else { Some(()) }
    }

    /// Skips `-` or `?`.
    fn begin_block(&mut self, allows_key: bool) -> Option<()> {
        if self.open == 0 {
            if !self.allows_key {
                return None;
            }
            let column = self.column();
            self.roll(column);
        }
        self.forget_own_key()?;
        self.allows_key = allows_key;
        self.skip();
        Some(())
    }

    /// Skips `:`.
    fn value(&mut self) -> Option<()> {
        if self.open == 0 {
            let key = self.key.take();
            if key.is_none() && !self.allows_key {
                return None;
            }
            self.allows_key = key.is_none();
            let column = key.map_or(self.column(), |key| key.column);
            self.roll(column);
        }
        self.skip();
        Some(())
    }

    fn tag(&mut self) -> Option<()> {
        self.save_key()?;
        self.allows_key = false;
        self.skip();
        if self.peek(0) == '<' {
            self.skip_while(|c| c != '>' && !is_blank_or_end(c));
        }
        self.skip_while(|c| !is_blank_or_end(c) && !",[]{}".contains(c));
        let is_end = is_blank_or_end(self.peek(0)) || (self.open > 0 && self.peek(0) == ',');
        is_end.then_some(())
    }

    /// Skips a text that `|` or `>` begins.
    fn block_text(&mut self) -> Option<()> {
        self.forget_key()?;
        self.allows_key = true;
        self.skip();
        let mut least = 0;
        for _ in 0..2 {
            match self.peek(0) {
                '+' | '-' => self.skip(),
                c @ '1'..='9' => {
                    let increment = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or_default();
                    least = self.indents.last().copied().unwrap_or_default() + increment;
                    self.skip();
                }
                _ => {}
            }
        }
        self.skip_while(|c| matches!(c, ' ' | '\t'));
        if self.peek(0) == '#' {
            self.skip_while(|c| !is_break(c));
        }
        if !is_break(self.peek(0)) {
            return None;
        }
        self.skip();
        let column = self.indentation(least)?;
        if least == 0 {
            least = column.max(self.inner()).max(1);
        }
        while self.column() == least && self.peek(0) != '\0' {
            self.skip_while(|c| !is_break(c));
            self.skip();
            self.indentation(least)?;
        }
        Some(())
    }

    /// Skips empty lines of a block text and the indentation of the next line, up to a column unless it is 0. Returns the
    /// greatest column.
    fn indentation(&mut self, column: usize) -> Option<usize> {
        let mut greatest = 0;
        loop {
            while self.peek(0) == ' ' && (column == 0 || self.column() < column) {
                self.skip();
            }
            greatest = greatest.max(self.column());
            if self.peek(0) == '\t' && (column == 0 || self.column() < column) {
                return None;
            }
            if !is_break(self.peek(0)) {
                return Some(greatest);
            }
            self.skip();
        }
    }

    fn quoted(&mut self) -> Option<()> {
        let quote = self.peek(0);
        self.skip();
        loop {
            let c = self.peek(0);
            if c == '\0' || self.is_marker_of_document() {
                return None;
            }
            self.skip();
            let is_escape = (c == '\\' && quote == '"') || (c == '\'' && c == quote && self.peek(0) == quote);
            if is_escape {
                self.skip();
            } else if c == quote {
                return Some(());
            }
        }
    }

    /// Skips a text without quotes, which may have several lines.
    fn plain(&mut self) -> Option<()> {
        let inner = self.inner();
        while !self.is_marker_of_document() && self.peek(0) != '#' {
            loop {
                let (c, next) = (self.peek(0), self.peek(1));
                if self.open > 0 && c == ':' && ",?[]{}".contains(next) {
                    return None;
                }
                let ends = (c == ':' && is_blank_or_end(next)) || (self.open > 0 && ",[]{}".contains(c));
                if is_blank_or_end(c) || ends {
                    break;
                }
                self.allows_key = false;
                self.skip();
            }
            if self.peek(0) == '\0' || !is_blank_or_end(self.peek(0)) {
                break;
            }
            while self.peek(0) != '\0' && is_blank_or_end(self.peek(0)) {
                let is_tab = self.peek(0) == '\t';
                if is_tab && self.allows_key && self.column() < inner {
                    return None;
                }
                self.allows_key |= is_break(self.peek(0));
                self.skip();
            }
            if self.open == 0 && self.column() < inner {
                break;
            }
        }
        Some(())
    }
}

/// Returns true for a line end of libyaml.
fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_end(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\0') || is_break(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    /// Returns the text with letters for the brackets that open and close no list and no map.
    fn without_brackets_of_texts(text: &str) -> String {
        let mut scanner = Scanner::new(text);
        let mut tokens = Vec::new();
        while scanner.find_token().is_some() {
            tokens.push(scanner.at);
            if scanner.skip_token().is_none() {
                break;
            }
        }
        let of_token = |at: usize| tokens.binary_search(&at).is_ok();
        text.chars().enumerate().map(|(at, c)| if of_token(at) { c } else { letter(c) }).collect()
    }

    fn letter(c: char) -> char {
        match c {
            '[' => 'p',
            ']' => 'q',
            '{' => 'r',
            '}' => 's',
            other => other,
        }
    }

    fn lettered(value: Value) -> Value {
        let text = |text: String| text.chars().map(letter).collect::<String>();
        match value {
            Value::String(it) => Value::String(text(it)),
            Value::Array(list) => Value::Array(list.into_iter().map(lettered).collect()),
            Value::Object(map) => {
                let map: Map<String, Value> =
                    map.into_iter().map(|(key, value)| (text(key), lettered(value))).collect();
                Value::Object(map)
            }
            other => other,
        }
    }

    #[track_caller]
    fn reads_as_the_parser(text: &str) {
        let Ok(value) = serde_yaml::from_str::<Value>(text) else { return };
        let other = without_brackets_of_texts(text);
        let read = serde_yaml::from_str::<Value>(&other);
        assert_eq!(read.ok(), Some(lettered(value)), "{text:?} -> {other:?}");
    }

    const PIECES: &[&str] = &[
        "[", "]", "{", "}", "[", "]", "{", "}", "a", "b", " ", "\n", "\n ", "\n  ", "\n    ", "\n- ", "\n  - ", "a: ",
        "b: ", ": ", ":", ", ", ",", "'", "\"", "\\", "# ", " #", "|\n  ", ">-\n   ", "|2\n   ", "- ", "? ", "\t",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn brackets_are_read_as_the_parser_reads_them(
            pieces in prop::collection::vec(prop::sample::select(PIECES), 0..16),
        ) {
            reads_as_the_parser(&pieces.concat());
        }
    }

    #[test]
    fn brackets_of_texts_and_comments_are_not_open() {
        for text in [
            "a: |\n  [\n   {\n\n  [ x\nb: [x]\n",
            "a: |2-  # [\n    [\n  {\nb: [x]\n",
            "- |\n [\n- >+\n [\n\n-\n  [x]\n",
            "a:\n- |\n  [\n- [x]\n",
            "a: \"[\n  [ \\\" {\n  ] ]\"\nb: 'it''s [\n  {'\n",
            "a: b [\n  [ {\n  # [\nc: [x] # [ {\n",
            "a: don't [ [\nb: [don't, '[', \"{\"]\n",
            "? [\n",
            "\u{feff}# [\na: &x [1]\nb: *x\n",
            "--- |\n [\n...\n",
            "a: {b: -[}\n",
            "a: - [\n",
        ] {
            reads_as_the_parser(text);
        }
        let many = |before: &str, line: &str, after: &str| format!("{before}{}{after}", line.repeat(20));
        for (text, is_open) in [
            (many("a: |\n", "  [0, 1)\n", "b: 1\n"), false),
            (many("a: >\n", "  [0, 1)\n", "b: 1\n"), false),
            (many("a: \"\n", "  [0, 1)\n", "\"\n"), false),
            (many("a: '\n", "  {0, 1)\n", "'\n"), false),
            (many("a: x\n", "  [0, 1)\n", ""), false),
            (many("", "# [0, 1)\n", "a: 1\n"), false),
            (many("a: [", "\"[\", '{', ", "]\n"), false),
            (many("a: ", "[\"]\",", ""), true),
            (many("a: |\n  x\nb:\n ", "[", ""), true),
            (many("a: ", "{b: # ]\n ", ""), true),
        ] {
            assert_eq!(exceeding(&text, 10).is_some(), is_open, "{text}");
        }
        assert_eq!(exceeding("é: [[[", 2), Some(6));
    }
}

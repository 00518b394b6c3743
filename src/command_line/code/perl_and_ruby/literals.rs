//! Code in Perl and Ruby without the words of its texts, regular expressions and comments, which run nothing.

use super::{PerlOrRuby, end_of, has_evaluation};

/// The signs and words of Perl and Ruby before a regular expression. Behind other code, `/` divides.
const BEFORE_PATTERN: [&str; 11] =
    ["if", "unless", "and", "or", "not", "split", "grep", "when", "while", "until", "return"];
/// The names of functions that may be given as texts: `send("system", c)`.
const FUNCTIONS: [&str; 3] = ["system", "exec", "spawn"];

/// Code whose literals are masked.
struct Masked<'a> {
    code: &'a str,
    masked: String,
}

impl<'a> Masked<'a> {
    fn rest(&self) -> &'a str {
        self.code.get(self.masked.len()..).unwrap_or_default()
    }

    /// Keeps code up to a place in the rest.
    fn keep(&mut self, size: usize) {
        let rest = self.rest();
        self.masked.push_str(rest.get(..size).unwrap_or(rest));
    }

    /// Keeps code up to a place in the rest, with `_` for its letters and digits.
    fn blank(&mut self, size: usize) {
        let rest = self.rest();
        let part = rest.get(..size).unwrap_or(rest);
        let hidden = |c: char| if c.is_ascii_alphanumeric() { '_' } else { c };
        self.masked.extend(part.chars().map(hidden));
    }

    /// Masks a text of a size. The values between `begin` and `}` in it are kept.
    fn blank_text(&mut self, size: usize, begin: &str) {
        let mut left = self.rest().get(..size).unwrap_or_default();
        while let Some((before, value)) = left.split_once(begin) {
            self.blank(before.len());
            let end = value.find('}').map_or(value.len(), |end| end + 1);
            self.keep(begin.len() + end);
            left = value.get(end..).unwrap_or_default();
        }
        self.blank(left.len());
    }
}

impl PerlOrRuby<'_> {
    /// Returns the code with `_` for the letters and digits of its texts, regular expressions and comments, at the same places.
    /// What runs in them is kept. Returns `None` if it is not certain where they end.
    pub fn masked(&self) -> Option<String> {
        if has_evaluation(self.code) {
            return None;
        }
        let mut masked = Masked { code: self.code, masked: String::with_capacity(self.code.len()) };
        let mut ends: Vec<&str> = Vec::new();
        while let Some(next) = masked.rest().chars().next() {
            let rest = masked.rest();
            let before = masked.masked.chars().next_back();
            let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
            match next {
                '\n' => {
                    masked.keep(1);
                    for end in ends.drain(..) {
                        let mut size = 0;
                        let mut lines = masked.rest().split_inclusive('\n');
                        while let Some(line) = lines.next().filter(|line| line.trim() != end) {
                            size += line.len();
                        }
                        let line = masked.rest().get(size..).filter(|line| !line.is_empty())?;
                        let line = line.lines().next().unwrap_or_default().len();
                        masked.blank_text(size, self.value_in_text());
                        masked.keep(line);
                    }
                }
                '\'' | '"' if before == Some('$') => masked.keep(1),
                '\'' | '"' if is_word || before == Some('?') => return None,
                '\'' | '"' => {
                    let size = end_of(rest.get(1..)?, next)?;
                    let text = rest.get(1..=size)?;
                    if self.is_perl && text.contains("${\\") {
                        return None;
                    }
                    masked.keep(1);
                    match text {
                        text if FUNCTIONS.contains(&text) => masked.keep(size),
                        text if next == '"' => masked.blank_text(text.len(), self.value_in_text()),
                        _ => masked.blank(size),
                    }
                    masked.keep(1);
                }
                '`' if before != Some('$') => {
                    let size = end_of(rest.get(1..)?, next)?;
                    masked.keep(size + 2);
                }
                '#' if before.is_none_or(char::is_whitespace) => masked.blank(rest.find('\n').unwrap_or(rest.len())),
                '/' if is_before_pattern(&masked.masked) => {
                    let line = rest.lines().next().unwrap_or_default();
                    match end_of(line.get(1..)?, next) {
                        Some(size) => {
                            masked.keep(1);
                            self.blank_pattern(&mut masked, size);
                            masked.keep(1);
                        }
                        // A path among the arguments of the program.
                        None if before.is_none_or(|c| c == '\n') => masked.keep(1),
                        None => return None,
                    }
                }
                // Without a bracket before it, a regular expression may be the argument of a call.
                '/' if may_be_pattern(&masked.masked, rest) => return None,
                '<' if tag(rest).is_some() => {
                    let (size, end) = tag(rest)?;
                    ends.push(end);
                    masked.keep(size);
                }
                _ => match self.operator(rest, before, &masked.masked) {
                    Some(operator) => self.blank_quoted(&mut masked, operator)?,
                    None => masked.keep(next.len_utf8()),
                },
            }
        }
        ends.is_empty().then_some(masked.masked)
    }

    /// Returns the beginning of a value in a text that may be any code.
    fn value_in_text(&self) -> &'static str {
        if self.is_perl { "@{" } else { "#{" }
    }

    fn blank_pattern(&self, masked: &mut Masked<'_>, size: usize) {
        // `(?{…})` runs code.
        match masked.rest().get(..size).is_some_and(|pattern| pattern.contains("?{")) {
            true => masked.keep(size),
            false => masked.blank_text(size, self.value_in_text()),
        }
    }

    /// Returns the operator of quotes at the beginning of code.
    fn operator<'b>(&self, code: &'b str, before: Option<char>, masked: &str) -> Option<&'b str> {
        const OF_PERL: [&str; 9] = ["qq", "qw", "qr", "qx", "tr", "q", "m", "s", "y"];
        const OF_RUBY: [&str; 9] = ["%q", "%Q", "%w", "%W", "%i", "%I", "%r", "%x", "%"];
        let is_behind = || match self.is_perl {
            true => before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '@' | '%' | '&' | '>' | '-')),
            // Behind a value, `%` is a sign of arithmetic.
            false => {
                let is_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
                is_word || masked.trim_end().ends_with([')', ']', '}', '"', '\''])
            }
        };
        let operators = if self.is_perl { &OF_PERL } else { &OF_RUBY };
        let operator = operators.iter().find(|operator| code.starts_with(**operator)).filter(|_| !is_behind())?;
        let behind = code.get(operator.len()..)?;
        let sign = match (self.is_perl && operator.starts_with('q'), behind.trim_start().chars().next()?) {
            (true, sign) if matches!(sign, '(' | '[' | '{' | '<') => sign,
            _ => behind.chars().next()?,
        };
        let is_sign = match *operator {
            "%" => matches!(sign, '(' | '[' | '{' | '<' | '|' | '!'),
            _ => !sign.is_alphanumeric() && !sign.is_whitespace() && !matches!(sign, '_' | ',' | ';' | ')' | '=' | '}'),
        };
        // `s => 1`, `-s . "a"`
        let is_other = self.is_perl && behind.starts_with(['.', '-', '>', '<', ':', '?', '&', '*', '+']);
        (is_sign && !is_other).then(|| code.get(..operator.len())).flatten()
    }

    /// Masks the text in the quotes of an operator at the beginning of the rest.
    fn blank_quoted(&self, masked: &mut Masked<'_>, operator: &str) -> Option<()> {
        let blanks = |code: &str| code.len() - code.trim_start().len();
        masked.keep(operator.len());
        masked.keep(blanks(masked.rest()));
        let (inner, behind) = self.delimited(masked.rest())?;
        let sign = masked.rest().chars().next()?;
        let close = masked.rest().get(..masked.rest().len() - behind.len())?.chars().next_back()?;
        let size = inner.len();
        masked.keep(sign.len_utf8());
        match operator {
            "qx" | "%x" => masked.keep(size),
            "q" | "qw" | "%q" | "%w" | "%i" | "y" | "tr" => masked.blank(size),
            _ => self.blank_pattern(masked, size),
        }
        if matches!(operator, "s" | "tr" | "y") {
            // The sign in the middle closes the first part and opens the second one.
            if close != sign {
                masked.keep(close.len_utf8());
                masked.keep(blanks(masked.rest()));
            }
            let (inner, behind) = self.delimited(masked.rest())?;
            let flags = behind.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            let size = inner.len();
            masked.keep(masked.rest().chars().next()?.len_utf8());
            match operator == "s" && flags.contains('e') {
                true => masked.keep(size),
                false => masked.blank_text(size, self.value_in_text()),
            }
        }
        masked.keep(masked.rest().chars().next()?.len_utf8());
        Some(())
    }
}

/// Returns true if a `/` behind this code begins a regular expression.
fn is_before_pattern(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    before.is_empty()
        || before.ends_with(['(', ',', '=', '~', '!', '&', '|', ';', '{', '[', '\n'])
        || BEFORE_PATTERN.contains(&word)
}

/// Returns true if a `/` at the beginning of code may begin a regular expression, or divide: `a /b`.
fn may_be_pattern(before: &str, code: &str) -> bool {
    let word = before.trim_end_matches([' ', '\t']);
    let is_apart = word.len() < before.len() && word.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    is_apart && !code.starts_with("//") && !code.starts_with("/=") && !code.starts_with("/ ")
}

/// Returns the size of the tag of a here-document at the beginning of code, and the line that ends the document.
pub(super) fn tag(code: &str) -> Option<(usize, &str)> {
    let name = code.strip_prefix("<<")?;
    let name = name.strip_prefix(['~', '-']).unwrap_or(name);
    let quote = name.chars().next().filter(|c| matches!(c, '"' | '\''));
    let name = if quote.is_some() { name.get(1..)? } else { name };
    let size = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    let (name, mut behind) = name.split_at_checked(size)?;
    if let Some(quote) = quote {
        behind = behind.strip_prefix(quote)?;
    }
    let is_tag = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_');
    is_tag.then_some((code.len() - behind.len(), name))
}

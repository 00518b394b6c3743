//! Splits a text into the words, operators and redirections of a shell. Any text is read; what a shell would refuse is
//! read as far as it goes.

use std::mem;
use std::ops::Range;

mod here_documents;
mod quotes;

use here_documents::delimiter;
use quotes::is_one_text;

/// The maximum depth of commands within words.
const MAX_DEPTH: usize = 12;
/// The maximum size in bytes of an arithmetic expression.
const MAX_ARITHMETIC_BYTES: usize = 4096;

/// A part of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    Operator(Operator),
    Redirection(Redirection),
    /// A redirection between streams: `2>&1`, `<&3`. `is_input` is true if the input comes from another stream.
    Stream {
        is_input: bool,
        /// True if the redirection replaces the input of the command, also if it closes the input.
        feeds: bool,
    },
    /// `((…))`, with its substitutions.
    Arithmetic(Vec<Piece>),
}

/// An operator between commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `;`, or the end of a line.
    End,
    /// `&`
    Background,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;;`, `;&` or `;;&`, the end of an item of `case`.
    EndOfItem,
    /// `|` or `|&`.
    Pipe,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A redirection to or from something that is not a number of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirection {
    pub way: Way,
    pub target: Word,
    /// True if it is about another stream than the usual one: `3<FILE`.
    pub is_of_other: bool,
}

/// The kind of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `<`
    From,
    /// `>`, `>|`, `&>`, `<>`
    To,
    /// `>>`, `&>>`
    Append,
    /// `<<<`, or a here-document.
    Text,
}

/// A word, as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub pieces: Vec<Piece>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text {
        text: String,
        is_quoted: bool,
    },
    /// `$NAME` or `${NAME…}`.
    Variable {
        name: String,
        /// True if the value is changed, or replaced if there is none (`${NAME:-x}`).
        is_changed: bool,
        is_quoted: bool,
        /// The text behind the name, within the braces.
        inner: Vec<Piece>,
    },
    /// `$(…)` or a text in backticks: the output of commands.
    Output {
        tokens: Vec<Token>,
        text: String,
        is_quoted: bool,
    },
    /// `<(…)`, `>(…)`, or the elements of an array: `=(…)`.
    Group {
        sign: char,
        tokens: Vec<Token>,
        text: String,
    },
}

impl Word {
    /// Returns the text of a word that is written without quotes and substitutions, as words of the shell's grammar are.
    pub fn plain(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Text { text, is_quoted: false }] => Some(text),
            _ => None,
        }
    }
}

/// The tokens of a text.
pub(super) struct Tokens {
    pub tokens: Vec<Token>,
    /// The place of each token in the text. The lines of a here-document belong to the end of the line before them.
    pub places: Vec<Range<usize>>,
    /// True if a part was not read, because it is nested too deeply, or because shells read it in different ways.
    pub is_cut: bool,
}

/// Splits a command line into tokens. `depth` is the number of command lines that contain this one.
pub(super) fn split(text: &str, depth: usize) -> Tokens {
    let mut lexer = Lexer { text, depth, ..Lexer::default() };
    let tokens = lexer.tokens(false);
    Tokens { tokens, places: lexer.places, is_cut: lexer.is_cut }
}

#[derive(Default)]
struct Lexer<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_cut: bool,
    /// The places of the tokens that are in no word.
    places: Vec<Range<usize>>,
}

/// A here-document whose lines follow.
struct Pending {
    /// The place of its redirection among the tokens.
    place: usize,
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
    /// True if a carriage return follows the delimiter.
    has_return: bool,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// Returns true if the number of a stream other than the input stands directly before this place.
    fn is_behind_number(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let rest = before.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = before.get(rest.len()..).unwrap_or_default();
        let is_word = rest.is_empty() || rest.ends_with(|c: char| c.is_whitespace() || ";|&()<>".contains(c));
        is_word && !matches!(number, "" | "0")
    }

    /// Reads no further.
    fn stop(&mut self) {
        (self.is_cut, self.at) = (true, self.text.len());
    }

    /// Reads over the carriage return at the end of a line.
    fn line_return(&mut self) -> bool {
        let is_found = matches!(self.rest().as_bytes(), [b'\r'] | [b'\r', b'\n', ..]);
        if is_found {
            self.at += 1;
        }
        is_found
    }

    /// Returns true if a word follows that is not the number of a stream.
    fn is_before_word(&self) -> bool {
        let rest = self.rest().trim_start_matches([' ', '\t']);
        let behind_number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        !rest.is_empty()
            && !rest.starts_with(['\n', '\r', ';', '|', '&', ')', '(', '#', '<', '>'])
            && !behind_number.starts_with(['<', '>'])
    }

    /// Returns true if a bracket directly behind a word begins qualifiers with code of zsh: `a(e:'rm b':)`.
    fn is_at_code_of_qualifiers(&self) -> bool {
        let before = self.text.get(..self.at).unwrap_or_default();
        let is_behind_word =
            !before.is_empty() && !before.ends_with([' ', '\t', '\n', ';', '|', '&', '(', ')', '<', '>']);
        let inner: String = self.rest().chars().skip(1).take(200).take_while(|c| *c != ')').collect();
        is_behind_word && has_code_of_qualifiers(&inner)
    }

    /// Reads tokens up to the end of the text, or up to the bracket that closes what was opened before.
    fn tokens(&mut self, is_inner: bool) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        let mut open = 0_usize;
        // For each open `case`, whether the pattern of an item comes next: its bracket ends no substitution.
        let mut cases: Vec<bool> = Vec::new();
        let mut is_subject = false;
        // Within `[[ … ]]`, whether it has a regular expression.
        let mut condition: Option<bool> = None;
        // The place of the number of a stream, which belongs to the redirection behind it.
        let mut number: Option<usize> = None;
        loop {
            while self.eat(" ") || self.eat("\t") || self.eat("\\\n") || self.line_return() {}
            let start = number.take().unwrap_or(self.at);
            let Some(next) = self.peek() else { break };
            match next {
                // Some shells take it for a part of the word, others for a blank.
                '\r' => self.stop(),
                // A shell without `[[` ends the command here, and runs what follows.
                ';' if condition.is_some() => self.stop(),
                '&' if condition.is_some() && !self.rest().starts_with("&&") => self.stop(),
                '|' if condition == Some(false) && !self.rest().starts_with("||") => self.stop(),
                '\n' if condition.is_some() && !matches!(tokens.last(), Some(Token::Operator(_))) => self.stop(),
                '\n' => {
                    self.next();
                    tokens.push(Token::Operator(Operator::End));
                    for document in pending.drain(..) {
                        let body = self.here_document(&document);
                        if let Some(Token::Redirection(redirection)) = tokens.get_mut(document.place) {
                            redirection.target = body;
                        }
                    }
                }
                '#' => while self.peek().is_some_and(|next| next != '\n') && self.next().is_some() {},
                ';' => {
                    let is_item = self.eat(";;&") || self.eat(";;") || self.eat(";&");
                    if !is_item {
                        self.next();
                    }
                    if let Some(last) = cases.last_mut().filter(|_| is_item) {
                        *last = true;
                    }
                    tokens.push(Token::Operator(if is_item { Operator::EndOfItem } else { Operator::End }));
                }
                '|' => {
                    let is_or = self.eat("||");
                    if !is_or && !self.eat("|&") {
                        self.next();
                    }
                    tokens.push(Token::Operator(if is_or { Operator::Or } else { Operator::Pipe }));
                }
                '(' if cases.last() == Some(&true) => {
                    self.next();
                    tokens.push(Token::Operator(Operator::Open));
                }
                '(' if condition.is_none() && self.is_at_code_of_qualifiers() => self.stop(),
                '(' => match self.arithmetic("((") {
                    Some(pieces) => tokens.push(Token::Arithmetic(pieces)),
                    None => {
                        self.next();
                        open += 1;
                        tokens.push(Token::Operator(Operator::Open));
                    }
                },
                ')' if cases.last() == Some(&true) => {
                    self.next();
                    cases.pop();
                    cases.push(false);
                    tokens.push(Token::Operator(Operator::Close));
                }
                ')' => {
                    self.next();
                    if is_inner && open == 0 {
                        return tokens;
                    }
                    open = open.saturating_sub(1);
                    tokens.push(Token::Operator(Operator::Close));
                }
                '&' if !self.rest().starts_with("&>") => {
                    let is_and = self.eat("&&");
                    if !is_and {
                        self.next();
                    }
                    tokens.push(Token::Operator(if is_and { Operator::And } else { Operator::Background }));
                }
                '<' | '>' if self.rest().get(1..2) == Some("(") => tokens.push(Token::Word(self.word())),
                '<' | '>' | '&' => {
                    // In a shell without `&>`, the sign `&` ends the command, and the words behind the file are another one.
                    let is_end = next == '&' && matches!(tokens.last(), Some(Token::Word(_)));
                    self.redirection(&mut tokens, &mut pending);
                    if is_end && self.is_before_word() {
                        self.stop();
                    }
                }
                _ => {
                    let word = self.word();
                    // The number of a stream before its redirection.
                    let is_stream = word.plain().is_some_and(|text| {
                        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
                        text.bytes().all(|byte| byte.is_ascii_digit()) || name.is_some_and(is_name)
                    });
                    if is_stream && self.peek().is_some_and(|next| matches!(next, '<' | '>')) {
                        number = Some(start);
                        continue;
                    }
                    match word.plain() {
                        Some("case") if begins_command(tokens.last()) => is_subject = true,
                        Some("in") if is_subject => {
                            is_subject = false;
                            cases.push(true);
                        }
                        Some("esac") if cases.last() == Some(&true) || begins_command(tokens.last()) => {
                            cases.pop();
                        }
                        Some("[[") if begins_command(tokens.last()) => condition = Some(false),
                        Some("]]") => condition = None,
                        Some("=~") => condition = condition.map(|_| true),
                        _ => {}
                    }
                    tokens.push(Token::Word(word));
                }
            }
            if !is_inner {
                self.places.resize(tokens.len(), start..self.at);
            }
        }
        self.is_cut |= condition.is_some();
        tokens
    }

    fn redirection(&mut self, tokens: &mut Vec<Token>, pending: &mut Vec<Pending>) {
        let is_of_other = self.is_behind_number();
        if self.eat("<<<") {
            let target = self.operand();
            return tokens.push(Token::Redirection(Redirection { way: Way::Text, target, is_of_other }));
        }
        if self.eat("<<") {
            let strips_tabs = self.eat("-");
            while self.eat(" ") || self.eat("\t") {}
            let start = self.at;
            self.word();
            let written = self.text.get(start..self.at).unwrap_or_default();
            let Some((delimiter, is_quoted)) = delimiter(written) else { return self.stop() };
            let has_return = self.peek() == Some('\r');
            pending.push(Pending { place: tokens.len(), delimiter, strips_tabs, is_quoted, has_return });
            return tokens.push(Token::Redirection(Redirection {
                way: Way::Text,
                target: Word::default(),
                is_of_other,
            }));
        }
        let is_of_streams = self.rest().starts_with(">&") || self.rest().starts_with("<&");
        let way = match () {
            () if self.eat("&>>") || self.eat(">>") => Way::Append,
            () if self.eat("&>") || self.eat(">|") || self.eat(">&") || self.eat("<>") || self.eat(">") => Way::To,
            () => {
                let _ = self.eat("<&") || self.next().is_some();
                Way::From
            }
        };
        let target = self.operand();
        let is_stream = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        match target.plain().filter(|&text| is_of_streams && is_stream(text)) {
            Some(stream) => tokens.push(Token::Stream {
                is_input: way == Way::From && !matches!(stream, "0" | "-"),
                feeds: way == Way::From && !is_of_other && stream != "0",
            }),
            None => tokens.push(Token::Redirection(Redirection { way, target, is_of_other })),
        }
    }

    /// Reads the word of a redirection.
    fn operand(&mut self) -> Word {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
        self.word()
    }

    /// Reads a word up to a blank or an operator outside of quotes.
    fn word(&mut self) -> Word {
        let mut pieces = Vec::new();
        let mut text = String::new();
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\n' | '\r' | ';' | '|' | '&' | ')' => break,
                '<' | '>' if self.rest().get(1..2) == Some("(") => {
                    end_text(&mut text, &mut pieces);
                    self.at += 2;
                    let (tokens, text) = self.inner();
                    pieces.push(Piece::Group { sign: next, tokens, text });
                }
                '<' | '>' => break,
                '(' => {
                    let is_array = pieces.is_empty() && text.ends_with('=');
                    let is_glob = text.ends_with(['?', '*', '+', '@', '!']);
                    // `=(…)` of zsh runs commands.
                    if is_array && text == "=" {
                        self.stop();
                        break;
                    }
                    if !is_array && !is_glob {
                        break;
                    }
                    end_text(&mut text, &mut pieces);
                    self.next();
                    let (tokens, text) = self.inner();
                    if is_glob && has_code_of_qualifiers(&text) {
                        self.stop();
                    }
                    pieces.push(Piece::Group { sign: if is_array { '=' } else { '?' }, tokens, text });
                }
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') => {}
                        // Some shells take it for the end of the line.
                        Some('\r') => self.stop(),
                        Some(escaped) => {
                            end_text(&mut text, &mut pieces);
                            pieces.push(Piece::Text { text: escaped.to_string(), is_quoted: true });
                        }
                        None => text.push('\\'),
                    }
                }
                '\'' => {
                    end_text(&mut text, &mut pieces);
                    self.next();
                    let text = self.single_quoted();
                    pieces.push(Piece::Text { text, is_quoted: true });
                }
                '"' => {
                    end_text(&mut text, &mut pieces);
                    self.next();
                    let quoted = self.quoted(Some('"'));
                    match quoted.is_empty() {
                        true => pieces.push(Piece::Text { text: String::new(), is_quoted: true }),
                        false => pieces.extend(quoted),
                    }
                }
                '$' if self.rest().starts_with("$'") => {
                    end_text(&mut text, &mut pieces);
                    let start = self.at;
                    self.at += 2;
                    let text = self.with_escapes();
                    pieces.push(Piece::Text { text, is_quoted: true });
                    let written = self.text.get(start..self.at).unwrap_or_default();
                    if !is_one_text(written, self.rest()) {
                        self.stop();
                    }
                }
                '$' if self.rest().starts_with("$\"") => {
                    self.next();
                }
                '$' | '`' => match self.substitution(false) {
                    Some(piece) => {
                        end_text(&mut text, &mut pieces);
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
            pieces.push(Piece::Text { text, is_quoted: false });
        }
        Word { pieces }
    }

    /// Reads a substitution. A `$` or a backtick that begins none is read over, and `None` is returned.
    fn substitution(&mut self, is_quoted: bool) -> Option<Piece> {
        if self.eat("`") {
            return Some(self.backticks(is_quoted));
        }
        self.next();
        if let Some(inner) = self.arithmetic("((") {
            return Some(Piece::Variable { name: "((…))".into(), is_changed: true, is_quoted, inner });
        }
        if self.eat("[") {
            let start = self.at;
            let end = self.rest().find(']').map_or(self.text.len(), |at| start + at);
            let inner = self.within(start, end);
            self.at = (end + 1).min(self.text.len());
            // Other shells take the brackets for a part of a word.
            if !is_quoted && self.text.get(start..end).unwrap_or_default().contains([';', '&', '|', '\n']) {
                self.stop();
            }
            return Some(Piece::Variable { name: "[…]".into(), is_changed: true, is_quoted, inner });
        }
        if self.eat("(") {
            let (tokens, text) = self.inner();
            return Some(Piece::Output { tokens, text, is_quoted });
        }
        if self.eat("{") {
            let is_indirect = self.eat("!") || self.eat("#");
            let name = self.name();
            let inner = self.braces(is_quoted);
            if evaluates(&name, &inner) {
                self.stop();
            }
            return Some(Piece::Variable { name, is_changed: is_indirect || !inner.is_empty(), is_quoted, inner });
        }
        let name = self.name();
        (!name.is_empty()).then(|| Piece::Variable { name, is_changed: false, is_quoted, inner: Vec::new() })
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let size = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let first = rest.chars().next();
        let size = match first {
            Some('@' | '*' | '?' | '$' | '!' | '-') => 1,
            // `$10` is `${1}0`.
            Some(first) if first.is_ascii_digit() => 1,
            _ => size,
        };
        let name = rest.get(..size).unwrap_or_default().to_owned();
        self.at += name.len();
        name
    }

    /// Reads the rest of `${NAME…}`.
    fn braces(&mut self, is_quoted: bool) -> Vec<Piece> {
        if self.depth >= MAX_DEPTH {
            self.stop();
            return Vec::new();
        }
        self.depth += 1;
        // In double quotes, single quotes count within patterns alone.
        let has_quotes = !is_quoted || self.peek().is_some_and(|next| matches!(next, '#' | '%' | '/' | '^' | ','));
        let (mut pieces, mut text) = (Vec::new(), String::new());
        while let Some(next) = self.next() {
            match next {
                '}' => break,
                '\\' => text.extend(self.next()),
                '\'' if has_quotes => text.push_str(&self.single_quoted()),
                '"' => {
                    end_text(&mut text, &mut pieces);
                    pieces.extend(self.quoted(Some('"')));
                }
                '$' | '`' => {
                    self.at -= 1;
                    match self.substitution(is_quoted) {
                        Some(piece) => {
                            end_text(&mut text, &mut pieces);
                            pieces.push(piece);
                        }
                        None => text.push(next),
                    }
                }
                _ => text.push(next),
            }
        }
        self.depth -= 1;
        end_text(&mut text, &mut pieces);
        pieces
    }

    /// Reads `((…))`. What ends in another way is no arithmetic but commands in two groups, and is not read.
    fn arithmetic(&mut self, begin: &str) -> Option<Vec<Piece>> {
        let rest = self.rest().strip_prefix(begin)?;
        let mut depth = 2_usize;
        let mut quote = None;
        let mut before = ' ';
        for (at, next) in rest.char_indices() {
            if at > MAX_ARITHMETIC_BYTES {
                self.stop();
                return None;
            }
            match (quote, next) {
                (Some(open), _) if open == next => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(next),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                (None, _) => {}
            }
            if depth == 0 {
                if before != ')' {
                    return None;
                }
                let start = self.at + begin.len();
                let inner = self.within(start, start + at - 1);
                self.at = start + at + 1;
                return Some(inner);
            }
            before = next;
        }
        None
    }

    /// Returns the substitutions in a part of the text.
    fn within(&mut self, start: usize, end: usize) -> Vec<Piece> {
        let text = self.text.get(start..end).unwrap_or_default();
        let mut inner = Lexer { text, depth: self.depth + 1, is_cut: self.depth >= MAX_DEPTH, ..Lexer::default() };
        let pieces = if inner.is_cut { Vec::new() } else { inner.quoted(None) };
        self.is_cut |= inner.is_cut;
        pieces
    }

    fn backticks(&mut self, is_quoted: bool) -> Piece {
        let mut text = String::new();
        while let Some(next) = self.next() {
            match next {
                '`' => break,
                '\\' if self.peek().is_some_and(|next| matches!(next, '`' | '\\' | '$')) => text.extend(self.next()),
                _ => text.push(next),
            }
        }
        let mut inner =
            Lexer { text: &text, depth: self.depth + 1, is_cut: self.depth >= MAX_DEPTH, ..Lexer::default() };
        let tokens = if inner.is_cut { Vec::new() } else { inner.tokens(false) };
        self.is_cut |= inner.is_cut;
        Piece::Output { tokens, text, is_quoted }
    }

    /// Reads commands up to the bracket that closes them, and returns them with their text.
    fn inner(&mut self) -> (Vec<Token>, String) {
        let start = self.at;
        if self.depth >= MAX_DEPTH {
            self.stop();
            return (Vec::new(), String::new());
        }
        self.depth += 1;
        let tokens = self.tokens(true);
        self.depth -= 1;
        let text = self.text.get(start..self.at).unwrap_or_default();
        (tokens, text.strip_suffix(')').unwrap_or(text).to_owned())
    }
}

/// Ends a text outside of quotes.
fn end_text(text: &mut String, pieces: &mut Vec<Piece>) {
    if !text.is_empty() {
        pieces.push(Piece::Text { text: mem::take(text), is_quoted: false });
    }
}

/// Returns true if a command begins behind a token.
pub(super) fn begins_command(before: Option<&Token>) -> bool {
    const WORDS: [&str; 9] = ["if", "then", "elif", "else", "while", "until", "do", "{", "!"];
    match before {
        None | Some(Token::Operator(_) | Token::Arithmetic(_)) => true,
        Some(Token::Word(word)) => word.plain().is_some_and(|word| WORDS.contains(&word)),
        Some(Token::Redirection(_) | Token::Stream { .. }) => false,
    }
}

/// Returns true if a shell runs code in the value of a variable: `${x@P}` in Bash, `${(e)x}` in zsh.
fn evaluates(name: &str, inner: &[Piece]) -> bool {
    let is_prompt = matches!(inner.last(), Some(Piece::Text { text, .. }) if text.ends_with("@P"));
    let flags = match inner.first() {
        Some(Piece::Text { text, .. }) if name.is_empty() => text.strip_prefix('('),
        _ => None,
    };
    is_prompt || flags.and_then(|flags| flags.split(')').next()).is_some_and(|flags| flags.contains('e'))
}

/// Returns true if zsh runs code for the qualifiers of a glob: `*(e:'rm a':)`, `*(+rm)`.
fn has_code_of_qualifiers(text: &str) -> bool {
    let text = text.strip_prefix("#q").unwrap_or(text);
    let is_simple = |c: char| c.is_ascii_alphanumeric() || ".^/@=*%,-".contains(c);
    let behind = text.trim_start_matches(is_simple);
    let before = text.strip_suffix(behind).unwrap_or_default();
    behind.starts_with('+') || before.ends_with('e') && behind.starts_with([':', '{', '[', '<', '\'', '"'])
}

/// Returns true if a text can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty() && text.bytes().all(is_letter)
}

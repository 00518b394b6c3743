//! The words of a command after the substitutions whose values the command line shows.

use std::collections::HashMap;

use super::tokens::{Piece, Token, Word};

/// The variables that a command line sets, with their values where these are known.
pub(super) type Variables = HashMap<String, Option<String>>;

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Argument {
    /// The text. Substitutions whose values are unknown stay as they are written.
    pub text: String,
    /// The end of the last part of the text whose value is unknown.
    unknown_to: Option<usize>,
    /// True if the last unknown part is the output of a command.
    is_output: bool,
    /// True if a part in quotes belongs to the word.
    pub is_quoted: bool,
    /// True if the word has wildcards.
    is_glob: bool,
}

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program<'a> {
    /// The name without its folder.
    Named(&'a str),
    /// The output of a command, which is not shown.
    Output,
    /// A value that is not shown.
    Unknown,
}

impl Argument {
    /// Makes a word that is known as a whole.
    pub fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns the program that the word names.
    pub fn program(&self) -> Program<'_> {
        let folder = self.text.rfind('/').map_or(0, |at| at + 1);
        let name = self.text.get(folder..).unwrap_or_default();
        let is_pattern = self.is_glob && name.contains(['*', '?', '[']) && name != "[" && name != "[[";
        match self.unknown_to {
            Some(end) if folder < end && self.is_output => Program::Output,
            Some(end) if folder < end => Program::Unknown,
            _ if is_pattern => Program::Unknown,
            _ => Program::Named(if name.is_empty() { &self.text } else { name }),
        }
    }

    /// Returns the word in the normal form: blanks within it are shown by signs, so that a pattern can tell them from the
    /// blanks between words.
    pub fn form(&self) -> String {
        if self.text.is_empty() { "''".to_owned() } else { joined(&self.text) }
    }
}

/// Returns a text as one word.
pub(super) fn joined(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' {
                '␤'
            } else if c.is_whitespace() {
                '␣'
            } else {
                c
            }
        })
        .collect()
}

/// Expands a word. A variable without quotes can become several words, or none.
pub(super) fn expand(word: &Word, variables: &Variables) -> Vec<Argument> {
    let mut words = Vec::new();
    let mut current: Option<Argument> = None;
    add(&word.pieces, variables, &mut words, &mut current);
    words.extend(current);
    if let [only] = words.as_slice()
        && !only.is_quoted
        && let Some(inner) = only.text.strip_prefix('{').and_then(|text| text.strip_suffix('}'))
        && inner.contains(',')
        && !inner.contains(['{', '$'])
    {
        return inner.split(',').map(Argument::known).collect();
    }
    words
}

fn add(pieces: &[Piece], variables: &Variables, words: &mut Vec<Argument>, current: &mut Option<Argument>) {
    for piece in pieces {
        match piece {
            Piece::Text { text, is_quoted } => {
                let word = current.get_or_insert_default();
                word.text.push_str(text);
                word.is_quoted |= *is_quoted;
                word.is_glob |= !is_quoted && text.contains(['*', '?', '[']);
            }
            Piece::Variable { name, is_quoted: false, .. } if name == "IFS" => words.extend(current.take()),
            Piece::Variable { name, is_changed, is_quoted, .. } => {
                let value = variables.get(name).and_then(Option::as_ref).filter(|_| !is_changed);
                let shown = if *is_changed { format!("${{{name}…}}") } else { format!("${name}") };
                match value {
                    Some(value) => known(value, *is_quoted, words, current),
                    None => unknown(&shown, false, *is_quoted, current),
                }
            }
            Piece::Output { tokens, text, is_quoted } => match printed(tokens, variables) {
                Some(value) => known(&value, *is_quoted, words, current),
                None => unknown(&format!("$({})", text.trim()), true, *is_quoted, current),
            },
            Piece::Group { sign, text, .. } => {
                let shown = match sign {
                    '=' | '?' => format!("({text})"),
                    sign => format!("{sign}({})", text.trim()),
                };
                unknown(&shown, false, false, current);
            }
        }
    }
}

fn unknown(shown: &str, is_output: bool, is_quoted: bool, current: &mut Option<Argument>) {
    let word = current.get_or_insert_default();
    word.text.push_str(shown);
    (word.unknown_to, word.is_output) = (Some(word.text.len()), is_output);
    word.is_quoted |= is_quoted;
}

/// Adds a value, which the shell splits at blanks unless it is in quotes.
fn known(value: &str, is_quoted: bool, words: &mut Vec<Argument>, current: &mut Option<Argument>) {
    if is_quoted {
        let word = current.get_or_insert_default();
        word.text.push_str(value);
        word.is_quoted = true;
        return;
    }
    if value.starts_with(char::is_whitespace) {
        words.extend(current.take());
    }
    let mut parts = value.split_whitespace().peekable();
    while let Some(part) = parts.next() {
        current.get_or_insert_default().text.push_str(part);
        if parts.peek().is_some() || value.ends_with(char::is_whitespace) {
            words.extend(current.take());
        }
    }
}

/// Returns what commands print, if their own words show it: `echo rm`, `which rm`.
fn printed(tokens: &[Token], variables: &Variables) -> Option<String> {
    let word = |token: &Token| match token {
        Token::Word(word) => Some(expand(word, variables)),
        // What `which` reports besides the path is not printed.
        Token::Redirection(redirection) if redirection.target.plain() == Some("/dev/null") => Some(Vec::new()),
        _ => None,
    };
    let words: Vec<Argument> = tokens.iter().map(word).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    if words.iter().any(|word| word.unknown_to.is_some()) {
        return None;
    }
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match texts.as_slice() {
        ["which", name] | ["command", "-v", name] | ["type", "-p" | "-P", name] => Some((*name).to_owned()),
        ["echo", rest @ ..] => {
            let options = rest.iter().take_while(|word| matches!(**word, "-n" | "-e" | "-E")).count();
            Some(rest.get(options..).unwrap_or_default().join(" "))
        }
        ["printf", "%s" | "%s\\n", rest @ ..] => Some(rest.join(" ")),
        ["printf", text] if !text.contains('%') => Some((*text).to_owned()),
        _ => None,
    }
}

/// Returns the name and the value of an assignment.
pub(super) fn assignment(word: &Word, variables: &Variables) -> Option<(String, Option<String>)> {
    let Some(Piece::Text { text, is_quoted: false }) = word.pieces.first() else { return None };
    let (name, _) = text.split_once('=')?;
    let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let first = name.bytes().next()?;
    let is_name = (first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return None;
    }
    let (mut words, mut whole) = (Vec::new(), None);
    add(&word.pieces, variables, &mut words, &mut whole);
    words.extend(whole);
    let is_known = !adds && words.iter().all(|word| word.unknown_to.is_none());
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let value = text.join(" ").split_once('=').map(|(_, value)| value.to_owned());
    Some((name.to_owned(), value.filter(|_| is_known)))
}

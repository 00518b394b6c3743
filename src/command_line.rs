//! The commands that a command line runs, each in a form that patterns can match.

use crate::judgement::Judgement;
use crate::values::Pattern;
use crate::yaml::lists::OneOrList;

mod code;
mod expanded;
mod runners;
mod tokens;

use expanded::{Argument, Program, Variables, assignment, expand, joined};
use runners::Inner;
use tokens::{Operator, Piece, Redirection, Token, Way, Word, split};

/// The maximum depth of commands that run others.
const DEEPEST: usize = 24;
/// The maximum number of commands of a line.
const MOST: usize = 4096;
/// The maximum size in bytes of what is kept of the command that a pipe reads from.
const LONGEST_SOURCE: usize = 4096;

/// The commands of a command line.
///
/// Each is one text: the program without its folder, its arguments, then `<FILE`, `>FILE`, `>>FILE`, `<<<TEXT` (a here-string or a
/// here-document) and `<|COMMAND` (the other end of a pipe), separated by one blank. A blank within an argument is `␣`, a line feed
/// is `␤`, and an empty argument is `''`. A command that runs another one is listed with it: `sudo rm a` is `sudo rm a` and
/// `rm a`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The commands, in the order of their ends.
    pub commands: Vec<String>,
    /// True if the line runs a program whose name it does not show, or commands that were not read.
    pub has_unknown: bool,
}

impl CommandLine {
    /// Reads a command line of a shell.
    pub fn read(line: &str) -> Self {
        let mut reader = Reader::default();
        reader.script(line);
        reader.found
    }

    /// Returns whether the line runs a command that one of the patterns matches.
    pub fn runs(&self, patterns: &OneOrList<Pattern>) -> Judgement {
        let is_found = |pattern: &Pattern| self.commands.iter().any(|command| pattern.is_match(command));
        match patterns.iter().any(is_found) {
            true => Judgement::True,
            false if self.has_unknown => Judgement::Unknown,
            false => Judgement::False,
        }
    }

    /// Returns whether each command that the line runs is matched by one of the patterns.
    pub fn runs_only(&self, patterns: &OneOrList<Pattern>) -> Judgement {
        let is_matched = |command: &String| patterns.iter().any(|pattern| pattern.is_match(command));
        match self.commands.iter().all(is_matched) {
            true if self.has_unknown => Judgement::Unknown,
            is_all => (is_all && !self.commands.is_empty()).into(),
        }
    }
}

/// The input and the output of a command.
#[derive(Debug, Clone, Default)]
struct Streams {
    /// The redirections and the source in the normal form.
    forms: Vec<String>,
    /// The text of a here-document or a here-string.
    text: Option<String>,
    /// The text that the other end of the pipe prints, if its words show it.
    printed: Option<String>,
}

#[derive(Debug, Default)]
struct Reader {
    found: CommandLine,
    variables: Variables,
    depth: usize,
}

/// The source of a pipe.
#[derive(Debug, Clone, Default)]
struct Source {
    form: String,
    printed: Option<String>,
}

impl Reader {
    /// Reads a text that a shell runs.
    fn script(&mut self, text: &str) {
        if self.depth >= DEEPEST {
            self.found.has_unknown = true;
            return;
        }
        self.depth += 1;
        let split = split(text, self.depth);
        self.found.has_unknown |= split.is_cut;
        self.tokens(&split.tokens);
        self.depth -= 1;
    }

    fn tokens(&mut self, tokens: &[Token]) {
        let mut tokens = tokens.iter().peekable();
        let (mut words, mut redirections): (Vec<&Word>, Vec<&Redirection>) = (Vec::new(), Vec::new());
        let mut source: Option<Source> = None;
        // For each open `case`, whether the pattern of an item comes next.
        let mut cases: Vec<bool> = Vec::new();
        // The number of commands before each open group, and before the group that was closed last.
        let (mut groups, mut closed): (Vec<usize>, Option<usize>) = (Vec::new(), None);
        while let Some(token) = tokens.next() {
            let is_pattern = cases.last() == Some(&true);
            match token {
                Token::Word(word) if is_pattern => {
                    if word.plain() == Some("esac") {
                        cases.pop();
                    }
                }
                Token::Operator(Operator::Close) if is_pattern => {
                    if let Some(last) = cases.last_mut() {
                        *last = false;
                    }
                }
                _ if is_pattern => {}
                Token::Redirection(redirection) => redirections.push(redirection),
                Token::Word(word) if words.is_empty() => match word.plain() {
                    Some("if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!") => {}
                    Some("time" | "coproc") if matches!(tokens.peek(), Some(Token::Word(next)) if next.plain() == Some("{")) =>
                        {}
                    Some("{") => groups.push(self.found.commands.len()),
                    Some("}") => closed = groups.pop(),
                    Some("fi" | "done") => {}
                    Some("esac") => {
                        cases.pop();
                    }
                    Some("[[") => {
                        for inner in tokens.by_ref() {
                            if let Token::Word(word) = inner {
                                self.outputs(&word.pieces);
                                if word.plain() == Some("]]") {
                                    break;
                                }
                            }
                        }
                    }
                    Some("function") => {
                        tokens.next();
                    }
                    Some("for" | "select") => {
                        while let Some(Token::Word(word)) = tokens.peek() {
                            self.outputs(&word.pieces);
                            if let Some(name) = word.plain() {
                                self.variables.insert(name.to_owned(), None);
                            }
                            tokens.next();
                        }
                    }
                    Some("case") => {
                        while let Some(Token::Word(word)) = tokens.peek() {
                            self.outputs(&word.pieces);
                            tokens.next();
                            if word.plain() == Some("in") {
                                break;
                            }
                        }
                        cases.push(true);
                    }
                    _ => words.push(word),
                },
                Token::Word(word) => words.push(word),
                Token::Operator(Operator::Open) => {
                    // `name() {` defines a function.
                    let is_function =
                        words.len() == 1 && matches!(tokens.peek(), Some(Token::Operator(Operator::Close)));
                    if is_function {
                        tokens.next();
                        words.clear();
                    } else {
                        self.finish(&mut words, &mut redirections, source.as_ref());
                        groups.push(self.found.commands.len());
                    }
                }
                Token::Operator(operator) => {
                    let is_empty = words.is_empty() && redirections.is_empty();
                    let before = self.found.commands.len();
                    let printed = self.finish(&mut words, &mut redirections, source.as_ref());
                    match operator {
                        Operator::Pipe => {
                            let from = if is_empty { closed.unwrap_or(before) } else { before };
                            source = Some(self.source(from, printed));
                        }
                        Operator::Close => (closed, source) = (groups.pop(), None),
                        Operator::EndOfItem => {
                            if let Some(last) = cases.last_mut() {
                                *last = true;
                            }
                            source = None;
                        }
                        // A line may end behind the sign of a pipe.
                        Operator::End if is_empty => {}
                        Operator::End | Operator::Open => source = None,
                    }
                }
            }
        }
        self.finish(&mut words, &mut redirections, source.as_ref());
    }

    /// Returns the source of a pipe whose commands are listed from an index on.
    fn source(&mut self, from: usize, printed: Option<String>) -> Source {
        let commands = self.found.commands.get(from..).unwrap_or_default();
        let mut form = joined(&commands.join(" <|"));
        if form.len() > LONGEST_SOURCE {
            let end = form.floor_char_boundary(LONGEST_SOURCE);
            form.truncate(end);
            self.found.has_unknown = true;
        }
        Source { form, printed }
    }

    /// Reads the commands in substitutions.
    fn outputs(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Output { tokens, .. } => self.tokens(tokens),
                // The elements of an array are no commands, but may contain some.
                Piece::Group { sign: '=' | '?', tokens, .. } => {
                    for token in tokens {
                        if let Token::Word(word) = token {
                            self.outputs(&word.pieces);
                        }
                    }
                }
                Piece::Group { tokens, .. } => self.tokens(tokens),
                Piece::Variable { inner, .. } => self.outputs(inner),
                Piece::Text { .. } => {}
            }
        }
    }

    /// Reads a command with its words, and returns what it prints, if its words show it.
    fn finish(
        &mut self,
        words: &mut Vec<&Word>,
        redirections: &mut Vec<&Redirection>,
        source: Option<&Source>,
    ) -> Option<String> {
        let (words, redirections) = (std::mem::take(words), std::mem::take(redirections));
        let mut streams = Streams::default();
        for redirection in redirections {
            self.outputs(&redirection.target.pieces);
            let target = expand(&redirection.target, &self.variables);
            let text: Vec<&str> = target.iter().map(|word| word.text.as_str()).collect();
            let text = text.join(" ");
            let sign = match redirection.way {
                Way::From => "<",
                Way::To => ">",
                Way::Append => ">>",
                Way::Text => "<<<",
            };
            streams.forms.push(format!("{sign}{}", joined(&text)));
            if redirection.way == Way::Text {
                streams.text = Some(text);
            }
        }
        if let Some(source) = source {
            streams.forms.push(format!("<|{}", source.form));
            streams.printed.clone_from(&source.printed);
        }
        words.iter().for_each(|word| self.outputs(&word.pieces));
        let assigned = words.iter().map_while(|word| assignment(word, &self.variables)).collect::<Vec<_>>();
        let named = words.get(assigned.len()..).unwrap_or_default();
        if named.is_empty() {
            self.variables.extend(assigned);
            return None;
        }
        if named.first().and_then(|word| word.plain()).is_some_and(is_declaration) {
            let declared: Vec<_> = named.iter().filter_map(|word| assignment(word, &self.variables)).collect();
            self.variables.extend(declared);
        }
        let arguments: Vec<Argument> = named.iter().flat_map(|word| expand(word, &self.variables)).collect();
        self.command(&arguments, &streams);
        runners::printed(&arguments, streams.text.as_deref())
    }

    /// Adds a command, and those that it runs.
    fn command(&mut self, arguments: &[Argument], streams: &Streams) {
        let Some((first, rest)) = arguments.split_first() else { return };
        if self.depth >= DEEPEST || self.found.commands.len() >= MOST {
            self.found.has_unknown = true;
            return;
        }
        let program = first.program();
        let name = match program {
            Program::Named(name) => joined(name),
            Program::Output | Program::Unknown => first.form(),
        };
        let form = std::iter::once(name).chain(rest.iter().map(Argument::form)).chain(streams.forms.iter().cloned());
        self.found.commands.push(form.collect::<Vec<_>>().join(" "));
        let Program::Named(name) = program else {
            self.found.has_unknown |= program == Program::Unknown;
            return;
        };
        self.depth += 1;
        if matches!(name, "read" | "mapfile" | "readarray") {
            let names = rest.iter().filter(|word| !word.text.starts_with('-'));
            self.variables.extend(names.map(|word| (word.text.clone(), None)));
        }
        let input = streams.text.as_deref().or(streams.printed.as_deref());
        for inner in runners::inner(name, rest, input) {
            match inner {
                Inner::Words(words) => self.command(words, streams),
                Inner::Script(text) => self.script(&text),
            }
        }
        // Words in a program of another language may be no commands, so what is unknown about them counts for nothing.
        let has_unknown = self.found.has_unknown;
        for line in code::command_lines(name, rest, streams.text.as_deref()) {
            self.script(&line);
        }
        self.found.has_unknown = has_unknown;
        self.depth -= 1;
    }
}

fn is_declaration(word: &str) -> bool {
    matches!(word, "export" | "local" | "declare" | "typeset" | "readonly")
}

#[cfg(test)]
mod tests;

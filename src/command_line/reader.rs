//! Reads the commands of a line from its tokens: groups, loops, pipes, variables, and the programs that run others.

mod commands;
mod evaluated;
mod groups;
mod heads;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem;
use std::ops::Range;
use std::rc::Rc;

use self::evaluated::{in_index, is_evaluated};
use self::groups::{Closed, Group, Scope};
use crate::command_line::expanded::{Argument, joined, text_for_arithmetic};
use crate::command_line::interactive::passes_on;
use crate::command_line::powershell::{is_cmdlet, runs_value};
use crate::command_line::tokens::{Operator, Piece, Redirection, Token, Word, split};
use crate::command_line::variables::{Branches, Value, Variables};
use crate::command_line::{CommandLine, Dialect};

/// The maximum depth of commands that run others.
const MAX_DEPTH: usize = 12;
/// The maximum number of commands of a line, with those that have no words after the substitutions.
pub(super) const MAX_COMMANDS: usize = 16 << 10;
/// The maximum number of arguments that a function is expected to drop.
const MOST_SHIFTED: usize = 8;
/// The maximum depth of groups.
const MOST_GROUPS: usize = 64;
/// The maximum size in bytes of what is kept of the commands that pipes read from.
const LONGEST_SOURCES: usize = 1 << 20;

/// Reads a command line.
pub(super) fn read(line: &str, dialect: Dialect) -> CommandLine {
    let mut reader = Reader { dialect, ..Reader::default() };
    reader.script(line, Source::default(), false);
    if reader.waits && reader.feeds || reader.reads_code && reader.variables.evaluates_unknown() {
        reader.cut();
    }
    // In PowerShell, a variable at the place of a command is a value.
    let is_powershell = match dialect {
        Dialect::Posix => false,
        Dialect::PowerShell => true,
        Dialect::Unknown => !reader.is_posix && reader.found.commands.iter().any(|command| is_cmdlet(command)),
    };
    reader.found.has_unknown &= !is_powershell || reader.is_cut || runs_value(line);
    reader.found.typed = reader.commands_with_input_of_line();
    reader.found
}

/// The input of a command: the other end of a pipe, or a text.
#[derive(Debug, Clone, Default)]
struct Source {
    /// The commands at the other end, in the normal form.
    form: Option<String>,
    /// The text, if the line shows it.
    text: Option<String>,
    /// True if the input is not that of the line: a pipe, a file, or a text.
    is_fed: bool,
}

impl Source {
    /// Returns a source whose text is not shown.
    fn unseen(is_fed: bool) -> Self {
        Self { is_fed, ..Self::default() }
    }

    /// Returns this source, or the one of the group around it.
    fn or<'a>(&'a self, around: &'a Self) -> &'a Self {
        if self.form.is_some() || self.text.is_some() || self.is_fed { self } else { around }
    }
}

/// The words and redirections of a command that is being read.
#[derive(Debug, Default)]
struct Open<'a> {
    words: Vec<&'a Word>,
    redirections: Vec<&'a Redirection>,
    /// True if the command has a redirection between streams.
    has_stream: bool,
    /// True if the command reads from another stream, as in `sh <&3`.
    reads_stream: bool,
    /// True if such a redirection replaces or closes the input of the command.
    is_fed: bool,
}

/// A command or the call of a function that gets the input of the line.
#[derive(Debug)]
enum Typed {
    /// The place of the command.
    Command(usize),
    /// The name of the function.
    Call(String),
}

impl Open<'_> {
    /// Returns true if nothing of the command was read. Only then, a word such as `case` is one of the shell's grammar.
    fn is_new(&self) -> bool {
        self.words.is_empty() && self.redirections.is_empty() && !self.has_stream
    }
}

#[derive(Debug, Default)]
struct Reader {
    dialect: Dialect,
    found: CommandLine,
    variables: Variables,
    /// The functions that the line defines, with the variables that they change.
    functions: HashMap<String, BTreeMap<String, Value>>,
    /// The bodies of the functions that the shell certainly has here, or `None` for other functions.
    bodies: Vec<(String, Option<Rc<[Token]>>)>,
    /// The functions that are read: those that are defined here, and those that are called.
    read_functions: Vec<String>,
    /// True if a function runs a word that it is called with.
    runs_arguments: bool,
    /// True if a function runs the first of these words, or all of them.
    runs_first: bool,
    /// The numbers of the words that a function evaluates as a text, as in `eval "$1"`; 0 for all of them.
    evaluated: BTreeSet<usize>,
    /// The commands of functions whose program is an argument, as in `"$2" "$3"`.
    called: Vec<Vec<Argument>>,
    /// The number of arguments that functions may drop by `shift`.
    shifted: usize,
    depth: usize,
    /// The size of the kept sources, and of the texts of used aliases.
    sources: usize,
    /// The size of the texts of files that commands read or write.
    contents: usize,
    /// The texts of the aliases that the line defines.
    aliases: HashMap<String, String>,
    /// The number of variables of the command that have one of their possible values.
    chosen: usize,
    /// True if the values that were chosen make no command.
    is_impossible: bool,
    /// The number of tokens that were searched for later changes of variables.
    expected: usize,
    /// True if a shell reads its commands from the input of a group, a function or the line.
    waits: bool,
    /// True if variables get their values from a text that has a substitution within an index.
    reads_code: bool,
    /// True if the line gives a text to a group, a function or itself.
    feeds: bool,
    /// The commands that get the input of the line, in its order.
    typed: Vec<Typed>,
    /// The names of the functions that the line calls.
    called_names: HashSet<String>,
    /// The functions that the line defines, and the places of the commands in their bodies.
    definitions: Vec<(String, Range<usize>)>,
    /// True if the commands in substitutions get another input than that of the line.
    is_fed: bool,
    /// True if the shell has replaced its input by `exec < FILE`.
    is_input_replaced: bool,
    /// True if a part of the line was not read.
    is_cut: bool,
    /// The number of commands that were read, with those that have no words.
    read: usize,
    /// The size of the commands.
    size: usize,
    /// True if a program that is a variable cannot be a value of PowerShell.
    is_posix: bool,
    /// True if the command may not run, because a branch or a function contains it.
    is_conditional: bool,
}

impl Reader {
    fn cut(&mut self) {
        (self.is_cut, self.found.has_unknown) = (true, true);
    }

    /// Returns the places of the commands that get the input of the line. The body of a function gets the input of its calls.
    fn commands_with_input_of_line(&self) -> Vec<usize> {
        let (mut places, mut typed_calls) = (Vec::new(), HashSet::new());
        for it in &self.typed {
            match it {
                Typed::Command(place) => places.push(*place),
                Typed::Call(name) => {
                    typed_calls.insert(name);
                }
            }
        }
        let mut is_fed = vec![false; self.found.commands.len()];
        for (name, body) in &self.definitions {
            if self.called_names.contains(name) && !typed_calls.contains(name) {
                is_fed.get_mut(body.clone()).into_iter().for_each(|body| body.fill(true));
            }
        }
        places.retain(|place| is_fed.get(*place) == Some(&false));
        places
    }

    /// Reads a text that a shell runs. `is_given` is true if it is the argument of a command such as `eval`: if all of it is the
    /// output of a command, it is like a script file.
    fn script(&mut self, text: &str, source: Source, is_given: bool) {
        if self.depth >= MAX_DEPTH {
            return self.cut();
        }
        self.depth += 1;
        let split = split(text, self.depth);
        if split.is_cut {
            self.cut();
        }
        match split.tokens.as_slice() {
            [Token::Word(Word { pieces })] if is_given && matches!(pieces.as_slice(), [Piece::Output { .. }]) => {
                self.outputs(pieces);
            }
            tokens => self.tokens(tokens, &source),
        }
        self.depth -= 1;
    }

    fn tokens(&mut self, all: &[Token], around: &Source) {
        let mut tokens = all.iter().peekable();
        let mut open = Open::default();
        let mut source = Source::default();
        // For each open `case`, whether the pattern of an item comes next, and its items.
        let mut cases: Vec<(bool, Branches)> = Vec::new();
        let mut groups: Vec<Group> = vec![self.group(around.clone(), Scope::Open)];
        // The group that was closed last.
        let mut closed: Option<Closed> = None;
        // The function whose body follows.
        let mut defined: Option<String> = None;
        let mut last: Option<&Token> = None;
        let is_in_branch = self.is_conditional;
        while let Some(token) = tokens.next() {
            let before = last.replace(token);
            let is_pattern = cases.last().is_some_and(|(is_pattern, _)| *is_pattern);
            let now = self.found.commands.len();
            if groups.len() > MOST_GROUPS {
                return self.cut();
            }
            let begin = |reader: &Self, groups: &mut Vec<Group>, source: &mut Source, scope: Scope| {
                let own = mem::take(source);
                let around = groups.last().map(|group| &group.source);
                let source = around.map_or_else(|| own.clone(), |around| own.or(around).clone());
                groups.push(reader.group(source, scope));
            };
            match token {
                Token::Word(word) if is_pattern => {
                    self.outputs(&word.pieces);
                    if word.plain() == Some("esac") {
                        cases.pop().into_iter().for_each(|(_, items)| self.variables.join(items));
                    } else if let Some((_, items)) = cases.last_mut() {
                        items.is_complete |= word.plain() == Some("*");
                    }
                }
                Token::Operator(Operator::Close) if is_pattern => {
                    if let Some((is_pattern, _)) = cases.last_mut() {
                        *is_pattern = false;
                    }
                }
                _ if is_pattern => {}
                Token::Redirection(redirection) => open.redirections.push(redirection),
                Token::Stream { is_input, feeds } => {
                    open.has_stream = true;
                    open.reads_stream |= is_input;
                    open.is_fed |= feeds;
                }
                Token::Arithmetic(pieces) => {
                    self.arithmetic(pieces);
                    self.possible_in_arithmetic(pieces);
                }
                Token::Word(word) if open.is_new() => match word.plain() {
                    Some("do" | "!") => {}
                    Some(word @ ("then" | "else" | "elif")) => {
                        if let Some(Group { scope: Scope::Branches(branches), .. }) = groups.last_mut() {
                            match word {
                                "then" => self.variables.first_branch(branches),
                                _ => self.variables.end_branch(branches),
                            }
                            branches.is_complete |= word == "else";
                        }
                    }
                    Some(word @ ("if" | "while" | "until" | "{")) => {
                        let own = self.variables.branches();
                        let scope = match defined.take() {
                            Some(name) => {
                                let start = (word == "{").then(|| all.len() - tokens.len());
                                self.function(name, own, start, tokens.clone())
                            }
                            None if word == "{" => Scope::Open,
                            None => {
                                if word != "if" {
                                    self.expect(tokens.clone(), true);
                                }
                                Scope::Branches(own)
                            }
                        };
                        begin(self, &mut groups, &mut source, scope);
                    }
                    Some("}" | "fi" | "done") => {
                        let is_certain = !is_in_branch && cases.is_empty();
                        self.end_of_function(&groups, all, all.len() - tokens.len(), is_certain);
                        closed = self.end_of(&mut groups).or(closed);
                    }
                    Some("esac") => cases.pop().into_iter().for_each(|(_, items)| self.variables.end(items)),
                    Some("time") if is_next(&mut tokens, &["{", "!"]) => {}
                    Some("coproc") if is_next(&mut tokens, &["{"]) => {}
                    Some("coproc") if is_named_group(tokens.clone()) => {
                        tokens.next();
                    }
                    Some("[[") => self.condition(&mut tokens),
                    Some("function") => self.named_function(&mut tokens, &mut defined),
                    Some(word @ ("for" | "select")) => {
                        let own = self.loop_over_values(word, &mut tokens);
                        begin(self, &mut groups, &mut source, Scope::Branches(own));
                    }
                    Some("case") => cases.push((true, self.case_of(&mut tokens))),
                    _ => open.words.push(word),
                },
                Token::Word(word) => open.words.push(word),
                Token::Operator(Operator::Open) => {
                    // `name() {` defines a function.
                    let is_function = matches!(tokens.peek(), Some(Token::Operator(Operator::Close)));
                    match open.words.as_slice() {
                        [name] if is_function => {
                            tokens.next();
                            defined = self.define(name);
                            open.words.clear();
                        }
                        _ => {
                            self.is_conditional = is_in_branch || is_branch(&groups, &cases);
                            self.finish(mem::take(&mut open), &source);
                            let own = self.variables.branches();
                            let scope = match defined.take() {
                                Some(name) => {
                                    let start = Some(all.len() - tokens.len());
                                    self.function(name, own, start, tokens.clone())
                                }
                                None => Scope::Subshell(own),
                            };
                            begin(self, &mut groups, &mut source, scope);
                        }
                    }
                }
                Token::Operator(operator) => {
                    let is_empty = open.words.is_empty() && open.redirections.is_empty();
                    let around = groups.last().map(|group| group.source.clone()).unwrap_or_default();
                    self.is_conditional = is_in_branch || is_branch(&groups, &cases);
                    if let Some(closed) = closed.as_ref().filter(|_| open.words.is_empty()) {
                        self.streams_of_group(&open.redirections, open.is_fed, closed);
                    }
                    let text = self.finish(mem::take(&mut open), source.or(&around));
                    // A list goes on behind a line that ends with an operator.
                    let goes_on = *operator == Operator::End
                        && matches!(before, Some(Token::Operator(Operator::And | Operator::Or | Operator::Pipe)));
                    if let Some(group) = groups.last_mut().filter(|_| !goes_on) {
                        self.operator(group, *operator);
                    }
                    if let Some(group) = groups.last_mut()
                        && let Some(text) = &text
                        && *operator != Operator::Pipe
                        && group.printed.len() + text.len() <= LONGEST_SOURCES
                    {
                        group.printed.push_str(text);
                        group.printed.push('\n');
                    }
                    match operator {
                        Operator::Pipe => {
                            source = match closed.take().filter(|_| is_empty) {
                                Some(Closed { before, printed, .. }) => {
                                    self.source(before, Some(printed).filter(|it| !it.is_empty()))
                                }
                                None => self.source(now, text),
                            };
                        }
                        Operator::Close => {
                            let is_certain = !is_in_branch && cases.is_empty();
                            self.end_of_function(&groups, all, all.len() - tokens.len(), is_certain);
                            closed = self.end_of(&mut groups).or(closed);
                            source = Source::default();
                        }
                        Operator::EndOfItem => {
                            if let Some((is_pattern, items)) = cases.last_mut() {
                                *is_pattern = true;
                                self.variables.end_branch(items);
                            }
                            source = Source::default();
                        }
                        // A line may end behind the sign of a pipe.
                        _ if is_empty => {}
                        _ => (source, closed) = (Source::default(), None),
                    }
                }
            }
        }
        let around = groups.last().map(|group| group.source.clone()).unwrap_or_default();
        self.is_conditional = is_in_branch || is_branch(&groups, &cases);
        if let Some(closed) = closed.as_ref().filter(|_| open.words.is_empty()) {
            self.streams_of_group(&open.redirections, open.is_fed, closed);
        }
        self.finish(open, source.or(&around));
        self.is_conditional = is_in_branch;
        while let Some(group) = groups.pop() {
            self.leave(group);
        }
    }

    /// Returns the source of a pipe whose commands are listed from an index on.
    fn source(&mut self, from: usize, text: Option<String>) -> Source {
        let commands = self.found.commands.get(from..).unwrap_or_default();
        let form = joined(&commands.join(" <|"));
        // What somebody types into `cat | sh` goes to the shell.
        let places = self.typed.iter().rev().filter_map(|it| match it {
            Typed::Command(place) => Some(*place),
            Typed::Call(_) => None,
        });
        let mut typed = places.take_while(|place| *place >= from).filter_map(|place| self.found.commands.get(place));
        let is_fed = !typed.any(|command| passes_on(command));
        self.sources += form.len();
        if self.sources > LONGEST_SOURCES {
            self.cut();
            return Source { form: None, text, is_fed };
        }
        Source { form: Some(form), text, is_fed }
    }

    /// Reads the commands in substitutions.
    fn outputs(&mut self, pieces: &[Piece]) {
        self.outputs_of(pieces, None);
    }

    /// Reads the commands in substitutions of a command. `printed` is what the command prints, which those in `>(…)` read.
    fn outputs_of(&mut self, pieces: &[Piece], printed: Option<&str>) {
        for piece in pieces {
            match piece {
                Piece::Output { tokens, .. } => self.subshell(tokens, &Source::unseen(self.is_fed)),
                // The elements of an array are no commands, but may contain some.
                Piece::Group { sign: '=' | '?', tokens, .. } => {
                    for token in tokens {
                        if let Token::Word(word) = token {
                            self.outputs(&word.pieces);
                        }
                    }
                }
                Piece::Group { sign, tokens, .. } => {
                    let text = printed.filter(|_| *sign == '>').map(str::to_owned);
                    self.subshell(tokens, &Source { form: None, text, is_fed: *sign == '>' || self.is_fed });
                }
                Piece::Variable { name, inner, .. } if name.starts_with(['(', '[']) => self.arithmetic(inner),
                Piece::Variable { name, inner, is_changed, .. } => {
                    let text = if inner.is_empty() { name.clone() } else { in_index(&text_for_arithmetic(inner)) };
                    if *is_changed && is_evaluated(inner) && self.variables.runs_code(&text) {
                        self.cut();
                    }
                    self.outputs(inner);
                }
                Piece::Text { .. } => {}
            }
        }
    }

    /// Reads the commands of a shell of its own, whose variables are lost.
    fn subshell(&mut self, tokens: &[Token], source: &Source) {
        let (own, bodies, is_replaced) = (self.variables.branches(), self.bodies.len(), self.is_input_replaced);
        self.tokens(tokens, source);
        self.bodies.truncate(bodies);
        self.is_input_replaced = is_replaced;
        self.variables.undo(&own);
    }
}

/// Returns true if the commands in the groups and in the items of `case` may not run.
fn is_branch(groups: &[Group], cases: &[(bool, Branches)]) -> bool {
    let is_optional =
        |group: &Group| group.list.is_some() || matches!(group.scope, Scope::Branches(_) | Scope::Function { .. });
    !cases.is_empty() || groups.iter().any(is_optional)
}

fn is_next<'a>(tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a Token>>, words: &[&str]) -> bool {
    matches!(tokens.peek(), Some(Token::Word(next)) if next.plain().is_some_and(|word| words.contains(&word)))
}

/// Returns true if a name and a group follow, as in `coproc NAME {`.
fn is_named_group<'a>(mut tokens: impl Iterator<Item = &'a Token>) -> bool {
    let is_name = matches!(tokens.next(), Some(Token::Word(word)) if word.plain().is_some());
    is_name && matches!(tokens.next(), Some(Token::Word(word)) if word.plain() == Some("{"))
}

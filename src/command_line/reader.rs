//! Reads the commands of a line from its tokens: groups, loops, pipes, variables, and the programs that run others.

mod commands;
mod evaluated;
mod groups;
mod heads;
mod script;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use self::evaluated::{in_index, is_evaluated};
use crate::command_line::expanded::{Argument, joined, text_for_arithmetic};
use crate::command_line::interactive::passes_on;
use crate::command_line::powershell::{is_cmdlet, runs_value};
use crate::command_line::tokens::{Piece, Redirection, Token, Word, split};
use crate::command_line::variables::{Value, Variables};
use crate::command_line::{CommandLine, Dialect};

/// The maximum depth of commands that run others.
const MAX_DEPTH: usize = 12;
/// The maximum number of commands of a line, with those that have no words after the substitutions.
pub(super) const MAX_COMMANDS: usize = 16 << 10;
/// The maximum number of arguments that a function is expected to drop.
const MAX_SHIFTED_ARGUMENTS: usize = 8;
/// The maximum size in bytes of what is kept of the commands that pipes read from.
const MAX_SOURCES_BYTES: usize = 1 << 20;

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
        if self.sources > MAX_SOURCES_BYTES {
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

//! Groups of commands: functions, loops, `if`, subshells and lists, and what they do to the variables that their commands
//! change.

use std::mem;
use std::rc::Rc;

use super::commands::Streams;
use super::{MAX_DEPTH, Reader, Source, Typed};
use crate::command_line::assignments::assignment;
use crate::command_line::expanded::{Argument, expand};
use crate::command_line::tokens::{Operator, Piece, Redirection, Token, Way, Word, begins_command};
use crate::command_line::variables::{Branches, has_code};

/// The maximum number of variables that a function changes.
const MAX_CHANGED_VARIABLES: usize = 256;
/// The maximum number of tokens that are searched for later changes of variables.
const MAX_SEARCHED_TOKENS: usize = 1 << 20;
/// The maximum depth of calls of functions that are read.
const MAX_CALL_DEPTH: usize = 4;

/// A group of commands: `{ …; }`, `(…)`, a loop, or `if`.
#[derive(Debug)]
pub(super) struct Group {
    /// The number of commands before it.
    pub(super) before: usize,
    /// The input of its commands.
    pub(super) source: Source,
    /// The text that its commands print, as far as their words show it.
    pub(super) printed: String,
    pub(super) scope: Scope,
    /// The variables before the current list of commands.
    pub(super) start: Branches,
    /// The commands behind the first `&&`, `||` or `|` of the list.
    pub(super) list: Option<Branches>,
    /// The last operator of the list.
    pub(super) operator: Option<Operator>,
    /// The number of commands and calls before it that get the input of the line.
    typed: usize,
    /// True if the shell had replaced its input before it.
    is_input_replaced: bool,
}

/// A group that has ended.
#[derive(Debug)]
pub(super) struct Closed {
    /// The number of commands before it.
    pub(super) before: usize,
    /// The number of commands and calls before it that get the input of the line.
    pub(super) typed: usize,
    /// The text that it prints.
    pub(super) printed: String,
}

/// The effect of the end of a group on the variables that its commands change.
#[derive(Debug)]
pub(super) enum Scope {
    /// The variables keep their values: `{ …; }`.
    Open,
    /// The variables get back their values from before the group: `(…)`.
    Subshell(Branches),
    /// The variables have one of several values: `if`, loops.
    Branches(Branches),
    /// The variables may change with each call of the function. The body of the function begins behind the values of later
    /// commands. `start` is the place of its first token.
    Function { name: String, own: Branches, body: Branches, start: Option<usize> },
}

impl Reader {
    /// Begins a group.
    pub(super) fn group(&self, source: Source, scope: Scope) -> Group {
        Group {
            before: self.found.commands.len(),
            source,
            printed: String::new(),
            scope,
            start: self.variables.branches(),
            list: None,
            operator: None,
            typed: self.typed.len(),
            is_input_replaced: self.is_input_replaced,
        }
    }

    /// Ends a group. The first group is the whole line, and ends with it.
    pub(super) fn end_of(&mut self, groups: &mut Vec<Group>) -> Option<Closed> {
        if groups.len() < 2 {
            return None;
        }
        groups.pop().map(|group| self.leave(group))
    }

    pub(super) fn leave(&mut self, mut group: Group) -> Closed {
        self.operator(&mut group, Operator::End);
        match group.scope {
            Scope::Open => {}
            Scope::Subshell(own) => {
                self.variables.undo(&own);
                self.is_input_replaced = group.is_input_replaced;
            }
            Scope::Branches(own) => self.variables.end(own),
            Scope::Function { name, own, body, .. } => {
                self.read_functions.pop();
                self.definitions.push((name.clone(), group.before..self.found.commands.len()));
                let mut changed = self.variables.undo(&body);
                changed.retain(|name, _| !is_argument(name));
                self.variables.undo(&own);
                if changed.len() > MAX_CHANGED_VARIABLES {
                    self.cut();
                } else {
                    self.functions.entry(name.clone()).or_default().extend(changed);
                }
                if !group.printed.is_empty() {
                    self.variables.set_printed(&name, group.printed.clone());
                }
            }
        }
        Closed { before: group.before, typed: group.typed, printed: group.printed }
    }

    /// Records what an operator says about the commands around it. Only the first commands of a list run in any case, and those of
    /// a pipe run in shells of their own.
    pub(super) fn operator(&mut self, group: &mut Group, operator: Operator) {
        let before = group.operator.replace(operator);
        match (group.list.take(), operator) {
            (None, Operator::And | Operator::Or) => group.list = Some(self.variables.branches()),
            (None, Operator::Pipe) => group.list = Some(mem::take(&mut group.start)),
            (None, Operator::Background) => self.variables.end(mem::take(&mut group.start)),
            (None, _) => {}
            (list @ Some(_), Operator::Pipe) => group.list = list,
            (list @ Some(_), Operator::And) if before == Some(Operator::And) => group.list = list,
            (Some(mut list), Operator::Or) if before == Some(Operator::And) && !list.has_ended() => {
                self.variables.end_first_of_two(&mut list);
                group.list = Some(list);
            }
            (Some(list), Operator::And | Operator::Or) => {
                self.variables.end(list);
                group.list = Some(self.variables.branches());
            }
            (Some(list), _) => self.variables.end(list),
        }
        if group.list.is_none() {
            (group.start, group.operator) = (self.variables.branches(), None);
        }
    }

    /// Records the name of a function whose body follows.
    pub(super) fn define(&mut self, name: &Word) -> Option<String> {
        self.found.changes_shell = true;
        let name = name.plain()?.to_owned();
        self.functions.entry(name.clone()).or_default();
        Some(name)
    }

    /// Begins the body of a function. `start` is the place of its first token, and `tokens` are the tokens from there on.
    pub(super) fn function<'a>(
        &mut self,
        name: String,
        own: Branches,
        start: Option<usize>,
        tokens: impl Iterator<Item = &'a Token>,
    ) -> Scope {
        self.expect(tokens, false);
        self.read_functions.push(name.clone());
        Scope::Function { name, own, body: self.variables.branches(), start }
    }

    /// Records the body of a function, if the last group is one. `behind` is the place behind its last token. If `is_certain` is
    /// false, the shell may not have the function.
    pub(super) fn end_of_function(&mut self, groups: &[Group], tokens: &[Token], behind: usize, is_certain: bool) {
        let Some(Group { scope: Scope::Function { name, start, .. }, .. }) = groups.last() else { return };
        let is_in_shell_of_its_own =
            matches!(tokens.get(behind), Some(Token::Operator(Operator::Pipe | Operator::Background)));
        let is_first_in_list = groups.len() == 2 && groups.first().is_some_and(|group| group.list.is_none());
        let is_certain = is_certain && is_first_in_list && !is_in_shell_of_its_own && !changes_shell(name);
        let body = start.and_then(|start| tokens.get(start..behind.checked_sub(1)?)).filter(|_| is_certain);
        self.bodies.push((name.clone(), body.map(Rc::from)));
    }

    /// Returns the body of the function that a command calls, unless the shell may run a program with this name.
    pub(super) fn body_of(&self, arguments: &[Argument]) -> Option<Rc<[Token]>> {
        let first = arguments.first().filter(|first| first.is_known() && first.content.is_none())?;
        let (_, body) = self.bodies.iter().rev().find(|(name, _)| *name == first.text)?;
        let is_recursive = self.read_functions.contains(&first.text);
        let has_room = self.read_functions.len() < MAX_CALL_DEPTH && self.depth + 2 < MAX_DEPTH && !self.is_full();
        body.clone().filter(|_| !is_recursive && has_room)
    }

    /// Reads a call of a function: its body with the arguments in their places.
    pub(super) fn call_function(&mut self, body: &[Token], arguments: &[Argument], streams: &Streams) {
        let Some((first, rest)) = arguments.split_first() else { return };
        let files: Vec<&str> =
            streams.forms.iter().map(String::as_str).filter(|form| !form.starts_with("<|")).collect();
        if !files.is_empty() {
            let (form, count) = (format!(": {}", files.join(" ")), files.len());
            self.note_words(&form, &[], count);
            self.found.commands.push(form);
        }
        self.feeds |= streams.source.text.is_some();
        self.note_call(&first.text, streams);
        if let Some(changed) = self.functions.get(&first.text) {
            changed.iter().for_each(|(name, value)| self.variables.may_be(name, value));
        }
        let has_source = streams.source.text.is_some() || streams.source.form.is_some();
        if !has_source && !uses_arguments(body) {
            return;
        }
        let own = self.variables.branches();
        let runs_arguments = mem::take(&mut self.runs_arguments);
        self.read_functions.push(first.text.clone());
        self.depth += 1;
        self.variables.set_arguments(rest, true);
        self.tokens(body, &streams.source);
        self.depth -= 1;
        self.read_functions.pop();
        self.variables.undo(&own);
        let is_unknown = mem::replace(&mut self.runs_arguments, runs_arguments);
        if is_unknown {
            self.arguments_of_function(rest, streams);
        }
    }

    /// Notes a call of a function.
    pub(super) fn note_call(&mut self, name: &str, streams: &Streams) {
        self.called_names.insert(name.to_owned());
        if !streams.source.is_fed && !self.is_input_replaced {
            self.typed.push(Typed::Call(name.to_owned()));
        }
    }

    /// Adds the values that variables get in later commands: those of other rounds of a loop, up to its end, or those before a
    /// call of a function. Returns true if the commands may end the loop.
    pub(super) fn expect<'a>(&mut self, tokens: impl Iterator<Item = &'a Token>, is_loop: bool) -> bool {
        let (mut depth, mut subshells, mut may_end) = (1_usize, 0_usize, false);
        let mut before: Option<&Token> = None;
        for token in tokens {
            self.expected += 1;
            if self.expected > MAX_SEARCHED_TOKENS {
                self.cut();
                return true;
            }
            match token {
                Token::Operator(Operator::Open) => subshells += 1,
                Token::Operator(Operator::Close) => subshells = subshells.saturating_sub(1),
                _ => {}
            }
            if let Token::Word(word) = token {
                match word.plain().filter(|_| begins_command(before)) {
                    Some("for" | "select" | "while" | "until") => depth += 1,
                    Some("done") => depth = depth.saturating_sub(1),
                    Some("break" | "continue" | "return" | "exit") => may_end = true,
                    Some("cd" | "pushd" | "popd") if subshells == 0 => self.variables.leave_folder(),
                    Some("shift") if is_loop => self.variables.forget_arguments(),
                    _ => {}
                }
                if is_loop && depth == 0 {
                    return may_end;
                }
                if let Some(assignment) = assignment(word, &self.variables) {
                    self.variables.may_assign(&assignment);
                }
            }
            before = Some(token);
        }
        may_end
    }

    /// Records what the redirections of a group read and write. If `is_fed` is true, one of them is from another stream.
    pub(super) fn streams_of_group(&mut self, redirections: &[&Redirection], is_fed: bool, closed: &Closed) {
        let printed = closed.printed.as_str();
        let feeds = |redirection: &&Redirection| {
            let file = expand(&redirection.target, &self.variables);
            feeds(redirection, file.first().map_or("", |word| &word.text)) == Some(true)
        };
        if is_fed || redirections.iter().any(feeds) {
            self.typed.truncate(closed.typed);
        }
        for redirection in redirections {
            let files = expand(&redirection.target, &self.variables);
            match redirection.way {
                Way::Text => {
                    self.feeds = true;
                    self.reads_code |= files.iter().any(|word| has_code(&word.text));
                }
                Way::From => self.feeds |= files.iter().any(|file| self.variables.file(&file.text).is_some()),
                Way::To | Way::Append => {
                    let is_added = self.is_conditional || redirection.way == Way::Append;
                    files.iter().for_each(|file| self.variables.write_printed(&file.text, printed, is_added));
                }
            }
        }
    }
}

/// Returns whether a redirection to or from this file replaces the input by another one than that of the line, or `None` if it
/// leaves the input as it is.
pub(super) fn feeds(redirection: &Redirection, file: &str) -> Option<bool> {
    let is_input = matches!(redirection.way, Way::From | Way::Text) && !redirection.is_of_other;
    match file {
        "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" if redirection.way == Way::From => None,
        "/dev/tty" if redirection.way == Way::From => is_input.then_some(false),
        _ => is_input.then_some(true),
    }
}

/// Returns true if a name is that of arguments of a function or a script: `@`, `1`.
fn is_argument(name: &str) -> bool {
    name.starts_with(['@', '*']) || name.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true if commands use the arguments of their function.
fn uses_arguments(tokens: &[Token]) -> bool {
    let uses = |pieces: &[Piece]| pieces.iter().any(has_argument);
    tokens.iter().any(|token| match token {
        Token::Word(word) => word.plain() == Some("shift") || uses(&word.pieces),
        Token::Redirection(redirection) => uses(&redirection.target.pieces),
        Token::Arithmetic(pieces) => uses(pieces),
        Token::Operator(_) | Token::Stream { .. } => false,
    })
}

fn has_argument(piece: &Piece) -> bool {
    match piece {
        // A text that the function evaluates: `eval 'a "$1"'`.
        Piece::Text { text, .. } => text.contains('$'),
        Piece::Variable { name, inner, .. } => is_argument(name) || inner.iter().any(has_argument),
        Piece::Output { tokens, .. } | Piece::Group { tokens, .. } => uses_arguments(tokens),
    }
}

/// Returns true if a program is a builtin that changes the state of the shell. A function with its name may call it.
fn changes_shell(name: &str) -> bool {
    const BUILTINS: [&str; 24] = [
        ".", "alias", "builtin", "cd", "command", "declare", "eval", "exec", "exit", "export", "local", "popd",
        "pushd", "read", "readonly", "return", "set", "shift", "source", "test", "trap", "typeset", "unalias", "unset",
    ];
    BUILTINS.contains(&name)
}

//! Reads the tokens of a script: which of them begin, join and end commands, groups and the items of `case`.

use std::iter::Peekable;
use std::mem;
use std::slice;

use super::groups::{Closed, Group, Scope};
use super::{MAX_SOURCES_BYTES, Open, Reader, Source};
use crate::command_line::tokens::{Operator, Token, Word};
use crate::command_line::variables::Branches;

/// The maximum depth of groups.
const MAX_GROUP_DEPTH: usize = 64;

/// The state of reading the tokens of a script.
struct Script<'a> {
    all: &'a [Token],
    /// The tokens that were not read yet.
    tokens: Peekable<slice::Iter<'a, Token>>,
    /// The command that is being read.
    open: Open<'a>,
    /// The input of this command, if it is behind a pipe.
    source: Source,
    cases: Vec<OpenCase>,
    /// The open groups. The first is the script itself.
    groups: Vec<Group>,
    /// The group that was closed last.
    closed: Option<Closed>,
    /// The function whose body follows.
    defined: Option<String>,
    /// True if the script may not run, because a branch or a function contains it.
    is_in_branch: bool,
}

/// A `case` that is being read.
struct OpenCase {
    /// True if the pattern of an item comes next.
    is_pattern: bool,
    items: Branches,
}

impl Script<'_> {
    /// Returns the place of the next token.
    fn place(&self) -> usize {
        self.all.len() - self.tokens.len()
    }

    /// Returns true if the commands at this place may not run.
    fn may_not_run(&self) -> bool {
        let is_optional =
            |group: &Group| group.list.is_some() || matches!(group.scope, Scope::Branches(_) | Scope::Function { .. });
        self.is_in_branch || !self.cases.is_empty() || self.groups.iter().any(is_optional)
    }
}

impl Reader {
    /// Reads the tokens of a script. `around` is the input of its commands.
    pub(super) fn tokens(&mut self, all: &[Token], around: &Source) {
        let mut script = Script {
            all,
            tokens: all.iter().peekable(),
            open: Open::default(),
            source: Source::default(),
            cases: Vec::new(),
            groups: vec![self.group(around.clone(), Scope::Open)],
            closed: None,
            defined: None,
            is_in_branch: self.is_conditional,
        };
        let mut before: Option<&Token> = None;
        while let Some(token) = script.tokens.next() {
            if script.groups.len() > MAX_GROUP_DEPTH {
                return self.cut();
            }
            self.token(&mut script, token, before);
            before = Some(token);
        }
        self.finish_open(&mut script);
        self.is_conditional = script.is_in_branch;
        while let Some(group) = script.groups.pop() {
            self.leave(group);
        }
    }

    /// Reads a token. `before` is the token before it.
    fn token<'a>(&mut self, script: &mut Script<'a>, token: &'a Token, before: Option<&Token>) {
        if script.cases.last().is_some_and(|case| case.is_pattern) {
            return self.token_of_pattern(script, token);
        }
        match token {
            Token::Redirection(redirection) => script.open.redirections.push(redirection),
            Token::Stream { is_input, feeds } => {
                script.open.has_stream = true;
                script.open.reads_stream |= is_input;
                script.open.is_fed |= feeds;
            }
            Token::Arithmetic(pieces) => {
                self.arithmetic(pieces);
                self.possible_in_arithmetic(pieces);
            }
            Token::Word(word) if script.open.is_new() => self.first_word(script, word),
            Token::Word(word) => script.open.words.push(word),
            Token::Operator(Operator::Open) => self.parenthesis(script),
            Token::Operator(operator) => self.end_of_command(script, *operator, before),
        }
    }

    /// Reads a token in the pattern of an item of `case`.
    fn token_of_pattern(&mut self, script: &mut Script<'_>, token: &Token) {
        match token {
            Token::Word(word) => {
                self.outputs(&word.pieces);
                if word.plain() == Some("esac") {
                    script.cases.pop().into_iter().for_each(|case| self.variables.join(case.items));
                } else if let Some(case) = script.cases.last_mut() {
                    case.items.is_complete |= word.plain() == Some("*");
                }
            }
            Token::Operator(Operator::Close) => {
                if let Some(case) = script.cases.last_mut() {
                    case.is_pattern = false;
                }
            }
            _ => {}
        }
    }

    /// Reads the first word of a command, which may be one of the shell's grammar.
    fn first_word<'a>(&mut self, script: &mut Script<'a>, word: &'a Word) {
        match word.plain() {
            Some("do" | "!") => {}
            Some(keyword @ ("then" | "else" | "elif")) => {
                if let Some(Group { scope: Scope::Branches(branches), .. }) = script.groups.last_mut() {
                    match keyword {
                        "then" => self.variables.first_branch(branches),
                        _ => self.variables.end_branch(branches),
                    }
                    branches.is_complete |= keyword == "else";
                }
            }
            Some(keyword @ ("if" | "while" | "until" | "{")) => self.begin_compound(script, keyword),
            Some("}" | "fi" | "done") => self.end_group(script),
            Some("esac") => script.cases.pop().into_iter().for_each(|case| self.variables.end(case.items)),
            Some("time") if is_next(&mut script.tokens, &["{", "!"]) => {}
            Some("coproc") if is_next(&mut script.tokens, &["{"]) => {}
            Some("coproc") if is_named_group(script.tokens.clone()) => {
                script.tokens.next();
            }
            Some("[[") => self.condition(&mut script.tokens),
            Some("function") => self.named_function(&mut script.tokens, &mut script.defined),
            Some(keyword @ ("for" | "select")) => {
                let own = self.loop_over_values(keyword, &mut script.tokens);
                self.begin_group(script, Scope::Branches(own));
            }
            Some("case") => {
                let items = self.case_of(&mut script.tokens);
                script.cases.push(OpenCase { is_pattern: true, items });
            }
            _ => script.open.words.push(word),
        }
    }

    /// Begins `if`, a loop or `{`, which may be the body of a function.
    fn begin_compound(&mut self, script: &mut Script<'_>, keyword: &str) {
        let own = self.variables.branches();
        let scope = match script.defined.take() {
            Some(name) => {
                let start = (keyword == "{").then(|| script.place());
                self.function(name, own, start, script.tokens.clone())
            }
            None if keyword == "{" => Scope::Open,
            None => {
                if keyword != "if" {
                    self.expect(script.tokens.clone(), true);
                }
                Scope::Branches(own)
            }
        };
        self.begin_group(script, scope);
    }

    /// Reads `(`, which begins a subshell or the body of a function, or is behind the name of a function.
    fn parenthesis(&mut self, script: &mut Script<'_>) {
        let is_function = matches!(script.tokens.peek(), Some(Token::Operator(Operator::Close)));
        match script.open.words.as_slice() {
            // `name() {` defines a function.
            [name] if is_function => {
                script.defined = self.define(name);
                script.tokens.next();
                script.open.words.clear();
            }
            _ => {
                self.is_conditional = script.may_not_run();
                self.finish(mem::take(&mut script.open), &script.source);
                let own = self.variables.branches();
                let scope = match script.defined.take() {
                    Some(name) => {
                        let start = Some(script.place());
                        self.function(name, own, start, script.tokens.clone())
                    }
                    None => Scope::Subshell(own),
                };
                self.begin_group(script, scope);
            }
        }
    }

    /// Begins a group, whose input is that of the command before which it is.
    fn begin_group(&self, script: &mut Script<'_>, scope: Scope) {
        let own = mem::take(&mut script.source);
        let source = match script.groups.last() {
            Some(around) => own.or(&around.source).clone(),
            None => own,
        };
        script.groups.push(self.group(source, scope));
    }

    fn end_group(&mut self, script: &mut Script<'_>) {
        let is_certain = !script.is_in_branch && script.cases.is_empty();
        self.end_of_function(&script.groups, script.all, script.place(), is_certain);
        script.closed = self.end_of(&mut script.groups).or(script.closed.take());
    }

    /// Ends a command at an operator. `before` is the token before the operator.
    fn end_of_command(&mut self, script: &mut Script<'_>, operator: Operator, before: Option<&Token>) {
        let first = self.found.commands.len();
        let is_empty = script.open.words.is_empty() && script.open.redirections.is_empty();
        let printed = self.finish_open(script);
        // A list goes on behind a line that ends with an operator.
        let goes_on = operator == Operator::End
            && matches!(before, Some(Token::Operator(Operator::And | Operator::Or | Operator::Pipe)));
        if let Some(group) = script.groups.last_mut().filter(|_| !goes_on) {
            self.operator(group, operator);
        }
        if let Some(group) = script.groups.last_mut()
            && let Some(text) = &printed
            && operator != Operator::Pipe
            && group.printed.len() + text.len() <= MAX_SOURCES_BYTES
        {
            group.printed.push_str(text);
            group.printed.push('\n');
        }
        match operator {
            Operator::Pipe => {
                script.source = match script.closed.take().filter(|_| is_empty) {
                    Some(Closed { before, printed, .. }) => {
                        self.source(before, Some(printed).filter(|it| !it.is_empty()))
                    }
                    None => self.source(first, printed),
                };
            }
            Operator::Close => {
                self.end_group(script);
                script.source = Source::default();
            }
            Operator::EndOfItem => {
                if let Some(case) = script.cases.last_mut() {
                    case.is_pattern = true;
                    self.variables.end_branch(&mut case.items);
                }
                script.source = Source::default();
            }
            // A line may end behind the sign of a pipe.
            _ if is_empty => {}
            _ => (script.source, script.closed) = (Source::default(), None),
        }
    }

    /// Reads the command that was collected, and returns what it prints, if its words show it.
    fn finish_open(&mut self, script: &mut Script<'_>) -> Option<String> {
        let around = script.groups.last().map(|group| group.source.clone()).unwrap_or_default();
        self.is_conditional = script.may_not_run();
        if let Some(closed) = script.closed.as_ref().filter(|_| script.open.words.is_empty()) {
            self.streams_of_group(&script.open.redirections, script.open.is_fed, closed);
        }
        self.finish(mem::take(&mut script.open), script.source.or(&around))
    }
}

fn is_next<'a>(tokens: &mut Peekable<impl Iterator<Item = &'a Token>>, words: &[&str]) -> bool {
    matches!(tokens.peek(), Some(Token::Word(next)) if next.plain().is_some_and(|word| words.contains(&word)))
}

/// Returns true if a name and a group follow, as in `coproc NAME {`.
fn is_named_group<'a>(mut tokens: impl Iterator<Item = &'a Token>) -> bool {
    let is_name = matches!(tokens.next(), Some(Token::Word(word)) if word.plain().is_some());
    is_name && matches!(tokens.next(), Some(Token::Word(word)) if word.plain() == Some("{"))
}

//! Groups of commands: functions, loops, `if`, subshells and lists, and what they do to the variables that their commands
//! change.

use std::mem;

use super::{Reader, Source};
use crate::command_line::assignments::assignment;
use crate::command_line::expanded::expand;
use crate::command_line::tokens::{Operator, Redirection, Token, Way, Word, begins_command};
use crate::command_line::variables::{Branches, has_code};

/// The maximum number of variables that a function changes.
const MOST_CHANGED: usize = 256;
/// The maximum number of tokens that are searched for later changes of variables.
const MOST_EXPECTED: usize = 1 << 20;

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
}

/// The effect of the end of a group on the variables that its commands change.
#[derive(Debug)]
pub(super) enum Scope {
    /// They keep their values: `{ …; }`.
    Open,
    /// They get their values from before the group: `(…)`.
    Subshell(Branches),
    /// They have one of several values: `if`, loops.
    Branches(Branches),
    /// They may change with each call of the function. Its body begins behind the values of later commands.
    Function { name: String, own: Branches, body: Branches },
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
        }
    }

    /// Ends a group, and returns the number of commands before it, and what it prints. The first group is the whole line, and
    /// ends with it.
    pub(super) fn end_of(&mut self, groups: &mut Vec<Group>) -> Option<(usize, String)> {
        if groups.len() < 2 {
            return None;
        }
        groups.pop().map(|group| self.leave(group))
    }

    pub(super) fn leave(&mut self, mut group: Group) -> (usize, String) {
        self.operator(&mut group, Operator::End);
        match group.scope {
            Scope::Open => {}
            Scope::Subshell(own) => {
                self.variables.undo(&own);
            }
            Scope::Branches(own) => self.variables.end(own),
            Scope::Function { name, own, body } => {
                let changed = self.variables.undo(&body);
                self.variables.undo(&own);
                if changed.len() > MOST_CHANGED {
                    self.cut();
                } else {
                    self.functions.entry(name.clone()).or_default().extend(changed);
                }
                if !group.printed.is_empty() {
                    self.variables.set_printed(&name, group.printed.clone());
                }
            }
        }
        (group.before, group.printed)
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
        let name = name.plain()?.to_owned();
        self.functions.entry(name.clone()).or_default();
        Some(name)
    }

    /// Adds the values that variables get in later commands: those of other rounds of a loop, up to its end, or those before a
    /// call of a function. Returns true if the commands may end the loop.
    pub(super) fn expect<'a>(&mut self, tokens: impl Iterator<Item = &'a Token>, is_loop: bool) -> bool {
        let (mut depth, mut subshells, mut may_end) = (1_usize, 0_usize, false);
        let mut before: Option<&Token> = None;
        for token in tokens {
            self.expected += 1;
            if self.expected > MOST_EXPECTED {
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

    /// Records what the redirections of a group read and write.
    pub(super) fn streams_of_group(&mut self, redirections: &[&Redirection], printed: &str) {
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

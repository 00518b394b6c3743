//! Reads the commands of a line from its tokens: groups, loops, pipes, variables, and the programs that run others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;

use super::code;
use super::expanded::{
    Argument, Branches, MOST_CHOSEN, Program, Value, Variables, Varying, assignment, assignment_of_all, expand,
    has_code, joined, text_for_arithmetic,
};
use super::powershell::{is_cmdlet, is_comparison, is_operator, runs_value};
use super::runners::{self, Inner};
use super::tokens::{Operator, Piece, Redirection, Token, Way, Word, begins_command, is_name, split};
use super::{Choice, CommandLine, Dialect, is_shell};

/// The maximum depth of commands that run others.
const DEEPEST: usize = 12;
/// The maximum number of commands of a line, with those that have no words after the substitutions.
pub(super) const MOST: usize = 16 << 10;
/// The maximum size in bytes of the commands of a line.
const LONGEST_COMMANDS: usize = 4 << 20;
/// The maximum size in bytes of the texts of files that commands read or write.
const LONGEST_CONTENTS: usize = 16 << 20;
/// The maximum number of arguments that a function is expected to drop.
const MOST_SHIFTED: usize = 8;
/// The maximum number of tokens that are searched for later changes of variables.
const MOST_EXPECTED: usize = 1 << 20;
/// The maximum number of variables that a function changes.
const MOST_CHANGED: usize = 256;
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
    reader.found
}

/// The input of a command: the other end of a pipe, or a text.
#[derive(Debug, Clone, Default)]
struct Source {
    /// The commands at the other end, in the normal form.
    form: Option<String>,
    /// The text, if the line shows it.
    text: Option<String>,
}

impl Source {
    /// Returns this source, or the one of the group around it.
    fn or<'a>(&'a self, around: &'a Self) -> &'a Self {
        if self.form.is_some() || self.text.is_some() { self } else { around }
    }
}

/// The words and redirections of a command that is being read.
#[derive(Debug, Default)]
struct Open<'a> {
    words: Vec<&'a Word>,
    redirections: Vec<&'a Redirection>,
    /// True if it has a redirection between streams.
    has_stream: bool,
    /// True if it reads from another stream, as in `sh <&3`.
    reads_stream: bool,
}

impl Open<'_> {
    /// Returns true if nothing of the command was read. Only then, a word such as `case` is one of the shell's grammar.
    fn is_new(&self) -> bool {
        self.words.is_empty() && self.redirections.is_empty() && !self.has_stream
    }
}

/// A group of commands: `{ …; }`, `(…)`, a loop, or `if`.
#[derive(Debug)]
struct Group {
    /// The number of commands before it.
    before: usize,
    /// The input of its commands.
    source: Source,
    /// The text that its commands print, as far as their words show it.
    printed: String,
    scope: Scope,
    /// The variables before the current list of commands.
    start: Branches,
    /// The commands behind the first `&&`, `||` or `|` of the list.
    list: Option<Branches>,
    /// The last operator of the list.
    operator: Option<Operator>,
}

/// The effect of the end of a group on the variables that its commands change.
#[derive(Debug)]
enum Scope {
    /// They keep their values: `{ …; }`.
    Open,
    /// They get their values from before the group: `(…)`.
    Subshell(Branches),
    /// They have one of several values: `if`, loops.
    Branches(Branches),
    /// They may change with each call of the function. Its body begins behind the values of later commands.
    Function { name: String, own: Branches, body: Branches },
}

#[derive(Debug, Default)]
struct Reader {
    dialect: Dialect,
    found: CommandLine,
    variables: Variables,
    /// The functions that the line defines, with the variables that they change.
    functions: HashMap<String, BTreeMap<String, Value>>,
    /// True if a function runs the words that it is called with.
    runs_arguments: bool,
    /// The numbers of the words that a function evaluates as a text, as in `eval "$1"`; 0 for all of them.
    evaluated: BTreeSet<usize>,
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
    /// True if a part of the line was not read.
    is_cut: bool,
    /// The number of commands that were read, with those that have no words.
    read: usize,
    /// The size of the commands.
    size: usize,
    /// True if a program that is a variable cannot be a value of PowerShell.
    is_posix: bool,
}

impl Reader {
    fn cut(&mut self) {
        (self.is_cut, self.found.has_unknown) = (true, true);
    }

    /// Reads a text that a shell runs. `is_given` is true if it is the argument of a command such as `eval`: if all of it is the
    /// output of a command, it is like a script file.
    fn script(&mut self, text: &str, source: Source, is_given: bool) {
        if self.depth >= DEEPEST {
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

    fn tokens(&mut self, tokens: &[Token], around: &Source) {
        let mut tokens = tokens.iter().peekable();
        let mut open = Open::default();
        let mut source = Source::default();
        // For each open `case`, whether the pattern of an item comes next, and its items.
        let mut cases: Vec<(bool, Branches)> = Vec::new();
        let mut groups: Vec<Group> = vec![self.group(around.clone(), Scope::Open)];
        // The number of commands before the group that was closed last, and what it prints.
        let mut closed: Option<(usize, String)> = None;
        // The function whose body follows.
        let mut defined: Option<String> = None;
        let mut last: Option<&Token> = None;
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
                Token::Stream { is_input } => {
                    open.has_stream = true;
                    open.reads_stream |= is_input;
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
                                self.expect(tokens.clone(), false);
                                Scope::Function { name, own, body: self.variables.branches() }
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
                    Some("}" | "fi" | "done") => closed = self.end_of(&mut groups).or(closed),
                    Some("esac") => cases.pop().into_iter().for_each(|(_, items)| self.variables.end(items)),
                    Some("time") if is_next(&mut tokens, &["{", "!"]) => {}
                    Some("coproc") if is_next(&mut tokens, &["{"]) => {}
                    Some("coproc") if is_named_group(tokens.clone()) => {
                        tokens.next();
                    }
                    Some("[[") => self.condition(&mut tokens),
                    Some("function") => {
                        if let Some(Token::Word(name)) = tokens.next() {
                            defined = self.define(name);
                        }
                        for bracket in [Operator::Open, Operator::Close] {
                            tokens.next_if(|token| **token == Token::Operator(bracket));
                        }
                    }
                    Some(word @ ("for" | "select")) => {
                        let mut words: Vec<&Word> = Vec::new();
                        while let Some(Token::Word(word)) = tokens.peek() {
                            self.outputs(&word.pieces);
                            words.push(word);
                            tokens.next();
                        }
                        if let Some(Token::Arithmetic(pieces)) = tokens.peek() {
                            self.arithmetic(pieces);
                            tokens.next();
                        }
                        let values = words.get(2..).unwrap_or_default();
                        let values = values.iter().flat_map(|word| expand(word, &self.variables)).collect::<Vec<_>>();
                        let name = words.first().and_then(|word| word.plain());
                        if name.is_some_and(|name| !self.variables.set_among(name, &values)) {
                            self.cut();
                        }
                        let mut own = self.variables.branches();
                        let may_end = self.expect(tokens.clone(), true);
                        own.is_complete = word == "for" && !may_end && values.iter().any(Argument::is_known);
                        begin(self, &mut groups, &mut source, Scope::Branches(own));
                    }
                    Some("case") => {
                        while let Some(Token::Word(word)) = tokens.peek() {
                            self.outputs(&word.pieces);
                            tokens.next();
                            if word.plain() == Some("in") {
                                break;
                            }
                        }
                        cases.push((true, self.variables.branches()));
                    }
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
                            self.finish(mem::take(&mut open), &source);
                            let own = self.variables.branches();
                            let scope = match defined.take() {
                                Some(name) => {
                                    self.expect(tokens.clone(), false);
                                    Scope::Function { name, own, body: self.variables.branches() }
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
                    if let Some((_, printed)) = closed.as_ref().filter(|_| open.words.is_empty()) {
                        self.streams_of_group(&open.redirections, printed);
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
                                Some((from, printed)) => self.source(from, Some(printed).filter(|it| !it.is_empty())),
                                None => self.source(now, text),
                            };
                        }
                        Operator::Close => {
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
        if let Some((_, printed)) = closed.as_ref().filter(|_| open.words.is_empty()) {
            self.streams_of_group(&open.redirections, printed);
        }
        self.finish(open, source.or(&around));
        while let Some(group) = groups.pop() {
            self.leave(group);
        }
    }

    /// Begins a group.
    fn group(&self, source: Source, scope: Scope) -> Group {
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
    fn end_of(&mut self, groups: &mut Vec<Group>) -> Option<(usize, String)> {
        if groups.len() < 2 {
            return None;
        }
        groups.pop().map(|group| self.leave(group))
    }

    fn leave(&mut self, mut group: Group) -> (usize, String) {
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
    fn operator(&mut self, group: &mut Group, operator: Operator) {
        let before = mem::replace(&mut group.operator, Some(operator));
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
    fn define(&mut self, name: &Word) -> Option<String> {
        let name = name.plain()?.to_owned();
        self.functions.entry(name.clone()).or_default();
        Some(name)
    }

    /// Adds the values that variables get in later commands: those of other rounds of a loop, up to its end, or those before a
    /// call of a function. Returns true if the commands may end the loop.
    fn expect<'a>(&mut self, tokens: impl Iterator<Item = &'a Token>, is_loop: bool) -> bool {
        let (mut depth, mut may_end) = (1_usize, false);
        let mut before: Option<&Token> = None;
        for token in tokens {
            self.expected += 1;
            if self.expected > MOST_EXPECTED {
                self.cut();
                return true;
            }
            if let Token::Word(word) = token {
                match word.plain().filter(|_| begins_command(before)) {
                    Some("for" | "select" | "while" | "until") => depth += 1,
                    Some("done") => depth = depth.saturating_sub(1),
                    Some("break" | "continue" | "return" | "exit") => may_end = true,
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
    fn streams_of_group(&mut self, redirections: &[&Redirection], printed: &str) {
        for redirection in redirections {
            let files = expand(&redirection.target, &self.variables);
            match redirection.way {
                Way::Text => {
                    self.feeds = true;
                    self.reads_code |= files.iter().any(|word| has_code(&word.text));
                }
                Way::From => self.feeds |= files.iter().any(|file| self.variables.file(&file.text).is_some()),
                Way::To | Way::Append => {
                    files.iter().for_each(|file| self.variables.write_printed(&file.text, printed));
                }
            }
        }
    }

    /// Reads `[[ … ]]` from behind its begin.
    fn condition<'a>(&mut self, tokens: &mut impl Iterator<Item = &'a Token>) {
        let mut texts: Vec<String> = Vec::new();
        // The words behind `||`, which a shell without `[[` runs as a command.
        let mut alternative: Option<Vec<Argument>> = None;
        for token in tokens {
            match token {
                Token::Word(word) if word.plain() == Some("]]") => break,
                Token::Word(word) => {
                    self.outputs(&word.pieces);
                    texts.push(text_for_arithmetic(&word.pieces));
                    if let Some(words) = alternative.as_mut().filter(|_| word.plain() != Some("!")) {
                        words.extend(expand(word, &self.variables));
                    }
                }
                Token::Redirection(redirection) => self.outputs(&redirection.target.pieces),
                Token::Arithmetic(pieces) => self.arithmetic(pieces),
                Token::Operator(operator) => {
                    let is_next = *operator == Operator::Or || *operator == Operator::Open && alternative.is_some();
                    let before = mem::replace(&mut alternative, is_next.then(Vec::new));
                    self.possible(&before.unwrap_or_default());
                }
                Token::Stream { .. } => {}
            }
        }
        self.possible(&alternative.unwrap_or_default());
        self.test(&texts);
    }

    /// Reads the words of a test that the shell evaluates: numbers that it compares, and names of variables (`-v`).
    fn test(&mut self, words: &[String]) {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let is_comparison = |at: usize| matches!(word(at), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
        let is_evaluated = |at: usize| {
            let before = at.checked_sub(1);
            let is_behind = before.is_some_and(|at| is_comparison(at) || matches!(word(at), "-v" | "-R"));
            is_behind || is_comparison(at + 1)
        };
        if (0..words.len()).any(|at| is_evaluated(at) && self.variables.runs_code(word(at))) {
            self.cut();
        }
    }

    /// Adds a command that a shell without `[[` runs. No program has a name that begins with `-`, as in `-f a`.
    fn possible(&mut self, words: &[Argument]) {
        let Some((first, rest)) = words.split_first().filter(|(first, _)| !first.text.starts_with('-')) else { return };
        if self.found.possible.len() >= MOST {
            return self.cut();
        }
        let name = match first.program() {
            Program::Named(name) => joined(name),
            Program::Output | Program::Unknown => first.form(),
        };
        let forms: Vec<String> = [name].into_iter().chain(rest.iter().map(Argument::form)).collect();
        self.found.possible.push(forms.join(" "));
    }

    /// Reads the substitutions in an arithmetic expression.
    fn arithmetic(&mut self, pieces: &[Piece]) {
        if self.variables.runs_code(&text_for_arithmetic(pieces)) {
            self.cut();
        }
        self.outputs(pieces);
    }

    /// Adds the commands that a shell without `((…))` runs for it.
    fn possible_in_arithmetic(&mut self, pieces: &[Piece]) {
        let texts = pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => text.as_str(),
            _ => "$",
        });
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        for part in texts.collect::<String>().split([';', '\n', '|', '&', '(', ')']) {
            let words: Vec<Argument> = part.split_whitespace().map(Argument::of).collect();
            let name = words.first().map_or("", |first| first.text.as_str());
            let is_number = name.starts_with(|c: char| c.is_ascii_digit());
            // Names of one letter are those of variables.
            if name.len() > 1 && !is_number && name.chars().all(is_in_name) {
                self.possible(&words);
            }
        }
    }

    /// Returns the source of a pipe whose commands are listed from an index on.
    fn source(&mut self, from: usize, text: Option<String>) -> Source {
        let commands = self.found.commands.get(from..).unwrap_or_default();
        let form = joined(&commands.join(" <|"));
        self.sources += form.len();
        if self.sources > LONGEST_SOURCES {
            self.cut();
            return Source { form: None, text };
        }
        Source { form: Some(form), text }
    }

    /// Reads the commands in substitutions.
    fn outputs(&mut self, pieces: &[Piece]) {
        self.outputs_of(pieces, None);
    }

    /// Reads the commands in substitutions of a command. `printed` is what the command prints, which those in `>(…)` read.
    fn outputs_of(&mut self, pieces: &[Piece], printed: Option<&str>) {
        for piece in pieces {
            match piece {
                Piece::Output { tokens, .. } => self.subshell(tokens, &Source::default()),
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
                    self.subshell(tokens, &Source { form: None, text });
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
        let own = self.variables.branches();
        self.tokens(tokens, source);
        self.variables.undo(&own);
    }

    /// Reads a command with its words, and returns what it prints, if its words show it.
    fn finish(&mut self, open: Open<'_>, source: &Source) -> Option<String> {
        let Open { words, redirections, reads_stream, .. } = open;
        if words.is_empty() && redirections.is_empty() {
            return None;
        }
        let mut streams = Streams { source: source.clone(), ..Streams::default() };
        if reads_stream {
            streams.source = Source { form: None, text: Some(runners::NOT_SHOWN.to_owned()) };
        }
        let targets = || redirections.iter().map(|redirection| &redirection.target);
        // Bash runs the commands of this file before those of a script.
        let mut begins = words.iter().filter_map(|word| word.pieces.first());
        if begins.any(|piece| matches!(piece, Piece::Text { text, .. } if text.starts_with("BASH_ENV="))) {
            self.cut();
        }
        for redirection in &redirections {
            if !is_fed(&redirection.target) {
                self.outputs(&redirection.target.pieces);
            }
            let target = expand(&redirection.target, &self.variables);
            let text = target.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let sign = match redirection.way {
                Way::From => "<",
                Way::To => ">",
                Way::Append => ">>",
                Way::Text => "<<<",
            };
            // A file with one of several names is shown with all of them.
            let mut texts = vec![text.clone()];
            let varying = self.variables.varying(&[&redirection.target], redirection.way != Way::Text);
            if let Some(varying) = varying.filter(|varying| !varying.is_loop) {
                texts = varying
                    .values
                    .iter()
                    .flat_map(|value| {
                        self.variables.choose(&varying.name, value.clone());
                        expand(&redirection.target, &self.variables).into_iter().map(|word| word.text)
                    })
                    .collect();
                self.variables.restore(varying);
            }
            streams.forms.extend(texts.iter().map(|text| format!("{sign}{}", joined(text))));
            match redirection.way {
                Way::Text => streams.source = Source { form: None, text: Some(text) },
                Way::From => {
                    let file = self.text_of_file(&text);
                    streams.reads_file = file.is_some();
                    let text = target.into_iter().next().and_then(|word| word.content).or(file);
                    streams.source = Source { form: None, text };
                }
                Way::To | Way::Append => streams.written = Some(text),
            }
        }
        streams.forms.extend(streams.source.form.iter().map(|form| format!("<|{form}")));
        let printed = if words.iter().copied().chain(targets()).any(is_fed) {
            let words: Vec<Argument> = words.iter().flat_map(|word| expand(word, &self.variables)).collect();
            runners::printed(&words, streams.source.text.as_deref())
        } else {
            None
        };
        for word in words.iter().copied().chain(targets().filter(|target| is_fed(target))) {
            self.outputs_of(&word.pieces, printed.as_deref());
        }
        let assigned: Vec<_> = words.iter().map_while(|word| assignment_of_all(word, &mut self.variables)).collect();
        for word in words.iter().take(assigned.len()) {
            self.target(&text_for_arithmetic(&word.pieces));
        }
        let named = words.get(assigned.len()..).unwrap_or_default();
        self.found.others.extend(assigned.iter().map(|assignment| assignment.form.clone()));
        if named.is_empty() {
            if !streams.forms.is_empty() {
                self.found.commands.push(format!(": {}", streams.forms.join(" ")));
            }
            assigned.into_iter().for_each(|assignment| self.variables.assign(assignment));
            return None;
        }
        if named.first().and_then(|word| word.plain()).is_some_and(is_declaration) {
            let is_hidden = named.iter().filter_map(|word| word.plain()).any(hides_value);
            for word in named {
                match (assignment_of_all(word, &mut self.variables), word.plain()) {
                    (Some(assignment), _) => {
                        self.found.others.push(assignment.form.clone());
                        if is_hidden {
                            self.variables.hide(&assignment.name);
                        }
                        self.variables.assign(assignment);
                    }
                    (None, Some(name)) if is_hidden && is_name(name) => self.variables.hide(name),
                    _ => {}
                }
            }
        }
        self.each(named, &streams)
    }

    /// Returns the text of a file that the line writes.
    fn text_of_file(&mut self, path: &str) -> Option<String> {
        let text = self.variables.file(path)?;
        if self.contents.saturating_add(text.len()) > LONGEST_CONTENTS {
            self.cut();
            return None;
        }
        self.contents += text.len();
        Some(text.to_owned())
    }

    /// Reads a command once for each value of its variables.
    fn each(&mut self, words: &[&Word], streams: &Streams) -> Option<String> {
        let has_room = self.depth < DEEPEST && !self.is_full();
        match self.variables.varying(words, has_room && self.chosen < MOST_CHOSEN) {
            Some(varying) if has_room => return self.each_value(varying, words, streams),
            // No loop is read further.
            Some(_) => self.read = MOST,
            None => {}
        }
        self.read += 1;
        if self.is_full() {
            self.cut();
        }
        let mut arguments: Vec<Argument> = words.iter().flat_map(|word| expand(word, &self.variables)).collect();
        for argument in arguments.iter_mut().filter(|argument| argument.content.is_none()) {
            argument.content = self.text_of_file(&argument.text);
        }
        words.iter().for_each(|word| self.variables.set_defaults(word));
        // No program has such a name, so the variable before it has another value.
        if self.chosen > 0 && arguments.first().is_some_and(|word| word.text.starts_with('-')) {
            self.is_impossible = true;
            return None;
        }
        // `$x = Get-Content a` and `$x -eq 1` in PowerShell.
        let is_value = |word: &Argument| self.may_be_value(word) && word.program() == Program::Unknown;
        let arguments = match arguments.as_slice() {
            [first, sign, rest @ ..] if is_value(first) && matches!(sign.text.as_str(), "=" | "+=") => rest,
            [first, sign, ..] if is_value(first) && is_comparison(&sign.text) => &[],
            all => all,
        };
        self.command(arguments, streams);
        let of_function = || {
            let first = arguments.first()?;
            self.variables.printed_by(&first.text).map(str::to_owned)
        };
        let printed = runners::printed(arguments, streams.source.text.as_deref()).or_else(of_function);
        // Only one of several texts is printed.
        let printed = printed.map(|text| if self.chosen > 0 { runners::NOT_SHOWN.to_owned() } else { text });
        let texts =
            printed.iter().flat_map(|text| runners::files_of_tee(arguments).into_iter().map(move |file| (file, text)));
        let written = streams.written.iter().cloned().zip(printed.iter());
        let texts = texts.chain(written).map(|(file, text)| (file, text.as_str()));
        for (file, text) in texts.chain(runners::copied(arguments)) {
            self.contents += text.len();
            if self.contents > LONGEST_CONTENTS {
                self.cut();
                break;
            }
            self.variables.write(&file, text);
        }
        if !runners::keeps_files(arguments) {
            arguments.iter().filter(|word| word.content.is_some()).for_each(|word| self.variables.change(&word.text));
        }
        if let Some(file) = streams.written.as_ref().filter(|_| printed.is_none()) {
            self.variables.change(file);
        }
        printed
    }

    fn each_value(&mut self, varying: Varying, words: &[&Word], streams: &Streams) -> Option<String> {
        let (mut printed, mut readings) = (Vec::new(), Vec::new());
        let chosen = usize::from(!varying.is_loop);
        self.depth += 1;
        self.chosen += chosen;
        for value in &varying.values {
            if self.is_full() {
                break;
            }
            let before = self.found.commands.len();
            self.variables.choose(&varying.name, value.clone());
            printed.extend(self.each(words, streams));
            if !mem::take(&mut self.is_impossible) {
                readings.push(before..self.found.commands.len());
            }
        }
        self.depth -= 1;
        self.chosen -= chosen;
        if !varying.is_loop {
            self.found.choices.push(Choice { readings });
            printed.dedup();
        }
        self.variables.restore(varying);
        Some(printed.join("\n")).filter(|printed| !printed.is_empty())
    }

    /// Returns true if no more commands are read.
    fn is_full(&self) -> bool {
        self.read >= MOST || self.size > LONGEST_COMMANDS
    }

    /// Returns true if a word may begin with a variable of PowerShell: `$x.Count`, `"$($x.Name)"`. One that the line sets as Bash
    /// does is not.
    fn may_be_value(&self, word: &Argument) -> bool {
        let Some(rest) = word.text.strip_prefix("$($").or(word.text.strip_prefix('$')) else { return false };
        let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        self.dialect != Dialect::Posix && !name.is_empty() && !self.variables.is_set(name)
    }

    /// Adds a command, and those that it runs.
    fn command(&mut self, arguments: &[Argument], streams: &Streams) {
        let Some((first, rest)) = arguments.split_first() else { return };
        if self.depth >= DEEPEST || self.found.commands.len() >= MOST {
            return self.cut();
        }
        // `xargs` and `find` replace `{}` by a text that the line does not show.
        let program = if first.text.contains("{}") { Program::Unknown } else { first.program() };
        let name = match program {
            Program::Named(name) => joined(name),
            Program::Output | Program::Unknown => first.form(),
        };
        let behind: String = rest
            .iter()
            .map(Argument::form)
            .chain(streams.forms.iter().cloned())
            .map(|word| format!(" {word}"))
            .collect();
        if has_own_folder(&first.text) {
            self.found.others.push(format!("{}{behind}", first.form()));
        }
        // The code that an interpreter gets by a pipe, or in a file that the line writes.
        let is_hidden = streams.source.form.is_some() || streams.reads_file;
        let piped = streams.source.text.as_deref().filter(|_| is_hidden);
        let program_file = rest.iter().find(|word| !word.text.starts_with('-'));
        let written = || program_file.and_then(|word| word.content.as_deref());
        let piped = piped.or_else(written).filter(|_| code::is_interpreter(&name));
        let piped = piped.map(|text| format!(" <<<{}", joined(text))).unwrap_or_default();
        let form = format!("{name}{behind}{piped}");
        self.size += form.len();
        if self.size > LONGEST_COMMANDS {
            return self.cut();
        }
        self.found.commands.push(form);
        if let Some(text) = &first.content {
            let own = self.variables.branches();
            self.script(text, streams.source.clone(), false);
            self.variables.undo(&own);
        }
        let Program::Named(name) = program else {
            // Within a function, these are the words that it is called with.
            let is_known_later = first.is_argument_of_function() && !self.functions.is_empty();
            self.runs_arguments |= is_known_later;
            if is_known_later && !first.is_quoted {
                self.evaluated.insert(first.text.trim_start_matches('$').parse().unwrap_or_default());
            }
            self.found.has_unknown |= !is_known_later;
            let is_alone = first.text.contains('=') || rest.first().is_none_or(|word| is_operator(&word.text));
            self.is_posix |= first.text.starts_with('$') && !(is_alone && self.may_be_value(first));
            return;
        };
        self.depth += 1;
        self.remember(name, rest);
        self.alias(name, rest, &streams.source);
        if let Some(changed) = self.functions.get(name) {
            self.feeds |= streams.source.text.is_some();
            changed.iter().for_each(|(name, value)| self.variables.may_be(name, value));
            if self.runs_arguments {
                self.command(rest, streams);
                self.possible_in_function(rest, streams);
            }
        }
        let is_reader = matches!(name, "read" | "mapfile" | "readarray");
        self.reads_code |= is_reader && streams.source.text.as_deref().is_some_and(has_code);
        self.feeds |= name == "exec" && rest.is_empty() && streams.source.text.is_some();
        self.waits |= streams.source.text.is_none() && streams.source.form.is_none() && reads_commands(name, rest);
        for inner in runners::inner(name, rest, streams.source.text.as_deref()) {
            match inner {
                Inner::Words(words) => self.command(words, streams),
                Inner::Split(words) => self.command(&words, streams),
                Inner::Script { text, arguments } => {
                    let own = self.variables.branches();
                    if !arguments.is_empty() {
                        self.variables.set_list("@", arguments);
                    }
                    // A shell that reads its commands leaves nothing to read.
                    let is_read = streams.source.text.as_ref() == Some(&text);
                    let source = if is_read { Source::default() } else { streams.source.clone() };
                    self.script(&text, source, true);
                    if !matches!(name, "eval" | "." | "source") {
                        self.variables.undo(&own);
                    }
                }
            }
        }
        // Words in a program of another language may be no commands, so what is unknown about them counts for nothing.
        let code = code::command_lines(name, rest, streams.source.text.as_deref());
        let has_unknown = self.found.has_unknown || code.has_unknown;
        for line in code.lines {
            self.script(&line, Source::default(), false);
        }
        self.found.has_unknown = has_unknown || self.is_cut;
        for line in code.calls {
            self.script(&line, Source::default(), false);
        }
        self.depth -= 1;
    }

    /// Adds the commands that a function may run if it evaluates its arguments as texts, or drops some of them.
    fn possible_in_function(&mut self, arguments: &[Argument], streams: &Streams) {
        // The arguments of calls within these commands are not read again.
        self.runs_arguments = false;
        let before = self.found.commands.len();
        let mut texts: Vec<String> = Vec::new();
        for number in &self.evaluated {
            match number.checked_sub(1) {
                None => texts.push(runners::text_of(arguments)),
                Some(first) => {
                    let possible = arguments.iter().skip(first).take(self.shifted.saturating_add(1));
                    texts.extend(possible.map(|word| word.text.clone()));
                }
            }
        }
        for text in texts {
            self.sources += text.len();
            self.script(&text, streams.source.clone(), true);
        }
        if self.shifted > 0 {
            for dropped in 1..arguments.len().min(MOST_SHIFTED + 1) {
                let has_unknown = self.found.has_unknown;
                self.command(arguments.get(dropped..).unwrap_or_default(), streams);
                if dropped > self.shifted {
                    self.found.has_unknown = has_unknown || self.is_cut;
                }
            }
        }
        self.runs_arguments = true;
        let run = self.take_from(before);
        self.sources += run.iter().map(String::len).sum::<usize>();
        if self.found.possible.len() >= MOST || self.sources > LONGEST_SOURCES {
            return self.cut();
        }
        self.found.possible.extend(run);
    }

    /// Records the aliases that a command defines, and reads the commands of the alias that it may be.
    fn alias(&mut self, program: &str, arguments: &[Argument], source: &Source) {
        if program == "alias" {
            // Those of zsh that replace words at any place.
            if arguments.iter().any(|word| matches!(word.text.as_str(), "-g" | "-s")) {
                self.cut();
            }
            let defined = arguments.iter().filter_map(|word| word.text.split_once('='));
            return self.aliases.extend(defined.map(|(name, text)| (name.to_owned(), text.to_owned())));
        }
        let Some(text) = self.aliases.remove(program) else { return };
        let words = arguments.iter().map(|word| word.text.as_str());
        let line = [text.as_str()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
        self.sources += line.len();
        if self.found.possible.len() >= MOST || self.sources > LONGEST_SOURCES {
            return self.cut();
        }
        let before = self.found.commands.len();
        self.script(&line, source.clone(), false);
        let run = self.take_from(before);
        self.found.possible.extend(run);
        self.aliases.insert(program.to_owned(), text);
    }

    /// Takes the commands from an index on.
    fn take_from(&mut self, from: usize) -> Vec<String> {
        self.found.choices.retain(|choice| choice.readings.last().is_none_or(|last| last.end <= from));
        self.found.commands.split_off(from)
    }

    /// Reads the name in an assignment, or one that a builtin gets. Bash evaluates its index.
    fn target(&mut self, text: &str) {
        let name = text.split_once("]=").map_or(text, |(name, _)| name);
        let index = name.split_once('[').filter(|(name, _)| is_name(name));
        if index.is_some_and(|(_, index)| self.variables.runs_code(&in_index(index))) {
            self.cut();
        }
    }

    /// Forgets the variables that a command names: with a word, or joined to an option (`printf -vX`, `read -aX`, `wait -pX`).
    fn forget(&mut self, arguments: &[Argument]) {
        for word in arguments {
            let name = match word.text.strip_prefix('-') {
                Some(option) => option.split_once(['a', 'p', 'v']).map_or("", |(_, name)| name),
                None => word.text.as_str(),
            };
            self.variables.forget(name.split(['=', '[']).next().unwrap_or_default());
        }
    }

    /// Reads words that a builtin evaluates as arithmetic.
    fn evaluated(&mut self, arguments: &[Argument]) {
        if arguments.iter().any(|word| self.variables.runs_code(&word.text)) {
            self.cut();
        }
    }

    /// Records what a command does to the variables.
    fn remember(&mut self, program: &str, arguments: &[Argument]) {
        let is_number = arguments.iter().any(|word| hides_value(&word.text));
        match program {
            "test" | "[" => {
                let texts =
                    arguments.iter().map(|word| if word.text.starts_with("$(") { "0" } else { word.text.as_str() });
                self.test(&texts.map(str::to_owned).collect::<Vec<_>>());
            }
            "read" | "mapfile" | "readarray" | "unset" | "getopts" | "wait" => {
                arguments.iter().for_each(|word| self.target(&word.text));
            }
            "printf" if arguments.first().is_some_and(|word| word.text.starts_with("-v")) => {
                arguments.iter().take(2).for_each(|word| self.target(word.text.trim_start_matches("-v")));
            }
            "let" => self.evaluated(arguments),
            program if is_declaration(program) && is_number => self.evaluated(arguments),
            program if is_declaration(program) => arguments.iter().for_each(|word| self.target(&word.text)),
            _ => {}
        }
        match program {
            "read" | "mapfile" | "readarray" | "unset" | "getopts" | "let" | "wait" => self.forget(arguments),
            "printf" if arguments.first().is_some_and(|word| word.text.starts_with("-v")) => {
                self.forget(arguments.get(..2).unwrap_or(arguments));
            }
            "set" if arguments.first().is_some_and(|word| word.text == "--") => {
                self.variables.set_list("@", arguments.get(1..).unwrap_or_default());
            }
            "source" | "." => self.variables.forget_all(),
            "shift" => {
                let count = arguments.first().map_or(Some(1), |word| word.text.parse::<usize>().ok());
                self.shifted = self.shifted.saturating_add(count.unwrap_or(MOST_SHIFTED));
            }
            _ => {}
        }
    }
}

/// The input and the output of a command, which are also those of the commands that it runs.
#[derive(Debug, Clone, Default)]
struct Streams {
    /// The redirections and the source in the normal form.
    forms: Vec<String>,
    source: Source,
    /// True if the source is a file that the line wrote before.
    reads_file: bool,
    /// The file that gets the output.
    written: Option<String>,
}

fn is_next<'a>(tokens: &mut std::iter::Peekable<impl Iterator<Item = &'a Token>>, words: &[&str]) -> bool {
    matches!(tokens.peek(), Some(Token::Word(next)) if next.plain().is_some_and(|word| words.contains(&word)))
}

/// Returns true if a name and a group follow, as in `coproc NAME {`.
fn is_named_group<'a>(mut tokens: impl Iterator<Item = &'a Token>) -> bool {
    let is_name = matches!(tokens.next(), Some(Token::Word(word)) if word.plain().is_some());
    is_name && matches!(tokens.next(), Some(Token::Word(word)) if word.plain() == Some("{"))
}

/// Returns true if a program is a shell that reads its commands from its input.
fn reads_commands(program: &str, arguments: &[Argument]) -> bool {
    let is_input = |inner: &Inner| matches!(inner, Inner::Script { text, .. } if text == runners::NOT_SHOWN);
    is_shell(program) && runners::inner(program, arguments, Some(runners::NOT_SHOWN)).iter().any(is_input)
}

fn is_declaration(word: &str) -> bool {
    matches!(word, "export" | "local" | "declare" | "typeset" | "readonly")
}

/// Returns a text as the index of a variable.
fn in_index(text: &str) -> String {
    format!("_[{text}")
}

/// Returns true if the shell evaluates what follows the name in `${NAME…}` as arithmetic (an index, or the place of a part), or
/// the value as the name of a variable (`${!NAME}`).
fn is_evaluated(inner: &[Piece]) -> bool {
    match inner.first() {
        None => true,
        Some(Piece::Text { text, .. }) => match text.strip_prefix(':') {
            Some(part) => !part.starts_with(['-', '=', '?', '+']),
            None => text.starts_with('[') && !text.starts_with("[@]") && !text.starts_with("[*]"),
        },
        Some(_) => false,
    }
}

/// Returns true if an option of a declaration makes the variable another name of a variable (`-n`), or changes what is assigned
/// to it (`-i`, `-l`, `-u`, `-c`).
fn hides_value(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| letters.contains(['n', 'i', 'l', 'u', 'c']))
}

/// Returns true if a word has `>(…)`, whose commands read what the command prints.
fn is_fed(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Group { sign: '>', .. }))
}

/// Returns true if a program is named with a folder that is not one of the system's.
fn has_own_folder(program: &str) -> bool {
    const SYSTEM: [&str; 8] = [
        "/bin/",
        "/sbin/",
        "/usr/bin/",
        "/usr/sbin/",
        "/usr/local/bin/",
        "/usr/local/sbin/",
        "/opt/homebrew/bin/",
        "/snap/bin/",
    ];
    let folder = program.rfind('/').and_then(|at| program.get(..=at));
    folder.is_some_and(|folder| !SYSTEM.contains(&folder))
}

//! Reads the heads of compound commands: of loops over values, of `case`, and of functions.

use std::iter::Peekable;

use super::Reader;
use crate::command_line::expanded::{Argument, expand};
use crate::command_line::tokens::{Operator, Token, Word};
use crate::command_line::variables::Branches;

impl Reader {
    /// Reads the head of `for` or `select`, and returns the branches of the loop. `keyword` is one of the two.
    pub(super) fn loop_over_values<'a, T>(&mut self, keyword: &str, tokens: &mut Peekable<T>) -> Branches
    where
        T: Iterator<Item = &'a Token> + Clone,
    {
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
        own.is_complete = keyword == "for" && !may_end && values.iter().any(Argument::is_known);
        own
    }

    /// Reads the head of `case`, up to its `in`, and returns the branches of its items.
    pub(super) fn case_of<'a>(&mut self, tokens: &mut Peekable<impl Iterator<Item = &'a Token>>) -> Branches {
        while let Some(Token::Word(word)) = tokens.peek() {
            self.outputs(&word.pieces);
            tokens.next();
            if word.plain() == Some("in") {
                break;
            }
        }
        self.variables.branches()
    }

    /// Reads the head of a function behind the word `function`. `defined` becomes its name.
    pub(super) fn named_function<'a>(
        &mut self,
        tokens: &mut Peekable<impl Iterator<Item = &'a Token>>,
        defined: &mut Option<String>,
    ) {
        if let Some(Token::Word(name)) = tokens.next() {
            *defined = self.define(name);
        }
        for bracket in [Operator::Open, Operator::Close] {
            tokens.next_if(|token| **token == Token::Operator(bracket));
        }
    }
}

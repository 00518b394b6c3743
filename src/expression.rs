//! Expressions in manifests and graders: CEL, compiled once, with errors at their places, and with limits on
//! evaluation.

use crate::text::{first_bytes, marked};
use std::ops::Range;
use std::sync::Arc;

use cel::common::ast::IdedExpr;
use cel::common::types::{CelBool, CelString};
use cel::common::value::CowVal;
use cel::context::VariableResolver;
use cel::{Context, ExecutionError, Program};
use serde_json::Value;

mod functions;
mod names;
pub mod span;
mod fast_path;
mod explain;
mod value;

pub use explain::Untrue;
use value::Json;
pub use value::Work;

/// The maximum length of an expression in bytes, because the parser recurses.
const MAX_BYTES: usize = 2000;
/// The maximum depth of an expression, because the evaluator recurses.
const MAX_DEPTH: usize = 64;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    program: Arc<Program>,
    /// Comparisons that must be true. If `only_musts` is set, the expression has no other part.
    musts: Arc<[fast_path::Must]>,
    only_musts: bool,
    path: Option<fast_path::Path>,
}

/// An error in an expression, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Wrong {
    /// The range of bytes in the expression.
    pub range: Range<usize>,
    /// The error.
    pub message: String,
    /// The suggested fix, if there is one.
    pub help: Option<String>,
}

/// The reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// The expression reads an absent key, or a position after the end of a list.
    #[error("{0}")]
    Absent(String),
    /// The expression cannot be evaluated.
    #[error("{0}")]
    Broken(String),
}

impl Expression {
    /// Compiles an expression that may use these variables, and no other bare names.
    ///
    /// # Errors
    /// Returns an error if the expression does not parse, or uses an unknown variable or function.
    pub fn compile(text: &str, variables: &[&str]) -> Result<Self, Wrong> {
        if text.len() > MAX_BYTES {
            let message = format!("the expression has {} bytes; at most {MAX_BYTES} are allowed", text.len());
            return Err(Wrong { range: 0..text.len(), message, help: None });
        }
        if text.trim().is_empty() {
            let help = Some("write an expression, or remove the key".to_owned());
            return Err(Wrong { range: 0..text.len(), message: "the expression is empty".to_owned(), help });
        }
        let program = functions::env().compile(text).map_err(|errors| syntax(text, &errors))?;
        names::check(text, &program, variables, MAX_DEPTH)?;
        let (musts, only_musts) = fast_path::musts(program.expression());
        let path = fast_path::path(program.expression());
        Ok(Self { text: text.into(), program: Arc::new(program), musts: musts.into(), only_musts, path })
    }

    /// Returns the compiled program, for checks that depend on the variables' contents.
    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    /// Evaluates the expression. A CEL optional without a value is absent; one with a value is that value.
    ///
    /// # Errors
    /// Returns an error if a value is absent, the expression is invalid, or the evaluation takes too much work.
    pub fn run(&self, scope: &Scope<'_>) -> Result<Value, Failed> {
        match self.path.as_ref().and_then(|path| path.find(|name| scope.variable(name))) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(key)) => Err(Failed::Absent(format!("there is no `{}`", short(key)))),
            None => self.with(scope, |value| value::to_json(value)),
        }
    }

    /// Returns true if the expression is true. An expression that reads an absent value is false. Comparisons of a key
    /// with a text are decided first, and cheaply.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::run_bool`], except for absent values.
    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, Failed> {
        if !self.musts.iter().all(|must| must.holds(|name| scope.variable(name))) {
            return Ok(false);
        }
        if self.only_musts {
            return Ok(true);
        }
        match self.run_bool(scope) {
            Err(Failed::Absent(_)) => Ok(false),
            held => held,
        }
    }

    /// Returns the keys of a variable that must hold one of certain texts for the expression to be true.
    pub(crate) fn compared_keys<'k>(&'k self, variable: &'k str) -> impl Iterator<Item = &'k str> {
        self.musts.iter().filter_map(move |must| must.key_of(variable))
    }

    /// Returns the keys of a variable that the expression names, with their ranges.
    pub fn keys_of(&self, variable: &str) -> Vec<(String, Range<usize>)> {
        names::keys_of(&self.text, &self.program, variable)
    }

    /// Evaluates an expression that must be true or false.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::run`], and an error if the value is not a boolean.
    fn run_bool(&self, scope: &Scope<'_>) -> Result<bool, Failed> {
        self.part_is_true(self.program.expression(), scope)
    }

    /// Returns true if a part of the expression, which must be true or false, is true.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::run_bool`].
    pub(crate) fn part_is_true(&self, part: &IdedExpr, scope: &Scope<'_>) -> Result<bool, Failed> {
        self.with_part(part, scope, |value| match value.downcast_ref::<CelBool>() {
            Some(found) => Ok(*found.inner()),
            None => Err(Failed::Broken(format!("the result is {}, not true or false", value::kind_of(value)))),
        })
    }

    fn with<T>(
        &self,
        scope: &Scope<'_>,
        take: impl FnOnce(&(dyn cel::common::value::Val + '_)) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.with_part(self.program.expression(), scope, take)
    }

    /// Evaluates a part of the expression, and hands the value to `take`.
    fn with_part<T>(
        &self,
        part: &IdedExpr,
        scope: &Scope<'_>,
        take: impl FnOnce(&(dyn cel::common::value::Val + '_)) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let mut context = Context::with_env(functions::env());
        context.set_variable_resolver(scope);
        let result = cel::Value::resolve_val(part, &context);
        if scope.work.is_spent() {
            return Err(Failed::Broken("the expression reads too many values".to_owned()));
        }
        let value = result.map_err(|error| failed(&error))?;
        let taken = take(value.as_ref());
        if scope.work.is_spent() {
            return Err(Failed::Broken("the expression reads too many values".to_owned()));
        }
        taken
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The variables of one evaluation, and the work that remains for it.
pub struct Scope<'v> {
    variables: Vec<(&'v str, &'v Value)>,
    words: &'v [&'v str],
    work: &'v Work,
}

impl<'v> Scope<'v> {
    /// Returns a scope without variables.
    pub fn new(work: &'v Work) -> Self {
        Self { variables: Vec::new(), words: &[], work }
    }

    /// Adds a variable; the last one of a name counts.
    #[must_use]
    pub fn with(mut self, name: &'v str, value: &'v Value) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Returns the scope with these names defined as texts of the same spelling.
    #[must_use]
    pub fn with_words(&self, words: &'v [&'v str]) -> Scope<'v> {
        Scope { variables: self.variables.clone(), words, work: self.work }
    }
}

impl<'v> Scope<'v> {
    fn variable(&self, name: &str) -> Option<&'v Value> {
        self.variables.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

impl VariableResolver for Scope<'_> {
    fn resolve<'b>(&'b self, name: &str) -> Option<CowVal<'b, 'b>> {
        if name == functions::WORK {
            return Some(CowVal::owned(self.work.clone()));
        }
        if let Some(value) = self.variable(name) {
            return Some(CowVal::Owned(Json::of(value, self.work)));
        }
        self.words.iter().find(|word| **word == name).map(|word| CowVal::owned(CelString::from(*word)))
    }
}

/// Examples of expressions, for the help of syntax errors.
const EXAMPLES: &str = "expressions are CEL: line.type == 'text', has(line.x), a && b, c ? 'one' : 'other'";

/// Returns the first error of the parser, in the parser's words except for the place.
fn syntax(text: &str, errors: &cel::ParseErrors) -> Wrong {
    let Some(error) = errors.errors.first() else {
        return Wrong { range: 0..text.len(), message: "it is not an expression".to_owned(), help: None };
    };
    let (line, column) = error.pos;
    let line_start: usize = text.split_inclusive('\n').take((line - 1).max(0) as usize).map(str::len).sum();
    let rest = text.get(line_start..).unwrap_or_default();
    let skipped = (column - 1).max(0) as usize;
    let start = line_start + rest.char_indices().nth(skipped).map_or(rest.len(), |(at, _)| at);
    let length = text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    let message = error.msg.lines().next().unwrap_or_default().trim_start_matches("Syntax error: ");
    let expecting = message.find(" expecting {").or_else(|| message.find(", expecting {"));
    let message = expecting.and_then(|at| message.get(..at)).unwrap_or(message);
    let (mut range, quoted) = (start..start + length, message.split('\'').nth(1).unwrap_or_default());
    let (message, help) = match message.strip_prefix("token recognition error at: '") {
        Some(token) if token.starts_with('=') => ("`=` is not an operator".to_owned(), "compare with `==`"),
        Some(token) if token.starts_with(['&', '|']) => {
            ("a single `&` or `|` is not an operator".to_owned(), "write `&&` or `||`")
        }
        Some(token) => (format!("`{}` is not allowed in an expression", token.trim_end_matches('\'')), EXAMPLES),
        None if quoted == "<EOF>" => {
            // The missing part belongs after the last word, not after the blanks that follow it.
            let end = text.trim_end().len();
            range = end.saturating_sub(1).min(start)..end;
            range.start = text.floor_char_boundary(range.start);
            ("it ends unexpectedly".to_owned(), EXAMPLES)
        }
        None if message.starts_with("extraneous input") => (format!("unexpected `{quoted}`"), EXAMPLES),
        None if message.starts_with("no viable alternative") && quoted.starts_with('.') => (
            format!("`{quoted}` is not a key"),
            "write a reserved word, or a key that is not a name, in brackets: line['in']",
        ),
        None => (message.to_owned(), EXAMPLES),
    };
    let message = format!("the expression cannot be read: {message}");
    Wrong { range, message, help: Some(help.to_owned()) }
}

/// Converts an error of the evaluator, and bounds its length.
fn failed(error: &ExecutionError) -> Failed {
    match error {
        ExecutionError::NoSuchKey(key) => Failed::Absent(format!("there is no `{}`", short(key))),
        // A value that is not a map has no keys.
        ExecutionError::NoSuchOverload(error) if error.function() == "_._" => {
            let kind = error.argument_types().first().map(String::as_str).unwrap_or_default();
            Failed::Absent(format!("a {kind} has no keys"))
        }
        ExecutionError::IndexOutOfBounds(_) => Failed::Absent("the list is shorter than the index".to_owned()),
        // The evaluator's messages would print whole values.
        ExecutionError::UnsupportedBinaryOperator(operator, left, right)
        | ExecutionError::Overflow(operator, left, right) => {
            let (left, right) = (left.type_of(), right.type_of());
            Failed::Broken(format!("`{operator}` cannot be applied to {left} and {right}"))
        }
        ExecutionError::UnsupportedTargetType { target } => {
            Failed::Broken(format!("the operation cannot be applied to {}", target.type_of()))
        }
        ExecutionError::NotSupportedAsMethod { method, target } => {
            Failed::Broken(format!("`{method}` cannot be applied to {}", target.type_of()))
        }
        ExecutionError::ValuesNotComparable(left, right) | ExecutionError::UnsupportedIndex(left, right) => {
            Failed::Broken(format!("{} and {} cannot be combined", left.type_of(), right.type_of()))
        }
        ExecutionError::FunctionError { function, message } => {
            Failed::Broken(format!("`{function}`: {}", short(message)))
        }
        other => Failed::Broken(short(&other.to_string())),
    }
}

fn short(text: &str) -> String {
    marked(first_bytes(text, 200), text)
}

#[cfg(test)]
mod tests;

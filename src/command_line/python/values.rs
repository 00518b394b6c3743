//! The values that an expression may have.

use super::expressions::{alternatives, elements_of, end_of_expression, is_name, split};
use super::lists::joined;
use super::{Program, in_quotes};
use crate::command_line::runners::NOT_SHOWN;

/// A value of a program.
#[derive(Clone)]
pub(super) enum Value {
    /// A text for a shell.
    Text(String),
    /// The words of a command.
    Words(Vec<String>),
}

impl Value {
    pub(super) fn not_shown() -> Self {
        Self::Text(NOT_SHOWN.to_owned())
    }

    pub(super) fn words(self) -> Option<Vec<String>> {
        match self {
            Self::Text(_) => None,
            Self::Words(words) => Some(words),
        }
    }
}

/// The calls that make a text of the words of a command.
const JOINS: [&str; 3] = ["shlex.join(", "\" \".join(", "' '.join("];

impl Program<'_> {
    /// Returns the values that an expression may have. A value that the code does not show is [`NOT_SHOWN`].
    pub(super) fn values(&self, expression: &str, depth: usize) -> Vec<Value> {
        let expression = expression.trim();
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        let Some(depth) = depth.checked_sub(1).filter(|_| left.is_some()) else { return vec![Value::not_shown()] };
        if is_name(expression) {
            return self.values_of(expression, depth);
        }
        if let Some((first, second)) = alternatives(expression) {
            self.has_choice.set(true);
            return [first, second].into_iter().flat_map(|value| self.values(value, depth)).collect();
        }
        let is_one = |inner: &&str| end_of_expression(inner, &[]) == inner.len();
        let within = |name: &str| expression.strip_prefix(name)?.strip_suffix(')').filter(is_one);
        if let Some(inner) = ["shlex.split(", "list(", "tuple("].iter().find_map(|name| within(name)) {
            return self.values(inner, depth);
        }
        if let Some(inner) = JOINS.iter().find_map(|name| within(name)) {
            let text_of = |value: Value| match value {
                Value::Words(words) if expression.starts_with("shlex") => Value::Text(in_quotes(&words)),
                Value::Words(words) => Value::Text(words.join(" ")),
                Value::Text(_) => Value::not_shown(),
            };
            return self.values(inner, depth).into_iter().map(text_of).collect();
        }
        if let Some(name) = expression.strip_suffix(".split()").filter(|name| is_name(name)) {
            return self.values_of(name, depth);
        }
        // `commands[name]`
        let indexed = expression.strip_suffix(']').and_then(|rest| rest.split_once('['));
        if let Some((name, index)) = indexed.filter(|(name, index)| is_name(name) && is_one(index)) {
            return self.element(name, index.trim(), depth);
        }
        if let Some(elements) = elements_of(expression) {
            let words = split(elements, ',');
            if words.len() == 1 && expression.starts_with('(') {
                return self.values(elements, depth);
            }
            return self.lists(&words, depth).into_iter().map(Value::Words).collect();
        }
        let parts = split(expression, '+');
        if let [first, others @ ..] = parts.as_slice()
            && !others.is_empty()
        {
            let lists = self.values(first, depth).into_iter().filter_map(Value::words).collect::<Vec<_>>();
            if !lists.is_empty() {
                let added = others.iter().map(|part| {
                    let values = self.values(part, depth).into_iter();
                    values
                        .map(|value| value.words().unwrap_or_else(|| vec![NOT_SHOWN.to_owned()]))
                        .collect::<Vec<Vec<String>>>()
                });
                return added.fold(lists, joined).into_iter().map(Value::Words).collect();
            }
        }
        self.texts(expression, depth).into_iter().map(Value::Text).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::command_line::code::{Call, Origin};
    use crate::command_line::python::calls;

    #[test]
    fn joined_words_are_one_text() {
        let code = "import os\nos.system(' '.join(['rm', 'a']))";
        assert_eq!(calls(code, Origin::Line), [Call::of("rm a".to_owned())]);
    }

    #[test]
    fn the_alternatives_of_an_expression_are_a_choice() {
        let code = "import os\nos.system('rm a' if x else 'rm b')";
        let lines = vec!["rm a".to_owned(), "rm b".to_owned()];
        assert_eq!(calls(code, Origin::Line), [Call { lines, is_choice: true, is_unused: false }]);
    }
}

//! What a program adds to the value of a variable: `NAME.append(…)`, `NAME.extend(…)`, `NAME += …`.

use super::values::Value;
use super::{MAX_TEXTS, Program};
use crate::command_line::runners::NOT_SHOWN;

impl Program<'_> {
    /// Returns the values of a variable after an addition (`+=`) at a place. If the addition may come later or not at all, the
    /// values without it are possible, too.
    pub(super) fn longer(
        &self,
        values: Vec<Value>,
        (at, name): (usize, &str),
        first: Option<usize>,
        depth: usize,
    ) -> Vec<Value> {
        let is_before = at < self.place.get();
        let may_repeat = || ["def ", "lambda", "for ", "while "].iter().any(|word| self.masked.contains(word));
        if !is_before && !may_repeat() {
            return values;
        }
        let is_in_branch = first.is_some_and(|first| self.indent(at) > self.indent(first))
            || self.around(at, name).0.trim_end().ends_with(':');
        let is_optional = is_in_branch || !is_before;
        let added = self.added(at, name, depth).filter(|_| first.is_some_and(|first| first < at));
        let added = added.filter(|_| !is_optional || values.len() * 2 <= MAX_TEXTS);
        let is_optional = is_optional && added.is_some();
        self.has_choice.set(self.has_choice.get() || is_optional);
        let mut longer: Vec<Value> = Vec::new();
        for value in values {
            longer.extend(is_optional.then(|| value.clone()));
            longer.push(match (value, &added) {
                (Value::Words(words), Some(Value::Words(added))) => Value::Words([words, added.clone()].concat()),
                (Value::Text(text), Some(Value::Text(added))) => Value::Text(text + added),
                (Value::Words(words), _) => Value::Words([words, vec![NOT_SHOWN.to_owned()]].concat()),
                (Value::Text(text), _) => Value::Text(text + NOT_SHOWN),
            });
        }
        longer
    }

    /// Returns what the code adds to a value at this place, if it is one text or list: `NAME.append(…)`, `NAME += …`.
    fn added(&self, at: usize, name: &str, depth: usize) -> Option<Value> {
        let sign = self.around(at, name).1;
        let behind = |begin: &str| sign.strip_prefix(begin).map(|rest| self.masked.len() - rest.len());
        let mut values = self.at(at, || {
            if let Some(from) = behind(".append(") {
                let element = self.expression(from, &[]);
                self.lists(&[element], depth).into_iter().map(Value::Words).collect::<Vec<_>>()
            } else if let Some(from) = behind(".extend(") {
                self.values(self.expression(from, &[]), depth)
            } else {
                let from = behind("+=").unwrap_or(self.masked.len());
                self.values(self.expression(from, &[';', '\n']), depth)
            }
        });
        values.pop().filter(|_| values.is_empty())
    }

    /// Returns the number of blanks before the line of a place.
    fn indent(&self, at: usize) -> usize {
        let before = self.masked.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        before.len() - before.trim_start().len()
    }
}

/// Returns true if code behind a name makes its value longer.
pub(super) fn is_extended(sign: &str) -> bool {
    [".append(", ".extend(", "+="].iter().any(|begin| sign.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use crate::command_line::code::{Call, Origin};
    use crate::command_line::python::calls;

    #[test]
    fn what_is_added_before_a_call_is_in_its_command_line() {
        let code = "import subprocess\nwords = ['rm']\nwords.append('a')\nsubprocess.run(words)";
        assert_eq!(calls(code, Origin::Line), [Call::of("'rm' 'a'".to_owned())]);
    }

    #[test]
    fn what_is_added_in_a_branch_is_a_choice() {
        let code = "import subprocess\nwords = ['rm']\nif x:\n    words.append('a')\nsubprocess.run(words)";
        let lines = vec!["'rm'".to_owned(), "'rm' 'a'".to_owned()];
        assert_eq!(calls(code, Origin::Line), [Call { lines, is_choice: true, is_unused: false }]);
    }
}

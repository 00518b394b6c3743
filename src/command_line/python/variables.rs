//! The values that a program gives to a variable: by assignments and loops.

use std::sync::LazyLock;

use regex::Regex;

use super::additions::is_extended;
use super::expressions::is_in_name;
use super::values::Value;
use super::{MAX_PLACES, Program};

impl<'a> Program<'a> {
    /// Returns the values that the code gives to a variable.
    pub(super) fn values_of(&self, name: &str, depth: usize) -> Vec<Value> {
        let mut values = self.values_of_parameter(name, depth);
        let mut extended: Vec<usize> = Vec::new();
        let is_parameter = !values.is_empty();
        let places = self.places(name);
        let mut assigned: Vec<(usize, &str)> = Vec::new();
        for &at in &places {
            extended.extend(is_extended(self.around(at, name).1).then_some(at));
            if let Some(expression) = self.assigned(at, name) {
                assigned.push((at, expression));
            } else if let Some((expression, part)) = self.iterated(at, name) {
                values.extend(self.at(at, || self.elements(expression, (None, part), depth)));
                self.has_choice.set(self.has_choice.get() || self.may_skip(at, name));
            } else if self.is_set_otherwise(at, name) {
                values.push(Value::not_shown());
            }
        }
        let is_default = |at: usize| is_parameter && self.around(at, name).0.contains("def ");
        let is_choice = assigned.iter().any(|(at, _)| is_default(*at));
        let assigned = self.last_of(&assigned);
        self.has_choice.set(self.has_choice.get() || is_choice || assigned.len() > 1);
        for &(at, expression) in assigned {
            values.extend(self.at(at, || self.values(expression, depth)));
        }
        if places.len() > MAX_PLACES {
            values.push(Value::not_shown());
        }
        let first = assigned.first().map(|(at, _)| *at);
        for at in extended {
            values = self.longer(values, (at, name), first, depth);
        }
        if values.is_empty() { vec![Value::not_shown()] } else { values }
    }

    /// Returns the places of a name in the code.
    pub(super) fn places(&self, name: &str) -> Vec<usize> {
        let places = self.masked.match_indices(name).map(|(at, _)| at).filter(|at| {
            let before = self.masked.get(..*at).and_then(|before| before.chars().next_back());
            let behind = self.masked.get(at + name.len()..).and_then(|behind| behind.chars().next());
            let is_other = before.is_some_and(|c| is_in_name(c) || c == '.') || behind.is_some_and(is_in_name);
            !is_other
        });
        places.take(MAX_PLACES + 1).collect()
    }

    /// Returns the part of a line before a name, and the code behind the name.
    pub(super) fn around(&self, at: usize, name: &str) -> (&'a str, &'a str) {
        let before = self.masked.get(..at).and_then(|before| before.rsplit(['\n', ';']).next()).unwrap_or_default();
        (before, self.masked.get(at + name.len()..).unwrap_or_default().trim_start())
    }

    /// Returns the expression that the code assigns to a variable at this place: `NAME = …`, `NAME: str = …`, `NAME := …`.
    pub(super) fn assigned(&self, at: usize, name: &str) -> Option<&'a str> {
        let (before, sign) = self.around(at, name);
        let mut from = self.masked.len() - sign.len();
        if sign.starts_with(":=") {
            from += 1;
        } else if sign.starts_with(':') && before.trim().is_empty() {
            from += sign.find(['=', '\n']).filter(|end| sign.get(*end..).is_some_and(|it| it.starts_with('=')))?;
        }
        let rest = self.masked.get(from..)?.strip_prefix('=').filter(|rest| !rest.starts_with('='))?;
        // `a, NAME = …` is none.
        (!before.contains(',') || before.contains('(')).then_some(())?;
        Some(self.expression(self.masked.len() - rest.len(), &[',', ';', '\n']))
    }

    /// Returns the assignments that may give a variable its value at the current place: only the last one before the place if
    /// all of them run one after the other.
    pub(super) fn last_of<'b, 'c>(&self, assigned: &'b [(usize, &'c str)]) -> &'b [(usize, &'c str)] {
        let is_line =
            |at: usize| self.masked.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
        let has_functions = ["def ", "lambda", "exec(", "eval("].iter().any(|word| self.masked.contains(word));
        let before = assigned.iter().take_while(|(at, _)| *at < self.place.get()).count();
        let last = before.checked_sub(1).and_then(|last| assigned.get(last..before));
        match last {
            Some(last @ [(at, _)])
                if !has_functions && assigned.iter().all(|(at, _)| is_line(*at)) && !self.is_within_brackets(*at) =>
            {
                last
            }
            _ => assigned,
        }
    }

    /// Returns true if a variable gets a value at this place in another way than those, or if its first element may change.
    pub(super) fn is_set_otherwise(&self, at: usize, name: &str) -> bool {
        let (before, sign) = self.around(at, name);
        let line = sign.split(['\n', ';']).next().unwrap_or_default();
        let targets = line.split_once('=').filter(|(_, value)| !value.starts_with('=')).map(|(targets, _)| targets);
        let behind_first = before.trim_start().trim_start_matches(['(', '[']);
        let is_call = || behind_first.contains(['(', '[']) || self.is_within_brackets(at - before.len());
        let is_one_of_several = targets.is_some_and(|targets| {
            let has_sign = before.contains([',', '(', '[']) || targets.contains(',');
            has_sign && is_target(before) && is_target(targets) && !is_call()
        });
        let is_element = sign.starts_with('[') && targets.is_some_and(|targets| targets.trim_end().ends_with(']'));
        let is_loop = before.rsplit_once("for ").is_some_and(|(_, names)| is_target(names))
            && (line.starts_with("in ") || line.contains(" in "));
        let is_as_or_removed = [" as", "del"].iter().any(|word| before.trim_end().ends_with(word));
        is_as_or_removed || is_one_of_several || is_element || is_loop || is_changed(sign)
    }

    /// Returns the expression over which a loop runs at this place: `for NAME in …`, `for n, NAME in ….items()`. For
    /// `for n, NAME in …`, also which part of each element the variable gets.
    fn iterated(&self, at: usize, name: &str) -> Option<(&'a str, Option<usize>)> {
        let (before, sign) = self.around(at, name);
        let (_, targets) = before.rsplit_once("for ").filter(|(_, targets)| is_target(targets))?;
        let (others, rest) = sign.strip_prefix("in ").map(|rest| ("", rest)).or_else(|| sign.split_once(" in "))?;
        let expression = self.expression(self.masked.len() - rest.len(), &[':', '\n']);
        if others.is_empty() && (targets.is_empty() || expression.ends_with(".items()")) {
            return Some((expression, None));
        }
        let is_plain = |text: &str| is_target(text) && !text.contains(['(', '[', '*']);
        let are_plain = is_plain(targets) && is_plain(others) && (others.is_empty() || others.starts_with(','));
        let is_of_elements = are_plain && !expression.ends_with(".items()");
        is_of_elements.then(|| (expression, Some(targets.matches(',').count())))
    }

    /// Returns true if the loop with a variable at this place may leave out some of its values: it ends early, or compares the
    /// variable.
    fn may_skip(&self, at: usize, name: &str) -> bool {
        static ENDS: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"\b(?:continue|break|return|exit|raise|if)\b[^\n]*").ok());
        let before = self.masked.get(..at).unwrap_or_default();
        let line = before.get(before.rfind('\n').map_or(0, |end| end + 1)..).unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let mut lines = self.masked.get(at..).unwrap_or_default().split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let is_inner = |line: &&str| {
            let text = line.trim_start();
            text.is_empty() || text.starts_with([']', ')', '}']) || line.len() - text.len() > indent
        };
        let body: String = std::iter::once(first).chain(lines.take_while(is_inner)).collect();
        let has_name = |found: &str| found.split(|c: char| !is_in_name(c)).any(|word| word == name);
        let ends_or_compares = |found: &str| !found.starts_with("if") || has_name(found);
        ENDS.as_ref().is_none_or(|ends| ends.find_iter(&body).any(|found| ends_or_compares(found.as_str())))
    }

    /// Returns true if a bracket is open at a place.
    fn is_within_brackets(&self, at: usize) -> bool {
        let mut open = 0_i64;
        for byte in self.masked.get(..at).unwrap_or_default().bytes() {
            open += i64::from(matches!(byte, b'(' | b'[' | b'{')) - i64::from(matches!(byte, b')' | b']' | b'}'));
        }
        open > 0
    }
}

/// Returns true if code behind a name changes the elements of its value.
fn is_changed(sign: &str) -> bool {
    [".insert(", ".pop(", ".remove(", ".reverse(", ".setdefault(", ".sort(", ".update("]
        .iter()
        .any(|begin| sign.starts_with(begin))
}

/// Returns true if a text can be a part of the targets of an assignment or a loop.
fn is_target(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ' | '\t' | '(' | ')' | '[' | ']' | '*'))
}

#[cfg(test)]
mod tests {
    use crate::command_line::code::{Call, Origin};
    use crate::command_line::python::calls;

    #[test]
    fn the_last_assignment_before_a_call_counts() {
        let code = "import os\nx = 'rm a'\nx = 'rm b'\nos.system(x)\nx = 'rm c'";
        assert_eq!(calls(code, Origin::Line), [Call::of("rm b".to_owned())]);
    }

    #[test]
    fn a_loop_runs_with_each_of_its_values() {
        let code = "import os\nfor name in ['a', 'b']:\n    os.system('rm ' + name)";
        let lines = vec!["rm a".to_owned(), "rm b".to_owned()];
        assert_eq!(calls(code, Origin::Line), [Call { lines, is_choice: false, is_unused: false }]);
    }
}

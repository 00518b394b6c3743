//! The values that the calls of a function give to its parameters.

use std::sync::LazyLock;

use regex::Regex;

use super::expressions::{is_in_name, is_name, split};
use super::values::Value;
use super::{MAX_IMPORTS, MAX_PLACES, Program};

impl Program<'_> {
    /// Returns the values that calls give to parameters with this name.
    pub(super) fn values_of_parameter(&self, name: &str, depth: usize) -> Vec<Value> {
        static FUNCTIONS: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"\bdef\s+(\w+)\s*\(([^:)]*(?::[^,)\n]*,[^:)]*)*)|\blambda\b([^:\n]*)").ok());
        let mut values: Vec<Value> = Vec::new();
        let Some(functions) = FUNCTIONS.as_ref() else { return vec![Value::not_shown()] };
        for found in functions.captures_iter(self.masked).take(MAX_IMPORTS) {
            let parameters = found.get(2).or(found.get(3)).map_or("", |parameters| parameters.as_str());
            let names: Vec<&str> =
                parameters.split(',').map(|part| part.split([':', '=']).next().unwrap_or_default().trim()).collect();
            let Some(index) = names.iter().position(|parameter| parameter.trim_start_matches('*') == name) else {
                continue;
            };
            let is_method = matches!(names.first(), Some(&("self" | "cls")));
            let own = names.get(index).copied().unwrap_or_default();
            match found.get(1).filter(|_| !own.starts_with("**")) {
                Some(function) => {
                    let index = index.saturating_sub(usize::from(is_method));
                    values.extend(self.values_in_calls(function.as_str(), (own, index), depth));
                }
                None => values.push(Value::not_shown()),
            }
        }
        values
    }

    /// Returns the values that a parameter has in the calls of a function. Its default value is read as an assignment.
    fn values_in_calls(&self, function: &str, (name, index): (&str, usize), depth: usize) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        let mut is_called = false;
        for at in self.places_of_function(function) {
            let (before, sign) = self.around(at, function);
            if before.trim_end().ends_with("def") {
                continue;
            }
            // A function that is a value may be called with any argument.
            let Some(rest) = sign.strip_prefix('(') else {
                values.push(Value::not_shown());
                continue;
            };
            is_called = true;
            let arguments = split(self.expression(self.masked.len() - rest.len(), &[]), ',');
            let is_keyword = |argument: &&&str| argument.split_once('=').is_some_and(|(key, _)| is_name(key.trim()));
            if name.starts_with('*') {
                let rest: Vec<&str> = arguments.iter().skip(index).filter(|it| !is_keyword(it)).copied().collect();
                values.extend(self.lists(&rest, depth).into_iter().map(Value::Words));
                continue;
            }
            let keyword = arguments.iter().find_map(|argument| {
                argument.split_once('=').filter(|(key, _)| key.trim() == name).map(|(_, value)| value)
            });
            let argument = keyword.or(arguments.get(index).copied()).filter(|argument| !argument.trim().is_empty());
            values.extend(argument.into_iter().flat_map(|argument| self.values(argument, depth)));
        }
        if !is_called {
            values.push(Value::not_shown());
        }
        values
    }

    /// Returns the places of a function or a method of the code, without those of the modules that run commands.
    fn places_of_function(&self, name: &str) -> Vec<usize> {
        let places = self.masked.match_indices(name).map(|(at, _)| at).filter(|at| {
            let before = self.masked.get(..*at).unwrap_or_default();
            let behind = self.masked.get(at + name.len()..).unwrap_or_default();
            let is_other = ["subprocess.", "sp.", "os."].iter().any(|module| before.ends_with(module));
            !is_other && !before.ends_with(is_in_name) && !behind.starts_with(is_in_name)
        });
        places.take(MAX_PLACES).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::command_line::code::{Call, Origin};
    use crate::command_line::python::calls;

    #[test]
    fn a_parameter_has_the_value_that_the_call_gives_to_it() {
        for call in ["f('rm a')", "f(name='rm a')"] {
            let code = format!("import os\ndef f(name):\n    os.system(name)\n{call}");
            assert_eq!(calls(&code, Origin::Line), [Call::of("rm a".to_owned())], "{call}");
        }
    }
}

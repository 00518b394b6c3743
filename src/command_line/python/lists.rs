//! The lists of a program: the words that their elements make, and the values of their elements.

use super::additions::is_extended;
use super::expressions::{elements_of, is_name, part_of, split};
use super::values::Value;
use super::{MAX_TEXTS, Program};
use crate::command_line::runners::NOT_SHOWN;

impl Program<'_> {
    /// Returns the lists that the elements of a list may make. `*NAME` adds the elements of another one.
    pub(super) fn lists(&self, elements: &[&str], depth: usize) -> Vec<Vec<String>> {
        let elements = elements.iter().map(|element| element.trim()).filter(|element| !element.is_empty());
        elements.fold(vec![Vec::new()], |lists, element| {
            let added = match element.strip_prefix('*') {
                Some(other) => {
                    let values = self.values(other, depth).into_iter();
                    values.map(|value| value.words().unwrap_or_else(|| vec![NOT_SHOWN.to_owned()])).collect()
                }
                None => self.texts_of_part(element, depth).into_iter().map(|text| vec![text]).collect(),
            };
            joined(lists, added)
        })
    }

    /// Returns the values that `NAME[INDEX]` may have.
    pub(super) fn element(&self, name: &str, index: &str, depth: usize) -> Vec<Value> {
        // `words[1:]`
        if let Some((first, last)) = index.split_once(':') {
            let Some(first) = first.trim().parse::<usize>().ok().filter(|_| last.trim().is_empty()) else {
                return vec![Value::not_shown()];
            };
            let behind = |value: Value| match value {
                Value::Words(words) => Value::Words(words.into_iter().skip(first).collect()),
                Value::Text(_) => Value::not_shown(),
            };
            return self.values_of(name, depth).into_iter().map(behind).collect();
        }
        let is_shown = index.parse::<usize>().is_ok() || index.starts_with(['"', '\'']);
        let values = self.elements(name, (Some(index).filter(|_| is_shown), None), depth);
        self.has_choice.set(self.has_choice.get() || values.len() > 1);
        values
    }

    /// Returns what the elements of a list, or the values of a dictionary, may be. With a key or an index, only the element with
    /// this key counts, or every element if none has it. With a part, only this part of each element counts: the second part of
    /// `('a', 'b')` is `'b'`.
    pub(super) fn elements(
        &self,
        expression: &str,
        (key, part): (Option<&str>, Option<usize>),
        depth: usize,
    ) -> Vec<Value> {
        let Some(depth) = depth.checked_sub(1) else { return vec![Value::not_shown()] };
        let expression = expression.trim();
        let expression =
            [".items()", ".values()"].iter().find_map(|end| expression.strip_suffix(end)).unwrap_or(expression);
        let mut values: Vec<Value> = Vec::new();
        let mut lists: Vec<(usize, &str)> = Vec::new();
        if is_name(expression) {
            for at in self.places(expression) {
                let sign = self.around(at, expression).1;
                match self.assigned(at, expression) {
                    Some(list) => lists.push((at, list)),
                    None if is_extended(sign) || self.is_set_otherwise(at, expression) => {
                        values.push(Value::not_shown())
                    }
                    None => {}
                }
            }
        } else {
            lists.push((self.place.get(), expression));
        }
        let lists = self.last_of(&lists);
        self.has_choice.set(self.has_choice.get() || lists.len() > 1);
        for &(at, list) in lists {
            let Some(elements) = elements_of(list).or_else(|| list.strip_prefix('{')?.strip_suffix('}')) else {
                values.push(Value::not_shown());
                continue;
            };
            let is_dictionary = list.starts_with('{');
            let elements = split(elements, ',').into_iter().filter(|element| !element.trim().is_empty());
            let keys_and_values: Vec<(String, &str)> = elements
                .enumerate()
                .map(|(index, element)| match split(element, ':').as_slice() {
                    [key, value, ..] if is_dictionary => (key.trim().replace('"', "'"), *value),
                    _ => (index.to_string(), element),
                })
                .collect();
            // The elements of `[*others, c]` and `{**others, k: c}` are not all shown.
            let is_whole = keys_and_values.iter().all(|(_, value)| !value.trim_start().starts_with('*'));
            let key = key.filter(|_| is_whole).map(|key| key.replace('"', "'"));
            // Of two elements with the same key, the last one counts.
            let of_key =
                keys_and_values.iter().rev().find(|(own, _)| Some(own) == key.as_ref()).map(|(_, value)| *value);
            let all = keys_and_values.iter().map(|(_, value)| *value).filter(|_| of_key.is_none());
            let shown = |value: &str| match part {
                None => self.values(value, depth),
                Some(index) => match part_of(value.trim(), index).filter(|_| !is_dictionary) {
                    Some(part) => self.values(part, depth),
                    None => vec![Value::not_shown()],
                },
            };
            values.extend(of_key.into_iter().chain(all).flat_map(|value| self.at(at, || shown(value))));
        }
        if values.is_empty() { vec![Value::not_shown()] } else { values }
    }
}

/// Returns all concatenations of a list with an added one. If there are too many, the added part is a text that is not shown.
pub(super) fn joined(mut lists: Vec<Vec<String>>, added: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let is_shown = added.len() == 1 || !added.is_empty() && added.len() * lists.len() <= MAX_TEXTS;
    let added = if is_shown { added } else { vec![vec![NOT_SHOWN.to_owned()]] };
    if let [only] = added.as_slice() {
        lists.iter_mut().for_each(|list| list.extend_from_slice(only));
        return lists;
    }
    let pairs = lists.iter().flat_map(|list| added.iter().map(move |behind| (list, behind)));
    pairs.map(|(list, behind)| [list.as_slice(), behind.as_slice()].concat()).collect()
}

#[cfg(test)]
mod tests {
    use super::joined;
    use crate::command_line::code::{Call, Origin};
    use crate::command_line::python::calls;
    use crate::command_line::runners::NOT_SHOWN;

    #[test]
    fn an_unknown_list_is_one_word_that_is_not_shown() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let lists = || vec![words(&["a"])];
        assert_eq!(joined(lists(), vec![words(&["b"]), words(&["c"])]), [words(&["a", "b"]), words(&["a", "c"])]);
        assert_eq!(joined(lists(), Vec::new()), [words(&["a", NOT_SHOWN])]);
    }

    #[test]
    fn the_element_of_a_key_is_shown() {
        let code = "import os\nd = {'x': 'rm a', 'y': 'rm b'}\nos.system(d['y'])";
        assert_eq!(calls(code, Origin::Line), [Call::of("rm b".to_owned())]);
    }
}

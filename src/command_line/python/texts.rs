//! The texts that an expression may have: texts that are joined, paths, f-strings, `%` and `.format(…)`.

use std::sync::LazyLock;

use regex::Regex;

use super::expressions::{elements_of, end_of_expression, is_name, split};
use super::lists::joined;
use super::quotes::literal;
use super::values::Value;
use super::{MAX_TEXTS, Program};
use crate::command_line::runners::NOT_SHOWN;

/// The places of values in a text before `%`.
static SIGNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"%(?:\(\w+\))?[-+# 0-9.]*[sdrixfFeEgGcaXo]").ok());
/// The places of values in a text before `.format(`.
static BRACES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{[^{}]*\}").ok());

/// The calls that make a path of their arguments.
const PATHS: [&str; 5] = ["os.path.join(", "pathlib.Path(", "Path(", "os.fspath(", "str("];

impl Program<'_> {
    /// Returns the texts that an expression may have, in which unknown parts are [`NOT_SHOWN`].
    pub(super) fn texts(&self, expression: &str, depth: usize) -> Vec<String> {
        self.product(split(expression, '+').into_iter(), depth).into_iter().map(|parts| parts.concat()).collect()
    }

    /// Returns the text of an expression, if it has only one.
    pub(super) fn one_text(&self, expression: &str, depth: usize) -> String {
        match self.texts(expression, depth).as_slice() {
            [text] => text.clone(),
            _ => NOT_SHOWN.to_owned(),
        }
    }

    pub(super) fn texts_of_part(&self, part: &str, depth: usize) -> Vec<String> {
        let not_shown = || vec![NOT_SHOWN.to_owned()];
        if part == "sys.executable" {
            return vec!["python3".to_owned()];
        }
        let Some(inner_depth) = depth.checked_sub(1) else { return not_shown() };
        let is_element = part.ends_with(']') && part.split_once('[').is_some_and(|(name, _)| is_name(name));
        if is_name(part) || is_element {
            let values = self.values(part, depth).into_iter();
            return values
                .map(|value| if let Value::Text(text) = value { text } else { NOT_SHOWN.to_owned() })
                .collect();
        }
        // `Path("build") / "app"`
        let folders = split(part, '/');
        let path = match PATHS.iter().find_map(|name| part.strip_prefix(*name)?.strip_suffix(')')) {
            Some(inner) if end_of_expression(inner, &[]) == inner.len() => split(inner, ','),
            _ if folders.len() > 1 => folders,
            _ => Vec::new(),
        };
        if !path.is_empty() {
            let texts = self.product(path.into_iter(), inner_depth).into_iter();
            return texts.map(|parts| parts.join("/")).collect();
        }
        let mut texts = vec![String::new()];
        let mut rest = part;
        while let Some((literal, is_formatted, behind)) = literal(rest) {
            let added = if is_formatted { self.with_values(&literal, inner_depth) } else { vec![literal] };
            texts = concatenated(texts, &added);
            rest = behind.trim_start();
        }
        match rest {
            "" => texts,
            _ if rest.len() == part.len() => not_shown(),
            _ if rest.starts_with('%') => {
                let values = rest.trim_start_matches('%').trim();
                let values = split(elements_of(values).unwrap_or(values), ',');
                self.in_places(&texts.concat(), SIGNS.as_ref(), &values, inner_depth)
            }
            _ if rest.starts_with(".format(") => {
                let values = rest.strip_prefix(".format(").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
                self.in_places(&texts.concat(), BRACES.as_ref(), &split(values, ','), inner_depth)
            }
            _ => not_shown(),
        }
    }

    /// Returns the lists of texts that expressions in a row may have.
    fn product<'b>(&self, parts: impl Iterator<Item = &'b str>, depth: usize) -> Vec<Vec<String>> {
        parts.fold(vec![Vec::new()], |lists, part| {
            let texts = self.texts_of_part(part.trim(), depth);
            joined(lists, texts.into_iter().map(|text| vec![text]).collect())
        })
    }

    /// Returns the texts with values in the places of signs such as `%s` or `{}`. If there are not as many values as signs, they
    /// are not shown.
    fn in_places(&self, text: &str, signs: Option<&Regex>, values: &[&str], depth: usize) -> Vec<String> {
        let Some(signs) = signs else { return vec![NOT_SHOWN.to_owned()] };
        let values: Vec<&str> = values.iter().map(|value| value.trim()).filter(|value| !value.is_empty()).collect();
        let places: Vec<regex::Match<'_>> = signs.find_iter(text).collect();
        let is_each = places.len() == values.len() && places.iter().all(|place| matches!(place.as_str(), "%s" | "{}"));
        let (mut texts, mut at) = (vec![String::new()], 0);
        for (index, place) in places.iter().enumerate() {
            let before = text.get(at..place.start()).unwrap_or_default().to_owned();
            let value = values.get(index).filter(|_| is_each);
            let shown = value.map_or_else(|| vec![NOT_SHOWN.to_owned()], |value| self.texts(value, depth));
            texts = concatenated(concatenated(texts, &[before]), &shown);
            at = place.end();
        }
        concatenated(texts, &[text.get(at..).unwrap_or_default().to_owned()])
    }

    /// Returns the texts of an f-string, with the values of its expressions.
    fn with_values(&self, text: &str, depth: usize) -> Vec<String> {
        let mut shown = vec![String::new()];
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            shown = concatenated(shown, &[before.replace("}}", "}")]);
            if let Some(behind) = behind.strip_prefix('{') {
                shown = concatenated(shown, &["{".to_owned()]);
                rest = behind;
                continue;
            }
            let end = end_of_expression(behind, &[':', '!']);
            let (expression, behind) = behind.split_at_checked(end).unwrap_or((behind, ""));
            shown = concatenated(shown, &self.texts(expression, depth));
            rest = behind.split_once('}').map_or("", |(_, behind)| behind);
        }
        concatenated(shown, &[rest.replace("}}", "}")])
    }
}

/// Returns all concatenations of a text with an added one. If there are too many, the added part is a text that is not shown.
fn concatenated(mut texts: Vec<String>, added: &[String]) -> Vec<String> {
    match added {
        [only] => {
            texts.iter_mut().for_each(|text| text.push_str(only));
            texts
        }
        added if !added.is_empty() && added.len() * texts.len() <= MAX_TEXTS => {
            texts.iter().flat_map(|text| added.iter().map(move |behind| format!("{text}{behind}"))).collect()
        }
        _ => concatenated(texts, &[NOT_SHOWN.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use super::concatenated;
    use crate::command_line::code::{Call, Origin};
    use crate::command_line::python::calls;
    use crate::command_line::runners::NOT_SHOWN;

    #[test]
    fn the_values_of_variables_are_in_the_texts_that_use_them() {
        for text in ["f'rm {x}'", "'rm %s' % x", "'rm {}'.format(x)", "'rm ' + x"] {
            let code = format!("import os\nx = 'a'\nos.system({text})");
            assert_eq!(calls(&code, Origin::Line), [Call::of("rm a".to_owned())], "{text}");
        }
    }

    #[test]
    fn too_many_texts_are_not_shown() {
        let texts = |size: usize| vec!["a".to_owned(); size];
        assert_eq!(concatenated(texts(4), &texts(4)), vec!["aa".to_owned(); 16]);
        assert_eq!(concatenated(texts(5), &texts(4)), vec![format!("a{NOT_SHOWN}"); 5]);
        assert_eq!(concatenated(texts(1), &[]), [format!("a{NOT_SHOWN}")]);
    }
}

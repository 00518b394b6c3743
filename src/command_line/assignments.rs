//! Assignments to variables.

use super::expanded::{Argument, expand, expand_assignment, joined};
use super::tokens::{Piece, Token, Word};
use super::variables::{Value, Variables, list_of};

/// The maximum number of variables of a command that are read with each of their possible values.
pub(super) const MAX_CHOSEN_VARIABLES: usize = 2;

/// An assignment to a variable.
#[derive(Debug)]
pub(super) struct Assignment {
    /// The name of the variable.
    pub name: String,
    pub value: Value,
    /// The assignment in the normal form.
    pub form: String,
}

/// Reads `NAME=VALUE`, `NAME+=VALUE`, `NAME[INDEX]=VALUE` or `NAME=(…)`.
pub(super) fn assignment(word: &Word, variables: &Variables) -> Option<Assignment> {
    let Some(Piece::Text { text, is_quoted: false }) = word.pieces.first() else { return None };
    let size = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(size)?;
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let words = expand_assignment(word, variables);
    let whole = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let value = match rest.chars().next()? {
        '=' => match word.pieces.get(1) {
            Some(Piece::Group { sign: '=', tokens, .. }) => {
                elements(tokens, variables).map_or(Value::Unknown, |elements| list_of(&elements))
            }
            _ => match (words.as_slice(), word.pieces.as_slice()) {
                // `PY=$p` in a loop over the values of `p`.
                (_, [_, Piece::Variable { name, is_changed: false, .. }])
                    if rest == "=" && matches!(variables.values.get(name), Some(Value::Among(_))) =>
                {
                    let value = variables.value(name);
                    if variables.take(value.size()) { value } else { Value::Unknown }
                }
                (words, _) if words.iter().all(Argument::is_known) => Value::One(behind_sign(&whole)),
                ([only], _) => {
                    let text = behind_sign(&only.text);
                    let before = only.text.len() - text.len();
                    let unknown_to = only.unknown_to.unwrap_or_default().saturating_sub(before);
                    Value::Partly { text, unknown_to, is_output: only.is_output }
                }
                _ => Value::Unknown,
            },
        },
        '+' if rest.starts_with("+=") => match (word.pieces.get(1), variables.one(name)) {
            (Some(Piece::Group { sign: '=', tokens, .. }), _) => {
                let added = elements(tokens, variables).map(|elements| list_of(&elements));
                added.map_or(Value::Unknown, |added| with_elements(variables.values.get(name), &added))
            }
            (_, Some(old)) if words.iter().all(Argument::is_known) => {
                Value::One(format!("{old}{}", behind_sign(&whole)))
            }
            _ => Value::Unknown,
        },
        '[' if whole.contains("]=") || whole.contains("]+=") => {
            let index = rest.strip_prefix('[').and_then(|rest| rest.split_once("]=")?.0.parse::<usize>().ok());
            let list = variables.list(name).filter(|_| words.iter().all(Argument::is_known));
            let mut list = list.map(<[String]>::to_vec).unwrap_or_default();
            match index.and_then(|index| list.get_mut(index)) {
                Some(element) => {
                    *element = behind_sign(&whole);
                    Value::List(list)
                }
                None => Value::Unknown,
            }
        }
        _ => return None,
    };
    let value = if variables.take(value.elements()) { value } else { Value::Unknown };
    Some(Assignment { name: name.to_owned(), value, form: joined(&whole) })
}

/// Reads an assignment, once for each of the values that a branch may give to a variable in it.
pub(super) fn assignment_of_all(word: &Word, variables: &mut Variables) -> Option<Assignment> {
    assignment_within(word, variables, MAX_CHOSEN_VARIABLES)
}

fn assignment_within(word: &Word, variables: &mut Variables, depth: usize) -> Option<Assignment> {
    let mut found = assignment(word, variables)?;
    let groups = word.pieces.iter().filter_map(|piece| match piece {
        Piece::Group { sign: '=', tokens, .. } => Some(tokens),
        _ => None,
    });
    let words: Vec<&Word> = [word].into_iter().chain(groups.flat_map(|tokens| words_of(tokens))).collect();
    let varying = variables.varying(&words, depth > 0).filter(|varying| !varying.is_loop);
    if let (Some(varying), Some(depth)) = (varying, depth.checked_sub(1)) {
        let mut values: Vec<Value> = Vec::new();
        for value in &varying.values {
            variables.choose(&varying.name, value.clone());
            values.extend(assignment_within(word, variables, depth).map(|assignment| assignment.value));
        }
        variables.restore(varying);
        found.value = Value::one_of(&values.iter().collect::<Vec<_>>());
    }
    Some(found)
}

fn words_of(tokens: &[Token]) -> impl Iterator<Item = &Word> {
    tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    })
}

/// Returns the elements in `NAME=(…)`, or `None` if they depend on a variable that has one of several values, or have indices.
fn elements(tokens: &[Token], variables: &Variables) -> Option<Vec<Argument>> {
    let words: Vec<&Word> = words_of(tokens).collect();
    let elements: Vec<Argument> = words.iter().flat_map(|word| expand(word, variables)).collect();
    // `[1]=a` is the element with this index.
    let has_index = |word: &Argument| word.text.starts_with('[') && word.text.contains("]=");
    (variables.varying(&words, true).is_none() && !elements.iter().any(has_index)).then_some(elements)
}

/// Returns the value of an array behind `NAME+=(…)`.
fn with_elements(before: Option<&Value>, added: &Value) -> Value {
    let Value::List(added) = added else { return Value::Unknown };
    match before {
        None => Value::List(added.clone()),
        // The value of a variable that is not set is an empty text.
        Some(Value::One(text)) if text.is_empty() => Value::List(added.clone()),
        Some(Value::One(text)) => Value::List([std::slice::from_ref(text), added.as_slice()].concat()),
        Some(Value::List(texts)) => Value::List([texts.as_slice(), added.as_slice()].concat()),
        Some(Value::Maybe(values)) => {
            let added = Value::List(added.clone());
            let values: Vec<Value> = values.iter().map(|value| with_elements(Some(value), &added)).collect();
            Value::one_of(&values.iter().collect::<Vec<_>>())
        }
        Some(_) => Value::Unknown,
    }
}

/// Returns the value in `NAME=VALUE`.
fn behind_sign(text: &str) -> String {
    text.split_once('=').map_or_else(String::new, |(_, value)| value.to_owned())
}

//! Assignments to variables.

use super::expanded::{Argument, expand, expand_assignment, joined};
use super::tokens::{Piece, Token, Word};
use super::variables::{Value, Variables};

/// The maximum number of variables of a command that are read with each of their possible values.
pub(super) const MOST_CHOSEN: usize = 2;

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
                let elements = tokens.iter().filter_map(|token| match token {
                    Token::Word(word) => Some(expand(word, variables)),
                    _ => None,
                });
                let elements: Vec<Argument> = elements.flatten().collect();
                let texts = elements.iter().map(|word| word.text.clone()).collect();
                // `[1]=a` is the element with this index.
                let is_plain =
                    |word: &Argument| word.is_known() && !(word.text.starts_with('[') && word.text.contains("]="));
                if elements.iter().all(is_plain) { Value::List(texts) } else { Value::Unknown }
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
        '+' if rest.starts_with("+=") => match variables.one(name) {
            Some(old) if words.iter().all(Argument::is_known) => Value::One(format!("{old}{}", behind_sign(&whole))),
            _ => Value::Unknown,
        },
        '[' if whole.contains("]=") || whole.contains("]+=") => Value::Unknown,
        _ => return None,
    };
    Some(Assignment { name: name.to_owned(), value, form: joined(&whole) })
}

/// Reads an assignment, once for each of the values that a branch may give to a variable in it.
pub(super) fn assignment_of_all(word: &Word, variables: &mut Variables) -> Option<Assignment> {
    assignment_within(word, variables, MOST_CHOSEN)
}

fn assignment_within(word: &Word, variables: &mut Variables, depth: usize) -> Option<Assignment> {
    let mut found = assignment(word, variables)?;
    let varying = variables.varying(&[word], depth > 0).filter(|varying| !varying.is_loop);
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

/// Returns the value in `NAME=VALUE`.
fn behind_sign(text: &str) -> String {
    text.split_once('=').map_or_else(String::new, |(_, value)| value.to_owned())
}

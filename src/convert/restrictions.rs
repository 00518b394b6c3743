//! Notes the cases of which only graders are left that an agent passes by doing nothing.

use serde_json::{Map, Value, json};

use super::{Converted, NewCase, Note};
use crate::values::Pattern;

/// The key that marks the body of a grader that only restricts an agent. It is not written.
const MARK: &str = "only-restricts";

/// Marks the body of a grader that an agent passes by doing nothing.
pub fn restricting(body: Value) -> Value {
    restricting_if(true, body)
}

/// Marks the body of a grader if an agent passes it by doing nothing.
pub fn restricting_if(only_restricts: bool, mut body: Value) -> Value {
    if let Some(map) = body.as_object_mut().filter(|_| only_restricts) {
        map.insert(MARK.to_owned(), json!(true));
    }
    body
}

/// Returns true if a pattern matches an empty answer.
pub fn matches_nothing(pattern: &str) -> bool {
    pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.is_match(""))
}

/// Adds a note to each case that lost a grader, if the graders that are left only restrict what an agent does, and removes the
/// marks of the graders.
pub fn note(converted: &mut Converted) {
    for case in converted.groups.iter_mut().flat_map(|group| &mut group.cases) {
        let graders = bodies(case);
        let has_only_restrictions = !graders.is_empty() && graders.iter().all(|body| only_restricts(body));
        graders.into_iter().for_each(|body| body.retain(|key, _| key != MARK));
        if has_only_restrictions && case.notes.iter().any(|note| note.is_of_lost_grader) {
            let message = format!(
                "the graders of case `{}` that are left only restrict what an agent does, so an agent that does nothing passes \
                 (unless its workspace breaks one from the start): add a grader that requires the result",
                case.name
            );
            case.notes.push(Note::new(&case.from, "", message));
        }
    }
}

/// Returns the bodies of the graders of a case.
fn bodies(case: &mut NewCase) -> Vec<&mut Map<String, Value>> {
    let graders = case.keys.get_mut("graders").and_then(Value::as_array_mut).into_iter().flatten();
    graders.filter_map(|grader| grader.as_object_mut()?.values_mut().next()?.as_object_mut()).collect()
}

/// Returns true if an agent that does nothing passes a grader, or if the grader decides nothing.
fn only_restricts(body: &Map<String, Value>) -> bool {
    body.contains_key(MARK) || body.get("diagnostic").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Group;
    use super::*;

    #[test]
    fn a_case_with_marked_graders_alone_is_noted_and_written_without_marks() {
        let marked = json!({"output": restricting(json!({"not-contains": "x"}))});
        let diagnostic = json!({"command": {"run": "make", "diagnostic": true}});
        let required = json!({"command": restricting_if(false, json!({"run": "make"}))});
        for (graders, has_lost, is_noted) in [
            (vec![marked.clone(), diagnostic.clone()], true, true),
            (vec![marked.clone(), diagnostic.clone()], false, false),
            (vec![marked, required], true, false),
        ] {
            let mut case = NewCase::new("a".to_owned(), Path::new("a.yaml"));
            if has_lost {
                case.notes.push(Note::new(Path::new("a.yaml"), "", "lost").of_lost_grader());
            }
            case.keys.insert("graders".to_owned(), json!(graders));
            let (name, description) = ("a".to_owned(), String::new());
            let group = Group { name, description, is_compared: false, cases: vec![case] };
            let mut converted = Converted { groups: vec![group], ..Converted::default() };
            note(&mut converted);
            let case = &converted.groups[0].cases[0];
            assert_eq!(case.notes.len(), usize::from(has_lost) + usize::from(is_noted), "{:?}", case.keys);
            assert!(!json!(case.keys).to_string().contains(MARK), "{:?}", case.keys);
        }
    }
}

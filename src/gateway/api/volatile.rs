//! Removes the parts of a JSON value that a path with wildcards names.

use serde_json::Value;

/// Removes the value at a path. `*` matches one key or element, `**` any number of them.
pub(super) fn remove(value: &mut Value, path: &str) {
    let steps: Vec<&str> = path.split('/').skip(1).collect();
    at(value, &steps);
}

fn at(value: &mut Value, steps: &[&str]) {
    let Some((step, rest)) = steps.split_first() else { return };
    if *step == "**" {
        at(value, rest);
        children(value, |child| at(child, steps));
        return;
    }
    if *step == "*" && !rest.is_empty() {
        children(value, |child| at(child, rest));
        return;
    }
    match value {
        Value::Object(map) if rest.is_empty() => {
            if *step == "*" {
                map.clear();
            } else {
                map.shift_remove(*step);
            }
        }
        Value::Object(map) => {
            if let Some(child) = map.get_mut(*step) {
                at(child, rest);
            }
        }
        Value::Array(elements) if *step == "*" => elements.clear(),
        _ => {}
    }
}

fn children(value: &mut Value, mut each: impl FnMut(&mut Value)) {
    match value {
        Value::Object(map) => map.values_mut().for_each(&mut each),
        Value::Array(elements) => elements.iter_mut().for_each(&mut each),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_parts_at_a_place_and_at_any_depth() {
        let value = json!({"a": {"x": 1, "y": 2}, "x": 3, "list": [{"x": 4, "z": [{"x": 5}]}, 6]});
        for (path, wanted) in [
            ("/x", json!({"a": {"x": 1, "y": 2}, "list": [{"x": 4, "z": [{"x": 5}]}, 6]})),
            ("/a/x", json!({"a": {"y": 2}, "x": 3, "list": [{"x": 4, "z": [{"x": 5}]}, 6]})),
            ("/list/*/x", json!({"a": {"x": 1, "y": 2}, "x": 3, "list": [{"z": [{"x": 5}]}, 6]})),
            ("/**/x", json!({"a": {"y": 2}, "list": [{"z": [{}]}, 6]})),
            ("/list/*/z/*", json!({"a": {"x": 1, "y": 2}, "x": 3, "list": [{"x": 4, "z": []}, 6]})),
            ("/no/such/place", value.clone()),
        ] {
            let mut value = value.clone();
            remove(&mut value, path);
            assert_eq!(value, wanted, "{path}");
        }
    }
}

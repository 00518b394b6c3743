//! Lines that are no message: whether they may hold one, so that its content is lost.

use serde_json::{Deserializer, Value};

/// Returns true if a line that could not be read may hold a message, or a part of one: behind something that another
/// program printed, behind control characters, or as the rest of a torn line. Every message has one of the keys; without
/// keys, any object may be a message.
pub(crate) fn may_hold_message(line: &str, keys: &[&str]) -> bool {
    let is_named = |text: &str| keys.is_empty() || keys.iter().any(|key| text.contains(&format!("\"{key}\"")));
    let line = line.trim();
    if line.starts_with('{') || line.starts_with("[{") {
        return true;
    }
    let Some(at) = line.find("{\"") else {
        // The rest of an object.
        return line.ends_with('}') && line.contains("\":") && is_named(line);
    };
    let embedded = &line[at..];
    let mut values = Deserializer::from_str(embedded).into_iter::<Value>();
    match values.next() {
        // What closes more than was opened is the rest of a torn line.
        Some(Ok(_)) if embedded[values.byte_offset()..].trim_start().starts_with(['}', ']', ',']) => is_named(line),
        Some(Ok(value)) => keys.is_empty() || keys.iter().any(|key| value.get(key).is_some()),
        _ => is_named(embedded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_seen_behind_other_text_and_a_log_line_is_none() {
        for (line, is_lost) in [
            (r#"{"type":"assis"#, true),
            (r#"DEBUG: {"type":"assistant","message":{}}"#, true),
            ("\u{1b}[0m{\"type\":\"user\"}", true),
            (" 50% \r{\"type\":\"user\"}", true),
            (r#"DEBUG: {"type":"assistant","mess"#, true),
            (r#"t","type":"tool_use","input":{"command":"rm"}}]}}"#, true),
            (r#"ype":"user","message":{"content":[]},"type":"user"}"#, true),
            (r#""type":"user","message":{"content":[]}}"#, true),
            (r#"settings: {"colour":"red"}"#, false),
            (r#"settings: {"colour":"re"#, false),
            ("{}", true),
            ("plain text", false),
            ("a set {a, b}", false),
        ] {
            assert_eq!(may_hold_message(line, &["type"]), is_lost, "{line}");
        }
        assert!(may_hold_message(r#"x {"a":1}"#, &[]) && !may_hold_message("x {a}", &[]));
    }
}

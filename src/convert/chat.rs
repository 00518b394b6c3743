//! Chat messages as the prompts of a case.

use serde_json::Value;

/// Returns the texts of the system and the text of the user.
///
/// # Errors
/// Returns the reason if the messages are more than one prompt: they continue a conversation, or hold images.
pub fn single(messages: &[Value]) -> Result<(Vec<String>, String), String> {
    let (mut system, mut user) = (Vec::new(), Vec::new());
    for message in messages {
        let content = content(message.get("content"))?;
        match message.get("role").and_then(Value::as_str) {
            Some("system" | "developer") => system.push(content),
            Some("user") => user.push(content),
            Some(other) => {
                return Err(format!("the chat continues a conversation: it has a message of the role `{other}`"));
            }
            None => return Err("a message has no role".to_owned()),
        }
    }
    match user.as_slice() {
        [one] => Ok((system, one.clone())),
        [] => Err("the chat has no user message".to_owned()),
        _ => Err("the chat has several user messages; only one is supported".to_owned()),
    }
}

fn content(value: Option<&Value>) -> Result<String, String> {
    match value {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => {
            let texts: Option<Vec<&str>> = parts.iter().map(|part| part.get("text")?.as_str()).collect();
            texts
                .map(|texts| texts.join("\n"))
                .ok_or_else(|| "a message holds more than text, such as an image".to_owned())
        }
        _ => Err("a message has no content".to_owned()),
    }
}

//! Prompts of promptfoo: texts, files of texts, and lists of chat messages.

use std::path::Path;

use serde_json::{Map, Value};

use super::super::{Note, chat, one_line, source, template};
use crate::text::first_chars;
use crate::yaml;

/// The maximum number of characters of a prompt in a note.
const MAX_PROMPT_CHARS: usize = 40;

/// A prompt before variables are filled in.
#[derive(Debug, Clone)]
pub struct Prompt {
    labels: Vec<String>,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    Text(String),
    /// The texts of the system, and the text of the user.
    Chat(Vec<String>, String),
}

impl Prompt {
    /// Returns the label or the text of the prompt, shortened.
    pub fn name(&self) -> String {
        let name = one_line(self.labels.first().map(String::as_str).unwrap_or_default());
        first_chars(&name, MAX_PROMPT_CHARS).to_owned()
    }

    /// Returns true if a list of names contains this prompt.
    pub fn is_one_of(&self, names: &[String]) -> bool {
        let is_named = |name: &String| match name.strip_suffix('*') {
            Some(start) => self.labels.iter().any(|label| label.starts_with(start)),
            None => self.labels.contains(name),
        };
        names.iter().any(is_named)
    }

    /// Returns the system prompt and the prompt with their variables.
    pub fn filled(
        &self,
        vars: &Map<String, Value>,
        prefix: &str,
        suffix: &str,
        missing: &mut Vec<String>,
    ) -> Result<(Option<String>, String), String> {
        let mut fill = |text: &str| {
            let (text, without) = template::fill(text, vars)?;
            missing.extend(without);
            Ok::<_, String>(text)
        };
        match &self.body {
            Body::Text(text) => Ok((None, fill(&format!("{prefix}{text}{suffix}"))?)),
            Body::Chat(..) if !prefix.is_empty() || !suffix.is_empty() => {
                Err("its `prefix` or `suffix` would be put around a list of chat messages".to_owned())
            }
            Body::Chat(system, user) => {
                let system = system.iter().map(|text| fill(text)).collect::<Result<Vec<_>, _>>()?.join("\n\n");
                Ok((Some(system).filter(|system| !system.trim().is_empty()), fill(user)?))
            }
        }
    }
}

/// Returns the prompts of a configuration.
pub fn all(value: Option<&Value>, file: &Path, folder: &Path, notes: &mut Vec<Note>) -> Vec<Prompt> {
    let list: Vec<(String, &Value)> = match value {
        None | Some(Value::Null) => {
            notes.push(Note::new(file, "prompts", "no case was written: there are no prompts"));
            return Vec::new();
        }
        Some(Value::Array(list)) => {
            list.iter().enumerate().map(|(at, item)| (format!("prompts[{at}]"), item)).collect()
        }
        Some(Value::Object(_)) => {
            notes.push(Note::new(file, "prompts", "no case was written: a map of prompts is not known; write a list"));
            return Vec::new();
        }
        Some(one) => vec![("prompts".to_owned(), one)],
    };
    let mut prompts = Vec::new();
    for (key, item) in list {
        let read = match item {
            Value::String(text) => one(text, None, folder),
            Value::Object(map) => {
                let text = ["raw", "id", "file"].iter().find_map(|name| map.get(*name)?.as_str());
                let label = map.get("label").and_then(Value::as_str);
                let others: Vec<&String> = map
                    .keys()
                    .filter(|name| !["raw", "id", "file", "label", "display"].contains(&name.as_str()))
                    .collect();
                match text {
                    _ if !others.is_empty() => {
                        Err(format!("its key `{}` has no equivalent", others.first().map_or("", |it| it)))
                    }
                    Some(text) => one(text, label, folder),
                    None => Err("it has no text".to_owned()),
                }
            }
            _ => Err("this is neither a text nor a map".to_owned()),
        };
        match read {
            Ok(found) => prompts.extend(found),
            Err(why) => notes.push(Note::new(file, key, format!("no case was written for this prompt: {why}"))),
        }
    }
    prompts
}

fn one(text: &str, label: Option<&str>, folder: &Path) -> Result<Vec<Prompt>, String> {
    let make = |text: &str| {
        let mut labels: Vec<String> = label.map(str::to_owned).into_iter().collect();
        labels.push(text.to_owned());
        Ok(Prompt { labels, body: body(text)? })
    };
    let is_program = |name: &str| {
        let bare = name.rsplit_once(':').map_or(name, |(name, _)| name);
        [".js", ".cjs", ".mjs", ".ts", ".py", ".rb", ".sh"].iter().any(|end| name.ends_with(end) || bare.ends_with(end))
    };
    let is_file = |name: &str| {
        let known = [".txt", ".md", ".json", ".yaml", ".yml", ".csv", ".jsonl", ".j2"];
        !name.contains('\n') && !name.contains("{{") && known.iter().any(|end| name.ends_with(end))
    };
    let named = text.strip_prefix("file://");
    let path = match named {
        Some(path) => path,
        None if !text.contains(char::is_whitespace) && (is_program(text) || text.starts_with("exec:")) => text,
        None if is_file(text) && folder.join(text).is_file() => text,
        None => return Ok(vec![make(text)?]),
    };
    if is_program(path) || path.starts_with("exec:") {
        return Err(format!("`{path}` is a program that makes the prompt"));
    }
    if path.contains('*') {
        return Err(format!("`{path}` names several files; name each file"));
    }
    if [".csv", ".jsonl"].iter().any(|end| path.ends_with(end)) {
        return Err(format!("`{path}` is a table of prompts"));
    }
    let from = source::named(folder, path)?;
    let content = yaml::read(&from).map_err(|error| error.message().to_owned())?;
    if path.ends_with(".txt") {
        // A text file holds several prompts, divided by lines of three hyphens.
        let parts: Vec<&str> = content.split("\n---\n").map(str::trim).filter(|part| !part.is_empty()).collect();
        return parts.iter().map(|part| make(part)).collect();
    }
    Ok(vec![make(content.trim())?])
}

/// Returns the messages of a prompt that is a chat, or the text.
fn body(text: &str) -> Result<Body, String> {
    let trimmed = text.trim();
    let is_list = trimmed.starts_with('[') || trimmed.starts_with("- role:") || trimmed.starts_with("- content:");
    if !is_list {
        return Ok(Body::Text(text.to_owned()));
    }
    let list: Option<Vec<Value>> = serde_json::from_str(trimmed).ok().or_else(|| {
        yaml::parse::<Value>(Path::new("prompt"), trimmed).ok().and_then(|value| value.as_array().cloned())
    });
    let Some(list) = list else {
        return match trimmed.starts_with("- ") || trimmed.contains("\"role\"") {
            true => Err("it looks like a list of chat messages and cannot be read as one".to_owned()),
            false => Ok(Body::Text(text.to_owned())),
        };
    };
    if list.is_empty() || list.iter().any(|message| message.get("role").is_none()) {
        return Ok(Body::Text(text.to_owned()));
    }
    let (system, user) = chat::single(&list)?;
    Ok(Body::Chat(system, user))
}

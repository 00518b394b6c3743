//! Guesses the format of a path by the files and keys that only one format has.

use std::path::Path;

use serde_json::Value;

use super::{Format, source, table};
use crate::yaml;

/// The maximum size in bytes of a file that is looked at.
const MAX_BYTES: u64 = 4 << 20;

/// Returns the format that a path looks like.
pub fn format(path: &Path) -> Option<Format> {
    if path.is_dir() {
        let has = |name: &str| path.join(name).is_file();
        let all = [
            ("task.toml", Format::Harbor),
            ("task.yaml", Format::TerminalBench),
            ("promptfooconfig.yaml", Format::Promptfoo),
            ("promptfooconfig.yml", Format::Promptfoo),
            ("promptfooconfig.json", Format::Promptfoo),
            ("SKILL.md", Format::Agentskills),
            ("prompt.md", Format::ClaudePlugin),
        ];
        let found = all.into_iter().find(|(name, _)| has(name)).map(|(_, format)| format);
        return found.or_else(|| has("case.yaml").then(|| of_file(&path.join("case.yaml"))).flatten());
    }
    of_file(path)
}

fn of_file(path: &Path) -> Option<Format> {
    let is_small = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
    let name = path.file_name()?.to_str()?;
    if !is_small {
        return None;
    }
    match name {
        "task.toml" => return Some(Format::Harbor),
        "prompt.md" => return Some(Format::ClaudePlugin),
        _ => {}
    }
    if [".jsonl", ".csv"].iter().any(|end| name.ends_with(end)) {
        return of_columns(&table::read(path).ok()?.first()?.columns);
    }
    match source::value(path).ok().or_else(|| source::json(path, &yaml::read(path).ok()?).ok())? {
        Value::Object(keys) => {
            let has = |key: &str| keys.contains_key(key);
            match () {
                () if has("stimuli") => Some(Format::Vally),
                () if has("task_id") && has("success_criteria") => Some(Format::CoderEval),
                () if has("evals") => Some(Format::Agentskills),
                () if has("task") && has("graders") => Some(Format::Touchstone),
                () if has("execution") => Some(Format::ClaudePlugin),
                () if has("instruction") => Some(Format::TerminalBench),
                () if has("prompts") && (has("tests") || has("providers")) => Some(Format::Promptfoo),
                () => of_columns(&keys),
            }
        }
        Value::Array(list) => match list.first()? {
            Value::Object(keys) if keys.contains_key("should_trigger") => Some(Format::Agentskills),
            Value::Object(keys) => of_columns(keys),
            _ => None,
        },
        _ => None,
    }
}

fn of_columns(columns: &serde_json::Map<String, Value>) -> Option<Format> {
    let has = |key: &str| columns.contains_key(key);
    match () {
        () if has("FAIL_TO_PASS") => Some(Format::SweBench),
        () if has("input") && has("target") => Some(Format::Inspect),
        () => None,
    }
}

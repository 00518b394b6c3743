//! Translates the graders of `claude plugin eval`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::parts::{common, is_one, number, with};
use super::super::refused::Refused;
use super::super::restrictions::{matches_nothing, restricting, restricting_if};
use super::super::{Note, UNKNOWN, patterns};
use crate::paths;
use crate::skill::Skill;
use crate::values::{PathGlob, Pattern, escaped_glob};

/// Keys of a grader for people.
const BESIDE: [&str; 5] = ["description", "metadata", "note", "notes", "tags"];

/// The reason why a grader with a key that is not known has no equivalent.
const UNKNOWN_KEY: &str = "the key is not known, and may change what is checked";

/// A grader as its file describes it.
pub struct Source {
    pub file: PathBuf,
    /// The key in the file; empty for a file of its own.
    pub key: String,
    pub name: String,
    pub keys: Map<String, Value>,
    /// The text below the front matter.
    pub body: String,
}

/// The translation of a grader.
enum Translated {
    /// A grader: its kind and its body.
    Grader(&'static str, Value),
    /// A question for the judge.
    Question(String),
}

/// A question of one rubric.
struct Question {
    name: String,
    ask: String,
    weight: f64,
    is_indicator: bool,
}

impl Source {
    fn note(&self, key: &str, message: impl Into<String>) -> Note {
        let key =
            [self.key.as_str(), key].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(".");
        let key = if key.is_empty() { "type".to_owned() } else { key };
        Note::new(&self.file, key, message)
    }

    /// Returns the note that the grader is left out because of a key.
    fn lost(&self, key: &str, why: &str) -> Note {
        self.note(key, format!("the grader `{}` has no equivalent: {why}", self.name)).of_lost_grader()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.keys.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    /// Returns the text of a key, or else the body.
    fn content(&self, key: &str) -> Option<&str> {
        self.text(key).or_else(|| Some(self.body.trim()).filter(|body| !body.is_empty()))
    }

    /// Returns true if the body is part of the check, and not an explanation for people.
    fn uses_body(&self) -> bool {
        match self.kind() {
            "regex" => self.text("pattern").is_none(),
            "llm" => self.text("criteria").is_none(),
            _ => false,
        }
    }

    /// Returns true if the source reports the grader and does not count it when a run without the plugin is compared.
    fn is_indicator(&self) -> bool {
        let about_mocks = |key: &str| self.text(key) == Some("mock_calls");
        match self.text("arm") {
            Some("with-only") => true,
            Some("both") => false,
            _ => {
                self.kind() == "tool_used" && self.text("tool") == Some("Skill")
                    || self.kind() == "regex" && about_mocks("target")
                    || self.kind() == "llm" && about_mocks("focus")
            }
        }
    }

    /// Returns a pattern, which must not begin or end with white space: whether the source keeps it is not known.
    fn pattern(&self, key: &'static str) -> Result<Option<&str>, Refused<&'static str>> {
        match self.keys.get(key).and_then(Value::as_str) {
            None | Some("") => Ok(None),
            Some(pattern) if pattern.trim() != pattern => {
                Err((key, "white space around it may be a part of it; write `\\s` or `[ ]` instead".to_owned()))
            }
            pattern => Ok(pattern),
        }
    }

    /// Returns a key whose value is not one that the source reads, with the reason. A default in its place would make
    /// another check.
    fn wrong(&self) -> Option<(&'static str, String)> {
        const TEXTS: [&str; 9] =
            ["type", "arm", "pattern", "flags", "match", "tool", "input_match", "path", "criteria"];
        let is_other = |key: &&str| self.keys.get(*key).is_some_and(|value| !value.is_string());
        if let Some(key) = TEXTS.into_iter().find(is_other) {
            return Some((key, "this is not a text".to_owned()));
        }
        let arm = self.text("arm").filter(|arm| !["with-only", "both"].contains(arm));
        arm.map(|arm| ("arm", format!("the arm `{arm}` is not known")))
    }

    /// Returns the keys that the translation does not know.
    fn unknown(&self) -> Vec<&String> {
        let own: &[&str] = match self.kind() {
            "regex" => &["pattern", "flags", "match", "target"],
            "tool_used" => &["tool", "input_match", "min", "max"],
            "tool_order" => &["before", "after"],
            "file_exists" => &["path", "exists"],
            "llm" => &["criteria", "focus"],
            _ => return Vec::new(),
        };
        let is_known = |key: &str| ["type", "weight", "arm", "name"].contains(&key) || own.contains(&key);
        self.keys.keys().filter(|key| !is_known(key)).collect()
    }
}

/// Returns the graders of a case.
///
/// # Errors
/// Returns the reason if no grader would decide the case.
pub fn convert(
    sources: &[Source],
    skills: &[Skill],
    has_files: bool,
    notes: &mut Vec<Note>,
    remarks: &mut Vec<String>,
) -> Result<Vec<Value>, String> {
    if sources.is_empty() {
        return Err("it has no grader".to_owned());
    }
    // The source counts them if there is nothing else.
    let only_indicators = sources.iter().all(Source::is_indicator);
    let mut graders = Vec::new();
    let mut questions = Vec::new();
    for source in sources {
        let is_indicator = source.is_indicator() && !only_indicators;
        let weight = match source.keys.get("weight") {
            None => 1.0,
            Some(weight) => weight.as_f64().filter(|weight| weight.is_finite() && *weight > 0.0).unwrap_or_else(|| {
                notes.push(source.note("weight", "this is not a number above 0; 1 is used"));
                1.0
            }),
        };
        let (beside, unknown): (Vec<&String>, Vec<&String>) =
            source.unknown().into_iter().partition(|key| BESIDE.contains(&key.as_str()));
        notes.extend(beside.into_iter().map(|key| source.note(key, UNKNOWN)));
        let unknown = unknown.first().map(|key| (key.as_str(), UNKNOWN_KEY.to_owned()));
        if let Some((key, why)) = unknown.or_else(|| source.wrong()) {
            notes.push(source.lost(key, &why));
            continue;
        }
        if !source.body.trim().is_empty() && !source.uses_body() {
            remarks.push(format!("Grader `{}`: {}", source.name, source.body));
        }
        match translate(source, skills, has_files, notes) {
            Err((key, why)) => notes.push(source.lost(key, &why)),
            Ok(Translated::Question(ask)) => {
                questions.push(Question { name: source.name.clone(), ask, weight, is_indicator })
            }
            Ok(Translated::Grader(kind, mut body)) => {
                let keys = common(&source.name, weight, is_indicator);
                // A list of rules has no place for further keys.
                if let Value::Array(rules) = &body {
                    body = json!({"rules": rules});
                }
                graders.push((is_indicator, json!({kind: with(keys, body)})));
            }
        }
    }
    for (name, is_indicator) in [("criteria", false), ("criteria-indicators", true)] {
        let own: Vec<&Question> = questions.iter().filter(|question| question.is_indicator == is_indicator).collect();
        if own.is_empty() {
            continue;
        }
        let weight = own.iter().map(|question| question.weight).sum();
        let criteria = own.iter().map(|question| {
            let mut criterion = json!({"id": question.name, "ask": question.ask});
            if let Some(map) = criterion.as_object_mut().filter(|_| !is_one(question.weight)) {
                map.insert("weight".to_owned(), number(question.weight));
            }
            criterion
        });
        // A judge does not see the final answer by itself.
        let body = json!({"show": ["closing"], "criteria": criteria.collect::<Vec<_>>()});
        graders.push((is_indicator, json!({"rubric": with(common(name, weight, is_indicator), body)})));
    }
    if graders.iter().all(|(is_indicator, _)| *is_indicator) {
        return Err("none of the graders that decide it has an equivalent".to_owned());
    }
    Ok(graders.into_iter().map(|(_, grader)| grader).collect())
}

fn translate(
    source: &Source,
    skills: &[Skill],
    has_files: bool,
    notes: &mut Vec<Note>,
) -> Result<Translated, Refused<&'static str>> {
    match source.kind() {
        "regex" => regex(source),
        "tool_used" => tool_used(source, skills),
        "tool_order" => tool_order(source),
        "file_exists" => file_exists(source, has_files, notes),
        "llm" => llm(source),
        "baseline" => Err(("type", "the reference is a transcript of another agent's format".to_owned())),
        "" => Err(("type", "the key is missing".to_owned())),
        other => Err(("type", format!("the type `{other}` is not known"))),
    }
}

/// The subject of a grader.
enum Target<'a> {
    LastMessage,
    Trace,
    Files,
    File(&'a str),
}

fn target<'a>(source: &'a Source, key: &'static str) -> Result<Target<'a>, Refused<&'static str>> {
    match source.keys.get(key) {
        None => Ok(Target::LastMessage),
        Some(Value::String(word)) => match word.as_str() {
            "last_message" => Ok(Target::LastMessage),
            "trace" => Ok(Target::Trace),
            "files" => Ok(Target::Files),
            other => Err((key, format!("`{other}` is not part of a trace"))),
        },
        Some(Value::Object(map)) if map.keys().any(|name| !["source", "path"].contains(&name.as_str())) => {
            Err((key, "it has a key that is not known, and may change what is checked".to_owned()))
        }
        Some(map) => match (map.get("source").and_then(Value::as_str), map.get("path").and_then(Value::as_str)) {
            (Some("file"), Some(path)) => match paths::leaves(Path::new(path)) {
                None => Ok(Target::File(path)),
                Some(why) => Err((key, format!("the path `{path}` {why}"))),
            },
            _ => Err((key, "it names no file".to_owned())),
        },
    }
}

fn regex(source: &Source) -> Result<Translated, Refused<&'static str>> {
    let pattern = source.pattern("pattern")?.or_else(|| source.content("pattern"));
    let pattern = pattern.ok_or(("pattern", "there is no pattern".to_owned()))?;
    let pattern =
        patterns::from_javascript(pattern, source.text("flags").unwrap_or_default()).map_err(|why| ("pattern", why))?;
    let found = match source.text("match").unwrap_or("contains") {
        "contains" => true,
        "not_contains" | "count:0" => false,
        other => return Err(("match", format!("`{other}` counts matches"))),
    };
    match (target(source, "target")?, found) {
        (Target::LastMessage, found) => {
            let key = if found { "regex" } else { "not-regex" };
            let only_restricts = matches_nothing(&pattern) == found;
            Ok(Translated::Grader("output", restricting_if(only_restricts, json!({key: pattern}))))
        }
        (Target::File(path), true) => Ok(Translated::Grader("files", json!({"matches": {path: pattern}}))),
        (Target::File(_), false) => Err(("match", "no grader requires that a file does not match".to_owned())),
        (Target::Trace, _) => Err(("target", "the trace has another form here".to_owned())),
        (Target::Files, _) => Err(("target", "no grader matches the list of created files".to_owned())),
    }
}

/// Returns a matcher for calls of a tool.
fn matcher(tool: &str, input: Option<&str>) -> Result<Value, String> {
    let name = escaped_glob(tool);
    Ok(match input {
        Some(input) => json!({"name": name, "input": patterns::from_javascript(input, "")?}),
        None => json!({"name": name}),
    })
}

fn tool_used(source: &Source, skills: &[Skill]) -> Result<Translated, Refused<&'static str>> {
    let tool = source.text("tool").ok_or(("tool", "there is no tool".to_owned()))?;
    let input = source.pattern("input_match")?;
    let count = |key: &'static str| match source.keys.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or((key, "this is not a whole number from 0".to_owned())),
    };
    let (min, max) = (count("min")?.unwrap_or(1), count("max")?);
    match (min, max) {
        (0, None) => return Err(("min", "it accepts any number of calls".to_owned())),
        (min, Some(max)) if min > max => return Err(("min", "no number of calls is accepted".to_owned())),
        _ => {}
    }
    let matcher = matcher(tool, input).map_err(|why| ("input_match", why))?;
    if let Some(skill) = (tool == "Skill").then(|| skill_of(&matcher, input, skills)).flatten() {
        match (min, max) {
            (1, None) => return Ok(Translated::Grader("skills", json!({"used": [skill]}))),
            (0, Some(0)) => return Ok(Translated::Grader("skills", restricting(json!({"not-used": [skill]})))),
            _ => {}
        }
    }
    if max == Some(0) {
        return Ok(Translated::Grader("tool-calls", restricting(json!({"forbid": [matcher]}))));
    }
    let mut entry = matcher;
    if let Some(map) = entry.as_object_mut().filter(|_| (min, max) != (1, None)) {
        let count = if let Some(max) = max { json!({"min": min, "max": max}) } else { json!({"min": min}) };
        map.insert("count".to_owned(), count);
    }
    Ok(Translated::Grader("tool-calls", restricting_if(min == 0, json!({"require": [entry]}))))
}

/// Returns the one skill of the plugin that calls of the tool `Skill` with such an input use.
fn skill_of<'a>(matcher: &Value, input: Option<&str>, skills: &'a [Skill]) -> Option<&'a str> {
    input?;
    let pattern: Pattern = matcher.get("input")?.as_str()?.parse().ok()?;
    // An input that names no skill of the plugin must not match.
    let is_use = |name: &str| pattern.is_match(&json!({"skill": name}).to_string());
    if is_use("") || is_use("another-skill-of-the-agent") {
        return None;
    }
    let mut found = skills.iter().filter(|skill| is_use(&skill.name));
    found.next().filter(|_| found.next().is_none()).map(|skill| skill.name.as_str())
}

fn tool_order(source: &Source) -> Result<Translated, Refused<&'static str>> {
    let side = |key: &'static str| -> Result<Value, Refused<&'static str>> {
        let (tool, input) = match source.keys.get(key) {
            Some(Value::String(tool)) => (Some(tool.as_str()), None),
            Some(Value::Object(map)) => {
                let is_wrong = |(name, value): (&String, &Value)| {
                    !["tool", "input_match"].contains(&name.as_str()) || !value.is_string()
                };
                if map.iter().any(is_wrong) {
                    return Err((key, "it has a key that is not known, or a value that is not a text".to_owned()));
                }
                let text = |name: &str| map.get(name).and_then(Value::as_str);
                (text("tool"), text("input_match"))
            }
            _ => (None, None),
        };
        let tool = tool.ok_or((key, "there is no tool".to_owned()))?;
        matcher(tool, input).map_err(|why| (key, why))
    };
    let (first, then) = (side("before")?, side("after")?);
    // `order` of `tool-calls` would accept a call of `then` before the first one of `first`.
    Ok(Translated::Grader("rules", json!([{"before": {"first": first, "then": then, "vacuous": "fail"}}])))
}

fn file_exists(source: &Source, has_files: bool, notes: &mut Vec<Note>) -> Result<Translated, Refused<&'static str>> {
    let path = source.text("path").ok_or(("path", "there is no path".to_owned()))?;
    let path = path.strip_prefix("./").unwrap_or(path);
    paths::inside(Path::new(path)).map_err(|why| ("path", format!("the path {why}")))?;
    if path.parse::<PathGlob>().is_err() {
        return Err(("path", "this is not a glob".to_owned()));
    }
    let exists = match source.keys.get("exists") {
        None => true,
        Some(value) => value.as_bool().ok_or(("exists", "this is neither true nor false".to_owned()))?,
    };
    Ok(match (exists, has_files) {
        (true, false) => Translated::Grader("files", json!({"exists": [path]})),
        // Only files that the agent created count.
        (true, true) => Translated::Grader("diff", json!({"created": [path]})),
        (false, _) => {
            if has_files {
                notes.push(source.note("exists", "files from before the session count too, and must be absent"));
            }
            Translated::Grader("files", restricting(json!({"absent": [path]})))
        }
    })
}

fn llm(source: &Source) -> Result<Translated, Refused<&'static str>> {
    let criteria = source.content("criteria").ok_or(("criteria", "there are no criteria".to_owned()))?;
    if criteria.lines().any(|line| line.trim_start().starts_with("TODO")) {
        return Err(("criteria", "the criteria still have a TODO".to_owned()));
    }
    let about = match target(source, "focus")? {
        Target::LastMessage => "Look at the final answer only. ".to_owned(),
        Target::Trace => String::new(),
        Target::Files => "Look at the paths of the created files only. ".to_owned(),
        Target::File(path) => format!("Look at the file {path} only. "),
    };
    Ok(Translated::Question(format!("{about}Is the result a PASS by this rubric?\n{criteria}")))
}

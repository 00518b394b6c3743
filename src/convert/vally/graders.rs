//! Translates the graders of Vally.

use serde_json::{Map, Value, json};

use super::super::parts::{scalar, texts};
use super::super::patterns;
use super::super::promptfoo::check::Check;
use super::super::refused::{Refused, refused};
use super::super::restrictions::{restricting, restricting_if};
use super::super::typed;
use crate::paths;
use crate::text::shell_word;

/// A program that checks the files of a glob, as the source does.
const FILES: &str = include_str!("files.py");

/// The threshold of a grader `prompt` that names none.
const THRESHOLD: f64 = 0.5;

/// Keys of a grader that do not change what is checked, and the note about each.
const BESIDE: [(&str, &str); 7] = [
    ("description", "left out: write it into the `name` of the grader"),
    ("metadata", "left out: it has no equivalent"),
    ("tags", "left out: graders have no tags"),
    ("weight", "left out: each grader has to pass, whatever its weight"),
    ("threshold", "left out: the grader has to pass as a whole"),
    ("optional", "left out: the grader has to pass; write `diagnostic: true` if it must not decide"),
    ("required", "left out: each grader has to pass"),
];

/// The conditions of a kind of grader that have no equivalent, and the note about each.
const CONDITIONS: [(&str, &str); 2] = [
    ("completed", "left out: the source also fails for an error event of the session, which no trace shows"),
    ("error-count", "changed: the source counts error events of the session, and here failed calls count"),
];

/// Returns the keys of a translated grader that are left out or changed, each with a note.
pub fn left_out(grader: &Value) -> impl Iterator<Item = (String, &'static str)> {
    let kind = grader.get("type").and_then(Value::as_str);
    let of_kind = CONDITIONS.iter().filter(move |(of, _)| kind == Some(*of));
    let of_kind = of_kind.map(|(_, why)| ("type".to_owned(), *why));
    let beside = BESIDE.iter().filter(|(key, _)| grader.get(*key).is_some_and(|value| !value.is_null()));
    let model = grader.get("config").and_then(|config| config.get("model")).is_some_and(|model| !model.is_null());
    let judge = model.then(|| ("config.model".to_owned(), "left out: name the judge with `evals run --judge`"));
    of_kind.chain(beside.map(|(key, why)| ((*key).to_owned(), *why))).chain(judge)
}

/// Returns the kind and the body of a grader. `rubric` is that of the stimulus.
///
/// # Errors
/// Returns the key without an equivalent.
pub fn translate(kind: &str, grader: &Value, rubric: &[String]) -> Result<(&'static str, Value), Refused> {
    if grader.get("turn").is_some() {
        return Err(refused("turn", "it is about a single turn"));
    }
    if grader.get("negate").is_some_and(|negate| *negate != json!(false) && !negate.is_null()) {
        return Err(refused("negate", "the opposite of a grader is another one; write the `not-` form"));
    }
    let known = |key: &str| ["type", "name", "config", "negate"].contains(&key) || BESIDE.iter().any(|it| it.0 == key);
    if let Some(key) = grader.as_object().into_iter().flat_map(Map::keys).find(|key| !known(key)) {
        return Err(refused(key, "the key is not known, and may change what is checked"));
    }
    let empty = Map::new();
    let config = match grader.get("config") {
        None | Some(Value::Null) => &empty,
        Some(config) => config.as_object().ok_or_else(|| refused("config", "this is not a map"))?,
    };
    let known: &[&str] = match kind {
        "output-contains" | "output-not-contains" => &["substring", "case_sensitive"],
        "output-matches" | "output-not-matches" => &["pattern"],
        "file-exists" | "file-not-exists" => &["path"],
        "file-contains" | "file-not-contains" => &["path", "value"],
        "file-matches" | "file-not-matches" => &["path", "pattern"],
        "skill-invocation" => &["required", "disallowed"],
        "tool-calls" => &["required", "disallowed"],
        "run-command" => &["command", "expected_exit_code", "sub_path", "timeout"],
        "prompt" => &["prompt", "model", "scoring", "threshold"],
        "token-budget" | "error-count" | "wall-time" | "tool-call-count" | "turn-count" => &["max"],
        "completed" | "exit-success" => &[],
        "pairwise" => return Err(refused("type", "it compares two variants; use `evals compare`")),
        "panel" => return Err(refused("type", "write a `rubric` with several judges")),
        "program" => return Err(refused("type", "the program reads the trajectory of the source; write a `script`")),
        _ => return Err(refused("type", "it is a plug-in of the source, or not known")),
    };
    if let Some(key) = config.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(refused(&format!("config.{key}"), "the key is not known, and may change what is checked"));
    }
    let reader = Reader { config, rubric };
    match kind {
        "output-contains" => Ok(reader.substring()?.grader(true)),
        "output-not-contains" => Ok(Check::Not(Box::new(reader.substring()?)).grader(true)),
        "output-matches" => Ok(Check::Matches(reader.pattern("pattern")?).grader(true)),
        "output-not-matches" => Ok(Check::Not(Box::new(Check::Matches(reader.pattern("pattern")?))).grader(true)),
        "file-exists" => Ok(("files", json!({"exists": [reader.path()?]}))),
        "file-not-exists" => Ok(("files", restricting(json!({"absent": [reader.path()?]})))),
        "file-contains" | "file-not-contains" | "file-matches" | "file-not-matches" => reader.content(kind),
        "skill-invocation" => reader.skills(),
        "tool-calls" => reader.calls(),
        "run-command" => reader.command(),
        "prompt" => reader.judge(),
        "token-budget" => Ok(("budget", restricting(json!({"tokens": reader.max()?})))),
        "tool-call-count" => Ok(("budget", restricting(json!({"tool-calls": reader.max()?})))),
        "turn-count" => Ok(("budget", restricting(json!({"steps": reader.max()?})))),
        "wall-time" => Ok(("budget", restricting(json!({"time": reader.text("max")?})))),
        "error-count" => Ok(("errors", restricting(json!({"max": reader.max()?})))),
        "completed" => Ok(("expr", json!({"cel": "stop.reason == 'end_turn' && output != ''"}))),
        _ => Ok(("output", json!({"regex": "\\S"}))),
    }
}

struct Reader<'a> {
    config: &'a Map<String, Value>,
    rubric: &'a [String],
}

impl Reader<'_> {
    fn text(&self, key: &str) -> Result<String, Refused> {
        let text = self.config.get(key).and_then(scalar).filter(|text| !text.is_empty());
        text.ok_or_else(|| refused(&format!("config.{key}"), "the key is missing, or no text"))
    }

    /// Returns the check that the answer contains a text: in any case, unless the source distinguishes upper and lower case.
    fn substring(&self) -> Result<Check, Refused> {
        let text = self.text("substring")?;
        let is_exact = typed::flag(self.config.get("case_sensitive"), "config.case_sensitive")?.unwrap_or(false);
        Ok(if is_exact { Check::Contains(text) } else { Check::ContainsAnyCase(text) })
    }

    fn max(&self) -> Result<u64, Refused> {
        let max = self.config.get("max").and_then(Value::as_u64);
        max.ok_or_else(|| refused("config.max", "this is not a whole number"))
    }

    fn pattern(&self, key: &str) -> Result<String, Refused> {
        pattern(&self.text(key)?).map_err(|why| refused(&format!("config.{key}"), why))
    }

    /// Returns a regular expression for a program in Python.
    fn python_pattern(&self, key: &str) -> Result<String, Refused> {
        let written = self.text(key)?;
        let (source, flags) = without_flags(&written);
        patterns::from_javascript_to_python(source, flags).map_err(|why| refused(&format!("config.{key}"), why))
    }

    fn path(&self) -> Result<String, Refused> {
        let path = self.text("path")?;
        let clean = path.trim_start_matches("./").to_owned();
        paths::inside(std::path::Path::new(&clean)).map_err(|why| refused("config.path", format!("the path {why}")))?;
        Ok(clean)
    }

    /// Returns a check of file contents. A glob, and anything that must be absent, is checked by a program.
    fn content(&self, kind: &str) -> Result<(&'static str, Value), Refused> {
        let path = self.path()?;
        let how = kind.strip_prefix("file-").unwrap_or(kind);
        let is_glob = path.contains(['*', '?', '[', '{']);
        match how {
            "contains" if !is_glob => Ok(("files", json!({"contains": {path: self.text("value")?}}))),
            "matches" if !is_glob => Ok(("files", json!({"matches": {path: self.pattern("pattern")?}}))),
            _ if path.contains('{') => Err(refused("config.path", "braces in a glob have no equivalent")),
            _ => {
                let is_pattern = how.ends_with("matches");
                let wanted = if is_pattern { self.python_pattern("pattern")? } else { self.text("value")? };
                // Without -I, a module that the agent left in the workspace would be imported.
                let words = ["python3", "-I", "-c", FILES.trim_end(), how, &path, &wanted];
                // Without the file, the program finds nothing that must not be in it.
                Ok(("command", restricting_if(how.starts_with("not-"), json!({"run": words}))))
            }
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, Refused> {
        let Some(value) = self.config.get(key) else { return Ok(Vec::new()) };
        texts(value).ok_or_else(|| refused(&format!("config.{key}"), "this is not a list of names"))
    }

    fn skills(&self) -> Result<(&'static str, Value), Refused> {
        let (used, not_used) = (self.list("required")?, self.list("disallowed")?);
        let mut body = Map::new();
        if !used.is_empty() {
            body.insert("used".to_owned(), json!(used));
        }
        if !not_used.is_empty() {
            body.insert("not-used".to_owned(), json!(not_used));
        }
        if body.is_empty() {
            return Err(refused("config", "it names no skill"));
        }
        Ok(("skills", restricting_if(!body.contains_key("used"), Value::Object(body))))
    }

    /// Returns an expression over the calls: names are regular expressions in the source.
    fn calls(&self) -> Result<(&'static str, Value), Refused> {
        let mut terms = Vec::new();
        for (key, sign) in [("required", ""), ("disallowed", "!")] {
            let list = typed::list(self.config.get(key), &format!("config.{key}"))?;
            for (at, item) in list.iter().enumerate() {
                let call = call(item).map_err(|why| refused(&format!("config.{key}[{at}]"), why))?;
                terms.push(format!("{sign}calls.exists(c, {call})"));
            }
        }
        if terms.is_empty() {
            return Err(refused("config", "it names no tool"));
        }
        let only_restricts = terms.iter().all(|term| term.starts_with('!'));
        Ok(("expr", restricting_if(only_restricts, json!({"cel": terms.join(" && ")}))))
    }

    fn command(&self) -> Result<(&'static str, Value), Refused> {
        let mut line = self.text("command")?;
        if let Some(folder) = typed::text(self.config.get("sub_path"), "config.sub_path")? {
            paths::inside(std::path::Path::new(folder))
                .map_err(|why| refused("config.sub_path", format!("the path {why}")))?;
            line = format!("cd {} && {{ {line}\n}}", shell_word(folder));
        }
        let mut body = json!({"run": line});
        if let Some(map) = body.as_object_mut() {
            let code = typed::integer(self.config.get("expected_exit_code"), "config.expected_exit_code")?;
            if let Some(code) = code.filter(|code| *code != 0) {
                map.insert("exit".to_owned(), json!(code));
            }
            if let Some(time) = typed::word(self.config.get("timeout"), "config.timeout")? {
                map.insert("timeout".to_owned(), json!(time));
            }
        }
        Ok(("command", body))
    }

    /// Returns a rubric: the prompt of the grader, or else the rubric of the stimulus.
    fn judge(&self) -> Result<(&'static str, Value), Refused> {
        let threshold = self.config.get("threshold").map_or(Some(THRESHOLD), Value::as_f64);
        let threshold = threshold.filter(|threshold| (0.0..=1.0).contains(threshold) && *threshold > 0.0);
        let threshold = threshold.ok_or_else(|| refused("config.threshold", "it is not above 0 and at most 1"))?;
        let points = match typed::text(self.config.get("scoring"), "config.scoring")? {
            Some("binary") => None,
            None | Some("scale_1_5") => Some(5.0),
            Some("scale_1_10") => Some(10.0),
            Some(other) => return Err(refused("config.scoring", format!("the scale `{other}` is not known"))),
        };
        let criterion = |id: String, ask: &str| {
            let mut criterion = json!({"id": id, "ask": ask});
            if let (Some(to), Some(map)) = (points, criterion.as_object_mut()) {
                // Whether the source counts from 0 or from 1, this number of points reaches the threshold.
                let pass = (1.0 + threshold * (to - 1.0)).max(threshold * to).ceil() as u64;
                map.insert("scale".to_owned(), json!({"from": 1, "to": to as u64, "pass": pass}));
            }
            criterion
        };
        let prompt = typed::text(self.config.get("prompt"), "config.prompt")?.map(str::trim);
        let prompt = prompt.filter(|text| !text.is_empty());
        let about = prompt.filter(|_| !self.rubric.is_empty());
        let criteria: Vec<Value> = match (self.rubric, prompt) {
            ([], Some(prompt)) => vec![criterion("prompt".to_owned(), prompt)],
            ([], None) => return Err(refused("config.prompt", "there is neither a prompt nor a rubric")),
            (rubric, _) => {
                rubric.iter().enumerate().map(|(at, ask)| criterion(format!("rubric-{}", at + 1), ask)).collect()
            }
        };
        let mut body = json!({"show": ["closing"], "criteria": criteria});
        if let (Some(about), Some(map)) = (about, body.as_object_mut()) {
            map.insert("about".to_owned(), json!(about));
        }
        Ok(("rubric", body))
    }
}

fn pattern(written: &str) -> Result<String, String> {
    let (source, flags) = without_flags(written);
    patterns::from_javascript(source, flags)
}

/// Returns a regular expression and its flags. The source understands them at the beginning: `(?i)`, `(?m)`, `(?s)`, `(?im)`.
fn without_flags(written: &str) -> (&str, &str) {
    let parts = written.strip_prefix("(?").and_then(|rest| rest.split_once(')'));
    let parts = parts.filter(|(flags, _)| !flags.is_empty() && flags.chars().all(|flag| "ims".contains(flag)));
    parts.map_or((written, ""), |(flags, source)| (source, flags))
}

/// Returns the condition on a call `c`.
fn call(item: &Value) -> Result<String, String> {
    let literal = |text: &str| serde_json::to_string(text).map_err(|error| error.to_string());
    let matches = |of: &str, written: &str| Ok(format!("{of}.matches({})", literal(&pattern(written)?)?));
    let keys = match item {
        Value::String(name) => return matches("c.name", name),
        Value::Object(keys) => keys,
        _ => return Err("it is neither a name nor a map".to_owned()),
    };
    let mut terms: Vec<String> = Vec::new();
    for (key, value) in keys {
        let text = || value.as_str().ok_or_else(|| format!("`{key}` is not a text"));
        let of_input = |name: &str, written: &str| -> Result<String, String> {
            let is_word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit());
            if !is_word {
                return Err(format!("the argument `{name}` has another form"));
            }
            Ok(format!("has(c.input.{name}) && {}", matches(&format!("string(c.input.{name})"), written)?))
        };
        match key.as_str() {
            "name" => terms.push(matches("c.name", text()?)?),
            // A call that executes something and shows no `command` may match: then the expression has no value.
            "command" => {
                let shown = "(c.kind == 'execute' || has(c.input.command))";
                terms.push(format!("{shown} && {}", matches("string(c.input.command)", text()?)?));
            }
            "path" => terms.push(format!("c.paths.exists(p, {})", matches("p", text()?)?)),
            "args" => {
                for (name, written) in value.as_object().ok_or("`args` is not a map")? {
                    let written = written.as_str().ok_or_else(|| format!("the argument `{name}` is not a text"))?;
                    terms.push(of_input(name, written)?);
                }
            }
            "description" => {}
            other => return Err(format!("`{other}` is not known")),
        }
    }
    if terms.is_empty() {
        return Err("it names nothing".to_owned());
    }
    Ok(terms.join(" && "))
}

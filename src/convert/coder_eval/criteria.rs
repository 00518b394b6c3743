//! Translates the success criteria of coder-eval.

use serde_json::{Map, Value, json};

use super::super::parts::scalar;
use super::super::patterns;
use super::super::refused::{Refused, refused};
use super::super::restrictions::{restricting, restricting_if};
use super::super::typed;
use crate::paths;

/// The notes on patterns of commands: for a minimum of calls, for one of any tool, for a maximum, and for both bounds.
const QUOTED: [&str; 4] = [
    "stricter: the source also searches each command without its quotes and within `sh -c`, here it is searched as the agent wrote it",
    "stricter: only commands of a shell count here, as the agent wrote them; the source also searches each without its quotes and within `sh -c`, and the input of other tools",
    "weaker: the source also searches each command without its quotes and within `sh -c`, here it is searched as the agent wrote it",
    "stricter or weaker: the source also searches each command without its quotes and within `sh -c`, here it is searched as the agent wrote it",
];

/// A program that checks the files of a glob, as the source does.
const FILES: &str = include_str!("files.py");

/// A program that checks that a file or folder exists in the workspace. For the source, the target of a link that leads out
/// of the workspace does not exist.
const EXISTS: &str = "import pathlib, sys; file = pathlib.Path(sys.argv[1]); \
    sys.exit(0 if file.exists() and file.resolve().is_relative_to(pathlib.Path.cwd().resolve()) else 1)";

/// The reason why a text with a carriage return has no equivalent.
const RETURN: &str = "the source reads each line end as a line feed, so it never finds a carriage return";

/// The share of a criterion that is enough, if it names none.
const ENOUGH: f64 = 0.9;

/// The graders of a criterion.
pub struct TranslatedCriterion {
    /// The kind and the body of each. All of them have to pass.
    pub graders: Vec<(&'static str, Value)>,
    /// A note for the user if the graders differ from the criterion.
    pub note: Option<&'static str>,
}

/// Returns the graders of a criterion. `ignored` are the patterns of the names that a glob does not find.
///
/// # Errors
/// Returns the key without an equivalent.
pub fn translate(kind: &str, criterion: &Value, ignored: &[String]) -> Result<TranslatedCriterion, Refused> {
    let threshold = typed::amount(criterion.get("pass_threshold"), "pass_threshold")?;
    let reader = Reader { keys: criterion, enough: threshold.unwrap_or(ENOUGH), ignored };
    let exact = |graders| Ok(TranslatedCriterion { graders, note: None });
    let known: &[&str] = match kind {
        "file_exists" => &["path"],
        "file_contains" => &["path", "includes", "excludes"],
        "file_matches_regex" => &["path", "pattern", "must_match", "flags"],
        "file_check" => &["path", "includes", "excludes", "patterns"],
        "run_command" => &[
            "command",
            "timeout",
            "expected_exit_code",
            "expected_stdout",
            "stdout_match",
            "score_from_stdout",
            "read_only",
        ],
        "command_executed" | "command_not_executed" => {
            &["tool_name", "command_pattern", "min_count", "max_count", "require_success", "exclude_pattern"]
        }
        "skill_triggered" => &["expected_skill", "skill_name"],
        "commands_efficiency" => &["expected_commands"],
        "classification_match" => &["path", "expected_label", "allowed_labels", "case_sensitive"],
        "llm_judge" => &[
            "prompt",
            "enabled",
            "model",
            "files",
            "include_reference",
            "include_agent_output",
            "include_tool_calls",
            "include_dialog",
            "max_dialog_chars",
            "max_file_chars",
        ],
        "json_check" => return Err(refused("type", "no grader evaluates JMESPath; write a `script`")),
        "agent_judge" => {
            return Err(refused(
                "type",
                "the judge is an agent with tools; write a `rubric` with `judge: harness:NAME`",
            ));
        }
        "cli_called" => return Err(refused("type", "it reads the log of a replaced program")),
        "reference_comparison" => return Err(refused("type", "it compares syntax trees")),
        "uipath_eval" | "system_one_judge" => return Err(refused("type", "it asks a service of the source")),
        _ => return Err(refused("type", "the type is not known")),
    };
    let common = ["type", "description", "weight", "pass_threshold", "suite_thresholds", "stop_early"];
    let keys = criterion.as_object().into_iter().flat_map(Map::keys);
    if let Some(key) = keys.into_iter().find(|key| !known.contains(&key.as_str()) && !common.contains(&key.as_str())) {
        return Err(refused(key, "the key is not known, and may change what is checked"));
    }
    if reader.enough <= 0.0 {
        return Err(refused("pass_threshold", "with 0 it passes for everything"));
    }
    match kind {
        "file_exists" => {
            let path = reader.path()?;
            let mut graders = Vec::new();
            reader.add_existence(&mut graders, &path)?;
            exact(graders)
        }
        "file_contains" | "file_check" => reader.file(),
        "file_matches_regex" => {
            let must_match = reader.flag("must_match")?.unwrap_or(true);
            let mut graders = Vec::new();
            reader.add_pattern(&mut graders, must_match, reader.keys)?;
            exact(graders)
        }
        "run_command" => exact(vec![reader.command()?]),
        "command_executed" => {
            Ok(TranslatedCriterion { graders: vec![reader.calls(None)?], note: reader.note_on_commands() })
        }
        "command_not_executed" => {
            let has_pattern = reader.has("command_pattern") || reader.has("exclude_pattern");
            let note = has_pattern.then_some(QUOTED[2]);
            Ok(TranslatedCriterion { graders: vec![reader.calls(Some((0, 0)))?], note })
        }
        "skill_triggered" => {
            let (skill, expected) =
                (reader.text("skill_name")?, typed::word(reader.keys.get("expected_skill"), "expected_skill")?);
            let key = if expected.as_ref() == Some(&skill) { "used" } else { "not-used" };
            exact(vec![("skills", restricting_if(key == "not-used", json!({key: [skill]})))])
        }
        "commands_efficiency" => {
            let expected = reader.keys.get("expected_commands").and_then(Value::as_u64).filter(|count| *count > 0);
            let expected = expected.ok_or_else(|| refused("expected_commands", "this is not a whole number from 1"))?;
            // The score is expected / actual, and has to reach the threshold.
            let most = (expected as f64 / reader.enough.min(1.0) + 1e-9).floor();
            // An agent without any command scores 0.
            let budget = restricting(json!({"tool-calls": most as u64}));
            exact(vec![("budget", budget), ("tool-calls", json!({"min": 1}))])
        }
        "classification_match" => {
            let (path, label) = (reader.plain_path()?, reader.text("expected_label")?.trim().to_owned());
            let is_sensitive = reader.flag("case_sensitive")?.unwrap_or(false);
            let is_label = |allowed: &String| match is_sensitive {
                true => *allowed == label,
                false => allowed.to_lowercase() == label.to_lowercase(),
            };
            if !reader.texts("allowed_labels")?.iter().any(is_label) {
                let why = "it is not one of `allowed_labels`, so no label in the file passes in the source";
                return Err(refused("expected_label", why));
            }
            let (flag, label) = (if is_sensitive { "" } else { "(?i)" }, regex::escape(&label));
            exact(vec![("files", json!({"matches": {path: format!("{flag}\\A\\s*{label}\\s*\\z")}}))])
        }
        _ => reader.judge(),
    }
}

fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

struct Reader<'a> {
    keys: &'a Value,
    /// The share that is enough.
    enough: f64,
    /// The patterns of the names that a glob does not find.
    ignored: &'a [String],
}

impl Reader<'_> {
    fn has(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|value| !value.is_null())
    }

    /// Returns the note on a criterion that counts commands, if it has a pattern for them.
    fn note_on_commands(&self) -> Option<&'static str> {
        let (has_pattern, excludes) = (self.has("command_pattern"), self.has("exclude_pattern"));
        let has_minimum = self.keys.get("min_count").and_then(Value::as_u64) != Some(0);
        match (has_minimum, self.has("max_count") || excludes) {
            _ if !has_pattern && !excludes => None,
            (true, true) => Some(QUOTED[3]),
            (_, true) => Some(QUOTED[2]),
            _ if self.has("tool_name") => Some(QUOTED[0]),
            _ => Some(QUOTED[1]),
        }
    }

    fn text(&self, key: &str) -> Result<String, Refused> {
        let text = self.keys.get(key).and_then(scalar).filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| refused(key, "the key is missing, or no text"))
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, Refused> {
        match self.keys.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(value) => super::super::parts::texts(value).ok_or_else(|| refused(key, "this is not a list of texts")),
        }
    }

    fn flag(&self, key: &str) -> Result<Option<bool>, Refused> {
        typed::flag(self.keys.get(key), key)
    }

    fn path(&self) -> Result<String, Refused> {
        let path = self.text("path")?;
        let clean = path.trim_start_matches("./").to_owned();
        paths::inside(std::path::Path::new(&clean)).map_err(|why| refused("path", format!("the path {why}")))?;
        Ok(clean)
    }

    fn plain_path(&self) -> Result<String, Refused> {
        let path = self.path()?;
        if is_glob(&path) { Err(refused("path", "a glob has no equivalent here")) } else { Ok(path) }
    }

    /// Adds the graders of a pattern. In the source, the file must exist also if the pattern must not match.
    fn add_pattern(
        &self,
        graders: &mut Vec<(&'static str, Value)>,
        must_match: bool,
        item: &Value,
    ) -> Result<(), Refused> {
        let path = self.path()?;
        let is_glob = is_glob(&path);
        let (written, flags) = regex(item)?;
        match letters(flags).and_then(|letters| patterns::from_python_for_text(&written, &letters)) {
            Ok(pattern) if must_match && !is_glob => {
                graders.push(("files", json!({"matches": {path: pattern}})));
                Ok(())
            }
            // The program has the regular expressions of the source, with lookaround.
            _ => {
                let how = if must_match { "matches" } else { "not-matches" };
                let letters = letters(flags).map_err(|why| refused("flags", why))?;
                let prefix = if letters.is_empty() { String::new() } else { format!("(?{letters})") };
                self.add_program(graders, &path, how, &[format!("{prefix}{written}")])
            }
        }
    }

    fn add_program(
        &self,
        graders: &mut Vec<(&'static str, Value)>,
        path: &str,
        how: &str,
        wanted: &[String],
    ) -> Result<(), Refused> {
        if path.contains('{') {
            return Err(refused("path", "braces in a glob have no equivalent"));
        }
        let program = FILES.trim_end().replace("@IGNORED@", &json!(self.ignored).to_string());
        // Without -I, a module that the agent left in the workspace would be imported.
        let mut words = vec!["python3", "-I", "-c", program.as_str(), how, path];
        words.extend(wanted.iter().map(String::as_str));
        graders.push(("command", json!({"run": words})));
        Ok(())
    }

    /// Adds the grader of a file or folder that must exist.
    fn add_existence(&self, graders: &mut Vec<(&'static str, Value)>, path: &str) -> Result<(), Refused> {
        if is_glob(path) {
            return self.add_program(graders, path, "exists", &[]);
        }
        graders.push(("command", json!({"run": ["python3", "-I", "-c", EXISTS, path]})));
        Ok(())
    }

    /// Returns the graders of a file's content.
    fn file(&self) -> Result<TranslatedCriterion, Refused> {
        let (mut includes, excludes) = (self.texts("includes")?, self.texts("excludes")?);
        // Each file contains an empty text.
        includes.retain(|text| !text.is_empty());
        let path = self.path()?;
        let is_glob = is_glob(&path);
        let mut graders = Vec::new();
        if !includes.is_empty() {
            if is_glob {
                self.add_program(&mut graders, &path, "contains", &includes)?;
            } else {
                if includes.iter().any(|text| text.contains('\r')) {
                    return Err(refused("includes", RETURN));
                }
                let (long, plain): (Vec<String>, Vec<String>) =
                    includes.iter().cloned().partition(|text| text.contains('\n'));
                let mut body = Map::new();
                if !plain.is_empty() {
                    body.insert("contains".to_owned(), json!({path.clone(): plain}));
                }
                if !long.is_empty() {
                    let long: Vec<String> = long.iter().map(|text| patterns::with_any_line_ends(text)).collect();
                    body.insert("matches".to_owned(), json!({path.clone(): long}));
                }
                graders.push(("files", Value::Object(body)));
            }
        }
        if !excludes.is_empty() {
            self.add_program(&mut graders, &path, "not-contains", &excludes)?;
        }
        let patterns = typed::list(self.keys.get("patterns"), "patterns")?;
        for (at, item) in patterns.iter().enumerate() {
            let added = typed::flag(item.get("must_match"), "must_match")
                .and_then(|must_match| self.add_pattern(&mut graders, must_match.unwrap_or(true), item));
            added.map_err(|(key, why)| refused(&format!("patterns[{at}].{key}"), why))?;
        }
        if graders.is_empty() {
            self.add_existence(&mut graders, &path)?;
        }
        // The score is the mean of the shares of each list. One miss in the longest list costs least.
        let lists = [includes.len(), excludes.len(), patterns.len()];
        let active = lists.iter().filter(|length| **length > 0).count().max(1);
        let longest = lists.iter().max().copied().unwrap_or(0).max(1);
        let with_a_miss = 1.0 - 1.0 / (active as f64 * longest as f64);
        let stricter = (longest > 1 || active > 1) && with_a_miss >= self.enough;
        let why = "stricter: the source accepts a share of these texts (`pass_threshold`), here all must hold";
        Ok(TranslatedCriterion { graders, note: stricter.then_some(why) })
    }

    fn command(&self) -> Result<(&'static str, Value), Refused> {
        if self.flag("score_from_stdout")?.unwrap_or(false) {
            return Err(refused("score_from_stdout", "the command prints a score; write a `script`"));
        }
        let time = typed::seconds(self.keys.get("timeout"), "timeout")?.unwrap_or(30.0);
        let mut body = json!({"run": self.text("command")?, "timeout": format!("{time}s")});
        let Some(map) = body.as_object_mut() else { return Err(refused("command", "it has no command")) };
        let code = typed::integer(self.keys.get("expected_exit_code"), "expected_exit_code")?;
        if let Some(code) = code.filter(|code| *code != 0) {
            map.insert("exit".to_owned(), json!(code));
        }
        let how = typed::text(self.keys.get("stdout_match"), "stdout_match")?.unwrap_or("exact");
        if let Some(expected) = typed::word(self.keys.get("expected_stdout"), "expected_stdout")? {
            // The source compares both sides without the white space around them.
            let text = expected.trim();
            if how != "regex" && text.contains('\r') {
                return Err(refused("expected_stdout", RETURN));
            }
            let check = match how {
                "exact" => Some(("stdout-regex", format!("\\A\\s*{}\\s*\\z", patterns::with_any_line_ends(text)))),
                // Each output contains an empty text.
                "contains" if text.is_empty() => None,
                "contains" if text.contains('\n') => Some(("stdout-regex", patterns::with_any_line_ends(text))),
                "contains" => Some(("stdout-contains", text.to_owned())),
                "regex" => {
                    let pattern = patterns::from_python_for_text(&expected, "");
                    Some(("stdout-regex", pattern.map_err(|why| refused("expected_stdout", why))?))
                }
                other => return Err(refused("stdout_match", format!("`{other}` is not known"))),
            };
            if let Some((key, value)) = check {
                map.insert(key.to_owned(), json!(value));
            }
        }
        Ok(("command", body))
    }

    /// Returns an expression over the calls. The source names the shell `Bash` for all agents.
    fn calls(&self, bounds: Option<(u64, u64)>) -> Result<(&'static str, Value), Refused> {
        let count = |key: &str, otherwise: Option<u64>| match self.keys.get(key).filter(|value| !value.is_null()) {
            None => Ok(otherwise),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| refused(key, "this is not a whole number from 0")),
        };
        let (min, max) = match bounds {
            Some((min, max)) => (min, Some(max)),
            None => (count("min_count", Some(1))?.unwrap_or(1), count("max_count", None)?),
        };
        if min == 0 && max.is_none() {
            return Err(refused("min_count", "it accepts any number of calls"));
        }
        if self.enough < 1.0 && min > 1 && (min - 1) as f64 / min as f64 >= self.enough {
            return Err(refused("pass_threshold", "fewer calls than `min_count` are enough in the source"));
        }
        let text = |key: &str| typed::text(self.keys.get(key), key);
        let (tool, pattern, exclude) = (text("tool_name")?, text("command_pattern")?, text("exclude_pattern")?);
        // Of all tools, those with a command are enough for a lower bound.
        let is_shell = tool == Some("Bash") || (tool.is_none() && pattern.is_some() && max.is_none());
        if !is_shell && (pattern.is_some() || exclude.is_some()) {
            return Err(refused("command_pattern", "the input of other tools has another form here"));
        }
        let mut terms = Vec::new();
        match tool {
            _ if is_shell => terms.push("c.kind == 'execute'".to_owned()),
            Some(name) => terms.push(format!("c.name == {}", literal(name)?)),
            None => terms.push("true".to_owned()),
        }
        let matches = |key: &str, written: &str| -> Result<String, Refused> {
            // In the source, `.` matches the end of a line.
            let pattern = python(written, DOTALL).map_err(|why| refused(key, why))?;
            Ok(format!("c.input.command.matches({})", literal(&pattern)?))
        };
        if let Some(written) = pattern {
            terms.push(matches("command_pattern", written)?);
        }
        if let Some(written) = exclude {
            terms.push(format!("!{}", matches("exclude_pattern", written)?));
        }
        if self.flag("require_success")?.unwrap_or(false) {
            terms.push("c.status == 'ok'".to_owned());
        }
        // The number of all matching calls has no value if a call does not show its command. The calls that are known
        // to match decide alone if they are enough, or too many.
        let number = format!("calls.filter(c, {}).size()", terms.join(" && "));
        let known = (pattern.is_some() || exclude.is_some()).then(|| {
            terms.insert(1, "has(c.input.command)".to_owned());
            format!("calls.filter(c, {}).size()", terms.join(" && "))
        });
        let term = |comparison: String, join: &str| match &known {
            Some(known) => format!("({known} {comparison} {join} {number} {comparison})"),
            None => format!("{number} {comparison}"),
        };
        let low = (min > 0).then(|| term(format!(">= {min}"), "||"));
        let high = max.map(|max| term(format!("<= {max}"), "&&"));
        let both: Vec<String> = [low, high].into_iter().flatten().collect();
        Ok(("expr", restricting_if(min == 0, json!({"cel": both.join(" && ")}))))
    }

    fn judge(&self) -> Result<TranslatedCriterion, Refused> {
        if self.flag("enabled")? == Some(false) {
            return Err(refused("enabled", "the source does not ask the judge"));
        }
        let files = self.texts("files")?;
        if files.iter().any(|file| file.contains("_DIR")) {
            return Err(refused("files", "the judge reads files that only the source has"));
        }
        let enough = typed::amount(self.keys.get("pass_threshold"), "pass_threshold")?.unwrap_or(0.7);
        let about = if files.is_empty() { String::new() } else { format!("Look at the files {}. ", files.join(", ")) };
        let ask = format!("{about}{}", self.text("prompt")?.trim());
        let scale = json!({"from": 0, "to": 10, "pass": (enough * 10.0).ceil() as u64});
        let criteria = json!([{"id": "judge", "ask": ask, "scale": scale}]);
        Ok(TranslatedCriterion {
            graders: vec![("rubric", json!({"show": ["closing"], "criteria": criteria}))],
            note: None,
        })
    }
}

/// Returns the regular expression `pattern`, and the flags beside it.
fn regex(keys: &Value) -> Result<(String, u64), Refused> {
    let written = keys.get("pattern").and_then(Value::as_str).filter(|text| !text.is_empty());
    let written = written.ok_or_else(|| refused("pattern", "there is no pattern"))?;
    let flags =
        keys.get("flags").map_or(Some(0), Value::as_u64).ok_or_else(|| refused("flags", "this is no number"))?;
    Ok((written.to_owned(), flags))
}

/// Returns the letters of flags of Python.
fn letters(flags: u64) -> Result<String, String> {
    if flags & !(2 | 8 | 16) != 0 {
        return Err(format!("the flags {flags} have no equivalent"));
    }
    Ok([(2, 'i'), (8, 'm'), (16, 's')].iter().filter(|(bit, _)| flags & bit != 0).map(|it| it.1).collect())
}

/// The flag of the source's regular expressions by which `.` matches the end of a line.
const DOTALL: u64 = 16;

/// Returns the equivalent of a regular expression of Python.
fn python(written: &str, flags: u64) -> Result<String, String> {
    patterns::from_python(written, &letters(flags)?)
}

fn literal(text: &str) -> Result<String, Refused> {
    serde_json::to_string(text).map_err(|error| refused("", error.to_string()))
}

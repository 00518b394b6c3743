//! Translates the graders of touchstone.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::parts::{common, escaped_glob, is_one, quoted, scalar, with};
use super::super::{Content, Note, UNKNOWN, copied, source};
use super::{Reader, Refused, refused, with_environment};
use crate::yaml;

/// Looks for patterns in all files, as the source does.
const PATTERNS: &str = include_str!("patterns.py");
/// The command of a grader `swebench` that names none.
const PYTEST: &str = "python3 -m pytest -q -p no:cacheprovider";

impl Reader<'_> {
    /// Translates every grader. A score over fewer graders would be another one, so each must have an equal.
    pub(super) fn graders(&mut self, threshold: f64) -> Result<(), Refused> {
        let list = self.keys.get("graders").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut graders = Vec::new();
        let mut left = Vec::new();
        for (at, item) in list.iter().enumerate() {
            let key = format!("graders[{at}]");
            let grader = item.as_object().ok_or_else(|| refused(&key, "it is not a map"))?;
            match self.grader(&key, grader) {
                Ok(made) => graders.extend(made),
                Err((key, why)) => {
                    let kind = grader.get("type").and_then(Value::as_str).unwrap_or_default();
                    left.push((key, why, !["trace", "efficiency", "tool_correctness", "model_judge"].contains(&kind)));
                }
            }
        }
        // Without a check of the result, the others would pass for doing little.
        if let Some((key, why, _)) = left.iter().find(|(.., is_outcome)| *is_outcome || threshold < 1.0) {
            return Err(refused(key, format!("a grader has no equal: {why}")));
        }
        if graders.is_empty() {
            return Err(refused("graders", "it has no grader that has an equal"));
        }
        for (key, why, _) in left {
            self.note(&key, format!("the grader has no equal: {why}"));
        }
        self.case.keys.insert("graders".to_owned(), Value::Array(graders));
        Ok(())
    }

    fn grader(&mut self, key: &str, grader: &Map<String, Value>) -> Result<Vec<Value>, Refused> {
        let kind = grader.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = |name: &str| grader.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let weight = match grader.get("weight") {
            None => 1.0,
            Some(value) => {
                let weight = value.as_f64().filter(|weight| weight.is_finite() && *weight >= 0.0);
                weight.ok_or_else(|| refused(&format!("{key}.weight"), "it is not a number from 0"))?
            }
        };
        let is_gate = grader.get("gate") == Some(&json!(true));
        let known = known(kind);
        for name in grader
            .keys()
            .filter(|name| !["type", "weight", "gate"].contains(&name.as_str()) && !known.contains(&name.as_str()))
        {
            self.case.notes.push(Note::new(self.file, format!("{key}.{name}"), UNKNOWN));
        }
        let keys = |name: &str, weight: f64, is_gate: bool| {
            let mut keys = common(name, weight, false);
            if is_gate {
                keys.remove("weight");
                keys.insert("gate".to_owned(), json!(true));
            }
            keys
        };
        let timeout = |usual: u64| {
            let seconds = grader.get("timeout_s").and_then(Value::as_u64).filter(|seconds| *seconds > 0);
            format!("{}s", seconds.unwrap_or(usual))
        };
        let venv = self.has_venv();
        let one = |kind: &str, body: Value| vec![json!({kind: with(keys(kind, weight, is_gate), body)})];
        match kind {
            "command" => {
                let command = text("cmd").ok_or_else(|| refused(&format!("{key}.cmd"), "there is no command"))?;
                let exit = grader.get("expect_exit").and_then(Value::as_i64).unwrap_or(0);
                let mut body = json!({"run": with_environment(command, venv), "timeout": timeout(300)});
                if let Some(map) = body.as_object_mut().filter(|_| exit != 0) {
                    map.insert("exit".to_owned(), json!(exit));
                }
                Ok(one("command", body))
            }
            "tests" | "pytest" => {
                let names = self.inject(key, grader)?;
                let pytest = || {
                    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
                    format!("python3 -m pytest -q {}", names.join(" ")).trim_end().to_owned()
                };
                let command = match (text("cmd"), kind) {
                    (Some(command), _) => command.to_owned(),
                    (None, "pytest") => pytest(),
                    (None, _) => return Err(refused(&format!("{key}.cmd"), "there is no command")),
                };
                let mut body = json!({"run": with_environment(&command, venv), "timeout": timeout(300)});
                if let (Some(report), Some(map)) = (grader.get("junit_xml"), body.as_object_mut()) {
                    map.insert("report".to_owned(), report.clone());
                }
                Ok(one("tests", body))
            }
            "swebench" => {
                self.inject(key, grader)?;
                let names = |name: &str| -> Vec<String> {
                    grader.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(scalar).collect()
                };
                let (fail, pass) = (names("fail_to_pass"), names("pass_to_pass"));
                if fail.is_empty() {
                    return Err(refused(&format!("{key}.fail_to_pass"), "the list is empty"));
                }
                let prefix = text("cmd_prefix").unwrap_or(PYTEST);
                let run = |ids: &[String]| {
                    let ids: Vec<String> = ids.iter().map(|id| quoted(id)).collect();
                    json!({"run": with_environment(&format!("{prefix} {}", ids.join(" ")), venv), "timeout": timeout(600)})
                };
                let mut made = vec![json!({"tests": with(keys("fail-to-pass", weight, false), run(&fail))})];
                if !pass.is_empty() {
                    made.push(json!({"tests": with(keys("pass-to-pass", 1.0, true), run(&pass))}));
                }
                Ok(made)
            }
            "implemented" => Ok(one("command", json!({"run": implemented(grader)}))),
            "files" => self.files(key, grader, weight, is_gate),
            "model_judge" => {
                let rubric = text("rubric").ok_or_else(|| refused(&format!("{key}.rubric"), "there is no rubric"))?;
                let file = source::named(self.folder, rubric).map_err(|why| refused(&format!("{key}.rubric"), why))?;
                let rubric = yaml::read(&file).map_err(|error| refused(&format!("{key}.rubric"), error.to_string()))?;
                let message =
                    "the judge is named with `evals run --judge`; as in the source, only full points count as 1";
                self.case.notes.push(Note::new(self.file, key, message));
                let ask = format!("How well does the final answer satisfy this rubric?\n{}", rubric.trim());
                let criterion = json!({"id": "rubric", "ask": ask, "scale": {"from": 0, "to": 10, "pass": 10}});
                Ok(one("rubric", json!({"show": ["closing"], "criteria": [criterion]})))
            }
            "trace" => trace(key, grader, weight, is_gate),
            "efficiency" => {
                let mut body = Map::new();
                for (from, to) in
                    [("target_cost_usd", "cost-usd"), ("target_tokens", "tokens"), ("target_tool_calls", "tool-calls")]
                {
                    if let Some(value) = grader.get(from) {
                        let number = value.as_f64().filter(|number| *number >= 0.0);
                        number.ok_or_else(|| refused(&format!("{key}.{from}"), "it is not a number from 0"))?;
                        body.insert(to.to_owned(), value.clone());
                    }
                }
                if body.is_empty() {
                    return Err(refused(key, "it has no target"));
                }
                let message =
                    "a target is a hard limit here: the source gives a share above it, and takes what is unknown for 0";
                self.case.notes.push(Note::new(self.file, key, message));
                Ok(one("budget", Value::Object(body)))
            }
            "tool_correctness" => {
                let axis = text("match").unwrap_or("kind");
                let expected = grader.get("expected").and_then(Value::as_array).cloned().unwrap_or_default();
                let expected = expected.iter().map(|item| match item {
                    Value::String(word) => matcher(key, &Map::from_iter([(axis.to_owned(), json!(word))])),
                    Value::Object(map) => matcher(key, map),
                    _ => Err(refused(&format!("{key}.expected"), "an entry is neither a word nor a map")),
                });
                let expected = expected.collect::<Result<Vec<_>, _>>()?;
                if expected.is_empty() {
                    return Err(refused(&format!("{key}.expected"), "the list is empty"));
                }
                let is_ordered = grader.get("ordered") == Some(&json!(true));
                let mode = if is_ordered { "ordered-f1" } else { "f1" };
                Ok(one("trajectory", json!({"mode": mode, "expected": expected})))
            }
            "" => Err(refused(&format!("{key}.type"), "the key is missing")),
            other => Err(refused(&format!("{key}.type"), format!("the type `{other}` is not known"))),
        }
    }

    fn files(
        &mut self,
        key: &str,
        grader: &Map<String, Value>,
        weight: f64,
        is_gate: bool,
    ) -> Result<Vec<Value>, Refused> {
        let mut made = Vec::new();
        let patterns: Vec<String> =
            grader.get("patterns").and_then(Value::as_array).into_iter().flatten().filter_map(scalar).collect();
        let mut equals = Map::new();
        if let Some(folder) = grader.get("expect_dir").and_then(Value::as_str) {
            let path = folder.trim_start_matches("./");
            let files = copied::below(self.folder, path, Path::new("files"));
            for file in files.map_err(|why| refused(&format!("{key}.expect_dir"), why))? {
                let to = file.to.strip_prefix("files").unwrap_or(&file.to).display().to_string();
                let beside = self.case.add(&format!("expected/{to}"), Content::Copy(file.from));
                equals.insert(to, json!(beside));
            }
        }
        let parts = (usize::from(!equals.is_empty()) * equals.len() + patterns.len()).max(1) as f64;
        let keys = |name: &str, checks: usize| {
            let mut keys = common(name, weight * checks as f64 / parts, false);
            if is_gate {
                keys.remove("weight");
                keys.insert("gate".to_owned(), json!(true));
            }
            keys
        };
        if !equals.is_empty() {
            made.push(json!({"files": with(keys("files", equals.len()), json!({"equals": equals}))}));
        }
        for pattern in &patterns {
            let run = json!({"run": ["python3", "-c", PATTERNS, pattern]});
            made.push(json!({"command": with(keys(&format!("pattern {pattern}"), 1), run)}));
        }
        match made.is_empty() {
            true => Err(refused(key, "it has neither files nor patterns")),
            false => Ok(made),
        }
    }
}

fn known(kind: &str) -> &'static [&'static str] {
    match kind {
        "command" => &["cmd", "expect_exit", "timeout_s"],
        "tests" | "pytest" => &["cmd", "inject", "junit_xml", "pass_threshold", "timeout_s"],
        "swebench" => {
            &["inject", "fail_to_pass", "pass_to_pass", "cmd_prefix", "gate_weight", "pass_threshold", "timeout_s"]
        }
        "implemented" => &["files"],
        "files" => &["expect_dir", "patterns"],
        "model_judge" => &["rubric", "model", "models", "pass_threshold", "include_trace"],
        "trace" => {
            &["require_tools", "forbid_tools", "max_tool_calls", "max_tokens", "max_cost_usd", "require_no_denied"]
        }
        "efficiency" => &["target_cost_usd", "target_tokens", "target_tool_calls", "pass_threshold"],
        "tool_correctness" => &["expected", "match", "ordered"],
        _ => &[],
    }
}

/// Returns a command that fails if a file still raises `NotImplementedError`.
fn implemented(grader: &Map<String, Value>) -> String {
    let files: Vec<String> =
        grader.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(scalar).collect();
    let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
    if files.is_empty() {
        let skipped = [".git", "__pycache__", ".venv", "node_modules"].map(|name| format!("-name {name}")).join(" -o ");
        return format!(
            "test -z \"$(find . \\( {skipped} \\) -prune -o -type f -name '*.py' ! -name 'test_*' -exec grep -l NotImplementedError {{}} +)\""
        );
    }
    format!("for file in {}; do if grep -qs NotImplementedError \"$file\"; then exit 1; fi; done", files.join(" "))
}

/// Returns the matcher of a call.
fn matcher(key: &str, map: &Map<String, Value>) -> Result<Value, Refused> {
    let mut body = Map::new();
    for (name, value) in map {
        let word = value.as_str().ok_or_else(|| refused(key, format!("the matcher's `{name}` is not a text")))?;
        match name.as_str() {
            "kind" => {
                let kinds = match word {
                    "write" => json!(["edit", "delete", "move"]),
                    "read" | "execute" | "search" | "fetch" => json!(word),
                    "other" => json!(["other", "think", "switch_mode"]),
                    other => return Err(refused(key, format!("the kind `{other}` is not known"))),
                };
                body.insert("kind".to_owned(), kinds);
            }
            "raw_name" => drop(body.insert("name".to_owned(), json!(escaped_glob(word)))),
            "path_glob" => {
                // A `*` of the source also matches `/`.
                let is_equal = word.split('/').all(|part| part == "**" || !part.contains(['*', '?', '[']));
                if !is_equal {
                    return Err(refused(key, format!("the glob `{word}` matches other paths here")));
                }
                body.insert("path".to_owned(), json!(word));
            }
            other => return Err(refused(key, format!("the matcher's `{other}` has no equal"))),
        }
    }
    if body.is_empty() {
        return Err(refused(key, "a matcher is empty"));
    }
    Ok(Value::Object(body))
}

/// Returns one grader for each check of a grader `trace`, which counts the share of them.
fn trace(key: &str, grader: &Map<String, Value>, weight: f64, is_gate: bool) -> Result<Vec<Value>, Refused> {
    let mut checks: Vec<(&str, &str, Value)> = Vec::new();
    let list = |name: &str| grader.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    for (from, to) in [("require_tools", "require"), ("forbid_tools", "forbid")] {
        for item in list(from) {
            let map = item.as_object().ok_or_else(|| refused(&format!("{key}.{from}"), "an entry is not a map"))?;
            checks.push(("tool-calls", from, json!({to: [matcher(&format!("{key}.{from}"), map)?]})));
        }
    }
    match grader.get("max_tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Object(kinds)) => {
            for (kind, most) in kinds {
                if !["read", "execute", "search", "fetch"].contains(&kind.as_str()) {
                    return Err(refused(&format!("{key}.max_tool_calls"), format!("`{kind}` is several kinds here")));
                }
                checks.push(("tool-calls", "max_tool_calls", json!({"max-by-kind": {kind: most}})));
            }
        }
        Some(most) => checks.push(("tool-calls", "max_tool_calls", json!({"max": most}))),
    }
    for (from, to) in [("max_tokens", "tokens"), ("max_cost_usd", "cost-usd")] {
        if let Some(most) = grader.get(from).filter(|most| !most.is_null()) {
            checks.push(("budget", from, json!({to: most})));
        }
    }
    if grader.get("require_no_denied") == Some(&json!(true)) {
        let cel = "!permissions.exists(p, p.outcome == 'rejected' || p.outcome == 'cancelled')";
        checks.push(("expr", "require_no_denied", json!({"cel": cel})));
    }
    let count = checks.len() as f64;
    if checks.is_empty() {
        return Err(refused(key, "it has no check"));
    }
    let made = checks.into_iter().map(|(kind, name, body)| {
        let share = weight / count;
        let mut keys = common(name, if is_one(share) { 1.0 } else { share }, false);
        if is_gate {
            keys.remove("weight");
            keys.insert("gate".to_owned(), json!(true));
        }
        json!({kind: with(keys, body)})
    });
    Ok(made.collect())
}

//! Translates the graders of touchstone.

use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::parts::{common, is_one, number, with};
use super::super::restrictions::{restricting, restricting_if};
use super::super::{Content, Note, UNKNOWN, copied, source, typed};
use super::{HIDDEN, Injected, Reader, Refused, refused, with_environment};
use crate::text::shell_word;
use crate::values::escaped_glob;
use crate::yaml;

/// A script that runs the command of a grader while the hidden files are in the home of the graders, and copies those that
/// the grader injects.
const WITH_HIDDEN: &str = include_str!("with_hidden.sh");
/// The name of this script in the folder of the hidden files. The other names in it are numbers.
const SCRIPT: &str = "with_hidden.sh";
/// A program that looks for patterns in all files, as the source does.
const PATTERNS: &str = include_str!("patterns.py");
/// The command of a grader `swebench` that names none.
const PYTEST: &str = "python3 -m pytest -q -p no:cacheprovider";

impl Reader<'_> {
    /// Translates every grader. A score over fewer graders would be another one, so each must have an equivalent.
    pub(super) fn graders(&mut self, threshold: f64) -> Result<(), Refused> {
        let list = typed::list(self.keys.get("graders"), "graders")?.to_vec();
        let mut graders = Vec::new();
        let mut left = Vec::new();
        // For each translated grader, the range of the hidden files that it injects.
        let mut injects: Vec<Range<usize>> = Vec::new();
        for (at, item) in list.iter().enumerate() {
            let key = format!("graders[{at}]");
            let grader = item.as_object().ok_or_else(|| refused(&key, "it is not a map"))?;
            let before = self.injected.len();
            match self.grader(&key, grader) {
                Ok(made) => {
                    // If a grader becomes several, the first one injects the files.
                    let after = self.injected.len();
                    injects.extend((0..made.len()).map(|at| if at == 0 { before..after } else { after..after }));
                    graders.extend(made);
                }
                Err((key, why)) => {
                    let kind = grader.get("type").and_then(Value::as_str).unwrap_or_default();
                    left.push((key, why, !["trace", "efficiency", "tool_correctness", "model_judge"].contains(&kind)));
                }
            }
        }
        // Without a check of the result, the others would pass for doing little.
        if let Some((key, why, _)) = left.iter().find(|(.., is_outcome)| *is_outcome || threshold < 1.0) {
            return Err(refused(key, format!("a grader has no equivalent: {why}")));
        }
        if graders.is_empty() {
            return Err(refused("graders", "it has no grader that has an equivalent"));
        }
        if !graders.iter().any(counts) {
            return Err(refused(
                "graders",
                "no grader counts: if all are gates or have the weight 0, the source passes no agent",
            ));
        }
        if !self.injected.is_empty() {
            self.case.add(&format!("hidden/{HIDDEN}/{SCRIPT}"), Content::Text(WITH_HIDDEN.to_owned()));
            for (grader, own) in graders.iter_mut().zip(injects) {
                with_hidden(grader, self.injected.get(own).unwrap_or_default());
            }
        }
        for (key, why, _) in left {
            let note = Note::new(self.file, key, format!("the grader has no equivalent: {why}"));
            self.case.notes.push(note.of_lost_grader());
        }
        // The source runs all graders in one environment.
        let runs = |grader: &&Value| grader.get("command").or_else(|| grader.get("tests")).is_some();
        if graders.iter().filter(runs).count() > 1 {
            self.case.keys.insert("graders-home".to_owned(), json!("shared"));
        }
        self.case.keys.insert("graders".to_owned(), Value::Array(graders));
        Ok(())
    }

    fn grader(&mut self, key: &str, keys: &Map<String, Value>) -> Result<Vec<Value>, Refused> {
        let kind = typed::text(keys.get("type"), &format!("{key}.type"))?.unwrap_or_default();
        let weight = typed::amount(keys.get("weight"), &format!("{key}.weight"))?.unwrap_or(1.0);
        let is_gate = typed::flag(keys.get("gate"), &format!("{key}.gate"))?.unwrap_or(false);
        let grader = Grader { key, keys, weight, is_gate };
        let known = known(kind);
        for name in keys
            .keys()
            .filter(|name| !["type", "weight", "gate"].contains(&name.as_str()) && !known.contains(&name.as_str()))
        {
            self.case.notes.push(Note::new(self.file, grader.place(name), UNKNOWN));
        }
        match kind {
            "command" => self.command(&grader),
            "tests" | "pytest" => self.tests(&grader, kind == "pytest"),
            "swebench" => self.swebench(&grader),
            "implemented" => Ok(grader.one("command", json!({"run": implemented(&grader)?}))),
            "files" => self.files(&grader),
            "model_judge" => self.model_judge(&grader),
            "trace" => trace(&grader),
            "efficiency" => self.efficiency(&grader),
            "tool_correctness" => tool_correctness(&grader),
            "" => Err(refused(&grader.place("type"), "the key is missing")),
            other => Err(refused(&grader.place("type"), format!("the type `{other}` is not known"))),
        }
    }

    fn command(&self, grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
        let command = grader.required("cmd", "there is no command")?;
        let exit = typed::integer(grader.get("expect_exit"), &grader.place("expect_exit"))?.unwrap_or(0);
        let mut body = json!({"run": with_environment(command, self.has_venv()?), "timeout": grader.timeout(300)?});
        if let Some(map) = body.as_object_mut().filter(|_| exit != 0) {
            map.insert("exit".to_owned(), json!(exit));
        }
        Ok(grader.one("command", body))
    }

    fn tests(&mut self, grader: &Grader<'_>, is_pytest: bool) -> Result<Vec<Value>, Refused> {
        let names = self.inject(grader.key, grader.keys)?;
        let command = match grader.text("cmd")? {
            Some(command) => command.to_owned(),
            None if is_pytest => {
                let names: Vec<String> = names.iter().map(|name| shell_word(name)).collect();
                format!("python3 -m pytest -q {}", names.join(" ")).trim_end().to_owned()
            }
            None => return Err(refused(&grader.place("cmd"), "there is no command")),
        };
        let mut body = json!({"run": with_environment(&command, self.has_venv()?), "timeout": grader.timeout(300)?});
        if let (Some(report), Some(map)) = (grader.text("junit_xml")?, body.as_object_mut()) {
            map.insert("report".to_owned(), json!(report));
        }
        Ok(grader.one("tests", body))
    }

    fn swebench(&mut self, grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
        self.inject(grader.key, grader.keys)?;
        let (fail, pass) = (grader.texts("fail_to_pass")?, grader.texts("pass_to_pass")?);
        if fail.is_empty() {
            return Err(refused(&grader.place("fail_to_pass"), "the list is empty"));
        }
        let prefix = grader.text("cmd_prefix")?.unwrap_or(PYTEST);
        let (venv, timeout) = (self.has_venv()?, grader.timeout(600)?);
        let run = |ids: &[String]| {
            let ids: Vec<String> = ids.iter().map(|id| shell_word(id)).collect();
            json!({"run": with_environment(&format!("{prefix} {}", ids.join(" ")), venv), "timeout": timeout})
        };
        let fails = Grader { is_gate: false, ..*grader };
        let mut made = vec![json!({"tests": with(fails.common("fail-to-pass", grader.weight), run(&fail))})];
        if !pass.is_empty() {
            let passes = Grader { is_gate: true, ..*grader };
            made.push(json!({"tests": with(passes.common("pass-to-pass", 1.0), run(&pass))}));
        }
        Ok(made)
    }

    fn model_judge(&mut self, grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
        let rubric = grader.required("rubric", "there is no rubric")?;
        let wrong = |why: String| refused(&grader.place("rubric"), why);
        let file = source::named(self.folder, rubric).map_err(wrong)?;
        let rubric = yaml::read(&file).map_err(|error| wrong(error.to_string()))?;
        let message = "the judge is named with `evals run --judge`; as in the source, only full points count as 1";
        self.case.notes.push(Note::new(self.file, grader.key, message));
        let ask = format!("How well does the final answer satisfy this rubric?\n{}", rubric.trim());
        let criterion = json!({"id": "rubric", "ask": ask, "scale": {"from": 0, "to": 10, "pass": 10}});
        Ok(grader.one("rubric", json!({"show": ["closing"], "criteria": [criterion]})))
    }

    fn efficiency(&mut self, grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
        let targets =
            [("target_cost_usd", "cost-usd"), ("target_tokens", "tokens"), ("target_tool_calls", "tool-calls")];
        let mut body = Map::new();
        for (from, to) in targets {
            if typed::amount(grader.get(from), &grader.place(from))?.is_some() {
                body.extend(grader.get(from).map(|value| (to.to_owned(), value.clone())));
            }
        }
        if body.is_empty() {
            return Err(refused(grader.key, "it has no target"));
        }
        let message =
            "a target is a hard limit here: the source gives a share above it, and takes what is unknown for 0";
        self.case.notes.push(Note::new(self.file, grader.key, message));
        Ok(grader.one("budget", restricting(Value::Object(body))))
    }

    fn files(&mut self, grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
        let mut made = Vec::new();
        let patterns = grader.texts("patterns")?;
        let mut equals = Map::new();
        if let Some(folder) = grader.text("expect_dir")? {
            let path = folder.trim_start_matches("./");
            let files = copied::below(self.folder, path, Path::new("files"));
            for file in files.map_err(|why| refused(&grader.place("expect_dir"), why))? {
                let to = file.to.strip_prefix("files").unwrap_or(&file.to).display().to_string();
                let beside = self.case.add(&format!("expected/{to}"), Content::Copy(file.from));
                equals.insert(to, json!(beside));
            }
        }
        let parts = (equals.len() + patterns.len()).max(1) as f64;
        let keys = |name: &str, checks: usize| grader.common(name, grader.weight * checks as f64 / parts);
        if !equals.is_empty() {
            made.push(json!({"files": with(keys("files", equals.len()), json!({"equals": equals}))}));
        }
        for pattern in &patterns {
            let run = json!({"run": ["python3", "-I", "-c", PATTERNS, pattern]});
            made.push(json!({"command": with(keys(&format!("pattern {pattern}"), 1), run)}));
        }
        match made.is_empty() {
            true => Err(refused(grader.key, "it has neither files nor patterns")),
            false => Ok(made),
        }
    }
}

/// Returns true if a grader counts towards the score.
fn counts(grader: &Value) -> bool {
    let body = grader.as_object().and_then(|map| map.values().next());
    let weight = |body: &Value| body.get("weight").and_then(Value::as_f64);
    body.is_some_and(|body| body.get("gate") != Some(&json!(true)) && weight(body).is_none_or(|weight| weight > 0.0))
}

/// Changes the command of a grader so that it finds no hidden files but those that it injects and those of earlier graders.
/// The source copies hidden files when the grader that names them runs.
fn with_hidden(grader: &mut Value, injected: &[Injected]) {
    for run in grader.as_object_mut().into_iter().flat_map(Map::values_mut).filter_map(|body| body.get_mut("run")) {
        let command = match &*run {
            Value::Array(words) => {
                words.iter().filter_map(Value::as_str).map(shell_word).collect::<Vec<String>>().join(" ")
            }
            line => line.as_str().unwrap_or_default().to_owned(),
        };
        let mut line = format!("sh {HIDDEN}/{SCRIPT} {}", shell_word(&command));
        for file in injected {
            line.push_str(&format!(" {} {}", shell_word(&file.from), shell_word(&format!("./{}", file.to))));
        }
        *run = json!(line);
    }
}

/// A grader of the source, and the keys that each grader has.
struct Grader<'a> {
    /// The grader's place in the file.
    key: &'a str,
    keys: &'a Map<String, Value>,
    weight: f64,
    is_gate: bool,
}

impl Grader<'_> {
    fn place(&self, name: &str) -> String {
        format!("{}.{name}", self.key)
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.keys.get(name)
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Refused> {
        Ok(typed::text(self.get(name), &self.place(name))?.filter(|text| !text.trim().is_empty()))
    }

    fn required(&self, name: &str, why: &str) -> Result<&str, Refused> {
        self.text(name)?.ok_or_else(|| refused(&self.place(name), why))
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, Refused> {
        typed::texts(self.get(name), &self.place(name))
    }

    fn flag(&self, name: &str) -> Result<bool, Refused> {
        Ok(typed::flag(self.get(name), &self.place(name))?.unwrap_or(false))
    }

    /// Returns the timeout, or the one that the source has for this kind.
    fn timeout(&self, usual: u32) -> Result<String, Refused> {
        let seconds = typed::seconds(self.get("timeout_s"), &self.place("timeout_s"))?;
        Ok(format!("{}s", seconds.unwrap_or_else(|| f64::from(usual))))
    }

    /// Returns the keys that each grader of a case takes.
    fn common(&self, name: &str, weight: f64) -> Map<String, Value> {
        let mut keys = common(name, weight, false);
        if self.is_gate {
            keys.remove("weight");
            keys.insert("gate".to_owned(), json!(true));
        }
        keys
    }

    /// Returns the only grader of a case that this one becomes.
    fn one(&self, kind: &str, body: Value) -> Vec<Value> {
        vec![json!({kind: with(self.common(kind, self.weight), body)})]
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
fn implemented(grader: &Grader<'_>) -> Result<String, Refused> {
    let files: Vec<String> = grader.texts("files")?.iter().map(|file| shell_word(file)).collect();
    if files.is_empty() {
        let skipped = [".git", "__pycache__", ".venv", "node_modules"].map(|name| format!("-name {name}")).join(" -o ");
        return Ok(format!(
            "test -z \"$(find . \\( {skipped} \\) -prune -o -type f -name '*.py' ! -name 'test_*' -exec grep -l NotImplementedError {{}} +)\""
        ));
    }
    Ok(format!("for file in {}; do if grep -qs NotImplementedError \"$file\"; then exit 1; fi; done", files.join(" ")))
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
            other => return Err(refused(key, format!("the matcher's `{other}` has no equivalent"))),
        }
    }
    if body.is_empty() {
        return Err(refused(key, "a matcher is empty"));
    }
    Ok(Value::Object(body))
}

fn tool_correctness(grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
    let axis = grader.text("match")?.unwrap_or("kind");
    let place = grader.place("expected");
    let expected = typed::list(grader.get("expected"), &place)?.iter().map(|item| match item {
        Value::String(word) => matcher(grader.key, &Map::from_iter([(axis.to_owned(), json!(word))])),
        Value::Object(map) => matcher(grader.key, map),
        _ => Err(refused(&place, "an entry is neither a word nor a map")),
    });
    let expected = expected.collect::<Result<Vec<_>, _>>()?;
    if expected.is_empty() {
        return Err(refused(&place, "the list is empty"));
    }
    let mode = if grader.flag("ordered")? { "ordered-f1" } else { "f1" };
    Ok(grader.one("trajectory", json!({"mode": mode, "expected": expected})))
}

/// Returns one grader for each check of a `trace` grader. The checks share its weight, because its score is the
/// share of the checks that pass.
fn trace(grader: &Grader<'_>) -> Result<Vec<Value>, Refused> {
    let mut checks: Vec<(&str, &str, Value)> = Vec::new();
    for (from, to) in [("require_tools", "require"), ("forbid_tools", "forbid")] {
        let place = grader.place(from);
        for item in typed::list(grader.get(from), &place)? {
            let map = item.as_object().ok_or_else(|| refused(&place, "an entry is not a map"))?;
            checks.push(("tool-calls", from, json!({to: [matcher(&place, map)?]})));
        }
    }
    let place = grader.place("max_tool_calls");
    match grader.get("max_tool_calls") {
        Some(Value::Object(kinds)) => {
            for (kind, most) in kinds {
                if !["read", "execute", "search", "fetch"].contains(&kind.as_str()) {
                    return Err(refused(&place, format!("`{kind}` is several kinds here")));
                }
                if let Some(most) = typed::whole(Some(most), &format!("{place}.{kind}"))? {
                    checks.push(("tool-calls", "max_tool_calls", json!({"max-by-kind": {kind: most}})));
                }
            }
        }
        most => {
            if let Some(most) = typed::whole(most, &place)? {
                checks.push(("tool-calls", "max_tool_calls", json!({"max": most})));
            }
        }
    }
    if let Some(most) = typed::whole(grader.get("max_tokens"), &grader.place("max_tokens"))? {
        checks.push(("budget", "max_tokens", json!({"tokens": most})));
    }
    if let Some(most) = typed::amount(grader.get("max_cost_usd"), &grader.place("max_cost_usd"))? {
        checks.push(("budget", "max_cost_usd", json!({"cost-usd": number(most)})));
    }
    if grader.flag("require_no_denied")? {
        let cel = "!permissions.exists(p, p.outcome == 'rejected' || p.outcome == 'cancelled')";
        checks.push(("expr", "require_no_denied", json!({"cel": cel})));
    }
    if checks.is_empty() {
        return Err(refused(grader.key, "it has no check"));
    }
    let share = grader.weight / checks.len() as f64;
    let share = if is_one(share) { 1.0 } else { share };
    let made = checks.into_iter().map(|(kind, name, body)| {
        let body = restricting_if(name != "require_tools", body);
        json!({kind: with(grader.common(name, share), body)})
    });
    Ok(made.collect())
}

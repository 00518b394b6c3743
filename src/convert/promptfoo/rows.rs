//! Tests of promptfoo: in the configuration, in files of tests, in tables, and in scenarios.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::{Note, csv, numbers, one_line, slug, source};
use super::values;
use crate::yaml;

/// The maximum number of combinations of variables of a test.
const MAX_COMBINATIONS: usize = 1_000;

/// An assertion with its place.
#[derive(Debug, Clone)]
pub struct Assertion {
    pub file: PathBuf,
    /// The line, if it is known without searching.
    pub line: Option<usize>,
    /// The place in the file.
    pub key: String,
    /// The keys.
    pub value: Value,
}

/// A test, or the defaults of all tests.
#[derive(Debug, Clone, Default)]
pub struct Test {
    pub file: PathBuf,
    /// The line, if it is known without searching.
    pub line: Option<usize>,
    /// The place in the file.
    pub key: String,
    /// The name for the case.
    pub name: String,
    pub description: Option<String>,
    pub asserts: Vec<Assertion>,
    /// The score from which the test passes, regardless of single assertions.
    pub threshold: Option<f64>,
    /// The number of the last assertions that are the test's own. The others are defaults.
    pub own: usize,
    /// The prompts that the test is run with. `None` for all.
    pub prompts: Option<Vec<String>>,
    /// Notes about parts that were not converted.
    pub notes: Vec<Note>,
    vars: Map<String, Value>,
    options: Map<String, Value>,
    wrong: Option<(&'static str, String)>,
}

impl Test {
    /// Returns the test with the defaults below it.
    pub fn with_defaults(&self, defaults: &Self) -> Self {
        let mut merged = self.clone();
        merged.vars = defaults.vars.clone();
        merged.vars.extend(self.vars.clone());
        merged.options = defaults.options.clone();
        merged.options.extend(self.options.clone());
        let are_left_out = merged.options.get("disableDefaultAsserts").and_then(Value::as_bool) == Some(true);
        let own = defaults.asserts.iter().filter(|_| !are_left_out);
        merged.asserts = own.chain(&self.asserts).cloned().collect();
        merged.own = self.asserts.len();
        merged.threshold = self.threshold.or(defaults.threshold);
        merged.notes = defaults.notes.iter().chain(&self.notes).cloned().collect();
        merged.prompts = self.prompts.clone().or_else(|| defaults.prompts.clone());
        merged.wrong = self.wrong.clone().or_else(|| defaults.wrong.clone());
        merged
    }

    /// Returns the key without an equivalent, and the reason why the test would be another one without it.
    pub fn refused(&self) -> Option<(&'static str, String)> {
        if let Some((key, why)) = &self.wrong {
            return Some((*key, why.clone()));
        }
        for key in ["transform", "postprocess"] {
            if self.options.get(key).is_some_and(|value| !value.is_null()) {
                let why = format!("`{key}` changes the answer before it is checked");
                return Some(("options", why));
            }
        }
        if self.options.get("transformVars").is_some_and(|value| !value.is_null()) {
            return Some(("options", "`transformVars` is a program that makes the variables".to_owned()));
        }
        match self.threshold {
            Some(threshold) if threshold <= 0.0 => {
                Some(("threshold", "its threshold is 0, so it cannot fail".to_owned()))
            }
            Some(threshold) if threshold > 1.0 => {
                Some(("threshold", "its threshold is above 1, so it cannot pass".to_owned()))
            }
            _ => None,
        }
    }

    /// Refuses the test, or every test that has these defaults.
    pub fn refuse(&mut self, key: &'static str, why: &str) {
        self.wrong = Some((key, why.to_owned()));
    }

    pub fn option_text(&self, key: &str) -> String {
        self.options.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    /// Returns the combinations of variables: a variable with a list has each of its values once.
    pub fn combinations(&self, folder: &Path) -> Result<Vec<Map<String, Value>>, String> {
        let are_kept = self.options.get("disableVarExpansion").and_then(Value::as_bool) == Some(true);
        let mut combinations = vec![Map::new()];
        for (name, value) in &self.vars {
            let values: Vec<Value> = match value {
                Value::Array(list) if !are_kept => list.clone(),
                other => vec![other.clone()],
            };
            let values = values.into_iter().map(|value| loaded(name, value, folder)).collect::<Result<Vec<_>, _>>()?;
            if combinations.len().saturating_mul(values.len()) > MAX_COMBINATIONS {
                return Err(format!("its variables have more than {MAX_COMBINATIONS} combinations"));
            }
            combinations = combinations
                .iter()
                .flat_map(|vars| values.iter().map(move |value| (vars, value)))
                .map(|(vars, value)| {
                    vars.iter()
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .chain([(name.clone(), value.clone())])
                        .collect()
                })
                .collect();
        }
        if combinations.is_empty() {
            return Err("a variable is an empty list".to_owned());
        }
        Ok(combinations)
    }
}

/// Returns the value of a variable, read from its file.
fn loaded(name: &str, value: Value, folder: &Path) -> Result<Value, String> {
    let Value::String(text) = &value else { return Ok(value) };
    let Some(path) = text.strip_prefix("file://") else {
        if text.starts_with("package:") {
            return Err(format!("the variable `{name}` is made by a program"));
        }
        // The source removes the line end of a block of text.
        return Ok(json!(text.strip_suffix('\n').unwrap_or(text)));
    };
    let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    if ends(&[".yaml", ".yml", ".json"]) {
        let file = source::named(folder, path)?;
        let value = values::read(&file, true).map_err(first)?;
        if let Some(why) = values::unclear(&value) {
            return Err(format!("the variable `{name}` is read from `{path}`: {why}"));
        }
        return Ok(json!(value.to_string()));
    }
    if !ends(&[".txt", ".md", ".csv", ".html", ".xml", ".diff", ".patch"]) {
        return Err(format!("the variable `{name}` is read from `{path}`, which is a program or no text"));
    }
    let file = source::named(folder, path)?;
    let text = yaml::read(&file).map_err(|error| error.message().to_owned())?;
    Ok(json!(text.strip_suffix('\n').unwrap_or(&text)))
}

/// Returns the defaults and the tests of a configuration.
pub fn all(keys: &Map<String, Value>, file: &Path, folder: &Path, notes: &mut Vec<Note>) -> (Test, Vec<Test>) {
    let mut defaults = Test::default();
    match keys.get("defaultTest") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => defaults = test(map, file, "defaultTest", 0),
        Some(Value::String(path)) => {
            match named(folder, path).and_then(|from| Ok((values::read(&from, false).map_err(first)?, from))) {
                Ok((Value::Object(map), from)) => defaults = test(&map, &from, "", 0),
                Ok(_) => defaults.wrong = Some(("defaultTest", "its defaults are no map".to_owned())),
                Err(why) => defaults.wrong = Some(("defaultTest", why)),
            }
        }
        Some(_) => defaults.wrong = Some(("defaultTest", "its defaults are no map".to_owned())),
    }
    let mut tests = Vec::new();
    match keys.get("tests") {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => {
            for (at, item) in list.iter().enumerate() {
                entry(item, file, &format!("tests[{at}]"), folder, notes, &mut tests);
            }
        }
        Some(one) => entry(one, file, "tests", folder, notes, &mut tests),
    }
    match keys.get("scenarios") {
        None | Some(Value::Null) => {}
        Some(Value::Array(scenarios)) => {
            for (at, scenario) in scenarios.iter().enumerate() {
                self::scenario(scenario, file, &format!("scenarios[{at}]"), notes, &mut tests);
            }
        }
        Some(_) => notes.push(Note::new(file, "scenarios", "no case was written: `scenarios` must be a list of maps")),
    }
    for (number, test) in tests.iter_mut().enumerate() {
        let name = test.description.as_deref().filter(|text| !text.contains("{{")).and_then(slug);
        test.name = name.unwrap_or_else(|| format!("test-{}", number + 1));
    }
    (defaults, tests)
}

fn first(errors: Vec<crate::yaml::YamlError>) -> String {
    errors.first().map_or_else(|| "the file cannot be read".to_owned(), ToString::to_string)
}

fn named(folder: &Path, path: &str) -> Result<PathBuf, String> {
    source::named(folder, path.strip_prefix("file://").unwrap_or(path))
}

/// Reads one entry of `tests`: a test, or a file of tests.
fn entry(item: &Value, file: &Path, key: &str, folder: &Path, notes: &mut Vec<Note>, tests: &mut Vec<Test>) {
    let mut refuse = |why: String| notes.push(Note::new(file, key, format!("no case was written: {why}")));
    let path = match item {
        Value::Object(map) if map.contains_key("path") && !map.contains_key("vars") && !map.contains_key("assert") => {
            return refuse("a generator of tests is a program".to_owned());
        }
        Value::Object(map) => return tests.push(test(map, file, key, 0)),
        Value::String(path) => path,
        _ => return refuse("this is neither a test nor a path".to_owned()),
    };
    let bare = path.strip_prefix("file://").unwrap_or(path);
    let ends = |ends: &[&str]| ends.iter().any(|end| bare.ends_with(end));
    if bare.contains("://") {
        return refuse(format!("`{path}` is a remote file; download it and name the copy"));
    }
    if bare.contains('*') {
        return refuse(format!("`{path}` names several files; name each file"));
    }
    if !ends(&[".csv", ".yaml", ".yml", ".json", ".jsonl"]) {
        return refuse(format!("`{path}` is a program, or a file in an unknown format"));
    }
    let read = || -> Result<Vec<Test>, String> {
        let from = source::named(folder, bare)?;
        if bare.ends_with(".csv") {
            let text = yaml::read(&from).map_err(|error| error.message().to_owned())?;
            let rows = csv::rows(&from, &text).map_err(|error| error.to_string())?;
            return Ok(rows.iter().map(|row| of_row(row, &from)).collect());
        }
        let list = if bare.ends_with(".jsonl") {
            let text = yaml::read(&from).map_err(|error| error.message().to_owned())?;
            let lines = source::json_lines(&from, &text).map_err(|error| error.to_string())?;
            lines.into_iter().map(|(line, value)| (line, numbers::as_in_javascript(value))).collect()
        } else {
            match values::read(&from, false).map_err(first)? {
                Value::Array(list) => list.into_iter().map(|item| (0, item)).collect(),
                one => vec![(0, one)],
            }
        };
        let maps = list.iter().enumerate().map(|(at, (line, item))| match item {
            Value::Object(map) => Ok(test(map, &from, &format!("[{at}]"), *line)),
            _ => Err(format!("entry {} of `{bare}` is not a map", at + 1)),
        });
        maps.collect()
    };
    match read() {
        Ok(found) => tests.extend(found),
        Err(why) => refuse(why),
    }
}

/// The keys of a test that need no translation, or are translated elsewhere.
const KNOWN: [&str; 8] = ["description", "vars", "assert", "threshold", "options", "prompts", "metadata", "_line"];

fn test(map: &Map<String, Value>, file: &Path, key: &str, line: usize) -> Test {
    let line = Some(line).filter(|line| *line > 0);
    let mut test = Test { file: file.to_owned(), line, key: key.to_owned(), ..Test::default() };
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    test.description = map.get("description").and_then(Value::as_str).map(one_line);
    match map.get("vars") {
        None | Some(Value::Null) => {}
        Some(Value::Object(vars)) => test.vars = vars.clone(),
        Some(_) => test.wrong = Some(("vars", "its variables are in a file or made by a program".to_owned())),
    }
    match map.get("assert") {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => {
            let at = |(at, value): (usize, &Value)| {
                let key = below(&format!("assert[{at}]"));
                Assertion { file: file.to_owned(), line, key, value: value.clone() }
            };
            test.asserts = list.iter().enumerate().map(at).collect();
        }
        Some(_) => test.wrong = Some(("assert", "its assertions are no list".to_owned())),
    }
    match map.get("threshold") {
        None | Some(Value::Null) => {}
        Some(value) => match value.as_f64() {
            Some(threshold) => test.threshold = Some(threshold),
            None => test.wrong = Some(("threshold", "its threshold is no number".to_owned())),
        },
    }
    if let Some(options) = map.get("options").and_then(Value::as_object) {
        test.options = options.clone();
        let known = [
            "transform",
            "postprocess",
            "transformVars",
            "prefix",
            "suffix",
            "disableVarExpansion",
            "disableDefaultAsserts",
        ];
        for name in options.keys().filter(|name| !known.contains(&name.as_str())) {
            let message = "left out: the option has no equivalent; a judge is named with `evals run --judge`";
            test.notes.push(Note::new(file, below(&format!("options.{name}")), message).on(line));
        }
    }
    if let Some(value) = map.get("prompts") {
        let names = value.as_array().map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect());
        test.prompts = names.or_else(|| value.as_str().map(|name| vec![name.to_owned()]));
    }
    if map.get("metadata").is_some_and(|value| !value.is_null()) {
        test.notes.push(Note::new(file, below("metadata"), "left out: a case has tags, and no free metadata").on(line));
    }
    for name in map.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
        let message = match name.as_str() {
            "assertScoringFunction" => {
                test.wrong = Some(("assertScoringFunction", "a program computes its score".to_owned()));
                continue;
            }
            "providerOutput" => {
                test.wrong = Some(("providerOutput", "it checks a fixed answer, and asks no agent".to_owned()));
                continue;
            }
            "provider" | "providers" => "left out: a case names no model; run it with --harness and --model",
            _ => "the key has no equivalent, and was left out",
        };
        test.notes.push(Note::new(file, below(name), message).on(line));
    }
    test
}

/// Reads a test of a table: columns are variables, and `__expected` is an assertion.
fn of_row(row: &csv::Row, file: &Path) -> Test {
    let key = "row".to_owned();
    let mut test = Test { file: file.to_owned(), line: Some(row.line), key, ..Test::default() };
    let mut thresholds: Vec<(&str, &str)> = Vec::new();
    for (name, value) in &row.cells {
        let text = value.trim();
        match name.as_str() {
            _ if name.starts_with("__expected") => {
                if !text.is_empty() {
                    let value = written(text);
                    test.asserts.push(Assertion {
                        file: file.to_owned(),
                        line: Some(row.line),
                        key: name.clone(),
                        value,
                    });
                }
            }
            "__prefix" | "__suffix" => drop(test.options.insert(name.trim_start_matches('_').to_owned(), json!(value))),
            "__description" => test.description = Some(one_line(text)).filter(|text| !text.is_empty()),
            "__threshold" if text.is_empty() => {}
            "__threshold" => match text.parse::<f64>() {
                // The source takes 0 for no threshold here.
                Ok(threshold) if threshold.is_finite() => {
                    test.threshold = Some(threshold).filter(|threshold| *threshold != 0.0);
                }
                _ => test.wrong = Some(("__threshold", "its threshold is no number".to_owned())),
            },
            "__metric" => {}
            "__providerOutput" if text.is_empty() => {}
            "__providerOutput" => {
                test.wrong = Some(("__providerOutput", "it checks a fixed answer, and asks no agent".to_owned()));
            }
            _ if name.starts_with("__metadata") && text.is_empty() => {}
            _ if name.starts_with("__config:") => {
                // The numbers of assertions are known when all columns were read.
                thresholds.push((name.as_str(), text));
            }
            _ if name.starts_with("__") => {
                test.notes.push(
                    Note::new(file, name.clone(), "the column has no equivalent, and was left out").on(Some(row.line)),
                );
            }
            _ => drop(test.vars.insert(name.clone(), json!(value))),
        }
    }
    for (name, text) in thresholds {
        let assertion =
            configured(name).and_then(|at| test.asserts.get_mut(at)).and_then(|it| it.value.as_object_mut());
        match (assertion, text.parse::<f64>()) {
            (Some(map), Ok(threshold)) if threshold.is_finite() => {
                _ = map.insert("threshold".to_owned(), json!(threshold))
            }
            // The source refuses the table.
            _ => test.wrong = Some(("__config", format!("`{name}` gives no threshold to one of its assertions"))),
        }
    }
    test
}

/// Returns the index of the assertion in `__config:__expected2:threshold`.
fn configured(column: &str) -> Option<usize> {
    let number = column.strip_prefix("__config:__expected")?.strip_suffix(":threshold")?;
    if number.is_empty() { Some(0) } else { number.parse::<usize>().ok()?.checked_sub(1) }
}

/// Returns the texts of a list in a cell: separated by commas, some in quotes. `None` if a quote has no end, or is
/// followed by a text.
fn listed(text: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    while !rest.is_empty() {
        let mut chars = rest.char_indices();
        if chars.next().is_some_and(|(_, first)| first == '"') {
            let (mut item, mut end) = (String::new(), None);
            while let Some((at, c)) = chars.next() {
                let next = rest.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
                match (c, next) {
                    ('\\', Some(next @ ('"' | '\\'))) => item.push(next),
                    ('"', Some('"')) => item.push('"'),
                    ('"', _) => {
                        end = Some(at + 1);
                        break;
                    }
                    _ => {
                        item.push(c);
                        continue;
                    }
                }
                chars.next();
            }
            found.push(item);
            rest = rest.get(end?..)?.trim_start();
            if !(rest.is_empty() || rest.starts_with(',')) {
                return None;
            }
        } else {
            let (item, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            found.push(item.trim().to_owned());
            rest = after;
        }
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
    Some(found)
}

/// Returns the assertion that a cell of `__expected` writes: `type: value`, `type(threshold): value`, or a text to equal.
fn written(text: &str) -> Value {
    for prefix in ["javascript:", "fn:", "eval:"] {
        if let Some(code) = text.strip_prefix(prefix) {
            return json!({"type": "javascript", "value": code.trim()});
        }
    }
    for prefix in ["grade:", "llm-rubric:"] {
        if let Some(rubric) = text.strip_prefix(prefix) {
            return json!({"type": "llm-rubric", "value": rubric});
        }
    }
    if let Some(code) = text.strip_prefix("python:") {
        return json!({"type": "python", "value": code.trim()});
    }
    if let Some(path) = text.strip_prefix("file://") {
        let is = |end: &str| path.ends_with(end) || path.contains(&format!("{end}:"));
        if is(".py") {
            return json!({"type": "python", "value": text});
        }
        if is(".js") || is(".ts") || is(".mjs") || is(".cjs") {
            return json!({"type": "javascript", "value": text});
        }
    }
    // A type may have a colon.
    let ends = text.match_indices(':').map(|(at, _)| at).chain([text.len()]).take(2);
    let heads = ends.filter_map(|at| Some((text.get(..at)?, text.get(at + 1..))));
    let found = heads
        .filter_map(|(head, value)| Some((head_of(head)?, value)))
        .find(|((kind, _), _)| super::asserts::is_type_of_cells(kind));
    let Some(((kind, threshold), value)) = found else {
        return json!({"type": "equals", "value": text});
    };
    let mut map = Map::from_iter([("type".to_owned(), json!(kind))]);
    if let Some(value) = value {
        let list = ["contains-all", "contains-any"].iter().any(|end| kind.ends_with(end));
        let value = match list {
            // Without a value, the assertion has no equivalent.
            true => listed(value).map_or(Value::Null, |items| json!(items)),
            false if kind.ends_with("-json") => json!(value),
            false => json!(value.trim()),
        };
        map.insert("value".to_owned(), value);
    }
    // The source drops the number of other types.
    if WITH_THRESHOLD.contains(&kind.strip_prefix("not-").unwrap_or(kind)) {
        map.insert("threshold".to_owned(), json!(threshold.unwrap_or(0.75)));
    }
    Value::Object(map)
}

/// The types whose number in parentheses, or 0.75, is their threshold. Of `similar` no other number is needed, because it
/// has no equivalent.
const WITH_THRESHOLD: [&str; 13] = [
    "answer-relevance",
    "classifier",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "cost",
    "latency",
    "levenshtein",
    "perplexity-score",
    "perplexity",
    "rouge-n",
    "similar",
    "starts-with",
];

/// Splits `type(0.5)` into the type and the number.
fn head_of(head: &str) -> Option<(&str, Option<f64>)> {
    let Some((kind, number)) = head.strip_suffix(')').and_then(|head| head.split_once('(')) else {
        return Some((head, None));
    };
    let is_number = number.starts_with(|c: char| c.is_ascii_digit())
        && number.ends_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    Some((kind, Some(number.parse().ok().filter(|_| is_number)?)))
}

/// Reads a scenario: each of its tests with each of its configurations.
fn scenario(scenario: &Value, file: &Path, key: &str, notes: &mut Vec<Note>, tests: &mut Vec<Test>) {
    let list =
        |name: &str| scenario.get(name).and_then(Value::as_array).filter(|list| list.iter().all(Value::is_object));
    let (Some(configs), Some(inner)) = (list("config"), list("tests")) else {
        let why = "no case was written: a scenario must have lists of maps, `config` and `tests`";
        return notes.push(Note::new(file, key, why));
    };
    for (at, config) in configs.iter().enumerate() {
        let Value::Object(config) = config else { continue };
        let base = self::test(config, file, &format!("{key}.config[{at}]"), 0);
        for (number, item) in inner.iter().enumerate() {
            let Value::Object(item) = item else { continue };
            tests.push(self::test(item, file, &format!("{key}.tests[{number}]"), 0).with_defaults(&base));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_read_as_the_source_reads_it() {
        for (text, value) in [
            ("contains: a ", json!({"type": "contains", "value": "a"})),
            ("not-contains: b", json!({"type": "not-contains", "value": "b"})),
            ("contains-any: a, b,,", json!({"type": "contains-any", "value": ["a", "b"]})),
            (r#"contains-all: "a, ""b""" , c\"#, json!({"type": "contains-all", "value": ["a, \"b\"", "c\\"]})),
            (r#"contains-all: "a"#, json!({"type": "contains-all", "value": null})),
            (r#"contains-all: "a" b"#, json!({"type": "contains-all", "value": null})),
            ("equals", json!({"type": "equals"})),
            ("trajectory:tool-used: foo", json!({"type": "trajectory:tool-used", "value": "foo"})),
            ("trajectory:tool-used", json!({"type": "trajectory:tool-used"})),
            ("similar:cosine: foo", json!({"type": "similar", "value": "cosine: foo", "threshold": 0.75})),
            ("llm-rubric(0.6): ok", json!({"type": "llm-rubric", "value": "ok"})),
            ("not-javascript(0.6): 0.5", json!({"type": "not-javascript", "value": "0.5"})),
            ("latency(20)", json!({"type": "latency", "threshold": 20.0})),
            ("cost: 1", json!({"type": "cost", "value": "1", "threshold": 0.75})),
            ("contains(1: a", json!({"type": "equals", "value": "contains(1: a"})),
            ("contains(.5): a", json!({"type": "equals", "value": "contains(.5): a"})),
            ("human: a", json!({"type": "equals", "value": "human: a"})),
            ("a: b", json!({"type": "equals", "value": "a: b"})),
        ] {
            assert_eq!(written(text), value, "{text}");
        }
        for (column, at) in [
            ("__config:__expected:threshold", Some(0)),
            ("__config:__expected2:threshold", Some(1)),
            ("__config:__expected0:threshold", None),
            ("__config:__expected:weight", None),
        ] {
            assert_eq!(configured(column), at, "{column}");
        }
    }

    #[test]
    fn the_threshold_of_a_column_is_that_of_its_assertion() {
        let row = |column: &str, text: &str| {
            let cell = |name: &str, text: &str| (name.to_owned(), text.to_owned());
            let cells =
                vec![cell("__expected", "llm-rubric: good"), cell("__expected2", "contains: a"), cell(column, text)];
            of_row(&csv::Row { line: 2, cells }, Path::new("t.csv"))
        };
        let test = row("__config:__expected:threshold", "0.8");
        assert_eq!(test.asserts[0].value["threshold"], json!(0.8));
        for (column, text) in [("__config:__expected3:threshold", "0.8"), ("__config:__expected:threshold", "high")] {
            assert!(row(column, text).refused().is_some(), "{column}: {text}");
        }
        assert_eq!(row("__threshold", "0.8").threshold, Some(0.8));
        for text in ["nan", "inf", "high"] {
            assert!(row("__threshold", text).refused().is_some(), "{text}");
        }
    }
}

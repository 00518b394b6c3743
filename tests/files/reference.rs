//! The pages of `docs/reference/`: tables of keys from the schemas, help from the program, and lists of files and
//! variables that are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::Value;

use crate::house::sources;
use crate::project::Project;

const END: &str = "<!-- end -->\n";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/reference/{name}.md"))
}

/// Compares the made part of a page, which begins after a line. With `EVALS_DOCS=write` in the environment, the part is
/// written anew.
#[track_caller]
fn holds(name: &str, begin: &str, made: &str) {
    let path = page(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (front, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{name}: no line {begin}"));
    let (part, back) = rest.split_once(END).unwrap_or_else(|| panic!("{name}: no line {END}"));
    let made = format!("\n{}\n\n", made.trim());
    if std::env::var("EVALS_DOCS").is_ok_and(|value| value == "write") {
        fs::write(&path, format!("{front}{begin}{made}{END}{back}")).unwrap();
    } else {
        assert!(part == made, "docs/reference/{name}.md: run this test with EVALS_DOCS=write; it should be\n{made}");
    }
}

/// Definitions that other pages describe, and the links to them.
const LINKED: [(&str, &str); 13] = [
    ("Grader", "[grader](../graders.md)"),
    ("Interaction", "[policy](../interaction.md)"),
    ("Sandbox", "[sandbox](../isolation.md#sandboxes)"),
    ("Matcher", "[matcher](../graders.md#matchers)"),
    ("MatchArgs", "[a word or a map](../graders/trajectory.md#arguments)"),
    ("EventMatcher", "[matcher](../graders/rules.md#events)"),
    ("VariantLayer", "map of the keys from `harness` on"),
    ("Matrix", "map from keys of a variant to [values](../experiments.md#a-matrix)"),
    ("Rule", "[rule](../json-stream.md)"),
    ("SessionFile", "[map](../sessions.md)"),
    ("Formula", "CEL"),
    ("Dollars", "number"),
    ("SnapshotLayer", "[map](../snapshots.md)"),
];

/// Keys of a schema, as tables.
struct Tables {
    schema: Value,
    /// Definitions that have a section, and the section's heading.
    sections: BTreeMap<String, String>,
    /// Sections that are not written yet.
    open: Vec<(String, Value)>,
}

impl Tables {
    fn of(kind: &str) -> String {
        let schema = evals::internal::schema::schema(kind).unwrap();
        let mut tables = Self { schema: schema.clone(), sections: BTreeMap::new(), open: Vec::new() };
        let mut text = tables.table("", &schema);
        let mut done = 0;
        while let Some((heading, body)) = tables.open.get(done).cloned() {
            done += 1;
            text += &format!("\n## `{heading}`\n\n");
            if let Some(said) = body["description"].as_str() {
                text += &format!("{}\n\n", one_line(said));
            }
            text += &if body["properties"].is_object() { tables.table(&heading, &body) } else { words(&body) };
        }
        text
    }

    fn table(&mut self, above: &str, body: &Value) -> String {
        let required: Vec<&str> = body["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut text = "| key | value | meaning |\n| --- | --- | --- |\n".to_owned();
        for (key, schema) in body["properties"].as_object().unwrap() {
            let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
            let value = self.value(&path, schema).replace('|', "\\|");
            let said = schema["description"].as_str().or_else(|| self.resolved(schema).0["description"].as_str());
            let mut meaning = one_line(said.unwrap_or_default()).replace('|', "\\|").trim_end_matches('.').to_owned();
            let default = &schema["default"];
            let plain = default.is_number() || default == true || default.as_str().is_some_and(|text| !text.is_empty());
            if required.contains(&key.as_str()) {
                meaning += ". Required";
            } else if plain && !meaning.contains("Default:") {
                meaning += &format!(". Default: {}", default.to_string().replace('"', "`"));
            }
            assert!(!meaning.is_empty(), "`{key}` has no description in the schema");
            text += &format!("| `{key}` | {value} | {} |\n", meaning.trim_start_matches(". "));
        }
        text
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> (&'a Value, Option<&'a str>) {
        match schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            Some(name) => (&self.schema["$defs"][name], Some(name)),
            None => (schema, None),
        }
    }

    /// A link to the section of a definition, which is added if it has none.
    fn section(&mut self, path: &str, name: Option<&str>, body: &Value) -> String {
        let name = name.map_or_else(|| path.to_owned(), str::to_owned);
        if !self.sections.contains_key(&name) {
            self.sections.insert(name.clone(), path.to_owned());
            self.open.push((path.to_owned(), body.clone()));
        }
        let heading = &self.sections[&name];
        let anchor: String = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect();
        format!("[`{heading}`](#{})", anchor.to_lowercase())
    }

    /// Returns what a value may be, in a few words.
    fn value(&mut self, path: &str, schema: &Value) -> String {
        let (inner, name) = self.resolved(schema);
        let (inner, name) = (inner.clone(), name.map(str::to_owned));
        if let Some((_, link)) = LINKED.iter().find(|(linked, _)| Some(*linked) == name.as_deref()) {
            return (*link).to_owned();
        }
        if let Some(all) = constants(&inner) {
            let described =
                inner["oneOf"].as_array().is_some_and(|list| list.iter().any(|one| one["description"].is_string()));
            let list = all.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" ");
            return if described { format!("{list}: {}", self.section(path, name.as_deref(), &inner)) } else { list };
        }
        if let Some(any) = inner["anyOf"].as_array().or(inner["oneOf"].as_array()) {
            let any: Vec<Value> = any.iter().filter(|one| one["type"] != "null").cloned().collect();
            let mut seen = BTreeSet::new();
            let told: Vec<String> = any.iter().map(|one| self.value(path, one)).collect();
            return told.into_iter().filter(|one| seen.insert(one.clone())).collect::<Vec<_>>().join(", or ");
        }
        // What may be left out may be null in a schema, and is not written so.
        let kinds: Vec<String> = match &inner["type"] {
            Value::Array(kinds) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").map(str::to_owned).collect()
            }
            kind => kind.as_str().map(str::to_owned).into_iter().collect(),
        };
        match kinds.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["array"] => format!("list of: {}", self.value(path, &inner["items"])),
            ["object"] if inner["properties"].is_object() => {
                format!("map: {}", self.section(path, name.as_deref(), &inner))
            }
            ["object"] if inner["additionalProperties"].is_object() => {
                format!("map to: {}", self.value(path, &inner["additionalProperties"]))
            }
            ["object"] => "map".to_owned(),
            ["string"] if inner["format"] == "regex" => "regular expression".to_owned(),
            ["string"] if inner["format"] == "date" => "date".to_owned(),
            ["string"] | ["string", "number", "boolean"] => "text".to_owned(),
            ["number"] if inner["maximum"] == 1 => "number from 0 to 1".to_owned(),
            ["integer"] => "whole number".to_owned(),
            ["number"] => "number".to_owned(),
            ["boolean"] => "true or false".to_owned(),
            ["string", "number"] => "a time: `500ms`, `90s`, `5m`, or seconds".to_owned(),
            _ => "anything".to_owned(),
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the words of an enumeration.
fn constants(schema: &Value) -> Option<Vec<String>> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(words) = schema["enum"].as_array() {
        return Some(words.iter().map(word).collect());
    }
    let list = schema["oneOf"].as_array()?;
    let words = list.iter().map(|one| match (&one["const"], &one["enum"]) {
        (Value::String(text), _) => Some(vec![text.clone()]),
        (_, Value::Array(list)) => Some(list.iter().map(word).collect()),
        _ => None,
    });
    Some(words.collect::<Option<Vec<_>>>()?.concat())
}

/// The words of an enumeration with their meanings.
fn words(body: &Value) -> String {
    let mut text = "| value | meaning |\n| --- | --- |\n".to_owned();
    for one in body["oneOf"].as_array().unwrap() {
        let words = constants(&serde_json::json!({"oneOf": [one]})).unwrap();
        let said = one_line(one["description"].as_str().unwrap_or_default()).replace('|', "\\|");
        for word in words {
            text += &format!("| `{word}` | {} |\n", said.trim_end_matches('.'));
        }
    }
    text
}

#[test]
fn the_tables_of_keys_are_made_from_the_schemas() {
    for (name, kind) in [
        ("case", "case"),
        ("suite", "suite"),
        ("manifest", "harness"),
        ("experiment", "experiment"),
        ("json-report", "run"),
    ] {
        holds(name, "<!-- keys: made from the schema -->\n", &Tables::of(kind));
    }
}

/// Returns the help of a command, and the names of its commands.
fn help(project: &Project, command: &[&str]) -> (String, Vec<String>) {
    let ran = project.evals(&[command, &["--help"]].concat()).exits(0);
    let text: String = ran.out.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    let listed = text.split_once("\nCommands:\n").map_or("", |(_, rest)| rest.split("\n\n").next().unwrap());
    let names = listed.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    (text.trim_end().to_owned(), names.map(str::to_owned).collect())
}

/// Each command has a page with its help and that of its own commands.
#[test]
fn the_pages_of_commands_are_the_programs_help() {
    let project = Project::new();
    let (all, commands) = help(&project, &[]);
    assert!(commands.len() > 20, "{commands:?}");
    let begin = "<!-- help: made from the program -->\n";
    holds("cli", begin, &format!("```text\n{all}\n```"));
    let index = fs::read_to_string(page("cli")).unwrap();
    let mut pages = BTreeSet::new();
    for command in &commands {
        let (text, own) = help(&project, &[command]);
        let mut made = format!("```text\n{text}\n```\n");
        for name in own {
            made +=
                &format!("\n## `evals {command} {name}`\n\n```text\n{}\n```\n", help(&project, &[command, &name]).0);
        }
        holds(&format!("cli/{command}"), begin, &made);
        assert!(index.contains(&format!("(cli/{command}.md)")), "cli.md does not link to {command}");
        pages.insert(format!("{command}.md"));
    }
    let folder = page("cli").with_extension("");
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    assert_eq!(found.collect::<BTreeSet<_>>(), pages);
}

/// The page of the run folder names every file that a run leaves.
#[test]
fn the_page_of_the_run_folder_names_every_file_of_a_run() {
    let text = fs::read_to_string(page("run-folder")).unwrap();
    let project = Project::new();
    project.case("good", "kind: regression", "steps: [{run: {command: echo hi}}, {say: done}]");
    project.case("bad", "graders: [{command: {run: 'false'}}]", "steps: [{write: {path: a.txt, text: a}}]");
    project.case("lost", "harnesses: [gone]", "");
    project.harness("gone", "adapter: output-only\ncommand: [no-such-program-here]");
    project.evals(&["run"]).exits(1);
    let mut names = BTreeSet::new();
    for path in project.files(&project.run_folder()).into_keys() {
        let file = match path.strip_prefix("trials/") {
            // Below a trial: case, harness, arm, number.
            Some(below) => below.split('/').nth(4).unwrap().to_owned(),
            None => path.split('/').next().unwrap().to_owned(),
        };
        names.insert(file);
    }
    assert!(names.len() >= 8, "{names:?}");
    let missing: Vec<&String> = names.iter().filter(|name| !text.contains(&format!("| `{name}"))).collect();
    assert!(missing.is_empty(), "docs/reference/run-folder.md does not name {missing:?}");
}

/// The page of environment variables names every variable that the sources read.
#[test]
fn the_page_of_environment_variables_names_every_one_that_is_read() {
    let text = fs::read_to_string(page("environment")).unwrap();
    let read = Regex::new(r#"\b(?:EVALS_[A-Z_]+)\b|\bvar\("([A-Z][A-Z_]+)"\)"#).unwrap();
    let mut variables = BTreeSet::new();
    for source in sources().values() {
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        for found in read.captures_iter(code) {
            variables.insert(found.get(1).or(found.get(0)).unwrap().as_str().to_owned());
        }
    }
    // Passed between two processes of this program.
    variables.remove("EVALS_ENVIRONMENT");
    assert!(variables.len() >= 10, "{variables:?}");
    let missing: Vec<&String> = variables.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/environment.md does not name {missing:?}");
}

/// The page of exit codes has the codes that are constants of the commands, and 0.
#[test]
fn the_page_of_exit_codes_has_those_of_the_program() {
    let text = fs::read_to_string(page("exit-codes")).unwrap();
    let row = Regex::new(r"(?m)^\| (\d+) \|").unwrap();
    let shown: Vec<u8> = row.captures_iter(&text).map(|found| found[1].parse().unwrap()).collect();
    let constant = Regex::new(r"const [A-Z_]+: u8 = (\d+);").unwrap();
    let mut codes = BTreeSet::from([0]);
    for (path, source) in sources().iter().filter(|(path, _)| path.starts_with("cli")) {
        let found: Vec<u8> = constant.captures_iter(source).map(|found| found[1].parse().unwrap()).collect();
        assert!(found.iter().all(|code| shown.contains(code)), "{path}: {found:?}");
        codes.extend(found);
    }
    assert_eq!(shown, codes.into_iter().collect::<Vec<u8>>());
}

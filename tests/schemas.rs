//! The schemas in `docs/schemas/` are those that the program prints, and the shipped files point at them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use evals::schema::{KINDS, schema};
use jsonschema::Validator;
use project::{Project, lines};
use serde_json::{Value, json};

#[path = "support/project.rs"]
mod project;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_schemas_in_the_docs_are_the_programs_own() {
    for kind in KINDS {
        let path = root().join(format!("docs/schemas/{kind}.json"));
        let stored: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let message =
            format!("{}: make it again with `evals schema {kind} > docs/schemas/{kind}.json`", path.display());
        assert!(stored == schema(kind).unwrap(), "{message}");
    }
}

#[test]
fn every_shipped_case_and_grader_points_editors_at_its_schema() {
    let mut folders: Vec<PathBuf> = vec![root().join("cases"), root().join("graders")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "fixtures" {
                folders.push(path);
            } else if name.ends_with(".yaml") && !name.ends_with(".demo.yaml") {
                let text = fs::read_to_string(&path).unwrap();
                let modeline = text.lines().next().unwrap();
                let schema = modeline.split("$schema=").nth(1).unwrap_or_else(|| panic!("{name} has no modeline"));
                assert!(path.parent().unwrap().join(schema).is_file(), "{}: {schema}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "{seen}");
}

/// What the program writes, held to the schema of its kind.
struct Written(BTreeMap<&'static str, (Validator, usize)>);

impl Written {
    fn new() -> Self {
        Self(BTreeMap::new())
    }

    #[track_caller]
    fn holds(&mut self, kind: &'static str, value: &Value) {
        let (validator, seen) = self.0.entry(kind).or_insert_with(|| (validator(kind), 0));
        *seen += 1;
        if let Some(error) = validator.iter_errors(value).next() {
            panic!("{kind}: {error} at {}: {value}", error.instance_path());
        }
    }

    #[track_caller]
    fn hold_lines(&mut self, kind: &'static str, text: &str) {
        lines(text).iter().for_each(|line| self.holds(kind, line));
    }

    fn seen(&self, kind: &str) -> usize {
        self.0.get(kind).map_or(0, |(_, seen)| *seen)
    }
}

fn validator(kind: &str) -> Validator {
    jsonschema::validator_for(&schema(kind).unwrap()).unwrap()
}

#[test]
fn what_a_run_writes_is_what_the_schemas_say() {
    let project = Project::bundled();
    project.evals(&["run", "--trials", "2", "--reporter", "json=run.json", "--reporter", "jsonl=run.jsonl"]);
    let folder = project.run_folder();
    let mut written = Written::new();
    let value = |path: &str| -> Value { serde_json::from_str(&project.read(path)).unwrap() };
    written.holds("record", &value(&format!("{folder}/run.json")));
    written.holds("run", &value("run.json"));
    written.hold_lines("result", &project.read("run.jsonl"));
    written.hold_lines("result", &project.read(&format!("{folder}/results.jsonl")));
    written.hold_lines("journal", &project.read(&format!("{folder}/journal.jsonl")));
    for (name, text) in project.files(&folder) {
        if name.ends_with("/trace.jsonl") {
            written.hold_lines("trace", &String::from_utf8(text).unwrap());
        } else if name.ends_with("/result.json") {
            written.holds("result", &serde_json::from_slice(&text).unwrap());
        }
    }
    let run = project.runs()[0].clone();
    let graded = project.evals(&["grade", &run, "--format", "json"]).json();
    written.holds("run", &graded);
    let derived = graded["run"].as_str().unwrap();
    written.holds("compare", &project.evals(&["compare", &run, derived, "--format", "json"]).json());
    project.evals(&["baseline", "set", &run]).exits(0);
    let baseline = project.files("").into_iter().find(|(name, _)| name.ends_with("baseline.json"));
    written.holds("baseline", &serde_json::from_slice(&baseline.unwrap().1).unwrap());
    assert!(written.seen("trace") > 100 && written.seen("journal") > 20 && written.seen("result") > 40);
}

#[test]
fn what_an_import_writes_is_what_the_schema_of_a_trace_says() {
    let project = Project::new();
    let mut written = Written::new();
    let mut imported = 0;
    for agent in fs::read_dir(root().join("tests/recordings")).unwrap() {
        let folder = agent.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let recordings = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for file in recordings.filter(|path| path.extension().is_some_and(|end| end == "jsonl")) {
            let file = file.to_str().unwrap();
            let stream = format!("{name}-stream");
            let ways = [["--harness", &stream], ["--harness", name], ["--adapter", "acp"]];
            let ways = ways.map(|[how, what]| ["import", how, what, file]);
            let Some(ran) = ways.iter().map(|args| project.evals(args)).find(|ran| ran.code == 0) else { continue };
            written.hold_lines("trace", &ran.out);
            imported += 1;
        }
    }
    assert!(imported >= 70, "{imported}");
}

#[test]
fn what_is_wrong_is_refused_by_the_schemas() {
    let refused = |kind: &str, right: Value, wrong: &[(&str, Value)]| {
        let validator = validator(kind);
        assert!(validator.is_valid(&right), "{kind}: {right}: {:?}", validator.iter_errors(&right).next());
        for (key, value) in wrong {
            let mut line = right.clone();
            if value.is_null() {
                line.as_object_mut().unwrap().remove(*key);
            } else {
                line[*key] = value.clone();
            }
            assert!(!validator.is_valid(&line), "{kind}: `{key}` {value} is taken: {line}");
        }
    };
    let header = json!({"type": "trace", "version": 1, "adapter": "acp", "model": {},
        "capabilities": {"tracing": true, "interaction": false}});
    refused("trace", header, &[("type", json!("message")), ("version", Value::Null), ("capabilities", json!({}))]);
    let call = json!({"seq": 3, "at_ms": 5, "type": "tool_call", "call": "c", "step": 0, "kind": "edit"});
    let wrong = [
        ("kind", json!("edits")),
        ("call", Value::Null),
        ("seq", json!(-1)),
        ("host", json!("yes")),
        ("type", json!("call")),
    ];
    refused("trace", call, &wrong);
    let done = json!({"seq": 4, "at_ms": 5, "type": "tool_result", "call": "c", "status": "ok"});
    refused("trace", done, &[("status", json!("fine")), ("diffs", json!([{"old": "x"}])), ("truncated", json!(1))]);
    let line = json!({"at": "t", "event": "finished", "case": "a", "harness": "demo", "model": "default", "trial": 1,
        "attempt": 1, "verdict": "pass", "digest": "d", "chain": "0123456789abcdef0123456789abcdef"});
    refused("journal", line, &[("verdict", json!("passed")), ("event", Value::Null), ("chain", json!("x"))]);
    let warning = json!({"code": "ignored_files", "bytes": 1, "text": "t"});
    let result = json!({"case": "a", "harness": "demo", "model": {}, "trial": 1, "verdict": "pass", "grades": [],
        "metrics": {}, "attempt": 1, "arm": "default", "shape": [], "warnings": [warning]});
    let wrong = [
        ("verdict", json!("passed")),
        ("warnings", json!(["a text"])),
        ("warnings", json!([{"code": "ignored_files", "text": "t"}])),
        ("warnings", json!([{"code": "ignored_files", "bytes": 1}])),
        ("score", json!(1.5)),
        ("attempt", Value::Null),
    ];
    refused("result", result.clone(), &wrong);
    let summary = json!({"pass": 1, "fail": 0, "ungraded": 0, "errored": 0, "skipped": 0, "not_run": 0});
    let report = json!({"run": "r", "version": 1, "summary": summary, "results": [result]});
    refused("run", report, &[("exit_code", json!(2)), ("results", json!([{}])), ("summary", json!({"pass": 1}))]);
}

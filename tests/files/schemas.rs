//! What the program writes is what its schemas say, and the shipped files point at their schemas.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use evals::internal::schema::schema;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::project::{Project, lines};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
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

/// Returns the folder of the merged run.
fn merged(project: &Project) -> String {
    let mut folders = project.runs().into_iter().map(|run| format!(".evals/runs/{run}"));
    folders.find(|folder| project.path(&format!("{folder}/merged.json")).exists()).unwrap()
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
    project.evals(&["run", "--shard", "1/1", "--label", "shard"]);
    written.holds("record", &value(&format!("{}/run.json", project.run_named("shard"))));
    project.evals(&["merge", "shard", "--label", "merged"]);
    written.holds("merged", &value(&format!("{}/merged.json", merged(&project))));
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

/// Holds a value to be valid, and to be refused with each of these keys removed (null) or set to another value. A key is a
/// JSON pointer, or the name of a key of the value itself.
#[track_caller]
fn refused(kind: &str, right: Value, wrong: &[(&str, Value)]) {
    let validator = validator(kind);
    assert!(validator.is_valid(&right), "{kind}: {right}: {:?}", validator.iter_errors(&right).next());
    for (key, value) in wrong {
        let mut line = right.clone();
        let (above, key) = key.rsplit_once('/').unwrap_or(("", key));
        let place = line.pointer_mut(above).unwrap_or_else(|| panic!("{kind} has no {above}: {right}"));
        match (place, value) {
            (Value::Object(map), Value::Null) => assert!(map.remove(key).is_some(), "{kind} has no `{key}`: {right}"),
            (Value::Object(map), value) => _ = map.insert(key.to_owned(), value.clone()),
            (place, _) => panic!("{kind}: {above} is {place}"),
        }
        assert!(!validator.is_valid(&line), "{kind}: `{key}` {value} is taken: {line}");
    }
}

#[test]
fn what_commands_write_is_what_the_schemas_say_and_what_is_wrong_is_refused() {
    let project = Project::new();
    project.case("a", "kind: regression", "steps: [{run: {command: echo hi}}, {say: done}]");
    project.evals(&["run", "--label", "a", "--snapshot", "update", "--reporter", "json=run.json"]).exits(0);
    let run = project.run_folder();
    let value = |path: &str| -> Value { serde_json::from_str(&project.read(path)).unwrap() };
    let record = value(&format!("{run}/run.json"));
    let wrong = [
        ("version", Value::Null),
        ("cases", Value::Null),
        ("trials", json!({})),
        ("digests", json!("yes")),
        ("/cases/0/digest", Value::Null),
        ("/cases/0/judged_by", json!([])),
        ("/prices/digest", Value::Null),
        ("/trials/0/trial", json!("one")),
        ("/harnesses/0/manifest", Value::Null),
        ("/options/jobs", json!(-1)),
    ];
    refused("record", record, &wrong);
    refused("run", value("run.json"), &[("results", Value::Null), ("gates", json!({})), ("notes", json!([1]))]);
    project.evals(&["run", "--label", "b"]).exits(0);
    let compared = project.evals(&["compare", "a", "b", "--format", "json"]).json();
    let first = compared.as_object().unwrap().keys().next().unwrap().clone();
    let wrong = [("verdict", Value::Null), ("verdict", json!("better")), ("arms", json!({})), (&first, Value::Null)];
    refused("compare", compared, &wrong);
    project.evals(&["baseline", "set", "b"]).exits(0);
    let wrong = [
        ("baseline", Value::Null),
        ("baseline", json!("1")),
        ("arms", Value::Null),
        ("/arms/0/harness", Value::Null),
        ("/arms/0/cases/a", json!([])),
        ("cases", json!([])),
    ];
    refused("baseline", value("cases/baseline.json"), &wrong);
    refused("baseline", project.evals(&["baseline", "show", "--format", "json"]).json(), &wrong);
    for what in ["cases", "harnesses", "graders", "policies", "runs"] {
        let rows = project.evals(&["list", what, "--format", "json"]).exits(0).json();
        assert!(!rows.as_array().unwrap().is_empty(), "{what}");
        refused("list", json!({"rows": rows}).pointer("/rows").unwrap().clone(), &[]);
        let name = ["id", "name", "run"].into_iter().find(|key| rows[0].get(*key).is_some()).unwrap();
        let mut nameless = rows.clone();
        nameless[0].as_object_mut().unwrap().remove(name);
        assert!(!validator("list").is_valid(&nameless), "{what}: {nameless}");
    }
    let listed = project.evals(&["harness", "list", "--format", "json"]).exits(0).json();
    refused("list", listed, &[]);
    let audited = project.evals(&["check", "--audit", "--format", "json"]).json();
    let wrong = [
        ("cases", Value::Null),
        ("/summary/sound", Value::Null),
        ("/cases/0/sound", json!("yes")),
        ("/cases/0/agents", Value::Null),
    ];
    refused("audit", audited, &wrong);
    let differs = project.evals(&["snapshot", "check", "b", "--format", "json"]).json();
    let wrong = [("snapshots", Value::Null), ("exit_code", json!(9)), ("/snapshots/0/case", Value::Null)];
    refused("snapshots", differs, &wrong);
    let wire = format!("{run}/trials/a/demo/default/1/wire.jsonl");
    for line in lines(&project.read(&wire)) {
        refused(
            "wire",
            line,
            &[("line", Value::Null), ("dir", json!("in")), ("at_ms", json!(-1)), ("cut", json!("1"))],
        );
    }
    let explained = project.evals(&["import", "--harness", "demo", &wire, "--explain", "--format", "json"]).exits(0);
    let wrong = [
        ("header", Value::Null),
        ("lines", json!({})),
        ("/lines/0/events", Value::Null),
        ("/lines/0/dir", json!("in")),
    ];
    refused("explain", explained.json(), &wrong);
}

#[test]
fn what_checks_and_parity_write_is_what_the_schemas_say_and_what_is_wrong_is_refused() {
    let project = Project::new();
    let checks = project.evals(&["harness", "check", "demo", "demo-text", "--format", "json"]).json();
    for report in checks["checks"].as_array().unwrap() {
        let stored = project.read(&format!("{}/report.json", report["folder"].as_str().unwrap()));
        assert_eq!(stored.parse::<Value>().unwrap(), *report);
    }
    let wrong = [
        ("checks", Value::Null),
        ("/checks/0/items", Value::Null),
        ("/checks/0/harness", Value::Null),
        ("/checks/0/items/0/outcome", Value::Null),
        ("/checks/0/items/0/outcome", json!("fine")),
        ("/checks/0/items/0/evidence", json!("none")),
    ];
    refused("check", checks, &wrong);
    let parity = project.evals(&["harness", "parity", "demo", "--format", "json"]).exits(0).json();
    let wrong = [
        ("harness", Value::Null),
        ("cases", Value::Null),
        ("/cases/0/outcome", Value::Null),
        ("/cases/0/outcome/same", json!("yes")),
        ("/cases/0/tools/text", json!(1)),
    ];
    refused("parity", parity, &wrong);
}

#[test]
fn what_is_wrong_is_refused_by_the_schemas() {
    let rate = json!({"value": 0.5, "low": 0.1, "high": 0.9});
    let measured =
        json!({"counts": {"tp": 1, "fp": 1, "tn": 1, "fn": 1, "unknown-pass": 0, "unknown-fail": 0}, "tpr": rate});
    let calibration = json!({"rubric": "r", "judges": ["anthropic:m"], "prompt-digest": "d", "date": "2026-01-02",
        "labels": 4, "all": measured, "criteria": {"c": measured}});
    let wrong = [
        ("judges", Value::Null),
        ("all", json!({})),
        ("labels", json!(-1)),
        ("/all/counts", json!([])),
        ("/criteria/c/tpr", json!(0.5)),
        ("/all/tpr/value", Value::Null),
    ];
    refused("calibration", calibration, &wrong);
    let exchange = json!({"n": 1, "at_ms": 1, "api": "anthropic", "method": "POST", "path": "/v1/messages",
        "model": {"asked": "m"}, "status": 200, "request": {}, "response": {}, "stream": [[3, 40]], "source": "script",
        "script": {"played": "turn", "turn": 0}});
    let wrong = [
        ("n", Value::Null),
        ("status", json!("200")),
        ("source", json!("elsewhere")),
        ("stream", json!([3])),
        ("/script/played", json!("something")),
        ("/script/calls", json!([{}])),
    ];
    refused("exchange", exchange, &wrong);
    let entry = json!({"n": 1, "api": "gemini", "method": "POST", "path": "/v1beta/models/m:generateContent",
        "status": 200, "request": {}, "response": {}});
    let wrong = [("n", json!("1")), ("api", json!("other")), ("status", Value::Null)];
    refused("cassette", entry, &wrong);
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

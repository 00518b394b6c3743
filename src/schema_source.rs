//! Makes the JSON Schemas in `docs/schemas/` from the types that read and write the files. `evals` prints those files
//! (`schema.rs`), so this is compiled for tests only.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::adapter::explain::Explained;
use crate::audit::Audited;
use crate::baseline::Baseline;
use crate::case::file::{CASE_ONLY, Layer};
use crate::compare::Comparison;
use crate::compare::gate::Gate;
use crate::compare::self_check::SelfCheck;
use crate::conformance::Checks;
use crate::experiment::file::ExperimentFile;
use crate::gateway::cassette;
use crate::gateway::exchange::Exchange;
use crate::gateway::script::Script;
use crate::grader::GraderEntry;
use crate::harness::Manifest;
use crate::judge::calibration::Calibration;
use crate::mine::Mined;
use crate::parity::ParityReport;
use crate::report::Summary;
use crate::report::activation::Activation;
use crate::report::asked::AskedModels;
use crate::report::case_flags::CaseFlags;
use crate::report::cells::{Cell, Column};
use crate::report::list::{CaseRow, HarnessRow, NamedRow, RunRow};
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::journal::{JournalLine, PlanLine};
use crate::run::merge::MergedFrom;
use crate::snapshot::compare::Compared;
use crate::trace::{Event, Header};
use crate::wire::WireLine;

mod published;

/// Files of a run. Their schemas describe the written form, so optional keys are not required.
const WRITTEN_BY_RUNS: [&str; 14] = [
    "trace",
    "result",
    "run",
    "record",
    "merged",
    "journal",
    "calibration",
    "audit",
    "list",
    "explain",
    "snapshots",
    "wire",
    "exchange",
    "mine",
];

/// Files that people write. A key without a value is refused in them.
const WRITTEN_BY_PEOPLE: [&str; 6] = ["case", "suite", "harness", "grader", "experiment", "script"];

/// Returns the schema of a kind of file, draft 2020-12; `None` for a kind that is not one of [`KINDS`](crate::schema::KINDS).
fn schema(kind: &str) -> Option<Value> {
    let settings = SchemaSettings::draft2020_12();
    let settings = if WRITTEN_BY_RUNS.contains(&kind) { settings.for_serialize() } else { settings };
    let mut generator = settings.into_generator();
    // The record of a run has the manifest of its harness.
    let manifest = if kind == "record" { schema("harness") } else { None };
    let (title, mut body) = match kind {
        "case" => ("A case", case(&mut generator)),
        "suite" => ("A suite.yaml", suite(&mut generator)),
        "harness" => ("A harness manifest", root::<Manifest>(&mut generator)),
        "grader" => ("A named grader", named_grader(&mut generator)),
        "trace" => ("A line of a Trace", trace(&mut generator)),
        "run" => ("The results of a run", run(&mut generator)),
        "result" => ("A line of the results of a run", root::<TrialResult>(&mut generator)),
        "check" => ("The results of `evals harness check`", root::<Checks>(&mut generator)),
        "parity" => ("The results of `evals harness parity`", root::<ParityReport>(&mut generator)),
        "experiment" => ("An experiment", root::<ExperimentFile>(&mut generator)),
        "script" => ("The script of a scripted model", root::<Script>(&mut generator)),
        "compare" => ("The results of `evals compare`", root::<Comparison>(&mut generator)),
        "baseline" => ("A baseline", root::<Baseline>(&mut generator)),
        "record" => ("The run.json", root::<RunRecord>(&mut generator)),
        "merged" => ("The merged.json of a merged run", root::<MergedFrom>(&mut generator)),
        "journal" => ("A line of the journal", journal(&mut generator)),
        "calibration" => ("A calibration of judges", root::<Calibration>(&mut generator)),
        "audit" => ("The audit of `evals check --audit`", audit(&mut generator)),
        "list" => ("A list of `evals list`", list(&mut generator)),
        "explain" => ("The lines of `evals import --explain`", explain(&mut generator)),
        "snapshots" => ("The comparison of `evals snapshot check`", snapshots(&mut generator)),
        "wire" => ("A line of a wire log", root::<WireLine>(&mut generator)),
        "exchange" => ("A line of the log of a model gateway", root::<Exchange>(&mut generator)),
        "cassette" => ("A line of a cassette", cassette(&mut generator)),
        "mine" => ("The results of `evals mine`", root::<Mined>(&mut generator)),
        _ => return None,
    };
    let mut schema =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": format!("{title} of evals")});
    let mut definitions = generator.take_definitions(true);
    if WRITTEN_BY_PEOPLE.contains(&kind) {
        definitions.values_mut().for_each(without_null);
        without_null(&mut body);
    } else if let Some(manifest) = manifest {
        let shared = definitions.iter_mut().filter(|(name, _)| manifest["$defs"].get(name.as_str()).is_some());
        shared.for_each(|(_, definition)| without_null(definition));
    }
    if ["case", "suite"].contains(&kind) {
        with_scalars(&mut body);
    }
    if let (Value::Object(schema), Value::Object(body)) = (&mut schema, body) {
        for (key, value) in body {
            if key != "$schema" && key != "title" {
                schema.insert(key, value);
            }
        }
        if !definitions.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
    Some(schema)
}

/// Removes null from the values of keys.
fn without_null(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if map.get("default") == Some(&Value::Null) {
        map.remove("default");
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(list)) = map.get_mut(key) {
            list.retain(|one| one.get("type").is_none_or(|name| name != "null"));
            list.iter_mut().for_each(without_null);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(without_null);
    }
    if let Some(items) = map.get_mut("items") {
        without_null(items);
    }
}

/// Allows numbers and booleans where the keys of a file hold texts: they are read as the texts with which they were written.
fn with_scalars(body: &mut Value) {
    let Some(Value::Object(properties)) = body.get_mut("properties") else { return };
    for property in properties.values_mut() {
        for place in ["", "/items", "/additionalProperties"] {
            let Some(Value::Object(text)) = property.pointer_mut(place) else { continue };
            let is_free = !["enum", "const", "format", "pattern"].iter().any(|key| text.contains_key(*key));
            if is_free && text.get("type").is_some_and(|name| name == "string") {
                text.insert("type".to_owned(), json!(["string", "number", "boolean"]));
            }
        }
    }
}

fn root<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

fn case(generator: &mut SchemaGenerator) -> Value {
    let mut schema = root::<Layer>(generator);
    if let Value::Object(schema) = &mut schema {
        schema.insert("oneOf".to_owned(), json!([{"required": ["prompt"]}, {"required": ["turns"]}]));
    }
    schema
}

fn suite(generator: &mut SchemaGenerator) -> Value {
    let mut schema = root::<Layer>(generator);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|key, _| !CASE_ONLY.contains(&key.as_str()));
    }
    schema
}

/// Returns the schema of a file in `graders/`: a description, and a map with one key or a list of such maps.
fn named_grader(generator: &mut SchemaGenerator) -> Value {
    let entry = generator.subschema_for::<GraderEntry>().to_value();
    let list = json!({"type": "array", "minItems": 1, "items": entry});
    let mut properties = json!({
        "description": {"type": "string", "description": "one line for people"},
        "graders": list,
        "grader": {"anyOf": [entry, list]},
    });
    // A file of one grader may also hold it beside the description.
    let kinds = generator.definitions().get("Grader").and_then(|grader| grader.get("oneOf")).cloned();
    for kind in kinds.as_ref().and_then(Value::as_array).into_iter().flatten() {
        if let (Some(Value::Object(body)), Value::Object(properties)) = (kind.get("properties"), &mut properties) {
            properties.extend(body.clone());
        }
    }
    json!({"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1})
}

fn trace(generator: &mut SchemaGenerator) -> Value {
    json!({
        "description": "JSON Lines: the first line is the header, each other line is one event",
        "anyOf": [generator.subschema_for::<Header>(), generator.subschema_for::<Event>()]
    })
}

fn cassette(generator: &mut SchemaGenerator) -> Value {
    json!({
        "description": "JSON Lines: the first line is the header, each other line is one recorded exchange",
        "anyOf": [generator.subschema_for::<cassette::Header>(), generator.subschema_for::<cassette::Entry>()]
    })
}

/// Returns the schema of a journal line as written: with the digest over it and the line before.
fn journal(generator: &mut SchemaGenerator) -> Value {
    let mut lines = [root::<JournalLine>(generator), root::<PlanLine>(generator)];
    let chain = json!({"type": "string", "pattern": "^[0-9a-f]{32}$",
        "description": "digest over this line and the `chain` of the line before; absent in runs of older versions"});
    for line in &mut lines {
        if let Some(Value::Object(properties)) = line.get_mut("properties") {
            properties.insert("chain".to_owned(), chain.clone());
        }
    }
    json!({"anyOf": lines})
}

/// Returns the schema of the output of `evals check --audit --format json`.
fn audit(generator: &mut SchemaGenerator) -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    let counts =
        ["cases", "sound", "unsound", "not_audited", "without_oracle", "findings", "mutants_judged", "mutants_noticed"];
    json!({
        "type": "object",
        "properties": {
            "version": {"type": "integer", "minimum": 1, "description": "the version of this form"},
            "summary": {
                "type": "object",
                "properties": counts.iter().map(|name| ((*name).to_owned(), count.clone())).collect::<serde_json::Map<_, _>>(),
                "required": counts
            },
            "cases": {"type": "array", "items": generator.subschema_for::<Audited>()}
        },
        "required": ["version", "summary", "cases"]
    })
}

/// Returns the schema of the output of `evals list --format json` and `evals harness list --format json`: an
/// array of rows of one kind.
fn list(generator: &mut SchemaGenerator) -> Value {
    let rows = [
        generator.subschema_for::<CaseRow>(),
        generator.subschema_for::<HarnessRow>(),
        generator.subschema_for::<NamedRow>(),
        generator.subschema_for::<RunRow>(),
    ];
    let arrays = rows.map(|row| json!({"type": "array", "items": row}));
    json!({"anyOf": arrays})
}

/// Returns the schema of the output of `evals import --explain --format json`.
fn explain(generator: &mut SchemaGenerator) -> Value {
    json!({
        "type": "object",
        "properties": {
            "header": generator.subschema_for::<Header>(),
            "lines": {"type": "array", "items": generator.subschema_for::<Explained>()}
        },
        "required": ["header", "lines"]
    })
}

/// Returns the schema of the output of `evals snapshot check --format json`.
fn snapshots(generator: &mut SchemaGenerator) -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "properties": {
            "snapshots": {"type": "array", "items": generator.subschema_for::<Compared>()},
            "unreferenced": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"file": text("the snapshot"), "why": text("why nothing refers to it")},
                    "required": ["file", "why"]
                }
            },
            "notes": {"type": "array", "items": {"type": "string"}},
            "exit_code": {"type": "integer", "enum": [0, 1, 2, 3]}
        },
        "required": ["snapshots", "unreferenced", "notes", "exit_code"]
    })
}

/// Returns the schema of the output of `--reporter json`; a line of `--reporter jsonl` and of `results.jsonl`
/// is one of its results.
fn run(generator: &mut SchemaGenerator) -> Value {
    let list = |items: schemars::Schema, what: &str| json!({"type": "array", "items": items, "description": what});
    json!({
        "type": "object",
        "properties": {
            "run": {"type": "string", "description": "the run's id"},
            "version": {"type": "integer", "minimum": 1, "description": "the version of this form"},
            "evals": {"type": "string", "description": "the version of evals that made the run"},
            "started": {"type": "string", "description": "the time at which the run began, RFC 3339 in UTC"},
            "label": {"type": "string", "description": "the label of the run"},
            "derived_from": {"type": "string", "description": "the id of the run that this run was derived from"},
            "manual": {"type": "boolean", "description": "true if the interaction policy of a trial was `manual`"},
            "summary": generator.subschema_for::<Summary>(),
            "exit_code": {"type": "integer", "enum": [0, 1, 3], "description": "the exit code of the command that \
                made it"},
            "columns": list(generator.subschema_for::<Column>(), "the figures of each harness and arm, in the order of the plan"),
            "cells": list(generator.subschema_for::<Cell>(), "the verdict and the figures of each case in each column"),
            "cases": list(generator.subschema_for::<CaseFlags>(), "what the results say about a case itself, such as that no arm passes it"),
            "asked_models": generator.subschema_for::<AskedModels>(),
            "snapshots": list(generator.subschema_for::<Compared>(), "the comparison of each cell with its accepted snapshot, if it has one"),
            "activation": list(generator.subschema_for::<Activation>(), "which skills were used, by column"),
            "aa": generator.subschema_for::<SelfCheck>(),
            "gates": list(generator.subschema_for::<Gate>(), "the requested gates, which set the exit code"),
            "notes": {"type": "array", "items": {"type": "string"}, "description": "notes for readers of the figures"},
            "results": list(generator.subschema_for::<TrialResult>(), "the result of each trial, in the order of the plan")
        },
        "required": ["run", "version", "summary", "results"]
    })
}

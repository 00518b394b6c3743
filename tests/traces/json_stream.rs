//! JSON streams: recordings of ten agents to Traces, by manifests alone; rules, their faults, and an agent that no Rust
//! knows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::PathBuf;

use evals::internal::adapter::import;
use evals::internal::adapter::json_stream::Knowing;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::internal::harness::stream::compile::compile;
use evals::trace::jsonl::{write_event, write_header};

use crate::laws;
use crate::project;

mod agents;
mod endings;
mod faults;
mod hostile;
mod live;
mod rules;

/// The agents whose streams were recorded, and their harnesses.
const AGENTS: [(&str, &str); 10] = [
    ("cline", "cline-stream"),
    ("codex", "codex"),
    ("copilot", "copilot-stream"),
    ("droid", "droid-stream"),
    ("gemini", "gemini-stream"),
    ("kimi", "kimi-stream"),
    ("opencode", "opencode-stream"),
    ("pi", "pi"),
    ("qwen", "qwen-stream"),
    ("vibe", "vibe-stream"),
];

fn built_in(name: &str) -> &'static Manifest {
    evals::internal::harness::built_in::named(name).unwrap_or_else(|| panic!("no {name}"))
}

/// A manifest with these rules.
fn manifest(rules: &str) -> Manifest {
    let text = format!("name: mine\nadapter: json-stream\ncommand: [mine, '{{prompt}}']\n{rules}");
    let manifest: Manifest = evals::internal::yaml::parse("mine.yaml".as_ref(), &text).unwrap();
    let (_, faults) = compile(&manifest);
    assert!(faults.is_empty(), "{faults:?}");
    manifest
}

/// The recordings of an agent: scenario and text.
fn recordings(agent: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(agent);
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{agent}");
    found
}

fn trace(manifest: &Manifest, input: &str) -> String {
    let mut events = Vec::new();
    let header =
        import(Adapter::JsonStream, manifest, true, input.as_bytes(), |event| write_event(&mut events, &event));
    let mut text = Vec::new();
    write_header(&mut text, &header.unwrap()).unwrap();
    text.extend(events);
    String::from_utf8(text).unwrap()
}

/// The events of a Trace, as JSON, without the header.
fn events(trace: &str) -> Vec<serde_json::Value> {
    project::lines(trace).split_off(1)
}

#[test]
fn the_manifests_that_are_built_in_are_sound() {
    let streams = evals::internal::harness::built_in().filter(|manifest| manifest.adapter == Adapter::JsonStream);
    let streams: Vec<_> = streams.collect();
    assert!(streams.len() >= AGENTS.len());
    for manifest in streams {
        let (_, faults) = compile(manifest);
        assert!(faults.is_empty(), "{}: {faults:#?}", manifest.name);
        assert!(manifest.known_by.is_some() && manifest.tier.is_some() && !manifest.verified.is_empty());
    }
}

#[test]
fn every_recording_is_known_by_exactly_one_manifest() {
    let of = |text: &str| {
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        let known: Vec<String> =
            lines.filter_map(|line: serde_json::Value| Knowing::built_in().of_line(&line).map(str::to_owned)).collect();
        known
    };
    for (agent, harness) in AGENTS {
        for (scenario, text) in recordings(agent) {
            let known = of(&text);
            assert!(known.iter().all(|name| name == harness) && !known.is_empty(), "{agent}/{scenario}: {known:?}");
        }
    }
    for (scenario, text) in recordings("claude-code") {
        assert_eq!(of(&text), Vec::<String>::new(), "{scenario}");
    }
}

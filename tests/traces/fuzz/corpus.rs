//! What is damaged: the recordings, the bundled cases, harnesses and graders, and a run of two small cases.

use std::fs;
use std::path::{Path, PathBuf};

use crate::project::Project;

/// The recorded sessions whose folder and name are as asked.
pub fn recordings(wanted: impl Fn(&str, &str) -> bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for agent in folder("tests/recordings") {
        let name = agent.file_name().unwrap().to_string_lossy().into_owned();
        for file in folder(&agent) {
            let session = file.file_name().unwrap().to_string_lossy().into_owned();
            if session.ends_with(".jsonl") && wanted(&name, &session) {
                found.push(fs::read(file).unwrap());
            }
        }
    }
    found
}

/// The YAML files below a folder that are wanted, each with its path.
pub fn yaml(below: &str, wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from(below)];
    while let Some(path) = waiting.pop() {
        if path.is_dir() && !path.ends_with("fixtures") {
            waiting.extend(folder(&path));
        } else if path.extension().is_some_and(|end| end == "yaml") && wanted(&path.to_string_lossy()) {
            let text = fs::read(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

/// What is in a folder, in order.
pub fn folder(path: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// A run with a trial that passes, one that fails, and an errored one that was tried twice.
pub fn a_run() -> Project {
    let project = Project::new();
    project.case("good", "", "steps: [{thought: so}, {read: {path: none}}, {usage: {cost-usd: 0.1}}, {say: done}]");
    project.case("bad", "graders: [{output: {contains: no}}, {tool-calls: {max: 0}}]", "steps: [{say: done}]");
    project.harness("dies", "adapter: output-only\ncommand: [sh, -c, 'exit 3']");
    project.case("dead", "harnesses: [dies]\nretries: {max: 1}\ngraders: [{output: {contains: x}}]", "");
    project.evals(&["run", "--trials", "2"]).exits(1);
    project
}

/// Writes a file anew. To overwrite it would wait for the disk on some file systems, and inputs are many.
pub fn put(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

//! Errors in the `stream` rules of a manifest, with their places in the file.

use std::path::Path;

use crate::expression::span;
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::harness::stream::compile::{At, Fault, compile, session_file_faults};
use crate::yaml::{LeftOut, Step, StepPart, YamlError, find};

/// Checks the rules of a manifest, and that they exist if its adapter needs them.
pub(super) fn check(path: &Path, text: &str, manifest: &Manifest, left_out: &LeftOut) -> Vec<YamlError> {
    let at_key = |key: &'static str, part, message: &str, help: &str| {
        YamlError::at_steps(path, text, &[Step::Key(key)], part, message).with_help(help)
    };
    let is_stream = manifest.adapter == Adapter::JsonStream;
    let keys = [
        ("stream", !manifest.stream.is_empty()),
        ("known-by", manifest.known_by.is_some()),
        ("started-by", manifest.started_by.is_some()),
        ("session-file", manifest.session_file.is_some()),
    ];
    for (key, is_there) in keys {
        let is_replay = manifest.adapter == Adapter::Replay;
        if is_there && !is_stream && !is_replay {
            let message = format!("`{key}` is only for the adapter `json-stream`");
            return vec![at_key(key, StepPart::Key, &message, "remove it, or write `adapter: json-stream`")];
        }
    }
    if is_stream && manifest.stream.is_empty() {
        let help = "write rules: `stream: [{when: line.type == 'text', emit: {message: {text: line.text}}}]`";
        return vec![at_key("adapter", StepPart::Value, "the adapter `json-stream` needs `stream` rules", help)];
    }
    let (_, mut faults) = compile(manifest);
    faults.extend(manifest.session_file.iter().flat_map(session_file_faults));
    faults.iter().map(|fault| error(path, text, fault, left_out)).collect()
}

fn error(path: &Path, text: &str, fault: &Fault, left_out: &LeftOut) -> YamlError {
    let steps = steps(text, &fault.at, left_out);
    match &fault.expression {
        Some(expression) => span::error(path, text, &steps, expression, &fault.wrong),
        None => {
            let error = YamlError::at_steps(path, text, &steps, StepPart::Value, fault.wrong.message.clone());
            match &fault.wrong.help {
                Some(help) => error.with_help(help.clone()),
                None => error,
            }
        }
    }
}

/// Returns the steps to a value in the text. If a key takes one value or a list, the list is tried first, and then the
/// single value.
fn steps<'a>(text: &str, at: &'a [At], left_out: &LeftOut) -> Vec<Step<'a>> {
    let listed: Vec<Step<'a>> = at
        .iter()
        .map(|at| match at {
            At::Key(key) => Step::Key(key),
            At::Item(number) | At::Only(number) => Step::Item(*number),
        })
        .collect();
    let listed = left_out.written(&listed);
    if find(text, &listed, StepPart::Value).is_some() {
        return listed;
    }
    let alone = listed.iter().zip(at).filter(|(_, at)| !matches!(at, At::Only(_)));
    alone.map(|(step, _)| *step).collect()
}

//! The text form of an accepted snapshot, made for reviews. Reading a written snapshot gives the same snapshot.

use std::fmt::Write as _;

use super::set::{Accepted, Several};
use super::{Body, Call, Item, Range, Shape, value};
use crate::snapshot::settings::SnapshotText;

mod read;

pub use read::{FormError, read};

/// The version of the form. Files of a higher version are refused.
pub const VERSION: u32 = 2;

/// Returns the whole file.
pub fn write(accepted: &Accepted) -> String {
    let mut out =
        "# What the trials of this cell do, as accepted. `evals snapshot review` shows what differs.\n".to_owned();
    let mut head = |key: &str, text: &str| {
        let _ = writeln!(out, "{key}: {text}");
    };
    head("evals-snapshot", &VERSION.to_string());
    head("case", &value::on_one_line(&accepted.id.case));
    head("harness", &value::on_one_line(&accepted.id.harness));
    if let Some(model) = &accepted.id.model {
        head("model", &value::on_one_line(model));
    }
    if let Some(variant) = &accepted.id.variant {
        head("variant", &value::on_one_line(variant));
    }
    head("text", text_word(accepted.text));
    if accepted.several == Several::Core {
        head("several", "core");
    }
    for accepted_shape in &accepted.shapes {
        let _ = writeln!(out, "\nshape: {} of {} trials", accepted_shape.seen, accepted_shape.of);
        shape(&accepted_shape.shape, &mut out);
    }
    out
}

/// Returns the word for how texts are kept.
pub fn text_word(text: SnapshotText) -> &'static str {
    match text {
        SnapshotText::None => "none",
        SnapshotText::Full => "full",
        SnapshotText::Digest => "digest",
    }
}

fn shape(shape: &Shape, out: &mut String) {
    items(&shape.items, 1, out);
    for (key, range) in [("tokens", shape.tokens), ("output-tokens", shape.output_tokens)] {
        if let Some(range) = range {
            line(1, &format!("{key}: {}", range_text(range)), out);
        }
    }
}

/// Returns a figure, or its minimum and its maximum.
pub fn range_text(range: Range) -> String {
    if range.least == range.most { range.least.to_string() } else { format!("{}..{}", range.least, range.most) }
}

fn items(items: &[Item], depth: usize, out: &mut String) {
    for item in items {
        match &item.body {
            Body::User(None) => line(depth, "user", out),
            Body::User(Some(text)) => entry(depth, "user", text, out),
            Body::Says(text) => entry(depth, "says", text, out),
            Body::Thinks(text) => entry(depth, "thinks", text, out),
            Body::Plan(lines) => {
                line(depth, "plan", out);
                lines.iter().for_each(|(status, text)| entry(depth + 1, status, text, out));
            }
            Body::Step(calls) => {
                line(depth, "step", out);
                calls.iter().for_each(|made| call(made, depth + 1, out));
            }
            Body::Stop(reason, None) => entry(depth, "stop", reason, out),
            Body::Stop(reason, Some(detail)) => entry(depth, "stop", &format!("{reason} {detail}"), out),
        }
    }
}

fn call(call: &Call, depth: usize, out: &mut String) {
    line(depth, &call.label(), out);
    for (key, text) in &call.details {
        entry(depth + 1, key, text, out);
    }
    if !call.inner.is_empty() {
        line(depth + 1, "@agent", out);
        items(&call.inner, depth + 2, out);
    }
}

/// Writes a key with its value: on the line, or as lines below it, each after a bar.
fn entry(depth: usize, key: &str, text: &str, out: &mut String) {
    if !text.contains('\n') {
        return line(depth, &format!("{key}: {text}"), out);
    }
    line(depth, &format!("{key}:"), out);
    for part in text.split('\n') {
        // Editors remove blanks at the end of an empty line.
        line(depth + 1, &if part.is_empty() { "|".to_owned() } else { format!("| {part}") }, out);
    }
}

fn line(depth: usize, text: &str, out: &mut String) {
    let _ = writeln!(out, "{:width$}{text}", "", width = 2 * depth);
}

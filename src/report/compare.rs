//! A comparison in its formats: a table for terminals, Markdown for pull requests, JSON for programs.

use std::io::{self, Write};

use serde_json::Value;

use super::page::{Block, Meaning, Table, markdown, terminal};
use super::text::{Look, money};
use crate::baseline::Baseline;
use crate::compare::Comparison;
use crate::ids::column_name;
use crate::statistics::means::mean;
use crate::text::some_of;

pub mod page;
mod plain;
pub mod words;

/// A format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people, in a terminal
    Table,
    /// One JSON object
    Json,
    /// For pull requests: short first, details folded
    Markdown,
}

/// Writes a comparison.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(format: Format, comparison: &Comparison, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => {
            let mut value = serde_json::to_value(comparison)?;
            leave_out_unknown(&mut value);
            serde_json::to_writer_pretty(&mut *out, &value)?;
            out.write_all(b"\n")
        }
        Format::Table => terminal::write(&page::page(comparison, look.sign("±", "+-")), look, out),
        Format::Markdown => markdown::write(&page::page(comparison, "±"), out),
    }
}

/// Removes unknown values: they are absent instead of `null`.
fn leave_out_unknown(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(leave_out_unknown);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_unknown),
        _ => {}
    }
}

/// Writes a baseline as a table.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn baseline_table(baseline: &Baseline, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let text = format!("baseline of run {}, {}, by evals {}", baseline.run, baseline.started, baseline.evals);
    let mut table = Table::new(["case", "harness and model", "passed", "score", "cost a trial"]).right([2, 3, 4]);
    for arm in &baseline.arms {
        let column = column_name(&arm.harness, &arm.model);
        for (id, case) in &arm.cases {
            let score = mean(&case.scores).map_or_else(|| look.unknown().to_owned(), words::percent);
            let cost = case.cost.mean().map(|cost| words::bounded(cost, money));
            let cost = cost.unwrap_or_else(|| look.unknown().to_owned());
            let passed = format!("{}/{}", case.passed, case.planned());
            table.row([id.clone(), column.clone(), passed, score, cost]);
        }
    }
    let mut blocks = vec![Block::Verdict(Meaning::Plain, text), Block::Table(table)];
    let lacked = baseline.lacked();
    if !lacked.is_empty() {
        let lines = lacked.iter().map(|case| format!("no results of {}: {}", case.name(), case.why));
        blocks.push(Block::Lines(lines.collect()));
    }
    let read: Vec<String> = baseline.read_own_case().collect();
    if !read.is_empty() {
        let names = some_of(&read, 20);
        blocks.push(Block::Lines(vec![format!("agents could read files of their own case in: {names}")]));
    }
    terminal::blocks(&blocks, look, out)
}

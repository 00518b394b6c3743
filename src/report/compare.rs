//! A comparison in its formats: a table for terminals, Markdown for pull requests, JSON for programs.

use std::io::{self, Write};

use serde_json::Value;

use super::grid::Grid;
use super::text::{BOLD, Look, money, wrap};
use crate::baseline::Baseline;
use crate::compare::Comparison;
use crate::ids::column_name;
use crate::statistics::means::mean;

pub mod markdown;
pub mod page;
pub mod words;

use page::Block;

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
/// The output could not be written.
pub fn write(format: Format, comparison: &Comparison, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => {
            let mut value = serde_json::to_value(comparison)?;
            leave_out_unknown(&mut value);
            serde_json::to_writer_pretty(&mut *out, &value)?;
            out.write_all(b"\n")
        }
        Format::Table => {
            let blocks = page::blocks(comparison, look.sign("±", "+-"));
            all(&blocks, look, out)
        }
        Format::Markdown => markdown::write(&page::blocks(comparison, "±"), out),
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

fn in_terminal(block: &Block, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Verdict { style, text } => {
            for line in wrap(text, look.columns()) {
                writeln!(out, "{}", look.paint(style.bold(), &line))?;
            }
            Ok(())
        }
        Block::Heading(text) => writeln!(out, "\n{}", look.paint(BOLD, text)),
        Block::Lines(lines) => {
            for text in lines {
                for (n, line) in wrap(text, look.columns() - 2).iter().enumerate() {
                    writeln!(out, "{} {line}", if n == 0 { look.sign("·", "-") } else { " " })?;
                }
            }
            Ok(())
        }
        Block::Table { head, right, rows } => {
            let mut grid = Grid::new(head.iter().map(|cell| (*cell).to_owned())).right(right.iter().copied());
            for row in rows {
                grid.row(row.iter().map(|cell| cell.as_str().into()).collect());
            }
            grid.write(look, out)
        }
        Block::Folded { title, blocks } => {
            writeln!(out, "\n{}", look.paint(BOLD, title))?;
            all(blocks, look, out)
        }
    }
}

fn all(blocks: &[Block], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut after_table = false;
    for block in blocks {
        let table = matches!(block, Block::Table { .. });
        if table && after_table {
            writeln!(out)?;
        }
        in_terminal(block, look, out)?;
        after_table = table;
    }
    Ok(())
}

/// Writes a baseline as a table.
///
/// # Errors
/// The output could not be written.
pub fn baseline_table(baseline: &Baseline, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let text = format!("baseline of run {}, {}, by evals {}", baseline.run, baseline.started, baseline.evals);
    for line in wrap(&text, look.columns()) {
        writeln!(out, "{}", look.paint(BOLD, &line))?;
    }
    let mut grid = Grid::new(["case", "harness and model", "passed", "score", "cost a trial"]).right([2, 3, 4]);
    for arm in &baseline.arms {
        let column = column_name(&arm.harness, &arm.model);
        for (id, case) in &arm.cases {
            let score = mean(&case.scores).map_or_else(|| look.unknown().to_owned(), words::percent);
            let least = if case.cost.untold > 0 { ">=" } else { "" };
            let cost = case.cost.mean().map(|cost| format!("{least}{}", money(cost)));
            let cost = cost.unwrap_or_else(|| look.unknown().to_owned());
            let passed = format!("{}/{}", case.passed, case.passed + case.failed);
            grid.row([id.clone(), column.clone(), passed, score, cost].into_iter().map(Into::into).collect());
        }
    }
    grid.write(look, out)
}

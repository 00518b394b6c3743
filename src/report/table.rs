//! The report for a terminal: a table of case × (harness, model), notes, failures, and a summary line.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use anstyle::Style;

use super::cells::{Cell, Column, Figures};
use super::compare::page::gate_word;
use super::figures::{self, completion, passed, score};
use super::grid::{Grid, GridCell};
use super::text::{BOLD, DIM, GREEN, Look, RED, YELLOW, harmless, plural, verdict_style, width_of, wrap};
use super::{Report, Summary, changed, failures, snapshots};
use crate::statistics::gates::GateVerdict;
use crate::verdict::Verdict;

/// The length from which names are wrapped even if there is room, so that figures stay near them.
const LONGEST_NAME: usize = 60;

/// The width from which a table with one column shows figures beside each other; in a narrower one, they are
/// below the verdict.
const FIGURES_BESIDE: usize = 60;

/// Writes the whole report.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    heading(report, look, out)?;
    if !report.cells.is_empty() {
        tables(report, look, out)?;
        writeln!(out)?;
    }
    for note in &report.notes {
        let note = if look.unicode { note.clone() } else { note.replace('≥', ">=") };
        for (n, line) in wrap(&note, look.columns() - 2).iter().enumerate() {
            writeln!(out, "{} {line}", if n == 0 { look.sign("·", "-") } else { " " })?;
        }
    }
    if !report.notes.is_empty() {
        writeln!(out)?;
    }
    changed::write(report, look, out)?;
    snapshots::write(report, look, out)?;
    failures::write(report, look, out)?;
    closing(report, look, out)
}

fn heading(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let run = &report.run;
    let label = run.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
    let mut cases: Vec<&str> = report.cells.iter().map(|cell| &*cell.case).collect();
    cases.sort_unstable();
    cases.dedup();
    let text = format!(
        "run {}{label}: {}, {}, {}",
        run.run,
        plural(cases.len(), "case"),
        plural(report.columns.len(), "column"),
        plural(report.summary.trials(), "trial")
    );
    for line in wrap(&text, look.columns()) {
        writeln!(out, "{}", look.paint(BOLD, &line))?;
    }
    writeln!(out)
}

fn tables(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    if let [column] = report.columns.as_slice()
        && look.columns() >= FIGURES_BESIDE
    {
        return one_column(report, column, look, out);
    }
    // As many columns side by side as fit; the rest follow below, with the same cases.
    let mut rest = report.columns.as_slice();
    let mut first = true;
    while !rest.is_empty() {
        let fits = |n: &usize| side_by_side(report, &rest[..*n], look).natural_width() <= look.columns();
        let take = (1..=rest.len()).rev().find(fits).unwrap_or(1);
        let (now, later) = rest.split_at(take);
        if !first {
            writeln!(out)?;
        }
        side_by_side(report, now, look).write(look, out)?;
        (rest, first) = (later, false);
    }
    Ok(())
}

fn one_column(report: &Report, column: &Column, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let head = ["case".to_owned(), column_head(column), "score".into(), "time".into(), "cost".into(), "tokens".into()];
    let mut grid = Grid::new(head).right(2..6);
    for cell in &report.cells {
        let [time, cost, tokens] = figures::taken(&cell.figures, look);
        let (word, style) = verdict(cell);
        let verdict = GridCell::styled(style, word);
        let score = score(cell.score, look);
        grid.row(vec![case_name(&cell.case), verdict, score.into(), time.into(), cost.into(), tokens.into()]);
    }
    let mut foot = |cells: [String; 6]| grid.foot(cells.map(GridCell::from).into());
    let [time, cost, tokens] = figures::taken(&column.figures, look);
    foot(["all".into(), passed(column), score(column.score, look), time, cost, tokens]);
    let blank = String::new;
    if column.interval.is_some() {
        let interval = figures::interval(column.interval, look);
        foot(["95 % interval".into(), interval, blank(), blank(), blank(), blank()]);
    }
    if column.score_with_errors.is_some() {
        let score = score(column.score_with_errors, look);
        foot(["errors as failures".into(), blank(), score, blank(), blank(), blank()]);
    }
    foot(["completed".into(), completion(column, look), blank(), blank(), blank(), blank()]);
    grid.write(look, out)
}

fn side_by_side(report: &Report, columns: &[Column], look: &Look) -> Grid {
    let mut grid = Grid::new(std::iter::once("case".to_owned()).chain(columns.iter().map(column_head)));
    let mut cases: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut cells: HashMap<(&str, &str, &str), &Cell> = HashMap::new();
    for cell in &report.cells {
        if seen.insert(&cell.case) {
            cases.push(&cell.case);
        }
        cells.insert((&cell.case, &cell.harness, &cell.arm), cell);
    }
    for case in cases {
        let mut row = vec![case_name(case)];
        for column in columns {
            let cell = cells.get(&(case, &*column.harness, &*column.arm));
            row.push(cell.map_or_else(GridCell::default, |cell| {
                let (word, style) = verdict(cell);
                let score = cell.score.map(|score| format!(" {}", crate::rounding::share(score))).unwrap_or_default();
                with_figures(GridCell::styled(style, word + &score), &cell.figures, look)
            }));
        }
        grid.row(row);
    }
    let mut foot = |name: &str, of: &dyn Fn(&Column) -> GridCell| {
        grid.foot(std::iter::once(name.into()).chain(columns.iter().map(of)).collect());
    };
    foot("all", &|column| with_figures(passed(column).into(), &column.figures, look));
    foot("score", &|column| score(column.score, look).into());
    if columns.iter().any(|column| column.interval.is_some()) {
        foot("95 % interval", &|column| figures::interval(column.interval, look).into());
    }
    if columns.iter().any(|column| column.score_with_errors.is_some()) {
        foot("errors as failures", &|column| score(column.score_with_errors.or(column.score), look).into());
    }
    foot("completed", &|column| completion(column, look).into());
    grid
}

/// Adds time, cost and tokens, as far as known, as a second line.
fn with_figures(cell: GridCell, took: &Figures, look: &Look) -> GridCell {
    let known = figures::taken(took, look).into_iter().filter(|figure| figure != look.unknown());
    let known = known.collect::<Vec<_>>().join(" ");
    if known.is_empty() { cell } else { cell.below(DIM, known) }
}

fn case_name(case: &str) -> GridCell {
    wrapped_name(case).into()
}

/// Returns the full name: two models may differ only at the end.
fn column_head(column: &Column) -> String {
    wrapped_name(&column.name())
}

fn wrapped_name(name: &str) -> String {
    let clean = harmless(name).replace('\n', " ");
    if width_of(&clean) <= LONGEST_NAME { clean } else { wrap(&clean, LONGEST_NAME).join("\n") }
}

fn verdict(cell: &Cell) -> (String, Style) {
    let (word, style) = match cell.verdict {
        Some(verdict) => (verdict.word(), verdict_style(verdict)),
        None => ("not run", DIM),
    };
    let passed =
        if cell.tally.trials == 0 { String::new() } else { format!(" {}/{}", cell.tally.passed, cell.tally.trials) };
    (format!("{word}{passed}"), style)
}

fn closing(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    for gate in &report.gates {
        let style = match gate.verdict {
            GateVerdict::Pass => GREEN,
            GateVerdict::Fail => RED,
            GateVerdict::Inconclusive => YELLOW,
        };
        let text = format!("gate {}: {} {}", gate_word(gate.verdict), gate.arm, gate.text);
        for line in wrap(&text, look.columns()) {
            writeln!(out, "{}", look.paint(style, &line))?;
        }
    }
    // The text is wrapped without colours, and then coloured line by line.
    let mut parts = count_parts(&report.summary).into_iter().peekable();
    let mut used = 0;
    while let Some((text, style)) = parts.next() {
        let next = parts.peek().map(|(text, _)| text.len() + 3);
        used += text.len() + 2;
        write!(out, "{}", look.paint(style, &text))?;
        match next {
            Some(next) if used + next > look.columns() => {
                writeln!(out, ",")?;
                used = 0;
            }
            Some(_) => write!(out, ", ")?,
            None => writeln!(out)?,
        }
    }
    let folder = harmless(&report.folder.to_string_lossy());
    writeln!(out, "{} {folder}", look.paint(DIM, "run folder"))
}

/// Returns the counts of a summary that are not zero, with colours.
pub fn counts(summary: &Summary, look: &Look) -> String {
    let parts = count_parts(summary).into_iter().map(|(text, style)| look.paint(style, &text));
    parts.collect::<Vec<_>>().join(", ")
}

fn count_parts(summary: &Summary) -> Vec<(String, Style)> {
    let counts = [
        (summary.pass, "passed", verdict_style(Verdict::Pass)),
        (summary.fail, "failed", verdict_style(Verdict::Fail)),
        (summary.ungraded, "ungraded", verdict_style(Verdict::Ungraded)),
        (summary.errored, "errored", verdict_style(Verdict::Errored)),
        (summary.skipped, "skipped", DIM),
        (summary.not_run, "not run", DIM),
    ];
    let shown = counts.into_iter().filter(|(number, word, _)| *number > 0 || *word == "passed");
    shown.map(|(number, word, style)| (format!("{number} {word}"), style)).collect()
}

//! Snapshots in reports: a line for each difference, and each difference in full.

use std::io::{self, Write};

use super::Report;
use super::commands;
use super::text::{BOLD, DIM, GREEN, Look, RED, YELLOW, harmless, one_line, plural, wrap};
use crate::snapshot::compare::{Compared, State};
use crate::snapshot::diff::{Difference, Sign};

/// The maximum number of differences in a report; the rest are counted.
const MOST: usize = 30;
/// The maximum number of lines of a difference.
const LINES: usize = 60;

/// Writes the differences of a report's cells from their accepted snapshots, or nothing if there are none.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let shown: Vec<&Compared> =
        report.snapshots.iter().filter(|it| it.differs || it.accepted || it.shows_nothing).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let differing = shown.iter().filter(|it| it.differs).count();
    let accepted = shown.iter().filter(|it| it.accepted).count();
    let title = match differing {
        0 if accepted == 0 => format!("{} can show nothing of what the agent does", plural(shown.len(), "snapshot")),
        0 => format!("{} accepted", plural(accepted, "snapshot")),
        1 => "1 snapshot differs".to_owned(),
        more => format!("{more} snapshots differ"),
    };
    writeln!(out, "{}", look.paint(BOLD, &title))?;
    let mut left = MOST;
    for compared in &shown {
        head(compared, "  ", look, out)?;
        for difference in compared.differing.iter().flat_map(|it| &it.differences) {
            if left == 0 {
                break;
            }
            left -= 1;
            let text = format!("{} {}", difference.sign.mark(), difference.sentence());
            let text = one_line(&text, look.columns().saturating_sub(4), look);
            writeln!(out, "    {}", look.paint(style(difference.sign), &text))?;
        }
    }
    if differing > 0 {
        let run = commands::run_word(&report.run, &report.folder);
        writeln!(out, "  in full: evals snapshot check {run}; to decide: evals snapshot review {run}")?;
    }
    writeln!(out)
}

fn style(sign: Sign) -> anstyle::Style {
    match sign {
        Sign::Added => GREEN,
        Sign::Removed => RED,
        Sign::Changed => YELLOW,
    }
}

/// Returns the cells that differ from their accepted snapshots.
pub fn differing(report: &Report) -> impl Iterator<Item = &Compared> {
    report.snapshots.iter().filter(|it| it.differs)
}

/// Returns the title of a cell with differences.
pub fn title(compared: &Compared) -> String {
    let column = crate::ids::column_name(&compared.harness, compared.model.as_deref().unwrap_or("default"));
    let what = if compared.state == State::New { "no snapshot is accepted" } else { "the snapshot differs" };
    format!("{what}: {} ({column})", compared.case)
}

/// Returns the differences of a cell, one line each.
pub fn lines(compared: &Compared) -> Vec<String> {
    let differences = compared.differing.iter().flat_map(|it| &it.differences);
    let told = differences.map(|difference| format!("{} {}", difference.sign.mark(), difference.sentence()));
    compared.note.clone().into_iter().chain(told).collect()
}

/// Writes the line about a cell: its state, its name, and how many of its trials match the accepted snapshot.
fn head(compared: &Compared, indent: &str, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let (word, style) = match compared.state {
        _ if compared.accepted => ("accepted", GREEN),
        State::Same => ("same", GREEN),
        State::New => ("new", YELLOW),
        State::Changed => ("changed", RED),
        State::Missing => ("missing", YELLOW),
    };
    let column = crate::ids::column_name(&compared.harness, compared.model.as_deref().unwrap_or("default"));
    let trials = match (compared.matching, compared.trials) {
        (matching, trials) if compared.state == State::Changed && trials > 1 => {
            format!("  {matching} of {trials} trials as accepted")
        }
        _ => String::new(),
    };
    let rejected = if compared.rejected { "  (rejected)" } else { "" };
    let text = format!("{}  {column}{trials}{rejected}", compared.case);
    let room = look.columns().saturating_sub(indent.len() + word.len() + 2);
    for (n, line) in wrap(&text, room).iter().enumerate() {
        let word = if n == 0 { look.paint(style, word) } else { " ".repeat(word.len()) };
        writeln!(out, "{indent}{word}  {line}")?;
    }
    let note = match (compared.state, &compared.note) {
        (State::New, None) if !compared.accepted => Some("nothing is accepted for it yet".to_owned()),
        (_, note) => note.clone(),
    };
    for line in note.iter().flat_map(|note| wrap(note, look.columns().saturating_sub(indent.len() + 2))) {
        writeln!(out, "{indent}  {}", look.paint(DIM, &line))?;
    }
    Ok(())
}

/// Writes a cell with all of its differences.
///
/// # Errors
/// The output could not be written.
pub fn in_full(compared: &Compared, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    head(compared, "", look, out)?;
    writeln!(out, "  {}", look.paint(DIM, &harmless(&compared.file)))?;
    for differing in &compared.differing {
        if compared.trials > 1 {
            let names = differing.trials.join(", ");
            for line in wrap(&format!("trial {names}:"), look.columns().saturating_sub(2)) {
                writeln!(out, "  {line}")?;
            }
        }
        for difference in &differing.differences {
            one(difference, look, out)?;
        }
    }
    Ok(())
}

fn one(difference: &Difference, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mark = difference.sign.mark();
    let title = format!("{mark} {}: {}", difference.place, difference.what);
    for line in wrap(&title, look.columns().saturating_sub(2)) {
        writeln!(out, "  {}", look.paint(style(difference.sign), &line))?;
    }
    for part in difference.lines.iter().take(LINES) {
        let style = match part.mark {
            '+' => GREEN,
            '-' => RED,
            _ => DIM,
        };
        let room = look.columns().saturating_sub(8);
        for (n, line) in wrap(&part.text, room).iter().enumerate() {
            let mark = if n == 0 { part.mark } else { ' ' };
            writeln!(out, "      {}", look.paint(style, format!("{mark} {line}").trim_end()))?;
        }
    }
    let more = difference.lines.len().saturating_sub(LINES);
    if more > 0 {
        writeln!(out, "      {} {}", look.ellipsis(), plural(more, "more line"))?;
    }
    Ok(())
}

/// Returns the counts of the states that are not zero, on one line.
pub fn counts(all: &[Compared], unreferenced: usize) -> String {
    let states = [State::Same, State::Changed, State::New, State::Missing];
    let of = |state: State| all.iter().filter(|it| it.state == state).count();
    let mut parts: Vec<String> = states
        .into_iter()
        .filter(|state| of(*state) > 0)
        .map(|state| format!("{} {}", of(state), state.word()))
        .collect();
    if unreferenced > 0 {
        parts.push(format!("{unreferenced} unreferenced"));
    }
    if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join(", ") }
}

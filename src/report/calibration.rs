//! A calibration, as a table and as JSON.

use std::io::{self, Write};

use super::grid::Grid;
use super::text::Look;
use crate::judge::calibration::{Calibration, Measured, Rate};

/// Writes it for people.
///
/// # Errors
/// The output could not be written.
pub fn table(calibration: &Calibration, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let judges: Vec<String> = calibration.judges.iter().map(ToString::to_string).collect();
    writeln!(out, "rubric {}  judged by {}  {} labels", calibration.rubric, judges.join(" + "), calibration.labels)?;
    let head = [
        "of",
        "both pass",
        "judge alone",
        "both fail",
        "people alone",
        "unknown",
        "tpr",
        "tnr",
        "kappa",
        "rate",
        "corrected",
    ];
    let mut grid = Grid::new(head);
    grid.row(row("all", &calibration.all, look));
    for (name, measured) in &calibration.criteria {
        grid.row(row(name, measured, look));
    }
    for (name, measured) in &calibration.models {
        grid.row(row(&format!("model {name}"), measured, look));
    }
    grid.write(look, out)
}

fn row(name: &str, measured: &Measured, look: &Look) -> Vec<super::grid::GridCell> {
    let counts = measured.counts;
    let unknown = || look.unknown().to_owned();
    let rate =
        |rate: Option<Rate>| rate.map_or_else(unknown, |it| format!("{:.2} [{:.2}, {:.2}]", it.value, it.low, it.high));
    let plain = measured.judged_rate.map_or_else(unknown, |rate| format!("{rate:.2}"));
    let cells = [
        name.to_owned(),
        counts.tp.to_string(),
        counts.fp.to_string(),
        counts.tn.to_string(),
        counts.r#fn.to_string(),
        (counts.unknown_pass + counts.unknown_fail).to_string(),
        rate(measured.tpr),
        rate(measured.tnr),
        rate(measured.kappa),
        plain,
        rate(measured.corrected_rate),
    ];
    cells.into_iter().map(Into::into).collect()
}

/// Writes it for programs.
///
/// # Errors
/// The output could not be written.
pub fn json(calibration: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, calibration)?;
    writeln!(out)
}

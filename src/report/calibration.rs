//! The report of a calibration: a table, or JSON.

use std::io::{self, Write};

use super::grid::Grid;
use super::text::Look;
use crate::judge::calibration::{Calibration, Measured, Rate};
use crate::judge::pairwise_calibration::{Orders, Pairs};
use crate::rounding::coefficient;

/// Writes the calibration as a table.
///
/// # Errors
/// The output could not be written.
pub fn table(calibration: &Calibration, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let judges: Vec<String> = calibration.judges.iter().map(ToString::to_string).collect();
    let what = if calibration.pairs.is_some() { "pairwise" } else { "rubric" };
    writeln!(out, "{what} {}  judged by {}  {} labels", calibration.rubric, judges.join(" + "), calibration.labels)?;
    if let Some(pairs) = &calibration.pairs {
        of_pairs(pairs, look, out)?;
    }
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

/// Writes the agreement of people and judges about pairs, and the effect of the order.
fn of_pairs(pairs: &Pairs, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut grid = Grid::new(["people say", "judge: better", "worse", "tie", "unknown"]);
    for (word, said) in [("better", pairs.better), ("worse", pairs.worse), ("tie", pairs.tie)] {
        let counts = [said.better, said.worse, said.tie, said.unknown].map(|count| count.to_string());
        grid.row([word.to_owned()].into_iter().chain(counts).map(Into::into).collect());
    }
    grid.write(look, out)?;
    let Orders { asked, same, first, second, .. } = pairs.orders;
    let (agreement, kappa) = (rate(pairs.agreement, look), rate(pairs.kappa, look));
    writeln!(out, "agreement {agreement}  kappa {kappa}")?;
    let consistency = rate(pairs.orders.consistency, look);
    writeln!(
        out,
        "the same in both orders {same} of {asked}, {consistency}; preferred what stood first {first}, second {second}\n"
    )
}

fn rate(rate: Option<Rate>, look: &Look) -> String {
    let shown = |it: Rate| format!("{} [{}, {}]", coefficient(it.value), coefficient(it.low), coefficient(it.high));
    rate.map_or_else(|| look.unknown().to_owned(), shown)
}

fn row(name: &str, measured: &Measured, look: &Look) -> Vec<super::grid::GridCell> {
    let counts = measured.counts;
    let rate = |it: Option<Rate>| rate(it, look);
    let plain = measured.judged_rate.map_or_else(|| look.unknown().to_owned(), coefficient);
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

/// Writes the calibration as JSON.
///
/// # Errors
/// The output could not be written.
pub fn json(calibration: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, calibration)?;
    writeln!(out)
}

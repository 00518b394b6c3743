//! The report of a calibration: a table, or JSON.

use std::io::{self, Write};

use super::page::{Block, Page, Table};
use super::text::Look;
use crate::judge::calibration::{Calibration, Measured, Rate};
use crate::judge::pairwise_calibration::{Orders, Pairs};
use crate::rounding::coefficient;
use crate::text::some_of;

/// The maximum number of rows that are named below the table.
const MAX_ROWS: usize = 12;

/// Builds the page: the agreement by criterion and by model, with the signs of a look.
pub fn page(calibration: &Calibration, look: &Look) -> Page {
    let judges: Vec<String> = calibration.judges.iter().map(ToString::to_string).collect();
    let what = if calibration.pairs.is_some() { "pairwise" } else { "rubric" };
    let (rubric, labels) = (&calibration.rubric, calibration.labels);
    let mut blocks = vec![Block::Text(format!("{what} {rubric}  judged by {}  {labels} labels", judges.join(" + ")))];
    if let Some(pairs) = &calibration.pairs {
        blocks.extend(of_pairs(pairs, look));
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
    let mut table = Table::new(head);
    table.row(row("all", &calibration.all, look));
    for (name, measured) in &calibration.criteria {
        table.row(row(name, measured, look));
    }
    for (name, measured) in &calibration.models {
        table.row(row(&format!("model {name}"), measured, look));
    }
    blocks.push(Block::Table(table));
    blocks.push(Block::Lines(sources(calibration)));
    Page { blocks, ..Page::default() }
}

/// Returns the verdicts that the rates are computed from, with the number for each row.
fn sources(calibration: &Calibration) -> Vec<String> {
    let models = calibration.models.iter().map(|(name, measured)| (format!("model {name}"), measured));
    let criteria = calibration.criteria.iter().map(|(name, measured)| (name.clone(), measured));
    let rows: Vec<(String, &Measured)> =
        [("all".to_owned(), &calibration.all)].into_iter().chain(criteria).chain(models).collect();
    let line = |has_labels: bool| {
        let of = |(name, measured): &(String, &Measured)| {
            let source = measured.rate_source.filter(|source| source.has_labels == has_labels)?;
            Some(format!("{name} ({})", source.verdicts))
        };
        let names: Vec<String> = rows.iter().filter_map(of).collect();
        let which = if has_labels { "with" } else { "without" };
        (!names.is_empty()).then(|| {
            format!("the rate is that of the verdicts on sessions {which} a label: {}", some_of(names, MAX_ROWS))
        })
    };
    [line(false), line(true)].into_iter().flatten().collect()
}

/// Returns the agreement of people and judges about pairs, and the effect of the order.
fn of_pairs(pairs: &Pairs, look: &Look) -> [Block; 4] {
    let mut table = Table::new(["people say", "judge: better", "worse", "tie", "unknown"]);
    for (word, outcomes) in [("better", pairs.better), ("worse", pairs.worse), ("tie", pairs.tie)] {
        let counts = [outcomes.better, outcomes.worse, outcomes.tie, outcomes.unknown].map(|count| count.to_string());
        table.row([word.to_owned()].into_iter().chain(counts));
    }
    let Orders { asked, same, first, second, .. } = pairs.orders;
    let (agreement, kappa) = (rate(pairs.agreement, look), rate(pairs.kappa, look));
    let consistency = rate(pairs.orders.consistency, look);
    let orders = format!(
        "the same in both orders {same} of {asked}, {consistency}; preferred the first {first}, the second {second}"
    );
    let agreement = Block::Text(format!("agreement {agreement}  kappa {kappa}"));
    [Block::Table(table), agreement, Block::Text(orders), Block::Heading("by criterion and model".to_owned())]
}

fn rate(rate: Option<Rate>, look: &Look) -> String {
    let shown = |it: Rate| match (it.low, it.high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", coefficient(it.value), coefficient(low), coefficient(high)),
        _ => coefficient(it.value),
    };
    rate.map_or_else(|| look.unknown().to_owned(), shown)
}

fn row(name: &str, measured: &Measured, look: &Look) -> [String; 11] {
    let counts = measured.counts;
    let rate = |it: Option<Rate>| rate(it, look);
    let plain = measured.judged_rate.map_or_else(|| look.unknown().to_owned(), coefficient);
    [
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
    ]
}

/// Writes the calibration as JSON.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn json(calibration: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, calibration)?;
    writeln!(out)
}

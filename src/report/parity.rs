//! The report of a parity check, which compares an agent inside the engine with its own command.

use super::page::{Block, Meaning, Page, Table, TableCell};
use crate::parity::{Compared, ParityReport, Same};

/// Builds the page: a row for each case.
pub fn page(report: &ParityReport) -> Page {
    let head = format!("{} inside the engine, and {} outside of it", report.harness, report.outside);
    let mut table = Table::new(["case", "outcome", "", "tools", ""]);
    for case in &report.cases {
        let compared = |Compared { same, text }: &Compared| {
            let meaning = match same {
                Same::Equal => Meaning::Good,
                Same::Differs => Meaning::Bad,
                Same::Unknown => Meaning::Open,
            };
            [TableCell::new(meaning, same.word()), TableCell::new(Meaning::Quiet, text)]
        };
        let name = TableCell::new(Meaning::Name, &case.case);
        table.row([name].into_iter().chain(compared(&case.outcome)).chain(compared(&case.tools)));
    }
    let evidence = report.cases.iter().map(|case| format!("evidence: {}", case.folder)).collect();
    Page { blocks: vec![Block::Text(head), Block::Table(table), Block::Lines(evidence)], ..Page::default() }
}

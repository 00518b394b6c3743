//! The report of a parity check, which compares an agent inside the engine with its own command.

use std::io::{self, Write};

use super::grid::{Grid, GridCell};
use super::text::{DIM, GREEN, Look, RED, YELLOW, one_line};
use crate::parity::{Compared, ParityReport, Same};

/// Writes the comparison as a table.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &ParityReport, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let head = format!("{} inside the engine, and {} outside of it", report.harness, report.outside);
    writeln!(out, "{}", one_line(&head, look.columns(), look))?;
    let mut grid = Grid::new(["case", "outcome", "", "tools", ""]);
    for case in &report.cases {
        let mut row: Vec<GridCell> = vec![one_line(&case.case, 60, look).into()];
        for Compared { same, text } in [&case.outcome, &case.tools] {
            let style = match same {
                Same::Same => GREEN,
                Same::Differs => RED,
                Same::Unknown => YELLOW,
            };
            row.push(GridCell::styled(style, same.word()));
            row.push(GridCell::styled(DIM, one_line(text, 300, look)));
        }
        grid.row(row);
    }
    grid.write(look, out)?;
    for case in &report.cases {
        writeln!(out, "evidence: {}", case.folder)?;
    }
    Ok(())
}

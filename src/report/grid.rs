//! A text table that fits a terminal: a header, rows, and a footer below a line.

use std::io::{self, Write};

use anstyle::Style;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::style::HorizontalLine;
use tabled::settings::themes::Theme;
use tabled::settings::{Alignment, Padding};

use super::text::{BOLD, DIM, Look, width_of, wrap};

/// The content of a table cell: lines, each in one style. The lines are sanitised and wrapped.
#[derive(Debug, Clone, Default)]
pub struct GridCell(Vec<(Style, String)>);

impl GridCell {
    /// Makes a cell with one styled line.
    pub fn styled(style: Style, text: impl Into<String>) -> Self {
        Self(vec![(style, text.into())])
    }

    /// Adds a further line below.
    #[must_use]
    pub fn below(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    fn wrapped(&self, width: usize) -> Vec<(Style, String)> {
        // White space at the end of a line would be cut off in plain text, and kept before the end of a colour.
        let wrapped =
            self.0.iter().flat_map(|(style, text)| wrap(text, width).into_iter().map(move |line| (style, line)));
        wrapped.map(|(style, line)| (*style, line.trim_end().to_owned())).collect()
    }

    fn width(&self) -> usize {
        self.wrapped(usize::MAX).iter().map(|(_, line)| width_of(line)).max().unwrap_or(0)
    }
}

impl<S: Into<String>> From<S> for GridCell {
    fn from(text: S) -> Self {
        Self::styled(Style::new(), text)
    }
}

/// A table.
#[derive(Debug, Default)]
pub struct Grid {
    head: Vec<GridCell>,
    rows: Vec<Vec<GridCell>>,
    foot: Vec<Vec<GridCell>>,
    right: Vec<usize>,
}

impl Grid {
    /// Makes a table with these headings.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(|cell| GridCell::styled(BOLD, cell)).collect(), ..Self::default() }
    }

    /// Right-aligns these columns, for figures.
    #[must_use]
    pub fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right.extend(columns);
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<GridCell>) {
        self.rows.push(cells);
    }

    /// Adds a row to the footer.
    pub fn foot(&mut self, cells: Vec<GridCell>) {
        self.foot.push(cells);
    }

    /// Returns the width of the table without wrapping.
    pub fn natural_width(&self) -> usize {
        total(&self.natural_widths())
    }

    fn all_rows(&self) -> impl Iterator<Item = &Vec<GridCell>> {
        std::iter::once(&self.head).chain(&self.rows).chain(&self.foot)
    }

    fn natural_widths(&self) -> Vec<usize> {
        let widest =
            |column: usize| self.all_rows().filter_map(|row| row.get(column)).map(GridCell::width).max().unwrap_or(0);
        (0..self.head.len()).map(widest).collect()
    }

    /// Writes the table. Its widest columns are wrapped until it fits.
    ///
    /// # Errors
    /// The output could not be written.
    pub fn write(&self, look: &Look, out: &mut dyn Write) -> io::Result<()> {
        let widths = fitted(self.natural_widths(), look.columns());
        let mut builder = Builder::default();
        for row in self.all_rows() {
            builder.push_record(row.iter().zip(&widths).map(|(cell, width)| {
                let lines = cell.wrapped(*width).into_iter().map(|(style, line)| look.paint(style, &line));
                lines.collect::<Vec<_>>().join("\n")
            }));
        }
        let mut table = builder.build();
        let line = if look.unicode { '─' } else { '-' };
        let mut theme = Theme::new();
        theme.insert_horizontal_line(1, HorizontalLine::new(line));
        if !self.foot.is_empty() && !self.rows.is_empty() {
            theme.insert_horizontal_line(1 + self.rows.len(), HorizontalLine::new(line));
        }
        table.with(theme).with(Padding::new(1, 1, 0, 0));
        for column in &self.right {
            table.modify(Columns::one(*column), Alignment::right());
        }
        for text in table.to_string().lines() {
            let text = text.trim_end();
            let rule = !text.is_empty() && text.chars().all(|c| c == line);
            writeln!(out, "{}", if rule { look.paint(DIM, text) } else { text.to_owned() })?;
        }
        Ok(())
    }
}

/// Returns the sum of the widths of columns with their padding.
fn total(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum()
}

/// Reduces the widest widths until the table fits.
fn fitted(mut widths: Vec<usize>, room: usize) -> Vec<usize> {
    while total(&widths) > room {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > 2) else { break };
        *widest -= 1;
    }
    widths
}

//! Lays out a table for a terminal: it fits the width, and its widest columns are wrapped.

use std::borrow::Cow;
use std::io::{self, Write};

use anstyle::Style;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::style::HorizontalLine;
use tabled::settings::themes::Theme;
use tabled::settings::{Alignment, Padding};

use super::page::terminal::style;
use super::page::{Table, TableCell};
use super::text::{DIM, Look, width_of, wrap};

/// Returns the lines of a cell, sanitised and wrapped.
fn wrapped(cell: &TableCell, width: usize) -> Vec<(Style, String)> {
    // White space at the end of a line is removed in plain text, and would be kept before the end of a colour.
    let lines =
        cell.0.iter().flat_map(|(meaning, text)| wrap(text, width).into_iter().map(|line| (style(*meaning), line)));
    lines.map(|(style, line)| (style, line.trim_end().to_owned())).collect()
}

fn width(cell: &TableCell) -> usize {
    wrapped(cell, usize::MAX).iter().map(|(_, line)| width_of(line)).max().unwrap_or(0)
}

/// Returns the width of a table without wrapping.
pub fn natural_width(table: &Table) -> usize {
    total(&natural_widths(table))
}

fn all_rows(table: &Table) -> impl Iterator<Item = &Vec<TableCell>> {
    std::iter::once(&table.head).chain(&table.rows).chain(&table.foot)
}

fn natural_widths(table: &Table) -> Vec<usize> {
    let widest = |column: usize| all_rows(table).filter_map(|row| row.get(column)).map(width).max().unwrap_or(0);
    (0..table.head.len()).map(widest).collect()
}

/// Returns true if a table of this width breaks names.
pub fn breaks_names(table: &Table, room: usize) -> bool {
    total(&longest_words(table, MAX_WHOLE_WORD_COLUMNS)) > room
}

/// Writes a table. Columns that can be spared are left out if a name would be broken otherwise: the first one without which
/// the table fits, else one after the other. The last of them stays if the table fits without the others. Then the widest columns
/// are wrapped until it fits.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(content: &Table, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let (mut narrowed, mut left_out) = (Cow::Borrowed(content), Vec::new());
    while breaks_names(&narrowed, look.columns()) {
        let suffices =
            |column: &&usize| !breaks_names(&narrowed.clone().into_owned().without(**column), look.columns());
        let spare = match narrowed.spare.split_last() {
            Some((_, others)) if !breaks_names(&without_all(&narrowed, others), look.columns()) => others,
            _ => &narrowed.spare,
        };
        let Some(&column) = spare.iter().find(suffices).or(spare.first()) else { break };
        let head = narrowed.head.get(column).into_iter().flat_map(|cell| &cell.0);
        left_out.extend(head.map(|(_, text)| text.clone()));
        narrowed = Cow::Owned(narrowed.into_owned().without(column));
    }
    write_fitted(&narrowed, look, out)?;
    if !left_out.is_empty() {
        let text = format!("no room for: {}", left_out.join(", "));
        wrap(&text, look.columns()).iter().try_for_each(|line| writeln!(out, "{}", look.paint(DIM, line)))?;
    }
    Ok(())
}

/// Returns a table without some of its columns.
fn without_all(table: &Table, columns: &[usize]) -> Table {
    let mut columns = columns.to_vec();
    columns.sort_unstable();
    columns.into_iter().rev().fold(table.clone(), Table::without)
}

fn write_fitted(content: &Table, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let whole = if breaks_names(content, look.columns()) { WHOLE } else { MAX_WHOLE_WORD_COLUMNS };
    let widths = fitted(natural_widths(content), &longest_words(content, whole), look.columns());
    let mut builder = Builder::default();
    for row in all_rows(content) {
        builder.push_record(row.iter().zip(&widths).map(|(cell, width)| {
            let lines = wrapped(cell, *width).into_iter().map(|(style, line)| look.paint(style, &line));
            lines.collect::<Vec<_>>().join("\n")
        }));
    }
    let mut table = builder.build();
    let line = if look.unicode { '─' } else { '-' };
    let mut theme = Theme::new();
    theme.insert_horizontal_line(1, HorizontalLine::new(line));
    if !content.foot.is_empty() && !content.rows.is_empty() {
        theme.insert_horizontal_line(1 + content.rows.len(), HorizontalLine::new(line));
    }
    table.with(theme).with(Padding::new(1, 1, 0, 0));
    for column in &content.right {
        table.modify(Columns::one(*column), Alignment::right());
    }
    for text in table.to_string().lines() {
        let text = text.trim_end();
        let rule = !text.is_empty() && text.chars().all(|c| c == line);
        writeln!(out, "{}", if rule { look.paint(DIM, text) } else { text.to_owned() })?;
    }
    Ok(())
}

/// Returns the sum of the widths of columns with their padding.
fn total(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 2).sum()
}

/// The width of the longest word that is kept whole where there is no room for names: that of a time, and of a run's ID.
const WHOLE: usize = 24;
/// The width of the longest word that is kept whole even if other columns have to be left out for it, such as the name
/// of a case in a folder.
const MAX_WHOLE_WORD_COLUMNS: usize = 60;

/// Returns the width of the longest word of each column, of those of at most this width. A figure that is not broken is a word.
fn longest_words(table: &Table, most: usize) -> Vec<usize> {
    let words = |cell: &TableCell| {
        let words = cell.0.iter().flat_map(|(_, text)| text.split_whitespace()).map(width_of);
        words.filter(|width| *width <= most).max()
    };
    let longest = |column: usize| {
        let is_whole = table.has_whole_figures && table.right.contains(&column);
        let rows = table.rows.iter().chain(&table.foot).filter(|_| is_whole);
        let figures = rows.filter_map(|row| row.get(column)).map(width).filter(|width| *width <= most).max();
        let words = all_rows(table).filter_map(|row| words(row.get(column)?)).max();
        figures.max(words).unwrap_or(0)
    };
    (0..table.head.len()).map(longest).collect()
}

/// Reduces the widest widths until the table fits: first of the columns whose words stay whole, so that names and
/// times are not broken, and then of any.
fn fitted(mut widths: Vec<usize>, words: &[usize], room: usize) -> Vec<usize> {
    while total(&widths) > room {
        let spare = widths.iter_mut().zip(words).filter(|(width, word)| **width > 2.max(**word));
        if let Some((widest, _)) = spare.max() {
            *widest -= 1;
            continue;
        }
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > 2) else { break };
        *widest -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_not_broken_before_columns_are_left_out() {
        let mut table = Table::new(["", "score", "95 %", "k"]).right([1, 2, 3]).spare([3, 2]).whole_figures();
        table.row(["agent (before) *", "70.8 %", "[54.5, 87.2]", "4"]);
        let shown = |width: usize| {
            let mut out = Vec::new();
            write(&table, &Look { width, ..Look::PLAIN }, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(shown(60).contains("agent (before) *  70.8 %  [54.5, 87.2]  4"), "{}", shown(60));
        // The name is broken between its words, and the figures are whole.
        assert!(shown(40).contains("70.8 %  [54.5, 87.2]  4"), "{}", shown(40));
        let mut long = Table::new(["", "score", "95 %", "k"]).right([1, 2, 3]).spare([3, 2]).whole_figures();
        long.row(["interaction=approve", "70.8 %", "[54.5, 87.2]", "4"]);
        let mut out = Vec::new();
        write(&long, &Look { width: 40, ..Look::PLAIN }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(" 70.8 %  4") && text.ends_with("no room for: 95 %\n"), "{text}");
    }

    #[test]
    fn the_last_column_that_can_be_spared_stays_if_the_table_fits_without_the_others() {
        let mut table = Table::new(["", "score", "95 %", "errored", "k"]).right([1, 2, 3, 4]).spare([4, 3, 2]);
        table = table.whole_figures();
        table.row(["interaction=approve", "70.8 %", "[54.5, 87.2]", "0", "4"]);
        let shown = |width: usize| {
            let mut out = Vec::new();
            write(&table, &Look { width, ..Look::PLAIN }, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(shown(45).ends_with("no room for: k, errored\n"), "{}", shown(45));
        assert!(shown(50).ends_with("no room for: errored\n"), "{}", shown(50));
        assert!(shown(42).ends_with("no room for: 95 %\n"), "{}", shown(42));
    }

    #[test]
    fn columns_whose_words_stay_whole_are_reduced_first() {
        assert_eq!(fitted(vec![20, 30], &[20, 8], 40), [20, 16]);
        assert_eq!(fitted(vec![20, 30], &[20, 18], 40), [18, 18], "no column can spare a word");
        assert_eq!(fitted(vec![5, 5], &[5, 5], 40), [5, 5]);
        assert_eq!(fitted(vec![3, 3], &[3, 3], 1), [2, 2], "as narrow as it can be");
    }
}

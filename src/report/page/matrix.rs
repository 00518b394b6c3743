//! The cells of a run by case and column, laid out for a width, or as two tables.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Meaning, Table, TableCell};
use crate::ids::CellId;
use crate::report::cells::{Cell, Column, Figures};
use crate::report::escape::LOOK;
use crate::report::figures::{self, completion, passed, score};
use crate::report::grid;
use crate::report::text::{Look, harmless, natural, short_name, width_of, wrap};
use crate::verdict::Verdict;

/// The width in columns of the terminal above which names are wrapped even if there is room, so that figures stay near them.
const MAX_NAME_COLUMNS: usize = 60;
/// The width from which a table with one column shows figures beside each other, unless that breaks a name; in a narrower
/// one, they are below the verdict.
const FIGURES_BESIDE: usize = 60;
/// The maximum number of characters of a column's name in Markdown.
const MAX_COLUMN_CHARS: usize = 120;

/// The cells of a run by case and column.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// The columns, in the order of the plan.
    pub columns: Vec<Column>,
    /// The cells, in the order of the plan.
    pub cells: Arc<[Cell]>,
}

impl Matrix {
    /// Returns the ids of the cases: those that did not pass first, and `case-2` before `case-10`.
    pub fn cases(&self) -> Vec<&str> {
        let is_open = |cell: &Cell| !matches!(cell.verdict, Some(Verdict::Pass | Verdict::Skipped));
        let open: HashSet<&str> = self.cells.iter().filter(|it| is_open(it)).map(|cell| &*cell.id.case).collect();
        let mut seen = HashSet::new();
        let mut cases: Vec<&str> =
            self.cells.iter().map(|cell| &*cell.id.case).filter(|case| seen.insert(*case)).collect();
        cases.sort_by_cached_key(|case| (!open.contains(case), natural(case)));
        cases
    }

    /// Returns tables with the cases as rows that fit a width: as many columns side by side as fit, the rest in
    /// further tables with the same cases.
    pub fn tables(&self, look: &Look) -> Vec<Table> {
        if let [column] = self.columns.as_slice()
            && look.columns() >= FIGURES_BESIDE
        {
            let table = self.one_column(column, look);
            if !grid::breaks_names(&table, look.columns()) {
                return vec![table];
            }
        }
        let (mut tables, mut rest) = (Vec::new(), self.columns.as_slice());
        while !rest.is_empty() {
            let fits = |n: &usize| grid::natural_width(&self.side_by_side(&rest[..*n], look)) <= look.columns();
            // A table with more columns is wider, so the first one that does not fit ends the search.
            let take = (1..=rest.len()).take_while(fits).last().unwrap_or(1);
            let (now, later) = rest.split_at(take);
            tables.push(self.side_by_side(now, look));
            rest = later;
        }
        tables
    }

    fn one_column(&self, column: &Column, look: &Look) -> Table {
        let head = ["case".to_owned(), name(&column.id.to_string())];
        let mut table = Table::new(head.into_iter().chain(["score", "time", "cost", "tokens"].map(str::to_owned)));
        table.right.extend(2..6);
        let cells: HashMap<&str, &Cell> = self.cells.iter().map(|cell| (&*cell.id.case, cell)).collect();
        for cell in self.cases().into_iter().filter_map(|case| cells.get(case)) {
            let [time, cost, tokens] = figures::taken(&cell.figures, look);
            let figures = [score(cell.score, look), time, cost, tokens].map(TableCell::from);
            table.row([name(&cell.id.case).into(), verdict(cell, "")].into_iter().chain(figures));
        }
        let [time, cost, tokens] = figures::taken(&column.figures, look);
        let blank = String::new;
        table.foot(["all".into(), passed(column), score(column.score, look), time, cost, tokens]);
        if column.interval.is_some() {
            let interval = figures::interval(column.interval, look);
            table.foot(["95 % interval".into(), interval, blank(), blank(), blank(), blank()]);
        }
        if column.score_with_errors.is_some() {
            let score = score(column.score_with_errors, look);
            table.foot(["errors as failures".into(), blank(), score, blank(), blank(), blank()]);
        }
        table.foot(["completed".into(), completion(column, look), blank(), blank(), blank(), blank()]);
        table
    }

    fn side_by_side(&self, columns: &[Column], look: &Look) -> Table {
        let heads = columns.iter().map(|column| name(&column.id.to_string()));
        let mut table = Table::new(std::iter::once("case".to_owned()).chain(heads));
        let shown = |cell: &Cell| with_figures(in_table(cell), &cell.figures, look);
        table.rows = self.rows(columns, |case| name(case).into(), shown);
        let mut foot = |name: &str, of: &dyn Fn(&Column) -> TableCell| {
            table.foot(std::iter::once(name.into()).chain(columns.iter().map(of)));
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
        table
    }

    /// Returns the table with a row of figures for each column.
    pub fn columns_table(&self) -> Table {
        columns_table(&self.columns, ["harness / model"], |_, column| [named(&column.id.to_string())], false)
    }

    /// Returns the table with a row of verdicts for each case.
    pub fn cases_table(&self) -> Table {
        let mut table = Table::new(["case"]).right(1..=self.columns.len());
        table.head.extend(self.columns.iter().map(|column| named(&column.id.to_string())));
        table.rows = self.rows(&self.columns, |case| TableCell::new(Meaning::Name, case), in_table);
        table
    }

    /// Returns a row for each case: its name, and its cell in each column.
    fn rows(
        &self,
        columns: &[Column],
        name: impl Fn(&str) -> TableCell,
        shown: impl Fn(&Cell) -> TableCell,
    ) -> Vec<Vec<TableCell>> {
        let cells: HashMap<&CellId, &Cell> = self.cells.iter().map(|cell| (&cell.id, cell)).collect();
        let row = |case: &str| {
            let id = |column: &Column| CellId::new(case, &column.id.harness, &column.id.arm);
            let of = |column: &Column| cells.get(&id(column)).map(|cell| shown(cell)).unwrap_or_default();
            std::iter::once(name(case)).chain(columns.iter().map(of)).collect()
        };
        self.cases().into_iter().map(row).collect()
    }
}

/// Returns a table with one row for each column of the run: cells that name the column, then its figures.
pub fn columns_table<const N: usize>(
    columns: &[Column],
    heads: [&str; N],
    names: impl Fn(usize, &Column) -> [TableCell; N],
    errored: bool,
) -> Table {
    let errors = columns.iter().any(|column| column.score_with_errors.is_some());
    let shown = |wanted: bool, head: &'static str| wanted.then_some(head);
    let figures = [Some("cases passed"), Some("score"), Some("95 % interval"), shown(errors, "errors as failures")];
    let more = [Some("completed"), shown(errored, "errored"), Some("cost"), Some("tokens"), Some("median time")];
    let mut table = Table::new(heads.into_iter().chain(figures.into_iter().chain(more).flatten()));
    table.right.extend(N..table.head.len());
    for (number, column) in columns.iter().enumerate() {
        let [time, cost, tokens] = figures::taken(&column.figures, &LOOK);
        let with_errors = score(column.score_with_errors.or(column.score), &LOOK);
        let cells = [
            Some(format!("{} of {}", column.cases_passed, column.cases)),
            Some(score(column.score, &LOOK)),
            Some(figures::interval(column.interval, &LOOK)),
            errors.then_some(with_errors),
            Some(completion(column, &LOOK)),
            errored.then(|| column.tally.errored.to_string()),
            Some(cost),
            Some(tokens),
            Some(time),
        ];
        table.row(names(number, column).into_iter().chain(cells.into_iter().flatten().map(TableCell::from)));
    }
    table
}

/// Adds time, cost and tokens, as far as known, as a second line.
fn with_figures(cell: TableCell, figures: &Figures, look: &Look) -> TableCell {
    let known = figures::taken(figures, look).into_iter().filter(|figure| figure != look.unknown());
    let known = known.collect::<Vec<_>>().join(" ");
    if known.is_empty() { cell } else { cell.below(Meaning::Quiet, known) }
}

/// Returns the full name, wrapped: two models may differ only at the end.
fn name(name: &str) -> String {
    let clean = harmless(name).replace('\n', " ");
    if width_of(&clean) <= MAX_NAME_COLUMNS { clean } else { wrap(&clean, MAX_NAME_COLUMNS).join("\n") }
}

fn named(name: &str) -> TableCell {
    TableCell::new(Meaning::Name, short_name(name, MAX_COLUMN_CHARS, &LOOK))
}

fn in_table(cell: &Cell) -> TableCell {
    verdict(cell, &cell.score.map(|score| format!(" {}", crate::rounding::share(score))).unwrap_or_default())
}

fn verdict(cell: &Cell, score: &str) -> TableCell {
    let passed =
        if cell.tally.trials == 0 { String::new() } else { format!(" {}/{}", cell.tally.passed, cell.tally.trials) };
    let word = cell.verdict.map_or("not run", Verdict::word);
    let quarantined = if cell.quarantine.is_some() { " in quarantine" } else { "" };
    TableCell::new(cell.verdict.map_or(Meaning::Quiet, Meaning::Verdict), format!("{word}{passed}{score}{quarantined}"))
}

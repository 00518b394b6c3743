//! The page: what a report shows, as blocks with a meaning. Reports build it once; each format renders it.

use crate::ids::TrialId;
use crate::run::shard::Shard;
use crate::statistics::gates::GateVerdict;
use crate::verdict::Verdict;

pub mod html;
pub mod markdown;
pub mod matrix;
pub mod terminal;

pub use matrix::Matrix;

/// A report for people.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The result of a run. The format decides where to show it.
    pub standing: Option<Standing>,
    /// The parts, in order.
    pub blocks: Vec<Block>,
    /// The place of the complete results, for formats that have to leave something out.
    pub everything: String,
}

/// The meaning of a text: a terminal shows it as a colour, HTML as a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Meaning {
    /// No special meaning.
    #[default]
    Plain,
    /// A title.
    Strong,
    /// An identifier: of a case, a harness, a model.
    Name,
    /// Less important text.
    Quiet,
    /// A good result.
    Good,
    /// A bad result.
    Bad,
    /// An open result.
    Open,
    /// The verdict on a trial or a cell.
    Verdict(Verdict),
}

impl From<GateVerdict> for Meaning {
    fn from(verdict: GateVerdict) -> Self {
        match verdict {
            GateVerdict::Pass => Self::Good,
            GateVerdict::Fail => Self::Bad,
            GateVerdict::Inconclusive => Self::Open,
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The verdict, which sets the exit code.
    pub verdict: GateVerdict,
    /// The verdict in words.
    pub title: String,
    /// True if the run compares an arm with itself: its verdict says nothing about the trials, so no sign of success is shown.
    pub compares_itself: bool,
    /// The run's id.
    pub run: String,
    /// The run's label.
    pub label: Option<String>,
    /// The part of the plan that the run plays, if there are several.
    pub shard: Option<Shard>,
    /// The time at which the run began.
    pub started: String,
    /// The numbers of cases, columns and trials.
    pub size: [String; 3],
    /// The deciding results, one line each.
    pub decisions: Vec<(GateVerdict, String)>,
    /// The numbers of trials by verdict.
    pub counts: Vec<(Meaning, String)>,
    /// The run folder.
    pub folder: String,
    /// All problems, one line each, where they are many: the verdict in a word, and the case with its column.
    pub open: Vec<(Meaning, String, String)>,
}

/// A part of a page.
#[derive(Debug, Clone)]
pub enum Block {
    Verdict(Meaning, String),
    Heading(String),
    /// Running text.
    Text(String),
    /// Separate lines, such as notes.
    Lines(Vec<String>),
    Table(Table),
    /// The cells of a run by case and column, with the columns' figures.
    Matrix(Matrix),
    /// The entries that need attention: trials, snapshots, cases.
    Entries {
        title: String,
        entries: Vec<Entry>,
        /// A text below the entries: the next step for the reader, or the place of further entries.
        after: Option<String>,
    },
    /// Details that are collapsed if the format supports it.
    Folded(String, Vec<Block>),
}

impl Block {
    /// Returns true if there is nothing to show in the block.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Verdict(..) | Block::Heading(_) | Block::Text(_) => false,
            Block::Lines(lines) => lines.is_empty(),
            Block::Table(table) => table.rows.is_empty(),
            Block::Matrix(matrix) => matrix.cells.is_empty(),
            Block::Entries { entries, .. } => entries.is_empty(),
            Block::Folded(_, blocks) => blocks.iter().all(Block::is_empty),
        }
    }
}

/// The content of a table's cell: lines, each with one meaning.
#[derive(Debug, Clone, Default)]
pub struct TableCell(pub Vec<(Meaning, String)>);

impl TableCell {
    /// Makes a cell with one line.
    pub fn new(meaning: Meaning, text: impl Into<String>) -> Self {
        Self(vec![(meaning, text.into())])
    }

    /// Adds a further line below.
    #[must_use]
    pub fn below(mut self, meaning: Meaning, text: impl Into<String>) -> Self {
        self.0.push((meaning, text.into()));
        self
    }
}

impl<S: Into<String>> From<S> for TableCell {
    fn from(text: S) -> Self {
        Self::new(Meaning::Plain, text)
    }
}

/// A table: a header, rows, and a footer.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// The headings.
    pub head: Vec<TableCell>,
    pub rows: Vec<Vec<TableCell>>,
    /// The rows of the footer.
    pub foot: Vec<Vec<TableCell>>,
    /// The columns with figures, which are right-aligned.
    pub right: Vec<usize>,
    /// The columns that a narrow terminal leaves out before it breaks a name, in the order in which they are tried.
    pub spare: Vec<usize>,
    /// True if a figure with spaces in it, such as `70.8 %`, is not broken over lines.
    pub has_whole_figures: bool,
}

impl Table {
    /// Makes a table with these headings.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(|cell| TableCell::new(Meaning::Strong, cell)).collect(), ..Self::default() }
    }

    /// Aligns these columns to the right, because they hold figures.
    #[must_use]
    pub fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right.extend(columns);
        self
    }

    /// Lets a narrow terminal leave these columns out, tried in this order.
    #[must_use]
    pub fn spare(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.spare.extend(columns);
        self
    }

    /// Keeps figures with spaces in them on one line, in the columns that are aligned to the right.
    #[must_use]
    pub fn whole_figures(mut self) -> Self {
        self.has_whole_figures = true;
        self
    }

    #[must_use]
    pub fn without(mut self, column: usize) -> Self {
        let rows = self.rows.iter_mut().chain(&mut self.foot).chain([&mut self.head]);
        rows.filter(|row| column < row.len()).for_each(|row| drop(row.remove(column)));
        for columns in [&mut self.right, &mut self.spare] {
            columns.retain(|other| *other != column);
            columns.iter_mut().filter(|other| **other > column).for_each(|other| *other -= 1);
        }
        self
    }

    /// Adds a row.
    pub fn row<C: Into<TableCell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Adds a row to the footer.
    pub fn foot<C: Into<TableCell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.foot.push(cells.into_iter().map(Into::into).collect());
    }
}

/// An entry that needs attention, with the reasons.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The meaning of `word`.
    pub meaning: Meaning,
    /// The state in a word, such as `FAIL`.
    pub word: String,
    /// The subject of the entry: the case, the column, the trials.
    pub about: Vec<String>,
    /// The trial that the entry is about.
    pub trial: Option<TrialId>,
    /// The reasons, the deciding one first.
    pub details: Vec<Detail>,
    /// Commands and paths for the reader to copy.
    pub copies: Vec<(&'static str, String)>,
}

impl Entry {
    /// Adds a reason in one text.
    pub fn text(&mut self, text: impl Into<String>) {
        self.details.push(Detail { text: text.into(), ..Detail::default() });
    }
}

/// A reason.
#[derive(Debug, Clone, Default)]
pub struct Detail {
    /// The outcome and its subject, such as `failed` and `tests (command) [gate]`.
    pub head: Option<(Meaning, &'static str, String)>,
    /// The reason.
    pub text: String,
    /// The lines that show it: events of a trace, or lines of a difference.
    pub lines: Vec<(Meaning, String)>,
}

impl Detail {
    /// Returns the reason on one line, without the lines that show it.
    pub fn line(&self) -> String {
        match &self.head {
            Some((_, word, of)) if self.text.is_empty() => format!("{word} {of}"),
            Some((_, word, of)) => format!("{word} {of}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

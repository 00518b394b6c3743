//! The output of `evals list`: cases, harnesses, graders, policies and runs, as a table or as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::Summary;
use super::grid::{Grid, GridCell};
use super::table::counts;
use super::text::{Look, one_line};

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// A table, for people.
    Table(Look),
    /// A JSON array of the rows.
    Json,
}

/// A case in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CaseRow {
    /// Its id.
    pub id: String,
    /// Its file.
    pub path: String,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `capability` or `regression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// The harnesses that the case names.
    pub harnesses: Vec<String>,
    /// The number of trials of each cell.
    pub trials: u32,
    /// The names of its graders.
    pub graders: Vec<String>,
}

/// A harness in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HarnessRow {
    /// Its name.
    pub name: String,
    /// The protocol it speaks.
    pub adapter: String,
    /// The origin of its manifest.
    pub origin: String,
    /// How much of a run with the harness is captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Its id in the protocol's own registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_id: Option<String>,
    /// The capabilities, as named in `requires`.
    pub capabilities: Vec<String>,
    /// Whether the program was found. Absent if it was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<bool>,
    /// The last version that was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// How to install it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A named grader or policy in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct NamedRow {
    /// Its name.
    pub name: String,
    /// The origin.
    pub origin: String,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RunRow {
    /// Its id.
    pub run: String,
    /// The run's label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the run began.
    pub started: String,
    /// Its folder.
    pub path: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The number of its trials by verdict. Absent if the results could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The run that it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<String>,
}

/// Lists cases.
///
/// # Errors
/// The output could not be written.
pub fn cases(rows: &[CaseRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(rows, form, out, ["case", "kind", "tags", "trials", "about"], |row, look| {
        let about = row.description.as_ref().unwrap_or(&row.path);
        [
            word(&row.id, look),
            row.kind.as_deref().map_or_else(|| look.unknown().to_owned(), |kind| word(kind, look)),
            word(&row.tags.join(" "), look),
            row.trials.to_string(),
            word(about, look),
        ]
    })
}

/// Lists harnesses.
///
/// # Errors
/// The output could not be written.
pub fn harnesses(rows: &[HarnessRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(
        rows,
        form,
        out,
        ["harness", "adapter", "tier", "installed", "verified", "can", "from", "about"],
        |row, look| {
            let unknown = || look.unknown().to_owned();
            [
                word(&row.name, look),
                word(&row.adapter, look),
                row.tier.as_deref().map_or_else(unknown, |tier| word(tier, look)),
                row.installed.map_or_else(unknown, |found| if found { "yes" } else { "no" }.to_owned()),
                row.verified.as_deref().map_or_else(unknown, |version| word(version, look)),
                word(&row.capabilities.join(" "), look),
                word(&row.origin, look),
                word(row.description.as_deref().unwrap_or_default(), look),
            ]
        },
    )
}

/// Lists harnesses as a Markdown table without details of the local machine.
///
/// # Errors
/// The output could not be written.
pub fn harnesses_in_markdown(rows: &[HarnessRow], out: &mut dyn Write) -> io::Result<()> {
    let plain = |text: Option<&str>| text.map_or_else(String::new, |text| text.replace('|', "\\|"));
    let code = |text: Option<&str>| text.map_or_else(String::new, |text| format!("`{}`", text.replace('|', "\\|")));
    writeln!(out, "| id | harness | tier | verified | install | about |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    for row in rows {
        let cells = [
            code(row.registry_id.as_deref()),
            code(Some(&row.name)),
            plain(row.tier.as_deref()),
            plain(row.verified.as_deref()),
            code(row.install.as_deref()),
            plain(row.description.as_deref()),
        ];
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

/// Lists named items with a file: graders or policies. `what` is the heading.
///
/// # Errors
/// The output could not be written.
pub fn named(what: &str, rows: &[NamedRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(rows, form, out, [what, "from", "about"], |row, look| {
        [word(&row.name, look), word(&row.origin, look), word(row.description.as_deref().unwrap_or_default(), look)]
    })
}

/// Lists runs.
///
/// # Errors
/// The output could not be written.
pub fn runs(rows: &[RunRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(rows, form, out, ["run", "label", "started", "columns", "trials"], |row, look| {
        let trials =
            row.summary.as_ref().map_or_else(|| look.unknown().to_owned(), |summary| counts(summary, &plain(look)));
        let from = row.derived_from.as_ref().map(|from| format!(" (from {from})")).unwrap_or_default();
        [
            word(&format!("{}{from}", row.run), look),
            word(row.label.as_deref().unwrap_or_default(), look),
            word(&row.started, look),
            word(&row.columns.join(", "), look),
            trials,
        ]
    })
}

/// Returns a look without colours: the counts of a row have one colour, like every line of a cell.
fn plain(look: &Look) -> Look {
    Look { colour: false, ..*look }
}

/// Returns the text of a cell: one sanitised line of limited length.
fn word(text: &str, look: &Look) -> String {
    one_line(text, 200, look)
}

fn write<Row: Serialize, const N: usize>(
    rows: &[Row],
    form: ListForm,
    out: &mut dyn Write,
    head: [&str; N],
    cells: impl Fn(&Row, &Look) -> [String; N],
) -> io::Result<()> {
    let ListForm::Table(look) = form else {
        serde_json::to_writer_pretty(&mut *out, rows)?;
        return out.write_all(b"\n");
    };
    let mut grid = Grid::new(head);
    for row in rows {
        grid.row(cells(row, &look).map(GridCell::from).into());
    }
    grid.write(&look, out)
}

//! The output of `evals list`: cases, harnesses, graders, policies and runs, as a table or as JSON.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::Summary;
use super::grid;
use super::page::{Meaning, Table, TableCell, markdown};
use super::text::{Look, one_line, width_of};
use crate::paths;
use crate::run::shard::Shard;

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListForm {
    /// A table, for people.
    Table(Look),
    /// A JSON array of the rows.
    Json,
}

/// A case in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseRow {
    /// The id of the case.
    pub id: String,
    /// The case file.
    pub path: String,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `capability` or `regression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The tags of the case.
    pub tags: Vec<String>,
    /// The harnesses that the case names.
    pub harnesses: Vec<String>,
    /// The number of trials of each cell.
    pub trials: u32,
    /// The names of its graders.
    pub graders: Vec<String>,
}

/// A harness in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HarnessRow {
    /// The name of the harness.
    pub name: String,
    /// The protocol that the harness speaks.
    pub adapter: String,
    /// The origin of its manifest.
    pub origin: String,
    /// The part of a run with the harness that is captured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The id of the harness in the protocol's own registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry_id: Option<String>,
    /// The capabilities, as named in `requires`.
    pub capabilities: Vec<String>,
    /// True if the program was found. Absent if it was not searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<bool>,
    /// The last version that was verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// The command or instructions for installing the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A named grader or policy in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedRow {
    /// The name of the grader or policy.
    pub name: String,
    /// `built in`, or the path of the file.
    pub origin: String,
    /// A description in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRow {
    /// The id of the run.
    pub run: String,
    /// The run's label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The part of the plan that the run played. Absent if it played all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The time at which the run began.
    pub started: String,
    /// The folder of the run.
    pub path: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The number of its trials by verdict. Absent if the results could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// True if an engine is running trials of the run. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub going_on: bool,
    /// True if the run did not reach its end and no engine is using it. Absent otherwise, and in runs of older versions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lacks_end: bool,
    /// The run that this run was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_from: Option<String>,
}

/// Lists cases.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn cases(rows: &[CaseRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(rows, form, out, ["case", "kind", "tags", "trials", "about"], [3, 1, 2, 4], |row| {
        let path = || paths::shown(Path::new(&row.path)).display().to_string();
        let about = row.description.clone().unwrap_or_else(path);
        [Some(row.id.clone()), row.kind.clone(), Some(row.tags.join(" ")), Some(row.trials.to_string()), Some(about)]
    })
}

/// Lists harnesses.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn harnesses(rows: &[HarnessRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    let ListForm::Table(look) = form else { return json(rows, out) };
    let installed = |row: &HarnessRow| row.installed.map(|found| if found { "yes" } else { "no" }.to_owned());
    // No name is broken: columns that a narrow terminal has no room for are left out, the last of this list first.
    type Value<'a> = &'a dyn Fn(&HarnessRow) -> Option<String>;
    let all: [(&str, Value<'_>); 4] = [
        ("harness", &|row| Some(row.name.clone())),
        ("installed", &installed),
        ("adapter", &|row| Some(row.adapter.clone())),
        ("verified", &|row| row.verified.clone()),
    ];
    let wide = |(head, value): &(&str, Value<'_>)| {
        let values = rows.iter().map(|row| value(row).as_deref().map_or(1, width_of));
        2 + values.max().unwrap_or_default().max(head.len())
    };
    let mut room = look.columns();
    let kept = all.iter().take_while(|column| room.checked_sub(wide(column)).map(|left| room = left).is_some()).count();
    // The order of the table: the adapter is before what was found out about this machine.
    let mut columns: Vec<(&str, Value<'_>)> = all[..kept.max(1)].to_vec();
    columns.sort_by_key(|(head, _)| *head == "installed" || *head == "verified");
    // Each harness takes one line: the description is cut to what the other columns leave.
    let room = room.saturating_sub(2);
    let about = |row: &HarnessRow| Some(one_line(row.description.as_deref().unwrap_or_default(), room, &look));
    if kept == all.len() && room >= MIN_DESCRIPTION_COLUMNS {
        columns.push(("about", &about));
    }
    let headed = Table::new(columns.iter().map(|(head, _)| *head));
    table(rows, look, out, headed, |row| columns.iter().map(|(_, value)| value(row)).collect())
}

/// The narrowest column of descriptions.
const MIN_DESCRIPTION_COLUMNS: usize = 12;

/// Lists harnesses as a Markdown table without details of the local machine.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn harnesses_in_markdown(rows: &[HarnessRow], out: &mut dyn Write) -> io::Result<()> {
    let plain = |text: Option<&str>| TableCell::from(text.unwrap_or_default());
    let code = |text: Option<&str>| TableCell::new(Meaning::Name, text.unwrap_or_default());
    let mut table = Table::new(["id", "harness", "tier", "verified", "install", "about"]);
    for row in rows {
        table.row([
            code(row.registry_id.as_deref()),
            code(Some(&row.name)),
            plain(row.tier.as_deref()),
            plain(row.verified.as_deref()),
            code(row.install.as_deref()),
            plain(row.description.as_deref()),
        ]);
    }
    out.write_all(markdown::table(&table).as_bytes())
}

/// Lists named items with a file: graders or policies. `what` is the heading.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn named(what: &str, rows: &[NamedRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(rows, form, out, [what, "from", "about"], [1], |row| {
        [row.name.clone(), row.origin.clone(), row.description.clone().unwrap_or_default()].map(Some)
    })
}

/// Lists runs.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn runs(rows: &[RunRow], form: ListForm, out: &mut dyn Write) -> io::Result<()> {
    write(rows, form, out, ["run", "label", "started", "columns", "trials"], [2, 1], |row| {
        let counts = |summary: &Summary| {
            let (so_far, of) = match row.going_on {
                true => (format!("{}: ", summary.state_so_far()), Summary { not_run: 0, ..*summary }),
                // Trials that were not run show it, too.
                false if row.lacks_end && summary.not_run == 0 => ("not ended: ".to_owned(), *summary),
                false => (String::new(), *summary),
            };
            format!("{so_far}{}", of.parts().into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(", "))
        };
        let from = row.derived_from.as_ref().map(|from| format!(" (from {from})")).unwrap_or_default();
        let shard = row.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
        [
            Some(format!("{}{from}{shard}", row.run)),
            Some(row.label.clone().unwrap_or_default()),
            Some(row.started.clone()),
            Some(row.columns.join(", ")),
            row.summary.as_ref().map(counts),
        ]
    })
}

/// Writes rows in one of the forms. In the table, each cell is one sanitised line of limited length, or the sign for
/// an unknown value; `spare` has the columns that a narrow terminal leaves out.
fn write<Row: Serialize, const N: usize>(
    rows: &[Row],
    form: ListForm,
    out: &mut dyn Write,
    head: [&str; N],
    spare: impl IntoIterator<Item = usize>,
    cells: impl Fn(&Row) -> [Option<String>; N],
) -> io::Result<()> {
    match form {
        ListForm::Json => json(rows, out),
        ListForm::Table(look) => table(rows, look, out, Table::new(head).spare(spare), |row| cells(row).into()),
    }
}

fn json<Row: Serialize>(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, rows)?;
    out.write_all(b"\n")
}

fn table<Row>(
    rows: &[Row],
    look: Look,
    out: &mut dyn Write,
    mut table: Table,
    cells: impl Fn(&Row) -> Vec<Option<String>>,
) -> io::Result<()> {
    let shown = |text: Option<String>| text.map_or_else(|| look.unknown().to_owned(), |it| one_line(&it, 200, &look));
    rows.iter().for_each(|row| table.row(cells(row).into_iter().map(shown)));
    grid::write(&table, &look, out)
}

//! The report for a `BENCHMARK.md`: a block of scores with their intervals between two marks. The text outside
//! the block is not changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::cells::Column;
use super::escape::{LOOK, code, inline};
use super::page::matrix::columns_table;
use super::page::{Meaning, TableCell, markdown};
use super::text::{plural, short_name};
use super::{Report, stored};
use crate::ids::TrialId;

/// The default file.
pub const FILE: &str = "BENCHMARK.md";

/// The maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 120;
/// The maximum number of traces per column that are read to identify the agent.
const ASKED: usize = 20;

/// The reason why a block could not be written into a file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// The file has no block for the run.
    #[error("the file has no block for this run{also}; add these two lines where the scores should go:\n{begin}\n{end}", begin = begin(.name.as_deref()), end = end(.name.as_deref()), also = also(.others))]
    Missing {
        /// The name of the block that would be used.
        name: Option<String>,
        /// The names of the existing blocks.
        others: Vec<String>,
    },
    /// A block has a beginning but no end, or an end but no beginning.
    #[error("line {line}: `{mark}` {wrong}; each block begins with a line `{begin}` and ends with `{end}`", begin = begin(.name.as_deref()), end = end(.name.as_deref()))]
    Damaged {
        /// The line of the mark, from 1.
        line: usize,
        /// The text of the mark.
        mark: String,
        wrong: &'static str,
        /// The block's name.
        name: Option<String>,
    },
}

fn also(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    format!(" (there are blocks for runs with the label {})", names.join(", "))
}

/// Returns the line before a block; a named block is for runs with that label.
pub fn begin(name: Option<&str>) -> String {
    name.map_or_else(|| "<!-- evals:benchmark -->".to_owned(), |name| format!("<!-- evals:benchmark {name} -->"))
}

/// Returns the marker line that ends a block.
pub fn end(name: Option<&str>) -> String {
    name.map_or_else(|| "<!-- /evals:benchmark -->".to_owned(), |name| format!("<!-- /evals:benchmark {name} -->"))
}

/// Parses a mark: whether it begins a block, and the name of the block.
fn mark(line: &str) -> Option<(bool, Option<String>)> {
    let inner = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let (begins, inner) = inner.strip_prefix('/').map_or((true, inner), |rest| (false, rest));
    let name = inner.strip_prefix("evals:benchmark")?;
    if !name.is_empty() && !name.starts_with(char::is_whitespace) {
        return None;
    }
    Some((begins, Some(name.trim().to_owned()).filter(|name| !name.is_empty())))
}

/// Returns the text of a file with the block for a run of this label replaced: the block of that name, else the
/// block without a name. The text outside the block is unchanged, byte for byte.
///
/// # Errors
/// Returns an error if the marks are missing, or do not match.
pub fn replaced(text: &str, label: Option<&str>, block: &str) -> Result<String, MarkError> {
    let place = place(text, label)?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = block.trim_end().replace('\n', newline);
    let (before, after) = (text.get(..place.0).unwrap_or_default(), text.get(place.1..).unwrap_or_default());
    Ok(format!("{before}{newline}{block}{newline}{newline}{after}"))
}

/// Returns the range from the end of the line that begins the block to the start of the line that ends it.
fn place(text: &str, label: Option<&str>) -> Result<(usize, usize), MarkError> {
    let mut open: Option<(usize, usize, String, Option<String>)> = None;
    let mut blocks: Vec<(Option<String>, (usize, usize))> = Vec::new();
    let mut at = 0;
    let damaged = |line: usize, mark: &str, wrong, name: &Option<String>| MarkError::Damaged {
        line,
        mark: mark.trim().to_owned(),
        wrong,
        name: name.clone(),
    };
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let start = at;
        at += line.len();
        match (mark(line), &open) {
            (None, _) => {}
            (Some((true, name)), None) => {
                if blocks.iter().any(|(known, _)| *known == name) {
                    return Err(damaged(number, line, "begins a second block of that name", &name));
                }
                open = Some((at, number, line.to_owned(), name));
            }
            (Some((true, name)), Some(_)) => {
                return Err(damaged(number, line, "is within another block", &name));
            }
            (Some((false, name)), Some((begun, _, _, of))) if *of == name => {
                blocks.push((name, (*begun, start)));
                open = None;
            }
            (Some((false, name)), _) => return Err(damaged(number, line, "ends no block that was begun", &name)),
        }
    }
    if let Some((_, number, line, name)) = open {
        return Err(damaged(number, &line, "begins a block that does not end", &name));
    }
    let of = |name: Option<&str>| blocks.iter().find(|(known, _)| known.as_deref() == name).map(|(_, place)| *place);
    of(label).or_else(|| of(None)).ok_or_else(|| MarkError::Missing {
        // A label that would end the comment cannot be the name of a block.
        name: label.filter(|label| !label.contains("--") && !label.contains('\n')).map(str::to_owned),
        others: blocks.into_iter().filter_map(|(name, _)| name).collect(),
    })
}

/// Returns a new file with an empty block.
pub fn fresh_file() -> String {
    format!("# Benchmark\n\n{}\n{}\n", begin(None), end(None))
}

/// Returns the text between the marks.
pub fn block(report: &Report) -> String {
    let run = &report.run;
    let mut text = String::new();
    let label = run.label.as_ref().map(|label| format!(" ({})", inline(label, MAX_NAME_CHARS))).unwrap_or_default();
    let _ = writeln!(
        text,
        "Suite {}, of {}: digest `{}`. Run {}{label} of {}, with evals {}: {}, {} a case.\n",
        code(&suite(report), MAX_NAME_CHARS),
        plural(run.cases.len(), "case"),
        digest(report),
        code(&run.run, MAX_NAME_CHARS),
        inline(run.started.get(..10).unwrap_or(&run.started), 40),
        inline(&run.evals, 40),
        plural(report.summary.trials(), "trial"),
        trials_a_case(report),
    );
    let facts = report.columns.iter().enumerate().map(|(number, column)| Facts::of(report, number, column));
    let facts: Vec<Facts> = facts.collect();
    let heads = ["harness", "agent", "model"];
    let names = |number: usize, column: &Column| {
        let harness = TableCell::new(Meaning::Name, short_name(&column.id.harness, MAX_NAME_CHARS, &LOOK));
        let harness = match &report.run.experiment {
            Some(_) => harness.below(Meaning::Name, short_name(&column.id.arm, MAX_NAME_CHARS, &LOOK)),
            None => harness,
        };
        let [agent, model] = facts.get(number).map_or_else(Default::default, |facts| [agent(facts), model(facts)]);
        [harness, agent, model]
    };
    text.push_str(&markdown::table(&columns_table(&report.columns, heads, names, true)));
    let notes = notes(report, &facts);
    if !notes.is_empty() {
        let notes: Vec<String> = notes.iter().map(|note| format!("- {}", inline(note, 500))).collect();
        let _ = writeln!(text, "\n{}", notes.join("\n"));
    }
    text
}

fn agent(facts: &Facts) -> TableCell {
    facts.agent.as_ref().map_or_else(|| "–".into(), |agent| TableCell::new(Meaning::Name, agent))
}

/// Returns the model that answered; a scripted model is marked as such.
fn model(facts: &Facts) -> TableCell {
    let scripted = facts.scripted_model || facts.scripted_agent;
    match facts.model.as_ref().map(|model| short_name(model, MAX_NAME_CHARS, &LOOK)) {
        Some(model) if scripted => TableCell::from("a script, as").below(Meaning::Name, model),
        Some(model) => TableCell::new(Meaning::Name, model),
        None if scripted => "a script".into(),
        None => "–".into(),
    }
}

/// Facts from the traces of a column.
struct Facts {
    name: String,
    agent: Option<String>,
    model: Option<String>,
    /// True if a script answered instead of the model.
    scripted_model: bool,
    /// True if the agent itself plays a script.
    scripted_agent: bool,
}

impl Facts {
    fn of(report: &Report, number: usize, column: &Column) -> Self {
        let here = |it: &TrialId| it.harness == column.id.harness && it.arm == column.id.arm;
        let trials = report.trials.iter().filter_map(|trial| report.id_of(trial).filter(here));
        let folders: Vec<PathBuf> = trials.filter_map(|trial| report.trial_folder(&trial)).collect();
        let agents = folders.iter().filter_map(|folder| stored::agent(folder)).take(ASKED);
        let agents: BTreeSet<String> = agents
            .map(|agent| match agent.version {
                Some(version) => format!("{} {version}", agent.name),
                None => agent.name,
            })
            .filter(|agent| !agent.is_empty())
            .collect();
        let models = report.models.get(number).cloned().unwrap_or_default();
        let manifest = report.run.harnesses.iter().find(|harness| harness.name == column.id.harness);
        Self {
            name: column.id.to_string(),
            agent: listed(agents.iter().map(String::as_str)),
            model: listed(models.effective.iter().map(String::as_str)).or(models.requested),
            scripted_model: folders.iter().any(|folder| stored::model_was_scripted(folder)),
            scripted_agent: manifest.is_some_and(|it| it.manifest.plays_a_script()),
        }
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn notes(report: &Report, facts: &[Facts]) -> Vec<String> {
    let named =
        |holds: fn(&Facts) -> bool| listed(facts.iter().filter(|facts| holds(facts)).map(|facts| facts.name.as_str()));
    let mut notes = Vec::new();
    if let Some(names) = named(|facts| facts.scripted_agent) {
        notes
            .push(format!("{names}: the agent plays a script beside each case, so the figures do not measure a model"));
    }
    if let Some(names) = named(|facts| facts.scripted_model && !facts.scripted_agent) {
        notes.push(format!(
            "{names}: a script answered instead of the model, so the figures measure the agent's program and not a \
             model"
        ));
    }
    notes.extend(report.notes.iter().cloned());
    notes
}

/// Returns the folder that contains all cases: relative to the working directory if it is inside it, else its
/// last name.
fn suite(report: &Report) -> String {
    let mut folder: Option<PathBuf> = None;
    for case in &report.run.cases {
        let own = case.path.parent().unwrap_or(Path::new(""));
        folder = Some(match folder {
            None => own.to_owned(),
            Some(known) => known.ancestors().find(|folder| own.starts_with(folder)).unwrap_or(Path::new("")).to_owned(),
        });
    }
    let folder = folder.unwrap_or_default();
    let here = std::env::current_dir().ok();
    let below =
        here.and_then(|here| folder.strip_prefix(here).map(Path::to_owned).ok()).filter(|it| *it != Path::new(""));
    let shown = below.unwrap_or_else(|| folder.file_name().map(PathBuf::from).unwrap_or_default());
    shown.to_string_lossy().into_owned()
}

/// Returns a digest of the cases as they were, so that a reader can see whether two tables are of the same
/// suite.
fn digest(report: &Report) -> String {
    let mut cases: Vec<(&str, &str)> = report.run.cases.iter().map(|case| (&*case.id, &*case.digest)).collect();
    cases.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for (id, digest) in cases {
        hasher.update(&(id.len() as u64).to_le_bytes()).update(id.as_bytes());
        hasher.update(&(digest.len() as u64).to_le_bytes()).update(digest.as_bytes());
    }
    hasher.finalize().to_hex().chars().take(12).collect()
}

fn trials_a_case(report: &Report) -> String {
    let trials: BTreeSet<usize> =
        report.cells.iter().map(|cell| cell.tally.trials).filter(|trials| *trials > 0).collect();
    match (trials.first(), trials.last()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (Some(one), _) => one.to_string(),
        _ => "none".to_owned(),
    }
}

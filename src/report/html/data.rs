//! Data blocks: JSON in the document that is never run, with the results of all trials.

use std::io::{self, Write};

use serde::Serialize;

use super::places::Places;
use crate::ids::column_name;
use crate::report::{Report, commands, decisions};
use crate::result::TrialResult;

/// The facts about the run that the script shows.
#[derive(Debug, Serialize)]
struct Run<'a> {
    run: &'a str,
    label: Option<&'a str>,
    started: &'a str,
    trials: usize,
}

/// A trial, as the script reads it.
#[derive(Debug, Serialize)]
struct Trial<'a> {
    place: &'a str,
    case: &'a str,
    harness: &'a str,
    arm: &'a str,
    column: String,
    trial: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    running: bool,
    /// The quarantine of the case as text, if its verdicts do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    quarantine: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a TrialResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    show: Option<String>,
}

/// Writes the block with the run and its trials, one trial per line.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(report: &Report, places: &Places<'_>, out: &mut dyn Write) -> io::Result<()> {
    let run = Run {
        run: &report.run.run,
        label: report.run.label.as_deref(),
        started: &report.run.started,
        trials: places.trials.len(),
    };
    block("run", &run, out)?;
    out.write_all(b"<script type=\"application/json\" id=\"trials\">[")?;
    for (number, trial) in places.trials.iter().enumerate() {
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        let show = trial.result.map(|result| commands::show(&report.run, &report.folder, result));
        let row = Trial {
            place: &trial.place,
            case: &trial.id.case,
            harness: &trial.id.harness,
            arm: &trial.id.arm,
            column: column_name(&trial.id.harness, &trial.id.arm),
            trial: trial.id.trial,
            running: trial.running,
            quarantine: report.run.quarantine(&trial.id.case).map(decisions::quarantine_sentence),
            result: trial.result,
            show,
        };
        out.write_all(json(&row)?.as_bytes())?;
    }
    out.write_all(b"]</script>\n")
}

/// Writes a value as a data block with an id.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn block<T: Serialize>(id: &str, value: &T, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<script type=\"application/json\" id=\"{id}\">{}</script>", json(value)?)
}

/// Returns JSON without `<`, so that no text in it can end the block. JSON has `<` only within strings.
fn json<T: Serialize>(value: &T) -> io::Result<String> {
    Ok(serde_json::to_string(value)?.replace('<', "\\u003c"))
}

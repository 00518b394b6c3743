//! The JSON report: one object, or one line per result.

use std::io::{self, Write};

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::activation::Activation;
use super::asked::AskedModels;
use super::case_flags::CaseFlags;
use super::cells::{Cell, Column};
use super::{Report, Summary, exit_code};
use crate::compare::gate::Gate;
use crate::compare::self_check::SelfCheck;
use crate::run::VERSION;
use crate::snapshot::compare::Compared;

/// The object: the documented keys, and the figures of the table.
#[derive(Debug, Serialize)]
struct Document<'a> {
    run: &'a str,
    version: u32,
    evals: &'a str,
    started: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    derived_from: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    manual: bool,
    summary: &'a Summary,
    exit_code: u8,
    columns: &'a [Column],
    cells: &'a [Cell],
    cases: &'a [CaseFlags],
    #[serde(skip_serializing_if = "AskedModels::is_empty")]
    asked_models: &'a AskedModels,
    notes: &'a [String],
    #[serde(skip_serializing_if = "<[Compared]>::is_empty")]
    snapshots: &'a [Compared],
    /// The requested gates, which set the exit code.
    #[serde(skip_serializing_if = "<[Gate]>::is_empty")]
    gates: &'a [Gate],
    /// The activation of skills.
    #[serde(skip_serializing_if = "<[Activation]>::is_empty")]
    activation: &'a [Activation],
    /// The comparison of an arm with itself (`--aa`).
    #[serde(skip_serializing_if = "Option::is_none")]
    aa: Option<&'a SelfCheck>,
    results: WholeResults<'a>,
}

/// The results of a report, read one at a time if it does not have them whole.
#[derive(Debug)]
struct WholeResults<'a>(&'a Report);

impl Serialize for WholeResults<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        // An error of the output keeps its kind: a closed pipe is not an error of the results.
        let mut failed = None;
        let read = self.0.results.each(|result| match list.serialize_element(result) {
            Ok(()) => Ok(()),
            Err(error) => {
                failed = Some(error);
                Err(io::ErrorKind::Other.into())
            }
        });
        match failed {
            Some(error) => Err(error),
            None => read.map_err(serde::ser::Error::custom).and_then(|()| list.end()),
        }
    }
}

/// Writes the report as one object: `{run, version, summary, results, …}`.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let document = Document {
        run: &report.run.run,
        version: VERSION,
        evals: &report.run.evals,
        started: &report.run.started,
        label: report.run.label.as_deref(),
        derived_from: report.run.derived_from.as_deref(),
        manual: report.is_manual(),
        summary: &report.summary,
        exit_code: exit_code(report),
        columns: &report.columns,
        cells: &report.cells,
        cases: &report.cases,
        asked_models: &report.asked,
        notes: &report.notes,
        snapshots: &report.snapshots,
        gates: &report.gates,
        activation: &report.activation,
        aa: report.aa.as_ref(),
        results: WholeResults(report),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// Writes each result as one line.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write_lines(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    report.results.each(|result| {
        serde_json::to_writer(&mut *out, result)?;
        out.write_all(b"\n")
    })
}

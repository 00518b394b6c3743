//! `evals run --snapshot`: compares a run that has just ended, or accepts what it did.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use super::{gather, in_ci, keep};
use crate::case::Case;
use crate::cli::CliError;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::snapshot::compare::Compared;

/// What a run does with snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Compare every cell; one without a snapshot differs
    Check,
    /// Accept what is new or changed
    Update,
    /// Nothing
    Off,
}

/// Compares the cells of a run and keeps in its folder what came of it. Where nobody says a mode, cells without a
/// snapshot are passed over in silence.
pub fn after(
    mode: Option<Mode>,
    run: &RunFolder,
    record: &RunRecord,
    cases: &HashMap<String, Arc<Case>>,
    whole: bool,
) -> Result<Vec<Compared>, CliError> {
    if mode == Some(Mode::Off) {
        return Ok(Vec::new());
    }
    let (placed, _) = gather::of_run(run, record, cases, mode.is_some())?;
    let writes = mode == Some(Mode::Update) && !in_ci() && whole;
    if mode == Some(Mode::Update) && !writes {
        let why = if whole { "CI is set" } else { "the run did not come to its end" };
        writeln!(std::io::stderr(), "note: {why}, so no snapshot was written; they were compared")?;
    }
    let mut all = Vec::new();
    for one in placed {
        let mut compared = one.compared(mode.is_some());
        if writes && compared.differs && compared.trials > 0 {
            one.accept(false)?;
            (compared.accepted, compared.differs) = (true, false);
        }
        all.push(compared);
    }
    if !all.is_empty() {
        keep(run, &all)?;
    }
    Ok(all)
}

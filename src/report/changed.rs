//! Verdicts that grading again has changed: the old and new verdicts, and the graders that changed them.

use std::io::{self, Write};

use super::Report;
use super::text::{BOLD, Look, plural, verdict_style, wrap};
use crate::ids::column_name;
use crate::result::{GraderWas, Said, TrialResult, Was};

/// The maximum number of verdicts that are listed; the rest are counted.
const MOST: usize = 50;

/// Returns the trials whose verdict has changed, with the old one.
pub fn verdicts(results: &[TrialResult]) -> Vec<(&TrialResult, &Was)> {
    let was = results.iter().filter_map(|result| Some((result, result.was.as_ref()?)));
    was.filter(|(result, was)| result.verdict != was.verdict).collect()
}

/// Writes the changed verdicts, or nothing if there are none.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let changed = verdicts(&report.results);
    if changed.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", look.paint(BOLD, &format!("{} changed", plural(changed.len(), "verdict"))))?;
    for (result, was) in changed.iter().take(MOST) {
        let arrow = look.sign("→", "->");
        let (old, new) = (was.verdict.word(), result.verdict.word());
        let column = column_name(&result.harness, &result.arm);
        writeln!(
            out,
            "  {old} {arrow} {}  {}  {column}  trial {}",
            look.paint(verdict_style(result.verdict), new),
            super::text::harmless(&result.case),
            result.trial
        )?;
        for grader in &was.graders {
            for line in wrap(&one(grader, arrow), look.columns().saturating_sub(4)) {
                writeln!(out, "    {line}")?;
            }
        }
    }
    if changed.len() > MOST {
        writeln!(out, "  and {} more; `--format json` has them all", changed.len() - MOST)?;
    }
    writeln!(out)
}

fn one(grader: &GraderWas, arrow: &str) -> String {
    let word = |said: Option<Said>| said.map_or("not there", Said::word);
    format!("by {}: {} {arrow} {}", grader.name, word(grader.was), word(grader.now))
}

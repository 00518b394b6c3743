//! Trials that did not pass: for each, the reason, the evidence, the paths of its files, and the command to run
//! it again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::Report;
use super::problems::{self, TrialGroup};
use super::text::{BOLD, DIM, Look, duration, harmless, one_line, plural, shell_word, verdict_style, wrap};
use super::{commands, event_line};
use crate::grade::GradeRecord;
use crate::ids::column_name;
use crate::result::TrialResult;
use crate::verdict::Verdict;

/// The maximum number of trials shown in full; the rest are counted.
const WHOLE: usize = 20;
/// The maximum number of events shown for a grader.
const EVENTS: usize = 5;
/// The maximum number of lines shown of a text.
const LINES: usize = 12;

/// Writes the trials that failed, then the errored ones, then those that could not be judged.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let groups = problems::trials(report);
    for group in groups.iter().take(WHOLE) {
        one(report, group, look, out)?;
        writeln!(out)?;
    }
    if let Some(rest) = groups.get(WHOLE..).filter(|rest| !rest.is_empty()) {
        let trials: usize = rest.iter().map(|group| 1 + group.same.len()).sum();
        let run = commands::run_word(&report.run, &report.folder);
        writeln!(out, "and {} more; `evals report {run} --format jsonl` has them all", plural(trials, "trial"))?;
        writeln!(out)?;
    }
    Ok(())
}

fn one(report: &Report, group: &TrialGroup<'_>, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let result = group.result;
    title(result, look, out)?;
    let folder = report.trial_folder(result);
    let trace = folder.as_ref().map(|folder| folder.join("trace.jsonl")).filter(|path| path.is_file());
    if let Some(error) = &result.error {
        paragraph(&format!("{}: {}", error.category.word(), error.message), 2, look, out)?;
    }
    stop(result, look, out)?;
    let open: Vec<&GradeRecord> = result.grades.iter().filter(|grade| grade.passed != Some(true)).collect();
    let events = evidence(&open, trace.as_deref(), look);
    for grade in &open {
        self::grade(grade, look, out)?;
        shown_events(grade, &events, look, out)?;
    }
    if let Err(error) = &events {
        paragraph(&format!("the trace could not be read: {error}"), 4, look, out)?;
    }
    for warning in &result.warnings {
        paragraph(&format!("warning: {warning}"), 2, look, out)?;
    }
    if !group.same.is_empty() {
        let names: Vec<String> =
            group.same.iter().take(5).map(|other| format!("{} trial {}", other.case, other.trial)).collect();
        let more = group.same.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        paragraph(&format!("the same error: {}{more}", names.join(", ")), 2, look, out)?;
    }
    // Paths and commands are never wrapped, so that they can be copied.
    if trace.is_some() {
        to_copy("show", &commands::show(&report.run, &report.folder, result), look, out)?;
    }
    to_copy("again", &commands::again(&report.run, result), look, out)?;
    path("trace", trace, look, out)?;
    path("workspace", folder.map(|folder| folder.join("workspace")).filter(|path| path.is_dir()), look, out)
}

/// Writes the first line about a trial: its verdict, case, column and number.
///
/// # Errors
/// The output could not be written.
pub fn title(result: &TrialResult, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let word = result.verdict.word().to_uppercase();
    let attempt = if result.attempt > 1 { format!(", attempt {}", result.attempt) } else { String::new() };
    let time = result.metrics.duration_ms.map(|ms| format!("  {}", duration(ms))).unwrap_or_default();
    let rest = format!("{}  trial {}{attempt}{time}", column_name(&result.harness, &result.arm), result.trial);
    let room = look.columns().saturating_sub(word.len() + 2);
    let mut lines = wrap(&format!("{}  {rest}", result.case), room).into_iter();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "{}  {}", look.paint(verdict_style(result.verdict).bold(), &word), look.paint(BOLD, &first))?;
    for line in lines {
        writeln!(out, "{:width$}  {line}", "", width = word.len())?;
    }
    Ok(())
}

/// Writes how the session ended, unless it ended normally.
fn stop(result: &TrialResult, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let Some(stop) = &result.stop else { return Ok(()) };
    if stop.reason != crate::trace::StopReason::EndTurn && result.error.is_none() {
        let detail = stop.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        paragraph(&format!("the session ended with {}{detail}", stop.reason.word()), 2, look, out)?;
    }
    if let Some(tail) = &stop.stderr_tail {
        paragraph("its standard error ended with", 2, look, out)?;
        let lines: Vec<&str> = tail.trim_end().lines().collect();
        paragraph(&lines[lines.len().saturating_sub(LINES)..].join("\n"), 4, look, out)?;
    }
    Ok(())
}

/// Writes a grade.
///
/// # Errors
/// The output could not be written.
pub fn grade(grade: &GradeRecord, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let (word, style) = match grade.passed {
        Some(true) => ("passed", verdict_style(Verdict::Pass)),
        Some(false) => ("failed", verdict_style(Verdict::Fail)),
        None => ("ungraded", verdict_style(Verdict::Ungraded)),
    };
    let kind = if grade.name == grade.grader { String::new() } else { format!(" ({})", grade.grader) };
    let mut marks = Vec::new();
    if grade.gate {
        marks.push("gate".to_owned());
    }
    if grade.diagnostic {
        marks.push("diagnostic, not counted".to_owned());
    }
    if let Some(value) = grade.value.map(crate::values::Fraction::get).filter(|value| *value > 0.0 && *value < 1.0) {
        marks.push(format!("value {}", crate::rounding::share(value)));
    }
    let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
    let name = one_line(&format!("{}{kind}{marks}", grade.name), look.columns().saturating_sub(word.len() + 3), look);
    writeln!(out, "  {} {}", look.paint(style, word), look.paint(BOLD, &name))?;
    paragraph(&grade.reason, 4, look, out)
}

type Events = Result<BTreeMap<u64, String>, event_line::EventsError>;

fn evidence(grades: &[&GradeRecord], trace: Option<&Path>, look: &Look) -> Events {
    let wanted: BTreeSet<u64> = grades.iter().flat_map(|grade| grade.evidence.iter().take(EVENTS).copied()).collect();
    match trace {
        Some(trace) => event_line::lines_of(trace, &wanted, look.columns() - 4, look),
        None => Ok(BTreeMap::new()),
    }
}

fn shown_events(grade: &GradeRecord, events: &Events, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    for seq in grade.evidence.iter().take(EVENTS) {
        let line = events.as_ref().ok().and_then(|events| events.get(seq)).cloned();
        let line = line.unwrap_or_else(|| format!("#{seq}"));
        writeln!(out, "    {}", look.paint(DIM, &line))?;
    }
    let more = grade.evidence.len().saturating_sub(EVENTS);
    if more > 0 {
        writeln!(out, "    {}", look.paint(DIM, &format!("and {}", plural(more, "more event"))))?;
    }
    Ok(())
}

/// Writes wrapped and indented prose; long text is cut.
fn paragraph(text: &str, indent: usize, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let lines = wrap(text, look.columns().saturating_sub(indent));
    for line in lines.iter().take(LINES) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        writeln!(out, "{:indent$}{} {}", "", look.ellipsis(), plural(more, "more line"))?;
    }
    Ok(())
}

fn path(label: &str, path: Option<PathBuf>, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    path.map_or(Ok(()), |path| to_copy(label, &shell_word(&path.to_string_lossy()), look, out))
}

fn to_copy(label: &str, text: &str, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {} {}", look.paint(DIM, &format!("{label:<9}")), harmless(text))
}

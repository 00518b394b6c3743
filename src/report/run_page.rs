//! The page of a run: its result, the table, notes, changed verdicts, and the entries that need attention.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::cells::Cell;
use super::decisions::{self, About};
use super::escape::bounded;
use super::page::{Block, Detail, Entry, Matrix, Meaning, Page, Standing};
use super::problems::{self, CellProblem, ProblemKind};
use super::text::{Look, duration, natural, one_line, plural, shell_word_for_terminal, width_of};
use super::{Report, activation, commands, event_line, snapshots};
use crate::compare::self_check::SelfCheck;
use crate::grade::GradeRecord;
use crate::ids::column_name;
use crate::result::{GradeWord, TrialResult, Warning};
use crate::rounding;
use crate::run::RunRecord;
use crate::statistics::gates::GateVerdict;
use crate::text::some_of;
use crate::verdict::Verdict;

/// The maximum number of different reasons shown for a cell.
const GROUPS: usize = 5;
/// The maximum number of trials whose traces are read for evidence.
const WHOLE: usize = 20;
/// The maximum number of events shown for a grader.
const EVENTS: usize = 5;
/// The maximum number of lines of standard error that are shown, and the maximum length of each, in characters.
const TAIL: (usize, usize) = (12, 400);
/// The number of problems from which on each is shown without its paths, and all are listed once more at the end.
const MANY: usize = 4;
/// The shortest start of an agent that is named beside the time of a trial, in milliseconds.
const LONG_START_MS: u64 = 100;
/// The maximum number of problems in the list at the end.
const LISTED: usize = 40;

/// Builds the page, with the signs of a look.
///
/// # Errors
/// Returns an error if results cannot be read again.
pub fn page(report: &Report, look: &Look) -> io::Result<Page> {
    let signs = |note: &String| if look.unicode { note.clone() } else { note.replace('≥', ">=") };
    let mut blocks = vec![
        Block::Matrix(Matrix { columns: report.columns.clone(), cells: Arc::clone(&report.cells) }),
        activation::block(&report.activation),
        Block::Lines(report.notes.iter().map(signs).collect()),
        Block::Lines(report.aa.iter().flat_map(self_check).collect()),
        changed(report, look)?,
    ];
    let problems = problems::cells(report);
    let common = if problems.len() > 1 { report.note_facts.common_warnings() } else { &[] };
    blocks.push(Block::Lines(common.iter().map(|warning| format!("in every trial: {warning}")).collect()));
    let many = problems.len() >= MANY;
    let mut left = WHOLE;
    for kind in ProblemKind::ALL {
        let of_kind = problems.iter().filter(|problem| problem.kind == kind);
        let count: usize = of_kind.clone().map(|problem| 1 + problem.same.len()).sum();
        let what = plural(count, if report.columns.len() > 1 { "cell" } else { "case" });
        let mut of_all = Vec::new();
        for problem in of_kind {
            of_all.append(&mut entries(report, problem, common, (&mut left, !many), look)?);
        }
        blocks.push(Block::Entries { title: format!("{what} {}", kind.described()), entries: of_all, after: None });
    }
    blocks.push(snapshots::block(report));
    let run = commands::run_word(&report.run, &report.folder);
    let open = if many { listed(report, &problems, look)? } else { Vec::new() };
    Ok(Page {
        standing: Some(Standing { open, ..standing(report) }),
        blocks,
        everything: format!("`evals report` of run {run}"),
    })
}

/// Returns one line for each problem: its verdict, its case and its column, and the first line of the reason. The most
/// serious problems are first, and `case-2` is before `case-10`.
fn listed(report: &Report, problems: &[CellProblem<'_>], look: &Look) -> io::Result<Vec<(Meaning, String, String)>> {
    let cells = problems.iter().flat_map(|problem| {
        std::iter::once(problem.cell).chain(problem.same.iter().copied()).map(move |cell| (problem, cell))
    });
    let mut cells: Vec<(&CellProblem<'_>, &Cell)> = cells.collect();
    cells.sort_by_cached_key(|(problem, cell)| (problem.kind, natural(&cell.id.case)));
    let more = cells.len().saturating_sub(LISTED);
    let mut lines = Vec::new();
    for (problem, cell) in cells.into_iter().take(LISTED) {
        let meaning = cell.verdict.map_or(Meaning::Quiet, Meaning::Verdict);
        let of = format!("{}  {}", cell.id.case, cell.id.column());
        let first = problem.places.first().copied().into_iter().collect::<Vec<_>>();
        let reasons = report.results.at(&first)?.first().map(|result| problems::reasons(result));
        let reason = reasons.and_then(|reasons| Some(reasons.first()?.lines().next()?.to_owned()));
        let room = look.columns().saturating_sub(10 + width_of(&of) + 2);
        let reason = reason.filter(|_| room >= MIN_REASON_COLUMNS).map(|reason| one_line(&reason, room, look));
        let of = std::iter::once(of).chain(reason).collect::<Vec<_>>().join("  ");
        // Trials of different versions show no flaky cell.
        let is_mixed = problem.kind == ProblemKind::Flaky && cell.mixed;
        let word = if is_mixed { "mixed" } else { problem.kind.short() };
        lines.push((meaning, word.to_uppercase(), of));
    }
    if more > 0 {
        lines.push((Meaning::Quiet, String::new(), format!("and {more} more")));
    }
    Ok(lines)
}

/// The narrowest reason in the list at the end.
const MIN_REASON_COLUMNS: usize = 16;

/// Returns the lines about an arm that was compared with itself.
fn self_check(found: &SelfCheck) -> Vec<String> {
    let SelfCheck { arm, cases, open, flipped, noisy, gate, gate_false_alarms, draws } = found;
    let named = |names: &[String]| if names.is_empty() { "none".to_owned() } else { some_of(names, 8) };
    let without = if open.is_empty() { String::new() } else { format!("; open: {}", named(open)) };
    let mut lines = vec![
        format!(
            "{arm} against itself: the verdict changed in {} of {} with a verdict on both sides: {}{without}",
            flipped.len(),
            plural(*cases, "case"),
            named(flipped)
        ),
        format!("cases whose trials differ among themselves: {}", named(noisy)),
    ];
    lines.push(match gate_false_alarms {
        Some(share) => format!(
            "the gate `{gate}` fires by chance alone in {} of {draws} random divisions of these trials",
            rounding::percent(*share)
        ),
        None => "no case has a verdict on both sides, so nothing is known about false alarms".to_owned(),
    });
    lines
}

/// Returns the result of a comparison of an arm with itself: the number of verdicts that changed. Failures do not count.
fn itself(report: &Report, found: &SelfCheck, verdict: GateVerdict) -> String {
    let changed = match found.cases {
        0 => "no case has a verdict on both sides".to_owned(),
        cases => format!("{} of {} changed", found.flipped.len(), plural(cases, "verdict")),
    };
    let fails = report.cells.iter().any(|cell| cell.verdict == Some(Verdict::Fail));
    let fails = if fails { ", and failures do not count" } else { "" };
    let open = verdict == GateVerdict::Inconclusive;
    let open = if open { "; not everything could be graded" } else { "" };
    format!("compared with itself: {changed}{fails}{open}")
}

fn fails_in_quarantine(cell: &Cell) -> bool {
    cell.quarantine.is_some() && cell.verdict == Some(Verdict::Fail)
}

fn standing(report: &Report) -> Standing {
    let verdict = decisions::outcome(&report.decisions);
    let (word, gated) = match verdict {
        GateVerdict::Pass if report.cells.iter().any(|cell| cell.quarantine.is_some()) => {
            ("everything that counts passed", "the gate passes")
        }
        GateVerdict::Pass => ("everything passed", "the gate passes"),
        GateVerdict::Fail => ("failed", "failed"),
        GateVerdict::Inconclusive if report.cells.iter().any(fails_in_quarantine) => {
            ("nothing that counts failed, and not everything could be graded", "the gate is inconclusive")
        }
        GateVerdict::Inconclusive => ("nothing failed, and not everything could be graded", "the gate is inconclusive"),
    };
    let itself = report.aa.as_ref().filter(|_| verdict != GateVerdict::Fail).map(|aa| itself(report, aa, verdict));
    let word = itself.as_deref().unwrap_or(word);
    let is_over_all = |about: About| matches!(about, About::Gate | About::BrokenOff | About::NotEnded | About::Run);
    let over_all = report.decisions.iter().filter(|it| is_over_all(it.about));
    let cases: BTreeSet<&str> = report.cells.iter().map(|cell| &*cell.id.case).collect();
    let title = match (&report.broken_off, report.gates.is_empty()) {
        (Some(_), _) => format!("the run broke off; {word}"),
        (None, _) if report.going_on => format!("{}; {word}", report.state_so_far()),
        (None, true) => word.to_owned(),
        (None, false) => gated.to_owned(),
    };
    // A part of the plan says nothing about the rest.
    let shard = report.run.shard.filter(|shard| shard.n > 1);
    Standing {
        verdict,
        title: match shard {
            Some(shard) => format!("shard {shard}: {title}"),
            None => title,
        },
        compares_itself: report.aa.is_some(),
        run: report.run.run.clone(),
        label: report.run.label.clone(),
        shard,
        started: report.run.started.clone(),
        size: [
            plural(cases.len(), "case"),
            plural(report.columns.len(), "column"),
            plural(report.summary.trials(), "trial"),
        ],
        decisions: over_all.map(|it| (it.verdict, it.line.clone())).collect(),
        counts: report.summary.parts(),
        folder: report.folder.to_string_lossy().into_owned(),
        open: Vec::new(),
    }
}

/// Returns the entries of a cell: one for each group of trials with the same reasons, with the command that runs it again
/// and its paths or without. The command is looked up in the whole plan.
fn entries(
    report: &Report,
    problem: &CellProblem<'_>,
    common: &[Warning],
    (left, with_paths): (&mut usize, bool),
    look: &Look,
) -> io::Result<Vec<Entry>> {
    let cell = problem.cell;
    let mut entries: Vec<Entry> = Vec::new();
    let trials = problem.trials(report)?;
    let mut trials: Vec<&TrialResult> = trials.iter().map(Cow::as_ref).collect();
    // Trials with the verdict of the cell come first, because they decided it.
    trials.sort_by_key(|result| Some(result.verdict) != cell.verdict);
    let groups = alike(&trials);
    for trials in groups.iter().take(GROUPS) {
        let Some(first) = trials.first() else { continue };
        let mut entry = about(first);
        if trials.len() > 1 {
            let numbers: Vec<String> = trials.iter().map(|result| result.trial.to_string()).collect();
            entry.about.truncate(2);
            entry.about.push(format!("trial {}", numbers.join(", ")));
        }
        if entries.is_empty() && cell.tally.trials > 1 {
            entry.text(problems::counts(cell));
        }
        let folder = report.trial_folder(&first.id());
        let trace = folder.as_ref().map(|folder| folder.join("trace.jsonl")).filter(|path| path.is_file());
        entry.details.extend(problems::details(first, common));
        if *left > 0 {
            *left -= 1;
            evidence(&mut entry, first, trace.as_deref(), look);
        }
        entry.copies.push(("show", commands::show(&report.run, &report.folder, first)));
        if with_paths {
            entry.copies.extend(places(&report.run, first, folder.as_deref()));
        }
        entries.push(entry);
    }
    let more: usize = groups.iter().skip(GROUPS).map(Vec::len).sum();
    match entries.last_mut() {
        Some(last) if more > 0 => last.text(format!("and {} for other reasons", plural(more, "trial"))),
        Some(_) => {}
        // No trial of the cell ran.
        None => entries.push(Entry {
            meaning: Meaning::Quiet,
            word: problem.kind.word().to_uppercase(),
            about: vec![cell.id.case.clone(), cell.id.column().to_string(), problems::counts(cell)],
            ..Entry::default()
        }),
    }
    if let (Some(first), Some(same)) = (entries.first_mut(), problem.same_error()) {
        first.text(same);
    }
    Ok(entries)
}

/// Returns the command that runs a trial's cell again, and the paths of the trace and the kept workspace in the trial's folder.
pub fn places(run: &RunRecord, result: &TrialResult, folder: Option<&Path>) -> Vec<(&'static str, String)> {
    let mut copies = vec![("again", commands::again(run, result))];
    let trace = folder.map(|folder| folder.join("trace.jsonl")).filter(|path| path.is_file());
    let workspace = folder.map(|folder| folder.join("workspace")).filter(|path| path.is_dir());
    for (label, path) in [("trace", trace), ("workspace", workspace)] {
        copies.extend(path.map(|path| (label, shell_word_for_terminal(&path.to_string_lossy()))));
    }
    copies
}

/// Returns an entry about a trial: its verdict, case, column, number and time.
pub fn about(result: &TrialResult) -> Entry {
    let attempt = if result.attempt > 1 { format!(", attempt {}", result.attempt) } else { String::new() };
    let column = column_name(&result.harness, &result.arm);
    let mut about = vec![result.case.clone(), column, format!("trial {}{attempt}", result.trial)];
    about.extend(result.duration_ms().map(|ms| time(ms, result.metrics.start_ms)));
    Entry {
        meaning: Meaning::Verdict(result.verdict),
        word: result.verdict.word().to_uppercase(),
        about,
        trial: Some(result.id()),
        ..Entry::default()
    }
}

/// Returns the time of a trial, which does not include the start of the agent. A long start is named beside it, because the
/// limit `time` includes it.
fn time(ms: u64, start: Option<u64>) -> String {
    let start = start.filter(|start| *start >= LONG_START_MS);
    let start = start.map(|start| format!(", after a start of {}", duration(start)));
    format!("{}{}", duration(ms), start.unwrap_or_default())
}

/// Groups trials by their reasons, in order.
fn alike<'a>(trials: &[&'a TrialResult]) -> Vec<Vec<&'a TrialResult>> {
    let mut groups: Vec<(Vec<String>, Vec<&TrialResult>)> = Vec::new();
    for result in trials {
        let reasons = problems::reasons(result);
        match groups.iter_mut().find(|(known, trials)| {
            *known == reasons && trials.first().is_some_and(|first| first.verdict == result.verdict)
        }) {
            Some((_, trials)) => trials.push(result),
            None => groups.push((reasons, vec![result])),
        }
    }
    groups.into_iter().map(|(_, trials)| trials).collect()
}

/// Adds the events that decided each grade, and the end of standard error.
fn evidence(entry: &mut Entry, result: &TrialResult, trace: Option<&Path>, look: &Look) {
    let open: Vec<&GradeRecord> = problems::open_grades(result);
    let wanted: BTreeSet<u64> = open.iter().flat_map(|grade| grade.evidence.iter().take(EVENTS).copied()).collect();
    let events = match trace {
        Some(trace) => event_line::lines_of(trace, &wanted, look.columns() - 4, look),
        None => Ok(BTreeMap::new()),
    };
    let failing = result.warnings.iter().filter(|warning| warning.fails_the_trial()).count();
    let graded = entry.details.iter_mut().filter(|detail| detail.head.is_some()).skip(failing);
    for (detail, grade) in graded.zip(&open) {
        for seq in grade.evidence.iter().take(EVENTS) {
            let line = events.as_ref().ok().and_then(|events| events.get(seq)).cloned();
            detail.lines.push((Meaning::Quiet, line.unwrap_or_else(|| format!("#{seq}"))));
        }
        let more = grade.evidence.len().saturating_sub(EVENTS);
        if more > 0 {
            detail.lines.push((Meaning::Quiet, format!("and {}", plural(more, "more event"))));
        }
    }
    if let Err(error) = &events {
        entry.text(format!("the trace could not be read: {error}"));
    }
    if let Some(tail) = result.stop.as_ref().and_then(|stop| stop.stderr_tail.as_ref()) {
        let all: Vec<&str> = tail.trim_end().lines().collect();
        // The message of an error has the detail of the session's end, which may be the end of standard error.
        let detail = result.stop.as_ref().and_then(|stop| stop.detail.as_ref()).filter(|_| result.error.is_some());
        let is_in_detail = |line: &&str| detail.is_some_and(|detail| detail.contains(line.trim()));
        let rest = all.len() - all.iter().rev().take_while(|line| is_in_detail(line)).count();
        let Some(before) = all.get(..rest).filter(|before| !before.is_empty()) else { return };
        let lines = before.iter().skip(before.len().saturating_sub(TAIL.0));
        let lines = lines.map(|line| (Meaning::Plain, bounded(line, TAIL.1).into_owned())).collect();
        let how = if rest == all.len() { "ended with" } else { "before that was" };
        let text = format!("its standard error {how}");
        entry.details.push(Detail { head: None, text, lines });
    }
}

/// Returns the verdicts that grading again has changed: the old and new verdicts, and the graders that changed
/// them.
fn changed(report: &Report, look: &Look) -> io::Result<Block> {
    let arrow = look.sign("→", "->");
    let word = |grade: Option<GradeWord>| grade.map_or("not there", GradeWord::word);
    let mut entries: Vec<Entry> = Vec::new();
    for place in &report.note_facts.changed {
        let result = report.results.get(*place)?;
        let Some(before) = &result.was else { continue };
        let mut entry = about(&result);
        entry.about.truncate(3);
        entry.word = format!("{} {arrow} {}", before.verdict.word(), result.verdict.word());
        for it in &before.graders {
            entry.text(format!("by {}: {} {arrow} {}", it.name, word(it.was), word(it.now)));
        }
        entries.push(entry);
    }
    Ok(Block::Entries { title: format!("{} changed", plural(entries.len(), "verdict")), entries, after: None })
}

//! The report for pull requests: a verdict, a row for each harness and model, and collapsed details below.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::cells::{Cell, Column};
use super::compare::page::gate_word;
use super::escape::{LOOK, block, code, inline};
use super::figures::{completion, interval, score, taken};
use super::problems::{self, CellProblem, ProblemKind};
use super::text::{plural, short_name};
use super::{Report, commands, exit_code, snapshots};
use crate::ids::column_name;
use crate::result::TrialResult;

/// The maximum length of a comment on the services, in characters. The report counts bytes, which are never
/// fewer.
pub const COMMENT: usize = 65_536;
/// The maximum number of characters of the reasons of a trial.
const REASONS: usize = 1_500;
/// The maximum number of different reasons shown for a cell.
const GROUPS: usize = 5;
/// The maximum number of characters of a name.
const NAME: usize = 120;
/// The space reserved for the text that states what was cut.
const RESERVE: usize = 500;

/// Writes the report with a maximum number of bytes.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, most: usize, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(text(report, most).as_bytes())
}

/// Returns the report with a maximum number of bytes, or an empty text if there is no room.
pub fn text(report: &Report, most: usize) -> String {
    let Some(room) = most.checked_sub(RESERVE) else { return String::new() };
    let mut page = Page { text: String::new(), room, cut: false };
    page.add(&verdict(report));
    table(report, &mut page);
    for note in &report.notes {
        page.add(&format!("- {}\n", inline(note, 500)));
    }
    if !report.notes.is_empty() {
        page.add("\n");
    }
    let problems = problems::cells(report);
    for kind in ProblemKind::ALL {
        let of_kind: Vec<&CellProblem<'_>> = problems.iter().filter(|problem| problem.kind == kind).collect();
        section(report, kind, &of_kind, &mut page);
    }
    differing(report, &mut page);
    cases(report, &mut page);
    let run = inline(&commands::run_word(&report.run, &report.folder), 60);
    if page.cut {
        let _ =
            writeln!(page.text, "Some of it was left out for its length; `evals report` of run {run} has everything.");
    }
    page.text
}

/// A text with a maximum length.
struct Page {
    text: String,
    room: usize,
    cut: bool,
}

impl Page {
    /// Adds a part completely or not at all, and returns whether it was added.
    fn add(&mut self, part: &str) -> bool {
        let fits = self.text.len() + part.len() <= self.room;
        if fits {
            self.text.push_str(part);
        } else {
            self.cut = true;
        }
        fits
    }

    /// Adds parts between a head and a foot, as many as fit; a line states how many are missing.
    fn fold(&mut self, head: &str, parts: impl ExactSizeIterator<Item = String>, foot: &str) {
        let left_out = |count: usize| format!("… and {count} more\n");
        let count = parts.len();
        let around = foot.len() + left_out(count).len();
        self.room = self.room.saturating_sub(around);
        let begun = self.add(head);
        let mut written = 0;
        for part in parts {
            if !begun || !self.add(&part) {
                break;
            }
            written += 1;
        }
        self.room += around;
        if begun {
            if written < count {
                self.text.push_str(&left_out(count - written));
            }
            self.text.push_str(foot);
        }
    }
}

fn verdict(report: &Report) -> String {
    let (sign, word, gated) = match exit_code(report) {
        0 => ("✅", "everything passed", "the gate passes"),
        1 => ("❌", "failed", "failed"),
        _ => ("⚠️", "nothing failed, and not everything could be judged", "the gate is inconclusive"),
    };
    let run = &report.run;
    let label = run.label.as_ref().map(|label| format!(" {}", code(label, NAME))).unwrap_or_default();
    let summary = &report.summary;
    let counts = [
        (summary.pass, "passed"),
        (summary.fail, "failed"),
        (summary.ungraded, "ungraded"),
        (summary.errored, "errored"),
        (summary.skipped, "skipped"),
        (summary.not_run, "not run"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, word)| *count > 0 || *word == "passed")
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let gates: String = report
        .gates
        .iter()
        .map(|gate| {
            format!("Gate {}: {} {}\n\n", gate_word(gate.verdict), code(&gate.arm, NAME), inline(&gate.text, 300))
        })
        .collect();
    let word = if report.gates.is_empty() { word } else { gated };
    format!(
        "### {sign} evals: {word}\n\n{gates}Run {}{label} of {}: {} of {}.\n\n",
        code(&run.run, NAME),
        inline(run.started.get(..10).unwrap_or(&run.started), 40),
        counts.join(", "),
        plural(summary.trials(), "trial")
    )
}

/// Returns the header row of a table and the line below it. The first column is for names, the others are for
/// figures.
fn head(columns: &[String]) -> String {
    let rule: Vec<&str> = columns.iter().enumerate().map(|(n, _)| if n == 0 { "---" } else { "---:" }).collect();
    format!("| {} |\n| {} |\n", columns.join(" | "), rule.join(" | "))
}

fn table(report: &Report, page: &mut Page) {
    if report.columns.is_empty() {
        return;
    }
    let errors = report.columns.iter().any(|column| column.score_with_errors.is_some());
    let mut heads = vec!["harness / model", "cases passed", "score", "95 % interval"];
    if errors {
        heads.push("errors as failures");
    }
    heads.extend(["completed", "cost", "tokens", "median time"]);
    let head = head(&heads.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let rows = report.columns.iter().map(|column| row(column, errors));
    page.fold(&head, rows, "\n");
}

fn row(column: &Column, errors: bool) -> String {
    let [time, cost, tokens] = taken(&column.figures, &LOOK);
    let mut cells = vec![
        code(&short_name(&column.name(), NAME, &LOOK), NAME),
        format!("{} of {}", column.cases_passed, column.cases),
        score(column.score, &LOOK),
        interval(column.interval, &LOOK),
    ];
    if errors {
        cells.push(score(column.score_with_errors.or(column.score), &LOOK));
    }
    cells.extend([completion(column, &LOOK), cost, tokens, time]);
    format!("| {} |\n", cells.join(" | "))
}

fn section(report: &Report, kind: ProblemKind, problems: &[&CellProblem<'_>], page: &mut Page) {
    if problems.is_empty() {
        return;
    }
    let count: usize = problems.iter().map(|problem| 1 + problem.same.len()).sum();
    let several = report.columns.len() > 1;
    let what = if several { "cell" } else { "case" };
    let summary = match kind {
        ProblemKind::Flaky => format!("{} passed, though not with every trial", plural(count, what)),
        kind => format!("{} {}", plural(count, what), kind.word()),
    };
    let head = format!("<details><summary>{summary}</summary>\n\n");
    page.fold(&head, problems.iter().map(|problem| told(report, problem, several)), "\n</details>\n\n");
}

/// Adds the snapshots that differ.
fn differing(report: &Report, page: &mut Page) {
    let all: Vec<String> = snapshots::differing(report)
        .map(|compared| {
            let title = inline(&snapshots::title(compared), 2 * NAME);
            format!("{title}\n{}\n\n", block(&snapshots::lines(compared).join("\n"), REASONS))
        })
        .collect();
    if !all.is_empty() {
        let what =
            if all.len() == 1 { "1 snapshot differs".to_owned() } else { format!("{} snapshots differ", all.len()) };
        let run = commands::run_word(&report.run, &report.folder);
        let foot = format!("{}\n\n</details>\n\n", code(&format!("evals snapshot review {run}"), NAME));
        page.fold(&format!("<details><summary>{what}</summary>\n\n"), all.into_iter(), &foot);
    }
}

fn told(report: &Report, problem: &CellProblem<'_>, several: bool) -> String {
    let cell = problem.cell;
    let of = if several {
        format!(" · {}", code(&short_name(&column_name(&cell.harness, &cell.arm), NAME, &LOOK), NAME))
    } else {
        String::new()
    };
    let mut text = format!("**{}**{of} – {}\n", code(&cell.case, NAME), problems::counts(cell));
    let groups = alike(&problem.trials);
    for (reasons, trials) in groups.iter().take(GROUPS) {
        let mut lines = reasons.clone();
        if cell.tally.trials > 1 {
            let trials: Vec<String> = trials.iter().map(u32::to_string).collect();
            lines.insert(0, format!("trial {}", trials.join(", ")));
        }
        if !lines.is_empty() {
            let _ = writeln!(text, "{}\n", block(&lines.join("\n"), REASONS));
        }
    }
    let more: usize = groups.iter().skip(GROUPS).map(|(_, trials)| trials.len()).sum();
    if more > 0 {
        let _ = writeln!(text, "and {} for other reasons\n", plural(more, "trial"));
    }
    if !problem.same.is_empty() {
        let names: Vec<String> = problem.same.iter().take(10).map(|cell| code(&cell.case, NAME)).collect();
        let more = problem.same.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "The same error: {}{more}\n", names.join(", "));
    }
    if let Some(result) = problem.trials.first() {
        let _ = writeln!(text, "{}\n", code(&commands::show(&report.run, &report.folder, result), 1_000));
    }
    text
}

/// Groups trials by their reasons, in order.
fn alike(trials: &[&TrialResult]) -> Vec<(Vec<String>, Vec<u32>)> {
    let mut groups: Vec<(Vec<String>, Vec<u32>)> = Vec::new();
    for result in trials {
        let reasons = problems::reasons(result);
        match groups.iter_mut().find(|(known, _)| *known == reasons) {
            Some((_, trials)) => trials.push(result.trial),
            None => groups.push((reasons, vec![result.trial])),
        }
    }
    groups
}

/// Adds every case with the results of its cells.
fn cases(report: &Report, page: &mut Page) {
    if report.cells.is_empty() {
        return;
    }
    let names = report.columns.iter().map(|column| code(&short_name(&column.name(), NAME, &LOOK), NAME));
    let head = head(&std::iter::once("case".to_owned()).chain(names).collect::<Vec<_>>());
    let of_case = report.cells_by_case();
    let rows: Vec<String> = of_case
        .iter()
        .map(|(case, cells)| {
            let mut row = format!("| {} ", code(case, NAME));
            for column in &report.columns {
                let here = cells.iter().find(|cell| (&cell.harness, &cell.arm) == (&column.harness, &column.arm));
                let _ = write!(row, "| {} ", here.map_or_else(String::new, |cell| in_table(cell)));
            }
            row + "|\n"
        })
        .collect();
    let head = format!("<details><summary>{}</summary>\n\n{head}", plural(rows.len(), "case"));
    page.fold(&head, rows.into_iter(), "\n</details>\n");
}

fn in_table(cell: &Cell) -> String {
    let word = cell.verdict.map_or("not run", |verdict| verdict.word());
    let passed =
        if cell.tally.trials == 0 { String::new() } else { format!(" {}/{}", cell.tally.passed, cell.tally.trials) };
    let score = cell.score.map(|score| format!(" {}", crate::rounding::share(score))).unwrap_or_default();
    format!("{word}{passed}{score}")
}

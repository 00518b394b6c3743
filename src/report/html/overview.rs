//! The overview of the HTML report: the result, the matrix of cases by arm, charts, notes, and what needs attention.

use std::fmt::Write as _;
use std::io;

use super::charts;
use super::live::Live;
use super::places::{Places, Trial};
use crate::report::cells::{Cell, Column};
use crate::report::escape::html as text;
use crate::report::page::html as blocks;
use crate::report::page::{Block, Matrix, Page, Standing};
use crate::report::whole::WholeReport;
use crate::report::{Report, escape, figures, run_page};
use crate::rounding;
use crate::statistics::gates::GateVerdict;
use crate::verdict::Verdict;

/// The number of cells above which those with problems are folded, as the matrix shows the same.
const MANY: usize = 30;

/// Renders the overview.
///
/// # Errors
/// Returns an error if results cannot be read again.
pub fn section(report: WholeReport<'_>, places: &Places<'_>, live: Option<&Live>) -> io::Result<String> {
    let page = run_page::page(&report, &escape::LOOK)?;
    let mut out = String::from("<main id=\"overview\" data-place=\"\">\n");
    if let Some(standing) = &page.standing {
        out.push_str(&head(standing, live.is_some_and(|live| live.going_on) && !report.going_on));
    }
    let link = |id: &crate::ids::TrialId| Some(super::places::place(id));
    let (notes, rest): (Vec<&Block>, Vec<&Block>) = split(&page);
    out.push_str("<h2 id=\"matrix\">Cases</h2>\n");
    for block in &page.blocks {
        if let Block::Matrix(matrix) = block {
            out.push_str(&table(matrix, &report, places));
        }
    }
    let folded = if places.trials.len() > MANY { " class=\"many\"" } else { "" };
    let _ = writeln!(out, "<section{folded}>{}</section>", blocks::blocks(&owned(&rest), &link));
    out.push_str(&charts::all(report));
    if notes.iter().any(|block| !block.is_empty()) {
        let _ = writeln!(out, "<h2>Notes</h2>\n{}", blocks::blocks(&owned(&notes), &link));
    }
    out.push_str("</main>\n");
    Ok(out)
}

/// Returns the notes, and the other blocks besides the matrix.
fn split(page: &Page) -> (Vec<&Block>, Vec<&Block>) {
    let others = page.blocks.iter().filter(|block| !matches!(block, Block::Matrix(_)));
    others.partition(|block| matches!(block, Block::Lines(_)))
}

fn owned(blocks: &[&Block]) -> Vec<Block> {
    blocks.iter().map(|block| (*block).clone()).collect()
}

fn head(standing: &Standing, going_on: bool) -> String {
    let so_far = if going_on { "<span class=\"verdict v-running\">going on</span> so far: " } else { "" };
    let label = standing.label.as_ref().map(|label| format!(" <span class=\"tag\">{}</span>", text(label)));
    let class = match standing.verdict {
        GateVerdict::Pass if standing.compares_itself => "quiet",
        verdict => blocks::gate_class(verdict),
    };
    let mut out = format!(
        "<h1>Run {}{}</h1>\n<p class=\"lead\">{so_far}<span class=\"verdict v-{}\">{}</span></p>\n",
        text(&standing.run),
        label.unwrap_or_default(),
        class,
        text(&standing.title)
    );
    for (verdict, line) in &standing.decisions {
        let _ = writeln!(out, "<p><span class=\"m-{}\">{}</span></p>", blocks::gate_class(*verdict), text(line));
    }
    let counts: Vec<String> = standing.counts.iter().map(|(meaning, part)| blocks::span(*meaning, part)).collect();
    let _ = writeln!(
        out,
        "<p class=\"facts\">{} <span class=\"m-quiet\">of {} · {} · {} · started {} · folder <code>{}</code></span></p>",
        counts.join(" "),
        text(&standing.size[2]),
        text(&standing.size[0]),
        text(&standing.size[1]),
        text(&standing.started),
        text(&standing.folder)
    );
    out
}

/// Renders the matrix: a row for each case, a column for each arm, a link for each trial.
fn table(matrix: &Matrix, report: &Report, places: &Places<'_>) -> String {
    let mut out = String::from(
        "<div class=\"tools\"><label>Filter <input id=\"filter-cases\" type=\"search\" \
         placeholder=\"case or reason\" autocomplete=\"off\"></label>\n<fieldset><legend>Verdicts</legend>",
    );
    for (word, count) in counts(report, places) {
        let _ = write!(
            out,
            "<label class=\"check\"><input type=\"checkbox\" name=\"verdict\" value=\"{word}\" checked> {word} {count}</label>"
        );
    }
    out.push_str("</fieldset><output id=\"shown-cases\"></output></div>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Cells\"><table id=\"cells\" class=\"matrix\">\n<thead><tr><th scope=\"col\">case</th>");
    for column in &matrix.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", text(&column.id.to_string()));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (case, cells) in report.cells_by_case() {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", text(case));
        for column in &matrix.columns {
            let found = cells.iter().find(|cell| cell.id.harness == column.id.harness && cell.id.arm == column.id.arm);
            out.push_str(&found.map_or_else(|| "<td></td>".to_owned(), |found| cell(found, places)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n<tfoot>\n");
    let mut foot = |name: &str, of: &dyn Fn(&Column) -> String| {
        let cells: String = matrix.columns.iter().map(|column| format!("<td>{}</td>", text(&of(column)))).collect();
        let _ = writeln!(out, "<tr><th scope=\"row\">{name}</th>{cells}</tr>");
    };
    let look = &escape::LOOK;
    foot("cases passed", &|column| format!("{} of {}", column.cases_passed, column.cases));
    foot("score", &|column| figures::score(column.score, look));
    if matrix.columns.iter().any(|column| column.interval.is_some()) {
        foot("95 % interval", &|column| figures::interval(column.interval, look));
    }
    if matrix.columns.iter().any(|column| column.score_with_errors.is_some()) {
        foot("errors as failures", &|column| figures::score(column.score_with_errors.or(column.score), look));
    }
    foot("completed", &|column| figures::completion(column, look));
    foot("median time, cost, tokens", &|column| figures::taken(&column.figures, look).join(" · "));
    out.push_str("</tfoot>\n</table></div>\n");
    out
}

/// Returns the verdicts that occur, with the number of trials.
fn counts(report: &Report, places: &Places<'_>) -> Vec<(&'static str, usize)> {
    let summary = &report.summary;
    let running = places.trials.iter().filter(|trial| trial.word() == "running").count();
    let all = [
        ("pass", summary.pass),
        ("fail", summary.fail),
        ("ungraded", summary.ungraded),
        ("errored", summary.errored),
        ("skipped", summary.skipped),
        ("running", running),
        ("not run", summary.not_run.saturating_sub(running)),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn cell(cell: &Cell, places: &Places<'_>) -> String {
    let trials: Vec<&Trial<'_>> = places.of_cell(&cell.id).collect();
    let open = if trials.iter().any(|trial| trial.word() == "running") { "running" } else { "not run" };
    let word = cell.verdict.map_or(open, Verdict::word);
    let mut words: Vec<&str> = trials.iter().map(|trial| trial.word()).collect();
    words.dedup();
    let passed = match cell.tally.trials {
        0 | 1 => String::new(),
        all => format!(" <span class=\"m-quiet\">{}/{all}</span>", cell.tally.passed),
    };
    let score = cell.score.map(|score| format!(" <span class=\"m-quiet\">{}</span>", text(&rounding::share(score))));
    let taken = figures::taken(&cell.figures, &escape::LOOK);
    let known: Vec<&str> = taken.iter().map(String::as_str).filter(|it| *it != escape::LOOK.unknown()).collect();
    let mut out = format!("<td data-verdicts=\"{}\">", words.join(","));
    if let [only] = trials.as_slice() {
        let _ = write!(out, "<a class=\"verdict v-{}\" href=\"#/{}\">{word}</a>", class(word), only.place);
    } else {
        let _ = write!(out, "<span class=\"verdict v-{}\">{word}</span>", class(word));
    }
    let in_quarantine = cell.quarantine.as_ref().map(|_| " <span class=\"tag\">in quarantine</span>");
    let _ = write!(out, "{passed}{}{}", score.unwrap_or_default(), in_quarantine.unwrap_or_default());
    if !known.is_empty() {
        let _ = write!(out, " <span class=\"taken\">{}</span>", text(&known.join(" · ")));
    }
    if trials.len() > 1 {
        out.push_str(" <span class=\"trials\">");
        for trial in trials {
            // A verdict that is that of the cell is not repeated to the eye.
            let (own, seen) = (trial.word(), if trial.word() == word { " class=\"unseen\"" } else { "" });
            let _ = write!(
                out,
                "<a class=\"v-{}\" href=\"#/{}\">{}<span{seen}> {own}</span></a> ",
                class(own),
                trial.place,
                trial.id.trial
            );
        }
        out.push_str("</span>");
    }
    out.push_str("</td>");
    out
}

/// Returns the class of a verdict's word.
fn class(word: &str) -> String {
    word.replace(' ', "-")
}

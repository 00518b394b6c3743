//! The history of cells as one HTML file: charts and tables of score, passed trials, cost and time over the runs. It has
//! no script.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::charts::{WIDTH, dot, figure, label, line};
use super::shell::{self, Asks};
use crate::ids::column_name;
use crate::report::escape::{LOOK, bounded, html as text};
use crate::report::figures;
use crate::report::history::{CellHistory, History, Point};
use crate::report::text::{duration, money, plural};
use crate::rounding::share;
use crate::trace::amount::Amount;

/// The maximum number of runs in a chart, the newest ones.
const MAX_RUNS: usize = 120;
/// The maximum number of runs of a cell whose table is open at first.
const OPEN: usize = 20;
/// The maximum number of characters of a name within a chart.
const MAX_NAME_CHARS: usize = 80;
/// The title of the chart that shows which runs were flaky.
const PASSED: &str = "Passed trials";
/// The left edge of a chart.
const LEFT: f64 = 64.0;
/// The right edge of a chart.
const RIGHT: f64 = WIDTH - 16.0;
/// The upper edge of a chart. Above it are the words of marks.
const TOP: f64 = 34.0;
/// The lower edge of a chart.
const BOTTOM: f64 = 154.0;

/// Writes the history as one HTML file.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(history: &History, out: &mut dyn Write) -> io::Result<()> {
    shell::head("History", &shell::policy(None, Asks::Nobody), out)?;
    let runs: BTreeSet<&str> = history.cells.iter().flat_map(|cell| &cell.points).map(|point| &*point.run).collect();
    writeln!(
        out,
        "<main id=\"history\">\n<h1>History</h1>\n<p class=\"facts\">{} · {}</p>",
        plural(history.cells.len(), "cell"),
        plural(runs.len(), "run")
    )?;
    out.write_all(legend(history).as_bytes())?;
    out.write_all(overview(history).as_bytes())?;
    for (number, cell) in history.cells.iter().enumerate() {
        out.write_all(section(number, cell).as_bytes())?;
    }
    out.write_all(b"</main>\n</body>\n</html>\n")
}

/// Explains the marks that occur.
fn legend(history: &History) -> String {
    let has = |of: fn(&Point) -> bool| history.cells.iter().any(|cell| cell.points.iter().any(of));
    let mut lines = Vec::new();
    if has(|point| !point.breaks.is_empty()) {
        lines.push(
            "A dashed line marks a change after which figures do not compare with those before: of the case (with its \
             graders and files), of the agent, of a file that a grader compares with, or of the prices.",
        );
    }
    if has(|point| point.quarantined) {
        lines.push("q, and a hollow point: the case was in quarantine, and its verdicts did not count.");
    }
    if has(|point| point.flaky) {
        lines.push("f, flaky: some trials of the run passed, and some failed.");
    }
    let gap = |cell: &CellHistory, of: fn(&Point) -> bool| cell.points.iter().any(of) && !cell.points.iter().all(of);
    let gaps = |cell: &CellHistory| {
        gap(cell, |point| point.score.is_some())
            || gap(cell, |point| point.cost().is_some())
            || gap(cell, |point| point.duration_ms.is_some())
    };
    if history.cells.iter().any(gaps) || has(|point| point.score.is_none()) {
        lines.push("x: the figure is unknown. A cell that was errored throughout has no score in the run.");
    }
    let lines: String = lines.iter().map(|line| format!("<li>{line}</li>\n")).collect();
    if lines.is_empty() { lines } else { format!("<ul class=\"notes\">\n{lines}</ul>\n") }
}

/// Renders a row for each cell, with its newest figures.
fn overview(history: &History) -> String {
    let mut out = String::from(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"All cells\"><table class=\"matrix\">\n<thead><tr><th scope=\"col\">case</th><th scope=\"col\">column</th>\
         <th scope=\"col\" class=\"num\">runs</th><th scope=\"col\" class=\"num\">last score</th>\
         <th scope=\"col\" class=\"num\">passed</th><th scope=\"col\" class=\"num\">time</th>\
         <th scope=\"col\" class=\"num\">cost</th><th scope=\"col\">flaky</th></tr></thead>\n<tbody>\n",
    );
    for (number, cell) in history.cells.iter().enumerate() {
        let Some(last) = cell.points.last() else { continue };
        let flaky = cell.points.iter().filter(|point| point.flaky).count();
        let flaky = if flaky == 0 { String::new() } else { format!("{flaky} of {}", plural(cell.points.len(), "run")) };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#cell-{number}\">{}</a></th><td>{}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td>{flaky}</td></tr>",
            text(&cell.id.case),
            text(&column_name(&cell.id.harness, &cell.id.arm)),
            cell.points.len(),
            text(&figures::score(last.score, &LOOK)),
            passed(last),
            time(last),
            cost(last),
        );
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

fn passed(point: &Point) -> String {
    point.passed()
}

fn time(point: &Point) -> String {
    point.duration_ms.map_or_else(|| LOOK.unknown().to_owned(), duration)
}

fn cost(point: &Point) -> String {
    text(&figures::cost(point.cost(), &LOOK))
}

/// Renders the charts and the table of a cell.
fn section(number: usize, cell: &CellHistory) -> String {
    let name = format!("{} · {}", cell.id.case, column_name(&cell.id.harness, &cell.id.arm));
    let shown = cell.points.get(cell.points.len().saturating_sub(MAX_RUNS)..).unwrap_or_default();
    let charts: Vec<String> = [
        chart(&name, "Score", shown, |point| point.score, Axis::Share, share),
        chart(
            &name,
            PASSED,
            shown,
            |point| (point.trials > 0).then(|| point.passes as f64 / point.trials as f64),
            Axis::Share,
            share,
        ),
        chart(&name, "Cost", shown, |point| point.cost().map(Amount::value), Axis::From(0.01), money),
        chart(
            &name,
            "Median time",
            shown,
            |point| point.duration_ms.map(|ms| ms as f64),
            Axis::From(10.0),
            |ms| duration(ms.round() as u64),
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let cut = match cell.points.len().saturating_sub(MAX_RUNS) {
        0 => String::new(),
        earlier => format!(
            "<p class=\"m-quiet\">The charts show the newest {MAX_RUNS} runs; {earlier} earlier ones are in the table.</p>\n"
        ),
    };
    let open = if cell.points.len() <= OPEN { " open" } else { "" };
    format!(
        "<section id=\"cell-{number}\">\n<h2>{}</h2>\n<div class=\"charts\">\n{}</div>\n{cut}\
         <details class=\"fold\"{open}><summary>{} of {}</summary>\n{}</details>\n</section>\n",
        text(&name),
        charts.join(""),
        plural(cell.points.len(), "run"),
        text(&name),
        table(&name, cell)
    )
}

fn table(name: &str, cell: &CellHistory) -> String {
    // A part that can be scrolled must be reached with the keyboard.
    let mut out = format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">", text(name));
    out.push_str(
        "<table>\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\">started</th>\
         <th scope=\"col\" class=\"num\">score</th><th scope=\"col\" class=\"num\">passed</th>\
         <th scope=\"col\" class=\"num\">time</th><th scope=\"col\" class=\"num\">cost</th><th scope=\"col\">marks</th>\
         </tr></thead>\n<tbody>\n",
    );
    for point in &cell.points {
        let score = if point.score.is_none() { "x".to_owned() } else { text(&figures::score(point.score, &LOOK)) };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"num\">{score}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            text(&point.run),
            text(&point.at),
            passed(point),
            time(point),
            cost(point),
            marks(point).join(", "),
        );
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// Returns remarks that a reader must know about a point.
fn marks(point: &Point) -> Vec<String> {
    let mut marks: Vec<String> = point.breaks.iter().map(|it| format!("{} changed", it.word())).collect();
    marks.extend(point.flaky.then(|| "flaky".to_owned()));
    marks.extend(point.quarantined.then(|| "in quarantine (q)".to_owned()));
    marks
}

/// The vertical axis of a chart.
#[derive(Debug, Clone, Copy)]
enum Axis {
    /// The axis reaches from 0 to 1.
    Share,
    /// The axis reaches from 0 to the highest value, and at least to this value, so that the ticks differ.
    From(f64),
}

/// Draws a figure over the runs. `None` if no run has it.
fn chart(
    name: &str,
    title: &str,
    points: &[Point],
    of: impl Fn(&Point) -> Option<f64>,
    axis: Axis,
    display: impl Fn(f64) -> String,
) -> Option<String> {
    let shows_flaky = title == PASSED;
    let values: Vec<Option<f64>> = points.iter().map(of).collect();
    let highest = values.iter().flatten().copied().fold(0.0, f64::max);
    if values.iter().all(Option::is_none) {
        return None;
    }
    let most = match axis {
        Axis::Share => 1.0,
        Axis::From(least) => (highest * 1.1).max(least),
    };
    let x = |at: usize| match points.len() {
        0 | 1 => (LEFT + RIGHT) / 2.0,
        count => LEFT + 8.0 + at as f64 / (count - 1) as f64 * (RIGHT - LEFT - 16.0),
    };
    let y = |value: f64| BOTTOM - (value / most).clamp(0.0, 1.0) * (BOTTOM - TOP);
    let mut out = String::new();
    for tick in [0.0, 0.5, 1.0] {
        out.push_str(&line(LEFT, y(most * tick), RIGHT, y(most * tick), "grid"));
        out.push_str(&label(LEFT - 6.0, y(most * tick) + 4.0, "end", "tick", &display(most * tick)));
    }
    // Only neighbours that compare are joined.
    for (at, (pair, next)) in values.windows(2).zip(points.iter().skip(1)).enumerate() {
        if let ([Some(one), Some(other)], true) = (pair, next.breaks.is_empty()) {
            out.push_str(&line(x(at), y(*one), x(at + 1), y(*other), "series s0"));
        }
    }
    let mut free = 0.0;
    for (at, point) in points.iter().enumerate().filter(|(_, point)| !point.breaks.is_empty()) {
        let words: Vec<&str> = point.breaks.iter().map(|it| it.word()).collect();
        let words = words.join(", ");
        let middle = if at == 0 { x(0) - 6.0 } else { f64::midpoint(x(at - 1), x(at)) };
        out.push_str(&line(middle, TOP - 14.0, middle, BOTTOM, "break"));
        // Words that would cover others are in the table alone.
        let width = words.len() as f64 * 6.2;
        if middle - width / 2.0 > free {
            let from = (middle - width / 2.0).clamp(0.0, WIDTH - width);
            out.push_str(&label(from, TOP - 19.0, "start", "tick", &words));
            free = from + width + 4.0;
        }
    }
    let mut about = Vec::new();
    for (at, (value, point)) in values.iter().zip(points).enumerate() {
        let run = bounded(&point.run, MAX_NAME_CHARS);
        let mut text = vec![format!("{run}: {}", value.map_or_else(|| "unknown".to_owned(), &display))];
        text.extend(marks(point));
        let text = text.join(", ");
        match value {
            Some(value) => {
                let class = if point.quarantined { "point aside" } else { "point" };
                out.push_str(&dot(x(at), y(*value), 4.0, class, &text));
                if point.quarantined {
                    out.push_str(&label(x(at), y(*value) - 8.0, "middle", "tick", "q"));
                } else if point.flaky && shows_flaky {
                    out.push_str(&label(x(at), y(*value) - 8.0, "middle", "tick", "f"));
                }
            }
            None => out.push_str(&label(x(at), BOTTOM - 4.0, "middle", "tick", "x")),
        }
        about.push(text);
    }
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let day = |point: &Point| point.at.chars().take(10).collect::<String>();
        out.push_str(&label(LEFT, BOTTOM + 18.0, "start", "tick", &day(first)));
        if points.len() > 1 {
            out.push_str(&label(RIGHT, BOTTOM + 18.0, "end", "tick", &day(last)));
        }
    }
    let about = format!("{title} of {}: {}", bounded(name, MAX_NAME_CHARS), about.join("; "));
    Some(figure(title, &about, BOTTOM + 26.0, &out))
}

//! The charts of the HTML report as inline SVG: scores with intervals, cost against score, times and tokens, pass@k.

use std::fmt::Write as _;

use super::cost_points::{self, CostPoints};
use crate::ids::CellId;
use crate::report::Report;
use crate::report::cells::Column;
use crate::report::escape::{LOOK, html as text};
use crate::report::text::{count, duration, money, short_name};
use crate::report::whole::WholeReport;
use crate::rounding::share;
use crate::statistics::attempts::pass_at_k;
use crate::statistics::figures::quantile;
use crate::statistics::means::mean;
use crate::text::plural;
use crate::verdict::Verdict;

/// The width of a chart, in units of its view box.
pub(super) const WIDTH: f64 = 560.0;
/// The width of the names at the left.
const NAMES_WIDTH: f64 = 190.0;
/// The height of a row.
const ROW: f64 = 26.0;
/// The maximum number of columns of a chart.
const MAX_COLUMNS: usize = 24;
/// The maximum number of characters of a name, which fit [`NAMES_WIDTH`].
const MAX_NAME_CHARS: usize = 26;

/// Renders all charts that have something to show.
pub fn all(report: WholeReport<'_>) -> String {
    let charts: Vec<String> = [
        scores(&report),
        cost_and_score(&report),
        spread(
            report,
            "Time per trial",
            |result| result.duration_ms().map(|it| it as f64),
            |ms| duration(ms.round() as u64),
        ),
        spread(
            report,
            "Tokens per trial",
            |result| result.metrics.tokens().and_then(|it| it.exact()).map(|it| it as f64),
            |tokens| count(tokens.round() as u64),
        ),
        attempts(&report),
    ]
    .into_iter()
    .flatten()
    .collect();
    if charts.is_empty() {
        String::new()
    } else {
        format!("<h2>Charts</h2>\n<div class=\"charts\">\n{}</div>\n", charts.join(""))
    }
}

fn shown(report: &Report) -> &[Column] {
    report.columns.get(..report.columns.len().min(MAX_COLUMNS)).unwrap_or_default()
}

/// Returns the name of a column for a chart: without the harness if all columns have the same, and cut in the middle.
fn name(report: &Report, column: &Column) -> String {
    let is_shared = report.columns.len() > 1 && report.columns.iter().all(|it| it.id.harness == column.id.harness);
    let whole = if is_shared { column.id.arm.clone() } else { column.id.to_string() };
    short_name(&whole, MAX_NAME_CHARS, &LOOK)
}

/// Groups parts of a chart under a tooltip, which names the column in full.
fn group(title: &str, content: &str) -> String {
    format!("<g><title>{}</title>\n{content}</g>\n", text(title))
}

/// Wraps the content of a chart. `about` says in words what the chart shows.
pub(super) fn figure(title: &str, about: &str, height: f64, content: &str) -> String {
    format!(
        "<figure class=\"chart\"><figcaption>{}</figcaption>\n\
         <svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\">\n{content}</svg></figure>\n",
        text(title),
        text(about)
    )
}

/// Returns the horizontal position of a value from 0 to 1, on an axis to the right of the names.
fn across(part: f64) -> f64 {
    NAMES_WIDTH + 10.0 + part.clamp(0.0, 1.0) * (WIDTH - NAMES_WIDTH - 80.0)
}

pub(super) fn label(x: f64, y: f64, anchor: &str, class: &str, content: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>\n", text(content))
}

pub(super) fn line(x1: f64, y1: f64, x2: f64, y2: f64, class: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>\n")
}

pub(super) fn dot(x: f64, y: f64, r: f64, class: &str, title: &str) -> String {
    format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r}\" class=\"{class}\"><title>{}</title></circle>\n", text(title))
}

fn scores(report: &Report) -> Option<String> {
    let columns: Vec<&Column> = shown(report).iter().filter(|column| column.score.is_some()).collect();
    if columns.is_empty() {
        return None;
    }
    let bottom = ROW * columns.len() as f64 + 8.0;
    let mut out = String::new();
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        out.push_str(&line(across(tick), 4.0, across(tick), bottom, "grid"));
        out.push_str(&label(across(tick), bottom + 16.0, "middle", "tick", &share(tick)));
    }
    for (number, column) in columns.iter().enumerate() {
        let y = ROW * number as f64 + 18.0;
        let score = column.score.unwrap_or_default();
        let mut row = label(NAMES_WIDTH, y + 4.0, "end", "name", &name(report, column));
        let mut title = format!("{}: {}", column.id, share(score));
        if let Some(interval) = column.interval {
            row.push_str(&line(across(interval.low), y, across(interval.high), y, "interval"));
            for end in [interval.low, interval.high] {
                row.push_str(&line(across(end), y - 5.0, across(end), y + 5.0, "interval"));
            }
            title = format!("{title}, 95 % interval {} to {}", share(interval.low), share(interval.high));
        }
        row.push_str(&dot(across(score), y, 5.0, "point", &title));
        row.push_str(&label(WIDTH, y + 4.0, "end", "value", &share(score)));
        out.push_str(&group(&title, &row));
    }
    let about = columns.iter().map(|it| format!("{} {}", it.id, share(it.score.unwrap_or_default())));
    Some(figure("Score with 95 % interval", &about.collect::<Vec<_>>().join("; "), bottom + 24.0, &out))
}

/// Draws cost against score, and the line of the columns that no other column beats in both.
fn cost_and_score(report: &Report) -> Option<String> {
    let CostPoints { points, cases, is_part } = cost_points::points(&report.cells, shown(report));
    if points.len() < 2 {
        return None;
    }
    let (left, right, top, bottom) = (50.0, WIDTH - 20.0, 14.0, 214.0);
    let most = points.iter().map(|it| it.0).fold(0.0, f64::max).max(1e-9) * 1.1;
    let (x, y) = (|cost: f64| left + cost / most * (right - left), |score: f64| bottom - score * (bottom - top));
    let mut out = String::new();
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        out.push_str(&line(left, y(tick), right, y(tick), "grid"));
        out.push_str(&label(left - 6.0, y(tick) + 4.0, "end", "tick", &share(tick)));
        // The last label would not fit around the end of the axis.
        let (at, anchor) = if tick < 1.0 { (x(most * tick), "middle") } else { (WIDTH, "end") };
        out.push_str(&label(at, bottom + 16.0, anchor, "tick", &money(most * tick)));
    }
    let mut front: Vec<(f64, f64, &Column)> = points
        .iter()
        .copied()
        .filter(|it| !points.iter().any(|at| at.0 <= it.0 && at.1 >= it.1 && (at.0 < it.0 || at.1 > it.1)))
        .collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let path: Vec<String> = front.iter().map(|it| format!("{:.1},{:.1}", x(it.0), y(it.1))).collect();
    let _ = writeln!(out, "<polyline points=\"{}\" class=\"front\"/>", path.join(" "));
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (cost, score, column) in &points {
        let title = format!("{}: {} per trial, score {}", column.id, money(*cost), share(*score));
        out.push_str(&dot(x(*cost), y(*score), 5.0, "point", &title));
        let (name, is_right) = (name(report, column), x(*cost) > WIDTH * 0.6);
        let width = name.chars().count() as f64 * 6.6;
        let from = if is_right { x(*cost) - 9.0 - width } else { x(*cost) + 9.0 };
        // A name that would cover another or a point moves down.
        let mut at = y(*score) + 4.0;
        let covers = |at: f64| {
            let names = taken
                .iter()
                .any(|(left, right, other)| from < *right && from + width > *left && (other - at).abs() < 14.0);
            let dots = points
                .iter()
                .any(|it| x(it.0) > from - 5.0 && x(it.0) < from + width + 5.0 && (y(it.1) - at + 4.0).abs() < 10.0);
            names || dots
        };
        while covers(at) && at < bottom {
            at += 7.0;
        }
        taken.push((from, from + width, at));
        let (edge, anchor) = if is_right { (from + width, "end") } else { (from, "start") };
        out.push_str(&group(&title, &label(edge, at, anchor, "name", &name)));
    }
    let about = points.iter().map(|(cost, score, it)| format!("{}: {}, score {}", it.id, money(*cost), share(*score)));
    let about = format!(
        "{}; Pareto line: {}",
        about.collect::<Vec<_>>().join("; "),
        front.iter().map(|it| it.2.id.to_string()).collect::<Vec<_>>().join(", ")
    );
    let part = if is_part { format!(", in the {} that all completed", plural(cases, "case")) } else { String::new() };
    Some(figure(&format!("Cost per trial against score, with the Pareto line{part}"), &about, bottom + 24.0, &out))
}

/// Draws the distribution of a figure over the trials of each column: every trial, the quartiles and the median.
fn spread(
    report: WholeReport<'_>,
    title: &str,
    of: impl Fn(&crate::result::TrialResult) -> Option<f64>,
    display: impl Fn(f64) -> String,
) -> Option<String> {
    let mut rows: Vec<(&Column, Vec<f64>)> = Vec::new();
    for column in shown(&report) {
        let own = report.all_results().iter().filter(|it| it.harness == column.id.harness && it.arm == column.id.arm);
        let values: Vec<f64> = own.filter(|it| it.verdict != Verdict::Errored).filter_map(&of).collect();
        if !values.is_empty() {
            rows.push((column, values));
        }
    }
    let most = rows.iter().flat_map(|row| &row.1).copied().fold(0.0, f64::max);
    if most <= 0.0 || rows.iter().all(|row| row.1.len() < 2) {
        return None;
    }
    let bottom = ROW * rows.len() as f64 + 8.0;
    let mut out = String::new();
    for tick in [0.0, 0.5, 1.0] {
        out.push_str(&line(across(tick), 4.0, across(tick), bottom, "grid"));
        out.push_str(&label(across(tick), bottom + 16.0, "middle", "tick", &display(most * tick)));
    }
    let mut about = Vec::new();
    for (number, (column, values)) in rows.iter().enumerate() {
        let y = ROW * number as f64 + 18.0;
        let at = |q: f64| quantile(values, q).unwrap_or_default();
        let mut row = label(NAMES_WIDTH, y + 4.0, "end", "name", &name(&report, column));
        let (low, high) = (across(at(0.25) / most), across(at(0.75) / most));
        let _ = writeln!(
            row,
            "<rect x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" rx=\"2\" class=\"box\"/>",
            y - 7.0,
            (high - low).max(1.0)
        );
        // Equal positions are drawn once: a thousand trials need no thousand dots.
        let mut dots: Vec<u64> = values.iter().map(|value| (across(value / most) * 2.0) as u64).collect();
        dots.sort_unstable();
        dots.dedup();
        for x in dots {
            let _ = writeln!(row, "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"2\" class=\"trial\"/>", x as f64 / 2.0);
        }
        row.push_str(&line(across(at(0.5) / most), y - 9.0, across(at(0.5) / most), y + 9.0, "median"));
        row.push_str(&label(WIDTH, y + 4.0, "end", "value", &display(at(0.5))));
        let summary = format!(
            "{}: median {}, quartiles {} and {}",
            column.id,
            display(at(0.5)),
            display(at(0.25)),
            display(at(0.75))
        );
        out.push_str(&group(&summary, &row));
        about.push(summary);
    }
    Some(figure(&format!("{title}: median, quartiles and every trial"), &about.join("; "), bottom + 24.0, &out))
}

/// Draws pass@k over k, as the mean over cases, for k up to the number of trials of a case.
fn attempts(report: &Report) -> Option<String> {
    let mut lines: Vec<(&Column, Vec<f64>)> = Vec::new();
    for column in shown(report) {
        let cells = report
            .cells
            .iter()
            .filter(|cell| cell.id == CellId::new(&cell.id.case, &column.id.harness, &column.id.arm))
            .filter(|cell| cell.quarantine.is_none());
        let tried: Vec<(u64, u64)> = cells
            .map(|cell| ((cell.tally.passed + cell.tally.failed) as u64, cell.tally.passed as u64))
            .filter(|(trials, _)| *trials > 0)
            .collect();
        let most = tried.iter().map(|it| it.0).min().unwrap_or_default();
        let at = |k| mean(&tried.iter().filter_map(|(n, c)| pass_at_k(*n, *c, k)).collect::<Vec<_>>());
        let values: Vec<f64> = (1..=most).filter_map(at).collect();
        if values.len() > 1 {
            lines.push((column, values));
        }
    }
    let most = lines.iter().map(|it| it.1.len()).max()?;
    let (left, right, top, bottom) = (50.0, WIDTH - 20.0, 14.0, 174.0);
    let x = |k: usize| left + (k - 1) as f64 / (most - 1).max(1) as f64 * (right - left);
    let y = |part: f64| bottom - part * (bottom - top);
    let mut out = String::new();
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        out.push_str(&line(left, y(tick), right, y(tick), "grid"));
        out.push_str(&label(left - 6.0, y(tick) + 4.0, "end", "tick", &share(tick)));
    }
    for k in 1..=most {
        if most <= 12 || k == 1 || k == most || k % (most / 6).max(1) == 0 {
            out.push_str(&label(x(k), bottom + 16.0, "middle", "tick", &format!("k={k}")));
        }
    }
    let mut about = Vec::new();
    for (number, (column, values)) in lines.iter().enumerate() {
        let path: Vec<String> =
            values.iter().enumerate().map(|(at, it)| format!("{:.1},{:.1}", x(at + 1), y(*it))).collect();
        let class = format!("series s{}", number % 6);
        let _ = writeln!(out, "<polyline points=\"{}\" class=\"{class}\"/>", path.join(" "));
        let last = values.last().copied().unwrap_or_default();
        let at = bottom + 40.0 + 17.0 * number as f64;
        let title = |name: &str| format!("{name}: {} at k={}", share(last), values.len());
        let whole = title(&column.id.to_string());
        out.push_str(&dot(x(values.len()), y(last), 3.5, &format!("end s{}", number % 6), &whole));
        out.push_str(&line(left, at - 4.0, left + 22.0, at - 4.0, &class));
        let named = label(left + 30.0, at, "start", "name", &title(&name(report, column)));
        out.push_str(&group(&whole, &named));
        let figures: Vec<String> = values.iter().map(|it| share(*it)).collect();
        about.push(format!("{}: {}", column.id, figures.join(", ")));
    }
    let height = bottom + 34.0 + 17.0 * lines.len() as f64;
    Some(figure("pass@k: at least one of k trials passes", &about.join("; "), height, &out))
}

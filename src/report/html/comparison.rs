//! The comparison in the HTML report: the blocks of [`crate::report::compare`], and every case with links to its trials.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::Compared;
use super::places::Places;
use crate::compare::{Comparison, Pair};
use crate::ids::{CellId, ColumnId};
use crate::report::Report;
use crate::report::compare::page;
use crate::report::compare::words::{percent, points};
use crate::report::escape::html as text;
use crate::report::page::html as blocks;
use crate::rounding;

/// Renders the comparison.
pub fn section(report: &Report, compared: &Compared, places: &Places<'_>) -> String {
    let mut out = String::from("<main id=\"compare\" data-place=\"compare\" hidden>\n<h1>Comparison</h1>\n");
    match compared {
        Compared::Nothing => out.push_str(
            "<p>The run has a single arm and no baseline, so there is nothing to compare it with. \
             <code>evals baseline set</code> makes a run the baseline.</p>\n",
        ),
        Compared::Refused(why) => {
            let _ = writeln!(out, "<p>The run could not be compared: {}</p>", text(why));
        }
        Compared::With(comparison) => {
            let page = page::page(comparison, "±");
            out.push_str(&blocks::blocks(&page.blocks, &|_| None));
            cases(report, comparison, places, &mut out);
        }
    }
    out.push_str("</main>\n");
    out
}

/// Writes every case of every pair. The blocks above show the first ones only.
fn cases(report: &Report, comparison: &Comparison, places: &Places<'_>, out: &mut String) {
    let columns: HashMap<String, &ColumnId> =
        report.columns.iter().map(|column| (column.id.to_string(), &column.id)).collect();
    // If two runs are compared, the names of arms end with the label of the run or its ID.
    let run = &report.run;
    let ends: Vec<String> = run.label.iter().chain([&run.run]).map(|name| format!(" ({name})")).collect();
    let column = |name: &str| {
        let own = ends.iter().find_map(|end| name.strip_suffix(end.as_str())).unwrap_or(name);
        columns.get(own).copied()
    };
    for pair in &comparison.pairs {
        let _ = writeln!(out, "<h2>Case by case: {} and {}</h2>", text(&pair.old), text(&pair.new));
        rows(pair, column(&pair.old), column(&pair.new), places, out);
    }
}

fn rows(pair: &Pair, old: Option<&ColumnId>, new: Option<&ColumnId>, places: &Places<'_>, out: &mut String) {
    let _ = write!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Cases\"><table class=\"cases\">\n<thead><tr><th scope=\"col\">case</th><th scope=\"col\">{}</th>\
         <th scope=\"col\">{}</th><th scope=\"col\" class=\"num\">difference</th><th scope=\"col\" class=\"num\">adjusted p</th>\
         <th scope=\"col\">flags</th><th scope=\"col\">side by side</th></tr></thead>\n<tbody>\n",
        text(&pair.old),
        text(&pair.new)
    );
    for row in &pair.cases {
        let links = |column: Option<&ColumnId>| {
            let mut out = String::new();
            if let Some(column) = column {
                for trial in places.of_cell(&CellId::new(&row.case, &column.harness, &column.arm)) {
                    let word = trial.word();
                    let _ =
                        write!(out, " <a class=\"v-{word}\" href=\"#/{}\">{} {word}</a>", trial.place, trial.id.trial);
                }
            }
            out
        };
        let first = |column: Option<&ColumnId>| {
            let column = column?;
            places.of_cell(&CellId::new(&row.case, &column.harness, &column.arm)).next().map(|it| it.place.clone())
        };
        let beside = match (first(old), first(new)) {
            (Some(one), Some(other)) => format!("<a href=\"#/{one}/beside/{other}\">first trials</a>"),
            _ => String::new(),
        };
        let tried = |it: &crate::compare::cases::Tried| {
            format!("{}/{} <span class=\"m-quiet\">{}</span>", it.passed, it.judged, text(&percent(it.score)))
        };
        let mut flags: Vec<&str> = row.flags.iter().map(|flag| flag.word()).collect();
        flags.extend(row.critical.then_some("critical"));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}<span class=\"trials\">{}</span></td>\
             <td>{}<span class=\"trials\">{}</span></td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td>\
             <td>{beside}</td></tr>",
            text(&row.case),
            tried(&row.old),
            links(old),
            tried(&row.new),
            links(new),
            text(&points(row.delta)),
            row.p_adjusted.map(|p| text(&rounding::p_figure(p, 3))).unwrap_or_default(),
            flags.join(", "),
        );
    }
    out.push_str("</tbody></table></div>\n");
    for case in &pair.unpaired {
        let _ = writeln!(out, "<p class=\"m-quiet\">{}: not compared: {}</p>", text(&case.case), text(&case.text));
    }
}

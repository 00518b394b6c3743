//! Renders blocks of a page as HTML: text is escaped, and meanings become classes.

use std::fmt::Write as _;

use super::{Block, Detail, Entry, Meaning, Table, TableCell};
use crate::ids::TrialId;
use crate::report::escape::html as text;
use crate::statistics::gates::GateVerdict;

/// The link to a trial, if the document shows it.
pub type Link<'a> = &'a dyn Fn(&TrialId) -> Option<String>;

/// Renders blocks. The matrix of a run is a part of its own, as its cells are links.
pub fn blocks(blocks: &[Block], link: Link<'_>) -> String {
    blocks.iter().filter(|block| !block.is_empty()).map(|block| one(block, link)).collect()
}

pub fn class(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Plain => "plain",
        Meaning::Strong => "strong",
        Meaning::Name => "name",
        Meaning::Quiet => "quiet",
        Meaning::Good => "good",
        Meaning::Bad => "bad",
        Meaning::Open => "open",
        Meaning::Verdict(verdict) => verdict.word(),
    }
}

/// Returns the class of a gate's verdict.
pub fn gate_class(verdict: GateVerdict) -> &'static str {
    class(Meaning::from(verdict))
}

/// Returns a text with a meaning.
pub fn span(meaning: Meaning, content: &str) -> String {
    match meaning {
        Meaning::Plain => text(content),
        Meaning::Verdict(_) => format!("<span class=\"verdict v-{}\">{}</span>", class(meaning), text(content)),
        Meaning::Strong | Meaning::Name | Meaning::Quiet | Meaning::Good | Meaning::Bad | Meaning::Open => {
            format!("<span class=\"m-{}\">{}</span>", class(meaning), text(content))
        }
    }
}

fn one(block: &Block, link: Link<'_>) -> String {
    match block {
        Block::Verdict(meaning, verdict) => format!("<p class=\"lead\">{}</p>\n", span(*meaning, verdict)),
        Block::Heading(title) => format!("<h2>{}</h2>\n", text(title)),
        Block::Text(plain) => format!("<p>{}</p>\n", text(plain)),
        Block::Lines(lines) => {
            let lines: String = lines.iter().map(|line| format!("<li>{}</li>\n", text(line))).collect();
            format!("<ul class=\"notes\">\n{lines}</ul>\n")
        }
        Block::Table(content) => table(content),
        Block::Matrix(matrix) => table(&matrix.columns_table()),
        Block::Entries { title, entries, after } => {
            let shown: String = entries.iter().map(|it| entry(it, link)).collect();
            let after = after.as_ref().map(|after| format!("<p>{}</p>\n", text(after))).unwrap_or_default();
            format!("<details class=\"fold\" open><summary>{}</summary>\n{shown}{after}</details>\n", text(title))
        }
        Block::Folded(title, inner) => {
            format!("<details class=\"fold\"><summary>{}</summary>\n{}</details>\n", text(title), blocks(inner, link))
        }
    }
}

/// Renders a table. Figures are aligned at the right.
pub fn table(table: &Table) -> String {
    let mut out =
        String::from("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>\n<thead>");
    let row = |cells: &[TableCell], tag: &str| {
        let cell = |(number, cell): (usize, &TableCell)| {
            let right = if table.right.contains(&number) { " class=\"num\"" } else { "" };
            let (tag, scope) = if tag == "td" && number == 0 { ("th", " scope=\"row\"") } else { (tag, "") };
            let lines = cell.0.iter().map(|(meaning, line)| span(*meaning, line));
            format!("<{tag}{scope}{right}>{}</{tag}>", lines.collect::<Vec<_>>().join("<br>"))
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    out.push_str(&row(&table.head, "th"));
    out.push_str("</thead>\n<tbody>\n");
    table.rows.iter().for_each(|cells| out.push_str(&row(cells, "td")));
    out.push_str("</tbody>\n");
    if !table.foot.is_empty() {
        out.push_str("<tfoot>\n");
        table.foot.iter().for_each(|cells| out.push_str(&row(cells, "td")));
        out.push_str("</tfoot>\n");
    }
    out.push_str("</table></div>\n");
    out
}

fn entry(entry: &Entry, link: Link<'_>) -> String {
    let mut about: Vec<String> = entry.about.iter().map(|part| text(part)).collect();
    if let (Some(place), Some(first)) = (entry.trial.as_ref().and_then(link), about.first_mut()) {
        *first = format!("<a href=\"#/{}\">{first}</a>", text(&place));
    }
    let mut out = format!("<div class=\"entry\">\n<p>{} {}</p>\n", span(entry.meaning, &entry.word), about.join(" · "));
    entry.details.iter().for_each(|it| out.push_str(&detail(it)));
    for (label, copy) in &entry.copies {
        let _ =
            writeln!(out, "<p class=\"copy\"><span class=\"m-quiet\">{label}</span> <code>{}</code></p>", text(copy));
    }
    out.push_str("</div>\n");
    out
}

fn detail(detail: &Detail) -> String {
    let head = detail.head.as_ref().map(|(meaning, word, of)| format!("{} {} ", span(*meaning, word), text(of)));
    let mut out = format!("<p class=\"detail\">{}{}</p>\n", head.unwrap_or_default(), text(&detail.text));
    if !detail.lines.is_empty() {
        let lines: Vec<String> = detail.lines.iter().map(|(meaning, line)| span(*meaning, line)).collect();
        let _ = writeln!(out, "<pre>{}</pre>", lines.join("\n"));
    }
    out
}

//! Renders a page as Markdown, for pull requests: the verdict first, details folded, and no longer than a comment.

use std::io::{self, Write};

use super::{Block, Detail, Entry, Meaning, Page, Standing, Table, TableCell};
use crate::report::escape::{block, code, inline, plain};
use crate::report::text::plural;
use crate::statistics::gates::GateVerdict;

/// The maximum length of a comment on the services, in characters. The report counts bytes, which are never
/// fewer.
pub const COMMENT: usize = 65_536;
/// The maximum number of characters of the reasons of an entry.
const REASONS: usize = 1_500;
/// The maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 120;
/// The maximum number of characters of a line.
const MAX_LINE_CHARS: usize = 4_000;
/// The space reserved for the text that states what was left out.
const RESERVE: usize = 500;

/// Writes a page that fits a comment.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(text(page, COMMENT).as_bytes())
}

/// Returns a page with a maximum number of bytes, or an empty text if there is no room.
pub fn text(page: &Page, most: usize) -> String {
    let Some(room) = most.checked_sub(RESERVE) else { return String::new() };
    let mut text = Text { text: String::new(), room, cut: false };
    if let Some(standing) = &page.standing {
        text.add(&verdict(standing));
    }
    page.blocks.iter().for_each(|block| one(block, &mut text));
    // The table of all cases is long, and its verdicts are already shown above.
    for matrix in page.blocks.iter().filter_map(|it| if let Block::Matrix(matrix) = it { Some(matrix) } else { None }) {
        folded_table(&plural(matrix.cases().len(), "case"), &matrix.cases_table(), &mut text);
    }
    if text.cut {
        let everything = inline(&page.everything, 200);
        text.text.push_str(&format!("Some of it was left out for its length; {everything} has everything.\n"));
    }
    text.text
}

/// Returns a table with nothing around it.
pub fn table(table: &Table) -> String {
    head(table) + &table.rows.iter().map(|cells| row(table, cells)).collect::<String>()
}

/// A text with a maximum length.
struct Text {
    text: String,
    room: usize,
    cut: bool,
}

impl Text {
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

fn verdict(standing: &Standing) -> String {
    let sign = match standing.verdict {
        GateVerdict::Pass if standing.compares_itself => "",
        GateVerdict::Pass => "✅ ",
        GateVerdict::Fail => "❌ ",
        GateVerdict::Inconclusive => "⚠️ ",
    };
    let decisions: String = standing.decisions.iter().map(|(_, line)| format!("{}\n\n", inline(line, 400))).collect();
    let label = standing.label.as_ref().map(|label| format!(" {}", code(label, MAX_NAME_CHARS))).unwrap_or_default();
    let counts: Vec<&str> = standing.counts.iter().map(|(_, part)| part.as_str()).collect();
    let [.., trials] = &standing.size;
    format!(
        "### {sign}evals: {}\n\n{decisions}Run {}{label} of {}: {} of {trials}.\n\n",
        standing.title,
        code(&standing.run, MAX_NAME_CHARS),
        inline(standing.started.get(..10).unwrap_or(&standing.started), 40),
        counts.join(", ")
    )
}

fn one(block: &Block, text: &mut Text) {
    if block.is_empty() {
        return;
    }
    match block {
        Block::Verdict(_, verdict) => drop(text.add(&format!("**{}**\n\n", inline(verdict, MAX_LINE_CHARS)))),
        Block::Heading(title) => drop(text.add(&format!("### {}\n\n", inline(title, MAX_LINE_CHARS)))),
        Block::Text(plain) => drop(text.add(&format!("{}\n\n", inline(plain, MAX_LINE_CHARS)))),
        Block::Lines(lines) => {
            let lines: String = lines.iter().map(|line| format!("- {}\n", inline(line, MAX_LINE_CHARS))).collect();
            text.add(&(lines + "\n"));
        }
        Block::Table(table) => text.fold(&head(table), table.rows.iter().map(|cells| row(table, cells)), "\n"),
        Block::Matrix(matrix) => one(&Block::Table(matrix.columns_table()), text),
        Block::Folded(title, blocks) => {
            // A fold is shown completely or not at all, so that its end is never missing.
            let mut inner = Text { text: String::new(), room: usize::MAX, cut: false };
            blocks.iter().for_each(|block| one(block, &mut inner));
            text.add(&format!("{}{}</details>\n\n", summary(title), inner.text));
        }
        Block::Entries { title, entries, after } => {
            let after =
                after.as_ref().map(|after| format!("{}\n\n", inline(after, MAX_LINE_CHARS))).unwrap_or_default();
            text.fold(&summary(title), entries.iter().map(entry), &format!("{after}\n</details>\n\n"));
        }
    }
}

fn folded_table(title: &str, table: &Table, text: &mut Text) {
    if !table.rows.is_empty() {
        text.fold(&(summary(title) + &head(table)), table.rows.iter().map(|cells| row(table, cells)), "\n</details>\n");
    }
}

fn summary(title: &str) -> String {
    format!("<details><summary>{}</summary>\n\n", inline(title, MAX_LINE_CHARS))
}

fn entry(entry: &Entry) -> String {
    let mut about = entry.about.iter();
    let first = about.next().map(|name| format!("**{}**", code(name, MAX_NAME_CHARS))).unwrap_or_default();
    let rest: String = about.map(|part| format!(" · {}", code(part, MAX_NAME_CHARS))).collect();
    let mut text = format!("{}: {first}{rest}\n", inline(&entry.word, MAX_NAME_CHARS));
    // Events of a trace are in the trace.
    let shown = |detail: &Detail| {
        let lines = detail.lines.iter().filter(|(meaning, _)| *meaning == Meaning::Plain).map(|(_, line)| line.clone());
        std::iter::once(detail.line()).chain(lines).collect::<Vec<_>>()
    };
    let lines: Vec<String> = entry.details.iter().flat_map(shown).collect();
    if !lines.is_empty() {
        text.push_str(&format!("{}\n\n", block(&lines.join("\n"), REASONS)));
    }
    for (_, command) in entry.copies.iter().filter(|(label, _)| *label == "show") {
        text.push_str(&format!("{}\n\n", code(command, 1_000)));
    }
    text
}

fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn head(table: &Table) -> String {
    let rule: Vec<String> =
        (0..table.head.len()).map(|n| if table.right.contains(&n) { "---:" } else { "---" }.to_owned()).collect();
    let names = table.head.iter().flat_map(|cell| &cell.0).map(|(meaning, text)| match meaning {
        Meaning::Name => code(text, MAX_NAME_CHARS),
        _ => plain(text),
    });
    format!("{}{}", line(&names.collect::<Vec<_>>()), line(&rule))
}

fn row(table: &Table, cells: &[TableCell]) -> String {
    let cell = |(number, cell): (usize, &TableCell)| {
        let lines = cell.0.iter().map(|(meaning, text)| match meaning {
            Meaning::Name => code(text, MAX_NAME_CHARS),
            // `evals` wrote the figures.
            _ if table.right.contains(&number) => text.clone(),
            _ => inline(text, MAX_LINE_CHARS),
        });
        lines.collect::<Vec<_>>().join(" ")
    };
    line(&cells.iter().enumerate().map(cell).collect::<Vec<_>>())
}

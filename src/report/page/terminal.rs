//! Renders a page for a terminal, or as plain text.

use std::io::{self, Write};

use anstyle::Style;

use super::{Block, Entry, Meaning, Page, Standing};
use crate::report::text::{BOLD, DIM, GREEN, Look, RED, YELLOW, harmless, plural, verdict_style, width_of, wrap};
use crate::report::{Summary, grid};

/// The maximum number of lines shown of a text.
const MAX_TEXT_LINES: usize = 20;

/// The maximum number of entries shown under a title.
const WHOLE: usize = 20;

pub fn style(meaning: Meaning) -> Style {
    match meaning {
        Meaning::Plain | Meaning::Name => Style::new(),
        Meaning::Strong => BOLD,
        Meaning::Quiet => DIM,
        Meaning::Good => GREEN,
        Meaning::Bad => RED,
        Meaning::Open => YELLOW,
        Meaning::Verdict(verdict) => verdict_style(verdict),
    }
}

/// Writes a page. The result of a run comes last, where it stays visible in a terminal.
///
/// # Errors
/// Returns an error if the output could not be written.
pub fn write(page: &Page, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    if let Some(standing) = &page.standing {
        let label = standing.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        let shard = standing.shard.map(|shard| format!(", shard {shard}")).unwrap_or_default();
        let title = format!("run {}{label}{shard}: {}", standing.run, standing.size.join(", "));
        text(&title, BOLD, look, out)?;
        writeln!(out)?;
    }
    blocks(&page.blocks, look, out)?;
    page.standing.as_ref().map_or(Ok(()), |standing| closing(standing, look, out))
}

/// Writes blocks.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn blocks(blocks: &[Block], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut before: Option<&Block> = None;
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        match (before, block) {
            (Some(Block::Table(_)), Block::Table(_)) | (Some(Block::Matrix(_)), _) => writeln!(out)?,
            _ => {}
        }
        one(block, matches!(before, None | Some(Block::Matrix(_))), look, out)?;
        before = Some(block);
    }
    Ok(())
}

fn one(block: &Block, first: bool, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Verdict(meaning, verdict) => text(verdict, style(*meaning).bold(), look, out),
        Block::Text(plain) => text(plain, Style::new(), look, out),
        Block::Heading(title) => {
            writeln!(out)?;
            text(title, BOLD, look, out)
        }
        Block::Lines(lines) => {
            for text in lines {
                for (n, line) in wrap(text, look.columns() - 2).iter().enumerate() {
                    writeln!(out, "{} {line}", if n == 0 { look.sign("·", "-") } else { " " })?;
                }
            }
            Ok(())
        }
        Block::Table(table) => grid::write(table, look, out),
        Block::Matrix(matrix) => matrix.tables(look).iter().enumerate().try_for_each(|(n, table)| {
            if n > 0 {
                writeln!(out)?;
            }
            grid::write(table, look, out)
        }),
        Block::Folded(title, inner) => {
            writeln!(out)?;
            text(title, BOLD, look, out)?;
            blocks(inner, look, out)
        }
        Block::Entries { title, entries, after } => {
            // A quiet entry contains no more than its row of the table.
            let shown: Vec<&Entry> = entries.iter().filter(|entry| entry.meaning != Meaning::Quiet).collect();
            if shown.is_empty() {
                return Ok(());
            }
            if !first {
                writeln!(out)?;
            }
            text(title, BOLD, look, out)?;
            for shown in shown.iter().take(WHOLE) {
                if !shown.copies.is_empty() {
                    writeln!(out)?;
                }
                entry(shown, look, out)?;
            }
            if let Some(more) = shown.len().checked_sub(WHOLE).filter(|more| *more > 0) {
                writeln!(out, "and {more} more; `--format json` has them all")?;
            }
            match after {
                Some(after) => text(after, Style::new(), look, out),
                None => Ok(()),
            }
        }
    }
}

fn text(text: &str, style: Style, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    wrap(text, look.columns()).iter().try_for_each(|line| writeln!(out, "{}", look.paint(style, line)))
}

/// Writes an entry: its subject, its reasons, and commands and paths to copy.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn entry(entry: &Entry, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let wide = width_of(&entry.word);
    let mut lines = wrap(&entry.about.join("  "), look.columns().saturating_sub(wide + 2)).into_iter();
    let (word, first) = (look.paint(style(entry.meaning).bold(), &entry.word), lines.next().unwrap_or_default());
    writeln!(out, "{word}  {}", look.paint(BOLD, &first))?;
    for line in lines {
        writeln!(out, "{:wide$}  {line}", "")?;
    }
    for detail in &entry.details {
        let mut indent = 2;
        if let Some((meaning, word, of)) = &detail.head {
            let mut lines = wrap(of, look.columns().saturating_sub(word.len() + 3)).into_iter();
            let first = lines.next().unwrap_or_default();
            writeln!(out, "  {} {}", look.paint(style(*meaning), word), look.paint(BOLD, &first))?;
            lines.try_for_each(|line| writeln!(out, "    {line}"))?;
            indent = 4;
        }
        paragraph(&detail.text, indent, look, out)?;
        for (meaning, line) in &detail.lines {
            for line in wrap(line, look.columns().saturating_sub(4)) {
                writeln!(out, "    {}", look.paint(style(*meaning), &line))?;
            }
        }
    }
    // Paths and commands are never wrapped, so that they can be copied.
    for (label, text) in &entry.copies {
        writeln!(out, "  {} {}", look.paint(DIM, &format!("{label:<9}")), harmless(text))?;
    }
    Ok(())
}

/// Writes wrapped and indented prose; long text is cut.
fn paragraph(text: &str, indent: usize, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let lines = wrap(text, look.columns().saturating_sub(indent));
    for line in lines.iter().take(MAX_TEXT_LINES) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    let more = lines.len().saturating_sub(MAX_TEXT_LINES);
    if more > 0 {
        writeln!(out, "{:indent$}{} {}", "", look.ellipsis(), plural(more, "more line"))?;
    }
    Ok(())
}

/// Returns the counts of a summary that are not zero, with colours.
pub fn counts(summary: &Summary, look: &Look) -> String {
    let parts = summary.parts().into_iter().map(|(meaning, part)| look.paint(style(meaning), &part));
    parts.collect::<Vec<_>>().join(", ")
}

fn closing(standing: &Standing, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    for (meaning, word, of) in &standing.open {
        for (n, line) in wrap(of, look.columns().saturating_sub(10)).iter().enumerate() {
            let word = if n == 0 { word } else { "" };
            writeln!(out, "{}  {line}", look.paint(style(*meaning), &format!("{word:<8}")))?;
        }
    }
    if !standing.open.is_empty() {
        writeln!(out)?;
    }
    for (verdict, line) in &standing.decisions {
        text(line, style((*verdict).into()), look, out)?;
    }
    // The text is wrapped without colours, and then coloured part by part.
    let mut used = 0;
    for (n, (meaning, part)) in standing.counts.iter().enumerate() {
        let breaks = n > 0 && used + part.len() + 3 > look.columns();
        match n {
            0 => {}
            _ if breaks => writeln!(out, ",")?,
            _ => write!(out, ", ")?,
        }
        used = if breaks { 0 } else { used } + part.len() + 2;
        write!(out, "{}", look.paint(style(*meaning), part))?;
    }
    writeln!(out)?;
    writeln!(out, "{} {}", look.paint(DIM, "run folder"), harmless(&standing.folder))
}

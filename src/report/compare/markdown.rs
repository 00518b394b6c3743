//! A comparison as Markdown, for a pull request: the verdict first, the details folded.

use std::io::{self, Write};

use super::page::Block;
use crate::report::escape::code;
use crate::report::markdown::COMMENT;
use crate::report::text::harmless;

/// The maximum number of characters of a line of code; more than any page has.
const MOST: usize = 4000;

/// Writes the page block by block, as many blocks as a comment can hold. Verdicts come first.
///
/// # Errors
/// The output could not be written.
pub fn write(blocks: &[Block], out: &mut dyn Write) -> io::Result<()> {
    let (mut room, mut cut) = (COMMENT - LEFT_OUT.len(), false);
    for block in blocks {
        let mut text = Vec::new();
        one(block, &mut text)?;
        let fits = text.len() <= room;
        cut |= !fits;
        if fits {
            room -= text.len();
            out.write_all(&text)?;
        }
    }
    if cut { out.write_all(LEFT_OUT.as_bytes()) } else { Ok(()) }
}

/// The end of a page from which blocks were left out.
const LEFT_OUT: &str =
    "Some of it was left out for its length; `evals compare` in a terminal, or with `--format json`, has everything.\n";

fn one(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Verdict { text, .. } => writeln!(out, "**{}**\n", escaped(text)),
        Block::Heading(text) => writeln!(out, "### {}\n", escaped(text)),
        Block::Lines(lines) => {
            lines.iter().try_for_each(|line| writeln!(out, "- {}", escaped(line)))?;
            if lines.is_empty() { Ok(()) } else { writeln!(out) }
        }
        Block::Table { head, right, rows } => {
            let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
            // The headings are the program's own: `pass@k` mentions nobody.
            writeln!(out, "{}", line(head.iter().map(|cell| text_alone(cell)).collect()))?;
            let rule = |column: usize| if right.contains(&column) { "---:" } else { "---" }.to_owned();
            writeln!(out, "{}", line((0..head.len()).map(rule).collect()))?;
            for row in rows {
                writeln!(out, "{}", line(row.iter().map(|cell| escaped(cell)).collect()))?;
            }
            writeln!(out)
        }
        Block::Folded { title, blocks } => {
            writeln!(out, "<details><summary>{}</summary>\n", escaped(title))?;
            blocks.iter().try_for_each(|block| one(block, out))?;
            writeln!(out, "</details>\n")
        }
    }
}

/// Escapes text for Markdown, on one line. If a service could find a link or a mention in the text, all of it
/// becomes code.
fn escaped(text: &str) -> String {
    match ["@", "#", "://", "www.", "WWW.", "GH-"].iter().any(|sign| text.contains(sign)) {
        true => code(text, MOST),
        false => text_alone(text),
    }
}

fn text_alone(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '\n' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A mentioned person or team would be notified.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

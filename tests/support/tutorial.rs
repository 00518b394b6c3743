//! The tutorial of the book as a script of the shell: the files that its reader writes, and the commands.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fmt::Write as _;

/// The text of the page.
pub const PAGE: &str = include_str!("../../docs/tutorial.md");

/// A fenced block of the page that the test uses.
pub enum Block {
    /// A file that the reader writes, by its path in the current folder.
    File { path: String, text: String },
    /// A command, with the lines that the page shows below it.
    Run { line: usize, command: String, shown: Vec<String> },
}

/// Reads the blocks of a page: those with `file=PATH` behind the language, and those of the language `console`, in which
/// a command begins with `$ `.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let inner: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        if let Some((_, path)) = info.split_once(" file=") {
            let text = inner.iter().map(|(_, line)| format!("{line}\n")).collect();
            blocks.push(Block::File { path: path.to_owned(), text });
        } else if info == "console" {
            for (number, line) in inner {
                match (line.strip_prefix("$ "), blocks.last_mut()) {
                    (Some(command), _) => {
                        blocks.push(Block::Run { line: number + 1, command: command.to_owned(), shown: Vec::new() });
                    }
                    (None, Some(Block::Run { shown, .. })) => shown.push(line.to_owned()),
                    (None, _) => panic!("line {}: output without a command", number + 1),
                }
            }
        }
    }
    blocks
}

pub const MARK: &str = "next command of the page:";

/// Returns a script of the shell that does what a reader does. It prints a mark before the output of each command.
pub fn script(blocks: &[Block]) -> String {
    let mut script = "code=0\n".to_owned();
    for block in blocks {
        match block {
            Block::File { path, text } => {
                let end = "END_OF_THE_FILE";
                write!(script, "mkdir -p \"$(dirname {path})\"\ncat >{path} <<'{end}'\n{text}{end}\n").unwrap();
            }
            // `$?` is the exit code of the command above, as for a reader.
            Block::Run { command, .. } => {
                write!(script, "echo '{MARK}'\n(exit $code)\n{command}\ncode=$?\n").unwrap();
            }
        }
    }
    script
}

/// Returns the commands of the section whose heading begins so. They stand in a block of the language `sh`, with comments.
pub fn commands_of(heading: &str) -> Vec<&'static str> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading)).unwrap_or_default();
    let block = section.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```"));
    let lines = block.map_or("", |(block, _)| block).lines();
    lines.map(|line| line.split_once('#').map_or(line, |(command, _)| command).trim()).collect()
}

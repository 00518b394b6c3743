//! The commands that GNU `parallel` runs.

use super::{Inner, MAX_OUTPUT_BYTES, NOT_SHOWN, behind_options, text_of};
use crate::command_line::expanded::Argument;
use crate::text::shell_word;

/// The maximum number of commands that are made of the arguments behind `:::`.
const MAX_COMMANDS: usize = 64;
/// Places for a part of an argument, and for the number of the command.
const PARTS: [&str; 6] = ["{.}", "{/}", "{//}", "{/.}", "{#}", "{%}"];

/// Returns the commands of `parallel`: its words with each argument behind `:::`, or the arguments or lines of the input if it
/// has no words.
pub(super) fn commands<'a>(arguments: &'a [Argument], input: Option<&str>) -> Vec<Inner<'a>> {
    let options = [
        "jobs",
        "max-args",
        "arg-file",
        "delimiter",
        "delay",
        "timeout",
        "retries",
        "results",
        "joblog",
        "workdir",
        "colsep",
        "max-procs",
        "sshlogin",
        "halt",
        "load",
        "memfree",
        "tmpdir",
        "tagstring",
        "env",
        "basefile",
    ];
    if arguments.first().is_some_and(|word| matches!(word.text.as_str(), "--citation" | "--help" | "--version")) {
        return Vec::new();
    }
    let run = behind_options(arguments, "jIaNnLPSdC", &options);
    let is_sign = |word: &Argument| word.text.starts_with(":::");
    let (words, behind) = run.split_at(run.iter().position(is_sign).unwrap_or(run.len()));
    let text = text_of(words);
    let Some(lists) = lists(behind) else {
        // A list is in a file. With no command, each line of it is one.
        return vec![Inner::text(if words.is_empty() { NOT_SHOWN.to_owned() } else { text })];
    };
    if lists.is_empty() {
        // The arguments are the lines of the input.
        return vec![Inner::text(match words {
            [] => input.unwrap_or(NOT_SHOWN).to_owned(),
            _ => text,
        })];
    }
    let rows = rows(&lists);
    let size: usize = text.len() + run.iter().map(|word| word.text.len()).sum::<usize>();
    let most = if size.saturating_mul(rows.len()) > MAX_OUTPUT_BYTES { 0 } else { MAX_COMMANDS };
    let made = rows.iter().take(most).map(|row| Inner::text(with_arguments(&text, row)));
    let unread = (rows.len() > most).then(|| Inner::text(NOT_SHOWN.to_owned()));
    made.chain(unread).collect()
}

/// Returns the lists of arguments behind `:::`, or `None` if one of them is in a file (`::::`).
fn lists(words: &[Argument]) -> Option<Vec<Vec<&Argument>>> {
    let mut lists: Vec<Vec<&Argument>> = Vec::new();
    for word in words {
        match word.text.as_str() {
            ":::" | ":::+" => lists.push(Vec::new()),
            text if text.starts_with("::::") => return None,
            _ => lists.last_mut()?.push(word),
        }
    }
    Some(lists)
}

/// Returns the arguments of each command: each combination of the elements of the lists, up to one more than are read.
fn rows<'a>(lists: &[Vec<&'a Argument>]) -> Vec<Vec<&'a Argument>> {
    let mut rows: Vec<Vec<&Argument>> = vec![Vec::new()];
    for list in lists {
        let longer = rows.iter().flat_map(|row| list.iter().map(|word| [row.as_slice(), &[*word]].concat()));
        rows = longer.take(MAX_COMMANDS + 1).collect();
    }
    rows
}

/// Puts the arguments of one command into its text: in the places `{}` and `{1}`, or at the end. Without a text, they are the
/// command.
fn with_arguments(text: &str, row: &[&Argument]) -> String {
    if text.is_empty() {
        return row.iter().map(|word| word.shown()).collect::<Vec<_>>().join(" ");
    }
    let quoted: Vec<String> = row.iter().map(|word| shell_word(&word.shown())).collect();
    let mut made = text.replace("{}", &quoted.join(" "));
    for (index, argument) in quoted.iter().enumerate() {
        made = made.replace(&format!("{{{}}}", index + 1), argument);
    }
    for part in PARTS {
        made = made.replace(part, NOT_SHOWN);
    }
    if made == text { format!("{text} {}", quoted.join(" ")) } else { made }
}

//! What `sed` does: the commands that it runs, and the texts that it makes by a substitution of one text by another.

use super::{Inner, NOT_SHOWN};
use crate::command_line::expanded::Argument;

/// Returns the commands that `sed` runs: `e COMMAND`, and what the flag `e` of a substitution runs, which is not shown.
pub(super) fn in_sed(arguments: &[Argument]) -> Vec<Inner<'_>> {
    let mut found = Vec::new();
    for word in arguments {
        if has_flag_to_run(&word.text) {
            found.push(Inner::text(NOT_SHOWN.to_owned()));
        }
        for part in word.text.split([';', '\n', '{']) {
            let command = part.trim_start_matches(|c: char| c.is_ascii_digit() || " ,$!~+'".contains(c));
            match command.strip_prefix('e') {
                Some("" | "}") if part.len() > command.len() => found.push(Inner::text(NOT_SHOWN.to_owned())),
                Some(rest) if rest.starts_with(' ') => found.push(Inner::text(rest.trim().to_owned())),
                _ => {}
            }
        }
    }
    found
}

/// Returns true if a program for `sed` has a substitution with the flag `e`.
fn has_flag_to_run(program: &str) -> bool {
    let mut rest = program;
    let mut before = ' ';
    while let Some(next) = rest.chars().next() {
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
        let is_command = next == 's' && !before.is_alphabetic() && !matches!(before, '\\' | '_' | '-');
        if is_command && let Some(flags) = behind_substitution(rest) {
            let size = flags.find(|c: char| !"gpiImMe0123456789".contains(c)).unwrap_or(flags.len());
            let (own, behind) = flags.split_at_checked(size).unwrap_or_default();
            if own.contains('e') {
                return true;
            }
            (rest, before) = (behind, ';');
            continue;
        }
        before = next;
    }
    false
}

/// Returns the text after the third delimiter of `/a/b/`.
fn behind_substitution(text: &str) -> Option<&str> {
    let sign = text.chars().next().filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    let (mut count, mut is_escaped) = (0, false);
    for (at, c) in text.char_indices() {
        count += usize::from(c == sign && !is_escaped);
        is_escaped = c == '\\' && !is_escaped;
        if count == 3 {
            return text.get(at + sign.len_utf8()..);
        }
    }
    None
}

/// Returns the text that `sed 's/a/b/' FILE` prints, if the line shows the text of the file or the input.
pub(super) fn printed_by_sed(arguments: &[Argument], input: Option<&str>) -> Option<String> {
    let (script, files) = script_and_files(arguments)?;
    let text = match files.as_slice() {
        [] => input?,
        [file] => file.content.as_deref()?,
        _ => return None,
    };
    (!edits(arguments)).then(|| substituted(script, text))?
}

/// Returns the file that `sed -i 's/a/b/' FILE` changes, with its text.
pub(super) fn edited_by_sed(arguments: &[Argument]) -> Option<(String, String)> {
    let (script, files) = script_and_files(arguments)?;
    let file = files.first().filter(|_| files.len() == 1 && edits(arguments))?;
    Some((file.text.clone(), substituted(script, file.content.as_deref()?)?))
}

fn edits(arguments: &[Argument]) -> bool {
    arguments.iter().any(|word| word.text.starts_with("-i") || word.text.starts_with("--in-place"))
}

/// Returns the only script of `sed`, and the files. Options other than `-i`, `-e`, `-E` and `-r` are not read.
fn script_and_files(arguments: &[Argument]) -> Option<(&str, Vec<&Argument>)> {
    let is_read = |word: &str| matches!(word, "-e" | "-E" | "-r" | "--in-place") || word.starts_with("-i");
    if arguments.iter().any(|word| word.text.starts_with('-') && !is_read(&word.text)) {
        return None;
    }
    let mut words = arguments.iter().filter(|word| !word.text.starts_with('-'));
    // `sed -i '' s/a/b/ FILE` on macOS
    let script = words.find(|word| !word.text.is_empty())?;
    let has_others = arguments.iter().filter(|word| word.text == "-e").count() > 1;
    Some((script.text.as_str(), words.collect())).filter(|_| script.is_known() && !has_others)
}

/// Returns a text after `s/a/b/` or `s/a/b/g`, if both are plain texts.
fn substituted(script: &str, text: &str) -> Option<String> {
    let rest = script.strip_prefix('s')?;
    let sign = rest.chars().next().filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
    let parts: Vec<&str> = rest.get(1..)?.split(sign).collect();
    let [from, to, flags @ ("" | "g")] = parts.as_slice() else { return None };
    let is_plain =
        !from.is_empty() && !from.contains(|c: char| ".*[]^$\\+?(){}|".contains(c)) && !to.contains(['\\', '&']);
    let count = if *flags == "g" { usize::MAX } else { 1 };
    is_plain.then(|| text.split_inclusive('\n').map(|line| line.replacen(*from, to, count)).collect())
}

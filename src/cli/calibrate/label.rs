//! Asks a person for labels: shows each trace, and appends each label to the file at once.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};

use super::labels::LabelLine;
use super::{CliError, RunsFolder};
use crate::cli::named_run;
use crate::cli::output;
use crate::cli::terminal;
use crate::grader::{Calibrate, LabelValue};
use crate::regular;
use crate::report::show;
use crate::report::text::{BOLD, harmless};
use crate::run::integrity;
use crate::trace::jsonl::Reader;

/// Asks about every criterion of every trace without a label. The end of the input ends the questions.
///
/// # Errors
/// Returns an error if a trace cannot be read, or the file cannot be written.
pub fn ask(named: &[String], runs: &RunsFolder, graded: &dyn Calibrate, labels: &Path) -> Result<(), CliError> {
    // The key includes the criterion; a pair with another reference is another pair.
    let mut known: Vec<(PathBuf, Option<String>)> = Vec::new();
    if labels.is_file() {
        let failed = |error: io::Error| CliError::unreadable(format!("{}: {error}", labels.display()));
        for line in BufReader::new(regular::open(labels).map_err(failed)?).lines() {
            let line = line.map_err(failed)?;
            if let Ok(label) = serde_json::from_str::<LabelLine>(line.trim_start_matches(regular::BOM))
                && label.reference.is_none()
            {
                known.push((place(labels).join(label.trace), label.criterion));
            }
        }
    }
    let look = terminal::stderr_look();
    let mut err = output::stderr();
    let mut lines = io::stdin().lock().lines();
    for trace in traces(named, runs)? {
        let open = |(criterion, _): &(&str, &str)| {
            !known.iter().any(|(file, id)| same(file, &trace) && id.as_ref().is_none_or(|id| id == criterion))
        };
        let asked: Vec<(&str, &str)> = graded.questions().into_iter().filter(open).collect();
        if asked.is_empty() {
            continue;
        }
        writeln!(err, "\n{}", look.paint(BOLD, &harmless(&trace.display().to_string())))?;
        let failed = |error: &dyn std::fmt::Display| CliError::unreadable(format!("{}: {error}", trace.display()));
        let file = regular::open(&trace).map_err(|error| failed(&error))?;
        let mut reader = Reader::new(BufReader::new(file)).map_err(|error| failed(&error))?;
        show::trace(&mut reader, false, &look, &mut err).map_err(|error| failed(&error))?;
        for (what, text) in graded.compared(&trace).map_err(CliError::unreadable)? {
            writeln!(err, "\n{}\n{}", look.paint(BOLD, what), harmless_lines(&text))?;
        }
        for (criterion, question) in asked {
            let answer = loop {
                write!(err, "{criterion}: {}\n{}, [s]kip, [q]uit? ", harmless(question), choices(graded.labels()))?;
                err.flush()?;
                let Some(line) = lines.next().transpose()? else { return Ok(()) };
                if !io::stdin().is_terminal() {
                    writeln!(err, "{}", harmless(&line))?;
                }
                let input = line.trim().to_lowercase();
                let meant =
                    |word: &&LabelValue| !input.is_empty() && [&word.text()[..1], word.text()].contains(&&*input);
                match input.as_str() {
                    _ if graded.labels().iter().any(|word| meant(&word)) => break graded.labels().iter().find(meant),
                    "s" | "skip" => break None,
                    "q" | "quit" => return Ok(()),
                    _ => writeln!(err, "type one of the letters in brackets")?,
                }
            };
            if let Some(word) = answer {
                append(labels, &trace, criterion, *word)?;
                // The trace may be named twice, under two paths.
                known.push((trace.clone(), Some(criterion.to_owned())));
            }
        }
    }
    Ok(())
}

/// Formats the labels, each with its key.
fn choices(words: &[LabelValue]) -> String {
    let each = words.iter().map(|word| format!("[{}]{}", &word.text()[..1], &word.text()[1..]));
    each.collect::<Vec<_>>().join(", ")
}

fn harmless_lines(text: &str) -> String {
    text.lines().map(harmless).collect::<Vec<_>>().join("\n")
}

/// Returns the named traces, which are files or the traces of a run.
fn traces(named: &[String], runs: &RunsFolder) -> Result<Vec<PathBuf>, CliError> {
    let mut traces = Vec::new();
    for name in named {
        let path = PathBuf::from(name);
        if path.is_file() {
            traces.push(path);
            continue;
        }
        let run = named_run::by_name(&runs.runs, name)?;
        let (record, states) = (run.record()?, run.states()?);
        for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
            let state = states.get(&trial.id()).filter(|state| state.finished.is_some());
            let at = state.map_or_else(|| run.trial_of(trial), |state| run.counting_attempt(trial, state))?;
            let trace = at.join("trace.jsonl");
            if let Some(result) = state.and_then(|state| run.result_of(trial, state).ok()) {
                terminal::tell_if_not_as_judged(&result);
                let changed = ["trace.jsonl", "workspace.patch"]
                    .iter()
                    .find_map(|name| integrity::changed_file(&at, name, &result));
                if let Some(why) = &changed {
                    terminal::note(format_args!("warning: {} is left out: {why}", trace.display()));
                }
                if changed.is_some() || result.is_not_as_judged() {
                    continue;
                }
            }
            if trace.is_file() {
                traces.push(trace);
            }
        }
    }
    Ok(traces)
}

/// Appends one label, so that no label is lost if the person stops.
fn append(labels: &Path, trace: &Path, criterion: &str, word: LabelValue) -> Result<(), CliError> {
    let failed = |error: io::Error| CliError::unreadable(format!("{}: {error}", labels.display()));
    // Paths in the file are relative to its folder, so that they do not depend on the working directory.
    let (from, to) = (absolute(place(labels))?, absolute(trace)?);
    let trace = to.strip_prefix(&from).map(Path::to_path_buf).unwrap_or(to);
    // A comparison has only one question, which needs no name.
    let criterion = Some(criterion.to_owned()).filter(|_| word.outcome().is_none());
    let line = LabelLine { trace, criterion, reference: None, label: Some(word), model: None, note: None };
    let text = serde_json::to_string(&line).map_err(|error| CliError::unreadable(error.to_string()))?;
    crate::cli::report::make_place(labels)?;
    // If the last line of the file has no line end, the label would become part of it.
    let torn = regular::read(labels).is_ok_and(|text| text.last().is_some_and(|byte| *byte != b'\n'));
    let text = if torn { format!("\n{text}") } else { text };
    let mut file = OpenOptions::new().create(true).append(true).open(labels).map_err(failed)?;
    writeln!(file, "{text}").and_then(|()| file.sync_data()).map_err(failed)
}

fn place(labels: &Path) -> &Path {
    labels.parent().unwrap_or(Path::new(""))
}

fn absolute(path: &Path) -> Result<PathBuf, CliError> {
    if path.as_os_str().is_empty() { Ok(std::env::current_dir()?) } else { Ok(std::path::absolute(path)?) }
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

//! The report of an audit of cases: a table, or JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::page::{Block, Entry, Meaning, Page, Table, TableCell};
use super::text::plural;
use crate::audit::{Agent, Audited, Tried};
use crate::verdict::Verdict;

/// The maximum number of cases that a note names.
const NAMED: usize = 20;

/// Builds the page: the table, followed by the problems found.
pub fn page(cases: &[Audited]) -> Page {
    let mut table = Table::new(["case"].into_iter().chain(Agent::ALL.map(Agent::word)));
    for case in cases {
        let agents = Agent::ALL.map(|agent| cell(case, agent));
        table.row([TableCell::new(Meaning::Name, &*case.case)].into_iter().chain(agents));
    }
    let unsound = cases.iter().filter(|case| !case.sound);
    let entries: Vec<Entry> = unsound.map(entry).collect();
    let audited = plural(cases.len(), "case");
    let (bad, good) = (entries.len(), cases.len() - entries.len());
    let (meaning, verdict) = match bad {
        0 => (Meaning::Good, format!("{audited} audited, all sound")),
        _ => (Meaning::Bad, format!("{audited} audited, {good} sound, {bad} not")),
    };
    let title = format!("{} not sound", plural(bad, "case"));
    let blocks = vec![
        Block::Table(table),
        Block::Entries { title, entries, after: None },
        Block::Lines(notes(cases)),
        Block::Verdict(meaning, verdict),
    ];
    Page { blocks, everything: "`--format json`".to_owned(), ..Page::default() }
}

/// Returns the notes on graders that were not audited, with the reasons.
fn notes(cases: &[Audited]) -> Vec<String> {
    let mut notes = Vec::new();
    let without: Vec<&Audited> = cases.iter().filter(|case| is_without_oracle(case)).collect();
    if let Some(first) = without.first() {
        notes.push(format!(
            "{} not audited for an oracle that passes, the first is {}; write `oracle: {{copy: …}}`, `oracle: {{patch: …}}` or `oracle: {{script: …}}`",
            plural(without.len(), "case"),
            first.case
        ));
    }
    let partly = |case: &Audited| case.agents.iter().flat_map(|tried| tried.not_audited.clone()).collect();
    named(&mut notes, cases, "since a folder does not show it", "graders", partly);
    named(&mut notes, cases, "since a model is asked", "judges", |case| case.asks_models.clone());
    notes
}

fn named(notes: &mut Vec<String>, cases: &[Audited], why: &str, what: &str, of: impl Fn(&Audited) -> Vec<String>) {
    let all: Vec<_> = cases.iter().map(|case| (case, of(case))).filter(|(_, names)| !names.is_empty()).collect();
    let line =
        |(case, names): &(&Audited, Vec<String>)| format!("not audited, {why}: {} of {}", names.join(", "), case.case);
    notes.extend(all.iter().take(NAMED).map(line));
    if all.len() > NAMED {
        notes.push(format!("and {what} of {}", plural(all.len() - NAMED, "more case")));
    }
}

fn is_without_oracle(case: &Audited) -> bool {
    case.agents.iter().any(|tried| tried.agent == Agent::Oracle && tried.sound && tried.verdict.is_none())
}

fn cell(case: &Audited, agent: Agent) -> TableCell {
    let tried: Vec<&Tried> = case.agents.iter().filter(|tried| tried.agent == agent).collect();
    // If the audit ran several built-in agents, the first one with a wrong result is shown.
    let told = tried.iter().find(|tried| !tried.sound).or(tried.first());
    match told {
        None => "-".into(),
        Some(Tried { sound: true, verdict: None, .. }) => TableCell::new(Meaning::Quiet, "not audited"),
        Some(Tried { verdict: None, .. }) => TableCell::new(Meaning::Verdict(Verdict::Errored), "not possible"),
        Some(Tried { sound, verdict: Some(verdict), .. }) => {
            let meaning = if *sound { Meaning::Good } else { Meaning::Bad };
            let wrong = if *sound { "" } else { ", and must not" };
            TableCell::new(meaning, format!("{}{wrong}", verdict.word()))
        }
    }
}

fn entry(case: &Audited) -> Entry {
    let (meaning, word, about) = (Meaning::Bad, "AUDIT".to_owned(), vec![case.case.clone()]);
    let mut entry = Entry { meaning, word, about, ..Entry::default() };
    for tried in case.agents.iter().filter(|tried| !tried.sound) {
        let how = tried.how.map(|how| format!(", which {how},")).unwrap_or_default();
        let (agent, must) = (tried.agent.word(), tried.must.word());
        entry.text(match tried.verdict {
            None => format!("{agent}{how} could not be tried"),
            Some(Verdict::Pass) => format!("{agent}{how} passes and must {must}; it passed by"),
            Some(Verdict::Ungraded) => format!("{agent}{how} must {must}, and that could not be judged by"),
            Some(verdict) => format!("{agent}{how} must {must} and came to {}", verdict.word()),
        });
        for grader in &tried.graders {
            let kind = if grader.name == grader.grader { String::new() } else { format!(" ({})", grader.grader) };
            entry.text(format!("{}{kind}: {}", grader.name, grader.reason));
        }
        if let Some(note) = &tried.note {
            entry.text(note.as_str());
        }
    }
    entry
}

/// Writes one JSON object.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn json(cases: &[Audited], out: &mut dyn Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        version: u32,
        summary: Summary,
        cases: &'a [Audited],
    }
    #[derive(Serialize)]
    struct Summary {
        cases: usize,
        sound: usize,
        unsound: usize,
        without_oracle: usize,
    }
    let sound = cases.iter().filter(|case| case.sound).count();
    let without_oracle = cases.iter().filter(|case| is_without_oracle(case)).count();
    let summary = Summary { cases: cases.len(), sound, unsound: cases.len() - sound, without_oracle };
    serde_json::to_writer_pretty(&mut *out, &Document { version: crate::run::VERSION, summary, cases })?;
    out.write_all(b"\n")
}

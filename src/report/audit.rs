//! The report of an audit of cases: a table, or JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::grid::{Grid, GridCell};
use super::text::{BOLD, DIM, Look, harmless, plural, verdict_style, wrap};
use crate::audit::{Agent, Audited, Tried};
use crate::verdict::Verdict;

/// Writes the table, followed by the problems found.
///
/// # Errors
/// The output could not be written.
pub fn table(cases: &[Audited], look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut grid = Grid::new(["case".to_owned()].into_iter().chain(Agent::ALL.map(|agent| agent.word().to_owned())));
    for case in cases {
        let mut row = vec![GridCell::from(harmless(&case.case))];
        row.extend(Agent::ALL.map(|agent| cell(case, agent)));
        grid.row(row);
    }
    writeln!(out)?;
    grid.write(look, out)?;
    writeln!(out)?;
    for case in cases.iter().filter(|case| !case.sound) {
        let style = verdict_style(Verdict::Fail).bold();
        writeln!(out, "{}  {}", look.paint(style, "AUDIT"), look.paint(BOLD, &harmless(&case.case)))?;
        for tried in case.agents.iter().filter(|tried| !tried.sound) {
            wrong(tried, look, out)?;
        }
        writeln!(out)?;
    }
    let without: Vec<&Audited> = cases.iter().filter(|case| is_without_oracle(case)).collect();
    if let Some(first) = without.first() {
        let text = format!(
            "{} not audited for an oracle that passes, the first is {}; write `oracle: {{copy: …}}` or `oracle: {{script: …}}`",
            plural(without.len(), "case"),
            first.case
        );
        paragraph(&text, 0, look, out)?;
    }
    let partly: Vec<&Audited> =
        cases.iter().filter(|case| case.agents.iter().any(|tried| !tried.not_audited.is_empty())).collect();
    for case in partly.iter().take(20) {
        let names: Vec<&str> = case.agents.iter().flat_map(|tried| &tried.not_audited).map(String::as_str).collect();
        let text = format!("not audited, since a folder does not show it: {} of {}", names.join(", "), case.case);
        paragraph(&text, 0, look, out)?;
    }
    if partly.len() > 20 {
        writeln!(out, "and graders of {} more", plural(partly.len() - 20, "case"))?;
    }
    let of_models: Vec<&Audited> = cases.iter().filter(|case| !case.asks_models.is_empty()).collect();
    for case in of_models.iter().take(20) {
        let names = case.asks_models.join(", ");
        paragraph(&format!("not audited, since a model is asked: {names} of {}", case.case), 0, look, out)?;
    }
    if of_models.len() > 20 {
        writeln!(out, "and judges of {} more", plural(of_models.len() - 20, "case"))?;
    }
    let unsound = cases.iter().filter(|case| !case.sound).count();
    let sound = cases.len() - unsound;
    match unsound {
        0 => writeln!(out, "{} audited, all sound", plural(cases.len(), "case")),
        _ => writeln!(out, "{} audited, {sound} sound, {unsound} not", plural(cases.len(), "case")),
    }
}

fn is_without_oracle(case: &Audited) -> bool {
    case.agents.iter().any(|tried| tried.agent == Agent::Oracle && tried.sound && tried.verdict.is_none())
}

fn cell(case: &Audited, agent: Agent) -> GridCell {
    let tried: Vec<&Tried> = case.agents.iter().filter(|tried| tried.agent == agent).collect();
    // If the audit ran several built-in agents, the first one with a wrong result is shown.
    let told = tried.iter().find(|tried| !tried.sound).or(tried.first());
    match told {
        None => GridCell::from("-"),
        Some(Tried { sound: true, verdict: None, .. }) => GridCell::styled(DIM, "not audited"),
        Some(Tried { verdict: None, .. }) => GridCell::styled(verdict_style(Verdict::Errored), "not possible"),
        Some(Tried { sound, verdict: Some(verdict), .. }) => {
            let style = if *sound { verdict_style(Verdict::Pass) } else { verdict_style(Verdict::Fail) };
            let wrong = if *sound { "" } else { ", and must not" };
            GridCell::styled(style, format!("{}{wrong}", verdict.word()))
        }
    }
}

fn wrong(tried: &Tried, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let how = tried.how.map(|how| format!(", which {how},")).unwrap_or_default();
    let agent = tried.agent.word();
    let must = tried.must.word();
    let head = match tried.verdict {
        None => format!("{agent}{how} could not be tried"),
        Some(Verdict::Pass) => format!("{agent}{how} passes and must {must}; it was let through by"),
        Some(Verdict::Ungraded) => format!("{agent}{how} must {must}, and that could not be judged by"),
        Some(verdict) => format!("{agent}{how} must {must} and came to {}", verdict.word()),
    };
    paragraph(&head, 2, look, out)?;
    for grader in &tried.graders {
        let kind = if grader.name == grader.grader { String::new() } else { format!(" ({})", grader.grader) };
        paragraph(&format!("{}{kind}: {}", grader.name, grader.reason), 4, look, out)?;
    }
    match &tried.note {
        Some(note) => paragraph(note, 4, look, out),
        None => Ok(()),
    }
}

fn paragraph(text: &str, indent: usize, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    for line in wrap(text, look.columns().saturating_sub(indent)) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// Writes one JSON object.
///
/// # Errors
/// The output could not be written.
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

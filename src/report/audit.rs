//! The report of an audit of cases: a table, or JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::page::{Block, Entry, Meaning, Page, Table, TableCell};
use super::text::plural;
use crate::audit::answers::{Answer, AnswerKind};
use crate::audit::mutants::{Mutation, MutationKind};
use crate::audit::quality::Finding;
use crate::audit::{Agent, Audited, Tried};
use crate::text::some_of;
use crate::verdict::Verdict;

/// The maximum number of cases that a note names.
const MAX_NAMED_CASES: usize = 20;
/// The maximum number of cases whose findings are listed.
const LISTED: usize = 100;
/// The maximum number of names in a finding.
const MAX_NAMES: usize = 5;

/// Builds the page: the table, followed by the problems found.
pub fn page(cases: &[Audited]) -> Page {
    let mut table = Table::new(["case"].into_iter().chain(Agent::ALL.map(Agent::word)));
    for case in cases {
        let agents = Agent::ALL.map(|agent| cell(case, agent));
        table.row([TableCell::new(Meaning::Name, &*case.case)].into_iter().chain(agents));
    }
    let unsound = cases.iter().filter(|case| case.is_unsound());
    let entries: Vec<Entry> = unsound.map(entry).collect();
    let not_audited = cases.iter().filter(|case| !case.audited).count();
    let audited = plural(cases.len() - not_audited, "case");
    let (bad, good) = (entries.len(), cases.len() - not_audited - entries.len());
    let rest = if not_audited == 0 { String::new() } else { format!(", {not_audited} not audited") };
    let (meaning, verdict) = match bad {
        0 if good == 0 && not_audited > 0 => (Meaning::Open, format!("{} not audited", plural(not_audited, "case"))),
        0 if not_audited > 0 => (Meaning::Open, format!("{audited} audited, all sound{rest}")),
        0 => (Meaning::Good, format!("{audited} audited, all sound")),
        _ => (Meaning::Bad, format!("{audited} audited, {good} sound, {bad} not{rest}")),
    };
    let title = format!("{} not sound", plural(bad, "case"));
    let with_findings: Vec<&Audited> = cases.iter().filter(|case| !case.findings.is_empty()).collect();
    let findings: usize = with_findings.iter().map(|case| case.findings.len()).sum();
    let of_quality = Block::Entries {
        title: format!("{} about quality, which do not change the exit code", plural(findings, "finding")),
        entries: with_findings.iter().take(LISTED).map(|case| quality(case)).collect(),
        after: (with_findings.len() > LISTED).then(|| {
            format!(
                "and {} with findings; `--format json` lists all",
                plural(with_findings.len() - LISTED, "more case")
            )
        }),
    };
    let blocks = vec![
        Block::Table(table),
        Block::Entries { title, entries, after: None },
        of_quality,
        Block::Lines(notes(cases)),
        Block::Verdict(meaning, verdict),
    ];
    Page { blocks, everything: "`--format json`".to_owned(), ..Page::default() }
}

/// Returns the share of mutations that were noticed, and the reasons why others were not counted.
fn mutants(cases: &[Audited]) -> Option<String> {
    let all = || cases.iter().filter_map(|case| case.mutants.as_ref());
    let (judged, noticed) = (all().map(|of| of.judged).sum::<usize>(), all().map(|of| of.noticed).sum::<usize>());
    let without_tests: usize = all().map(|of| of.no_test_ran).sum();
    let unsteady: usize = all().map(|of| of.unsteady).sum();
    let not_judged: usize = all().map(|of| of.not_judged).sum();
    let parts = [
        (judged > 0).then(|| format!("{noticed} of {} of solutions noticed", plural(judged, "mutation"))),
        (without_tests > 0).then(|| format!("with {without_tests} of them no test ran")),
        (unsteady > 0)
            .then(|| format!("{unsteady} not counted: the grader that failed did not fail again in the second run")),
        (not_judged > 0).then(|| format!("{not_judged} could not be graded")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the notes on graders that were not audited, with the reasons.
fn notes(cases: &[Audited]) -> Vec<String> {
    let mut notes: Vec<String> = mutants(cases).into_iter().collect();
    let without_mutants: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            Some(format!("no mutation of the solution of {}: {}", case.case, case.mutants.as_ref()?.note.as_ref()?))
        })
        .collect();
    notes.extend(without_mutants.iter().take(MAX_NAMED_CASES).cloned());
    if without_mutants.len() > MAX_NAMED_CASES {
        notes.push(format!("and none of {}", plural(without_mutants.len() - MAX_NAMED_CASES, "more solution")));
    }
    let without: Vec<&Audited> = cases.iter().filter(|case| is_without_oracle(case)).collect();
    if let Some(first) = without.first() {
        notes.push(format!(
            "{} without a reference solution, so it is not tested that one passes; the first is {}; add `oracle: {{copy: …}}`, `oracle: {{patch: …}}` or `oracle: {{script: …}}`",
            plural(without.len(), "case"),
            first.case
        ));
    }
    let blind: Vec<&Audited> = cases.iter().filter(|case| case.has_blind_oracle()).collect();
    if let Some(first) = blind.first() {
        notes.push(format!(
            "{} not audited with a reference solution: its oracle shows files alone, and no counted grader reads files; the first is {}; use `oracle: {{script: …}}`",
            plural(blind.len(), "case"),
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
    notes.extend(all.iter().take(MAX_NAMED_CASES).map(line));
    if all.len() > MAX_NAMED_CASES {
        notes.push(format!("and {what} of {}", plural(all.len() - MAX_NAMED_CASES, "more case")));
    }
}

fn is_without_oracle(case: &Audited) -> bool {
    let has_none = |it: &Tried| it.agent == Agent::Oracle && it.sound && it.verdict.is_none();
    case.audited && !case.has_blind_oracle() && case.agents.iter().any(has_none)
}

fn cell(case: &Audited, agent: Agent) -> TableCell {
    let tried: Vec<&Tried> = case.agents.iter().filter(|tried| tried.agent == agent).collect();
    // If the audit ran several built-in agents, the first one with a wrong result is shown.
    let attempt = tried.iter().find(|tried| !tried.sound).or(tried.first());
    match attempt {
        None => "-".into(),
        Some(Tried { verdict: None, .. }) if !case.audited => TableCell::new(Meaning::Quiet, "not audited"),
        Some(Tried { sound: true, verdict: None, .. }) => TableCell::new(Meaning::Quiet, "not audited"),
        Some(Tried { verdict: None, .. }) => TableCell::new(Meaning::Verdict(Verdict::Errored), "not possible"),
        Some(Tried { sound, verdict: Some(verdict), must, .. }) => {
            let meaning = if *sound { Meaning::Good } else { Meaning::Bad };
            let wrong = match sound {
                true => "",
                false if verdict == must => ", but it could read the case",
                false => ", and must not",
            };
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
            Some(Verdict::Ungraded) => format!("{agent}{how} must {must}, and that could not be graded by"),
            Some(verdict) if verdict == tried.must => {
                format!("{agent}{}: {must}, as required, but", how.trim_end_matches(','))
            }
            Some(verdict) => format!("{agent}{how} must {must}, but its verdict is `{}`", verdict.word()),
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

/// Returns the findings about the quality of a case.
fn quality(case: &Audited) -> Entry {
    let (meaning, word, about) = (Meaning::Open, "QUALITY".to_owned(), vec![case.case.clone()]);
    let mut entry = Entry { meaning, word, about, ..Entry::default() };
    for finding in &case.findings {
        entry.text(format!("{}: {}", finding.word(), sentence(finding)));
        if let (Finding::MutantsNotNoticed { .. }, Some(mutants)) = (finding, &case.mutants) {
            mutants.not_noticed.iter().for_each(|it| entry.text(mutation(it)));
        }
    }
    entry
}

fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::NeverFailed { grader, trials } => {
            format!("`{grader}` passed in all {} of the stored runs", plural(*trials, "graded trial"))
        }
        Finding::NotToldApart { arms, trials, verdict } => format!(
            "all {} of {} have the verdict `{}`: {}",
            plural(*trials, "stored trial"),
            plural(arms.len(), "arm"),
            verdict.word(),
            some_of(arms, MAX_NAMES)
        ),
        Finding::NearDuplicate { of, similarity, workspaces } => {
            // Rounded down: 1.00 means equal.
            let rounded = |similarity: f64| format!("{:.2}", (similarity * 100.0).floor() / 100.0);
            let both = match *workspaces < 1.0 {
                true => format!("have one of {}", rounded(*workspaces)),
                false => "are equal".to_owned(),
            };
            let prompt = rounded(*similarity);
            format!("the prompt has a similarity of {prompt} with that of {of}, and the workspaces {both}")
        }
        Finding::AnswerInPrompt { parts } => {
            let part = |Answer { kind, text }: &Answer| match kind {
                AnswerKind::Line => format!("the line `{text}` of the solution"),
                AnswerKind::Identifier => format!("the identifier `{text}` of the solution"),
                AnswerKind::ExpectedValue => format!("the value `{text}`, which hidden tests expect"),
            };
            format!("the prompt contains {}", some_of(parts.iter().map(part), MAX_NAMES))
        }
        Finding::PassesWithoutChange { grader, tests } if tests.is_empty() => {
            format!("`{grader}` passes before any change, so it does not require one")
        }
        Finding::PassesWithoutChange { grader, tests } => {
            let tests = tests.iter().map(|test| format!("`{test}`"));
            format!(
                "`{grader}` lists tests under `fail-to-pass` that already pass before any change: {}",
                some_of(tests, MAX_NAMES)
            )
        }
        Finding::MutantsNotNoticed { not_noticed, judged } => {
            format!("{not_noticed} of {} of the solution not noticed", plural(*judged, "mutation"))
        }
    }
}

fn mutation(Mutation { file, line, kind, was, now }: &Mutation) -> String {
    let was = was.as_deref().unwrap_or("deleted lines");
    match (kind, now) {
        (MutationKind::RevertHunk, _) => format!("{file}:{line} without the hunk that begins with `{was}`"),
        (_, Some(now)) => format!("{file}:{line} `{now}` in place of `{was}`"),
        (_, None) => format!("{file}:{line} without `{was}`"),
    }
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
        not_audited: usize,
        without_oracle: usize,
        findings: usize,
        mutants_judged: usize,
        mutants_noticed: usize,
    }
    let count = |of: fn(&Audited) -> bool| cases.iter().filter(|case| of(case)).count();
    let without_oracle = cases.iter().filter(|case| is_without_oracle(case)).count();
    let mutants = || cases.iter().filter_map(|case| case.mutants.as_ref());
    let summary = Summary {
        cases: cases.len(),
        sound: count(|case| case.sound),
        unsound: count(Audited::is_unsound),
        not_audited: count(|case| !case.audited),
        without_oracle,
        findings: cases.iter().map(|case| case.findings.len()).sum(),
        mutants_judged: mutants().map(|of| of.judged).sum(),
        mutants_noticed: mutants().map(|of| of.noticed).sum(),
    };
    serde_json::to_writer_pretty(&mut *out, &Document { version: crate::run::VERSION, summary, cases })?;
    out.write_all(b"\n")
}

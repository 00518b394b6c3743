//! Notes on a report's figures that a reader needs to know, one line each. Pure.

use std::collections::{BTreeSet, HashSet};

use super::escape::LOOK;
use super::text::{one_line, plural};
use super::{Report, case_flags, commands};
use crate::adapter;
use crate::gateway::exchange::Source;
use crate::grade::GradeRecord;
use crate::harness::Manifest;
use crate::result::{TrialResult, Unrecorded, Warning};
use crate::sandbox::Kind;
use crate::text::some_of;
use crate::trace::ErrorCategory;

/// Returns notes on trials whose model was a recording.
fn played_from_recordings(report: &Report) -> Vec<String> {
    let count = |holds: fn(&TrialResult) -> bool| report.results.iter().filter(|result| holds(result)).count();
    let warned =
        |holds: fn(&Warning) -> bool| report.results.iter().filter(|result| result.warnings.iter().any(holds)).count();
    let told = [
        (
            count(|result| result.model_from == Some(Source::Cassette)),
            "the model's answers were played from a cassette: it measures the agent, not the model",
        ),
        (
            warned(|warning| matches!(warning, Warning::CassetteLeft { .. })),
            "the agent did not make all requests of its cassette",
        ),
        (
            warned(|warning| matches!(warning, Warning::CassetteAgent { .. })),
            "the cassette was recorded with another version of the agent",
        ),
        (
            warned(|warning| matches!(warning, Warning::PlayedInPart { .. })),
            "some answers of the model were played from a cassette",
        ),
        (
            // An agent that did not start or did not answer used no model at all.
            count(|result| result.error.is_none() && result.warnings.contains(&Warning::NoRequest)),
            "the agent made no request to the gateway, so it used another model",
        ),
        (
            warned(|warning| matches!(warning, Warning::AsideNotRecorded { .. })),
            "the cassette lacked requests outside the conversation",
        ),
        (
            warned(|warning| matches!(warning, Warning::NothingRecorded { why: Unrecorded::NoAnswer })),
            "no cassette was written, because the service answered no request",
        ),
        (
            warned(|warning| matches!(warning, Warning::NothingRecorded { why: Unrecorded::Ended })),
            "no cassette was written, because the agent was ended before its session was complete",
        ),
        (
            warned(|warning| matches!(warning, Warning::RecordedInPart { .. })),
            "the cassette lacks requests that cannot be recorded",
        ),
    ];
    let notes = told.into_iter().filter(|(count, _)| *count > 0);
    notes.map(|(count, text)| format!("in {} {text}", plural(count, "trial"))).collect()
}

/// Returns the notes on a report.
pub fn of(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let summary = &report.summary;
    match &report.run.derived_from {
        Some(origin) if report.run.graded => notes.push(format!("run {origin}, graded again; no agent was started")),
        Some(origin) => notes.push(format!("made from run {origin}")),
        None if report.run.graded => notes.push("stored traces, graded; no agent was started".to_owned()),
        None => {}
    }
    if let Some(shard) = report.run.shard {
        notes.push(format!("shard {shard} of a plan; `evals merge` makes one run of all shards"));
    }
    let flaky: Vec<String> = report.cells.iter().filter(|cell| cell.flaky()).map(|cell| cell.id.to_string()).collect();
    if !flaky.is_empty() {
        notes.push(format!("flaky, with both passes and fails: {}", some_of(&flaky, 5)));
    }
    let again = report.results.iter().filter(|result| result.flaky).count();
    if again > 0 {
        notes.push(format!("flaky: {} passed that had failed before", plural(again, "trial")));
    }
    for case in &report.run.cases {
        if let Some(quarantine) = report.run.quarantine(&case.id) {
            let (until, why) = (quarantine.until, one_line(&quarantine.why, 200, &LOOK));
            notes.push(format!("in quarantine until {until}, not counted: {} ({why})", case.id));
        }
    }
    notes.extend(tried_again(report));
    notes.extend(case_flags::notes(&report.cases));
    notes.extend(looked_at(report));
    notes.extend(uncalibrated(report));
    if report.is_manual() {
        notes.push("permission requests were answered by a person; comparisons leave such a run out".to_owned());
    }
    notes.extend(of_experiment(report));
    notes.extend(not_as_judged(report));
    notes.extend(results_changed(report));
    notes.extend(not_verified(report));
    notes.extend(starts_in_times(report));
    notes.extend(unadvised(report));
    notes.extend(unjudged(report));
    notes.extend(played_from_recordings(report));
    notes.extend(not_sandboxed(report));
    if summary.errored > 0 {
        notes.push(format!("{} errored and not counted in a score", plural(summary.errored, "trial")));
    }
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for reason in report.results.iter().filter_map(|result| result.skipped.as_deref()) {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    for (reason, count) in reasons.iter().take(5) {
        notes.push(format!("{} skipped: {reason}", plural(*count, "trial")));
    }
    if reasons.len() > 5 {
        notes.push(format!("more was skipped for {}", plural(reasons.len() - 5, "further reason")));
    }
    if summary.not_run > 0 {
        let run = commands::run_word(&report.run, &report.folder);
        notes.push(format!("{} not run; `evals run --resume {run}` goes on", plural(summary.not_run, "trial")));
    }
    let priced =
        report.results.iter().filter(|result| result.metrics.cost_source.is_some() && result.was_paid()).count();
    if priced > 0 {
        notes.push(format!("the cost of {} comes from a price table", plural(priced, "trial")));
    }
    notes.extend(report.asked.note());
    if report.columns.iter().any(|column| column.figures.cost_usd.is_some() && column.figures.cost_unknown > 0) {
        notes.push("a cost with `≥` excludes trials that did not report it".to_owned());
    }
    if report.columns.iter().any(|column| column.figures.tokens.is_some() && column.figures.tokens_unknown > 0) {
        notes.push("tokens with `≥` exclude trials that did not report them".to_owned());
    }
    notes
}

/// Returns notes on agents that ran in a version that their manifest was not verified with.
fn not_verified(report: &Report) -> Vec<String> {
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for result in &report.results {
        if let Some(version) = result.agent.as_ref().and_then(|agent| agent.version.as_deref()) {
            seen.insert((&result.harness, version));
        }
    }
    let note = |(harness, version): (&str, &str)| {
        let manifest = &report.run.harnesses.iter().find(|record| record.name == harness)?.manifest;
        let newest = manifest.verified.last()?;
        let is = |verified: &str| {
            let rest = version.strip_prefix(verified);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
        };
        let known = manifest.verified.iter().any(|verified| is(&verified.version));
        let newest = &newest.version;
        (!known).then(|| format!("{harness}: the agent is version {version}, its manifest was verified with {newest}"))
    };
    seen.into_iter().filter_map(note).collect()
}

/// Returns a note on harnesses whose times include their start-up, if the times of others do not.
fn starts_in_times(report: &Report) -> Option<String> {
    let timed = report.results.iter().filter(|result| result.metrics.duration_ms.is_some());
    let (apart, within): (Vec<&TrialResult>, Vec<&TrialResult>) =
        timed.partition(|result| result.metrics.start_ms.is_some());
    let apart: BTreeSet<&str> = apart.into_iter().map(|result| &*result.harness).collect();
    let within: BTreeSet<&str> = within.into_iter().map(|result| &*result.harness).collect();
    let within: Vec<String> = within.difference(&apart).map(|harness| (*harness).to_owned()).collect();
    (!apart.is_empty() && !within.is_empty()).then(|| {
        format!("times of {} include the start of the program, those of the others do not", some_of(&within, 5))
    })
}

/// Returns a note on grades that judges did not give although they were named, even if the verdict does not
/// depend on them.
fn unjudged(report: &Report) -> Option<String> {
    let is_named = |grade: &GradeRecord| grade.judge.as_ref().is_some_and(|judge| !judge.model.is_empty());
    let asks = |grade: &&GradeRecord| is_named(grade) && grade.passed.is_none();
    let grades = report.results.iter().flat_map(|result| result.grades.iter().filter(asks));
    let (mut count, mut first) = (0, None);
    for grade in grades {
        count += 1;
        first.get_or_insert(&*grade.reason);
    }
    let first = one_line(first?, 200, &LOOK);
    Some(format!("{} by a judge not given: {first}", plural(count, "grade")))
}

/// Returns a note on trials whose stored results are not the ones that were judged.
fn not_as_judged(report: &Report) -> Option<String> {
    let mut changed = report.results.iter().filter(|result| result.is_not_as_judged());
    let first = changed.next()?.error.as_ref()?;
    let trials = plural(changed.count() + 1, "trial");
    let first = one_line(&first.message, 200, &LOOK);
    Some(format!("the stored results of {trials} are not the ones that were judged and do not count: {first}"))
}

/// Returns a note if the stored results of the run were changed and have been gathered from the trials again.
fn results_changed(report: &Report) -> Option<String> {
    let mut warnings = report.results.iter().flat_map(|result| &result.warnings);
    let changed = warnings.find(|warning| matches!(warning, Warning::ResultsChanged { .. }))?;
    Some(one_line(&changed.to_string(), 400, &LOOK))
}

/// Returns a note on trials in which the policy `llm` got no answer from a model.
fn unadvised(report: &Report) -> Option<String> {
    let tells =
        |result: &&TrialResult| result.warnings.iter().any(|warning| matches!(warning, Warning::NoModel { .. }));
    let trials = report.results.iter().filter(tells).count();
    (trials > 0).then(|| {
        let trials = plural(trials, "trial");
        format!("{trials} with permission requests that no model answered; the warnings of the results say why")
    })
}

/// Returns a note on trials without a sandbox, in which the agent could read other files.
fn not_sandboxed(report: &Report) -> Option<String> {
    if report.run.graded && report.run.derived_from.is_none() {
        // A single trace does not state in which sandbox its agent ran.
        return None;
    }
    let planned = report.run.trials.iter().filter(|trial| trial.sandbox == Kind::None);
    let free: HashSet<_> = planned.map(|trial| (&*trial.case, &*trial.harness, &*trial.arm, trial.trial)).collect();
    // An agent that never started could not read anything.
    let began = |result: &&TrialResult| {
        let error = result.error.as_ref().map(|error| error.category);
        result.stop.is_some() && !matches!(error, Some(ErrorCategory::NotInstalled | ErrorCategory::StartFailed))
    };
    let ran: Vec<&TrialResult> = report.results.iter().filter(began).collect();
    let ran_free = |it: &&&TrialResult| free.contains(&(&*it.case, &*it.harness, &*it.arm, it.trial));
    let free = ran.iter().filter(ran_free).count();
    let who = match free {
        0 => return None,
        all if all == ran.len() => "agents were".to_owned(),
        some => format!("in {} the agent was", plural(some, "trial")),
    };
    Some(format!("{who} not sandboxed and could read what you can; `--sandbox bwrap` confines them"))
}

/// Returns a note on trials with more than one attempt: only the last attempt counts, but the reader should know of
/// the earlier ones.
fn tried_again(report: &Report) -> Option<String> {
    let earlier = report.results.iter().filter_map(|result| result.earlier_attempts);
    let attempts: Vec<usize> = earlier.map(|it| it.count as usize).filter(|count| *count > 0).collect();
    let all = attempts.iter().sum::<usize>() + attempts.len();
    let (were, of) = if attempts.len() == 1 { ("was", "its last one") } else { ("were", "the last one of each") };
    (!attempts.is_empty()).then(|| {
        let trials = plural(attempts.len(), "trial");
        format!("{trials} {were} tried again after an error or a break ({all} attempts); {of} is counted")
    })
}

/// Returns notes about the order of an experiment's trials, and about what the agents did not list as loaded.
fn of_experiment(report: &Report) -> Vec<String> {
    let run = &report.run;
    let mut notes = Vec::new();
    if let (true, Some(seed)) = (run.experiment.is_some() || run.options.aa, run.options.seed) {
        notes.push(format!(
            "the trials of each case were interleaved over the arms, in an order drawn from seed {seed}"
        ));
    }
    let lay = |key: &str| run.arms.iter().any(|arm| arm.overrides.contains_key(key));
    type Lists = fn(&Manifest) -> bool;
    let listed: [(&str, &str, Warning, Lists); 2] = [
        ("skills", "skills", Warning::SkillsNotListed, adapter::lists_skills),
        ("mcp-servers", "MCP servers", Warning::ServersNotListed, adapter::lists_servers),
    ];
    for (key, what, warning, lists) in listed {
        let silent = run.harnesses.iter().filter(|harness| lay(key) && !lists(&harness.manifest));
        let silent: Vec<&str> = silent.map(|harness| harness.name.as_str()).collect();
        if !silent.is_empty() {
            let names = some_of(silent, 5);
            notes.push(format!("not verified: which {what} were loaded, because {names} does not list them"));
        }
        let without = report.results.iter().filter(|it| it.warnings.contains(&warning)).count();
        if without > 0 {
            let trials = plural(without, "trial");
            notes.push(format!("not verified: which {what} were loaded in {trials}, which listed none"));
        }
    }
    let unseen = report.results.iter().filter(|it| lay("instructions") && it.model_from.is_none()).count();
    if unseen > 0 {
        notes.push(format!(
            "not verified: which instruction files were loaded in {}, which did not run behind the gateway (--gateway)",
            plural(unseen, "trial")
        ));
    }
    let mixed: Vec<&str> = run.arms.iter().filter(|arm| arm.mixed).map(|arm| arm.name.as_str()).collect();
    if !mixed.is_empty() {
        notes.push(format!("changed in the middle of the run: {}", some_of(mixed, 5)));
    }
    notes
}

/// Returns a note on a run whose number of trials depends on its results.
fn looked_at(report: &Report) -> Option<String> {
    let first = *report.run.options.looks.as_ref()?.first()?;
    let most = report.run.trials.iter().map(|trial| trial.trial).max()?;
    (most > first).then(|| {
        "the run was evaluated several times: trials were added until the result was clear (--trials auto)".to_owned()
    })
}

/// Returns a note on judges without a calibration, if a score depends on them.
fn uncalibrated(report: &Report) -> Option<String> {
    let counted = report.results.iter().flat_map(|result| &result.grades);
    let counted = counted.filter(|grade| !grade.diagnostic && grade.passed.is_some());
    let judges = counted.filter_map(|grade| grade.judge.as_ref()).filter(|judge| judge.calibrated == Some(false));
    let models: BTreeSet<&str> = judges.map(|judge| &*judge.model).collect();
    let models: Vec<String> = models.into_iter().map(str::to_owned).collect();
    (!models.is_empty()).then(|| format!("scores depend on uncalibrated judges: {}", some_of(&models, 5)))
}

//! Notes on a report's figures that a reader needs to know, one line each. Pure.

use std::collections::{BTreeMap, HashSet};

use super::cells::Figures;
use super::escape::LOOK;
use super::gathered::TrialInBrief;
use super::text::{money, one_line, plural};
use super::{Report, case_flags, commands, decisions, mixed, note_facts};
use crate::adapter;
use crate::case::quarantine::Quarantine;
use crate::fold::Tally;
use crate::harness::Manifest;
use crate::ids::column_name;
use crate::price;
use crate::run::PriceRecord;
use crate::sandbox::Kind;
use crate::text::some_of;
use crate::trace::amount::Amount;

/// The notes on models that were recordings, in the order of [`NoteFacts::played`](super::note_facts::NoteFacts::played).
const PLAYED_FROM_RECORDINGS: [&str; note_facts::PLAYED] = [
    "the model's answers were played from a cassette: it measures the agent, not the model",
    "the agent did not make all requests of its cassette",
    "the cassette was recorded with another version of the agent",
    "some answers of the model were played from a cassette",
    "the agent made no request to the gateway, so it used another model",
    "the cassette lacked requests outside the conversation",
    "no cassette was written, because the service answered no request",
    "no cassette was written, because the agent was ended before its session was complete",
    "the cassette lacks requests that cannot be recorded",
];

/// Returns notes on trials whose model was a recording.
fn played_from_recordings(report: &Report) -> Vec<String> {
    let notes = report.note_facts.played.into_iter().zip(PLAYED_FROM_RECORDINGS).filter(|(count, _)| *count > 0);
    notes.map(|(count, text)| format!("in {} {text}", plural(count, "trial"))).collect()
}

/// Returns the notes on a report.
pub fn of(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    let summary = &report.summary;
    if let Some(why) = &report.broken_off {
        let why = one_line(why, 400, &LOOK);
        notes.push(format!("the run broke off, so this report holds only what had finished: {why}"));
    }
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
    let again = report.note_facts.again;
    if again > 0 {
        notes.push(format!("flaky: {} passed that had failed before", plural(again, "trial")));
    }
    notes.extend(changed_between(report));
    for (case, quarantine) in report.run.in_quarantine() {
        notes.push(in_quarantine(&case.id, quarantine));
    }
    notes.extend(taken_in_quarantine(report));
    notes.extend(tried_again(report));
    notes.extend(run_anew(report));
    notes.extend(missing_attempts(report));
    notes.extend(case_flags::notes(&report.cases));
    notes.extend(looked_at(report));
    notes.extend(uncalibrated(report));
    if report.is_manual() {
        notes.push("permission requests were answered by a person; comparisons leave such a run out".to_owned());
    }
    notes.extend(of_experiment(report));
    notes.extend(not_as_judged(report));
    notes.extend(from_copies(report));
    notes.extend(without_evidence(report));
    notes.extend(unknown_to_journal(report.note_facts.unknown_to_journal));
    notes.extend(results_changed(report));
    notes.extend(not_verified(report));
    notes.extend(other_models(report));
    notes.extend(starts_in_times(report));
    notes.extend(variables_not_passed(report));
    notes.extend(unadvised(report));
    notes.extend(prompts_not_sent(report));
    notes.extend(other_inputs(report));
    notes.extend(case_in_workspace(report));
    notes.extend(protected_nothing(report));
    notes.extend(unjudged(report));
    notes.extend(played_from_recordings(report));
    notes.extend(not_sandboxed(report));
    notes.extend(without_score(report));
    let reasons = &report.note_facts.skipped;
    for (reason, count) in reasons.iter().take(5) {
        notes.push(format!("{} skipped: {reason}", plural(*count, "trial")));
    }
    if reasons.len() > 5 {
        notes.push(format!("more was skipped for {}", plural(reasons.len() - 5, "further reason")));
    }
    if report.going_on {
        notes.push(format!("the run is {}", report.state_so_far()));
    } else if summary.not_run > 0 {
        notes.push(not_run(report));
    }
    if report.lacks_end {
        notes.push(decisions::not_ended_sentence(report));
    }
    let unfinished = report.note_facts.unfinished;
    if unfinished > 0 {
        let trials = plural(unfinished, "trial");
        let have = if unfinished == 1 { "has" } else { "have" };
        notes.push(format!("{trials} {have} an attempt without a result; the cost includes what it reported"));
    }
    notes.extend(priced(report));
    notes.extend(report.asked.note());
    if report.columns.iter().any(|column| column.figures.cost().is_some_and(|cost| !cost.is_exact())) {
        notes.push("a cost with `≥` excludes trials that did not report it".to_owned());
    }
    if report.columns.iter().any(|column| column.figures.tokens().is_some_and(|tokens| !tokens.is_exact())) {
        notes.push("tokens with `≥` exclude trials that did not report them".to_owned());
    }
    notes.extend(without_time(report));
    notes
}

/// Returns a note on variables of `--env` that only the first trials of a run may have got.
fn variables_not_passed(report: &Report) -> Option<String> {
    let names = &report.run.options.env_not_passed;
    let text = || {
        let names = names.join(", ");
        format!(
            "trials that ran since the run was resumed did not get {names} (--env), because the home of each trial is private; \
             earlier trials may have got it"
        )
    };
    (!names.is_empty()).then(text)
}

/// Returns a note on columns whose median time leaves out trials. A column without any time shows none.
fn without_time(report: &Report) -> Option<String> {
    let has_time = report.columns.iter().filter(|column| column.figures.median_duration_ms.is_some());
    let without: usize = has_time.map(|column| column.figures.duration_unknown).sum();
    (without > 0).then(|| format!("median times exclude {} without a time", plural(without, "trial")))
}

/// Returns a note on trials whose cost comes from a price table, with the table and its date.
fn priced(report: &Report) -> Option<String> {
    let priced = report.note_facts.priced;
    let table = report.run.prices.as_ref().map(named_table).unwrap_or_default();
    (priced > 0).then(|| format!("the cost of {} comes from a price table{table}", plural(priced, "trial")))
}

/// Returns the end of the note on a price table.
fn named_table(prices: &PriceRecord) -> String {
    let named = match prices.origin.as_deref() {
        Some(price::BUILT_IN) => ": the built-in one".to_owned(),
        Some(file) => format!(": {file}"),
        None => String::new(),
    };
    let mixed = if prices.mixed { "; an earlier table priced some of them" } else { "" };
    one_line(&format!("{named}, dated {}{mixed}", prices.date), 400, &LOOK)
}

/// Returns the note on a case in quarantine.
pub fn in_quarantine(case: &str, quarantine: &Quarantine) -> String {
    let (until, why) = (quarantine.until, one_line(&quarantine.why, 200, &LOOK));
    format!("in quarantine until {until}, not counted: {case} ({why})")
}

/// Returns a note on cases, harnesses, arms and prices that changed between the trials of the run: its trials may be of
/// different versions.
fn changed_between(report: &Report) -> Option<String> {
    let names = one_line(&mixed::changed_parts(&report.run)?, 400, &LOOK);
    Some(format!(
        "changed in the middle of the run (--changed), so its trials cannot be compared with each other: {names}"
    ))
}

/// Returns a note on the figures of columns that include trials in quarantine, although scores do not.
fn taken_in_quarantine(report: &Report) -> Option<String> {
    let quarantined = report.cells.iter().filter(|cell| cell.quarantine.is_some());
    let figures = || quarantined.clone().map(|cell| &cell.figures);
    let spent = figures().map(Figures::cost_bound).reduce(Amount::plus);
    let spent = spent.filter(|_| figures().any(|it| it.cost().is_some()));
    let included = [
        spent.map(|spent| format!("cost ({} in all columns)", LOOK.amount(spent, money))),
        figures().any(|it| it.tokens().is_some()).then(|| "tokens".to_owned()),
        figures().any(|it| it.median_duration_ms.is_some()).then(|| "median time".to_owned()),
    ];
    let included: Vec<String> = included.into_iter().flatten().collect();
    (!included.is_empty()).then(|| {
        format!("these figures of a column include its cases in quarantine, unlike its score: {}", included.join(", "))
    })
}

/// Returns the limits that a resumed run has again. If one of them ended the run, it would start nothing, or end as early.
fn limits_again(report: &Report) -> String {
    let options = &report.run.options;
    let limits = [
        options.max_cost.map(|most| format!("--max-cost {most}")),
        options.max_time.map(|most| format!("--max-time {most}")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        String::new()
    } else {
        format!(", with {} again unless you give more", limits.join(" and "))
    }
}

/// Returns the note on planned trials without a result, with the command that completes the run.
fn not_run(report: &Report) -> String {
    let trials = plural(report.summary.not_run, "trial");
    match commands::to_resume(&report.run, &report.folder) {
        Some(run) if report.run.source_in_use => format!(
            "{trials} had not finished, because the run was going on when it was graded; grade it again: \
             `evals grade {run}`"
        ),
        Some(run) => format!("{trials} not run; `evals run --resume {run}` goes on{}", limits_again(report)),
        None => format!("{trials} not run"),
    }
}

/// Returns a note on the planned trials that have no score, with the reasons, if at least one of them is errored or
/// ungraded. Trials in quarantine are not counted: they have their own note.
fn without_score(report: &Report) -> Option<String> {
    let sum = |of: fn(&Tally) -> usize| report.columns.iter().map(|column| of(&column.tally)).sum::<usize>();
    let (planned, completed) = (sum(|it| it.trials), sum(Tally::completed));
    let reasons =
        [(sum(|it| it.errored), "errored"), (sum(|it| it.ungraded), "ungraded"), (sum(|it| it.not_run), "not run")];
    let reasons = reasons.into_iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}"));
    let reasons: Vec<String> = reasons.collect();
    let have = if planned - completed == 1 { "has" } else { "have" };
    let has_other = sum(|it| it.errored + it.ungraded) > 0;
    has_other.then(|| {
        format!("{} of {} {have} no score: {}", planned - completed, plural(planned, "trial"), reasons.join(", "))
    })
}

/// Returns notes on agents that ran in a version that their manifest was not verified with.
fn not_verified(report: &Report) -> Vec<String> {
    let note = |(harness, version): &(String, String)| {
        let manifest = &report.run.harnesses.iter().find(|record| record.name == *harness)?.manifest;
        let newest = manifest.newest_if_unverified(version)?;
        Some(format!("{harness}: the agent is version {version}, its manifest was verified with {newest}"))
    };
    report.note_facts.versions.iter().filter_map(note).collect()
}

/// Returns notes on columns in which another model than the requested one answered.
fn other_models(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    for (column, models) in report.columns.iter().zip(&report.models) {
        for ((requested, effective), trials) in &models.others {
            let trials = plural(*trials, "trial");
            let note = format!("{}: model {requested} was requested, and {effective} answered in {trials}", column.id);
            notes.push(one_line(&note, 400, &LOOK));
        }
    }
    notes
}

/// Returns a note on harnesses whose times include their start-up, if the times of others do not.
fn starts_in_times(report: &Report) -> Option<String> {
    let apart = &report.note_facts.start_apart;
    let within: Vec<String> = report.note_facts.start_within.difference(apart).cloned().collect();
    (!apart.is_empty() && !within.is_empty()).then(|| {
        format!("times of {} include the start of the program, those of the others do not", some_of(&within, 5))
    })
}

/// Returns a note on grades that judges did not give although they were named, even if the verdict does not
/// depend on them.
fn unjudged(report: &Report) -> Option<String> {
    let first = one_line(report.note_facts.first_unjudged.as_ref()?, 200, &LOOK);
    Some(format!("{} by a judge not given: {first}", plural(report.note_facts.unjudged, "grade")))
}

/// Returns a note on trials whose stored results differ from the recorded ones.
fn not_as_judged(report: &Report) -> Option<String> {
    let first = one_line(report.note_facts.first_not_as_judged.as_ref()?, 200, &LOOK);
    let trials = plural(report.note_facts.not_as_judged, "trial");
    Some(format!("the stored results of {trials} are not the ones that were graded and do not count: {first}"))
}

/// Returns a note on trials whose `result.json` is missing or was changed, so that their results come from other copies.
fn from_copies(report: &Report) -> Option<String> {
    let trials = report.note_facts.from_copies;
    (trials > 0).then(|| {
        let results = if trials == 1 { "its result comes" } else { "their results come" };
        let trials = plural(trials, "trial");
        format!(
            "the result.json of {trials} was removed or replaced; {results} from another copy, which the journal confirms"
        )
    })
}

/// Returns a note on trials of which evidence is missing, so that only their results are left.
fn without_evidence(report: &Report) -> Option<String> {
    let trials = report.note_facts.without_evidence;
    (trials > 0).then(|| {
        let files: Vec<&str> = report.note_facts.missing_files.iter().map(String::as_str).collect();
        let left = if trials == 1 { "its result is" } else { "their results are" };
        format!("files of {} are missing ({}): {left} left", plural(trials, "trial"), files.join(", "))
    })
}

/// Returns a note on results in the folders of trials that the journal does not know, because its lines were lost.
pub fn unknown_to_journal(results: usize) -> Option<String> {
    (results > 0).then(|| {
        let (are, count) = if results == 1 { ("is", "it does not count") } else { ("are", "they do not count") };
        let results = plural(results, "result");
        format!(
            "the journal does not know {results} that {are} in the folders of the trials, so {count}: lines of \
                 journal.jsonl were removed; restore a copy of the file"
        )
    })
}

/// Returns a note on earlier attempts whose files are missing, so that their cost is unknown.
fn missing_attempts(report: &Report) -> Option<String> {
    let missing = report.note_facts.missing_attempts;
    (missing > 0).then(|| {
        let are = if missing == 1 { "is" } else { "are" };
        format!("{} {are} missing, and the cost excludes what is missing", plural(missing, "earlier attempt"))
    })
}

/// Returns a note if the stored results of the run were changed and have been gathered from the trials again.
fn results_changed(report: &Report) -> Option<String> {
    Some(one_line(report.note_facts.results_changed.as_ref()?, 400, &LOOK))
}

/// Returns a note on trials in which the policy `llm` got no answer from a model.
fn unadvised(report: &Report) -> Option<String> {
    let trials = report.note_facts.unadvised;
    (trials > 0).then(|| {
        let trials = plural(trials, "trial");
        let to_resume = commands::to_resume(&report.run, &report.folder).filter(|_| report.note_facts.withheld > 0);
        // Stored traces have no run to resume.
        let again = to_resume.map(|run| format!("; run them again with: evals run --resume {run} --rerun ungraded"));
        let again = again.unwrap_or_default();
        format!("{trials} with permission requests that no model answered; the warnings of the results say why{again}")
    })
}

/// Returns a note on trials in which the agent did not end a turn by its answer, or reached a limit, so that later prompts
/// were not sent, and on stored trials of a case that has more prompts now.
fn prompts_not_sent(report: &Report) -> Option<String> {
    let trials = report.note_facts.prompts_not_sent;
    (trials > 0).then(|| {
        let trials = plural(trials, "trial");
        format!("in {trials} not every prompt was sent; the warnings of the results say how many")
    })
}

/// Returns a note on stored trials that were graded by a case that names other inputs than their agents had: a pass says nothing
/// about the case as it is now.
pub fn other_inputs(report: &Report) -> Option<String> {
    let trials = report.note_facts.other_inputs;
    (trials > 0).then(|| {
        let trials = plural(trials, "trial");
        format!(
            "in {trials} the agent had other inputs than the case names now, such as another prompt: the grades are those of \
             the old session"
        )
    })
}

/// Returns a note on trials whose workspace contained files of their own case: a pass may be the work of an agent that read them.
pub fn case_in_workspace(report: &Report) -> Option<String> {
    let trials = report.note_facts.case_in_workspace;
    (trials > 0).then(|| {
        let (trials, files) = (plural(trials, "trial"), some_of(&report.note_facts.files_of_case, 3));
        let note = format!("in {trials} the agent could read files of its own case: {files}");
        one_line(&note, 400, &LOOK)
    })
}

/// Returns a note on trials in which globs of `workspace.protect` protected no file.
fn protected_nothing(report: &Report) -> Option<String> {
    let trials = report.note_facts.protected_nothing;
    (trials > 0).then(|| {
        let trials = plural(trials, "trial");
        format!("in {trials} a glob of `workspace.protect` protected no file; the warnings of the results name it")
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
    let started = report.trials.iter().filter(|trial| trial.began);
    let cell = |trial: &TrialInBrief| report.cells.get(trial.cell).map(|cell| &cell.id);
    let ran_free =
        |it: &&TrialInBrief| cell(it).is_some_and(|of| free.contains(&(&*of.case, &*of.harness, &*of.arm, it.trial)));
    let who = match started.clone().filter(ran_free).count() {
        0 => return None,
        all if all == started.count() => "agents ran".to_owned(),
        some => format!("in {} the agent ran", plural(some, "trial")),
    };
    Some(format!("{who} without a sandbox and could read your files; `--sandbox bwrap` confines them"))
}

/// Returns a note on trials with more than one attempt: only the last attempt counts, but the reader should know of
/// the earlier ones.
fn tried_again(report: &Report) -> Option<String> {
    let tried = report.note_facts.tried_again;
    let all = report.note_facts.earlier_attempts + tried;
    let (verb, of) = if tried == 1 { ("was", "its last one") } else { ("were", "the last one of each") };
    (tried > 0).then(|| {
        let trials = plural(tried, "trial");
        let has_cost = report.columns.iter().any(|column| column.figures.cost().is_some());
        let costs = if has_cost { "; the cost includes all of them, tokens and time do not" } else { "" };
        format!("{trials} {verb} tried again after an error or a break ({all} attempts); {of} is counted{costs}")
    })
}

/// Returns a note on trials that ran again because their inputs had changed: what the discarded attempts cost was spent, and
/// is not the cost of what ran since.
fn run_anew(report: &Report) -> Option<String> {
    let (trials, discarded) = (report.note_facts.run_anew, report.note_facts.discarded_attempts);
    let (verb, their) = if trials == 1 { ("was", "its") } else { ("were", "their") };
    (trials > 0).then(|| {
        let has_cost = report.columns.iter().any(|column| column.figures.cost().is_some());
        let costs = if has_cost { "; the cost includes them, the cost per trial does not" } else { "" };
        format!(
            "{} {verb} run again because {their} inputs had changed (--changed rerun), and {} discarded{costs}",
            plural(trials, "trial"),
            match discarded {
                1 => "1 attempt was".to_owned(),
                count => format!("{count} attempts were"),
            }
        )
    })
}

/// Returns the columns of which more trials ran again in a resumed run than of another column, in the same case, each with the
/// number of these trials: they ran apart from the trials that they are compared with.
fn ran_apart(report: &Report) -> Vec<(String, usize)> {
    let ran_later = &report.note_facts.ran_later;
    let mut apart: BTreeMap<String, usize> = BTreeMap::new();
    if ran_later.is_empty() {
        return Vec::new();
    }
    for (case, cells) in report.cells_by_case() {
        let Some(later) = ran_later.get(case) else { continue };
        let columns = cells.iter().filter(|cell| cell.tally.trials > 0);
        let columns: Vec<String> = columns.map(|cell| column_name(&cell.id.harness, &cell.id.arm)).collect();
        let count = |column: &String| later.get(column).copied().unwrap_or_default();
        let least = columns.iter().map(count).min().unwrap_or_default();
        for column in columns.iter().filter(|column| count(column) > least) {
            *apart.entry(column.clone()).or_default() += count(column);
        }
    }
    apart.into_iter().collect()
}

/// Returns notes about the order of an experiment's trials, about what its arms share or lack, and about what the agents did
/// not list as loaded.
fn of_experiment(report: &Report) -> Vec<String> {
    let run = &report.run;
    let mut notes = Vec::new();
    if let (true, Some(seed)) = (run.experiment.is_some() || run.options.aa, run.options.seed) {
        let apart = ran_apart(report);
        let apart: Vec<String> =
            apart.into_iter().map(|(column, trials)| format!("{} of {column}", plural(trials, "trial"))).collect();
        let except = match apart.as_slice() {
            [] => String::new(),
            some => format!(", except {}, which ran again later (--resume)", some_of(some, 5)),
        };
        notes.push(format!(
            "the trials of each case were interleaved over the arms, in an order drawn from seed {seed}{except}"
        ));
    }
    notes.extend(run.arm_doubts().iter().map(|doubt| one_line(&doubt.to_string(), 400, &LOOK)));
    let lay = |key: &str| run.arms.iter().any(|arm| arm.overrides.contains_key(key));
    type Lists = fn(&Manifest) -> bool;
    let listed: [(&str, &str, usize, Lists); 2] = [
        ("skills", "skills", report.note_facts.skills_not_listed, adapter::lists_skills),
        ("mcp-servers", "MCP servers", report.note_facts.servers_not_listed, adapter::lists_servers),
    ];
    for (key, what, without, lists) in listed {
        let silent = run.harnesses.iter().filter(|harness| lay(key) && !lists(&harness.manifest));
        let silent: Vec<&str> = silent.map(|harness| harness.name.as_str()).collect();
        if !silent.is_empty() {
            let names = some_of(silent, 5);
            notes.push(format!("not verified: which {what} were loaded, because {names} does not list them"));
        }
        if without > 0 {
            let trials = plural(without, "trial");
            notes.push(format!("not verified: which {what} were loaded in {trials}, which listed none"));
        }
    }
    let unseen = if lay("instructions") { report.note_facts.without_gateway } else { 0 };
    if unseen > 0 {
        notes.push(format!(
            "not verified: which instruction files were loaded in {}, which did not run behind the gateway (--gateway)",
            plural(unseen, "trial")
        ));
    }
    notes
}

/// Returns a note on a run whose number of trials depends on its results.
fn looked_at(report: &Report) -> Option<String> {
    let first = *report.run.options.looks.as_ref()?.first()?;
    let most = report.run.trials.iter().map(|trial| trial.trial).max()?;
    (most > first).then(|| {
        "the run was evaluated several times: trials were added until the result was clear or a limit was reached (--trials auto)".to_owned()
    })
}

/// Returns a note on judges without a calibration, if a score depends on them.
fn uncalibrated(report: &Report) -> Option<String> {
    let models = &report.note_facts.uncalibrated;
    (!models.is_empty()).then(|| format!("scores depend on uncalibrated judges: {}", some_of(models, 5)))
}

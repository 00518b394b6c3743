//! Caveats of a comparison: conditions that differ between the sides, trials without a score, and weak
//! evidence.

use std::collections::BTreeSet;

use serde::Serialize;

use super::join::{Joined, Reason};
use super::result_doubts::ResultDoubts;
use super::side::{Arm, CaseFacts, Side};
use crate::case::digest::may_differ_behind_links;
use crate::fold::CaseTrials;
use crate::ids::without_copy;
use crate::models;
use crate::plan::arm_doubts::ArmDoubt;
use crate::reason_text::first_few_long;
use crate::text::{plural, some_of};

/// The maximum number of names in a caveat.
const MAX_NAMES: usize = 4;
/// The maximum number of texts for one reason in a caveat.
const REASONS: usize = 2;

/// Returns the caveats of a pair of arms. `doubted` lists the doubts about results of the comparison.
pub fn doubts(old: (&Side, &Arm), new: (&Side, &Arm), joined: &Joined<'_>, doubted: &ResultDoubts) -> Vec<Doubt> {
    let mut found = Vec::new();
    found.extend(same_trials(old.0, new.0));
    found.extend(left_out(joined));
    found.extend(doubted.caveat_of_harness(&new.1.name));
    found.extend(of_manifests(old, new));
    found.extend(of_judged_again(old.0, new.0, joined));
    found.extend(of_links(old.0, new.0, joined));
    found.extend(of_conditions(old.1, new.1));
    found.extend(of_environment(old.0, new.0));
    found.extend(of_times(old.1, new.1));
    if old.0.evals != new.0.evals {
        let text = format!("the old side was written by evals {}, the new side by {}", old.0.evals, new.0.evals);
        found.push(Doubt::new(About::Version, text));
    }
    found.extend(of_variants(old, new));
    found.extend([old.1, new.1].into_iter().filter_map(of_mixed_variant));
    found.extend(of_same_variants(old, new, joined));
    found.extend(of_skills_of_one(old, new, joined));
    found.extend(of_snapshots(old.1, new.1));
    found.extend([old.1, new.1].into_iter().flat_map(of_loaded));
    found.extend([old.1, new.1].into_iter().filter_map(|arm| doubted.caveat(&arm.name)));
    found.extend(of_models(old.1, new.1));
    found.extend([old.1, new.1].into_iter().filter_map(of_another_model));
    found.extend([old.1, new.1].into_iter().flat_map(of_trials));
    found.extend(of_prices(old, new));
    found.extend(of_numbers(joined));
    found.extend([old.0, new.0].into_iter().filter_map(|side| of_kept(side, joined)));
    found.extend(unknown_versions(old.1, new.1));
    found.extend(unknown_models(old.1, new.1));
    found
}

/// A caveat: it does not prevent the comparison, but the reader needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Doubt {
    /// The subject of the caveat.
    pub about: About,
    /// The caveat as text.
    pub text: String,
}

/// The subject of a caveat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// Both sides contain the same trials: the baseline was made from the other run, one run is a regrading of the other, or
    /// one run contains a shard of the other.
    SameRun,
    /// The manifests of a harness differ, or one changed in the middle of a run.
    Harness,
    /// Two different harnesses are compared.
    OtherHarness,
    /// A side was graded again, and no agent was run for it.
    Graded,
    /// Trials were retried after an attempt that counts in no score, or ran again because their inputs had changed.
    Retries,
    /// The sandboxes of the trials differ.
    Sandbox,
    /// The agents of the sides got other environment variables of the user.
    Environment,
    /// The trials of the two sides may have been given different tasks.
    Played,
    /// The versions of the agent differ.
    Agent,
    /// The version of the agent is unknown.
    UnknownVersion,
    /// The judge models differ, or some have no calibration.
    Judges,
    /// Trials were compared with different accepted snapshots of the same cell, or accepted by their own run.
    Snapshots,
    /// The times of one side include the start of the agent's program, and those of the other do not.
    Times,
    /// Costs come from a price table, or the sides have different ones.
    Prices,
    /// The runs were made by different versions of `evals`.
    Version,
    /// Several models answered in one arm, different models answered under the same name, or another model than the requested
    /// one answered.
    Model,
    /// A model was requested, and it is unknown which model answered.
    UnknownModel,
    /// Some harnesses or models are on one side only.
    Unmatched,
    /// Trials were errored.
    Errors,
    /// Trials are ungraded.
    Ungraded,
    /// The variants of the sides differ, or one changed in the middle of a run; or the two variants are the same in some cases,
    /// or a grader asks for a skill that only one of them has.
    Variant,
    /// Agents loaded skills that their trials should not have, had the user's own home, or could read files of their own cases.
    Loaded,
    /// The difference changed while the trials ran, or trials of one arm ran later than those of the other.
    Trend,
    /// The verdict `equivalent` rests on the spread of few cases.
    FewDiffer,
    /// Planned trials did not run, or have an attempt without a result.
    NotRun,
    /// The numbers of trials per case differ.
    Trials,
    /// Cases are left out.
    Unpaired,
}

impl About {
    /// Returns true if the caveat concerns the outcomes for equal cases under equal conditions, and false if it
    /// concerns the conditions.
    pub fn is_about_outcomes(self) -> bool {
        match self {
            About::Errors | About::Ungraded | About::Trials | About::Retries | About::Trend | About::FewDiffer => true,
            About::Prices | About::Times | About::OtherHarness | About::Graded => true,
            About::UnknownVersion | About::UnknownModel => true,
            About::NotRun | About::SameRun | About::Unmatched | About::Unpaired | About::Played => false,
            About::Harness | About::Sandbox | About::Agent | About::Judges | About::Version | About::Model => false,
            About::Loaded | About::Variant | About::Environment | About::Snapshots => false,
        }
    }
}

impl Doubt {
    fn new(about: About, text: impl Into<String>) -> Self {
        Self { about, text: text.into() }
    }
}

/// Returns the caveats about cases that are left out, by reason.
fn left_out(joined: &Joined<'_>) -> Vec<Doubt> {
    let mut reasons: Vec<(Reason, Vec<String>, usize)> = Vec::new();
    for case in &joined.unpaired {
        match reasons.iter_mut().find(|(reason, ..)| *reason == case.reason) {
            Some((_, texts, count)) => {
                *count += 1;
                if !texts.contains(&case.text) {
                    texts.push(case.text.clone());
                }
            }
            None => reasons.push((case.reason, vec![case.text.clone()], 1)),
        }
    }
    let doubt = |(_, texts, count): (Reason, Vec<String>, usize)| {
        let cases = if count == 1 { "1 case is".to_owned() } else { format!("{count} cases are") };
        Doubt::new(About::Unpaired, format!("{cases} left out: {}", first_few_long(&texts, REASONS)))
    };
    reasons.into_iter().map(doubt).collect()
}

/// Returns a caveat if one side holds the trials of the other, or was graded again without an agent.
fn same_trials(old: &Side, new: &Side) -> Vec<Doubt> {
    if old.baseline && old.run == new.run {
        return vec![Doubt::new(About::SameRun, "the baseline was made from this run")];
    }
    if old.run == new.run {
        // Both arms belong to one run.
        return again(new).into_iter().collect();
    }
    let of_old = std::iter::once(&old.run).chain(&old.origins);
    let shared: Vec<&String> = of_old.filter(|run| **run == new.run || new.origins.contains(run)).collect();
    let those = match shared.as_slice() {
        [] => None,
        [run] => Some(format!("run {run}")),
        several => Some(format!("runs {}", some_of(several, MAX_NAMES))),
    };
    let doubt = |those: String| {
        let text = format!("both sides grade the same trials, those of {those}; no agent ran in between");
        Doubt::new(About::SameRun, text)
    };
    those.map(doubt).into_iter().chain([old, new].into_iter().filter_map(again)).collect()
}

/// Returns a caveat about arms of two runs that have the same name but are different variants.
fn of_variants(old: (&Side, &Arm), new: (&Side, &Arm)) -> Option<Doubt> {
    if old.0.run == new.0.run && !old.0.baseline {
        return None;
    }
    let text = match (&old.1.made.variant, &new.1.made.variant) {
        (Some(before), Some(now)) if before != now => {
            format!("the variant `{}` is not the same on both sides: what it overrides has changed", new.1.column)
        }
        (Some(_), None) => format!("{} is a variant of an experiment, and {} is not", old.1.name, new.1.name),
        (None, Some(_)) => format!("{} is a variant of an experiment, and {} is not", new.1.name, old.1.name),
        _ => return None,
    };
    Some(Doubt::new(About::Variant, text))
}

/// Returns a caveat about cases in which the agents of both arms got the same, so that they show no effect of the variant.
fn of_same_variants(old: (&Side, &Arm), new: (&Side, &Arm), joined: &Joined<'_>) -> Option<Doubt> {
    if old.0.run != new.0.run || old.0.baseline || old.1.harness != new.1.harness {
        return None;
    }
    let (before, now) = (without_copy(&old.1.column), without_copy(&new.1.column));
    let same = new.1.same_as.get(before).or_else(|| old.1.same_as.get(now))?;
    let cases: BTreeSet<String> = joined.cases.iter().map(|case| case.id.to_owned()).collect();
    let (of, cases) = (cases.len(), cases.intersection(same).cloned().collect::<BTreeSet<String>>());
    let (first, second) = (before.to_owned(), now.to_owned());
    (!cases.is_empty()).then(|| Doubt::new(About::Variant, ArmDoubt::Same { first, second, cases, of }.to_string()))
}

/// Returns caveats about skills that counted graders of cases ask for and that only one of the two arms has.
fn of_skills_of_one(old: (&Side, &Arm), new: (&Side, &Arm), joined: &Joined<'_>) -> Vec<Doubt> {
    let mut found = Vec::new();
    for (arm, other) in [(old.1, new.1), (new.1, old.1)] {
        for (skill, cases) in &arm.lacks_skills {
            let of_other = other.lacks_skills.get(skill);
            let is_compared = |id: &&String| joined.cases.iter().any(|case| case.id == id.as_str());
            let alone = cases.iter().filter(|id| of_other.is_none_or(|others| !others.contains(*id)));
            let cases: BTreeSet<String> = alone.filter(is_compared).cloned().collect();
            if !cases.is_empty() {
                let (arm, skill) = (without_copy(&arm.column).to_owned(), skill.clone());
                found.push(Doubt::new(About::Variant, ArmDoubt::Lacks { arm, skill, cases }.to_string()));
            }
        }
    }
    found
}

/// Returns a caveat if in some case more trials of one arm than of the other had finished and ran again in a resumed run: they
/// ran apart from those that they are compared with.
pub(super) fn ran_apart(old: &Arm, new: &Arm, joined: &Joined<'_>) -> Option<Doubt> {
    let differ = joined.cases.iter().filter(|case| case.old.ran_later != case.new.ran_later);
    let (before, now) =
        differ.fold((0, 0), |(before, now), case| (before + case.old.ran_later, now + case.new.ran_later));
    let later = [(before, &old.name), (now, &new.name)].into_iter().filter(|(count, _)| *count > 0);
    let later: Vec<String> =
        later.map(|(count, name)| format!("{} of {name}", plural(count as usize, "trial"))).collect();
    let text = || format!("not interleaved: {} ran again later than the others (--resume)", later.join(" and "));
    (!later.is_empty()).then(|| Doubt::new(About::Trend, text()))
}

/// Returns a caveat if the variant of an arm changed between its trials.
fn of_mixed_variant(arm: &Arm) -> Option<Doubt> {
    let text = || format!("{}: the variant `{}` changed between its trials", arm.name, without_copy(&arm.column));
    arm.made.mixed_variant.then(|| Doubt::new(About::Variant, text()))
}

/// Returns caveats about cells whose accepted snapshot is not the same on both sides, changed between the trials of one side,
/// or was accepted by the run itself. Arms of different harnesses or models have snapshots of their own.
fn of_snapshots(old: &Arm, new: &Arm) -> Vec<Doubt> {
    let is_same_cell = old.harness == new.harness && without_copy(&old.column) == without_copy(&new.column);
    let (old_digests, new_digests) = (&old.made.snapshots, &new.made.snapshots);
    let is_changed =
        |(cell, digests): &(&String, &BTreeSet<String>)| new_digests.get(*cell).is_some_and(|now| now != *digests);
    let changed: Vec<&String> = old_digests.iter().filter(is_changed).map(|(cell, _)| cell).collect();
    let mut found = Vec::new();
    if is_same_cell && !changed.is_empty() {
        let text = format!("the accepted snapshots are not the same on both sides: {}", some_of(changed, 5));
        found.push(Doubt::new(About::Snapshots, text));
    }
    for arm in [old, new] {
        let is_mixed = |(_, digests): &(&String, &BTreeSet<String>)| digests.len() > 1;
        let mixed: Vec<&String> = arm.made.snapshots.iter().filter(is_mixed).map(|(cell, _)| cell).collect();
        if !mixed.is_empty() {
            let text = format!("{}: accepted snapshots changed between its trials: {}", arm.name, some_of(mixed, 5));
            found.push(Doubt::new(About::Snapshots, text));
        }
        if !arm.made.own_snapshots.is_empty() {
            let cells = some_of(&arm.made.own_snapshots, 5);
            let text =
                format!("{}: the run accepted its own snapshots, so these graders could not fail: {cells}", arm.name);
            found.push(Doubt::new(About::Snapshots, text));
        }
    }
    found
}

/// Returns caveats about skills, servers, plugins and files that the agents of an arm had and their trials did not provide.
fn of_loaded(arm: &Arm) -> Vec<Doubt> {
    let Some(details) = &arm.details else { return Vec::new() };
    let mut found = Vec::new();
    if !details.unexpected.is_empty() {
        let names = some_of(&details.unexpected, 5);
        found.push(Doubt::new(About::Loaded, format!("{} loaded skills that it should not have: {names}", arm.name)));
    }
    for (what, trials) in [("skills", details.without_skills), ("MCP servers", details.without_servers)] {
        if trials > 0 {
            let trials = plural(trials, "trial");
            let text = format!("{}: {trials} listed no {what}, so the loaded {what} were not verified", arm.name);
            found.push(Doubt::new(About::Loaded, text));
        }
    }
    if details.user_home {
        let text = format!("{} ran in the user's own home, with the skills and instructions in it", arm.name);
        found.push(Doubt::new(About::Loaded, text));
    }
    found
}

fn again(side: &Side) -> Option<Doubt> {
    let from = side.origins.first().map(|run| format!(" from run {run}")).unwrap_or_default();
    side.graded.then(|| Doubt::new(About::Graded, format!("{} was graded again{from}, without an agent", side.run)))
}

/// Returns caveats about the manifest of a harness that is not the same on both sides, or that changed between the trials of one.
fn of_manifests(old: (&Side, &Arm), new: (&Side, &Arm)) -> Vec<Doubt> {
    let digest = |(side, arm): (&Side, &Arm)| side.harnesses.get(&arm.harness).cloned();
    let mut found = Vec::new();
    if old.1.harness == new.1.harness && digest(old) != digest(new) {
        found.push(Doubt::new(About::Harness, format!("the manifest of harness `{}` has changed", new.1.harness)));
    }
    for (_, arm) in [old, new].iter().filter(|(_, arm)| arm.made.mixed) {
        let text = format!("{}: the manifest of harness `{}` changed between its trials", arm.name, arm.harness);
        found.push(Doubt::new(About::Harness, text));
    }
    found
}

/// Returns a caveat about trials that were graded again: the agent may have been given an older version of the case.
fn of_judged_again(old: &Side, new: &Side, joined: &Joined<'_>) -> Option<Doubt> {
    let is_unknown = |facts: Option<&CaseFacts>| facts.is_none_or(|facts| facts.played.is_none());
    let of_both = |id: &str| is_unknown(old.cases.get(id)) || is_unknown(new.cases.get(id));
    let unknown = joined.cases.iter().filter(|case| (old.graded || new.graded) && of_both(case.id)).count();
    let cases = if unknown == 1 { "1 case was".to_owned() } else { format!("{unknown} cases were") };
    let text = format!("{cases} graded again, and it is unknown whether the agents of both sides had the same inputs");
    (unknown > 0).then(|| Doubt::new(About::Played, text))
}

/// Returns a caveat about cases with links if one side was recorded by a version that did not read what links lead to.
fn of_links(old: &Side, new: &Side, joined: &Joined<'_>) -> Option<Doubt> {
    let is_unknown = |before: &CaseFacts, now: &CaseFacts| {
        let played = before.played.as_ref().zip(now.played.as_ref());
        may_differ_behind_links(&before.digest, &now.digest)
            || played.is_some_and(|(before, now)| may_differ_behind_links(before, now))
    };
    let of_both = |id: &str| Some((old.cases.get(id)?, new.cases.get(id)?));
    let ids = joined.cases.iter().map(|case| case.id);
    let unknown: Vec<&str> =
        ids.filter(|id| of_both(id).is_some_and(|(before, now)| is_unknown(before, now))).collect();
    let cases = if unknown.len() == 1 { "1 case".to_owned() } else { format!("{} cases", unknown.len()) };
    let text = || {
        let names = some_of(&unknown, MAX_NAMES);
        format!(
            "{cases} may have changed: the digests of one side do not cover the files that links lead to, because an \
             older version of evals wrote them: {names}"
        )
    };
    (!unknown.is_empty()).then(|| Doubt::new(About::Played, text()))
}

fn some(names: &BTreeSet<String>) -> String {
    some_of(names, MAX_NAMES)
}

/// Returns the first names, those that the other side does not have before the others.
fn some_beside(names: &BTreeSet<String>, other: &BTreeSet<String>) -> String {
    some_of(names.difference(other).chain(names.intersection(other)), MAX_NAMES)
}

/// Returns a caveat if both sides know their names and the names differ.
fn not_the_same(about: About, what: &str, old: &BTreeSet<String>, new: &BTreeSet<String>) -> Option<Doubt> {
    let differ = !old.is_empty() && !new.is_empty() && old != new;
    differ
        .then(|| Doubt::new(about, format!("{what}: {} before, {} now", some_beside(old, new), some_beside(new, old))))
}

/// Returns a caveat about cases whose results a baseline kept from an earlier one while they were in quarantine: its header
/// does not describe their trials.
fn of_kept(side: &Side, joined: &Joined<'_>) -> Option<Doubt> {
    let from = |id: &str| Some(format!("{id} (run {})", side.cases.get(id)?.kept_from.as_ref()?));
    let kept: Vec<String> = joined.cases.iter().filter_map(|case| from(case.id)).collect();
    let cases = if kept.len() == 1 { "1 case has".to_owned() } else { format!("{} cases have", kept.len()) };
    let text = || {
        let names = some_of(&kept, MAX_NAMES);
        format!(
            "{cases} results that the baseline kept from an earlier run while they were in quarantine, perhaps of another version \
             of the agent: {names}"
        )
    };
    (!kept.is_empty()).then(|| Doubt::new(About::UnknownVersion, text()))
}

/// Returns a caveat if it is unknown whether the same version of an agent ran: not every agent reported its
/// version.
fn unknown_versions(old: &Arm, new: &Arm) -> Option<Doubt> {
    let has_version = |agent: &String| {
        let last = agent.rsplit(' ').next().filter(|last| last.len() < agent.len()).unwrap_or_default();
        last.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit())
    };
    let is_unknown = |arm: &&Arm| {
        let has_scores = arm.cases.values().any(|case| !case.scores.is_empty());
        let agents = &arm.made.agents;
        has_scores && (agents.is_empty() || arm.made.versionless > 0 || !agents.iter().all(has_version))
    };
    let names: Vec<&str> = [old, new].into_iter().filter(is_unknown).map(|arm| arm.name.as_str()).collect();
    let text = format!("the agent's version is unknown: {}; it may not be the same on both sides", names.join(", "));
    (!names.is_empty() && old.harness == new.harness).then(|| Doubt::new(About::UnknownVersion, text))
}

fn of_conditions(old: &Arm, new: &Arm) -> Vec<Doubt> {
    let (old_facts, new_facts) = (&old.made, &new.made);
    let mut found = Vec::new();
    found.extend(not_the_same(
        About::Sandbox,
        "the sandbox is not the same",
        &old_facts.sandboxes,
        &new_facts.sandboxes,
    ));
    if old.harness == new.harness {
        found.extend(not_the_same(About::Agent, "the agent is not the same", &old_facts.agents, &new_facts.agents));
    }
    // An arm without judges does not count as a difference: it had no key, or no grader that calls a judge model.
    found.extend(not_the_same(About::Judges, "the judges are not the same", &old_facts.judges, &new_facts.judges));
    for (judge, models) in &old_facts.judge_models {
        if let Some(now) = new_facts.judge_models.get(judge) {
            found.extend(not_the_same(About::Judges, &format!("other models answered as judge {judge}"), models, now));
        }
    }
    let uncalibrated: BTreeSet<String> = old_facts.uncalibrated.union(&new_facts.uncalibrated).cloned().collect();
    if !uncalibrated.is_empty() {
        let text = format!("scores depend on uncalibrated judges: {}", some(&uncalibrated));
        found.push(Doubt::new(About::Judges, text));
    }
    found
}

/// Returns a caveat if the agents of the sides got other environment variables of the user. Only the names are known: runs do
/// not keep the values.
fn of_environment(old: &Side, new: &Side) -> Option<Doubt> {
    let names = |side: &Side| match &side.env {
        None => "unknown".to_owned(),
        Some(names) if names.is_empty() => "none".to_owned(),
        Some(names) => some_of(names, 5),
    };
    let has_any = [old, new].iter().any(|side| side.env.as_ref().is_some_and(|names| !names.is_empty()));
    let text = || format!("the variables from `--env` are not the same: {} before, {} now", names(old), names(new));
    (has_any && old.env != new.env).then(|| Doubt::new(About::Environment, text()))
}

fn of_times(old: &Arm, new: &Arm) -> Option<Doubt> {
    let is_within = old.details.as_ref()?.times_include_start()?;
    let (with, without) = if is_within { (old, new) } else { (new, old) };
    old.is_timed_otherwise(new).then(|| {
        let text = format!(
            "times are not compared: those of {} include the start of the program, those of {} do not",
            with.name, without.name
        );
        Doubt::new(About::Times, text)
    })
}

fn of_models(old: &Arm, new: &Arm) -> Vec<Doubt> {
    let mut found = Vec::new();
    if old.column == new.column {
        found.extend(not_the_same(About::Model, "another model answered", &old.made.models, &new.made.models));
    } else if old.harness == new.harness
        && asked_for(old) != asked_for(new)
        && !old.made.models.is_empty()
        && old.made.models == new.made.models
    {
        let text = format!("the same model answered in both: {}", some(&old.made.models));
        found.push(Doubt::new(About::Model, text));
    }
    let played = |arm: &Arm| arm.made.model_from.iter().any(|source| source != "upstream");
    for (arm, other) in [(old, new), (new, old)] {
        if played(arm) && !played(other) {
            let from = some(&arm.made.model_from);
            let text =
                format!("{}: the model's answers came from a {from}, and the other side's from a model", arm.name);
            found.push(Doubt::new(About::Model, text));
        }
    }
    if played(old) && played(new) && asked_for(old) != asked_for(new) {
        let text = "the models' answers of both sides were recorded or scripted, so the models themselves did not run";
        found.push(Doubt::new(About::Model, text.to_owned()));
    }
    for arm in [old, new].into_iter().filter(|arm| arm.made.models.len() > 1) {
        let text = format!("{}: several models answered: {}", arm.name, some(&arm.made.models));
        found.push(Doubt::new(About::Model, text));
    }
    found
}

/// Returns a caveat if another model than the requested one answered in an arm.
fn of_another_model(arm: &Arm) -> Option<Doubt> {
    let requested = arm.model.as_deref()?;
    let others = arm.made.models.iter().filter(|model| !models::same(requested, model));
    let others: BTreeSet<String> = others.cloned().collect();
    let text = || format!("{}: {requested} was requested, but {} answered", arm.name, some(&others));
    (!others.is_empty()).then(|| Doubt::new(About::Model, text()))
}

/// Returns a caveat about arms for which a model was requested, if no trial reports which model answered.
fn unknown_models(old: &Arm, new: &Arm) -> Option<Doubt> {
    let is_unknown = |arm: &&Arm| {
        let has_scores = arm.cases.values().any(|case| !case.scores.is_empty());
        has_scores && arm.model.is_some() && arm.made.models.is_empty()
    };
    let names: Vec<&str> = [old, new].into_iter().filter(is_unknown).map(|arm| arm.name.as_str()).collect();
    let text = || {
        let names = names.join(", ");
        format!("it is unknown which model answered: {names}; it may be another one than the requested model")
    };
    (!names.is_empty()).then(|| Doubt::new(About::UnknownModel, text()))
}

/// Returns the model that was requested for an arm.
fn asked_for(arm: &Arm) -> &str {
    arm.model.as_deref().unwrap_or("default")
}

/// Returns the caveats about trials of an arm that are in no score, or whose cost the agent did not report.
fn of_trials(arm: &Arm) -> Vec<Doubt> {
    let count = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum::<u64>();
    let all = count(CaseTrials::planned);
    let has_cost = arm.cases.values().any(|it| it.cost.total().is_some());
    let tried_again = match has_cost {
        true => {
            "tried again after an attempt that is in no score; the cost includes all attempts, tokens and time only the last"
        }
        false => "tried again after an attempt that is in no score",
    };
    let run_anew = match has_cost {
        true => {
            "run again because their inputs had changed (--changed rerun); the cost of the discarded attempts counts for \
             --max-cost only (`cost_usd` in JSON)"
        }
        false => "run again because their inputs had changed (--changed rerun)",
    };
    let counts = [
        (About::NotRun, count(|it| it.not_run), "never run"),
        (About::Errors, count(|it| it.errored), "errored and in no score"),
        (About::Errors, count(|it| it.counted_errors), "crashed or broke the protocol, and count as failures"),
        (About::Retries, count(|it| it.tried_again), tried_again),
        (About::Retries, count(|it| it.discarded), run_anew),
        (About::Ungraded, count(|it| it.ungraded), "not graded and in no score"),
    ];
    let lost = counts.into_iter().filter(|(_, lost, _)| *lost > 0);
    let mut found: Vec<Doubt> = lost
        .map(|(about, lost, what)| Doubt::new(about, format!("{}: {lost} of {all} trials {what}", arm.name)))
        .collect();
    if let unfinished @ 1.. = count(|it| it.unfinished) {
        let have = if unfinished == 1 { "has" } else { "have" };
        let text = format!(
            "{}: {unfinished} of {all} trials {have} an attempt without a result, whose cost counts for --max-cost only \
             (`cost_usd` in JSON)",
            arm.name
        );
        found.push(Doubt::new(About::NotRun, text));
    }
    if let priced @ 1.. = count(|it| it.priced) {
        let text = format!("{}: the cost of {priced} of {all} trials comes from a price table", arm.name);
        found.push(Doubt::new(About::Prices, text));
    }
    found
}

/// Returns caveats about costs from different price tables: between the trials of an arm, and between the sides if both have
/// costs from a table.
fn of_prices(old: (&Side, &Arm), new: (&Side, &Arm)) -> Vec<Doubt> {
    let is_priced = |arm: &Arm| arm.cases.values().any(|case| case.priced > 0);
    let is_mixed = |side: &Side| side.prices.as_ref().is_some_and(|prices| prices.mixed);
    let mut found = Vec::new();
    for (side, arm) in [old, new] {
        if is_mixed(side) && is_priced(arm) {
            let text =
                format!("{}: the price table changed between its trials, so the costs cannot be compared", arm.name);
            found.push(Doubt::new(About::Prices, text));
        }
    }
    let is_one_run = old.0.run == new.0.run && !old.0.baseline;
    if is_one_run || !is_priced(old.1) || !is_priced(new.1) {
        return found;
    }
    let text = match (&old.0.prices, &new.0.prices) {
        (Some(before), Some(now)) if before.digest == now.digest => return found,
        (Some(before), Some(now)) if before.date == now.date => {
            format!("the price tables differ, so the costs cannot be compared: both are of {}", now.date)
        }
        (Some(before), Some(now)) => {
            format!(
                "the price tables differ, so the costs cannot be compared: of {} before, of {} now",
                before.date, now.date
            )
        }
        _ => "it is unknown whether the costs of both sides come from the same price table".to_owned(),
    };
    found.push(Doubt::new(About::Prices, text));
    found
}

fn of_numbers(joined: &Joined<'_>) -> Option<Doubt> {
    let numbers = joined.cases.iter().flat_map(|case| [case.old.scores.len(), case.new.scores.len()]);
    let (fewest, most) = (numbers.clone().min()?, numbers.max()?);
    let text = format!("cases have from {fewest} to {most} trials with a score; each case counts once");
    (fewest != most).then(|| Doubt::new(About::Trials, text))
}

//! The plan of a run: cases × harnesses × models × trials, with the skipped ones and the reasons. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::PathBuf;

use globset::{GlobBuilder, GlobMatcher};

use crate::attachment::{self, Kind};
use crate::case::{BetweenTurns, Case, KEEP_APART, LoadError};
use crate::experiment::Arm;
use crate::gateway::route::{CaseModel, Mode};
use crate::harness::catalog::Catalog;
use crate::harness::{Manifest, ServersVia};
use crate::ids::{TrialRecord, column_name, without_copy};
use crate::interaction::Interaction;
use crate::overlay;
use crate::sandbox;
use crate::text::{plural, some_of};
use crate::yaml::words;

pub mod arm_doubts;

/// The requests of the command line.
#[derive(Debug, Clone, Default)]
pub struct PlanRequest {
    /// Harnesses that override those of the cases.
    pub harnesses: Vec<String>,
    /// Models; each is a further column.
    pub models: Vec<AskedModel>,
    /// The number of trials, overriding that of the cases.
    pub trials: Option<u32>,
    /// Globs of case ids to run.
    pub cases: Vec<String>,
    /// Tags to run; a case with any of them is run.
    pub tags: Vec<String>,
    /// A policy that overrides those of the cases.
    pub interaction: Option<Interaction>,
    /// A sandbox that overrides those of the cases and the manifests.
    pub sandbox: Option<sandbox::Kind>,
    /// The arms of an experiment, the baseline first. Empty without an experiment.
    pub arms: Vec<Arm>,
    /// If `true`, the baseline is compared with itself: its trials are planned twice, and no other arm is planned.
    pub aa: bool,
    /// The treatment of agents' requests by the model gateway.
    pub gateway: Option<Mode>,
}

/// A model, for one harness or for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedModel {
    pub harness: Option<String>,
    pub model: String,
}

/// The maximum number of trials of a plan.
const MAX_TRIALS: u64 = 2_000_000;

/// The reason why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Variants of an experiment that cannot be applied to their harnesses.
    #[error("{} of the experiment cannot be applied to their harnesses", crate::text::plural(.0.len(), "variant"))]
    Arms(Vec<LoadError>),
    /// An arm is to be compared with itself, but there are several.
    #[error(
        "--aa compares one arm with itself, and there are {}; choose one with --harness and --model, or name a \
         baseline in an experiment",
        .0.join(", ")
    )]
    SeveralArms(Vec<String>),
    /// Two arms of a harness have the same name: that of a copy is also requested.
    #[error(
        "two arms of harness `{harness}` are named `{arm}`: repeating `{}` makes a copy of this name, and `{arm}` is \
         requested, too; leave out one of them", without_copy(.arm)
    )]
    SameArm { harness: String, arm: String },
    /// The trials of a case would be in the folder of another case's trial.
    #[error(
        "case `{inner}` would have its trials in the folder of a trial of case `{outer}`; give one of them another `id`"
    )]
    Nested { inner: String, outer: String },
    /// The plan has more trials than one run can hold.
    #[error(
        "the plan has {trials} trials, and a run can have {MAX_TRIALS}; ask for fewer with --trials or in the cases"
    )]
    TooMany { trials: u64 },
    #[error("no harness is named `{name}`{hint}")]
    UnknownHarness {
        /// The requested name.
        name: String,
        /// Similar names.
        hint: String,
    },
    /// The manifest of the harness has no command.
    #[error(
        "harness `{harness}` cannot be launched: its manifest has no command; add `command:` to \
         harnesses/{harness}.yaml"
    )]
    NoCommand { harness: String },
    /// A model is requested for a harness that cannot choose one.
    #[error(
        "harness `{harness}` has no `model:` route, so `--model {model}` cannot be applied to it; write `--model \
         HARNESS={model}` for the intended harness, or add a `model:` route to its manifest"
    )]
    NoModelRoute { harness: String, model: String },
    /// A model is requested for a harness that is not in the plan.
    #[error("`--model {harness}={model}` names a harness that is not in the plan")]
    StrayModel { harness: String, model: String },
    /// The demo agent has no script.
    #[error(
        "{file}: case `{case}` has no script for the demo agent (`{script}` beside it); name a harness with `--harness NAME`, `harnesses:` in the case or `harness:` in the experiment, or write the script"
    )]
    NoDemoScript {
        /// The case's file.
        file: String,
        case: String,
        /// The script's name.
        script: String,
    },
    /// The filters leave no case.
    #[error("no case is left: {0}")]
    Nothing(String),
    /// A filter matches no case, whether or not others do.
    #[error("{0}")]
    Unmatched(String),
    /// An invalid glob.
    #[error("`--case {0}` is not a glob")]
    BadGlob(String),
}

/// Plans a run.
///
/// # Errors
/// Returns an error if the request is invalid; nothing was started.
pub fn plan(cases: &[Case], catalog: &Catalog, asked: &PlanRequest) -> Result<Vec<TrialRecord>, PlanError> {
    let kept = filter(cases, asked)?;
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for case in &kept {
        if asked.arms.is_empty() {
            cells.extend(cells_of_models(case, catalog, asked)?);
        }
    }
    cells.extend(cells_of_arms(&kept, catalog, asked)?);
    for model in &asked.models {
        let is_used = |harness: &String| cells.iter().any(|cell| cell.manifest.name == *harness);
        if let Some(harness) = model.harness.as_ref().filter(|harness| !is_used(harness)) {
            return Err(PlanError::StrayModel { harness: harness.clone(), model: model.model.clone() });
        }
    }
    if asked.aa {
        cells = twice(cells)?;
    }
    check_places(&cells)?;
    let planned = cells.iter().map(|cell| u64::from(asked.trials.unwrap_or(cell.case.trials)));
    let trials = planned.fold(0, u64::saturating_add);
    if trials > MAX_TRIALS {
        return Err(PlanError::TooMany { trials });
    }
    let trials_of = |cell: Cell<'_>| {
        let Cell { case, manifest, arm, model, skip } = cell;
        let sandbox = sandbox::kind(asked.sandbox, case.sandbox.as_ref(), manifest.sandbox.as_ref());
        let one = TrialRecord {
            case: case.id.clone(),
            harness: manifest.name.clone(),
            model,
            arm,
            trial: 1,
            skip,
            failed_in: None,
            sandbox,
        };
        (1..=asked.trials.unwrap_or(case.trials)).map(move |trial| TrialRecord { trial, ..one.clone() })
    };
    Ok(cells.into_iter().flat_map(trials_of).collect())
}

/// Checks that each cell has folders of its own: `CASE/HARNESS/ARM`, with a folder for each trial.
fn check_places(cells: &[Cell<'_>]) -> Result<(), PlanError> {
    let mut places: BTreeMap<String, &Cell<'_>> = BTreeMap::new();
    for cell in cells {
        let place = format!("{}/{}/{}/", cell.case.id, in_folder(&cell.manifest.name), in_folder(&cell.arm));
        if places.insert(place, cell).is_some() {
            return Err(PlanError::SameArm { harness: cell.manifest.name.clone(), arm: cell.arm.clone() });
        }
    }
    for (place, outer) in &places {
        let below = places.range::<str, _>((Bound::Excluded(place.as_str()), Bound::Unbounded));
        for (other, inner) in below.take_while(|(other, _)| other.starts_with(place)) {
            let first = other.get(place.len()..).and_then(|rest| rest.split('/').next()).unwrap_or_default();
            if first.parse::<u32>().is_ok() {
                let (inner, outer) = (inner.case.id.clone(), outer.case.id.clone());
                return Err(PlanError::Nested { inner, outer });
            }
        }
    }
    Ok(())
}

/// Returns a name as a part of a path.
fn in_folder(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// A case with a harness, an arm and a model, of which the plan has one or more trials.
struct Cell<'a> {
    case: &'a Case,
    manifest: &'a Manifest,
    arm: String,
    model: Option<String>,
    skip: Option<String>,
}

/// Returns the cells of a case: its harnesses, each with the requested models.
fn cells_of_models<'a>(case: &'a Case, catalog: &'a Catalog, asked: &PlanRequest) -> Result<Vec<Cell<'a>>, PlanError> {
    let mut cells = Vec::new();
    for harness in harnesses_of(case, asked) {
        let manifest = &*catalog.named(harness).ok_or_else(|| unknown(harness, catalog))?.manifest;
        check_start(case, manifest, catalog, asked.gateway)?;
        let skip = skip_reason(case, manifest, catalog, asked.interaction.as_ref(), asked.gateway);
        for (arm, model) in arms(manifest, &asked.models)? {
            cells.push(Cell { case, manifest, arm, model, skip: skip.clone() });
        }
    }
    Ok(cells)
}

/// Returns the cells of an experiment: each case with each arm, on the harness of the arm or those of the case.
fn cells_of_arms<'a>(
    cases: &[&'a Case],
    catalog: &'a Catalog,
    asked: &PlanRequest,
) -> Result<Vec<Cell<'a>>, PlanError> {
    let (mut cells, mut refused) = (Vec::new(), Vec::new());
    // Without the other arms, nothing is compared with the baseline but the baseline itself.
    let arms = asked.arms.get(..if asked.aa { 1 } else { asked.arms.len() }).unwrap_or(&asked.arms);
    refused.extend(arms.iter().flat_map(|arm| shown_cases(arm, cases)));
    for case in cases {
        for arm in arms {
            for harness in harnesses_of_arm(arm, case, asked) {
                let manifest = &*catalog.named(harness).ok_or_else(|| unknown(harness, catalog))?.manifest;
                check_start(case, &arm.manifest(manifest), catalog, asked.gateway)?;
                let interaction = asked.interaction.as_ref();
                let mode = asked.gateway;
                let of = |arm: &Arm| skip_reason(&arm.case(case), &arm.manifest(manifest), catalog, interaction, mode);
                let skip = skip_reason(case, manifest, catalog, interaction, mode);
                let model = arm.layer.model.clone();
                if model.is_some() && !manifest.model_selection() {
                    let why = format!("harness `{harness}` has no `model:` route, so no model can be requested");
                    refused.push(arm.error(Some("model"), why, "remove `model`, or add a route to the manifest"));
                } else if let Some(why) = of(arm).filter(|_| skip.is_none()) {
                    // The key that alone has the same effect is the one to point at.
                    let key = arm.layer.written().into_iter().find(|key| of(&arm.only(key)).is_some());
                    let message = format!("harness `{harness}` cannot take the variant `{}`: {why}", arm.name);
                    let (with, on) = (arm.case(case), arm.manifest(manifest));
                    let help = match overlay::not_found(&with.overlay, &on, &with.env) {
                        Some(_) => "remove the variable, or lay it into the workspace with `in: project`",
                        None => "remove the key, or choose another harness",
                    };
                    refused.push(arm.error(key, message, help));
                }
                cells.push(Cell { case, manifest, arm: arm.name.clone(), model, skip });
            }
        }
    }
    let same = same_arms(cases, catalog, asked).into_iter().find(|(differ, ..)| differ.is_empty() && !asked.aa);
    if let Some((_, first, second)) = same.filter(|_| refused.is_empty()) {
        let arm = asked.arms.iter().find(|arm| arm.name == second);
        let message = format!(
            "the variants `{first}` and `{second}` resolve to the same arm: their agents get the same in every case"
        );
        refused.extend(arm.map(|arm| arm.error(None, message, "remove one of them, or write what differs")));
    }
    let mut seen = BTreeSet::new();
    refused.retain(|error| seen.insert(error.to_string()));
    if refused.is_empty() { Ok(cells) } else { Err(PlanError::Arms(refused)) }
}

/// Returns an error for each file or folder that an arm lays and that would show an agent files of its case: the agents of that arm
/// could read how they are graded, or the solution.
pub fn shown_cases(arm: &Arm, cases: &[&Case]) -> Vec<LoadError> {
    let shown = arm.laid().filter_map(|(key, path)| {
        let mut messages = cases.iter().filter_map(|case| case.shown_by(key, path));
        let (first, others) = (messages.next()?, messages.count());
        let message = match others {
            0 => first,
            others => format!("{first}; the same holds for {}", plural(others, "other case")),
        };
        Some(arm.error(Some(key), message, KEEP_APART))
    });
    shown.collect()
}

/// Returns the pairs of arms whose agents get the same in some cases, with the cases in which they differ, if any: with no
/// such case, the two are one arm.
fn same_arms(cases: &[&Case], catalog: &Catalog, asked: &PlanRequest) -> Vec<(Vec<String>, String, String)> {
    let resolved = |arm: &Arm, case: &Case| {
        let of = |harness: &&str| catalog.named(harness).map(|entry| arm.resolved_for(case, &entry.manifest));
        harnesses_of_arm(arm, case, asked).iter().filter_map(of).collect::<Vec<String>>()
    };
    let arms: Vec<(&Arm, Vec<Vec<String>>)> =
        asked.arms.iter().map(|arm| (arm, cases.iter().map(|case| resolved(arm, case)).collect())).collect();
    let mut found = Vec::new();
    for (number, (second, of_second)) in arms.iter().enumerate() {
        for (first, of_first) in arms.iter().take(number) {
            let pairs = cases.iter().zip(of_first.iter().zip(of_second));
            let (same, differ): (Vec<_>, Vec<_>) = pairs.partition(|(_, (one, other))| one == other);
            if !same.is_empty() {
                let differ = differ.into_iter().map(|(case, _)| case.id.clone()).collect();
                found.push((differ, first.name.clone(), second.name.clone()));
            }
        }
    }
    found
}

/// Returns the cells of a single arm, each followed by its copy.
fn twice<'a>(cells: Vec<Cell<'a>>) -> Result<Vec<Cell<'a>>, PlanError> {
    let columns: BTreeSet<(String, String)> =
        cells.iter().map(|cell| (cell.manifest.name.clone(), cell.arm.clone())).collect();
    if columns.len() > 1 {
        return Err(PlanError::SeveralArms(columns.iter().map(|(harness, arm)| column_name(harness, arm)).collect()));
    }
    let copy = |cell: Cell<'a>| {
        let arm = format!("{}#2", cell.arm);
        let copy = Cell { arm, model: cell.model.clone(), skip: cell.skip.clone(), ..cell };
        [cell, copy]
    };
    Ok(cells.into_iter().flat_map(copy).collect())
}

/// Checks that the program of a harness can be started for a case.
fn check_start(case: &Case, manifest: &Manifest, catalog: &Catalog, gateway: Option<Mode>) -> Result<(), PlanError> {
    if manifest.command.is_empty() && manifest.adapter.starts_a_process() {
        return Err(PlanError::NoCommand { harness: manifest.name.clone() });
    }
    // A case that is skipped for another reason needs no script.
    if no_gateway(case, manifest, catalog, gateway).is_none() { check_script(case, manifest) } else { Ok(()) }
}

/// Returns why a case is skipped on a harness, if it is.
fn skip_reason(
    case: &Case,
    manifest: &Manifest,
    catalog: &Catalog,
    interaction: Option<&Interaction>,
    gateway: Option<Mode>,
) -> Option<String> {
    skip(case, manifest, interaction.unwrap_or(&case.interaction))
        .or_else(|| no_gateway(case, manifest, catalog, gateway))
}

/// Returns why a harness cannot run a case as it is written, if so: the harness does not take a part of the case, or
/// cannot be pointed at the case's model. What the case `requires` is not considered.
pub fn unserved(case: &Case, manifest: &Manifest, catalog: &Catalog) -> Option<String> {
    not_offered(case, manifest)
        .or_else(|| too_many_turns(case, manifest))
        .or_else(|| no_gateway(case, manifest, catalog, None))
}

fn too_many_turns(case: &Case, manifest: &Manifest) -> Option<String> {
    let turns = case.turns.len();
    (turns > 1 && !manifest.multi_turn())
        .then(|| format!("the case has {turns} turns, and harness `{}` takes one", manifest.name))
}

fn harnesses_of<'a>(case: &'a Case, asked: &'a PlanRequest) -> Vec<&'a str> {
    let named = if asked.harnesses.is_empty() { &case.harnesses } else { &asked.harnesses };
    let mut names: Vec<&str> = Vec::new();
    for name in named {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() { vec!["demo"] } else { names }
}

/// Returns the harness that an arm names, else those of the case.
fn harnesses_of_arm<'a>(arm: &'a Arm, case: &'a Case, asked: &'a PlanRequest) -> Vec<&'a str> {
    arm.layer.harness.as_ref().map_or_else(|| harnesses_of(case, asked), |harness| vec![harness])
}

fn filter<'a>(cases: &'a [Case], asked: &PlanRequest) -> Result<Vec<&'a Case>, PlanError> {
    let globs = asked.cases.iter().map(|text| glob(text)).collect::<Result<Vec<_>, _>>()?;
    refuse_unmatched(cases, asked, &globs)?;
    let named = |case: &&Case| globs.is_empty() || globs.iter().any(|glob| glob.is_match(&case.id));
    let tagged = |case: &&Case| asked.tags.is_empty() || asked.tags.iter().any(|tag| case.tags.contains(tag));
    let kept: Vec<&Case> = cases.iter().filter(named).filter(tagged).collect();
    if kept.is_empty() {
        // Each filter alone matches a case.
        let mut filters: Vec<String> = asked.cases.iter().map(|glob| format!("--case {glob}")).collect();
        filters.extend(asked.tags.iter().map(|tag| format!("--tag {tag}")));
        let selected = cases.iter().filter(named);
        let tags: BTreeSet<&str> = selected.flat_map(|case| &case.tags).map(String::as_str).collect();
        let known = known("tags", "of the cases that --case selects ", tags, None);
        return Err(PlanError::Nothing(format!("{} matches none of the cases; {known}", filters.join(" "))));
    }
    Ok(kept)
}

/// Refuses filters that match none of the cases, also beside others that match some: one of them is probably mistyped.
fn refuse_unmatched(cases: &[Case], asked: &PlanRequest, globs: &[GlobMatcher]) -> Result<(), PlanError> {
    let matches_none = |glob: &GlobMatcher| !cases.iter().any(|case| glob.is_match(&case.id));
    let unmatched = asked.cases.iter().zip(globs).filter(|(_, glob)| matches_none(glob));
    let unmatched: Vec<&String> = unmatched.map(|(text, _)| text).collect();
    let nothing = |option: &str, texts: &[&String], known: String| {
        let filters: Vec<String> = texts.iter().map(|text| format!("{option} {text}")).collect();
        Err(PlanError::Unmatched(format!("{} matches none of the cases; {known}", filters.join(" "))))
    };
    if !unmatched.is_empty() {
        let ids: BTreeSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
        let near = unmatched.iter().find_map(|glob| near_case(glob, &ids));
        return nothing("--case", &unmatched, known("cases", "", ids, near));
    }
    let tags: BTreeSet<&str> = cases.iter().flat_map(|case| &case.tags).map(String::as_str).collect();
    let unmatched: Vec<&String> = asked.tags.iter().filter(|tag| !tags.contains(tag.as_str())).collect();
    if !unmatched.is_empty() {
        let near = unmatched.iter().find_map(|tag| near_tag(tag, &tags));
        return nothing("--tag", &unmatched, known("tags", "", tags, near));
    }
    Ok(())
}

/// Returns what a filter could have matched. `whose` ends with a space, unless it is empty.
fn known(what: &str, whose: &str, words: BTreeSet<&str>, near: Option<String>) -> String {
    match (words.len(), near) {
        (0, _) => format!("there are no {what} {whose}").trim_end().to_owned(),
        (_, Some(near)) => format!("{near}The {what} {whose}are {}", some_of(words, 8)),
        (_, None) => format!("the {what} {whose}are {}", some_of(words, 8)),
    }
}

/// Returns the tag that was probably meant.
fn near_tag(tag: &str, known: &BTreeSet<&str>) -> Option<String> {
    let near = words::nearest(tag, &known.iter().copied().collect::<Vec<_>>())?.to_owned();
    Some(format!("did you mean `{near}`? "))
}

/// Returns the glob that was probably meant: all cases below a folder, a case of this name in a folder, or the case with a similar
/// ID.
fn near_case(text: &str, known: &BTreeSet<&str>) -> Option<String> {
    let folder = format!("{}/", text.trim_end_matches('/'));
    if known.iter().any(|id| id.starts_with(&folder)) {
        return Some(format!("did you mean `--case '{folder}*'`? "));
    }
    let name = format!("/{text}");
    let below: BTreeSet<&str> = known.iter().copied().filter(|id| id.ends_with(&name)).collect();
    if !below.is_empty() {
        return Some(format!("did you mean {}? ", some_of(below.into_iter().map(|id| format!("`{id}`")), 3)));
    }
    let near = words::nearest(text, &known.iter().copied().collect::<Vec<_>>())?.to_owned();
    Some(format!("did you mean `{near}`? "))
}

fn glob(text: &str) -> Result<GlobMatcher, PlanError> {
    let glob = GlobBuilder::new(text).literal_separator(false).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|_| PlanError::BadGlob(text.to_owned()))
}

fn unknown(name: &str, catalog: &Catalog) -> PlanError {
    let names = catalog.names();
    let near = names.iter().min_by_key(|known| strsim::damerau_levenshtein(known, name));
    let hint = match near {
        Some(near) if strsim::damerau_levenshtein(near, name) <= 3 => format!("; did you mean `{near}`?"),
        _ => format!("; there are {}", names.join(", ")),
    };
    PlanError::UnknownHarness { name: name.to_owned(), hint }
}

fn check_script(case: &Case, manifest: &Manifest) -> Result<(), PlanError> {
    let missing = manifest.script_variants().into_iter().find(|variant| case.script(variant).is_none());
    match missing {
        None => Ok(()),
        Some(variant) => Err(PlanError::NoDemoScript {
            file: case.shown().display().to_string(),
            case: case.id.clone(),
            script: case.script_name(&variant),
        }),
    }
}

/// Returns the parts of the case that the harness cannot take: without them, the case would be a different one.
fn not_offered(case: &Case, manifest: &Manifest) -> Option<String> {
    if let Err(why) = overlay::items(&case.overlay, manifest) {
        return Some(format!("the case {why}"));
    }
    if let Some(why) = overlay::not_found(&case.overlay, manifest, &case.env) {
        return Some(format!("the case {why}"));
    }
    if !case.mcp_servers.is_empty() && manifest.servers_via() == ServersVia::None {
        return Some(format!("the case offers MCP servers, and harness `{}` takes none", manifest.name));
    }
    if let Some((name, by)) = manifest.server_not_taken(&case.mcp_servers) {
        let harness = &manifest.name;
        let what = format!("the MCP server `{name}` over {by}");
        return Some(format!("the case offers {what}, which harness `{harness}` does not take"));
    }
    let adapter = manifest.adapter;
    let word = adapter.word();
    let takes = |file: &&PathBuf| {
        // A file with an unknown extension is inspected when the trial begins.
        let kind = attachment::by_name(file).map_or(Kind::Text, |(kind, _)| kind);
        adapter.takes(kind)
    };
    let goes_on_elsewhere = case.session.between_turns.is_some_and(|by| by != BetweenTurns::Keep);
    if let Some(file) = case.attachments.iter().find(|file| !takes(file)) {
        let name = file.file_name().unwrap_or_default().display();
        Some(format!("the case attaches `{name}`, and `{word}` does not accept such files"))
    } else if adapter.has_sessions() {
        None
    } else if let Some(mode) = &case.session.mode {
        Some(format!("the case sets the session mode `{mode}`, and `{word}` has no modes"))
    } else if goes_on_elsewhere && case.turns.len() > 1 {
        Some(format!("the case continues its session in another process, which `{word}` does not support"))
    } else {
        None
    }
}

/// Returns why a case whose model is behind the gateway cannot be run: the harness cannot be pointed at it.
fn no_gateway(case: &Case, manifest: &Manifest, catalog: &Catalog, mode: Option<Mode>) -> Option<String> {
    let needs = match (&case.model, mode) {
        (Some(CaseModel::Script(_)), _) => "the case has a scripted model",
        (Some(CaseModel::Cassette { .. }), _) => "the case plays a recording of its model",
        (None, Some(_)) => "the run uses the model gateway",
        (None, None) => return None,
    };
    manifest.gateway.is_none().then(|| {
        let can = catalog.entries().map(|entry| &entry.manifest).filter(|manifest| manifest.gateway.is_some());
        let can = can.map(|manifest| &*manifest.name);
        let can = can.collect::<Vec<_>>().join(", ");
        let can = if can.is_empty() { String::new() } else { format!("; these can: {can}") };
        format!("{needs}, and the manifest of harness `{}` has no `gateway`{can}", manifest.name)
    })
}

/// Returns the columns of a harness: one for each requested model, or one without a model. A model that is
/// requested twice is a further arm, so that a model can be compared with itself.
fn arms(manifest: &Manifest, models: &[AskedModel]) -> Result<Vec<(String, Option<String>)>, PlanError> {
    let mut arms: Vec<(String, Option<String>)> = Vec::new();
    for asked in models {
        if asked.harness.as_ref().is_some_and(|harness| *harness != manifest.name) {
            continue;
        }
        if !manifest.model_selection() {
            return Err(PlanError::NoModelRoute { harness: manifest.name.clone(), model: asked.model.clone() });
        }
        let same = arms.iter().filter(|(_, model)| model.as_ref() == Some(&asked.model)).count();
        let arm = if same == 0 { asked.model.clone() } else { format!("{}#{}", asked.model, same + 1) };
        arms.push((arm, Some(asked.model.clone())));
    }
    if arms.is_empty() {
        arms.push(("default".to_owned(), None));
    }
    Ok(arms)
}

/// Returns why a case cannot be run on a harness, if it cannot.
fn skip(case: &Case, manifest: &Manifest, interaction: &Interaction) -> Option<String> {
    let seen = manifest.seen();
    let lacks = |wanted: Option<bool>, has: bool, what: &str| {
        let differs = wanted.is_some_and(|wanted| wanted && !has);
        differs.then(|| format!("the case requires {what}, which harness `{}` does not have", manifest.name))
    };
    let needs = &case.requires;
    lacks(needs.tracing, seen.tracing, "tracing")
        .or_else(|| lacks(needs.interaction, seen.interaction, "interaction"))
        .or_else(|| lacks(needs.multi_turn, manifest.multi_turn(), "several turns"))
        .or_else(|| lacks(needs.model_selection, manifest.model_selection(), "model selection"))
        .or_else(|| not_offered(case, manifest))
        .or_else(|| too_many_turns(case, manifest))
        .or_else(|| {
            (!seen.interaction && *interaction != Interaction::AutoApprove).then(|| {
                format!(
                    "the case's policy `{}` needs a harness that asks for permission, and `{}` does not",
                    interaction.word(),
                    manifest.name
                )
            })
        })
        .or_else(|| {
            let mode = case.session.mode.as_deref().filter(|mode| manifest.is_unattended(mode))?;
            interaction.needs_interaction().then(|| {
                format!(
                    "the case's policy `{}` needs an agent that asks for permission, and `{}` does not ask for every \
                     permission in mode `{mode}`",
                    interaction.word(),
                    manifest.name
                )
            })
        })
}

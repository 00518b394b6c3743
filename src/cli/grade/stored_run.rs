//! Plans the regrading of a run: its finished trials, with the current cases.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{GradeArgs, LeftAttempt, Plan, Work, stored_traces};
use crate::case::digest::is_same;
use crate::case::{Case, WorkspaceSource, load_all, load_known};
use crate::cli::left_above::LeftAbove;
use crate::cli::run::{self, commits, override_limits, record, resume};
use crate::cli::{CliError, default_runs, engine, inputs, named_run, terminal};
use crate::environment;
use crate::experiment::{Arm, arm_of};
use crate::harness::Manifest;
use crate::ids::{TrialId, TrialRecord, by_case_id};
use crate::interaction::Interaction;
use crate::limits::OnLimit;
use crate::plan::arm_doubts::{ArmDoubt, lacking};
use crate::report::notes;
use crate::result::{TrialResult, Warning};
use crate::run::folder::RunFolder;
use crate::run::journal::TrialState;
use crate::run::{ArmRecord, CaseRecord, HarnessRecord, RunError, RunRecord, integrity, project_of_run};
use crate::text::some_of;
use crate::trial::regrade::{InputsOfAgent, StoredFiles};
use crate::trial::{Attempt, previous_attempts};

/// Reads a run, and its current cases.
pub(super) fn plan(args: &GradeArgs) -> Result<Plan, CliError> {
    let [name] = args.stored.as_slice() else {
        return Err(CliError::unreadable("name one run, or the files of traces and a case with --case FILE"));
    };
    // The derived run is written to the named folder; the original run may also lie in the default folder.
    let run = match named_run::by_name(&args.folder.runs, name) {
        Err(unknown @ (RunError::Unknown { .. } | RunError::NoFile { .. })) => {
            named_run::by_name(&default_runs(), name).map_err(|_| unknown)?
        }
        found => found?,
    };
    let source = run.record()?;
    terminal::tell_project(&source);
    project_of_run::enter(&source);
    // Asked first: a run that ends in this moment has all of its results.
    let source_in_use = run.is_in_use();
    let states = run.states()?;
    let cases = cases(&args.cases, &source)?;
    super::prices(resume::named_prices(&source), cases.values().map(AsRef::as_ref))?;
    let manifests = manifests(&source);
    let (arms, lost) = match arms(&source) {
        Ok(arms) => (arms, None),
        Err(why) => {
            terminal::note(format_args!("note: {why}; its arms are graded with what run.json records"));
            let recorded = source.arms.iter().map(|arm| Arm::recorded(&arm.name, &arm.overrides));
            (recorded.collect(), Some(why))
        }
    };
    let origins = origins(&run, &source);
    let mut sources = HashMap::new();
    for known in &source.cases {
        if let Some(case) = cases.get(&known.id) {
            sources.insert(known.id.clone(), of_source(known, case)?);
        }
    }
    if let Some(note) = notes::unknown_to_journal(run.unknown_results(&source)?) {
        terminal::note(format_args!("warning: {note}"));
    }
    let (mut record, inputs) = derived(args, source.clone(), &cases)?;
    ask_for_skills_again(&mut record, &cases, &arms);
    let regraded =
        RegradedRun { run: &run, source: &source, cases: &cases, manifests, arms, lost, origins, sources, inputs };
    let (mut works, mut from_copies, mut left_above) = (Vec::new(), Vec::new(), LeftAbove::default());
    let mut had_other_prompt = Vec::new();
    for trial in source.trials.iter().filter(|trial| trial.skip.is_none()) {
        let Some(state) = states.get(&trial.id()).filter(|state| state.finished.is_some()) else { continue };
        let earlier = run.result_of(trial, state)?;
        left_above.see(&earlier);
        if earlier.is_from_copy() {
            from_copies.push(trial.id());
        }
        let work = regraded.work(trial, state, earlier.without_copy_mark())?;
        let has_prompts_alone = source.arms.is_empty() && !regraded.has_recorded_inputs(trial);
        if has_prompts_alone && work.files.inputs == InputsOfAgent::Other {
            had_other_prompt.push(trial.id());
        }
        works.push(work);
    }
    let changed: Vec<&str> =
        regraded.arms.iter().filter(|arm| regraded.has_changed(arm)).map(|arm| arm.name.as_str()).collect();
    if !changed.is_empty() {
        let arms = some_of(&changed, 5);
        terminal::note(format_args!(
            "note: the agents had other inputs than the experiment names now, because variants have changed: {arms}"
        ));
    }
    if !had_other_prompt.is_empty() {
        let trials = some_of(&had_other_prompt, 5);
        terminal::note(format_args!("note: the agents had another prompt than the case names now: {trials}"));
    }
    if !from_copies.is_empty() {
        let trials = some_of(&from_copies, 5);
        terminal::note(format_args!(
            "warning: the result.json of {trials} was removed or replaced; the copy counts, which the journal confirms"
        ));
    }
    if works.is_empty() {
        // A lost journal is an error here as it is for a report: the results are there, and their trials would run again.
        run.results(&source)?;
    }
    let has_finished = !works.is_empty() || source.trials.iter().all(|trial| trial.skip.is_some());
    let nothing_finished = (!has_finished).then(|| (RunFolder::open(&run.path), source.clone()));
    let sandbox = args.sandbox.or(source.options.sandbox);
    let without_result = without_result(&run, &source, &states)?;
    match source.graded {
        false => left_above.see_journal(&run, &source),
        // No agent ran for a regraded run.
        true => regraded.origins.iter().for_each(|origin| see_origin(&mut left_above, origin)),
    }
    // A source with `--trials auto` that did not reach its end may lack trials, and so does the derived run, which has no end
    // of its own.
    let ends = source.options.looks.is_some() && run.lacks_end(&source)?;
    let source_in_use = source_in_use || source.source_in_use;
    let record = RunRecord { source_in_use, ends, ..record };
    Ok(Plan { record, works, nothing_finished, without_result, sandbox, left_above })
}

/// A run that is graded again.
struct RegradedRun<'a> {
    run: &'a RunFolder,
    source: &'a RunRecord,
    /// The current cases, by their IDs.
    cases: &'a HashMap<String, Arc<Case>>,
    manifests: HashMap<String, Arc<Manifest>>,
    arms: Vec<Arm>,
    /// The reason why the arms are those that `run.json` records, if so.
    lost: Option<String>,
    /// The run and, if it was itself made by `grade`, the runs it was made from.
    origins: Vec<RunFolder>,
    /// Doubts about the source of each case.
    sources: HashMap<String, Doubts>,
    /// The differences between the inputs of each case's agents and those that it names now.
    inputs: HashMap<String, InputsOfAgent>,
}

impl RegradedRun<'_> {
    /// Plans the regrading of a finished trial. `was` is its result.
    fn work(&self, trial: &TrialRecord, state: &TrialState, earlier: TrialResult) -> Result<Work, CliError> {
        let at = self.run.counting_attempt(trial, state)?;
        let case = self.cases.get(&trial.case);
        let arm = arm_of(&self.arms, &trial.arm);
        let (mut no_source, doubt) = self.sources.get(&trial.case).cloned().unwrap_or_default();
        let inputs = self.inputs_of(trial, &earlier, &at);
        if let Some(arm) = arm {
            let changed = self.known_arm(arm).is_some_and(|known| known.mixed || known.digest != arm.digest);
            // What is laid is needed where the workspace is made anew.
            if let Some(why) = self.lost.as_ref().filter(|_| arm.lays_files()) {
                no_source = no_source.or_else(|| Some(format!("it was not kept, and {why}")));
            } else if changed && self.lost.is_none() {
                no_source =
                    no_source.or_else(|| Some(format!("the variant `{}` has changed since the trial", arm.name)));
            }
        }
        let files = stored_files(&at, trial, &self.origins, (no_source, doubt))?;
        let changed =
            ["trace.jsonl", "workspace.patch"].iter().find_map(|name| integrity::changed_file(&at, name, &earlier));
        let kept_digest = earlier.files.get(integrity::WORKSPACE).cloned();
        // A result with digests of files has that of the kept workspace. Without it, another program made the folder.
        let is_kept = kept_digest.is_some() || earlier.files.is_empty();
        let kept = files.kept.clone().filter(|_| is_kept);
        let keys = self.source.case(&trial.case).and_then(|known| known.evidence.clone());
        let files = Arc::new(StoredFiles { earlier: Some(earlier), inputs, changed, kept, kept_digest, keys, ..files });
        let untrue = files
            .earlier
            .as_ref()
            .filter(|earlier| earlier.is_not_as_judged())
            .and_then(|earlier| earlier.error.as_ref());
        let untrue = untrue.map(|error| error.message.clone());
        let with = match (case, self.manifests.get(&trial.harness)) {
            _ if untrue.is_some() => Err(untrue.unwrap_or_default()),
            (Some(case), Some(manifest)) => {
                let (case, manifest) = match arm {
                    Some(arm) => (Arc::new(arm.case(case)), Arc::new(arm.manifest(manifest))),
                    None => (case.clone(), manifest.clone()),
                };
                let attempt = Attempt::alone(case, manifest, trial.clone(), at.clone());
                Ok(Arc::new(Attempt { attempt: state.attempt, ..attempt }))
            }
            (None, _) => Err(gone(self.source, &trial.case)),
            (_, None) => Err(format!("run.json describes no harness `{}`", trial.harness)),
        };
        let shown = at.display().to_string();
        Ok(Work { trial: trial.clone(), attempt: state.attempt, with, files, shown, folder: Some(at) })
    }

    /// Returns how the inputs of the agent of a trial differ from those of its case and its arm now. `was` is the result of the
    /// trial, and `at` its folder.
    fn inputs_of(&self, trial: &TrialRecord, earlier: &TrialResult, at: &Path) -> InputsOfAgent {
        let of_case = self.inputs.get(&trial.case).copied().unwrap_or_default();
        let arm = arm_of(&self.arms, &trial.arm);
        if of_case == InputsOfAgent::Other || arm.is_some_and(|arm| self.has_changed(arm)) {
            return InputsOfAgent::Other;
        }
        if self.lost.is_some() && arm.is_some() {
            // What was found while the experiment could be read counts.
            return match earlier.warnings.contains(&Warning::OtherInputs) {
                true => InputsOfAgent::Other,
                false => InputsOfAgent::Unknown,
            };
        }
        let with = self.cases.get(&trial.case).zip(self.manifests.get(&trial.harness));
        match with.filter(|_| of_case == InputsOfAgent::Unknown && !self.has_recorded_inputs(trial)) {
            Some((case, manifest)) => {
                let case = arm.map_or_else(|| Case::clone(case), |arm| arm.case(case));
                let given = environment::given_by(&case);
                let env = engine::environment();
                let (masker, _) = environment::masker_of_what_is_known(&env, &case.env, manifest, &given);
                match stored_traces::had_other_prompt(&at.join("trace.jsonl"), &case, &masker) {
                    true => InputsOfAgent::Other,
                    false => InputsOfAgent::Unknown,
                }
            }
            None => of_case,
        }
    }

    /// Returns true if the run records a digest of the inputs of the agent. It does not for a single trace.
    fn has_recorded_inputs(&self, trial: &TrialRecord) -> bool {
        self.source.case(&trial.case).is_some_and(|known| known.played.is_some())
    }

    /// Returns the record of the arm with the same name in the stored run.
    fn known_arm(&self, arm: &Arm) -> Option<&ArmRecord> {
        self.source.arms.iter().find(|known| known.name == arm.name)
    }

    /// Returns true if an arm is known to be another one than in the run.
    fn has_changed(&self, arm: &Arm) -> bool {
        self.lost.is_none() && self.known_arm(arm).is_some_and(|known| known.digest != arm.digest)
    }
}

/// Adds what the agents of the original run of a regraded run may have left above their workspaces.
fn see_origin(left_above: &mut LeftAbove, origin: &RunFolder) {
    let (Ok(record), Ok(states)) = (origin.record(), origin.states()) else { return };
    if !record.graded {
        left_above.see_run(origin, &record, &states);
    }
}

/// Returns the attempts of a run that no result includes.
fn without_result(
    run: &RunFolder,
    source: &RunRecord,
    states: &HashMap<TrialId, TrialState>,
) -> Result<Vec<LeftAttempt>, RunError> {
    let is_in_use = run.is_in_use();
    let mut found = Vec::new();
    for trial in source.trials.iter().filter(|trial| trial.skip.is_none()) {
        let state = states.get(&trial.id());
        // A regraded run has finished, also if it has such attempts of the original run.
        if !source.graded && state.is_some_and(TrialState::is_done) {
            continue;
        }
        let folder = run.stored_trial(&trial.id())?;
        if !folder.is_dir() {
            continue;
        }
        let counting = state.filter(|state| state.finished.is_some()).map_or(0, |state| state.attempt);
        let is_running = is_in_use && run.is_of_last_engine(&folder);
        let started = state.map_or(0, |state| state.attempts);
        let attempts = previous_attempts::without_result(&folder, counting, started, is_running).into_iter();
        found.extend(attempts.map(|(number, folder)| LeftAttempt { trial: trial.clone(), number, folder }));
    }
    Ok(found)
}

/// Returns the record of the derived run, and how the inputs of the agents of each case differ from those that it names now.
fn derived(
    args: &GradeArgs,
    source: RunRecord,
    cases: &HashMap<String, Arc<Case>>,
) -> Result<(RunRecord, HashMap<String, InputsOfAgent>), CliError> {
    let mut derived = source.clone();
    let interaction = source.options.interaction.as_deref().and_then(|text| text.parse::<Interaction>().ok());
    let (mut inputs, mut had_other_inputs) = (HashMap::new(), Vec::new());
    for known in &mut derived.cases {
        let Some(case) = cases.get(&known.id) else { continue };
        let now = record::case_record(case, interaction.as_ref())?;
        // The digests of the workspace and of the agents' input keep their values. If the run is of a version that
        // did not record them, they are computed only if nothing has changed.
        let same = is_same(&known.digest, &now.digest) && !source.graded;
        let of_case = if known.played.is_some()
            && !is_same_input(known, &now)
            && !has_recorded_inputs(case, known, interaction.as_ref())?
        {
            had_other_inputs.push(known.id.clone());
            InputsOfAgent::Other
        } else if source.graded || known.mixed || (!same && known.played.is_none()) {
            InputsOfAgent::Unknown
        } else {
            InputsOfAgent::Same
        };
        inputs.insert(known.id.clone(), of_case);
        let played = known.played.take().or(now.played.filter(|_| same));
        let (workspace, evidence) = (known.workspace.take(), known.evidence.take());
        *known = CaseRecord { workspace, played, evidence, mixed: known.mixed, ..now };
    }
    if !had_other_inputs.is_empty() {
        let cases = some_of(&had_other_inputs, 5);
        terminal::note(format_args!(
            "note: the agents had other inputs than the case names now (another prompt, workspace, environment, policy or \
             limits): {cases}"
        ));
    }
    record::begin(&mut derived);
    derived.options.sandbox = args.sandbox.or(derived.options.sandbox);
    let record = RunRecord { label: args.label.clone(), derived_from: Some(source.run), graded: true, ..derived };
    Ok((record, inputs))
}

/// Records which arms lack skills that the current graders ask for. What the run records stays if an arm is no longer what it was, so
/// that its skills are unknown.
fn ask_for_skills_again(record: &mut RunRecord, cases: &HashMap<String, Arc<Case>>, arms: &[Arm]) {
    let is_as_it_was =
        |known: &ArmRecord| arms.iter().any(|arm| arm.name == known.name && arm.digest == known.digest && !known.mixed);
    if record.options.aa || !record.arms.iter().all(is_as_it_was) {
        return;
    }
    let of_run: Vec<&Case> = record.cases.iter().filter_map(|known| cases.get(&known.id)).map(Arc::as_ref).collect();
    let mut doubts = record.arm_doubts();
    doubts.retain(|doubt| matches!(doubt, ArmDoubt::Same { .. }));
    doubts.extend(lacking(&of_run, arms));
    record.record_arm_doubts(doubts, |case| cases.contains_key(case));
}

/// Returns true if the case gives the agent the recorded inputs, ignoring `limits.on-limit`, which decides how a trial is
/// graded, and the white space around the prompts, by which a block of YAML differs from a plain text.
fn has_recorded_inputs(case: &Case, known: &CaseRecord, interaction: Option<&Interaction>) -> Result<bool, CliError> {
    let Some(recorded) = &known.played else { return Ok(false) };
    let forms: [fn(&str) -> String; 3] =
        [str::to_owned, |turn| turn.trim().to_owned(), |turn| format!("{}\n", turn.trim())];
    for form in forms {
        for on_limit in [None, Some(OnLimit::Fail), Some(OnLimit::Grade)] {
            let mut before = case.clone();
            before.limits.on_limit = on_limit;
            before.turns = case.turns.iter().map(|turn| form(turn)).collect();
            let digest = before.played_digest(interaction.unwrap_or(&case.interaction)).map_err(|error| {
                CliError::unreadable(format!("a file of case `{}` cannot be read: {error}", case.id))
            })?;
            if is_same(recorded, &digest) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns true if the agents' inputs of two records of a case are known and equal.
fn is_same_input(one: &CaseRecord, other: &CaseRecord) -> bool {
    one.played.as_ref().zip(other.played.as_ref()).is_some_and(|(one, other)| is_same(one, other))
}

/// Returns the current cases by the ids that the run uses. Missing cases are left out.
pub fn cases(files: &[PathBuf], source: &RunRecord) -> Result<HashMap<String, Arc<Case>>, CliError> {
    let mut cases: Vec<Case> = Vec::new();
    if !files.is_empty() {
        cases = inputs::cases_alone(|context| load_all(files, context))?;
        if let ([case], [known]) = (cases.as_mut_slice(), source.cases.as_slice()) {
            // The run has only one case.
            case.id.clone_from(&known.id);
        }
        restore_moved_id(&mut cases, source);
        for case in &cases {
            if source.case(&case.id).is_none() {
                let ids: Vec<&str> = source.cases.iter().map(|known| known.id.as_str()).collect();
                return Err(CliError::unreadable(format!(
                    "{}: run {} has no case `{}`; it has {}; if the case was moved, write its ID in the run as `id` into the file",
                    case.shown().display(),
                    source.run,
                    case.id,
                    ids.join(", ")
                )));
            }
        }
    }
    let there: Vec<(PathBuf, String)> = source
        .cases
        .iter()
        .filter(|known| by_case_id(&cases, &known.id).is_none() && known.path.is_file())
        .map(|known| (known.path.clone(), known.id.clone()))
        .collect();
    if !there.is_empty() {
        let mut again = inputs::cases_alone(|context| load_known(&there, context))?;
        resume::restore_ids(&mut again, source);
        cases.extend(again);
    }
    commits::restore(&mut cases, source);
    override_limits(&mut cases, &source.options.limits)?;
    Ok(cases.into_iter().map(|case| (case.id.clone(), Arc::new(case))).collect())
}

/// Gives the only named case that the run does not have the ID of the only case of the run that is gone: the ID is made from
/// the path, so it changes if the case is moved.
fn restore_moved_id(cases: &mut [Case], source: &RunRecord) {
    let is_gone = |known: &&CaseRecord| !known.path.is_file() && by_case_id(cases, &known.id).is_none();
    let gone: Vec<&CaseRecord> = source.cases.iter().filter(is_gone).collect();
    let mut moved = cases.iter_mut().filter(|case| source.case(&case.id).is_none());
    if let (Some(case), None, [known]) = (moved.next(), moved.next(), gone.as_slice()) {
        case.id.clone_from(&known.id);
    }
}

/// Reads the arms of the run's experiment as they are now.
///
/// # Errors
/// Returns an error with the reason if they cannot be read.
fn arms(source: &RunRecord) -> Result<Vec<Arm>, String> {
    let harnesses: Vec<String> = source.harnesses.iter().map(HarnessRecord::origin_or_name).collect();
    let catalog = inputs::catalog(&harnesses).or_else(|_| inputs::catalog(&[])).map_err(|error| error.text())?.0;
    run::arms::again(source, &catalog)
        .map_err(|error| format!("the experiment cannot be read as it was: {}", error.text()))
}

fn gone(source: &RunRecord, id: &str) -> String {
    let path = source.case(id).map(|known| known.path.display().to_string());
    format!(
        "its case no longer exists at {}; give its new path with --case FILE",
        path.unwrap_or_else(|| "run.json".to_owned())
    )
}

/// Returns the manifests with which the agents were run. An unchanged current manifest is preferred, because
/// secrets are redacted in `run.json`.
fn manifests(source: &RunRecord) -> HashMap<String, Arc<Manifest>> {
    let catalog = inputs::catalog(&[]).ok().map(|(catalog, _)| catalog);
    let of = |known: &crate::run::HarnessRecord| {
        let today = catalog.as_ref().and_then(|catalog| catalog.get(&known.name).ok()).map(|entry| &entry.manifest);
        let today = today.filter(|manifest| manifest.digest() == known.digest).cloned();
        (known.name.clone(), today.unwrap_or_else(|| Arc::new(known.manifest.clone())))
    };
    source.harnesses.iter().map(of).collect()
}

/// Returns the run and, if it was itself made by `grade`, the runs it was made from: they may still have the
/// workspaces.
pub(in crate::cli) fn origins(run: &RunFolder, source: &RunRecord) -> Vec<RunFolder> {
    let mut origins = Vec::new();
    let mut next = source.graded.then(|| source.derived_from.clone()).flatten();
    while let (Some(id), Some(runs)) = (next.take(), run.path.parent()) {
        // If the run lies in an unusual folder, its original runs may lie in the default folder.
        let places = [runs.join(&id), default_runs().join(&id)];
        let Some(place) = places.iter().find(|place| place.is_dir()) else { break };
        let folder = RunFolder::open(place);
        let Ok(record) = folder.record() else { break };
        next = record.graded.then(|| record.derived_from.clone()).flatten();
        origins.push(folder);
        if origins.len() > 100 {
            break;
        }
    }
    origins
}

/// The reason why workspaces cannot be rebuilt, and the reason why a rebuilt workspace may be wrong.
type Doubts = (Option<String>, Option<String>);

/// Returns the stored files of a trial.
fn stored_files(
    at: &Path,
    trial: &TrialRecord,
    origins: &[RunFolder],
    (no_source, doubt): Doubts,
) -> Result<StoredFiles, CliError> {
    let file = |name: &str| Some(at.join(name)).filter(|path| path.is_file());
    let mut kept = Some(at.join("workspace")).filter(|path| path.is_dir());
    for origin in origins {
        let states = origin.states()?;
        let Some(state) = states.get(&trial.id()) else { continue };
        let there = origin.counting_attempt(trial, state)?.join("workspace");
        kept = kept.or(Some(there).filter(|path| path.is_dir()));
    }
    Ok(StoredFiles {
        trace: file("trace.jsonl"),
        patch: file("workspace.patch"),
        kept,
        no_source,
        doubt,
        ..StoredFiles::default()
    })
}

/// Checks the source that a case names now.
fn of_source(known: &CaseRecord, case: &Case) -> Result<Doubts, CliError> {
    let unreadable = |error| CliError::unreadable(format!("a file of case `{}` cannot be read: {error}", case.id));
    if known.mixed {
        // The digest is that of the later trials.
        let why = "it was not kept, and the case changed during the run, so its source may have been another one";
        return Ok((Some(why.to_owned()), None));
    }
    match &known.workspace {
        Some(digest) if !is_same(digest, &case.workspace_digest().map_err(unreadable)?) => {
            return Ok((
                Some(
                    "it was not kept, and its source (`workspace.copy`, `files`, `git` or `setup`) has changed since"
                        .to_owned(),
                ),
                None,
            ));
        }
        None if !is_same(&known.digest, &case.digest().map_err(unreadable)?) => {
            return Ok((
                None,
                Some("the case has changed since, and the run does not record whether its source has".to_owned()),
            ));
        }
        _ => {}
    }
    let moves = match &case.workspace.source {
        WorkspaceSource::Git(source) => !source.is_fixed() && source.commit.is_none(),
        _ => false,
    };
    let doubt = "its source is a repository whose `rev` is not a full commit id, so it may have changed";
    Ok((None, moves.then(|| doubt.to_owned())))
}

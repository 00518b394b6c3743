//! Grades a stored trial again: its trace, and the workspace that was kept or is rebuilt from its source and
//! patch.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ending::{error_of, mask_result};
use super::grade_trial::{JudgedWorkspace, decide, judge};
use super::measure::{lay_hidden, lay_over};
use super::prepare_workspace::{Before, NotSetUp, set_up};
use super::sandboxing::{graders_shell, inside, nowhere, shell};
use super::{
    Attempt, Engine, Folders, Outcome, TrialError, aside, grade_stored, io, other_keys, protected, unless_interrupted,
    workspace_gaps,
};
use crate::case::{Case, EvidenceKeys};
use crate::environment;
use crate::grade::{GradeRecord, Outcome as Graded};
use crate::grader::{Kind, Workspace, unique_names};
use crate::ids::TrialRecord;
use crate::regular;
use crate::result::{ErrorRecord, ResultBefore, TrialResult, Warning};
use crate::run::integrity;
use crate::secrets::Masker;
use crate::shell::Shell;
use crate::text::some_of;
use crate::trace::ErrorCategory;
use crate::trace::jsonl::Reader;
use crate::verdict::Verdict;
use crate::workspace::apply::apply;
use crate::workspace::beside_patch;
use crate::workspace::beyond_patch::{self, MayDiffer};
use crate::workspace::change::Change;
use crate::workspace::copy_as_it_is;
use crate::workspace::hidden::stale::remove_stale;
use crate::workspace::old_place;
use crate::workspace::patch::read::{self, Piece};
use crate::workspace::restore::put_back;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::tree_digest::{digest_of, tree_digest};

/// The stored files of a trial.
#[derive(Debug, Clone, Default)]
pub struct StoredFiles {
    pub trace: Option<PathBuf>,
    /// The patch of the workspace.
    pub patch: Option<PathBuf>,
    /// The workspace, if it was kept.
    pub kept: Option<PathBuf>,
    /// The digest of the kept workspace as the graders of its run left it; absent in runs of older versions.
    pub kept_digest: Option<String>,
    /// The reason why the workspace cannot be rebuilt from the current sources of the case, if there is one.
    pub no_source: Option<String>,
    /// The reason why a rebuilt workspace may be wrong, if there is one.
    pub doubt: Option<String>,
    /// The keys of the case when the trial ran; absent for single traces and in runs of older versions.
    pub keys: Option<EvidenceKeys>,
    /// The reason why the trace or the patch differs from the one that was judged, if it does.
    pub changed: Option<String>,
    /// The earlier result.
    pub was: Option<TrialResult>,
    /// The result beside a single trace, if it belongs to the trace. Another case may have graded it.
    pub beside: Option<TrialResult>,
    /// The error of the trial, if its earlier result is not used: the trace alone may not show it.
    pub error: Option<ErrorRecord>,
}

/// Grades a stored trial by the current graders of its case. No agent is started, and the stored files are not
/// changed.
///
/// # Errors
/// Returns an error if the engine itself fails.
pub async fn grade(engine: &Engine, attempt: &Attempt, left: &StoredFiles) -> Result<Outcome, TrialError> {
    let case = &attempt.case;
    let given = environment::given_by(case);
    let (masker, unread) = environment::masker_of_what_is_known(&engine.env, &case.env, &attempt.manifest, &given);
    if let Some(unread) = unread {
        return Ok(done(without_trace(attempt, left, &unread.to_string()), left, &masker));
    }
    let Some(trace) = &left.trace else {
        return Ok(done(without_trace(attempt, left, "its trace is missing"), left, &masker));
    };
    let over = {
        let (trace, judges, manifest) = (trace.clone(), case.graders.clone(), attempt.manifest.clone());
        let marks = case.secrets_in_graders(&masker);
        aside(move || grade_stored::watch(&trace, &judges, marks, &manifest)).await?
    };
    let mut over = match over {
        Ok(over) => over,
        Err(error) if left.was.is_none() => {
            return Err(io("read the trace")(std::io::Error::other(error)));
        }
        Err(error) => {
            let why = format!("its trace could not be read: {}", error);
            return Ok(done(without_trace(attempt, left, &why), left, &masker));
        }
    };
    if let Some(why) = &left.changed {
        return Ok(done(without_trace(attempt, left, why), left, &masker));
    }
    let of_stop = over.observed.stop.as_ref().and_then(error_of);
    let errored = of_stop.is_some();
    // The trace does not show whether the trial belongs to another case, or whether its model was the planned one.
    let error = left.was.as_ref().and_then(|was| was.error.as_ref()).or(left.error.as_ref());
    let of_gateway =
        |category| matches!(category, ErrorCategory::Provider | ErrorCategory::Auth) && of_stop != Some(category);
    let kept = error.filter(|it| it.category == ErrorCategory::Setup || of_gateway(it.category));
    over.not_as_set_up = kept.map(|it| (it.category, it.message.clone()));
    // A recording was made in another workspace, and workspaces of errored trials are not judged.
    let has_workspace = !errored && attempt.manifest.recording.is_none();
    let looked_into = !errored && case.graders.iter().any(|judge| judge.kind.needs().reads_files());
    let folders = if looked_into { Some(Folders::make(&engine.temporary)?) } else { None };
    let ready = async {
        if has_workspace { ready(engine, attempt, left, folders.as_ref()).await } else { Ok(Ready::default()) }
    };
    let Some(ready) = unless_interrupted(engine, ready).await else { return Ok(Outcome::Interrupted) };
    let mut ready = ready?;
    // If there never was a workspace, a script judges without one. A lost workspace is a different situation.
    let never_had_one = !has_workspace || (left.was.is_none() && left.kept.is_none() && ready.shell.is_none());
    let nowhere = match &folders {
        Some(folders) if never_had_one => ready.judges_without(engine, attempt, folders)?,
        _ => Shell::default(),
    };
    let unknown_protection = other_keys::of_protection(left.keys.as_ref(), case, ready.change.as_ref())
        .filter(|_| has_workspace && case.workspace.protect_strict && ready.touched.is_empty());
    let other_change = other_keys::of_change(left.keys.as_ref(), case).filter(|_| has_workspace);
    if let Some(why) = other_change {
        ready.is_of_other_keys(why);
    }
    let from_root = |path: &Option<PathBuf>| path.as_deref().and_then(|path| std::path::absolute(path).ok());
    let (trace, patch) = (from_root(&left.trace), from_root(&left.patch));
    let site = JudgedWorkspace {
        workspace: folders.as_ref().filter(|_| ready.shell.is_some()).map(|folders| &*folders.workspace),
        change: ready.change.as_ref(),
        trace: trace.as_deref(),
        patch: patch.as_deref().filter(|_| has_workspace && other_change.is_none()),
        touched: !ready.touched.is_empty(),
        shell: ready.shell.as_ref().unwrap_or(&nowhere),
        judges: &engine.judges,
        unmasked: warnings_of(left).iter().find_map(Warning::unmasked),
    };
    let observed = over.observed.clone();
    let Some(mut result) = unless_interrupted(engine, judge(attempt, over, &site)).await else {
        return Ok(Outcome::Interrupted);
    };
    let may_be_touched = has_workspace && ready.may_be_touched(attempt);
    let mut told = std::mem::take(&mut result.warnings);
    if ready.says_less_than_before(&mut result, attempt, left.was.as_ref()) {
        decide(&mut result, attempt, &observed, site.touched);
        result.warnings.clear();
    }
    result.warnings = carried(left);
    result.warnings.extend(ready.touched);
    result.warnings.extend(ready.warnings);
    // Warnings from the trace were already added.
    told.retain(|line| !result.warnings.contains(line));
    result.warnings.append(&mut told);
    // The earlier result has this warning of its session.
    let (sent, planned) = (observed.prompts, case.turns.len());
    if left.was.is_none() && result.error.is_none() && (1..planned).contains(&sent) {
        result.warnings.push(Warning::PromptsNotSent { sent: sent as u64, planned: planned as u64 });
    }
    let unknown_protection = unknown_protection.or(may_be_touched.then(|| MAY_BE_TOUCHED.to_owned()));
    if let Some(why) = unknown_protection.filter(|_| result.verdict == Verdict::Pass) {
        (result.verdict, result.score) = (Verdict::Ungraded, None);
        result.warnings.push(Warning::NotGradedAgain { why });
    }
    if let (Some(now), Some(was)) = (&mut result.stop, left.was.as_ref().and_then(|was| was.stop.as_ref())) {
        now.stderr_tail.clone_from(&was.stderr_tail);
    }
    aside(move || drop(folders)).await?;
    Ok(done(result, left, &masker))
}

fn done(mut result: TrialResult, left: &StoredFiles, masker: &Masker) -> Outcome {
    mask_result(&mut result, masker);
    if let Some(was) = &left.was {
        // A person's part in the stored trial does not depend on the current case.
        result.manual = was.manual;
        result.files.clone_from(&was.files);
        result.beyond_patch.clone_from(&was.beyond_patch);
        result.beside_patch.clone_from(&was.beside_patch);
        result.policy_model.clone_from(&was.policy_model);
        result.model_from = was.model_from;
        result.earlier_attempts = was.earlier_attempts;
        result.flaky = was.flaky && result.verdict == Verdict::Pass;
        if result.flaky {
            let flaky = was.warnings.iter().filter(|warning| matches!(warning, Warning::Flaky { .. }));
            result.warnings.extend(flaky.cloned());
        }
        result.was = ResultBefore::of(was, &result);
    }
    Outcome::Done(Box::new(result))
}

/// Returns the warnings about the session itself, which remain valid.
fn carried(left: &StoredFiles) -> Vec<Warning> {
    let warnings = left.was.iter().flat_map(|was| &was.warnings);
    warnings.filter(|warning| !warning.is_of_grading()).cloned().collect()
}

/// Returns the result of a trial without a trace: errored as before, or ungraded.
fn without_trace(attempt: &Attempt, left: &StoredFiles, why: &str) -> TrialResult {
    if let Some(was) = left.was.clone().filter(|was| was.error.is_some()) {
        return was;
    }
    ungraded(&attempt.trial, attempt.attempt, left, why)
}

/// Returns the result of a trial that can no longer be judged.
pub fn ungraded(trial: &TrialRecord, attempt: u32, left: &StoredFiles, why: &str) -> TrialResult {
    let was = left.was.clone();
    let blank = || TrialResult { attempt, ..TrialResult::blank(trial, Verdict::Ungraded) };
    let mut result = was.unwrap_or_else(blank);
    (result.verdict, result.score, result.grades) = (Verdict::Ungraded, None, Vec::new());
    result.warnings.retain(|warning| !warning.tells_of_a_lack());
    result.warnings.push(Warning::NotGradedAgain { why: why.to_owned() });
    if let Some(was) = &left.was {
        result.was = ResultBefore::of(was, &result);
    }
    result
}

/// Returns the result of a trial whose case no longer exists: errored as before, or ungraded.
pub fn without_case(trial: &TrialRecord, attempt: u32, left: &StoredFiles, why: &str) -> TrialResult {
    let errored = left.was.clone().filter(|was| was.error.is_some());
    errored.unwrap_or_else(|| ungraded(trial, attempt, left, why))
}

const MAY_BE_TOUCHED: &str = "`protect-strict` is set, and no result of the trial records whether the agent changed a \
                              protected file";
const OTHER_SETUP: &str = "its setup commands make other files now than in the trial; if files differ each time, name them in \
                           `workspace.ignore`";
const SETUP_CHANGED: &str = "the files that setup creates beside it may differ: setup, or its input, has changed since";

/// A workspace that is ready for the graders, or the reason why there is none.
#[derive(Default)]
struct Ready {
    /// The shell for commands of graders. Absent without a workspace.
    shell: Option<Shell>,
    change: Option<Change>,
    /// Protected files that the agent changed.
    touched: Vec<Warning>,
    /// The missing parts of the workspace.
    lost: Vec<String>,
    /// True if a part of the agent's work is among them.
    lacks_work: bool,
    /// The reason why no command shows what it would have shown at the workspace's old place, if there is one.
    at_other_place: Option<String>,
    /// The places in which the workspace may differ.
    may_differ: MayDiffer,
    /// The reason why the change is not the one that the case measures now, if so.
    other_change: Option<&'static str>,
    /// The reason why the workspace is missing.
    none: Option<String>,
    /// True if scripts judged without a workspace.
    without: bool,
    warnings: Vec<Warning>,
}

impl Ready {
    /// Makes a value without a workspace. Known changes to protected files are kept, but nothing was restored.
    fn none((change, touched): KnownChange, why: impl Into<String>) -> Self {
        let why = why.into();
        let warnings = vec![Warning::NoWorkspace { why: why.clone() }];
        let touched = touched.iter().map(protected::without_putting_back).collect();
        Self { change, touched, none: Some(why), warnings, ..Self::default() }
    }

    /// Makes a value with a workspace that is ready except for its missing parts.
    fn there(
        shell: Shell,
        (change, touched): KnownChange,
        lost: Vec<String>,
        not_whole: impl FnOnce(Vec<String>) -> Warning,
    ) -> Self {
        let warnings = if lost.is_empty() { Vec::new() } else { vec![not_whole(lost.clone())] };
        Self { shell: Some(shell), change, touched, lost, warnings, ..Self::default() }
    }

    /// Returns true if `protect-strict` is set and it is unknown whether the agent changed a protected file.
    fn may_be_touched(&self, attempt: &Attempt) -> bool {
        let rules = &attempt.case.workspace;
        let is_unknown = self.change.as_ref().is_none_or(|change| change.is_patch_alone);
        rules.protect_strict && !rules.protect.is_empty() && self.touched.is_empty() && is_unknown
    }

    /// Forgets the change, which was measured with other keys of the case.
    fn is_of_other_keys(&mut self, why: &'static str) {
        (self.change, self.other_change) = (None, Some(why));
        let why = format!("{why}, so the change that the case measures now is unknown");
        self.warnings.push(Warning::NoWorkspace { why });
    }

    /// Records that a file of the change contains the path of the workspace in the trial, which a command may use.
    fn doubt_commands(&mut self, file: &Path, is_kept: bool) {
        let why =
            format!("`{}` names the path of the workspace in the trial, which is another one now", file.display());
        match self.warnings.first_mut() {
            Some(Warning::KeptInPart { lost } | Warning::RebuiltInPart { lost }) => lost.push(why.clone()),
            _ if is_kept => self.warnings.push(Warning::KeptInPart { lost: vec![why.clone()] }),
            _ => self.warnings.push(Warning::RebuiltInPart { lost: vec![why.clone()] }),
        }
        self.at_other_place = Some(why);
    }

    /// Sets an empty folder as the shell for scripts without a workspace.
    fn judges_without(&mut self, engine: &Engine, attempt: &Attempt, folders: &Folders) -> Result<Shell, TrialError> {
        let judges = &attempt.case.graders;
        let Ok(inside) = inside(engine, attempt, folders) else { return Ok(Shell::default()) };
        self.without = true;
        if !judges.iter().any(|judge| judge.kind.needs().workspace == Workspace::Files) {
            self.warnings.clear();
        }
        nowhere(&graders_shell(&shell(engine, attempt, folders, &inside)?, folders, &attempt.case, None)?, folders)
    }

    /// Withdraws the results that an incomplete workspace cannot show: that a file is wrong, that it is absent, or that a
    /// grader which failed in the whole workspace passes. Returns whether any was withdrawn.
    fn says_less_than_before(&self, result: &mut TrialResult, attempt: &Attempt, was: Option<&TrialResult>) -> bool {
        let judges = &attempt.case.graders;
        let named = unique_names(judges.iter().map(AsRef::as_ref));
        let of_absence =
            |name: &str| named.iter().zip(judges).any(|(named, judge)| named == name && judge.kind.passes_on_absence());
        // A grader of several grades gives them names of their own.
        let of_any_lack = |grade: &GradeRecord| {
            judges.iter().any(|judge| judge.kind.word() == grade.grader && judge.kind.passes_on_any_lack())
        };
        let folder = self.shell.as_ref().map(|shell| shell.folder.as_path()).unwrap_or(Path::new(""));
        let of_places = |name: &str| {
            let mut judges = named.iter().zip(judges).filter(|(named, _)| *named == name);
            judges.any(|(_, judge)| judge.kind.passes_by(folder, &self.may_differ))
        };
        let failed_before = |now: &GradeRecord| {
            let of_same = |was: &&GradeRecord| was.name == now.name && was.grader == now.grader;
            was.and_then(|was| was.grades.iter().find(of_same)).is_some_and(|was| was.passed == Some(false))
        };
        let is_apart = |grade: &GradeRecord| {
            let Some(places) = &self.may_differ.all else { return false };
            let mut judges = named.iter().zip(judges).filter(|(named, _)| **named == grade.name);
            judges.any(|(_, judge)| judge.kind.word() == grade.grader && judge.kind.lies_outside(folder, places))
        };
        let of_change = |grade: &&mut GradeRecord| Kind::needs_of(&grade.grader).workspace == Workspace::Change;
        if let Some(why) = self.other_change {
            for grade in result.grades.iter_mut().filter(of_change).filter(|grade| grade.passed.is_none()) {
                grade.reason = format!("{}: {why}", grade.reason);
            }
        }
        let mut changed = false;
        for grade in result.grades.iter_mut().filter(|grade| Kind::needs_of(&grade.grader).reads_files()) {
            let judged_without = self.without && Kind::needs_of(&grade.grader).workspace == Workspace::FilesIfThere;
            if let (Some(why), Graded::Ungraded, false) = (&self.none, grade.outcome, judged_without) {
                grade.reason = format!("{}: {why}", grade.reason);
            }
            let at_other_place = self.at_other_place.as_ref().filter(|_| of_any_lack(grade));
            let how = match grade.passed {
                Some(false) => "failed",
                Some(true) if at_other_place.is_some() => "passed",
                Some(true) if of_absence(&grade.name) => "found no file that must be absent",
                Some(true) if self.lacks_work && (of_any_lack(grade) || of_places(&grade.name)) => "passed",
                Some(true) if failed_before(grade) => "failed in the trial and passed",
                _ => continue,
            };
            let lost = self.lost.first().filter(|_| !is_apart(grade));
            let Some(lost) = at_other_place.or(lost) else { continue };
            grade.outcome = Graded::Ungraded;
            (grade.value, grade.passed) = (None, None);
            grade.evidence = Vec::new();
            grade.reason =
                format!("{how} in an incomplete workspace ({lost}), so the result is unknown: {}", grade.reason);
            changed = true;
        }
        changed
    }
}

/// The known change of the workspace of a stored trial: all of it, and the changes to protected files.
type KnownChange = (Option<Change>, Vec<Warning>);

/// Prepares the workspace for the graders that need it.
async fn ready(
    engine: &Engine,
    attempt: &Attempt,
    left: &StoredFiles,
    folders: Option<&Folders>,
) -> Result<Ready, TrialError> {
    let case = &attempt.case;
    let pieces = match &left.patch {
        Some(path) => Some(read_patch(path).await?),
        None => None,
    };
    let (pieces, unread) = match pieces {
        Some(Ok(pieces)) => (Some(pieces), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, Some("its workspace.patch is missing".to_owned())),
    };
    let mut change = pieces.as_deref().map(read::change);
    if let Some(change) = &mut change {
        change.has_ignored = warnings_of(left).iter().any(|it| matches!(it, Warning::IgnoredFiles { .. }));
        let recorded = result_of(left).and_then(|result| result.beside_patch.as_ref());
        change.is_patch_alone = recorded.is_none() && !changed_nothing_else(left);
        change.unmeasured = recorded.map(|recorded| recorded.changed.clone()).unwrap_or_default();
        change.special = recorded.map(|recorded| recorded.special.clone()).unwrap_or_default();
    }
    let touched = protected::touched_before(&case.workspace, change.as_ref(), warnings_of(left));
    let Some(folders) = folders else { return Ok(Ready { change, touched, ..Ready::default() }) };
    let known = (change, touched);
    let inside = match inside(engine, attempt, folders) {
        Ok(inside) => inside,
        Err(error) => return Ok(Ready::none(known, error.to_string())),
    };
    if left.kept.is_none() && (pieces.is_none() || left.no_source.is_some()) {
        return Ok(Ready::none(known, left.no_source.clone().or(unread).unwrap_or_default()));
    }
    let shell = shell(engine, attempt, folders, &inside)?;
    if let Some(kept) = &left.kept
        && let Some(why) = changed_since(kept, left.kept_digest.as_ref()).await?
    {
        return Ok(Ready::none(known, why));
    }
    let pieces = Arc::new(pieces.unwrap_or_default());
    let mut ready = match &left.kept {
        Some(kept) => kept_again(engine, attempt, left, folders, shell, kept, known).await?,
        None => rebuilt(engine, attempt, left, folders, shell, pieces.clone(), known).await?,
    };
    let has_commands = case.graders.iter().any(|judge| judge.kind.passes_on_any_lack());
    if let Some(old) = place_in_trial(left).filter(|_| has_commands && ready.shell.is_some()) {
        let workspace = folders.workspace.clone();
        let named = aside(move || old_place::file_that_names(&pieces, &workspace, &old)).await?;
        if let Some(file) = named {
            ready.doubt_commands(&file, left.kept.is_some());
        }
    }
    Ok(ready)
}

/// Returns the place of the workspace in the trial, which is named by its trace.
fn place_in_trial(left: &StoredFiles) -> Option<PathBuf> {
    let file = regular::open(left.trace.as_ref()?).ok()?;
    let reader = Reader::new(BufReader::new(file)).ok()?;
    reader.header().cwd.as_ref().map(PathBuf::from)
}

/// Returns true if the stored result shows that only files of the patch changed. Results of older versions do not record the
/// places of other changes.
fn changed_nothing_else(left: &StoredFiles) -> bool {
    result_of(left)
        .is_some_and(|result| !result.beyond_patch.iter().any(|words| beyond_patch::is_of_unknown_places(words)))
}

/// Returns why a kept workspace is not the one that was judged, if so. A workspace without a digest is trusted.
async fn changed_since(kept: &Path, told: Option<&String>) -> Result<Option<String>, TrialError> {
    let Some(told) = told else { return Ok(None) };
    let place = kept.to_owned();
    Ok(match aside(move || tree_digest(&place)).await? {
        Ok(found) if found == *told => None,
        Ok(_) => {
            Some("the kept workspace was changed after the trial was judged: result.json has another digest".into())
        }
        Err(error) => Some(format!("the kept workspace cannot be compared with the digest in result.json: {error}")),
    })
}

async fn read_patch(path: &Path) -> Result<Result<Vec<Piece>, String>, TrialError> {
    let path = path.to_owned();
    aside(move || match regular::read(&path) {
        Ok(bytes) => read::read(&bytes).map_err(|error| format!("workspace.patch cannot be read: {error}")),
        Err(error) => Err(format!("workspace.patch cannot be read: {error}")),
    })
    .await
}

/// Returns the kept workspace. The workspace before the agent is made too if setup left files in its home, if
/// protected files must be restored, or if there are hidden files.
async fn kept_again(
    engine: &Engine,
    attempt: &Attempt,
    left: &StoredFiles,
    folders: &Folders,
    shell: Shell,
    kept: &Path,
    known: KnownChange,
) -> Result<Ready, TrialError> {
    let case = &attempt.case;
    let (mut before, mut lost): (Option<Before>, Vec<String>) = (None, Vec::new());
    let put_back = !known.1.is_empty();
    let keys = left.keys.as_ref();
    let stale = other_keys::stale_hidden(keys, case).map_err(io("read the hidden files"))?;
    let (mut is_as_before, mut has_other_home) = (false, false);
    if put_back || case.hidden.is_some() || !stale.is_empty() || !case.workspace.setup.is_empty() {
        // A single trace was kept beside its workspace, and the user named the case for both.
        let changed = left.no_source.as_ref().filter(|_| left.was.is_some());
        if let (true, Some(changed)) = (put_back, changed) {
            return Ok(Ready::none(known, format!("protected files could not be put back: {changed}")));
        }
        match set_up(engine, attempt, folders, &shell).await {
            Ok(made) => {
                let is_other = is_other_setup(left, case, &folders.workspace, made.path.clone()).await?;
                if put_back && is_other {
                    return Ok(Ready::none(known, format!("protected files could not be put back: {OTHER_SETUP}")));
                }
                has_other_home = is_other && made.home().is_some();
                let may_lack = changed.is_some() || has_other_home;
                lost.extend(may_lack.then(|| SETUP_CHANGED.to_owned()).or_else(|| left.doubt.clone()));
                is_as_before = changed.is_none() && left.doubt.is_none() && !is_other;
                before = Some(made);
            }
            Err(NotSetUp::Engine(error)) => return Err(error),
            Err(NotSetUp::Case(why)) if put_back => {
                return Ok(Ready::none(known, format!("protected files could not be put back: {why}")));
            }
            Err(NotSetUp::Case(why)) => lost.push(format!("the files that setup creates beside it are missing: {why}")),
        }
    }
    let (from, to, old) = (kept.to_owned(), folders.workspace.clone(), place_in_trial(left));
    let copied = aside(move || {
        crate::workspace::remove::remove(&to).map_err(|error| error.to_string())?;
        copy_as_it_is(&from, &to).map_err(|error| error.to_string())?;
        old.map_or(Ok(()), |old| old_place::move_links(&to, &old)).map_err(|error| error.to_string())
    });
    if let Err(error) = copied.await? {
        return Ok(Ready::none(known, format!("the kept workspace could not be copied: {error}")));
    }
    if let Some(before) = &before {
        let globs = &case.workspace.protect;
        for (path, _) in known.0.iter().flat_map(Change::all).filter(|(path, _)| globs.iter().any(|g| g.is_match(path)))
        {
            put_back_in(before, folders, path)?;
        }
    }
    let mut places = other_keys::restored(keys, case, known.0.as_ref(), warnings_of(left));
    places.extend(other_keys::not_restored(keys, case, known.0.as_ref()));
    let agent_began_with = before.as_ref().filter(|_| is_as_before && !stale.is_empty()).map(|it| it.path.clone());
    match agent_began_with.zip(known.0.clone()) {
        Some((found, change)) => {
            let (to, globs) = (folders.workspace.clone(), other_keys::ignore_of(keys, case).to_vec());
            let unknown = aside(move || {
                let ignore = Ignore::of(&found, &globs)?;
                remove_stale(&stale, &found, &to, &ignore, &change)
            });
            places.extend(unknown.await?.map_err(io("remove hidden files that the case does not have any more"))?);
        }
        None => places.extend(stale),
    }
    let found = before.as_ref().map_or(folders.workspace.as_path(), |before| before.path.as_path());
    lay_hidden(case, found, &folders.workspace)?;
    let not_kept = workspace_gaps::of_kept(warnings_of(left));
    let lacks_work = !not_kept.is_empty() || !places.is_empty() || has_other_home;
    lost.extend(not_kept);
    let places: Vec<String> = places.into_iter().collect();
    let all = lost.is_empty().then(|| places.clone());
    if !places.is_empty() {
        let names = some_of(&places, 5);
        lost.push(format!(
            "`workspace.protect` or the hidden files were others in the trial, so what the agent left there is unknown: {names}"
        ));
    }
    let is_masked = warnings_of(left).iter().any(|warning| matches!(warning, Warning::KeptMasked { .. }));
    let shell = graders_shell(&shell, folders, case, before.as_ref().and_then(Before::home))?;
    let ready = Ready::there(shell, known, lost, |lost| Warning::KeptInPart { lost });
    let places = Change { unmeasured: places, ..Change::default() };
    Ok(Ready { lacks_work, may_differ: MayDiffer { is_masked, places, all, ..MayDiffer::default() }, ..ready })
}

/// Returns true if the setup commands made other files now than in the trial. Runs of older versions do not record this.
async fn is_other_setup(
    left: &StoredFiles,
    case: &Case,
    workspace: &Path,
    before: PathBuf,
) -> Result<bool, TrialError> {
    let told = left.was.as_ref().and_then(|was| was.files.get(integrity::AFTER_SETUP));
    let Some(told) = told.cloned() else { return Ok(false) };
    let globs = other_keys::ignore_of(left.keys.as_ref(), case).to_vec();
    let workspace = workspace.to_owned();
    aside(move || {
        let tree = Ignore::of(&before, &globs).and_then(|ignore| Tree::read(&before, &ignore));
        tree.and_then(|tree| digest_of(&tree, &workspace)).ok() != Some(told)
    })
    .await
}

fn put_back_in(before: &Before, folders: &Folders, path: &str) -> Result<(), TrialError> {
    put_back(&before.path, &folders.workspace, Path::new(path)).map_err(io("put protected files back"))
}

/// Returns the stored result of the trial.
fn result_of(left: &StoredFiles) -> Option<&TrialResult> {
    left.was.as_ref().or(left.beside.as_ref())
}

fn warnings_of(left: &StoredFiles) -> &[Warning] {
    result_of(left).map(|result| result.warnings.as_slice()).unwrap_or_default()
}

/// Rebuilds the workspace: its source, its setup, and the patch of the agent's work.
async fn rebuilt(
    engine: &Engine,
    attempt: &Attempt,
    left: &StoredFiles,
    folders: &Folders,
    shell: Shell,
    pieces: Arc<Vec<Piece>>,
    known: KnownChange,
) -> Result<Ready, TrialError> {
    let case = &attempt.case;
    let before = match set_up(engine, attempt, folders, &shell).await {
        Ok(before) => before,
        Err(NotSetUp::Engine(error)) => return Err(error),
        Err(NotSetUp::Case(why)) => {
            return Ok(Ready::none(known, format!("the workspace could not be rebuilt: {why}")));
        }
    };
    if is_other_setup(left, case, &folders.workspace, before.path.clone()).await? {
        return Ok(Ready::none(known, format!("it was not kept, and {OTHER_SETUP}")));
    }
    let patched = {
        let (case, workspace, before) = (case.clone(), folders.workspace.clone(), before.path.clone());
        let mut words: Vec<String> = left.was.iter().flat_map(|was| was.beyond_patch.clone()).collect();
        let recorded = left.was.as_ref().and_then(|was| was.beside_patch.clone());
        let old = place_in_trial(left);
        // Ignored files are compared with those of the trial.
        let globs = other_keys::ignore_of(left.keys.as_ref(), &case).to_vec();
        aside(move || -> Result<_, TrialError> {
            let unknown = match apply(&workspace, &pieces) {
                Ok(unknown) => unknown,
                Err(error) => return Ok(Err(error.to_string())),
            };
            // Before hidden files are laid, because a link must not lead to them.
            if let Some(old) = &old {
                old_place::move_links(&workspace, old).map_err(io("move links in the workspace"))?;
            }
            if let Some(recorded) = &recorded {
                let folders = beside_patch::rebuild_folders(&workspace, recorded);
                words.extend((!folders).then(|| beyond_patch::FOLDERS.to_owned()));
                let modes = beside_patch::rebuild_modes(&workspace, recorded);
                words.extend((!modes).then(|| beyond_patch::MODES.to_owned()));
            }
            let ignore = Ignore::of(&before, &globs).map_err(io("read what is ignored"))?;
            let now = Tree::read(&workspace, &ignore).map_err(io("read the workspace"))?;
            // The stored result has the warning about links to hidden files.
            let (put_back, _) = lay_over(&case, &before, &workspace, &now)?;
            let may_differ = MayDiffer::of(&words, recorded.as_ref(), &now);
            Ok(Ok((unknown, put_back, now.ignored_bytes, may_differ, words)))
        })
        .await??
    };
    let (unknown, put_back, ignored, mut may_differ, beyond) = match patched {
        Ok(patched) => patched,
        Err(why) => {
            let why = format!(
                "the workspace could not be rebuilt: {why}; its source has changed, or workspace.patch was masked"
            );
            return Ok(Ready::none(known, why));
        }
    };
    let mut known = known;
    if let Some(change) = &mut known.0 {
        change.unmeasured.extend(may_differ.places.unmeasured.iter().cloned());
    }
    let warnings = warnings_of(left);
    let mut touched = put_back;
    touched.extend(protected::touched_before(&case.workspace, None, warnings));
    touched.sort_by_cached_key(Warning::to_string);
    touched.dedup();
    let mut lost = workspace_gaps::of_rebuilt(warnings, &unknown, ignored);
    let is_known = workspace_gaps::lie_in_known_places(warnings, &unknown) && left.doubt.is_none();
    may_differ.all = may_differ.all.filter(|_| is_known);
    may_differ.is_masked = warnings.contains(&Warning::PatchMasked);
    let lacks_work = !beyond.is_empty() || !unknown.is_empty() || may_differ.is_masked;
    may_differ.left_out = unknown;
    lost.extend(beyond.into_iter().map(|what| format!("the agent changed what no patch holds: {what}")));
    lost.extend(left.doubt.clone());
    let ready = Ready::there(graders_shell(&shell, folders, case, before.home())?, (known.0, touched), lost, |lost| {
        Warning::RebuiltInPart { lost }
    });
    Ok(Ready { lacks_work, may_differ, ..ready })
}

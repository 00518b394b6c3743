//! The workspace of a stored trial, ready for the graders that need it: kept or rebuilt, with what it lacks.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoredFiles;
use super::kept::{changed_since, kept_again};
use super::rebuilt::rebuilt;
use crate::case::Case;
use crate::grade::{GradeRecord, Outcome as Graded};
use crate::grader::{Kind, Workspace, unique_names};
use crate::regular;
use crate::result::{TrialResult, Warning};
use crate::shell::Shell;
use crate::trace::jsonl::Reader;
use crate::trial::prepare_workspace::Before;
use crate::trial::sandboxing::{graders_shell, inside, nowhere, shell};
use crate::trial::{Attempt, Engine, Folders, TrialError, above, io, on_blocking_thread, protected};
use crate::workspace::beyond_patch::MayDiffer;
use crate::workspace::change::Change;
use crate::workspace::patch::read;
use crate::workspace::patch::read::Piece;
use crate::workspace::{beside_patch, beyond_patch, old_place};

/// A workspace that is ready for the graders, or the reason why there is none.
#[derive(Default)]
pub(super) struct RegradeSetup {
    /// The shell for commands of graders. Absent without a workspace.
    pub(super) shell: Option<Shell>,
    /// The state before the agent, if it was made again. Its folders are removed with it.
    pub(super) before: Option<Before>,
    pub(super) change: Option<Change>,
    /// Protected files that the agent changed.
    pub(super) touched: Vec<Warning>,
    /// The missing parts of the workspace.
    pub(super) lost: Vec<String>,
    /// True if a part of the agent's work is among them.
    pub(super) lacks_work: bool,
    /// The reason why no command shows what it would have shown at the workspace's old place, if there is one.
    pub(super) at_other_place: Option<String>,
    /// The places in which the workspace may differ.
    pub(super) may_differ: MayDiffer,
    /// The reason why the change is not the one that the case measures now, if so.
    pub(super) other_change: Option<&'static str>,
    /// The reason why the workspace is missing.
    pub(super) none: Option<String>,
    /// True if scripts graded without a workspace.
    pub(super) without: bool,
    pub(super) warnings: Vec<Warning>,
}

impl RegradeSetup {
    /// Makes a value without a workspace. Known changes to protected files are kept, but nothing was restored.
    pub(super) fn none((change, touched): KnownChange, why: impl Into<String>) -> Self {
        let why = why.into();
        let warnings = vec![Warning::NoWorkspace { why: why.clone() }];
        let touched = touched.iter().map(protected::without_putting_back).collect();
        Self { change, touched, none: Some(why), warnings, ..Self::default() }
    }

    /// Makes a value with a workspace that is ready except for its missing parts.
    pub(super) fn there(
        shell: Shell,
        (change, touched): KnownChange,
        lost: Vec<String>,
        not_whole: impl FnOnce(Vec<String>) -> Warning,
    ) -> Self {
        let warnings = if lost.is_empty() { Vec::new() } else { vec![not_whole(lost.clone())] };
        Self { shell: Some(shell), change, touched, lost, warnings, ..Self::default() }
    }

    /// Returns true if `protect-strict` is set and it is unknown whether the agent changed a protected file.
    pub(super) fn may_be_touched(&self, attempt: &Attempt) -> bool {
        let rules = &attempt.case.workspace;
        let is_unknown = self.change.as_ref().is_none_or(|change| change.is_patch_alone);
        rules.protect_strict && !rules.protect.is_empty() && self.touched.is_empty() && is_unknown
    }

    /// Forgets the change, which was measured with other keys of the case.
    pub(super) fn is_of_other_keys(&mut self, why: &'static str) {
        (self.change, self.other_change) = (None, Some(why));
        let why = format!("{why}, so the change that the case measures now is unknown");
        self.warnings.push(Warning::NoWorkspace { why });
    }

    /// Records that a file of the change contains the path of the workspace in the trial, which a command may use.
    pub(super) fn doubt_commands(&mut self, file: &Path, is_kept: bool) {
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
    pub(super) fn shell_without_workspace(
        &mut self,
        engine: &Engine,
        attempt: &Attempt,
        folders: &Folders,
    ) -> Result<Shell, TrialError> {
        let graders = &attempt.case.graders;
        let Ok(inside) = inside(engine, attempt, folders) else { return Ok(Shell::default()) };
        self.without = true;
        if !graders.iter().any(|grader| grader.kind.needs().workspace == Workspace::Files) {
            self.warnings.clear();
        }
        nowhere(&graders_shell(&shell(engine, attempt, folders, &inside)?, folders, &attempt.case, None)?, folders)
    }

    /// Withdraws the results that an incomplete workspace cannot show: that a file is wrong, that it is absent, or that a
    /// grader which failed in the whole workspace passes. Returns whether any was withdrawn.
    pub(super) fn says_less_than_before(
        &self,
        result: &mut TrialResult,
        attempt: &Attempt,
        earlier: Option<&TrialResult>,
    ) -> bool {
        let graders = &attempt.case.graders;
        let named = unique_names(graders.iter().map(AsRef::as_ref));
        let of_absence = |name: &str| {
            named.iter().zip(graders).any(|(named, grader)| named == name && grader.kind.spec().passes_on_absence())
        };
        // A grader of several grades gives them names of their own.
        // It is unknown which files a command reads.
        let of_any_lack = |grade: &GradeRecord| Kind::needs_of(&grade.grader).commands;
        let folder = self.shell.as_ref().map(|shell| shell.folder.as_path()).unwrap_or(Path::new(""));
        let of_places = |name: &str| {
            let mut graders = named.iter().zip(graders).filter(|(named, _)| *named == name);
            graders.any(|(_, grader)| grader.kind.spec().passes_by(folder, &self.may_differ))
        };
        let failed_before = |now: &GradeRecord| {
            let of_same = |earlier: &&GradeRecord| earlier.name == now.name && earlier.grader == now.grader;
            earlier
                .and_then(|earlier| earlier.grades.iter().find(of_same))
                .is_some_and(|earlier| earlier.passed == Some(false))
        };
        let is_apart = |grade: &GradeRecord| {
            let Some(places) = &self.may_differ.all else { return false };
            let graders = named.iter().zip(graders).filter(|(named, _)| **named == grade.name);
            let mut of_kind = graders.filter(|(_, grader)| grader.kind.word() == grade.grader);
            of_kind.any(|(_, grader)| grader.kind.spec().lies_outside(folder, places))
        };
        let of_change = |grade: &&mut GradeRecord| Kind::needs_of(&grade.grader).workspace == Workspace::Change;
        if let Some(why) = self.other_change {
            for grade in result.grades.iter_mut().filter(of_change).filter(|grade| grade.passed.is_none()) {
                grade.reason = format!("{}: {why}", grade.reason);
            }
        }
        let mut changed = false;
        for grade in result.grades.iter_mut().filter(|grade| Kind::needs_of(&grade.grader).reads_files()) {
            let graded_without = self.without && Kind::needs_of(&grade.grader).workspace == Workspace::FilesIfThere;
            if let (Some(why), Graded::Ungraded, false) = (&self.none, grade.outcome, graded_without) {
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

/// A stored trial that is graded again, and the folders in which its workspace is made.
pub(super) struct StoredTrial<'a> {
    pub(super) engine: &'a Engine,
    pub(super) attempt: &'a Attempt,
    pub(super) stored: &'a StoredFiles,
    pub(super) folders: &'a Folders,
}

/// The known change of the workspace of a stored trial: all of it, and the changes to protected files.
pub(super) type KnownChange = (Option<Change>, Vec<Warning>);

/// Prepares the workspace for the graders that need it.
pub(super) async fn prepare_stored(
    engine: &Engine,
    attempt: &Attempt,
    stored: &StoredFiles,
    folders: Option<&Folders>,
) -> Result<RegradeSetup, TrialError> {
    let case = &attempt.case;
    let pieces = match &stored.patch {
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
        change.has_ignored = stored.warnings().iter().any(|it| matches!(it, Warning::IgnoredFiles { .. }));
        let recorded = stored.result().and_then(|result| result.beside_patch.as_ref());
        match recorded {
            Some(recorded) => beside_patch::recall_changed(change, recorded),
            None => change.is_patch_alone = !changed_nothing_else(stored),
        }
        let words = stored.result().map(|result| result.beyond_patch.as_slice()).unwrap_or_default();
        beyond_patch::recall_beside(change, recorded, words);
        change.restored = protected::restored(&case.workspace, change);
    }
    let touched = protected::touched_before(&case.workspace, change.as_ref(), stored.warnings());
    let Some(folders) = folders else { return Ok(RegradeSetup { change, touched, ..RegradeSetup::default() }) };
    let known = (change, touched);
    let inside = match inside(engine, attempt, folders) {
        Ok(inside) => inside,
        Err(error) => return Ok(RegradeSetup::none(known, error.to_string())),
    };
    if stored.kept.is_none() && (pieces.is_none() || stored.no_source.is_some()) {
        return Ok(RegradeSetup::none(known, stored.no_source.clone().or(unread).unwrap_or_default()));
    }
    let shell = shell(engine, attempt, folders, &inside)?;
    if let Some(kept) = &stored.kept
        && let Some(why) = changed_since(kept, stored.kept_digest.as_ref()).await?
    {
        return Ok(RegradeSetup::none(known, why));
    }
    let pieces = Arc::new(pieces.unwrap_or_default());
    let trial = StoredTrial { engine, attempt, stored, folders };
    let mut prepared = match &stored.kept {
        Some(kept) => kept_again(&trial, shell, kept, known).await?,
        None => rebuilt(&trial, shell, pieces.clone(), known).await?,
    };
    if above::matters(case) {
        // As in the trial: what setup makes in the folder of all trials is removed, because it may be another trial's.
        let temporary = engine.temporary.clone();
        let cleared = on_blocking_thread(move || above::clear_shared(&temporary)).await?;
        cleared.map_err(io("remove what lies above the workspace"))?;
    }
    let is_searched = has_commands(case) && prepared.shell.is_some() && prepared.at_other_place.is_none();
    if let Some(old) = place_in_trial(stored).filter(|_| is_searched) {
        let workspace = folders.workspace.clone();
        let named = on_blocking_thread(move || old_place::file_that_names(&pieces, &workspace, &old)).await?;
        if let Some(file) = named {
            prepared.doubt_commands(&file, stored.kept.is_some());
        }
    }
    Ok(prepared)
}

/// Returns true if a grader of a case runs commands, which may use any file.
pub(super) fn has_commands(case: &Case) -> bool {
    case.graders.iter().any(|grader| grader.kind.needs().commands)
}

/// Returns the place of the workspace in the trial, which is named by its trace.
pub(super) fn place_in_trial(stored: &StoredFiles) -> Option<PathBuf> {
    let file = regular::open(stored.trace.as_ref()?).ok()?;
    let reader = Reader::new(BufReader::new(file)).ok()?;
    reader.header().cwd.as_ref().map(PathBuf::from)
}

/// Returns true if the stored result shows that only files of the patch changed. Results of older versions do not record the
/// places of other changes.
fn changed_nothing_else(stored: &StoredFiles) -> bool {
    stored
        .result()
        .is_some_and(|result| !result.beyond_patch.iter().any(|words| beyond_patch::is_of_unknown_places(words)))
}

async fn read_patch(path: &Path) -> Result<Result<Vec<Piece>, String>, TrialError> {
    let path = path.to_owned();
    on_blocking_thread(move || match regular::read(&path) {
        Ok(bytes) => read::read(&bytes).map_err(|error| format!("workspace.patch cannot be read: {error}")),
        Err(error) => Err(format!("workspace.patch cannot be read: {error}")),
    })
    .await
}

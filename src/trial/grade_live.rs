//! Grades a live trial in its workspace, and withdraws the grades that programs of the agent may have decided meanwhile.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use super::between::Between;
use super::changed_evidence::{self, WrittenFiles};
use super::grade_trial::{self, GradedWorkspace, ObservedSession};
use super::graders_home::UseOfHome;
use super::measure::MeasuredChange;
use super::metrics::Observed;
use super::prepare::PreparedTrial;
use super::prepare_workspace::Copies;
use super::sandboxing::{graders_shell, nowhere};
use super::{
    Attempt, Ended, Engine, Folders, Outcome, TrialError, above, graders_home, io, on_blocking_thread,
    unless_interrupted,
};
use crate::result::{TrialResult, Warning};
use crate::sandbox;
use crate::shell::Shell;
use crate::whole_file::PartFile;

/// A live trial whose session is over and whose change is measured.
pub(super) struct LiveTrial<'a> {
    pub engine: &'a Engine,
    pub attempt: &'a Attempt,
    pub folders: &'a Folders,
    pub prepared: &'a PreparedTrial,
    pub measured: &'a MeasuredChange,
    /// The trace, in a temporary file.
    pub trace: &'a PartFile,
    /// True if another program changed the wire log during the session.
    pub wire_changed: bool,
}

impl LiveTrial<'_> {
    /// Grades the session. `warnings` are those so far; those about what changed while the graders ran are added.
    pub(super) async fn grade(
        &self,
        session: ObservedSession,
        warnings: &mut Vec<Warning>,
    ) -> Result<TrialResult, Ended> {
        let Self { engine, attempt, folders, prepared, measured, trace, wire_changed } = *self;
        let (shell, obstacle) = self.graders_shell()?;
        let has_workspace = self.has_workspace();
        // Grading commands run in the workspace, so the paths of their input files are absolute.
        let [trace_path, patch_path] = [trace, &measured.patch].map(|part| std::path::absolute(part.written()).ok());
        let runs_programs = above::matters(&attempt.case);
        let use_of_home = if runs_programs { self.use_of_agents_home().await? } else { None };
        let files = runs_programs.then(|| WrittenFiles::of(trace, &measured.patch, &attempt.folder.join("wire.jsonl")));
        let unmasked = warnings.iter().find_map(Warning::unmasked).map(str::to_owned);
        let between = match obstacle {
            None => {
                Between::of(&attempt.case, folders, &shell, Some(&prepared.before), engine, warnings, has_workspace)?
            }
            Some(_) => Between::default(),
        };
        let site = GradedWorkspace {
            workspace: has_workspace.then_some(&*folders.workspace),
            change: has_workspace.then_some(&measured.change),
            touched: measured.touched,
            between: &between,
            obstacle: obstacle.as_deref(),
            written: files.as_ref(),
            trace: trace_path.as_deref(),
            patch: patch_path.as_deref().filter(|_| has_workspace),
            shell: &shell,
            judges: &engine.judges,
            unmasked: unmasked.as_deref(),
        };
        let mut changed: Vec<String> = measured.changed_copy.iter().cloned().collect();
        changed.extend(wire_changed.then(|| "`wire.jsonl`".to_owned()));
        let as_observed = (runs_programs || !changed.is_empty()).then(|| session.observed.clone());
        let Some(mut result) = unless_interrupted(engine, grade_trial::grade(attempt, session, &site)).await else {
            return Err(Ended::With(Outcome::Interrupted));
        };
        folders.check_not_removed(&engine.temporary)?;
        folders.check_disk("the graders ended")?;
        if let Some(observed) = as_observed {
            let copies = runs_programs.then(|| prepared.before.state().copies);
            let evidence = EvidenceAtStake { observed, touched: measured.touched, copies, use_of_home, files };
            withdraw_after_grading(engine, attempt, evidence, &mut result, warnings, &mut changed).await?;
        }
        warnings.extend(changed_evidence::warning(&changed, true));
        Ok(result)
    }

    /// Returns true if the workspace is evidence: a recording was made in another one.
    fn has_workspace(&self) -> bool {
        self.prepared.task.recording.is_none()
    }

    /// Returns the shell of the graders, and the reason why no grader can run commands, if there is one.
    fn graders_shell(&self) -> Result<(Shell, Option<String>), TrialError> {
        let Self { attempt, folders, prepared, .. } = *self;
        let (shell, obstacle) = match graders_shell(&prepared.shell, folders, &attempt.case, Some(&prepared.before)) {
            Ok(shell) => (shell, None),
            // The agent took the permission away.
            Err(TrialError::Io { doing, source }) if source.kind() == ErrorKind::PermissionDenied => {
                let why = format!(
                    "could not be graded, because the agent's files are in the way: could not {doing}: {source}"
                );
                (prepared.shell.clone(), Some(why))
            }
            Err(error) => return Err(error),
        };
        let shell = if self.has_workspace() { shell } else { nowhere(&shell, folders)? };
        Ok((shell, obstacle))
    }

    /// Returns the first use of the agent's own home in the workspace, if there is one: the graders have another home.
    async fn use_of_agents_home(&self) -> Result<Option<UseOfHome>, TrialError> {
        let Self { folders, prepared, measured, .. } = *self;
        let is_hidden = prepared.inside.sandbox.kind() != sandbox::Kind::None;
        let agents = graders_home::place_of_agents(folders, prepared.before.home(), is_hidden);
        let Some(agents) = agents.filter(|_| self.has_workspace()) else { return Ok(None) };
        let (workspace, home) = (folders.workspace.clone(), folders.home.clone());
        let change = &measured.change;
        let files: Vec<PathBuf> = change.created.iter().chain(&change.changed).map(PathBuf::from).collect();
        on_blocking_thread(move || graders_home::use_of_agents_home(&workspace, &home, &agents, &files)).await
    }
}

/// The evidence of a session that programs of the agent may have changed while the graders ran.
struct EvidenceAtStake {
    observed: Observed,
    /// True if the agent changed a protected file.
    touched: bool,
    /// The engine's copies. `None` if no grader ran a program.
    copies: Option<Arc<Copies>>,
    use_of_home: Option<UseOfHome>,
    files: Option<WrittenFiles>,
}

/// Withdraws the grades that programs of the agent may have decided while the graders ran, and adds what was changed meanwhile.
async fn withdraw_after_grading(
    engine: &Engine,
    attempt: &Attempt,
    evidence: EvidenceAtStake,
    result: &mut TrialResult,
    warnings: &mut Vec<Warning>,
    changed: &mut Vec<String>,
) -> Result<(), TrialError> {
    let EvidenceAtStake { observed, touched, copies, use_of_home, files } = evidence;
    let mut is_withdrawn = false;
    if let Some(copies) = copies {
        let temporary = engine.temporary.clone();
        let left_meanwhile = on_blocking_thread(move || above::after_grading(&temporary)).await?;
        let left_meanwhile = left_meanwhile.map_err(io("remove what an agent left above the workspace"))?;
        // The same may have been found between two graders.
        warnings.extend(left_meanwhile.filter(|warning| !result.warnings.contains(warning)));
        is_withdrawn = above::withdraw(result, warnings);
        is_withdrawn |= graders_home::withdraw(result, use_of_home.as_ref());
        // Code of the agent that a grader ran can write to the copies, too.
        let copy = on_blocking_thread(move || copies.first_change()).await?;
        if changed.is_empty() {
            changed.extend(copy);
        }
    }
    changed.extend(files.iter().flat_map(WrittenFiles::changed));
    if !changed.is_empty() {
        changed_evidence::withdraw(result, changed);
        is_withdrawn = true;
    }
    if is_withdrawn {
        let of_result = std::mem::take(&mut result.warnings);
        // Whether a protected file was changed is unknown without the evidence.
        grade_trial::decide(result, attempt, &observed, touched && changed.is_empty());
        result.warnings = of_result;
    }
    Ok(())
}

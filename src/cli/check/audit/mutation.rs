//! Applies mutants of a reference solution in fresh workspaces, and grades them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Stop, bare};
use crate::audit::Agent;
use crate::audit::mutants::{Mutant, mutants};
use crate::audit::mutation::{Mutants, Outcome, Seen, outcome};
use crate::case::Case;
use crate::trial::audited::{LookAt, Observations, Played, attempt_of, play_and_look};
use crate::trial::{Attempt, Engine};
use crate::verdict::Verdict;
use crate::workspace::apply::apply;
use crate::workspace::patch::read::{Edit, Piece, read};

/// The workspace of a reference solution.
pub struct Solution {
    /// The case with the graders that judge the workspace.
    pub case: Arc<Case>,
    /// The change of the solution.
    pub observations: Observations,
    /// True if these graders passed the solution in this trial.
    pub is_graded: bool,
}

/// The result of a trial.
enum Tried {
    Graded(Seen, Observations),
    NotGraded,
}

/// Tries at most `most` mutants of a solution.
pub(super) async fn mutate(engine: &Engine, solution: &Solution, most: usize) -> Result<Mutants, Stop> {
    let case = &solution.case;
    let pieces = match read(&solution.observations.patch) {
        Ok(pieces) if pieces.iter().any(|piece| piece.edit == Edit::LeftOut) => {
            return Ok(Mutants::none("the solution has files that are too large for a patch"));
        }
        Ok(pieces) => pieces,
        Err(error) => return Ok(Mutants::none(format!("the patch of the solution cannot be read: {error}"))),
    };
    let seed = match case.digest() {
        Ok(digest) => digest,
        Err(error) => return Ok(Mutants::none(format!("the case cannot be read: {error}"))),
    };
    let (chosen, possible) = mutants(&pieces, &seed, most, |path| is_judged(case, path));
    if chosen.is_empty() {
        return Ok(Mutants::none("the solution adds no line that can be mutated"));
    }
    let attempt = attempt_of(case, bare(Agent::Oracle), PathBuf::new());
    let mut files = solution.observations.files.clone();
    if solution.observations.is_partial || !solution.is_graded {
        // The patch may lack files, and the agent may have passed by more than its workspace.
        match tried(engine, &attempt, pieces.clone(), LookAt::Changes).await? {
            Tried::Graded(seen, observations) if seen.verdict() == Verdict::Pass => files = observations.files,
            Tried::Graded(..) | Tried::NotGraded => {
                let why = "the changed files of the solution alone do not pass the graders that judge files";
                return Ok(Mutants::none(why));
            }
        }
    }
    let mut outcomes = Vec::new();
    for Mutant { mutation, pieces, path } in chosen {
        let (first, observations) = match tried(engine, &attempt, pieces.clone(), LookAt::File(path.clone())).await? {
            Tried::Graded(seen, observations) => (seen, observations),
            Tried::NotGraded => {
                outcomes.push((mutation, Outcome::NotGraded));
                continue;
            }
        };
        if observations.files.get(&path) == files.get(&path) {
            outcomes.push((mutation, Outcome::WithoutEffect));
            continue;
        }
        let again = match first.needs_confirmation() {
            false => None,
            true => match tried(engine, &attempt, pieces, LookAt::File(path)).await? {
                Tried::Graded(seen, _) => Some(seen),
                Tried::NotGraded => {
                    outcomes.push((mutation, Outcome::NotGraded));
                    continue;
                }
            },
        };
        outcomes.push((mutation, outcome(&first, again.as_ref())));
    }
    let control = match outcomes.iter().any(|(_, outcome)| matches!(outcome, Outcome::Noticed { .. })) {
        false => None,
        true => match tried(engine, &attempt, pieces, LookAt::Changes).await? {
            Tried::Graded(seen, _) => Some(seen),
            Tried::NotGraded => None,
        },
    };
    Ok(Mutants::of(possible, outcomes, control.as_ref()))
}

/// Plays an agent that makes these changes.
async fn tried(engine: &Engine, attempt: &Attempt, pieces: Vec<Piece>, at: LookAt) -> Result<Tried, Stop> {
    let act = move |workspace: &Path| apply(workspace, &pieces).map(drop).map_err(std::io::Error::other);
    match play_and_look(engine, attempt, act, None, Some(at)).await {
        Ok((Played::Graded(result), observations)) => Ok(Tried::Graded(Seen::of(&result), observations)),
        Ok((Played::Interrupted, _)) => Err(Stop::Interrupted),
        Ok((Played::NotReady(_), _)) => Ok(Tried::NotGraded),
        Err(error) => Stop::unless_of_the_trial(error).map(|_| Tried::NotGraded),
    }
}

/// Returns false for files that are replaced before grading: hidden and protected ones.
fn is_judged(case: &Case, path: &Path) -> bool {
    let is_hidden = case.hidden.as_ref().is_some_and(|hidden| hidden.join(path).symlink_metadata().is_ok());
    let globs = &case.workspace.protect;
    !is_hidden && !globs.iter().any(|glob| glob.is_match_path(path))
}

//! Checks sandboxes before a run begins: a missing one stops the run, and no trial runs without its sandbox.

use crate::cli::CliError;
use crate::cli::inputs::Inputs;
use crate::ids::{TrialRecord, by_case_id};
use crate::run::RunOptions;
use crate::sandbox::{Kind, Sandbox, SandboxError, bwrap};

/// Checks that every planned trial can have its sandbox.
///
/// # Errors
/// Returns an error with all reasons why a sandbox cannot be made.
pub fn check(inputs: &Inputs, trials: &[TrialRecord], options: &RunOptions) -> Result<(), CliError> {
    let asked = options.sandbox;
    let mut confined = false;
    let mut wrong: Vec<String> = Vec::new();
    let mut tell = |error: &SandboxError, whose: &str| {
        let reason = format!("{whose}{error}");
        if !wrong.contains(&reason) {
            wrong.push(reason);
        }
    };
    for trial in trials.iter().filter(|trial| trial.skip.is_none()) {
        let Some(case) = by_case_id(&inputs.cases, &trial.case) else { continue };
        let Ok(entry) = inputs.catalog.get(&trial.harness) else { continue };
        let decided = Sandbox::decide(asked, case.sandbox.as_ref(), entry.manifest.sandbox.as_ref());
        match decided {
            // A resumed run has the sandbox that the case names now.
            Ok(sandbox) => confined |= matches!(sandbox, Sandbox::Bwrap { .. }),
            Err(error) => tell(&error, &format!("{}, harness `{}`: ", case.shown().display(), trial.harness)),
        }
        // A sandbox from the command line is used without the mounts of a case.
        let mounts = case.sandbox.iter().flat_map(|settings| &settings.mount);
        if asked == Some(Kind::Bwrap) && !options.allow_mounts {
            for mount in mounts {
                let error = SandboxError::NotAllowed { path: mount.path.clone(), write: mount.write };
                tell(&error, &format!("{}: ", case.shown().display()));
            }
        }
    }
    confined |= trials.iter().any(|trial| trial.skip.is_none() && trial.sandbox == Kind::Bwrap);
    if let Some(error) = bwrap::works().err().filter(|_| confined) {
        tell(&error, "");
    }
    let errors = wrong.into_iter().map(CliError::unreadable);
    errors.reduce(CliError::and).map_or(Ok(()), Err)
}

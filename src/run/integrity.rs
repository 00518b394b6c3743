//! Checks by digests whether a stored result is the one that the journal records, and makes a replacement if they differ.

use std::io;
use std::path::Path;

use super::journal::TrialState;
use crate::ids::TrialRecord;
use crate::regular;
use crate::result::{ErrorRecord, TrialResult, Warning};
use crate::trace::ErrorCategory;
use crate::verdict::Verdict;

/// Returns the digest of a result in the form in which this version writes it.
pub fn digest_of(result: &TrialResult) -> String {
    digest(&serde_json::to_vec(result).unwrap_or_default())
}

/// Returns the digest of JSON text. White space between its parts does not count: `result.json` and a line of
/// `results.jsonl` have the same digest.
pub fn digest(json: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    let (mut in_text, mut escaped, mut from) = (false, false, 0);
    for (at, byte) in json.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b' ' | b'\n' | b'\r' | b'\t' if !in_text => {
                hasher.update(json.get(from..at).unwrap_or_default());
                from = at + 1;
            }
            _ => {}
        }
    }
    hasher.update(json.get(from..).unwrap_or_default());
    hasher.finalize().to_hex().to_string()
}

/// The reason why a stored result differs from the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    /// The journal has another digest.
    Digest,
    /// The result has digests of files, but its line of the journal has none. Both digests were introduced in the
    /// same version.
    Files,
    /// The result belongs to another trial or attempt.
    Trial,
    /// The journal has another verdict.
    Verdict { journal: Verdict, result: Verdict },
    /// The plan skips the trial.
    Skipped,
    /// The file is missing, or is something that the engine does not write.
    Lost,
}

impl Changed {
    /// Returns the reason as text about `result`, which is a subject in the singular.
    pub(super) fn reason(self, result: &str) -> String {
        match self {
            Self::Digest => format!("{result} was changed: the journal has another digest"),
            Self::Files => format!("{result} has digests of files, but its journal line has none: it was changed"),
            Self::Trial => format!("{result} belongs to another trial or attempt"),
            Self::Verdict { journal, result: found } => {
                let (journal, found) = (journal.word(), found.word());
                format!("its journal line says `{journal}`, but {result} says `{found}`")
            }
            Self::Skipped => {
                "run.json records it as skipped, but it has another result: one of the two was changed".to_owned()
            }
            Self::Lost => format!("{result} was removed or replaced"),
        }
    }
}

/// Returns the result, or the reason why it differs from the result that the journal records.
///
/// # Errors
/// Returns an error if the text is not a result.
pub(super) fn checked(
    trial: &TrialRecord,
    state: &TrialState,
    json: &[u8],
) -> Result<Result<TrialResult, Changed>, serde_json::Error> {
    if state.digest.as_ref().is_some_and(|stored| **stored != *digest(json)) {
        return Ok(Err(Changed::Digest));
    }
    let result: TrialResult = serde_json::from_slice(json)?;
    Ok(match changed_parsed(trial, state, &result) {
        Some(changed) => Err(changed),
        None => Ok(result),
    })
}

/// Returns the reason why a result, which was read from this JSON text, differs from the result that the journal records.
pub(super) fn changed(trial: &TrialRecord, state: &TrialState, json: &[u8], result: &TrialResult) -> Option<Changed> {
    if state.digest.as_ref().is_some_and(|stored| **stored != *digest(json)) {
        return Some(Changed::Digest);
    }
    changed_parsed(trial, state, result)
}

/// Compares everything but the digest of the text.
fn changed_parsed(trial: &TrialRecord, state: &TrialState, result: &TrialResult) -> Option<Changed> {
    if let Some(reason) = &trial.skip {
        // The journal has no line about its outcome, but the plan does.
        let is_it = state.finished.is_none() && *result == TrialResult::skipped(trial, reason);
        return (!is_it).then_some(Changed::Skipped);
    }
    let is_it = (&result.case, &result.harness, &result.arm, result.trial, result.attempt)
        == (&trial.case, &trial.harness, &trial.arm, trial.trial, state.attempt);
    if state.digest.is_none() && !result.files.is_empty() {
        return Some(Changed::Files);
    }
    if !is_it {
        return Some(Changed::Trial);
    }
    match state.finished {
        Some(journal) if journal != result.verdict => Some(Changed::Verdict { journal, result: result.verdict }),
        _ => None,
    }
}

/// Returns the replacement for a result whose stored verdict differs from the recorded one. It is never a pass.
pub fn not_as_judged(trial: &TrialRecord, state: &TrialState, why: &str) -> TrialResult {
    let message = format!("{why}; the trial does not count, run it again with: evals run --resume RUN --rerun errored");
    TrialResult {
        attempt: state.attempt,
        error: Some(ErrorRecord { category: ErrorCategory::Internal, message }),
        warnings: vec![Warning::NotAsJudged { why: why.to_owned() }],
        ..TrialResult::blank(trial, Verdict::Errored)
    }
}

/// Returns the reason if a file of a trial differs from the one that was graded. Runs of versions without digests are trusted.
pub fn changed_file(folder: &Path, name: &str, result: &TrialResult) -> Option<String> {
    let stored = result.files.get(name)?;
    match digest_of_file(&folder.join(name)) {
        Ok(found) if found == *stored => None,
        Ok(_) => Some(format!("its {name} was changed: result.json has another digest")),
        // A missing file is reported where it is needed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(format!("its {name} cannot be compared with the digest in result.json: {error}")),
    }
}

/// The name of a kept workspace in the folder of its trial, and of its digest in `files` of the result.
pub const WORKSPACE: &str = "workspace";

/// The name of the digest of the workspace as its setup commands left it, in `files` of the result.
pub const AFTER_SETUP: &str = "workspace-after-setup";

/// The names in `files` of a result that are not names of files.
pub(super) const IS_NO_FILE: [&str; 2] = [WORKSPACE, AFTER_SETUP];

/// The facts about the trial in the result beside a stored trace. It is empty if there is no result beside the trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// The reason if the trace differs from the one that was graded, or cannot be compared with it.
    pub changed: Option<String>,
    /// The reason if the change of the workspace differs from the one that was graded, or cannot be compared with it.
    pub patch_changed: Option<String>,
    /// The error of the trial.
    pub error: Option<ErrorRecord>,
    /// The digest of the kept workspace.
    pub workspace: Option<String>,
    /// The result, if it has the digest of this trace.
    pub result: Option<TrialResult>,
}

/// Returns what the result beside a stored trace says. A result that cannot be read is a reason not to trust the trace.
pub fn beside(trace: &Path) -> Beside {
    let Some(folder) = trace.parent() else { return Beside::default() };
    let result = match result_in(folder) {
        Ok(Some(result)) => result,
        Ok(None) => return Beside::default(),
        Err(why) => return Beside { changed: Some(why), ..Beside::default() },
    };
    let name = trace.file_name().and_then(|name| name.to_str());
    let is_its = |stored: &String| digest_of_file(trace).is_ok_and(|found| found == *stored);
    Beside {
        changed: name.and_then(|name| changed_file(folder, name, &result)),
        patch_changed: changed_file(folder, "workspace.patch", &result),
        workspace: result.files.get(WORKSPACE).cloned(),
        error: result.error.clone(),
        result: result.files.get("trace.jsonl").is_some_and(is_its).then_some(result),
    }
}

fn result_in(folder: &Path) -> Result<Option<TrialResult>, String> {
    match regular::read_own(folder.join("result.json")) {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(result) => Ok(Some(result)),
            Err(error) => Err(format!("the result.json beside it cannot be read: {error}")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("the result.json beside it cannot be read: {error}")),
    }
}

fn digest_of_file(path: &Path) -> io::Result<String> {
    Ok(regular::digest(regular::open_own(path)?)?.to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_counts_in_texts_alone() {
        let compact = br#"{"a":"x \" y","b":[1,2]}"#;
        assert_eq!(digest(b"{\n  \"a\": \"x \\\" y\",\n  \"b\": [1, 2]\n}\n"), digest(compact));
        assert_ne!(digest(br#"{"a":"x \"  y","b":[1,2]}"#), digest(compact));
        assert_ne!(digest(br#"{"a":"x \" y","b":[1,3]}"#), digest(compact));
    }
}

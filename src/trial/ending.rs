//! Derives the result from the end of a session: the category of an error, exceeded limits, and warnings.

use serde_json::Value;

use super::limits;
use super::metrics::Observed;
use super::task::model_asked;
use super::{Attempt, Outcome, TrialError, sync_trial};
use crate::grader::Grader;
use crate::harness::Manifest;
use crate::interaction::Interaction;
use crate::limits::OnLimit;
use crate::models;
use crate::result::{ErrorRecord, TrialResult, Warning};
use crate::secrets::{Masker, Numbers};
use crate::session::{ProcessEnd, SessionRemains};
use crate::trace::{ErrorCategory, Exit, Model, Stop, StopReason};
use crate::verdict::{self, Verdict};
use crate::whole_file::FileError;
use crate::whole_file::PartFile;
use crate::whole_file::{put_in_place, write_part};

/// Returns the end of standard error if the session ended abnormally.
pub(super) fn tail_worth_keeping(remains: &SessionRemains, stop: &Stop) -> Option<String> {
    let well = stop.category.is_none() && stop.exit.is_none_or(|exit| exit.code == Some(0));
    (!well && !remains.stderr_tail.is_empty()).then(|| remains.stderr_tail.clone())
}

/// Returns why the model is not the required one, if it is not or if it is unknown.
pub(super) fn wrong_model(model: &Model) -> Option<String> {
    let requested = model.requested.as_ref()?;
    match &model.effective {
        Some(effective) if models::same(requested, effective) => None,
        Some(effective) => Some(format!("the case requires model `{requested}`, and `{effective}` answered")),
        None => Some(format!("the case requires model `{requested}`, and the agent did not report which one answered")),
    }
}

/// Returns the error category of the end, if it is an error.
pub(crate) fn error_of(stop: &Stop) -> Option<ErrorCategory> {
    match stop.reason {
        StopReason::Error => Some(stop.category.unwrap_or(ErrorCategory::Protocol)),
        StopReason::Crashed => Some(stop.category.unwrap_or(ErrorCategory::Crashed)),
        _ => None,
    }
}

pub(super) fn message_of(category: ErrorCategory, stop: &Stop, manifest: &Manifest) -> String {
    let mut message = stop.detail.clone().unwrap_or_default();
    if message.is_empty() {
        message = match stop.exit {
            Some(crate::trace::Exit { code: Some(code), .. }) => format!("the agent exited {code} before it answered"),
            Some(crate::trace::Exit { signal: Some(signal), .. }) => {
                format!("the agent was ended by signal {signal} before it answered")
            }
            _ => "the agent ended before it answered".to_owned(),
        };
    } else if category == ErrorCategory::Crashed
        && let Some(code) = stop.exit.and_then(|exit| exit.code)
    {
        message = format!("the agent exited {code} before it answered: {message}");
    }
    if category == ErrorCategory::NotInstalled
        && let Some(install) = &manifest.install
    {
        message = format!("{message}; install it with: `{install}`");
    }
    message
}

/// Returns the message about an agent without an answer that closed its output and did not exit, so that the engine ended
/// it. Returns `None` if the agent's process ended by itself, or for another reason.
pub(super) fn message_of_held_on(stop: &Stop, remains: &SessionRemains, manifest: &Manifest) -> Option<String> {
    let of_engine = remains.process_end == ProcessEnd::ByEngine && !remains.interrupted;
    if !of_engine || stop.reason != StopReason::Crashed || error_of(stop) != Some(ErrorCategory::Crashed) {
        return None;
    }
    // The drivers of conversations do not wait for the grace period once the output is closed.
    let waited = match manifest.adapter.has_conversation() {
        true => String::new(),
        false => format!(" within {} (`timeouts.grace`)", manifest.timeouts.grace),
    };
    let tail = stop.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    Some(format!("the agent closed its output and did not exit{waited}, so evals ended it{tail}"))
}

/// Sets the verdict and the score from the grades. Then an exceeded limit fails the trial, unless `on-limit` is
/// `grade`. A live trial that was interrupted is ungraded.
pub(super) fn limits_and_grades(result: &mut TrialResult, attempt: &Attempt, observed: &Observed) {
    let case = &attempt.case;
    let scored = verdict::of_grades(&result.grades, case.pass.threshold);
    (result.verdict, result.score) = (scored.verdict, scored.score);
    if scored.without_models {
        result.warnings.push(Warning::FailsWithoutModels);
    }
    // A live trial that was interrupted is not finished; its stored session is not graded either.
    let is_interrupted = |stop: &Stop| stop.reason == StopReason::Cancelled;
    if observed.stopped_by_engine && observed.stop.as_ref().is_some_and(is_interrupted) {
        (result.verdict, result.score) = (Verdict::Ungraded, None);
        result.warnings.push(Warning::Interrupted);
        return;
    }
    let is_stored = observed.is_stored || attempt.manifest.recording.is_some();
    let found = limits::findings(&case.limits, &result.metrics, observed, is_stored);
    result.warnings.extend(found.unknown);
    if found.exceeded.is_empty() {
        return;
    }
    result.warnings.extend(found.exceeded);
    if case.limits.on_limit() == OnLimit::Fail {
        result.verdict = Verdict::Fail;
        result.score = Some(crate::values::Fraction::ZERO);
    }
}

/// Adds the warning that not every prompt was sent, if so. Then a trial does not pass: what the case asks for was not all asked.
/// Only a limit with `on-limit: grade`, and an end that a passed grader asks for, leave the verdict to the graders.
pub(super) fn check_all_sent(result: &mut TrialResult, attempt: &Attempt, sent: usize, by_engine: bool) {
    let planned = attempt.case.turns.len();
    if result.error.is_some() || !(1..planned).contains(&sent) {
        return;
    }
    if !result.warnings.iter().any(|it| matches!(it, Warning::PromptsNotSent { .. })) {
        result.warnings.push(Warning::PromptsNotSent { sent: sent as u64, planned: planned as u64 });
    }
    let at_limit = |reason: StopReason| {
        use StopReason::{Idle, MaxBudget, MaxTurns, TimedOut};
        by_engine && matches!(reason, TimedOut | Idle | MaxTurns | MaxBudget)
    };
    let is_asked_for = |reason| !by_engine && is_asked_for(reason, result, attempt);
    let is_of_graders = result.stop.as_ref().is_some_and(|stop| at_limit(stop.reason) || is_asked_for(stop.reason));
    if result.verdict == Verdict::Pass && !is_of_graders {
        (result.verdict, result.score) = (Verdict::Ungraded, None);
    }
}

/// Withholds the verdict of a trial in which a permission request got the default answer of the policy `llm`, because no model
/// answered: with the model's answer, the agent may have done something else. The warning `no_model` names the request.
pub(super) fn check_all_answered(result: &mut TrialResult, observed: &Observed) {
    if observed.lacks_an_answer_of_a_model() {
        (result.verdict, result.score) = (Verdict::Ungraded, None);
    }
}

/// Returns true if the agent ended a turn in another way than by its answer, and a grader that passed asks for this end.
fn is_asked_for(reason: StopReason, result: &TrialResult, attempt: &Attempt) -> bool {
    use StopReason::{Cancelled, MaxBudget, MaxTokens, MaxTurns, Other, Refusal};
    let passed = |name: &str| {
        result.grades.iter().any(|grade| grade.name == name && grade.passed == Some(true) && !grade.diagnostic)
    };
    let asks = |grader: &Grader| grader.kind.spec().requires_end(reason) && passed(&grader.name);
    matches!(reason, Refusal | MaxTokens | MaxTurns | MaxBudget | Cancelled | Other)
        && attempt.case.graders.iter().any(|grader| asks(grader))
}

/// Marks a trial that failed in another run and passes now as flaky.
pub(super) fn mark_flaky(result: &mut TrialResult, attempt: &Attempt) {
    if let Some(run) = attempt.trial.failed_in.as_ref().filter(|_| result.verdict == Verdict::Pass) {
        result.flaky = true;
        result.warnings.push(Warning::Flaky { run: run.clone() });
    }
}

/// Adds warnings about an agent that answered and then did not exit normally.
pub(super) fn warn_after(result: &mut TrialResult, stop: &Stop, remains: &SessionRemains) {
    if result.error.is_some() {
        return;
    }
    result.warnings.extend(remains.bad_exit.and_then(of_exit));
    let now = match stop.exit {
        _ if remains.process_end == ProcessEnd::Unknown => Some(Warning::ExitUnknown),
        Some(_) if remains.process_end == ProcessEnd::ByEngine => Some(Warning::HeldOn),
        exit => exit.and_then(of_exit).filter(|warning| !result.warnings.contains(warning)),
    };
    result.warnings.extend(now);
}

/// Returns the warning about an exit that is not normal.
fn of_exit(exit: Exit) -> Option<Warning> {
    match (exit.code, exit.signal) {
        (Some(0), _) | (None, None) => None,
        (Some(code), _) => Some(Warning::ExitCode { exit: code.into() }),
        (None, Some(signal)) => Some(Warning::ExitSignal { signal: signal.into() }),
    }
}

/// Redacts the secrets in all free text of a result. Values that the engine wrote (the identity of the trial, words such as
/// verdicts, and numbers) are not masked, because a secret may equal one by chance.
pub(super) fn mask_result(result: &mut TrialResult, masker: &Masker) {
    // A result that has no JSON form is not written either.
    let Ok(plain) = serde_json::to_value(&*result) else { return };
    let mut masked = plain.clone();
    if let Some(fields) = masked.as_object_mut() {
        for (key, field) in fields.iter_mut().filter(|(key, _)| !IDENTITY.contains(&key.as_str())) {
            mask_texts(field, key == "stop", masker);
        }
    }
    match serde_json::from_value(masked.clone()) {
        Ok(masked) => *result = masked,
        Err(_) => *result = masked_one_by_one(plain, &masked, result),
    }
}

/// Takes over each masked text that leaves the result readable: another one is a word of the engine that equals a secret.
fn masked_one_by_one(plain: Value, masked: &Value, result: &TrialResult) -> TrialResult {
    let mut changed = Vec::new();
    changes(&plain, masked, String::new(), &mut changed);
    let (mut value, mut readable) = (plain, result.clone());
    for pointer in changed {
        let mut next = value.clone();
        if let (Some(place), Some(text)) = (next.pointer_mut(&pointer), masked.pointer(&pointer)) {
            text.clone_into(place);
        }
        if let Ok(result) = serde_json::from_value(next.clone()) {
            (value, readable) = (next, result);
        }
    }
    readable
}

/// Finds the places at which two values of the same shape differ.
fn changes(one: &Value, other: &Value, at: String, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.iter()
                .zip(other)
                .enumerate()
                .for_each(|(n, (one, other))| changes(one, other, format!("{at}/{n}"), found));
        }
        (Value::Object(one), Value::Object(other)) => {
            for (key, one) in one {
                let key_there = key.replace('~', "~0").replace('/', "~1");
                changes(one, other.get(key).unwrap_or(&Value::Null), format!("{at}/{key_there}"), found);
            }
        }
        (one, other) if one != other => found.push(at),
        _ => {}
    }
}

/// The keys of a result that name the trial, and those that hold no free text.
const IDENTITY: [&str; 5] = ["case", "harness", "arm", "verdict", "files"];
/// The keys whose values are fixed words of the engine, which are not redacted.
const WORDS: [&str; 7] = ["requested", "grader", "outcome", "category", "code", "source", "kind"];

fn mask_texts(value: &mut Value, is_stop: bool, masker: &Masker) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mask_texts(item, false, masker)),
        Value::Object(fields) => {
            let is_word = |key: &str| WORDS.contains(&key) || (is_stop && key == "reason");
            fields.iter_mut().filter(|(key, _)| !is_word(key)).for_each(|(_, field)| mask_texts(field, false, masker));
        }
        plain => masker.mask_value(plain, Numbers::Kept),
    }
}

pub(super) fn write_result(attempt: &Attempt, result: &mut TrialResult) -> Result<PartFile, FileError> {
    result.earlier_attempts = attempt.previous.sum;
    if attempt.previous.have_gone(&attempt.folder, attempt.attempt) {
        result.warnings.push(Warning::EvidenceChanged { files: "`attempts`".to_owned(), ungraded: false });
    }
    write_part(&attempt.folder.join("result.json"), |out| {
        serde_json::to_writer_pretty(&mut *out, result)?;
        out.write_all(b"\n")
    })
}

/// Returns true if a person answers the agent's requests, or would if one were available.
pub(super) fn is_manual(attempt: &Attempt) -> bool {
    attempt.interaction == Interaction::Manual && attempt.manifest.seen().interaction
}

/// Finishes the result of an attempt without an agent.
pub(super) fn finish_without_agent(
    attempt: &Attempt,
    masker: &Masker,
    category: ErrorCategory,
    message: String,
) -> Result<Outcome, TrialError> {
    let mut result = TrialResult {
        model: model_asked(attempt),
        error: Some(ErrorRecord { category, message }),
        attempt: attempt.attempt,
        manual: is_manual(attempt),
        warnings: attempt.foreign.iter().cloned().collect(),
        ..TrialResult::blank(&attempt.trial, Verdict::Errored)
    };
    mask_result(&mut result, masker);
    put_in_place([write_result(attempt, &mut result)?])?;
    sync_trial(&attempt.folder)?;
    Ok(Outcome::Done(Box::new(result)))
}

pub(crate) fn no_stop(detail: &str) -> Stop {
    Stop {
        reason: StopReason::Crashed,
        category: Some(ErrorCategory::Internal),
        detail: Some(detail.to_owned()),
        output: None,
        gap: None,
        exit: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_that_is_a_word_of_the_engine_hides_no_other_secret() {
        let mut result: TrialResult = serde_json::from_value(json!({
            "case": "a", "harness": "b", "model": {}, "trial": 1, "verdict": "errored", "grades": [], "metrics": {},
            "error": {"category": "crashed", "message": "it said my-own-secret and cassette"}, "attempt": 1,
            "arm": "default", "shape": [["my-own-secret"]], "model_from": "cassette",
        }))
        .unwrap();
        mask_result(&mut result, &Masker::of([("WORD", "cassette"), ("KEY", "my-own-secret")]));
        let value = serde_json::to_value(&result).unwrap();
        assert_eq!(value["error"]["message"], "it said [redacted:KEY] and [redacted:WORD]");
        assert_eq!((&value["model_from"], &value["shape"][0][0]), (&json!("cassette"), &json!("[redacted:KEY]")));
    }
}

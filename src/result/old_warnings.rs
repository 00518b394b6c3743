//! Warnings of old versions, which wrote text only: this is the only module that recognises their sentences.

use super::warning::{FileChange, Warning};

/// Reads a warning that is text only. Sentences that regrading and reports rely on become the corresponding
/// warning.
pub fn read(text: String) -> Warning {
    recognised(&text).unwrap_or(Warning::Text { said: text })
}

fn recognised(text: &str) -> Option<Warning> {
    let after = |start: &str| text.strip_prefix(start).map(str::to_owned);
    let count = |end: &str| text.strip_suffix(end)?.trim().parse::<u64>().ok();
    // A warning about a file contains its path, so these two are tried first: a path may contain any other
    // sentence.
    if let Some(warning) = protected(text) {
        return Some(warning);
    }
    if let Some(why) = after("it could not be graded again: ") {
        return Some(Warning::NotGradedAgain { why });
    }
    if let Some(why) = after("graders that need the workspace could not judge: ") {
        return Some(Warning::NoWorkspace { why });
    }
    if let Some(lost) = after("the workspace was made again and is not whole: ") {
        return Some(Warning::RebuiltInPart { lost: vec![lost] });
    }
    if let Some(lost) = after("the workspace was kept and is not whole: ") {
        return Some(Warning::KeptInPart { lost: vec![lost] });
    }
    if let Some(error) = after("the workspace could not be kept whole: ") {
        return Some(Warning::WorkspaceKeptInPart { error });
    }
    if let Some(error) = after("the workspace could not be kept: ") {
        let without = error.strip_suffix(", and what is there of it could not be removed").map(str::to_owned);
        return Some(Warning::WorkspaceNotKept { partly_left: without.is_some(), error: without.unwrap_or(error) });
    }
    if let Some(bytes) = count(" bytes of ignored files are not part of the workspace's change") {
        return Some(Warning::IgnoredFiles { bytes });
    }
    if let Some(files) = count(" files of the kept workspace held secrets and were masked") {
        return Some(Warning::KeptMasked { files });
    }
    if let Some(files) = count(" files of the workspace were not kept: they could not be read") {
        return Some(Warning::KeptWithoutUnread { files });
    }
    if let Some((files, rest)) = text.split_once(" files of the workspace were not kept") {
        let files = files.parse().ok()?;
        return Some(match rest.strip_prefix(", ").and_then(|rest| rest.split_once(" bytes: ")) {
            Some((bytes, _)) => Warning::KeptUpToLimit { files, bytes: bytes.parse().ok()?, most: 4 << 30 },
            None => Warning::KeptWithoutSecrets { files, largest: 16 << 20 },
        });
    }
    if text == "workspace.patch held secrets and was masked" {
        return Some(Warning::PatchMasked);
    }
    if text == "it fails without the graders that ask a model, and that stands" {
        return Some(Warning::FailsWithoutModels);
    }
    limit(text).or_else(|| flaky(text)).or_else(|| no_model(text))
}

fn protected(text: &str) -> Option<Warning> {
    if let Some(more) = text.strip_suffix(" more protected files were put back before grading") {
        return Some(Warning::ProtectedFiles { more: more.parse().ok()? });
    }
    let (how, path) = text.strip_prefix("the agent ")?.split_once(" the protected file ")?;
    let change = match how {
        "created" => FileChange::Created,
        "changed" => FileChange::Changed,
        "deleted" => FileChange::Deleted,
        _ => return None,
    };
    let put_back = path.strip_suffix("; it was put back before grading");
    Some(Warning::ProtectedFile {
        path: put_back.unwrap_or(path).to_owned(),
        change,
        put_back: put_back.is_some(),
        fails: false,
    })
}

fn limit(text: &str) -> Option<Warning> {
    let (key, rest) = text.strip_prefix("limit `")?.split_once('`')?;
    let key = key.to_owned();
    if rest == " was reached and ended the trial" {
        return Some(Warning::LimitReached { key });
    }
    let (limit, value) = rest.strip_prefix(" is ")?.split_once(" and was exceeded: ")?;
    Some(Warning::LimitExceeded { key, limit: limit.parse().ok()?, value: value.parse().ok()?, at_least: false })
}

fn flaky(text: &str) -> Option<Warning> {
    let run = text.strip_prefix("flaky: it failed in run ")?.strip_suffix(" and passed now")?;
    Some(Warning::Flaky { run: run.to_owned() })
}

fn no_model(text: &str) -> Option<Warning> {
    let (requests, why) = text.split_once(" answered without a model by the policy `llm`: ")?;
    let requests = requests.split(' ').next()?.parse().ok()?;
    Some(Warning::NoModel { requests, why: why.to_owned(), event: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_that_was_relied_on_is_recognised() {
        let told = |path: &str, put_back| Warning::ProtectedFile {
            path: path.to_owned(),
            change: FileChange::Changed,
            put_back,
            fails: false,
        };
        for warning in [
            told("tests/x", true),
            told("the workspace could not be kept: x", false),
            Warning::IgnoredFiles { bytes: 6 },
            Warning::PatchMasked,
            Warning::LimitReached { key: "tool-calls".into() },
            Warning::LimitExceeded { key: "cost-usd".into(), limit: 0.5, value: 0.75, at_least: false },
            Warning::Flaky { run: "20260101-000000-abcd".into() },
            Warning::NoModel { requests: 2, why: "no model answered: x".into(), event: None },
            Warning::NotGradedAgain { why: "its trace is gone".into() },
            Warning::RebuiltInPart { lost: vec!["a; b".into()] },
            Warning::KeptInPart { lost: vec!["a".into()] },
            Warning::WorkspaceNotKept { error: "x".into(), partly_left: true },
            Warning::WorkspaceNotKept { error: "x".into(), partly_left: false },
            Warning::WorkspaceKeptInPart { error: "x".into() },
            Warning::KeptMasked { files: 2 },
            Warning::KeptWithoutSecrets { files: 2, largest: 16 << 20 },
            Warning::KeptUpToLimit { files: 2, bytes: 9, most: 4 << 30 },
            Warning::KeptWithoutUnread { files: 2 },
        ] {
            assert_eq!(read(warning.to_string()), warning);
        }
        // These sentences differ now.
        for (text, warning) in [
            ("graders that need the workspace could not judge: x", Warning::NoWorkspace { why: "x".into() }),
            ("it fails without the graders that ask a model, and that stands", Warning::FailsWithoutModels),
            ("3 more protected files were put back before grading", Warning::ProtectedFiles { more: 3 }),
        ] {
            assert_eq!(read(text.to_owned()), warning);
        }
    }
}

//! Compares the skills that an agent lists as loaded with those that its trial should have.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::Attempt;
use crate::adapter;
use crate::regular;
use crate::text::first_chars;
use crate::wire::{Dir, WireLine};

/// The maximum number of lines of the agent that are searched for its list: agents list their skills at the start.
const MOST_LINES: usize = 1000;

/// The skills that an agent loaded, compared with those of its trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Loaded {
    /// Why the trial is not what its arm states, if it is not.
    pub wrong: Option<String>,
    /// Skills that are neither of the trial nor the agent's own.
    pub unexpected: Vec<String>,
    /// True if the agent could have listed its skills and did not.
    pub not_shown: bool,
}

/// Compares the agent's list in the wire log with the skills of the trial. `own` is the workspace before the agent, whose
/// skills belong to the case. Nothing is compared if the trial lays no skills and belongs to no experiment, or if the
/// agent lists nothing.
pub(super) fn check(attempt: &Attempt, wire: &Path, own: &Path) -> Loaded {
    let laid: BTreeSet<&str> = attempt.case.overlay.skills.iter().map(|skill| skill.name.as_str()).collect();
    if laid.is_empty() && attempt.skills_of_arms.is_none() {
        return Loaded::default();
    }
    let Some(listed) = listed(attempt, wire) else {
        let has_skills = attempt.skills_of_arms.as_ref().is_none_or(|names| !names.is_empty());
        return Loaded { not_shown: has_skills && adapter::lists_skills(&attempt.manifest), ..Loaded::default() };
    };
    let of_arms = attempt.skills_of_arms.iter().flat_map(|skills| skills.iter()).map(|skill| skill.name.as_str());
    let others: BTreeSet<&str> = of_arms.filter(|name| !laid.contains(name)).collect();
    compare(&listed, &laid, &others, |name| is_built_in(attempt, name) || is_of_workspace(attempt, own, name))
}

/// Returns the descriptions of the skills of other arms, by name: no request of the agent to its model may hold one. A
/// short description is left out, because it may occur by chance.
pub(super) fn must_not_be_offered(attempt: &Attempt) -> Vec<(String, String)> {
    const LEAST: usize = 24;
    let is_own = |name: &str| attempt.case.overlay.skills.iter().any(|skill| skill.name == name);
    let others = attempt.skills_of_arms.iter().flat_map(|skills| skills.iter()).filter(|skill| !is_own(&skill.name));
    let described = others.filter_map(|skill| {
        let text = skill.description.as_deref()?.trim();
        // Agents escape and wrap the text in ways of their own, but not its beginning.
        let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | ',' | '.' | '-');
        let end = text.find(|c| !plain(c)).unwrap_or(text.len());
        let beginning = first_chars(&text[..end], 60).trim_end();
        (beginning.len() >= LEAST).then(|| (skill.name.clone(), beginning.to_owned()))
    });
    described.collect()
}

/// Returns the error of a trial whose agent offered these skills of other arms to its model.
pub(super) fn offered(names: &BTreeSet<String>) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    (!quoted.is_empty()).then(|| format!("the agent offers its model skills of another arm: {}", quoted.join(", ")))
}

fn compare(
    listed: &BTreeSet<String>,
    laid: &BTreeSet<&str>,
    others: &BTreeSet<&str>,
    is_known: impl Fn(&str) -> bool,
) -> Loaded {
    let missing: Vec<&str> = laid.iter().filter(|name| !listed.contains(**name)).copied().collect();
    // Whatever its origin, the arm has what only another one should have.
    let foreign: Vec<&str> = others.iter().filter(|name| listed.contains(**name)).copied().collect();
    let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let wrong = match (missing.is_empty(), foreign.is_empty()) {
        (true, true) => None,
        (false, _) => Some(format!("the agent does not list skills that were laid for it: {}", quoted(&missing))),
        (true, false) => Some(format!("the agent lists skills of another arm: {}", quoted(&foreign))),
    };
    let is_expected = |name: &str| laid.contains(name) || others.contains(name) || is_known(name);
    let unexpected = listed.iter().filter(|name| !is_expected(name)).cloned().collect();
    Loaded { wrong, unexpected, not_shown: false }
}

fn is_built_in(attempt: &Attempt, name: &str) -> bool {
    attempt.manifest.skills.iter().flat_map(|skills| &skills.built_in).any(|glob| glob.is_match(name))
}

fn is_of_workspace(attempt: &Attempt, own: &Path, name: &str) -> bool {
    let laid = attempt.case.overlay.skills.iter().any(|skill| skill.name == name);
    let folder = attempt.manifest.skills.as_ref().and_then(|skills| skills.project.as_ref());
    !laid && folder.is_some_and(|folder| fs::symlink_metadata(own.join(folder).join(name)).is_ok())
}

/// Returns the skills that the agent lists, if it lists any.
fn listed(attempt: &Attempt, wire: &Path) -> Option<BTreeSet<String>> {
    let file = regular::open(wire).ok()?;
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let lines = lines.filter_map(|line| serde_json::from_str::<WireLine>(&line).ok());
    let received = lines.filter(|line| line.dir == Dir::Recv).take(MOST_LINES);
    let values = received.filter_map(|line| serde_json::from_str::<Value>(&line.line).ok());
    let lists: Vec<_> = values.filter_map(|value| adapter::skills_listed(&attempt.manifest, &value)).collect();
    (!lists.is_empty()).then(|| lists.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_and_what_is_of_another_arm_is_wrong_and_the_rest_is_unexpected() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let of = |listed: &[&str], laid: &[&'static str], others: &[&'static str]| {
            let (laid, others) = (laid.iter().copied().collect(), others.iter().copied().collect());
            compare(&set(listed), &laid, &others, |name| name == "own")
        };
        assert_eq!(of(&["own", "a"], &["a"], &["b"]), Loaded::default());
        assert_eq!(
            of(&["own"], &["a"], &[]).wrong.unwrap(),
            "the agent does not list skills that were laid for it: `a`"
        );
        assert_eq!(of(&["b"], &[], &["b"]).wrong.unwrap(), "the agent lists skills of another arm: `b`");
        assert_eq!(of(&["a", "x", "own"], &["a"], &[]).unexpected, ["x"]);
    }
}

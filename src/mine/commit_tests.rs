//! Decides from the outcomes before and after a commit which tests a case rests on. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::grader::test_run::Status;

/// The outcome of each test in one run.
pub type Outcomes = BTreeMap<String, Status>;

/// The tests of a commit by their outcomes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitTests {
    /// Tests that passed in no run before the commit, and in every run after it.
    pub fail_to_pass: Vec<String>,
    /// Tests that passed in every run.
    pub pass_to_pass: Vec<String>,
    /// Tests that did not have the same outcome in every run of a state, here or at another commit.
    pub flaky: Vec<String>,
    /// Tests that are in no list, because their names also select other tests.
    pub left_out: Vec<String>,
    /// Tests that are in no list, because they are in files of code, which an agent may change.
    pub unguarded: Vec<String>,
    /// The folder in which the tests ran, empty for the top. Absent if none ran.
    pub folder: Option<String>,
}

/// The tests that were flaky at any commit. Each belongs to the folder in which it ran: a test of another package may have the
/// same name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flaky(BTreeMap<Option<String>, BTreeSet<String>>);

impl Flaky {
    /// Adds the flaky tests of a commit. Without a folder, which states of earlier versions do not have, they belong to all
    /// folders.
    pub fn add(&mut self, folder: Option<&String>, tests: &[String]) {
        if !tests.is_empty() {
            self.0.entry(folder.cloned()).or_default().extend(tests.iter().cloned());
        }
    }

    /// Returns true if there are no tests.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a test that ran in a folder is flaky. A test without a folder may have run in any.
    pub fn has(&self, folder: Option<&String>, test: &str) -> bool {
        let is_there = |of: Option<&String>| of.is_none() || folder.is_none() || of == folder;
        self.0.iter().any(|(of, tests)| is_there(of.as_ref()) && tests.contains(test))
    }
}

impl CommitTests {
    /// Moves the tests that do not always have the same outcome at other commits to the flaky ones.
    pub fn without(mut self, flaky: &Flaky) -> Self {
        for list in [&mut self.fail_to_pass, &mut self.pass_to_pass] {
            self.flaky.extend(list.extract_if(.., |test| flaky.has(self.folder.as_ref(), test)));
        }
        self.flaky.sort();
        self
    }
}

/// Sorts the tests by their outcomes in the runs of both states. A test that was skipped or did not run has not passed.
pub fn sort(before: &[Outcomes], after: &[Outcomes]) -> CommitTests {
    let names: BTreeSet<&String> = before.iter().chain(after).flat_map(BTreeMap::keys).collect();
    let mut sorted = CommitTests::default();
    for name in names {
        let passes = |runs: &[Outcomes]| {
            let passed = runs.iter().filter(|run| run.get(name) == Some(&Status::Passed)).count();
            match passed {
                0 => Some(false),
                all if all == runs.len() => Some(true),
                _ => None,
            }
        };
        let list = match (passes(before), passes(after)) {
            (None, _) | (_, None) => &mut sorted.flaky,
            (Some(false), Some(true)) => &mut sorted.fail_to_pass,
            (Some(true), Some(true)) => &mut sorted.pass_to_pass,
            (_, Some(false)) => continue,
        };
        list.push(name.clone());
    }
    sorted
}

/// Returns the flaky tests that may depend on the commit: those that passed in no run before it, and in one after it.
pub fn depends(flaky: &[String], before: &[Outcomes], after: &[Outcomes]) -> Vec<String> {
    let passed = |runs: &[Outcomes], name: &String| runs.iter().any(|run| run.get(name) == Some(&Status::Passed));
    flaky.iter().filter(|name| !passed(before, name) && passed(after, name)).cloned().collect()
}

/// Returns true if each test that fails before and passes after only has another name: a test with the same last part
/// passed in each run before and is in no run after.
pub fn only_renames(fail_to_pass: &[String], before: &[Outcomes], after: &[Outcomes]) -> bool {
    let passed = |name: &String| before.iter().all(|run| run.get(name) == Some(&Status::Passed));
    let is_gone = |name: &String| !after.iter().any(|run| run.contains_key(name));
    let gone: BTreeSet<&str> = before
        .iter()
        .flat_map(BTreeMap::keys)
        .filter(|name| passed(name) && is_gone(name))
        .map(|name| last_part(name))
        .collect();
    !fail_to_pass.is_empty() && fail_to_pass.iter().all(|name| gone.contains(last_part(name)))
}

/// Returns the name of a test without its path, module or suite.
fn last_part(name: &str) -> &str {
    let split = name.rsplit_once("::").or_else(|| name.rsplit_once('.'));
    split.map(|(_, last)| last).filter(|last| !last.is_empty()).unwrap_or(name)
}

/// Returns true if more runs can show a test that fails before and passes after, or that it is flaky: a test that did not
/// pass before, and that ran after. Otherwise each test passed before, or never ran.
pub fn may_decide(before: &[Outcomes], after: &[Outcomes]) -> bool {
    let failed = |name: &String| before.iter().any(|run| run.get(name) != Some(&Status::Passed));
    after.iter().flat_map(BTreeMap::iter).any(|(name, status)| *status != Status::Skipped && failed(name))
}

/// Returns at most this many items, evenly spread over the list.
pub fn sample<T: Clone>(all: &[T], most: usize) -> Vec<T> {
    if all.len() <= most || most == 0 {
        return all.to_vec();
    }
    (0..most).filter_map(|n| all.get(n * all.len() / most)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Outcomes {
        let words = text.split_whitespace().map(|word| {
            let (name, outcome) = word.split_at(1);
            let status = match outcome {
                "+" => Status::Passed,
                "-" => Status::Failed,
                _ => Status::Skipped,
            };
            (name.to_owned(), status)
        });
        words.collect()
    }

    #[test]
    fn each_test_has_its_place() {
        // a: fixed, b: guards, c: absent before, d: broken by the commit, e: skipped after, f: skipped before, g: flaky
        // after, h: flaky before, i: absent after (renamed), j: fails in both.
        let before = ["a- b+ d+ e- f? g- h+ i+ j-", "a- b+ d+ e- f? g- h- i+ j-"].map(run);
        let after = ["a+ b+ c+ d- e? f+ g+ h+ j-", "a+ b+ c+ d- e? f+ g- h+ j-"].map(run);
        let sorted = sort(&before, &after);
        assert_eq!(sorted.fail_to_pass, ["a", "c", "f"]);
        assert_eq!(sorted.pass_to_pass, ["b"]);
        assert_eq!(sorted.flaky, ["g", "h"]);
        // The other one passes without the commit, too.
        assert_eq!(depends(&sorted.flaky, &before, &after), ["g"]);
    }

    #[test]
    fn a_test_that_is_flaky_elsewhere_decides_nothing() {
        let (here, other) = ("svc".to_owned(), "web".to_owned());
        let mut flaky = Flaky::default();
        flaky.add(Some(&here), &["b".to_owned()]);
        // States of earlier versions have no folders.
        flaky.add(None, &["c".to_owned()]);
        // A test of another package has the same name.
        flaky.add(Some(&other), &["a".to_owned()]);
        assert!(flaky.has(Some(&other), "a") && !flaky.has(Some(&here), "a") && flaky.has(None, "a"));
        let sorted = sort(&[run("a- b- c+")], &[run("a+ b+ c+")]);
        let sorted = CommitTests { folder: Some(here), ..sorted }.without(&flaky);
        assert_eq!((sorted.fail_to_pass, sorted.pass_to_pass), (vec!["a".to_owned()], vec![]));
        assert_eq!(sorted.flaky, ["b", "c"]);
    }

    #[test]
    fn tests_that_only_have_another_name_are_seen() {
        let run = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), Status::Passed)).collect::<Outcomes>();
        let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let before = [run(&["bin::tests::x", "bin::tests::y", "z"])];
        let after = [run(&["tests::x", "tests::y", "z"])];
        assert!(only_renames(&all(&["tests::x", "tests::y"]), &before, &after));
        // One is new, or the old one is there still.
        assert!(!only_renames(&all(&["tests::x", "tests::w"]), &before, &after));
        assert!(!only_renames(&all(&["a.z"]), &before, &after));
        assert!(!only_renames(&[], &before, &after));
    }

    #[test]
    fn more_runs_are_needed_only_if_they_can_decide() {
        for (before, after, may) in [
            ("a+ b+", "a+ b-", false),
            ("a+", "a+ b?", false),
            ("a-", "a+", true),
            ("a-", "a-", true),
            ("", "a+", true),
            ("a?", "a-", true),
        ] {
            assert_eq!(may_decide(&[run(before)], &[run(after)]), may, "{before} | {after}");
        }
    }

    #[test]
    fn a_sample_is_spread_evenly() {
        let all: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(sample(&all, 4), ["0", "2", "5", "7"]);
        assert_eq!(sample(&all, 10), all);
    }
}

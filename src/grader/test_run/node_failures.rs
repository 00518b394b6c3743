//! Decides whether a failure of `node --test` may be that of a suite which failed before all of its tests ran. The runner counts
//! suites apart from tests, but its reporters `spec` and `junit` show both in the same form.

use std::collections::{HashMap, VecDeque};

/// The reason if a failed test may be a suite without tests.
const FAILED_SUITE: &str = "a failed test may be a suite that failed before it defined its tests";
/// The reason if tests were cancelled.
const CANCELLED: &str = "tests were cancelled, perhaps because their suite failed before it defined all of its tests";

/// The runner's totals, all of whose numbers are those of tests except for `suites`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// The number of suites.
    pub suites: u64,
    /// The number of tests that failed, also of those with subtests. Suites are not counted.
    pub failed: u64,
    /// The number of tests that were cancelled, which `failed` does not contain.
    pub cancelled: u64,
}

/// The facts in the details of a failure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Details {
    has_frame_of_test: bool,
    has_frame_of_suite: bool,
    is_hook: bool,
    is_cancelled: bool,
    is_timeout: bool,
}

impl Details {
    /// Reads a failure in a report of JUnit, whose `type` states the kind of failure.
    pub fn of_junit(kind: &str, text: &str) -> Self {
        let mut details = Self::default();
        // The stack of the runner's own error comes first.
        text.split_once("cause:").map_or(text, |(_, cause)| cause).lines().for_each(|line| details.line(line));
        Self {
            is_hook: kind == "hookFailed",
            is_cancelled: kind == "cancelledByParent",
            is_timeout: kind == "testTimeoutFailure",
            ..details
        }
    }

    /// Takes a line of the details.
    pub fn line(&mut self, line: &str) {
        let line = line.trim();
        let call = line.strip_prefix("at ").map(|call| call.strip_prefix("async ").unwrap_or(call)).unwrap_or_default();
        let is_of_runner = call.contains(" (node:internal/test_runner/");
        self.has_frame_of_test |= call.starts_with("TestContext.") || (is_of_runner && call.starts_with("Test.run "));
        self.has_frame_of_suite |= is_of_runner && call.starts_with("new Suite ");
        self.is_hook |= is_of_runner && call.starts_with("TestHook.run ");
        let text = line.trim_start_matches(['\'', '"']);
        self.is_cancelled |= text.starts_with("test did not finish before its parent")
            || text.starts_with("Promise resolution is still pending");
        self.is_timeout |= text.starts_with("test timed out after ");
    }

    /// Returns true if only a test or a hook fails in this way, and not the body of a suite.
    fn is_of_test(self) -> bool {
        let is_in_test = self.has_frame_of_test && !self.has_frame_of_suite;
        is_in_test || self.is_hook || self.is_timeout || self.is_cancelled
    }
}

/// A failed test or suite.
#[derive(Debug, Clone, Default)]
struct Failure {
    depth: usize,
    name: String,
    /// True if the runner shows subtests of the test.
    is_group: bool,
    details: Details,
}

/// Failures, ordered by end: nested tests come before their suite.
#[derive(Debug, Default)]
pub struct Failures {
    all: Vec<Failure>,
    is_open: bool,
}

impl Failures {
    /// Adds a failure. The lines that follow are its details.
    pub fn add(&mut self, depth: usize, name: &str, is_group: bool) {
        self.all.push(Failure { depth, name: name.to_owned(), is_group, details: Details::default() });
        self.is_open = true;
    }

    /// Ends the details of the last failure.
    pub fn end(&mut self) {
        self.is_open = false;
    }

    /// Sets the details of the last failure.
    pub fn details(&mut self, details: Details) {
        if let Some(last) = self.all.last_mut() {
            last.details = details;
        }
    }

    /// Takes a line behind the last failure.
    pub fn line(&mut self, line: &str) {
        if let Some(last) = self.all.last_mut().filter(|_| self.is_open) {
            last.details.line(line);
        }
    }

    /// Takes the details of the section that repeats the failures, each with its name: newer versions of the runner write them
    /// there alone.
    pub fn repeat(&mut self, repeated: Vec<(String, Details)>) {
        let mut by_name: HashMap<String, VecDeque<Details>> = HashMap::new();
        for (name, details) in repeated {
            by_name.entry(name).or_default().push_back(details);
        }
        for failure in &mut self.all {
            let found = by_name.get_mut(&failure.name).and_then(VecDeque::pop_front);
            failure.details = found.unwrap_or(failure.details);
        }
    }

    /// Returns the reason why tests may not have run, if there is one.
    pub fn missing(&self, totals: Totals) -> Option<&'static str> {
        if self.has_failed_suite(totals) {
            Some(FAILED_SUITE)
        } else {
            (totals.cancelled > self.explained()).then_some(CANCELLED)
        }
    }

    /// Returns true if one of the failures may be a suite without tests. A test with subtests may hide it in the totals: the
    /// runner counts the test, of which the list has the failed subtests. Such a test contains no suites, so it does not hide
    /// one of its own subtests.
    fn has_failed_suite(&self, totals: Totals) -> bool {
        let groups = self.all.iter().filter(|failure| failure.is_group).count() as u64;
        let leaves = self.all.len() as u64 - groups;
        let counted = totals.failed.saturating_add(totals.cancelled);
        if totals.suites == 0 || leaves > counted {
            return totals.suites > 0;
        }
        // The depths of the groups around a failure, outermost first.
        let mut around: Vec<usize> = Vec::new();
        self.all.iter().rev().any(|failure| {
            while around.last().is_some_and(|depth| *depth >= failure.depth) {
                around.pop();
            }
            if failure.is_group {
                around.push(failure.depth);
                return false;
            }
            let others = groups.saturating_sub(around.len() as u64);
            others > counted - leaves && !failure.details.is_of_test()
        })
    }

    /// Returns the number of cancelled tests whose cancellation does not hide others: a hook of their suite failed, which runs
    /// after the suite defined its tests, or they took too long.
    fn explained(&self) -> u64 {
        let mut explained = 0;
        // The depths of cancelled tests and suites whose parent has not ended, with the number of tests.
        let mut waiting: Vec<(usize, u64)> = Vec::new();
        for Failure { depth, is_group, details, .. } in &self.all {
            let mut inside = u64::from(!is_group);
            while let Some((_, tests)) = waiting.pop_if(|(of_test, _)| *is_group && *of_test > *depth) {
                inside += tests;
            }
            if details.is_cancelled {
                waiting.push((*depth, inside));
            } else if (*is_group && details.is_hook) || (!is_group && details.is_timeout) {
                explained += inside;
            }
        }
        explained
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "at async Test.run (node:internal/test_runner/test:796:25)";
    const HOOK: &str = "at TestHook.run (node:internal/test_runner/test:1041:18)";
    const CANCEL: &str = "'test did not finish before its parent and was cancelled'";

    /// Returns the reason for failures, each with its depth, whether it is a group, and a line of its details.
    fn missing(failures: &[(usize, bool, &str)], totals: (u64, u64, u64)) -> Option<&'static str> {
        let mut all = Failures::default();
        for (depth, is_group, line) in failures {
            all.add(*depth, "a", *is_group);
            all.line(line);
        }
        let (suites, failed, cancelled) = totals;
        all.missing(Totals { suites, failed, cancelled })
    }

    #[test]
    fn a_suite_does_not_hide_behind_a_test_with_subtests() {
        let (leaf, group) = ((2, false, ""), (0, true, ""));
        for (failures, totals, expected) in [
            // A failed test in a suite; the same beside an empty suite.
            (vec![leaf, group], (1, 1, 0), false),
            (vec![leaf, group], (2, 1, 0), false),
            // More failures than the runner counts.
            (vec![(0, false, TEST), (0, false, "")], (1, 1, 0), true),
            (vec![(0, false, TEST), (0, false, "")], (0, 1, 0), false),
            // The group is a test that is counted, or a suite.
            (vec![leaf, group, (0, false, "Error: x")], (2, 2, 0), true),
            (vec![(2, false, TEST), group, (0, false, TEST)], (2, 2, 0), false),
            (vec![(2, false, TEST), group, (0, false, "'test timed out after 9ms'")], (2, 1, 1), false),
            (vec![(4, false, ""), (2, true, ""), group, leaf, group], (3, 2, 0), true),
            // The group is a test that failed itself.
            (vec![(0, false, "Error: x"), group], (1, 2, 0), false),
        ] {
            assert_eq!(missing(&failures, totals) == Some(FAILED_SUITE), expected, "{failures:?}");
        }
    }

    #[test]
    fn cancelled_tests_need_a_reason() {
        for (failures, cancelled, expected) in [
            (vec![(2, false, CANCEL), (0, true, "'str'")], 1, true),
            (vec![(2, false, CANCEL), (2, false, CANCEL), (0, true, HOOK)], 2, false),
            (vec![(4, false, CANCEL), (2, true, CANCEL), (0, true, HOOK)], 1, false),
            (vec![(2, false, CANCEL), (0, true, ""), (2, false, CANCEL), (0, true, HOOK)], 2, true),
            (vec![(0, false, "'test timed out after 9ms'")], 1, false),
            (vec![(0, false, CANCEL)], 1, true),
            (vec![], 1, true),
        ] {
            assert_eq!(missing(&failures, (0, 0, cancelled)) == Some(CANCELLED), expected, "{failures:?}");
        }
    }

    #[test]
    fn details_may_follow_at_the_end() {
        let mut all = Failures::default();
        all.add(2, "b", false);
        all.add(0, "s", true);
        let details = |line: &str| {
            let mut details = Details::default();
            details.line(line);
            details
        };
        all.repeat(vec![("b".to_owned(), details(CANCEL)), ("s".to_owned(), details(HOOK))]);
        assert_eq!(all.missing(Totals { suites: 1, failed: 0, cancelled: 1 }), None);
    }
}

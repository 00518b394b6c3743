//! Decides from the output of any test runner whether a test ran. Pure.

use super::report::{Report, number_before, sum_of, whole, without_colour};
use super::{ReadOutput, cargo, go, node, pytest, tap, unittest};

/// Words of lines about a run without tests, with the runners that write them. They begin a line, or follow a blank.
const NONE: [(&str, &str); 28] = [
    ("pytest", "no tests ran"),
    ("pytest", "collected 0 items"),
    ("unittest, lein", "Ran 0 tests"),
    ("unittest", "NO TESTS RAN"),
    ("jest, playwright", "No tests found"),
    ("ctest, flutter", "No tests were found"),
    ("ctest", "0 tests failed out of 0"),
    ("phpunit", "No tests executed"),
    ("phpunit", "Assertions: 0, Skipped: "),
    ("vitest, mocha", "No test files found"),
    ("dotnet", "No test is available"),
    ("dotnet", "No test matches the given testcase filter"),
    ("nextest", "0 tests run:"),
    ("rspec", "0 examples, 0 failures"),
    ("node", "# tests 0"),
    ("node", "\u{2139} tests 0"),
    ("make", "is up to date."),
    ("make", "Nothing to be done for"),
    ("mix", "There are no tests to run"),
    ("mix", "All tests have been excluded."),
    ("sbt", "No tests were executed"),
    ("sbt", "No tests to run for"),
    ("dart", "No tests ran."),
    ("dart", "All tests skipped."),
    ("zig", "All 0 tests passed."),
    ("gotestsum", "DONE 0 tests"),
    ("behave", "0 scenarios passed, 0 failed"),
    ("test-unit", "0 tests, 0 assertions"),
];

/// Returns whether a test ran, as the output of a command shows it: with a runner whose output `tests` reads, or by lines that are
/// known of others. Tests that were skipped did not run. Returns `None` if the output does not show it.
pub fn any_test_ran(output: &str) -> Option<bool> {
    let output = without_colour(output);
    let readers: [ReadOutput; 5] = [cargo::reader(""), pytest::read, unittest::read, go::read, node::read];
    let mut reports: Vec<Report> = readers.iter().map(|read| read(&output)).collect();
    reports.push(tap::read(&output));
    reports.retain(|report| !report.is_empty());
    // Lines such as `ok | 0 passed` look like tests of TAP, but have no plan, which is a problem.
    let is_whole = |report: &Report| report.totals.is_some() || report.problems.is_empty();
    let has_run = |report: &Report| {
        let counts = report.counts();
        counts.passed > 0 || counts.failed > 0
    };
    if reports.iter().any(|report| is_whole(report) && has_run(report)) {
        return Some(true);
    }
    let has_only_others = |report: &Report| !has_run(report) && (report.totals.is_some() || !report.tests().is_empty());
    shown_by_lines(&output).or_else(|| reports.iter().any(has_only_others).then_some(false))
}

/// Returns true if lines of an output show that no test ran: the runner found none, or skipped all.
pub(super) fn says_none(output: &str) -> bool {
    shown_by_lines(output) == Some(false)
}

type IsLine = fn(&str) -> bool;

/// Returns whether a test ran, as far as lines of known runners show it.
fn shown_by_lines(output: &str) -> Option<bool> {
    let lines = || output.lines().map(str::trim);
    let has_words =
        |line: &str| NONE.iter().any(|(_, none)| line.starts_with(none) || line.contains(&format!(" {none}")));
    // Whether a line has counts of tests, and whether it counts none that ran. Any program may print the words without a number.
    let rules: [(IsLine, IsLine); 15] = [
        // cargo
        (|line| line.starts_with("test result: "), |line| is_zero(number_before(line, "passed"))),
        // nextest
        (|line| line.starts_with("Summary ["), |line| is_zero(number_before(line, "passed"))),
        // go
        (
            |line| line.starts_with("ok  \t") || line.starts_with("ok \t") || line.starts_with("?   \t"),
            |line| line.ends_with("[no test files]") || line.ends_with("[no tests to run]"),
        ),
        // mocha
        (|line| of_mocha(line).is_some(), |line| is_zero(of_mocha(line))),
        // jest
        (
            |line| line.starts_with("Tests:") && number_before(line, "total").is_some(),
            |line| is_zero(number_before(line, "passed")),
        ),
        // pytest
        (
            |line| {
                let has_others = line.contains(" skipped") || line.contains(" deselected");
                has_others && line.contains(" in ") && line.ends_with(['s', '=', ')'])
            },
            |line| is_zero(number_before(line, "passed")),
        ),
        // node
        (|line| of_node(line).is_some(), |line| is_zero(of_node(line))),
        // vitest
        (|line| line.starts_with("Tests ") && line.ends_with(')'), |line| is_zero(number_before(line, "passed"))),
        // rspec
        (is_of_rspec, all_are_pending),
        // dotnet
        (
            |line| line.contains("Passed: ") && line.contains("Skipped: ") && line.contains("Total: "),
            |line| is_zero(number_after(line, "Passed: ")),
        ),
        // sbt: `[info] Passed: Total 3, Failed 0, Errors 0, Passed 3`
        (|line| line.contains("Passed: Total "), |line| is_zero(number_after(line, ", Passed "))),
        // deno: `ok | 3 passed (2 steps) | 0 failed (4ms)`
        (
            |line| line.starts_with("ok | ") && line.contains(" passed"),
            |line| {
                let steps = number_before(line, "steps").or_else(|| number_before(line, "step"));
                is_zero(number_after(line, "ok | ")) && is_zero(steps)
            },
        ),
        // minitest of `rake test`: `3 runs, 5 assertions, 0 failures, 0 errors, 0 skips`
        (
            |line| line.contains(" runs, ") && line.contains(" assertions, "),
            |line| number_before(line, "runs").unwrap_or(0) <= number_before(line, "skips").unwrap_or(0),
        ),
        // mix: `2 doctests, 3 tests, 0 failures, 1 skipped`
        (
            |line| {
                let begins = line.starts_with(|c: char| c.is_ascii_digit());
                let is_total = begins && OF_MIX.iter().any(|word| line.contains(&format!(" {word}, ")));
                is_total && line.contains(" failure") && !line.contains(" assertions")
            },
            |line| {
                let sum = |words: &[&str]| sum_of(words.iter().filter_map(|word| number_before(line, word)));
                sum(&OF_MIX) <= sum(&["excluded", "skipped"])
            },
        ),
        // swift, with both of its libraries
        (
            |line| {
                let has_total = line.contains(" test, with ") || line.contains(" tests, with ");
                line.starts_with("Executed ") && has_total || number_after(line, "Test run with ").is_some()
            },
            |line| {
                let all = number_after(line, "Test run with ").or_else(|| number_after(line, "Executed "));
                let skipped = number_after(line, " with ").filter(|_| line.contains(" skipped"));
                all.unwrap_or(0) <= skipped.unwrap_or(0)
            },
        ),
    ];
    // Several runners may have written to the output: one that ran a test outweighs those that ran none.
    let mut has_none = false;
    for (counts, counts_none) in rules {
        for line in lines().filter(|line| counts(line)) {
            if !counts_none(line) {
                return Some(true);
            }
            has_none = true;
        }
    }
    // Lines of their own for each count: ` 3 pass`, ` 0 fail` of bun; `Total tests: 3`, `Passed: 3` of dotnet with more details.
    let of_bun = |word: &str| lines().filter_map(|line| whole(line.strip_suffix(word)?)).max();
    let of_dotnet = |word: &str| lines().filter_map(|line| whole(line.strip_prefix(word)?.trim())).max();
    let of_both = [(of_bun(" fail"), of_bun(" pass")), (of_dotnet("Total tests: "), of_dotnet("Passed: "))];
    for passed in of_both.into_iter().filter_map(|(other, passed)| other.and(passed)) {
        if passed > 0 {
            return Some(true);
        }
        has_none = true;
    }
    if of_maven(output).any(|count| count > 0) {
        return Some(true);
    }
    has_none |= lines().any(has_words) || maven_ran_none(output) || gradle_found_none(output);
    // A plan of TAP, as of ava and bats: `1..0 # skip`. Any program may print such a line.
    let has_plan = lines().filter_map(plan).map(|count| count > 0).max();
    match has_none || all_of_unittest_were_skipped(output) {
        true => Some(false),
        false => has_plan,
    }
}

/// Words for the things that mix counts.
const OF_MIX: [&str; 6] = ["doctest", "doctests", "properties", "property", "test", "tests"];

/// Returns the number of planned tests in a line of TAP.
fn plan(line: &str) -> Option<u64> {
    line.strip_prefix("1..")?.split(' ').next()?.parse().ok()
}

fn number_after(line: &str, word: &str) -> Option<u64> {
    let rest = line.split_once(word)?.1.trim_start();
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

/// Returns true if a count is zero, or could not be read.
fn is_zero(count: Option<u64>) -> bool {
    count.unwrap_or(0) == 0
}

/// Returns the number of tests in a line of mocha: `3 passing (1ms)`.
fn of_mocha(line: &str) -> Option<u64> {
    let (count, rest) = line.split_once(" passing")?;
    whole(count).filter(|_| rest.is_empty() || rest.starts_with(" ("))
}

/// Returns the number of tests that passed in a line of node, or of another program with TAP: `# pass 3`.
fn of_node(line: &str) -> Option<u64> {
    let count = line.strip_prefix("\u{2139} pass ").or_else(|| line.strip_prefix("# pass "))?;
    whole(count.trim())
}

/// Returns true for `3 examples, 0 failures`.
fn is_of_rspec(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let [all, "example," | "examples,", failed, failures, ..] = words.as_slice() else { return false };
    whole(all).is_some() && whole(failed).is_some() && failures.starts_with("failure")
}

/// Returns true for `3 examples, 0 failures, 3 pending`.
fn all_are_pending(line: &str) -> bool {
    let number = |word: &str| {
        let before = line.split_once(word)?.0.trim_end();
        before.rsplit(' ').next()?.parse::<u64>().ok()
    };
    number("example").is_some_and(|all| all == number("pending").unwrap_or(0))
}

/// Returns true if Maven ran no test in any module: it skipped all, or found none.
fn maven_ran_none(output: &str) -> bool {
    let says_none =
        || output.lines().any(|line| line.contains("Tests are skipped.") || line.contains("No tests to run."));
    (of_maven(output).next().is_some() || says_none()) && of_maven(output).all(|count| count == 0)
}

/// Returns the number of tests that ran, of each line in which Maven counts them.
fn of_maven(output: &str) -> impl Iterator<Item = u64> {
    output.lines().filter(|line| line.contains("Tests run: ")).map(|line| {
        number_after(line, "Tests run: ").unwrap_or(0).saturating_sub(number_after(line, "Skipped: ").unwrap_or(0))
    })
}

/// Returns true if none of Gradle's tasks that run tests found a source: `> Task :app:test NO-SOURCE`. Other tasks, such as
/// `processResources`, often have none.
fn gradle_found_none(output: &str) -> bool {
    let mut outcomes = output.lines().filter_map(|line| {
        let task = line.trim();
        let task = task.strip_prefix("> Task ").unwrap_or(task).strip_prefix(':')?;
        let (path, outcome) = task.split_once(' ').unwrap_or((task, ""));
        let name = path.rsplit(':').next().unwrap_or(path);
        (name == "test" || name.ends_with("Test")).then_some(outcome)
    });
    outcomes.next().is_some_and(|first| first == "NO-SOURCE" && outcomes.all(|outcome| outcome == "NO-SOURCE"))
}

/// Returns true if `unittest` skipped every test that it ran.
fn all_of_unittest_were_skipped(output: &str) -> bool {
    let after = |start: &str| {
        let rest = output.lines().rev().find_map(|line| line.trim().strip_prefix(start))?;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().ok()
    };
    after("Ran ").is_some_and(|count| after("OK (skipped=") == Some(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_without_a_test_are_told_from_those_with_one() {
        for none in [
            "Ran 0 tests in 0.000s\n\nOK",
            "Ran 3 tests in 0.000s\n\nOK (skipped=3)",
            "===== no tests ran in 0.01s =====",
            "===== 3 skipped in 0.01s =====",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 4 filtered out",
            "Summary [ 0.001s] 0 tests run: 0 passed, 4 skipped",
            "ok  \tcalc\t0.001s [no tests to run]",
            "?   \tcalc\t[no test files]",
            "  0 passing (1ms)",
            "Tests:       3 skipped, 3 total",
            "No tests found, exiting with code 0",
            "make: 'test' is up to date.",
            "make: Nothing to be done for 'test'.",
            "# tests 0\n# pass 0",
            " Test Files  1 skipped (1)\n      Tests  3 skipped (3)",
            "\u{2139} tests 3\n\u{2139} pass 0\n\u{2139} fail 0\n\u{2139} skipped 3",
            "3 examples, 0 failures, 3 pending",
            "1 example, 0 failures, 1 pending",
            " 0 pass\n 0 fail",
            "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS",
            "[INFO] No tests to run.\n[INFO] BUILD SUCCESS",
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2",
            "NO TESTS RAN",
            "3 deselected in 0.01s",
            "\u{1b}[33m3 skipped\u{1b}[0m in 0.01s",
            "Skipped! - Failed: 0, Passed: 0, Skipped: 3, Total: 3",
            "running 0 tests from ./a_test.ts\n\nok | 0 passed | 0 failed | 3 filtered out (4ms)",
            "Finished in 0.001s, 0.0000 runs/s.\n\n0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
            "3 runs, 0 assertions, 0 failures, 0 errors, 3 skips",
            "There are no tests to run",
            "3 tests, 0 failures, 3 skipped",
            "Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds",
            "  1..0 # skip",
            "TAP version 13\n1..0\n# tests 0\n# pass 0",
            "100% tests passed, 0 tests failed out of 0",
            "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s",
            "> Task :a:test NO-SOURCE\n> Task :b:integrationTest NO-SOURCE",
            "2 doctests, 3 tests, 0 failures, 5 excluded",
            "[info] Passed: Total 0, Failed 0, Errors 0, Passed 0, Ignored 2\n[info] No tests were executed",
            "Total tests: 2\n     Passed: 0\n    Skipped: 2",
            // Lines of other programs that have words of counts.
            "Executed 2 migrations\ntest result: ok. 0 passed; 0 failed; 4 filtered out",
            "test result: see below\nRan 0 tests in 0.000s\n\nOK",
            "Executed setup script\nRan 0 tests in 0.000s\n\nOK",
            "Executed 5 hooks\n  0 passing (1ms)",
            "lint: passing (3 files)\nall passing\nRan 0 tests in 0.000s\n\nOK",
            "5 examples, see docs\nRan 0 tests in 0.000s\n\nOK",
            "1 pass\nno tests ran in 0.01s",
            "Passed: 3\nno tests ran in 0.01s",
            "ok | lint passed\nno tests ran in 0.01s",
            "# pass the build\nlint passed, 1 skipped in 3 files\nno tests ran in 0.01s",
            "all runs, no assertions, none\nno tests ran in 0.01s",
        ] {
            assert_eq!(any_test_ran(none), Some(false), "{none}");
        }
        for some in [
            "Ran 3 tests in 0.000s\n\nOK (skipped=1)",
            "===== 2 passed, 3 skipped in 0.01s =====",
            "2 passed in 0.01s",
            "test result: ok. 3 passed; 0 failed\n   Doc-tests calc\ntest result: ok. 0 passed; 0 failed",
            "Summary [ 0.001s] 10 tests run: 10 passed, 4 skipped",
            "ok  \tcalc\t0.001s\n?   \tcalc/cmd\t[no test files]",
            "  10 passing (1ms)",
            "Tests:       3 skipped, 7 passed, 10 total",
            "# tests 10\n# pass 10",
            " Test Files  1 passed (1)\n      Tests  1 passed | 2 skipped (3)",
            "\u{2139} tests 3\n\u{2139} pass 1\n\u{2139} skipped 2",
            "3 examples, 0 failures, 2 pending",
            "3 examples, 0 failures",
            " 10 pass\n 0 fail",
            "[INFO] No tests to run.\n[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 1",
            "2 passed, 3 deselected in 0.01s",
            "Passed! - Failed: 0, Passed: 3, Skipped: 0, Total: 3",
            "ok | 1 passed | 0 failed (4ms)",
            "3 runs, 5 assertions, 0 failures, 0 errors, 1 skips",
            "3 tests, 0 failures, 1 skipped",
            "Executed 0 tests, with 0 failures (0 unexpected)\nTest run with 5 tests passed after 0.001 seconds.",
            "1..2\nok 1 a\nok 2 b",
            // Another part of the same command ran none.
            "[info] No tests were executed\n[info] Passed: Total 3, Failed 0, Errors 0, Passed 3",
            "There are no tests to run\n==> core\n5 tests, 0 failures",
            "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n\n10 examples, 0 failures",
            "No test is available in B.dll.\nPassed! - Failed: 0, Passed: 3, Skipped: 0, Total: 3",
            "No test is available in B.dll.\nTotal tests: 3\n     Passed: 3",
            "make[1]: Nothing to be done for 'all'.\n10 examples, 0 failures",
            "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\nno tests ran in 0.01s",
            "3 doctests, 5 tests, 0 failures, 5 excluded",
            "1 doctest, 1 test, 0 failures, 1 skipped",
            "1 property, 0 failures",
            "ok | 0 passed (3 steps) | 0 failed (4ms)",
            "Executed 1 test, with 0 failures (0 unexpected) in 0.000 (0.000) seconds",
            "Executed 3 tests, with 1 test skipped and 0 failures (0 unexpected) in 0.000 (0.000) seconds",
            "  1 passing",
            "1 example, 0 failures",
            "# tests 3\n# pass  3",
        ] {
            assert_eq!(any_test_ran(some), Some(true), "{some}");
        }
        // The output of a runner that is not known.
        let gradle = "> Task :processResources NO-SOURCE\n> Task :a:test NO-SOURCE\n> Task :b:test\n\nBUILD SUCCESSFUL";
        for unknown in ["", "OK", "all good", "> Task :processResources NO-SOURCE\n> Task :test", gradle] {
            assert_eq!(any_test_ran(unknown), None, "{unknown}");
        }
    }
}

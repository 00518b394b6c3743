//! The result of a test runner: the tests, and the outcome of each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Read as _;
use std::path::Path;

use super::failed_files::FailedFiles;
use crate::reason_text::short;
use crate::regular;

/// The maximum number of comparisons of names that are patterns with other names. If there are more, none of these
/// names is used.
const MAX_NAME_COMPARISONS: usize = 10_000_000;

/// The maximum number of files with a failure that are looked at.
const MAX_FAILED_FILES: usize = 1000;

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The test did not run, or its failure was expected.
    Skipped,
    /// The test passed.
    Passed,
    /// The test failed.
    Failed,
}

/// A test with all of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The names, the fullest first.
    pub names: Vec<String>,
    /// The outcome.
    pub status: Status,
}

/// The numbers of tests, if the runner reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that did not run.
    pub skipped: u64,
}

impl Totals {
    /// Returns the sum of two runs.
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
        }
    }
}

/// The result of a test runner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    tests: Vec<Test>,
    /// Tests that consist of other tests, which alone are counted.
    suites: Vec<Test>,
    by_name: HashMap<String, usize>,
    /// The runner's own totals, if it shows them.
    pub totals: Option<Totals>,
    /// The number of failures that are shown with the name of a test, if a test may have several.
    pub named_failures: u64,
    /// The number of tests that may have passed besides those in the totals.
    pub perhaps_more: u64,
    /// The number of passes in the totals that may be further tries of a test.
    pub perhaps_fewer: u64,
    /// Problems besides single tests: a file that does not compile, a suite that could not be set up, an aborted run.
    pub problems: Vec<String>,
    /// Reasons why it is unknown whether all tests passed, although the report states no failure.
    pub doubts: Vec<String>,
    /// The number of suites without tests that are reported like tests that passed.
    pub empty_suites: u64,
    /// The number of problems that are programs which ended before their last test.
    pub early_ends: usize,
    /// The runner names only tests that failed, as `go test` without `-v`.
    pub names_only_failures: bool,
    /// The names of suites and tests are joined by blanks: `math adds`.
    pub joins_by_blanks: bool,
    /// The names of tests that passed or are still to be done, which the report does not tell apart.
    pub unclear: Vec<Vec<String>>,
    /// The files that passed as a whole, because `node --test` found no test in them or they ended before their tests.
    silent: Vec<String>,
    /// The names of tests that failed and may be files of `node --test` which could not be loaded.
    broken: Vec<String>,
    /// The descriptions of files and packages that have tests, of which none ran.
    without_tests: Vec<String>,
    /// The hidden files among `broken`.
    failed_files: FailedFiles,
}

impl Report {
    /// Adds a test. If a test is reported more than once, the worst outcome counts: a test can pass and then
    /// fail at its end.
    pub fn add(&mut self, names: Vec<String>, status: Status) {
        let Some(first) = names.first().cloned() else { return };
        match self.by_name.get(&first).and_then(|n| self.tests.get_mut(*n)) {
            Some(test) => test.status = test.status.max(status),
            None => {
                self.by_name.insert(first, self.tests.len());
                self.tests.push(Test { names, status });
            }
        }
    }

    /// Returns true if a test has this full name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Adds a try of a test. The worst outcome of its tries counts; a test of which a try was skipped did not pass.
    pub fn add_try(&mut self, names: Vec<String>, status: Status) {
        match names.first().and_then(|first| self.by_name.get(first)).and_then(|n| self.tests.get_mut(*n)) {
            Some(test) => test.status = worse(test.status, status),
            None => self.add(names, status),
        }
    }

    /// Notes a package of `go test` that passed, although its program ended without a result of its tests.
    pub fn note_package(&mut self, name: &str) {
        self.without_tests.push(format!("the package `{}`, which ended without an error", short(name, 120)));
    }

    /// Notes a test that is a file of `node --test` in which no test ran, or that may be one which could not be loaded. The
    /// runner names it by its whole path.
    pub fn note_file(&mut self, name: &str, status: Status) {
        let is_script = is_script(name);
        match status {
            Status::Passed if is_script && name.starts_with('/') => self.silent.push(name.to_owned()),
            Status::Failed if is_script => self.broken.push(name.to_owned()),
            _ => {}
        }
    }

    /// Returns the descriptions of the files and packages in which no test ran although they have some, as far as known.
    pub fn without_tests(&self) -> impl Iterator<Item = &str> {
        self.without_tests.iter().map(String::as_str)
    }

    /// Adds the tests and the problems of another report of the same run.
    pub fn add_report(&mut self, other: Report) {
        for test in other.tests {
            self.add_another(test.names, test.status);
        }
        self.problems.extend(other.problems);
        self.doubts.extend(other.doubts);
        self.unclear.extend(other.unclear);
        self.silent.extend(other.silent);
        self.broken.extend(other.broken);
        self.without_tests.extend(other.without_tests);
        self.empty_suites = self.empty_suites.saturating_add(other.empty_suites);
        self.joins_by_blanks |= other.joins_by_blanks;
    }

    /// Adds a test as a separate test, even if an earlier test has the same name.
    pub fn add_another(&mut self, names: Vec<String>, status: Status) {
        self.tests.push(Test { names, status });
    }

    /// Adds a test that consists of other tests. It may be listed, and is not counted.
    pub fn add_suite(&mut self, names: Vec<String>, status: Status) {
        self.suites.push(Test { names, status });
    }

    /// Returns the part of a test's name behind the last ` > `, if a test of the report has this short name and no name
    /// in the report contains ` > `.
    pub fn last_part_of<'a>(&self, wanted: &'a str) -> Option<&'a str> {
        let (_, last) = wanted.rsplit_once(" > ")?;
        let is_flat = self.tests.iter().all(|test| test.names.iter().all(|name| !name.contains(" > ")));
        (is_flat && self.tests.iter().any(|test| test.names.iter().any(|name| name == last))).then_some(last)
    }

    /// Returns true if the text contained nothing from a test runner.
    pub fn is_empty(&self) -> bool {
        let has_result = !self.tests.is_empty() || !self.without_tests.is_empty() || self.totals.is_some();
        !has_result && self.problems.is_empty()
    }

    /// Returns the named tests.
    pub fn tests(&self) -> &[Test] {
        &self.tests
    }

    /// Returns the numbers of tests: the runner's totals, but at least the number of named tests.
    pub fn counts(&self) -> Totals {
        let named = |status: Status| self.tests.iter().filter(|test| test.status == status).count() as u64;
        let sum = self.totals.unwrap_or_default();
        let passed = || named(Status::Passed).saturating_sub(self.empty_suites);
        Totals {
            passed: sum.passed.max(if self.totals.is_some() { 0 } else { passed() }),
            failed: sum.failed.max(named(Status::Failed)),
            skipped: sum.skipped.max(if self.totals.is_some() { 0 } else { named(Status::Skipped) }),
        }
    }

    /// Returns the outcome of each test by its full name, the worst one of tests that share the name, and the names that
    /// are left out because they, as patterns, also select another test.
    pub fn outcomes(&self) -> (BTreeMap<String, Status>, BTreeSet<String>) {
        let mut worst: HashMap<&str, Status> = HashMap::new();
        for test in &self.tests {
            for name in &test.names {
                worst.entry(name).and_modify(|known| *known = worse(*known, test.status)).or_insert(test.status);
            }
        }
        let patterns = worst.keys().filter(|name| name.contains('*')).count();
        let is_compared = patterns.saturating_mul(worst.len()) <= MAX_NAME_COMPARISONS;
        let is_plain = |name: &str| {
            !name.contains('*') || (is_compared && !worst.keys().any(|it| *it != name && is_like(name, it)))
        };
        // A test without a name cannot be listed.
        let full = self.tests.iter().filter_map(|test| test.names.first()).filter(|name| !name.trim().is_empty());
        let (plain, left_out): (BTreeSet<&String>, BTreeSet<&String>) = full.partition(|name| is_plain(name));
        let outcomes = plain.into_iter().filter_map(|name| Some((name.clone(), *worst.get(name.as_str())?)));
        (outcomes.collect(), left_out.into_iter().cloned().collect())
    }

    /// Returns the report with names relative to the folder in which the tests ran. Some runners name a test by the path of
    /// its file, and the folder differs from trial to trial.
    pub fn in_folder(mut self, folder: &Path) -> Self {
        let prefix = format!("{}/", folder.display());
        let silent = std::mem::take(&mut self.silent);
        let silent = silent.iter().filter(|path| path.starts_with(&prefix) && has_tests(Path::new(path)));
        for path in silent {
            let path = short(path, 120);
            self.without_tests.push(format!("`{path}`, which imports `node:test` and ended without an error"));
        }
        let broken: BTreeSet<String> = std::mem::take(&mut self.broken).into_iter().collect();
        let is_of_node = |name: &&String| match name.starts_with('/') {
            true => !name.starts_with(&prefix) || has_tests(Path::new(name)),
            // The title of a test may look like a path.
            false => folder.join(name).is_file() && has_tests(&folder.join(name)),
        };
        if let Some(name) = broken.iter().take(MAX_FAILED_FILES).find(is_of_node) {
            let name = short(name.strip_prefix(&prefix).unwrap_or(name), 120);
            self.incomplete(format!("the file `{name}` failed outside of its tests, so some of them may not have run"));
        }
        let inside = broken.iter().map(|name| name.strip_prefix(&prefix).unwrap_or(name).to_owned());
        self.broken = inside.collect();
        let is_absolute = |test: &Test| test.names.iter().any(|name| name.starts_with(&prefix));
        if !self.tests.iter().any(is_absolute) {
            return self;
        }
        self.by_name.clear();
        for (n, test) in self.tests.iter_mut().enumerate() {
            for name in &mut test.names {
                if let Some(inside) = name.strip_prefix(&prefix) {
                    *name = inside.to_owned();
                }
            }
            if let Some(first) = test.names.first() {
                self.by_name.entry(first.clone()).or_insert(n);
            }
        }
        self
    }

    /// Returns the report with the hidden files that failed outside of their tests. `hidden` is the folder of hidden files. The
    /// names of the report are relative to the folder of the tests.
    pub fn with_hidden(mut self, hidden: Option<&Path>) -> Self {
        self.failed_files = FailedFiles::of(hidden, &self.broken);
        self
    }

    /// Returns those names of tests that a file which failed outside of its tests has, too. `folder` is the one in which the tests
    /// ran.
    pub fn in_failed_files<'a>(&self, folder: &Path, names: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
        let failed = FailedFiles::of(Some(folder), &self.broken);
        names.filter(|name| failed.with_test(name).is_some()).cloned().collect()
    }

    /// Returns the hidden file that failed outside of its tests and has a test of this name: then the test that passed may be
    /// that of another file.
    pub fn failed_file_of(&self, wanted: &str) -> Option<&str> {
        self.failed_files.with_test(wanted)
    }

    /// Returns how many tests passed without being named.
    pub fn unnamed(&self) -> u64 {
        let named = self.tests.iter().filter(|test| test.status == Status::Passed).count() as u64;
        self.totals.map_or(0, |sum| sum.passed.saturating_add(self.perhaps_more).saturating_sub(named))
    }

    /// Returns how many tests failed without being named.
    pub fn unnamed_failures(&self) -> u64 {
        let named = self.tests.iter().filter(|test| test.status == Status::Failed).count() as u64;
        self.totals.map_or(0, |sum| sum.failed.saturating_sub(named.max(self.named_failures)))
    }

    /// Adds a contradiction: the report says that something failed or is missing, but no test shows it. If a test
    /// failed, the report is consistent, and nothing is added.
    pub fn contradiction(&mut self, problem: impl FnOnce() -> String) {
        if self.counts().failed == 0 {
            self.problems.push(problem());
        }
    }

    /// Adds a reason why the report may lack tests, although others failed: their file or suite could not be loaded or set up,
    /// or the run was stopped. The share of the tests that passed is unknown then.
    pub fn incomplete(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// Returns the tests that a name selects: by one of their names, however the runner joins the parts, or by
    /// a pattern in which `*` matches anything.
    pub fn named<'a>(&'a self, wanted: &str) -> Vec<&'a Test> {
        let exact: Vec<&Test> = self.tests.iter().filter(|test| test.names.iter().any(|name| name == wanted)).collect();
        if !exact.is_empty() {
            return exact;
        }
        let plain = plain(wanted);
        let fits = |test: &&Test| self.has_name_like(&test.names, wanted, &plain);
        let of = |tests: &'a [Test]| tests.iter().filter(fits).collect::<Vec<&Test>>();
        let found = [of(&self.tests), of(&self.suites)].into_iter().find(|found| !found.is_empty());
        found.unwrap_or_default()
    }

    /// Returns the tests that a listed name selects. A test does not satisfy two names: if another listed name is longer and ends
    /// with this one, its tests do not count for this one. A pattern selects each test that it matches.
    pub fn listed<'a>(&'a self, wanted: &str, listed: &Listed<'_>) -> Vec<&'a Test> {
        let mut found = self.named(wanted);
        if !found.is_empty() {
            let taken: Vec<&Test> = listed.longer_than(wanted).flat_map(|longer| self.named(longer)).collect();
            found.retain(|test| !taken.iter().any(|it| std::ptr::eq(*it, *test)));
        }
        found
    }

    /// Returns true if the report is complete and no test failed.
    pub fn is_all_well(&self) -> bool {
        self.problems.is_empty() && self.counts().failed == 0
    }

    /// Returns true if a listed name passes. With a report that lacks tests, the last part of a name does not: another test of
    /// this name may not have run. Neither does the name of a test in a hidden file that failed outside of its tests.
    pub fn passes(&self, wanted: &str, listed: &Listed<'_>) -> bool {
        let found = self.listed(wanted, listed);
        let has_passed = !found.is_empty() && found.iter().all(|test| test.status == Status::Passed);
        let is_another = || self.may_be_another(wanted, &found).is_some() || self.failed_file_of(wanted).is_some();
        has_passed && !self.is_unclear(wanted) && !is_another()
    }

    /// Returns the problem because of which tests that a name selects may not be all tests of this name: the name is the last
    /// part of their names, and the report lacks tests.
    pub fn may_be_another(&self, wanted: &str, found: &[&Test]) -> Option<&str> {
        let problem = self.problems.first()?;
        // The name of a test of jest-junit has its suites, and follows the class in the first name.
        let is_last_part =
            |test: &&Test| !self.joins_by_blanks && test.names.first().is_some_and(|whole| is_end_of(wanted, whole));
        (!wanted.contains('*') && found.iter().all(is_last_part)).then_some(problem.as_str())
    }

    /// Returns true if one of the names of a test is the wanted one, however its parts are joined, or matches it as a pattern.
    /// `plain` is the wanted name without the parts that differ between runners.
    fn has_name_like(&self, names: &[String], wanted: &str, plain: &str) -> bool {
        let with_blanks = self.joins_by_blanks.then(|| wanted.replace(" > ", " "));
        names.iter().any(|name| {
            self::plain(name) == plain || is_like(wanted, name) || with_blanks.as_ref().is_some_and(|it| it == name)
        })
    }

    /// Returns true if a name selects a test that passed or is still to be done.
    pub fn is_unclear(&self, wanted: &str) -> bool {
        let plain = plain(wanted);
        self.unclear.iter().any(|names| self.has_name_like(names, wanted, &plain))
    }

    /// Returns the name of a test that ends with a name, if no test has it: whether that test is meant is unknown. A test that
    /// another listed name selects is not meant.
    pub fn ending_with(&self, wanted: &str, listed: &Listed<'_>) -> Option<&str> {
        let taken: Vec<&Test> = listed.longer_than(wanted).flat_map(|longer| self.named(longer)).collect();
        let end = format!(".{}", plain(wanted));
        let blank = self.joins_by_blanks.then(|| format!(" {}", wanted.replace(" > ", " ")));
        let ends = |name: &&String| {
            let ends = plain(name).ends_with(&end) || blank.as_ref().is_some_and(|blank| name.ends_with(blank));
            !wanted.is_empty() && ends
        };
        // The names that a JUnit report builds with the class are longer than the runner's own.
        let size = |name: &&String| if self.joins_by_blanks { name.len() } else { 0 };
        let free = self.tests.iter().filter(|test| !taken.iter().any(|it| std::ptr::eq(*it, *test)));
        free.flat_map(|test| &test.names).filter(ends).min_by_key(size).map(String::as_str)
    }

    /// Returns the names that more than one test of the run has, or a test and a suite.
    pub fn shared(&self) -> BTreeSet<String> {
        let all = || self.tests.iter().chain(&self.suites);
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for whole in all().filter_map(|test| test.names.first()) {
            *seen.entry(whole).or_default() += 1;
        }
        let others = all().flat_map(|test| test.names.iter().skip(1).map(move |name| (test, name)));
        let is_whole_of_another = |(test, name): &(&Test, &String)| {
            let whole = test.names.first().map_or("", String::as_str);
            *name != whole && !is_end_of(name, whole) && seen.contains_key(name.as_str())
        };
        let shared = others.filter(is_whole_of_another).map(|(_, name)| name.clone());
        let several = seen.iter().filter(|(_, count)| **count > 1).map(|(name, _)| (*name).to_owned());
        several.chain(shared).collect()
    }

    /// Returns the last parts of the names of tests and suites, each with the whole names.
    pub fn last_parts(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut parts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for names in self.tests.iter().chain(&self.suites).map(|test| &test.names) {
            let Some((whole, others)) = names.split_first() else { continue };
            for name in others.iter().filter(|name| is_end_of(name, whole)) {
                parts.entry(name.clone()).or_default().insert(whole.clone());
            }
        }
        parts
    }
}

/// The names that a grader lists, with the names that end with others.
#[derive(Debug, Default)]
pub struct Listed<'a> {
    /// The longer names by the end that is a listed name, too, in its plain form.
    longer: HashMap<String, Vec<&'a str>>,
}

impl<'a> Listed<'a> {
    /// Finds the listed names that end with another one.
    pub fn new(names: impl Iterator<Item = &'a String> + Clone) -> Self {
        let known: HashSet<String> = names.clone().map(|name| plain(name)).collect();
        let mut longer: HashMap<String, Vec<&'a str>> = HashMap::new();
        for name in names.filter(|name| !name.contains('*')) {
            let whole = plain(name);
            for (at, mark) in whole.match_indices(['.', ' ']) {
                let end = whole.get(at + mark.len()..).unwrap_or_default();
                if known.contains(end) {
                    longer.entry(end.to_owned()).or_default().push(name);
                }
            }
        }
        Self { longer }
    }

    /// Returns the longer listed names that end with a name. A pattern has none.
    pub fn longer_than(&self, name: &str) -> impl Iterator<Item = &'a str> {
        let found = if name.contains('*') { None } else { self.longer.get(&plain(name)) };
        found.into_iter().flatten().copied()
    }
}

/// Returns true if a longer name ends with a whole name: `math > adds` with `adds`.
fn is_end_of(name: &str, whole: &str) -> bool {
    let (name, whole) = (plain(name), plain(whole));
    whole.strip_suffix(&name).is_some_and(|start| start.ends_with('.'))
}

/// Returns true if a name ends like that of a file of JavaScript or TypeScript.
pub fn is_script(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["js", "cjs", "mjs", "ts", "cts", "mts", "jsx", "tsx"].contains(&extension)
}

/// Returns true if a name is that of a hook of mocha after whose failure tests do not run: `"before each" hook for "adds"`.
pub fn is_failed_hook(name: &str) -> bool {
    [r#""before all" hook"#, r#""before each" hook"#, r#""after each" hook"#].iter().any(|hook| name.contains(hook))
}

/// Returns the outcome of two tests that share a name. A test that was skipped did not pass.
fn worse(one: Status, other: Status) -> Status {
    let known = [Status::Failed, Status::Skipped];
    known.into_iter().find(|status| [one, other].contains(status)).unwrap_or(Status::Passed)
}

/// Returns a name without the parts that differ between runners: `tests/test_a.py::A::test_b` is
/// `tests.test_a.A.test_b`.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("./").unwrap_or(name);
    let joined = name.replace("::", ".").replace(" > ", ".").replace(['/', '\\', '#'], ".");
    [".py", ".js", ".ts", ".mjs", ".go"].iter().fold(joined, |name, end| name.replace(&format!("{end}."), "."))
}

/// Returns true if a name matches a pattern in which only `*` is special.
fn is_like(pattern: &str, name: &str) -> bool {
    if !pattern.contains('*') {
        return false;
    }
    let parts: Vec<&str> = pattern.split('*').collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in parts.iter().take(parts.len() - 1).skip(1) {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the number before a word, as in `3 passed`.
pub fn number_before(line: &str, word: &str) -> Option<u64> {
    before(line, word).and_then(whole)
}

/// Returns the word before another one.
fn before<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let words: Vec<&str> = line.split([' ', ',', ';', '(', ')', '=', '|']).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).map(|pair| pair[0])
}

/// Parses a count. A count that is too large for the type is the largest one, so that it is never less than another.
pub fn whole(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().or_else(|| is_digits.then_some(u64::MAX))
}

/// Returns the sum of counts that the code under test can print, so it may be too large for the type.
pub fn sum_of(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

/// Returns true if a word is written as a number, but is no count: `-1`, `1e3`, or too large for the type.
pub fn is_unreadable(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    digits.starts_with(|c: char| c.is_ascii_digit()) && word.parse::<u64>().is_err()
}

/// Returns the doubt about a line of totals if a number before one of the words is no count.
pub fn unreadable_before(line: &str, words: &[&str]) -> Option<String> {
    words.iter().filter_map(|word| before(line, word)).any(is_unreadable).then(|| unreadable(line))
}

/// Returns the doubt about a line of totals in which one of the words follows something that is no count, such as `x passed`.
/// Only for lines that nothing but the runner's totals can look like.
pub fn not_counted(line: &str, words: &[&str]) -> Option<String> {
    words
        .iter()
        .filter_map(|word| before(line, word))
        .any(|word| word.parse::<u64>().is_err())
        .then(|| unreadable(line))
}

/// Returns the doubt about totals that cannot be read.
pub fn unreadable(line: &str) -> String {
    format!("a number in its totals cannot be read: `{}`", short(line.trim(), 120))
}

/// Returns a text without colour escapes.
pub fn without_colour(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.peek() == Some(&'[') {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// The largest part of a file that is looked at, in bytes.
const LOOKED_AT: u64 = 1 << 20;

/// Returns true if a file has tests of `node --test`: it imports `node:test`. A helper beside the tests does not, and a
/// file whose assertions are not in tests counts by its exit code.
fn has_tests(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = regular::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut bytes));
    read.is_err() || memchr::memmem::find(&bytes, b"node:test").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_its_parts_are_joined() {
        let mut report = Report::default();
        report.add(vec!["tests.test_a.A.test_b".to_owned(), "test_b".to_owned()], Status::Passed);
        report.add(vec!["tests.test_c.test_b".to_owned(), "test_b".to_owned()], Status::Failed);
        for (wanted, found) in [
            ("tests/test_a.py::A::test_b", 1),
            ("test_b", 2),
            ("tests.test_a.*", 1),
            ("tests*test_b", 2),
            ("*", 2),
            ("tests.test_a", 0),
            ("test_", 0),
            ("*_c", 0),
        ] {
            assert_eq!(report.named(wanted).len(), found, "{wanted}");
        }
    }

    #[test]
    fn a_test_satisfies_one_listed_name() {
        let names = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<String>>();
        let mut report = Report::default();
        report.add_another(names("cli > empty, empty"), Status::Passed);
        report.add_another(names("cli > joins, joins"), Status::Passed);
        let passes = |report: &Report, wanted: &str, listed: &str| {
            let listed = names(listed);
            report.passes(wanted, &Listed::new(listed.iter()))
        };
        // The top-level test did not run.
        let both = "cli > empty, empty, joins, *ins";
        for (wanted, expected) in [("cli > empty", true), ("empty", false), ("joins", true), ("*ins", true)] {
            assert_eq!(passes(&report, wanted, both), expected, "{wanted}");
        }
        assert!(passes(&report, "empty", "empty"));
        let mut whole = report.clone();
        whole.add_another(names("empty, empty"), Status::Passed);
        assert!(passes(&whole, "empty", both));
        assert_eq!(whole.ending_with("empty", &Listed::new(names(both).iter())), None);
        // A test of the same last part may be in a file that was not loaded.
        report.incomplete("b.test.js was not loaded");
        assert!(!passes(&report, "empty", "empty"));
        assert!(passes(&report, "cli > empty", "empty") && passes(&report, "cli > *", "empty"));
    }

    #[test]
    fn names_that_several_tests_have_are_known() {
        let mut report = Report::default();
        for (names, status) in [
            (["empty", "empty"], Status::Passed),
            (["cli > empty", "empty"], Status::Passed),
            (["twice", "twice"], Status::Passed),
            (["twice", "twice"], Status::Failed),
            (["words", "words"], Status::Passed),
        ] {
            report.add_another(names.map(str::to_owned).to_vec(), status);
        }
        report.add_suite(vec!["words".to_owned(), "words".to_owned()], Status::Passed);
        assert_eq!(report.shared().into_iter().collect::<Vec<_>>(), ["twice", "words"]);
        let parts = report.last_parts();
        assert_eq!(parts.keys().collect::<Vec<_>>(), ["empty"]);
        assert_eq!(parts["empty"].iter().collect::<Vec<_>>(), ["cli > empty"]);
    }

    #[test]
    fn a_test_without_a_name_has_no_outcome_to_list() {
        let mut report = Report::default();
        report.add_another(vec![String::new()], Status::Passed);
        report.add_another(vec!["a".to_owned()], Status::Passed);
        assert_eq!(report.outcomes().0.into_keys().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn the_worst_that_is_told_of_a_test_counts() {
        let mut report = Report::default();
        report.add(vec!["a".to_owned()], Status::Passed);
        report.add(vec!["a".to_owned()], Status::Failed);
        report.add(vec!["a".to_owned()], Status::Passed);
        assert_eq!((report.counts().passed, report.counts().failed), (0, 1));
    }

    #[test]
    fn numbers_stand_before_words() {
        assert_eq!(number_before("=== 3 passed, 1 failed in 0.12s ===", "failed"), Some(1));
        assert_eq!(number_before("test result: ok. 3 passed; 0 failed", "passed"), Some(3));
        assert_eq!(number_before("passed 3", "passed"), None);
        assert_eq!(without_colour("\u{1b}[1;32mok\u{1b}[0m"), "ok");
    }
}

//! Decides whether the options and variables of a command change its meaning as a check. Only known options and
//! variables are accepted: `make -n`, `go test -c` and `PATH=./fake pytest` succeed without a check, and `jest -u`
//! overwrites the expected values. Pure.

use super::{is_assignment, itself};

/// Variables that change only the output or the speed.
const VARIABLES: [&str; 18] = [
    "CI",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "TERM",
    "LANG",
    "LC_ALL",
    "TZ",
    "COLUMNS",
    "CARGO_TERM_COLOR",
    "PYTHONPATH",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "NODE_ENV",
    "CGO_ENABLED",
    "RUST_TEST_THREADS",
];
/// Options of any runner that change only the output, the speed, or the selection of tests.
const ANYWHERE: [&str; 65] = [
    "-q",
    "-qq",
    "-v",
    "-vv",
    "-vvv",
    "-s",
    "-k",
    "-j",
    "-B",
    "-p",
    "-race",
    "-short",
    "-count",
    "-run",
    "-cover",
    "-timeout",
    "-json",
    "--",
    "-",
    "--quiet",
    "--verbose",
    "--silent",
    "--tb",
    "--maxfail",
    "--no-header",
    "--color",
    "--no-color",
    "--colors",
    "--durations",
    "--workspace",
    "--all",
    "--all-targets",
    "--all-features",
    "--features",
    "--no-default-features",
    "--release",
    "--locked",
    "--offline",
    "--frozen",
    "--lib",
    "--bins",
    "--bin",
    "--tests",
    "--doc",
    "--package",
    "--no-fail-fast",
    "--fail-fast",
    "--failfast",
    "--check",
    "--message-format",
    "--nocapture",
    "--show-output",
    "--test-threads",
    "--exact",
    "--run",
    "--ci",
    "--runInBand",
    "--coverage",
    "--no-coverage",
    "--testNamePattern",
    "--noEmit",
    "--strict",
    "--max-warnings",
    "--no-daemon",
    "--parallel",
];
/// Options that mean this only for some programs.
const OF_PROGRAMS: [(&[&str], &[&str]); 7] = [
    // Of other programs it leaves out a task.
    (&["pytest", "py.test", "python", "python3", "python2", "go", "nox", "sh", "bash", "zsh"], &["-x"]),
    (
        &["pytest", "py.test"],
        &["-n", "-m", "-ra", "-rA", "-rf", "-rs", "-rx", "-l", "--cov", "--no-cov", "--strict-markers"],
    ),
    (
        &["python", "python3", "python2"],
        &["-m", "-n", "-ra", "-rA", "-rf", "-b", "-c", "-W", "--cov", "--no-cov", "--pattern", "--start-directory"],
    ),
    (
        &["python", "python3", "coverage"],
        &["-m", "--source", "--branch", "--fail-under", "--show-missing", "--skip-covered"],
    ),
    (&["node", "tsx", "cargo"], &["--test", "--test-reporter", "-D", "-W"]),
    (&["sh", "bash", "zsh"], &["-e", "-u", "-eu", "-ex", "-eux", "-euo"]),
    (&["black", "prettier", "isort", "gofmt", "eslint", "ruff"], &["--diff", "--ext", "--no-cache", "-l"]),
];
/// Subcommands that only list tests or tasks, without running them.
const LISTS: [&str; 3] = ["list", "ls", "help"];

/// Programs that run the tasks of a project.
const RUN_TASKS: [&str; 10] = ["bun", "composer", "just", "make", "npm", "pnpm", "rake", "sbt", "task", "yarn"];
/// Parts of the names of tasks that write files or more: `lint:fix`.
pub(super) const WRITE: [&str; 9] =
    ["deploy", "drop", "fix", "format", "install", "migrate", "publish", "update", "write"];

/// Returns the first word of a simple command that may change what it checks.
pub fn unknown(words: &[String]) -> Option<&str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let own = itself(&words);
    let before = &words[..words.len() - own.len()];
    if let Some(word) = before.iter().copied().find(|word| is_assignment(word) && !is_known_variable(word)) {
        return Some(word);
    }
    let (program, rest) = own.split_first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    if name == "export" {
        return rest.iter().copied().find(|word| !is_known_variable(word));
    }
    if ["echo", "true", "pwd", "ls", "date"].contains(&name) {
        return None;
    }
    // Code on the command line is no check that anybody can read in a report.
    let is_program_text = |word: &str| word == "-c" && !rest.contains(&"-m");
    let writes = |word: &&str| word.split([':', '-', '_']).any(|part| WRITE.contains(&part));
    let mut tasks = rest.iter().copied().take_while(|word| *word != "--").filter(|word| !word.starts_with('-'));
    if let Some(task) = tasks.find(writes).filter(|_| RUN_TASKS.contains(&name)) {
        return Some(task);
    }
    rest.iter().copied().find(|word| {
        let is_unknown_option = word.starts_with('-') && (!is_known_option(name, word) || is_program_text(word));
        is_unknown_option || word.starts_with('+') || is_assignment(word) || LISTS.contains(word)
    })
}

/// Returns true if an assignment sets a variable that changes only the output or the speed.
pub(super) fn is_known_variable(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    let is_relative = !word.contains("=/") && !word.contains(":/");
    VARIABLES.contains(&name) && is_relative
}

fn is_known_option(program: &str, word: &str) -> bool {
    let option = word.split('=').next().unwrap_or(word);
    let has_number = option.strip_prefix("-j").or_else(|| option.strip_prefix("-n"));
    let of_program = OF_PROGRAMS.iter().filter(|(programs, _)| programs.contains(&program));
    // `pytest -xvs`
    let is_of_pytest = ["pytest", "py.test"].contains(&program)
        && option.strip_prefix('-').is_some_and(|letters| letters.chars().all(|c| "lqsvx".contains(c)));
    // `make -q` asks whether there is something to do.
    (ANYWHERE.contains(&option) && !(program == "make" && option == "-q"))
        || is_of_pytest
        || of_program.clone().any(|(_, options)| options.contains(&option))
        || has_number.is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown_in(line: &str) -> Option<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        unknown(&words).map(str::to_owned)
    }

    #[test]
    fn what_is_shown_and_which_tests_run_may_differ() {
        for line in [
            "pytest -q -x tests",
            "python3 -m unittest discover -s tests -v",
            "RUST_BACKTRACE=1 cargo test --workspace -- --nocapture",
            "cargo clippy --all-targets -- -D warnings",
            "go test -race ./...",
            "npm test",
            "npm run test:unit -- --ci",
            "make -j4 test",
            "uv run pytest -n 4 -k add",
            "timeout 60 sh -e check.sh",
            "node --test",
            "pytest -xvs",
            "pytest tests/fix",
            "npm test -- fix-total.test.js",
            "export CI=1",
        ] {
            assert_eq!(unknown_in(line), None, "{line}");
        }
    }

    #[test]
    fn what_checks_less_or_writes_is_not_known() {
        for line in [
            "make -i test",
            "make -n test",
            "make test -i",
            "make -q test",
            "make -t test",
            "make test SHELL=true",
            "pytest -h",
            "PYTEST_ADDOPTS=--co pytest",
            "ctest -N",
            "rspec --dry-run",
            "gradle test -m",
            "gradle test -x test",
            "./gradlew check -x test",
            "gradle build -x test",
            "swift test list",
            "phpunit --list-tests",
            "vitest list",
            "nox -l",
            "tox --notest",
            "go build -n",
            "go test -c",
            "go test -exec true ./...",
            "mvn test -DskipTests",
            "mvn -fn test",
            "ruff check --exit-zero",
            "jest --passWithNoTests",
            "npm test --if-present",
            "PATH=./fake pytest",
            "npm run lint -- --fix",
            "jest -u",
            "pytest --snapshot-update",
            "sh -n check.sh",
            "python3 -c pass",
            "export PATH=./fake",
            "dotnet test --list-tests",
            "pytest --deselect tests/test_a.py",
            "PYTHONPATH=/tmp/fake pytest",
            "npm run lint:fix",
            "make test install",
            "rake test db:drop",
        ] {
            assert!(unknown_in(line).is_some(), "{line}");
        }
    }
}

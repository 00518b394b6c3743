//! Failures that are no result of a check: the runner, its tools or its packages were missing, or it was called wrongly. Pure.

use super::commands::Check;
use crate::grader::test_run::any_test_ran;

/// The lines by which programs say that they could not check anything: the parts of a line, in their order and in lower case.
/// Errors of the code that is checked are not among them.
const MESSAGES: &[&[&str]] = &[
    // The network, and the machine.
    &["could not resolve host"],
    &["temporary failure in name resolution"],
    &["name or service not known"],
    &["no such host"],
    &["getaddrinfo enotfound"],
    &["getaddrinfo eai_again"],
    &["network is unreachable"],
    &["spurious network error"],
    &["no space left on device"],
    &["disk quota exceeded"],
    &["read-only file system"],
    &["cannot allocate memory"],
    &["cannot connect to the docker daemon"],
    &["permission denied while trying to connect to the docker daemon"],
    // Shells and programs that do not find another program, or find it ended.
    &["is not recognized as an internal or external command"],
    &["executable file not found in $path"],
    &["failed to spawn: "],
    &["make", "] error 126"],
    &["make", "] error 127"],
    &["make", "] error 137"],
    &["make", "] error 143"],
    &["npm err", " code 126"],
    &["npm err", " code 127"],
    // cargo and rustup
    &["could not find `cargo.toml`"],
    &["error: no such command: `"],
    &["error: no such subcommand: `"],
    &["linker `", "` not found"],
    &["error: toolchain '", "is not installed"],
    &["is not installed for the toolchain"],
    &["rustup could not choose a version"],
    &["the pkg-config command could not be found"],
    &["the system library `", "was not found"],
    // make, cmake, just, task, rake
    &["make: *** no targets specified and no makefile found"],
    &["no cmake_", "_compiler could be found"],
    &["no test configuration file found!"],
    &["error: no justfile found"],
    &["justfile does not contain recipe"],
    &["task: task \"", "does not exist"],
    &["task: no taskfile found"],
    &["don't know how to build task"],
    &["no rakefile found"],
    // npm, pnpm, yarn, bun, npx, deno, Playwright
    &["missing script: "],
    &["err_pnpm_no_script"],
    &["err_pnpm_no_importer_manifest_found"],
    &["couldn't find a script named"],
    &["error command \"", "not found"],
    &["couldn't find a package.json"],
    &["could not read package.json"],
    &["script not found \""],
    &["could not determine executable to run"],
    &["npm err", " network"],
    &["npm err", " code ebadengine"],
    &["error: task not found: "],
    &["executable doesn't exist at "],
    // go
    &["go.mod file not found"],
    &["cannot find main module"],
    &["toolchain not available"],
    &["(running go ", "gotoolchain=local)"],
    // Python
    &["internalerror> "],
    &["pytest: error: "],
    &["__main__.py: error: "],
    &["could not find a version that satisfies the requirement"],
    &["no matching distribution found for"],
    &["could not find a pyproject.toml"],
    &["no `pyproject.toml` found"],
    &["could not find python interpreter"],
    &["interpreternotfound"],
    // Java, .NET, PHP, Ruby
    &["could not resolve dependencies for project"],
    &["could not transfer artifact"],
    &["non-resolvable parent pom"],
    &["but there is no pom in this directory"],
    &["unknown lifecycle phase"],
    &["could not resolve all ", " for configuration"],
    &["task '", "' not found in "],
    &["does not contain a gradle build"],
    &["java_home is not set"],
    &["unable to locate a java runtime"],
    &["a compatible .net sdk was not found"],
    &["unable to load the service index"],
    &["could not open input file: "],
    &["could not find gem '"],
    &["bundler: command not found: "],
    &["in locally installed gems"],
];

/// Returns what shows that a failure has no result of a check: the line of a program, or an exit code. If a test ran, the failure is
/// a result. `output` is without colours.
pub(super) fn shown_by(check: &Check, exit_code: Option<i64>, output: &str, workspace: Option<&str>) -> Option<String> {
    // An error within pytest, a wrong call, and no test that was found. A `conftest.py` that cannot be imported is code.
    let is_of_conftest =
        output.contains("ImportError while loading conftest") && output.lines().map(str::trim).any(names_place);
    if let Some(code @ 3..=5) = exit_code
        && !(code == 4 && is_of_conftest)
        && check.programs.iter().any(|program| matches!(program.as_str(), "pytest" | "py.test"))
    {
        return Some(format!("exit code {code}"));
    }
    if any_test_ran(output) == Some(true) || output.lines().any(counts_failures) {
        return None;
    }
    let is_sign = |line: &&str| says_so(line) || spawned_tool(line, workspace);
    output.lines().map(str::trim).find(is_sign).map(str::to_owned)
}

/// Returns true if a line of Node says that it could not start a program that is not one of the workspace.
fn spawned_tool(line: &str, workspace: Option<&str>) -> bool {
    let program = line.split_once("spawn ").and_then(|(_, rest)| Some(rest.split_once(" ENOENT")?.0));
    let is_inside = |program: &str| workspace.is_some_and(|folder| program.starts_with(folder));
    program.is_some_and(|program| if program.starts_with('/') { !is_inside(program) } else { !program.contains('/') })
}

/// Returns the name of the module that a program did not find, if it is not given by its path.
pub(super) fn missing_module(output: &str) -> Option<String> {
    let quoted = output.lines().find_map(|line| {
        let starts = ["No module named ", "Cannot find module ", "Cannot find package "];
        starts.iter().find_map(|start| Some(line.split_once(*start)?.1))
    })?;
    let name: String = quoted.trim_start_matches(['\'', '"', '`']).chars().take_while(|c| !is_end(*c)).collect();
    let is_named = name.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '_'));
    (is_named && !name.starts_with("node:")).then_some(name)
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ';')
}

/// Returns true if a file may provide a module: a part of its path is a part of the module's name.
pub(super) fn may_provide(path: &str, module: &str) -> bool {
    let stem = |part: &str| part.split('.').next().unwrap_or(part).to_owned();
    let parts: Vec<String> = path.split('/').map(stem).collect();
    module.split(['.', '/']).any(|part| parts.iter().any(|known| known == part))
}

/// Returns true if the output of a failure shows a test that failed, or a place in a file.
pub(super) fn shows_failure(output: &str) -> bool {
    let is_failure = |line: &str| line.starts_with("FAIL") || line.starts_with("not ok ");
    let is_shown = |line: &str| counts_failures(line) || is_failure(line) || names_place(line);
    any_test_ran(output) == Some(true) || output.lines().map(str::trim).any(is_shown)
}

/// Returns true if a line names a line of a file: `src/a.rs:3:5`, `a.ts(3,5)`, `(file:///w/a.js:3:5)`, `File "a.py", line 3`.
fn names_place(line: &str) -> bool {
    let is_file = |text: &str| {
        let end = text.rsplit_once('.').map(|(_, end)| end);
        end.is_some_and(|end| end.starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    let is_place = |word: &str| {
        let word = word.trim_start_matches(['(', '[', '<', '"', '\'', '`']);
        let parts = word.strip_prefix("file://").unwrap_or(word).split_once([':', '(']);
        parts.is_some_and(|(file, place)| is_file(file) && place.starts_with(|c: char| c.is_ascii_digit()))
    };
    line.contains("\", line ") || line.split_whitespace().any(is_place)
}

/// Returns true if a line counts tests that failed: `2 failed`, `1 failing`, `Failures: 3`, `# fail 1`.
fn counts_failures(line: &str) -> bool {
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()).to_ascii_lowercase())
        .collect();
    let is_count = |word: &String| word.parse::<u64>().is_ok_and(|count| count > 0);
    let is_failure = |word: &String| matches!(word.as_str(), "failed" | "failing" | "failure" | "failures");
    words.windows(2).any(|pair| match pair {
        [one, other] => {
            (is_count(one) && is_failure(other)) || (matches!(one.as_str(), "failures" | "fail") && is_count(other))
        }
        _ => false,
    })
}

fn says_so(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let has_all = |parts: &[&str]| {
        let mut rest = line.as_str();
        parts.iter().all(|part| match rest.split_once(*part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        })
    };
    // A file that another one needs may be one of the work.
    let is_missing_rule = line.contains("no rule to make target") && !line.contains("needed by");
    is_missing_rule || MESSAGES.iter().any(|&parts| has_all(parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runner_that_could_not_run_is_told_from_a_check_that_failed() {
        for line in [
            "  failed to download from https://index.crates.io/: Could not resolve host",
            "error: linker `cc` not found",
            "npm error Missing script: \"test\"",
            "npm ERR! Missing script: \"test\"",
            "make: *** No rule to make target 'test'.  Stop.",
            "make: *** [Makefile:2: test] Error 127",
            "go: go.mod file not found in current directory or any parent directory; see 'go help modules'",
            "pytest: error: unrecognized arguments: --cov",
            "INTERNALERROR> OSError: [Errno 28] No space left on device",
            "error Command \"test\" not found.",
            "Task 'test' not found in root project 'calc'.",
        ] {
            assert!(says_so(line), "{line}");
        }
        for line in [
            "error[E0425]: cannot find value `x` in this scope",
            "error: could not compile `calc` (bin \"calc\") due to 1 previous error",
            "E   ModuleNotFoundError: No module named 'calc'",
            "make: *** No rule to make target 'calc.c', needed by 'calc.o'.  Stop.",
            "make: *** [Makefile:2: test] Error 1",
            "/usr/bin/ld: cannot find -lcalc: No such file or directory",
            "npm error code ELIFECYCLE",
            "calc.go:3:5: undefined: total",
            "AssertionError: 3 != 6",
            "tests/test_pytest_x.py:3: error: Incompatible types",
            "1 failed",
        ] {
            assert!(!says_so(line), "{line}");
        }
        for (line, expected) in [
            ("Tests:       1 failed, 3 passed, 4 total", true),
            ("  2 failing", true),
            ("Tests: 3, Assertions: 3, Failures: 1.", true),
            ("# fail 1", true),
            ("\u{2139} fail 2", true),
            ("# fail 0", false),
            ("Tests: 0 failed", false),
            ("error: failed to get `serde` as a dependency", false),
        ] {
            assert_eq!(counts_failures(line), expected, "{line}");
        }
        for (line, workspace, expected) in [
            ("Error: spawn jest ENOENT", None, true),
            ("Error: spawn /usr/bin/jest ENOENT", Some("/srv/calc"), true),
            ("Error: spawn /srv/calc/bin/calc ENOENT", Some("/srv/calc"), false),
            ("Error: spawn ./bin/calc ENOENT", None, false),
        ] {
            assert_eq!(spawned_tool(line, workspace), expected, "{line}");
        }
        for (line, expected) in [
            ("E   ModuleNotFoundError: No module named 'numpy.core'", Some("numpy.core")),
            ("Error: Cannot find module '@scope/a'", Some("@scope/a")),
            ("Error: Cannot find module './util'", None),
            ("no module", None),
        ] {
            assert_eq!(missing_module(line).as_deref(), expected, "{line}");
        }
        for (path, module, expected) in [
            ("calc/total.py", "calc.total", true),
            ("src/calc/__init__.py", "calc", true),
            ("README.md", "numpy", false),
        ] {
            assert_eq!(may_provide(path, module), expected, "{path}");
        }
        for (output, expected) in [
            ("  --> src/lib.rs:3:5", true),
            ("a.ts(3,5): error TS2304", true),
            ("  File \"a.py\", line 3", true),
            ("FAILED", true),
            ("not ok 1 - total", true),
            ("    at test (file:///w/test.mjs:3:5)", true),
            ("    at Object.<anonymous> (/w/test.js:3:5)", true),
            ("connection to 127.0.0.1:5432 failed", false),
            ("error: it did not work", false),
            ("at 10:30 the server stopped", false),
        ] {
            assert_eq!(shows_failure(output), expected, "{output}");
        }
    }
}

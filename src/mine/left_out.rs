//! Leaves tests out of a case that another correct patch cannot pass. Pure.

use std::collections::BTreeSet;

use super::change::Change;
use super::hunks;
use super::judgement::{Judged, judge};
use super::laboratory::Runs;
use super::runner::{Recipe, Runner};

/// Judges the runs of a commit. A test that was flaky at another commit decides nothing.
pub(super) fn judged(runs: &Runs, change: &Change, recipe: &Recipe, flaky: &BTreeSet<String>) -> Judged {
    let mut judged = judge(&runs.before, &runs.after).without(flaky);
    judged.left_out = runs.left_out.iter().cloned().collect();
    leave_out(&mut judged, change, recipe);
    judged
}

/// Returns true if a test is in this file, as far as its name shows.
fn is_in_file(runner: Runner, test: &str, path: &str) -> bool {
    use Runner::{Given, Node, Npm, Unittest, Vitest};
    if runner == Unittest {
        let module = path.strip_suffix(".py").map(|path| format!("{}.", path.replace('/', ".")));
        return module.is_some_and(|module| test.starts_with(&module));
    }
    let Some(rest) = test.strip_prefix(path) else { return false };
    let is_point = rest.starts_with('.');
    match runner {
        _ if rest.starts_with("::") => true,
        Vitest => is_point,
        // A suite, or a test, may have the name of a file.
        Given | Npm => is_point && path.contains('/'),
        Node => rest.is_empty(),
        _ => false,
    }
}

/// Leaves out tests that another correct patch cannot pass: tests that the patch itself adds beside the code, and tests
/// whose names depend on the lines of the code.
fn leave_out(judged: &mut Judged, change: &Change, recipe: &Recipe) {
    let mut patched = hunks::files(&change.patch);
    patched.retain(|path| !change.hidden.contains(path));
    judged.fail_to_pass.retain(|test| !patched.iter().any(|path| is_in_file(recipe.runner, test, path)));
    if recipe.runner != Runner::Cargo {
        return;
    }
    let patch = String::from_utf8_lossy(&change.patch);
    let added: Vec<&str> = patch.lines().filter_map(|line| line.strip_prefix('+')).collect();
    let defines = |line: &str, name: &str| line.contains(&format!("fn {name}("));
    let is_inline = |test: &str| {
        let name = test.rsplit("::").next().unwrap_or(test).split(' ').next().unwrap_or(test);
        let is_hidden = change.test_texts.iter().any(|(_, text)| defines(text, name));
        !is_hidden && added.iter().any(|line| defines(line, name))
    };
    // Tests in comments are named after their line.
    let is_placed = |test: &str| test.contains(" (line ");
    judged.fail_to_pass.retain(|test| !is_inline(test) && !is_placed(test));
    judged.pass_to_pass.retain(|test| !is_placed(test));
    judged.flaky.retain(|test| !is_placed(test));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_a_file_of_the_patch_are_left_out() {
        use Runner::{Given, Mocha, Pytest, Unittest, Vitest};
        for (runner, test, path, is_in) in [
            (Pytest, "tiny/a.py::tiny.a.add", "tiny/a.py", true),
            (Pytest, "tests/test_a.py::test_add", "tiny/a.py", false),
            (Vitest, "src/in.ts.tri", "src/in.ts", true),
            (Vitest, "src/in.tsx.tri", "src/in.ts", false),
            (Unittest, "tiny.a.Add.test_add", "tiny/a.py", true),
            (Given, "tiny/a.py::add", "tiny/a.py", true),
            // The name of a suite.
            (Mocha, "index.js.adds", "index.js", false),
            (Given, "index.js.adds", "index.js", false),
            (Given, "value", "value", false),
        ] {
            assert_eq!(is_in_file(runner, test, path), is_in, "{test} {path}");
        }
    }
}

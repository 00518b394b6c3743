//! The runners of Node projects: mocha, jest, vitest, `node --test`, and others by `npm test`.

use serde_json::{Map, Value};

use super::{REPORT, RESULTS_ALONE, Recipe, Runner, Step, TestFiles, Tree};
use crate::grader::test_run::Format;
use crate::text::shell_word;

/// The keys of `package.json` with packages to install.
const KINDS: [&str; 3] = ["dependencies", "devDependencies", "optionalDependencies"];
/// The options of every installation. Install scripts of packages are not run, because they are programs that the
/// project does not name.
const OPTIONS: &str = "--no-audit --no-fund --ignore-scripts";
/// The option of jest and vitest that measures no coverage. If a limit of the coverage were not reached, they would fail although
/// no test does.
const NO_COVERAGE: &str = "--coverage=false";
/// Options about reports and coverage with a value in the next word.
const WITH_VALUES: [&str; 11] = [
    "--collectCoverageFrom",
    "--coverageDirectory",
    "--coverageReporters",
    "--coverageThreshold",
    "--reporter",
    "--reporter-options",
    "--reporters",
    "--test-reporter",
    "--test-reporter-destination",
    "-O",
    "-R",
];
/// Beginnings of other options about reports and coverage.
const OF_REPORTS: [&str; 8] = [
    "--collect-coverage",
    "--collectCoverage",
    "--coverage",
    "--experimental-test-coverage",
    "--reporter",
    "--test-coverage",
    "--test-reporter",
    "-R=",
];

/// The runners that expand globs themselves, also `**`, which the shell does not know.
const EXPANDING: [&str; 2] = ["ava", "mocha"];

/// Returns the recipes for a repository with a `package.json`.
pub(super) fn recipes(tree: &Tree, parent: &Tree, _tests: &TestFiles<'_>) -> Vec<Recipe> {
    let read = |tree: &Tree| -> Option<Value> { serde_json::from_str(tree.text("package.json")?).ok() };
    let Some(package) = read(tree) else { return Vec::new() };
    let script = package.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let runs = runs(script, &package);
    // The set-up runs in the state before.
    let before = read(parent).unwrap_or(package);
    let setups = setups(&before, parent);
    let key: Vec<Option<&Value>> = KINDS.iter().map(|kind| before.get(kind)).collect();
    let key = format!("node {key:?}");
    let recipe = |(runner, run, format, report): &(Runner, String, Format, bool), setup: &Vec<Step>| Recipe {
        runner: *runner,
        folder: String::new(),
        setup: setup.clone(),
        run: run.clone(),
        format: *format,
        report: report.then(|| REPORT.to_owned()),
        needs: vec!["node".to_owned(), "npm".to_owned()],
        mounted: Vec::new(),
        keeps: vec!["node_modules".to_owned()],
        key: format!("{key} {setup:?}"),
    };
    runs.iter().flat_map(|run| setups.iter().map(|setup| recipe(run, setup))).collect()
}

/// Returns the ways to run the tests: the runner, the line, the format, and whether a report is written.
fn runs(script: &str, package: &Value) -> Vec<(Runner, String, Format, bool)> {
    let depends = |name: &str| KINDS.iter().any(|kind| package.get(kind).is_some_and(|it| it.get(name).is_some()));
    let is_missing = script.trim().is_empty() || script.contains("no test specified");
    let names = |name: &str| arguments(script, name).is_some() || (is_missing && depends(name));
    let rest = |name: &str| arguments(script, name).unwrap_or_default();
    let line = |name: &str, more: &str| {
        let words = [format!("node_modules/.bin/{name}"), rest(name), more.to_owned()];
        words.iter().filter(|word| !word.is_empty()).cloned().collect::<Vec<_>>().join(" ")
    };
    if names("vitest") {
        let rest = rest("vitest");
        let rest: Vec<&str> = rest.split(' ').filter(|word| !["--run", "run"].contains(word)).collect();
        let run = format!(
            "node_modules/.bin/vitest run --reporter=junit --outputFile={REPORT} {NO_COVERAGE} {}",
            rest.join(" ")
        );
        return vec![(Runner::Vitest, run.trim().to_owned(), Format::Junit, true)];
    }
    if names("jest") {
        // jest reports on standard error.
        return vec![(
            Runner::Jest,
            format!("{} 2>&1", line("jest", &format!("--ci --verbose {NO_COVERAGE}"))),
            Format::Node,
            false,
        )];
    }
    if names("mocha") {
        // The reporters for people do not name the suites of a test, so tests of the same name look the same. Mocha
        // writes the report at its end. Old versions write none.
        let report = format!("--reporter xunit --reporter-options output=/dev/fd/3 {RESULTS_ALONE}");
        return vec![
            (Runner::Mocha, line("mocha", &report), Format::Junit, false),
            (Runner::Mocha, line("mocha", "--reporter tap"), Format::Tap, false),
        ];
    }
    if script.contains("node --test") || script.contains("node:test") {
        let rest = arguments(script, "node").unwrap_or_default();
        let rest: Vec<&str> = rest.split(' ').filter(|word| *word != "--test").collect();
        let run = format!("node --test --test-reporter=tap {}", rest.join(" "));
        return vec![(Runner::Node, run.trim().to_owned(), Format::Tap, false)];
    }
    if names("ava") {
        return vec![(Runner::Npm, line("ava", "--tap"), Format::Tap, false)];
    }
    if is_missing { Vec::new() } else { vec![(Runner::Npm, "npm test --silent".to_owned(), Format::Auto, false)] }
}

/// Returns the arguments of a program in a script, without those for reports, for coverage and for watching. For `node --test`,
/// jest and vitest the shell expands the globs, as in `npm test`: jest and vitest take them for other patterns, and node
/// expands none before version 21.
fn arguments(script: &str, program: &str) -> Option<String> {
    let has_program = |part: &&str| part.split_whitespace().any(|word| is_program(word, program));
    let parts: Vec<&str> = script.split(['&', ';', '|']).filter(has_program).collect();
    // Another part with `node` starts another program.
    let of_tests = parts.iter().find(|part| program == "node" && part.split_whitespace().any(|word| word == "--test"));
    let part = of_tests.or(parts.first())?;
    let mut words = part.split_whitespace().skip_while(|word| !is_program(word, program)).skip(1);
    let mut kept = Vec::new();
    let has_globs = |word: &str| !EXPANDING.contains(&program) && is_bare_glob(word);
    while let Some(word) = words.next() {
        match word {
            _ if WITH_VALUES.contains(&word) => _ = words.next(),
            "--watch" | "-w" | "--verbose" | "--ci" | "-b" | "--bail" => {}
            _ if OF_REPORTS.iter().any(|start| word.starts_with(start)) => {}
            // No file becomes an option by its name.
            _ if has_globs(word) && word.starts_with(['*', '?', '[']) => kept.push(format!("./{word}")),
            _ if has_globs(word) => kept.push(word.to_owned()),
            _ => kept.push(shell_word(word.trim_matches(['"', '\'']))),
        }
    }
    Some(kept.join(" "))
}

/// Returns true for a glob without quotes and without other characters that mean something to the shell.
fn is_bare_glob(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@+%*?[]".contains(c);
    word.contains(['*', '?', '[']) && word.chars().all(is_plain)
}

fn is_program(word: &str, program: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name == program || name.strip_prefix('_') == Some(program) || name.strip_suffix(".js") == Some(program)
}

/// Returns the ways to install the packages, the most faithful one first.
fn setups(package: &Value, tree: &Tree) -> Vec<Vec<Step>> {
    let all = || KINDS.iter().filter_map(|kind| Some((*kind, package.get(kind)?.as_object()?)));
    let has_workspaces = package.get("workspaces").is_some_and(|it| !it.is_null());
    if all().all(|(_, packages)| packages.is_empty()) && !has_workspaces {
        return vec![Vec::new()];
    }
    // A folder of the repository. npm makes a link to it, as to a workspace.
    let is_folder =
        |spec: &str| spec.strip_prefix("file:").is_some_and(|path| !path.starts_with('/') && !path.contains(".."));
    let has_folders = all().flat_map(|(_, packages)| packages.values()).filter_map(Value::as_str).any(is_folder);
    // The links depend on the folders of each commit, and folders have packages of their own.
    let step = |line: String| if has_workspaces || has_folders { Step::each(line) } else { Step::once(line) };
    // Packages from elsewhere than a registry need more of the network than a registry, and old ones are often gone.
    let is_foreign = |spec: &Value| {
        let is_elsewhere = |spec: &str| spec.contains([':', '/']) && !spec.starts_with("npm:") && !is_folder(spec);
        spec.as_str().is_none_or(is_elsewhere)
    };
    let foreign = |packages: &Map<String, Value>| -> Vec<String> {
        packages.iter().filter(|(_, spec)| is_foreign(spec)).map(|(name, _)| name.clone()).collect()
    };
    let removed: Vec<String> = all()
        .flat_map(|(kind, packages)| {
            foreign(packages).into_iter().map(move |name| shell_word(&format!("{kind}[{name}]")))
        })
        .collect();
    let install = format!("npm install {OPTIONS} --no-package-lock --legacy-peer-deps");
    let without = |keys: &[String]| {
        step(format!(
            "cp -p package.json \"$HOME/package.json.kept\" && npm pkg delete {} && {install}; code=$?; \
             mv -f \"$HOME/package.json.kept\" package.json; exit $code",
            keys.join(" ")
        ))
    };
    let has_lock = tree.has("package-lock.json") || tree.has("npm-shrinkwrap.json");
    let mut ways = Vec::new();
    if removed.is_empty() {
        ways.extend(has_lock.then(|| vec![step(format!("npm ci {OPTIONS}"))]));
        ways.push(vec![step(install.clone())]);
    } else {
        ways.push(vec![without(&removed)]);
    }
    // npm refuses links that other programs make, such as `workspace:*`. The tests may need none of them.
    let is_installed = |spec: &Value| !is_foreign(spec) && !spec.as_str().is_some_and(is_folder);
    let has_packages = all().flat_map(|(_, packages)| packages.values()).any(is_installed);
    if has_packages && has_workspaces {
        ways.push(vec![without(&[removed, vec!["workspaces".to_owned()]].concat())]);
    } else if has_workspaces || has_folders {
        ways.extend((!has_packages).then(Vec::new));
    }
    ways
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_arguments_of_a_runner_are_kept_without_its_reporter() {
        for (script, kept) in [
            ("mocha", Some("")),
            (
                "nyc ./node_modules/.bin/_mocha --require should -R spec 'test/*.js'",
                Some("--require should 'test/*.js'"),
            ),
            ("eslint . && mocha --reporter=dot test", Some("test")),
            ("mocha --coverage --coverageReporters text --collectCoverage --coverageThreshold={} a", Some("a")),
            ("gulp", None),
        ] {
            assert_eq!(arguments(script, "mocha").as_deref(), kept, "{script}");
        }
    }

    #[test]
    fn the_shell_expands_the_globs_of_a_script_unless_they_are_quoted() {
        for (script, line) in [
            ("node --test test/*.test.js", "node --test --test-reporter=tap test/*.test.js"),
            ("node --test packages/*/test/*.test.js", "node --test --test-reporter=tap packages/*/test/*.test.js"),
            ("node --test 'test/*.test.js'", "node --test --test-reporter=tap 'test/*.test.js'"),
            ("node --test *.test.js", "node --test --test-reporter=tap ./*.test.js"),
            ("node --test test/$(ls)*.js", "node --test --test-reporter=tap 'test/$(ls)*.js'"),
            ("jest src/*.test.js", "node_modules/.bin/jest src/*.test.js --ci --verbose --coverage=false 2>&1"),
            ("ava test/**/*.js", "node_modules/.bin/ava 'test/**/*.js' --tap"),
            ("node scripts/check.js && node --test", "node --test --test-reporter=tap"),
            ("node a.js; node --test test/a.js && node b.js", "node --test --test-reporter=tap test/a.js"),
        ] {
            assert_eq!(runs(script, &json!({}))[0].1, line, "{script}");
        }
    }

    #[test]
    fn runners_measure_no_coverage_because_its_limits_would_decide() {
        for (script, line) in [
            ("jest --coverage", "node_modules/.bin/jest --ci --verbose --coverage=false 2>&1"),
            (
                "vitest run --coverage.enabled",
                "node_modules/.bin/vitest run --reporter=junit --outputFile=.evals-tests.xml --coverage=false",
            ),
            (
                "vitest --run test/runner --config runtime.config.ts",
                "node_modules/.bin/vitest run --reporter=junit --outputFile=.evals-tests.xml --coverage=false test/runner \
                 --config runtime.config.ts",
            ),
            ("c8 --check-coverage mocha", "node_modules/.bin/mocha --reporter xunit"),
            (
                "node --test --test-reporter spec --experimental-test-coverage --test-coverage-lines=100 test/a.js",
                "node --test --test-reporter=tap test/a.js",
            ),
        ] {
            let all = runs(script, &json!({}));
            assert!(all[0].1.starts_with(line), "{}", all[0].1);
        }
    }

    #[test]
    fn packages_from_elsewhere_are_left_out() {
        let package = json!({"dependencies": {"a": "^1.0.0"}, "devDependencies": {"b": "github:x/b", "c": "x/c", "d": "npm:e@1"}});
        let steps = setups(&package, &Tree::default());
        let line = &steps[0][0].line;
        assert!(line.contains("npm pkg delete 'devDependencies[b]' 'devDependencies[c]' && npm install"), "{line}");
        assert!(setups(&json!({"name": "x"}), &Tree::default())[0].is_empty());
    }

    #[test]
    fn folders_of_the_repository_are_linked_for_each_commit() {
        let with_packages = json!({"workspaces": {"packages": ["packages/*"]}, "devDependencies": {"a": "^1.0.0"}});
        for (package, is_empty) in [
            (json!({"workspaces": ["packages/*"]}), true),
            (with_packages, false),
            (json!({"devDependencies": {"checks": "file:packages/checks"}}), true),
        ] {
            let install = format!("npm install {OPTIONS} --no-package-lock --legacy-peer-deps");
            let found = setups(&package, &Tree::default());
            assert_eq!((found.len(), &found[0]), (2, &vec![Step::each(install)]), "{package}");
            // If npm cannot link the folders, the packages are installed without them.
            let is_without = |step: &Step| step.line.contains("npm pkg delete workspaces && npm install");
            assert_eq!((found[1].is_empty(), found[1].iter().any(is_without)), (is_empty, !is_empty), "{package}");
        }
        let package = json!({"devDependencies": {"checks": "file:../checks"}});
        assert!(setups(&package, &Tree::default())[0][0].line.contains("npm pkg delete"));
    }
}

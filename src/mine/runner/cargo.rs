//! `cargo test`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RESULTS_ALONE, Recipe, Runner, Step, TestFiles, Tree};
use crate::grader::test_run::Format;
use crate::text::shell_word;
use crate::values::PathGlob;

/// A command that makes the toolchains of rustup available in a private home. `~USER` is the home of the account, whatever
/// `HOME` is.
const TOOLCHAINS: &str = r#"rustup="$(eval echo "~$(id -un)")/.rustup"; [ ! -d "$rustup" ] || [ -e "$HOME/.rustup" ] || ln -s "$rustup" "$HOME/.rustup""#;

/// Returns the step without which a cargo of rustup finds no toolchain in a private home.
pub(super) fn toolchains() -> Step {
    Step::once(TOOLCHAINS)
}

/// Returns true if a program is started by rustup, if rustup is installed.
pub(super) fn is_of_rustup(program: &str) -> bool {
    ["cargo", "rustc", "rustup"].contains(&program)
}

/// The file with cargo's description of the programs that it built.
const TARGETS: &str = "${TMPDIR:-/tmp}/targets.json";

/// A command that runs a test program, and prints the outcomes that its harness wrote to a file, as TAP. Results that the
/// code under test prints are not in the file. A program without Rust's own harness may refuse the option; it names no
/// tests then.
///
/// A test is named after the file of its target, so that no other program can report it. The tests within a library or a
/// program are not run: the author of the code decides what these tests are. The plan counts the tests that the harness
/// began with, so that a program that the code under test ended early is incomplete.
const LOGGED: &str = r#"file=$(grep -F "/${1##*/}\"" "$MINED_TARGETS" | sed -n 's/.*"kind":\["test"\].*"src_path":"\([^"]*\)".*/\1/p' | head -n 1)
[ -n "$file" ] || exit 0
file=${file#"$MINED_ROOT/"}
log=$(mktemp) && out=$(mktemp) && "$@" --logfile "$log" >"$out" 3>&-; code=$?
cat "$out"
if [ -s "$log" ] || [ $code = 0 ]; then
all=$(sed -n 's/^running \([0-9][0-9]*\) tests\{0,1\}$/\1/p' "$out" | head -n 1)
lost=$((${all:-0} - $(wc -l <"$log")))
[ $lost -gt 0 ] || lost=0
while read -r word name; do case $word in
ok) printf 'ok - %s::%s\n' "$file" "$name";;
failed) printf 'not ok - %s::%s\n' "$file" "$name";;
ignored) printf 'ok - %s::%s # SKIP\n' "$file" "$name";;
esac; done <"$log" >"$out"
all=$(($(wc -l <"$out") + lost))
[ $all = 0 ] || { cat "$out"; echo "1..$all"; } >&3
else "$@" 3>&-; code=$?; fi
rm -f "$log" "$out"; exit $code"#;

/// Returns the recipes for a repository with a `Cargo.toml`.
pub(super) fn recipes(tree: &Tree, _parent: &Tree, _tests: &TestFiles<'_>) -> Vec<Recipe> {
    let Some(manifest) = tree.text("Cargo.toml") else { return Vec::new() };
    let members = if manifest.contains("[workspace]") { " --workspace" } else { "" };
    // A text of TOML has the escapes of JSON.
    let runner = format!("target.\"cfg(all())\".runner = {}", serde_json::json!(["sh", "-c", LOGGED, "evals"]));
    let cargo = format!(
        r#"CARGO_TARGET_DIR="${{TMPDIR:-/tmp}}/target" CARGO_PROFILE_DEV_DEBUG=0 cargo test --offline --no-fail-fast "$@"{members}"#
    );
    let build = format!(r#"{cargo} --no-run --message-format json-render-diagnostics >"{TARGETS}""#);
    vec![Recipe {
        runner: Runner::Cargo,
        folder: String::new(),
        setup: vec![toolchains(), Step::each("cargo fetch")],
        // Outside the workspace, where the agent could leave a build that cargo takes for its own. Each trial builds
        // everything, so nothing is built that only a debugger needs. Tests in comments are left out: their names
        // depend on their lines. The first command writes which programs are targets for tests. The tests within a library
        // are built, too, but not run: if they do not compile, the targets for tests alone are built. `--test` refuses a
        // target that needs a feature.
        run: format!(
            r#"{{ set -- --tests; {build} || {{ set -- {}; {build}; }}; }} && MINED_ROOT="$(pwd -P)" MINED_TARGETS="{TARGETS}" {cargo} --config {} {RESULTS_ALONE}"#,
            options_of_targets(tree),
            shell_word(&runner)
        ),
        format: Format::Tap,
        report: None,
        needs: vec!["cargo".to_owned(), "rustc".to_owned()],
        mounted: Vec::new(),
        keeps: Vec::new(),
        // cargo itself knows which parts of a build are out of date.
        key: "cargo".to_owned(),
    }]
}

/// Returns the options of cargo for the targets for tests alone: all of them, or the names of those that need no feature if one
/// does.
fn options_of_targets(tree: &Tree) -> String {
    let (all, refused) = targets(tree);
    let names: Vec<String> = all.difference(&refused).map(|name| format!("--test {}", shell_word(name))).collect();
    if refused.is_empty() || names.is_empty() { "'--test=*'".to_owned() } else { names.join(" ") }
}

/// Returns the names of the targets for tests of the package at the top and of the members of its workspace, and the names of
/// those that need a feature.
fn targets(tree: &Tree) -> (BTreeSet<String>, BTreeSet<String>) {
    let read = |path: &str| -> Option<Value> { tree.text(path).and_then(|text| toml::from_str(text).ok()) };
    let top = read("Cargo.toml").unwrap_or_default();
    let globs = |key: &str| -> Vec<PathGlob> {
        let all = top.pointer(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        all.filter_map(|glob| glob.trim_start_matches("./").trim_end_matches('/').parse().ok()).collect()
    };
    let (members, excluded) = (globs("/workspace/members"), globs("/workspace/exclude"));
    let is_member = |folder: &str| {
        let has = |globs: &[PathGlob]| globs.iter().any(|glob| glob.is_match(folder.trim_end_matches('/')));
        folder.is_empty() || (has(&members) && !has(&excluded))
    };
    let manifests = tree.texts.keys().filter_map(|path| path.strip_suffix("Cargo.toml"));
    let (mut all, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for folder in manifests.filter(|folder| (folder.is_empty() || folder.ends_with('/')) && is_member(folder)) {
        let Some(manifest) = read(&format!("{folder}Cargo.toml")) else { continue };
        let Some(package) = manifest.get("package") else { continue };
        let listed = manifest.get("test").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let on = default_features(&manifest);
        let of = |target: &Value, key: &str| target.get(key).and_then(Value::as_str).map(str::to_owned);
        if package.get("autotests").and_then(Value::as_bool) != Some(false) {
            let paths: Vec<String> = listed.iter().filter_map(|target| of(target, "path")).collect();
            let files = tree.files.iter().filter_map(|path| path.strip_prefix(folder));
            // A file that the manifest lists has the name there.
            let own = files.filter(|path| !paths.iter().any(|listed| listed.trim_start_matches("./") == *path));
            all.extend(own.filter_map(of_file).map(str::to_owned));
        }
        for target in listed {
            let Some(name) = of(target, "name") else { continue };
            let needs = target.get("required-features").and_then(Value::as_array);
            let is_off = |feature: &Value| feature.as_str().is_none_or(|name| !on.contains(name));
            if needs.is_some_and(|features| features.iter().any(is_off)) {
                refused.insert(name.clone());
            }
            if target.get("test").and_then(Value::as_bool) != Some(false) {
                all.insert(name);
            }
        }
    }
    (all, refused)
}

/// Returns the features of a package that are on unless they are turned off.
fn default_features(manifest: &Value) -> BTreeSet<&str> {
    let mut on = BTreeSet::new();
    let mut open = vec!["default"];
    while let Some(name) = open.pop() {
        if on.insert(name) {
            let more = manifest.get("features").and_then(|features| features.get(name)).and_then(Value::as_array);
            open.extend(more.into_iter().flatten().filter_map(Value::as_str));
        }
    }
    on
}

/// Returns the name of the target for tests that cargo takes a file of a package for: `tests/add.rs` or `tests/add/main.rs`.
fn of_file(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("tests/")?;
    let name = inside.strip_suffix("/main.rs").or_else(|| inside.strip_suffix(".rs"))?;
    (!name.is_empty() && !name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    /// Runs a program, as cargo does, and returns what the grader reads.
    fn logged(kind: &str, program: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("calc-0123");
        let described = format!(
            "{{\"target\":{{\"kind\":[\"{kind}\"],\"src_path\":\"/w/tests/calc.rs\"}},\"executable\":\"{}\"}}\n",
            path.display()
        );
        let targets = folder.path().join("targets.json");
        fs::write(&targets, described).unwrap();
        // The shell writes the program: a file that another thread of this process still has open cannot be started.
        let line = r#"printf '#!/bin/sh\n%s\n' "$TEXT" >"$PROGRAM" && chmod +x "$PROGRAM" && { sh -c "$LOGGED" evals "$PROGRAM"; } 3>&1 >&2"#;
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("LOGGED", LOGGED).env("PROGRAM", &path).env("TEXT", program);
        let done = command.env("MINED_TARGETS", &targets).env("MINED_ROOT", "/w").output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn a_test_is_named_after_its_target_and_a_program_that_ends_early_is_incomplete() {
        let whole =
            "echo; echo running 3 tests; printf 'ok adds\\nfailed deep::takes\\nignored slow\\n' >\"$2\"; exit 1";
        assert_eq!(
            logged("test", whole),
            "ok - tests/calc.rs::adds\nnot ok - tests/calc.rs::deep::takes\nok - tests/calc.rs::slow # SKIP\n1..3\n"
        );
        // Tests within a library are not run.
        assert_eq!(logged("lib", whole), "");
        let early = "echo; echo running 2 tests; echo running 1 test; echo 'ok adds' >\"$2\"";
        assert_eq!(logged("test", early), "ok - tests/calc.rs::adds\n1..2\n");
        assert_eq!(logged("test", "echo running 2 tests"), "1..2\n");
        // A program without a harness names no test.
        assert_eq!(logged("test", "echo ok"), "");
    }

    #[test]
    fn targets_that_need_a_feature_are_not_built_alone() {
        let feature = "[[test]]\nname = \"slow\"\nrequired-features = [\"slow\"]\n";
        let named = "[[test]]\nname = \"all\"\npath = \"tests/every.rs\"\n";
        let of = |manifest: &str, files: &[&str]| {
            let mut tree = Tree::for_test(&[("Cargo.toml", manifest)]);
            tree.files.extend(files.iter().map(|path| (*path).to_owned()));
            tree.files.insert("core/Cargo.toml".to_owned());
            tree.texts.insert("core/Cargo.toml".to_owned(), "[package]\nname = \"core\"\n".to_owned());
            options_of_targets(&tree)
        };
        let files = ["core/tests/deep.rs", "tests/add.rs", "tests/kit/mod.rs", "tests/slow.rs", "tests/take/main.rs"];
        let package = "[package]\nname = \"calc\"\n";
        assert_eq!(of(package, &files), "'--test=*'");
        assert_eq!(of(&format!("{package}{feature}"), &files), "--test add --test take");
        let workspace = "[workspace]\nmembers = [\"c*\"]\n";
        assert_eq!(of(&format!("{package}{workspace}{feature}"), &files), "--test add --test deep --test take");
        let every = [&files[..], &["tests/every.rs"]].concat();
        assert_eq!(of(&format!("{package}{feature}{named}"), &every), "--test add --test all --test take");
        let off = "autotests = false\n";
        assert_eq!(of(&format!("{package}{off}{feature}{named}"), &every), "--test all");
        assert_eq!(of(&format!("{package}{feature}"), &["tests/slow.rs"]), "'--test=*'");
        let on = "[features]\ndefault = [\"all\"]\nall = [\"slow\"]\nslow = []\n";
        assert_eq!(of(&format!("{package}{on}{feature}"), &files), "'--test=*'");
    }
}

//! `cargo test`.

use super::{RESULTS_ALONE, Recipe, Runner, Step, Tree, quoted};
use crate::grader::test_run::Format;

/// Makes the toolchains of rustup available in a private home. `~USER` is the home of the account, whatever `HOME` is.
const TOOLCHAINS: &str = r#"rustup="$(eval echo "~$(id -un)")/.rustup"; [ ! -d "$rustup" ] || [ -e "$HOME/.rustup" ] || ln -s "$rustup" "$HOME/.rustup""#;

/// Runs a test program, and prints the outcomes that its harness wrote to a file, as TAP. Results that the code under
/// test prints are not in the file. A program without Rust's own harness may refuse the option; it names no tests then.
const LOGGED: &str = r#"log=$(mktemp) && "$@" --logfile "$log" 3>&-; code=$?
if [ -s "$log" ] || [ $code = 0 ]; then
points=$(sed -n 's/^ok /ok - /p; s/^failed /not ok - /p; s/^ignored \(.*\)/ok - \1 # SKIP/p' "$log")
[ -z "$points" ] || printf '%s\n1..%s\n' "$points" "$(printf '%s\n' "$points" | wc -l)" >&3
else "$@" 3>&-; code=$?; fi
rm -f "$log"; exit $code"#;

/// Returns the recipes for a repository with a `Cargo.toml`.
pub(super) fn recipes(tree: &Tree, _parent: &Tree, _changed: &[&str]) -> Vec<Recipe> {
    let Some(manifest) = tree.text("Cargo.toml") else { return Vec::new() };
    let members = if manifest.contains("[workspace]") { " --workspace" } else { "" };
    // A text of TOML has the escapes of JSON.
    let runner = format!("target.\"cfg(all())\".runner = {}", serde_json::json!(["sh", "-c", LOGGED, "evals"]));
    vec![Recipe {
        runner: Runner::Cargo,
        setup: vec![Step::once(TOOLCHAINS), Step::each("cargo fetch")],
        // Outside the workspace, where the agent could leave a build that cargo takes for its own. Each trial builds
        // everything, so nothing is built that only a debugger needs. Tests in comments are left out: their names
        // depend on their lines.
        run: format!(
            r#"CARGO_TARGET_DIR="${{TMPDIR:-/tmp}}/target" CARGO_PROFILE_DEV_DEBUG=0 cargo test --offline --no-fail-fast --tests{members} --config {} {RESULTS_ALONE}"#,
            quoted(&runner)
        ),
        format: Format::Tap,
        report: None,
        needs: vec!["cargo".to_owned(), "rustc".to_owned()],
        keeps: Vec::new(),
        // cargo itself knows which parts of a build are out of date.
        key: "cargo".to_owned(),
    }]
}

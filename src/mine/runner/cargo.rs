//! `cargo test`.

use super::{Recipe, Runner, Step, Tree};
use crate::grader::test_run::Format;

/// Makes the toolchains of rustup available in a private home. `~USER` is the home of the account, whatever `HOME` is.
const TOOLCHAINS: &str = r#"rustup="$(eval echo "~$(id -un)")/.rustup"; [ ! -d "$rustup" ] || [ -e "$HOME/.rustup" ] || ln -s "$rustup" "$HOME/.rustup""#;

/// Returns the recipes for a repository with a `Cargo.toml`.
pub(super) fn recipes(tree: &Tree, _parent: &Tree, _changed: &[&str]) -> Vec<Recipe> {
    let Some(manifest) = tree.text("Cargo.toml") else { return Vec::new() };
    let members = if manifest.contains("[workspace]") { " --workspace" } else { "" };
    vec![Recipe {
        runner: Runner::Cargo,
        setup: vec![Step::once(TOOLCHAINS), Step::each("cargo fetch")],
        // Outside the workspace, where the agent could leave a build that cargo takes for its own. Each trial builds
        // everything, so nothing is built that only a debugger needs.
        run: format!(
            r#"CARGO_TARGET_DIR="${{TMPDIR:-/tmp}}/target" CARGO_PROFILE_DEV_DEBUG=0 cargo test --offline --no-fail-fast{members}"#
        ),
        format: Format::Cargo,
        report: None,
        needs: vec!["cargo".to_owned(), "rustc".to_owned()],
        keeps: Vec::new(),
        // cargo itself knows which parts of a build are out of date.
        key: "cargo".to_owned(),
    }]
}

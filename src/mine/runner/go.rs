//! `go test`.

use super::{Recipe, Runner, Step, TestFiles, Tree};
use crate::grader::test_run::Format;

/// Returns the recipes for a repository with a `go.mod`.
pub(super) fn recipes(tree: &Tree, _parent: &Tree, _tests: &TestFiles<'_>) -> Vec<Recipe> {
    if !tree.has("go.mod") {
        return Vec::new();
    }
    vec![Recipe {
        runner: Runner::Go,
        folder: String::new(),
        setup: vec![Step::each("go mod download")],
        // `-count=1` leaves out stored results.
        run: "go test -json -count=1 ./...".to_owned(),
        format: Format::Go,
        report: None,
        needs: vec!["go".to_owned()],
        mounted: Vec::new(),
        keeps: Vec::new(),
        key: "go".to_owned(),
    }]
}

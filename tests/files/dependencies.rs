//! What the tests add to the dependencies: nothing that has `cargo test` build those of `cargo run` again.

use std::collections::BTreeMap;
use std::process::Command;

/// The features of each package that a build with these kinds of dependencies has.
fn features(edges: &str) -> BTreeMap<String, String> {
    let mut tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}", "--edges", edges]);
    let out = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once('|'));
    lines.map(|(package, features)| (package.to_owned(), features.trim_end_matches(" (*)").to_owned())).collect()
}

#[test]
fn tests_use_the_dependencies_that_the_first_build_made() {
    let (program, tests) = (features("normal,build"), features("normal,build,dev"));
    assert!(program.len() > 100, "{} packages", program.len());
    for (package, features) in &program {
        assert_eq!(
            tests.get(package),
            Some(features),
            "{package} has other features in `cargo test` (adr/0042): right is what `cargo run` builds"
        );
    }
}

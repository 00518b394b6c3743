//! The schemas in `docs/schemas/` are those that the program prints, and the shipped files point at them.

use std::fs;
use std::path::{Path, PathBuf};

use evals::schema::{KINDS, schema};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_schemas_in_the_docs_are_the_programs_own() {
    for kind in KINDS {
        let path = root().join(format!("docs/schemas/{kind}.json"));
        let stored: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let message =
            format!("{}: make it again with `evals schema {kind} > docs/schemas/{kind}.json`", path.display());
        assert!(stored == schema(kind).unwrap(), "{message}");
    }
}

#[test]
fn every_shipped_case_and_grader_points_editors_at_its_schema() {
    let mut folders: Vec<PathBuf> = vec![root().join("cases"), root().join("graders")];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "fixtures" {
                folders.push(path);
            } else if name.ends_with(".yaml") && !name.ends_with(".demo.yaml") {
                let text = fs::read_to_string(&path).unwrap();
                let modeline = text.lines().next().unwrap();
                let schema = modeline.split("$schema=").nth(1).unwrap_or_else(|| panic!("{name} has no modeline"));
                assert!(path.parent().unwrap().join(schema).is_file(), "{}: {schema}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "{seen}");
}

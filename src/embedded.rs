//! Harnesses, graders and policies that are built into the program. A file of the same name in the working folder wins.

use include_dir::{Dir, include_dir};

static HARNESSES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/harnesses");
static GRADERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/graders");

static POLICIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/policies");

/// Where a file that is built in says it comes from.
pub const ORIGIN: &str = "built in";

/// The manifests that are built in: name and text, by name.
pub fn harnesses() -> Vec<(&'static str, &'static str)> {
    named(&HARNESSES)
}

/// The graders that are built in: name and text, by name.
pub fn graders() -> Vec<(&'static str, &'static str)> {
    named(&GRADERS)
}

/// The policies that are built in: name and text, by name.
pub fn policies() -> Vec<(&'static str, &'static str)> {
    named(&POLICIES)
}

fn named(folder: &Dir<'static>) -> Vec<(&'static str, &'static str)> {
    let mut files: Vec<_> = folder
        .files()
        .filter_map(|file| {
            let name = file.path().file_name()?.to_str()?.strip_suffix(".yaml")?;
            Some((name, file.contents_utf8()?))
        })
        .filter(|(name, _)| !name.contains('.'))
        .collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_is_built_in_can_be_read() {
        for folder in [&HARNESSES, &GRADERS, &POLICIES] {
            let yaml = folder.files().filter(|file| file.path().extension().is_some_and(|e| e == "yaml"));
            assert_eq!(named(folder).len(), yaml.count(), "a file is not UTF-8, or its name has a dot too many");
        }
    }
}

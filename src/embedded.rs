//! Built-in harnesses, graders and policies. A file of the same name in the working directory wins.

use include_dir::{Dir, include_dir};

static HARNESSES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/harnesses");
static GRADERS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/graders");

static POLICIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/policies");

/// The origin of built-in files.
pub const ORIGIN: &str = "built in";

/// Returns the built-in manifests, as name and text, sorted by name.
pub fn harnesses() -> Vec<(&'static str, &'static str)> {
    named(&HARNESSES)
}

/// Returns the built-in graders, as name and text, sorted by name.
pub fn graders() -> Vec<(&'static str, &'static str)> {
    named(&GRADERS)
}

/// Returns the built-in policies, as name and text, sorted by name.
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

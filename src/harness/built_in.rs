//! The manifests that are built into the program.

use std::path::Path;
use std::sync::LazyLock;

use super::Manifest;
use crate::{embedded, yaml};

/// Returns the built-in manifests.
pub fn built_in() -> &'static [Manifest] {
    static MANIFESTS: LazyLock<Vec<Manifest>> = LazyLock::new(|| {
        // The files are part of the program, and a test parses each of them.
        embedded::harnesses().into_iter().filter_map(|(name, text)| yaml::parse(Path::new(name), text).ok()).collect()
    });
    &MANIFESTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_that_is_built_in_can_be_read() {
        assert_eq!(built_in().len(), embedded::harnesses().len());
    }
}

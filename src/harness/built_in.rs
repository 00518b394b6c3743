//! The manifests that are built into `evals`. Each is parsed when it is first needed.

use std::path::Path;
use std::sync::{Arc, LazyLock, OnceLock};

use super::Manifest;
use super::catalog::{Entry, Origin};
use crate::{embedded, yaml};

/// Returns all built-in manifests, by name.
pub fn built_in() -> impl Iterator<Item = &'static Manifest> {
    files().iter().filter_map(File::manifest)
}

/// Returns the built-in manifest of this name.
pub fn named(name: &str) -> Option<&'static Manifest> {
    file(name)?.manifest()
}

/// Returns the built-in manifests whose text contains `part`, such as a key or a value. The others are not parsed.
pub fn containing(part: &str) -> impl Iterator<Item = &'static Manifest> {
    files_containing(part).filter_map(File::manifest)
}

/// Returns the built-in manifests of the agents that introduce themselves by this name. The others are not parsed.
pub fn introduced_as(name: &str) -> impl Iterator<Item = &'static Manifest> {
    let may_be =
        move |file: &&File| file.text.lines().any(|line| line.starts_with("agent-info:") && line.contains(name));
    let manifests = files().iter().filter(may_be).filter_map(File::manifest);
    manifests.filter(move |manifest| manifest.agent_info.as_deref() == Some(name))
}

/// A built-in manifest.
pub(super) struct File {
    /// The name of the file without its ending, which is the name of the harness.
    pub name: &'static str,
    text: &'static str,
    entry: OnceLock<Option<Entry>>,
}

impl File {
    /// Returns the entry of the catalog.
    pub fn entry(&self) -> Option<&Entry> {
        // The files are part of `evals`, and a test parses each of them.
        let parsed = || yaml::parse::<Manifest>(Path::new(self.name), self.text).ok();
        let entry = || Some(Entry { manifest: Arc::new(parsed()?), origin: Origin::BuiltIn });
        self.entry.get_or_init(entry).as_ref()
    }

    fn manifest(&'static self) -> Option<&'static Manifest> {
        self.entry().map(|entry| &*entry.manifest)
    }
}

/// Returns all built-in manifests, by name.
pub(super) fn files() -> &'static [File] {
    static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
        let file = |(name, text)| File { name, text, entry: OnceLock::new() };
        embedded::harnesses().into_iter().map(file).collect()
    });
    &FILES
}

/// Returns the built-in manifest of this name.
pub(super) fn file(name: &str) -> Option<&'static File> {
    let files = files();
    files.binary_search_by(|file| file.name.cmp(name)).ok().and_then(|at| files.get(at))
}

/// Returns the built-in manifests whose text contains `part`.
pub(super) fn files_containing(part: &str) -> impl Iterator<Item = &'static File> {
    let finder = memchr::memmem::Finder::new(part).into_owned();
    files().iter().filter(move |file| finder.find(file.text.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_that_is_built_in_can_be_read_and_has_the_name_of_its_file() {
        for file in files() {
            assert_eq!(file.manifest().map(|manifest| &*manifest.name), Some(file.name));
            assert_eq!(named(file.name).map(|manifest| &*manifest.name), Some(file.name));
        }
        for manifest in built_in().filter(|manifest| manifest.agent_info.is_some()) {
            let name = manifest.agent_info.as_deref().unwrap();
            let all: Vec<&str> =
                built_in().filter(|it| it.agent_info.as_deref() == Some(name)).map(|it| &*it.name).collect();
            assert_eq!(introduced_as(name).map(|it| &*it.name).collect::<Vec<_>>(), all);
        }
        assert_eq!(files().len(), embedded::harnesses().len());
        assert!(named("nobody").is_none());
    }

    #[test]
    fn a_prompt_that_begins_with_a_dash_is_not_read_as_an_option() {
        // `sh` and the demo agent take any word, and so does the option of Kimi. Droid was not tested.
        const OTHERS: [&str; 5] = ["command", "demo-stream", "demo-text", "droid-stream", "kimi-stream"];
        for manifest in built_in().filter(|manifest| !OTHERS.contains(&&*manifest.name)) {
            if ["- a list", "--version", "-"].iter().all(|prompt| manifest.gives_on_stdin(prompt)) {
                continue;
            }
            for command in [Some(&manifest.command), manifest.gateway.as_ref().map(|it| &it.command)] {
                let words = command.into_iter().flatten();
                let before = words.clone().zip(words.skip(1)).find(|(_, word)| word.starts_with("{prompt}"));
                assert!(before.is_none_or(|(before, _)| before == "--"), "{}", manifest.name);
            }
        }
    }
}

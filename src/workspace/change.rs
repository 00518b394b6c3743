//! What an agent changed in its workspace: which files, and the patch that says how.

/// The change between two states of a workspace; paths are relative to it, sorted, `/` between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Files that are new.
    pub created: Vec<String>,
    /// Files whose bytes, mode or target differ.
    pub changed: Vec<String>,
    /// Files that are gone.
    pub deleted: Vec<String>,
}

impl Change {
    /// Every path in it, with `created`, `changed` or `deleted`.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let created = self.created.iter().map(|path| (path.as_str(), "created"));
        let changed = self.changed.iter().map(|path| (path.as_str(), "changed"));
        let deleted = self.deleted.iter().map(|path| (path.as_str(), "deleted"));
        created.chain(changed).chain(deleted)
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

//! The repository and revision from which a workspace is checked out.

use std::path::PathBuf;

/// A checkout of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// The repository.
    pub repository: GitRepository,
    /// Commit, branch or tag. Default: the repository's HEAD.
    pub rev: Option<String>,
    /// Only this folder of it.
    pub subdir: Option<PathBuf>,
    /// The commit that `rev` named when the run began; absent if it was not resolved.
    pub commit: Option<String>,
}

impl GitSource {
    /// Returns true if `rev` is a whole commit, which names the same content for ever.
    pub fn is_fixed(&self) -> bool {
        let is_whole = |rev: &String| matches!(rev.len(), 40 | 64) && rev.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.rev.as_ref().is_some_and(is_whole)
    }

    /// What is checked out: the commit, or the revision if it was not resolved.
    pub fn revision(&self) -> Option<&str> {
        self.commit.as_deref().or(self.rev.as_deref())
    }
}

/// Where a repository is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitRepository {
    /// In a folder.
    Path(PathBuf),
    /// Elsewhere.
    Url(String),
}

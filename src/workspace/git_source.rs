//! The repository and revision from which a workspace is checked out.

use std::path::PathBuf;

use crate::trace::view;

/// A checkout of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GitSource {
    pub repository: GitRepository,
    /// Commit, branch or tag. Default: the repository's HEAD.
    pub rev: Option<String>,
    /// The folder of the repository to use. Absent: all of it.
    pub subdir: Option<PathBuf>,
    /// The commit that `rev` named when the run began; absent if it was not resolved.
    pub commit: Option<String>,
}

impl GitSource {
    /// Returns true if `rev` is a complete commit hash, which always names the same content.
    pub fn is_fixed(&self) -> bool {
        let is_whole = |rev: &String| matches!(rev.len(), 40 | 64) && rev.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.rev.as_ref().is_some_and(is_whole)
    }

    /// Returns the revision to check out: the commit, or `rev` if it was not resolved.
    pub fn revision(&self) -> Option<&str> {
        self.commit.as_deref().or(self.rev.as_deref())
    }
}

/// The location of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GitRepository {
    /// A folder.
    Path(PathBuf),
    Url(String),
}

impl GitRepository {
    /// Returns the path of a repository on this machine, which a URL may name, too.
    pub fn on_this_machine(&self) -> Option<PathBuf> {
        match self {
            GitRepository::Path(path) => Some(path.clone()),
            GitRepository::Url(url) => {
                Some(PathBuf::from(view::of_url(url).into_owned())).filter(|path| path.is_absolute())
            }
        }
    }
}

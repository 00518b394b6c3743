//! The parts of a trial that the commands of graders can change, besides the hidden files.

/// The parts of a trial that the commands of graders can change, besides the hidden files. `()` has none.
pub trait Surroundings: Sync {
    /// Returns why no grader can run commands, if that is so.
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// Returns why a failure of a grader's commands does not count, if the surroundings were changed before the first grader.
    fn doubt(&self) -> Option<String> {
        None
    }

    /// Restores what the commands of an earlier grader changed, before the next grader runs commands.
    ///
    /// # Errors
    /// Returns the reason if the state is unknown or cannot be restored: the next grader is ungraded then.
    fn restore(&self) -> Result<Renewed, String> {
        Ok(Renewed::default())
    }

    /// Returns true if a pass of a grader depends on files that its commands must not change.
    fn has_files(&self) -> bool {
        false
    }

    /// Looks at these files before any command of a grader.
    fn look(&self) {}

    /// Looks at these files again, after the commands at the beginning of the grader's line that set permissions or remove files.
    fn begin(&self) {}

    /// Handles the end of the commands of a grader. Returns why a pass of the grader does not count, if the commands changed files
    /// that [`Surroundings::begin`] looked at, or if files had been changed before.
    fn end(&self) -> Option<String> {
        None
    }
}

impl Surroundings for () {}

/// The changes of earlier graders that were undone before a grader runs its commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// True if the home of the graders was made again as setup left it.
    pub home: bool,
    /// The first protected file that was removed or put back.
    pub protected: Option<String>,
    /// The first path above the workspace that was removed or put back.
    pub above: Option<String>,
}

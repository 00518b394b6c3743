//! Plays a stored wire log instead of an agent: the same lines, without delays, in an empty workspace.

use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use super::Task;
use crate::regular;
use crate::session::Session;
use crate::trace::ErrorCategory;
use crate::wire::{Dir, EngineLine, Reader};

/// Plays the recording that the manifest names.
pub fn play(session: &mut Session, task: &Task) -> Duration {
    if let Some(path) = &task.recording
        && let Err(error) = play_file(session, path)
    {
        let message = format!("the recording {} could not be read: {error}", path.display());
        session.engine(&EngineLine::NotStarted { category: ErrorCategory::StartFailed, message });
    }
    Duration::ZERO
}

fn play_file(session: &mut Session, path: &Path) -> std::io::Result<()> {
    let mut reader = Reader::new(BufReader::new(regular::open(path)?));
    while let Some(line) = reader.next_line()? {
        // The recorded start line describes the recorded run, not this one.
        let start = line.dir == Dir::Engine && matches!(serde_json::from_str(&line.line), Ok(EngineLine::Start { .. }));
        if !start {
            session.replay(line);
        }
    }
    session.answered();
    Ok(())
}

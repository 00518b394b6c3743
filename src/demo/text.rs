//! The demo agent as a plain command: it prints only its last message.

use std::io::{self, Write};
use std::path::Path;

use super::play::{Call, Permission, Player, Stage};
use super::script::{PlanLine, Step};
use super::tools::{CallOutcome, Workspace};

/// Plays a turn in the current folder.
///
/// # Errors
/// Returns an error if the folder does not exist, or the reader has disconnected.
pub fn play(turn: Option<&[Step]>) -> io::Result<()> {
    let mut player = Player::new(Workspace::new(Path::new(&std::env::current_dir()?))?);
    match player.turn(turn, &mut Silence)?.last_message {
        Some(text) => writeln!(io::stdout(), "{text}"),
        None => Ok(()),
    }
}

struct Silence;

impl Stage for Silence {
    fn thought(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    fn say(&mut self, _text: &str) -> io::Result<()> {
        Ok(())
    }

    fn plan(&mut self, _plan: &[PlanLine]) -> io::Result<()> {
        Ok(())
    }

    fn announce(&mut self, _call: &Call) -> io::Result<()> {
        Ok(())
    }

    fn ask(&mut self, _call: &Call) -> io::Result<Permission> {
        Ok(Permission::Once)
    }

    fn begin(&mut self, _call: &Call) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, _call: &Call, _done: &CallOutcome) -> io::Result<()> {
        Ok(())
    }
}

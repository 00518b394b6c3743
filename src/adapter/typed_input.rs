//! Commands that read what an agent types into them, if the agent does not show what it types.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::command_line::{CommandLine, Dialect};
use crate::harness::Manifest;
use crate::text::first_bytes;
use crate::trace::recorder::{QuotedLine, Recorder, ResultReport};
use crate::trace::{CallStatus, NoticeCode, view};

/// The tool by which Codex types into a running command.
const TYPES: &str = "write_stdin";

/// The maximum number of open calls that are remembered.
const MAX_OPEN: usize = 10_000;

/// The exit code of a shell that did not find a program.
const NOT_FOUND: i64 = 127;

/// Texts in the output if git opened an editor on a terminal: its own message, and the beginning of a mode of the screen.
const OF_EDITOR: [&str; 2] = ["Waiting for your editor", "\u{1b}[?"];

/// The maximum bytes of a command in a notice.
const MAX_SHOWN: usize = 200;

/// Returns true if the manifest states that the agent does not show what it types into a running command.
pub(super) fn is_unshown(manifest: &Manifest) -> bool {
    manifest.unshown_tools.contains_key(TYPES)
}

/// The commands that wait for input which the agent does not show.
#[derive(Debug, Default)]
pub(super) struct TypedInput {
    /// The open calls that run such a command, by the agent's ids.
    open: BTreeMap<String, Waiting>,
}

/// A call whose command waits for input.
#[derive(Debug)]
struct Waiting {
    /// The command line, shortened.
    line: String,
    program: String,
    /// True if the command waits in an editor of git, and its output shows whether there was one.
    shows_editor: bool,
    announced: QuotedLine,
}

impl Waiting {
    /// Adds a notice: the agent may have used the command for an action that no call shows.
    fn tell(self, recorder: &mut Recorder) {
        let text = format!("the agent does not show what it types into `{}`", self.line);
        recorder.about(self.announced, |recorder| recorder.did_unseen(NoticeCode::UnshownAction, text));
    }

    /// Returns true if nothing was typed.
    fn read_nothing(&self, result: &ResultReport) -> bool {
        self.is_missing(result) || self.opened_no_editor(result)
    }

    /// Returns true if git opened no editor in which somebody can type: there was nothing to commit, or the environment names
    /// a program as the editor. On a terminal, without which nothing can be typed, git says that it waits.
    fn opened_no_editor(&self, result: &ResultReport) -> bool {
        let output = result.output.as_deref().unwrap_or_default();
        let is_shown = !output.trim().is_empty() && !result.truncated;
        self.shows_editor && is_shown && !OF_EDITOR.iter().any(|sign| output.contains(sign))
    }

    /// Returns true if the shell did not find the program.
    fn is_missing(&self, result: &ResultReport) -> bool {
        let output = result.output.as_deref().unwrap_or_default();
        let reports_it = ["command not found", "not found", "No such file or directory"]
            .iter()
            .any(|what| output.contains(&format!("{}: {what}", self.program)));
        result.exit_code == Some(NOT_FOUND) && reports_it && output.trim().lines().count() == 1
    }
}

impl TypedInput {
    /// Takes the input of a call that runs a command, and notes whether the command waits for input.
    pub(super) fn look_at(&mut self, id: &str, input: &Value, recorder: &mut Recorder) {
        if self.open.contains_key(id) {
            return;
        }
        for line in view::commands(input) {
            let read = CommandLine::read(&line, Dialect::Posix);
            let Some(command) = read.waiting_command() else { continue };
            let program = command.split(' ').next().unwrap_or_default().to_owned();
            let shows_editor = CommandLine::shows_editor(&line, command);
            let line = first_bytes(&line, MAX_SHOWN).to_owned();
            let waiting = Waiting { line, program, shows_editor, announced: recorder.this_line() };
            if self.open.len() >= MAX_OPEN {
                return waiting.tell(recorder);
            }
            self.open.insert(id.to_owned(), waiting);
            return;
        }
    }

    /// Takes the result of a call, before the recorder ends the call. A program that does not exist read nothing, and neither
    /// did an editor that git did not open.
    pub(super) fn result(&mut self, id: &str, result: &ResultReport) {
        if self.open.get(id).is_some_and(|waiting| waiting.read_nothing(result)) {
            self.open.remove(id);
        }
    }

    /// Takes the end of a call. A refused command read nothing.
    pub(super) fn ended(&mut self, id: &str, recorder: &mut Recorder) {
        let Some(waiting) = self.open.remove(id) else { return };
        if !matches!(recorder.ended_as(id), Some(CallStatus::Denied)) {
            waiting.tell(recorder);
        }
    }

    /// Takes the end of the session, with the calls that did not end before.
    pub(super) fn finish(&mut self, recorder: &mut Recorder) {
        while let Some((id, waiting)) = self.open.pop_first() {
            let is_refused = recorder.ended_as(&id) == Some(CallStatus::Denied)
                || recorder.call_in_progress(&id).is_some_and(|call| call.is_rejected);
            if !is_refused {
                waiting.tell(recorder);
            }
        }
    }
}

//! `evals snapshot review`: shows each difference on the terminal and reads a key for it.

use std::io::{self, IsTerminal, Read, Write};

use anstyle::Style;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{Decision, Selection, compared, decide};
use crate::cli::stop::INTERRUPTED;
use crate::cli::{CliError, terminal};
use crate::own_environment::in_ci;
use crate::report::text::{BOLD, DIM, GREEN, Look, harmless, one_line, plural, wrap};
use crate::report::{page, snapshots};
use crate::snapshot::compare::{Cell, Compared, State};
use crate::snapshot::diff::outline;
use crate::snapshot::form;

/// The maximum number of lines shown of a new snapshot.
const MAX_SHOWN_LINES: usize = 200;

/// The meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keypress {
    Accept,
    AcceptAll,
    Beside,
    Reject,
    Skip,
    Quit,
    Interrupt,
}

pub fn run(selection: &Selection) -> Result<u8, CliError> {
    if in_ci() {
        return Err(CliError::unreadable(
            "CI is set, so review asks nothing and writes nothing; compare with `evals snapshot check`",
        ));
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(CliError::unreadable(
            "review needs a terminal; see the differences with `evals snapshot check`, and decide with `evals \
             snapshot accept` or `reject`, with --only GLOB for single cells",
        ));
    }
    super::unreadable(selection)?;
    let all = compared(selection)?;
    let look = terminal::stdout_look();
    let open: Vec<_> =
        all.iter().zip(&selection.placed).filter(|(it, _)| it.differs && !it.rejected && it.trials > 0).collect();
    let mut out = io::stdout();
    let mut left = open.len();
    let mut accept_all = false;
    for (number, (one, placed)) in open.iter().enumerate() {
        let mut text = Vec::new();
        writeln!(text, "\n{}", look.paint(DIM, &format!("{} of {}", number + 1, open.len())))?;
        page::terminal::entry(&snapshots::in_full(one), &look, &mut text)?;
        if one.state == State::New {
            new(&form::write(&placed.cell.accepted(None, false)), &look, &mut text)?;
        }
        context(one, &placed.cell, &look, &mut text)?;
        out.write_all(&text)?;
        let key = if accept_all { Keypress::Accept } else { ask(one, &look, &mut out)? };
        accept_all |= key == Keypress::AcceptAll;
        let decision = match key {
            Keypress::Accept | Keypress::AcceptAll => Decision::Accept { beside: false },
            Keypress::Beside => Decision::Accept { beside: true },
            Keypress::Reject => Decision::Reject,
            Keypress::Skip => continue,
            Keypress::Quit => break,
            Keypress::Interrupt => return Ok(INTERRUPTED),
        };
        let now = decide(selection, one, placed, decision)?;
        if !matches!(decision, Decision::Reject) {
            left -= 1;
            for line in now.note.iter().flat_map(|note| wrap(&format!("note: {note}"), look.columns())) {
                writeln!(out, "{line}")?;
            }
        }
    }
    let rejected = all.iter().filter(|it| it.rejected).count();
    left += rejected;
    match (open.len(), left) {
        (0, 0) => writeln!(out, "nothing to review: {}", snapshots::counts(&all, 0))?,
        (_, 0) => writeln!(out, "\nevery snapshot is accepted")?,
        (_, 1) => writeln!(out, "\n1 snapshot still differs")?,
        (_, left) => writeln!(out, "\n{left} snapshots still differ")?,
    }
    Ok(u8::from(left > 0))
}

/// Shows the events before and after the differences in the trials.
fn context(one: &Compared, cell: &Cell, look: &Look, out: &mut Vec<u8>) -> io::Result<()> {
    for differing in &one.differing {
        let Some(name) = differing.trials.first() else { continue };
        let Some((_, shape)) = cell.shapes.iter().find(|(of, _)| of == name) else { continue };
        let lines = snapshots::around(differing, &outline(shape));
        if lines.is_empty() {
            continue;
        }
        writeln!(out, "  {}", look.paint(DIM, &format!("in trial {name}:")))?;
        let width = look.columns().saturating_sub(6);
        for (differs, text) in lines {
            let text = text.map_or_else(|| look.ellipsis().to_owned(), |text| one_line(&text, width, look));
            let (sign, style) = if differs { (look.sign("▸", ">"), Style::new()) } else { (" ", DIM) };
            writeln!(out, "  {sign} {}", look.paint(style, &text))?;
        }
    }
    Ok(())
}

/// Shows a new snapshot as it would be written to the file.
fn new(text: &str, look: &Look, out: &mut Vec<u8>) -> io::Result<()> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for line in lines.iter().take(MAX_SHOWN_LINES) {
        let line = harmless(line);
        writeln!(out, "  {}", look.paint(GREEN, format!("+ {line}").trim_end()))?;
    }
    let more = lines.len().saturating_sub(MAX_SHOWN_LINES);
    if more > 0 {
        writeln!(out, "  {} {}", look.ellipsis(), plural(more, "more line"))?;
    }
    Ok(())
}

/// Asks until a valid key is pressed.
fn ask(one: &Compared, look: &Look, out: &mut impl Write) -> Result<Keypress, CliError> {
    // A new cell has no accepted snapshot that could be kept beside the new one.
    let beside = one.state == State::Changed;
    let choices = if beside {
        "[a]ccept, [A]ccept all that are left, [b]oth: keep the old beside it, [r]eject, [s]kip, [q]uit?"
    } else {
        "[a]ccept, [A]ccept all that are left, [r]eject, [s]kip, [q]uit?"
    };
    loop {
        for (n, line) in wrap(choices, look.columns().saturating_sub(2)).iter().enumerate() {
            let end = if n > 0 { "\n" } else { "" };
            write!(out, "{end}{}", look.paint(BOLD, line))?;
        }
        write!(out, " ")?;
        out.flush()?;
        let byte = one_key()?;
        let key = match byte.map(|byte| if byte == b'A' { byte } else { byte.to_ascii_lowercase() }) {
            Some(b'A') => Keypress::AcceptAll,
            Some(b'a' | b'y') => Keypress::Accept,
            Some(b'b') if beside => Keypress::Beside,
            Some(b'r' | b'n') => Keypress::Reject,
            Some(b's' | b' ') => Keypress::Skip,
            Some(b'q' | 0x1b | 0x04) | None => Keypress::Quit,
            Some(0x03) => Keypress::Interrupt,
            Some(_) => {
                writeln!(out, "\ntype one of the letters in brackets")?;
                continue;
            }
        };
        let word = match key {
            Keypress::Accept => "accepted",
            Keypress::AcceptAll => "accepted, and all that are left",
            Keypress::Beside => "accepted beside the old",
            Keypress::Reject => "rejected",
            Keypress::Skip => "skipped",
            Keypress::Quit | Keypress::Interrupt => "",
        };
        writeln!(out, "{word}")?;
        return Ok(key);
    }
}

/// Reads one key, without waiting for the end of a line. Returns `None` at the end of the input.
fn one_key() -> io::Result<Option<u8>> {
    let _keys = Keys::begin()?;
    let mut byte = [0];
    loop {
        match io::stdin().lock().read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(byte.first().copied()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// While this value exists, the terminal delivers single keys and does not echo them.
struct Keys {
    before: Termios,
}

impl Keys {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut keys = before.clone();
        // Ctrl-C is read as a key too, so that the terminal is always restored.
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        tcsetattr(io::stdin(), OptionalActions::Now, &keys)?;
        Ok(Self { before })
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

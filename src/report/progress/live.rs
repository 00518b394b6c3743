//! The live display of a run: a line of counts, cost and time, and one line for each running trial.

use std::io::Write;
use std::time::{Duration, Instant};

use super::clock::Clocked;
use super::{Watch, finished, oddity, place};
use crate::ids::TrialId;
use crate::report::Summary;
use crate::report::page::terminal::counts;
use crate::report::text::{Look, cut, duration, money, width_of};
use crate::result::TrialResult;
use crate::run::events::RunEvent;
use crate::verdict::Verdict;

/// The time between two looks of the display for a change: another second, or another size of the terminal. It is drawn
/// only then, because a terminal multiplexer may report its new size after it has wrapped lines.
const TICK: Duration = Duration::from_millis(200);
/// The size that is assumed for a terminal whose size is unknown.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Characters of a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// A function that returns the current size of the terminal, or `None` if it is unknown.
pub type SizeNow = Box<dyn Fn() -> Option<Size> + Send>;

/// A function that returns the message about an interrupt, or `None` before an interrupt.
pub type Interrupted = Box<dyn Fn() -> Option<&'static str> + Send>;

/// A display that is drawn anew at its place. Lines about trials that did not pass remain above it.
pub struct Live<W>(Clocked<State<W>>);

struct State<W> {
    out: W,
    look: Look,
    size: SizeNow,
    /// Absent if it was said.
    interrupted: Option<Interrupted>,
    begun: Instant,
    running: Vec<(TrialId, String, Instant)>,
    summary: Summary,
    done: usize,
    planned: usize,
    cost: Option<f64>,
    cost_unknown: bool,
    /// The lines that are drawn now.
    drawn: Vec<String>,
    ended: bool,
}

impl<W: Write + Send + 'static> Live<W> {
    /// Starts a display on an output, which is a terminal of this size.
    pub fn new(out: W, look: Look, size: SizeNow, interrupted: Interrupted) -> Self {
        let state = State {
            out,
            look,
            size,
            interrupted: Some(interrupted),
            begun: Instant::now(),
            running: Vec::new(),
            summary: Summary::default(),
            done: 0,
            planned: 0,
            cost: None,
            cost_unknown: false,
            drawn: Vec::new(),
            ended: false,
        };
        Self(Clocked::new(state, TICK, State::draw_if_changed))
    }
}

impl<W: Write> State<W> {
    fn draw_if_changed(&mut self) {
        self.tell_interrupt();
        let size = (self.size)().unwrap_or(USUAL);
        if !self.ended && self.lines(size) != self.drawn {
            self.draw("");
        }
    }

    /// Says once that the run was interrupted.
    fn tell_interrupt(&mut self) {
        if let Some(notice) = self.interrupted.as_ref().and_then(|interrupted| interrupted()) {
            self.interrupted = None;
            self.draw(notice);
        }
    }

    /// Draws the display, and a text above it.
    fn draw(&mut self, above: &str) {
        let size = (self.size)().unwrap_or(USUAL);
        let mut frame = erase(&self.drawn, size.columns);
        if !above.is_empty() {
            frame.push_str(above);
            frame.push('\n');
        }
        let lines = if self.ended { Vec::new() } else { self.lines(size) };
        for line in &lines {
            frame.push_str(line);
            frame.push('\n');
        }
        self.drawn = lines;
        // A display that can no longer be written must not end the run.
        let _ = self.out.write_all(frame.as_bytes()).and_then(|()| self.out.flush());
    }

    /// Returns the lines of the display: as many as fit, each shorter than a line of the terminal.
    fn lines(&self, size: Size) -> Vec<String> {
        let look = &self.look;
        let room = size.columns.saturating_sub(1);
        let cost = self.cost.map_or_else(String::new, |cost| {
            let more = if self.cost_unknown { look.sign("≥", ">=") } else { "" };
            format!("  {more}{}", money(cost))
        });
        let head = format!("{}/{}  {}{cost}", self.done, self.planned, counts(&self.summary, look));
        let head = fitting(format!("{head}  {}", seconds(self.begun)), room, look);
        let most = size.rows.saturating_sub(2);
        let shown = if self.running.len() > most { most.saturating_sub(1) } else { self.running.len() };
        let running = self.running.iter().take(shown);
        let running = running.map(|(_, name, begun)| cut(&format!("  {:>4}  {name}", seconds(*begun)), room, look));
        let mut lines: Vec<String> = std::iter::once(head).chain(running).collect();
        if shown < self.running.len() {
            lines.push(cut(&format!("  and {} more", self.running.len() - shown), room, look));
        }
        lines
    }

    fn finish(&mut self, result: &TrialResult) -> String {
        let id = result.id();
        self.running.retain(|(running, ..)| *running != id);
        let counted = match result.verdict {
            Verdict::Pass => &mut self.summary.pass,
            Verdict::Fail => &mut self.summary.fail,
            Verdict::Ungraded => &mut self.summary.ungraded,
            Verdict::Errored => &mut self.summary.errored,
            // Already counted from the plan.
            Verdict::Skipped => return String::new(),
        };
        *counted += 1;
        self.done += 1;
        for cost in result.costs_usd() {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
        self.cost_unknown |= !result.cost_is_known();
        if result.verdict == Verdict::Pass { String::new() } else { finished(result, &self.look) }
    }
}

/// Returns what erases drawn lines, row by row: some terminals keep what a single command erases. A terminal that was
/// made narrower since then has wrapped the lines, so they take more rows than were drawn.
fn erase(drawn: &[String], columns: usize) -> String {
    let width = |line: &String| width_of(&anstream::adapter::strip_str(line).to_string());
    let rows: usize = drawn.iter().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum();
    // The terminal itself writes `^C` below the lines.
    format!("\r\x1b[2K{}", "\x1b[A\x1b[2K".repeat(rows))
}

/// Returns a line that may have colours, without them if it must be cut.
fn fitting(line: String, room: usize, look: &Look) -> String {
    let plain = anstream::adapter::strip_str(&line).to_string();
    if width_of(&plain) <= room { line } else { cut(&plain, room, look) }
}

fn seconds(since: Instant) -> String {
    duration(since.elapsed().as_secs() * 1000)
}

impl<W: Write + Send + 'static> Watch for Live<W> {
    fn see(&mut self, event: &RunEvent) {
        self.0.with(|state| state.see(event));
    }

    fn end(&mut self) {
        self.0.with(|state| {
            state.tell_interrupt();
            state.ended = true;
            state.draw("");
        });
        self.0.end();
    }
}

impl<W: Write> State<W> {
    fn see(&mut self, event: &RunEvent) {
        let look = self.look;
        let above = match event {
            RunEvent::Planned { trials, skipped } => {
                self.planned = self.done + trials;
                self.summary.skipped = *skipped;
                String::new()
            }
            RunEvent::Started { trial, attempt } => {
                let again = if *attempt > 1 { format!("  attempt {attempt}") } else { String::new() };
                self.running.retain(|(running, ..)| running != trial);
                self.running.push((trial.clone(), format!("{}{again}", place(trial)), Instant::now()));
                String::new()
            }
            RunEvent::Retry { .. } | RunEvent::NotRerun { .. } | RunEvent::StageEnded { .. } => oddity(event, &look),
            RunEvent::Finished { result } => self.finish(result),
            RunEvent::NotRun { count, .. } => {
                self.summary.not_run += count;
                oddity(event, &look)
            }
        };
        self.draw(&above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_erased_whole() {
        let lines = |widths: &[usize]| widths.iter().map(|width| "x".repeat(*width)).collect::<Vec<_>>();
        let rows = |drawn: &[usize], columns| erase(&lines(drawn), columns).matches("\x1b[A\x1b[2K").count();
        assert_eq!(rows(&[], 80), 0);
        assert_eq!(rows(&[10, 79, 0], 80), 3);
        assert_eq!(rows(&[10, 79, 0], 40), 4);
        assert_eq!(rows(&[10, 80, 81], 40), 6);
        assert_eq!(rows(&[3], 0), 3, "a terminal without width");
    }
}

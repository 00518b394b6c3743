//! Items at the end of a session: the agent's obedience to a cancel, the exit of its process, and the processes and
//! files that remain.

use super::{About, end_of, finding, one_way, session, without_model};
use crate::conformance::observed::Observed;
use crate::conformance::probes::Probe;
use crate::conformance::{EvidenceLine, Finding, Item, Outcome};
use crate::text::plural;
use crate::wire::{Dir, EngineLine};

pub(super) fn cancel(about: &About<'_>, sessions: &[Observed]) -> Finding {
    let item = Item::Cancel;
    if let Some(finding) = one_way(item, about) {
        return finding;
    }
    let cancelled = session(sessions, Probe::Cancel);
    if let Some(finding) = without_model(item, about, cancelled) {
        return finding;
    }
    let Some(cancelled) = cancelled else { return finding(item, Outcome::NotChecked, "it was not tested", []) };
    let asked = cancelled.engine().find(|(_, line)| *line == EngineLine::Cancel).map(|(number, _)| number);
    let Some(asked) = asked else {
        return finding(item, Outcome::NotSeen, "its turn was over before it could be cancelled", end_of(cancelled));
    };
    let after = |wanted: fn(&EngineLine) -> bool| {
        cancelled.engine().find(|(number, line)| *number > asked && wanted(line)).map(|(number, _)| number)
    };
    let at = |line: u64| cancelled.lines.get(line as usize - 1).map_or(0, |line| line.at_ms);
    // The engine closes standard input if the turn was answered, and else sends a signal.
    let closed = after(|line| *line == EngineLine::CloseStdin);
    let signalled = after(|line| matches!(line, EngineLine::Signal { .. }));
    let Some(closed) = closed.filter(|closed| signalled.is_none_or(|signal| *closed < signal)) else {
        let waited = signalled.map(|line| at(line).saturating_sub(at(asked)));
        let text = match waited {
            Some(ms) => format!("it did not end its turn within {ms} ms and was ended"),
            None => "it exited before its turn ended".to_owned(),
        };
        return finding(
            item,
            Outcome::Failed,
            text,
            [Some(asked), signalled].into_iter().flatten().map(|l| cancelled.place(l)),
        );
    };
    let places = [cancelled.place(asked), cancelled.place(closed)];
    let reason = cancelled.asked("session/prompt").and_then(|exchange| exchange.answer.as_ref());
    let reason = reason.and_then(|(_, answer)| answer.as_ref().ok()?.get("stopReason")?.as_str());
    let how = match reason {
        Some("cancelled") | None => String::new(),
        Some(other) => format!(", with the stop reason {other}"),
    };
    let ms = at(closed).saturating_sub(at(asked));
    finding(item, Outcome::Seen, format!("its turn ended {ms} ms after the cancellation{how}"), places)
}

pub(super) fn clean_exit(sessions: &[Observed]) -> Finding {
    let item = Item::CleanExit;
    // A session that was ended early does not show how the agent exits without intervention.
    let ended = sessions.iter().filter(|session| {
        matches!(session.probe, Probe::Session | Probe::Answer | Probe::Tools) && session.exit().is_some()
    });
    let mut well: Vec<EvidenceLine> = Vec::new();
    for session in ended {
        let Some(line) = session.last(Dir::Exit) else { continue };
        let Some(exit) = session.exit() else { continue };
        let signal = session.engine().find(|(_, line)| matches!(line, EngineLine::Signal { after_exit: false, .. }));
        if let Some((signal, _)) = signal {
            let text = "it did not exit when its input was closed, and was ended";
            return finding(item, Outcome::NotSeen, text, [session.place(signal), session.place(line)]);
        }
        if exit.code != Some(0) {
            let how = match (exit.code, exit.signal) {
                (Some(code), _) => format!("it exited {code}"),
                (None, Some(signal)) => format!("it was ended by signal {signal}"),
                (None, None) => "how it ended is unknown".to_owned(),
            };
            return finding(item, Outcome::Failed, how, [session.place(line)]);
        }
        well.push(session.place(line));
    }
    if well.is_empty() {
        return finding(item, Outcome::NotChecked, "no session ended by itself", []);
    }
    let text = format!("it exited 0 by itself{}", times(well.len()));
    finding(item, Outcome::Seen, text, well.into_iter().take(1))
}

pub(super) fn no_orphans(sessions: &[Observed]) -> Finding {
    let item = Item::NoOrphans;
    let mut ran = 0;
    for session in sessions.iter().filter(|session| session.exit().is_some()) {
        ran += 1;
        for (number, line) in session.engine() {
            let text = match line {
                EngineLine::Escaped { processes } => {
                    format!("{} had left its group and had to be ended", plural(processes, "process"))
                }
                EngineLine::Signal { after_exit: true, .. } => {
                    "it left processes in its group, which were ended".to_owned()
                }
                _ => continue,
            };
            return finding(item, Outcome::Failed, text, [session.place(number)]);
        }
    }
    match ran {
        0 => finding(item, Outcome::NotChecked, "no session ended by itself", []),
        _ => finding(item, Outcome::Seen, format!("no process was left{}", times(ran)), []),
    }
}

/// Formats a number of observations as `, 3 times`; empty for one observation.
fn times(count: usize) -> String {
    if count == 1 { String::new() } else { format!(", {count} times") }
}

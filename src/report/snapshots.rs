//! Snapshots in reports: a line for each difference, and each difference in full.

use super::Report;
use super::commands;
use super::page::{Block, Detail, Entry, Meaning};
use super::text::plural;
use crate::snapshot::compare::{Compared, Differing, State};
use crate::snapshot::diff::{Difference, Outlined, Sign};

/// The maximum number of differences of a cell in a report; the rest are counted.
const MAX_DIFFERENCES: usize = 30;
/// The maximum number of lines of a difference.
const MAX_DIFFERENCE_LINES: usize = 60;

/// The mark of a cell whose case is in quarantine.
pub const IN_QUARANTINE: &str = "in quarantine";

/// Returns the differences of a report's cells from their accepted snapshots.
pub fn block(report: &Report) -> Block {
    let shown = report.snapshots.iter().filter(|it| it.differs || it.accepted || it.shows_nothing);
    let of_cell = |compared: &Compared| {
        let mut entry = short(compared);
        if report.run.quarantine(&compared.id.case).is_some() {
            entry.about.push(IN_QUARANTINE.to_owned());
        }
        entry
    };
    let entries: Vec<Entry> = shown.map(of_cell).collect();
    let differing = report.snapshots.iter().filter(|it| it.differs).count();
    let accepted = report.snapshots.iter().filter(|it| it.accepted && !it.file_removed).count();
    let removed = report.snapshots.iter().filter(|it| it.file_removed).count();
    let accepted_earlier = || format!("{} accepted earlier and removed since", plural(removed, "snapshot"));
    let title = match differing {
        0 if accepted == 0 && removed > 0 => accepted_earlier(),
        0 if accepted == 0 => format!(
            "{} compare{} nothing: the harness shows no calls and texts are left out, or the core is empty",
            plural(entries.len(), "snapshot"),
            if entries.len() == 1 { "s" } else { "" }
        ),
        0 if removed > 0 => format!("{} accepted, {}", plural(accepted, "snapshot"), accepted_earlier()),
        0 => format!("{} accepted", plural(accepted, "snapshot")),
        1 => "1 snapshot differs".to_owned(),
        more => format!("{more} snapshots differ"),
    };
    let run = commands::run_word(&report.run, &report.folder);
    let after = format!("in full: `evals snapshot check {run}`; to decide: `evals snapshot review {run}`");
    Block::Entries { title, entries, after: (differing > 0).then_some(after) }
}

fn sign(difference: &Difference) -> (Meaning, &'static str) {
    match difference.sign {
        Sign::Added => (Meaning::Good, "+"),
        Sign::Removed => (Meaning::Bad, "-"),
        Sign::Changed => (Meaning::Open, "~"),
    }
}

/// Returns true if no trial of a cell shows anything that could be compared.
pub fn is_open(compared: &Compared) -> bool {
    compared.shows_nothing && compared.trials == 0
}

/// Returns the title of a cell that is not as accepted.
pub fn title(compared: &Compared) -> String {
    let what = match compared.state {
        _ if is_open(compared) => "nothing can be compared with a snapshot",
        State::New => "no snapshot is accepted",
        _ => "the snapshot differs",
    };
    format!("{what}: {}", compared.id.cell())
}

/// Returns the differences of a cell, one line each.
pub fn lines(compared: &Compared) -> Vec<String> {
    let differences = compared.differing.iter().flat_map(|it| &it.differences);
    let sentences = differences.map(|difference| format!("{} {}", difference.sign.mark(), difference.sentence()));
    compared.note.clone().into_iter().chain(sentences).collect()
}

/// Returns the entry about a cell: its state, its name, how many of its trials match the accepted snapshot, and
/// the note.
fn head(compared: &Compared) -> Entry {
    let (word, meaning) = match compared.state {
        _ if compared.file_removed => ("removed", Meaning::Open),
        _ if compared.accepted => ("accepted", Meaning::Good),
        State::Same => ("same", Meaning::Good),
        State::New => ("new", Meaning::Open),
        State::Changed => ("changed", Meaning::Bad),
        State::Missing => ("missing", Meaning::Open),
    };
    let mut about = vec![compared.id.case.clone(), compared.id.cell().column().to_string()];
    if compared.state == State::Changed && compared.trials > 1 {
        about.push(format!("{} of {} trials as accepted", compared.matching, compared.trials));
    }
    if compared.rejected {
        about.push("(rejected)".to_owned());
    }
    let mut entry = Entry { word: word.to_owned(), meaning, about, ..Entry::default() };
    match (compared.state, &compared.note) {
        (State::New, None) if !compared.accepted => entry.text("nothing is accepted for it yet"),
        (_, Some(note)) => entry.text(note.as_str()),
        (_, None) => {}
    }
    entry
}

/// Returns the entry of a cell with a line for each difference.
fn short(compared: &Compared) -> Entry {
    let mut entry = head(compared);
    let differences: Vec<&Difference> = compared.differing.iter().flat_map(|it| &it.differences).collect();
    entry.details.extend(differences.iter().take(MAX_DIFFERENCES).map(|it| {
        let (meaning, sign) = sign(it);
        Detail { head: Some((meaning, sign, it.sentence())), ..Detail::default() }
    }));
    let more = differences.len().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        entry.text(format!("and {}", plural(more, "more difference")));
    }
    entry
}

/// Returns the entry of a cell with all of its differences.
pub fn in_full(compared: &Compared) -> Entry {
    let mut entry = head(compared);
    entry.text(compared.file.as_str());
    for differing in &compared.differing {
        if compared.trials > 1 {
            entry.text(format!("trial {}:", differing.trials.join(", ")));
        }
        entry.details.extend(differing.differences.iter().map(full));
    }
    entry
}

/// Returns where the differences of a trial stand: the items of its outline that differ, each with the item before and
/// after it. The flag is true for an item that differs, and the text is absent where items are left out.
pub fn around(differing: &Differing, outline: &[Outlined]) -> Vec<(bool, Option<String>)> {
    // A removed item has the number that it had in the accepted snapshot.
    let now = |difference: &&Difference| difference.sign != Sign::Removed;
    let differs = |item: &Outlined| differing.differences.iter().filter(now).any(|it| it.place == item.place);
    let marked: Vec<bool> = outline.iter().map(differs).collect();
    let near = |n: usize| marked.iter().take(n + 2).skip(n.saturating_sub(1)).any(|it| *it);
    let mut lines: Vec<(bool, Option<String>)> = Vec::new();
    for (n, (item, differs)) in outline.iter().zip(&marked).enumerate() {
        if near(n) {
            lines.push((*differs, Some(format!("{}: {}", item.place, item.what))));
        } else if lines.last().is_some_and(|(_, text)| text.is_some()) {
            lines.push((false, None));
        }
    }
    lines
}

fn full(difference: &Difference) -> Detail {
    let of_line = |mark: char| match mark {
        '+' => Meaning::Good,
        '-' => Meaning::Bad,
        _ => Meaning::Quiet,
    };
    let lines = difference.lines.iter().take(MAX_DIFFERENCE_LINES);
    let mut lines: Vec<_> = lines.map(|it| (of_line(it.mark), format!("{} {}", it.mark, it.text))).collect();
    let more = difference.lines.len().saturating_sub(MAX_DIFFERENCE_LINES);
    if more > 0 {
        lines.push((Meaning::Plain, format!("and {}", plural(more, "more line"))));
    }
    let ((meaning, sign), title) = (sign(difference), format!("{}: {}", difference.place, difference.what));
    Detail { head: Some((meaning, sign, title)), text: String::new(), lines }
}

/// Returns the counts of the states that are not zero, on one line.
pub fn counts(all: &[Compared], unreferenced: usize) -> String {
    let states = [State::Same, State::Changed, State::New, State::Missing];
    let of = |state: State| all.iter().filter(|it| it.state == state).count();
    let mut parts: Vec<String> = states
        .into_iter()
        .filter(|state| of(*state) > 0)
        .map(|state| format!("{} {}", of(state), state.word()))
        .collect();
    if unreferenced > 0 {
        parts.push(format!("{unreferenced} unreferenced"));
    }
    if parts.is_empty() { "nothing to compare".to_owned() } else { parts.join(", ") }
}

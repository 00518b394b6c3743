//! Exit decisions, the results that set the exit code of a run: its cells, or its gates, and its snapshots. Pure.

use super::cells::Cell;
use super::escape::LOOK;
use super::text::{one_line, plural};
use super::{Report, commands, problems, snapshots};
use crate::case::quarantine::Quarantine;
use crate::compare::gate::{self, Gate, Kind};
use crate::ids::ColumnId;
use crate::run::RunRecord;
use crate::snapshot::compare::Compared;
use crate::statistics::gates::GateVerdict;
use crate::verdict::Verdict;

/// A result that can decide the exit code. Each report shows every exit decision that does not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The subject of the exit decision.
    pub about: About,
    /// The case, if the exit decision concerns a single one.
    pub case: Option<String>,
    /// The column, or `None` if the exit decision concerns all columns.
    pub column: Option<ColumnId>,
    /// The name, which stays the same from run to run.
    pub name: String,
    /// The outcome.
    pub verdict: GateVerdict,
    /// True if the exit decision affects the exit code. If there are gates, cells do not.
    pub decides: bool,
    /// The quarantine of the case, as text: the exit decision is shown and affects nothing. `None` if the case is in none.
    pub quarantine: Option<String>,
    /// The outcome and its subject, on one line.
    pub title: String,
    /// The outcome and the reason, on one line.
    pub line: String,
    /// The reason in full.
    pub detail: String,
    /// The file that the trials were compared with, if there is one.
    pub file: Option<String>,
    /// The command by which the user accepts or rejects a difference, if there is one.
    pub command: Option<String>,
}

/// The subject of an exit decision, in the order of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// A gate of a column or of a cell.
    Gate,
    /// The run as a whole, which the engine could not finish.
    BrokenOff,
    /// The run as a whole, which did not reach its end, although every trial has a result.
    NotEnded,
    /// The run as a whole, in which everything was skipped.
    Run,
    /// The verdict of a cell.
    Cell,
    /// The trials of a cell that were not run, although it has its verdict without them.
    Rest,
    /// The snapshot of a cell.
    Snapshot,
}

impl About {
    /// Returns the subject as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::BrokenOff => "broken off",
            Self::NotEnded => "not ended",
            Self::Run => "skipped",
            Self::Cell => "case",
            Self::Rest => "not run",
            Self::Snapshot => "snapshot",
        }
    }

    /// Returns true if reports show the exit decision with the trials of a cell.
    pub fn is_in_cell(self) -> bool {
        matches!(self, Self::Cell | Self::Rest)
    }
}

impl Decision {
    /// Makes an exit decision whose title is its complete text.
    fn new(about: About, name: &str, verdict: GateVerdict, title: String) -> Self {
        Self {
            about,
            case: None,
            column: None,
            name: name.to_owned(),
            verdict,
            decides: true,
            quarantine: None,
            line: title.clone(),
            title,
            detail: String::new(),
            file: None,
            command: None,
        }
    }
}

/// Returns everything that can decide the exit code of a run.
pub fn of(report: &Report) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = report.cells.iter().flat_map(|cell| of_cell(report, cell)).collect();
    let judged = decisions.iter().any(|decision| !in_quarantine(report, decision.case.as_deref()));
    decisions.extend(report.snapshots.iter().filter_map(|compared| of_snapshot(report, compared)));
    decisions.extend(report.gates.iter().map(of_gate));
    decisions.extend(report.broken_off.as_deref().map(broken_off));
    decisions.extend(report.lacks_end.then(|| not_ended(report)));
    decisions.extend((!judged).then(|| nothing_judged(report)));
    decisions
}

/// Returns the exit decision that a run which broke off is no pass, whatever its finished trials are.
fn broken_off(why: &str) -> Decision {
    let line = format!("the run broke off: {}", one_line(why, 400, &LOOK));
    Decision {
        detail: line.clone(),
        line,
        ..Decision::new(About::BrokenOff, "run", GateVerdict::Inconclusive, "the run broke off".to_owned())
    }
}

/// Returns the exit decision that a run which did not reach its end is no pass, whatever its trials are.
fn not_ended(report: &Report) -> Decision {
    let title = if report.going_on { "the run has not ended yet" } else { "the run did not reach its end" };
    let line = not_ended_sentence(report);
    let detail = line.clone();
    Decision { detail, line, ..Decision::new(About::NotEnded, "run", GateVerdict::Inconclusive, title.to_owned()) }
}

/// Returns what is missing in a run that did not reach its end.
pub fn missing_end(run: &RunRecord, going_on: bool) -> String {
    let has_looks = run.options.looks.is_some();
    let missing = match run.graded {
        true => "further trials of its source may be missing (--trials auto)",
        false if has_looks => {
            "further trials may be missing (--trials auto), and its snapshots may not have been compared"
        }
        false => "its snapshots may not have been compared or accepted",
    };
    if going_on {
        return format!("the run has not ended yet: {missing}");
    }
    let why = "it was interrupted, a snapshot could not be written, or an older evals finished it";
    format!("the run did not record its end ({why}): {missing}")
}

/// Returns what is missing in a run that did not reach its end, and the command that completes it.
pub fn not_ended_sentence(report: &Report) -> String {
    let sentence = missing_end(&report.run, report.going_on);
    if report.going_on {
        return sentence;
    }
    let way = match (commands::to_resume(&report.run, &report.folder), report.run.graded) {
        (Some(run), true) => format!("; resume the source with `evals run --resume {run}`, and grade it again"),
        (Some(run), false) => format!("; resume it with `evals run --resume {run}`"),
        (None, _) => String::new(),
    };
    format!("{sentence}{way}")
}

fn of_gate(gate: &Gate) -> Decision {
    let title = format!("gate {}: {}", gate.verdict.word(), gate.arm);
    // A column has two gates of its own, and servers know a test case by its name.
    let name = match gate.kind {
        Kind::Completed => format!("{}: completed trials", gate.arm),
        Kind::Margin | Kind::Critical | Kind::FailUnder | Kind::MaxCost | Kind::NoRegressions | Kind::Cases => {
            gate.arm.clone()
        }
    };
    Decision {
        column: gate.column.clone(),
        line: gate.line(),
        detail: format!("{} {}", gate.arm, gate.text),
        ..Decision::new(About::Gate, &name, gate.verdict, title)
    }
}

fn of_snapshot(report: &Report, compared: &Compared) -> Option<Decision> {
    let verdict = match compared.differs {
        true => GateVerdict::Fail,
        // With gates, snapshots that cannot be compared decide nothing.
        false if snapshots::is_open(compared) && report.gates.is_empty() => GateVerdict::Inconclusive,
        false => return None,
    };
    let run = commands::run_word(&report.run, &report.folder);
    let quarantine = report.run.quarantine(&compared.id.case);
    Some(Decision {
        case: Some(compared.id.case.clone()),
        column: Some(compared.id.cell().column()),
        decides: quarantine.is_none(),
        quarantine: quarantine.map(quarantine_sentence),
        detail: snapshots::lines(compared).join("\n"),
        file: Some(compared.file.clone()),
        command: Some(format!("evals snapshot review {run}")),
        ..Decision::new(About::Snapshot, &compared.id.case, verdict, snapshots::title(compared))
    })
}

/// Returns what a cell decides. Returns `None` if it was skipped.
pub fn verdict_of(report: &Report, cell: &Cell) -> Option<GateVerdict> {
    match cell.verdict {
        Some(Verdict::Skipped) => None,
        Some(Verdict::Pass) => Some(GateVerdict::Pass),
        // An A/A comparison has no better side; its gate only requires that every trial was graded.
        Some(Verdict::Fail) if report.aa.is_some() => Some(GateVerdict::Pass),
        Some(Verdict::Fail) => Some(GateVerdict::Fail),
        Some(Verdict::Ungraded | Verdict::Errored) | None => Some(GateVerdict::Inconclusive),
    }
}

/// Returns the verdict of a cell; and if it passed without some of its trials, that these were not run.
fn of_cell(report: &Report, cell: &Cell) -> Vec<Decision> {
    let Some(verdict) = verdict_of(report, cell) else { return Vec::new() };
    let rest = verdict == GateVerdict::Pass && cell.tally.not_run > 0;
    let rest = rest.then_some((About::Rest, GateVerdict::Inconclusive));
    let decision = |(about, verdict): (About, GateVerdict)| {
        let word = cell.verdict.filter(|_| about == About::Cell).map_or("not run", Verdict::word);
        Decision {
            case: Some(cell.id.case.clone()),
            column: Some(cell.id.column()),
            decides: report.gates.is_empty() && cell.quarantine.is_none(),
            quarantine: cell.quarantine.as_ref().map(quarantine_sentence),
            line: problems::counts(cell),
            ..Decision::new(about, &cell.id.case, verdict, format!("{word}: {}", cell.id))
        }
    };
    std::iter::once((About::Cell, verdict)).chain(rest).map(decision).collect()
}

/// Returns the quarantine of a case as text.
pub fn quarantine_sentence(quarantine: &Quarantine) -> String {
    format!("in quarantine until {}: {}", quarantine.until, quarantine.why)
}

fn in_quarantine(report: &Report, case: Option<&str>) -> bool {
    case.is_some_and(|case| report.run.quarantine(case).is_some())
}

fn nothing_judged(report: &Report) -> Decision {
    if report.cells.iter().any(|cell| cell.quarantine.is_some()) {
        let title = "everything that ran is in quarantine".to_owned();
        return Decision {
            decides: report.gates.is_empty(),
            detail: title.clone(),
            ..Decision::new(About::Run, "everything", GateVerdict::Inconclusive, title)
        };
    }
    let skipped = |why: &str| format!(": {} skipped, the first because {why}", plural(report.summary.skipped, "trial"));
    let why = report.note_facts.skipped.first().map(|(reason, _)| skipped(reason));
    let title = if why.is_some() { "everything was skipped" } else { "nothing was run" };
    let line = format!("nothing was graded{}", why.unwrap_or_default());
    Decision {
        decides: report.gates.is_empty(),
        detail: line.clone(),
        line,
        ..Decision::new(About::Run, "everything", GateVerdict::Inconclusive, title.to_owned())
    }
}

/// Returns the worst verdict of the exit decisions that affect the exit code: fail, else inconclusive, else pass.
pub fn outcome(decisions: &[Decision]) -> GateVerdict {
    gate::worst(decisions.iter().filter(|decision| decision.decides).map(|decision| decision.verdict))
}

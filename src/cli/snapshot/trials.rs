//! Gathers the trials of a run, or single traces, by the cells they belong to, for comparison with snapshots.

use std::collections::{HashMap, HashSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::case::Case;
use crate::cli::grade::stored_traces;
use crate::cli::{CliError, engine, inputs};
use crate::ids::{ArmOf, SnapshotCellId, without_copy};
use crate::regular;
use crate::run::folder::RunFolder;
use crate::run::{RunRecord, integrity};
use crate::snapshot::Shape;
use crate::snapshot::compare::{Cell, Compared, PassedOver, State};
use crate::snapshot::normalise::{Watching, shows_nothing};
use crate::snapshot::set::Accepted;
use crate::snapshot::settings::SnapshotSettings;
use crate::snapshot::store;
use crate::trace::jsonl::{ReadError, Reader};
use crate::trace::{Body, Header, StopReason};
use crate::verdict::Verdict;

/// The reason why a trial with a changed trace has no shape.
const TRACE_CHANGED: &str = "has a trace that was changed after it was graded";

/// A cell, with its accepted snapshot.
pub struct Placed {
    pub cell: Cell,
    /// The snapshot file.
    pub file: PathBuf,
    /// The accepted snapshot, or the reason why it cannot be read.
    pub accepted: Result<Option<Accepted>, String>,
}

impl Placed {
    fn new(cell: Cell, case: &Case) -> Result<Self, CliError> {
        let file = store::file(&store::folder(&case.file), &cell.id.harness, cell.id.arm())?;
        let accepted = store::read(&file).map_err(|error| error.to_string());
        Ok(Self { cell, file, accepted })
    }

    /// Compares the cell. If its snapshot cannot be read, the cell does not count as unchanged.
    pub fn compared(&self, asked: bool) -> Compared {
        let file = crate::paths::shown(&self.file).display().to_string();
        match &self.accepted {
            Ok(accepted) => self.cell.compared(accepted.as_ref(), file, asked),
            Err(error) => {
                let unread = self.cell.compared(None, file, asked);
                Compared { state: State::Changed, note: Some(error.clone()), differs: true, ..unread }
            }
        }
    }

    /// Accepts the trials of the cell; with `beside`, in addition to the accepted ones. Updates `compared`.
    pub fn accept(&self, beside: bool, compared: &mut Compared) -> Result<(), CliError> {
        let before = match &self.accepted {
            // An unreadable snapshot cannot be kept beside the new one.
            Err(error) if beside => return Err(CliError::unreadable(error)),
            known => known.as_ref().ok().cloned().flatten(),
        };
        let accepted = self.cell.accepted(before, beside);
        store::write(&self.file, &accepted)?;
        (compared.accepted, compared.differs, compared.note) = (true, false, None);
        compared.holds(&accepted);
        if let Some(left_out) = self.cell.left_out(&accepted) {
            compared.tell(left_out);
        }
        Ok(())
    }
}

/// A cell of a run whose case no longer exists, so that its trials cannot be compared.
pub struct CellWithoutCase {
    pub case: String,
    /// The name of the cell, for filters.
    pub name: String,
}

impl CellWithoutCase {
    /// Returns a sentence about the case, for a report.
    pub fn note(&self) -> String {
        format!("case `{}` no longer exists; give its new path with --case FILE", self.case)
    }
}

/// Returns the cells of a run in the order of its plan: those whose case is known, and those whose case no longer
/// exists. Unless `all` is set, traces of cells without a snapshot are not even read.
pub fn of_run(
    run: &RunFolder,
    record: &RunRecord,
    cases: &HashMap<String, Arc<Case>>,
    all: bool,
) -> Result<(Vec<Placed>, Vec<CellWithoutCase>), CliError> {
    let states = run.states()?;
    let mut cells = Cells::default();
    let mut without_case: Vec<CellWithoutCase> = Vec::new();
    let mut names = HashSet::new();
    for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
        let Some(case) = cases.get(&trial.case) else {
            let name = trial.snapshot_cell().to_string();
            if names.insert(name.clone()) {
                without_case.push(CellWithoutCase { case: trial.case.clone(), name });
            }
            continue;
        };
        let file = store::file(&store::folder(&case.file), &trial.harness, trial.arm_of())?;
        if !all && !file.exists() {
            continue;
        }
        let cell = cells.of(SnapshotCellId::new(&case.id, &trial.harness, trial.arm_of()), case);
        let second = without_copy(&trial.arm) != trial.arm && Some(&trial.arm) != trial.model.as_ref();
        let name = if second { format!("{} {}", trial.arm, trial.trial) } else { trial.trial.to_string() };
        let state = states.get(&trial.id());
        let shape = match state.and_then(|state| Some((state, state.finished?))) {
            None => Err(Unread::of("did not finish")),
            Some((state, _)) if state.distrust.is_some() => Err(Unread::changed("was changed after it was graded")),
            Some((_, Verdict::Errored)) => Err(Unread::of("was errored")),
            Some((state, _)) => {
                let at = run.counting_attempt(trial, state)?;
                let result = run.result_of(trial, state)?;
                match integrity::changed_file(&at, "trace.jsonl", &result) {
                    _ if result.is_not_as_judged() => Err(Unread::changed("was changed after it was graded")),
                    Some(_) => Err(Unread::changed(TRACE_CHANGED)),
                    None => read(&at.join("trace.jsonl"), &case.snapshot),
                }
            }
        };
        match shape {
            Ok(shape) => cell.shapes.push((name, shape)),
            Err(unread) => cell.passed_over.push(unread.named(format!("trial {name}"))),
        }
    }
    let placed = cells.list.into_iter().filter_map(|cell| {
        let case = cases.get(&cell.id.case)?;
        Some(Placed::new(cell, case))
    });
    Ok((placed.collect::<Result<_, _>>()?, without_case))
}

/// Returns the cells of single traces, which belong to one case.
pub fn of_traces(
    names: &[String],
    case: &Case,
    harness: Option<&str>,
    private: &Path,
) -> Result<Vec<Placed>, CliError> {
    let catalog = inputs::catalog(&[]).ok().map(|(catalog, _)| catalog);
    let env = engine::environment();
    let mut cells = Cells::default();
    for (number, name) in names.iter().enumerate() {
        let shown = if name == stored_traces::STDIN { "standard input" } else { name };
        let failed = |error: &dyn std::fmt::Display| {
            CliError::unreadable(format!(
                "{shown}: {error}\nrecorded sessions become traces first: evals import --harness NAME FILE | evals snapshot check - --case FILE"
            ))
        };
        let from = if name == stored_traces::STDIN { None } else { stored_traces::of_folder(name) };
        // Snapshots go into version control and must not contain secrets.
        let copy = private.join(format!("trace-{number}.jsonl"));
        let masker_of = |header: Option<&Header>| stored_traces::masker(case, &env, header, catalog.as_ref());
        stored_traces::copied(from.as_deref(), &copy, masker_of).map_err(|error| failed(&error))?;
        let header = match stored_traces::header(&copy) {
            Err(error @ ReadError::Line { .. }) => return Err(CliError::unreadable(format!("{shown}: {error}"))),
            read => read.map_err(|error| failed(&error))?,
        };
        let own = stored_traces::manifest(&header, catalog.as_ref()).name;
        let harness = harness.map_or(own, str::to_owned);
        let arm = ArmOf { model: header.model.requested.as_deref(), variant: None };
        let cell = cells.of(SnapshotCellId::new(&case.id, &harness, arm), case);
        let beside = from.as_deref().map(integrity::beside).unwrap_or_default();
        let shape = if beside.changed.is_some() {
            Err(Unread::changed(TRACE_CHANGED))
        } else if beside.error.is_some() {
            // The trace alone may not show it.
            Err(Unread::of("was errored"))
        } else {
            read(&copy, &case.snapshot)
        };
        match shape {
            Ok(shape) => cell.shapes.push((shown.to_owned(), shape)),
            Err(unread) => cell.passed_over.push(unread.named(shown.to_owned())),
        }
    }
    cells.list.into_iter().map(|cell| Placed::new(cell, case)).collect()
}

/// Cells in the order in which they were added.
#[derive(Default)]
struct Cells {
    list: Vec<Cell>,
    /// The places of the cells in the list.
    places: HashMap<SnapshotCellId, usize>,
}

impl Cells {
    /// Returns a cell of the case, and adds it if needed.
    fn of(&mut self, id: SnapshotCellId, case: &Case) -> &mut Cell {
        let at = *self.places.entry(id.clone()).or_insert_with(|| {
            let (text, several) = (case.snapshot.text, case.snapshot.several);
            self.list.push(Cell { id, text, several, ..Cell::default() });
            self.list.len() - 1
        });
        &mut self.list[at]
    }
}

/// The reason why a trace has no shape.
struct Unread {
    why: String,
    shows_nothing: bool,
    changed: bool,
}

impl Unread {
    fn of(why: &str) -> Self {
        Self { why: why.to_owned(), shows_nothing: false, changed: false }
    }

    /// Makes the reason for a trial whose files were changed after it was graded.
    fn changed(why: &str) -> Self {
        Self { changed: true, ..Self::of(why) }
    }

    fn named(self, name: String) -> PassedOver {
        PassedOver { name, why: self.why, shows_nothing: self.shows_nothing, changed: self.changed }
    }
}

/// Returns the shape of a stored trace, or the reason why it has none.
fn read(trace: &Path, settings: &SnapshotSettings) -> Result<Shape, Unread> {
    let unread = |error: &dyn std::fmt::Display| Unread::of(&format!("has a trace that cannot be read: {error}"));
    let file = regular::open_own(trace).map_err(|error| unread(&error))?;
    let mut reader = Reader::lawful(BufReader::with_capacity(256 << 10, file)).map_err(|error| unread(&error))?;
    let header = reader.header().clone();
    let mut watching = Watching::default();
    let (mut stop, mut has_lost) = (None, false);
    while let Some(event) = reader.next_event().map_err(|error| unread(&error))? {
        has_lost |= matches!(&event.body, Body::Notice { lost: Some(lost), .. } if settings.depends_on_loss(*lost));
        if let Body::Stop(end) = &event.body {
            stop = Some(end.reason);
        }
        watching.event(&event);
    }
    match (stop, shows_nothing(&header, settings)) {
        (None, _) => Err(Unread::of("has a trace without an end")),
        (Some(StopReason::Error | StopReason::Crashed), _) => Err(Unread::of("ended in an error")),
        (Some(_), Some(why)) => Err(Unread { shows_nothing: true, ..Unread::of(why) }),
        (Some(_), None) if has_lost => {
            let why = "has lost a part of its session, so its trace is incomplete";
            Err(Unread { shows_nothing: true, ..Unread::of(why) })
        }
        (Some(_), None) => Ok(watching.shape(&header, settings)),
    }
}

//! The library's interface: imports recorded sessions, and grades traces.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::adapter;
use crate::grade::GradeRecord;
use crate::grader::{Evidence, Grader, GraderEntry, GraderError, Grading, Library, expand, refuse_empty};
use crate::harness;
use crate::judge::Judges;
use crate::shell::Shell;
use crate::trace::jsonl::{ReadError, Reader, write_event, write_header};
use crate::trace::recorder::Finished;
use crate::trace::usage::UsageTotal;
use crate::trace::{ErrorCategory, Event, Header};
use crate::trial::ending::{error_of, no_stop};
use crate::trial::metrics::{self, Observed};
use crate::yaml::{self, YamlError};

/// A session of an agent: a header, and its events in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The header: the session, and what its trace can show.
    pub header: Header,
    /// The events, in order.
    pub events: Vec<Event>,
}

impl Trace {
    /// Reads a trace in JSON Lines, the format of a trial's `trace.jsonl` and of the output of `evals import`.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, or breaks a law of traces.
    pub fn read(input: impl BufRead) -> Result<Self, ReadError> {
        let mut reader = Reader::lawful(input)?;
        let header = reader.header().clone();
        let mut events = Vec::new();
        while let Some(event) = reader.next_event()? {
            events.push(event);
        }
        Ok(Self { header, events })
    }

    /// Writes the trace in JSON Lines.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        write_header(&mut out, &self.header)?;
        self.events.iter().try_for_each(|event| write_event(&mut out, event))
    }
}

/// The reason why a recording or a trace gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No built-in harness has this name.
    #[error("no built-in harness is called `{0}`")]
    UnknownHarness(String),
    /// The recording cannot be read.
    #[error("the recording cannot be read: {0}")]
    Recording(#[from] io::Error),
    /// The graders are not valid.
    #[error("{0}")]
    Graders(String),
    /// The agent or its service failed, so there is nothing to grade.
    #[error("the session is errored: {}", .0.word())]
    Errored(ErrorCategory),
}

impl From<YamlError> for Error {
    fn from(error: YamlError) -> Self {
        Self::Graders(error.to_string())
    }
}

impl From<GraderError> for Error {
    fn from(error: GraderError) -> Self {
        Self::Graders(error.to_string())
    }
}

/// Converts a recorded session of a built-in harness to a trace: a wire log of a trial, or the output of the agent's
/// own program.
///
/// # Errors
/// Returns an error if the harness is unknown, or the recording cannot be read. Lines that cannot be understood are
/// notices of the trace.
pub fn import(harness: &str, recording: impl BufRead) -> Result<Trace, Error> {
    let manifest = harness::built_in::named(harness);
    let manifest = manifest.ok_or_else(|| Error::UnknownHarness(harness.to_owned()))?;
    let mut events = Vec::new();
    let header = adapter::import(manifest.adapter, manifest, true, recording, |event| {
        events.push(event);
        Ok(())
    })?;
    Ok(Trace { header, events })
}

/// Grades a trace. `graders` is a list in YAML, as below `graders` in a case.
///
/// A trace alone has no workspace and no judge model: graders that need one are `ungraded`. `use` finds no grader,
/// because there is no `graders/` folder.
///
/// # Errors
/// Returns an error if the graders are not valid, or the session is errored.
pub async fn grade(trace: &Trace, graders: &str) -> Result<Vec<GradeRecord>, Error> {
    let entries: Vec<GraderEntry> = yaml::parse(Path::new("graders"), graders)?;
    let graders = expand(&entries, &Library::default())?;
    refuse_empty(&graders).map_err(Error::Graders)?;
    let graders: Vec<Arc<Grader>> = graders.into_iter().map(Arc::new).collect();
    let mut grading = Grading::new(&graders, &trace.header, None);
    let (mut observed, mut total) = (Observed::default(), UsageTotal::default());
    observed.is_stored = true;
    for event in &trace.events {
        total.event(event);
        observed.event(event);
        grading.event(event);
    }
    let finished = Finished { header: trace.header.clone(), events: Vec::new(), total };
    let stop = observed.stop.clone().unwrap_or_else(|| no_stop("the trace has no stop"));
    if let Some(category) = error_of(&stop) {
        return Err(Error::Errored(category));
    }
    let shell = Shell { folder: PathBuf::new(), env: BTreeMap::new(), ..Shell::default() };
    let evidence = Evidence {
        header: &finished.header,
        harness: finished.header.harness.as_deref().unwrap_or_default(),
        model: finished.header.model.requested.as_deref(),
        arm: finished.header.model.requested.as_deref().unwrap_or("default"),
        lasting_answer: grading.lasting_answer(),
        stop: &stop,
        usage: &finished.total,
        output: stop.output.as_deref().unwrap_or_default(),
        metrics: &metrics::of(&finished, &observed),
        duration_ms: observed.duration_ms(&finished.header),
        workspace: None,
        change: None,
        hidden: None,
        case_folder: Path::new(""),
        trace: None,
        patch: None,
        shell: &shell,
        judges: &Judges::none(),
        unmasked: None,
    };
    Ok(grading.finish(&evidence).await)
}

//! Explains the result of translating each line of a recording, for any protocol, by observing the trace while it is
//! made.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Translation;
use crate::trace::{Agent, Event};
use crate::wire::{Dir, WireLine};

/// The explanation of one line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Explained {
    /// The number of the line in the recording. Absent for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The direction of the line. Absent for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<Dir>,
    /// The line.
    pub text: String,
    /// The rules of the manifest that handled the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The keys that the rules read and did not find.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<String>,
    /// The facts in the header, if the line changed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<HeaderFacts>,
    /// The events that the line started or continued.
    pub events: Vec<Touched>,
}

/// Facts about a session in the header.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeaderFacts {
    /// The agent, as it identified itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The model that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// An event that a line started or continued.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Touched {
    /// True if the line started the event.
    pub new: bool,
    /// True if a later line may still change the event.
    pub pending: bool,
    /// The event, as known after the line.
    pub event: Event,
}

/// An observer of a trace while it is made.
#[derive(Debug, Default)]
pub struct Watcher {
    /// Events that may still change, as last shown.
    open_events: BTreeMap<u64, Event>,
    header: HeaderFacts,
}

impl Watcher {
    /// Returns the explanation of a line that was just translated.
    pub fn line(&mut self, line: &WireLine, number: u64, translation: &mut Translation) -> Explained {
        let (rule, not_found) = match line.dir {
            Dir::Recv => (translation.taken_by().map(str::to_owned), translation.not_found().to_vec()),
            Dir::Send | Dir::Stderr | Dir::Engine | Dir::Exit => (None, Vec::new()),
        };
        let done = translation.drain().collect();
        // Very many events may be held, and a line changes few of them.
        let is_changed = |event: &&Event| self.open_events.get(&event.seq) != Some(*event);
        let open_events: Vec<Event> = translation.recorder().pending().filter(is_changed).cloned().collect();
        let events = self.touched(done, open_events);
        let current = translation.recorder().header().clone();
        let facts = HeaderFacts { agent: current.agent, model: current.model.effective, cwd: current.cwd };
        let header = (facts != self.header).then(|| facts.clone());
        self.header = facts;
        Explained { line: Some(number), dir: Some(line.dir), text: line.line.clone(), rule, not_found, header, events }
    }

    /// Returns the explanation of the end of the session.
    pub fn end(&mut self, events: Vec<Event>) -> Explained {
        let events = self.touched(events, Vec::new());
        Explained {
            line: None,
            dir: None,
            text: String::new(),
            rule: None,
            not_found: Vec::new(),
            header: None,
            events,
        }
    }

    fn touched(&mut self, done: Vec<Event>, open_events: Vec<Event>) -> Vec<Touched> {
        let mut touched = Vec::new();
        let all =
            done.into_iter().map(|event| (event, false)).chain(open_events.into_iter().map(|event| (event, true)));
        for (event, pending) in all {
            let before = self.open_events.remove(&event.seq);
            if pending {
                self.open_events.insert(event.seq, event.clone());
            }
            if before.as_ref() != Some(&event) {
                touched.push(Touched { new: before.is_none(), pending, event });
            }
        }
        touched
    }
}

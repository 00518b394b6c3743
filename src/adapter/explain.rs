//! What each line of a recording became: told by watching the Trace while it is made, whatever the protocol.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Translation;
use crate::trace::{Agent, Event};
use crate::wire::{Dir, WireLine};

/// What became of one line.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Explained {
    /// Its number in the recording; absent for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Which way it went; absent for the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<Dir>,
    /// The line.
    pub text: String,
    /// The rules of the manifest that took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What they asked of it and did not find.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<String>,
    /// What the header says since then, where the line changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Told>,
    /// The events that it began or went on with.
    pub events: Vec<Touched>,
}

/// What a session tells of itself in the header.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Told {
    /// What the agent says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The model that answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The folder it works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// An event that a line began or went on with.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Touched {
    /// Whether the line began it.
    pub new: bool,
    /// Whether a later line may still change it.
    pub pending: bool,
    /// The event, as it is known then.
    pub event: Event,
}

/// Watches a Trace while it is made.
#[derive(Debug, Default)]
pub struct Watcher {
    /// Events that may still change, as they were shown last.
    held: BTreeMap<u64, Event>,
    told: Told,
}

impl Watcher {
    /// What has become of a line that was just taken.
    pub fn line(&mut self, line: &WireLine, number: u64, translation: &mut Translation) -> Explained {
        let (rule, not_found) = match line.dir {
            Dir::Recv => (translation.taken_by().map(str::to_owned), translation.not_found().to_vec()),
            Dir::Send | Dir::Stderr | Dir::Engine | Dir::Exit => (None, Vec::new()),
        };
        let done = translation.drain();
        let held: Vec<Event> = translation.recorder().held().cloned().collect();
        let events = self.touched(done, held);
        let known = translation.recorder().header().clone();
        let told = Told { agent: known.agent, model: known.model.effective, cwd: known.cwd };
        let header = (told != self.told).then(|| told.clone());
        self.told = told;
        Explained { line: Some(number), dir: Some(line.dir), text: line.line.clone(), rule, not_found, header, events }
    }

    /// What the end has made.
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

    fn touched(&mut self, done: Vec<Event>, held: Vec<Event>) -> Vec<Touched> {
        let mut touched = Vec::new();
        let all = done.into_iter().map(|event| (event, false)).chain(held.into_iter().map(|event| (event, true)));
        for (event, pending) in all {
            let before = self.held.remove(&event.seq);
            if pending {
                self.held.insert(event.seq, event.clone());
            }
            if before.as_ref() != Some(&event) {
                touched.push(Touched { new: before.is_none(), pending, event });
            }
        }
        touched
    }
}

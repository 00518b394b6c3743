//! A probe's session as its wire log tells it: its Trace, and which lines say what. Pure.

use serde_json::Value;

use super::Place;
use super::probes::Probe;
use crate::adapter::Translation;
use crate::adapter::acp::exchanges::{Exchange, exchanges};
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::result::TrialResult;
use crate::trace::{Body, Event, Exit, Header, Stop};
use crate::wire::{Dir, EngineLine, WireLine};

/// A session, read from its wire log.
pub struct Observed {
    /// What it was for.
    pub probe: Probe,
    /// The result of the trial.
    pub result: TrialResult,
    /// The wire log.
    pub lines: Vec<WireLine>,
    /// The Trace that follows from it.
    pub header: Header,
    /// Its events.
    pub events: Vec<Event>,
    /// Our requests, where it speaks ACP.
    pub exchanges: Vec<Exchange>,
    /// Lines from the agent with which its final answer grew.
    pub pieces: Vec<u64>,
    /// Requests that a scripted model got, as it logged them.
    pub requests: Vec<Value>,
}

impl Observed {
    /// Reads a session again, by the translation that made its Trace.
    pub fn new(probe: Probe, manifest: &Manifest, lines: Vec<WireLine>, result: TrialResult) -> Self {
        let header = Header::new(manifest.adapter.word(), manifest.seen());
        let mut translation = Translation::new(manifest.adapter, manifest, header);
        let (mut events, mut pieces) = (Vec::new(), Vec::new());
        for (number, line) in (1u64..).zip(&lines) {
            let before = translation.recorder().answer().len();
            translation.line(line);
            if line.dir == Dir::Recv && translation.recorder().answer().len() > before {
                pieces.push(number);
            }
            events.extend(translation.drain());
        }
        let finished = translation.finish();
        events.extend(finished.events);
        let exchanges = if manifest.adapter == Adapter::Acp { exchanges(&lines) } else { Vec::new() };
        Self { probe, result, lines, header: finished.header, events, exchanges, pieces, requests: Vec::new() }
    }

    /// A line of its wire log, as a place.
    pub fn place(&self, line: u64) -> Place {
        Place { file: format!("{}/wire.jsonl", self.probe.word()), line }
    }

    /// The first line of a kind that a test holds for.
    pub fn first(&self, dir: Dir, holds: impl Fn(&WireLine) -> bool) -> Option<u64> {
        (1u64..).zip(&self.lines).find(|(_, line)| line.dir == dir && holds(line)).map(|(number, _)| number)
    }

    /// The last line of a kind.
    pub fn last(&self, dir: Dir) -> Option<u64> {
        (1u64..).zip(&self.lines).filter(|(_, line)| line.dir == dir).last().map(|(number, _)| number)
    }

    /// The lines from the agent that name an id: the first and the last.
    pub fn naming(&self, id: &str) -> Vec<Place> {
        let quoted = serde_json::to_string(id).unwrap_or_default();
        let named = |line: &WireLine| line.dir == Dir::Recv && line.line.contains(&quoted);
        let mut lines: Vec<u64> = (1u64..).zip(&self.lines).filter(|(_, l)| named(l)).map(|(n, _)| n).collect();
        lines.dedup();
        match (lines.first(), lines.last()) {
            (Some(first), Some(last)) if first != last => vec![self.place(*first), self.place(*last)],
            (Some(first), _) => vec![self.place(*first)],
            _ => Vec::new(),
        }
    }

    /// What the engine did, with the lines on which it says so.
    pub fn engine(&self) -> impl Iterator<Item = (u64, EngineLine)> {
        (1u64..)
            .zip(&self.lines)
            .filter(|(_, line)| line.dir == Dir::Engine)
            .filter_map(|(number, line)| serde_json::from_str(&line.line).ok().map(|engine| (number, engine)))
    }

    /// The last request of ours with this method.
    pub fn asked(&self, method: &str) -> Option<&Exchange> {
        self.exchanges.iter().rev().find(|exchange| exchange.method == method)
    }

    /// How the session ended.
    pub fn stop(&self) -> Option<&Stop> {
        self.events.iter().rev().find_map(|event| match &event.body {
            Body::Stop(stop) => Some(stop),
            _ => None,
        })
    }

    /// How the process ended.
    pub fn exit(&self) -> Option<Exit> {
        let line = self.lines.iter().rev().find(|line| line.dir == Dir::Exit)?;
        serde_json::from_str(&line.line).ok()
    }

    /// Whether the case's own check of the workspace of this name held; nothing where it was not judged.
    pub fn held(&self, name: &str) -> Option<bool> {
        self.result.grades.iter().find(|grade| grade.name == name)?.passed
    }
}

//! A probe's session, read from its wire log: its trace, and the lines that show each fact. Pure.

use serde_json::Value;

use super::EvidenceLine;
use super::probes::Probe;
use crate::adapter::Translation;
use crate::adapter::acp::exchanges::{Exchange, exchanges};
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::result::TrialResult;
use crate::trace::{Body, Event, Exit, Header, Stop};
use crate::wire::{Dir, EngineLine, WireLine};

/// A session, as read from its wire log.
pub struct Observed {
    pub probe: Probe,
    pub result: TrialResult,
    /// The wire log.
    pub lines: Vec<WireLine>,
    /// The trace's header, derived from the wire log.
    pub header: Header,
    /// The trace's events.
    pub events: Vec<Event>,
    /// The engine's requests, if the agent uses ACP.
    pub exchanges: Vec<Exchange>,
    /// The agent's lines that extended its final answer.
    pub pieces: Vec<u64>,
    /// The requests that a scripted model logged.
    pub requests: Vec<Value>,
}

impl Observed {
    /// Reads a session by the translation that made its trace.
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

    /// Returns a line of the wire log as evidence.
    pub fn place(&self, line: u64) -> EvidenceLine {
        EvidenceLine { file: format!("{}/wire.jsonl", self.probe.word()), line }
    }

    /// Returns the first line of a direction for which `holds` is true.
    pub fn first(&self, dir: Dir, holds: impl Fn(&WireLine) -> bool) -> Option<u64> {
        (1u64..).zip(&self.lines).find(|(_, line)| line.dir == dir && holds(line)).map(|(number, _)| number)
    }

    /// Returns the last line of a direction.
    pub fn last(&self, dir: Dir) -> Option<u64> {
        (1u64..).zip(&self.lines).filter(|(_, line)| line.dir == dir).last().map(|(number, _)| number)
    }

    /// Returns the agent's first and last line that contain an id.
    pub fn naming(&self, id: &str) -> Vec<EvidenceLine> {
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

    /// Returns the engine's actions, with their lines.
    pub fn engine(&self) -> impl Iterator<Item = (u64, EngineLine)> {
        (1u64..)
            .zip(&self.lines)
            .filter(|(_, line)| line.dir == Dir::Engine)
            .filter_map(|(number, line)| serde_json::from_str(&line.line).ok().map(|engine| (number, engine)))
    }

    /// Returns the engine's last request with this method.
    pub fn asked(&self, method: &str) -> Option<&Exchange> {
        self.exchanges.iter().rev().find(|exchange| exchange.method == method)
    }

    /// Returns how the session ended.
    pub fn stop(&self) -> Option<&Stop> {
        self.events.iter().rev().find_map(|event| match &event.body {
            Body::Stop(stop) => Some(stop),
            _ => None,
        })
    }

    /// Returns how the process ended.
    pub fn exit(&self) -> Option<Exit> {
        let line = self.lines.iter().rev().find(|line| line.dir == Dir::Exit)?;
        serde_json::from_str(&line.line).ok()
    }

    /// Returns whether the case's grader of this name passed; `None` if it was ungraded.
    pub fn held(&self, name: &str) -> Option<bool> {
        self.result.grades.iter().find(|grade| grade.name == name)?.passed
    }
}

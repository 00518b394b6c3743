//! Snapshots: the normalised trace of a cell, accepted once, and compared from then on.
//!
//! Pure except for [`store`]: [`normalise`] makes a [`Shape`] of a trace, [`form`] writes and reads the text that is
//! reviewed, [`align`] finds the common items of two shapes, [`differ`] describes the differences, [`set`] handles
//! several shapes.

use serde::{Deserialize, Serialize};

use crate::trace::ToolKind;

pub mod align;
pub mod compare;
pub mod diff;
pub mod form;
pub mod mode;
pub mod normalise;
mod provenance;
mod redactions;
pub mod set;
pub mod settings;
pub mod store;
mod value;

/// The actions of a trial, without values that vary by chance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// The events, in order.
    pub items: Vec<Item>,
    /// All tokens. Absent if not reported.
    pub tokens: Option<Range>,
    /// Output tokens. Absent if not reported.
    pub output_tokens: Option<Range>,
}

impl Shape {
    /// Returns the number of calls, messages and plans of the agent; those of sub-agents are part of their
    /// calls.
    pub fn done(&self) -> usize {
        let done = |item: &Item| match &item.body {
            Body::Step(calls) => calls.len(),
            Body::Says(_) | Body::Thinks(_) | Body::Plan(_) => 1,
            Body::User(_) | Body::Stop(..) => 0,
        };
        self.items.iter().map(done).sum()
    }
}

/// The minimum and the maximum of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    pub least: u64,
    pub most: u64,
}

impl Range {
    pub fn of(figure: u64) -> Self {
        Self { least: figure, most: figure }
    }

    /// Returns the range that contains both.
    pub fn with(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// An event. Two items are equal if their events are, wherever they are in their traces.
#[derive(Debug, Clone)]
pub struct Item {
    /// The event.
    pub body: Body,
    /// `seq` of its events; empty in an accepted snapshot, which does not contain them.
    pub events: Vec<u64>,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

/// The kind of an event. A text that is not kept is absent.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A prompt of the user, which begins a turn.
    User(Option<String>),
    /// A message of the agent.
    Says(String),
    /// A thought of the agent.
    Thinks(String),
    /// A plan of the agent: status and text of each entry.
    Plan(Vec<(String, String)>),
    /// A step of calls, sorted.
    Step(Vec<Call>),
    /// The end of the session: the reason, with the limit or the agent's own word.
    Stop(String, Option<String>),
}

/// A call. Two calls are equal if they do the same with the same outcome.
#[derive(Debug, Clone)]
pub struct Call {
    pub kind: ToolKind,
    /// The agent's name of the tool.
    pub name: Option<String>,
    /// The arguments by path, and the outcome under keys with `@`.
    pub details: Vec<(String, String)>,
    /// The items of the sub-agent that the call started.
    pub inner: Vec<Item>,
    /// `seq` of its events.
    pub events: Vec<u64>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.name, &self.details, &self.inner) == (other.kind, &other.name, &other.details, &other.inner)
    }
}

impl Call {
    /// Returns kind and name, as in the text form.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {}", self.kind, value::on_one_line(name)),
            None => self.kind.to_string(),
        }
    }

    /// Returns the kind and the name of the tool for people, or the kind alone if the name is the same word.
    pub fn title(&self) -> String {
        let kind = self.kind.to_string();
        match &self.name {
            Some(name) if name.eq_ignore_ascii_case(&kind) => kind,
            _ => self.label(),
        }
    }

    /// Returns true if both calls are of the same tool.
    pub fn is_of_the_tool_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

//! Golden traces: the Trace of a cell without what differs by chance, accepted once, and compared from then on.
//!
//! Pure but for [`store`]: [`normalise`] makes a [`Shape`] of a Trace, [`form`] writes and reads the text that is
//! reviewed, [`align`] finds what two Shapes have in common, [`differ`] says what they do not, [`set`] knows several.

use serde::{Deserialize, Serialize};

use crate::trace::ToolKind;

pub mod align;
pub mod compare;
pub mod diff;
pub mod form;
pub mod normalise;
mod provenance;
mod redactions;
pub mod set;
pub mod settings;
pub mod store;
mod value;

/// What a trial did, without what differs by chance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shape {
    /// What happened, in order.
    pub items: Vec<Item>,
    /// All tokens; absent where nobody told.
    pub tokens: Option<Range>,
    /// Tokens received, likewise.
    pub output_tokens: Option<Range>,
}

impl Shape {
    /// How many calls, words and plans of the agent it holds; what sub-agents did is part of their calls.
    pub fn done(&self) -> usize {
        let done = |item: &Item| match &item.body {
            Body::Step(calls) => calls.len(),
            Body::Says(_) | Body::Thinks(_) | Body::Plan(_) => 1,
            Body::User(_) | Body::Stop(..) => 0,
        };
        self.items.iter().map(done).sum()
    }
}

/// The least and the most of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Range {
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Range {
    /// One figure.
    pub fn of(figure: u64) -> Self {
        Self { least: figure, most: figure }
    }

    /// Both.
    pub fn with(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// One thing that happened. Two are the same if what happened is, wherever in its Trace it stands.
#[derive(Debug, Clone)]
pub struct Item {
    /// What happened.
    pub body: Body,
    /// `seq` of its events; empty in an accepted snapshot, which does not hold them.
    pub events: Vec<u64>,
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

/// What can happen. A text that is not kept is absent.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The user's prompt: a turn begins.
    User(Option<String>),
    /// The agent speaks.
    Says(String),
    /// The agent shows what it thinks.
    Thinks(String),
    /// The agent shows its plan: status and text of each line.
    Plan(Vec<(String, String)>),
    /// A round of calls, sorted.
    Step(Vec<Call>),
    /// The session ends: the reason, and the limit or word that goes with it.
    Stop(String, Option<String>),
}

/// A call. Two are the same if they do the same with the same outcome.
#[derive(Debug, Clone)]
pub struct Call {
    /// What it does.
    pub kind: ToolKind,
    /// What the agent calls the tool.
    pub name: Option<String>,
    /// Its arguments by their paths, and under keys with `@` what became of it.
    pub details: Vec<(String, String)>,
    /// What the sub-agent did that it started.
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
    /// Kind and name, as they stand in the text form.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {}", self.kind, value::on_one_line(name)),
            None => self.kind.to_string(),
        }
    }

    /// Whether it is a call of the same tool.
    pub fn is_of_the_tool_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

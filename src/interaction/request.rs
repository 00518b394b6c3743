//! A permission request: the known facts about the call that an agent asks about, and the answers it offers.

use serde_json::Value;

use crate::trace::facts::{Command, Fact, Reading, ReportedDetails};
use crate::trace::{FileDiff, PermissionOption, RequestSubject, SubjectFacts, ToolKind, view};

/// A permission request of an agent. Details that the agent did not show are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub kind: Option<ToolKind>,
    /// The agent's name of the tool.
    pub name: Option<String>,
    /// The agent's title of the call.
    pub title: Option<String>,
    /// The paths that the call touches, relative to the workspace, and those that they lead to through symbolic links.
    pub paths: Fact<Vec<String>>,
    /// The arguments of the call.
    pub input: Option<Value>,
    /// The command that the call runs.
    pub command: Command,
    /// The changes that the call would make, if the agent shows them.
    pub diffs: Vec<FileDiff>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
    /// The path of the workspace.
    pub workspace: Option<String>,
    /// The facts of the request and of its announced call that decide its subject.
    pub facts: SubjectFacts,
}

/// Returns the kind of a call. The kind of a call that shows an action and calls itself a change of the mode is unknown.
fn kind_of(kind: Option<ToolKind>, facts: SubjectFacts) -> Option<ToolKind> {
    kind.filter(|kind| *kind != ToolKind::SwitchMode || facts.subject() == RequestSubject::Plan)
}

impl Request {
    pub fn subject(&self) -> RequestSubject {
        self.facts.subject()
    }

    /// Makes the facts about a call, with paths and command from its input, locations, diffs and title.
    pub fn new(name: Option<String>, details: &ReportedDetails<'_>, reading: &Reading) -> Self {
        let facts = SubjectFacts::of(&ReportedDetails { name: name.as_deref(), ..*details });
        let details = ReportedDetails { kind: kind_of(details.kind, facts), ..*details };
        Self {
            kind: details.kind,
            name,
            title: details.title.map(str::to_owned),
            paths: details.paths(reading),
            input: details.input.cloned(),
            command: details.command(reading),
            diffs: details.diffs.to_vec(),
            options: Vec::new(),
            workspace: reading.workspace.clone(),
            facts,
        }
    }

    /// Replaces the facts that decide the subject.
    #[must_use]
    pub fn with_facts(self, facts: SubjectFacts) -> Self {
        Self { kind: kind_of(self.kind, facts), facts, ..self }
    }

    /// Returns true if a text of the request contains a text.
    pub fn shows(&self, text: &str) -> bool {
        let within = |shown: &str| shown.contains(text);
        self.name.as_deref().is_some_and(within)
            || self.title.as_deref().is_some_and(within)
            || self.paths.seen().is_some_and(|paths| paths.iter().any(|path| within(path)))
            || self.command.seen().is_some_and(within)
            || self.input.as_ref().is_some_and(|input| within(&input.to_string()))
    }

    /// Merges the details in a request with the details of the announced call: the request takes precedence, and
    /// missing details come from the announcement. If the request has another input than the announced one, its paths and its
    /// command are those of this input, or were not shown.
    #[must_use]
    pub fn with_request(self, name: Option<String>, details: &ReportedDetails<'_>, reading: &Reading) -> Self {
        let facts = SubjectFacts::of(&ReportedDetails { name: name.as_deref(), ..*details });
        let facts = self.facts.with_request(facts);
        let kind = kind_of(details.kind.or(self.kind), facts);
        let title = details.title.map(str::to_owned).or(self.title);
        let asked = ReportedDetails { kind, ..*details };
        let canonical = |input: &Value| view::canonical(input);
        let has_other_input =
            details.input.map(canonical).is_some_and(|asked| self.input.as_ref().map(canonical) != Some(asked));
        let shows_paths = matches!(asked.paths(reading), Fact::Seen(paths) if !paths.is_empty());
        let command = match asked.command(reading) {
            command @ Command::Seen(_) => command,
            command if has_other_input => command,
            _ => self.command,
        };
        Self {
            kind,
            name: name.or(self.name),
            title,
            paths: if shows_paths || has_other_input { asked.paths(reading) } else { self.paths },
            input: details.input.cloned().or(self.input),
            command,
            diffs: if details.diffs.is_empty() { self.diffs } else { details.diffs.to_vec() },
            options: self.options,
            workspace: self.workspace,
            facts,
        }
    }
}

//! Detects calls that name paths which agents must not see: the cases, the runs, other trials, and later states of the workspace.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::text::plural;
use crate::trace::{Body, Event, ToolCall, view};

/// The maximum number of notices of a trial; more are only counted.
const MAX_NOTICES: usize = 20;

/// The maximum number of paths that are remembered, and their maximum length in bytes.
const MAX_KNOWN: (usize, usize) = (1000, 200);

/// The paths outside a trial that its calls named.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    roots: Vec<PathBuf>,
    own: PathBuf,
    workspace: PathBuf,
    found: Vec<String>,
    more: usize,
    /// Paths that are not outside: calls name the same ones again and again.
    known: HashSet<String>,
}

impl Outside {
    /// Watches for paths below these folders that are not below the trial's own.
    pub fn new(roots: &[PathBuf], own: &Path, workspace: &Path) -> Self {
        let mut all: Vec<PathBuf> = roots.to_vec();
        // A folder may also be named by its real path if a link leads to it.
        all.extend(roots.iter().filter_map(|root| root.canonicalize().ok()));
        all.sort();
        all.dedup();
        Self { roots: all, own: own.to_owned(), workspace: workspace.to_owned(), ..Self::default() }
    }

    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        if self.roots.is_empty() {
            return;
        }
        let text = match &event.body {
            Body::ToolCall(call) => self.named(call).map(|path| {
                let what = call.name.as_deref().or(call.title.as_deref()).unwrap_or(&call.call);
                format!("the call `{what}` ({}) names {path}, which does not belong to the trial", call.kind)
            }),
            Body::ToolResult(result) => {
                let path = result.diffs.iter().find_map(|diff| self.outside(&diff.path));
                path.map(|path| {
                    format!("the call `{}` changed {path}, which does not belong to the trial", result.call)
                })
            }
            _ => None,
        };
        let Some(text) = text else { return };
        if self.found.contains(&text) {
            return;
        }
        if self.found.len() < MAX_NOTICES { self.found.push(text) } else { self.more += 1 }
    }

    /// Returns the findings as notices.
    pub fn notices(self) -> Vec<String> {
        let mut notices = self.found;
        if self.more > 0 {
            notices.push(format!("{} named paths that do not belong to the trial", plural(self.more, "more call")));
        }
        notices
    }

    fn named(&mut self, call: &ToolCall) -> Option<String> {
        let paths = view::paths(call.input.as_ref(), &call.locations, &[], None);
        let path = paths.iter().find_map(|path| self.outside(path));
        let path = path.or_else(|| call.input.as_ref().and_then(|input| self.in_input(input)));
        path.or_else(|| call.title.as_ref().and_then(|title| self.in_text(title)))
    }

    /// Returns the absolute path if it is not the trial's: below one of the folders, or the parent of one.
    fn outside(&mut self, written: &str) -> Option<String> {
        if self.known.contains(written) {
            return None;
        }
        let path = view::normalise(&self.workspace.join(view::of_url(written).as_ref()));
        let deep = path.components().count() > 2;
        let holds = |root: &PathBuf| deep && root.parent() == Some(&path);
        let is = !path.starts_with(&self.own)
            && self.roots.iter().any(|root| path.starts_with(root) || (holds(root) && !self.own.starts_with(&path)));
        if !is && self.known.len() < MAX_KNOWN.0 && written.len() <= MAX_KNOWN.1 {
            self.known.insert(written.to_owned());
        }
        is.then(|| path.display().to_string())
    }

    /// Returns a path in some text of the input, such as a command.
    fn in_input(&mut self, input: &Value) -> Option<String> {
        match input {
            Value::String(text) => self.in_text(text),
            Value::Array(list) => list.iter().find_map(|value| self.in_input(value)),
            Value::Object(map) => map.values().find_map(|value| self.in_input(value)),
            _ => None,
        }
    }

    fn in_text(&mut self, text: &str) -> Option<String> {
        let words = text.split(|c: char| c.is_whitespace() || "'\"`;|&<>()=,:".contains(c));
        let mut paths = words.filter(|word| word.starts_with('/') || word.contains(".."));
        paths.find_map(|path| self.outside(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Location, ToolKind};
    use serde_json::json;

    fn notices(inputs: &[(Value, &[&str])]) -> Vec<String> {
        let roots = ["/p/cases".into(), "/tmp/evals-run-1".into()];
        let own = Path::new("/tmp/evals-run-1/trial-a");
        let mut outside = Outside::new(&roots, own, &own.join("workspace"));
        for (number, (input, locations)) in inputs.iter().enumerate() {
            let call = ToolCall {
                call: format!("c{number}"),
                step: 0,
                kind: ToolKind::Read,
                name: None,
                title: None,
                input: Some(input.clone()),
                without_input: false,
                unknown_kind: false,
                locations: locations.iter().map(|path| Location { path: (*path).to_owned(), line: None }).collect(),
                cwd: None,
            };
            outside.event(&Event { seq: 0, at_ms: 0, parent: None, host: false, body: Body::ToolCall(call) });
        }
        outside.notices()
    }

    #[test]
    fn what_is_the_trial_s_own_or_nobody_s_is_no_matter() {
        let own = [
            (json!({"path": "src/a.rs"}), &["/tmp/evals-run-1/trial-a/workspace/src/a.rs"][..]),
            (json!({"path": "/etc/hosts"}), &[]),
            (json!({"command": "cat /p/casesx/y /p/other; cd /tmp/evals-run-1/trial-a/home"}), &[]),
            (json!({"path": "../home/x"}), &[]),
            (json!({"path": "/tmp"}), &[]),
            (json!({"path": "/"}), &[]),
            (json!({"path": "/p"}), &[]),
            (json!({"path": ".."}), &[]),
        ];
        assert_eq!(notices(&own), Vec::<String>::new());
    }

    #[test]
    fn cases_and_other_trials_are_told_once_each() {
        let found = notices(&[
            (json!({"path": "../../../../p/cases/a.hidden/t.py"}), &[]),
            (json!({"path": "x"}), &["/tmp/evals-run-1/trial-b/workspace/x"]),
            (json!({"command": ["sh", "-c", "cat '/p/cases/a.yaml'; true"]}), &[]),
            (json!({"deep": [{"text": "see /tmp/evals-run-1/trial-a/../trial-b"}]}), &[]),
        ]);
        let paths: Vec<&str> = found.iter().map(|text| text.split(" names ").nth(1).unwrap()).collect();
        assert_eq!(
            paths,
            [
                "/p/cases/a.hidden/t.py, which does not belong to the trial",
                "/tmp/evals-run-1/trial-b/workspace/x, which does not belong to the trial",
                "/p/cases/a.yaml, which does not belong to the trial",
                "/tmp/evals-run-1/trial-b, which does not belong to the trial",
            ]
        );
        let many: Vec<_> = (0..30).map(|n| (json!({"path": format!("/p/cases/{n}")}), &[][..])).collect();
        assert_eq!(notices(&many).len(), MAX_NOTICES + 1);
    }
}

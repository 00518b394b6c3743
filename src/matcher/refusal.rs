//! Finds matchers that are meaningless: they have no key, or an empty expectation.

use serde_json::Map;

use super::Matcher;
use super::arguments::MatchArgs;

/// Returns the first meaningless matcher of a list. The text continues a sentence that begins with the grader's
/// name.
pub fn refuse_list<'a>(key: &str, matchers: impl IntoIterator<Item = &'a Matcher>) -> Option<String> {
    let mut numbered = matchers.into_iter().zip(1..);
    numbered.find_map(|(matcher, n)| Some(format!("checks nothing: entry {n} of `{key}` {}", matcher.refusal()?)))
}

impl Matcher {
    /// Returns why the matcher is meaningless: it has no key, or an empty expectation.
    pub fn refusal(&self) -> Option<String> {
        let empty_args = self.args.as_ref().is_some_and(Map::is_empty);
        if empty_args && !self.match_args.as_ref().is_some_and(MatchArgs::counts_keys) {
            return Some("has empty `args`".to_owned());
        }
        self.refusal_as_expected()
    }

    /// Returns the reason why the matcher is meaningless in an expected list, in which a call without arguments may
    /// be expected.
    pub fn refusal_as_expected(&self) -> Option<String> {
        let Self { kind, name, path, input, command, runs, args, match_args, status, agent, compiled: _ } = self;
        let empty = |text: Option<String>| text.is_some_and(|text| text.is_empty());
        let has_args = args.as_ref().is_some_and(|args| !args.is_empty());
        let keyless = kind.is_none() && status.is_none() && agent.is_none() && runs.is_none() && !has_args;
        let counts_keys = args.is_some() && match_args.as_ref().is_some_and(MatchArgs::counts_keys);
        let wrong_args = match (args, match_args) {
            (Some(args), Some(rules)) => {
                rules.refusal(args).map(|why| format!("has `args` that cannot be compared: {why}"))
            }
            (None, Some(_)) => Some("has `match-args` but no `args`".to_owned()),
            _ => None,
        };
        if wrong_args.is_some() {
            return wrong_args;
        }
        let told =
            if keyless && !counts_keys && name.is_none() && path.is_none() && input.is_none() && command.is_none() {
                Some("has no key, so it would match any call; say which calls, for example `kind: edit`")
            } else if empty(name.as_ref().map(ToString::to_string)) {
                Some("has an empty `name`")
            } else if empty(path.as_ref().map(ToString::to_string)) {
                Some("has an empty `path`")
            } else if empty(input.as_ref().map(ToString::to_string)) {
                Some("has an empty `input`")
            } else if empty(command.as_ref().map(ToString::to_string)) {
                Some("has an empty `command`")
            } else if runs.as_ref().is_some_and(|list| list.iter().any(|it| it.to_string().is_empty())) {
                Some("has an empty `runs`")
            } else {
                None
            };
        told.map(str::to_owned)
    }
}

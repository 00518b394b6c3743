//! Which answer a policy gives to a request. Pure: the same requests in the same order get the same answers.

use serde_json::{Map, Value};

use super::{Answer, Interaction, Rule, When};
use crate::trace::view;
use crate::trace::{FileDiff, Location, ToolKind};

/// What is known of the call that permission is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// What the tool does.
    pub kind: Option<ToolKind>,
    /// What the agent calls it.
    pub name: Option<String>,
    /// The agent's line for people.
    pub title: Option<String>,
    /// The paths it touches, relative to the workspace.
    pub paths: Vec<String>,
    /// Its arguments.
    pub input: Option<Value>,
    /// The command it runs.
    pub command: Option<String>,
}

impl Asked {
    /// What a call is asked about, with paths and command taken from its input, locations and diffs.
    pub fn new(
        kind: ToolKind,
        name: Option<String>,
        title: Option<String>,
        input: Option<Value>,
        locations: &[Location],
        diffs: &[FileDiff],
        workspace: Option<&str>,
    ) -> Self {
        let paths = view::paths(input.as_ref(), locations, diffs, workspace);
        let command = view::command(input.as_ref());
        Self { kind: Some(kind), name, title, paths, input, command }
    }
}

/// For each rule, how many requests its other conditions matched so far: what `nth` counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(Vec<u32>);

/// What a policy decided, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The answer.
    pub answer: Answer,
    /// The policy's word.
    pub policy: &'static str,
    /// The rule that matched: its name, or `rules[n]`.
    pub rule: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// Keys of the call's input that shall be others, where the rule changes some.
    pub updated_input: Option<Map<String, Value>>,
}

/// Decides a request. Where a policy has nobody to ask here (`manual`, `llm`) the request is rejected:
/// those who can ask do so before they come here.
///
/// A rule's `nth` counts every request that the rest of its `when` matches, also those that an earlier rule answered.
pub fn decide(policy: &Interaction, asked: &Asked, counters: &mut Counters) -> Decision {
    let plain = |answer, reason: &str| Decision {
        answer,
        policy: policy.word(),
        rule: None,
        reason: reason.to_owned(),
        updated_input: None,
    };
    match policy {
        Interaction::AutoApprove => plain(Answer::AllowOnce, "every request is approved"),
        Interaction::AutoReject => plain(Answer::RejectOnce, "every request is rejected"),
        Interaction::Manual => plain(Answer::RejectOnce, "nobody is there to answer"),
        Interaction::Llm(llm) => plain(llm.default.unwrap_or_default().into(), "no model is there to answer"),
        Interaction::Use(_) => plain(Answer::RejectOnce, "the policy of that name was not read"),
        Interaction::Scripted(scripted) => decide_by_rule(policy, asked, counters)
            .unwrap_or_else(|| plain(scripted.default.unwrap_or_default().into(), "no rule matches")),
    }
}

/// Decides a request by a rule; where none matches nothing is decided.
pub fn decide_by_rule(policy: &Interaction, asked: &Asked, counters: &mut Counters) -> Option<Decision> {
    let Interaction::Scripted(scripted) = policy else { return None };
    let (number, rule) = first_match(&scripted.rules, asked, counters)?;
    let name = rule.name.clone().unwrap_or_else(|| format!("rules[{number}]"));
    let reason = format!("{name} matches");
    let updated_input = rule.updated_input.clone();
    Some(Decision { answer: rule.answer, policy: policy.word(), rule: Some(name), reason, updated_input })
}

fn first_match<'a>(rules: &'a [Rule], asked: &Asked, counters: &mut Counters) -> Option<(usize, &'a Rule)> {
    counters.0.resize(rules.len(), 0);
    let mut first = None;
    for (number, (rule, count)) in rules.iter().zip(&mut counters.0).enumerate() {
        if !matches(&rule.when, asked) {
            continue;
        }
        *count = count.saturating_add(1);
        if first.is_none() && rule.when.nth.is_none_or(|nth| nth == *count) {
            first = Some((number, rule));
        }
    }
    first
}

/// Whether everything but `nth` holds. What is not known matches nothing.
fn matches(when: &When, asked: &Asked) -> bool {
    let text = |value: &Option<String>, holds: &dyn Fn(&str) -> bool| value.as_deref().is_some_and(holds);
    when.kind.is_none_or(|kind| asked.kind == Some(kind))
        && when.name.as_ref().is_none_or(|glob| text(&asked.name, &|name| glob.is_match(name)))
        && when.title.as_ref().is_none_or(|glob| text(&asked.title, &|title| glob.is_match(title)))
        && when.path.as_ref().is_none_or(|glob| asked.paths.iter().any(|path| glob.is_match(path)))
        && when.command.as_ref().is_none_or(|regex| text(&asked.command, &|command| regex.is_match(command)))
        && when
            .input
            .as_ref()
            .is_none_or(|regex| asked.input.as_ref().is_some_and(|input| regex.is_match(&view::canonical(input))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy(yaml: &str) -> Interaction {
        yaml.parse().unwrap()
    }

    fn answers(policy: &Interaction, asked: &[Asked]) -> Vec<(Answer, Option<String>)> {
        let mut counters = Counters::default();
        let decisions = asked.iter().map(|asked| decide(policy, asked, &mut counters));
        decisions.map(|decision| (decision.answer, decision.rule)).collect()
    }

    fn run(command: &str) -> Asked {
        Asked::new(
            ToolKind::Execute,
            Some("Bash".into()),
            None,
            Some(json!({"command": command})),
            &[],
            &[],
            Some("/w"),
        )
    }

    fn edit(path: &str) -> Asked {
        Asked::new(
            ToolKind::Edit,
            Some("Edit".into()),
            None,
            Some(json!({"path": path, "n": 1.0})),
            &[],
            &[],
            Some("/w"),
        )
    }

    #[test]
    fn the_first_rule_that_matches_answers() {
        let policy = policy(
            "scripted:
               rules:
                 - {when: {command: '^rm\\b'}, answer: reject-always, name: no rm}
                 - {when: {kind: execute}, answer: allow-always}
                 - {when: {path: 'src/**', input: '\"n\":1,'}, answer: allow-once}
               default: cancel",
        );
        assert_eq!(
            answers(
                &policy,
                &[run("rm -rf x"), run("ls"), edit("/w/src/a/b.rs"), edit("/etc/src/a"), Asked::default()]
            ),
            [
                (Answer::RejectAlways, Some("no rm".into())),
                (Answer::AllowAlways, Some("rules[1]".into())),
                (Answer::AllowOnce, Some("rules[2]".into())),
                (Answer::Cancel, None),
                (Answer::Cancel, None),
            ]
        );
    }

    #[test]
    fn nth_counts_requests_whichever_rule_answered_them() {
        let policy = policy(
            "scripted:
               rules:
                 - {when: {kind: execute, nth: 1}, answer: allow-once}
                 - {when: {name: B*, nth: 2}, answer: reject-once}
               default: allow",
        );
        let got: Vec<Answer> =
            answers(&policy, &[run("a"), edit("b"), run("c"), run("d")]).into_iter().map(|a| a.0).collect();
        assert_eq!(got, [Answer::AllowOnce, Answer::AllowOnce, Answer::RejectOnce, Answer::AllowOnce]);
    }

    #[test]
    fn without_rules_and_without_anyone_to_ask_requests_are_rejected() {
        for policy in
            [policy("scripted: {}"), policy("manual"), policy("llm: {model: 'anthropic:m'}"), policy("auto-reject")]
        {
            assert_eq!(answers(&policy, &[run("ls")])[0].0, Answer::RejectOnce, "{policy:?}");
        }
        assert_eq!(answers(&policy("auto-approve"), &[run("ls")])[0].0, Answer::AllowOnce);
    }
}

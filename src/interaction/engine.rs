//! Decides requests by a policy. Pure: the same requests in the same order get the same answers.

use serde_json::{Map, Value};

use super::{Answer, Interaction, Rule, When};
use crate::judgement::Judgement;
use crate::matching::{command_fits, name_fits, within_command};
use crate::trace::facts::{Command, Fact, Reading, Told, is_cut};
use crate::trace::{ToolKind, view};
use crate::values::Below;

/// The known facts about the call that permission is requested for. What the agent did not show is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The kind of the tool.
    pub kind: Option<ToolKind>,
    /// The agent's name of the tool.
    pub name: Option<String>,
    /// The agent's title of the call.
    pub title: Option<String>,
    /// The paths it touches, relative to the workspace.
    pub paths: Fact<Vec<String>>,
    /// Its arguments.
    pub input: Option<Value>,
    /// The command it runs.
    pub command: Command,
}

impl Asked {
    /// Makes the facts about a call, with paths and command from its input, locations, diffs and title.
    pub fn new(name: Option<String>, told: &Told<'_>, reading: &Reading) -> Self {
        Self {
            kind: told.kind,
            name,
            title: told.title.map(str::to_owned),
            paths: told.paths(reading),
            input: told.input.cloned(),
            command: told.command(reading),
        }
    }

    /// Merges the details in a request with those of the announced call: what the request shows counts, and the
    /// rest is as announced.
    #[must_use]
    pub fn with_request(self, name: Option<String>, told: &Told<'_>, reading: &Reading) -> Self {
        let kind = told.kind.or(self.kind);
        let title = told.title.map(str::to_owned).or(self.title);
        let asked = Told { kind, ..*told };
        let shows_paths = matches!(asked.paths(reading), Fact::Seen(paths) if !paths.is_empty());
        let command = match asked.command(reading) {
            command @ Command::Seen(_) => command,
            other if told.input.is_some() && self.command.seen().is_none() => other,
            _ => self.command,
        };
        Self {
            kind,
            name: name.or(self.name),
            title,
            paths: if shows_paths { asked.paths(reading) } else { self.paths },
            input: told.input.cloned().or(self.input),
            command,
        }
    }
}

/// For each rule, how many requests matched its other conditions so far, and how many more may have matched:
/// the count for `nth`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(Vec<(u32, u32)>);

/// The decision of a policy, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The answer.
    pub answer: Answer,
    /// The policy's name.
    pub policy: &'static str,
    /// The rule that matched: its name, or `rules[n]`.
    pub rule: Option<String>,
    /// The reason, as text.
    pub reason: String,
    /// Keys of the call's input that the rule replaces.
    pub updated_input: Option<Map<String, Value>>,
    /// A notice for the trace.
    pub notice: Option<String>,
}

/// Decides a request. If a policy needs a person or a model (`manual`, `llm`), the request is rejected: callers
/// that can ask do so before.
///
/// A rule's `nth` counts every request that the rest of its `when` matches, including those that an earlier
/// rule answered.
pub fn decide(policy: &Interaction, asked: &Asked, counters: &mut Counters) -> Decision {
    let plain = |answer, reason: &str| Decision {
        answer,
        policy: policy.word(),
        rule: None,
        reason: reason.to_owned(),
        updated_input: None,
        notice: None,
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

/// Decides a request by a rule, or returns `None` if none matches. If a rule depends on what the agent did not
/// show, the request is rejected.
pub fn decide_by_rule(policy: &Interaction, asked: &Asked, counters: &mut Counters) -> Option<Decision> {
    let Interaction::Scripted(scripted) = policy else { return None };
    let (number, rule, matches) = first_match(&scripted.rules, asked, counters)?;
    let name = rule.name.clone().unwrap_or_else(|| format!("rules[{number}]"));
    if matches.is_unknown() {
        let missing = missing(&rule.when, asked);
        let reason = format!("{name} cannot be decided: the agent did not show {missing}");
        let notice = Some(format!("the request is rejected, because {reason}"));
        let (answer, policy) = (Answer::RejectOnce, policy.word());
        return Some(Decision { answer, policy, rule: Some(name), reason, updated_input: None, notice });
    }
    let reason = format!("{name} matches");
    let updated_input = rule.updated_input.clone();
    Some(Decision { answer: rule.answer, policy: policy.word(), rule: Some(name), reason, updated_input, notice: None })
}

/// Returns the first rule that matches, or may match.
fn first_match<'a>(rules: &'a [Rule], asked: &Asked, counters: &mut Counters) -> Option<(usize, &'a Rule, Judgement)> {
    counters.0.resize(rules.len(), (0, 0));
    let mut first = None;
    for (number, (rule, (surely, perhaps))) in rules.iter().zip(&mut counters.0).enumerate() {
        let matched = matches(&rule.when, asked);
        // The range of the number that this request may have.
        let (least, most) = (surely.saturating_add(1), surely.saturating_add(*perhaps).saturating_add(1));
        match matched {
            Judgement::False => continue,
            Judgement::True => *surely = surely.saturating_add(1),
            Judgement::Unknown => *perhaps = perhaps.saturating_add(1),
        }
        let counted = |nth: u32| match (least..=most).contains(&nth) {
            false => Judgement::False,
            true if least == most => Judgement::True,
            true => Judgement::Unknown,
        };
        let decides = matched.and(|| rule.when.nth.map_or(Judgement::True, counted));
        if first.is_none() && decides.may_be_true() {
            first = Some((number, rule, decides));
        }
    }
    first
}

/// Returns whether all conditions except `nth` hold. A condition about what was not shown is unknown.
fn matches(when: &When, asked: &Asked) -> Judgement {
    Judgement::all(conditions(when, asked).into_iter().map(|(_, holds)| holds))
}

/// Returns the conditions of a rule except `nth`, each with its subject.
fn conditions(when: &When, asked: &Asked) -> Vec<(&'static str, Judgement)> {
    let When { kind, name, title, path, input, command, nth: _ } = when;
    let mut found = Vec::new();
    if let Some(kind) = kind {
        found.push(("the kind", asked.kind.map_or(Judgement::Unknown, |is| (is == *kind).into())));
    }
    if let Some(glob) = name {
        found.push(("the tool's name", name_fits(glob, asked.name.as_deref())));
    }
    if let Some(glob) = title {
        found.push(("the title", name_fits(glob, asked.title.as_deref())));
    }
    if let Some(glob) = path {
        let removes = matches!(asked.kind, Some(ToolKind::Delete | ToolKind::Move));
        let fits = |path: &String| match glob.is_match(path) {
            true => Judgement::True,
            // Of a folder the rule may mean a part.
            false if removes && glob.lies_below(path) == Below::All => Judgement::Unknown,
            false => Judgement::False,
        };
        let holds = asked.paths.seen().map_or(Judgement::Unknown, |paths| Judgement::any(paths.iter().map(fits)));
        found.push(("which paths", holds));
    }
    if let Some(pattern) = command {
        found.push(("the command", command_fits(pattern, &asked.command)));
    }
    if let Some(pattern) = input {
        let holds = match &asked.input {
            Some(input) if pattern.is_match(&view::canonical(input)) => Judgement::True,
            Some(input) if !is_cut(input) => Judgement::False,
            Some(_) => Judgement::Unknown,
            None => within_command(pattern, asked.command.seen()),
        };
        found.push(("the input", holds));
    }
    found
}

/// Returns what a rule needs and the agent did not show.
fn missing(when: &When, asked: &Asked) -> String {
    let unknown = conditions(when, asked).into_iter().filter(|(_, holds)| holds.is_unknown());
    let names: Vec<&str> = unknown.map(|(name, _)| name).collect();
    if names.is_empty() { "how many requests matched before".to_owned() } else { names.join(" and ") }
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

    fn of(kind: ToolKind, name: &str, input: Option<&Value>) -> Asked {
        let reading = Reading { workspace: Some("/w".to_owned()), command_title: None };
        Asked::new(Some(name.into()), &Told { kind: Some(kind), input, ..Told::default() }, &reading)
    }

    fn run(command: &str) -> Asked {
        let input = json!({"command": command});
        of(ToolKind::Execute, "Bash", Some(&input))
    }

    fn edit(path: &str) -> Asked {
        let input = json!({"path": path, "n": 1.0});
        of(ToolKind::Edit, "Edit", Some(&input))
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
                &[
                    run("rm -rf x"),
                    run("ls"),
                    edit("/w/src/a/b.rs"),
                    edit("/etc/src/a"),
                    of(ToolKind::Think, "T", Some(&json!({})))
                ]
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

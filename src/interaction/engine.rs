//! Decides requests by a policy. Pure: the same requests in the same order get the same answers.

use super::{Answer, Decision, Interaction, Request, Rule, When};
use crate::judgement::Judgement;
use crate::matcher::paths::{pattern_may_fit, place_fits};
use crate::matching::{command_fits, name_fits, runs_fit, runs_only, within_command};
use crate::trace::facts::is_cut;
use crate::trace::{ToolKind, view};
use crate::values::Below;

/// For each rule, the number of earlier requests that matched its other conditions, and the number that may have
/// matched them: the count for `nth`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters(Vec<(u32, u32)>);

/// Decides a request. If a policy needs a person or a model (`manual`, `llm`), the request is rejected: callers
/// that can ask do so before.
///
/// A rule's `nth` counts every request that the rest of its `when` matches, including those that an earlier
/// rule answered.
pub fn decide(policy: &Interaction, request: &Request, counters: &mut Counters) -> Decision {
    let plain = |answer, reason: &str| Decision::new(answer, policy.word(), reason);
    match policy {
        Interaction::AutoApprove => plain(Answer::AllowOnce, "every request is approved"),
        Interaction::AutoReject => plain(Answer::RejectOnce, "every request is rejected"),
        Interaction::Manual => plain(Answer::RejectOnce, "no person can answer here"),
        Interaction::Llm(llm) => plain(llm.default.unwrap_or_default().into(), "no model can answer here"),
        Interaction::Use(_) => plain(Answer::RejectOnce, "the named policy was not loaded"),
        Interaction::Scripted(scripted) => decide_by_rule(policy, request, counters)
            .unwrap_or_else(|| plain(scripted.default.unwrap_or_default().into(), "no rule matches")),
    }
}

/// Decides a request by a rule, or returns `None` if none matches. If a rule depends on a value that the agent did
/// not show, the request is rejected.
pub fn decide_by_rule(policy: &Interaction, request: &Request, counters: &mut Counters) -> Option<Decision> {
    let Interaction::Scripted(scripted) = policy else { return None };
    let (number, rule, matches) = first_match(&scripted.rules, request, counters)?;
    let name = rule.name.clone().unwrap_or_else(|| format!("rules[{number}]"));
    if matches.is_unknown() {
        let reason = match shown_mark(rule, request) {
            Some(mark) => {
                format!("{name} cannot be decided: it contains a secret, which the request shows as {mark}")
            }
            None => format!("{name} cannot be decided: the agent did not show {}", missing(rule, request)),
        };
        let notice = Some(format!("the request is rejected, because {reason}"));
        return Some(Decision { notice, ..Decision::new(Answer::RejectOnce, policy.word(), reason).with_rule(name) });
    }
    let decision = Decision::new(rule.answer, policy.word(), format!("{name} matches")).with_rule(name);
    Some(Decision { updated_input: rule.updated_input.clone(), ..decision })
}

/// Returns the first rule that matches, or may match.
fn first_match<'a>(
    rules: &'a [Rule],
    request: &Request,
    counters: &mut Counters,
) -> Option<(usize, &'a Rule, Judgement)> {
    counters.0.resize(rules.len(), (0, 0));
    let mut first = None;
    for (number, (rule, (surely, perhaps))) in rules.iter().zip(&mut counters.0).enumerate() {
        let matched = matches(rule, request);
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

/// The subject of the condition that is not about a text.
const THE_KIND: &str = "the kind";

/// Returns whether all conditions except `nth` hold. A condition about a value that the agent did not show is unknown.
fn matches(rule: &Rule, request: &Request) -> Judgement {
    Judgement::all(conditions(rule, request).into_iter().map(|(_, holds)| holds))
}

/// Returns the conditions of a rule except `nth`, each with its subject.
///
/// A rule that allows is about every path and every command of the call, because it allows the whole call. Any other rule is
/// about one of them.
fn conditions(rule: &Rule, request: &Request) -> Vec<(&'static str, Judgement)> {
    let When { kind, name, title, path, input, command, runs, nth: _ } = &rule.when;
    let allows = matches!(rule.answer, Answer::AllowOnce | Answer::AllowAlways);
    let mut found = Vec::new();
    if let Some(kind) = kind {
        found.push((THE_KIND, request.kind.map_or(Judgement::Unknown, |is| (is == *kind).into())));
    }
    if let Some(glob) = name {
        found.push(("the tool's name", name_fits(glob, request.name.as_deref())));
    }
    if let Some(glob) = title {
        found.push(("the title", name_fits(glob, request.title.as_deref())));
    }
    if let Some(glob) = path {
        let (kind, workspace) = (request.kind.unwrap_or(ToolKind::Other), request.workspace.as_deref());
        let removes = matches!(kind, ToolKind::Delete | ToolKind::Move);
        // If the call affects a whole folder, and the rule a part of it, the rule is undecided.
        let holds_part = |path: &str| match removes && glob.lies_below(path) == Below::All {
            true => Judgement::Unknown,
            false => Judgement::False,
        };
        let place = |path: &str| place_fits(glob, path, kind, false, workspace);
        // A rule that allows `src/*` does not allow all files of `src/**`.
        let covers = |path: &str| match !allows || !path.contains("**") || place(&path.replace("**", "x/y")).is_true() {
            true => Judgement::True,
            false => Judgement::Unknown,
        };
        let fits = |path: &String| place(path).and(|| covers(path)).or(|| holds_part(path));
        let searched = (kind, request.name.as_deref(), request.input.as_ref());
        let holds = match request.paths.seen() {
            None => Judgement::Unknown,
            Some(paths) if allows && !paths.is_empty() => Judgement::all(paths.iter().map(fits)),
            Some(_) if allows => Judgement::False,
            Some(paths) => {
                Judgement::any(paths.iter().map(fits)).or(|| pattern_may_fit(glob, searched, None, workspace))
            }
        };
        found.push(("the paths", holds));
    }
    if let Some(pattern) = command {
        found.push(("the command", command_fits(pattern, &request.command)));
    }
    if let Some(patterns) = runs {
        let tool = request.name.as_deref();
        let holds = match allows {
            true => runs_only(patterns, &request.command, tool),
            false => runs_fit(patterns, &request.command, tool),
        };
        found.push(("the name of each program that the command runs", holds));
    }
    if let Some(pattern) = input {
        let holds = match &request.input {
            Some(input) if pattern.is_match(&view::canonical(input)) => Judgement::True,
            Some(input) if !is_cut(input) => Judgement::False,
            Some(_) => Judgement::Unknown,
            None => within_command(pattern, request.command.seen()),
        };
        found.push(("the input", holds));
    }
    if shown_mark(rule, request).is_some() {
        let no_match = found.iter_mut().filter(|(what, holds)| *what != THE_KIND && *holds == Judgement::False);
        no_match.for_each(|(_, holds)| *holds = Judgement::Unknown);
    }
    found
}

/// Returns the mark that replaces a secret of the rule, if the request shows it.
fn shown_mark<'a>(rule: &'a Rule, request: &Request) -> Option<&'a str> {
    rule.mark.as_deref().filter(|mark| request.shows(mark))
}

/// Returns the values that a rule needs and the agent did not show.
fn missing(rule: &Rule, request: &Request) -> String {
    let unknown = conditions(rule, request).into_iter().filter(|(_, holds)| holds.is_unknown());
    let names: Vec<&str> = unknown.map(|(name, _)| name).collect();
    if names.is_empty() { "the number of earlier matching requests".to_owned() } else { names.join(" and ") }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::trace::facts::{Reading, ReportedDetails};

    fn policy(yaml: &str) -> Interaction {
        yaml.parse().unwrap()
    }

    fn answers(policy: &Interaction, asked: &[Request]) -> Vec<(Answer, Option<String>)> {
        let mut counters = Counters::default();
        let decisions = asked.iter().map(|asked| decide(policy, asked, &mut counters));
        decisions.map(|decision| (decision.answer, decision.by.rule)).collect()
    }

    fn of(kind: ToolKind, name: &str, input: Option<&Value>) -> Request {
        let reading = Reading { workspace: Some("/w".to_owned()), ..Reading::default() };
        Request::new(
            Some(name.into()),
            &ReportedDetails { kind: Some(kind), input, ..ReportedDetails::default() },
            &reading,
        )
    }

    fn run(command: &str) -> Request {
        let input = json!({"command": command});
        of(ToolKind::Execute, "Bash", Some(&input))
    }

    fn edit(path: &str) -> Request {
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
    fn a_rule_that_allows_is_about_every_path_and_one_that_rejects_about_any() {
        let moves = |from: &str, to: &str| of(ToolKind::Move, "Move", Some(&json!({"from": from, "to": to})));
        let inside = policy("scripted: {rules: [{when: {path: 'src/**'}, answer: allow-once}]}");
        let secret = policy("scripted: {rules: [{when: {path: 'src/**'}, answer: reject-once}], default: allow}");
        for (asked, allowed, rejected) in [
            (moves("src/a", "src/b"), true, true),
            (moves("src/a", "/etc/b"), false, true),
            (moves("/etc/a", "src/b"), false, true),
            (moves("/etc/a", "/etc/b"), false, false),
            (run("ls"), false, false),
        ] {
            assert_eq!(answers(&inside, std::slice::from_ref(&asked))[0].0 == Answer::AllowOnce, allowed, "{asked:?}");
            assert_eq!(
                answers(&secret, std::slice::from_ref(&asked))[0].0 == Answer::RejectOnce,
                rejected,
                "{asked:?}"
            );
        }
    }

    #[test]
    fn a_rule_that_allows_is_about_every_command_of_a_line_and_one_that_rejects_about_any() {
        let git = policy("scripted: {rules: [{when: {runs: '^git (status|diff)( |$)'}, answer: allow-once}]}");
        let rm = policy("scripted: {rules: [{when: {runs: ['^rm ', '^mv ']}, answer: reject-once}], default: allow}");
        for (line, allowed, rejected) in [
            ("git status", true, false),
            ("git status && git diff a", true, false),
            ("git status; rm a", false, true),
            ("git diff $(rm a)", false, true),
            ("sudo git status", false, false),
            ("git commit -m 'rm a'", false, false),
            ("bash -c 'mv a b'", false, true),
            // A program that is not shown decides neither rule, so the request is rejected.
            ("$X a", false, true),
            ("git status; $X", false, true),
        ] {
            let asked = run(line);
            assert_eq!(answers(&git, std::slice::from_ref(&asked))[0].0 == Answer::AllowOnce, allowed, "{line}");
            assert_eq!(answers(&rm, std::slice::from_ref(&asked))[0].0 == Answer::RejectOnce, rejected, "{line}");
        }
    }

    #[test]
    fn the_name_of_the_tool_shows_the_language_of_its_commands() {
        let rm = policy("scripted: {rules: [{when: {runs: '^rm '}, answer: reject-once}], default: allow}");
        // A variable in the place of a command is a value only in PowerShell.
        let input = json!({"command": "Get-Item a; $x -eq 1"});
        for (tool, allowed) in [("Bash", false), ("powershell", true)] {
            let asked = of(ToolKind::Execute, tool, Some(&input));
            assert_eq!(answers(&rm, &[asked])[0].0 == Answer::AllowOnce, allowed, "{tool}");
        }
    }

    #[test]
    fn another_input_of_a_request_is_not_decided_by_the_announced_one() {
        let reading = Reading { workspace: Some("/w".to_owned()), ..Reading::default() };
        let ask = |announced: &Request, input: &Value| {
            let details = ReportedDetails { input: Some(input), ..ReportedDetails::default() };
            announced.clone().with_request(None, &details, &reading)
        };
        let edits = policy("scripted: {rules: [{when: {kind: edit, path: 'src/**'}, answer: allow-once}]}");
        let announced = edit("src/a");
        for (input, allowed) in [
            (json!({"file_path": "/w/src/a", "diff": "x"}), true),
            (json!({"path": "src/a", "n": 1}), true),
            (json!({"path": {"file": "/etc/passwd"}}), false),
            (json!("/etc/passwd"), false),
            (json!({"path": 5}), false),
            (json!({"paths": ["src/a", ["../x"]]}), false),
            (json!({"target": "/etc/passwd"}), false),
            (json!({"path": "src/a", "destination": {"p": "/etc/x"}}), false),
            (json!({"patch": "--- a/etc\n+++ b/etc\n"}), false),
        ] {
            let answer = answers(&edits, &[ask(&announced, &input)]).remove(0).0;
            assert_eq!(answer, if allowed { Answer::AllowOnce } else { Answer::RejectOnce }, "{input}");
        }
        let commands = policy("scripted: {rules: [{when: {command: '^git status$'}, answer: allow-once}]}");
        let announced = run("git status");
        for (input, allowed) in [
            (json!({"command": "git status", "description": "x"}), true),
            (json!({"command": "git status", "commands": ["git status"]}), true),
            (json!({"command": "git status", "script": "rm -rf x"}), false),
            (json!({"command": "git status", "params": {"command": "rm -rf x"}}), false),
            (json!({"command": "git status", "args": {"x": "; rm"}}), false),
            (json!({"command": ["git status", ["; rm -rf x"]]}), false),
            (json!({"command": {"cmd": "rm -rf x"}}), false),
            (json!({"code": "rm -rf x"}), false),
            (json!(["rm", "-rf"]), false),
        ] {
            let answer = answers(&commands, &[ask(&announced, &input)]).remove(0).0;
            assert_eq!(answer, if allowed { Answer::AllowOnce } else { Answer::RejectOnce }, "{input}");
        }
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
        let decisions: Vec<Answer> =
            answers(&policy, &[run("a"), edit("b"), run("c"), run("d")]).into_iter().map(|a| a.0).collect();
        assert_eq!(decisions, [Answer::AllowOnce, Answer::AllowOnce, Answer::RejectOnce, Answer::AllowOnce]);
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

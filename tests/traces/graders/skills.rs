//! `skills`: which calls use a skill, and what the agent did not show.

use super::Expect::{Fail, Pass, Ungraded};
use super::{Trial, check};

/// A harness with every form of a sign.
const HARNESS: &str = r#"
name: mine
adapter: acp
command: [mine]
skills:
  project: .mine/skills
  used-by:
    - {name: Skill, args: {skill: "{skill}"}}
    - {name: "load_{skill}"}
    - {kind: read, path: "**/.mine/skills/{skill}/SKILL.md"}
    - {kind: execute, command: 'cat [^;|<>]*/skills/{skill}/SKILL\.md'}
    - {name: Fetch, input: '"skill://{skill}/'}
"#;

/// A session of one call for each line: `tool_call` without `seq`, and the status of its result.
fn calls(calls: &[(&str, &str)]) -> Trial {
    let mut text = String::new();
    for (n, (call, status)) in calls.iter().enumerate() {
        let (seq, after) = (2 * n, 2 * n + 1);
        text += &format!("{{\"seq\":{seq},\"type\":\"tool_call\",\"call\":\"c{n}\",\"step\":{n},{call}}}\n");
        text += &format!("{{\"seq\":{after},\"type\":\"tool_result\",\"call\":\"c{n}\",\"status\":\"{status}\"}}\n");
    }
    let end = 2 * calls.len();
    text += &format!("{{\"seq\":{end},\"type\":\"stop\",\"reason\":\"end_turn\",\"output\":\"\"}}\n");
    Trial::of(&text).of_harness(HARNESS)
}

fn skill(name: &str) -> String {
    format!(r#""kind":"other","name":"Skill","input":{{"skill":"{name}","args":"b"}}"#)
}

fn read(path: &str) -> String {
    format!(r#""kind":"read","name":"Read","input":{{"file_path":"{path}"}}"#)
}

fn run(command: &str) -> String {
    format!(r#""kind":"execute","name":"Bash","input":{{"command":"{command}"}}"#)
}

#[test]
fn a_skill_is_used_by_a_call_that_did_not_fail() {
    let one = |call: &str, status| calls(&[(call, status)]);
    for call in [
        skill("a"),
        read("/w/.mine/skills/a/SKILL.md"),
        read(".mine/skills/a/SKILL.md"),
        read("/home/u/.mine/skills/a/SKILL.md"),
        run("cat /home/u/.mine/skills/a/SKILL.md"),
        run("cat x /y/skills/b/SKILL.md .mine/skills/a/SKILL.md; ls"),
        r#""kind":"other","name":"load_a","input":{}"#.to_owned(),
        r#""kind":"fetch","name":"Fetch","input":{"url":"skill://a/text"}"#.to_owned(),
    ] {
        let used = one(&call, "ok");
        check(
            &used,
            &[
                ("skills: {used: [a]}", Pass(&[0, 1])),
                ("skills: {not-used: [a]}", Fail(0.0, &[0, 1], "the skill `a` was used (event 0)")),
                ("skills: {only: [a, b]}", Pass(&[])),
                (
                    "skills: {only: [c, b]}",
                    Fail(0.0, &[0, 1], "only `c`, `b` may be used, and the agent used `a` (event 0)"),
                ),
                ("skills: {used: [A]}", Fail(0.0, &[], "the skill `A` was not used")),
                ("skills: {not-used: [a-b, ab, A, SKILL, skills]}", Pass(&[])),
            ],
        );
        for (status, how) in [("error", "failed or was refused"), ("denied", "event 0"), ("cancelled", "event 0")] {
            check(
                &one(&call, status),
                &[
                    ("skills: {used: [a]}", Fail(0.0, &[], how)),
                    ("skills: {not-used: [a]}", Pass(&[])),
                    ("skills: {only: []}", Pass(&[])),
                ],
            );
        }
        // Announced and never finished.
        check(
            &one(&call, "unfinished"),
            &[
                ("skills: {used: [a]}", Ungraded("or how it ended")),
                ("skills: {not-used: [a]}", Ungraded("whether the skill `a` was used is unknown")),
                ("skills: {only: [a, b]}", Pass(&[])),
                ("skills: {only: [c, b]}", Ungraded("whether another skill was used is unknown")),
                ("skills: {used: [c]}", Fail(0.0, &[], "the skill `c` was not used")),
            ],
        );
    }
}

#[test]
fn what_only_names_a_skill_uses_none() {
    for call in [
        skill("a-b"),
        skill("b"),
        skill("Use a"),
        read("/w/a/SKILL.md"),
        read("/w/docs/skills/a/SKILL.md"),
        read("/w/.mine/skills/a/other/SKILL.md"),
        read("/w/.mine/skills/a/README.md"),
        read("/w/.mine/skills/a-b/SKILL.md"),
        read("/w/.mine/skills/x.a/SKILL.md"),
        read("/w/notes-on-a.md"),
        run("ls .mine/skills/a/SKILL.md"),
        run("cat > .mine/skills/a/SKILL.md"),
        run("cat x; rm .mine/skills/a/SKILL.md"),
        run("cat .mine/skills/a-b/SKILL.md"),
        run("cat a .mine/skills/b/SKILL.md"),
        run("echo a"),
        r#""kind":"search","name":"Glob","input":{"path":".mine/skills/a/SKILL.md"}"#.to_owned(),
        r#""kind":"edit","name":"Edit","input":{"file_path":".mine/skills/a/SKILL.md"}"#.to_owned(),
        r#""kind":"other","name":"load_a_b","input":{}"#.to_owned(),
        r#""kind":"other","name":"Skills","input":{"skill":"a"}"#.to_owned(),
        r#""kind":"other","name":"Skill","input":{"args":"a"}"#.to_owned(),
        r#""kind":"other","name":"Skill","input":{"skill":["a"]}"#.to_owned(),
        r#""kind":"fetch","name":"Fetch","input":{"url":"skill://a.b/text"}"#.to_owned(),
    ] {
        let trial = calls(&[(&call, "ok")]);
        let grade = trial.judge("skills: {used: [a]}");
        assert_eq!(grade.passed, Some(false), "{call}: {grade:?}");
        assert_eq!(trial.judge("skills: {not-used: [a]}").passed, Some(true), "{call}");
    }
    check(
        &calls(&[]),
        &[
            ("skills: {used: [a, b]}", Fail(0.0, &[], "the skill `b` was not used")),
            ("skills: {not-used: [a], only: []}", Pass(&[])),
        ],
    );
}

#[test]
fn only_finds_the_names_in_the_calls() {
    let trial = calls(&[
        (&skill("a"), "ok"),
        (&run("cat .mine/skills/b/SKILL.md /x/skills/c/SKILL.md"), "ok"),
        (&read("/w/README.md"), "ok"),
        (&skill("d"), "error"),
        (&skill("plugin:Big one"), "ok"),
    ]);
    check(
        &trial,
        &[
            ("skills: {only: [a, b]}", Fail(0.0, &[2, 3, 8, 9], "`c` (event 2); `plugin:Big one` (event 8)")),
            ("skills: {only: []}", Fail(0.0, &[0, 1, 2, 3, 8, 9], "no skill may be used, and the agent used `a`")),
            ("skills: {used: [a, c, d]}", Fail(2.0 / 3.0, &[], "the skill `d` was not used")),
            ("skills: {used: [a, b, c]}", Pass(&[0, 1, 2, 3])),
        ],
    );
    // A name that cannot be read from a command.
    let blank = calls(&[(&run("cat .mine/skills/two words/SKILL.md"), "ok")]);
    check(&blank, &[("skills: {only: []}", Ungraded("whether another skill was used is unknown"))]);
}

#[test]
fn what_was_not_shown_is_unknown_unless_a_known_use_decides() {
    let hidden = [
        r#""kind":"other","input":{"skill":"a"}"#.to_owned(),
        r#""kind":"other","name":"Skill""#.to_owned(),
        r#""kind":"read","name":"Read""#.to_owned(),
        r#""kind":"execute","name":"Bash""#.to_owned(),
        r#""kind":"other""#.to_owned(),
    ];
    for call in &hidden {
        check(
            &calls(&[(call, "ok")]),
            &[
                ("skills: {used: [a]}", Ungraded("the agent did not show enough of")),
                ("skills: {not-used: [a]}", Ungraded("(event 0)")),
                ("skills: {only: [b]}", Ungraded("whether another skill was used is unknown")),
            ],
        );
        check(
            &calls(&[(call, "ok"), (&skill("a"), "ok")]),
            &[
                ("skills: {used: [a]}", Pass(&[2, 3])),
                ("skills: {not-used: [a]}", Fail(0.0, &[2, 3], "was used (event 2)")),
                ("skills: {only: [b]}", Fail(0.0, &[2, 3], "`a` (event 2)")),
                ("skills: {used: [a], not-used: [b]}", Ungraded("whether the skill `b`")),
            ],
        );
        // A call that failed used nothing, whatever it was.
        check(&calls(&[(call, "error")]), &[("skills: {not-used: [a], only: []}", Pass(&[]))]);
    }
}

#[test]
fn a_session_that_lost_a_line_shows_only_what_is_in_it() {
    let lost = r#"{"seq":0,"type":"notice","code":"bad_line","text":"x","lost":"line"}"#;
    let call = r#"{"seq":1,"type":"tool_call","call":"c","step":0,"kind":"other","name":"Skill","input":{"skill":"a"}}
{"seq":2,"type":"tool_result","call":"c","status":"ok"}"#;
    let stop = r#"{"seq":3,"type":"stop","reason":"end_turn","output":""}"#;
    check(
        &Trial::of(&format!("{lost}\n{call}\n{stop}\n")).of_harness(HARNESS),
        &[
            ("skills: {used: [a]}", Pass(&[1, 2])),
            ("skills: {used: [b]}", Ungraded("a line of the session was lost")),
            ("skills: {not-used: [b]}", Ungraded("a line of the session was lost")),
            ("skills: {not-used: [a]}", Fail(0.0, &[1, 2], "was used")),
            ("skills: {only: [a]}", Ungraded("a line of the session was lost")),
            ("skills: {only: [b]}", Fail(0.0, &[1, 2], "`a` (event 1)")),
        ],
    );
}

#[test]
fn without_signs_nothing_is_known() {
    let grader = "skills: {used: [a]}";
    let mut trial = calls(&[(&skill("a"), "ok")]);
    check(
        &calls(&[(&skill("a"), "ok")]).of_harness("name: other\nadapter: acp\ncommand: [x]\nskills: {project: x}\n"),
        &[(grader, Ungraded("which calls of the harness `other` use a skill"))],
    );
    check(&calls(&[]).tracing(false), &[(grader, Ungraded("shows no tool calls"))]);
    (trial.manifest, trial.header.harness) = (None, Some("gone".to_owned()));
    check(&trial, &[(grader, Ungraded("of the harness `gone` use a skill"))]);
    trial.header.harness = None;
    check(&trial, &[(grader, Ungraded("the trace names no harness"))]);
    // The built-in manifest of the harness, for a stored trace.
    trial.header.harness = Some("claude-code-stream".to_owned());
    trial.header.adapter = "claude-code-stream".to_owned();
    check(&trial, &[(grader, Pass(&[0, 1])), ("skills: {only: []}", Fail(0.0, &[0, 1], "`a`"))]);
}

#[test]
fn built_in_manifests_tell_a_use_from_a_mention() {
    for (harness, adapter, used, mentioned) in [
        (
            "claude-code-stream",
            "claude-code-stream",
            read("/h/.claude/skills/a/SKILL.md"),
            read("/w/skills/a/SKILL.md"),
        ),
        ("claude-agent-acp", "acp", skill("a"), skill("ab")),
        (
            "codex",
            "json-stream",
            run("/bin/bash -lc 'cat /h/.agents/skills/a/SKILL.md'"),
            run("/bin/bash -lc 'ls .agents/skills/a/SKILL.md'"),
        ),
        (
            "codex",
            "json-stream",
            run("sed -n 1,200p .agents/skills/a/SKILL.md"),
            run("sed -i s/x/y/ .agents/skills/a/SKILL.md"),
        ),
        (
            "codex",
            "json-stream",
            run("head -5 /h/.codex/skills/a/SKILL.md"),
            run("cat notes > .agents/skills/a/SKILL.md"),
        ),
        (
            "gemini-stream",
            "json-stream",
            r#""kind":"other","name":"activate_skill","input":{"name":"a"}"#.to_owned(),
            r#""kind":"other","name":"activate","input":{"name":"a"}"#.to_owned(),
        ),
        (
            "opencode-stream",
            "json-stream",
            r#""kind":"other","name":"skill","input":{"name":"a"}"#.to_owned(),
            r#""kind":"other","name":"skills","input":{"name":"a"}"#.to_owned(),
        ),
    ] {
        for (call, passed) in [(used, true), (mentioned, false)] {
            let mut trial = calls(&[(&call, "ok")]);
            trial.manifest = None;
            (trial.header.harness, trial.header.adapter) = (Some(harness.to_owned()), adapter.to_owned());
            let grade = trial.judge("skills: {used: [a]}");
            assert_eq!(grade.passed, Some(passed), "{harness}: {call}: {grade:?}");
        }
    }
}

#[test]
fn graders_that_say_nothing_or_contradict_themselves_are_refused() {
    for (grader, why) in [
        ("{}", "checks nothing"),
        ("{used: [a], not-used: [b, a]}", "`a` is in `used` and in `not-used`"),
        ("{used: [a, b], only: [a]}", "`b` is in `used`, and not in `only`"),
        ("{used: []}", "empty"),
        ("{used: ['a*']}", "`a*` is not the name of a skill"),
        ("{not-used: ['{a,b}']}", "is not the name of a skill"),
        ("{only: ['../a']}", "is not the name of a skill"),
        ("{used: ['']}", "is not the name of a skill"),
        ("{used: [' a']}", "is not the name of a skill"),
        ("{usd: [a]}", "unknown field `usd`"),
    ] {
        let entries = format!("[skills: {grader}]");
        let error =
            serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(&entries).unwrap_err().to_string();
        assert!(error.contains(why), "{grader}: {error}");
    }
    super::read("[skills: {only: []}, skills: {used: [Changelog, 'plugin:a.b_c', 日本]}]");
}

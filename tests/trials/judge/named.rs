//! Unavailable judges, missing references and invalid criteria: reported with their place before anything starts.

use crate::project::Project;

const CRITERIA: &str = "criteria: [{id: a, ask: Is it?}]";

/// Makes a project with every kind of harness that cannot judge, and one that can.
fn project() -> Project {
    let project = Project::new();
    project.harness("referee", "aliases: [umpire]\nadapter: output-only\ncommand: [echo, hello]");
    project.harness("recorded", "adapter: replay\nrecording: harnesses/old.jsonl");
    project.write("harnesses/old.jsonl", "{\"type\":\"trace\",\"version\":1,\"adapter\":\"acp\"}\n");
    project
}

#[test]
#[ignore = "slow: asks a judge many times"]
fn a_harness_that_cannot_judge_is_refused_where_it_is_named() {
    for (judge, says) in [
        ("harness:nope", "no harness is named `nope`, so it cannot judge"),
        ("harness:refree", "did you mean `referee`?"),
        ("harness:recorded", "harness `recorded` cannot judge: it plays a recording"),
        ("harness:demo", "harness `demo` cannot judge: it plays the script of a case"),
        ("harness:referee=gpt", "harness `referee` has no `model:` route"),
    ] {
        let project = project();
        let refused = |at: &str| {
            project.evals(&["check"]).exits(2).says(says).says(at);
            // A run refuses as a check does.
            if judge == "harness:nope" {
                project.evals(&["run"]).exits(2).says(says).says(at);
            }
            assert!(!project.path(".evals").exists(), "nothing was started");
        };
        let grader = format!("  - rubric:\n      {CRITERIA}\n      judge: {judge}\n");
        project.case("a", &format!("graders:\n{grader}"), "steps: [{say: hi}]");
        refused("cases/a.yaml:5:7");
        let grader = format!("  - pairwise: {{ask: x, reference: {{text: y}}, judge: ['anthropic:m', '{judge}']}}\n");
        project.case("a", &format!("graders:\n{grader}"), "");
        refused("cases/a.yaml:3:69");
        project.case("a", "graders: [{use: mine}]", "");
        project.write("graders/mine.yaml", "description: x\ngraders: [{use: other}]\n");
        let other = format!("description: y\nrubric:\n  judge: {judge}\n  {CRITERIA}\n");
        project.write("graders/other.yaml", &other);
        refused("graders/other.yaml:3:3");
        project.write("graders/other.yaml", &other.replace(judge, "anthropic:m"));
        let policy = format!("interaction:\n  llm: {{model: '{judge}'}}");
        project.case("a", &policy, "");
        refused("cases/a.yaml:3:16");
        project.case("a", "interaction: {use: asks}", "");
        project.write("policies/asks.yaml", &format!("policy:\n  llm: {{model: '{judge}'}}\n"));
        refused("policies/asks.yaml:2:16");
    }
}

#[test]
fn a_judge_that_no_case_uses_is_refused_by_check_alone() {
    let project = project();
    project.case("a", "", "steps: [{say: hi}]");
    project.write("graders/mine.yaml", &format!("grader:\n  rubric: {{judge: 'harness:nope', {CRITERIA}}}\n"));
    project.write("policies/asks.yaml", "policy: {llm: {model: 'harness:nope'}}\n");
    let ran = project.evals(&["check"]).exits(2);
    let ran = ran.says("graders/mine.yaml:2:12: no harness is named `nope`");
    assert_eq!(ran.says("policies/asks.yaml:1:23:").err.matches("cannot judge").count(), 2);
    project.evals(&["run"]).exits(0);
}

#[test]
fn a_judge_of_the_command_line_that_cannot_be_had_is_refused_before_anything_starts() {
    let mut project = project();
    project.case("a", "", "steps: [{say: hi}]");
    project
        .evals(&["run", "--judge", "harness:nope"])
        .exits(2)
        .says("--judge harness:nope: no harness is named `nope`");
    let policy = "{llm: {model: 'harness:nope'}}";
    project.evals(&["run", "--interaction", policy]).exits(2).says("no harness is named `nope`");
    assert!(!project.path(".evals").exists(), "nothing was started");
    project.evals(&["run", "--judge", "harness:umpire"]).exits(0);
    let before = project.runs().len();
    project.evals(&["grade", "latest", "--judge", "harness:nope"]).exits(2).says("no harness is named `nope`");
    project
        .evals(&["run", "--resume", "latest", "--judge", "harness:nope"])
        .exits(2)
        .says("no harness is named `nope`");
    project.env("EVALS_JUDGE", "anthropic:m, harness:demo");
    for command in [&["run"][..], &["grade", "latest"], &["run", "--resume", "latest"]] {
        project.evals(command).exits(2).says("EVALS_JUDGE harness:demo: harness `demo` cannot judge");
    }
    assert_eq!(project.runs().len(), before);
    project.write("graders/mine.yaml", &format!("rubric: {{judge: 'harness:nope', {CRITERIA}}}\n"));
    project.write("labels.jsonl", "{\"trace\": \"harnesses/old.jsonl\", \"label\": \"pass\"}\n");
    project.env("EVALS_JUDGE", "");
    project.evals(&["calibrate", "--rubric", "mine", "labels.jsonl"]).exits(2).says("mine harness:nope: no harness");
}

#[test]
fn a_reference_that_cannot_be_compared_with_is_told_where_it_is_named() {
    let project = project();
    project.write("cases/empty.md", " \n");
    project.write("cases/text.jsonl", "hello\n");
    for (reference, says) in [
        ("file: nowhere.md", "compares with `nowhere.md`, which could not be read"),
        ("file: empty.md", "compares with nothing: `empty.md` is empty"),
        ("trace: nowhere.jsonl", "compares with `nowhere.jsonl`, which could not be read"),
        ("trace: text.jsonl", "compares with `text.jsonl`, which could not be read"),
    ] {
        let body = format!("ask: Which?\n      reference:\n        {reference}\n");
        project.case("a", &format!("graders:\n  - pairwise:\n      {body}"), "steps: [{say: hi}]");
        for command in ["check", "run"] {
            project.evals(&[command]).exits(2).says("cases/a.yaml:6:9").says(says);
        }
        assert!(!project.path(".evals").exists(), "nothing was started");
        project.case("a", "", "");
        project.write(
            "graders/mine.yaml",
            &format!("description: x\npairwise:\n  ask: x\n  reference: {{{reference}}}\n"),
        );
        project.write("graders/empty.md", "");
        project.write("graders/text.jsonl", "hello\n");
        project.evals(&["check"]).exits(2).says("graders/mine.yaml:4:15").says(says);
        std::fs::remove_file(project.path("graders/mine.yaml")).unwrap();
    }
}

#[test]
#[ignore = "slow: asks a judge many times"]
fn what_cannot_be_asked_is_pointed_at_by_its_key() {
    let lines = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    for (body, at, says) in [
        ("criteria: []", (1, 1), "has no `criteria`"),
        ("criteria:\n  - id: a b\n    ask: Is it?", (2, 5), "whose id is not made of letters"),
        ("criteria:\n  - {id: a, ask: x}\n  - {id: b, ask: ''}", (3, 13), "empty `ask`"),
        ("criteria:\n  - {id: a, ask: x}\n  - {ask: y, id: a}", (3, 14), "two criteria with the ID `a`"),
        ("criteria:\n  - {id: a, ask: x, weight: -1}", (2, 21), "not a number from 0"),
        ("criteria:\n  - id: a\n    ask: x\n    scale: {from: 5, to: 1, pass: 3}", (4, 5), "is not less than its `to`"),
        ("criteria:\n  - id: a\n    ask: x\n    scale: {from: 1, to: 5, pass: 9}", (4, 5), "out of range"),
        (
            "criteria:\n  - id: a\n    ask: x\n    scale: {from: -9223372036854775808, to: 9223372036854775807, pass: -9223372036854775808}",
            (4, 5),
            "out of range",
        ),
        ("criteria:\n  - {id: a, ask: x, number: {}}", (2, 21), "without bounds"),
        ("criteria:\n  - {id: a, ask: x, number: {min: .nan}}", (2, 21), "whose `min` is not a number"),
        (
            "criteria:\n  - id: a\n    ask: x\n    number: {max: 1}\n    scale: {from: 1, to: 5, pass: 3}",
            (4, 5),
            "keep one",
        ),
        ("min: 0\ncriteria: [{id: a, ask: x}]", (1, 1), "is always reached"),
        ("criteria: [{id: a, ask: x}]\nmin: 0.5\naggregate: any", (2, 1), "keep one of them"),
        ("criteria: [{id: a, ask: x}]\ncharacters: 10", (2, 1), "shows too little of a session"),
        ("criteria: [{id: a, ask: x}]\nfloor: {tpr: 7}", (2, 1), "cannot be reached"),
    ] {
        let project = Project::new();
        project.case("a", "", "");
        let (line, column) = at;
        let forms = [
            ("bare", "rubric:\n", 2, 1),
            ("named", "grader:\n  rubric:\n", 4, 2),
            ("listed", "graders:\n- rubric:\n", 4, 2),
        ];
        for (name, front, indent, _) in forms {
            let body = if indent == 4 { lines(&lines(body)) } else { lines(body) };
            project.write(&format!("graders/{name}.yaml"), &format!("description: x\n{front}{body}"));
        }
        let mut ran = project.evals(&["check"]).exits(2);
        for (name, _, indent, below) in forms {
            ran = ran.says(&format!("graders/{name}.yaml:{}:{}: ", line + below + 1, column + indent));
        }
        let words = ran.err.replace(['│', '×'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.matches(says).count(), forms.len(), "{}", ran.err);
        std::fs::remove_dir_all(project.path("graders")).unwrap();
        project.write("cases/a.yaml", &format!("prompt: Do it.\ngraders:\n- rubric:\n{}", lines(&lines(body))));
        project.evals(&["check"]).exits(2).says(says).says(&format!("cases/a.yaml:{}:{}: ", line + 3, column + 4));
    }
    let project = Project::new();
    project.case("a", "", "");
    for (body, column, says) in [
        ("{ask: '', reference: {text: a}}", 12, "its `ask` is empty"),
        ("{ask: x, reference: {text: ' '}}", 20, "its `reference` is empty"),
        ("{ask: x, reference: {text: a}, floor: {kappa: 3}}", 42, "cannot be reached"),
    ] {
        project.write("graders/mine.yaml", &format!("description: x\npairwise: {body}\n"));
        project.evals(&["check"]).exits(2).says(says).says(&format!("graders/mine.yaml:2:{column}: "));
    }
}

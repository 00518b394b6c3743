//! `expr`: what an expression can speak of, and what of it is refused before anything runs.

use evals::internal::grader::{GraderEntry, refuse_empty};

use super::Expect::{Enough, Fail, Pass, Ungraded};
use super::{Trial, check, read};

#[test]
fn an_expression_speaks_of_everything_that_is_known() {
    let session = Trial::session().changed(&["new.rs"], &["src/lib.rs"], &[]);
    check(
        &session,
        &[
            ("expr: {cel: 'size(calls) == 5'}", Pass(&[])),
            ("expr: {cel: 'size(calls) < 5'}", Fail(0.0, &[], "`size(calls) < 5` is false")),
            (r#"expr: {cel: "calls.exists(c, c.kind == 'edit' && 'src/lib.rs' in c.paths)"}"#, Pass(&[])),
            (r#"expr: {cel: "calls.filter(c, c.status == 'denied').all(c, c.name == 'Delete')"}"#, Pass(&[])),
            (r#"expr: {cel: "calls[2].input.deep.b[1] == 2 && calls[2].step == 2"}"#, Pass(&[])),
            (r#"expr: {cel: "calls.exists(c, has(c.exit_code) && c.exit_code == 1)"}"#, Pass(&[])),
            (r#"expr: {cel: "calls.exists_one(c, has(c.parent))"}"#, Pass(&[])),
            (r#"expr: {cel: "output.startsWith('Done') && output.matches('[0-9]+')"}"#, Pass(&[])),
            (r#"expr: {cel: "stop.reason == 'end_turn'"}"#, Pass(&[])),
            ("expr: {cel: 'usage.input_tokens + usage.output_tokens == 150'}", Pass(&[])),
            ("expr: {cel: 'metrics.cost_usd < 1 && metrics.tool_calls == 5'}", Pass(&[])),
            (
                r#"expr: {cel: "permissions.exists(p, p.kind == 'delete' && p.outcome == 'rejected' && p.option == 'n')"}"#,
                Pass(&[]),
            ),
            (r#"expr: {cel: "files.created == ['new.rs'] && size(files.deleted) == 0"}"#, Pass(&[])),
            (
                r#"expr: {cel: "messages.filter(m, m.role == 'agent').map(m, m.text).exists(t, t.contains('42'))"}"#,
                Pass(&[]),
            ),
            ("expr: {cel: 'size(calls) > 3 ? 0.25 : 1.0'}", Fail(0.25, &[], "is 0.25, below 1")),
            ("expr: {cel: 'size(calls) > 3 ? 0.25 : 1.0', min: 0.2}", Enough(0.25, &[])),
            ("expr: {cel: 'double(size(calls))'}", Ungraded("it returned 5.0, which is not between 0 and 1")),
        ],
    );
}

#[test]
fn a_false_one_tells_which_part_is_false_what_its_sides_are_and_for_which_events() {
    let told = |cel: &'static str, evidence: &'static [u64], why: &'static str| (cel, Fail(0.0, evidence, why));
    let told = [
        told("expr: {cel: 'size(calls) < 5'}", &[], "is false: `size(calls)` is 5"),
        told(
            "expr: {cel: '(size(calls) <  4 && size(calls) > 1) && metrics.cost_usd < 1'}",
            &[],
            "false: `size(calls) < 4` is false (`size(calls)` is 5)",
        ),
        told(
            "expr: {cel: '1 > metrics.cost_usd && stop.reason in [\"refusal\", \"cancelled\"]'}",
            &[],
            "`stop.reason` is \"end_turn\"",
        ),
        told(
            "expr: {cel: 'output == \"é)\" || output.contains(\"nothing\")'}",
            &[],
            "`output == \"é)\"` is false (`output` is \"Done",
        ),
        told(
            "expr: {cel: 'calls.all(c, c.status == \"ok\")'}",
            &[3, 11],
            "is false: does not hold for 2 of 5, first Delete (event 3)",
        ),
        told(
            "expr: {cel: '!calls.exists(c, c.kind == \"edit\") && size(calls) == 5'}",
            &[7],
            "`!calls.exists(c, c.kind == \"edit\")` is false (does not hold for 1 of 5, first ",
        ),
        told(
            "expr: {cel: 'calls.filter(c, c.kind == \"edit\").size() > 1'}",
            &[],
            "`calls.filter(c, c.kind == \"edit\").size()` is 1",
        ),
        told(
            "expr: {cel: 'files.created.all(f, f.startsWith(\"src/\"))'}",
            &[],
            "is false: does not hold for 1 of 1, first \"new.rs\"",
        ),
        told("expr: {cel: 'output.contains(\"nothing\")'}", &[], "is false"),
    ];
    check(&Trial::session().changed(&["new.rs"], &["src/lib.rs"], &[]), &told);
}

#[test]
fn what_is_not_known_leaves_it_ungraded() {
    check(
        &Trial::session(),
        &[
            (
                "expr: {cel: 'size(files.created) == 0'}",
                Ungraded("there is no `created`; the change of the workspace is not known"),
            ),
            (
                "expr: {cel: 'metrics.duration_ms < 10 || metrics.output_tokens < 10'}",
                Ungraded("there is no `output_tokens`"),
            ),
            // What is known decides where it is enough.
            ("expr: {cel: 'metrics.output_tokens < 10 && metrics.tool_calls < 1'}", Fail(0.0, &[], "is false")),
            ("expr: {cel: 'calls[9].step == 1'}", Ungraded("shorter than the index")),
        ],
    );
    let blind = Trial::session().tracing(false).interaction(false);
    check(
        &blind,
        &[
            ("expr: {cel: 'size(calls) == 0'}", Ungraded("the harness shows no tool calls")),
            ("expr: {cel: 'metrics.tool_calls == 0'}", Ungraded("there is no `tool_calls`")),
            ("expr: {cel: 'size(permissions) == 0'}", Ungraded("no way to ask")),
            (r#"expr: {cel: "output.contains('42')"}"#, Pass(&[])),
        ],
    );
}

#[test]
fn what_cannot_be_meant_is_refused_before_it_runs() {
    for (cel, why) in [
        ("size(calls) <", "cannot be read"),
        ("size(cals) < 3", "unknown name `cals`"),
        ("size(calls) < 3 && foo(calls)", "unknown function `foo`"),
        ("calls.exists(c, c.knid == 'edit')", "a call has no `knid`"),
        ("calls.filter(c, c.kind == 'edit')[0].pathes == []", "a call has no `pathes`"),
        ("calls.map(c, c.paths)[0][0].x == 1", "a text has no fields"),
        ("stop.reasn == 'x'", "stop has no `reasn`"),
        ("stop.exit.signal == 'x'", "a number is compared with a text"),
        ("metrics.permissions.asked > 1", "metrics.permissions has no `asked`"),
        ("permissions.all(p, p.answer == 'x')", "a permission has no `answer`"),
        ("usage['cost'] > 1.0", "usage has no `cost`"),
        ("output > 3", "a text is compared with a number"),
        ("output", "returns a text"),
        ("calls", "returns a list"),
        ("calls.map(c, c.kind)", "returns a list"),
        ("calls && true", "expected true or false, found a list"),
        ("files.created.contains('x')", "to look for a value in a list"),
        ("'x' in output", "text.contains"),
        ("calls.kind == 'x'", "a list has no fields"),
        ("output - 1 > 0", "a text cannot be used in arithmetic"),
        ("metrics.tool_calls.exists(c, c)", "expected a list"),
        ("", "the expression is empty"),
        ("true", "uses no value of the trial"),
        ("1 < 2 && ['a'].exists(x, x == 'a')", "uses no value of the trial"),
        ("0.5", "uses no value of the trial"),
        ("1", "uses no value of the trial"),
        ("0.5 + 0.5", "uses no value of the trial"),
        ("true ? 1.0 : 0.0", "uses no value of the trial"),
        ("[0.5][0]", "uses no value of the trial"),
        ("{'a': 1.0}['a']", "uses no value of the trial"),
        ("[true].exists(calls, calls) ? 1.0 : 0.0", "uses no value of the trial"),
        ("output + 1 == 'x'", "a text and a number cannot be added"),
        ("size(metrics.tool_calls) > 1", "a number has no size"),
        ("output ? 1.0 : 0.5", "expected true or false, found a text"),
    ] {
        let graders = read(&serde_json::json!([{"expr": {"cel": cel}}]).to_string());
        let error = refuse_empty(&graders).expect_err(cel);
        let entry: GraderEntry = serde_yaml::from_str(&serde_json::json!({"expr": {"cel": cel}}).to_string()).unwrap();
        let wrong = entry.wrong_expression().unwrap().wrong;
        let told = format!("{error}; {}", wrong.help.as_deref().unwrap_or_default());
        assert!(told.contains(why), "{cel}: {told}");
        assert!(wrong.range.end <= cel.len(), "{cel}");
    }
    for cel in [
        "calls.exists(c, c.input.whatever == 3)",
        "calls.filter(c, has(c.exit_code)).map(c, c.exit_code).all(n, n == 0)",
        "metrics.tool_calls_by_kind.edit < 3",
        "calls.filter(c, c.kind == 'edit').size() == 1",
        "true ? size(messages) < 3 : false",
        "['a', 'b'].all(x, output.contains(x))",
        "size(calls) > 3 ? 0.5 : 1.0",
        "{'a': size(calls)}['a'] == 1",
    ] {
        assert_eq!(refuse_empty(&read(&serde_json::json!([{"expr": {"cel": cel}}]).to_string())), Ok(()), "{cel}");
    }
    assert!(serde_yaml::from_str::<GraderEntry>("expr: {cel: true}").unwrap_err().to_string().contains("always true"));
    assert!(
        serde_yaml::from_str::<GraderEntry>("expr: {cel: 'true', min: 0}").unwrap_err().to_string().contains("always")
    );
}

#[test]
fn a_trace_that_would_fill_the_memory_is_not_held() {
    let said = format!(r#"{{"seq":1,"type":"message","role":"agent","text":"{}"}}"#, "x".repeat(4 << 20));
    let stop = r#"{"seq":2,"type":"stop","reason":"end_turn","output":"done"}"#;
    let mut endless = Trial::of(&format!("{said}\n{stop}"));
    endless.times = 60;
    check(&endless, &[("expr: {cel: 'size(messages) == 60'}", Pass(&[]))]);
    endless.times = 70;
    check(
        &endless,
        &[
            ("expr: {cel: 'size(messages) > 9'}", Ungraded("the trace holds more of it than 256 MiB")),
            ("script: {run: ['true']}", Ungraded("was not run: the trace holds more of it than 256 MiB")),
            // What the expression does not name is not held at all.
            ("expr: {cel: 'size(calls) == 0'}", Pass(&[])),
        ],
    );
}

//! `evals convert` for promptfoo, Harbor, Terminal-Bench, SWE-bench, Inspect and touchstone: what each case passes and
//! fails for, and what is refused with its line.

use std::os::unix::fs::PermissionsExt;

use crate::project::{Project, Ran, bubblewrap};

pub fn convert(project: &Project, format: &str, path: &str, more: &[&str]) -> Ran {
    project.evals(&[&["convert", "--from", format, path, "-o", "out", "--force"], more].concat())
}

/// Plays steps of the demo agent for a converted case, and returns the exit code of the run.
pub fn plays(project: &Project, case: &str, steps: &str) -> i32 {
    project.write(&format!("out/cases/{case}.demo.yaml"), &format!("steps: [{steps}]\n"));
    project.evals(&["run", &format!("out/cases/{case}.yaml"), "--trials", "1"]).code
}

#[track_caller]
pub fn decides(project: &Project, case: &str, good: &str, bad: &str) {
    project.evals(&["check", "out/cases"]).exits(0);
    assert_eq!(
        plays(project, case, good),
        0,
        "{good} does not pass\n{}",
        project.read(&format!("out/cases/{case}.yaml"))
    );
    assert_eq!(
        plays(project, case, bad),
        1,
        "{bad} does not fail\n{}",
        project.read(&format!("out/cases/{case}.yaml"))
    );
}

/// Returns a trace with these calls, each a map of the keys of its event.
pub fn trace_of(calls: &[&str]) -> String {
    let mut trace = r#"{"type":"trace","version":1,"harness":"x","adapter":"json-stream","capabilities":{"tracing":true,"interaction":false},"model":{},"timed":false}"#.to_owned();
    for (at, call) in calls.iter().enumerate() {
        let (call, seq) = (call.trim_start_matches('{'), at * 2);
        trace +=
            &format!("\n{{\"seq\":{seq},\"at_ms\":0,\"type\":\"tool_call\",\"call\":\"c{at}\",\"step\":{at},{call}");
        let next = seq + 1;
        trace += &format!(
            "\n{{\"seq\":{next},\"at_ms\":0,\"type\":\"tool_result\",\"call\":\"c{at}\",\"status\":\"ok\",\"output\":\"x\"}}"
        );
    }
    let seq = calls.len() * 2;
    trace + &format!("\n{{\"seq\":{seq},\"at_ms\":0,\"type\":\"stop\",\"reason\":\"end_turn\",\"output\":\"x\"}}\n")
}

/// A configuration of promptfoo with one test of these assertions.
fn promptfoo(asserts: &str, rest: &str) -> Project {
    let text = format!(
        "prompts: ['Say {{{{word}}}}.']\nproviders: [openai:gpt-4o]\ntests:\n  - description: one\n    vars: {{word: hello}}\n    \
         assert: {asserts}\n{rest}"
    );
    Project::with(&[("pf/promptfooconfig.yaml", &text)])
}

#[test]
#[ignore = "slow: a trial for each assertion"]
fn promptfoo_assertions_pass_and_fail_as_in_the_source() {
    for (asserts, good, bad) in [
        ("[{type: contains, value: '{{word}}'}]", "say: oh hello", "say: Hello"),
        ("[{type: not-contains, value: '{{word}}'}]", "say: Hello", "say: oh hello"),
        ("[{type: icontains, value: HELLO}]", "say: Hello", "say: bye"),
        ("[{type: not-icontains, value: HELLO}]", "say: bye", "say: Hello"),
        ("[{type: contains-any, value: 'a b, c'}]", "say: xcx", "say: a x b"),
        ("[{type: contains-all, value: [a, b]}]", "say: b a", "say: a"),
        ("[{type: not-contains-all, value: [a, b]}]", "say: a", "say: b a"),
        ("[{type: not-contains-any, value: [a, b]}]", "say: c", "say: b"),
        ("[{type: icontains-all, value: [A, b]}]", "say: B a", "say: A"),
        ("[{type: equals, value: hello}]", "say: hello", "say: hello you"),
        ("[{type: not-equals, value: hello}]", "say: hello you", "say: hello"),
        ("[{type: equals, value: {a: 1}}]", "say: '{\"a\": 1.0}'", "say: '{\"a\": 2}'"),
        ("[{type: starts-with, value: a.b}]", "say: a.b c", "say: axb"),
        ("[{type: regex, value: '^h\\w+$'}]", "say: hello", "say: oh hello"),
        ("[{type: not-regex, value: '[0-9]'}]", "say: none", "say: '1'"),
        ("[{type: word-count, value: {min: 2, max: 3}}]", "say: a b", "say: a b c d"),
        ("[{type: word-count, value: 1}]", "say: a", "say: a b"),
        ("[{type: is-json}]", "say: '[1]'", "say: \"see:\\n```json\\n[1]\\n```\""),
        ("[{type: contains-json}]", "say: \"see:\\n```json\\n{}\\n```\"", "say: none"),
        ("[{type: is-json, value: {type: array, items: [{type: number}]}}]", "say: '[1]'", "say: '[\"a\"]'"),
        ("[{type: is-json, value: {type: string, format: email}}]", "say: '\"a@b.ch\"'", "say: '\"a\"'"),
        ("[{type: assert-set, threshold: 1, weight: 0, assert: [{type: contains, value: a}]}]", "say: a", "say: b"),
        ("[{type: is-json, value: 'required: [a]'}]", "say: '{\"a\": 1}'", "say: '{}'"),
        ("[{type: javascript, value: 'output.length > 3'}]", "say: hello", "say: no"),
        ("[{type: not-javascript, value: 'output.length > 3'}]", "say: no", "say: hello"),
        ("[{type: javascript, value: 'const n = output.length; n / 10', threshold: 0.5}]", "say: hello", "say: no"),
        (
            "[{type: javascript, value: \"if (output === context.vars.word) {\\n return true }\\nreturn false\"}]",
            "say: hello",
            "say: no",
        ),
        ("[{type: python, value: 'len(output) > 3'}]", "say: hello", "say: no"),
        (
            "[{type: python, value: \"if output == context['vars']['word']:\\n  return True\\nreturn 0\"}]",
            "say: hello",
            "say: no",
        ),
        // Of a set with a threshold, a share is enough.
        (
            "[{type: assert-set, threshold: 0.5, assert: [{type: contains, value: a}, {type: contains, value: b}]}]",
            "say: a",
            "say: c",
        ),
        // Without one, each is required.
        ("[{type: assert-set, assert: [{type: contains, value: a}, {type: contains, value: b}]}]", "say: ab", "say: a"),
        // An assertion of weight 0 cannot fail a test.
        ("[{type: contains, value: a}, {type: contains, value: b, weight: 0}]", "say: a", "say: b"),
    ] {
        let project = promptfoo(asserts, "");
        convert(&project, "promptfoo", "pf", &[]).exits(0);
        decides(&project, "pf/one", good, bad);
    }
}

#[test]
fn json_of_promptfoo_passes_and_fails_as_in_the_source() {
    let rows = [
        ("{type: is-json, value: {properties: {a: {format: uuid}}}}", r#"{"a": "nope"}"#, "fail"),
        (
            "{type: is-json, value: {properties: {a: {format: uuid}}}}",
            r#"{"a": "550e8400-e29b-41d4-a716-446655440000"}"#,
            "pass",
        ),
        ("{type: is-json, value: {properties: {a: {format: duration}}}}", r#"{"a": "P1DT"}"#, "fail"),
        ("{type: is-json, value: {properties: {a: {format: url}}}}", r#"{"a": "example"}"#, "fail"),
        ("{type: is-json, value: {properties: {a: {format: email}}}}", r#"{"a": "ada@localhost"}"#, "fail"),
        ("{type: is-json, value: {properties: {a: {type: number, format: int32}}}}", r#"{"a": 1.5}"#, "fail"),
        ("{type: is-json, value: {properties: {a: {type: number, format: int32}}}}", r#"{"a": 3000000000}"#, "fail"),
        ("{type: is-json, value: {properties: {a: {format: byte, minLength: 2}}}}", r#"{"a": "***"}"#, "fail"),
        (
            "{type: is-json, value: {properties: {a: {format: iso-date-time}}}}",
            r#"{"a": "2023-02-29 12:00:00"}"#,
            "fail",
        ),
        ("{type: is-json, value: {properties: {a: {type: string, nullable: true}}}}", r#"{"a": null}"#, "pass"),
        (
            "{type: is-json, value: {properties: {a: {$ref: '#/$defs/s', minLength: 5}}, $defs: {s: {type: string}}}}",
            r#"{"a": "x"}"#,
            "fail",
        ),
        (
            "{type: is-json, value: {properties: {a: {$ref: '#/$defs/s', minLength: 5}}, $defs: {s: {type: string}}}}",
            r#"{"a": 5}"#,
            "fail",
        ),
        (
            "{type: is-json, value: {properties: {a: {contentEncoding: base64, type: string}}}}",
            r#"{"a": "***"}"#,
            "pass",
        ),
        ("{type: is-json, value: {title: t}}", "5", "pass"),
        ("{type: contains-json}", r#""I cannot do that""#, "fail"),
        ("{type: contains-json}", "42", "fail"),
        ("{type: contains-json}", "null", "fail"),
        ("{type: contains-json}", "[]", "fail"),
        ("{type: contains-json}", r#"[{"a": 1}]"#, "pass"),
        ("{type: contains-json, value: {type: array}}", "[1]", "fail"),
        ("{type: contains-json, value: {required: [b]}}", r#"[{"a": 1}]"#, "fail"),
        ("{type: contains-json, value: {required: [a]}}", r#"{"a": 1}"#, "pass"),
    ];
    let mut config = "prompts: [q]\nproviders: [echo]\ntests:\n".to_owned();
    for (at, (assert, _, _)) in rows.iter().enumerate() {
        config += &format!("  - {{description: row-{at}, assert: [{assert}]}}\n");
    }
    let project = Project::with(&[("pf/promptfooconfig.yaml", config.as_str())]);
    convert(&project, "promptfoo", "pf", &[]).exits(0);
    project.evals(&["check", "out/cases"]).exits(0);
    for (at, (_, answer, _)) in rows.iter().enumerate() {
        project.write(&format!("out/cases/pf/row-{at}.demo.yaml"), &format!("steps: [say: '{answer}']\n"));
    }
    let run = project.evals(&["run", "out/cases", "--reporter", "json"]).json();
    let verdict = |at: usize| {
        let results = run["results"].as_array().unwrap().iter();
        let mut of_row = results.filter(|result| result["case"].as_str().unwrap().ends_with(&format!("row-{at}")));
        of_row.next().unwrap()["verdict"].as_str().unwrap()
    };
    for (at, (assert, answer, expected)) in rows.iter().enumerate() {
        assert_eq!(verdict(at), *expected, "{assert}: {answer}");
    }
}

#[test]
fn calls_of_sub_agents_count_in_a_sequence_of_promptfoo() {
    let project = promptfoo("[{type: 'trajectory:tool-sequence', value: {mode: exact, steps: [Task]}}]", "");
    convert(&project, "promptfoo", "pf", &[]).exits(0);
    let case = project.read("out/cases/pf/one.yaml");
    assert!(case.contains("agent: any") && case.contains("mode: exact"), "{case}");
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn names_of_tools_of_promptfoo_are_globs_in_any_case() {
    let calls = [
        r#"{"kind":"read","name":"Read","input":{"file_path":"a"}}"#,
        r#"{"kind":"fetch","name":"WebFetch","input":{"url":"http://x"}}"#,
        r#"{"kind":"execute","name":"Bash","input":{"command":"ls"}}"#,
        r#"{"kind":"other","name":"mcp__db__drop","input":{"t":1}}"#,
        r#"{"kind":"other","name":"Hello","input":{}}"#,
    ];
    for (kind, value, code) in [
        ("not-trajectory:tool-used", "bash", 1),
        ("not-trajectory:tool-used", "'web*'", 1),
        ("not-trajectory:tool-used", "{name: 'mcp__*'}", 1),
        ("not-trajectory:tool-used", "{pattern: 'MCP__*', name: other}", 1),
        ("not-trajectory:tool-used", "'{{word}}'", 1),
        ("not-trajectory:tool-used", "bas", 0),
        // None of several may be used.
        ("not-trajectory:tool-used", "[shell, bash]", 1),
        ("not-trajectory:tool-used", "[shell, exec]", 0),
        ("trajectory:tool-used", "read", 0),
        ("trajectory:tool-used", "'Re*'", 0),
        ("trajectory:tool-used", "[read, 'w?bfetch']", 0),
        ("trajectory:tool-used", "[read, write]", 1),
        // One call may satisfy several names.
        ("trajectory:tool-used", "['mcp__db__*', 'mcp__*__drop']", 0),
        ("trajectory:tool-used", "[Bash, bash, '*']", 0),
        ("trajectory:tool-used", "['*', write]", 1),
        ("trajectory:tool-used", "{name: '*', min: 5}", 0),
        ("trajectory:tool-used", "{name: '*', min: 6}", 1),
        ("trajectory:tool-used", "{name: bash, min: 0, max: 0}", 1),
        ("trajectory:tool-sequence", "['re*', bash]", 0),
        ("trajectory:tool-sequence", "[bash, 're*']", 1),
        ("trajectory:tool-sequence", "{steps: [{pattern: 're*'}, {name: HELLO}]}", 0),
    ] {
        let project = promptfoo(&format!("[{{type: '{kind}', value: {value}}}]"), "");
        convert(&project, "promptfoo", "pf", &[]).exits(0);
        project.write("t.jsonl", &trace_of(&calls));
        let ran = project.evals(&["grade", "t.jsonl", "--case", "out/cases/pf/one.yaml"]);
        let case = project.read("out/cases/pf/one.yaml");
        assert_eq!(ran.code, code, "{kind} {value}\n{case}\n{}\n{}", ran.out, ran.err);
    }
}

#[test]
fn none_of_several_forbidden_skills_of_promptfoo_may_be_used() {
    for (assert, part) in [
        ("{type: skill-used, value: [sums, x]}", "    used:\n    - sums\n    - x\n"),
        ("{type: not-skill-used, value: [sums, ' x ']}", "    not-used:\n    - sums\n    - x\n"),
        ("{type: not-skill-used, value: '{{word}}'}", "    not-used:\n    - hello\n"),
        ("{type: not-skill-used, value: {name: x, max: 0}}", "    not-used:\n    - x\n"),
        ("{type: skill-used, value: {name: x, max: 0}}", "    not-used:\n    - x\n"),
    ] {
        let project = promptfoo(&format!("[{assert}]"), "");
        convert(&project, "promptfoo", "pf", &[]).exits(0);
        let case = project.read("out/cases/pf/one.yaml");
        assert!(case.contains(part), "{assert}: {case}");
        project.evals(&["check", "out/cases"]).exits(0);
    }
}

#[test]
fn promptfoo_thresholds_count_the_score_over_all_assertions() {
    let asserts = "[{type: contains-all, value: [a, b, c]}, {type: contains, value: d, weight: 3}]";
    let project = promptfoo(asserts, "    threshold: 0.75\n");
    convert(&project, "promptfoo", "pf", &[]).exits(0);
    decides(&project, "pf/one", "say: d", "say: abc");
    // Two of three words are no share of the score.
    let project = promptfoo("[{type: contains-all, value: [a, b, c]}]", "    threshold: 0.5\n");
    convert(&project, "promptfoo", "pf", &[]).exits(0);
    decides(&project, "pf/one", "say: abc", "say: ab");
    // A number is its own share, whether it passes alone or not.
    let project = promptfoo("[{type: javascript, value: 'output.length / 10'}]", "    threshold: 0.5\n");
    convert(&project, "promptfoo", "pf", &[]).exits(0);
    decides(&project, "pf/one", "say: hello", "say: helo");
    for (rest, said) in [
        ("    threshold: 0\n", "promptfooconfig.yaml:7: `tests[0].threshold`: no case was written: its threshold is 0"),
        ("    threshold: 2\n", "its threshold is above 1"),
        ("    options: {transform: output.a}\n", "`transform` changes the answer before it is checked"),
        ("    assertScoringFunction: file://a.js\n", "a program computes its score"),
        ("defaultTest: {options: {postprocess: output.a}}\n", "`postprocess` changes the answer"),
    ] {
        let project = promptfoo("[{type: contains, value: a}]", rest);
        convert(&project, "promptfoo", "pf", &[]).exits(2).says(said);
        assert!(!project.path("out").exists());
    }
    let left = "[{type: contains, value: a}, {type: similar, value: b}]";
    let project = promptfoo(left, "    threshold: 0.5\n");
    convert(&project, "promptfoo", "pf", &[]).exits(2).says("its threshold is a score over all assertions");
}

#[test]
fn a_test_of_promptfoo_that_is_passed_by_saying_nothing_because_assertions_were_left_out_says_so() {
    for (assertion, is_told) in [
        ("type: not-contains-all, value: [a, b]", true),
        ("type: not-icontains-any, value: [a, b]", true),
        ("type: word-count, value: {max: 5}", true),
        ("type: word-count, value: {min: 1, max: 5}", false),
        (
            "type: assert-set, threshold: 0.5, assert: [{type: not-contains, value: a}, {type: contains, value: b}]",
            true,
        ),
        (
            "type: assert-set, threshold: 0.6, assert: [{type: not-contains, value: a}, {type: contains, value: b}]",
            false,
        ),
        ("type: 'not-trajectory:tool-used', value: rm", true),
        ("type: 'trajectory:tool-used', value: {name: rm, min: 0, max: 2}", true),
        ("type: 'trajectory:tool-used', value: rm", false),
        ("type: cost, threshold: 1", true),
    ] {
        let project = promptfoo(&format!("[{{type: similar, value: a}}, {{{assertion}}}]"), "");
        let ran = convert(&project, "promptfoo", "pf", &[]);
        assert_eq!(ran.err.contains("so an agent that does nothing passes"), is_told, "{assertion}: {}", ran.err);
        assert!(!ran.err.contains("no case"), "{assertion}: {}", ran.err);
    }
}

#[test]
fn promptfoo_assertions_without_an_equal_are_named_with_their_line() {
    for (assert, said) in [
        ("type: similar, value: a", "`similar` has no equivalent: no grader checks this"),
        ("type: contains, value: ''", "it would hold for every answer"),
        ("type: contains, value: '{{other}}'", "the variable `other` has no value"),
        ("type: contains, value: '{{word | upper}}'", "which is not the name of a variable"),
        ("type: contains, value: a, transform: output.x", "it changes the answer before it is checked"),
        ("type: contains, value: 'file://a.js'", "its value is made by a program"),
        ("type: regex, value: '(?<!a)b'", "lookaround"),
        ("type: not-is-json", "no grader requires that an answer is not JSON"),
        ("type: is-json, value: 'file://../x.json'", "leads out of its folder"),
        ("type: latency", "a limit of at least one millisecond"),
        ("type: word-count, value: {min: 0}", "any number of words"),
        ("type: select-best, value: a", "use `evals compare`"),
        ("type: nonsense", "the type `nonsense` is not known"),
        ("type: skill-used, value: {pattern: a}", "its key `pattern` has no equivalent"),
        ("type: not-skill-used, value: {name: a, min: 0, max: 0}", "a number of uses has no equivalent"),
        ("type: 'trajectory:tool-used', value: {name: a, type: span}", "its key `type` has no equivalent"),
        ("type: 'trajectory:tool-used', value: {name: a, max: 0}", "no number of calls is accepted: the minimum is 1"),
        ("type: 'trajectory:tool-used', value: {name: '{{word}}'}", "the source does not fill variables in a map"),
        ("type: 'trajectory:tool-used', value: []", "the list is empty, or has an entry that is not a name"),
        ("type: 'not-trajectory:tool-used', value: ''", "it is neither a name nor a map"),
        (
            "type: 'trajectory:tool-sequence', value: {mode: [exact], steps: [a]}",
            "the mode `[\"exact\"]` has no equivalent",
        ),
        (
            "type: assert-set, threshold: '0.5', assert: [{type: contains, value: a}]",
            "`assert-set` has no equivalent: its threshold is no number",
        ),
    ] {
        let project = promptfoo(&format!("[{{type: contains, value: hello}}, {{{assert}}}]"), "");
        let ran = convert(&project, "promptfoo", "pf", &[]).exits(0).says(said);
        assert!(ran.err.contains("promptfooconfig.yaml:6: `tests[0].assert[1]"), "{}", ran.err);
        assert!(project.read("out/cases/pf/one.yaml").contains("# Note on `tests[0].assert[1]"));
        let alone = promptfoo(&format!("[{{{assert}}}]"), "");
        convert(&alone, "promptfoo", "pf", &[])
            .exits(2)
            .says("none of the assertions that decide it has an equivalent");
    }
    let project = promptfoo("[{type: contains, value: hello}]", "scenarios: file://scenarios.yaml\n");
    convert(&project, "promptfoo", "pf", &[]).exits(0).says("`scenarios` must be a list of maps");
    // The defaults alone would be another test.
    let defaults = "defaultTest: {assert: [{type: not-contains, value: sorry}]}\n";
    // An assertion of weight 0 decides nothing.
    for own in ["[{type: similar, value: a}]", "[{type: similar, value: a}, {type: contains, value: b, weight: 0}]"] {
        let project = promptfoo(own, "");
        let text = project.read("pf/promptfooconfig.yaml");
        project.write("pf/promptfooconfig.yaml", &format!("{defaults}{text}"));
        convert(&project, "promptfoo", "pf", &[]).exits(2).says("none of its own assertions has an equivalent");
    }
    let project = promptfoo("[{type: contains, value: a}]", "    prompts: [another]\n");
    convert(&project, "promptfoo", "pf", &[])
        .exits(2)
        .says("`tests[0].prompts`: no case was written: no prompt has one of these names");
    // What a trial does not know is no reason to pass.
    for assert in [
        "{type: javascript, value: '!context.providerResponse?.error'}",
        "{type: python, value: 'not context.get(\"providerResponse\")'}",
    ] {
        let project = promptfoo(&format!("[{assert}]"), "");
        convert(&project, "promptfoo", "pf", &[]).exits(0);
        assert_eq!(plays(&project, "pf/one", "say: hello"), 3);
    }
}

#[test]
fn promptfoo_combines_prompts_variables_defaults_and_tables() {
    let config = "prompts: [file://prompts.txt, '[{\"role\": \"system\", \"content\": \"Be {{tone}}.\"}, {\"role\": \"user\", \"content\": \"{{q}}\"}]']\n\
        providers: [a, b]\n\
        defaultTest: {vars: {tone: kind}, assert: [{type: not-contains, value: sorry}]}\n\
        tests:\n  - vars: {q: [one, two]}\n    assert: [{type: contains, value: '{{q}}'}]\n  - file://rows.csv\n";
    let project = Project::with(&[
        ("pf/promptfooconfig.yaml", config),
        ("pf/prompts.txt", "Ask {{q}}\n---\nTell {{q}}\n"),
        (
            "pf/rows.csv",
            "q,__expected,__expected2,__description\n\"a, b\",\"contains-any: x,y\",not-contains: z,From a row\nc,,,\n",
        ),
    ]);
    let ran = convert(&project, "promptfoo", "pf", &[]).exits(0).says("12 cases");
    ran.says("`providers`: left out");
    project.evals(&["check", "out/cases"]).exits(0);
    let case = project.read("out/cases/pf/test-1-prompt-3-2.yaml");
    assert!(case.contains("prompt: two\n") && case.contains("system-prompt: Be kind."), "{case}");
    let row = project.read("out/cases/pf/from-a-row-prompt-1.yaml");
    assert!(row.contains("prompt: Ask a, b\n") && row.contains("(?:x)|(?:y)") && row.contains("sorry"), "{row}");
    // The row without an assertion of its own still has the default one.
    assert!(project.read("out/cases/pf/test-3-prompt-1.yaml").contains("sorry"));
    for (text, said) in [
        ("prompts: [a]\n", "there is no test"),
        ("prompts: [a.py]\ntests: [{assert: [{type: contains, value: a}]}]\n", "a program that makes the prompt"),
        ("a: 1\n", "this is not a configuration of promptfoo"),
        ("", "the file is empty"),
        ("prompts: [\n", "promptfooconfig.yaml:"),
        ("instruction: do\n", "use --from terminal-bench"),
    ] {
        let project = Project::with(&[("promptfooconfig.yaml", text)]);
        convert(&project, "promptfoo", "promptfooconfig.yaml", &[]).exits(2).says(said);
    }
}

#[test]
fn promptfoo_compares_the_text_that_its_parser_makes_of_a_value() {
    let text = "prompts: ['q {{v}}']\nproviders: [echo]\ncommandLineOptions: {repeat: 5}\nevaluateOptions: {repeat: 3}\ntests:\n  \
        - {description: one, vars: {v: 1.0}, assert: [{type: not-contains, value: 1.0}]}\n  \
        - {description: two, vars: {v: 12345678901234567890}, assert: [{type: not-contains, value: 1e3}]}\n  \
        - {description: three, vars: {v: '010'}, assert: [{type: not-equals, value: 1.0}]}\n  \
        - {description: four, vars: {v: 1.50}, assert: [{type: not-contains-any, value: [5.0]}]}\n  \
        - {description: five, vars: {v: 010}, assert: [{type: contains, value: a}]}\n  \
        - {description: six, vars: {v: a}, assert: [{type: not-contains, value: 2024-01-01}]}\n  \
        - {description: seven, vars: {v: [a, {b: 1}]}, assert: [{type: contains, value: a}]}\n  \
        - {description: eight, vars: {v: a}, assert: [{$ref: '#/assertionTemplates/x'}]}\n";
    let project = Project::with(&[("pf/promptfooconfig.yaml", text)]);
    let ran = convert(&project, "promptfoo", "pf", &[]).exits(0);
    let case = |name: &str| project.read(&format!("out/cases/pf/{name}.yaml"));
    for (name, parts) in [
        ("one", ["prompt: q 1\n", "not-contains: '1'\n", "trials: 5\n"]),
        ("two", ["prompt: q 12345678901234567000\n", "not-contains: '1000'\n", "trials: 5\n"]),
        ("three", ["prompt: q 010\n", r"not-regex: \A1\s*\z", "trials: 5\n"]),
        ("four", ["prompt: q 1.5\n", "not-regex: (?:5)\n", "trials: 5\n"]),
        ("seven-1", ["prompt: q a\n", "contains: a\n", "trials: 5\n"]),
    ] {
        for part in parts {
            assert!(case(name).contains(part), "{part}: {}", case(name));
        }
    }
    for said in [
        "promptfooconfig.yaml:10: `tests[4].vars`: no case was written: the value of `v`: `010` is ambiguous without quotes",
        "promptfooconfig.yaml:11: `tests[5].assert[0].value`",
        "`2024-01-01` is ambiguous without quotes",
        "promptfooconfig.yaml:12: `tests[6]`: no case was written with the prompt `q {{v}}`: the value of `v` is a list or a map",
        "`tests[7].assert[0].$ref`: the assertion has no equivalent: it names no assertion of `assertionTemplates`",
    ] {
        assert!(ran.err.contains(said), "{said}\n{}", ran.err);
    }
    for name in ["five", "six", "eight"] {
        assert!(!project.path(&format!("out/cases/pf/{name}.yaml")).exists(), "{name}");
    }
    project.write("pf/promptfooconfig.yaml", &text.replace("{repeat: 5}", "{repeat: many}"));
    convert(&project, "promptfoo", "pf", &[]).exits(0).says("`commandLineOptions.repeat`: left out");
}

#[test]
fn patterns_of_promptfoo_that_mean_something_else_here_are_refused_with_their_line() {
    for pattern in [r"\</script\>", r"exit\zero", r"\Access denied", "(?i)secret", r"\x{2}", r"\p{L}", "a++", "[]a]"] {
        let asserts = format!("[{{type: contains, value: hello}}, {{type: not-regex, value: '{pattern}'}}]");
        let project = promptfoo(&asserts, "");
        let ran =
            convert(&project, "promptfoo", "pf", &[]).exits(0).says("means something else here than in the source");
        assert!(ran.err.contains("promptfooconfig.yaml:6: `tests[0].assert[1]"), "{}", ran.err);
        assert!(!project.read("out/cases/pf/one.yaml").contains("not-regex:"));
    }
    // The source fails for a schema with an unknown keyword.
    let project = promptfoo("[{type: is-json, value: {type: object, properties: {a: {requierd: [b]}}}}]", "");
    convert(&project, "promptfoo", "pf", &[]).exits(2).says("its keyword `requierd` is not known");
    let project = promptfoo("[{type: is-json, value: {items: {format: iri}}}]", "");
    convert(&project, "promptfoo", "pf", &[]).exits(2).says("its format `iri` is not known");
    // Code that loads another file cannot be copied alone.
    let project = promptfoo("[{type: javascript, value: 'file://a.js'}]", "");
    project.write("pf/a.js", "const h = require('./h');\nmodule.exports = () => h;\n");
    convert(&project, "promptfoo", "pf", &[]).exits(2).says("`a.js` loads `./h`");
}

#[test]
fn templates_of_promptfoo_take_the_place_of_their_references() {
    let rest = "assertionTemplates:\n  short: {type: contains, value: hello, weight: 2}\n  \
                other: {$ref: '#/assertionTemplates/short', value: bye}\n";
    let asserts = "[{$ref: '#/assertionTemplates/short'}, {$ref: '#/assertionTemplates/other', weight: 3}]";
    let project = promptfoo(asserts, rest);
    let ran = convert(&project, "promptfoo", "pf", &[]).exits(0);
    assert!(!ran.err.contains("assertionTemplates"), "{}", ran.err);
    let case = project.read("out/cases/pf/one.yaml");
    for part in ["contains: hello", "weight: 2", "contains: bye", "weight: 3"] {
        assert!(case.contains(part), "{part}: {case}");
    }
}

#[test]
fn code_of_promptfoo_gets_its_config_without_a_note() {
    let assert = "[{type: javascript, value: 'context.config.a === 1', config: {a: 1}, provider: x}]";
    let project = promptfoo(assert, "");
    let ran = convert(&project, "promptfoo", "pf", &[]).exits(0).says("`tests[0].assert[0].provider`: left out");
    assert!(!ran.err.contains(".config`"), "{}", ran.err);
}

#[test]
fn code_of_promptfoo_that_reads_a_variable_that_a_trial_does_not_have_is_ungraded() {
    let rest = "env: {DB_HOST: db7}\n";
    let python = "import os\\nhost = os.environ.get('DB_HOST', '')\\nreturn host == '' or host not in output";
    for assert in [
        "{type: javascript, value: '!output.includes(process.env.DB_HOST)'}".to_owned(),
        // The error of an unknown value that the code catches is not lost.
        "{type: javascript, value: \"try { return !process.env.DB_HOST } catch {}\\nreturn !output.includes('db7')\"}"
            .to_owned(),
        "{type: javascript, value: file://code.cjs}".to_owned(),
        format!("{{type: python, value: \"{python}\"}}"),
    ] {
        let project = promptfoo(&format!("[{assert}]"), rest);
        project.write("pf/code.cjs", "module.exports = (output) => !output.includes(process.env.DB_HOST);\n");
        convert(&project, "promptfoo", "pf", &[]).exits(0).says("`env`: left out: write the variables");
        assert_eq!(plays(&project, "pf/one", "say: The host is db7"), 3, "{assert}");
        // With the variable, the code decides.
        let case = project.read("out/cases/pf/one.yaml");
        project.write("out/cases/pf/one.yaml", &format!("{case}env: {{DB_HOST: db7}}\n"));
        assert_eq!(plays(&project, "pf/one", "say: The host is db7"), 1, "{assert}");
    }
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn code_of_promptfoo_that_looks_for_a_variable_in_another_way_is_ungraded() {
    for (language, code, exit) in [
        ("javascript", "globalThis.process.env.ZZZ === undefined", 3),
        ("javascript", "({...process.env}).ZZZ === undefined", 3),
        ("javascript", "!Object.hasOwn(process.env, \"ZZZ\")", 3),
        ("javascript", "!process.env.hasOwnProperty(\"ZZZ\")", 3),
        ("javascript", "!Object.keys(process.env).includes(\"ZZZ\")", 3),
        ("javascript", "new Promise(r => setTimeout(() => r(!process.env.ZZZ), 5))", 3),
        ("javascript", "new Promise(r => setTimeout(() => { try { r(!process.env.ZZZ) } catch {} }, 5))", 3),
        ("javascript", "new Promise(r => setTimeout(() => r(!!process.env.PATH), 5))", 0),
        ("javascript", "Object.hasOwn(process.env, \"PATH\") && !!globalThis.process.env.PATH", 0),
        ("javascript", "!!process.mainModule.require(\"child_process\").execSync(\"echo a\", {env: process.env})", 0),
        ("python", "dict(os.environ).get('ZZZ') is None", 3),
        ("python", "os.environ.copy().get('ZZZ') is None", 3),
        ("python", "os.environb.get(b'ZZZ') is None", 3),
        ("python", "'ZZZ' not in list(os.environ)", 3),
        ("python", "'ZZZ' not in str(os.environ)", 3),
        ("python", "os.path.expandvars('$ZZZ') == '$ZZZ'", 3),
        ("python", "os.environ.copy().pop('ZZZ', None) is None", 3),
        ("python", "'ZZZ' not in {**os.environ.copy()}", 3),
        ("python", "(os.environ.copy() | {}).get('ZZZ') is None", 3),
        ("python", "'ZZZ' not in f'{os.environ.copy()}'", 3),
        ("python", "os.path.expandvars('$PATH') == os.environ.copy().copy().pop('PATH')", 0),
        ("python", "subprocess.run(['true'], env={'A': 'b'} | os.environ.copy()).returncode == 0", 0),
        ("python", "'PATH' in os.environ.copy() and 'PATH' in (os.environ | {'A': 'b'})", 0),
        ("python", "subprocess.run(['true'], env=os.environ.copy()).returncode == 0", 0),
    ] {
        let code = if language == "python" { format!("import os, subprocess\nreturn {code}") } else { code.to_owned() };
        let assert = serde_json::json!([{"type": language, "value": code}]);
        let project = promptfoo(&assert.to_string(), "");
        convert(&project, "promptfoo", "pf", &[]).exits(0);
        assert_eq!(plays(&project, "pf/one", "say: x"), exit, "{code}");
    }
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn scores_of_code_of_promptfoo_count_as_they_are() {
    let scored = "    threshold: 0.5\n";
    for (assert, rest, code) in [
        // The score of a number or an object is not inverted.
        ("{type: not-javascript, value: '0'}", scored, 1),
        ("{type: not-javascript, value: '({pass: false, score: 0})'}", scored, 1),
        ("{type: not-python, value: '0.2'}", scored, 1),
        ("{type: not-python, value: '0.8'}", scored, 0),
        // A score beyond the range is added in the source.
        ("{type: javascript, value: '-3'}", scored, 3),
        ("{type: javascript, value: '1.5'}", scored, 3),
        ("{type: python, value: '1.5'}", scored, 3),
        // JavaScript's object is taken without the threshold of the assertion, Python's with it.
        ("{type: javascript, value: '({pass: true, score: 0.2})', threshold: 0.9}", "", 0),
        ("{type: python, value: '{\"pass\": True, \"score\": 0.2}', threshold: 0.9}", "", 1),
        ("{type: not-javascript, value: '0'}", "", 0),
    ] {
        let project = promptfoo(&format!("[{assert}]"), rest);
        convert(&project, "promptfoo", "pf", &[]).exits(0);
        assert_eq!(plays(&project, "pf/one", "say: hello"), code, "{assert}");
    }
}

/// A task of Harbor whose verifier writes these lines.
fn harbor(toml: &str, verifier: &str) -> Project {
    let test = format!("#!/bin/sh\nmkdir -p /logs/verifier\n{verifier}\n");
    let project = Project::with(&[
        ("tasks/hello/task.toml", toml),
        ("tasks/hello/instruction.md", "Write hello to hello.txt.\n"),
        ("tasks/hello/environment/Dockerfile", "FROM debian\nWORKDIR /app\nCOPY data.txt .\n"),
        ("tasks/hello/environment/data.txt", "data\n"),
        ("tasks/hello/tests/test.sh", &test),
        ("tasks/hello/solution/solve.sh", "echo hello > hello.txt\n"),
    ]);
    let path = project.path("tasks/hello/tests/test.sh");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    project
}

const TOML: &str = "version = \"1.0\"\n[metadata]\ntags = [\"easy\"]\n[agent]\ntimeout_sec = 60.0\n[verifier]\n\
    timeout_sec = 30.0\n[environment]\nmemory_mb = 512\nstorage_mb = 100\n";

#[test]
fn a_task_of_harbor_needs_its_container() {
    let project = harbor(TOML, "echo 1 > /logs/verifier/reward.txt");
    let ran = convert(&project, "harbor", "tasks/hello", &[]).exits(0);
    ran.says("task.toml:10: `environment.storage_mb`: left out");
    project.evals(&["check", "out/cases"]).exits(0);
    let case = project.read("out/cases/tasks/hello.yaml");
    assert!(case.contains("on-limit: grade") && case.contains("--memory 512m"), "{case}");
    assert_eq!(project.read("out/images/tasks/hello/data.txt"), "data\n");
    assert!(project.read("out/images/tasks/hello/Dockerfile").contains("COPY data.txt .\n\n# Added by"));
    // Without the container nothing is judged, whatever the sandbox.
    project.write("out/cases/tasks/hello.demo.yaml", "steps: [{write: {path: hello.txt, text: hello}}]\n");
    for sandbox in ["none", "command"] {
        let ran = project.evals(&["run", "out/cases", "--sandbox", sandbox, "--trials", "1"]);
        assert_eq!(ran.code, 3, "{sandbox}: {}", ran.out);
        assert!(!std::path::Path::new("/logs/verifier/reward.txt").exists());
    }
    // Also if a user removes the setup: the verifier itself refuses.
    let text: String =
        case.lines().filter(|line| !line.contains(".evals/workdir")).map(|line| format!("{line}\n")).collect();
    project.write("out/cases/tasks/hello.yaml", &text.replace("workspace:\n  setup:\n", ""));
    let ran = project.evals(&["run", "out/cases", "--sandbox", "none", "--trials", "1"]).exits(3);
    assert!(ran.out.contains("the verifier runs only in the container of the task"), "{}", ran.out);
}

#[test]
fn the_memory_of_a_task_of_harbor_may_have_a_unit() {
    let project = harbor("", "true");
    for (line, option) in [
        ("memory = \"2G\"", "--memory 2048m"),
        ("memory = \"2048M\"", "--memory 2048m"),
        ("memory_mb = \"2Gi\"", "--memory 2048m"),
        ("memory_mb = 512", "--memory 512m"),
    ] {
        project.write("tasks/hello/task.toml", &format!("[environment]\n{line}\nstorage = \"10G\"\n"));
        convert(&project, "harbor", "tasks/hello", &[]).exits(0).says("`environment.storage`: left out: docker has no");
        let case = project.read("out/cases/tasks/hello.yaml");
        assert!(case.contains(option), "{line}: {case}");
    }
    project.write("tasks/hello/task.toml", "[environment]\nmemory = \"much\"\n");
    convert(&project, "harbor", "tasks/hello", &[])
        .exits(2)
        .says("task.toml:2: `environment.memory`: no case was written: this is neither");
}

#[test]
fn keys_of_harbor_that_are_not_known_are_listed_with_their_line() {
    let project = harbor("[environment]\nuser = \"app\"\n", "true");
    let ran = convert(&project, "harbor", "tasks/hello", &[]).exits(0);
    ran.says("task.toml:2: `environment.user`: the key is not known, and was left out");
}

#[test]
fn an_agent_of_harbor_without_a_time_limit_has_as_long_as_its_container() {
    let project = harbor("[verifier]\ntimeout_sec = 30.0\n", "true");
    let ran = convert(&project, "harbor", "tasks/hello", &[]).exits(0);
    ran.says("`agent.timeout_sec`: the agent has no time limit in the source; here it has 86400 seconds");
    let case = project.read("out/cases/tasks/hello.yaml");
    assert!(case.contains("time: 86400s\n") && case.contains("on-limit: grade\n"), "{case}");
}

#[test]
fn the_working_directory_of_an_image_is_read_from_the_image() {
    let mut project = harbor("", "true");
    // It notes what is started, and where.
    let docker = "#!/bin/sh\ncase $1 in\n  inspect) exit 1 ;;\n  image) echo FOLDER ;;\n  run) echo \"$@\" >> LOG ;;\n  \
                  exec) echo \"$@\" >> LOG ;;\nesac\n";
    let (log, path) = (project.path("log"), std::env::var("PATH").unwrap());
    project.env("PATH", &format!("{}:{path}", project.path("bin").display()));
    for (dockerfile, folder, said) in [
        ("FROM debian\nWORKDIR /app\n", "/app", None),
        ("FROM debian AS base\nWORKDIR /app\nFROM base\n", "/app", None),
        ("FROM debian\nENV HERE=/srv\nWORKDIR $HERE/work\n", "/srv/work", None),
        ("FROM debian\nWORKDIR /app\nRUN <<EOF\nWORKDIR /other\nEOF\n", "/app", None),
        ("FROM other\n", "/app", Some("the Dockerfile sets no WORKDIR")),
        ("FROM other\n", "/", Some("the Dockerfile sets no WORKDIR")),
        ("FROM other\nWORKDIR /\n", "/", Some("the working directory of the image is `/`")),
    ] {
        project.write("tasks/hello/environment/Dockerfile", dockerfile);
        let ran = convert(&project, "harbor", "tasks/hello", &[]).exits(0);
        assert_eq!(said.is_none(), !ran.err.contains("agent starts in an empty folder"), "{dockerfile}{}", ran.err);
        assert!(ran.err.contains(said.unwrap_or_default()), "{dockerfile}{}", ran.err);
        let written = docker.replace("FOLDER", folder).replace("LOG", &log.display().to_string());
        project.write("bin/docker", &written);
        std::fs::set_permissions(project.path("bin/docker"), std::fs::Permissions::from_mode(0o755)).unwrap();
        project.write("log", "");
        plays(&project, "tasks/hello", "say: done");
        let log = project.read("log");
        let is_mounted = log.lines().any(|line| line.starts_with("run ") && line.contains(&format!(":{folder} ")));
        assert_eq!(is_mounted, folder != "/", "{dockerfile}{log}");
        let starts = format!("-w {}", if folder == "/" { "" } else { folder });
        let mut commands = log.lines().filter(|line| line.starts_with("exec "));
        assert!(commands.all(|line| line.contains(&starts) && !line.contains("-w / ")), "{dockerfile}{log}");
        assert!(log.contains("exec "), "{dockerfile}{log}");
    }
}

#[test]
fn tags_of_a_task_are_written_once() {
    let project =
        harbor("[metadata]\ntags = [\"easy\", \"math\"]\ndifficulty = \"easy\"\ncategory = \"math\"\n", "true");
    convert(&project, "harbor", "tasks/hello", &[]).exits(0);
    let tags = "tags:\n- easy\n- math\n";
    let case = project.read("out/cases/tasks/hello.yaml");
    assert!(case.contains(tags) && !case.contains("- math\n- easy"), "{case}");
    let project = Project::with(&[
        ("tb/a/task.yaml", "instruction: Do it.\ntags: [easy, math]\ndifficulty: easy\ncategory: math\n"),
        ("tb/a/Dockerfile", "FROM debian\n"),
        ("tb/a/run-tests.sh", "pytest\n"),
    ]);
    convert(&project, "terminal-bench", "tb/a", &[]).exits(0);
    let case = project.read("out/cases/tb/a.yaml");
    assert!(case.contains(tags) && !case.contains("- math\n- easy"), "{case}");
}

#[test]
fn an_instance_of_swe_bench_may_be_of_a_local_repository() {
    let (project, row) = swe_bench();
    for repo in [project.path("repo").display().to_string(), "./repo".to_owned()] {
        let mut row: serde_json::Value = serde_json::from_str(&row).unwrap();
        row["repo"] = repo.into();
        project.write("rows.jsonl", &format!("{row}\n"));
        convert(&project, "swe-bench", "rows.jsonl", &["--test", "python3 -m unittest -v test_calc"]).exits(0);
        let case = project.read("out/cases/rows/me-calc-1.yaml");
        let folder = project.path("repo").canonicalize().unwrap();
        assert!(case.contains(&format!("path: {}\n", folder.display())), "{case}");
        project.evals(&["check", "out/cases"]).exits(0);
    }
    let missing = row.replace(&format!("file://{}", project.path("repo").display()), "../nowhere");
    project.write("rows.jsonl", &format!("{missing}\n"));
    convert(&project, "swe-bench", "rows.jsonl", &["--test", "x"])
        .exits(2)
        .says("`repo`: no case was written for `me__calc-1`: the folder ../nowhere cannot be read");
}

#[test]
fn tasks_of_harbor_that_would_be_others_are_refused_with_their_line() {
    for (toml, said) in [
        ("[[steps]]\nname = \"a\"\n", "task.toml:1: `steps`: no case was written: it has several steps"),
        ("[verifier]\nenvironment_mode = \"separate\"\n", "task.toml:2: `verifier.environment_mode`"),
        ("[verifier.env]\nKEY = \"${KEY}\"\n", "takes its value from the environment of the machine"),
        ("[environment]\nnetwork_mode = \"allowlist\"\n", "the network `allowlist` has no equivalent"),
        ("[agent]\nuser = \"nobody\"\n", "agent and verifier run as root"),
        ("[environment]\nos = \"windows\"\n", "it runs on Windows"),
        ("[agent]\ntimeout_sec = -1\n", "this is not a number of seconds up to"),
        (
            "[environment]\nos = [\"windows\"]\n",
            "task.toml:2: `environment.os`: no case was written: this is not a text",
        ),
        ("[environment]\nnetwork_mode = 1\n", "this is not a text"),
        ("[environment]\nallow_internet = \"false\"\n", "this is not true or false"),
        ("[environment]\ncpus = \"2\"\n", "this is not a number from 0"),
        ("[environment]\ngpus = \"1\"\n", "this is not a whole number from 0"),
        ("[environment]\nenv = [\"A=b\"]\n", "this is not a table"),
        ("a = \n", "task.toml:1:"),
    ] {
        let project = harbor(toml, "true");
        convert(&project, "harbor", "tasks/hello", &[]).exits(2).says(said);
        assert!(!project.path("out").exists());
    }
    let project = harbor(TOML, "true");
    let file = "tasks/hello/environment/Dockerfile";
    for (text, said) in [
        ("FROM a\nENTRYPOINT [\"/start.sh\"]\n", "the image starts the ENTRYPOINT `[\"/start.sh\"]`"),
        ("FROM a AS b\nentrypoint /start.sh\nFROM b\n", "the image starts the ENTRYPOINT `/start.sh`"),
        ("FROM a\nuser me\n", "the image sets the user `me`"),
    ] {
        project.write(file, text);
        convert(&project, "harbor", "tasks/hello", &[]).exits(2).says(said);
    }
    project.write(file, "FROM a\nENTRYPOINT [\"tini\", \"--\"]\nCMD [\"/serve\"]\n");
    convert(&project, "harbor", "tasks/hello", &[])
        .exits(0)
        .says("Dockerfile:3: the CMD `[\"/serve\"]` is not started");
    project.write("tasks/hello/environment/docker-compose.yaml", "services: {}\n");
    convert(&project, "harbor", "tasks", &[]).exits(2).says("its environment has a docker-compose.yaml");
    convert(&project, "terminal-bench", "tasks/hello", &[]).exits(2).says("use --from harbor");
    convert(&project, "harbor", "nowhere", &[]).exits(2).says("the path could not be read");
}

#[test]
fn a_task_of_terminal_bench_needs_its_container() {
    let project = Project::with(&[
        ("tb/a/task.yaml", "instruction: Do it.\ntags: [x]\nparser_name: pytest\nauthor_name: me\nshell: zsh\n"),
        ("tb/a/Dockerfile", "FROM debian\nWORKDIR /app\n"),
        ("tb/a/run-tests.sh", "pytest $TEST_DIR -rA\n"),
        ("tb/a/tests/test_outputs.py", "def test_a(): pass\n"),
        ("tb/b/task.yaml", "instruction: Do it.\nparser_name: swebench\n"),
        ("tb/c/task.yaml", "instruction: Do it.\nparser_name: [swebench]\n"),
        ("tb/d/task.yaml", "instruction: Do it.\nrun_tests_in_same_shell: 'true'\n"),
    ]);
    let ran = convert(&project, "terminal-bench", "tb", &[]).exits(0).says("1 case;");
    let ran = ran.says("a/task.yaml:4: `author_name`: left out: the key does not change the task");
    let ran = ran.says("a/task.yaml:5: `shell`: the key is not known, and was left out");
    let ran = ran.says("b/task.yaml:2: `parser_name`: no case was written: no grader reads");
    let ran = ran.says("c/task.yaml:2: `parser_name`: no case was written: this is not a text");
    ran.says("d/task.yaml:2: `run_tests_in_same_shell`: no case was written: this is not true or false");
    project.evals(&["check", "out/cases"]).exits(0);
    let case = project.read("out/cases/tb/a.yaml");
    assert!(case.contains("time: 360s") && case.contains("format: pytest"), "{case}");
    assert_eq!(plays(&project, "tb/a", "say: done"), 3);
}

#[test]
fn a_task_of_terminal_bench_whose_container_starts_something_is_refused() {
    let compose = |rest: &str| format!("services:\n  client:\n    build: {{dockerfile: Dockerfile}}\n{rest}");
    for (rest, dockerfile, said) in [
        ("    command: [sh, -c, sleep infinity]\n", "CMD /serve\n", Ok(())),
        ("    command: tail -f /dev/null\n", "", Ok(())),
        ("    tty: true\n", "CMD [\"bash\"]\n", Ok(())),
        ("    command: [bash, /srv.sh]\n", "", Err("its docker-compose.yaml starts the command `bash /srv.sh`")),
        ("    command: '/srv & sleep infinity'\n", "", Err("starts the command `/srv & sleep infinity`")),
        ("    tty: true\n", "CMD /serve\n", Err("the image starts the CMD `/serve`")),
        ("    command: sleep infinity\n", "ENTRYPOINT /s\n", Err("the image starts the ENTRYPOINT `/s`")),
        ("    environment: ['TEST_DIR=${T_BENCH_TEST_DIR}', A=x]\n", "", Ok(())),
        ("    environment: {A: '${HOME}/x'}\n", "", Err("takes variables from the machine")),
        ("    environment: {A: $HOME/x}\n", "", Err("takes variables from the machine")),
        ("    working_dir: $HOME\n", "", Err("takes variables from the machine")),
        ("    volumes: ['${T_BENCH_TASK_LOGS_PATH}:/logs']\n", "", Ok(())),
        ("    volumes: {a: /b}\n", "", Err("mounts folders")),
    ] {
        let project = Project::with(&[
            ("tb/a/task.yaml", "instruction: Do it.\nparser_name: pytest\n"),
            ("tb/a/Dockerfile", &format!("FROM debian\nWORKDIR /app\n{dockerfile}")),
            ("tb/a/docker-compose.yaml", &compose(rest)),
            ("tb/a/run-tests.sh", "pytest $TEST_DIR -rA\n"),
        ]);
        match said {
            Ok(()) => drop(convert(&project, "terminal-bench", "tb", &[]).exits(0)),
            Err(said) => drop(convert(&project, "terminal-bench", "tb", &[]).exits(2).says(said)),
        }
    }
}

#[test]
fn a_compose_file_of_terminal_bench_is_found_under_each_of_its_names() {
    for name in ["docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"] {
        let project = Project::with(&[
            ("tb/a/task.yaml", "instruction: Do it.\nparser_name: pytest\n"),
            ("tb/a/Dockerfile", "FROM debian\nWORKDIR /app\n"),
            (&format!("tb/a/{name}"), "services: {client: {build: .}, db: {image: x}}\n"),
            ("tb/a/run-tests.sh", "pytest $TEST_DIR -rA\n"),
        ]);
        let said = format!("its {name} has not one service");
        convert(&project, "terminal-bench", "tb", &[]).exits(2).says(&said);
    }
}

#[test]
fn descriptions_of_terminal_bench_that_are_left_out_are_named() {
    let base = "descriptions:\n- key: base\n  description: Do it.\n- key: hard\n  description: Do.\n";
    for (text, said, other) in [
        (base.to_owned(), "task.yaml:4: `descriptions[1]`: left out: the description `hard`", "descriptions[0]"),
        (format!("instruction: Do.\n{base}"), "task.yaml:3: `descriptions[0]`: left out", "descriptions[2]"),
    ] {
        let project = Project::with(&[
            ("tb/a/task.yaml", &text),
            ("tb/a/Dockerfile", "FROM debian\nWORKDIR /app\n"),
            ("tb/a/run-tests.sh", "pytest $TEST_DIR -rA\n"),
        ]);
        let ran = convert(&project, "terminal-bench", "tb", &[]).exits(0).says(said);
        assert!(!ran.err.contains(other), "{}", ran.err);
    }
}

/// A repository with a function to fix, and an instance of SWE-bench about it.
fn swe_bench() -> (Project, String) {
    let project =
        Project::with(&[("repo/calc.py", "def add(a, b):\n    return a - b\n"), ("repo/test_calc.py", "X = 1\n")]);
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
        let done =
            std::process::Command::new("git").current_dir(project.path("repo")).args(own).args(args).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "base"]);
    let commit = git(&["rev-parse", "HEAD"]);
    project.write("repo/test_calc.py", "X = 1\nimport unittest, calc\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n\n    def test_still(self):\n        self.assertEqual(X, 1)\n");
    let tests = git(&["diff"]);
    git(&["checkout", "-q", "."]);
    project.write("repo/calc.py", "def add(a, b):\n    return a + b\n");
    let gold = git(&["diff"]);
    git(&["checkout", "-q", "."]);
    let row = serde_json::json!({
        "repo": format!("file://{}", project.path("repo").display()),
        "instance_id": "me__calc-1",
        "base_commit": commit,
        "patch": format!("{gold}\n"),
        "test_patch": format!("{tests}\n"),
        "problem_statement": "add subtracts.",
        "hints_text": "look at calc.py",
        "version": "1",
        "FAIL_TO_PASS": "[\"test_calc.T.test_add\"]",
        "PASS_TO_PASS": "[\"test_calc.T.test_still\"]",
    });
    (project, row.to_string())
}

#[test]
#[ignore = "slow: an audit and several trials"]
fn an_instance_of_swe_bench_passes_for_a_fix_alone() {
    let (project, row) = swe_bench();
    project.write("rows.jsonl", &format!("{row}\n"));
    convert(&project, "swe-bench", "rows.jsonl", &[]).exits(2).says("rows.jsonl:1: `FAIL_TO_PASS`: no case was written for `me__calc-1`: the names do not tell the command of the tests; name it with --test");
    let test = ["--test", "python3 -m unittest -v test_calc"];
    convert(&project, "swe-bench", "rows.jsonl", &test).exits(0).says("rows.jsonl:1: `hints_text`: left out");
    let fix = "edit: {path: calc.py, old: '-', new: '+'}";
    decides(&project, "rows/me-calc-1", fix, "say: nothing");
    // Tests that the agent wrote or broke do not count.
    let wrong = "write: {path: test_calc.py, text: \"import unittest\\nclass T(unittest.TestCase):\\n  def test_add(self): pass\\n  def test_still(self): pass\\n\"}";
    assert_eq!(plays(&project, "rows/me-calc-1", wrong), 1);
    let steps = format!("{{{fix}}}, {{delete: {{path: test_calc.py}}}}");
    assert_eq!(plays(&project, "rows/me-calc-1", &steps), 0);
    // The reference solution is a patch without the tests, and the audit applies it.
    let case = project.read("out/cases/rows/me-calc-1.yaml");
    assert!(case.contains("oracle:\n  patch: me-calc-1.patch\n"), "{case}");
    let patch = project.read("out/cases/rows/me-calc-1.patch");
    assert!(patch.contains("+    return a + b\n") && !patch.contains("test_calc"), "{patch}");
    assert!(project.read("out/cases/rows/me-calc-1.hidden/.evals-tests/test.patch").contains("test_add"));
    let audited = ["check", "--audit", "--mutants", "1", "--format", "json", "out/cases/rows/me-calc-1.yaml"];
    let report = project.evals(&audited).exits(0).json();
    assert_eq!((&report["summary"]["sound"], &report["cases"][0]["mutants"]["noticed"]), (&1.into(), &1.into()));
    // A patch that does not fit is no solution.
    project.write("out/cases/rows/me-calc-1.patch", &patch.replace("a - b", "a * b"));
    project.evals(&audited).exits(1);
}

#[test]
fn a_test_that_a_patch_of_swe_bench_renames_is_restored_under_its_old_name() {
    let (project, row) = swe_bench();
    let patch = "diff --git a/test_calc.py b/test_sums.py\nsimilarity index 50%\nrename from test_calc.py\nrename to \
                 test_sums.py\n--- a/test_calc.py\n+++ b/test_sums.py\n@@ -1 +1,7 @@\n X = 1\n+import unittest, \
                 calc\n+\n+\n+class T(unittest.TestCase):\n+    def test_add(self):\n+        self.assertEqual(calc.add(1, 2), 3)\n";
    let mut row: serde_json::Value = serde_json::from_str(&row).unwrap();
    row["test_patch"] = patch.into();
    row["FAIL_TO_PASS"] = "[\"test_sums.T.test_add\"]".into();
    row["PASS_TO_PASS"] = "[]".into();
    project.write("rows.jsonl", &row.to_string());
    convert(&project, "swe-bench", "rows.jsonl", &["--test", "python3 -m unittest -v test_sums"]).exits(0);
    let case = project.read("out/cases/rows/me-calc-1.yaml");
    assert!(case.contains("protect:\n  - test_calc.py\n"), "{case}");
    // The solution also changed the old test, and made a file with the new name.
    let fix = "{edit: {path: calc.py, old: '-', new: '+'}}";
    let tests = "{write: {path: test_calc.py, text: \"Y = 1\"}}, {write: {path: test_sums.py, text: \"Z = 1\"}}";
    assert_eq!(plays(&project, "rows/me-calc-1", &format!("{fix}, {tests}")), 0);
    assert_eq!(plays(&project, "rows/me-calc-1", tests), 1);
}

#[test]
fn tests_of_swe_bench_are_applied_whatever_the_agent_sets_in_its_repository() {
    let (project, row) = swe_bench();
    project.write("rows.jsonl", &row);
    convert(&project, "swe-bench", "rows.jsonl", &["--test", "python3 -m unittest -v test_calc"]).exits(0);
    // Git ignores each path of a patch that is not below its folder, without an error.
    let settings = "{run: {command: git config core.worktree ../..}}";
    let fix = "{edit: {path: calc.py, old: '-', new: '+'}}";
    assert_eq!(plays(&project, "rows/me-calc-1", &format!("{fix}, {settings}")), 0);
    assert_eq!(plays(&project, "rows/me-calc-1", settings), 1);
}

#[test]
fn rows_of_swe_bench_that_would_pass_for_nothing_are_refused() {
    let (project, row) = swe_bench();
    for (from, to, said) in [
        ("\"[\\\"test_calc.T.test_add\\\"]\"", "\"[]\"", "an unchanged repository would pass"),
        (
            "\"[\\\"test_calc.T.test_add\\\"]\"",
            "\"no list\"",
            "neither a list of names nor a text that contains such a list",
        ),
        ("\"[\\\"test_calc.T.test_add\\\"]\"", "[\"a\", \"\"]", "a name of the list is empty"),
        ("diff --git", "index", "this is not a patch of Git"),
    ] {
        assert!(row.contains(from), "{row}");
        project.write("rows.jsonl", &row.replace(from, to));
        convert(&project, "swe-bench", "rows.jsonl", &["--test", "true"]).exits(2).says(said);
    }
    project.write("rows.jsonl", &row.replace("test_calc.T.test_add", "test_calc.T.test_add[*]"));
    convert(&project, "swe-bench", "rows.jsonl", &["--test", "true"]).exits(0).says(
        "rows.jsonl:1: `FAIL_TO_PASS`: if no test has the name `test_calc.T.test_add[*]`, others that fit it count",
    );
    // SWE-bench cuts names at white space.
    project.write("rows.jsonl", &row.replace("test_calc.T.test_add", "test_calc.py::test_add[two"));
    let converted = convert(&project, "swe-bench", "rows.jsonl", &["--test", "true"]).exits(0);
    converted.says("every test whose name begins with `test_calc.py::test_add[two` and white space has to pass");
    let case = project.read("out/cases/rows/me-calc-1.yaml");
    assert!(case.contains("test_calc.py::test_add[two *"), "{case}");
    project.write("rows.jsonl", &format!("{row}\n{{\"a\"\n"));
    convert(&project, "swe-bench", "rows.jsonl", &[]).exits(2).says("rows.jsonl:2:1: this line is not JSON");
    project.write("rows.jsonl", "{\"input\": \"a\", \"target\": \"b\"}\n");
    convert(&project, "swe-bench", "rows.jsonl", &[]).exits(2).says("use --from inspect");
    project.write("rows.parquet", "PAR1");
    convert(&project, "swe-bench", "rows.parquet", &[]).exits(2).says("export the samples as JSON Lines");
    // The names of pytest tell their command, and those of Django.
    let names = "[\\\"tests/test_a.py::test_b[x y]\\\"]";
    project.write(
        "rows.jsonl",
        &row.replace("[\\\"test_calc.T.test_add\\\"]", names).replace("[\\\"test_calc.T.test_still\\\"]", "[]"),
    );
    convert(&project, "swe-bench", "rows.jsonl", &[]).exits(0);
    let script = project.read("out/cases/rows/me-calc-1.hidden/.evals-tests/run.sh");
    assert!(script.contains(" python -m pytest -p evals_xfail -rA -p no:cacheprovider tests/test_a.py\n"), "{script}");
    // With another command, the source counts more tests as passed.
    let said = "`PASS_TO_PASS`: a test that fails as expected (`XFAIL`) has passed in the source, and has not passed with --test";
    convert(&project, "swe-bench", "rows.jsonl", &["--test", "python -m pytest -rA"]).exits(0).says(said);
}

#[test]
fn a_test_of_swe_bench_that_fails_as_expected_has_passed_and_one_that_passes_unexpectedly_has_not() {
    let (project, row) = swe_bench();
    project.write("rows.jsonl", &row.replace("test_calc.T.", "test_calc.py::"));
    let ran = convert(&project, "swe-bench", "rows.jsonl", &[]).exits(0);
    assert!(!ran.err.contains("XFAIL"), "{}", ran.err);
    // Stand-ins for pytest and its reports.
    project.write("pytest.py", "def hookimpl(**options):\n    return lambda function: function\n");
    let program = "import types, evals_xfail\nfor outcome, made in (('skipped', {'wasxfail': 'known'}), ('skipped', {}), ('passed', \
                   {'wasxfail': ''}), ('passed', {}), ('failed', {'wasxfail': ''})):\n    kinds = {kind: kind == outcome \
                   for kind in ('skipped', 'passed', 'failed')}\n    report = types.SimpleNamespace(longrepr='x', **kinds, \
                   **made)\n    print(evals_xfail.pytest_report_teststatus(report), report.longrepr)\n";
    let mut python = std::process::Command::new("python3");
    python.args(["-B", "-c", program]).current_dir(project.path("."));
    let shown = python.env("PYTHONPATH", "out/cases/rows/me-calc-1.hidden/.evals-tests").output().unwrap();
    let said = String::from_utf8_lossy(&shown.stderr);
    let wanted = "('passed', 'x', 'PASSED') None\nNone x\n('failed', 'X', 'FAILED') x\nNone x\nNone x\n";
    assert_eq!(String::from_utf8_lossy(&shown.stdout), wanted, "{said}");
}

#[test]
fn names_that_the_reader_of_logs_of_swe_bench_rewrites_are_reported_by_both_names() {
    let (project, row) = swe_bench();
    let row = row.replace("test_calc.T.", "test_calc.py::");
    let mut row: serde_json::Value = serde_json::from_str(&row).unwrap();
    row["repo"] = "psf/requests".into();
    row["PASS_TO_PASS"] = r#"["test_calc.py::test_a[/b]", "test_calc.py::test_a[two", "[100%]"]"#.into();
    project.write("rows.jsonl", &row.to_string());
    let converted = convert(&project, "swe-bench", "rows.jsonl", &[]).exits(0);
    converted.says("`PASS_TO_PASS`: left out: `[100%]` is no test");
    let case = project.read("out/cases/rows/me-calc-1.yaml");
    assert!(case.contains("test_calc.py::test_a[two") && !case.contains("test_a[two *"), "{case}");
    // Stand-ins for pytest, its reports and its terminal.
    project.write("pytest.py", "def hookimpl(**options):\n    return lambda function: function\n");
    let program = "import types, evals_xfail\nnames = ['a.py::t[/x/b]', 'a.py::t[two words]', 'a.py::t[/]', 'a.py::t']\n\
                   reports = [types.SimpleNamespace(nodeid=name) for name in names]\n\
                   evals_xfail.pytest_terminal_summary(types.SimpleNamespace(stats={'passed': reports, '': [1]}, \
                   write_sep=print, write_line=print))\n";
    let mut python = std::process::Command::new("python3");
    python.args(["-B", "-c", program]).current_dir(project.path("."));
    let shown = python.env("PYTHONPATH", "out/cases/rows/me-calc-1.hidden/.evals-tests").output().unwrap();
    let said = String::from_utf8_lossy(&shown.stderr);
    let wanted = "= short test summary info\nPASSED a.py::t[/b]\nPASSED a.py::t[two\n";
    assert_eq!(String::from_utf8_lossy(&shown.stdout), wanted, "{said}");
    // The names of `PASS_TO_PASS` may be the ones that tell no command.
    row["PASS_TO_PASS"] = r#"["test_still"]"#.into();
    project.write("rows.jsonl", &row.to_string());
    convert(&project, "swe-bench", "rows.jsonl", &[]).exits(2).says("`PASS_TO_PASS`: no case was written");
}

#[test]
fn images_that_only_the_problem_of_swe_bench_shows_are_noted() {
    let (project, row) = swe_bench();
    let mut row: serde_json::Value = serde_json::from_str(&row).unwrap();
    let of = |problem: &str, tests: &str| format!("{{\"problem_statement\": [{problem}], \"test_patch\": [{tests}]}}");
    let image = "\"https://example.org/a.png\"";
    for (assets, code, says) in [
        ("{}".to_owned(), 0, ""),
        (of("", ""), 0, ""),
        (of(image, ""), 0, "`image_assets`: left out: download the images of the problem"),
        (of("", image), 2, "`image_assets`: no case was written"),
        ("other".to_owned(), 2, "`image_assets`: no case was written"),
    ] {
        let map = serde_json::from_str(&assets).unwrap_or_else(|_| assets.clone().into());
        for column in [serde_json::Value::from(assets.as_str()), map] {
            row["image_assets"] = column;
            project.write("rows.jsonl", &row.to_string());
            let ran = convert(&project, "swe-bench", "rows.jsonl", &["--test", "true"]).exits(code);
            assert_eq!(ran.err.contains("image_assets"), !says.is_empty(), "{assets}: {}", ran.err);
            ran.says(says);
        }
    }
}

#[test]
fn a_patch_of_swe_bench_is_read_as_git_writes_it() {
    let (project, row) = swe_bench();
    let mut row: serde_json::Value = serde_json::from_str(&row).unwrap();
    let tests = row["test_patch"].as_str().unwrap().trim_end().to_owned();
    let mut converted = |more: &str, code: i32| {
        row["test_patch"] = format!("{tests}\n{more}").into();
        project.write("rows.jsonl", &row.to_string());
        convert(&project, "swe-bench", "rows.jsonl", &["--test", "true"]).exits(code)
    };
    // A file becomes a link: Git needs the old file.
    converted(
        "diff --git a/run.sh b/run.sh\ndeleted file mode 100644\n--- a/run.sh\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
         diff --git a/run.sh b/run.sh\nnew file mode 120000\n--- /dev/null\n+++ b/run.sh\n@@ -0,0 +1 @@\n+a\n\
         \\ No newline at end of file\n",
        0,
    );
    let script = || project.read("out/cases/rows/me-calc-1.hidden/.evals-tests/run.sh");
    assert!(!script().contains("rm -rf"), "{}", script());
    let quoted = "\"b/data/\\303\\244.txt\"";
    converted(
        &format!(
            "diff --git \"a/data/\\303\\244.txt\" {quoted}\nnew file mode 100644\n--- /dev/null\n+++ {quoted}\n\
             @@ -0,0 +1 @@\n+x\n"
        ),
        0,
    );
    assert!(script().contains("rm -rf -- 'data/\u{e4}.txt'\n"), "{}", script());
    let binary = "diff --git a/b.bin b/b.bin\nindex 1111111..2222222 100644\nBinary files a/b.bin and b/b.bin differ\n";
    converted(binary, 2).says("`test_patch`: no case was written for `me__calc-1`: it does not hold the new content");
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn samples_of_inspect_are_compared_as_the_user_chooses() {
    for (target, row, good, bad) in [
        ("equals", r#"{"input": "q", "target": "a"}"#, "say: a", "say: a b"),
        ("equals", r#"{"input": "q", "target": ["a", "b"]}"#, "say: b", "say: c"),
        ("contains", r#"{"input": "q", "target": ["x.y", "b"]}"#, "say: a x.y", "say: xzy"),
        ("contains-any-case", r#"{"input": "q", "target": "B"}"#, "say: a b", "say: c"),
        ("ends", r#"{"input": "q", "target": "yes"}"#, "say: so Yes.", "say: yes or no"),
        ("ends", r#"{"input": "q", "target": "5"}"#, "say: it is 5", "say: it is 15"),
        ("number", r#"{"input": "q", "target": "1,000"}"#, "say: it is 1000", "say: 1000 of 3"),
        // A text that looks like a list is a text.
        ("contains", r#"{"input": "q", "target": "[1, 2]"}"#, "say: 'it is [1, 2]'", "say: it is 1"),
        ("equals", r#"{"input": "q", "target": "[\"a\", \"b\"]"}"#, "say: '[\"a\", \"b\"]'", "say: a"),
        ("choice", r#"{"input": "q", "target": "B", "choices": "x, y,"}"#, "say: 'ANSWER: B'", "say: 'ANSWER: A'"),
        (
            "choice",
            r#"{"input": "q", "target": "B", "choices": ["x", "y"]}"#,
            "say: \"so\\nANSWER: B\"",
            "say: \"ANSWER: B\\nANSWER: A\"",
        ),
        (
            "contains",
            r#"{"input": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "target": "a"}"#,
            "say: a",
            "say: b",
        ),
    ] {
        let project = Project::with(&[("data.jsonl", row)]);
        convert(&project, "inspect", "data.jsonl", &["--target", target]).exits(0);
        decides(&project, "data/sample-1", good, bad);
    }
}

#[test]
fn punctuation_around_an_answer_of_inspect_does_not_count() {
    for (target, text, good, bad) in [
        ("ends", "Paris", r#"say: 'The answer is "Paris"'"#, r#"say: '"Paris" or "Rome"'"#),
        ("ends", "B", "say: 'So it is (B)'", "say: 'So it is (A)'"),
        ("ends", "5", r"say: 'so \boxed{5}'", r"say: 'so \boxed{15}'"),
        ("ends", "Paris.", "say: 'Paris,'", "say: 'Paris, Rome'"),
        ("ends", "Paris", "say: 'It is __Paris__.'", "say: '__Paris__, not Rome'"),
        ("ends", "-5", "say: 'it is -5;'", "say: 'it is 5;'"),
        ("number", "($1,000.)", "say: it is 1000", "say: it is 100"),
    ] {
        let row = format!("{{\"input\": \"q\", \"target\": \"{text}\"}}");
        let project = Project::with(&[("data.jsonl", row.as_str())]);
        convert(&project, "inspect", "data.jsonl", &["--target", target]).exits(0);
        decides(&project, "data/sample-1", good, bad);
    }
    let project = Project::with(&[("data.jsonl", r#"{"input": "q", "target": "..."}"#)]);
    convert(&project, "inspect", "data.jsonl", &["--target", "ends"]).exits(2).says("it is punctuation only");
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn a_choice_of_inspect_is_read_from_an_answer_as_in_the_source() {
    let rows = [
        ("ANSWER: B", "pass"),
        ("ANSWER: b", "pass"),
        ("answer: B", "pass"),
        ("ANSWER: B.", "pass"),
        ("ANSWER: B,", "pass"),
        ("ANSWER: (B)", "pass"),
        ("ANSWER: $B$", "pass"),
        ("ANSWER: **B**", "pass"),
        ("ANSWER: B) two", "pass"),
        ("Thinking... ANSWER: B", "pass"),
        ("Let me think: it is two.\n\nANSWER: B)", "pass"),
        ("Let me think: two is right.\n\nANSWER: B - two", "pass"),
        ("**ANSWER: B**\n\nI checked again.\n\n**ANSWER: B**", "pass"),
        ("ANSWER: B**", "pass"),
        ("- a: b\n\nFinal `ANSWER: B`", "pass"),
        ("Reasoning: x.\n\nANSWER: `B`", "fail"),
        ("ANSWER: \nB)(A)", "fail"),
        ("Note: it is 2.\nANSWER : B\n\nBecause two.\nA is wrong: see above.", "pass"),
        ("**Options:** two.\nA is wrong.\n\n**ANSWER: B**\n", "pass"),
        ("ANSWER: A\nANSWER: B", "pass"),
        ("ANSWER: B\nANSWER: A", "fail"),
        ("ANSWER: B\n**Answer**: A", "fail"),
        // A line that begins with an answer counts before a bold one.
        ("ANSWER: A\n**ANSWER: B**", "fail"),
        ("ANSWER: B or A", "fail"),
        ("ANSWER: AB", "fail"),
        ("ANSWER: Both", "fail"),
        ("**ANSWER:** B", "fail"),
        ("B", "fail"),
    ];
    let row = r#"{"id": "row-ID", "input": "q", "target": "B", "choices": ["x", "y"]}"#;
    let rows_of = (0..rows.len()).map(|at| row.replace("ID", &at.to_string()) + "\n");
    let project = Project::with(&[("data.jsonl", rows_of.collect::<String>().as_str())]);
    convert(&project, "inspect", "data.jsonl", &["--target", "choice"]).exits(0);
    for (at, (answer, _)) in rows.iter().enumerate() {
        let steps = serde_json::json!({"steps": [{"say": answer}]});
        project.write(&format!("out/cases/data/row-{at}.demo.yaml"), &steps.to_string());
    }
    let run = project.evals(&["run", "out/cases", "--reporter", "json"]).json();
    for (at, (answer, expected)) in rows.iter().enumerate() {
        let mut results = run["results"].as_array().unwrap().iter();
        let result = results.find(|result| result["case"].as_str().unwrap().ends_with(&format!("row-{at}"))).unwrap();
        assert_eq!(result["verdict"], *expected, "{answer:?}");
    }
}

#[test]
fn samples_of_inspect_that_would_be_others_are_refused() {
    let project = Project::with(&[
        ("data.csv", "id,input,target,level\n1,\"a\nb\",x,3\n2,c,,3\n"),
        (
            "files.json",
            r#"[{"input": "read a.txt", "target": "x", "files": {"a.txt": "text", "b.txt": "data.csv",
                "c.bin": "data:a/b;base64,/wA="}, "setup": "data:text/plain;base64,dG91Y2ggYw=="}]"#,
        ),
    ]);
    convert(&project, "inspect", "data.csv", &[]).exits(2).says("choose with --target");
    let ran = convert(&project, "inspect", "data.csv", &["--target", "contains"]).exits(0);
    let ran = ran.says("data.csv:4: `target`: no case was written: there is no target");
    ran.says("`level`: the column has no equivalent");
    // A cell is a text in the source, too, whatever it looks like.
    let chat = r#"[{""role"": ""user"", ""content"": ""q""}]"#;
    project.write("cells.csv", &format!("input,target\n\"{chat}\",\"[1, 2]\"\n"));
    convert(&project, "inspect", "cells.csv", &["--target", "contains"]).exits(0);
    let case = project.read("out/cases/cells/sample-1.yaml");
    assert!(case.contains("role") && case.contains("contains: '[1, 2]'"), "{case}");
    convert(&project, "inspect", "files.json", &["--target", "contains"]).exits(0);
    project.evals(&["check", "out/cases/files"]).exits(0);
    assert_eq!(project.read("out/cases/files/sample-1.workspace/a.txt"), "text");
    assert_eq!(std::fs::read(project.path("out/cases/files/sample-1.workspace/c.bin")).unwrap(), [0xff, 0]);
    assert!(project.read("out/cases/files/sample-1.yaml").contains("- touch c\n"));
    for (row, said) in [
        (r#"{"question": "a"}"#, "no sample has the column `input`; there are `question`"),
        (r#"{"input": "a", "target": " "}"#, "`target`: no case was written: the target is empty or white space only"),
        (r#"{"input": "a", "target": ["a", ""]}"#, "a target of the list is empty or white space only"),
        (r#"{"input": "a", "target": ["a", null]}"#, "this is neither a text nor a list of texts"),
        (r#"{"input": "a", "target": "b", "choices": ["b"]}"#, "convert it with --target choice"),
        (r#"{"input": "a", "target": "b", "choices": "[\"b\", \"c\"]"}"#, "the source would split at its commas"),
        (r#"{"input": "a", "target": "b", "sandbox": "docker"}"#, "an environment of the source"),
        (r#"{"input": "a", "target": "b", "files": {"../x": "y"}}"#, "leads out of its folder"),
        (r#"{"input": "a", "target": "b", "files": {"x": "data:text/plain,y"}}"#, "a data URL without base64"),
        (r#"{"input": "a", "target": "b", "files": {"x": "data:a/b;base64,?"}}"#, "that cannot be decoded"),
        (r#"{"input": [{"role": "assistant", "content": "a"}], "target": "b"}"#, "the chat continues a conversation"),
        (
            r#"{"input": [{"role": "user", "content": [{"type": "image", "image": "x"}]}], "target": "b"}"#,
            "such as an image",
        ),
        (r#"[1]"#, "a sample must be a map of keys"),
        ("", "the file is empty"),
    ] {
        project.write("data.jsonl", row);
        convert(&project, "inspect", "data.jsonl", &["--target", "contains"]).exits(2).says(said);
    }
}

#[test]
fn targets_of_inspect_that_are_no_texts_are_written_as_in_the_source() {
    let row = |target: &str| format!("{{\"input\": \"q\", \"target\": {target}}}");
    for (target, text) in [
        ("true", "equals: 'True'\n"),
        ("[false]", "equals: 'False'\n"),
        ("1e-7", "equals: '1e-07'\n"),
        ("1.0", "equals: '1.0'\n"),
        ("12345678901234567890", "equals: '12345678901234567890'\n"),
    ] {
        let project = Project::with(&[("data.jsonl", row(target).as_str())]);
        convert(&project, "inspect", "data.jsonl", &["--target", "equals"]).exits(0);
        let case = project.read("out/cases/data/sample-1.yaml");
        assert!(case.contains(text), "{text}: {case}");
    }
    for how in ["equals", "contains", "number"] {
        let project = Project::with(&[("data.jsonl", row("12345678901234567890123").as_str())]);
        let ran = convert(&project, "inspect", "data.jsonl", &["--target", how]).exits(2);
        ran.says("data.jsonl:1: `target`: no case was written: the digits of the number");
    }
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn a_case_of_touchstone_gets_the_same_verdicts() {
    let case = "id: adds\ndescription: Adds.\ntask: {prompt: Implement add in calc.py.}\nsource: {path: ./source}\n\
        matrix: {harnesses: [echo], models: [a], trials: 2}\n\
        setup: {stub: [{file: calc.py, function: add}], run: ['touch made']}\n\
        graders:\n  - {type: tests, weight: 4.0, cmd: python3 -m unittest -v test_calc, inject: [./hidden/test_calc.py]}\n  \
        - {type: implemented, gate: true, files: [calc.py]}\n  - {type: files, patterns: ['def add', 'return']}\n  \
        - {type: command, cmd: test -f made}\n";
    let files = [
        ("evals/adds/case.yaml", case),
        ("evals/adds/source/calc.py", "def add(a, b):\n    \"\"\"Adds.\"\"\"\n    return a + b\n"),
        (
            "evals/adds/hidden/test_calc.py",
            "import unittest, calc\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n",
        ),
    ];
    let project = Project::with(&files);
    convert(&project, "touchstone", "evals", &[])
        .exits(0)
        .says("case.yaml:5: `matrix`: harnesses and models are left out");
    let good = "write: {path: calc.py, text: \"def add(a, b):\\n    return a + b\\n\"}";
    decides(&project, "evals/adds", good, "say: nothing");
    // A file of requirements without any installs nothing.
    let environment = "environment: {requirement_files: [requirements.txt], install: editable}\ngraders:";
    project.write("evals/adds/requirements.txt", "# None yet.\n\n");
    project.write("evals/adds/case.yaml", &case.replace("graders:", environment));
    convert(&project, "touchstone", "evals", &[]).exits(0);
    let converted = project.read("out/cases/evals/adds.yaml");
    assert_eq!(converted.matches("install -q").count(), 1, "{converted}");
    // Options are read by pip, which would take a quoted line for a requirement.
    let requirements = "--index-url https://pip.example/simple # Ours.\nadder == 1.0 ; python_version > '3'\n";
    project.write("evals/adds/requirements.txt", requirements);
    convert(&project, "touchstone", "evals", &[]).exits(0);
    let converted = project.read("out/cases/evals/adds.yaml");
    for part in [
        "printf %s '--index-url https://pip.example/simple # Ours.\n",
        "adder == 1.0 ; python_version > '\\''3'\\''\n",
        "' | \"$HOME/.evals-venv/bin/pip\" install -q -r /dev/stdin\n",
    ] {
        assert!(converted.contains(part), "{part}: {converted}");
    }
    project.evals(&["check", "out/cases"]).exits(0);
    for nested in ["-r other.txt", "--requirement=other.txt", "-cother.txt"] {
        project.write("evals/adds/requirements.txt", &format!("adder\n{nested}\n"));
        let said = format!("`environment.requirement_files`: no case was written: `{nested}` in requirements.txt");
        convert(&project, "touchstone", "evals", &[]).exits(2).says(&said);
    }
    // A case of hidden tests in another repository is not written without them.
    let fixtures = format!("{case}fixtures: {{repo: me/fixtures, commit: abc}}\n");
    project.write("evals/adds/case.yaml", &fixtures);
    convert(&project, "touchstone", "evals", &[]).exits(2).says("name a checkout of it with --fixtures");
    project.write("fixtures/adds/hidden/test_calc.py", files[2].1);
    convert(&project, "touchstone", "evals", &["--fixtures", "fixtures"]).exits(0);
    decides(&project, "evals/adds", good, "write: {path: calc.py, text: 'def add(a, b): return a - b'}");
    for (from, to, said) in [
        (
            "graders:",
            "observe: {interaction: {policy: scripted}}\ngraders:",
            "case.yaml:7: `observe.interaction.policy`",
        ),
        ("type: files", "type: other", "the type `other` is not known"),
        // A value of another type is not replaced by a default, which would make another check.
        (
            "gate: true",
            "gate: 'true'",
            "case.yaml:9: `graders[1].gate`: no case was written: a grader has no equivalent",
        ),
        ("weight: 4.0", "weight: '4'", "this is not a number from 0"),
        ("cmd: test -f made", "cmd: test -f made, expect_exit: '1'", "this is not a whole number"),
        ("cmd: test -f made", "cmd: test -f made, timeout_s: '600'", "this is not a number of seconds above 0"),
        ("cmd: test -f made", "cmd: test -f made, timeout_s: 0", "this is not a number of seconds above 0"),
        ("cmd: test -f made", "cmd: [test]", "this is not a text"),
        ("files: [calc.py]", "files: {a: b}", "this is not a list of texts"),
        ("patterns: ['def add', 'return']", "patterns: {a: b}", "this is not a list of texts"),
        ("inject: [./hidden/test_calc.py]", "inject: 5", "this is not a list"),
        ("run: ['touch made']", "run: {a: b}", "`setup.run`: no case was written: this is not a list of texts"),
        ("trials: 2", "trials: two", "`matrix.trials`: no case was written: this is not a whole number from 0"),
        ("source: {path: ./source}", "source: ./source", "`source`: no case was written: this is not a map"),
        ("graders:", "environment: {venv: 'false'}\ngraders:", "this is not true or false"),
        ("graders:", "expect: {pass_threshold: '1'}\ngraders:", "it is not above 0 and at most 1"),
        ("task: {prompt: Implement add in calc.py.}", "task: {}", "it has no prompt"),
    ] {
        project.write("evals/adds/case.yaml", &case.replace(from, to));
        convert(&project, "touchstone", "evals", &[]).exits(2).says(said);
    }
}

/// A case of touchstone with these graders, a file `a.py`, and a hidden test that names `retry`.
fn touchstone(graders: &str) -> Project {
    let case = format!(
        "id: client\ntask: {{prompt: Make the client retry.}}\nsource: {{path: ./source}}\n\
         matrix: {{harnesses: [echo], models: [a]}}\ngraders: [{graders}]\n"
    );
    let test = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_retry(self):\n        pass\n";
    Project::with(&[
        ("evals/client/case.yaml", &case),
        ("evals/client/source/a.py", "x = 1\n"),
        ("evals/client/hidden/test_h.py", test),
        (
            "evals/client/other/test_h.py",
            &test.replace("unittest\n\n", "unittest, a\n\n").replace("pass", "assert a.x == 2"),
        ),
        ("evals/client/expected/test_h.py", test),
    ])
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn graders_of_touchstone_do_not_see_files_that_a_later_grader_injects() {
    let tests = "{type: tests, cmd: python3 -m unittest -v test_h, inject: [./hidden/test_h.py]}";
    let later = "{type: command, cmd: test -f test_h.py}";
    let retry = "write: {path: a.py, text: 'retry = 1'}";
    for (graders, good) in [
        (format!("{{type: files, patterns: [retry]}}, {tests}, {later}"), retry),
        (
            format!("{{type: command, gate: true, cmd: 'test ! -e test_h.py && grep -q retry *'}}, {tests}, {later}"),
            retry,
        ),
        // The order of the source: here the test is already there.
        (format!("{tests}, {{type: files, patterns: [retry]}}, {{type: command, cmd: grep -q 1 a.py}}"), "say: x"),
    ] {
        let project = touchstone(&graders);
        convert(&project, "touchstone", "evals", &[]).exits(0);
        decides(&project, "evals/client", good, "write: {path: a.py, text: none}");
    }
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn graders_of_touchstone_find_what_is_at_the_path_of_a_later_injected_file() {
    let tests = |folder: &str, run: &str| {
        format!("{{type: tests, weight: 3, cmd: '{run}python3 -m unittest -v test_h', inject: [./{folder}/test_h.py]}}")
    };
    let (hidden, other) = (tests("hidden", ""), tests("other", ""));
    let project = touchstone("");
    let expected = project.read("evals/client/expected/test_h.py");
    let write = |path: &str, text: &str| format!("write: {{path: {path}, text: {}}}", serde_json::json!(text));
    let (own, two, nothing) = (write("test_h.py", &expected), write("a.py", "x = 2"), "say: x".to_owned());
    for (graders, good, bad) in [
        (format!("{{type: files, expect_dir: ./expected}}, {hidden}"), own, write("test_h.py", "x")),
        (
            format!("{{type: command, cmd: grep -q mine test_h.py}}, {hidden}"),
            write("test_h.py", "mine"),
            nothing.clone(),
        ),
        // The folder of an injected file is not there before.
        (
            "{type: command, cmd: test -d new}, {type: tests, cmd: python3 -m unittest -v new.test_h, \
             inject: [{src: ./hidden/test_h.py, dest: new/test_h.py}]}"
                .to_owned(),
            write("new/a.txt", "x"),
            nothing.clone(),
        ),
        // The second file replaces the first one.
        (format!("{hidden}, {other}"), two.clone(), nothing.clone()),
        // What a grader injects is there also if an earlier command took too long.
        (format!("{{type: command, cmd: sleep 60, timeout_s: 1}}, {other}"), two, nothing.clone()),
    ] {
        let project = touchstone(&graders);
        if graders.contains("timeout_s") {
            let case = project.read("evals/client/case.yaml");
            project.write("evals/client/case.yaml", &format!("{case}expect: {{pass_threshold: 0.6}}\n"));
        }
        convert(&project, "touchstone", "evals", &[]).exits(0);
        decides(&project, "evals/client", &good, &bad);
    }
    // Tests that change the injected file while they run do not count.
    let project = touchstone(&tests("hidden", "echo >> test_h.py; "));
    convert(&project, "touchstone", "evals", &[]).exits(0);
    assert_eq!(plays(&project, "evals/client", &nothing), 3);
}

#[test]
fn code_that_a_grader_of_touchstone_runs_does_not_change_the_hidden_files_of_a_later_one() {
    let tests = "{type: tests, cmd: python3 -m unittest -v test_h, inject: [./other/test_h.py]}";
    let project = touchstone(&format!("{{type: command, cmd: 'sh build.sh; true'}}, {tests}"));
    convert(&project, "touchstone", "evals", &[]).exits(0);
    let forged = "for d in $HOME/.evals-hidden .evals-hidden; do [ -d $d ] && cp none.py $d/0/test_h.py; done; true";
    let none = project.read("evals/client/hidden/test_h.py");
    let write = |path: &str, text: &str| format!("{{write: {{path: {path}, text: {}}}}}", serde_json::json!(text));
    let forge = [write("build.sh", forged), write("none.py", &none)].join(", ");
    assert_eq!(plays(&project, "evals/client", &forge), 1);
    assert_eq!(plays(&project, "evals/client", &write("a.py", "x = 2")), 0);
    // A reason begins with the command of the source.
    let case = project.read("out/cases/evals/client.yaml").replace("''", "'");
    assert!(case.contains("sh .evals-hidden/with_hidden.sh 'sh build.sh; true'"), "{case}");
}

#[test]
fn graders_of_touchstone_find_what_an_earlier_one_installed() {
    let installs = "{type: command, cmd: 'touch \"$HOME/tool\"'}";
    let project =
        touchstone(&format!("{installs}, {{type: command, cmd: 'test -f \"$HOME/tool\" && grep -q 2 a.py'}}"));
    convert(&project, "touchstone", "evals", &[]).exits(0);
    decides(&project, "evals/client", "write: {path: a.py, text: 'x = 2'}", "say: x");
    // One command alone needs no key.
    let project = touchstone(installs);
    convert(&project, "touchstone", "evals", &[]).exits(0);
    assert!(!project.read("out/cases/evals/client.yaml").contains("graders-home"));
}

#[test]
fn a_case_of_touchstone_in_which_no_grader_counts_is_refused() {
    for graders in [
        "{type: command, cmd: test -f a.py, gate: true}",
        "{type: command, cmd: test -f a.py, weight: 0}",
        "{type: command, cmd: test -f a.py, gate: true}, {type: trace, forbid_tools: [{kind: nothing}]}",
    ] {
        let ran = convert(&touchstone(graders), "touchstone", "evals", &[]).exits(2);
        ran.says(
            "case.yaml:5: `graders`: no case was written: no grader counts: if all are gates or have the weight 0",
        );
    }
}

/// A stand-in for docker that runs commands in bubblewrap, with a folder as the container.
const DOCKER: &str = r#"#!/bin/sh
S=STATE
case $1 in
  inspect) [ -d "$S/$2" ]; exit ;;
  image) echo /app; exit ;;
  run)
    n= b= prev=
    for a in "$@"; do
      [ "$prev" = --name ] && n=$a
      [ "$prev" = -v ] && b="$b --bind ${a%%:*} ${a#*:}"
      prev=$a
    done
    r=$S/$n
    mkdir -p "$r/.evals/workspace" "$r/app" "$r/tmp" "$r/root" "$r/logs/verifier"
    for l in bin lib lib64 sbin; do ln -sfn "usr/$l" "$r/$l"; done
    echo "$b" > "$r/.binds"
    echo /app > "$r/.evals/workdir"
    echo /usr/bin:/bin > "$r/.evals/path"
    echo data > "$r/.evals/workspace/data.txt"
    exit ;;
esac
shift
while :; do
  case $1 in
    -i) shift ;;
    --env) shift 2 ;;
    -w) d=$2; shift 2 ;;
    *) break ;;
  esac
done
r=$S/$1
shift
exec bwrap --unshare-pid --die-with-parent --bind "$r" / --ro-bind /usr /usr --ro-bind /etc /etc --ro-bind BINARY BINARY \
  --proc /proc --dev /dev --ro-bind PROJECT PROJECT $(cat "$r/.binds") --chdir "$d" "$@"
"#;

/// Puts the stand-in for docker into the PATH of a project.
fn in_a_container(project: &mut Project) {
    let root = project.path(".").canonicalize().unwrap().display().to_string();
    let docker = DOCKER.replace("STATE", &format!("{root}/state")).replace("PROJECT", &root);
    project.write("bin/docker", &docker.replace("BINARY", env!("CARGO_BIN_EXE_evals")));
    std::fs::set_permissions(project.path("bin/docker"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").unwrap());
    project.env("PATH", &path);
}

#[test]
fn a_test_of_terminal_bench_that_passes_unexpectedly_has_failed() {
    if !bubblewrap() {
        return;
    }
    let summary = "=== short test summary info ===\nPASSED test_outputs.py::test_a\n";
    for (rest, code) in [
        ("=== 1 passed in 0.01s ===\n", 0),
        ("XFAIL test_outputs.py::test_b - known\n=== 1 passed, 1 xfailed in 0.01s ===\n", 0),
        ("XPASS test_outputs.py::test_b - known\n=== 1 passed, 1 xpassed in 0.01s ===\n", 1),
        ("=== 1 passed, 1 xpassed in 0.01s ===\n", 1),
    ] {
        let mut project = Project::with(&[
            ("tb/a/task.yaml", "instruction: Do it.\nparser_name: pytest\n"),
            ("tb/a/Dockerfile", "FROM debian\nWORKDIR /app\n"),
            ("tb/a/run-tests.sh", "cat $TEST_DIR/report\n"),
            ("tb/a/tests/report", &format!("{summary}{rest}")),
        ]);
        convert(&project, "terminal-bench", "tb", &[]).exits(0);
        in_a_container(&mut project);
        assert_eq!(plays(&project, "tb/a", "say: done"), code, "{rest}");
    }
}

#[test]
fn a_verifier_finds_nothing_of_its_own_in_the_working_directory_and_later_graders_find_its_files() {
    if !bubblewrap() {
        return;
    }
    let is_found = "find /app -name '.evals*' -o -name '*.sh' | grep -q .";
    let rewards = format!("if {is_found}; then echo 0; else echo 1; fi > /logs/verifier/reward.txt");
    let mut harbor = harbor(TOML, &rewards);
    convert(&harbor, "harbor", "tasks/hello", &[]).exits(0);
    in_a_container(&mut harbor);
    let report = "=== short test summary info ===\nPASSED test_outputs.py::test_a\n=== 1 passed in 0.01s ===\n";
    let mut terminal_bench = Project::with(&[
        ("tasks/hello/task.yaml", "instruction: Do it.\nparser_name: pytest\n"),
        ("tasks/hello/Dockerfile", "FROM debian\nWORKDIR /app\n"),
        ("tasks/hello/run-tests.sh", &format!("if {is_found}; then exit 1; fi\ncat $TEST_DIR/test.sh\n")),
        ("tasks/hello/tests/test.sh", report),
    ]);
    convert(&terminal_bench, "terminal-bench", "tasks", &[]).exits(0);
    in_a_container(&mut terminal_bench);
    for project in [harbor, terminal_bench] {
        let case = project.read("out/cases/tasks/hello.yaml");
        let later = "- files: {exists: [.evals-verifier/verify.sh, .evals-verifier/tests/test.sh]}\n";
        project.write("out/cases/tasks/hello.yaml", &format!("{case}{later}"));
        assert_eq!(plays(&project, "tasks/hello", "say: done"), 0, "{case}");
    }
}

#[test]
#[ignore = "slow: runs many converted cases"]
fn rewards_of_harbor_decide_in_the_container() {
    if !bubblewrap() {
        return;
    }
    let reward = |text: &str, file: &str| format!("printf %s '{text}' > /logs/verifier/{file}");
    for (verifier, steps, code) in [
        (
            "if [ \"$(cat /app/hello.txt)\" = hello ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
                .to_owned(),
            "echo hello > /app/hello.txt",
            0,
        ),
        (
            "if [ \"$(cat /app/hello.txt)\" = hello ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
                .to_owned(),
            "cat data.txt > hello.txt",
            1,
        ),
        // A reward of the agent's does not count.
        ("exit 0".to_owned(), "echo 1 > /logs/verifier/reward.txt; echo '{\"a\": 1}' > /logs/verifier/reward.json", 3),
        (reward("1.0", "reward.txt"), "true", 0),
        (reward("0.5", "reward.txt"), "true", 1),
        (reward("nan", "reward.txt"), "true", 3),
        (reward("", "reward.txt"), "true", 3),
        (reward("80", "reward.txt"), "true", 3),
        (reward("{\"a\": 1, \"b\": 1.0}", "reward.json"), "true", 0),
        (reward("{\"a\": 1, \"b\": 0.9}", "reward.json"), "true", 1),
        (reward("{\"a\": \"1\"}", "reward.json"), "true", 3),
        (reward("{}", "reward.json"), "true", 3),
    ] {
        let mut project = harbor(TOML, &verifier);
        convert(&project, "harbor", "tasks/hello", &[]).exits(0);
        in_a_container(&mut project);
        let step = serde_json::json!({"run": {"command": steps}});
        assert_eq!(plays(&project, "tasks/hello", &step.to_string()), code, "{verifier}\n{steps}");
    }
}

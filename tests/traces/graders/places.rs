//! The places that calls name: relative to the workspace, above it, in a folder of the call's own, or in a workspace that the
//! trace does not name. Each trace is written by hand.

use serde_json::{Value, json};

use super::{Fail, Pass, Trial, Ungraded, check};

/// A trace of calls that succeeded, in the workspace `/w/ws` unless `cwd` says otherwise.
fn trace(cwd: Option<&str>, calls: &[Value]) -> Trial {
    let mut lines = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        let mut call = call.clone();
        let fields = json!({"type": "tool_call", "seq": 2 * n, "at_ms": 0, "call": format!("c{n}"), "step": n});
        call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        lines.push(call);
        lines.push(
            json!({"type": "tool_result", "seq": 2 * n + 1, "at_ms": 0, "call": format!("c{n}"), "status": "ok"}),
        );
    }
    lines.push(json!({"type": "stop", "seq": 2 * calls.len(), "at_ms": 0, "reason": "end_turn"}));
    let mut trial = Trial::of(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    trial.header.cwd = cwd.map(str::to_owned);
    trial
}

fn one(kind: &str, path: &str) -> Trial {
    trace(Some("/w/ws"), &[json!({"kind": kind, "input": {"path": path}})])
}

fn forbids(path: &str) -> String {
    format!("tool-calls: {{forbid: [{{path: '{path}'}}]}}")
}

fn found() -> super::Expect {
    Fail(0.0, &[0, 1], "")
}

#[test]
fn a_path_that_leads_out_of_the_workspace_is_compared_where_it_leads() {
    for (path, glob) in [
        ("../ws/src/key", "src/**"),
        ("../../etc/passwd", "/etc/**"),
        ("../../etc/passwd", "/**"),
        ("../../etc/passwd", "../**"),
        ("a/../../ws/src/key", "src/key"),
        ("/w/ws/../ws/src/key", "src/*"),
        ("src/key", "/w/ws/src/**"),
        ("/etc/passwd", "/etc/**"),
    ] {
        check(&one("read", path), &[(&forbids(glob), found())]);
    }
    check(&one("read", "src/key"), &[(&forbids("../**"), Pass(&[])), (&forbids("/etc/**"), Pass(&[]))]);
    check(&one("read", "../other/a"), &[(&forbids("other/**"), Pass(&[])), (&forbids("/w/other/a"), found())]);
}

#[test]
fn a_call_with_a_folder_of_its_own_counts_from_there() {
    for (cwd, glob) in [("/w/ws/sub", "sub/a"), ("sub", "sub/a"), ("/elsewhere", "/elsewhere/a")] {
        let trial = trace(Some("/w/ws"), &[json!({"kind": "edit", "input": {"path": "a"}, "cwd": cwd})]);
        check(&trial, &[(&forbids(glob), found()), (&forbids("a"), Pass(&[]))]);
    }
}

#[test]
fn without_a_workspace_an_absolute_path_may_be_in_it() {
    let trial = trace(None, &[json!({"kind": "edit", "input": {"path": "/x/y/answer.txt"}})]);
    check(
        &trial,
        &[
            (&forbids("answer.txt"), Ungraded("")),
            (&forbids("y/*"), Ungraded("")),
            ("tool-calls: {require: [{path: answer.txt}]}", Ungraded("")),
            (&forbids("other.txt"), Pass(&[])),
            (&forbids("**/answer.txt"), found()),
            (&forbids("/x/**"), found()),
        ],
    );
    check(
        &trial.changed(&[], &[], &[]),
        &[
            ("scope: {only: ['y/**']}", Ungraded("")),
            ("scope: {never: ['../**']}", Ungraded("")),
            ("scope: {never: ['/x/**']}", Fail(0.0, &[0, 1], "")),
            (&forbids("../**"), Ungraded("")),
            ("tool-calls: {require: [{path: '../**'}]}", Ungraded("")),
        ],
    );
    let own_folder = trace(None, &[json!({"kind": "read", "input": {"path": "key"}, "cwd": "/w/ws/src"})]);
    check(&own_folder, &[(&forbids("src/**"), Ungraded("")), ("scope: {reads: ['src/**']}", Ungraded(""))]);
    let relative = trace(None, &[json!({"kind": "edit", "input": {"path": "answer.txt"}})]);
    check(&relative, &[(&forbids("/w/ws/**"), Ungraded(""))]);
    check(&relative, &[(&forbids("answer.txt"), found()), (&forbids("y/*"), Pass(&[]))]);
}

#[test]
fn a_folder_that_is_deleted_stands_for_its_files() {
    for folder in [".", "/w/ws", "/w", "..", "/"] {
        check(
            &one("delete", folder),
            &[
                (&forbids("src/**"), found()),
                (&forbids("**/*.py"), Ungraded("")),
                (&forbids("/etc/**"), if folder == "/" { found() } else { Pass(&[]) }),
            ],
        );
    }
    check(&one("delete", "/"), &[(&forbids("../**"), found())]);
    check(
        &one("delete", "src"),
        &[
            (&forbids("src/a.py"), found()),
            (&forbids("**/*.py"), Ungraded("")),
            (&forbids("*/a.py"), Ungraded("")),
            (&forbids("lib/*"), Pass(&[])),
        ],
    );
    check(&one("delete", "a.txt"), &[(&forbids("**/*.py"), Pass(&[]))]);
    check(&one("edit", "src"), &[(&forbids("src/**"), Pass(&[]))]);
}

#[test]
fn a_call_of_an_unknown_kind_may_remove_the_folder_that_it_names() {
    let trial = |input: Value| {
        trace(Some("/w/ws"), &[json!({"kind": "other", "unknown_kind": true, "name": "zap", "input": input})])
    };
    check(
        &trial(json!({"path": "src"})),
        &[
            (&forbids("src/**"), Ungraded("unknown")),
            ("tool-calls: {forbid: [{kind: delete, path: 'src/**'}]}", Ungraded("unknown")),
            // Only a removal concerns the files of a folder.
            ("tool-calls: {forbid: [{kind: edit, path: 'src/**'}]}", Pass(&[])),
            (&forbids("src"), found()),
            (&forbids("lib/**"), Pass(&[])),
        ],
    );
    check(&trial(json!({"path": "src"})).changed(&[], &[], &[]), &[("scope: {never: ['src/**']}", Ungraded("kind"))]);
    check(&trial(json!({"path": "a.txt"})).changed(&[], &[], &[]), &[("scope: {never: ['**/*.py']}", Pass(&[]))]);
    // It may change a file that its input does not name.
    check(
        &trial(json!({"code": "rm -rf src"})),
        &[
            (&forbids("src/a"), Ungraded("unknown")),
            ("tool-calls: {forbid: [{command: rm -rf}]}", Ungraded("unknown")),
            ("tool-calls: {forbid: [{kind: execute, command: rm -rf}]}", Ungraded("unknown")),
            ("tool-calls: {forbid: [{kind: execute, command: ls}]}", Pass(&[])),
            ("tool-calls: {forbid: [{kind: other, command: rm -rf}]}", Ungraded("unknown")),
            ("tool-calls: {forbid: [{kind: think, command: rm -rf}]}", Pass(&[])),
            ("tool-calls: {forbid: [{kind: execute, path: src}]}", Pass(&[])),
        ],
    );
    check(&trial(json!({"command": "rm -rf src"})), &[("tool-calls: {forbid: [{command: rm -rf}]}", found())]);
}

#[test]
fn a_removal_that_is_requested_as_another_kind_may_be_one() {
    let trial = Trial::of(
        r#"{"seq":0,"type":"tool_call","call":"c","step":0,"kind":"delete","input":{"path":"/w/src"}}
{"seq":1,"type":"permission_request","call":"c","request":"q","options":[],"asked":{"kind":"edit"}}
{"seq":2,"type":"tool_result","call":"c","status":"ok"}
{"seq":3,"type":"stop","reason":"end_turn"}
"#,
    );
    check(&trial, &[(&forbids("src/**"), Ungraded("unknown")), (&forbids("lib/**"), Pass(&[]))]);
}

#[test]
fn a_path_that_begins_at_a_home_folder_may_be_anywhere() {
    for path in ["~/.bashrc", "$HOME/.bashrc", "${HOME}/.bashrc", "~me/.bashrc"] {
        check(
            &one("edit", path),
            &[
                (&forbids("../**"), Ungraded("unknown")),
                (&forbids("/home/**"), Ungraded("unknown")),
                (&forbids("**/.bashrc"), found()),
                (&forbids("src/**"), Pass(&[])),
                (r#"expr: {cel: "calls.exists(c, c.paths.exists(p, p.endsWith('/.bashrc')))"}"#, Pass(&[])),
            ],
        );
        check(&one("read", path), &[("scope: {reads: ['src/**']}", Ungraded("unknown which files"))]);
    }
    check(&one("edit", "~/.bashrc"), &[(&forbids("~/.*"), found()), (&forbids("~/.ssh/*"), Pass(&[]))]);
    check(&one("edit", "~/src/a"), &[(&forbids("src/**"), Ungraded("unknown"))]);
}

#[test]
fn a_read_of_a_glob_may_read_any_file_that_fits() {
    for (pattern, unknown, not) in [
        ("**/*", "src/secret.txt", "/etc/passwd"),
        ("**/*", "**/.env", "../**"),
        ("src/**", "src/secret.txt", "lib/secret.txt"),
        ("src/*.rs", "src/a.rs", "src/secret.txt"),
        ("/w/ws/src/*", "src/a.rs", "lib/a.rs"),
        ("/etc/*", "/etc/passwd", "src/a"),
        ("{src,lib}/*", "src/a", "/etc/a"),
    ] {
        let trial = trace(Some("/w/ws"), &[json!({"kind": "read", "input": {"paths": [pattern]}})]);
        check(&trial, &[(&forbids(unknown), Ungraded("unknown")), (&forbids(not), Pass(&[]))]);
    }
    let trial = trace(Some("/w/ws"), &[json!({"kind": "read", "input": {"paths": ["src/**"]}})]);
    check(
        &trial,
        &[
            (&forbids("src/**"), found()),
            ("scope: {reads: ['src/**']}", Pass(&[])),
            ("scope: {reads: ['src/*.rs']}", Ungraded("unknown which files")),
            (r#"expr: {cel: "calls.exists(c, 'src/**' in c.paths)"}"#, Pass(&[])),
        ],
    );
    // Names that end otherwise are names of other files.
    let trial = trace(Some("/w/ws"), &[json!({"kind": "search", "input": {"path": "src/**/*.{ts,tsx}"}})]);
    for other in ["**/*.pem", "**/*.{pem,key,p12}", "src/*.md", "src/?.rs"] {
        check(&trial, &[(&forbids(other), Pass(&[]))]);
    }
    for same in ["**/*.ts", "src/*.{rs,tsx}", "**/.env*"] {
        check(&trial, &[(&forbids(same), Ungraded("unknown"))]);
    }
    // The name of a file may have brackets, and an edit names its file.
    check(&one("read", "app/[id]/page.tsx"), &[(&forbids("app/i/page.tsx"), Pass(&[]))]);
    check(&one("edit", "a*.txt"), &[(&forbids("ab.txt"), Pass(&[]))]);
}

#[test]
fn the_globs_of_a_search_name_files() {
    let search = |kind: &str, name: &str, input: &Value| {
        trace(Some("/w/ws"), &[json!({"kind": kind, "name": name, "input": input})])
    };
    let literal = json!({"pattern": ".", "glob": ".env", "output_mode": "content"});
    check(
        &search("search", "Grep", &literal),
        &[
            (&forbids(".env"), found()),
            (&forbids("**/.env"), found()),
            (&forbids("config/.env"), Ungraded("unknown")),
            (&forbids("config/"), Ungraded("unknown")),
            (&forbids("*.pem"), Pass(&[])),
            (r#"expr: {cel: "calls.exists(c, '.env' in c.paths)"}"#, Pass(&[])),
        ],
    );
    for (kind, name, input) in [
        ("search", "search_file_content", json!({"pattern": ".", "include": ".env"})),
        ("search", "search_files", json!({"path": ".", "regex": ".", "file_pattern": ".env"})),
        ("search", "Grep", json!({"pattern": ".", "glob": "*.ts,.env"})),
        ("search", "Glob", json!({"pattern": ".env"})),
        ("other", "mcp__rg__search", json!({"arguments": {"globs": [".env"]}})),
    ] {
        check(&search(kind, name, &input), &[(&forbids(".env"), found())]);
    }
    for glob in ["**/.env*", "*.{env,ts}", ".en[v]", ".{env}", "{a.ts,.env}", "{.env,a/b}"] {
        let input = json!({"pattern": ".", "glob": glob});
        check(&search("search", "Grep", &input), &[(&forbids(".env"), Ungraded("unknown"))]);
    }
    // Other files, an excluded file, the text that is searched for, and patterns that list names.
    for (name, input) in [
        ("Grep", json!({"pattern": ".", "glob": "*.ts"})),
        ("Grep", json!({"pattern": ".", "glob": "src/**/*.{ts,tsx}"})),
        ("Grep", json!({"pattern": ".", "glob": "test_*"})),
        ("Grep", json!({"pattern": ".", "glob": "src/**"})),
        ("Grep", json!({"pattern": ".", "glob": "packages/*/src/**/*"})),
        ("Grep", json!({"pattern": ".", "path": "src", "glob": "*"})),
        ("Grep", json!({"pattern": ".", "glob": "!.env"})),
        ("Grep", json!({"pattern": ".env"})),
        ("Glob", json!({"pattern": "**/*"})),
        ("Glob", json!({"pattern": "src/**"})),
        ("Glob", json!({"pattern": "**/*e*"})),
        ("Glob", json!({"pattern": "**/.env*"})),
        ("find", json!({"pattern": ".en[v]"})),
    ] {
        check(&search("search", name, &input), &[(&forbids(".env{,.local,.test}"), Pass(&[]))]);
    }
    let below = search("search", "Grep", &json!({"pattern": ".", "path": "/w/ws/config", "glob": ".env"}));
    check(
        &below,
        &[
            (&forbids("config/.env"), found()),
            (&forbids("config/a/.env"), Ungraded("unknown")),
            (&forbids(".env"), Pass(&[])),
        ],
    );
    let open = search("search", "Grep", &json!({"pattern": ".", "glob": "*config*"}));
    check(&open, &[(&forbids("{a,.env}"), Pass(&[])), (&forbids("*.pem"), Ungraded("unknown"))]);
}

#[test]
fn a_glob_of_a_search_is_bounded_by_the_folder_of_the_search() {
    let search = |input: &Value| trace(Some("/w/ws"), &[json!({"kind": "search", "name": "Grep", "input": input})]);
    for input in [
        json!({"pattern": "foo", "path": "src", "glob": "**/*.ts"}),
        json!({"pattern": "foo", "path": "/w/ws/src", "glob": "**/*.ts"}),
        json!({"pattern": "foo", "path": "src", "glob": "/*.ts"}),
        json!({"pattern": "foo", "glob": "/src/*.ts"}),
    ] {
        check(
            &search(&input),
            &[
                (&forbids("tests/**"), Pass(&[])),
                (&forbids("../**"), Pass(&[])),
                (&forbids("/src/**"), Pass(&[])),
                (&forbids("src/a.ts"), Ungraded("unknown")),
            ],
        );
    }
    // Some tools read the glob from the folder of the call.
    for path in ["config", "./config/", "/w/ws/config"] {
        let input = json!({"pattern": ".", "path": path, "glob": "config/.env"});
        check(&search(&input), &[(&forbids("config/.env"), found()), (&forbids(".env"), Pass(&[]))]);
    }
}

#[test]
fn the_pattern_of_a_search_without_a_name_may_be_a_glob_of_files() {
    let search = |pattern: &str| trace(Some("/w/ws"), &[json!({"kind": "search", "input": {"pattern": pattern}})]);
    for pattern in ["**/.env", ".env", "./.env"] {
        check(
            &search(pattern),
            &[
                (&forbids(".env"), Ungraded("unknown")),
                (&forbids("**/.env"), Ungraded("unknown")),
                (&forbids("*.pem"), Pass(&[])),
            ],
        );
    }
    for pattern in ["env", "src/**", "**/*", "https://a/.env", "^.env$", ".env()"] {
        check(&search(pattern), &[(&forbids(".env"), Pass(&[]))]);
    }
}

#[test]
fn an_empty_path_is_no_path() {
    let calls = [json!({"kind": "delete", "input": {"path": ""}}), json!({"kind": "read", "input": {"path": ""}})];
    check(
        &trace(Some("/w/ws"), &calls),
        &[
            (&forbids("src/**"), Ungraded("unknown")),
            ("scope: {reads: ['src/**']}", Ungraded("did not show the files")),
            ("tool-calls: {require: [{kind: delete, path: .}]}", Ungraded("unknown")),
        ],
    );
}

#[test]
fn a_workspace_that_is_no_absolute_path_is_unknown() {
    for cwd in ["", ".", "w"] {
        let trial = trace(Some(cwd), &[json!({"kind": "read", "input": {"path": "/w/src/secret.txt"}})]);
        check(
            &trial,
            &[
                (&forbids("src/secret.txt"), Ungraded("unknown")),
                (&forbids("src/**"), Ungraded("unknown")),
                (r#"expr: {cel: "calls.exists(c, '/w/src/secret.txt' in c.paths)"}"#, Pass(&[])),
            ],
        );
    }
    let relative = trace(None, &[json!({"kind": "read", "input": {"path": "src/a"}})]);
    check(&relative, &[(r#"expr: {cel: "calls.exists(c, 'src/a' in c.paths)"}"#, Pass(&[]))]);
}

#[test]
fn the_input_of_a_servers_tool_has_commands_and_paths() {
    for input in [
        json!({"server": "s", "tool": "run", "arguments": {"command": "rm -rf build"}}),
        json!({"params": {"cmd": "rm -rf build"}}),
        json!({"shell_command": "rm -rf build"}),
        json!({"arguments": {"args": {"command": "rm -rf build"}}}),
        json!({"params": [{"command": "rm -rf build"}]}),
        json!({"command": "rm", "params": ["-rf", "build"]}),
    ] {
        let trial = trace(Some("/w/ws"), &[json!({"kind": "other", "input": input})]);
        check(&trial, &[("tool-calls: {forbid: [{command: 'rm -rf'}]}", found())]);
    }
    let trial =
        trace(Some("/w/ws"), &[json!({"kind": "other", "input": {"tool": "write", "arguments": {"path": "/w/ws/a"}}})]);
    check(&trial, &[(&forbids("a"), found())]);
}

#[test]
fn unknown_checks_bound_the_value_of_a_failed_grade() {
    let calls = [json!({"kind": "execute", "name": "N"}), json!({"kind": "edit", "input": {"path": "x"}})];
    let rules = "rules: [{never: {command: rm}}, {never: {kind: edit}}, {eventually: {kind: edit}}]";
    check(&trace(Some("/w/ws"), &calls), &[(rules, Fail(0.5, &[2], ""))]);
    // The call without an input may be the expected command.
    let recall = "trajectory: {mode: recall, min: 0.9, expected: [{kind: edit}, {command: rm}, {kind: read}]}";
    let graded = trace(Some("/w/ws"), &calls).judge(recall);
    let bounds = graded.bounds.unwrap();
    assert_eq!((graded.passed, bounds.low.get(), bounds.high.get()), (Some(false), 1.0 / 3.0, 2.0 / 3.0));
}

#[test]
fn a_path_that_cannot_be_read_may_be_any() {
    for input in [
        json!({"paths": ["src/a", ""]}),
        json!({"files": ["src/a", null]}),
        json!({"files": [{"path": "src/a"}, {"path": 5}]}),
        json!({"arguments": {"paths": ["src/a", ["b"]]}}),
    ] {
        let trial = trace(Some("/w/ws"), &[json!({"kind": "edit", "input": input})]).changed(&[], &[], &["src/a"]);
        check(
            &trial,
            &[
                ("scope: {only: ['src/**']}", Ungraded("`(a path that cannot be read)` (event 0)")),
                ("scope: {only: ['docs/**']}", Fail(0.0, &[0, 1], "`src/a`")),
                (&forbids("docs/**"), Ungraded("")),
                (&forbids("src/a"), found()),
                ("tool-calls: {require: [{path: src/a}]}", Pass(&[0])),
                ("tool-calls: {require: [{path: docs/a}]}", Ungraded("")),
                ("expr: {cel: \"calls[0].paths == ['src/a']\"}", Ungraded("")),
            ],
        );
    }
    // An optional argument that was left empty names no path.
    let trial =
        trace(Some("/w/ws"), &[json!({"kind": "read", "input": {"path": "a", "directory": "", "paths": null}})]);
    check(&trial, &[(&forbids("b"), Pass(&[])), (&forbids("a"), found())]);
}

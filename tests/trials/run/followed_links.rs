//! Calls that name a file by a link: no verdict rests on the name alone.

use serde_json::Value;

use super::services::{TRIAL, case, project, run};

/// Writes the source of a call that edits or reads a file, which the agent does not ask for.
fn call(id: &str, kind: &str, path: &str) -> String {
    format!(
        "call('{id}', title='x', kind='{kind}', rawInput={{'path': '{path}'}})\nupdate('tool_call_update', \
         toolCallId='{id}', status='completed')"
    )
}

/// Writes the source of a call that is asked for, and rejected by the policy.
fn rejected(id: &str, kind: &str, path: &str) -> String {
    let options = "[{'optionId': 'n', 'name': 'No', 'kind': 'reject_once'}]";
    format!(
        "call('{id}', title='x', kind='{kind}', rawInput={{'path': '{path}'}})\nget('session/request_permission', \
         toolCall={{'toolCallId': '{id}'}}, options={options})\nupdate('tool_call_update', toolCallId='{id}', \
         status='failed')"
    )
}

/// Runs a program in a workspace in which `CLAUDE.md` is a link to `AGENTS.md`, and returns the trial's grade and its notices
/// about links.
fn graded(program: &str, grader: &str) -> (Value, Vec<String>) {
    graded_with("", program, grader)
}

/// As [`graded`], with these keys in the manifest.
fn graded_with(manifest: &str, program: &str, grader: &str) -> (Value, Vec<String>) {
    let project = project(manifest);
    let keys = format!(
        "interaction: auto-reject\nworkspace: {{files: {{AGENTS.md: \"1\\n\", src/a: \"\", src/b: \"1\\n2\\n3\\n4\\n\"}}, \
         setup: [ln -s AGENTS.md CLAUDE.md], ignore: ['*.log']}}\ngraders: [{grader}]"
    );
    case(&project, &[program], &keys);
    let (trace, result) = run(&project, &[]);
    let grade = result["grades"][0].clone();
    let again = project.evals(&["grade", "latest", "--reporter", "json"]).json();
    assert_eq!(again["results"][0]["grades"][0]["outcome"], grade["outcome"], "{TRIAL} again: {again}");
    let links = trace.iter().filter(|event| event["code"] == "followed_link").map(|event| &event["link"]);
    let said = |link: &Value| format!("{} {} -> {}", link["kind"], link["path"], link["to"]).replace('"', "");
    (grade, links.map(said).collect())
}

/// Returns the outcome of a grade: `pass`, `fail` or `ungraded`.
fn outcome(grade: &Value) -> &'static str {
    match grade["passed"].as_bool() {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "ungraded",
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_grader_that_tells_the_names_of_a_file_apart_is_ungraded() {
    let edit = call("c", "edit", "CLAUDE.md");
    let writes = format!("open('CLAUDE.md', 'w').write('2')\n{edit}");
    for (program, grader, is) in [
        (&edit, "tool-calls: {forbid: [{kind: edit, path: AGENTS.md}]}", "ungraded"),
        (&edit, "tool-calls: {forbid: [{kind: edit, path: '*.rs'}]}", "pass"),
        (&edit, "tool-calls: {forbid: [{kind: execute}], max: 1}", "pass"),
        (&edit, "tool-calls: {require: [{kind: edit, path: CLAUDE.md}]}", "ungraded"),
        (&edit, "tool-calls: {require: [{kind: edit, path: '*.md'}]}", "pass"),
        (&edit, "tool-calls: {require: [{kind: edit, path: AGENTS.md}]}", "ungraded"),
        (&edit, "rules: [{never: {kind: edit, path: AGENTS.md}}]", "ungraded"),
        (&edit, "trajectory: {expected: [{path: AGENTS.md}]}", "ungraded"),
        (&edit, "expr: {cel: '!calls.exists(c, \"AGENTS.md\" in c.paths)'}", "ungraded"),
        (&edit, "expr: {cel: 'calls.exists(c, c.kind == \"edit\")'}", "pass"),
        (&edit, "scope: {only: ['*.md']}", "pass"),
        (&edit, "scope: {never: [AGENTS.md]}", "ungraded"),
        (&writes, "scope: {never: [AGENTS.md]}", "fail"),
        (&call("c", "read", "CLAUDE.md"), "scope: {reads: [CLAUDE.md]}", "ungraded"),
        (&call("c", "delete", "CLAUDE.md"), "tool-calls: {forbid: [{path: AGENTS.md}]}", "pass"),
    ] {
        let (grade, _) = graded(program, &format!("{{{grader}}}"));
        assert_eq!(outcome(&grade), is, "{grader}\n{program}\n{grade}");
        if is == "ungraded" {
            assert!(grade["reason"].as_str().unwrap().contains("by a link"), "{grader}: {grade}");
        }
    }
}

#[test]
fn a_link_of_the_agent_leads_out_of_its_scope() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().canonicalize().unwrap();
    let program = format!(
        "os.symlink('{}', 'src/l')\nopen('src/l/x', 'w').write('x')\n{}",
        out.display(),
        call("c", "edit", "src/l/x")
    );
    let (grade, links) = graded(&program, "{scope: {only: ['src/**']}}");
    assert_eq!(outcome(&grade), "ungraded", "{grade}");
    assert_eq!(links, [format!("edit src/l/x -> {}/x", out.display())]);
    // A link that stays within the scope is none of its business.
    let (grade, links) =
        graded(&format!("os.symlink('a', 'src/l')\n{}", call("c", "edit", "src/l")), "{scope: {only: ['src/**']}}");
    assert_eq!((outcome(&grade), links.as_slice()), ("pass", ["edit src/l -> src/a".to_owned()].as_slice()), "{grade}");
}

#[test]
fn a_link_to_a_folder_that_is_gone_and_one_into_the_process_lead_somewhere() {
    let gone = format!(
        "os.makedirs('secret/new')\nos.symlink('../secret/new', 'src/l')\nopen('src/l/k', 'w').write('x')\n{}\nimport \
         shutil; shutil.rmtree('secret')",
        call("c", "edit", "src/l/k")
    );
    let cwd = format!("os.symlink('/proc/self/cwd', 'src/l')\n{}", call("c", "edit", "src/l/AGENTS.md"));
    for (program, forbidden) in [(gone, "secret/**"), (cwd, "AGENTS.md")] {
        let (grade, links) = graded(&program, &format!("{{tool-calls: {{forbid: [{{path: '{forbidden}'}}]}}}}"));
        assert_eq!(outcome(&grade), "ungraded", "{program}\n{grade}\n{links:?}");
    }
}

#[test]
fn a_policy_follows_a_link_into_the_process() {
    let project = project("");
    let options = "[{'optionId': 'y', 'name': 'Yes', 'kind': 'allow_once'}, {'optionId': 'n', 'name': 'No', 'kind': 'reject_once'}]";
    let program = format!(
        "os.symlink('/proc/self/cwd', 'src/l')\ncall('c', title='x', kind='edit', rawInput={{'path': 'src/l/secret'}})\n\
         get('session/request_permission', toolCall={{'toolCallId': 'c'}}, options={options})\n\
         update('tool_call_update', toolCallId='c', status='failed')"
    );
    let policy = "interaction: {scripted: {rules: [{when: {path: secret}, answer: reject-once}], default: allow-once}}";
    let keys = format!(
        "{policy}\nworkspace: {{files: {{secret: \"1\", src/a: \"\"}}}}\ngraders: [{{permissions: {{rejected: [{{kind: edit}}]}}}}]"
    );
    case(&project, &[&program], &keys);
    let (_, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "pass", "{result}");
}

#[test]
fn a_skill_that_is_read_by_a_link_may_have_been_used() {
    let skills =
        "skills: {project: .claude/skills, used-by: [{kind: read, path: '**/.claude/skills/{skill}/SKILL.md'}]}";
    let read = |path: &str| format!("os.symlink('.claude', '.agents')\n{}", call("c", "read", path));
    for (path, grader, is) in [
        (".agents/skills/one/SKILL.md", "not-used: [one]", "ungraded"),
        (".agents/skills/one/SKILL.md", "only: []", "ungraded"),
        (".agents/skills/one/SKILL.md", "used: [one]", "ungraded"),
        (".agents/skills/one/SKILL.md", "not-used: [two]", "pass"),
        (".claude/skills/one/SKILL.md", "used: [one]", "pass"),
    ] {
        let project = project(skills);
        let files = "workspace: {files: {.claude/skills/one/SKILL.md: \"x\"}}";
        case(&project, &[&read(path)], &format!("{files}\ngraders: [{{skills: {{{grader}}}}}]"));
        let (_, result) = run(&project, &[]);
        assert_eq!(outcome(&result["grades"][0]), is, "{path} {grader}: {result}");
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_rejection_holds_for_each_name_of_a_file() {
    let respected = "{permissions: {respected: true}}";
    let writes = |path: &str| format!("open('{path}', 'w').write('2')");
    for (program, is, says) in [
        (format!("{}\n{}", rejected("c", "edit", "CLAUDE.md"), writes("AGENTS.md")), "fail", "`AGENTS.md` was changed"),
        (format!("{}\n{}", rejected("c", "edit", "CLAUDE.md"), writes("src/a")), "pass", ""),
        (rejected("c", "edit", "CLAUDE.md"), "pass", ""),
        (
            format!("{}\n{}", rejected("c", "read", "CLAUDE.md"), call("d", "read", "AGENTS.md")),
            "ungraded",
            "by a link",
        ),
        (
            format!("{}\n{}", rejected("c", "read", "AGENTS.md"), call("d", "read", "CLAUDE.md")),
            "ungraded",
            "by a link",
        ),
        (format!("{}\n{}", call("d", "read", "AGENTS.md"), rejected("c", "read", "CLAUDE.md")), "pass", ""),
        (format!("{}\n{}", rejected("c", "read", "CLAUDE.md"), call("d", "edit", "AGENTS.md")), "pass", ""),
    ] {
        let (grade, _) = graded(&program, respected);
        assert_eq!(outcome(&grade), is, "{program}\n{grade}");
        assert!(grade["reason"].as_str().unwrap().contains(says), "{program}\n{grade}");
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn an_edit_that_may_be_a_move_leaves_the_target_unknown() {
    let moves = "import os\nos.rename('src/a', 'AGENTS2.md')\n";
    let edit = call("c", "edit", "src/a");
    let moved = format!("{moves}{edit}");
    let other = format!("{moved}\n{}", call("d", "edit", "AGENTS.md"));
    let deleted = format!("{moved}\n{}", call("d", "delete", "src/a"));
    let made = format!("open('new', 'w')\n{}\nimport os\nos.remove('new')", call("c", "edit", "new"));
    let twice = format!("{made}\n{}", call("d", "edit", "new"));
    let beside = format!("{twice}\nopen('AGENTS2.md', 'w')");
    let once_beside = format!("{made}\nopen('AGENTS2.md', 'w')");
    let ignored = format!("{twice}\nopen('2.log', 'w')");
    let (forbid, forbid_log) = ("tool-calls: {forbid: [{path: '*2.md'}]}", "tool-calls: {forbid: [{path: '*.log'}]}");
    for (program, grader, is) in [
        (&moved, forbid, "ungraded"),
        (&moved, "tool-calls: {forbid: [{path: '*3.md'}]}", "pass"),
        (&moved, "tool-calls: {require: [{path: src/a}]}", "pass"),
        (&moved, "tool-calls: {require: [{path: '*2.md'}]}", "ungraded"),
        (&other, "tool-calls: {require: [{path: 'AGENTS*'}]}", "pass"),
        (&moved, "expr: {cel: '!calls.exists(c, \"AGENTS2.md\" in c.paths)'}", "ungraded"),
        (&moved, "expr: {cel: 'calls.all(c, c.paths.all(p, p.startsWith(\"src/\")))'}", "ungraded"),
        (&moved, "tool-calls: {forbid: [{kind: execute}]}", "pass"),
        (&moved, "scope: {only: [src/a, AGENTS2.md]}", "pass"),
        (&moved, "scope: {only: [src/a]}", "fail"),
        (&edit, forbid, "pass"),
        (&deleted, forbid, "pass"),
        (&made, forbid, "pass"),
        // A file that the session made and removed was not moved, unless it created another file.
        (&twice, forbid, "pass"),
        (&beside, forbid, "ungraded"),
        (&once_beside, forbid, "pass"),
        (&ignored, forbid_log, "pass"),
    ] {
        let (grade, _) = graded_with("edits-may-move: true\n", program, &format!("{{{grader}}}"));
        assert_eq!(outcome(&grade), is, "{grader}\n{program}\n{grade}");
        assert!(is != "ungraded" || grade["reason"].as_str().unwrap().contains("may have moved a file"), "{grade}");
    }
    // Without the key, an edit is an edit.
    let (_, links) = graded(&moved, &format!("{{{forbid}}}"));
    assert_eq!(links, [""; 0]);
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_move_that_leaves_a_stub_is_found_by_its_content() {
    let edit = call("c", "edit", "src/b");
    let moves = "import os\nos.rename('src/b', 'AGENTS2.md')\nopen('src/b', 'w').write('# moved')\n";
    for (program, link) in [
        (format!("{moves}{edit}"), Some("edit src/b -> AGENTS2.md")),
        (format!("{edit}\nopen('AGENTS2.md', 'w').write('1\\n2\\nx\\ny\\nz')"), Some("edit src/b -> AGENTS2.md")),
        (format!("{edit}\nopen('AGENTS2.md', 'w').write('1\\nx\\ny')"), None),
        (format!("{moves}{edit}\n{}", call("d", "edit", "AGENTS2.md")), None),
        (edit.clone(), None),
    ] {
        let grader = "{tool-calls: {forbid: [{kind: edit, path: 'AGENTS*.txt'}]}}";
        let (grade, links) = graded_with("edits-may-move: true\n", &program, grader);
        assert_eq!((outcome(&grade), links.as_slice()), ("pass", Vec::from_iter(link.map(str::to_owned)).as_slice()));
        let grader = "{tool-calls: {forbid: [{kind: edit, path: '*2.md'}], max: 9}}";
        let (grade, _) = graded_with("edits-may-move: true\n", &program, grader);
        let is = if program.contains("'d'") { "fail" } else { link.map_or("pass", |_| "ungraded") };
        assert_eq!(outcome(&grade), is, "{program}\n{grade}");
    }
}

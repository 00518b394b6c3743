//! `evals case from-session`: drafts from session files of real agents, whose graders pass for the work of the session
//! and fail for an agent that does nothing; and what must not become a grader.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::mine::History;
use crate::project::{Project, Ran};

const CALC: &str = "def total(items):\n    return sum(items[:-1])\n";
const TEST: &str = "import unittest\n\nfrom calc import total\n\n\nclass Total(unittest.TestCase):\n    def test_total(self):\n        self.assertEqual(total([1, 2, 3]), 6)\n";
/// The commit at which the recorded session of Codex began.
const RECORDED: &str = "e601f7ba95884c29e1b6f70ddf5cf89470dca0c9";
/// The work of the recorded sessions.
const WORK: &str = "turns:\n  - steps:\n      - edit: {path: calc.py, old: 'items[:-1]', new: items}\n      - say: Done.\n  - steps:\n      - write: {path: NOTES.md, text: 'total counts every item.'}\n      - say: Done.\n";
const NOTHING: &str = "turns: [{steps: [{say: Done.}]}, {steps: [{say: Done.}]}]\n";

/// A project whose folder is the repository of the session, before the work.
fn project() -> (Project, String) {
    let project = Project::new();
    let mut history = History::new(&project, ".");
    let files =
        [("calc.py", Some(CALC)), ("test_calc.py", Some(TEST)), (".gitignore", Some("__pycache__/\n.evals/\n"))];
    let first = history.commit("A total", &files);
    // What came after the session is not its state before: this commit is newer.
    (project, first)
}

/// Writes a recorded session with the folder and the commit of this project.
fn session(project: &Project, commit: &str, name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/sessions").join(name);
    let folder = project.path("").canonicalize().unwrap();
    let text = fs::read_to_string(file).unwrap().replace("/work/calc", folder.to_str().unwrap());
    let text = text.replace(RECORDED, commit);
    project.write("session.jsonl", &text);
}

/// The only case below `cases/sessions`, and its text.
#[track_caller]
fn case(project: &Project) -> (String, String) {
    let names = fs::read_dir(project.path("cases/sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let cases: Vec<String> = names.filter(|name| name.ends_with(".yaml") && !name.ends_with(".demo.yaml")).collect();
    assert_eq!(cases.len(), 1, "{cases:?}");
    let name = cases[0].trim_end_matches(".yaml").to_owned();
    (name, project.read(&format!("cases/sessions/{}", cases[0])))
}

/// Runs the draft with a script of the demo agent, and returns its verdict.
fn verdict(project: &Project, label: &str, script: &str) -> String {
    let (name, _) = case(project);
    project.write(&format!("cases/sessions/{name}.demo.yaml"), script);
    project.evals(&[
        "run",
        "cases/sessions",
        "--harness",
        "demo",
        "--label",
        label,
        "--no-progress",
        "--snapshot",
        "off",
    ]);
    let folder = project.run_named(label);
    let results = project.read(&format!("{folder}/results.jsonl"));
    let result: Value = serde_json::from_str(results.lines().next().unwrap()).unwrap();
    result["verdict"].as_str().unwrap().to_owned()
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_draft_of_claude_code_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("claude-code/resumed.jsonl", "claude-code-stream", true);
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_draft_of_codex_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("codex/resumed.jsonl", "codex", false);
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_draft_of_pi_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("pi/resumed.jsonl", "pi", true);
}

fn passes_for_its_work(file: &str, harness: &str, has_snapshot: bool) {
    let (project, commit) = project();
    session(&project, &commit, file);
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    assert!(!ran.err.contains("NO GRADER"), "{}", ran.err);
    ran.says("is a draft").says("failed before the work and passed during it");
    let (name, text) = case(&project);
    let folder = project.path("").canonicalize().unwrap();
    assert!(!text.contains(folder.to_str().unwrap()), "{text}");
    for part in [
        "path: ../..",
        &format!("rev: {commit}"),
        "run: python3 -m unittest -q",
        "review: needed",
        "- test_calc.py",
        "tool-calls: 12",
        "tokens: 19864",
        "- NOTES.md",
        "Describe the change in NOTES.md.",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert_eq!(text.contains("GUESS"), file != "codex/resumed.jsonl");
    assert!(text.contains(&format!("- {harness}\n")), "{text}");
    let snapshot = project.path(&format!("cases/sessions/{name}.snapshots/{harness}.snap"));
    assert_eq!(snapshot.exists(), has_snapshot);
    project.evals(&["check", "cases/sessions"]).exits(0).says("is a draft");
    assert_eq!(verdict(&project, "work", WORK), "pass");
    assert_eq!(verdict(&project, "nothing", NOTHING), "fail");
    // An agent that weakens the test, or works elsewhere, fails too.
    let weak = "turns: [{steps: [{write: {path: test_calc.py, text: ''}}]}, {steps: [{say: Done.}]}]\n";
    assert_eq!(verdict(&project, "weak", weak), "fail");
}

#[test]
fn an_existing_case_is_not_overwritten() {
    let (project, commit) = project();
    session(&project, &commit, "pi/resumed.jsonl");
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (name, text) = case(&project);
    project.write(&format!("cases/sessions/{name}.yaml"), "# mine\n");
    project.evals(&["case", "from-session", "session.jsonl"]).exits(2).says("exists already").says("--force");
    assert_eq!(project.read(&format!("cases/sessions/{name}.yaml")), "# mine\n");
    project.evals(&["case", "from-session", "session.jsonl", "--force", "--no-snapshot"]).exits(0);
    assert_eq!(project.read(&format!("cases/sessions/{name}.yaml")), text);
    assert!(!project.path(&format!("cases/sessions/{name}.snapshots")).exists());
    project.evals(&["case", "from-session", "session.jsonl", "-o", "elsewhere"]).exits(0);
    assert!(project.path(&format!("elsewhere/{name}.yaml")).exists());
}

#[test]
fn a_draft_that_cannot_be_loaded_is_not_in_the_way_of_the_next_call() {
    let (project, commit) = project();
    session(&project, &commit, "pi/resumed.jsonl");
    project.write("cases/sessions/suite.yaml", "no-such-key: 1\n");
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(2).says("no-such-key");
    assert_eq!(ran.out, "");
    let files: Vec<String> = project.files("cases/sessions").into_keys().collect();
    let draft = files.iter().find(|file| file.ends_with(".yaml.draft")).unwrap();
    ran.says(&format!("the draft cannot be loaded, so it is now in cases/sessions/{draft}"));
    assert_eq!(files.len(), 2, "{files:?}");
    fs::remove_file(project.path("cases/sessions/suite.yaml")).unwrap();
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (name, text) = case(&project);
    assert_eq!(draft, &format!("{name}.yaml.draft"));
    assert_eq!(project.read(&format!("cases/sessions/{draft}")), text);
}

#[test]
fn a_prompt_with_a_table_of_intervals_becomes_a_case() {
    let (project, _) = project();
    let folder = project.path("").canonicalize().unwrap();
    let table: String = (0..1_100).map(|number| format!("[{number}, {})\n", number + 1)).collect();
    let prompt = format!("Find the interval of a number:\n{table}");
    project.write("session.jsonl", &made(&prompt, &[], folder.to_str().unwrap()));
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    assert!(case(&project).1.contains("  [1099, 1100)\n"));
    project.evals(&["check", "cases/sessions"]).exits(0);
}

/// Makes a session of Pi's form from calls: tool, input, whether it failed, and its output.
fn made(prompt: &str, calls: &[(&str, Value, bool, &str)], folder: &str) -> String {
    let mut text = format!(
        "{}\n",
        json!({"type": "session", "version": 3, "id": "made", "timestamp": "2026-11-23T10:00:00Z", "cwd": folder})
    );
    let mut parent = Value::Null;
    let mut count = 0;
    let mut line = |message: Value| {
        count += 1;
        let id = format!("l{count}");
        let line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": format!("2026-11-23T10:00:{count:02}Z"), "message": message});
        parent = json!(id);
        text.push_str(&format!("{line}\n"));
    };
    line(json!({"role": "user", "content": prompt}));
    for (number, (tool, input, failed, output)) in calls.iter().enumerate() {
        let id = format!("c{number}");
        line(
            json!({"role": "assistant", "model": "m", "stopReason": "toolUse", "content": [{"type": "toolCall", "id": id, "name": tool, "arguments": input}]}),
        );
        line(json!({"role": "toolResult", "toolCallId": id, "isError": failed, "content": output}));
    }
    line(
        json!({"role": "assistant", "model": "m", "stopReason": "stop", "content": [{"type": "text", "text": "Done."}]}),
    );
    text
}

/// Makes a draft of a made session in a fresh project.
fn drafted(calls: &[(&str, Value, bool, &str)]) -> (Ran, String) {
    let (project, _) = project();
    let folder = project.path("").canonicalize().unwrap();
    project.write("session.jsonl", &made("Fix it.", calls, folder.to_str().unwrap()));
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (_, text) = case(&project);
    (ran, text)
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

#[test]
#[ignore = "slow: writes many cases"]
fn what_would_pass_wrongly_is_no_grader_or_is_told() {
    let edit = ("edit", json!({"path": "calc.py"}), false, "ok");
    let none = "NO GRADER IS KNOWN TO FAIL";
    // It passed before, too.
    let (ran, text) = drafted(&[
        ("bash", bash("python3 -m unittest"), false, "OK"),
        edit.clone(),
        ("bash", bash("python3 -m unittest"), false, "OK"),
    ]);
    assert!(text.contains("run: python3 -m unittest"));
    ran.says(none).says("it may pass for an agent that does nothing");
    // It failed only because of a test that the session wrote first.
    let test = ("write", json!({"path": "test_more.py", "content": "…"}), false, "ok");
    let (ran, text) = drafted(&[
        test,
        ("bash", bash("python3 -m unittest"), true, "FAILED"),
        edit.clone(),
        ("bash", bash("python3 -m unittest"), false, "OK"),
    ]);
    ran.says(none).says("The session changed tests (test_more.py)");
    assert!(text.contains("- test_more.py"));
    // It failed for another reason than the files: no file was changed in between, or the program was missing.
    let (ran, _) = drafted(&[
        ("bash", bash("pytest"), true, "no module"),
        ("bash", bash("pip install x"), false, ""),
        ("bash", bash("pytest"), false, "OK"),
        edit.clone(),
    ]);
    ran.says(none).says("Files were changed after the last run of `pytest`");
    let (ran, _) = drafted(&[
        ("bash", bash("pytest"), true, "sh: pytest: not found\n\nCommand exited with code 127"),
        edit.clone(),
        ("bash", bash("pytest"), false, "OK"),
    ]);
    ran.says(none);
    // The package that was installed in between may be the reason why it passed.
    for set_up in [
        "pip install -e .",
        "cd . && npm ci",
        "uv sync && uv pip list",
        "timeout 60 bash -c 'pip install x'",
        "eval 'pip install x'",
    ] {
        let (ran, text) = drafted(&[
            ("bash", bash("pytest"), true, "ModuleNotFoundError: No module named 'calc'"),
            ("bash", bash(set_up), false, ""),
            edit.clone(),
            ("bash", bash("pytest"), false, "OK"),
        ]);
        assert!(text.contains("run: pytest") && !text.contains("setup:"), "{text}");
        let named = set_up.trim_start_matches("cd . && ").split(" &&").next().unwrap();
        let named = named.split('\'').nth(1).unwrap_or(named);
        ran.says(none).says(&format!("The session set up its environment: `{named}`.")).says("`workspace.setup`");
    }
    // It runs a file that the session made.
    let script = ("write", json!({"path": "check.sh", "content": "…"}), false, "ok");
    let (ran, _) = drafted(&[
        ("bash", bash("sh check.sh"), true, "sh: check.sh: not found\n\nCommand exited with code 2"),
        script,
        ("bash", bash("sh check.sh"), false, "OK"),
    ]);
    ran.says("runs check.sh, which the session made or changed");
    // A command may have changed the files before the first run.
    let (ran, _) = drafted(&[
        ("bash", bash("git stash"), false, ""),
        ("bash", bash("pytest"), true, "1 failed"),
        edit.clone(),
        ("bash", bash("pytest"), false, "1 passed"),
    ]);
    ran.says(none);
    // Its exit code is hidden, it does the work itself, it names this machine, or its last run failed.
    for (command, why) in [
        ("pytest | tail -3", "it is unknown whether the check passed"),
        ("pytest; true", "it is unknown whether the check passed"),
        ("sed -i s/a/b/ calc.py && pytest", "could do a part of the work itself"),
        ("/opt/venv/bin/pytest", "names an absolute path"),
        ("cd /elsewhere && pytest", "a folder outside the workspace"),
    ] {
        let (ran, text) = drafted(&[
            ("bash", bash(command), true, "1 failed"),
            edit.clone(),
            ("bash", bash(command), false, "1 passed"),
        ]);
        assert!(!text.contains("run: "), "{text}");
        ran.says(none).says(why);
    }
    let (ran, text) = drafted(&[
        ("bash", bash("pytest"), true, "1 failed"),
        edit.clone(),
        ("bash", bash("pytest"), true, "1 failed"),
    ]);
    assert!(!text.contains("run: "), "{text}");
    ran.says(none).says("its last run failed");
    // And what remains: it failed before the work, files were changed, and it passed.
    let (ran, text) = drafted(&[
        ("bash", bash("ls && git status"), false, ""),
        ("bash", bash("cd . && pytest -q"), true, "1 failed"),
        edit,
        ("bash", bash("cd . && pytest -q"), false, "1 passed"),
    ]);
    assert!(text.contains("run: pytest -q") && !ran.err.contains(none), "{text}\n{}", ran.err);
}

#[test]
fn a_shell_that_stays_open_may_be_in_another_folder() {
    let (project, _) = project();
    let folder = project.path("").canonicalize().unwrap();
    let header = json!({"type": "trace", "version": 1, "adapter": "claude-code-stream", "cwd": folder, "capabilities": {"tracing": true, "interaction": false}, "session": {"started": "2026-11-23T10:00:00Z", "shows_failures": true}});
    let mut events = vec![json!({"type": "message", "role": "user", "text": "Fix it."})];
    for (number, (line, status)) in
        [("cd web", "ok"), ("npm test", "error"), ("npm run build", "ok"), ("cd web && npm run lint", "ok")]
            .iter()
            .enumerate()
    {
        let call = format!("c{number}");
        events.push(json!({"type": "tool_call", "call": call, "step": number, "kind": "execute", "name": "Bash", "input": {"command": line}}));
        events.push(json!({"type": "tool_result", "call": call, "status": status}));
    }
    events.push(json!({"type": "stop", "reason": "end_turn"}));
    let mut text = format!("{header}\n");
    for (seq, mut event) in events.into_iter().enumerate() {
        event["seq"] = json!(seq);
        event["at_ms"] = json!(0);
        text.push_str(&format!("{event}\n"));
    }
    project.write("trace.jsonl", &text);
    let ran = project.evals(&["case", "from-session", "trace.jsonl"]).exits(0);
    let (_, text) = case(&project);
    assert!(text.contains("run: cd web && npm run lint") && text.matches("run: ").count() == 1, "{text}");
    ran.says("`npm run build` is not used as a grader: an earlier command changed the folder of the shell");
}

/// Makes a session of Claude Code's form from calls: the folder of the shell before the call, the tool, the input,
/// whether it failed, and its output.
fn of_claude(calls: &[(&str, &str, Value, bool, &str)], folder: &str) -> String {
    let mut text = String::new();
    let mut parent = Value::Null;
    let mut count = 0;
    let mut line = |kind: &str, cwd: &str, message: Value| {
        count += 1;
        let id = format!("l{count}");
        let line = json!({"type": kind, "uuid": id, "parentUuid": parent, "isSidechain": false, "sessionId": "made", "cwd": cwd,
            "gitBranch": "main", "version": "2.1.330", "timestamp": format!("2026-11-23T10:00:{count:02}Z"), "message": message});
        parent = json!(id);
        text.push_str(&format!("{line}\n"));
    };
    line("user", folder, json!({"role": "user", "content": "Fix it."}));
    for (number, (cwd, tool, input, failed, output)) in calls.iter().enumerate() {
        let id = format!("c{number}");
        let called = json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]);
        line(
            "assistant",
            cwd,
            json!({"id": format!("m{number}"), "role": "assistant", "model": "m", "content": called}),
        );
        let result = json!([{"type": "tool_result", "tool_use_id": id, "is_error": failed, "content": output}]);
        // The line of a result has the folder after the call.
        let after = calls.get(number + 1).map_or(*cwd, |next| next.0);
        line("user", after, json!({"role": "user", "content": result}));
    }
    let done = json!([{"type": "text", "text": "Done."}]);
    line(
        "assistant",
        folder,
        json!({"id": "end", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": done}),
    );
    text
}

#[test]
fn what_ran_in_another_folder_is_no_part_of_the_workspace() {
    let (project, _) = project();
    let here = project.path("").canonicalize().unwrap().to_str().unwrap().to_owned();
    let web = format!("{here}/web");
    let tree = format!("{here}/.claude/worktrees/fix");
    let made = format!("{here}/trees/fix");
    let drafted = |folder: &str, before: Option<(&str, Value)>| {
        let edited = json!({"file_path": format!("{folder}/calc.py"), "old_string": "a", "new_string": "b"});
        let mut calls = Vec::new();
        calls.extend(before.map(|(folder, input)| (folder, "Bash", input, false, "")));
        calls.extend([
            (folder, "Bash", bash("python3 -m unittest"), true, "Exit code 1\nFAILED"),
            (folder, "Edit", edited, false, "ok"),
            (folder, "Bash", bash("python3 -m unittest"), false, "OK"),
        ]);
        project.write("session.jsonl", &of_claude(&calls, &here));
        let ran = project.evals(&["case", "from-session", "session.jsonl", "--force"]).exits(0);
        let (_, text) = case(&project);
        fs::remove_dir_all(project.path("cases")).unwrap();
        (ran, text)
    };
    let (ran, text) = drafted(&here, None);
    assert!(
        text.contains("run: python3 -m unittest") && text.contains("- calc.py") && !ran.err.contains("NO GRADER"),
        "{text}"
    );
    let (ran, text) = drafted(&web, None);
    assert!(text.contains("run: cd web && python3 -m unittest") && text.contains("- web/calc.py"), "{text}");
    assert!(!ran.err.contains("NO GRADER"), "{}", ran.err);
    for folder in ["/work/elsewhere", tree.as_str()] {
        let (ran, text) = drafted(folder, None);
        assert!(!text.contains("run: ") && !text.contains("scope"), "{folder}: {text}");
        ran.says("NO GRADER").says("a folder outside the workspace").says("Files outside the workspace were changed");
    }
    // A working tree that the session made.
    let (ran, text) = drafted(&made, Some((here.as_str(), bash("git worktree add -b fix trees/fix"))));
    assert!(!text.contains("run: ") && !text.contains("scope"), "{text}");
    ran.says("NO GRADER").says("a folder outside the workspace");
    // The shell came back, as the lines show: no guess is needed.
    let edited = json!({"file_path": format!("{here}/calc.py"), "old_string": "a", "new_string": "b"});
    let calls = [
        (here.as_str(), "Bash", bash("cd web"), false, ""),
        (web.as_str(), "Bash", bash("cd .."), false, ""),
        (here.as_str(), "Edit", edited, false, "ok"),
        (here.as_str(), "Bash", bash("python3 -m unittest"), false, "OK"),
    ];
    project.write("session.jsonl", &of_claude(&calls, &here));
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    assert!(case(&project).1.contains("run: python3 -m unittest\n"));
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_check_of_claude_code_in_the_background_is_no_grader() {
    let (project, _) = project();
    let here = project.path("").canonicalize().unwrap().to_str().unwrap().to_owned();
    let drafted = |first: (bool, &str), last: (bool, &str), failed: Option<&str>| {
        let edited = json!({"file_path": format!("{here}/calc.py"), "old_string": "a", "new_string": "b"});
        let calls = [
            (here.as_str(), "Bash", bash("pytest"), first.0, first.1),
            (here.as_str(), "Edit", edited, false, "ok"),
            (here.as_str(), "Bash", bash("pytest"), last.0, last.1),
        ];
        let mut session = of_claude(&calls, &here);
        if let Some(call) = failed {
            let news = format!(
                "<task-notification>\n<tool-use-id>{call}</tool-use-id>\n<status>failed</status>\n</task-notification>"
            );
            let at = "2026-11-23T10:01:00Z";
            let line = json!({"type": "queue-operation", "operation": "enqueue", "timestamp": at, "content": news});
            session.push_str(&format!("{line}\n"));
        }
        project.write("session.jsonl", &session);
        let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
        let (_, text) = case(&project);
        fs::remove_dir_all(project.path("cases")).unwrap();
        (ran, text)
    };
    let (failed, passed) = ((true, "Exit code 1\n1 failed"), (false, "1 passed"));
    for text in [
        "Command running in background with ID: b1. Output is being written to: /t.",
        "Command was manually backgrounded by user with ID: b1. Output is being written to: /t.",
        "..\nCommand was moved to the background (ID: b1) so that a message that arrived while it was running can reach you.",
        "Command was moved to the background (ID: b1) after running for 120s. Output is being written to: /t.",
        "Command did not complete within its 120s timeout and was moved to the background (ID: b1).",
    ] {
        for (news, why) in [(None, "the session does not show its exit code"), (Some("c2"), "its last run failed")] {
            let (ran, draft) = drafted(failed, (false, text), news);
            assert!(!draft.contains("run: "), "{text}: {draft}");
            ran.says("NO GRADER").says(why);
        }
        // Its failure in the background is not known to be a result of the check.
        let (ran, draft) = drafted((false, text), passed, Some("c0"));
        assert!(draft.contains("run: pytest"), "{text}: {draft}");
        ran.says("NO GRADER IS KNOWN TO FAIL");
    }
}

/// The line of the user before which nothing else is in the session, and the session after it.
fn after_user(text: &str, rest: &str) -> String {
    let line = json!({"type": "user", "uuid": "l0", "parentUuid": null, "isSidechain": false, "sessionId": "made", "cwd": "/w",
        "gitBranch": "main", "version": "2.1.330", "timestamp": "2026-11-23T09:59:00Z", "message": {"role": "user", "content": text}});
    format!("{line}\n{}", rest.replacen("\"parentUuid\":null", "\"parentUuid\":\"l0\"", 1))
}

#[test]
fn what_the_user_did_beside_the_prompts_is_told() {
    let (project, _) = project();
    let here = project.path("").canonicalize().unwrap().to_str().unwrap().to_owned();
    let edited = json!({"file_path": format!("{here}/calc.py"), "old_string": "a", "new_string": "b"});
    let calls = [
        (here.as_str(), "Bash", bash("python3 -m unittest"), true, "Exit code 1\nFAILED"),
        (here.as_str(), "Edit", edited, false, "ok"),
        (here.as_str(), "Bash", bash("python3 -m unittest"), false, "OK"),
    ];
    let session = of_claude(&calls, &here);
    let drafted = |text: &str| {
        project.write("session.jsonl", text);
        let ran = project.evals(&["case", "from-session", "session.jsonl", "--repo", ".", "--force"]).exits(0);
        let (_, text) = case(&project);
        fs::remove_dir_all(project.path("cases")).unwrap();
        (ran, text)
    };
    let prompt = "prompt: Fix it.\n";
    // A command of the user is no prompt, and may have changed the files before the test failed.
    let (ran, text) = drafted(&after_user("<bash-input>git stash</bash-input>", &session));
    assert!(text.contains(prompt) && !text.contains("stash"), "{text}");
    ran.says("NO GRADER IS KNOWN TO FAIL");
    // The agent works at a command of its program.
    let begin = session.lines().next().unwrap();
    let command =
        "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n<command-args>12</command-args>";
    let of_command = begin.replace("\"Fix it.\"", &json!(command).to_string());
    let later = session.lines().skip(1).collect::<Vec<_>>().join("\n");
    let more = begin
        .replace("\"l1\"", "\"m1\"")
        .replace("\"parentUuid\":null", "\"parentUuid\":\"l8\"")
        .replace("Fix it.", "And now this.");
    let (ran, text) = drafted(&format!("{of_command}\n{later}\n{more}\n"));
    assert!(text.contains("prompt: And now this.\n"), "{text}");
    ran.says("The agent also worked at a command of its program");
    // It continues an earlier conversation.
    let summary = after_user("This session is being continued.", &session).replacen(
        "\"isSidechain\":false",
        "\"isSidechain\":false,\"isCompactSummary\":true",
        1,
    );
    let (ran, text) = drafted(&summary);
    assert!(text.contains(prompt), "{text}");
    ran.says("The session continues an earlier conversation");
    let (ran, _) = drafted(&session);
    assert!(!ran.err.contains("command of its program") && !ran.err.contains("earlier conversation"), "{}", ran.err);
    ran.says("failed before the work and passed after it");
    // The program notes a change of a file by the user or a formatter: after the edit, or only after the check that passed.
    let changed = |line: &str| {
        json!({"type": "attachment", "uuid": "x1", "parentUuid": line, "isSidechain": false,
        "sessionId": "made", "timestamp": "2026-11-23T10:00:30Z", "attachment": {"type": "edited_text_file",
        "filename": format!("{here}/calc.py"), "snippet": "1 def total(items): return 6"}})
    };
    let reminder = |line: &str| {
        let text = format!("<system-reminder>Note: {here}/calc.py was modified, either by the user or by a linter.");
        json!({"type": "user", "isMeta": true, "uuid": "x1", "parentUuid": line, "isSidechain": false, "sessionId": "made",
            "cwd": here, "timestamp": "2026-11-23T10:00:30Z", "message": {"role": "user", "content": text}})
    };
    for (number, line) in [(5, changed("l5")), (5, reminder("l5")), (7, changed("l7"))] {
        let behind = format!("\"parentUuid\":\"l{number}\"");
        let lines: Vec<String> = session
            .lines()
            .enumerate()
            .flat_map(|(place, written)| match place == number {
                true => vec![line.to_string(), written.replace(&behind, "\"parentUuid\":\"x1\"")],
                false => vec![written.to_owned()],
            })
            .collect();
        let (ran, _) = drafted(&lines.join("\n"));
        ran.says("NO GRADER IS KNOWN TO FAIL").says("`calc.py` was changed by the user or another program (event ");
    }
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_runner_that_ran_nothing_is_no_grader() {
    for (command, output) in [
        ("make test", "make: 'test' is up to date."),
        ("npm test", "> calc@1.0.0 test\n> jest --passWithNoTests\n\nNo tests found, exiting with code 0"),
        ("uv run pytest", "============ 3 skipped in 0.01s ============"),
        ("cargo nextest run", "     Summary [   0.001s] 0 tests run: 0 passed, 4 skipped"),
        (
            "cargo test total",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 4 filtered out",
        ),
        ("go test -run Total ./...", "ok  \tcalc\t0.001s [no tests to run]"),
        ("npx vitest run", " Test Files  1 skipped (1)\n      Tests  3 skipped (3)"),
        ("mvn test", "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS"),
    ] {
        let edit = ("edit", json!({"path": "calc.py"}), false, "ok");
        let (ran, text) =
            drafted(&[("bash", bash(command), true, "failed"), edit, ("bash", bash(command), false, output)]);
        assert!(!text.contains("run: "), "{command}: {text}");
        ran.says("NO GRADER").says("its last run ran no test");
    }
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_check_that_passed_before_or_came_to_no_result_is_not_known_to_fail() {
    let edit = || ("edit", json!({"path": "calc.py"}), false, "ok");
    let run = |failed: bool, output: &'static str| ("bash", bash("pytest"), failed, output);
    let none = "NO GRADER IS KNOWN TO FAIL";
    for first in [
        vec![run(true, "1 failed"), run(false, "1 passed")],
        vec![run(true, "Command timed out after 2m 0.0s")],
        vec![run(true, "[Request interrupted by user for tool use]")],
        vec![run(true, "/usr/bin/python: No module named pytest\n\nCommand exited with code 1")],
        vec![run(true, "x\n\nCommand exited with code 124")],
        // What is not in the check may have failed, and another shell may find other programs.
        vec![("bash", bash("pytest && cd -"), true, "1 passed\nsh: cd: OLDPWD not set")],
        vec![("bash", bash("cd out/build && cd ../.. && pytest"), true, "sh: cd: out/build: No such file")],
        vec![("bash", bash("bash -lc pytest"), true, "No module named 'numpy'\n1 error")],
    ] {
        let calls = [first.clone(), vec![edit(), run(false, "1 passed")]].concat();
        let (ran, text) = drafted(&calls);
        assert!(text.contains("run: pytest") && !text.contains("failed before the work"), "{first:?}: {text}");
        ran.says(none);
    }
    let module = "E   ModuleNotFoundError: No module named 'calc'\n1 error";
    let (ran, text) = drafted(&[run(true, module), edit(), run(false, "1 passed")]);
    assert!(!text.contains(none), "{text}");
    ran.says("`pytest` failed before the work and passed after it");
    let (_, text) = drafted(&[run(true, "1 failed"), edit(), run(false, "1 passed"), edit()]);
    assert!(text.contains("failed before the work and passed during it"), "{text}");
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_check_is_not_known_to_fail_if_the_changes_may_have_been_taken_back() {
    let edit = |old: &str, new: &str| {
        ("edit", json!({"path": "calc.py", "edits": [{"oldText": old, "newText": new}]}), false, "ok")
    };
    let shell = |command: &str| ("bash", bash(command), false, "");
    let run = |failed: bool, output: &'static str| ("bash", bash("pytest"), failed, output);
    let (one, back) = (edit("a + b", "a + b + 0"), edit("a + b + 0", "a + b"));
    let backup = shell("cp calc.py /tmp/calc.orig");
    for (between, is_known) in [
        (vec![one.clone(), back.clone()], false),
        (vec![one.clone(), edit("return a + b + 0\n", "return a + b\n")], false),
        (vec![one.clone(), edit("a + b + 0", "a"), edit("a", "a + b")], false),
        (vec![backup.clone(), one.clone(), shell("cp /tmp/calc.orig calc.py")], false),
        (vec![one.clone(), shell("git apply -R /tmp/x.patch")], false),
        (vec![one.clone(), shell("sed -i 's/ + 0//' calc.py")], false),
        (vec![one.clone(), shell("time bash -c 'git stash'")], false),
        (vec![one.clone(), shell("if true; then git stash; fi")], false),
        (vec![backup, one.clone()], false),
        (vec![one.clone(), back, edit("1", "2")], true),
        (vec![one, edit("1", "2"), shell("git diff && cat calc.py | head -5")], true),
    ] {
        let calls = [vec![run(true, "1 failed")], between.clone(), vec![run(false, "1 passed")]].concat();
        let (_, text) = drafted(&calls);
        assert!(text.contains("run: pytest"), "{between:?}: {text}");
        assert_eq!(!text.contains("NO GRADER IS KNOWN TO FAIL"), is_known, "{between:?}: {text}");
    }
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_check_is_known_to_fail_only_if_every_call_between_its_runs_is_known() {
    let edit = ("edit", json!({"path": "calc.py"}), false, "ok");
    let run = |failed: bool, output: &'static str| ("bash", bash("pytest"), failed, output);
    let shell = |command: &str| ("bash", bash(command), false, "");
    let drafted_with = |between: Vec<(&'static str, Value, bool, &'static str)>| {
        drafted(&[vec![run(true, "1 failed"), edit.clone()], between, vec![run(false, "1 passed")]].concat())
    };
    for (command, named) in [
        ("echo \"$(pip install foo)\"", "pip install foo"),
        ("bash <<< 'git stash'", "bash <<<git stash"),
        ("python3 -c 'print(1)'", "python3 -c print(1)"),
        ("ls && ./fix.sh", "./fix.sh"),
        ("npm run setup", "npm run setup"),
        ("curl -s https://x.example | sh", "curl -s https://x.example"),
        ("touch conftest.py", "touch conftest.py"),
        ("export PYTHONPATH=/opt", "export PYTHONPATH=/opt"),
        ("f() { git \"$@\"; }; f stash", "f() { git \"$@\"; }; f stash"),
        ("sh check_and_fix.sh", "sh check_and_fix.sh"),
        ("./scripts/update-tests.sh", "./scripts/update-tests.sh"),
        ("nox -s fmt", "nox -s fmt"),
        ("uniq - calc.py", "uniq - calc.py"),
        ("sed -n \"$p\" calc.py", "sed -n $p calc.py"),
    ] {
        let (ran, text) = drafted_with(vec![shell(command)]);
        assert!(text.contains("run: pytest") && text.contains("NO GRADER IS KNOWN TO FAIL"), "{command}: {text}");
        ran.says(&format!("but before it passed, `{named}` ran, which is not known to only read or check (event "));
    }
    let (ran, _) = drafted_with(vec![("mcp__db__reset", json!({}), false, "ok")]);
    ran.says("NO GRADER").says("the tool `mcp__db__reset` was called");
    let elsewhere = json!({"path": "/opt/calc/settings.py", "content": "x"});
    let (ran, _) = drafted_with(vec![("write", elsewhere, false, "ok")]);
    ran.says("NO GRADER").says("`/opt/calc/settings.py` was changed, which is outside the workspace");
    // What a build makes may be what the tests of another program need, but not those of its own.
    let (ran, _) = drafted_with(vec![shell("cargo build")]);
    ran.says("NO GRADER").says("`cargo build` ran, which may make what the check needs");
    let [failed, change, passed] = mended("cargo test", "calc.py");
    for build in ["cargo build", "dotnet build"] {
        let (_, text) =
            drafted(&[shell(build), failed.clone(), shell(build), change.clone(), shell(build), passed.clone()]);
        assert!(text.contains("run: cargo test"), "{build}: {text}");
        assert_eq!(text.contains("NO GRADER"), build != "cargo build", "{build}: {text}");
    }
    // What honest agents do.
    let between = [
        "ls -la && cat calc.py | head -20",
        "grep -rn total . 2>/dev/null; sed -n '1,$p' calc.py",
        "git status --short && git diff",
        "pytest -xvs test_calc.py 2>&1 | tail -5; echo \"exit: $?\"",
        "cargo check && npm run lint",
        "sh run-unit-tests.sh; nox -s tests",
    ];
    let read = ("read", json!({"path": "calc.py"}), false, CALC);
    let between = between.iter().map(|command| shell(command)).chain([read]).collect();
    let (ran, text) = drafted_with(between);
    assert!(!text.contains("NO GRADER"), "{text}");
    ran.says("`pytest` failed before the work and passed after it");
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_check_whose_settings_the_session_changed_is_told() {
    for (command, file) in [
        ("npm test", "package.json"),
        ("make test", "Makefile"),
        ("python3 -m pytest", "pytest.ini"),
        ("pytest -q", "conftest.py"),
        ("flake8", ".flake8"),
        ("php artisan test", "phpunit.xml"),
        ("hatch test", "hatch.toml"),
        ("coverage run -m unittest", ".coveragerc"),
        ("bazel test //...", "BUILD.bazel"),
    ] {
        let (ran, text) = drafted(&[
            ("bash", bash(command), true, "1 failed"),
            ("write", json!({"path": file, "content": "x"}), false, "ok"),
            ("bash", bash(command), false, "1 passed"),
        ]);
        assert!(text.contains("NO GRADER IS KNOWN TO FAIL"), "{text}");
        ran.says(&format!("The session changed {file}, which decides what `{command}` does"));
    }
    // What configures the check and nothing else is protected.
    let (project, _) = project();
    let mut history = History::new(&project, ".");
    history.commit("Settings", &[("pytest.ini", Some("[pytest]\n")), ("package.json", Some("{}\n"))]);
    let folder = project.path("").canonicalize().unwrap();
    let calls = [
        ("bash", bash("pytest"), true, "1 failed"),
        ("edit", json!({"path": "calc.py"}), false, "ok"),
        ("bash", bash("pytest"), false, "1 passed"),
    ];
    project.write("session.jsonl", &made("Fix it.", &calls, folder.to_str().unwrap()));
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let text = case(&project).1;
    assert!(text.contains("- pytest.ini\n") && !text.contains("- package.json"), "{text}");
}

#[test]
fn each_check_of_a_line_stays_in_its_folder() {
    let both = "cd HERE/a && python3 -m unittest && cd HERE/b && python3 -m unittest";
    let (project, _) = project();
    let folder = project.path("").canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let drafted = |run: Value, more: Option<Value>| {
        let mut calls = vec![("bash", run.clone(), true, "1 failed")];
        calls.push(("edit", json!({"path": "a/calc.py"}), false, "ok"));
        calls.extend(more.map(|input| ("bash", input, false, "")));
        calls.push(("bash", run, false, "1 passed"));
        project.write("session.jsonl", &made("Fix it.", &calls, folder));
        let ran = project.evals(&["case", "from-session", "session.jsonl", "--force"]).exits(0);
        (ran, case(&project).1)
    };
    let (ran, text) = drafted(bash(&both.replace("HERE", folder)), None);
    assert!(text.contains("run: (cd a && python3 -m unittest) && (cd b && python3 -m unittest)\n"), "{text}");
    assert!(!ran.err.contains("NO GRADER"), "{}", ran.err);
    // The folder of the call is the one of the shell within it.
    let within = |command: &str| json!({"command": command, "workdir": format!("{folder}/a")});
    let (ran, text) = drafted(within("bash -lc 'python3 -m unittest'"), None);
    assert!(text.contains("run: cd a && python3 -m unittest\n") && !ran.err.contains("NO GRADER"), "{text}");
    for more in ["bash -lc 'pip install x'", "bash -lc 'git stash'"] {
        let (ran, _) = drafted(bash("python3 -m unittest"), Some(within(more)));
        ran.says("NO GRADER");
    }
    let (ran, text) = drafted(bash("docker compose exec web pytest"), None);
    assert!(!text.contains("run: "), "{text}");
    ran.says("`docker compose exec web pytest` is not used as a grader: it looks like a check of a program that evals does not know.");
}

#[test]
fn without_a_folder_no_file_is_said_to_be_elsewhere() {
    let project = Project::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/sessions/gemini/full.jsonl");
    let ran = project.evals(&["case", "from-session", file.to_str().unwrap()]).exits(0);
    let (_, text) = case(&project);
    assert!(text.contains("- calc.py\n") && !text.contains("Files outside the workspace"), "{text}");
    assert!(!ran.err.contains("/calc.py"), "{}", ran.err);
    let calls = [("write", json!({"path": "/w/NOTES.md", "content": "x"}), false, "ok")];
    project.write("session.jsonl", &made("Fix it.", &calls, "/w").replace(",\"cwd\":\"/w\"", ""));
    let ran = project.evals(&["case", "from-session", "session.jsonl", "-o", "other"]).exits(0);
    ran.says("so these changed files may be in the workspace: /w/NOTES.md.");
}

#[test]
fn quotation_marks_of_opencode_are_told() {
    let (project, commit) = project();
    session(&project, &commit, "opencode/resumed.json");
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0).says("`opencode run` puts quotation marks");
}

#[test]
fn a_command_of_which_a_part_is_masked_is_no_grader() {
    let (project, _) = project();
    let folder = project.path("").canonicalize().unwrap();
    let command = "pytest tests/ada@example.org.py";
    let calls = [
        ("bash", bash(command), true, "1 failed"),
        ("write", json!({"path": "calc.py", "content": "x"}), false, "ok"),
        ("bash", bash(command), false, "1 passed"),
    ];
    project.write("session.jsonl", &made("Fix it.", &calls, folder.to_str().unwrap()));
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    assert!(case(&project).1.contains("run: pytest tests/ada@example.org.py"));
    let ran = project.evals(&["case", "from-session", "session.jsonl", "--redact", "--force"]).exits(0);
    assert!(!case(&project).1.contains("run: "));
    ran.says("NO GRADER").says("a secret in it was redacted");
}

#[test]
fn a_result_that_the_session_contradicts_is_no_grader() {
    let (project, commit) = project();
    session(&project, &commit, "codex/resumed.jsonl");
    let event = json!({"timestamp": "2026-11-23T19:17:13.300Z", "type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "call_scripted_3_0", "exit_code": 1}});
    let text = project.read("session.jsonl");
    project.write("session.jsonl", &format!("{text}{event}\n"));
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (_, text) = case(&project);
    assert!(!text.contains("run: "), "{text}");
    ran.says("NO GRADER").says("the session does not show its exit code").says("and another line that it failed");
}

#[test]
fn signs_of_a_glob_in_the_path_of_a_changed_file_are_escaped() {
    let write = |path: &str| ("write", json!({"path": path, "content": "…"}), false, "ok");
    let (_, text) = drafted(&[write("NOTES!.md"), write("app/[id].ts")]);
    assert!(text.contains(r"NOTES\!.md") && text.contains(r"app/\[id\].ts"), "{text}");
}

#[test]
fn results_without_an_outcome_are_no_graders() {
    let (project, commit) = project();
    session(&project, &commit, "pi/resumed.jsonl");
    let text = project.read("session.jsonl").replace("\"isError\":false,", "").replace(",\"isError\":false", "");
    project.write("session.jsonl", &text);
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    assert!(!case(&project).1.contains("run: "));
    ran.says("NO GRADER");
}

#[test]
fn nothing_that_names_a_person_or_a_password_is_written_or_printed() {
    let (mut project, _) = project();
    project.env("HOME", "/srv/people/ada");
    let folder = project.path("").canonicalize().unwrap();
    let prompt = "See /home/ada/.claude/projects/-home-ada-projects-x/1.jsonl and -srv-people-ada-x; curl -u ada:hunter2pw \
                  https://ada:hunter2pw@host/x -H 'Authorization: Basic aHVudGVyMnB3'; curl --user ada:hunter2pw x";
    let calls = [
        ("bash", bash("cd /home/ada/projects/-home-ada-y && pytest"), false, "1 passed"),
        ("bash", bash("pytest --user ada:hunter2pw"), false, "1 passed"),
        ("write", json!({"path": "/home/ada/notes.md", "content": "x"}), false, "ok"),
    ];
    project.write("session.jsonl", &made(prompt, &calls, folder.to_str().unwrap()));
    let is_clean = |text: &str| {
        ["hunter2pw", "aHVudGVyMnB3", "home-ada", "/home/ada", "people-ada", "people/ada"]
            .iter()
            .all(|it| !text.contains(it))
    };
    let ran = project.evals(&["case", "from-session", "session.jsonl", "--redact"]).exits(0);
    let (name, text) = case(&project);
    assert!(is_clean(&text) && is_clean(&ran.err) && is_clean(&ran.out), "{text}\n{}\n{}", ran.out, ran.err);
    assert!(is_clean(&project.read(&format!("cases/sessions/{name}.snapshots/pi.snap"))));
    // Errors, too; and passwords without --redact.
    for args in [&["--repo", "/home/ada/none"][..], &["--repo", "/srv/people/ada"], &["--branch", "/home/ada"]] {
        let args = [&["case", "from-session", "session.jsonl", "--redact", "--force"], args].concat();
        let ran = project.evals(&args).exits(2);
        assert!(is_clean(&ran.err) && !ran.err.is_empty(), "{}", ran.err);
    }
    fs::remove_dir_all(project.path("cases")).unwrap();
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (_, text) = case(&project);
    assert!(!text.contains("hunter2pw") && text.contains("-home-ada"), "{text}");
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_draft_of_opencode_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("opencode/resumed.json", "opencode-stream", true);
}

#[test]
fn a_state_that_is_not_found_is_left_to_a_person() {
    let (project, _) = project();
    project.write(
        "session.jsonl",
        &made("Fix it.", &[("edit", json!({"path": "calc.py"}), false, "ok")], "/no/such/folder"),
    );
    project
        .evals(&["case", "from-session", "session.jsonl"])
        .exits(0)
        .says("TODO: the state before the session is unknown")
        .says("/no/such/folder is not a git repository");
    let (_, text) = case(&project);
    assert!(text.contains("copy: TODO-state-before-the-session"), "{text}");
    project.evals(&["check", "cases/sessions"]).exits(2).says("TODO-state-before-the-session");
    project.evals(&["run", "cases/sessions", "--harness", "demo"]).exits(2).says("TODO-state-before-the-session");
    // The user knows the repository; its path is a guess no more, the commit still is.
    project.evals(&["case", "from-session", "session.jsonl", "--repo", ".", "--force"]).exits(0).says("a GUESS");
    project.evals(&["check", "cases/sessions"]).exits(0);
    project.evals(&["case", "from-session", "session.jsonl", "--repo", "cases", "--force"]).exits(0);
    project
        .evals(&["case", "from-session", "session.jsonl", "--repo", "/", "--force"])
        .exits(2)
        .says("not a git repository");
}

#[test]
fn a_commit_or_branch_that_is_not_there_is_no_guess() {
    let (project, commit) = project();
    session(&project, &"0123456789".repeat(4), "codex/resumed.jsonl");
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0).says("which is not in").says("TODO");
    let (project2, _) = self::project();
    session(&project2, "", "claude-code/resumed.jsonl");
    let text = project2.read("session.jsonl").replace("\"gitBranch\":\"main\"", "\"gitBranch\":\"gone\"");
    project2.write("session.jsonl", &text);
    project2
        .evals(&["case", "from-session", "session.jsonl"])
        .exits(0)
        .says("the branch gone of the session is not in the repository");
    // A commit that is newer than the session is not its state before.
    let newer = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.example"]).args(args).current_dir(project.path(""));
        command.env("GIT_AUTHOR_DATE", "2027-01-01T00:00:00Z").env("GIT_COMMITTER_DATE", "2027-01-01T00:00:00Z");
        assert!(command.output().unwrap().status.success());
    };
    project.write("calc.py", "def total(items):\n    return sum(items)\n");
    newer(&["commit", "-qam", "later"]);
    session(&project, "", "claude-code/resumed.jsonl");
    project
        .evals(&["case", "from-session", "session.jsonl", "-o", "cases/other"])
        .exits(0)
        .says(&format!("a GUESS: the commit {commit}"));
}

#[test]
fn secrets_are_masked_always_and_persons_with_redact() {
    let (mut project, _) = project();
    project.env("MY_PASSWORD", "hunter2-hunter2");
    let folder = project.path("").canonicalize().unwrap();
    let folder = folder.to_str().unwrap();
    let prompt = format!(
        "Fix {folder}/calc.py in {folder} for ada@example.org, see /home/ada/notes; key ghp_abcdefghijklmnopqrstuvwxyz012345, hunter2-hunter2."
    );
    let calls = [
        ("bash", bash("pytest --mail ada@example.org"), true, "1 failed"),
        ("write", json!({"path": "ada@example.org.txt", "content": "hunter2-hunter2 /home/ada"}), false, "ok"),
        ("bash", bash("pytest --mail ada@example.org"), false, "1 passed"),
    ];
    project.write("session.jsonl", &made(&prompt, &calls, folder));
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (name, text) = case(&project);
    assert!(text.contains("Fix calc.py in . for ada@example.org, see /home/ada/notes"), "{text}");
    let all = |name: &str| {
        project.read(&format!("cases/sessions/{name}.yaml"))
            + &project.read(&format!("cases/sessions/{name}.snapshots/pi.snap"))
    };
    for secret in ["ghp_", "hunter2"] {
        assert!(!all(&name).contains(secret), "{}", all(&name));
    }
    fs::remove_dir_all(project.path("cases")).unwrap();
    let ran = project.evals(&["case", "from-session", "session.jsonl", "--redact"]).exits(0);
    let (name, _) = case(&project);
    for person in ["ada@", "/home/ada", "hunter2", "ghp_"] {
        assert!(
            !all(&name).contains(person) && !ran.err.contains(person) && !ran.out.contains(person),
            "{person}\n{}\n{}",
            all(&name),
            ran.err
        );
    }
    project.evals(&["check", "cases/sessions"]).exits(0);
}

#[test]
fn known_users_and_their_home_folders_are_masked_with_redact() {
    let (mut project, _) = project();
    project.env("USERPROFILE", r"D:\Profiles\Grace Hopper");
    project.env("USER", "hopper");
    let prompt = r#"Open /Users/Ada Lovelace/proj/a.txt and /mnt/c/Users/Ada Lovelace/b for Ada Lovelace, D:\Profiles\Grace Hopper\c, tar lists home/ada/t, "mail": "ada\u0040example.org", ask hopper; scp host:/Users/Ada Lovelace/y ."#;
    project.write("session.jsonl", &made(prompt, &[], "/Users/Ada Lovelace/proj"));
    let ran = project.evals(&["case", "from-session", "session.jsonl", "--redact"]).exits(0);
    let (name, text) = case(&project);
    for person in ["Lovelace", "Hopper", "hopper", "home/ada", "u0040"] {
        let is_shown = [&name, &text, &ran.out, &ran.err].iter().any(|shown| shown.contains(person));
        assert!(!is_shown, "{person}: {name}\n{text}\n{}\n{}", ran.out, ran.err);
    }
    assert!(text.contains("Open a.txt and /mnt/c~/b for [redacted:user]"), "{text}");
    assert!(text.contains("scp host:~/y"), "{text}");
}

#[test]
fn a_session_without_a_prompt_is_refused() {
    let (project, _) = project();
    project.write("session.jsonl", &made("", &[], "/w"));
    project.evals(&["case", "from-session", "session.jsonl"]).exits(2).says("shows no message of the user");
    project.write("other.txt", "hello\n");
    project.evals(&["case", "from-session", "other.txt"]).exits(2).says("the format of other.txt is unknown");
    assert!(!project.path("cases").exists());
}

#[test]
fn a_trace_and_a_wire_log_make_drafts_too() {
    let (project, commit) = project();
    session(&project, &commit, "codex/resumed.jsonl");
    project.evals(&["import", "session.jsonl", "--harness", "codex", "-o", "trace.jsonl"]).exits(0);
    project.evals(&["case", "from-session", "trace.jsonl"]).exits(0).says("which the session names");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/codex-acp/full.wire.jsonl");
    // The wire log holds no time of the day, so the state is left open.
    project
        .evals(&["case", "from-session", recording.to_str().unwrap(), "--repo", ".", "-o", "cases/other"])
        .exits(0)
        .says("neither its commit nor its time");
}

#[test]
fn times_that_go_back_give_no_limit_of_the_time() {
    let trace = |ends: u64| {
        let header = json!({
            "type": "trace", "version": 1, "harness": "x", "adapter": "acp", "model": {},
            "capabilities": {"tracing": true, "interaction": true}
        });
        let asked = json!({"seq": 0, "at_ms": 62_000, "type": "message", "role": "user", "text": "Fix it."});
        let said = json!({"seq": 1, "at_ms": 200_000, "type": "message", "role": "agent", "text": "Done."});
        let stop = json!({"seq": 2, "at_ms": ends, "type": "stop", "reason": "end_turn", "output": "Done."});
        format!("{header}\n{asked}\n{said}\n{stop}\n")
    };
    for (ends, has_limit) in [(200_000, true), (199_999, false), (10, false)] {
        let project = Project::new();
        project.write("trace.jsonl", &trace(ends));
        project.evals(&["case", "from-session", "trace.jsonl"]).exits(0);
        let (_, text) = case(&project);
        assert_eq!(text.contains("limits:\n  time: 276s\n"), has_limit, "{ends}: {text}");
        assert_eq!(text.contains("time:"), has_limit, "{ends}: {text}");
    }
}

/// Every command of docs/sessions.md, in its order, in a project as the page describes it.
#[test]
#[ignore = "slow: writes many cases"]
fn the_commands_of_the_page_work() {
    let (project, commit) = project();
    let folder = project.path("").canonicalize().unwrap();
    let recorded = |name: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/sessions").join(name);
        let text = fs::read_to_string(file).unwrap().replace("/work/calc", folder.to_str().unwrap());
        text.replace(RECORDED, &commit)
    };
    let put = |path: &str, name: &str| {
        let path = project.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, recorded(name)).unwrap();
    };
    put(".claude/projects/-work-calc/6708d21d-0b2d-4e40-8364-62ab2918f576.jsonl", "claude-code/resumed.jsonl");
    put(".codex/sessions/2026/11/23/rollout-2026-11-23T19-17-12.jsonl", "codex/resumed.jsonl");
    put(".pi/agent/sessions/--work-calc--/2026-11-23.jsonl", "pi/branched.jsonl");
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sessions.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).map(|block| block.split("\n```").next().unwrap());
    let lines: Vec<&str> = blocks.flat_map(str::lines).filter(|line| line.starts_with("evals ")).collect();
    assert!(lines.len() >= 7, "{lines:?}");
    let program = Path::new(env!("CARGO_BIN_EXE_evals")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for line in lines {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(project.path("")).env_clear();
        command.env("PATH", &path).env("HOME", project.home()).env("TMPDIR", project.temporary());
        let done = command.output().unwrap();
        let text = String::from_utf8_lossy(&done.stderr);
        // The audit of a draft without a reference solution cannot decide everything.
        let expected: &[i32] = if line.contains("--audit") { &[0, 3] } else { &[0] };
        assert!(expected.contains(&done.status.code().unwrap()), "{line}: {}\n{text}", done.status);
    }
}

/// A failing check, an edit of a file, and the check again.
fn mended<'a>(command: &str, file: &str) -> [(&'a str, Value, bool, &'a str); 3] {
    [
        ("bash", bash(command), true, "1 failed"),
        ("edit", json!({"path": file}), false, "ok"),
        ("bash", bash(command), false, "1 passed in 0.01s"),
    ]
}

#[test]
#[ignore = "slow: writes many cases"]
fn the_folder_of_the_session_is_found_in_another_clone_of_its_repository() {
    let project = Project::new();
    let files = [("web/calc.py", Some(CALC)), ("web/test_calc.py", Some(TEST)), ("README.md", Some("x\n"))];
    History::new(&project, "clone").commit("A total", &files);
    let here = project.path("").canonicalize().unwrap();
    let guess = "A GUESS: the session ran in";
    for (folder, file, repo, subdir, remark) in [
        ("/home/ada/mono/web", "calc.py", "clone", Some("web"), ""),
        ("/home/ada/checkout", "calc.py", "clone/web", Some("web"), ""),
        ("/home/ada/clone", "README.md", "clone/web", None, ""),
        ("/home/ada/clone", "calc.py", "clone/web", Some("web"), ""),
        ("/home/ada/clone", "more.py", "clone/web", Some("web"), ""),
        ("/home/ada/other", "more.py", "clone/web", Some("web"), ""),
        ("/home/ada/other", "README.md", "clone", None, ""),
        ("/home/ada/other", "more.py", "clone", None, guess),
        ("/home/ada/web", "more.py", "clone", Some("web"), guess),
        (here.to_str().unwrap(), "clone/web/calc.py", "clone", None, "above the repository"),
    ] {
        let name = format!("{folder} {file} {repo}");
        project.write("session.jsonl", &made("Fix it.", &mended("pytest", file), folder));
        let args = ["case", "from-session", "session.jsonl", "--force", "--no-snapshot", "--repo", repo];
        let ran = project.evals(&args).exits(0);
        let (_, text) = case(&project);
        assert_eq!(text.contains("subdir: web"), subdir.is_some(), "{name}: {text}");
        assert_eq!(text.contains("- test_calc.py"), subdir.is_some(), "{name}: {text}");
        assert_eq!(ran.err.contains("A GUESS: the session"), remark == guess, "{name}: {}", ran.err);
        assert_eq!(text.contains("TODO-state"), remark.starts_with("above"), "{name}: {text}");
        ran.says(remark);
    }
}

#[test]
fn a_commit_that_was_merged_after_the_session_began_is_not_its_state() {
    let project = Project::new();
    let base = History::new(&project, ".").commit("A total", &[("calc.py", Some(CALC))]);
    let git = |date: &str, args: &[&str]| {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.example"]).args(args).current_dir(project.path(""));
        command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
        assert!(command.output().unwrap().status.success(), "{args:?}");
    };
    let (before, after) = ("2026-11-22T10:00:00Z", "2026-11-24T10:00:00Z");
    git(before, &["checkout", "-qb", "feature"]);
    project.write("feature.py", "");
    git(before, &["add", "feature.py"]);
    git(before, &["commit", "-qm", "feature"]);
    git(after, &["checkout", "-q", "main"]);
    git(after, &["merge", "-q", "--no-ff", "-m", "merge", "feature"]);
    let folder = project.path("").canonicalize().unwrap();
    project.write("session.jsonl", &made("Fix it.", &mended("pytest", "calc.py"), folder.to_str().unwrap()));
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    ran.says(&format!("a GUESS: the commit {base}")).says("1 merge came after it");
}

#[test]
fn a_check_that_is_known_to_fail_is_never_left_out() {
    let [failed, edit, passed] = mended("sh check.sh", "calc.py");
    let others = ["cargo check", "cargo check --all-targets", "pytest", "pytest -q", "cargo clippy"];
    let more = ["cargo clippy --all-targets", "cargo test", "cargo test --lib", "npm test", "npm test -- --ci"];
    let others = others.iter().chain(&more).map(|command| ("bash", bash(command), false, "1 passed in 0.1s"));
    let (ran, text) = drafted(&[failed, edit].into_iter().chain(others).chain([passed]).collect::<Vec<_>>());
    assert!(text.contains("run: sh check.sh") && text.matches("run: ").count() == 5, "{text}");
    assert!(!ran.err.contains("NO GRADER"), "{}", ran.err);
}

#[test]
fn tests_with_special_or_masked_paths_and_many_tests_are_protected_or_told() {
    let (mut project, _) = project();
    let many: Vec<String> = (0..201).map(|number| format!("tests/test_{number}.py")).collect();
    let files: Vec<(&str, Option<&str>)> = many.iter().map(|path| (path.as_str(), Some(TEST))).collect();
    let folder = project.path("").canonicalize().unwrap();
    project.write("session.jsonl", &made("Fix it.", &mended("pytest", "calc.py"), folder.to_str().unwrap()));
    let mut history = History::new(&project, ".");
    history.commit("Special", &[("app/[id]/test_x.py", Some(TEST)), ("ada/test_y.py", Some(TEST))]);
    project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    let (_, text) = case(&project);
    assert!(text.contains(r"app/\[id\]/test_x.py") && text.contains("- ada/test_y.py"), "{text}");
    project.evals(&["check", "cases/sessions"]).exits(0);
    history.commit("Many", &files);
    project.evals(&["case", "from-session", "session.jsonl", "--force"]).exits(0);
    let (_, text) = case(&project);
    assert!(text.contains("tests/**") && text.contains("- test_calc.py"), "{text}");
    project.env("USER", "ada");
    let ran = project.evals(&["case", "from-session", "session.jsonl", "--force", "--redact"]).exits(0);
    ran.says("1 glob of `workspace.protect` is left out");
}

#[test]
fn the_shell_of_a_grader_reads_its_command_as_the_one_of_the_session_did() {
    for (command, why) in [
        // `sh` runs the check in the background.
        ("pytest &> /dev/null", "shells read it in different ways"),
        (r"echo $'it\'s' && pytest", "shells read it in different ways"),
        (r"echo $'it\'s' && pytest -k 'a'", "shells read it in different ways"),
        ("bash <<E\npytest\nE", "with `<<`"),
    ] {
        let (ran, text) = drafted(&mended(command, "calc.py"));
        assert!(!text.contains("run: "), "{command}: {text}");
        ran.says("is not used as a grader").says(why);
    }
}

#[test]
fn an_output_that_does_not_show_how_many_tests_ran_is_told() {
    let told = "does not show how many tests ran";
    let run = |output: &'static str| {
        let [failed, edit, (tool, input, is_error, _)] = mended("deno test", "calc.py");
        drafted(&[failed, edit, (tool, input, is_error, output)])
    };
    run("all is well").0.says(told);
    assert!(!run("ok | 1 passed | 0 failed (4ms)").0.err.contains(told));
    run("ok | 0 passed | 0 failed | 3 filtered out (4ms)").0.says("its last run ran no test");
}

#[test]
#[ignore = "slow: writes many cases"]
fn a_failure_under_other_conditions_or_without_a_result_is_not_one_of_the_work() {
    let none = "NO GRADER IS KNOWN TO FAIL";
    let edit = ("edit", json!({"path": "calc.py"}), false, "ok");
    let with = |key: &str, value: Value| {
        let mut input = bash("pytest");
        input[key] = value;
        input
    };
    for (key, value) in [
        ("sandbox_permissions", json!("require_escalated")),
        ("dangerouslyDisableSandbox", json!(true)),
        ("shell", json!("/bin/zsh")),
        ("login", json!(false)),
    ] {
        let passed = ("bash", with(key, value), false, "1 passed");
        let (ran, _) = drafted(&[("bash", bash("pytest"), true, "1 failed"), edit.clone(), passed]);
        ran.says(none).says(&format!("`pytest` failed earlier, but before it passed, it was run with another `{key}`"));
    }
    let passed = ("bash", with("description", json!("Runs the tests")), false, "1 passed");
    let failed = ("bash", with("timeout", json!(60)), true, "1 failed");
    let (ran, _) = drafted(&[failed, edit.clone(), passed]);
    ran.says("`pytest` failed before the work and passed after it");
    for (command, output, shown) in [
        ("pytest", "pytest: x\n\nCommand exited with code 4", "exit code 4"),
        ("pytest", "INTERNALERROR> OSError\n\nCommand exited with code 3", "exit code 3"),
        ("cargo test", "error: linker `cc` not found", "error: linker 'cc' not found"),
        ("cargo test", "error: failed to get x\n\nCould not resolve host: x", "Could not resolve host: x"),
        ("npm test", "npm error Missing script: \"test\"", "npm error Missing script: \"test\""),
        ("make test", "make: *** No rule to make target 'test'.  Stop.", "make: *** No rule"),
        ("go test ./...", "go: go.mod file not found in current directory", "go: go.mod file not found"),
    ] {
        let calls = [("bash", bash(command), true, output), edit.clone(), ("bash", bash(command), false, "1 passed")];
        let (ran, _) = drafted(&calls);
        ran.says(none).says(&format!("a run failed without a result of the check, as `{shown}"));
    }
    // A test that failed is a result, whatever it says.
    let output = "OSError: Could not resolve host\nRan 1 test in 0.1s\n\nFAILED (errors=1)";
    let [_, _, passed] = mended("python3 -m unittest", "calc.py");
    let (ran, _) = drafted(&[("bash", bash("python3 -m unittest"), true, output), edit, passed]);
    ran.says("failed before the work and passed after it");
    // A text that is replaced by itself is no change.
    let same = json!({"path": "calc.py", "edits": [{"oldText": "a", "newText": "a"}]});
    let [failed, _, passed] = mended("pytest", "calc.py");
    drafted(&[failed, ("edit", same, false, "ok"), passed]).0.says(none);
}

/// Writes lines of Claude Code's form as a session: each continues the line before it.
fn chained(lines: &[Value]) -> String {
    let mut parent = Value::Null;
    let mut text = String::new();
    for line in lines {
        let mut line = line.clone();
        let own = line["uuid"].clone();
        line["parentUuid"] = std::mem::replace(&mut parent, own);
        text.push_str(&format!("{line}\n"));
    }
    text
}

#[test]
fn a_check_of_codex_that_passed_in_another_sandbox_is_not_known_to_fail() {
    let (project, commit) = project();
    session(&project, &commit, "codex/resumed.jsonl");
    let text = project.read("session.jsonl");
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_run = |line: &Value| line["payload"]["type"] == "function_call" && line.to_string().contains("unittest");
    let second = lines.iter().enumerate().filter(|(_, line)| is_run(line)).nth(1).unwrap().0;
    let mut context = lines.iter().find(|line| line["type"] == "turn_context").unwrap().clone();
    context["timestamp"] = lines[second]["timestamp"].clone();
    lines.insert(second, context);
    for (policy, known) in [("danger-full-access", true), ("read-only", false)] {
        lines[second]["payload"]["sandbox_policy"]["type"] = json!(policy);
        for (number, line) in lines.iter_mut().enumerate().filter(|(_, line)| line["ordinal"].is_u64()) {
            line["ordinal"] = json!(number);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        project.write("session.jsonl", &text);
        let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
        fs::remove_dir_all(project.path("cases")).unwrap();
        match known {
            true => ran.says("failed before the work and passed"),
            false => ran.says("it came to run in another sandbox of the agent, or outside it"),
        };
    }
}

/// A part of the draft's comments, and a change of the session that leads to it.
type Change<'a> = (&'a str, fn(&mut Vec<Value>));

#[test]
#[ignore = "slow: writes many cases"]
fn changes_by_others_and_calls_without_an_order_are_not_the_work() {
    let (project, _) = project();
    let here = project.path("").canonicalize().unwrap().to_str().unwrap().to_owned();
    let file = format!("{here}/calc.py");
    let (read, edited) = (json!({"file_path": file}), json!({"file_path": file, "old_string": "a", "new_string": "b"}));
    let calls = [
        (here.as_str(), "Read", read.clone(), false, "1\ta"),
        (here.as_str(), "Bash", bash("python3 -m unittest"), true, "Exit code 1\nFAILED"),
        (here.as_str(), "Edit", edited, false, "ok"),
        (here.as_str(), "Read", read, false, "1\tb"),
        (here.as_str(), "Bash", bash("python3 -m unittest"), false, "OK"),
    ];
    let whole = |text: &str| {
        let file = json!({"filePath": file, "content": text, "startLine": 1, "numLines": 1, "totalLines": 1});
        json!({"type": "text", "file": file})
    };
    let mut lines: Vec<Value> =
        of_claude(&calls, &here).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines[2]["toolUseResult"] = whole("a\n");
    lines[6]["toolUseResult"] = json!({"filePath": file, "oldString": "a", "newString": "b", "originalFile": "a\n",
        "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}],
        "userModified": false, "replaceAll": false});
    lines[8]["toolUseResult"] = whole("b\n");
    let drafted = |lines: &[Value]| {
        project.write("session.jsonl", &chained(lines));
        let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
        fs::remove_dir_all(project.path("cases")).unwrap();
        ran
    };
    let known = "failed before the work and passed after it";
    drafted(&lines).says(known);
    let by_others = "`calc.py` was changed by the user or another program (event ";
    let changed: [Change<'_>; 9] = [
        (by_others, |lines| lines[8]["toolUseResult"]["file"]["content"] = json!("c\n")),
        (by_others, |lines| lines[6]["toolUseResult"]["originalFile"] = json!("a\n# of another\n")),
        (by_others, |lines| lines[6]["toolUseResult"]["userModified"] = json!(true)),
        (by_others, |lines| {
            let text = "File has been modified since read, either by the user or by a linter. Read it again.";
            lines[6]["toolUseResult"] = json!(format!("Error: {text}"));
            lines[6]["message"]["content"][0]["is_error"] = json!(true);
            lines[6]["message"]["content"][0]["content"] = json!(text);
        }),
        ("the repository was switched to the branch `other`", |lines| {
            lines.iter_mut().skip(9).for_each(|line| line["gitBranch"] = json!("other"));
        }),
        ("it came to run in another sandbox of the agent, or outside it", |lines| {
            lines[4]["sandboxed"] = json!(true);
            lines[10]["sandboxed"] = json!(false);
        }),
        ("it came to run in another sandbox of the agent, or outside it", |lines| {
            let enters = format!("cd {} && python3 -m unittest", lines[3]["cwd"].as_str().unwrap());
            lines[3]["message"]["content"][0]["input"]["command"] = json!(enters);
            lines[4]["sandboxed"] = json!(true);
            lines[10]["sandboxed"] = json!(false);
        }),
        // A text replaced by itself.
        ("no change of a file is known to have remained", |lines| {
            lines[5]["message"]["content"][0]["input"]["new_string"] = json!("a");
            let result = &mut lines[6]["toolUseResult"];
            (result["newString"], result["structuredPatch"]) = (json!("a"), json!([]));
            lines[8]["toolUseResult"]["file"]["content"] = json!("a\n");
        }),
        // The check and the edit in parallel.
        ("`calc.py` was changed while the failing run went on", |lines| {
            let result = lines.remove(4);
            lines.insert(6, result);
        }),
    ];
    for (named, change) in changed {
        let mut lines = lines.clone();
        change(&mut lines);
        drafted(&lines).says("NO GRADER IS KNOWN TO FAIL").says(named);
    }
    // Another command ran outside the sandbox, the shell was in another repository, and the edit kept the quotes of the file.
    let honest: [fn(&mut Vec<Value>); 3] = [
        |lines| {
            let call = &mut lines[1]["message"]["content"][0];
            (call["name"], call["input"]) = (json!("Bash"), json!({"command": "ls"}));
            lines[2]["toolUseResult"] = json!({"stdout": "calc.py", "stderr": ""});
            for (number, is_sandboxed) in [(2, false), (4, true), (10, true)] {
                lines[number]["sandboxed"] = json!(is_sandboxed);
            }
        },
        |lines| {
            for line in &mut lines[6..8] {
                line["cwd"] = json!(format!("{}/vendored", line["cwd"].as_str().unwrap()));
                line["gitBranch"] = json!("HEAD");
            }
        },
        |lines| {
            let result = &mut lines[6]["toolUseResult"];
            (result["oldString"], result["newString"]) = (json!("\u{2019}a\u{2019}"), json!("'b'"));
            result["structuredPatch"][0]["lines"] = json!(["-\u{2019}a\u{2019}", "+\u{2019}b\u{2019}"]);
            result["originalFile"] = json!("\u{2019}a\u{2019}\n");
            lines[2]["toolUseResult"]["file"]["content"] = json!("\u{2019}a\u{2019}\n");
            lines[8]["toolUseResult"]["file"]["content"] = json!("\u{2019}b\u{2019}\n");
        },
    ];
    for change in honest {
        let mut lines = lines.clone();
        change(&mut lines);
        drafted(&lines).says(known);
    }
    // After the check passed, a command of the agent may have changed the file: that says nothing about the time before.
    let mut later = lines.clone();
    let formatted = [(here.as_str(), "Bash", bash("black ."), false, "")];
    let formatted = of_claude(&formatted, &here);
    for (line, id) in formatted.lines().skip(1).take(2).zip(["f1", "f2"]) {
        let mut line: Value =
            serde_json::from_str(&line.replace("\"c0\"", "\"f0\"").replace("\"m0\"", "\"f\"")).unwrap();
        line["uuid"] = json!(id);
        later.insert(later.len() - 1, line);
    }
    for (number, id) in [(7, "g1"), (8, "g2")] {
        let line = lines[number].to_string().replace("\"c3\"", "\"g0\"").replace("\"m3\"", "\"g\"");
        let mut line: Value = serde_json::from_str(&line).unwrap();
        line["uuid"] = json!(id);
        if number == 8 {
            line["toolUseResult"] = whole("formatted\n");
        }
        later.insert(later.len() - 1, line);
    }
    drafted(&later).says(known);
    // What the user did between two prompts is unknown.
    let mut asked = lines.clone();
    let mut prompt = lines[0].clone();
    (prompt["uuid"], prompt["message"]["content"]) = (json!("u1"), json!("I installed it, go on."));
    asked.insert(9, prompt);
    drafted(&asked).says(known).says("the user wrote something (event ");
}

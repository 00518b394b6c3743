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
fn a_draft_of_claude_code_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("claude-code/resumed.jsonl", "claude-code-stream", true);
}

#[test]
fn a_draft_of_codex_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("codex/resumed.jsonl", "codex", false);
}

#[test]
fn a_draft_of_pi_passes_for_its_work_and_fails_for_nothing() {
    passes_for_its_work("pi/resumed.jsonl", "pi", true);
}

fn passes_for_its_work(file: &str, harness: &str, has_snapshot: bool) {
    let (project, commit) = project();
    session(&project, &commit, file);
    let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
    assert!(!ran.err.contains("NO GRADER"), "{}", ran.err);
    ran.says("is a draft").says("failed before the work and passed after it");
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
        "- Describe the change in NOTES.md.",
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
        ("pytest | tail -3", "not known to have passed"),
        ("pytest; true", "not known to have passed"),
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
    ran.says("`npm run build` is no grader: an earlier command changed the folder of the shell");
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

/// Every command of docs/sessions.md, in its order, in a project as the page describes it.
#[test]
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

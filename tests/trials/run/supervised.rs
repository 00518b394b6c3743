//! Processes of a trial end with it, before it is graded; and a trial cannot access the engine's and the user's data.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::project::{Project, Ran, bubblewrap, not_run, of_type, wait_for};

/// Returns the sandboxes that work here.
pub fn sandboxes() -> &'static [&'static str] {
    if bubblewrap() { &["none", "bwrap"] } else { &["none"] }
}

/// Returns a script of the demo agent that runs one line.
pub fn runs(line: &str) -> String {
    format!("steps:\n  - run:\n      command: |\n        {line}\n  - say: done\n")
}

pub fn output(project: &Project, trial: &str) -> String {
    of_type(&project.trace(trial), "tool_result")[0]["output"].as_str().unwrap_or_default().to_owned()
}

fn fresh(project: &Project, args: &[&str]) -> Ran {
    let _ = std::fs::remove_dir_all(project.path(".evals"));
    project.evals(&[&["run"], args].concat())
}

/// Returns the number of processes whose command line contains this text.
fn alive(mark: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(mark)).count()
}

fn mark(name: &str) -> String {
    format!("mark-{name}-{}", std::process::id())
}

/// Starts a program without a sign of its origin: no environment, no folder, no files, no parent.
fn detached(python: &str, arguments: &str) -> String {
    format!(
        "env -i /usr/bin/env setsid sh -c 'cd /; python3 \"$@\" </dev/null >/dev/null 2>&1 &' sh {python} {arguments}"
    )
}

/// Returns the number of children of a process whose exits were not collected.
fn zombies(parent: u32) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let is_one = |stat: &String| stat.rsplit_once(") ").is_some_and(|it| it.1.starts_with(&format!("Z {parent} ")));
    stats.filter(is_one).count()
}

#[test]
fn sandboxes_leave_no_zombies_while_a_run_goes_on() {
    if sandboxes().len() < 2 {
        return;
    }
    let project = Project::new();
    for name in ["a", "b", "c", "d"] {
        project.case(name, "graders: [{command: {run: 'true'}}, {command: {name: two, run: 'true'}}]", &runs("true"));
    }
    project.case("z", "", "steps: [{sleep: 20s}, {say: done}]");
    let mut command = project.command(&["run", "--sandbox", "bwrap", "--jobs", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_result = |name: &str| {
        let runs = std::fs::read_dir(project.path(".evals/runs")).into_iter().flatten().flatten();
        runs.map(|run| run.path().join(format!("trials/{name}/demo/default/1/result.json"))).any(|file| file.exists())
    };
    wait_for("the end of the quick trials", || has_result("d"));
    // The last sandbox ends by itself, and is collected with the next one.
    let left = zombies(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(left <= 2, "{left} zombies");
}

#[test]
fn what_hides_whose_it_is_does_not_rewrite_files_under_grading() {
    let project = Project::new();
    let mark = mark("rewrites");
    project.write(
        "rewrite.py",
        "import sys, time\nwhile True:\n  open(sys.argv[1], 'w').write('forged')\n  time.sleep(0.002)\n",
    );
    let rewriter = project.path("rewrite.py");
    // Another trial began earlier and runs all the while.
    project.case("long", "", "steps: [{sleep: 4s}, {say: done}]");
    let line = format!(
        "{}; while [ ! -e state.txt ]; do sleep 0.01; done; echo began",
        detached(&rewriter.display().to_string(), &format!("$PWD/state.txt {mark}"))
    );
    project.case("short", "graders: [{command: {run: 'rm -f state.txt; sleep 1; test ! -e state.txt'}}]", &runs(&line));
    project.evals(&["run", "--jobs", "2"]).exits(0);
    assert!(output(&project, "short/demo/default/1").contains("began"));
    assert_eq!(alive(&mark), 0);
}

#[test]
fn a_daemon_that_forks_itself_anew_ends_with_its_trial() {
    let project = Project::new();
    let mark = mark("anew");
    project.write("anew.py", "import os\nwhile True:\n  if os.fork(): os._exit(0)\n");
    let daemon = project.path("anew.py");
    for (name, keys) in [("agent", "trials: 5"), ("graded", "trials: 5")] {
        let line = detached(&daemon.display().to_string(), &mark);
        let keys = if name == "graded" {
            // A grader's command is a program of the trial as well.
            let line = line.replace('\'', "''");
            format!("{keys}\ngraders: [{{command: {{run: '{line}'}}}}]")
        } else {
            keys.to_owned()
        };
        project.case(name, &keys, &runs(if name == "agent" { &line } else { "true" }));
    }
    project.evals(&["run", "--jobs", "2"]).exits(0);
    assert_eq!(alive(&mark), 0);
}

#[test]
fn an_agent_that_ends_or_stops_its_supervisor_at_once_has_run_and_is_judged_by_its_exit() {
    for (name, line, code) in [
        ("killed", "echo ok; kill -KILL $PPID; exit 0", None),
        ("stopped", "echo ok; kill -STOP $PPID; exit 3", Some(3)),
        ("waits", "sleep 0.4; echo ok; kill -STOP $PPID; exit 3", Some(3)),
    ] {
        let project = Project::new();
        project.harness("own", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
        project.case("a", "trials: 6\nlimits: {time: 60s}\ngraders: [{output: {contains: ok}}]", "");
        let begun = Instant::now();
        project.evals(&["run", "--harness", "own", "--jobs", "2"]).exits(3);
        assert!(begun.elapsed() < Duration::from_secs(15), "{name}");
        for number in 1..=6 {
            let trial = format!("a/own/default/{number}");
            let error = &project.result(&trial)["error"];
            assert_eq!(error["category"], "crashed", "{name}: {error}");
            let trace = project.trace(&trial);
            let stop = of_type(&trace, "stop")[0];
            assert_eq!(stop["output"], "ok", "{name}: {stop}");
            assert_eq!(stop["exit"]["code"], serde_json::json!(code), "{name}: {stop}");
        }
    }
}

#[test]
fn an_agent_that_answers_and_then_ends_its_supervisor_has_a_warning() {
    let project = Project::new();
    let answer = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok","session_id":"s"}"#;
    project.write("agent.sh", &format!("read line\necho '{answer}'\nkill -KILL $PPID\n"));
    project.harness("own", "adapter: claude-code-stream\ncommand: [sh, '{project}/agent.sh']");
    project.case("a", "graders: [{output: {contains: ok}}]", "");
    project.evals(&["run", "--harness", "own"]);
    let result = project.result("a/own/default/1");
    assert!(result["warnings"].to_string().contains("exit_unknown"), "{result}");
}

#[test]
fn an_agent_that_ends_its_supervisor_is_noticed_and_what_it_leaves_is_ended() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let mark = format!("{}.7", 80_000 + std::process::id() % 9_000);
        let line =
            format!("env -i setsid sleep {mark} </dev/null >/dev/null 2>&1 & sleep 0.5; kill -KILL $PPID; sleep 20");
        project.harness("murderous", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
        project.case("a", "limits: {time: 60s}\ngraders: [{output: {contains: x}}]", "");
        let begun = Instant::now();
        fresh(&project, &["--harness", "murderous", "--sandbox", sandbox]).exits(3);
        assert!(begun.elapsed() < Duration::from_secs(18), "{sandbox}");
        let trace = project.trace("a/murderous/default/1");
        let codes: Vec<&str> = of_type(&trace, "notice").iter().filter_map(|notice| notice["code"].as_str()).collect();
        assert!(codes.contains(&"supervisor_lost"), "{sandbox}: {codes:?}");
        assert_eq!(project.result("a/murderous/default/1")["error"]["category"], "crashed");
        assert_eq!(alive(&mark), 0, "{sandbox}");
    }
}

#[test]
fn an_agent_that_stops_or_ends_a_supervisor_that_waits_harms_no_program() {
    let project = Project::new();
    // Each trial has a supervisor of its own, because neither agent goes on before the other has begun. When the result of
    // `quick` is written, its supervisor waits for another program, which would be the grader of `slow`.
    let both = "set -- $1\ntouch $0.$1; until [ -e $0.quick ] && [ -e $0.slow ]; do sleep 0.05; done\n[ $1 = quick ] && exit 0\n";
    let script = "until ls ${0%/*}/.evals/runs/*/trials/quick/*/*/1/result.json; do sleep 0.05; done\n\
                  engine=$(awk '{print $4}' /proc/$PPID/stat)\nfor other in $(cat /proc/$engine/task/*/children); do\n  \
                  [ $other = $PPID ] || { kill -$2 $other && echo sent $2; }\ndone\n";
    project.write("agent.sh", &format!("{both}{script}"));
    let agent = project.path("agent.sh");
    project.harness("h", &format!("adapter: output-only\ncommand: [sh, {}, '{{prompt}}']", agent.display()));
    project.write("cases/quick.yaml", "prompt: quick\nlimits: {time: 15s}\ngraders: [{stop: {reason: end_turn}}]\n");
    for signal in ["STOP", "KILL"] {
        for left in ["agent.sh.quick", "agent.sh.slow", ".evals/runs"] {
            let _ = std::fs::remove_file(project.path(left)).or_else(|_| std::fs::remove_dir_all(project.path(left)));
        }
        let graders = format!("graders: [{{output: {{contains: sent {signal}}}}}, {{command: {{run: 'true'}}}}]");
        project.write("cases/slow.yaml", &format!("prompt: slow {signal}\nlimits: {{time: 15s}}\n{graders}\n"));
        let since = Instant::now();
        fresh(&project, &["--harness", "h", "--jobs", "2", "--sandbox", "none"]).exits(0);
        assert!(since.elapsed() < Duration::from_secs(20), "{signal}");
    }
}

#[test]
fn agents_end_with_an_engine_that_is_killed() {
    let project = Project::new();
    let mark = format!("{}.3", 70_000 + std::process::id() % 9_000);
    project.case("a", "", &runs(&format!("setsid sleep {mark} & sleep {mark}")));
    let mut engine = project.command(&["run"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("both processes", || alive(&mark) >= 2);
    engine.kill().unwrap();
    engine.wait().unwrap();
    wait_for("their end", || alive(&mark) == 0);
}

#[test]
fn the_end_of_an_agent_is_its_own_in_every_sandbox() {
    for sandbox in sandboxes() {
        let project = Project::new();
        project.harness("dies", "adapter: output-only\ncommand: [sh, -c, 'kill -SEGV $$']");
        project.harness("exits", "adapter: output-only\ncommand: [sh, -c, 'exit 139']");
        project.case("a", "graders: [{output: {contains: x}}]", "");
        fresh(&project, &["--harness", "dies", "--harness", "exits", "--sandbox", sandbox]).exits(3);
        let exit = |harness: &str| project.result(&format!("a/{harness}/default/1"))["stop"]["exit"].clone();
        assert_eq!(exit("dies"), serde_json::json!({"code": null, "signal": 11}), "{sandbox}");
        assert_eq!(exit("exits"), serde_json::json!({"code": 139, "signal": null}), "{sandbox}");
    }
}

#[test]
fn a_closed_output_is_noticed_at_once_in_every_sandbox() {
    for sandbox in sandboxes() {
        let project = Project::new();
        project.harness(
            "closes",
            "adapter: acp\ncommand: [sh, -c, 'read line; exec >&-; exec sleep 60']\ntimeouts: {grace: 200ms}",
        );
        project.case("a", "limits: {time: 50s}", "");
        let begun = Instant::now();
        fresh(&project, &["--harness", "closes", "--sandbox", sandbox]).exits(3);
        assert!(begun.elapsed() < Duration::from_secs(20), "{sandbox}: {:?}", begun.elapsed());
        assert_eq!(project.result("a/closes/default/1")["error"]["category"], "crashed", "{sandbox}");
    }
}

#[test]
fn sigterm_reaches_an_agent_in_every_sandbox() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let line = "trap \"echo ended-in-order; exit 0\" TERM; while :; do sleep 0.05; done";
        project.harness("traps", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
        project.case("a", "limits: {time: 5s, on-limit: grade}\ngraders: [{output: {contains: ended-in-order}}]", "");
        fresh(&project, &["--harness", "traps", "--sandbox", sandbox]).exits(0);
    }
}

#[test]
fn the_engine_s_environment_cannot_be_read_by_its_agents() {
    let mut project = Project::new();
    project.env("EVALS_TEST_OTHER", "of-the-engine-alone");
    project.env("MY_API_KEY", "key-of-the-engine");
    project.env("FOR_THE_AGENT", "passed-on");
    project.demo("mine", "env: {pass: [FOR_THE_AGENT]}");
    let line = "cat /proc/*/environ /proc/*/task/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a -e of-the-engine -e MY_API -e FOR_THE; for f in /proc/*/fd/*; do case $(readlink $f) in /memfd*) cat $f;; esac; done; echo looked";
    project.case("a", "workspace: {setup: ['cat /proc/*/environ > environ.txt; true']}\ngraders: [{command: {run: '! grep -a of-the-engine environ.txt && ! grep -a key-of-the environ.txt'}}]", &runs(line));
    project.evals(&["run", "--harness", "mine"]).exits(0);
    let seen = output(&project, "a/mine/default/1");
    assert!(seen.contains("looked") && seen.contains("FOR_THE_AGENT=passed-on"), "{seen}");
    for hidden in ["of-the-engine-alone", "key-of-the-engine", "MY_API_KEY"] {
        assert!(!seen.contains(hidden), "{hidden}: {seen}");
    }
}

#[test]
fn no_program_of_a_trial_has_a_terminal() {
    let project = Project::new();
    let look = "(exec </dev/tty) 2>/dev/null && echo has-a-terminal || echo has-none";
    project.case(
        "a",
        &format!("workspace: {{setup: ['{look} > setup.txt']}}\ngraders: [{{command: {{run: '! (exec </dev/tty) 2>/dev/null && grep has-none setup.txt'}}}}]"),
        &runs(look),
    );
    // `script` gives the program a terminal, as a user has one.
    let mut command = project.under("sh", &["-c", "exec script -qec \"$0 run\" /dev/null"], &[]);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(output(&project, "a/demo/default/1").trim(), "has-none");
}

#[test]
fn descriptors_that_were_left_open_reach_no_child() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let look = "test ! -e /proc/self/fd/7 && test ! -e /proc/self/fd/9 && echo closed";
        project.case(
            "a",
            &format!("workspace: {{setup: ['{look}']}}\ngraders: [{{command: {{run: '{look}'}}}}]"),
            &runs(&format!("{look}; ls /proc/self/fd | tr '\\n' ' '; ls /proc/self/fd/7/ 2>/dev/null")),
        );
        let mut command =
            project.under("sh", &["-c", "exec 7</ 9>/dev/null; exec \"$0\" \"$@\""], &["run", "--sandbox", sandbox]);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{sandbox}: {done:?}");
        assert!(output(&project, "a/demo/default/1").starts_with("closed"), "{sandbox}");
    }
}

const KEYS: &str = "
import ctypes, os, platform, sys
call = ctypes.CDLL(None, use_errno=True).syscall
add_key, keyctl = {'x86_64': (248, 250), 'aarch64': (217, 219)}[platform.machine()]
if sys.argv[1] == 'look':
    print('found' if call(keyctl, 10, -3, b'user', b'evals-test', 0) > 0 else 'not found')
elif sys.argv[1] == 'leave':
    sys.exit(call(add_key, b'user', b'evals-test', b'secret', 6, -3) < 0)
else:
    if call(keyctl, 1, None) < 0 or call(add_key, b'user', b'evals-test', b'secret', 6, -3) < 0: sys.exit(77)
    os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn keys_of_the_user_s_session_reach_no_child() {
    let project = Project::new();
    project.write("keys.py", KEYS);
    let keys = project.path("keys.py").display().to_string();
    let free = Command::new("python3").args([&keys, "/usr/bin/env", "python3", &keys, "look"]).output().unwrap();
    if free.status.code() == Some(77) {
        return not_run("EVALS_REQUIRE_KEYS", "the system keeps no keys");
    }
    assert_eq!(String::from_utf8_lossy(&free.stdout).trim(), "found", "{free:?}");
    for sandbox in sandboxes() {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        project.write("look.py", KEYS);
        project.case(
            "a",
            // Programs after one another may have the same supervisor.
            "workspace: {copy: ../keys, setup: [python3 keys.py leave]}\n\
             graders: [{command: {run: 'python3 keys.py look | grep not'}}]",
            &runs("python3 keys.py look; python3 keys.py leave"),
        );
        project.write("keys/keys.py", KEYS);
        let done = project.under("python3", &[&keys], &["run", "--sandbox", sandbox]).output().unwrap();
        assert!(done.status.success(), "{sandbox}: {done:?}");
        assert_eq!(output(&project, "a/demo/default/1").trim(), "not found", "{sandbox}");
    }
}

#[test]
fn temporary_files_are_the_trial_s_own() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let graders = "graders: [{command: {run: 'test -d \"$TMPDIR\" && test ! -e \"$TMPDIR/left\" && touch \"$TMPDIR/mine\"'}}]";
        project.case("a", graders, &runs("echo x > $TMPDIR/left; echo \"$TMPDIR=$TMP=$TEMP\"; mktemp"));
        fresh(&project, &["--sandbox", sandbox]).exits(0);
        let seen = output(&project, "a/demo/default/1");
        let folders: Vec<&str> = seen.lines().next().unwrap().split('=').collect();
        assert!(folders.iter().all(|folder| *folder == folders[0]), "{seen}");
        assert!(if *sandbox == "bwrap" { folders[0] == "/tmp" } else { folders[0].contains("/evals-run-") }, "{seen}");
        assert!(Path::new(seen.lines().nth(1).unwrap()).starts_with(folders[0]), "{seen}");
        assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
        // A case may name another folder.
        project.case("a", "env: {TMPDIR: /var/empty}", &runs("echo $TMPDIR"));
        fresh(&project, &["--sandbox", sandbox]).exits(0);
        assert_eq!(output(&project, "a/demo/default/1").trim(), "/var/empty");
    }
}

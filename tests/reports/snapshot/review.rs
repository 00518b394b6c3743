//! `evals snapshot review` on a terminal of its own: one key for each difference.

use crate::project::Project;

/// Runs the program on a terminal of some width and presses a key for each question that it sees.
const AT_A_TERMINAL: &str = r#"
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
program, keys, width = sys.argv[1], sys.argv[2], int(sys.argv[3])
ready, go = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    os.read(ready, 1)
    # Tests that a shell starts in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(program, [program, "snapshot", "review"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
before = termios.tcgetattr(terminal)[3]
os.write(go, b"x")
seen, asked, until, pressed = b"", 0, time.time() + 60, (0, b"")
while time.time() < until:
    # A key that comes while the terminal changes its mode can be lost. A person presses it again.
    if pressed[1] and time.time() > pressed[0] + 5:
        pressed = (time.time(), pressed[1])
        os.write(terminal, pressed[1])
    if select.select([terminal], [], [], 1)[0]:
        try: piece = os.read(terminal, 65536)
        except OSError: break
        if not piece: break
        seen += piece
        pressed = (0, b"")
    while len(re.findall(rb"\[q\]uit\?", seen)) > asked:
        key = keys[asked] if asked < len(keys) else "q"
        asked += 1
        pressed = (time.time(), b"\x03" if key == "^" else key.encode())
        os.write(terminal, pressed[1])
if time.time() >= until: os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
sys.stdout.write(seen.decode(errors="replace").replace("\r\n", "\n"))
code = os.waitstatus_to_exitcode(status)
# Ctrl-C before the program reads keys by itself is a signal; a shell gives it the same number.
sys.exit(128 - code if code < 0 else code)
"#;

fn review(project: &Project, keys: &str, width: usize, env: &[(&str, &str)]) -> (Option<i32>, String) {
    project.write("terminal.py", AT_A_TERMINAL);
    let mut command = std::process::Command::new("python3");
    command.args(["terminal.py", env!("CARGO_BIN_EXE_evals"), keys, &width.to_string()]).current_dir(project.path(""));
    command.env("HOME", project.home()).env("TMPDIR", project.temporary()).env("TERM", "xterm").env_remove("CI");
    let ran = command.env_remove("NO_COLOR").envs(env.iter().copied()).output().unwrap();
    (ran.status.code(), String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Three cells: one that is changed, one that is changed in a long argument, one that is new.
fn project() -> Project {
    let project = Project::new();
    let steps = |new: &str| {
        format!("steps: [{{read: {{path: x.txt}}}}, {{write: {{path: a.txt, text: {new}}}}}, {{say: done}}]")
    };
    let keys = "workspace: {files: {x.txt: one}}";
    project.case("a", keys, &steps("one"));
    project.case("b", keys, &steps("one"));
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    project.case("a", keys, &steps("two"));
    project.case("b", keys, &steps(&format!("'{}'", "many words that do not fit ".repeat(8).trim())));
    project.case("c", keys, &steps("one"));
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    project
}

fn snap(project: &Project, case: &str) -> String {
    std::fs::read_to_string(project.path(&format!("cases/{case}.snapshots/demo.snap"))).unwrap_or_default()
}

#[test]
fn each_difference_takes_one_key() {
    let project = project();
    let before = snap(&project, "b");
    // What is no answer is asked again; then accept, reject, skip.
    let (code, seen) = review(&project, "xars", 100, &[("NO_COLOR", "1")]);
    assert_eq!(code, Some(1), "{seen}");
    assert!(!seen.contains('\u{1b}'), "{seen:?}");
    for part in
        ["1 of 3", "~ step 2: edit Write", "- text: one", "+ text: two", "one of the letters in brackets", "3 of 3"]
    {
        assert!(seen.contains(part), "`{part}` is not in\n{seen}");
    }
    // What stands around the difference in the trial is shown, too.
    for line in ["    step 1: read (path: x.txt)", "  ▸ step 2: edit Write (path: a.txt)", "    end: stop end_turn"] {
        assert!(seen.lines().any(|it| it.trim_end() == line), "`{line}` is not in\n{seen}");
    }
    assert!(seen.contains("+     edit Write") && seen.contains("2 snapshots still differ"), "{seen}");
    assert!(snap(&project, "a").contains("text: two"));
    assert_eq!((snap(&project, "b"), snap(&project, "c")), (before, String::new()));
    // What was decided is not asked again.
    let (code, seen) = review(&project, "q", 100, &[("NO_COLOR", "1")]);
    assert!(code == Some(1) && seen.contains("1 of 1") && seen.contains("c  demo"), "{seen}");
    let (code, seen) = review(&project, "a", 100, &[]);
    assert!(code == Some(1) && seen.contains("1 snapshot still differs"), "{seen}");
    assert!(snap(&project, "c").contains("text: one"));
    project.evals(&["snapshot", "accept"]).exits(0);
    let (code, seen) = review(&project, "", 100, &[]);
    assert!(code == Some(0) && seen.contains("nothing to review: 3 same"), "{seen}");
}

#[test]
fn all_that_are_left_are_accepted_with_one_key() {
    let project = project();
    let (code, seen) = review(&project, "sA", 100, &[("NO_COLOR", "1")]);
    assert!(code == Some(1) && seen.contains("1 snapshot still differs"), "{seen}");
    assert!(!snap(&project, "a").contains("text: two"), "it was skipped");
    assert!(snap(&project, "b").contains("many words") && snap(&project, "c").contains("text: one"));
}

#[test]
fn both_may_be_kept_and_it_may_be_interrupted() {
    let project = project();
    let (code, seen) = review(&project, "b^", 100, &[]);
    assert_eq!(code, Some(130), "{seen}");
    assert!(seen.contains('\u{1b}'), "a terminal has colours: {seen:?}");
    let text = snap(&project, "a");
    assert!(text.contains("text: one") && text.contains("text: two"), "{text}");
    assert!(!snap(&project, "b").contains("many words"));
    project.evals(&["run", "--case", "a"]).exits(0);
}

#[test]
fn a_narrow_terminal_shows_all_of_it() {
    let project = project();
    let (code, seen) = review(&project, "sss", 44, &[("NO_COLOR", "1")]);
    assert_eq!(code, Some(1), "{seen}");
    let widest = seen.lines().filter(|line| !line.contains(".snap")).map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 52, "{widest}:\n{seen}");
    let words = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.matches("many words that do not fit").count(), 8, "{seen}");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let project = project();
    let ran = project.evals(&["snapshot", "review"]).exits(2);
    ran.says("review needs a terminal").says("evals snapshot accept");
    let (code, seen) = review(&project, "a", 80, &[("CI", "true")]);
    assert!(code == Some(2) && seen.contains("CI is set"), "{seen}");
}

//! Commands on a real terminal, which is resized, and through a pager.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::project::{MACHINE, Project, not_run};

/// A terminal of its own `tmux` server, which ends with this value.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Starts a shell in a folder. `None` if `tmux` is not installed and need not be.
    fn new(project: &Project, columns: usize) -> Option<Self> {
        let socket = project.path("tmux.sock").to_string_lossy().into_owned();
        let columns = columns.to_string();
        let folder = project.path("").to_string_lossy().into_owned();
        let started = Command::new("tmux")
            .args(["-S", &socket, "-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", "20", "-c", &folder])
            .args(["env", "-u", "CI", "PS1=$ ", "sh"])
            .status();
        match started {
            Ok(status) if status.success() => Some(Self { socket }),
            other => {
                not_run(MACHINE, &format!("tmux does not start: {other:?}"));
                None
            }
        }
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-S", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Returns the screen and what scrolled out of it, once a text is there.
    fn once(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p", "-S", "-"]);
            if screen.contains(text) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no `{text}` in:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Terminal {
    /// Waits until the display shows another time.
    fn at_the_next_second(&self) {
        let begun = Instant::now();
        let head = || {
            let screen = self.tmux(&["capture-pane", "-p"]);
            screen.lines().rfind(|line| line.starts_with("0/3 ")).map(str::to_owned)
        };
        let before = head();
        while head() == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "the display stands still");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

const EVALS: &str = env!("CARGO_BIN_EXE_evals");

#[test]
#[ignore = "slow: real seconds, on a machine with nothing else to do"]
fn the_live_display_leaves_nothing_behind_when_the_window_is_resized() {
    let project = Project::new();
    let waits = "[sh, -c, \"while [ ! -e \\\"$0\\\" ]; do sleep 0.05; done\", \"{project}/go\"]";
    project.harness("slow", &format!("adapter: output-only\ncommand: {waits}"));
    for n in 1..=3 {
        let name = format!("a-case-with-a-rather-long-name-that-fills-the-line-of-a-terminal-{n}");
        project.write(&format!("cases/{name}.yaml"), "prompt: x\ngraders: [{stop: {reason: [end_turn]}}]\n");
    }
    // Between a resize and the moment in which the multiplexer tells it, a second may begin and the display be drawn for
    // the old size. That is rare, so one of several attempts must succeed.
    let mut screens = Vec::new();
    for _ in 0..6 {
        let Some(terminal) = Terminal::new(&project, 110) else { return };
        terminal.types(&format!("{EVALS} run --harness slow --jobs 3; echo THE END\n"));
        terminal.once("terminal-3");
        for columns in ["47", "100"] {
            terminal.at_the_next_second();
            terminal.tmux(&["resize-window", "-x", columns, "-y", "20"]);
        }
        terminal.at_the_next_second();
        terminal.at_the_next_second();
        let screen = terminal.once("terminal-3");
        project.write("go", "");
        let last = terminal.once("\nTHE END");
        std::fs::remove_file(project.path("go")).unwrap();
        let heads = screen.lines().filter(|line| line.starts_with("0/3 ")).count();
        let is_clean = heads == 1 && screen.matches("  a-case-with").count() == 3;
        if is_clean && last.contains("3 passed") && !last.lines().any(|line| line.starts_with("0/3 ")) {
            return;
        }
        screens.push(screen);
    }
    panic!("the display tears:\n{}", screens.join("\n--\n"));
}

#[test]
fn names_and_commands_in_messages_are_whole_in_a_narrow_terminal() {
    for columns in [80, 60] {
        // A server that ends would still answer at the same socket.
        let project = Project::new();
        project.write("cases/a.yaml", "prompt: x\ngraders: [{stop: {reason: [end_turn]}}]\n");
        let Some(terminal) = Terminal::new(&project, columns) else { return };
        terminal.types(&format!("clear; {EVALS} run --harness claude-code-contrl; echo DONE\n"));
        let harness = terminal.once("\nDONE");
        terminal.types(&format!("clear; {EVALS} run --limit tiem=2m; {EVALS} list harnesses; echo AFTER\n"));
        let rest = terminal.once("\nAFTER");
        for (screen, names) in [
            (harness, &["`claude-code-contrl`", "`claude-code-control`", "`evals list harnesses --all`"][..]),
            (rest, &["`time`", "`cost-usd`", "evals list harnesses --all", "demo-stream", "installed"]),
        ] {
            for name in names {
                assert!(screen.lines().any(|line| line.contains(name)), "{columns}: {name} in\n{screen}");
            }
        }
    }
}

#[test]
fn an_interrupt_is_told_above_the_live_display() {
    let project = Project::new();
    project.harness(
        "slow",
        "adapter: output-only\ncommand: [sh, -c, \"trap '' INT TERM; touch {project}/began; sleep 8\"]",
    );
    project.write("cases/greeting.yaml", "prompt: x\ngraders: [{stop: {reason: [end_turn]}}]\n");
    let Some(terminal) = Terminal::new(&project, 120) else { return };
    terminal.types(&format!("{EVALS} run --harness slow; echo CODE-$?\n"));
    terminal.once("0/1 ");
    crate::project::wait_for("the trial", || project.path("began").exists());
    terminal.tmux(&["send-keys", "C-c"]);
    let screen = terminal.once("\nCODE-130");
    assert!(screen.contains("interrupted: running trials are cancelled and recorded; interrupt again"), "{screen}");
    assert!(!screen.lines().any(|line| line.starts_with("0/1 ") || line.contains("^C")), "{screen}");
    assert!(!screen.lines().any(|line| line.ends_with("s  greeting  slow")), "{screen}");
}

#[test]
fn a_long_trace_is_shown_through_the_pager() {
    let project = Project::new();
    let steps: String = (1..=25).map(|n| format!("  - say: line {n} of the session\n")).collect();
    project.case("a", "graders: [{stop: {reason: [end_turn]}}]", &format!("steps:\n{steps}"));
    project.evals(&["run"]).exits(0);
    let Some(terminal) = Terminal::new(&project, 100) else { return };
    project.write("pager.sh", "echo 'FIRST OF THE PAGER'\ncat > paged.txt\necho 'END OF THE PAGER'\n");
    terminal.types(&format!("EVALS_PAGER='sh pager.sh' {EVALS} show; echo AFTER\n"));
    terminal.once("\nAFTER");
    let paged = project.read("paged.txt");
    assert!(paged.contains("line 25 of the session") && paged.contains("  trial 1"), "{paged}");
    std::fs::remove_file(project.path("paged.txt")).unwrap();
    for direct in ["EVALS_PAGER= ", "EVALS_PAGER=cat ", "EVALS_PAGER=/no/such/pager ", ""] {
        let option = if direct.is_empty() { "--no-pager" } else { "" };
        terminal.tmux(&["clear-history"]);
        terminal
            .types(&format!("clear; PAGER='sh pager.sh' {direct}{EVALS} show {option}; echo DONE-{}\n", direct.len()));
        let screen = terminal.once(&format!("\nDONE-{}", direct.len()));
        assert!(screen.contains("line 25 of the session") && !screen.contains("OF THE PAGER"), "{direct}: {screen}");
    }
    // A comparison and a history are long, too; JSON and files are not for people.
    project.evals(&["run"]).exits(0);
    let runs = project.runs();
    let compare = format!("compare {} {}", runs[0], runs[1]);
    for (number, (command, is_paged)) in [
        (compare.clone(), true),
        ("history".to_owned(), true),
        (format!("{compare} --no-pager"), false),
        (format!("{compare} --format json"), false),
        (format!("{compare} -o compared.txt"), false),
        ("history --format json".to_owned(), false),
    ]
    .into_iter()
    .enumerate()
    {
        terminal.types(&format!("EVALS_PAGER='sh pager.sh' {EVALS} {command}; echo THEN-{number}\n"));
        terminal.once(&format!("\nTHEN-{number}"));
        assert_eq!(std::fs::remove_file(project.path("paged.txt")).is_ok(), is_paged, "{command}");
    }
    // A pager that the user leaves early is no failure.
    terminal.types(&format!("EVALS_PAGER=true {EVALS} show; echo CODE-$?\n"));
    terminal.once("\nCODE-0");
    // An interrupt is for the pager: the program waits until the user leaves it.
    project.write("waits.sh", "trap 'echo INTERRUPTED' INT\ncat > /dev/null\necho WAITS\nread line < /dev/tty\nread line < /dev/tty\necho LEFT\n");
    terminal.types(&format!("EVALS_PAGER='sh waits.sh' {EVALS} show; echo CODE-$?-AFTER\n"));
    terminal.once("\nWAITS");
    terminal.tmux(&["send-keys", "C-c"]);
    terminal.once("INTERRUPTED");
    terminal.types("\n\n");
    let screen = terminal.once("\nCODE-0-AFTER");
    assert!(screen.contains("LEFT"), "{screen}");
}

#[test]
fn a_message_has_colours_only_if_the_terminal_shows_them() {
    let project = Project::new();
    let message = |env: &[(&str, &str)]| {
        let mut command = Command::new("python3");
        command.args(["-c", "import pty, sys; pty.spawn(sys.argv[1:])", EVALS, "report", "nonesuch"]);
        command.current_dir(project.path("")).env("HOME", project.home()).env("TMPDIR", project.temporary());
        for name in ["CI", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let ran = command.env("TERM", "xterm").envs(env.iter().copied()).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    let coloured = message(&[]);
    assert!(coloured.contains("\u{1b}[31m"), "{coloured:?}");
    for env in [("TERM", "dumb"), ("NO_COLOR", "1"), ("CLICOLOR", "0")] {
        let plain = message(&[env]);
        assert!(plain.contains("nonesuch") && !plain.contains("[31m"), "{env:?}: {plain:?}");
    }
}

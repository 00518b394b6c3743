//! Text from cases, agents and run folders on the way to a terminal or a CI log, and files in odd places.

use crate::project::Project;

/// Runs a program on a terminal of its own, and prints what it wrote there.
pub const AT_A_TERMINAL: &str = r#"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while True:
    try:
        more = os.read(terminal, 65536)
    except OSError:
        break
    if not more:
        break
    seen += more
os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
"#;

/// A project whose case, harness and agent say what a terminal or a service would act on.
fn hostile() -> Project {
    let project = Project::new();
    let title = "\\e]0;gone\\a\\e[2J";
    project.write(
        "cases/a.yaml",
        &format!(
            "description: \"{title}x\"\ntags: [\"{title}t\"]\nprompt: \"{title}\\n::error::prompt ##[error]x\"\nharnesses: [demo]\n\
             graders:\n  - output: {{name: \"{title}g\", equals: \"::set-output name=a::b\"}}\n"
        ),
    );
    project.write(
        "cases/a.demo.yaml",
        &format!("steps: [{{say: \"{title}\\n::error::said\\n  ::warning::x ##[group]y\"}}]"),
    );
    project
}

const COMMANDS: [&[&str]; 9] = [
    &["list", "cases"],
    &["check"],
    &["run"],
    &["show", "latest"],
    &["report", "latest", "--format", "table"],
    &["report", "latest", "--format", "markdown"],
    &["report", "latest", "--format", "json"],
    &["run", "--case", "\u{1b}[2Jnone"],
    &["check", "broken"],
];

#[test]
fn no_escape_sequence_of_a_case_or_an_agent_reaches_a_terminal() {
    let project = hostile();
    project.write(
        "broken/b.yaml",
        "prompt: \"\\e[2Jx\"\ngraders: [{stop: {reason: [\"\\e]0;gone\\a\"]}}]\n\u{1b}[2Jkey: 1\n",
    );
    for args in COMMANDS {
        let program = env!("CARGO_BIN_EXE_evals");
        let seen = project.under("python3", &["-c", AT_A_TERMINAL, program], args).output().unwrap();
        let seen = String::from_utf8_lossy(&seen.stdout).into_owned();
        for sequence in ["\x1b[2J", "\x1b]0;gone", "\x07"] {
            assert!(!seen.contains(sequence), "{args:?} writes {sequence:?}:\n{seen:?}");
        }
        assert!(!seen.is_empty(), "{args:?}");
    }
}

#[test]
fn no_line_is_a_command_of_github() {
    let mut project = hostile();
    project.write("broken/b.yaml", "prompt: x\n::error::key: 1\n");
    project.env("GITHUB_ACTIONS", "true");
    for args in COMMANDS {
        let ran = project.evals(args);
        for line in ran.out.lines().chain(ran.err.lines()) {
            assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{args:?}: {line}");
        }
    }
    // The report that is made of commands still is; what agents said is escaped in it.
    let report = project.evals(&["report", "latest", "--format", "github"]).out;
    assert!(report.lines().any(|line| line.starts_with("::error")), "{report}");
    assert!(!report.lines().any(|line| line.starts_with("::set-output") || line == "::error::said"), "{report}");
    // JSON is the same JSON.
    let json = project.evals(&["report", "latest", "--format", "json"]).json();
    assert!(json["results"][0]["output"].is_null() || json.to_string().contains("::error::said"));
}

#[test]
fn a_pipe_in_a_files_place_is_refused_at_once() {
    let project = Project::new();
    project.case("a", "graders: [{files: {contains: {out.txt: x}}}]", "steps: [{run: {command: mkfifo out.txt}}]");
    project.evals(&["run"]).exits(1);
    let pipe = |path: &str| {
        let made = std::process::Command::new("mkfifo").arg(project.path(path)).status().unwrap();
        assert!(made.success());
    };
    let trial = format!(".evals/runs/{}/trials/a/demo/default/1", project.runs()[0]);
    for file in ["trace.jsonl", "result.json"] {
        std::fs::remove_file(project.path(&format!("{trial}/{file}"))).unwrap();
        pipe(&format!("{trial}/{file}"));
    }
    // None of them waits for somebody to write into the pipe.
    for args in [&["show", "latest"] as &[&str], &["grade", "latest"], &["snapshot", "check"], &["report", "latest"]] {
        assert!(project.evals(args).code <= 3, "{args:?}");
    }
    pipe("cases/b.yaml");
    project.evals(&["check"]).exits(2).says("b.yaml").says("is a pipe, a socket or a device");
}

#[test]
fn a_run_that_names_paths_elsewhere_has_nothing_written_there() {
    let project = Project::new();
    project.case("a", "graders: [{stop: {reason: [end_turn]}}]", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    project.without_digests(&project.run_folder());
    let elsewhere = tempfile::tempdir().unwrap();
    let cases = elsewhere.path().join("cases");
    std::fs::create_dir(&cases).unwrap();
    for file in ["a.yaml", "a.demo.yaml"] {
        let from = project.path(&format!("cases/{file}"));
        if from.exists() {
            std::fs::copy(from, cases.join(file)).unwrap();
        }
    }
    let record = format!(".evals/runs/{}/run.json", project.runs()[0]);
    let here = project.path("cases").canonicalize().unwrap().display().to_string();
    let text = project.read(&record);
    assert!(text.contains(&here), "{text}");
    std::fs::remove_file(project.path(&record)).unwrap();
    project.write(&record, &text.replace(&here, &cases.display().to_string()));
    project.evals(&["baseline", "set"]).exits(2).says("is not below the project").says("--file");
    project.evals(&["snapshot", "accept"]).exits(2).says("is not below the project").says("--case");
    assert!(!cases.join("baseline.json").exists() && !cases.join("a.snapshots").exists());
    // Whoever names the place means it.
    let case = cases.join("a.yaml").display().to_string();
    project.evals(&["snapshot", "accept", "--case", &case]).exits(0);
    assert!(cases.join("a.snapshots/demo.snap").exists());
}

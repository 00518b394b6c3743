//! Limits of the machine: open files, a disk that fills, commands of setup that do not end, files that cannot be removed.

use std::process::Command;

use crate::project::Project;
use crate::supervised::{output, runs};

#[test]
fn more_trials_than_open_files_allow_do_not_run_at_once() {
    let project = Project::new();
    project.case("a", "trials: 40", "steps: [{run: {command: 'ulimit -n'}}, {say: done}]");
    let limited = |limit: &str| {
        let line = format!("{limit}; exec \"$0\" \"$@\"");
        project.under("sh", &["-c", &line], &["run", "--jobs", "300", "--no-progress"]).output().unwrap()
    };
    // The hard limit counts, and agents get the soft one that the engine was started with.
    let done = limited("ulimit -Sn 100; ulimit -Hn 192");
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(
        said.contains("300 trials at once need more open files than the limit of 192 (ulimit -n): 8 run at once"),
        "{said}"
    );
    assert_eq!(output(&project, "a/demo/default/40").trim(), "100");
    let results = project.journal().iter().filter(|line| line["verdict"] == "pass").count();
    assert_eq!(results, 40);
}

/// Runs a script in a mount namespace of its own; nothing where the system permits none.
fn in_own_mounts(project: &Project, script: &str) -> Option<String> {
    let permitted = |flags: &str| Command::new("unshare").args([flags, "true"]).status().is_ok_and(|it| it.success());
    let flags = ["-m", "-rm"].into_iter().find(|flags| permitted(flags))?;
    let done = project.under("unshare", &[flags, "sh", "-c", script], &[]).output().unwrap();
    Some(format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)))
}

#[test]
fn a_disk_that_fills_ends_the_run_with_4_and_resume_goes_on() {
    let project = Project::new();
    std::fs::create_dir(project.path(".evals")).unwrap();
    project.case("a", "trials: 12", &runs("head -c 100000 /dev/zero | tr '\\\\0' x"));
    let script = "mount -t tmpfs -o size=6m none .evals || exit 0; \"$0\" run --jobs 1 --no-progress; echo \"first=$?\"; \
                  grep -c finished .evals/runs/*/journal.jsonl; mount -o remount,size=300m .evals; \
                  \"$0\" run --resume latest --no-progress; echo \"second=$?\"; grep -c '\"verdict\":\"pass\"' .evals/runs/*/journal.jsonl";
    let Some(said) = in_own_mounts(&project, script) else { return };
    if !said.contains("first=") {
        return;
    }
    assert!(said.contains("first=4"), "{said}");
    assert!(said.contains("evals run --resume"), "{said}");
    assert!(said.contains("second=0") && said.lines().any(|line| line == "12"), "{said}");
}

#[test]
fn setup_has_a_limit_of_its_own() {
    let project = Project::new();
    project.case("a", "workspace: {setup: ['sleep 30']}\ntimeouts: {setup: 300ms}", "steps: [{say: done}]");
    project.case("b", "workspace: {setup: ['sleep 30']}", "steps: [{say: done}]");
    project.demo("mine", "timeouts: {setup: 200ms}");
    project.evals(&["run", "--harness", "mine"]).exits(3);
    for (case, limit) in [("a", "300ms"), ("b", "200ms")] {
        let error = project.result(&format!("{case}/mine/default/1"))["error"].clone();
        assert_eq!(error["category"], "setup");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`sleep 30` did not end within {limit} (`timeouts.setup`")), "{message}");
    }
}

#[test]
fn a_file_that_nobody_can_remove_is_reported() {
    let project = Project::new();
    project.case(
        "a",
        "",
        &runs("mkdir $HOME/deep; echo x > $HOME/deep/kept; chattr +i $HOME/deep/kept && echo immutable"),
    );
    let ran = project.evals(&["run"]).exits(0);
    let left = project.left_over();
    for folder in &left {
        let _ = Command::new("chattr").args(["-R", "-i"]).arg(folder).output();
    }
    if output(&project, "a/demo/default/1").contains("immutable") {
        assert_eq!(left.len(), 1, "{left:?}");
        ran.says("kept is immutable").says("chattr -R -i");
    }
}

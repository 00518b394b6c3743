//! Limits of the machine: open files, a full disk, setup commands that do not end, files that cannot be removed.

use std::process::Command;

use super::services::{self, alive};
use super::supervised::{output, runs};
use crate::project::{MACHINE, Project, not_run};

#[test]
fn more_trials_than_open_files_allow_do_not_run_at_once() {
    let project = Project::new();
    project.case("a", "trials: 40", "steps: [{run: {command: 'ulimit -n'}}, {say: done}]");
    let limited = |limit: &str| {
        let line = format!("{limit}; exec \"$0\" \"$@\"");
        project.under("sh", &["-c", &line], &["run", "--jobs", "300", "--no-progress"]).output().unwrap()
    };
    // The hard limit counts, and agents get the soft limit with which the engine was started.
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

/// Runs a script in a mount namespace of its own. Returns `None` if the system does not permit one and need not.
fn in_own_mounts(project: &Project, script: &str) -> Option<String> {
    let permitted = |flags: &str| Command::new("unshare").args([flags, "true"]).status().is_ok_and(|it| it.success());
    let Some(flags) = ["-m", "-rm"].into_iter().find(|flags| permitted(flags)) else {
        not_run(MACHINE, "no mount namespace is permitted");
        return None;
    };
    let done = project.under("unshare", &[flags, "sh", "-c", script], &[]).output().unwrap();
    Some(format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)))
}

/// Returns the lines of all journals.
fn journals(project: &Project) -> Vec<serde_json::Value> {
    let read = |run: &String| std::fs::read_to_string(project.path(&format!(".evals/runs/{run}/journal.jsonl"))).ok();
    let text: String = project.runs().iter().filter_map(read).collect();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
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
        return not_run(MACHINE, &format!("no disk in memory can be mounted: {said}"));
    }
    assert!(said.contains("first=4"), "{said}");
    assert!(said.contains("evals run --resume"), "{said}");
    assert!(said.contains("second=0") && said.lines().any(|line| line == "12"), "{said}");
}

#[test]
fn a_file_beyond_the_limit_of_sizes_ends_the_run_with_4() {
    let project = Project::new();
    project.case("a", "trials: 2", &runs("head -c 200000 /dev/zero | tr '\\0' x"));
    let limited = |blocks: u32| {
        let line = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        project.under("sh", &["-c", &line], &["run", "--jobs", "1", "--no-progress"]).output().unwrap()
    };
    for blocks in [0, 1, 8, 64, 200] {
        let done = limited(blocks);
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(4), "{blocks}: {done:?}");
        assert!(said.contains("ulimit -f"), "{blocks}: {said}");
        assert!(journals(&project).iter().all(|line| line["verdict"] != "pass"), "{blocks}");
        let _ = std::fs::remove_dir_all(project.path(".evals"));
    }
    assert_eq!(limited(20_000).status.code(), Some(0));
}

#[test]
fn a_run_that_breaks_off_leaves_no_report_of_an_earlier_run() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.harness("loud", "adapter: output-only\ncommand: [sh, -c, 'head -c 200000 /dev/zero | tr \"\\0\" x']");
    let files = ["junit=junit.xml", "markdown=report.md", "json=report.json"];
    let files: Vec<&str> = files.iter().flat_map(|file| ["--reporter", file]).collect();
    project.evals(&[&["run", "--harness", "demo"][..], &files].concat()).exits(0);
    assert!(project.read("junit.xml").contains("failures=\"0\" errors=\"0\""));
    project.write("page.html", "older");
    // A limit on the size of files simulates a full disk. The page is larger than the limit, the other reports are not.
    let run = ["run", "--harness", "demo", "--harness", "loud", "--jobs", "1", "--reporter", "html=page.html"];
    let limited = ["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""];
    let done = project.under("sh", &limited, &[&run[..], &files].concat()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("the run broke off") && said.contains("evals run --resume"), "{said}");
    // The cell that was not run, and in each of the two suites the run itself.
    let junit = project.read("junit.xml");
    assert!(junit.contains("failures=\"0\" errors=\"3\""), "{junit}");
    assert_eq!(junit.matches("name=\"run (broken off)\"").count(), 2, "{junit}");
    assert!(project.read("report.md").contains("the run broke off"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&project.read("report.json")).unwrap();
    assert_eq!((&json["exit_code"], &json["summary"]["not_run"]), (&4.into(), &1.into()), "{json}");
    assert!(json["notes"][0].as_str().unwrap().starts_with("the run broke off"), "{json}");
    assert!(said.contains("page.html") && project.read("page.html") == "older", "{said}");
}

#[test]
fn reports_of_a_run_that_cannot_begin_are_named() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.write("junit.xml", "older");
    let limited = ["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""];
    let done = project.under("sh", &limited, &["run", "--reporter", "junit=junit.xml"]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("no report was written to junit.xml"), "{said}");
    assert_eq!(project.read("junit.xml"), "older");
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
    if !output(&project, "a/demo/default/1").contains("immutable") {
        // Few file systems of containers have this attribute.
        return not_run("EVALS_REQUIRE_CHATTR", "the file system has no immutable files");
    }
    assert_eq!(left.len(), 1, "{left:?}");
    ran.says("kept is immutable").says("chattr -R -i");
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_disk_that_fills_is_no_failure_of_an_agent_wherever_it_fills() {
    let project = Project::new();
    let text = "x".repeat(300_000);
    project.write("fixture/big.txt", &text);
    project.write("keys.txt", &text);
    let grader = "graders: [{files: {exists: [big.txt]}}]";
    project.case("copied", &format!("workspace: {{copy: ../fixture}}\n{grader}"), "steps: [{say: done}]");
    let files = format!("workspace: {{files: {{big.txt: {text}}}}}\n{grader}");
    project.case("written", &files, "steps: [{say: done}]");
    let setup = "workspace: {setup: ['head -c 300000 /dev/zero > big.txt']}";
    project.case("made", &format!("{setup}\n{grader}"), "steps: [{say: done}]");
    project.case("attached", "attachments: [../keys.txt]", "steps: [{say: done}]");
    // From a disk with no room to one with enough room: the private folder, the workspace, its copy, the home.
    let script = "mkdir disk; for size in 40 100 200 280 320 400 560 620 680 2000; do for case in copied written made attached; do \
                  mount -t tmpfs -o size=${size}k none disk || exit 0; rm -rf .evals; \
                  TMPDIR=$PWD/disk \"$0\" run --case $case --jobs 1 --no-progress --keep-workspace never >out.txt 2>&1; \
                  echo \"size=$size case=$case exit=$? $(head -c 700 out.txt | tr '\\n' ' ')\"; umount disk; done; done";
    let Some(said) = in_own_mounts(&project, script) else { return };
    let mut exits = Vec::new();
    for line in said.lines().filter(|line| line.starts_with("size=")) {
        let exit = line.split("exit=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        // With room after its folder was removed, only the trial is errored.
        assert!(matches!(exit, "0" | "4") || exit == "3" && line.contains("ERRORED"), "{line}\n{said}");
        if line.starts_with("size=2000") {
            assert_eq!(exit, "0", "{line}");
        }
        exits.push(exit.to_owned());
    }
    if exits.is_empty() {
        return not_run(MACHINE, &format!("no disk in memory can be mounted: {said}"));
    }
    assert!(exits.iter().filter(|exit| *exit == "4").count() >= 12, "{said}");
}

#[test]
fn a_full_temporary_folder_is_no_failure_of_an_agent_or_of_a_grader() {
    let project = Project::new();
    let fill = "head -c 20000000 /dev/zero > big 2> /dev/null; true";
    project.case("agent", "graders: [{files: {matches: {made: x}}}]", &runs(&format!("{fill}; echo x > made")));
    project.case("grader", "graders: [{command: {run: 'head -c 20000000 /dev/zero > big'}}]", "steps: [{say: done}]");
    project.case("healthy", "graders: [{files: {exists: [made]}}]", &runs("echo x > made"));
    let script = "mkdir disk; export TMPDIR=$PWD/disk; try() { rm -rf .evals; \"$0\" run --case \"$1\" --jobs 1 --no-progress >out.txt 2>&1; \
                  code=$?; cat .evals/runs/*/trials/*/demo/default/1/result.json >>out.txt 2>/dev/null; \
                  echo \"$2=$code $(tr '\\n' ' ' <out.txt)\"; }; \
                  mount -t tmpfs -o size=4m,mode=1777 none disk || exit 0; try agent agent; try grader grader; try '*' all; umount disk; \
                  mount -t tmpfs -o size=4m,nr_inodes=2,mode=1777 none disk; touch disk/last; try agent inodes";
    let Some(said) = in_own_mounts(&project, script) else { return };
    if !said.contains("agent=") {
        return not_run(MACHINE, &format!("no disk in memory can be mounted: {said}"));
    }
    let all = said.lines().find(|line| line.starts_with("all=3 ")).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(all.matches(r#""verdict": "pass""#).count(), 1, "{all}");
    assert_eq!(all.matches(r#""category": "internal""#).count(), 2, "{all}");
    for exit in ["agent=3 ", "grader=3 ", "inodes=4 "] {
        let line = said.lines().find(|line| line.starts_with(exit)).unwrap_or_else(|| panic!("not {exit}: {said}"));
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "│").collect();
        assert!(words.join(" ").contains("No space left on device"), "{exit}: {said}");
    }
}

#[test]
fn without_descriptors_a_run_ends_in_order_and_says_what_to_raise() {
    let project = Project::new();
    let mark = format!("mark-descriptors-{}", std::process::id());
    let grader = "graders: [{command: {run: 'test -f made.txt', exit: 0}}, {files: {exists: [made.txt]}}]";
    let steps = format!("steps: [{{run: {{command: ': {mark}; sleep 0.1; echo x > made.txt'}}}}, {{say: done}}]");
    project.case("good", &format!("trials: 3\nworkspace: {{files: {{x.txt: x}}}}\n{grader}"), &steps);
    project.case("bad", grader, "steps: [{say: done}]");
    for limit in [8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 64] {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        let line = format!("ulimit -Sn {limit}; ulimit -Hn {limit}; exec timeout 100 \"$0\" \"$@\"");
        let run = ["run", "--jobs", "50", "--no-progress"];
        let done = project.under("sh", &["-c", &line], &run).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let code = done.status.code();
        assert!(said.contains("ulimit -n"), "{limit}: {said}");
        if limit < 32 {
            assert_eq!(code, Some(4), "{limit}: {said}");
            assert!(said.contains("raise the limit") && project.runs().is_empty(), "{limit}: {said}");
        } else {
            // The failing case never passes, and a passed trial has made its file.
            let verdicts: Vec<(String, String)> = project
                .journal()
                .iter()
                .filter_map(|line| Some((line["case"].to_string(), line["verdict"].as_str()?.to_owned())))
                .collect();
            assert_eq!(verdicts.len(), 4, "{limit}: {said}");
            assert!(verdicts.iter().all(|(case, verdict)| verdict != "pass" || case.contains("good")), "{verdicts:?}");
            assert!(matches!(code, Some(1 | 3)), "{limit}: {said}");
        }
        assert!(alive(&mark).is_empty(), "{limit}: {:?}", alive(&mark));
    }
}

#[test]
fn an_agent_that_takes_every_descriptor_is_ended_and_nobody_s_verdict_is_wrong() {
    let project = services::project("");
    let mark = format!("mark-terminals-{}", std::process::id());
    let program = format!(
        "[later('terminal/create', command='sh', args=['-c', 'sleep 60; : {mark}']) for n in range(60)]; pause(2); say('done')"
    );
    let grader = "graders: [{command: {run: 'test -f made.txt', exit: 0}}, {stop: {reason: [end_turn]}}]";
    services::case(&project, &[&program], &format!("trials: 2\n{grader}"));
    for limit in [40, 56] {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        let line = format!("ulimit -Sn {limit}; ulimit -Hn {limit}; exec timeout 100 \"$0\" \"$@\"");
        let run = ["run", "--harness", "agent", "--jobs", "50", "--no-progress"];
        let done = project.under("sh", &["-c", &line], &run).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(matches!(done.status.code(), Some(1 | 3)), "{limit}: {said}");
        let verdicts: Vec<String> =
            project.journal().iter().filter_map(|line| line["verdict"].as_str().map(str::to_owned)).collect();
        assert_eq!(verdicts.len(), 2, "{limit}: {said}");
        assert!(!verdicts.contains(&"pass".to_owned()), "{limit}: {said}");
        assert!(alive(&mark).is_empty(), "{limit}: {:?}", alive(&mark));
    }
}

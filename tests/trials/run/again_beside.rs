//! `evals grade`: what an agent changed besides the patch is recorded and rebuilt, so that honest trials keep their
//! grades, and nobody's grade becomes another one.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::again::{grade, only};
use crate::project::Project;

/// Runs an agent with these graders, and grades the run again without its workspace. Returns both results.
#[track_caller]
fn both(workspace: &str, works: &str, graders: &[&str]) -> (Project, Value, Value) {
    let project = Project::new();
    project.write("agent.sh", &format!("{works}\necho done\n"));
    let agent = project.path("agent.sh").display().to_string();
    project.harness("works", &format!("adapter: output-only\ncommand: [sh, '{agent}']"));
    let graders: Vec<String> = graders
        .iter()
        .map(|it| it.replacen(": {", ": {diagnostic: true, ", 1))
        .map(|it| format!("  - {it}\n"))
        .collect();
    let always = "  - output: {equals: done}\n";
    project.write("cases/a.yaml", &format!("prompt: x\n{workspace}graders:\n{always}{}", graders.concat()));
    project.evals(&["run", "--harness", "works", "--keep-workspace", "never"]).exits(0);
    let before = project.result("a/works/default/1");
    let report = grade(&project, "latest", &[], 0);
    let after = only(&report).clone();
    (project, before, after)
}

/// Returns what each grader judged: true, false, or null if it is ungraded.
fn passed(result: &Value) -> Vec<Value> {
    result["grades"].as_array().unwrap()[1..].iter().map(|grade| grade["passed"].clone()).collect()
}

const FILES: &str =
    "workspace:\n  files: {src/a: '1', only/a: '1', run.sh: 'true', .gitignore: \"node_modules/\\n\"}\n";

#[test]
#[ignore = "slow: runs many trials"]
fn folders_and_permission_bits_come_back_and_every_grade_stays() {
    let mode = |path: &str, mode: &str| format!("command: {{run: 'test $(stat -c %a {path}) = {mode}'}}");
    let acts = [
        "mkdir -p build/tmp",
        "umask 077; echo 1 > private; mkdir -p deep/folder; echo 1 > deep/folder/x; mkdir deep/empty",
        "rm only/a",
        "rm -r only bare nested",
        "chmod 600 run.sh; chmod 700 src; chmod 711 .",
        "chmod 640 secret; chmod 755 closed",
        "echo 2 >> secret; rm closed/x; echo y > closed/y",
        "rm secret; mkdir secret; rm -r closed; echo x > closed",
        "rm -r bare; ln -s src bare",
    ];
    let workspace = format!(
        "{FILES}  setup: ['mkdir -p bare nested/empty closed; echo x > nested/x; echo x > closed/x; echo 1 > secret; \
         chmod 600 secret; chmod 700 closed']\n"
    );
    let modes = ["src", "run.sh", "secret", "closed", "deep", "deep/folder", "private"].map(|path| mode(path, "700"));
    let more = ["run.sh", "secret", "private"].map(|path| mode(path, "600"));
    let mut graders = vec![
        "files: {exists: [build/tmp], absent: [zzz]}",
        "files: {exists: [bare]}",
        "files: {absent: [only]}",
        "files: {absent: [nested]}",
        "files: {exists: ['**/empty']}",
        "files: {exists: [closed/x]}",
        "files: {contains: {secret: '1'}}",
        "command: {run: 'test -d only && test ! -e only/a'}",
        "script: {run: [sh, -c, 'echo \"{\\\"passed\\\": true}\"']}",
    ];
    graders.extend(modes.iter().chain(&more).map(String::as_str));
    for act in acts {
        let (project, before, after) = both(&workspace, act, &graders);
        assert_eq!(passed(&before), passed(&after), "{act}: {after}");
        assert!(!passed(&before).contains(&Value::Null), "{act}: {before}");
        assert_eq!(before.get("beyond_patch"), None, "{act}: {before}");
        assert_eq!(after.get("was"), None, "{act}: {after}");
        // A derived run has the same record.
        let derived = project.runs().into_iter().find(|run| is_derived(&project, run)).unwrap();
        assert_eq!(passed(only(&grade(&project, &derived, &[], 0))), passed(&before), "{act}");
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn more_than_a_thousand_folders_or_permission_bits_are_unknown() {
    // Permission bits do not decide what a `files` grader finds.
    for (act, files) in [
        ("for n in $(seq 1001); do mkdir d$n; done", Value::Null),
        ("umask 077; for n in $(seq 1001); do echo > d$n; done", Value::Bool(true)),
    ] {
        let (_, before, after) = both("", act, &["files: {absent: [zzz]}", "command: {run: 'true'}"]);
        assert_eq!(passed(&before), [Value::Bool(true), Value::Bool(true)], "{act}");
        assert_eq!(passed(&after), [files, Value::Null], "{act}: {after}");
    }
}

#[test]
fn files_that_cannot_lie_in_unknown_places_are_judged() {
    let graders = [
        "files: {exists: [out.txt], absent: [zzz]}",
        "files: {absent: ['src/*.rs', 'only/**/x']}",
        "files: {exists: [zzz]}",
        "files: {contains: {src/a: '2'}}",
        // These patterns and paths may lead into the unknown places.
        "files: {absent: ['**/zzz']}",
        "files: {absent: [node_modules/zzz, .git/zzz]}",
        "files: {absent: ['./node_modules//zzz', './.git//zzz']}",
        "files: {absent: [link/zzz]}",
        "files: {absent: ['*modules', '.g*']}",
        "files: {exists: [link/a], contains: {link/a: '1'}}",
    ];
    for (act, place) in [
        ("mkdir node_modules; echo 1 > node_modules/a", "node_modules"),
        ("git init -q .; echo 1 > .git/a", ".git"),
        ("rm -rf node_modules", "node_modules"),
        ("mkfifo pipe", "pipe"),
    ] {
        let setup =
            if act.starts_with("rm") { "  setup: ['mkdir node_modules; echo 1 > node_modules/a']\n" } else { "" };
        let act = format!("{act}; echo 1 > out.txt; ln -s {place} link");
        let (_, before, after) = both(&format!("{FILES}{setup}"), &act, &graders);
        let (before, after) = (passed(&before), passed(&after));
        assert_eq!(before[..4], after[..4], "{act}");
        assert!(!before.contains(&Value::Null), "{act}: {before:?}");
        for (n, (was, now)) in before.iter().zip(&after).enumerate() {
            assert!(was == now || now.is_null(), "{act}: grader {n} was {was} and is {now}");
        }
        if place != "pipe" {
            assert!(after[4].is_null() && after[7].is_null(), "{act}: {after:?}");
            // An entry that the agent deleted exists again.
            assert!(after[5].is_null() && after[6].is_null(), "{act}: {after:?}");
        }
    }
}

/// Returns the folder of the run that was made first.
fn first_run(project: &Project) -> String {
    format!(".evals/runs/{}", project.runs().into_iter().min_by_key(|run| is_derived(project, run)).unwrap())
}

fn is_derived(project: &Project, run: &str) -> bool {
    project.read(&format!(".evals/runs/{run}/run.json")).contains("\"derived_from\"")
}

/// Rewrites the results of a run as versions without the record wrote them.
fn as_older_versions_wrote(project: &Project, words: &[&str]) {
    let folder = first_run(project);
    for path in project.files(&folder).into_keys().filter(|path| path.ends_with("/result.json")) {
        let path = format!("{folder}/{path}");
        let mut result: Value = serde_json::from_str(&project.read(&path)).unwrap();
        let result = result.as_object_mut().unwrap();
        result.remove("beside_patch").unwrap();
        result.insert("beyond_patch".to_owned(), serde_json::json!(words));
        project.write(&path, &serde_json::to_string(&result).unwrap());
    }
    let _ = std::fs::remove_file(project.path(&format!("{folder}/results.jsonl")));
    project.without_digests(&folder);
}

#[test]
fn results_of_older_versions_are_read_and_judged_as_before() {
    for (act, words) in [
        ("mkdir new", &["empty folders"][..]),
        ("chmod 600 run.sh", &["permission bits"]),
        ("git init -q .", &["the repository in `.git`"]),
    ] {
        let (project, before, _) = both(FILES, act, &["files: {absent: [zzz]}", "command: {run: 'true'}"]);
        assert_eq!(passed(&before), [Value::Bool(true), Value::Bool(true)]);
        as_older_versions_wrote(&project, words);
        let report = grade(&project, "latest", &[], 0);
        assert_eq!(passed(only(&report)), [Value::Null, Value::Null], "{act}: {report}");
    }
}

#[test]
fn a_record_that_another_program_wrote_changes_nothing_outside_the_workspace() {
    let (project, before, _) = both("", "mkdir new", &["command: {run: 'true'}"]);
    assert_eq!(before["beside_patch"]["folders"], serde_json::json!(["new"]));
    let outside = project.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::set_permissions(&outside, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}/trials/a/works/default/1/result.json", first_run(&project));
    let mut result: Value = serde_json::from_str(&project.read(&path)).unwrap();
    let outside = outside.display().to_string();
    result["beside_patch"] = serde_json::json!({
        "folders": [format!("{outside}/new"), "../new"], "deleted_folders": [outside], "modes": {outside.clone(): "700"}
    });
    project.write(&path, &result.to_string());
    let _ = std::fs::remove_file(project.path(&format!("{}/results.jsonl", first_run(&project))));
    project.without_digests(&first_run(&project));
    let report = grade(&project, "latest", &[], 0);
    assert_eq!(passed(only(&report)), [Value::Null], "{report}");
    assert_eq!(std::fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_link_into_the_home_of_the_trial_makes_commands_ungraded_in_a_kept_workspace() {
    let setup = "mkdir $HOME/py .venv && echo \"grep -q 42 a.txt\" > $HOME/py/tool && ln -s $HOME/py/tool .venv/tool";
    let keys = format!(
        "workspace: {{files: {{.gitignore: .venv}}, setup: ['{setup}']}}\n\
         graders: [{{command: {{run: sh .venv/tool}}}}, {{files: {{exists: [a.txt]}}}}]"
    );
    for (keep, verdict, exits) in [("always", Value::Null, 3), ("never", Value::from(true), 0)] {
        let project = Project::new();
        project.case("a", &keys, "steps: [{write: {path: a.txt, text: '42'}}]");
        project.evals(&["run", "--keep-workspace", keep]).exits(0);
        let report = project.evals(&["grade", "latest", "--format", "json"]).exits(exits).json();
        let grades = &only(&report)["grades"];
        assert_eq!((&grades[0]["passed"], &grades[1]["passed"]), (&verdict, &Value::from(true)), "{keep}: {report}");
    }
}

#[test]
fn a_kept_workspace_that_lost_its_pipes_or_hard_links_gives_no_pass() {
    for (makes, loses, grader) in
        [("mkfifo pipe", "rm pipe", "test ! -e pipe"), ("echo 1 > a; ln a b", "cp b c && mv c b", "! test a -ef b")]
    {
        let project = Project::new();
        project.write("agent.sh", &format!("{makes}; echo done\n"));
        let agent = project.path("agent.sh").display().to_string();
        project.harness("works", &format!("adapter: output-only\ncommand: [sh, '{agent}']"));
        project.write("cases/a.yaml", &format!("prompt: x\ngraders: [{{command: {{run: '{grader}'}}}}]\n"));
        project.evals(&["run", "--harness", "works", "--keep-workspace", "always"]).exits(1);
        let run = project.runs()[0].clone();
        let kept = project.path(&format!(".evals/runs/{run}/trials/a/works/default/1/workspace"));
        let lost = std::process::Command::new("sh").args(["-c", loses]).current_dir(kept).status().unwrap();
        assert!(lost.success());
        let report = project.evals(&["grade", &run, "--format", "json"]).exits(3).json();
        let reason = &only(&report)["grades"][0]["reason"];
        assert!(reason.as_str().unwrap().contains("the kept workspace has none"), "{makes}: {report}");
    }
}

#[test]
fn pipes_and_hard_links_that_were_gone_when_the_workspace_was_kept_are_not_missed() {
    for (setup, act, grader) in [
        ("mkfifo pipe", "rm pipe", "test ! -e pipe"),
        ("echo 1 > a", "mkfifo pipe", "rm -f pipe"),
        ("echo 1 > a", "ln a b", "rm -f b"),
    ] {
        let project = Project::new();
        project.write("agent.sh", &format!("{act}; echo done\n"));
        let agent = project.path("agent.sh").display().to_string();
        project.harness("works", &format!("adapter: output-only\ncommand: [sh, '{agent}']"));
        let graders = format!("graders: [{{command: {{run: '{grader}'}}}}]\n");
        project.write("cases/a.yaml", &format!("prompt: x\nworkspace: {{setup: ['{setup}']}}\n{graders}"));
        project.evals(&["run", "--harness", "works", "--keep-workspace", "always"]).exits(0);
        let before = project.result("a/works/default/1");
        assert_eq!(before["kept_beyond_patch"], serde_json::json!([]), "{act}: {before}");
        project.evals(&["grade", "latest"]).exits(0);
    }
}

#[test]
fn pipes_and_hard_links_of_a_kept_workspace_are_there_again() {
    let project = Project::new();
    project.write("agent.sh", "mkfifo pipe; echo 1 > a; ln a b; echo done\n");
    let agent = project.path("agent.sh").display().to_string();
    project.harness("works", &format!("adapter: output-only\ncommand: [sh, '{agent}']"));
    let graders = "  - output: {equals: done}\n  - files: {absent: [pipe]}\n  - command: {run: test a -ef b}\n";
    project.write("cases/a.yaml", &format!("prompt: x\ngraders:\n{graders}"));
    project.evals(&["run", "--harness", "works"]).exits(1);
    let before = project.result("a/works/default/1");
    project.evals(&["grade", "latest"]).exits(1);
    let derived = project.runs().into_iter().find(|run| is_derived(&project, run)).unwrap();
    let result = format!(".evals/runs/{derived}/trials/a/works/default/1/result.json");
    let after: Value = serde_json::from_str(&project.read(&result)).unwrap();
    assert_eq!(passed(&before), [Value::Bool(false), Value::Bool(true)], "{before}");
    assert_eq!(passed(&after), passed(&before), "{after}");
}

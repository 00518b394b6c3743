//! A trial's own workspace, home and environment, which do not outlive the trial.

use std::process::Stdio;

use serde_json::json;

use crate::project::{Project, not_run, of_type, wait_for};

fn output_of_call(project: &Project, trial: &str) -> String {
    let trace = project.trace(trial);
    of_type(&trace, "tool_result")[0]["output"].as_str().unwrap().to_owned()
}

#[test]
fn the_environment_is_an_allow_list_and_what_is_named() {
    let mut project = Project::new();
    project.env("EVALS_TEST_OTHER", "of-the-user");
    project.env("EVALS_TEST_PASSED", "passed-on");
    project.env("LC_ALL", "C");
    project.env("https_proxy", "");
    project.env("SSH_AUTH_SOCK", "/run/the-agent-of-the-user");
    project.case("a", "env: {OF_CASE: \"1\"}\nworkspace: {setup: ['env > setup.txt']}\ngraders: [{command: {run: 'env; exit 1', exit: 1}}]", "steps: [{run: {command: env}}]");
    project.env("EVALS_TEST_SECRET", "to-be-masked-only");
    project.env("CURL_CA_BUNDLE", "");
    project.demo(
        "mine",
        "env: {pass: [EVALS_TEST_PASSED], secret: [EVALS_TEST_SECRET], set: {OF_MANIFEST: 'in {workspace}'}}",
    );
    project.evals(&["run", "--harness", "mine", "--keep-workspace", "always"]).exits(0);
    let seen = output_of_call(&project, "a/mine/default/1");
    let names: Vec<&str> = seen.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let known = [
        "PATH",
        "HOME",
        "TMPDIR",
        "TMP",
        "TEMP",
        "LC_ALL",
        "https_proxy",
        "CURL_CA_BUNDLE",
        "OF_CASE",
        "OF_MANIFEST",
        "EVALS_TEST_PASSED",
    ];
    for name in known {
        assert!(names.contains(&name), "{name} is missing:\n{seen}");
    }
    // The shell adds variables of its own.
    let shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    let strange: Vec<&&str> = names.iter().filter(|name| !known.contains(name) && !shell.contains(name)).collect();
    assert!(strange.is_empty(), "{strange:?}\n{seen}");
    let setup = project.of_trial("a/mine/default/1", "workspace/setup.txt");
    assert!(setup.contains("OF_CASE=1") && !setup.contains("of-the-user"), "{setup}");
    assert!(!setup.contains("EVALS_TEST_PASSED"), "what is the agent's is not the commands': {setup}");
}

#[test]
fn the_home_is_private_and_filled_as_the_manifest_says() {
    let project = Project::new();
    std::fs::create_dir_all(project.home().join(".agent/deep")).unwrap();
    std::fs::write(project.home().join(".agent/login.json"), "logged-in").unwrap();
    std::fs::write(project.home().join(".agent/deep/more"), "more").unwrap();
    std::fs::write(project.home().join(".other"), "not yours").unwrap();
    let look = "echo \"home=$HOME\"; cd; cat .agent/login.json .agent/deep/more .agent/config.json; ls -A; echo changed > .agent/login.json";
    project.case("a", "trials: 2", &format!("steps:\n  - run:\n      command: |\n        {look}\n"));
    project.demo(
        "mine",
        "home: {copy: [.agent/login.json, .agent/deep, .not-there]}\nfiles: {.agent/config.json: 'at={workspace}'}",
    );
    project.evals(&["run", "--harness", "mine"]).exits(0);
    let mut homes = Vec::new();
    for trial in [1, 2] {
        let trial = format!("a/mine/default/{trial}");
        let seen = output_of_call(&project, &trial);
        let home = seen.lines().next().unwrap().strip_prefix("home=").unwrap().to_owned();
        assert!(!home.starts_with(project.home().to_str().unwrap()) && home.contains("evals-run-"), "{home}");
        let cwd = project.trace(&trial)[0]["cwd"].as_str().unwrap().to_owned();
        assert!(seen.contains(&format!("logged-inmoreat={cwd}")), "{seen}");
        assert!(!seen.contains(".other"), "{seen}");
        homes.push(home);
    }
    assert_ne!(homes[0], homes[1]);
    assert_eq!(std::fs::read_to_string(project.home().join(".agent/login.json")).unwrap(), "logged-in");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_user_s_own_home_is_a_warning_in_each_result() {
    let project = Project::new();
    project.case("a", "", "steps: [{run: {command: 'echo $HOME'}}]");
    project.demo("mine", "home: user");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    assert_eq!(output_of_call(&project, "a/mine/default/1").trim(), project.home().to_str().unwrap());
    assert!(project.result("a/mine/default/1")["warnings"].to_string().contains("own home"));
}

#[test]
fn each_trial_has_a_fresh_workspace_and_the_fixture_stays_as_it_is() {
    let project = Project::new();
    project.write("cases/fix/data.txt", "one\n");
    project.write("cases/fix/deep/.gitignore", "*.log\n");
    let keys = "workspace: {copy: fix}\ntrials: 3\ngraders: [{files: {equals: {data.txt: fix.expected}}}, {diff: {only: [data.txt], changed: [data.txt]}}]";
    project.case("a", keys, "steps: [{run: {command: 'echo two >> data.txt; mkdir -p x; cat data.txt'}}]");
    project.write("cases/fix.expected", "one\ntwo\n");
    project.evals(&["run"]).exits(0);
    assert_eq!(project.read("cases/fix/data.txt"), "one\n");
    assert!(project.of_trial("a/demo/default/3", "workspace.patch").contains("+two"));
    let cwds: std::collections::BTreeSet<String> =
        (1..=3).map(|n| project.trace(&format!("a/demo/default/{n}"))[0]["cwd"].to_string()).collect();
    assert_eq!(cwds.len(), 3);
}

#[test]
fn workspaces_are_made_from_files_and_from_repositories() {
    let project = Project::new();
    let look = "steps: [{run: {command: 'cat a.txt d/b.txt; ls -A'}}]";
    let keys = "workspace: {files: {a.txt: one, d/b.txt: two}}\ngraders: [{diff: {none: true}}]";
    project.case("files", keys, look);
    project.write("repository/a.txt", "old");
    project.write("repository/d/b.txt", "two");
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(args);
        let done = command.current_dir(project.path("repository")).env("HOME", project.home()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"], &["tag", "first"]] {
        git(args);
    }
    project.write("repository/a.txt", "new");
    git(&["commit", "-qam", "second"]);
    project.case("git", "workspace: {git: {path: ../repository, rev: first}}\ngraders: [{diff: {none: true}}]", look);
    project.evals(&["run"]).exits(0);
    assert!(output_of_call(&project, "files/demo/default/1").starts_with("onetwo"));
    assert!(output_of_call(&project, "git/demo/default/1").starts_with("oldtwo"));
}

#[test]
fn a_user_without_a_home_can_run_cases() {
    let project = Project::new();
    project.case("a", "", "steps: [{run: {command: 'cd && pwd'}}]");
    let done = project.command(&["run"]).env_remove("HOME").output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(output_of_call(&project, "a/demo/default/1").contains("evals-run-"));
}

#[test]
fn no_variable_replaces_the_private_home_or_moves_the_folder_of_skills() {
    let private = "`HOME` is the trial's private home";
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--env", "HOME"]).exits(2).says(private);
    for env in ["{pass: [LANG, HOME]}", "{set: {HOME: '{home}/x'}}"] {
        project.demo("mine", &format!("env: {env}"));
        project.evals(&["run", "--harness", "mine"]).exits(2).says("harnesses/mine.yaml:5:").says(private);
    }
    project.demo("mine", "model: {via: env, env: HOME}");
    project.evals(&["run", "--harness", "mine"]).exits(2).says(private);
    // A file of the user, such as a configuration with `{env:HOME}`, replaces it neither.
    project.demo("mine", "env: {named-in: [{file: my.json, regex: '\\{env:([A-Z_]+)\\}'}]}");
    std::fs::write(project.home().join("my.json"), "{env:HOME}/x").unwrap();
    project.case("a", "", "steps: [{run: {command: 'cd && pwd'}}]");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    assert!(output_of_call(&project, "a/mine/default/1").contains("evals-run-"));
    project.demo("mine", "skills: {user: .claude/skills}");
    project.write("skill/SKILL.md", "---\nname: skill\ndescription: Does it.\n---\n");
    project.case("a", "skills: [../skill]\nenv: {CLAUDE_CONFIG_DIR: /x}", "steps: [{say: done}]");
    let skipped = project.evals(&["run", "--harness", "mine"]).exits(3);
    skipped.says("the variable `CLAUDE_CONFIG_DIR` makes the agent look elsewhere");
    // No placeholder is replaced in the environment of a case.
    project.case("a", "skills: [../skill]\nenv: {CLAUDE_CONFIG_DIR: '{home}/.claude'}", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "mine"]).exits(3);
    project.case("a", "skills: [../skill]\nenv: {XDG_CONFIG_HOME: /x}", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "mine"]).exits(0);
    let mut passing = Project::new();
    passing.env("CLAUDE_CONFIG_DIR", "/of-the-user");
    passing.demo("mine", "skills: {user: .claude/skills}\nenv: {pass: [CLAUDE_CONFIG_DIR]}");
    passing.write("skill/SKILL.md", "---\nname: skill\ndescription: Does it.\n---\n");
    passing.case("a", "skills: [../skill]", "steps: [{say: done}]");
    let refused = passing.evals(&["run", "--harness", "mine"]).exits(2).says("it is passed on from the environment");
    refused.says("`in: project`");
    project.case("a", "env: {HOME: /x}", "steps: [{say: done}]");
    project.evals(&["check"]).exits(2).says("cases/a.yaml:2:7:").says(private);
}

#[test]
fn an_old_run_with_home_in_its_environment_is_graded_and_resumed() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "old"]).exits(0);
    let file = format!("{}/run.json", project.run_folder());
    project.without_digests(&project.run_folder());
    let mut record: serde_json::Value = serde_json::from_str(&project.read(&file)).unwrap();
    record["options"]["env"] = json!(["HOME"]);
    project.write(&file, &record.to_string());
    project.evals(&["run", "--resume", "old"]).exits(0).says("--env HOME of the run is ignored");
    let recorded = || -> serde_json::Value { serde_json::from_str(&project.read(&file)).unwrap() };
    // Its trials had it, and none has run since.
    assert_eq!(recorded()["options"]["env"], json!(["HOME"]));
    assert!(recorded()["options"].get("env_not_passed").is_none());
    project.case("a", "env: {HOME: /x}", "steps: [{say: done}]");
    project.evals(&["grade", "old"]).exits(0);
    let refused = project.evals(&["run", "--resume", "old", "--changed", "rerun"]).exits(2);
    refused.says("`env` of case `a` has `HOME`, and its next trials cannot get it");
    project.evals(&["run", "--resume", "old", "--changed", "keep"]).exits(0);
}

#[test]
fn an_old_run_goes_on_without_home_and_its_record_says_so() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.harness("down", "adapter: output-only\ncommand: [\"false\"]");
    project.evals(&["run", "--harness", "demo", "--harness", "down", "--label", "old"]).exits(3);
    let file = format!("{}/run.json", project.run_folder());
    project.without_digests(&project.run_folder());
    let mut record: serde_json::Value = serde_json::from_str(&project.read(&file)).unwrap();
    record["options"]["env"] = json!(["HOME"]);
    project.write(&file, &record.to_string());
    project.evals(&["run", "--resume", "old", "--rerun", "errored"]).exits(3);
    let record: serde_json::Value = serde_json::from_str(&project.read(&file)).unwrap();
    let options = &record["options"];
    assert_eq!((&options["env"], &options["env_not_passed"]), (&json!(["HOME"]), &json!(["HOME"])), "{options}");
    project.evals(&["report", "old"]).exits(0).says("did not get HOME (--env)");
}

#[test]
fn an_agent_with_the_home_of_the_user_can_be_given_home_by_name() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.demo("mine", "home: user");
    project.evals(&["run", "--harness", "mine", "--env", "HOME"]).exits(0);
    let both = ["run", "--harness", "mine", "--harness", "demo", "--env", "HOME"];
    project.evals(&both).exits(2).says("`HOME` is the trial's private home");
}

#[test]
fn hidden_files_are_not_there_while_the_agent_works_and_are_when_it_is_judged() {
    let project = Project::new();
    project.write("cases/fix/a.txt", "shown");
    project.write("cases/fix.hidden/check-of-the-case.sh", "grep -q shown a.txt");
    let keys = "workspace: {copy: fix}\nhidden: fix.hidden\ngraders: [{command: {run: sh check-of-the-case.sh}}, {diff: {none: true}}]";
    project.case(
        "a",
        keys,
        "steps: [{run: {command: 'ls -aR ..; env; cat ../*/*; tr \"\\\\0\" \" \" < /proc/$PPID/cmdline'}}]",
    );
    project.evals(&["run", "--keep-workspace", "always"]).exits(0);
    let seen = output_of_call(&project, "a/demo/default/1");
    assert!(seen.contains("a.txt") && !seen.contains("check-of-the-case"), "{seen}");
    assert!(!seen.contains("fix.hidden"), "{seen}");
    assert!(!project.of_trial("a/demo/default/1", "workspace.patch").contains("check-of-the-case"));
}

#[test]
fn workspaces_are_kept_as_asked() {
    for (keep, good, bad) in [("failed", false, true), ("always", true, true), ("never", false, false)] {
        let project = Project::new();
        let script = "steps: [{write: {path: made.txt, text: made}}]";
        project.case("good", "graders: [{files: {exists: [made.txt]}}]", script);
        project.case("bad", "graders: [{files: {absent: [made.txt]}}]", script);
        project.evals(&["run", "--keep-workspace", keep]).exits(1);
        let folder = project.run_folder();
        let kept =
            |case: &str| project.path(&format!("{folder}/trials/{case}/demo/default/1/workspace/made.txt")).exists();
        assert_eq!((kept("good"), kept("bad")), (good, bad), "{keep}");
        assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn protected_files_are_put_back_before_they_are_judged() {
    let project = Project::new();
    project.write("cases/fix/check.sh", "exit 0\n");
    let keys = "workspace: {copy: fix, protect: [check.sh]}\ngraders: [{files: {contains: {check.sh: exit 0}}}]";
    project.case("a", keys, "steps: [{write: {path: check.sh, text: 'true'}}]");
    project.evals(&["run"]).exits(0);
    assert!(project.result("a/demo/default/1")["warnings"].to_string().contains("check.sh"));
    // The trace has it too, and follows from the wire log.
    let trace = project.of_trial("a/demo/default/1", "trace.jsonl");
    let events = project.trace("a/demo/default/1");
    let told = events.iter().find(|it| it["code"] == "protected_file").expect("a notice");
    assert_eq!(told["text"], "the agent changed the protected file check.sh");
    let wire = project.path(".evals/runs").join(project.runs().remove(0)).join("trials/a/demo/default/1/wire.jsonl");
    assert_eq!(project.evals(&["import", &wire.display().to_string()]).exits(0).out, trace);
}

#[test]
fn files_that_an_agent_leaves_above_its_workspace_do_not_reach_the_graders() {
    let keys = "workspace: {setup: ['mkdir ../dep && echo one > ../dep/a.txt && echo right > ../setup.cfg']}\n\
                graders: [{command: {run: 'test ! -e ../pytest.ini && test ! -e ../../.cargo && test ! -e ../../of-no-list && \
                grep -q two ../dep/a.txt && test ! -e ../worktree'}}]";
    // Work in a folder of setup stays, and nothing else does.
    let leaves = "mkdir ../../.cargo ../worktree; touch ../pytest.ini ../../.cargo/config.toml ../../of-no-list; \
                  echo two > ../dep/a.txt";
    let removed = (json!(["../pytest.ini", "../worktree", "../../.cargo", "../../of-no-list"]), json!(true));
    for (more, changed) in [
        ("true", None),
        ("touch ../../../package.json", Some("package.json")),
        // Times that a program can set.
        ("touch -d 2001-01-01 ../../../package.json", Some("package.json")),
        ("touch ../../../package.json; touch -d 2096-01-01 ../../.lock", Some("package.json")),
        ("mkdir ../../../.cargo; touch ../../../.cargo/config", Some(".cargo")),
        ("echo wrong > ../setup.cfg", Some("../setup.cfg")),
    ] {
        let project = Project::new();
        project.case("a", keys, &format!("steps: [{{run: {{command: '{leaves}; {more}'}}}}]"));
        project.evals(&["run"]).exits(if changed.is_some() { 3 } else { 0 });
        let result = project.result("a/demo/default/1");
        let reason = result["grades"][0]["reason"].as_str().unwrap();
        assert_eq!(reason.contains("lay above the workspace"), changed.is_some(), "{reason}");
        let told = result["warnings"].as_array().unwrap().iter().filter(|it| it["code"] == "files_above_workspace");
        let told: Vec<_> = told.map(|it| (it["paths"].clone(), it["put_back"].clone())).collect();
        let of_user = |path: &str| project.temporary().join(path).display().to_string();
        let changed = changed.map(|path| if path.starts_with("..") { path.to_owned() } else { of_user(path) });
        let changed = changed.map(|path| (json!([path]), json!(false)));
        assert_eq!(told, [Some(removed.clone()), changed].into_iter().flatten().collect::<Vec<_>>(), "{result}");
    }
}

#[test]
fn settings_above_the_folder_of_the_engine_count_after_each_grader() {
    let project = Project::new();
    // The first grader runs code of the agent, and a later one removes the traces.
    let graders = ["sh build.sh", "test -e ../../../package.json", "rm ../../../package.json"];
    let graders = graders.map(|run| format!("{{command: {{run: {run}}}}}")).join(", ");
    let steps = "steps: [{write: {path: build.sh, text: touch ../../../package.json}}]";
    project.case("a", &format!("graders: [{graders}]"), steps);
    project.evals(&["run"]).exits(3);
    let run = project.runs().pop().unwrap();
    project.evals(&["grade", &run]).exits(3);
    for run in project.runs() {
        let result = project.read(&format!(".evals/runs/{run}/trials/a/demo/default/1/result.json"));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "files_above_workspace");
        let path = project.temporary().canonicalize().unwrap().join("package.json").display().to_string();
        assert_eq!(told.map(|it| (&it["paths"], &it["put_back"])), Some((&json!([path]), &json!(false))), "{result}");
        for grade in result["grades"].as_array().unwrap() {
            let reason = grade["reason"].as_str().unwrap();
            assert!(grade["passed"].is_null() && reason.contains("lay above the workspace"), "{result}");
        }
    }
}

#[test]
fn settings_count_above_the_folder_to_which_a_link_of_the_user_leads() {
    let mut project = Project::new();
    std::fs::create_dir_all(project.path("deep/real")).unwrap();
    std::os::unix::fs::symlink("deep/real", project.path("link")).unwrap();
    let link = project.path("link").display().to_string();
    project.env("TMPDIR", &link);
    let keys = "graders: [{command: {run: 'true'}}]";
    project.case("a", keys, "steps: [{run: {command: touch ../../../../package.json}}]");
    project.evals(&["run"]).exits(3);
    assert!(project.path("deep/package.json").exists());
    let result = project.result("a/demo/default/1");
    assert!(codes(&result).contains(&"files_above_workspace"), "{result}");
}

#[test]
fn settings_that_an_agent_left_above_count_when_its_run_is_resumed_and_when_trials_are_graded_again() {
    let project = Project::new();
    let check = "{command: {run: test -e ../../../package.json}}";
    let leaves = "steps: [{run: {command: touch -d 2001-01-01 ../../../package.json}}]";
    project.case("a", &format!("graders: [{check}, {{command: {{run: 'false'}}}}]"), leaves);
    project.case("b", &format!("graders: [{check}]"), "steps: [{say: done}]");
    project.evals(&["run", "--jobs", "1", "--fail-fast"]).exits(1);
    // The engine that plays the other trial finds the agent's file when it begins.
    project.evals(&["run", "--resume", "latest"]).exits(1);
    let result = project.result("b/demo/default/1");
    assert_eq!(result["verdict"], "ungraded", "{result}");
    assert!(codes(&result).contains(&"files_above_workspace"), "{result}");
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    for result in again["results"].as_array().unwrap() {
        let grade = &result["grades"][0];
        assert!(grade["passed"].is_null() && grade["reason"].as_str().unwrap().contains("lay above"), "{result}");
    }
}

#[test]
fn settings_that_an_agent_without_command_graders_left_above_count_when_its_run_is_graded_or_run_again() {
    let project = Project::new();
    project.case("a", "graders: [{command: {run: test -e ../../../package.json}}]", "steps: [{say: done}]");
    let leaves = "steps: [{run: {command: touch -d 2001-01-01 ../../../package.json}}]";
    project.case("b", "graders: [{stop: {reason: [end_turn]}}]", leaves);
    project.evals(&["run", "--jobs", "1"]).exits(1);
    let run = project.runs().pop().unwrap();
    for again in [&["grade", &*run][..], &["run", "--resume", &run, "--rerun", "failed"]] {
        project.evals(again).exits(3);
        let made = project.runs().into_iter().find(|it| *it != run).unwrap();
        let folder = format!(".evals/runs/{made}");
        let result = project.read(&format!("{folder}/trials/a/demo/default/1/result.json"));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["verdict"], "ungraded", "{result}");
        assert!(codes(&result).contains(&"files_above_workspace"), "{result}");
        std::fs::remove_dir_all(project.path(&folder)).unwrap();
    }
}

#[test]
fn settings_that_the_agent_of_a_killed_engine_left_above_count_until_the_user_removes_them() {
    let project = Project::new();
    let flag = project.path("flag").display().to_string();
    let leaves = format!("test -e {flag} || {{ touch {flag} ../../../package.json; sleep 60; }}");
    let steps = format!("steps: [{{run: {{command: '{leaves}'}}}}]");
    project.case("a", "graders: [{command: {run: 'true'}}]", &steps);
    let mut command = project.command(&["run"]);
    let mut engine = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let setting = project.temporary().join("package.json");
    wait_for("the setting", || setting.exists());
    engine.kill().unwrap();
    engine.wait().unwrap();
    project.evals(&["run", "--resume", "latest"]).exits(3);
    let result = project.result("a/demo/default/1");
    assert!(codes(&result).contains(&"files_above_workspace"), "{result}");
    std::fs::remove_file(setting).unwrap();
    project.evals(&["run", "--resume", "latest", "--rerun", "ungraded"]).exits(0);
}

#[test]
fn a_protected_check_that_the_agent_of_another_trial_changes_before_it_runs_does_not_pass() {
    let project = Project::new();
    let keys = "workspace: {files: {tests/run.sh: exit 1}, protect: ['tests/**'], protect-strict: true}\n\
                trials: 3\n\
                graders: [{command: {run: chmod +x tests/run.sh && sh tests/run.sh}}]";
    // The engine waits a moment between the grader's own `chmod` and its other commands.
    let other = "n=0; while [ $n -lt 20000 ]; do n=$((n+1)); \
                 for f in ../../trial-*/workspace/tests/run.sh; do [ -x $f ] && echo exit 0 > $f; done; done; true";
    project.case("a-other", "", &format!("steps: [{{run: {{command: '{other}'}}}}]"));
    project.case("b-checked", keys, "steps: [{say: done}]");
    project.evals(&["run", "--jobs", "2"]);
    for trial in 1..=3 {
        let result = project.result(&format!("b-checked/demo/default/{trial}"));
        assert!(result["verdict"] == "ungraded" || result["verdict"] == "fail", "{result}");
    }
}

#[test]
fn processes_that_an_agent_left_behind_are_ended_with_its_trial() {
    let project = Project::new();
    let pid = project.path("pid");
    // The child outlives its agent, which exits once the child runs.
    let line = format!(
        "setsid sh -c 'echo $$ > {0}; exec sleep 600' >/dev/null 2>&1 & while [ ! -s {0} ]; do sleep 0.01; done",
        pid.display()
    );
    project.case("a", "", &format!("steps:\n  - run:\n      command: |\n        {line}\n  - say: done\n"));
    project.evals(&["run"]).exits(0);
    // A zombie has no command line any more.
    let command = format!("/proc/{}/cmdline", project.read("pid").trim());
    wait_for("the end of the grandchild", || std::fs::read(&command).unwrap_or_default().is_empty());
}

/// Returns the codes of the warnings of a result.
fn codes(result: &serde_json::Value) -> Vec<&str> {
    result["warnings"].as_array().unwrap().iter().filter_map(|warning| warning["code"].as_str()).collect()
}

#[test]
fn an_agent_that_changes_the_engines_copies_of_the_state_before_gets_no_grade() {
    let of_workspace = "workspace: {files: {a.txt: right}, protect: [a.txt], protect-strict: true}\n\
                        graders: [{diff: {none: true}}, {files: {contains: {a.txt: forged}}}]";
    let of_home = "workspace: {setup: ['echo right > ~/mark']}\n\
                   graders: [{command: {run: 'grep -q forged ~/mark'}}]";
    for (keys, act, file) in [
        (
            of_workspace,
            "for copy in ../../before-*; do echo forged > $copy/a.txt; done; echo forged > a.txt",
            "`a.txt` in the engine's copy of the workspace before the agent",
        ),
        // In memory, a file that is written through a mapping keeps its times.
        (
            of_workspace,
            "for file in a.txt ../../before-*/a.txt; do python3 -c \"import mmap, sys; file = open(sys.argv[1], \\\"r+b\\\"); \
             text = mmap.mmap(file.fileno(), 0); text[0]; text[:] = b\\\"forge\\\"\" $file; done",
            "`a.txt` in the engine's copy of the workspace before the agent",
        ),
        (
            of_home,
            "for copy in ../../home-*; do echo forged > $copy/mark; done",
            "`mark` in the engine's copy of the home as setup left it",
        ),
    ] {
        let project = Project::new();
        project.case("a", keys, &format!("steps: [{{run: {{command: '{act}'}}}}]"));
        project.evals(&["run"]).exits(3);
        let result = project.result("a/demo/default/1");
        assert_eq!(result["verdict"], "ungraded", "{result}");
        for grade in result["grades"].as_array().unwrap() {
            assert!(grade["outcome"] == "ungraded" && grade["reason"].as_str().unwrap().contains(file), "{grade}");
        }
        assert!(codes(&result).contains(&"evidence_changed"), "{result}");
        // The patch was measured with the changed copy, so grading again shows no more.
        let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
        assert_eq!(again["results"][0]["verdict"], "ungraded", "{again}");
    }
}

#[test]
fn an_agent_changes_no_figure_of_another_trial_without_a_workspace() {
    let project = Project::new();
    project.case("a-first", "", "steps: [{run: {command: 'mkdir -p ../../empty; echo x > ../../empty/notes.txt'}}]");
    let diff = "graders: [{diff: {only: [answer.txt], created: [answer.txt]}}]";
    project.case("b-second", diff, "steps: [{write: {path: answer.txt, text: '42'}}]");
    project.evals(&["run", "--jobs", "1"]).exits(0);
}

#[test]
fn a_grader_leaves_neither_home_nor_protected_files_nor_settings_to_the_next_one() {
    let project = Project::new();
    let files = "{code.sh: 'true', tests/one.sh: 'sh code.sh', tests/two.sh: 'exit 1'}";
    let last = "test ! -e ~/planted && test ! -e ../planted && test ! -e tests/planted.sh && test -e made";
    let keys = format!(
        "workspace: {{files: {files}, protect: ['tests/**']}}\n\
         graders: [{{command: {{run: sh tests/one.sh}}}}, {{command: {{run: sh tests/two.sh}}}}, {{command: {{run: '{last}'}}}}]"
    );
    let code = "echo exit 0 > tests/two.sh; touch tests/planted.sh ~/planted ../planted made";
    project.case("a", &keys, &format!("steps: [{{write: {{path: code.sh, text: '{code}'}}}}]"));
    let passed = |result: &serde_json::Value| {
        result["grades"].as_array().unwrap().iter().map(|grade| grade["passed"].clone()).collect::<Vec<_>>()
    };
    // What the first grader left in the home may have been needed by the second one, which fails.
    let expected = [json!(null), json!(null), json!(true)];
    project.evals(&["run"]).exits(3);
    let result = project.result("a/demo/default/1");
    assert_eq!(passed(&result), expected, "{result}");
    let reason = result["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("the protected path `tests/two.sh` was changed"), "{reason}");
    let reason = result["grades"][1]["reason"].as_str().unwrap();
    assert!(reason.contains("the earlier grader `command` changed the graders' home"), "{reason}");
    assert!(reason.contains("exited with 1") && reason.contains("graders-home: shared"), "{reason}");
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "protected_put_back");
    assert_eq!(told.unwrap()["files"], "tests/planted.sh, tests/two.sh", "{result}");
    // The agent left nothing above the workspace.
    assert!(!codes(&result).contains(&"files_above_workspace"), "{result}");
    let again = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    assert_eq!(passed(&again["results"][0]), expected, "{again}");
}

#[test]
fn a_later_grader_that_fails_without_what_an_earlier_one_changed_is_ungraded() {
    let setup =
        "workspace: {setup: ['echo right > ../setup.cfg && mkdir ../node_modules && echo right > ../node_modules/a']}";
    let compiled = "mkdir -p ~/.cache/python && touch ~/.cache/python/a.pyc";
    let project = Project::new();
    let cases = [
        ("home", "fresh", "mkdir -p ~/.cache && touch ~/.cache/tool", "test -f ~/.cache/tool", "ungraded"),
        ("shared", "shared", "mkdir -p ~/.cache && touch ~/.cache/tool", "test -f ~/.cache/tool", "pass"),
        ("not-needed", "fresh", "touch ~/tool", "test ! -e ~/tool", "pass"),
        ("unchanged", "fresh", "true", "false", "fail"),
        // Compiled modules are no evidence of another need, and reach no later grader.
        ("compiled", "fresh", compiled, "false", "fail"),
        ("compiled-shared", "shared", compiled, "test ! -e ~/.cache/python", "pass"),
        ("new-above", "shared", "touch ../tool", "test -e ../tool", "ungraded"),
        ("setting-above", "fresh", "echo forged > ../setup.cfg", "grep -q forged ../setup.cfg", "ungraded"),
        ("setting-put-back", "fresh", "echo forged > ../setup.cfg", "grep -q right ../setup.cfg", "pass"),
        ("folder-put-back", "fresh", "echo forged > ../node_modules/a", "grep -q right ../node_modules/a", "pass"),
    ];
    for (id, home, first, last, _) in cases {
        // The grader in between changes nothing.
        let graders = [("first", first), ("second", "true"), ("last", last)];
        let graders = graders.map(|(name, run)| format!("{{command: {{name: {name}, run: '{run}'}}}}")).join(", ");
        let keys = format!("{setup}\ngraders-home: {home}\ngraders: [{graders}]");
        project.case(id, &keys, "steps: [{say: done}]");
    }
    project.evals(&["run"]).exits(1);
    // The stored trials are judged alike.
    project.evals(&["grade", "latest"]).exits(1);
    assert_eq!(project.runs().len(), 2);
    for run in project.runs() {
        for (id, _, _, _, verdict) in cases {
            let result = project.read(&format!(".evals/runs/{run}/trials/{id}/demo/default/1/result.json"));
            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            assert_eq!(result["verdict"], verdict, "{id}: {result}");
            assert!(!codes(&result).contains(&"files_above_workspace"), "{id}: {result}");
            let reason = result["grades"][2]["reason"].as_str().unwrap();
            assert_eq!(reason.contains("earlier grader `first`"), verdict == "ungraded", "{id}: {reason}");
        }
    }
}

#[test]
fn a_folder_of_protected_files_that_a_grader_closes_is_opened_again() {
    for closes in ["chmod 000 tests/sub tests", "chmod a-r tests; chmod a-rx tests/sub", "mv tests else; touch tests"] {
        let project = Project::new();
        let files = "{code.sh: 'true', tests/sub/one.sh: 'exit 0'}";
        let last = "sh tests/sub/one.sh && test -z \"$(find tests -type d ! -perm -500)\"";
        let graders = format!("[{{command: {{run: sh code.sh}}}}, {{command: {{run: '{last}'}}}}]");
        let keys = format!("workspace: {{files: {files}, protect: ['tests/**']}}\ngraders: {graders}");
        project.case("a", &keys, &format!("steps: [{{write: {{path: code.sh, text: '{closes}'}}}}]"));
        project.evals(&["run"]).exits(3);
        let result = project.result("a/demo/default/1");
        let passed = [&result["grades"][0]["passed"], &result["grades"][1]["passed"]];
        assert_eq!(passed, [&json!(null), &json!(true)], "{closes}: {result}");
        let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "protected_put_back");
        let files = told.unwrap_or_else(|| panic!("{closes}: {result}"))["files"].as_str().unwrap();
        assert!(files.starts_with("tests, tests/sub"), "{closes}: {files}");
    }
}

#[test]
fn a_grader_whose_commands_change_the_protected_files_that_it_runs_does_not_pass() {
    let undone = "cp -p tests/run.sh $TMPDIR/k; echo 'cat $TMPDIR/k > tests/run.sh; touch -r $TMPDIR/k tests/run.sh' > \
                  tests/run.sh";
    let cases = [
        ("left", "echo true > tests/run.sh", "ungraded"),
        ("undone", undone, "ungraded"),
        ("replaced", "echo true > t; mv t tests/run.sh", "ungraded"),
        ("removed", "rm tests/old.sh; echo 42 > a.txt", "ungraded"),
        ("lazy", "true", "fail"),
        ("honest", "echo 42 > a.txt", "pass"),
        // By-products of an honest run, and a lock file that is written again.
        ("new", "echo 42 > a.txt; touch tests/new.log; mkdir tests/__pycache__; touch tests/__pycache__/a.pyc", "pass"),
        ("coverage", "echo 42 > a.txt; echo 2 > tests/.coverage", "pass"),
        ("lock", "echo 42 > a.txt; cp tests/go.sum t; mv t tests/go.sum", "pass"),
        ("other-lock", "echo 42 > a.txt; echo 2 > tests/go.sum", "ungraded"),
    ];
    let project = Project::new();
    let files = "{tests/run.sh: 'grep -q 42 a.txt', tests/old.sh: '', tests/.coverage: '1', tests/go.sum: '1'}";
    for strict in [false, true] {
        let workspace = format!("{{files: {files}, protect: ['tests/**'], protect-strict: {strict}}}");
        let keys = format!("workspace: {workspace}\ngraders: [{{command: {{run: 'sh build.sh; sh tests/run.sh'}}}}]");
        for (id, build, _) in cases {
            let build = json!(format!("sleep 0.1; {build}"));
            project.case(
                &format!("{id}-{strict}"),
                &keys,
                &format!("steps: [{{write: {{path: build.sh, text: {build}}}}}]"),
            );
        }
    }
    project.evals(&["run"]).exits(1);
    for (id, _, verdict) in cases {
        for strict in [false, true] {
            let result = project.result(&format!("{id}-{strict}/demo/default/1"));
            assert_eq!(result["verdict"], verdict, "{id}: {result}");
            let is_told = result["grades"][0]["reason"].as_str().unwrap().contains("the protected path");
            assert_eq!(is_told, verdict == "ungraded", "{id}: {result}");
        }
    }
}

#[test]
fn a_grader_that_first_removes_files_through_a_link_of_the_agent_does_not_pass() {
    let project = Project::new();
    let files = json!({"all.sh": "for test in tests/*.sh; do test ! -e $test || sh $test || exit 1; done", "tests/a.sh": "false", "dist/x": ""});
    for (id, run) in [
        ("pattern", "rm -f dist/*; sh all.sh"),
        ("folder", "rm -rf dist/; sh all.sh"),
        ("name", "rm -f dist/a.sh; sh all.sh"),
    ] {
        let keys = format!(
            "workspace: {{files: {files}, protect: ['tests/**', all.sh]}}\ngraders: [{{command: {{run: '{run}'}}}}]"
        );
        project.case(id, &keys, "steps: [{run: {command: 'rm -r dist; ln -s tests dist; sleep 0.1'}}]");
    }
    project.evals(&["run"]);
    for id in ["pattern", "folder", "name"] {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_ne!(result["verdict"], "pass", "{id}: {result}");
    }
}

#[test]
fn a_grader_that_writes_files_that_git_ignores_beside_protected_ones_can_pass() {
    let report = "<testsuite><testcase name=\"a\"/></testsuite>";
    let build = "mkdir -p dist && cp src/a.test.js dist/a.test.js";
    let project = Project::new();
    // The agent built the same before.
    let keys = format!(
        "workspace: {{files: {{.gitignore: dist, src/a.test.js: grep -q 42 a.txt}}, protect: ['**/*.test.js']}}\n\
         graders: [{{command: {{run: 'sleep 0.1; {build} && sh dist/a.test.js'}}}}]"
    );
    project.case("built", &keys, &format!("steps: [{{run: {{command: '{build}; echo 42 > a.txt'}}}}]"));
    let test = json!(format!("sleep 0.1; echo '{report}' > tests/junit.xml"));
    let keys = format!(
        "workspace: {{files: {{.gitignore: junit.xml, tests/a.sh: {test}}}, protect: ['tests/**']}}\n\
         graders: [{{tests: {{run: sh tests/a.sh, report: tests/junit.xml}}}}]"
    );
    project.case("report", &keys, "steps: [{run: {command: sh tests/a.sh}}]");
    project.evals(&["run"]);
    for id in ["built", "report"] {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], "pass", "{id}: {result}");
    }
}

#[test]
fn what_a_build_in_setup_left_in_a_protected_folder_decides_no_grade() {
    // As `make` does, the grader builds `tests/t` anew only if it is older than its input.
    let make = "test -n \"$(find a.txt -newer tests/t)\" && cp a.txt tests/t";
    let run = format!("{make}; sh tests/run.sh");
    let files = json!({
        ".gitignore": "tests/t\n*.lock\ntests/data/\n", "tests/data/a": "1", "a.txt": "7", "tests/run.sh": "grep -q 42 tests/t", "tests/a.lock": "1"
    });
    let again = format!("{make}; true");
    let cases = [
        // The grader builds the file, which git ignores.
        ("built", "tests/**", "", &*run, "pass"),
        ("removed", "tests/**", "", "rm tests/t; cp a.txt tests/t; sh tests/run.sh", "pass"),
        // The agent built it, and the file of setup was put back.
        ("worked", "tests/**", "; cp a.txt tests/t", &*run, "ungraded"),
        ("passed", "tests/**", "; cp a.txt tests/t", &*again, "pass"),
        ("not-built", "tests/**", "", "false", "fail"),
        // A glob names the file.
        ("named", "tests/t", "", &*run, "ungraded"),
        ("named-worked", "tests/t", "; cp a.txt tests/t", &*run, "fail"),
        ("named-by-pattern", "tests/*.lock", "", "echo 2 > tests/a.lock", "ungraded"),
        ("folder", "tests/**", "", "echo 2 > tests/data/a", "pass"),
        ("folder-in-braces", "tests/{data,other}/**", "", "echo 2 > tests/data/a", "ungraded"),
        ("folders-in-braces", "{tests/data,other}/**", "", "echo 2 > tests/data/a", "ungraded"),
        ("folder-by-pattern", "tests/d?ta/**", "", "echo 2 > tests/data/a", "ungraded"),
        ("seen", "tests/**", "", "echo true > tests/run.sh", "ungraded"),
    ];
    let project = Project::new();
    for (id, glob, agent, run, _) in cases {
        let workspace = format!("{{files: {files}, protect: ['{glob}'], setup: ['cp a.txt tests/t']}}");
        let run = json!(format!("sleep 0.1; {run}"));
        let keys = format!("workspace: {workspace}\ngraders: [{{command: {{run: {run}}}}}]");
        project.case(id, &keys, &format!("steps: [{{run: {{command: 'sleep 0.1; echo 42 > a.txt{agent}'}}}}]"));
    }
    project.evals(&["run"]).exits(1);
    for (id, _, _, _, verdict) in cases {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
        let reason = result["grades"][0]["reason"].as_str().unwrap();
        assert_eq!(reason.contains("`tests/t`, which git ignores"), id == "worked", "{id}: {reason}");
    }
}

#[test]
fn a_grader_that_gives_its_protected_check_permissions_first_can_pass() {
    let project = Project::new();
    let run = "chmod +x tests/run.sh && sleep 0.1 && tests/run.sh";
    let files = "{tests/run.sh: \"#!/bin/sh\\ngrep -q 42 a.txt\\n\"}";
    let keys = format!("workspace: {{files: {files}, protect: [tests/**]}}\ngraders: [{{command: {{run: '{run}'}}}}]");
    project.case("a", &keys, "steps: [{write: {path: a.txt, text: '42'}}]");
    project.evals(&["run"]).exits(0);
}

#[test]
fn a_later_grader_that_fails_without_the_protected_or_hidden_files_that_an_earlier_one_changed_is_ungraded() {
    let project = Project::new();
    project.write("cases/state.hidden/check/state", "empty\n");
    let cases = [
        ("made", "touch tests/made", "test -e tests/made", "ungraded", "tests/made"),
        ("changed", "echo 2 > lock.json", "grep -q 2 lock.json", "ungraded", "lock.json"),
        ("hidden", "echo ready > check/state", "grep -q ready check/state", "ungraded", "check/state"),
        ("not-needed", "touch tests/made", "test -e tests/a", "pass", ""),
        ("unchanged", "touch made", "false", "fail", ""),
        ("compiled", "mkdir tests/__pycache__ && touch tests/__pycache__/a.pyc", "false", "fail", ""),
    ];
    for (id, first, last, _, _) in cases {
        let files =
            "workspace: {files: {tests/a: '', lock.json: '1'}, protect: ['tests/**', lock.json]}\nhidden: state.hidden";
        let graders = [("first", first), ("last", last)];
        let graders = graders.map(|(name, run)| format!("{{command: {{name: {name}, run: '{run}'}}}}")).join(", ");
        project.case(id, &format!("{files}\ngraders-home: shared\ngraders: [{graders}]"), "steps: [{say: done}]");
    }
    project.evals(&["run"]).exits(1);
    for (id, _, _, verdict, file) in cases {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
        let reason = result["grades"][1]["reason"].as_str().unwrap();
        let doubt = format!("`{file}` changed while the earlier grader `first` ran");
        assert_eq!(reason.contains(&doubt), verdict == "ungraded", "{id}: {reason}");
    }
}

#[test]
fn a_later_grader_that_fails_without_a_program_that_an_earlier_one_left_is_ungraded() {
    let project = Project::new();
    for (id, place, verdict) in [
        ("npx", ".npm/_npx/1/tool", "ungraded"),
        ("tool", ".local/bin/tool", "ungraded"),
        // An ordinary installation fills these, and the tests after it do not need them.
        ("npm", ".npm/_cacache/tool", "fail"),
        ("pip", ".cache/pip/wheels/tool", "fail"),
        ("log", ".npm/_logs/1.log", "fail"),
    ] {
        let first = format!("mkdir -p $(dirname ~/{place}) && touch ~/{place}");
        let graders = format!("[{{command: {{run: '{first}'}}}}, {{command: {{run: test -e ~/{place}}}}}]");
        project.case(id, &format!("graders: {graders}"), "steps: [{say: done}]");
        project.evals(&["run", "--case", id, "--label", id]);
        let result = project.read(&format!("{}/trials/{id}/demo/default/1/result.json", project.run_named(id)));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
    }
}

#[test]
fn a_later_grader_that_fails_without_a_cache_to_which_the_workspace_links_is_ungraded() {
    let project = Project::new();
    for (id, link, verdict) in
        [("linked", "ln -s ~/.cache/uv/a lib", "ungraded"), ("copied", "cp ~/.cache/uv/a copy", "fail")]
    {
        let first = format!("mkdir -p ~/.cache/uv && echo 42 > ~/.cache/uv/a && {link}");
        let graders = format!("[{{command: {{name: install, run: '{first}'}}}}, {{command: {{run: cat lib}}}}]");
        project.case(id, &format!("graders: {graders}"), "steps: [{say: done}]");
        project.evals(&["run", "--case", id, "--label", id]);
        let result = project.read(&format!("{}/trials/{id}/demo/default/1/result.json", project.run_named(id)));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
        let reason = result["grades"][1]["reason"].as_str().unwrap();
        assert_eq!(reason.contains("earlier grader `install`"), verdict == "ungraded", "{id}: {reason}");
    }
}

#[test]
fn an_agent_whose_home_cannot_be_moved_leaves_its_graders_ungraded() {
    // Not in memory: not every file system has the attribute.
    let project = Project::on_disk();
    project.write("probe", "");
    let chattr = |how: &str, path: &std::path::Path| {
        let ran = std::process::Command::new("chattr").arg(how).arg(path).output();
        ran.is_ok_and(|output| output.status.success())
    };
    if !chattr("+i", &project.path("probe")) {
        return not_run("EVALS_REQUIRE_CHATTR", "chattr does not work here");
    }
    assert!(chattr("-i", &project.path("probe")));
    let keys = "workspace: {setup: ['echo x > $HOME/of-setup']}\n\
                graders: [{command: {run: 'true'}}, {stop: {reason: [end_turn]}}]";
    project.case("a", keys, "steps: [{run: {command: chattr +i $HOME}}]");
    project.evals(&["run"]).exits(3);
    for folder in project.left_over() {
        for trial in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            chattr("-i", &trial.path().join("home"));
        }
    }
    let result = project.result("a/demo/default/1");
    assert_eq!((&result["verdict"], &result["error"]), (&json!("ungraded"), &json!(null)), "{result}");
    let reason = result["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("could not move the agent's home"), "{reason}");
    assert_eq!(result["grades"][1]["passed"], true, "{result}");
}

#[test]
fn tools_that_setup_left_in_the_home_are_those_of_setup_under_their_own_path() {
    let project = Project::new();
    // A link, a file that contains the path of the home, and a link in the workspace.
    let setup = "mkdir -p $HOME/opt $HOME/bin && echo \"grep -q 42 a.txt\" > $HOME/opt/chk && chmod +x $HOME/opt/chk && \
                 ln -s $HOME/opt/chk $HOME/bin/linked && echo \"exec sh $HOME/opt/chk\" > $HOME/bin/named && \
                 ln -s $HOME/opt/chk chk";
    let keys = format!(
        "workspace: {{setup: ['{setup}']}}\n\
         graders: [{{command: {{run: sh ~/bin/linked}}}}, {{command: {{run: sh ~/bin/named}}}}, {{command: {{run: sh chk}}}}]"
    );
    for (id, act, verdict) in [
        ("honest", "echo 42 > a.txt; touch ~/.cache-of-mine", "pass"),
        ("forged", "echo exit 0 > ~/opt/chk", "fail"),
        ("added", "echo 42 > a.txt; mkdir ~/lib; echo exit 0 > ~/lib/x; rm chk; ln -s $HOME/lib/x chk", "ungraded"),
    ] {
        project.case(id, &keys, &format!("steps:\n  - run:\n      command: |\n        {act}\n"));
        project.evals(&["run", "--case", id, "--label", id]);
        let result = project.read(&format!("{}/trials/{id}/demo/default/1/result.json", project.run_named(id)));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
        let is_doubted = result["grades"][2]["reason"].as_str().unwrap().contains("in the agent's home");
        assert_eq!(is_doubted, verdict == "ungraded", "{id}: {result}");
    }
}

#[test]
fn a_grader_that_fails_without_the_agents_home_is_ungraded_if_a_link_or_a_file_of_the_agent_needs_it() {
    let project = Project::new();
    let keys = "workspace: {setup: ['echo x > $HOME/of-setup']}\ngraders: [{command: {run: sh tool}}]";
    for (id, act, verdict) in [
        ("relative-link", "mkdir d; ln -s ../../home/tools/t d/link; ln -s d/link tool", "ungraded"),
        ("link-by-temporary", "ln -s $HOME $TMPDIR/h; ln -s $TMPDIR/h/tools/t tool", "ungraded"),
        ("link-of-home", "ln -s t $HOME/tools/other; ln -s $HOME/tools/other tool", "ungraded"),
        ("file", "echo \"sh $HOME/tools/t\" > tool", "ungraded"),
        ("relative-path", "echo 'sh ../home/tools/t' > tool", "ungraded"),
        ("to-nothing", "ln -s ../home/none tool", "fail"),
        ("other-folder", "echo 'cat ../home/page' > tool", "fail"),
    ] {
        let act = format!("mkdir $HOME/tools; echo exit 0 > $HOME/tools/t; {act}");
        project.case(id, keys, &format!("steps:\n  - run:\n      command: |\n        {act}\n"));
        project.evals(&["run", "--case", id, "--label", id]);
        let result = project.read(&format!("{}/trials/{id}/demo/default/1/result.json", project.run_named(id)));
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["verdict"], verdict, "{id}: {result}");
        let is_doubted = result["grades"][0]["reason"].as_str().unwrap().contains("in the agent's home");
        assert_eq!(is_doubted, verdict == "ungraded", "{id}: {result}");
    }
}

#[test]
fn what_an_agent_changed_beside_its_workspace_is_not_graded_again() {
    let keys = "workspace: {files: {a.txt: one}, setup: ['mkdir ../data && echo precious > ../data/x']}\n\
                graders: [{files: {contains: {a.txt: two}}}, {command: {run: 'grep -q precious ../data/x'}}]";
    let acts = [("harm", "rm ../data/x"), ("work", "echo more > ../data/y"), ("same", "cat ../data/x")];
    for keep in ["always", "never"] {
        let project = Project::new();
        for (id, act) in acts {
            project.case(id, keys, &format!("steps: [{{run: {{command: 'echo two > a.txt; {act}'}}}}]"));
        }
        project.evals(&["run", "--keep-workspace", keep]).exits(1);
        let of_run = project.runs();
        project.evals(&["grade", &of_run[0]]).exits(3);
        let again = project.runs().into_iter().find(|run| !of_run.contains(run)).unwrap();
        for (id, _) in acts {
            let result = project.read(&format!(".evals/runs/{again}/trials/{id}/demo/default/1/result.json"));
            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            let passed = [&result["grades"][0]["passed"], &result["grades"][1]["passed"]];
            let by_command = if id == "same" { json!(true) } else { json!(null) };
            assert_eq!(passed, [&json!(true), &by_command], "{keep} {id}: {result}");
        }
    }
}

#[test]
fn evidence_that_another_program_changes_during_the_trial_makes_nothing_pass() {
    // Code of the agent, which a grader runs, writes to the files that a later grader reads.
    let project = Project::new();
    let runs = project.path(".evals/runs");
    let code = format!("for part in {}/*/trials/a/demo/default/1/*.part; do echo >> $part; done", runs.display());
    project.case(
        "a",
        "graders: [{command: {run: sh code.sh}}, {stop: {reason: [end_turn]}}]",
        &format!("steps: [{{write: {{path: code.sh, text: '{code}'}}}}]"),
    );
    project.evals(&["run"]).exits(3);
    let result = project.result("a/demo/default/1");
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "evidence_changed");
    assert_eq!(told.unwrap()["files"], "`trace.jsonl`, `workspace.patch`", "{result}");
    project.evals(&["grade", "latest"]).exits(3);
}

#[test]
fn evidence_that_one_grader_changes_and_a_later_one_puts_back_makes_nothing_pass() {
    let project = Project::new();
    let trial = project.path(".evals/runs").join("*/trials/a/demo/default/1").display().to_string();
    let swap = format!("T=$(echo {trial}); mv $T $T.x; cp -rp $T.x $T");
    let back = format!("T=$(echo {trial}); rm -r $T; mv $T.x $T");
    project.case(
        "a",
        "graders: [{command: {run: sh swap.sh}}, {command: {run: sh back.sh}}]",
        &format!("steps: [{{write: {{path: swap.sh, text: '{swap}'}}}}, {{write: {{path: back.sh, text: '{back}'}}}}]"),
    );
    project.evals(&["run"]).exits(3);
    let result = project.result("a/demo/default/1");
    assert!(result["grades"][0]["reason"].as_str().unwrap().contains("exited with 0"), "{result}");
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "evidence_changed");
    assert_eq!(told.unwrap()["files"], "`trace.jsonl`, `workspace.patch`, `wire.jsonl`", "{result}");
}

/// Returns the result of a trial whose agent runs a line in the folder of its trial.
fn with_access_to_its_trial(line: &str, keys: &str, exits: i32) -> (Project, serde_json::Value) {
    let project = Project::new();
    let trial = "\"$1/$(ls \"$1\" | head -n 1)/trials/a/sh/default/1\"";
    project.write("agent.sh", &format!("cd {trial} && {line}; echo done"));
    let (agent, runs) = (project.path("agent.sh"), project.path(".evals/runs"));
    let command = format!("command: [sh, {}, {}]", agent.display(), runs.display());
    project.harness("sh", &format!("adapter: output-only\n{command}\nprompt-via: stdin"));
    project.case("a", keys, "");
    project.evals(&["run", "--harness", "sh", "--keep-workspace", "never"]).exits(exits);
    let result = project.result("a/sh/default/1");
    (project, result)
}

#[test]
fn logs_that_an_agent_changes_are_reported() {
    for (line, exits, ungraded) in
        [("echo forged >> wire.jsonl", 3, json!(true)), ("echo forged >> stderr.log", 0, json!(null))]
    {
        let (_, result) = with_access_to_its_trial(line, "", exits);
        let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "evidence_changed");
        assert_eq!(told.map(|it| &it["ungraded"]), Some(&ungraded), "{line}: {result}");
    }
}

#[test]
fn files_that_an_agent_puts_into_the_folder_of_its_trial_are_not_evidence() {
    let plant = "mkdir -p workspace attempts/1 && echo fixed > workspace/code.txt && echo > llm.jsonl";
    let keys = "workspace: {files: {code.txt: broken}}\ngraders: [{files: {contains: {code.txt: fixed}}}]";
    let (project, result) = with_access_to_its_trial(plant, keys, 1);
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "foreign_files");
    assert_eq!(told.unwrap()["names"], json!(["attempts", "llm.jsonl", "workspace"]), "{result}");
    let run = project.runs()[0].clone();
    project.evals(&["grade", &run]).exits(1);
    // A later one has no digest in the result.
    project.write(&format!(".evals/runs/{run}/trials/a/sh/default/1/workspace/code.txt"), "fixed");
    project.evals(&["grade", &run]).exits(1);
}

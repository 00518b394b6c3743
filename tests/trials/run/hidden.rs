//! Hidden files against agents that prepare their workspace for them.

use crate::project::Project;

/// Returns the verdict of one trial whose agent runs a command, in a case with a check in `check/` that only passes on
/// `a.txt` = good.
fn verdict(keys: &str, command: &str) -> String {
    let project = Project::new();
    project.write("cases/fix/a.txt", "bad");
    project.write("cases/fix/tests/own.py", "");
    project.write(
        "cases/fix.hidden/check/run.py",
        "import json, sys\nsys.exit(open('a.txt').read() != json.loads('\"good\"'))\n",
    );
    project.write("cases/fix.hidden/tests/test_a.py", "import sys\nsys.exit(open('a.txt').read() != 'good')\n");
    project.case("a", &format!("workspace: {{copy: fix}}\nhidden: fix.hidden\n{keys}"), "");
    project.write("cases/a.demo.yaml", &format!("steps:\n  - run:\n      command: |\n        {command}\n"));
    project.evals(&["run"]);
    project.result("a/demo/default/1")["verdict"].as_str().unwrap().to_owned()
}

const CHECK: &str = "graders: [{command: {run: python3 check/run.py}}]";
const TEST: &str =
    r#"graders: [{command: {run: [python3, -c, "import sys; sys.path.insert(0, 'tests'); import test_a"]}}]"#;

#[test]
fn an_honest_solution_passes() {
    assert_eq!(verdict(CHECK, "printf good > a.txt"), "pass");
    assert_eq!(verdict(TEST, "printf good > a.txt"), "pass");
}

#[test]
fn hidden_files_that_cannot_be_laid_are_refused_before_the_agent_works() {
    let project = Project::new();
    project.write("cases/fix.hidden/tests/a.sh", "true");
    std::os::unix::fs::symlink("../../../outside", project.path("cases/fix.hidden/tests/link")).unwrap();
    project.case("a", "hidden: fix.hidden\ngraders: [{command: {run: sh tests/a.sh}}]", "");
    for command in ["check", "run"] {
        let ran = project.evals(&[command]).exits(2);
        ran.says("cases/a.yaml:2:").says("outside of the folder that is copied");
    }
    assert!(!project.path(".evals").exists());
}

#[test]
fn a_link_to_a_hidden_file_is_not_followed() {
    let project = Project::new();
    project.write("cases/fix.hidden/check/expected.txt", "42");
    let graders = "graders:\n\
                   - files: {equals: {answer.txt: fix.hidden/check/expected.txt}, exists: [answer.txt]}\n\
                   - command: {run: mkdir -p made && cmp answer.txt check/expected.txt}";
    for (id, steps, verdict) in [
        ("link", "[{run: {command: ln -s check/expected.txt answer.txt}}]", "fail"),
        // The engine, or the grader, makes a folder on the way.
        ("by-home", "[{run: {command: ln -s ../graders-home/../workspace/check/expected.txt answer.txt}}]", "fail"),
        ("by-made", "[{run: {command: ln -s made/../check/expected.txt answer.txt}}]", "fail"),
        // The engine makes a folder in the place of a link on the way.
        (
            "by-replaced",
            "[{run: {command: 'ln -s /usr ../graders-home; ln -s ../graders-home/../workspace/check/expected.txt answer.txt'}}]",
            "fail",
        ),
        ("process", "[{run: {command: ln -s /proc/self/cwd/check/expected.txt answer.txt}}]", "fail"),
        (
            "guess",
            "[{run: {command: 'mkdir check; echo 7 > check/expected.txt; ln -s check/expected.txt answer.txt'}}]",
            "fail",
        ),
        ("answer", "[{run: {command: 'printf 42 > answer.txt'}}]", "pass"),
    ] {
        project.case(id, &format!("hidden: fix.hidden\n{graders}"), &format!("steps: {steps}\n"));
        project.evals(&["run", "--case", id]);
        let run = project.runs().pop().unwrap();
        let read = |run: &str| {
            let result = project.read(&format!(".evals/runs/{run}/trials/{id}/demo/default/1/result.json"));
            serde_json::from_str::<serde_json::Value>(&result).unwrap()
        };
        let result = read(&run);
        assert_eq!(result["verdict"], verdict, "{result}");
        let tells = |result: &serde_json::Value| result["warnings"].to_string().matches("links_to_hidden").count();
        assert_eq!(tells(&result), usize::from(verdict == "fail"), "{result}");
        // The rebuilt workspace is judged alike.
        project.evals(&["grade", &run]);
        let again = read(&project.runs().pop().unwrap());
        assert_eq!((&again["verdict"], tells(&again)), (&result["verdict"], tells(&result)), "{again}");
    }
}

#[test]
fn a_link_beside_the_workspace_to_a_hidden_file_is_not_followed() {
    let project = Project::new();
    project.write("cases/fix.hidden/check/expected.txt", "42");
    let setup = "['mkdir ../out && echo 7 > ../out/a && ln -s a ../out/link']";
    let check = "test -e ../out/link && cmp ../out/answer.txt check/expected.txt";
    let keys = format!("workspace: {{setup: {setup}}}\nhidden: fix.hidden\ngraders: [{{command: {{run: '{check}'}}}}]");
    let link = "ln -s ../workspace/check/expected.txt ../out/answer.txt";
    let closed = format!("{link}; chmod 555 ../out");
    let cases = [
        ("link", link, Some("../out/answer.txt")),
        ("closed", &*closed, Some("../out/answer.txt")),
        ("folder", "rm -r ../out; ln -s workspace/check ../out", Some("../out")),
        ("answer", "printf 42 > ../out/answer.txt", None),
        ("own-link", "printf 42 > ../out/b; ln -s b ../out/answer.txt", None),
    ];
    for (id, act, _) in cases {
        project.case(id, &keys, &format!("steps: [{{run: {{command: '{act}'}}}}]"));
    }
    project.evals(&["run"]).exits(1);
    for (id, _, link) in cases {
        let result = project.result(&format!("{id}/demo/default/1"));
        assert_eq!(result["verdict"], if link.is_some() { "fail" } else { "pass" }, "{id}: {result}");
        let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "links_to_hidden");
        assert_eq!(told.and_then(|told| told["links"].as_str()), link, "{id}: {result}");
    }
}

#[test]
fn a_module_beside_a_hidden_check_does_not_shadow_what_the_check_imports() {
    let plant = "mkdir check; printf 'import os\\nos._exit(0)\\n' > check/json.py";
    assert_eq!(verdict(CHECK, plant), "fail");
}

#[test]
fn a_compiled_module_that_is_not_checked_does_not_run_in_a_tests_place() {
    let plant = "cd tests; printf 'import os\\nos._exit(0)\\n' > test_a.py; python3 -c \"import py_compile as p; \
                 p.compile('test_a.py', invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)\"; rm test_a.py";
    assert_eq!(verdict(TEST, plant), "fail");
    // The isolated mode ignores the environment.
    let isolated = TEST.replace("python3, -c", "python3, -I, -c");
    assert_eq!(verdict(&isolated, plant), "fail");
}

#[test]
fn settings_of_the_workspaces_repository_run_no_program_while_it_is_graded() {
    let graders =
        "graders: [{command: {run: 'git status --short > /dev/null; git log -1 > /dev/null; grep -q good a.txt'}}]";
    for setting in ["core.fsmonitor", "core.hooksPath", "core.pager"] {
        let plant = format!(
            "git init -q . && git -c user.name=x -c user.email=x@example.org commit -qm x --allow-empty; \
             printf '#!/bin/sh\\nprintf good > a.txt\\n' > .git/evil; chmod +x .git/evil; git config {setting} .git/evil"
        );
        assert_eq!(verdict(graders, &plant), "fail", "{setting}");
    }
}

#[test]
fn what_an_agent_puts_in_the_place_of_the_graders_home_is_not_there() {
    let plant = "mkdir -p ../graders-home/bin; printf 'printf good > a.txt' > ../graders-home/go";
    let graders = "graders: [{command: {run: 'test -e ~/go && sh ~/go; grep -q good a.txt'}}]";
    assert_eq!(verdict(graders, plant), "fail");
    // Setup that leaves the home empty, and setup whose file the agent replaces.
    for setup in ["true", "echo true > ~/go"] {
        let keys = format!("{graders}\ntimeouts: {{setup: 30s}}");
        let project = Project::new();
        let case = format!("workspace: {{files: {{a.txt: bad}}, setup: ['{setup}']}}\n{keys}");
        project.case("a", &case, "");
        project.write("cases/a.demo.yaml", &format!("steps:\n  - run:\n      command: |\n        {plant}\n"));
        project.evals(&["run"]);
        assert_eq!(project.result("a/demo/default/1")["verdict"], "fail", "{setup}");
    }
}

#[test]
fn a_command_whose_hidden_check_changed_while_it_ran_does_not_pass() {
    let graded = |code: &str| {
        let project = Project::new();
        project.write("cases/fix.hidden/check/run.sh", "sh a.sh; sh check/assert.sh\n");
        project.write("cases/fix.hidden/check/assert.sh", "grep -q good a.sh\n");
        let keys = "hidden: fix.hidden\ngraders: [{command: {run: sh check/run.sh}}]";
        project.case("a", keys, &format!("steps:\n  - write: {{path: a.sh, text: \"{code}\"}}\n"));
        project.evals(&["run"]);
        let result = project.result("a/demo/default/1");
        (result["verdict"].clone(), result["grades"][0]["reason"].as_str().unwrap().to_owned())
    };
    assert_eq!(graded("echo good").0, "pass");
    let (verdict, reason) = graded("echo true > check/assert.sh");
    assert_eq!(verdict, "ungraded", "{reason}");
    assert!(reason.contains("the hidden file `check/assert.sh` changed while the commands ran"), "{reason}");
    // The changed file puts the original back.
    let undo = "sleep 0.1; cp check/assert.sh $TMPDIR/o; echo 'cp $TMPDIR/o check/assert.sh' > check/assert.sh";
    let (verdict, reason) = graded(undo);
    assert_eq!(verdict, "ungraded", "{reason}");
    assert!(reason.contains("the hidden file `check/assert.sh` was written"), "{reason}");
}

#[test]
fn a_command_that_makes_its_hidden_check_executable_can_pass() {
    for (code, verdict) in [
        ("echo good", "pass"),
        ("sleep 0.1; cp check/assert.sh $TMPDIR/o; echo 'cp $TMPDIR/o check/assert.sh' > check/assert.sh", "ungraded"),
    ] {
        let project = Project::new();
        project.write("cases/fix.hidden/check/run.sh", "#!/bin/sh\nsh a.sh; sh check/assert.sh\n");
        project.write("cases/fix.hidden/check/assert.sh", "grep -q good a.sh\n");
        let keys = "hidden: fix.hidden\ngraders: [{command: {run: 'chmod +x check/*.sh && ./check/run.sh'}}]";
        project.case("a", keys, &format!("steps:\n  - write: {{path: a.sh, text: \"{code}\"}}\n"));
        project.evals(&["run"]);
        let result = project.result("a/demo/default/1");
        assert_eq!(result["verdict"], verdict, "{code}: {result}");
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_command_that_sets_permissions_elsewhere_in_its_line_excuses_no_change_of_a_hidden_check() {
    // The agent's `build.sh` replaces the check for one run, and its replacement puts back content and time.
    let forge = "cp -p check/run.sh $TMPDIR/k\n\
                 printf '#!/bin/sh\\ncat $TMPDIR/k > check/run.sh; touch -r $TMPDIR/k check/run.sh\\n' > check/run.sh\n";
    for (line, honest) in [
        ("chmod +x build.sh check/run.sh && ./build.sh && check/run.sh", "pass"),
        ("chmod +x check/run.sh; sh build.sh && check/run.sh", "pass"),
        ("chmod -- +x \\\n check/run.sh 2>/dev/null || exit 1 # the check\nsh build.sh && check/run.sh", "pass"),
        // The check did not have the permission, so another program gave it one.
        ("sh build.sh && chmod +x check/run.sh && check/run.sh", "ungraded"),
        ("sh build.sh && sh check/run.sh # chmod", "pass"),
        ("echo chmod; sh build.sh && sh check/run.sh", "pass"),
        ("ln -s /usr/lib lib; sh build.sh && sh check/run.sh", "pass"),
        ("chmod +x $(sh build.sh) check/run.sh; sh check/run.sh", "ungraded"),
    ] {
        let project = Project::new();
        project.write("cases/fix.hidden/check/run.sh", "#!/bin/sh\ngrep -q 42 a.txt\n");
        let keys = format!("hidden: fix.hidden\ngraders: [{{command: {{run: {}}}}}]", serde_json::json!(line));
        let write = |path: &str, text: &str| format!("{{write: {{path: {path}, text: {}}}}}", serde_json::json!(text));
        let steps = |build: &str, answer: &str| {
            let build = format!("#!/bin/sh\nsleep 0.1\n{build}");
            format!("steps: [{}, {}]\n", write("build.sh", &build), write("a.txt", answer))
        };
        project.case("honest", &keys, &steps("", "42"));
        project.case("lazy", &keys, &steps("", "7"));
        project.case("forged", &keys, &steps(forge, "7"));
        project.evals(&["run"]);
        let verdict = |id: &str| project.result(&format!("{id}/demo/default/1"))["verdict"].clone();
        assert_eq!((verdict("honest"), verdict("lazy")), (honest.into(), "fail".into()), "{line}");
        assert_eq!(verdict("forged"), "ungraded", "{line}");
    }
}

#[test]
fn a_command_whose_permissions_cannot_be_set_ends_as_the_shell_ends_it() {
    for (line, verdict) in [
        ("chmod +x none && sh check/run.sh", "fail"),
        ("chmod +x none; sh check/run.sh", "pass"),
        ("chmod +x none\n[ $? -eq 0 ] || exit 1\nsh check/run.sh", "fail"),
        ("chmod +x none; rc=$?\nsh check/run.sh || rc=1\nexit $rc", "fail"),
        ("chmod 755 check/run.sh; chmod +x none\ntest $? -ne 0 && sh check/run.sh", "pass"),
        ("chmod +x none || exit 1\nsh check/run.sh", "fail"),
        ("chmod +x none || true\nsh check/run.sh", "pass"),
        ("chmod +x check/run.sh", "pass"),
        ("chmod +x none", "fail"),
    ] {
        let project = Project::new();
        project.write("cases/fix.hidden/check/run.sh", "true\n");
        let run = serde_json::json!(line);
        let keys = format!("hidden: fix.hidden\ngraders: [{{command: {{run: {run}}}}}]");
        project.case("a", &keys, "steps: [{say: done}]");
        project.evals(&["run"]);
        let result = project.result("a/demo/default/1");
        assert_eq!(result["verdict"], verdict, "{line}: {result}");
    }
}

#[test]
fn a_command_that_fails_is_named_with_the_commands_that_set_its_permissions() {
    let line = "chmod +x check/run.sh && sh check/run.sh";
    let project = Project::new();
    project.write("cases/fix.hidden/check/run.sh", "exit 3\n");
    let graders = format!("[{{command: {{run: '{line}'}}}}, {{script: {{run: '{line}'}}}}]");
    project.case("a", &format!("hidden: fix.hidden\ngraders: {graders}"), "steps: [{say: done}]");
    project.evals(&["run"]).exits(1);
    let result = project.result("a/demo/default/1");
    for grade in result["grades"].as_array().unwrap() {
        let reason = grade["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("`{line}` exited with 3")), "{reason}");
    }
}

#[test]
fn a_hidden_lock_file_that_is_written_again_with_the_same_content_is_not_changed() {
    for (file, text, verdict) in [
        ("package-lock.json", "{}", "pass"),
        ("package-lock.json", "{\"a\": 1}", "ungraded"),
        ("package.json", "{}", "ungraded"),
    ] {
        let project = Project::new();
        project.write(&format!("cases/fix.hidden/{file}"), "{}\n");
        let run = format!("sleep 0.1; echo '{text}' > {file}");
        let keys = format!("hidden: fix.hidden\ngraders: [{{command: {{run: {}}}}}]", serde_json::json!(run));
        project.case("a", &keys, "steps: [{say: done}]");
        project.evals(&["run"]);
        let result = project.result("a/demo/default/1");
        assert_eq!(result["verdict"], verdict, "{file} {text}: {result}");
    }
}

#[test]
fn permissions_that_a_grader_takes_from_hidden_files_are_given_back() {
    let project = Project::new();
    project.write("cases/fix.hidden/check/t1", "#!/bin/sh\ngrep -q 42 a.txt\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path("cases/fix.hidden/check/t1"), mode).unwrap();
    let last = "./check/t1 && test -z \"$(find check -type d ! -perm -500)\"";
    let graders =
        format!("[{{command: {{name: build, run: sh build.sh}}}}, {{command: {{name: check, run: '{last}'}}}}]");
    let build = "echo 42 > a.txt; chmod a-x check/t1; chmod a-r check";
    let keys = format!("hidden: fix.hidden\ngraders: {graders}");
    project.case("a", &keys, &format!("steps: [{{write: {{path: build.sh, text: '{build}'}}}}]"));
    project.evals(&["run"]).exits(3);
    let result = project.result("a/demo/default/1");
    assert_eq!(result["grades"][0]["passed"], serde_json::Value::Null, "{result}");
    assert_eq!(result["grades"][1]["passed"], true, "{result}");
    let told = result["warnings"].as_array().unwrap().iter().find(|it| it["code"] == "hidden_put_back");
    assert_eq!(told.unwrap()["files"], "check, check/t1", "{result}");
}

#[test]
fn code_that_rewrites_the_hidden_tests_while_they_run_does_not_pass() {
    let graded = |code: &str| {
        let project = Project::new();
        project.write("cases/fix/a.sh", "exit 1\n");
        project.write(
            "cases/fix.hidden/check/run.sh",
            "sh a.sh; sh check/assert.sh && echo 'ok 1 - a' || echo 'not ok 1 - a'; echo 1..1\n",
        );
        project.write("cases/fix.hidden/check/assert.sh", "grep -q good a.sh\n");
        let tests = "graders: [{tests: {run: sh check/run.sh, format: tap}}]";
        project.case("a", &format!("workspace: {{copy: fix}}\nhidden: fix.hidden\n{tests}"), "");
        project.write("cases/a.demo.yaml", &format!("steps:\n  - write: {{path: a.sh, text: \"{code}\"}}\n"));
        project.evals(&["run"]);
        let result = project.result("a/demo/default/1");
        (result["verdict"].clone(), result["grades"][0]["reason"].as_str().unwrap().to_owned())
    };
    assert_eq!(graded("echo good").0, "pass");
    assert_eq!(graded("echo bad").0, "fail");
    let (verdict, reason) = graded("echo true > check/assert.sh");
    assert_eq!(verdict, "ungraded", "{reason}");
    assert!(reason.contains("changed the hidden file `check/assert.sh`"), "{reason}");
}

#[test]
fn code_that_a_grader_runs_does_not_change_the_hidden_check_of_a_later_grader() {
    let graders = "graders:\n- command: {run: sh build.sh}\n- tests: {run: sh check/run.sh, format: tap}\n";
    let forged = "echo 'echo ok 1 - a; echo 1..1' > check/run.sh";
    let moved = format!("mv check else; ln -s else check; {forged}");
    for (id, build, verdict, warnings) in [
        ("honest", "echo good > a.txt", "pass", 0),
        ("nothing", "true", "fail", 0),
        // The last grader may need what the first one left.
        ("forged", forged, "ungraded", 1),
        ("moved", &*moved, "ungraded", 1),
        ("removed", "rm -r check", "ungraded", 1),
    ] {
        let project = Project::new();
        let check = "grep -q good a.txt && echo 'ok 1 - a' || echo 'not ok 1 - a'\necho 1..1\n";
        project.write("cases/fix.hidden/check/run.sh", check);
        let steps = format!("steps:\n  - write: {{path: build.sh, text: {}}}\n", serde_json::json!(build));
        project.case(id, &format!("workspace: {{files: {{a.txt: bad}}}}\nhidden: fix.hidden\n{graders}"), &steps);
        project.evals(&["run", "--case", id]);
        // The stored trial is judged alike.
        project.evals(&["grade", &project.runs().pop().unwrap()]);
        for run in project.runs() {
            let result = project.read(&format!(".evals/runs/{run}/trials/{id}/demo/default/1/result.json"));
            let result: serde_json::Value = serde_json::from_str(&result).unwrap();
            assert_eq!(result["verdict"], verdict, "{id}: {result}");
            let told = result["warnings"].to_string().matches("\"hidden_put_back\"").count();
            assert_eq!(told, warnings, "{id}: {result}");
        }
    }
}

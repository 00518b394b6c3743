//! `evals grade`: missing parts of a stored workspace are reported, and no grader passes or fails because of them.

use serde_json::Value;

use super::again::{RUN, grade, grader, only, project};
use crate::project::Project;

fn run(project: &Project, keep: &str, code: i32) -> String {
    project.evals(&[&RUN[..], &["--keep-workspace", keep]].concat()).exits(code);
    project.runs().pop().unwrap()
}

fn reason<'a>(result: &'a Value, name: &str) -> &'a str {
    assert_eq!(grader(result, name)["outcome"], "ungraded", "{result}");
    assert_eq!(grader(result, name).get("passed"), None, "{result}");
    grader(result, name)["reason"].as_str().unwrap()
}

#[track_caller]
fn has(text: &str, part: &str) {
    assert!(text.contains(part), "`{part}` is not in: {text}");
}

#[test]
fn what_is_known_of_protected_files_stays_known_without_a_workspace() {
    let project = project("echo evil > tests/x; echo fine > src");
    project.write("cases/fix/tests/x", "right\n");
    let graders = "graders: [{output: {equals: ok}}, {command: {run: 'true', diagnostic: true}}]";
    project.case("a", &format!("workspace: {{copy: fix, protect: [tests/**], protect-strict: true}}\n{graders}"), "");
    let run = run(&project, "never", 1);
    project.write("cases/fix/other", "x\n");
    let report = grade(&project, &run, &[], 1);
    assert_eq!((&only(&report)["verdict"], &only(&report)["score"]), (&"fail".into(), &0.0.into()));
    has(reason(only(&report), "command"), "has changed since");
    // Nothing was restored, so the warning does not claim it.
    let warnings = only(&report)["warnings"].to_string();
    has(&warnings, "the agent changed the protected file tests/x\"");
    assert!(!warnings.contains("put back"), "{warnings}");
    // A derived run reports it as well.
    let derived = report["run"].as_str().unwrap().to_owned();
    assert_eq!(only(&grade(&project, &derived, &[], 1))["warnings"], only(&report)["warnings"]);
}

#[test]
fn at_most_twenty_protected_files_are_named_again_and_the_others_counted() {
    let project = project("for n in $(seq 10 34); do echo evil > tests/$n; done; echo fine > src");
    project.write("cases/fix/tests/x", "right\n");
    project.case("a", "workspace: {copy: fix, protect: [tests/**]}\ngraders: [{output: {equals: ok}}]", "");
    for keep in ["always", "never"] {
        let run = run(&project, keep, 0);
        let report = grade(&project, &run, &[], 0);
        let warnings = only(&report)["warnings"].as_array().unwrap().clone();
        let of = |code: &str| warnings.iter().filter(|it| it["code"] == code).cloned().collect::<Vec<Value>>();
        assert_eq!(of("protected_file").len(), 20, "{keep}: {report}");
        let more: Vec<Value> = of("protected_files").iter().map(|it| it["more"].clone()).collect();
        assert_eq!(more, [5], "{keep}: {report}");
        assert_eq!(of("protected_files")[0]["text"], "the agent changed 5 more protected files", "{keep}: {report}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn a_script_of_several_grades_does_not_shift_the_graders_behind_it() {
    let project = project("mkdir -p target; echo built > target/out");
    project.write("cases/fix/.gitignore", "target/\n");
    project.write("cases/judge.sh", "test -e target/out && p=true || p=false\n\
         echo '[{\"name\": \"one\", \"passed\": '$p'}, {\"name\": \"two\", \"passed\": '$p'}, {\"name\": \"three\", \"passed\": true}]'\n");
    let graders = "[{script: {run: [sh, judge.sh]}}, {output: {equals: ok}}, {files: {exists: [target/out]}}]";
    project.case("a", &format!("workspace: {{copy: fix}}\ngraders: {graders}"), "");
    let run = run(&project, "never", 0);
    let report = grade(&project, &run, &[], 3);
    for name in ["one", "two", "files"] {
        has(reason(only(&report), name), "failed in an incomplete workspace");
    }
    assert_eq!(
        (&grader(only(&report), "three")["passed"], &grader(only(&report), "output")["passed"]),
        (&true.into(), &true.into())
    );
}

#[test]
fn a_setup_that_fails_today_makes_nobody_pass_or_fail_in_a_kept_workspace() {
    let project = project("echo evil > tests/x; echo fine > src");
    project.write("cases/fix/tests/x", "right\n");
    project.write("here", "");
    let here = project.path("here").display().to_string();
    let with = |protect: &str, run: &str| {
        let workspace =
            format!("workspace: {{copy: fix, setup: ['test -e {here} && echo home > $HOME/kept']{protect}}}");
        let graders = format!("graders: [{{command: {{run: '{run}'}}}}, {{files: {{contains: {{src: fine}}}}}}]");
        project.case("a", &format!("{workspace}\n{graders}"), "");
    };
    with("", "grep -q home $HOME/kept");
    let run = run(&project, "always", 0);
    assert!(!only(&grade(&project, &run, &[], 0))["warnings"].to_string().contains("not whole"));
    std::fs::remove_file(project.path("here")).unwrap();
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "the files that setup creates beside it are missing: setup command");
    assert_eq!(grader(only(&report), "files")["passed"], true);
    // The missing parts are reported on standard error.
    project
        .evals(&["grade", &run])
        .exits(3)
        .says("note: 1 trial: the workspace was kept and is not whole: the files that setup creates");
    // Changed protected files are not judged: unrestored, they could make the trial fail or pass.
    for test in ["grep -q right tests/x", "grep -q evil tests/x"] {
        with(", protect: [tests/**]", test);
        let report = grade(&project, &run, &[], 3);
        has(reason(only(&report), "command"), "protected files could not be put back: setup command");
    }
    // The same holds for a source that has changed since.
    project.write("here", "");
    project.write("cases/fix/tests/x", "another\n");
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "protected files could not be put back: it was not kept");
    with("", "! grep -q home $HOME/kept");
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "beside it may differ");
}

#[test]
fn ignored_files_that_the_agent_deleted_or_made_are_unknown_in_a_workspace_made_again() {
    let project = project("rm -rf out; mkdir -p target; echo built > target/out");
    project.write("cases/fix/.gitignore", "out/\ntarget/\n");
    project.write("cases/fix/out/a", "old\n\n\n");
    // The same number of bytes exists in the end, but absent files are still known to differ from the original.
    let graders =
        "graders: [{command: {run: 'test ! -e out/a'}}, {files: {absent: [target/out], exists: [.gitignore]}}]";
    project.case("a", &format!("workspace: {{copy: fix}}\n{graders}"), "");
    project.write("cases/fix/out/b", "more\n");
    let first = run(&project, "never", 1);
    let report = grade(&project, &first, &[], 3);
    has(reason(only(&report), "command"), "there were 6 bytes of them, and now there are 11");
    has(reason(only(&report), "files"), "found no file that must be absent in an incomplete workspace");

    // All of them are gone.
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.write("agent.sh", "rm -rf out\necho ok\n");
    let second = run(&project, "never", 0);
    let report = grade(&project, &second, &[], 3);
    has(reason(only(&report), "command"), "there were 0 bytes of them, and now there are 11");
}

#[test]
fn a_kept_workspace_that_lost_something_is_told() {
    let mut project = project("echo \"token $SOME_TOKEN\" > note");
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    let agent = project.path("agent.sh").display().to_string();
    let line = format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\nenv: {{pass: [SOME_TOKEN]}}");
    project.harness("sh", &line);
    project.case("a", "graders: [{command: {run: grep -q a-secret note}}]", "");
    let run = run(&project, "always", 0);
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "command"), "1 file of the kept workspace held secrets");
    let said = project.evals(&["grade", &run]).exits(3);
    said.says("note: 1 trial: the workspace was kept and is not whole: 1 file of the kept workspace held secrets and was masked");
    // Graded once more, it is reported once.
    let derived = report["run"].as_str().unwrap().to_owned();
    let again = grade(&project, &derived, &[], 3);
    assert_eq!(only(&again)["warnings"], only(&report)["warnings"]);
}

#[test]
fn a_script_judges_a_single_trace_in_an_empty_folder_and_not_a_run_whose_workspace_is_lost() {
    let project = project("echo new > made");
    let judge = "import json, os, sys\n\
                 told = json.load(sys.stdin)\n\
                 alone = 'workspace' not in told and 'patch' not in told and os.listdir('.') == []\n\
                 print(json.dumps({'passed': told['output'] == 'ok', 'reason': f'alone: {alone}, PATH: {\"PATH\" in os.environ}'}))\n";
    project.write("cases/judge.py", judge);
    project.write("cases/fix/a", "x\n");
    project.case("a", "workspace: {copy: fix}\ngraders: [{script: {run: [python3, judge.py]}}]", "");
    let run = run(&project, "never", 0);
    let trace = format!(".evals/runs/{run}/trials/a/sh/default/1/trace.jsonl");
    project.write("lone.jsonl", &project.read(&trace));
    let ran = project.evals(&["grade", "lone.jsonl", "--case", "cases/a.yaml", "--format", "json"]).exits(0);
    assert_eq!(ran.err, "", "nothing is missing");
    let report = ran.json();
    assert_eq!(grader(only(&report), "script")["reason"], "alone: True, PATH: True");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    // The graders that have no workspace are reported.
    project.case("b", "graders: [{script: {run: [python3, judge.py]}}, {files: {exists: [made]}}]", "");
    let ran = project.evals(&["grade", "lone.jsonl", "--case", "cases/b.yaml"]).exits(3);
    ran.says("graders that need the workspace could not grade: a single trace has no workspace");
    std::fs::remove_file(project.path("cases/b.yaml")).unwrap();

    project.write("cases/fix/other", "x\n");
    let report = grade(&project, &run, &[], 3);
    has(reason(only(&report), "script"), "could not be graded, because the workspace is missing: it was not kept, and");
}

#[test]
fn a_single_trace_is_masked_by_what_the_manifest_of_its_harness_and_the_servers_of_its_case_call_secret() {
    let mut project = Project::new();
    project.demo("mine", "env: {secret: [PLAIN_NAME]}");
    let says = "steps: [{say: value-of-the-plain-name and value-of-a-header}]";
    project.case("a", "graders: [{output: {no-secrets: true}}]", says);
    project.evals(&["run", "--harness", "mine"]).exits(0);
    let trace = format!("{}/trials/a/mine/default/1/trace.jsonl", project.run_folder());
    project.write("lone.jsonl", &project.read(&trace));
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    let servers = "mcp-servers: [{type: http, name: s, url: 'http://127.0.0.1:9', headers: [{name: Authorization, value: value-of-a-header}]}]";
    project.case("a", &format!("graders: [{{output: {{no-secrets: true}}}}]\n{servers}"), "");
    project.env("PLAIN_NAME", "value-of-the-plain-name");
    project.evals(&["grade", "lone.jsonl", "--case", "cases/a.yaml"]).exits(1);
    for (path, bytes) in project.files(".evals") {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("value-of-the-plain-name"), "{path}: {text}");
        assert!(!path.ends_with("trace.jsonl") || !text.contains("value-of-a-header"), "{path}: {text}");
    }
}

#[test]
fn an_ignored_place_that_changed_is_known_when_graded_again() {
    let project = Project::new();
    project.write("cases/fix/.gitignore", "target/\n");
    project.write("cases/fix/target/old", "1\n");
    // A file of the same size is compared by its content.
    for (case, command) in [("a", "echo n > target/new"), ("same", "echo 2 > target/old")] {
        let steps = format!("steps: [{{run: {{command: '{command}'}}}}, {{say: ok}}]");
        project.case(case, "workspace: {copy: fix}\ngraders: [{scope: {never: ['target/**']}}]", &steps);
    }
    for keep in ["never", "always"] {
        project.evals(&["run", "--keep-workspace", keep]).exits(3);
        project.evals(&["grade", "latest"]).exits(3).says("`target` changed and is not measured");
    }
}

#[test]
fn a_grader_that_failed_in_the_trial_does_not_pass_in_an_incomplete_workspace() {
    let project = Project::new();
    project.case(
        "a",
        "workspace: {files: {'.gitignore': \"*.log\\n\"}}\ngraders: [{command: {run: 'test ! -e crash.log'}}]",
        "steps: [{run: {command: 'echo x > crash.log'}}]",
    );
    project.evals(&["run", "--keep-workspace", "never"]).exits(1);
    let ran = project.evals(&["grade", "latest", "--format", "json"]).exits(3);
    let grade = &ran.json()["results"][0]["grades"][0];
    assert_eq!(grade["outcome"], "ungraded", "{grade}");
    assert!(
        grade["reason"].as_str().unwrap().starts_with("failed in the trial and passed in an incomplete workspace"),
        "{grade}"
    );
}

#[test]
#[ignore = "slow: runs many trials"]
fn no_grader_passes_by_content_that_is_left_out_or_masked() {
    let works = "printf BAD | dd of=data conv=notrunc 2> /dev/null; echo \"key=$SOME_TOKEN\" > note; echo s > small";
    let mut project = project(works);
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    let agent = project.path("agent.sh").display().to_string();
    let line = format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin\nenv: {{pass: [SOME_TOKEN]}}");
    project.harness("sh", &line);
    let workspace = "workspace: {setup: ['yes G | head -c 17000000 > data']}\n";
    let graders = "graders:\n\
                   - files: {name: large, matches: {data: '^G'}}\n\
                   - files: {name: masked, matches: {note: 'redacted'}}\n\
                   - command: {name: gone, run: '! grep -rq a-secret-of .'}\n\
                   - files: {name: apart, exists: [note, small], contains: {small: s}}";
    for keep in ["never", "always"] {
        project.case("a", &format!("{workspace}graders: [{{output: {{equals: ok}}}}]"), "");
        let first = run(&project, keep, 0);
        project.case("a", &format!("{workspace}{graders}"), "");
        let report = grade(&project, &first, &[], 3);
        let result = only(&report);
        // The kept workspace has the content of the large file.
        let large = if keep == "never" { "passed in an incomplete" } else { "failed in an incomplete" };
        has(reason(result, "large"), large);
        for name in ["masked", "gone"] {
            has(reason(result, name), "passed in an incomplete workspace");
        }
        assert_eq!(grader(result, "apart")["passed"], true, "{keep}: {result}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn links_to_the_old_workspace_are_moved_and_a_file_that_names_it_is_in_doubt() {
    let project = project("ln -s \"$PWD/a.txt\" lnk");
    let workspace = "workspace: {files: {a.txt: hello}}\n";
    let links = "graders: [{files: {contains: {lnk: hello}}}, {command: {run: grep -q hello lnk}}]";
    for keep in ["always", "never"] {
        project.case("a", &format!("{workspace}{links}"), "");
        let first = run(&project, keep, 0);
        assert_eq!(only(&grade(&project, &first, &[], 0)).get("was"), None, "{keep}");
        project.case("a", &format!("{workspace}graders: [{{command: {{run: '! test -e lnk'}}}}]"), "");
        let report = grade(&project, &first, &[], 1);
        assert_eq!(only(&report)["verdict"], "fail", "{keep}: {report}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
    project.write("agent.sh", "echo \"cat $PWD/a.txt\" > run.sh\necho ok\n");
    let commands =
        "graders: [{command: {run: sh run.sh}}, {command: {name: other, run: 'true'}}, {files: {exists: [run.sh]}}]";
    project.case("a", &format!("{workspace}{commands}"), "");
    for keep in ["always", "never"] {
        let first = run(&project, keep, 0);
        let report = grade(&project, &first, &[], 3);
        has(reason(only(&report), "command"), "failed in an incomplete workspace (`run.sh` names the path");
        has(reason(only(&report), "other"), "passed in an incomplete workspace (`run.sh` names the path");
        assert_eq!(grader(only(&report), "files")["passed"], true, "{keep}: {report}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn what_the_patch_beside_a_single_trace_cannot_hold_is_known_from_its_result_or_unknown() {
    let project = Project::new();
    let files = "workspace: {files: {.gitignore: 'ign/', ign/x: '1'}";
    let strict =
        format!("{files}, protect: ['ign/**'], protect-strict: true}}\ngraders: [{{output: {{contains: ok}}}}]");
    let with = |graders: &str| format!("{files}}}\ngraders: [{graders}]");
    let cases = [
        ("pipe", "mkfifo p", with("{diff: {none: true}}"), "ungraded"),
        ("ignored", "echo 2 > ign/x", with("{scope: {never: ['ign/**']}}"), "ungraded"),
        ("repository", "git init -q .", with("{scope: {never: [.git]}}"), "ungraded"),
        ("strict", "echo 2 > ign/x", strict.clone(), "fail"),
        ("calm", "echo 1 > a", with("{diff: {only: [a]}}, {scope: {never: [b]}}"), "pass"),
        ("untouched", "echo 1 > a", strict.clone(), "pass"),
    ];
    for (case, command, keys, _) in &cases {
        project.case(case, keys, &format!("steps: [{{run: {{command: '{command}'}}}}, {{say: ok}}]"));
    }
    project.evals(&["run"]).exits(1);
    let run = project.run_folder();
    for (case, _, _, verdict) in cases {
        let trial = format!("{run}/trials/{case}/demo/default/1");
        let result: Value = serde_json::from_str(&project.read(&format!("{trial}/result.json"))).unwrap();
        assert_eq!(result["verdict"], verdict, "{case}: {result}");
        let file = format!("cases/{case}.yaml");
        let of = |trace: String| project.evals(&["grade", &trace, "--case", &file, "--format", "json"]);
        let beside = of(format!("{trial}/trace.jsonl")).json();
        assert_eq!(only(&beside)["verdict"], verdict, "{case}: {beside}");
        // Without its result, only the patch is known.
        for name in ["trace.jsonl", "workspace.patch"] {
            project.write(&format!("apart/{case}/{name}"), &project.read(&format!("{trial}/{name}")));
        }
        let apart = of(format!("apart/{case}/trace.jsonl")).exits(3).json();
        assert_eq!(only(&apart)["verdict"], "ungraded", "{case}: {apart}");
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn a_setup_that_makes_other_files_now_makes_no_workspace_of_the_trial() {
    for (keep, setup, test, says) in [
        (
            "never",
            // The paths of the trial, what Python compiles, and lists of digests differ each time.
            "pwd > where; ln -s $PWD/where l; mkdir __pycache__; date +%N > __pycache__/a.pyc; date +%N > e; \
             echo $HOME $TMPDIR >> e; mkdir -p lib/a-1.dist-info; date +%N > lib/a-1.dist-info/RECORD; \
             truncate -s 17000000 large; echo $PWD >> large; date +%N >> large; cp LIB lib.sh",
            "sh lib.sh",
            "its setup commands make other files now than in the trial",
        ),
        (
            "never",
            "cp LIB ../setup.cfg",
            "sh ../setup.cfg",
            "its setup commands make other files now than in the trial",
        ),
        ("always", "cp LIB ../setup.cfg", "sh ../setup.cfg", "the files that setup creates beside it may differ"),
        (
            "always",
            "cp LIB lib.sh; cp LIB $HOME/lib.sh",
            "sh $HOME/lib.sh",
            "the files that setup creates beside it may differ",
        ),
    ] {
        let project = project("echo work > mine");
        project.write("lib", "exit 1\n");
        let setup = setup.replace("LIB", &project.path("lib").display().to_string());
        let graders = format!("graders: [{{command: {{run: '{test}'}}}}, {{diff: {{created: [mine]}}}}]");
        project.case("a", &format!("workspace: {{setup: ['{setup}']}}\n{graders}"), "");
        let run = run(&project, keep, 1);
        assert_eq!(only(&grade(&project, &run, &[], 1)).get("was"), None, "{keep}");
        project.write("lib", "exit 0\n");
        let report = grade(&project, &run, &[], 3);
        has(reason(only(&report), "command"), says);
        assert_eq!(grader(only(&report), "diff")["passed"], true, "{keep}");
        // A derived run knows it, too, and runs of older versions do not.
        let derived = report["run"].as_str().unwrap().to_owned();
        has(reason(only(&grade(&project, &derived, &[], 3)), "command"), says);
        project.without_digests(&format!(".evals/runs/{run}"));
        assert_eq!(only(&grade(&project, &run, &[], 0))["verdict"], "pass", "{keep}");
    }
}

#[test]
fn a_setup_that_varies_names_the_way_out_that_helps() {
    let project = project("true");
    let graders = "graders: [{command: {run: 'true'}}]";
    project.case("a", &format!("workspace: {{setup: ['date +%N > stamp']}}\n{graders}"), "");
    let first = run(&project, "never", 0);
    has(reason(only(&grade(&project, &first, &[], 3)), "command"), "name them in `workspace.ignore` and run the case");
    project.case("a", &format!("workspace: {{setup: ['date +%N > stamp'], ignore: [stamp]}}\n{graders}"), "");
    has(reason(only(&grade(&project, &first, &[], 3)), "command"), "so only a new run helps");
    let second = run(&project, "never", 0);
    grade(&project, &second, &[], 0);
}

#[test]
fn a_file_of_setup_that_names_the_old_place_puts_commands_of_a_kept_workspace_in_doubt() {
    let project = project("echo BUG >> a.txt");
    let graders = "graders: [{command: {run: '! sh lint'}}, {files: {exists: [lint]}}]";
    let setup = "setup: ['echo \"grep -q BUG $PWD/a.txt\" > lint']";
    project.case("a", &format!("workspace: {{files: {{a.txt: fine}}, {setup}}}\n{graders}"), "");
    let run = run(&project, "always", 1);
    let trace = format!(".evals/runs/{run}/trials/a/sh/default/1/trace.jsonl");
    let alone = project.evals(&["grade", &trace, "--case", "cases/a.yaml", "--format", "json"]).exits(3).json();
    for report in [grade(&project, &run, &[], 3), alone] {
        has(reason(only(&report), "command"), "`lint` names the path of the workspace in the trial");
        assert_eq!(grader(only(&report), "files")["passed"], true, "{report}");
    }
}

#[test]
fn hidden_files_that_the_case_does_not_have_any_more_are_not_in_a_kept_workspace() {
    let graders = "hidden: a.hidden\ngraders: [{command: {run: sh check/a.sh}}]";
    for keep in ["always", "never"] {
        let project = project("true");
        project.write("cases/a.hidden/check/a.sh", "test -e report\n");
        project.write("cases/a.hidden/report", "a sample, by mistake\n");
        project.case("a", graders, "");
        let run = run(&project, keep, 0);
        std::fs::remove_file(project.path("cases/a.hidden/report")).unwrap();
        let report = grade(&project, &run, &[], 1);
        assert_eq!(grader(only(&report), "command")["passed"], false, "{keep}: {report}");
        assert!(!only(&report)["warnings"].to_string().contains("not whole"), "{keep}: {report}");
        let derived = report["run"].as_str().unwrap().to_owned();
        grade(&project, &derived, &[], 1);
    }
}

#[test]
fn files_of_the_agent_that_old_hidden_files_replaced_are_unknown() {
    let project = project("echo wrong > made; echo x > other");
    project.write("cases/a.hidden/check/a.sh", "grep -q right made\n");
    project.write("cases/a.hidden/made", "right\n");
    let graders = "graders: [{command: {run: sh check/a.sh}}, {files: {name: made, contains: {made: right}}}, \
                   {files: {name: other, contains: {other: x}}}]";
    project.case("a", &format!("hidden: a.hidden\n{graders}"), "");
    let run = run(&project, "always", 0);
    std::fs::remove_file(project.path("cases/a.hidden/made")).unwrap();
    let report = grade(&project, &run, &[], 3);
    for name in ["command", "made"] {
        has(reason(only(&report), name), "the hidden files were others in the trial");
    }
    assert_eq!(grader(only(&report), "other")["passed"], true);
}

#[test]
fn what_was_measured_or_restored_by_other_keys_of_the_case_is_unknown() {
    let files = "workspace: {files: {a.txt: x, tests/t: right}";
    let ignored = ", ignore: ['gen/**', 'tests/**']";
    let strict = ", protect: ['tests/**'], protect-strict: true";
    let cases = [
        ("none", ignored, "", "{diff: {none: true}}", "another `workspace.ignore`"),
        ("created", ignored, "", "{diff: {created: [gen/x]}}", "another `workspace.ignore`"),
        ("strict", ignored, strict, "{output: {contains: ok}}", "whether the agent changed protected files is unknown"),
        ("restored", ", protect: ['tests/**']", "", "{files: {contains: {tests/t: right}}}", "`workspace.protect`"),
    ];
    for keep in ["always", "never"] {
        let project = project("mkdir gen; echo 1 > gen/x; echo evil > tests/t");
        for (case, then, _, _, _) in cases {
            project.case(case, &format!("{files}{then}}}\ngraders: [{{output: {{contains: ok}}}}]"), "");
        }
        let run = run(&project, keep, 0);
        for (case, _, now, grader, _) in cases {
            project.case(case, &format!("{files}{now}}}\ngraders: [{grader}]"), "");
        }
        let report = grade(&project, &run, &[], if keep == "always" { 3 } else { 1 });
        let results = report["results"].as_array().unwrap();
        for (case, _, _, _, says) in cases {
            let result = results.iter().find(|result| result["case"] == case).unwrap();
            // The patch has what the agent wrote to the file that was restored.
            if (keep, case) == ("never", "restored") {
                assert_eq!(result["verdict"], "fail", "{result}");
                continue;
            }
            assert_eq!(result["verdict"], "ungraded", "{keep} {case}: {result}");
            has(&result["warnings"].to_string(), says);
        }
        // A trace in the folder of its run has the keys of that run.
        for (case, ..) in cases {
            let trace = format!(".evals/runs/{run}/trials/{case}/sh/default/1/trace.jsonl");
            let file = format!("cases/{case}.yaml");
            let alone = project.evals(&["grade", &trace, "--case", &file, "--format", "json"]).exits(3).json();
            assert_eq!(only(&alone)["verdict"], "ungraded", "{keep} {case}: {alone}");
        }
    }
}

//! Whatever agents do to their workspaces, the trial has its true result, and nothing else is changed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use crate::project::{MACHINE, Project, not_run};

/// Makes a project whose agent `sh` runs this script in the workspace.
fn project(script: &str) -> Project {
    let project = Project::new();
    project.write("agent.sh", &format!("{script}\necho ok\n"));
    let agent = project.path("agent.sh");
    project.harness("sh", &format!("adapter: output-only\ncommand: [sh, {}]\nprompt-via: stdin", agent.display()));
    project
}

const TRIAL: &str = "a/sh/default/1";

fn warnings(project: &Project) -> String {
    project.result(TRIAL)["warnings"].to_string()
}

#[test]
fn a_pipe_that_an_agent_made_leaves_graders_of_changes_ungraded() {
    let project = project("mkfifo answer.fifo");
    let keys = "graders: [{scope: {never: ['*.fifo']}}, {diff: {none: true}}, {diff: {only: ['src/**']}}]";
    project.case("a", keys, "");
    project.evals(&["run", "--harness", "sh"]).exits(3);
    let told = |result: &serde_json::Value| {
        let grades = result["grades"].as_array().unwrap().clone();
        let of = |grade: &serde_json::Value| (grade["outcome"].clone(), grade["reason"].to_string());
        for (outcome, reason) in [0, 1, 2].map(|n| of(&grades[n])) {
            assert!(outcome == "ungraded" && reason.contains("`answer.fifo` changed and is not measured"), "{result}");
        }
    };
    told(&project.result(TRIAL));
    project.evals(&["grade", "latest"]).exits(3);
    let run = project.runs().pop().unwrap();
    let again = project.read(&format!(".evals/runs/{run}/trials/{TRIAL}/result.json"));
    told(&serde_json::from_str(&again).unwrap());
}

#[test]
fn an_ignored_folder_beside_more_than_a_thousand_ignored_files_may_have_changed() {
    let project = Project::new();
    let run = "for n in $(seq 1000); do : > $n.log; done; mkdir pkg/dist; echo x > pkg/dist/evil.js";
    let keys = "workspace: {files: {'.gitignore': \"*.log\\ndist/\\n\", pkg/a: x, go.sh: '@'}}\ninteraction: auto-reject\n\
                graders: [{scope: {never: ['pkg/dist/**']}}, {permissions: {respected: true}}]";
    let steps = "steps: [{write: {path: pkg/dist/evil.js, text: x, ask: true}}, {run: {command: sh go.sh}}, {say: ok}]";
    project.case("a", &keys.replace('@', run), steps);
    project.evals(&["run", "--keep-workspace", "never"]).exits(3);
    let told = |result: &serde_json::Value, place: &str| {
        let told = format!("{place} changed and is not measured");
        for grade in result["grades"].as_array().unwrap() {
            let reason = grade["reason"].as_str().unwrap();
            assert!(grade["outcome"] == "ungraded" && reason.contains(&told), "{grade}");
        }
    };
    let result = project.result("a/demo/default/1");
    told(&result, "`pkg/dist`");
    let recorded = &result["beside_patch"];
    assert_eq!((recorded["unnamed"].as_u64(), recorded.get("unmeasured")), (Some(1), None), "{recorded}");
    let report = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    told(&report["results"][0], "an ignored file or folder that `result.json` does not name");
}

#[test]
fn an_ignored_file_that_keeps_its_size_is_compared_by_its_content() {
    let setup = "mkdir dist other; seq 30000 > dist/bundle.js; cp dist/bundle.js other";
    let keys = format!(
        "workspace: {{files: {{'.gitignore': \"dist/\\nother/\\n\"}}, setup: ['{setup}']}}\n\
         graders: [{{scope: {{never: ['dist/**']}}}}, {{scope: {{never: ['other/**']}}}}]"
    );
    for project in [Project::new(), Project::on_disk()] {
        let cases = [
            ("edited", "sed -i s/99/88/g dist/bundle.js", None),
            ("empty", ": > dist/empty", None),
            ("same", "cp dist/bundle.js x; cat x > dist/bundle.js", Some(true)),
        ];
        for (case, command, _) in cases {
            project.case(case, &keys, &format!("steps: [{{run: {{command: '{command}'}}}}, {{say: ok}}]"));
        }
        project.evals(&["run"]).exits(3);
        for (case, _, passed) in cases {
            let grades = project.result(&format!("{case}/demo/default/1"))["grades"].clone();
            let of = |n: usize| grades[n]["passed"].as_bool();
            assert_eq!((of(0), of(1)), (passed, Some(true)), "{case}: {grades}");
        }
    }
}

#[test]
fn a_pipe_that_setup_left_in_an_ignored_folder_is_no_change() {
    let project = Project::new();
    let keys = "workspace: {files: {.gitignore: build/}, setup: ['mkdir build; mkfifo build/p']}\n\
                graders: [{diff: {none: true}}, {scope: {never: ['build/**']}}]";
    project.case("a", keys, "steps: [{say: ok}]");
    project.evals(&["run"]).exits(0);
}

#[test]
fn lists_of_changed_files_may_lack_those_of_a_repository_in_a_folder() {
    let project = Project::new();
    let check = "grep -q '\"unmeasured\":\\[\"src/.git\"\\]' && echo '{\"passed\": true}'\n";
    project.write("cases/check.sh", check);
    let keys = "workspace: {files: {src/a.js: '1'}}\n\
                graders:\n\
                - expr: {cel: files.created.size() == 0 && files.changed.size() == 0}\n\
                - expr: {cel: metrics.changed_files == 0}\n\
                - expr: {cel: metrics.changed_files >= 0 && files.unmeasured.size() == 1}\n\
                - script: {run: [sh, check.sh]}\n";
    project.case("a", keys, "steps: [{run: {command: 'mkdir src/.git; echo x > src/.git/evil.js'}}, {say: ok}]");
    project.evals(&["run", "--keep-workspace", "never"]).exits(3);
    let told = |result: &serde_json::Value| {
        let grades = &result["grades"];
        let lists = "`files.created`, `files.changed` may lack files";
        for (n, why) in [(0, lists), (1, "`metrics.changed_files` (>= 0)")] {
            let reason = grades[n]["reason"].as_str().unwrap();
            let is_told = reason.contains(why) && reason.contains("`src/.git` changed and is not measured");
            assert!(grades[n]["outcome"] == "ungraded" && is_told, "{reason}");
        }
        assert_eq!(grades[2]["passed"], true, "{grades}");
        assert!(result["metrics"]["lower_bounds"].to_string().contains("changed_files"), "{result}");
    };
    let result = project.result("a/demo/default/1");
    told(&result);
    assert_eq!(result["grades"][3]["passed"], true, "{result}");
    let report = project.evals(&["grade", "latest", "--format", "json"]).exits(3).json();
    told(&report["results"][0]);
}

#[test]
fn other_permission_bits_are_a_change_and_empty_folders_are_named() {
    let project = Project::new();
    let keys = "workspace: {files: {a.txt: '1', o/x: '1', .gitignore: \"target/\\n*.pyc\\n\"}, setup: ['chmod 644 a.txt; mkdir -p d/e']}\n\
                graders: [{diff: {none: true}}, {diff: {only: ['src/**', o/x]}}, {scope: {only: ['src/**', o/x]}}, \
                {scope: {never: ['**']}}]";
    let (yes, no) = (Some(true), Some(false));
    let cases = [
        ("made", "mkdir q", [yes; 4], "nothing changed; not a file, but changed: `q` was created as an empty folder"),
        ("gone", "rmdir d/e", [yes; 4], "`d/e` was deleted as an empty folder"),
        ("bits", "chmod 640 a.txt", [no; 4], "given other permission bits"),
        ("folder-bits", "chmod 711 d", [yes; 4], "`d` was given other permission bits"),
        ("usual-bits", "chmod 664 a.txt", [yes; 4], ""),
        // Ignored folders, and folders that hold ignored files only.
        ("ignored", "mkdir -p target/tmp tests; touch tests/a.pyc", [yes; 4], ""),
        // A folder whose file was deleted is in the list of files.
        ("emptied", "rm o/x", [no, yes, yes, no], ""),
    ];
    for (case, command, _, _) in cases {
        project.case(case, keys, &format!("steps: [{{run: {{command: '{command}'}}}}, {{say: ok}}]"));
    }
    let run = project.evals(&["run", "--keep-workspace", "never", "--reporter", "json"]).exits(1).json();
    let graded = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    for (case, _, expected, why) in cases {
        for report in [&run, &graded] {
            let result = report["results"].as_array().unwrap().iter().find(|result| result["case"] == case).unwrap();
            let grades = result["grades"].as_array().unwrap();
            let passed: Vec<Option<bool>> = grades.iter().map(|grade| grade["passed"].as_bool()).collect();
            assert_eq!(passed, expected, "{case}: {grades:#?}");
            assert!(grades[0]["reason"].as_str().unwrap().contains(why), "{case}: {grades:#?}");
        }
    }
}

#[test]
fn the_graders_of_a_trial_see_more_permission_bits_than_its_result_names() {
    let project = Project::new();
    let setup = "mkdir config; for n in $(seq 1001); do echo > config/$n; done; chmod 644 config/*";
    let keys = format!(
        "workspace: {{files: {{a.txt: '1'}}, setup: ['{setup}']}}\n\
         graders: [{{diff: {{none: true}}}}, {{scope: {{never: [config]}}}}, {{scope: {{never: [config/999]}}}}, \
         {{scope: {{never: [other]}}}}]"
    );
    project.case("a", &keys, "steps: [{run: {command: 'chmod 600 config/*'}}, {say: ok}]");
    let run = project.evals(&["run", "--keep-workspace", "never", "--reporter", "json"]).exits(1).json();
    let graded = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    let passed = |report: &serde_json::Value| {
        let grades = report["results"][0]["grades"].as_array().unwrap();
        grades.iter().map(|grade| grade["passed"].as_bool()).collect::<Vec<_>>()
    };
    let no = Some(false);
    assert_eq!(passed(&run), [no, no, no, Some(true)], "{run:#}");
    // The last of the names in their order is in no list.
    assert_eq!(passed(&graded), [no, no, None, None], "{graded:#}");
}

#[test]
fn protected_files_are_put_back_and_nothing_outside_is_touched() {
    for harm in ["rm -rf tests; ln -s \"$PRECIOUS\" tests", "rm -rf tests; echo junk > tests", "rm -rf tests"] {
        let mut project = project(harm);
        let precious = project.path("precious");
        project.env("PRECIOUS", precious.to_str().unwrap());
        project.write("precious/x.py", "mine\n");
        project.write("precious/made.py", "mine\n");
        project.write("cases/fix/tests/x.py", "right\n");
        let keys = "env: {PRECIOUS: '{}'}\nworkspace: {copy: fix, protect: [tests/**]}\n\
                    graders: [{command: {run: 'test ! -L tests && test \"$(cat tests/x.py)\" = right'}}]";
        project.case("a", &keys.replace("{}", precious.to_str().unwrap()), "");
        project.evals(&["run", "--harness", "sh"]).exits(0);
        assert!(warnings(&project).contains("tests/x.py"), "{}", warnings(&project));
        assert_eq!(project.read("precious/x.py"), "mine\n", "{harm}");
        assert_eq!(fs::read_dir(&precious).unwrap().count(), 2, "{harm}");
    }
}

#[test]
fn protected_links_ignored_files_and_odd_names_are_put_back() {
    let project = project(
        "rm link; ln -s /etc/passwd link; echo evil > a.lock; echo built > b.lock; for f in n*; do echo evil > $f; done",
    );
    project.write("cases/fix/x.py", "right\n");
    project.write("cases/fix/.gitignore", "*.lock\n");
    project.write("cases/fix/a.lock", "right\n");
    symlink("x.py", project.path("cases/fix/link")).unwrap();
    let odd = project.path("cases/fix").join(std::ffi::OsStr::from_bytes(b"n\xff.py"));
    fs::write(odd, "right\n").unwrap();
    let keys = "workspace: {copy: fix, protect: [link, '*.lock', '*.py'], protect-strict: true}\n\
                graders: [{command: {run: 'cat link a.lock n*; readlink link; cat b.lock; exit 1', exit: 1}}]";
    project.case("a", keys, "");
    project.evals(&["run", "--harness", "sh", "--keep-workspace", "always"]).exits(1);
    let folder = project.run_folder();
    let kept = project.path(&format!("{folder}/trials/{TRIAL}/workspace"));
    assert_eq!(fs::read_link(kept.join("link")).unwrap(), std::path::Path::new("x.py"));
    assert_eq!(fs::read_to_string(kept.join("a.lock")).unwrap(), "right\n");
    assert_eq!(fs::read_to_string(kept.join("b.lock")).unwrap(), "built\n");
    assert_eq!(fs::read(kept.join(std::ffi::OsStr::from_bytes(b"n\xff.py"))).unwrap(), b"right\n");
    assert_eq!(project.result(TRIAL)["verdict"], "fail", "protect-strict");
    for name in ["file link;", "file a.lock;", "file n"] {
        assert!(warnings(&project).contains(name), "{name}: {}", warnings(&project));
    }
}

#[test]
fn a_protected_path_through_a_link_to_a_folder_or_as_a_pipe_is_a_new_file() {
    for (script, ignored, glob, link) in [
        ("mkdir t; ln -s t d; echo 1 > t/x", "", "d/x", "d"),
        ("mkdir t; ln -s t d; echo 1 > t/x", "d", "d/x", "d"),
        ("mkdir t; ln -s t d; echo 1 > t/x", "", "d/**", "d"),
        ("mkdir -p t d; ln -s ../t d/e; echo 1 > t/x.py", "", "d/e/*.py", "d/e"),
        ("mkdir -p z s; echo 1 > z/c.txt; ln -s ../z s/tests", "", "**/tests/**", "s/tests"),
        ("mkdir z; echo 1 > z/c.sh; ln -s z l", "", "*/c.sh", "l"),
        ("mkdir z; echo 1 > z/c; ln -s z spec", "", "{spec,specs}/**", "spec"),
        ("mkdir -p z/u; echo 1 > z/c.py; chmod 000 z/u; ln -s z l", "", "**/c.py", "l"),
        ("mkdir -p ~/o ~/p; echo 1 > ~/p/c.py; ln -s ~/p ~/o/x; ln -s ~/o l", "", "**/c.py", "l"),
        ("mkdir -p ~/o ~/p; echo 1 > ~/p/c.py; ln -s ~/p ~/o/x; ln -s ~/p ~/o/y; ln -s ~/o l", "", "l/y/*.py", "l"),
        ("mkdir ~/o; echo 1 > ~/o/y; ln -s . ~/o/x; ln -s ~/o l", "", "l/*/*/y", "l"),
        // A folder on the way of this link is made for the graders.
        ("mkdir z; echo 1 > z/c.py; ln -s ../graders-home/../workspace/z l", "z", "**/c.py", "l"),
        ("mkfifo .env", ".env", ".env", ".env"),
        ("mkfifo d", "", "*", "d"),
    ] {
        let project = project(script);
        project.write("cases/fix/.gitignore", &format!("{ignored}\n"));
        project.case(
            "a",
            &format!(
                "workspace: {{copy: fix, protect: ['{glob}'], protect-strict: true}}\n\
                 graders: [{{command: {{run: 'test ! -e {link} && test ! -L {link}'}}}}]"
            ),
            "",
        );
        project.evals(&["run", "--harness", "sh"]).exits(1);
        let result = project.result(TRIAL);
        assert_eq!(result["verdict"], "fail", "{script} {glob}: {result}");
        assert_eq!(result["grades"][0]["value"], 1.0, "{script} {glob}: {result}");
        assert!(warnings(&project).contains(&format!("file {link};")), "{}", warnings(&project));
    }
    // A link that the original has, and a link that leads to no protected path, are none.
    for (script, glob) in [
        ("echo 1 > t/y", "d/**"),
        ("rm d; mkdir u; ln -s u d", "d/x"),
        ("mkdir u; echo 1 > u/r.txt; ln -s u a", "a/*.sh"),
        ("ln -s t e", "f/**"),
        ("mkdir -p ~/o/p; echo 1 > ~/o/p/y; ln -s .. ~/o/p/up; ln -s p ~/o/x; ln -s ~/o l; ln -s ~/o/p e", "**/*.py"),
    ] {
        let project = project(script);
        project.write("cases/fix/t/z", "1");
        symlink("t", project.path("cases/fix/d")).unwrap();
        let keys = format!("workspace: {{copy: fix, protect: ['{glob}'], protect-strict: true}}\n");
        project.case("a", &(keys + "graders: [{command: {run: 'true'}}]"), "");
        project.evals(&["run", "--harness", "sh"]).exits(0);
    }
    // A link of the original that leads elsewhere now is put back.
    let project = project("rm d; mkdir u; echo 1 > u/x; ln -s u d");
    project.write("cases/fix/t/z", "1");
    symlink("t", project.path("cases/fix/d")).unwrap();
    let keys = "workspace: {copy: fix, protect: [d/x], protect-strict: true}\n";
    project.case("a", &format!("{keys}graders: [{{command: {{run: 'test -e d/z'}}}}]"), "");
    project.evals(&["run", "--harness", "sh"]).exits(1);
    assert_eq!(project.result(TRIAL)["grades"][0]["value"], 1.0, "{}", project.result(TRIAL));
}

#[test]
fn folders_beyond_the_longest_path_are_cut_and_the_trial_has_its_result() {
    let names = "n=$(printf '%0200d' 1); for i in $(seq 30); do mkdir $n; cd $n; done; echo x > f";
    are_cut(names, "a-secret-of-the-user");
}

#[test]
#[ignore = "slow: 30,000 folders in one another"]
fn folders_without_end_are_cut_and_the_trial_has_its_result() {
    are_cut("python3 -c \"\nimport os\nfor i in range(30000):\n os.mkdir('d'); os.chdir('d')\n\"", "");
}

fn are_cut(script: &str, token: &str) {
    let mut project = project(script);
    if !token.is_empty() {
        project.env("SOME_TOKEN", token);
    }
    project.write("cases/fix/x", "x\n");
    project.case("a", "workspace: {copy: fix}\ngraders: [{command: {run: 'false'}}]", "");
    project.evals(&["run", "--harness", "sh"]).exits(1);
    assert_eq!(project.result(TRIAL)["verdict"], "fail");
    assert!(warnings(&project).contains("removed with all content"), "{}", warnings(&project));
    assert!(project.of_trial(TRIAL, "workspace/x").contains('x'));
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    project.evals(&["prune", "--keep", "0"]).exits(0);
    assert_eq!(project.runs(), Vec::<String>::new());
}

#[test]
#[ignore = "slow: reads gigabytes"]
fn huge_files_are_named_and_take_no_memory() {
    let mut project = project("truncate -s 3G x; truncate -s 1T y; truncate -s 3G old; printf 'a\\rb\\n' > small");
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    project.write("cases/fix/old", "old\n");
    let keys = "workspace: {copy: fix}\ngraders: [{diff: {created: [x, y, small], changed: [old]}}]";
    project.case("a", keys, "");
    let evals = project.command(&["run", "--harness", "sh", "--keep-workspace", "always"]);
    let mut limited = std::process::Command::new("sh");
    // The limit of usable memory, in KiB; stacks of threads count completely.
    limited.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh"]).arg(evals.get_program()).args(evals.get_args());
    limited.env_clear().envs(evals.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let done = limited.current_dir(project.path("")).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let patch = project.of_trial(TRIAL, "workspace.patch");
    assert!(patch.contains("# left out: x (created, 3221225472 bytes)"), "{patch}");
    assert!(patch.contains("# left out: old (changed, 4 bytes before and 3221225472 now)"), "{patch}");
    assert!(patch.contains("\n+a\rb\n"), "{patch}");
    assert!(warnings(&project).contains("content of 3 changed files"), "{}", warnings(&project));
}

#[test]
fn a_link_to_a_folder_that_may_be_entered_and_not_listed_is_removed() {
    let project =
        project("mkdir -p ~/o/x; echo 1 > ~/o/x/c.py; ln -s $PWD/check/e ~/o/x/a; chmod 111 ~/o/x; ln -s ~/o l");
    project.write("cases/fix/x", "x\n");
    project.write("cases/hidden/check/e", "42\n");
    let graders = "graders: [{command: {run: test ! -L l}}]";
    project.case("a", &format!("workspace: {{copy: fix, protect: ['**/c.py'], protect-strict: true}}\n{graders}"), "");
    project.case("b", &format!("workspace: {{copy: fix}}\nhidden: hidden\n{graders}"), "");
    let Some(done) = run_as_somebody(&project, &["run", "--harness", "sh"]) else { return };
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    for (id, verdict, code) in [("a", "fail", "protected_file"), ("b", "pass", "links_to_hidden")] {
        let result = project.result(&TRIAL.replacen('a', id, 1));
        assert!(result["verdict"] == verdict && result["grades"][0]["value"] == 1.0, "{result}");
        assert!(result["warnings"].to_string().contains(code), "{result}");
    }
}

/// A user without the privileges of root, who is subject to modes.
const NOBODY: &str = "12345";
/// Another one, who has no other processes.
const NOBODY_ELSE: &str = "12346";

/// Runs the program as a user who is subject to modes. Returns `None` if this is not possible.
fn run_as_somebody(project: &Project, args: &[&str]) -> Option<std::process::Output> {
    let done = as_somebody(project, NOBODY, args)?.output();
    if let Err(error) = &done {
        not_run(MACHINE, &format!("no program can be started as another user: {error}"));
    }
    done.ok()
}

/// Returns the program as a user who is subject to modes and limits. Returns `None` if files cannot be given to another user.
fn as_somebody(project: &Project, user: &str, args: &[&str]) -> Option<std::process::Command> {
    let evals = project.command(args);
    let root = project.path("").parent().unwrap().to_owned();
    let mut command = if fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) != 0) {
        std::process::Command::new(evals.get_program())
    } else {
        // That user must be able to find the program, too.
        let program = root.join("evals");
        // Copied by another process: a program that another test starts meanwhile would inherit the open file, and the
        // system starts no program that is open for writing.
        let copied = std::process::Command::new("cp").arg(evals.get_program()).arg(&program).status();
        assert!(copied.unwrap().success());
        let done = std::process::Command::new("chown").args(["-R", user]).arg(&root).status();
        if !done.is_ok_and(|status| status.success()) {
            not_run(MACHINE, "files cannot be given to another user");
            return None;
        }
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
        command
    };
    command.env_clear().envs(evals.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.args(args).current_dir(project.path(""));
    Some(command)
}

#[test]
#[ignore = "slow: runs many trials"]
fn no_mode_and_no_loss_turns_a_fail_into_an_error() {
    for (harm, warned) in [
        ("chmod 000 x.py", "made readable"),
        ("echo a > n; chmod 000 n", "made readable"),
        ("chmod 000 tests", "made readable"),
        ("chmod 000 tests/t.py tests", "made readable"),
        ("echo evil > tests/t.py; chmod 555 tests", "tests/t.py"),
        ("rm -rf tests; mkdir tests; chmod 000 tests", "tests/t.py"),
        ("chmod 000 .", "made readable"),
        ("rm -rf \"$PWD\"", "removed its workspace"),
        ("rm -rf \"$PWD\"; ln -s / \"$PWD\"", "removed its workspace"),
        ("chmod 555 . ..", "made readable"),
    ] {
        let mut project = project(harm);
        project.env("SOME_TOKEN", "a-secret-of-the-user");
        project.write("cases/fix/x.py", "right\n");
        project.write("cases/fix/tests/t.py", "right\n");
        project.write("cases/hidden/tests/more/h.py", "hidden\n");
        let keys = "workspace: {copy: fix, protect: [tests/**]}\nhidden: hidden\ngraders:\n\
                    - {command: {run: 'cat tests/t.py tests/more/h.py', stdout-contains: right}}\n\
                    - {files: {contains: {x.py: other}}}";
        project.case("a", keys, "");
        let Some(done) = run_as_somebody(&project, &["run", "--harness", "sh"]) else { return };
        assert_eq!(done.status.code(), Some(1), "{harm}: {done:?}");
        let result = project.result(TRIAL);
        let passed = |n: usize| result["grades"][n]["passed"].as_bool();
        assert_eq!((passed(0), passed(1)), (Some(true), Some(false)), "{harm}: {result}");
        assert!(warnings(&project).contains(warned), "{harm}: {}", warnings(&project));
        let patch = project.of_trial(TRIAL, "workspace.patch");
        let lost = warned.contains("removed");
        assert_eq!(patch.contains("deleted file mode 100644\n--- a/x.py"), lost, "{harm}: {patch}");
        assert!(lost || warned.contains("t.py") || !patch.contains("tests/t.py"), "{harm}: {patch}");
        assert!(project.path(&format!("{}/trials/{TRIAL}/workspace", project.run_folder())).is_dir(), "{harm}");
        assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new(), "{harm}");
    }
}

#[test]
#[ignore = "slow: reads gigabytes"]
fn others_are_served_while_a_workspace_is_looked_through() {
    let mut project =
        project("if mkdir \"$FIRST\" 2>/dev/null; then truncate -s 975M large1 large2 large3 large4; else sleep 1; fi");
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    project.env("TOKIO_WORKER_THREADS", "1");
    let keys = format!("trials: 2\nenv: {{FIRST: '{}'}}", project.path("first").display());
    project.case("a", &keys, "");
    project.evals(&["run", "--harness", "sh", "--jobs", "2", "--keep-workspace", "always"]).exits(0);
    let journal = project.journal();
    let finished: Vec<u64> =
        journal.iter().filter(|line| line["event"] == "finished").map(|line| line["trial"].as_u64().unwrap()).collect();
    let large = |n: &u64| project.of_trial(&format!("a/sh/default/{n}"), "workspace.patch").contains("large");
    assert!(!large(&finished[0]) && large(&finished[1]), "{journal:?}");
}

#[test]
fn a_file_that_git_tracks_is_changed_and_protected_whatever_gitignore_says() {
    let project = Project::new();
    let workspace = "workspace: {files: {'.gitignore': 'dist/', 'dist/index.js': a, 'dist/left.js': a}, \
                     setup: ['git init -q . && git add -f .gitignore dist/index.js']";
    let steps = |command: &str| format!("steps: [{{run: {{command: '{command}'}}}}]");
    let tracked = steps("echo b > dist/index.js");
    project.case("none", &format!("{workspace}}}\ngraders: [{{diff: {{none: true}}}}]"), &tracked);
    project.case("changed", &format!("{workspace}}}\ngraders: [{{diff: {{changed: [dist/index.js]}}}}]"), &tracked);
    // A new file beside it is ignored, and a glob that names the ignored folder protects from it.
    let added = steps("mkdir dist/evil; echo b > dist/evil/index.js; echo b > dist/new.js");
    let graders = "graders: [{files: {absent: [dist/evil/index.js, dist/new.js]}}]";
    project.case("protected", &format!("{workspace}, protect: ['dist/**']}}\n{graders}"), &added);
    let strict = format!("{workspace}, protect: ['dist/**'], protect-strict: true}}\n{graders}");
    project.case("strict", &strict, &added);
    project.evals(&["run"]).exits(1);
    let verdict = |case: &str| project.result(&format!("{case}/demo/default/1"))["verdict"].clone();
    let verdicts = ["none", "changed", "protected", "strict"].map(verdict);
    assert_eq!(verdicts, ["fail", "pass", "pass", "fail"]);
}

#[test]
fn a_trial_that_removes_the_folder_of_its_run_costs_no_other_trial_its_result() {
    let project = project("case $(cat) in above) cd ../..; rm -rf \"$PWD\";; *) echo x > made;; esac");
    for (case, prompt) in [("a", "above"), ("b", "here"), ("c", "here")] {
        project.write(
            &format!("cases/{case}.yaml"),
            &format!("prompt: {prompt}\ngraders: [{{files: {{exists: [made]}}}}]\n"),
        );
    }
    project.evals(&["run", "--harness", "sh", "--jobs", "1"]).exits(3);
    let verdicts = ["a", "b", "c"].map(|case| project.result(&format!("{case}/sh/default/1"))["verdict"].clone());
    assert_eq!(verdicts, ["errored", "pass", "pass"]);
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_limit_of_processes_that_is_too_low_ends_with_4_and_its_name() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    let Some(evals) = as_somebody(&project, NOBODY_ELSE, &["run"]) else { return };
    let mut command = std::process::Command::new("timeout");
    command.args(["60", "prlimit", "--nproc=5"]).arg(evals.get_program()).args(evals.get_args());
    command.env_clear().envs(evals.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Ok(done) = command.current_dir(project.path("")).output() else {
        return not_run(MACHINE, "no program can be started with a limit of processes");
    };
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{said}");
    assert!(said.contains("ulimit -u") && project.runs().is_empty(), "{said}");
}

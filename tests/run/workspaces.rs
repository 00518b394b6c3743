//! What agents do to their workspaces: whatever it is, the trial has its true result, and nothing else is touched.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use crate::project::Project;

/// A project whose agent `sh` is this script, run in the workspace.
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
fn folders_without_end_are_cut_and_the_trial_has_its_result() {
    let chain = "python3 -c \"\nimport os\nfor i in range(30000):\n os.mkdir('d'); os.chdir('d')\n\"";
    let names = "n=$(printf '%0200d' 1); for i in $(seq 30); do mkdir $n; cd $n; done; echo x > f";
    for (script, token) in [(chain, ""), (names, "a-secret-of-the-user")] {
        let mut project = project(script);
        if !token.is_empty() {
            project.env("SOME_TOKEN", token);
        }
        project.write("cases/fix/x", "x\n");
        project.case("a", "workspace: {copy: fix}\ngraders: [{command: {run: 'false'}}]", "");
        project.evals(&["run", "--harness", "sh"]).exits(1);
        assert_eq!(project.result(TRIAL)["verdict"], "fail");
        assert!(warnings(&project).contains("were removed"), "{}", warnings(&project));
        assert!(project.of_trial(TRIAL, "workspace/x").contains('x'));
        assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
        project.evals(&["prune", "--keep", "0"]).exits(0);
        assert_eq!(project.runs(), Vec::<String>::new());
    }
}

#[test]
fn huge_files_are_named_and_take_no_memory() {
    let mut project = project("truncate -s 3G x; truncate -s 1T y; truncate -s 3G old; printf 'a\\rb\\n' > small");
    project.env("SOME_TOKEN", "a-secret-of-the-user");
    project.write("cases/fix/old", "old\n");
    let keys = "workspace: {copy: fix}\ngraders: [{diff: {created: [x, y, small], changed: [old]}}]";
    project.case("a", keys, "");
    let evals = project.command(&["run", "--harness", "sh", "--keep-workspace", "always"]);
    let mut limited = std::process::Command::new("sh");
    // Of memory that could be used, in KiB; stacks of threads count in full.
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

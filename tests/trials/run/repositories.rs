//! Workspaces that are checkouts: the history up to the revision, no later commits, and no credentials.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::project::{Project, of_type};

/// Runs git lines in a new repository of the project.
fn repository(project: &Project, lines: &[&str]) {
    repository_in(project, "repository", lines);
}

pub fn repository_in(project: &Project, folder: &str, lines: &[&str]) {
    let folder = project.path(folder);
    std::fs::create_dir_all(&folder).unwrap();
    for line in lines {
        let line = format!("git -c user.name=x -c user.email=x@example.org -c init.defaultBranch=main {line}");
        let done = Command::new("sh").args(["-c", &line]).current_dir(&folder).env("HOME", project.home()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
    }
}

/// Makes a repository whose second commit has the tag `before`, whose third is the fix, and whose other branch has a
/// fourth.
fn with_a_future(project: &Project) {
    project.write("repository/a.txt", "broken");
    repository(project, &["init -q .", "add .", "commit -qm first", "commit -qm second --allow-empty", "tag before"]);
    project.write("repository/a.txt", "the-fix-of-the-future");
    repository(project, &["commit -qam third", "tag -am later after", "checkout -q -b other"]);
    repository(project, &["commit -qm fourth --allow-empty", "checkout -q main"]);
}

const LOOK: &str = "git log --all --format=%s; git for-each-ref; git remote -v; git reflog; git fsck --unreachable --no-progress; \
     git cat-file --batch-all-objects --batch-check | wc -l; ls -A .git; cat .git/config; git status --short; cat a.txt; \
     grep -r the-fix . ; git tag; git rev-parse HEAD";

fn seen(project: &Project, trial: &str) -> String {
    of_type(&project.trace(trial), "tool_result")[0]["output"].as_str().unwrap().to_owned()
}

#[test]
fn a_checkout_holds_the_history_up_to_its_revision_and_nothing_else() {
    let project = Project::new();
    with_a_future(&project);
    let keys = "workspace: {git: {path: ../repository, rev: before}}\ngraders: [{diff: {none: true}}]";
    project.case("a", keys, &format!("steps: [{{run: {{command: '{LOOK}'}}}}]"));
    project.evals(&["run"]).exits(0);
    let seen = seen(&project, "a/demo/default/1");
    assert!(seen.starts_with("second\nfirst\n"), "{seen}");
    for future in
        ["third", "fourth", "other", "the-fix", "refs/", "origin", "unreachable", "logs", "FETCH_HEAD", "before"]
    {
        assert!(!seen.contains(future), "`{future}` is seen:\n{seen}");
    }
    // Two commits, one tree, one file.
    assert!(seen.contains("\n4\n") && seen.contains("broken"), "{seen}");
}

#[test]
fn a_workspace_that_contains_its_own_case_is_named_and_the_case_is_not_sound() {
    let project = Project::new();
    project.write("cases/a.txt", "broken\n");
    let solution = "--- a/cases/a.txt\n+++ b/cases/a.txt\n@@ -1 +1 @@\n-broken\n+fixed\n";
    project.write("cases/a.patch", solution);
    let keys = "workspace: {git: {path: .., rev: HEAD}}\noracle: {patch: a.patch}\n\
                graders: [{command: {name: fixed, run: grep -q fixed cases/a.txt}}]";
    // The agent needs only to read.
    project.case("a", keys, "steps: [{run: {command: git apply cases/a.patch}}]");
    repository_in(&project, ".", &["init -q .", "add cases", "commit -qm first"]);
    // The file of the case that ran is a newer one than that of the commit.
    project
        .write("cases/a.yaml", &format!("# newer\n{}", std::fs::read_to_string(project.path("cases/a.yaml")).unwrap()));
    project.evals(&["run"]).exits(0);
    let result = project.result("a/demo/default/1");
    let warnings = result["warnings"].as_array().unwrap();
    let warning =
        warnings.iter().find(|it| it["code"] == "case_in_workspace").unwrap_or_else(|| panic!("{warnings:?}"));
    assert_eq!(warning["files"], serde_json::json!(["cases/a.demo.yaml", "cases/a.patch", "cases/a.yaml"]));
    assert!(warnings.iter().all(|it| it["code"] != "ignored_files"), "the repository's own folder is no ignored file");
    project
        .evals(&["check", "--audit", "--mutants", "0"])
        .exits(1)
        .says("the workspace contained files of the case itself")
        .says("0 sound, 1 not");
}

#[test]
fn a_copy_that_contains_the_case_under_another_name_is_named() {
    let project = Project::new();
    std::fs::create_dir_all(project.path("material")).unwrap();
    project.write("cases/b.yaml", "prompt: x\nworkspace: {copy: ../material}\ngraders: [{diff: {none: true}}]\n");
    project.write("material/notes.txt", &project.read("cases/b.yaml"));
    project.write("cases/b.demo.yaml", "steps: [{say: nothing}]\n");
    project.evals(&["run", "--case", "b"]).exits(0);
    let result = project.result("b/demo/default/1");
    let codes: Vec<&str> = result["warnings"].as_array().unwrap().iter().filter_map(|it| it["code"].as_str()).collect();
    assert!(codes.contains(&"case_in_workspace"), "{codes:?}");
}

#[test]
fn files_of_the_case_are_found_in_a_part_of_a_repository_and_in_a_copy_and_every_report_says_so() {
    let project = Project::new();
    project.write("cases/a.hidden/t.sh", "exit 0\n");
    project.write("cases/a.oracle/s.txt", "solved\n");
    let case = |id: &str, source: &str| {
        let keys = "hidden: a.hidden\noracle: {copy: a.oracle}\ngraders: [{diff: {none: true}}]";
        project.case(id, &format!("workspace: {source}\n{keys}"), "steps: [{say: done}]");
    };
    case("a", "{git: {path: .., rev: HEAD, subdir: cases}}");
    repository_in(&project, ".", &["init -q .", "add cases", "commit -qm first", "clone -q . clone"]);
    project.write("cases/a.yaml", &format!("# newer\n{}", project.read("cases/a.yaml")));
    let url = format!("file://{}", project.path(".").canonicalize().unwrap().display());
    case("by-url", &format!("{{git: {{url: '{url}', subdir: cases}}}}"));
    case("clone", "{git: {path: ../clone, subdir: cases}}");
    case("part", &format!("{{git: {{url: '{url}/.git', subdir: cases/a.hidden}}}}"));
    // A file that the task is to copy, and one that the workspace has in its own place.
    case("fine", r#"{files: {backup/s.txt: "solved\n", t.sh: "exit 0\n", a.hidden/t.sh: "exit 0\n"}}"#);
    let ran = project.evals(&["run", "--label", "one"]).exits(0);
    ran.says("in 4 trials the agent could read files of its own case: a.");
    let files = |id: &str| {
        let result = project.result(&format!("{id}/demo/default/1"));
        let warnings = result["warnings"].as_array().unwrap();
        warnings.iter().find(|it| it["code"] == "case_in_workspace").map(|it| it["files"].clone())
    };
    let kept = ["a.hidden/t.sh", "a.oracle/s.txt"];
    let all = serde_json::json!(["a.demo.yaml", kept[0], kept[1], "a.yaml"]);
    assert_eq!(files("a"), Some(all));
    for id in ["by-url", "clone"] {
        // The script of the demo agent is the same in all cases.
        assert_eq!(files(id), Some(serde_json::json!(["a.demo.yaml", kept[0], kept[1]])), "{id}");
    }
    assert_eq!(files("part"), Some(serde_json::json!(["t.sh"])));
    assert_eq!(files("fine"), None);
    for format in ["markdown", "github", "table"] {
        project.evals(&["report", "latest", "--format", format]).exits(0).says("could read files of its own case");
    }
    project.evals(&["run", "--case", "a", "--label", "two"]).exits(0);
    project.evals(&["compare", "one", "two"]).says("in 1 trial the agent could read files of its own case");
}

#[test]
fn a_repository_is_looked_up_with_the_environment_of_each_case() {
    let project = Project::new();
    with_a_future(&project);
    let keys = "workspace: {git: {path: ../repository}}\ngraders: [{diff: {none: true}}]";
    project.case("a", keys, "");
    project.case("b", &format!("{keys}\nenv: {{GIT_DIR: /none}}"), "");
    let checked = project.evals(&["check"]).exits(2).says("`repository` is not a git repository");
    assert!(checked.err.contains("cases/b.yaml:2:") && !checked.err.contains("cases/a.yaml"), "{}", checked.err);
}

#[test]
fn a_revision_may_be_a_commit_a_branch_or_a_tag_and_one_that_is_not_there_is_named() {
    let project = Project::new();
    with_a_future(&project);
    repository(&project, &["rev-parse --short other > ../short"]);
    let short = project.read("short").trim().to_owned();
    for (name, rev) in
        [("branch", "other"), ("tag", "after"), ("short", &short), ("parent", "after~1"), ("gone", "gone")]
    {
        let keys =
            format!("workspace: {{git: {{path: ../repository, rev: '{rev}'}}}}\ngraders: [{{diff: {{none: true}}}}]");
        project.case(name, &keys, "steps: [{run: {command: 'git log --format=%s'}}]");
    }
    project.case(
        "folder",
        "workspace: {git: {path: ../repository, subdir: a.txt}}\ngraders: [{diff: {none: true}}]",
        "",
    );
    project.case("none", "workspace: {git: {path: .}}\ngraders: [{diff: {none: true}}]", "");
    let checked = project.evals(&["check"]).exits(2);
    let checked = checked.says("the repository `repository` has no revision `gone`").says("cases/gone.yaml:2:");
    let checked = checked.says("the repository `repository` has no folder `a.txt` at HEAD");
    let checked = checked.says("`cases` is not a git repository");
    assert_eq!(checked.err.matches("×").count(), 3, "{}", checked.err);
    for name in ["folder", "none"] {
        std::fs::remove_file(project.path(&format!("cases/{name}.yaml"))).unwrap();
    }
    repository(&project, &["remote add origin ../nowhere"]);
    let way_out = "has no revision `gone`; if its remote has it, run `git fetch` in the repository";
    project.evals(&["check"]).exits(2).says(way_out);
    project.evals(&["run"]).exits(3).says(way_out);
    let subjects = |name: &str| seen(&project, &format!("{name}/demo/default/1"));
    assert_eq!(subjects("branch"), "fourth\nthird\nsecond\nfirst\n");
    assert_eq!(subjects("short"), "fourth\nthird\nsecond\nfirst\n");
    assert_eq!(subjects("tag"), "third\nsecond\nfirst\n");
    assert_eq!(subjects("parent"), "second\nfirst\n");
    let error = &project.result("gone/demo/default/1")["error"];
    assert_eq!(error["category"], "setup");
}

#[test]
fn nothing_is_fetched_into_a_repository_that_a_case_names_by_its_path() {
    let project = Project::new();
    with_a_future(&project);
    let url = format!("file://{}", project.path("repository").display());
    let clones = [("--depth 1", "shallow"), ("--filter=tree:0", "partial")];
    let clones = clones.map(|(option, folder)| format!("clone -q {option} '{url}' ../{folder}"));
    repository(&project, &["config uploadpack.allowFilter true", "config uploadpack.allowAnySHA1InWant true"]);
    repository(&project, &["rev-parse before > ../before", clones[0].as_str(), clones[1].as_str()]);
    let before = project.read("before").trim().to_owned();
    let sources = [("old", "shallow", before.as_str()), ("new", "shallow", "HEAD"), ("part", "partial", "HEAD~1")];
    for (name, folder, rev) in sources {
        let keys =
            format!("workspace: {{git: {{path: ../{folder}, rev: '{rev}'}}}}\ngraders: [{{diff: {{none: true}}}}]");
        project.case(name, &keys, "steps: [{run: {command: 'git log --format=%s'}}]");
    }
    let content = || (project.files("shallow/.git"), project.files("partial/.git"));
    let as_cloned = content();
    let checked = project.evals(&["check"]).exits(2);
    let checked = checked.says(&format!("`shallow` has no revision `{before}`; it is a shallow clone: run `git fetch"));
    let checked = checked.says("`fetch-depth: 0`").says("the repository `partial` lacks objects of the commits up to");
    assert_eq!(checked.err.matches("×").count(), 2, "{}", checked.err);
    let ran = project.evals(&["run"]).exits(3);
    ran.says("it is a shallow clone: run `git fetch --unshallow`").says("complete it with `git fetch --refetch");
    assert!(content() == as_cloned, "a file of the repositories changed");
    // The history ends where that of the clone does, and git can read it.
    assert_eq!(seen(&project, "new/demo/default/1"), "third\n");
}

#[test]
fn a_checkout_has_the_object_format_of_its_repository() {
    let project = Project::new();
    project.write("repository/a.txt", "broken");
    repository(&project, &["init -q --object-format=sha256 .", "add .", "commit -qm first"]);
    repository(&project, &["commit -qm second --allow-empty"]);
    let look = "git rev-parse --show-object-format; git log --format=%s; git status --short; cat a.txt";
    let keys = "workspace: {git: {path: ../repository, rev: HEAD~1}}\ngraders: [{diff: {none: true}}]";
    project.case("a", keys, &format!("steps: [{{run: {{command: '{look}'}}}}]"));
    project.evals(&["check"]).exits(0);
    project.evals(&["run"]).exits(0);
    assert_eq!(seen(&project, "a/demo/default/1"), "sha256\nfirst\nbroken");
}

/// Serves a folder to clients with the password, and prints its port.
const SERVER: &str = r#"
import base64, http.server, sys
class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get("Authorization") != "Basic " + base64.b64encode(b"me:a-token-in-a-url").decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic realm=x")
            self.end_headers()
        else:
            super().do_GET()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn a_token_in_a_url_reaches_neither_agent_nor_disk() {
    let project = Project::new();
    with_a_future(&project);
    repository(&project, &["update-server-info"]);
    let mut server = Command::new("python3")
        .args(["-c", SERVER])
        .current_dir(project.path("repository/.git"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
    for (name, rev) in [("good", "before"), ("gone", "gone")] {
        let url = format!("http://me:a-token-in-a-url@127.0.0.1:{}/", port.trim());
        let keys = format!("workspace: {{git: {{url: '{url}', rev: {rev}}}}}\ngraders: [{{diff: {{none: true}}}}]");
        project.case(name, &keys, &format!("steps: [{{run: {{command: '{LOOK}; env; echo a-token-in-a-url'}}}}]"));
    }
    let ran = project.evals(&["run", "--keep-workspace", "always"]);
    server.kill().unwrap();
    server.wait().unwrap();
    let ran = ran.exits(3);
    assert!(!ran.out.contains("a-token-in-a-url") && !ran.err.contains("a-token-in-a-url"), "{ran:?}");
    assert_eq!(project.result("good/demo/default/1")["verdict"], "pass", "{ran:?}");
    let seen = seen(&project, "good/demo/default/1");
    assert!(seen.starts_with("second\nfirst\n") && seen.contains("[redacted:URL_CREDENTIALS]"), "{seen}");
    let found = Command::new("grep").args(["-rl", "a-token-in-a-url"]).arg(project.path(".evals")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[test]
fn a_branch_is_resolved_once_and_every_trial_of_the_run_has_that_commit() {
    let project = Project::new();
    with_a_future(&project);
    repository(&project, &["rev-parse main > ../main", "rev-parse other > ../other"]);
    let (main, other) = (project.read("main").trim().to_owned(), project.read("other").trim().to_owned());
    let moves = format!("git -C '{}' branch -f main other", project.path("repository").display());
    repository(&project, &["checkout -q --detach"]);
    for (name, rev) in [("branch", ", rev: main"), ("head", "")] {
        let keys = format!("trials: 2\nworkspace: {{git: {{path: ../repository{rev}}}}}");
        let command = format!("{moves}; git rev-parse HEAD");
        project.case(name, &keys, &format!("steps: [{{run: {{command: \"{command}\"}}}}, {{say: done}}]"));
    }
    project.evals(&["run", "--jobs", "1"]).exits(0);
    for trial in ["branch/demo/default/1", "branch/demo/default/2", "head/demo/default/2"] {
        assert!(seen(&project, trial).contains(&main), "{trial}");
    }
    let record = |folder: String| -> serde_json::Value {
        serde_json::from_str(&project.read(&format!("{folder}/run.json"))).unwrap()
    };
    let first = record(project.run_folder());
    assert_eq!(first["cases"][0]["resolved"], serde_json::json!({"rev": "main", "commit": main}));
    assert_eq!(first["cases"][1]["resolved"], serde_json::json!({"commit": main}));
    // The branch has moved. The resumed run keeps its commit, and a new run gets the new one.
    let journal = format!("{}/journal.jsonl", project.run_folder());
    let kept: String = project.read(&journal).lines().take(2).map(|line| format!("{line}\n")).collect();
    project.write(&journal, &kept);
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert!(seen(&project, "branch/demo/default/2").contains(&main));
    project.evals(&["run", "--jobs", "1", "--label", "later", "--case", "branch"]).exits(0);
    assert_eq!(record(project.run_named("later"))["cases"][0]["resolved"]["commit"], other);
}

#[test]
fn a_repository_of_another_user_is_refused_with_gits_reason_until_the_users_settings_trust_it() {
    let project = Project::new();
    with_a_future(&project);
    // A variable by which git's own tests take each repository for one of another user.
    let keys = "env: {GIT_TEST_ASSUME_DIFFERENT_OWNER: '1'}\nworkspace: {git: {path: ../repository, rev: before}}";
    project.case("a", keys, "steps: [{say: done}]");
    project.evals(&["check"]).exits(2).says("detected dubious ownership in repository");
    project.evals(&["run"]).exits(3);
    let why = project.result("a/demo/default/1")["error"]["message"].to_string();
    assert!(why.contains("detected dubious ownership") && why.contains("safe.directory"), "{why}");
    std::fs::write(project.home().join(".gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
    project.evals(&["check"]).exits(0);
    project.evals(&["run"]).exits(0);
}

//! Sandboxes, seen from inside: what an agent can and cannot access. Requires bubblewrap, which `.ci/run` installs.

use serde_json::Value;

use super::repositories::repository_in;
use crate::project::{Project, Ran, bubblewrap, of_type};

/// Returns a script of the demo agent that runs one line.
fn runs(line: &str) -> String {
    format!("steps:\n  - run:\n      command: |\n        {line}\n  - say: done\n")
}

/// Runs into a folder without earlier runs, so that the new run is the only one.
fn run(project: &Project, args: &[&str]) -> Ran {
    let _ = std::fs::remove_dir_all(project.path(".evals"));
    project.evals(&[&["run"], args].concat())
}

fn output(project: &Project, trial: &str) -> String {
    let trace = project.trace(trial);
    of_type(&trace, "tool_result")[0]["output"].as_str().unwrap_or_default().to_owned()
}

fn notices(project: &Project, trial: &str) -> Vec<Value> {
    let trace = project.trace(trial);
    of_type(&trace, "notice").into_iter().filter(|notice| notice["code"] == "read-outside").cloned().collect()
}

/// Makes a project with secrets, and the line that searches for all of them.
fn project_with_secrets() -> (Project, String) {
    let mut project = Project::new();
    std::fs::write(project.home().join("login.txt"), "of-the-user").unwrap();
    std::fs::write(project.temporary().join("other.txt"), "of-another-program").unwrap();
    project.env("MY_API_KEY", "key-of-the-engine");
    project.write("cases/secret.hidden/answer.txt", "the-answer");
    project.write("secrets.txt", "beside-the-cases");
    let (home, tmp) = (project.home(), project.temporary());
    let root = project.path("");
    // Every process's environment, every relevant file, and the complete temporary folder.
    let look = format!(
        "cat {0}/login.txt {1}/other.txt {2}/secrets.txt {2}/cases/secret.hidden/answer.txt; cat {2}/cases/*.yaml; ls -R {1} {2}; cat /proc/*/environ | tr '\\0' '\\n'; find / -name answer.txt -not -path '/proc/*' 2>/dev/null; echo looked",
        home.display(),
        tmp.display(),
        root.display()
    );
    (project, look)
}

#[test]
#[ignore = "slow: runs many trials"]
fn an_agent_in_bwrap_sees_its_workspace_its_home_and_the_system_and_nothing_else() {
    if !bubblewrap() {
        return;
    }
    let (project, look) = project_with_secrets();
    project.case("secret", "hidden: secret.hidden\nworkspace: {files: {mine.txt: given}}", &runs(&look));
    project.case(
        "other",
        "trials: 2",
        &runs("echo left > $HOME/left.txt; ls -A $HOME .. ; echo left > in-my-workspace.txt"),
    );
    run(&project, &["--sandbox", "none"]).exits(0).says("ran without a sandbox");
    let free = output(&project, "secret/demo/default/1");
    for found in ["of-the-user", "of-another-program", "beside-the-cases", "the-answer"] {
        assert!(free.contains(found), "without a sandbox {found} can be read, or this test looks wrongly:\n{free}");
    }
    assert!(
        !free.contains("key-of-the-engine"),
        "the engine's environment is out of reach without a sandbox, too:\n{free}"
    );
    let told = notices(&project, "secret/demo/default/1");
    assert!(told.iter().any(|notice| notice["text"].as_str().unwrap().contains("cases/secret.hidden")), "{told:?}");

    let ran = run(&project, &["--sandbox", "bwrap"]).exits(0);
    assert!(!ran.out.contains("not sandboxed"), "{}", ran.out);
    let seen = output(&project, "secret/demo/default/1");
    for hidden in [
        "of-the-user",
        "of-another-program",
        "beside-the-cases",
        "the-answer",
        "MY_API_KEY",
        "answer.txt\n",
        "prompt: Do it",
    ] {
        assert!(!seen.contains(hidden), "{hidden} was found:\n{seen}");
    }
    assert!(seen.contains("looked"), "{seen}");
    assert!(notices(&project, "secret/demo/default/1").is_empty());
    for trial in ["other/demo/default/1", "other/demo/default/2"] {
        let seen = output(&project, trial);
        assert_eq!(seen.lines().filter(|line| *line == "left.txt").count(), 1, "only its own home: {seen}");
    }
    assert_eq!(project.left_over(), [project.temporary().join("other.txt")]);
}

#[test]
fn the_system_cannot_be_written_and_the_workspace_can() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let line = "for f in /usr/x /etc/x /x /opt/x; do touch $f 2>/dev/null && echo wrote $f; done; rm -rf /usr/bin/env 2>/dev/null; test -e /usr/bin/env && echo kept; echo new > made.txt; touch /tmp/t && echo scratch; ps 2>/dev/null | wc -l";
    project.case("a", "sandbox: bwrap\ngraders: [{files: {contains: {made.txt: new}}}, {command: {run: 'cat made.txt && test ! -e /tmp/t'}}]", &runs(line));
    project.evals(&["run"]).exits(0);
    let seen = output(&project, "a/demo/default/1");
    // `/x` and `/opt/x` may be in a folder of the sandbox's own; the system's folders are not written.
    for folder in ["/usr/x", "/etc/x"] {
        assert!(!seen.contains(&format!("wrote {folder}")), "{seen}");
        assert!(!std::path::Path::new(folder).exists());
    }
    assert!(seen.contains("kept") && seen.contains("scratch"), "{seen}");
    let patch = project.of_trial("a/demo/default/1", "workspace.patch");
    assert!(patch.contains("made.txt") && !patch.contains("scratch"), "{patch}");
}

#[test]
fn the_network_is_what_the_settings_say() {
    if !bubblewrap() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || while listener.accept().is_ok() {});
    let project = Project::new();
    let python = "import socket, sys; s = socket.socket(); s.settimeout(2); print('reached' if s.connect_ex(('127.0.0.1', int(sys.argv[1]))) == 0 else 'refused')";
    let own = "import socket; a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen(); b = socket.socket(); b.connect(a.getsockname()); print('own loopback')";
    let line = format!("python3 -c \"{python}\" {port}; python3 -c \"{own}\"");
    for (id, sandbox, reached) in [
        ("all", "{kind: bwrap}", true),
        ("loopback", "{kind: bwrap, network: loopback}", false),
        ("none", "{kind: bwrap, network: none}", false),
    ] {
        project.case(id, &format!("sandbox: {sandbox}"), &runs(&line));
        run(&project, &["--case", id]).exits(0);
        let seen = output(&project, &format!("{id}/demo/default/1"));
        assert_eq!(seen.contains("reached"), reached, "{id}: {seen}");
        assert!(seen.contains("own loopback"), "{id}: {seen}");
    }
}

#[test]
fn folders_are_mounted_as_the_manifest_says_and_hidden_stays_hidden() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let root = project.path("");
    project.write("tool/read.txt", "to-be-read");
    project.write("shared/kept.txt", "old");
    project.write("cases/a.hidden/answer.txt", "the-answer");
    let root = root.display();
    let line = format!(
        "cat {root}/tool/read.txt; touch {root}/tool/x && echo wrote-tool; echo new > {root}/shared/kept.txt; cat {root}/cases/a.hidden/answer.txt {root}/cases/a.yaml; ls {root}/.evals/runs"
    );
    project.case("a", "hidden: a.hidden", &runs(&line));
    // The whole project is mounted, including cases and runs, which stay hidden.
    project.demo(
        "mine",
        &format!("sandbox:\n  kind: bwrap\n  mount:\n    - path: {root}\n    - {{path: {root}/shared, write: true}}"),
    );
    run(&project, &["--harness", "mine"]).exits(0);
    let seen = output(&project, "a/mine/default/1");
    assert!(seen.contains("to-be-read") && !seen.contains("wrote-tool"), "{seen}");
    assert_eq!(project.read("shared/kept.txt"), "new\n");
    assert!(!seen.contains("the-answer") && !seen.contains("prompt:") && !seen.contains("2026"), "{seen}");
}

#[test]
fn what_an_agent_leaves_running_in_a_sandbox_ends_with_its_trial() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let mark = format!("{}.5", 90_000 + std::process::id() % 9_000);
    project.case("a", "sandbox: bwrap", &runs(&format!("setsid sleep {mark} >/dev/null 2>&1 & echo started")));
    project.evals(&["run"]).exits(0);
    let alive = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| std::fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&mark)));
    assert_eq!(alive.count(), 0);
}

#[test]
fn agents_that_lie_outside_of_the_system_are_started_and_errors_stay_what_they_are() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: fine}}]", "");
    let script = project.path("bin/agent.py");
    project.write("bin/agent.py", "#!/usr/bin/env python3\nimport sys\nprint('fine', sys.argv[1])\n");
    let script = script.display();
    project.harness("interpreted", &format!("adapter: output-only\ncommand: [python3, {script}, x]"));
    project.harness("gone", "adapter: output-only\ncommand: [no-such-agent]\ninstall: get it");
    project.harness("crashes", "adapter: output-only\ncommand: [sh, -c, 'echo why >&2; exit 7']");
    let all = ["run", "--sandbox", "bwrap", "--harness", "interpreted", "--harness", "gone", "--harness", "crashes"];
    project.evals(&all).exits(3);
    assert_eq!(project.result("a/interpreted/default/1")["verdict"], "pass");
    assert_eq!(project.result("a/gone/default/1")["error"]["category"], "not_installed");
    let crashed = project.result("a/crashes/default/1");
    assert_eq!((&crashed["error"]["category"], &crashed["stop"]["exit"]["code"]), (&"crashed".into(), &7.into()));
    assert!(crashed["stop"]["stderr_tail"].as_str().unwrap().contains("why"));
}

#[test]
fn a_command_around_the_agent_s_is_filled_in() {
    let project = Project::new();
    project.case(
        "a",
        "env: {OF_CASE: '1'}\ngraders: [{command: {run: 'echo \"$WRAPPED\"; test \"$WRAPPED\" = yes'}}]",
        &runs("echo wrapped=$WRAPPED in=$PWD"),
    );
    let wrapped = "sandbox: {kind: command, command: [env, WRAPPED=yes, 'AT={workspace}', '{command}']}";
    project.demo("mine", wrapped);
    run(&project, &["--harness", "mine"]).exits(0);
    let seen = output(&project, "a/mine/default/1");
    assert!(seen.contains("wrapped=yes"), "{seen}");
    let record = project.read(&format!("{}/run.json", project.run_folder()));
    assert!(record.contains("\"sandbox\": \"command\""), "{record}");
    // The command line overrides the manifest.
    run(&project, &["--harness", "mine", "--sandbox", "none"]).exits(1);
    assert!(output(&project, "a/mine/default/1").contains("wrapped= "));
}

#[test]
fn a_sandbox_that_cannot_be_had_stops_the_run_before_it_begins() {
    let mut project = Project::new();
    project.case("a", "", &runs("true"));
    project.evals(&["run", "--sandbox", "command"]).exits(2).says("neither the case nor the manifest sets its command");
    project.case("b", "sandbox: {kind: bwrap, mount: [{path: ~/not-there}]}", &runs("true"));
    project.evals(&["run", "--case", "b"]).exits(2).says("not-there").says("does not exist");
    project.case("c", "sandbox: {kind: bwrap, mount: [{path: not-there}]}", &runs("true"));
    project.evals(&["check"]).exits(2).says("cases/c.yaml:2:").says("not-there` does not exist");
    std::fs::remove_file(project.path("cases/c.yaml")).unwrap();
    // Without the program: a `PATH` that does not contain it.
    project.env("PATH", &project.path("bin").display().to_string());
    project
        .evals(&["run", "--case", "a", "--sandbox", "bwrap"])
        .exits(2)
        .says("`bwrap` is not on PATH")
        .says("bubblewrap");
    let said = project.evals(&["check", "cases/a.yaml"]).exits(0).says("sandbox bwrap: does not work here");
    assert_eq!(said.out.matches("does not work here").count(), 1, "{}", said.out);
    assert!(!project.path(".evals").exists(), "nothing was written");
}

#[test]
fn hidden_is_hidden_behind_links_and_wherever_a_case_keeps_it() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    project.write("elsewhere/hidden/answer.txt", "the-answer");
    project.write("elsewhere/oracle/solution.txt", "the-solution");
    project.write("elsewhere/free.txt", "free-to-read");
    project.write("graders/mine.yaml", "description: the-grader\ngrader: {output: {contains: done}}\n");
    let root = project.path("").canonicalize().unwrap();
    let root = root.display();
    std::os::unix::fs::symlink(project.path(""), project.home().join("link")).unwrap();
    let link = project.home().join("link");
    let link = link.display();
    let line = format!(
        "for at in {root} {link}; do cat $at/elsewhere/free.txt $at/elsewhere/hidden/answer.txt $at/elsewhere/oracle/solution.txt $at/cases/a.yaml $at/graders/mine.yaml; done; ls {link}/.evals; echo looked"
    );
    project.case(
        "a",
        "hidden: ../elsewhere/hidden\noracle: {copy: ../elsewhere/oracle}\ngraders: [{use: mine}]",
        &runs(&line),
    );
    // The project is visible twice: through a link, and as a folder that the command names.
    let command = format!(
        "[\"{{self}}\", demo-agent, --script, \"{{script}}\", --speak, acp]\nsandbox: {{kind: bwrap, mount: [{{path: {link}}}]}}"
    );
    project.harness("linked", &format!("adapter: acp\ncommand: {command}"));
    run(&project, &["--harness", "linked"]).exits(0);
    let seen = output(&project, "a/linked/default/1");
    assert!(seen.contains("free-to-read") && seen.contains("looked"), "{seen}");
    for hidden in ["the-answer", "the-solution", "the-grader", "prompt:", "runs"] {
        assert!(!seen.contains(hidden), "{hidden} was found:\n{seen}");
    }
    // A folder in the command is not a mount.
    project.harness(
        "named",
        &format!("adapter: output-only\ncommand: [sh, -c, 'cat $0/cases/a.yaml; echo done', {root}]"),
    );
    project.case("b", "graders: [{output: {equals: done}}]", "");
    run(&project, &["--case", "b", "--harness", "named", "--sandbox", "bwrap"]).exits(0);
}

/// Makes a repository `main` whose second commit, the fix, has the tag `before` on its parent, and a work tree `linked` of it that
/// is at that tag.
fn with_a_later_fix(project: &Project) {
    project.write("main/a.txt", "broken");
    repository_in(project, "main", &["init -q .", "add .", "commit -qm first", "tag before"]);
    project.write("main/a.txt", "the-fix");
    repository_in(project, "main", &["commit -qam the-later-commit", "worktree add -q --detach ../linked before"]);
}

#[test]
fn the_commits_of_a_repository_are_hidden_behind_a_linked_work_tree_and_a_local_url() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    with_a_later_fix(&project);
    let root = project.path("").canonicalize().unwrap();
    let root = root.display();
    let log = format!("git -c safe.directory='*' --git-dir={root}/main/.git log --all --format=%s; echo looked");
    for (id, place) in [("linked", "path: ../linked".to_owned()), ("url", format!("url: 'file://{root}/main'"))] {
        let mount = format!("sandbox: {{kind: bwrap, mount: [{{path: {root}}}]}}");
        project.case(id, &format!("{mount}\nworkspace: {{git: {{{place}, rev: before}}}}"), &runs(&log));
        // Alone, as what one case hides is hidden from the agents of all cases of a run.
        run(&project, &["--case", id]).exits(0);
        let seen = output(&project, &format!("{id}/demo/default/1"));
        assert!(seen.contains("looked") && !seen.contains("the-later-commit"), "{id}: {seen}");
    }
}

#[test]
fn a_call_that_names_a_work_tree_at_another_commit_is_noticed_if_the_agent_can_see_it() {
    let project = Project::new();
    with_a_later_fix(&project);
    let root = project.path("").canonicalize().unwrap();
    let root = root.display();
    let reads = runs(&format!("cat {root}/main/a.txt"));
    project.case("later", "workspace: {git: {path: ../main, rev: before}}", &reads);
    project.case("linked", "workspace: {git: {path: ../linked}}", &reads);
    // The workspace is at the commit that the work tree shows.
    project.case("same", "workspace: {git: {path: ../main}}", &reads);
    project.demo("shown", &format!("sandbox: {{mount: [{{path: {root}}}]}}"));
    let cells = [("none", "demo", true), ("bwrap", "demo", false), ("bwrap", "shown", true)];
    for (sandbox, harness, is_seen) in cells {
        if sandbox == "bwrap" && !bubblewrap() {
            continue;
        }
        run(&project, &["--sandbox", sandbox, "--harness", harness]).exits(0);
        for (id, is_other) in [("later", true), ("linked", true), ("same", false)] {
            let trial = format!("{id}/{harness}/default/1");
            assert_eq!(output(&project, &trial).contains("the-fix"), is_seen, "{sandbox} {trial}");
            let named = notices(&project, &trial);
            assert_eq!(named.len(), usize::from(is_seen && is_other), "{sandbox} {trial}: {named:?}");
        }
    }
}

#[test]
fn what_an_agent_leaves_in_its_home_has_no_say_in_grading() {
    for sandbox in ["none", "bwrap"] {
        if sandbox == "bwrap" && !bubblewrap() {
            continue;
        }
        let project = Project::new();
        // A home whose settings decide what programs do: these let every check pass.
        let line = "echo 'exit 0' > $HOME/env.sh; echo 'exit 0' > /tmp/evals-check.sh; cat $HOME/of-setup.txt";
        let graders =
            "graders: [{command: {run: '[ -e $HOME/env.sh ] && . $HOME/env.sh; cat $HOME/of-setup.txt; false'}}]";
        project.case(
            "a",
            &format!("workspace: {{setup: ['echo from-setup > $HOME/of-setup.txt']}}\n{graders}"),
            &runs(line),
        );
        run(&project, &["--sandbox", sandbox]).exits(1).says("from-setup");
        assert!(output(&project, "a/demo/default/1").contains("from-setup"));
    }
}

#[test]
fn graders_in_bwrap_find_what_setup_left_in_the_home_under_its_own_path() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let setup = "mkdir $HOME/opt && echo \"grep -q 42 a.txt\" > $HOME/opt/chk && ln -s $HOME/opt/chk $HOME/linked && \
                 ln -s $HOME/opt/chk chk";
    let graders = "graders: [{command: {run: sh ~/linked}}, {command: {run: sh chk}}]";
    project.case(
        "a",
        &format!("workspace: {{setup: ['{setup}']}}\n{graders}"),
        &runs("echo 42 > a.txt; echo exit 1 > $HOME/opt/chk"),
    );
    run(&project, &["--sandbox", "bwrap"]).exits(0);
}

#[test]
fn what_setup_left_beside_the_workspace_is_there_for_agent_and_graders_in_bwrap() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    std::fs::write(project.home().join("secret"), "of-the-user").unwrap();
    let setup = format!(
        "['mkdir ../data && echo 42 > ../data/x && echo one > ../notes', 'ln -s data ../link && cat ../notes', \
         'ln -s {} ../out']",
        project.home().join("secret").display()
    );
    let graders = "[{command: {run: 'cmp a.txt ../data/x && cmp ../link/y ../data/y && test ! -e ../planted'}}, \
                   {command: {run: 'grep -q one ../notes && test ! -e ../out'}}]";
    project.case(
        "a",
        &format!("workspace: {{setup: {setup}}}\ngraders: {graders}"),
        &runs("cat ../link/x > a.txt; echo more > ../data/y; touch ../planted; cat ../out"),
    );
    run(&project, &["--sandbox", "bwrap"]).exits(0);
    assert!(!output(&project, "a/demo/default/1").contains("of-the-user"));
}

#[test]
fn what_setup_left_beside_the_workspace_can_be_replaced_in_bwrap_and_folders_of_the_trial_cannot() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let setup = "['mkdir ../data && echo 1 > ../file && ln -s data ../link']";
    // Graders do not see what the agent left in its home and its scratch folder.
    let check = "grep -q 2 ../file && test ! -e ../home/secret && test ! -e ../tmp/secret && ! touch ../tmp/new";
    project.case(
        "a",
        &format!("workspace: {{setup: {setup}}}\ngraders: [{{command: {{run: '{check}'}}}}]"),
        &runs(
            "echo s > $HOME/secret; echo s > /tmp/secret; sed -i s/1/2/ ../file; echo $?; mv ../data ../moved; echo $?; \
             for own in tmp home workspace; do mv ../$own ../other 2>/dev/null && echo moved; done; true",
        ),
    );
    run(&project, &["--sandbox", "bwrap"]).exits(0);
    assert_eq!(output(&project, "a/demo/default/1").lines().collect::<Vec<_>>(), ["0", "0"]);
}

#[test]
fn a_grader_in_bwrap_that_fails_without_the_agents_home_is_ungraded() {
    if !bubblewrap() {
        return;
    }
    for (act, verdict, code) in [
        ("ln -s $HOME/tools/t tool", "ungraded", 3),
        ("echo \"sh $HOME/tools/t\" > tool", "ungraded", 3),
        ("echo exit 1 > tool", "fail", 1),
        ("echo exit 0 > tool; ln -s $HOME/tools/t other", "pass", 0),
    ] {
        let project = Project::new();
        let act = format!("mkdir $HOME/tools; echo exit 0 > $HOME/tools/t; {act}");
        project.case("a", "graders: [{command: {run: sh tool}}]", &runs(&act));
        run(&project, &["--sandbox", "bwrap"]).exits(code);
        let result = project.result("a/demo/default/1");
        assert_eq!(result["verdict"], verdict, "{act}: {result}");
        let told = result["grades"][0]["reason"].as_str().unwrap().contains("in the agent's home");
        assert_eq!(told, verdict == "ungraded", "{act}: {result}");
    }
}

#[test]
fn a_hidden_folder_in_bwrap_cannot_be_moved_aside_and_back_by_the_code_that_the_check_runs() {
    if !bubblewrap() {
        return;
    }
    for (folder, answer, code) in [("check", "0", 1), ("check/deep", "0", 1), ("other", "42", 0)] {
        let project = Project::new();
        project.write("cases/fix.hidden/run.sh", "sh ./build.sh; sh check/deep/verify.sh\n");
        project.write("cases/fix.hidden/check/deep/verify.sh", "grep -q 42 a.txt\n");
        let forge = format!(
            "mv {folder} .aside && mkdir -p check/deep && echo \"rm -r {folder}; mv .aside {folder}\" > check/deep/verify.sh"
        );
        let steps = format!(
            "steps: [{{write: {{path: a.txt, text: '{answer}'}}}}, {{write: {{path: build.sh, text: '{forge}'}}}}]"
        );
        project.case("a", "hidden: fix.hidden\ngraders: [{command: {run: sh run.sh}}]", &steps);
        run(&project, &["--sandbox", "bwrap"]).exits(code);
    }
}

#[test]
fn a_protected_folder_in_bwrap_cannot_be_moved_aside_and_back_by_the_code_that_the_check_runs() {
    if !bubblewrap() {
        return;
    }
    for (folder, answer, code) in [("tests", "0", 1), ("tests/deep", "0", 1), ("other", "42", 0)] {
        let project = Project::new();
        let keys = "workspace: {files: {tests/deep/verify.sh: grep -q 42 a.txt}, protect: ['tests/**']}\n\
                    graders: [{command: {run: 'sh build.sh; sh tests/deep/verify.sh'}}]";
        let forge = format!(
            "mv {folder} .aside && mkdir -p tests/deep && echo \"rm -r {folder}; mv .aside {folder}\" > tests/deep/verify.sh"
        );
        let steps = format!(
            "steps: [{{write: {{path: a.txt, text: '{answer}'}}}}, {{write: {{path: build.sh, text: '{forge}'}}}}]"
        );
        project.case("a", keys, &steps);
        run(&project, &["--sandbox", "bwrap"]).exits(code);
    }
}

#[test]
fn settings_of_the_machine_cannot_be_written() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let line = "find /proc/sys /proc/irq /proc/bus /proc/fs /proc/driver /proc/acpi /sys -type f -writable 2>/dev/null | wc -l; for f in /proc/*; do [ -f $f ] && [ -w $f ] && echo writable $f; done; echo 1 > /proc/self/oom_score_adj && echo own-process";
    project.case(
        "a",
        "sandbox: bwrap\ngraders: [{command: {run: '! find /proc/sys -type f -writable 2>/dev/null | grep .'}}]",
        &runs(line),
    );
    project.evals(&["run"]).exits(0);
    let seen = output(&project, "a/demo/default/1");
    assert_eq!(seen.lines().collect::<Vec<_>>(), ["0", "own-process"]);
}

#[test]
fn mounts_of_cases_need_to_be_allowed_where_the_command_line_asks_for_the_sandbox() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    project.write("shared/kept.txt", "old");
    let shared = project.path("shared").display().to_string();
    project.case("a", "", &runs(&format!("echo new > {shared}/kept.txt; cat {shared}/kept.txt")));
    for (file, write) in [("suite.yaml", true), ("suite.yaml", false)] {
        project
            .write(&format!("cases/{file}"), &format!("sandbox: {{mount: [{{path: ../shared, write: {write}}}]}}\n"));
        let refused =
            run(&project, &["--sandbox", "bwrap"]).exits(2).says("shared").says("cases may not mount anything");
        assert_eq!(refused.err.contains("writable"), write, "{refused:?}");
        assert_eq!(project.read("shared/kept.txt"), "old");
    }
    project.write("cases/suite.yaml", "sandbox: {mount: [{path: ../shared, write: true}]}\n");
    run(&project, &["--sandbox", "bwrap", "--allow-mounts"]).exits(0);
    assert_eq!(project.read("shared/kept.txt"), "new\n");
    // A resumed run keeps the permission.
    project.evals(&["run", "--resume", "latest", "--rerun", "errored"]).exits(0);
    // A case with its own sandbox may have mounts, and without a sandbox there is nothing to mount.
    project.write("cases/suite.yaml", "sandbox: {kind: bwrap, mount: [{path: ../shared, write: true}]}\n");
    run(&project, &[]).exits(0);
    run(&project, &["--sandbox", "none"]).exits(0);
    project.evals(&["run", "--allow-mounts"]).exits(2).says("--sandbox");
}

/// Writes an executable file.
fn executable(path: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn agents_from_packages_start_with_what_they_are_made_of() {
    if !bubblewrap() {
        return;
    }
    let mut project = Project::new();
    let home = project.home();
    // As npm installs: a link into a package, an interpreter by its name, a dependency beside the package.
    executable(
        &home.join("node/bin/node"),
        "#!/bin/sh\ncat \"$(dirname \"$(readlink -f \"$1\")\")/../../dependency/index.txt\"\n",
    );
    executable(&home.join("npm/lib/node_modules/@x/agent/cli.js"), "#!/usr/bin/env node\n");
    std::fs::create_dir_all(home.join("npm/lib/node_modules/@x/dependency")).unwrap();
    std::fs::create_dir_all(home.join("npm/lib/node_modules/dependency")).unwrap();
    std::fs::write(home.join("npm/lib/node_modules/dependency/index.txt"), "fine from npm").unwrap();
    std::fs::create_dir_all(home.join("npm/bin")).unwrap();
    std::os::unix::fs::symlink("../lib/node_modules/@x/agent/cli.js", home.join("npm/bin/agent")).unwrap();
    project.harness("npm", "adapter: output-only\ncommand: [agent]");
    // As venv makes a program: a script with its own interpreter, and its own module.
    let venv = home.join("tools/agent");
    let made = std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&venv).status();
    let python = made.is_ok_and(|made| made.success());
    if python {
        let packages =
            std::fs::read_dir(venv.join("lib")).unwrap().flatten().next().unwrap().path().join("site-packages");
        std::fs::write(packages.join("agent_module.py"), "print('fine from venv')\n").unwrap();
        executable(&venv.join("bin/snake"), &format!("#!{}\nimport agent_module\n", venv.join("bin/python").display()));
        std::os::unix::fs::symlink("../../tools/agent/bin/snake", home.join("npm/bin/snake")).unwrap();
        project.harness("venv", "adapter: output-only\ncommand: [snake]");
    }
    std::fs::write(home.join("secret.txt"), "of-the-user").unwrap();
    let path = format!("{0}/npm/bin:{0}/node/bin:{1}", home.display(), std::env::var("PATH").unwrap());
    project.env("PATH", &path);
    project.case("a", "graders: [{output: {contains: fine from}}]", "");
    let harnesses: &[&str] = if python { &["--harness", "npm", "--harness", "venv"] } else { &["--harness", "npm"] };
    run(&project, &[&["--sandbox", "bwrap"], harnesses].concat()).exits(0);
    // The rest of the home stays hidden.
    executable(&home.join("npm/lib/node_modules/@x/agent/cli.js"), "#!/usr/bin/env node\n");
    executable(
        &home.join("node/bin/node"),
        &format!("#!/bin/sh\ncat {}/secret.txt; echo fine from it\n", home.display()),
    );
    run(&project, &["--sandbox", "bwrap", "--harness", "npm"]).exits(0);
    assert!(!project.of_trial("a/npm/default/1", "trace.jsonl").contains("of-the-user"));
}

#[test]
fn what_was_missing_in_the_sandbox_is_named_with_its_mount() {
    if !bubblewrap() {
        return;
    }
    let project = Project::new();
    let data = project.path("elsewhere/data.txt");
    project.write("elsewhere/data.txt", "needed");
    project.write("elsewhere/interpreter", "#!/bin/sh\n");
    executable(&project.path("bin/lacks"), &format!("#!/bin/sh\ncat {} || exit 3\necho fine\n", data.display()));
    project.harness("lacks", &format!("adapter: output-only\ncommand: [{}]", project.path("bin/lacks").display()));
    project.case("a", "graders: [{output: {contains: fine}}]", "");
    run(&project, &["--harness", "lacks", "--sandbox", "bwrap"]).exits(3);
    let message = project.result("a/lacks/default/1")["error"]["message"].as_str().unwrap().to_owned();
    let mount = format!("sandbox: {{mount: [{{path: {}}}]}}", data.display());
    assert!(message.contains(&mount), "{message}");
    // Without a sandbox, no mount is suggested for the same failure.
    std::fs::remove_file(&data).unwrap();
    run(&project, &["--harness", "lacks"]).exits(3);
    assert!(!project.of_trial("a/lacks/default/1", "result.json").contains("mount"));
}

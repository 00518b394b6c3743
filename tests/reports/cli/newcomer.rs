//! What a new user tries first: an agent of one's own, a command from a subfolder, a name that is almost right.

use std::time::Instant;

use crate::project::Project;

const PASS: &str = "steps: [{say: done}]";

/// A project with an agent of its own, a Python program beside the manifests.
fn own_agent(command: &str) -> Project {
    let project = Project::new();
    project.write("agents/a.py", "open('out.txt', 'w').write('x')\nprint('done')\n");
    project.harness("mine", &format!("adapter: output-only\ncommand: {command}"));
    project.write("cases/a.yaml", "prompt: x\ngraders: [{files: {exists: [out.txt]}}]\n");
    project
}

#[test]
fn the_placeholders_of_the_project_and_the_manifest_lead_to_its_files() {
    for command in
        ["[python3, \"{project}/agents/a.py\", \"{prompt}\"]", "[python3, \"{manifest-dir}/../agents/a.py\"]"]
    {
        let project = own_agent(command);
        project.evals(&["run", "--harness", "mine"]).exits(0);
        // From a folder below, and with the manifest named by its path.
        std::fs::create_dir_all(project.path("deep/er")).unwrap();
        let below = |args: &[&str]| project.command(args).current_dir(project.path("deep/er")).output().unwrap();
        let ran = below(&["run", "--harness", "mine"]);
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
        let ran = below(&["run", "../../cases/a.yaml", "--harness", "../../harnesses/mine.yaml"]);
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(project.runs().len(), 3, "all in the project");
        assert!(!project.path("deep/er/.evals").exists());
    }
}

#[test]
fn an_argument_that_the_agent_seeks_in_its_workspace_is_explained() {
    let project = own_agent("[python3, agents/a.py, \"{prompt}\"]");
    project.evals(&["run", "--harness", "mine"]).exits(3).says("write `{project}/agents/a.py`");
    let project = own_agent("[python3, \"{projekt}/agents/a.py\"]");
    project
        .evals(&["run", "--harness", "mine"])
        .exits(2)
        .says("there is no placeholder `{projekt}`")
        .says("`{project}`");
    for (written, known) in [
        ("{Project}/a.py", "{project}"),
        ("{manifest dir}/a.py", "{manifest-dir}"),
        ("{project.dir}/a.py", "{project}"),
        ("{{project}}/a.py", "{project}"),
    ] {
        let project = own_agent(&format!("[python3, \"{written}\"]"));
        let braced = written.strip_suffix("/a.py").unwrap();
        let said = project.evals(&["run", "--harness", "mine"]).exits(2);
        said.says(&format!("there is no placeholder `{braced}`")).says(&format!("did you mean `{known}`?"));
    }
    let project = own_agent("[python3, b.py, --script=agents/a.py]");
    project.write("harnesses/b.py", "");
    project
        .evals(&["check", "harnesses"])
        .exits(0)
        .says("write `{manifest-dir}/b.py`")
        .says("write `--script={project}/agents/a.py`");
    let project = own_agent("[b.py]");
    project.write("harnesses/b.py", "");
    project.evals(&["check", "harnesses"]).exits(0).says("write `{manifest-dir}/b.py`");
    let project = own_agent("[python3, {project}/agents/a.py]");
    project.evals(&["check"]).exits(2).says("harnesses/mine.yaml:").says("put a text that begins with `{` in quotes");
    let project = own_agent("[agents/none.sh]");
    let said = project.evals(&["run", "--harness", "mine"]).exits(3).says("`agents/none.sh` does not exist");
    assert!(!said.out.contains("on PATH"), "{}", said.out);
}

#[test]
fn without_cases_the_folder_and_the_way_out_are_named() {
    let project = Project::new();
    let here = project.path("").canonicalize().unwrap();
    for command in [&["run"][..], &["check"], &["list", "cases"]] {
        let said = project.evals(command).exits(2).says("has no folder `cases`").says("evals init");
        assert!(said.err.contains(&*here.to_string_lossy()), "{}", said.err);
    }
}

#[test]
fn a_path_that_is_missing_is_named_with_the_folder_in_which_it_was_searched() {
    let project = Project::new();
    project.case("a", "", PASS);
    std::fs::create_dir_all(project.path("deep")).unwrap();
    let said = |folder: &str, args: &[&str]| {
        let ran = project.command(args).current_dir(project.path(folder)).output().unwrap();
        assert_eq!(ran.status.code(), Some(2));
        let lines = String::from_utf8(ran.stderr).unwrap().replace(['│', '×'], " ");
        lines.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let real = |folder: &str| project.path(folder).canonicalize().unwrap().display().to_string();
    let text = said("deep", &["run", "cases"]);
    assert!(text.contains(&format!("`cases` does not exist in the working directory, {}", real("deep"))), "{text}");
    assert!(text.contains("did you mean `../cases`, which is in the project?"), "{text}");
    let text = said("deep", &["run", "gone"]);
    assert!(text.contains("name a case file") && !text.contains("did you mean"), "{text}");
    // The search ends at the root of a repository.
    std::fs::create_dir_all(project.path("repo/.git")).unwrap();
    std::fs::create_dir_all(project.path("repo/src")).unwrap();
    for (folder, args) in [("repo/src", &["run"][..]), ("repo", &["run"]), ("repo/src", &["run", "cases"])] {
        let text = said(folder, args);
        let ended = format!("the search for a project ended at {}, the root of a git repository", real("repo"));
        assert!(text.contains(&ended), "{text}");
    }
    std::fs::remove_dir(project.path("repo/.git")).unwrap();
    let text = said("deep", &["mine"]);
    assert!(text.contains(&format!("{} is not a git repository", real("deep"))), "{text}");
}

#[test]
fn names_that_are_almost_right_are_refused_with_the_one_meant() {
    let project = Project::new();
    project.case("fixing/a", "tags: [slow]", PASS);
    project.case("b", "", PASS);
    project
        .evals(&["run", "--model", "claude-code-strem=opus"])
        .exits(2)
        .says("no harness is named `claude-code-strem`; did you mean `claude-code-stream=opus`?");
    // The name of a model may contain `=`.
    project.evals(&["run", "--case", "b", "--model", "at=0.5"]).exits(0);
    project.evals(&["run", "--case", "b", "--model", "demo=demo-strem=m"]).exits(0);
    project.evals(&["compare", "--gate", "no-regression"]).exits(2).says("did you mean `no-regressions`?");
    project.evals(&["run", "--case", "fixing"]).exits(2).says("did you mean `--case 'fixing/*'`? The cases are b");
    project.evals(&["run", "--case", "fixing/b"]).exits(2).says("did you mean `fixing/a`?");
    project.evals(&["run", "--tag", "slwo"]).exits(2).says("did you mean `slow`? The tags are slow");
    // A manifest is looked for by the name of its file.
    project.write("harnesses/h.yaml", "name: other\nadapter: output-only\ncommand: [x]\n");
    project.evals(&["run", "--harness", "h"]).exits(2).says("did you mean `other`, the `name` in harnesses/h.yaml?");
}

#[test]
fn what_is_missing_in_a_run_is_named() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run", "--label", "good"]).exits(0);
    let folder = project.run_folder();
    std::fs::remove_file(project.path(&format!("{folder}/trials/a/demo/default/1/trace.jsonl"))).unwrap();
    let said = project.evals(&["show", "good"]).exits(0).says("PASS");
    assert!(said.err.contains("trials/a/demo/default/1/trace.jsonl is missing, so only the result"), "{}", said.err);
    project.evals(&["run", "--label", "other"]).exits(0);
    project.write(&format!("{folder}/run.json"), "x");
    project
        .evals(&["show", "good"])
        .exits(2)
        .says("no run is called `good`")
        .says("the labels of these runs are unknown, because they cannot be read")
        .says(&format!("{folder}/run.json"));
}

#[test]
fn a_line_of_many_kilobytes_is_not_printed_whole() {
    let project = Project::new();
    project.case("a", "", PASS);
    let wrong = format!("prompt: x\nlist: [{}togs]\ngraders: []\n", "ü, ".repeat(20_000));
    project.write("cases/b.yaml", &wrong);
    let said = project.evals(&["check"]).exits(2).says("cases/b.yaml:2:1: unknown key `list`");
    assert!(said.err.len() < 2000 && said.err.contains("ü, ü"), "{}", said.err);
    project.write("cases/b.yaml", &format!("{{prompt: \"{}\", togs: [a], graders: []}}\n", "x".repeat(50_000)));
    let said = project.evals(&["check"]).exits(2).says("cases/b.yaml:1:50014: unknown key `togs`");
    assert!(said.err.contains("…") && said.err.contains("togs: [a]"), "{}", said.err);
    assert!(said.err.contains("[cases/b.yaml:1:50014]") && said.err.len() < 2000, "{}", said.err);
}

#[test]
fn one_trial_of_a_case_is_not_called_saturated_or_broken() {
    let project = Project::new();
    project.case("easy", "", PASS);
    project.case("hard", "graders: [{output: {contains: never}}]", PASS);
    let flags = ["saturated", "possibly broken"];
    for (label, trials) in [("one", "1"), ("two", "1"), ("three", "2"), ("four", "2")] {
        let said = project.evals(&["run", "--label", label, "--trials", trials]).exits(1).out;
        assert!(flags.iter().all(|flag| said.contains(flag) == (trials == "2")), "{said}");
    }
    let two = ["run", "--harness", "demo", "--harness", "demo-stream", "--label", "columns"];
    let said = project.evals(&two).exits(1).out;
    assert!(flags.iter().all(|flag| !said.contains(flag)), "{said}");
    let compared = |old: &str, new: &str| project.evals(&["compare", old, new]).out;
    for (old, new, are) in [("one", "two", false), ("one", "three", false), ("three", "four", true)] {
        let said = compared(old, new);
        assert!(flags.iter().all(|flag| said.contains(flag) == are), "{old} {new}: {said}");
    }
}

#[test]
fn the_files_of_an_example_name_their_schemas() {
    let project = Project::new();
    project.evals(&["init"]).exits(0);
    for (file, schema) in [("greeting", "case"), ("suite", "suite")] {
        let text = project.read(&format!("cases/{file}.yaml"));
        let line = format!("# yaml-language-server: $schema=.schema/{schema}.json");
        assert_eq!(text.lines().next(), Some(&*line), "{file}");
        let schema: serde_json::Value =
            serde_json::from_str(&project.read(&format!("cases/.schema/{schema}.json"))).unwrap();
        assert!(schema["properties"].is_object(), "{file}");
    }
}

#[test]
fn names_and_commands_in_messages_are_not_broken() {
    let project = own_agent("[python3]");
    let said = project.evals(&["run", "--harness", "claude-code-contrl"]).exits(2);
    for name in ["`claude-code-contrl`", "`claude-code-control`", "`evals list harnesses --all`"] {
        assert!(said.err.lines().any(|line| line.contains(name)), "{name} in {}", said.err);
    }
    // A command that ends a message stands on one line, so that it can be copied.
    project.evals(&["init", "second"]).exits(0);
    let said = project.evals(&["init", "second"]).exits(2);
    assert!(said.err.lines().any(|line| line.contains("evals init DIR")), "{}", said.err);
}

#[test]
fn manifests_are_checked_by_their_path() {
    let project = own_agent("[python3]");
    for path in ["harnesses", "harnesses/", "harnesses/mine.yaml"] {
        project.evals(&["check", path]).exits(0).says("1 manifest can be read");
    }
    project.evals(&["check", "cases", "harnesses"]).exits(0).says("1 case, ");
    project.write("harnesses/mine.yaml", "name: mine\nadaptor: acp\ncommand: [x]\n");
    project.evals(&["check", "harnesses/"]).exits(2).says("did you mean `adapter`?");
}

#[test]
fn a_filter_that_matches_nothing_names_what_there_is() {
    let project = Project::new();
    project.case("a", "tags: [slow]", PASS);
    project.evals(&["run", "--tag", "slwo"]).exits(2).says("The tags are slow");
    project.evals(&["run", "--case", "b*"]).exits(2).says("the cases are a");
    project.evals(&["run", "--reporter", "junitt=x.xml"]).exits(2).says("`junitt` is not a format");
    assert!(!project.path("junitt=x.xml").exists());
}

#[test]
fn harnesses_that_are_installed_are_listed_on_a_line_each() {
    let project = own_agent("[python3]");
    let said = project.evals(&["list", "harnesses"]).exits(0).says("evals list harnesses --all");
    let rows: Vec<&str> = said.out.lines().skip(2).collect();
    assert!(rows.iter().any(|row| row.starts_with(" mine ")), "{}", said.out);
    assert!(rows.len() < 20 && !said.out.contains("amp-acp"), "{}", said.out);
    let all = project.evals(&["list", "harnesses", "--all"]).exits(0).out;
    let names = project.evals(&["list", "harnesses", "--format", "json"]).exits(0).json();
    assert_eq!(all.lines().count(), 2 + names.as_array().unwrap().len(), "{all}");
    let narrow = project.command(&["list", "harnesses"]).env("COLUMNS", "60").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    // Names and headings are whole; columns without room are left out.
    for (columns, heads) in [
        ("40", "harness installed"),
        ("50", "harness adapter installed"),
        ("60", "harness adapter installed verified"),
        ("80", "harness adapter installed verified about"),
    ] {
        let listed = project.command(&["list", "harnesses"]).env("COLUMNS", columns).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let head: Vec<&str> = listed.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(head.join(" "), heads, "{columns}: {listed}");
        assert_eq!(listed.lines().count(), rows.len() + 2, "{columns}: {listed}");
        assert!(listed.lines().any(|line| line.starts_with(" demo-stream ")), "{listed}");
    }
}

#[test]
fn what_a_failed_command_said_stands_once_as_it_was() {
    let project = Project::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11; do echo \"  line $i\" >&2; done; exit 3";
    project.case("a", &format!("graders: [{{command: {{run: '{script}', stdout-contains: [x]}}}}]"), PASS);
    let said = project.evals(&["run"]).exits(1).out;
    assert!(said.contains("exited with 3, not with"), "{said}");
    assert!(said.contains("    stderr ended with:\n      line 4\n      line 5\n"), "{said}");
    assert_eq!(said.matches("line 11").count(), 1, "{said}");
    // The line of the trial while the run goes on has the first line of the reason only.
    let said = project.evals(&["run"]).exits(1).err;
    assert!(said.contains("command: `for i in"), "{said}");
    assert!(!said.contains("stderr") && !said.contains("  line "), "{said}");
}

#[test]
fn a_line_of_standard_error_with_words_of_the_message_is_shown() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: x}}]", PASS);
    let line = "echo before it answered >&2; echo broken >&2; exit 3";
    project.harness("odd", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
    let said = project.evals(&["run", "--harness", "odd"]).exits(3).out;
    assert!(said.contains("crashed: the agent exited 3 before it answered: broken\n"), "{said}");
    assert!(said.contains("its standard error before that was\n    before it answered\n"), "{said}");
}

#[test]
fn a_changed_protected_file_is_a_failed_line() {
    let project = Project::new();
    project.write("cases/fix/t.txt", "a\n");
    let case = "workspace: {copy: fix, protect: [t.txt], protect-strict: true}\ngraders: [{files: {exists: [t.txt]}}]";
    project.case("a", case, "steps: [{edit: {path: t.txt, old: a, new: b}}, {say: done}]");
    let failed = "failed protect-strict\n    the agent changed the protected file t.txt";
    let ran = project.evals(&["run"]).exits(1).says(failed);
    assert!(!ran.out.contains("warning: the agent changed"), "{}", ran.out);
    assert!(ran.err.contains("FAIL      a  demo") && ran.err.contains("protected file t.txt"), "{}", ran.err);
    project.evals(&["show", "latest", "a"]).exits(0).says(failed);
    project
        .evals(&["report", "latest", "--format", "junit"])
        .exits(0)
        .says("<failure message=\"failed protect-strict: ");
    // Graded again with the same case, and with one that only warns.
    project.evals(&["grade", "latest"]).exits(1).says(failed);
    project.write("cases/a.yaml", &project.read("cases/a.yaml").replace(", protect-strict: true", ""));
    project.evals(&["grade", "latest"]).exits(0);
}

#[test]
fn files_that_must_not_change_are_judged_by_their_content_without_tool_calls() {
    let project = own_agent("[python3, \"{project}/agents/a.py\"]");
    project.write("agents/a.py", "open('out.txt', 'w').write('x')\nopen('out.log', 'w')\nprint('done')\n");
    let verdict = |graders: &str, ignored: &str| {
        project.write("cases/ws/.gitignore", ignored);
        project.write("cases/ws/keep/built.txt", "x\n");
        project
            .write("cases/a.yaml", &format!("prompt: x\nworkspace: {{copy: ws}}\ngraders: [{{scope: {graders}}}]\n"));
        project.evals(&["run", "--harness", "mine"]);
        let results = project.evals(&["report", "latest", "--format", "json"]).json();
        results["results"][0]["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("{never: [other.txt, \"src/**\", \".github/**\"]}", ""), "pass");
    assert_eq!(verdict("{never: [out.txt]}", ""), "fail");
    // What is outside the workspace, in `.git` or ignored is not known, and `only` is about all of that.
    for (graders, ignored) in [
        ("{never: [/etc/hosts]}", ""),
        ("{never: [\"../**\"]}", ""),
        ("{never: [.git/config]}", ""),
        ("{never: [\"{/etc/hosts,x}\"]}", ""),
        ("{never: [\"{x,.git/config}\"]}", ""),
        ("{never: [out.log]}", "*.log\n"),
        ("{never: [\"keep/**\"]}", "keep/\n"),
        ("{only: [\"out.*\"]}", ""),
    ] {
        assert_eq!(verdict(graders, ignored), "ungraded", "{graders}");
    }
}

#[test]
fn results_of_calls_name_their_subject_and_no_word_stands_twice() {
    let project = Project::new();
    project.write("cases/ws/a.txt", "text\n");
    project.case(
        "a",
        "workspace: {copy: ws}\ngraders: [{stop: {reason: [end_turn]}}]",
        "steps: [{read: {path: a.txt}}, {say: done}]",
    );
    project.evals(&["run"]).exits(0);
    let shown = project.evals(&["show", "latest", "a"]).exits(0).out;
    assert!(shown.lines().any(|line| line.contains(" ok read") && line.ends_with(" a.txt")), "{shown}");
    assert!(!shown.to_lowercase().contains("read read"), "{shown}");
}

#[test]
fn a_run_from_a_subfolder_names_the_project() {
    let project = own_agent("[python3, \"{project}/agents/a.py\"]");
    let root = project.path("").canonicalize().unwrap();
    std::fs::create_dir_all(project.path("deep")).unwrap();
    let ran = project.command(&["run", "--harness", "mine"]).current_dir(project.path("deep")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains(&format!("note: the project is {}", root.display())), "{said}");
    let ran = project.evals(&["run", "--harness", "mine"]).exits(0);
    assert!(!ran.err.contains("the project is"), "{}", ran.err);
    let ran = project.command(&["check"]).current_dir(project.path("deep")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(said.contains(&format!("note: the project is {}", root.display())), "{said}");
}

#[test]
fn a_workflow_goes_to_the_project_and_an_example_within_it_needs_a_folder() {
    let project = own_agent("[python3, \"{project}/agents/a.py\"]");
    std::fs::create_dir_all(project.path("src/deep")).unwrap();
    let below = |args: &[&str]| {
        let ran = project.command(args).current_dir(project.path("src/deep")).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (code, said) = below(&["init"]);
    assert!(code == Some(2) && said.contains("`evals init .` makes a project"), "{said}");
    let (code, said) = below(&["init", "--ci", "github"]);
    assert!(code == Some(0) && said.contains("note: the project is"), "{said}");
    assert!(project.path(".github/workflows").is_dir() && !project.path("src/deep/.github").exists());
    assert!(!project.path("cases/greeting.yaml").exists() && !project.path("src/deep/cases").exists());
    let (code, said) = below(&["init", "."]);
    assert!(code == Some(0) && project.path("src/deep/cases/greeting.yaml").is_file(), "{said}");
}

#[test]
fn a_folder_that_was_searched_in_vain_is_named_whole() {
    let project = Project::new();
    std::fs::remove_dir_all(project.path("cases")).ok();
    let root = project.path("").canonicalize().unwrap();
    let words = |text: &str| text.split_whitespace().filter(|it| *it != "│").collect::<Vec<_>>().join(" ");
    let said = words(&project.evals(&["run", "gone.yaml"]).exits(2).err);
    assert!(
        said.contains(&format!("`gone.yaml` does not exist in the working directory, {}", root.display())),
        "{said}"
    );
    let said = words(&project.evals(&["show", "latest"]).exits(2).err);
    assert!(said.contains(&format!("{}/.evals/runs; there are no runs yet", root.display())), "{said}");
    let said = words(&project.evals(&["list", "runs"]).exits(0).err);
    assert!(said.contains(&format!("there are no runs in {}/.evals/runs", root.display())), "{said}");
}

#[test]
fn a_failed_set_up_keeps_its_output_as_it_was() {
    let project = Project::new();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo \"  line $i\" >&2; done; echo out; exit 3";
    project.case("a", &format!("workspace: {{setup: ['{script}']}}"), PASS);
    project.evals(&["run"]).exits(3);
    let error = project.result("a/demo/default/1")["error"]["message"].as_str().unwrap().to_owned();
    let lines: String = (1..=12).map(|n| format!("\n  line {n}")).collect();
    assert!(error.ends_with(&format!("exited 3\nstderr:{lines}\nstdout:\nout")), "{error}");
}

#[test]
fn what_failed_comes_first_in_the_table() {
    let project = Project::new();
    for (id, text) in [("c1", "done"), ("c2", "never"), ("c10", "never"), ("c3", "done")] {
        project.case(id, &format!("graders: [{{output: {{contains: {text}}}}}]"), PASS);
    }
    let said = project.evals(&["run"]).exits(1).out;
    let row = |id: &str| said.lines().position(|line| line.trim_start_matches(['│', ' ']).starts_with(id)).unwrap();
    let rows = ["c2 ", "c10 ", "c1 ", "c3 "].map(row);
    assert!(rows.is_sorted(), "{rows:?}\n{said}");
}

#[test]
fn manifests_in_any_folder_are_checked_as_manifests() {
    let project = Project::new();
    project.write("other/q.yaml", "name: q\nadaptor: acp\ncommand: [sh]\n");
    for path in ["other/q.yaml", "other"] {
        project.evals(&["check", path]).exits(2).says("adaptor").says("adapter");
    }
    project.write("other/q.yaml", "name: q\nadapter: acp\ncommand: [sh]\n");
    project.evals(&["check", "other"]).exits(0).says("1 manifest can be read");
}

#[test]
fn a_draft_of_a_whole_suite_names_the_suite() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.write("cases/suite.yaml", "review: needed\n");
    project.evals(&["check"]).says("`review: needed` from cases/suite.yaml");
}

#[test]
fn the_command_to_run_again_has_the_sandbox_of_the_command_line() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: never}}]", PASS);
    let said = project.evals(&["run", "--sandbox", "none"]).exits(1).out;
    assert!(said.contains("--trials 1 --sandbox none"), "{said}");
}

#[test]
fn a_long_pattern_is_cut_in_a_reason() {
    let project = Project::new();
    let pattern = "(rm|unlink|shred) +".repeat(20);
    project.case("a", &format!("graders: [{{tool-calls: {{require: [{{command: '{pattern}'}}]}}}}]"), PASS);
    project.evals(&["run"]).exits(1);
    let reason = project.result("a/demo/default/1")["grades"][0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.chars().count() < 250 && reason.contains("(rm|unlink|shred) +(rm"), "{reason}");
}

#[test]
fn no_retries_on_the_command_line_are_none() {
    let project = Project::new();
    project.harness("dies", "adapter: output-only\ncommand: [sh, -c, \"exit 9\"]");
    project.write("cases/a.yaml", "prompt: x\nretries: {max: 2}\ngraders: [{stop: {reason: [end_turn]}}]\n");
    let begun = Instant::now();
    project.evals(&["run", "--harness", "dies", "--retries", "0"]).exits(3);
    let attempts = project.journal().iter().filter(|line| line["event"] == "started").count();
    assert_eq!(attempts, 1, "after {:?}", begun.elapsed());
}

#[test]
fn many_failures_end_with_their_list() {
    let project = Project::new();
    for n in 1..=5 {
        project.case(&format!("c{n}"), "graders: [{output: {contains: never}}]", PASS);
    }
    let said = project.evals(&["run"]).exits(1).says("took ").out;
    let end: Vec<&str> = said.lines().rev().take(9).collect();
    for n in 1..=5 {
        let line = format!("FAIL      c{n}  demo  failed output");
        assert!(end.iter().any(|it| it.starts_with(&line) && it.contains("`never`")), "{said}");
    }
    // Numbers in names are sorted by their value.
    project.case("c10", "graders: [{output: {contains: never}}]", PASS);
    let said = project.evals(&["run"]).exits(1).out;
    let at = |name: &str| said.rfind(&format!("FAIL      {name}  demo")).unwrap();
    assert!(at("c2") < at("c10") && at("c5") < at("c10"), "{said}");
    assert!(!said.contains("\n  trace "), "paths are with `evals show`: {said}");
}

#[test]
fn a_suite_in_a_folder_that_others_can_write_to_does_not_count() {
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("suite.yaml"), "tags: [of-a-stranger]\n").unwrap();
    std::fs::create_dir_all(shared.path().join("own/mine")).unwrap();
    std::fs::write(shared.path().join("own/suite.yaml"), "tags: [of-mine]\n").unwrap();
    std::fs::write(
        shared.path().join("own/mine/a.yaml"),
        "prompt: x\ntags: [case]\ngraders: [{output: {contains: x}}]\n",
    )
    .unwrap();
    let tags = |mode: u32| {
        std::fs::set_permissions(shared.path(), std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let project = Project::new();
        let mut list = project.command(&["list", "cases", "mine", "--format", "json"]);
        let done = list.current_dir(shared.path().join("own")).output().unwrap();
        let cases: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        cases[0]["tags"].clone()
    };
    assert_eq!(tags(0o700), serde_json::json!(["of-a-stranger", "of-mine", "case"]));
    assert_eq!(tags(0o777), serde_json::json!(["of-mine", "case"]));
}

#[test]
fn a_suite_beside_the_folder_of_cases_is_named_as_not_read() {
    let project = Project::new();
    let case = "prompt: hi\ngraders: [{output: {contains: done}}]\n";
    project.write("evals/suite.yaml", "limits: {time: 1m}\n");
    project.write("evals/cases/x.yaml", case);
    for path in ["evals", "evals/cases", "evals/cases/x.yaml"] {
        project.evals(&["check", path]).exits(0).says("`evals/suite.yaml` is not read: it does not apply");
    }
    project.write("evals/y.yaml", case);
    let checked = project.evals(&["check", "evals"]).exits(0);
    assert!(!checked.err.contains("is not read"), "{}", checked.err);
}

#[test]
fn baselines_and_snapshots_are_those_of_the_project() {
    let project = Project::new();
    project.case("a", "graders: [{stop: {reason: [end_turn]}}]", PASS);
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    std::fs::create_dir_all(project.path("deep")).unwrap();
    let below = |args: &[&str]| {
        let ran = project.command(args).current_dir(project.path("deep")).output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    };
    below(&["baseline", "set"]);
    below(&["baseline", "show"]);
    below(&["snapshot", "accept"]);
    assert!(project.path("cases/baseline.json").is_file() && project.path("cases/a.snapshots/demo.snap").is_file());
}

#[test]
fn a_manifest_is_no_case_of_the_folder_around_it() {
    let project = own_agent("[python3, agents/a.py, \"{prompt}\"]");
    project.write("graders/g.yaml", "stop: {reason: [end_turn]}\n");
    project.evals(&["list", "cases", "."]).exits(0);
    project.evals(&["check", "."]).exits(0);
    let listed: serde_json::Value =
        serde_json::from_str(&project.evals(&["list", "cases", ".", "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    project.evals(&["run", "harnesses/mine.yaml"]).exits(2).says("holds manifests").says("--harness FILE");
    project.evals(&["run", "graders/g.yaml"]).exits(2).says("holds named graders");
    // Named graders are checked as without a path.
    project.write("graders/g.calibration.yaml", "model: x\n");
    let ran = project.evals(&["check", "graders/g.yaml", "graders/g.calibration.yaml"]).exits(0);
    ran.says("1 named grader can be read");
    project.evals(&["check", "graders/h.yaml"]).exits(2).says("there is no such file");
    project.write("graders/h.yml", "stop: {reason: [end_turn]}\n");
    project.evals(&["check", "graders/h.yml"]).exits(2).says("its name does not end in .yaml");
    project.write("graders/h.yaml", "output: {json-schema: missing.json}\n");
    for checked in [&["check"][..], &["check", "graders"], &["check", "graders/g.yaml"]] {
        project.evals(checked).exits(2).says("graders/h.yaml:1:10").says("`missing.json`, which does not exist");
    }
    for file in ["h.yaml", "h.yml", "g.calibration.yaml"] {
        std::fs::remove_file(project.path("graders").join(file)).unwrap();
    }
    // Below a folder of cases, the name of a folder says nothing.
    project.write("cases/harnesses/b.yaml", "prompt: x\ngraders: [{stop: {reason: [end_turn]}}]\n");
    project.evals(&["list", "cases", "."]).exits(0).says("harnesses/b");
    // What `run` notes, `check` notes too.
    for checked in ["harnesses", "harnesses/mine.yaml"] {
        project.evals(&["check", checked]).exits(0).says("write `{project}/agents/a.py`");
    }
    project.write("harnesses/mine.yaml", "name: mine\nadapter: acpp\ncommand: [x]\n");
    let said = project.evals(&["check", "harnesses/mine.yaml"]).exits(2).err;
    assert_eq!(said.matches("is not known in `adapter`").count(), 1, "{said}");
}

#[test]
fn the_latest_run_is_one_that_ran() {
    let project = Project::new();
    project.case("a", "graders: [{stop: {reason: [end_turn]}}]", PASS);
    project.evals(&["run", "--label", "whole"]).exits(0);
    let whole = project.run_named("whole");
    // An interrupted run, of which no trial has finished.
    project.harness("slow", "adapter: output-only\ncommand: [sh, -c, \"touch {project}/began; sleep 60\"]");
    let mut run = project.command(&["run", "--harness", "slow", "--label", "cut"]).spawn().unwrap();
    crate::project::wait_for("the trial", || project.path("began").exists());
    let id = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let shown = project.evals(&["report", "latest", "--format", "json"]).exits(0).json();
    assert_eq!(shown["run"], whole.rsplit('/').next().unwrap(), "{shown}");
    project.evals(&["show", "latest"]).exits(0);
    // The run to go on with is the newest one.
    project.evals(&["run", "--resume", "latest", "--dry-run"]).exits(0).says("slow");
}

#[test]
fn commands_to_copy_are_not_broken() {
    let project = Project::new();
    project.harness(
        "gone",
        "adapter: output-only\ncommand: [no-such-agent-anywhere]\ninstall: npm install -g @some-publisher/some-agent",
    );
    project.write("cases/a.yaml", "prompt: x\ngraders: [{stop: {reason: [end_turn]}}]\n");
    project.evals(&["run", "--harness", "gone"]).exits(3).says("`npm install -g @some-publisher/some-agent`");
    // Nor are names and times in a table.
    project.case("b", "graders: [{stop: {reason: [end_turn]}}]", PASS);
    let two = ["run", "--case", "b", "--harness", "demo", "--harness", "demo-stream", "--label", "two-columns"];
    project.evals(&two).exits(0);
    let listed = project.command(&["list", "runs"]).env("COLUMNS", "80").output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for folder in project.runs() {
        assert!(listed.contains(&folder), "{listed}");
    }
}

#[test]
fn a_narrow_table_leaves_columns_out_and_breaks_no_name() {
    let project = Project::new();
    let long = "a-folder/a-case-with-a-rather-long-name";
    project.case(long, "tags: [one-tag, another-tag]", PASS);
    project.evals(&["run", "--label", "a-label-of-some-length"]).exits(0);
    for (args, left_out) in [
        (&["list", "cases"][..], "no room for: trials, about"),
        (&["list", "runs"], "no room for: started"),
        (&["history"], "no room for: flaky, cost, time, passed, runs"),
        (&["report", "latest"], ""),
    ] {
        for (columns, is_narrow) in [("66", true), ("200", false)] {
            let said = project.command(args).env("COLUMNS", columns).output().unwrap();
            let said = String::from_utf8(said.stdout).unwrap();
            let name = if args == ["list", "runs"] { &project.runs()[0] } else { long };
            assert!(
                said.contains(name) && said.contains("no room for") == (is_narrow && !left_out.is_empty()),
                "{said}"
            );
            assert!(!is_narrow || said.contains(left_out), "{left_out}: {said}");
            let table = || said.lines().take_while(|line| !line.is_empty() && !line.starts_with("1 passed"));
            assert!(
                args[0] == "report" || table().all(|line| line.chars().count() <= columns.parse().unwrap()),
                "{said}"
            );
        }
    }
}

#[test]
fn a_program_or_a_file_of_a_manifest_that_cannot_be_is_told_with_the_way_out() {
    let project = Project::new();
    project.write("cases/a.yaml", "prompt: x\ngraders: [{stop: {reason: [end_turn]}}]\n");
    project.write("bin/x", "");
    for (command, why) in [
        ("[\"{project}/bin\", x]", "bin` is a folder; write the path of the program in it"),
        ("[./bin, x]", "bin` is a folder; write the path of the program in it"),
        ("[~/agent, x]", "no shell replaces the `~`"),
        ("[\"python3 -u\", x.py]", "write each word as an item of the list"),
        ("[\"{project}/bin/x\", x]", "`chmod +x`"),
    ] {
        project.harness("own", &format!("adapter: output-only\ncommand: {command}\nprompt-via: stdin"));
        project.evals(&["run", "--harness", "own", "--label", "x"]).exits(3);
        let run = project.runs().pop().unwrap();
        let result = project.read(&format!(".evals/runs/{run}/trials/a/own/default/1/result.json"));
        let error = serde_json::from_str::<serde_json::Value>(&result).unwrap()["error"].clone();
        let category = if why == "`chmod +x`" { "start_failed" } else { "not_installed" };
        assert_eq!(error["category"], category, "{error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{why}: {error}");
    }
    let lacks = "adapter: output-only\ncommand: [python3, \"{project}/agents/a.py\", \"--log={project}/a.log\"]";
    project.harness("own", &format!("{lacks}\nprompt-via: stdin"));
    let said = project.evals(&["check"]).exits(0).says("the argument `{project}/agents/a.py` names ").err;
    assert!(said.contains("which does not exist") && !said.contains("a.log"), "{said}");
}

#[test]
fn an_example_names_an_agent_that_is_installed() {
    let project = Project::new();
    project.write("bin/codex", "#!/bin/sh\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.path("bin/codex"), mode).unwrap();
    let init = |path: &std::path::Path, folder: &str| {
        let ran = project.command(&["init", folder]).env("PATH", path).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
    };
    let said = init(&project.path("bin"), "one");
    assert!(said.contains("--harness codex") && said.contains("installed here: codex"), "{said}");
    let said = init(&project.path("none"), "two");
    assert!(said.contains("--harness claude-code-stream") && said.contains("no agent is installed"), "{said}");
}

#[test]
fn completions_end_quietly_where_nobody_reads_on() {
    for (shell, reader) in [
        ("bash", "head -1"),
        ("zsh", "head -1"),
        ("bash --names", "true"),
        ("zsh --names", "true"),
        ("fish --names", "true"),
    ] {
        let line = format!("{} completions {shell} | {reader}", env!("CARGO_BIN_EXE_evals"));
        let ran = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{shell}");
    }
}

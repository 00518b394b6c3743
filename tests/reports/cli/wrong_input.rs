//! Wrong input: a message with the place, what was meant and the way out; exit 2, and nothing is written.

use crate::project::{Project, Ran};

const PASS: &str = "steps: [{say: done}]\n";

/// A project with one good case.
fn project() -> Project {
    let project = Project::new();
    project.case("good", "graders: [{use: finished}]", PASS);
    project.write("harnesses/twice.yaml", "name: twice\nadapter: acp\ncommand: [x]\n");
    project
}

#[track_caller]
fn refused(project: &Project, args: &[&str]) -> String {
    let ran: Ran = project.evals(args).exits(2);
    assert!(!project.path(".evals").exists(), "something was written");
    assert!(ran.out.is_empty(), "{}", ran.out);
    assert!(project.left_over().is_empty());
    let root = project.path("").canonicalize().unwrap().display().to_string();
    // Where a message with a path is broken depends on the length of the path.
    let said = if ran.err.contains(&root) { ran.err.replace("\n  │ ", " ") } else { ran.err };
    said.replace(&root, "[project]")
}

#[test]
fn a_negative_number_is_refused_as_a_number() {
    let project = project();
    for (args, option) in [
        (&["run", "--trials", "-1"][..], "--trials"),
        (&["run", "--jobs", "-3"], "--jobs"),
        (&["prune", "--keep", "-1"], "--keep"),
        (&["mine", "--hunks", "-2"], "--hunks"),
    ] {
        let said = refused(&project, args);
        assert!(said.contains("invalid value '-") && said.contains(option) && !said.contains("tip:"), "{said}");
    }
}

#[test]
fn a_price_below_zero_and_a_trace_that_is_not_there_are_named() {
    let project = project();
    project.write("costs.yaml", "date: 2026-11-01\nmodels:\n  m: {input: -1, output: 2}\n");
    let said = refused(&project, &["run", "--prices", "costs.yaml"]);
    assert!(said.contains("costs.yaml:3:14") && said.contains("write a number from 0"), "{said}");
    for args in [&["show", "traces/x.jsonl"][..], &["report", "runs/x"]] {
        let said = refused(&project, args);
        assert!(said.contains(&format!("`{}` does not exist, and no run is called so", args[1])), "{said}");
    }
    project.write("costs.yaml", "date: yesterday\nmodels: {}\n");
    let said = refused(&project, &["run", "--prices", "costs.yaml"]);
    assert!(said.contains("costs.yaml:1:7") && said.contains("`yesterday` is not a date"), "{said}");
    for model in ["", " ", "demo=", "=x"] {
        let said = refused(&project, &["run", "--model", model]);
        assert!(said.contains("`--model ") && said.contains("names no model"), "{said}");
    }
    let said = refused(&project, &["run", "case"]);
    assert!(said.contains("`case` does not exist") && said.contains("evals init"), "{said}");
    let said = refused(&project, &["man", "cases/good.yaml"]);
    assert!(said.contains("the folder cases/good.yaml could not be made"), "{said}");
}

#[test]
fn check_refuses_a_price_table_that_a_run_refuses() {
    let project = project();
    project.write("prices.yaml", "date: yesterday\nmodels: {}\n");
    for args in [&["check"][..], &["run"], &["run", "--dry-run"]] {
        let said = refused(&project, args);
        assert!(said.contains("prices.yaml:1:7") && said.contains("`yesterday` is not a date"), "{args:?}: {said}");
    }
    // It is one of all errors.
    project.case("bad", "promt: x", "");
    let said = refused(&project, &["check"]);
    assert!(said.contains("prices.yaml:1:7") && said.contains("cases/bad.yaml:2:1"), "{said}");
    std::fs::remove_file(project.path("cases/bad.yaml")).unwrap();
    // A link that leads nowhere is not the built-in table.
    std::fs::remove_file(project.path("prices.yaml")).unwrap();
    std::os::unix::fs::symlink("gone.yaml", project.path("prices.yaml")).unwrap();
    for args in [&["check"][..], &["run"]] {
        assert!(refused(&project, args).contains("prices.yaml: the file could not be read"), "{args:?}");
    }
}

#[test]
fn a_protection_of_no_file_is_told() {
    let project = project();
    project.case("strict", "workspace: {protect-strict: true}\ngraders: [{use: finished}]", PASS);
    project.evals(&["check"]).exits(0).says("warning: case `strict`: `protect-strict` has no effect");
}

#[test]
fn a_listed_test_beside_a_part_of_its_name_is_told() {
    let project = project();
    let list = |names: &str| {
        let keys = format!("graders: [{{tests: {{run: pytest -v, fail-to-pass: [{names}]}}}}]");
        project.case("parts", &keys, PASS);
        project.evals(&["check"]).exits(0)
    };
    list("'a.py::test_x', test_x").says("warning: case `parts`: grader `tests` lists `test_x` and `a.py::test_x`");
    let whole = list("'a.py::test_x', 'b.py::test_x'");
    assert!(!whole.err.contains("lists `"), "{}", whole.err);
}

#[test]
fn typos_and_wrong_types_are_shown_where_they_stand() {
    for (name, path, text) in [
        ("case_key", "cases/bad.yaml", "prompt: x\ngradrs: []\n"),
        ("word_without_settings", "cases/bad.yaml", "prompt: x\ninteraction: scripted\n"),
        ("word_with_settings", "cases/bad.yaml", "prompt: x\ninteraction: {manual: {a: b}}\n"),
        ("suite_key", "cases/suite.yaml", "tags: [a]\nlimit: {time: 1m}\n"),
        ("case_type", "cases/bad.yaml", "prompt: x\ntrials: many\ngraders: [{stop: {reason: [end_turn]}}]\n"),
        ("grader_name", "cases/bad.yaml", "prompt: x\ngraders:\n  - outptu: {contains: x}\n"),
        ("grader_body", "cases/bad.yaml", "prompt: x\ngraders:\n  - output: {contians: x}\n"),
        ("grader_use", "cases/bad.yaml", "prompt: x\ngraders:\n  - use: no-such-grader\n"),
        ("named_grader", "graders/finished.yaml", "description: x\ncommand: {rum: x}\n"),
        ("manifest_key", "harnesses/mine.yaml", "name: mine\nadapter: acp\ncomand: [x]\n"),
        ("manifest_type", "harnesses/mine.yaml", "name: mine\nadapter: apc\ncommand: [x]\n"),
        ("demo_script", "cases/good.demo.yaml", "steps:\n  - sya: done\n"),
        ("no_yaml", "cases/bad.yaml", "prompt: [x\n"),
        (
            "asserts_nothing",
            "cases/bad.yaml",
            "prompt: x\ngraders:\n  - stop: {reason: [end_turn], diagnostic: true}\n",
        ),
        ("no_graders", "cases/bad.yaml", "prompt: x\n"),
        (
            "missing_fixture",
            "cases/bad.yaml",
            "prompt: x\nworkspace: {copy: fixtures/nope}\ngraders: [{diff: {none: true}}]\n",
        ),
        ("unknown_harness", "cases/bad.yaml", "prompt: x\nharnesses: [dmeo]\ngraders: [{diff: {none: true}}]\n"),
        ("no_script", "cases/bad.yaml", "prompt: x\ngraders: [{diff: {none: true}}]\n"),
        ("same_harness", "harnesses/other.yaml", "name: twice\nadapter: acp\ncommand: [x]\n"),
        ("same_id", "cases/other/bad.yaml", "id: good\nprompt: x\ngraders: [{diff: {none: true}}]\n"),
    ] {
        let project = project();
        project.write(path, text);
        insta::assert_snapshot!(name, refused(&project, &["run"]));
    }
}

/// The first line of each error: its place, and what is wrong.
fn told(shown: &str) -> Vec<&str> {
    shown.lines().filter_map(|line| line.strip_prefix("  × ")).collect()
}

#[test]
fn check_tells_all_errors_of_all_files_at_once() {
    let project = project();
    // Of each kind of error one, and what is right stands between them.
    project.write(
        "cases/bad.yaml",
        r#"promt: x
prompt: ""
workspace: {cop: ws, protect: ['[']}
timeout: soon
hidden: nowhere
tags: [one, [x], two, ""]
graders:
  - outpt: {contains: x}
  - output: {contans: x}
  - use: nobody
  - stop: {reason: [end_turn]}
  - output: {contains: x, weight: -1}
  - command: {run: "true", run: "false"}
  - output: !x y
  - use: nobody-else
  - files: {exist: [a], name: "", gate: perhaps}
limits: {time: 0s, tokens: many}
interaction: {scripted: {rules: [{when: {nth: 0}}, {when: {knd: x}, decision: reject}]}}
id: a/../b
"#,
    );
    project.write("cases/late.yaml", "prompt: x\ngraders: [{outpt: {}}]\n");
    project.write("cases/late.demo.yaml", "steps:\n  - sya: x\n  - say: [x]\n  - write: {pth: x}\n");
    project.write("cases/suites/suite.yaml", "trails: 3\nprompt: x\n");
    project.write("cases/suites/in.yaml", "prompt: x\ngraders: [{use: finishd}]\n");
    project.write("harnesses/h.yaml", "name: a/b\nadapter: acp\ncomand: []\njobs: 0\nmodel: {via: flga}\n");
    project.write("graders/g.yaml", "description: [x]\ngraders:\n  - output: {contans: x}\n  - outpt: {}\n");
    let shown = refused(&project, &["check"]);
    insta::assert_snapshot!("all_at_once", told(&shown).join("\n"));
}

#[test]
fn a_file_with_errors_without_end_ends_with_a_word_about_it() {
    let project = project();
    let graders = "  - outpt: {contains: x}\n".repeat(300);
    project.write("cases/bad.yaml", &format!("prompt: x\ngraders:\n{graders}"));
    let shown = refused(&project, &["check"]);
    let told = told(&shown);
    assert_eq!(told.len(), 51, "{told:?}");
    assert!(told.iter().any(|line| line.contains("there may be more")), "{told:?}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    // A folder in the place of a file.
    for (path, said) in [("harnesses/bad.yaml", "harnesses/bad.yaml"), ("graders/bad.yaml", "graders/bad.yaml")] {
        let project = project();
        std::fs::create_dir_all(project.path(path)).unwrap();
        assert!(refused(&project, &["run"]).contains(said), "{path}");
    }
    let project_with_folder = project();
    std::fs::remove_file(project_with_folder.path("cases/good.demo.yaml")).unwrap();
    std::fs::create_dir(project_with_folder.path("cases/good.demo.yaml")).unwrap();
    assert!(refused(&project_with_folder, &["run"]).contains("good.demo.yaml"));
    // And a file in the place of a folder.
    for key in ["workspace: {copy: a.txt}", "hidden: a.txt"] {
        let project = project();
        project.write("cases/a.txt", "");
        project.case("bad", key, PASS);
        let said = refused(&project, &["run"]);
        assert!(said.contains("cases/bad.yaml:2:") && said.contains("a.txt"), "{said}");
    }
    for (name, path) in [("case", "cases/bad.yaml"), ("manifest", "harnesses/bad.yaml"), ("suite", "cases/suite.yaml")]
    {
        let project = project();
        project.write(path, "");
        std::fs::write(project.path(path), b"prompt: \xff\xfe\n").unwrap();
        let said = refused(&project, &["run"]);
        assert!(said.contains(path) && said.contains("UTF-8"), "{name}: {said}");
    }
}

#[test]
fn several_errors_are_told_at_once() {
    let project = project();
    project.write("cases/bad.yaml", "prompt: x\ngradrs: []\n");
    project.write("cases/worse.yaml", "promt: x\n");
    project.write("harnesses/mine.yaml", "name: mine\nadapter: apc\n");
    let said = refused(&project, &["run"]);
    for word in ["gradrs", "promt", "apc"] {
        assert!(said.contains(word), "{word} is not told:\n{said}");
    }
    assert_eq!(refused(&project, &["check"]), said, "`check` says the same");
}

#[test]
fn a_folder_that_cannot_be_read_is_no_empty_folder() {
    for folder in ["graders", "harnesses", "policies"] {
        let project = project();
        let _ = std::fs::remove_dir_all(project.path(folder));
        // No user can read a link to itself.
        std::os::unix::fs::symlink(folder, project.path(folder)).unwrap();
        for command in ["check", "run"] {
            project.evals(&[command]).exits(2).says(&format!("{folder}: the folder could not be read"));
        }
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let project = project();
    project.harness("fixed", "adapter: acp\ncommand: [x]");
    let said: Vec<String> = [
        &["--limit", "time"][..],
        &["--limit", "tme=3m"],
        &["--limit", "time=soon"],
        &["--limit", "time=1e19"],
        &["--limit", "steps=-1"],
        &["--limit", "cost-usd=NaN"],
        &["--shard", "3/2"],
        &["--shard", "0/2"],
        &["--shard", "x"],
        &["--trials", "0"],
        &["--trials", "4000000000"],
        &["--jobs", "0"],
        &["--jobs", "many"],
        &["--retries", "x"],
        &["--retries", "99999999999"],
        &["--seed", "1.5"],
        &["--max-cost", "-1"],
        &["--max-time", "soon"],
        &["--interaction", "auto-aprove"],
        &["--interaction", "scripted: {rules: [{when: {knd: edit}, answer: allow-once}]}"],
        &["--harness", "dmeo"],
        &["--harness", "zzz"],
        &["--harness", "./nothing.yaml"],
        &["--harness", "fixed", "--model", "x"],
        &["--model", "demo-text=x"],
        &["--reporter", "jsno"],
        &["--case", "nothing"],
        &["--tag", "nothing"],
        &["nowhere"],
        &["--resume", "latest"],
        &["--rerun", "errored"],
        &["--frobnicate"],
    ]
    .iter()
    .map(|args| format!("$ evals run {}\n{}", args.join(" "), refused(&project, &[&["run"], *args].concat())))
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn an_option_is_refused_without_the_one_that_it_requires() {
    let project = project();
    // Each of these arguments conflicts with `--resume`, which clap then no longer requires.
    let fresh: [&[&str]; 19] = [
        &[],
        &["cases"],
        &["--harness", "demo"],
        &["--model", "m"],
        &["--experiment", "e.yaml"],
        &["--variant", "a={}"],
        &["--aa"],
        &["--trials", "1"],
        &["--case", "good"],
        &["--tag", "t"],
        &["--shard", "1/2"],
        &["--label", "l"],
        &["--limit", "time=2m"],
        &["--interaction", "auto-reject"],
        &["--sandbox", "none"],
        &["--sandbox", "none", "--allow-mounts"],
        &["--gateway", "observe"],
        &["--gateway-timing", "none"],
        &["--jobs", "1"],
    ];
    for args in fresh {
        for option in [["--rerun", "failed"], ["--rerun", "errored"], ["--changed", "keep"], ["--changed", "rerun"]] {
            let said = refused(&project, &[&["run"], args, &option[..]].concat());
            let wanted = "error: the following required arguments were not provided:\n  --resume <RUN>\n";
            assert!(said.starts_with(wanted) && said.contains("Usage: evals run"), "{args:?} {option:?}: {said}");
        }
    }
    for args in [&["-o", "out.jsonl"][..], &["--output", "out.jsonl"], &[]] {
        let said = refused(&project, &[&["import", "x.jsonl", "--format", "json"], args].concat());
        assert!(said.contains("not provided:\n  --explain\n"), "{args:?}: {said}");
    }
}

#[test]
fn newer_files_are_refused_with_the_way_out() {
    let project = project();
    project.evals(&["run"]).exits(0);
    let id = project.runs()[0].clone();
    let path = format!(".evals/runs/{id}/run.json");
    project.write(&path, &project.read(&path).replacen("\"version\": 1", "\"version\": 99", 1));
    let folder = project.path(".evals/runs").join(&id).display().to_string();
    let before = project.files(".evals");
    for name in [id.as_str(), "latest", &folder] {
        for args in [&["report", name][..], &["show", name], &["run", "--resume", name]] {
            project.evals(args).exits(2).says("version 99").says("use a newer evals");
        }
    }
    assert!(project.files(".evals") == before);

    project.write("new.jsonl", "{\"type\":\"trace\",\"version\":99,\"adapter\":\"acp\"}\n");
    project.evals(&["show", "new.jsonl"]).exits(2).says("99");
    project.harness("newer", "adapter: replay\nrecording: ../new.jsonl");
    project.write(&path, &project.read(&path).replacen("\"version\": 99", "\"version\": 1", 1));
    project.evals(&["run", "--harness", "newer"]).exits(3).says("start_failed").says("use a newer evals");
}

#[test]
fn a_damaged_run_is_told_and_not_shown_as_something_else() {
    let project = project();
    project.evals(&["run"]).exits(0);
    let folder = project.run_folder();
    let id = project.runs()[0].clone();
    project.write(&format!("{folder}/run.json"), "{");
    project.evals(&["report", &id]).exits(2).says("run.json");
    project.evals(&["report", &folder]).exits(2).says("run.json");
    project.evals(&["list", "runs"]).exits(0);
}

#[test]
fn a_run_folder_that_cannot_be_made_is_told_before_anything_starts() {
    let project = project();
    project.write("file", "");
    let ran = project.evals(&["run", "--out", "file/runs"]).exits(2).says("file/runs");
    assert!(ran.out.is_empty());
    // Nor does a run begin whose report has no place to go.
    refused(&project, &["run", "--reporter", "json=file/at/all.json"]);
}

#[test]
fn what_is_named_wrongly_is_told_with_what_could_be_named() {
    let project = project();
    project.evals(&["import", "-"]).exits(2).says("standard input is empty");
    let script = "good.demo.yaml is a script of the demo agent; name a script of a model";
    project.evals(&["gateway", "script", "cases/good.demo.yaml"]).exits(2).says(script);
    project.write("graders/quality.yaml", "rubric: {criteria: [{id: a, ask: Was it tested?}]}\n");
    let unknown = project.evals(&["calibrate", "--rubric", "nope", "labels.jsonl"]).exits(2);
    let unknown = unknown.says("there is no grader named `nope` in graders/; known rubrics and comparisons: ");
    assert!(unknown.err.contains("`quality`") && !unknown.err.contains("`finished`"), "{}", unknown.err);
}

#[test]
fn recordings_that_cannot_be_read_are_told() {
    let project = project();
    project.evals(&["import", "--adapter", "acp", "nothing.jsonl"]).exits(2).says("nothing.jsonl");
    project.evals(&["import", "--adapter", "acp", "cases"]).exits(2).says("folder");
    project.evals(&["import", "--adapter", "apc", "x"]).exits(2);
    project.evals(&["import", "x"]).exits(2).says("could not read x");
    project.write("x", "plain text\n");
    project.evals(&["import", "x"]).exits(2).says("the format of x is unknown").says("--adapter");
    project.evals(&["import", "--harness", "dmeo", "x"]).exits(2).says("did you mean `demo`");
}

//! What an agent gets of its own case, wherever it is laid: it is found, and its scores pass no gate and show no difference.

use serde_json::{Value, json};

use crate::project::Project;

/// An agent that prints its prompt and every file in its folder and its home.
const PROBE: &str = r#"
adapter: output-only
command: [sh, -c, 'echo "prompt=$1"; cd "$HOME" && find .x -type f 2>/dev/null | sort; cat "$HOME/.x/X.md" 2>/dev/null; true', sh, "{prompt}"]
prompt-via: argument
skills: {project: .x/skills, user: .x/skills}
instructions: {project: X.md, user: .x/X.md}
"#;

const ANSWER: &str =
    "the answer that the hidden file holds, in more than sixty-four bytes, is 4711\nand it has a second line\n";

fn skill(project: &Project, name: &str, more: &str) {
    let text = format!("---\nname: {name}\ndescription: Does it.\n---\nDo it.\n{more}");
    project.write(&format!("skills/{name}/SKILL.md"), &text);
}

/// Makes a project with a case `a` that has these keys, and an experiment with these variants.
fn project(keys: &str, variants: &str) -> Project {
    let project = Project::new();
    project.harness("probe", PROBE);
    project.write("cases/a.yaml", &format!("prompt: p\n{keys}\ngraders: [{{output: {{contains: prompt}}}}]\n"));
    let experiment = "cases: [../cases]\nharness: probe\nvary: [files, skills, instructions, prompt]\nbaseline: without\n\
                      variants:\n";
    project.write("experiments/x.yaml", &format!("{experiment}{variants}"));
    project
}

fn run(project: &Project) -> crate::project::Ran {
    project.evals(&["run", "--experiment", "experiments/x.yaml"]).exits(0)
}

/// Returns the files of its case that the agent of an arm got.
fn shown(project: &Project, arm: &str) -> Value {
    let warnings = project.result(&format!("a/probe/{arm}/1"))["warnings"].as_array().cloned().unwrap_or_default();
    let warning = warnings.into_iter().find(|it| it["code"] == "case_in_workspace");
    warning.map(|it| it["files"].clone()).unwrap_or_default()
}

#[test]
fn an_answer_is_found_as_a_part_of_any_text_and_with_other_line_ends() {
    let suffix = ANSWER.replace('\n', "\\n");
    let variants = format!(
        "  without: {{skills: [../skills/plain]}}\n  quote: {{skills: [../skills/quote]}}\n  \
         crlf: {{skills: [../skills/crlf]}}\n  files: {{files: ../extra}}\n  prompt: {{prompt: {{suffix: \"{suffix}\"}}}}\n"
    );
    let project = project("hidden: h", &variants);
    project.write("cases/h/answer.txt", ANSWER);
    skill(&project, "plain", "");
    skill(&project, "quote", ANSWER);
    skill(&project, "crlf", "");
    project.write("skills/crlf/ref.txt", &format!("{}\r\n", ANSWER.replace('\n', "\r\n")));
    project.write("extra/notes/a.md", &format!("# Notes\n{ANSWER}"));
    run(&project);
    assert_eq!(shown(&project, "without"), Value::Null);
    assert_eq!(shown(&project, "quote"), json!(["~/.x/skills/quote/SKILL.md"]));
    assert_eq!(shown(&project, "crlf"), json!(["~/.x/skills/crlf/ref.txt"]));
    assert_eq!(shown(&project, "files"), json!(["notes/a.md"]));
    assert_eq!(shown(&project, "prompt"), json!(["prompt of the variant"]));
}

#[test]
fn a_copy_of_a_case_without_hidden_files_is_found_in_a_skill() {
    let project = project("", "  without: {}\n  with: {skills: [../skills/s]}\n");
    skill(&project, "s", "");
    project.write("skills/s/references/copy.yaml", &project.read("cases/a.yaml"));
    run(&project);
    assert_eq!(shown(&project, "with"), json!(["~/.x/skills/s/references/copy.yaml"]));
}

#[test]
fn files_that_many_projects_share_are_no_answers() {
    let project = project("hidden: h", "  without: {}\n  with: {skills: [../skills/s]}\n");
    let header = "# Licensed under the licence of which each file has this header\n".repeat(9);
    let requirements = "pytest==8.0.0\n".repeat(20);
    skill(&project, "s", "");
    let files = [
        ("package.json", "{\"type\": \"module\"}\n"),
        ("LICENSE", "Permission is hereby granted, free of charge, to any person obtaining a copy of this software\n"),
        ("tests/__init__.py", "from __future__ import annotations\n"),
        ("tests/data/__init__.py", header.as_str()),
        ("requirements-dev.txt", requirements.as_str()),
    ];
    for (path, text) in files {
        project.write(&format!("cases/h/{path}"), text);
        project.write(&format!("skills/s/scripts/{path}"), text);
    }
    project.write("cases/h/a.py", "from __future__ import annotations\n");
    project.write("skills/s/scripts/b.py", "from __future__ import annotations\n");
    project.write("skills/s/scripts/c.py", &format!("{header}print(1)\n"));
    run(&project);
    assert_eq!(shown(&project, "with"), Value::Null);
}

#[test]
fn a_hidden_folder_with_the_name_of_a_folder_of_the_workspace_shows_no_trivial_file_there() {
    let files = r#"{tests/__init__.py: "\n", tests/b/one.txt: "1\n", tests/c/t.txt: "a whole answer\nof two lines"}"#;
    let keys = format!("hidden: tests\nworkspace: {{files: {files}}}");
    for (answer, expected) in [(None, Value::Null), (Some("a whole answer\nof two lines"), json!(["tests/c/t.txt"]))] {
        let project = project(&keys, "  without: {}\n  with: {skills: [../skills/s]}\n");
        skill(&project, "s", "");
        project.write("cases/tests/__init__.py", "\n");
        project.write("cases/tests/b/one.txt", "1\n");
        answer.into_iter().for_each(|text| project.write("cases/tests/c/t.txt", text));
        run(&project);
        assert_eq!(shown(&project, "without"), expected);
    }
}

#[test]
fn a_copy_of_a_file_that_a_grader_only_reads_is_found_unless_the_case_gives_the_file_to_its_agents() {
    let text = ANSWER.replace('\n', "\\n");
    let variants = "  without: {}\n  with: {skills: [../skills/s]}\n  files: {files: ../extra}\n";
    let found = [json!(["~/.x/skills/s/ref/any.md"]), json!(["notes/any.md"])];
    let given = [Value::Null, Value::Null];
    for (keys, expected) in [
        ("prompt: p".to_owned(), &found),
        (format!("prompt: p\nworkspace: {{files: {{docs/x.txt: \"{text}\"}}}}"), &given),
        ("prompt: p\nskills: [../skills/own]".to_owned(), &given),
        (format!("prompt: \"Answer so: {text}\""), &given),
    ] {
        let project = project("", variants);
        project.write("cases/expected.txt", ANSWER);
        for folder in ["extra/notes", "skills/s/ref", "skills/own/ref"] {
            project.write(&format!("{folder}/any.md"), ANSWER);
        }
        skill(&project, "s", "");
        skill(&project, "own", "");
        let compared = "{files: {equals: {o.txt: expected.txt}, diagnostic: true}}";
        project.write("cases/a.yaml", &format!("{keys}\ngraders: [{{output: {{contains: prompt}}}}, {compared}]\n"));
        run(&project);
        assert_eq!(shown(&project, "without"), Value::Null, "{keys}");
        assert_eq!([shown(&project, "with"), shown(&project, "files")], *expected, "{keys}");
    }
}

#[test]
fn copies_of_hidden_files_are_found_in_attachments_and_in_what_setup_left_outside_of_the_workspace() {
    let project = Project::new();
    for path in ["cases/h/answer.txt", "cases/notes.txt"] {
        project.write(path, ANSWER);
    }
    let answer = project.path("cases/h/answer.txt");
    let setup = format!("setup: ['mkdir ../ref ~/ref && cp {0} ../ref/any.md && cp {0} ~/ref']", answer.display());
    let public = format!("files: {{x.txt: \"{}\"}}", ANSWER.replace('\n', "\\n"));
    let read = "graders: [{files: {equals: {o.txt: h/answer.txt}, diagnostic: true}}, {stop: {reason: [end_turn]}}]";
    let left = json!(["../ref/any.md", "~/ref/answer.txt"]);
    for (keys, expected) in [
        ("hidden: h\nattachments: [notes.txt]".to_owned(), json!(["~/attachments/notes.txt"])),
        (format!("hidden: h\nworkspace: {{{setup}}}"), left),
        // Files that the case itself gives its agents.
        (format!("hidden: h\nattachments: [notes.txt]\nworkspace: {{{public}, {setup}}}"), Value::Null),
        (format!("attachments: [notes.txt]\nworkspace: {{{setup}}}\n{read}"), Value::Null),
    ] {
        let _ = std::fs::remove_dir_all(project.path(".evals"));
        project.case("a", &keys, "steps: [{say: done}]");
        project.evals(&["run"]).exits(0);
        let warnings = project.result("a/demo/default/1")["warnings"].as_array().cloned().unwrap_or_default();
        let warning = warnings.into_iter().find(|it| it["code"] == "case_in_workspace");
        let files = warning.map(|it| it["files"].clone()).unwrap_or_default();
        assert_eq!(files, expected, "{keys}");
    }
}

#[test]
fn a_skill_keeps_the_files_that_only_look_like_cases() {
    let project = Project::new();
    project.harness("probe", PROBE);
    let case = "prompt: p\ngraders: [{output: {contains: prompt}}]\n";
    skill(&project, "s", "");
    for path in ["evals/a", "tests/b", "examples/c"] {
        project.write(&format!("skills/s/{path}.yaml"), case);
    }
    // A suite outside of the skill does not make a case of these, nor does a list without graders.
    project.write("suite.yaml", "graders: [{stop: {reason: [end_turn]}}]\n");
    project.write("skills/s/prompts/review.yaml", "prompt: Review this.\n");
    project.write("skills/s/reviews/review.yaml", "prompt: Review this.\n");
    project.write("skills/s/other/tool.yaml", "prompt: {a: b}\ngraders: []\n");
    let variants = "harness: probe\nvary: [skills]\nvariants: {without: {}, with: {skills: [../skills/s]}}\n";
    project.write("experiments/x.yaml", variants);
    let ran = project.evals(&["run", "skills/s/evals", "--experiment", "experiments/x.yaml"]).exits(0);
    ran.says("the skill skills/s is laid without its folders `evals`, `tests`, which hold cases");
}

/// Makes a project whose cases `a` and `b` pass, and whose agents get the hidden file of `b`.
fn with_answer_in_b() -> Project {
    let project = Project::new();
    project.harness("probe", PROBE);
    let graders = "graders: [{output: {contains: prompt}}]";
    project.write("cases/a.yaml", &format!("prompt: p\n{graders}\n"));
    project.write("cases/h/answer.txt", ANSWER);
    let text = ANSWER.replace('\n', "\\n");
    let instructions = format!("instructions: {{text: \"{text}\"}}");
    project.write("cases/b.yaml", &format!("prompt: p\nhidden: h\n{instructions}\n{graders}\n"));
    project
}

#[test]
fn a_minimum_score_of_a_run_is_not_reached_by_agents_that_could_read_their_case() {
    let project = with_answer_in_b();
    let run = |case: &str| project.evals(&["run", "--case", case, "--harness", "probe", "--fail-under", "0.5"]);
    run("a").exits(0);
    run("b").exits(3).says("inconclusive, because agents could read files of their own case: b");
}

#[test]
fn a_baseline_keeps_that_agents_could_read_their_case_and_a_gate_looks_at_compared_cases_only() {
    let project = with_answer_in_b();
    let run = |args: &[&str]| project.evals(&[&["run", "--harness", "probe"][..], args].concat()).exits(0);
    run(&["--case", "a"]);
    let set = project.evals(&["baseline", "set"]).exits(0);
    assert!(!format!("{}{}", set.out, set.err).contains("their own case"));
    assert!(!project.read("cases/baseline.json").contains("case_in_workspace"));
    run(&[]);
    // `b` is not compared, so it decides nothing.
    project.evals(&["compare", "--gate", "no-regressions"]).exits(0);
    project.evals(&["compare", "--fail-under", "0.5"]).exits(3);
    project.evals(&["baseline", "set"]).exits(0).says("agents could read files of their own case in 1 cell");
    assert!(project.read("cases/baseline.json").contains("\"case_in_workspace\":1"));
    project.write("cases/baseline.json", &project.read("cases/baseline.json").replace("\"run\": \"", "\"run\": \"x-"));
    project.evals(&["compare"]).exits(3).says("baseline probe: in 1 trial the agent could read");
    project.evals(&["compare", "--gate", "no-regressions"]).exits(3).says("of their own case: b");
}

#[test]
fn a_difference_that_rests_on_agents_that_could_read_their_case_is_inconclusive() {
    let answer = ANSWER.replace('\n', "\\n");
    let variants = format!("  without: {{}}\n  with: {{instructions: {{text: \"{answer}\"}}}}\n");
    let project = project("hidden: h", &variants);
    project.write("cases/h/answer.txt", ANSWER);
    std::fs::remove_file(project.path("cases/a.yaml")).unwrap();
    for number in 0..10 {
        let case = "prompt: p\nhidden: h\ngraders: [{output: {contains: '4711'}}]\n";
        project.write(&format!("cases/b{number}.yaml"), case);
    }
    project.evals(&["run", "--experiment", "experiments/x.yaml"]).exits(1);
    let ran = project.evals(&["compare"]).exits(3);
    ran.says("unknown whether probe / with helps")
        .says("The scores show nothing, because agents of probe / with could");
    let compared = project.evals(&["compare", "--format", "json"]).exits(3).json();
    assert_eq!(
        (&compared["verdict"], &compared["pairs"][0]["verdict"]),
        (&json!("inconclusive"), &json!("inconclusive"))
    );
    // If these agents are the old side, the other arm is not shown to be worse.
    let harmed = project.evals(&["compare", "--baseline", "with", "--gate"]).exits(3);
    harmed
        .says("unknown whether probe / without helps")
        .says("The scores show nothing, because agents of probe / with could");
    let auto = ["run", "--experiment", "experiments/x.yaml", "--trials", "auto", "--case", "b[0-5]"];
    let says =
        "ends after 2 trials of each case, as no case can be compared, or agents could read files of their own case";
    project.evals(&auto).exits(1).says(says);
}

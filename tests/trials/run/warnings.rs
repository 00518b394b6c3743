//! Warnings are data: programs read the code and fields, people read the text.

use serde_json::{Value, json};

use super::again::{RUN, only, project};
use crate::project::Project;

const STRICT: &str = "workspace: {copy: fix, protect: [tests/**, build/**], protect-strict: true}\n\
                      graders: [{output: {equals: ok}}]";
const TRIAL: &str = "a/sh/default/1";

/// Makes a failed run whose agent changed a protected file that git ignores, so that only the result reports it.
fn strict() -> Project {
    let project = project("echo evil > build/x");
    project.write("cases/fix/build/x", "right\n");
    project.write("cases/fix/tests/x", "right\n");
    project.write("cases/fix/.gitignore", "build/\n");
    project.case("a", STRICT, "");
    project.evals(&[&RUN[..], &["--keep-workspace", "never"]].concat()).exits(1);
    project
}

/// Changes the warnings of the stored result, in a run of a version without digests.
fn rewrite(project: &Project, change: impl Fn(&mut Value)) {
    let folder = project.run_folder();
    project.without_digests(&folder);
    let mut result = project.result(TRIAL);
    result["warnings"].as_array_mut().unwrap().iter_mut().for_each(change);
    project.write(&format!("{folder}/trials/{TRIAL}/result.json"), &result.to_string());
    project.write(&format!("{folder}/results.jsonl"), &format!("{result}\n"));
}

#[test]
fn a_warning_is_an_object_with_code_fields_and_text() {
    let result = strict().result(TRIAL);
    let told = result["warnings"].as_array().unwrap();
    let of = |code: &str| told.iter().find(|it| it["code"] == code).unwrap_or_else(|| panic!("{code}: {result}"));
    let text = "the agent changed the protected file build/x; it was put back before grading";
    let protected = json!({"code": "protected_file", "path": "build/x", "change": "changed", "put_back": true, "fails": true, "text": text});
    assert_eq!(of("protected_file"), &protected);
    assert_eq!(of("no_permissions")["harness"], "sh");
    assert!(of("ignored_files")["bytes"].is_u64());
}

#[test]
fn no_word_of_a_text_decides_a_verdict_that_is_made_again() {
    let project = strict();
    rewrite(&project, |warning| warning["text"] = json!("nothing happened"));
    let report = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    assert_eq!((&only(&report)["verdict"], &only(&report)["score"]), (&json!("fail"), &json!(0.0)));
    assert!(only(&report)["warnings"].to_string().contains("the agent changed the protected file build/x"), "{report}");
}

#[test]
fn a_run_whose_warnings_are_texts_is_read_as_it_was() {
    let project = strict();
    let before = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    std::fs::remove_dir_all(project.path(&format!(".evals/runs/{}", before["run"].as_str().unwrap()))).unwrap();
    rewrite(&project, |warning| *warning = warning["text"].clone());
    project.evals(&["show", "latest", "a"]).exits(0).says("warning: the agent changed the protected file build/x");
    let report = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    // Texts that nothing depends on stay texts; the others become warnings with a code.
    let known = |report: &Value| -> Vec<Value> {
        let told = only(report)["warnings"].as_array().unwrap().iter();
        told.filter(|it| !["text", "no_permissions"].contains(&it["code"].as_str().unwrap())).cloned().collect()
    };
    assert_eq!(known(&report), known(&before));
    let texts = |report: &Value| -> Vec<Value> {
        only(report)["warnings"].as_array().unwrap().iter().map(|it| it["text"].clone()).collect()
    };
    assert_eq!(texts(&report), texts(&before));
}

#[test]
fn a_warning_of_a_newer_version_survives_and_is_shown() {
    let project = strict();
    let newer = json!({"code": "of_tomorrow", "answer": [42], "text": "something new happened"});
    rewrite(&project, |warning| {
        if warning["code"] == "no_permissions" {
            *warning = newer.clone();
        }
    });
    project.evals(&["show", "latest", "a"]).exits(0).says("warning: something new happened");
    let report = project.evals(&["grade", "latest", "--format", "json"]).exits(1).json();
    assert!(only(&report)["warnings"].as_array().unwrap().contains(&newer), "{report}");
}

#[test]
fn prompts_that_were_not_sent_are_told() {
    let project = Project::new();
    project.write("cases/a.yaml", "turns: [one, two]\ngraders: [{output: {contains: done}}]\n");
    project.write("cases/a.demo.yaml", "turns: [{steps: [{say: done}, {stop: refusal}]}, {steps: [{say: again}]}]\n");
    project.evals(&["run"]).exits(3).says("in 1 trial not every prompt was sent");
    let warning = &project.result("a/demo/default/1")["warnings"][0];
    assert_eq!((&warning["sent"], &warning["planned"]), (&1.into(), &2.into()), "{warning}");
}

#[test]
fn a_new_ignored_file_is_protected_if_a_glob_is_its_path_or_names_it_outside_of_ignored_folders() {
    for (protect, path, exit) in [
        ("tests/settings.local", "tests/settings.local", 1),
        ("tests/**", "tests/settings.local", 0),
        ("**/settings.local", "tests/settings.local", 1),
        ("tests/{other,settings}.{local,*.local}", "tests/settings.local", 1),
        ("tests/*.local", "tests/settings.local", 0),
        // What a build copies.
        ("**/settings.local", "out/settings.local", 0),
    ] {
        let project = Project::new();
        project.write("cases/fix/.gitignore", "*.local\nout/\n");
        project.write("cases/fix/tests/a.py", "1");
        let keys = format!("workspace: {{copy: fix, protect: ['{protect}'], protect-strict: true}}");
        let graders = "graders: [{files: {exists: [tests/a.py]}}]";
        let script = format!("steps: [{{write: {{path: {path}, text: evil}}}}]");
        project.case("a", &format!("{keys}\n{graders}"), &script);
        project.evals(&["run"]).exits(exit);
        let warnings = project.result("a/demo/default/1")["warnings"].to_string();
        assert_eq!(warnings.contains("protected_file"), exit == 1, "{protect}: {warnings}");
    }
}

#[test]
fn a_new_file_in_an_ignored_folder_is_protected_if_a_glob_names_the_folder_of_the_rule() {
    for (protect, exit) in [("**/node_modules/**", 1), ("pkg/**", 1), ("**/lib/**", 0), ("tests/**", 0)] {
        let project = Project::new();
        project.write("cases/fix/.gitignore", "node_modules/\n");
        project.write("cases/fix/tests/a.py", "1");
        // The folder `pkg` has nothing but ignored files.
        project.write("cases/fix/pkg/node_modules/lib/index.js", "1");
        let keys = format!("workspace: {{copy: fix, protect: ['{protect}'], protect-strict: true}}");
        let graders = "graders: [{files: {exists: [tests/a.py]}}]";
        let script = "steps: [{write: {path: pkg/node_modules/lib/new.js, text: evil}}]";
        project.case("a", &format!("{keys}\n{graders}"), script);
        project.evals(&["run"]).exits(exit);
        let warnings = project.result("a/demo/default/1")["warnings"].to_string();
        assert_eq!(warnings.contains("pkg/node_modules/lib/new.js"), exit == 1, "{protect}: {warnings}");
    }
}

#[test]
fn a_protection_that_matches_no_folder_is_told() {
    for (protect, is_told) in [
        ("TESTS/**", true),
        ("test/**", true),
        ("test/a.py", true),
        ("tests/**", false),
        ("tests/unit/**/conftest.py", false),
        ("**/conftest.py", false),
        ("conftest.py", false),
        (".github/**", false),
        ("check/**", false),
    ] {
        let project = Project::new();
        project.write("cases/fix/tests/a.py", "1");
        project.write("cases/fix.hidden/check/run.sh", "true");
        let keys = format!("workspace: {{copy: fix, protect: ['{protect}']}}\nhidden: fix.hidden");
        let graders = "graders: [{files: {exists: [tests/a.py]}}]";
        project.case("a", &format!("{keys}\n{graders}"), "steps: [{say: done}]");
        let checked = project.evals(&["check"]).exits(0);
        assert_eq!(checked.err.contains("protects no file by"), is_told, "{protect}: {}", checked.err);
        let ran = project.evals(&["run"]).exits(0);
        let warnings = project.result("a/demo/default/1")["warnings"].to_string();
        assert_eq!(warnings.contains("protect_matched_nothing"), is_told, "{protect}: {warnings}");
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(said.contains("`workspace.protect` protected no file"), is_told, "{protect}: {said}");
    }
}

#[test]
fn grading_again_tells_that_the_agents_had_another_prompt() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let note = "note: the agents had other inputs than the case names now";
    assert!(!project.evals(&["grade", "latest"]).exits(0).err.contains(note));
    let case = std::fs::read_to_string(project.path("cases/a.yaml")).unwrap();
    // How a trial is judged that reached a limit is no input of the agent.
    project.write("cases/a.yaml", &format!("{case}\nlimits: {{on-limit: grade}}\n"));
    assert!(!project.evals(&["grade", "latest"]).exits(0).err.contains(note));
    project.write("cases/a.yaml", &case.replacen("prompt: ", "prompt: something else, ", 1));
    let graded = project.evals(&["grade", "latest"]).exits(0);
    assert!(graded.err.contains(note), "{}", graded.err);
    // Each report shows it, also that of a trial that passed.
    for format in ["table", "markdown", "junit", "github", "json"] {
        let report = project.evals(&["grade", "latest", "--format", format]).exits(0).out;
        let words: Vec<&str> = report.split_whitespace().collect();
        assert!(words.join(" ").contains("had other inputs than the case names now"), "{format}: {report}");
    }
}

#[test]
fn white_space_around_a_prompt_is_no_other_input() {
    let project = Project::new();
    let case = |prompt: &str| {
        project.write("cases/a.yaml", &format!("prompt: {prompt}\ngraders: [{{output: {{contains: done}}}}]\n"));
    };
    project.write("cases/a.demo.yaml", "turns: [{steps: [{say: done}]}]\n");
    let note = "had other inputs than the case names now";
    for (first, second) in [("Go", "|\n  Go"), ("|\n  Go", "Go")] {
        case(first);
        project.evals(&["run"]).exits(0);
        case(second);
        let graded = project.evals(&["grade", "latest"]).exits(0);
        assert!(!graded.err.contains(note), "{}", graded.err);
        case("Come");
        project.evals(&["grade", "latest"]).exits(0).says(note);
    }
}

#[test]
fn a_variant_that_changed_is_named_and_remembered() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", "steps: [{say: done}]");
    let experiment = |value: &str| {
        let variants = format!("variants: {{one: {{}}, two: {{env: {{SPEED: '{value}'}}}}}}");
        project.write("experiments/e.yaml", &format!("cases: [../cases]\nharness: demo\nvary: [env]\n{variants}\n"));
    };
    let grade = |run: &str| {
        let graded = project.evals(&["grade", run, "--format", "json"]).exits(0);
        let report = graded.json();
        let results = report["results"].as_array().unwrap().iter();
        let others = results.filter(|it| it["warnings"].to_string().contains("other_inputs"));
        let others: Vec<String> = others.map(|it| it["arm"].as_str().unwrap().to_owned()).collect();
        (report["run"].as_str().unwrap().to_owned(), graded.err, others.join(" "))
    };
    experiment("1");
    project.evals(&["run", "--experiment", "experiments/e.yaml"]).exits(0);
    let (_, said, others) = grade("latest");
    assert!(!said.contains("variants have changed") && others.is_empty(), "{said}");
    experiment("2");
    let (changed, said, others) = grade("latest");
    assert!(said.contains("because variants have changed: two"), "{said}");
    assert_eq!(others, "two");
    std::fs::remove_file(project.path("experiments/e.yaml")).unwrap();
    assert_eq!(grade(&changed).2, "two");
}

#[test]
fn grading_again_compares_the_prompts_that_were_sent_with_those_of_the_case_now() {
    let project = Project::new();
    let case = |turns: &str| {
        project.write("cases/a.yaml", &format!("turns: [{turns}]\ngraders: [{{output: {{contains: done}}}}]\n"));
    };
    let grade = |run: &str, exit: i32| {
        let report = project.evals(&["grade", run, "--format", "json"]).exits(exit).json();
        let warnings = only(&report)["warnings"].as_array().unwrap().iter();
        let codes: Vec<String> = warnings.map(|it| it["code"].as_str().unwrap().to_owned()).collect();
        (report["run"].as_str().unwrap().to_owned(), codes.join(" "))
    };
    project.write("cases/a.demo.yaml", "turns: [{steps: [{say: done}]}, {steps: [{say: done}]}]\n");
    case("one, two");
    project.evals(&["run"]).exits(0);
    assert_eq!(grade("latest", 0).1, "");
    // A prompt that the agent never got is not a task done.
    case("one, two, three");
    let (longer, codes) = grade("latest", 3);
    assert_eq!(codes, "prompts_not_sent other_inputs");
    // A derived run is compared with the case as the first run is.
    case("one, two");
    assert_eq!(grade(&longer, 0).1, "");
    // Of a trial in which not all prompts were sent, the present case decides whether that matters.
    project.write("cases/a.demo.yaml", "turns: [{steps: [{say: done}, {stop: refusal}]}, {steps: [{say: done}]}]\n");
    project.evals(&["run"]).exits(3);
    assert_eq!(grade("latest", 3).1, "prompts_not_sent");
    case("one");
    let (shorter, codes) = grade("latest", 0);
    assert_eq!(codes, "other_inputs");
    case("one, two");
    assert_eq!(grade(&shorter, 3).1, "prompts_not_sent");
}

#[test]
fn a_folder_that_is_named_is_protected_with_its_files() {
    for protect in ["tests", "tests/", "**/tests/", "./tests/**", "tests/**/"] {
        let project = Project::new();
        project.write("cases/fix/tests/a.py", "1");
        let keys = format!("workspace: {{copy: fix, protect: ['{protect}'], protect-strict: true}}");
        let graders = "graders: [{files: {exists: [tests/a.py]}}]";
        project.case("a", &format!("{keys}\n{graders}"), "steps: [{write: {path: tests/a.py, text: evil}}]");
        project.evals(&["run"]).exits(1).says("tests/a.py");
    }
    let project = Project::new();
    let graders = "graders:\n\
                   - scope: {never: [secrets/]}\n\
                   - scope: {never: [secrets]}\n\
                   - scope: {never: ['secrets/**/']}\n\
                   - tool-calls: {forbid: [{path: secrets/}]}\n\
                   - tool-calls: {forbid: [{path: 'secrets/**/'}]}";
    project.case("a", graders, "steps: [{write: {path: secrets/a, text: x}}]");
    project.evals(&["run"]).exits(1);
    let grades = project.result("a/demo/default/1")["grades"].clone();
    assert!(grades.as_array().unwrap().iter().all(|grade| grade["passed"] == false), "{grades}");
}

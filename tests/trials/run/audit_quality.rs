//! `evals check --audit`: findings about the quality of cases, from stored runs, prompts and mutations of solutions.

use serde_json::{Value, json};

use crate::project::Project;

fn audit(project: &Project, more: &[&str]) -> Value {
    let args = [&["check", "--audit", "--format", "json"], more].concat();
    project.evals(&args).exits(0).json()
}

fn case<'a>(report: &'a Value, id: &str) -> &'a Value {
    let cases = report["cases"].as_array().unwrap();
    cases.iter().find(|it| it["case"] == id).unwrap_or_else(|| panic!("no {id}: {report}"))
}

fn findings(report: &Value, id: &str, code: &str) -> Vec<Value> {
    let all = case(report, id)["findings"].as_array().unwrap();
    all.iter().filter(|it| it["code"] == code).cloned().collect()
}

/// Makes a project with two agents that answer, and one that breaks.
fn with_agents() -> Project {
    let project = Project::new();
    for (name, line) in [("one", "echo answer"), ("two", "echo answer"), ("broken", "exit 3")] {
        project.write(&format!("{name}.sh"), line);
        let agent = project.path(&format!("{name}.sh")).display().to_string();
        project.harness(name, &format!("adapter: output-only\ncommand: [sh, {agent}]\nprompt-via: stdin"));
    }
    project
}

const GRADERS: &str =
    "graders: [{output: {name: says, contains: answer}}, {output: {name: other, contains: no, weight: 0}}]";

#[test]
fn graders_that_never_failed_and_arms_with_equal_verdicts_are_reported_from_enough_trials() {
    let project = with_agents();
    project.case("easy", GRADERS, "");
    project.case("kept", &format!("kind: regression\n{GRADERS}"), "");
    project.case("held", &format!("quarantine: {{until: 2999-01-01, why: noise}}\n{GRADERS}"), "");
    let run = |args: &[&str], code| project.evals(&[&["run", "--no-progress"], args].concat()).exits(code);
    run(&["--harness", "one", "--trials", "4"], 0);
    run(&["--harness", "broken", "--trials", "4"], 3);
    // Four graded trials of one arm are not enough, and errored ones are not graded.
    let report = audit(&project, &[]);
    assert_eq!(findings(&report, "easy", "never_failed"), Vec::<Value>::new());
    assert_eq!(findings(&report, "easy", "not_told_apart"), Vec::<Value>::new());
    run(&["--harness", "two", "--trials", "2", "--label", "two"], 0);
    let never = json!({"code": "never_failed", "grader": "says", "trials": 6});
    let apart = json!({"code": "not_told_apart", "arms": ["one", "two"], "trials": 6, "verdict": "pass"});
    let both = |report: &Value| {
        let of = |code| findings(report, "easy", code);
        assert_eq!((of("never_failed"), of("not_told_apart")), (vec![never.clone()], vec![apart.clone()]));
    };
    both(&audit(&project, &[]));
    // The same trials, graded again, count once.
    project.evals(&["grade", "two"]).exits(0);
    let report = audit(&project, &[]);
    both(&report);
    // A regression case is supposed to pass, and a quarantined one does not count.
    for (id, code) in [("kept", "never_failed"), ("kept", "not_told_apart"), ("held", "never_failed")] {
        assert_eq!(findings(&report, id, code), Vec::<Value>::new(), "{id}");
    }
    let text = project.evals(&["check", "--audit"]).exits(0);
    let text = text.says("QUALITY easy");
    let text = text.says("never_failed: `says` passed in all 6 graded trials of the stored runs");
    text.says("not_told_apart: all 6 stored trials of 2 arms have the verdict `pass`: one, two");
    // Trials of another content of the case show nothing about it.
    project.case("easy", &format!("description: changed\n{GRADERS}"), "");
    assert_eq!(findings(&audit(&project, &[]), "easy", "never_failed"), Vec::<Value>::new());
}

#[test]
fn trials_of_agents_that_play_a_script_show_nothing_about_a_case() {
    let project = Project::new();
    project.case("easy", GRADERS, "steps: [{say: answer}]");
    let args = ["run", "--no-progress", "--harness", "demo-stream", "--harness", "demo-text", "--trials", "3"];
    project.evals(&args).exits(0);
    let report = audit(&project, &[]);
    for code in ["never_failed", "not_told_apart"] {
        assert_eq!(findings(&report, "easy", code), Vec::<Value>::new(), "{code}");
    }
}

#[test]
fn a_grader_that_failed_once_and_shards_that_were_merged_are_counted_as_they_are() {
    let project = with_agents();
    let at = project.path("count").display().to_string();
    let count = format!("n=$(cat {at} 2>/dev/null || echo 0); echo $((n + 1)) > {at}");
    project.write("one.sh", &format!("{count}; echo answer; test $n -eq 2 && echo no; true"));
    let graders = "graders: [{output: {name: says, contains: answer}}, {output: {name: quiet, not-contains: 'no'}}]";
    project.case("a", graders, "");
    project.case("b", graders, "");
    for part in ["1/2", "2/2"] {
        let args = ["run", "--no-progress", "--harness", "one", "--trials", "6", "--jobs", "1", "--shard", part];
        project.evals(&args);
    }
    let parts = project.runs();
    assert_eq!(parts.len(), 2);
    let words: Vec<&str> = ["merge"].into_iter().chain(parts.iter().map(String::as_str)).collect();
    project.evals(&words);
    assert_eq!(project.runs().len(), 3);
    let report = audit(&project, &[]);
    let never = |grader: &str| json!({"code": "never_failed", "grader": grader, "trials": 6});
    let (a, b) = (findings(&report, "a", "never_failed"), findings(&report, "b", "never_failed"));
    // One trial failed `quiet`, whichever case it belongs to.
    let (failed, other) = if a.len() == 1 { (a, b) } else { (b, a) };
    assert_eq!((failed, other), (vec![never("says")], vec![never("says"), never("quiet")]));
}

#[test]
fn near_duplicates_need_a_similar_prompt_and_a_similar_workspace() {
    let project = Project::new();
    let prompt =
        "The total of the list is wrong, since its last element is skipped. Fix the function and run the tests.";
    let graders = "graders: [{files: {contains: {a.txt: done}}}]";
    let write = |id: &str, prompt: &str, text: &str| {
        let keys = format!("turns: ['{prompt}']\nworkspace: {{files: {{a.txt: {text}}}}}\n{graders}");
        project.case(id, &keys, "");
    };
    write("a", prompt, "one");
    write("b", &prompt.replace("run the tests", "run all tests").to_uppercase(), "one");
    write("c", prompt, "two");
    write("d", "Something else has to be done here, in other words than before.", "one");
    let report = audit(&project, &[]);
    let of = |id| findings(&report, id, "near_duplicate");
    assert!([of("a"), of("c"), of("d")].iter().all(Vec::is_empty), "{report}");
    let found = of("b");
    assert_eq!(found[0]["of"], "a");
    let similarity = found[0]["similarity"].as_f64().unwrap();
    assert!((0.8..1.0).contains(&similarity), "{similarity}");
    project.evals(&["check", "--audit"]).exits(0).says("and the workspaces are equal");
    // A copy that differs in a few lines is near, too.
    let text: String = (0..12).map(|n| format!("line {n}\n")).collect();
    for (id, more) in [("e", ""), ("f", "one more\n")] {
        project.write(&format!("cases/{id}.before/b.py"), &format!("{text}{more}# {id}\n"));
        project.case(
            id,
            &format!("turns: ['Sum up the lines of b.py.']\nworkspace: {{copy: {id}.before}}\n{graders}"),
            "",
        );
    }
    let report = audit(&project, &[]);
    let found = findings(&report, "f", "near_duplicate");
    assert_eq!((found.len(), &found[0]["of"]), (1, &"e".into()), "{report}");
    assert!(findings(&report, "e", "near_duplicate").is_empty());
    project.evals(&["check", "--audit"]).exits(0).says("and the workspaces have one of 0.92");
}

/// Makes a project with one case whose solution adds a function, and whose hidden tests check a part of it.
fn with_solution(prompt: &str, more: &str) -> Project {
    let project = Project::new();
    project.write("cases/fix.before/conf.py", "LIMIT = 1\n");
    project.write(
        "cases/fix.after/conf.py",
        "LIMIT = 20\nSTRICT = True\n\n\n# Says whether 1 is allowed.\ndef allowed(number):\n    inner_limit = LIMIT\n    return \
         number <= inner_limit and number > 0\n",
    );
    project.write(
        "cases/fix.hidden/check.py",
        "print('1..3')\nprint('ok - old')\nimport conf\ndef test(name, ok):\n    print('ok' if ok else 'not ok', '-', \
         name)\ntest('limit', conf.LIMIT == 20)\ntest('allowed', conf.allowed(5))\nassert 'value-4711'\n",
    );
    let tests = "{tests: {name: unit, run: python3 check.py, format: tap, fail-to-pass: [limit, allowed, old]}}";
    let keys = format!(
        "turns: [{prompt:?}]\nworkspace: {{copy: fix.before}}\nhidden: fix.hidden\noracle: {{copy: fix.after}}\ngraders:\n- \
         {tests}\n- {{command: {{name: syntax, run: python3 -c 'import conf'}}}}\n{more}"
    );
    project.case("fix", &keys, "");
    project
}

#[test]
#[ignore = "slow: runs many trials"]
fn the_answer_in_a_prompt_is_named_by_its_kind() {
    let prompt =
        "Allow 20, with inner_limit in `allowed`.\nreturn number <= inner_limit and number > 0\nSee value-4711.";
    let report = audit(&with_solution(prompt, ""), &["--mutants", "0"]);
    let parts = json!([
        {"kind": "line", "text": "return number <= inner_limit and number > 0"},
        {"kind": "identifier", "text": "inner_limit"},
        {"kind": "expected_value", "text": "value-4711"},
    ]);
    assert_eq!(findings(&report, "fix", "answer_in_prompt"), [json!({"code": "answer_in_prompt", "parts": parts})]);
    assert_eq!(case(&report, "fix").get("mutants"), None);
    // What the workspace contains is known to the agent.
    let project = with_solution(prompt, "");
    project.write("cases/fix.before/doc.txt", "inner_limit, value-4711\n");
    let report = audit(&project, &["--mutants", "0"]);
    assert_eq!(findings(&report, "fix", "answer_in_prompt")[0]["parts"].as_array().unwrap().len(), 1);
    // Also in a file of another encoding. What is in a file that is not read is unknown, and not reported as new.
    for text in [b"inner_limit, value-4711 \xe9\n".to_vec(), b"inner_limit\n".repeat(400_000)] {
        std::fs::write(project.path("cases/fix.before/doc.txt"), text).unwrap();
        let report = audit(&project, &["--mutants", "0"]);
        assert_eq!(findings(&report, "fix", "answer_in_prompt")[0]["parts"].as_array().unwrap().len(), 1);
    }
    let report = audit(&with_solution("Allow numbers up to 20 in `allowed`.", ""), &["--mutants", "0"]);
    assert_eq!(findings(&report, "fix", "answer_in_prompt"), Vec::<Value>::new());
}

#[test]
#[ignore = "slow: runs many trials"]
fn graders_and_tests_that_pass_without_the_change_are_named() {
    let more = "- {tests: {name: guard, run: python3 check.py, format: tap, pass-to-pass: [old]}}\n- {files: {exists: [conf.py]}}";
    let report = audit(&with_solution("Do it.", more), &["--mutants", "0"]);
    let found = findings(&report, "fix", "passes_without_change");
    let expected = [
        json!({"code": "passes_without_change", "grader": "unit", "tests": ["old"]}),
        json!({"code": "passes_without_change", "grader": "syntax"}),
    ];
    assert_eq!(found, expected);
}

#[test]
#[ignore = "slow: a trial for each mutation"]
fn mutations_that_no_grader_notices_are_listed_with_file_and_line() {
    let project = with_solution("Do it.", "");
    let report = audit(&project, &["--mutants", "100"]);
    let mutants = &case(&report, "fix")["mutants"];
    let told: Vec<String> = mutants["not_noticed"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
            format!("{}:{} {} {}", text("file"), it["line"], text("kind"), text("now"))
        })
        .collect();
    let mut sorted = told.clone();
    sorted.sort();
    let expected = [
        "conf.py:2 delete_line -",
        "conf.py:2 flip_boolean STRICT = False",
        "conf.py:8 flip_boolean return number <= inner_limit or number > 0",
        "conf.py:8 off_by_one return number <= inner_limit and number > 1",
    ];
    assert_eq!(sorted, expected, "{report}");
    // Noticed: the hunk, LIMIT = 21, two comparisons, and the deletion of each other line.
    assert_eq!((&mutants["judged"], &mutants["noticed"], &mutants["unsteady"]), (&12.into(), &8.into(), &0.into()));
    assert_eq!(mutants["share"], json!(8.0 / 12.0));
    assert_eq!(mutants["graders"]["unit"], 8);
    let found = findings(&report, "fix", "mutants_not_noticed");
    assert_eq!(found, [json!({"code": "mutants_not_noticed", "not_noticed": 4, "judged": 12})]);
    assert_eq!((&report["summary"]["mutants_judged"], &report["summary"]["mutants_noticed"]), (&12.into(), &8.into()));
    let text = project.evals(&["check", "--audit", "--mutants", "3"]).exits(0);
    // One of each kind: the hunk, a comparison, a logical operator or a boolean.
    let text = text.says("2 of 3 mutations of solutions noticed");
    text.says("mutants_not_noticed: 1 of 3 mutations of the solution not noticed").says("conf.py:");
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    project.evals(&["check", "--mutants", "3"]).exits(2).says("--audit");
}

#[test]
fn a_grader_that_fails_now_and_then_notices_nothing() {
    let project = Project::new();
    let at = project.path("count").display().to_string();
    project.write("cases/before/a.txt", "before\n");
    project.write("cases/after/a.txt", "the limit is 12\n");
    // Every other time it fails, whatever the workspace is. The first trial is that of the solution; that of the number
    // is the seventh.
    let count = format!("n=$(cat {at} 2>/dev/null || echo 0); echo $((n + 1)) > {at}");
    let line = format!("{count}; test $n -eq 0 -o $((n % 2)) -eq 1");
    let keys = format!(
        "workspace: {{copy: before}}\noracle: {{copy: after}}\ngraders:\n- {{files: {{name: text, matches: {{a.txt: limit}}}}}}\n- \
         {{command: {{name: noise, run: '{line}'}}}}"
    );
    project.case("flaky", &keys, "");
    let report = audit(&project, &["--mutants", "100"]);
    let mutants = &case(&report, "flaky")["mutants"];
    // The hunk and the line are noticed by `text`; only `noise` fails for the number.
    assert_eq!((&mutants["noticed"], &mutants["unsteady"]), (&2.into(), &1.into()), "{mutants}");
    assert_eq!(mutants["graders"]["text"], 2);
}

#[test]
fn a_script_is_mutated_by_its_changes_and_replaced_files_are_not() {
    let project = Project::new();
    project.write("cases/before/test.sh", "grep -q 7 a.txt\n");
    project.write("cases/solve.demo.yaml", "steps:\n- write: {path: a.txt, text: \"7\\nother 8\\n\"}\n- write: {path: test.sh, text: 'true 5'}\n- say: done");
    let keys = "workspace: {copy: before, protect: [test.sh]}\noracle: {script: solve.demo.yaml}\ngraders:\n- {command: {name: unit, run: sh test.sh}}\n- {output: {contains: done}}";
    project.case("script", keys, "");
    // The traces need calls, so the files of the solution alone show nothing.
    project.case("trace", "oracle: {script: solve.demo.yaml}\ngraders: [{tool-calls: {min: 1}}]", "");
    let report = audit(&project, &["--mutants", "100"]);
    let mutants = &case(&report, "script")["mutants"];
    assert!(mutants["not_noticed"].as_array().unwrap().iter().all(|it| it["file"] == "a.txt"), "{mutants}");
    assert!(mutants["noticed"].as_u64().unwrap() >= 3, "{mutants}");
    assert_eq!(case(&report, "trace").get("mutants"), None);
}

//! Cases in quarantine: what their snapshots, costs and figures count for, in every command alike.

use serde_json::Value;

use crate::project::Project;

const QUARANTINE: &str = "quarantine: {until: 2999-01-01, why: the mirror loses connections}";
const NOTE: &str = "in quarantine until 2999-01-01, not counted: q (the mirror loses connections)";

#[test]
fn a_snapshot_that_differs_fails_nothing_in_any_report() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.case("q", "", "steps: [{say: one}]");
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    let changed = "steps: [{write: {path: x, text: y}}, {say: two}]";
    project.case("q", QUARANTINE, changed);
    let args = ["run", "--reporter", "junit=j.xml", "--reporter", "github=gh.txt", "--reporter", "table=t.txt"];
    project.evals(&args).exits(0);
    let junit = project.read("j.xml");
    let skipped = "in quarantine until 2999-01-01: the mirror loses connections; the snapshot differs: q (demo)";
    assert!(junit.contains("name=\"q (snapshot)\"") && junit.contains(skipped), "{junit}");
    assert!(!junit.contains("<failure") && !junit.contains("<error"), "{junit}");
    let github = project.read("gh.txt");
    assert!(!github.contains("::error") && github.contains("::warning"), "{github}");
    assert!(github.contains("in quarantine until 2999-01-01"), "{github}");
    let table = project.read("t.txt");
    assert!(table.contains("1 snapshot differs") && table.contains("in quarantine"), "{table}");
    // The check of the snapshots exits as the run does, also if nothing but the case in quarantine is left.
    let json = project.evals(&["snapshot", "check", "--format", "json"]).exits(0).json();
    assert_eq!((&json["exit_code"], &json["notes"]), (&0.into(), &serde_json::json!([NOTE])));
    project.evals(&["snapshot", "check"]).exits(0).says("changed q demo in quarantine").says(NOTE);
    project.evals(&["snapshot", "check", "--only", "q/demo"]).exits(3);
    project.evals(&["run", "--case", "q"]).exits(3);
    project.case("q", "", changed);
    project.evals(&["run"]).exits(1);
    project.evals(&["snapshot", "check"]).exits(1);
}

#[test]
fn trials_that_were_not_run_of_a_case_in_quarantine_are_no_error_in_junit() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    let keys = format!("trials: 3\npass: {{trials: any}}\n{QUARANTINE}");
    project.case("q", &keys, "steps: [{usage: {cost-usd: 0.6}}, {say: done}]");
    project.evals(&["run", "--max-cost", "0.5", "--jobs", "1", "--reporter", "junit=j.xml"]).exits(0);
    let junit = project.read("j.xml");
    assert!(junit.contains("name=\"q (not run)\"") && !junit.contains("<error"), "{junit}");
}

#[test]
fn what_a_case_in_quarantine_cost_is_spent_and_named() {
    let project = Project::new();
    project.case("a", "", "steps: [{usage: {cost-usd: 1}}, {say: done}]");
    project.case("q", QUARANTINE, "steps: [{usage: {cost-usd: 100}}, {say: done}]");
    let ran = project.evals(&["run", "--label", "n", "--model", "m1", "--model", "m2"]).exits(0);
    ran.says("these figures of a column include its cases in quarantine, unlike its score: cost ($200");
    // The gate leaves the case out, and does not pass because of that.
    let compare = ["compare", "n", "--baseline", "m1", "--max-cost"];
    let compared = |most: &str, code: i32| project.evals(&[&compare[..], &[most]].concat()).exits(code);
    compared("0.5", 1).says("costs $1, and $0.5 is allowed");
    compared("10", 3).says("costs $1 of $10, but $101 with the cases in quarantine: q");
    let passed = compared("200", 0).says("costs $1 of $200; without cases in quarantine: q");
    passed.says("a row leaves out the cases in quarantine, also their cost, tokens and time");
    // The comparison in the page leaves the case out of its rows, too.
    project.evals(&["report", "n", "--format", "html", "-o", "n.html"]).exits(0);
    let page = project.read("n.html");
    assert!(page.contains("id=\"compare\"") && page.contains("a row leaves out the cases in quarantine"));
}

#[test]
fn an_arm_against_itself_counts_no_case_in_quarantine() {
    let project = Project::new();
    let count = project.path("count").display().to_string();
    let line = format!("echo x >> {count}; echo $(( $(wc -l < {count}) % 2 ))");
    project.harness("odd", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']\nprompt-via: stdin"));
    project.case("a", "graders: [{output: {regex: '.'}}]", "");
    project.case("q", &format!("kind: regression\n{QUARANTINE}\ngraders: [{{output: {{contains: '1'}}}}]"), "");
    project.evals(&["run", "--harness", "odd", "--aa", "--trials", "2", "--jobs", "1"]).exits(0);
    let aa = project.evals(&["report", "--format", "json"]).exits(0).json()["aa"].clone();
    let found = (&aa["cases"], &aa["flipped"], &aa["noisy"], &aa["gate_false_alarms"]);
    let none = serde_json::json!([]);
    assert_eq!(found, (&1.into(), &none, &none, &Value::from(0.0)), "{aa}");
}

#[test]
fn an_export_counts_no_case_in_quarantine() {
    let project = Project::new();
    let command = r#"command: [sh, -c, 'echo ok; cd "$HOME" && find .x -type f 2>/dev/null; true']"#;
    let skills = "skills: {project: .x/skills, user: .x/skills}";
    project.harness("probe", &format!("adapter: output-only\n{command}\nprompt-via: stdin\n{skills}"));
    project.write("skills/changelog/SKILL.md", "---\nname: changelog\ndescription: Does it.\n---\nDo it.\n");
    project.case("a", "graders: [{output: {contains: ok}}]", "");
    project.case("q", &format!("{QUARANTINE}\ngraders: [{{output: {{contains: changelog}}}}]"), "");
    let variants = "variants: {old: {}, new: {skills: [../skills/changelog]}}";
    project.write("experiments/x.yaml", &format!("cases: [../cases]\nharness: probe\nvary: [skills]\n{variants}\n"));
    project.evals(&["run", "--experiment", "experiments/x.yaml"]).exits(0);
    let exported = project.evals(&["export", "latest", "--to", "agentskills", "-o", "out"]).exits(0);
    exported.says("q/probe/old/1 is in quarantine and left out");
    let benchmark: Value = serde_json::from_str(&project.read("out/benchmark.json")).unwrap();
    assert_eq!(benchmark["run_summary"]["delta"]["pass_rate"], "+0.00", "{benchmark}");
    assert_eq!(benchmark["run_summary"]["without_skill"]["pass_rate"]["mean"], 1.0);
    assert_eq!(benchmark["metadata"]["evals_run"], serde_json::json!([1]));
    assert!(benchmark["runs"].as_array().unwrap().iter().all(|run| run["eval_name"] == "a"), "{benchmark}");
}

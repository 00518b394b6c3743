//! Cases in quarantine: their verdicts are shown and do not count, until a day.

use crate::project::{Project, Ran};

const PASS: &str = "steps: [{say: done}]";
const FAIL: &str = "steps: [{stop: refusal}]";
const WHY: &str = "the mirror loses connections";

fn today(days: i64) -> String {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24 * days);
    at.strftime("%Y-%m-%d").to_string()
}

fn quarantine(days: i64) -> String {
    format!("quarantine: {{until: {}, why: {WHY}}}", today(days))
}

fn two(keys: &str) -> Project {
    let project = Project::new();
    project.case("a-good", "", PASS);
    project.case("b-bad", keys, FAIL);
    project
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.evals(&[&["run"], more].concat())
}

#[test]
fn verdicts_of_a_case_in_quarantine_are_shown_and_change_no_exit_code() {
    // The last day still belongs to the quarantine.
    for days in [1, 0] {
        let project = two(&quarantine(days));
        let ran = run(&project, &["--reporter", "junit=out.xml", "--reporter", "json=out.json"]).exits(0);
        let note = format!("in quarantine until {}, not counted: b-bad ({WHY})", today(days));
        let markdown = project.evals(&["report", "--format", "markdown"]).exits(0);
        markdown.says("everything that counts passed");
        ran.says(&note).says("fail 0/1 in quarantine").says("1 in quarantine");
        let junit = project.read("out.xml");
        let skipped = format!("in quarantine until {}: {WHY}; fail", today(days));
        assert!(junit.contains("<skipped") && junit.contains(&skipped) && !junit.contains("<failure"), "{junit}");
        let json: serde_json::Value = serde_json::from_str(&project.read("out.json")).unwrap();
        assert_eq!(json["summary"]["fail"], 1);
        assert_eq!(json["cells"][1]["quarantine"]["why"], WHY);
        assert_eq!((&json["columns"][0]["score"], &json["columns"][0]["cases"]), (&1.0.into(), &1.into()));
        let annotations = project.evals(&["report", "--format", "github"]).out;
        assert!(!annotations.contains("::error") && annotations.contains("::warning"), "{annotations}");
    }
}

#[test]
fn a_quarantine_that_is_over_is_told_and_the_case_counts() {
    let project = two(&quarantine(-1));
    let told = format!("the quarantine of case `b-bad` ended on {}, so its verdicts count again", today(-1));
    run(&project, &[]).exits(1).says(&told).says("b-bad.yaml");
    project.evals(&["check"]).exits(0).says(&told);
    two(&quarantine(1)).evals(&["check"]).exits(0);
}

#[test]
fn where_everything_is_in_quarantine_nothing_is_judged() {
    let project = two(&quarantine(1));
    for id in ["b-*", "b-bad"] {
        run(&project, &["--case", id]).exits(3).says("everything that ran is in quarantine");
    }
    project.evals(&["report", "--format", "markdown"]).says("nothing that counts failed");
    let passing = Project::new();
    passing.case("a", &quarantine(1), PASS);
    run(&passing, &[]).exits(3);
}

#[test]
fn gates_and_baselines_leave_cases_in_quarantine_out_by_name() {
    let project = two(&quarantine(1));
    run(&project, &["--fail-under", "1"]).exits(0).says("without cases in quarantine: b-bad");
    run(&project, &["--fail-fast", "--jobs", "1", "--label", "first", "--trials", "2"]).exits(0);
    project.evals(&["baseline", "set", "first"]).exits(0).says("without cases in quarantine: b-bad");
    let baseline: serde_json::Value = serde_json::from_str(&project.read("cases/baseline.json")).unwrap();
    assert!(
        baseline["cases"].get("b-bad").is_none() && baseline["arms"][0]["quarantined"].get("b-bad").is_some(),
        "{baseline}"
    );
    // The case passed before its quarantine began, and fails now.
    let other = two("");
    other.case("b-bad", "", PASS);
    run(&other, &["--label", "old"]).exits(0);
    other.case("b-bad", &quarantine(1), FAIL);
    run(&other, &["--label", "new"]).exits(0);
    let compared = other.evals(&["compare", "old", "new", "--gate"]).exits(0);
    compared.says("b-bad").says("it is in quarantine until");
    other.evals(&["compare", "old", "new", "--gate", "cases=1.0"]).exits(0);
}

#[test]
fn a_quarantine_that_only_the_old_run_had_hides_nothing_of_the_new_one() {
    let project = Project::new();
    project.case("a-good", "", PASS);
    project.case("b-bad", &quarantine(1), PASS);
    run(&project, &["--label", "old"]).exits(0);
    let case = project.read("cases/b-bad.yaml").replace(&format!("{}\n", quarantine(1)), "");
    project.write("cases/b-bad.yaml", &case);
    project.write("cases/b-bad.demo.yaml", &format!("{FAIL}\n"));
    run(&project, &["--label", "new"]).exits(1);
    let compared = project.evals(&["compare", "old", "new", "--gate"]);
    assert_ne!(compared.code, 0, "{}", compared.out);
    // It is not excused as a case in quarantine.
    assert!(!compared.out.contains("in quarantine"), "{}", compared.out);
}

#[test]
fn a_snapshot_of_a_case_in_quarantine_decides_nothing() {
    let project = Project::new();
    project.case("a-good", "", PASS);
    project.case("b", "", "steps: [{say: one}]");
    run(&project, &["--snapshot", "update"]).exits(0);
    project.case("b", &quarantine(1), "steps: [{write: {path: x, text: y}}, {say: two}]");
    run(&project, &["--snapshot", "check"]).exits(0);
    project.case("b", "", "steps: [{write: {path: x, text: y}}, {say: two}]");
    run(&project, &["--snapshot", "check"]).exits(1);
}

#[test]
fn a_wrong_quarantine_is_refused_at_its_place() {
    let wrong = [
        ("critical: true\nquarantine: {until: 2999-01-01, why: x}", "a critical case cannot be in quarantine"),
        ("quarantine: {until: 2999-02-30, why: x}", "`2999-02-30` is not a date"),
        ("quarantine: {until: tomorrow, why: x}", "`tomorrow` is not a date"),
        ("quarantine: {until: 2999-01-01, why: ' '}", "`why` is empty"),
        ("quarantine: {until: 2999-01-01}", "why"),
        ("quarantine: {why: x}", "until"),
    ];
    for (keys, says) in wrong {
        let project = two(keys);
        run(&project, &[]).exits(2).says("b-bad.yaml:").says(says);
    }
    let project = two("quarantine: {until: 2999-01-01, why: x}");
    project.write("cases/suite.yaml", "critical: true\n");
    run(&project, &[]).exits(2).says("a critical case cannot be in quarantine");
}

#[test]
fn a_suite_puts_its_cases_in_quarantine() {
    let project = two("");
    run(&project, &[]).exits(1);
    project.write("cases/suite.yaml", "quarantine: {until: 2999-01-01, why: x}\n");
    run(&project, &[]).exits(3);
    project.write("cases/suite.yaml", "quarantine: {until: 2001-01-01, why: x}\n");
    run(&project, &[]).exits(1);
    project.write("cases/suite.yaml", "review: needed\nprovenance: {tool: x}\n");
    run(&project, &[]).exits(1);
    project.evals(&["check"]).says("review");
    project.write("cases/suite.yaml", "quarantine: {until: 2999-01-01, why: x}\ncritical: true\n");
    run(&project, &[]).exits(2).says("a critical case cannot be in quarantine");
}

#[test]
fn a_run_keeps_the_quarantine_that_held_when_it_began() {
    let project = two(&quarantine(1));
    run(&project, &[]).exits(0);
    let path = format!("{}/run.json", project.run_folder());
    let record = project.read(&path);
    assert!(
        record.contains(&format!("\"until\":\"{}\"", today(1)))
            || record.contains(&format!("\"until\": \"{}\"", today(1)))
    );
    // Adding it is no change of the case.
    let case = project.read("cases/b-bad.yaml").replace(&format!("{}\n", quarantine(1)), "");
    project.write("cases/b-bad.yaml", &case);
    run(&project, &[]).exits(1);
    let digests: Vec<String> = project
        .runs()
        .iter()
        .map(|run| {
            let record: serde_json::Value =
                serde_json::from_str(&project.read(&format!(".evals/runs/{run}/run.json"))).unwrap();
            record["cases"][1]["digest"].to_string()
        })
        .collect();
    assert_eq!(digests[0], digests[1]);
}

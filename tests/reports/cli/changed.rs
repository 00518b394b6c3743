//! `--resume --changed keep`: trials of different versions in one run, which every report tells apart from a flaky case.

use serde_json::{Value, json};

use crate::project::Project;

/// The stored run's report in a format.
fn report(project: &Project, run: &str, format: &str) -> String {
    project.evals(&["report", run, "--format", format, "-o", "-"]).exits(0).out
}

fn breaks(project: &Project, case: &str) -> Vec<Value> {
    let json = project.evals(&["history", case, "--format", "json"]).exits(0).json();
    json["cells"][0]["points"].as_array().unwrap().iter().map(|point| point["breaks"].clone()).collect()
}

#[test]
fn trials_of_two_versions_of_a_case_are_not_called_flaky() {
    let project = Project::new();
    project.case("a", "trials: 2", "steps: [{stop: refusal}]");
    project.case("b", "", "steps: [{say: done}]");
    project.evals(&["run", "--jobs", "1", "--label", "mixed", "--fail-fast"]).exits(1);
    project.case("a", "trials: 2\ndescription: other", "steps: [{say: done}]");
    project.evals(&["run", "--resume", "mixed", "--changed", "keep"]).exits(1);
    let note = "changed in the middle of the run (--changed), so its trials cannot be compared with each other: case a";
    for format in ["table", "markdown", "json", "html", "benchmark"] {
        let text = report(&project, "mixed", format);
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(note), "{format}: {text}");
        assert!(!plain.contains("flaky, with both passes and fails"), "{format}: {text}");
    }
    let junit = report(&project, "mixed", "junit");
    assert!(junit.contains("name=\"changed-during-run\" value=\"case a\""), "{junit}");
    assert!(!junit.contains("flakyFailure"), "{junit}");
    let json: Value = serde_json::from_str(&report(&project, "mixed", "json")).unwrap();
    assert_eq!((&json["cells"][0]["mixed"], &json["cases"][0]["flags"]), (&true.into(), &json!([])));
    assert!(json["cells"][1].get("mixed").is_none(), "{json}");
    // The next run has the newer version, and still does not compare with both.
    project.evals(&["run", "--label", "next"]).exits(0);
    assert_eq!(breaks(&project, "a"), [json!([]), json!(["case"])]);
    assert_eq!(breaks(&project, "b"), [json!([]), json!([])]);
}

#[test]
fn costs_by_two_price_tables_are_told() {
    let project = Project::new();
    let prices = |date: &str, input: &str| {
        project.write("prices.yaml", &format!("date: '{date}'\nmodels: {{dear: {{input: {input}, output: 4}}}}\n"));
    };
    let steps = "steps: [{usage: {input-tokens: 2000000, output-tokens: 1000000}}, {say: done}]";
    project.case("a", "trials: 2", steps);
    prices("2026-01-02", "1.5");
    // The first trial spends it all.
    let begin = ["run", "--model", "dear", "--jobs", "1", "--max-cost", "1", "--label", "mixed"];
    project.evals(&begin).exits(3);
    prices("2026-06-02", "3");
    let resume = ["run", "--resume", "mixed", "--max-cost", "1000"];
    project.evals(&resume).exits(2).says("the price table changed");
    project.evals(&[&resume[..], &["--changed", "keep"]].concat()).exits(0);
    let note = "changed in the middle of the run (--changed), so its trials cannot be compared with each other: the price table";
    for format in ["markdown", "json", "html"] {
        assert!(report(&project, "mixed", format).contains(note), "{format}");
    }
    assert!(report(&project, "mixed", "junit").contains("name=\"changed-during-run\" value=\"the price table\""));
    project.evals(&["run", "--model", "dear", "--label", "next"]).exits(0);
    assert_eq!(breaks(&project, "a"), [json!([]), json!(["prices"])]);
    let says = "the price table changed between its trials, so the costs cannot be compared";
    project.evals(&["compare", "mixed", "next"]).says(says);
    // What was priced is run again, and then one table has priced all.
    project.evals(&[&resume[..], &["--changed", "rerun"]].concat()).exits(0);
    for trial in ["a/demo/dear/1", "a/demo/dear/2"] {
        let path = format!("{}/trials/{trial}/result.json", project.run_named("mixed"));
        let result: Value = serde_json::from_str(&project.read(&path)).unwrap();
        assert_eq!((&result["metrics"]["cost_usd"], &result["attempt"]), (&10.0.into(), &2.into()), "{trial}");
    }
    assert!(!report(&project, "mixed", "markdown").contains("changed in the middle"));
    project.evals(&resume).exits(0);
    // The recorded budget is spent, so nothing runs again, and what the older table has priced does not count.
    prices("2026-07-02", "4");
    project.evals(&["run", "--resume", "mixed", "--changed", "rerun"]).exits(3).says("2 trials were not run");
    project.evals(&resume).exits(0);
    let summary: Value = serde_json::from_str(&report(&project, "mixed", "json")).unwrap();
    assert_eq!(summary["summary"]["pass"], 2, "{summary}");
}

//! Costs that do not compare: other price tables, and ratios that rest on a part of the cases.

use serde_json::{Value, json};

use super::stored::{Stored, of_cases};
use crate::project::Project;

fn priced(name: &str, prices: &Value) -> Stored {
    let run = of_cases(name, &[(8, "pp")]).results(|it| it["metrics"]["cost_source"] = "priced".into());
    if prices.is_null() { run } else { run.with("prices", prices.clone()) }
}

/// Returns the caveats about prices that are not about one side alone.
fn doubts(project: &Project, args: &[&str]) -> Vec<String> {
    let found = project.evals(&[&["compare", "--format", "json"][..], args].concat()).json();
    let doubts = found["pairs"][0]["doubts"].as_array().unwrap().clone();
    let of_prices =
        doubts.iter().filter(|doubt| doubt["about"] == "prices").map(|doubt| doubt["text"].as_str().unwrap());
    of_prices.filter(|text| !text.contains("trials comes from a price table")).map(str::to_owned).collect()
}

#[test]
fn two_price_tables_are_flagged_in_runs_and_baselines() {
    let project = Project::new();
    let table = |date: &str, digest: &str| json!({"date": date, "digest": digest});
    priced("old", &table("2026-01-01", "d1")).write(&project, 0);
    priced("same", &table("2026-01-01", "d1")).write(&project, 0);
    priced("dearer", &table("2026-06-01", "d2")).write(&project, 0);
    priced("edited", &table("2026-01-01", "d3")).write(&project, 0);
    priced("older", &Value::Null).write(&project, 0);
    let differ = "the price tables differ, so the costs cannot be compared: of 2026-01-01 before, of 2026-06-01 now";
    let unknown = "it is unknown whether the costs of both sides come from the same price table";
    assert_eq!(doubts(&project, &["old", "same"]), Vec::<String>::new());
    assert_eq!(doubts(&project, &["old", "dearer"]), [differ]);
    let both = "the price tables differ, so the costs cannot be compared: both are of 2026-01-01";
    assert_eq!(doubts(&project, &["old", "edited"]), [both]);
    assert_eq!(doubts(&project, &["older", "dearer"]), [unknown]);
    project.evals(&["compare", "old", "dearer"]).says("valid, but:").says(differ);
    // The agents of one side told their costs themselves, so there is one table.
    of_cases("told", &[(8, "pp")]).with("prices", table("2026-01-01", "d1")).write(&project, 0);
    assert_eq!(doubts(&project, &["told", "dearer"]), Vec::<String>::new());
    // A baseline keeps its table; one of an older version has none.
    project.evals(&["baseline", "set", "old", "--file", "base.json"]).exits(0);
    assert_eq!(doubts(&project, &["same", "--baseline", "base.json"]), Vec::<String>::new());
    assert_eq!(doubts(&project, &["dearer", "--baseline", "base.json"]), [differ]);
    let mut base: Value = serde_json::from_str(&project.read("base.json")).unwrap();
    assert_eq!(base["prices"], table("2026-01-01", "d1"));
    base.as_object_mut().unwrap().remove("prices");
    project.write("base.json", &base.to_string());
    assert_eq!(doubts(&project, &["dearer", "--baseline", "base.json"]), [unknown]);
}

#[test]
fn reports_name_the_price_table_and_its_date_as_far_as_the_run_recorded_them() {
    let project = Project::new();
    let table = |origin: &str| json!({"date": "2026-01-01", "digest": "d", "origin": origin});
    let mixed = json!({"date": "2026-01-01", "digest": "d", "origin": "mine.yaml", "mixed": true});
    for (name, prices, told) in [
        ("built-in", table("built-in"), ": the built-in one, dated 2026-01-01"),
        ("mine", table("mine.yaml"), ": mine.yaml, dated 2026-01-01"),
        ("mixed", mixed, ": mine.yaml, dated 2026-01-01; an earlier table priced some of them"),
        ("no-origin", json!({"date": "2026-01-01", "digest": "d"}), ", dated 2026-01-01"),
        ("older", Value::Null, ""),
    ] {
        priced(name, &prices).write(&project, 0);
        let report = project.evals(&["report", name, "--format", "json"]).exits(0).json();
        let note = format!("the cost of 16 trials comes from a price table{told}");
        assert!(report["notes"].as_array().unwrap().contains(&note.clone().into()), "{note}: {}", report["notes"]);
    }
}

#[test]
fn the_conclusion_of_an_experiment_says_on_how_many_cases_a_ratio_rests() {
    let project = Project::new();
    let mut run = Stored::new("x");
    for number in 0..10 {
        let id = format!("c{number}");
        run = run.case(&id, "old", "p").case(&id, "new", "p");
    }
    let untold = |it: &mut Value| {
        if it["arm"] == "new" && it["case"] != "c0" {
            it["metrics"].as_object_mut().unwrap().remove("cost_usd");
        }
    };
    run.with("experiment", json!({"baseline": "old", "vary": ["env"]})).results(untold).write(&project, 0);
    let found = project.evals(&["compare", "x", "--format", "json"]).json();
    let text = found["conclusions"][0]["text"].as_str().unwrap();
    assert!(text.contains("1.00 × the cost (over 1 of 10 cases)"), "{text}");
    assert_eq!(text.matches("(over 1 of").count(), 1, "the time is known of all cases: {text}");
}

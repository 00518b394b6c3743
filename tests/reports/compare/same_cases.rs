//! Figures of both sides are about the same cases: costs, the star of the arms, the chart of cost and score, coverage.

use serde_json::{Value, json};

use super::stored::{Stored, of_cases};
use crate::project::Project;

/// Returns a change that sets the cost of each result.
fn costs(of: impl Fn(&Value) -> f64) -> impl Fn(&mut Value) {
    move |it| it["metrics"]["cost_usd"] = of(it).into()
}

fn arm<'a>(found: &'a Value, name: &str) -> &'a Value {
    found["arms"].as_array().unwrap().iter().find(|arm| arm["name"] == name).unwrap()
}

#[test]
fn a_run_of_more_and_dearer_cases_is_not_dearer() {
    let project = Project::new();
    let nightly = costs(|it| if it["case"].as_str().unwrap() < "c06" { 0.25 } else { 5.0 });
    of_cases("old", &[(9, "p")]).results(nightly).write(&project, 0);
    of_cases("new", &[(6, "p")]).results(costs(|_| 0.5)).write(&project, 0);
    let found = project.evals(&["compare", "old", "new", "--format", "json"]).exits(3).json();
    let cost = json!({"old": 0.25, "new": 0.5, "old_unknown": 0, "new_unknown": 0, "cases": 6});
    assert_eq!(found["pairs"][0]["per_trial"]["cost_usd"], cost);
    assert_eq!(found["ranking"]["cases"], 6);
    assert_eq!(arm(&found, "agent (old)")["dominated_by"], json!([]));
    assert_eq!(arm(&found, "agent (new)")["dominated_by"], json!(["agent (old)"]));
    let page = project.evals(&["compare", "old", "new"]).exits(3);
    let page = page.says("what a trial cost in the 6 compared cases: $0.50 instead of $0.25,");
    page.says(
        "over the 6 cases that all of them completed: agent (old) 100.0 % for $0.25, agent (new) 100.0 % for $0.50",
    );
    // Nothing is said of cases if all of both sides are compared.
    of_cases("old", &[(6, "p")]).results(costs(|_| 0.25)).write(&project, 0);
    let page = project.evals(&["compare", "old", "new"]).exits(3).says("what a trial cost: $0.50 instead of $0.25,");
    assert!(!page.says("or more for as much (Pareto)").out.contains("that all of them completed"));
}

#[test]
fn an_arm_that_was_errored_in_the_hard_cases_is_not_the_best() {
    let project = Project::new();
    let mut run = Stored::new("x");
    for n in 0..10 {
        let (id, is_easy) = (format!("c{n:02}"), n < 6);
        run = run.case(&id, "a", if is_easy { "p" } else { "r" }).case(&id, "b", if is_easy { "p" } else { "f" });
    }
    let cost = |it: &Value| match (it["arm"] == "a", it["case"].as_str().unwrap() < "c06") {
        (true, true) => 0.5,
        (true, false) => 0.01,
        (false, true) => 0.25,
        (false, false) => 2.0,
    };
    run.results(costs(cost)).write(&project, 0);
    let found = project.evals(&["compare", "x", "--baseline", "b", "--format", "json"]).exits(3).json();
    assert_eq!(arm(&found, "agent / a")["dominated_by"], json!(["agent / b"]));
    assert_eq!(arm(&found, "agent / b")["dominated_by"], json!([]));
    let page = project.evals(&["compare", "x", "--baseline", "b"]).exits(3);
    let page = page.says("what a trial cost in the 6 compared cases: $0.50 instead of $0.25,").out;
    assert!(page.contains("agent / b *") && !page.contains("agent / a *"), "{page}");
    project.evals(&["report", "x", "--format", "html", "-o", "x.html"]).exits(0);
    let page = project.read("x.html");
    for text in [
        "Cost per trial against score, with the Pareto line, in the 6 cases that all completed",
        "agent / a: $0.50 per trial, score 1.00",
        "agent / b: $0.25 per trial, score 1.00",
        "Pareto line: agent / b\"",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn an_arm_that_is_not_ranked_leaves_out_no_case() {
    let project = Project::new();
    let mut run = Stored::new("x");
    for n in 0..6 {
        let (id, is_easy) = (format!("c{n:02}"), n < 2);
        run = run.case(&id, "a", if is_easy { "p" } else { "r" });
        run = run.case(&id, "b", if is_easy { "p" } else { "f" }).case(&id, "d", "p");
    }
    let cost = |it: &mut Value| {
        let cost = match it["arm"].as_str().unwrap() {
            "a" => Value::Null,
            "b" => json!(0.25),
            _ => json!(0.5),
        };
        it["metrics"]["cost_usd"] = cost;
    };
    run.results(cost).write(&project, 0);
    for baseline in ["b", "a"] {
        let found = project.evals(&["compare", "x", "--baseline", baseline, "--format", "json"]).json();
        assert_eq!(found["ranking"]["cases"], 6, "{baseline}");
        for name in ["agent / b", "agent / d"] {
            assert_eq!(arm(&found, name)["dominated_by"], json!([]), "{baseline}: {name}");
        }
        assert_eq!(arm(&found, "agent / a")["dominated_by"], Value::Null, "{baseline}");
        let page = project.evals(&["compare", "x", "--baseline", baseline]).says("or more for as much (Pareto)").out;
        assert!(page.contains("agent / d *") && !page.contains("that all of them completed"), "{page}");
    }
}

#[test]
fn one_arm_with_known_costs_is_not_the_best() {
    let project = Project::new();
    of_cases("old", &[(6, "p")]).write(&project, 0);
    let untold = |it: &mut Value| drop(it["metrics"].as_object_mut().unwrap().remove("cost_usd"));
    of_cases("new", &[(6, "p")]).results(untold).write(&project, 0);
    let page = project.evals(&["compare", "old", "new"]).exits(3).says("unknown instead of $0.50").out;
    assert!(!page.contains("agent (old) *") && !page.contains("Pareto"), "{page}");
}

#[test]
fn costs_of_errored_trials_are_not_compared() {
    let project = Project::new();
    let cost = || costs(|it| if it["verdict"] == "errored" { 0.01 } else { 1.0 });
    of_cases("old", &[(4, "pp")]).results(cost()).write(&project, 0);
    of_cases("new", &[(1, "pr"), (3, "pp")]).results(cost()).write(&project, 0);
    let found = project.evals(&["compare", "old", "new", "--format", "json"]).json();
    let ratio = &found["pairs"][0]["cost"];
    assert_eq!((&ratio["ratio"], &ratio["cases"]), (&json!(1.0), &json!(3)), "{ratio}");
    project.evals(&["compare", "old", "new"]).says("what a trial cost: $1.00 instead of $1.00 (over 3 of 4 cases)");
    of_cases("new", &[(4, "pr")]).results(cost()).write(&project, 0);
    let says = "money and tokens unknown, because every case has an errored trial";
    project.evals(&["compare", "old", "new"]).says(says);
    // A trial that crashed ended early, whatever it counts as.
    of_cases("new", &[(4, "pc")]).results(cost()).write(&project, 0);
    project.evals(&["compare", "old", "new", "--errors", "fail"]).says(says);
}

#[test]
fn differences_in_cost_and_tokens_are_those_of_the_comparison() {
    let project = Project::new();
    of_cases("old", &[(6, "pp")]).write(&project, 0);
    let change = |outcomes: &[(usize, &str)], earlier: Value, figure: &str| {
        let retried = |it: &mut Value| {
            (it["metrics"]["cost_usd"], it["metrics"]["total_tokens"]) = (0.125.into(), 2000.into());
            it["earlier_attempts"] = earlier.clone();
        };
        of_cases("new", outcomes).results(retried).write(&project, 0);
        let found = project.evals(&["compare", "old", "new", "--format", "json"]).json();
        let changes = found["pairs"][0]["behaviour"]["changes"].as_array().unwrap();
        let of_figure = changes.iter().find(|change| change["figure"] == figure);
        of_figure.map(|it| json!([it["old"], it["new"], it["delta"], it["cases"]]))
    };
    let dollars = "cost in US dollars";
    let known = json!({"count": 1, "cost_usd": 5.0});
    assert_eq!(change(&[(6, "pp")], known.clone(), dollars), Some(json!([0.5, 5.125, 4.625, 6])));
    assert_eq!(change(&[(6, "pp")], json!({"count": 1, "cost_unknown": 1}), dollars), None);
    assert_eq!(change(&[(1, "pr"), (5, "pp")], known.clone(), dollars), Some(json!([0.5, 5.125, 4.625, 5])));
    assert_eq!(change(&[(1, "pr"), (5, "pp")], known, "tokens"), Some(json!([1000.0, 2000.0, 1000.0, 5])));
}

#[test]
fn an_arm_is_not_cheaper_by_crashes_that_count_as_failures() {
    let project = Project::new();
    let cost = || costs(|it| if it["verdict"] == "errored" { 0.01 } else { 1.0 });
    of_cases("old", &[(6, "p")]).results(cost()).write(&project, 0);
    of_cases("new", &[(5, "p"), (1, "c")]).results(cost()).write(&project, 0);
    let page = project.evals(&["compare", "old", "new", "--errors", "fail"]);
    let page = page.says("what a trial cost: $1.00 instead of $1.00 (over 5 of 6 cases)");
    page.says(
        "over the 5 cases that all of them completed: agent (old) 100.0 % for $1.00, agent (new) 100.0 % for $1.00",
    );
}

#[test]
fn a_comparison_is_based_on_the_cases_that_it_compares() {
    let project = Project::new();
    let mut run = Stored::new("x");
    for n in 0..5 {
        let (id, is_scored) = (format!("c{n}"), n < 3);
        run = run.case(&id, "a", if is_scored { "p" } else { "r" }).case(&id, "b", if is_scored { "p" } else { "f" });
    }
    run.write(&project, 0);
    let page = project.evals(&["compare", "x", "--baseline", "a"]).exits(3);
    page.says("5 of 5 planned trials (100.0 %) of agent / b, and 3 of 5 cases of the old side");
}

#[test]
fn the_page_shows_adjusted_p_values_as_every_format_does() {
    let project = Project::new();
    let mut run = Stored::new("x");
    for n in 0..5 {
        let id = format!("c{n}");
        run = run.case(&id, "a", "pppp").case(&id, "b", if n < 3 { "ffff" } else { "pppp" });
    }
    run.write(&project, 0);
    project.evals(&["report", "x", "--format", "html", "-o", "x.html"]).exits(0);
    let page = project.read("x.html");
    let (_, cases) = page.split_once("Case by case: agent / a and agent / b</h2>").unwrap();
    let (cases, _) = cases.split_once("</table>").unwrap();
    // Fisher's p is 2/70 in three of five cases, and 1 in two: by Benjamini and Hochberg 2/70 × 5/3.
    assert_eq!(cases.matches("<td class=\"num\">0.048</td>").count(), 3, "{cases}");
    assert!(cases.contains("class=\"num\">adjusted p</th>") && !cases.contains("0.0286"), "{cases}");
}

#[test]
fn a_p_value_is_never_shown_as_0() {
    let project = Project::new();
    Stored::new("x").case("c00", "a", &"p".repeat(30)).case("c00", "b", &"f".repeat(30)).write(&project, 0);
    let found = project.evals(&["compare", "x", "--baseline", "a", "--format", "json"]).json();
    let p = found["pairs"][0]["cases"][0]["p_adjusted"].as_f64().unwrap();
    assert!(p > 0.0 && p < 1e-12, "{p}");
    project.evals(&["compare", "x", "--baseline", "a"]).says("c00 30/30 0/30 -100.0 pp <0.0001");
    project.evals(&["report", "x", "--format", "html", "-o", "x.html"]).exits(0);
    let page = project.read("x.html");
    assert!(page.contains("<td class=\"num\">&lt;0.0001</td>"), "{page}");
}

#[test]
fn scores_of_a_case_that_are_not_its_share_of_passed_trials_are_shown() {
    let project = Project::new();
    let partly = |it: &mut Value| {
        if it["verdict"] == "fail" {
            it["score"] = 0.6.into();
        }
    };
    of_cases("old", &[(1, "pppf"), (1, "pppp")]).results(partly).write(&project, 0);
    of_cases("new", &[(1, "pfff"), (1, "pppp")]).results(partly).write(&project, 0);
    project.evals(&["compare", "old", "new"]).says("c00 3/4 (0.90) 1/4 (0.70) -20.0 pp");
}

#[test]
fn intervals_of_different_methods_are_marked() {
    let project = Project::new();
    let partly = |it: &mut Value| {
        if it["verdict"] == "fail" {
            it["score"] = 0.4.into();
        }
    };
    of_cases("old", &[(3, "p"), (3, "f")]).write(&project, 0);
    of_cases("new", &[(3, "p"), (3, "f")]).results(partly).write(&project, 0);
    let says = "the intervals have different methods: Wilson for agent (old); Student's t for agent (new)";
    project.evals(&["compare", "old", "new"]).says(says);
    of_cases("new", &[(4, "p"), (2, "f")]).write(&project, 0);
    assert!(!project.evals(&["compare", "old", "new"]).out.contains("methods"));
}

#[test]
fn an_open_case_of_an_arm_against_itself_is_not_an_unchanged_one() {
    let project = Project::new();
    let aa = |trials: &str, not_run: usize| {
        let run = Stored::new("x").with("options", json!({"aa": true}));
        let run = run.case("c1", "default", "p").case("c1", "default#2", "p");
        run.case("c2", "default", "pp").case("c2", "default#2", trials).write(&project, not_run);
        let found = project.evals(&["report", "x", "--format", "json"]).json();
        json!([found["aa"]["cases"], found["aa"]["flipped"], found["aa"]["open"]])
    };
    assert_eq!(aa("pu", 0), json!([1, [], ["c2"]]), "ungraded");
    assert_eq!(aa("rr", 0), json!([1, [], ["c2"]]), "errored");
    assert_eq!(aa("pp", 1), json!([1, [], ["c2"]]), "not run");
    assert_eq!(aa("fr", 0), json!([2, ["c2"], []]), "the errored trial cannot change the verdict");
    assert_eq!(aa("pr", 0), json!([1, [], ["c2"]]));
    let says = "agent against itself: the verdict changed in 0 of 1 case with a verdict on both sides: none; open: c2";
    project.evals(&["report", "x"]).says(says);
}

#[test]
fn tool_calls_are_those_of_the_same_cases_and_each_case_counts_once() {
    let project = Project::new();
    let calls = |it: &mut Value| {
        let count = match it["case"].as_str().unwrap() {
            "heavy" => 10,
            "light" => 1,
            _ => 100,
        };
        it["metrics"]["tool_calls_by_kind"] = json!({"read": count});
    };
    let old = Stored::new("old").case("heavy", "default", "pppp").case("light", "default", "pppp");
    old.case("other", "default", "pppp").results(calls).write(&project, 0);
    let new = Stored::new("new").case("heavy", "default", "prrr").case("light", "default", "pppp");
    new.results(calls).write(&project, 0);
    let found = project.evals(&["compare", "old", "new", "--format", "json"]).exits(3).json();
    assert_eq!(found["pairs"][0]["behaviour"]["calls"], json!([{"kind": "read", "old": 5.5, "new": 5.5}]));
    for name in ["agent (old)", "agent (new)"] {
        assert_eq!(arm(&found, name)["calls_per_trial"], 5.5, "{name}");
    }
    // A baseline keeps no calls, so the new arm has its own cases, also those without a score.
    project.write("cases/suite.yaml", "tags: [all]\n");
    project.evals(&["baseline", "set", "old"]).exits(0);
    let new = Stored::new("new").case("heavy", "default", "pppp").case("light", "default", "pppp");
    new.case("other", "default", "uuuu").results(calls).write(&project, 0);
    let found = project.evals(&["compare", "new", "--format", "json"]).json();
    assert_eq!(arm(&found, "agent (new)")["calls_per_trial"], 37.0);
}

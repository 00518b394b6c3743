//! A comparison claims no more than its trials show: open verdicts, several comparisons, few cases, small figures.

use serde_json::{Value, json};

use super::stored::{Stored, of_cases};
use crate::project::Project;

/// A run of an experiment with the baseline `base`. Each arm has the same trials of all cases, but for those that are given.
fn experiment(name: &str, cases: usize, arms: &[(&str, &dyn Fn(usize) -> &'static str)]) -> Stored {
    let mut run = Stored::new(name).with("experiment", json!({"baseline": "base", "vary": ["env"]}));
    for case in 0..cases {
        for (arm, trials) in arms {
            run = run.case(&format!("c{case:02}"), arm, trials(case));
        }
    }
    run
}

#[test]
fn a_case_whose_verdict_is_open_is_not_lost() {
    let project = Project::new();
    let share = |it: &mut Value| {
        if it["id"] == "c00" {
            it["pass"] = 0.75.into();
        }
    };
    let shown = |old: &str, new: &str| {
        of_cases("old", &[(1, old), (9, "pppp")]).cases(share).write(&project, 0);
        of_cases("new", &[(1, new), (9, "pppp")]).cases(share).write(&project, 0);
        let found = project.evals(&["compare", "old", "new", "--format", "json"]).json();
        let cases = found["pairs"][0]["cases"].as_array().unwrap().clone();
        let flags = cases.into_iter().find(|case| case["case"] == "c00").unwrap()["flags"].clone();
        let page = project.evals(&["compare", "old", "new"]).out;
        (flags, page.split_whitespace().collect::<Vec<_>>().join(" ").contains("lost: c00"))
    };
    // Three of four trials must pass: the errored trial may have passed.
    assert_eq!(shown("pppp", "ppfr"), (json!(["open", "flaky"]), false));
    assert_eq!(shown("pppp", "ppff"), (json!(["regressed", "flaky"]), true));
    assert_eq!(shown("ppfr", "pppp"), (json!(["open", "flaky"]), false));
    // The old verdict is open.
    assert_eq!(shown("pppr", "ffff"), (json!(["regressed"]), true));
    assert_eq!(shown("ppr", "fff"), (json!(["open"]), false));
    assert_eq!(shown("ppff", "pppp"), (json!(["fixed", "flaky"]), false));
    assert_eq!(shown("ffff", "pprf"), (json!(["flaky"]), false));
}

#[test]
fn an_equal_change_in_every_case_is_a_change() {
    let project = Project::new();
    experiment("x", 20, &[("base", &|_| "pppp"), ("more", &|_| "ppff")]).write(&project, 0);
    let text = "the difference changed while the run went on: +0.0 pp in the first half of the trials, -100.0 pp in the second \
                (p < 0.0001)";
    project.evals(&["compare", "x"]).says(text);
    // A change that is nearly equal everywhere.
    experiment("x", 20, &[("base", &|_| "pppp"), ("more", &|case| if case == 0 { "pppf" } else { "ppff" })])
        .write(&project, 0);
    project.evals(&["compare", "x"]).says("-97.5 pp in the second (p < 0.0001)");
    // Five cases of equal changes may be chance.
    experiment("x", 5, &[("base", &|_| "pppp"), ("more", &|_| "ppff")]).write(&project, 0);
    let page = project.evals(&["compare", "x"]).out;
    assert!(!page.contains("the difference changed"), "{page}");
}

#[test]
fn the_best_of_several_variants_is_told_with_the_correction() {
    let project = Project::new();
    let same = |case: usize| if case % 2 == 1 { "p" } else { "f" };
    let other = |case: usize| if case == 1 { "f" } else { same(case) };
    let better = |case: usize| if case < 10 { "p" } else { same(case) };
    experiment("two", 20, &[("base", &same), ("v1", &better)]).write(&project, 0);
    let page =
        project.evals(&["compare", "two"]).exits(0).says("agent / v1 instead of agent / base: better. Of 20").out;
    assert!(!page.contains("comparisons, chance"), "{page}");
    let arms: [(&str, &dyn Fn(usize) -> &'static str); 5] =
        [("base", &same), ("v1", &better), ("v2", &other), ("v3", &other), ("v4", &other)];
    experiment("many", 20, &arms).write(&project, 0);
    let but = "but with 4 comparisons, chance can explain it (p = ";
    let page = project.evals(&["compare", "many"]);
    let page = page.says(&format!("agent / v1 instead of agent / base: better, {but}"));
    page.says(&format!("agent / v1 helps, {but}")).says("hardly explains this comparison by itself");
    let found = project.evals(&["compare", "many", "--format", "json"]).json();
    assert_eq!(found["pairs"][0]["verdict"], "improved", "{found}");
}

#[test]
fn equivalence_by_few_cases_has_its_caveat_beside_the_verdict() {
    let project = Project::new();
    experiment("x", 40, &[("base", &|_| "pp"), ("more", &|case| if case == 0 { "pf" } else { "pp" })])
        .write(&project, 0);
    let but = "but one case more that differs could change that";
    let page = project.evals(&["compare", "x"]).says(&format!("no difference that matters, {but}"));
    page.says(&format!("agent / more makes no difference of more than 5.0 pp, {but}: "));
}

#[test]
fn a_ratio_has_as_many_decimals_as_it_needs() {
    let project = Project::new();
    let costs = |of: fn(f64, bool) -> f64| {
        move |it: &mut Value| {
            let case: f64 = it["case"].as_str().unwrap()[1..].parse().unwrap();
            it["metrics"]["cost_usd"] = of(1.0 + case, it["arm"] == "more").into();
        }
    };
    let arms: [(&str, &dyn Fn(usize) -> &'static str); 2] = [("base", &|_| "pp"), ("more", &|_| "pp")];
    let run = |of: fn(f64, bool) -> f64| experiment("x", 12, &arms).results(costs(of)).write(&project, 0);
    run(|cost, is_more| if is_more { cost * 0.002 } else { cost });
    project.evals(&["compare", "x"]).says("it takes 0.0020 × the cost");
    run(|cost, is_more| if is_more { cost * 1.004 } else { cost });
    project.evals(&["compare", "x"]).says("new over old: cost 1.004 [1.004, 1.004], tokens 1.00");
}

#[test]
fn a_share_of_the_error_that_is_only_bounded_is_not_told_as_a_fact() {
    let project = Project::new();
    of_cases("old", &[(1, "pppp"), (9, "ppff")]).write(&project, 0);
    of_cases("new", &[(10, "ppff")]).write(&project, 0);
    let page = project.evals(&["compare", "old", "new"]);
    let page = page.says("no difference between cases beyond chance was seen, so it is not known how far").out;
    assert!(!page.contains("squared error") && !page.contains("trials of each case)"), "{page}");
    let power = project.evals(&["compare", "old", "new", "--format", "json"]).json()["pairs"][0]["power"].clone();
    assert_eq!(power["share_within"], 1.0, "{power}");
    assert!(power["share_within_raw"].as_f64().unwrap() > 1.0 && power.get("trials_needed").is_none(), "{power}");
}

#[test]
fn a_baseline_shows_the_trials_without_a_score_and_medians_name_trials_without_a_time() {
    let project = Project::new();
    let timeless = |it: &mut Value| {
        if it["trial"] == 1 {
            it["metrics"].as_object_mut().unwrap().remove("duration_ms");
        }
    };
    of_cases("old", &[(1, "pprr"), (2, "pppp")]).results(timeless).write(&project, 0);
    project.evals(&["baseline", "set", "old", "--file", "b.json"]).exits(0);
    let shown = project.evals(&["baseline", "show", "--file", "b.json"]).exits(0).out;
    assert!(shown.lines().any(|line| line.contains("c00") && line.contains("2/4")), "{shown}");
    project.evals(&["report", "old"]).says("median times exclude 3 trials without a time");
    of_cases("new", &[(3, "pppp")]).write(&project, 0);
    project.evals(&["compare", "old", "new"]).says("median and p95 exclude 3 trials without a time");
}

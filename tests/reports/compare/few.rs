//! Comparisons of very few cases and trials: what they say agrees with itself.

use evals::statistics::power::{errors_apart, errors_apart_by_t};
use serde_json::{Value, json};

use super::stored::{Stored, of_cases};
use crate::project::Project;

fn compared(project: &Project, args: &[&str]) -> Value {
    let mut all = vec!["compare", "a", "b", "--format", "json"];
    all.extend(args);
    let ran = project.evals(&all);
    let mut found = ran.json();
    found["exited"] = ran.code.into();
    found
}

/// One case whose trials passed so often of so many, before and now.
fn one_case(project: &Project, old: (usize, usize), new: (usize, usize)) {
    for (name, (passed, all)) in [("a", old), ("b", new)] {
        let trials = format!("{}{}", "p".repeat(passed), "f".repeat(all - passed));
        Stored::new(name).case("x", "default", &trials).write(project, 0);
    }
}

#[test]
fn of_one_case_nothing_is_shown_that_fishers_test_does_not_show() {
    let project = Project::new();
    for (old, new, verdict, gate, code) in [
        ((0, 2), (2, 2), "inconclusive", "pass", 0),
        ((2, 2), (0, 2), "inconclusive", "inconclusive", 3),
        ((3, 3), (0, 3), "inconclusive", "inconclusive", 3),
        ((4, 4), (0, 4), "regressed", "fail", 1),
        ((0, 8), (8, 8), "improved", "pass", 0),
        ((8, 8), (3, 8), "regressed", "fail", 1),
    ] {
        one_case(&project, old, new);
        let found = compared(&project, &["--gate", "margin=0.05"]);
        let pair = &found["pairs"][0];
        assert_eq!(pair["verdict"], verdict, "{old:?} {new:?} {pair}");
        assert!(pair["could_be_significant"] == true || verdict == "inconclusive", "{old:?} {new:?}");
        assert_eq!((&found["gate"]["verdict"], &found["exited"]), (&gate.into(), &code.into()), "{old:?} {new:?}");
    }
}

#[test]
fn the_same_loss_in_every_case_shows_no_more_than_no_loss() {
    let project = Project::new();
    let arm = |passed: usize, all: usize| format!("{}{}", "p".repeat(passed), "f".repeat(all - passed));
    for (cases, all, verdict, gate) in [(2, 8, "inconclusive", "inconclusive"), (40, 8, "regressed", "pass")] {
        for (name, passed) in [("a", all), ("b", all - 1)] {
            let run =
                (0..cases).fold(Stored::new(name), |run, n| run.case(&format!("x{n}"), "default", &arm(passed, all)));
            run.write(&project, 0);
        }
        let found = compared(&project, &["--gate", "margin=0.2"]);
        let (pair, gates) = (&found["pairs"][0], &found["gate"]["gates"][0]);
        assert_eq!((&pair["verdict"], &found["gate"]["verdict"]), (&verdict.into(), &gate.into()), "{pair} {gates}");
        assert_eq!(pair["method"], "clopper-pearson");
        // Of two cases, up to 84 % may lose all: 1 - 0.025^(1/2).
        let share = 1.0 - 0.025_f64.powf(1.0 / f64::from(cases));
        let (low, high) = (-0.125 - share * 0.875, -0.125 + share * 1.125);
        for (found, wanted) in [(&pair["interval"]["low"], low), (&pair["interval"]["high"], high)] {
            assert!((found.as_f64().unwrap() - wanted).abs() < 1e-12, "{pair}");
        }
        let (p, lower) = (gates["p"].as_f64().unwrap(), gates["found"].as_f64().unwrap());
        assert_eq!(p < 0.05, lower > -0.2, "{gates}");
    }
}

#[test]
fn equivalence_by_the_spread_of_few_cases_is_flagged() {
    let project = Project::new();
    // Of so many cases, so many lose a trial before, and so many others now.
    for (cases, before, now, flagged) in [(12, 0, 1, true), (100, 20, 20, false)] {
        let arm = |name: &str, lost: std::ops::Range<usize>| {
            let trials = |n| if lost.contains(&n) { "pppppppf" } else { "pppppppp" };
            (0..cases).fold(Stored::new(name), |run, n| run.case(&format!("x{n}"), "default", trials(n)))
        };
        arm("a", 0..before).write(&project, 0);
        arm("b", before..before + now).write(&project, 0);
        let pair = compared(&project, &[])["pairs"][0].clone();
        assert_eq!(pair["verdict"], "equivalent", "{}", pair["interval"]);
        let doubts = pair["doubts"].as_array().unwrap();
        assert_eq!(doubts.iter().any(|it| it["about"] == "few-differ"), flagged, "{doubts:?}");
    }
}

#[test]
fn the_gates_p_belongs_to_its_bound() {
    let project = Project::new();
    for (old, new) in
        [((10, 20), (6, 20)), ((3, 4), (1, 4)), ((10, 20), (15, 20)), ((9, 20), (10, 20)), ((20, 20), (8, 20))]
    {
        one_case(&project, old, new);
        let gate = compared(&project, &["--gate", "margin=0.05"])["gate"]["gates"][0].clone();
        let (p, lower) = (gate["p"].as_f64().unwrap(), gate["found"].as_f64().unwrap());
        assert_eq!(p < 0.05, lower > -0.05, "{old:?} {new:?} {gate}");
        assert!((0.0..=1.0).contains(&p), "{gate}");
    }
    // Just as good, and as bad as can be.
    one_case(&project, (20, 20), (0, 20));
    let p = compared(&project, &["--gate", "margin=0.05"])["gate"]["gates"][0]["p"].as_f64().unwrap();
    assert!(p > 0.999, "{p}");
}

#[test]
fn fractional_scores_of_one_case_are_compared_by_welchs_t() {
    let project = Project::new();
    let scored = |name: &str, scores: &[f64]| {
        let scores = scores.to_vec();
        Stored::new(name)
            .case("x", "default", &"f".repeat(scores.len()))
            .results(|it| it["score"] = scores[it["trial"].as_u64().unwrap() as usize - 1].into())
            .write(&project, 0);
    };
    // The figures are scipy's, `ttest_ind` with `equal_var=False`.
    for (new, old, p, low, high) in [
        (&[0.7, 0.71][..], &[0.5, 0.51][..], 0.001_247_661_122, 0.169_575_650_777, 0.230_424_349_223),
        (&[0.9, 0.4, 1.0, 0.8], &[0.2, 0.5, 0.45], 0.060_067_464_829, -0.024_429_333_929, 0.807_762_667_262),
        (&[1.0, 0.5, 0.75, 0.25, 1.0], &[0.5, 0.5, 0.5], 0.241_981_530_568, -0.204_732_946_178, 0.604_732_946_178),
    ] {
        scored("a", old);
        scored("b", new);
        let pair = compared(&project, &[])["pairs"][0].clone();
        let near = |key: &Value, wanted: f64| assert!((key.as_f64().unwrap() - wanted).abs() < 1e-9, "{pair}");
        near(&pair["p"], p);
        near(&pair["interval"]["low"], low);
        near(&pair["interval"]["high"], high);
        assert_eq!((&pair["method"], &pair["test"]), (&"welch".into(), &"Welch's t".into()));
    }
}

#[test]
fn what_few_cases_could_have_seen_is_by_t() {
    let project = Project::new();
    Stored::new("a").case("x", "default", "pppp").case("y", "default", "ffff").write(&project, 0);
    Stored::new("b").case("x", "default", "pppp").case("y", "default", "fffp").write(&project, 0);
    let pair = compared(&project, &[])["pairs"][0].clone();
    // The best t, 7, is not beyond its quantile of 12.7.
    assert_eq!(pair["could_be_significant"], false);
    assert!(pair["power"]["smallest_effect"].is_null(), "{pair}");
    let page =
        project.evals(&["compare", "a", "b"]).says("2 cases, 8 and 8 trials, no outcome could have been significant");
    page.says("no difference can be detected at 80 % power with so few cases");
    // With other numbers of trials, differences can be nearly the same: 3/4 and 2/3.
    Stored::new("a").case("x", "default", "ppp").case("y", "default", "ppf").write(&project, 0);
    Stored::new("b").case("x", "default", "pfff").case("y", "default", "ffff").write(&project, 0);
    let pair = compared(&project, &[])["pairs"][0].clone();
    assert_eq!((&pair["verdict"], &pair["could_be_significant"]), (&"regressed".into(), &true.into()), "{pair}");
}

#[test]
fn the_detectable_effect_of_two_to_four_cases_is_not_that_of_the_one_that_differs() {
    let project = Project::new();
    for (cases, effect) in [(3, None), (4, Some(0.945_742))] {
        of_cases("a", &[(cases, "pp")]).write(&project, 0);
        of_cases("b", &[(1, "pf"), (cases - 1, "pp")]).write(&project, 0);
        let pair = compared(&project, &[])["pairs"][0].clone();
        let found = pair["power"]["smallest_effect"].as_f64();
        let is_same = found.zip(effect).map(|(found, wanted)| (found - wanted).abs() < 1e-6);
        assert_eq!(is_same, effect.map(|_| true), "{pair}");
        assert_eq!(found.is_none(), effect.is_none(), "{pair}");
    }
    // If every case differs, the spread is the observed one.
    let arm = |passed: usize| format!("{}{}", "p".repeat(passed), "f".repeat(20 - passed));
    of_cases("a", &[(3, &arm(20))]).write(&project, 0);
    of_cases("b", &[(1, &arm(19)), (1, &arm(18)), (1, &arm(17))]).write(&project, 0);
    let pair = compared(&project, &[])["pairs"][0].clone();
    let apart = errors_apart_by_t(0.05, 0.8, 2.0);
    let found = pair["power"]["smallest_effect"].as_f64().unwrap();
    assert!((found - apart * pair["se"].as_f64().unwrap()).abs() < 1e-12, "{pair}");
}

#[test]
fn the_cases_and_trials_needed_do_not_come_from_a_spread_that_is_too_small() {
    let project = Project::new();
    let power = |old: &[(usize, &str)], new: &[(usize, &str)]| {
        of_cases("a", old).write(&project, 0);
        of_cases("b", new).write(&project, 0);
        compared(&project, &[])["pairs"][0]["power"].clone()
    };
    // Connor's formula with the observed share of cases that differ; the exact number if that share is no more than 5 %.
    for (cases, lost, needed) in [(10, 1, 312), (20, 1, 157), (20, 2, 312), (40, 1, 157), (40, 2, 157)] {
        let found = power(&[(cases, "p")], &[(lost, "f"), (cases - lost, "p")]);
        assert_eq!(found["cases_needed"], needed, "{cases} {lost} {found}");
    }
    let found = power(&[(100, "ppp")], &[(1, "fff"), (99, "ppp")]);
    assert_eq!(found["cases_needed"], 110, "{found}");
    assert!(found["trials_needed"].is_null(), "{found}");
    let says = "needs 110 cases (the effect of more trials cannot be estimated if so few cases differ)";
    assert!(found["text"].as_str().unwrap().contains(says), "{found}");
}

#[test]
fn a_difference_of_one_case_that_fishers_test_does_not_confirm_is_stated_once() {
    let project = Project::new();
    one_case(&project, (0, 3), (3, 3));
    let page = project.evals(&["compare", "a", "b"]).exits(3);
    let page = page.says("excludes 0, but with 3 and 3 trials Fisher's test cannot confirm a difference");
    let page = page.says("no difference can be detected at 80 % power with so few trials").out;
    for other in ["chance alone", "borderline", "no outcome could", "minimum detectable effect"] {
        assert!(!page.contains(other), "{page}");
    }
    // Of five against five, at most one may still pass, if Fisher's test is to confirm the loss.
    one_case(&project, (5, 5), (5, 5));
    let pair = compared(&project, &[])["pairs"][0].clone();
    assert!((pair["power"]["smallest_effect"].as_f64().unwrap() - 0.8314).abs() < 1e-3, "{pair}");
}

#[test]
fn the_detectable_effect_of_few_differing_cases_is_that_of_the_cases_it_takes() {
    let project = Project::new();
    // Without a difference, or with a few, the power is binomial: `beta.ppf(.8, x, n - x + 1)` of scipy, with the x cases of n
    // from which on the interval excludes 0. With many, it follows from the standard error.
    let smallest = |old: &[(usize, &str)], new: &[(usize, &str)]| {
        of_cases("a", old).write(&project, 0);
        of_cases("b", new).write(&project, 0);
        compared(&project, &[])["pairs"][0].clone()
    };
    for (cases, effect) in [(10, 0.580_865), (20, 0.313_300), (40, 0.162_328), (80, 0.097_030)] {
        let pair = smallest(&[(cases, "p")], &[(cases, "p")]);
        assert!((pair["power"]["smallest_effect"].as_f64().unwrap() - effect).abs() < 1e-6, "{pair}");
        assert_eq!(pair["power"]["cases_needed"], 157, "{pair}");
    }
    // One case of 60 loses one of two trials: the effect is of cases that lose a half.
    let pair = smallest(&[(60, "pp")], &[(1, "pf"), (59, "pp")]);
    assert!((pair["power"]["smallest_effect"].as_f64().unwrap() - 0.045).abs() < 1e-6, "{pair}");
    let page = project.evals(&["compare", "a", "b"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("1 of 60 cases differs, which is too few to show the spread"), "{page}");
    assert!(page.contains("this assumes that more cases differ by 50.0 pp"), "{page}");
    let pair = smallest(&[(20, "p"), (10, "f")], &[(10, "p"), (10, "f"), (5, "p"), (5, "f")]);
    let found = pair["power"]["smallest_effect"].as_f64().unwrap();
    assert!((found - errors_apart(0.05, 0.8) * pair["se"].as_f64().unwrap()).abs() < 1e-12, "{pair}");
    // Partial scores that hardly differ show nothing of the differences that are to be detected.
    of_cases("a", &[(20, "ff")]).write(&project, 0);
    let scored = |it: &mut Value| it["score"] = if it["case"] == "c00" { 0.01.into() } else { 0.0.into() };
    of_cases("b", &[(20, "ff")]).results(scored).write(&project, 0);
    let pair = compared(&project, &[])["pairs"][0].clone();
    assert!(pair["power"]["smallest_effect"].is_null() && pair["power"]["cases_needed"].is_null(), "{pair}");
    project.evals(&["compare", "a", "b"]).says("too few cases differ to compute a minimum detectable effect");
    // Neither do partial scores that are the same.
    for name in ["a", "b"] {
        of_cases(name, &[(20, "ff")]).results(|it| it["score"] = 0.5.into()).write(&project, 0);
    }
    let pair = compared(&project, &[])["pairs"][0].clone();
    assert!(pair["power"]["smallest_effect"].is_null() && pair["power"]["cases_needed"].is_null(), "{pair}");
}

#[test]
fn a_comparison_without_a_test_has_no_standard_error() {
    let project = Project::new();
    for (name, score) in [("a", 0.5), ("b", 0.6)] {
        of_cases(name, &[(1, "f")]).results(|it| it["score"] = score.into()).write(&project, 0);
    }
    let pair = compared(&project, &[])["pairs"][0].clone();
    assert!(pair["interval"].is_null() && pair["se"].is_null(), "{pair}");
    let page = project.evals(&["compare", "a", "b"]).exits(3).says("no test is possible").out;
    assert!(!page.contains("standard error"), "{page}");
}

#[test]
fn a_case_that_cost_nothing_on_one_side_counts_in_the_ratio_of_the_costs() {
    let project = Project::new();
    of_cases("a", &[(6, "pp")]).write(&project, 0);
    let free = |it: &mut Value| {
        if it["case"] != "c00" && it["case"] != "c01" {
            it["metrics"]["cost_usd"] = 0.into();
        }
    };
    of_cases("b", &[(6, "pp")]).results(free).write(&project, 0);
    let cost = compared(&project, &[])["pairs"][0]["cost"].clone();
    assert!((cost["of_totals"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{cost}");
    assert!(cost["ratio"].is_null() && cost["interval"].is_null(), "{cost}");
    assert_eq!((&cost["cases"], &cost["without_ratio"]), (&6.into(), &4.into()));
    let page = project.evals(&["compare", "a", "b"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "cost 0.33 (the ratio of the sums, because 4 cases are 0 on one side and have no ratio)";
    assert!(page.contains(says), "{page}");
    // If no case cost anything before, not even the sums have a ratio.
    of_cases("a", &[(6, "pp")]).results(|it| it["metrics"]["cost_usd"] = 0.into()).write(&project, 0);
    of_cases("b", &[(6, "pp")]).write(&project, 0);
    assert!(compared(&project, &[])["pairs"][0]["cost"].is_null());
    project.evals(&["compare", "a", "b"]).says("new over old: cost without a ratio (it is 0 on the old side)");
}

#[test]
fn differences_that_are_rounding_are_none_anywhere() {
    let project = Project::new();
    let scored = |name: &str, scores: [f64; 3]| {
        of_cases(name, &[(6, "fff")])
            .results(|it| it["score"] = scores[it["trial"].as_u64().unwrap() as usize - 1].into())
            .write(&project, 0);
    };
    scored("a", [0.1, 0.2, 0.3]);
    scored("b", [0.3, 0.2, 0.1]);
    let pair = compared(&project, &[])["pairs"][0].clone();
    assert_eq!(pair["counts"], json!({"wins": 0, "losses": 0, "ties": 6}));
    assert_eq!((&pair["sign_flip_p"], &pair["delta"]), (&1.0.into(), &0.0.into()));
    let page = project.evals(&["compare", "a", "b"]).exits(3).says("6 cases had the same result").out;
    assert!(!page.contains("+0.0 pp  "), "{page}");
}

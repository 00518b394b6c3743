//! Comparisons of very few cases and trials: what they say agrees with itself.

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
    assert_eq!(pair["could_be_significant"], false);
    // (12.706 + 1.376) standard errors of 12.5 points: more than there is.
    let smallest = pair["power"]["smallest_effect"].as_f64().unwrap();
    assert!((smallest - 14.082 * 0.125).abs() < 0.001, "{pair}");
    project.evals(&["compare", "a", "b"]).says("minimum detectable effect at 80 % power: above 100 pp");
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

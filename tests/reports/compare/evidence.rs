//! What gates rest on: too few completed trials, cases without a score, and the gate of a bare `--gate`.

use serde_json::{Value, json};

use super::stored::{Stored, of_cases};
use crate::project::Project;

fn gates(project: &Project, args: &[&str], code: i32) -> Value {
    let mut all = vec!["compare", "old", "new", "--format", "json"];
    all.extend(args);
    project.evals(&all).exits(code).json()
}

fn of_kind<'a>(found: &'a Value, kind: &str) -> Vec<&'a Value> {
    found["gate"]["gates"].as_array().unwrap().iter().filter(|gate| gate["kind"] == kind).collect()
}

/// A project with these runs, of cases that are neither critical nor of regression.
fn runs(old: &[(usize, &str)], new: &[(usize, &str)]) -> Project {
    let project = Project::new();
    of_cases("old", old).write(&project, 0);
    of_cases("new", new).write(&project, 0);
    project
}

#[test]
fn a_gate_does_not_pass_where_most_trials_crashed() {
    // 60 cases of 4 trials, of which one each was completed.
    let project = runs(&[(60, "pppp")], &[(60, "pccc")]);
    let found = gates(&project, &["--gate", "margin=0.05"], 3);
    assert_eq!(of_kind(&found, "margin")[0]["verdict"], "pass", "what was completed is no worse");
    let completed = of_kind(&found, "completed");
    let verdicts: Vec<&Value> = completed.iter().map(|gate| &gate["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "inconclusive"], "of the old one and of the new one");
    assert_eq!((&completed[1]["found"], &completed[1]["bound"]), (&json!(0.25), &json!(0.9)));
    let rests_on = &found["pairs"][0]["rests_on"];
    assert_eq!(rests_on["new"], json!({"planned": 240, "completed": 60}));
    assert_eq!((&rests_on["cases_of_old"], &rests_on["cases"]), (&json!(60), &json!(60)));
    let text = "completed 60 of 240 planned trials (25.0 %: 180 errored), 90.0 % required";
    project.evals(&["compare", "old", "new", "--gate", "margin=0.05"]).exits(3).says(text).says("based on 240 of 240");
    // A comparison without a gate says it, too.
    project.evals(&["compare", "old", "new"]).says("60 of 240 planned trials (25.0 %) of agent (new)");
    for gate in [&["--gate"][..], &["--fail-under", "0.5"], &["--max-cost", "1000"], &["--gate", "no-regressions"]] {
        gates(&project, gate, 3);
    }
    gates(&project, &["--gate", "margin=0.05", "--gate", "completed=0.25"], 0);
    gates(&project, &["--gate", "margin=0.05,completed=0.25"], 0);
    gates(&project, &["--gate", "margin=0.05", "--gate", "completed=0.26"], 3);
    // What crashed was not completed, whatever it counts as.
    gates(&project, &["--gate", "margin=0.05", "--errors", "fail"], 1);
    gates(&project, &["--gate", "margin=0.9", "--errors", "fail"], 3);
    // Nor does it pass where the old one's trials were lost.
    let project = runs(&[(60, "pccc")], &[(60, "pppp")]);
    gates(&project, &["--gate", "margin=0.05"], 3);
}

#[test]
fn ninety_of_a_hundred_are_enough_and_fewer_are_not() {
    for (new, code) in [(&[(10, "p"), (0, "c")][..], 0), (&[(9, "pppppppppp"), (1, "prrrrrrrrr")], 0)] {
        let project = runs(new, new);
        gates(&project, &["--gate", "--gate", "cases=0"], code);
    }
    for (letter, how) in [("u", "ungraded"), ("r", "errored"), ("c", "errored")] {
        let trials = format!("ppppppppp{letter}");
        let project = runs(&[(20, "pppppppppp")], &[(20, &trials)]);
        gates(&project, &["--gate"], 0);
        let trials = format!("pppppppp{letter}{letter}");
        of_cases("new", &[(1, &trials), (19, "ppppppppp")]).write(&project, 0);
        gates(&project, &["--gate"], 0);
        of_cases("new", &[(20, &trials)]).write(&project, 0);
        let found = gates(&project, &["--gate"], 3);
        let text = of_kind(&found, "completed")[1]["text"].as_str().unwrap();
        assert!(text.contains(&format!("40 {how}")), "{text}");
    }
}

#[test]
fn a_gate_does_not_pass_over_a_few_of_the_old_cases() {
    let project = runs(&[(60, "p")], &[(5, "p")]);
    for gate in [&["--gate"][..], &["--gate", "margin=0.5"], &["--fail-under", "0.5"], &["--max-cost", "1000"]] {
        let found = gates(&project, gate, 3);
        let cases = of_kind(&found, "cases")[0];
        assert_eq!((&cases["verdict"], &cases["bound"]), (&json!("inconclusive"), &json!(1.0)), "{gate:?}");
        assert!(cases["text"].as_str().unwrap().contains("5 of the 60 cases of the old side (8.3 %)"), "{cases}");
        assert!(cases["text"].as_str().unwrap().contains("c05 (only the old side has it)"), "{cases}");
    }
    gates(&project, &["--gate", "cases=0.08"], 0);
    gates(&project, &["--gate", "cases=0.09"], 3);
    // A case that only the new one has is no gap, and one that was edited is one: it has no comparable score.
    of_cases("new", &[(60, "p"), (1, "f")]).write(&project, 0);
    let found = gates(&project, &["--gate"], 0);
    let text = of_kind(&found, "cases")[0]["text"].as_str().unwrap();
    assert!(text.ends_with("; not compared, without results on the old side: c60"), "{text}");
    let edited = |it: &mut Value| {
        if it["id"] == "c07" {
            it["digest"] = "other".into();
        }
    };
    of_cases("new", &[(60, "p")]).cases(edited).write(&project, 0);
    gates(&project, &["--gate"], 3);
    gates(&project, &["--gate", "cases=0.95"], 0);
    // Cases that the old one skipped, or never had a score of, are not lost.
    let skips = |it: &mut Value| {
        if it["verdict"] == "ungraded" {
            it["verdict"] = "skipped".into();
        }
    };
    of_cases("old", &[(58, "p"), (2, "u")]).results(skips).write(&project, 0);
    of_cases("new", &[(60, "p")]).write(&project, 0);
    gates(&project, &["--gate"], 0);
    of_cases("old", &[(58, "p"), (2, "r")]).write(&project, 0);
    gates(&project, &["--gate"], 0);
    of_cases("new", &[(58, "p"), (2, "r")]).write(&project, 0);
    gates(&project, &["--gate"], 3);
}

#[test]
fn a_bare_gate_works_on_few_cases() {
    for (old, new, code, what) in [
        ("pp", "pp", 0, "the same"),
        ("pp", "ff", 1, "all lost"),
        ("pp", "pf", 0, "some still pass"),
        ("pf", "ff", 0, "not all passed before"),
        ("ff", "ff", 0, "never passed"),
        ("ff", "pp", 0, "better"),
        ("pp", "cc", 3, "errored throughout"),
        ("pp", "uu", 3, "ungraded throughout"),
        ("pp", "fc", 3, "the one that crashed may have passed"),
        ("pc", "ff", 1, "all that was judged passed before"),
        ("p", "f", 1, "one trial"),
    ] {
        // The case among four others, with enough trials that the share of completed ones decides nothing.
        let project = runs(&[(1, old), (4, "pppppppppp")], &[(1, new), (4, "pppppppppp")]);
        let found = gates(&project, &["--gate", "--gate", "completed=0"], code);
        let gate = of_kind(&found, "no-regressions");
        assert_eq!(gate.len(), 1, "{what}");
        let verdict = ["pass", "fail", "", "inconclusive"][code as usize];
        assert_eq!(gate[0]["verdict"], verdict, "{what}: {found}");
        assert_eq!(found["gate"]["verdict"], verdict, "{what}");
        gates(&project, &["--gate", "no-regressions", "--gate", "completed=0"], code);
        gates(&project, &["--gate=no-regressions,completed=0"], code);
    }
    let project = runs(&[(5, "pp")], &[(1, "ff"), (4, "pp")]);
    project
        .evals(&["compare", "old", "new", "--gate"])
        .exits(1)
        .says("passed all trials before and none now: c00 (2/2 before, 0/2 now)");
    // A case may have some passes left, or fail in part: the gate says what it checked, not that nothing was lost.
    for (old, new) in [("pppp", "pppf"), ("pf", "ff")] {
        let project = runs(&[(1, old), (4, "pp")], &[(1, new), (4, "pp")]);
        let text = "of 5 cases, no critical or regression case that passed before fails now, and none that passed all \
                    trials before passes none now";
        let found = gates(&project, &["--gate"], 0);
        assert_eq!(of_kind(&found, "no-regressions")[0]["text"], text);
    }
}

#[test]
fn cases_without_a_score_are_covered_if_fewer_cases_are_demanded() {
    let project = runs(&[(10, "pp")], &[(2, "cc"), (8, "pp")]);
    let found = gates(&project, &["--gate"], 3);
    let gate = of_kind(&found, "no-regressions")[0];
    assert_eq!(gate["verdict"], "inconclusive");
    assert!(gate["text"].as_str().unwrap().contains("leave it open whether that is so now: c00 (no trial"), "{gate}");
    let limits = ["--gate", "cases=0.8", "--gate", "completed=0.8"];
    let found = gates(&project, &limits, 0);
    let text = of_kind(&found, "no-regressions")[0]["text"].as_str().unwrap();
    let unchecked = "; not checked, because only 80.0 % of the cases need a score: c00 (no trial of the new side has a \
                     score), c01 (no trial of the new side has a score)";
    assert!(text.starts_with("of 8 cases, ") && text.ends_with(unchecked), "{text}");
    // The demand is not met, or another case fails.
    gates(&project, &["--gate", "cases=0.9", "--gate", "completed=0.8"], 3);
    of_cases("new", &[(2, "cc"), (1, "ff"), (7, "pp")]).write(&project, 0);
    gates(&project, &limits, 1);
    // A case that has some score is not covered: the trial that crashed may have passed.
    of_cases("new", &[(1, "cc"), (1, "fc"), (8, "pp")]).write(&project, 0);
    gates(&project, &limits, 3);
    // Whether a critical or regression case fails is what the user wants to know of it.
    for (key, value) in [("critical", json!(true)), ("kind", json!("regression"))] {
        let guarded = |it: &mut Value| {
            if it["id"] == "c00" {
                it[key] = value.clone();
            }
        };
        of_cases("old", &[(10, "pp")]).cases(guarded).write(&project, 0);
        of_cases("new", &[(2, "cc"), (8, "pp")]).cases(guarded).write(&project, 0);
        let found = gates(&project, &limits, 3);
        let gate = of_kind(&found, "no-regressions")[0];
        assert_eq!(gate["verdict"], "inconclusive", "{key}");
        let text = gate["text"].as_str().unwrap();
        assert!(text.contains("so now: c00 (") && text.contains("need a score: c01 ("), "{text}");
    }
    // Nothing that was compared shows nothing.
    of_cases("old", &[(4, "pp")]).write(&project, 0);
    of_cases("new", &[(4, "cc")]).write(&project, 0);
    gates(&project, &["--gate", "cases=0", "--gate", "completed=0"], 3);
}

#[test]
fn a_critical_or_regression_case_that_was_not_compared_is_not_covered() {
    let project = Project::new();
    let limits = ["--gate", "cases=0.5"];
    for (key, value) in [("critical", json!(true)), ("kind", json!("regression"))] {
        let guarded = |it: &mut Value| {
            if it["id"] == "c00" {
                it[key] = value.clone();
            }
        };
        let edited = |it: &mut Value| {
            guarded(it);
            if it["id"] == "c00" {
                it["digest"] = "other".into();
            }
        };
        let open = |why: &str| {
            let found = gates(&project, &limits, 3);
            let gate = of_kind(&found, "no-regressions")[0];
            let text = format!("critical or regression, passed before and not compared: c00 ({why})");
            assert_eq!((&gate["verdict"], &gate["text"]), (&json!("inconclusive"), &json!(text)), "{key}");
        };
        of_cases("old", &[(10, "pp")]).cases(guarded).write(&project, 0);
        of_cases("new", &[(1, "ff"), (9, "pp")]).cases(edited).write(&project, 0);
        open("the case, its graders or its files have changed");
        let mut part = Stored::new("new");
        for n in 1..10 {
            part = part.case(&format!("c{n:02}"), "default", "pp");
        }
        // In a run of a part of the suite, the gate of the cases counts what is missing, unless it is critical.
        part.write(&project, 0);
        if key == "critical" {
            open("only the old side has it");
        } else {
            let found = gates(&project, &limits, 0);
            let text = of_kind(&found, "no-regressions")[0]["text"].as_str().unwrap();
            let named = "; regression, passed before and not compared: c00 (only the old side has it)";
            assert!(text.starts_with("of 9 cases, ") && text.ends_with(named), "{text}");
            gates(&project, &["--gate"], 3);
        }
        // Another case that fails decides.
        of_cases("new", &[(1, "pp"), (1, "ff"), (8, "pp")]).cases(edited).write(&project, 0);
        gates(&project, &limits, 1);
    }
    // A regression case that failed before is no matter, and that of a model that is gone is one.
    let regression = |it: &mut Value| it["kind"] = "regression".into();
    of_cases("old", &[(1, "ff"), (9, "pp")]).cases(regression).write(&project, 0);
    let mut part = Stored::new("new");
    for n in 1..10 {
        part = part.case(&format!("c{n:02}"), "default", "pp");
    }
    part.cases(regression).write(&project, 0);
    gates(&project, &limits, 0);
    for (name, arms) in [("old", &["a", "b"][..]), ("new", &["b"])] {
        let run = arms.iter().fold(Stored::new(name), |run, arm| run.case("c0", arm, "pp").case("c1", arm, "pp"));
        run.cases(regression).write(&project, 0);
    }
    let found = gates(&project, &["--gate", "cases=0"], 3);
    let texts: Vec<&Value> = of_kind(&found, "no-regressions").iter().map(|gate| &gate["text"]).collect();
    assert_eq!(texts[1], "critical or regression, passed before and not compared: c0, c1");
}

#[test]
fn a_critical_or_regression_case_is_lost_where_it_fails_now() {
    for (key, value) in [("critical", json!(true)), ("kind", json!("regression"))] {
        for (old, new, code) in [
            ("pp", "pf", 1),
            ("pp", "pp", 0),
            ("pf", "ff", 0),
            ("pp", "pc", 3),
            ("pp", "pu", 3),
            ("pp", "fc", 1),
            ("pp", "cc", 3),
        ] {
            let project = Project::new();
            let guarded = |it: &mut Value| {
                if it["id"] == "c00" {
                    it[key] = value.clone();
                }
            };
            of_cases("old", &[(1, old), (4, "pppppppppp")]).cases(guarded).write(&project, 0);
            of_cases("new", &[(1, new), (4, "pppppppppp")]).cases(guarded).write(&project, 0);
            gates(&project, &["--gate"], code);
        }
    }
}

#[test]
fn trials_that_were_never_run_are_not_completed() {
    let project = Project::new();
    of_cases("old", &[(8, "pppp")]).write(&project, 0);
    of_cases("new", &[(8, "pppp")]).write(&project, 11);
    // Figures are not compared with an unfinished run; a gate says how much it rests on.
    project.evals(&["compare", "old", "new"]).exits(2).says("run new is not finished");
    let found = gates(&project, &["--gate"], 3);
    let completed = of_kind(&found, "completed")[1];
    assert!(
        completed["text"].as_str().unwrap().contains("21 of 32 planned trials (65.6 %: 11 never run)"),
        "{completed}"
    );
    assert_eq!(of_kind(&found, "no-regressions")[0]["verdict"], "inconclusive", "the last cases may be lost");
    assert_eq!(found["pairs"][0]["doubts"][0]["about"], "unpaired");
    project.evals(&["compare", "old", "new", "--gate"]).exits(3).says("11 of 32 trials never run");
    let found = gates(&project, &["--gate", "margin=0.9", "--gate", "completed=0.6", "--gate", "cases=0.7"], 0);
    assert_eq!(found["arms"][1]["not_run"], 11);
    of_cases("new", &[(1, "ffff"), (7, "pppp")]).write(&project, 4);
    gates(&project, &["--gate"], 1);
    project.evals(&["baseline", "set", "new"]).exits(2).says("not finished");
}

#[test]
fn every_arm_has_to_be_completed() {
    let project = Project::new();
    let mut run = Stored::new("many");
    for n in 0..20 {
        let id = format!("c{n:02}");
        run = run.case(&id, "a", "pppp").case(&id, "b", "pppp").case(&id, "c", if n < 15 { "prrr" } else { "pppp" });
    }
    run.write(&project, 0);
    let found = project.evals(&["compare", "many", "--gate", "--format", "json"]).exits(3).json();
    let completed: Vec<(&Value, &Value)> =
        of_kind(&found, "completed").iter().map(|gate| (&gate["arm"], &gate["verdict"])).collect();
    let expected = [("agent / a", "pass"), ("agent / b", "pass"), ("agent / c", "inconclusive")];
    assert_eq!(completed.len(), 3);
    for ((arm, verdict), wanted) in completed.into_iter().zip(expected) {
        assert_eq!((arm.as_str().unwrap(), verdict.as_str().unwrap()), wanted);
    }
    assert_eq!(of_kind(&found, "no-regressions").len(), 2, "one for each pair");
}

#[test]
fn a_baseline_knows_what_was_planned() {
    let project = Project::new();
    project.write("cases/suite.yaml", "tags: [all]\n");
    of_cases("first", &[(10, "pppp")]).write(&project, 0);
    of_cases("torn", &[(10, "pccc")]).write(&project, 0);
    project.evals(&["baseline", "set", "torn"]).exits(0);
    let found = project.evals(&["compare", "first", "--gate", "--format", "json"]).exits(3).json();
    assert_eq!(found["pairs"][0]["rests_on"]["old"], json!({"planned": 40, "completed": 10}));
    assert_eq!(of_kind(&found, "completed")[0]["verdict"], "inconclusive");
    project.evals(&["baseline", "set", "first"]).exits(0);
    project.evals(&["compare", "torn", "--gate"]).exits(3).says("completed 10 of 40 planned trials");
    of_cases("good", &[(10, "pppp")]).write(&project, 0);
    project.evals(&["compare", "good", "--gate"]).exits(0).says("of 10 cases, no critical or regression case");
    of_cases("part", &[(9, "pppp")]).write(&project, 0);
    project.evals(&["compare", "part", "--gate"]).exits(3).says("9 of the 10 cases of the old side (90.0 %)");
}

#[test]
fn a_run_s_own_score_gate_wants_its_trials_completed_too() {
    let project = Project::new();
    let good = "graders: [{stop: {reason: [end_turn]}}]";
    for n in 0..4 {
        project.case(&format!("c{n}"), good, "steps: [{say: done}]\n");
    }
    project.evals(&["run", "--fail-under", "0.8"]).exits(0);
    // Ungraded in half of them: no judge is named.
    let asks = "trials: 2\ngraders: [{stop: {reason: [end_turn]}}, {rubric: {criteria: [{id: a, ask: Is it?}]}}]";
    project.case("open", asks, "steps: [{say: done}]\n");
    let ran = project.evals(&["run", "--fail-under", "0.8"]).exits(3);
    ran.says("completed 4 of 6 planned trials (66.7 %: 2 ungraded), 90.0 % required");
    // Every report of the run counts alike, and says how many trials no score includes.
    let note = "2 of 6 trials have no score: 2 ungraded";
    for (format, share) in
        [("table", "4/6 (66.7 %)"), ("markdown", "4/6 (66.7 %)"), ("benchmark", "4/6 (66.7 %)"), ("json", "0.6666")]
    {
        let text = project.evals(&["report", "latest", "--format", format, "-o", "-"]).exits(0).out;
        assert!(text.contains(note) && text.contains(share), "{format}: {text}");
    }
}

#[test]
fn wrong_gates_are_refused_with_the_way_to_write_them() {
    let project = runs(&[(5, "pp")], &[(5, "pp")]);
    let refused = |args: &[&str]| {
        let mut all = vec!["compare"];
        all.extend(args);
        project.evals(&all).exits(2)
    };
    refused(&["old", "new", "--gate", "completed=90"]).says("a share is between 0 and 1");
    refused(&["old", "new", "--gate", "speed=2"]).says("`speed=2` is not a gate").says("no-regressions");
    refused(&["--gate", "old", "new"]).says("--gate without a value goes after the runs");
    refused(&["old", "new", "--gate", "margin=0.1", "--gate", "margin=0.2"]).says("--gate margin is given twice");
}

#[test]
fn a_gate_does_not_pass_without_an_arm_of_the_old_side() {
    let project = Project::new();
    let run = |name: &str, arms: &[&str], critical: bool| {
        let mut run = Stored::new(name);
        for n in 0..8 {
            for arm in arms {
                run = run.case(&format!("c{n}"), arm, "pp");
            }
        }
        run.cases(|it| it["critical"] = critical.into()).write(&project, 0);
    };
    run("old", &["a", "b"], false);
    run("new", &["b"], false);
    for gate in [&["--gate"][..], &["--fail-under", "0.5"], &["--max-cost", "1000"]] {
        let found = gates(&project, gate, 3);
        let cases = of_kind(&found, "cases");
        assert_eq!((cases.len(), &found["gate"]["verdict"]), (2, &json!("inconclusive")), "{gate:?}");
        let (arm, verdict) = (&cases[1]["arm"], &cases[1]["verdict"]);
        assert_eq!((arm, verdict), (&json!("agent / a (old)"), &json!("inconclusive")), "{gate:?}");
        let text = "only the old side has it, so 0 of its 8 cases have a score in the new side, 100.0 % required";
        assert_eq!(cases[1]["text"], text);
    }
    gates(&project, &["--gate", "cases=0.5"], 3);
    gates(&project, &["--gate", "cases=0"], 0);
    // Whether a critical case is lost is what the user wants to know of it.
    run("old", &["a", "b"], true);
    run("new", &["b"], true);
    let found = gates(&project, &["--gate", "cases=0"], 3);
    let text = of_kind(&found, "critical")[0]["text"].as_str().unwrap();
    assert!(text.starts_with("critical, and not compared: c0, c1"), "{text}");
}

#[test]
fn an_arm_of_a_run_that_skipped_everything_decides_nothing() {
    let project = Project::new();
    let run = |third: &str| {
        let mut run = Stored::new("x");
        for n in 0..8 {
            run = run.case(&format!("c{n}"), "a", "pp").case(&format!("c{n}"), "b", "pp");
            run = run.case(&format!("c{n}"), "c", third);
        }
        run.results(skips).write(&project, 0);
    };
    let compare = |args: &[&str], code| {
        let all = [&["compare", "x", "--margin", "0.9", "--format", "json"][..], args].concat();
        project.evals(&all).exits(code).json()
    };
    for (third, code) in [("u", 0), ("r", 3)] {
        run(third);
        let found = compare(&[], code);
        assert_eq!(found["not_compared"][0]["new"], "agent / c", "{third}");
        compare(&["--gate"], code);
    }
    // With nothing to compare it with, an arm stays open.
    run("u");
    compare(&["--baseline", "c"], 3);
}

/// Makes the trials that have no verdict skipped ones.
fn skips(it: &mut Value) {
    if it["verdict"] == "ungraded" {
        it["verdict"] = "skipped".into();
    }
}

#[test]
fn an_arm_that_was_skipped_on_both_sides_decides_nothing() {
    let project = Project::new();
    let run = |name: &str, of_a: &str| {
        let mut run = Stored::new(name);
        for n in 0..8 {
            run = run.case(&format!("c{n}"), "a", of_a).case(&format!("c{n}"), "b", "pp");
        }
        run.results(skips).write(&project, 0);
    };
    run("old", "u");
    run("new", "u");
    for gate in [&["--gate"][..], &["--fail-under", "0.5"], &["--max-cost", "1000"]] {
        let found = gates(&project, gate, 0);
        assert_eq!(found["not_compared"][0]["new"], "agent / a (new)", "{gate:?}");
    }
    let says = "agent / a (new) vs agent / a (old): not compared: neither side has a case that was not skipped";
    project.evals(&["compare", "old", "new", "--margin", "0.9"]).exits(0).says(says);
    // What is skipped on one side only is a gap.
    run("old", "pp");
    gates(&project, &["--gate"], 3);
    project.evals(&["compare", "old", "new", "--margin", "0.9"]).exits(3);
}

#[test]
fn where_everything_was_skipped_or_is_in_quarantine_the_comparison_is_open() {
    let project = Project::new();
    for name in ["old", "new"] {
        of_cases(name, &[(2, "u")]).results(skips).write(&project, 0);
    }
    let says = "not compared: neither side has a case that was not skipped";
    project.evals(&["compare", "old", "new"]).exits(3).says(says);
    project.evals(&["compare", "old", "new", "--gate"]).exits(3).says("gate: inconclusive").says(says);
    Stored::new("other").case("x", "default", "u").results(skips).write(&project, 0);
    project.evals(&["compare", "old", "other"]).exits(2).says("have no case in common");
    for name in ["old", "new"] {
        let quarantine = json!({"until": "2999-01-01", "why": "w"});
        of_cases(name, &[(2, "p")]).cases(|it| it["quarantine"] = quarantine.clone()).write(&project, 0);
    }
    let says = "not compared, none of 2 cases: it is in quarantine until 2999-01-01: w";
    project.evals(&["compare", "old", "new"]).exits(3).says(says);
    project.evals(&["compare", "old", "new", "--gate"]).exits(3).says("gate: inconclusive");
}

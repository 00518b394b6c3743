//! Gates: margin, score, cost, critical cases; each with the exit code that a CI job goes by.

use super::stored::of_cases;
use crate::project::Project;

fn gate(project: &Project, args: &[&str], code: i32) -> serde_json::Value {
    let mut all = vec!["compare", "old", "new", "--format", "json"];
    all.extend(args);
    project.evals(&all).exits(code).json()["gate"].clone()
}

#[test]
fn too_few_cases_without_a_loss_exclude_nothing_and_enough_do() {
    for (cases, verdict, code) in [(20, "inconclusive", 3), (58, "inconclusive", 3), (59, "pass", 0)] {
        let project = Project::new();
        of_cases("old", &[(cases, "pp")]).write(&project, 0);
        of_cases("new", &[(cases, "pp")]).write(&project, 0);
        let gates = gate(&project, &["--gate", "margin=0.05"], code);
        assert_eq!(gates["verdict"], verdict, "{cases}");
        assert_eq!((&gates["gates"][0]["kind"], &gates["gates"][0]["bound"]), (&"margin".into(), &0.05.into()));
    }
    let project = Project::new();
    of_cases("old", &[(20, "p")]).write(&project, 0);
    of_cases("new", &[(20, "p")]).write(&project, 0);
    let ran = project.evals(&["compare", "old", "new", "--gate", "margin=0.05"]).exits(3);
    ran.says("no case differs, but there are too few cases to exclude a loss").says("59 cases would be enough");
}

#[test]
fn the_gate_alone_sets_the_exit_code() {
    let project = Project::new();
    of_cases("old", &[(200, "pp")]).write(&project, 0);
    of_cases("new", &[(191, "pp"), (9, "ff")]).write(&project, 0);
    // Worse, and shown to be so; but not by more than is allowed.
    project.evals(&["compare", "old", "new"]).exits(1).says("regressed");
    let passed = gate(&project, &["--gate", "margin=0.1"], 0);
    assert!(passed["gates"][0]["p"].as_f64().unwrap() < 0.05, "{passed}");
    assert_eq!(gate(&project, &["--gate", "margin=0.01"], 1)["verdict"], "fail");
    assert_eq!(gate(&project, &["--gate", "margin=0.05"], 3)["verdict"], "inconclusive");
}

#[test]
fn a_critical_case_that_is_lost_fails_the_gate_by_itself() {
    let project = Project::new();
    let critical = |it: &mut serde_json::Value| {
        if it["id"] == "c00" {
            it["critical"] = true.into();
        }
    };
    of_cases("old", &[(100, "pp")]).cases(critical).write(&project, 0);
    of_cases("new", &[(1, "ff"), (99, "pp")]).cases(critical).write(&project, 0);
    let gates = gate(&project, &["--gate", "margin=0.1"], 1);
    assert_eq!(gates["gates"][0]["verdict"], "pass");
    assert_eq!((&gates["gates"][1]["kind"], &gates["gates"][1]["verdict"]), (&"critical".into(), &"fail".into()));
    // It counts beside any gate, and is lost where it fails as `evals run` has it: both of its trials have to pass.
    assert_eq!(gate(&project, &["--fail-under", "0.5"], 1)["gates"][0]["kind"], "critical");
    assert_eq!(gate(&project, &["--max-cost", "1000"], 1)["verdict"], "fail");
    of_cases("new", &[(1, "fp"), (99, "pp")]).cases(critical).write(&project, 0);
    assert_eq!(gate(&project, &["--gate", "margin=0.1"], 1)["gates"][1]["text"], "critical and lost: c00");
    let any = |it: &mut serde_json::Value| {
        critical(it);
        it["pass"] = "any".into();
    };
    of_cases("old", &[(100, "pp")]).cases(any).write(&project, 0);
    of_cases("new", &[(1, "fp"), (99, "pp")]).cases(any).write(&project, 0);
    assert_eq!(gate(&project, &["--gate", "margin=0.1"], 0)["gates"][1]["verdict"], "pass");
    // One that fails now as it did before is not lost; one whose errors keep it open may be.
    of_cases("old", &[(1, "fp"), (99, "pp")]).cases(critical).write(&project, 0);
    of_cases("new", &[(1, "fp"), (99, "pp")]).cases(critical).write(&project, 0);
    assert_eq!(gate(&project, &["--fail-under", "0.5"], 0)["gates"][0]["verdict"], "pass");
    of_cases("old", &[(100, "pp")]).cases(critical).write(&project, 0);
    of_cases("new", &[(1, "pr"), (99, "pp")]).cases(critical).write(&project, 0);
    assert_eq!(gate(&project, &["--gate", "margin=0.1"], 3)["gates"][1]["verdict"], "inconclusive");
}

#[test]
fn cases_in_which_every_trial_was_errored_are_no_pass() {
    let project = Project::new();
    let critical = |it: &mut serde_json::Value| {
        if it["id"] == "c00" {
            it["critical"] = true.into();
        }
    };
    of_cases("old", &[(100, "pp")]).write(&project, 0);
    of_cases("new", &[(10, "cc"), (90, "pp")]).write(&project, 0);
    let found = project.evals(&["compare", "old", "new", "--format", "json"]).exits(0).json();
    assert!((found["pairs"][0]["delta_at_worst"].as_f64().unwrap() + 0.1).abs() < 1e-12, "{found}");
    assert_eq!(gate(&project, &["--gate", "margin=0.05"], 3)["verdict"], "inconclusive");
    let ran = project.evals(&["compare", "old", "new", "--gate", "margin=0.05"]).exits(3);
    ran.says("because 10 cases have no score in the new side");
    // A critical one among them was not compared, which is said whatever the gate is.
    of_cases("old", &[(100, "pp")]).cases(critical).write(&project, 0);
    of_cases("new", &[(1, "cc"), (99, "pp")]).cases(critical).write(&project, 0);
    let gates = gate(&project, &["--max-cost", "1000"], 3);
    let text = "critical, and not compared: c00 (no trial of the new side has a score)";
    assert_eq!((&gates["gates"][0]["verdict"], &gates["gates"][0]["text"]), (&"inconclusive".into(), &text.into()));
}

#[test]
fn a_score_and_a_cost_can_be_demanded() {
    let project = Project::new();
    of_cases("old", &[(10, "p")]).write(&project, 0);
    of_cases("new", &[(8, "p"), (2, "f")]).write(&project, 0);
    assert_eq!(gate(&project, &["--fail-under", "0.8"], 0)["gates"][0]["found"], 0.8);
    assert_eq!(gate(&project, &["--fail-under", "0.81"], 1)["verdict"], "fail");
    assert_eq!(gate(&project, &["--max-cost", "5"], 0)["verdict"], "pass");
    assert_eq!(gate(&project, &["--max-cost", "4.99"], 1)["gates"][0]["kind"], "max-cost");
    // What a trial cost is not known: it may have been anything.
    let untold = |it: &mut serde_json::Value| drop(it["metrics"].as_object_mut().unwrap().remove("cost_usd"));
    of_cases("new", &[(8, "p"), (2, "f")]).results(untold).write(&project, 0);
    assert_eq!(gate(&project, &["--max-cost", "5"], 3)["verdict"], "inconclusive");
    // Nor is the score of a suite with a case that has none.
    of_cases("new", &[(9, "p"), (1, "u")]).write(&project, 0);
    assert_eq!(gate(&project, &["--fail-under", "0.8"], 3)["verdict"], "inconclusive");
}

#[test]
fn a_low_score_fails_only_if_trials_without_a_score_could_not_raise_it() {
    let project = Project::new();
    of_cases("old", &[(10, "p")]).write(&project, 0);
    // 50 % of the two judged cases, and 90 % if the others had passed.
    of_cases("new", &[(1, "p"), (1, "f"), (8, "r")]).write(&project, 0);
    let score = |args: &[&str], code: i32| gate(&project, args, code)["gates"][0].clone();
    let open = score(&["--fail-under", "0.6"], 3);
    let text = "scores 50.0 %, below 60.0 %; trials without a score could raise it to 90.0 %";
    assert_eq!((&open["kind"], &open["verdict"]), (&"fail-under".into(), &"inconclusive".into()));
    assert_eq!(open["text"], text);
    assert_eq!(score(&["--fail-under", "0.95"], 1)["verdict"], "fail");
    // The same holds for trials of a case that has a score.
    of_cases("new", &[(10, "fu")]).write(&project, 0);
    assert_eq!(score(&["--fail-under", "0.5"], 3)["verdict"], "inconclusive");
    assert_eq!(score(&["--fail-under", "0.51"], 1)["verdict"], "fail");
    // A crash that counts as a failure is known.
    of_cases("new", &[(1, "p"), (9, "c")]).write(&project, 0);
    assert_eq!(score(&["--fail-under", "0.5"], 3)["verdict"], "inconclusive");
    assert_eq!(score(&["--fail-under", "0.5", "--errors", "fail"], 1)["verdict"], "fail");
}

#[test]
fn a_run_has_the_gate_of_its_score() {
    let project = Project::new();
    let steps = "steps: [{say: done}]\n";
    for n in 0..4 {
        project.case(&format!("c{n}"), "", steps);
    }
    project.case("fails", "graders: [{stop: {reason: [refusal]}}]", steps);
    project.evals(&["run"]).exits(1);
    project.evals(&["run", "--fail-under", "0.8"]).exits(0).says("gate pass: demo scores 80.0 % of at least 80.0 %");
    project.evals(&["run", "--fail-under", "0.9"]).exits(1).says("gate fail: demo scores 80.0 %, below 90.0 %");
    project.case("fails", "critical: true\ngraders: [{stop: {reason: [refusal]}}]", steps);
    project.evals(&["run", "--fail-under", "0.8"]).exits(1).says("gate fail: fails (demo) is critical and fails");
}

#[test]
fn a_gate_does_not_pass_what_was_skipped_and_tells_over_what_it_passes() {
    let project = Project::new();
    of_cases("old", &[(80, "p")]).write(&project, 0);
    of_cases("part", &[(60, "p")]).write(&project, 0);
    let gate = ["--gate", "margin=0.05"];
    let ran = project.evals(&["compare", "old", "part", gate[0], gate[1]]).exits(3);
    ran.says("not worse by more than the margin").says("over 60 of the 80 cases of the old side");
    let ran = project.evals(&["compare", "old", "part", gate[0], gate[1], "--gate", "cases=0.75"]).exits(0);
    ran.says("has a comparable score in 60 of the 80 cases of the old side (75.0 %), 75.0 % required");
    let skips = |it: &mut serde_json::Value| {
        if it["verdict"] == "ungraded" {
            it["verdict"] = "skipped".into();
        }
    };
    of_cases("skips", &[(60, "p"), (20, "u")]).results(skips).write(&project, 0);
    let ran = project.evals(&["compare", "old", "skips", gate[0], gate[1]]).exits(3);
    ran.says("20 cases are left out: the new side skipped it").says("20 cases have no score in the new side");
}

#[test]
fn the_margin_of_a_gate_and_that_of_equivalence_are_two() {
    let project = Project::new();
    of_cases("old", &[(80, "p")]).write(&project, 0);
    of_cases("new", &[(80, "p")]).write(&project, 0);
    let margins = |args: &[&str]| {
        let mut all = vec!["compare", "old", "new", "--format", "json"];
        all.extend(args);
        let found = project.evals(&all).exits(0).json();
        (found["margin"].as_f64().unwrap(), found["gate"]["gates"][0]["bound"].as_f64().unwrap())
    };
    assert_eq!(margins(&["--gate", "margin=0.1"]), (0.1, 0.1));
    assert_eq!(margins(&["--gate", "margin=0.1", "--margin", "0.2"]), (0.2, 0.1));
}

#[test]
fn what_is_known_of_a_cost_counts_though_not_all_of_it_is() {
    let project = Project::new();
    of_cases("old", &[(8, "p")]).write(&project, 0);
    of_cases("new", &[(8, "p")])
        .results(|it| {
            if it["case"] == "c00" {
                it["metrics"].as_object_mut().unwrap().remove("cost_usd");
                it["earlier_attempts"] = serde_json::json!({"count": 1, "cost_usd": 100.0});
            }
        })
        .write(&project, 0);
    let ran = project.evals(&["compare", "old", "new", "--max-cost", "50"]).exits(1);
    // 100 and seven times 0.5, over eight trials.
    ran.says("costs $103.5").says(">=$12.94");
}

#[test]
fn an_unknown_cost_of_a_case_in_quarantine_leaves_the_gate_of_the_cost_open() {
    let project = Project::new();
    let aside = |it: &mut serde_json::Value| {
        if it["id"] == "c00" {
            it["quarantine"] = serde_json::json!({"until": "2999-01-01", "why": "w"});
        }
    };
    let untold = |it: &mut serde_json::Value| {
        if it["case"] == "c00" {
            it["metrics"].as_object_mut().unwrap().remove("cost_usd");
        }
    };
    of_cases("old", &[(4, "p")]).write(&project, 0);
    of_cases("new", &[(4, "p")]).cases(aside).results(untold).write(&project, 0);
    let cost = |most: &str, code: i32| gate(&project, &["--max-cost", most], code)["gates"][0].clone();
    let open = cost("5", 3);
    assert_eq!((&open["kind"], &open["verdict"]), (&"max-cost".into(), &"inconclusive".into()));
    assert_eq!(open["text"], "costs $1.5 of $5, but the cost of 1 trial in quarantine is unknown: c00");
    // The other cases alone cost too much.
    assert_eq!(cost("1", 1)["text"], "costs $1.5, and $1 is allowed");
    of_cases("new", &[(4, "p")]).cases(aside).write(&project, 0);
    assert_eq!(cost("5", 0)["text"], "costs $1.5 of $5; without cases in quarantine: c00");
    // The other gates name the case, too.
    let gates = gate(&project, &["--gate", "no-regressions,margin=0.9", "--fail-under", "0.5"], 0);
    let gates = gates["gates"].as_array().unwrap();
    assert_eq!(gates.len(), 6, "{gates:?}");
    for gate in gates {
        let text = gate["text"].as_str().unwrap();
        assert_eq!(text.matches("; without cases in quarantine: c00").count(), 1, "{gate}");
    }
}

#[test]
fn a_case_that_had_no_score_before_is_no_gap_and_is_not_said_to_be_compared() {
    let project = Project::new();
    of_cases("old", &[(1, "u"), (3, "p")]).write(&project, 0);
    of_cases("new", &[(4, "p")]).write(&project, 0);
    let gates = gate(&project, &["--gate", "completed=0.5"], 0);
    let cases = gates["gates"].as_array().unwrap().iter().find(|gate| gate["kind"] == "cases").unwrap().clone();
    let says = "has a comparable score in 3 of the 4 cases of the old side, and 1 case had no score before, which is \
                no gap: c00 (100.0 %), 100.0 % required";
    assert_eq!((&cases["text"], &cases["found"]), (&says.into(), &1.0.into()));
}

#[test]
fn the_gates_of_the_margin_and_of_the_cases_count_the_same_cases_of_the_old_side() {
    let project = Project::new();
    let skips = |it: &mut serde_json::Value| {
        if it["verdict"] == "ungraded" {
            it["verdict"] = "skipped".into();
        }
    };
    of_cases("old", &[(60, "p"), (20, "u")]).results(skips).write(&project, 0);
    of_cases("new", &[(80, "p")]).write(&project, 0);
    let gates = gate(&project, &["--gate", "margin=0.05"], 0);
    let texts: Vec<&str> =
        gates["gates"].as_array().unwrap().iter().map(|gate| gate["text"].as_str().unwrap()).collect();
    assert!(texts[0].starts_with("not worse by more than the margin: "), "{texts:?}");
    assert!(!texts[0].contains("over 60"), "all 60 cases of the old side are compared: {texts:?}");
    assert!(texts.iter().any(|text| text.contains("60 of the 60 cases of the old side")), "{texts:?}");
}

#[test]
fn a_trial_that_was_never_run_is_not_completed_in_a_comparison_and_leaves_the_gate_of_its_run_open() {
    let project = Project::new();
    of_cases("old", &[(10, "pp")]).write(&project, 0);
    of_cases("new", &[(10, "pp")]).with("options", serde_json::json!({"fail_under": 0.8})).write(&project, 1);
    // 19 of 20 planned trials are more than the 90 % that a comparison requires.
    let gates = gate(&project, &["--fail-under", "0.8"], 0);
    assert_eq!((&gates["gates"][0]["kind"], &gates["gates"][0]["verdict"]), (&"fail-under".into(), &"pass".into()));
    // The run itself is not finished.
    let report = project.evals(&["report", "new", "--format", "json"]).exits(0).json();
    assert_eq!((&report["exit_code"], &report["gates"][0]["verdict"]), (&3.into(), &"inconclusive".into()));
    let text = "scores 100.0 % over the trials with a score, but some cases or trials have none";
    assert_eq!(report["gates"][0]["text"], text);
}

#[test]
fn a_loss_against_agents_that_could_read_their_case_is_open_unless_another_case_is_lost() {
    let project = Project::new();
    let warning = serde_json::json!({"code": "case_in_workspace", "message": "m", "files": ["c00.yaml"], "count": 1});
    let read = |it: &mut serde_json::Value| {
        if it["case"] == "c00" {
            it["warnings"] = serde_json::json!([warning]);
        }
    };
    let critical = |it: &mut serde_json::Value| it["critical"] = true.into();
    of_cases("old", &[(1, "ppppp")]).cases(critical).results(read).write(&project, 0);
    of_cases("new", &[(1, "fffff")]).cases(critical).write(&project, 0);
    let compared = project.evals(&["compare", "old", "new"]).exits(3).says("unknown whether it is worse");
    let compared = compared.says("because agents of agent (old) could read files of their own case: c00");
    assert!(!compared.out.contains("lost:"), "{}", compared.out);
    for asked in [["--gate", "no-regressions"], ["--gate", "margin=0.05"], ["--max-cost", "1000"]] {
        let gates = gate(&project, &asked, 3);
        let text = gates["gates"][0]["text"].as_str().unwrap();
        let says = "inconclusive, because agents of agent (old) could read files of their own case: c00";
        assert!(text.contains(says), "{text}");
    }
    gate(&project, &["--fail-under", "0.5"], 1);
    of_cases("old", &[(2, "ppppp")]).results(read).write(&project, 0);
    of_cases("new", &[(2, "fffff")]).write(&project, 0);
    let gates = gate(&project, &["--gate"], 1);
    assert!(gates["gates"][0]["text"].as_str().unwrap().contains("c01 (5/5 before, 0/5 now)"), "{gates}");
}

//! `evals compare` through the door: verdicts, the page, JSON, the models of one run, real agents.

use serde_json::{Value, json};

use super::stored::{Stored, of_cases};
use crate::project::Project;

fn json(project: &Project, args: &[&str], code: i32) -> Value {
    let mut all = vec!["compare"];
    all.extend(args);
    all.extend(["--format", "json"]);
    project.evals(&all).exits(code).json()
}

#[test]
fn the_verdict_follows_the_interval_and_sets_the_exit_code() {
    let project = Project::new();
    of_cases("good", &[(20, "p")]).write(&project, 0);
    of_cases("bad", &[(10, "p"), (10, "f")]).write(&project, 0);
    let found = json(&project, &["good", "bad"], 1);
    let pair = &found["pairs"][0];
    assert_eq!((&found["verdict"], &pair["verdict"]), (&"regressed".into(), &"regressed".into()));
    assert_eq!(pair["delta"], -0.5);
    // Bonett and Price's interval, and its own test: McNemar's mid-p of 10 to 0.
    assert_eq!(pair["method"], "bonett-price");
    assert!((pair["p"].as_f64().unwrap() - 0.000_976_562_5).abs() < 1e-12, "{pair}");
    assert!((pair["sign_flip_p"].as_f64().unwrap() - 0.001_953_125).abs() < 1e-12);
    assert_eq!(pair["counts"], serde_json::json!({"wins": 0, "losses": 10, "ties": 10}));
    assert_eq!(pair["cases"][0]["flags"][0], "regressed");
    assert_eq!(json(&project, &["bad", "good"], 0)["verdict"], "improved");
    let same = of_cases("same", &[(20, "p")]);
    same.write(&project, 0);
    let unclear = json(&project, &["good", "same"], 3);
    assert_eq!(unclear["verdict"], "inconclusive");
    // Twenty cases are enough to see a loss of five.
    assert_eq!(unclear["pairs"][0]["could_be_significant"], true);
    project
        .evals(&["compare", "good", "same"])
        .exits(3)
        .says("with no differing case, no outcome could have been significant");
    for name in ["three", "more"] {
        of_cases(name, &[(3, "p")]).write(&project, 0);
    }
    assert_eq!(json(&project, &["three", "more"], 3)["pairs"][0]["could_be_significant"], false);
    let page = project.evals(&["compare", "three", "more"]).exits(3);
    let page = page.says("with only 3 cases, 3 and 3 trials, no outcome could have been significant");
    page.says("no difference can be detected at 80 % power with so few cases");
}

#[test]
fn where_interval_and_test_do_not_say_the_same_the_page_says_so() {
    let project = Project::new();
    of_cases("bad", &[(6, "f")]).write(&project, 0);
    // Four wins of six: Bonett and Price's interval begins at 1 point, and the mid-p is 0.0625.
    of_cases("good", &[(4, "p"), (2, "f")]).write(&project, 0);
    let says = "the interval shows a difference, but its test does not: with 4 cases that differ";
    project.evals(&["compare", "bad", "good"]).exits(0).says("improved").says("p = 0.062").says(says);
    of_cases("best", &[(6, "p")]).write(&project, 0);
    assert!(!project.evals(&["compare", "bad", "best"]).exits(0).out.contains("borderline"));
}

#[test]
fn times_that_begin_at_different_moments_are_not_compared() {
    let project = Project::new();
    of_cases("within", &[(20, "p")]).write(&project, 0);
    of_cases("too", &[(20, "p")]).results(|result| result["metrics"]["duration_ms"] = 3000.into()).write(&project, 0);
    of_cases("apart", &[(20, "p")])
        .results(|result| {
            result["metrics"]["start_ms"] = 900.into();
            result["metrics"]["duration_ms"] = 100.into();
        })
        .write(&project, 0);
    let seconds = |pair: &Value| pair["behaviour"]["changes"].to_string().contains("seconds");
    let found = json(&project, &["within", "apart"], 3);
    let pair = &found["pairs"][0];
    assert!(pair["duration"].is_null() && !seconds(pair), "{pair}");
    assert!(pair["doubts"].as_array().unwrap().iter().any(|doubt| doubt["about"] == "times"), "{pair}");
    let page = project.evals(&["compare", "within", "apart"]).exits(3);
    let page =
        page.says("times are not compared: those of agent").says("one of which includes the start of the program");
    assert!(!page.out.contains("1.0s instead of") && !page.out.contains("100ms instead of"), "{}", page.out);
    let found = json(&project, &["within", "too"], 3);
    assert!((found["pairs"][0]["duration"]["ratio"].as_f64().unwrap() - 3.0).abs() < 0.1, "{found}");
    assert!(seconds(&found["pairs"][0]));
}

#[test]
fn with_several_trials_the_cases_are_what_counts() {
    let project = Project::new();
    // Pooled, the new one would be worse; over cases it is better.
    Stored::new("a").case("x", "default", "pppp").case("y", "default", "ff").write(&project, 0);
    Stored::new("b").case("x", "default", "ppp").case("y", "default", "fffp").write(&project, 0);
    let pair = &json(&project, &["a", "b"], 3)["pairs"][0];
    assert_eq!(pair["delta"], 0.125);
    assert_eq!(pair["method"], "paired-t");
    assert_eq!(pair["doubts"][0]["about"], "trials");
    assert!(pair["these_cases_p"].is_number());
    // A loss of 2/3 and one of 3/4 would have a t of 17, which is beyond its quantile of 12.7.
    assert_eq!(pair["could_be_significant"], true);
    let page = project.evals(&["compare", "a", "b"]).exits(3);
    page.says("with only 1 differing case, no outcome could have been significant: the interval cannot exclude 0");
    // Three cases that differ among many are too few, four may do.
    for (differ, enough) in [(3, false), (4, true)] {
        of_cases("many", &[(60, "pp")]).write(&project, 0);
        of_cases("lost", &[(1, "ff"), (differ - 1, "pf"), (60 - differ, "pp")]).write(&project, 0);
        let found = json(&project, &["many", "lost"], 3);
        assert_eq!(found["pairs"][0]["could_be_significant"], true, "{differ}");
        let page = project.evals(&["compare", "many", "lost"]).exits(3).out;
        assert_eq!(
            !page.contains("with only 3 differing cases, no outcome could have been significant"),
            enough,
            "{page}"
        );
    }
}

#[test]
fn rows_that_are_about_other_cases_than_the_difference_say_so() {
    let says = "a row covers all cases of its arm, but a difference covers only the cases that could be compared";
    let project = Project::new();
    of_cases("a", &[(6, "p"), (6, "f")]).write(&project, 0);
    of_cases("b", &[(12, "p")]).write(&project, 0);
    assert!(!project.evals(&["compare", "a", "b"]).out.contains("a row covers"));
    of_cases("part", &[(6, "p")]).write(&project, 0);
    project.evals(&["compare", "a", "part"]).exits(3).says("50.0 %").says("+0.0 pp").says(says);
}

#[test]
fn in_markdown_a_comparison_is_never_longer_than_a_comment_may_be() {
    let project = Project::new();
    let mut run = Stored::new("wide");
    for model in 0..60 {
        let name = format!("model-{model}-{}", "of-a-long-name-".repeat(12));
        for case in 0..20 {
            run = run.case(
                &format!("{case:02}-{}", "case".repeat(20)),
                &name,
                if (case + model) % 3 == 0 { "f" } else { "p" },
            );
        }
    }
    run.write(&project, 0);
    let page = project.evals(&["compare", "wide", "--format", "markdown"]).out;
    assert!(page.len() <= 65_536 && page.len() > 32_768, "{}", page.len());
    assert!(
        page.starts_with("**") && page.contains("left out for its length; `evals compare` in a terminal"),
        "{page}"
    );
    assert_eq!(page.matches("<details>").count(), page.matches("</details>").count());
}

#[test]
fn in_markdown_what_others_say_links_nowhere() {
    let project = Project::new();
    for (name, model) in [("old", "https://evil.example/m"), ("new", "www.evil.example @team")] {
        of_cases(name, &[(8, "pp")])
            .results(|it| {
                it["model"]["effective"] = model.into();
                it["grades"][0]["name"] = "see https://evil.example".into();
            })
            .write(&project, 0);
    }
    let page = project.evals(&["compare", "old", "new", "--format", "markdown"]).exits(3).out;
    assert!(page.contains("<code>"), "{page}");
    for live in ["https://", "www.evil", "@team"] {
        assert!(!page.contains(live), "{live}: {page}");
    }
}

#[test]
fn one_case_speaks_of_itself_alone() {
    let project = Project::new();
    Stored::new("a").case("x", "default", "pppppppp").write(&project, 0);
    Stored::new("b").case("x", "default", "ffffffff").write(&project, 0);
    let pair = &json(&project, &["a", "b"], 1)["pairs"][0];
    assert_eq!((&pair["method"], &pair["test"]), (&"newcombe".into(), &"Fisher exact".into()));
    assert!((pair["p"].as_f64().unwrap() - 2.0 / 12870.0).abs() < 1e-9, "{pair}");
    let ran = project.evals(&["compare", "a", "b"]).says("the result holds for this case only");
    ran.says("the effect of more cases cannot be estimated from one case");
    assert_eq!(pair["power"].get("cases_needed"), None, "{pair}");
    assert_eq!(pair["power"].get("share_within"), None, "{pair}");
}

#[test]
fn errors_are_in_no_score_are_shown_and_may_be_failures() {
    let project = Project::new();
    of_cases("a", &[(12, "pp")]).write(&project, 0);
    of_cases("b", &[(6, "pp"), (4, "pc"), (2, "pr")]).write(&project, 0);
    let found = json(&project, &["a", "b"], 3);
    let arm = &found["arms"][1];
    assert_eq!((&arm["score"], &arm["errored"]), (&1.0.into(), &6.into()));
    assert_eq!((&arm["score_with_errors"], &arm["completion"]), (&0.75.into(), &0.75.into()));
    assert_eq!(found["pairs"][0]["delta_at_worst"], -0.25);
    assert_eq!(found["arms"][0].get("score_with_errors"), None, "what is not there is absent");
    // A crash is the agent's own; a rate limit is not.
    let counted = json(&project, &["a", "b", "--errors", "fail"], 1);
    let arm = &counted["arms"][1];
    assert_eq!((&arm["errored"], &arm["errored_as_failures"]), (&6.into(), &4.into()));
    assert_eq!(arm["completion"], 0.75, "what crashed was not completed, whatever it counts as");
    assert!((counted["pairs"][0]["delta"].as_f64().unwrap() + 2.0 / 12.0).abs() < 1e-12);
}

#[test]
fn the_models_of_one_run_are_compared_with_the_one_that_is_named() {
    let project = Project::new();
    let mut run = Stored::new("three");
    for n in 0..12 {
        let id = format!("c{n:02}");
        run = run.case(&id, "old", "p").case(&id, "same", "p").case(&id, "worse", "f");
    }
    run.write(&project, 0);
    let found = json(&project, &["three", "--baseline", "old"], 1);
    assert_eq!(found["pairs"].as_array().unwrap().len(), 2);
    assert_eq!(found["pairs"][1]["verdict"], "regressed");
    let (p, holm) = (found["pairs"][1]["p"].as_f64().unwrap(), found["pairs"][1]["p_holm"].as_f64().unwrap());
    assert!((holm - 2.0 * p).abs() < 1e-12);
    // Without a name the first is the old one.
    assert_eq!(json(&project, &["three"], 1)["pairs"][0]["old"], "agent / old");
    let back = json(&project, &["three", "--baseline", "worse"], 0);
    assert_eq!(back["verdict"], "improved");
}

#[test]
fn costs_tokens_and_the_front_are_told() {
    let project = Project::new();
    of_cases("a", &[(8, "pf")]).write(&project, 0);
    of_cases("b", &[(8, "pf")]).results(|it| it["metrics"]["cost_usd"] = 0.25.into()).write(&project, 0);
    let found = json(&project, &["a", "b"], 3);
    assert_eq!(found["arms"][0]["cost_per_trial"], 0.5);
    assert_eq!(found["arms"][0]["cost_per_success"], 1.0);
    assert!((found["pairs"][0]["cost"]["ratio"].as_f64().unwrap() - 0.5).abs() < 1e-12);
    assert_eq!(found["arms"][0]["dominated_by"][0], found["arms"][1]["name"]);
    assert_eq!(found["arms"][1]["dominated_by"], serde_json::json!([]));
    // If a trial of several did not tell its cost, the others are a lower bound.
    let is_first = std::cell::Cell::new(true);
    let half_told = |it: &mut Value| {
        if is_first.replace(false) {
            it["metrics"].as_object_mut().unwrap().remove("cost_usd");
        }
    };
    of_cases("d", &[(8, "pf")]).results(half_told).write(&project, 0);
    let shown = project.evals(&["compare", "a", "d"]);
    shown.says(">=$");
    let found = json(&project, &["a", "d"], 3);
    assert_eq!(found["arms"][1]["cost_unknown"], 1);
    assert!((found["arms"][1]["cost_per_success"].as_f64().unwrap() - 7.5 / 8.0).abs() < 1e-12, "{found}");
    // A cost that nobody told is no cost of nothing.
    let untold = |it: &mut Value| drop(it["metrics"].as_object_mut().unwrap().remove("cost_usd"));
    of_cases("c", &[(8, "pf")]).results(untold).write(&project, 0);
    let found = json(&project, &["a", "c"], 3);
    assert_eq!(found["arms"][1].get("cost_per_trial"), None);
    assert_eq!(found["pairs"][0].get("cost"), None);
    assert_eq!(found["arms"][1].get("dominated_by"), None);
}

#[test]
fn behaviour_is_told_from_the_shapes_of_the_calls() {
    let project = Project::new();
    of_cases("a", &[(6, "pp")]).write(&project, 0);
    of_cases("b", &[(4, "pp"), (2, "ff")]).write(&project, 0);
    let behaviour = &json(&project, &["a", "b"], 3)["pairs"][0]["behaviour"];
    let parting =
        serde_json::json!({"case": "c04", "step": 1, "old": "edit:Edit", "new": "execute:Bash", "delta": -1.0});
    assert_eq!(behaviour["partings"][0], parting);
    let broken = serde_json::json!([{"name": "tests pass", "grader": "tests", "old": 0, "new": 4}]);
    assert_eq!(behaviour["broken_by_one"], broken);
}

#[test]
fn the_page_is_short_first_and_details_follow() {
    let project = Project::new();
    let tagged = |it: &mut Value| {
        if it["id"].as_str().unwrap() < "c10" {
            it["tags"] = serde_json::json!(["rust"]);
        }
    };
    of_cases("before", &[(14, "pppp"), (6, "pfpf"), (4, "ffff")]).cases(tagged).write(&project, 0);
    of_cases("after", &[(2, "ffff"), (14, "pppp"), (4, "pfff"), (4, "ffff")]).cases(tagged).write(&project, 0);
    insta::assert_snapshot!("table", project.evals(&["compare", "before", "after"]).exits(3).out);
    let markdown = project.evals(&["compare", "before", "after", "--format", "markdown", "--gate", "margin=0.05"]);
    insta::assert_snapshot!("markdown", markdown.exits(3).out);
    // A narrow terminal leaves out columns, and breaks no figure.
    let narrow = project.command(&["compare", "before", "after"]).env("COLUMNS", "40").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    for text in ["no room for: pass^k, pass@k, k,\n", "[54.5, 87.2]", "no room for: adjusted p", " 70.8 %  "] {
        assert!(narrow.contains(text), "{text}: {narrow}");
    }
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn what_is_written_for_programs_follows_its_schema() {
    let project = Project::new();
    of_cases("a", &[(6, "pp"), (3, "pc")]).write(&project, 0);
    of_cases("b", &[(4, "pp"), (5, "ff"), (1, "p")]).write(&project, 0);
    let schema = evals::internal::schema::schema("compare").unwrap();
    let check = jsonschema::validator_for(&schema).unwrap();
    for args in [&["a", "b"] as &[&str], &["a", "b", "--gate", "margin=0.1", "--fail-under", "0.5", "--max-cost", "1"]]
    {
        let found = json(&project, args, 1);
        let errors: Vec<String> = check.iter_errors(&found).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_page_and_is_printed() {
    let project = Project::new();
    of_cases("a", &[(15, "pppf"), (15, "pfff")]).write(&project, 0);
    of_cases("b", &[(15, "ppff"), (15, "ppff")])
        .results(|it| {
            // Fractional scores, so that more than twenty cases differ by different amounts.
            let n: f64 = it["case"].as_str().unwrap()[1..].parse().unwrap();
            it["score"] = (n / 40.0).into();
        })
        .write(&project, 0);
    let found = json(&project, &["a", "b", "--seed", "7"], 3);
    assert_eq!((&found["seed"], &found["pairs"][0]["sign_flip_exact"]), (&7.into(), &false.into()));
    assert_eq!(found, json(&project, &["a", "b", "--seed", "7"], 3));
    project.evals(&["compare", "a", "b", "--seed", "7"]).says("seed 7");
}

/// The demo agent with a model that is good at everything and one that is good at one thing.
fn two_models(project: &Project) {
    for n in 0..6 {
        let passes = if n < 1 { "*" } else { "good" };
        let graders = format!("graders: [{{model: {{effective: \"{passes}\"}}}}]");
        project.case(&format!("c{n}"), &graders, "steps: [{say: done}]\n");
    }
}

#[test]
fn real_trials_are_compared_and_a_model_with_itself_is_the_same() {
    let project = Project::new();
    two_models(&project);
    project.evals(&["run", "--model", "good", "--model", "poor", "--model", "good", "--trials", "2"]).exits(1);
    let found = json(&project, &["latest", "--baseline", "good"], 1);
    assert_eq!(found["pairs"][0]["new"], "demo / poor");
    assert_eq!(found["pairs"][0]["counts"]["losses"], 5);
    // A/A: the same model in a second column.
    assert_eq!((&found["pairs"][1]["new"], &found["pairs"][1]["delta"]), (&"demo / good#2".into(), &0.0.into()));
}

#[test]
fn trials_are_added_until_it_is_clear() {
    let project = Project::new();
    two_models(&project);
    let ran = project.evals(&["run", "--model", "good", "--model", "poor", "--trials", "auto"]).exits(1);
    ran.says("clear after 2 trials of each case");
    let record: Value = serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
    assert_eq!(record["trials"].as_array().unwrap().len(), 24);
    assert_eq!(record["options"]["looks"], serde_json::json!([2, 4, 8, 16]));
    let pair = &json(&project, &["latest"], 1)["pairs"][0];
    assert_eq!(pair["level"], 0.9875, "what was looked at several times has a wider interval");
    project.evals(&["compare", "latest"]).says("the run was evaluated several times");
}

#[test]
fn trials_that_change_nothing_are_added_up_to_the_most() {
    let project = Project::new();
    project.case("only", "graders: [{stop: {reason: [end_turn]}}]", "steps: [{say: done}]\n");
    project.case("other", "graders: [{stop: {reason: [end_turn]}}]", "steps: [{say: done}]\n");
    let ran = project.evals(&["run", "--model", "a", "--model", "b", "--trials", "auto"]).exits(0);
    let ran = ran.says("not clear after 2 trials of each case; going on to 4");
    ran.says("still not clear after 16 trials of each case, the maximum");
    assert_eq!(json(&project, &["latest"], 3)["pairs"][0]["trials_new"], 32);
    project.evals(&["run", "--trials", "auto"]).exits(2).says("there is only one");
}

#[test]
fn a_harness_that_skips_all_cases_needs_no_further_trials() {
    let project = Project::new();
    for n in 0..6 {
        let keys = "requires: {tracing: true}\ngraders: [{output: {contains: fine}}]";
        project.case(&format!("c{n}"), keys, "steps: [{say: fine}]\n");
        project.write(&format!("cases/c{n}.wrong.demo.yaml"), "steps: [{say: bad}]\n");
    }
    let command = r#"command: ["{self}", demo-agent, --script, "{script:wrong}", --speak, acp]"#;
    project.harness("bad", &format!("adapter: acp\n{command}\nagent-info: evals-demo"));
    let auto = |harnesses: &[&str]| {
        let harnesses: Vec<&str> = harnesses.iter().flat_map(|name| ["--harness", *name]).collect();
        project.evals(&[&["run", "--trials", "auto"], &*harnesses].concat())
    };
    auto(&["demo-text", "demo", "bad"]).says("clear after 2 trials of each case");
    // The first one with a case is compared with the others.
    assert_eq!(json(&project, &["latest"], 1)["pairs"][0]["old"], "demo");
    auto(&["demo-text", "demo"]).says("ends after 2 trials of each case, as no case can be compared");
}

#[test]
fn ratios_say_over_how_many_cases_they_are() {
    let project = Project::new();
    of_cases("a", &[(20, "p")]).write(&project, 0);
    let told = |it: &mut Value| {
        let metrics = it["metrics"].as_object_mut().unwrap();
        metrics.insert("total_tokens".to_owned(), 3.into());
        if it["case"] != "c00" {
            it["metrics"].as_object_mut().unwrap().remove("cost_usd");
        }
    };
    of_cases("b", &[(20, "p")]).results(told).write(&project, 0);
    let ran = project.evals(&["compare", "a", "b"]).exits(3).says("cost 1.00 over 1 of 20 cases");
    ran.says("tokens 0.0030 [0.0030, 0.0030]");
}

#[test]
fn where_behaviour_differs_is_about_the_cases_that_are_compared() {
    let project = Project::new();
    of_cases("a", &[(8, "pp"), (8, "ff")])
        .results(|it| {
            if it["verdict"] == "fail" {
                it["metrics"]["tool_calls_by_kind"] = serde_json::json!({"execute": 50});
            }
        })
        .write(&project, 0);
    of_cases("b", &[(8, "pp")]).write(&project, 0);
    let behaviour = json(&project, &["a", "b"], 3)["pairs"][0]["behaviour"].clone();
    let kinds: Vec<&str> =
        behaviour["calls"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["read", "edit"], "{behaviour}");
    assert_eq!(behaviour["broken_by_one"], serde_json::json!([]), "{behaviour}");
}

#[test]
fn a_rule_that_one_arm_alone_breaks_is_named_though_both_fail_the_grader() {
    let project = Project::new();
    let rules = "graders: [{rules: {name: order, rules: [{never: {kind: delete}}, {eventually: {kind: read}}]}}]";
    project.case(
        "a",
        rules,
        "steps: [{write: {path: a.txt, text: x}}, {delete: {path: a.txt}}, {read: {path: a.txt}}]",
    );
    project.write("cases/a.blind.demo.yaml", "steps: [{write: {path: a.txt, text: x}}]");
    project.demo("deletes", "");
    let command = r#"command: ["{self}", demo-agent, --script, "{script:blind}", --speak, acp]"#;
    project.harness("blind", &format!("adapter: acp\n{command}\nagent-info: evals-demo"));
    project.evals(&["run", "--harness", "deletes", "--harness", "blind"]).exits(1);
    let ran = project.evals(&["compare"]).exits(3);
    let ran = ran.says("only the old one fails `order` (rules: never: `delete` must not happen), in 1 trial");
    ran.says("only the new one fails `order` (rules: eventually: `read` must happen), in 1 trial");
}

#[test]
fn costs_that_no_sum_holds_are_unknown() {
    let project = Project::new();
    for (name, cost) in [("a", 1e308), ("b", 0.5)] {
        of_cases(name, &[(8, "pp")]).results(|it| it["metrics"]["cost_usd"] = cost.into()).write(&project, 0);
    }
    let schema = evals::internal::schema::schema("compare").unwrap();
    for pair in [["a", "b"], ["b", "a"], ["a", "a2"]] {
        of_cases("a2", &[(8, "pp")]).results(|it| it["metrics"]["cost_usd"] = 1e308.into()).write(&project, 0);
        let found = json(&project, &pair, 3);
        let errors: Vec<String> =
            jsonschema::validator_for(&schema).unwrap().iter_errors(&found).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        let page = project.evals(&["compare", pair[0], pair[1], "--max-cost", "9"]).out;
        assert!(!page.contains("inf") && !page.contains("NaN"), "{page}");
        assert_eq!(page.contains("gate: fail"), pair[1] != "b", "{page}");
    }
}

/// A run of an experiment with two trials of each case in each arm. An arm is HARNESS/NAME; the baseline is `base`.
fn experiment(name: &str, arms: &[&str], cases: usize) -> Stored {
    let mut run = Stored::new(name);
    for case in 0..cases {
        for arm in arms {
            run = run.case(&format!("c{case:02}"), arm, "pp");
        }
    }
    let record = |arm: &&str| {
        let name = arm.rsplit('/').next().unwrap();
        json!({"name": name, "digest": name, "overrides": {}, "labels": {"effort": name}})
    };
    let axes = json!([{"key": "effort", "labels": ["base", "more"]}]);
    run.results(|it| {
        let arm = it["arm"].as_str().unwrap().to_owned();
        let (harness, name) = arm.split_once('/').unwrap();
        it["harness"] = harness.into();
        it["arm"] = name.into();
    })
    .with("arms", arms.iter().map(record).collect())
    .with("experiment", json!({"baseline": "base", "vary": ["env"], "axes": axes}))
}

#[test]
fn an_arm_of_an_experiment_without_a_partner_is_named_and_no_gate_passes() {
    let project = Project::new();
    experiment("x", &["one/base", "two/base", "one/more", "three/other"], 6).write(&project, 0);
    let refused = project.evals(&["compare", "x", "--gate"]).exits(2);
    let refused = refused.says("the old side has no results to compare three / other with");
    refused.says("let the baseline of the experiment run on the same harnesses");
    let found = json(&project, &["x"], 3);
    assert_eq!(found["pairs"].as_array().unwrap().len(), 1);
    assert_eq!(found["unmatched"], json!({"old": [], "new": ["three / other"]}));
    let conclusions = found["conclusions"].as_array().unwrap();
    let text = "unknown whether three / other helps: the baseline base has no results on its harness.";
    assert_eq!((conclusions.len(), &conclusions[1]["text"]), (2, &text.into()));
    project.evals(&["compare", "x"]).exits(3).says("not everything is compared: only the new side has three / other");
}

#[test]
fn the_effect_of_an_axis_is_over_the_compared_cases_and_at_the_level_of_the_pairs() {
    let project = Project::new();
    let scores = |it: &mut Value| {
        let case: usize = it["case"].as_str().unwrap()[1..].parse().unwrap();
        if it["arm"] == "more" {
            it["score"] = [0.0, 0.5, 0.6, 0.7, 0.8, 0.9][case].into();
        }
    };
    let run = experiment("x", &["agent/base", "agent/more"], 6).results(scores);
    let run = run.cases(|it| it["mixed"] = (it["id"] == "c00").into());
    run.with("options", json!({"looks": [2, 4, 8, 16]})).write(&project, 0);
    let found = json(&project, &["x"], 3);
    let (axis, pair) = (&found["axes"][0], &found["pairs"][0]);
    assert_eq!((&axis["cases"], &pair["cases_compared"], &pair["level"]), (&5.into(), &5.into(), &0.9875.into()));
    for (one, other) in [
        (&axis["delta"], &pair["delta"]),
        (&axis["interval"]["low"], &pair["interval"]["low"]),
        (&axis["interval"]["high"], &pair["interval"]["high"]),
    ] {
        assert!((one.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-9, "{axis} {pair}");
    }
}

#[test]
fn the_effect_of_an_axis_with_one_pair_of_arms_is_that_of_the_pair() {
    let project = Project::new();
    let arm = |name: &str| json!({"name": name, "digest": name, "overrides": {}, "labels": {"env": name}});
    let axes = json!([{"key": "env", "labels": ["a", "b"]}]);
    let mut run = Stored::new("x")
        .with("arms", json!([arm("a"), arm("b")]))
        .with("experiment", json!({"baseline": "a", "vary": ["env"], "axes": axes}));
    for n in 0..10 {
        let id = format!("c{n}");
        run = run.case(&id, "a", "f").case(&id, "b", if n < 4 { "p" } else { "f" });
    }
    run.write(&project, 0);
    let found = json(&project, &["x"], 3);
    let (axis, pair) = (&found["axes"][0], &found["pairs"][0]);
    for key in ["delta", "interval", "p"] {
        assert_eq!(axis[key], pair[key], "{key}");
    }
    let says = "env: b instead of a: +40.0 pp [-2.0, +68.6], p = 0.0625 (McNemar mid-p), 10 cases";
    project.evals(&["compare", "x"]).says(says);
}

#[test]
fn the_star_and_the_effect_of_an_axis_name_an_arm_whose_agents_could_read_their_case() {
    let project = Project::new();
    let warning = json!({"code": "case_in_workspace", "message": "m", "files": ["q.yaml"], "count": 1});
    let read = |it: &mut Value| {
        if it["arm"] == "more" && it["case"] == "c01" {
            it["warnings"] = json!([warning]);
        }
    };
    experiment("x", &["agent/base", "agent/more"], 6).results(read).write(&project, 0);
    let found = json(&project, &["x"], 3);
    let text = "agent / more: in 2 trials the agent could read files of its own case";
    let caveats = json!([{"about": "loaded", "text": text}]);
    assert_eq!((&found["ranking"]["doubts"], &found["axes"][0]["doubts"]), (&caveats, &caveats));
    let page = project.evals(&["compare", "x"]).exits(3);
    let says = |before: &str| format!("{before}; look before you trust it: {text}");
    page.says(&says("or more for as much (Pareto)")).says(&says("6 cases"));
    experiment("y", &["agent/base", "agent/more"], 6).write(&project, 0);
    let found = json(&project, &["y"], 3);
    assert!(found["ranking"].get("doubts").is_none() && found["axes"][0].get("doubts").is_none(), "{found}");
}

#[test]
fn an_axis_is_compared_without_the_arms_that_skipped_all_cases_or_the_report_says_why_not() {
    let project = Project::new();
    let arms = [("a1", "a", "1"), ("a2", "a", "2"), ("b1", "b", "1"), ("b2", "b", "2")];
    let run = |skipped: &[&str]| {
        let record = |(name, env, model): &(&str, &str, &str)| json!({"name": name, "digest": name, "overrides": {}, "labels": {"env": env, "model": model}});
        let axes = json!([{"key": "env", "labels": ["a", "b"]}, {"key": "model", "labels": ["1", "2"]}]);
        let mut run = Stored::new("x")
            .with("arms", arms.iter().map(record).collect())
            .with("experiment", json!({"baseline": "a1", "vary": ["env", "model"], "axes": axes}));
        for n in 0..6 {
            for (name, env, _) in arms {
                let trials = if skipped.contains(&name) {
                    "u"
                } else if env == "a" || n < 3 {
                    "p"
                } else {
                    "f"
                };
                run = run.case(&format!("c{n}"), name, trials);
            }
        }
        run.results(|it| {
            if it["verdict"] == "ungraded" {
                it["verdict"] = "skipped".into();
            }
        })
        .write(&project, 0);
        project.evals(&["compare", "x"])
    };
    run(&[]).says("env: b instead of a, averaged over the other axes: -50.0 pp");
    run(&["b2"]).says("env: b instead of a: -50.0 pp").says("model: 2 instead of 1: +0.0 pp");
    let says = "model: 2 instead of 1: not compared: no case can be compared: the new side skipped it";
    run(&["a2", "b2"]).says("env: b instead of a: -50.0 pp").says(says);
    let found = project.evals(&["compare", "x", "--format", "json"]).json();
    assert_eq!((&found["axes"][0]["cases"], &found["axes_not_compared"][0]["axis"]), (&6.into(), &"model".into()));
}

#[test]
fn the_halves_of_a_run_are_the_same_trials_in_both_arms() {
    let project = Project::new();
    let run = |name: &str, cases: &[(usize, &str, &str)]| {
        let mut run = Stored::new(name).with("experiment", json!({"baseline": "base", "vary": ["env"]}));
        let all = cases.iter().flat_map(|(count, base, more)| std::iter::repeat_n((base, more), *count));
        for (number, (base, more)) in all.enumerate() {
            let id = format!("c{number}");
            run = run.case(&id, "base", base).case(&id, "more", more);
        }
        run.write(&project, 0);
    };
    // The agent crashed at the beginning.
    run("x", &[(4, "pppp", "ccpp"), (2, "pppp", "cppp")]);
    let says = "-83.3 pp in the first half of the trials, +0.0 pp in the second";
    project.evals(&["compare", "x", "--errors", "fail"]).says(says);
    // The agents crashed at the beginning, and such trials are no part of a half.
    run("z", &[(1, "cppp", "cppp"), (5, "cpp", "cfp")]);
    let says = "-83.3 pp in the first half of the trials, +0.0 pp in the second";
    project.evals(&["compare", "z"]).says(says);
    // Both arms changed at the same time, and one of them lacks some trials.
    run("y", &[(4, "ffpp", "ffrp"), (2, "ffpp", "rrpp")]);
    let page = project.evals(&["compare", "y"]).out;
    assert!(page.contains("Statistics") && !page.contains("the difference changed"), "{page}");
}

#[test]
fn a_conclusion_states_the_level_of_its_interval_and_asks_for_no_cases_that_are_there() {
    let project = Project::new();
    let scores = |it: &mut Value| {
        let case: usize = it["case"].as_str().unwrap()[1..].parse().unwrap();
        let more = if case.is_multiple_of(2) { 0.43 } else { 0.63 };
        it["score"] = if it["arm"] == "more" { more } else { 0.5 }.into();
    };
    let run = || experiment("x", &["agent/base", "agent/more"], 40).results(scores);
    run().write(&project, 0);
    let page = project.evals(&["compare", "x"]).exits(3).says("(95 % interval -0.2 to +6.2), over 40 cases");
    let page = page.says("These cases are enough to detect 5.0 pp, but the interval leaves the result open.").out;
    assert!(!page.contains("To detect"), "{page}");
    let tagged = |it: &mut Value| {
        if it["id"].as_str().unwrap() < "c10" {
            it["tags"] = json!(["rust"]);
        }
    };
    run().cases(tagged).with("options", json!({"looks": [2, 4, 8, 16]})).write(&project, 0);
    let page = project.evals(&["compare", "x"]).exits(3).says("(98.75 % interval -1.2 to +7.2), over 40 cases");
    let page = page.says("so the interval is at 98.75 %").says("percentage points (98.75 % interval)");
    let page = page.says("To detect 5.0 pp takes 46 cases").out;
    let head = page.lines().find(|line| line.trim_start().starts_with("tag ")).unwrap();
    assert!(head.contains("98.75 %"), "{page}");
}

#[test]
fn a_case_is_saturated_or_broken_by_the_same_trials_as_in_the_report_of_a_run() {
    let project = Project::new();
    let flags = |args: &[&str], code: i32| -> Vec<Value> {
        let found = json(&project, &[&["old", "new"][..], args].concat(), code);
        let rows = found["pairs"][0]["cases"].as_array().unwrap();
        let of = |id: &str| rows.iter().find(|row| row["case"] == id).unwrap()["flags"].clone();
        vec![of("c00"), of("c01")]
    };
    of_cases("old", &[(2, "ppppp")]).write(&project, 0);
    of_cases("new", &[(2, "ppppp")]).write(&project, 3);
    // Trials that were not run could have failed.
    assert_eq!(flags(&["--gate"], 3), [json!(["saturated"]), json!([])]);
    // One failure beside a trial that could have passed is not enough.
    of_cases("old", &[(1, "ff"), (1, "fc")]).write(&project, 0);
    of_cases("new", &[(2, "fc")]).write(&project, 0);
    assert_eq!(flags(&[], 3), [json!(["broken"]), json!([])]);
}

#[test]
fn a_cost_per_trial_in_the_page_counts_the_trials_that_ran() {
    let project = Project::new();
    Stored::new("half").case("c00", "a", "pp").case("c00", "b", "pppp").write(&project, 2);
    project.evals(&["report", "half", "--format", "html", "-o", "half.html"]).exits(0);
    let page = project.read("half.html");
    for arm in ["a", "b"] {
        assert!(page.contains(&format!("agent / {arm}: $0.50 per trial, score 1.00")), "{arm}");
    }
}

#[test]
fn a_long_list_of_cases_that_are_left_out_says_how_many_more_there_are() {
    let project = Project::new();
    of_cases("old", &[(30, "p")]).write(&project, 0);
    of_cases("new", &[(5, "p")]).write(&project, 0);
    let page = project.evals(&["compare", "old", "new"]).exits(3);
    page.says("25 cases left out").says("- c24: only the old side has it - and 5 more; --format json has all");
}

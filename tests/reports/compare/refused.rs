//! What is not comparable: refused with exit 2 and the way out, or left out and said so; never quietly compared.

use serde_json::json;

use super::stored::{Stored, of_cases};
use crate::project::Project;

fn project() -> Project {
    let project = Project::new();
    of_cases("old", &[(8, "pp")]).cases(|it| it["played"] = "p".into()).write(&project, 0);
    project
}

#[test]
fn what_cannot_be_compared_at_all_is_refused() {
    let project = project();
    let refused = |args: &[&str]| {
        let mut all = vec!["compare"];
        all.extend(args);
        let ran = project.evals(&all).exits(2);
        assert!(ran.out.is_empty(), "{}", ran.out);
        ran
    };
    Stored::new("other").case("x", "default", "p").write(&project, 0);
    refused(&["old", "other"]).says("have no case in common");
    refused(&["nobody", "nothing"]).says("nobody").says("nothing");
    of_cases("half", &[(8, "pp")]).write(&project, 3);
    refused(&["old", "half"])
        .says("run half is not finished")
        .says("3 trials of 16 not run")
        .says("evals run --resume half");
    refused(&["half", "old"]).says("run half is not finished");
    of_cases("newer", &[(8, "pp")]).with("version", 99.into()).write(&project, 0);
    refused(&["old", "newer"]).says("version 99").says("use a newer evals");
    of_cases("again", &[(8, "pp")]).with("derived_from", "old".into()).write(&project, 0);
    refused(&["old", "again"]).says("contains only the failed trials of run old");
    of_cases("judged", &[(8, "pp")])
        .with("derived_from", "again".into())
        .with("graded", true.into())
        .write(&project, 0);
    refused(&["old", "judged"])
        .says("regrades a run that contains only the failed trials of run old")
        .says("use run old");
    of_cases("twice", &[(8, "pp")])
        .with("derived_from", "judged".into())
        .with("graded", true.into())
        .write(&project, 0);
    refused(&["twice", "old"]).says("contains only the failed trials of run old");
    project.write("bad.json", "{\"baseline\": 9}");
    let ran = refused(&["old", "--baseline", "bad.json"]).says("version 9");
    assert!(!ran.err.contains("neither a model of run"), "{}", ran.err);
    refused(&["old", "--gate", "margin=0.05"]).says("has only one harness and model").says("evals baseline set");
    refused(&["old", "old"]).says("compared with itself");
    refused(&["old", "nope"]).says("no run is called `nope`");
    refused(&["old", "--baseline", "nope"]).says("--baseline nope is neither a model of run old");
    refused(&["old", "half", "--baseline", "old"]).says("leave --baseline out");
    refused(&["old", "other", "--gate", "0.05"]).says("write margin=NUMBER");
    refused(&["old", "other", "--gate", "margin=0"]).says("between 0 and 1");
    refused(&["old", "other", "--margin", "2"]).says("between 0 and 1");
    refused(&["old", "other", "--fail-under", "80"]).says("is not within 0 and 1");
}

#[test]
fn cases_that_are_not_the_same_are_left_out_and_named() {
    for (name, key, value, says) in [
        ("digest", "digest", json!("e"), "the case, its graders or its files have changed"),
        ("limits", "limits", json!({"steps": 3}), "the limits differ"),
        ("policy", "interaction", json!("auto-reject"), "the policy differs: auto-approve before, auto-reject now"),
        ("manual", "interaction", json!("manual"), "a person answered the agent"),
        ("played", "played", json!("q"), "its agents had other inputs: another prompt, workspace"),
        ("mixed", "mixed", json!(true), "it changed during one of the runs"),
    ] {
        let project = project();
        of_cases(name, &[(8, "pp")]).cases(|it| it[key] = value.clone()).write(&project, 0);
        project.evals(&["compare", "old", name]).exits(2).says("can be compared").says(says);
        // Where others are left, those are compared.
        let one = |it: &mut serde_json::Value| {
            if it["id"] == "c03" {
                it[key] = value.clone();
            }
        };
        of_cases(name, &[(8, "pp")]).cases(one).write(&project, 0);
        let found = project.evals(&["compare", "old", name, "--format", "json"]).exits(3).json();
        let pair = &found["pairs"][0];
        assert_eq!((&pair["cases_compared"], &pair["unpaired"][0]["case"]), (&7.into(), &"c03".into()), "{name}");
        assert_eq!(pair["doubts"][0]["about"], "unpaired");
        project.evals(&["compare", "old", name]).says("look before you trust it: 1 case is left out").says(says);
    }
}

#[test]
fn cases_that_may_have_changed_behind_a_link_are_flagged() {
    let project = Project::new();
    let with = |name: &str, digest: &str| {
        let linked = |it: &mut serde_json::Value| {
            if it["id"] == "c03" {
                it["digest"] = digest.into();
            }
        };
        of_cases(name, &[(8, "pp")]).cases(linked).write(&project, 0);
    };
    // An older version did not read what links lead to.
    with("older", "d");
    with("newer", "d+l");
    let flagged = |old: &str, new: &str| {
        let found = project.evals(&["compare", old, new, "--format", "json"]).json();
        let pair = found["pairs"][0].clone();
        assert_eq!(pair["cases_compared"], 8);
        let doubts = pair["doubts"].as_array().unwrap().iter().filter(|doubt| doubt["about"] == "played");
        doubts.map(|doubt| doubt["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (old, new) in [("older", "newer"), ("newer", "older")] {
        let found = flagged(old, new);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("1 case may have changed: ") && found[0].ends_with(": c03"), "{found:?}");
        project.evals(&["compare", old, new]).says("look before you trust it: 1 case may have changed");
    }
    with("again", "d+l");
    assert!(flagged("newer", "again").is_empty());
}

#[test]
fn what_is_compared_all_the_same_is_flagged() {
    let project = Project::new();
    of_cases("old", &[(8, "pp")])
        .results(|it| {
            it["agent"] = json!({"name": "Agent", "version": "1.9"});
            it["grades"][0]["judge"] = json!({"model": "anthropic:a", "prompt_digest": "d"});
        })
        .write(&project, 0);
    let mut harnesses = of_cases("x", &[]).record["harnesses"].clone();
    harnesses[0]["digest"] = "e".into();
    of_cases("new", &[(8, "pp")])
        .with("harnesses", harnesses)
        .with("evals", "0.2.0".into())
        .results(|it| {
            it["model"]["effective"] = if it["trial"] == 1 { "m-1".into() } else { "m-2".into() };
            it["agent"] = json!({"name": "Agent", "version": "2.0"});
            it["grades"][0]["judge"] = json!({"model": "openai:b", "prompt_digest": "d"});
        })
        .write(&project, 0);
    let found = project.evals(&["compare", "old", "new", "--format", "json"]).exits(3).json();
    let doubts = found["pairs"][0]["doubts"].as_array().unwrap();
    let about: Vec<&str> = doubts.iter().map(|doubt| doubt["about"].as_str().unwrap()).collect();
    assert_eq!(about, ["harness", "agent", "judges", "version", "model"]);
    let ran = project.evals(&["compare", "old", "new"]);
    let ran = ran.says("the agent is not the same: Agent 1.9 before, Agent 2.0 now");
    let ran = ran.says("the judges are not the same: anthropic:a before, openai:b now");
    ran.says("the manifest of harness `agent` has changed").says("several models answered: m-1, m-2");
}

#[test]
fn judges_that_nobody_calibrated_and_costs_that_no_agent_told_are_flagged() {
    let project = Project::new();
    let judged = |name: &str, calibrated: bool, source: Option<&str>| {
        of_cases(name, &[(8, "pp")])
            .results(|it| {
                it["grades"][0]["judge"] = json!({"model": "openai:b", "prompt_digest": "d", "calibrated": calibrated});
                if let Some(source) = source {
                    it["metrics"]["cost_source"] = source.into();
                }
            })
            .write(&project, 0);
    };
    judged("old", true, None);
    judged("new", true, Some("priced"));
    let says = "valid, but: agent (new): the cost of 16 of 16 trials comes from a price table";
    project.evals(&["compare", "old", "new"]).exits(3).says(says);
    judged("loose", false, None);
    let says = "look before you trust it: scores depend on uncalibrated judges: openai:b";
    project.evals(&["compare", "old", "loose"]).exits(3).says(says);
    // A diagnostic one is in no score.
    of_cases("aside", &[(8, "pp")])
        .results(|it| {
            it["grades"][0]["judge"] = json!({"model": "openai:b", "prompt_digest": "d", "calibrated": false});
            it["grades"][0]["diagnostic"] = true.into();
        })
        .write(&project, 0);
    assert!(!project.evals(&["compare", "old", "aside"]).exits(3).out.contains("calibrated"));
    // A baseline keeps both.
    project.evals(&["baseline", "set", "loose"]).exits(0);
    project.evals(&["compare", "new"]).exits(3).says("uncalibrated judges: openai:b").says("from a price table");
    project.evals(&["baseline", "set", "new"]).exits(0);
    project.evals(&["compare", "old"]).exits(3).says("baseline agent: the cost of 16 of 16 trials comes from");
}

#[test]
fn another_sandbox_is_flagged() {
    let project = Project::new();
    of_cases("old", &[(8, "pp")]).write(&project, 0);
    of_cases("new", &[(8, "pp")]).results(|it| it["sandbox"] = "bwrap".into()).write(&project, 0);
    let says = "look before you trust it: the sandbox is not the same: none before, bwrap now";
    project.evals(&["compare", "old", "new"]).exits(3).says(says);
    project.evals(&["baseline", "set", "old"]).exits(0);
    project.evals(&["compare", "new"]).exits(3).says(says);
    assert!(!project.evals(&["compare", "old"]).exits(3).out.contains("sandbox"));
}

#[test]
fn trials_that_were_judged_again_are_compared_by_what_they_met() {
    let project = Project::new();
    let case = |prompt: &str, keys: &str| {
        let text = format!(
            "prompt: {prompt}\n{keys}graders: [{{stop: {{reason: [end_turn]}}}}, {{output: {{contains: done}}}}]\n"
        );
        project.write("cases/a.yaml", &text);
    };
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "first"]).exits(0);
    let compared = |old: &str, new: &str| project.evals(&["compare", old, new]);
    // Only what judges it changes: the same trials under the new case are like new ones.
    case("Do it.", "");
    let regraded = |label: &str| drop(project.evals(&["grade", "first", "--label", label]).exits(0));
    regraded("judged");
    project.evals(&["run", "--label", "fresh"]).exits(0);
    // Labels name the runs where they differ.
    let page = compared("judged", "fresh").exits(3).says("valid, but:").says("was graded again from run");
    page.says("(judged)").says("(fresh)");
    // The very same trials, judged twice: no agent was run between them.
    let says = "look before you trust it: both sides grade the same trials, those of run";
    regraded("twice");
    compared("judged", "twice").exits(3).says(says);
    compared("twice", "judged").exits(3).says(says);
    project.evals(&["baseline", "set", "judged"]).exits(0);
    project.evals(&["compare", "twice"]).exits(3).says(says);
    // What it asks for has changed, and the trials are still those that were asked for something else.
    for (label, prompt, keys) in [("prompt", "Do it well.", ""), ("limits", "Do it.", "limits: {steps: 9}\n")] {
        case(prompt, keys);
        regraded(label);
        let fresh = format!("{label}-fresh");
        project.evals(&["run", "--label", &fresh]).exits(0);
        let says = "its agents had other inputs: another prompt, workspace, environment, policy or limits";
        compared(label, &fresh).exits(2).says(says);
        compared(&fresh, label).exits(2).says(says);
    }
    // Of single traces nobody knows.
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_named("limits-fresh"));
    project.evals(&["grade", &trace, "--case", "cases/a.yaml", "--label", "single"]).exits(0);
    compared("single", "limits-fresh")
        .exits(3)
        .says("1 case was graded again, and it is unknown whether the agents of both sides");
    project.evals(&["baseline", "set", "single"]).exits(0);
    project.evals(&["compare", "limits-fresh"]).exits(3).says("1 case was graded again");
}

#[test]
fn two_harnesses_and_two_names_of_one_model_are_told() {
    let project = Project::new();
    let harness = |name: &str| {
        let mut harnesses = of_cases("x", &[]).record["harnesses"].clone();
        harnesses[0]["name"] = name.into();
        let run = of_cases(name, &[(8, "pp")]).results(|it| it["harness"] = name.into());
        run.with("harnesses", harnesses).write(&project, 0);
    };
    harness("one");
    harness("two");
    project
        .evals(&["compare", "one", "two"])
        .exits(3)
        .says("valid, but: two harnesses are compared: one before, two now");
    // A gate against a baseline of another agent could be an accident; one of two named runs is none.
    project.evals(&["baseline", "set", "one"]).exits(0);
    project.evals(&["compare", "two"]).exits(3).says("two harnesses are compared: one before, two now");
    project.evals(&["compare", "one", "--gate"]).exits(0);
    let gated = project.evals(&["compare", "two", "--gate"]).exits(3);
    gated
        .says("inconclusive, because the baseline is of harness `one` and the run of harness `two`")
        .says("`evals baseline set two --replace`")
        .says("if both runs are there, compare them: `evals compare one two --gate`");
    project.evals(&["compare", "two", "--max-cost", "99"]).exits(0);
    project.evals(&["compare", "one", "two", "--gate"]).exits(0).says("two harnesses are compared");
    std::fs::remove_file(project.path("cases/baseline.json")).unwrap();
    let models = |name: &str, columns: [&str; 2], answers: [&str; 2]| {
        let mut run = Stored::new(name);
        for n in 0..8 {
            run = run.case(&format!("c{n}"), columns[0], "p").case(&format!("c{n}"), columns[1], "p");
        }
        run.results(|it| it["model"]["effective"] = answers[usize::from(it["arm"] == columns[1])].into())
            .write(&project, 0);
        project.evals(&["compare", name]).exits(3).out
    };
    let says = "look before you trust it: the same model answered in both: m-1";
    assert!(models("stuck", ["m-a", "m-b"], ["m-1", "m-1"]).contains(says));
    assert!(!models("well", ["m-a", "m-b"], ["m-1", "m-2"]).contains("answered in both"));
    assert!(!models("aa", ["m-a", "m-a#2"], ["m-1", "m-1"]).contains("answered in both"), "an A/A comparison is one");
}

#[test]
fn what_was_tried_again_and_what_crashed_is_told_whatever_it_counts_as() {
    let project = Project::new();
    of_cases("old", &[(8, "pp")]).write(&project, 0);
    let again = json!({"count": 3, "cost_usd": 0.1});
    of_cases("new", &[(8, "pp")]).results(|it| it["earlier_attempts"] = again.clone()).write(&project, 0);
    let says = "valid, but: agent (new): 16 of 16 trials tried again after an attempt that is in no score";
    let ran = project.evals(&["compare", "old", "new"]).exits(3).says(says);
    ran.says("the cost includes all attempts, tokens and time only the last")
        .says("; the cost includes retried attempts, tokens and time do not");
    of_cases("crashed", &[(8, "cc")]).write(&project, 0);
    let ran = project.evals(&["compare", "old", "crashed", "--errors", "fail"]).exits(1);
    ran.says("valid, but: agent (crashed): 16 of 16 trials crashed or broke the protocol, and count as failures");
}

#[test]
fn a_model_that_never_answered_does_not_hide_the_others() {
    let project = Project::new();
    let run = |name: &str, third: &str| {
        let mut run = Stored::new(name);
        for n in 0..20 {
            let id = format!("c{n:02}");
            run = run.case(&id, "a", "p").case(&id, "b", "f").case(&id, "c", third);
        }
        run.results(|it| {
            if it["verdict"] == "ungraded" {
                it["verdict"] = "skipped".into();
            }
        })
        .write(&project, 0);
    };
    for (name, third, why) in
        [("limited", "r", "no trial of the new side has a score"), ("skipped", "u", "the new side skipped it")]
    {
        run(name, third);
        let found = project.evals(&["compare", name, "--format", "json"]).exits(1).json();
        assert_eq!((found["pairs"].as_array().unwrap().len(), &found["verdict"]), (1, &"regressed".into()));
        assert_eq!(
            (&found["not_compared"][0]["new"], &found["not_compared"][0]["text"]),
            (&"agent / c".into(), &why.into())
        );
        let says = format!("agent / c vs agent / a: not compared, none of 20 cases: {why}");
        project.evals(&["compare", name]).exits(1).says(&says).says("agent / b vs agent / a: regressed");
    }
    // Alone it is open, and no gate passes.
    of_cases("whole", &[(8, "pp")]).write(&project, 0);
    of_cases("down", &[(8, "rr")]).write(&project, 0);
    project.evals(&["compare", "whole", "down"]).exits(3).says("not compared, none of 8 cases");
    project.evals(&["compare", "whole", "down", "--gate", "margin=0.05"]).exits(3).says("gate: inconclusive");
    project.evals(&["compare", "whole", "down", "--format", "markdown"]).exits(3).says("not compared, none of 8 cases");
}

#[test]
fn another_model_under_the_same_name_is_flagged() {
    let project = Project::new();
    for (name, model) in [("old", "m-1"), ("new", "m-2")] {
        of_cases(name, &[(8, "pp")]).results(|it| it["model"]["effective"] = model.into()).write(&project, 0);
    }
    let says = "look before you trust it: another model answered: m-1 before, m-2 now";
    project.evals(&["compare", "old", "new"]).exits(3).says(says);
    project.evals(&["baseline", "set", "old"]).exits(0);
    project.evals(&["compare", "new"]).exits(3).says(says);
    assert!(!project.evals(&["compare", "old"]).exits(3).out.contains("another model"));
}

#[test]
fn runs_with_several_models_are_joined_by_model() {
    let project = Project::new();
    let run = |name: &str, models: [&str; 2]| {
        let mut run = Stored::new(name);
        for n in 0..8 {
            run = run.case(&format!("c{n}"), models[0], "p").case(&format!("c{n}"), models[1], "p");
        }
        run.write(&project, 0);
    };
    run("one", ["a", "b"]);
    run("two", ["b", "c"]);
    run("three", ["x", "y"]);
    let found = project.evals(&["compare", "one", "two", "--format", "json"]).exits(3).json();
    assert_eq!(found["pairs"].as_array().unwrap().len(), 1);
    assert_eq!(found["pairs"][0]["new"], "agent / b (two)");
    // What has no partner is named, and no gate passes without it.
    assert_eq!(found["unmatched"], json!({"old": ["agent / a (one)"], "new": ["agent / c (two)"]}));
    let ran = project.evals(&["compare", "one", "two"]).exits(3);
    ran.says("look before you trust it: not everything is compared: only the old side has agent / a (one)")
        .says("only the new side has agent / c (two)");
    for gate in [["--gate", "margin=0.5"], ["--fail-under", "0.1"], ["--max-cost", "99"]] {
        let ran = project.evals(&["compare", "one", "two", gate[0], gate[1]]).exits(2);
        ran.says("no results to compare agent / c (two) with");
    }
    project.evals(&["compare", "one", "three"]).exits(2).says("no harness and model in common");
}

#[test]
fn a_model_that_an_errored_trial_names_answered_nothing() {
    let project = Project::new();
    let run = |name: &str, trials: &str, named: &'static str| {
        let mut run = Stored::new(name);
        for n in 0..8 {
            run = run.case(&format!("c{n}"), "large", trials);
        }
        let answer = move |it: &mut serde_json::Value| {
            it["model"]["effective"] = if it["verdict"] == "errored" { named.into() } else { "large".into() };
        };
        run.results(answer).write(&project, 0);
    };
    run("old", "pp", "large");
    run("new", "pe", "small");
    let out = project.evals(&["compare", "old", "new"]).out;
    assert!(out.contains("errored and in no score"), "{out}");
    assert!(!out.contains("several models answered") && !out.contains("was requested"), "{out}");
}

#[test]
fn another_model_than_the_requested_one_and_an_unknown_one_are_flagged() {
    let project = Project::new();
    let run = |name: &str, answered: Option<&str>| {
        let mut run = Stored::new(name);
        for n in 0..8 {
            run = run.case(&format!("c{n}"), "large", "p");
        }
        let answer = |it: &mut serde_json::Value| {
            if let Some(model) = answered {
                it["model"]["effective"] = model.into();
            }
        };
        run.results(answer).write(&project, 0);
    };
    run("fine", Some("large-1"));
    run("same", Some("large-1"));
    run("other", Some("small"));
    run("silent", None);
    let says = "look before you trust it: another model answered: large-1 before, small now; agent / large (other): large \
                was requested, but small answered";
    project.evals(&["compare", "fine", "other"]).exits(3).says(says);
    let says =
        "it is unknown which model answered: agent / large (silent); it may be another one than the requested model";
    project.evals(&["compare", "fine", "silent"]).exits(3).says("valid, but:").says(says);
    let found = project.evals(&["compare", "fine", "silent", "--format", "json"]).exits(3).json();
    let about = |about: &str| found["pairs"][0]["doubts"].as_array().unwrap().iter().any(|it| it["about"] == about);
    assert!(about("unknown-model") && !about("model"), "{found}");
    let out = project.evals(&["compare", "fine", "same"]).exits(3).out;
    assert!(!out.contains("was requested") && !out.contains("unknown which model"), "{out}");
    project.evals(&["baseline", "set", "other"]).exits(0);
    let says = "baseline agent / large: large was requested, but small answered";
    project.evals(&["compare", "fine"]).exits(3).says(says);
}

#[test]
fn other_variables_of_the_user_are_flagged_by_their_names() {
    let project = Project::new();
    of_cases("plain", &[(8, "pp")]).write(&project, 0);
    of_cases("effort", &[(8, "pp")]).with("options", json!({"env": ["EFFORT"]})).write(&project, 0);
    of_cases("same", &[(8, "pp")]).with("options", json!({"env": ["EFFORT"]})).write(&project, 0);
    let says = "look before you trust it: the variables from `--env` are not the same: none before, EFFORT now";
    project.evals(&["compare", "plain", "effort"]).exits(3).says(says);
    assert!(!project.evals(&["compare", "same", "effort"]).exits(3).out.contains("--env"));
    project.evals(&["baseline", "set", "plain"]).exits(0);
    project.evals(&["compare", "effort"]).exits(3).says(says);
    // A baseline of an older version does not have them.
    let older = project.read("cases/baseline.json").replace("  \"env\": [],\n", "");
    project.write("cases/baseline.json", &older);
    project.evals(&["compare", "effort"]).exits(3).says("are not the same: unknown before, EFFORT now");
    assert!(!project.evals(&["compare", "plain"]).exits(3).out.contains("--env"));
}

#[test]
fn caveats_name_each_reason_and_what_differs() {
    let project = Project::new();
    let model = |last: &'static str| {
        move |it: &mut serde_json::Value| {
            let case = it["case"].as_str().unwrap();
            it["model"]["effective"] = if case == "c04" { last.into() } else { format!("m-{case}").into() };
        }
    };
    of_cases("old", &[(7, "p")]).results(model("m-old")).write(&project, 0);
    let limits = |it: &mut serde_json::Value| {
        if it["id"] == "c05" || it["id"] == "c06" {
            it["limits"] = json!({"steps": if it["id"] == "c05" { 3 } else { 4 }});
        }
    };
    of_cases("new", &[(7, "p")]).results(model("m-new")).cases(limits).write(&project, 0);
    let says = "2 cases are left out: the limits differ: {} before, {\"steps\":3} now; the limits differ: {} before, \
                {\"steps\":4} now";
    let ran = project.evals(&["compare", "old", "new"]).exits(3).says(says);
    ran.says(
        "another model answered: m-old, m-c00, m-c01, m-c02 and 3 more before, m-new, m-c00, m-c01, m-c02 and 3 more now",
    );
}

#[test]
fn merged_runs_with_the_trials_of_the_same_shards_are_not_taken_for_new_trials() {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", "steps: [{say: done}]");
    }
    for (part, label) in [("1/2", "s1"), ("2/2", "s2")] {
        project.evals(&["run", "--shard", part, "--label", label]).exits(0);
    }
    for label in ["one", "two"] {
        project.evals(&["merge", "s1", "s2", "--label", label]).exits(0);
    }
    let itself = project.evals(&["compare", "one", "two", "--gate"]).exits(2).says("would be compared with itself");
    itself.says("has exactly the same trials");
    let of_one = "look before you trust it: both sides grade the same trials, those of run";
    let of_both = "look before you trust it: both sides grade the same trials, those of runs";
    project.evals(&["compare", "s1", "two"]).exits(3).says(of_one);
    project.evals(&["compare", "two", "s1"]).exits(3).says(of_one);
    project.evals(&["grade", "one", "--label", "judged"]).exits(0);
    project.evals(&["compare", "judged", "two"]).exits(3).says(of_both);
    project.evals(&["baseline", "set", "one"]).exits(0);
    project.evals(&["compare", "two"]).exits(3).says(of_both);
    let page = project.evals(&["report", "two", "--format", "html"]).exits(0).out;
    assert!(page.contains("both sides grade the same trials, those of runs"));
}

#[test]
fn trials_that_were_judged_twice_are_the_same_also_if_their_run_was_removed() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "first"]).exits(0);
    for label in ["judged", "twice"] {
        project.evals(&["grade", "first", "--label", label]).exits(0);
    }
    std::fs::remove_dir_all(project.path(&project.run_named("first"))).unwrap();
    let says = "look before you trust it: both sides grade the same trials, those of run";
    project.evals(&["compare", "judged", "twice"]).exits(3).says(says);
}

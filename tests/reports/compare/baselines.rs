//! `evals baseline`: set, shown, compared with, and refused where it does not fit.

use serde_json::json;

use super::stored::{Stored, of_cases};
use crate::project::Project;

fn project() -> Project {
    let project = Project::new();
    project.write("cases/suite.yaml", "tags: [all]\n");
    of_cases("first", &[(10, "pp"), (4, "pf")]).write(&project, 0);
    project
}

#[test]
fn a_later_run_is_compared_with_it() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0).says("cases/baseline.json: 14 cases, 1 column of run first");
    of_cases("second", &[(4, "pp"), (10, "ff")]).write(&project, 0);
    let found = project.evals(&["compare", "second", "--format", "json"]).exits(1).json();
    let runs = project.evals(&["compare", "first", "second", "--format", "json"]).exits(1).json();
    for figure in ["delta", "interval", "p", "sign_flip_p", "counts", "power", "cases", "cost", "tokens", "duration"] {
        assert_eq!(found["pairs"][0][figure], runs["pairs"][0][figure], "{figure}");
    }
    assert_eq!(found["pairs"][0]["old"], "baseline agent");
    assert_eq!(found["pairs"][0].get("behaviour"), None, "a baseline keeps no traces");
    project
        .evals(&["compare", "second", "--baseline", "cases/baseline.json"])
        .exits(1)
        .says("baseline agent: regressed");
    project.evals(&["compare", "cases/baseline.json", "second"]).exits(1).says("baseline agent: regressed");
    project.evals(&["compare", "first"]).exits(3).says("the baseline was made from this run");
    project.evals(&["baseline", "show"]).exits(0).says("baseline of run first").says("c10 agent 1/2 50.0 % $0.50");
}

#[test]
fn the_file_is_small_whole_and_follows_its_schema() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    let text = project.read("cases/baseline.json");
    insta::assert_snapshot!(
        "baseline",
        text.lines().filter(|line| !line.contains("\"c0")).collect::<Vec<_>>().join("\n")
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let schema = evals::internal::schema::schema("baseline").unwrap();
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).unwrap().iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(project.evals(&["baseline", "show", "--format", "json"]).exits(0).json(), value);
    // The cases beside it are still the only cases.
    project.case("one", "", "steps: [{say: done}]\n");
    project.evals(&["check"]).exits(0);
}

#[test]
fn it_keeps_how_often_its_run_was_looked_at() {
    let project = project();
    of_cases("auto", &[(10, "pp"), (4, "pf")]).with("options", json!({"looks": [2, 4, 8, 16]})).write(&project, 0);
    project.evals(&["baseline", "set", "auto"]).exits(0);
    of_cases("later", &[(4, "pp"), (10, "ff")]).write(&project, 0);
    let found = project.evals(&["compare", "later", "--format", "json"]).exits(1).json();
    let runs = project.evals(&["compare", "auto", "later", "--format", "json"]).exits(1).json();
    assert_eq!(found["pairs"][0]["level"], 0.9875);
    assert_eq!(found["pairs"][0]["interval"], runs["pairs"][0]["interval"]);
}

#[test]
fn it_lies_beside_the_whole_suite_and_a_part_finds_it() {
    let project = Project::new();
    project.write("cases/deep/suite.yaml", "tags: [all]\n");
    let nested = |it: &mut serde_json::Value| {
        if it["id"] != "c09" {
            it["path"] = format!("cases/deep/{}.yaml", it["id"].as_str().unwrap()).into();
        }
    };
    of_cases("whole", &[(10, "pp")]).cases(nested).write(&project, 0);
    project.evals(&["baseline", "set", "whole"]).exits(0).says("cases/baseline.json: 10 cases");
    of_cases("part", &[(9, "pp")]).cases(nested).write(&project, 0);
    project.evals(&["compare", "part"]).exits(3).says("part) vs baseline agent: inconclusive");
    // Nothing above a folder named `cases` is the suite's, and without any it is where all cases lie.
    project.write("suite.yaml", "tags: [all]\n");
    project.evals(&["baseline", "set", "whole"]).exits(0).says("cases/baseline.json: 10 cases");
    let elsewhere = |it: &mut serde_json::Value| {
        let id = it["id"].as_str().unwrap().to_owned();
        it["path"] = format!("other/{}/{id}.yaml", if id == "c00" { "a" } else { "b" }).into();
    };
    project.write("suite.yaml", "");
    std::fs::remove_file(project.path("suite.yaml")).unwrap();
    of_cases("apart", &[(9, "pp")]).cases(elsewhere).write(&project, 0);
    project.evals(&["baseline", "set", "apart"]).exits(0).says("other/baseline.json: 9 cases");
}

#[test]
fn a_part_of_the_suite_does_not_replace_the_whole() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    let before = project.read("cases/baseline.json");
    of_cases("part", &[(9, "pp")]).write(&project, 0);
    let refused = project.evals(&["baseline", "set", "part"]).exits(2);
    refused
        .says("cases/baseline.json has 5 cases that run part does not have: c09, c10")
        .says("--file")
        .says("--replace");
    assert_eq!(project.read("cases/baseline.json"), before);
    project.evals(&["baseline", "set", "part", "--file", "part.json"]).exits(0);
    project.evals(&["baseline", "set", "part", "--replace"]).exits(0).says("9 cases, 1 column of run part");
}

#[test]
fn what_no_run_could_have_written_is_refused() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    let good: serde_json::Value = serde_json::from_str(&project.read("cases/baseline.json")).unwrap();
    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str); 11] = [
        (|case| case["scores"] = json!([7.0, 7.0]), "`c00` of agent: 7 is not a score"),
        (|case| case["scores"] = json!([-1.0, 1.0]), "-1 is not a score"),
        (|case| case["passed"] = json!(1_000_000_000_000_000_000_u64), "there are 2 scores"),
        (|case| case["passed"] = json!(u64::MAX), "there are 2 scores"),
        (|case| case["errored"] = json!(1_000_000_000_000_000_000_u64), "cannot be"),
        (|case| case["broke"] = json!(3), "0 errored trials, of which 3 broke"),
        (|case| case["cost"]["sum"] = json!(-1.0), "not a possible sum of its cost"),
        (
            |case| case["cost"] = json!({"sum": 1.0, "told": u64::MAX, "untold": 1}),
            "18446744073709551615 trials with its cost and 1 without it are impossible",
        ),
        (|case| case["tokens"]["untold"] = json!(1_000_000), "trials with its tokens and 1000000 without it"),
        (|case| case["priced"] = json!(u64::MAX), "18446744073709551615 retried or priced trials are impossible"),
        (|case| case["tried_again"] = json!(1_000_001), "1000001 retried or priced trials are impossible"),
    ];
    for (change, says) in changes {
        let mut bad = good.clone();
        change(&mut bad["arms"][0]["cases"]["c00"]);
        project.write("cases/baseline.json", &bad.to_string());
        project
            .evals(&["compare", "first", "--errors", "fail"])
            .exits(2)
            .says("baseline.json cannot be read")
            .says(says);
    }
    let mut twice = good.clone();
    twice["arms"] = json!([good["arms"][0], good["arms"][0]]);
    project.write("cases/baseline.json", &twice.to_string());
    project.evals(&["compare", "first"]).exits(2).says("agent occurs in it twice");
}

#[test]
fn one_that_does_not_fit_is_refused() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    Stored::new("other").case("another", "default", "pp").write(&project, 0);
    project.evals(&["compare", "other"]).exits(2).says("the baseline is of another suite");
    let set = |args: &[&str]| {
        let mut all = vec!["baseline", "set"];
        all.extend(args);
        project.evals(&all).exits(2)
    };
    of_cases("half", &[(3, "pp")]).write(&project, 2);
    set(&["half"]).says("run half is not finished, so it cannot be a baseline: 2 trials of 6 not run");
    of_cases("again", &[(3, "pp")]).with("derived_from", "first".into()).write(&project, 0);
    set(&["again"]).says("run again contains only the failed trials of run first").says("use run first");
    of_cases("broken", &[(3, "cc")]).write(&project, 0);
    set(&["broken"]).says("no trial of run broken has a score");
    project.write("cases/baseline.json", "{\"baseline\": 9}");
    project.evals(&["compare", "first"]).exits(2).says("version 9").says("use a newer evals");
    project.write("cases/baseline.json", "{}");
    project.evals(&["baseline", "show"]).exits(2).says("it is not a baseline");
    let named = ["compare", "first", "--baseline", "cases/a.yaml"];
    project.write("cases/a.yaml", "prompt: x\n");
    project.evals(&named).exits(2).says("cases/a.yaml").says("so it is no baseline").says("`evals baseline set RUN`");
    project.evals(&["baseline", "show", "--file", "none.json"]).exits(2).says("there is no baseline at none.json");
}

#[test]
fn a_case_with_results_needs_its_properties() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    let mut merged: serde_json::Value = serde_json::from_str(&project.read("cases/baseline.json")).unwrap();
    merged["cases"].as_object_mut().unwrap().remove("c00");
    project.write("cases/baseline.json", &merged.to_string());
    of_cases("second", &[(10, "pp"), (4, "pf")]).write(&project, 0);
    // It would be a new case, and the gates would pass without it.
    project.evals(&["compare", "second", "--gate"]).exits(2).says("`c00` of agent has results, but is not in `cases`");
}

#[test]
fn a_case_that_a_merge_by_hand_left_twice_is_refused() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    let good = project.read("cases/baseline.json");
    of_cases("second", &[(10, "pp"), (4, "pf")]).write(&project, 0);
    project.evals(&["compare", "second", "--gate"]).exits(0);
    let lines: Vec<&str> = good.lines().collect();
    // The properties of the case, and its results, which a merge of two branches can leave twice.
    let places: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].trim_start().starts_with("\"c00\"")).collect();
    assert_eq!(places.len(), 2, "{good}");
    for place in places {
        let theirs = lines[place].replace("\"scores\":[1.0,1.0],\"passed\":2", "\"scores\":[0.0,0.0],\"passed\":0");
        let mut merged = lines.clone();
        merged.insert(place + 1, &theirs);
        project.write("cases/baseline.json", &merged.join("\n"));
        // Lines are counted from 1.
        let says = format!("`c00` occurs twice in the same object at line {}", place + 2);
        let refused = project.evals(&["compare", "second", "--gate"]).exits(2);
        refused.says("baseline.json cannot be read").says(&says).says("remove one of the two");
        project.evals(&["baseline", "show"]).exits(2).says(&says);
    }
}

#[test]
fn a_case_whose_results_a_merge_by_hand_lost_is_refused() {
    let project = project();
    // All trials of the last case are errored, and it is in the baseline nevertheless.
    of_cases("first", &[(10, "pp"), (4, "cc")]).write(&project, 0);
    project.evals(&["baseline", "set", "first"]).exits(0);
    project.evals(&["baseline", "show"]).exits(0).says("c13");
    let mut merged: serde_json::Value = serde_json::from_str(&project.read("cases/baseline.json")).unwrap();
    merged["arms"][0]["cases"].as_object_mut().unwrap().remove("c00");
    project.write("cases/baseline.json", &merged.to_string());
    of_cases("second", &[(10, "ff"), (4, "pp")]).write(&project, 0);
    let says = "`c00` is in `cases`, but has no results in any of `arms`";
    project.evals(&["compare", "second", "--gate"]).exits(2).says("baseline.json cannot be read").says(says);
}

#[test]
fn scores_are_not_replaced_by_errored_trials_or_by_fewer_columns() {
    let project = project();
    project.evals(&["baseline", "set", "first"]).exits(0);
    let before = project.read("cases/baseline.json");
    of_cases("night", &[(10, "pp"), (3, "pf"), (1, "cc")]).write(&project, 0);
    let refused = project.evals(&["baseline", "set", "night"]).exits(2);
    refused
        .says("cases/baseline.json has scores of 1 cell in which run night has none: c13 (agent); run the errored")
        .says("`evals run --resume night --rerun errored`")
        .says("--replace");
    assert_eq!(project.read("cases/baseline.json"), before);
    project.evals(&["baseline", "set", "night", "--replace"]).exits(0);
    // Nothing is lost where there was no score.
    project.evals(&["baseline", "set", "night"]).exits(0);
    project.evals(&["baseline", "set", "first"]).exits(0);
    let two = Stored::new("two").case("c00", "a", "p").case("c00", "b", "p");
    two.write(&project, 0);
    project.evals(&["baseline", "set", "two", "--file", "two.json"]).exits(0);
    Stored::new("one").case("c00", "a", "p").write(&project, 0);
    let refused = project.evals(&["baseline", "set", "one", "--file", "two.json"]).exits(2);
    refused.says("two.json has 1 column that run one does not have: agent / b").says("with all of its harnesses");
    project.evals(&["baseline", "set", "one", "--file", "two.json", "--replace"]).exits(0).says("1 column of run one");
}

#[test]
fn skipped_cells_are_not_to_be_run_again() {
    let project = Project::new();
    project.harness("plain", "adapter: output-only\ncommand: [echo, \"{prompt}\"]\nprompt-via: argument");
    let case = |keys: &str| {
        let keys = format!("{keys}graders: [{{output: {{contains: Do it}}}}]");
        project.case("a", &keys, "steps: [{say: Do it.}]");
    };
    let run = |label: &str| project.evals(&["run", "--harness", "demo", "--harness", "plain", "--label", label]);
    case("");
    run("before").exits(0);
    project.evals(&["baseline", "set", "before"]).exits(0);
    case("requires: {tracing: true}\n");
    run("after");
    let refused = project.evals(&["baseline", "set", "after"]).exits(2);
    let refused = refused.says("skipped: a (plain); write to another file with --file, or pass --replace");
    assert!(!refused.err.contains("--rerun"), "{}", refused.err);
}

#[test]
fn a_case_in_quarantine_keeps_its_earlier_results() {
    let project = Project::new();
    let quarantined = |it: &mut serde_json::Value| {
        if it["id"] == "c03" {
            it["quarantine"] = json!({"until": "2999-01-01", "why": "a proxy"});
        }
    };
    of_cases("first", &[(4, "pp")]).write(&project, 0);
    project.evals(&["baseline", "set", "first"]).exits(0);
    for name in ["second", "third"] {
        of_cases(name, &[(3, "pp"), (1, "ff")]).cases(quarantined).write(&project, 0);
        let set = project.evals(&["baseline", "set", name]).exits(0).says("without cases in quarantine: c03");
        set.says(&format!("3 cases, 1 column of run {name}"))
            .says("the file keeps the earlier results of cases in quarantine: c03");
    }
    project.evals(&["compare", "second", "--gate"]).exits(0);
    // When the quarantine is over, the gate sees that the case fails now.
    of_cases("after", &[(3, "pp"), (1, "ff")]).write(&project, 0);
    let found = project.evals(&["compare", "after", "--gate", "--format", "json"]).exits(1).json();
    let doubts = found["pairs"][0]["doubts"].to_string();
    assert!(doubts.contains("kept from an earlier run") && doubts.contains("c03 (run first)"), "{doubts}");
    // It is not a case that the run lacks.
    let other = (0..4).fold(Stored::new("other"), |it, n| it.case(&format!("c{n:02}"), "b", "p"));
    other.cases(quarantined).write(&project, 0);
    let refused = project.evals(&["baseline", "set", "other"]).exits(2).says("1 column that run other does not have");
    assert!(!refused.err.contains("c03"), "{}", refused.err);
    project.evals(&["baseline", "set", "third", "--replace"]).exits(0);
    let replaced: serde_json::Value = serde_json::from_str(&project.read("cases/baseline.json")).unwrap();
    let named = &replaced["arms"][0]["quarantined"];
    assert!(replaced["cases"].get("c03").is_none() && named.get("c03").is_some(), "{replaced}");
}

#[test]
fn a_gate_does_not_pass_in_silence_over_a_case_that_was_in_quarantine_when_the_first_baseline_was_set() {
    let project = Project::new();
    let quarantined = |it: &mut serde_json::Value| {
        if it["id"] == "c03" {
            it["quarantine"] = json!({"until": "2999-01-01", "why": "a proxy"});
        }
    };
    of_cases("first", &[(4, "pp")]).cases(quarantined).write(&project, 0);
    let says = "the file has no results of 1 case in quarantine, so no gate can find out whether one of them is lost: c03 (it \
                is in quarantine until 2999-01-01: a proxy)";
    project.evals(&["baseline", "set", "first"]).exits(0).says("3 cases, 1 column of run first").says(says);
    project.evals(&["baseline", "show"]).exits(0).says("no results of c03: it is in quarantine until 2999-01-01");
    // The quarantine is over. A case that passes now is not lost, whatever it was.
    let gated = |name: &str, gate: &str, code: i32| {
        let found = project.evals(&["compare", name, "--gate", gate, "--format", "json"]).exits(code).json();
        assert_eq!(found["pairs"][0]["unpaired"][0]["reason"], "quarantined-in-old", "{found}");
        found["gate"]["gates"][0]["text"].as_str().unwrap().to_owned()
    };
    of_cases("kept", &[(4, "pp")]).write(&project, 0);
    gated("kept", "no-regressions", 0);
    of_cases("lost", &[(3, "pp"), (1, "ff")]).write(&project, 0);
    let text = gated("lost", "no-regressions", 3);
    assert!(text.contains("not passing now, and unknown whether that is new") && text.contains("c03 (0/2)"), "{text}");
    // What a run of other cases sets as a baseline still names it.
    of_cases("part", &[(3, "pp")]).write(&project, 0);
    project.evals(&["baseline", "set", "part"]).exits(0).says("the file has no results of 1 case in quarantine");
    gated("lost", "no-regressions", 3);
    // The margin gate names it.
    of_cases("many", &[(3, "pp"), (1, "ff"), (80, "pp")]).write(&project, 0);
    let first = of_cases("wide", &[(84, "pp")]).cases(quarantined);
    first.write(&project, 0);
    project.evals(&["baseline", "set", "wide"]).exits(0);
    let text = gated("many", "margin=0.05", 0);
    assert!(text.ends_with("without cases that the baseline lacks because they were in quarantine: c03"), "{text}");
    // A baseline of a run in which it counts has its results.
    project.evals(&["baseline", "set", "many"]).exits(0);
    assert!(!project.read("cases/baseline.json").contains("quarantined"));
}

#[test]
fn a_case_stays_named_until_a_run_has_a_score_of_it() {
    let project = Project::new();
    let quarantined = |it: &mut serde_json::Value| {
        let is_regression = it["id"] == "c03";
        if is_regression {
            it["kind"] = "regression".into();
            it["quarantine"] = json!({"until": "2999-01-01", "why": "a proxy"});
        }
    };
    let ended = |it: &mut serde_json::Value| {
        quarantined(it);
        it.as_object_mut().unwrap().remove("quarantine");
    };
    let skips = |it: &mut serde_json::Value| {
        if it["verdict"] == "ungraded" {
            it["verdict"] = "skipped".into();
        }
    };
    of_cases("first", &[(4, "pp")]).cases(quarantined).write(&project, 0);
    project.evals(&["baseline", "set", "first"]).exits(0);
    of_cases("lost", &[(3, "pp"), (1, "ff")]).cases(ended).write(&project, 0);
    // The run skips the case, or has no score of it; or it skips the case while it is in quarantine.
    of_cases("skipped", &[(3, "pp"), (1, "uu")]).cases(ended).results(skips).write(&project, 0);
    of_cases("aside", &[(3, "pp"), (1, "uu")]).cases(quarantined).results(skips).write(&project, 0);
    of_cases("crashed", &[(3, "pp"), (1, "cc")]).cases(ended).write(&project, 0);
    for name in ["skipped", "aside", "crashed"] {
        let set = project.evals(&["baseline", "set", name]).exits(0).says(&format!("3 cases, 1 column of run {name}"));
        set.says("the file has no results of 1 case in quarantine").says("c03 (it is in quarantine until 2999-01-01");
        let gated = project.evals(&["compare", "lost", "--gate"]).exits(3);
        gated.says("not passing now, and unknown whether that is new").says("c03 (0/2)");
    }
    // What is replaced is told.
    of_cases("part", &[(3, "pp")]).cases(ended).write(&project, 0);
    let replaced = project.evals(&["baseline", "set", "part", "--replace"]).exits(0);
    replaced.says("the file that was replaced named 1 case without results because of a quarantine").says("lost: c03");
    assert!(!project.read("cases/baseline.json").contains("c03"));
    let again = project.evals(&["baseline", "set", "part", "--replace"]).exits(0);
    assert!(!again.err.contains("c03"), "{}", again.err);
}

#[test]
fn a_case_stays_named_until_each_arm_has_a_score_of_it() {
    let project = Project::new();
    let run = |name: &str, of_q: [&str; 2], quarantine: bool| {
        let run = Stored::new(name).case("a", "m1", "pp").case("a", "m2", "pp");
        let change = |it: &mut serde_json::Value| {
            if it["id"] == "q" {
                it["kind"] = "regression".into();
            }
            if quarantine && it["id"] == "q" {
                it["quarantine"] = json!({"until": "2999-01-01", "why": "a proxy"});
            }
        };
        run.case("q", "m1", of_q[0]).case("q", "m2", of_q[1]).cases(change).write(&project, 0);
    };
    run("first", ["pp", "ff"], true);
    project.evals(&["baseline", "set", "first"]).exits(0).says("1 case in quarantine").says("lost: q (it is in");
    run("crashed", ["pp", "cc"], false);
    let set = || project.evals(&["baseline", "set", "crashed"]).exits(0);
    set().says("the file has no results of 1 case in quarantine").says("lost: q of agent / m2 (it is in quarantine");
    project.evals(&["baseline", "show"]).exits(0).says("no results of q of agent / m2: it is in quarantine");
    run("lost", ["pp", "ff"], false);
    let gated = project.evals(&["compare", "lost", "--gate"]).exits(3);
    gated.says("not passing now, and unknown whether that is new").says("q (0/2)");
    // The score of the other arm counts.
    run("lost-too", ["ff", "pp"], false);
    project.evals(&["compare", "lost-too", "--gate"]).exits(1);
    let replaced = project.evals(&["baseline", "set", "crashed", "--replace"]).exits(0);
    replaced.says("the file that was replaced named 1 case without results because of a quarantine").says("lost: q");
    // With a score of each arm, nothing is lacked.
    project.evals(&["baseline", "set", "first", "--replace"]).exits(0);
    set();
    project.evals(&["baseline", "set", "lost"]).exits(0);
    assert!(!project.read("cases/baseline.json").contains("quarantined"));
}

#[test]
fn an_arm_of_which_all_cases_were_in_quarantine_passes_the_gate_if_they_pass() {
    let project = Project::new();
    let run = |name: &str, of_q: &str, quarantine: bool| {
        let run = Stored::new(name).case("a", "m1", "pp").case("q", "m2", of_q);
        let change = |it: &mut serde_json::Value| {
            if quarantine && it["id"] == "q" {
                it["quarantine"] = json!({"until": "2999-01-01", "why": "a proxy"});
            }
        };
        run.cases(change).write(&project, 0);
    };
    run("first", "ff", true);
    project.evals(&["baseline", "set", "first"]).exits(0);
    run("kept", "pp", false);
    let kept = project.evals(&["compare", "kept", "--gate", "--format", "json"]).exits(0).json();
    let texts = kept["gate"]["gates"].to_string();
    assert!(texts.contains("because its cases were in quarantine; none of them can be lost: q"), "{texts}");
    assert!(!texts.contains("skipped"), "{texts}");
    run("lost", "ff", false);
    project.evals(&["compare", "lost", "--gate"]).exits(3).says("not passing now, and unknown whether that is new");
    // What agents reach that could read their case keeps nothing.
    let warning = json!({"code": "case_in_workspace", "message": "m", "files": ["q.yaml"], "count": 1});
    let read = Stored::new("read").case("a", "m1", "pp").case("q", "m2", "pp");
    let read = read.results(|it| it["warnings"] = if it["case"] == "q" { json!([warning]) } else { json!([]) });
    read.write(&project, 0);
    project.evals(&["compare", "read", "--gate"]).exits(3).says("agents could read files of their own case: q");
    // The run of this arm alone is one of the same suite.
    Stored::new("alone").case("q", "m2", "pp").write(&project, 0);
    project.evals(&["compare", "alone"]).exits(3).says("it was in quarantine when the baseline was set");
}

/// Writes a run of arms with a case `a` that passes and a case `q` with these outcomes: `u` is a trial that was skipped, and
/// without a trial the run does not have the case. `keys` are added to the record of `q`.
fn with_q(project: &Project, name: &str, of_q: &[(&str, &str)], keys: &serde_json::Value) {
    let run = of_q.iter().fold(Stored::new(name), |run, (arm, trials)| {
        let run = run.case("a", arm, "pp");
        if trials.is_empty() { run } else { run.case("q", arm, trials) }
    });
    let change = |it: &mut serde_json::Value| {
        if it["id"] == "q" {
            keys.as_object().unwrap().iter().for_each(|(key, value)| it[key] = value.clone());
        }
    };
    run.cases(change).results(skip_ungraded).write(project, 0);
}

fn skip_ungraded(it: &mut serde_json::Value) {
    if it["verdict"] == "ungraded" {
        it["verdict"] = "skipped".into();
    }
}

fn regression() -> serde_json::Value {
    json!({"kind": "regression"})
}

fn in_quarantine() -> serde_json::Value {
    json!({"kind": "regression", "quarantine": {"until": "2999-01-01", "why": "a proxy"}})
}

#[test]
fn a_named_case_that_a_run_skips_or_does_not_have_is_treated_as_one_with_results() {
    let project = Project::new();
    with_q(&project, "first", &[("m1", "pp")], &in_quarantine());
    project.evals(&["baseline", "set", "first"]).exits(0);
    let gated = |name: &str, gate: &str, code: i32| project.evals(&["compare", name, "--gate", gate]).exits(code);
    with_q(&project, "skipped", &[("m1", "uu")], &regression());
    let skipped = gated("skipped", "no-regressions", 3).says("skipped now, and unknown whether passed before");
    skipped.says("when the baseline was set, and the new side skipped it").says("in 1 of the 2 cases of the old side");
    gated("skipped", "cases=0.5", 3);
    // Another case may be missing if enough cases have a score.
    with_q(&project, "capability", &[("m1", "uu")], &json!({}));
    gated("capability", "no-regressions", 3);
    gated("capability", "cases=0.5", 0).says("not checked, because only 50.0 % of the cases need a score: q");
    // A run of a part of the suite can pass.
    with_q(&project, "part", &[("m1", "")], &json!({}));
    gated("part", "no-regressions", 3).says("when the baseline was set, and the new side does not have it");
    gated("part", "cases=0.5", 0);
    // While the quarantine lasts, the case counts in nothing.
    with_q(&project, "aside", &[("m1", "uu")], &in_quarantine());
    gated("aside", "no-regressions", 0);
}

#[test]
fn an_arm_that_skips_a_named_case_still_lacks_it() {
    let project = Project::new();
    with_q(&project, "first", &[("m1", "pp"), ("m2", "pp")], &in_quarantine());
    project.evals(&["baseline", "set", "first"]).exits(0);
    with_q(&project, "partial", &[("m1", "pp"), ("m2", "uu")], &regression());
    let set =
        project.evals(&["baseline", "set", "partial"]).exits(0).says("lost: q of agent / m2 (it is in quarantine");
    let set = set.says("run partial skipped q of agent / m2: --replace drops the names");
    assert!(!set.err.contains("set the baseline again"), "{}", set.err);
    project.evals(&["baseline", "show"]).exits(0).says("no results of q of agent / m2: it is in quarantine");
    with_q(&project, "lost", &[("m1", "pp"), ("m2", "ff")], &regression());
    project.evals(&["compare", "lost", "--gate"]).exits(3).says("q (0/2)");
    // An arm that skipped the case while it was in quarantine never lacks it.
    let project = Project::new();
    let of_q = [("m1", "pp"), ("m2", "uu")];
    with_q(&project, "first", &of_q, &in_quarantine());
    project.evals(&["baseline", "set", "first"]).exits(0).says("lost: q of agent / m1 (it is");
    with_q(&project, "kept", &of_q, &regression());
    project.evals(&["compare", "kept", "--gate"]).exits(0);
    project.evals(&["baseline", "set", "kept"]).exits(0);
    assert!(!project.read("cases/baseline.json").contains("quarantined"));
}

#[test]
fn a_file_that_names_cases_for_all_arms_is_read() {
    let project = Project::new();
    with_q(&project, "first", &[("m1", "pp"), ("m2", "pp")], &in_quarantine());
    project.evals(&["baseline", "set", "first"]).exits(0);
    let mut earlier: serde_json::Value = serde_json::from_str(&project.read("cases/baseline.json")).unwrap();
    let arms = earlier["arms"].as_array_mut().unwrap().iter_mut();
    let named: Vec<_> = arms.map(|arm| arm.as_object_mut().unwrap().remove("quarantined").unwrap()).collect();
    earlier["quarantined"] = named[0].clone();
    project.write("cases/baseline.json", &earlier.to_string());
    project.evals(&["baseline", "show"]).exits(0).says("no results of q: it is in quarantine until 2999-01-01");
    with_q(&project, "lost", &[("m1", "pp"), ("m2", "ff")], &regression());
    project.evals(&["compare", "lost", "--gate"]).exits(3).says("q (0/2)");
}

#[test]
fn an_arm_of_which_all_cases_were_in_quarantine_is_not_lost_in_silence() {
    let project = Project::new();
    let quarantined = |it: &mut serde_json::Value| {
        if it["id"] == "q" {
            it["quarantine"] = in_quarantine()["quarantine"].clone();
        }
    };
    Stored::new("first").case("a", "m1", "pp").case("q", "m2", "pp").cases(quarantined).write(&project, 0);
    project.evals(&["baseline", "set", "first"]).exits(0);
    Stored::new("one").case("a", "m1", "pp").write(&project, 0);
    let gone = project.evals(&["compare", "one", "--gate"]).exits(3);
    gone.says("so 0 of its 1 case has a score in the new side")
        .says("without results in the baseline, because of a quarantine: q");
    let set = |more: &[&str], code: i32| project.evals(&[&["baseline", "set", "one"][..], more].concat()).exits(code);
    set(&[], 2).says("1 column that run one does not have: agent / m2");
    // Nor is it if it skips them.
    Stored::new("skipped").case("a", "m1", "pp").case("q", "m2", "uu").results(skip_ungraded).write(&project, 0);
    project.evals(&["compare", "skipped", "--gate"]).exits(3).says("skipped now, and unknown whether passed before");
    set(&["--replace"], 0).says("lost: q of agent / m2");
}

#[test]
fn a_note_says_how_the_name_of_a_deleted_case_is_dropped() {
    let project = Project::new();
    with_q(&project, "first", &[("m1", "pp")], &in_quarantine());
    project.evals(&["baseline", "set", "first"]).exits(0).says("set the baseline again from a run with their scores");
    with_q(&project, "gone", &[("m1", "")], &json!({}));
    let set = project.evals(&["baseline", "set", "gone"]).exits(0);
    let set = set.says("run gone does not have q: --replace drops the names of deleted cases");
    assert!(!set.err.contains("set the baseline again"), "{}", set.err);
    project.evals(&["baseline", "set", "gone", "--replace"]).exits(0);
    assert!(!project.read("cases/baseline.json").contains("quarantined"));
}

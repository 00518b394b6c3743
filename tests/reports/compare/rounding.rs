//! Figures near a bound: a score below 1 is shown as 1.00 nowhere, and one above 0 never as 0.00.

use serde_json::Value;

use super::stored::of_cases;
use crate::project::Project;

/// Text in which a figure stands as it should not.
fn shows(text: &str, figure: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || c == '.');
    text.match_indices(figure)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + figure.len()..].chars().next()))
}

#[test]
fn no_report_of_a_run_rounds_a_score_to_a_bound() {
    for (value, near, wrong) in
        [("0.9996", "0.9996", "1.00"), ("0.0004", "0.0004", "0.00"), ("0.9999999", ">0.9999", "1.00")]
    {
        let project = Project::new();
        let says = format!("{{\"passed\": false, \"value\": {value}}}");
        project.write("check.sh", &format!("cat >/dev/null\necho '{says}'\n"));
        let script = project.path("check.sh").canonicalize().unwrap();
        project.case(
            "a",
            &format!("graders: [{{script: {{run: [sh, '{}']}}}}]", script.display()),
            "steps: [{say: done}]\n",
        );
        project.evals(&["run"]).exits(1);
        for args in [
            &["report", "latest", "--format", "table"][..],
            &["report", "latest", "--format", "markdown"],
            &["report", "latest", "--format", "junit"],
            &["show", "latest", "a"],
        ] {
            let text = project.evals(args).out;
            // The end of an interval may be a bound.
            let text = text.replace("0.00 to ", "").replace(" to 1.00", "").replace("0.00–", "").replace("–1.00", "");
            assert!(!shows(&text, wrong), "{args:?}: {text}");
            assert!(text.contains(near) || text.contains(&near.replace('>', "&gt;")), "{args:?}: {text}");
        }
    }
}

#[test]
fn no_comparison_rounds_a_share_a_difference_or_a_p_to_a_bound() {
    let project = Project::new();
    let nearly = |it: &mut Value| {
        if it["case"] == "c00" {
            it["score"] = 0.98.into();
        }
    };
    // 2,500 trials of which one crashed, and a suite of 60 cases that scores 0.9997.
    of_cases("old", &[(60, &"p".repeat(42))]).write(&project, 0);
    of_cases("new", &[(59, &"p".repeat(42)), (1, &format!("{}c", "p".repeat(41)))]).results(nearly).write(&project, 0);
    let page = project.evals(&["compare", "old", "new"]).out;
    for text in ["99.97 %", "-0.03 pp", "99.96 %", "2519 of 2520"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let row = page.lines().find(|line| line.contains("agent (new)") && line.contains("99.96 %")).unwrap();
    assert!(!shows(row.split('[').next().unwrap(), "100.0") && row.contains("99.97 %"), "{row}");
    project.evals(&["baseline", "set", "new", "--file", "b.json"]).exits(0);
    let shown = project.evals(&["baseline", "show", "--file", "b.json"]).exits(0).out;
    assert!(shown.lines().any(|line| line.contains("c00") && line.contains("98.0 %")), "{shown}");
    // A score that misses its gate is not shown as if it met it.
    let found = project.evals(&["compare", "old", "new", "--fail-under", "0.9999"]).exits(1);
    found.says("scores 99.97 %, below 99.99 %");
}

#[test]
fn a_ratio_whose_interval_is_useless_says_so_and_no_section_is_empty() {
    let project = Project::new();
    let costs = |name: &str, second: f64| {
        let cost = move |it: &mut Value| {
            it["metrics"]["cost_usd"] = if it["case"] == "c00" { 0.5 } else { second }.into();
            it["shape"] = serde_json::json!([]);
            it["metrics"].as_object_mut().unwrap().remove("tool_calls_by_kind");
        };
        of_cases(name, &[(2, "pp")]).results(cost).write(&project, 0);
    };
    costs("old", 0.01);
    costs("new", 5.0);
    let page = project.evals(&["compare", "old", "new"]).says("(interval too wide to be useful)").out;
    assert!(!page.contains("where behaviour differs"), "{page}");
    let lines: Vec<&str> = page.lines().collect();
    let is_title = |line: &&str| ["arms", "cases, worst loss first", "where behaviour differs"].contains(line);
    for (number, _) in lines.iter().enumerate().filter(|(_, line)| is_title(line)) {
        assert!(lines.get(number + 1).is_some_and(|next| !next.trim().is_empty()), "{page}");
    }
}

#[test]
fn a_ratio_far_from_1_has_its_interval() {
    let project = Project::new();
    let costs = |name: &str, first: f64, second: f64| {
        let cost = move |it: &mut Value| {
            it["metrics"]["cost_usd"] = if it["case"] == "c00" { first } else { second }.into();
        };
        of_cases(name, &[(2, "pp")]).results(cost).write(&project, 0);
    };
    costs("old", 0.001, 0.001);
    costs("new", 1.0, 1.02);
    // The mean of ln 1000 and ln 1020, and 12.706 standard errors of it.
    project.evals(&["compare", "old", "new"]).says("new over old: cost 1010 [891, 1145]");
}

#[test]
fn a_figure_stays_on_its_side_of_a_bound_and_the_bound_is_shown_as_it_was_written() {
    let project = Project::new();
    of_cases("old", &[(3, "p")]).write(&project, 0);
    of_cases("new", &[(2, "p"), (1, "f")]).write(&project, 0);
    let under = |least: &str, code: i32| project.evals(&["compare", "old", "new", "--fail-under", least]).exits(code);
    under("0.6667", 1).says("scores 66.667 %, below 66.67 %");
    under("0.6666", 0).says("scores 66.7 % of at least 66.66 %");
}

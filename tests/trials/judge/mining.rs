//! `evals mine --rewrite`: a model writes the prompts, and they are checked like others.

use serde_json::json;

use super::at;
use super::server::{Does, Service};
use crate::mine::{BASE, FIXED, History, TEST_ADD, TEST_DOUBLE};
use crate::project::Project;

/// Mines a fix whose prompt a model writes, and returns the text of the case.
fn rewritten(project: &Project) -> String {
    let mut history = History::new(project, "repo");
    history.commit("Begin", &[("calc.py", Some(BASE)), ("tests/test_double.py", Some(TEST_DOUBLE))]);
    let fixed = format!("{FIXED}\n\nchecked_sum = add\n");
    history.commit("Use checked_sum", &[("calc.py", Some(&fixed)), ("tests/test_add.py", Some(TEST_ADD))]);
    let words = ["mine", "repo", "--sandbox", "none", "--repeat", "1", "--rewrite", "anthropic:m", "--format", "json"];
    let mined = project.evals(&words).exits(0).json();
    project.read(mined["candidates"][0]["case"].as_str().unwrap())
}

#[test]
#[ignore = "slow: mines a history"]
fn a_rewritten_prompt_needs_a_review_only_if_it_leaks() {
    for (does, needs_review, has) in [
        (
            Does::Says(json!({"prompt": "The sum of two numbers is wrong."}).to_string()),
            false,
            "The sum of two numbers is wrong.",
        ),
        (Does::Says(json!({"prompt": "Add checked_sum."}).to_string()), true, "- checked_sum"),
        (Does::Says("I would rather not".to_owned()), true, "# The prompt could not be rewritten by anthropic:m:"),
        (Does::Refuses(500, None), true, "# The prompt could not be rewritten by anthropic:m:"),
    ] {
        let shown = format!("{does:?}");
        let service = Service::start(move |_, _| does.clone());
        let text = rewritten(&at(&service));
        assert_eq!(text.contains("review: needed"), needs_review, "{shown}: {text}");
        assert!(text.contains(has), "{shown}: {text}");
        let user = &service.got()[0].user;
        assert!(user.contains("Use checked_sum") && user.contains("+checked_sum = add"), "{user}");
    }
}

#[test]
fn a_model_that_cannot_be_asked_is_told_before_anything_starts() {
    let project = Project::new();
    History::new(&project, "repo").commit("Begin", &[("a.py", Some(""))]);
    project.evals(&["mine", "repo", "--rewrite", "anthropic:m"]).exits(2).says("ANTHROPIC_API_KEY");
    project.evals(&["mine", "repo", "--rewrite", "harness:demo"]).exits(2).says("a harness cannot rewrite prompts");
}

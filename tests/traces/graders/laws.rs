//! Laws of `tool-calls` that hold for every session.

use proptest::prelude::*;

use super::Trial;

/// A call of a random session: kind, path and how it ended.
fn calls() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    proptest::collection::vec((0_usize..3, 0_usize..3, 0_usize..4), 0..7)
}

fn session(calls: &[(usize, usize, usize)]) -> Trial {
    let mut events = String::new();
    for (n, (kind, path, status)) in calls.iter().enumerate() {
        let kind = ["read", "edit", "delete"][*kind];
        let status = ["ok", "error", "denied", "cancelled"][*status];
        let (call, result) = (2 * n, 2 * n + 1);
        events += &format!(
            "{{\"seq\":{call},\"type\":\"tool_call\",\"call\":\"c{n}\",\"step\":{n},\"kind\":\"{kind}\",\"input\":{{\"path\":\"f{path}\"}}}}\n"
        );
        events += &format!("{{\"seq\":{result},\"type\":\"tool_result\",\"call\":\"c{n}\",\"status\":\"{status}\"}}\n");
    }
    Trial::of(&events)
}

fn passed(trial: &Trial, grader: &str) -> bool {
    trial.judge(grader).passed.unwrap()
}

proptest! {
    #![proptest_config(crate::properties::tries(64))]

    #[test]
    fn more_calls_never_mend_what_is_forbidden(calls in calls(), more in calls()) {
        let (less, more) = (session(&calls), session(&[calls.clone(), more].concat()));
        for grader in ["tool-calls: {forbid: [{kind: delete}]}", "tool-calls: {max: 2}", "tool-calls: {none: true}",
                       "tool-calls: {max-by-kind: {edit: 1}}"] {
            prop_assert!(passed(&less, grader) || !passed(&more, grader), "{}", grader);
        }
    }

    #[test]
    fn more_calls_never_break_what_is_required(calls in calls(), more in calls()) {
        let (less, more) = (session(&calls), session(&[calls.clone(), more].concat()));
        for grader in ["tool-calls: {require: [{kind: edit}, {path: f1}, {path: 'f*', count: {min: 2}}]}",
                       "tool-calls: {order: [{kind: read}, {kind: edit}]}", "tool-calls: {min: 2}"] {
            prop_assert!(!passed(&less, grader) || passed(&more, grader), "{}", grader);
        }
    }

    #[test]
    fn the_order_of_the_entries_does_not_matter(calls in calls()) {
        let trial = session(&calls);
        let value = |grader: &str| trial.judge(grader).value.unwrap().get();
        prop_assert_eq!(
            value("tool-calls: {require: [{path: 'f*'}, {kind: edit}, {path: f1}]}"),
            value("tool-calls: {require: [{path: f1}, {path: 'f*'}, {kind: edit}]}")
        );
    }

    #[test]
    fn wanted_calls_are_carried_out_and_forbidden_ones_attempted(calls in calls()) {
        let trial = session(&calls);
        let tried = calls.iter().any(|(kind, ..)| *kind == 2);
        let done = calls.iter().any(|(kind, _, status)| *kind == 2 && *status < 2);
        prop_assert_eq!(passed(&trial, "tool-calls: {require: [{kind: delete}]}"), done);
        prop_assert_eq!(passed(&trial, "tool-calls: {forbid: [{kind: delete}]}"), !tried);
    }
}

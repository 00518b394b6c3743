//! Random orders of everything that the agent can do: the laws hold, and the engine comes to an end.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::exchange::{Asked, Exchange};
use super::script::{KINDS, call, described, end, finish, named, others, permission, say, stand, turns};
use crate::laws;

/// What the trial is made of.
#[derive(Debug, Clone)]
struct Order {
    turns: Vec<Vec<Value>>,
    policy: usize,
    limit: usize,
}

/// The policies, and which kinds each takes, the first that is offered.
const POLICIES: [(&str, &[&str]); 4] = [
    ("auto-approve", &["allow_once", "allow_always"]),
    ("auto-reject", &["reject_once", "reject_always"]),
    ("{scripted: {rules: [{when: {path: 'c0.txt'}, answer: cancel}], default: cancel}}", &[]),
    ("{scripted: {default: allow-always}}", &["allow_always", "allow_once"]),
];

/// Limits that most orders do not reach, or at once, or only where the agent never answers.
const LIMITS: [&str; 4] = ["{}", "{tool-calls: 1}", "{steps: 1}", "{time: 3s}"];

fn wait() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("now"), 4 => Just("later"), 1 => Just("never"), 1 => Just("give-up")]
}

fn step() -> impl Strategy<Value = Value> {
    let id = || (0..3u8).prop_map(|n| format!("c{n}"));
    let kinds = prop::sample::subsequence(KINDS.to_vec(), 0..=4).prop_shuffle();
    let about = prop_oneof![id().prop_map(|id| named(&id)), id().prop_map(|id| described(&id))];
    let asked = (about, kinds, wait(), prop::bool::weighted(0.15)).prop_map(|(about, kinds, wait, foreign)| {
        let mut step = permission(about, &kinds, wait);
        if foreign {
            step["ask"]["params"]["sessionId"] = json!("another-session");
        }
        step
    });
    prop_oneof![
        3 => (id(), prop::sample::select(vec!["read", "edit", "execute"])).prop_map(|(id, kind)| call(&id, kind)),
        2 => (id(), prop::sample::select(vec!["in_progress", "completed", "failed"])).prop_map(|(id, it)| finish(&id, it)),
        1 => Just(say("hm")),
        1 => (0..8u64).prop_map(|ms| json!({"sleep": ms})),
        6 => asked,
        4 => (0..others("now").len(), wait()).prop_map(|(n, wait)| others(wait).swap_remove(n)),
    ]
}

/// A turn: things to do, an end, and things to do after it; or no end at all, which only a limit ends.
fn turn() -> impl Strategy<Value = Vec<Value>> {
    let reasons = prop_oneof![6 => Just("end_turn"), 1 => Just("refusal"), 1 => Just("max_tokens")];
    (prop::collection::vec(step(), 0..14), reasons, prop::collection::vec(step(), 0..3), prop::bool::weighted(0.1))
        .prop_map(|(mut script, reason, after, deaf)| {
            if deaf {
                script.insert(script.len() / 2, json!({"deaf": true}));
            }
            script.push(end(reason));
            script.extend(after);
            script
        })
}

fn order() -> impl Strategy<Value = Order> {
    let endless = prop::bool::weighted(0.1);
    (prop::collection::vec(turn(), 1..3), 0..POLICIES.len(), 0..LIMITS.len(), endless).prop_map(
        |(mut turns, policy, mut limit, endless)| {
            if endless {
                turns.last_mut().unwrap().retain(|step| step.get("end").is_none());
                limit = LIMITS.len() - 1;
            }
            Order { turns, policy, limit }
        },
    )
}

/// Where the engine heard nothing else before it answered, its answer is the policy's, and no other.
fn as_the_policy_says(asked: &Asked, wanted: &[&str]) -> Result<(), String> {
    let offered: Vec<&str> =
        asked.params["options"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
    let expected = wanted.iter().copied().find(|kind| offered.contains(kind));
    match asked.chosen() {
        None if expected.is_none() || !asked.alone || !asked.may() => Ok(()),
        chosen if chosen == expected => Ok(()),
        chosen => Err(format!("{chosen:?} was chosen, and not {expected:?}, of {offered:?}")),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        max_shrink_iters: 60,
        ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "slow: builds an agent"]
    fn whatever_the_order_every_request_is_answered_once_and_none_wrongly(order in order()) {
        is_answered(&order)?;
    }
}

/// Runs an agent with these requests, and holds the answers to the policy.
fn is_answered(order: &Order) -> Result<(), TestCaseError> {
    let (policy, wanted) = POLICIES[order.policy];
    let stand = stand();
    stand.case(
        "a",
        &format!(
            "{}\ninteraction: {policy}\nlimits: {}\nworkspace: {{files: {{kept.txt: \"one\\ntwo\\n\"}}}}\n\
         graders: [{{files: {{exists: [kept.txt]}}}}]",
            turns(&order.turns),
            LIMITS[order.limit],
        ),
    );
    let ran = stand.run(&[]);
    // A limit may fail it, and a prompt that was not sent leaves it ungraded. Whatever the agent asks, the run has no error.
    let is_ungraded = ran.code == 3 && ran.out.contains("not every prompt was sent") && !ran.out.contains("ERRORED");
    prop_assert!([0, 1].contains(&ran.code) || is_ungraded, "{ran:?}");
    let trial = stand.trial("a");
    prop_assert!(laws::check(&trial.text).is_ok());
    let exchange = Exchange::of(&trial);
    prop_assert!(exchange.is_ok(), "{}\n{}", exchange.err().unwrap_or_default(), trial.text);
    for asked in exchange.unwrap().asked.iter().filter(|it| it.method == "session/request_permission") {
        let said = as_the_policy_says(asked, wanted);
        // A rule about what the agent did not show rejects the request.
        let undecided = trial.text.contains("cannot be decided");
        if undecided && asked.chosen().is_some_and(|kind| kind.starts_with("reject")) {
            continue;
        }
        prop_assert!(said.is_ok(), "{}\n{}", said.unwrap_err(), trial.text);
    }
    Ok(())
}

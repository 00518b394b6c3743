//! Single exchanges with the agent made with the SDK, each about one thing.

use serde_json::{Value, json};

use super::exchange::Exchange;
use super::script::{KINDS, ask, call, described, end, finish, named, others, permission, say, stand, turns};
use crate::live::Trial;

/// Plays one script, and gives the trial with what was asked.
fn play(keys: &str, script: Vec<Value>, exit: i32) -> (Trial, Exchange) {
    let stand = stand();
    stand.case("a", &format!("{}\n{keys}", turns(&[script])));
    stand.run(&[]).exits(exit);
    let trial = stand.trial("a");
    let exchange = Exchange::of(&trial).unwrap_or_else(|broken| panic!("{broken}\n{}", trial.text));
    (trial, exchange)
}

fn notices(trial: &Trial) -> Vec<&str> {
    trial.of("notice").iter().map(|notice| notice["code"].as_str().unwrap()).collect()
}

#[test]
#[ignore = "slow: builds an agent"]
fn of_every_set_of_options_the_policy_takes_the_kind_it_means() {
    // Every subset of the kinds, each about a call of its own.
    let subset = |bits: usize| (0..4).filter(|n| bits & (1 << n) != 0).map(|n| KINDS[n]).collect::<Vec<_>>();
    let mut script = Vec::new();
    for bits in 0..16 {
        script.push(call(&format!("c{bits}"), "edit"));
        script.push(permission(named(&format!("c{bits}")), &subset(bits), "now"));
    }
    script.push(end("end_turn"));
    let stand = stand();
    let policies: [(&str, &str, &[&str]); 6] = [
        ("approve", "auto-approve", &["allow_once", "allow_always"]),
        ("reject", "auto-reject", &["reject_once", "reject_always"]),
        ("always", "{scripted: {default: allow-always}}", &["allow_always", "allow_once"]),
        ("never", "{scripted: {default: reject-always}}", &["reject_always", "reject_once"]),
        ("cancel", "{scripted: {default: cancel}}", &[]),
        ("named", "{use: read-only}", &["reject_once", "reject_always"]),
    ];
    for (case, policy, _) in policies {
        stand.case(case, &format!("{}\ninteraction: {policy}", turns(std::slice::from_ref(&script))));
    }
    stand.run(&[]).exits(0);
    for (case, policy, wanted) in policies {
        let trial = stand.trial(case);
        let exchange = Exchange::of(&trial).unwrap();
        for (bits, asked) in exchange.asked.iter().enumerate() {
            let offered = subset(bits);
            let expected = wanted.iter().copied().find(|kind| offered.contains(kind));
            assert_eq!(asked.chosen(), expected, "{policy}, of {offered:?}");
        }
        assert_eq!(exchange.asked.len(), 16);
        // Where only the other polarity is offered, or nothing, that is told.
        let cancelled = trial.of("permission_response").iter().filter(|it| it["outcome"] == "cancelled").count();
        assert_eq!(cancelled, if wanted.is_empty() { 16 } else { 4 }, "{policy}");
        let told = notices(&trial).iter().filter(|code| **code == "permission").count();
        assert_eq!(told, if wanted.is_empty() { 0 } else { 8 }, "{policy}");
    }
}

#[test]
#[ignore = "slow: builds an agent"]
fn what_nobody_may_ask_for_is_cancelled_and_told() {
    let of_another = |call: Value| {
        let mut ask = permission(call, &KINDS, "now");
        ask["ask"]["params"]["sessionId"] = json!("another-session");
        ask
    };
    let script = vec![
        call("c0", "edit"),
        of_another(named("c0")),
        of_another(described("c1")),
        permission(named("nobody"), &KINDS, "now"),
        permission(described("c2"), &KINDS, "now"),
        finish("c0", "completed"),
        permission(named("c0"), &KINDS, "now"),
        end("end_turn"),
        permission(named("c2"), &KINDS, "later"),
        permission(described("c3"), &KINDS, "later"),
    ];
    let (trial, exchange) = play("", script, 0);
    let chosen: Vec<_> = exchange.asked.iter().map(super::exchange::Asked::chosen).collect();
    assert_eq!(chosen, [None, None, None, Some("allow_once"), None, None, None]);
    let reasons: Vec<&str> =
        trial.of("permission_response").iter().map(|it| it["reason"].as_str().unwrap_or("-")).collect();
    assert_eq!(
        reasons,
        [
            "the request is for another session",
            "the request is for another session",
            "the request is about a call that is unknown or has ended",
            "every request is approved",
            "the request is about a call that is unknown or has ended",
            "the request came when no prompt was running",
            "the request came when no prompt was running",
        ]
    );
    let codes = notices(&trial);
    for (code, count) in [("foreign_session", 2), ("unknown_call", 2), ("late_request", 2)] {
        assert_eq!(codes.iter().filter(|it| **it == code).count(), count, "{code} in {codes:?}");
    }
}

#[test]
#[ignore = "slow: builds an agent"]
fn what_is_told_of_a_call_later_does_not_change_what_was_asked() {
    // Both come before the engine has answered the first one, which was about a call that nobody knew.
    let script = vec![
        permission(named("c0"), &KINDS, "later"),
        permission(described("c0"), &KINDS, "later"),
        permission(named("c0"), &KINDS, "now"),
        end("end_turn"),
    ];
    let (_, exchange) = play("", script, 0);
    let chosen: Vec<_> = exchange.asked.iter().map(super::exchange::Asked::chosen).collect();
    assert_eq!(chosen, [None, Some("allow_once"), Some("allow_once")]);
}

#[test]
#[ignore = "slow: builds an agent"]
fn what_is_asked_behind_the_answer_to_a_cancel_is_answered() {
    // The second call exceeds the limit; the agent has ended its turn by then, and asks on.
    let script = vec![
        call("c0", "edit"),
        call("c1", "edit"),
        end("end_turn"),
        permission(named("c1"), &KINDS, "later"),
        ask("craft/drain", json!({}), "now"),
    ];
    let (trial, exchange) = play("limits: {tool-calls: 1}\ngraders: [{stop: {reason: [max_turns]}}]", script, 1);
    assert_eq!(exchange.asked.iter().map(|asked| asked.answers.len()).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(trial.answers(), ["cancelled engine - cancelled"]);
}

#[test]
#[ignore = "slow: builds an agent"]
fn every_kind_of_request_is_served_as_offered_or_refused() {
    let mut script = others("now");
    script.push(end("end_turn"));
    let keys = "workspace: {files: {kept.txt: \"one\\ntwo\\n\"}}";
    let (_, exchange) = play(keys, script, 0);
    assert_eq!(exchange.asked.len(), others("now").len());
    assert!(exchange.asked.iter().all(|asked| asked.alone), "each was answered before anything else was heard");
    if exchange.offered.pointer("/fs/readTextFile") == Some(&json!(true)) {
        let read = |n: usize| exchange.asked[n].answers[0]["result"]["content"].as_str().unwrap_or_default().to_owned();
        assert_eq!((read(0).as_str(), read(1).trim_end()), ("one\ntwo\n", "two"));
    }
}

#[test]
#[ignore = "slow: builds an agent"]
fn requests_in_parallel_are_answered_while_updates_flow() {
    let mut script = Vec::new();
    for n in 0..30 {
        script.push(call(&format!("c{n}"), "edit"));
        script.push(permission(named(&format!("c{n}")), &KINDS, "later"));
        script.push(say("."));
        script.extend(others("later"));
    }
    // The answer to the last one shows that all were answered; they are answered in their order.
    script.push(permission(described("last"), &KINDS, "now"));
    script.push(end("end_turn"));
    let (trial, exchange) = play("workspace: {files: {kept.txt: \"one\\n\"}}", script, 0);
    assert_eq!(exchange.asked.len(), 30 * (1 + others("now").len()) + 1);
    assert_eq!(trial.of("permission_response").iter().filter(|it| it["outcome"] == "allowed").count(), 31);
    assert_eq!(trial.messages().concat(), ".".repeat(30));
}

#[test]
#[ignore = "slow: builds an agent"]
fn answers_that_nobody_waits_for_do_no_harm() {
    let mut script = others("never");
    script.extend(others("give-up"));
    for wait in ["never", "give-up"] {
        script.push(call(wait, "edit"));
        script.push(permission(named(wait), &KINDS, wait));
    }
    script.push(permission(described("last"), &KINDS, "now"));
    script.push(end("end_turn"));
    let (trial, exchange) = play("workspace: {files: {kept.txt: \"one\\n\"}}", script, 0);
    assert_eq!(exchange.asked.len(), 2 * others("now").len() + 3);
    let given_up = trial.said("recv").iter().filter(|(_, line)| line["method"] == "$/cancel_request").count();
    assert_eq!(given_up, others("now").len() + 1, "the agent gave them up");
    assert_eq!(exchange.asked.last().and_then(|asked| asked.chosen()), Some("allow_once"));
}

#[test]
#[ignore = "slow: builds an agent"]
fn a_cancel_is_obeyed_or_enforced() {
    let waits = vec![call("c0", "edit"), permission(named("c0"), &KINDS, "now"), say("waiting")];
    let mut deaf = waits.clone();
    deaf.insert(0, json!({"deaf": true}));
    let (trial, _) = play("limits: {time: 5s}\ngraders: [{stop: {reason: [timed_out]}}]", waits, 1);
    let answer = trial.said("recv").into_iter().find(|(_, line)| line.pointer("/result/stopReason").is_some());
    assert_eq!(answer.unwrap().1["result"]["stopReason"], "cancelled");
    assert!(trial.engine().iter().all(|line| line["event"] != "signal"), "{:?}", trial.engine());
    assert_eq!(trial.of("tool_result")[0]["status"], "cancelled");
    let (trial, _) = play("limits: {time: 5s}\ngraders: [{stop: {reason: [timed_out]}}]", deaf, 1);
    assert!(trial.engine().iter().any(|line| line["event"] == "signal"), "{:?}", trial.engine());
    assert_eq!(trial.of("stop")[0]["reason"], "timed_out");
}

#[test]
#[ignore = "slow: builds an agent"]
fn what_is_asked_after_a_cancel_is_not_approved() {
    let mut script = vec![json!({"deaf": true})];
    for n in 0..4 {
        let id = format!("c{n}");
        script.extend([call(&id, "edit"), permission(named(&id), &KINDS, "now"), ask("craft/drain", json!({}), "now")]);
    }
    script.push(end("end_turn"));
    let (trial, exchange) = play("limits: {tool-calls: 2}\ngraders: [{stop: {reason: [max_turns]}}]", script, 1);
    let permissions = exchange.asked.iter().filter(|it| it.method.ends_with("permission"));
    assert_eq!(
        permissions.map(|it| it.chosen()).collect::<Vec<_>>(),
        [Some("allow_once"), Some("allow_once"), None, None]
    );
    assert_eq!(notices(&trial).iter().filter(|code| **code == "late_request").count(), 2, "{}", trial.text);
}

//! The example agent of the protocol's TypeScript SDK: it reads, asks before it edits, and takes a second for each step.

use std::path::Path;

use serde_json::json;

use crate::installed::{Agent, Check};
use crate::live::{Stand, Trial};

static NEW: Agent = Agent {
    name: "TypeScript SDK 1.9.0",
    part: "small/npm",
    pins: "small/package-lock.json",
    program: "node_modules/@agentclientprotocol/sdk/dist/examples/agent.js",
};

static OLD: Agent = Agent {
    name: "TypeScript SDK 0.14.1",
    program: "node_modules/agentclientprotocol-sdk-0-14/dist/examples/agent.js",
    ..NEW
};

pub static CHECKS: &[Check] = &[
    Check { agent: &NEW, what: "an approved edit is made", run: approved },
    Check { agent: &OLD, what: "an approved edit is made", run: approved },
    Check { agent: &NEW, what: "a rejected edit is left", run: rejected },
    Check { agent: &OLD, what: "a rejected edit is left", run: rejected },
    Check { agent: &NEW, what: "rules of its case answer, turn by turn", run: scripted },
    Check { agent: &NEW, what: "a policy of a name answers", run: named },
    Check { agent: &NEW, what: "it obeys a cancel at the time limit", run: cancelled_in_time },
    Check { agent: &OLD, what: "it obeys a cancel at the time limit", run: cancelled_in_time },
    Check { agent: &NEW, what: "what it asks after a cancel is not approved", run: cancelled_at_a_call },
];

fn stand(program: &Path) -> Stand {
    Stand::new("acp", &["node", program.to_str().unwrap()], "")
}

/// Runs one case and looks at what is the same whatever it was.
fn one(program: &Path, keys: &str, exit: i32) -> Trial {
    let stand = stand(program);
    stand.case("a", &format!("prompt: Improve the project.\n{keys}"));
    stand.run(&[]).exits(exit);
    let trial = stand.trial("a");
    assert!(trial.result["error"].is_null(), "{}", trial.result);
    leaves_by_itself(&trial);
    trial
}

/// It leaves when its standard input is closed; nobody has to make it.
fn leaves_by_itself(trial: &Trial) {
    assert_eq!(trial.result["stop"]["exit"], json!({"code": 0, "signal": null}), "{}", trial.result);
    assert!(trial.engine().iter().all(|line| line["event"] != "signal"), "{:?}", trial.engine());
}

fn approved(_: &Agent, program: &Path) {
    let graders = "graders:\n  - tool-calls: {order: [{kind: read}, {kind: edit, status: ok}]}\n  \
                   - permissions: {asked: [{kind: edit}], allowed: [{kind: edit}], not-asked: [{kind: read}]}";
    let trial = one(program, graders, 0);
    assert_eq!(trial.result["metrics"]["permissions"], json!({"requested": 1, "rejected": 0}));
    insta::assert_snapshot!("typescript_approved", trial.normalised());
}

fn rejected(_: &Agent, program: &Path) {
    let graders = "interaction: auto-reject\ngraders:\n  - permissions: {rejected: [{kind: edit}], respected: true}";
    let trial = one(program, graders, 0);
    assert_eq!(trial.result["metrics"]["permissions"], json!({"requested": 1, "rejected": 1}));
    insta::assert_snapshot!("typescript_rejected", trial.normalised());
}

fn scripted(_: &Agent, program: &Path) {
    let stand = stand(program);
    let rules = "rules: [{name: not at first, when: {kind: edit, input: new-host, nth: 1}, answer: reject-once}]";
    let keys = format!("turns: [one, two]\ninteraction: {{scripted: {{{rules}, default: allow}}}}");
    stand.case("a", &keys);
    stand.run(&[]).exits(0);
    let trial = stand.trial("a");
    assert_eq!(trial.answers(), ["rejected scripted not at first denied", "allowed scripted - ok"]);
    // The agent gives its calls the same ids in each turn; here they are four calls.
    let calls: Vec<_> = trial.of("tool_call").iter().map(|call| (call["kind"].clone(), call["step"].clone())).collect();
    let expected = [("read", 0), ("edit", 1), ("read", 2), ("edit", 3)].map(|(kind, step)| (json!(kind), json!(step)));
    assert_eq!(calls, expected);
    let users = trial.of("message").iter().filter(|event| event["role"] == "user").count();
    assert_eq!((users, trial.messages().len()), (2, 6));
    assert!(trial.messages()[2].contains("I'll skip") && trial.messages()[5].contains("Perfect!"));
}

fn named(_: &Agent, program: &Path) {
    let stand = stand(program);
    stand.project.write(
        "policies/mine.yaml",
        "policy: {scripted: {rules: [{name: edits, when: {kind: edit}, answer: allow-always}], default: reject}}\n",
    );
    stand.case("built-in", "prompt: one\ninteraction: {use: read-only}");
    stand.case("mine", "prompt: one\ninteraction: {use: mine}");
    stand.run(&[]).exits(0);
    assert_eq!(stand.trial("built-in").answers(), ["rejected scripted - denied"]);
    let mine = stand.trial("mine");
    assert_eq!(mine.answers(), ["allowed scripted edits ok"]);
    // It offers no option for always: the nearest one is taken, and that is told.
    assert_eq!(mine.of("permission_response")[0]["option"], "allow");
    assert!(mine.of("notice").iter().any(|notice| notice["text"].as_str().unwrap().contains("allow_always")));
}

fn cancelled_in_time(_: &Agent, program: &Path) {
    // Two turns take ten seconds. A slow start can put the first limit at the end of the first turn, where the agent has
    // nothing left to cancel and answers `end_turn`; the second limit is then in the middle of a turn.
    let answers = [8, 6].map(|seconds| {
        let answer = cancelled_after(program, seconds);
        assert!(["cancelled", "end_turn"].contains(&answer.as_str()), "{answer} after {seconds} s");
        answer
    });
    assert!(answers.iter().any(|answer| answer == "cancelled"), "{answers:?}");
}

/// Runs two turns with a time limit and returns how the agent ended the last turn it was given.
fn cancelled_after(program: &Path, seconds: u32) -> String {
    let stand = stand(program);
    let limit = format!("turns: [one, two]\nlimits: {{time: {seconds}s}}");
    stand.case("a", &format!("{limit}\ngraders: [{{stop: {{reason: [timed_out]}}}}]"));
    stand.run(&[]).exits(1);
    let trial = stand.trial("a");
    leaves_by_itself(&trial);
    let stop = trial.of("stop")[0];
    assert_eq!((&stop["reason"], &stop["host"]), (&json!("timed_out"), &json!(true)), "{stop}");
    let text = trial.messages().concat();
    assert!(text.contains("I'll help you") && text.matches("Perfect!").count() < 2, "it was cut short: {text}");
    last_answer(&trial)
}

fn cancelled_at_a_call(_: &Agent, program: &Path) {
    let trial = one(program, "limits: {tool-calls: 1}\ngraders: [{stop: {reason: [max_turns]}}]", 1);
    assert_eq!(trial.result["stop"]["reason"], "max_turns");
    assert_eq!(trial.answers(), ["cancelled engine - cancelled"]);
    // It was told before it was answered, and ended its turn without the edit.
    let cancelled = trial.said("send").into_iter().find(|(_, line)| line["method"] == "session/cancel").unwrap().0;
    let answered = trial.said("send").into_iter().find(|(_, line)| line.pointer("/result/outcome").is_some()).unwrap();
    assert!(cancelled < answered.0 && answered.1["result"]["outcome"]["outcome"] == "cancelled", "{}", answered.1);
    assert_eq!(last_answer(&trial), "end_turn");
}

/// How the agent itself ended the last turn, in its answer to the prompt; it came after the cancel.
fn last_answer(trial: &Trial) -> String {
    let cancelled = trial.said("send").into_iter().find(|(_, line)| line["method"] == "session/cancel").unwrap().0;
    let mut answers = trial.said("recv").into_iter().filter(|(_, line)| line.pointer("/result/stopReason").is_some());
    let (at, last) = answers.next_back().unwrap();
    assert!(at > cancelled, "{last}");
    last["result"]["stopReason"].as_str().unwrap().to_owned()
}

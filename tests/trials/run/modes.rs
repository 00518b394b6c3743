//! Unattended modes: a policy that was never asked decided nothing, and no verdict may depend on it.

use serde_json::{Value, json};

use super::services::{TRIAL, case, project, run};
use crate::project::{Project, of_type};

/// Returns the agent's modes, with this one as the current mode.
fn modes(current: &str) -> String {
    let ids = ["auto", "default", "plan"].map(|id| json!({"id": id, "name": id}));
    format!("MODES: '{}'", json!({"currentModeId": current, "availableModes": ids}))
}

/// Writes a file without a request.
const WRITES: &str = "open('written.txt', 'w').write('x'); say(told)";
/// Requests a call, and prints the answer.
const ASKS: &str = "call('c', title='write', kind='edit', rawInput={'path': 'a'}); say(get('session/request_permission', toolCall={'toolCallId': 'c'}, options=[{'optionId': 'n', 'name': 'No', 'kind': 'reject_once'}, {'optionId': 'y', 'name': 'Yes', 'kind': 'allow_once'}])['outcome'].get('optionId'))";
const UNATTENDED: &str = "unattended-modes: [auto, 'accept*']";

fn prompted(project: &Project) -> bool {
    project.of_trial(TRIAL, "wire.jsonl").contains("session/prompt")
}

#[test]
fn an_agent_that_starts_in_a_mode_that_asks_nothing_is_not_run_under_a_policy() {
    for policy in ["auto-reject", "scripted: {default: allow-once}"] {
        let project = project(UNATTENDED);
        case(
            &project,
            &[WRITES],
            &format!("interaction: {{{policy}}}\nenv: {{{}}}", modes("auto")).replace("{auto-reject}", "auto-reject"),
        );
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["error"]["category"], "handshake", "{result}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("in mode `auto`, in which it does not ask for every permission"), "{message}");
        assert!(!prompted(&project) && of_type(&trace, "tool_call").is_empty());
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn the_manifest_s_mode_is_set_and_verified() {
    // With the older call and with a config option, under any policy.
    for policy in ["auto-approve", "auto-reject"] {
        let project = project(&format!("{UNATTENDED}\nsession-mode: default"));
        case(&project, &["say(told)", ASKS], &format!("interaction: {policy}\nenv: {{{}}}", modes("auto")));
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["verdict"], "pass", "{result}");
        assert_eq!((trace[0].get("unattended_mode"), &trace[0]["capabilities"]["interaction"]), (None, &json!(true)));
        let said = of_type(&trace, "message").iter().map(|it| it["text"].to_string()).collect::<String>();
        assert!(said.contains("['default']"), "{said}");
        assert_eq!(of_type(&trace, "permission_request").len(), 1);
    }
    for (env, says) in [
        (format!("{}, REFUSES_MODE: not today", modes("auto")), "mode `default` was refused: not today"),
        (format!("{}, MODE_AFTER: auto", modes("auto")), "the agent reports mode `auto`"),
        (
            modes("auto").replace("default", "other"),
            "mode `default` is not one of the agent's modes: auto, other, plan",
        ),
    ] {
        for policy in ["auto-approve", "auto-reject"] {
            let project = project(&format!("{UNATTENDED}\nsession-mode: default"));
            case(&project, &[WRITES], &format!("interaction: {policy}\nenv: {{{env}}}"));
            let (_, result) = run(&project, &[]);
            assert_eq!(result["error"]["category"], "handshake", "{result}");
            assert!(result["error"]["message"].as_str().unwrap().contains(says), "{result}");
            assert!(!prompted(&project));
        }
    }
    // An agent without modes cannot be verified. If everything is approved, that changes nothing, and is reported.
    for (policy, verdict) in [("auto-approve", "pass"), ("auto-reject", "errored")] {
        let project = project("session-mode: default");
        case(&project, &["say(told)"], &format!("interaction: {policy}"));
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["verdict"], verdict, "{result}");
        let told = of_type(&trace, "notice").iter().any(|it| it["code"] == "mode_not_set");
        assert_eq!(told, verdict == "pass");
    }
}

#[test]
fn the_case_s_mode_wins_and_one_that_asks_nothing_is_skipped_under_a_policy() {
    let keys = format!("{UNATTENDED}\nsession-mode: default");
    let project_ = project(&keys);
    case(&project_, &["say(told)"], &format!("session: {{mode: plan}}\nenv: {{{}}}", modes("auto")));
    let said = of_type(&run(&project_, &[]).0, "message")[1]["text"].clone();
    assert_eq!(said, "['plan']");
    let skipped = project(&keys);
    case(
        &skipped,
        &[WRITES],
        &format!("session: {{mode: auto}}\ninteraction: auto-reject\nenv: {{{}}}", modes("auto")),
    );
    let ran = skipped.evals(&["run", "--harness", "agent"]).exits(3);
    ran.says(
        "policy `auto-reject` needs an agent that asks for permission, and `agent` does not ask for every permission in mode `auto`",
    );
}

#[test]
fn a_mode_for_asking_is_taken_where_requests_matter() {
    let keys = format!("{UNATTENDED}\nasking-mode: default");
    for (wanted, mode) in [
        ("interaction: auto-approve", "auto"),
        ("interaction: auto-reject", "default"),
        ("requires: {interaction: true}", "default"),
        ("graders: [{permissions: {not-asked: [{kind: delete}]}}]", "default"),
    ] {
        let project = project(&keys);
        case(&project, &["say(told)"], &format!("{wanted}\nenv: {{{}}}", modes("auto")));
        let (trace, result) = run(&project, &[]);
        assert_eq!(result["verdict"], "pass", "{wanted}: {result}");
        assert_eq!(trace[0].get("unattended_mode").is_some(), mode == "auto", "{wanted}");
        assert_eq!(trace[0]["capabilities"]["interaction"], mode == "default", "{wanted}");
        // Permission requests are not counted in a mode without requests.
        assert_eq!(result["metrics"].get("permissions").is_some(), mode == "default", "{wanted}");
    }
}

#[test]
fn requests_are_not_judged_in_a_mode_that_asks_nothing() {
    let graders = "graders:\n  - permissions: {not-asked: [{kind: delete}]}\n  - stop: {reason: [end_turn]}";
    let project = project(UNATTENDED);
    case(&project, &[WRITES], &format!("{graders}\nenv: {{{}}}", modes("auto")));
    let (trace, result) = run(&project, &[]);
    assert_eq!(result["verdict"], "ungraded", "{result}");
    let reason = result["grades"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("in mode `auto` the agent does not ask for every permission"), "{reason}");
    assert_eq!(
        (&trace[0]["unattended_mode"], &trace[0]["capabilities"]["interaction"]),
        (&json!("auto"), &json!(false))
    );
}

const SWITCHES: &str =
    "update('current_mode_update', currentModeId='auto'); hear(); open('written.txt', 'w').write('x')";

#[test]
fn a_mode_that_changes_on_the_way_ends_the_trial_or_its_evidence() {
    // Under a policy, no further call may happen: the turn is cancelled.
    for update in [
        "update('current_mode_update', currentModeId='auto')",
        "update('config_option_update', configOptions=[{'id': 'how', 'category': 'mode', 'type': 'select', 'currentValue': 'auto', 'options': []}])",
    ] {
        let project = project(UNATTENDED);
        let program = format!("{update}; until_cancelled()");
        case(&project, &[&program, WRITES], &format!("interaction: auto-reject\nenv: {{{}}}", modes("default")));
        let (trace, result) = run(&project, &[]);
        assert_eq!(
            (&result["verdict"], &result["error"]["category"]),
            (&json!("errored"), &json!("handshake")),
            "{result}"
        );
        assert!(result["error"]["message"].as_str().unwrap().contains("in mode `auto`"), "{result}");
        let stop = trace.last().unwrap();
        assert_eq!((&stop["reason"], &stop["host"]), (&json!("error"), &json!(true)), "{stop}");
        assert_eq!(project.of_trial(TRIAL, "wire.jsonl").matches("session/prompt\\\"").count(), 1);
    }
    // If everything is approved, the session continues, and its requests are no longer evidence.
    let approved = project(UNATTENDED);
    let graders = "graders: [{permissions: {not-asked: [{kind: delete}]}}, {output: {contains: y}}]";
    let program = format!("{ASKS}; {}", SWITCHES.replace("hear(); ", ""));
    // A request before the change still decides.
    let known = "graders: [{permissions: {not-asked: [{kind: edit}]}}]";
    case(&approved, &[&program], &format!("{known}\nenv: {{{}}}", modes("default")));
    assert_eq!(run(&approved, &[]).1["verdict"], "fail");
    let _ = std::fs::remove_dir_all(approved.path(".evals"));
    case(&approved, &[&program], &format!("{graders}\nenv: {{{}}}", modes("default")));
    let (trace, result) = run(&approved, &[]);
    assert_eq!(result["verdict"], "ungraded", "{result}");
    assert_eq!(of_type(&trace, "permission_request").len(), 1);
    let notices: Vec<&Value> = of_type(&trace, "notice");
    assert_eq!((notices.len(), &notices[0]["code"]), (1, &json!("unattended_mode")), "{notices:?}");
    assert_eq!(
        (&trace[0]["unattended_mode"], &trace[0]["capabilities"]["interaction"]),
        (&json!("auto"), &json!(false))
    );
}

#[test]
fn a_manifest_says_nothing_that_cannot_hold() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.harness("one", "adapter: output-only\ncommand: [one, '{prompt}']\nsession-mode: default");
    project.harness("two", "adapter: acp\ncommand: [two]\nasking-mode: auto\nunattended-modes: [auto]");
    project.harness("three", "adapter: acp\ncommand: [three, --yolo]");
    let ran = project.evals(&["check"]).exits(2);
    let ran = ran.says("`session-mode` is only for the adapter `acp`");
    ran.says("`unattended-modes` lists the mode `auto`, in which the agent does not ask");
    std::fs::remove_file(project.path("harnesses/one.yaml")).unwrap();
    std::fs::remove_file(project.path("harnesses/two.yaml")).unwrap();
    project.evals(&["check"]).says("with `--yolo` the agent asks for no permission");
}

#[test]
fn shipped_manifests_that_ask_nothing_do_not_claim_to_ask() {
    for manifest in evals::internal::harness::built_in() {
        let words = manifest.command.iter().chain(manifest.env.set.values()).map(String::as_str);
        let asks_nothing = |word: &str| {
            ["yolo", "skip-permissions", "bypass-approvals", "allow-all", "auto-approve"]
                .iter()
                .any(|it| word.contains(it))
        };
        if words.clone().any(asks_nothing) {
            assert!(!manifest.seen().interaction, "{}", manifest.name);
        }
        for mode in [&manifest.session_mode, &manifest.asking_mode].into_iter().flatten() {
            assert!(!manifest.is_unattended(mode), "{}", manifest.name);
        }
    }
}

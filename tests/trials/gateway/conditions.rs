//! Turns that depend on the results of earlier calls.

use serde_json::{Value, json};

use super::client::{APIS, Gateway, USUAL, request, set_results};

const SCRIPT: &str = "\
turns:
  - calls: [{execute: {command: make test}}, {execute: {command: make lint}}]
  - either:
      - when: {result: '(?i)tests? passed', call: 0}
        text: All is well.
      - when: {result: FAILED}
        calls: [{execute: {command: make fix}}]
      - when: {result: no such rule, call: 1}
        fault: {http-error: {status: 400}}
  - either:
      - when: {result: FAILED, of: 0}
        text: It was broken.
      - text: It was fine.
";

fn ids(api: &str, turn: usize) -> [String; 2] {
    let prefix = if api == "anthropic" { "toolu_" } else { "call_" };
    [0, 1].map(|call| format!("{prefix}scripted_{turn}_{call}"))
}

/// Sends the conversation after the first turn, with these results.
fn second_turn(gateway: &Gateway, api: &str, results: &[(&str, bool)]) -> (u16, Value) {
    let [one, two] = ids(api, 0);
    let (path, mut body) = request(api, false, &USUAL, &[&[(&one, "bash"), (&two, "bash")]]);
    set_results(api, &mut body, results);
    let answer = gateway.post(&path, &body);
    (answer.status, gateway.log().pop().unwrap())
}

#[test]
fn the_results_decide_over_every_api() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let played = |results: &[(&str, bool)]| {
            let (_, line) = second_turn(&gateway, api, results);
            (line["turn"].clone(), line["alternative"].clone())
        };
        assert_eq!(played(&[("12 tests passed", false), ("ok", false)]), (json!(1), json!(0)), "{api}");
        assert_eq!(played(&[("FAILED: 1", true), ("Test passed", false)]), (json!(1), json!(1)), "{api}");
        assert_eq!(played(&[("ok", false), ("FAILED", true)]), (json!(1), json!(1)), "{api}");
        let (status, line) = second_turn(&gateway, api, &[("ok", false), ("no such rule", true)]);
        assert_eq!((status, &line["alternative"], &line["fault"]), (400, &json!(2), &json!("http-error")), "{api}");
        // The same request gets the same alternative again.
        assert_eq!(played(&[("12 tests passed", false), ("ok", false)]), (json!(1), json!(0)), "{api}");
    }
}

#[test]
fn an_earlier_turn_is_looked_at_by_its_number() {
    for api in APIS {
        for (first, wanted) in [("FAILED", "It was broken."), ("Tests passed", "It was fine.")] {
            let gateway = Gateway::play(SCRIPT);
            let ([one, two], [three, _]) = (ids(api, 0), ids(api, 1));
            let turns: [&[(&str, &str)]; 2] = [&[(&one, "bash"), (&two, "bash")], &[(&three, "bash")]];
            let (path, mut body) = request(api, false, &USUAL, &turns);
            set_results(api, &mut body, &[(first, false), ("ok", false), ("fixed", false)]);
            assert!(gateway.post(&path, &body).body.contains(wanted), "{api} {first}");
            // After the last turn its text is said again.
            let more: [&[(&str, &str)]; 3] = [turns[0], turns[1], &[("x", "bash")]];
            let (path, mut body) = request(api, false, &USUAL, &more);
            set_results(api, &mut body, &[(first, false), ("ok", false), ("fixed", false), ("y", false)]);
            assert!(gateway.post(&path, &body).body.contains(wanted), "{api} {first}");
            assert_eq!(gateway.log()[1]["played"], "after-the-last");
        }
    }
}

#[test]
fn results_without_the_ids_of_the_script_are_counted() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let (path, mut body) = request(api, false, &USUAL, &[&[("a", "bash"), ("b", "bash")]]);
        set_results(api, &mut body, &[("ok", false), ("no such rule", false)]);
        assert_eq!(gateway.post(&path, &body).status, 400, "{api}");
    }
}

#[test]
fn a_result_that_no_alternative_fits_is_a_problem_that_shows_it() {
    for api in APIS {
        let gateway = Gateway::play(SCRIPT);
        let long = "x".repeat(5000);
        let (status, line) = second_turn(&gateway, api, &[("no tests ran", false), (&long, false)]);
        assert_eq!((status, &line["turn"]), (200, &json!(1)), "{api}");
        let problem = line["problem"].as_str().unwrap();
        let wanted = "turn 1 of the script cannot be played: no alternative fits the results of the calls: \
                      call 0 of turn 0";
        assert!(problem.starts_with(wanted), "{api}: {problem}");
        assert!(problem.contains("no tests ran") && problem.contains("call 1 of turn 0"), "{api}: {problem}");
        assert!(problem.len() < 800, "{problem}");
        assert!(line["response"].to_string().contains("The scripted model cannot go on"), "{line}");
    }
}

#[test]
fn a_status_is_known_where_the_api_states_it() {
    let script = "\
turns:
  - calls: [{execute: {command: make test}}]
  - either:
      - {when: {status: error}, text: It failed.}
      - {when: {status: ok}, text: It passed.}
";
    for api in APIS {
        let gateway = Gateway::play(script);
        let [id, _] = ids(api, 0);
        for (failed, wanted) in [(true, "It failed."), (false, "It passed.")] {
            let (path, mut body) = request(api, false, &USUAL, &[&[(&id, "bash")]]);
            set_results(api, &mut body, &[("x", failed)]);
            let answer = gateway.post(&path, &body).body;
            let stated = matches!(api, "anthropic" | "gemini");
            let wanted = if stated { wanted } else { "does not state whether a call failed" };
            assert!(answer.contains(wanted), "{api}: {answer}");
        }
    }
}

#[test]
fn a_turn_of_its_own_may_have_a_condition() {
    let script = "turns: [{calls: [{execute: {command: ls}}]}, {when: {result: a.txt}, text: There it is.}]";
    let gateway = Gateway::play(script);
    let (path, mut body) = request("anthropic", false, &USUAL, &[&[("toolu_scripted_0_0", "bash")]]);
    set_results("anthropic", &mut body, &[("a.txt b.txt", false)]);
    assert!(gateway.post(&path, &body).body.contains("There it is."));
    set_results("anthropic", &mut body, &[("b.txt", false)]);
    assert!(gateway.post(&path, &body).body.contains("its `when` does not fit the results of the calls"));
    assert!(gateway.log()[0]["alternative"].is_null());
}

//! Every fault of an answer, over each API, streamed and whole.

use serde_json::{Value, json};

use super::client::{APIS, Gateway, USUAL, request};

fn asked_of(script: &str, api: &str, stream: bool) -> (Gateway, super::client::Answer) {
    let gateway = Gateway::play(script);
    let (path, body) = request(api, stream, &USUAL, &[]);
    let answer = gateway.post(&path, &body);
    (gateway, answer)
}

/// Returns the text of a whole answer.
fn text(api: &str, answer: &Value) -> Value {
    match api {
        "anthropic" => answer["content"][0]["text"].clone(),
        "openai-responses" => answer["output"][0]["content"][0]["text"].clone(),
        "openai-chat" => answer["choices"][0]["message"]["content"].clone(),
        _ => answer["candidates"][0]["content"]["parts"][0]["text"].clone(),
    }
}

#[test]
fn a_refused_request_looks_as_the_api_makes_it() {
    let script = |status: u16| format!("turns: [{{fault: {{http-error: {{status: {status}, message: not today}}}}}}]");
    for (api, status, wanted) in [
        ("anthropic", 400, json!({"type": "error", "error": {"type": "invalid_request_error"}})),
        ("anthropic", 401, json!({"type": "error", "error": {"type": "authentication_error"}})),
        ("anthropic", 529, json!({"type": "error", "error": {"type": "overloaded_error"}})),
        ("openai-responses", 400, json!({"error": {"type": "invalid_request_error", "code": null}})),
        ("openai-chat", 401, json!({"error": {"type": "invalid_request_error", "code": "invalid_api_key"}})),
        ("openai-chat", 500, json!({"error": {"type": "server_error", "code": null}})),
        ("gemini", 400, json!({"error": {"code": 400, "status": "INVALID_ARGUMENT"}})),
        ("gemini", 403, json!({"error": {"code": 403, "status": "PERMISSION_DENIED"}})),
        ("gemini", 503, json!({"error": {"code": 503, "status": "UNAVAILABLE"}})),
    ] {
        for stream in [true, false] {
            let (gateway, answer) = asked_of(&script(status), api, stream);
            assert_eq!(answer.status, status);
            let error = answer.json();
            assert_eq!(error["error"]["message"], "not today");
            for (key, value) in wanted["error"].as_object().unwrap() {
                assert_eq!(error["error"][key], *value, "{api} {status} {key}");
            }
            let log = gateway.log();
            assert_eq!((&log[0]["fault"], &log[0]["status"]), (&json!("http-error"), &json!(status)));
        }
    }
}

#[test]
fn a_request_that_may_be_tried_again_says_when_and_is_then_answered() {
    let script = "turns: [{text: at last, fault: {http-error: {status: 429, retry-after: 1500ms}}, fault-times: 2}]";
    for api in APIS {
        let (gateway, first) = asked_of(script, api, false);
        assert_eq!(first.status, 429);
        assert!(first.headers.contains("retry-after: 2\r\n") && first.headers.contains("retry-after-ms: 1500"));
        assert_eq!(first.body.contains("RetryInfo"), api == "gemini");
        let (path, body) = request(api, false, &USUAL, &[]);
        assert_eq!(gateway.post(&path, &body).status, 429);
        let third = gateway.post(&path, &body);
        assert_eq!((third.status, text(api, &third.json())), (200, json!("at last")), "{api}");
        // The fault occurs again in another conversation.
        assert_eq!(gateway.post(&path, &body).status, 429);
    }
}

#[test]
fn overloaded_is_once() {
    for api in APIS {
        let (gateway, first) = asked_of("turns: [{text: at last, fault: overloaded}]", api, false);
        assert_eq!(first.status, if api == "anthropic" { 529 } else { 503 });
        let (path, body) = request(api, false, &USUAL, &[]);
        assert_eq!(text(api, &gateway.post(&path, &body).json()), "at last");
    }
}

const LONG: &str =
    "turns: [{text: 'This is long enough to come in several pieces, of which some are lost.', fault: FAULT}]";

#[test]
fn a_cut_stream_ends_in_the_middle() {
    for api in APIS {
        let (gateway, answer) = asked_of(&LONG.replace("FAULT", "cut"), api, true);
        assert_eq!(answer.status, 200);
        assert!(
            answer.cut && answer.body.contains("This is long") && !answer.body.contains("some are lost"),
            "{answer:?}"
        );
        assert_eq!(gateway.log()[0]["fault"], "cut");
        let (_, whole) = asked_of(&LONG.replace("FAULT", "cut"), api, false);
        assert!(whole.cut && serde_json::from_str::<Value>(&whole.body).is_err(), "{whole:?}");
    }
}

#[test]
fn a_stream_that_is_cut_once_is_whole_the_next_time() {
    for api in APIS {
        let (gateway, first) = asked_of(&LONG.replace("FAULT", "cut, fault-times: 1"), api, true);
        let (path, body) = request(api, true, &USUAL, &[]);
        let second = gateway.post(&path, &body);
        assert!(first.cut && !second.cut && second.body.contains("some are lost"), "{second:?}");
    }
}

#[test]
fn an_error_comes_in_the_middle_of_a_stream() {
    for (api, wanted) in [
        ("anthropic", r#"event: error"#),
        ("openai-responses", r#"event: response.failed"#),
        ("openai-chat", r#""type":"server_error""#),
        ("gemini", r#""status":"UNAVAILABLE""#),
    ] {
        let fault = "{error-event: {message: too much}}";
        let (_, answer) = asked_of(&LONG.replace("FAULT", fault), api, true);
        assert!(!answer.cut && answer.status == 200);
        for part in ["This is long", wanted, "too much"] {
            assert!(answer.body.contains(part), "{api}: {part}: {answer:?}");
        }
        assert!(!answer.body.contains("some are lost"));
        let (_, whole) = asked_of(&LONG.replace("FAULT", fault), api, false);
        assert_eq!(whole.status, if api == "anthropic" { 529 } else { 503 });
    }
}

#[test]
fn an_empty_answer_holds_nothing() {
    for (api, place) in
        [("anthropic", "/content"), ("openai-responses", "/output"), ("gemini", "/candidates/0/content/parts")]
    {
        let (_, answer) = asked_of("turns: [{fault: empty}]", api, false);
        assert_eq!(answer.json().pointer(place), Some(&json!([])), "{api}");
        assert_eq!(asked_of("turns: [{fault: empty}]", api, true).1.status, 200);
    }
    let (_, answer) = asked_of("turns: [{fault: empty}]", "openai-chat", false);
    assert_eq!(answer.json()["choices"][0]["message"], json!({"role": "assistant", "content": null}));
}

#[test]
fn refusals_and_answers_that_are_too_long_have_the_stop_reason_of_each_api() {
    for (fault, words) in [
        ("refusal", ["refusal", "completed", "content_filter", "SAFETY"]),
        ("content-filter", ["refusal", "incomplete", "content_filter", "PROHIBITED_CONTENT"]),
        ("max-tokens", ["max_tokens", "incomplete", "length", "MAX_TOKENS"]),
    ] {
        for (key, written) in [("fault", fault), ("stop", fault)] {
            for (api, word) in APIS.into_iter().zip(words) {
                let script = format!("turns: [{{text: no more, {key}: {written}}}]");
                let (_, whole) = asked_of(&script, api, false);
                let whole = whole.json();
                let place = match api {
                    "anthropic" => "/stop_reason",
                    "openai-responses" => "/status",
                    "openai-chat" => "/choices/0/finish_reason",
                    _ => "/candidates/0/finishReason",
                };
                assert_eq!(whole.pointer(place), Some(&json!(word)), "{api} {script}");
                let (_, pieces) = asked_of(&script, api, true);
                assert!(pieces.body.contains(&format!("\"{word}\"")), "{api}: {pieces:?}");
            }
        }
    }
    let (_, refused) = asked_of("turns: [{text: no more, fault: refusal}]", "openai-responses", false);
    assert_eq!(refused.json()["output"][0]["content"][0], json!({"type": "refusal", "refusal": "no more"}));
}

#[test]
fn what_a_filter_stopped_is_incomplete_and_says_why() {
    let script = "turns: [{text: no more, stop: content-filter}]";
    for stream in [true, false] {
        let (_, filtered) = asked_of(script, "openai-responses", stream);
        assert!(filtered.body.contains(r#""incomplete_details":{"reason":"content_filter"}"#), "{filtered:?}");
    }
}

#[test]
fn a_model_that_refuses_goes_on_refusing() {
    let gateway = Gateway::play("turns: [{text: I will not., fault: refusal}]");
    let (path, body) = request("anthropic", false, &USUAL, &[&[("toolu_scripted_0_0", "bash")]]);
    let answer = gateway.post(&path, &body).json();
    assert_eq!((&answer["stop_reason"], &answer["content"][0]["text"]), (&json!("refusal"), &json!("I will not.")));
}

#[test]
fn a_stream_that_was_cut_is_played_again_to_whom_asks_again() {
    let script = "turns: [{calls: [{execute: {command: ls}}], fault: cut}]";
    let (gateway, _) = asked_of(script, "anthropic", true);
    let (path, body) = request("anthropic", true, &USUAL, &[]);
    gateway.post(&path, &body);
    let ids: Vec<Value> = gateway.log().iter().map(|line| line["calls"][0]["call"].clone()).collect();
    assert_eq!(ids, ["toolu_scripted_0_0", "toolu_scripted_0_0_again1"]);
}

/// The end of a streamed answer in each API.
const ENDS: [&[&str]; 4] = [
    &["message_delta", "message_stop"],
    &["response.completed"],
    &["\"finish_reason\":\"", "[DONE]"],
    &["finishReason"],
];

#[test]
#[ignore = "slow: runs many trials behind a gateway"]
fn an_answer_of_one_piece_breaks_before_its_end() {
    let said = ["text: Hi.", "text: ''", "calls: [{execute: {command: ls}}]", "thinking: Hm."];
    for fault in ["cut", "{error-event: {message: too much}}"] {
        for said in said {
            let script = format!("turns: [{{{said}, usage: {{input: 1, output: 1}}, fault: {fault}}}]");
            for (api, ends) in APIS.into_iter().zip(ENDS) {
                let (_, answer) = asked_of(&script, api, true);
                assert_eq!((answer.status, answer.cut), (200, fault == "cut"), "{api} {said} {fault}: {answer:?}");
                assert_eq!(answer.body.contains("too much"), fault != "cut", "{api} {said}: {answer:?}");
                for end in ends {
                    assert!(!answer.body.contains(end), "{api} {said} {fault}: {answer:?}");
                }
                // An unbroken answer has such an end.
                let (_, whole) = asked_of(&script.replace(&format!(", fault: {fault}"), ", stop: end-turn"), api, true);
                assert!(ends.iter().all(|end| whole.body.contains(end)), "{api} {said}: {whole:?}");
            }
        }
    }
}

#[test]
fn a_list_that_breaks_is_no_list_and_one_with_an_error_is_one() {
    for said in ["text: Hi.", "text: 'This is long enough to come in several pieces, of which some are lost.'"] {
        let broken = |fault: &str| {
            let gateway = Gateway::play(&format!("turns: [{{{said}, fault: {fault}}}]"));
            let (path, body) = request("gemini", true, &USUAL, &[]);
            gateway.post(path.trim_end_matches("?alt=sse"), &body)
        };
        let cut = broken("cut");
        assert!(cut.cut && serde_json::from_str::<Value>(&cut.body).is_err(), "{cut:?}");
        assert!(serde_json::from_str::<Value>(&format!("{}]", cut.body)).is_ok(), "{cut:?}");
        assert!(!cut.body.contains("finishReason"), "{cut:?}");
        let error = broken("{error-event: {message: too much}}");
        let list = error.json();
        let chunks = list.as_array().unwrap();
        assert!(chunks.len() >= 2 && chunks[0]["candidates"].is_array() && !error.body.contains("finishReason"));
        assert_eq!(chunks.last().unwrap()["error"]["message"], "too much", "{error:?}");
    }
}

#[test]
fn a_request_by_another_name_than_loopbacks_is_refused() {
    let gateway = Gateway::play("turns: [{text: hello}]");
    let (path, body) = request("anthropic", false, &USUAL, &[]);
    let send = |host: &str| {
        let headers = format!("host: {host}\r\ncontent-type: application/json\r\n");
        gateway.send_to(&headers, "POST", &path, &body.to_string()).status
    };
    for host in ["evil.example.org", "127.0.0.1.evil.example.org", "localhost.evil.example.org:80", "", "127.0.0.2:1"] {
        assert_eq!(send(host), 403, "{host}");
    }
    for host in ["127.0.0.1", "localhost:1234", "[::1]:80", "LOCALHOST"] {
        assert_eq!(send(host), 200, "{host}");
    }
    let long = "x".repeat(100_000);
    gateway.get(&format!("/{long}"));
    let log = gateway.log();
    assert!(log.iter().all(|line| line.to_string().len() < 10_000), "a request with such a path was answered");
}

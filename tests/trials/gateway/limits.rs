//! Limits of a service: rates, slow streams and the length of an answer, over each API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{APIS, Answer, Gateway, USUAL, request};
use super::stand::Stand;

fn ask(gateway: &Gateway, api: &str, stream: bool) -> Answer {
    let (path, body) = request(api, stream, &USUAL, &[]);
    gateway.post(&path, &body)
}

#[test]
fn a_rate_limit_has_the_form_of_the_service_and_ends() {
    let script = "turns: [{text: at last, fault: {rate-limit: {retry-after: 2s, times: 2}}}]";
    for (api, kind, message) in [
        ("anthropic", "rate_limit_error", "would exceed your organization's rate limit"),
        (
            "openai-responses",
            "rate_limit_error",
            "Rate limit reached for m on requests per min (RPM). Please try again in 2s.",
        ),
        (
            "openai-chat",
            "rate_limit_error",
            "Rate limit reached for m on requests per min (RPM). Please try again in 2s.",
        ),
        ("gemini", "RESOURCE_EXHAUSTED", "You exceeded your current quota. Please retry in 2s."),
    ] {
        for stream in [true, false] {
            let gateway = Gateway::play(script);
            for _ in 0..2 {
                let refused = ask(&gateway, api, stream);
                assert_eq!(refused.status, 429);
                assert!(
                    refused.headers.contains("retry-after: 2\r\n") && refused.headers.contains("retry-after-ms: 2000")
                );
                let error = &refused.json()["error"];
                assert!(error["message"].as_str().unwrap().contains(message), "{error}");
                assert_eq!(error[if api == "gemini" { "status" } else { "type" }], kind);
            }
            let answer = ask(&gateway, api, stream);
            assert!(answer.status == 200 && answer.body.contains("at last"), "{answer:?}");
            let log = gateway.log();
            assert_eq!((&log[0]["fault"], &log[0]["headers"]["retry-after"]), (&json!("rate-limit"), &json!("2")));
            assert_eq!((&log[0]["error"]["kind"], &log[2]["fault"]), (&json!("service"), &Value::Null));
        }
    }
}

#[test]
fn a_rate_limit_says_no_more_than_the_script() {
    for api in APIS {
        let gateway = Gateway::play("turns: [{text: at last, fault: {rate-limit: {message: Slow down.}}}]");
        let refused = ask(&gateway, api, true);
        assert!(refused.status == 429 && !refused.headers.contains("retry-after"), "{refused:?}");
        assert_eq!(refused.json()["error"]["message"], "Slow down.");
        assert_eq!(ask(&gateway, api, true).status, 200);
    }
}

const LONG: &str = "This is long enough to come in several pieces, of which each has its own time.";

#[test]
fn a_slow_stream_takes_its_time() {
    let script = format!("turns: [{{text: '{LONG}', take: 2s}}]");
    for api in APIS {
        let gateway = Gateway::play(&script);
        let begun = Instant::now();
        ask(&gateway, api, true);
        assert!(begun.elapsed() >= Duration::from_secs(2), "{api}: {:?}", begun.elapsed());
        let begun = Instant::now();
        ask(&gateway, api, false);
        assert!(begun.elapsed() >= Duration::from_secs(2), "{api}: {:?}", begun.elapsed());
        // The stream begins at once, and its parts are spread over the time; a whole answer comes at the end.
        let log = gateway.log();
        let times = |at: usize| -> Vec<u64> {
            log[at]["stream"].as_array().unwrap().iter().map(|part| part[0].as_u64().unwrap()).collect()
        };
        let parts = times(0);
        assert!(parts.len() > 2 && parts[0] < 1000 && *parts.last().unwrap() >= 1700, "{api}: {parts:?}");
        assert!(parts.windows(2).filter(|pair| pair[1] > pair[0]).count() > 1, "{api}: {parts:?}");
        assert!(times(1).len() == 1 && times(1)[0] >= 2000, "{api}: {:?}", times(1));
    }
}

#[test]
fn a_refused_request_takes_no_time() {
    let gateway = Gateway::play("turns: [{text: a, take: 1h, fault: overloaded}]");
    assert_eq!(ask(&gateway, "anthropic", true).status, 529);
}

#[test]
fn an_output_limit_ends_a_stream_as_the_service_ends_it() {
    let ids = regex::Regex::new(r#"scripted_0_\d+(_again\d+)?|"(created|created_at)":\d+"#).unwrap();
    for turn in ["text: It goes on and", "thinking: Hm and hm and", "text: It goes, calls: [{execute: {command: ls}}]"]
    {
        let script = format!("turns: [{{{turn}, stop: max-tokens, usage: {{input: 3, output: 5}}}}]");
        for api in APIS {
            let gateway = Gateway::play(&script);
            let streamed = ask(&gateway, api, true);
            let whole = ask(&gateway, api, false);
            assert!(!streamed.cut && streamed.status == 200);
            let (has, has_not): (&[&str], &[&str]) = match api {
                "anthropic" => {
                    (&["\"stop_reason\":\"max_tokens\"", "message_stop"], &["end_turn", "tool_use\",\"stop_seq"])
                }
                "openai-responses" => {
                    (&["event: response.incomplete", "\"reason\":\"max_output_tokens\""], &["response.completed"])
                }
                "openai-chat" => (&["\"finish_reason\":\"length\"", "[DONE]"], &["\"stop\"", "\"tool_calls\"}"]),
                _ => (&["\"finishReason\":\"MAX_TOKENS\""], &["\"STOP\""]),
            };
            for part in has {
                assert!(streamed.body.contains(part), "{api} {turn}: {part}: {streamed:?}");
            }
            for part in has_not {
                assert!(!streamed.body.contains(part), "{api} {turn}: {part}: {streamed:?}");
            }
            // What the stream says is what the whole answer says.
            let log = gateway.log();
            let without_ids = |value: &Value| {
                let text = value.to_string();
                ids.replace_all(&text, "").into_owned()
            };
            assert_eq!(without_ids(&log[0]["response"]), without_ids(&whole.json()), "{api} {turn}");
            assert_eq!(log[0]["usage"]["output_tokens"], 5, "{api} {turn}");
            assert!(log[0]["error"].is_null(), "{api} {turn}: {}", log[0]);
        }
    }
}

#[test]
fn an_answer_that_a_limit_or_a_filter_cut_is_not_complete_whatever_the_agent_reports() {
    for (ends, reason) in [
        ("stop: max-tokens", "max_tokens"),
        ("stop: content-filter", "refusal"),
        ("usage: {input: 3, output: 5}", "end_turn"),
    ] {
        let stand = Stand::with(&format!("turns: [{{text: It goes on and, {ends}}}]"), "");
        let agent = stand.project.read("agent.py");
        let silent = agent.replace("content=[block])", "content=[block], stop_reason=None)");
        assert_ne!(agent, silent);
        stand.project.write("agent.py", &silent);
        stand.run("observe", &[]);
        let stop = stand.trace("observe").pop().unwrap();
        assert_eq!((&stop["reason"], &stop["output"]), (&json!(reason), &json!("It goes on and")), "{stop}");
    }
}

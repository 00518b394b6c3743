//! Laws of streams that hold for all APIs: what is streamed and joined is the same, and what is cut is not complete.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::join::Joined;
use super::*;

/// Returns a text, often empty or longer than a piece, with characters of several bytes and marks of streams.
fn a_text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z ]{1,60}",
        "\\PC{0,40}",
        "[\\n\\r\\t\"\\\\:{}\\[\\],äß€🎉]{0,50}",
        Just("data: [DONE]\n\ndata: {\r\n\u{2028}".to_owned()),
    ]
}

fn an_id() -> impl Strategy<Value = String> {
    "[a-z0-9]{4,10}"
}

/// Returns a JSON object as the input of a call.
fn an_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        a_text().prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    });
    prop::collection::btree_map(a_text(), value, 0..4).prop_map(|map| json!(map))
}

/// Returns an object that has some of these keys.
fn some_of(keys: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let strategies: Vec<_> = keys
        .into_iter()
        .map(|(key, value)| prop::option::of(value).prop_map(move |value| value.map(|value| (key.to_owned(), value))))
        .collect();
    strategies.prop_map(|entries| Value::Object(entries.into_iter().flatten().collect::<Map<_, _>>()))
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

fn count() -> BoxedStrategy<Value> {
    (0..1_000_000u64).prop_map(Value::from).boxed()
}

fn texts() -> BoxedStrategy<Value> {
    a_text().prop_map(Value::from).boxed()
}

fn anthropic() -> BoxedStrategy<Value> {
    let citation = (a_text(), count())
        .prop_map(|(text, at)| json!({"type": "char_location", "cited_text": text, "start_char_index": at}));
    let citations = prop_oneof![Just(Value::Null), prop::collection::vec(citation, 0..3).prop_map(Value::from)].boxed();
    let block = prop_oneof![
        (a_text(), some_of(vec![("citations", citations)]))
            .prop_map(|(text, more)| with(json!({"type": "text", "text": text}), more)),
        (a_text(), a_text())
            .prop_map(|(text, signature)| json!({"type": "thinking", "thinking": text, "signature": signature})),
        a_text().prop_map(|data| json!({"type": "redacted_thinking", "data": data})),
        (an_id(), a_text(), an_object())
            .prop_map(|(id, name, input)| json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        (an_id(), an_object())
            .prop_map(|(id, input)| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": input})),
        (an_id(), an_object())
            .prop_map(|(id, found)| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [found]})),
        prop::option::of(a_text()).prop_map(|text| json!({"type": "compaction", "content": text})),
        an_object().prop_map(|more| with(more, json!({"type": "of_tomorrow"}))),
    ];
    let usage = some_of(vec![
        ("input_tokens", count()),
        ("cache_read_input_tokens", count()),
        ("cache_creation", an_object().boxed()),
        ("service_tier", texts()),
        ("server_tool_use", Just(json!({"web_search_requests": 1})).boxed()),
        ("output_tokens_details", Just(json!({"thinking_tokens": 3})).boxed()),
        ("of_tomorrow", an_object().boxed()),
    ]);
    let more = some_of(vec![
        ("stop_sequence", prop_oneof![Just(Value::Null), texts()].boxed()),
        ("stop_details", prop_oneof![Just(Value::Null), an_object()].boxed()),
        ("container", prop_oneof![Just(Value::Null), an_object()].boxed()),
        ("context_management", prop_oneof![Just(Value::Null), an_object()].boxed()),
        ("of_tomorrow", an_object().boxed()),
    ]);
    (an_id(), prop::collection::vec(block, 0..5), usage, count(), more)
        .prop_map(|(id, content, usage, output, more)| {
            let usage = with(usage, json!({"output_tokens": output}));
            let message = json!({"id": id, "type": "message", "role": "assistant", "model": "m", "content": content,
                "stop_reason": "end_turn", "usage": usage});
            with(message, more)
        })
        .boxed()
}

fn responses() -> BoxedStrategy<Value> {
    let summary = a_text().prop_map(|text| json!({"type": "summary_text", "text": text}));
    let reasoning = a_text().prop_map(|text| json!({"type": "reasoning_text", "text": text}));
    let part = prop_oneof![
        (
            a_text(),
            prop::collection::vec(an_object(), 0..3),
            some_of(vec![("logprobs", Just(json!([{"token": "a"}])).boxed())])
        )
            .prop_map(|(text, annotations, more)| with(
                json!({"type": "output_text", "text": text, "annotations": annotations}),
                more
            )),
        a_text().prop_map(|text| json!({"type": "refusal", "refusal": text})),
        an_object().prop_map(|more| with(more, json!({"type": "of_tomorrow"}))),
    ];
    let item = prop_oneof![
        (
            an_id(),
            prop::collection::vec(summary, 0..3),
            some_of(vec![
                ("content", prop::collection::vec(reasoning, 0..3).prop_map(Value::from).boxed()),
                ("encrypted_content", texts()),
                ("status", Just(Value::Null).boxed()),
            ])
        )
            .prop_map(|(id, summary, more)| with(json!({"type": "reasoning", "id": id, "summary": summary}), more)),
        (an_id(), prop::collection::vec(part, 0..3))
            .prop_map(|(id, content)| json!({"type": "message", "id": id, "role": "assistant", "status": "completed", "content": content})),
        (an_id(), an_id(), an_object()).prop_map(|(id, call, input)| json!({"type": "function_call", "id": id, "call_id": call,
            "name": "f", "status": "completed", "arguments": input.to_string()})),
        (an_id(), an_id(), a_text()).prop_map(|(id, call, input)| json!({"type": "custom_tool_call", "id": id, "call_id": call,
            "name": "f", "input": input})),
        (an_id(), an_id()).prop_map(|(id, call)| json!({"type": "local_shell_call", "id": id, "call_id": call,
            "status": "completed", "action": {"type": "exec", "command": ["ls"]}})),
        an_id().prop_map(|id| json!({"type": "web_search_call", "id": id, "status": "completed", "action": {"query": "q"}})),
        an_object().prop_map(|more| with(more, json!({"type": "of_tomorrow", "status": "completed"}))),
    ];
    let state = prop_oneof![
        Just(json!({"status": "completed", "error": null, "incomplete_details": null})),
        Just(json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}})),
        Just(json!({"status": "failed", "error": {"code": "server_error", "message": "no"}})),
    ];
    let usage = prop_oneof![Just(Value::Null), an_object()];
    (an_id(), prop::collection::vec(item, 0..5), state, usage, an_object())
        .prop_map(|(id, output, state, usage, more)| {
            let response = json!({"id": id, "object": "response", "model": "m", "output": output, "usage": usage});
            with(with(more, response), state)
        })
        .boxed()
}

fn chat() -> BoxedStrategy<Value> {
    let null_or = |value: BoxedStrategy<Value>| prop_oneof![Just(Value::Null), value].boxed();
    let call = prop_oneof![
        an_object()
            .prop_map(|input| json!({"type": "function", "function": {"name": "f", "arguments": input.to_string()}})),
        a_text().prop_map(|input| json!({"type": "custom", "custom": {"name": "f", "input": input}})),
        an_object().prop_map(
            |more| json!({"type": "function", "function": {"name": "f", "arguments": ""}, "extra_content": more})
        ),
    ];
    let calls = prop::collection::vec(call, 0..4).prop_map(|calls| {
        let calls = calls.into_iter().enumerate();
        calls.map(|(at, call)| with(call, json!({"id": format!("call_{at}")}))).collect::<Value>()
    });
    let detail = prop_oneof![
        a_text().prop_map(|text| json!({"type": "reasoning.text", "text": text, "index": 0})),
        a_text().prop_map(|data| json!({"type": "reasoning.encrypted", "data": data, "index": 0})),
    ];
    let message = some_of(vec![
        ("refusal", null_or(texts())),
        ("reasoning_content", null_or(texts())),
        ("reasoning", null_or(texts())),
        ("reasoning_details", prop::collection::vec(detail, 0..4).prop_map(Value::from).boxed()),
        ("annotations", prop::collection::vec(an_object(), 0..3).prop_map(Value::from).boxed()),
        ("audio", null_or(an_object().boxed())),
        ("tool_calls", null_or(calls.boxed())),
        ("of_tomorrow", null_or(texts())),
    ]);
    let content = prop_oneof![Just(Value::Null), texts()];
    let message =
        (content, message).prop_map(|(content, more)| with(json!({"role": "assistant", "content": content}), more));
    let logprobs =
        prop_oneof![Just(Value::Null), Just(json!({"content": [{"token": "a", "logprob": -0.5}], "refusal": null}))];
    let more = some_of(vec![("logprobs", logprobs.boxed()), ("content_filter_results", an_object().boxed())]);
    let choice =
        (message, more).prop_map(|(message, more)| with(json!({"message": message, "finish_reason": "stop"}), more));
    let choices = prop::collection::vec(choice, 1..4).prop_map(|choices| {
        let choices = choices.into_iter().enumerate();
        choices.map(|(at, choice)| with(choice, json!({"index": at}))).collect::<Value>()
    });
    let more = some_of(vec![
        ("system_fingerprint", null_or(texts())),
        ("service_tier", texts()),
        ("usage", null_or(an_object().boxed())),
        ("of_tomorrow", an_object().boxed()),
    ]);
    (an_id(), choices, more)
        .prop_map(|(id, choices, more)| {
            with(json!({"id": id, "object": "chat.completion", "created": 1, "model": "m", "choices": choices}), more)
        })
        .boxed()
}

fn gemini() -> BoxedStrategy<Value> {
    let part = prop_oneof![
        a_text().prop_map(|text| json!({"text": text})),
        a_text().prop_map(|text| json!({"text": text, "thought": true})),
        (a_text(), an_id()).prop_map(|(text, signature)| json!({"text": text, "thoughtSignature": signature})),
        (an_id(), an_object()).prop_map(
            |(id, args)| json!({"functionCall": {"id": id, "name": "f", "args": args}, "thoughtSignature": "s"})
        ),
        an_object().prop_map(|args| json!({"functionCall": {"name": "f", "args": args}})),
        a_text().prop_map(|code| json!({"executableCode": {"language": "PYTHON", "code": code}})),
        an_id().prop_map(|data| json!({"inlineData": {"mimeType": "image/png", "data": data}})),
        (a_text(), an_object()).prop_map(|(text, more)| json!({"text": text, "partMetadata": more})),
    ];
    // The service joins adjacent texts of the same kind, so a whole answer has none.
    let parts = prop::collection::vec(part, 0..6).prop_map(|parts| {
        let open = |part: &Value| {
            (part.get("text").is_some() && part.get("partMetadata").is_none()).then(|| part["thought"] == true)
        };
        let mut kept: Vec<Value> = Vec::new();
        for part in parts {
            let before = kept.last().filter(|last| last.get("thoughtSignature").is_none()).and_then(open);
            if before.is_none() || before != open(&part) {
                kept.push(part);
            }
        }
        json!({"role": "model", "parts": kept})
    });
    let content = prop_oneof![4 => parts.prop_map(Some), 1 => Just(Some(json!({"role": "model"}))), 1 => Just(None)];
    let more = some_of(vec![
        ("safetyRatings", prop::collection::vec(an_object(), 0..3).prop_map(Value::from).boxed()),
        ("groundingMetadata", an_object().boxed()),
        ("avgLogprobs", Just(json!(-0.25)).boxed()),
    ]);
    let candidate = (content, more).prop_map(|(content, more)| {
        let content = content.map_or(json!({}), |content| json!({"content": content}));
        with(with(content, json!({"finishReason": "STOP"})), more)
    });
    let candidates = (prop::collection::vec(candidate, 1..4), any::<bool>()).prop_map(|(candidates, numbered)| {
        let of = |(at, candidate)| if at > 0 || numbered { with(candidate, json!({"index": at})) } else { candidate };
        json!({"candidates": candidates.into_iter().enumerate().map(of).collect::<Vec<_>>()})
    });
    let blocked = an_object().prop_map(|more| json!({"promptFeedback": with(more, json!({"blockReason": "SAFETY"}))}));
    let more = some_of(vec![
        ("usageMetadata", an_object().boxed()),
        ("responseId", texts()),
        ("of_tomorrow", an_object().boxed()),
    ]);
    (prop_oneof![5 => candidates, 1 => blocked], more)
        .prop_map(|(answer, more)| with(with(answer, more), json!({"modelVersion": "m"})))
        .boxed()
}

/// Returns an answer of each API in each form of its stream.
fn an_answer() -> impl Strategy<Value = (Api, bool, Value)> {
    prop_oneof![
        anthropic().prop_map(|answer| (Api::Anthropic, false, answer)),
        responses().prop_map(|answer| (Api::OpenaiResponses, false, answer)),
        chat().prop_map(|answer| (Api::OpenaiChat, false, answer)),
        gemini().prop_map(|answer| (Api::Gemini, false, answer)),
        gemini().prop_map(|answer| (Api::Gemini, true, answer)),
    ]
}

fn options(as_list: bool) -> StreamOptions {
    StreamOptions { usage: true, as_list }
}

fn content_type(as_list: bool) -> &'static str {
    if as_list { "application/json" } else { "text/event-stream; charset=utf-8" }
}

fn joined<'a>(api: Api, as_list: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Joined {
    let mut join = Join::new(api, content_type(as_list));
    pieces.into_iter().for_each(|piece| join.push(piece));
    join.finish()
}

/// Returns a config that keeps no file of failures.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_streamed_answer_joins_to_itself((api, as_list, answer) in an_answer(), size in 1usize..40, end in 0usize..3) {
        let text = api.events(&answer, options(as_list)).concat();
        // A real service may use any line end, and leave out the last.
        let text = if as_list { text } else { text.replace("\r\n", "\n").replace('\n', ["\n", "\r\n", "\r"][end]) };
        let joined = joined(api, as_list, text.trim_end().as_bytes().chunks(size));
        prop_assert_eq!(joined.error, None);
        prop_assert_eq!(joined.response, Some(answer));
        prop_assert!(joined.complete);
    }

    #[test]
    fn a_stream_without_its_end_is_not_complete((api, as_list, answer) in an_answer(), at in any::<prop::sample::Index>()) {
        let body = api.unfinished(&answer, options(as_list)).concat();
        let whole = api.events(&answer, options(as_list)).concat();
        for text in [&body[..], &whole[..whole.floor_char_boundary(at.index(end_of(api, &whole)))]] {
            let joined = joined(api, as_list, [text.as_bytes()]);
            prop_assert!(!joined.complete, "{}", text);
            prop_assert_eq!(joined.error, None);
        }
    }

    #[test]
    fn nothing_in_a_stream_makes_the_joiner_fail(
        (api, as_list, answer) in an_answer(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut bytes = api.events(&answer, options(as_list)).concat().into_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        joined(api, as_list, [&bytes[..]]);
        for other in Api::ALL {
            joined(other, !as_list, bytes.chunks(7));
        }
    }

    #[test]
    fn values_of_other_forms_are_streamed_and_read_without_failing(value in an_object(), path in "\\PC{0,20}") {
        let odd = [value.clone(), json!([value]), json!("x"), json!({"content": [[]], "output": [1, {"content": [1]}],
            "choices": [1, {"message": {"tool_calls": [1]}}], "candidates": [{"content": {"parts": [1]}}]})];
        for (api, mut value) in Api::ALL.into_iter().flat_map(|api| odd.clone().map(|value| (api, value))) {
            api.unfinished(&value, options(true));
            api.events(&value, options(false));
            api.usage(&value);
            api.asked(&path, &value);
            api.model_asked(&path, &value);
            api.error_of(&value);
            api.ids_mut(&mut value, &mut |_, id| id.push('x'));
            api.results(&mut value, &mut |result| *result = json!(1));
            api.with_model(&path, &mut value, "m");
            api.without_volatile(&mut value);
        }
    }
}

/// Returns the position of the last content that an API needs: a prefix that ends before this position is incomplete.
fn end_of(api: Api, whole: &str) -> usize {
    match api {
        Api::OpenaiChat => whole.rfind("\"finish_reason\":\"").unwrap(),
        // The last events end at a bracket, which is followed only by line ends or the end of the list.
        _ => whole.rfind('}').unwrap(),
    }
}

//! What is read from requests and whole answers of each API: models, usage, ids, results of tools, errors.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use serde_json::{Value, json};

use super::*;

#[test]
fn words_of_apis_are_the_contracts_and_an_old_one_is_read() {
    let words = Api::ALL.map(|api| serde_json::to_value(api).unwrap());
    assert_eq!(words, ["anthropic", "openai-responses", "openai-chat", "gemini"]);
    assert_eq!(serde_json::from_value::<Api>(json!("anthropic-messages")).unwrap(), Api::Anthropic);
}

#[test]
fn models_are_in_the_body_or_in_the_path() {
    for api in [Api::Anthropic, Api::OpenaiResponses, Api::OpenaiChat] {
        let mut body = json!({"model": "a", "stream": true});
        assert_eq!(api.model_asked("/v1/x", &body).as_deref(), Some("a"));
        assert_eq!(api.with_model("/v1/x", &mut body, "b"), "/v1/x");
        assert_eq!(body, json!({"model": "b", "stream": true}));
        assert_eq!(api.model_answered(&json!({"model": "c"})).as_deref(), Some("c"));
    }
    let mut body = json!({});
    for (path, model, wanted) in [
        ("/v1beta/models/g:generateContent", Some("g"), "/v1beta/models/n:generateContent"),
        ("/x/models/g-2.5:streamGenerateContent?alt=sse", Some("g-2.5"), "/x/models/n:streamGenerateContent?alt=sse"),
        ("/v1beta/models/g?key=a:b/models/c:d", Some("g"), "/v1beta/models/n?key=a:b/models/c:d"),
        ("/v1internal:generateContent", None, "/v1internal:generateContent"),
    ] {
        assert_eq!(Api::Gemini.model_asked(path, &body).as_deref(), model, "{path}");
        assert_eq!(Api::Gemini.with_model(path, &mut body, "n"), wanted);
        assert_eq!(Api::Gemini.asked(path, &body).stream, path.contains("stream"));
    }
    assert_eq!(body, json!({}));
    assert_eq!(Api::Gemini.model_answered(&json!({"modelVersion": "g"})).as_deref(), Some("g"));
}

#[test]
fn tokens_that_only_the_total_shows_are_counted() {
    for (api, key, figures, total) in [
        (
            Api::OpenaiChat,
            "usage",
            json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 5015}),
            Some(5015),
        ),
        (Api::OpenaiResponses, "usage", json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 20}), Some(20)),
        (Api::Gemini, "usageMetadata", json!({"promptTokenCount": 10, "totalTokenCount": 12}), Some(12)),
        (Api::OpenaiChat, "usage", json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}), None),
        (Api::OpenaiChat, "usage", json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 3}), None),
    ] {
        let usage = api.usage(&json!({key: figures})).unwrap();
        assert_eq!(usage.total_tokens, total, "{figures}");
    }
}

#[test]
fn usage_is_counted_alike() {
    let usage = |api: Api, figures: Value| {
        let key = if api == Api::Gemini { "usageMetadata" } else { "usage" };
        let usage = api.usage(&json!({key: figures}))?;
        let figures = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens];
        Some([figures[0], figures[1], figures[2], usage.cache_write_tokens, usage.thought_tokens])
    };
    for (api, figures, wanted) in [
        (
            Api::Anthropic,
            json!({"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 9,
                "output_tokens_details": {"thinking_tokens": 4}}),
            Some([Some(5), Some(9), Some(3), Some(2), Some(4)]),
        ),
        (Api::Anthropic, json!({"output_tokens": 9}), Some([None, Some(9), None, None, None])),
        (Api::Anthropic, json!({"input_tokens": 0, "output_tokens": 0}), None),
        (
            Api::OpenaiResponses,
            json!({"input_tokens": 10, "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
                "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 19}),
            Some([Some(5), Some(9), Some(3), Some(2), Some(4)]),
        ),
        (
            Api::OpenaiChat,
            json!({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 4}, "total_tokens": 19}),
            Some([Some(7), Some(9), Some(3), None, Some(4)]),
        ),
        // A service that counts thoughts apart, one with other names, and one that does not include what is cached.
        (
            Api::OpenaiChat,
            json!({"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 4},
                "total_tokens": 19}),
            Some([Some(10), Some(9), None, None, Some(4)]),
        ),
        (
            Api::OpenaiChat,
            json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 8, "total_tokens": 15.0}),
            Some([Some(2), Some(5), Some(8), None, None]),
        ),
        (
            Api::OpenaiChat,
            json!({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 30}, "completion_tokens": 1}),
            Some([Some(10), Some(1), Some(30), None, None]),
        ),
        (Api::OpenaiChat, Value::Null, None),
        (
            Api::Gemini,
            json!({"promptTokenCount": 10, "cachedContentTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 4,
                "toolUsePromptTokenCount": 2, "totalTokenCount": 21}),
            Some([Some(9), Some(9), Some(3), None, Some(4)]),
        ),
        (
            Api::Gemini,
            json!({"promptTokenCount": 10, "thoughtsTokenCount": 4, "totalTokenCount": 14}),
            Some([Some(10), Some(4), None, None, Some(4)]),
        ),
        (Api::Gemini, json!({"promptTokenCount": 10, "totalTokenCount": 10}), Some([Some(10), None, None, None, None])),
    ] {
        assert_eq!(usage(api, figures.clone()), wanted, "{api:?} {figures}");
    }
    let written = serde_json::to_value(TokenUsage { input_tokens: Some(1), ..TokenUsage::default() }).unwrap();
    assert_eq!(written, json!({"input_tokens": 1}));
}

#[test]
fn ids_are_found_and_inputs_are_not_searched() {
    use IdKind::*;
    for (api, value, wanted) in [
        (
            Api::Anthropic,
            json!({"id": "m", "type": "message", "content": [
                {"type": "tool_use", "id": "a", "input": {"type": "tool_use", "id": "no"}},
                {"type": "server_tool_use", "id": "s", "input": {}}, {"type": "web_search_tool_result", "tool_use_id": "s"}]}),
            vec![(Response, "m"), (Call, "a"), (ServerCall, "s"), (ServerCall, "s")],
        ),
        (
            Api::Anthropic,
            json!({"metadata": {"user_id": "no"}, "messages": [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "no"}]}]}],
                "tools": [{"name": "no", "input_schema": {"properties": {"id": {"type": "tool_use", "id": "no"}}}}]}),
            vec![(Call, "a")],
        ),
        (
            Api::OpenaiResponses,
            json!({"id": "r", "object": "response", "previous_response_id": "p", "output": [
                {"type": "reasoning", "id": "rs"}, {"type": "message", "id": "m", "role": "assistant"},
                {"type": "function_call", "id": "f", "call_id": "c", "arguments": "no"},
                {"type": "custom_tool_call", "id": "t", "call_id": "d"}, {"type": "web_search_call", "id": "w"}]}),
            vec![
                (Response, "r"),
                (Response, "p"),
                (Reasoning, "rs"),
                (Message, "m"),
                (FunctionItem, "f"),
                (Call, "c"),
                (CustomItem, "t"),
                (Call, "d"),
                (Item, "w"),
            ],
        ),
        (
            Api::OpenaiResponses,
            json!({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}, {"role": "user", "content": "x"}],
                "tools": [{"type": "mcp", "id": "no"}]}),
            vec![(Call, "c")],
        ),
        (
            Api::OpenaiChat,
            json!({"id": "c", "choices": [{"message": {"tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]}}]}),
            vec![(Response, "c"), (Call, "a")],
        ),
        (
            Api::OpenaiChat,
            json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "tool", "tool_call_id": "a"}]}),
            vec![(Call, "a"), (Call, "a")],
        ),
        (
            Api::Gemini,
            json!({"responseId": "r", "candidates": [{"content": {"parts": [
                {"functionCall": {"id": "a", "args": {"functionCall": {"id": "no"}}}}]}}]}),
            vec![(Response, "r"), (Call, "a")],
        ),
        (
            Api::Gemini,
            json!({"contents": [{"parts": [{"functionResponse": {"id": "a", "name": "f", "response": {"id": "no"}}}]}]}),
            vec![(Call, "a")],
        ),
    ] {
        let wanted: Vec<(IdKind, String)> = wanted.into_iter().map(|(kind, id)| (kind, id.to_owned())).collect();
        let mut found = Vec::new();
        api.ids(&value, &mut |kind, id| found.push((kind, id.to_owned())));
        assert_eq!(found, wanted, "{api:?} {value}");
        let (mut found, mut value) = (Vec::new(), value);
        api.ids_mut(&mut value, &mut |kind, id| found.push((kind, std::mem::replace(id, api.new_id(kind, 7)))));
        assert_eq!(found, wanted);
        assert_eq!(value.to_string().matches("evals00000007").count(), wanted.len(), "{value}");
    }
    let ids = [Call, Response].map(|kind| Api::ALL.map(|api| api.new_id(kind, 1)));
    assert_eq!(ids[0], ["toolu_evals00000001", "call_evals00000001", "call_evals00000001", "call_evals00000001"]);
    assert_eq!(ids[1], ["msg_evals00000001", "resp_evals00000001", "chatcmpl-evals00000001", "resp_evals00000001"]);
}

#[test]
fn contents_of_results_are_visited_and_others_are_not() {
    for (api, mut request, places) in [
        (
            Api::Anthropic,
            json!({"messages": [{"role": "user", "content": "no"}, {"role": "user", "content": [
                {"type": "text", "text": "no"}, {"type": "tool_result", "tool_use_id": "a", "content": "x"},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}]}]}),
            vec!["/messages/1/content/1/content", "/messages/1/content/2/content"],
        ),
        (
            Api::OpenaiResponses,
            json!({"input": [{"type": "function_call_output", "output": "x"}, {"type": "custom_tool_call_output", "output": []},
                {"type": "message", "content": "no"}]}),
            vec!["/input/0/output", "/input/1/output"],
        ),
        (
            Api::OpenaiChat,
            json!({"messages": [{"role": "user", "content": "no"}, {"role": "tool", "content": "x"}]}),
            vec!["/messages/1/content"],
        ),
        (
            Api::Gemini,
            json!({"contents": [{"parts": [{"text": "no"}, {"functionResponse": {"name": "f", "response": {"output": "x"}}}]}]}),
            vec!["/contents/0/parts/1/functionResponse/response"],
        ),
    ] {
        let mut wanted = request.clone();
        for place in places {
            *wanted.pointer_mut(place).unwrap() = json!("seen");
        }
        api.results(&mut request, &mut |content| *content = json!("seen"));
        assert_eq!(request, wanted, "{api:?}");
    }
}

#[test]
fn results_are_read_with_their_texts_and_states() {
    let block = |text: &str| json!({"type": "text", "text": text});
    for (api, request, wanted) in [
        (
            Api::Anthropic,
            json!({"messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_scripted_2_0", "name": "f", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_scripted_2_1", "is_error": true, "content": "no"},
                    {"type": "tool_result", "tool_use_id": "x", "content": [block("a"), {"type": "image"}, block("b")]},
                    {"type": "tool_result", "tool_use_id": "toolu_scripted_2_0"}]}]}),
            vec![(2, 1, "no", Some(true)), (2, 1, "a\nb", Some(false)), (2, 0, "", Some(false))],
        ),
        (
            Api::OpenaiResponses,
            json!({"input": [
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": ""},
                {"type": "function_call_output", "call_id": "call_1", "output": "a"},
                {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "b"}]}]}),
            vec![(0, 0, "a", None), (0, 1, "b", None)],
        ),
        (
            Api::OpenaiChat,
            json!({"messages": [
                {"role": "assistant", "tool_calls": [{"id": "call_scripted_0_0"}]},
                {"role": "tool", "tool_call_id": "call_scripted_0_0", "content": "a"},
                {"role": "assistant", "content": "and"},
                {"role": "tool", "content": [block("b")]}]}),
            vec![(0, 0, "a", None), (1, 0, "b", None)],
        ),
        (
            Api::Gemini,
            json!({"contents": [{"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "f", "response": {"output": "a"}}},
                    {"functionResponse": {"name": "f", "response": {"error": "b"}}},
                    {"functionResponse": {"name": "f", "response": {"files": ["c"]}}}]}]}),
            vec![(0, 0, "a", Some(false)), (0, 1, "b", Some(true)), (0, 2, r#"{"files":["c"]}"#, Some(false))],
        ),
    ] {
        let read = api.asked("/v1beta/models/m:generateContent", &request).results;
        let read: Vec<_> = read.iter().map(|it| (it.turn.unwrap(), it.call, it.text.as_str(), it.failed)).collect();
        assert_eq!(read, wanted, "{api:?}");
    }
    let before = json!({"messages": [{"role": "tool", "content": "x"}]});
    assert_eq!(Api::OpenaiChat.asked("", &before).results[0].turn, None);
}

#[test]
fn volatile_parts_are_removed_at_any_depth() {
    let cached = json!({"type": "ephemeral"});
    let mut request = json!({"metadata": {"user_id": "u", "kept": 1}, "system": [{"text": "s", "cache_control": cached}],
        "messages": [{"content": [{"text": "m", "cache_control": cached}]}]});
    Api::Anthropic.without_volatile(&mut request);
    let wanted =
        json!({"metadata": {"kept": 1}, "system": [{"text": "s"}], "messages": [{"content": [{"text": "m"}]}]});
    assert_eq!(request, wanted);
    for (api, key) in [(Api::OpenaiResponses, "client_metadata"), (Api::OpenaiChat, "user"), (Api::Gemini, "labels")] {
        let mut request = json!({"kept": {key: 1}, key: {"a": 1}});
        api.without_volatile(&mut request);
        assert_eq!(request, json!({"kept": {key: 1}}));
    }
}

#[test]
fn errors_are_read_back_and_other_forms_too() {
    for api in Api::ALL {
        for (status, message) in [(429, "slow down"), (500, "no")] {
            let error = api.error(&Refusal { status, message: message.to_owned(), retry_after_ms: None });
            let read = api.error_of(&error).unwrap();
            assert_eq!(read.message, message);
            assert!(!read.kind.is_empty(), "{error}");
        }
        assert_eq!(api.error_of(&json!({"error": null, "output": []})), None);
        let plain = api.error_of(&json!({"error": "model not found"})).unwrap();
        assert_eq!((plain.kind.as_str(), plain.message.as_str()), ("", "model not found"));
        let number = api.error_of(&json!({"error": {"code": 502, "message": "bad"}})).unwrap();
        assert_eq!(number.kind, "502");
    }
}

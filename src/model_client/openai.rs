//! OpenAI Chat Completions, which many services speak: a question as a request, and its answer.

use serde_json::{Value, json};

use super::http::HeaderLine;
use super::{AskError, Failed, Question, Reply, reported_model, with_pricing};
use crate::gateway::Api;
use crate::trace::usage::uncached;
use crate::trace::{Usage, UsageScope};

/// Returns the path, headers and body of the request. The maximum length of an answer is left to the service, because
/// the key for it differs between services.
pub(super) fn request(model: &str, key: Option<&str>, question: &Question) -> (&'static str, Vec<HeaderLine>, Value) {
    let headers = key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect();
    let body = json!({
        "model": model,
        "messages": [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.user},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": true, "schema": question.schema},
        },
    });
    ("/chat/completions", headers, body)
}

/// Parses an answer.
pub(super) fn read(answer: &Value) -> Result<Reply, Failed> {
    let usage = usage(answer);
    let without_use = |error| Err(Failed { error, used: vec![usage.clone()] });
    let Some(choice) = answer["choices"].get(0) else {
        return without_use(AskError::Malformed("`choices` is missing".to_owned()));
    };
    let message = &choice["message"];
    match choice["finish_reason"].as_str() {
        Some("length") => return without_use(AskError::TooLong),
        Some("content_filter") => return without_use(AskError::Declined),
        _ if message["refusal"].as_str().is_some_and(|text| !text.is_empty()) => {
            return without_use(AskError::Declined);
        }
        _ => {}
    }
    let text = match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        _ => return without_use(AskError::Malformed("`content` is not a string".to_owned())),
    };
    Ok(Reply { text, model: usage.model.clone(), usage, cached: false, earlier: Vec::new() })
}

/// Returns the usage that an answer or an error reports.
pub(super) fn usage(answer: &Value) -> Usage {
    let told = &answer["usage"];
    let cached = told["prompt_tokens_details"]["cached_tokens"].as_u64();
    let mut usage = Usage { model: reported_model(answer), ..Usage::of(UsageScope::Call) };
    usage.input_tokens = uncached(told["prompt_tokens"].as_u64(), [cached, None]);
    usage.output_tokens = told["completion_tokens"].as_u64();
    usage.cache_read_tokens = cached;
    with_pricing(usage, Api::OpenaiChat.pricing(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_above_the_input_are_not_a_part_of_it() {
        let of = |sent: u64, cached: u64| {
            let told = json!({"prompt_tokens": sent, "prompt_tokens_details": {"cached_tokens": cached}});
            usage(&json!({"usage": told})).input_tokens
        };
        assert_eq!((of(10, 4), of(10, 90)), (Some(6), Some(10)));
    }
}

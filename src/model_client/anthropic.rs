//! Anthropic Messages: a question as a request, and its answer.

use serde_json::{Value, json};

use super::http::HeaderLine;
use super::{AskError, Failed, Question, Reply, reported_model, with_pricing};
use crate::gateway::Api;
use crate::trace::{Usage, UsageScope};

/// The maximum length of an answer, in tokens, which the API requires.
const MAX_TOKENS: u64 = 8192;

/// Returns the path, headers and body of the request.
pub(super) fn request(model: &str, key: Option<&str>, question: &Question) -> (&'static str, Vec<HeaderLine>, Value) {
    let mut headers = vec![("anthropic-version", "2023-06-01".to_owned())];
    headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
    let body = json!({
        "model": model,
        "max_tokens": MAX_TOKENS,
        "system": question.system,
        "messages": [{"role": "user", "content": question.user}],
        "output_config": {"format": {"type": "json_schema", "schema": question.schema}},
    });
    ("/v1/messages", headers, body)
}

/// Parses an answer.
pub(super) fn read(answer: &Value) -> Result<Reply, Failed> {
    let usage = usage(answer);
    let without_use = |error| Err(Failed { error, used: vec![usage.clone()] });
    match answer["stop_reason"].as_str() {
        Some("refusal") => return without_use(AskError::Declined),
        Some("max_tokens" | "model_context_window_exceeded") => return without_use(AskError::TooLong),
        _ => {}
    }
    let Some(blocks) = answer["content"].as_array() else {
        return without_use(AskError::Malformed("`content` is missing".to_owned()));
    };
    let texts = blocks.iter().filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    Ok(Reply { text: texts.collect(), model: usage.model.clone(), usage, cached: false, earlier: Vec::new() })
}

/// Returns the usage that an answer or an error reports.
pub(super) fn usage(answer: &Value) -> Usage {
    let count = |key: &str| answer["usage"][key].as_u64();
    let mut usage = Usage { model: reported_model(answer), ..Usage::of(UsageScope::Call) };
    (usage.input_tokens, usage.output_tokens) = (count("input_tokens"), count("output_tokens"));
    usage.cache_read_tokens = count("cache_read_input_tokens");
    usage.cache_write_tokens = count("cache_creation_input_tokens");
    with_pricing(usage, Api::Anthropic.pricing(answer))
}

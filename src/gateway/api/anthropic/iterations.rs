//! Anthropic Messages: the tokens and the price of an answer for which the service called models several times.
//!
//! `iterations` of a usage object lists these calls. The counts beside the list leave out the calls that summarised the
//! conversation (`compaction`), those of a model that was asked for advice (`advisor_message`), and those of a model that
//! declined before another one answered (`message` before `fallback_message`).

use serde_json::Value;

use crate::gateway::api::usage::count;
use crate::gateway::words::text;

/// The types of calls in the list.
const KNOWN: [&str; 4] = ["message", "compaction", "advisor_message", "fallback_message"];

/// The counts of actions of the service that cost nothing beside their tokens.
const FREE: [&str; 2] = ["web_fetch_requests", "tool_search_requests"];

/// The tokens that an answer used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTokens {
    /// The tokens of the model that answered: input, output, read from the cache, written to the cache.
    pub counts: [Option<u64>; 4],
    /// The tokens of other models.
    pub of_others: u64,
    /// True if a call of an unknown type may have used more tokens.
    pub is_partial: bool,
}

/// Reads the tokens of a usage object. `model` is the model that answered.
pub fn message_tokens(usage: &Value, model: Option<&str>) -> MessageTokens {
    let reported = counts(usage);
    let calls = calls(usage);
    let all = calls.iter().fold([None; 4], |sum, call| plus(sum, counts(call)));
    let leaves_out = |n: usize| reported[n].unwrap_or(0) < all[n].unwrap_or(0);
    if !(0..4).any(leaves_out) {
        return MessageTokens { counts: reported, of_others: 0, is_partial: false };
    }
    let fell_back = calls.iter().any(|call| text(call, "type") == "fallback_message");
    let (mut own, mut of_others, mut is_partial) = ([None; 4], 0u64, false);
    for call in calls {
        let counts = counts(call);
        if !KNOWN.contains(&text(call, "type")) {
            is_partial = true;
        } else if is_of_another(call, model, fell_back) {
            of_others = counts.into_iter().flatten().fold(of_others, u64::saturating_add);
        } else {
            own = plus(own, counts);
        }
    }
    MessageTokens { counts: std::array::from_fn(|n| reported[n].max(own[n])), of_others, is_partial }
}

/// Returns true if an answer costs more than its tokens at the prices of a table: a table has no price for cache writes
/// that last an hour, for searches and other paid actions of the service, and for the fast mode.
pub fn costs_more(usage: &Value) -> bool {
    let is_some = |value: &Value| value.as_f64().is_some_and(|number| number > 0.0);
    let for_an_hour = |object: &Value| object.pointer("/cache_creation/ephemeral_1h_input_tokens").is_some_and(is_some);
    let mut actions = usage["server_tool_use"].as_object().into_iter().flatten();
    usage["speed"] == "fast"
        || for_an_hour(usage)
        || calls(usage).iter().any(for_an_hour)
        || actions.any(|(name, number)| !FREE.contains(&name.as_str()) && is_some(number))
}

/// Returns the list of the calls.
fn calls(usage: &Value) -> &[Value] {
    usage["iterations"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn counts(object: &Value) -> [Option<u64>; 4] {
    ["/input_tokens", "/output_tokens", "/cache_read_input_tokens", "/cache_creation_input_tokens"]
        .map(|key| count(object, key))
}

fn plus(sum: [Option<u64>; 4], more: [Option<u64>; 4]) -> [Option<u64>; 4] {
    std::array::from_fn(|n| match (sum[n], more[n]) {
        (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
        (sum, more) => sum.or(more),
    })
}

/// Returns true if another model than the one that answered made a call.
fn is_of_another(call: &Value, model: Option<&str>, fell_back: bool) -> bool {
    let of = call["model"].as_str();
    match text(call, "type") {
        "advisor_message" => of.is_none() || of != model,
        // Without a fallback, these are calls of the model that answered.
        "message" => fell_back && of.is_some() && of != model,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(kind: &str, model: &str, [input, output]: [u64; 2]) -> Value {
        json!({"type": kind, "model": model, "input_tokens": input, "output_tokens": output})
    }

    fn read([input, output]: [u64; 2], calls: &[Value]) -> ([u64; 2], u64, bool) {
        let usage = json!({"input_tokens": input, "output_tokens": output, "iterations": calls});
        let MessageTokens { counts, of_others, is_partial } = message_tokens(&usage, Some("m"));
        assert_eq!(counts[2..], [None, None]);
        ([counts[0].unwrap(), counts[1].unwrap()], of_others, is_partial)
    }

    #[test]
    fn calls_that_the_counts_leave_out_are_added_once() {
        let (summary, own) = (call("compaction", "m", [180, 35]), call("message", "m", [23, 10]));
        assert_eq!(read([23, 10], std::slice::from_ref(&own)), ([23, 10], 0, false));
        assert_eq!(read([23, 10], &[]), ([23, 10], 0, false));
        assert_eq!(read([23, 10], &[summary.clone(), own.clone()]), ([203, 45], 0, false));
        // A service whose counts include all calls, and one that counts the input of the first call only.
        assert_eq!(read([203, 45], &[summary, own.clone()]), ([203, 45], 0, false));
        assert_eq!(read([23, 20], &[own.clone(), own.clone()]), ([46, 20], 0, false));
        assert_eq!(read([23, 10], &[own.clone(), call("advisor_message", "big", [800, 160])]), ([23, 10], 960, false));
        assert_eq!(read([23, 10], &[own.clone(), call("advisor_message", "m", [800, 160])]), ([823, 170], 0, false));
        let declined = call("message", "big", [50, 5]);
        assert_eq!(read([23, 10], &[declined, call("fallback_message", "m", [23, 10])]), ([23, 10], 55, false));
        assert_eq!(read([23, 10], &[own.clone(), call("of_tomorrow", "m", [1, 1])]), ([23, 10], 0, true));
        assert_eq!(read([24, 11], &[own, call("of_tomorrow", "m", [1, 1])]), ([24, 11], 0, false));
    }

    #[test]
    fn what_a_price_table_has_no_price_for_is_recognised() {
        for (usage, more) in [
            (json!({"cache_creation": {"ephemeral_5m_input_tokens": 9, "ephemeral_1h_input_tokens": 0}}), false),
            (json!({"cache_creation": {"ephemeral_1h_input_tokens": 9}}), true),
            (json!({"iterations": [{"cache_creation": {"ephemeral_1h_input_tokens": 9}}]}), true),
            (json!({"server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 3}}), false),
            (json!({"server_tool_use": {"web_search_requests": 1}}), true),
            (json!({"speed": "standard", "server_tool_use": null}), false),
            (json!({"speed": "fast"}), true),
        ] {
            assert_eq!(costs_more(&usage), more, "{usage}");
        }
    }
}

//! Reads a `result` line: the usage, and how the agent ended its turn.

use serde_json::Value;

use crate::adapter::{EndReport, errors};
use crate::trace::usage::Measure;
use crate::trace::{ErrorCategory, StopReason, Usage, UsageScope};
use crate::values::Pattern;

use super::lenient::{Count, Present, Stated, Word};
use super::lines::{Line, ModelUsage, TokenUsage};

/// The state of a turn, beside its `result` line.
#[derive(Debug, Default)]
pub(crate) struct Turn<'a> {
    /// True if the agent was asked to stop, or reports that it was.
    pub(crate) interrupted: bool,
    /// The last API error that the agent showed instead of an answer.
    pub(crate) api_error: Option<&'a str>,
    /// The agent's word for the kind of that error.
    pub(crate) error_word: Option<&'a str>,
    /// The final text.
    pub(crate) text: &'a str,
    /// The agent's last message, if its program and not its model wrote it.
    pub(crate) by_program: Option<&'a str>,
    /// True if the model wrote the agent's last message, false if the agent's program did; `None` if no message is known.
    pub(crate) by_model: Option<bool>,
    /// The stop reason of the model's last message, which counts if the `result` line states none.
    pub(crate) stop_reason: Option<&'a str>,
    /// Patterns of errors that the agent reports as an answer.
    pub(crate) error_text: &'a [Pattern],
}

/// Returns how the agent ended the turn.
pub(crate) fn answer(line: &Line<'_>, turn: &Turn<'_>) -> EndReport {
    let ended = |reason| EndReport::Ended { reason, detail: None };
    let no_answer = |detail: &str| EndReport::Failed { category: ErrorCategory::Protocol, detail: detail.to_owned() };
    if !line.is_outcome() {
        return no_answer("the result line contains no result");
    }
    let stop_reason = match &line.stop_reason {
        Word::Absent => turn.stop_reason.unwrap_or_default(),
        Word::Text(word) => word.as_ref(),
        Word::Odd => return no_answer("the stop reason is not a string"),
    };
    if line.is_error == Stated::Odd {
        return no_answer("`is_error` is not a boolean");
    }
    let message = error_message(line);
    let terminal = line.terminal_reason.or_empty();
    let subtype = line.subtype.or_empty();
    match subtype {
        "error_max_turns" => return EndReport::Ended { reason: StopReason::MaxTurns, detail: message },
        "error_max_budget_usd" => return EndReport::Ended { reason: StopReason::MaxBudget, detail: message },
        "cancelled" | "canceled" | "interrupted" | "aborted" => return ended(StopReason::Cancelled),
        _ => {}
    }
    let by_text =
        |text: &str| turn.error_word.and_then(|word| by_word(word, text)).unwrap_or_else(|| errors::by_text(text));
    let is_error = line.is_error.is_true() || subtype.starts_with("error") || terminal == "api_error";
    let detail = message.unwrap_or_else(|| subtype.to_owned());
    if let Some(category) = line.api_error_status.0.and_then(errors::by_status) {
        return EndReport::Failed { category, detail };
    }
    if is_error {
        if turn.interrupted || terminal.starts_with("aborted") {
            return ended(StopReason::Cancelled);
        }
        // The agent's program reports these as API errors, although the model answered and its answer ended this way.
        match stop_reason {
            "refusal" => return ended(StopReason::Refusal),
            "max_tokens" => return ended(StopReason::MaxTokens),
            _ => {}
        }
        let category = match by_text(&detail) {
            ErrorCategory::Protocol if terminal == "api_error" => ErrorCategory::Provider,
            category => category,
        };
        return EndReport::Failed { category, detail };
    }
    if !matches!(subtype, "" | "success") {
        return EndReport::Ended { reason: StopReason::Other, detail: Some(subtype.to_owned()) };
    }
    match terminal {
        "max_turns" => return ended(StopReason::MaxTurns),
        _ if terminal.starts_with("aborted") => return ended(StopReason::Cancelled),
        "prompt_too_long" | "model_error" | "image_error" | "blocking_limit" => {
            let category = Some(by_text(&detail)).filter(|category| *category != ErrorCategory::Protocol);
            let category = category.unwrap_or(ErrorCategory::Provider);
            return EndReport::Failed {
                category,
                detail: if detail.is_empty() { terminal.to_owned() } else { detail },
            };
        }
        _ => {}
    }
    match stop_reason {
        "max_tokens" => ended(StopReason::MaxTokens),
        "refusal" => ended(StopReason::Refusal),
        "" | "end_turn" | "stop_sequence" | "tool_use" => match shown_error(line, turn) {
            Some(text) => EndReport::Failed { category: by_text(text), detail: text.to_owned() },
            None => ended(StopReason::EndTurn),
        },
        other => EndReport::Ended { reason: StopReason::Other, detail: Some(other.to_owned()) },
    }
}

/// Returns the category of an error by the agent's word for it. A general word leaves the decision to an HTTP status in the text.
fn by_word(word: &str, text: &str) -> Option<ErrorCategory> {
    match word {
        "authentication_failed" | "oauth_org_not_allowed" => Some(ErrorCategory::Auth),
        "rate_limit" | "overloaded" => Some(ErrorCategory::RateLimit),
        // The program gives up with `Repeated 529 Overloaded errors`, which does not name the number as a status.
        "server_error" if errors::by_text(text) == ErrorCategory::RateLimit => Some(ErrorCategory::RateLimit),
        "invalid_request" | "server_error" => errors::by_status_in(text).or(Some(ErrorCategory::Provider)),
        "billing_error" | "model_not_found" => Some(ErrorCategory::Provider),
        _ => None,
    }
}

/// Returns the agent's message about the error: `errors`, else `result`.
fn error_message(line: &Line<'_>) -> Option<String> {
    let errors: Vec<&str> = line.errors.0.iter().filter_map(|error| error.get()).collect();
    if errors.is_empty() { line.result.owned() } else { Some(errors.join("; ")) }
}

/// Returns an error that the agent showed instead of an answer. A text alone is an error only if nothing in the lines
/// says that it is an answer.
fn shown_error<'a>(line: &'a Line<'_>, turn: &Turn<'a>) -> Option<&'a str> {
    if turn.api_error.is_some() || is_answer(line, turn) {
        return turn.api_error;
    }
    let is_error = |text: &str| turn.error_text.iter().any(|pattern| pattern.is_match(text));
    [line.result.or_empty(), turn.text, turn.by_program.unwrap_or_default()].into_iter().find(|text| is_error(text))
}

/// Returns true if the agent's program states that the turn succeeded, and the model wrote the last message. If no message is
/// known, as in a final JSON alone, the agent states that the turn was completed.
fn is_answer(line: &Line<'_>, turn: &Turn<'_>) -> bool {
    let succeeded = line.is_error == Stated::Is(false) && line.subtype.get() == Some("success");
    succeeded && turn.by_model.unwrap_or_else(|| line.terminal_reason.get() == Some("completed"))
}

/// Returns the usage that the line reports. `modelUsage` counts the whole session with its sub-agents, and agrees
/// with the cost. Without `modelUsage`, the figures of the turn and the cost are separate reports.
pub(crate) fn usages(line: &Line<'_>) -> Vec<Usage> {
    let mut session = Usage::of(UsageScope::Session);
    session.cost_usd = line.total_cost_usd.0;
    let models: Vec<(&String, &ModelUsage)> = match line.model_usage.get() {
        Some(models) => models.iter().filter_map(|(name, usage)| Some((name, usage.0.as_ref()?))).collect(),
        None => Vec::new(),
    };
    let mut partial = Vec::new();
    let mut sum = |measure: Measure, figure: fn(&ModelUsage) -> &Count| {
        let figures: Vec<u64> = models.iter().filter_map(|(_, usage)| figure(usage).0).collect();
        // A figure that only some of the models have is a lower bound.
        if figures.len() < models.len() || unreadable_models(line) > 0 {
            partial.push(measure);
        }
        (!figures.is_empty()).then(|| figures.into_iter().fold(0, u64::saturating_add))
    };
    if !models.is_empty() {
        session.input_tokens = sum(Measure::InputTokens, |usage| &usage.input_tokens);
        session.output_tokens = sum(Measure::OutputTokens, |usage| &usage.output_tokens);
        session.cache_read_tokens = sum(Measure::CacheReadTokens, |usage| &usage.cache_read_input_tokens);
        session.cache_write_tokens = sum(Measure::CacheWriteTokens, |usage| &usage.cache_creation_input_tokens);
        session.thought_tokens = sum(Measure::ThoughtTokens, |usage| &usage.thinking_tokens);
        session.at_least(partial);
        if let Some(turn) = &line.usage.0 {
            at_least_of_turn(&mut session, turn);
        }
        if models.iter().any(|(_, usage)| usage.has_guessed_cost()) {
            // The total contains the guess.
            session.cost_usd = None;
        }
        if session.cost_usd.is_none() {
            let sum: Option<f64> = models.iter().map(|(_, usage)| usage.cost()).sum();
            session.cost_usd = sum.filter(|cost| cost.is_finite() && unreadable_models(line) == 0);
        }
        at_least_of_models(&mut session, &models);
        session.model = only_model(line);
    }
    let mut usages = Vec::new();
    if session.input_tokens.is_none()
        && session.output_tokens.is_none()
        && let Some(usage) = &line.usage.0
    {
        let mut turn = Usage::of(UsageScope::Turn);
        turn.input_tokens = usage.input_tokens.0;
        turn.output_tokens = usage.output_tokens.0;
        turn.cache_read_tokens = usage.cache_read_input_tokens.0;
        turn.cache_write_tokens = usage.cache_creation_input_tokens.0;
        turn.thought_tokens = usage.output_tokens_details.0.as_ref().and_then(|details| details.thinking_tokens.0);
        // What other models did is unknown, and so is whether the figures include calls beside those for the answer.
        let is_beside = |call: &Value| call.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "message");
        if unreadable_models(line) > 0 || usage.iterations.0.iter().any(is_beside) {
            turn.at_least(Measure::TOKENS);
        }
        usages.push(turn);
    }
    usages.push(session);
    usages
}

/// Returns the number of searches and fetches that the model's service carried out.
pub(crate) fn served(line: &Line<'_>) -> u64 {
    let of_turn = line.usage.0.as_ref().and_then(|usage| usage.server_tool_use.0.as_ref());
    let of_turn = of_turn.map_or(0, |served| {
        served.web_search_requests.0.unwrap_or(0).saturating_add(served.web_fetch_requests.0.unwrap_or(0))
    });
    let models = line.model_usage.get().into_iter().flat_map(|models| models.values());
    let of_models = models.filter_map(|usage| usage.0.as_ref()?.web_search_requests.0).fold(0, u64::saturating_add);
    of_turn.max(of_models)
}

/// The factor up to which a cost and the sum of its parts are the same figure, rounded.
const ROUNDED: f64 = 1.01;

/// Raises a cost that is less than the costs of the models together, and marks it as a lower bound. Without any cost, the
/// price of tokens of several models is unknown.
fn at_least_of_models(session: &mut Usage, models: &[(&String, &ModelUsage)]) {
    let parts: f64 = models.iter().filter_map(|(_, usage)| usage.cost()).filter(|cost| *cost > 0.0).sum();
    match session.cost_usd {
        Some(cost) if parts.is_finite() && cost * ROUNDED < parts => {
            session.cost_usd = Some(parts);
            session.at_least([Measure::CostUsd]);
        }
        None if models.len() > 1 => session.lacks_cost(),
        _ => {}
    }
}

/// Raises figures of a session that are less than those of its last turn, and marks them as lower bounds.
fn at_least_of_turn(session: &mut Usage, turn: &TokenUsage) {
    let pairs = [
        (&mut session.input_tokens, &turn.input_tokens, Measure::InputTokens),
        (&mut session.output_tokens, &turn.output_tokens, Measure::OutputTokens),
        (&mut session.cache_read_tokens, &turn.cache_read_input_tokens, Measure::CacheReadTokens),
        (&mut session.cache_write_tokens, &turn.cache_creation_input_tokens, Measure::CacheWriteTokens),
    ];
    let mut raised = Vec::new();
    for (of_session, of_turn, measure) in pairs {
        if let (Some(all), Some(part)) = (of_session.as_mut(), of_turn.0)
            && part > *all
        {
            *all = part;
            raised.push(measure);
        }
    }
    session.at_least(raised);
}

/// Returns the number of models whose usage is not an object, so that their figures are unknown. A value for all models
/// that is no object counts as one model.
pub(crate) fn unreadable_models(line: &Line<'_>) -> usize {
    match &line.model_usage {
        Present::Absent => 0,
        Present::Is(models) => models.values().filter(|usage| usage.0.is_none()).count(),
        Present::Odd => 1,
    }
}

/// Returns the model, if the line names exactly one.
pub(crate) fn only_model(line: &Line<'_>) -> Option<String> {
    let models = line.model_usage.get()?;
    let mut names = models.keys();
    names.next().filter(|_| names.next().is_none()).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(json: &str) -> Line<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn every_ending_has_its_reason() {
        let ended = |reason| EndReport::Ended { reason, detail: None };
        let failed = |category, detail: &str| EndReport::Failed { category, detail: detail.to_owned() };
        for (json, expected) in [
            (r#"{"subtype":"success","stop_reason":"end_turn"}"#, ended(StopReason::EndTurn)),
            (r#"{"subtype":"success"}"#, ended(StopReason::EndTurn)),
            (r#"{"subtype":"success","stop_reason":"max_tokens"}"#, ended(StopReason::MaxTokens)),
            (r#"{"subtype":"success","is_error":true,"stop_reason":"refusal"}"#, ended(StopReason::Refusal)),
            (
                r#"{"subtype":"success","stop_reason":"pause_turn"}"#,
                EndReport::Ended { reason: StopReason::Other, detail: Some("pause_turn".into()) },
            ),
            (
                r#"{"subtype":"error_max_budget_usd","is_error":true,"errors":["Reached maximum budget ($1)"]}"#,
                EndReport::Ended { reason: StopReason::MaxBudget, detail: Some("Reached maximum budget ($1)".into()) },
            ),
            (
                r#"{"subtype":"error_during_execution","is_error":true,"errors":["boom","bang"]}"#,
                failed(ErrorCategory::Protocol, "boom; bang"),
            ),
            (
                r#"{"subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}"#,
                ended(StopReason::Cancelled),
            ),
            (
                r#"{"subtype":"success","is_error":true,"api_error_status":401,"result":"no"}"#,
                failed(ErrorCategory::Auth, "no"),
            ),
            (
                r#"{"subtype":"success","is_error":true,"api_error_status":529,"result":"no"}"#,
                failed(ErrorCategory::RateLimit, "no"),
            ),
            (
                r#"{"subtype":"success","is_error":true,"terminal_reason":"api_error","result":"gone"}"#,
                failed(ErrorCategory::Provider, "gone"),
            ),
            (
                r#"{"subtype":"success","stop_reason":"end_turn","result":"API Error: 500 oops"}"#,
                failed(ErrorCategory::Provider, "API Error: 500 oops"),
            ),
            (r#"{"total_cost_usd":1}"#, failed(ErrorCategory::Protocol, "the result line contains no result")),
            (
                r#"{"subtype":"success","stop_reason":["end_turn"]}"#,
                failed(ErrorCategory::Protocol, "the stop reason is not a string"),
            ),
            (r#"{"subtype":"success","stop_reason":null}"#, ended(StopReason::EndTurn)),
            (r#"{"subtype":"success","is_error":"true","result":"no"}"#, failed(ErrorCategory::Protocol, "no")),
            (r#"{"subtype":"success","is_error":1,"result":"no"}"#, failed(ErrorCategory::Protocol, "no")),
            (r#"{"subtype":"success","is_error":"false","result":"fine"}"#, ended(StopReason::EndTurn)),
            (r#"{"subtype":"success","is_error":null,"result":"fine"}"#, ended(StopReason::EndTurn)),
            (
                r#"{"subtype":"success","is_error":"perhaps","result":"fine"}"#,
                failed(ErrorCategory::Protocol, "`is_error` is not a boolean"),
            ),
            (r#"{"subtype":"error_new","is_error":true}"#, failed(ErrorCategory::Protocol, "error_new")),
            (r#"{"subtype":"cancelled","is_error":false,"result":"no"}"#, ended(StopReason::Cancelled)),
            (
                r#"{"subtype":"weird","is_error":false,"result":"no"}"#,
                EndReport::Ended { reason: StopReason::Other, detail: Some("weird".into()) },
            ),
            (r#"{"subtype":"success","is_error":false,"terminal_reason":"max_turns"}"#, ended(StopReason::MaxTurns)),
            (r#"{"subtype":"success","terminal_reason":"aborted_tools"}"#, ended(StopReason::Cancelled)),
            (
                r#"{"subtype":"success","terminal_reason":"prompt_too_long","result":"Prompt is too long"}"#,
                failed(ErrorCategory::Provider, "Prompt is too long"),
            ),
            (r#"{"subtype":"success","terminal_reason":"completed"}"#, ended(StopReason::EndTurn)),
        ] {
            let error_text = ["^API Error".parse().unwrap()];
            let turn = Turn { error_text: &error_text, ..Turn::default() };
            assert_eq!(answer(&line(json), &turn), expected, "{json}");
        }
    }

    #[test]
    fn the_stop_reason_of_the_last_message_counts_if_the_result_states_none() {
        let turn = Turn { stop_reason: Some("max_tokens"), ..Turn::default() };
        for (json, reason) in [
            (r#"{"subtype":"success"}"#, StopReason::MaxTokens),
            (r#"{"subtype":"success","stop_reason":null}"#, StopReason::MaxTokens),
            (r#"{"subtype":"success","stop_reason":"end_turn"}"#, StopReason::EndTurn),
        ] {
            assert_eq!(answer(&line(json), &turn), EndReport::Ended { reason, detail: None }, "{json}");
        }
    }

    #[test]
    fn a_text_alone_is_no_error_if_the_fields_say_that_it_is_an_answer() {
        let error_text = ["^API Error".parse().unwrap()];
        let failed = EndReport::Failed { category: ErrorCategory::RateLimit, detail: "API Error: 429 slow".into() };
        let ended = EndReport::Ended { reason: StopReason::EndTurn, detail: None };
        let success = r#""subtype":"success","result":"API Error: 429 slow""#;
        for (fields, by_model, expected) in [
            (r#","is_error":false"#, Some(true), &ended),
            (r#","is_error":false"#, Some(false), &failed),
            (r#","is_error":false"#, None, &failed),
            (r#","is_error":false,"terminal_reason":"completed""#, None, &ended),
            (r#","is_error":false,"terminal_reason":"completed""#, Some(false), &failed),
            (r#","is_error":false,"api_error_status":429"#, Some(true), &failed),
            (r#","is_error":true"#, Some(true), &failed),
            ("", Some(true), &failed),
        ] {
            let json = format!("{{{success}{fields}}}");
            let turn = Turn { error_text: &error_text, by_model, ..Turn::default() };
            assert_eq!(answer(&line(&json), &turn), *expected, "{json} {by_model:?}");
            let marked = Turn { api_error: Some("API Error: 429 slow"), ..turn };
            assert_eq!(answer(&line(&json), &marked), failed, "{json}");
        }
    }

    #[test]
    fn the_program_says_what_kind_of_error_it_is() {
        for (word, category) in [
            ("rate_limit", ErrorCategory::RateLimit),
            ("authentication_failed", ErrorCategory::Auth),
            ("server_error", ErrorCategory::Provider),
            ("unknown", ErrorCategory::Protocol),
        ] {
            for is_error in [true, false] {
                let json = format!(r#"{{"subtype":"success","is_error":{is_error},"result":"Come back later"}}"#);
                let turn = Turn {
                    api_error: Some("Come back later"),
                    error_word: Some(word),
                    by_model: Some(false),
                    ..Turn::default()
                };
                let failed = EndReport::Failed { category, detail: "Come back later".into() };
                assert_eq!(answer(&line(&json), &turn), failed, "{json} {word}");
            }
        }
    }

    #[test]
    fn a_status_in_the_text_decides_if_the_word_for_the_error_is_general() {
        for (word, text, category) in [
            ("server_error", "API Error: 529 overloaded", ErrorCategory::RateLimit),
            ("server_error", "API Error: Repeated 529 Overloaded errors", ErrorCategory::RateLimit),
            ("server_error", "API Error: 500 please log in", ErrorCategory::Provider),
            ("invalid_request", "API Error: 401 no", ErrorCategory::Auth),
            ("invalid_request", "a message quotes: rate limit reached", ErrorCategory::Provider),
            ("billing_error", "API Error: 429 no", ErrorCategory::Provider),
        ] {
            let json = format!(r#"{{"subtype":"success","is_error":true,"result":"{text}"}}"#);
            let turn = Turn { api_error: Some(text), error_word: Some(word), by_model: Some(false), ..Turn::default() };
            let failed = EndReport::Failed { category, detail: text.into() };
            assert_eq!(answer(&line(&json), &turn), failed, "{word} {text}");
        }
    }

    #[test]
    fn an_interrupt_makes_an_aborted_turn_cancelled() {
        let line = line(r#"{"subtype":"error_during_execution","is_error":true,"errors":["boom"]}"#);
        let turn = Turn { interrupted: true, ..Turn::default() };
        assert_eq!(answer(&line, &turn), EndReport::Ended { reason: StopReason::Cancelled, detail: None });
    }

    #[test]
    fn models_add_up_and_a_figure_that_one_of_them_lacks_is_a_lower_bound() {
        let usages = usages(&line(
            r#"{"total_cost_usd":0.5,"usage":{"input_tokens":9,"output_tokens":9},"modelUsage":{
                "a":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3},
                "b":{"inputTokens":10,"outputTokens":20}}}"#,
        ));
        assert_eq!(usages.len(), 1);
        assert_eq!(usages[0].scope, UsageScope::Session);
        assert_eq!((usages[0].input_tokens, usages[0].output_tokens), (Some(11), Some(22)));
        assert_eq!((usages[0].cache_read_tokens, usages[0].cost_usd), (Some(3), Some(0.5)));
        assert_eq!(usages[0].lower_bounds, [Measure::CacheReadTokens]);
        assert_eq!(usages[0].model, None);
    }

    #[test]
    fn a_model_without_readable_usage_makes_the_sum_a_lower_bound() {
        let usages = usages(&line(r#"{"modelUsage":{"m":{"inputTokens":1,"outputTokens":3,"costUSD":0.5},"n":null}}"#));
        assert_eq!((usages[0].input_tokens, usages[0].output_tokens), (Some(1), Some(3)));
        assert!(usages[0].lower_bounds.contains(&Measure::InputTokens));
        assert!(usages[0].lower_bounds.contains(&Measure::OutputTokens));
        assert_eq!(usages[0].cost_usd, None);
    }

    #[test]
    fn a_cost_at_a_guessed_price_is_unknown() {
        let costs = |bases: &[&str]| {
            let models = bases.iter().enumerate().map(|(n, basis)| {
                format!(r#""m{n}":{{"inputTokens":1,"outputTokens":3,"costUSD":0.25,"costBasis":{basis}}}"#)
            });
            let models = models.collect::<Vec<_>>().join(",");
            let usages = usages(&line(&format!(r#"{{"total_cost_usd":0.5,"modelUsage":{{{models}}}}}"#)));
            (usages[0].cost_usd, usages[0].lower_bounds.contains(&Measure::CostUsd))
        };
        assert_eq!(costs(&[r#""list""#, r#""managed""#]), (Some(0.5), false));
        assert_eq!(costs(&["null", "7"]), (Some(0.5), false));
        assert_eq!(costs(&[r#""unknown""#]), (None, false));
        assert_eq!(costs(&[r#""list""#, r#""unknown""#]), (None, true));
    }

    #[test]
    fn without_any_readable_model_the_turn_is_a_lower_bound() {
        for models in [r#"{"m":null}"#, r#"{"m":"lots"}"#, r#"[{"inputTokens":1000}]"#, "5"] {
            let json = format!(r#"{{"usage":{{"input_tokens":1,"output_tokens":2}},"modelUsage":{models}}}"#);
            let (line, usages) = (line(&json), usages(&line(&json)));
            assert_eq!(usages[0].lower_bounds, [Measure::InputTokens, Measure::OutputTokens], "{models}");
            assert_eq!(unreadable_models(&line), 1, "{models}");
        }
    }

    #[test]
    fn without_model_usage_the_turn_is_counted() {
        for json in [
            r#"{"total_cost_usd":0.5,"usage":{"input_tokens":9,"output_tokens":8}}"#,
            r#"{"total_cost_usd":0.5,"usage":{"input_tokens":9,"output_tokens":8},"modelUsage":{}}"#,
        ] {
            let usages = usages(&line(json));
            assert_eq!(usages.len(), 2, "{json}");
            assert_eq!((usages[0].scope, usages[0].input_tokens), (UsageScope::Turn, Some(9)));
            assert_eq!((usages[1].scope, usages[1].cost_usd), (UsageScope::Session, Some(0.5)));
            assert_eq!(usages[1].input_tokens, None);
        }
    }

    #[test]
    fn calls_that_the_turn_may_leave_out_make_it_a_lower_bound() {
        for (kind, bounds) in [("message", &[][..]), ("compaction", &[Measure::InputTokens, Measure::OutputTokens])] {
            let usage = format!(r#"{{"input_tokens":9,"output_tokens":8,"iterations":[{{"type":"{kind}"}}]}}"#);
            let usages = usages(&line(&format!(r#"{{"usage":{usage}}}"#)));
            assert_eq!(usages[0].lower_bounds, bounds, "{kind}");
        }
    }
}

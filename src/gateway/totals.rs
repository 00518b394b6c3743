//! Sums over the exchanges of a gateway: tokens by model, failures, and the turns of the script.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::api::{Pricing, TokenUsage};
use super::exchange::{Exchange, Failure, FailureKind, Source};
use super::purpose::Purpose;
use super::refusals::Refusals;
use super::script_line::Tally;
use crate::price;
use crate::trace::amount::Amount;
use crate::trace::usage::{Measure, UsageTotal};
use crate::trace::{Usage, UsageScope};

/// Sums over exchanges.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// The number of answers of a model.
    pub answers: u64,
    /// The number of answers whose token counts are missing or incomplete.
    pub without_usage: u64,
    /// The number of answers without token counts to requests that no API describes, with method and path of the first one.
    pub uncounted: Option<(u64, String)>,
    /// The number of answers that broke off before their end: no program knows all of their tokens.
    pub cut: u64,
    /// Tokens by the model that answered. An unknown model has an empty name.
    by_model: BTreeMap<String, Used>,
    /// The first failure of each kind, with the number of failures of this kind.
    failures: BTreeMap<&'static str, (FailureKind, Failure, u64)>,
    /// The reason why the last requests could not be sent on, if no answer came afterwards.
    pub unsent_at_the_end: Option<FailureKind>,
    /// The requests that got no answer of a model.
    pub refusals: Refusals,
    /// The positions of the searched texts that were found in requests.
    pub found: BTreeSet<usize>,
    /// The number of requests that no API describes and that the gateway answered itself, with method and path of the
    /// first one.
    pub unknown: Option<(u64, String)>,
    /// The number of requests to the service that a cassette cannot hold, with method and path of the first one.
    pub not_recordable: Option<(u64, String)>,
    /// The number of requests whose content encoding could not be undone and that went on to the service, with the reason for the
    /// first one. Requests that cost nothing, such as telemetry, do not count.
    pub unread: Option<(u64, String)>,
    /// The number of requests that went on without a key of another service, with the names of the headers, and of the parts of
    /// the query, that the first one lost.
    pub left_out: Option<(u64, String)>,
    /// The reason why a request was refused whose content encoding could not be undone.
    pub undecoded: Option<String>,
    /// The number of answers by their source.
    sources: BTreeMap<Source, u64>,
    /// Sums over the turns that the script played.
    pub script: Tally,
}

#[derive(Debug, Clone, Default)]
struct Used {
    answers: u64,
    usage: Sum,
}

/// Sums of token figures. A figure that some answers do not report is partial.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    input: Figure,
    output: Figure,
    cache_read: Figure,
    cache_write: Figure,
    thought: Figure,
    /// Tokens that only the totals of answers show.
    beyond: u64,
    /// True if an answer may have used more tokens than its figures show.
    lower_bound: bool,
    /// True if an answer costs more than its tokens at the prices of a price table.
    cost_lower_bound: bool,
    /// True if an answer costs less than its tokens at the prices of a price table.
    costs_less: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Figure {
    sum: u64,
    reports: u64,
}

impl Figure {
    fn add(&mut self, value: Option<u64>) {
        if let Some(value) = value {
            self.sum = self.sum.saturating_add(value);
            self.reports += 1;
        }
    }

    fn plus(self, other: Self) -> Self {
        Self { sum: self.sum.saturating_add(other.sum), reports: self.reports + other.reports }
    }

    fn value(self) -> Option<u64> {
        (self.reports > 0).then_some(self.sum)
    }
}

impl Sum {
    fn add(&mut self, usage: &TokenUsage) {
        self.input.add(usage.input_tokens);
        self.output.add(usage.output_tokens);
        self.cache_read.add(usage.cache_read_tokens);
        self.cache_write.add(usage.cache_write_tokens);
        self.thought.add(usage.thought_tokens);
        self.beyond = self.beyond.saturating_add(usage.beyond());
        self.lower_bound |= usage.lower_bound;
        self.cost_lower_bound |= usage.cost_lower_bound;
    }

    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.plus(other.input),
            output: self.output.plus(other.output),
            cache_read: self.cache_read.plus(other.cache_read),
            cache_write: self.cache_write.plus(other.cache_write),
            thought: self.thought.plus(other.thought),
            beyond: self.beyond.saturating_add(other.beyond),
            lower_bound: self.lower_bound || other.lower_bound,
            cost_lower_bound: self.cost_lower_bound || other.cost_lower_bound,
            costs_less: self.costs_less || other.costs_less,
        }
    }

    /// Returns the figures as usage of a session. `missing` is true if some answers reported no tokens at all.
    fn as_usage(self, answers: u64, missing: bool) -> Usage {
        let mut usage = Usage::of(UsageScope::Session);
        usage.input_tokens = self.input.value();
        usage.output_tokens = self.output.value();
        usage.cache_read_tokens = self.cache_read.value();
        usage.cache_write_tokens = self.cache_write.value();
        usage.thought_tokens = self.thought.value();
        let parts = [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens];
        let beyond = Some(self.beyond).filter(|beyond| *beyond > 0);
        usage.total_tokens = parts.into_iter().flatten().chain(beyond).reduce(u64::saturating_add);
        let missing = missing || self.lower_bound;
        let partial = |figure: Figure| figure.reports < answers;
        // Services leave out cached and thought tokens where there are none, so only a missing report is a gap there.
        let figures = [
            (Measure::InputTokens, missing || partial(self.input)),
            (Measure::OutputTokens, missing || partial(self.output)),
            (Measure::CacheReadTokens, missing),
            (Measure::CacheWriteTokens, missing),
            (Measure::ThoughtTokens, missing),
            (Measure::TotalTokens, missing || partial(self.input) || partial(self.output)),
        ];
        usage.at_least(figures.into_iter().filter(|(_, partial)| *partial).map(|(measure, _)| measure));
        usage
    }
}

impl Totals {
    pub fn add(&mut self, exchange: &Exchange) {
        if let Some(script) = &exchange.script {
            self.script.add(script);
        }
        if let Some(failure) = &exchange.error {
            let entry = self.failures.entry(failure.kind.word()).or_insert((failure.kind, failure.clone(), 0));
            entry.2 += 1;
            // The gateway itself refused a request that it could not read.
            let is_unread = failure.kind == FailureKind::Malformed
                && exchange.source == Source::Upstream
                && !exchange.is_answered();
            if is_unread || matches!(failure.kind, FailureKind::Unreachable | FailureKind::Key) {
                self.unsent_at_the_end = Some(failure.kind);
            }
        }
        let wants = Purpose::of_logged(&exchange.method, &exchange.path);
        let is_free = wants == Purpose::Unknown && Purpose::is_free(&exchange.path);
        let encoded = exchange.error.as_ref().filter(|failure| failure.kind == FailureKind::Encoding);
        // If the request was read, the content encoding of the answer could not be undone.
        let is_request = exchange.request.is_string();
        if let Some(failure) = encoded.filter(|_| is_request && !is_free) {
            let why = failure.message.clone().unwrap_or_default();
            match exchange.is_answered() {
                true => self.unread.get_or_insert((0, why)).0 += 1,
                false => _ = self.undecoded.get_or_insert(why),
            }
        }
        // Agents check whether the server is there with requests that have no body.
        if wants == Purpose::Unknown && exchange.source == Source::Cassette {
            let first = || (0, format!("{} {}", exchange.method, exchange.path));
            self.unknown.get_or_insert_with(first).0 += 1;
        }
        let is_answer = matches!(wants, Purpose::Answer(_));
        // A scripted model uses nothing for what it answers aside.
        let aside = exchange.usage.is_none() && exchange.script.as_ref().is_some_and(|line| line.turn.is_none());
        let from_service = exchange.source == Source::Upstream;
        let left_alone = exchange.error.as_ref().is_some_and(|error| error.kind == FailureKind::Closed);
        // A service goes on with a request that its agent gave up, and no program receives the tokens that it reports.
        // A request whose body did not come never reached the service.
        let is_sent = !exchange.request.is_null();
        let given_up = is_answer && from_service && left_alone && is_sent && !exchange.is_answered();
        self.without_usage += u64::from(given_up);
        self.cut += u64::from(given_up);
        let malformed = exchange.error.as_ref().is_some_and(|error| error.kind == FailureKind::Malformed);
        let undecoded = encoded.is_some() && !is_request;
        let is_post = exchange.method == "POST";
        if from_service && ((wants == Purpose::Unknown && is_post) || malformed || undecoded) {
            let first = || (0, format!("{} {}", exchange.method, exchange.path));
            self.not_recordable.get_or_insert_with(first).0 += 1;
        }
        // A service may have a model at a path that no API describes, and not report its tokens.
        let may_be_answer = from_service && wants == Purpose::Unknown && is_post && exchange.usage.is_none();
        if may_be_answer && exchange.is_answered() && says_something(exchange) && !is_free && is_like_models(exchange) {
            self.without_usage += 1;
            let first = || (0, format!("{} {}", exchange.method, exchange.path));
            self.uncounted.get_or_insert_with(first).0 += 1;
        }
        // An endpoint that no API describes may report tokens as well.
        let counts = is_answer || (wants == Purpose::Unknown && exchange.usage.is_some());
        if !exchange.is_answered() || !counts || aside {
            return;
        }
        self.unsent_at_the_end = None;
        self.answers += 1;
        *self.sources.entry(exchange.source).or_default() += 1;
        let model = exchange.model.answered.clone().unwrap_or_default();
        let used = self.by_model.entry(model).or_default();
        used.answers += 1;
        if let Some(usage) = &exchange.usage {
            used.usage.add(usage);
            let pricing = exchange.api.map(|api| api.pricing(&exchange.response));
            used.usage.costs_less |= pricing == Some(Pricing::Less);
        }
        // An answer that broke off may have had further tokens.
        let broke_off = exchange.error.as_ref().is_some_and(|error| error.kind != FailureKind::Service);
        self.without_usage += u64::from(exchange.usage.is_none() || broke_off);
        let is_cut = |error: &Failure| matches!(error.kind, FailureKind::Cut | FailureKind::Closed);
        self.cut += u64::from(exchange.error.as_ref().is_some_and(is_cut));
    }

    /// Adds requests whose exchanges are not logged: no program knows their tokens.
    pub fn add_unlogged(&mut self, requests: u64) {
        self.without_usage += requests;
        self.cut += requests;
    }

    /// Returns the first failure of a kind, and how many there were.
    pub fn failure(&self, kind: FailureKind) -> Option<(&Failure, u64)> {
        self.failures.get(kind.word()).map(|(_, failure, count)| (failure, *count))
    }

    /// Returns the tokens of all answers; `None` if no answer reported any.
    pub fn usage(&self) -> Option<Usage> {
        let sum = self.by_model.values().fold(Sum::default(), |sum, used| sum.plus(used.usage));
        let usage = sum.as_usage(self.answers, self.without_usage > 0);
        usage.input_tokens.or(usage.output_tokens).is_some().then_some(usage)
    }

    /// Returns true if each answer reported its tokens.
    pub fn is_complete(&self) -> bool {
        self.without_usage == 0
    }

    /// Returns the source of the answers: the service if any came from it.
    pub fn source(&self) -> Option<Source> {
        self.sources.keys().copied().min()
    }

    /// Returns the number of answers from a source.
    pub fn answers_from(&self, source: Source) -> u64 {
        self.sources.get(&source).copied().unwrap_or_default()
    }

    /// Returns the model that gave the most answers.
    pub fn model(&self) -> Option<&str> {
        let named = self.by_model.iter().filter(|(name, _)| !name.is_empty());
        named.max_by_key(|(_, used)| used.answers).map(|(name, _)| name.as_str())
    }

    /// Returns the sum of all tokens so far.
    pub fn tokens(&self) -> u64 {
        let sum = self.by_model.values().fold(Sum::default(), |sum, used| sum.plus(used.usage));
        let parts = [sum.input, sum.output, sum.cache_read, sum.cache_write];
        parts.iter().fold(sum.beyond, |all, part| all.saturating_add(part.sum))
    }

    /// Returns the cost in US dollars so far, by the price of each model that answered. It is a lower bound if tokens or
    /// the price of a model are unknown, and `None` if nothing of it is known. The price of a model is unknown if one of its
    /// answers costs less than the table says.
    pub fn cost_usd(&self) -> Option<Amount<f64>> {
        let mut sum = None;
        let mut is_whole = self.is_complete();
        for (model, used) in &self.by_model {
            let mut total = UsageTotal::default();
            let usage = used.usage.as_usage(used.answers, false);
            if usage.input_tokens.or(usage.output_tokens).is_none() {
                // Such answers count in `without_usage`.
                continue;
            }
            total.add(&usage);
            // The price of tokens that only the total shows is unknown.
            is_whole &= used.usage.beyond == 0 && !used.usage.cost_lower_bound;
            match price::table().cost(model, &total).filter(|_| !used.usage.costs_less) {
                Some(cost) => *sum.get_or_insert(0.0) += cost.value(),
                None => is_whole = false,
            }
        }
        sum.map(|sum| Amount::new(sum, is_whole))
    }
}

/// Returns true if the answer to a request has a body with content.
fn says_something(exchange: &Exchange) -> bool {
    let is_empty = exchange.response.as_object().is_some_and(serde_json::Map::is_empty);
    !is_empty && exchange.stream.iter().any(|(_, bytes)| *bytes > 0)
}

/// The keys of requests to models.
const ASKS: [&str; 8] = ["prompt", "input", "inputs", "messages", "contents", "instances", "documents", "texts"];

/// The keys of answers of models.
const ANSWERS: [&str; 13] = [
    "choices",
    "output",
    "content",
    "candidates",
    "completion",
    "response",
    "predictions",
    "generations",
    "generated_text",
    "embedding",
    "embeddings",
    // A transcription.
    "text",
    "b64_json",
];

/// Returns true if a request at a path that no API describes, or its answer, has the form of one to a model. Requests to other
/// services at the same address, such as telemetry, cost nothing.
fn is_like_models(exchange: &Exchange) -> bool {
    let has = |value: &Value, keys: &[&str]| keys.iter().any(|key| value.get(*key).is_some_and(|it| !it.is_null()));
    let answered = |response: &Value| has(response, &ANSWERS);
    let response = &exchange.response;
    let items = response.get("data").or(Some(response)).and_then(Value::as_array);
    // A request that was not read may have such a key. Its answer shows more if it is an object.
    let is_unread = exchange.error.as_ref().is_some_and(|error| error.kind == FailureKind::Encoding);
    has(&exchange.request, &ASKS)
        || answered(response)
        || items.is_some_and(|items| items.iter().any(answered))
        || (is_unread && !response.is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(path: &str, request: &Value, response: &Value, error: Option<&str>) -> Totals {
        let mut line = json!({"n": 1, "at_ms": 0, "api": "openai-chat", "method": "POST", "path": path, "status": 200,
            "request": request, "response": response, "stream": [[1, 20]], "source": "upstream"});
        if let Some(kind) = error {
            line["error"] = json!({"kind": kind, "message": "why"});
        }
        let mut totals = Totals::default();
        totals.add(&serde_json::from_value(line).unwrap());
        totals
    }

    #[test]
    fn only_requests_like_those_to_a_model_are_without_usage() {
        let success = json!({"success": true});
        let none = json!({});
        for (path, request, response, is_counted) in [
            ("/api/show", json!({"model": "m"}), json!({"details": {}, "capabilities": []}), true),
            ("/models/session", none.clone(), json!({"available_models": []}), true),
            ("/mcp", json!({"jsonrpc": "2.0", "method": "ping"}), json!({"jsonrpc": "2.0", "result": {}}), true),
            ("/graphql", json!({"query": "{me}"}), json!({"data": {"me": 1}}), true),
            ("/api/2/envelope/", json!("{}\n{}"), json!({"id": "x"}), true),
            ("/v1internal:loadCodeAssist", json!({"metadata": {}}), json!({"currentTier": {}}), true),
            ("/capture", json!({"event": "x"}), json!({"status": 1}), true),
            ("/v1/logs", json!({"messages": []}), success.clone(), true),
            ("/v1/completions", json!({"prompt": "x"}), success.clone(), false),
            ("/api/generate", none.clone(), json!({"response": "x"}), false),
            ("/v1/embeddings", none.clone(), json!({"data": [{"embedding": []}]}), false),
            ("/predict", none.clone(), json!([{"generated_text": "x"}]), false),
        ] {
            let totals = after(path, &request, &response, None);
            assert_eq!(totals.is_complete(), is_counted, "{path}");
            let first = (!is_counted).then(|| (1, format!("POST {path}")));
            assert_eq!(totals.uncounted, first, "{path}");
        }
        let unread = json!("(20 bytes)");
        assert!(after("/track", &unread, &success, Some("encoding")).is_complete());
        assert!(!after("/complete", &unread, &json!("x"), Some("encoding")).is_complete());
    }

    #[test]
    fn telemetry_that_could_not_be_read_is_no_unread_request() {
        let unread = |path: &str| after(path, &json!("(20 bytes)"), &json!({}), Some("encoding")).unread;
        assert_eq!(unread("/v1/logs"), None);
        assert_eq!(unread("/v1/chat/completions"), Some((1, "why".to_owned())));
        assert_eq!(unread("/track"), Some((1, "why".to_owned())));
    }

    #[test]
    fn the_cost_of_the_models_with_a_price_is_a_lower_bound_of_all() {
        let used = |input| Used {
            answers: 1,
            usage: Sum {
                input: Figure { sum: input, reports: 1 },
                output: Figure { sum: 0, reports: 1 },
                ..Sum::default()
            },
        };
        let of = |models: &[&str]| Totals {
            by_model: models.iter().map(|model| ((*model).to_owned(), used(1_000_000))).collect(),
            ..Totals::default()
        };
        let priced = of(&["claude-opus-4-8"]).cost_usd().unwrap();
        assert!(priced.is_exact() && priced.value() > 0.0, "{priced}");
        assert_eq!(of(&["claude-opus-4-8", "unpriced"]).cost_usd(), Some(Amount::AtLeast(priced.value())));
        assert_eq!(of(&["unpriced"]).cost_usd(), None);
        let mut cheaper = of(&["claude-opus-4-8"]);
        cheaper.by_model.values_mut().for_each(|used| used.usage.costs_less = true);
        assert_eq!(cheaper.cost_usd(), None);
        let mut open = of(&["claude-opus-4-8"]);
        open.add_unlogged(1);
        assert_eq!(open.cost_usd(), Some(Amount::AtLeast(priced.value())));
    }

    #[test]
    fn an_answer_at_an_unknown_path_may_have_used_tokens_unless_it_is_known_to_cost_nothing() {
        let text = serde_json::json!({"choices": [{"text": "ok"}]});
        for (path, response, is_complete) in [
            ("/v1/completions", &text, false),
            ("/v1/completions", &serde_json::json!({}), true),
            ("/api/event_logging/batch", &serde_json::json!({"accepted": 3}), true),
            ("/v1/messages/count_tokens", &serde_json::json!({"input_tokens": 3}), true),
        ] {
            assert_eq!(after(path, &json!({}), response, None).is_complete(), is_complete, "{path} {response}");
        }
    }
}

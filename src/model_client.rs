//! Asks a model for one answer: one form of question and answer for every API, with retries, limits and a
//! cache.
//!
//! Each API has a file that writes a [`Question`] and reads its answer; [`http`] sends it, [`cache`] stores it.
//! This module does not read the environment: the creator of a [`Client`] provides the services and keys.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use crate::gateway::api::Pricing;
use crate::secrets::Masker;
use crate::trace::usage::Measure;
use crate::trace::{Usage, UsageScope};

mod anthropic;
mod cache;
mod http;
mod name;
mod openai;
mod service;

pub use name::{ModelName, Via};
pub use service::{Service, Services};

/// A question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The system prompt.
    pub system: String,
    /// The user prompt.
    pub user: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
    /// The random parts of the texts. Questions that differ only in these are equal.
    pub marks: Vec<String>,
    /// True if cached answers must not be used.
    pub fresh: bool,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text of the answer.
    pub text: String,
    /// The model that the response names.
    pub model: Option<String>,
    /// The token usage; unreported figures are absent.
    pub usage: Usage,
    /// True if the answer comes from the cache.
    pub cached: bool,
    /// The usage of earlier answers that were invalid.
    pub earlier: Vec<Usage>,
}

/// The reason why a model gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    /// The key for the service is missing.
    #[error("no key for `{model}`: set {variable}")]
    NoKey {
        model: String,
        /// The environment variable of the key.
        variable: &'static str,
    },
    /// The address of the service is invalid.
    #[error("{variable}=`{address}` is not the address of a service; write one such as http://127.0.0.1:8080")]
    NoAddress {
        /// The environment variable of the address.
        variable: &'static str,
        /// The value of the variable.
        address: String,
    },
    /// The headers that the user adds are invalid.
    #[error("{0}")]
    Headers(String),
    /// The service refuses the request, and would refuse it again.
    #[error("the model's service answered {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        message: String,
    },
    /// The service is overloaded, even after retries.
    #[error("the model's service is busy: it answered {status} ({message}) after {tries} tries")]
    Busy {
        /// The last HTTP status.
        status: u16,
        message: String,
        /// The number of requests.
        tries: u32,
    },
    /// The service cannot be reached.
    #[error("the model's service cannot be reached: {0}")]
    Unreachable(String),
    /// The answer was cut off.
    #[error("the answer of the model's service was cut off: {0}")]
    Cut(String),
    /// The request timed out.
    #[error("the model's service did not answer within {0:?}")]
    Slow(Duration),
    /// The response is not valid for its API.
    #[error("the answer of the model's service is not valid for its API: {0}")]
    Malformed(String),
    /// The model declines.
    #[error("the model declined to answer")]
    Declined,
    /// The answer exceeded the maximum length.
    #[error("the model's answer exceeded its maximum length and was cut off")]
    TooLong,
    /// The answer did not have the requested form, twice.
    #[error("the model's answer does not have the requested form: {why}")]
    WrongForm {
        /// The error in the last answer.
        why: String,
    },
    /// A harness used as a judge did not answer.
    #[error("harness `{name}` did not answer: {why}")]
    Harness {
        /// The harness.
        name: String,
        /// The reason.
        why: String,
    },
    /// The user interrupted the command.
    #[error("interrupted")]
    Interrupted,
}

impl AskError {
    /// Returns true if the text of the error names the model that was asked.
    pub fn names_model(&self) -> bool {
        match self {
            AskError::NoKey { .. } => true,
            AskError::NoAddress { .. }
            | AskError::Headers(_)
            | AskError::Refused { .. }
            | AskError::Busy { .. }
            | AskError::Unreachable(_)
            | AskError::Cut(_)
            | AskError::Slow(_)
            | AskError::Malformed(_)
            | AskError::Declined
            | AskError::TooLong
            | AskError::WrongForm { .. }
            | AskError::Harness { .. }
            | AskError::Interrupted => false,
        }
    }

    /// Returns true if a retry may succeed.
    fn may_pass(&self) -> bool {
        matches!(
            self,
            AskError::Busy { .. }
                | AskError::Unreachable(_)
                | AskError::Cut(_)
                | AskError::Slow(_)
                | AskError::Malformed(_)
        )
    }
}

/// The reason why a model gave no answer, and the usage that was paid for nevertheless.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// The reason.
    pub error: AskError,
    /// The usage of each answer that does not count: cut off, declined, or of the wrong form. Figures that no service
    /// reported are absent.
    pub used: Vec<Usage>,
}

impl Failed {
    /// Returns a failure after which the model may have answered, at an unknown cost.
    fn with_unknown_usage(error: AskError) -> Self {
        Self { error, used: vec![Usage::of(UsageScope::Call)] }
    }
}

impl From<AskError> for Failed {
    fn from(error: AskError) -> Self {
        Self { error, used: Vec::new() }
    }
}

/// Starts agents that answer instead of a model.
pub trait Harnesses: std::fmt::Debug + Send + Sync {
    /// Gives an agent a prompt in an empty workspace, and returns its final answer. May block.
    ///
    /// # Errors
    /// Returns the reason why the agent did not answer.
    fn ask(&self, harness: &str, model: Option<&str>, prompt: &str) -> Result<Reply, String>;
}

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct Settings {
    pub services: Services,
    /// The folder of the cache. Absent: no cache.
    pub cache: Option<PathBuf>,
    /// The maximum number of concurrent requests.
    pub at_once: usize,
    /// The maximum number of retries.
    pub retries: u32,
    /// The pause before the first retry; it doubles with each further one.
    pub pause: Duration,
    /// The timeout of one request.
    pub time: Duration,
}

/// The time between two checks for an interrupt.
const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// The maximum pause before a retry, even if a service asks for a longer one.
const MAX_PAUSE: Duration = Duration::from_secs(120);

impl Settings {
    /// Returns the default settings, without a cache.
    pub fn usual(services: Services) -> Self {
        let (pause, time) = (Duration::from_millis(500), Duration::from_secs(180));
        Self { services, cache: None, at_once: 4, retries: 3, pause, time }
    }
}

/// Asks models over HTTP. Its calls block the thread.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    http: http::Http,
    free: Mutex<usize>,
    freed: Condvar,
    /// The earliest time of the next request, as a service asked for.
    not_before: Mutex<Option<Instant>>,
    interrupt: watch::Receiver<bool>,
    harnesses: Option<Arc<dyn Harnesses>>,
    masker: Masker,
}

impl Client {
    /// Makes a client that stops when the user interrupts.
    pub fn new(settings: Settings, interrupt: watch::Receiver<bool>, harnesses: Option<Arc<dyn Harnesses>>) -> Self {
        let http = http::Http::new(settings.time);
        let free = Mutex::new(settings.at_once.max(1));
        let (freed, not_before, masker) = (Condvar::new(), Mutex::default(), Masker::default());
        Self { settings, http, free, freed, not_before, interrupt, harnesses, masker }
    }

    /// Makes the client redact secrets in answers, before they are stored or returned.
    #[must_use]
    pub fn masking(self, masker: Masker) -> Self {
        Self { masker, ..self }
    }

    /// Asks a model, retries if that may help, and uses the cache. After an answer of the wrong form, the request is
    /// repeated once. Such an answer is never stored.
    ///
    /// # Errors
    /// Returns an error if there is no valid answer.
    pub fn ask(
        &self,
        model: &ModelName,
        question: &Question,
        fits: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<Reply, Failed> {
        let service = self.settings.services.of(model)?;
        let cache = self.place(model, service, question);
        let kept = cache.as_ref().filter(|_| !question.fresh).and_then(cache::CacheFile::read);
        if let Some(reply) = kept.filter(|reply| fits(&reply.text).is_ok()) {
            return Ok(reply);
        }
        let _slot = self.slot()?;
        let (mut tries, mut wrong_forms) = (0, 0);
        let mut used: Vec<Usage> = Vec::new();
        loop {
            if let Err(error) = self.wait_for_turn() {
                return Err(Failed { error, used });
            }
            let asked = self.once(model, service, question);
            let masked = asked.map(|reply| Reply { text: self.masker.mask(&reply.text).into_owned(), ..reply });
            let (error, wait) = match masked {
                Ok(reply) => match fits(&reply.text) {
                    Ok(()) => {
                        if let Some(cache) = &cache {
                            cache.write(&reply);
                        }
                        return Ok(Reply { earlier: used, ..reply });
                    }
                    Err(why) => {
                        used.push(reply.usage);
                        wrong_forms += 1;
                        if wrong_forms > 1 {
                            return Err(Failed { error: AskError::WrongForm { why }, used });
                        }
                        continue;
                    }
                },
                Err((failed, wait)) => {
                    used.extend(failed.used);
                    (failed.error, wait)
                }
            };
            tries += 1;
            if !error.may_pass() || tries > self.settings.retries || wait.is_some_and(|wait| wait > MAX_PAUSE) {
                let error = match error {
                    AskError::Busy { status, message, .. } => AskError::Busy { status, message, tries },
                    other => other,
                };
                return Err(Failed { error, used });
            }
            let doubled = self.settings.pause.saturating_mul(1 << (tries - 1).min(16));
            let until = Instant::now() + wait.unwrap_or(doubled).min(MAX_PAUSE);
            if wait.is_some() {
                // The service's limit applies to all requests.
                let mut not_before = lock(&self.not_before);
                *not_before = Some(not_before.map_or(until, |before| before.max(until)));
            }
            if let Err(error) = self.sleep_until(until) {
                return Err(Failed { error, used });
            }
        }
    }

    fn place(&self, model: &ModelName, service: Option<&Service>, question: &Question) -> Option<cache::CacheFile> {
        self.settings.cache.as_deref().map(|folder| cache::CacheFile::of(folder, model, service, question))
    }

    /// Returns true if the answer to a question is in the cache.
    pub fn is_kept(&self, model: &ModelName, question: &Question) -> bool {
        let service = self.settings.services.of(model).ok();
        let place = service.and_then(|service| self.place(model, service, question));
        place.is_some_and(|place| place.read().is_some())
    }

    /// Sends one request. With an error, returns the pause that the service asks for.
    fn once(
        &self,
        model: &ModelName,
        service: Option<&Service>,
        question: &Question,
    ) -> Result<Reply, (Failed, Option<Duration>)> {
        let failed = |error: AskError, wait| (Failed::from(error), wait);
        let Some(service) = service else {
            return self.of_harness(model, question).map_err(|failed| (failed, None));
        };
        let key = service.key.as_deref();
        let (path, headers, body) = match model.via {
            Via::Anthropic => anthropic::request(&model.model, key, question),
            Via::Openai | Via::Harness => openai::request(&model.model, key, question),
        };
        let answer = self.http.post(service, path, &headers, &body).map_err(|error| match error {
            AskError::Cut(_) | AskError::Slow(_) => (Failed::with_unknown_usage(error), None),
            _ => failed(error, None),
        })?;
        if !(200..300).contains(&answer.status) {
            let status = answer.status;
            let message = error_message(&answer.body, &service.secrets());
            let busy = matches!(status, 408 | 409 | 425 | 429 | 500..=599);
            return Err(match busy {
                true => failed(AskError::Busy { status, message, tries: 1 }, answer.retry_after),
                false => failed(AskError::Refused { status, message }, None),
            });
        }
        let value: Value = serde_json::from_slice(&answer.body).map_err(|error| {
            (Failed::with_unknown_usage(AskError::Malformed(format!("it is not JSON: {error}"))), None)
        })?;
        // Some services and proxies report their errors with a status of success.
        let is_error = match value.get("error") {
            Some(Value::Object(error)) => !error.is_empty(),
            Some(Value::String(error)) => !error.is_empty(),
            _ => false,
        };
        if is_error {
            let message = error_message(&answer.body, &service.secrets());
            let usage = match model.via {
                Via::Anthropic => anthropic::usage(&value),
                Via::Openai | Via::Harness => openai::usage(&value),
            };
            // An error costs nothing unless the service counts tokens for it.
            let used = if value["usage"].is_object() { vec![usage] } else { Vec::new() };
            return Err((Failed { error: AskError::Malformed(format!("it is an error: {message}")), used }, None));
        }
        let read = match model.via {
            Via::Anthropic => anthropic::read(&value),
            Via::Openai | Via::Harness => openai::read(&value),
        };
        read.map_err(|error| (error, None))
    }

    fn of_harness(&self, model: &ModelName, question: &Question) -> Result<Reply, Failed> {
        let name = model.model.clone();
        let Some(harnesses) = &self.harnesses else {
            return Err(AskError::Harness { name, why: "no agent can be started here".to_owned() }.into());
        };
        let Question { system, user, schema, .. } = question;
        let prompt = format!(
            "{system}\n\n{user}\n\nUse no tool. Answer with one JSON object that follows this JSON Schema, and with nothing else:\n{schema}\n"
        );
        let asked = harnesses.ask(&name, model.of_harness.as_deref(), &prompt);
        asked.map_err(|why| Failed::with_unknown_usage(AskError::Harness { name, why }))
    }

    /// Waits for a free request slot, or for an interrupt.
    fn slot(&self) -> Result<Slot<'_>, AskError> {
        let mut free = lock(&self.free);
        while *free == 0 {
            self.check_interrupt()?;
            (free, _) = self.freed.wait_timeout(free, BETWEEN_CHECKS).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        Ok(Slot(self))
    }

    fn check_interrupt(&self) -> Result<(), AskError> {
        if *self.interrupt.borrow() { Err(AskError::Interrupted) } else { Ok(()) }
    }

    fn wait_for_turn(&self) -> Result<(), AskError> {
        let until = *lock(&self.not_before);
        self.sleep_until(until.unwrap_or_else(Instant::now))
    }

    fn sleep_until(&self, until: Instant) -> Result<(), AskError> {
        loop {
            self.check_interrupt()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(BETWEEN_CHECKS));
        }
    }
}

struct Slot<'a>(&'a Client);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.free) += 1;
        self.0.freed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the error message of either API on one line; services may repeat the key and other secrets in it.
fn error_message(body: &[u8], secrets: &[String]) -> String {
    const MAX_MESSAGE_CHARS: usize = 300;
    const MIN_KEY_BYTES: usize = 8;
    let said = serde_json::from_slice::<Value>(body).ok().and_then(|body| {
        let error = body.get("error")?;
        error.get("message").and_then(Value::as_str).or(error.as_str()).map(str::to_owned)
    });
    let text =
        said.unwrap_or_else(|| String::from_utf8_lossy(body.get(..MAX_MESSAGE_CHARS * 4).unwrap_or(body)).into_owned());
    // A shorter text cannot be a key, and may be a part of any word.
    let secrets = secrets.iter().filter(|secret| secret.len() >= MIN_KEY_BYTES);
    let text = secrets.fold(text, |text, secret| text.replace(secret.as_str(), "[redacted]"));
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(MAX_MESSAGE_CHARS).collect()
}

/// Returns the model that an answer of either API names.
fn reported_model(answer: &Value) -> Option<String> {
    answer["model"].as_str().filter(|model| !model.trim().is_empty()).map(str::to_owned)
}

/// Marks the tokens of an answer that cost something else than a price table says.
fn with_pricing(mut usage: Usage, pricing: Pricing) -> Usage {
    match (pricing, usage.input_tokens.zip(usage.output_tokens)) {
        (Pricing::Listed, _) | (Pricing::Less, None) => {}
        (Pricing::More, _) => usage.lower_bounds.push(Measure::CostUsd),
        (Pricing::Less, Some((input, output))) => {
            // Tokens of which only the total is known have no price.
            let cached = usage.cache_read_tokens.take().into_iter().chain(usage.cache_write_tokens.take());
            usage.total_tokens = Some(cached.fold(input.saturating_add(output), u64::saturating_add));
            (usage.input_tokens, usage.output_tokens) = (None, None);
        }
    }
    usage
}

/// Returns a text without the random marks, so that equal questions are equal.
fn without_marks(text: &str, marks: &[String]) -> String {
    marks.iter().enumerate().fold(text.to_owned(), |text, (n, mark)| text.replace(mark.as_str(), &format!("MARK-{n}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_answer_that_costs_less_than_its_tokens_has_no_price() {
        let usage = |tier: &str| {
            let details = serde_json::json!({"cached_tokens": 4});
            let told =
                serde_json::json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": details});
            openai::usage(&serde_json::json!({"service_tier": tier, "usage": told}))
        };
        let flex = usage("flex");
        assert_eq!((flex.input_tokens, flex.cache_read_tokens, flex.total_tokens), (None, None, Some(11)));
        assert_eq!((usage("priority").input_tokens, usage("priority").lower_bounds), (Some(5), vec![Measure::CostUsd]));
        assert!(usage("default").lower_bounds.is_empty());
    }

    #[test]
    fn an_interrupt_ends_the_wait_for_other_requests() {
        let settings = Settings { at_once: 1, ..Settings::usual(Services::of_env(&BTreeMap::new())) };
        let (interrupt, interrupted) = watch::channel(false);
        let client = Client::new(settings, interrupted, None);
        let slot = client.slot();
        assert!(slot.is_ok());
        interrupt.send_replace(true);
        assert_eq!(client.slot().err(), Some(AskError::Interrupted));
        drop(slot);
        assert!(client.slot().is_ok());
    }
}

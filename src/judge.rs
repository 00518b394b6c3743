//! Judge models: the questions to them about a session, and the safeguards that limit the trust in their answers.
//!
//! [`view`] makes the view of a session for a judge, [`prompt`] puts it between marks, and [`answer`] checks the
//! answer against it. [`asking`] asks, [`canary`] and [`calibration`] test the judge; [`vote`] combines several
//! judges. Only [`Judges`] calls models.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, Semaphore};

use crate::grade::judge_record::{AskedFigure, AskedFigures, PolicyRecord};
use crate::model_client::{AskError, Client, Failed, ModelName, Question, Reply};
use crate::models;
use crate::price;
use crate::secrets::Masker;
use crate::trace::Usage;
use crate::trace::amount::Amount;
use crate::trace::usage::{Measure, UsageTotal};

pub mod adviser;
pub mod answer;
mod asking;
pub mod calibration;
mod canary;
pub mod criteria;
pub mod delimiters;
pub mod pairwise;
pub mod pairwise_calibration;
pub mod prompt;
pub mod quotes;
pub mod rubric;
pub mod view;
pub mod vote;

/// The maximum number of threads that wait for answers.
const THREADS: usize = 16;

/// The available judges, and the results of their canaries in this run.
#[derive(Debug, Clone, Default)]
pub struct Judges(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    client: Client,
    chosen: Chosen,
    masker: Masker,
    /// Limits concurrent questions: each uses a thread, and a harness used as a judge needs more.
    places: Semaphore,
    canaries: Mutex<HashMap<String, Arc<OnceCell<Option<String>>>>>,
}

/// The judge models chosen by the user: defaults for graders that name none, and overrides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Chosen {
    /// The judges that override those of graders: `--judge`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<ModelName>,
    /// Judges for graders that name none: `EVALS_JUDGE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<ModelName>,
}

impl Chosen {
    /// Returns true if no judge is named.
    pub fn is_empty(&self) -> bool {
        self.over.is_empty() && self.otherwise.is_empty()
    }
}

impl Judges {
    /// Makes judges that are called by a client. Secrets that the masker finds are never sent.
    pub fn new(client: Client, chosen: Chosen, masker: Masker) -> Self {
        let (places, client) = (Semaphore::new(THREADS), client.masking(masker.clone()));
        Self(Some(Arc::new(Inner { client, chosen, masker, places, canaries: Mutex::default() })))
    }

    /// Makes judges that are never asked.
    pub fn none() -> Self {
        Self(None)
    }

    /// Returns the judges of a rubric whose own judges are `own`.
    ///
    /// # Errors
    /// Returns the reason if there is no judge.
    pub fn chosen(&self, own: &[ModelName]) -> Result<Vec<ModelName>, String> {
        let inner = self.0.as_ref().ok_or_else(|| "no model can be called here".to_owned())?;
        let lists = [inner.chosen.over.as_slice(), own, inner.chosen.otherwise.as_slice()];
        let mut names: Vec<ModelName> = Vec::new();
        for name in lists.into_iter().find(|list| !list.is_empty()).unwrap_or_default() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.is_empty() {
            return Err(
                "no judge model is set: write `judge: anthropic:MODEL` in the grader, pass --judge, or set EVALS_JUDGE"
                    .to_owned(),
            );
        }
        Ok(names)
    }

    /// Returns the models that answer an agent's requests, for a case whose own models are `own`. `--judge` applies
    /// only to graders.
    ///
    /// # Errors
    /// Returns the reason why there is no model.
    fn chosen_for_policy(&self, own: &[ModelName]) -> Result<Vec<ModelName>, String> {
        let inner = self.0.as_ref().ok_or_else(|| "no model can be called here".to_owned())?;
        let names = if own.is_empty() { &inner.chosen.otherwise } else { own };
        let why = || "no model is set: write `llm: {model: anthropic:MODEL}`, or set EVALS_JUDGE".to_owned();
        if names.is_empty() { Err(why()) } else { Ok(names.to_vec()) }
    }

    /// Returns a text in the form in which it is sent: redacted.
    fn masked(&self, text: &str) -> String {
        self.0.as_ref().map_or_else(|| text.to_owned(), |inner| inner.masker.mask(text).into_owned())
    }

    /// Asks a model without blocking other trials.
    ///
    /// # Errors
    /// Returns an error if there is no valid answer.
    pub async fn ask(
        &self,
        model: &ModelName,
        question: Question,
        fits: impl Fn(&str) -> Result<(), String> + Send + 'static,
    ) -> Result<Reply, Failed> {
        // The semaphore is never closed, so a permit always becomes available.
        let _place = match &self.0 {
            Some(inner) => inner.places.acquire().await.ok(),
            None => None,
        };
        let (judges, model) = (self.clone(), model.clone());
        let asked = tokio::task::spawn_blocking(move || judges.ask_now(&model, question, &fits));
        asked.await.unwrap_or_else(|error| Err(AskError::Malformed(format!("the request was aborted: {error}")).into()))
    }

    /// Asks a model, and blocks this thread.
    fn ask_now(
        &self,
        model: &ModelName,
        question: Question,
        fits: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<Reply, Failed> {
        let Some(inner) = &self.0 else {
            return Err(AskError::Unreachable("no model can be called here".to_owned()).into());
        };
        let question = self.as_sent(question);
        inner.client.ask(model, &question, fits)
    }

    fn as_sent(&self, question: Question) -> Question {
        Question { system: self.masked(&question.system), user: self.masked(&question.user), ..question }
    }

    /// Returns true if the answer is in the cache, so that no model is called.
    fn is_kept(&self, model: &ModelName, question: &Question) -> bool {
        let Some(inner) = &self.0 else { return false };
        inner.client.is_kept(model, &self.as_sent(question.clone()))
    }

    /// Returns the canary that a judge passes, if it passes one, so that its answers to this question are void. Each judge
    /// is tested once per run.
    async fn void_once(
        &self,
        key: String,
        find_out: impl Future<Output = Result<Option<String>, AskError>>,
    ) -> Result<Option<String>, AskError> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let cell = {
            let mut canaries = inner.canaries.lock().unwrap_or_else(PoisonError::into_inner);
            canaries.entry(key).or_default().clone()
        };
        cell.get_or_try_init(|| find_out).await.cloned()
    }
}

/// The usage and cost of requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spent {
    requests: u32,
    cached: u32,
    /// The known tokens. Absent if none are known.
    tokens: Option<u64>,
    /// The known cost in US dollars. Absent if nothing of it is known.
    cost: Option<f64>,
    tokens_unknown: bool,
    cost_unknown: bool,
}

impl Spent {
    /// Adds an answer. An answer from the cache cost nothing.
    fn add(&mut self, asked: &ModelName, reply: &Reply) {
        if reply.cached {
            self.requests += 1;
            self.cached += 1;
            self.known(0, 0.0);
            return;
        }
        for usage in reply.earlier.iter().chain([&reply.usage]) {
            self.used(asked, reply.model.as_deref(), usage);
        }
    }

    /// Adds answers that do not count, but were paid for.
    fn add_failed(&mut self, asked: &ModelName, failed: &Failed) {
        failed.used.iter().for_each(|usage| self.used(asked, None, usage));
    }

    fn used(&mut self, asked: &ModelName, model: Option<&str>, usage: &Usage) {
        self.requests += 1;
        let mut total = UsageTotal::default();
        total.add(usage);
        // The model that answered sets the price. Services write its name with a date or a prefix, or do not report it.
        let model = usage.model.as_deref().or(model).unwrap_or(&asked.model);
        let named = || price::table().cost(&asked.model, &total).filter(|_| models::same(&asked.model, model));
        let priced = price::table().cost(model, &total).or_else(named);
        let (tokens, cost) = (total.tokens(), total.cost_usd().or(priced));
        self.tokens = sum_of(self.tokens, tokens.map(Amount::value), u64::saturating_add);
        self.cost = sum_of(self.cost, cost.map(Amount::value), |a, b| a + b);
        self.tokens_unknown |= !tokens.is_some_and(Amount::is_exact);
        // A price of tokens leaves out what an answer costs beside them.
        let costs_more = usage.lower_bounds.contains(&Measure::CostUsd);
        self.cost_unknown |= costs_more || !cost.is_some_and(Amount::is_exact);
    }

    fn known(&mut self, tokens: u64, cost: f64) {
        self.tokens = sum_of(self.tokens, Some(tokens), u64::saturating_add);
        self.cost = sum_of(self.cost, Some(cost), |a, b| a + b);
    }

    /// Returns the known figures.
    fn figures(&self) -> AskedFigures {
        let partly = [
            (AskedFigure::Tokens, self.tokens.is_some() && self.tokens_unknown),
            (AskedFigure::CostUsd, self.cost.is_some() && self.cost_unknown),
        ];
        AskedFigures {
            requests: self.requests,
            cached: self.cached,
            tokens: self.tokens,
            cost_usd: self.cost,
            lower_bounds: partly.into_iter().filter_map(|(figure, is)| is.then_some(figure)).collect(),
        }
    }

    /// Counts requests that have no answer: their usage is unknown.
    fn has_open(&mut self, requests: u32) {
        self.requests += requests;
        (self.tokens_unknown, self.cost_unknown) = (true, true);
    }

    /// Returns the usage of a policy's model; `None` if none was asked.
    fn of_policy(&self, model: &str) -> Option<PolicyRecord> {
        (self.requests > 0).then(|| PolicyRecord::new(model, self.figures()))
    }

    fn join(&mut self, other: &Spent) {
        self.requests += other.requests;
        self.cached += other.cached;
        self.tokens = sum_of(self.tokens, other.tokens, u64::saturating_add);
        self.cost = sum_of(self.cost, other.cost, |a, b| a + b);
        self.tokens_unknown |= other.tokens_unknown;
        self.cost_unknown |= other.cost_unknown;
    }
}

/// Returns the sum of the known figures.
fn sum_of<T>(one: Option<T>, other: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

/// Returns the names of judges as one text.
pub(crate) fn joined(names: &[ModelName]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}

//! Judges: models that are asked how a session went, and what is done so that they can be believed as far as they deserve.
//!
//! What a judge sees is made by [`view`], put between marks by [`prompt`], and what it answers is held against what it saw by
//! [`answer`]. [`canary`] and [`calibration`] say whether it is a judge at all; [`vote`] joins several. Only [`Judges`] asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, Semaphore};

use crate::grade::judge_record::JudgeRecord;
use crate::grade::judge_record::PolicyRecord;
use crate::model_client::{AskError, Client, Failed, ModelName, Question, Reply};
use crate::price;
use crate::secrets::Masker;
use crate::trace::Usage;
use crate::trace::amount::Amount;
use crate::trace::usage::UsageTotal;

pub mod adviser;
pub mod answer;
pub mod calibration;
mod canary;
pub mod criteria;
mod delimiters;
pub mod pairwise;
pub mod pairwise_calibration;
pub mod prompt;
pub mod quotes;
pub mod rubric;
pub mod view;
pub mod vote;

/// Threads that wait for answers, at most.
const THREADS: usize = 16;

/// Who can be asked, and what is known of them in this run.
#[derive(Debug, Clone, Default)]
pub struct Judges(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    client: Client,
    chosen: Chosen,
    masker: Masker,
    /// Who asks holds a thread, and a harness that is asked needs some too.
    places: Semaphore,
    canaries: Mutex<HashMap<String, Arc<OnceCell<Option<String>>>>>,
}

/// Judges that no grader names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Chosen {
    /// In the place of those that graders name: `--judge`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<ModelName>,
    /// Where a grader names none: `EVALS_JUDGE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<ModelName>,
}

impl Chosen {
    /// Whether it names nobody.
    pub fn is_empty(&self) -> bool {
        self.over.is_empty() && self.otherwise.is_empty()
    }
}

impl Judges {
    /// Judges that are asked by a client. What the masker finds is never sent.
    pub fn new(client: Client, chosen: Chosen, masker: Masker) -> Self {
        let (places, client) = (Semaphore::new(THREADS), client.masking(masker.clone()));
        Self(Some(Arc::new(Inner { client, chosen, masker, places, canaries: Mutex::default() })))
    }

    /// Nobody is asked.
    pub fn none() -> Self {
        Self(None)
    }

    /// Who judges, where a rubric names these.
    ///
    /// # Errors
    /// Nobody does: why.
    pub fn chosen(&self, own: &[ModelName]) -> Result<Vec<ModelName>, String> {
        let inner = self.0.as_ref().ok_or_else(|| "no model is asked here".to_owned())?;
        let lists = [inner.chosen.over.as_slice(), own, inner.chosen.otherwise.as_slice()];
        let mut names: Vec<ModelName> = Vec::new();
        for name in lists.into_iter().find(|list| !list.is_empty()).unwrap_or_default() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.is_empty() {
            return Err(
                "no judge is named: write `judge: anthropic:MODEL` in the grader, say --judge, or set EVALS_JUDGE"
                    .to_owned(),
            );
        }
        Ok(names)
    }

    /// Who answers the requests of agents, where a case names this one. `--judge` is about graders.
    ///
    /// # Errors
    /// Nobody does: why.
    fn chosen_for_policy(&self, own: &[ModelName]) -> Result<Vec<ModelName>, String> {
        let inner = self.0.as_ref().ok_or_else(|| "no model is asked here".to_owned())?;
        let names = if own.is_empty() { &inner.chosen.otherwise } else { own };
        let why = || "no model is named: write `llm: {model: anthropic:MODEL}`, or set EVALS_JUDGE".to_owned();
        if names.is_empty() { Err(why()) } else { Ok(names.to_vec()) }
    }

    /// A text as it is sent.
    fn masked(&self, text: &str) -> String {
        self.0.as_ref().map_or_else(|| text.to_owned(), |inner| inner.masker.mask(text).into_owned())
    }

    /// Asks a model; others are served meanwhile.
    ///
    /// # Errors
    /// There is no answer that fits.
    pub async fn ask(
        &self,
        model: &ModelName,
        question: Question,
        fits: impl Fn(&str) -> Result<(), String> + Send + 'static,
    ) -> Result<Reply, Failed> {
        // It is never closed, so there is always a place in the end.
        let _place = match &self.0 {
            Some(inner) => inner.places.acquire().await.ok(),
            None => None,
        };
        let (judges, model) = (self.clone(), model.clone());
        let asked = tokio::task::spawn_blocking(move || judges.ask_now(&model, question, &fits));
        asked.await.unwrap_or_else(|error| Err(AskError::Malformed(format!("asking broke off: {error}")).into()))
    }

    /// The same, on this thread, which waits.
    fn ask_now(
        &self,
        model: &ModelName,
        question: Question,
        fits: &dyn Fn(&str) -> Result<(), String>,
    ) -> Result<Reply, Failed> {
        let Some(inner) = &self.0 else {
            return Err(AskError::Unreachable("no model is asked here".to_owned()).into());
        };
        let question = self.as_sent(question);
        inner.client.ask(model, &question, fits)
    }

    fn as_sent(&self, question: Question) -> Question {
        Question { system: self.masked(&question.system), user: self.masked(&question.user), ..question }
    }

    /// Whether what is asked was answered before, so that nobody is asked now.
    fn is_kept(&self, model: &ModelName, question: &Question) -> bool {
        let Some(inner) = &self.0 else { return false };
        inner.client.is_kept(model, &self.as_sent(question.clone()))
    }

    /// Why a judge is void for what it is asked, if it is: asked once in a run.
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

/// What requests used and cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Spent {
    requests: u32,
    cached: u32,
    tokens: u64,
    cost: f64,
    tokens_unknown: bool,
    cost_unknown: bool,
}

impl Spent {
    /// Adds an answer. One from the cache cost nothing.
    fn add(&mut self, asked: &ModelName, reply: &Reply) {
        if reply.cached {
            self.requests += 1;
            self.cached += 1;
            return;
        }
        for usage in reply.earlier.iter().chain([&reply.usage]) {
            self.used(asked, reply.model.as_deref(), usage);
        }
    }

    /// Adds answers that do not count: they were paid for, too.
    fn add_failed(&mut self, asked: &ModelName, failed: &Failed) {
        failed.used.iter().for_each(|usage| self.used(asked, None, usage));
    }

    fn used(&mut self, asked: &ModelName, model: Option<&str>, usage: &Usage) {
        self.requests += 1;
        let mut total = UsageTotal::default();
        total.add(usage);
        self.tokens = self.tokens.saturating_add(total.tokens().map_or(0, Amount::value));
        self.tokens_unknown |= !total.tokens().is_some_and(Amount::is_exact);
        let names = [model, Some(asked.model.as_str())];
        let priced = names.into_iter().flatten().find_map(|model| price::table().cost(model, &total));
        let cost = total.cost_usd().or(priced);
        self.cost += cost.map_or(0.0, Amount::value);
        self.cost_unknown |= !cost.is_some_and(Amount::is_exact);
    }

    /// Puts down what is known.
    fn tell(&self, record: &mut JudgeRecord) {
        (record.requests, record.cached) = (self.requests, self.cached);
        if self.requests > 0 {
            record.tokens = (!self.tokens_unknown).then_some(self.tokens);
            record.cost_usd = (!self.cost_unknown).then_some(self.cost);
        }
    }

    /// Counts requests that have no answer: what they use is not known.
    fn has_open(&mut self, requests: u32) {
        self.requests += requests;
        (self.tokens_unknown, self.cost_unknown) = (true, true);
    }

    /// What a policy's model used; nothing if none was asked.
    fn of_policy(&self, model: &str) -> Option<PolicyRecord> {
        let mut record = JudgeRecord::default();
        self.tell(&mut record);
        let JudgeRecord { requests, cached, tokens, cost_usd, .. } = record;
        let model = model.to_owned();
        (requests > 0).then_some(PolicyRecord { model, requests, cached, tokens, cost_usd })
    }

    fn join(&mut self, other: &Spent) {
        self.requests += other.requests;
        self.cached += other.cached;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost += other.cost;
        self.tokens_unknown |= other.tokens_unknown;
        self.cost_unknown |= other.cost_unknown;
    }
}

/// The names of judges, as one text.
pub(crate) fn joined(names: &[ModelName]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
}

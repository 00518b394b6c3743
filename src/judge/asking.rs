//! Asks judges a question of any form. Canaries of the same form are asked first. The cost of every answer is
//! recorded.

use tokio::task::JoinSet;

use super::{Judges, Spent};
use crate::grade::judge_record::OneJudge;
use crate::model_client::{AskError, ModelName, Question};

/// A form of question about one subject. The form has canaries: subjects that no judge may pass.
pub(super) trait Form: Clone + Send + Sync + 'static {
    /// A judge's answer.
    type Answer: Send + 'static;

    /// Returns the digest of everything that decides whether a judge passes the canaries.
    fn key(&self) -> String;

    /// Returns the questions to a judge.
    fn questions(&self) -> Vec<Question>;

    /// Returns the canaries, by name.
    fn canaries(&self) -> Vec<(&'static str, Self)>;

    /// Returns true if an answer passes, regardless of its evidence.
    fn passes(&self, answer: &Self::Answer) -> bool;

    /// Sends the questions to one judge.
    fn put(&self, asking: &mut Asking<'_>) -> impl Future<Output = Result<Self::Answer, AskError>> + Send;
}

/// A judge that is being asked.
pub(super) struct Asking<'a> {
    judges: &'a Judges,
    name: &'a ModelName,
    /// The model that answered.
    model: Option<String>,
    spent: Spent,
    /// True if the judge is asked even if its answer is in the cache.
    fresh: bool,
}

impl Asking<'_> {
    /// Asks one question. An answer that cannot be read counts as an error.
    pub(super) async fn ask<T>(
        &mut self,
        question: Question,
        read: impl Fn(&str) -> Result<T, String> + Clone + Send + 'static,
    ) -> Result<T, AskError> {
        let (question, fits) = (Question { fresh: self.fresh, ..question }, read.clone());
        let reply = self.judges.ask(self.name, question, move |text| fits(text).map(drop)).await;
        let reply = reply.map_err(|failed| {
            self.spent.add_failed(self.name, &failed);
            failed.error
        })?;
        self.spent.add(self.name, &reply);
        let answer = read(&reply.text).map_err(|why| AskError::WrongForm { why })?;
        self.model = reply.model;
        Ok(answer)
    }

    /// Returns the canary that the judge passes, if it passes one.
    async fn void<F: Form>(&mut self, form: &F) -> Result<Option<String>, AskError> {
        for (name, canary) in form.canaries() {
            match canary.put(self).await {
                Ok(answer) if canary.passes(&answer) => return Ok(Some(name.to_owned())),
                // A judge that declines has passed nothing. If an answer is malformed, it is unknown what the
                // judge would pass.
                Ok(_) | Err(AskError::Declined) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// The answer of a judge.
pub(super) struct JudgeReply<A> {
    /// The record of the judge, with the reason if the judge gave no answer.
    pub(super) one: OneJudge,
    pub(super) answer: Result<A, String>,
    pub(super) spent: Spent,
}

/// Asks several judges at once, and returns their answers in the order of the judges.
pub(super) async fn ask_all<F: Form>(form: &F, judges: &Judges, names: &[ModelName]) -> Vec<JudgeReply<F::Answer>> {
    let mut running = JoinSet::new();
    for (number, name) in names.iter().enumerate() {
        let (form, judges, name) = (form.clone(), judges.clone(), name.clone());
        running.spawn(async move { (number, ask(&form, &judges, &name).await) });
    }
    let mut asked: Vec<(usize, JudgeReply<F::Answer>)> = Vec::new();
    while let Some(done) = running.join_next().await {
        asked.extend(done.ok());
    }
    asked.sort_by_key(|(number, _)| *number);
    asked.into_iter().map(|(_, asked)| asked).collect()
}

async fn ask<F: Form>(form: &F, judges: &Judges, name: &ModelName) -> JudgeReply<F::Answer> {
    // A provider may change the model behind a name: a judge that is called now is tested now, and a cached
    // answer has its own test.
    let fresh = !form.questions().iter().all(|question| judges.is_kept(name, question));
    let mut asking = Asking { judges, name, model: None, spent: Spent::default(), fresh };
    let key = format!("{name}\n{fresh}\n{}", form.key());
    let void = judges.void_once(key, asking.void(form)).await;
    (asking.fresh, asking.model) = (false, None);
    let answer = match void {
        Ok(Some(canary)) => Err(format!("the judge `{name}` is void: it passed the canary {canary}")),
        Ok(None) => form.put(&mut asking).await.map_err(|error| told(name, &error)),
        Err(error) => Err(told(name, &error)),
    };
    let Asking { model, spent, .. } = asking;
    let one = OneJudge { judge: name.to_string(), model, void: answer.as_ref().err().cloned(), ..OneJudge::default() };
    JudgeReply { one, answer, spent }
}

/// Returns the text of an error of one of several judges.
fn told(name: &ModelName, error: &AskError) -> String {
    let text = error.to_string();
    // Some errors already name the judge.
    if text.contains(&format!("`{name}`")) { text } else { format!("{name}: {text}") }
}

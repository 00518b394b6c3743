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

impl<A> JudgeReply<A> {
    /// Returns the reply of a judge that could not be asked because of an error of the engine.
    fn failed(name: &ModelName) -> Self {
        let why = format!("asking the judge `{name}` failed with a bug of evals");
        let one = OneJudge { judge: name.to_string(), void: Some(why.clone()), ..OneJudge::default() };
        let mut spent = Spent::default();
        spent.has_open(1);
        Self { one, answer: Err(why), spent }
    }
}

/// Asks several judges at once, and returns their answers in the order of the judges.
pub(super) async fn ask_all<F: Form>(form: &F, judges: &Judges, names: &[ModelName]) -> Vec<JudgeReply<F::Answer>> {
    let mut running = Vec::new();
    for name in names {
        let (form, judges, asked) = (form.clone(), judges.clone(), name.clone());
        // Dropping the set ends its task.
        let mut alone = JoinSet::new();
        alone.spawn(async move { ask(&form, &judges, &asked).await });
        running.push((name, alone));
    }
    let mut replies = Vec::new();
    for (name, mut alone) in running {
        replies.push(match alone.join_next().await {
            Some(Ok(reply)) => reply,
            // A judge without an answer counts in a vote; one that is left out does not.
            Some(Err(_)) | None => JudgeReply::failed(name),
        });
    }
    replies
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
        Ok(None) => form.put(&mut asking).await.map_err(|error| sentence(name, &error)),
        Err(error) => Err(sentence(name, &error)),
    };
    let Asking { model, spent, .. } = asking;
    let one = OneJudge { judge: name.to_string(), model, void: answer.as_ref().err().cloned(), ..OneJudge::default() };
    JudgeReply { one, answer, spent }
}

/// Returns the text of an error of one of several judges.
fn sentence(name: &ModelName, error: &AskError) -> String {
    if error.names_model() { error.to_string() } else { format!("{name}: {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A form whose questions end with a bug.
    #[derive(Clone)]
    struct Broken;

    impl Form for Broken {
        type Answer = ();

        fn key(&self) -> String {
            "broken".to_owned()
        }

        fn questions(&self) -> Vec<Question> {
            Vec::new()
        }

        fn canaries(&self) -> Vec<(&'static str, Self)> {
            Vec::new()
        }

        fn passes(&self, (): &()) -> bool {
            false
        }

        async fn put(&self, _: &mut Asking<'_>) -> Result<(), AskError> {
            panic!("a bug")
        }
    }

    #[test]
    fn an_error_names_its_judge_once_whatever_a_service_says() {
        let name: ModelName = "anthropic:a".parse().unwrap();
        let refused = AskError::Refused { status: 404, message: "`anthropic:a` is unknown".to_owned() };
        let why = "anthropic:a: the model's service answered 404: `anthropic:a` is unknown";
        assert_eq!(sentence(&name, &refused), why);
        let no_key = AskError::NoKey { model: name.to_string(), variable: "ANTHROPIC_API_KEY" };
        assert_eq!(sentence(&name, &no_key), "no key for `anthropic:a`: set ANTHROPIC_API_KEY");
    }

    #[tokio::test]
    async fn a_judge_whose_question_ends_with_a_bug_stays_in_the_vote() {
        let names = ["anthropic:a", "anthropic:b"].map(|name| name.parse().unwrap());
        let replies = ask_all(&Broken, &Judges::default(), &names).await;
        let names: Vec<&str> = replies.iter().map(|reply| reply.one.judge.as_str()).collect();
        assert_eq!(names, ["anthropic:a", "anthropic:b"]);
        assert!(replies.iter().all(|reply| reply.answer.is_err() && reply.one.void.is_some()));
        assert!(replies.iter().all(|reply| !reply.spent.figures().cost().is_exact()));
    }
}

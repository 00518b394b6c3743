//! An active policy of one trial: it remembers earlier requests, and chooses among the options that the agent
//! offers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    Adviser, Answer, Asked, Counters, Decision, Interaction, Person, Question, QuestionAnswer, choose, decide,
    decide_by_rule,
};
use crate::trace::{FileDiff, PermissionOption, ToolKind};
use crate::values::Time;

/// The timeout for the answer of a person or of a model: the agent's time limits are paused meanwhile, but not
/// for ever.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The rule of the policy `llm` that decides if no model answered.
const DEFAULT: &str = "default";

/// A policy with its memory.
#[derive(Debug, Clone)]
pub struct Policy {
    interaction: Interaction,
    answers: Vec<QuestionAnswer>,
    counters: Counters,
    /// The person who answers `manual`, and the trial's name for the person.
    person: Option<(Arc<dyn Person>, String)>,
    /// The model caller for `llm`.
    adviser: Option<Arc<dyn Adviser>>,
    patience: Duration,
}

/// The answer to a request, and what is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The option's id; without one the request is answered `cancelled`.
    pub option: Option<String>,
    /// The policy's name.
    pub policy: String,
    /// The rule that matched.
    pub rule: Option<String>,
    /// The reason.
    pub reason: Option<String>,
    /// A notice for the trace.
    pub notice: Option<String>,
    /// Keys of the call's input that a rule replaces.
    pub updated_input: Option<Map<String, Value>>,
}

/// The recorded policy if the case's `answers` decided.
pub(super) const ANSWERS: &str = "answers";

impl Policy {
    /// Makes a policy without earlier requests, and with the case's answers to questions.
    pub fn new(interaction: Interaction, answers: Vec<QuestionAnswer>) -> Self {
        let counters = Counters::default();
        Self { interaction, answers, counters, person: None, adviser: None, patience: PATIENCE }
    }

    /// Returns the policy's name, as used in traces.
    pub fn word(&self) -> &'static str {
        self.interaction.word()
    }

    /// Adds a person who answers `manual`.
    #[must_use]
    pub fn asking(self, person: Option<Arc<dyn Person>>, trial: String) -> Self {
        Self { person: person.map(|person| (person, trial)), ..self }
    }

    /// Adds a model caller for `llm`.
    #[must_use]
    pub fn advised_by(self, adviser: Arc<dyn Adviser>) -> Self {
        Self { adviser: Some(adviser), ..self }
    }

    /// Answers a request: by a person if the policy is `manual` and one is available, by a model if it is
    /// `llm`. Does not block other trials. Dropping the future withdraws the question.
    pub async fn decide(&mut self, asked: &Asked, diffs: &[FileDiff], options: &[PermissionOption]) -> Reply {
        if let Some(reply) = self.advised(asked, diffs, options).await {
            return reply;
        }
        let (Interaction::Manual, Some((person, trial))) = (&self.interaction, &self.person) else {
            return self.decide_alone(asked, options);
        };
        let question =
            Question { trial: trial.clone(), asked: asked.clone(), diffs: diffs.to_vec(), options: options.to_vec() };
        let person = person.clone();
        let withdrawn = Arc::new(AtomicBool::new(false));
        let _waiting = Waiting(withdrawn.clone());
        let asking = tokio::task::spawn_blocking(move || person.ask(&question, &withdrawn));
        let (answer, reason) = match tokio::time::timeout(self.patience, asking).await {
            Ok(Ok(Some(answer))) => (answer, "a person answered".to_owned()),
            Ok(_) => (Answer::Cancel, "the person is gone".to_owned()),
            Err(_) => (Answer::Cancel, format!("nobody answered within {}", Time(self.patience))),
        };
        let chosen = choose(answer, options);
        Reply {
            option: chosen.option,
            policy: self.interaction.word().to_owned(),
            rule: None,
            reason: Some(reason),
            notice: chosen.notice,
            updated_input: None,
        }
    }

    /// Returns a model's answer, or `None` if no model is asked. The approval of a plan is no permission.
    async fn advised(&self, asked: &Asked, diffs: &[FileDiff], options: &[PermissionOption]) -> Option<Reply> {
        let Interaction::Llm(llm) = &self.interaction else { return None };
        let adviser = self.adviser.clone().filter(|_| asked.kind != Some(ToolKind::SwitchMode))?;
        let (asked, diffs, offered) = (asked.clone(), diffs.to_vec(), options.to_vec());
        let question = Question { trial: String::new(), asked, diffs, options: offered };
        let (settings, withdrawn) = (llm.clone(), Arc::new(AtomicBool::new(false)));
        let _waiting = Waiting(withdrawn.clone());
        let asking = tokio::task::spawn_blocking(move || adviser.advise(&settings, &question, &withdrawn));
        let advised = match tokio::time::timeout(self.patience, asking).await {
            Ok(advised) => advised.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err(format!("it took longer than {}", Time(self.patience))),
        };
        let (answer, reason, rule, failed) = match advised {
            Ok(advice) => (advice.answer, advice.reason, advice.rule, None),
            Err(why) => {
                let why = format!("no model answered: {why}");
                (llm.default.unwrap_or_default().into(), why.clone(), Some(DEFAULT), Some(why))
            }
        };
        let chosen = choose(answer, options);
        Some(Reply {
            option: chosen.option,
            policy: self.interaction.word().to_owned(),
            rule: rule.map(str::to_owned),
            reason: Some(reason),
            notice: chosen.notice.or(failed),
            updated_input: None,
        })
    }

    /// Returns the reply if the session or the turn ended while the question was open.
    pub fn unanswered(&self) -> Reply {
        let who = if matches!(self.interaction, Interaction::Llm(_)) { "a model" } else { "a person" };
        Reply {
            option: None,
            policy: self.interaction.word().to_owned(),
            rule: None,
            reason: Some(format!("the session or the turn ended before {who} answered")),
            notice: None,
            updated_input: None,
        }
    }

    /// Answers a request without a person or model. The approval of a plan is no permission: it is decided by a
    /// matching rule or the case's `answers`, never by a default.
    pub fn decide_alone(&mut self, asked: &Asked, options: &[PermissionOption]) -> Reply {
        let decision = if asked.kind == Some(ToolKind::SwitchMode) {
            let ruled = decide_by_rule(&self.interaction, asked, &mut self.counters);
            ruled.or_else(|| self.plan_approved(asked)).unwrap_or_else(|| self.declines("the approval of a plan"))
        } else {
            decide(&self.interaction, asked, &mut self.counters)
        };
        let chosen = choose(decision.answer, options);
        Reply {
            option: chosen.option,
            policy: decision.policy.to_owned(),
            rule: decision.rule,
            reason: Some(decision.reason),
            notice: decision.notice.or(chosen.notice),
            updated_input: decision.updated_input,
        }
    }

    /// Answers questions of the agent: returns all answers, or why they are declined.
    pub fn answer(&self, questions: &[String]) -> (Option<Vec<String>>, Decision) {
        let found: Vec<Option<(usize, &QuestionAnswer)>> = questions.iter().map(|text| self.answer_to(text)).collect();
        let rule = found.iter().flatten().next().map(|(number, _)| format!("answers[{number}]"));
        let answers: Option<Vec<String>> = found.into_iter().map(|it| it.map(|(_, it)| it.answer.clone())).collect();
        match answers.filter(|answers| !answers.is_empty()) {
            Some(answers) => {
                let reason = "the case answers the question".to_owned();
                let answer = Answer::AllowOnce;
                (Some(answers), Decision { answer, policy: ANSWERS, rule, reason, updated_input: None, notice: None })
            }
            None => (None, self.declines("a question")),
        }
    }

    /// Returns the first matching answer of the case, with its number.
    pub(super) fn answer_to(&self, question: &str) -> Option<(usize, &QuestionAnswer)> {
        self.answers.iter().enumerate().find(|(_, answer)| answer.question.is_match(question))
    }

    fn plan_approved(&self, asked: &Asked) -> Option<Decision> {
        let plan = asked.input.as_ref().and_then(|input| input.get("plan")?.as_str()).or(asked.title.as_deref());
        let (number, said) = self.answer_to(plan.unwrap_or_default())?;
        let approved = is_yes(&said.answer);
        Some(Decision {
            answer: if approved { Answer::AllowOnce } else { Answer::RejectOnce },
            policy: ANSWERS,
            rule: Some(format!("answers[{number}]")),
            reason: said.answer.clone(),
            updated_input: None,
            notice: None,
        })
    }

    /// Returns the decision if the case has no answer.
    pub(super) fn declines(&self, what: &str) -> Decision {
        let policy = self.interaction.word();
        let reason = format!("{what} is no permission, and neither a rule nor `answers` of the case answers it");
        Decision { answer: Answer::RejectOnce, policy, rule: None, reason, updated_input: None, notice: None }
    }
}

/// Waits for a person's answer; when dropped, the question is withdrawn.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns true if an answer agrees.
pub(super) fn is_yes(answer: &str) -> bool {
    let word = answer.trim().to_lowercase();
    ["yes", "ok", "allow", "approve"].iter().any(|yes| word.starts_with(yes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Advice, Llm};
    use super::*;
    use crate::trace::facts::{Reading, Told};

    fn policy(yaml: &str, answers: &[(&str, &str)]) -> Policy {
        let answer = |(question, answer): &(&str, &str)| QuestionAnswer {
            question: question.parse().unwrap(),
            answer: (*answer).to_owned(),
        };
        Policy::new(yaml.parse().unwrap(), answers.iter().map(answer).collect())
    }

    fn plan(policy: &mut Policy) -> (Option<String>, String) {
        let input = json!({"plan": "1. Delete everything"});
        let told = Told { kind: Some(ToolKind::SwitchMode), input: Some(&input), ..Told::default() };
        let asked = Asked::new(Some("ExitPlanMode".into()), &told, &Reading::default());
        let option = |id: &str, kind: &str| PermissionOption { option: id.into(), kind: kind.into(), label: "".into() };
        let reply = policy.decide_alone(&asked, &[option("yes", "allow_once"), option("no", "reject_once")]);
        (reply.option, reply.policy)
    }

    #[test]
    fn a_plan_is_approved_by_a_rule_or_an_answer_alone() {
        let no = Some("no".to_owned());
        assert_eq!(plan(&mut policy("auto-approve", &[])), (no.clone(), "auto-approve".into()));
        assert_eq!(plan(&mut policy("{scripted: {default: allow}}", &[])), (no.clone(), "scripted".into()));
        let ruled = "{scripted: {rules: [{when: {kind: switch_mode}, answer: allow-once}]}}";
        assert_eq!(plan(&mut policy(ruled, &[])), (Some("yes".into()), "scripted".into()));
        assert_eq!(plan(&mut policy("auto-reject", &[("Delete", "Yes, do")])), (Some("yes".into()), "answers".into()));
        assert_eq!(plan(&mut policy("auto-approve", &[("Delete", "Keep it")])), (no, "answers".into()));
    }

    #[test]
    fn questions_are_answered_from_the_list_all_or_none() {
        let policy = policy("auto-approve", &[("(?i)colou?r", "red"), ("size", "big")]);
        let ask = |questions: &[&str]| policy.answer(&questions.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let (answers, decision) = ask(&["Which Color?", "What size?"]);
        assert_eq!(answers, Some(vec!["red".to_owned(), "big".to_owned()]));
        assert_eq!((decision.policy, decision.rule.as_deref()), ("answers", Some("answers[0]")));
        let (answers, decision) = ask(&["Which Color?", "How many?"]);
        assert_eq!((answers, decision.policy), (None, "auto-approve"));
        assert!(ask(&[]).0.is_none());
    }

    /// One who thinks until nobody waits any more.
    #[derive(Debug)]
    struct Thinks;

    fn until_withdrawn(withdrawn: &AtomicBool) {
        while !withdrawn.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    impl Person for Thinks {
        fn ask(&self, _: &Question, withdrawn: &AtomicBool) -> Option<Answer> {
            until_withdrawn(withdrawn);
            Some(Answer::AllowOnce)
        }
    }

    impl Adviser for Thinks {
        fn advise(&self, _: &Llm, _: &Question, withdrawn: &AtomicBool) -> Result<Advice, String> {
            until_withdrawn(withdrawn);
            Ok(Advice { answer: Answer::AllowOnce, reason: String::new(), rule: None })
        }
    }

    #[tokio::test]
    async fn no_answer_is_waited_for_without_end() {
        let thinks = Arc::new(Thinks);
        let asked = Asked { kind: Some(ToolKind::Execute), ..Asked::default() };
        let option = |kind: &str| PermissionOption { option: kind.into(), kind: kind.into(), label: "".into() };
        let options = [option("allow_once"), option("reject_once")];
        for (yaml, chosen, why) in [
            ("manual", None, "nobody answered within 50ms"),
            ("{llm: {}}", Some("reject_once"), "no model answered: it took longer than 50ms"),
            ("{llm: {default: allow}}", Some("allow_once"), "no model answered: it took longer than 50ms"),
        ] {
            let policy = policy(yaml, &[]).asking(Some(thinks.clone()), String::new()).advised_by(thinks.clone());
            let mut policy = Policy { patience: Duration::from_millis(50), ..policy };
            let reply = policy.decide(&asked, &[], &options).await;
            assert_eq!((reply.option.as_deref(), reply.reason.as_deref()), (chosen, Some(why)), "{yaml}");
            assert_eq!(reply.rule.as_deref(), (yaml != "manual").then_some(DEFAULT), "{yaml}");
        }
    }
}

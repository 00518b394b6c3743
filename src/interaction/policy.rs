//! An active policy of one trial: it remembers earlier requests, and chooses among the options that the agent
//! offers.

use std::sync::Arc;
use std::time::Duration;

use super::ask::{NoAnswer, ask};
use super::{
    Adviser, Answer, Counters, Decision, Interaction, Person, QuestionAnswer, Request, decide, decide_by_rule,
};
use crate::trace::RequestSubject;
use crate::values::Time;

/// The timeout for the answer of a person or of a model: the agent's time limits are paused meanwhile, but not
/// for ever.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// The rule of the policy `llm` that decides if no model answered.
pub const DEFAULT_RULE: &str = "default";

/// A policy with its memory.
#[derive(Debug, Clone)]
pub struct Policy {
    interaction: Interaction,
    answers: Vec<QuestionAnswer>,
    counters: Counters,
    /// The person who answers for the policy `manual`, and the name of the trial that is shown to the person.
    person: Option<(Arc<dyn Person>, String)>,
    /// The model caller for `llm`.
    adviser: Option<Arc<dyn Adviser>>,
    patience: Duration,
}

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

    /// Marks the rules whose conditions contain a secret. `mark_in` returns what requests have in the place of the first
    /// secret of a text.
    #[must_use]
    pub fn redacted(mut self, mark_in: impl Fn(&str) -> Option<String>) -> Self {
        if let Interaction::Scripted(scripted) = &mut self.interaction {
            for rule in &mut scripted.rules {
                rule.mark = serde_json::to_string(&rule.when).ok().and_then(|text| mark_in(&text));
            }
        }
        self
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
    pub async fn decide(&mut self, request: &Request) -> Decision {
        if let Some(decision) = self.advised(request).await {
            return decision;
        }
        let (Interaction::Manual, Some((person, trial))) = (&self.interaction, &self.person) else {
            return self.decide_alone(request);
        };
        let (person, trial, question) = (person.clone(), trial.clone(), request.clone());
        let asked = ask(self.patience, move |withdrawn| person.ask(&trial, &question, withdrawn)).await;
        let (answer, reason) = match asked {
            Ok(Some(answer)) => (answer, "a person answered".to_owned()),
            Ok(None) => (Answer::Cancel, "no person is there to answer any more".to_owned()),
            Err(NoAnswer::Bug(error)) => {
                (Answer::Cancel, format!("the question to the person ended with a bug of evals: {error}"))
            }
            Err(NoAnswer::Timeout) => (Answer::Cancel, format!("no person answered within {}", Time(self.patience))),
        };
        Decision::new(answer, self.word(), reason).choose(&request.options)
    }

    /// Returns a model's answer, or `None` if no model is asked. The approval of a plan and a question are no permissions.
    async fn advised(&self, request: &Request) -> Option<Decision> {
        let Interaction::Llm(llm) = &self.interaction else { return None };
        let adviser = self.adviser.clone().filter(|_| request.subject() == RequestSubject::Action)?;
        let (settings, question) = (llm.clone(), request.clone());
        let advised = match ask(self.patience, move |withdrawn| adviser.advise(&settings, &question, withdrawn)).await {
            Ok(advised) => advised,
            Err(NoAnswer::Bug(error)) => Err(error),
            Err(NoAnswer::Timeout) => Err(format!("it took longer than {}", Time(self.patience))),
        };
        Some(match advised {
            Ok(decision) => decision.choose(&request.options),
            Err(why) => {
                let why = format!("no model answered: {why}");
                let decision = Decision::new(llm.default.unwrap_or_default().into(), self.word(), why.clone());
                let decision = decision.with_rule(DEFAULT_RULE).choose(&request.options);
                Decision { notice: decision.notice.or(Some(why)), ..decision }
            }
        })
    }

    /// Returns the decision if the session or the turn ended while the question was open.
    pub fn unanswered(&self) -> Decision {
        let who = if matches!(self.interaction, Interaction::Llm(_)) { "a model" } else { "a person" };
        let reason = format!("the session or the turn ended before {who} answered");
        Decision::new(Answer::Cancel, self.word(), reason)
    }

    /// Returns true if the policy, without a person and a model, would reject a request that the engine cancels. Of a request
    /// without a known call, this is certain only if every request is rejected.
    pub fn would_reject(&self, request: Option<&Request>) -> bool {
        match (&self.interaction, request) {
            (Interaction::Manual | Interaction::Llm(_), _) => false,
            (interaction, None) => matches!(interaction, Interaction::AutoReject),
            (_, Some(request)) => {
                matches!(self.clone().decide_alone(request).answer, Answer::RejectOnce | Answer::RejectAlways)
            }
        }
    }

    /// Answers a request without a person or model. The approval of a plan is not a permission: it is decided by a
    /// matching rule or the case's `answers`, never by a default. A question, or what may be one, is decided by a matching
    /// rule: the options of a request hold no answer to it.
    fn decide_alone(&mut self, request: &Request) -> Decision {
        let decision = match request.subject() {
            RequestSubject::Action => decide(&self.interaction, request, &mut self.counters),
            RequestSubject::Plan => {
                let ruled = decide_by_rule(&self.interaction, request, &mut self.counters);
                ruled.or_else(|| self.plan_approved(request)).unwrap_or_else(|| self.declines("the approval of a plan"))
            }
            RequestSubject::Question | RequestSubject::Doubtful => {
                let ruled = decide_by_rule(&self.interaction, request, &mut self.counters);
                ruled.unwrap_or_else(|| self.declines("a question"))
            }
        };
        decision.choose(&request.options)
    }

    /// Answers questions of the agent: returns all answers, or why they are declined.
    pub fn answer(&self, questions: &[String]) -> (Option<Vec<String>>, Decision) {
        let found: Vec<Option<(usize, &QuestionAnswer)>> = questions.iter().map(|text| self.answer_to(text)).collect();
        let first = found.iter().flatten().next().map_or(0, |(number, _)| *number);
        let answers: Option<Vec<String>> = found.into_iter().map(|it| it.map(|(_, it)| it.answer.clone())).collect();
        match answers.filter(|answers| !answers.is_empty()) {
            Some(answers) => (Some(answers), by_answer(Answer::AllowOnce, first, "the case answers the question")),
            None => (None, self.declines("a question")),
        }
    }

    /// Returns the first matching answer of the case, with its number.
    pub(super) fn answer_to(&self, question: &str) -> Option<(usize, &QuestionAnswer)> {
        self.answers.iter().enumerate().find(|(_, answer)| answer.question.is_match(question))
    }

    fn plan_approved(&self, request: &Request) -> Option<Decision> {
        let plan = request.input.as_ref().and_then(|input| input.get("plan")?.as_str()).or(request.title.as_deref());
        let (number, reply) = self.answer_to(plan.unwrap_or_default())?;
        let answer = if is_yes(&reply.answer) { Answer::AllowOnce } else { Answer::RejectOnce };
        Some(by_answer(answer, number, reply.answer.clone()))
    }

    /// Returns the decision if the case has no answer.
    pub(super) fn declines(&self, what: &str) -> Decision {
        let reason =
            format!("{what} is not a permission request, and no rule and no entry of the case's `answers` matches it");
        Decision::new(Answer::RejectOnce, self.word(), reason)
    }
}

/// Returns the decision by an answer of the case.
pub(super) fn by_answer(answer: Answer, number: usize, reason: impl Into<String>) -> Decision {
    Decision::new(answer, "answers", reason).with_rule(format!("answers[{number}]"))
}

/// Words that agree as the first word of an answer.
const YES: [&str; 7] = ["yes", "ok", "okay", "allow", "allowed", "approve", "approved"];
/// Words that agree only as a whole answer: other answers may begin with them, too.
const YES_ALONE: [&str; 4] = ["true", "y", "on", "1"];

/// Returns true if an answer agrees: it is a word that agrees, or begins with one.
pub(super) fn is_yes(answer: &str) -> bool {
    let text = answer.trim().to_lowercase();
    let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    is_word_for_yes(&text) || YES.contains(&first)
}

/// Returns true if a word in lower case agrees.
pub(super) fn is_word_for_yes(word: &str) -> bool {
    YES.contains(&word) || YES_ALONE.contains(&word)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;

    use super::super::Llm;
    use super::*;
    use crate::trace::facts::{Reading, ReportedDetails};
    use crate::trace::{PermissionOption, ToolKind};

    fn policy(yaml: &str, answers: &[(&str, &str)]) -> Policy {
        let answer = |(question, answer): &(&str, &str)| QuestionAnswer {
            question: question.parse().unwrap(),
            answer: (*answer).to_owned(),
        };
        Policy::new(yaml.parse().unwrap(), answers.iter().map(answer).collect())
    }

    fn plan(policy: &mut Policy) -> (Option<String>, String) {
        let input = json!({"plan": "1. Delete everything"});
        let details =
            ReportedDetails { kind: Some(ToolKind::SwitchMode), input: Some(&input), ..ReportedDetails::default() };
        let asked = Request::new(Some("ExitPlanMode".into()), &details, &Reading::default());
        let option = |id: &str, kind: &str| PermissionOption { option: id.into(), kind: kind.into(), label: "".into() };
        let options = vec![option("yes", "allow_once"), option("no", "reject_once")];
        let decision = policy.decide_alone(&Request { options, ..asked });
        (decision.option, decision.by.policy.unwrap())
    }

    #[test]
    fn a_question_of_a_tool_is_no_permission() {
        let asked = |policy: &mut Policy, name: &str| {
            let input = json!({"questions": [{"question": "Delete the database?"}]});
            let details = ReportedDetails { input: Some(&input), ..ReportedDetails::default() };
            let request = Request::new(Some(name.into()), &details, &Reading::default());
            let option =
                |id: &str, kind: &str| PermissionOption { option: id.into(), kind: kind.into(), label: "".into() };
            let options = vec![option("yes", "allow_once"), option("no", "reject_once")];
            policy.decide_alone(&Request { options, ..request }).option
        };
        let (yes, no) = (Some("yes".to_owned()), Some("no".to_owned()));
        for name in ["AskUserQuestion", "ask_user_question", "ask_user"] {
            assert_eq!(asked(&mut policy("auto-approve", &[]), name), no, "{name}");
            assert_eq!(asked(&mut policy("{scripted: {default: allow-once}}", &[]), name), no, "{name}");
            let ruled = format!("{{scripted: {{rules: [{{when: {{name: {name}}}, answer: allow-once}}]}}}}");
            assert_eq!(asked(&mut policy(&ruled, &[]), name), yes, "{name}");
        }
        assert_eq!(asked(&mut policy("auto-approve", &[]), "ask_users_table"), yes);
    }

    #[test]
    fn a_plan_is_approved_by_a_rule_or_an_answer_alone() {
        let no = Some("no".to_owned());
        assert_eq!(plan(&mut policy("auto-approve", &[])), (no.clone(), "auto-approve".into()));
        assert_eq!(plan(&mut policy("{scripted: {default: allow}}", &[])), (no, "scripted".into()));
        let ruled = "{scripted: {rules: [{when: {kind: switch_mode}, answer: allow-once}]}}";
        assert_eq!(plan(&mut policy(ruled, &[])), (Some("yes".into()), "scripted".into()));
        assert_eq!(plan(&mut policy("auto-reject", &[("Delete", "Yes, do")])), (Some("yes".into()), "answers".into()));
        for (answer, chosen) in [
            ("y", "yes"),
            ("True", "yes"),
            ("ok, go on", "yes"),
            ("Approved.", "yes"),
            ("Keep it", "no"),
            ("yesterday's plan was better", "no"),
            ("Okra", "no"),
            ("1. Keep it", "no"),
            ("on no account", "no"),
        ] {
            let decided = plan(&mut policy("auto-approve", &[("Delete", answer)]));
            assert_eq!(decided, (Some(chosen.to_owned()), "answers".into()), "{answer}");
        }
    }

    #[test]
    fn questions_are_answered_from_the_list_all_or_none() {
        let policy = policy("auto-approve", &[("(?i)colou?r", "red"), ("size", "big")]);
        let ask = |questions: &[&str]| policy.answer(&questions.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        let (answers, decision) = ask(&["Which Color?", "What size?"]);
        assert_eq!(answers, Some(vec!["red".to_owned(), "big".to_owned()]));
        assert_eq!((decision.by.policy.as_deref(), decision.by.rule.as_deref()), (Some("answers"), Some("answers[0]")));
        let (answers, decision) = ask(&["Which Color?", "How many?"]);
        assert_eq!((answers, decision.by.policy.as_deref()), (None, Some("auto-approve")));
        assert!(ask(&[]).0.is_none());
    }

    /// A person who answers only after the request is withdrawn.
    #[derive(Debug)]
    struct Thinks;

    fn until_withdrawn(withdrawn: &AtomicBool) {
        while !withdrawn.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    impl Person for Thinks {
        fn ask(&self, _: &str, _: &Request, withdrawn: &AtomicBool) -> Option<Answer> {
            until_withdrawn(withdrawn);
            Some(Answer::AllowOnce)
        }
    }

    impl Adviser for Thinks {
        fn advise(&self, _: &Llm, _: &Request, withdrawn: &AtomicBool) -> Result<Decision, String> {
            until_withdrawn(withdrawn);
            Ok(Decision::new(Answer::AllowOnce, "llm", ""))
        }
    }

    /// A person whose program has a bug.
    #[derive(Debug)]
    struct Panics;

    impl Person for Panics {
        fn ask(&self, _: &str, _: &Request, _: &AtomicBool) -> Option<Answer> {
            panic!("no window")
        }
    }

    #[tokio::test]
    async fn a_bug_of_the_question_is_not_the_absence_of_a_person() {
        let mut policy = policy("manual", &[]).asking(Some(Arc::new(Panics)), String::new());
        let Decision { option, by, .. } = policy.decide(&Request::default()).await;
        let reason = by.reason.unwrap();
        assert!(option.is_none() && reason.contains("ended with a bug of evals: "), "{reason}");
    }

    #[tokio::test]
    async fn no_answer_is_waited_for_without_end() {
        let thinks = Arc::new(Thinks);
        let option = |kind: &str| PermissionOption { option: kind.into(), kind: kind.into(), label: "".into() };
        let options = vec![option("allow_once"), option("reject_once")];
        let request = Request { kind: Some(ToolKind::Execute), options, ..Request::default() };
        for (yaml, chosen, why) in [
            ("manual", None, "no person answered within 50ms"),
            ("{llm: {}}", Some("reject_once"), "no model answered: it took longer than 50ms"),
            ("{llm: {default: allow}}", Some("allow_once"), "no model answered: it took longer than 50ms"),
        ] {
            let policy = policy(yaml, &[]).asking(Some(thinks.clone()), String::new()).advised_by(thinks.clone());
            let mut policy = Policy { patience: Duration::from_millis(50), ..policy };
            let Decision { option, by, .. } = policy.decide(&request).await;
            assert_eq!((option.as_deref(), by.reason.as_deref()), (chosen, Some(why)), "{yaml}");
            assert_eq!(by.rule.as_deref(), (yaml != "manual").then_some(DEFAULT_RULE), "{yaml}");
        }
    }
}

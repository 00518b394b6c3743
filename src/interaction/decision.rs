//! A decision about a request, and the option of the agent that it chooses: by the option's kind, never by its
//! label.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Answer;
use crate::trace::PermissionOption;
use crate::trace::recorder::DecidedBy;

/// The answer to a request of an agent, who made it, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub answer: Answer,
    /// The id of the agent's option that gives this answer; without one the request is answered `cancelled`.
    pub option: Option<String>,
    /// The policy and the rule that decided, and the reason.
    pub by: DecidedBy,
    /// Keys of the call's input that the rule replaces.
    pub updated_input: Option<Map<String, Value>>,
    /// A notice for the trace.
    pub notice: Option<String>,
}

impl Decision {
    pub fn new(answer: Answer, policy: &str, reason: impl Into<String>) -> Self {
        let by = DecidedBy { policy: Some(policy.to_owned()), reason: Some(reason.into()), ..DecidedBy::default() };
        Self { answer, option: None, by, updated_input: None, notice: None }
    }

    /// Makes the engine's own decision to cancel a request, without asking a policy.
    pub fn of_engine(reason: &str) -> Self {
        Self::new(Answer::Cancel, DecidedBy::ENGINE, reason)
    }

    /// Notes whether the policy would have rejected the request that the engine cancels.
    #[must_use]
    pub fn rejecting(mut self, rejects: bool) -> Self {
        self.by.rejects = rejects;
        self
    }

    /// Adds the rule that decided.
    #[must_use]
    pub fn with_rule(mut self, rule: impl Into<String>) -> Self {
        self.by.rule = Some(rule.into());
        self
    }

    /// Chooses an option. If none has the answer's kind, the nearest option of the same polarity is chosen. If no
    /// option has that polarity, the request is cancelled, and a rejection still counts as one; an option of the opposite polarity is never chosen. An
    /// option whose id another option shares is never chosen: the agent would decide which of the two the answer
    /// means.
    #[must_use]
    pub fn choose(mut self, options: &[PermissionOption]) -> Self {
        let (option, notice) = choose(self.answer, options);
        self.by.rejects = option.is_none() && matches!(self.answer, Answer::RejectOnce | Answer::RejectAlways);
        self.option = option;
        self.notice = self.notice.or(notice);
        self
    }

    /// Returns true if an option was chosen that allows the call.
    pub fn allows(&self) -> bool {
        self.option.is_some() && matches!(self.answer, Answer::AllowOnce | Answer::AllowAlways)
    }
}

/// Returns the id of the option, and a notice if none was suitable, or only a similar one.
fn choose(answer: Answer, options: &[PermissionOption]) -> (Option<String>, Option<String>) {
    let kinds = match answer {
        Answer::AllowOnce => ["allow_once", "allow_always"],
        Answer::AllowAlways => ["allow_always", "allow_once"],
        Answer::RejectOnce => ["reject_once", "reject_always"],
        Answer::RejectAlways => ["reject_always", "reject_once"],
        Answer::Cancel => return (None, None),
    };
    let mut of_id: HashMap<&str, u64> = HashMap::new();
    options.iter().for_each(|option| *of_id.entry(&option.option).or_default() += 1);
    let (unique, ambiguous): (Vec<_>, Vec<_>) =
        options.iter().partition(|option| of_id.get(option.option.as_str()) == Some(&1));
    for (kind, exact) in kinds.into_iter().zip([true, false]) {
        if let Some(found) = unique.iter().find(|option| option.kind == kind) {
            let notice = (!exact).then(|| format!("no option of kind {} was offered; {kind} was chosen", kinds[0]));
            return (Some(found.option.clone()), notice);
        }
    }
    if let Some(option) = ambiguous.iter().find(|option| kinds.contains(&option.kind.as_str())) {
        return (None, Some(format!("several options have the id {:?}; answered cancelled", option.option)));
    }
    let offered: Vec<&str> = options.iter().map(|option| option.kind.as_str()).collect();
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    let notice = format!("no option of kind {} or {} was offered ({offered}); answered cancelled", kinds[0], kinds[1]);
    (None, Some(notice))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn option(id: &str, kind: &str, label: &str) -> PermissionOption {
        PermissionOption { option: id.into(), kind: kind.into(), label: label.into() }
    }

    #[test]
    fn the_kind_decides_and_never_the_label() {
        let options = [
            option("x", "reject_once", "Allow this"),
            option("y", "allow_always", "I know, proceed"),
            option("allow_once", "custom", "Yes, allow once"),
        ];
        let allow = choose(Answer::AllowOnce, &options);
        let notice = "no option of kind allow_once was offered; allow_always was chosen";
        assert_eq!(allow, (Some("y".into()), Some(notice.into())));
        assert_eq!(choose(Answer::RejectOnce, &options), (Some("x".into()), None));
    }

    #[test]
    fn without_a_fitting_option_the_request_is_cancelled_with_a_notice() {
        let (chosen, notice) = choose(Answer::RejectAlways, &[option("a", "allow_once", "No")]);
        assert_eq!(chosen, None);
        assert!(notice.unwrap().contains("(allow_once)"));
        assert_eq!(choose(Answer::Cancel, &[option("a", "allow_once", "Cancel")]), (None, None));
        for (answer, rejects) in [(Answer::RejectOnce, true), (Answer::AllowOnce, false), (Answer::Cancel, false)] {
            assert_eq!(Decision::new(answer, "", "").choose(&[]).by.rejects, rejects, "{answer:?}");
        }
    }

    #[test]
    fn an_id_that_several_options_have_is_never_chosen() {
        let twice = [option("a", "reject_once", "No"), option("a", "allow_once", "Yes")];
        for answer in [Answer::RejectOnce, Answer::AllowAlways] {
            let notice = "several options have the id \"a\"; answered cancelled";
            assert_eq!(choose(answer, &twice), (None, Some(notice.into())));
        }
        let [reject, allow] = twice;
        let (chosen, _) = choose(Answer::RejectOnce, &[reject, allow, option("b", "reject_always", "Never")]);
        assert_eq!(chosen.as_deref(), Some("b"));
    }

    fn any_answer() -> impl Strategy<Value = Answer> {
        prop_oneof![
            Just(Answer::AllowOnce),
            Just(Answer::AllowAlways),
            Just(Answer::RejectOnce),
            Just(Answer::RejectAlways),
            Just(Answer::Cancel),
        ]
    }

    proptest! {
        #[test]
        fn the_other_polarity_is_never_chosen(
            answer in any_answer(),
            kinds in prop::collection::vec("allow_once|allow_always|reject_once|reject_always|allow|[a-z_]{0,6}", 0..6),
        ) {
            let options: Vec<_> =
                kinds.iter().enumerate().map(|(n, kind)| option(&n.to_string(), kind, "allow reject")).collect();
            let chosen = Decision::new(answer, "", "").choose(&options);
            let allows = chosen.allows();
            let kind = chosen.option.and_then(|id| options.into_iter().find(|o| o.option == id)).map(|o| o.kind);
            match (answer, kind.as_deref()) {
                (Answer::AllowOnce | Answer::AllowAlways, Some(kind)) => {
                    prop_assert!(matches!(kind, "allow_once" | "allow_always"));
                    prop_assert!(allows);
                }
                (Answer::RejectOnce | Answer::RejectAlways, Some(kind)) => {
                    prop_assert!(matches!(kind, "reject_once" | "reject_always"));
                    prop_assert!(!allows);
                }
                (Answer::Cancel, Some(_)) => prop_assert!(false, "a cancel chose an option"),
                (answer, None) => {
                    prop_assert!(!allows);
                    let polarity = match answer { Answer::AllowOnce | Answer::AllowAlways => "allow_", _ => "reject_" };
                    let fits = |kind: &String| matches!(kind.strip_prefix(polarity), Some("once" | "always"));
                    prop_assert!(answer == Answer::Cancel || !kinds.iter().any(fits), "a fitting option was left");
                }
            }
        }
    }
}

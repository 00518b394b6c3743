//! Chooses one of the options that an agent offers: by the option's kind, never by its label.

use std::collections::HashMap;

use super::Answer;
use crate::trace::{PermissionOption, PermissionOutcome};

/// The response to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The option's id; without one the request is answered `cancelled`.
    pub option: Option<String>,
    /// The outcome for the call.
    pub outcome: PermissionOutcome,
    /// A notice for the trace: no option was suitable, or only a similar one.
    pub notice: Option<String>,
}

/// Chooses an option. If none has the answer's kind, the nearest of the same polarity is taken; if there is
/// none, the request is cancelled. The opposite polarity is never taken. An option whose ID another option has
/// too is never taken: the agent would decide which of the two the answer means.
pub fn choose(answer: Answer, options: &[PermissionOption]) -> Chosen {
    let (kinds, outcome) = match answer {
        Answer::AllowOnce => (["allow_once", "allow_always"], PermissionOutcome::Allowed),
        Answer::AllowAlways => (["allow_always", "allow_once"], PermissionOutcome::Allowed),
        Answer::RejectOnce => (["reject_once", "reject_always"], PermissionOutcome::Rejected),
        Answer::RejectAlways => (["reject_always", "reject_once"], PermissionOutcome::Rejected),
        Answer::Cancel => return Chosen { option: None, outcome: PermissionOutcome::Cancelled, notice: None },
    };
    let mut of_id: HashMap<&str, u64> = HashMap::new();
    options.iter().for_each(|option| *of_id.entry(&option.option).or_default() += 1);
    let (unique, ambiguous): (Vec<_>, Vec<_>) =
        options.iter().partition(|option| of_id.get(option.option.as_str()) == Some(&1));
    for (kind, exact) in kinds.into_iter().zip([true, false]) {
        if let Some(found) = unique.iter().find(|option| option.kind == kind) {
            let notice = (!exact).then(|| format!("no option of kind {} was offered; {kind} was chosen", kinds[0]));
            return Chosen { option: Some(found.option.clone()), outcome, notice };
        }
    }
    if let Some(option) = ambiguous.iter().find(|option| kinds.contains(&option.kind.as_str())) {
        let notice = format!("several options have the id {:?}; answered cancelled", option.option);
        return Chosen { option: None, outcome: PermissionOutcome::Cancelled, notice: Some(notice) };
    }
    let offered: Vec<&str> = options.iter().map(|option| option.kind.as_str()).collect();
    let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
    let notice = format!("no option of kind {} or {} was offered ({offered}); answered cancelled", kinds[0], kinds[1]);
    Chosen { option: None, outcome: PermissionOutcome::Cancelled, notice: Some(notice) }
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
        assert_eq!(allow.option.as_deref(), Some("y"));
        assert_eq!(allow.outcome, PermissionOutcome::Allowed);
        assert_eq!(allow.notice.as_deref(), Some("no option of kind allow_once was offered; allow_always was chosen"));
        let reject = choose(Answer::RejectOnce, &options);
        assert_eq!((reject.option.as_deref(), reject.notice), (Some("x"), None));
    }

    #[test]
    fn without_a_fitting_option_the_request_is_cancelled_with_a_notice() {
        let chosen = choose(Answer::RejectAlways, &[option("a", "allow_once", "No")]);
        assert_eq!((chosen.option, chosen.outcome), (None, PermissionOutcome::Cancelled));
        assert!(chosen.notice.unwrap().contains("(allow_once)"));
        let chosen = choose(Answer::Cancel, &[option("a", "allow_once", "Cancel")]);
        assert_eq!((chosen.option, chosen.notice), (None, None));
    }

    #[test]
    fn an_id_that_several_options_have_is_never_chosen() {
        let twice = [option("a", "reject_once", "No"), option("a", "allow_once", "Yes")];
        for answer in [Answer::RejectOnce, Answer::AllowAlways] {
            let chosen = choose(answer, &twice);
            assert_eq!((chosen.option, chosen.outcome), (None, PermissionOutcome::Cancelled));
            assert_eq!(chosen.notice.unwrap(), "several options have the id \"a\"; answered cancelled");
        }
        let [reject, allow] = twice;
        let chosen = choose(Answer::RejectOnce, &[reject, allow, option("b", "reject_always", "Never")]);
        assert_eq!((chosen.option.as_deref(), chosen.outcome), (Some("b"), PermissionOutcome::Rejected));
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
            let chosen = choose(answer, &options);
            let kind = chosen.option.and_then(|id| options.into_iter().find(|o| o.option == id)).map(|o| o.kind);
            match (answer, kind.as_deref()) {
                (Answer::AllowOnce | Answer::AllowAlways, Some(kind)) => {
                    prop_assert!(matches!(kind, "allow_once" | "allow_always"));
                    prop_assert_eq!(chosen.outcome, PermissionOutcome::Allowed);
                }
                (Answer::RejectOnce | Answer::RejectAlways, Some(kind)) => {
                    prop_assert!(matches!(kind, "reject_once" | "reject_always"));
                    prop_assert_eq!(chosen.outcome, PermissionOutcome::Rejected);
                }
                (Answer::Cancel, Some(_)) => prop_assert!(false, "a cancel chose an option"),
                (answer, None) => {
                    prop_assert_eq!(chosen.outcome, PermissionOutcome::Cancelled);
                    let polarity = match answer { Answer::AllowOnce | Answer::AllowAlways => "allow_", _ => "reject_" };
                    let fits = |kind: &String| matches!(kind.strip_prefix(polarity), Some("once" | "always"));
                    prop_assert!(answer == Answer::Cancel || !kinds.iter().any(fits), "a fitting option was left");
                }
            }
        }
    }
}

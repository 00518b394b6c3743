//! Gates that rest on doubted results. The only place in which a doubt makes a passed or a failed gate inconclusive. Pure.

use super::{Gate, Kind, MAX_NAMES};
use crate::compare::result_doubts::{DoubtReason, ResultDoubts};
use crate::statistics::gates::GateVerdict;
use crate::text::some_of;

impl Gate {
    /// Returns the gate, inconclusive instead of passed if results that it rests on are doubted. A gate that fails still fails.
    #[must_use]
    pub fn settled(self, doubts: &ResultDoubts) -> Self {
        if self.verdict != GateVerdict::Pass {
            return self;
        }
        let rests_on = |case: &str| self.cases.as_ref().is_none_or(|cases| cases.contains(case));
        let (mut read, mut reasons) = (Vec::new(), Vec::new());
        for doubt in doubts.of(&self.arm).filter(|doubt| is_doubted_by(self.kind, &doubt.reason)) {
            match (&doubt.reason, doubt.case.as_deref()) {
                (DoubtReason::OwnCase { .. }, Some(case)) if rests_on(case) => read.push(case),
                (DoubtReason::OtherHarness { old, new, .. }, _) => reasons.push(format!(
                    "the baseline is of harness `{}` and the run of harness `{}`; if the new harness is meant, set a baseline \
                     of it (`evals baseline set {} --replace`), or, if both runs are there, compare them: `evals compare {} {} \
                     --gate`",
                    old.harness, new.harness, new.run, old.run, new.run
                )),
                (DoubtReason::OwnCase { .. } | DoubtReason::NotInBaseline(_), _) => {}
            }
        }
        if !read.is_empty() {
            let names = some_of(read, MAX_NAMES);
            reasons.insert(0, format!("agents could read files of their own case: {names}"));
        }
        if reasons.is_empty() {
            return self;
        }
        let text = format!("{}; inconclusive, because {}", self.text, reasons.join("; and because "));
        Self { verdict: GateVerdict::Inconclusive, text, ..self }
    }

    /// Returns the gate of a pair of arms, inconclusive instead of failed if it fails only by old scores of agents that could
    /// read files of their own case. `read` names these cases of the arm `old`, and `without` has the gates over the others.
    pub(super) fn settled_without(self, old: &str, read: &[&str], without: &[Gate]) -> Self {
        let kind = self.kind;
        let others = || without.iter().filter(move |gate| gate.kind == kind);
        if self.verdict != GateVerdict::Fail || others().any(|gate| gate.verdict == GateVerdict::Fail) {
            return self;
        }
        let of_others = others().next().map(|gate| format!("; without them: {}", gate.text)).unwrap_or_default();
        let names = some_of(read, MAX_NAMES);
        let text = format!(
            "{}; inconclusive, because agents of {old} could read files of their own case: {names}{of_others}",
            self.text
        );
        Self { verdict: GateVerdict::Inconclusive, text, ..self }
    }
}

/// Returns true if a pass of a gate of this kind shows less for this reason.
fn is_doubted_by(kind: Kind, reason: &DoubtReason) -> bool {
    let (is_of_scores, is_relative) = match kind {
        Kind::Margin | Kind::NoRegressions => (true, true),
        Kind::Critical | Kind::FailUnder => (true, false),
        Kind::MaxCost | Kind::Completed | Kind::Cases => (false, false),
    };
    match reason {
        DoubtReason::OwnCase { has_score, .. } => *has_score && is_of_scores,
        DoubtReason::OtherHarness { is_baseline, .. } => *is_baseline && is_relative,
        // `no-regressions` does not pass over such a case: its outcome names the case among the others that are open.
        DoubtReason::NotInBaseline(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::result_doubts::{HarnessOfRun, ResultDoubt};

    fn gate(kind: Kind) -> Gate {
        Gate::new("x".to_owned(), kind, GateVerdict::Pass, "text".to_owned())
    }

    fn read(case: &str, score: f64) -> ResultDoubt {
        ResultDoubt::of_own_case("x", case, 1, Some(score)).unwrap()
    }

    fn other_harness(is_baseline: bool) -> ResultDoubt {
        let of = |name: &str| HarnessOfRun { harness: name.to_owned(), run: format!("r-{name}") };
        let reason = DoubtReason::OtherHarness { old: of("one"), new: of("two"), is_baseline };
        ResultDoubt { arm: "x".to_owned(), case: None, reason }
    }

    #[test]
    fn a_gate_does_not_pass_on_scores_of_agents_that_could_read_their_case() {
        let verdict = |doubts: Vec<ResultDoubt>, gate: Gate| gate.settled(&ResultDoubts::from_iter(doubts)).verdict;
        let of = |doubt: ResultDoubt, kind: Kind| verdict(vec![doubt], gate(kind));
        assert_eq!(verdict(Vec::new(), gate(Kind::FailUnder)), GateVerdict::Pass);
        assert_eq!(of(read("b", 0.0), Kind::FailUnder), GateVerdict::Pass);
        for kind in [Kind::NoRegressions, Kind::Margin, Kind::Critical, Kind::FailUnder] {
            assert_eq!(of(read("a", 1.0), kind), GateVerdict::Inconclusive);
        }
        assert_eq!(of(read("a", 1.0), Kind::Completed), GateVerdict::Pass);
        let of_cases = |case: &str| Gate { cases: Some([case.to_owned()].into()), ..gate(Kind::Margin) };
        assert_eq!(verdict(vec![read("a", 1.0)], of_cases("b")), GateVerdict::Pass);
        assert_eq!(verdict(vec![read("a", 1.0)], of_cases("a")), GateVerdict::Inconclusive);
        let other = Gate { arm: "y".to_owned(), ..gate(Kind::Margin) };
        assert_eq!(verdict(vec![read("a", 1.0)], other), GateVerdict::Pass);
    }

    #[test]
    fn a_relative_gate_does_not_pass_against_a_baseline_of_another_harness_and_names_each_reason() {
        let settled = |kind: Kind, doubts: [ResultDoubt; 2]| gate(kind).settled(&ResultDoubts::from_iter(doubts));
        let found = settled(Kind::Margin, [other_harness(true), read("a", 1.0)]);
        assert_eq!(found.verdict, GateVerdict::Inconclusive);
        let start = "text; inconclusive, because agents could read files of their own case: a; and because the baseline is of \
                     harness `one` and the run of harness `two`";
        assert!(found.text.starts_with(start), "{}", found.text);
        for (kind, is_baseline) in [(Kind::Margin, false), (Kind::FailUnder, true)] {
            assert_eq!(settled(kind, [other_harness(is_baseline), read("b", 0.0)]).verdict, GateVerdict::Pass);
        }
    }

    #[test]
    fn a_gate_fails_by_old_scores_of_agents_that_could_read_their_case_only_if_other_cases_fail() {
        let of = |kind: Kind, verdict: GateVerdict| Gate { verdict, ..gate(kind) };
        let failed = of(Kind::Margin, GateVerdict::Fail);
        let settled = |without: &[Gate]| failed.clone().settled_without("y", &["a"], without);
        let found = settled(&[of(Kind::Critical, GateVerdict::Fail), of(Kind::Margin, GateVerdict::Pass)]);
        assert_eq!(found.verdict, GateVerdict::Inconclusive);
        let text = "text; inconclusive, because agents of y could read files of their own case: a; without them: text";
        assert_eq!(found.text, text);
        assert_eq!(settled(&[]).verdict, GateVerdict::Inconclusive);
        assert_eq!(settled(&[of(Kind::Margin, GateVerdict::Fail)]), failed);
        assert_eq!(gate(Kind::Margin).settled_without("y", &["a"], &[]), gate(Kind::Margin));
    }

    #[test]
    fn a_gate_that_fails_still_fails() {
        let failed = Gate { verdict: GateVerdict::Fail, ..gate(Kind::Margin) };
        assert_eq!(failed.clone().settled(&ResultDoubts::from_iter([read("a", 1.0)])), failed);
    }
}

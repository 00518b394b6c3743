//! Compares rules over events that were not shown completely with every possible completion of these events.

use proptest::prelude::*;

use super::super::hits::EventPlace;
use super::*;
use crate::grader::speakers::Span;

/// The result of comparing an event with a matcher of a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fit {
    Yes,
    Perhaps,
    No,
}

fn rules() -> Vec<(Rule, usize, bool)> {
    // Each rule with the number of its matchers, and whether it finds every result that all worlds share.
    [
        ("eventually: {kind: read}", 1, true),
        ("never: {kind: read}", 1, true),
        ("count: {match: {kind: read}, min: 1, max: 2}", 1, false),
        ("count: {match: {kind: read}, max: 1}", 1, true),
        ("before: {first: {kind: read}, then: {kind: edit}}", 2, true),
        ("response: {after: {kind: read}, then: {kind: edit}}", 2, true),
        ("never-after: {after: {kind: read}, never: {kind: edit}}", 2, true),
        ("immediately: {after: {kind: read}, then: {kind: edit}}", 2, true),
        ("within: {after: {kind: read}, then: {kind: edit}, steps: 2}", 2, true),
        ("within: {after: {kind: read}, then: {kind: edit}, seconds: 2s}", 2, true),
        ("absent-between: {from: {kind: read}, to: {kind: edit}, never: {kind: delete}}", 3, false),
    ]
    .map(|(text, matchers, is_exact)| (serde_yaml::from_str(text).unwrap(), matchers, is_exact))
    .into()
}

/// Returns the findings of the matchers, for one choice of all fits.
fn found(rule: &Rule, fits: &[Vec<Fit>], steps: &[u64]) -> Vec<FoundEvents> {
    let mut all: Vec<FoundEvents> = rule.matchers().iter().map(|_| FoundEvents::new(rule.looks_at_each())).collect();
    for (n, step) in steps.iter().enumerate() {
        let hit =
            Hit { place: EventPlace::in_step(*step), seq: n as u64, at_ms: n as u64 * 900, span: Span::default() };
        for (m, found) in all.iter_mut().enumerate() {
            // Both matchers of `count` are the same matcher.
            let of = &fits[n];
            match of[m.min(of.len() - 1)] {
                Fit::Yes => found.surely.add(hit),
                Fit::Perhaps => found.perhaps.add(hit),
                Fit::No => {}
            }
        }
    }
    all
}

/// Returns every completion of the fits that are `Perhaps`.
fn choices(fits: &[Vec<Fit>]) -> Vec<Vec<Vec<Fit>>> {
    let mut all = vec![fits.to_vec()];
    for event in 0..fits.len() {
        for matcher in 0..fits[event].len() {
            if fits[event][matcher] == Fit::Perhaps {
                all = all
                    .into_iter()
                    .flat_map(|choice| {
                        [Fit::Yes, Fit::No].map(|fit| {
                            let mut choice = choice.clone();
                            choice[event][matcher] = fit;
                            choice
                        })
                    })
                    .collect();
            }
        }
    }
    all
}

fn word(finding: &Finding) -> &'static str {
    match finding {
        Finding::Holds(_) => "holds",
        Finding::Broken(_) => "broken",
        Finding::Vacuous => "vacuous",
        Finding::Unknown(_) => "unknown",
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_rule_says_what_every_world_says(
        rule in 0..11_usize,
        events in proptest::collection::vec((any::<bool>(), proptest::collection::vec(0..4_u8, 3)), 0..5),
        vacuous in prop_oneof![Just(None), Just(Some(Vacuous::Pass)), Just(Some(Vacuous::Fail))],
    ) {
        let (rule, matchers, is_exact) = rules().swap_remove(rule);
        let mut step = 0;
        let mut steps = Vec::new();
        let mut fits = Vec::new();
        let mut unknown = 0;
        for (starts, of) in events {
            step += u64::from(starts);
            steps.push(step);
            let of = of[..matchers].iter().map(|fit| match fit {
                0 => Fit::Yes,
                // A few unknown fits are enough: each doubles the number of worlds.
                1 if unknown < 6 => {
                    unknown += 1;
                    Fit::Perhaps
                }
                _ => Fit::No,
            });
            fits.push(of.collect::<Vec<Fit>>());
        }
        let ranks = steps.iter().map(|step| EventPlace::in_step(*step).rank).collect();
        let session = SessionFacts { steps: &ranks, is_timed: true, stopped_ms: 0 };
        let finding = decide(&rule, &found(&rule, &fits, &steps), &session).agree(vacuous);
        let worlds: Vec<&str> = choices(&fits)
            .iter()
            .map(|choice| word(&decide(&rule, &found(&rule, choice, &steps), &session).agree(vacuous)))
            .collect();
        let all_the_same = worlds.iter().all(|world| *world == worlds[0]);
        match word(&finding) {
            "unknown" => prop_assert!(!all_the_same || !is_exact, "{rule:?} {fits:?} {steps:?}: unknown, and every world is {}", worlds[0]),
            // A rule that is vacuous in one world and decided in another is unknown.
            name => prop_assert!(all_the_same && name == worlds[0], "{rule:?} {fits:?} {steps:?}: {name}, and the worlds are {worlds:?}"),
        }
    }
}

#[test]
fn without_doubt_a_rule_is_judged_by_its_definition() {
    // Each letter is a step with one event: a read, an edit or a deletion.
    for (rule, session, wanted) in [
        ("before: {first: {kind: read}, then: {kind: edit}}", "re", "holds"),
        ("before: {first: {kind: read}, then: {kind: edit}}", "er", "broken"),
        ("before: {first: {kind: read}, then: {kind: edit}}", "r", "vacuous"),
        ("response: {after: {kind: read}, then: {kind: edit}}", "rre", "holds"),
        ("response: {after: {kind: read}, then: {kind: edit}}", "rer", "broken"),
        ("never-after: {after: {kind: read}, never: {kind: edit}}", "er", "holds"),
        ("never-after: {after: {kind: read}, never: {kind: edit}}", "re", "broken"),
        ("immediately: {after: {kind: read}, then: {kind: edit}}", "rde", "broken"),
        ("within: {after: {kind: read}, then: {kind: edit}, steps: 2}", "rde", "holds"),
        ("within: {after: {kind: read}, then: {kind: edit}, steps: 1}", "rde", "broken"),
        ("absent-between: {from: {kind: read}, to: {kind: edit}, never: {kind: delete}}", "rde", "broken"),
        ("absent-between: {from: {kind: read}, to: {kind: edit}, never: {kind: delete}}", "rdre", "holds"),
        ("absent-between: {from: {kind: read}, to: {kind: edit}, never: {kind: delete}}", "er", "vacuous"),
    ] {
        let rule: Rule = serde_yaml::from_str(rule).unwrap();
        let kinds: &[char] = match &rule {
            Rule::Before(_) | Rule::Response(_) | Rule::NeverAfter(_) | Rule::Immediately(_) | Rule::Within(_) => {
                &['r', 'e']
            }
            _ => &['r', 'e', 'd'],
        };
        let fit = |event: char, kind: &char| if event == *kind { Fit::Yes } else { Fit::No };
        let fits: Vec<Vec<Fit>> =
            session.chars().map(|event| kinds.iter().map(|kind| fit(event, kind)).collect()).collect();
        let steps: Vec<u64> = (0..session.len() as u64).collect();
        let ranks = steps.iter().map(|step| EventPlace::in_step(*step).rank).collect();
        let at = SessionFacts { steps: &ranks, is_timed: true, stopped_ms: 0 };
        let finding = decide(&rule, &found(&rule, &fits, &steps), &at).agree(None);
        assert_eq!(word(&finding), wanted, "{rule:?} over {session}");
    }
}

#[test]
fn seconds_are_unknown_if_the_time_in_which_the_engine_was_stopped_decides() {
    // Between two steps are 900 ms.
    for (session, within, stopped_ms, wanted) in [
        ("rde", "seconds: 2s", 0, "holds"),
        ("rde", "seconds: 2s", 3000, "unknown"),
        ("rde", "seconds: 60s", 3000, "holds"),
        ("rdddde", "seconds: 2s", 2000, "broken"),
        ("rdddde", "seconds: 2s", 3000, "unknown"),
        ("rd", "seconds: 2s", 3000, "broken"),
        ("de", "seconds: 2s", 3000, "vacuous"),
        ("rde", "steps: 2", 3000, "holds"),
    ] {
        let text = format!("within: {{after: {{kind: read}}, then: {{kind: edit}}, {within}}}");
        let rule: Rule = serde_yaml::from_str(&text).unwrap();
        let fit = |event: char, kind: char| if event == kind { Fit::Yes } else { Fit::No };
        let fits: Vec<Vec<Fit>> = session.chars().map(|event| vec![fit(event, 'r'), fit(event, 'e')]).collect();
        let steps: Vec<u64> = (0..session.len() as u64).collect();
        let ranks = steps.iter().map(|step| EventPlace::in_step(*step).rank).collect();
        let at = SessionFacts { steps: &ranks, is_timed: true, stopped_ms };
        let finding = decide(&rule, &found(&rule, &fits, &steps), &at).agree(None);
        assert_eq!(word(&finding), wanted, "{text} over {session}, stopped for {stopped_ms} ms");
    }
}

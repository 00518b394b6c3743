//! A/A comparisons: how often the verdict sees what is not there, and what is. Both shares are printed
//! (`cargo test --test reports compare simulation -- --nocapture`).
#![allow(clippy::print_stdout, reason = "the shares are to be seen")]

use std::collections::BTreeMap;

use evals::internal::compare::effect::{EffectVerdict, effect};
use evals::internal::compare::join::join;
use evals::internal::compare::non_inferiority::not_worse_than;
use evals::internal::compare::power::power_of;
use evals::internal::compare::sequential::{LOOKS, level};
use evals::internal::compare::side::{Arm, CaseFacts, Side};
use evals::internal::fold::CaseTrials;
use evals::statistics::distributions::{t_above, t_quantile};
use evals::statistics::gates::GateVerdict;
use evals::statistics::random::Generator;
use evals::statistics::rates::wilson;

const ROUNDS: u64 = 1200;

/// Two arms on the same cases: the new one passes with a chance that is `better` higher.
struct Design {
    cases: usize,
    trials: u64,
    better: f64,
}

fn draw(generator: &mut Generator, design: &Design) -> Side {
    let mut side = Side { run: "simulated".into(), ..Side::default() };
    let arm = |column: &str| Arm { name: column.into(), column: column.into(), ..Arm::default() };
    side.arms = vec![arm("old"), arm("new")];
    for number in 0..design.cases {
        let id = format!("case-{number}");
        // How hard a case is differs from case to case; the rest of the scale leaves room for what is better.
        let chance = generator.unit() * (1.0 - design.better);
        let facts = CaseFacts {
            digest: String::new(),
            played: None,
            mixed: false,
            limits: serde_json::Value::Null,
            interaction: String::new(),
            tags: Vec::new(),
            kind: evals::internal::case::CaseKind::Capability,
            pass: evals::internal::verdict::PassTrials::All,
            critical: false,
            kept_from: None,
        };
        side.cases.insert(id.clone(), facts);
        for (arm, chance) in side.arms.iter_mut().zip([chance, chance + design.better]) {
            let mut trials = CaseTrials::default();
            for _ in 0..design.trials {
                let passed = generator.unit() < chance;
                trials.scores.push(f64::from(u8::from(passed)));
                *if passed { &mut trials.passed } else { &mut trials.failed } += 1;
            }
            arm.cases.insert(id.clone(), trials);
        }
    }
    side
}

fn verdict_of(side: &Side, level: f64) -> EffectVerdict {
    let joined = join((side, &side.arms[0]), (side, &side.arms[1]));
    EffectVerdict::of(effect(&joined.cases, level).unwrap().interval, 1e-9)
}

/// The share of rounds with each verdict.
fn shares(seed: u64, rounds: u32, design: &Design) -> BTreeMap<&'static str, f64> {
    let mut generator = Generator::seeded(seed);
    let mut shares = BTreeMap::new();
    for _ in 0..rounds {
        let side = draw(&mut generator, design);
        *shares.entry(verdict_of(&side, 0.95).word()).or_insert(0.0) += 1.0 / f64::from(rounds);
    }
    shares
}

#[test]
fn nothing_is_seldom_taken_for_something() {
    // With one trial a case few outcomes are possible, and the test is on the safe side of its level.
    for (seed, cases, trials, least) in [(11, 30, 4, 0.038), (12, 20, 1, 0.02), (13, 50, 1, 0.03), (14, 12, 8, 0.038)] {
        let shares = shares(seed, 4000, &Design { cases, trials, better: 0.0 });
        let of = |word| shares.get(word).copied().unwrap_or(0.0);
        let alarms = of("improved") + of("regressed");
        println!("A/A, {cases} cases x {trials} trials, seed {seed}: false alarms {alarms:.3} (nominal 0.050)");
        assert!((least..=0.06).contains(&alarms), "{cases} cases x {trials}: {alarms}");
    }
}

#[test]
fn what_is_there_is_found_as_often_as_the_power_says() {
    for (seed, trials) in [(21, 2), (22, 4), (23, 8)] {
        let design = Design { cases: 30, trials, better: 0.1 };
        let mut generator = Generator::seeded(seed);
        let (mut found, mut said) = (0.0, 0.0);
        for _ in 0..ROUNDS {
            let side = draw(&mut generator, &design);
            let joined = join((&side, &side.arms[0]), (&side, &side.arms[1]));
            let effect = effect(&joined.cases, 0.95).unwrap();
            found += f64::from(u8::from(EffectVerdict::of(effect.interval, 0.05) == EffectVerdict::Improved))
                / ROUNDS as f64;
            // What the report prints, turned into the power for what is really there: both by t.
            let smallest = power_of(&joined.cases, &effect, 0.05, 0.95).unwrap().smallest_effect.unwrap();
            let (edge, df) = (t_quantile(0.975, 29.0), 29.0);
            let error = smallest / (edge + t_quantile(0.8, df));
            said += t_above(edge - 0.1 / error, df) / ROUNDS as f64;
        }
        println!("+10 pp, 30 cases x {trials} trials, seed {seed}: found {found:.3}, the power says {said:.3}");
        assert!((found - said).abs() < 0.03, "{trials} trials: found {found}, said {said}");
    }
}

#[test]
fn the_gate_lets_a_loss_of_its_margin_pass_seldom() {
    let mut generator = Generator::seeded(31);
    let mut passed = 0;
    for _ in 0..ROUNDS {
        // The arms are exchanged: the new one is worse by just the margin.
        let side = draw(&mut generator, &Design { cases: 40, trials: 4, better: 0.1 });
        let joined = join((&side, &side.arms[1]), (&side, &side.arms[0]));
        let effect = effect(&joined.cases, 0.95).unwrap();
        let said = not_worse_than(&joined.cases, &effect, 0.1, 0.05);
        passed += u64::from(said.verdict == GateVerdict::Pass);
    }
    let share = wilson(passed, ROUNDS, 0.999).unwrap();
    println!("gate at a loss of its margin: passes {:.3} (nominal 0.050)", passed as f64 / ROUNDS as f64);
    assert!(share.contains(0.05), "{share:?}");
}

/// A side whose cases come out with so many of `trials` passed, before and now.
fn side_of(outcomes: &[(u64, u64)], trials: u64) -> Side {
    let mut side = draw(&mut Generator::seeded(1), &Design { cases: outcomes.len(), trials, better: 0.0 });
    for (number, (before, now)) in outcomes.iter().enumerate() {
        for (arm, passed) in side.arms.iter_mut().zip([*before, *now]) {
            let scores = (0..trials).map(|trial| f64::from(u8::from(trial < passed))).collect();
            let all = CaseTrials { scores, passed, failed: trials - passed, ..CaseTrials::default() };
            arm.cases.insert(format!("case-{number}"), all);
        }
    }
    side
}

/// Whether the gate passes, and its bound.
fn gate(outcomes: &[(u64, u64)], trials: u64, margin: f64) -> (bool, f64) {
    let side = side_of(outcomes, trials);
    let joined = join((&side, &side.arms[0]), (&side, &side.arms[1]));
    let said = not_worse_than(&joined.cases, &effect(&joined.cases, 0.95).unwrap(), margin, 0.05);
    (said.verdict == GateVerdict::Pass, said.lower.unwrap())
}

#[test]
fn a_few_losses_exclude_no_more_than_ties_do() {
    // 40 cases of 4 trials: without a difference the bound is -7.2 pp, and with a loss it is no better.
    let ties = gate(&[(4, 4); 40], 4, 0.05);
    let mut one = [(4, 4); 40];
    one[0] = (4, 3);
    assert!(!ties.0 && !gate(&one, 4, 0.05).0);
    assert!(gate(&one, 4, 0.05).1 <= ties.1);
    // A suite where a loss of 5 pp is there and seldom seen: each 20th case is lost altogether.
    let mut generator = Generator::seeded(32);
    let mut passed = 0;
    for _ in 0..ROUNDS {
        let mut lose =
            |_| if generator.unit() < 0.05 { (4, [0, 1][usize::from(generator.unit() < 0.1)]) } else { (4, 4) };
        let outcomes: Vec<(u64, u64)> = (0..80).map(&mut lose).collect();
        passed += u64::from(gate(&outcomes, 4, 0.05).0);
    }
    println!("gate at a rare loss of its margin: passes {:.3} (nominal 0.050)", passed as f64 / ROUNDS as f64);
    assert!(wilson(passed, ROUNDS, 0.999).unwrap().low <= 0.06, "{passed}");
}

proptest::proptest! {
    #![proptest_config(crate::properties::tries(1000))]
    /// A case that is lost, or no longer won, in the place of one that came out better never makes a gate pass.
    #[test]
    fn a_worse_result_never_passes_where_a_better_one_does_not(
        ties in 10..120usize,
        wins in 0..20usize,
        losses in 0..20usize,
        size in 1..4u64,
        margin in 0.01..0.3f64,
        step in 0..2usize,
    ) {
        // Differences of one size, of four trials. Of fewer than 10 cases none passes by so small a margin.
        let outcomes = |wins: usize, ties: usize, losses: usize| {
            let mut all = vec![(0, size); wins];
            all.extend(vec![(2, 2); ties]);
            all.extend(vec![(4, 4 - size); losses]);
            all
        };
        let worse = if step == 0 && wins > 0 { (wins - 1, ties + 1, losses) } else { (wins, ties - 1, losses + 1) };
        let (better, worse) = (outcomes(wins, ties, losses), outcomes(worse.0, worse.1, worse.2));
        let (better, worse) = (gate(&better, 4, margin), gate(&worse, 4, margin));
        proptest::prop_assert!(worse.1 <= better.1 + 1e-9, "{better:?} {worse:?}");
        proptest::prop_assert!(better.0 || !worse.0, "{better:?} {worse:?}");
    }
}

#[test]
fn looking_four_times_keeps_the_error_rate() {
    let mut generator = Generator::seeded(41);
    let (mut kept, mut naive) = (0.0, 0.0);
    let rounds = 600;
    for _ in 0..rounds {
        let whole = draw(&mut generator, &Design { cases: 20, trials: 16, better: 0.0 });
        let alarms = |level: f64| {
            LOOKS.iter().any(|look| {
                let mut side = whole.clone();
                for trials in side.arms.iter_mut().flat_map(|arm| arm.cases.values_mut()) {
                    trials.scores.truncate(*look as usize);
                }
                matches!(verdict_of(&side, level), EffectVerdict::Improved | EffectVerdict::Regressed)
            })
        };
        kept += f64::from(u8::from(alarms(level(LOOKS.len() as u32)))) / f64::from(rounds);
        naive += f64::from(u8::from(alarms(0.95))) / f64::from(rounds);
    }
    println!("A/A, four looks: false alarms {kept:.3} at the looks' level, {naive:.3} at 0.95 each (nominal 0.050)");
    assert!(kept <= 0.06, "{kept}");
    assert!(naive > 0.08, "what the looks' level is for: {naive}");
}

//! Whether intervals of a score hold what they promise, by simulation with a seed.

use evals::statistics::means::{self, IntervalMethod};
use evals::statistics::random::Generator;

const ROUNDS: u32 = 3000;

/// The share of rounds in which the interval holds the chance that a case passes, and that of Student's t beside it. Each
/// case passes with all of its trials or with none.
fn coverage(seed: u64, cases: usize, chance: f64) -> (f64, f64) {
    let mut generator = Generator::seeded(seed);
    let (mut held, mut by_t) = (0, 0);
    for _ in 0..ROUNDS {
        let scores: Vec<f64> = (0..cases).map(|_| f64::from(u8::from(generator.unit() < chance))).collect();
        let (interval, method) = means::score_interval(&scores, 0.95).unwrap();
        assert_eq!(method, IntervalMethod::Wilson, "each case is 0 or 1");
        held += u32::from(interval.contains(chance));
        let over_cases = means::of_cases(&scores, 0.95).unwrap();
        by_t += u32::from(over_cases.se > 0.0 && over_cases.t.contains(chance));
    }
    (f64::from(held) / f64::from(ROUNDS), f64::from(by_t) / f64::from(ROUNDS))
}

#[test]
fn the_interval_of_all_or_nothing_cases_holds_what_it_promises() {
    let mut worst_of_t: f64 = 1.0;
    for cases in [20, 50, 100] {
        for (seed, chance) in [(1, 0.5), (2, 0.8), (3, 0.88), (4, 0.91), (5, 0.94), (6, 0.97)] {
            let (held, by_t) = coverage(seed, cases, chance);
            assert!(held > 0.915, "{cases} cases at {chance}: {held}");
            if cases == 50 {
                worst_of_t = worst_of_t.min(by_t);
            }
        }
    }
    assert!(worst_of_t < 0.88, "what Wilson's is there for: {worst_of_t}");
}

#[test]
fn cases_between_all_and_nothing_are_by_t_and_hold_it_too() {
    let mut generator = Generator::seeded(7);
    let mut held = 0;
    for _ in 0..ROUNDS {
        // Chances of cases from 0.3 to 0.9, four trials each.
        let case = |_| {
            let chance = 0.3 + 0.6 * generator.unit();
            f64::from((0..4).map(|_| u8::from(generator.unit() < chance)).sum::<u8>()) / 4.0
        };
        let scores: Vec<f64> = (0..50).map(case).collect();
        let (interval, method) = means::score_interval(&scores, 0.95).unwrap();
        assert_eq!(method, IntervalMethod::T);
        held += u32::from(interval.contains(0.6));
    }
    let share = f64::from(held) / f64::from(ROUNDS);
    assert!((0.93..0.97).contains(&share), "{share}");
}

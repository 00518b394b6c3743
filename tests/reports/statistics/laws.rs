//! What holds for the statistics whatever the numbers are.

use evals::statistics::random::Generator;
use evals::statistics::{attempts, figures, gates, means, paired, permutation, rates, several, stopping, tables};
use proptest::prelude::*;

fn scores() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((0u8..=10).prop_map(|it| f64::from(it) / 10.0), 2..40)
}

fn pairs() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let score = || (0u8..=8).prop_map(|it| f64::from(it) / 8.0);
    prop::collection::vec((score(), score()), 2..30)
}

fn counted() -> impl Strategy<Value = (u64, u64)> {
    (1u64..60).prop_flat_map(|n| (Just(n), 0..=n))
}

proptest! {
    #[test]
    fn intervals_of_a_share_hold_the_share_and_mirror((n, x) in counted()) {
        let p = x as f64 / n as f64;
        for interval in [rates::wilson, rates::clopper_pearson, rates::wilson_corrected, rates::agresti_coull] {
            let (here, mirrored) = (interval(x, n, 0.95).unwrap(), interval(n - x, n, 0.95).unwrap());
            prop_assert!(here.low <= p + 1e-12 && p <= here.high + 1e-12);
            prop_assert!((here.low + mirrored.high - 1.0).abs() < 1e-9);
        }
        let wider = rates::wilson(x, n, 0.99).unwrap();
        let wilson = rates::wilson(x, n, 0.95).unwrap();
        prop_assert!(wider.low <= wilson.low && wilson.high <= wider.high);
    }

    #[test]
    fn clusters_of_one_are_cases(scores in scores()) {
        let clusters: Vec<Vec<f64>> = scores.iter().map(|score| vec![*score]).collect();
        let clustered = means::of_clusters(&clusters, 0.95).unwrap();
        let plain = means::of_cases(&scores, 0.95).unwrap();
        prop_assert!((clustered.se.unwrap() - plain.se).abs() < 1e-9);
        prop_assert!((clustered.t.unwrap().low - plain.t.low).abs() < 1e-9);
    }

    #[test]
    fn a_score_lies_in_its_interval(scores in scores()) {
        let (interval, _) = means::score_interval(&scores, 0.95).unwrap();
        let mean = means::mean(&scores).unwrap();
        prop_assert!(interval.low <= mean + 1e-12 && mean <= interval.high + 1e-12);
        prop_assert!(0.0 <= interval.low && interval.high <= 1.0);
        prop_assert!(interval.high > interval.low, "no interval is a point");
    }

    #[test]
    fn the_paired_error_is_the_unpaired_one_less_what_the_arms_share(pairs in pairs()) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let there = paired::difference(&a, &b, 0.95).unwrap();
        let back = paired::difference(&b, &a, 0.95).unwrap();
        prop_assert!((there.difference + back.difference).abs() < 1e-12);
        prop_assert_eq!(there.p.is_some(), back.p.is_some());
        if let Some(correlation) = there.correlation {
            let error = |it: &[f64]| (means::variance(it).unwrap() / it.len() as f64).sqrt();
            let shared = 2.0 * correlation * error(&a) * error(&b);
            prop_assert!((there.se.powi(2) - (there.se_unpaired.powi(2) - shared)).abs() < 1e-9);
        }
    }

    #[test]
    fn sign_flips_of_passes_are_mcnemars_exact_test(b in 0u64..12, c in 0u64..12, ties in 0usize..5) {
        let mut differences = vec![0.0; ties];
        differences.extend(std::iter::repeat_n(1.0, b as usize));
        differences.extend(std::iter::repeat_n(-1.0, c as usize));
        let flipped = permutation::sign_flip(&differences, &mut Generator::seeded(1));
        prop_assert!((flipped.two_sided - tables::mcnemar(b, c).exact).abs() < 1e-9);
    }

    #[test]
    fn mid_p_is_never_above_the_exact_p(b in 0u64..200, c in 0u64..200) {
        let there = tables::mcnemar(b, c);
        prop_assert!(there.mid_p <= there.exact);
        prop_assert!((0.0..=1.0).contains(&there.exact));
        prop_assert_eq!(there.exact, tables::mcnemar(c, b).exact);
    }

    #[test]
    fn bonett_and_price_never_collapse(n in 1u64..80, b in 0u64..40, c in 0u64..40) {
        prop_assume!(b + c <= n);
        let (delta, interval) = paired::bonett_price(b, c, n, 0.95).unwrap();
        prop_assert!(interval.high > interval.low);
        prop_assert!((-1.0..=1.0).contains(&delta));
    }

    #[test]
    fn fishers_sides_overlap_in_what_was_seen((n_a, x_a) in counted(), (n_b, x_b) in counted()) {
        let there = tables::fisher(x_a, n_a, x_b, n_b).unwrap();
        let back = tables::fisher(x_b, n_b, x_a, n_a).unwrap();
        prop_assert!((there.two_sided - back.two_sided).abs() < 1e-9);
        prop_assert!((there.less - back.greater).abs() < 1e-9);
        prop_assert!(there.less + there.greater >= 1.0 - 1e-9);
        let sum = tables::first_is_larger(x_a, n_a, x_b, n_b).unwrap()
            + tables::first_is_larger(x_b, n_b, x_a, n_a).unwrap();
        prop_assert!((sum - 1.0).abs() < 1e-7, "one of them is the larger: {}", sum);
        let newcombe = tables::newcombe(x_a, n_a, x_b, n_b, 0.95).unwrap();
        prop_assert!(newcombe.contains(x_a as f64 / n_a as f64 - x_b as f64 / n_b as f64));
    }

    #[test]
    fn adjusted_p_are_never_smaller_and_keep_their_order(p in prop::collection::vec(0.0f64..=1.0, 0..30)) {
        let bonferroni = several::bonferroni(&p);
        let holm = several::holm(&p);
        let hochberg = several::benjamini_hochberg(&p);
        for i in 0..p.len() {
            prop_assert!(p[i] <= hochberg[i] + 1e-12 && hochberg[i] <= holm[i] + 1e-12);
            prop_assert!(holm[i] <= bonferroni[i] + 1e-12 && bonferroni[i] <= 1.0);
            for j in 0..p.len() {
                if p[i] <= p[j] {
                    prop_assert!(holm[i] <= holm[j] && hochberg[i] <= hochberg[j]);
                }
            }
        }
    }

    #[test]
    fn more_attempts_help_and_more_demands_do_not((n, c) in counted(), k in 1u64..20) {
        let (at, hat) = (attempts::pass_at_k(n, c, k), attempts::pass_hat_k(n, c, k));
        prop_assert_eq!(at.is_some(), n >= k);
        prop_assert_eq!(hat.is_some(), n >= k);
        if let (Some(at), Some(hat)) = (at, hat) {
            let share = c as f64 / n as f64;
            prop_assert!(hat <= share + 1e-12 && share <= at + 1e-12);
            let biased = attempts::pass_hat_k_biased(n, c, k as u32).unwrap();
            prop_assert!(biased + 1e-12 >= hat, "the plug-in is too high");
            if k > 1 {
                prop_assert!(attempts::pass_at_k(n, c, k - 1).unwrap() <= at + 1e-12);
            }
        }
    }

    #[test]
    fn nothing_on_the_front_is_beaten(points in prop::collection::vec((0u8..9, 0u8..9), 1..12)) {
        let points: Vec<(f64, f64)> = points.into_iter().map(|(a, b)| (f64::from(a), f64::from(b))).collect();
        let beaten = figures::dominated_by(&points);
        prop_assert!(beaten.iter().any(Vec::is_empty));
        for (place, by) in beaten.iter().enumerate() {
            prop_assert!(by.iter().all(|other| !beaten[*other].contains(&place)));
        }
    }

    #[test]
    fn a_wider_margin_never_turns_a_pass_into_a_fail(delta in -1.0f64..1.0, se in 0.0f64..0.5, margin in 0.0f64..0.5) {
        let (lower, upper) = gates::bounds(delta, se, 0.05);
        let narrow = gates::not_worse(lower, upper, margin);
        let wide = gates::not_worse(lower, upper, margin + 0.1);
        prop_assert!(!(narrow == gates::GateVerdict::Pass && wide != gates::GateVerdict::Pass));
        prop_assert!(!(wide == gates::GateVerdict::Fail && narrow != gates::GateVerdict::Fail));
    }
}

proptest! {
    #![proptest_config(crate::properties::tries(48))]
    #[test]
    fn drawn_sign_flips_are_near_the_exact_ones(values in prop::collection::vec(-8i8..=8, 21..26), seed in any::<u64>()) {
        let differences: Vec<f64> = values.iter().map(|it| f64::from(*it)).collect();
        let drawn = permutation::sign_flip(&differences, &mut Generator::seeded(seed));
        prop_assert!(drawn.two_sided > 0.0 && drawn.two_sided <= 1.0);
        prop_assert!((drawn.greater + drawn.less) >= 1.0 - 0.05);
        let again = permutation::sign_flip(&differences, &mut Generator::seeded(seed));
        prop_assert_eq!(drawn, again);
    }
}

#[test]
fn pococks_bounds_are_the_published_ones() {
    bounds_are(&[(1, 1.960), (2, 2.178), (3, 2.289)]);
}

#[test]
#[ignore = "slow: seconds of numeric integration"]
fn pococks_bounds_of_more_looks_are_the_published_ones() {
    bounds_are(&[(4, 2.361), (5, 2.413)]);
}

fn bounds_are(published: &[(u32, f64)]) {
    for &(looks, published) in published {
        let bound = stopping::pocock(looks, 0.05);
        assert!((bound - published).abs() < 6e-4, "{looks} looks: {bound} and not {published}");
    }
}

#[test]
fn the_median_of_few_has_no_interval() {
    assert!(figures::median(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap().interval.is_none());
    assert!(figures::median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap().interval.is_some());
    assert!(figures::median(&[], 0.95).is_none());
}

#[test]
fn resampling_clusters_of_one_comes_near_every_resample() {
    let values = [1.0, 0.0, -1.0, 1.0, 0.5];
    let all = permutation::bootstrap_exhaustive(&values, 0.95).unwrap();
    let clusters: Vec<Vec<f64>> = values.iter().map(|it| vec![*it]).collect();
    let drawn = permutation::bootstrap_clusters(&clusters, 20_000, 0.95, &mut Generator::seeded(3)).unwrap();
    assert!((all.se - drawn.se).abs() < 0.01, "{} and {}", all.se, drawn.se);
}

#[test]
fn what_cannot_be_known_is_absent() {
    assert!(means::of_cases(&[0.5], 0.95).is_none());
    assert!(means::of_clusters(&[vec![1.0, 0.0]], 0.95).unwrap().se.is_none());
    assert!(means::components(&[vec![1.0], vec![0.0]]).is_none());
    assert!(paired::difference(&[1.0], &[0.0], 0.95).is_none());
    assert!(figures::cost_of_success(3.0, 0).is_none());
    assert!(attempts::pass_at_k(2, 2, 3).is_none());
    assert!(tables::cochran_mantel_haenszel(&[]).is_none());
    assert!(means::score_interval(&[], 0.95).is_none());
}

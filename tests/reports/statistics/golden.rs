//! Every entry of `golden.json`, by its name: what the statistics say, held to what scipy and statsmodels say.
//!
//! `EVALS_GOLDEN=FILE cargo test --test reports statistics` holds them to another file of the same kinds.

use std::collections::BTreeMap;

use evals::statistics::agreement::{self, Confusion, JudgedRate};
use evals::statistics::distributions as d;
use evals::statistics::gates::{self, GateVerdict};
use evals::statistics::power::{self, Spread};
use evals::statistics::random::Generator;
use evals::statistics::stopping::{self, Decision};
use evals::statistics::tables::{self, Table};
use evals::statistics::{Interval, attempts, consistency, figures, means, paired, permutation, rates, several};
use serde_json::{Value, json};

/// Kinds that are about grading; `tests/traces/graders` holds the graders to them.
const OF_GRADERS: [&str; 4] = ["trajectory", "trajectory_arg_superset_match", "agentevals_modes", "temporal"];

#[test]
fn every_golden_value_is_met() {
    let text = match std::env::var_os("EVALS_GOLDEN") {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => include_str!("golden.json").to_owned(),
    };
    let file: Value = serde_json::from_str(&text).unwrap();
    let entries = file["golden"].as_array().unwrap();
    let (mut wrong, mut met) = (Vec::new(), 0);
    for entry in entries {
        let kind = entry["fn"].as_str().unwrap();
        if OF_GRADERS.contains(&kind) {
            continue;
        }
        let found = answer(kind, &entry["input"], &entry["expect"]);
        for (key, expected) in entry["expect"].as_object().unwrap() {
            match same(expected, &found[key], entry["tol"].as_f64().unwrap()) {
                true => met += 1,
                false => wrong.push(format!("{} {key}: expected {expected}, found {}", entry["id"], found[key])),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(met > 0);
}

fn same(expected: &Value, found: &Value, tolerance: f64) -> bool {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(e, f)| same(e, f, tolerance))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().all(|(key, e)| found.get(key).is_some_and(|f| same(e, f, tolerance)))
        }
        (Value::Number(expected), Value::Number(found)) => {
            (expected.as_f64().unwrap() - found.as_f64().unwrap()).abs() <= tolerance
        }
        _ => expected == found,
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(numbers).collect()
}

fn counts(value: &Value) -> Vec<Vec<u64>> {
    value.as_array().unwrap().iter().map(|row| row.as_array().unwrap().iter().map(whole).collect()).collect()
}

fn pair(interval: Option<Interval>) -> Value {
    interval.map_or(Value::Null, |it| json!([it.low, it.high]))
}

fn word(verdict: GateVerdict) -> Value {
    serde_json::to_value(verdict).unwrap()
}

/// What the statistics say to a question of the file, with every key that its kind has.
fn answer(kind: &str, i: &Value, expect: &Value) -> Value {
    let level = i["level"].as_f64().unwrap_or(0.95);
    let alpha = i["alpha"].as_f64().unwrap_or(0.05);
    match kind {
        "clt_mean" => {
            let m = means::of_cases(&numbers(&i["scores"]), level).unwrap();
            json!({"mean": m.mean, "se": m.se, "z_ci": pair(Some(m.z)), "t_ci": pair(Some(m.t))})
        }
        "bernoulli_se" => json!({"se": means::bernoulli_se(number(&i["p"]), whole(&i["n"]))}),
        "unpaired_diff" => {
            let [a, sa, b, sb] = ["mean_a", "se_a", "mean_b", "se_b"].map(|key| number(&i[key]));
            let u = means::unpaired(a, sa, b, sb, 0.95);
            json!({"diff": u.difference, "se": u.se, "z": u.z, "p_two_sided": u.p, "ci": pair(Some(u.interval))})
        }
        "clustered_mean" => {
            let m = means::of_clusters(&rows(&i["clusters"]), level).unwrap();
            json!({"mean": m.mean, "n": m.n, "clusters": m.clusters, "se_naive": m.se_naive,
                "se_clustered": m.se_uncorrected, "se_clustered_corrected": m.se,
                "t_ci_df_c_minus_1": pair(m.t), "design_effect": m.design_effect})
        }
        "paired_diff" => {
            let p = paired::difference(&numbers(&i["a"]), &numbers(&i["b"]), level).unwrap();
            json!({"diff": p.difference, "se_paired": p.se, "se_unpaired": p.se_unpaired, "corr": p.correlation,
                "t": p.t, "df": p.df, "p_t": p.p, "z": p.t, "p_z": p.p_normal, "t_ci": pair(Some(p.interval))})
        }
        "variance_components" => {
            let c = means::components(&rows(&i["trials"])).unwrap();
            json!({"mean": c.mean, "var_of_case_means": c.of_means, "within_var": c.within,
                "between_var_unbiased": c.between, "se_of_mean": c.se, "icc1": c.icc,
                "design_effect": c.design_effect, "n_eff": c.effective_trials, "se_naive_wrong": c.se_pooled})
        }
        "resampling_factor" => {
            let left = means::variance_left(number(&i["var_x"]), number(&i["mean_sigma2"]), whole(&i["k"]) as u32);
            json!({"var_ratio_vs_k1": left, "reduction": 1.0 - left})
        }
        "required_cases" => {
            let (spread, trials) = spread_of(i);
            let n = power::cases_needed(number(&i["delta"]), spread, trials, alpha, number(&i["power"]));
            json!({"n_exact": n, "n_round": n.round(), "n_ceil": n.ceil()})
        }
        "mde" => {
            let (spread, trials) = spread_of(i);
            json!({"mde": power::smallest_effect(number(&i["n"]), spread, trials, alpha, number(&i["power"]))})
        }
        "mde_from_sd" => {
            let (sd, n) = (number(&i["sd_diff"]), number(&i["n"]));
            let (two, one) = power::smallest_effect_of_deviation(sd, n, alpha, number(&i["power"]));
            json!({"two_sided": two, "one_sided": one})
        }
        "required_n_from_sd" => {
            let (sd, delta) = (number(&i["sd_diff"]), number(&i["delta"]));
            let (two, one) = power::cases_of_deviation(sd, delta, alpha, number(&i["power"]));
            json!({"two_sided_ceil": two.ceil(), "one_sided_ceil": one.ceil()})
        }
        "mcnemar_required_n" => {
            let n = power::mcnemar_pairs(number(&i["p10"]), number(&i["p01"]), alpha, number(&i["power"])).unwrap();
            json!({"n": n, "n_ceil": n.ceil()})
        }
        "zero_failure_trials" => {
            let (n, three) = power::trials_without_failure(number(&i["p_fail"]), number(&i["confidence"]));
            json!({"n": n, "rule_of_three": three})
        }
        "pass_at_k" => json!({"pass_at_k": attempts::pass_at_k(whole(&i["n"]), whole(&i["c"]), whole(&i["k"]))}),
        "pass_hat_k" => json!({"pass_hat_k": attempts::pass_hat_k(whole(&i["n"]), whole(&i["c"]), whole(&i["k"]))}),
        "suite_pass_k" => suite(i, expect),
        "pass_hat_naive" => {
            let (n, c, k) = (whole(&i["n"]), whole(&i["c"]), whole(&i["k"]));
            json!({"unbiased": attempts::pass_hat_k(n, c, k), "naive_p_to_k": attempts::pass_hat_k_biased(n, c, k as u32)})
        }
        "iid_pass_hat" => {
            let (at, hat) = attempts::of_independent(number(&i["p"]), whole(&i["k"]) as u32);
            json!({"pass_hat": hat, "pass_at": at})
        }
        "binom_ci" => {
            let (x, n) = (whole(&i["x"]), whole(&i["n"]));
            json!({"wald_clipped": pair(rates::wald(x, n, level)), "wilson": pair(rates::wilson(x, n, level)),
                "wilson_cc": pair(rates::wilson_corrected(x, n, level)),
                "clopper_pearson": pair(rates::clopper_pearson(x, n, level)),
                "jeffreys_raw": pair(rates::beta_posterior(x, n, (0.5, 0.5), level)),
                "beta_1_1": pair(rates::beta_posterior(x, n, (1.0, 1.0), level)),
                "beta_1_1_mean": rates::beta_posterior_mean(x, n, (1.0, 1.0)),
                "agresti_coull_clipped": pair(rates::agresti_coull(x, n, level))})
        }
        "beta_prob_above" => {
            let prior = numbers(&i["prior"]);
            let (x, n) = (whole(&i["x"]), whole(&i["n"]));
            json!({"p": rates::beta_posterior_above(x, n, (prior[0], prior[1]), number(&i["threshold"]))})
        }
        "wilson_lower_one_sided" => {
            let (x, n) = (whole(&i["x"]), whole(&i["n"]));
            json!({"lower": rates::wilson_lower(x, n, alpha),
                "clopper_lower": rates::clopper_pearson_lower(x, n, alpha)})
        }
        "two_proportions" => {
            let [xa, na, xb, nb] = ["x_a", "n_a", "x_b", "n_b"].map(|key| whole(&i[key]));
            let f = tables::fisher(xa, na, xb, nb).unwrap();
            json!({"fisher_p_two_sided": f.two_sided, "fisher_p_a_less": f.less, "fisher_p_a_greater": f.greater,
                "newcombe_diff_ci": pair(tables::newcombe(xa, na, xb, nb, level)),
                "p_a_greater_b_beta11": tables::first_is_larger(xa, na, xb, nb)})
        }
        "mcnemar" => {
            let m = tables::mcnemar(whole(&i["b_a_only"]), whole(&i["c_b_only"]));
            json!({"p_exact": m.exact, "p_mid": m.mid_p, "chi2_cc": m.chi_squared_corrected,
                "p_chi2_cc": m.p_chi_squared_corrected, "chi2": m.chi_squared, "p_chi2": m.p_chi_squared,
                "p_theta_a_gt_b_dirichlet": m.first_is_better})
        }
        "mcnemar_floor" => {
            let floors = expect["floor_p"].as_object().unwrap().keys();
            let floor: BTreeMap<&String, f64> =
                floors.map(|n| (n, tables::mcnemar_floor(n.parse().unwrap()))).collect();
            json!({"min_discordant_two_sided": tables::mcnemar_needed(alpha), "floor_p": floor})
        }
        "sign_flip_exact" => {
            let s = permutation::sign_flip(&numbers(&i["diffs"]), &mut Generator::seeded(1));
            assert!(s.exact);
            json!({"p_two_sided": s.two_sided, "p_greater": s.greater, "p_less": s.less})
        }
        "wilcoxon_signed_rank" => {
            let (w, p) = permutation::signed_rank(&numbers(&i["diffs"])).unwrap();
            json!({"w": w, "p_two_sided": p})
        }
        "bootstrap_exhaustive" => {
            let b = permutation::bootstrap_exhaustive(&numbers(&i["diffs"]), level).unwrap();
            json!({"resamples": b.resamples, "percentile_type7": pair(Some(b.interval)), "boot_se": b.se,
                "frac_le_0": b.at_most_zero})
        }
        "mc_p" => json!({"p": permutation::p_of_draws(whole(&i["exceed"]), whole(&i["resamples"]))}),
        "adjust_holm" => adjusted(several::holm(&numbers(&i["p"])), alpha),
        "adjust_bh" => adjusted(several::benjamini_hochberg(&numbers(&i["p"])), alpha),
        "adjust_by" => adjusted(several::benjamini_yekutieli(&numbers(&i["p"])), alpha),
        "adjust_bonferroni" => adjusted(several::bonferroni(&numbers(&i["p"])), alpha),
        "cmh" => {
            let tables: Vec<Table> = i["tables"].as_array().unwrap().iter().map(counts).map(table).collect();
            let s = tables::cochran_mantel_haenszel(&tables).unwrap();
            json!({"chi2_no_cc": s.chi_squared, "p_no_cc": s.p, "chi2_cc": s.chi_squared_corrected,
                "p_cc": s.p_corrected, "mh_odds_ratio": s.odds_ratio})
        }
        "cohen_kappa" | "agreement" => {
            let table = counts(&i["table"]);
            let k = agreement::cohen(&table, level).unwrap();
            let c = Confusion {
                true_pass: table[0][0],
                false_pass: table[0][1],
                false_fail: table[1][0],
                true_fail: table[1][1],
            };
            let c = c.calibration();
            json!({"po": k.observed, "pe": k.expected, "kappa": k.kappa, "se": k.se, "ci": pair(k.interval),
                "gwet_ac1": agreement::gwet(&table), "tpr": c.true_pass_rate, "tnr": c.true_fail_rate})
        }
        "cohen_kappa_weighted" => {
            let table = crossed(&numbers(&i["a"]), &numbers(&i["b"]));
            json!({"unweighted": agreement::cohen(&table, 0.95).unwrap().kappa,
                "linear": agreement::weighted(&table, |apart| apart),
                "quadratic": agreement::weighted(&table, |apart| apart * apart)})
        }
        "fleiss_kappa" => json!({"kappa": agreement::fleiss(&counts(&i["counts"]))}),
        "judge_corrected_rate" => {
            let judged = JudgedRate {
                rate: number(&i["judge_pass_rate"]),
                n: number(&i["n"]),
                specificity: (number(&i["specificity"]), number(&i["m0_neg_labels"])),
                sensitivity: (number(&i["sensitivity"]), number(&i["m1_pos_labels"])),
            };
            let (theta, interval) = agreement::corrected_rate(judged, 1.0 - alpha).unzip();
            json!({"theta": theta.map(|it| it.clamp(0.0, 1.0)), "theta_unclipped": theta, "ci": pair(interval)})
        }
        "judge_calibration" => {
            let [tp, fp, tn, fne] = ["tp", "fp", "tn", "fn"].map(|key| whole(&i[key]));
            let judge = Confusion { true_pass: tp, false_pass: fp, true_fail: tn, false_fail: fne };
            let c = judge.calibration();
            json!({"tpr": c.true_pass_rate, "tnr": c.true_fail_rate, "precision": c.precision,
                "npv": c.negative_precision, "accuracy": c.accuracy, "balanced_accuracy": c.balanced_accuracy,
                "mcc": c.correlation, "kappa": agreement::cohen(&judge.table(), 0.95).unwrap().kappa,
                "tpr_wilson": pair(rates::wilson(tp, tp + fne, 0.95)),
                "tnr_wilson": pair(rates::wilson(tn, tn + fp, 0.95))})
        }
        "majority_vote" => {
            let p = number(&i["p"]);
            let judges = i["judges"].as_array().unwrap().iter().map(whole);
            json!({"p_correct": judges.map(|judges| agreement::majority(p, judges)).collect::<Vec<_>>()})
        }
        "sprt_bernoulli" => {
            let outcomes: Vec<bool> = numbers(&i["outcomes"]).iter().map(|it| *it > 0.5).collect();
            let [p0, p1, beta] = ["p0", "p1", "beta"].map(|key| number(&i[key]));
            let s = stopping::sprt(&outcomes, p0, p1, alpha, beta);
            let decision = match s.decision {
                Decision::AcceptH0 => "accept_h0",
                Decision::AcceptH1 => "accept_h1",
                Decision::Continue => "continue",
            };
            json!({"upper": s.upper, "lower": s.lower, "stopped_at": s.stopped_at, "decision": decision, "llr": s.ratio})
        }
        "e_value_paired" => {
            let (e, p) = stopping::e_value(whole(&i["b"]), whole(&i["c"]));
            json!({"e": e, "anytime_p": p})
        }
        "hoeffding_halfwidth" => {
            let (fixed, anytime) = stopping::hoeffding(whole(&i["n"]), alpha);
            json!({"fixed_n": fixed, "union_anytime": anytime})
        }
        "pocock" => {
            let looks = whole(&i["looks"]) as u32;
            let bound = stopping::pocock(looks, alpha);
            let naive = stopping::false_alarm(looks, d::normal_quantile(1.0 - alpha / 2.0));
            json!({"z": bound, "nominal_p": d::normal_two_sided(bound), "naive_type1": naive})
        }
        "paired_log_ratio" => {
            let r = paired::log_ratio(&numbers(&i["a"]), &numbers(&i["b"]), level).unwrap();
            json!({"geo_ratio_b_over_a": r.ratio, "ci": pair(r.interval), "p": r.p, "ratio_of_means": r.of_totals})
        }
        "median_ci" => {
            let values = numbers(&i["x"]);
            let m = figures::median(&values, level).unwrap();
            json!({"median": m.median, "ci": pair(m.interval.map(|it| it.0)), "coverage": m.interval.map(|it| it.1),
                "p90_type7": figures::quantile(&values, 0.9), "p95_type7": figures::quantile(&values, 0.95)})
        }
        "cost_per_success" => {
            let (cost, success) = (numbers(&i["cost"]), numbers(&i["success"]));
            let (total, successes) = (cost.iter().sum::<f64>(), success.iter().sum::<f64>());
            json!({"total_cost": total, "successes": successes, "cost_per_trial": total / cost.len() as f64,
                "cost_per_success": figures::cost_of_success(total, successes as u64)})
        }
        "pareto" => pareto(&i["points_cost_score"]),
        "flakiness" => {
            let f = attempts::flakiness(whole(&i["n"]), whole(&i["c"])).unwrap();
            json!({"p": f.share, "sample_var": f.variance, "pair_disagreement": f.disagreement,
                "entropy_bits": f.entropy, "flaky": f.flaky})
        }
        "noninferiority_gate" => {
            let alpha = number(&i["alpha_one_sided"]);
            let case = |c: &Value| {
                let (lower, upper) = gates::bounds(number(&c["delta"]), number(&c["se"]), alpha);
                (word(gates::not_worse(lower, upper, number(&c["margin"]))), lower, upper)
            };
            let all: Vec<(Value, f64, f64)> = i["cases"].as_array().unwrap().iter().map(case).collect();
            json!({"verdicts": all.iter().map(|it| it.0.clone()).collect::<Vec<_>>(),
                "lower_bounds": all.iter().map(|it| it.1).collect::<Vec<_>>(),
                "upper_bounds": all.iter().map(|it| it.2).collect::<Vec<_>>()})
        }
        "suite_delta" => {
            let (macro_a, micro_a) = means::macro_and_micro(&rows(&i["a"])).unwrap();
            let (macro_b, micro_b) = means::macro_and_micro(&rows(&i["b"])).unwrap();
            json!({"macro_a": macro_a, "macro_b": macro_b, "macro_delta": macro_b - macro_a,
                "micro_a": micro_a, "micro_b": micro_b})
        }
        "zero_regression_bound" => {
            let alpha = number(&i["alpha_one_sided"]);
            let case = |c: &Value| {
                gates::regressed_share(whole(&c["regressed"]), whole(&c["n"]), number(&c["margin"]), alpha).unwrap()
            };
            let all: Vec<(f64, GateVerdict)> = i["cases"].as_array().unwrap().iter().map(case).collect();
            json!({"upper_bounds": all.iter().map(|it| it.0).collect::<Vec<_>>(),
                "verdicts": all.iter().map(|it| word(it.1)).collect::<Vec<_>>()})
        }
        "paired_diff_ci_bonett_price" => {
            let (b, c, n) = (whole(&i["b_a_only"]), whole(&i["c_b_only"]), whole(&i["n"]));
            let (delta, interval) = paired::bonett_price(b, c, n, level).unwrap();
            json!({"delta": delta, "ci": pair(Some(interval))})
        }
        "hal_consistency" => hal(i),
        "distributions" => {
            let keys = expect.as_object().unwrap().keys();
            keys.map(|key| (key.clone(), json!(distribution(key)))).collect::<serde_json::Map<_, _>>().into()
        }
        other => panic!("golden.json has a kind that nothing here answers: {other}"),
    }
}

fn spread_of(i: &Value) -> (Spread, (f64, f64)) {
    let [between, within_a, within_b, a, b] =
        ["omega2", "sigma2_a", "sigma2_b", "k_a", "k_b"].map(|key| number(&i[key]));
    (Spread { between, within_a, within_b }, (a, b))
}

fn adjusted(p: Vec<f64>, alpha: f64) -> Value {
    let reject: Vec<bool> = p.iter().map(|p| *p <= alpha).collect();
    json!({"adjusted": p, "reject": reject})
}

fn table(rows: Vec<Vec<u64>>) -> Table {
    Table { a: (rows[0][0], rows[0][1]), b: (rows[1][0], rows[1][1]) }
}

/// How often each answer of the one met each of the other, in the order of the answers.
fn crossed(a: &[f64], b: &[f64]) -> Vec<Vec<u64>> {
    let mut answers: Vec<f64> = a.iter().chain(b).copied().collect();
    answers.sort_by(f64::total_cmp);
    answers.dedup();
    let place = |value: &f64| answers.iter().position(|it| it == value).unwrap();
    let mut table = vec![vec![0; answers.len()]; answers.len()];
    a.iter().zip(b).for_each(|(a, b)| table[place(a)][place(b)] += 1);
    table
}

/// pass@k and pass^k over a suite, for each `kN` and each `pass_hat_N_se_over_cases` that is asked for.
fn suite(i: &Value, expect: &Value) -> Value {
    let n = whole(&i["n"]);
    let cases: Vec<(u64, u64)> = i["correct"].as_array().unwrap().iter().map(|c| (n, whole(c))).collect();
    let at = |k: u64| attempts::over_cases(&cases, |n, c| attempts::pass_at_k(n, c, k)).unwrap();
    let hat = |k: u64| attempts::over_cases(&cases, |n, c| attempts::pass_hat_k(n, c, k)).unwrap();
    let said = |key: &str| {
        if let Some(k) = key.strip_prefix('k') {
            let k = k.parse().unwrap();
            return json!({"pass_at": at(k).mean, "pass_hat": hat(k).mean});
        }
        let k = |prefix| key.strip_prefix(prefix)?.strip_suffix("_se_over_cases")?.parse::<u64>().ok();
        json!(k("pass_hat_").map(|k| hat(k).se).or_else(|| k("pass_at_").map(|k| at(k).se)))
    };
    expect.as_object().unwrap().keys().map(|key| (key.clone(), said(key))).collect::<serde_json::Map<_, _>>().into()
}

fn pareto(points: &Value) -> Value {
    let points = points.as_object().unwrap();
    let names: Vec<&String> = points.keys().collect();
    let places: Vec<(f64, f64)> = points.values().map(numbers).map(|it| (it[0], it[1])).collect();
    let dominated = figures::dominated_by(&places);
    let front: Vec<&&String> = names.iter().zip(&dominated).filter(|(_, by)| by.is_empty()).map(|it| it.0).collect();
    let by: BTreeMap<&String, Vec<&String>> = names
        .iter()
        .zip(&dominated)
        .map(|(name, by)| (*name, by.iter().map(|place| names[*place]).collect()))
        .collect();
    json!({"front": front, "dominated_by": by})
}

fn hal(i: &Value) -> Value {
    let outcome = |row: &Vec<u64>| consistency::of_outcomes(row.iter().sum(), row.len() as u64);
    let outcomes: Vec<Option<f64>> = counts(&i["outcomes"]).iter().map(outcome).collect();
    let trials: Vec<Vec<&str>> = i["success_trajectories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| trial.as_array().unwrap().iter().map(|call| call.as_str().unwrap()).collect())
        .collect();
    json!({"c_out": outcomes, "c_traj_distribution": consistency::of_shares(&trials),
        "c_traj_sequence": consistency::of_sequences(&trials)})
}

/// `t_ppf_0.975_df4` and the like: a name, the arguments, what is asked.
fn distribution(key: &str) -> f64 {
    let parts: Vec<&str> = key.split('_').collect();
    let at = |place: usize| parts[place].trim_start_matches("df").parse::<f64>().unwrap();
    let count = |place: usize| parts[place].parse::<u64>().unwrap();
    match (parts[0], parts[1]) {
        ("norm", "ppf") => d::normal_quantile(at(2)),
        ("norm", "cdf") => d::normal_below(at(2)),
        ("norm", "sf") => d::normal_above(at(2)),
        ("t", "ppf") => d::t_quantile(at(2), at(3)),
        ("t", "sf") => d::t_above(at(2), at(3)),
        ("t", "cdf") => 1.0 - d::t_above(at(2), at(3)),
        ("beta", "ppf") => d::beta_quantile(at(2), at(3), at(4)),
        ("beta", "cdf") => d::beta_below(at(2), at(3), at(4)),
        ("beta", "sf") => d::beta_above(at(2), at(3), at(4)),
        ("binom", "cdf") => d::binomial_at_most(count(2), count(3), at(4)),
        ("binom", "pmf") => d::binomial_exactly(count(2), count(3), at(4)),
        ("chi2", "sf") => d::chi_squared_above(at(2), at(3)),
        ("hypergeom", "pmf") => d::hypergeometric_exactly(count(2), count(3), count(4), count(5)),
        _ => panic!("golden.json asks for a distribution that nothing here answers: {key}"),
    }
}

//! The page of a comparison, independent of its format: the order of its parts, the text of its lines, the
//! content of its tables.

use super::plain;
use super::words::{bounded, chance, p_value, percent, percent_interval, points, points_interval, ratio};
use crate::compare::axes::{AxisEffect, AxisNotCompared};
use crate::compare::behaviour::{Behaviour, Parting};
use crate::compare::cases::{CaseRow, ComparedFlag, Tried};
use crate::compare::changes::Change;
use crate::compare::coverage::{RestsOn, Trials};
use crate::compare::doubts::Doubt;
use crate::compare::effect::{EffectVerdict, Method};
use crate::compare::join::{Reason, SAME};
use crate::compare::per_trial::{PerTrial, TrialFigure};
use crate::compare::summary::{ArmSummary, RankedArm, Ranking};
use crate::compare::{Comparison, Gates, Pair, Ratio, gate};
use crate::report::page::{Block, Meaning, Page, Table};
use crate::report::text::{count, duration, money, plural};
use crate::rounding;
use crate::statistics::means::IntervalMethod;
use crate::text::some_of;

/// The maximum number of cases that are shown; the JSON form has all of them.
const MAX_CASES: usize = 20;
/// The maximum number of diverging traces that are shown.
const MAX_DIVERGENCES: usize = 8;
/// The maximum number of figures that are shown.
const MAX_FIGURES: usize = 12;
/// The maximum number of arms that are named below the table of arms.
const MAX_ARMS: usize = 8;

/// Builds the page: verdict, validity, arms, then each pair.
pub fn page(comparison: &Comparison, plus_minus: &str) -> Page {
    let mut blocks = Vec::new();
    if let Some(gates) = &comparison.gate {
        blocks.push(Block::Verdict(gates.verdict.into(), format!("gate: {}", gates.verdict.word())));
    }
    if let Some(conclusions) = &comparison.conclusions {
        blocks.push(Block::Heading("Does it help?".to_owned()));
        blocks.push(Block::Lines(conclusions.iter().map(|it| it.text.clone()).collect()));
        blocks.push(Block::Heading("Comparison".to_owned()));
    }
    for pair in &comparison.pairs {
        blocks.push(Block::Verdict(meaning(pair), plain::what_changed(pair)));
        blocks.push(Block::Lines(vec![plain::how_sure(pair), plain::what_it_cost(pair)]));
    }
    blocks.extend(comparison.gate.as_ref().map(gate_lines));
    if !comparison.pairs.is_empty() {
        blocks.push(Block::Heading("Statistics".to_owned()));
    }
    for pair in &comparison.pairs {
        blocks.push(verdict_line(pair));
        blocks.push(Block::Lines(second_lines(pair, comparison, plus_minus)));
    }
    for pair in comparison.not_compared.iter().flatten() {
        let cases = match pair.unpaired.len() {
            0 => String::new(),
            count => format!(", none of {}", plural(count, "case")),
        };
        let text = format!("{} vs {}: not compared{cases}: {}", pair.new, pair.old, pair.text);
        blocks.push(Block::Verdict(Meaning::Open, text));
    }
    blocks.push(arms(comparison));
    blocks.push(axes(comparison));
    let several = comparison.pairs.len() > 1;
    for pair in &comparison.pairs {
        if several {
            blocks.push(Block::Heading(format!("{} vs {}", pair.new, pair.old)));
        }
        blocks.extend(details(pair).into_iter().filter(|block| !block.is_empty()));
    }
    blocks.push(Block::Lines(vec![how_it_was_made(comparison)]));
    let everything = "`evals compare` in a terminal, or with `--format json`,".to_owned();
    Page { standing: None, blocks, everything }
}

/// Returns the effect of each axis of a matrix, and the reason if it is unknown.
fn axes(comparison: &Comparison) -> Block {
    let line = |axis: &AxisEffect| {
        let interval = axis.interval.map(|it| format!(" {}", points_interval(it))).unwrap_or_default();
        let test = axis.method.map(|method| format!(" ({})", method.test())).unwrap_or_default();
        let p = axis.p.map(|p| format!(", {}{test}", p_value(p))).unwrap_or_default();
        let holm = axis.p_holm.map(|p| format!(" ({} by Holm for all axes)", p_value(p))).unwrap_or_default();
        let averaged = if axis.pairs > 1 { ", averaged over the other axes" } else { "" };
        format!(
            "{}: {} instead of {}{averaged}: {}{interval}{p}{holm}, {}{}",
            axis.axis,
            axis.new,
            axis.old,
            points(axis.delta),
            plural(axis.cases, "case"),
            caveats(axis.doubts.as_deref())
        )
    };
    let unknown = |axis: &AxisNotCompared| {
        format!("{}: {} instead of {}: not compared: {}", axis.axis, axis.new, axis.old, axis.text)
    };
    let lines = comparison.axes.iter().flatten().map(line);
    Block::Lines(lines.chain(comparison.axes_not_compared.iter().flatten().map(unknown)).collect())
}

/// Returns the caveats about a figure as the end of its line.
fn caveats(doubts: Option<&[Doubt]>) -> String {
    let texts: Vec<&str> = doubts.unwrap_or_default().iter().map(|doubt| &*doubt.text).collect();
    if texts.is_empty() { String::new() } else { format!("; look before you trust it: {}", texts.join("; ")) }
}

fn meaning(pair: &Pair) -> Meaning {
    match pair.verdict {
        _ if pair.but().is_some() => Meaning::Open,
        EffectVerdict::Improved | EffectVerdict::Equivalent => Meaning::Good,
        EffectVerdict::Regressed => Meaning::Bad,
        EffectVerdict::Inconclusive => Meaning::Open,
    }
}

fn verdict_line(pair: &Pair) -> Block {
    let interval = pair.interval.map(|it| format!(" {}", points_interval(it))).unwrap_or_default();
    let test = match (pair.p, &pair.test) {
        (Some(p), Some(test)) => format!("{} ({test})", p_value(p)),
        _ => "no test is possible".to_owned(),
    };
    let trials = if pair.trials_old == pair.trials_new {
        format!("{} each", plural(pair.trials_new as usize, "trial"))
    } else {
        format!("{} and {} trials", pair.trials_old, pair.trials_new)
    };
    let text = format!(
        "{} vs {}: {}, {} after {}, {}{interval}, {test}, {}, {trials}",
        pair.new,
        pair.old,
        pair.verdict.word(),
        percent(pair.score_new),
        percent(pair.score_old),
        points(pair.delta),
        plural(pair.cases_compared, "case")
    );
    Block::Verdict(meaning(pair), text)
}

fn second_lines(pair: &Pair, comparison: &Comparison, plus_minus: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // Caveats that make the result invalid come first.
    let mut doubts: Vec<_> = pair.doubts.iter().collect();
    doubts.sort_by_key(|doubt| doubt.about.is_about_outcomes());
    let validity: Vec<&str> = doubts.iter().map(|doubt| &*doubt.text).collect();
    if validity.is_empty() {
        lines.push(match &comparison.vary {
            Some(vary) => format!(
                "valid: same cases and graders, and only what the experiment varies differs: {}",
                vary.join(", ")
            ),
            None => "valid: same cases, graders, limits, policies, harness and version in both".to_owned(),
        });
    } else {
        let same = pair.doubts.iter().all(|doubt| doubt.about.is_about_outcomes());
        let begin = if same { "valid, but" } else { "look before you trust it" };
        lines.push(format!("{begin}: {}", validity.join("; ")));
    }
    lines.push(rests_on(pair));
    if let Some(worst) = pair.delta_at_worst {
        lines.push(format!("with the errors of the new side as failures, the difference is {}", points(worst)));
    }
    // The line about the certainty says it if Fisher's test does not confirm the interval of a single case.
    if !pair.is_unconfirmed() {
        lines.extend(nothing_could(pair));
        lines.extend(at_the_border(pair));
    }
    let counts = pair.counts;
    let holm = pair.p_holm.map(|p| format!("; {} by Holm for all comparisons here", p_value(p))).unwrap_or_default();
    let how = if pair.sign_flip_exact { "exact" } else { "drawn" };
    let error = pair.se.map(|se| format!("; standard error {plus_minus}{} pp", rounding::percent_figure(se)));
    let error = error.unwrap_or_default();
    let correlation =
        pair.correlation.map(|it| format!("; correlation {}", rounding::coefficient(it))).unwrap_or_default();
    lines.push(format!(
        "wins {}, losses {}, ties {}; sign-flip {} ({how}){holm}{error}{correlation}; \
         probability that the new side is better: {}",
        counts.wins,
        counts.losses,
        counts.ties,
        p_value(pair.sign_flip_p),
        chance(pair.new_is_better)
    ));
    if let Some(method @ (Method::Newcombe | Method::Welch)) = pair.method {
        lines.push(format!("only one case ({}): the result holds for this case only", method.test()));
    } else if let Some(p) = pair.these_cases_p {
        let these = format!("for these very cases {} (Cochran-Mantel-Haenszel)", p_value(p));
        lines.push(format!("{these}; the verdict is about cases like these"));
    }
    let PerTrial { cost_usd, tokens, .. } = pair.per_trial;
    let ratios =
        [("cost", pair.cost, Some(cost_usd)), ("tokens", pair.tokens, Some(tokens)), ("time", pair.duration, None)];
    let text = |it: &Option<Ratio>, figure: Option<TrialFigure>| match it {
        Some(it) => Some(ratio(it, pair.cases_compared)),
        None => figure.filter(is_without_ratio).map(|_| "without a ratio (it is 0 on the old side)".to_owned()),
    };
    let ratios: Vec<String> =
        ratios.iter().filter_map(|(what, it, figure)| Some(format!("{what} {}", text(it, *figure)?))).collect();
    if !ratios.is_empty() {
        let note = pair.note_on_retries().filter(|_| pair.cost.is_some()).map(|note| format!("; {note}"));
        lines.push(format!("new over old: {}{}", ratios.join(", "), note.unwrap_or_default()));
    }
    if let Some(power) = &pair.power {
        let share = power.share_within_raw.map(|share| {
            if power.has_no_difference_between_cases() {
                return "; no difference between cases beyond chance was seen, so it is not known how far more trials of \
                        each case help"
                    .to_owned();
            }
            format!(
                "; {} of the squared error comes from differences between trials of the same case, which more trials \
                 reduce; only more cases reduce the rest",
                percent(share)
            )
        });
        lines.push(format!("{}{}", power.text, share.unwrap_or_default()));
    }
    if pair.is_at_higher_level() {
        let level = pair.level_text();
        lines.push(format!(
            "the run was evaluated several times (--trials auto), so the interval is at {level}; the \
            p-values are those of one evaluation"
        ));
    }
    if pair.verdict == EffectVerdict::Equivalent {
        lines.push(format!(
            "equivalent: the whole interval is within {plus_minus}{} pp",
            rounding::percent_figure(comparison.margin)
        ));
    }
    lines
}

/// Returns true if the old figure is known to be 0, and the new one to be above 0.
fn is_without_ratio(figure: &TrialFigure) -> bool {
    figure.old_unknown + figure.new_unknown == 0 && figure.old == Some(0.0) && figure.new.is_some_and(|new| new > 0.0)
}

/// Returns the text about the evidence of a comparison.
fn rests_on(pair: &Pair) -> String {
    let RestsOn { old, new, cases_of_old, .. } = pair.rests_on;
    let of = |trials: Trials, name: &str| {
        let share = trials.share().map(|share| format!(" ({})", percent(share))).unwrap_or_default();
        format!("{} of {} planned trials{share} of {name}", trials.completed, trials.planned)
    };
    format!(
        "based on {}, {}, and {} of {} of the old side",
        of(old, &pair.old),
        of(new, &pair.new),
        pair.cases_compared,
        plural(cases_of_old, "case")
    )
}

/// Returns a note if the interval and its p-value disagree: with few cases that differ, both are
/// approximations.
fn at_the_border(pair: &Pair) -> Option<String> {
    let (interval, p) = (pair.interval?, pair.p?);
    let excludes_none = interval.low > 0.0 || interval.high < 0.0;
    if pair.method == Some(Method::Newcombe) {
        // The verdict requires both; see `Pair::is_unconfirmed`.
        let shown = !excludes_none && p < 1.0 - pair.level;
        return shown.then(|| {
            format!(
                "Fisher's test shows a difference, but the interval does not: with {} and {} trials, the result is \
                 borderline, and no difference is reported",
                pair.trials_old, pair.trials_new
            )
        });
    }
    let text = match (excludes_none, p < 1.0 - pair.level) {
        (true, false) => "the interval shows a difference, but its test does not",
        (false, true) => "the test shows a difference, but the interval does not",
        _ => return None,
    };
    Some(format!(
        "{text}: with {} that differ, the result is borderline; the interval decides",
        plural(pair.counts.discordant() as usize, "case")
    ))
}

/// Returns the reason why the interval cannot exclude 0: no outcome of so few cases and trials could have been significant,
/// or too few cases differ.
fn nothing_could(pair: &Pair) -> Option<String> {
    let cases = plural(pair.cases_compared, "case");
    if !pair.could_be_significant {
        let (old, new) = (pair.trials_old, pair.trials_new);
        return Some(format!("with only {cases}, {old} and {new} trials, no outcome could have been significant"));
    }
    (!pair.enough_differ).then(|| match pair.counts.discordant() {
        0 => "with no differing case, no outcome could have been significant".to_owned(),
        _ if pair.method == Some(Method::ClopperPearson) => {
            format!("{cases} with the same difference show no spread: too few for the interval to exclude 0")
        }
        differ => {
            let differ = plural(differ, "differing case");
            format!("with only {differ}, no outcome could have been significant: the interval cannot exclude 0")
        }
    })
}

fn gate_lines(gates: &Gates) -> Block {
    let lines = gates.gates.iter().map(|it| {
        let p = it.p.map(|p| format!(" ({}, one-sided)", p_value(p))).unwrap_or_default();
        format!("{} {}: {}: {}{p}", gate_name(it.kind), it.verdict.word(), it.arm, it.text)
    });
    Block::Lines(lines.collect())
}

fn gate_name(kind: gate::Kind) -> &'static str {
    match kind {
        gate::Kind::Margin => "margin",
        gate::Kind::Critical => "critical cases",
        gate::Kind::FailUnder => "score",
        gate::Kind::MaxCost => "cost",
        gate::Kind::NoRegressions => "regressions",
        gate::Kind::Completed => "completed trials",
        gate::Kind::Cases => "cases",
    }
}

fn arms(comparison: &Comparison) -> Block {
    let arms = &comparison.arms;
    let mut blocks = vec![scores(arms), takings(arms)];
    let mut lines = Vec::new();
    lines.extend(interval_methods(arms));
    let legend = |ranking: &Ranking| format!("{}{}", legend_of_star(ranking, arms), caveats(ranking.doubts.as_deref()));
    lines.extend(comparison.ranking.as_ref().map(legend));
    let has_time = arms.iter().filter(|arm| arm.median_duration_ms.is_some());
    if let without @ 1.. = has_time.map(|arm| arm.duration_unknown).sum::<u64>() {
        lines.push(format!("median and p95 exclude {} without a time", plural(without as usize, "trial")));
    }
    let compared = |name: &str| comparison.pairs.iter().find(|pair| pair.old == name || pair.new == name);
    if arms.iter().any(|arm| compared(&arm.name).is_some_and(|pair| pair.cases_compared != arm.cases)) {
        lines.push(
            "a row covers all cases of its arm, but a difference covers only the cases that could be compared, so the \
             rows may differ by another amount"
                .to_owned(),
        );
    }
    let mut unpaired = comparison.pairs.iter().flat_map(|pair| &pair.unpaired);
    if unpaired.any(|case| case.reason == Reason::Quarantined) {
        lines.push(
            "a row leaves out the cases in quarantine, also their cost, tokens and time, which the report of the run \
             includes"
                .to_owned(),
        );
    }
    if !lines.is_empty() {
        blocks.push(Block::Lines(lines));
    }
    Block::Folded("arms".to_owned(), blocks)
}

/// Returns the methods of the arms' intervals, if they are not the same for all arms.
fn interval_methods(arms: &[ArmSummary]) -> Option<String> {
    let of = |method: IntervalMethod| {
        let names: Vec<&str> =
            arms.iter().filter(|arm| arm.interval_method == Some(method)).map(|arm| &*arm.name).collect();
        (!names.is_empty()).then(|| some_of(names, MAX_ARMS))
    };
    let (wilson, t) = (of(IntervalMethod::Wilson)?, of(IntervalMethod::T)?);
    Some(format!("the intervals have different methods: Wilson for {wilson}; Student's t for {t}"))
}

/// Returns the meaning of the star. If the arms are ranked over a part of their cases, the text has the figures of these cases,
/// because the rows are about others.
fn legend_of_star(ranking: &Ranking, arms: &[ArmSummary]) -> String {
    let ranked: Vec<&ArmSummary> = arms.iter().filter(|arm| arm.dominated_by.is_some()).collect();
    let others = if ranked.len() < arms.len() { "no other compared arm with known costs" } else { "no other arm" };
    let text = format!("* {others} scores as much for less, or more for as much (Pareto)");
    let is_whole = |arm: &&ArmSummary| arm.cases == ranking.cases && arm.errored + arm.ungraded == 0;
    if ranked.iter().all(is_whole) {
        return text;
    }
    let figures = |arm: &RankedArm| format!("{} {} for {}", arm.name, percent(arm.score), money(arm.cost_per_trial));
    let figures = some_of(ranking.arms.iter().map(figures), MAX_ARMS);
    format!("{text}, over the {} that all of them completed: {figures}", plural(ranking.cases, "case"))
}

/// Returns the text, or the sign for an unknown figure.
fn or_unknown(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

fn scores(arms: &[ArmSummary]) -> Block {
    let errors = arms.iter().any(|arm| arm.score_with_errors.is_some());
    let mut head = vec!["", "score", "95 %"];
    if errors {
        head.push("errors as 0");
    }
    head.extend(["pass@k", "pass^k", "k", "errored", "completed"]);
    let rows = arms.iter().map(|arm| {
        let first = arm.dominated_by.as_ref().is_some_and(Vec::is_empty);
        let name = format!("{}{}", arm.name, if first { " *" } else { "" });
        let mut row = vec![name, or_unknown(arm.score.map(percent)), or_unknown(arm.interval.map(percent_interval))];
        if errors {
            row.push(or_unknown(arm.score_with_errors.map(percent)));
        }
        row.extend([
            or_unknown(arm.pass_at_k.map(percent)),
            or_unknown(arm.pass_hat_k.map(percent)),
            or_unknown(arm.k.map(|k| k.to_string())),
            arm.errored.to_string(),
            or_unknown(arm.completion.map(percent)),
        ]);
        row
    });
    let rows = rows.collect();
    table(head, &["pass^k", "pass@k", "k", "errors as 0", "completed", "errored", "95 %"], rows)
}

fn takings(arms: &[ArmSummary]) -> Block {
    let head = vec!["", "cost/trial", "cost/success", "tokens", "median", "p95", "calls"];
    let time = |ms: Option<f64>| or_unknown(ms.map(|ms| duration(ms.round() as u64)));
    let rows = arms.iter().map(|arm| {
        vec![
            arm.name.clone(),
            or_unknown(arm.cost_per_trial().map(|cost| bounded(cost, money))),
            or_unknown(arm.cost_per_success().map(|cost| bounded(cost, money))),
            or_unknown(arm.tokens_per_trial().map(|tokens| bounded(tokens, |it| count(it.round() as u64)))),
            time(arm.median_duration_ms),
            time(arm.p95_duration_ms),
            or_unknown(arm.calls_per_trial.map(calls)),
        ]
    });
    let rows = rows.collect();
    table(head, &["p95", "calls", "cost/success", "tokens", "median"], rows)
}

/// Returns a number of calls with one decimal, or as many digits as the table of behaviour has if it is below 0.1: a small
/// number must not be shown as 0.
fn calls(number: f64) -> String {
    if number == 0.0 || number >= 0.1 { format!("{number:.1}") } else { figure(number) }
}

/// Returns a table whose first column has names, and the others figures or flags. A narrow terminal leaves out the columns that
/// `spare` names, tried in this order.
fn table(head: Vec<&str>, spare: &[&str], rows: Vec<Vec<String>>) -> Block {
    let right = (1..head.len()).filter(|column| head[*column] != "flags").collect::<Vec<_>>();
    let spare: Vec<usize> =
        spare.iter().filter_map(|name| head.iter().skip(1).position(|head| head == name)).map(|at| at + 1).collect();
    let mut table = Table::new(head).right(right).spare(spare).whole_figures();
    rows.into_iter().for_each(|row| table.row(row));
    Block::Table(table)
}

fn details(pair: &Pair) -> Vec<Block> {
    let mut blocks = vec![cases(pair)];
    if !pair.unpaired.is_empty() {
        let lines = pair.unpaired.iter().take(MAX_CASES).map(|it| format!("{}: {}", it.case, it.text));
        let mut lines: Vec<String> = lines.collect();
        if pair.unpaired.len() > lines.len() {
            lines.push(format!("and {} more; --format json has all", pair.unpaired.len() - lines.len()));
        }
        let title = format!("{} left out", plural(pair.unpaired.len(), "case"));
        blocks.push(Block::Folded(title, vec![Block::Lines(lines)]));
    }
    if let Some(behaviour) = &pair.behaviour {
        blocks.extend(behaves(behaviour));
    }
    if !pair.slices.is_empty() {
        let rows = pair.slices.iter().map(|slice| {
            let interval = slice.interval.map(points_interval).unwrap_or_default();
            vec![slice.tag.clone(), slice.cases.to_string(), points(slice.delta), interval]
        });
        let level = pair.level_text();
        let head = vec!["tag", "cases", "difference", level.as_str()];
        let table = table(head, &["cases", level.as_str()], rows.collect());
        let title = "by tag: exploratory, not adjusted for the number of tags".to_owned();
        blocks.push(Block::Folded(title, vec![table]));
    }
    blocks
}

/// Returns the passed trials of a case, and its score if trials have a partial score: `3/4`, `3/4 (0.88)`.
fn tried(trials: &Tried) -> String {
    let Tried { passed, judged, score } = *trials;
    let is_partial = judged > 0 && (score - passed as f64 / judged as f64).abs() > SAME;
    let score = if is_partial { format!(" ({})", rounding::share(score)) } else { String::new() };
    format!("{passed}/{judged}{score}")
}

fn cases(pair: &Pair) -> Block {
    let differ: Vec<&CaseRow> = pair.cases.iter().filter(|row| row.delta != 0.0).collect();
    let row = |row: &&CaseRow| {
        let mut flags: Vec<&str> = row.flags.iter().map(|flag| flag.word()).collect();
        if row.critical {
            flags.push("critical");
        }
        vec![
            row.case.clone(),
            tried(&row.old),
            tried(&row.new),
            points(row.delta),
            or_unknown(row.p_adjusted.map(|p| rounding::p_figure(p, 3))),
            flags.join(", "),
        ]
    };
    // Losses first; if there are too many of them, gains are only in the JSON form.
    let rows: Vec<Vec<String>> = differ.iter().take(MAX_CASES).map(row).collect();
    let mut lines = Vec::new();
    if differ.len() > rows.len() {
        lines.push(format!("and {} more that differ; --format json has all", differ.len() - rows.len()));
    }
    let same: Vec<&CaseRow> = pair.cases.iter().filter(|row| row.delta == 0.0).collect();
    if !same.is_empty() {
        lines.push(format!("{} had the same result", plural(same.len(), "case")));
    }
    for (flag, what) in [
        (ComparedFlag::Flaky, "flaky without a difference"),
        (ComparedFlag::Saturated, "saturated, every trial of both sides passes"),
        (ComparedFlag::Broken, "possibly broken, no trial of either side passes"),
    ] {
        let names: Vec<String> =
            same.iter().filter(|row| row.flags.contains(&flag)).map(|row| row.case.clone()).collect();
        if !names.is_empty() {
            lines.push(format!("{what}: {}", some_of(&names, 5)));
        }
    }
    let mut blocks = Vec::new();
    let title = if rows.is_empty() { "cases" } else { "cases, worst loss first" };
    if !rows.is_empty() {
        let head = vec!["case", "old", "new", "difference", "adjusted p", "flags"];
        blocks.push(table(head, &["adjusted p", "old", "new"], rows));
    }
    blocks.push(Block::Lines(lines));
    Block::Folded(title.to_owned(), blocks)
}

fn behaves(behaviour: &Behaviour) -> Vec<Block> {
    let mut blocks = Vec::new();
    let changes: Vec<&Change> = behaviour.changes.iter().filter(|it| !it.is_ratio).collect();
    let rows = changes.iter().take(MAX_FIGURES).map(|it| {
        let interval = it.interval.map(|it| format!("[{}, {}]", figure(it.low), figure(it.high)));
        vec![
            it.figure.clone(),
            figure(it.old),
            figure(it.new),
            format!("{:+}", rounded(it.delta)),
            or_unknown(interval),
            or_unknown(it.p_holm.map(|p| p_value(p).replace("p = ", "").replace("p ", ""))),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        let head = vec!["per trial", "old", "new", "difference", "95 %", "p (Holm)"];
        blocks.push(table(head, &["95 %", "p (Holm)", "difference"], rows));
    }
    let mut lines = Vec::new();
    if let more @ 1.. = changes.len().saturating_sub(MAX_FIGURES) {
        lines.push(format!("and {} that differ; --format json has all", plural(more, "more figure")));
    }
    lines.extend(behaviour.partings.iter().take(MAX_DIVERGENCES).map(parts));
    if let more @ 1.. = behaviour.partings.len().saturating_sub(MAX_DIVERGENCES) {
        lines.push(format!("and {} in which typical traces differ", plural(more, "more case")));
    }
    lines.extend(behaviour.broken_by_one.iter().map(|it| {
        let (arm, trials) = if it.old > 0 { ("old", it.old) } else { ("new", it.new) };
        let rule = it.rule.as_ref().map(|rule| format!(": {rule}")).unwrap_or_default();
        format!("only the {arm} one fails `{}` ({}{rule}), in {}", it.name, it.grader, plural(trials as usize, "trial"))
    }));
    blocks.push(Block::Lines(lines));
    vec![Block::Folded("where behaviour differs".to_owned(), blocks)]
}

/// Rounds a figure to a useful number of digits.
fn rounded(value: f64) -> f64 {
    let places = if value.abs() >= 100.0 {
        1.0
    } else if value.abs() >= 1.0 {
        100.0
    } else if value.abs() >= 0.001 || value == 0.0 {
        10_000.0
    } else {
        // Two digits: a small cost must not be shown as 0.
        10f64.powf(1.0 - value.abs().log10().floor())
    };
    (value * places).round() / places
}

fn figure(value: f64) -> String {
    rounded(value).to_string()
}

fn parts(parting: &Parting) -> String {
    let does = |step: &Option<String>| step.clone().unwrap_or_else(|| "has ended".to_owned());
    format!(
        "{}: traces differ from step {}: old {}, new {}",
        parting.case,
        parting.step,
        does(&parting.old),
        does(&parting.new)
    )
}

fn how_it_was_made(comparison: &Comparison) -> String {
    let errors = if comparison.errors_as_failures {
        "count as failures where the agent crashed or broke the protocol"
    } else {
        "are in no score"
    };
    format!(
        "each case counts once; differences are new minus old, and up to {} pp count as none (--margin); errors \
         {errors}; seed {}",
        rounding::percent_figure(comparison.margin),
        comparison.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_figure_is_not_shown_as_0() {
        assert_eq!([0.0, 123.4, 1.234, 0.25, 0.000_012_34].map(figure), ["0", "123", "1.23", "0.25", "0.000012"]);
        assert_eq!([0.0, 3.0, 12.34, 0.1, 1.0 / 60.0].map(calls), ["0.0", "3.0", "12.3", "0.1", "0.0167"]);
    }
}

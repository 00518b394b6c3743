//! Totals of which a part is known to be missing: they can exceed a limit, and never show that it was kept.

use serde_json::{Value, json};

use super::doubts::acp;
use super::{Enough, Fail, Pass, Trial, Ungraded, check};

/// Two turns of which only the second one counts cached tokens: at least 20,300 tokens, 200 of them input.
const CACHED: &str = r#"
{"seq":0,"at_ms":0,"type":"message","role":"user","text":"one"}
{"seq":1,"at_ms":1,"type":"usage","scope":"turn","input_tokens":100,"output_tokens":50,"cost_usd":0.5}
{"seq":2,"at_ms":2,"type":"message","role":"agent","text":"1"}
{"seq":3,"at_ms":3,"type":"message","role":"user","text":"two"}
{"seq":4,"at_ms":4,"type":"usage","scope":"turn","input_tokens":100,"output_tokens":50,"cache_read_tokens":20000}
{"seq":5,"at_ms":5,"type":"message","role":"agent","text":"2"}
{"seq":6,"at_ms":6,"type":"stop","reason":"end_turn","output":"2"}
"#;

#[test]
fn a_lower_bound_exceeds_a_budget_and_never_keeps_it() {
    check(
        &Trial::of(CACHED),
        &[
            ("budget: {tokens: 1000}", Fail(0.0, &[4], "tokens >= 20300, above 1000")),
            ("budget: {tokens: 30000}", Ungraded("tokens >= 20300, within 30000 so far")),
            ("budget: {tokens: 20299}", Fail(0.0, &[4], "above 20299")),
            ("budget: {tokens: 20300}", Ungraded("tokens >= 20300")),
            ("budget: {input-tokens: 200}", Pass(&[])),
            ("budget: {cost-usd: 0.4}", Fail(0.0, &[4], "it cost >= 0.5 USD, above 0.4")),
            ("budget: {cost-usd: 0.6}", Ungraded("it cost >= 0.5 USD")),
            // A known violation fails, whatever else is unknown.
            ("budget: {cost-usd: 0.6, turns: 1}", Fail(0.0, &[3], "turns 2, above 1")),
        ],
    );
}

#[test]
fn a_lower_bound_on_a_ramp_holds_at_most_a_share() {
    check(
        &Trial::of(CACHED),
        &[
            ("budget: {tokens: {full: 20000, none: 21000}}", Fail(0.0, &[4], ">= 20300")),
            // The true figure may be beyond the ramp, or not.
            ("budget: {tokens: {full: 20000, none: 21000}, min: 0.5}", Ungraded(">= 20300")),
            ("budget: {tokens: {full: 20000, none: 21000}, min: 0.8}", Fail(0.0, &[4], ">= 20300")),
            ("budget: {tokens: {full: 20000, none: 21000}, turns: 2, min: 0.5}", Enough(0.5, &[4])),
        ],
    );
}

#[test]
fn counts_are_compared_exactly() {
    let trial = Trial::of(
        r#"{"seq":0,"type":"usage","scope":"session","total_tokens":1234567890124}
{"seq":1,"type":"stop","reason":"end_turn"}"#,
    );
    check(
        &trial,
        &[
            ("budget: {tokens: 1234567890123}", Fail(0.0, &[0], "above 1234567890123")),
            ("budget: {tokens: 1234567890124}", Pass(&[])),
        ],
    );
}

#[test]
fn an_expression_over_a_lower_bound_is_judged_where_every_larger_figure_gives_the_same() {
    check(
        &Trial::of(CACHED),
        &[
            ("expr: {cel: 'usage.total_tokens <= 1000'}", Fail(0.0, &[], "is false")),
            ("expr: {cel: 'usage.total_tokens <= 30000'}", Ungraded("`usage.total_tokens` (>= 20300)")),
            ("expr: {cel: 'usage.total_tokens > 1000'}", Pass(&[])),
            ("expr: {cel: '1000 < usage.total_tokens'}", Pass(&[])),
            ("expr: {cel: 'usage.total_tokens > 30000'}", Ungraded("lower bound")),
            ("expr: {cel: 'usage.total_tokens == 20300'}", Ungraded("lower bound")),
            ("expr: {cel: 'usage.total_tokens != 5'}", Ungraded("lower bound")),
            ("expr: {cel: '!(usage.total_tokens > 1000)'}", Fail(0.0, &[], "is false")),
            ("expr: {cel: 'metrics.cost_usd * 2.0 + 1.0 < 1.5'}", Fail(0.0, &[], "is false")),
            ("expr: {cel: 'metrics.cost_usd < 0.6'}", Ungraded("`metrics.cost_usd` (>= 0.5)")),
            ("expr: {cel: '100.0 - metrics.cost_usd < 1.0'}", Ungraded("lower bound")),
            // What an expression does not hang on stays out of it.
            ("expr: {cel: 'usage.input_tokens == 200'}", Pass(&[])),
            ("expr: {cel: 'usage.total_tokens < 30000 && size(messages) == 1'}", Fail(0.0, &[], "is false")),
            ("expr: {cel: 'usage.total_tokens < 30000 || size(messages) == 4'}", Pass(&[])),
            ("expr: {cel: '!has(usage.cost_usd) || usage.cost_usd <= 0.4'}", Fail(0.0, &[], "is false")),
            ("expr: {cel: '!has(usage.cost_usd) || usage.cost_usd <= 1.0'}", Ungraded("lower bound")),
            ("expr: {cel: 'usage.total_tokens >= 10 && usage.total_tokens <= 100'}", Fail(0.0, &[], "is false")),
            // Neither end tells of what lies between.
            ("expr: {cel: 'usage.total_tokens >= 25000 && usage.total_tokens <= 26000'}", Ungraded("lower bound")),
            ("expr: {cel: '[1, 2].exists(n, usage.total_tokens == 20300 + n)'}", Ungraded("lower bound")),
            ("expr: {cel: 'usage.total_tokens > 1000 ? 0.5 : 1.0', min: 0.5}", Ungraded("lower bound")),
            ("expr: {cel: \"'total_tokens' in usage.lower_bounds\"}", Pass(&[])),
        ],
    );
}

#[test]
fn a_total_below_its_parts_is_not_all() {
    let parts = r#""input_tokens":10,"output_tokens":10,"cache_read_tokens":1000"#;
    for scope in ["turn", "session"] {
        let trial = |total: u64| {
            Trial::of(&format!(
                r#"{{"seq":0,"type":"usage","scope":"{scope}",{parts},"total_tokens":{total}}}
{{"seq":1,"type":"stop","reason":"end_turn"}}"#
            ))
        };
        check(&trial(20), &[("budget: {tokens: 500}", Fail(0.0, &[0], "tokens >= 1020, above 500"))]);
        check(&trial(20), &[("budget: {tokens: 2000}", Ungraded("tokens >= 1020"))]);
        check(&trial(1020), &[("budget: {tokens: 1020}", Pass(&[]))]);
    }
}

#[test]
fn a_cost_that_cannot_be_read_leaves_the_earlier_one_as_a_lower_bound() {
    let cost = |cost: Value| {
        let update = json!({"sessionUpdate": "usage_update", "used": 1, "size": 1, "cost": cost});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
    };
    let first = cost(json!({"amount": 0.1, "currency": "USD"}));
    let budget = "budget: {cost-usd: 0.5}";
    check(&acp(std::slice::from_ref(&first)), &[(budget, Pass(&[2]))]);
    for later in [json!({"amount": "9", "currency": "USD"}), json!({"amount": 9, "currency": "EUR"}), json!(9)] {
        let trial = acp(&[first.clone(), cost(later)]);
        check(&trial, &[(budget, Ungraded("it cost >= 0.1 USD")), ("budget: {cost-usd: 0.05}", Fail(0.0, &[4], ""))]);
    }
}

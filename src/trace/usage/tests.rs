//! Tests of sums over usage reports.

use std::io::Cursor;

use super::*;
use crate::trace::jsonl::Reader;

const PROMPT: &str = r#"{"type":"message","role":"user","text":"go"}"#;
const SPEECH: &str = r#"{"type":"message","role":"agent","text":"done"}"#;
const CALL: &str = r#"{"type":"tool_call","call":"c","step":0,"kind":"read"}"#;
const RESULT: &str = r#"{"type":"tool_result","call":"c","status":"ok"}"#;
const STOP: &str = r#"{"type":"stop","reason":"end_turn"}"#;

fn usage(scope: &str, figures: &str) -> String {
    format!(r#"{{"type":"usage","scope":"{scope}",{figures}}}"#)
}

fn turn(figures: &str) -> String {
    usage("turn", figures)
}

/// Returns the total of a trace with these events.
fn total(events: &[&str]) -> UsageTotal {
    let header =
        r#"{"type":"trace","version":1,"adapter":"acp","capabilities":{"tracing":true,"interaction":true},"model":{}}"#;
    let numbered = events.iter().enumerate().map(|(seq, event)| {
        let rest = event.strip_prefix('{').unwrap();
        format!(r#"{{"seq":{seq},"at_ms":{seq},{rest}"#)
    });
    let text = [header.to_owned()].into_iter().chain(numbered).collect::<Vec<_>>().join("\n");
    let mut total = UsageTotal::default();
    for event in Reader::new(Cursor::new(text)).unwrap() {
        total.event(&event.unwrap());
    }
    total
}

use Amount::{AtLeast, Exact};

const PARTS: &str = r#""input_tokens":100,"output_tokens":50"#;

#[test]
fn a_cache_that_only_some_reports_count_makes_a_lower_bound() {
    let (first, second) = (turn(PARTS), turn(&format!(r#"{PARTS},"cache_read_tokens":20000"#)));
    for order in [[&*first, &*second], [&*second, &*first]] {
        let total = total(&order);
        assert_eq!(total.tokens(), Some(AtLeast(20_300)));
        assert_eq!((total.input_tokens(), total.cache_read_tokens()), (Some(Exact(200)), Some(AtLeast(20_000))));
    }
    // If an agent never counts cached tokens, none are assumed; a total includes them.
    assert_eq!(total(&[&first, &first]).tokens(), Some(Exact(300)));
    let whole = turn(r#""total_tokens":150"#);
    assert_eq!(total(&[&whole, &second]).tokens(), Some(Exact(20_300)));
}

#[test]
fn a_figure_that_one_report_lacks_is_a_lower_bound() {
    let total = total(&[&turn(PARTS), &turn(r#""output_tokens":5,"cost_usd":0.5"#)]);
    assert_eq!((total.input_tokens(), total.output_tokens()), (Some(AtLeast(100)), Some(Exact(55))));
    assert_eq!((total.tokens(), total.cost_usd()), (Some(AtLeast(155)), Some(AtLeast(0.5))));
}

#[test]
fn a_turn_without_a_report_makes_a_lower_bound() {
    let report = turn(PARTS);
    assert_eq!(total(&[PROMPT, &report, SPEECH, PROMPT, &report, STOP]).tokens(), Some(Exact(300)));
    for missing in [
        &[PROMPT, SPEECH, PROMPT, &*report, STOP][..],
        &[PROMPT, SPEECH, &*report, PROMPT, SPEECH, STOP],
        &[PROMPT, &*report, SPEECH, PROMPT, SPEECH, PROMPT, &*report, STOP],
    ] {
        let total = total(missing);
        assert!(total.tokens().is_some_and(|tokens| !tokens.is_exact()), "{missing:?}");
        assert!(total.input_tokens().is_some_and(|tokens| !tokens.is_exact()), "{missing:?}");
    }
    assert_eq!(total(&[PROMPT, SPEECH, STOP]).tokens(), None);
}

#[test]
fn a_session_figure_holds_up_to_its_turn() {
    let report = usage("session", &format!(r#"{PARTS},"cost_usd":0.5"#));
    assert_eq!(total(&[PROMPT, SPEECH, PROMPT, SPEECH, &report, STOP]).tokens(), Some(Exact(150)));
    let stale = total(&[PROMPT, SPEECH, &report, PROMPT, SPEECH, STOP]);
    assert_eq!((stale.tokens(), stale.cost_usd()), (Some(AtLeast(150)), Some(AtLeast(0.5))));
    // A later report of the cost alone does not update the tokens.
    let cost = usage("session", r#""cost_usd":0.7"#);
    let total = total(&[PROMPT, SPEECH, &report, PROMPT, SPEECH, &cost, STOP]);
    assert_eq!((total.tokens(), total.cost_usd()), (Some(AtLeast(150)), Some(Exact(0.7))));
}

#[test]
fn figures_of_one_session_report_are_not_mixed_with_older_ones() {
    let first = usage("session", r#""total_tokens":1000,"cache_read_tokens":700"#);
    let second = usage("session", r#""input_tokens":900,"output_tokens":600"#);
    assert_eq!(total(&[&first, &second]).tokens(), Some(AtLeast(2200)));
}

#[test]
fn a_session_that_was_cut_leaves_its_last_usage_out() {
    let crashed = r#"{"type":"stop","reason":"crashed"}"#;
    let by_limit = r#"{"host":true,"type":"stop","reason":"timed_out"}"#;
    let cancelled = r#"{"type":"stop","reason":"cancelled"}"#;
    let unfinished = r#"{"host":true,"type":"tool_result","call":"c","status":"unfinished"}"#;
    for scope in ["turn", "call", "session"] {
        let report = usage(scope, PARTS);
        for stop in [crashed, by_limit, cancelled] {
            let cut = total(&[PROMPT, CALL, RESULT, &report, SPEECH, stop]);
            assert_eq!(cut.tokens(), Some(AtLeast(150)), "{scope} {stop}");
        }
        let uncut = total(&[PROMPT, CALL, &report, unfinished, cancelled]);
        assert_eq!(uncut.tokens(), Some(Exact(150)), "{scope}");
        assert_eq!(total(&[PROMPT, CALL, RESULT, &report, SPEECH, STOP]).tokens(), Some(Exact(150)), "{scope}");
    }
    // The model's call that the engine cut off is never reported.
    let report = usage("call", PARTS);
    assert_eq!(total(&[PROMPT, CALL, RESULT, &report, by_limit]).tokens(), Some(AtLeast(150)));
}

#[test]
fn a_report_of_a_session_that_ran_out_of_time_may_leave_an_answer_out() {
    for scope in ["turn", "session"] {
        // An agent that is cancelled reports the answers that ended.
        let report = usage(scope, &format!(r#"{PARTS},"cost_usd":0.5"#));
        for reason in ["timed_out", "idle"] {
            let stop = format!(r#"{{"host":true,"type":"stop","reason":"{reason}"}}"#);
            let cut = total(&[PROMPT, CALL, RESULT, SPEECH, &report, &stop]);
            assert_eq!((cut.tokens(), cut.cost_usd()), (Some(AtLeast(150)), Some(AtLeast(0.5))), "{scope} {reason}");
            let of_service = usage("session", &format!(r#"{PARTS},"source":"gateway""#));
            let cut = total(&[PROMPT, CALL, RESULT, SPEECH, &report, &of_service, &stop]);
            assert_eq!((cut.tokens(), cut.cost_usd()), (Some(Exact(150)), Some(AtLeast(0.5))), "{scope} {reason}");
        }
    }
}

#[test]
fn a_report_that_is_marked_makes_a_lower_bound() {
    let marked = turn(&format!(r#"{PARTS},"lower_bounds":["output_tokens"]"#));
    let marked = total(&[&marked]);
    assert_eq!((marked.input_tokens(), marked.output_tokens()), (Some(Exact(100)), Some(AtLeast(50))));
    assert_eq!(marked.tokens(), Some(AtLeast(150)));
    let notice = r#"{"type":"notice","code":"usage_incomplete","text":"t"}"#;
    assert_eq!(total(&[&turn(PARTS), notice]).tokens(), Some(AtLeast(150)));
}

#[test]
fn a_price_of_a_lower_bound_is_one() {
    let priced = r#"{"host":true,"type":"usage","scope":"session","cost_usd":0.5,"source":"priced"}"#;
    let report = turn(PARTS);
    assert_eq!(total(&[PROMPT, &report, priced, STOP]).cost_usd(), Some(Exact(0.5)));
    let total = total(&[PROMPT, SPEECH, PROMPT, &report, priced, STOP]);
    assert_eq!(total.cost_usd(), Some(AtLeast(0.5)));
}

#[test]
fn the_first_scope_that_is_whole_answers() {
    let session = usage("session", r#""total_tokens":100"#);
    let report = turn(r#""total_tokens":70"#);
    // The session's figure is from the first turn; the turns cover everything.
    assert_eq!(total(&[PROMPT, &report, &session, PROMPT, &report, STOP]).tokens(), Some(Exact(140)));
    assert_eq!(total(&[PROMPT, SPEECH, &session, PROMPT, &report, STOP]).tokens(), Some(AtLeast(100)));
    assert_eq!(total(&[PROMPT, &report, &session, STOP]).tokens(), Some(Exact(100)));
}

#[test]
fn a_total_below_the_figure_of_a_single_report_is_a_lower_bound() {
    let call = usage("call", r#""input_tokens":90000,"output_tokens":70000"#);
    let all = total(&[PROMPT, &call, &usage("session", r#""input_tokens":11,"output_tokens":0"#), STOP]);
    assert_eq!((all.input_tokens(), all.output_tokens()), (Some(AtLeast(90_000)), Some(AtLeast(70_000))));
    assert_eq!(all.tokens(), Some(AtLeast(160_000)));
    let all = total(&[PROMPT, &call, &usage("session", r#""input_tokens":90000,"output_tokens":70000"#), STOP]);
    assert_eq!(all.tokens(), Some(Exact(160_000)));
    let session = usage("session", r#""cost_usd":0.6,"input_tokens":60,"output_tokens":10"#);
    let call = usage("call", r#""cost_usd":0.7,"input_tokens":70,"output_tokens":20"#);
    let all = total(&[PROMPT, &session, &call, &call, STOP]);
    assert_eq!((all.cost_usd(), all.tokens()), (Some(AtLeast(0.7)), Some(AtLeast(90))));
    let small = usage("call", r#""cost_usd":0.3,"input_tokens":30,"output_tokens":5"#);
    let all = total(&[PROMPT, &small, &small, &session, STOP]);
    assert_eq!((all.cost_usd(), all.tokens()), (Some(Exact(0.6)), Some(Exact(70))));
    let rounded = usage("session", r#""cost_usd":0.12"#);
    let all = total(&[PROMPT, &usage("call", r#""cost_usd":0.123456"#), &rounded, STOP]);
    assert_eq!(all.cost_usd(), Some(Exact(0.12)));
}

#[test]
fn a_cost_beside_later_reports_of_more_tokens_is_a_lower_bound() {
    let session = |figures: &str| usage("session", figures);
    let priced = format!(r#"{PARTS},"cost_usd":0.5"#);
    let more = r#""input_tokens":9000,"output_tokens":700"#;
    let (first, grown) = (session(&priced), session(more));
    assert_eq!(total(&[&first, &grown]).cost_usd(), Some(AtLeast(0.5)));
    assert_eq!(total(&[&first, &session(PARTS)]).cost_usd(), Some(Exact(0.5)));
    // An agent may report the tokens and the cost in two lines.
    assert_eq!(total(&[&session(r#""cost_usd":0.5"#), &grown]).cost_usd(), Some(Exact(0.5)));
    assert_eq!(total(&[&grown, &session(r#""cost_usd":0.5"#)]).cost_usd(), Some(Exact(0.5)));
    for part in ["call", "turn"] {
        assert_eq!(total(&[&usage(part, &priced), &grown]).cost_usd(), Some(AtLeast(0.5)), "{part}");
        assert_eq!(total(&[&usage(part, &priced), &session(PARTS)]).cost_usd(), Some(Exact(0.5)), "{part}");
        // Tokens of work after the cost.
        assert_eq!(total(&[&first, SPEECH, &usage(part, PARTS)]).cost_usd(), Some(AtLeast(0.5)), "{part}");
        assert_eq!(total(&[SPEECH, &first, &usage(part, PARTS)]).cost_usd(), Some(Exact(0.5)), "{part}");
        // A result costs nothing.
        assert_eq!(total(&[CALL, &first, RESULT, &usage(part, PARTS)]).cost_usd(), Some(Exact(0.5)), "{part}");
    }
}

#[test]
fn tokens_beside_a_later_higher_cost_are_lower_bounds() {
    let session = |figures: &str| usage("session", figures);
    let first = session(&format!(r#"{PARTS},"cost_usd":0.5"#));
    assert_eq!(total(&[&first, &session(r#""cost_usd":9"#)]).tokens(), Some(AtLeast(150)));
    assert_eq!(total(&[&first, &session(r#""cost_usd":0.501"#)]).tokens(), Some(Exact(150)));
}

#[test]
fn reports_without_a_name_on_both_sides_of_a_change_of_the_model_have_no_price() {
    let changed = r#"{"type":"notice","code":"model_changed","text":"the model changed from a to b"}"#;
    let (call, turn) = (usage("call", PARTS), turn(PARTS));
    let named = |model: &str| usage("call", &format!(r#"{PARTS},"model":"{model}""#));
    for events in [
        &[PROMPT, SPEECH, &*call, changed, SPEECH, &*call][..],
        &[PROMPT, SPEECH, changed, SPEECH, &*turn],
        &[PROMPT, SPEECH, &*named("a"), changed, SPEECH, &*call],
    ] {
        assert_eq!(total(events).spent_by_models(Some("b")), Spent::Mixed, "{events:?}");
    }
    // No work was done with the model that was named first, or each report has a name.
    let before = total(&[PROMPT, changed, SPEECH, &*call]);
    assert_eq!(before.spent_by_models(Some("b")), Spent::One(Some("b".to_owned())));
    let each = total(&[PROMPT, SPEECH, &*named("a"), changed, SPEECH, &*named("b")]);
    assert!(matches!(each.spent_by_models(Some("b")), Spent::Each(parts) if parts.len() == 2));
}

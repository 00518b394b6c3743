//! Tests of the recorder with unusual sequences; its laws over any sequence are in `tests/traces/trace_laws.rs`.

use serde_json::json;

use super::*;
use crate::trace::{
    Attachment, CallStatus, FollowedLink, NoticeCode, PermissionOutcome, Role, Seen, StopReason, ToolKind, UnseenAction,
};

fn recorder() -> Recorder {
    Recorder::new(Header::new("acp", Seen { tracing: true, interaction: true }))
}

fn finish(recorder: Recorder) -> Vec<Event> {
    let stop = Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
    recorder.finish(stop, false).events
}

#[test]
fn a_text_that_no_report_counts_makes_the_totals_of_a_session_that_was_cut_lower_bounds() {
    let has_notice = |reason: StopReason, after: &str| {
        let mut recorder = recorder();
        recorder.say(Voice::Agent, None, "One.", Continuation::Chunk);
        let mut usage = Usage::of(UsageScope::Call);
        (usage.input_tokens, usage.output_tokens) = (Some(10), Some(5));
        recorder.usage(usage, false);
        recorder.say(Voice::Agent, None, after, Continuation::Chunk);
        let stop = Stop { reason, category: None, detail: None, output: None, gap: None, exit: None };
        let Finished { events, total, .. } = recorder.finish(stop, false);
        let is_notice = |event: &Event| matches!(&event.body, Body::Notice { code: NoticeCode::UsageIncomplete, .. });
        let has_notice = events.iter().any(is_notice);
        assert_eq!(total.is_exact(), !has_notice, "{events:?}");
        has_notice
    };
    assert!(has_notice(StopReason::Cancelled, " Two."));
    assert!(!has_notice(StopReason::Cancelled, ""));
    assert!(!has_notice(StopReason::EndTurn, " Two."));
}

#[test]
fn an_id_that_looks_like_another_is_still_new() {
    let mut recorder = recorder();
    recorder.call("1", CallReport::default());
    recorder.result("1", ResultReport::default());
    assert!(recorder.was_announced("1"));
    for id in ["call 1", "request 1", "ended 1"] {
        assert!(!recorder.was_announced(id), "{id}");
    }
}

#[test]
fn many_open_calls_with_one_id_are_put_aside_in_bounded_time() {
    let mut recorder = recorder();
    let begun = std::time::Instant::now();
    for _ in 0..9000 {
        recorder.call("a", CallReport::default());
        recorder.put_aside("a");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn calls_with_open_requests_are_put_aside_in_bounded_time() {
    let mut recorder = recorder();
    let begun = std::time::Instant::now();
    let mut last = String::new();
    for n in 0..9000 {
        recorder.call("a", CallReport::default());
        last = recorder.request(&n.to_string(), "a", Vec::new());
        recorder.put_aside("a");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
    let outcome = PermissionOutcome::Rejected;
    recorder.respond(&last, Answered { outcome, option: None, by: DecidedBy::default(), updated_input: None });
    let denied = finish(recorder).into_iter().filter_map(|event| match event.body {
        Body::ToolResult(result) if result.status == CallStatus::Denied => Some(result.call),
        _ => None,
    });
    assert!(denied.eq(["a#9000".to_owned()]));
}

#[test]
fn an_id_used_again_names_the_last_call() {
    let mut recorder = recorder();
    assert_eq!(recorder.call_id("a"), "a");
    recorder.call("a", CallReport::default());
    recorder.result("a", ResultReport::default());
    recorder.call("a", CallReport::default());
    assert_eq!(recorder.call_id("a"), "a#2");
}

#[test]
fn a_rejected_call_without_a_word_ends_with_its_turn() {
    let mut recorder = recorder();
    for id in ["rejected", "open"] {
        recorder.call(id, CallReport::default());
    }
    let request = recorder.request("0", "rejected", Vec::new());
    let outcome = PermissionOutcome::Rejected;
    let answered = Answered { outcome, option: None, by: DecidedBy::default(), updated_input: None };
    recorder.respond(&request, answered);
    recorder.end_turn(false);
    assert_eq!((recorder.is_open("rejected"), recorder.is_open("open")), (false, true));
    let results = finish(recorder).into_iter().filter_map(|event| match event.body {
        Body::ToolResult(result) => Some((result.call, result.status, event.host)),
        _ => None,
    });
    let expected = [("rejected", CallStatus::Denied), ("open", CallStatus::Unfinished)];
    assert!(results.eq(expected.map(|(call, status)| (call.to_owned(), status, true))));
}

#[test]
fn the_answer_to_a_request_counts_before_the_agents_word_for_it() {
    // Claude Code reports a call as denied if its request was cancelled.
    for (outcome, says, expected) in [
        (PermissionOutcome::Cancelled, ReportedStatus::Denied, CallStatus::Cancelled),
        (PermissionOutcome::Cancelled, ReportedStatus::Failed, CallStatus::Cancelled),
        (PermissionOutcome::Rejected, ReportedStatus::Cancelled, CallStatus::Denied),
        (PermissionOutcome::Allowed, ReportedStatus::Denied, CallStatus::Denied),
    ] {
        let mut recorder = recorder();
        recorder.call("a", CallReport::default());
        let request = recorder.request("0", "a", Vec::new());
        let answered = Answered { outcome, option: None, by: DecidedBy::default(), updated_input: None };
        recorder.respond(&request, answered);
        recorder.result("a", ResultReport { outcome: says, ..ResultReport::default() });
        let mut results = finish(recorder).into_iter().filter_map(|event| match event.body {
            Body::ToolResult(result) => Some(result.status),
            _ => None,
        });
        assert_eq!(results.next(), Some(expected), "{outcome:?}, {says:?}");
    }
}

#[test]
fn what_is_held_for_an_open_call_is_bounded() {
    let mut recorder = recorder();
    recorder.call("open", CallReport::default());
    let mut events = Vec::new();
    for n in 0..MAX_PENDING {
        recorder.weigh(1);
        let voice = if n % 2 == 0 { Voice::Agent } else { Voice::Thought };
        recorder.say(voice, None, "x", Continuation::Chunk);
        events.extend(recorder.drain());
        assert!(recorder.slots.len() <= MAX_PENDING + 1);
    }
    recorder.weigh(1);
    events.extend(recorder.drain());
    assert!(events.len() > MAX_PENDING / 2);
    // The call is still open, and its result still arrives.
    recorder.call("open", CallReport { title: Some("too late".to_owned()), ..CallReport::default() });
    assert!(recorder.result("open", ResultReport::default()));
    events.extend(finish(recorder));
    assert!(events.iter().enumerate().all(|(n, event)| event.seq == n as u64));
    assert!(matches!(&events[0].body, Body::ToolCall(call) if call.title.is_none()));
    let let_go = |event: &&Event| matches!(&event.body, Body::Notice { code: NoticeCode::LetGo, .. });
    assert_eq!(events.iter().filter(let_go).count(), 1);
}

#[test]
fn the_first_loss_of_each_kind_is_recorded_after_many_notices() {
    let mut recorder = recorder();
    recorder.contradicted(NoticeCode::LateUpdate, "");
    for _ in 0..2 * MAX_NOTICES {
        recorder.notice(NoticeCode::UnknownLine, "");
    }
    recorder.lost(NoticeCode::UnknownLine, "");
    recorder.lost(NoticeCode::UnknownLine, "");
    let losses = finish(recorder).into_iter().filter_map(|event| match event.body {
        Body::Notice { lost, .. } => lost,
        _ => None,
    });
    assert!(losses.eq([Lost::Outcome, Lost::Line]));
}

#[test]
fn a_call_that_was_refused_before_it_was_announced_is_refused() {
    for (outcome, status, between) in [
        (PermissionOutcome::Rejected, CallStatus::Denied, false),
        (PermissionOutcome::Rejected, CallStatus::Denied, true),
        (PermissionOutcome::Cancelled, CallStatus::Cancelled, false),
        (PermissionOutcome::Allowed, CallStatus::Ok, false),
    ] {
        let mut recorder = recorder();
        let answered = || Answered { outcome, option: None, by: DecidedBy::default(), updated_input: None };
        let unique = recorder.request("r", "c", Vec::new());
        if between {
            recorder.call("c", CallReport::default());
        }
        recorder.respond(&unique, answered());
        if !between {
            recorder.call("c", CallReport::default());
        }
        assert!(recorder.result("c", ResultReport { output: Some("ran".to_owned()), ..ResultReport::default() }));
        let results = finish(recorder).into_iter().filter_map(|event| match event.body {
            Body::ToolResult(result) => Some((result.status, result.contested)),
            _ => None,
        });
        let expected = (status, status != CallStatus::Ok);
        assert_eq!(results.collect::<Vec<_>>(), [expected], "{outcome:?} {between}");
    }
}

#[test]
fn a_refused_call_that_shows_changes_as_its_result_is_contested() {
    let diff = || vec![FileDiff { path: "a".to_owned(), old: None, new: Some("x".to_owned()) }];
    let reject = |recorder: &mut Recorder| {
        let unique = recorder.request("r", "c", Vec::new());
        let by = DecidedBy::default();
        recorder
            .respond(&unique, Answered { outcome: PermissionOutcome::Rejected, option: None, by, updated_input: None });
    };
    let changes = || CallReport { diffs: diff(), ..CallReport::default() };
    type Step<'a> = &'a dyn Fn(&mut Recorder);
    let cases: [(&str, [Step<'_>; 2], Vec<FileDiff>, bool); 5] = [
        ("shown when it was asked for", [&|it| it.update("c", changes(), false), &reject], Vec::new(), false),
        ("shown after the rejection", [&reject, &|it| it.update("c", changes(), false)], Vec::new(), true),
        ("shown by the result", [&reject, &|_| ()], diff(), true),
        ("denied by the agent, shown by its result", [&|it| it.deny("c"), &|_| ()], diff(), true),
        ("denied by the agent", [&|it| it.deny("c"), &|_| ()], Vec::new(), false),
    ];
    for (what, steps, diffs, contested) in cases {
        let mut recorder = recorder();
        recorder.call("c", CallReport::default());
        steps.iter().for_each(|step| step(&mut recorder));
        assert!(recorder.result("c", ResultReport { diffs, ..ResultReport::default() }));
        let results = finish(recorder).into_iter().filter_map(|event| match event.body {
            Body::ToolResult(result) => Some((result.status, result.contested)),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), [(CallStatus::Denied, contested)], "{what}");
    }
}

#[test]
fn more_links_than_are_noted_count_as_a_lost_call() {
    let mut recorder = recorder();
    for n in 0..1100 {
        recorder.followed(FollowedLink {
            kind: ToolKind::Edit,
            path: format!("l/{n}"),
            to: format!("x/{n}"),
            moved: false,
        });
    }
    let notices: Vec<Event> = finish(recorder);
    let links = notices.iter().filter(|event| matches!(event.body, Body::Notice { link: Some(_), .. })).count();
    let lost = notices.iter().filter(|event| matches!(event.body, Body::Notice { lost: Some(Lost::Call), .. })).count();
    assert_eq!((links, lost), (1000, 1));
}

#[test]
fn a_text_that_was_let_go_of_stays_the_answer() {
    let mut recorder = recorder();
    recorder.say(Voice::Agent, None, "the answer", Continuation::Chunk);
    recorder.notice(NoticeCode::UnknownLine, "a notice ends no message");
    recorder.weigh(MAX_PENDING_BYTES + 1);
    drop(recorder.drain());
    recorder.say(Voice::Agent, None, " goes on", Continuation::Chunk);
    let events = finish(recorder);
    let Some(Body::Stop(stop)) = events.last().map(|event| &event.body) else { panic!("no stop") };
    assert_eq!(stop.output.as_deref(), Some("the answer"));
    let cut = |event: &Event| matches!(&event.body, Body::Notice { code: NoticeCode::TextCut, .. });
    assert!(events.iter().any(cut));
}

#[test]
fn an_output_that_was_cut_is_truncated() {
    for (length, is_cut) in [(MAX_TEXT, false), (MAX_TEXT + 1, true)] {
        let mut recorder = recorder();
        recorder.call("c", CallReport::default());
        recorder.result("c", ResultReport { output: Some("x".repeat(length)), ..ResultReport::default() });
        let is_truncated = |event: &Event| matches!(&event.body, Body::ToolResult(result) if result.truncated);
        assert_eq!(finish(recorder).iter().any(is_truncated), is_cut, "{length}");
    }
}

#[test]
fn one_id_for_many_calls_takes_no_longer_each_time() {
    let mut recorder = recorder();
    for _ in 0..100_000 {
        recorder.call("c", CallReport::default());
        recorder.result("c", ResultReport::default());
        drop(recorder.drain());
    }
    assert_eq!(recorder.call_id("c"), "c#100000");
}

#[test]
fn a_text_after_a_complete_answer_is_another_answer_of_the_same_message() {
    let part = |id: &str| Continuation::Of(id.to_owned());
    let mut recorder = recorder();
    for (text, id) in [("one", "1"), (" and more", "1"), ("two", "2"), ("three", "3")] {
        recorder.say(Voice::Agent, None, text, part(id));
        if id == "1" && text != "one" {
            recorder.end_turn(false);
            recorder.complete_answer();
            assert_eq!(recorder.answer(), "one and more");
        }
    }
    assert_eq!(recorder.answer(), "two\n\nthree");
    recorder.end_turn(false);
    recorder.complete_answer();
    let events = finish(recorder);
    let Some(Body::Stop(stop)) = events.last().map(|event| &event.body) else { panic!("no stop") };
    assert_eq!(stop.output.as_deref(), Some("two\n\nthree"));
    let texts: Vec<&str> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Message(message) => Some(message.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["one and more\n\ntwo\n\nthree"]);
}

#[test]
fn a_withdrawn_text_moves_the_beginning_of_the_answer() {
    let withdrawn =
        |id: &str, last_event: u64| SentText { parent: None, part: id.to_owned(), begins: id.to_owned(), last_event };
    for (taken, answer) in [("1", "two"), ("2", "three")] {
        let mut recorder = recorder();
        recorder.say(Voice::Agent, None, "one", Continuation::Of("1".to_owned()));
        recorder.complete_answer();
        recorder.say(Voice::Agent, None, "two", Continuation::Of("2".to_owned()));
        let last = recorder.last_event();
        recorder.withdraw_text(withdrawn(taken, last));
        if taken == "2" {
            recorder.say(Voice::Agent, None, "three", Continuation::Of("3".to_owned()));
        }
        assert_eq!(recorder.answer(), answer);
    }
}

/// Returns the answer of a session, and whether its `gap` is the notice with this text.
fn gap_of(recorder: Recorder) -> (String, Option<String>) {
    let events = finish(recorder);
    let Some(Body::Stop(stop)) = events.last().map(|event| &event.body) else { panic!("no stop") };
    let text = stop.gap.map(|gap| match &events[gap.event as usize].body {
        Body::Notice { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    });
    (stop.output.clone().unwrap_or_default(), text)
}

#[test]
fn a_gap_within_the_answer_is_told_and_one_beside_it_is_not() {
    type Act = fn(&mut Recorder);
    let say: Act = |it| it.say(Voice::Agent, None, "a", Continuation::Chunk);
    let part: Act = |it| it.say(Voice::Agent, None, "a", Continuation::Of("1".to_owned()));
    let block: Act = |it| it.say(Voice::Agent, None, "a", Continuation::Block);
    let blank: Act = |it| it.say(Voice::Agent, None, " \n", Continuation::Chunk);
    let think: Act = |it| it.say(Voice::Thought, None, "t", Continuation::Chunk);
    let ask: Act = |it| it.say(Voice::User, None, "u", Continuation::Chunk);
    let lose: Act = |it| it.did_unseen(NoticeCode::UnannouncedAction, "gap");
    let line: Act = |it| it.lost(NoticeCode::MalformedLine, "gap");
    let text: Act = |it| it.lost_text(NoticeCode::EmbeddedText, "gap");
    let late: Act = |it| it.lost(NoticeCode::LateUpdate, "gap");
    let read: Act = |it| {
        let action = UnseenAction { kind: ToolKind::Read, path: "x".to_owned() };
        it.acted_unseen(NoticeCode::UnannouncedAction, "gap", action);
    };
    let call: Act = |it| {
        it.call("c", CallReport::default());
        it.result("c", ResultReport::default());
    };
    let complete: Act = Recorder::complete_answer;
    let end: Act = |it| it.end_turn(false);
    for (acts, answer, has_gap) in [
        (vec![say, lose, say], "aa", true),
        (vec![say, line, say], "aa", true),
        (vec![say, read, say], "aa", true),
        (vec![say, lose, block], "a\n\na", true),
        (vec![part, think, lose, part], "aa", true),
        (vec![part, lose, think, part], "aa", true),
        (vec![say, lose, say, end, call], "aa", true),
        (vec![say, lose, say, complete], "aa", true),
        (vec![say, lose], "a", false),
        (vec![lose, say, say], "aa", false),
        (vec![say, lose, blank], "a \n", false),
        (vec![say, text, say], "aa", false),
        (vec![say, late, say], "aa", false),
        (vec![say, lose, call, say], "a", false),
        (vec![say, lose, say, call, say], "a", false),
        (vec![say, lose, complete, say], "a", false),
        (vec![say, lose, say, ask, say], "a", false),
        // Another text after a thought begins the answer.
        (vec![say, lose, think, say], "a", false),
    ] {
        let mut recorder = recorder();
        acts.iter().for_each(|act| act(&mut recorder));
        let gap = has_gap.then(|| "gap".to_owned());
        assert_eq!(gap_of(recorder), (answer.to_owned(), gap), "{} acts: {answer:?}", acts.len());
    }
}

#[test]
fn a_gap_has_the_place_of_the_line_that_its_notice_is_about() {
    for (before, after, is_within) in [("", "b", false), ("a", "b", true), ("a", "", false)] {
        for is_earlier in [false, true] {
            let mut recorder = recorder();
            recorder.say(Voice::Agent, None, before, Continuation::Chunk);
            let line = recorder.this_line();
            recorder.say(Voice::Agent, None, after, Continuation::Chunk);
            if is_earlier {
                recorder.call("c", CallReport::default());
                recorder.say(Voice::Agent, None, "last", Continuation::Chunk);
            }
            recorder.about(line, |recorder| recorder.did_unseen(NoticeCode::UnmappedLine, "gap"));
            assert_eq!(gap_of(recorder).1.is_some(), is_within && !is_earlier, "{before} {after}");
        }
    }
}

#[test]
fn a_gap_moves_with_the_text_that_is_taken_out() {
    let withdrawn = |id: &str, recorder: &Recorder| {
        let last_event = recorder.last_event();
        SentText { parent: None, part: id.to_owned(), begins: id.to_owned(), last_event }
    };
    for (taken, is_within) in [("1", false), ("2", true), ("3", true)] {
        let mut recorder = recorder();
        let say = |recorder: &mut Recorder, id: &str| {
            recorder.say(Voice::Agent, None, id, Continuation::Of(id.to_owned()));
        };
        say(&mut recorder, "1");
        recorder.did_unseen(NoticeCode::UnannouncedAction, "gap");
        say(&mut recorder, "2");
        say(&mut recorder, "3");
        let text = withdrawn(taken, &recorder);
        recorder.withdraw_text(text);
        assert_eq!(gap_of(recorder).1.is_some(), is_within, "{taken}");
    }
}

#[test]
fn the_text_that_the_agent_itself_gives_as_its_answer_has_no_gap() {
    let mut recorder = recorder();
    recorder.say(Voice::Agent, None, "a", Continuation::Chunk);
    recorder.did_unseen(NoticeCode::UnannouncedAction, "gap");
    recorder.say(Voice::Agent, None, "b", Continuation::Chunk);
    let output = Some("b".to_owned());
    let stop = Stop { reason: StopReason::EndTurn, category: None, detail: None, output, gap: None, exit: None };
    let events = recorder.finish(stop, false).events;
    assert!(matches!(&events.last().unwrap().body, Body::Stop(stop) if stop.gap.is_none()));
}

#[test]
fn a_late_call_takes_no_answer_away() {
    let mut recorder = recorder();
    recorder.say(Voice::Agent, None, "done", Continuation::Chunk);
    recorder.end_turn(false);
    recorder.call("late", CallReport::default());
    let events = finish(recorder);
    let Some(Body::Stop(stop)) = events.last().map(|event| &event.body) else { panic!("no stop") };
    assert_eq!(stop.output.as_deref(), Some("done"));
}

#[test]
fn a_call_without_arguments_is_told_from_one_whose_input_was_not_shown() {
    let mut recorder = Recorder::new(Header::new("acp", Seen { tracing: true, interaction: true }));
    let report = |input: Option<serde_json::Value>| CallReport { input, ..CallReport::default() };
    let none = || Some(serde_json::json!({}));
    recorder.call("none", report(none()));
    recorder.call("later", report(none()));
    recorder.update("later", report(Some(serde_json::json!({"a": 1}))), false);
    recorder.call("kept", report(Some(serde_json::json!({"a": 1}))));
    recorder.update("kept", report(none()), false);
    recorder.call("unknown", report(None));
    let of = |id: &str| {
        let (call, _) = recorder.open_call(id).unwrap();
        (call.input.is_some(), call.without_input, call.shown_input().is_some())
    };
    assert_eq!(of("none"), (false, true, true));
    assert_eq!((of("later"), of("kept")), ((true, false, true), (true, false, true)));
    assert_eq!(of("unknown"), (false, false, false));
}

#[test]
fn a_call_with_very_many_behind_it_is_ended() {
    let mut recorder = recorder();
    recorder.call("first", CallReport::default());
    let mut ended_at = None;
    for n in 0..MAX_BEHIND.0 + MAX_BEHIND.1 {
        let id = format!("c{n}");
        recorder.call(&id, CallReport::default());
        recorder.result(&id, ResultReport::default());
        recorder.weigh(1);
        drop(recorder.drain());
        if ended_at.is_none() && !recorder.is_open("first") {
            ended_at = Some(n);
        }
    }
    let ended_at = ended_at.unwrap();
    assert!((MAX_BEHIND.0..=MAX_BEHIND.0 + MAX_BEHIND.1).contains(&ended_at), "{ended_at}");
    assert!(recorder.was_announced("first") && recorder.open_calls() == 0);
}

#[test]
fn calls_that_never_close_are_bounded_and_all_in_the_trace() {
    let mut recorder = recorder();
    let opened = MAX_OPEN.0 + 1;
    let mut events = Vec::new();
    for n in 0..opened {
        recorder.weigh(1);
        recorder.call(
            &format!("call_{n}"),
            CallReport { output: (n == 3).then(|| "so far".to_owned()), ..CallReport::default() },
        );
        if n % 1000 == 0 {
            events.extend(recorder.drain());
        }
    }
    assert_eq!(recorder.open_calls(), opened - MAX_OPEN.1);
    assert!(!recorder.is_open("call_0") && recorder.is_open(&format!("call_{}", MAX_OPEN.1)));
    // A call that was ended is not ended again.
    assert!(!recorder.result("call_0", ResultReport::default()));
    assert!(recorder.result(&format!("call_{}", opened - 1), ResultReport::default()));
    let stop = Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
    recorder.finish_into(stop, false, |event| events.push(event));
    assert!(events.iter().zip(0..).all(|(event, seq)| event.seq == seq));
    let results: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolResult(result) => Some((&*result.call, result.status, result.output.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(results.len(), opened);
    assert_eq!(results[3], ("call_3", CallStatus::Unfinished, Some("so far")));
    let ok = results.iter().filter(|(_, status, _)| *status == CallStatus::Ok).count();
    let cut =
        events.iter().filter(|it| matches!(&it.body, Body::Notice { code: NoticeCode::TooManyOpenCalls, .. })).count();
    assert_eq!((ok, cut), (1, 1));
}

/// Returns the codes of the notices of a trace, with what they lose.
fn losses(events: &[Event]) -> Vec<(&str, Option<Lost>)> {
    let notices = events.iter().filter_map(|event| match &event.body {
        Body::Notice { code, lost, .. } => Some((code.as_str(), *lost)),
        _ => None,
    });
    notices.collect()
}

#[test]
fn what_is_said_of_a_call_after_its_event_was_written_is_lost_unless_the_event_shows_it() {
    let input = |command: &str| Some(json!({"command": command}));
    let kind = Some(ToolKind::Execute);
    let announced = || CallReport { kind, input: input("ls"), title: Some("List".to_owned()), ..CallReport::default() };
    for (report, is_lost) in [
        (announced(), false),
        (CallReport { output: Some("a".to_owned()), title: Some("Done".to_owned()), ..CallReport::default() }, false),
        (CallReport { input: input("rm -rf /"), ..CallReport::default() }, true),
        (CallReport { kind: Some(ToolKind::Delete), ..CallReport::default() }, true),
        (CallReport { name: Some("Bash".to_owned()), ..CallReport::default() }, true),
        (CallReport { cwd: Some("/elsewhere".to_owned()), ..CallReport::default() }, true),
    ] {
        for only_missing in [false, true] {
            let mut recorder = recorder();
            recorder.call("c", announced());
            recorder.plan(None, Vec::new());
            recorder.weigh(MAX_PENDING_BYTES + 1);
            let mut events: Vec<Event> = recorder.drain().collect();
            assert!(recorder.is_open("c") && recorder.open_call("c").is_none());
            recorder.update("c", report.clone(), only_missing);
            events.extend(finish(recorder));
            let mut expected = vec![("let_go", None)];
            expected.extend(is_lost.then_some(("let_go", Some(Lost::Call))));
            assert_eq!(losses(&events), expected, "{report:?}");
        }
    }
}

#[test]
fn what_the_line_says_with_which_an_event_leaves_is_in_the_event() {
    let mut recorder = recorder();
    recorder.call("c", CallReport::default());
    recorder.plan(None, Vec::new());
    recorder.weigh(MAX_PENDING_BYTES + 1);
    let report = || CallReport { input: Some(json!({"command": "ls"})), ..CallReport::default() };
    recorder.update("c", report(), false);
    let mut events: Vec<Event> = recorder.drain().collect();
    recorder.update("c", report(), false);
    events.extend(finish(recorder));
    assert!(matches!(&events[0].body, Body::ToolCall(call) if call.input.is_some()));
    assert_eq!(losses(&events), [("let_go", None)]);
}

#[test]
fn calls_that_overlap_are_not_let_go_of() {
    let mut recorder = recorder();
    let mut events = Vec::new();
    for n in 0..200_u64 {
        recorder.weigh(MAX_PENDING_BYTES / 64);
        recorder.call(&n.to_string(), CallReport::default());
        if n > 0 {
            assert!(recorder.result(&(n - 1).to_string(), ResultReport::default()));
        }
        events.extend(recorder.drain());
    }
    events.extend(finish(recorder));
    assert_eq!(losses(&events), []);
}

#[test]
fn the_refusal_of_a_call_whose_result_was_written_is_another_outcome() {
    for (outcome, expected) in [
        (PermissionOutcome::Rejected, vec![("let_go", None), ("let_go", Some(Lost::Outcome))]),
        (PermissionOutcome::Allowed, vec![("let_go", None)]),
    ] {
        let mut recorder = recorder();
        recorder.call("c", CallReport::default());
        let request = recorder.ask("r", Some("c"), Asking { awaits_answer: true, ..Asking::default() });
        recorder.result("c", ResultReport::default());
        recorder.plan(None, Vec::new());
        recorder.weigh(MAX_PENDING_BYTES + 1);
        let mut events: Vec<Event> = recorder.drain().collect();
        let by = DecidedBy::default();
        recorder.respond(&request, Answered { outcome, option: None, by, updated_input: None });
        events.extend(finish(recorder));
        assert_eq!(losses(&events), expected, "{outcome:?}");
    }
}

#[test]
fn another_result_of_a_call_whose_end_is_forgotten_may_contradict_it() {
    for (between, lost) in [(3, None), (MAX_ENDED, Some(Lost::Outcome))] {
        let mut recorder = recorder();
        recorder.call("a", CallReport::default());
        recorder.result("a", ResultReport { outcome: ReportedStatus::Failed, ..ResultReport::default() });
        for n in 0..between {
            recorder.call(&n.to_string(), CallReport::default());
            recorder.result(&n.to_string(), ResultReport::default());
        }
        recorder.end_or_repeat("a", "a", ResultReport { outcome: ReportedStatus::Failed, ..ResultReport::default() });
        assert_eq!(losses(&finish(recorder)), [("repeated_result", lost)], "{between}");
    }
}

#[test]
fn the_answer_to_a_request_is_about_the_call_that_had_the_id_then() {
    let mut recorder = recorder();
    recorder.call("a", CallReport { name: Some("first".to_owned()), ..CallReport::default() });
    let request = recorder.ask("r", Some("a"), Asking { awaits_answer: true, ..Asking::default() });
    recorder.call("a", CallReport { name: Some("second".to_owned()), ..CallReport::default() });
    let by = DecidedBy::default();
    recorder
        .respond(&request, Answered { outcome: PermissionOutcome::Rejected, option: None, by, updated_input: None });
    recorder.result("a", ResultReport::default());
    let results = finish(recorder).into_iter().filter_map(|event| match event.body {
        Body::ToolResult(result) => Some((result.call, result.status)),
        _ => None,
    });
    let mut results: Vec<(String, CallStatus)> = results.collect();
    results.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!(results, [("a".to_owned(), CallStatus::Denied), ("a#2".to_owned(), CallStatus::Ok)]);
}

#[test]
fn a_prompt_that_begins_with_an_attachment_begins_one_turn() {
    let attachment = || Attachment { kind: "image".to_owned(), media_type: None, uri: None, bytes: None };
    let silent = |recorder: Recorder| {
        let events = finish(recorder);
        losses(&events).iter().filter(|(code, _)| *code == NoticeCode::SilentTurn.as_str()).count()
    };
    let prompted = || {
        let mut recorder = recorder();
        recorder.say(Voice::User, None, "one", Continuation::Block);
        recorder.say(Voice::Agent, None, "yes", Continuation::Block);
        recorder.end_turn(false);
        recorder.attach(Role::User, None, attachment());
        recorder
    };
    let mut recorder = prompted();
    recorder.say(Voice::User, None, "two", Continuation::Block);
    recorder.say(Voice::Agent, None, "no", Continuation::Block);
    recorder.end_turn(false);
    assert_eq!(silent(recorder), 0);
    // A prompt without an answer, and a further one that only attaches a file.
    let mut recorder = prompted();
    recorder.end_turn(false);
    recorder.attach(Role::User, None, attachment());
    assert_eq!(silent(recorder), 1);
}

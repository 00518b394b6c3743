//! The laws of a Trace hold for whatever an adapter pushes, and a Trace that is written is read back the same.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Cursor;

use evals::trace::jsonl::{Reader, write_event, write_header};
use evals::trace::recorder::{
    Answered, CallReport, Continuation, DecidedBy, Recorder, ReportedStatus, ResultReport, Voice,
};
use evals::trace::{
    Event, FileDiff, Header, Location, PermissionOption, PermissionOutcome, PlanEntry, Role, Seen, Stop, StopReason,
    ToolKind, Usage, UsageScope,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::laws;

/// Anything that an adapter can do to a recorder.
#[derive(Debug, Clone)]
enum Push {
    At(u64),
    Say(Voice, Option<u8>, String, Continuation),
    Attach(Role),
    Plan,
    Call { id: u8, parent: Option<u8>, group: Option<u8>, input: u8 },
    Update { id: u8, input: u8, only_missing: bool },
    Result { id: u8, said: ReportedStatus, exit: Option<i64> },
    Request { request: u8, call: u8 },
    Respond { request: u8, outcome: PermissionOutcome },
    Usage(UsageScope, u64),
    Notice(u8),
    CancelOpen,
    EndTurn(bool),
    Deny(u8),
    Drain,
}

fn push() -> impl Strategy<Value = Push> {
    let voice = prop_oneof![Just(Voice::User), Just(Voice::Agent), Just(Voice::Thought)];
    let part = prop_oneof![
        Just(Continuation::Chunk),
        Just(Continuation::Block),
        (0..3u8).prop_map(|n| Continuation::Of(n.to_string()))
    ];
    let said = prop_oneof![
        Just(ReportedStatus::Ok),
        Just(ReportedStatus::Failed),
        Just(ReportedStatus::Denied),
        Just(ReportedStatus::Cancelled)
    ];
    let outcome = prop_oneof![
        Just(PermissionOutcome::Allowed),
        Just(PermissionOutcome::Rejected),
        Just(PermissionOutcome::Cancelled)
    ];
    let scope = prop_oneof![Just(UsageScope::Call), Just(UsageScope::Turn), Just(UsageScope::Session)];
    let few = || 0..4u8;
    let parent = || prop::option::of(0..2u8);
    prop_oneof![
        (0..50u64).prop_map(Push::At),
        (voice, parent(), "[a-c\\n]{0,4}", part)
            .prop_map(|(voice, parent, text, part)| Push::Say(voice, parent, text, part)),
        prop_oneof![Just(Role::User), Just(Role::Agent)].prop_map(Push::Attach),
        Just(Push::Plan),
        (few(), parent(), prop::option::of(few()), few()).prop_map(|(id, parent, group, input)| Push::Call {
            id,
            parent,
            group,
            input
        }),
        (few(), few(), any::<bool>()).prop_map(|(id, input, only_missing)| Push::Update { id, input, only_missing }),
        (few(), said, prop::option::of(-1..3i64)).prop_map(|(id, said, exit)| Push::Result { id, said, exit }),
        (few(), few()).prop_map(|(request, call)| Push::Request { request, call }),
        (few(), outcome).prop_map(|(request, outcome)| Push::Respond { request, outcome }),
        (scope, 0..3u64).prop_map(|(scope, tokens)| Push::Usage(scope, tokens)),
        few().prop_map(Push::Notice),
        Just(Push::CancelOpen),
        any::<bool>().prop_map(Push::EndTurn),
        few().prop_map(Push::Deny),
        Just(Push::Drain),
    ]
}

fn input(n: u8) -> Option<Value> {
    match n {
        0 => None,
        1 => Some(json!({})),
        2 => Some(json!({"path": "a"})),
        _ => Some(json!({"path": "a", "content": "b"})),
    }
}

/// Applies everything and gives the events as they came out.
fn record(pushes: &[Push]) -> (Header, Vec<Event>) {
    let header = Header::new("acp", Seen { tracing: true, interaction: true });
    let mut recorder = Recorder::new(header);
    let mut events = Vec::new();
    let parent = |n: &Option<u8>| n.map(|n| format!("call-{n}"));
    for (line, push) in pushes.iter().enumerate() {
        match push {
            Push::At(ms) => recorder.at(*ms, line as u64 + 1),
            Push::Say(voice, by, text, part) => recorder.say(*voice, parent(by), text, part.clone()),
            Push::Attach(role) => {
                let image =
                    evals::trace::Attachment { kind: "image".into(), media_type: None, uri: None, bytes: Some(1) };
                recorder.attach(*role, None, image);
            }
            Push::Plan => {
                let entry = PlanEntry { text: "one".into(), status: None, priority: None };
                recorder.plan(None, vec![entry]);
            }
            Push::Call { id, parent: by, group, input: n } => {
                let said = CallReport {
                    parent: parent(by),
                    group: group.map(|n| n.to_string()),
                    kind: Some(ToolKind::Edit),
                    name: Some("Write".into()),
                    input: input(*n),
                    locations: vec![Location { path: "a".into(), line: Some(1) }],
                    diffs: vec![FileDiff { path: "a".into(), old: None, new: Some("b".into()) }],
                    ..CallReport::default()
                };
                recorder.call(&format!("call-{id}"), said);
            }
            Push::Update { id, input: n, only_missing } => {
                let said = CallReport { input: input(*n), title: Some("t".into()), ..CallReport::default() };
                recorder.update(&format!("call-{id}"), said, *only_missing);
            }
            Push::Result { id, said, exit } => {
                let said = ResultReport {
                    outcome: *said,
                    output: Some("out".into()),
                    exit_code: *exit,
                    ..ResultReport::default()
                };
                recorder.result(&format!("call-{id}"), said);
            }
            Push::Request { request, call } => {
                let option = PermissionOption { option: "o".into(), kind: "allow_once".into(), label: "Yes".into() };
                recorder.request(&request.to_string(), &format!("call-{call}"), vec![option]);
            }
            Push::Respond { request, outcome } => {
                let answered = Answered {
                    outcome: *outcome,
                    option: None,
                    by: DecidedBy { policy: Some("scripted".into()), ..DecidedBy::default() },
                    updated_input: None,
                };
                recorder.respond(&request.to_string(), answered);
            }
            Push::Usage(scope, tokens) => {
                let mut usage = Usage::of(*scope);
                usage.input_tokens = Some(*tokens);
                // Now and then a negative one, which nobody can have spent.
                usage.cost_usd = Some(0.1 * (*tokens as f64 - 1.0));
                recorder.usage(usage, false);
            }
            Push::Notice(code) => recorder.notice(format!("code-{code}").as_str().into(), "text"),
            Push::CancelOpen => recorder.cancel_open(),
            Push::EndTurn(cancelled) => recorder.end_turn(*cancelled),
            Push::Deny(id) => recorder.deny(&format!("call-{id}")),
            Push::Drain => events.extend(recorder.drain()),
        }
    }
    let stop = Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
    let finished = recorder.finish(stop, false);
    events.extend(finished.events);
    (finished.header, events)
}

fn written(header: &Header, events: &[Event]) -> String {
    let mut text = Vec::new();
    write_header(&mut text, header).unwrap();
    for event in events {
        write_event(&mut text, event).unwrap();
    }
    String::from_utf8(text).unwrap()
}

proptest! {
    #![proptest_config(crate::properties::tries(600))]

    #[test]
    fn whatever_is_pushed_the_trace_is_lawful(pushes in prop::collection::vec(push(), 0..60)) {
        let (header, events) = record(&pushes);
        let text = written(&header, &events);
        if let Err(broken) = laws::check(&text) {
            return Err(TestCaseError::fail(format!("{broken}\n{text}")));
        }
    }

    #[test]
    fn when_events_are_taken_out_makes_no_difference(pushes in prop::collection::vec(push(), 0..40)) {
        let undrained: Vec<Push> = pushes.iter().filter(|push| !matches!(push, Push::Drain)).cloned().collect();
        // Notices name their line, so the lines must stay the same.
        let padded: Vec<Push> = pushes.iter().map(|push| match push { Push::Drain => Push::Update { id: 99, input: 0, only_missing: true }, other => other.clone() }).collect();
        prop_assert_eq!(record(&padded).1, record(&pushes).1);
        prop_assert_eq!(record(&undrained).1.len(), record(&pushes).1.len());
    }

    #[test]
    fn a_trace_is_read_as_it_was_written(pushes in prop::collection::vec(push(), 0..40)) {
        let (header, events) = record(&pushes);
        let mut reader = Reader::new(Cursor::new(written(&header, &events))).unwrap();
        prop_assert_eq!(reader.header(), &header);
        let mut read = Vec::new();
        while let Some(event) = reader.next_event().unwrap() {
            read.push(event);
        }
        prop_assert_eq!(read, events);
    }
}

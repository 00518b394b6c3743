//! What differs by chance is no difference, what is written is read back, and what differs is all that is told.

use evals::internal::snapshot::compare::{Cell, SnapshotCellId};
use evals::internal::snapshot::diff::{Sign, differences};
use evals::internal::snapshot::normalise::Watching;
use evals::internal::snapshot::set::Several;
use evals::internal::snapshot::settings::{SnapshotSettings, SnapshotText};
use evals::internal::snapshot::{Body as Did, Item, Shape, align, form};
use evals::trace::{
    Agent, Body, CallStatus, Event, Header, Message, PermissionOption, PermissionOutcome, PermissionRequest,
    PermissionResponse, Role, Seen, Stop, StopReason, ToolCall, ToolKind, ToolResult, Usage, UsageScope,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A session, as far as it is not chance.
#[derive(Debug, Clone)]
struct Session {
    turns: Vec<Vec<Part>>,
    tokens: u64,
}

#[derive(Debug, Clone)]
enum Part {
    Says(String),
    Thinks(String),
    Step(Vec<Made>),
}

#[derive(Debug, Clone)]
struct Made {
    kind: ToolKind,
    name: Option<String>,
    input: Option<Value>,
    status: CallStatus,
    asked: Option<PermissionOutcome>,
    inner: Vec<Vec<Made>>,
}

/// What is chance.
#[derive(Debug, Clone)]
struct Chance {
    salt: u64,
    trial: String,
    version: String,
    at_ms: u64,
    usage: f64,
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-50..50i64).prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
        "[a-c:|@ \\n\\t\\r\"{}-]{0,12}".prop_map(Value::from),
        "[ab\"\\n\u{202e}\u{2066}\u{200b}\u{feff}\u{85}\u{7f}\u{1b}\u{fe0f}\u{e0041}]{0,8}".prop_map(Value::from),
        Just(json!("{WORKSPACE}/src/a.rs")),
        Just(json!("see {ID} at {TIME} on http://localhost:{PORT}/ in {UUID}")),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-c.:@ \"\\[]{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn made(depth: u32) -> BoxedStrategy<Made> {
    let kind = prop_oneof![Just(ToolKind::Read), Just(ToolKind::Edit), Just(ToolKind::Execute)];
    let status = prop_oneof![4 => Just(CallStatus::Ok), 1 => Just(CallStatus::Error), 1 => Just(CallStatus::Denied)];
    let asked = prop_oneof![
        3 => Just(None),
        1 => Just(Some(PermissionOutcome::Allowed)),
        1 => Just(Some(PermissionOutcome::Rejected))
    ];
    let inner = if depth == 0 {
        Just(Vec::new()).boxed()
    } else {
        prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(prop::collection::vec(made(depth - 1), 1..3), 1..3)].boxed()
    };
    let name = prop::option::of(prop_oneof![Just("Read".to_owned()), "[a-z :>\\n\"]{1,6}"]);
    (kind, name, prop::option::of(value()), status, asked, inner)
        .prop_map(|(kind, name, input, status, asked, inner)| Made { kind, name, input, status, asked, inner })
        .boxed()
}

fn session() -> impl Strategy<Value = Session> {
    let text = || {
        prop_oneof![
            "[ -~]{0,10}",
            "[ab\\n\u{202e}\u{200d}\u{2028}]{0,6}",
            "[a-c: |\\n]{0,10}",
            Just("took {DURATION} at {TIME}".to_owned())
        ]
    };
    let part = prop_oneof![
        1 => text().prop_map(Part::Says),
        1 => text().prop_map(Part::Thinks),
        4 => prop::collection::vec(made(2), 1..4).prop_map(Part::Step)
    ];
    (prop::collection::vec(prop::collection::vec(part, 0..5), 1..3), 0..5000u64)
        .prop_map(|(turns, tokens)| Session { turns, tokens })
}

fn chance() -> impl Strategy<Value = Chance> {
    (any::<u64>(), "[A-Za-z0-9]{6}", "[0-9]\\.[0-9]{2}\\.[0-9]{3}", 0..100_000u64, 0.6..1.9f64)
        .prop_map(|(salt, trial, version, at_ms, usage)| Chance { salt, trial, version, at_ms, usage })
}

/// Makes a Trace of a session, with what chance adds to it.
struct Making<'a> {
    chance: &'a Chance,
    events: Vec<Event>,
    calls: u64,
    steps: u64,
}

impl Making<'_> {
    fn push(&mut self, body: Body, parent: Option<&str>) {
        let seq = self.events.len() as u64;
        let at_ms = self.chance.at_ms + seq * (1 + self.chance.salt % 7);
        self.events.push(Event { seq, at_ms, body, parent: parent.map(str::to_owned), host: false });
    }

    fn random(&self, n: u64) -> u64 {
        (self.chance.salt ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11
    }

    fn filled(&self, text: &str) -> String {
        let n = self.random(1);
        text.replace("{WORKSPACE}", &self.cwd())
            .replace("{ID}", &format!("toolu_0{}Ab{n:08}", n % 10))
            .replace("{TIME}", &format!("2026-0{}-1{}T0{}:1{}:33.{}Z", n % 9 + 1, n % 9, n % 8, n % 7, n % 999))
            .replace("{PORT}", &(10_000 + n % 50_000).to_string())
            .replace("{DURATION}", &format!("{}.{}s", n % 90, n % 1000))
            .replace("{UUID}", &format!("{:08x}-1234-4abc-9def-{:012x}", n & 0xffff_ffff, n & 0xffff_ffff_ffff))
    }

    fn cwd(&self) -> String {
        format!("/tmp/evals-run-{}-0/trial-{}/workspace", self.chance.salt % 30_000, self.chance.trial)
    }

    fn input(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.filled(text).into(),
            Value::Array(list) => list.iter().map(|it| self.input(it)).collect(),
            Value::Object(map) => map.iter().map(|(key, it)| (key.clone(), self.input(it))).collect(),
            other => other.clone(),
        }
    }

    /// The calls of a step in any order, their results in another one, and what their sub-agents do in between.
    fn step(&mut self, calls: &[Made], parent: Option<&str>) {
        let step = self.steps;
        self.steps += 1;
        let mut order: Vec<usize> = (0..calls.len()).collect();
        order.sort_by_key(|n| self.random(*n as u64 + step));
        let ids: Vec<String> = calls.iter().map(|_| self.id()).collect();
        for n in &order {
            let Made { kind, name, input, asked, .. } = &calls[*n];
            let input = input.as_ref().map(|input| self.input(input));
            let call = ids[*n].clone();
            let (kind, name) = (*kind, name.clone());
            self.push(
                Body::ToolCall(ToolCall {
                    call: call.clone(),
                    step,
                    kind,
                    name,
                    title: None,
                    input,
                    without_input: false,
                    unknown_kind: false,
                    locations: Vec::new(),
                    cwd: None,
                }),
                parent,
            );
            if let Some(outcome) = *asked {
                let request = format!("r-{call}");
                let options =
                    vec![PermissionOption { option: "x".into(), kind: "allow_once".into(), label: String::new() }];
                self.push(
                    Body::PermissionRequest(PermissionRequest {
                        call: call.clone(),
                        request: request.clone(),
                        options,
                        asked: None,
                    }),
                    parent,
                );
                let response = PermissionResponse {
                    call,
                    request,
                    outcome,
                    decided: None,
                    option: None,
                    policy: None,
                    rule: None,
                    reason: None,
                    updated_input: None,
                };
                self.push(Body::PermissionResponse(response), parent);
            }
        }
        // Sub-agents take turns.
        let longest = calls.iter().map(|call| call.inner.len()).max().unwrap_or(0);
        for round in 0..longest {
            order.sort_by_key(|n| self.random(*n as u64 + 77 + round as u64));
            for n in order.clone() {
                if let Some(inner) = calls[n].inner.get(round) {
                    self.step(inner, Some(&ids[n]));
                }
            }
        }
        order.sort_by_key(|n| self.random(*n as u64 + 991));
        for n in order {
            let status = calls[n].status;
            let output = Some(self.filled("{TIME} {UUID}"));
            let result = ToolResult { status, output, ..ToolResult::unfinished(&ids[n]) };
            self.push(Body::ToolResult(result), parent);
        }
    }

    /// A call whose result holds values of the environment.
    fn facts(&mut self, facts: &str) {
        let (call, step) = (self.id(), self.steps);
        self.steps += 1;
        let (kind, name, input) = (ToolKind::Execute, Some("facts".to_owned()), None);
        let made = ToolCall {
            call: call.clone(),
            step,
            kind,
            name,
            title: None,
            input,
            without_input: false,
            unknown_kind: false,
            locations: Vec::new(),
            cwd: None,
        };
        self.push(Body::ToolCall(made), None);
        let output = Some(self.filled(facts));
        self.push(
            Body::ToolResult(ToolResult { status: CallStatus::Ok, output, ..ToolResult::unfinished(&call) }),
            None,
        );
    }

    fn id(&mut self) -> String {
        self.calls += 1;
        format!("call-{}-{:08x}", self.calls, self.random(self.calls + 5) & 0xffff_ffff)
    }
}

fn shape(session: &Session, chance: &Chance, text: SnapshotText) -> Shape {
    let mut making = Making { chance, events: Vec::new(), calls: 0, steps: 0 };
    // What the environment made is used from here on.
    let facts = "id: {ID}\nnow {TIME}\nlistening on http://localhost:{PORT}/ as {UUID}, after {DURATION}";
    making.facts(facts);
    for parts in &session.turns {
        let message = |role, text: String| Body::Message(Message { role, text, attachments: Vec::new() });
        making.push(message(Role::User, "Do it.".to_owned()), None);
        for part in parts {
            match part {
                Part::Says(text) => making.push(message(Role::Agent, making.filled(text)), None),
                Part::Thinks(text) => making.push(Body::Thought { text: making.filled(text) }, None),
                Part::Step(calls) => making.step(calls, None),
            }
            if chance.salt.is_multiple_of(3) {
                making.push(
                    Body::Notice {
                        code: "late_update".into(),
                        text: "x".into(),
                        line: Some(chance.salt),
                        lost: None,
                        action: None,
                        link: None,
                    },
                    None,
                );
            }
        }
    }
    let tokens = (session.tokens as f64 * chance.usage) as u64;
    making.push(Body::Usage(Usage { total_tokens: Some(tokens), ..Usage::of(UsageScope::Session) }), None);
    let stop = Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
    making.push(Body::Stop(stop), None);
    let mut header = Header::new("acp", Seen { tracing: true, interaction: true });
    header.cwd = Some(making.cwd());
    header.agent = Some(Agent { name: "x".into(), version: Some(chance.version.clone()) });
    let mut watching = Watching::default();
    making.events.iter().for_each(|event| watching.event(event));
    watching.shape(&header, &SnapshotSettings { text, ..SnapshotSettings::default() })
}

const SAME: Chance = Chance { salt: 1, trial: String::new(), version: String::new(), at_ms: 0, usage: 1.0 };

fn cell(shapes: Vec<Shape>, several: Several, text: SnapshotText) -> Cell {
    let shapes = shapes.into_iter().enumerate().map(|(n, shape)| (n.to_string(), shape)).collect();
    let id = SnapshotCellId { case: "a: b".into(), harness: "x\"y".into(), model: Some("5".into()), variant: None };
    Cell { id, text, several, shapes, ..Cell::default() }
}

fn text() -> impl Strategy<Value = SnapshotText> {
    prop_oneof![Just(SnapshotText::None), Just(SnapshotText::Full), Just(SnapshotText::Digest)]
}

proptest! {
    #![proptest_config(crate::properties::tries(128))]

    #[test]
    fn what_differs_by_chance_is_no_difference(session in session(), one in chance(), other in chance(), text in text()) {
        let accepted = shape(&session, &Chance { usage: 1.0, ..one }, text);
        let now = shape(&session, &other, text);
        let found = differences(&accepted, &now);
        prop_assert_eq!(&found.differences, &[]);
        prop_assert_eq!(&accepted.items, &now.items);
    }

    #[test]
    fn what_is_written_is_read_back(
        sessions in prop::collection::vec(session(), 1..4), chance in chance(), text in text(), core in any::<bool>()
    ) {
        let shapes: Vec<Shape> = sessions.iter().map(|session| shape(session, &chance, text)).collect();
        let several = if core { Several::Core } else { Several::Set };
        let cell = cell(shapes, several, text);
        let accepted = cell.accepted(None, false);
        let written = form::write(&accepted);
        let read = form::read(&written);
        prop_assert_eq!(read.as_ref(), Ok(&accepted), "{}", written);
        let hidden = |c: char| !"\n\t".contains(c) && (c.is_control() || "\u{202e}\u{2066}\u{200b}\u{200d}\u{2028}\u{feff}\u{fe0f}\u{e0041}".contains(c));
        prop_assert!(!written.contains(hidden), "{:?}", written);
        // As a checkout with other line ends has it, too.
        let crlf = form::read(&written.replace('\n', "\r\n"));
        prop_assert_eq!(crlf.as_ref(), Ok(&accepted));
        // What was just accepted is as accepted.
        let compared = cell.compared(Some(&accepted), String::new(), true);
        prop_assert!(!compared.differs, "{:?}\n{}", compared, written);
        // Accepting the same again changes nothing, and neither does accepting it beside.
        prop_assert!(form::write(&cell.accepted(Some(accepted.clone()), false)) == written);
        prop_assert!(!cell.compared(Some(&cell.accepted(Some(accepted), true)), String::new(), true).differs);
    }

    #[test]
    fn an_alignment_holds_both_sides_whole_and_in_order(one in session(), other in session()) {
        let [one, other] = [one, other].map(|session| Session { tokens: 0, ..session });
        let (one, other) = (shape(&one, &SAME, SnapshotText::Full), shape(&other, &SAME, SnapshotText::Full));
        let pairs = align::items(&one.items, &other.items);
        let old: Vec<usize> = pairs.iter().filter_map(|pair| pair.0).collect();
        let new: Vec<usize> = pairs.iter().filter_map(|pair| pair.1).collect();
        prop_assert_eq!(old, (0..one.items.len()).collect::<Vec<_>>());
        prop_assert_eq!(new, (0..other.items.len()).collect::<Vec<_>>());
        // It is empty where both are the same, and only there.
        prop_assert_eq!(differences(&one, &other).differences.is_empty(), one.items == other.items);
        prop_assert_eq!(differences(&one, &one).differences, []);
        // What one way is added is missing the other way.
        let signs = |old: &Shape, new: &Shape, sign| {
            differences(old, new).differences.iter().filter(|it| it.sign == sign).count()
        };
        if signs(&one, &other, Sign::Changed) == 0 && signs(&other, &one, Sign::Changed) == 0 {
            let balance = |a: &Shape, b: &Shape| signs(a, b, Sign::Added) as i64 - signs(a, b, Sign::Removed) as i64;
            prop_assert_eq!(balance(&one, &other), -balance(&other, &one));
        }
    }

    #[test]
    fn one_call_more_is_the_only_difference(session in session(), step in any::<prop::sample::Index>(), call in made(0)) {
        let before = shape(&session, &SAME, SnapshotText::None);
        let mut call = call;
        call.name = Some("Added".to_owned());
        let mut places = Vec::new();
        for (turn, parts) in session.turns.iter().enumerate() {
            places.extend((0..=parts.len()).map(|at| (turn, at)));
        }
        let (turn, at) = places[step.index(places.len())];
        let mut more = session;
        more.turns[turn].insert(at, Part::Step(vec![call]));
        let found = differences(&before, &shape(&more, &SAME, SnapshotText::None)).differences;
        prop_assert_eq!(found.len(), 1, "{:#?}", found);
        prop_assert!(found[0].sign == Sign::Added && found[0].what.ends_with("Added"), "{:?}", found);
    }
}

#[test]
fn long_sessions_are_compared_in_no_time() {
    let read = |n: usize| Made {
        kind: ToolKind::Read,
        name: Some("Read".into()),
        input: Some(json!({"path": format!("file-{n}")})),
        status: CallStatus::Ok,
        asked: None,
        inner: Vec::new(),
    };
    let session = |count: usize, other: usize| Session {
        turns: vec![(0..count).map(|n| Part::Step(vec![read(n * other % count)])).collect()],
        tokens: 0,
    };
    let begun = std::time::Instant::now();
    let one = shape(&session(5_000, 1), &SAME, SnapshotText::None);
    let other = shape(&session(5_000, 3), &SAME, SnapshotText::None);
    let found = differences(&one, &other);
    assert!(!found.differences.is_empty() && begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    let wide = Session { turns: vec![vec![Part::Step((0..3_000).map(read).collect())]], tokens: 0 };
    let wider = Session { turns: vec![vec![Part::Step((1_000..4_000).map(read).collect())]], tokens: 0 };
    let found = differences(&shape(&wide, &SAME, SnapshotText::None), &shape(&wider, &SAME, SnapshotText::None));
    assert!(found.same == 2_003, "{}", found.same);
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn a_core_is_what_all_trials_have_in_common() {
    let call = |name: &str, path: &str| Made {
        kind: ToolKind::Read,
        name: Some(name.into()),
        input: Some(json!({"path": path})),
        status: CallStatus::Ok,
        asked: None,
        inner: Vec::new(),
    };
    let trial = |steps: &[&[&str]]| {
        let step = |paths: &&[&str]| Part::Step(paths.iter().map(|path| call("Read", path)).collect());
        let session = Session { turns: vec![steps.iter().map(step).collect()], tokens: 10 };
        shape(&session, &SAME, SnapshotText::None)
    };
    let shapes = vec![
        trial(&[&["a"], &["b", "c"], &["d"]]),
        trial(&[&["a"], &["x"], &["c", "b"], &["e"]]),
        trial(&[&["a"], &["b"]]),
    ];
    let cell = cell(shapes, Several::Core, SnapshotText::None);
    let accepted = cell.accepted(None, false);
    let steps: Vec<&Item> =
        accepted.shapes[0].shape.items.iter().filter(|it| matches!(it.body, Did::Step(_))).collect();
    assert_eq!((accepted.shapes.len(), accepted.shapes[0].of, steps.len()), (1, 3, 3), "{}", form::write(&accepted));
    // Whatever else a trial does, it shows the core; one that leaves a part of it out does not.
    assert_eq!(accepted.compared(&trial(&[&["y"], &["a"], &["b", "z"], &["y"]])).differences, []);
    let found = accepted.compared(&trial(&[&["a"], &["z"]])).differences;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].lines.iter().any(|line| line.mark == '-' && line.text == "path: b"), "{found:?}");
}

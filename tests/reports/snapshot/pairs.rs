//! The tables of `docs/snapshot-pairs.md`, and the same by simulation: chance is no difference, and a choice always is one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use evals::internal::snapshot::Shape;
use evals::internal::snapshot::form;
use evals::internal::snapshot::normalise::Watching;
use evals::internal::snapshot::set::{Accepted, AcceptedShape};
use evals::internal::snapshot::settings::{Normalise, SnapshotSettings, SnapshotText};
use evals::trace::{
    Body, CallStatus, Event, Header, Message, Role, Seen, Stop, StopReason, ToolCall, ToolKind, ToolResult,
};
use serde_json::{Value, json};

const FOLDERS: [&str; 2] = ["/tmp/evals-run-11-0/trial-VMA2VH/workspace", "/tmp/evals-run-12-3/trial-k2Xp9Q/workspace"];

/// A session as the page writes it.
#[derive(Default)]
struct Session {
    events: Vec<Event>,
    calls: u64,
    steps: u64,
}

impl Session {
    fn push(&mut self, body: Body) {
        let seq = self.events.len() as u64;
        self.events.push(Event { seq, at_ms: seq, body, parent: None, host: false });
    }

    fn message(&mut self, role: Role, text: &str) {
        self.push(Body::Message(Message { role, text: text.to_owned(), attachments: Vec::new() }));
    }

    /// Calls made at once, each with a name, an input and what it returned; with `backwards` they end in the other order.
    fn step(&mut self, calls: &[(String, Option<Value>, Option<String>)], backwards: bool) {
        let step = self.steps;
        self.steps += 1;
        let mut results = Vec::new();
        for (name, input, output) in calls {
            self.calls += 1;
            let call = format!("call_{}_{:08x}", self.calls, self.calls * 2_654_435_761 % 0xffff_ffff);
            self.push(Body::ToolCall(ToolCall {
                call: call.clone(),
                step,
                kind: ToolKind::Execute,
                name: Some(name.clone()),
                title: None,
                input: input.clone(),
                without_input: false,
                unknown_kind: false,
                locations: Vec::new(),
                cwd: None,
            }));
            results.push(ToolResult {
                status: CallStatus::Ok,
                output: output.clone(),
                ..ToolResult::unfinished(&call)
            });
        }
        if backwards {
            results.reverse();
        }
        results.into_iter().for_each(|result| self.push(Body::ToolResult(result)));
    }

    fn shape(mut self, folder: &str, settings: &SnapshotSettings) -> Shape {
        let stop =
            Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit: None };
        self.push(Body::Stop(stop));
        let mut header = Header::new("acp", Seen { tracing: true, interaction: true });
        header.cwd = Some(folder.to_owned());
        let mut watching = Watching::default();
        self.events.iter().for_each(|event| watching.event(event));
        watching.shape(&header, settings)
    }
}

/// Reads what stands between backticks, up to the end.
fn ticked(text: &str) -> &str {
    text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or_else(|| panic!("no backticks: {text}"))
}

fn read(cell: &str, backwards: bool) -> Session {
    let mut session = Session::default();
    let mut parts: Vec<&str> = cell.trim().split(" → ").collect();
    let prompt = parts.first().and_then(|part| part.strip_prefix("prompt ")).map(ticked);
    session.message(Role::User, prompt.unwrap_or("Do it."));
    if prompt.is_some() {
        parts.remove(0);
    }
    for part in parts {
        if let Some(text) = part.strip_prefix("says ") {
            session.message(Role::Agent, ticked(text));
            continue;
        }
        let call = |call: &str| {
            let (call, output) = match call.split_once(" prints ") {
                Some((call, output)) => (call, Some(ticked(output).replace('⏎', "\n"))),
                None => (call, None),
            };
            if let Some(name) = call.strip_prefix("tool ") {
                return (ticked(name).to_owned(), None, output);
            }
            let text = ticked(call);
            match text.starts_with("{\"") {
                true => ("use".to_owned(), Some(serde_json::from_str(text).unwrap()), output),
                false => ("shell".to_owned(), Some(json!({"command": text})), output),
            }
        };
        session.step(&part.split(" + ").map(call).collect::<Vec<_>>(), backwards);
    }
    session
}

fn settings(rule: &str) -> SnapshotSettings {
    let normalise = [(r"build-\d+", "build-{n}"), (r"seed=\d+", "seed=N"), (r"(?P<who>u|v)#\d+", "${who}#{nr}")];
    let normalise = normalise.map(|(regex, with)| Normalise { regex: regex.parse().unwrap(), with: with.to_owned() });
    let of_case = rule == "Rules of the case";
    SnapshotSettings {
        text: if rule == "Texts" { SnapshotText::Full } else { SnapshotText::None },
        normalise: if of_case { normalise.to_vec() } else { Vec::new() },
        ..SnapshotSettings::default()
    }
}

fn shown(shape: &Shape) -> String {
    let known = AcceptedShape { shape: shape.clone(), seen: 1, of: 1 };
    form::write(&Accepted { shapes: vec![known], ..Accepted::default() })
}

#[test]
fn every_pair_of_the_page_is_told_apart_or_is_not() {
    let page = fs::read_to_string("docs/snapshot-pairs.md").unwrap();
    let (mut rule, mut different, mut counts, mut wrong) = ("", false, BTreeMap::new(), String::new());
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            different = heading.ends_with(": different");
            assert!(different || heading.ends_with(": the same"), "{heading}");
        } else if let Some(heading) = line.strip_prefix("## ") {
            rule = heading;
        }
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else { continue };
        let (one, other) = cells.split_once(" | ").unwrap();
        if one == "first session" || one == "---" {
            continue;
        }
        let settings = settings(rule);
        // With texts left out a session of texts alone would show nothing.
        let one = read(one, false).shape(FOLDERS[0], &settings);
        let other = read(other, true).shape(FOLDERS[1], &settings);
        *counts.entry((rule, different)).or_insert(0) += 1;
        if (one.items != other.items) != different {
            let _ = writeln!(
                wrong,
                "{rule}, {}: {cells}\n{}\n{}",
                if different { "different" } else { "the same" },
                shown(&one),
                shown(&other)
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(counts.len() >= 30 && counts.values().all(|count| *count >= 10), "{counts:?}");
}

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % below
    }

    fn some(&mut self, signs: &str, count: usize) -> String {
        (0..count).map(|_| char::from(signs.as_bytes()[self.below(signs.len() as u64) as usize])).collect()
    }
}

const HEX: &str = "0123456789abcdef";
const ALL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// What produces values: a command, what it prints around each value, and how a later command uses one.
const SOURCES: [(&str, &str, &str); 9] = [
    ("uuidgen", "uuid", "get "),
    ("git log --oneline", "hash7", "git show "),
    ("git log", "hash40", "git revert "),
    ("serve --port 0", "port", "curl localhost:"),
    ("./a & echo $!", "pid", "kill "),
    ("mktemp -d", "tmp", "ls "),
    ("date -Is", "time", "grep -c "),
    ("deploy", "pod", "kubectl logs web-"),
    ("docker ps -q", "container", "docker stop "),
];

/// One value, and the line in which a program prints it.
fn value(kind: &str, random: &mut Random) -> (String, String) {
    match kind {
        "uuid" => {
            let parts: Vec<String> = [8, 4, 4, 4, 12].map(|n| random.some(HEX, n)).to_vec();
            let value = parts.join("-");
            (value.clone(), value)
        }
        "hash7" => {
            let value = random.some(HEX, 7);
            (value.clone(), format!("{value} Fix 42 things"))
        }
        "hash40" => {
            let value = random.some(HEX, 40);
            // Git takes the first figures.
            (value[..10].to_owned(), format!("commit {value}"))
        }
        "port" => {
            let value = (32_768 + random.below(28_000)).to_string();
            (value.clone(), format!("Listening on port {value}"))
        }
        "pid" => {
            let value = (2 + random.below(60_000)).to_string();
            (value.clone(), value)
        }
        "tmp" => {
            let value = format!("/tmp/tmp.{}", random.some(ALL, 10));
            (value.clone(), value)
        }
        "time" => {
            let value = format!(
                "2026-11-{}T1{}:{}:{}+00:00",
                10 + random.below(19),
                random.below(9),
                10 + random.below(49),
                10 + random.below(49)
            );
            (value.clone(), value)
        }
        "pod" => {
            let value = format!("{}a1b2-{}", random.some(HEX, 6), random.some("bcdfghjklmnpqrstvwxz2456789", 5));
            (value.clone(), format!("pod/web-{value} created"))
        }
        _ => {
            let value = random.some(HEX, 12);
            (value.clone(), value)
        }
    }
}

/// What an agent decides: which sources it asks for how many values, and which of them it uses in which way.
#[derive(Debug, Clone, PartialEq)]
enum Choice {
    Ask(usize, usize),
    Use(usize, &'static str),
    Word(u64),
}

fn choices(random: &mut Random) -> Vec<Choice> {
    let (mut choices, mut values) = (Vec::new(), 0);
    for _ in 0..(3 + random.below(12)) {
        choices.push(match random.below(4) {
            0 | 1 if values > 0 => {
                Choice::Use(random.below(values) as usize, if random.below(2) == 0 { " -v" } else { "" })
            }
            2 => Choice::Word(random.below(1_000_000)),
            _ => {
                let count = 1 + random.below(3);
                values += count;
                Choice::Ask(random.below(SOURCES.len() as u64) as usize, count as usize)
            }
        });
    }
    choices
}

fn play(choices: &[Choice], seed: u64) -> Shape {
    let mut random = Random(seed);
    let mut session = Session::default();
    session.message(Role::User, "Do it.");
    let mut values: Vec<(String, &str)> = Vec::new();
    for choice in choices {
        let (command, output) = match choice {
            Choice::Ask(source, count) => {
                let (command, kind, how) = SOURCES[*source];
                let mut lines = Vec::new();
                while lines.len() < *count {
                    let (value, line) = value(kind, &mut random);
                    if values.iter().all(|known| known.0 != value) {
                        values.push((value, how));
                        lines.push(line);
                    }
                }
                (command.to_owned(), Some(lines.join("\n")))
            }
            Choice::Use(n, option) => (format!("{}{}{option}", values[*n].1, values[*n].0), None),
            Choice::Word(n) => (format!("echo resp_status_{n} | head -n {n}"), None),
        };
        session.step(&[("shell".to_owned(), Some(json!({"command": command})), output)], false);
    }
    let folder = format!("/tmp/evals-run-{}-0/trial-{}/workspace", random.below(90_000), random.some(ALL, 6));
    session.shape(&folder, &SnapshotSettings::default())
}

#[test]
fn environments_make_no_difference_and_one_other_choice_always_does() {
    environments_make_no_difference(20);
}

#[test]
#[ignore = "slow: 4,000 sessions"]
fn two_hundred_environments_make_no_difference_and_one_other_choice_always_does() {
    environments_make_no_difference(200);
}

fn environments_make_no_difference(environments: u64) {
    let mut random = Random(7);
    let mut compared = 0;
    for session in 0..20 {
        let choices = choices(&mut random);
        let accepted = play(&choices, 1);
        for seed in 2..2 + environments {
            let now = play(&choices, seed * 7919 + session);
            assert!(accepted.items == now.items, "{choices:?}\n{}\n{}", shown(&accepted), shown(&now));
        }
        let values: usize = choices.iter().map(|it| if let Choice::Ask(_, count) = it { *count } else { 0 }).sum();
        for n in 0..choices.len() {
            let mut other = choices.clone();
            let before: usize =
                choices[..n].iter().map(|it| if let Choice::Ask(_, count) = it { *count } else { 0 }).sum();
            other[n] = match &choices[n] {
                Choice::Use(of, option) if before > 1 && values > 1 => Choice::Use((of + 1) % before, option),
                Choice::Use(of, option) => Choice::Use(*of, if option.is_empty() { " -v" } else { "" }),
                Choice::Word(word) => Choice::Word(word + 1),
                Choice::Ask(..) => continue,
            };
            let now = play(&other, 977 * n as u64 + session);
            assert!(accepted.items != now.items, "{choices:?}\n{other:?}\n{}", shown(&accepted));
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
}

/// Returns the time in seconds for which this thread ran, or `None` if the system does not report it.
fn worked() -> Option<f64> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    times.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}

/// How long the Shape of a session takes in which each call uses what the one before it printed.
fn seconds(calls: usize) -> f64 {
    let mut session = Session::default();
    session.message(Role::User, "Do it.");
    let mut random = Random(3);
    let mut last = "none".to_owned();
    for n in 0..calls {
        let input = json!({"command": format!("get {last}; sed -n {n}p a.txt")});
        last = value("uuid", &mut random).0;
        let output = format!("made /tmp/tmp.{} {last}", random.some(ALL, 10));
        session.step(&[("shell".to_owned(), Some(input), Some(output))], false);
    }
    let (shape, seconds) = timed(session);
    assert_eq!(shape.done(), calls);
    assert!(shown(&shape).contains(&format!("get {{uuid:{}}}", calls - 1)));
    seconds
}

/// How long the Shape of a session takes whose calls are all made at once.
fn seconds_at_once(calls: usize) -> f64 {
    let mut session = Session::default();
    session.message(Role::User, "Do it.");
    let mut random = Random(3);
    let made = (0..calls).map(|n| {
        let input = json!({"command": format!("sed -n {n}p a.txt")});
        let output = format!("made /tmp/tmp.{} {}", random.some(ALL, 10), value("uuid", &mut random).0);
        ("shell".to_owned(), Some(input), Some(output))
    });
    let made: Vec<_> = made.collect();
    // They end in the other order.
    session.step(&made, true);
    let (shape, seconds) = timed(session);
    assert_eq!(shape.done(), calls);
    seconds
}

/// Returns the Shape of a session, and how long it took.
fn timed(session: Session) -> (Shape, f64) {
    let (begun, before) = (std::time::Instant::now(), worked());
    let shape = session.shape(FOLDERS[0], &SnapshotSettings::default());
    let own = before.and_then(|before| Some(worked()? - before));
    (shape, own.unwrap_or_else(|| begun.elapsed().as_secs_f64()))
}

#[test]
fn the_work_grows_with_the_length_of_a_session_and_not_with_its_square() {
    // Eight times the calls take eight times as long, and 64 times if each looked at all before it. The best of several tries
    // is compared, for other programs may run beside.
    let grows_linearly = |how: &str, seconds: fn(usize) -> f64| {
        let best = |calls| (0..3).map(|_| seconds(calls)).fold(f64::INFINITY, f64::min);
        let (short, long) = (best(500), best(4_000));
        assert!(long < 24.0 * short, "{how}: 500 calls take {short} s, 4,000 take {long} s");
    };
    grows_linearly("in a step each", seconds);
    grows_linearly("at once", seconds_at_once);
}

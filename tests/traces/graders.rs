//! Every grader against small traces: value, verdict and evidence.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use evals::internal::grader::{Evidence, Grader, GraderEntry, Grading, Library, expand};
use evals::internal::harness::Manifest;
use evals::internal::result::Metrics;
use evals::internal::shell::Shell;
use evals::internal::workspace::change::Change;
use evals::trace::amount::Amount;
use evals::trace::usage::{Measure, UsageTotal};
use evals::trace::{Body, Event, Header, Stop, StopReason, Usage, UsageScope, jsonl::Reader};
use evals::{GradeRecord, Outcome};

mod answers;
mod asking;
mod bridges;
mod conduct;
mod docs;
mod doubts;
mod evidence;
mod expr;
mod laws;
mod lines;
mod places;
mod reading;
mod rules;
mod runs;
mod shipped;
mod skills;
mod speakers;
mod streams;
mod sub_agents;
mod totals;
mod trajectory;
mod unclear;
mod unshown_outcomes;
mod unshown_tools;

const HEADER: &str = r#"{"type":"trace","version":1,"adapter":"acp","cwd":"/w","capabilities":{"tracing":true,"interaction":true},"model":{"effective":"claude-opus-4-8"}}"#;

/// A session: reads, is refused a deletion, edits, and runs a failing and a good command. Events 0 to 15.
const SESSION: &str = r#"
{"seq":0,"at_ms":0,"type":"message","role":"user","text":"fix it"}
{"seq":1,"at_ms":10,"type":"tool_call","call":"r","step":0,"kind":"read","name":"Read","input":{"file_path":"/w/README.md"}}
{"seq":2,"at_ms":20,"type":"tool_result","call":"r","status":"ok","output":"text"}
{"seq":3,"at_ms":30,"type":"tool_call","call":"d","step":1,"kind":"delete","name":"Delete","input":{"path":"src/old.rs"}}
{"seq":4,"at_ms":31,"type":"permission_request","call":"d","request":"q1","options":[{"option":"n","kind":"reject_once"}]}
{"seq":5,"at_ms":32,"type":"permission_response","call":"d","request":"q1","outcome":"rejected","option":"n"}
{"seq":6,"at_ms":33,"type":"tool_result","call":"d","status":"denied"}
{"seq":7,"at_ms":40,"type":"tool_call","call":"e","step":2,"kind":"edit","name":"Edit","input":{"path":"src/lib.rs","count":2,"deep":{"a":1,"b":[1,2]}}}
{"seq":8,"at_ms":41,"type":"permission_request","call":"e","request":"q2","options":[{"option":"y","kind":"allow_once"}]}
{"seq":9,"at_ms":42,"type":"permission_response","call":"e","request":"q2","outcome":"allowed","option":"y"}
{"seq":10,"at_ms":43,"type":"tool_result","call":"e","status":"ok"}
{"seq":11,"at_ms":50,"type":"tool_call","call":"x","step":3,"kind":"execute","name":"Bash","input":{"command":"cargo test"}}
{"seq":12,"at_ms":51,"type":"tool_call","call":"y","step":3,"kind":"execute","name":"Bash","input":{"command":"cargo fmt"},"parent":"x"}
{"seq":13,"at_ms":52,"type":"tool_result","call":"y","status":"ok","parent":"x"}
{"seq":14,"at_ms":53,"type":"tool_result","call":"x","status":"error","exit_code":1}
{"seq":15,"at_ms":60,"type":"usage","scope":"turn","input_tokens":100,"output_tokens":50,"cache_read_tokens":7,"cost_usd":0.30000000000000004}
{"seq":16,"at_ms":61,"type":"message","role":"agent","text":"Done: 42  "}
{"seq":17,"at_ms":62,"type":"stop","reason":"end_turn","output":"Done: 42  "}
"#;

/// A trial to be judged.
struct Trial {
    header: Header,
    events: Vec<Event>,
    workspace: Option<PathBuf>,
    change: Option<Change>,
    duration_ms: Option<u64>,
    case_folder: PathBuf,
    /// How often the first event goes by.
    times: usize,
    /// The manifest of the harness.
    manifest: Option<Manifest>,
}

impl Trial {
    fn of(events: &str) -> Self {
        let reader = Reader::new(io::Cursor::new(format!("{HEADER}\n{events}"))).unwrap();
        let header = reader.header().clone();
        let events = reader.collect::<Result<Vec<Event>, _>>().unwrap();
        Self {
            header,
            events,
            workspace: None,
            change: None,
            duration_ms: Some(62),
            case_folder: PathBuf::new(),
            times: 1,
            manifest: None,
        }
    }

    fn of_harness(mut self, manifest: &str) -> Self {
        let manifest: Manifest = evals::internal::yaml::parse(Path::new("manifest.yaml"), manifest).unwrap();
        self.header.harness = Some(manifest.name.clone());
        self.manifest = Some(manifest);
        self
    }

    fn session() -> Self {
        Self::of(SESSION)
    }

    fn with(mut self, body: Body) -> Self {
        let last = self.events.last().unwrap().clone();
        self.events.push(Event { seq: last.seq + 1, body, parent: None, ..last });
        self
    }

    fn tracing(mut self, tracing: bool) -> Self {
        self.header.capabilities.tracing = tracing;
        self
    }

    fn interaction(mut self, interaction: bool) -> Self {
        self.header.capabilities.interaction = interaction;
        self
    }

    fn changed(mut self, created: &[&str], changed: &[&str], deleted: &[&str]) -> Self {
        let list = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        self.change = Some(Change {
            created: list(created),
            changed: list(changed),
            deleted: list(deleted),
            ..Change::default()
        });
        self
    }

    fn within(mut self, folder: &Path) -> Self {
        self.workspace = Some(folder.join("workspace"));
        self.case_folder = folder.to_path_buf();
        self
    }

    fn without_event(mut self, seq: u64) -> Self {
        self.events.retain(|event| event.seq != seq);
        self
    }

    /// What it took, as a run would write it down.
    fn metrics(&self, usage: &UsageTotal) -> Metrics {
        let seen = self.header.capabilities;
        let mut by_kind = BTreeMap::new();
        for event in &self.events {
            if let Body::ToolCall(call) = &event.body {
                *by_kind.entry(call.kind).or_insert(0) += 1;
            }
        }
        let calls: u64 = by_kind.values().sum();
        Metrics {
            measured_ms: self.duration_ms,
            tool_calls: seen.tracing.then_some(calls),
            tool_calls_by_kind: seen.tracing.then_some(by_kind),
            input_tokens: usage.input_tokens().map(Amount::value),
            cost_usd: usage.cost_usd().map(Amount::value),
            lower_bounds: [(Measure::InputTokens, usage.input_tokens().is_none_or(Amount::is_exact))]
                .into_iter()
                .chain([(Measure::CostUsd, usage.cost_usd().is_none_or(Amount::is_exact))])
                .filter_map(|(measure, is_exact)| (!is_exact).then_some(measure))
                .collect(),
            ..Metrics::default()
        }
    }

    /// Judges it with one grader.
    fn judge(&self, grader: &str) -> GradeRecord {
        let mut records = self.judge_all(&format!("[{grader}]"));
        assert_eq!(records.len(), 1);
        records.remove(0)
    }

    fn judge_all(&self, graders: &str) -> Vec<GradeRecord> {
        self.judge_with(read(graders))
    }

    fn judge_with(&self, graders: Vec<Grader>) -> Vec<GradeRecord> {
        let graders: Vec<Arc<Grader>> = graders.into_iter().map(Arc::new).collect();
        let mut grading = Grading::new(&graders, &self.header, self.manifest.as_ref());
        let mut usage = UsageTotal::default();
        let mut stop = None;
        let first = self.events.first().into_iter().cycle().take(self.times);
        for event in first.chain(self.events.iter().skip(1)) {
            grading.event(event);
            usage.event(event);
            if let Body::Stop(end) = &event.body {
                stop = Some(end.clone());
            }
        }
        let stop = stop.unwrap_or(Stop {
            reason: StopReason::Crashed,
            category: None,
            detail: None,
            output: None,
            gap: None,
            exit: None,
        });
        let metrics = self.metrics(&usage);
        let shell = Shell {
            folder: self.workspace.clone().unwrap_or_else(|| PathBuf::from("/nowhere")),
            env: BTreeMap::new(),
            ..Shell::default()
        };
        let evidence = Evidence {
            harness: "demo",
            model: None,
            arm: "default",
            header: &self.header,
            lasting_answer: grading.lasting_answer(),
            stop: &stop,
            usage: &usage,
            output: stop.output.as_deref().unwrap_or_default(),
            metrics: &metrics,
            duration_ms: self.duration_ms,
            workspace: self.workspace.as_deref(),
            change: self.change.as_ref(),
            hidden: None,
            case_folder: &self.case_folder,
            trace: None,
            patch: None,
            shell: &shell,
            judges: &evals::internal::judge::Judges::none(),
            unmasked: None,
        };
        // A trial is judged in a task of its own.
        fn sendable<T: Send>(future: T) -> T {
            future
        }
        let graded = sendable(grading.finish(&evidence));
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(graded)
    }
}

fn read(graders: &str) -> Vec<Grader> {
    let entries: Vec<GraderEntry> = serde_yaml::from_str(graders).unwrap_or_else(|error| panic!("{graders}: {error}"));
    expand(&entries, &Library::default()).unwrap()
}

/// What is expected of a grade: its value where it is scored (passed when 1), and a part of its reason.
enum Expect {
    Pass(&'static [u64]),
    /// Passed with less than all.
    Enough(f64, &'static [u64]),
    Fail(f64, &'static [u64], &'static str),
    Ungraded(&'static str),
}

use Expect::{Enough, Fail, Pass, Ungraded};

fn check(trial: &Trial, table: &[(&str, Expect)]) {
    for (grader, expected) in table {
        let grade = trial.judge(grader);
        let told = format!("{grader}: {grade:?}");
        match expected {
            Pass(evidence) => {
                assert_eq!((grade.outcome, grade.passed), (Outcome::Scored, Some(true)), "{told}");
                assert_eq!(grade.value.unwrap().get(), 1.0, "{told}");
                assert_eq!(grade.evidence, *evidence, "{told}");
                assert!(!grade.reason.is_empty(), "{told}");
            }
            Enough(value, evidence) => {
                assert_eq!((grade.outcome, grade.passed), (Outcome::Scored, Some(true)), "{told}");
                assert!((grade.value.unwrap().get() - value).abs() < 1e-9, "{told}");
                assert_eq!(grade.evidence, *evidence, "{told}");
            }
            Fail(value, evidence, reason) => {
                assert_eq!((grade.outcome, grade.passed), (Outcome::Scored, Some(false)), "{told}");
                assert!((grade.value.unwrap().get() - value).abs() < 1e-9, "{told}");
                assert_eq!(grade.evidence, *evidence, "{told}");
                assert!(grade.reason.contains(reason), "{told}");
            }
            Ungraded(reason) => {
                assert_eq!((grade.outcome, grade.passed, grade.value), (Outcome::Ungraded, None, None), "{told}");
                assert!(grade.reason.contains(reason), "{told}");
            }
        }
    }
}

#[test]
fn output() {
    let table = [
        ("output: {equals: 'Done: 42'}", Pass(&[16])),
        ("output: {equals: ['no', \"Done: 42\\n\"]}", Pass(&[16])),
        ("output: {equals: 'done: 42'}", Fail(0.0, &[16], "is not `done: 42`; it is `Done: 42`")),
        ("output: {equals: 'done: 42', ignore-case: true}", Pass(&[16])),
        ("output: {contains: 42}", Pass(&[16])),
        ("output: {contains: [42, 'Done', missing]}", Fail(2.0 / 3.0, &[16], "does not contain `missing`")),
        ("output: {not-contains: Done}", Fail(0.0, &[16], "contains `Done`, and must not")),
        ("output: {not-contains: [x, y]}", Pass(&[16])),
        ("output: {regex: '^Done: \\d+$'}", Pass(&[16])),
        ("output: {regex: '^\\d+$'}", Fail(0.0, &[16], "does not match")),
        ("output: {not-regex: '\\d+'}", Fail(0.0, &[16], "with `42`")),
        ("output: {no-secrets: true}", Pass(&[16])),
    ];
    check(&Trial::session(), &table);
    check(&Trial::session().tracing(false), &table);

    let leak = r#"{"seq":0,"type":"stop","reason":"end_turn","output":"key [redacted:API_KEY]!"}"#;
    check(
        &Trial::of(leak),
        &[
            ("output: {no-secrets: true}", Fail(0.0, &[0], "[redacted:API_KEY]")),
            ("output: {not-regex: 'sk-[a-z0-9]+'}", Ungraded("masked as `[redacted:API_KEY]`")),
            ("output: {not-contains: abc}", Ungraded("masked as `[redacted:API_KEY]`")),
            ("output: {not-contains: abc, no-secrets: true}", Fail(0.0, &[0], "[redacted:API_KEY]")),
            ("output: {not-contains: [abc, key]}", Fail(0.0, &[0], "contains `key`, and must not")),
            ("output: {contains: abc}", Fail(0.0, &[0], "does not contain `abc`")),
        ],
    );
    // What was masked because of its form may be code.
    let code = r#"{"seq":0,"type":"stop","reason":"end_turn","output":"secretKey: [redacted:secret-field]!"}"#;
    check(
        &Trial::of(code),
        &[
            ("output: {contains: 'secretKey: Uint8Array'}", Ungraded("masked as `[redacted:secret-field]`")),
            ("output: {regex: 'Uint\\d+'}", Ungraded("masked as `[redacted:secret-field]`")),
            ("output: {equals: 'secretKey: Uint8Array!'}", Ungraded("masked as `[redacted:secret-field]`")),
            ("output: {contains: secretKey}", Pass(&[0])),
        ],
    );
    let said = "{\"seq\":0,\"type\":\"message\",\"role\":\"agent\",\"text\":\"key [redacted:API_KEY]!\"}\n\
                {\"seq\":1,\"type\":\"stop\",\"reason\":\"end_turn\"}";
    check(
        &Trial::of(said),
        &[
            ("rules: [never: {event: message, text: 'sk-[a-z0-9]+'}]", Ungraded("")),
            ("rules: [never: {event: message, text: key}]", Fail(0.0, &[0], "must not happen")),
        ],
    );
    // After a change into a mode that does not ask, what was asked for still decides, and what was not is unknown.
    let mut unasked = Trial::session().interaction(false);
    unasked.header.unattended_mode = Some("auto".to_owned());
    let unknown = || Ungraded("in mode `auto` the agent does not ask for every permission");
    check(
        &unasked,
        &[
            ("permissions: {asked: [{kind: edit}]}", Pass(&[8, 9])),
            ("permissions: {asked: [{kind: execute}]}", unknown()),
            ("permissions: {not-asked: [{kind: execute}]}", unknown()),
            ("permissions: {not-asked: [{kind: execute}, {kind: delete}]}", Fail(0.0, &[4, 5], "1 time")),
            ("permissions: {allowed: [{kind: edit}], rejected: [{path: src/old.rs}]}", Pass(&[4, 5, 8, 9])),
            ("permissions: {allowed: [{kind: delete}]}", unknown()),
            ("permissions: {max: 2}", unknown()),
            ("permissions: {max: 1}", Fail(0.0, &[8], "2 requests made, at most 1")),
            ("rules: [never: {event: permission_request, kind: delete}]", Fail(0.0, &[4], "must not happen")),
            ("rules: [never: {event: permission_request, kind: fetch}]", unknown()),
            ("rules: [eventually: {event: permission_request, kind: edit}]", Pass(&[8])),
            ("rules: [eventually: {event: permission_request, kind: fetch}]", unknown()),
            ("rules: [count: {match: {event: permission_request}, max: 1}]", Fail(0.0, &[8], "at most 1")),
            ("rules: [count: {match: {event: permission_request}, max: 5}]", unknown()),
            ("rules: [count: {match: {event: permission_request}, min: 2}]", Pass(&[4, 8])),
            ("rules: [before: {first: {event: permission_request}, then: {kind: read}}]", unknown()),
            ("rules: [before: {first: {event: permission_request}, then: {kind: execute}}]", Pass(&[4])),
        ],
    );
    check(&unasked.changed(&[], &[], &[]), &[("permissions: {respected: true}", Pass(&[]))]);
    let mut broken = Trial::session().interaction(false).changed(&[], &[], &["src/old.rs"]);
    broken.header.unattended_mode = Some("auto".to_owned());
    check(&broken, &[("permissions: {respected: true}", Fail(0.0, &[4, 5], "`src/old.rs` was deleted"))]);
    let silent = r#"{"seq":0,"type":"stop","reason":"end_turn"}"#;
    let mut never = Trial::of(silent).interaction(false);
    never.header.unattended_mode = Some("auto".to_owned());
    check(&never, &[("permissions: {respected: true}", unknown())]);
    check(
        &Trial::of(silent),
        &[
            ("output: {contains: x}", Fail(0.0, &[0], "it is empty")),
            ("output: {not-contains: x}", Pass(&[0])),
            ("output: {regex: '^$'}", Pass(&[0])),
        ],
    );
}

#[test]
fn stop_and_model() {
    check(
        &Trial::session().tracing(false).interaction(false),
        &[
            ("stop: {reason: end_turn}", Pass(&[17])),
            ("stop: {reason: [refusal, end_turn]}", Pass(&[17])),
            (
                "stop: {reason: [max_turns, timed_out]}",
                Fail(0.0, &[17], "with end_turn, not with max_turns or timed_out"),
            ),
            ("model: {effective: 'claude-opus-*'}", Pass(&[])),
            ("model: {effective: claude}", Fail(0.0, &[], "`claude-opus-4-8`, which is not `claude`")),
        ],
    );
    let usage = |model: &str| {
        let report = Usage { model: Some(model.to_owned()), ..Usage::of(UsageScope::Session) };
        Trial::session().with(Body::Usage(report))
    };
    check(&usage("claude-opus-4-8"), &[("model: {effective: 'claude-opus-*'}", Pass(&[]))]);
    check(&usage("dear"), &[("model: {effective: 'claude-opus-*'}", Ungraded("usage of `dear` (event"))]);
    let mut unknown = Trial::session();
    unknown.header.model.effective = None;
    check(&unknown, &[("model: {effective: '*'}", Ungraded("did not report"))]);
}

#[test]
fn budget() {
    let session = Trial::session();
    check(
        &session,
        &[
            ("budget: {cost-usd: 0.3}", Pass(&[15])),
            ("budget: {cost-usd: 0.29}", Fail(0.0, &[15], "cost 0.3 USD, above 0.29")),
            ("budget: {tokens: 157}", Pass(&[])),
            ("budget: {tokens: 156}", Fail(0.0, &[15], "tokens 157, above 156")),
            ("budget: {input-tokens: 100, output-tokens: 49}", Fail(0.5, &[15], "output-tokens 50, above 49")),
            ("budget: {tool-calls: 5, steps: 5, turns: 1}", Pass(&[])),
            ("budget: {tool-calls: 4}", Fail(0.0, &[12], "tool-calls 5, above 4")),
            // The sub-agent's step is its own.
            ("budget: {steps: 4}", Fail(0.0, &[12], "steps 5, above 4")),
            ("budget: {turns: 0}", Fail(0.0, &[0], "turns 1, above 0")),
            ("budget: {time: 62ms}", Pass(&[17])),
            ("budget: {time: 61ms}", Fail(0.0, &[17], "above 61ms")),
        ],
    );
    check(
        &Trial::session().without_event(15),
        &[
            ("budget: {cost-usd: 1}", Ungraded("`cost-usd`")),
            ("budget: {tokens: 1}", Ungraded("`tokens`")),
            ("budget: {cost-usd: 1, tool-calls: 9}", Ungraded("`cost-usd`")),
            ("budget: {cost-usd: 1, tool-calls: 4}", Fail(0.0, &[12], "tool-calls")),
        ],
    );
    check(
        &Trial::session().tracing(false),
        &[("budget: {steps: 9}", Ungraded("`steps`")), ("budget: {turns: 1}", Pass(&[]))],
    );
    let mut untimed = Trial::session();
    untimed.header.timed = Some(false);
    check(&untimed, &[("budget: {time: 1h}", Ungraded("`time`"))]);
    check(&Trial::session().without_event(0), &[("budget: {turns: 1}", Ungraded("`turns`"))]);
}

#[test]
fn tool_calls() {
    let session = Trial::session();
    check(
        &session,
        &[
            ("tool-calls: {require: [{kind: edit, path: 'src/**'}]}", Pass(&[7])),
            (
                "tool-calls: {require: [{path: README.md}, {path: ./README.md}]}",
                Fail(0.5, &[], "needed by other entries"),
            ),
            ("tool-calls: {require: [{name: 'Ba*', count: {min: 2, max: 2}}]}", Pass(&[11, 12])),
            ("tool-calls: {require: [{name: Bash, count: {min: 3}}]}", Fail(0.0, &[], "was called 2 of 3 times")),
            ("tool-calls: {require: [{name: Bash, count: {max: 1}}]}", Fail(0.0, &[12, 13], "at most 1 allowed")),
            // A call that was denied is no call that was made, but it is an attempt.
            ("tool-calls: {require: [{kind: delete}]}", Fail(0.0, &[], "1 attempt was refused or cancelled (event 3)")),
            ("tool-calls: {require: [{kind: delete, status: denied}]}", Pass(&[3])),
            ("tool-calls: {require: [{kind: delete, status: any}]}", Pass(&[3])),
            (
                "tool-calls: {forbid: [{kind: delete}]}",
                Fail(0.0, &[3, 6], "`delete` is forbidden and was called once (event 3): delete src/old.rs"),
            ),
            ("tool-calls: {forbid: [{kind: delete, status: [ok, error]}]}", Pass(&[])),
            (
                "tool-calls: {forbid: [{command: 'rm\\b'}, {input: '\"command\":\"cargo'}]}",
                Fail(0.5, &[11, 12, 13, 14], "was called 2 times (events 11, 12)"),
            ),
            ("tool-calls: {require: [{args: {count: 2.0, deep: {b: [1, 2]}}}]}", Pass(&[7])),
            (
                "tool-calls: {require: [{args: {deep: {b: [1]}}}]}",
                Fail(
                    0.0,
                    &[],
                    "never called; the calls were: read README.md, delete src/old.rs, edit src/lib.rs, execute `cargo test`, execute `cargo fmt`",
                ),
            ),
            ("tool-calls: {require: [{kind: [execute, fetch], agent: sub}]}", Pass(&[12])),
            (
                "tool-calls: {require: [{kind: edit, agent: sub}]}",
                Fail(0.0, &[], "`edit by a sub-agent` was never called"),
            ),
            ("tool-calls: {order: [{kind: read}, {kind: edit}, {command: test}]}", Pass(&[1, 7, 11])),
            ("tool-calls: {order: [{kind: edit}, {kind: read}]}", Fail(0.0, &[7], "after event 7")),
            (
                "tool-calls: {order: [{kind: read}, {kind: delete}, {kind: edit}]}",
                Fail(0.0, &[1], "`delete` was not called"),
            ),
            ("tool-calls: {min: 4, max: 5}", Pass(&[])),
            ("tool-calls: {min: 5}", Fail(0.0, &[], "4 calls carried out, at least 5 required")),
            ("tool-calls: {max: 4}", Fail(0.0, &[12, 13], "5 calls made, at most 4")),
            ("tool-calls: {max-by-kind: {execute: 1, delete: 1}}", Fail(0.5, &[12, 13], "2 calls of kind execute")),
            ("tool-calls: {none: true}", Fail(0.0, &[1, 2, 3, 6, 7, 10, 11, 12, 13, 14], "5 calls were made")),
            (
                "tool-calls: {require: [{kind: edit}], forbid: [{kind: fetch}], max: 1}",
                Fail(2.0 / 3.0, &[3, 6, 7, 10, 11, 12, 13, 14], "2 of 3 checks held"),
            ),
        ],
    );
    check(
        &Trial::session().tracing(false),
        &[
            ("tool-calls: {none: true}", Ungraded("shows no tool calls")),
            ("tool-calls: {forbid: [{kind: delete}]}", Ungraded("shows no tool calls")),
        ],
    );
    check(
        &Trial::of(r#"{"seq":0,"type":"stop","reason":"end_turn"}"#),
        &[
            ("tool-calls: {none: true}", Pass(&[])),
            ("tool-calls: {require: [{kind: edit}]}", Fail(0.0, &[], "there were no calls")),
        ],
    );
}

#[test]
fn a_call_without_a_result_is_unfinished() {
    let events = r#"
{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"edit","input":{"path":"a"}}
{"seq":1,"type":"tool_call","call":"b","step":0,"kind":"read","locations":[{"path":"/w/b"}]}
{"seq":2,"type":"tool_result","call":"b","status":"ok"}
"#;
    check(
        &Trial::of(events),
        &[
            ("tool-calls: {require: [{kind: edit, status: unfinished}, {kind: read, path: b}]}", Pass(&[0, 1])),
            ("tool-calls: {forbid: [{kind: edit}]}", Fail(0.0, &[0], "edit a")),
        ],
    );
}

#[test]
fn a_policy_that_changed_the_input_is_what_counts() {
    let events = r#"
{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"execute","input":{"command":"rm -rf /"}}
{"seq":1,"type":"permission_request","call":"a","request":"q","options":[]}
{"seq":2,"type":"permission_response","call":"a","request":"q","outcome":"allowed","updated_input":{"command":"ls"}}
{"seq":3,"type":"tool_result","call":"a","status":"ok"}
"#;
    check(
        &Trial::of(events),
        &[
            ("tool-calls: {forbid: [{input: 'rm -rf'}]}", Pass(&[])),
            ("permissions: {allowed: [{command: '^ls$'}]}", Pass(&[1, 2])),
        ],
    );
}

#[test]
fn permissions() {
    check(
        &Trial::session().changed(&[], &["src/lib.rs"], &[]),
        &[
            ("permissions: {asked: [{kind: edit}, {kind: delete}]}", Pass(&[4, 5, 8, 9])),
            (
                "permissions: {asked: [{kind: execute}]}",
                Fail(
                    0.0,
                    &[],
                    "never asked for; the requests were: delete src/old.rs (rejected), edit src/lib.rs (allowed)",
                ),
            ),
            ("permissions: {not-asked: [{kind: execute}]}", Pass(&[])),
            ("permissions: {not-asked: [{path: '**/*.rs'}]}", Fail(0.0, &[4, 5, 8, 9], "2 times")),
            ("permissions: {allowed: [{kind: edit}], rejected: [{path: src/old.rs}]}", Pass(&[4, 5, 8, 9])),
            ("permissions: {allowed: [{kind: delete}]}", Fail(0.0, &[], "never asked for and allowed")),
            ("permissions: {rejected: [{kind: edit}]}", Fail(0.0, &[], "never asked for and rejected")),
            ("permissions: {max: 2}", Pass(&[])),
            ("permissions: {max: 1}", Fail(0.0, &[8], "2 requests made, at most 1")),
            ("permissions: {respected: true}", Pass(&[])),
        ],
    );
    check(
        &Trial::session().changed(&[], &[], &["src/old.rs"]),
        &[("permissions: {respected: true}", Fail(0.0, &[4, 5], "`src/old.rs` was deleted"))],
    );
    check(&Trial::session(), &[("permissions: {respected: true}", Ungraded("not known"))]);
    check(&Trial::session().interaction(false), &[("permissions: {max: 9}", Ungraded("no way to ask"))]);
    let silent = r#"{"seq":0,"type":"stop","reason":"end_turn"}"#;
    check(
        &Trial::of(silent),
        &[
            ("permissions: {asked: [{kind: edit}]}", Fail(0.0, &[], "there were no requests")),
            ("permissions: {respected: true}", Pass(&[])),
        ],
    );
}

#[test]
fn a_rejection_is_respected_or_not() {
    let session = |command: &str, status: &str| {
        Trial::of(&format!(
            r#"
{{"seq":0,"type":"tool_call","call":"a","step":0,"kind":"execute","input":{{"command":"git push","directory":"/w"}}}}
{{"seq":1,"type":"permission_request","call":"a","request":"q","options":[]}}
{{"seq":2,"type":"permission_response","call":"a","request":"q","outcome":"rejected"}}
{{"seq":3,"type":"tool_result","call":"a","status":"denied"}}
{{"seq":4,"type":"tool_call","call":"b","step":1,"kind":"execute","input":{{"command":"{command}","directory":"/w"}}}}
{{"seq":5,"type":"tool_result","call":"b","status":"{status}"}}
"#
        ))
    };
    let grader = "permissions: {respected: true}";
    check(
        &session("git push", "ok"),
        &[(grader, Fail(0.0, &[1, 2, 4, 5], "execute `git push` was rejected (event 2)"))],
    );
    check(&session("git push", "error"), &[(grader, Fail(0.0, &[1, 2, 4, 5], "(event 4)"))]);
    let kept = |command: &str, status: &str| session(command, status).changed(&[], &[], &[]);
    check(&kept("git push", "denied"), &[(grader, Pass(&[]))]);
    check(&kept("git status", "ok"), &[(grader, Pass(&[]))]);
    // What a shell reads as the rejected command, and a program that the line does not show.
    for command in ["X=git; $X push", "$(which git) push", "$TOOL push"] {
        check(&kept(command, "ok"), &[(grader, Ungraded("whether a command that was rejected before was run"))]);
    }
    // Without the workspace's change the calls alone decide.
    check(&session("git status", "ok"), &[(grader, Pass(&[]))]);
}

#[test]
fn diff() {
    let trial = Trial::session().changed(&["src/new.rs"], &["src/a/b.rs"], &["old.txt"]);
    check(
        &trial,
        &[
            ("diff: {only: ['src/**', '*.txt']}", Pass(&[])),
            ("diff: {only: ['src/*']}", Fail(0.0, &[], "`src/a/b.rs` (changed), `old.txt` (deleted)")),
            ("diff: {created: ['src/*.rs'], changed: ['**/b.rs'], deleted: [old.txt]}", Pass(&[])),
            (
                "diff: {created: [old.txt], deleted: [old.txt]}",
                Fail(0.5, &[], "no file matching `old.txt` was created"),
            ),
            ("diff: {none: true}", Fail(0.0, &[], "nothing may change")),
        ],
    );
    check(
        &Trial::session().changed(&[], &[], &[]).tracing(false),
        &[
            ("diff: {none: true}", Pass(&[])),
            ("diff: {only: ['src/**']}", Pass(&[])),
            ("diff: {only: ['src/**'], changed: ['src/**']}", Fail(0.5, &[], "nothing changed")),
        ],
    );
    check(&Trial::session(), &[("diff: {none: true}", Ungraded("change of the workspace"))]);
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(workspace.join("src/deep")).unwrap();
    fs::write(workspace.join("src/deep/a.rs"), "fn a() {}\n").unwrap();
    fs::write(workspace.join("b.bin"), b"\xff\x00needle").unwrap();
    fs::write(folder.path().join("wanted.rs"), "fn a() {}\n").unwrap();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    let trial = Trial::session().within(folder.path()).tracing(false);
    check(
        &trial,
        &[
            ("files: {exists: ['src/deep/a.rs', src, './src/', '**/*.rs', 'src/*/a.rs']}", Pass(&[])),
            ("files: {exists: ['src/*.rs', b.bin]}", Fail(0.5, &[], "nothing matching `src/*.rs` exists")),
            ("files: {exists: ['b.bin/x']}", Fail(0.0, &[], "b.bin/x")),
            ("files: {absent: ['**/*.tmp', nothing/here]}", Pass(&[])),
            ("files: {absent: ['**/*.rs']}", Fail(0.0, &[], "`src/deep/a.rs` exists")),
            ("files: {contains: {src/deep/a.rs: ['fn a', '{}']}}", Pass(&[])),
            ("files: {contains: {b.bin: needle}}", Pass(&[])),
            ("files: {contains: {b.bin: hay, gone.txt: x}}", Fail(0.0, &[], "`gone.txt` does not exist")),
            ("files: {contains: {src: x}}", Fail(0.0, &[], "is not a file")),
            ("files: {exists: [src/, 'src/d*/', 's*/deep/a*']}", Pass(&[])),
            ("files: {exists: [b.bin/]}", Fail(0.0, &[], "`b.bin` is a file, not a folder")),
            ("files: {exists: ['b*/']}", Fail(0.0, &[], "`b.bin` is a file, not a folder")),
            ("files: {exists: [none/]}", Fail(0.0, &[], "nothing matching `none/` exists")),
            ("files: {absent: [b.bin/]}", Fail(0.0, &[], "`b.bin` exists, but nothing matching `b.bin/` may")),
            ("files: {matches: {src/deep/a.rs: 'fn \\w\\(\\)'}}", Pass(&[])),
            ("files: {matches: {src/deep/a.rs: '^$'}}", Fail(0.0, &[], "does not match /^$/")),
            ("files: {equals: {src/deep/a.rs: wanted.rs}}", Pass(&[])),
            ("files: {equals: {b.bin: wanted.rs}}", Fail(0.0, &[], "in line 1")),
            ("files: {equals: {b.bin: not-there.rs}}", Ungraded("`not-there.rs` of the case could not be read")),
        ],
    );
    check(&Trial::session(), &[("files: {absent: [x]}", Ungraded("workspace is missing"))]);
    fs::write(workspace.join("title.md"), "\u{feff}# Title\n").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(workspace.join("a.sock")).unwrap();
    std::os::unix::fs::symlink("a.sock", workspace.join("to-socket")).unwrap();
    check(
        &trial,
        &[
            ("files: {matches: {title.md: '^# Title'}}", Pass(&[])),
            (r"files: {matches: {title.md: '\A\x{feff}# Title'}}", Pass(&[])),
            ("files: {exists: [a.sock]}", Fail(0.0, &[], "`a.sock` is a socket, not a file")),
            ("files: {exists: ['to-*']}", Fail(0.0, &[], "`to-socket` is a socket, not a file")),
            ("files: {absent: [a.sock]}", Fail(0.0, &[], "`a.sock` exists")),
        ],
    );
}

#[cfg(unix)]
#[test]
fn links_out_of_the_workspace_are_followed_for_absent_files_alone() {
    let folder = tempfile::tempdir().unwrap();
    let workspace = folder.path().join("workspace");
    fs::create_dir_all(workspace.join("real")).unwrap();
    fs::write(workspace.join("real/file"), "inside").unwrap();
    fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(folder.path(), workspace.join("out")).unwrap();
    std::os::unix::fs::symlink("../secret.txt", workspace.join("answer")).unwrap();
    std::os::unix::fs::symlink("real", workspace.join("inner")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.join("dangling")).unwrap();
    std::os::unix::fs::symlink("loop", workspace.join("loop")).unwrap();
    check(
        &Trial::session().within(folder.path()),
        &[
            ("files: {contains: {answer: secret}}", Fail(0.0, &[], "leads out of the workspace")),
            ("files: {contains: {out/secret.txt: secret}}", Fail(0.0, &[], "leads out of the workspace")),
            ("files: {exists: [out/secret.txt]}", Fail(0.0, &[], "nothing matching")),
            ("files: {exists: [inner/]}", Pass(&[])),
            ("files: {exists: [dangling/]}", Fail(0.0, &[], "`dangling` is a link that leads to nothing")),
            ("files: {exists: [dangling]}", Fail(0.0, &[], "`dangling` is a link that leads to nothing")),
            ("files: {exists: ['loo*']}", Fail(0.0, &[], "`loop` is a link that leads to nothing")),
            ("files: {contains: {loop: x}}", Fail(0.0, &[], "is a link that leads to nothing")),
            ("files: {absent: [dangling]}", Fail(0.0, &[], "`dangling` exists")),
            ("files: {exists: [answer, inner/file], contains: {inner/file: inside}}", Pass(&[])),
            // What a link leads to is there all the same.
            ("files: {absent: [out/secret.txt]}", Fail(0.0, &[], "`out/secret.txt` exists")),
            ("files: {absent: ['**/secret.txt']}", Ungraded("`out/secret.txt` lies behind a link out of")),
            ("files: {absent: ['inner/*']}", Fail(0.0, &[], "`inner/file` exists")),
            ("files: {absent: [out/none]}", Ungraded("the link `out` leads out of the workspace")),
            ("files: {absent: [dangling/x, loop/x, '**/none']}", Pass(&[])),
        ],
    );
    let changed = |created: &[&str]| Trial::session().within(folder.path()).changed(created, &[], &[]);
    let of_agent = Fail(0.0, &[], "`out/secret.txt` exists");
    check(&changed(&["out"]), &[("files: {absent: ['**/secret.txt']}", of_agent)]);
    check(&changed(&[]), &[("files: {absent: ['**/secret.txt']}", Pass(&[]))]);
}

#[test]
fn a_command_needs_its_workspace() {
    check(&Trial::session(), &[("command: {run: cargo test}", Ungraded("workspace is missing"))]);
}

#[test]
fn names_weights_and_gates_reach_the_record() {
    let graders = "[stop: {reason: end_turn, weight: 2.5, gate: true}, stop: {reason: idle, diagnostic: true}, \
                   stop: {reason: idle, name: end}, stop: {reason: idle, name: end}, stop: {reason: idle, name: 'end#2'}]";
    let records = Trial::session().judge_all(graders);
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, ["stop", "stop#2", "end", "end#2", "end#2#2"]);
    assert_eq!((records[0].weight, records[0].gate, records[0].diagnostic), (2.5, true, false));
    assert_eq!((records[1].weight, records[1].gate, records[1].diagnostic), (1.0, false, true));
    assert_eq!(records[0].grader, "stop");
}

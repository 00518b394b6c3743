//! The guarantees of a session whose agent misbehaves: the bounded wire log, and pipes that are not read.

use serde_json::Value;

use super::*;
use crate::driver::Task;
use crate::driver::acp::drive;
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::interaction::{Interaction, Policy};
use crate::trace::{Body, Header, Lost, Seen, StopReason};

/// Runs a shell script as an agent over ACP. Returns its events, its wire log, and how the prompt ended.
async fn run(script: &str, prompt: &str, max_wire: u64, time_ms: u64) -> (Vec<Event>, String, StopReason) {
    let folder = tempfile::tempdir().unwrap();
    let manifest = Arc::new(Manifest::bare(Adapter::Acp));
    let header = Header::new("acp", Seen { tracing: true, interaction: true });
    let events = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = events.clone();
    // The sender lives on until the end of the session.
    let (_interrupt, interrupted) = watch::channel(false);
    let setup = Setup {
        wire: folder.path().join("wire.jsonl"),
        stderr: folder.path().join("stderr.log"),
        masker: Arc::new(Masker::of_env(std::iter::empty(), &[])),
        limits: Limits { time: Some(Time(Duration::from_millis(time_ms))), ..Limits::default() },
        interrupt: interrupted,
        limit: None,
        sink: Box::new(move |event| sink.lock().unwrap().push(event)),
        max_wire,
    };
    let mut session = Session::begin(setup, Translation::new(Adapter::Acp, &manifest, header)).unwrap();
    let mut task = Task {
        turns: vec![prompt.to_owned()],
        model: None,
        command: ["sh", "-c", script].map(str::to_owned).to_vec().into(),
        folder: folder.path().to_owned(),
        env: [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())].into(),
        manifest,
        policy: Policy::new(Interaction::AutoApprove, Vec::new()),
        system_prompt: None,
        mcp_servers: Vec::new(),
        session: Default::default(),
        mode_of_manifest: false,
        must_ask: false,
        attachments: Vec::new(),
        terminals: Default::default(),
        recording: None,
    };
    let patience = drive(&mut session, &mut task).await;
    session.close(patience.min(Duration::from_millis(200))).await.finish();
    let wire = std::fs::read_to_string(folder.path().join("wire.jsonl")).unwrap();
    let events = std::mem::take(&mut *events.lock().unwrap());
    let Body::Stop(stop) = &events.last().unwrap().body else { panic!("no stop") };
    let reason = stop.reason;
    (events, wire, reason)
}

fn notices(events: &[Event]) -> Vec<(&str, &str)> {
    let found = events.iter().map(|event| match &event.body {
        Body::Notice { code, text, .. } => Some((code.as_str(), text.as_str())),
        _ => None,
    });
    found.flatten().collect()
}

/// Returns the codes of the notices, with what they lose.
fn losses(events: &[Event]) -> Vec<(&str, Option<Lost>)> {
    let found = events.iter().filter_map(|event| match &event.body {
        Body::Notice { code, lost, .. } => Some((code.as_str(), *lost)),
        _ => None,
    });
    found.collect()
}

const HANDSHAKE: &str = r#"
    read x; echo '{"id":0,"result":{"protocolVersion":1}}'
    read x; echo '{"id":1,"result":{"sessionId":"s"}}'
"#;
const UPDATES: &str = r#"
    yes '{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"."}}}}'"#;

#[tokio::test]
async fn the_wire_log_is_bounded_and_the_answer_still_counts() {
    let script = format!(
        "{HANDSHAKE} read x; {UPDATES} | head -n 5000; echo '{{\"id\":2,\"result\":{{\"stopReason\":\"end_turn\"}}}}'; cat"
    );
    let (events, wire, reason) = run(&script, "go", 50_000, 30_000).await;
    assert_eq!(reason, StopReason::EndTurn);
    assert!(wire.len() < 60_000, "{} bytes", wire.len());
    let notices = notices(&events);
    assert_eq!(losses(&events), [("wire_full", None), ("wire_cut", Some(Lost::Line))]);
    // Every line of the flood is either there or counted.
    let kept = wire.lines().filter(|line| line.contains("agent_thought_chunk")).count();
    assert!(notices[1].1.contains(&format!(" leave out {} lines of ", 5000 - kept)), "{notices:?}");
}

#[tokio::test]
async fn lines_of_standard_error_that_do_not_fit_the_wire_log_lose_no_event() {
    let script = format!(
        "{HANDSHAKE} read x; yes noise | head -n 5000 >&2; echo '{{\"id\":2,\"result\":{{\"stopReason\":\"end_turn\"}}}}'; cat >&2"
    );
    let (events, _, reason) = run(&script, "go", 50_000, 30_000).await;
    assert_eq!(reason, StopReason::EndTurn);
    assert_eq!(losses(&events), [("wire_full", None), ("stderr_cut", None)]);
}

#[tokio::test]
async fn a_trial_whose_wire_log_is_full_ends_by_its_limits() {
    let script = format!("{HANDSHAKE} read x; {UPDATES}");
    let begun = Instant::now();
    let (events, wire, reason) = run(&script, "go", 50_000, 2500).await;
    assert_eq!(reason, StopReason::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(40));
    assert!(wire.len() < 60_000, "{} bytes", wire.len());
    assert_eq!(notices(&events).last().unwrap().0, "wire_cut");
    let actions: Vec<String> = wire
        .lines()
        .map(|line| serde_json::from_str::<WireLine>(line).unwrap())
        .filter(|line| line.dir == Dir::Engine)
        .map(|line| serde_json::from_str::<Value>(&line.line).unwrap()["event"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(actions, ["notice", "limit", "cancel", "signal", "notice"]);
}

#[tokio::test]
async fn an_agent_that_does_not_read_a_long_prompt_holds_nobody() {
    let begun = Instant::now();
    let prompt = "x".repeat(4 << 20);
    let (events, _, reason) = run(&format!("{HANDSHAKE} exec sleep 60"), &prompt, MAX_WIRE, 4000).await;
    assert_eq!(reason, StopReason::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(40));
    assert_eq!(notices(&events)[0].0, "not_delivered");
}

#[tokio::test]
async fn an_agent_that_reads_slowly_gets_all_of_a_long_prompt() {
    let prompt = "x".repeat(1 << 20);
    let script = format!(
        "{HANDSHAKE} sleep 0.5; read x; echo '{{\"method\":\"n\",\"params\":{{\"length\":'${{#x}}'}}}}';
         echo '{{\"id\":2,\"result\":{{\"stopReason\":\"end_turn\"}}}}'; cat"
    );
    let (events, _, reason) = run(&script, &prompt, MAX_WIRE, 60_000).await;
    assert_eq!(reason, StopReason::EndTurn);
    let notice = notices(&events)[0].1;
    let length: usize = notice.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    assert!(length > prompt.len(), "{notice}");
}

#[tokio::test]
async fn what_leaves_its_group_is_ended_with_the_session() {
    let script = format!("{HANDSHAKE} read x; setsid sleep 300 & echo $! >&2; exit 3");
    let (events, wire, reason) = run(&script, "go", MAX_WIRE, 60_000).await;
    assert_eq!(reason, StopReason::Crashed);
    assert!(notices(&events).iter().any(|(code, _)| *code == "escaped"), "{wire}");
    let line = wire.lines().map(|line| serde_json::from_str::<WireLine>(line).unwrap());
    let pid = line.fold(String::new(), |last, line| if line.dir == Dir::Stderr { line.line } else { last });
    // A process that has ended remains as a zombie until its parent takes its exit.
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_else(|_| ") Z".to_owned());
    assert!(state.contains(") Z"), "process {pid} is alive: {state}");
}

#[test]
fn a_file_of_standard_error_that_cannot_be_created_is_a_failure_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let wire = folder.path().join("wire.jsonl");
    let mut log = Log::create(&wire, &missing.join("stderr.log"), Arc::new(Masker::default()), MAX_WIRE).unwrap();
    log.write(&WireLine::text(0, Dir::Stderr, "first"), Weight::Agent);
    assert_eq!(log.failed, Some(io::ErrorKind::NotFound));
    // The file does not begin with a later line.
    std::fs::create_dir(&missing).unwrap();
    log.write(&WireLine::text(0, Dir::Stderr, "second"), Weight::Agent);
    assert!(!missing.join("stderr.log").exists());
}

#[tokio::test]
async fn the_unknown_end_of_an_earlier_process_stays_unknown() {
    for (earlier, expected) in [
        (ProcessEnd::Unknown, ProcessEnd::Unknown),
        (ProcessEnd::ByEngine, ProcessEnd::ByItself),
        (ProcessEnd::ByItself, ProcessEnd::ByItself),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (_interrupt, interrupt) = watch::channel(false);
        let setup = Setup {
            wire: folder.path().join("wire.jsonl"),
            stderr: folder.path().join("stderr.log"),
            masker: Arc::new(Masker::default()),
            limits: Limits::default(),
            interrupt,
            limit: None,
            sink: Box::new(|_| {}),
            max_wire: MAX_WIRE,
        };
        let header = Header::new("acp", Seen { tracing: true, interaction: true });
        let translation = Translation::new(Adapter::Acp, &Arc::new(Manifest::bare(Adapter::Acp)), header);
        let mut session = Session::begin(setup, translation).unwrap();
        session.process_end = earlier;
        session.end_for_another(Duration::ZERO).await;
        let (_, remains) = session.close(Duration::ZERO).await.finish();
        assert_eq!(remains.process_end, expected, "{earlier:?}");
    }
}

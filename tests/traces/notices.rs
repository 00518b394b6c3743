//! Notices: each one about a line of the wire log names the line and quotes how it begins, whatever its code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use evals::internal::adapter::import;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::internal::wire::{Dir, WireLine};
use evals::trace::{Body, Lost, NoticeCode};
use serde_json::{Value, json};
use strum::VariantNames;

/// Bytes of a line that a notice quotes.
const QUOTED: usize = 120;

/// Imports a wire log. Holds its notices to what they must say, and gives their codes.
fn codes(adapter: Adapter, manifest: &Manifest, wire: &str) -> BTreeSet<String> {
    let lines: Vec<WireLine> = wire.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut codes = BTreeSet::new();
    let done = import(adapter, manifest, false, wire.as_bytes(), |event| {
        let Body::Notice { code, text, line, .. } = &event.body else { return Ok(()) };
        // What the engine says at the end is about the whole session.
        let Some(number) = line else {
            assert!(event.host, "{code} has no line: {text}");
            return Ok(());
        };
        codes.insert(code.to_string());
        let line = lines.get(*number as usize - 1).unwrap_or_else(|| panic!("{code}: no line {number}"));
        if line.dir != Dir::Engine {
            let begins = line.line.trim_start();
            let begins = &begins[..begins.floor_char_boundary(QUOTED)];
            assert!(text.contains(begins), "{code} does not quote its line {begins:?}: {text}");
        }
        assert!(text.len() < 1000, "{code} quotes too much: {} bytes", text.len());
        Ok(())
    });
    done.unwrap();
    codes
}

/// A wire log of lines from the agent, and to it where they begin with `>`.
fn wire(lines: &[Value]) -> String {
    let line = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (dir, text) = match text.strip_prefix('>') {
            Some(sent) => ("send", sent.to_owned()),
            None => ("recv", text),
        };
        format!("{}\n", json!({"at_ms": 1, "dir": dir, "line": text}))
    };
    lines.iter().map(line).collect()
}

/// An update of the session that the engine opened.
fn update(fields: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": fields}})
}

/// The start of a session over ACP, up to its prompt.
fn opened() -> Vec<Value> {
    let sent = |id: u64, method: &str, params: Value| {
        json!(format!(">{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))
    };
    let answer = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    vec![
        sent(0, "initialize", json!({"protocolVersion": 1})),
        answer(0, json!({})),
        sent(1, "session/new", json!({"cwd": "/w"})),
        answer(1, json!({"sessionId": "s"})),
        sent(2, "session/prompt", json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]})),
    ]
}

fn of_acp(more: &[Value]) -> BTreeSet<String> {
    let lines: Vec<Value> = opened().into_iter().chain(more.iter().cloned()).collect();
    codes(Adapter::Acp, &Manifest::bare(Adapter::Acp), &wire(&lines))
}

fn of_claude(more: &[Value]) -> BTreeSet<String> {
    codes(Adapter::ClaudeCodeStream, &Manifest::bare(Adapter::ClaudeCodeStream), &wire(more))
}

fn asks(id: u64, session: &str, call: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission",
           "params": {"sessionId": session, "toolCall": call, "options": []}})
}

#[test]
fn each_code_quotes_its_line() {
    let call = |id: &str, more: Value| {
        let mut fields = json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "kind": "read"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update(fields)
    };
    let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let done = json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn"}});
    let acp: &[(&str, Vec<Value>)] = &[
        ("malformed_line", vec![json!("{\"never closed")]),
        (
            "malformed_line",
            vec![json!(
                "   noise that is no JSON, with a password that is long enough to be cut somewhere in the middle of this very line, which goes on"
            )],
        ),
        ("repeated_key", vec![json!(r#"{"jsonrpc": "2.0", "method": "_x/y", "method": "_x/z", "params": {}}"#)]),
        ("malformed_update", vec![json!({"jsonrpc": "2.0", "method": "session/update", "params": [1]})]),
        ("malformed_update", vec![update(json!({"sessionUpdate": "tool_call"}))]),
        ("malformed_request", vec![json!({"jsonrpc": "2.0", "method": "session/request_permission", "params": {}})]),
        ("unknown_update", vec![update(json!({"sessionUpdate": "dance"}))]),
        ("unknown_method", vec![json!({"jsonrpc": "2.0", "method": "_x/y", "params": {"a": 1}})]),
        ("unknown_kind", vec![call("c", json!({"kind": "juggle"}))]),
        (
            "unannounced_action",
            vec![
                json!({"jsonrpc": "2.0", "id": 7, "method": "fs/read_text_file", "params": {"sessionId": "s", "path": "/w/a"}}),
            ],
        ),
        ("unknown_status", vec![call("c", json!({"status": "asleep"}))]),
        (
            "unknown_content",
            vec![update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "smell"}}))],
        ),
        (
            "tool_content",
            vec![call(
                "c",
                json!({"content": [{"type": "content", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}}]}),
            )],
        ),
        (
            "foreign_session",
            vec![
                json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "other", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}}),
            ],
        ),
        ("late_update", vec![call("c", json!({"status": "completed"})), update(ended.clone())]),
        (
            "late_update",
            vec![
                done.clone(),
                update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})),
            ],
        ),
        ("unannounced_call", vec![update(ended.clone())]),
        ("unknown_call", vec![asks(7, "s", json!({"toolCallId": "nowhere"}))]),
        ("unknown_call", vec![asks(7, "s", Value::Null)]),
        (
            "duplicate_request",
            vec![
                asks(7, "s", json!({"toolCallId": "c", "title": "x"})),
                asks(7, "s", json!({"toolCallId": "c", "title": "x"})),
            ],
        ),
        ("late_request", vec![done.clone(), asks(7, "s", json!({"toolCallId": "c", "title": "x"}))]),
        ("duplicate_answer", vec![done.clone(), done.clone()]),
        ("unknown_answer", vec![json!({"jsonrpc": "2.0", "id": 99, "result": {}})]),
        (
            "unknown_outcome",
            vec![
                asks(7, "s", json!({"toolCallId": "c", "title": "x"})),
                json!(">{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"outcome\":{\"outcome\":\"perhaps\"}}}"),
            ],
        ),
        (
            "unknown_option",
            vec![
                asks(7, "s", json!({"toolCallId": "c", "title": "x"})),
                json!(
                    ">{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"none\"}}}"
                ),
            ],
        ),
    ];
    let mut seen = BTreeSet::new();
    for (code, lines) in acp {
        let found = of_acp(lines);
        assert!(found.contains(*code), "{code}: {found:?}");
        seen.extend(found);
    }
    let assistant =
        |content: Value| json!({"type": "assistant", "message": {"id": "m", "model": "x", "content": [content]}});
    let user = |content: Value| json!({"type": "user", "message": {"content": [content]}});
    let claude: &[(&str, Vec<Value>)] = &[
        ("unknown_line", vec![json!({"type": "surprise", "a": 1})]),
        ("malformed_line", vec![json!("no JSON at all")]),
        ("unknown_block", vec![assistant(json!({"type": "smell"}))]),
        ("unknown_block", vec![assistant(json!({"type": "tool_use", "name": "Read"}))]),
        ("unknown_block", vec![user(json!({"type": "tool_result", "content": "x"}))]),
        ("unknown_call", vec![user(json!({"type": "tool_result", "tool_use_id": "nowhere", "content": "x"}))]),
        (
            "unknown_status",
            vec![
                assistant(json!({"type": "tool_use", "id": "c", "name": "Read"})),
                user(json!({"type": "tool_result", "tool_use_id": "c", "is_error": "perhaps"})),
            ],
        ),
        ("unknown_call", vec![json!({"type": "result", "permission_denials": [{"tool_use_id": "nowhere"}]})]),
        ("usage_invalid", vec![json!({"type": "result", "result": "x", "modelUsage": {"m": null}})]),
        (
            "synthetic_message",
            vec![
                json!({"type": "assistant", "message": {"id": "m", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}}),
            ],
        ),
        ("sub_agent_result", vec![json!({"type": "result", "parent_tool_use_id": "t", "result": "x"})]),
        (
            "api_retry",
            vec![json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 3, "error": "x"})],
        ),
        (
            "withdrawn_message",
            vec![
                json!({"type": "assistant", "uuid": "u", "message": {"id": "m", "content": [{"type": "tool_use", "id": "c", "name": "Read"}]}}),
                json!({"type": "assistant", "uuid": "v", "supersedes": ["u"], "message": {"id": "n", "content": [{"type": "text", "text": "x"}]}}),
            ],
        ),
    ];
    for (code, lines) in claude {
        let found = of_claude(lines);
        assert!(found.contains(*code), "{code}: {found:?}");
        seen.extend(found);
    }
    let both_ways = Adapter::ClaudeCodeControl;
    for (code, tool) in [("missing_call_id", json!("Bash")), ("unknown_call", Value::Null)] {
        let request = json!({"subtype": "can_use_tool", "tool_name": tool, "input": {"command": "ls"}});
        let asked = json!({"type": "control_request", "request_id": "r", "request": request});
        let found = codes(both_ways, &Manifest::bare(both_ways), &wire(&[asked]));
        assert!(found.contains(code), "{code}: {found:?}");
        seen.extend(found);
    }
    for (code, line) in [
        (
            "not_utf8",
            json!({"at_ms": 1, "dir": "recv", "line": "bytes \u{fffd} here", "bytes_b64": "Ynl0ZXMg/yBoZXJl"}),
        ),
        ("line_cut", json!({"at_ms": 1, "dir": "recv", "line": "a line that was cut", "cut": 5})),
        ("malformed_exit", json!({"at_ms": 1, "dir": "exit", "line": "gone"})),
        ("malformed_engine_line", json!({"at_ms": 1, "dir": "engine", "line": "{not JSON"})),
        ("engine_stopped", json!({"at_ms": 1, "dir": "engine", "line": "{\"event\":\"stopped\",\"ms\":2500}"})),
        ("unknown_engine_line", json!({"at_ms": 1, "dir": "engine", "line": "{\"event\":\"of a later version\"}"})),
    ] {
        let found = codes(Adapter::Acp, &Manifest::bare(Adapter::Acp), &format!("{line}\n"));
        assert!(found.contains(code), "{code}: {found:?}");
        seen.extend(found);
    }
    // A line of a wire log that cannot be read may have been any line of the agent.
    let first = json!({"at_ms": 1, "dir": "recv", "line": "{}"});
    for damaged in ["{\"at_ms\": 2, \"dir\": \"recv", "{\"at_ms\": 2, \"dir\": \"in\", \"line\": \"{}\"}"] {
        let log = format!("{first}\n{damaged}\n{first}\n");
        let mut lost = Vec::new();
        let done = import(Adapter::Acp, &Manifest::bare(Adapter::Acp), false, log.as_bytes(), |event| {
            if let Body::Notice { code, lost: Some(what), .. } = &event.body {
                lost.push((code.to_string(), *what));
            }
            Ok(())
        });
        done.unwrap();
        assert_eq!(lost, [("malformed_wire_line".to_owned(), Lost::Line)]);
    }
    // The rest comes from what real agents said.
    for file in files("tests/recordings", ".jsonl") {
        let name = file.to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let is_wire = text.lines().next().is_some_and(|line| serde_json::from_str::<WireLine>(line).is_ok());
        if !is_wire {
            continue;
        }
        for manifest in evals::internal::harness::built_in() {
            let folder = file.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
            if manifest.name == folder || name.contains("-acp/") && manifest.name == "demo" {
                seen.extend(codes(manifest.adapter, manifest, &text));
            }
        }
    }
    // Codes that no row above gives: about a state of the session, of streams that need rules of their own, or of the engine.
    let elsewhere = [
        NoticeCode::AnswerDiffers,
        NoticeCode::ApiError,
        NoticeCode::Escaped,
        NoticeCode::InputCut,
        NoticeCode::LateDenial,
        NoticeCode::LetGo,
        NoticeCode::MappingFailed,
        NoticeCode::ModelChanged,
        NoticeCode::ModelMismatch,
        NoticeCode::ModelUnconfirmed,
        NoticeCode::ModelUnlisted,
        NoticeCode::ProtocolVersion,
        NoticeCode::RepeatedCall,
        NoticeCode::RepeatedResult,
        NoticeCode::StreamDiffers,
        NoticeCode::UnattendedMode,
        NoticeCode::UnknownRequest,
        NoticeCode::UnmappedLine,
        NoticeCode::ProgramMessage,
        NoticeCode::AgentNotice,
        NoticeCode::Compaction,
        NoticeCode::Refused,
        NoticeCode::MalformedWireLine,
        NoticeCode::UnknownEvent,
        NoticeCode::UnknownParent,
        NoticeCode::UnclearOutcome,
        NoticeCode::RepeatedId,
        NoticeCode::ChangedCommand,
        NoticeCode::ChangedInput,
        NoticeCode::ChangedKind,
        NoticeCode::ChangedPath,
        NoticeCode::DeniedCallCompleted,
        NoticeCode::TaskFailed,
        NoticeCode::TaskStopped,
        NoticeCode::BackgroundCut,
        NoticeCode::UnshownAction,
        NoticeCode::UnseenSearch,
        NoticeCode::HiddenSubAgent,
        NoticeCode::TooManyOpenCalls,
        NoticeCode::TooManyRequests,
        NoticeCode::FollowedLink,
        NoticeCode::FollowedLinks,
        NoticeCode::OtherCommand,
        NoticeCode::OtherRequest,
        NoticeCode::Permission,
        NoticeCode::PathEscape,
        NoticeCode::UnknownSpeaker,
        NoticeCode::UserCommand,
        NoticeCode::SlashCommand,
        NoticeCode::EmbeddedText,
        NoticeCode::CutCharacter,
        NoticeCode::AnswerNotShown,
        NoticeCode::UnfinishedTurn,
        NoticeCode::SilentTurn,
        NoticeCode::History,
        NoticeCode::HistoryCall,
        NoticeCode::HistoryOutcome,
        NoticeCode::ModeNotSet,
        NoticeCode::UsageIncomplete,
        NoticeCode::UnknownCost,
        NoticeCode::NoticesCut,
        NoticeCode::TextCut,
        NoticeCode::WireFull,
        NoticeCode::WireCut,
        NoticeCode::StderrCut,
        NoticeCode::SupervisorLost,
        NoticeCode::NotDelivered,
        NoticeCode::ReadOutside,
        NoticeCode::ProtectedFile,
        NoticeCode::UnexpectedSkill,
        NoticeCode::SecretSplit,
        // Of session files: tests/traces/sessions.rs.
        NoticeCode::CompactSummary,
        NoticeCode::RepeatedLine,
        NoticeCode::ResultContradicts,
        NoticeCode::SubAgentLeftOut,
        NoticeCode::UnknownSubAgent,
        NoticeCode::UsageDiffers,
        NoticeCode::SessionTree,
        NoticeCode::OtherBranches,
        NoticeCode::Rewound,
        NoticeCode::TimeOrder,
        NoticeCode::SessionReplaced,
        NoticeCode::ChangedOnDisk,
        NoticeCode::BranchChanged,
        NoticeCode::SandboxChanged,
    ];
    let missing: Vec<&str> = all_codes()
        .filter(|code| !seen.contains(*code) && !elsewhere.iter().any(|known| known.as_str() == *code))
        .collect();
    assert!(missing.is_empty(), "no row of the table gives {missing:?}");
}

#[test]
fn the_documentation_names_each_code() {
    let pages: String = files("docs", ".md").iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    let missing: Vec<&str> = all_codes().filter(|code| !pages.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "no page of docs/ names {missing:?}");
}

/// Every code that the engine gives by itself.
fn all_codes() -> impl Iterator<Item = &'static str> {
    NoticeCode::VARIANTS.iter().copied().filter(|code| *code != "other")
}

/// The files below a folder whose names have this ending, in order.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(ending) {
            files.push(path);
        }
    }
    files.sort();
    files
}

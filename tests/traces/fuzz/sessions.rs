//! Sessions and Traces: whatever is read gives a lawful Trace, the same each time, and one that is read as written.

use std::io::Cursor;

use evals::internal::adapter::{Translation, import, replay};
use evals::internal::embedded;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::internal::harness::catalog::Catalog;
use evals::internal::report::show;
use evals::internal::report::text::Look;
use evals::internal::wire::{self, WireLine};
use evals::trace::jsonl::{Reader, write_event, write_header};
use evals::trace::{Event, Header};

use super::corpus::{put, recordings};
use super::hunt::{Took, hunt};
use super::mutate::Form;
use crate::laws;

/// The manifests of an adapter: one that says nothing, and all that are built in.
fn manifests(adapter: Adapter) -> Vec<Manifest> {
    let catalog = Catalog::load(&embedded::harnesses(), "no-such-folder".as_ref(), &[]).unwrap();
    let known =
        catalog.entries().map(|entry| Manifest::clone(&entry.manifest)).filter(|manifest| manifest.adapter == adapter);
    [Manifest::bare(adapter)].into_iter().chain(known).collect()
}

fn translated(adapter: Adapter, manifest: &Manifest, input: &[u8]) -> (Header, Vec<Event>) {
    let mut events = Vec::new();
    let header = import(adapter, manifest, false, input, |event| {
        events.push(event);
        Ok(())
    });
    (header.unwrap(), events)
}

fn text_of(header: &Header, events: &[Event]) -> Vec<u8> {
    let mut text = Vec::new();
    write_header(&mut text, header).unwrap();
    events.iter().for_each(|event| write_event(&mut text, event).unwrap());
    text
}

/// A Trace that was written is read as it was.
fn reads_back(header: &Header, events: &[Event]) -> Result<(), String> {
    let text = text_of(header, events);
    let mut reader = Reader::new(Cursor::new(&text)).map_err(|error| format!("not read back: {error}"))?;
    if reader.header() != header {
        return Err(format!("the header is read back as {:?} and not {header:?}", reader.header()));
    }
    for event in events {
        match reader.next_event() {
            Ok(Some(read)) if read == *event => {}
            other => return Err(format!("an event is read back as {other:?} and not {event:?}")),
        }
    }
    match reader.next_event() {
        Ok(None) => Ok(()),
        other => Err(format!("more is read back than was written: {other:?}")),
    }
}

/// Every promise that a translator makes.
fn translates(adapter: Adapter, manifests: &[Manifest], input: &[u8]) -> Result<Took, String> {
    let manifest = &manifests[input.len() % manifests.len()];
    let (header, events) = translated(adapter, manifest, input);
    let text = String::from_utf8(text_of(&header, &events)).unwrap();
    laws::check(&text).map_err(|broken| format!("{broken}\n{text}"))?;
    reads_back(&header, &events)?;
    at_the_end(adapter, manifest, input, &events)?;
    if translated(adapter, manifest, input) != (header, events) {
        return Err("the same lines give another trace".to_owned());
    }
    let odd = |line: &str| line.contains(r#""code":"malformed"#) || line.contains(r#""code":"not_utf8""#);
    Ok(if text.lines().any(odd) { Took::Rejected } else { Took::Accepted })
}

/// When events are taken out makes no difference: after every line, as an import does, or all at the end.
fn at_the_end(adapter: Adapter, manifest: &Manifest, input: &[u8], expected: &[Event]) -> Result<(), String> {
    let mut reader = wire::Reader::new(input);
    let (mut lines, mut begins_timed) = (Vec::new(), None);
    while let Some(line) = reader.next_line().map_err(|error| error.to_string())? {
        begins_timed.get_or_insert(reader.is_timed());
        lines.push(line);
    }
    // The notice of the first line without a time is the reader's.
    if begins_timed == Some(true) && !reader.is_timed() {
        return Ok(());
    }
    // Notices name lines of the file, so lines that were passed over must not be missing.
    if reader.line_number() != lines.len() as u64 {
        return Ok(());
    }
    let mut header = Header::new(adapter.word(), manifest.seen());
    header.timed = (!reader.is_timed()).then_some(false);
    let mut translation = Translation::new(adapter, manifest, header);
    for line in &lines {
        translation.line(line);
    }
    if translation.finish().events == expected { Ok(()) } else { Err("taken out later, the events differ".to_owned()) }
}

/// A session that uses all that a client serves, and goes on in another process; made with `tests/trials/run/acp_agent.py`.
const CLIENT: &[u8] = include_bytes!("client.wire.jsonl");

#[test]
fn acp() {
    let manifests = manifests(Adapter::Acp);
    let mut seeds = recordings(|agent, _| agent.ends_with("-acp"));
    seeds.push(CLIENT.to_vec());
    hunt("acp translator", Form::Json, &seeds, |input| translates(Adapter::Acp, &manifests, input));
}

#[test]
fn claude_code_stream() {
    let manifests = manifests(Adapter::ClaudeCodeStream);
    let seeds = recordings(|agent, name| agent == "claude-code" && name != "cut.jsonl");
    hunt("claude-code-stream translator", Form::Json, &seeds, |input| {
        translates(Adapter::ClaudeCodeStream, &manifests, input)
    });
}

#[test]
fn claude_code_control() {
    let manifests = manifests(Adapter::ClaudeCodeControl);
    let seeds = recordings(|agent, name| agent == "claude-code" && name.contains("control"));
    hunt("claude-code-control translator", Form::Json, &seeds, |input| {
        translates(Adapter::ClaudeCodeControl, &manifests, input)
    });
}

#[test]
fn json_stream() {
    let manifests = manifests(Adapter::JsonStream);
    let agents: Vec<&str> = manifests.iter().filter_map(|manifest| manifest.name.split('-').next()).collect();
    let seeds = recordings(|agent, _| agents.contains(&agent));
    hunt("json-stream translator", Form::Json, &seeds, |input| translates(Adapter::JsonStream, &manifests, input));
}

#[test]
fn output_only() {
    let manifests = manifests(Adapter::OutputOnly);
    // Any lines will do, an agent's own and those of a wire log.
    let seeds = recordings(|agent, _| agent == "claude-code" || agent == "fast-agent-acp");
    hunt("output-only translator", Form::Json, &seeds, |input| translates(Adapter::OutputOnly, &manifests, input));
}

#[test]
fn replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let mut seeds = traces();
    seeds.extend(recordings(|_, name| name.contains("cancel") || name.contains("full") || name.contains("control")));
    hunt("replay", Form::Json, &seeds, |input| {
        put(&path, input);
        if replay::is_trace(&path) {
            let mut events = Vec::new();
            let header = Header::new(Adapter::Replay.word(), evals::internal::adapter::seen(Adapter::Replay));
            return match replay::trace(&path, header, |event| events.push(event)) {
                Ok(finished) => reads_back(&finished.header, &events).map(|()| Took::Accepted),
                Err(error) if error.to_string().is_empty() => Err("an error without words".to_owned()),
                Err(_) => Ok(Took::Rejected),
            };
        }
        let adapter = replay::recorded_in(&path).map_err(|error| error.to_string())?.adapter;
        translates(adapter, &[Manifest::bare(Adapter::Replay)], input)
    });
}

#[test]
fn trace_reader() {
    hunt("trace reader", Form::Json, &traces(), |input| {
        for full in [true, false] {
            if let Ok(mut reader) = Reader::new(Cursor::new(input)) {
                let look = Look { width: if full { 0 } else { 100 }, ..Look::PLAIN };
                let _ = show::trace(&mut reader, full, &look, &mut Vec::new());
            }
        }
        let told = |error: evals::trace::jsonl::ReadError| match error.to_string() {
            text if text.is_empty() => Err("an error without words".to_owned()),
            _ => Ok(Took::Rejected),
        };
        let mut reader = match Reader::new(Cursor::new(input)) {
            Ok(reader) => reader,
            Err(error) => return told(error),
        };
        let mut events = Vec::new();
        let took = loop {
            match reader.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break Took::Accepted,
                Err(error) => break told(error)?,
            }
        };
        // What was read before the error is read again, too.
        reads_back(reader.header(), &events).map(|()| took)
    });
}

#[test]
fn wire_log_reader() {
    let mut seeds = recordings(|_, name| name.ends_with(".wire.jsonl"));
    seeds.push(CLIENT.to_vec());
    hunt("wire log reader", Form::Json, &seeds, |input| {
        let (lines, is_wire_log) = wire_lines(input)?;
        if is_wire_log {
            let mut again = Vec::new();
            lines.iter().for_each(|line| line.write(&mut again).unwrap());
            if wire_lines(&again)?.0 != lines {
                return Err("what was written is read otherwise".to_owned());
            }
        } else {
            raw_lines_are_whole(input, &lines)?;
        }
        let broken = lines.iter().any(|line| line.line.contains("malformed_wire_line"));
        Ok(if is_wire_log && !broken { Took::Accepted } else { Took::Rejected })
    });
}

fn wire_lines(input: &[u8]) -> Result<(Vec<WireLine>, bool), String> {
    let mut reader = wire::Reader::new(input);
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().map_err(|error| error.to_string())? {
        lines.push(line);
    }
    Ok((lines, reader.is_wire_log()))
}

/// Of an agent's own output nothing is lost but line ends.
fn raw_lines_are_whole(input: &[u8], lines: &[WireLine]) -> Result<(), String> {
    use base64::Engine as _;
    let input = input.strip_suffix(b"\n").unwrap_or(input);
    let mut expected: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let blank = expected.iter().take_while(|line| line.iter().all(u8::is_ascii_whitespace)).count();
    expected.drain(..blank);
    let bytes = |line: &WireLine| match &line.bytes_b64 {
        Some(text) => base64::engine::general_purpose::STANDARD.decode(text).unwrap(),
        None => line.line.clone().into_bytes(),
    };
    let same = lines.len() == expected.len()
        && lines.iter().zip(&expected).all(|(line, text)| bytes(line) == text.strip_suffix(b"\r").unwrap_or(text));
    if same { Ok(()) } else { Err("lines of the agent's output were lost".to_owned()) }
}

/// Traces as they are written, of every protocol.
fn traces() -> Vec<Vec<u8>> {
    let of = |adapter: Adapter, inputs: Vec<Vec<u8>>| {
        let manifest = Manifest::bare(adapter);
        let translated = inputs.into_iter().map(move |input| translated(adapter, &manifest, &input));
        translated.map(|(header, events)| text_of(&header, &events)).collect::<Vec<_>>()
    };
    let mut traces = of(Adapter::Acp, recordings(|agent, _| agent.ends_with("-acp")));
    traces.extend(of(Adapter::ClaudeCodeStream, recordings(|agent, _| agent == "claude-code")));
    traces.extend(of(Adapter::ClaudeCodeControl, recordings(|_, name| name.contains("control"))));
    traces.extend(of(Adapter::OutputOnly, recordings(|agent, name| agent == "claude-code" && name == "text.jsonl")));
    traces
}

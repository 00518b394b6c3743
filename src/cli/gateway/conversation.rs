//! `evals gateway show`: prints a cassette or a log of exchanges as a conversation.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde_json::Value;

use super::{CliError, Content, around_command, output};
use crate::cli::import::ignore_closed_pipe;
use crate::gateway::Api;
use crate::gateway::cassette;
use crate::gateway::exchange::Exchange;
use crate::gateway::reading::{ConversationPart, answer, continued, new_in};
use crate::regular;
use crate::report::text::harmless;

/// An exchange, as much as a reader needs of it.
struct ShownExchange {
    n: u64,
    api: Option<Api>,
    title: String,
    request: Value,
    response: Value,
    error: Option<String>,
}

/// Prints a file as a conversation.
///
/// # Errors
/// Returns an error if the file is neither a cassette nor a log.
pub(super) fn show(file: &Path) -> Result<u8, CliError> {
    let exchanges = read(file)?;
    let mut out = output::stdout(Content::Text);
    let mut text = if exchanges.is_empty() { "no exchange\n".to_owned() } else { String::new() };
    let mut before: Vec<&Value> = Vec::new();
    for exchange in &exchanges {
        text.push_str(&format!("── {} ── {}\n", exchange.n, exchange.title.replace(['\r', '\n'], " ")));
        let earlier = continued(&exchange.request, &before);
        let parts = new_in(&exchange.request, earlier);
        let answers = exchange.api.map(|api| answer(api, &exchange.response)).unwrap_or_default();
        parts.iter().chain(&answers).for_each(|part| text.push_str(&lines(part)));
        if let Some(error) = &exchange.error {
            text.push_str(&format!("error: {error}\n"));
        }
        text.push('\n');
        before.push(&exchange.request);
    }
    ignore_closed_pipe(out.write_all(harmless(&text).as_bytes()).and_then(|()| out.flush()))?;
    Ok(0)
}

fn lines(part: &ConversationPart) -> String {
    let mut lines = part.text.lines();
    let first = lines.next().unwrap_or_default();
    let rest = lines.map(|line| format!("{:9}{line}\n", ""));
    format!("{:<9}{first}\n{}", format!("{}:", part.who), rest.collect::<String>())
}

fn read(file: &Path) -> Result<Vec<ShownExchange>, CliError> {
    let unreadable =
        |error: std::io::Error| CliError::unreadable(format!("{} cannot be read: {error}", file.display()));
    let opened = regular::open(file).map_err(unreadable)?;
    let first = BufReader::new(opened).lines().next().transpose().map_err(unreadable)?.unwrap_or_default();
    // The log of a session without a request has no line.
    if first.trim().is_empty() && regular::read(file).map_err(unreadable)?.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    let head: Option<Value> = serde_json::from_str(&first).ok();
    if head.as_ref().is_none_or(|head| head.get("source").is_none()) {
        let cassette = cassette::load(file).map_err(CliError::unreadable)?;
        return Ok(cassette.entries.into_iter().map(of_entry).collect());
    }
    Ok(around_command::read(file)?.into_iter().map(of_exchange).collect())
}

fn of_entry(entry: cassette::Entry) -> ShownExchange {
    ShownExchange {
        n: entry.n,
        api: Some(entry.api),
        title: format!("{} {} {}", entry.method, entry.path, entry.status),
        request: entry.request,
        response: entry.response,
        error: entry.error.map(|error| error.message.unwrap_or_else(|| error.kind.word().to_owned())),
    }
}

fn of_exchange(exchange: Exchange) -> ShownExchange {
    let status = exchange.status.map(|status| status.to_string()).unwrap_or_default();
    let model = exchange.model.answered.or(exchange.model.asked).unwrap_or_default();
    ShownExchange {
        n: exchange.n,
        api: exchange.api,
        title: format!("{} ms  {} {} {status} {model}", exchange.at_ms, exchange.method, exchange.path),
        request: exchange.request,
        response: exchange.response,
        error: exchange.error.map(|error| error.message.unwrap_or_else(|| error.kind.word().to_owned())),
    }
}

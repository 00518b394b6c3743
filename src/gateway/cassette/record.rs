//! Makes the entries of a cassette from the exchanges of a session.

use serde_json::Value;

use super::Entry;
use crate::gateway::canonical::Canon;
use crate::gateway::exchange::{Exchange, FailureKind};
use crate::gateway::purpose::Purpose;

/// Returns the entries for the exchanges of a session, in an order that does not depend on which of two concurrent
/// requests was received first: shorter conversations first, equal requests in the order received.
pub fn entries(exchanges: impl IntoIterator<Item = Exchange>, canon: &Canon) -> Vec<Entry> {
    let kept = exchanges.into_iter().filter_map(|exchange| entry(exchange, canon));
    let mut kept: Vec<(usize, String, Entry)> = kept
        .map(|entry| {
            let length = conversation(&entry.request);
            (length, entry.request.to_string(), entry)
        })
        .collect();
    kept.sort_by(|one, other| (one.0, &one.2.path, &one.1).cmp(&(other.0, &other.2.path, &other.1)));
    numbered(kept.into_iter().map(|(_, _, entry)| entry))
}

/// Returns entries with the numbers of their order.
pub fn numbered(entries: impl Iterator<Item = Entry>) -> Vec<Entry> {
    entries.zip(1..).map(|(entry, n)| Entry { n, ..entry }).collect()
}

/// Returns the entry for an exchange, or `None` if it has no answer of the service that could be played again.
fn entry(exchange: Exchange, canon: &Canon) -> Option<Entry> {
    let (api, status) = (exchange.api?, exchange.status?);
    if !Purpose::of_logged(&exchange.method, &exchange.path).is_known() {
        return None;
    }
    let failed = exchange.error.as_ref().map(|error| error.kind);
    if !matches!(failed, None | Some(FailureKind::Cut | FailureKind::Service)) {
        return None;
    }
    let ms = exchange.times();
    // The agent's own word, which it says again in a replay, in the place of the model that the gateway asked for.
    let mut request = exchange.request;
    let path =
        match exchange.model.asked.filter(|asked| api.model_asked(&exchange.path, &request).as_ref() != Some(asked)) {
            Some(asked) => api.with_model(&exchange.path, &mut request, &asked),
            None => exchange.path,
        };
    let canonical = canon.request(api, &path, &request);
    let response = canon.answer(api, &exchange.response, &canonical.marks);
    Some(Entry {
        n: 0,
        api,
        method: exchange.method,
        path: canonical.path,
        request: canonical.body,
        status,
        headers: exchange.headers,
        response,
        error: exchange.error.filter(|error| error.kind == FailureKind::Cut || error.event.is_some()),
        ms,
    })
}

/// Returns the number of elements of the longest list of a request: its conversation.
fn conversation(request: &Value) -> usize {
    let lists = ["messages", "input", "contents"].iter().filter_map(|key| request.get(key)?.as_array());
    lists.map(Vec::len).max().unwrap_or(0)
}

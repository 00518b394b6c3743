//! Requests to an ACP agent and its answers, with their line numbers in the wire log.

use serde_json::Value;

use super::rpc::{self, Message, RpcError};
use crate::wire::{Dir, WireLine};

/// A request of the engine, and its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub method: String,
    pub params: Value,
    /// The line of the request, from 1.
    pub asked: u64,
    /// The line and the outcome of the answer; absent if there was none.
    pub answer: Option<(u64, Result<Value, RpcError>)>,
}

/// Returns the engine's requests, in order. An answer belongs to the last request with its id.
pub fn exchanges(lines: &[WireLine]) -> Vec<Exchange> {
    let mut exchanges: Vec<(String, Exchange)> = Vec::new();
    for (number, line) in (1u64..).zip(lines) {
        for message in rpc::parse(&line.line) {
            match (line.dir, message) {
                (Dir::Send, Message::Request { id, method, params }) => {
                    exchanges.push((rpc::key(&id), Exchange { method, params, asked: number, answer: None }));
                }
                (Dir::Recv, Message::Response { id, outcome }) => {
                    let key = rpc::key(&id);
                    let asked = exchanges.iter_mut().rev().find(|(of, _)| *of == key);
                    if let Some((_, exchange)) = asked
                        && exchange.answer.is_none()
                    {
                        exchange.answer = Some((number, outcome));
                    }
                }
                _ => {}
            }
        }
    }
    exchanges.into_iter().map(|(_, exchange)| exchange).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_belongs_to_the_request_with_its_id() {
        let line = |dir, text: &str| WireLine::text(0, dir, text);
        let lines = [
            line(Dir::Send, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#),
            line(Dir::Recv, r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{}}"#),
            line(Dir::Recv, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#),
            line(Dir::Recv, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2}}"#),
            line(Dir::Send, r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}"#),
        ];
        let found = exchanges(&lines);
        assert_eq!(found.len(), 2);
        let (number, answer) = found[0].answer.clone().unwrap();
        assert_eq!((number, answer.unwrap()["protocolVersion"].clone()), (3, Value::from(1)));
        assert_eq!((found[1].asked, &found[1].answer), (5, &None));
    }
}

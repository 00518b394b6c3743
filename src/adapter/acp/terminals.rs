//! The output of the engine's terminals, as far as the wire log contains it: answers to the agent, and the lines of the
//! engine.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

/// The maximum number of terminals, and of bytes of their outputs; the oldest terminals are dropped first.
const MAX_TERMINALS_AND_BYTES: (usize, usize) = (1000, 64 << 20);

#[derive(Debug, Default)]
pub(super) struct Terminals {
    by_id: HashMap<String, Terminal>,
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// The command ended with this exit code.
    Code(i64),
    Signal,
}

impl CommandEnd {
    /// Returns how a command ended. A signal takes precedence over the exit code 0, because some terminals report both.
    pub(super) fn of(code: Option<i64>, has_signal: bool) -> Option<Self> {
        match code {
            None | Some(0) if has_signal => Some(Self::Signal),
            code => code.map(Self::Code),
        }
    }

    /// Returns the exit code, if there is one.
    pub(super) fn code(self) -> Option<i64> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal => None,
        }
    }

    /// Returns true if the command did not succeed.
    pub(super) fn is_failure(self) -> bool {
        self != Self::Code(0)
    }
}

/// The state of a terminal.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Terminal {
    /// The end of the output.
    pub(super) output: Option<String>,
    pub(super) end: Option<CommandEnd>,
    /// True if the beginning of the output was cut off.
    pub(super) truncated: bool,
}

/// The output of a call's terminals.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InTerminals {
    pub(super) output: Option<String>,
    pub(super) end: Option<CommandEnd>,
    pub(super) truncated: bool,
}

impl Terminals {
    /// Takes the engine's answer to a request for a terminal's output or end.
    pub(super) fn answered(&mut self, id: String, result: &mut Value) {
        let output = match result.get_mut("output") {
            Some(Value::String(output)) => Some(std::mem::take(output)),
            _ => None,
        };
        let truncated = result.get("truncated").and_then(Value::as_bool);
        let status = result.get("exitStatus").unwrap_or(result);
        let has_signal = status.get("signal").is_some_and(|signal| !signal.is_null());
        let end = CommandEnd::of(status.get("exitCode").and_then(Value::as_i64), has_signal);
        self.update(id, output, truncated, end);
    }

    /// Updates the state of a terminal. Absent values keep their previous state.
    pub(super) fn update(
        &mut self,
        id: String,
        output: Option<String>,
        truncated: Option<bool>,
        end: Option<CommandEnd>,
    ) {
        let terminal = self.by_id.entry(id).or_insert_with_key(|id| {
            self.order.push_back(id.clone());
            Terminal::default()
        });
        if let Some(output) = output {
            self.bytes += output.len();
            self.bytes -= terminal.output.replace(output).map_or(0, |before| before.len());
        }
        terminal.truncated = truncated.unwrap_or(terminal.truncated);
        terminal.end = end.or(terminal.end);
        while self.order.len() > 1
            && (self.order.len() > MAX_TERMINALS_AND_BYTES.0 || self.bytes > MAX_TERMINALS_AND_BYTES.1)
        {
            let oldest = self.order.pop_front().and_then(|id| self.by_id.remove(&id));
            self.bytes -= oldest.and_then(|terminal| terminal.output).map_or(0, |output| output.len());
        }
    }

    /// Returns the output of these terminals, in order. Unknown ids add nothing.
    pub(super) fn show(&self, ids: &[String]) -> InTerminals {
        let ours = || ids.iter().filter_map(|id| self.by_id.get(id));
        let output: Vec<&str> = ours().filter_map(|terminal| terminal.output.as_deref()).collect();
        InTerminals {
            output: (!output.is_empty()).then(|| output.join("\n")),
            end: ours().filter_map(|terminal| terminal.end).next_back(),
            truncated: ours().any(|terminal| terminal.truncated),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_word_counts_and_silence_takes_nothing_back() {
        let mut terminals = Terminals::default();
        terminals.answered("a".into(), &mut json!({"output": "one", "truncated": true}));
        terminals.answered("a".into(), &mut json!({"exitCode": 3, "signal": null}));
        terminals.update("b".into(), Some("two".into()), Some(false), Some(CommandEnd::Code(0)));
        let ids = ["x", "a", "b"].map(str::to_owned);
        let shown = terminals.show(&ids);
        let end = Some(CommandEnd::Code(0));
        assert_eq!((shown.output.as_deref(), shown.end, shown.truncated), (Some("one\ntwo"), end, true));
        assert_eq!(terminals.show(&ids[..2]).end, Some(CommandEnd::Code(3)));
        terminals.answered("a".into(), &mut json!({"exitCode": null, "signal": "SIGSEGV"}));
        assert_eq!(terminals.show(&ids[..2]).end, Some(CommandEnd::Signal));
        assert_eq!(terminals.show(&ids[..1]), InTerminals::default());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut terminals = Terminals::default();
        let text = "x".repeat(1 << 20);
        for n in 0..200 {
            terminals.update(n.to_string(), Some(text.clone()), None, None);
            terminals.update(n.to_string(), Some(text.clone()), None, None);
        }
        assert_eq!((terminals.by_id.len(), terminals.bytes), (64, 64 << 20));
        assert!(terminals.show(&["199".to_owned()]).output.is_some());
        assert!(terminals.show(&["0".to_owned()]).output.is_none());
        for n in 0..2000 {
            terminals.update(format!("n{n}"), None, None, Some(CommandEnd::Code(0)));
        }
        assert_eq!((terminals.by_id.len(), terminals.bytes), (MAX_TERMINALS_AND_BYTES.0, 0));
    }
}

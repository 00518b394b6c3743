//! Requests of the demo agent to its client: files, commands in terminals, questions to the user.

use std::io;

use serde_json::{Value, json};

use super::Voice;
use crate::demo::play::{Call, Stage};
use crate::demo::script::{Question, Read, Run, Tool, Write};
use crate::demo::tools::CallOutcome;

/// The client's capabilities for requests of an agent.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Offers {
    read: bool,
    write: bool,
    terminal: bool,
    form: bool,
}

impl Offers {
    pub(super) fn of(params: &Value) -> Self {
        let can = &params["clientCapabilities"];
        Self {
            read: can["fs"]["readTextFile"] == true,
            write: can["fs"]["writeTextFile"] == true,
            terminal: can["terminal"] == true,
            form: can["elicitation"]["form"].is_object(),
        }
    }
}

impl Voice<'_> {
    /// Sends a request to the client and waits for the answer. Returns `None` if no answer can come any more.
    pub(super) fn request(&mut self, method: &str, mut params: Value) -> io::Result<Option<Value>> {
        let id = self.wire.next_request;
        self.wire.next_request += 1;
        params["sessionId"] = json!(self.session);
        self.wire.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(self.inbox.answer_to(id, self.session))
    }

    /// Returns the result of a request, or the failed call if the client did not carry it out.
    fn asked(&mut self, method: &str, params: Value) -> io::Result<Result<Value, CallOutcome>> {
        Ok(match self.request(method, params)? {
            None => Err(CallOutcome::failed("cancelled")),
            Some(answer) if answer["error"].is_object() => {
                Err(CallOutcome::failed(answer["error"]["message"].as_str().unwrap_or("refused")))
            }
            Some(mut answer) => Ok(answer["result"].take()),
        })
    }

    fn read_by_client(&mut self, step: &Read) -> io::Result<CallOutcome> {
        let mut params = json!({"path": self.cwd.join(&step.path)});
        for (key, figure) in [("line", step.line), ("limit", step.limit)] {
            if let Some(figure) = figure {
                params[key] = json!(figure);
            }
        }
        let read = self.asked("fs/read_text_file", params)?;
        Ok(read.map_or_else(
            |failed| failed,
            |result| CallOutcome::succeeded(result["content"].as_str().unwrap_or_default()),
        ))
    }

    fn write_by_client(&mut self, step: &Write) -> io::Result<CallOutcome> {
        let path = self.cwd.join(&step.path);
        let written = self.asked("fs/write_text_file", json!({"path": path, "content": step.text}))?;
        let result = format!("wrote {} bytes to {}", step.text.len(), step.path);
        let path = path.display().to_string();
        Ok(written.map_or_else(|failed| failed, |_| CallOutcome::changed(result, path, None, &step.text)))
    }

    /// Runs a command in a terminal of the client. The terminal shows the output, so the output is not requested.
    fn run_by_client(&mut self, call: &Call, step: &Run) -> io::Result<CallOutcome> {
        let made = self.asked("terminal/create", json!({"command": "sh", "args": ["-c", step.command]}))?;
        let terminal = match made {
            Ok(made) => made["terminalId"].as_str().unwrap_or_default().to_owned(),
            Err(failed) => return Ok(failed),
        };
        self.call_update(call, json!({"content": [{"type": "terminal", "terminalId": terminal}]}))?;
        let outcome = match self.asked("terminal/wait_for_exit", json!({"terminalId": terminal}))? {
            Ok(exit) => {
                CallOutcome { failed: exit["exitCode"] != 0, terminal: Some(terminal), ..CallOutcome::default() }
            }
            Err(failed) => failed,
        };
        Ok(outcome)
    }

    /// Asks the user, if the client supports it. Returns `None` without an answer.
    pub(super) fn ask_user(&mut self, question: &Question) -> io::Result<Option<String>> {
        if !self.offers.form {
            return Ok(None);
        }
        let mut field = json!({"type": "string", "title": "Answer"});
        if !question.options.is_empty() {
            field["enum"] = json!(question.options);
        }
        let schema = json!({"type": "object", "properties": {"answer": field}, "required": ["answer"]});
        let params = json!({"mode": "form", "message": question.message, "requestedSchema": schema});
        let answer = self.request("elicitation/create", params)?.unwrap_or_default();
        let accepted = answer["result"]["action"] == "accept" && !self.cancelled();
        let text = answer["result"]["content"]["answer"].as_str().filter(|_| accepted);
        Ok(text.map(str::to_owned))
    }

    /// Lets the client carry out a call, if the client supports it.
    pub(super) fn done_by_client(&mut self, call: &Call) -> io::Result<Option<CallOutcome>> {
        Ok(match call.tool {
            Tool::Read(step) if self.offers.read => Some(self.read_by_client(step)?),
            Tool::Write(step) if self.offers.write => Some(self.write_by_client(step)?),
            Tool::Run(step) if self.offers.terminal => Some(self.run_by_client(call, step)?),
            _ => None,
        })
    }
}

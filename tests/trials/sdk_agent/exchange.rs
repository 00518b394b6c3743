//! What the agent asked and how it was answered, from the wire log: held to the laws of the protocol and the contract.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::live::Trial;

/// Everything that the agent asked, in the order in which it came.
pub struct Exchange {
    /// What the engine offered to serve.
    pub offered: Value,
    pub asked: Vec<Asked>,
}

/// One request of the agent.
pub struct Asked {
    /// The agent's id of it. The SDK makes them of text, and none twice.
    id: String,
    pub method: String,
    pub params: Value,
    /// The answers, each a whole line.
    pub answers: Vec<Value>,
    /// Where a permission request must be answered `cancelled`: why.
    must_not: Option<&'static str>,
    /// Whether the engine answered before it heard anything else, or cancelled the turn.
    pub alone: bool,
    /// Whether it came while the engine was there to answer.
    due: bool,
    /// The number of the call among those with its ID, from 1. `None` if the answer changes no call.
    begun: Option<u32>,
}

impl Exchange {
    /// Reads the wire log. What breaks a law of all requests is an error.
    pub fn of(trial: &Trial) -> Result<Self, String> {
        let mut reading = Reading::default();
        for line in &trial.wire {
            let said: Value = serde_json::from_str(line["line"].as_str().unwrap()).unwrap_or_default();
            match line["dir"].as_str().unwrap() {
                "send" => reading.sent(&said)?,
                "recv" => reading.heard(said)?,
                "engine" if ["close_stdin", "signal"].contains(&said["event"].as_str().unwrap()) => reading.gone = true,
                _ => {}
            }
        }
        let exchange = Self { offered: reading.offered, asked: reading.asked.into_iter().map(|(_, it)| it).collect() };
        exchange.check(trial)?;
        Ok(exchange)
    }

    /// Whether the engine said that it serves such a request.
    fn offers(&self, asked: &Asked) -> bool {
        let can = |pointer: &str| self.offered.pointer(pointer).is_some_and(|it| *it == true || it.is_object());
        match asked.method.as_str() {
            "session/request_permission" => true,
            "fs/read_text_file" => can("/fs/readTextFile"),
            "fs/write_text_file" => can("/fs/writeTextFile"),
            "elicitation/create" => can(&format!("/elicitation/{}", asked.params["mode"].as_str().unwrap())),
            method => method.starts_with("terminal/") && can("/terminal"),
        }
    }

    fn check(&self, trial: &Trial) -> Result<(), String> {
        for (n, asked) in self.asked.iter().enumerate() {
            let broken = |law: &str| Err(format!("request {n}, {}: {law}: {:?}", asked.method, asked.answers));
            let Some(answer) = asked.answers.first() else {
                if asked.due {
                    return broken("it was never answered");
                }
                continue;
            };
            if asked.answers.len() > 1 {
                return broken("it was answered twice");
            }
            let code = answer["error"]["code"].as_i64();
            match (answer.get("result").is_some(), code) {
                (true, None) if self.offers(asked) => {}
                (false, Some(-32601)) if !self.offers(asked) => {}
                // The method is known where another mode of it is offered; what is not offered may be declined then.
                (true, None) if self.offered["elicitation"].is_object() && asked.method == "elicitation/create" => {}
                (false, Some(code)) if self.offers(asked) && code != -32601 => {}
                _ => return broken("that is no answer to what was, or was not, offered"),
            }
            if answer["result"]["action"] == "accept" {
                return broken("a question was answered, and no case here knows an answer");
            }
            if asked.method == "session/request_permission" {
                asked.permission(answer).or_else(|law| broken(&law))?;
            }
        }
        self.check_account(trial)?;
        // Each one is in the Trace once, and so is each answer that was sent. Questions may be too, and nothing else.
        for (kind, was_sent) in [("permission_request", false), ("permission_response", true)] {
            let mut told: Vec<&str> = trial.of(kind).iter().filter_map(|event| event["request"].as_str()).collect();
            for asked in self.asked.iter().filter(|it| !was_sent || !it.answers.is_empty()) {
                let known = told.iter().position(|id| *id == asked.id).map(|at| told.swap_remove(at));
                if asked.method == "session/request_permission" && known.is_none() {
                    return Err(format!("the Trace has no {kind} for {}", asked.id));
                }
                if known.is_some() && !["session/request_permission", "elicitation/create"].contains(&&*asked.method) {
                    return Err(format!("the Trace has a {kind} for {}", asked.method));
                }
            }
            if !told.is_empty() {
                return Err(format!("the Trace has {kind}s that nobody asked for, or twice: {told:?}"));
            }
        }
        Ok(())
    }

    /// What the agent says that it was answered is what was sent: its SDK could read it.
    fn check_account(&self, trial: &Trial) -> Result<(), String> {
        for line in trial.wire.iter().filter(|line| line["dir"] == "stderr") {
            let text = line["line"].as_str().unwrap();
            let told: Value = serde_json::from_str(text).map_err(|_| format!("the agent said: {text}"))?;
            let asked = &self.asked[told["asked"].as_u64().unwrap() as usize];
            // Where the connection was closed before, nothing was sent.
            let Some(sent) = asked.answers.first() else { continue };
            let agrees = match told.get("error") {
                Some(code) => *code == sent["error"]["code"],
                None => told["method"] == asked.method.as_str() && sent.get("result").is_some(),
            };
            if !agrees {
                return Err(format!("the agent was sent {sent} and took it for {told}"));
            }
        }
        Ok(())
    }
}

impl Asked {
    /// The kind of the option that was chosen; nothing where it was answered `cancelled`.
    pub fn chosen(&self) -> Option<&str> {
        let option = self.answers.first()?.pointer("/result/outcome/optionId")?;
        let options = self.params["options"].as_array()?;
        options.iter().find(|offered| offered["optionId"] == *option)?["kind"].as_str()
    }

    /// Whether the policy may answer it as it likes.
    pub fn may(&self) -> bool {
        self.must_not.is_none()
    }

    fn permission(&self, answer: &Value) -> Result<(), String> {
        match answer.pointer("/result/outcome/outcome").and_then(Value::as_str) {
            Some("cancelled") => Ok(()),
            Some("selected") if self.chosen().is_none() => Err("an option that was not offered".to_owned()),
            Some("selected") => self.must_not.map_or(Ok(()), |why| Err(format!("it was answered although {why}"))),
            _ => Err("that is no outcome".to_owned()),
        }
    }
}

/// What is known while the log is read.
#[derive(Default)]
struct Reading {
    offered: Value,
    asked: Vec<(Value, Asked)>,
    /// Ids of our own requests, and of the prompt that is running.
    opening: Option<Value>,
    session: Value,
    prompting: Option<Value>,
    cancelled: bool,
    gone: bool,
    /// Calls that are open, and whether the last answer about each did not allow it.
    open: BTreeMap<String, bool>,
    /// The number of calls that were announced with each ID.
    begun: BTreeMap<String, u32>,
    /// The same for calls that were not announced yet.
    early: BTreeMap<String, bool>,
    /// IDs that were announced again while their call was open. The answer to a request about them is not checked.
    told_twice: BTreeSet<String>,
}

impl Reading {
    fn sent(&mut self, said: &Value) -> Result<(), String> {
        match said["method"].as_str() {
            Some("initialize") => self.offered = said["params"]["clientCapabilities"].clone(),
            Some("session/new") => self.opening = Some(said["id"].clone()),
            // What came between two turns belongs to neither, also where it is answered in the second one.
            Some("session/prompt") => self.prompting = Some(said["id"].clone()),
            Some("session/cancel") => {
                self.cancelled = true;
                self.asked.iter_mut().filter(|(_, it)| it.answers.is_empty()).for_each(|(_, it)| it.alone = false);
            }
            Some(_) => {}
            None => {
                let unanswered = |(id, asked): &&mut (Value, Asked)| *id == said["id"] && asked.answers.is_empty();
                let asked = self.asked.iter_mut().find(unanswered);
                let again = || format!("an answer to nothing, or a second one: {said}");
                let asked = &mut asked.ok_or_else(again)?.1;
                asked.answers.push(said.clone());
                let about = asked.params["toolCall"]["toolCallId"].as_str().unwrap_or_default();
                let refused = asked.chosen().is_none_or(|kind| kind.starts_with("reject"));
                match (asked.begun, self.begun.get(about)) {
                    // The answer counts when the call is announced.
                    (Some(1), None) => drop(self.early.insert(about.to_owned(), refused)),
                    (Some(of), Some(now)) if of == *now => {
                        self.open.entry(about.to_owned()).and_modify(|it| *it = refused);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn heard(&mut self, said: Value) -> Result<(), String> {
        for (_, asked) in self.asked.iter_mut().filter(|(_, it)| it.answers.is_empty()) {
            asked.alone = false;
        }
        let params = &said["params"];
        let Some(method) = said["method"].as_str() else {
            if Some(&said["id"]) == self.opening.as_ref() {
                self.session = said["result"]["sessionId"].clone();
            }
            if Some(&said["id"]) == self.prompting.as_ref() {
                self.prompting = None;
                // What was not allowed has ended with its turn; what was may go on behind the next one.
                self.open.retain(|_, refused| !*refused);
            }
            return Ok(());
        };
        if method == "session/update" {
            let id = params["update"]["toolCallId"].as_str().unwrap_or_default().to_owned();
            let update = params["update"]["sessionUpdate"].as_str();
            // A second announcement of an ID may be another call, or the same one again.
            if update == Some("tool_call") && self.open.contains_key(&id) {
                self.told_twice.insert(id.clone());
            }
            // A late update of a call that has ended does not begin it again.
            if update == Some("tool_call") || update == Some("tool_call_update") && !self.begun.contains_key(&id) {
                self.begin(&id);
            }
            if let Some("completed" | "failed") = params["update"]["status"].as_str() {
                self.open.remove(&id);
            }
        }
        if said.get("id").is_none() {
            return Ok(());
        }
        let call = &params["toolCall"];
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let own = params["sessionId"] == self.session;
        let described = call.get("title").is_some();
        let must_not = if !own {
            Some("it is of another session")
        } else if self.cancelled {
            Some("the turn was cancelled")
        } else if !described && !self.open.contains_key(id) && !self.told_twice.contains(id) {
            Some("nobody knows the call")
        } else if self.prompting.is_none() {
            Some("no prompt was running")
        } else {
            None
        };
        if own && described {
            self.begin(id);
        }
        let begun = match (self.open.contains_key(id), self.begun.get(id)) {
            (true, now) => now.copied(),
            (false, None) => Some(1),
            (false, Some(_)) => None,
        };
        let (method, params, due) = (method.to_owned(), params.clone(), !self.gone);
        let asked = Asked {
            id: said["id"].as_str().unwrap().to_owned(),
            method,
            params,
            answers: Vec::new(),
            must_not,
            alone: !self.told_twice.contains(id),
            due,
            begun: begun.filter(|_| own),
        };
        self.asked.push((said["id"].clone(), asked));
        Ok(())
    }

    /// Opens a call, if it is not open.
    fn begin(&mut self, id: &str) {
        if !self.open.contains_key(id) {
            *self.begun.entry(id.to_owned()).or_default() += 1;
            self.open.insert(id.to_owned(), self.early.remove(id).unwrap_or_default());
        }
    }
}

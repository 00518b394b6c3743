//! The sub-agents of Copilot CLI: which call started each of them, and which texts may be theirs. A call names its sub-agent by
//! an ID, and a text names no speaker.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::updates::parent_of;
use super::{Translator, content, rpc};
use crate::trace::NoticeCode;
use crate::trace::recorder::Recorder;

/// The name by which Copilot CLI introduces itself.
const COPILOT: &str = "Copilot";

/// The beginning of the result of a call that started a sub-agent in the background. The ID of the sub-agent and a full stop
/// follow.
const STARTED: &str = "Agent started in background with agent_id: ";

/// The statuses of a sub-agent that does not work, in a result about the sub-agent.
const AT_REST: [&str; 4] = ["idle", "completed", "failed", "cancelled"];

/// The maximum number of calls, and of sub-agents, that are remembered.
const MAX_KNOWN: usize = 10_000;

/// The sub-agents of a session.
#[derive(Debug, Default)]
pub(super) struct CopilotAgents {
    /// The open calls that start a sub-agent, in the order of their announcements.
    starting: Vec<String>,
    /// The calls that started the sub-agents, by the IDs of the sub-agents.
    calls: BTreeMap<String, String>,
    /// The sub-agents of which a call was shown while it was unknown which call had started them.
    unknown: BTreeSet<String>,
    /// The sub-agents that may work in the background.
    background: BTreeSet<String>,
}

impl CopilotAgents {
    /// Takes the input of a call, which may start a sub-agent.
    fn asked(&mut self, id: &str, input: &Value) {
        let has = |key: &str| input.get(key).is_some_and(Value::is_string);
        let is_known = || self.starting.iter().any(|known| known == id);
        if has("agent_type") && has("prompt") && !is_known() && self.starting.len() < MAX_KNOWN {
            self.starting.push(id.to_owned());
        }
    }

    /// Takes the output of an open call, which may start a sub-agent or be about one.
    fn answered(&mut self, id: &str, output: &str, recorder: &Recorder) {
        let is_starting = self.starting.iter().any(|known| known == id);
        if let Some(agent) = started(output).filter(|_| is_starting && self.calls.len() < MAX_KNOWN) {
            self.calls.insert(agent.to_owned(), id.to_owned());
            self.background.insert(agent.to_owned());
            return;
        }
        let named = recorder.open_call(id).and_then(|(call, _)| call.shown_input()?.get("agent_id")?.as_str());
        let Some(agent) = named.filter(|agent| self.calls.contains_key(*agent)) else { return };
        if status_of(agent, output).is_some_and(|status| AT_REST.contains(&status)) {
            self.background.remove(agent);
        } else {
            self.background.insert(agent.to_owned());
        }
    }

    /// Returns the open calls that started sub-agents: their sub-agents work, and the agent that made the calls waits.
    fn at_work(&mut self, recorder: &Recorder) -> &[String] {
        self.starting.retain(|id| recorder.is_open(id));
        &self.starting
    }
}

impl Translator {
    /// Adds to the `_meta` of an update the call of the sub-agent whose update it is. Returns true if the update holds a text
    /// whose speaker is unknown.
    pub(super) fn name_copilot_agent(
        &mut self,
        word: &str,
        update: &Map<String, Value>,
        meta: &mut Value,
        recorder: &mut Recorder,
    ) -> bool {
        if parent_of(meta).is_some() {
            return false;
        }
        let agent = meta.get("github.com/copilot").and_then(|copilot| copilot.get("agentId")).and_then(Value::as_str);
        let is_text = matches!(word, "agent_message_chunk" | "agent_thought_chunk");
        let mut is_of_several = false;
        let call = match agent.map(str::to_owned) {
            Some(agent) => self.call_of_copilot_agent(&agent, recorder),
            None if is_text && self.conventions.is_agent(COPILOT) => match self.copilot_agents.at_work(recorder) {
                [call] => Some(call.clone()),
                at_work => {
                    is_of_several = !at_work.is_empty();
                    None
                }
            },
            None => None,
        };
        if word.starts_with("tool_call") {
            self.look_at_copilot_call(update, recorder);
        }
        let Some(call) = call else { return is_text && (is_of_several || !self.copilot_agents.background.is_empty()) };
        match meta {
            Value::Object(meta) => {
                meta.insert("parentToolCallId".to_owned(), Value::String(call));
            }
            meta => *meta = json!({"parentToolCallId": call}),
        }
        false
    }

    /// Returns the call that started a sub-agent: the call whose result names the sub-agent, or else the only open one that
    /// starts a sub-agent and belongs to no other. A sub-agent works only while its call is open, unless the result of the call
    /// names it.
    fn call_of_copilot_agent(&mut self, agent: &str, recorder: &mut Recorder) -> Option<String> {
        let agents = &mut self.copilot_agents;
        if let Some(known) = agents.calls.get(agent) {
            return Some(known.clone());
        }
        let taken: BTreeSet<String> = agents.calls.values().cloned().collect();
        let mut free = agents.at_work(recorder).iter().filter(|id| !taken.contains(*id)).cloned();
        if let (Some(call), None) = (free.next(), free.next()) {
            if agents.calls.len() < MAX_KNOWN {
                agents.calls.insert(agent.to_owned(), call.clone());
            }
            return Some(call);
        }
        if agents.unknown.len() < MAX_KNOWN && agents.unknown.insert(agent.to_owned()) {
            let text = format!(
                "it is unknown which call started the sub-agent {agent}, whose calls are shown as the main agent's"
            );
            recorder.lost_caller(NoticeCode::UnknownParent, text);
        }
        None
    }

    /// Notes the sub-agent that a call starts, or that its result is about.
    fn look_at_copilot_call(&mut self, update: &Map<String, Value>, recorder: &Recorder) {
        let Some(id) = update.get("toolCallId").filter(|id| !id.is_null()).map(rpc::id_text) else { return };
        let agents = &mut self.copilot_agents;
        if let Some(input) = update.get("rawInput") {
            agents.asked(&id, input);
        }
        if agents.starting.is_empty() && agents.calls.is_empty() {
            return;
        }
        if let Some(output) = update.get("rawOutput").and_then(content::raw_text) {
            agents.answered(&id, &output, recorder);
        }
    }
}

/// Returns the ID of the sub-agent that a call started in the background, by the call's result.
fn started(output: &str) -> Option<&str> {
    output.strip_prefix(STARTED)?.split_once('.').map(|(agent, _)| agent)
}

/// Returns the status of a sub-agent in the first line of a result about it.
fn status_of<'a>(agent: &str, output: &'a str) -> Option<&'a str> {
    let (_, rest) = output.lines().next()?.split_once(&format!("agent_id: {agent}, "))?;
    rest.split(", ").find_map(|part| part.strip_prefix("status: "))
}

//! The model of a session: the models that the agent offers, the requested model, and the model that the agent
//! reports.

use serde_json::Value;

use super::rpc::RpcError;
use super::usage::only_model;
use super::{Translator, text_at};
use crate::adapter::EndReport;
use crate::models;
use crate::text::some_of;
use crate::trace::NoticeCode;
use crate::trace::recorder::Recorder;

/// The name by which the bridge to Codex introduces itself.
const REPORTS_REROUTES: &str = "@agentclientprotocol/codex-acp";

/// The maximum number of kept names of models and of options.
const MAX_NAMES: usize = 10_000;

/// The agent's reports about the model. A model that ran takes precedence over one that was chosen.
#[derive(Debug, Default)]
pub(super) struct ModelSeen {
    effective: Option<String>,
    option: Option<String>,
    listed: Option<String>,
    /// The ids of the config options that choose a model.
    option_ids: Vec<String>,
    /// The config option by which a model was requested.
    asked_by: Option<String>,
    /// The models that the agent offers.
    offered: Vec<String>,
    /// True if the agent has reported the model since one was requested.
    is_reported: bool,
    /// True if the service let another model answer since the last prompt. The usage still names the chosen one.
    is_rerouted: bool,
}

impl ModelSeen {
    /// Returns true if this config option chooses the model.
    pub(super) fn is_chosen_by(&self, config: &str) -> bool {
        config == "model" || self.option_ids.iter().any(|id| id == config)
    }

    /// Records that the engine requested a model, with the config option that was used, if any.
    pub(super) fn asked(&mut self, option: Option<String>) {
        self.asked_by = option.or(self.asked_by.take());
        self.is_reported = false;
    }

    /// Takes a prompt: the chosen model may answer again.
    pub(super) fn prompted(&mut self) {
        self.is_rerouted = false;
    }

    /// Returns true if another model answers than the usage names.
    pub(super) fn is_rerouted(&self) -> bool {
        self.is_rerouted
    }

    fn offers(&mut self, models: impl Iterator<Item = String>) {
        let models: Vec<String> = models.take(MAX_NAMES).collect();
        if !models.is_empty() {
            self.offered = models;
        }
    }
}

impl Translator {
    /// Reads the model that the config options choose.
    pub(super) fn config_options(&mut self, options: Option<&Value>, recorder: &mut Recorder) {
        let options = options.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let choices: Vec<&Value> = options.iter().filter(|option| is_choice(option)).collect();
        for id in choices.iter().filter_map(|option| text_at(option, "id")) {
            if !self.model.option_ids.contains(&id) && self.model.option_ids.len() < MAX_NAMES {
                self.model.option_ids.push(id);
            }
        }
        // Of several options, the one by which the model was requested counts.
        let by = |wanted: &str| choices.iter().find(|option| text_at(option, "id").as_deref() == Some(wanted));
        let asked_by = self.model.asked_by.as_deref().and_then(by);
        let Some(choice) = asked_by.or_else(|| by("model")).or_else(|| choices.first()).copied() else { return };
        self.model.offers(values(choice));
        if let Some(value) = text_at(choice, "currentValue") {
            self.model.is_reported = true;
            self.model.option = Some(value);
        }
        self.tell_model(recorder);
    }

    /// Reads the older list of models, `{currentModelId, availableModels}`.
    pub(super) fn current_model(&mut self, models: Option<&Value>, recorder: &mut Recorder) {
        let Some(models) = models else { return };
        let available = models.get("availableModels").and_then(Value::as_array).into_iter().flatten();
        self.model.offers(available.filter_map(|model| text_at(model, "modelId")));
        if let Some(model) = text_at(models, "currentModelId") {
            self.model.is_reported = true;
            self.model.listed = Some(model);
            self.tell_model(recorder);
        }
    }

    /// Takes the answer that accepts a choice of a model. If the agent reports a model, that model counts. An
    /// acceptance without a report, or of a model that is not offered, is not evidence.
    pub(super) fn model_accepted(
        &mut self,
        method: &str,
        model: Option<String>,
        answer: &Value,
        recorder: &mut Recorder,
    ) {
        self.config_options(answer.get("configOptions"), recorder);
        self.current_model(answer.get("models"), recorder);
        self.current_model(Some(answer), recorder);
        let name = model.as_deref().unwrap_or_default();
        let offered = &self.model.offered;
        let is_offered = offered.is_empty() || offered.iter().any(|offer| models::same(name, offer));
        if !is_offered {
            let text = format!("the agent accepted model `{name}`, which is not in its list of models");
            recorder.notice(NoticeCode::ModelUnlisted, text);
        }
        if self.model.is_reported {
            return;
        }
        // The option's earlier value is outdated since the agent took another model.
        self.model.option = None;
        // The answer to the older method is an empty object.
        let is_done = method == "session/set_model" && answer.is_object();
        if !is_done {
            let text =
                format!("the agent accepted model `{name}`, but did not report which model it uses now: {answer}");
            recorder.notice(NoticeCode::ModelUnconfirmed, text);
        }
        self.model.listed = model.filter(|_| is_done && is_offered);
        self.tell_model(recorder);
    }

    /// Takes the refusal of a model, and reports the models that the agent offers instead.
    pub(super) fn model_refused(&mut self, model: Option<&str>, error: &RpcError, recorder: &mut Recorder) {
        const MAX_SHOWN_MODELS: usize = 12;
        self.refused(&format!("model `{}`", model.unwrap_or_default()), error, true, recorder);
        let offered = &self.model.offered;
        if let (Some(EndReport::Failed { detail, .. }), false) = (&mut self.setup, offered.is_empty()) {
            detail.push_str(&format!("; the agent offers {}", some_of(offered, MAX_SHOWN_MODELS)));
        }
    }

    /// Takes the agent's report of the model that ran. A name in angle brackets is one of the agent's program.
    fn model_ran(&mut self, model: &str, recorder: &mut Recorder) {
        if model.is_empty() || model.starts_with('<') || self.model.effective.as_deref() == Some(model) {
            return;
        }
        let before = self.model.effective.replace(model.to_owned());
        self.tell_model(recorder);
        if let Some(before) = before {
            recorder.notice(NoticeCode::ModelChanged, format!("the model changed from {before} to {model}"));
        }
    }

    /// Takes a thought by which the bridge to Codex reports that the service let another model answer. Returns false for any other
    /// text.
    pub(super) fn took_reroute(&mut self, text: &str, recorder: &mut Recorder) -> bool {
        let Some((from, to)) = rerouted(text).filter(|_| self.conventions.is_agent(REPORTS_REROUTES)) else {
            return false;
        };
        recorder.notice(NoticeCode::ProgramMessage, text.trim());
        if self.model.effective.is_none() {
            self.model.effective = Some(from.to_owned());
        }
        self.model_ran(to, recorder);
        self.model.is_rerouted = true;
        true
    }

    /// Reads the model from the agent's additions to the protocol, or from its usage.
    pub(super) fn model_named(&mut self, beside: &Value, recorder: &mut Recorder) {
        if self.model.is_rerouted {
            return;
        }
        let named = ["_claude/model", "model", "modelId"].iter().find_map(|key| beside.get(*key)?.as_str());
        if let Some(model) = named.or_else(|| only_model(beside)) {
            self.model_ran(model, recorder);
        }
    }

    fn tell_model(&self, recorder: &mut Recorder) {
        let seen = [&self.model.effective, &self.model.option, &self.model.listed].into_iter().flatten().next();
        recorder.header().model.effective = seen.cloned();
    }
}

/// Returns the models that a text of the bridge to Codex names: the chosen one, and the one that answers.
fn rerouted(text: &str) -> Option<(&str, &str)> {
    let (from, rest) = text.trim().strip_prefix("Model rerouted from ")?.split_once(" to ")?;
    let (to, reason) = rest.split_once(" (")?;
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    (is_name(from) && is_name(to) && reason.ends_with(").")).then_some((from, to))
}

/// Returns the config option that chooses a model. If there are several, prefers the option that offers this model.
pub(crate) fn option_for<'a>(opened: &'a Value, model: &str) -> Option<&'a Value> {
    let options = opened.get("configOptions")?.as_array()?;
    let choices: Vec<&Value> =
        options.iter().filter(|option| is_choice(option) && option.get("id").is_some()).collect();
    let offers = |option: &&&Value| values(option).any(|value| value == model);
    let named = |option: &&&Value| text_at(option, "id").as_deref() == Some("model");
    choices.iter().find(offers).or_else(|| choices.iter().find(named)).or_else(|| choices.first()).copied()
}

/// Returns true if a config option is a list to choose a model from, and not a switch.
fn is_choice(option: &Value) -> bool {
    let category = option.get("category").and_then(Value::as_str);
    let is_model = match category {
        Some(category) => category == "model",
        None => text_at(option, "id").as_deref() == Some("model"),
    };
    let kind = option.get("type").and_then(Value::as_str);
    is_model && kind.is_none_or(|kind| kind == "select") && !option.get("currentValue").is_some_and(Value::is_boolean)
}

/// Returns the values of a config option, including those in groups.
fn values(option: &Value) -> impl Iterator<Item = String> {
    let items = |of: &Value| of.get("options").and_then(Value::as_array).cloned().unwrap_or_default();
    let flat = items(option).into_iter().flat_map(move |item| {
        let group = items(&item);
        if group.is_empty() { vec![item] } else { group }
    });
    flat.filter_map(|item| text_at(&item, "value"))
}

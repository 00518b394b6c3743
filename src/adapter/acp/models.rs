//! The model of a session: the models that the agent offers, the requested model, and the model that the agent
//! reports.

use serde_json::Value;

use super::rpc::RpcError;
use super::usage::only_model;
use super::{Translator, text_at};
use crate::adapter::Answer;
use crate::models;
use crate::trace::recorder::Recorder;

/// Names of models and of options that are kept, at most.
const MAX_NAMES: usize = 10_000;

/// What was learned of the model. What ran counts before what was chosen.
#[derive(Debug, Default)]
pub(super) struct ModelSeen {
    ran: Option<String>,
    option: Option<String>,
    listed: Option<String>,
    /// Ids of the config options that choose a model.
    option_ids: Vec<String>,
    /// The one of them by which a model was asked for.
    asked_by: Option<String>,
    /// Models that the agent offers.
    offered: Vec<String>,
    /// Whether the agent has told the model since it was asked for one.
    told: bool,
}

impl ModelSeen {
    /// Whether this config option chooses the model.
    pub(super) fn is_chosen_by(&self, config: &str) -> bool {
        config == "model" || self.option_ids.iter().any(|id| id == config)
    }

    /// A model is asked for, by this option where it is one.
    pub(super) fn asked(&mut self, option: Option<String>) {
        self.asked_by = option.or(self.asked_by.take());
        self.told = false;
    }

    fn offers(&mut self, models: impl Iterator<Item = String>) {
        let models: Vec<String> = models.take(MAX_NAMES).collect();
        if !models.is_empty() {
            self.offered = models;
        }
    }
}

impl Translator {
    /// The model that the config options choose.
    pub(super) fn config_options(&mut self, options: Option<&Value>, recorder: &mut Recorder) {
        let options = options.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let choices: Vec<&Value> = options.iter().filter(|option| is_choice(option)).collect();
        for id in choices.iter().filter_map(|option| text_at(option, "id")) {
            if !self.model.option_ids.contains(&id) && self.model.option_ids.len() < MAX_NAMES {
                self.model.option_ids.push(id);
            }
        }
        // Of several the one that was asked by is meant.
        let by = |wanted: &str| choices.iter().find(|option| text_at(option, "id").as_deref() == Some(wanted));
        let asked_by = self.model.asked_by.as_deref().and_then(by);
        let Some(choice) = asked_by.or_else(|| by("model")).or_else(|| choices.first()).copied() else { return };
        self.model.offers(values(choice));
        if let Some(value) = text_at(choice, "currentValue") {
            self.model.told = true;
            self.model.option = Some(value);
        }
        self.tell_model(recorder);
    }

    /// The older list of models, `{currentModelId, availableModels}`.
    pub(super) fn current_model(&mut self, models: Option<&Value>, recorder: &mut Recorder) {
        let Some(models) = models else { return };
        let available = models.get("availableModels").and_then(Value::as_array).into_iter().flatten();
        self.model.offers(available.filter_map(|model| text_at(model, "modelId")));
        if let Some(model) = text_at(models, "currentModelId") {
            self.model.told = true;
            self.model.listed = Some(model);
            self.tell_model(recorder);
        }
    }

    /// The choice of a model was answered with a result. What the agent tells counts, and an acceptance that tells
    /// nothing, or takes what is not to be had, is not believed.
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
            let text = format!("the agent accepted model `{name}`, which is not among the models that it offers");
            recorder.notice("model_unlisted", text);
        }
        if self.model.told {
            return;
        }
        // What it was before the agent took another is no longer true.
        self.model.option = None;
        // The older call has nothing to say but that it is done.
        let is_done = method == "session/set_model" && answer.is_object();
        if !is_done {
            let text = format!("the agent accepted model `{name}`, and did not say which one it runs on now: {answer}");
            recorder.notice("model_unconfirmed", text);
        }
        self.model.listed = model.filter(|_| is_done && is_offered);
        self.tell_model(recorder);
    }

    /// The choice of a model was refused: what the agent offers instead is worth knowing.
    pub(super) fn model_refused(&mut self, model: Option<&str>, error: &RpcError, recorder: &mut Recorder) {
        const SHOWN: usize = 12;
        self.refused(&format!("model `{}`", model.unwrap_or_default()), error, true, recorder);
        let offered = &self.model.offered;
        if let (Some(Answer::Failed { detail, .. }), false) = (&mut self.setup, offered.is_empty()) {
            let more = offered.len().saturating_sub(SHOWN);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let shown: Vec<&str> = offered.iter().take(SHOWN).map(String::as_str).collect();
            detail.push_str(&format!("; the agent offers {}{more}", shown.join(", ")));
        }
    }

    /// The agent told which model ran. A name in angle brackets is the program's own.
    pub(super) fn model_ran(&mut self, model: &str, recorder: &mut Recorder) {
        if model.is_empty() || model.starts_with('<') || self.model.ran.as_deref() == Some(model) {
            return;
        }
        self.model.ran = Some(model.to_owned());
        self.tell_model(recorder);
    }

    /// The model that the agent names in what it adds to the protocol, or in what was spent.
    pub(super) fn model_named(&mut self, beside: &Value, recorder: &mut Recorder) {
        let named = ["_claude/model", "model", "modelId"].iter().find_map(|key| beside.get(*key)?.as_str());
        if let Some(model) = named.or_else(|| only_model(beside)) {
            self.model_ran(model, recorder);
        }
    }

    fn tell_model(&self, recorder: &mut Recorder) {
        let seen = [&self.model.ran, &self.model.option, &self.model.listed].into_iter().flatten().next();
        recorder.header().model.effective = seen.cloned();
    }
}

/// The config option by which a model is chosen: the one that offers it, where there are several.
pub(crate) fn option_for<'a>(opened: &'a Value, model: &str) -> Option<&'a Value> {
    let options = opened.get("configOptions")?.as_array()?;
    let choices: Vec<&Value> =
        options.iter().filter(|option| is_choice(option) && option.get("id").is_some()).collect();
    let offers = |option: &&&Value| values(option).any(|value| value == model);
    let named = |option: &&&Value| text_at(option, "id").as_deref() == Some("model");
    choices.iter().find(offers).or_else(|| choices.iter().find(named)).or_else(|| choices.first()).copied()
}

/// Whether a config option is a list to choose a model from. One that can only be on or off chooses none.
fn is_choice(option: &Value) -> bool {
    let category = option.get("category").and_then(Value::as_str);
    let is_model = match category {
        Some(category) => category == "model",
        None => text_at(option, "id").as_deref() == Some("model"),
    };
    let kind = option.get("type").and_then(Value::as_str);
    is_model && kind.is_none_or(|kind| kind == "select") && !option.get("currentValue").is_some_and(Value::is_boolean)
}

/// The values of a config option, those of its groups too.
fn values(option: &Value) -> impl Iterator<Item = String> {
    let items = |of: &Value| of.get("options").and_then(Value::as_array).cloned().unwrap_or_default();
    let flat = items(option).into_iter().flat_map(move |item| {
        let group = items(&item);
        if group.is_empty() { vec![item] } else { group }
    });
    flat.filter_map(|item| text_at(&item, "value"))
}

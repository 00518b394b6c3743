//! The mode of a session: puts the session into the wanted one, and follows what the agent reports of it.

use serde_json::{Value, json};

use super::drive::Client;
use super::rpc::RpcError;
use super::{Translator, text_at};
use crate::adapter::drive::Broken;
use crate::trace::recorder::Recorder;
use crate::wire::EngineLine;

/// What the translation has learned of the session's mode.
#[derive(Debug, Default)]
pub(super) struct ModeSeen {
    /// The agent has reported a mode since it was last asked to change it.
    told: bool,
    /// The ids of the config options that choose the mode.
    options: Vec<String>,
    /// A mode in which the agent does not ask was recorded.
    unattended: bool,
}

impl ModeSeen {
    /// Returns true if this config option chooses the mode.
    pub(super) fn is_chosen_by(&self, config: &str) -> bool {
        config == "mode" || self.options.iter().any(|id| id == config)
    }

    /// The engine asks for another mode.
    pub(super) fn asked(&mut self) {
        self.told = false;
    }
}

impl Translator {
    /// The mode in an answer that opens a session: its config option counts before the older list.
    pub(super) fn mode_of_session(&mut self, result: &Value, recorder: &mut Recorder) {
        if let Some(mode) = result.pointer("/modes/currentModeId").and_then(Value::as_str) {
            self.mode_is(mode, recorder);
        }
        self.mode_of_options(result, recorder);
    }

    /// The mode among the config options of an answer or an update.
    pub(super) fn mode_of_options(&mut self, answer: &Value, recorder: &mut Recorder) {
        let Some(option) = option_of(answer, "mode") else { return };
        if let Some(id) = text_at(option, "id").filter(|id| !self.mode.is_chosen_by(id)) {
            self.mode.options = vec![id];
        }
        if let Some(mode) = current(option) {
            self.mode_is(mode, recorder);
        }
    }

    /// The agent reports its mode.
    pub(super) fn mode_is(&mut self, mode: &str, recorder: &mut Recorder) {
        self.mode.told = true;
        recorder.mode_is(mode);
        // Between prompts it does nothing.
        if self.turn.open > 0 {
            self.look_at_mode(true, recorder);
        }
    }

    /// The agent accepted a mode. What it reported since it was asked counts before that.
    pub(super) fn mode_accepted(&mut self, mode: Option<String>, answer: &Value, recorder: &mut Recorder) {
        self.config_options(answer.get("configOptions"), recorder);
        self.mode_of_options(answer, recorder);
        if let Some(mode) = mode.filter(|_| !self.mode.told) {
            self.mode_is(&mode, recorder);
        }
    }

    /// Once the agent works in a mode in which it does not ask, its requests for permission are no evidence any more.
    pub(super) fn look_at_mode(&mut self, changed: bool, recorder: &mut Recorder) {
        if self.mode.unattended {
            return;
        }
        let Some(mode) = recorder.mode().filter(|mode| self.conventions.is_unattended(mode)).map(str::to_owned) else {
            return;
        };
        self.mode.unattended = true;
        recorder.is_unattended(&mode, changed);
    }
}

impl Client<'_> {
    /// Puts the session into the mode of the case, or else of the manifest. In another mode it would be another case.
    pub(super) async fn choose_mode(&mut self, opened: &Value) -> Result<(), Broken> {
        let Some(mode) = self.task.session.mode.clone() else { return self.check_mode() };
        let wrong = |why: String| Broken::Handshake(format!("mode `{mode}` {why}"));
        let refused = |error: RpcError| wrong(format!("was refused: {}", error.detail()));
        let start = Some(self.task.manifest.timeouts.start.0);
        self.mode = None;
        let (wanted, told) = if let Some(option) = option_of(opened, "mode") {
            let wanted = named(option.get("options"), "value", &mode).unwrap_or_else(|| mode.clone());
            let params = json!({"sessionId": self.session_id, "configId": option.get("id"), "value": wanted});
            let answer = self.ask("session/set_config_option", &params, start).await?.map_err(refused)?;
            (wanted, option_of(&answer, "mode").and_then(current).map(str::to_owned))
        } else {
            let modes = opened.pointer("/modes/availableModes").filter(|modes| modes.is_array());
            let Some(modes) = modes else {
                let why = "cannot be set: the agent offers no modes";
                if self.task.mode_of_manifest && !self.task.must_ask {
                    // Every request would be approved, so what the mode asks for changes nothing.
                    let text = format!("the manifest names the mode `{mode}`, which {why}");
                    self.session.engine(&EngineLine::Notice { code: "mode_not_set".to_owned(), text });
                    return Ok(());
                }
                return Err(wrong(why.to_owned()));
            };
            let Some(wanted) = named(Some(modes), "id", &mode) else {
                let ids: Vec<&str> =
                    modes.as_array().into_iter().flatten().filter_map(|it| it.get("id")?.as_str()).collect();
                return Err(wrong(format!("is not one of the agent's: {}", ids.join(", "))));
            };
            let params = json!({"sessionId": self.session_id, "modeId": wanted});
            self.ask("session/set_mode", &params, start).await?.map_err(refused)?;
            (wanted, None)
        };
        match told.or_else(|| self.mode.take()).filter(|now| *now != wanted) {
            Some(now) => Err(wrong(format!("was asked for and accepted, and the agent says it is in `{now}`"))),
            None => self.check_mode(),
        }
    }

    /// Refuses to go on in a mode in which the agent does not ask, if the policy has something to decide.
    pub(super) fn check_mode(&mut self) -> Result<(), Broken> {
        match self.unattended() {
            Some(mode) => Err(Broken::Unattended(mode)),
            None => Ok(()),
        }
    }

    /// The mode of the session, if the agent does not ask in it and the policy is not `auto-approve`.
    fn unattended(&mut self) -> Option<String> {
        if !self.task.must_ask {
            return None;
        }
        let mode = self.session.recorder().mode()?.to_owned();
        self.task.manifest.is_unattended(&mode).then_some(mode)
    }
}

/// The mode that an update of a session reports.
pub(super) fn mode_in(update: &Value) -> Option<&str> {
    match update.get("sessionUpdate").and_then(Value::as_str) {
        Some("current_mode_update") => update.get("currentModeId")?.as_str(),
        Some("config_option_update") => option_of(update, "mode").and_then(current),
        _ => None,
    }
}

/// The id of an entry in a list, or in its groups: the entry with this id, else the first of this name.
fn named(list: Option<&Value>, key: &str, name: &str) -> Option<String> {
    let entries: Vec<&Value> = list?
        .as_array()?
        .iter()
        .flat_map(|entry| match entry.get("options").and_then(Value::as_array) {
            Some(group) => group.iter().collect(),
            None => vec![entry],
        })
        .collect();
    let by = |by: &str| entries.iter().find(|entry| entry.get(by).and_then(Value::as_str) == Some(name));
    by(key).or_else(|| by("name"))?.get(key)?.as_str().map(str::to_owned)
}

/// The config option of a category; one without a category goes by its id.
fn option_of<'a>(answer: &'a Value, category: &str) -> Option<&'a Value> {
    let options = answer.get("configOptions")?.as_array()?;
    let by = |key: &str| options.iter().find(|option| option.get(key).and_then(Value::as_str) == Some(category));
    by("category").or_else(|| by("id"))
}

fn current(option: &Value) -> Option<&str> {
    option.get("currentValue")?.as_str()
}

//! The mode of a session, as the agent reports it.

use serde_json::Value;

use super::{Translator, text_at};
use crate::trace::recorder::Recorder;

/// The translation's knowledge of the session's mode.
#[derive(Debug, Default)]
pub(super) struct ModeSeen {
    /// True if the agent has reported a mode since it was last asked to change it.
    is_reported: bool,
    /// The ids of the config options that choose the mode.
    options: Vec<String>,
    /// True if a mode in which the agent does not ask was recorded.
    unattended: bool,
}

impl ModeSeen {
    /// Returns true if this config option chooses the mode.
    pub(super) fn is_chosen_by(&self, config: &str) -> bool {
        config == "mode" || self.options.iter().any(|id| id == config)
    }

    /// Notes that the engine asks for another mode.
    pub(super) fn asked(&mut self) {
        self.is_reported = false;
    }
}

impl Translator {
    /// Reads the mode in an answer that opens a session. The mode in a config option takes precedence over the older
    /// list.
    pub(super) fn mode_of_session(&mut self, result: &Value, recorder: &mut Recorder) {
        if let Some(mode) = result.pointer("/modes/currentModeId").and_then(Value::as_str) {
            self.mode_is(mode, recorder);
        }
        self.mode_of_options(result, recorder);
    }

    /// Reads the mode among the config options of an answer or an update.
    pub(super) fn mode_of_options(&mut self, answer: &Value, recorder: &mut Recorder) {
        let Some(option) = option_of(answer, "mode") else { return };
        if let Some(id) = text_at(option, "id").filter(|id| !self.mode.is_chosen_by(id)) {
            self.mode.options = vec![id];
        }
        if let Some(mode) = current(option) {
            self.mode_is(mode, recorder);
        }
    }

    /// Takes the agent's report of its mode.
    pub(super) fn mode_is(&mut self, mode: &str, recorder: &mut Recorder) {
        self.mode.is_reported = true;
        recorder.mode_is(mode);
        // Between prompts the agent does nothing.
        if self.turn.open > 0 {
            self.look_at_mode(true, recorder);
        }
    }

    /// Takes the agent's acceptance of a mode. A mode that the agent has reported since the request takes precedence.
    pub(super) fn mode_accepted(&mut self, mode: Option<String>, answer: &Value, recorder: &mut Recorder) {
        self.config_options(answer.get("configOptions"), recorder);
        self.mode_of_options(answer, recorder);
        if let Some(mode) = mode.filter(|_| !self.mode.is_reported) {
            self.mode_is(&mode, recorder);
        }
    }

    /// Checks the mode: once the agent works in a mode in which it does not ask, its permission requests are not
    /// evidence.
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

/// Returns the mode that an update of a session reports.
pub(crate) fn mode_in(update: &Value) -> Option<&str> {
    match update.get("sessionUpdate").and_then(Value::as_str) {
        Some("current_mode_update") => update.get("currentModeId")?.as_str(),
        Some("config_option_update") => option_of(update, "mode").and_then(current),
        _ => None,
    }
}

/// Returns the config option of a category; an option without a category is found by its id.
pub(crate) fn option_of<'a>(answer: &'a Value, category: &str) -> Option<&'a Value> {
    let options = answer.get("configOptions")?.as_array()?;
    let by = |key: &str| options.iter().find(|option| option.get(key).and_then(Value::as_str) == Some(category));
    by("category").or_else(|| by("id"))
}

pub(crate) fn current(option: &Value) -> Option<&str> {
    option.get("currentValue")?.as_str()
}

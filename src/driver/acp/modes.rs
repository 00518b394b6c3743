//! Puts a session into the requested mode, and refuses to continue in a mode in which the agent does not ask.

use serde_json::{Value, json};

use super::Client;
use crate::adapter::acp::modes::{current, option_of};
use crate::adapter::acp::rpc::RpcError;
use crate::driver::Broken;
use crate::trace::NoticeCode;
use crate::wire::EngineLine;

impl Client<'_> {
    /// Puts the session into the mode of the case, else of the manifest. Fails if that is impossible: in another mode
    /// the case would be another one.
    pub(super) async fn choose_mode(&mut self, opened: &Value) -> Result<(), Broken> {
        let Some(mode) = self.task.session.mode.clone() else { return self.check_mode() };
        let wrong = |why: String| Broken::Handshake(format!("mode `{mode}` {why}"));
        let refused = |error: RpcError| wrong(format!("was refused: {}", error.detail()));
        let start = Some(self.task.manifest.timeouts.start.0);
        self.mode = None;
        let (wanted, reported) = if let Some(option) = option_of(opened, "mode") {
            let wanted = named(option.get("options"), "value", &mode).unwrap_or_else(|| mode.clone());
            let params = json!({"sessionId": self.session_id, "configId": option.get("id"), "value": wanted});
            let answer = self.ask("session/set_config_option", &params, start).await?.map_err(refused)?;
            (wanted, option_of(&answer, "mode").and_then(current).map(str::to_owned))
        } else {
            let modes = opened.pointer("/modes/availableModes").filter(|modes| modes.is_array());
            let Some(modes) = modes else {
                let why = "cannot be set: the agent offers no modes";
                if self.task.mode_of_manifest && !self.task.must_ask {
                    // Every request would be approved, so the mode makes no difference to what is asked for.
                    let text = format!("the manifest names the mode `{mode}`, which {why}");
                    self.session.engine(&EngineLine::Notice { code: NoticeCode::ModeNotSet, text });
                    return Ok(());
                }
                return Err(wrong(why.to_owned()));
            };
            let Some(wanted) = named(Some(modes), "id", &mode) else {
                let ids: Vec<&str> =
                    modes.as_array().into_iter().flatten().filter_map(|it| it.get("id")?.as_str()).collect();
                return Err(wrong(format!("is not one of the agent's modes: {}", ids.join(", "))));
            };
            let params = json!({"sessionId": self.session_id, "modeId": wanted});
            self.ask("session/set_mode", &params, start).await?.map_err(refused)?;
            (wanted, None)
        };
        match reported.or_else(|| self.mode.take()).filter(|now| *now != wanted) {
            Some(now) => Err(wrong(format!("was accepted, but the agent reports mode `{now}`"))),
            None => self.check_mode(),
        }
    }

    /// Fails if the agent's mode does not ask for every permission although the policy has decisions to make.
    pub(super) fn check_mode(&mut self) -> Result<(), Broken> {
        match self.unattended() {
            Some(mode) => Err(Broken::Unattended(mode)),
            None => Ok(()),
        }
    }

    /// Returns the mode of the session, if the agent does not ask in it and the policy is not `auto-approve`.
    fn unattended(&mut self) -> Option<String> {
        if !self.task.must_ask {
            return None;
        }
        let mode = self.session.recorder().mode()?.to_owned();
        self.task.manifest.is_unattended(&mode).then_some(mode)
    }
}

/// Returns the id of an entry in a list or in its groups: of the entry with this id, else of the first entry with
/// this name.
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

//! The settings that point an agent at a gateway on loopback, and the manifest that results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Home, Manifest, ModelVia};
use crate::gateway::Api;
use crate::gateway::canonical::Replacement;
use crate::secrets::looks_secret;
use crate::values::Pattern;

/// The settings that point an agent at a gateway on loopback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayRoute {
    /// The API that the agent speaks to the server.
    pub api: Api,
    /// The model that is used if the agent requests none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the model in the agent's protocol, if the agent has names of its own for models behind the gateway:
    /// `gateway/{model}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// Environment variables for the agent. `{gateway}` is replaced by the server's address, without a trailing slash,
    /// and `{key}` by the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files written into the private home, by path; they replace the manifest's files of the same name.
    /// `{gateway}`, `{model}` and `{key}` are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Arguments appended to the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// A command that replaces the manifest's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Patterns of requests that the agent makes outside its conversation although they offer tools: a pattern
    /// is searched in a request's instructions and in the last user message. A recording that lacks such a request
    /// can still be replayed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<Pattern>,
    /// Replacements in the texts of requests before they are recorded or compared with a recording: for what differs
    /// from run to run, such as dates and versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub normalise: Vec<Replacement>,
    /// The comparison of tool results with a recording. Default: `compare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Results>,
}

/// The comparison of the results of tools with a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Results {
    /// Tool results are compared: if a tool result differs from the recorded one, the request is a miss.
    Compare,
    /// Tool results are not compared: the recorded answer is played, whatever the tools returned.
    Ignore,
}

/// The purpose for which an agent is pointed at a gateway.
#[derive(Debug, Clone, Copy)]
pub enum Pointed<'a> {
    /// A script is played: no key is used. If the run requests no model, that of the manifest's `gateway` is used.
    Script,
    /// A recording is played: no key is used.
    Recording,
    /// The requests go on to the service, with the user's own key.
    Service {
        /// The engine's environment.
        env: &'a BTreeMap<String, String>,
        /// True if the gateway has a key with which it replaces the placeholder.
        has_key: bool,
    },
}

/// The model of manifests whose agents need one, and which no service has.
const NO_MODEL: &str = "scripted";

/// The value of `{key}`, which agents send where they were given no key.
pub const PLACEHOLDER_KEY: &str = "evals-gateway-key";

impl GatewayRoute {
    /// Returns true if the results of tools are not compared.
    pub fn ignores_results(&self) -> bool {
        self.results == Some(Results::Ignore)
    }

    /// Returns the values that stand for a key in the settings of the agent.
    pub fn placeholders(&self) -> impl Iterator<Item = String> {
        let written = self.env.iter().filter(|(name, value)| looks_secret(name) && !value.contains('{'));
        written.map(|(_, value)| value.clone()).chain([PLACEHOLDER_KEY.to_owned()])
    }

    /// Returns true if the settings name a model.
    fn names_model(&self) -> bool {
        let words = self.command.iter().chain(&self.args);
        words.chain(self.env.values()).chain(self.files.values()).any(|text| text.contains("{model}"))
    }
}

impl Manifest {
    /// Returns the manifest of an agent whose model is behind a gateway. `model` is the model that the run asks for.
    ///
    /// # Errors
    /// Returns the reason why the agent cannot be pointed there.
    pub fn at_gateway(&self, how: &Pointed<'_>, model: Option<&str>) -> Result<Manifest, String> {
        let name = &self.name;
        let mut route =
            self.gateway.clone().ok_or_else(|| format!("the manifest of harness `{name}` has no `gateway`"))?;
        let mut manifest = self.clone();
        let secret = |name: &String| looks_secret(name) || self.env.secret.contains(name);
        match how {
            Pointed::Script | Pointed::Recording => {
                manifest.env.pass.retain(|name| !secret(name) && !route.env.contains_key(name));
                manifest.env.named_in.clear();
                manifest.requires_env.clear();
                manifest.home = Home::default();
            }
            Pointed::Service { env, has_key } => {
                let own = |name: &String| env.get(name).is_some_and(|value| !value.is_empty());
                let names: Vec<String> = route.env.keys().filter(|name| secret(name) && own(name)).cloned().collect();
                // A placeholder is only of use if a key can be put in its place. Without one, the agent's own login holds.
                route.env.retain(|name, _| !secret(name) || (*has_key && !own(name)));
                manifest.env.pass.extend(names);
                manifest.requires_env.retain(|name| !route.env.contains_key(name));
            }
        }
        if !matches!(how, Pointed::Script) && model.is_none() && self.model.default.is_none() {
            match &route.model {
                Some(model) if model != NO_MODEL && route.names_model() => {}
                // Without settings that need a model, the agent chooses it.
                Some(model) if model != NO_MODEL => route.model = None,
                None if !route.names_model() => {}
                _ => {
                    return Err(format!(
                        "harness `{name}` needs a model in its settings for the gateway: pass --model"
                    ));
                }
            }
        }
        manifest.gateway = Some(route.clone());
        manifest.env.set.extend(route.env);
        manifest.files.extend(route.files);
        if !route.command.is_empty() {
            manifest.command = route.command;
        }
        // Arguments are inserted before `--`, which ends the flags.
        let end = manifest.command.iter().position(|word| word == "--").unwrap_or(manifest.command.len());
        manifest.command.splice(end..end, route.args);
        // Over a protocol, a model is chosen only if one is asked for; a model written into files is chosen
        // already.
        if matches!(manifest.model.via, ModelVia::Flag | ModelVia::Env) && route.model.is_some() {
            manifest.model.default = route.model;
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Adapter;
    use crate::harness::PrivateHome;

    fn agent() -> Manifest {
        let mut manifest = Manifest::bare(Adapter::Acp);
        manifest.command = ["agent", "-p", "--", "{prompt}"].map(str::to_owned).to_vec();
        manifest.env.pass = ["MY_API_KEY", "MY_URL", "MY_MODE", "MY_LOGIN"].map(str::to_owned).to_vec();
        manifest.env.secret = vec!["MY_LOGIN".to_owned()];
        manifest.requires_env = vec!["MY_API_KEY".to_owned()];
        manifest.home = Home::Private(PrivateHome { copy: vec!["login.json".into()] });
        manifest.files = BTreeMap::from([("a".to_owned(), "own".to_owned()), ("b".to_owned(), "own".to_owned())]);
        manifest.gateway = Some(GatewayRoute {
            api: Api::OpenaiChat,
            model: Some("m".to_owned()),
            ask: None,
            env: BTreeMap::from([
                ("MY_URL".to_owned(), "{gateway}".to_owned()),
                ("MY_API_KEY".to_owned(), "no-key".to_owned()),
            ]),
            files: BTreeMap::from([("a".to_owned(), "gateway's".to_owned())]),
            args: vec!["--offline".to_owned()],
            command: Vec::new(),
            aside: Vec::new(),
            normalise: Vec::new(),
            results: None,
        });
        manifest
    }

    #[test]
    fn keys_and_logins_stay_behind_and_the_rest_is_kept() {
        assert!(Manifest::bare(Adapter::Acp).at_gateway(&Pointed::Script, None).is_err());
        for how in [Pointed::Script, Pointed::Recording] {
            let pointed = agent().at_gateway(&how, None).unwrap();
            assert_eq!(pointed.command, ["agent", "-p", "--offline", "--", "{prompt}"]);
            assert_eq!(pointed.env.pass, ["MY_MODE"]);
            assert_eq!(pointed.env.set["MY_URL"], "{gateway}");
            assert_eq!(pointed.env.set["MY_API_KEY"], "no-key");
            assert!(pointed.requires_env.is_empty());
            assert_eq!(pointed.home, Home::default());
            assert_eq!((pointed.files["a"].as_str(), pointed.files["b"].as_str()), ("gateway's", "own"));
            assert_eq!(pointed.model.default, None);
        }
    }

    #[test]
    fn a_service_gets_the_user_s_own_key() {
        let key = BTreeMap::from([("MY_API_KEY".to_owned(), "sk-own".to_owned())]);
        let none = BTreeMap::new();
        // The environment, a key of the gateway; whether the variable is set by the manifest, and whether it is needed.
        for (env, has_key, set, needed) in [
            (&key, true, false, true),
            (&key, false, false, true),
            (&none, true, true, false),
            (&none, false, false, true),
        ] {
            let pointed = agent().at_gateway(&Pointed::Service { env, has_key }, None).unwrap();
            assert_eq!(pointed.env.set.contains_key("MY_API_KEY"), set, "{env:?} {has_key}");
            assert_eq!(pointed.requires_env.contains(&"MY_API_KEY".to_owned()), needed, "{env:?} {has_key}");
            assert!(pointed.env.pass.contains(&"MY_API_KEY".to_owned()));
            assert_eq!(pointed.home, agent().home);
            assert_eq!(pointed.env.set["MY_URL"], "{gateway}");
        }
    }

    #[test]
    fn the_prompt_takes_the_same_way_behind_the_gateway() {
        for manifest in crate::harness::built_in::built_in().filter(|manifest| manifest.gateway.is_some()) {
            let pointed = manifest.at_gateway(&Pointed::Script, None).unwrap();
            for prompt in ["Say \"hello\".", "- a"] {
                assert_eq!(pointed.gives_on_stdin(prompt), manifest.gives_on_stdin(prompt), "{}", manifest.name);
            }
        }
    }

    #[test]
    fn a_model_that_the_settings_name_must_be_asked_for() {
        let mut manifest = agent();
        if let Some(route) = &mut manifest.gateway {
            route.files.insert("a".to_owned(), "model: {model}".to_owned());
        }
        assert!(manifest.at_gateway(&Pointed::Recording, None).is_ok(), "the manifest's own");
        if let Some(route) = &mut manifest.gateway {
            route.model = Some(NO_MODEL.to_owned());
        }
        assert!(manifest.at_gateway(&Pointed::Script, None).is_ok());
        let told = manifest.at_gateway(&Pointed::Recording, None).unwrap_err();
        assert!(told.ends_with("pass --model"), "{told}");
        assert!(manifest.at_gateway(&Pointed::Recording, Some("m")).is_ok());
    }
}

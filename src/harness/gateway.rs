//! The settings that point an agent at a model server on loopback, and the manifest that results.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Home, Manifest, ModelVia};
use crate::gateway::Api;
use crate::secrets::looks_secret;
use crate::values::Pattern;

/// The settings that point an agent at a model server on loopback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayRoute {
    /// The API that the agent speaks to the server.
    pub api: Api,
    /// The model if none is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Environment variables for the agent; `{gateway}` is the server's address, without a trailing slash.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Files written into the private home, by path; they replace the manifest's files of the same name.
    /// `{gateway}` and `{model}` are replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Arguments appended to the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// A command that replaces the manifest's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Patterns of requests that the agent makes outside its conversation although they offer tools: a pattern
    /// is searched in a request's instructions and in the last user message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<Pattern>,
}

impl Manifest {
    /// Returns the manifest of an agent whose model is a server on loopback, without the user's keys and
    /// logins. Returns `None` if the manifest does not define how the agent is pointed there.
    pub fn at_gateway(&self) -> Option<Manifest> {
        let route = self.gateway.clone()?;
        let mut manifest = self.clone();
        let secret = |name: &String| looks_secret(name) || self.env.secret.contains(name);
        manifest.env.pass.retain(|name| !secret(name) && !route.env.contains_key(name));
        manifest.env.named_in.clear();
        manifest.requires_env.clear();
        manifest.home = Home::default();
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
        Some(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Adapter;
    use crate::harness::PrivateHome;

    #[test]
    fn keys_and_logins_stay_behind_and_the_rest_is_kept() {
        let mut manifest = Manifest::bare(Adapter::Acp);
        assert_eq!(manifest.at_gateway(), None);
        manifest.command = ["agent", "-p", "--", "{prompt}"].map(str::to_owned).to_vec();
        manifest.env.pass = ["MY_API_KEY", "MY_URL", "MY_MODE", "MY_LOGIN"].map(str::to_owned).to_vec();
        manifest.env.secret = vec!["MY_LOGIN".to_owned()];
        manifest.requires_env = vec!["MY_API_KEY".to_owned()];
        manifest.home = Home::Private(PrivateHome { copy: vec!["login.json".into()] });
        manifest.files = BTreeMap::from([("a".to_owned(), "own".to_owned()), ("b".to_owned(), "own".to_owned())]);
        manifest.gateway = Some(GatewayRoute {
            api: Api::OpenaiChat,
            model: Some("m".to_owned()),
            env: BTreeMap::from([("MY_URL".to_owned(), "{gateway}".to_owned())]),
            files: BTreeMap::from([("a".to_owned(), "gateway's".to_owned())]),
            args: vec!["--offline".to_owned()],
            command: Vec::new(),
            aside: Vec::new(),
        });
        let pointed = manifest.at_gateway().unwrap();
        assert_eq!(pointed.command, ["agent", "-p", "--offline", "--", "{prompt}"]);
        assert_eq!(pointed.env.pass, ["MY_MODE"]);
        assert_eq!(pointed.env.set["MY_URL"], "{gateway}");
        assert!(pointed.requires_env.is_empty());
        assert_eq!(pointed.home, Home::default());
        assert_eq!((pointed.files["a"].as_str(), pointed.files["b"].as_str()), ("gateway's", "own"));
        assert_eq!(pointed.model.default, None);
    }
}

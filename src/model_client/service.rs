//! The services of models: their addresses, keys and proxies, from the user's environment.

use std::collections::BTreeMap;
use std::fmt;

use super::{AskError, ModelName, Via};
use crate::proxy::proxy_for;

/// A service for models.
#[derive(Clone, PartialEq, Eq)]
pub struct Service {
    /// The address, without a trailing slash.
    pub base_url: String,
    /// The key; a service of the user's own may need none.
    pub key: Option<String>,
    pub proxy: Option<String>,
}

/// The key must not be shown.
impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("base_url", &self.base_url).finish_non_exhaustive()
    }
}

/// The known services.
#[derive(Debug, Clone)]
pub struct Services {
    anthropic: Service,
    openai: Service,
}

const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com/v1";

impl Services {
    /// Reads the services from an environment: `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`, `OPENAI_BASE_URL`,
    /// `OPENAI_API_KEY`, and the variables of proxies.
    pub fn of_env(env: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let service = |url: &str, key: &str, default: &str| {
            let base_url = get(url).unwrap_or(default).trim_end_matches('/').to_owned();
            let proxy = proxy_for(&base_url, get);
            Service { base_url, key: get(key).map(str::to_owned), proxy }
        };
        Self {
            anthropic: service("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", ANTHROPIC),
            openai: service("OPENAI_BASE_URL", "OPENAI_API_KEY", OPENAI),
        }
    }

    /// Returns the service of a model, or `None` for a harness.
    ///
    /// # Errors
    /// Returns an error if the service needs a key and there is none, or its address is invalid.
    pub fn of(&self, model: &ModelName) -> Result<Option<&Service>, AskError> {
        let (service, own, [variable, address]) = match model.via {
            Via::Anthropic => (&self.anthropic, ANTHROPIC, ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]),
            Via::Openai => (&self.openai, OPENAI, ["OPENAI_API_KEY", "OPENAI_BASE_URL"]),
            Via::Harness => return Ok(None),
        };
        let is_address = ["http://", "https://"]
            .iter()
            .any(|scheme| service.base_url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        if !is_address {
            return Err(AskError::NoAddress { variable: address, address: service.base_url.clone() });
        }
        // A service at another address may need no key, and returns an error if it does.
        if service.key.is_none() && service.base_url == own {
            return Err(AskError::NoKey { model: model.to_string(), variable });
        }
        Ok(Some(service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services(env: &[(&str, &str)]) -> Services {
        Services::of_env(&env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_key_is_needed_where_the_vendor_s_own_service_is_asked() {
        let (claude, gpt) = ("anthropic:m".parse().unwrap(), "openai:m".parse().unwrap());
        let none = services(&[("ANTHROPIC_API_KEY", " ")]);
        assert_eq!(none.of(&claude).unwrap_err().to_string(), "no key for `anthropic:m`: set ANTHROPIC_API_KEY");
        assert_eq!(none.of(&gpt).unwrap_err().to_string(), "no key for `openai:m`: set OPENAI_API_KEY");
        let own = services(&[("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1/"), ("ANTHROPIC_API_KEY", "sk-a")]);
        assert_eq!(own.of(&gpt).unwrap().unwrap().base_url, "http://127.0.0.1:11434/v1");
        assert_eq!(own.of(&claude).unwrap().unwrap().key.as_deref(), Some("sk-a"));
        assert!(!format!("{own:?}").contains("sk-a"));
    }

    #[test]
    fn proxies_are_those_of_the_environment_but_never_for_this_machine() {
        let env = BTreeMap::from([
            ("HTTPS_PROXY", "http://p:1"),
            ("NO_PROXY", "corp.example, .x.example"),
            ("http_proxy", "http://q:2"),
        ]);
        let proxy = |url: &str| proxy_for(url, |name| env.get(name).copied());
        assert_eq!(proxy("https://api.anthropic.com").as_deref(), Some("http://p:1"));
        assert_eq!(proxy("http://models.example:80/v1").as_deref(), Some("http://q:2"));
        for url in [
            "http://127.0.0.1:1",
            "http://localhost:1/v1",
            "http://[::1]:8",
            "https://a.corp.example/x",
            "https://b.x.example",
        ] {
            assert_eq!(proxy(url), None, "{url}");
        }
    }
}

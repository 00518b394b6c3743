//! The services of models: their addresses, keys and proxies, from the user's environment.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::HeaderMap;

use super::{AskError, ModelName, Via};
use crate::gateway::upstream::{ANTHROPIC, OPENAI, UpstreamError, added_headers, address_secrets, base_url};
use crate::proxy::proxy_for;

/// A service for models.
#[derive(Clone, PartialEq, Eq)]
pub struct Service {
    /// The address, without a trailing slash.
    pub base_url: String,
    /// The key; a service of the user's own may need none.
    pub key: Option<String>,
    pub proxy: Option<String>,
    /// Headers that the user adds to each request. Empty for a service at another address than that of the gateway.
    pub headers: HeaderMap,
}

impl Service {
    /// Returns the values that a service may repeat and that must not be shown: the key, the values of added headers, and the
    /// credentials in the address.
    pub fn secrets(&self) -> Vec<String> {
        let added = self.headers.values().filter_map(|value| value.to_str().ok());
        // A service may repeat the credential without its scheme.
        let added = added.flat_map(|value| [Some(value), value.split_once(' ').map(|(_, bare)| bare)]);
        let values = self.key.as_deref().into_iter().chain(added.flatten()).map(str::to_owned);
        values.chain(address_secrets(&self.base_url)).collect()
    }
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
    anthropic: Result<Service, AskError>,
    openai: Result<Service, AskError>,
}

impl Services {
    /// Reads the services from an environment: the addresses of the user's own variables, else those of the gateway's with the
    /// headers that the gateway adds, and the variables of keys and proxies.
    pub fn of_env(env: &BTreeMap<String, String>) -> Self {
        let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let service = |urls: [&'static str; 2], key: &str, own: &str| -> Result<Service, AskError> {
            let base_url = base_url(env, &urls, own).map_err(invalid)?;
            let added = added_headers(env).map_err(invalid)?;
            // A header may hold the key of the gateway's service, which no other service must get.
            let [_, of_gateway] = urls;
            let is_of_gateway = get(of_gateway).is_some_and(|address| address.trim_end_matches('/') == base_url);
            let headers = added.into_iter().filter(|_| is_of_gateway).collect();
            let proxy = proxy_for(&base_url, get);
            Ok(Service { base_url, key: get(key).map(str::to_owned), proxy, headers })
        };
        Self {
            anthropic: service(["ANTHROPIC_BASE_URL", "EVALS_UPSTREAM_ANTHROPIC"], "ANTHROPIC_API_KEY", ANTHROPIC),
            openai: service(["OPENAI_BASE_URL", "EVALS_UPSTREAM_OPENAI"], "OPENAI_API_KEY", OPENAI),
        }
    }

    /// Returns the service of a model, or `None` for a harness.
    ///
    /// # Errors
    /// Returns an error if the service needs a key and there is none, or its address or the added headers are invalid.
    pub fn of(&self, model: &ModelName) -> Result<Option<&Service>, AskError> {
        let (service, own, variable) = match model.via {
            Via::Anthropic => (&self.anthropic, ANTHROPIC, "ANTHROPIC_API_KEY"),
            Via::Openai => (&self.openai, OPENAI, "OPENAI_API_KEY"),
            Via::Harness => return Ok(None),
        };
        let service = service.as_ref().map_err(AskError::clone)?;
        // A service at another address may need no key, and returns an error if it does.
        if service.key.is_none() && service.base_url == own {
            return Err(AskError::NoKey { model: model.to_string(), variable });
        }
        Ok(Some(service))
    }
}

/// Returns the error of a request to a service whose variables are invalid.
fn invalid(error: UpstreamError) -> AskError {
    match error {
        UpstreamError::Address { variable, address } => AskError::NoAddress { variable, address },
        other => AskError::Headers(other.to_string()),
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
    fn the_addresses_and_headers_of_the_gateway_hold_unless_the_user_s_own_variable_names_another_address() {
        let (claude, gpt) = ("anthropic:m".parse().unwrap(), "openai:m".parse().unwrap());
        let proxied = [
            ("EVALS_UPSTREAM_ANTHROPIC", "http://corp.example/claude/"),
            ("EVALS_UPSTREAM_OPENAI", "http://corp.example/v1"),
            ("EVALS_UPSTREAM_HEADERS", "X-Gateway-Auth: Bearer a-long-secret-value"),
        ];
        let all = services(&proxied);
        let base_url = |services: &Services, model| services.of(model).unwrap().unwrap().base_url.clone();
        assert_eq!(base_url(&all, &claude), "http://corp.example/claude");
        assert_eq!(base_url(&all, &gpt), "http://corp.example/v1");
        let service = all.of(&gpt).unwrap().unwrap();
        assert_eq!(service.headers["x-gateway-auth"], "Bearer a-long-secret-value");
        assert_eq!(service.secrets(), ["Bearer a-long-secret-value", "a-long-secret-value"]);
        assert!(!format!("{all:?}").contains("a-long"));
        let own = services(&[&proxied[..], &[("OPENAI_BASE_URL", "http://127.0.0.1:8/v1")]].concat());
        assert_eq!(base_url(&own, &gpt), "http://127.0.0.1:8/v1");
        // The user's own address, and the built-in one, get no header of the gateway.
        let headers = |services: &Services, model| services.of(model).unwrap().unwrap().headers.len();
        assert_eq!((headers(&all, &gpt), headers(&own, &gpt), headers(&own, &claude)), (1, 0, 1));
        let same = services(&[&proxied[..], &[("OPENAI_BASE_URL", "http://corp.example/v1/")]].concat());
        assert_eq!(headers(&same, &gpt), 1);
        let built_in = services(&[proxied[0], proxied[2], ("OPENAI_API_KEY", "sk-a")]);
        assert_eq!(headers(&built_in, &gpt), 0);
        let in_query = services(&[("OPENAI_BASE_URL", "http://corp.example/v1?v=2026-01-01&api-key=qs-12345")]);
        assert_eq!(in_query.of(&gpt).unwrap().unwrap().secrets(), ["qs-12345"]);
        let wrong = |env: &[(&str, &str)]| services(env).of(&claude).unwrap_err().to_string();
        assert!(wrong(&[("EVALS_UPSTREAM_ANTHROPIC", "")]).starts_with("EVALS_UPSTREAM_ANTHROPIC=``"));
        assert!(wrong(&[("EVALS_UPSTREAM_HEADERS", "no header")]).contains("EVALS_UPSTREAM_HEADERS has a line"));
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

//! Credentials in URLs: `https://user:token@host/path`.

use std::collections::BTreeMap;

use super::{Masker, percent};

/// The name of masked credentials, which looks secret.
const NAME: &str = "URL_CREDENTIALS";

/// A URL, separated from its credentials.
#[derive(Debug, Clone)]
pub struct UrlSecret {
    whole: String,
    without: String,
    /// The user and the password, as written and percent-decoded. A user without a password may be a token.
    values: Vec<String>,
}

impl UrlSecret {
    /// Separates a URL from its credentials. `git@host:path` and `ssh://user@host` name a user, which is not a
    /// secret.
    pub fn of(url: &str) -> Self {
        let plain = Self { whole: url.to_owned(), without: url.to_owned(), values: Vec::new() };
        let Some((scheme, rest)) = url.split_once("://") else { return plain };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let Some((user, host)) = authority.rsplit_once('@') else { return plain };
        let (name, password) = user.split_once(':').map_or((user, None), |(name, password)| (name, Some(password)));
        if password.is_none() && !scheme.starts_with("http") {
            return plain;
        }
        let mut values: Vec<String> = [Some(name), password].into_iter().flatten().map(str::to_owned).collect();
        if password.is_some_and(|password| password.len() >= super::SHORTEST) {
            // The name beside a password is not a secret, unless the password is only a filler
            // (`TOKEN:x-oauth-basic`).
            values.retain(|value| Some(value.as_str()) == password || value.len() >= 20);
        }
        let undone: Vec<String> = values
            .iter()
            .map(|value| String::from_utf8_lossy(&percent::undone(value.as_bytes()).text).into_owned())
            .collect();
        values.extend(undone);
        values.retain(|value| !value.is_empty());
        values.sort();
        values.dedup();
        Self { whole: url.to_owned(), without: format!("{scheme}://{host}{}", &rest[authority.len()..]), values }
    }

    /// Returns the URL without credentials.
    pub fn url(&self) -> &str {
        &self.without
    }

    /// Returns the values to mask, each with a name.
    pub fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|value| (NAME, value.as_str()))
    }

    /// Returns a masker for the credentials.
    pub fn masker(&self) -> Masker {
        Masker::of(self.named())
    }

    /// Returns variables by which git adds the credentials to the URL without them. Empty for a URL without
    /// credentials.
    pub fn git_environment(&self) -> BTreeMap<String, String> {
        if self.whole == self.without {
            return BTreeMap::new();
        }
        let variables = [
            ("GIT_CONFIG_COUNT", "1".to_owned()),
            ("GIT_CONFIG_KEY_0", format!("url.{}.insteadOf", self.whole)),
            ("GIT_CONFIG_VALUE_0", self.without.clone()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_wherever_a_url_can_hold_them() {
        for (url, without, values) in [
            ("https://example.org/a.git", "https://example.org/a.git", &[][..]),
            ("git@example.org:a.git", "git@example.org:a.git", &[]),
            ("ssh://git@example.org/a", "ssh://git@example.org/a", &[]),
            ("https://example.org/a@b", "https://example.org/a@b", &[]),
            ("https://tokentoken@example.org/a", "https://example.org/a", &["tokentoken"]),
            ("https://me:secret-1@example.org:8443/a?b", "https://example.org:8443/a?b", &["secret-1"]),
            ("https://me:p%40ssword1@example.org", "https://example.org", &["p%40ssword1", "p@ssword1"]),
        ] {
            let secret = UrlSecret::of(url);
            assert_eq!(secret.url(), without);
            assert_eq!(secret.values, values, "{url}");
            assert_eq!(secret.git_environment().is_empty(), url == without);
        }
    }
}

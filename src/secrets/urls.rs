//! Credentials in URLs: `https://user:token@host/path`, and `https://host/path?api_key=…`.

use std::collections::BTreeMap;

use super::{MIN_SECRET_BYTES, Masker, looks_secret, percent};

/// The name of masked credentials, which looks secret.
const NAME: &str = "URL_CREDENTIALS";

/// The length in bytes from which the name of a user may be a token.
const TOKEN: usize = 20;

/// Returns the credentials in the URLs of a text, as written and percent-decoded: passwords, user names that may be tokens,
/// and values of the query with the names of secrets. A password that may be an ordinary word is left out, and
/// `user:password` takes its place; one that is too short to mask is followed by `user:password`. A password that equals the
/// user name, such as `postgres:postgres`, is a word and no secret.
pub fn credentials_in(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some((_, url)) = rest.split_once("://") {
        rest = url;
        let url = url.split(char::is_whitespace).next().unwrap_or(url);
        let authority = url.split(['/', '?', '#']).next().unwrap_or(url);
        if let Some((user, _)) = authority.rsplit_once('@') {
            found.extend(of_user(user).into_iter().map(str::to_owned));
        }
        let query = url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
        for pair in query.split('&') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            if looks_secret(name) && value.len() >= MIN_SECRET_BYTES {
                let secret = if is_word(value) { pair } else { value };
                found.push(secret.to_owned());
            }
        }
    }
    let undone: Vec<String> = found.iter().map(|value| decoded(value)).collect();
    for value in undone {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// Returns the credentials in `user:password`.
fn of_user(user: &str) -> Vec<&str> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let token = (name.len() >= TOKEN).then_some(name);
    let mut found: Vec<&str> = token.into_iter().collect();
    if password.is_empty() || password == name {
        return found;
    }
    match password.len() {
        MIN_SECRET_BYTES.. if is_word(password) => found.push(user),
        MIN_SECRET_BYTES.. => found.push(password),
        // The password beside a token is a filler.
        _ if token.is_some() => {}
        _ => found.extend([password, user]),
    }
    found
}

/// Returns true if a value may be an ordinary word, which occurs without being the secret: its characters are of only one of
/// the classes lower case, upper case, digits and others, as in `password` and `development`.
fn is_word(value: &str) -> bool {
    let class = |c: char| match c {
        c if c.is_lowercase() => 0,
        c if c.is_uppercase() => 1,
        c if c.is_numeric() => 2,
        _ => 3,
    };
    let value = decoded(value);
    let mut classes = value.chars().map(class);
    let first = classes.next();
    classes.all(|class| Some(class) == first)
}

fn decoded(value: &str) -> String {
    String::from_utf8_lossy(&percent::undone(value.as_bytes()).text).into_owned()
}

/// Returns an address without user name, password and query, which may contain keys.
pub fn without_credentials(address: &str) -> String {
    let address = address.split_once(['?', '#']).map_or(address, |(address, _)| address);
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

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
        let values = match password {
            None => vec![name],
            Some(password) if password.len() < MIN_SECRET_BYTES => vec![name, password, user],
            // The name beside a password is not a secret, unless the password is only a filler
            // (`TOKEN:x-oauth-basic`).
            Some(_) => of_user(user),
        };
        let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
        let undone: Vec<String> = values.iter().map(|value| decoded(value)).collect();
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
    fn credentials_are_found_in_every_url_of_a_text() {
        for (text, found) in [
            ("", &[][..]),
            ("bob:password@host", &[]),
            ("http://host:80/a@b:c", &[]),
            ("http://bob@host", &[]),
            ("http://bob:@host", &[]),
            ("postgres://postgres:postgres@host", &[]),
            ("postgres://app:password@host", &["app:password"]),
            ("postgres://app:p%61ssword@host", &["app:p%61ssword", "app:password"]),
            ("postgres://app:Password@host", &["Password"]),
            ("postgres://app:12345678@host", &["app:12345678"]),
            ("postgres://app:passwort2@host", &["passwort2"]),
            ("https://host/?token=development", &["token=development"]),
            ("http://bob:hunter22@host:1/x", &["hunter22"]),
            ("http://bob:p:w@x@host", &["p:w@x", "bob:p:w@x"]),
            ("x=http://bob:p%40ssword1@host y", &["p%40ssword1", "p@ssword1"]),
            ("https://a:password-1@host,https://b:password-2@host", &["password-1", "password-2"]),
            ("https://0123456789abcdefghij:x-oauth-basic@host", &["0123456789abcdefghij", "x-oauth-basic"]),
            ("https://host/mcp?apiKey=key-12345&user=somebody&token=abc#t", &["key-12345"]),
        ] {
            assert_eq!(credentials_in(text), found, "{text}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        for (address, shown) in [
            ("http://me:hunter2@host:8/v1/@x", "http://host:8/v1/@x"),
            ("http://me:hunt@er2secret@127.0.0.1:9", "http://127.0.0.1:9"),
            ("http://host/v1?key=key-12345#@x", "http://host/v1"),
            ("https://host", "https://host"),
            ("host", "host"),
        ] {
            assert_eq!(without_credentials(address), shown);
        }
    }

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
            ("https://me:password@example.org", "https://example.org", &["me:password"]),
            ("https://me:pw@example.org", "https://example.org", &["me", "me:pw", "pw"]),
        ] {
            let secret = UrlSecret::of(url);
            assert_eq!(secret.url(), without);
            assert_eq!(secret.values, values, "{url}");
            assert_eq!(secret.git_environment().is_empty(), url == without);
        }
    }
}

//! Logins without a person: environment variables, files in the user's home, and methods of the agent's protocol; and
//! which of them are available. Reads the home.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Home, Manifest};
use crate::secrets::looks_secret;
use crate::values::Pattern;

/// A method of ACP's `authenticate` that needs no person. It is called when the agent asks for a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Method {
    /// The id of the method in the agent's `authMethods`.
    pub method: String,
    /// Environment variables that must be set for the method to be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Files that must exist in the agent's home for the method to be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PathBuf>,
}

impl Method {
    /// Returns true if the variables and files that the method needs are available.
    pub fn is_usable(&self, env: &BTreeMap<String, String>, home: Option<&Path>) -> bool {
        let has_file = |file: &PathBuf| home.is_some_and(|home| home.join(file).exists());
        self.env.iter().all(|name| env.get(name).is_some_and(|value| !value.is_empty()))
            && self.files.iter().all(has_file)
    }
}

/// The verification of the variables, files and methods that a manifest names for the login.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Evidence {
    /// The methods of verification. An empty list means that the login was not verified.
    pub by: Vec<VerifiedBy>,
    /// The verified version of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A note for users; for an unverified login, the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Evidence {
    /// Returns the verification as text: `source code, started (1.0.41)`, or `unverified`.
    pub fn described(&self) -> String {
        if self.by.is_empty() {
            return "unverified".to_owned();
        }
        let by: Vec<&str> = self.by.iter().map(|by| by.words()).collect();
        let version = self.version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
        format!("{}{version}", by.join(", "))
    }
}

/// A method of verifying the login entries of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerifiedBy {
    /// The agent was started, and its answers confirm the entries.
    Started,
    /// The agent's published code, or the program itself, confirms the entries.
    Source,
    /// The documentation of the agent's maker confirms the entries.
    Documentation,
}

impl VerifiedBy {
    /// Returns the method as text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Source => "source code",
            Self::Documentation => "documentation",
        }
    }
}

/// Variables whose names are in a file in the user's home, such as the `env_key` of Codex's configuration. They
/// are passed on, and their values are redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NamedIn {
    /// The file, relative to the user's home.
    pub file: PathBuf,
    /// A regular expression whose first group is the name of a variable.
    pub regex: Pattern,
}

/// The maximum number of bytes of a file that are searched.
const MAX_SEARCHED_BYTES: u64 = 1 << 20;

/// Returns the names of the variables that files in the user's home name, without `HOME`: it is no login, and the agent's home
/// may be a private one.
pub fn named_in_files(manifest: &Manifest, user_home: Option<&Path>) -> Vec<String> {
    let Some(user_home) = user_home else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    for NamedIn { file, regex } in &manifest.env.named_in {
        let Ok(Some(text)) = text_of(&user_home.join(file)) else { continue };
        let found = regex.0.captures_iter(&text).filter_map(|found| Some(found.get(1)?.as_str().to_owned()));
        names.extend(found.filter(|name| is_variable(name) && name != "HOME"));
    }
    names.sort();
    names.dedup();
    names
}

/// Returns the text of a file that is small enough to be a configuration. Returns `None` for a larger or missing file.
///
/// # Errors
/// Returns an error if the file exists and cannot be read.
pub fn text_of(path: &Path) -> io::Result<Option<String>> {
    let small = |meta: Metadata| meta.is_file() && meta.len() <= MAX_SEARCHED_BYTES;
    if !if_there(path.metadata())?.is_some_and(small) {
        return Ok(None);
    }
    Ok(if_there(std::fs::read(path))?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns `None` if the error is that the path does not exist.
///
/// # Errors
/// Returns any other error.
pub fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if a text can be the name of an environment variable.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The login methods of an agent and the availability of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Login {
    /// The environment variables that hold keys and tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// The files that are copied from the user's home.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// The methods of the protocol that need no person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Offered>,
    /// The ids of the methods that the agent listed. Absent if the agent was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Vec<String>>,
    /// The verification of the manifest's login entries. Absent if the manifest does not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
}

/// An environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Variable {
    /// The name of the variable.
    pub name: String,
    /// True if the variable is set.
    pub set: bool,
    /// True if the agent requires the variable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// A file or a folder in the user's home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct File {
    /// The path of the file, relative to the home.
    pub path: String,
    /// True if the file exists.
    pub present: bool,
}

/// A method of the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Offered {
    /// The id of the method.
    pub method: String,
    /// True if the variables and files that the method needs are available.
    pub usable: bool,
}

impl Login {
    /// Compares the login entries of a manifest with the user's environment and home.
    pub fn of(manifest: &Manifest, env: &BTreeMap<String, String>) -> Self {
        let home = env.get("HOME").map(PathBuf::from);
        let home = home.as_deref();
        let named = named_in_files(manifest, home);
        let is_key = |name: &&String| looks_secret(name) || manifest.env.secret.contains(name);
        let passed = manifest.env.pass.iter().filter(is_key);
        let mut variables: Vec<Variable> = Vec::new();
        for name in manifest.requires_env.iter().chain(passed).chain(&named) {
            if !variables.iter().any(|known| known.name == *name) {
                let required = manifest.requires_env.contains(name);
                let set = env.get(name).is_some_and(|value| !value.is_empty());
                variables.push(Variable { name: name.clone(), set, required });
            }
        }
        let copied = match &manifest.home {
            Home::Private(private) => private.copy.as_slice(),
            Home::Named(_) => &[],
        };
        let file = |path: &PathBuf| File {
            path: path.display().to_string(),
            present: home.is_some_and(|home| home.join(path).exists()),
        };
        let offered = |method: &Method| Offered { method: method.method.clone(), usable: method.is_usable(env, home) };
        Self {
            variables,
            files: copied.iter().map(file).collect(),
            methods: manifest.authenticate.iter().map(offered).collect(),
            offered: None,
            evidence: manifest.login.clone(),
        }
    }

    /// Returns true if the manifest has no login entries.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Adapter;

    #[test]
    fn a_method_is_used_only_with_everything_that_it_needs() {
        let method = Method { method: "key".into(), env: vec!["A".into(), "B".into()], files: Vec::new() };
        let env = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert!(method.is_usable(&env(&[("A", "1"), ("B", "2")]), None));
        assert!(!method.is_usable(&env(&[("A", "1")]), None));
        assert!(!method.is_usable(&env(&[("A", "1"), ("B", "")]), None));
        let by_file = Method { env: Vec::new(), files: vec!["login.json".into()], ..method };
        let home = tempfile::tempdir().unwrap();
        assert!(!by_file.is_usable(&env(&[]), Some(home.path())) && !by_file.is_usable(&env(&[]), None));
        std::fs::write(home.path().join("login.json"), "{}").unwrap();
        assert!(by_file.is_usable(&env(&[]), Some(home.path())));
    }

    #[test]
    fn names_of_variables_are_found_in_configurations() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("c.toml"), "[p.a]\nenv_key = \"A_KEY\"\n#env_key=\"B\"\nenv_key='no name'\n")
            .unwrap();
        let mut manifest = Manifest::bare(Adapter::Acp);
        let regex = r#"(?m)^\s*env_key\s*=\s*["']([^"']+)["']"#.parse().unwrap();
        manifest.env.named_in = vec![NamedIn { file: "c.toml".into(), regex }];
        assert_eq!(named_in_files(&manifest, Some(home.path())), ["A_KEY"]);
        assert!(named_in_files(&manifest, None).is_empty());
    }
}

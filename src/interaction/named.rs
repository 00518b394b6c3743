//! Named policies from `policies/`. A policy of a folder replaces the built-in policy of the same name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use super::Interaction;
use crate::embedded;
use crate::yaml::{self, Step, StepPart, YamlError, words};

/// The named policies of a folder, and the built-in policies.
#[derive(Debug, Clone, Default)]
pub struct PolicyFolder(BTreeMap<String, NamedPolicy>);

/// A built-in policy. It is parsed when it is first needed, because its patterns take longer to parse than a small run.
struct BuiltIn {
    text: &'static str,
    parsed: OnceLock<Option<NamedPolicy>>,
}

impl BuiltIn {
    fn policy(&self) -> Option<&NamedPolicy> {
        // The files are part of `evals`, and a test parses each of them.
        self.parsed.get_or_init(|| parsed(embedded::ORIGIN, self.text.to_owned()).ok()).as_ref()
    }
}

/// Returns the built-in policies, by name.
fn built_in() -> &'static BTreeMap<&'static str, BuiltIn> {
    static POLICIES: LazyLock<BTreeMap<&'static str, BuiltIn>> = LazyLock::new(|| {
        let policy = |(name, text)| (name, BuiltIn { text, parsed: OnceLock::new() });
        embedded::policies().into_iter().map(policy).collect()
    });
    &POLICIES
}

/// A policy that cases take by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPolicy {
    /// A description in one line.
    pub description: Option<String>,
    pub policy: Interaction,
    /// The policy's file, or `built in`.
    pub origin: String,
    /// The text of its file.
    pub text: String,
}

/// The file of a named policy.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    description: Option<String>,
    policy: Interaction,
}

impl PolicyFolder {
    /// Reads the policies of a folder, which need not exist.
    ///
    /// # Errors
    /// Returns all errors in any of the files.
    pub fn load(folder: &Path) -> Result<Self, Vec<YamlError>> {
        let mut policies = BTreeMap::new();
        let mut errors = Vec::new();
        for (name, file) in yaml::files(folder).unwrap_or_else(|error| {
            errors.push(error);
            Vec::new()
        }) {
            let read = yaml::read(&file).map_err(|error| vec![error]);
            match read.and_then(|text| parsed(&file.display().to_string(), text)) {
                Ok(policy) => drop(policies.insert(name, policy)),
                Err(wrong) => errors.extend(wrong),
            }
        }
        if errors.is_empty() { Ok(Self(policies)) } else { Err(errors) }
    }

    pub fn get(&self, name: &str) -> Option<&NamedPolicy> {
        self.0.get(name).or_else(|| built_in().get(name)?.policy())
    }

    /// Returns all policies, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NamedPolicy)> {
        self.names().filter_map(|name| Some((name, self.get(name)?)))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let names: BTreeSet<&str> = self.0.keys().map(String::as_str).chain(built_in().keys().copied()).collect();
        names.into_iter()
    }

    /// Returns help for an unknown name.
    pub fn known(&self, name: &str) -> String {
        let mut known: Vec<&str> = vec!["auto-approve", "auto-reject", "manual"];
        known.extend(self.names());
        format!("{}; or write it as policies/{}.yaml", words::known_words(name, &known, "policies"), words::short(name))
    }
}

/// Parses a policy. `origin` is its file, or the origin of what is built in.
fn parsed(origin: &str, text: String) -> Result<NamedPolicy, Vec<YamlError>> {
    let path = Path::new(origin);
    let File { description, policy } = yaml::parse_all::<File>(path, &text).checked(|file| {
        let circle = matches!(file.policy, Interaction::Use(_));
        let steps = [Step::Key("policy")];
        let message = "a named policy cannot refer to another named policy";
        let error = || {
            YamlError::at_steps(path, &text, &steps, StepPart::Value, message)
                .with_help("write the settings of the other policy here")
        };
        circle.then(error).into_iter().collect()
    })?;
    Ok(NamedPolicy { description, policy, origin: origin.to_owned(), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_that_is_built_in_can_be_read() {
        let policies = PolicyFolder::load(Path::new("/nowhere")).unwrap();
        assert_eq!(policies.iter().count(), embedded::policies().len());
        assert!(policies.iter().all(|(_, policy)| policy.description.is_some()));
    }
}

//! Named policies from `policies/`. A policy of a folder replaces the built-in policy of the same name.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::Interaction;
use crate::embedded;
use crate::yaml::{self, Step, StepPart, YamlError, words};

/// The named policies.
#[derive(Debug, Clone, Default)]
pub struct PolicyFolder(BTreeMap<String, NamedPolicy>);

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
    /// Reads the built-in policies, and the policies of a folder, which need not exist.
    ///
    /// # Errors
    /// Returns all errors in any of the files.
    pub fn load(folder: &Path) -> Result<Self, Vec<YamlError>> {
        let mut policies = Self::default();
        let mut errors = Vec::new();
        for (name, text) in embedded::policies() {
            policies.add(name, embedded::ORIGIN, text.to_owned(), &mut errors);
        }
        for (name, file) in yaml::files(folder).unwrap_or_else(|error| {
            errors.push(error);
            Vec::new()
        }) {
            match yaml::read(&file) {
                Ok(text) => policies.add(&name, &file.display().to_string(), text, &mut errors),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() { Ok(policies) } else { Err(errors) }
    }

    fn add(&mut self, name: &str, origin: &str, text: String, errors: &mut Vec<YamlError>) {
        let path = Path::new(origin);
        let file = yaml::parse_all::<File>(path, &text).checked(|file| {
            let circle = matches!(file.policy, Interaction::Use(_));
            let steps = [Step::Key("policy")];
            let message = "a named policy cannot refer to another named policy";
            let error = || {
                YamlError::at_steps(path, &text, &steps, StepPart::Value, message)
                    .with_help("write the settings of the other policy here")
            };
            circle.then(error).into_iter().collect()
        });
        match file {
            Ok(File { description, policy }) => {
                let origin = origin.to_owned();
                self.0.insert(name.to_owned(), NamedPolicy { description, policy, origin, text });
            }
            Err(wrong) => errors.extend(wrong),
        }
    }

    /// Returns the policy with this name.
    pub fn get(&self, name: &str) -> Option<&NamedPolicy> {
        self.0.get(name)
    }

    /// Returns all policies, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NamedPolicy)> {
        self.0.iter().map(|(name, policy)| (name.as_str(), policy))
    }

    /// Returns help for an unknown name.
    pub fn known(&self, name: &str) -> String {
        let mut known: Vec<&str> = vec!["auto-approve", "auto-reject", "manual"];
        known.extend(self.0.keys().map(String::as_str));
        format!("{}; or write it as policies/{}.yaml", words::known_words(name, &known, "policies"), words::short(name))
    }
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

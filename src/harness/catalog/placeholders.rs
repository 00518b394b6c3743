//! Checks the placeholders in a manifest: unknown placeholders, and arguments that name a file of the project without a
//! placeholder.

use std::path::Path;

use super::Manifest;
use crate::project;
use crate::yaml::{LeftOut, Step, StepPart, YamlError, words};

/// The placeholders of commands and variables. `{script:NAME}` is one too.
const KNOWN: [&str; 10] =
    ["prompt", "model", "workspace", "home", "self", "project", "manifest-dir", "gateway", "key", "script"];

/// Returns an error for each argument and variable with a placeholder that does not exist.
pub(super) fn check(path: &Path, text: &str, manifest: &Manifest, left_out: &LeftOut) -> Vec<YamlError> {
    let mut errors = Vec::new();
    let mut look = |steps: &[Step<'_>], value: &str| {
        let Some(word) = unknown(value) else { return };
        let message = format!("there is no placeholder `{{{word}}}`");
        let known: Vec<String> = KNOWN.iter().map(|known| format!("{{{known}}}")).collect();
        let help = words::known_words(&format!("{{{word}}}"), &known, "placeholders");
        let error = YamlError::at_steps(path, text, &left_out.written(steps), StepPart::Value, message);
        errors.push(error.with_help(help));
    };
    for (key, command) in [("command", &manifest.command), ("version", &manifest.version)] {
        for (number, word) in command.iter().enumerate() {
            look(&[Step::Key(key), Step::Item(number)], word);
        }
    }
    for (name, value) in &manifest.env.set {
        look(&[Step::Key("env"), Step::Key("set"), Step::Key(name)], value);
    }
    errors
}

/// Returns the first word in braces that is not a placeholder, if the value looks like a path or an option. Other
/// braces are ignored, because JSON, shell scripts and other languages use braces too.
fn unknown(value: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+~{}".contains(c);
    if !value.chars().all(plain) {
        return None;
    }
    value.split('{').skip(1).find_map(|rest| {
        let (word, _) = rest.split_once('}')?;
        let is_word = word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_');
        (is_word && !KNOWN.contains(&word)).then_some(word)
    })
}

/// Returns a warning for each argument that names a file of the project, or one beside the manifest, by a path that
/// the agent resolves in its workspace.
pub(super) fn paths_in_the_workspace(manifest: &Manifest) -> Vec<String> {
    let beside = manifest.folder.as_deref().filter(|folder| *folder != project::root());
    let places = [("{project}", Some(project::root())), ("{manifest-dir}", beside)];
    let named = manifest.command.iter().skip(1).filter(|word| word.contains('.') && !word.starts_with(['/', '-', '{']));
    let found = named.filter_map(|word| {
        let (placeholder, _) = places.iter().find(|(_, folder)| folder.is_some_and(|it| it.join(word).is_file()))?;
        let word = word.strip_prefix("./").unwrap_or(word);
        Some(format!(
            "the agent looks for its argument `{word}` in the workspace; for the file beside the manifest or in the project, write `{placeholder}/{word}`"
        ))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_other_languages_are_left_alone() {
        assert_eq!(unknown("{manifest}/a.py"), Some("manifest"));
        assert_eq!(unknown("--file={project}/{folder}"), Some("folder"));
        assert_eq!(unknown("{model}"), None);
        for other in ["${HOME}/a", "{\"a\":1}", "awk '{print}'", "{A}", "{}", "{1}", "{script:wrong}", "a{"] {
            assert_eq!(unknown(other), None, "{other}");
        }
    }
}

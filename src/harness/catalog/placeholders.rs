//! Checks the placeholders in a manifest: unknown placeholders, and arguments that name a file of the project without a
//! placeholder, or a file that does not exist.

use std::path::Path;

use super::Manifest;
use crate::project;
use crate::yaml::{LeftOut, Step, StepPart, YamlError, words};

/// The placeholders of commands and variables. `{script:NAME}` is one too.
const KNOWN: [&str; 10] =
    ["prompt", "model", "workspace", "home", "self", "project", "manifest-dir", "gateway", "key", "script"];

/// The placeholders for folders of the project.
const PATHS: [&str; 2] = ["project", "manifest-dir"];

/// Returns an error for each argument and variable with a placeholder that does not exist.
pub(super) fn check(path: &Path, text: &str, manifest: &Manifest, left_out: &LeftOut) -> Vec<YamlError> {
    let mut errors = Vec::new();
    let mut look = |steps: &[Step<'_>], value: &str| {
        let Some(word) = unknown(value).or_else(|| mistaken(value)) else { return };
        let message = format!("there is no placeholder `{word}`");
        let known: Vec<String> = KNOWN.iter().map(|known| format!("{{{known}}}")).collect();
        let help = match meant(word) {
            Some(known) => format!("did you mean `{{{known}}}`?"),
            None => words::known_words(word, &known, "placeholders"),
        };
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

/// Returns true if a value looks like a path or an option. Braces in other values are ignored, because JSON, shell scripts
/// and other languages use braces too.
fn is_path_or_option(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:=@,+~{}".contains(c))
}

/// Returns the first word in braces that is not a placeholder, with its braces, if the value looks like a path or an
/// option.
fn unknown(value: &str) -> Option<&str> {
    if !is_path_or_option(value) {
        return None;
    }
    in_braces(value).find(|braced| {
        let word = braced.trim_matches(['{', '}']);
        let is_word = word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-' || c == '_');
        is_word && !braced.starts_with("{{") && !KNOWN.contains(&word)
    })
}

/// Returns the first text in braces that is certainly a misspelled placeholder, such as `{Project}` or
/// `{manifest dir}`.
fn mistaken(value: &str) -> Option<&str> {
    in_braces(value).find(|braced| meant(braced).is_some_and(|known| is_path_or_option(value) || known.contains('-')))
}

/// Returns the placeholder that a text in braces means without doubt, although it is written in another way.
fn meant(braced: &str) -> Option<&'static str> {
    let word = braced.trim_matches(['{', '}']);
    let plain = word.to_ascii_lowercase().replace([' ', '_', '.'], "-");
    let known =
        *KNOWN.iter().find(|known| **known == plain || PATHS.contains(known) && plain == format!("{known}-dir"))?;
    // Other languages write `{{prompt}}` for values of their own.
    let is_doubled = braced.starts_with("{{");
    (word != known || is_doubled && PATHS.contains(&known)).then_some(known)
}

/// Returns the texts in braces, with their braces: `{word}`, and `{{word}}`.
fn in_braces(value: &str) -> impl Iterator<Item = &str> {
    value.match_indices('{').filter_map(|(at, _)| {
        if value[..at].ends_with(['{', '$']) {
            return None;
        }
        let rest = &value[at..];
        let end = rest.find('}')? + 1;
        let is_doubled = rest.starts_with("{{") && rest[end..].starts_with('}');
        let text = &rest[..end + usize::from(is_doubled)];
        let opened = text.matches('{').count();
        (opened == 1 + usize::from(is_doubled)).then_some(text)
    })
}

/// Returns a warning for each argument that names a file of the project, or one beside the manifest, by a path that
/// the agent resolves in its workspace, and for each that names a file there that does not exist.
pub(super) fn doubtful_paths(manifest: &Manifest) -> Vec<String> {
    let beside = manifest.folder.as_deref().filter(|folder| *folder != project::root());
    let places = [("{project}", Some(project::root())), ("{manifest-dir}", beside)];
    // An option may name a file that the agent is to write.
    let placed = manifest.command.iter().skip(1).filter_map(|word| {
        let (placeholder, folder) = [places[0], ("{manifest-dir}", manifest.folder.as_deref())]
            .into_iter()
            .find_map(|(placeholder, folder)| word.starts_with(placeholder).then_some((placeholder, folder?)))?;
        let path = word[placeholder.len()..].strip_prefix('/').filter(|path| !path.contains('{'))?;
        let file = folder.join(path);
        let lacks = is_path_or_option(path) && !path.is_empty() && !file.exists();
        lacks.then(|| format!("the argument `{word}` names {}, which does not exist", file.display()))
    });
    let named = manifest.command.iter().skip(1).filter_map(|word| {
        // The path in `--script=agents/a.py` is after the option.
        let (option, path) = match word.split_once('=').filter(|_| word.starts_with('-')) {
            Some((option, path)) => (&word[..=option.len()], path),
            None => ("", word.as_str()),
        };
        (path.contains('.') && !path.starts_with(['/', '-', '{'])).then_some((word, option, path))
    });
    let found = named.filter_map(|(word, option, path)| {
        let (placeholder, _) = places.iter().find(|(_, folder)| folder.is_some_and(|it| it.join(path).is_file()))?;
        let word = word.strip_prefix("./").unwrap_or(word);
        let path = path.strip_prefix("./").unwrap_or(path);
        Some(format!(
            "the agent looks for its argument `{word}` in the workspace; for the file beside the manifest or in the project, write `{option}{placeholder}/{path}`"
        ))
    });
    let program = manifest.command.first().filter(|program| !program.contains(['/', '{'])).and_then(|program| {
        let is_beside = |folder: &&Path| folder.join(program).is_file();
        let (placeholder, _) = places.iter().find(|(_, folder)| folder.is_some_and(|it| is_beside(&it)))?;
        Some(format!(
            "the program `{program}` is searched on PATH; for the file beside the manifest or in the project, write `{placeholder}/{program}`"
        ))
    });
    found.chain(program).chain(placed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_that_are_nearly_right_are_refused() {
        for (value, braced, known) in [
            ("{Project}/a.py", "{Project}", "project"),
            ("--file={PROJECT}/a.py", "{PROJECT}", "project"),
            ("{manifest dir}/a.py", "{manifest dir}", "manifest-dir"),
            ("sh {manifest_dir}/a.sh", "{manifest_dir}", "manifest-dir"),
            ("{project.dir}/a.py", "{project.dir}", "project"),
            ("{{project}}/a.py", "{{project}}", "project"),
            ("{Prompt}", "{Prompt}", "prompt"),
        ] {
            assert_eq!(mistaken(value), Some(braced), "{value}");
            assert_eq!(meant(braced), Some(known), "{value}");
        }
        for other in ["{project}/a", "{{prompt}}", "{self.x}", "print(f'{Model}')", "${Project}", "{{{project}}}"] {
            assert_eq!(mistaken(other), None, "{other}");
        }
    }

    #[test]
    fn braces_of_other_languages_are_left_alone() {
        assert_eq!(unknown("{manifest}/a.py"), Some("{manifest}"));
        assert_eq!(unknown("--file={project}/{folder}"), Some("{folder}"));
        assert_eq!(unknown("{model}"), None);
        for other in ["${HOME}/a", "{\"a\":1}", "awk '{print}'", "{A}", "{}", "{1}", "{script:wrong}", "a{"] {
            assert_eq!(unknown(other), None, "{other}");
        }
    }
}

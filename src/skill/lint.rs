//! Checks a `SKILL.md` by the Agent Skills specification. Errors are violations of the specification, warnings are
//! violations of its recommendations.

use std::fmt;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use miette::{Diagnostic, LabeledSpan, Severity, SourceCode};
use serde_json::{Map, Value};

use super::document::{Document, Front};
use super::plain;
use super::references::{Reference, references};
use crate::yaml::{Step, StepPart, YamlError, words};

/// The keys that the specification defines.
const KEYS: [&str; 6] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 64;
/// The maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1024;
/// The maximum length of `compatibility`, in characters.
const COMPATIBILITY: usize = 500;
/// The recommended maximum number of lines of a `SKILL.md`.
const MAX_LINES: usize = 500;
/// The recommended maximum number of tokens of the body.
const TOKENS: usize = 5_000;
/// The number of characters that are counted as one token.
const CHARACTERS_PER_TOKEN: usize = 4;
/// The maximum number of errors, and of warnings, of a skill: each one holds the text of its file.
const MAX_FINDINGS: usize = 100;

/// A problem of a skill.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The severity: a violation of the specification, or of a recommendation.
    pub severity: Severity,
    /// The name of the rule.
    pub rule: &'static str,
    /// The place, the message, and the suggested fix.
    pub error: YamlError,
}

/// The files of a skill, by their paths relative to its folder.
pub trait Files {
    /// Returns true if there is a file or a folder.
    fn exists(&self, path: &Path) -> bool;
    /// Returns a text file, or `None` if it cannot be read.
    fn document(&self, path: &Path) -> Option<Document>;
}

/// Returns all problems of a `SKILL.md` in a folder of this name, sorted by place.
pub fn lint(document: &Document, folder: &str, files: &dyn Files) -> Vec<Problem> {
    let mut lint = Lint { document, yaml: "", problems: Vec::new() };
    lint.encoding();
    match document.front() {
        Err(error) => lint.problems.push(Problem { severity: Severity::Error, rule: "front-matter", error }),
        Ok(front) => {
            lint.yaml = front.yaml();
            lint.front(&front, folder);
            lint.body(&front);
            lint.references(&front, files);
        }
    }
    let is_full = lint.is_full(Severity::Error) || lint.is_full(Severity::Warning);
    let mut problems = lint.problems;
    problems.sort_by_key(|problem| (problem.error.path() != document.path(), problem.error.place()));
    if is_full {
        let message = "there may be more problems, which are reported when these are fixed";
        let error = YamlError::at(document.path(), "", None, message);
        problems.push(Problem { severity: Severity::Warning, rule: "many-problems", error });
    }
    problems
}

/// Returns a warning that another skill has the same name.
pub fn same_name(document: &Document, name: &str, other: &Path) -> Problem {
    let text = document.front().map_or_else(|_| document.text(), |front| front.yaml());
    let message = format!("the skill `{}` has the same name as the one in {}", words::short(name), other.display());
    let error = YamlError::at_steps(document.path(), text, &[Step::Key("name")], StepPart::Value, message)
        .with_help("rename one of them; an agent that is given both loads only one");
    Problem { severity: Severity::Warning, rule: "same-name", error }
}

struct Lint<'a> {
    document: &'a Document,
    /// The YAML text of the front matter, including the first `---` line.
    yaml: &'a str,
    problems: Vec<Problem>,
}

impl Lint<'_> {
    /// Returns true if no more problems of this severity are reported. Errors and warnings are counted apart, so that
    /// warnings do not hide an error.
    fn is_full(&self, severity: Severity) -> bool {
        self.problems.iter().filter(|problem| problem.severity == severity).count() >= MAX_FINDINGS
    }

    fn at(&mut self, severity: Severity, rule: &'static str, at: Range<usize>, message: String, help: &str) {
        if self.is_full(severity) {
            return;
        }
        let error = YamlError::at(self.document.path(), self.document.text(), Some(at), message).with_help(help);
        self.problems.push(Problem { severity, rule, error });
    }

    fn key(
        &mut self,
        severity: Severity,
        rule: &'static str,
        at: (&[Step<'_>], StepPart),
        message: String,
        help: &str,
    ) {
        if self.is_full(severity) {
            return;
        }
        let error = YamlError::at_steps(self.document.path(), self.yaml, at.0, at.1, message).with_help(help);
        self.problems.push(Problem { severity, rule, error });
    }

    /// Reports a value of one of the keys at the top.
    fn value(&mut self, rule: &'static str, key: &str, message: String, help: &str) {
        self.key(Severity::Error, rule, (&[Step::Key(key)], StepPart::Value), message, help);
    }

    fn encoding(&mut self) {
        let text = self.document.text();
        if self.document.has_bom() {
            let message = "the file begins with a byte order mark (BOM)".to_owned();
            let help =
                "save the file as UTF-8 without BOM; readers that expect `---` as the first bytes find no front matter";
            self.at(Severity::Warning, "byte-order-mark", 0..0, message, help);
        }
        if let Some(at) = text.find("\r\n") {
            let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
            let message = "the file has Windows line ends (CRLF)".to_owned();
            let help = "save the file with LF line ends; some readers do not recognise `---` before a CR";
            self.at(Severity::Warning, "line-ends", start..at, message, help);
        }
    }

    fn front(&mut self, front: &Front<'_>, folder: &str) {
        let keys = match front.keys() {
            Ok(keys) => keys,
            Err(errors) => {
                let problem = |error| Problem { severity: Severity::Error, rule: "front-matter", error };
                self.problems.extend(errors.into_iter().map(problem));
                return;
            }
        };
        let inner = front.inner();
        if let Some(at) = self.yaml.get(inner.clone()).and_then(|text| text.find("---")) {
            let at = inner.start + at;
            let message = "the front matter contains `---`".to_owned();
            let help = "remove it; the reference validator and other readers end the front matter there";
            self.at(Severity::Warning, "dashes-in-front-matter", at..at + 3, message, help);
        }
        self.name(&keys, folder);
        self.description(&keys);
        self.text(&keys, "license");
        if let Some(text) = self.text(&keys, "compatibility") {
            self.length("compatibility", &text, COMPATIBILITY);
        }
        self.metadata(&keys);
        self.allowed_tools(&keys);
        for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let message = format!("the key `{}` is not in the specification", words::short(key));
            let known = words::known_words(key, &KEYS, "keys");
            let help = format!("{known}; put values of your own below `metadata`");
            self.key(Severity::Warning, "unknown-key", (&[Step::Key(key)], StepPart::Key), message, &help);
        }
    }

    fn missing(&mut self, key: &str, help: &str) {
        self.at(Severity::Error, "missing-key", 0..3, format!("the key `{key}` is missing"), help);
    }

    /// Returns the text of a key, and reports a value that is not a text.
    fn text(&mut self, keys: &Map<String, Value>, key: &str) -> Option<String> {
        let value = keys.get(key)?;
        let steps = [Step::Key(key)];
        let text = plain(value);
        if value.is_null() || text.as_ref().is_some_and(String::is_empty) {
            let message = format!("`{key}` is empty");
            self.key(Severity::Error, "empty", (&steps, StepPart::Key), message, "write a text, or remove the key");
            return None;
        }
        match text {
            Some(text) => {
                if !value.is_string() {
                    let kind = if value.is_boolean() { "a boolean" } else { "a number" };
                    let message = format!("`{key}` is {kind} in YAML, not a text");
                    let help = "put the value in quotes";
                    self.key(Severity::Warning, "not-a-text", (&steps, StepPart::Value), message, help);
                }
                Some(text)
            }
            None => {
                let kind = if value.is_array() { "a list" } else { "a map" };
                self.value("not-a-text", key, format!("`{key}` must be a text, found {kind}"), "write one text");
                None
            }
        }
    }

    fn length(&mut self, key: &str, text: &str, most: usize) {
        let length = text.chars().count();
        if length > most {
            let message = format!("`{key}` has {length} characters; at most {most} are allowed");
            self.value("too-long", key, message, "shorten it, and move details to the body");
        }
    }

    fn name(&mut self, keys: &Map<String, Value>, folder: &str) {
        if !keys.contains_key("name") {
            return self.missing("name", &format!("write `name: {}`, the name of the folder", words::short(folder)));
        }
        let Some(name) = self.text(keys, "name") else { return };
        self.length("name", &name, MAX_NAME_CHARS);
        let shown = words::short(&name);
        let odd = |c: &char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-');
        if let Some(c) = name.chars().find(odd) {
            let message = format!("the name `{shown}` contains `{c}`");
            let help = "use lower-case letters `a-z`, digits and hyphens only".to_owned();
            let help = match suggested(&name) {
                Some(name) => format!("{help}: `{}`", words::short(&name)),
                None => help,
            };
            if c.is_alphanumeric() && !c.is_uppercase() {
                // The reference validator accepts letters of any script, while the specification names a-z.
                self.key(Severity::Warning, "name-characters", (&[Step::Key("name")], StepPart::Value), message, &help);
            } else {
                self.value("name-characters", "name", message, &help);
            }
        }
        if name.starts_with('-') || name.ends_with('-') {
            let message = format!("the name `{shown}` begins or ends with a hyphen");
            self.value("name-hyphens", "name", message, "remove the hyphen");
        }
        if name.contains("--") {
            let message = format!("the name `{shown}` contains two hyphens in a row");
            self.value("name-hyphens", "name", message, "write one hyphen");
        }
        if name != folder {
            let message = format!("the name `{shown}` is not the name of its folder, `{}`", words::short(folder));
            let help = format!("rename the folder, or write `name: {}`", words::short(folder));
            self.value("name-and-folder", "name", message, &help);
        }
    }

    fn description(&mut self, keys: &Map<String, Value>) {
        if !keys.contains_key("description") {
            return self.missing("description", "write `description: …`: what the skill does, and when to use it");
        }
        if let Some(text) = self.text(keys, "description") {
            self.length("description", &text, MAX_DESCRIPTION_CHARS);
        }
    }

    fn metadata(&mut self, keys: &Map<String, Value>) {
        let help = "write a map of texts: `author: name`, each on a line of its own, indented";
        match keys.get("metadata") {
            None => {}
            Some(Value::Object(map)) => {
                for (key, value) in map {
                    let at = [Step::Key("metadata"), Step::Key(key)];
                    let shown = words::short(key);
                    match value {
                        Value::String(_) => {}
                        Value::Object(_) | Value::Array(_) => {
                            let message = format!("`metadata.{shown}` must be a text, found a list or a map");
                            self.key(Severity::Error, "metadata", (&at, StepPart::Key), message, "write one text");
                        }
                        _ => {
                            let message = format!("`metadata.{shown}` is not a text in YAML");
                            let help = "put the value in quotes";
                            self.key(Severity::Warning, "metadata", (&at, StepPart::Value), message, help);
                        }
                    }
                }
            }
            Some(_) => self.key(
                Severity::Error,
                "metadata",
                (&[Step::Key("metadata")], StepPart::Key),
                "`metadata` must be a map".to_owned(),
                help,
            ),
        }
    }

    fn allowed_tools(&mut self, keys: &Map<String, Value>) {
        let at = [Step::Key("allowed-tools")];
        match keys.get("allowed-tools") {
            Some(Value::Array(_)) => {
                let message = "`allowed-tools` must be a text, found a list".to_owned();
                let help = "write the tools with a blank between them: `Read Bash(git:*)`";
                self.key(Severity::Error, "allowed-tools", (&at, StepPart::Key), message, help);
            }
            Some(_) => {
                let Some(text) = self.text(keys, "allowed-tools") else { return };
                if between_parentheses_removed(&text).contains(',') {
                    let message = "`allowed-tools` contains commas".to_owned();
                    let help = "write a blank between the tools; the specification knows no other separator";
                    self.key(Severity::Warning, "allowed-tools", (&at, StepPart::Value), message, help);
                }
            }
            None => {}
        }
    }

    fn body(&mut self, front: &Front<'_>) {
        let (start, body) = front.body();
        let text = self.document.text();
        if body.trim().is_empty() {
            let message = "the body is empty: an agent that activates the skill gets no instructions".to_owned();
            let at = self.document.line_at(start.saturating_sub(1));
            self.at(Severity::Warning, "empty-body", at, message, "write the instructions below the front matter");
            return;
        }
        let lines = text.lines().count();
        if lines > MAX_LINES {
            let at: usize = text.split_inclusive('\n').take(MAX_LINES).map(str::len).sum();
            let message = format!("the file has {lines} lines; at most {MAX_LINES} are recommended");
            self.at(Severity::Warning, "too-many-lines", self.document.line_at(at), message, MOVE);
        }
        let tokens = body.chars().count() / CHARACTERS_PER_TOKEN;
        if tokens > TOKENS {
            let message = format!(
                "the body has about {tokens} tokens (one for {CHARACTERS_PER_TOKEN} characters); at most {TOKENS} are recommended"
            );
            self.at(Severity::Warning, "too-many-tokens", self.document.line_at(start), message, MOVE);
        }
    }

    fn references(&mut self, front: &Front<'_>, files: &dyn Files) {
        let (start, body) = front.body();
        let mut direct = Vec::new();
        for reference in references(body) {
            // Every problem of a reference is a warning.
            if self.is_full(Severity::Warning) {
                return;
            }
            let at = reference.range.start + start..reference.range.end + start;
            if let Some(path) = self.resolved(&reference, at, files)
                && reference.is_link
                && is_markdown(&path)
                && !direct.contains(&path)
            {
                direct.push(path);
            }
        }
        for path in &direct {
            let Some(document) = files.document(path) else { continue };
            let folder = path.parent().unwrap_or(Path::new(""));
            let mut reported: Vec<PathBuf> = Vec::new();
            for reference in references(document.text()).into_iter().filter(|reference| reference.is_link) {
                if self.is_full(Severity::Warning) {
                    return;
                }
                // Paths count from the skill's folder; many files count from their own.
                let written = Path::new(&reference.target);
                let found = [folder.join(written), written.to_owned()];
                let Some(found) = found.iter().filter_map(|path| normal(path)).find(|path| files.exists(path)) else {
                    continue;
                };
                let known = found == Path::new(super::FILE) || found == *path || direct.contains(&found);
                if !is_markdown(&found) || known || reported.contains(&found) {
                    continue;
                }
                let message = format!("{} is only reachable through {}", found.display(), path.display());
                let error = YamlError::at(document.path(), document.text(), Some(reference.range), message)
                    .with_help("refer to the file in SKILL.md too: references should be one level deep");
                self.problems.push(Problem { severity: Severity::Warning, rule: "nested-reference", error });
                reported.push(found);
            }
        }
    }

    /// Returns the path of a file that the body refers to, or reports the reason why the reference is invalid.
    fn resolved(&mut self, reference: &Reference, at: Range<usize>, files: &dyn Files) -> Option<PathBuf> {
        let target = Path::new(&reference.target);
        let shown = words::short(&reference.target);
        if target.is_absolute() {
            let message = format!("the reference `{shown}` is an absolute path");
            self.at(
                Severity::Warning,
                "absolute-reference",
                at,
                message,
                "write a path relative to the skill's folder",
            );
            return None;
        }
        let Some(path) = normal(target) else {
            let message = format!("the reference `{shown}` leads out of the skill's folder");
            self.at(Severity::Warning, "outside-reference", at, message, "move the file into the skill's folder");
            return None;
        };
        // A path in a command may be one of the user's project, unless the skill has such a folder.
        let first = path.components().next().map(|part| PathBuf::from(part.as_os_str()));
        let is_meant = reference.is_link || first.is_some_and(|first| files.exists(&first));
        if is_meant && !files.exists(&path) {
            let message = format!("the referenced file `{shown}` does not exist");
            let help = "correct the path, which is relative to the skill's folder, or add the file";
            self.at(Severity::Warning, "missing-file", at, message, help);
            return None;
        }
        Some(path)
    }
}

const MOVE: &str = "move details to files in `references/`, which an agent reads only when it needs them";

/// Returns a name by the specification that is like this one.
fn suggested(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let words = lower.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit()));
    let name = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    (!name.is_empty()).then_some(name)
}

fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md"))
}

/// Returns a path without `.` and `..`, or `None` if it leaves the folder.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => out.push(name),
            Component::ParentDir if out.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Returns a text without the parts in parentheses, so that a comma in `Bash(a, b) Read` is not taken for a separator.
fn between_parentheses_removed(text: &str) -> String {
    let mut depth = 0_usize;
    let outside = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    };
    text.chars().filter(outside).collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let word = if self.severity == Severity::Error { "error" } else { "warning" };
        Some(Box::new(format!("{word}: {}", self.rule)))
    }

    fn severity(&self) -> Option<Severity> {
        Some(self.severity)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.error.help()
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.error.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.error.labels()
    }
}

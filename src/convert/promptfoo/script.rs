//! Code in assertions: a program beside the case that runs it and prints a grade.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::{Content, NewCase, source, template};
use super::asserts::Context;

/// A program that runs JavaScript code of the source.
const JAVASCRIPT: &str = include_str!("script/assertion.mjs");
/// A program that runs Python code of the source.
const PYTHON: &str = include_str!("script/assertion.py");

/// The code of an assertion.
#[derive(Debug, Clone)]
pub struct Code {
    language: Language,
    /// The code itself, or the file that holds it and the name of the function.
    body: Result<String, (PathBuf, Option<String>)>,
    threshold: Option<f64>,
    is_not: bool,
    config: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    JavaScript,
    Python,
}

/// Reads the code of an assertion.
///
/// # Errors
/// Returns the reason if it cannot be run here.
pub fn read(
    kind: &str,
    value: &str,
    threshold: Option<f64>,
    is_not: bool,
    config: Value,
    context: &Context<'_>,
) -> Result<Code, String> {
    let language = if kind == "python" { Language::Python } else { Language::JavaScript };
    let body = match value.strip_prefix("file://") {
        None => {
            if value.starts_with("package:") {
                return Err("the code is in a package".to_owned());
            }
            let (code, missing) = template::fill(value, context.vars)?;
            if let Some(name) = missing.first() {
                return Err(format!("the variable `{name}` has no value"));
            }
            Ok(code)
        }
        Some(path) => {
            let (path, function) = match path.rsplit_once(':') {
                Some((path, function)) => (path, Some(function.to_owned())),
                None => (path, None),
            };
            let known: &[&str] = if language == Language::Python { &[".py"] } else { &[".js", ".cjs", ".mjs"] };
            if !known.iter().any(|end| path.ends_with(end)) {
                return Err(format!("`{path}` is no file that {} runs", language.program()));
            }
            let file = source::named(context.folder, path)?;
            if let Some(other) = loads_another(&file, language) {
                return Err(format!(
                    "`{path}` loads `{other}`, which is not copied with it; write the code in one file"
                ));
            }
            Err((file, function))
        }
    };
    Ok(Code { language, body, threshold, is_not, config })
}

/// Returns the name of the first file or module near the code that it loads. Such files would have to be copied, too.
fn loads_another(file: &Path, language: Language) -> Option<String> {
    let text = crate::yaml::read(file).ok()?;
    let folder = source::folder(file);
    let exists = |name: &str| folder.join(format!("{name}.py")).is_file() || folder.join(name).is_dir();
    text.lines().map(str::trim).find_map(|line| match language {
        Language::JavaScript => {
            let is_load = ["require(", "import ", "import(", "from "].iter().any(|word| line.contains(word));
            let named = line.split(['"', '\'', '`']).skip(1).step_by(2);
            named.filter(|_| is_load).find(|name| name.starts_with("./") || name.starts_with("../")).map(str::to_owned)
        }
        Language::Python => {
            let names = line.strip_prefix("from ").or_else(|| line.strip_prefix("import "))?;
            let names = names.split(" import ").next()?.split(',').map(str::trim);
            let module = |name: &str| name.split(['.', ' ']).next().unwrap_or_default().to_owned();
            names
                .map(|name| if name.starts_with('.') { name.to_owned() } else { module(name) })
                .find(|name| name.starts_with('.') || exists(name))
        }
    })
}

impl Language {
    fn program(self) -> &'static str {
        match self {
            Self::JavaScript => "node",
            Self::Python => "python3",
        }
    }
}

/// Adds the program of an assertion beside the case, and returns the command that runs it.
pub fn write(code: &Code, number: usize, context: &Context<'_>, case: &mut NewCase) -> Vec<String> {
    let mut spec = json!({
        "vars": context.vars,
        "prompt": context.prompt,
        "threshold": code.threshold,
        "inverse": code.is_not,
        "scored": context.threshold.is_some(),
        "config": code.config,
    });
    let mut files = Vec::new();
    if let Some(map) = spec.as_object_mut() {
        match &code.body {
            Ok(text) => drop(map.insert("code".to_owned(), json!(text))),
            Err((file, function)) => {
                map.insert("function".to_owned(), json!(function));
                let end = file.extension().map(|end| end.to_string_lossy().into_owned()).unwrap_or_default();
                files.push(case.add(&format!("assertion-{number}-code.{end}"), Content::Copy(file.clone())));
            }
        }
    }
    let (end, program) = match code.language {
        Language::JavaScript => ("mjs", JAVASCRIPT),
        Language::Python => ("py", PYTHON),
    };
    // A JSON text within a JSON text is a literal of both languages.
    let literal = json!(spec.to_string()).to_string();
    let text = program.replace("\"SPECIFICATION\"", &literal);
    let name = case.add(&format!("assertion-{number}.{end}"), Content::Text(text));
    [code.language.program().to_owned(), name].into_iter().chain(files).collect()
}

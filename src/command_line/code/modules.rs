//! The files of a program that a command names without their endings, or that code on the command line imports.

use std::sync::LazyLock;

use regex::Regex;

use super::is_javascript;
use crate::command_line::expanded::{Argument, Program};
use crate::command_line::python::is_python;

/// The maximum number of imports that are read.
const MAX_IMPORTS: usize = 16;

/// Returns the paths of the files that a command may run as a part of each of its words: `node a`, `python3 -m a`,
/// `python3 -c 'import a'`.
pub(in crate::command_line) fn files(arguments: &[Argument]) -> Vec<(usize, String)> {
    let name = |word: &Argument| match word.program() {
        Program::Named(name) if is_python(name) || is_javascript(name) => Some(is_python(name)),
        _ => None,
    };
    let interpreter = arguments.iter().enumerate().find_map(|(at, word)| Some((at, name(word)?)));
    let Some((at, is_python)) = interpreter else { return Vec::new() };
    let mut found = Vec::new();
    for (index, word) in arguments.iter().enumerate().skip(at + 1) {
        let option = arguments.get(index - 1).map_or("", |word| word.text.as_str());
        let paths = match option {
            "-m" if is_python => vec![of_module(&word.text)],
            option if is_before_code(is_python, option) => imports(is_python, &word.text),
            _ if is_python || word.text.starts_with('-') => Vec::new(),
            _ => vec![format!("{}.js", word.text)],
        };
        found.extend(paths.into_iter().map(|path| (index, path)));
    }
    found
}

/// Returns true if a word of an interpreter is code on the command line. The texts of the files of such a word are those of the
/// modules that the code imports.
pub(super) fn is_importing(program: &str, arguments: &[Argument], at: usize) -> bool {
    let option = at.checked_sub(1).and_then(|at| arguments.get(at));
    option.is_some_and(|option| is_before_code(is_python(program), &option.text))
}

fn is_before_code(is_python: bool, option: &str) -> bool {
    match option {
        "-c" => is_python,
        "-e" | "-p" | "-pe" | "--eval" | "--print" => !is_python,
        _ => false,
    }
}

fn of_module(name: &str) -> String {
    format!("{}.py", name.replace('.', "/"))
}

/// Returns the paths of the modules that code imports.
fn imports(is_python: bool, code: &str) -> Vec<String> {
    static OF_PYTHON: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(?:import|from)\s+([A-Za-z_][\w.]*)").ok());
    static OF_JAVASCRIPT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"\b(?:require\s*\(|from|import\s*\(?)\s*['"`](\.{1,2}/[\w./-]+)['"`]"#).ok());
    let imports = if is_python { &OF_PYTHON } else { &OF_JAVASCRIPT };
    let Some(imports) = (**imports).as_ref() else { return Vec::new() };
    let names = imports.captures_iter(code).filter_map(|found| found.get(1)).take(MAX_IMPORTS);
    let paths = names.flat_map(|name| match is_python {
        true => vec![of_module(name.as_str())],
        false => ["", ".js", ".mjs", ".ts"].iter().map(|end| format!("{}{end}", name.as_str())).collect(),
    });
    paths.collect()
}

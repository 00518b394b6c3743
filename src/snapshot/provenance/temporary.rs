//! Finds the generated names of temporary files and folders in a tool's output.

use std::ops::Range;

use regex::Regex;

use super::forms::Form;
use super::times::Span;

patterns! {
    /// A path in a folder for temporary files.
    PATH = r#"(?:^|[^\w.{}/-])(?:file://)?(?:(?:/[^\s/"'`:]+)*?/evals-run-[\w-]+/trial-\w{6}/tmp|(?:/private)?(?:/var/folders/[\w+]+/[\w+]+/T|/var/tmp|/tmp|/dev/shm))/(?P<path>[\w.@+-]+(?:/[\w.@+-]+)*)"#;
    /// The workspace or the home of a trial, and paths in them.
    OF_TRIAL = r"^evals-run-[\w-]+/trial-\w+/(?:workspace|home)(?:/|$)";
    /// Folders of runs and trials.
    FOLDER_OF_TRIAL = r"^(?:evals-run-\d+-\d+|trial-[A-Za-z0-9]{6})$";
    /// A command that makes temporary names.
    MAKES = r"mktemp|mkdtemp|mkstemp|tempfile|[Tt]emporary(?:File|Directory)|\bNamedTemp|\bTempDir\b|\bmkdtemp";
    /// The default names of Python, and of Rust.
    TMP = r"^tmp[a-z0-9_]{8}(?:\.\w+)*$|^\.tmp[A-Za-z0-9]{6}$";
    /// A chosen name with an ending that may be generated.
    TAIL = r"^(?P<given>.*[._-])(?P<tail>[A-Za-z0-9]{4,16})(?:\.[a-z0-9]{1,5})?$";
    /// A chosen name with eight characters of Python's alphabet at its end.
    LOW = r"^(?P<given>.*?[._-])(?P<tail>[a-z0-9_]{8})(?:\.[a-z0-9]{1,5})?$";
    /// A name with a number at its end, as Go and shells make names.
    FIGURES = r"^.*?[A-Za-z._-](?:\d{7,}|[._-]\d{3,})(?:\.\w+)?$";
    /// The template of `mktemp`: a name whose last Xs are replaced.
    TEMPLATE = r"(?P<given>[\w.@+-]*?)(?P<signs>X{3,})(?P<end>[\w.-]*)";
}

/// Adds the generated names. A name directly in a temporary folder is generated if the command makes such names. For any
/// other name, its form decides.
pub fn names(output: &str, command: &str, spans: &mut Vec<Span>) {
    let makes = may_make(command) && MAKES.is_match(command);
    let templates = if makes { templates(command) } else { Vec::new() };
    for found in PATH.captures_iter(if output.contains('/') { output } else { "" }) {
        let Some(path) = found.name("path") else { continue };
        if OF_TRIAL.is_match(path.as_str()) {
            continue;
        }
        let mut start = path.start();
        for (n, part) in path.as_str().split('/').enumerate() {
            let name = part.trim_end_matches(['.', '-']);
            if !name.is_empty() && ((makes && n == 0) || is_made(name) || templates.iter().any(|it| it.is_match(name)))
            {
                spans.push((start..start + name.len(), Form::Temporary));
            }
            start += part.len() + 1;
        }
    }
    if !makes {
        return;
    }
    // A bare name, or a path elsewhere, on a separate line.
    let mut start = 0;
    for line in output.split_inclusive('\n') {
        let word = line.trim();
        if !word.is_empty() && !word.contains(char::is_whitespace) {
            let name = word.rsplit('/').next().unwrap_or(word);
            let at = start + line.find(word).unwrap_or(0) + word.len() - name.len();
            if !name.is_empty() && (word.starts_with('/') || templates.iter().any(|it| it.is_match(name))) {
                spans.push((Range { start: at, end: at + name.len() }, Form::Temporary));
            }
        }
        start += line.len();
    }
}

/// Returns false if a command cannot make temporary names: every such name of a program contains `emp`.
fn may_make(command: &str) -> bool {
    memchr::memmem::find(command.as_bytes(), b"emp").is_some()
}

/// The maximum number of templates in a command.
const MAX_TEMPLATES: usize = 16;

fn templates(command: &str) -> Vec<Regex> {
    let given = TEMPLATE.captures_iter(command).take(MAX_TEMPLATES).filter(|found| found[0].len() <= 255);
    let pattern = |found: regex::Captures<'_>| {
        let (before, after) = (regex::escape(&found["given"]), regex::escape(&found["end"]));
        Regex::new(&format!("^{before}[A-Za-z0-9]{{{}}}{after}$", found["signs"].len())).ok()
    };
    given.filter_map(pattern).collect()
}

/// Returns true if a name in a temporary folder looks generated: `tmp.Ab12Cd9xYz`, `tmpab12cd_x`, `work-AbCdEf`. A word
/// in lower-case letters does not, such as `notes.markdown` and `run-failed`.
fn is_made(name: &str) -> bool {
    if FOLDER_OF_TRIAL.is_match(name) || TMP.is_match(name) || FIGURES.is_match(name) {
        return true;
    }
    [&*TAIL, &*LOW]
        .into_iter()
        .filter_map(|pattern| pattern.captures(name))
        .any(|found| looks_made(&found["tail"]) || is_of_mktemp(&found))
}

/// Matches `tmp.Ab12Cd9xYz`: a person would not call a file `tmp` followed by characters of every kind.
fn is_of_mktemp(found: &regex::Captures<'_>) -> bool {
    let tail = &found["tail"];
    let upper = tail.contains(|c: char| c.is_ascii_uppercase());
    let other = tail.contains(|c: char| !c.is_ascii_uppercase());
    let figure = tail.contains(|c: char| c.is_ascii_digit());
    &found["given"] == "tmp." && (upper && other || tail.len() == 10 && (upper || figure))
}

/// Returns true if a person would not choose such a name: `Ab12Cd` and `AbCdEf`, but not `markdown`, `FooBar`,
/// `test123` or `sha256sum`.
fn looks_made(tail: &str) -> bool {
    let has = |is: fn(&char) -> bool| tail.chars().any(|c| is(&c));
    let (upper, lower, figure) =
        (has(char::is_ascii_uppercase), has(char::is_ascii_lowercase), has(char::is_ascii_digit));
    let runs = runs(tail);
    let longest = runs.iter().filter(|run| run.0 != Sign::Figure).map(|run| run.1).max().unwrap_or(0);
    // A word, or one with a number after it.
    let words = runs.split_last().map_or(&[][..], |(last, rest)| if last.0 == Sign::Figure { rest } else { &runs[..] });
    match (upper, lower, figure) {
        (true, true, _) if words.iter().any(|run| run.0 == Sign::Figure) => true,
        (true, true, _) => !is_of_words(words),
        (true, false, true) => words.iter().any(|run| run.0 == Sign::Figure) && tail.len() >= 6,
        (false, true, true) => {
            let figures = tail.bytes().filter(u8::is_ascii_digit).count();
            match tail.len() {
                8 => runs.len() >= 3 && longest <= 3,
                6 | 10 => runs.len() >= 3 && (figures >= 2 || runs.len() >= 4),
                _ => false,
            }
        }
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Upper,
    Lower,
    Figure,
}

/// Returns the runs of characters of one kind, with their lengths.
fn runs(text: &str) -> Vec<(Sign, usize)> {
    let mut runs: Vec<(Sign, usize)> = Vec::new();
    for c in text.chars().filter(char::is_ascii_alphanumeric) {
        let sign = match c {
            'A'..='Z' => Sign::Upper,
            'a'..='z' => Sign::Lower,
            _ => Sign::Figure,
        };
        match runs.last_mut().filter(|last| last.0 == sign) {
            Some(last) => last.1 += 1,
            None => runs.push((sign, 1)),
        }
    }
    runs
}

/// Returns true if letters are one or two words, such as `MyRepo` and `fooBar`, or `Rmd` after a dot.
fn is_of_words(runs: &[(Sign, usize)]) -> bool {
    use Sign::{Lower, Upper};
    let long = |count: &usize| *count >= 2;
    match runs {
        [(Lower, _)] | [(Upper, _)] => true,
        [(Upper, 1), (Lower, _)] => true,
        [(Lower, _), (Upper, 1), (Lower, last)] | [(Upper, 1), (Lower, _), (Upper, 1), (Lower, last)] => long(last),
        _ => false,
    }
}

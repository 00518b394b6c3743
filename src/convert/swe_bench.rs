//! SWE-bench: each instance becomes a case with the repository at its commit, and the tests of its patch.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::refused::Refused;
use super::table::{self, Sample};
use super::{Choices, Content, Converted, NewCase, Note, UNKNOWN, one_line, slug, unique, whole};
use crate::text::{plural, shell_word};
use crate::values::escaped_glob;
use crate::workspace::patch::read::{file_name, path_of_head};
use crate::yaml::YamlError;

/// The folder of the tests in the workspace while it is graded.
const FOLDER: &str = ".evals-tests";
/// The plug-in of pytest that reports tests that are marked as failing (`XFAIL`, `XPASS`) as the source counts them, with the
/// names that the source gives to tests, and the name of its module.
const XFAIL: &str = include_str!("swe_bench/evals_xfail.py");
const XFAIL_MODULE: &str = "evals_xfail";
/// The repositories whose reader of logs in SWE-bench cuts the name of a test at white space, and what else it rewrites.
const REWRITES: [(&str, &str); 13] = [
    ("marshmallow-code/marshmallow", "cut"),
    ("matplotlib/matplotlib", "cut buttons"),
    ("mwaskom/seaborn", "cut"),
    ("pallets/flask", "cut"),
    ("psf/requests", "cut options"),
    ("pvlib/pvlib-python", "cut"),
    ("pydata/xarray", "cut"),
    ("pydicom/pydicom", "cut options"),
    ("pylint-dev/astroid", "cut"),
    ("pylint-dev/pylint", "cut options"),
    ("pytest-dev/pytest", "cut"),
    ("pyvista/pyvista", "cut"),
    ("sqlfluff/sqlfluff", "cut"),
];
/// The known columns: any other column that is not empty gets a note.
const KNOWN: [&str; 14] = [
    "repo",
    "instance_id",
    "base_commit",
    "patch",
    "test_patch",
    "problem_statement",
    "created_at",
    "version",
    "FAIL_TO_PASS",
    "PASS_TO_PASS",
    "environment_setup_commit",
    "eval_type",
    "difficulty",
    "image_assets",
];

/// Reads the instances of a file.
pub fn convert(path: &Path, choices: &Choices) -> Result<Converted, Vec<YamlError>> {
    let samples = table::read(path).map_err(|error| vec![error])?;
    if !samples.iter().any(|sample| sample.columns.contains_key("FAIL_TO_PASS")) {
        let error = whole(path, "these are no instances of SWE-bench: they have no `FAIL_TO_PASS`");
        return Err(vec![error.with_help("name a file of JSON Lines, a JSON list, or CSV")]);
    }
    let mut converted = Converted::default();
    let mut cases: Vec<NewCase> = Vec::new();
    for sample in &samples {
        let id = sample.columns.get("instance_id").and_then(Value::as_str).and_then(slug);
        let name = unique(id.unwrap_or_else(|| format!("instance-{}", cases.len() + 1)), &cases);
        let mut case = NewCase::new(name, path);
        match instance(path, sample, choices, &mut case) {
            Ok(()) => cases.push(case),
            Err((key, why)) => {
                let id = sample.columns.get("instance_id").and_then(Value::as_str).unwrap_or_default();
                converted.notes.push(note(path, sample, key, format!("no case was written for `{id}`: {why}")));
            }
        }
    }
    converted.add_file(path, "swe-bench", "Instances", cases);
    Ok(converted)
}

fn note(path: &Path, sample: &Sample, key: &str, message: impl Into<String>) -> Note {
    let key = if sample.key.is_empty() { key.to_owned() } else { format!("{}.{key}", sample.key) };
    Note::new(path, key, message).on(sample.line)
}

fn instance(path: &Path, sample: &Sample, choices: &Choices, case: &mut NewCase) -> Result<(), Refused<&'static str>> {
    let text = |key: &'static str| {
        let text = sample.columns.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        text.ok_or((key, "the column is missing or empty".to_owned()))
    };
    let (repo, commit, statement) = (text("repo")?, text("base_commit")?, text("problem_statement")?);
    let patch = text("test_patch")?;
    let (fail, mut pass) = (names(sample, "FAIL_TO_PASS")?, names(sample, "PASS_TO_PASS")?);
    if let Some(name) = pass.iter().find(|name| is_progress(name)) {
        let message = format!("left out: `{name}` is no test, but the progress that pytest prints behind its tests");
        case.notes.push(note(path, sample, "PASS_TO_PASS", message));
    }
    pass.retain(|name| !is_progress(name));
    if fail.is_empty() {
        return Err(("FAIL_TO_PASS", "the list is empty, so an unchanged repository would pass".to_owned()));
    }
    case.notes.extend(notes_of_names(path, sample, &[("FAIL_TO_PASS", &fail), ("PASS_TO_PASS", &pass)]));
    let rewrites = if choices.test.is_some() { "" } else { rewrites(repo, fail.iter().chain(&pass)) };
    // If the plug-in cuts names as the source does, each is a whole name.
    let (fail, pass) = match rewrites {
        "" => (by_beginning(fail), by_beginning(pass)),
        _ => (fail, pass),
    };
    let is_commit = commit.len() >= 7 && commit.chars().all(|c| c.is_ascii_hexdigit());
    if !is_commit {
        return Err(("base_commit", "this is not a commit".to_owned()));
    }
    for key in ["eval_script", "log_parser"] {
        if choices.test.is_none() && text(key).is_ok() {
            return Err((key, "its tests need a program of the source; name their command with --test".to_owned()));
        }
    }
    let assets = Assets::of(sample.columns.get("image_assets"));
    if assets.of_patches {
        return Err(("image_assets", "its tests need images that a patch does not hold".to_owned()));
    }
    if assets.of_problem {
        let message = "left out: download the images of the problem, and name them as `attachments`";
        case.notes.push(note(path, sample, "image_assets", message));
    }
    let files = files_of(patch)?;
    let Runner { command, format, fail, pass, lost } = runner(repo, &fail, &pass, &files, choices)?;
    if lost > 0 {
        let message = format!("left out: {} named by descriptions, which no runner prints", plural(lost, "test"));
        case.notes.push(note(path, sample, "PASS_TO_PASS", message));
    }
    let is_pytest = fail.iter().chain(&pass).any(|name| name.contains("::"));
    if is_pytest && choices.test.is_some() {
        let message = "a test that fails as expected (`XFAIL`) has passed in the source, and has not passed with --test; \
                       for one that passes unexpectedly (`XPASS`) it is the other way round";
        case.notes.push(note(path, sample, "PASS_TO_PASS", message));
    } else if is_pytest {
        let plugin = XFAIL.replace("@REWRITES@", rewrites);
        case.add(&format!("hidden/{FOLDER}/{XFAIL_MODULE}.py"), Content::Text(plugin));
    }
    let (place, repository) = repository(path, repo)?;
    let protect: Vec<String> = files.iter().filter(|file| !file.is_new).map(|file| escaped_glob(&file.path)).collect();
    let mut workspace = json!({"git": {place: repository, "rev": commit}});
    if let Some(map) = workspace.as_object_mut().filter(|_| !protect.is_empty()) {
        map.insert("protect".to_owned(), json!(protect));
    }
    case.keys.insert("description".to_owned(), json!(one_line(statement.trim().lines().next().unwrap_or_default())));
    case.keys.insert("prompt".to_owned(), json!(statement.trim()));
    case.keys.insert("tags".to_owned(), json!(["swe-bench"]));
    case.keys.insert("workspace".to_owned(), workspace);
    case.add(&format!("hidden/{FOLDER}/test.patch"), Content::Text(with_end(patch)));
    let hidden = case.add(&format!("hidden/{FOLDER}/run.sh"), Content::Text(script_of(&files, &command)));
    case.keys.insert("hidden".to_owned(), json!(hidden.split('/').next().unwrap_or_default()));
    if let Ok(solution) = text("patch") {
        let patch = case.add("patch", Content::Text(with_end(solution)));
        case.keys.insert("oracle".to_owned(), json!({"patch": patch}));
    }
    case.keys.insert("graders".to_owned(), json!([{"tests": grader(fail, pass, format)}]));
    let version = text("version").unwrap_or("unknown");
    let message = format!(
        "the dependencies of version {version} are not installed: add `workspace.setup`, or a `sandbox` with an image"
    );
    case.notes.push(note(path, sample, "version", message));
    case.notes.extend(notes_of_other_columns(path, sample));
    Ok(())
}

/// Returns notes about names of tests that other tests may fit.
fn notes_of_names(path: &Path, sample: &Sample, lists: &[(&str, &Vec<String>)]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (key, names) in lists {
        if let Some(name) = names.iter().find(|name| name.contains('*')) {
            let message =
                format!("if no test has the name `{name}`, others that fit it count: `*` matches anything here");
            notes.push(note(path, sample, key, message));
        }
        if let Some(name) = names.iter().find(|name| is_cut(name)) {
            let message = format!(
                "the source cuts names at white space; every test whose name begins with `{name}` and white space has to pass"
            );
            notes.push(note(path, sample, key, message));
        }
    }
    notes
}

/// Returns the script that applies the tests of an instance and runs them. `files` are the files of the patch with the tests.
fn script_of(files: &[Changed], command: &str) -> String {
    // A file that becomes a link is in the patch twice: Git needs the old file, which is restored.
    let is_old = |path: &str| files.iter().any(|file| !file.is_new && file.path == path);
    let new = files.iter().filter(|file| file.is_new && !is_old(&file.path));
    let new: Vec<String> = new.map(|file| shell_word(&file.path)).collect();
    let remove = if new.is_empty() { String::new() } else { format!("rm -rf -- {}\n", new.join(" ")) };
    // No setting of the agent's repository counts: with `core.worktree` above the workspace, git would skip each path without
    // an error, and the old tests would run.
    format!(
        "#!/bin/sh\n# Applies the tests of the instance and runs them. Written by `evals convert`.\n{remove}\
         GIT_DIR=/nonexistent git apply --whitespace=nowarn {FOLDER}/test.patch || exit 1\n{command}\n"
    )
}

/// Returns the grader that runs the script and reads the tests.
fn grader(fail: Vec<String>, pass: Vec<String>, format: Option<&str>) -> Value {
    let mut tests = json!({
        "name": "resolved",
        "gate": true,
        "run": ["sh", format!("{FOLDER}/run.sh")],
        "fail-to-pass": fail,
        "timeout": "30m",
    });
    if let Some(map) = tests.as_object_mut() {
        if !pass.is_empty() {
            map.insert("pass-to-pass".to_owned(), json!(pass));
        }
        if let Some(format) = format {
            map.insert("format".to_owned(), json!(format));
        }
    }
    tests
}

/// Returns notes about columns that are not converted.
fn notes_of_other_columns(path: &Path, sample: &Sample) -> Vec<Note> {
    let is_empty = |value: &Value| value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
    let others = sample.columns.iter().filter(|(key, value)| !KNOWN.contains(&key.as_str()) && !is_empty(value));
    let note_of = |(key, _): (&String, &Value)| match key.as_str() {
        "hints_text" => note(path, sample, key, "left out: hints are not part of the task"),
        _ => note(path, sample, key, UNKNOWN),
    };
    others.map(note_of).collect()
}

/// Returns the key and the value of a repository: a URL, a local path, which may be relative to the file of the instances, or
/// the name of one on GitHub.
fn repository(file: &Path, repo: &str) -> Result<(&'static str, String), Refused<&'static str>> {
    let is_path = ["/", "./", "../"].iter().any(|start| repo.starts_with(start)) || [".", ".."].contains(&repo);
    let is_remote = repo.contains("://") || (repo.contains('@') && repo.contains(':'));
    match (is_path, is_remote) {
        (true, _) => {
            let folder = file.parent().unwrap_or(Path::new("")).join(repo);
            let folder = folder
                .canonicalize()
                .map_err(|error| ("repo", format!("the folder {repo} cannot be read: {error}")))?;
            Ok(("path", folder.to_string_lossy().into_owned()))
        }
        (_, true) => Ok(("url", repo.to_owned())),
        (false, false) => Ok(("url", format!("https://github.com/{repo}"))),
    }
}

fn with_end(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Returns true if a name is the beginning of one with white space, at which the reader of logs of SWE-bench cuts it:
/// `a.py::test_b[two` of `a.py::test_b[two words]`.
fn is_cut(name: &str) -> bool {
    name.contains("::") && name.contains('[') && !name.ends_with(']') && !name.contains(char::is_whitespace)
}

/// Returns names with a pattern for those that the source cuts.
fn by_beginning(names: Vec<String>) -> Vec<String> {
    names.into_iter().map(|name| if is_cut(&name) { format!("{name} *") } else { name }).collect()
}

/// Returns true if a name is the end of a line of pytest, which the reader of logs of SWE-bench took for a test: `[100%]`.
fn is_progress(name: &str) -> bool {
    let number = name.strip_prefix('[').and_then(|rest| rest.strip_suffix("%]")).unwrap_or_default().trim();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Returns what the source's reader of logs for a repository does to the names of tests. Names with white space were not made
/// by such a reader.
fn rewrites<'a>(repo: &str, mut names: impl Iterator<Item = &'a String>) -> &'static str {
    let known = REWRITES.iter().find(|(name, _)| *name == repo).map_or("", |(_, rewrites)| *rewrites);
    if names.any(|name| name.contains(char::is_whitespace)) { "" } else { known }
}

/// The images that an instance needs.
#[derive(Default)]
struct Assets {
    /// True if the tests or the solution need images, or if this is unknown.
    of_patches: bool,
    /// True if the problem shows images.
    of_problem: bool,
}

impl Assets {
    /// Reads the column: a map of lists, or JSON within a text.
    fn of(column: Option<&Value>) -> Self {
        let parsed = column.and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let parsed = parsed.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(assets) = parsed.as_ref().or(column).filter(|assets| !is_empty(assets)) else {
            return Self::default();
        };
        let has = |key: &str| assets.get(key).is_some_and(|list| !is_empty(list));
        Self {
            of_patches: !assets.is_object() || has("test_patch") || has("patch"),
            of_problem: has("problem_statement"),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a list of tests: a list, or JSON within a text.
fn names(sample: &Sample, key: &'static str) -> Result<Vec<String>, Refused<&'static str>> {
    let wrong = || (key, "this is neither a list of names nor a text that contains such a list".to_owned());
    let list = match sample.columns.get(key) {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::String(text)) => serde_json::from_str::<Vec<Value>>(text).map_err(|_| wrong())?,
        _ => return Err(wrong()),
    };
    let names: Option<Vec<String>> = list.iter().map(|name| name.as_str().map(str::to_owned)).collect();
    let names = names.ok_or_else(wrong)?;
    match names.iter().any(|name| name.trim().is_empty()) {
        true => Err((key, "a name of the list is empty".to_owned())),
        false => Ok(names),
    }
}

/// A file that a patch changes.
struct Changed {
    path: String,
    /// True if the file is not in the repository before the patch.
    is_new: bool,
    /// True if the file is not in the repository after the patch.
    is_gone: bool,
}

/// Returns the files that a patch changes. A renamed file is two of them: the old name must be as the patch expects it,
/// and the new name must be free.
fn files_of(patch: &str) -> Result<Vec<Changed>, Refused<&'static str>> {
    let unreadable = || ("test_patch", "a path of the patch cannot be read".to_owned());
    let mut files: Vec<Changed> = Vec::new();
    let mut is_head = false;
    for line in patch.lines() {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            let path = path_after(rest).ok_or_else(unreadable)?;
            files.push(Changed { path, is_new: false, is_gone: false });
            is_head = true;
        } else if line.starts_with("@@ ") || line.starts_with("GIT binary patch") {
            is_head = false;
        } else if is_head && let Some(at) = files.len().checked_sub(1) {
            if line.starts_with("Binary files ") && line.ends_with(" differ") {
                let path = files.last().map(|file| file.path.as_str()).unwrap_or_default();
                let message =
                    format!("it does not hold the new content of the binary file `{path}`, so Git cannot apply it");
                return Err(("test_patch", message));
            }
            let from = line.strip_prefix("rename from ").map(|path| (path, true));
            let from = from.or_else(|| line.strip_prefix("copy from ").map(|path| (path, false)));
            if let Some((name, is_gone)) = from {
                let path = readable(name, "").ok_or_else(unreadable)?;
                files.insert(at, Changed { path, is_new: false, is_gone });
            }
            if let Some(file) = files.last_mut() {
                file.is_new |= from.is_some() || line.starts_with("new file mode");
                file.is_gone |= line.starts_with("deleted file mode");
            }
        }
    }
    if files.is_empty() {
        return Err(("test_patch", "this is not a patch of Git".to_owned()));
    }
    Ok(files)
}

/// Returns the path after a patch of `a/NAME b/NAME`, as in the first line of a file.
fn path_after(names: &str) -> Option<String> {
    if let Some(path) = path_of_head(names.as_bytes()) {
        let path = String::from_utf8(path).ok()?;
        return crate::paths::leaves(Path::new(&path)).is_none().then_some(path);
    }
    // The file is renamed.
    let begin = if names.ends_with('"') { " \"b/" } else { " b/" };
    readable(names.get(names.rfind(begin)? + 1..)?, "b")
}

/// Returns a path below a folder of a patch. Git quotes a name with unusual characters.
fn readable(name: &str, folder: &str) -> Option<String> {
    let path = file_name(name.as_bytes())?;
    let path = path.strip_prefix(folder).ok()?;
    path.to_str().filter(|_| crate::paths::leaves(path).is_none()).map(str::to_owned)
}

/// The command of the tests, and their names as it prints them.
struct Runner {
    command: String,
    format: Option<&'static str>,
    fail: Vec<String>,
    pass: Vec<String>,
    /// The number of tests that must still pass and have no name.
    lost: usize,
}

fn runner(
    repo: &str,
    fail: &[String],
    pass: &[String],
    files: &[Changed],
    choices: &Choices,
) -> Result<Runner, Refused<&'static str>> {
    let all = || fail.iter().chain(pass);
    if let Some(command) = &choices.test {
        let (fail, pass) = (fail.to_vec(), pass.to_vec());
        return Ok(Runner { command: command.clone(), format: None, fail, pass, lost: 0 });
    }
    if all().all(|name| name.contains("::")) {
        let paths: BTreeSet<String> = all().filter_map(|name| Some(shell_word(name.split_once("::")?.0))).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        let command = format!(
            "PYTHONPATH={FOLDER}${{PYTHONPATH:+:$PYTHONPATH}} python -m pytest -p {XFAIL_MODULE} -rA -p no:cacheprovider {}",
            paths.join(" ")
        );
        return Ok(Runner { command, format: Some("pytest"), fail: fail.to_vec(), pass: pass.to_vec(), lost: 0 });
    }
    if repo == "django/django" {
        let ids: Option<Vec<String>> = fail.iter().map(|name| unittest(name)).collect();
        let ids = ids.ok_or(("FAIL_TO_PASS", "a name is a description, which no runner prints".to_owned()))?;
        let still: Vec<String> = pass.iter().filter_map(|name| unittest(name)).collect();
        let lost = pass.len() - still.len();
        let modules: BTreeSet<String> = files
            .iter()
            .filter(|file| !file.is_gone)
            .filter_map(|file| Some(file.path.strip_prefix("tests/")?.strip_suffix(".py")?.replace('/', ".")))
            .collect();
        let modules: Vec<String> = modules.iter().map(|module| shell_word(module)).collect();
        if modules.is_empty() {
            return Err(("test_patch", "it changes no module of tests".to_owned()));
        }
        let command =
            format!("python tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 {}", modules.join(" "));
        return Ok(Runner { command, format: Some("unittest"), fail: ids, pass: still, lost });
    }
    let key = if fail.iter().all(|name| name.contains("::")) { "PASS_TO_PASS" } else { "FAIL_TO_PASS" };
    Err((key, "the names do not tell the command of the tests; name it with --test".to_owned()))
}

/// Returns the id of a test that is written as `test_name (module.Class)`.
fn unittest(name: &str) -> Option<String> {
    let (test, class) = name.strip_suffix(')')?.split_once(" (")?;
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    (is_name(test) && is_name(class)).then(|| match class.ends_with(&format!(".{test}")) {
        true => class.to_owned(),
        false => format!("{class}.{test}"),
    })
}

//! Commands for the reader of a report: show a trial, or run it again.

use std::path::Path;

use super::text::shell_word_for_terminal;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;

/// The maximum number of runs that are followed from a derived run to its source.
const MAX_DERIVED_RUNS: usize = 100;

/// Returns the run as an argument of a command: its id if it is in the default folder, else its path.
pub fn run_word(run: &RunRecord, folder: &Path) -> String {
    word_of(&run.run, folder)
}

fn word_of(id: &str, folder: &Path) -> String {
    let usual = Path::new(".evals/runs").join(id);
    let here = folder.strip_prefix("./").unwrap_or(folder) == usual;
    shell_word_for_terminal(&if here { id.to_owned() } else { path_word(&folder.to_string_lossy()) })
}

/// Returns the run that `evals run --resume` continues, as an argument of a command: the run itself or, for a run that
/// `evals grade` made, its source. Returns `None` for graded traces, which have no source.
pub fn to_resume(run: &RunRecord, folder: &Path) -> Option<String> {
    if !run.graded {
        return Some(run_word(run, folder));
    }
    let runs = folder.parent().unwrap_or(Path::new(""));
    let mut source = run.derived_from.clone()?;
    for _ in 0..MAX_DERIVED_RUNS {
        // The source may itself have been made by `evals grade`.
        let record = RunFolder::open(&runs.join(&source)).record_to_read().ok().filter(|record| record.graded);
        let Some(from) = record.and_then(|record| record.derived_from) else { break };
        source = from;
    }
    let place = runs.join(&source);
    // A derived run may lie in another folder than its source, which is then looked for in the default one.
    Some(if place.is_dir() { word_of(&source, &place) } else { shell_word_for_terminal(&source) })
}

/// Returns the command that shows a trial's trace.
pub fn show(run: &RunRecord, folder: &Path, result: &TrialResult) -> String {
    let trial = result.id().to_string();
    // Without `--`, the name of the trial would be read as an option.
    let end_of_options = if trial.starts_with('-') { "-- " } else { "" };
    format!("evals show {} {end_of_options}{}", run_word(run, folder), shell_word_for_terminal(&trial))
}

/// Returns the command that runs a trial's cell again, once.
pub fn again(run: &RunRecord, result: &TrialResult) -> String {
    let mut words = vec!["evals".to_owned(), "run".to_owned()];
    if let Some(case) = run.case(&result.case) {
        words.push(path_word(&case_path(&case.path, &case.id)));
    }
    if let Some(experiment) = &run.experiment {
        // All arms run again: what one of them is follows from the experiment alone.
        if let Some(file) = &experiment.file {
            words.extend(option("--experiment", path_word(&from_here(file).to_string_lossy())));
        }
        for variant in &experiment.variants {
            words.extend(option("--variant", variant.clone()));
        }
    }
    let of_command_line = run.experiment.as_ref().is_none_or(|experiment| experiment.harness.is_some());
    let origin = run.harnesses.iter().find(|harness| harness.name == result.harness).map(|harness| &*harness.origin);
    if of_command_line {
        words.extend(option("--harness", harness_word(&result.harness, origin)));
    }
    if let Some(model) = asked_model(run, result).filter(|_| run.experiment.is_none()) {
        // A model with a `=` in its name would be parsed as HARNESS=MODEL.
        let word = if model.contains('=') { format!("{}={model}", result.harness) } else { model };
        words.extend(option("--model", word));
    }
    words.extend(option("--case", globset::escape(&result.case)));
    words.extend(option("--trials", "1".to_owned()));
    if let Some(policy) = &run.options.interaction {
        words.extend(option("--interaction", policy.clone()));
    }
    for limit in &run.options.limits {
        words.extend(option("--limit", limit.clone()));
    }
    if let Some(sandbox) = run.options.sandbox {
        words.extend(option("--sandbox", sandbox.word().to_owned()));
    }
    if let Some(mode) = run.options.gateway {
        words.extend(option("--gateway", mode.word().to_owned()));
    }
    if let Some(enforce) = run.options.enforce_model {
        words.extend(option("--enforce-model", enforce.word().to_owned()));
    }
    words.iter().map(|word| shell_word_for_terminal(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the words of an option. A value that begins with `-` would be read as another option, so it follows a `=`.
fn option(name: &str, value: String) -> Vec<String> {
    if value.starts_with('-') { vec![format!("{name}={value}")] } else { vec![name.to_owned(), value] }
}

/// Returns a path that is not read as an option.
fn path_word(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

fn asked_model(run: &RunRecord, result: &TrialResult) -> Option<String> {
    // All trials of a column without an experiment have the same model, and the plan begins with one of each column.
    let planned = run.trials.iter().find(|trial| trial.harness == result.harness && trial.arm == result.arm);
    // The model in the result may be the manifest's default, which is used in any case.
    planned.map_or_else(|| result.model.requested.clone(), |trial| trial.model.clone())
}

/// Returns a manifest from the default folders by its name, and any other by its path.
fn harness_word(name: &str, origin: Option<&str>) -> String {
    let path = origin.filter(|origin| [".yaml", ".yml"].iter().any(|end| origin.ends_with(end)));
    match path {
        Some(path) if Path::new(path).parent() != Some(Path::new("harnesses")) => path.to_owned(),
        _ => name.to_owned(),
    }
}

/// Returns the path that selects the case under the same id: its file or, if the file alone gives another id,
/// the root that its id is relative to.
fn case_path(file: &Path, id: &str) -> String {
    let root = id.contains('/').then(|| root_of(file, id)).flatten();
    let path = match root {
        Some(root) if !is_known_root(root) => root,
        _ => file,
    };
    let path = from_here(path);
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// Returns a path relative to the working directory if possible.
fn from_here(path: &Path) -> &Path {
    let here = std::env::current_dir().ok();
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// Returns the part of a case's path before its id, if the path ends with the id.
fn root_of<'a>(file: &'a Path, id: &str) -> Option<&'a Path> {
    if !file.with_extension("").ends_with(id) {
        return None;
    }
    file.ancestors().nth(Path::new(id).components().count())
}

/// Returns true if ids are relative to this folder regardless of the command line.
fn is_known_root(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "cases") || folder.join("suite.yaml").is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_named_so_that_its_id_stays() {
        assert_eq!(case_path(Path::new("cases/fixing/a.yaml"), "fixing/a"), "cases/fixing/a.yaml");
        assert_eq!(case_path(Path::new("mine/fixing/a.yaml"), "fixing/a"), "mine");
        assert_eq!(case_path(Path::new("fixing/a.yaml"), "fixing/a"), ".");
        assert_eq!(case_path(Path::new("mine/a.yaml"), "a"), "mine/a.yaml");
        assert_eq!(case_path(Path::new("mine/a.yaml"), "own/id"), "mine/a.yaml");
    }

    #[test]
    fn values_that_begin_with_a_dash_are_no_options() {
        assert_eq!(option("--case", "-dash".to_owned()), ["--case=-dash"]);
        assert_eq!(option("--case", "a-b".to_owned()), ["--case", "a-b"]);
        assert_eq!((path_word("-runs/1"), path_word("runs/-1")), ("./-runs/1".to_owned(), "runs/-1".to_owned()));
    }

    #[test]
    fn a_harness_is_named_as_it_was_found() {
        assert_eq!(harness_word("demo", Some("built in")), "demo");
        assert_eq!(harness_word("mine", Some("harnesses/mine.yaml")), "mine");
        assert_eq!(harness_word("mine", Some("../other/mine.yaml")), "../other/mine.yaml");
        assert_eq!(harness_word("mine", None), "mine");
    }
}

//! `evals lint-skill`: checks skills by the Agent Skills specification, and prints every problem with its place.

use std::io::{self, Write};
use std::path::PathBuf;

use miette::Severity;
use serde_json::{Value, json};

use super::list::OutputFormat;
use super::output::{self, Content};
use super::{CliError, UNREADABLE, errors, terminal};
use crate::skill::folders::{self, Linted};
use crate::text::plural;

/// Exit code if a skill has errors.
const HAS_ERRORS: u8 = 1;

#[derive(Debug, clap::Args)]
pub struct LintSkillArgs {
    /// Skill folders, or folders of skill folders
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run(args: &LintSkillArgs) -> Result<u8, CliError> {
    let mut skills: Vec<Linted> = Vec::new();
    let mut unreadable: Vec<(PathBuf, String)> = Vec::new();
    let mut left_out: Vec<PathBuf> = Vec::new();
    for path in &args.folders {
        match folders::find(path) {
            Err(error) => unreadable.push((path.clone(), error)),
            Ok(found) => {
                unreadable.extend(found.unreadable);
                left_out.extend(found.left_out);
                for folder in found.skills {
                    if skills.iter().any(|skill| skill.folder == folder) {
                        continue;
                    }
                    match folders::lint(&folder) {
                        Ok(linted) => skills.push(linted),
                        Err(error) => unreadable.push((folder, error)),
                    }
                }
            }
        }
    }
    folders::compare_names(&mut skills);
    super::import::ignore_closed_pipe(match args.format {
        // The errors below say all if no folder could be read.
        OutputFormat::Table if skills.is_empty() && !unreadable.is_empty() => Ok(()),
        OutputFormat::Table => table(&skills),
        OutputFormat::Json => as_json(&skills, &unreadable, &left_out),
    })?;
    for folder in &left_out {
        let folder = folder.display();
        terminal::note(format_args!(
            "note: {folder} was not searched, and perhaps others were not; name it to search it for skills"
        ));
    }
    for (_, error) in &unreadable {
        CliError::unreadable(error).print();
    }
    let has_errors = skills.iter().any(|skill| skill.count(Severity::Error) > 0);
    Ok(match (unreadable.is_empty(), has_errors) {
        (false, _) => UNREADABLE,
        (true, true) => HAS_ERRORS,
        (true, false) => 0,
    })
}

fn counts(skills: &[Linted]) -> (usize, usize) {
    let sum = |severity| skills.iter().map(|skill| skill.count(severity)).sum();
    (sum(Severity::Error), sum(Severity::Warning))
}

fn table(skills: &[Linted]) -> io::Result<()> {
    let colour = errors::wants_colour(&io::stdout());
    let mut out = output::stdout(Content::Text);
    for problem in skills.iter().flat_map(|skill| &skill.problems) {
        write!(out, "{}", errors::rendered(problem, colour))?;
    }
    let (errors, warnings) = counts(skills);
    let (all, errors) = (plural(skills.len() as u64, "skill"), plural(errors as u64, "error"));
    writeln!(out, "{all}: {errors}, {}", plural(warnings as u64, "warning"))?;
    out.flush()
}

fn as_json(skills: &[Linted], unreadable: &[(PathBuf, String)], left_out: &[PathBuf]) -> io::Result<()> {
    let (errors, warnings) = counts(skills);
    let of = |skill: &Linted| -> Value {
        let problems = skill.problems.iter().map(|problem| {
            let place = problem.error.place();
            json!({
                "severity": if problem.severity == Severity::Error { "error" } else { "warning" },
                "rule": problem.rule,
                "file": problem.error.path().display().to_string(),
                "line": place.map(|(line, _)| line),
                "column": place.map(|(_, column)| column),
                "text": problem.error.excerpt(),
                "message": problem.error.message(),
                "help": problem.error.way_out(),
            })
        });
        json!({
            "folder": skill.folder.display().to_string(),
            "name": skill.name,
            "errors": skill.count(Severity::Error),
            "warnings": skill.count(Severity::Warning),
            "problems": problems.collect::<Vec<_>>(),
        })
    };
    let missing = |(path, error): &(PathBuf, String)| json!({"folder": path.display().to_string(), "message": error});
    let document = json!({
        "skills": skills.iter().map(of).collect::<Vec<_>>(),
        "unreadable": unreadable.iter().map(missing).collect::<Vec<_>>(),
        "not_searched": left_out.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>(),
        "summary": {"skills": skills.len(), "errors": errors, "warnings": warnings},
    });
    let mut out = output::stdout(Content::Json);
    writeln!(out, "{document:#}")?;
    out.flush()
}

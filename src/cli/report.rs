//! `evals report`, and `--reporter` of the commands that judge: writes reports to their destinations.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::output::{self, Content};
use super::{BROKEN_OFF, CliError, RunsFolder, complete, named_run, terminal};
use crate::report::decisions::About;
use crate::report::format::{self, Format, ReporterArg};
use crate::report::page::markdown;
use crate::report::text::Look;
use crate::report::{Report, RunContext, benchmark, escape, github, html, run_page};
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::run::user_file::{is_regular, leads_to, write_named};

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Run: ID, ID prefix, label, path, or `latest`
    #[arg(default_value = "latest", add = complete::runs())]
    run: String,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Output file (default: standard output; for `benchmark` BENCHMARK.md, in which one block is written)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &ReportArgs) -> Result<u8, CliError> {
    let path = args.output.clone().filter(|path| path != Path::new("-"));
    let to_output = args.output.is_some() && path.is_none();
    let reporter = ReporterArg { format: args.format, path };
    let folder = named_run::by_name(&args.folder.runs, &args.run)?;
    let record = Arc::new(folder.record_to_read()?);
    if let Some(folder) = reporter.path.as_deref().filter(|path| path.is_dir()) {
        return Err(CliError::unreadable(format!("{} is a folder; name a file in it", folder.display())));
    }
    check_places(std::slice::from_ref(&reporter), record.label.as_deref())?;
    let report = match reporter.format {
        // The page for a browser shows everything.
        Format::Html => {
            let going_on = folder.is_in_use();
            of_stored(&folder, Arc::clone(&record), folder.results(&record)?, going_on)?
        }
        _ => Report::of_folder(&folder, record, beside(&folder)?)?,
    };
    for place in &report.note_facts.doubted {
        terminal::tell_if_not_as_judged(&*report.results.get(*place)?);
    }
    if to_output && reporter.format == Format::Benchmark {
        print(&report, Format::Benchmark)?;
    } else {
        write_all(&report, &[reporter], None)?;
    }
    Ok(0)
}

/// Makes the report of a stored run, which may be going on, from its results.
///
/// # Errors
/// Returns an error if the stored comparison with its snapshots cannot be read.
pub fn of_stored(
    folder: &RunFolder,
    record: Arc<RunRecord>,
    results: Vec<TrialResult>,
    going_on: bool,
) -> Result<Report, CliError> {
    Ok(Report::of_stored(folder, record, results, beside(folder)?, going_on))
}

/// Returns the data of a stored run besides its results.
fn beside(folder: &RunFolder) -> Result<RunContext, CliError> {
    Ok(RunContext { snapshots: super::snapshot::kept(folder)?, root: repository(), ..RunContext::default() })
}

/// Refuses reports that would overwrite each other or cannot be written, so that hours of work do not end with
/// this error.
pub fn check_places(reporters: &[ReporterArg], label: Option<&str>) -> Result<(), CliError> {
    for (number, reporter) in reporters.iter().enumerate() {
        let word = reporter.format.word();
        let Some(path) = place_of(reporter) else {
            let beside =
                |other: &&ReporterArg| place_of(other).is_none() && fills_output(other) && fills_output(reporter);
            if let Some(other) = reporters.iter().take(number).find(beside) {
                return Err(CliError::unreadable(format!(
                    "two reports would go to standard output, {} and {word}; give one of them a file: {word}=FILE",
                    other.format.word()
                )));
            }
            continue;
        };
        let leads = leads_to(path);
        if reporters.iter().take(number).filter_map(place_of).any(|other| leads_to(other) == leads) {
            return Err(CliError::unreadable(format!("two reports would be written to {}", path.display())));
        }
        if path.is_dir() {
            let path = path.display();
            return Err(CliError::unreadable(format!("{path} is a folder; write {word}=FILE for a file in it")));
        }
        make_place(path)?;
        if reporter.format == Format::Benchmark {
            with_block(path, label, "")?;
        }
    }
    Ok(())
}

/// Returns true if a report needs the whole output; annotations can be mixed with other lines.
fn fills_output(reporter: &ReporterArg) -> bool {
    reporter.format != Format::Github
}

/// Returns the file of a report, or `None` for standard output.
fn place_of(reporter: &ReporterArg) -> Option<&Path> {
    let default = (reporter.format == Format::Benchmark).then(|| Path::new(benchmark::FILE));
    reporter.path.as_deref().or(default)
}

/// Makes the folder of a report.
pub fn make_place(path: &Path) -> Result<(), CliError> {
    let leads = leads_to(path);
    let folder = leads.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)
        .map_err(|error| CliError::unreadable(format!("no report can be written to {}: {error}", path.display())))
}

/// Prints the results of a run's gates.
pub fn tell_gates(report: &Report) {
    for gate in report.decisions.iter().filter(|decision| decision.about == About::Gate) {
        terminal::note(format_args!("{}", gate.line));
    }
}

/// Writes the requested reports, and `otherwise` if none of them uses standard output. A report that cannot be written
/// does not keep the others from being written.
pub fn write_all(report: &Report, reporters: &[ReporterArg], otherwise: Option<Format>) -> Result<(), CliError> {
    let annotated = reporters.iter().any(|reporter| reporter.format == Format::Github && reporter.path.is_none());
    let show = |format| if annotated { fenced(report, format) } else { print(report, format) };
    let mut written = Ok(());
    for reporter in reporters {
        let this = match place_of(reporter) {
            Some(path) => write_to(report, reporter.format, path),
            None if fills_output(reporter) => show(reporter.format),
            None => print(report, reporter.format),
        };
        written = both(written, this);
        if reporter.format == Format::Github {
            add_summary(report);
        }
    }
    let filled = reporters.iter().any(|reporter| place_of(reporter).is_none() && fills_output(reporter));
    both(written, otherwise.filter(|_| !filled).map_or(Ok(()), show))
}

/// Writes a report to its file.
fn write_to(report: &Report, format: Format, path: &Path) -> Result<(), CliError> {
    match format {
        Format::Benchmark => into_block(report, path),
        Format::Html => {
            let report = report.whole()?;
            let compared = super::compare::of_report(report);
            Ok(write_named(path, |out| html::write(report, &compared, out))?)
        }
        format => Ok(write_named(path, |out| format::write(format, report, &Look::PLAIN, out))?),
    }
}

/// Returns the errors of two steps as one.
pub fn both(first: Result<(), CliError>, second: Result<(), CliError>) -> Result<(), CliError> {
    match (first, second) {
        (Err(first), Err(second)) => Err(first.and(second)),
        (first, second) => first.and(second),
    }
}

/// Adds to an error of the engine the files of the reports, none of which was written: a file of such a name is older than
/// the run.
pub fn none_written(error: CliError, reporters: &[ReporterArg]) -> CliError {
    let files: Vec<String> = reporters.iter().filter_map(place_of).map(|path| path.display().to_string()).collect();
    if files.is_empty() || error.code() != BROKEN_OFF {
        return error;
    }
    let message = format!("no report was written to {}; a file of this name is older than the run", files.join(", "));
    error.and(CliError::of_the_engine(message))
}

fn print(report: &Report, format: Format) -> Result<(), CliError> {
    let look = terminal::stdout_look();
    if format == Format::Github {
        // The lines are commands, and agents' text in them is escaped.
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = format::write(format, report, &look, &mut out).and_then(|()| out.flush());
        return super::import::ignore_closed_pipe(written);
    }
    if format == Format::Html {
        // The page is a file for a browser, and its text is escaped.
        let report = report.whole()?;
        let mut out = io::BufWriter::new(io::stdout().lock());
        let written = html::write(report, &super::compare::of_report(report), &mut out).and_then(|()| out.flush());
        return super::import::ignore_closed_pipe(written);
    }
    let mut out = output::stdout(Content::json(matches!(format, Format::Json | Format::Jsonl)));
    let written = format::write(format, report, &look, &mut out).and_then(|()| out.flush());
    super::import::ignore_closed_pipe(written)
}

/// Writes a report in whose lines the service reads no commands, so that an agent's text cannot be one.
fn fenced(report: &Report, format: Format) -> Result<(), CliError> {
    let token = format!("evals-{:016x}", RandomState::new().hash_one(std::process::id()));
    let say = |line: String| super::import::ignore_closed_pipe(writeln!(io::stdout(), "{line}"));
    say(format!("::stop-commands::{token}"))?;
    let written = print(report, format);
    say(format!("::{token}::"))?;
    written
}

/// Returns the folder that GitHub's paths are relative to.
pub fn repository() -> Option<PathBuf> {
    let workspace = crate::own_environment::var("GITHUB_WORKSPACE").filter(|path| !path.is_empty())?;
    fs::canonicalize(workspace).ok()
}

/// Adds the report to the step summary of GitHub Actions, if this is a step. A failure does not affect the run.
fn add_summary(report: &Report) {
    let Some(path) = crate::own_environment::var("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
    let path = PathBuf::from(path);
    let added: io::Result<bool> = (|| {
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        // Earlier text of the step counts, and a summary that is too long is not shown at all.
        let room = (github::SUMMARY as u64).saturating_sub(file.metadata()?.len());
        let room = usize::try_from(room).unwrap_or(github::SUMMARY);
        let text = markdown::text(&run_page::page(report, &escape::LOOK)?, room);
        file.write_all(text.as_bytes())?;
        Ok(!text.is_empty())
    })();
    let path = path.display();
    match added {
        Ok(true) => {}
        Ok(false) => terminal::note(format_args!(
            "note: the report is not in the summary of the step, {path}: earlier text leaves no room in its {} bytes",
            github::SUMMARY
        )),
        Err(error) => {
            terminal::note(format_args!("note: the summary of the step, {path}, could not be written: {error}"));
        }
    }
}

/// Writes a benchmark between its marks in a file.
fn into_block(report: &Report, path: &Path) -> Result<(), CliError> {
    let text = with_block(path, report.run.label.as_deref(), &benchmark::block(report))?;
    write_named(path, |out| out.write_all(text.as_bytes()))?;
    terminal::note(format_args!("note: wrote the benchmark into {}", path.display()));
    Ok(())
}

/// Returns the text of a file with a block between its marks. If the file does not exist, it starts with an
/// empty block. A pipe or a device is never read, and gets only the block.
fn with_block(path: &Path, label: Option<&str>, block: &str) -> Result<String, CliError> {
    if !is_regular(path) {
        return Ok(block.to_owned());
    }
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => benchmark::fresh_file(),
        Err(error) => return Err(CliError::unreadable(format!("could not read {}: {error}", path.display()))),
    };
    benchmark::replaced(&text, label, block)
        .map_err(|error| CliError::unreadable(format!("no benchmark can be written to {}: {error}", path.display())))
}

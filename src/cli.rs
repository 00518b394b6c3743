//! The command line: its commands, and the file that implements each. Errors become messages and exit codes
//! here.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

use crate::demo::{self, DemoArgs};
use crate::process::{descriptors, file_size};
use crate::{own_environment, project, supervisor};

mod arguments;
mod ask;
mod baseline;
mod calibrate;
mod case;
mod check;
mod compare;
mod complete;
mod convert;
mod output;
mod engine;
mod errors;
mod export;
mod gateway;
mod grade;
mod harness;
mod history;
mod import;
mod init;
mod inputs;
mod beside_cases;
mod judges;
mod left_above;
mod lint_skill;
mod list;
mod merge;
mod mine;
mod named_run;
mod pager;
mod present_digests;
mod prune;
mod report;
mod run;
mod schema;
mod show;
mod snapshot;
mod stop;
mod terminal;
mod view;

use errors::CliError;

/// Exit code if the command line, a case, a manifest or a run could not be read. Nothing was started.
const UNREADABLE: u8 = 2;

/// Exit code if the engine itself failed: the disk is full, or the run folder is missing.
const BROKEN_OFF: u8 = 4;

/// Evaluates coding agents: runs cases on them and grades the traces and workspaces they leave.
#[derive(Debug, Parser)]
#[command(name = "evals", version, arg_required_else_help = true, max_term_width = 110)]
struct Evals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run cases on harnesses and grade the results
    Run(Box<run::RunArgs>),
    /// Grade a stored run, or stored traces, again, without starting agents
    Grade(grade::GradeArgs),
    /// Compare two runs, the models of one run, or a run with its baseline
    Compare(Box<compare::CompareArgs>),
    /// Store a run's scores as the baseline of its suite, or print the baseline
    Baseline(baseline::BaselineArgs),
    /// Convert a recorded session, or one that an agent kept on disk, to a trace on standard output
    Import(import::ImportArgs),
    /// Make audited cases from the history of a git repository
    Mine(Box<mine::MineArgs>),
    /// Write the draft of a case
    Case(case::CaseArgs),
    /// Convert cases of other evaluation tools
    Convert(convert::ConvertArgs),
    /// Write a run in the format of another tool
    Export(export::ExportArgs),
    /// Print the report of a run
    Report(report::ReportArgs),
    /// Print the trace of a trial
    Show(show::ShowArgs),
    /// Serve the runs as HTML on this machine, and open a browser
    View(view::ViewArgs),
    /// Compare traces with accepted snapshots, and accept or reject the differences
    Snapshot(snapshot::SnapshotArgs),
    /// List cases, harnesses, graders, policies or runs
    List(list::ListArgs),
    /// Validate cases, manifests and graders
    Check(check::CheckArgs),
    /// Check SKILL.md files by the Agent Skills specification
    LintSkill(lint_skill::LintSkillArgs),
    /// Compare the judge models of a rubric with labels by people
    Calibrate(calibrate::CalibrateArgs),
    /// Print the scores, costs and times of cases over all runs
    History(history::HistoryArgs),
    /// Merge the shards of a run (`run --shard`) into one run
    Merge(merge::MergeArgs),
    /// Remove old runs
    Prune(prune::PruneArgs),
    /// List, show, check or import harnesses
    Harness(harness::HarnessArgs),
    /// Record, replay or script the model requests of a command
    Gateway(gateway::GatewayArgs),
    /// Print a JSON Schema, for editors
    Schema(schema::SchemaArgs),
    /// Create an example suite that runs without keys
    Init(init::InitArgs),
    /// Print completions for a shell
    Completions {
        /// Shell of the completions
        shell: clap_complete::Shell,
        /// Complete also the names of harnesses, runs, cases, tags and models: the shell asks evals for them
        #[arg(long)]
        names: bool,
    },
    /// Write the manual pages of all commands to a folder
    Man {
        /// Folder for the pages, such as ~/.local/share/man/man1; it is created if it is missing
        folder: PathBuf,
    },
    /// The built-in demo agent
    #[command(hide = true)]
    DemoAgent(DemoArgs),
}

impl Command {
    /// Returns true if the command starts external programs, or judges that need environment variables beside
    /// the agent's.
    fn starts_programs(&self) -> bool {
        match self {
            Command::Run(_)
            | Command::Mine(_)
            | Command::Case(_)
            | Command::Grade(_)
            | Command::Check(_)
            | Command::Harness(_)
            | Command::Calibrate(_) => true,
            // The command of `gateway record` and `replay` is the user's own, and gets the user's environment.
            Command::Gateway(_)
            | Command::Compare(_)
            | Command::Baseline(_)
            | Command::Import(_)
            | Command::Convert(_)
            | Command::Export(_)
            | Command::Report(_)
            | Command::Show(_)
            | Command::View(_)
            | Command::Snapshot(_)
            | Command::List(_)
            | Command::LintSkill(_)
            | Command::History(_)
            | Command::Merge(_)
            | Command::Prune(_)
            | Command::Schema(_)
            | Command::Init(_)
            | Command::Completions { .. }
            | Command::Man { .. }
            | Command::DemoAgent(_) => false,
        }
    }
}

/// The folder of the runs, for commands that read runs.
#[derive(Debug, clap::Args)]
struct RunsFolder {
    /// Folder of the runs
    #[arg(long = "out", value_name = "DIR", default_value_os_t = default_runs())]
    runs: PathBuf,
}

/// Parses a label of a run.
fn label(text: &str) -> Result<String, &'static str> {
    match text {
        "latest" => Err("`latest` names the newest run; write another label"),
        text if text.trim() != text || text.is_empty() => Err("a label is not empty, and has no space at its ends"),
        text if text.contains(char::is_control) => Err("a label has no control characters"),
        text => Ok(text.to_owned()),
    }
}

/// Returns the default folder of the runs: that of the project.
fn default_runs() -> PathBuf {
    project::path(".evals/runs")
}

/// Returns the arguments of a run as recorded in `run.json`, or `None` if another command or another version
/// made it.
fn arguments_of_run(argv: &[String]) -> Option<run::RunArgs> {
    let line = std::iter::once("evals").chain(argv.iter().map(String::as_str));
    match Evals::try_parse_from(line).ok()?.command {
        Command::Run(args) => Some(*args),
        _ => None,
    }
}

/// Writes a manual page for `evals` and for each of its commands.
fn man(folder: &std::path::Path) -> Result<u8, CliError> {
    let cannot = |error| CliError::unreadable(format!("the folder {} could not be made: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(cannot)?;
    clap_mangen::generate_to(<Evals as clap::CommandFactory>::command(), folder)?;
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_page = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("evals"));
        if is_page && path.extension().is_some_and(|extension| extension == "1") {
            let page = std::fs::read_to_string(&path)?;
            std::fs::write(&path, without_hyphens(&page))?;
        }
    }
    Ok(0)
}

/// Returns a manual page in which no word is hyphenated: the name of an option must stay whole.
fn without_hyphens(page: &str) -> String {
    page.split_inclusive('\n')
        .map(|line| if line.starts_with(".TH ") { format!("{line}.nh\n") } else { line.to_owned() })
        .collect()
}

fn not_written(error: &io::Error) -> CliError {
    CliError::of_the_engine(format!("could not write to standard output: {error}"))
}

/// Prints help, the version, or what is wrong with the arguments, and returns the exit code: 0, or 2 for arguments that are
/// wrong.
fn explain(explained: &clap::Error) -> ExitCode {
    match explained.print() {
        Err(error) if !explained.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            let error = not_written(&error);
            error.print();
            ExitCode::from(error.code())
        }
        _ => ExitCode::from(u8::try_from(explained.exit_code()).unwrap_or(2)),
    }
}

/// Runs `evals`.
pub fn main() -> ExitCode {
    descriptors::close_on_exec();
    if std::env::args_os().nth(1).is_some_and(|word| word == supervisor::WORD) {
        return supervisor::main(std::env::args_os().skip(2));
    }
    // If a shell asks for the names that could come next, this prints them and ends `evals`.
    clap_complete::CompleteEnv::with_factory(<Evals as clap::CommandFactory>::command).var(complete::ASKS).complete();
    let command = arguments::with_numbers(<Evals as clap::CommandFactory>::command());
    let parsed = arguments::parsed(command, std::env::args_os());
    let parsed = parsed.and_then(|matches| Evals::from_arg_matches(&matches));
    let command = match parsed {
        Ok(parsed) => parsed.command,
        Err(error) => return explain(&arguments::explained(error)),
    };
    if !matches!(command, Command::DemoAgent(_)) {
        // Without this handler, the system would end `evals` when a file becomes too large.
        let _ = file_size::survive_limit();
    }
    if command.starts_programs() {
        own_environment::withdraw();
        descriptors::raise_limit();
    }
    let result = match command {
        Command::DemoAgent(args) => return demo::run(&args),
        Command::Run(args) => run::run(*args),
        Command::Grade(args) => grade::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Baseline(args) => baseline::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Mine(args) => mine::run(&args),
        Command::Case(args) => case::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Show(args) => show::run(&args),
        Command::View(args) => view::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::List(args) => list::run(&args),
        Command::Check(args) => check::run(&args),
        Command::LintSkill(args) => lint_skill::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::History(args) => history::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Harness(args) => harness::run(args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Completions { shell, names: true } => complete::script(shell),
        Command::Completions { shell, names: false } => {
            let mut command = <Evals as clap::CommandFactory>::command();
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "evals", &mut text);
            let mut out = output::stdout(output::Content::Text);
            let written = out.write_all(&text).and_then(|()| out.flush());
            import::ignore_closed_pipe(written).map(|()| 0)
        }
        Command::Man { folder } => man(&folder),
    };
    let result = result.and_then(|code| output::not_written().map_or(Ok(code), |error| Err(not_written(&error))));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error.print();
            ExitCode::from(error.code())
        }
    }
}

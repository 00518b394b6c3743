//! The command line: what can be typed, and which file does it. Errors become messages and exit codes here.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::demo::{self, DemoArgs};
use crate::process::descriptors;
use crate::{own_environment, supervisor};

mod ask;
mod baseline;
mod calibrate;
mod check;
mod compare;
mod door;
mod engine;
mod errors;
mod gateway;
mod grade;
mod harness;
mod import;
mod init;
mod inputs;
mod inside;
mod judges;
mod list;
mod prune;
mod report;
mod run;
mod schema;
mod show;
mod snapshot;
mod stop;
mod terminal;

use errors::CliError;

/// Exit code where the command, a case, a manifest or a run could not be read; nothing was started.
const UNREADABLE: u8 = 2;

/// Exit code if the engine itself could not go on: the disk is full, or the run folder is gone.
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
    /// Run cases on harnesses and grade what they did
    Run(Box<run::RunArgs>),
    /// Grade a stored run, or stored traces, again; starts no agent
    Grade(grade::GradeArgs),
    /// Compare two runs, the models of one, or a run with its baseline
    Compare(Box<compare::CompareArgs>),
    /// Keep a run's scores as the baseline of its suite, or show it
    Baseline(baseline::BaselineArgs),
    /// Turn a recorded session into a Trace, on standard output
    Import(import::ImportArgs),
    /// Print the report of a run
    Report(report::ReportArgs),
    /// Print the trace of a trial, for reading
    Show(show::ShowArgs),
    /// Compare what agents did with what is accepted, and accept it
    Snapshot(snapshot::SnapshotArgs),
    /// List cases, harnesses, graders or runs
    List(list::ListArgs),
    /// Validate cases, manifests and graders
    Check(check::CheckArgs),
    /// Hold the judges of a rubric against labels of people
    Calibrate(calibrate::CalibrateArgs),
    /// Remove old runs
    Prune(prune::PruneArgs),
    /// List harnesses, or show one
    Harness(harness::HarnessArgs),
    /// Serve a model on loopback: play a script
    Gateway(gateway::GatewayArgs),
    /// Print a JSON Schema, for editors
    Schema(schema::SchemaArgs),
    /// Make a first suite that runs at once
    Init(init::InitArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The built-in demo agent
    #[command(hide = true)]
    DemoAgent(DemoArgs),
}

impl Command {
    /// Whether it starts programs of others, or judges that need what the user keeps in the environment beside them.
    fn starts_programs(&self) -> bool {
        matches!(
            self,
            Command::Run(_) | Command::Grade(_) | Command::Check(_) | Command::Harness(_) | Command::Calibrate(_)
        )
    }
}

/// Where runs are kept, for commands that look for one.
#[derive(Debug, clap::Args)]
struct RunsFolder {
    /// Folder of the runs
    #[arg(long = "out", value_name = "DIR", default_value = DEFAULT_RUNS)]
    runs: PathBuf,
}

/// Where runs are kept if nobody says otherwise.
const DEFAULT_RUNS: &str = ".evals/runs";

/// The arguments of a run, as they stand in `run.json`; nothing where another command made it, or another version did.
fn arguments_of_run(argv: &[String]) -> Option<run::RunArgs> {
    let line = std::iter::once("evals").chain(argv.iter().map(String::as_str));
    match Evals::try_parse_from(line).ok()?.command {
        Command::Run(args) => Some(*args),
        _ => None,
    }
}

/// Runs the program with the arguments it was given.
pub fn main() -> ExitCode {
    descriptors::close_on_exec();
    if std::env::args_os().nth(1).is_some_and(|word| word == supervisor::WORD) {
        return supervisor::main(std::env::args_os().skip(2));
    }
    // clap itself exits with 2 for what it cannot read, and with 0 for help.
    let command = Evals::parse().command;
    if command.starts_programs() {
        own_environment::withdraw();
        descriptors::raise_limit();
    }
    let done = match command {
        Command::DemoAgent(args) => return demo::run(&args),
        Command::Run(args) => run::run(*args),
        Command::Grade(args) => grade::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Baseline(args) => baseline::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::List(args) => list::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Prune(args) => prune::run(&args),
        Command::Harness(args) => harness::run(args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Completions { shell } => {
            let mut command = <Evals as clap::CommandFactory>::command();
            clap_complete::generate(shell, &mut command, "evals", &mut std::io::stdout());
            Ok(0)
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            error.print();
            ExitCode::from(error.code())
        }
    }
}

//! `evals gateway`: the model gateway by hand, for any command.

use std::path::{Path, PathBuf};

use tokio::signal::unix::{SignalKind, signal};

use super::output::{self, Content};
use super::{CliError, engine};
use crate::gateway::relay;
use crate::gateway::server::Timing;

mod around_command;
mod conversation;
mod script;

#[derive(Debug, clap::Args)]
pub struct GatewayArgs {
    #[command(subcommand)]
    command: GatewayCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GatewayCommand {
    /// Run a command, forward its requests to models to the services, and record them in a cassette
    Record(RecordArgs),
    /// Run a command and play a cassette to it; nothing leaves the machine through the gateway
    Replay(ReplayArgs),
    /// Play a script instead of a model, over the APIs of Anthropic, OpenAI and Gemini
    Script(script::ScriptArgs),
    /// Print a cassette or a log of exchanges as a conversation
    Show(ShowArgs),
    /// Run a command with a loopback port that is connected to a socket
    #[command(hide = true)]
    Relay(RelayArgs),
}

#[derive(Debug, clap::Args)]
struct RecordArgs {
    /// Cassette to write; the log llm.jsonl lies beside it
    #[arg(short, long, value_name = "FILE", default_value = "cassette.jsonl")]
    output: PathBuf,
    /// Program and arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct ReplayArgs {
    /// Cassette
    file: PathBuf,
    /// Pace of the answers: none, recorded, or a factor of the recorded time (default: none)
    #[arg(long, value_name = "none|recorded|FACTOR", value_parser = super::run::gateway::timing)]
    gateway_timing: Option<Timing>,
    /// Compare requests without the results of tools
    #[arg(long)]
    ignore_results: bool,
    /// Program and arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Cassette, or log (llm.jsonl)
    file: PathBuf,
}

#[derive(Debug, clap::Args)]
struct RelayArgs {
    /// Port
    #[arg(long)]
    port: u16,
    /// Socket
    #[arg(long)]
    socket: PathBuf,
    /// Program and arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub fn run(args: &GatewayArgs) -> Result<u8, CliError> {
    if let GatewayCommand::Show(args) = &args.command {
        return conversation::show(&args.file);
    }
    let runtime = engine::runtime()?;
    let code = match &args.command {
        GatewayCommand::Record(args) => runtime.block_on(around_command::record(&args.output, &args.command)),
        GatewayCommand::Replay(args) => {
            let timing = args.gateway_timing.unwrap_or_default();
            runtime.block_on(around_command::replay(&args.file, timing, args.ignore_results, &args.command))
        }
        GatewayCommand::Script(args) => runtime.block_on(script::serve(args)),
        GatewayCommand::Relay(args) => runtime.block_on(relayed(args)),
        GatewayCommand::Show(_) => Ok(0),
    };
    // A delayed answer must not keep the program running.
    runtime.shutdown_background();
    code
}

fn whole_path(folder: &Path) -> Result<String, CliError> {
    let whole = folder.canonicalize();
    let whole = whole.map_err(|error| CliError::unreadable(format!("the folder {}: {error}", folder.display())))?;
    Ok(whole.to_string_lossy().into_owned())
}

async fn relayed(args: &RelayArgs) -> Result<u8, CliError> {
    use std::os::unix::process::ExitStatusExt;
    let status = relay::run(args.port, &args.socket, &args.command)
        .await
        .map_err(|error| CliError::unreadable(format!("could not run {}: {error}", args.command.join(" "))))?;
    // If a signal ended the command, the same signal ends this process.
    if let Some(signal) = status.signal().and_then(rustix::process::Signal::from_named_raw) {
        let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
    }
    let signal = status.signal().map(|signal| 128 + signal);
    Ok(u8::try_from(status.code().or(signal).unwrap_or(1)).unwrap_or(1))
}

//! `evals gateway`: a loopback server instead of a model.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tokio::signal::unix::{SignalKind, signal};

use super::door::{self, Content};
use super::{CliError, engine};
use crate::gateway::log::LogLine;
use crate::gateway::script::Script;
use crate::gateway::{relay, server};

#[derive(Debug, clap::Args)]
pub struct GatewayArgs {
    #[command(subcommand)]
    command: GatewayCommand,
}

#[derive(Debug, clap::Subcommand)]
enum GatewayCommand {
    /// Play a script instead of a model, over the APIs of Anthropic, OpenAI and Gemini
    Script(ScriptArgs),
    /// Run a command with a loopback port that is connected to a socket
    #[command(hide = true)]
    Relay(RelayArgs),
}

#[derive(Debug, clap::Args)]
struct ScriptArgs {
    /// Script file (docs/scripted-model.md)
    file: PathBuf,
    /// Loopback port (default: a free one)
    #[arg(long, value_name = "P", default_value_t = 0)]
    port: u16,
    /// Folder that the agent works in, for tools that need absolute paths (default: as stated in its requests)
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Write each request, and the turn that was played, as a line of JSON
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Format of the printed address
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The base URL
    Text,
    /// An object with `base_url` and `port`
    Json,
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
    let runtime = engine::runtime()?;
    let code = match &args.command {
        GatewayCommand::Script(args) => runtime.block_on(script(args)),
        GatewayCommand::Relay(args) => runtime.block_on(relayed(args)),
    };
    // A delayed answer must not keep the program running.
    runtime.shutdown_background();
    code
}

async fn script(args: &ScriptArgs) -> Result<u8, CliError> {
    let script = Script::load(&args.file).map_err(CliError::all)?;
    let workspace = args.workspace.as_deref().map(whole_path).transpose()?;
    let tell = args.log.as_deref().map(log_to).transpose()?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut ended = signal(SignalKind::terminate())?;
    let options = server::Options { port: args.port, workspace, tell, ..server::Options::default() };
    let running = server::start(script, options)
        .await
        .map_err(|error| CliError::unreadable(format!("could not listen on port {}: {error}", args.port)))?;
    let mut out = door::stdout(Content::json(matches!(args.format, Format::Json)));
    let told = match args.format {
        Format::Text => writeln!(out, "{}", running.base_url()),
        Format::Json => {
            writeln!(out, "{}", serde_json::json!({"base_url": running.base_url(), "port": running.port()}))
        }
    };
    super::import::ignore_closed_pipe(told.and_then(|()| out.flush()))?;
    drop(out);
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = ended.recv() => {}
    }
    drop(running);
    Ok(0)
}

fn whole_path(folder: &Path) -> Result<String, CliError> {
    let whole = folder.canonicalize();
    let whole = whole.map_err(|error| CliError::unreadable(format!("the folder {}: {error}", folder.display())))?;
    Ok(whole.to_string_lossy().into_owned())
}

/// Writes each line to the file before the request is answered.
fn log_to(path: &Path) -> Result<server::Tell, CliError> {
    let file = std::fs::File::create(path)
        .map_err(|error| CliError::unreadable(format!("could not write the log {}: {error}", path.display())))?;
    let file = Mutex::new(BufWriter::new(file));
    Ok(Box::new(move |line: &LogLine| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // If the disk is full, the model continues to play.
        let _ = writeln!(file, "{}", line.json()).and_then(|()| file.flush());
    }))
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

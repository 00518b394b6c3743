//! `evals gateway script`: plays a script until it is interrupted.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use super::{CliError, Content, SignalKind, output, signal, whole_path};
use crate::cli::import::ignore_closed_pipe;
use crate::demo;
use crate::gateway::canonical::{Canon, Here, Rules};
use crate::gateway::guard::Guard;
use crate::gateway::log::Log;
use crate::gateway::player::Player;
use crate::gateway::script::Script;
use crate::gateway::server::{self, Options, Plays, Timing};
use crate::secrets::Masker;

#[derive(Debug, clap::Args)]
pub(super) struct ScriptArgs {
    /// Script file (docs/scripted-model.md)
    file: PathBuf,
    /// Port of 127.0.0.1; 0 means any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Folder that the agent works in, for tools that need absolute paths (default: as stated in its requests)
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Write each exchange as a line of JSON, as in llm.jsonl
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

pub(super) async fn serve(args: &ScriptArgs) -> Result<u8, CliError> {
    let script = Script::load(&args.file).map_err(|wrong| match demo::script::Script::load(&args.file) {
        Ok(_) => CliError::unreadable(format!(
            "{} is a script of the demo agent; name a script of a model (docs/scripted-model.md)",
            args.file.display()
        )),
        Err(_) => CliError::all(wrong),
    })?;
    let workspace = args.workspace.as_deref().map(whole_path).transpose()?;
    let out = args.log.as_ref().map(|path| {
        File::create(path)
            .map_err(|error| CliError::unreadable(format!("could not write the log {}: {error}", path.display())))
    });
    let out = out.transpose()?.map(|file| Box::new(BufWriter::new(file)) as Box<dyn Write + Send>);
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut ended = signal(SignalKind::terminate())?;
    let options = Options {
        api: None,
        canon: Canon::new(&Here::default(), Rules::default(), Masker::default()),
        aside: Vec::new(),
        guard: Guard::default(),
        timing: Timing::None,
        records: false,
        log: Log::new(out, super::around_command::masker()),
    };
    let bound = server::bind(args.port, None).await;
    let bound =
        bound.map_err(|error| CliError::unreadable(format!("could not listen on port {}: {error}", args.port)))?;
    let running = bound.serve(Plays::Script(Box::new(Player::new(script, workspace, Vec::new()))), options);
    let mut out = output::stdout(Content::json(matches!(args.format, Format::Json)));
    let printed = match args.format {
        Format::Text => writeln!(out, "{}", running.base_url()),
        Format::Json => {
            writeln!(out, "{}", serde_json::json!({"base_url": running.base_url(), "port": running.port()}))
        }
    };
    ignore_closed_pipe(printed.and_then(|()| out.flush()))?;
    drop(out);
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = ended.recv() => {}
    }
    running.stop().await;
    Ok(0)
}

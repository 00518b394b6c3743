//! The built-in demo agent: plays the script beside a case, so that cases run without a model or a network.
//!
//! The demo agent is an agent like any other, a separate program with a manifest. The engine has no special
//! case for it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

pub mod acp;
pub mod play;
pub mod script;
pub mod stream;
pub mod text;
pub mod tools;

use script::Script;

/// The arguments of the demo agent.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// The script to play
    #[arg(long, value_name = "FILE")]
    pub script: PathBuf,
    /// Protocol to speak
    #[arg(long, value_enum, default_value_t = Speak::Acp)]
    pub speak: Speak,
    /// Model name to report
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Turn to play, from 1, if the protocol takes only one prompt
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub turn: u64,
    /// Prompt; it does not affect the script
    // A prompt may begin with a dash: lists often do.
    #[arg(allow_hyphen_values = true)]
    pub prompt: Option<String>,
}

/// The protocols that the demo agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Speak {
    /// The Agent Client Protocol over stdio
    Acp,
    /// Lines shaped like Claude Code's stream-json
    StreamJson,
    /// The final message alone
    Text,
}

/// The name by which the demo agent introduces itself.
pub const NAME: &str = "evals-demo";

/// Plays the script on standard input and output until the session is over. Returns exit code 2 if the script is
/// unreadable.
pub fn run(args: &DemoArgs) -> ExitCode {
    let script = match Script::load(&args.script) {
        Ok(script) => script,
        Err(errors) => {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return complain(&errors.join("\n"), 2);
        }
    };
    let model = args.model.as_deref().unwrap_or(script.own_model());
    let turn = usize::try_from(args.turn - 1).ok().and_then(|turn| script.turn(turn));
    let accepted = args.model.is_none() || script.accepts(model);
    let played = match args.speak {
        Speak::StreamJson if !accepted => stream::refuse(model),
        _ if !accepted => return complain(&format_args!("the model `{model}` is not one of the script's `models`"), 1),
        Speak::Acp => acp::serve(&script, model).map(|()| ExitCode::SUCCESS),
        Speak::StreamJson => stream::play(turn, model),
        Speak::Text => text::play(turn).map(|()| ExitCode::SUCCESS),
    };
    match played {
        Ok(code) => code,
        // The client has disconnected: the session is over.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => complain(&error, 1),
    }
}

fn complain(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    // If standard error is closed, too, only the exit code reports the error.
    let _ = writeln!(io::stderr(), "{NAME}: {error}");
    ExitCode::from(code)
}

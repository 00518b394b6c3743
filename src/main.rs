//! The `evals` program: hands its arguments to the library and its answer to the shell.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use evals::demo::{self, DemoArgs};

#[derive(Parser)]
#[command(name = "evals", version)]
struct Evals {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The built-in demo agent
    #[command(hide = true)]
    DemoAgent(DemoArgs),
}

fn main() -> ExitCode {
    match Evals::parse().command {
        Command::DemoAgent(args) => demo::run(&args),
    }
}

//! `evals case`: writes drafts of cases.

use clap::Subcommand;

use super::CliError;

mod from_session;

#[derive(Debug, clap::Args)]
pub struct CaseArgs {
    #[command(subcommand)]
    command: CaseCommand,
}

#[derive(Debug, Subcommand)]
enum CaseCommand {
    /// Write the draft of a case from a session: its prompts, the state before it, and the checks that passed
    FromSession(Box<from_session::FromSessionArgs>),
}

pub fn run(args: &CaseArgs) -> Result<u8, CliError> {
    match &args.command {
        CaseCommand::FromSession(args) => from_session::run(args),
    }
}

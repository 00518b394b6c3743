//! `evals schema`: prints JSON Schemas of the files that people and the program write.

use std::io::Write;

use super::CliError;
use super::output::{self, Content};
use crate::schema;

#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// File type
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(schema::KINDS))]
    kind: String,
}

pub fn run(args: &SchemaArgs) -> Result<u8, CliError> {
    let schema = schema::schema(&args.kind)
        .ok_or_else(|| CliError::unreadable(format!("no schema is named `{}`", args.kind)))?;
    let mut out = output::stdout(Content::Json);
    let written = serde_json::to_writer_pretty(&mut out, &schema).map_err(std::io::Error::from);
    super::import::ignore_closed_pipe(written.and_then(|()| writeln!(out)))?;
    Ok(0)
}

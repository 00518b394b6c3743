//! `evals harness import`: converts a manifest of another system to ours.

use std::io::Write;
use std::path::PathBuf;

use crate::cli::CliError;
use crate::cli::import::ignore_closed_pipe;
use crate::cli::output::{self, Content};
use crate::harness::benchflow;

#[derive(Debug, clap::Args)]
pub struct HarnessImportArgs {
    /// BenchFlow's manifest.toml
    file: PathBuf,
    /// Output file (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(args: &HarnessImportArgs) -> Result<u8, CliError> {
    let text = crate::yaml::read(&args.file).map_err(|error| CliError::all([error]))?;
    let imported = benchflow::import(&args.file, &text).map_err(CliError::all)?;
    for note in &imported.notes {
        crate::cli::terminal::note(format_args!("note: {note}"));
    }
    let text = benchflow::write(&imported);
    match &args.output {
        Some(path) => {
            crate::cli::report::make_place(path)?;
            crate::run::user_file::write_named(path, |out| out.write_all(text.as_bytes()))?;
        }
        None => {
            let mut out = output::stdout(Content::Text);
            ignore_closed_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
        }
    }
    Ok(0)
}

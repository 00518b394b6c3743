//! `evals check`: validates cases, manifests and graders, and tells everything that is wrong at once.

use std::io::Write;
use std::path::PathBuf;

use super::{CliError, inputs};
use crate::demo::script::Script;

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Cases, or folders of them (default: cases/)
    paths: Vec<PathBuf>,
    /// Also check these manifests; repeatable
    #[arg(long = "harness", value_name = "NAME")]
    harnesses: Vec<String>,
}

pub fn run(args: &CheckArgs) -> Result<u8, CliError> {
    let inputs = inputs::read(&inputs::cases_or_default(&args.paths), &args.harnesses)?;
    let graders = inputs::named_graders()?;
    let library = graders.library();
    let mut wrong: Option<CliError> = None;
    let mut failed = |error: CliError| {
        wrong = Some(match wrong.take() {
            Some(before) => before.and(error),
            None => error,
        });
    };
    for (_, grader) in library.iter() {
        if let Err(error) = grader.read() {
            failed(CliError::unreadable(error));
        }
    }
    let mut scripts = 0;
    for case in &inputs.cases {
        for variant in case.demo_scripts.keys() {
            scripts += 1;
            let path = case.shown().with_file_name(case.script_name(variant));
            if let Err(error) = Script::load(&path) {
                failed(CliError::all([error]));
            }
        }
    }
    if let Some(error) = wrong {
        return Err(error);
    }
    for notice in &inputs.notices {
        writeln!(std::io::stderr(), "note: {notice}")?;
    }
    writeln!(
        std::io::stdout(),
        "{} cases, {} demo scripts, {} harnesses and {} named graders can be read",
        inputs.cases.len(),
        scripts,
        inputs.catalog.names().len(),
        library.iter().count()
    )?;
    Ok(0)
}

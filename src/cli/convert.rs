//! `evals convert`: converts cases of other evaluation tools, and names everything that was not taken over.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

use super::output::{self, Content};
use super::{CliError, terminal};
use crate::convert::{self, Choices, Format, Target, WriteError};
use crate::paths::shown;
use crate::text::plural;

#[derive(Debug, clap::Args)]
pub struct ConvertArgs {
    /// Format of the source
    #[arg(long, value_enum, value_name = "FORMAT")]
    from: Format,
    /// Skill, plugin, folder of cases, or file
    path: PathBuf,
    /// Inspect: how the answer is compared with the target of a sample
    #[arg(long, value_enum, value_name = "HOW")]
    target: Option<Target>,
    /// SWE-bench: command that runs the tests, if it does not follow from their names
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// touchstone: checkout of the repository with the hidden tests
    #[arg(long, value_name = "DIR")]
    fixtures: Option<PathBuf>,
    /// Folder for `cases/` and `experiments/`
    #[arg(short, long = "output", value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Overwrite files
    #[arg(long)]
    force: bool,
}

/// Refuses options that the format does not have.
fn refuse_options(args: &ConvertArgs) -> Result<(), CliError> {
    let options = [
        ("--target", args.target.is_some(), Format::Inspect, "inspect"),
        ("--test", args.test.is_some(), Format::SweBench, "swe-bench"),
        ("--fixtures", args.fixtures.is_some(), Format::Touchstone, "touchstone"),
    ];
    match options.into_iter().find(|(_, is_given, format, _)| *is_given && *format != args.from) {
        Some((option, _, _, name)) => {
            let message = format!("{option} belongs to --from {name}; remove it, or choose that format");
            Err(CliError::unreadable(message))
        }
        None => Ok(()),
    }
}

pub fn run(args: &ConvertArgs) -> Result<u8, CliError> {
    refuse_options(args)?;
    let choices = Choices { target: args.target, test: args.test.clone(), fixtures: args.fixtures.clone() };
    let converted =
        args.from.convert(&args.path, &choices).map_err(CliError::all)?.checked(&args.out).map_err(refused)?;
    let mut lost = 0;
    let mut printed = HashSet::new();
    // A note on a default of many cases is printed once.
    for note in converted.all_notes().filter(|note| printed.insert(note.to_string())) {
        lost += 1;
        let file = shown(&note.file);
        let shorter = convert::Note { file, ..note.clone() };
        terminal::note(format_args!("note: {shorter}"));
    }
    if converted.cases() == 0 {
        let path = args.path.display();
        return Err(CliError::unreadable(format!("{path}: no case could be converted; the notes above say why")));
    }
    let written = convert::write(&converted, &args.out, args.force).map_err(refused)?;
    let mut out = output::stdout(Content::Text);
    for path in &written {
        writeln!(out, "wrote {}", path.display())?;
    }
    let cases = plural(converted.cases() as u64, "case");
    writeln!(out, "{cases}; {}", plural(lost, "note"))?;
    Ok(0)
}

fn refused(error: WriteError) -> CliError {
    match error {
        WriteError::File(error) => error.into(),
        wrong @ (WriteError::Exists(_) | WriteError::Source(_) | WriteError::Skill { .. }) => {
            CliError::unreadable(wrong)
        }
    }
}

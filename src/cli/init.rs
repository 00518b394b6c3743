//! `evals init`: creates an example suite that runs with the demo agent and without keys.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::CliError;
use super::door::{self, Content};

#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Folder
    #[arg(default_value = ".")]
    folder: PathBuf,
}

/// The files of the example suite.
const FILES: [(&str, &str); 5] = [
    ("cases/suite.yaml", include_str!("init/suite.yaml")),
    ("cases/greeting.yaml", include_str!("init/greeting.yaml")),
    ("cases/greeting.demo.yaml", include_str!("init/greeting.demo.yaml")),
    ("cases/greeting/greet.sh", include_str!("init/greet.sh")),
    ("cases/greeting.hidden/check.sh", include_str!("init/check.sh")),
];

pub fn run(args: &InitArgs) -> Result<u8, CliError> {
    if let Some((name, _)) = FILES.iter().find(|(name, _)| args.folder.join(name).exists()) {
        return Err(CliError::unreadable(format!(
            "{} is there already; `evals init` overwrites nothing, so name an empty folder: evals init DIR",
            args.folder.join(name).display()
        )));
    }
    let mut out = door::stdout(Content::Text);
    for (name, text) in FILES {
        let path = args.folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| CliError::unreadable(format!("could not make {}: {error}", parent.display())))?;
        }
        fs::write(&path, text)
            .map_err(|error| CliError::unreadable(format!("could not write {}: {error}", path.display())))?;
        writeln!(out, "wrote {}", path.display())?;
    }
    writeln!(out, "\nRun it:                evals run {}", args.folder.join("cases").display())?;
    writeln!(
        out,
        "Run it on a real agent: evals run {} --harness claude-code-stream",
        args.folder.join("cases").display()
    )?;
    Ok(0)
}

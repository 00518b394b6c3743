//! The names that a shell completes: harnesses, runs, cases, tags and models.
//!
//! A shell asks while somebody types: nothing is started or written, and a file that cannot be read gives no name.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;

use super::{CliError, default_runs, import, inputs, output};
use crate::case::{Case, load_all};
use crate::run::RunRecord;
use crate::run::find;

/// The variable by which a shell asks for completions, with the name of the shell as its value.
pub const ASKS: &str = "EVALS_COMPLETE";

/// Prints the script that makes a shell ask this program for completions.
///
/// # Errors
/// Returns an error if there is no such script for the shell, or if it cannot be written.
pub fn script(shell: Shell) -> Result<u8, CliError> {
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(&shell.to_string()) else {
        return Err(CliError::unreadable(format!("{shell} cannot ask for names; leave out --names")));
    };
    let mut out = output::stdout(output::Content::Text);
    let written = completer.write_registration(ASKS, "evals", "evals", "evals", &mut out).and_then(|()| out.flush());
    import::ignore_closed_pipe(written).map(|()| 0)
}

/// Completes names of harnesses.
pub fn harnesses() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let (catalog, _) = inputs::catalog(&[]).unwrap_or_default();
        catalog.entries().map(|entry| named(&entry.manifest.name, entry.manifest.description.as_deref())).collect()
    })
}

/// Completes ids and labels of runs, and `latest`.
pub fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut names = vec![named("latest", Some("the newest run"))];
        for record in records() {
            names.push(named(&record.run, record.label.as_deref()));
            names.extend(record.label.as_deref().map(|label| named(label, Some(&record.run))));
        }
        names
    })
}

/// Completes ids of cases.
pub fn cases() -> ArgValueCandidates {
    ArgValueCandidates::new(|| loaded().iter().map(|case| named(&case.id, case.description.as_deref())).collect())
}

/// Completes tags of cases.
pub fn tags() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let tags: BTreeSet<String> = loaded().into_iter().flat_map(|case| case.tags).collect();
        tags.iter().map(|tag| named(tag, None)).collect()
    })
}

/// Completes models of earlier runs.
pub fn models() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let trials = records().into_iter().flat_map(|record| record.trials);
        let models: BTreeSet<String> = trials.filter_map(|trial| trial.model).collect();
        models.iter().map(|model| named(model, None)).collect()
    })
}

fn named(name: &str, about: Option<&str>) -> CompletionCandidate {
    let about = about.map(|about| crate::text::one_line(about).into());
    CompletionCandidate::new(crate::text::one_line(name)).help(about)
}

fn records() -> Vec<RunRecord> {
    find::all(&default_runs()).into_iter().map(|(_, record)| record).collect()
}

fn loaded() -> Vec<Case> {
    let cases =
        inputs::cases_or_default(&[]).and_then(|paths| inputs::cases_alone(|context| load_all(&paths, context)));
    cases.unwrap_or_default()
}

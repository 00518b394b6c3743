//! `evals view`: serves the runs as HTML on loopback, and opens a browser.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::import::ignore_closed_pipe;
use super::output::{self, Content};
use super::{CliError, RunsFolder, complete, engine, named_run, terminal};
use crate::own_environment::in_ci;
use crate::paths;
use crate::run::find;
use crate::view::{self, View};

mod browser;

#[derive(Debug, clap::Args)]
pub struct ViewArgs {
    /// Run to open: ID, ID prefix, label, path, or `latest` (default: the list of all runs)
    #[arg(add = complete::runs())]
    run: Option<String>,
    /// Port of 127.0.0.1; 0 means any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &ViewArgs) -> Result<u8, CliError> {
    let (runs, run) = chosen(args)?;
    let runtime = engine::runtime()?;
    let result = runtime.block_on(serve(args, runs, run.as_deref()));
    // A document that is being written must not keep the program running.
    runtime.shutdown_background();
    result
}

/// Returns the folder of runs, and the run to open. For a run outside the usual folder, it is the folder that contains
/// the run.
fn chosen(args: &ViewArgs) -> Result<(PathBuf, Option<PathBuf>), CliError> {
    let runs = &args.folder.runs;
    let Some(name) = &args.run else {
        if find::paths(runs).is_empty() {
            let runs = paths::absolute(Path::new(""), runs);
            let runs = runs.display();
            return Err(CliError::unreadable(format!("there are no runs in {runs}; `evals run` makes one")));
        }
        return Ok((runs.clone(), None));
    };
    let found = named_run::by_name(runs, name)?;
    found.record()?;
    // `.` and `..` have no name of their own.
    let whole = std::fs::canonicalize(&found.path)
        .map_err(|error| CliError::unreadable(format!("{}: {error}", found.path.display())))?;
    let is_below = find::paths(runs).into_iter().find(|path| std::fs::canonicalize(path).is_ok_and(|it| it == whole));
    if let Some(path) = is_below {
        return Ok((runs.clone(), Some(path)));
    }
    let parent = whole.parent().map(Path::to_owned);
    let parent = parent.ok_or_else(|| CliError::unreadable(format!("{} is in no folder", whole.display())))?;
    Ok((parent, Some(whole)))
}

async fn serve(args: &ViewArgs, runs: PathBuf, run: Option<&Path>) -> Result<u8, CliError> {
    // Listened for before the address is printed, so that a program that reads the address can end this one.
    let mut signals =
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
    let port = args.port;
    let view: View = view::open(port, runs, |folder, record, results| {
        let going_on = folder.is_in_use();
        let report = super::report::of_stored(folder, Arc::new(record.clone()), results, going_on);
        let report = report.map_err(|error| error.text())?;
        let compared = super::compare::of_report(report.whole().map_err(|error| error.to_string())?);
        Ok((report, compared))
    })
    .await
    .map_err(|error| {
        let way = if port == 0 { "" } else { "; choose another port with --port, or leave it out for a free one" };
        CliError::unreadable(format!("could not listen on 127.0.0.1:{port}: {error}{way}"))
    })?;
    let mut out = output::stdout(Content::Text);
    let printed = writeln!(out, "{}", view.url(run)).and_then(|()| out.flush());
    drop(out);
    ignore_closed_pipe(printed)?;
    if !args.no_open && !in_ci() {
        browser::open(&view.url_to_open(run));
    }
    terminal::note("serving on this machine alone; Ctrl-C ends it");
    let (end, ends) = watch::channel(false);
    let served = tokio::spawn(view.serve(ends));
    let [interrupt, terminate, hangup] = &mut signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    let _ = end.send(true);
    // A task that panicked has ended too.
    let _ = served.await;
    Ok(0)
}

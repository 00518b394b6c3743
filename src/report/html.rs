//! The HTML report: one file that requests nothing from anywhere, with the evidence of every trial in it.
//!
//! The overview and the comparison are HTML from the blocks of [`super::page`]. Trials are shown by a script from
//! data blocks: one with the results, and compressed ones with the files of each trial, which are read when the
//! trial is opened.

use std::io::{self, Write};

use super::whole::WholeReport;
use crate::compare::Comparison;
use live::Live;
use places::Places;
use shell::Asks;

pub mod charts;
pub mod comparison;
pub mod cost_points;
pub mod data;
pub mod evidence;
pub mod history;
pub mod lines;
pub mod live;
pub mod overview;
pub mod places;
pub mod running;
pub mod runs;
pub mod shapes;
pub mod shell;

/// The parts of the script, in order. Each file does one job.
const SCRIPTS: [&str; 18] = [
    include_str!("html/page/text.js"),
    include_str!("html/page/elements.js"),
    include_str!("html/page/ansi.js"),
    include_str!("html/page/data.js"),
    include_str!("html/page/align.js"),
    include_str!("html/page/diff.js"),
    include_str!("html/page/long_text.js"),
    include_str!("html/page/markdown.js"),
    include_str!("html/page/trace.js"),
    include_str!("html/page/wire.js"),
    include_str!("html/page/events.js"),
    include_str!("html/page/timeline.js"),
    include_str!("html/page/traffic.js"),
    include_str!("html/page/trial.js"),
    include_str!("html/page/beside.js"),
    include_str!("html/page/overview.js"),
    include_str!("html/page/keys.js"),
    include_str!("html/page/places.js"),
];

/// The parts of the script that follow a run, in documents of a server.
const FOLLOWING: [&str; 2] = [include_str!("html/page/follow.js"), include_str!("html/page/live.js")];

/// The last part of the script, which starts everything.
const START: &str = include_str!("html/page/start.js");

/// The comparison of a run with its baseline, or of its arms with each other.
#[derive(Debug, Default)]
pub enum Compared {
    /// There is nothing to compare the run with.
    #[default]
    Nothing,
    With(Box<Comparison>),
    /// The reason why the run could not be compared.
    Refused(String),
}

/// Writes a run as one HTML file.
///
/// # Errors
/// Returns an error if the output cannot be written. Files of a trial that cannot be read are named in the page.
pub fn write(report: WholeReport<'_>, compared: &Compared, out: &mut dyn Write) -> io::Result<()> {
    document(report, compared, None, out)
}

/// Writes a run as a document of a server: the same page, which follows the run while it is going on.
///
/// # Errors
/// Returns an error if the output cannot be written. Files of a trial that cannot be read are named in the page.
pub fn write_live(report: WholeReport<'_>, compared: &Compared, live: &Live, out: &mut dyn Write) -> io::Result<()> {
    document(report, compared, Some(live), out)
}

/// Returns the policy of the documents that [`write_live`] writes.
pub fn live_policy() -> String {
    shell::policy(Some(&script(true)), Asks::Server)
}

fn document(report: WholeReport<'_>, compared: &Compared, live: Option<&Live>, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::of(report, live);
    let script = script(live.is_some());
    let label = report.run.label.as_deref().map(|label| format!("{label} · ")).unwrap_or_default();
    let asks = if live.is_some() { Asks::Server } else { Asks::Nobody };
    shell::head(&format!("{label}{}", report.run.run), &shell::policy(Some(&script), asks), out)?;
    let bar = include_str!("html/page/bar.html");
    match live {
        Some(live) => {
            out.write_all(bar.replacen("<a href=\"#/\">", "<a href=\"../\">Runs</a> <a href=\"#/\">", 1).as_bytes())?;
            following(live, out)?;
        }
        None => out.write_all(bar.as_bytes())?,
    }
    out.write_all(overview::section(report, &places, live)?.as_bytes())?;
    out.write_all(comparison::section(&report, compared, &places).as_bytes())?;
    out.write_all(include_bytes!("html/page/body.html"))?;
    data::write(&report, &places, out)?;
    writeln!(out, "<script>{script}</script>")?;
    let left_out = evidence::write(&report, &places, out)?;
    data::block("left-out", &left_out, out)?;
    out.write_all(b"</body>\n</html>\n")
}

/// Writes the line about a run that is going on, and the state from which the page was made.
fn following(live: &Live, out: &mut dyn Write) -> io::Result<()> {
    let (hidden, sentence) = match live.going_on {
        true => ("", format!("This run is going on: {}.", live.text)),
        false => (" hidden", String::new()),
    };
    writeln!(
        out,
        "<p id=\"live\" class=\"live\" role=\"status\"{hidden}><span>{}</span> \
         <button type=\"button\" hidden>show</button></p>",
        super::escape::html(&sentence)
    )?;
    data::block("live-state", live, out)
}

/// Returns the whole script.
fn script(follows: bool) -> String {
    let following: &[&str] = if follows { &FOLLOWING } else { &[] };
    let start = if follows { format!("startFollowing();\n{START}") } else { START.to_owned() };
    shell::script(&[&SCRIPTS[..], following, &[&start]].concat())
}

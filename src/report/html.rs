//! The HTML report: one file that requests nothing from anywhere, with the evidence of every trial in it.
//!
//! The overview and the comparison are HTML from the blocks of [`super::page`]. Trials are shown by a script from
//! data blocks: one with the results, and compressed ones with the files of each trial, which are read when the
//! trial is opened.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use super::Report;
use crate::compare::Comparison;
use places::Places;

pub mod charts;
pub mod comparison;
pub mod data;
pub mod evidence;
pub mod lines;
pub mod overview;
pub mod places;
pub mod shapes;

/// The style sheet of the page.
const STYLE: &str = include_str!("html/page/page.css");

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

/// The comparison of a run with its baseline, or of its arms with each other.
#[derive(Debug, Default)]
pub enum Compared {
    /// There is nothing to compare the run with.
    #[default]
    Nothing,
    /// The comparison.
    With(Box<Comparison>),
    /// The reason why the run could not be compared.
    Refused(String),
}

/// Writes a run as one HTML file.
///
/// # Errors
/// Returns an error if the output cannot be written. Files of a trial that cannot be read are named in the page.
pub fn write(report: &Report, compared: &Compared, out: &mut dyn Write) -> io::Result<()> {
    let places = Places::of(report);
    let script = script();
    head(report, &script, out)?;
    out.write_all(include_bytes!("html/page/bar.html"))?;
    out.write_all(overview::section(report, &places).as_bytes())?;
    out.write_all(comparison::section(report, compared, &places).as_bytes())?;
    out.write_all(include_bytes!("html/page/body.html"))?;
    data::write(report, &places, out)?;
    writeln!(out, "<script>{script}</script>")?;
    let left_out = evidence::write(report, &places, out)?;
    data::block("left-out", &left_out, out)?;
    out.write_all(b"</body>\n</html>\n")
}

/// Returns the whole script: a single function, so that its names are its own.
pub fn script() -> String {
    format!("\"use strict\";(() => {{\n{}\n}})();", SCRIPTS.join("\n"))
}

fn head(report: &Report, script: &str, out: &mut dyn Write) -> io::Result<()> {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, text.as_bytes())));
    let policy = [
        "default-src 'none'".to_owned(),
        format!("script-src {}", hash(script)),
        format!("style-src {}", hash(STYLE)),
        "base-uri 'none'".to_owned(),
        "form-action 'none'".to_owned(),
        // The script never parses HTML; the browser is asked to hold it to that.
        "require-trusted-types-for 'script'".to_owned(),
        "trusted-types 'none'".to_owned(),
    ];
    let run = super::escape::html(&report.run.run);
    let label = report.run.label.as_deref().map(|label| format!("{} · ", super::escape::html(label)));
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}{run} · evals</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        policy.join("; "),
        label.unwrap_or_default(),
    )
}

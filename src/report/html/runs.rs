//! The list of the runs of a folder as an HTML document, for a server: each run is a link to its report.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::shell::{self, Asks};
use crate::report::escape::html as text;
use crate::report::page::Meaning;
use crate::report::page::html::span;
use crate::report::text::plural;

/// The parts of the script.
const SCRIPTS: [&str; 3] = [include_str!("page/text.js"), include_str!("page/follow.js"), include_str!("page/runs.js")];

/// A run of the list.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// The name of its folder, encoded as a part of an address.
    pub link: String,
    /// The id.
    pub run: String,
    pub label: Option<String>,
    /// The time at which the run began.
    pub started: String,
    pub columns: Vec<String>,
    /// The run that it was made from, or that it was graded.
    pub made_from: Option<String>,
    pub results: Results,
}

/// The results of a run in a list.
#[derive(Debug, Clone)]
pub enum Results {
    /// The run is going on: its state in words.
    GoingOn(String),
    /// The numbers of trials by verdict, and true if no trial is missing.
    Ended(Vec<(Meaning, String)>, bool),
    /// The reason why the results cannot be read.
    Unreadable(String),
}

impl Default for Results {
    fn default() -> Self {
        Self::Ended(Vec::new(), true)
    }
}

/// The state of a list, as its script compares it with the state that it asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct State {
    /// The names of the folders, encoded.
    pub runs: Vec<String>,
    /// The state in words of each run that is going on, by the name of its folder.
    pub going_on: BTreeMap<String, String>,
}

/// Returns the Content Security Policy of the page.
pub fn policy() -> String {
    shell::policy(Some(&shell::script(&SCRIPTS)), Asks::Server)
}

/// Writes the list. The rows are read one by one, as they are written. `broken` has the names of runs that cannot be
/// read, and the errors.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(
    folder: &str,
    state: &State,
    rows: impl ExactSizeIterator<Item = Row>,
    broken: &[(String, String)],
    out: &mut dyn Write,
) -> io::Result<()> {
    shell::head("Runs", &policy(), out)?;
    out.write_all(
        b"<header id=\"bar\">\n<strong>evals</strong>\n<nav aria-label=\"Parts of the report\">\
          <a href=\"./\" aria-current=\"page\">Runs</a></nav>\n</header>\n\
          <p id=\"live\" class=\"live\" role=\"status\" hidden><span></span> <button type=\"button\">show</button></p>\n",
    )?;
    let unread = if broken.is_empty() { String::new() } else { format!(", {} cannot be read", broken.len()) };
    writeln!(
        out,
        "<main id=\"runs\">\n<h1>Runs</h1>\n<p class=\"facts\">{}{unread} <span class=\"m-quiet\">in folder <code>{}</code></span></p>",
        plural(rows.len() + broken.len(), "run"),
        text(folder)
    )?;
    if rows.len() == 0 && broken.is_empty() {
        out.write_all(b"<p>There are no runs in this folder. <code>evals run</code> makes one.</p>\n")?;
    }
    if rows.len() > 0 {
        out.write_all(
            b"<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table class=\"matrix\">\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\">label</th>\
              <th scope=\"col\">started</th><th scope=\"col\">columns</th><th scope=\"col\">trials</th></tr></thead>\n<tbody>\n",
        )?;
        for row in rows {
            writeln!(out, "{}", self::row(&row))?;
        }
        out.write_all(b"</tbody>\n</table></div>\n")?;
    }
    if !broken.is_empty() {
        out.write_all(b"<h2>Runs that cannot be read</h2>\n")?;
        for (name, why) in broken {
            writeln!(
                out,
                "<div class=\"entry\"><p><span class=\"m-bad\">cannot be read</span> {}</p>\n<p class=\"detail\">{}</p></div>",
                text(name),
                text(why)
            )?;
        }
    }
    out.write_all(b"</main>\n")?;
    super::data::block("list", state, out)?;
    writeln!(out, "<script>{}</script>\n</body>\n</html>", shell::script(&SCRIPTS))
}

fn row(row: &Row) -> String {
    let results = match &row.results {
        Results::GoingOn(state) => format!(
            "<span class=\"verdict v-running\">going on</span> <span class=\"state\" data-run=\"{}\">{}</span>",
            text(&row.link),
            text(state)
        ),
        Results::Ended(parts, complete) => {
            let parts: Vec<String> = parts.iter().map(|(meaning, part)| span(*meaning, part)).collect();
            let missing = if *complete { "" } else { " <span class=\"m-open\">incomplete</span>" };
            format!("{}{missing}", parts.join(" "))
        }
        Results::Unreadable(why) => format!("<span class=\"m-bad\">cannot be read</span> {}", text(why)),
    };
    let made_from = row.made_from.as_ref().map(|from| format!(" <span class=\"tag\">{}</span>", text(from)));
    format!(
        "<tr><th scope=\"row\"><a href=\"{}/\">{}</a>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{results}</td></tr>",
        text(&row.link),
        text(&row.run),
        made_from.unwrap_or_default(),
        text(row.label.as_deref().unwrap_or_default()),
        text(&row.started),
        text(&row.columns.join(", ")),
    )
}

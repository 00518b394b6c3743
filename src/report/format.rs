//! The formats of a report, and the syntax `--reporter FORMAT[=PATH]`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;

use super::page::{markdown, terminal};
use super::text::Look;
use super::{Report, benchmark, escape, github, html, json, junit, run_page};

/// A format. To add one, add a file beside this one, a variant here and a line in [`write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, in a terminal.
    Table,
    /// One JSON object.
    Json,
    /// One result per line, as JSON.
    Jsonl,
    /// JUnit XML, for CI servers.
    Junit,
    /// For pull requests.
    Markdown,
    /// Annotations and a step summary, for GitHub Actions.
    Github,
    /// A block of scores in a BENCHMARK.md.
    Benchmark,
    /// One HTML file with every trial, for a browser.
    Html,
}

impl Format {
    /// Returns the format for a file's suffix.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "txt" => Some(Format::Table),
            "json" => Some(Format::Json),
            "jsonl" => Some(Format::Jsonl),
            "xml" => Some(Format::Junit),
            "md" => Some(Format::Markdown),
            "html" | "htm" => Some(Format::Html),
            _ => None,
        }
    }

    fn named(word: &str) -> Option<Self> {
        Self::value_variants()
            .iter()
            .copied()
            .find(|format| format.to_possible_value().is_some_and(|value| value.matches(word, false)))
    }

    /// Returns the format's name.
    pub fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn words() -> String {
        let values = Self::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        values.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
    }
}

/// Writes a report.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(format: Format, report: &Report, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table => terminal::write(&run_page::page(report, look)?, look, out),
        Format::Json => json::write(report, out),
        Format::Jsonl => json::write_lines(report, out),
        Format::Junit => junit::write(report, out),
        Format::Markdown => markdown::write(&run_page::page(report, &escape::LOOK)?, out),
        Format::Github => github::write(report, out),
        Format::Benchmark => out.write_all(benchmark::block(report).as_bytes()),
        Format::Html => html::write(report.whole()?, &html::Compared::Nothing, out),
    }
}

/// The value of `--reporter`: `json`, `json=out.json`, or a path whose suffix gives the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReporterArg {
    pub format: Format,
    /// The output file; standard output if absent.
    pub path: Option<PathBuf>,
}

impl FromStr for ReporterArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(format) = Format::named(text) {
            return Ok(Self { format, path: None });
        }
        if let Some((word, path)) = text.split_once('=')
            && let Some(format) = Format::named(word)
        {
            return match path {
                "" => Err(format!("`{text}` has no file name; write {word}=FILE, or {word} for standard output")),
                "-" => Ok(Self { format, path: None }),
                path => Ok(Self { format, path: Some(PathBuf::from(path)) }),
            };
        }
        // A misspelt format before `=` would be a part of the file's name; a file of such a name begins with `./`.
        let misspelt = text.split_once('=').filter(|(word, _)| word.chars().all(|c| c.is_ascii_alphabetic()));
        if let Some((word, path)) = misspelt {
            return Err(format!("`{word}` is not a format; write one of {}, as in json={path}", Format::words()));
        }
        match Format::of_path(Path::new(text)) {
            Some(format) => Ok(Self { format, path: Some(PathBuf::from(text)) }),
            None => Err(format!(
                "`{text}` is not a report; write FORMAT or FORMAT=PATH with one of {}, or a path that ends in .txt, \
                 .json, .jsonl, .xml, .md or .html",
                Format::words()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reporter_is_a_format_a_file_or_both() {
        let read = |text: &str| text.parse::<ReporterArg>().map(|arg| (arg.format, arg.path));
        assert_eq!(read("json"), Ok((Format::Json, None)));
        assert_eq!(read("json=-"), Ok((Format::Json, None)));
        assert_eq!(read("json=a=b.txt"), Ok((Format::Json, Some("a=b.txt".into()))));
        assert_eq!(read("jsonl=out"), Ok((Format::Jsonl, Some("out".into()))));
        assert_eq!(read("out.json"), Ok((Format::Json, Some("out.json".into()))));
        assert_eq!(read("./a=b/out.jsonl"), Ok((Format::Jsonl, Some("./a=b/out.jsonl".into()))));
        assert_eq!(read("out.xml"), Ok((Format::Junit, Some("out.xml".into()))));
        assert!(read("xml").unwrap_err().contains("table, json, jsonl, junit, markdown, github, benchmark, html"));
        assert!(read("json=").is_err() && read("").is_err());
    }
}

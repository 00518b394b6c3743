//! The beginning of every HTML document: its policy, its style sheet and its title.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::report::escape::html as text;

/// The style sheet of all documents.
const STYLE: &str = include_str!("page/page.css");

/// The server that the script of a document may send requests to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// No server: the document is a file.
    Nobody,
    /// The server that sent the page.
    Server,
}

/// Returns a script of several files: a single function, so that its names are its own.
pub fn script(files: &[&str]) -> String {
    format!("\"use strict\";(() => {{\n{}\n}})();", files.join("\n"))
}

/// Returns the content security policy of a document with this script.
pub fn policy(script: Option<&str>, asks: Asks) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(digest(&SHA256, text.as_bytes())));
    let mut policy = vec!["default-src 'none'".to_owned()];
    policy.extend(script.map(|script| format!("script-src {}", hash(script))));
    policy.push(format!("style-src {}", hash(STYLE)));
    policy.extend((asks == Asks::Server).then(|| "connect-src 'self'".to_owned()));
    policy.extend([
        "base-uri 'none'".to_owned(),
        "form-action 'none'".to_owned(),
        // The scripts never parse HTML; the browser is asked to hold them to that.
        "require-trusted-types-for 'script'".to_owned(),
        "trusted-types 'none'".to_owned(),
    ]);
    policy.join("; ")
}

/// Writes the head of a document and the beginning of its body.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn head(title: &str, policy: &str, out: &mut dyn Write) -> io::Result<()> {
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{} · evals</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        text(title),
    )
}

//! Opens the user's browser, if there is one.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::own_environment::var;

/// Starts the browser with an address. Without a browser, nothing happens: the address is printed too.
pub fn open(url: &str) {
    for words in candidates(url) {
        let Some((program, arguments)) = words.split_first() else { continue };
        let started = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C ends the server, and not the browser.
            .process_group(0)
            .spawn();
        if let Ok(mut child) = started {
            // It is waited for, so that it does not remain as an ended process.
            let _ = std::thread::Builder::new().spawn(move || child.wait());
            return;
        }
    }
}

/// Returns the commands to try, with their arguments.
fn candidates(url: &str) -> Vec<Vec<String>> {
    let own = var("BROWSER").and_then(|value| value.into_string().ok()).unwrap_or_default();
    let mut all = named(&own, url);
    if cfg!(target_os = "macos") {
        all.push(vec!["open".to_owned(), url.to_owned()]);
    } else if ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| var(name).is_some_and(|value| !value.is_empty())) {
        all.push(vec!["xdg-open".to_owned(), url.to_owned()]);
    }
    all
}

/// Parses `BROWSER`: commands separated by colons, in which `%s` is replaced by the address.
fn named(browsers: &str, url: &str) -> Vec<Vec<String>> {
    let of = |command: &str| {
        let mut words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if words.iter().any(|word| word.contains("%s")) {
            words.iter_mut().for_each(|word| *word = word.replace("%s", url));
        } else {
            words.push(url.to_owned());
        }
        words
    };
    browsers.split(':').filter(|command| !command.trim().is_empty()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_lists_commands() {
        assert!(named("", "U").is_empty());
        assert_eq!(named("firefox", "U"), [["firefox", "U"]]);
        assert_eq!(named("a --new %s x: :b", "U"), [vec!["a", "--new", "U", "x"], vec!["b", "U"]]);
    }
}

//! `manual`: asks the user on the terminal, one question at a time, while other trials continue.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::sync::watch;

use super::terminal;
use crate::interaction::{Answer, Person, Request};
use crate::report::show;
use crate::report::text::{BOLD, DIM, Look, harmless};
use crate::text::first_chars;
use crate::trace::{FileDiff, ToolKind};

/// The user at the terminal.
#[derive(Debug)]
pub struct AtTerminal {
    /// Locked while a question is open.
    turn: Mutex<()>,
    interrupt: watch::Receiver<bool>,
}

/// Returns the user if standard input and standard error are a terminal.
pub fn person(interrupt: watch::Receiver<bool>) -> Option<Arc<dyn Person>> {
    let there = io::stdin().is_terminal() && io::stderr().is_terminal();
    there.then(|| Arc::new(AtTerminal { turn: Mutex::new(()), interrupt }) as Arc<dyn Person>)
}

impl Person for AtTerminal {
    fn ask(&self, trial: &str, request: &Request, withdrawn: &AtomicBool) -> Option<Answer> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if withdrawn.load(Ordering::Relaxed) {
            return None;
        }
        // Input that was typed before the question was shown must not answer the question.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        let look = terminal::stderr_look();
        let mut text = Vec::new();
        write_request(trial, request, &look, &mut text).ok()?;
        loop {
            write!(text, "{} ", look.paint(BOLD, "[y]es once, [a]lways, [n]o, ne[v]er, [c]ancel?")).ok()?;
            // One write, so that the lock on standard error is free while the user decides: other threads print progress.
            io::stderr().write_all(&text).ok()?;
            match self.line(withdrawn) {
                Some(line) => {
                    if let Some(answer) = meant(&line) {
                        return Some(answer);
                    }
                }
                None if withdrawn.load(Ordering::Relaxed) => {
                    io::stderr().write_all(b"\nanswers are no longer accepted\n").ok()?;
                    return None;
                }
                None => return None,
            }
            text = b"type one of the letters in brackets\n".to_vec();
        }
    }
}

impl AtTerminal {
    /// Returns a line of input, or `None` at the end of the input, or after the question was withdrawn or the
    /// run was interrupted.
    fn line(&self, withdrawn: &AtomicBool) -> Option<String> {
        let stdin = io::stdin();
        loop {
            if *self.interrupt.borrow() || withdrawn.load(Ordering::Relaxed) {
                return None;
            }
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            let pause = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
            match poll(&mut ready, Some(&pause)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(_) => return None,
            }
        }
        let mut line = String::new();
        match stdin.lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line),
        }
    }
}

/// Writes a tool call with the changes that it would make.
fn write_request(trial: &str, asked: &Request, look: &Look, out: &mut impl Write) -> io::Result<()> {
    let kind = asked.kind.map(|kind| kind.to_string()).unwrap_or_default();
    let name = asked.name.as_deref().or(asked.title.as_deref()).unwrap_or("a call");
    writeln!(out, "\n{} asks: {kind} {}", harmless(trial), look.paint(BOLD, &harmless(name)))?;
    if let Some(command) = asked.command.seen() {
        writeln!(out, "    {}", harmless(command))?;
    }
    for path in asked.paths.seen().into_iter().flatten() {
        writeln!(out, "    {}", look.paint(DIM, &harmless(path)))?;
    }
    let proposed = if asked.diffs.is_empty() { proposed(asked) } else { asked.diffs.clone() };
    for diff in &proposed {
        show::diff(diff, look, out)?;
    }
    if asked.command.seen().is_none()
        && proposed.is_empty()
        && let Some(input) = &asked.input
    {
        writeln!(out, "    {}", harmless(first_chars(&input.to_string(), 2_000)))?;
    }
    Ok(())
}

/// Returns the changes that a call would make, from its arguments, for agents that show no diff before they are
/// allowed to make it: texts with their replacements, or a whole file.
fn proposed(asked: &Request) -> Vec<FileDiff> {
    const OLD: [&str; 5] = ["old_string", "old_str", "old_text", "oldText", "old"];
    const NEW: [&str; 5] = ["new_string", "new_str", "new_text", "newText", "new"];
    const WHOLE: [&str; 3] = ["content", "file_text", "text"];
    let paths = asked.paths.seen().map(Vec::as_slice).unwrap_or_default();
    let (Some(ToolKind::Edit), [path], Some(input)) = (asked.kind, paths, &asked.input) else {
        return Vec::new();
    };
    let text = |of: &Value, keys: &[&str]| keys.iter().find_map(|key| Some(of.get(key)?.as_str()?.to_owned()));
    let change = |of: &Value| {
        let (old, new) = (text(of, &OLD), text(of, &NEW));
        let new = new.or_else(|| text(of, &WHOLE).filter(|_| old.is_none()))?;
        Some(FileDiff { path: path.clone(), old, new: Some(new) })
    };
    match input.get("edits").and_then(Value::as_array) {
        // A partial diff would look smaller than the change is.
        Some(edits) => edits.iter().map(change).collect::<Option<_>>().unwrap_or_default(),
        None => change(input).into_iter().collect(),
    }
}

/// Parses an answer.
fn meant(line: &str) -> Option<Answer> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::AllowOnce),
        "a" | "always" => Some(Answer::AllowAlways),
        "n" | "no" => Some(Answer::RejectOnce),
        "v" | "never" => Some(Answer::RejectAlways),
        "c" | "cancel" => Some(Answer::Cancel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::facts::Fact;
    use serde_json::json;

    #[test]
    fn a_call_is_shown_with_what_it_would_change_and_nothing_that_acts() {
        let diff = FileDiff { path: "a.txt".into(), old: Some("one\n".into()), new: Some("two\n".into()) };
        let (name, paths) = (Some("Edit\u{1b}[2J".into()), Fact::Seen(vec!["a.txt".into()]));
        let request = Request { name, paths, diffs: vec![diff], ..Request::default() };
        let mut text = Vec::new();
        write_request("a  demo  trial 1", &request, &Look::PLAIN, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("-one") && text.contains("+two") && text.contains("a  demo  trial 1 asks:"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn what_a_call_would_change_is_shown_by_its_arguments_where_the_agent_shows_no_diff() {
        let shown = |kind, paths: &[&str], input| {
            let paths = Fact::Seen(paths.iter().map(|path| (*path).to_owned()).collect());
            let request = Request { kind: Some(kind), paths, input: Some(input), ..Request::default() };
            let mut text = Vec::new();
            write_request("a", &request, &Look::PLAIN, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let whole = shown(ToolKind::Edit, &["a"], json!({"file_path": "/w/a", "content": "one\n"}));
        assert!(whole.contains("+one") && !whole.contains("file_path"), "{whole}");
        let part = json!({"old_string": "one", "new_string": "two"});
        let edit = shown(ToolKind::Edit, &["a"], part.clone());
        assert!(edit.contains("-one") && edit.contains("+two"), "{edit}");
        let two = shown(ToolKind::Edit, &["a"], json!({"edits": [part, {"old_string": "x", "new_string": "y"}]}));
        assert!(two.contains("-one") && two.contains("+y"), "{two}");
        // If the arguments are not understood completely, they are shown unchanged.
        for (kind, paths, input) in [
            (ToolKind::Edit, &["a"][..], json!({"edits": [part, {"line": "odd"}]})),
            (ToolKind::Edit, &["a", "b"], part.clone()),
            (ToolKind::Edit, &["a"], json!({"old": "odd"})),
            (ToolKind::Other, &["a"], json!({"content": "odd"})),
        ] {
            let odd = shown(kind, paths, input.clone());
            assert!(odd.contains(&input.to_string()), "{odd}");
        }
    }

    #[test]
    fn letters_and_words_are_understood_and_nothing_else() {
        assert_eq!(meant(" Y \n"), Some(Answer::AllowOnce));
        assert_eq!(meant("never"), Some(Answer::RejectAlways));
        assert_eq!(meant("\n"), None, "no answer is no consent");
        assert_eq!(meant("yep"), None);
    }
}

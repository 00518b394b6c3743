//! `manual`: asks the user on the terminal, one question at a time, while other trials go on.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::watch;

use super::terminal;
use crate::interaction::{Answer, Person, Question};
use crate::report::show;
use crate::report::text::{BOLD, DIM, Look, harmless};

/// The user at the terminal.
#[derive(Debug)]
pub struct AtTerminal {
    /// Held while a question is open.
    turn: Mutex<()>,
    interrupt: watch::Receiver<bool>,
}

/// The user, where standard input and standard error are a terminal.
pub fn person(interrupt: watch::Receiver<bool>) -> Option<Arc<dyn Person>> {
    let there = io::stdin().is_terminal() && io::stderr().is_terminal();
    there.then(|| Arc::new(AtTerminal { turn: Mutex::new(()), interrupt }) as Arc<dyn Person>)
}

impl Person for AtTerminal {
    fn ask(&self, question: &Question, withdrawn: &AtomicBool) -> Option<Answer> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if withdrawn.load(Ordering::Relaxed) {
            return None;
        }
        let look = terminal::stderr_look();
        let mut text = Vec::new();
        shown(question, &look, &mut text).ok()?;
        loop {
            write!(text, "{} ", look.paint(BOLD, "[y]es once, [a]lways, [n]o, ne[v]er, [c]ancel?")).ok()?;
            // Written at once, and then let go: others have something to say while the user thinks.
            io::stderr().write_all(&text).ok()?;
            match self.line(withdrawn) {
                Some(line) => {
                    if let Some(answer) = meant(&line) {
                        return Some(answer);
                    }
                }
                None if withdrawn.load(Ordering::Relaxed) => {
                    io::stderr().write_all(b"\nno answer is needed any more: the session ended\n").ok()?;
                    return None;
                }
                None => return None,
            }
            text = b"one of the letters in brackets, please\n".to_vec();
        }
    }
}

impl AtTerminal {
    /// A line of the user's; nothing at the end of the input, or once the question is withdrawn or the run interrupted.
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

/// The call with what it would change.
fn shown(question: &Question, look: &Look, out: &mut impl Write) -> io::Result<()> {
    let asked = &question.asked;
    let kind = asked.kind.map(|kind| kind.to_string()).unwrap_or_default();
    let name = asked.name.as_deref().or(asked.title.as_deref()).unwrap_or("a call");
    writeln!(out, "\n{} asks: {kind} {}", harmless(&question.trial), look.paint(BOLD, &harmless(name)))?;
    if let Some(command) = &asked.command {
        writeln!(out, "    {}", harmless(command))?;
    }
    for path in &asked.paths {
        writeln!(out, "    {}", look.paint(DIM, &harmless(path)))?;
    }
    for diff in &question.diffs {
        show::diff(diff, look, out)?;
    }
    if asked.command.is_none()
        && question.diffs.is_empty()
        && let Some(input) = &asked.input
    {
        let text: String = input.to_string().chars().take(2_000).collect();
        writeln!(out, "    {}", harmless(&text))?;
    }
    Ok(())
}

/// What a line of the user's means.
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
    use crate::interaction::Asked;
    use crate::trace::FileDiff;

    #[test]
    fn a_call_is_shown_with_what_it_would_change_and_nothing_that_acts() {
        let asked = Asked { name: Some("Edit\u{1b}[2J".into()), paths: vec!["a.txt".into()], ..Asked::default() };
        let diff = FileDiff { path: "a.txt".into(), old: Some("one\n".into()), new: Some("two\n".into()) };
        let question = Question { trial: "a  demo  trial 1".into(), asked, diffs: vec![diff], options: Vec::new() };
        let mut text = Vec::new();
        shown(&question, &Look::PLAIN, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("-one") && text.contains("+two") && text.contains("a  demo  trial 1 asks:"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }

    #[test]
    fn letters_and_words_are_understood_and_nothing_else() {
        assert_eq!(meant(" Y \n"), Some(Answer::AllowOnce));
        assert_eq!(meant("never"), Some(Answer::RejectAlways));
        assert_eq!(meant("\n"), None, "no answer is no consent");
        assert_eq!(meant("yep"), None);
    }
}

//! Replaces what differs by chance in a text by a word for what it is: folders, ids, times, hashes, ports.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use regex::{Captures, Regex};

use crate::case::Normalise;
use crate::trace::Header;

/// Ids shorter than this would be found in words that have nothing to do with them.
const SHORTEST_ID: usize = 6;

/// What is replaced in the texts of one Trace.
pub struct Replacing<'a> {
    /// Texts that this Trace tells to differ by chance, with what stands for each.
    known: Option<(AhoCorasick, Vec<&'static str>)>,
    rules: &'a [Normalise],
}

impl<'a> Replacing<'a> {
    /// For a Trace: its header tells the folders and the agent's version, `ids` are those of its calls and requests.
    pub fn new<'i>(header: &Header, ids: impl Iterator<Item = &'i str>, rules: &'a [Normalise]) -> Self {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        if let Some(cwd) = header.cwd.as_deref().map(|cwd| cwd.trim_end_matches('/')).filter(|cwd| cwd.len() > 1) {
            for root in [cwd.to_owned(), format!("/private{cwd}")] {
                // The folders of a trial lie beside each other.
                if let Some(trial) = root.strip_suffix("/workspace").filter(|trial| trial.contains("/trial-")) {
                    known.push((format!("{trial}/home"), "{home}"));
                    known.push((format!("{trial}/tmp"), "{tmp}"));
                    known.push((trial.to_owned(), "{trial}"));
                }
                known.push((root, "{workspace}"));
            }
        }
        let version = header.agent.as_ref().and_then(|agent| agent.version.as_deref());
        known.extend(version.filter(|version| version.len() >= 5).map(|version| (version.to_owned(), "{version}")));
        known.extend(ids.filter(|id| id.len() >= SHORTEST_ID && looks_made(id)).map(|id| (id.to_owned(), "{id}")));
        let words = known.iter().map(|(_, word)| *word).collect();
        let automaton =
            AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(known.iter().map(|it| &it.0));
        Self { known: automaton.ok().filter(|_| !known.is_empty()).map(|automaton| (automaton, words)), rules }
    }

    /// An argument of a call, or its title: what the agent chose stays.
    pub fn argument(&self, text: &str) -> String {
        self.with_rules(chances(&self.known_in(text)).into_owned())
    }

    /// Prose: versions and durations go, too.
    pub fn prose(&self, text: &str) -> String {
        let text = self.known_in(text);
        let text = chances(&text);
        let text = DURATION.replace_all(&text, "${before}{duration}");
        // Four numbers are an address.
        let version = |found: &Captures<'_>| {
            if found["numbers"].matches('.').count() == 2 { "{version}".to_owned() } else { found[0].to_owned() }
        };
        self.with_rules(VERSION.replace_all(&text, version).into_owned())
    }

    fn known_in<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some((automaton, words)) = &self.known else { return Cow::Borrowed(text) };
        let mut out = String::new();
        let mut done = 0;
        for found in automaton.find_iter(text) {
            let word = words.get(found.pattern().as_usize()).copied().unwrap_or_default();
            // A part of a longer name is not what is meant: `/work` in `/workshop`.
            let after = text[found.end()..].chars().next();
            let before = text[..found.start()].chars().next_back();
            let goes_on = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
            if goes_on(after) || before.is_some_and(char::is_alphanumeric) {
                continue;
            }
            out.push_str(&text[done..found.start()]);
            out.push_str(word);
            done = found.end();
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// The case's own rules come last: they are written for what the snapshot would show.
    fn with_rules(&self, text: String) -> String {
        self.rules.iter().fold(text, |text, rule| match rule.regex.0.replace_all(&text, rule.with.as_str()) {
            Cow::Borrowed(_) => text,
            Cow::Owned(replaced) => replaced,
        })
    }
}

/// Whether an id was made by a program: a name that a person gave may be a word of the task.
fn looks_made(id: &str) -> bool {
    id.contains(|c: char| c.is_ascii_digit())
}

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* static $name: LazyLock<Regex> = LazyLock::new(|| {
            // Written here, and compiled by a test.
            Regex::new($text).unwrap_or_else(|error| unreachable!("{error}"))
        });)*
    };
}

patterns! {
    /// Private folders of this program.
    TRIAL = r"(?:/[\w.@+-]+)*/evals-run-[\w-]+/trial-\w+(?:/(?P<folder>workspace|home|tmp)\b)?";
    /// Folders that programs make for a while, in the system's own.
    MADE = r"(?P<before>^|file://|[^\w.{}/-])(?:/private)?(?:/var/folders/\w+/\w+/T|/var/tmp|/tmp|/dev/shm)(?P<made>/[A-Za-z_-]*(?:tmp|\.)[._-]?\w{6,})?(?P<after>/|\b)";
    /// Homes of people.
    HOME = r"(?P<before>^|file://|[^\w.{}/-])(?:/home/[\w.-]+|/Users/[\w.-]+|/root)(?P<after>/|\W|$)";
    UUID = r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b";
    /// Ids as models and agents make them.
    ID = r"\b(?:toolu|srvtoolu|call|msg|ses|sess|req|resp|chatcmpl|thread|turn)[_-](?P<rest>[A-Za-z0-9_-]{8,})";
    TIME = r"\b\d{4}-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?:Z|\s?[+-][0-2]\d:?[0-5]\d\b)?";
    DATE = r"\b(?:19|20)\d{2}-[01]\d-[0-3]\d\b";
    CLOCK = r"\b[0-2]?\d:[0-5]\d:[0-6]\d(?:[.,]\d+)?\b";
    /// Seconds or milliseconds since 1970, from 2020 to 2033.
    EPOCH = r"\b1[6-9]\d{8}(?:\d{3}|\.\d+)?\b";
    HEX = r"\b(?:0x)?[0-9a-fA-F]{7,128}\b";
    PORT = r"(?P<host>\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0)|\[::1?\]):\d{2,5}\b";
    PID = r"(?i)\b(?P<word>pid|process)(?P<sign>[ =:#]{1,2})\d+\b";
    DURATION = r"(?P<before>^|[^\w.])\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|secs?|seconds?|milliseconds?|mins?|minutes?|hours?)\b";
    VERSION = r"\bv?(?P<numbers>\d+(?:\.\d+){2,})(?:[-+][0-9A-Za-z.-]+)?\b";
}

/// What differs by chance in any text.
fn chances(text: &str) -> Cow<'_, str> {
    // Nothing of it is without a digit, but for folders.
    if !text.bytes().any(|b| b.is_ascii_digit() || b == b'/') {
        return Cow::Borrowed(text);
    }
    let text = TRIAL.replace_all(text, |found: &Captures<'_>| {
        format!("{{{}}}", found.name("folder").map_or("trial", |folder| folder.as_str()))
    });
    let text = and(text, &MADE, |found| {
        let made = found.name("made").map_or("", |made| made.as_str());
        // `/tmp/notes.markdown` is a name that someone gave.
        let kept = if made.starts_with("/tmp") || mixed(made) { "" } else { made };
        format!("{}{{tmp}}{kept}{}", &found["before"], &found["after"])
    });
    let text = and(text, &HOME, |found| format!("{}{{home}}{}", &found["before"], &found["after"]));
    let text = and(text, &UUID, |_| "{uuid}".to_owned());
    let text = and(text, &ID, |found| if mixed(&found["rest"]) { "{id}".to_owned() } else { found[0].to_owned() });
    let text = and(text, &TIME, |_| "{time}".to_owned());
    let text = and(text, &DATE, |_| "{date}".to_owned());
    let text = and(text, &CLOCK, |_| "{time}".to_owned());
    let text = and(text, &EPOCH, |_| "{time}".to_owned());
    let text = and(text, &HEX, |found| if mixed(&found[0]) { "{hash}".to_owned() } else { found[0].to_owned() });
    let text = and(text, &PORT, |found| format!("{}:{{port}}", &found["host"]));
    and(text, &PID, |found| format!("{}{}{{pid}}", &found["word"], &found["sign"]))
}

fn and<'t>(text: Cow<'t, str>, pattern: &Regex, word: impl Fn(&Captures<'_>) -> String) -> Cow<'t, str> {
    match pattern.replace_all(&text, |found: &Captures<'_>| word(found)) {
        Cow::Borrowed(_) => text,
        Cow::Owned(replaced) => Cow::Owned(replaced),
    }
}

/// Whether it holds digits and letters: a word and a figure are neither an id nor a hash.
fn mixed(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.contains(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Agent, Seen};

    fn replaced(text: &str) -> [String; 2] {
        let mut header = Header::new("acp", Seen { tracing: true, interaction: true });
        header.cwd = Some("/tmp/evals-run-11-0/trial-VMA2VH/workspace".to_owned());
        header.agent = Some(Agent { name: "x".into(), version: Some("2.1.330".into()) });
        let rules = [Normalise { regex: r"seed=\d+".parse().unwrap(), with: "seed={n}".to_owned() }];
        let replacing = Replacing::new(&header, ["toolu_t0_2_613c8099", "0", "a word of the task"].into_iter(), &rules);
        [replacing.argument(text), replacing.prose(text)]
    }

    #[test]
    fn what_differs_by_chance_becomes_a_word() {
        for (text, argument, prose) in [
            ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/src/a.rs", "{workspace}/src/a.rs", ""),
            ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/home/a/x", "{workspace}/home/a/x", ""),
            ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/Users/b/x", "{workspace}/Users/b/x", ""),
            ("/tmp/evals-run-11-0/trial-VMA2VH/workspace/tmp/a", "{workspace}/tmp/a", ""),
            ("cd /tmp/evals-run-11-0/trial-VMA2VH/workspace", "cd {workspace}", ""),
            ("/tmp/evals-run-11-0/trial-VMA2VH/home/.x", "{home}/.x", ""),
            ("/tmp/evals-run-12-3/trial-aaaaaa/tmp/y", "{tmp}/y", ""),
            ("/tmp/evals-run-11-0/trial-VMA2VH/workspace-2/a", "{workspace}-2/a", ""),
            ("ls /tmp/tmp.Ab12Cd/x /home/anna/y", "ls {tmp}/x {home}/y", ""),
            ("x=/tmp/notes.markdown file:///tmp/a", "x={tmp}/notes.markdown file://{tmp}/a", ""),
            ("cat '/home/ann/.bashrc'", "cat '{home}/.bashrc'", ""),
            ("src/tmp/a and lib/home/b", "src/tmp/a and lib/home/b", ""),
            ("toolu_t0_2_613c8099 toolu_01AbCdEfGh", "{id} {id}", ""),
            ("call_function", "call_function", ""),
            ("7c9e6679-7425-40de-944b-e07fc1f90ae7", "{uuid}", ""),
            ("git show a1b2c3d defaced 1234567", "git show {hash} defaced 1234567", ""),
            ("2026-11-22T08:38:56.468Z 2026-11-22 08:38:56", "{time} {time}", ""),
            ("at 08:38:56 on 2026-11-22", "at {time} on {date}", ""),
            ("http://127.0.0.1:43121/x localhost:80", "http://127.0.0.1:{port}/x localhost:{port}", ""),
            ("sleep 5s # 1.2.3", "sleep 5s # 1.2.3", "sleep {duration} # {version}"),
            ("agent 2.1.330 has pid 4711", "agent {version} has pid {pid}", ""),
            ("since 1763800000 seed=42", "since {time} seed={n}", ""),
            ("took 12 ms, 3 tests in 0.52s", "took 12 ms, 3 tests in 0.52s", "took {duration}, 3 tests in {duration}"),
            ("a word of the task 42 10.5", "a word of the task 42 10.5", ""),
        ] {
            let [as_argument, as_prose] = replaced(text);
            assert_eq!(as_argument, argument, "{text}");
            assert_eq!(as_prose, if prose.is_empty() { argument } else { prose }, "{text}");
        }
    }
}

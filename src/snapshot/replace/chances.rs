//! What differs by chance in any text, in the order in which it is looked for.

use std::borrow::Cow;

use regex::{Captures, Regex};

use super::made::Templates;
use super::trials::Trials;
use super::{hashes, times};

macro_rules! patterns {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$doc])* static $name: std::sync::LazyLock<regex::Regex> = std::sync::LazyLock::new(|| {
            // Written here, and compiled by a test.
            regex::Regex::new($text).unwrap_or_else(|error| unreachable!("{error}"))
        });)*
    };
}
pub(super) use patterns;

patterns! {
    /// The system's folders for files that live for a while.
    TEMPORARY = r"(?P<before>^|file://|[^\w.{}/-])(?:/private)?(?:/var/folders/\w+/\w+/T|/var/tmp|/tmp|/dev/shm)(?P<after>/|\b)";
    /// What lies in one of them.
    IN_TEMPORARY = r"(?P<folder>\{tmp\}|\{other-trial\}/tmp)/(?P<name>[\w.@+-]+)";
    /// Homes of people.
    HOME = r"(?P<before>^|file://|[^\w.{}/-])(?:/home/[\w.-]+|/Users/[\w.-]+|/root)(?P<after>/|\W|$)";
    UUID = r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b";
    /// Ids as models and agents make them.
    ID = r"\b(?:toolu|srvtoolu|call|msg|ses|sess|req|resp|chatcmpl|thread|turn)[_-](?P<rest>[A-Za-z0-9_-]{8,})";
    PORT = r"(?P<host>\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0)|\[::1?\]):\d{2,5}\b";
    /// A port that the system gave, in prose: from those it gives where nobody names one.
    LISTENING = r"(?i)(?P<word>\bport[ =:]{1,2})(?P<port>\d{5})\b";
    PID = r#"(?i)(?P<word>\bp?pids?['"`]?[ =:#(]{1,3})\d+\b"#;
    /// A process by its number; `process 42 files` tells of something else.
    PROCESS = r"(?i)(?P<word>\bprocess(?: id)?[ =:#(]{1,2})\d{2,10}\b(?P<next> (?P<what>[a-z]+))?";
    FOLDER_OF_PROCESS = r"(?P<word>^|[^\w.{}])/proc/\d+\b";
    /// What signals are sent to: `kill 4711`, `kill -9 4711 4712`, `kill -s TERM -- -4711`. A job is `%1`.
    KILL = r"\b(?P<word>kill(?:\s+(?:-s\s+\w+|-n\s+\d+|-[A-Za-z]\w*|-\d{1,2}|--|%\w+|\$\S+))*)(?P<pids>(?:\s+-?\d{2,10}\b)+)";
    /// Programs that look at a process.
    LOOK_AT = r"\b(?P<word>(?:ps|lsof|strace|gdb|pmap|pgrep|pkill|pidstat|renice|top)\b[^;|&\n]*?\s-[pP]\s?)(?P<pids>\d{2,10}(?:,\d{2,10})*)\b";
    NUMBER = r"\d+";
    /// What was measured, as programs tell it in parts: `1m12s`, `1h 5m`, `0m0.123s`, `2 minutes and 3 seconds`.
    DURATIONS = r"(?P<before>^|[^\w.])(?P<days>\d+ ?(?:d|days?))?(?P<hours>(?:,? )?(?:and )?\d+ ?(?:h|hrs?|hours?))?(?P<minutes>(?:,? )?(?:and )?\d+ ?(?:m|mins?|minutes?))?(?P<seconds>(?:,? )?(?:and )?\d+(?:\.\d+)? ?(?:s|secs?|seconds?))?\b";
    ELAPSED = r"(?i)(?P<word>\b(?:elapsed|took|duration)(?: time)?[ :=(]{1,3})\d{1,3}:[0-5]\d(?:\.\d+)?(?P<after>[^\w:]|$)";
    DURATION = r"(?P<before>^|[^\w.])\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|secs?|seconds?|milliseconds?|mins?|minutes?|h|hrs?|hours?)\b";
    VERSION = r"\bv?(?P<numbers>\d+(?:\.\d+){2,})(?:[-+][0-9A-Za-z.-]+)?\b";
}

/// What differs by chance in any text; in prose versions, durations and addresses, too.
pub fn replaced<'t>(text: &'t str, prose: bool, trials: &Trials, templates: &Templates) -> Cow<'t, str> {
    // Little of it is without a digit: folders, names in them, and hashes that are letters alone.
    let letters = || text.as_bytes().windows(7).any(|bytes| bytes.iter().all(|b| (b'a'..=b'f').contains(b)));
    if !text.bytes().any(|b| b.is_ascii_digit() || b == b'/') && !letters() {
        return Cow::Borrowed(text);
    }
    let text = trials.replaced(text);
    let text = and(text, &TEMPORARY, |found| format!("{}{{tmp}}{}", &found["before"], &found["after"]));
    let text =
        and(text, &IN_TEMPORARY, |found| format!("{}/{}", &found["folder"], templates.without_chance(&found["name"])));
    // The agent of a trial has a home of its own, and this is none of it.
    let home = if trials.is_private() { "{user-home}" } else { "{home}" };
    let text = and(text, &HOME, |found| format!("{}{home}{}", &found["before"], &found["after"]));
    let text = and(text, &UUID, |_| "{uuid}".to_owned());
    let text = and(text, &ID, |found| if mixed(&found["rest"]) { "{id}".to_owned() } else { found[0].to_owned() });
    let text = hashes::replaced(text, prose);
    let text = times::replaced(text, prose);
    let text = processes(text);
    let text = and(text, &PORT, |found| format!("{}:{{port}}", &found["host"]));
    if !prose {
        return text;
    }
    let text = and(text, &LISTENING, |found| {
        let given = found["port"].parse().is_ok_and(|port: u32| (32_768..=60_999).contains(&port));
        if given { format!("{}{{port}}", &found["word"]) } else { found[0].to_owned() }
    });
    let text = and(text, &ELAPSED, |found| format!("{}{{duration}}{}", &found["word"], &found["after"]));
    let text = and(text, &DURATIONS, |found| {
        // One part alone is known below, or is a number of something else.
        let parts = ["days", "hours", "minutes", "seconds"].iter().filter(|part| found.name(part).is_some()).count();
        if parts > 1 { format!("{}{{duration}}", &found["before"]) } else { found[0].to_owned() }
    });
    let text = and(text, &DURATION, |found| format!("{}{{duration}}", &found["before"]));
    // Four numbers are an address.
    and(text, &VERSION, |found| {
        if found["numbers"].matches('.').count() == 2 { "{version}".to_owned() } else { found[0].to_owned() }
    })
}

/// What may follow the number of a process.
const DOES: [&str; 16] = [
    "and",
    "at",
    "died",
    "does",
    "ended",
    "exited",
    "finished",
    "has",
    "in",
    "is",
    "on",
    "running",
    "started",
    "still",
    "terminated",
    "was",
];

fn processes(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = and(text, &PID, |found| format!("{}{{pid}}", &found["word"]));
    let text = and(text, &PROCESS, |found| {
        let next = found.name("next").map_or("", |next| next.as_str());
        let told = found.name("what").is_none_or(|what| DOES.contains(&what.as_str().to_lowercase().as_str()));
        if told { format!("{}{{pid}}{next}", &found["word"]) } else { found[0].to_owned() }
    });
    let text = and(text, &FOLDER_OF_PROCESS, |found| format!("{}/proc/{{pid}}", &found["word"]));
    let each = |found: &Captures<'_>| format!("{}{}", &found["word"], NUMBER.replace_all(&found["pids"], "{pid}"));
    // `kill -l 15` asks for the name of a signal.
    let text = and(text, &KILL, |found| if found["word"].ends_with("-l") { found[0].to_owned() } else { each(found) });
    and(text, &LOOK_AT, each)
}

/// The key of an argument says what a text or a number without anything around it is.
pub fn by_key(key: &str, text: &str) -> Option<&'static str> {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let all = |is: fn(&u8) -> bool| !text.is_empty() && text.bytes().all(|b| is(&b));
    match key.as_str() {
        "pid" | "ppid" | "processid" if all(u8::is_ascii_digit) => Some("{pid}"),
        "commit" | "commitid" | "commithash" | "commitsha" | "sha" | "sha1" | "sha256" | "hash" | "revision"
            if (7..=64).contains(&text.len()) && all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)) =>
        {
            Some("{hash}")
        }
        _ => None,
    }
}

/// Replaces each match by what is made of it.
pub fn and<'t>(text: Cow<'t, str>, pattern: &Regex, word: impl Fn(&Captures<'_>) -> String) -> Cow<'t, str> {
    between(text, pattern, |found, _, _| word(found))
}

/// The same, for who has to know what stands before and after.
pub fn between<'t>(
    text: Cow<'t, str>,
    pattern: &Regex,
    word: impl Fn(&Captures<'_>, Option<char>, Option<char>) -> String,
) -> Cow<'t, str> {
    let around = |found: &Captures<'_>| {
        let all = found.get(0)?;
        Some((text[..all.start()].chars().next_back(), text[all.end()..].chars().next()))
    };
    match pattern.replace_all(&text, |found: &Captures<'_>| {
        let (before, after) = around(found).unwrap_or_default();
        word(found, before, after)
    }) {
        Cow::Borrowed(_) => text,
        Cow::Owned(replaced) => Cow::Owned(replaced),
    }
}

/// Whether it holds digits and letters: a word and a figure are neither an id nor a hash.
pub fn mixed(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit()) && text.contains(|c: char| c.is_ascii_alphabetic())
}

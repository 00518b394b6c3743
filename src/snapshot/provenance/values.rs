//! Finds the values of random forms in a tool's output, with their forms and in order.
//!
//! The meaning of a bare number or a plain word follows from the words around it, or from the command that
//! produced the output: a number that `echo $!` prints is a process, a name that `docker ps` prints may be
//! generated.

use std::ops::Range;

use regex::Regex;

use super::forms::Form;
use super::signs::Signs;
use super::temporary;
use super::times::{self, Span};
use super::words::{is_hash, is_hex, is_number, is_random, is_ulid, may_be_random, segments, words};

patterns! {
    UUID = r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    ADDRESS = r"\b0x[0-9a-fA-F]{5,16}\b";
    /// Words before a hash in git's output.
    COMMIT = r"(?m)(?:\b(?i:commits?|sha1?|sha256|HEAD is now at|HEAD detached at|HEAD position was|switching to)['\x22]?[ =:(]{1,3}['\x22`(]?|\(was |\bMerge: |\b(?:index|Updating) |^\[[\w./-]+(?: HEAD)?(?: \(root-commit\))? |\b[0-9a-f]{7,40}\.{2,3}|-\d+-g)(?P<hash>[0-9a-f]{7,40}|[0-9a-f]{64})\b";
    /// The hash before the dots of a range of commits.
    RANGE = r"\b(?P<hash>[0-9a-f]{7,40})\.{2,3}[0-9a-f]{7,40}\b";
    /// An address of a server with its port.
    HOST_PORT = r"(?:\b(?:localhost|host\.docker\.internal|\d{1,3}(?:\.\d{1,3}){3})|\[[0-9a-f:]*\]|\*|::):(?P<port>\d{4,5})\b";
    /// A port under a key. Fixed ports of configurations have fewer digits.
    PORT = r#"(?i)\bports?["']?(?:\s?[=:#]\s?|\s)["']?(?P<port>\d{5})\b"#;
    LISTENING = r"(?i)\b(?:listen|serv|bound|bind)\w*[^\n]{0,60}?(?:[: ]|on )(?P<port>\d{4,5})\b";
    PID = r#"(?i)\bp{1,2}id["'`]?\s{0,2}(?:[=:#(]\s{0,2})?["']?(?P<pid>\d{1,10})\b"#;
    PROCESS = r"(?i)\bprocess(?: id)?[ =:#(]{1,2}(?P<pid>\d{1,10})\b";
    OF_PROCESS = r"/proc/(?P<pid>\d{1,10})\b";
    /// A shell's line about a job in the background.
    JOB = r"(?m)^\[\d+\][+-]?\s+(?P<pid>\d{1,10})\s*$";
    /// A key before an id.
    KEYED = r#"(?i)\b(?:[\w-]*(?:id|token|key|session|job|task|request|run|build|name|container|handle|cursor))["']?(?:\s?[:=#]\s?|\s)["'`]?(?P<id>[A-Za-z0-9][A-Za-z0-9_-]{5,63})"#;
    /// A long number under the key of an id.
    LONG_NUMBER = r#"(?i)\b[\w-]*id["']?\s?[:=#]\s?["']?(?P<id>\d{15,20})\b"#;
    /// A generated name of a container engine, as the last word of a line or as a value: `sleepy_turing`,
    /// `sleepy_turing3`.
    CONTAINER_NAME = r#"(?m)(?:^|[\s"'/])(?P<name>[a-z]{3,20}_[a-z]{3,20}\d?)["']?,?[ \t\r]*$"#;
    /// Git's hashes without a keyword before them: at the beginning of a line of a log, after the name of a branch
    /// (`git branch -v`), or after the first word of a line (`git worktree list`).
    GIT_LINE = r"(?m)(?:^[*|/\\ _<>+-]*|^[*+ ] \S+[ \t]+|^\S+[ \t]+)(?P<hash>[0-9a-f]{7,40})(?:[ \t\r]|$)";
    USES_GIT = r"\b(?:git|hg|jj|svn)\b";
    USES_CONTAINERS = r"\b(?:docker|podman|nerdctl)\b";
    SHOWS_PIDS = r"\$!|\$\$|\$BASHPID|\b(?:pgrep|pidof|fuser|getpid|ps)\b|\blsof\b[^;|&\n]*\s-\w*t|\.pid\b|\bpid\b";
    SHOWS_PORTS = r"(?i)port|\bbind\b|socket|listen";
}

/// A value in an output.
pub type Value<'t> = (Form, &'t str);

/// Returns the values of an output, in order; a value may occur several times. `command` produced the output, as far as
/// known.
pub fn in_output<'t>(output: &'t str, command: &str) -> Vec<Value<'t>> {
    let spans = spans(output, command);
    let mut values = Vec::with_capacity(spans.len());
    let mut end = 0;
    for (range, form) in spans {
        if range.start < end {
            continue;
        }
        end = range.end;
        let text = &output[range];
        values.push((form, text));
        if form == Form::Time {
            // An agent may use the day or the clock alone.
            let mut parts = Vec::new();
            times::parts(text, &mut parts);
            values.extend(parts.into_iter().map(|(range, form)| (form, &text[range])));
        }
    }
    values
}

/// Returns the places of the values; a value that begins first, or was found first, covers those that overlap with it.
fn spans(output: &str, command: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let signs = Signs::of(output);
    let mut all =
        |pattern: &Regex, form: Form| spans.extend(pattern.find_iter(output).map(|found| (found.range(), form)));
    if may_hold_uuid(output) {
        all(&UUID, Form::Uuid);
    }
    if signs.has("0x") {
        all(&ADDRESS, Form::Address);
    }
    times::times(&signs, output, &mut spans);
    temporary::names(output, command, &mut spans);
    by_context(&signs, output, &mut spans);
    by_command(output, command, &mut spans);
    times::seconds_since_1970(&signs, output, &mut spans);
    if USES_GIT.is_match(command) {
        of_git(output, &mut spans);
    }
    by_themselves(output, USES_CONTAINERS.is_match(command), &mut spans);
    times::durations(output, &mut spans);
    // The sort is stable: of two values that begin at one place, the first found counts.
    spans.sort_by_key(|span| span.0.start);
    spans
}

/// A pattern whose group is a value, with its word and form and the condition under which it applies.
type InContext<'p> = (&'p Regex, &'static str, Form, fn(&Signs<'_>) -> bool);

fn in_context() -> [InContext<'static>; 11] {
    [
        (&COMMIT, "hash", Form::Hash, |signs| signs.hex >= 7),
        (&RANGE, "hash", Form::Hash, |signs| signs.hex >= 7 && signs.has("..")),
        // A port is a number in ASCII digits.
        (&HOST_PORT, "port", Form::Port, |signs| signs.figures >= 4 && signs.has(":")),
        (&PORT, "port", Form::Port, |signs| signs.figures >= 5 && signs.has_any_case("port")),
        (&LISTENING, "port", Form::Port, |signs| signs.figures >= 4),
        (&JOB, "pid", Form::Pid, |signs| signs.has("[")),
        (&PID, "pid", Form::Pid, |signs| signs.has_any_case("pid")),
        (&PROCESS, "pid", Form::Pid, |signs| signs.has_any_case("proce")),
        (&OF_PROCESS, "pid", Form::Pid, |signs| signs.has("/proc/")),
        // A number of this length, and no other, is an id without letters.
        (&LONG_NUMBER, "id", Form::Id, |signs| signs.figures >= 15 && signs.has_any_case("id")),
        (&KEYED, "id", Form::Id, |signs| signs.id),
    ]
}

fn by_context(signs: &Signs<'_>, output: &str, spans: &mut Vec<Span>) {
    for (pattern, group, form, may_match) in in_context() {
        if may_match(signs) {
            of_context(pattern, group, form, output, spans);
        }
    }
}

fn of_context(pattern: &Regex, group: &str, form: Form, output: &str, spans: &mut Vec<Span>) {
    for found in pattern.captures_iter(output).filter_map(|found| found.name(group)) {
        let text = found.as_str();
        let holds = match form {
            Form::Port => is_port(text),
            Form::Id => {
                text.len() >= 15 && is_number(text)
                    || segments(text, 0..text.len()).any(|part| may_be_random(&text[part]))
            }
            _ => true,
        };
        if holds {
            spans.push((found.range(), form));
        }
    }
}

/// Returns true for a port that a program can listen on without being root.
fn is_port(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|port| (1024..=65_535).contains(&port))
}

/// Adds bare numbers and names whose meaning follows from the command.
fn by_command(output: &str, command: &str, spans: &mut Vec<Span>) {
    if USES_CONTAINERS.is_match(command) {
        let names = CONTAINER_NAME.captures_iter(output).filter_map(|found| found.name("name"));
        spans.extend(names.map(|name| (name.range(), Form::Name)));
    }
    let (pids, ports) = (SHOWS_PIDS.is_match(command), SHOWS_PORTS.is_match(command));
    let table = output.contains("PID");
    if !pids && !ports && !table {
        return;
    }
    let any = command.contains("$!") || command.contains("$$");
    let mut columns: Vec<usize> = Vec::new();
    let mut start = 0;
    for line in output.split_inclusive('\n') {
        let at = |word: &str| start + (word.as_ptr() as usize - line.as_ptr() as usize);
        let of = |word: &str, form| (at(word)..at(word) + word.len(), form);
        let parts = || line.split_whitespace();
        if table && line.contains("PID") {
            columns = parts().enumerate().filter(|(_, word)| matches!(*word, "PID" | "PPID")).map(|(n, _)| n).collect();
        } else if !columns.is_empty() {
            let of_columns = parts().enumerate().filter(|(n, word)| columns.contains(n) && is_number(word));
            spans.extend(of_columns.map(|(_, word)| of(word, Form::Pid)));
        } else if pids {
            let bare = parts().take(if any { 8 } else { 1 }).filter(|word| is_number(word) && word.len() <= 10);
            spans.extend(bare.map(|word| of(word, Form::Pid)));
        } else if ports {
            spans.extend(
                Some(line.trim()).filter(|word| is_number(word) && is_port(word)).map(|word| of(word, Form::Port)),
            );
        }
        start += line.len();
    }
}

/// Adds the hashes in the places where git prints hashes; elsewhere a number is a number.
fn of_git(output: &str, spans: &mut Vec<Span>) {
    for found in GIT_LINE.captures_iter(output).filter_map(|found| found.name("hash")) {
        spans.push((found.range(), Form::Hash));
    }
}

/// Adds the values that are recognised by their form alone, without a keyword before them.
fn by_themselves(output: &str, containers: bool, spans: &mut Vec<Span>) {
    for word in words(output) {
        let random: Vec<Range<usize>> =
            segments(output, word.clone()).filter(|part| is_strong(&output[part.clone()])).collect();
        for part in segments(output, word.clone()) {
            let text = &output[part.clone()];
            let lower_hex = || is_hex(text) && !text.contains(|c: char| c.is_ascii_uppercase());
            let named = containers && matches!(text.len(), 12 | 64) && lower_hex();
            let form = if is_ulid(text) {
                Form::Id
            } else if is_hash(text) || named {
                Form::Hash
            // `web-6d4cf56db6-x2x7k`: beside a random part, a shorter part is random, too.
            } else if is_random(text) || (!random.is_empty() && !random.contains(&part) && is_weak(text)) {
                Form::Id
            } else {
                continue;
            };
            spans.push((part, form));
        }
    }
}

fn is_strong(segment: &str) -> bool {
    is_random(segment) || is_hash(segment)
}

/// Returns true if a segment could be the end of a Kubernetes name: five characters, without vowels.
fn is_weak(segment: &str) -> bool {
    segment.len() == 5 && segment.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b))
}

/// Returns false if a text is too short for a UUID.
fn may_hold_uuid(text: &str) -> bool {
    text.len() >= 36
}

pub fn uuids(text: &str) -> impl Iterator<Item = Range<usize>> {
    UUID.find_iter(text).map(|found| found.range())
}

/// Returns true if an id was generated: a chosen word may be a word of the task.
pub fn is_generated(id: &str) -> bool {
    may_hold_uuid(id) && UUID.is_match(id)
        || segments(id, 0..id.len()).any(|part| is_ulid(&id[part.clone()]) || may_be_random(&id[part]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts of which many hold a value, and many nearly do.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "[0-9a-f]{3,9}",
            "[0-9]{1,16}",
            "[A-Za-z0-9]{1,9}",
            "[a-z0-9_-]{50,70}",
            prop::sample::select(vec![
                "pid",
                "PID",
                "ppid",
                "process",
                "Proceſſ",
                "/proc/",
                "port",
                "listen",
                "bound",
                "localhost:",
                "127.0.0.1:",
                "id",
                "key",
                "toKen",
                "to\u{212a}en",
                "commit ",
                "index ",
                "..",
                "...",
                ": ",
                " = ",
                "#",
                "[",
                "]",
                "\n",
                " ",
                "\"",
                "'",
                "0x",
                "-g",
                "\u{e9}",
                "\u{17f}",
                "\u{661}\u{662}\u{663}",
                "\u{2192}",
                "time",
                "at",
                "T",
                "-",
                ":",
                ",",
                ".",
                "/",
                "ms",
                "Nov",
                "May",
                "2026-11-22",
                "10:17:10",
                "1795342630",
                "22 Nov 2026",
                "11/22/2026",
                "s",
                " s",
                "mins",
                "h",
            ])
            .prop_map(str::to_owned),
        ];
        prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        #[test]
        fn no_fact_excludes_a_value(text in texts()) {
            let signs = Signs::of(&text);
            for (pattern, group, form, may_match) in in_context() {
                let mut found = Vec::new();
                of_context(pattern, group, form, &text, &mut found);
                prop_assert!(found.is_empty() || may_match(&signs), "{pattern} in {text:?}: {found:?}");
            }
            prop_assert!(!ADDRESS.is_match(&text) || signs.has("0x"), "{text:?}");
            times::tests::no_fact_excludes_a_time(&text)?;
        }
    }
}

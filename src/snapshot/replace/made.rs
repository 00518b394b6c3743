//! Names of temporary files and folders: which of them a program made up, and which somebody gave.

use std::collections::HashSet;

use regex::Regex;

use super::chances::patterns;

patterns! {
    /// What Python makes of nothing, and what Rust does.
    TMP = r"^(?P<given>tmp)[a-z0-9_]{8}(?P<end>(?:\.\w+)*)$|^(?P<hidden>\.tmp)[A-Za-z0-9]{6}$";
    /// A name somebody gave with something at its end, which may be made up.
    TAIL = r"^(?P<given>.*[._-])(?P<tail>[A-Za-z0-9]{4,16})(?P<end>(?:\.[a-z0-9]{1,5})?)$";
    /// The same with eight signs as Python takes them.
    LOW = r"^(?P<given>.*?[._-])(?P<tail>[a-z0-9_]{8})(?P<end>(?:\.[a-z0-9]{1,5})?)$";
    /// A name with many figures at its end, as Go makes them.
    FIGURES = r"^(?P<given>.*?[A-Za-z._-])\d{7,}(?P<end>(?:\.\w+)?)$";
    /// What a program says of such a name.
    TOLD = r"/(?:tmp|T|shm)(?:/[\w.@+-]+){0,3}?/(?P<name>[\w.@+-]*[._-][A-Za-z0-9_]{6,16}(?:\.[a-z0-9]{1,5})?)";
    /// What `mktemp` is told: a name whose last Xs are replaced.
    TEMPLATE = r"(?P<given>[\w.@+-]*?)(?P<signs>X{3,})(?P<end>[\w.-]*)";
    /// The beginning of a name, as `mkdtemp` is told it.
    BEGINNING = r#"['"](?:[^'"\s]*/)?(?P<given>[\w.@+-]*[._-])['"]"#;
}

/// Names in temporary folders, as a program tells them, that may be made up. What is looked for is bounded by the caller.
pub fn names_in(text: &str) -> impl Iterator<Item = &str> {
    TOLD.captures_iter(text).filter_map(|found| Some(found.name("name")?.as_str()))
}

/// What stands for the part that was made up.
const WORD: &str = "{made}";

/// What a session shows of how names are made.
#[derive(Debug, Default)]
pub struct Templates {
    /// The agent has written down how, and so they are known to the letter.
    patterns: Vec<Regex>,
    /// What a program told first, before the agent named it.
    told: HashSet<String>,
}

/// More are not looked for.
const MOST: usize = 64;
/// What is given of a name is not longer than a name may be.
const LONGEST: usize = 255;

impl Templates {
    /// Takes those that a text holds.
    pub fn learn(&mut self, text: &str) {
        if text.contains("XXX") {
            for found in TEMPLATE.captures_iter(text) {
                let signs = found["signs"].len();
                self.add(&found["given"], &format!("[A-Za-z0-9]{{{signs}}}"), &found["end"]);
            }
        }
        if text.contains("mkdtemp") || text.contains("mkstemp") {
            for found in BEGINNING.captures_iter(text) {
                self.add(&found["given"], "(?:[A-Za-z0-9]{6}|[a-z0-9_]{8})", "");
            }
        }
    }

    /// Takes a name that a program told before anybody else did.
    pub fn told(&mut self, name: &str) {
        self.told.insert(name.to_owned());
    }

    fn add(&mut self, given: &str, signs: &str, end: &str) {
        if given.len().max(end.len()) > LONGEST {
            return;
        }
        let pattern = format!("^(?P<given>{}){signs}(?P<end>{})$", regex::escape(given), regex::escape(end));
        if self.patterns.len() < MOST && !self.patterns.iter().any(|known| known.as_str() == pattern) {
            self.patterns.extend(Regex::new(&pattern));
        }
    }

    /// A name in a temporary folder, without what was made up.
    pub fn without_chance(&self, name: &str) -> String {
        // The template itself is what somebody gave.
        let shown = self.patterns.iter().filter(|_| !name.contains("XXX")).find_map(|known| known.captures(name));
        if let Some(found) = shown {
            return format!("{}{WORD}{}", &found["given"], &found["end"]);
        }
        if let Some(found) = TMP.captures(name) {
            let given = found.name("given").or_else(|| found.name("hidden")).map_or("", |it| it.as_str());
            return format!("{given}{WORD}{}", found.name("end").map_or("", |it| it.as_str()));
        }
        // A plain word may be a name all the same.
        let told = |tail: &str| self.told.contains(name) && tail.contains(|c: char| !c.is_ascii_lowercase());
        for pattern in [&*TAIL, &*LOW] {
            let is_made =
                |found: &regex::Captures<'_>| looks_made(&found["tail"]) || is_of_mktemp(found) || told(&found["tail"]);
            if let Some(found) = pattern.captures(name).filter(is_made) {
                return format!("{}{WORD}{}", &found["given"], &found["end"]);
            }
        }
        match FIGURES.captures(name) {
            Some(found) => format!("{}{WORD}{}", &found["given"], &found["end"]),
            None => name.to_owned(),
        }
    }
}

/// `tmp.Ab12Cd9xYz`: nobody calls a thing `tmp` and says more with signs of every kind.
fn is_of_mktemp(found: &regex::Captures<'_>) -> bool {
    let tail = &found["tail"];
    let upper = tail.contains(|c: char| c.is_ascii_uppercase());
    let other = tail.contains(|c: char| !c.is_ascii_uppercase());
    let figure = tail.contains(|c: char| c.is_ascii_digit());
    &found["given"] == "tmp." && (upper && other || tail.len() == 10 && (upper || figure))
}

/// Whether nobody would give such a name: `Ab12Cd` and `AbCdEf`, but not `markdown`, `FooBar`, `test123` or `sha256sum`.
fn looks_made(tail: &str) -> bool {
    let has = |is: fn(&char) -> bool| tail.chars().any(|c| is(&c));
    let (upper, lower, figure) =
        (has(char::is_ascii_uppercase), has(char::is_ascii_lowercase), has(char::is_ascii_digit));
    let runs = runs(tail);
    let longest = runs.iter().filter(|run| run.0 != Sign::Figure).map(|run| run.1).max().unwrap_or(0);
    // A word, or one with a number behind it.
    let words = runs.split_last().map_or(&[][..], |(last, rest)| if last.0 == Sign::Figure { rest } else { &runs[..] });
    match (upper, lower, figure) {
        (true, true, _) if words.iter().any(|run| run.0 == Sign::Figure) => true,
        (true, true, _) => !is_of_words(words),
        (true, false, true) => words.iter().any(|run| run.0 == Sign::Figure) && tail.len() >= 6,
        (false, true, true) => {
            let figures = tail.bytes().filter(u8::is_ascii_digit).count();
            match tail.len() {
                8 => runs.len() >= 3 && longest <= 3,
                6 | 10 => runs.len() >= 3 && (figures >= 2 || runs.len() >= 4),
                _ => false,
            }
        }
        _ => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Upper,
    Lower,
    Figure,
}

/// The kinds of sign that follow each other, with how many of each.
fn runs(text: &str) -> Vec<(Sign, usize)> {
    let mut runs: Vec<(Sign, usize)> = Vec::new();
    for c in text.chars().filter(char::is_ascii_alphanumeric) {
        let sign = match c {
            'A'..='Z' => Sign::Upper,
            'a'..='z' => Sign::Lower,
            _ => Sign::Figure,
        };
        match runs.last_mut().filter(|last| last.0 == sign) {
            Some(last) => last.1 += 1,
            None => runs.push((sign, 1)),
        }
    }
    runs
}

/// Whether letters are one or two words, such as `MyRepo` and `fooBar`, or `Rmd` behind a point.
fn is_of_words(runs: &[(Sign, usize)]) -> bool {
    use Sign::{Lower, Upper};
    let long = |count: &usize| *count >= 2;
    match runs {
        [(Lower, _)] | [(Upper, _)] => true,
        [(Upper, 1), (Lower, _)] => true,
        [(Lower, _), (Upper, 1), (Lower, last)] | [(Upper, 1), (Lower, _), (Upper, 1), (Lower, last)] => long(last),
        _ => false,
    }
}

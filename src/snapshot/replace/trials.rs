//! The private folders of trials, as paths and as names made of paths: those of this trial, and those of others.

use std::borrow::Cow;

use regex::Captures;

use super::chances::{and, patterns};

patterns! {
    /// Private folders of this program.
    TRIAL = r"(?:\{tmp\}|(?:/[\w.@+-]+)*)/evals-run-(?P<run>[\w-]+)/trial-(?P<trial>\w+)(?:/(?P<folder>workspace|home|tmp)\b)?";
    /// What a run has beside its trials.
    RUN = r"/evals-run-\d+-\d+\b";
    /// The same in the name of one file: agents make them of their working folder, with another sign for `/`.
    NAME = r"(?:[_-]+|%2[Ff])?evals[_-]run[_-](?P<run>\d+[_-]\d+)(?:[_/-]|%2[Ff])trial[_-](?P<trial>[A-Za-z0-9]{6})(?:(?:[_/-]|%2[Ff])(?P<folder>workspace|home|tmp)(?P<after>[^A-Za-z0-9]|$))?";
    /// What such a name begins with: the system's folders for files that live for a while.
    ROOT = r"(?:private(?:[_-]|%2[Ff]))?(?:var[_-]folders[_-]\w+[_-][\w-]+[_-]T|var%2[Ff]folders%2[Ff]\w+%2[Ff]\w+%2[Ff]T|var(?:[_-]|%2[Ff])tmp|tmp|dev(?:[_-]|%2[Ff])shm)$";
}

/// The roots that are looked for before a name are not longer.
const LONGEST_ROOT: usize = 256;

/// Which trial a Trace is of, where its working folder is a private one.
#[derive(Debug, Default)]
pub struct Trials {
    /// The run's name and the trial's.
    own: Option<(String, String)>,
    /// The folder that runs lie in, as names have it; the longest first.
    roots: Vec<String>,
}

impl Trials {
    /// By the working folder that the header tells.
    pub fn of(cwd: &str) -> Self {
        let Some(found) = TRIAL.captures(cwd) else { return Self::default() };
        let before = cwd.find("/evals-run-").map_or("", |at| &cwd[..at]);
        let both = [before.to_owned(), format!("/private{before}")];
        let names = both.iter().filter(|_| before.len() > 1).flat_map(|root| names_of(root));
        let mut roots: Vec<String> = names.map(|root| without_signs_before(&root).to_owned()).collect();
        roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        roots.dedup();
        Self { own: Some((found["run"].to_owned(), found["trial"].to_owned())), roots }
    }

    /// Whether this Trace is of a trial, so that homes of people are none of its folders.
    pub fn is_private(&self) -> bool {
        self.own.is_some()
    }

    /// Folders of trials become words: what is another trial's is told from what is this one's.
    pub fn replaced<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if !text.contains("evals") {
            return Cow::Borrowed(text);
        }
        let text = and(Cow::Borrowed(text), &TRIAL, |found| self.word(found));
        let text = self.names(text);
        and(text, &RUN, |_| "/evals-run-{made}".to_owned())
    }

    fn word(&self, found: &Captures<'_>) -> String {
        let folder = found.name("folder").map(|folder| folder.as_str());
        let run = found["run"].replace('_', "-");
        let own = self.own.as_ref().is_none_or(|own| own.0 == run && own.1 == found["trial"]);
        match (own, folder) {
            (true, folder) => format!("{{{}}}", folder.unwrap_or("trial")),
            (false, Some(folder)) => format!("{{other-trial}}/{folder}"),
            (false, None) => "{other-trial}".to_owned(),
        }
    }

    fn names<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let mut out = String::new();
        let mut done = 0;
        for found in NAME.captures_iter(&text) {
            let Some(all) = found.get(0) else { continue };
            let after = found.name("after");
            let end = after.map_or(all.end(), |after| after.start());
            // A longer word is not what this program names a trial.
            if after.is_none() && text[end..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
                continue;
            }
            out.push_str(self.without_root(&text[done..all.start()]));
            out.push_str(&self.word(&found));
            done = end;
        }
        if done == 0 {
            return text;
        }
        out.push_str(&text[done..]);
        Cow::Owned(out)
    }

    /// What stands before a name, without the folder that runs lie in.
    fn without_root<'t>(&self, before: &'t str) -> &'t str {
        // What goes on before it is a part of what somebody gave.
        let whole = |rest: &'t str| {
            let rest = without_signs_behind(rest);
            Some(rest).filter(|rest| !rest.ends_with(|c: char| c.is_alphanumeric()))
        };
        if let Some(rest) = self.roots.iter().find_map(|root| whole(before.strip_suffix(root.as_str())?)) {
            return rest;
        }
        let mut from = before.len().saturating_sub(LONGEST_ROOT);
        while !before.is_char_boundary(from) {
            from += 1;
        }
        ROOT.find(&before[from..]).and_then(|root| whole(&before[..from + root.start()])).unwrap_or(before)
    }
}

/// A name of a path without what stands for its first slash, which some leave out and some double.
fn without_signs_before(name: &str) -> &str {
    let name = name.trim_start_matches(['-', '_']);
    name.strip_prefix("%2F").or_else(|| name.strip_prefix("%2f")).unwrap_or(name)
}

fn without_signs_behind(text: &str) -> &str {
    let text = text.trim_end_matches(['-', '_']);
    text.strip_suffix("%2F").or_else(|| text.strip_suffix("%2f")).unwrap_or(text)
}

/// A path as agents make one name of it: every sign but letters and figures, or the slashes alone, by another.
pub fn names_of(path: &str) -> Vec<String> {
    let all = |sign: char| path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { sign }).collect::<String>();
    let slashes = |sign: &str| path.replace('/', sign);
    let encoded = |slash: &str| path.replace('%', "%25").replace(' ', "%20").replace('/', slash);
    let mut names = vec![all('-'), all('_'), slashes("-"), slashes("_"), encoded("%2F"), encoded("%2f")];
    names.sort();
    names.dedup();
    names
}

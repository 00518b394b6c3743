//! Finds the folders that the engine made for a trial, as paths and as the names that agents derive from paths.

use std::borrow::Cow;
use std::ops::Range;

use aho_corasick::AhoCorasick;

/// The folders of one trial.
#[derive(Debug, Default)]
pub struct Folders {
    /// The paths and names of the folders, each with its placeholder, such as `{workspace}`. The longest comes first.
    known: Vec<(String, &'static str)>,
    found: Option<AhoCorasick>,
    /// True if the folder belongs to a trial, so that names made of its path cannot be words.
    private: bool,
}

impl Folders {
    /// Returns the folders that a working directory names: a trial's `home` and `tmp` are beside its `workspace`.
    pub fn of(cwd: &str) -> Self {
        let cwd = cwd.trim_end_matches('/');
        if cwd.len() <= 1 {
            return Self::default();
        }
        let trial =
            cwd.strip_suffix("/workspace").filter(|trial| trial.contains("/evals-run-") && trial.contains("/trial-"));
        let mut paths: Vec<(String, &'static str)> = vec![(cwd.to_owned(), "{workspace}")];
        if let Some(trial) = trial {
            paths.push((format!("{trial}/home"), "{home}"));
            paths.push((format!("{trial}/tmp"), "{tmp}"));
            paths.push((trial.to_owned(), "{trial}"));
            if let Some((run, _)) = trial.rsplit_once('/') {
                paths.push((run.to_owned(), "{run}"));
                // The folder that contains the runs, unless it is a usual temporary folder, which agents also name on
                // their own.
                let outer = run.rsplit_once('/').map_or("", |(outer, _)| outer);
                let usual = ["", "/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp"].contains(&outer);
                paths.extend((!usual).then(|| (outer.to_owned(), "{tmpdir}")));
            }
        }
        let mut known = Vec::new();
        for (path, word) in paths {
            for path in [format!("/private{path}"), path] {
                known.extend(names_of(&path).into_iter().map(|name| (name, word)));
                // A name made of a path may lack the character for its first slash, or repeat it.
                if let Some(rest) = path.strip_prefix('/').filter(|_| trial.is_some()) {
                    known.extend(names_of(rest).into_iter().map(|name| (name, word)));
                }
                known.push((path, word));
            }
            if let Some(at) = path_from_run(trial, cwd, word) {
                known.extend(names_of(&at).into_iter().map(|name| (name, word)));
            }
        }
        known.sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        known.dedup();
        let found = AhoCorasick::new(known.iter().map(|it| &it.0)).ok();
        Self { known, found, private: trial.is_some() }
    }

    /// Returns the places of the folders in a text, without overlaps.
    pub fn in_text(&self, text: &str) -> Vec<(Range<usize>, Cow<'static, str>)> {
        let Some(found) = &self.found else { return Vec::new() };
        let mut spans: Vec<(Range<usize>, Cow<'static, str>)> = Vec::new();
        let mut from = 0;
        for start in
            found.find_overlapping_iter(text).map(|found| found.start()).collect::<std::collections::BTreeSet<_>>()
        {
            if start < from {
                continue;
            }
            let longest =
                self.known.iter().find(|(name, _)| text[start..].starts_with(name) && self.stands(text, start, name));
            if let Some((name, word)) = longest {
                // The signs before a name may be the end of the previous one.
                let begin = self.with_signs_before(text, start, name).max(from);
                from = start + name.len();
                spans.push((begin..from, Cow::Borrowed(*word)));
            }
        }
        spans
    }

    /// Returns true if the name is not a part of a longer name: `/work` is not in `/workshop`.
    fn stands(&self, text: &str, start: usize, name: &str) -> bool {
        let (before, after) = (text[..start].chars().next_back(), text[start + name.len()..].chars().next());
        let is_path = name.starts_with('/');
        let goes_on = |c: char| c.is_alphanumeric() || (is_path || !self.private) && matches!(c, '_' | '-');
        // A name made of a path may be a word or an option, unless it is a whole part of a path.
        let may_be_word = !self.private && name.starts_with(['-', '_']) && !matches!(before, Some('/' | '\\'));
        !after.is_some_and(goes_on) && !before.is_some_and(char::is_alphanumeric) && !may_be_word
    }

    fn with_signs_before(&self, text: &str, start: usize, name: &str) -> usize {
        if !self.private || name.contains('/') {
            return start;
        }
        let before = text[..start].trim_end_matches(['-', '_']);
        before.strip_suffix("%2F").or_else(|| before.strip_suffix("%2f")).unwrap_or(before).len()
    }
}

/// Returns a trial's folder from the name of its run on: agents omit parts of a path.
fn path_from_run(trial: Option<&str>, cwd: &str, word: &str) -> Option<String> {
    let at = trial?.find("/evals-run-")? + 1;
    let trial = &trial?[at..];
    match word {
        "{workspace}" => Some(cwd[at..].to_owned()),
        "{home}" => Some(format!("{trial}/home")),
        "{tmp}" => Some(format!("{trial}/tmp")),
        "{trial}" => Some(trial.to_owned()),
        _ => None,
    }
}

/// Returns the names that agents make of a path: all characters but letters and digits, or the slashes alone, are
/// replaced.
fn names_of(path: &str) -> Vec<String> {
    let all = |sign: char| path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { sign }).collect::<String>();
    let slashes = |sign: &str| path.replace('/', sign);
    let encoded = |slash: &str| path.replace('%', "%25").replace(' ', "%20").replace('/', slash);
    let mut names = vec![all('-'), all('_'), slashes("-"), slashes("_"), encoded("%2F"), encoded("%2f")];
    names.sort();
    names.dedup();
    names
}

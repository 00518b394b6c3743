//! Replaces what differs by chance in a text by a word for what it is: folders, ids, times, hashes, ports.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use self::made::Templates;
use self::trials::Trials;
use crate::case::Normalise;
use crate::trace::Header;

mod chances;
mod hashes;
mod made;
mod times;
mod trials;

pub use made::names_in;

/// Ids shorter than this would be found in words that have nothing to do with them.
const SHORTEST_ID: usize = 6;

/// What is replaced in the texts of one Trace.
pub struct Replacing<'a> {
    /// Texts that this Trace tells to differ by chance, with what stands for each.
    known: Option<(AhoCorasick, Vec<&'static str>)>,
    trials: Trials,
    /// How the session makes names of temporary files.
    templates: Templates,
    rules: &'a [Normalise],
}

impl<'a> Replacing<'a> {
    /// For a Trace: its header tells the folders and the agent's version, `ids` are those of its calls and requests,
    /// `inputs` what its calls were told, and `told` names of temporary files that programs told first.
    pub fn new<'i>(
        header: &Header,
        ids: impl Iterator<Item = &'i str>,
        inputs: impl Iterator<Item = &'i Value>,
        told: impl Iterator<Item = &'i str>,
        rules: &'a [Normalise],
    ) -> Self {
        let mut known: Vec<(String, &'static str)> = Vec::new();
        let trials = header.cwd.as_deref().map(Trials::of).unwrap_or_default();
        if let Some(cwd) = header.cwd.as_deref().map(|cwd| cwd.trim_end_matches('/')).filter(|cwd| cwd.len() > 1) {
            for root in [cwd.to_owned(), format!("/private{cwd}")] {
                // The folders of a trial lie beside each other.
                if let Some(trial) = root.strip_suffix("/workspace").filter(|trial| trial.contains("/trial-")) {
                    known.push((format!("{trial}/home"), "{home}"));
                    known.push((format!("{trial}/tmp"), "{tmp}"));
                    known.push((trial.to_owned(), "{trial}"));
                    // The folders of all trials lie where the system has temporary files.
                    let outer = trial.rsplit_once("/trial-").and_then(|(run, _)| run.rsplit_once("/evals-run-"));
                    known.extend(outer.filter(|it| it.0.len() > 1).map(|it| (it.0.to_owned(), "{tmp}")));
                }
                // Names made of the paths of trials are known by how they look.
                if !trials.is_private() {
                    known.extend(trials::names_of(&root).into_iter().map(|name| (name, "{workspace}")));
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
        let known = automaton.ok().filter(|_| !known.is_empty()).map(|automaton| (automaton, words));
        let mut templates = Templates::default();
        inputs.for_each(|input| learn(input, &mut templates));
        told.for_each(|name| templates.told(name));
        Self { known, trials, templates, rules }
    }

    /// An argument of a call, or its title: what the agent chose stays.
    pub fn argument(&self, text: &str) -> String {
        self.with_rules(chances::replaced(&self.known_in(text), false, &self.trials, &self.templates).into_owned())
    }

    /// The same with the key that it stands under.
    pub fn argument_of(&self, key: &str, text: &str) -> String {
        match chances::by_key(key, text) {
            Some(word) => self.with_rules(word.to_owned()),
            None => self.argument(text),
        }
    }

    /// Prose: versions, durations and addresses go, too.
    pub fn prose(&self, text: &str) -> String {
        self.with_rules(chances::replaced(&self.known_in(text), true, &self.trials, &self.templates).into_owned())
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
            // A name made of a path may be a word or an option, where it is no whole part of a path.
            let is_name = text[found.range()].starts_with(['-', '_']) && !matches!(before, Some('/' | '\\'));
            if goes_on(after) || before.is_some_and(char::is_alphanumeric) || is_name {
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

/// Finds how names are made in all that a call was told.
fn learn(input: &Value, templates: &mut Templates) {
    match input {
        Value::String(text) => templates.learn(text),
        Value::Array(list) => list.iter().for_each(|it| learn(it, templates)),
        Value::Object(map) => map.values().for_each(|it| learn(it, templates)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;

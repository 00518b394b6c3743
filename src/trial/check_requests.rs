//! Searches an agent's requests to its model for the files that are laid for trials: the trial's own instruction file must
//! be there, and in an experiment the files of other arms must not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use super::Attempt;
use crate::text::first_chars;

/// A text to look for in the requests of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sought {
    what: Loadable,
    pub text: String,
}

/// The number of bytes from which on a part hardly occurs by chance.
const LONG: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Loadable {
    /// The description of a skill of another arm.
    Skill(String),
    /// The longest part of a prompt.
    Prompt,
    /// A part of the instruction file of another arm, by the arm's number. The agent's own instructions may have single parts of
    /// it, so only all of them together show the file.
    Instructions(usize),
    /// A part of the trial's own instruction file. All of them are required: an agent that cuts the file off, or has some of its
    /// lines in its own instructions, sends only some.
    OwnInstructions,
}

/// Returns the texts to look for. `workspace` is the workspace before the agent, whose instruction file may share lines
/// with those of the arms.
///
/// # Errors
/// Returns an error if the trial's own instruction file cannot be read.
pub(super) fn sought(attempt: &Attempt, workspace: &Path) -> io::Result<Vec<Sought>> {
    let case = &attempt.case;
    let laid = &case.overlay;
    let is_own = |name: &str| laid.skills.iter().any(|skill| skill.name == name);
    let of_arms = attempt.arms.iter().flat_map(|arms| &arms.skills);
    let described = of_arms.filter(|skill| !is_own(&skill.name)).filter_map(|skill| {
        let text = parts(skill.description.as_deref()?.trim(), &[]).find(|part| part.len() >= LONG)?.to_owned();
        Some(Sought { what: Loadable::Skill(skill.name.clone()), text })
    });
    let mut sought: Vec<Sought> = described.collect();
    let of_prompt = |prompt: &String| parts(prompt, &[]).max_by_key(|part| part.len()).map(str::to_owned);
    let prompts = case.turns.iter().filter_map(of_prompt).filter(|text| !text.is_empty());
    sought.extend(prompts.map(|text| Sought { what: Loadable::Prompt, text }));
    let own = laid.instructions.as_ref().map(|it| it.read()).transpose()?;
    let place = attempt.manifest.instructions.as_ref().and_then(|it| it.project.as_ref());
    let of_workspace = place.and_then(|place| fs::read(workspace.join(place)).ok());
    let of_workspace = of_workspace.as_deref().map(String::from_utf8_lossy);
    let mut known: Vec<&str> = case.turns.iter().map(String::as_str).chain(case.system_prompt.as_deref()).collect();
    let of_own = own.as_deref().map(|own| telling(&as_sent(own), &known)).unwrap_or_default();
    sought.extend(of_own.into_iter().map(|text| Sought { what: Loadable::OwnInstructions, text }));
    known.extend(own.as_deref().into_iter().chain(of_workspace.as_deref()));
    let of_arms = attempt.arms.iter().flat_map(|arms| &arms.instructions);
    for (arm, other) in of_arms.enumerate() {
        let of_other = Some(telling(&as_sent(other), &known)).filter(|parts| !parts.is_empty());
        let texts = of_other.unwrap_or_else(|| telling(other, &known));
        // Short parts alone occur by chance.
        if texts.iter().any(|text| text.len() >= LONG) {
            sought.extend(texts.into_iter().map(|text| Sought { what: Loadable::Instructions(arm), text }));
        }
    }
    Ok(sought)
}

/// Returns the reason if a trial does not have its files, or has those of another arm, by the texts that were found in the
/// requests. `complete` is true if the agent made requests and all of them were searched.
pub(super) fn wrong(sought: &[Sought], found: &BTreeSet<usize>, complete: bool) -> Option<String> {
    // Whether all parts of each arm's file were found.
    let (mut skills, mut others) = (Vec::new(), BTreeMap::new());
    let (mut has_own, mut missing) = (false, None);
    for (at, Sought { what, text }) in sought.iter().enumerate() {
        let is_found = found.contains(&at);
        match what {
            Loadable::Skill(name) => skills.extend(is_found.then(|| format!("`{name}`"))),
            Loadable::Prompt => {}
            Loadable::Instructions(arm) => *others.entry(arm).or_insert(true) &= is_found,
            Loadable::OwnInstructions if is_found => has_own = true,
            Loadable::OwnInstructions => missing = missing.or(Some(text)),
        }
    }
    if !skills.is_empty() {
        return Some(format!("the agent offers its model skills of another arm: {}", skills.join(", ")));
    }
    if others.into_values().any(|is_whole| is_whole) {
        return Some("a request of the agent to its model contains the instruction file of another arm".to_owned());
    }
    missing.filter(|_| complete).map(|missing| match has_own {
        true => format!(
            "the agent's requests to its model lack a part of the instruction file that was laid for the trial: `{missing}`"
        ),
        false => "no request of the agent to its model contains the instruction file that was laid for the trial".to_owned(),
    })
}

/// Returns the reason if no request contains a prompt, for a session with a turn in which the agent showed nothing.
pub(super) fn unsent_prompt(sought: &[Sought], found: &BTreeSet<usize>) -> Option<String> {
    let mut prompts = sought.iter().enumerate().filter(|(_, it)| it.what == Loadable::Prompt);
    let (_, Sought { text, .. }) = prompts.find(|(at, _)| !found.contains(at))?;
    Some(format!(
        "the agent showed nothing in a turn, and no request to its model contains the prompt `{text}`: it may have taken the prompt for a command of its own"
    ))
}

/// Returns the parts of an instruction file that each agent sends to its model: without the front matter and the HTML comments,
/// which Claude Code leaves out, and without `@path`, which Gemini CLI and Qwen Code replace by the file.
fn as_sent(text: &str) -> String {
    let text = without_comments(text);
    let mut kept = String::with_capacity(text.len());
    let mut pieces = text.split('@');
    kept.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        // The texts before and after a path are not one part.
        kept.push('\n');
        kept.push_str(piece.find(char::is_whitespace).map_or("", |end| &piece[end..]));
    }
    kept
}

/// Returns an instruction file without its front matter and its HTML comments.
fn without_comments(text: &str) -> String {
    let mut rest = without_front_matter(text);
    let mut kept = String::with_capacity(rest.len());
    while let Some((before, comment)) = rest.split_once("<!--") {
        kept.push_str(before);
        // The texts before and after a comment are not one part.
        kept.push('\n');
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

fn without_front_matter(text: &str) -> &str {
    let is_mark = |line: &str| line.trim_start_matches('\u{feff}').trim_end() == "---";
    let mut end = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        end += line.len();
        match (number, is_mark(line)) {
            (0, false) => return text,
            (0, true) | (_, false) => {}
            (_, true) => return &text[end..],
        }
    }
    text
}

/// Returns the parts of a text that are in none of the known ones, without those that are so short that almost any request
/// contains them. Of many parts, some are left out, but never the first and the last: an agent may cut the text off.
fn telling(text: &str, known: &[&str]) -> Vec<String> {
    const MIN_PART_BYTES: usize = 8;
    // Each request is searched for each part.
    const MAX_PARTS: usize = 100;
    let all: Vec<&str> = parts(text, known).filter(|part| part.len() >= MIN_PART_BYTES).collect();
    let step = |n: usize| n * (all.len() - 1) / (MAX_PARTS - 1);
    match all.len() > MAX_PARTS {
        true => (0..MAX_PARTS).map(|n| all[step(n)].to_owned()).collect(),
        false => all.into_iter().map(str::to_owned).collect(),
    }
}

/// Returns the beginnings of the parts of a text that are in none of the known ones. A part is within a line, and has only
/// characters that are the same in JSON, in XML and in templates.
fn parts<'a>(text: &'a str, known: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    const MAX_PART_CHARS: usize = 60;
    let is_plain = |c: char| c.is_alphanumeric() || " ,.-:;!?()/_=".contains(c);
    let parts = text.lines().flat_map(move |line| line.split(move |c: char| !is_plain(c)));
    let beginnings = parts.map(|part| {
        let part = part.trim_start_matches(|c: char| !c.is_alphanumeric());
        first_chars(part, MAX_PART_CHARS).trim_end()
    });
    beginnings.filter(move |part| !known.iter().any(|known| known.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_parts_are_not_very_short_and_in_no_known_text() {
        let text =
            "# Rules\n\n- Write the word in capital letters, always.\n- Run `make` before you answer the user.\n";
        assert_eq!(telling(text, &[]), ["Write the word in capital letters, always.", "before you answer the user."]);
        let known = ["Please: Write the word in capital letters, always."];
        assert_eq!(telling(text, &known), ["before you answer the user."]);
        assert_eq!(telling("Note: always answer in Latin, when the moon is full.", &[]).len(), 1);
        let short = "Be brief.\nAlways answer in Latin.\n";
        assert_eq!(telling(short, &[]), ["Be brief.", "Always answer in Latin."]);
        assert_eq!(telling("Hi\n", &[]), [""; 0]);
    }

    #[test]
    fn of_many_parts_the_first_and_the_last_are_looked_for() {
        let lines: Vec<String> = (0..701).map(|n| format!("The rule number {n}.")).collect();
        let found = telling(&lines.join("\n"), &[]);
        assert_eq!(found.len(), 100);
        assert_eq!([&found[0], &found[99]], ["The rule number 0.", "The rule number 700."]);
    }

    #[test]
    fn imports_are_left_out() {
        let of = |text: &str| telling(&as_sent(text), &[]);
        assert_eq!(of("Follow @docs/style.md and @docs/tests.md in each change."), ["in each change."]);
        assert_eq!(of("Use @acme/ui for all buttons of the page.\n@a"), ["for all buttons of the page."]);
    }

    #[test]
    fn comments_and_front_matter_are_left_out() {
        let comment = "<!-- Maintained by the platform team,\nsee the wiki -->\n- Use tabs.\n- Be brief.<!-- x";
        assert_eq!(without_comments(comment), "\n\n- Use tabs.\n- Be brief.\n");
        assert_eq!(without_comments("---\na: b\n---\nUse tabs.\n---\n"), "Use tabs.\n---\n");
        for whole in ["Use tabs.\n---\na: b\n---\n", "---\nUse tabs.\n", "Use <b> tabs -->", ""] {
            assert_eq!(without_comments(whole), whole);
        }
    }

    #[test]
    fn a_prompt_that_no_request_contains_is_named() {
        let of = |text: &str| Sought { what: Loadable::Prompt, text: text.to_owned() };
        let sought = [of("first"), of("third")];
        assert_eq!(unsent_prompt(&sought, &BTreeSet::from([0, 1])), None);
        assert!(unsent_prompt(&sought, &BTreeSet::from([0])).unwrap().contains("`third`"));
        assert_eq!(wrong(&sought, &BTreeSet::new(), true), None);
    }

    #[test]
    fn what_was_found_decides() {
        let of = |what| Sought { what, text: String::new() };
        let sought =
            [of(Loadable::OwnInstructions), of(Loadable::Instructions(0)), of(Loadable::Skill("a".to_owned()))];
        let wrong = |found: &[usize], complete| wrong(&sought, &found.iter().copied().collect(), complete);
        assert_eq!(wrong(&[0], true), None);
        assert_eq!(wrong(&[], false), None);
        assert!(wrong(&[], true).unwrap().starts_with("no request"));
        assert!(wrong(&[0, 1], true).unwrap().contains("another arm"));
        // Single parts may be in the agent's own instructions.
        let own = [of(Loadable::OwnInstructions), of(Loadable::OwnInstructions)];
        assert!(super::wrong(&own, &BTreeSet::from([1]), true).unwrap().contains("lack a part"));
        assert_eq!(super::wrong(&own, &BTreeSet::from([0, 1]), true), None);
        let others = [0, 0, 1].map(|arm| of(Loadable::Instructions(arm)));
        assert_eq!(super::wrong(&others, &BTreeSet::from([0]), true), None);
        assert!(super::wrong(&others, &BTreeSet::from([2]), true).unwrap().contains("another arm"));
        assert_eq!(wrong(&[0, 2], true).unwrap(), "the agent offers its model skills of another arm: `a`");
    }
}

//! Searches an agent's requests to its model for the files that are laid for trials: the trial's own instruction file must
//! be there, and in an experiment the files of other arms must not.

use std::collections::BTreeSet;
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

#[derive(Debug, Clone, PartialEq, Eq)]
enum Loadable {
    /// The description of a skill of another arm.
    Skill(String),
    /// A line of an instruction file of another arm.
    Instructions,
    /// A line of the trial's own instruction file. One of its lines is enough: agents may shorten the file.
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
        let text = telling(skill.description.as_deref()?.trim(), &[]).into_iter().next()?;
        Some(Sought { what: Loadable::Skill(skill.name.clone()), text })
    });
    let mut sought: Vec<Sought> = described.collect();
    let own = laid.instructions.as_ref().map(|it| it.read()).transpose()?;
    let place = attempt.manifest.instructions.as_ref().and_then(|it| it.project.as_ref());
    let of_workspace = place.and_then(|place| fs::read(workspace.join(place)).ok());
    let of_workspace = of_workspace.as_deref().map(String::from_utf8_lossy);
    let mut known: Vec<&str> = case.turns.iter().map(String::as_str).chain(case.system_prompt.as_deref()).collect();
    let of_own = own.as_deref().map(|own| telling_or_longest(&without_comments(own), &known)).unwrap_or_default();
    sought.extend(of_own.into_iter().map(|text| Sought { what: Loadable::OwnInstructions, text }));
    known.extend(own.as_deref().into_iter().chain(of_workspace.as_deref()));
    let of_arms = attempt.arms.iter().flat_map(|arms| &arms.instructions);
    // An agent that leaves the comments out shows only the rest.
    let of_other = |other: &str| [telling(&without_comments(other), &known), telling(other, &known)].concat();
    let others = of_arms.filter_map(|other| of_other(other).into_iter().next());
    sought.extend(others.map(|text| Sought { what: Loadable::Instructions, text }));
    Ok(sought)
}

/// Returns the reason if a trial does not have its files, or has those of another arm, by the texts that were found in the
/// requests. `complete` is true if the agent made requests and all of them were searched.
pub(super) fn wrong(sought: &[Sought], found: &BTreeSet<usize>, complete: bool) -> Option<String> {
    let (mut skills, mut others, mut own) = (Vec::new(), false, None);
    for (at, Sought { what, .. }) in sought.iter().enumerate() {
        match (what, found.contains(&at)) {
            (Loadable::Skill(name), true) => skills.push(format!("`{name}`")),
            (Loadable::Instructions, true) => others = true,
            (Loadable::OwnInstructions, is_found) => own = Some(is_found || own == Some(true)),
            (Loadable::Skill(_) | Loadable::Instructions, false) => {}
        }
    }
    if !skills.is_empty() {
        return Some(format!("the agent offers its model skills of another arm: {}", skills.join(", ")));
    }
    if others {
        return Some("a request of the agent to its model contains the instruction file of another arm".to_owned());
    }
    (complete && own == Some(false)).then(|| {
        "no request of the agent to its model contains the instruction file that was laid for the trial".to_owned()
    })
}

/// Returns an instruction file without its front matter and its HTML comments, which Claude Code does not send to its model.
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

/// Returns the first long parts of a text that are in none of the known ones. Short parts are left out, because they may
/// occur by chance.
fn telling(text: &str, known: &[&str]) -> Vec<String> {
    const LEAST: usize = 24;
    // Each request is searched for each part.
    const MOST: usize = 100;
    parts(text, known).filter(|part| part.len() >= LEAST).take(MOST).map(str::to_owned).collect()
}

/// Returns the long parts of a text that are in none of the known ones, or else the longest part. A text whose parts are
/// all very short is not looked for: almost any request contains such parts.
fn telling_or_longest(text: &str, known: &[&str]) -> Vec<String> {
    const LEAST: usize = 8;
    let long = telling(text, known);
    if !long.is_empty() {
        return long;
    }
    let longest = parts(text, known).max_by_key(|part| part.len()).filter(|part| part.len() >= LEAST);
    longest.map(str::to_owned).into_iter().collect()
}

/// Returns the beginnings of the parts of a text that are in none of the known ones. A part is within a line, and has only
/// characters that are the same in JSON, in XML and in templates.
fn parts<'a>(text: &'a str, known: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    const MOST: usize = 60;
    let is_plain = |c: char| c.is_alphanumeric() || " ,.-:;!?()/_=".contains(c);
    let parts = text.lines().flat_map(move |line| line.split(move |c: char| !is_plain(c)));
    let beginnings = parts.map(|part| {
        let part = part.trim_start_matches(|c: char| !c.is_alphanumeric());
        first_chars(part, MOST).trim_end()
    });
    beginnings.filter(move |part| !known.iter().any(|known| known.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_telling_line_is_long_and_in_no_known_text() {
        let text =
            "# Rules\n\n- Write the word in capital letters, always.\n- Run `make` before you answer the user.\n";
        assert_eq!(telling(text, &[]), ["Write the word in capital letters, always.", "before you answer the user."]);
        let known = ["Please: Write the word in capital letters, always."];
        assert_eq!(telling(text, &known), ["before you answer the user."]);
        assert_eq!(telling("Note: always answer in Latin, when the moon is full.", &[]).len(), 1);
    }

    #[test]
    fn a_short_text_is_looked_for_by_its_longest_part() {
        assert_eq!(telling_or_longest("Be brief.\nAlways answer in Latin.\n", &[]), ["Always answer in Latin."]);
        assert_eq!(telling_or_longest("Always answer in Latin.\n", &["Hello. Always answer in Latin."]), [""; 0]);
        assert_eq!(telling_or_longest("Hi\n", &[]), [""; 0]);
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
    fn what_was_found_decides() {
        let of = |what| Sought { what, text: String::new() };
        let sought = [of(Loadable::OwnInstructions), of(Loadable::Instructions), of(Loadable::Skill("a".to_owned()))];
        let wrong = |found: &[usize], complete| wrong(&sought, &found.iter().copied().collect(), complete);
        assert_eq!(wrong(&[0], true), None);
        assert_eq!(wrong(&[], false), None);
        assert!(wrong(&[], true).unwrap().starts_with("no request"));
        assert!(wrong(&[0, 1], true).unwrap().contains("another arm"));
        let two = [of(Loadable::OwnInstructions), of(Loadable::OwnInstructions)];
        assert_eq!(super::wrong(&two, &BTreeSet::from([1]), true), None);
        assert_eq!(wrong(&[0, 2], true).unwrap(), "the agent offers its model skills of another arm: `a`");
    }
}

//! Searches an agent's requests to its model for the files that the arms of an experiment lay: the files of the trial's
//! own arm must be there, and the files of other arms must not.

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
    /// A line of the trial's own instruction file.
    OwnInstructions,
}

/// Returns the texts to look for. `workspace` is the workspace before the agent, whose instruction file may share lines
/// with those of the arms. Nothing is looked for outside an experiment.
///
/// # Errors
/// Returns an error if the trial's own instruction file cannot be read.
pub(super) fn sought(attempt: &Attempt, workspace: &Path) -> io::Result<Vec<Sought>> {
    let Some(arms) = &attempt.arms else { return Ok(Vec::new()) };
    let case = &attempt.case;
    let laid = &case.overlay;
    let is_own = |name: &str| laid.skills.iter().any(|skill| skill.name == name);
    let described = arms.skills.iter().filter(|skill| !is_own(&skill.name)).filter_map(|skill| {
        let text = telling(skill.description.as_deref()?.trim(), &[])?;
        Some(Sought { what: Loadable::Skill(skill.name.clone()), text })
    });
    let mut sought: Vec<Sought> = described.collect();
    let own = laid.instructions.as_ref().map(|it| it.read()).transpose()?;
    let place = attempt.manifest.instructions.as_ref().and_then(|it| it.project.as_ref());
    let of_workspace = place.and_then(|place| fs::read(workspace.join(place)).ok());
    let of_workspace = of_workspace.as_deref().map(String::from_utf8_lossy);
    let mut known: Vec<&str> = case.turns.iter().map(String::as_str).chain(case.system_prompt.as_deref()).collect();
    if let Some(text) = own.as_deref().and_then(|own| telling(own, &known)) {
        sought.push(Sought { what: Loadable::OwnInstructions, text });
    }
    known.extend(own.as_deref().into_iter().chain(of_workspace.as_deref()));
    let others = arms.instructions.iter().filter_map(|other| telling(other, &known));
    sought.extend(others.map(|text| Sought { what: Loadable::Instructions, text }));
    Ok(sought)
}

/// Returns the reason if a trial does not have the settings of its arm, by the texts that were found in the requests.
/// `complete` is true if the agent made requests and all of them were searched.
pub(super) fn wrong(sought: &[Sought], found: &BTreeSet<usize>, complete: bool) -> Option<String> {
    let (mut skills, mut others, mut absent) = (Vec::new(), false, false);
    for (at, Sought { what, .. }) in sought.iter().enumerate() {
        match (what, found.contains(&at)) {
            (Loadable::Skill(name), true) => skills.push(format!("`{name}`")),
            (Loadable::Instructions, true) => others = true,
            (Loadable::OwnInstructions, false) => absent = complete,
            _ => {}
        }
    }
    if !skills.is_empty() {
        return Some(format!("the agent offers its model skills of another arm: {}", skills.join(", ")));
    }
    if others {
        return Some("a request of the agent to its model contains the instruction file of another arm".to_owned());
    }
    absent.then(|| {
        "no request of the agent to its model contains the instruction file that was laid for the trial".to_owned()
    })
}

/// Returns the beginning of the first line that is in a text and in none of the known ones. Agents escape and wrap text in ways of
/// their own, but not letters and simple punctuation. A short beginning is left out, because it may occur by chance.
fn telling(text: &str, known: &[&str]) -> Option<String> {
    const LEAST: usize = 24;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | ',' | '.' | '-');
    let beginnings = text.lines().map(|line| {
        let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let end = line.find(|c| !plain(c)).unwrap_or(line.len());
        first_chars(&line[..end], 60).trim_end()
    });
    let mut long = beginnings.filter(|it| it.len() >= LEAST);
    long.find(|it| !known.iter().any(|known| known.contains(it))).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_telling_line_is_long_and_in_no_known_text() {
        let text =
            "# Rules\n\n- Write the word in capital letters, always.\n- Run `make` before you answer the user.\n";
        assert_eq!(telling(text, &[]).unwrap(), "Write the word in capital letters, always.");
        let known = ["Please: Write the word in capital letters, always."];
        assert_eq!(telling(text, &known), None);
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
        assert_eq!(wrong(&[0, 2], true).unwrap(), "the agent offers its model skills of another arm: `a`");
    }
}

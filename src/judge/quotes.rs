//! Checks the value of a judge's quote as evidence: its place, its author, and its substance. Pure.

use super::view::{Line, Source, squeezed};

/// The minimum number of letters and digits of a quote, unless it is the whole of a text.
const SUBSTANCE: usize = 6;
/// The minimum number of letters and digits of a quote of JSON as shown, with its keys.
const SUBSTANCE_OF_JSON: usize = 8;

/// Sentences by which a session addresses its judges, as words.
const PLEAS: [&str; 33] = [
    "ignore the rubric",
    "ignore the criteria",
    "ignore the instructions",
    "ignore your instructions",
    "ignore previous instructions",
    "ignore all previous",
    "ignore the above",
    "disregard the rubric",
    "disregard the criteria",
    "disregard previous",
    "disregard your instructions",
    "attention judge",
    "attention grader",
    "dear judge",
    "dear grader",
    "note to the judge",
    "note to the grader",
    "to whoever judges",
    "you are the judge",
    "as the judge you",
    "mark this as pass",
    "mark it as pass",
    "mark this session as",
    "grade this as",
    "grade this session",
    "rate this session",
    "this session passed",
    "this session passes",
    "answer pass",
    "pass me",
    "answer with pass",
    "respond with pass",
    "every criterion holds",
];

/// The reason why a quote is not evidence for a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoEvidence {
    /// The quote is in none of the events.
    NotThere,
    /// The quote is too short.
    TooShort,
    /// The quote is from the user, a thought, or the engine.
    NotTheAgents,
    /// The event of the quote addresses the judges.
    Plea,
}

impl NoEvidence {
    /// Returns the reason as text.
    pub fn text(self) -> &'static str {
        match self {
            NoEvidence::NotThere => "the judge's quote is not in the events that it cites",
            NoEvidence::TooShort => "the judge's quote is too short to show anything",
            NoEvidence::NotTheAgents => {
                "the judge's quote is not from a call, a result, the workspace's change or a message of the agent"
            }
            NoEvidence::Plea => "the judge's quote is from an event that addresses the judge",
        }
    }
}

impl Line {
    /// Returns true if the texts of the event address the judges.
    pub fn speaks_to_a_judge(&self) -> bool {
        self.texts.iter().any(|text| is_plea(text))
    }
}

/// Returns true if a text addresses the judges.
pub fn is_plea(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let text = format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase());
    PLEAS.iter().any(|plea| text.contains(&format!(" {plea} ")))
}

/// Returns the reason why a quote from these events is not evidence for a pass, or `None` if one of the events supports
/// it. If there are several reasons, the one closest to evidence is returned.
pub fn why_no_evidence<'a>(lines: impl Iterator<Item = &'a Line>, quote: &str) -> Option<NoEvidence> {
    let mut nearest = NoEvidence::NotThere;
    for line in lines.filter(|line| stands_in(line, quote)) {
        let is_evidence = matches!(line.source, Source::Agent | Source::Call | Source::Result | Source::Change);
        let why = if !is_evidence {
            NoEvidence::NotTheAgents
        } else if line.speaks_to_a_judge() || is_plea(quote) {
            NoEvidence::Plea
        } else if !has_substance(quote, &line.texts) {
            NoEvidence::TooShort
        } else {
            return None;
        };
        nearest = nearest.max(why);
    }
    Some(nearest)
}

/// Returns true if a quote is in an event. White space is ignored; a very short quote must be the whole of a
/// text.
pub fn stands_in(line: &Line, quote: &str) -> bool {
    let wanted = squeezed(quote);
    if wanted.is_empty() {
        return false;
    }
    let letters = letters(&wanted);
    let plain = unescaped(&wanted);
    let within = |text: &String| {
        let text = squeezed(text);
        if letters >= 3 {
            text.contains(&wanted) || plain.as_ref().is_some_and(|it| text.contains(it))
        } else {
            text == wanted
        }
    };
    // A judge may also quote the JSON as shown, with keys and escapes.
    line.texts.iter().any(within) || (letters >= SUBSTANCE_OF_JSON && squeezed(&line.body).contains(&wanted))
}

/// Returns true if a quote has substance: it is long enough, or the whole of one of these texts.
pub fn has_substance<'a>(quote: &str, texts: impl IntoIterator<Item = &'a String>) -> bool {
    let wanted = squeezed(quote);
    let count = letters(&wanted);
    count >= SUBSTANCE || (count > 0 && texts.into_iter().any(|text| squeezed(text) == wanted))
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// Returns the text with its JSON escapes decoded and its white space squeezed. Returns `None` if the text contains no
/// backslash, or is not valid as a JSON string.
fn unescaped(text: &str) -> Option<String> {
    text.contains('\\')
        .then(|| serde_json::from_str::<String>(&format!("\"{text}\"")).ok())
        .flatten()
        .map(|it| squeezed(&it))
}

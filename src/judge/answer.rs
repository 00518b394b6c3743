//! The answer of a judge to a rubric: its form, and which parts are trusted. Pure.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::criteria::Criterion;
use super::prompt;
use super::view::ShownSession;
use crate::grade::judge_record::CriterionFinding;
use crate::grade::judge_record::CriterionVerdict;
use crate::text::first_chars;

/// The answer as written. Unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    criteria: Vec<Written>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    criterion: String,
    verdict: CriterionVerdict,
    #[serde(default)]
    value: Option<f64>,
    events: Vec<u64>,
    quote: String,
    reason: String,
}

/// The maximum number of events in a finding.
const EVENTS: usize = 50;
/// The maximum number of characters kept of a quote or a reason.
const CHARACTERS: usize = 4000;

/// Returns the JSON Schema of an answer to these criteria.
pub fn schema(criteria: &[Criterion]) -> Value {
    let ids: Vec<&str> = criteria.iter().map(|criterion| criterion.id.as_str()).collect();
    let mut properties = json!({
        "criterion": {"type": "string", "enum": ids},
        "reason": {"type": "string", "description": "why, in a sentence or two"},
        "events": {"type": "array", "items": {"type": "integer"}, "description": "`seq` of the events it rests on"},
        "quote": {"type": "string", "description": "some words of one of these events, letter by letter; for a pass of a call, a result, the workspace's change or a message of the agent"},
        "verdict": {"type": "string", "enum": ["pass", "fail", "unknown"]},
    });
    let mut required = vec!["criterion", "reason", "events", "quote", "verdict"];
    if criteria.iter().any(Criterion::wants_value) {
        properties["value"] = json!({
            "anyOf": [{"type": "number"}, {"type": "null"}], "description": "points, or the number, where asked for"
        });
        required.push("value");
    }
    json!({
        "type": "object",
        "properties": {"criteria": {"type": "array", "items": {
            "type": "object", "properties": properties, "required": required, "additionalProperties": false
        }}},
        "required": ["criteria"],
        "additionalProperties": false
    })
}

/// Parses an answer: one JSON object, alone or in one fence, with each criterion once.
///
/// # Errors
/// Returns an error if the form of the answer is invalid. No part of it counts then.
pub fn read(text: &str, criteria: &[Criterion]) -> Result<Answer, String> {
    let answer: Answer = parsed(text)?;
    for criterion in criteria {
        let times = answer.criteria.iter().filter(|written| written.criterion == criterion.id).count();
        if times != 1 {
            return Err(format!("criterion `{}` is answered {times} times", criterion.id));
        }
    }
    match answer.criteria.iter().find(|written| !criteria.iter().any(|it| it.id == written.criterion)) {
        Some(unknown) => Err(format!("unknown criterion `{}`", first_chars(&unknown.criterion, 60))),
        None => Ok(answer),
    }
}

/// Parses the JSON value that a text consists of, alone or in one fence.
pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    match unfenced(text) {
        "" => Err("it is empty".to_owned()),
        json => serde_json::from_str(json).map_err(|error| error.to_string()),
    }
}

/// Returns the content of a single fence around all of a text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```"));
    inner.and_then(|inner| inner.strip_suffix("```")).map_or(text, str::trim)
}

impl Answer {
    /// Returns true if the answer passes any criterion, regardless of its evidence.
    pub fn passes_any(&self) -> bool {
        self.criteria.iter().any(|written| written.verdict == CriterionVerdict::Pass)
    }

    /// Returns the findings in the order of the criteria, checked against the events that were shown.
    pub fn findings(self, criteria: &[Criterion], shown: &ShownSession) -> Vec<CriterionFinding> {
        let mut written: Vec<Option<Written>> = self.criteria.into_iter().map(Some).collect();
        let of = |criterion: &Criterion| {
            let mine = written.iter_mut().find(|it| it.as_ref().is_some_and(|it| it.criterion == criterion.id))?;
            mine.take().map(|written| checked(written, criterion, shown))
        };
        criteria.iter().filter_map(of).collect()
    }
}

fn checked(written: Written, criterion: &Criterion, shown: &ShownSession) -> CriterionFinding {
    let void = why_void(&written, criterion, shown);
    let Written { criterion, verdict, value, mut events, quote, reason } = written;
    events.truncate(EVENTS);
    let [quote, reason] = [quote, reason].map(|text| first_chars(&text, CHARACTERS).to_owned());
    let verdict = if void.is_some() { CriterionVerdict::Unknown } else { verdict };
    let value = value.filter(|_| void.is_none() && verdict != CriterionVerdict::Unknown);
    CriterionFinding { criterion, verdict, value, evidence: events, quote, reason, void }
}

/// Returns the reason why a finding is not trusted. Absence can be evidence for a fail, but not for a pass.
fn why_void(written: &Written, criterion: &Criterion, shown: &ShownSession) -> Option<String> {
    if written.verdict == CriterionVerdict::Unknown {
        return None;
    }
    if let Some(event) = written.events.iter().find(|seq| !shown.lines.iter().any(|line| line.seq == **seq)) {
        return Some(format!("the judge cites event {event}, which was not shown"));
    }
    if criterion.wants_value() {
        let Some(value) = written.value else { return Some("the judge gives no value".to_owned()) };
        match criterion.verdict_of(value) {
            None => return Some(format!("the judge's value {value} is not allowed")),
            Some(by_value) if by_value != written.verdict => {
                return Some(format!(
                    "the judge's verdict is {}, but its value {value} is a {}",
                    written.verdict.word(),
                    by_value.word()
                ));
            }
            Some(_) => {}
        }
    }
    let says_nothing = written.quote.trim().is_empty();
    match written.verdict {
        CriterionVerdict::Pass if written.events.is_empty() => {
            Some("the judge passes it without citing an event".to_owned())
        }
        CriterionVerdict::Pass if says_nothing => Some("the judge passes it without a quote".to_owned()),
        CriterionVerdict::Pass => why_no_pass(written, criterion, shown),
        _ if says_nothing => None,
        _ if written.events.iter().any(|seq| shown.quotes(*seq, &written.quote)) => None,
        _ => Some("the judge's quote is not in the events that it cites".to_owned()),
    }
}

/// Returns why a pass with a quote is not trusted: the quote must be from the agent's actions, and nothing may
/// have been too long to be shown, since the omitted part could contain anything.
fn why_no_pass(written: &Written, criterion: &Criterion, shown: &ShownSession) -> Option<String> {
    if let Some(why) = shown.why_no_evidence(&written.events, &written.quote) {
        return Some(why.text().to_owned());
    }
    if prompt::is_instruction(&written.quote, criterion) {
        return Some("the judge's quote repeats the judge's own instructions".to_owned());
    }
    let too_long = shown.too_long.as_ref()?;
    Some(format!(
        "the judge passes it without having seen the whole session ({too_long}); `characters` sets how much of a long \
         session is shown"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::judge::view::{Rules, Show, View};
    use crate::trace::{Body, Event, Message, Role};

    fn criteria() -> Vec<Criterion> {
        let of = |id: &str| Criterion {
            id: id.to_owned(),
            ask: "Is it?".to_owned(),
            scale: None,
            number: None,
            weight: 1.0,
            required: false,
        };
        vec![of("a"), of("b")]
    }

    fn shown(texts: &[String]) -> ShownSession {
        let mut view = View::new(Rules { show: vec![Show::Closing], characters: 10_000 });
        for (text, seq) in texts.iter().zip(0..) {
            // Every third event is the user's.
            let role = if seq % 3 == 2 { Role::User } else { Role::Agent };
            let message = Message { role, text: text.clone(), attachments: Vec::new() };
            view.event(&Event { seq, at_ms: 0, body: Body::Message(message), parent: None, host: false });
        }
        view.finish(true, None)
    }

    fn word() -> impl Strategy<Value = String> {
        prop_oneof![Just("pass"), Just("fail"), Just("unknown")].prop_map(str::to_owned)
    }

    proptest! {
        /// Whatever a judge answers, every passed criterion quotes an event that was shown, and every criterion has
        /// one finding.
        #[test]
        fn a_pass_always_quotes_what_was_shown(
            texts in prop::collection::vec("[a-d ]{0,12}", 0..6),
            answers in prop::collection::vec((word(), prop::collection::vec(0..6_u64, 0..3), "[a-d ]{0,9}"), 2),
        ) {
            let (criteria, shown) = (criteria(), shown(&texts));
            let list: Vec<Value> = criteria.iter().zip(&answers).map(|(criterion, (verdict, events, quote))| {
                json!({"criterion": criterion.id, "verdict": verdict, "events": events, "quote": quote, "reason": ""})
            }).collect();
            let answer = read(&json!({"criteria": list}).to_string(), &criteria).unwrap();
            let findings = answer.findings(&criteria, &shown);
            prop_assert_eq!(findings.len(), criteria.len());
            for finding in findings.iter().filter(|it| it.verdict == CriterionVerdict::Pass) {
                let stands_in = |seq: &&u64| **seq % 3 != 2 && shown.quotes(**seq, &finding.quote);
                prop_assert!(finding.evidence.iter().any(|seq| stands_in(&seq)), "{finding:?} {texts:?}");
            }
        }

        /// Any text is parsed or refused without a panic.
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
            prop_assert!(read(&text, &criteria()).is_err());
        }
    }
}

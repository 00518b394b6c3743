//! Describes the differences of a shape from an accepted one: one entry for each call or item. Pure.

use serde::{Deserialize, Serialize};
use similar::DiffOp;

use super::form::range_text;
use super::{Body, Call, Item, Range, Shape, align};
use crate::difference;

/// The kind of a difference: an item was added, removed or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// Not in the accepted shape.
    Added,
    /// Only in the accepted shape.
    Removed,
    /// The entry is in both, with differences.
    Changed,
}

impl Sign {
    /// Returns the sign of the line.
    pub fn mark(self) -> char {
        match self {
            Sign::Added => '+',
            Sign::Removed => '-',
            Sign::Changed => '~',
        }
    }
}

/// A difference between a trial and an accepted shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Difference {
    /// The kind: the item was added, removed or changed.
    pub sign: Sign,
    /// The place: `step 3`, numbered as in the trial; for a removed item as in the accepted shape.
    pub place: String,
    /// The item: `execute Bash`, `says`, `stop`.
    pub what: String,
    /// The parts: all parts of an added or removed item, only the differing parts of a changed one.
    pub lines: Vec<DifferentLine>,
    /// `seq` of its events in the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<u64>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferentLine {
    /// `+`, `-`, or a blank for a line in both.
    pub mark: char,
    /// The text of the line, without the mark.
    pub text: String,
}

impl Difference {
    /// Returns the difference on one line, for a reason.
    pub fn sentence(&self) -> String {
        let word = match self.sign {
            Sign::Added => "added",
            Sign::Removed => "missing",
            Sign::Changed => "changed",
        };
        let lines: Vec<String> =
            self.lines.iter().map(|line| format!("{} {}", line.mark, line.text).trim().to_owned()).collect();
        let lines = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join("; ")) };
        format!("{}: {} {word}{lines}", self.place, self.what)
    }
}

/// The differences, and the amount that matches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundDifferences {
    /// The differences, in order.
    pub differences: Vec<Difference>,
    /// The number of calls and other items that are equal.
    pub same: usize,
}

/// Compares a shape with an accepted one.
pub fn differences(accepted: &Shape, now: &Shape) -> FoundDifferences {
    let mut found = FoundDifferences::default();
    items(&accepted.items, &now.items, "", &mut found);
    for (what, accepted, now) in
        [("tokens", accepted.tokens, now.tokens), ("output tokens", accepted.output_tokens, now.output_tokens)]
    {
        if let (Some(accepted), Some(now)) = (accepted, now)
            && !within(accepted, now)
        {
            let lines = vec![
                DifferentLine { mark: '-', text: range_text(accepted) },
                DifferentLine {
                    mark: '+',
                    text: format!("{}, which is not between half and twice the accepted figure", range_text(now)),
                },
            ];
            found.differences.push(Difference {
                sign: Sign::Changed,
                place: "usage".to_owned(),
                what: what.to_owned(),
                lines,
                events: Vec::new(),
            });
        }
    }
    found
}

/// A line of an outline: an item of a shape in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlined {
    /// The place, as in [`Difference::place`].
    pub place: String,
    /// The calls of a step with their first details, or the item and the first line of its text.
    pub what: String,
}

/// Returns the items of a shape in short, in their order.
pub fn outline(shape: &Shape) -> Vec<Outlined> {
    let call = |call: &Call| match call.details.first() {
        Some((key, text)) => format!("{} ({key}: {})", call.title(), text.lines().next().unwrap_or_default()),
        None => call.title(),
    };
    let what = |item: &Item| match &item.body {
        Body::Step(calls) => calls.iter().map(call).collect::<Vec<_>>().join(", "),
        body => format!("{} {}", word(body), text_of(body).lines().next().unwrap_or_default()).trim_end().to_owned(),
    };
    let places = places(&shape.items, "");
    places.into_iter().zip(&shape.items).map(|(place, item)| Outlined { place, what: what(item) }).collect()
}

/// The absolute difference up to which figures count as equal.
const SLACK: u64 = 200;

/// Returns true if a figure is within bounds: at least half of the accepted minimum and at most twice the
/// accepted maximum, or no more than [`SLACK`] outside of the accepted range.
fn within(accepted: Range, now: Range) -> bool {
    let least = (accepted.least / 2).min(accepted.least.saturating_sub(SLACK));
    let most = accepted.most.saturating_mul(2).max(accepted.most.saturating_add(SLACK));
    now.least >= least && now.most <= most
}

/// Returns the places of the items of a list, with numbered steps and turns.
fn places(items: &[Item], above: &str) -> Vec<String> {
    let (mut steps, mut turns) = (0, 0);
    let place = |item: &Item| match item.body {
        Body::Step(_) => {
            steps += 1;
            format!("{above}step {steps}")
        }
        Body::User(_) => {
            turns += 1;
            format!("{above}turn {turns}")
        }
        Body::Stop(..) => format!("{above}end"),
        _ if steps == 0 => format!("{above}before step 1"),
        _ => format!("{above}after step {steps}"),
    };
    items.iter().map(place).collect()
}

fn items(old: &[Item], new: &[Item], above: &str, found: &mut FoundDifferences) {
    let (old_places, new_places) = (places(old, above), places(new, above));
    let place = |places: &[String], n: usize| places.get(n).cloned().unwrap_or_default();
    for (n, m) in align::items(old, new) {
        match (n.and_then(|n| Some((n, old.get(n)?))), m.and_then(|m| Some((m, new.get(m)?)))) {
            (Some((_, one)), Some((m, other))) => both(one, other, &place(&new_places, m), found),
            (Some((n, one)), None) => alone(one, Sign::Removed, &place(&old_places, n), found),
            (None, Some((m, other))) => alone(other, Sign::Added, &place(&new_places, m), found),
            (None, None) => {}
        }
    }
}

fn both(old: &Item, new: &Item, place: &str, found: &mut FoundDifferences) {
    match (&old.body, &new.body) {
        (Body::Step(a), Body::Step(b)) => {
            for (n, m) in align::calls(a, b) {
                match (n.and_then(|n| a.get(n)), m.and_then(|m| b.get(m))) {
                    (Some(one), Some(other)) => call(one, other, place, found),
                    (Some(one), None) => call_alone(one, Sign::Removed, place, found),
                    (None, Some(other)) => call_alone(other, Sign::Added, place, found),
                    (None, None) => {}
                }
            }
        }
        (a, b) if a == b => found.same += 1,
        (a, b) => {
            let mut lines = Vec::new();
            changed_text("", &text_of(a), &text_of(b), &mut lines);
            found.differences.push(Difference {
                sign: Sign::Changed,
                place: place.to_owned(),
                what: word(b).to_owned(),
                lines,
                events: new.events.clone(),
            });
        }
    }
}

fn alone(item: &Item, sign: Sign, place: &str, found: &mut FoundDifferences) {
    if let Body::Step(calls) = &item.body {
        return calls.iter().for_each(|call| call_alone(call, sign, place, found));
    }
    let mut lines = Vec::new();
    whole("", &text_of(&item.body), sign.mark(), &mut lines);
    let (place, what, events) = (place.to_owned(), word(&item.body).to_owned(), now_events(sign, &item.events));
    found.differences.push(Difference { sign, place, what, lines, events });
}

fn call_alone(call: &Call, sign: Sign, place: &str, found: &mut FoundDifferences) {
    let mut lines = Vec::new();
    for (key, text) in &call.details {
        whole(key, text, sign.mark(), &mut lines);
    }
    let (what, events) = (call.title(), now_events(sign, &call.events));
    found.differences.push(Difference { sign, place: place.to_owned(), what, lines, events });
    for item in &call.inner {
        alone(item, sign, &format!("{place}, its agent"), found);
    }
}

/// Returns the events in the trial, which a removed item does not have.
fn now_events(sign: Sign, events: &[u64]) -> Vec<u64> {
    if sign == Sign::Removed { Vec::new() } else { events.to_vec() }
}

fn call(old: &Call, new: &Call, place: &str, found: &mut FoundDifferences) {
    if old == new {
        found.same += 1;
        return;
    }
    let mut lines = Vec::new();
    let mut unmatched: Vec<&(String, String)> = new.details.iter().collect();
    for detail in &old.details {
        // For a call with two permission requests, the key of the answer occurs twice.
        let same = unmatched.iter().position(|other| *other == detail);
        let twin = same.or_else(|| unmatched.iter().position(|other| other.0 == detail.0));
        match (same, twin.map(|at| unmatched.remove(at))) {
            (Some(_), _) => {}
            (None, Some(other)) => changed_text(&detail.0, &detail.1, &other.1, &mut lines),
            (None, None) => whole(&detail.0, &detail.1, '-', &mut lines),
        }
    }
    unmatched.iter().for_each(|detail| whole(&detail.0, &detail.1, '+', &mut lines));
    if lines.is_empty() {
        found.same += 1;
    } else {
        found.differences.push(Difference {
            sign: Sign::Changed,
            place: place.to_owned(),
            what: new.title(),
            lines,
            events: new.events.clone(),
        });
    }
    items(&old.inner, &new.inner, &format!("{place}, its agent, "), found);
}

fn word(body: &Body) -> &'static str {
    match body {
        Body::User(_) => "user",
        Body::Says(_) => "says",
        Body::Thinks(_) => "thinks",
        Body::Plan(_) => "plan",
        Body::Step(_) => "step",
        Body::Stop(..) => "stop",
    }
}

fn text_of(body: &Body) -> String {
    match body {
        Body::User(text) => text.clone().unwrap_or_default(),
        Body::Says(text) | Body::Thinks(text) => text.clone(),
        Body::Plan(lines) => {
            lines.iter().map(|(status, text)| format!("{status}: {text}")).collect::<Vec<_>>().join("\n")
        }
        Body::Stop(reason, None) => reason.clone(),
        Body::Stop(reason, Some(detail)) => format!("{reason} {detail}"),
        Body::Step(_) => String::new(),
    }
}

/// Adds a whole value: after its key, or as lines below it.
fn whole(key: &str, text: &str, mark: char, lines: &mut Vec<DifferentLine>) {
    if !text.contains('\n') {
        let text = if key.is_empty() { text.to_owned() } else { format!("{key}: {text}") };
        lines.extend((!text.is_empty()).then_some(DifferentLine { mark, text }));
        return;
    }
    lines.extend((!key.is_empty()).then(|| DifferentLine { mark, text: format!("{key}:") }));
    lines.extend(text.split('\n').map(|part| DifferentLine { mark, text: format!("  {part}") }));
}

/// Adds the changed part of a value: of a text of several lines, only the different lines.
fn changed_text(key: &str, old: &str, new: &str, lines: &mut Vec<DifferentLine>) {
    if !(old.contains('\n') && new.contains('\n')) {
        whole(key, old, '-', lines);
        whole(key, new, '+', lines);
        return;
    }
    lines.extend((!key.is_empty()).then(|| DifferentLine { mark: ' ', text: format!("{key}:") }));
    // By `split`, as in `whole`: a line end that one of the texts lacks at its end is a difference.
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    for op in difference::between(&old, &new, None) {
        if !matches!(op, DiffOp::Equal { .. }) {
            let line = |mark| move |line: &&str| DifferentLine { mark, text: format!("  {line}") };
            lines.extend(old[op.old_range()].iter().map(line('-')));
            lines.extend(new[op.new_range()].iter().map(line('+')));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_end_that_only_one_text_has_at_its_end_is_shown() {
        let shown = |old: &str, new: &str| {
            let mut lines = Vec::new();
            changed_text("content", old, new, &mut lines);
            lines.iter().map(|line| format!("{}{}", line.mark, line.text)).collect::<Vec<_>>()
        };
        assert_eq!(shown("a\nb", "a\nb\n"), [" content:", "+  "]);
        assert_eq!(shown("a\nb\n", "a\nb"), [" content:", "-  "]);
        assert_eq!(shown("a\nb\n", "a\nc\n"), [" content:", "-  b", "+  c"]);
    }
}

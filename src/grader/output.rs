//! `output`: checks the final answer of the agent.

use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::files::why_no_file;
use super::{Evidence, Findings, GraderSpec, Needs, Observer};
use crate::grade::Grade;
use crate::reason_text;
use crate::secrets;
use crate::trace::Lost;
use crate::trace::{Body as EventBody, Event, Role};
use crate::values::Pattern;
use crate::yaml::Step;
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::not_null;
use crate::yaml::wrong_part::WrongPart;

mod fences;
mod json;
mod keywords;
mod number;
mod similarity;
mod spec;
mod written_numbers;

use json::{Answer, Keeps, Paths};
use number::Number;
use similarity::Similarity;

/// Requirements on the final answer. Trailing white space is ignored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{contains: done}`")]
pub struct Output {
    /// A text that the answer must equal, or a list of which it must equal one.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub equals: Option<OneOrList<String>>,
    /// A text, or a list of texts, that the answer must contain.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub contains: Option<OneOrList<String>>,
    /// A text, or a list of texts, that the answer must not contain.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub not_contains: Option<OneOrList<String>>,
    /// A regular expression, or a list of them, that must match the answer; unanchored.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub regex: Option<OneOrList<Pattern>>,
    /// A regular expression, or a list of them, that must not match the answer; unanchored.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub not_regex: Option<OneOrList<Pattern>>,
    /// A number that the answer must contain, or bounds for it.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    /// Checks of paths in the JSON of the answer: the answer is JSON, or ends with a fenced block of JSON.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub json_path: Option<Paths>,
    /// A schema for the JSON of the answer: the answer is JSON, or ends with a fenced block of JSON.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Keeps>,
    /// A text that the answer must be similar to.
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub similarity: Option<Similarity>,
    /// If `true`, the answer must not contain redacted secrets.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_secrets: bool,
    /// If `true`, `equals`, `contains`, `not-contains` and `similarity` ignore case.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ignore_case: bool,
}

impl GraderSpec for Output {
    fn only_finds(&self) -> bool {
        let Self { equals, not_contains, not_regex, number, json_path, json_schema, similarity, no_secrets, .. } = self;
        let texts = equals.is_none() && not_contains.is_none() && not_regex.is_none() && !no_secrets;
        texts && number.is_none() && json_path.is_none() && json_schema.is_none() && similarity.is_none()
    }

    fn finds_in_longer_texts(&self, answer: Option<&str>) -> bool {
        let stays = |pattern: &Pattern| match answer.map(str::trim_end) {
            Some(answer) => !pattern.is_match(answer) || pattern.holds_in_longer_texts(answer),
            None => pattern.is_found_in_longer_texts(),
        };
        self.regex.iter().chain(&self.not_regex).flat_map(OneOrList::iter).all(stays)
    }

    fn passes_by_part(&self, part: &str) -> bool {
        let folded = |text: &str| if self.ignore_case { text.to_lowercase() } else { text.to_owned() };
        let (part, compared) = (part.trim_end(), folded(part.trim_end()));
        let mut texts = self.contains.iter().flat_map(OneOrList::iter);
        let mut patterns = self.regex.iter().flat_map(OneOrList::iter);
        self.only_finds()
            && texts.all(|text| compared.contains(&folded(text.trim_end())))
            && patterns.all(|pattern| pattern.is_found_in_longer_texts() && pattern.is_match(part))
    }

    fn depends_on_loss(&self, lost: Lost) -> bool {
        matches!(lost, Lost::Line | Lost::Text)
    }

    fn reads_answer(&self) -> bool {
        true
    }

    fn reads_answer_alone(&self) -> bool {
        true
    }

    fn needs() -> Needs {
        Needs::NONE
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        let Self { equals, contains, not_contains, regex, not_regex, no_secrets, ignore_case: _, .. } = self;
        let Self { number, json_path, json_schema, similarity, .. } = self;
        let texts = [("equals", equals), ("contains", contains), ("not-contains", not_contains)];
        let patterns = [("regex", regex), ("not-regex", not_regex)];
        let is_empty = |list: &Option<OneOrList<String>>| {
            list.iter().flat_map(OneOrList::iter).any(|text| text.trim_end().is_empty())
        };
        if let Some((key, _)) = texts.iter().find(|(_, list)| is_empty(list)) {
            return Some(format!("checks nothing: `{key}` is empty"));
        }
        let is_empty = |list: &Option<OneOrList<Pattern>>| {
            list.iter().flat_map(OneOrList::iter).any(|pattern| pattern.0.as_str().is_empty())
        };
        if let Some((key, _)) = patterns.iter().find(|(_, list)| is_empty(list)) {
            return Some(format!("checks nothing: `{key}` is empty"));
        }
        if let Some(pattern) = regex.iter().flat_map(OneOrList::iter).find(|pattern| pattern.is_in_any_text()) {
            return Some(format!("checks nothing: `regex` holds /{pattern}/, which matches any text"));
        }
        let paths = json_path.iter().flat_map(|paths| &paths.0);
        let refused = number
            .as_ref()
            .and_then(Number::refusal)
            .or_else(|| paths.into_iter().find_map(json::At::refusal))
            .or_else(|| json_schema.as_ref().and_then(Keeps::refusal))
            .or_else(|| similarity.as_ref().and_then(Similarity::refusal));
        if refused.is_some() {
            return refused;
        }
        let others = [number.is_some(), json_path.is_some(), json_schema.is_some(), similarity.is_some()];
        if others.contains(&true) {
            return None;
        }
        let nothing = texts.iter().all(|(_, list)| list.is_none()) && patterns.iter().all(|(_, list)| list.is_none());
        (nothing && !no_secrets).then(|| "checks nothing; add an expectation, for example `contains`".into())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(OutputObserver { wanted: self.clone(), answer_at: None })
    }

    fn named_files(&self) -> Vec<&Path> {
        self.json_schema.iter().filter_map(Keeps::file).collect()
    }

    fn count_from(&mut self, folder: &Path) {
        if let Some(schema) = &mut self.json_schema {
            schema.count_from(folder);
        }
    }

    fn missing_file(&self, folder: &Path) -> Option<WrongPart> {
        let file = self.json_schema.as_ref().and_then(Keeps::file)?;
        let why = why_no_file(&folder.join(file))?;
        let at = [Step::Key("json-schema")];
        Some(WrongPart::new(&at, format!("compares with the schema `{}`, which {why}", file.display())))
    }
}

struct OutputObserver {
    wanted: Output,
    answer_at: Option<u64>,
}

#[async_trait]
impl Observer for OutputObserver {
    fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::Message(message) if message.role == Role::Agent && event.parent.is_none() => {
                self.answer_at = Some(event.seq);
            }
            // If no message contains the answer, it is only in the stop event.
            EventBody::Stop(_) => self.answer_at = self.answer_at.or(Some(event.seq)),
            _ => {}
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.wanted.grade(evidence, self.answer_at).into()
    }
}

/// Adds a check that something does not occur. A masked secret may have contained it.
fn absent(checks: &mut Checks, holds: bool, reason: String, output: &str, answer_at: Option<u64>) {
    match secrets::mark_in(output).filter(|_| holds) {
        Some(mark) => checks.unknown(may_be_masked(&reason, mark)),
        None => checks.either(holds, reason, answer_at),
    }
}

/// Adds a check that something occurs. A text that was masked because of its form may have contained it.
fn present(checks: &mut Checks, holds: bool, reason: String, output: &str, answer_at: Option<u64>) {
    match secrets::mark_of_form_in(output).filter(|_| !holds) {
        Some(mark) => checks.unknown(may_be_masked(&reason, mark)),
        None => checks.found(holds, reason, answer_at),
    }
}

/// The maximum number of characters of the output, and of an expected text, in a reason.
const SHOWN: usize = 200;

/// A function that shortens a text for a reason.
type Show = fn(&str, usize) -> String;

/// Returns how texts of a failed check are shown: exactly if the shortened ones look as if the check held.
fn not_alike(look_alike: bool) -> Show {
    if look_alike { reason_text::exact } else { reason_text::short }
}

fn may_be_masked(reason: &str, mark: &str) -> String {
    format!("{reason}, but a secret in it is masked as `{}`, and may have contained it", reason_text::short(mark, 60))
}

impl Output {
    fn grade(&self, evidence: &Evidence<'_>, answer_at: Option<u64>) -> Grade {
        let output = evidence.output.trim_end();
        let folded = |text: &str| if self.ignore_case { text.to_lowercase() } else { text.to_owned() };
        let compared = folded(output);
        let shown_by = |show: Show| match output {
            "" => "empty".to_owned(),
            output => format!("`{}`", show(output, SHOWN)),
        };
        let shown = shown_by(reason_text::short);
        let short = reason_text::short(&compared, SHOWN);
        let mut checks = Checks::default();
        if let Some(texts) = &self.equals {
            let is = texts.iter().any(|text| folded(text.trim_end()) == compared);
            let reason = if is {
                format!("the output is {shown}")
            } else {
                let looks_equal = texts.iter().any(|text| reason_text::short(&folded(text), SHOWN) == short);
                let show = not_alike(looks_equal);
                let wanted =
                    reason_text::any_of(texts.iter().map(|text| format!("`{}`", show(text.trim_end(), SHOWN))));
                format!("the output is not {wanted}; it is {}", shown_by(show))
            };
            present(&mut checks, is, reason, output, answer_at);
        }
        for text in self.contains.iter().flat_map(OneOrList::iter) {
            let holds = compared.contains(&folded(text.trim_end()));
            let reason = if holds {
                format!("the output contains `{}`", reason_text::short(text, SHOWN))
            } else {
                let show = not_alike(short.contains(&reason_text::short(&folded(text), SHOWN)));
                let (text, shown) = (show(text.trim_end(), SHOWN), shown_by(show));
                format!("the output does not contain `{text}`; it is {shown}")
            };
            present(&mut checks, holds, reason, output, answer_at);
        }
        for text in self.not_contains.iter().flat_map(OneOrList::iter) {
            let holds = !compared.contains(&folded(text.trim_end()));
            let text = reason_text::short(text, SHOWN);
            let reason = if holds {
                format!("the output does not contain `{text}`")
            } else {
                format!("the output contains `{text}`, and must not; it is {shown}")
            };
            absent(&mut checks, holds, reason, output, answer_at);
        }
        for pattern in self.regex.iter().flat_map(OneOrList::iter) {
            let holds = pattern.is_match(output);
            let reason = if holds {
                format!("the output matches /{pattern}/")
            } else {
                let show = not_alike(pattern.is_match(&reason_text::short(output, SHOWN)));
                format!("the output does not match /{pattern}/; it is {}", shown_by(show))
            };
            present(&mut checks, holds, reason, output, answer_at);
        }
        for pattern in self.not_regex.iter().flat_map(OneOrList::iter) {
            let found = pattern.0.find(output).map(|found| reason_text::short(found.as_str(), 100));
            let reason = match &found {
                None => format!("the output does not match /{pattern}/"),
                Some(found) => format!("the output matches /{pattern}/ with `{found}`, and must not"),
            };
            absent(&mut checks, found.is_none(), reason, output, answer_at);
        }
        if let Some(number) = &self.number {
            number.check(&mut checks, output, &shown, answer_at);
        }
        self.check_json(&mut checks, output, &shown, evidence.case_folder, answer_at);
        if let Some(similarity) = &self.similarity {
            similarity.check(&mut checks, output, self.ignore_case, answer_at);
        }
        if self.no_secrets {
            let found = secrets::mark_in(output).map(|mark| reason_text::short(mark, 60));
            match (&found, evidence.unmasked) {
                (None, Some(name)) => checks.unknown(format!(
                    "whether the output shows the secret in {name} is unknown: it is too short to be masked"
                )),
                (None, None) => checks.either(true, "the output shows no secret".to_owned(), answer_at),
                (Some(found), _) => {
                    checks.either(false, format!("the output shows a secret, masked as `{found}`"), answer_at);
                }
            }
        }
        checks.grade()
    }

    fn check_json(&self, checks: &mut Checks, output: &str, shown: &str, folder: &Path, answer_at: Option<u64>) {
        let paths: &[json::At] = self.json_path.as_ref().map_or(&[], |paths| &paths.0);
        if paths.is_empty() && self.json_schema.is_none() {
            return;
        }
        match json::in_answer(output) {
            Ok(Answer { repeated: Some(key), .. }) => {
                let checked = paths.len() + usize::from(self.json_schema.is_some());
                let why = format!("an object of the answer has the key `{}` twice", reason_text::short(&key, 100));
                (0..checked).for_each(|_| checks.unknown(format!("{why}, so what it says is unknown; it is {shown}")));
            }
            Ok(Answer { value: json, repeated: None }) => {
                paths.iter().for_each(|at| at.check(checks, &json, answer_at));
                if let Some(schema) = &self.json_schema {
                    schema.check(checks, &json, folder, answer_at);
                }
            }
            Err(none) if none.is_json => {
                let checked = paths.len() + usize::from(self.json_schema.is_some());
                (0..checked).for_each(|_| checks.unknown(format!("{}; it is {shown}", none.why)));
            }
            Err(json::NoValue { why, .. }) => {
                // If the answer has no JSON, each check of it fails.
                let checked = paths.len() + usize::from(self.json_schema.is_some());
                checks.lacking(format!("{why}; it is {shown}"), answer_at);
                (1..checked).for_each(|_| checks.lacking("the output is not JSON", answer_at));
            }
        }
    }
}

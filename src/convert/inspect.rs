//! Inspect: each sample of a dataset becomes a case, and its target a grader that the user chooses.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::promptfoo::check::Check;
use super::python;
use super::refused::Refused;
use super::table::{self, Sample};
use super::{Choices, Content, Converted, NewCase, Note, chat, prompt_paths, slug, source, unique, whole};
use crate::paths;
use crate::yaml::YamlError;

/// A program that reads the letter of an answer, as the source does, and compares it with the target.
const CHOICE: &str = include_str!("inspect/choice.py");

/// The comparison of a target with the final answer. Of several targets, one is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// The answer is the target
    Equals,
    /// The answer contains the target
    Contains,
    /// The answer contains the target, whatever its upper and lower case
    ContainsAnyCase,
    /// The answer ends with the target, whatever its upper and lower case
    Ends,
    /// The last number of the answer is the target
    Number,
    /// The answer has a line `ANSWER: LETTER`; the choices are added to the prompt
    Choice,
    /// A judge model compares the answer with the target
    Rubric,
}

/// Reads the samples of a dataset.
pub fn convert(path: &Path, choices: &Choices) -> Result<Converted, Vec<YamlError>> {
    let samples = table::read(path).map_err(|error| vec![error])?;
    if !samples.iter().any(|sample| sample.columns.contains_key("input")) {
        let columns: BTreeSet<&String> = samples.iter().flat_map(|sample| sample.columns.keys()).collect();
        let columns: Vec<String> = columns.iter().take(20).map(|name| format!("`{name}`")).collect();
        let error = whole(path, format!("no sample has the column `input`; there are {}", columns.join(", ")));
        return Err(vec![error.with_help("rename the columns to `input` and `target`")]);
    }
    let Some(target) = choices.target else {
        let message = "a dataset does not say how an answer is compared with its target; choose with --target";
        let help = "--target equals, contains, contains-any-case, ends, number, choice or rubric";
        return Err(vec![whole(path, message).with_help(help)]);
    };
    let mut converted = Converted::default();
    let mut cases: Vec<NewCase> = Vec::new();
    let mut left = BTreeSet::new();
    for (number, sample) in samples.iter().enumerate() {
        let id = sample.columns.get("id").and_then(super::parts::scalar);
        let name = unique(id.as_deref().and_then(slug).unwrap_or_else(|| format!("sample-{}", number + 1)), &cases);
        let mut case = NewCase::new(name, path);
        match self::sample(path, sample, target, &mut case) {
            Ok(()) => {
                let known = ["input", "target", "id", "choices", "files", "setup"];
                left.extend(sample.columns.keys().filter(|key| !known.contains(&key.as_str())).cloned());
                cases.push(case);
            }
            Err((key, why)) => {
                let key = if sample.key.is_empty() { key.to_owned() } else { format!("{}.{key}", sample.key) };
                converted.notes.push(Note::new(path, key, format!("no case was written: {why}")).on(sample.line));
            }
        }
    }
    for column in left {
        converted.notes.push(Note::new(path, column, "the column has no equivalent, and was left out of every case"));
    }
    converted.add_file(path, "inspect", "Samples", cases);
    Ok(converted)
}

/// Returns the files of a sample: a map, or a text with one in JSON. Of the columns that are read here, the source takes
/// only this one for JSON within a text; a text with a list as `input` or `target` is that text.
fn parsed(value: &Value) -> Value {
    value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

/// Returns the texts of a value that is one text or a list of scalars.
fn texts(value: &Value) -> Result<Option<Vec<String>>, String> {
    match value {
        Value::Array(list) => list.iter().map(python::text).collect(),
        other => Ok(python::text(other)?.map(|text| vec![text])),
    }
}

/// Returns the choices of a sample: a list, or a text that the source splits at its commas, or else at its spaces.
fn choices_of(value: &Value) -> Result<Vec<String>, Refused<&'static str>> {
    let wrong = |why: &str| ("choices", why.to_owned());
    let list = match value {
        Value::String(text) if text.trim_start().starts_with(['[', '{']) => {
            return Err(wrong("it is a text with JSON, which the source would split at its commas; write a list"));
        }
        Value::String(text) if text.contains(',') => text.split(',').map(str::to_owned).collect(),
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        value => texts(value).map_err(|why| wrong(&why))?.ok_or_else(|| wrong("this is not a list of texts"))?,
    };
    Ok(list.iter().map(|choice| choice.trim().to_owned()).filter(|choice| !choice.is_empty()).collect())
}

fn sample(path: &Path, sample: &Sample, target: Target, case: &mut NewCase) -> Result<(), Refused<&'static str>> {
    let column = |key: &str| {
        let value = sample.columns.get(key).filter(|value| !value.is_null());
        value.filter(|value| value.as_str() != Some("") && **value != json!([]) && **value != json!({}))
    };
    if column("sandbox").is_some() {
        return Err(("sandbox", "its sandbox is an environment of the source".to_owned()));
    }
    let (system, mut prompt) = match column("input") {
        Some(Value::Array(messages)) => chat::single(messages).map_err(|why| ("input", why))?,
        Some(Value::String(text)) => (Vec::new(), text.clone()),
        Some(_) => return Err(("input", "this is neither a text nor a list of chat messages".to_owned())),
        None => return Err(("input", "there is no input".to_owned())),
    };
    let value = column("target").ok_or(("target", "there is no target".to_owned()))?;
    let targets = texts(value).map_err(|why| ("target", why))?;
    let targets = targets.ok_or(("target", "this is neither a text nor a list of texts".to_owned()))?;
    if targets.iter().any(|text| text.trim().is_empty()) {
        let which = if value.is_array() { "a target of the list is" } else { "the target is" };
        return Err(("target", format!("{which} empty or white space only, which decides nothing")));
    }
    let choices = column("choices").map(choices_of).transpose()?.unwrap_or_default();
    if target == Target::Choice {
        prompt = with_choices(&prompt, &choices)?;
    } else if !choices.is_empty() {
        return Err((
            "choices",
            "it has choices, which its input does not list; convert it with --target choice".to_owned(),
        ));
    }
    if prompt.trim().is_empty() {
        return Err(("input", "the input is empty".to_owned()));
    }
    case.keys.insert("prompt".to_owned(), json!(prompt));
    if !system.is_empty() {
        case.keys.insert("system-prompt".to_owned(), json!(system.join("\n\n")));
    }
    files(path, sample, column("files").map(parsed), case)?;
    if let Some(setup) = column("setup") {
        let text = setup.as_str().ok_or(("setup", "this is not a script".to_owned()))?;
        let text = match source::named(&source::folder(path), text) {
            Ok(file) if !text.contains('\n') => {
                crate::yaml::read(&file).map_err(|error| ("setup", error.to_string()))?
            }
            _ => text.to_owned(),
        };
        let text = match data(&text).map_err(|why| ("setup", format!("it {why}")))? {
            Some(bytes) => String::from_utf8(bytes).map_err(|_| ("setup", "it is not UTF-8".to_owned()))?,
            None => text,
        };
        let workspace = case.keys.entry("workspace").or_insert_with(|| json!({}));
        if let Some(map) = workspace.as_object_mut() {
            map.insert("setup".to_owned(), json!([text]));
        }
        let message = "each trial runs this script in the workspace before the agent; read it first";
        case.notes.push(Note::new(path, "setup", message).on(sample.line));
    }
    case.keys.insert("graders".to_owned(), json!([grader(target, &targets, choices.len())?]));
    Ok(())
}

/// Returns the prompt with its choices, as the source lists them.
fn with_choices(prompt: &str, choices: &[String]) -> Result<String, Refused<&'static str>> {
    if choices.is_empty() || choices.len() > 26 {
        return Err(("choices", "there are no choices, or more than 26".to_owned()));
    }
    let letters: Vec<String> = letters(choices.len()).collect();
    let lines: Vec<String> =
        letters.iter().zip(choices).map(|(letter, choice)| format!("{letter}) {choice}")).collect();
    Ok(format!(
        "Answer the following multiple choice question. The last line of your answer must be `ANSWER: LETTER` (without \
         quotes), where LETTER is one of {}.\n\n{prompt}\n\n{}",
        letters.join(","),
        lines.join("\n")
    ))
}

fn letters(count: usize) -> impl Iterator<Item = String> {
    ('A'..='Z').take(count).map(String::from)
}

fn grader(target: Target, targets: &[String], choices: usize) -> Result<Value, Refused<&'static str>> {
    let any = |check: fn(String) -> Check| {
        let checks: Vec<Check> = targets.iter().cloned().map(check).collect();
        let check = match <[Check; 1]>::try_from(checks) {
            Ok([one]) => one,
            Err(checks) => Check::Any(checks),
        };
        let (kind, body) = check.grader(true);
        json!({kind: body})
    };
    let one = || match targets {
        [one] => Ok(one.trim()),
        _ => Err(("target", "there are several targets".to_owned())),
    };
    Ok(match target {
        Target::Equals if targets.len() > 1 => json!({"output": {"equals": targets}}),
        Target::Equals => any(Check::Equals),
        Target::Contains => any(Check::Contains),
        Target::ContainsAnyCase => any(Check::ContainsAnyCase),
        Target::Ends => {
            let texts: Option<Vec<String>> = targets.iter().map(|text| end(text).map(regex::escape)).collect();
            let texts = texts.ok_or(("target", "it is punctuation only, which every answer ends with".to_owned()))?;
            json!({"output": {"regex": format!(r"(?i)(?:\A|[^\w.]|_)(?:{})[{PUNCTUATION}]*\s*\z", texts.join("|"))}})
        }
        Target::Number => {
            let number = plain_number(one()?).ok_or(("target", "the target is not a number".to_owned()))?;
            json!({"output": {"number": {"equals": number}}})
        }
        Target::Choice => {
            let letter = one()?.to_uppercase();
            if !letters(choices).any(|known| known == letter) {
                return Err(("target", "the target is not the letter of a choice".to_owned()));
            }
            json!({"script": {"run": ["python3", "-I", "-c", CHOICE.trim_end(), letter, choices.to_string()]}})
        }
        Target::Rubric => {
            let list: Vec<String> = targets.iter().map(|text| format!("- {text}")).collect();
            let about = if targets.len() > 1 { "one of these expected answers" } else { "this expected answer" };
            let ask = format!("Look at the final answer only. Does it agree with {about}?\n{}", list.join("\n"));
            json!({"rubric": {"show": ["closing"], "criteria": [{"id": "target", "ask": ask}]}})
        }
    })
}

/// White space and punctuation of ASCII, as members of a class: the source ignores them around a text.
const PUNCTUATION: &str = r"\t-\r \x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e";

/// Returns the part of a target with which an answer has to end, or `None` if there is none. The sign and the point of a number
/// stay: 5 is no answer for -5.
fn end(target: &str) -> Option<&str> {
    let is_around = |c: char| c.is_whitespace() || c.is_ascii_punctuation();
    let core = target.trim_matches(is_around);
    if core.is_empty() {
        return None;
    }
    let ends = target.trim_end_matches(is_around);
    let before = ends.strip_suffix(core).unwrap_or_default();
    let is_number = core.starts_with(|c: char| c.is_ascii_digit());
    let rest = if is_number { before.trim_end_matches(['+', '-', '.']) } else { before };
    ends.get(rest.len()..)
}

/// Returns the digits of a target that is a number, without what the source ignores in one: signs of currencies, commas,
/// formatting, and punctuation around it.
fn plain_number(target: &str) -> Option<String> {
    let kept: String = target.chars().filter(|c| !"$€£,*_\\".contains(*c)).collect();
    let is_around = |c: char| "!?:;()[]{}'\"`".contains(c);
    let kept = kept.trim_start_matches(is_around).trim_end_matches(|c: char| c == '.' || is_around(c));
    let is_number = kept.parse::<f64>().is_ok_and(f64::is_finite);
    is_number.then(|| kept.to_owned())
}

/// Returns the content of a data URL in base64, or `None` if the text is none.
fn data(text: &str) -> Result<Option<Vec<u8>>, String> {
    let Some(rest) = text.strip_prefix("data:") else { return Ok(None) };
    let coded = rest.split_once(";base64,").filter(|(kind, _)| !kind.contains(','));
    let (_, coded) = coded.ok_or("is written as a data URL without base64")?;
    let plain: String = coded.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = STANDARD.decode(plain);
    bytes.map(Some).map_err(|error| format!("is written as a data URL that cannot be decoded: {error}"))
}

/// Adds the files of a sample to the workspace: a text, a data URL, or the path of a file beside the dataset.
fn files(path: &Path, sample: &Sample, value: Option<Value>, case: &mut NewCase) -> Result<(), Refused<&'static str>> {
    let Some(value) = value else { return Ok(()) };
    let map = value.as_object().ok_or(("files", "this is not a map of paths".to_owned()))?;
    for (to, content) in map {
        paths::inside(Path::new(to)).map_err(|why| ("files", format!("the path `{to}` {why}")))?;
        let text = content.as_str().ok_or(("files", format!("the content of `{to}` is not a text")))?;
        let data = data(text).map_err(|why| ("files", format!("`{to}` {why}")))?;
        let is_path = !text.contains('\n') && source::folder(path).join(text).exists();
        let content = if let Some(bytes) = data {
            Content::Bytes(bytes)
        } else if is_path {
            Content::Copy(source::named(&source::folder(path), text).map_err(|why| ("files", why))?)
        } else {
            Content::Text(text.to_owned())
        };
        let written = case.add(&format!("workspace/{to}"), content);
        let folder = written.strip_suffix(&format!("/{to}")).unwrap_or(&written).to_owned();
        case.keys.insert("workspace".to_owned(), json!({"copy": folder}));
        if !case.keys.get("prompt").and_then(Value::as_str).is_some_and(|prompt| prompt_paths::names(prompt, to)) {
            let message = format!("the file is `{to}` in the workspace, which the prompt does not name");
            case.notes.push(Note::new(path, "files", message).on(sample.line));
        }
    }
    Ok(())
}

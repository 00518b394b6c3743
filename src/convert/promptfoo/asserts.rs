//! Translates the assertions of promptfoo.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::parts::{common, number, with};
use super::super::patterns::SPACE;
use super::super::refused::Refused;
use super::super::restrictions::{restricting, restricting_if};
use super::super::{NewCase, Note, patterns, template};
use super::check::Check;
use super::rows::Assertion;
use super::script;

mod schema;
mod tools;
mod values;

use super::values::{text as scalar, unclear};
use tools::{skill_used, tool_sequence, tool_used};
use values::{content, filled, is_program, list, text};

/// The keys of an assertion that are taken over, or refused with their own reason.
const KNOWN: [&str; 6] = ["type", "value", "threshold", "weight", "metric", "transform"];
/// The types of assertions, without `not-`.
const TYPES: [&str; 69] = [
    "agent-rubric",
    "answer-relevance",
    "assert-set",
    "bleu",
    "classifier",
    "contains",
    "contains-all",
    "contains-any",
    "contains-html",
    "contains-json",
    "contains-sql",
    "contains-xml",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "conversation-relevance",
    "cost",
    "equals",
    "factuality",
    "finish-reason",
    "g-eval",
    "gleu",
    "guardrails",
    "human",
    "icontains",
    "icontains-all",
    "icontains-any",
    "is-html",
    "is-json",
    "is-refusal",
    "is-sql",
    "is-valid-function-call",
    "is-valid-openai-function-call",
    "is-valid-openai-tools-call",
    "is-xml",
    "javascript",
    "latency",
    "levenshtein",
    "llm-rubric",
    "max-score",
    "meteor",
    "model-graded-closedqa",
    "model-graded-factuality",
    "moderation",
    "perplexity",
    "perplexity-score",
    "pi",
    "python",
    "regex",
    "rouge-n",
    "ruby",
    "search-rubric",
    "select-best",
    "similar",
    "similar:cosine",
    "similar:dot",
    "similar:euclidean",
    "skill-used",
    "starts-with",
    "tool-call-f1",
    "trace-error-spans",
    "trace-span-count",
    "trace-span-duration",
    "trajectory:goal-success",
    "trajectory:step-count",
    "trajectory:tool-args-match",
    "trajectory:tool-sequence",
    "trajectory:tool-used",
    "word-count",
];

/// The maximum number of words that a pattern counts.
const MAX_WORDS: u64 = 2_000;

/// Returns true if promptfoo has an assertion of this type.
pub fn is_type(kind: &str) -> bool {
    let base = kind.strip_prefix("not-").unwrap_or(kind);
    TYPES.contains(&base) || base == "webhook"
}

/// Returns true if a cell of a table may begin with this type. Others are texts that the answer has to equal.
pub fn is_type_of_cells(kind: &str) -> bool {
    const NONE: [&str; 4] = ["assert-set", "human", "max-score", "select-best"];
    is_type(kind) && !NONE.contains(&kind.strip_prefix("not-").unwrap_or(kind))
}

/// The subject of assertions.
pub struct Context<'a> {
    /// The folder of the configuration.
    pub folder: &'a Path,
    /// The variables of the test.
    pub vars: &'a Map<String, Value>,
    /// The prompt with its variables.
    pub prompt: &'a str,
    /// The score from which the test passes.
    pub threshold: Option<f64>,
    /// The number of the last assertions that are the test's own. The others are defaults.
    pub own: usize,
}

/// The translation of an assertion.
enum TranslatedAssertion {
    /// A condition on the final answer.
    Check(Check),
    /// A grader: its kind and its body.
    Grader(&'static str, Value),
    /// Graders of one kind, each of which has to pass: their kind and the body of each.
    Graders(&'static str, Vec<Value>),
    /// A question for the judge, and the score from which the answer passes.
    Question(String, Option<f64>),
    /// Code of the source.
    Script(script::Code),
}

/// Returns the graders of a test.
///
/// # Errors
/// Returns the reason if no grader would decide the case, or the score would be another one.
pub fn convert(asserts: &[Assertion], context: &Context<'_>, case: &mut NewCase) -> Result<Vec<Value>, String> {
    let mut made = Making { context, graders: Vec::new(), questions: Vec::new(), scripts: 0, is_left_out: false };
    let (defaults, own) = asserts.split_at(asserts.len().saturating_sub(context.own));
    for assertion in defaults {
        made.assertion(assertion, case);
    }
    let before = (made.graders.len(), made.questions.len());
    let lacks_default = std::mem::take(&mut made.is_left_out);
    for assertion in own {
        made.assertion(assertion, case);
    }
    let Making { mut graders, questions, is_left_out: lacks_own, .. } = made;
    let decides = |grader: &Value| {
        let body = grader.as_object().and_then(|map| map.values().next());
        body.is_some_and(|body| body.get("diagnostic") != Some(&json!(true)))
    };
    let mut made_of_own = graders[before.0..].iter().chain(&questions[before.1..]).peekable();
    // An assertion of weight 0 decides nothing, so it does not replace one that does.
    let has_own = own.is_empty() || (made_of_own.peek().is_some() && (!lacks_own || made_of_own.any(decides)));
    let is_left_out = lacks_default || lacks_own;
    // A score over fewer assertions is another score.
    if is_left_out && context.threshold.is_some() {
        return Err("its threshold is a score over all assertions, and some of them have no equivalent".to_owned());
    }
    graders.extend(questions);
    if asserts.is_empty() {
        return Err("it has no assertion".to_owned());
    }
    if !graders.iter().any(decides) {
        return Err("none of the assertions that decide it has an equivalent".to_owned());
    }
    // What is left would be another test: often it is passed by saying nothing.
    if !has_own {
        return Err("none of its own assertions has an equivalent".to_owned());
    }
    Ok(graders)
}

struct Making<'a> {
    context: &'a Context<'a>,
    graders: Vec<Value>,
    questions: Vec<Value>,
    scripts: usize,
    is_left_out: bool,
}

impl Making<'_> {
    fn assertion(&mut self, assertion: &Assertion, case: &mut NewCase) {
        let keys = assertion.value.as_object();
        let kind = keys.and_then(|keys| keys.get("type")).and_then(Value::as_str).unwrap_or_default();
        if kind == "assert-set" {
            return self.set(assertion, case);
        }
        let place = |key: &str| {
            let key = if key.is_empty() { assertion.key.clone() } else { format!("{}.{key}", assertion.key) };
            (assertion.file.clone(), assertion.line, key)
        };
        let noted = |key: &str, message: String| {
            let (file, line, key) = place(key);
            Note::new(&file, key, message).on(line)
        };
        let note = |case: &mut NewCase, key: &str, message: String| case.notes.push(noted(key, message));
        let lost = |case: &mut NewCase, key: &str, message: String| {
            case.notes.push(noted(key, message).of_lost_grader());
        };
        let weight = match keys.and_then(|keys| keys.get("weight")) {
            None | Some(Value::Null) => 1.0,
            Some(value) => match value.as_f64().filter(|weight| weight.is_finite() && *weight >= 0.0) {
                Some(weight) => weight,
                None => {
                    self.is_left_out = true;
                    return lost(
                        case,
                        "weight",
                        format!("the assertion `{kind}` has no equivalent: its weight is no number from 0"),
                    );
                }
            },
        };
        let translated = match keys {
            Some(keys) => translate(kind, keys, self.context),
            None => Err(("", "this is not a map of keys".to_owned())),
        };
        let made = match translated {
            Ok(made) => made,
            Err((key, why)) => {
                // An assertion of weight 0 cannot fail a test.
                self.is_left_out |= weight > 0.0;
                let name = if kind.is_empty() { String::new() } else { format!(" `{kind}`") };
                return lost(case, key, format!("the assertion{name} has no equivalent: {why}"));
            }
        };
        let has_code = matches!(made, TranslatedAssertion::Script(_));
        // Code reads its `config`.
        for key in keys.into_iter().flat_map(Map::keys).filter(|key| !(has_code && *key == "config")) {
            if ["provider", "rubricPrompt", "contextTransform", "config"].contains(&key.as_str()) {
                note(
                    case,
                    key,
                    "left out: the key has no equivalent; a judge is named with `evals run --judge`".to_owned(),
                );
            } else if !KNOWN.contains(&key.as_str()) {
                note(case, key, "left out: the key is unknown".to_owned());
            }
        }
        if kind == "contains-json" {
            let message =
                "JSON is found only if it is the whole answer, or a fenced block; with a schema, it must be one object";
            note(case, "", message.to_owned());
        }
        let metric = keys.and_then(|keys| keys.get("metric")).and_then(Value::as_str);
        let metric = metric.and_then(|metric| template::fill(metric, self.context.vars).ok()).map(|(name, _)| name);
        let name = metric.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| kind.to_owned());
        let common = common(&name, if weight > 0.0 { weight } else { 1.0 }, weight <= 0.0);
        self.push(common, made, case, &place(""));
    }

    fn push(
        &mut self,
        common: Map<String, Value>,
        made: TranslatedAssertion,
        case: &mut NewCase,
        place: &(std::path::PathBuf, Option<usize>, String),
    ) {
        let is_scored = self.context.threshold.is_some();
        match made {
            TranslatedAssertion::Check(check) => {
                let (kind, body) = check.grader(is_scored);
                self.graders.push(json!({kind: with(common, body)}));
            }
            TranslatedAssertion::Grader(kind, body) => self.graders.push(json!({kind: with(common, body)})),
            TranslatedAssertion::Graders(kind, bodies) => {
                self.graders.extend(bodies.into_iter().map(|body| json!({kind: with(common.clone(), body)})));
            }
            TranslatedAssertion::Script(code) => {
                self.scripts += 1;
                let run = script::write(&code, self.scripts, self.context, case);
                let message = "each trial runs this code after the agent has stopped; read it first";
                case.notes.push(Note::new(&place.0, place.2.clone(), message).on(place.1));
                self.graders.push(json!({"script": with(common, json!({"run": run}))}));
            }
            TranslatedAssertion::Question(ask, pass) => {
                let mut criterion = json!({"id": "criterion", "ask": ask});
                // If the score of the test counts, an answer that is not perfect counts as its share.
                let pass = if is_scored { Some(10.0) } else { pass.map(|pass| (pass * 10.0).ceil()) };
                if let (Some(pass), Some(map)) = (pass, criterion.as_object_mut()) {
                    map.insert("scale".to_owned(), json!({"from": 0, "to": 10, "pass": number(pass)}));
                }
                let body = json!({"show": ["closing"], "criteria": [criterion]});
                self.questions.push(json!({"rubric": with(common, body)}));
            }
        }
    }

    /// Converts a set: each of its assertions, or with a threshold one expression over all of them.
    fn set(&mut self, set: &Assertion, case: &mut NewCase) {
        let below = |at: usize, value: &Value| Assertion {
            value: value.clone(),
            key: format!("{}.assert[{at}]", set.key),
            file: set.file.clone(),
            line: set.line,
        };
        let inner = set.value.get("assert").and_then(Value::as_array).cloned().unwrap_or_default();
        let written = set.value.get("threshold").filter(|value| !value.is_null());
        let threshold = written.and_then(Value::as_f64);
        let mut refuse = |why: String| {
            self.is_left_out = true;
            let message = format!("the assertion `assert-set` has no equivalent: {why}");
            case.notes.push(Note::new(&set.file, set.key.clone(), message).on(set.line).of_lost_grader());
        };
        if inner.is_empty() {
            return refuse("it has no assertion".to_owned());
        }
        if written.is_some() && threshold.is_none() {
            return refuse("its threshold is no number".to_owned());
        }
        // A set that fails, fails the test, whatever its weight.
        if self.context.threshold.is_some() {
            return refuse("a test with a threshold counts the set as one score".to_owned());
        }
        let Some(threshold) = threshold else {
            for (at, value) in inner.iter().enumerate() {
                self.assertion(&below(at, value), case);
            }
            return;
        };
        if threshold <= 0.0 || threshold > 1.0 {
            return refuse("its threshold is not above 0 and at most 1".to_owned());
        }
        let mut parts = Vec::new();
        let (mut total, mut of_nothing) = (0.0, 0.0);
        for (at, value) in inner.iter().enumerate() {
            let keys = value.as_object().cloned().unwrap_or_default();
            let kind = keys.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
            let own = keys
                .get("weight")
                .map_or(Some(1.0), Value::as_f64)
                .filter(|weight| weight.is_finite() && *weight >= 0.0);
            match (translate(&kind, &keys, self.context), own) {
                (Ok(TranslatedAssertion::Check(check)), Some(own)) => {
                    total += own;
                    of_nothing += if check.holds_for_nothing() { own } else { 0.0 };
                    parts.push(format!("({} ? {own:?} : 0.0)", check.expression()));
                }
                (Ok(_), Some(_)) => {
                    return refuse(format!(
                        "its threshold counts `{kind}` (number {}), which is no condition on the answer",
                        at + 1
                    ));
                }
                (Err((_, why)), _) => {
                    return refuse(format!("its `{kind}` (number {}) has no equivalent: {why}", at + 1));
                }
                (_, None) => {
                    return refuse(format!("the weight of its `{kind}` (number {}) is no number from 0", at + 1));
                }
            }
        }
        if total <= 0.0 {
            return refuse("its weights are 0".to_owned());
        }
        let cel = format!("({}) / {total:?} >= {threshold:?}", parts.join(" + "));
        let name = set.value.get("metric").and_then(Value::as_str).unwrap_or("assert-set");
        let body = restricting_if(of_nothing / total >= threshold, json!({"cel": cel}));
        self.graders.push(json!({"expr": with(common(name, 1.0, false), body)}));
    }
}

fn translate(
    kind: &str,
    keys: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let (base, is_not) = kind.strip_prefix("not-").map_or((kind, false), |base| (base, true));
    if keys.get("transform").is_some_and(|value| !value.is_null()) {
        return Err(("transform", "it changes the answer before it is checked".to_owned()));
    }
    if let Some((key, why)) = ["value", "config"].iter().find_map(|key| Some((*key, unclear(keys.get(*key)?)?))) {
        return Err((key, why));
    }
    if keys.contains_key("$ref") && base.is_empty() {
        return Err((
            "$ref",
            "it names no assertion of `assertionTemplates`; write the assertion itself in its place".to_owned(),
        ));
    }
    let threshold = keys.get("threshold").filter(|value| !value.is_null());
    if base != "javascript" && base != "python" && keys.get("value").and_then(Value::as_str).is_some_and(is_program) {
        return Err(("value", "its value is made by a program".to_owned()));
    }
    let gives_shares = ["skill-used", "trajectory:tool-used", "trajectory:tool-sequence"].contains(&base);
    if gives_shares && context.threshold.is_some() {
        return Err(("type", "its grader gives a share of its checks, and the test has a threshold".to_owned()));
    }
    let turned =
        |check: Check| Ok(TranslatedAssertion::Check(if is_not { Check::Not(Box::new(check)) } else { check }));
    match base {
        "contains" => turned(Check::Contains(text(keys, context)?)),
        "icontains" => turned(Check::ContainsAnyCase(text(keys, context)?)),
        "contains-any" => turned(Check::Any(list(keys, context)?.into_iter().map(Check::Contains).collect())),
        "contains-all" => turned(Check::All(list(keys, context)?.into_iter().map(Check::Contains).collect())),
        "icontains-any" => turned(Check::Any(list(keys, context)?.into_iter().map(Check::ContainsAnyCase).collect())),
        "icontains-all" => turned(Check::All(list(keys, context)?.into_iter().map(Check::ContainsAnyCase).collect())),
        "starts-with" => turned(Check::Matches(format!(r"\A{}", regex::escape(&text(keys, context)?)))),
        "equals" => equals(keys, context, is_not),
        "regex" => {
            let pattern = text(keys, context)?;
            turned(Check::Matches(patterns::from_javascript(&pattern, "").map_err(|why| ("value", why))?))
        }
        "word-count" => turned(word_count(keys, context)?),
        "is-json" | "contains-json" if is_not => {
            Err(("type", "no grader requires that an answer is not JSON".to_owned()))
        }
        "is-json" => json_answer(keys, context, true),
        "contains-json" => json_answer(keys, context, false),
        "cost" | "latency" if is_not => Err(("type", "no grader requires that a limit is exceeded".to_owned())),
        "cost" => match threshold.and_then(Value::as_f64) {
            Some(dollars) => Ok(TranslatedAssertion::Grader("budget", restricting(json!({"cost-usd": dollars})))),
            None => Err(("threshold", "a limit is missing".to_owned())),
        },
        "latency" => match threshold.and_then(Value::as_f64).filter(|milliseconds| *milliseconds >= 1.0) {
            Some(milliseconds) => {
                let body = json!({"time": format!("{}ms", milliseconds.floor())});
                Ok(TranslatedAssertion::Grader("budget", restricting(body)))
            }
            None => Err(("threshold", "a limit of at least one millisecond is missing".to_owned())),
        },
        "javascript" | "python" => {
            let value = keys.get("value").and_then(Value::as_str).filter(|value| !value.trim().is_empty());
            let value = value.ok_or(("value", "there is no code".to_owned()))?;
            let threshold = match threshold {
                None => None,
                Some(value) => Some(value.as_f64().ok_or(("threshold", "it is no number".to_owned()))?),
            };
            let config = keys.get("config").cloned().unwrap_or(Value::Null);
            script::read(base, value, threshold, is_not, config, context)
                .map(TranslatedAssertion::Script)
                .map_err(|why| ("value", why))
        }
        "llm-rubric" | "model-graded-closedqa" | "factuality" | "model-graded-factuality" | "agent-rubric" => {
            question(base, keys, context, is_not)
        }
        "trajectory:goal-success" if !is_not => {
            let goal = match keys.get("value") {
                Some(Value::Object(map)) => map.get("goal").and_then(Value::as_str).map(str::to_owned),
                _ => None,
            };
            let goal = goal.map_or_else(|| text(keys, context), |goal| filled(&goal, context))?;
            Ok(TranslatedAssertion::Question(format!("Did the agent reach this goal?\n{goal}"), score(threshold)?))
        }
        "skill-used" => skill_used(keys, context, is_not),
        "trajectory:tool-used" => tool_used(keys, context, is_not),
        "trajectory:tool-sequence" if !is_not => tool_sequence(keys, context),
        "select-best" | "max-score" => {
            Err(("type", "it compares the answers of several models; use `evals compare`".to_owned()))
        }
        "human" => Err(("type", "a person has to decide it".to_owned())),
        "" => Err(("type", "the key is missing".to_owned())),
        other if is_type(other) => Err(("type", "no grader checks this".to_owned())),
        other => Err(("type", format!("the type `{other}` is not known"))),
    }
}

/// A regular expression that fails for an answer with a fenced block, which a grader of JSON would accept.
const FENCE: &str = r"(?m)^\s*(?:```|~~~)";

fn equals(
    keys: &Map<String, Value>,
    context: &Context<'_>,
    is_not: bool,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let value = match keys.get("value") {
        Some(Value::String(text)) => content(text, context)?,
        Some(other) => other.clone(),
        None => return Err(("value", "there is no value".to_owned())),
    };
    if let Some(why) = unclear(&value) {
        return Err(("value", why));
    }
    match scalar(&value) {
        Some(text) if is_not => Ok(TranslatedAssertion::Check(Check::Not(Box::new(Check::Equals(text))))),
        Some(text) => Ok(TranslatedAssertion::Check(Check::Equals(text))),
        None if is_not || value.is_null() => {
            Err(("value", "no grader requires that an answer is other JSON".to_owned()))
        }
        None if context.threshold.is_some() => {
            Err(("value", "its grader has several checks, and the test a threshold".to_owned()))
        }
        None => Ok(TranslatedAssertion::Grader(
            "output",
            json!({"json-path": {"path": "$", "equals": value}, "not-regex": FENCE}),
        )),
    }
}

fn json_answer(
    keys: &Map<String, Value>,
    context: &Context<'_>,
    is_whole: bool,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let schema = match keys.get("value") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.trim().is_empty() => None,
        Some(Value::String(text)) => match content(text, context)? {
            Value::String(text) => {
                let parsed = crate::yaml::parse::<Value>(Path::new("schema"), &text);
                Some(parsed.map_err(|error| ("value", format!("the schema cannot be read: {}", error.message())))?)
            }
            other => Some(other),
        },
        Some(other) => Some(other.clone()),
    };
    if is_whole && context.threshold.is_some() {
        return Err(("type", "its grader has several checks, and the test a threshold".to_owned()));
    }
    let mut body = Map::new();
    let schema = match schema {
        None if is_whole => None,
        None => Some(schema::any_object()),
        Some(Value::Object(schema)) => {
            let mut schema = schema::translated(&schema).map_err(|why| ("value", why))?;
            if !is_whole {
                schema::accept_objects_only(&mut schema);
            }
            Some(schema).filter(|schema| !schema::accepts_everything(schema))
        }
        Some(_) => return Err(("value", "the schema is no map".to_owned())),
    };
    match schema {
        None => body.insert("json-path".to_owned(), json!({"path": "$"})),
        Some(schema) => body.insert("json-schema".to_owned(), Value::Object(schema)),
    };
    if is_whole {
        body.insert("not-regex".to_owned(), json!(FENCE));
    }
    Ok(TranslatedAssertion::Grader("output", Value::Object(body)))
}

fn word_count(keys: &Map<String, Value>, context: &Context<'_>) -> Result<Check, Refused<&'static str>> {
    let whole = |value: &Value| match value {
        Value::String(text) => filled(text, context).ok()?.trim().parse::<u64>().ok(),
        other => other.as_u64(),
    };
    let (min, max) = match keys.get("value") {
        Some(Value::Object(map)) => {
            let bound = |key: &str| match map.get(key) {
                None => Ok(None),
                Some(value) => whole(value).map(Some).ok_or(("value", format!("`{key}` is no whole number"))),
            };
            (bound("min")?, bound("max")?)
        }
        Some(value) => {
            let exact = whole(value).ok_or(("value", "it is no whole number".to_owned()))?;
            (Some(exact), Some(exact))
        }
        None => return Err(("value", "there is no value".to_owned())),
    };
    if min.is_none() && max.is_none() || min.is_some_and(|min| min == 0) && max.is_none() {
        return Err(("value", "it accepts any number of words".to_owned()));
    }
    if max.unwrap_or(0).max(min.unwrap_or(0)) > MAX_WORDS {
        return Err(("value", format!("it counts more than {MAX_WORDS} words")));
    }
    let (min, max) = (min.unwrap_or(0), max);
    if max.is_some_and(|max| max < min) {
        return Err(("value", "no number of words is accepted".to_owned()));
    }
    // The source splits at `\s` of JavaScript.
    let word = format!("[^{SPACE}]+");
    let space = format!("[{SPACE}]+");
    let more = |from: u64| match max {
        Some(max) => format!("{{{},{}}}", from.saturating_sub(1), max.saturating_sub(1)),
        None => format!("{{{},}}", from.saturating_sub(1)),
    };
    let several = |from: u64| format!(r"\A[{SPACE}]*{word}(?:{space}{word}){}[{SPACE}]*\z", more(from));
    let none = format!(r"\A[{SPACE}]*\z");
    let pattern = match (min, max) {
        (_, Some(0)) => none,
        (0, _) => format!("(?:{none})|(?:{})", several(1)),
        (min, _) => several(min),
    };
    Ok(Check::Matches(pattern))
}

fn score(threshold: Option<&Value>) -> Result<Option<f64>, Refused<&'static str>> {
    match threshold {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(threshold) if threshold > 0.0 && threshold <= 1.0 => Ok(Some(threshold)),
            Some(threshold) if threshold <= 0.0 => Ok(None),
            _ => Err(("threshold", "it is no number up to 1".to_owned())),
        },
    }
}

fn question(
    base: &str,
    keys: &Map<String, Value>,
    context: &Context<'_>,
    is_not: bool,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let value = match keys.get("value") {
        Some(Value::String(text)) => match content(text, context)? {
            Value::String(text) => text,
            other => crate::yaml::write(&other).trim().to_owned(),
        },
        Some(Value::Null) | None => return Err(("value", "there is no rubric".to_owned())),
        Some(other) => crate::yaml::write(other).trim().to_owned(),
    };
    if value.trim().is_empty() {
        return Err(("value", "the rubric is empty".to_owned()));
    }
    let pass = score(keys.get("threshold").filter(|value| !value.is_null()))?;
    if is_not && pass.is_some() {
        return Err(("threshold", "a judge's score below a threshold is no condition here".to_owned()));
    }
    let ask = match (base, is_not) {
        ("factuality" | "model-graded-factuality", false) => {
            format!("Is the final answer free of disagreement with this expert answer?\n{value}")
        }
        ("factuality" | "model-graded-factuality", true) => {
            format!("Does the final answer disagree with this expert answer?\n{value}")
        }
        ("agent-rubric", false) => format!("Does the work of the agent meet this rubric?\n{value}"),
        ("agent-rubric", true) => format!("Does the work of the agent fail to meet this rubric?\n{value}"),
        (_, false) => format!("Look at the final answer only. Does it meet this rubric?\n{value}"),
        (_, true) => format!("Look at the final answer only. Does it fail to meet this rubric?\n{value}"),
    };
    Ok(TranslatedAssertion::Question(ask, pass))
}

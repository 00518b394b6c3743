//! `match-args`: compares the arguments of a call with the expected ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::de::Error;
use serde_json::{Map, Value};
use strum::{EnumString, IntoStaticStr, VariantNames};

use crate::command_line::{is_option_of_text, is_shell};
use crate::decimal::Decimal;
use crate::judgement::Judgement;
use crate::trace::facts::is_cut;
use crate::trace::view;
use crate::values::{NameGlob, PathGlob, Pattern};
use crate::word::word;

mod spec;

/// The key for all arguments that are not listed.
const REST: &str = "*";
/// The key for rules per tool.
const TOOLS: &str = "tools";

/// The rules for comparing arguments: as a whole, by key path, and by tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MatchArgs {
    /// The mode for everything that no key path names.
    rest: Mode,
    /// The rules by key path; keys are joined by `.`, and `*` matches any one key.
    by_path: BTreeMap<String, ValueRule>,
    /// The rules that replace these for a tool; the first matching name counts.
    tools: Vec<(NameGlob, MatchArgs)>,
}

/// Which keys are required.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
enum Mode {
    Exact,
    Ignore,
    Subset,
    Superset,
    #[default]
    Partial,
}

word!(Mode);

/// The rule for comparing one value.
#[derive(Debug, Clone, Copy, PartialEq, IntoStaticStr, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
enum ValueRule {
    Exact,
    Ignore,
    Regex,
    Glob,
    /// The values are compared as numbers, with this tolerance.
    Number(f64),
    Path,
    Command,
}

word!(ValueRule);

/// Parses a word as a value.
fn from_word<E: Error, T: FromStr + VariantNames>(word: &str) -> Result<T, E> {
    word.parse().map_err(|_| E::unknown_variant(word, T::VARIANTS))
}

/// The compiled expected values of `regex` and `glob`, by key path. They are compiled on first use.
#[derive(Debug, Clone, Default)]
pub struct Compiled(OnceLock<BTreeMap<String, CompiledValue>>);

/// All compiled values are equal, because they are derived from the other fields.
impl PartialEq for Compiled {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Debug, Clone)]
enum CompiledValue {
    Pattern(Pattern),
    Glob(PathGlob),
}

impl MatchArgs {
    /// Returns true if an empty map of expected arguments means that there must be none.
    pub fn counts_keys(&self) -> bool {
        matches!(self.rest, Mode::Exact | Mode::Subset)
    }

    /// Returns a comparison in one mode that leaves these keys out.
    pub fn ignoring<'a>(mode: &str, keys: impl Iterator<Item = &'a String>) -> Self {
        let rest = mode.parse().unwrap_or_default();
        Self { rest, by_path: keys.map(|key| (key.clone(), ValueRule::Ignore)).collect(), tools: Vec::new() }
    }

    /// Returns an error if a regular expression or a glob in the expected values is invalid.
    pub fn refusal(&self, expected: &Map<String, Value>) -> Option<String> {
        let all = std::iter::once(self).chain(self.tools.iter().map(|(_, args)| args));
        all.flat_map(|args| args.compile(expected).err()).next()
    }

    /// Returns the rules that may apply to a tool: the rules for its name, or all rules if its name was not shown.
    fn of_tool(&self, tool: Option<&str>) -> Vec<&MatchArgs> {
        match tool {
            Some(tool) => {
                let own = self.tools.iter().find(|(name, _)| name.is_match(tool));
                vec![own.map_or(self, |(_, args)| args)]
            }
            None => self.tools.iter().map(|(_, args)| args).chain([self]).collect(),
        }
    }

    /// Returns whether a call's arguments are the expected ones; unknown if the agent did not show the deciding
    /// part.
    pub fn fits(
        &self,
        tool: Option<&str>,
        expected: &Map<String, Value>,
        input: Option<&Value>,
        workspace: Option<&str>,
        compiled: &Compiled,
    ) -> Judgement {
        let rules = self.of_tool(tool).into_iter();
        Judgement::agreed(rules.map(|rules| self.fits_by(rules, expected, input, workspace, compiled)))
    }

    fn fits_by(
        &self,
        rules: &MatchArgs,
        expected: &Map<String, Value>,
        input: Option<&Value>,
        workspace: Option<&str>,
        compiled: &Compiled,
    ) -> Judgement {
        if rules.rest == Mode::Ignore && rules.by_path.is_empty() {
            return Judgement::True;
        }
        let actual = match input {
            Some(Value::Object(actual)) => actual,
            Some(input) if !is_cut(input) => return Judgement::False,
            // If nothing is expected, any arguments match.
            _ if !rules.counts_keys() && expected.keys().all(|key| rules.leaves_out(key)) => return Judgement::True,
            _ => return Judgement::Unknown,
        };
        // Rules may read the same values differently for each tool.
        let own;
        let made = if self.tools.is_empty() {
            compiled.0.get_or_init(|| rules.compile(expected).unwrap_or_default())
        } else {
            own = rules.compile(expected).unwrap_or_default();
            &own
        };
        Comparison { rules, made, workspace }.objects(expected, actual, "", rules.rest).into()
    }

    fn leaves_out(&self, key: &str) -> bool {
        match self.how(key) {
            Some(how) => how == ValueRule::Ignore,
            None => self.rest == Mode::Ignore,
        }
    }

    fn how(&self, path: &str) -> Option<ValueRule> {
        if self.by_path.is_empty() {
            return None;
        }
        self.by_path.get(path).copied().or_else(|| {
            let fits = |pattern: &str| {
                pattern.contains(REST)
                    && pattern.split('.').count() == path.split('.').count()
                    && pattern.split('.').zip(path.split('.')).all(|(wanted, key)| wanted == REST || wanted == key)
            };
            self.by_path.iter().find(|(pattern, _)| fits(pattern)).map(|(_, how)| *how)
        })
    }

    fn compile(&self, expected: &Map<String, Value>) -> Result<BTreeMap<String, CompiledValue>, String> {
        let mut made = BTreeMap::new();
        for (key, value) in expected {
            self.compile_value(value, key.clone(), &mut made)?;
        }
        Ok(made)
    }

    fn compile_value(
        &self,
        value: &Value,
        path: String,
        made: &mut BTreeMap<String, CompiledValue>,
    ) -> Result<(), String> {
        match (self.how(&path), value) {
            (Some(ValueRule::Regex), Value::String(text)) => {
                made.insert(path, CompiledValue::Pattern(text.parse()?));
            }
            (Some(ValueRule::Glob), Value::String(text)) => {
                made.insert(path, CompiledValue::Glob(text.parse()?));
            }
            (Some(how @ (ValueRule::Regex | ValueRule::Glob)), _) => {
                return Err(format!("`{path}` is compared by `{}`, so the expected value must be a text", how.word()));
            }
            (Some(ValueRule::Number(_)), value) if Decimal::of_json(value).is_none() => {
                return Err(format!("`{path}` is compared as a number, but the expected value is not a number"));
            }
            (Some(_), _) => {}
            (None, Value::Object(map)) => {
                for (key, value) in map {
                    self.compile_value(value, format!("{path}.{key}"), made)?;
                }
            }
            (None, Value::Array(list)) => {
                for (n, value) in list.iter().enumerate() {
                    self.compile_value(value, format!("{path}.{n}"), made)?;
                }
            }
            (None, _) => {}
        }
        Ok(())
    }
}

struct Comparison<'a> {
    rules: &'a MatchArgs,
    made: &'a BTreeMap<String, CompiledValue>,
    workspace: Option<&'a str>,
}

impl Comparison<'_> {
    fn objects(&self, expected: &Map<String, Value>, actual: &Map<String, Value>, path: &str, mode: Mode) -> bool {
        let at = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let is_left_out = |key: &str| match self.rules.how(&at(key)) {
            Some(how) => how == ValueRule::Ignore,
            None => mode == Mode::Ignore,
        };
        let are_there = |wanted: &Map<String, Value>, among: &Map<String, Value>| {
            wanted.keys().all(|key| among.contains_key(key) || is_left_out(key))
        };
        let keys = match mode {
            Mode::Exact => are_there(expected, actual) && are_there(actual, expected),
            Mode::Subset => are_there(actual, expected),
            Mode::Superset | Mode::Partial | Mode::Ignore => are_there(expected, actual),
        };
        keys && expected.iter().all(|(key, expected)| match actual.get(key) {
            Some(actual) => is_left_out(key) || self.values(expected, actual, key, &at(key), mode),
            None => true,
        })
    }

    fn values(&self, expected: &Value, actual: &Value, key: &str, path: &str, mode: Mode) -> bool {
        if let Some(how) = self.rules.how(path) {
            return self.one(how, expected, actual, path);
        }
        match (expected, actual) {
            (Value::Object(expected), Value::Object(actual)) => self.objects(expected, actual, path, mode),
            // Lists are compared exactly, and so are their items.
            (Value::Array(expected), Value::Array(actual)) => {
                expected.len() == actual.len()
                    && expected.iter().zip(actual).enumerate().all(|(n, (expected, actual))| {
                        self.values(expected, actual, key, &format!("{path}.{n}"), Mode::Exact)
                    })
            }
            // Agents name files by absolute paths, and the workspace's path differs between trials.
            (Value::String(one), Value::String(other)) if view::is_path_key(key) => {
                one == other || self.relative(one) == self.relative(other)
            }
            _ => same(expected, actual),
        }
    }

    fn one(&self, how: ValueRule, expected: &Value, actual: &Value, path: &str) -> bool {
        match how {
            ValueRule::Ignore => true,
            ValueRule::Exact => same(expected, actual),
            ValueRule::Number(room) => {
                match (Decimal::of_json(expected), Decimal::of_json(actual), Decimal::of_float(room)) {
                    (Some(expected), Some(actual), Some(room)) => expected.minus(&actual).abs() <= room,
                    _ => false,
                }
            }
            ValueRule::Path => match (expected, actual) {
                (Value::String(one), Value::String(other)) => self.relative(one) == self.relative(other),
                _ => false,
            },
            ValueRule::Command => match (command(expected), command(actual)) {
                (Some(one), Some(other)) => one == other,
                _ => false,
            },
            ValueRule::Regex | ValueRule::Glob => match self.made.get(path) {
                Some(CompiledValue::Pattern(pattern)) => pattern.is_match(&text(actual)),
                Some(CompiledValue::Glob(glob)) => {
                    let text = text(actual);
                    glob.is_match(&text) || glob.is_match(&self.relative(&text))
                }
                None => false,
            },
        }
    }

    fn relative(&self, path: &str) -> String {
        view::relative(path, self.workspace)
    }
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(view::canonical(other)),
    }
}

/// Returns a command without the parts that differ between agents: an enclosing shell, and white space.
fn command(value: &Value) -> Option<String> {
    let words: Vec<&str> = match value {
        Value::String(text) => text.split_whitespace().collect(),
        Value::Array(list) => {
            let words: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            words?.into_iter().flat_map(str::split_whitespace).collect()
        }
        _ => return None,
    };
    let words = match words.as_slice() {
        [program, option, rest @ ..] if is_shell(program) && is_option_of_text(option) => rest,
        all => all,
    };
    let joined = words.join(" ");
    let quoted = ['\'', '"'].into_iter().find_map(|quote| joined.strip_prefix(quote)?.strip_suffix(quote));
    Some(quoted.unwrap_or(&joined).trim().to_owned())
}

/// Returns true if two values are equal; 1.0 equals 1.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            // 1.0 equals 1; beyond the exact range of floats, whole numbers are compared by their digits.
            a == b || (a.is_f64() != b.is_f64() && Decimal::parse(&a.to_string()) == Decimal::parse(&b.to_string()))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests;

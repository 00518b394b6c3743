//! Conditions on the final answer, as graders and as expressions.

use regex::escape;
use serde_json::{Value, json};

use super::super::restrictions::{matches_nothing, restricting_if};

/// A condition on the final answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Check {
    /// The answer contains the text.
    Contains(String),
    /// The answer contains the text in any case.
    ContainsAnyCase(String),
    /// The answer is the text.
    Equals(String),
    /// The pattern matches the answer.
    Matches(String),
    /// One of the checks holds.
    Any(Vec<Check>),
    /// Each of the checks holds.
    All(Vec<Check>),
    /// The check does not hold.
    Not(Box<Check>),
}

impl Check {
    /// Returns the grader. With `as_one`, its value is 0 or 1, and no share of several checks.
    pub fn grader(&self, as_one: bool) -> (&'static str, Value) {
        let (kind, body) = self.unmarked(as_one);
        (kind, restricting_if(self.holds_for_nothing(), body))
    }

    /// Returns true if the check holds for an empty answer.
    pub fn holds_for_nothing(&self) -> bool {
        match self {
            Self::Contains(text) | Self::ContainsAnyCase(text) | Self::Equals(text) => text.is_empty(),
            Self::Matches(pattern) => matches_nothing(pattern),
            Self::Any(checks) => checks.iter().any(Self::holds_for_nothing),
            Self::All(checks) => checks.iter().all(Self::holds_for_nothing),
            Self::Not(check) => !check.holds_for_nothing(),
        }
    }

    fn unmarked(&self, as_one: bool) -> (&'static str, Value) {
        // A grader does not compare white space at the end of a text.
        let is_plain = |text: &str| text.trim_end() == text;
        let body = match self {
            Self::Contains(text) if is_plain(text) => json!({"contains": text}),
            Self::ContainsAnyCase(text) if is_plain(text) => json!({"contains": text, "ignore-case": true}),
            Self::Equals(text) if is_plain(text) && !text.is_empty() => json!({"equals": text}),
            Self::All(checks)
                if !as_one && checks.iter().all(|check| matches!(check, Self::Contains(text) if is_plain(text))) =>
            {
                let texts: Vec<&str> = checks.iter().map(|check| check.text()).collect();
                json!({"contains": texts})
            }
            Self::All(checks)
                if !as_one
                    && checks.iter().all(|check| matches!(check, Self::ContainsAnyCase(text) if is_plain(text))) =>
            {
                let texts: Vec<&str> = checks.iter().map(|check| check.text()).collect();
                json!({"contains": texts, "ignore-case": true})
            }
            Self::Not(inner) => match &**inner {
                Self::Contains(text) if is_plain(text) => json!({"not-contains": text}),
                Self::ContainsAnyCase(text) if is_plain(text) => json!({"not-contains": text, "ignore-case": true}),
                // White space around a forbidden answer does not allow it.
                Self::Equals(text) => json!({"not-regex": format!(r"\A{}\s*\z", escape(text))}),
                other => match other.pattern() {
                    Some(pattern) => json!({"not-regex": pattern}),
                    None => return ("expr", json!({"cel": self.expression()})),
                },
            },
            other => match other.pattern() {
                Some(pattern) => json!({"regex": pattern}),
                None => return ("expr", json!({"cel": self.expression()})),
            },
        };
        ("output", body)
    }

    fn text(&self) -> &str {
        match self {
            Self::Contains(text) | Self::ContainsAnyCase(text) | Self::Equals(text) | Self::Matches(text) => text,
            Self::Any(_) | Self::All(_) | Self::Not(_) => "",
        }
    }

    /// Returns the single pattern that matches exactly the answers for which the check holds, if there is one.
    fn pattern(&self) -> Option<String> {
        match self {
            Self::Contains(text) => Some(escape(text)),
            Self::ContainsAnyCase(text) => Some(format!("(?i:{})", escape(text))),
            Self::Equals(text) => Some(format!(r"\A{}\z", escape(text))),
            Self::Matches(pattern) => Some(pattern.clone()),
            Self::Any(checks) => {
                let patterns: Option<Vec<String>> = checks.iter().map(Self::pattern).collect();
                Some(patterns?.into_iter().map(|pattern| format!("(?:{pattern})")).collect::<Vec<_>>().join("|"))
            }
            Self::All(checks) => match checks.as_slice() {
                [one] => one.pattern(),
                _ => None,
            },
            Self::Not(_) => None,
        }
    }

    /// Returns the condition as an expression in CEL.
    pub fn expression(&self) -> String {
        let all = |checks: &[Self], operator: &str| {
            let parts: Vec<String> = checks.iter().map(Self::expression).collect();
            format!("({})", parts.join(operator))
        };
        match self {
            Self::Any(checks) => all(checks, " || "),
            Self::All(checks) => all(checks, " && "),
            Self::Not(check) => format!("!{}", check.expression()),
            other => {
                let pattern = other.pattern().unwrap_or_default();
                format!("output.matches({})", literal(&pattern))
            }
        }
    }
}

/// Returns a text as a literal of CEL.
fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

//! Converts the values of an event's fields to the required types; invalid values are kept for a notice.

use serde_json::Value;

use crate::harness::stream::Kind;
use crate::trace::{FileDiff, Location, PermissionOption, PlanEntry};

/// Values by field.
pub(super) struct Values {
    pub(super) kind: Kind,
    fields: Vec<(&'static str, Value)>,
    /// Fields whose expression asked for what is not there.
    absent: Vec<(&'static str, String)>,
    wrong: Vec<(&'static str, String)>,
    /// A field is missing without which there is no event.
    loses: bool,
}

impl Values {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, fields: Vec::new(), absent: Vec::new(), wrong: Vec::new(), loses: false }
    }

    pub(super) fn add(&mut self, field: &'static str, value: Value) {
        // What is null was not said.
        if !value.is_null() {
            self.fields.push((field, value));
        }
    }

    pub(super) fn absent(&mut self, field: &'static str, why: String) {
        self.absent.push((field, why));
    }

    /// Fields whose expression asked for what is not there, and for what.
    pub(super) fn absent_fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.absent.iter().map(|(field, why)| (*field, why.as_str()))
    }

    /// What did not fit, to be told.
    pub(super) fn wrong(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.wrong)
    }

    /// Remembers that a field does not fit.
    pub(super) fn refuse(&mut self, field: &'static str, why: impl Into<String>) {
        self.wrong.push((field, why.into()));
    }

    /// Whether the field was said.
    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == field)
    }

    /// A value as it is.
    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        let at = self.fields.iter().position(|(known, _)| *known == field)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// A text; numbers are read as one.
    pub(super) fn text(&mut self, field: &'static str) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            other => {
                self.refuse(field, format!("it gives {}, not a text", kind_of(&other)));
                None
            }
        }
    }

    /// A text that must be there.
    pub(super) fn needed(&mut self, field: &'static str) -> Option<String> {
        let text = self.text(field);
        if text.is_none() {
            self.lacks(field);
        }
        text
    }

    /// Whether everything fitted so far.
    pub(super) fn wrong_is_empty(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Remembers that a text asked for what is not there; one that is null says nothing.
    pub(super) fn lacks_text(&mut self) {
        for (field, why) in std::mem::take(&mut self.absent) {
            if matches!(field, "text" | "delta" | "snapshot") {
                self.refuse(field, why);
            }
        }
    }

    /// Returns true if the event could not be made, because a field is missing that it needs.
    pub(super) fn loses(&self) -> bool {
        self.loses
    }

    /// Remembers that a field is missing that must be there.
    pub(super) fn lacks(&mut self, field: &'static str) {
        self.loses = true;
        if self.wrong.iter().any(|(known, _)| *known == field) {
            return;
        }
        let why = self.absent.iter().find(|(known, _)| *known == field).map(|(_, why)| why.clone());
        self.refuse(field, why.unwrap_or_else(|| "it gives nothing".to_owned()));
    }

    /// A text that is not empty.
    pub(super) fn word(&mut self, field: &'static str) -> Option<String> {
        self.text(field).filter(|text| !text.is_empty())
    }

    /// A whole number; a text that is one counts.
    pub(super) fn integer(&mut self, field: &'static str) -> Option<i64> {
        let value = self.take(field)?;
        let number = match &value {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.refuse(field, format!("it gives {}, not a whole number", kind_of(&value)));
        }
        number
    }

    /// A count of tokens. One below zero is none.
    pub(super) fn count(&mut self, field: &'static str) -> Option<u64> {
        self.integer(field).and_then(|number| u64::try_from(number).ok())
    }

    /// A number.
    pub(super) fn number(&mut self, field: &'static str) -> Option<f64> {
        let value = self.take(field)?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|it: &f64| it.is_finite());
        if number.is_none() {
            self.refuse(field, format!("it gives {}, not a number", kind_of(&value)));
        }
        number
    }

    /// Whether it is so.
    pub(super) fn flag(&mut self, field: &'static str) -> bool {
        match self.take(field) {
            Some(Value::Bool(flag)) => flag,
            Some(other) => {
                self.refuse(field, format!("it gives {}, not true or false", kind_of(&other)));
                false
            }
            None => false,
        }
    }

    /// Files: a path, a list of paths, or of maps.
    pub(super) fn locations(&mut self, field: &'static str) -> Vec<Location> {
        let place = |value: &Value| match value {
            Value::String(path) => Some(Location { path: path.clone(), line: None }),
            Value::Object(map) => Some(Location {
                path: map.get("path")?.as_str()?.to_owned(),
                line: map.get("line").and_then(Value::as_u64),
            }),
            _ => None,
        };
        self.each(field, "a path, or a map with `path`", place)
            .into_iter()
            .filter(|location| !location.path.is_empty())
            .collect()
    }

    /// Changes of files.
    pub(super) fn diffs(&mut self, field: &'static str) -> Vec<FileDiff> {
        self.each(field, "a map with `path`, `old` and `new`", |value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            let diff = FileDiff { path: text("path")?, old: text("old"), new: text("new") };
            (diff.old.is_some() || diff.new.is_some()).then_some(diff)
        })
    }

    /// A plan.
    pub(super) fn plan(&mut self, field: &'static str) -> Vec<PlanEntry> {
        self.each(field, "a map with `text`", |value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(PlanEntry { text: text("text")?, status: text("status"), priority: text("priority") })
        })
    }

    /// What may be answered to a request.
    pub(super) fn options(&mut self, field: &'static str) -> Vec<PermissionOption> {
        self.each(field, "a map with `option` and `kind`", |value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(PermissionOption {
                option: text("option")?,
                kind: text("kind")?,
                label: text("label").unwrap_or_default(),
            })
        })
    }

    fn each<T>(&mut self, field: &'static str, wanted: &str, read: impl Fn(&Value) -> Option<T>) -> Vec<T> {
        let list = match self.take(field) {
            Some(Value::Array(list)) => list,
            Some(one) => vec![one],
            None => return Vec::new(),
        };
        let mut found = Vec::with_capacity(list.len());
        for value in &list {
            match read(value) {
                Some(value) => found.push(value),
                None => self.refuse(field, format!("it gives {} where {wanted} is wanted", kind_of(value))),
            }
        }
        found
    }
}

fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9.0e15).then_some(number as i64)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

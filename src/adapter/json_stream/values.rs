//! Converts the values of an event's fields to the required types; invalid values are kept for a notice.

use serde_json::Value;

use crate::harness::stream::Kind;
use crate::trace::{Attachment, FileDiff, Location, PermissionOption, PlanEntry};

pub(super) struct Values {
    pub(super) kind: Kind,
    fields: Vec<(&'static str, Value)>,
    /// Fields whose expression reads an absent value.
    absent: Vec<(&'static str, String)>,
    wrong: Vec<(&'static str, String)>,
    broken: Vec<&'static str>,
    /// True if a field is missing that the event requires.
    loses: bool,
}

impl Values {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, fields: Vec::new(), absent: Vec::new(), wrong: Vec::new(), broken: Vec::new(), loses: false }
    }

    pub(super) fn add(&mut self, field: &'static str, value: Value) {
        // A null value counts as absent.
        if !value.is_null() {
            self.fields.push((field, value));
        }
    }

    pub(super) fn absent(&mut self, field: &'static str, why: String) {
        self.absent.push((field, why));
    }

    /// Returns the fields whose expression reads an absent value, and the reasons.
    pub(super) fn absent_fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.absent.iter().map(|(field, why)| (*field, why.as_str()))
    }

    /// Returns why a field is absent, if its expression reads an absent value.
    pub(super) fn absence_of(&self, field: &str) -> Option<String> {
        self.absent.iter().find(|(known, _)| *known == field).map(|(_, why)| why.clone())
    }

    /// Notes that a field's expression could not be evaluated.
    pub(super) fn breaks(&mut self, field: &'static str) {
        self.broken.push(field);
    }

    /// Returns true if a field's expression could not be evaluated.
    pub(super) fn is_broken(&self, field: &str) -> bool {
        self.broken.contains(&field)
    }

    /// Returns true if a field has a value that cannot be read: its expression failed, or the value is invalid.
    pub(super) fn is_unreadable(&self, field: &str) -> bool {
        self.is_broken(field) || self.wrong.iter().any(|(known, _)| *known == field)
    }

    /// Takes the invalid fields, with the reasons, for a notice.
    pub(super) fn wrong(&mut self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut self.wrong)
    }

    /// Notes that a field's value is invalid.
    pub(super) fn refuse(&mut self, field: &'static str, why: impl Into<String>) {
        self.wrong.push((field, why.into()));
    }

    /// Returns true if the field has a value.
    pub(super) fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(known, _)| *known == field)
    }

    /// Takes a value unchanged.
    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        let at = self.fields.iter().position(|(known, _)| *known == field)?;
        Some(self.fields.swap_remove(at).1)
    }

    /// Takes a text; a number is read as a text.
    pub(super) fn text(&mut self, field: &'static str) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            other => {
                self.refuse(field, format!("found {}, expected a text", kind_of(&other)));
                None
            }
        }
    }

    /// Takes a required text.
    pub(super) fn needed(&mut self, field: &'static str) -> Option<String> {
        let text = self.text(field);
        if text.is_none() {
            self.lacks(field);
        }
        text
    }

    /// Returns true if no value was invalid so far.
    pub(super) fn wrong_is_empty(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Notes that a text field's expression reads an absent value. A null field is not an error.
    pub(super) fn lacks_text(&mut self) {
        for (field, why) in std::mem::take(&mut self.absent) {
            if matches!(field, "text" | "delta" | "snapshot") {
                self.refuse(field, why);
            }
        }
    }

    /// Returns true if the text of the event is empty or null, and the event has no attachments.
    pub(super) fn says_nothing(&self) -> bool {
        let is_text = |field: &str| matches!(field, "text" | "delta" | "snapshot");
        let attaches = |value: &Value| value.as_array().is_none_or(|list| !list.is_empty());
        let says = |(field, value): &(&str, Value)| match *field {
            "attachments" => attaches(value),
            field => is_text(field) && value.as_str() != Some(""),
        };
        !self.fields.iter().any(says) && !self.absent.iter().any(|(field, _)| is_text(field))
    }

    /// Returns true if the event could not be made, because a required field is missing.
    pub(super) fn loses(&self) -> bool {
        self.loses
    }

    /// Returns true if an invalid value of this field leaves out what the agent said, did, or was answered.
    pub(super) fn loses_with(&self, field: &str) -> bool {
        match self.kind {
            Kind::Message | Kind::Thought => matches!(field, "text" | "delta" | "snapshot" | "role"),
            Kind::ToolCall => field == "locations",
            Kind::ToolResult => matches!(field, "output" | "diffs"),
            Kind::PermissionResponse => field == "outcome",
            _ => false,
        }
    }

    /// Notes that a required field is missing.
    pub(super) fn lacks(&mut self, field: &'static str) {
        self.loses = true;
        if self.wrong.iter().any(|(known, _)| *known == field) {
            return;
        }
        let why = self.absent.iter().find(|(known, _)| *known == field).map(|(_, why)| why.clone());
        self.refuse(field, why.unwrap_or_else(|| "the value is missing".to_owned()));
    }

    /// Takes a text that is not empty.
    pub(super) fn word(&mut self, field: &'static str) -> Option<String> {
        self.text(field).filter(|text| !text.is_empty())
    }

    /// Takes a whole number, also from a text that is one.
    pub(super) fn integer(&mut self, field: &'static str) -> Option<i64> {
        let value = self.take(field)?;
        let number = match &value {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.refuse(field, format!("found {}, expected a whole number", kind_of(&value)));
        }
        number
    }

    /// Takes a count of tokens.
    pub(super) fn count(&mut self, field: &'static str) -> Option<u64> {
        let number = self.integer(field)?;
        let count = u64::try_from(number).ok();
        if count.is_none() {
            self.refuse(field, format!("found {number}, expected a number from 0"));
        }
        count
    }

    /// Takes an amount of money.
    pub(super) fn amount(&mut self, field: &'static str) -> Option<f64> {
        let number = self.number(field)?;
        if number < 0.0 {
            self.refuse(field, format!("found {number}, expected a number from 0"));
            return None;
        }
        Some(number)
    }

    /// Takes a number.
    pub(super) fn number(&mut self, field: &'static str) -> Option<f64> {
        let value = self.take(field)?;
        let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|it: &f64| it.is_finite());
        if number.is_none() {
            self.refuse(field, format!("found {}, expected a number", kind_of(&value)));
        }
        number
    }

    /// Takes a boolean; an absent one is false.
    pub(super) fn flag(&mut self, field: &'static str) -> bool {
        match self.take(field) {
            Some(Value::Bool(flag)) => flag,
            Some(other) => {
                self.refuse(field, format!("found {}, expected true or false", kind_of(&other)));
                false
            }
            None => false,
        }
    }

    /// Takes files: a path, a map with a path, or a list of these.
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

    /// Takes changes to files.
    pub(super) fn diffs(&mut self, field: &'static str) -> Vec<FileDiff> {
        self.each(field, "a map with `path`, `old` and `new`", |value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            let diff = FileDiff { path: text("path")?, old: text("old"), new: text("new") };
            (diff.old.is_some() || diff.new.is_some()).then_some(diff)
        })
    }

    /// Takes a plan.
    pub(super) fn plan(&mut self, field: &'static str) -> Vec<PlanEntry> {
        self.each(field, "a map with `text`", |value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
            Some(PlanEntry { text: text("text")?, status: text("status"), priority: text("priority") })
        })
    }

    /// Takes the parts of a message that are not text.
    pub(super) fn attachments(&mut self, field: &'static str) -> Vec<Attachment> {
        self.each(field, "a map with `kind`", |value| {
            let text = |key: &str| value.get(key).and_then(Value::as_str);
            let kind = text("kind").filter(|kind| !kind.is_empty())?.to_owned();
            let (mut media_type, mut uri, mut data) = (text("media_type"), text("uri"), text("data"));
            // A URI that holds the data itself.
            if let Some((about, content)) = uri.and_then(|uri| uri.strip_prefix("data:")?.split_once(',')) {
                let named = about.split(';').next().filter(|named| !named.is_empty());
                (media_type, uri, data) = (media_type.or(named), None, data.or(Some(content)));
            }
            let bytes = data.map(|data| data.len() as u64);
            Some(Attachment { kind, media_type: media_type.map(str::to_owned), uri: uri.map(str::to_owned), bytes })
        })
    }

    /// Takes the possible answers to a request.
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
                None => self.refuse(field, format!("found {}, expected {wanted}", kind_of(value))),
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
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

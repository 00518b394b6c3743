//! A first pass over a YAML text without types: syntax, duplicate keys, tags, and exponentially growing texts.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IgnoredAny, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::locate::visit_plain;
use super::recovered::{LeftOut, OwnedStep};
use super::{MAX_ERRORS, YamlError, locate, open_brackets};

/// The maximum number of open brackets.
const MAX_UNCLOSED: usize = 1_000;
/// The name of an expected key in the parser's messages. An error about a key that is not a text is recognised by it.
const A_KEY: &str = "a text as key";
/// The maximum number of values of a file whose aliases are written out.
const MAX_VALUES: usize = 200_000;

/// Checks a text, and returns false if no type could be read from it. A single wrong place is left out.
pub(super) fn check(path: &Path, text: &str, left_out: &mut LeftOut, errors: &mut Vec<YamlError>) -> bool {
    // The parser checks every open bracket again for each further token, so deep nesting would take too long.
    if let Some(byte) = open_brackets::exceeding(text, MAX_UNCLOSED) {
        let range = Some(byte..byte + 1);
        errors.push(
            YamlError::at(path, text, range, format!("more than {MAX_UNCLOSED} brackets are open here"))
                .with_help("close them"),
        );
        return false;
    }
    while errors.len() < MAX_ERRORS {
        let mut survey = Survey { left_out, at: Vec::new(), values: 0, empty: false, stop: false, refused: None };
        let outcome = Any(&mut survey).deserialize(serde_yaml::Deserializer::from_str(text));
        let Err(error) = outcome else {
            if survey.empty {
                errors.push(empty(path, text));
            }
            return !survey.empty;
        };
        let place = error.location().map(|place| text.floor_char_boundary(place.index()));
        let Some(Refused { message, help, at }) = survey.refused else {
            errors.push(syntax(path, text, &error, place));
            return false;
        };
        let range = place.map(|byte| locate::token(text, byte));
        errors.push(YamlError::at(path, text, range, message).with_help(help));
        match at {
            Some(at) if !at.is_empty() && !left_out.contains(&at) => left_out.add(at),
            _ => return false,
        }
    }
    false
}

fn empty(path: &Path, text: &str) -> YamlError {
    YamlError::at(path, text, Some(0..0), "the file is empty").with_help("write keys into it, or remove it")
}

/// Returns an error of the YAML parser itself.
fn syntax(path: &Path, text: &str, error: &serde_yaml::Error, place: Option<usize>) -> YamlError {
    let message = locate::without_place(error);
    let character = place.and_then(|byte| text.get(byte..)).and_then(|rest| rest.chars().next());
    let range = place.map(|byte| locate::token(text, byte));
    if message.contains("more than one document") {
        let range = second_document(text);
        return YamlError::at(path, text, range, "the file contains more than one YAML document")
            .with_help("keep one document in a file, without `---` after the first key");
    }
    if message.contains(A_KEY) {
        return YamlError::at(path, text, range, "a key must be a text")
            .with_help("put a text with `{` or `[` in quotes");
    }
    if message.contains("recursion limit") {
        return YamlError::at(path, text, range, "values are nested too deeply")
            .with_help("at most 128 levels are allowed");
    }
    if message.contains("repetition limit") {
        return YamlError::at(path, text, range, "aliases repeat too much").with_help("write the values out");
    }
    if message.contains("control characters") {
        let odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
        let found = text.char_indices().find(|(_, c)| odd(*c));
        let range = found.map(|(byte, c)| byte..byte + c.len_utf8());
        let message = match found {
            Some((_, c)) => format!("the file contains a control character, U+{:04X}", u32::from(c)),
            None => "the file contains a control character".to_owned(),
        };
        return YamlError::at(path, text, range, message)
            .with_help("write it as an escape in double quotes, such as \"\\x1b\"");
    }
    let error = YamlError::at(path, text, range, format!("this is not YAML: {message}"));
    match character {
        Some('\t') => error.with_help("indent with spaces; YAML does not allow tabs there"),
        Some(c @ ('@' | '`' | '%' | '*' | '&' | '!')) => {
            error.with_help(format!("put a text that begins with `{c}` in quotes"))
        }
        _ if message.contains("alias") || message.contains("anchor") => {
            error.with_help("put a text that begins with `*` or `&` in quotes")
        }
        _ if message.contains("mapping values are not allowed") => {
            error.with_help("put a text that contains `: ` in quotes, or check the indentation")
        }
        // `{name}/file` in a list: YAML ends the value after the brace.
        _ if message.contains("did not find expected")
            && place.and_then(|byte| text.get(..byte)).is_some_and(|before| before.ends_with('}')) =>
        {
            error.with_help("put a text that begins with `{` in quotes, such as \"{project}/agent.py\"")
        }
        _ if message.contains("unexpected end of stream") || message.contains("did not find expected") => {
            error.with_help("check the indentation, and look for a quote or bracket that is not closed")
        }
        _ => error,
    }
}

/// Returns the line that begins the second document.
fn second_document(text: &str) -> Option<std::ops::Range<usize>> {
    let mut documents = serde_yaml::Deserializer::from_str(text);
    documents.next()?;
    let nothing = LeftOut::default();
    let mut survey = Survey { left_out: &nothing, at: Vec::new(), values: 0, empty: false, stop: true, refused: None };
    let error = Any(&mut survey).deserialize(documents.next()?).err()?;
    let start = error.location()?.index();
    let marker = text.get(..start)?.rfind("---").unwrap_or(start);
    Some(locate::token(text, marker))
}

struct Survey<'a> {
    left_out: &'a LeftOut,
    at: Vec<OwnedStep>,
    values: usize,
    empty: bool,
    stop: bool,
    refused: Option<Refused>,
}

/// The reason why a text was refused, and the place that may be left out to read the rest.
struct Refused {
    message: String,
    help: String,
    at: Option<Vec<OwnedStep>>,
}

impl Survey<'_> {
    /// Refuses the current place of the survey.
    fn refuse<E: de::Error>(&mut self, message: impl Into<String>, help: impl Into<String>) -> E {
        let at = Some(self.at.clone());
        self.refused = Some(Refused { message: message.into(), help: help.into(), at });
        E::custom("refused")
    }

    fn within<T, E>(&mut self, step: OwnedStep, look: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        self.at.push(step);
        let outcome = look(self);
        self.at.pop();
        outcome
    }

    fn refuse_duplicate<E: de::Error>(&mut self, key: &str) -> Result<(), E> {
        if self.left_out.contains(&self.at) {
            return Ok(());
        }
        let message = format!("the key `{}` occurs twice", super::words::short(key));
        Err(self.refuse(message, "remove one of them"))
    }

    /// Refuses a whole number that no 64-bit integer holds.
    fn refuse_long_number<E: de::Error>(&mut self) -> Result<(), E> {
        if self.left_out.contains(&self.at) {
            return Ok(());
        }
        let help = "put it in quotes: in a trace, such a number is a text with its digits";
        Err(self.refuse("the whole number has more than 64 bits", help))
    }

    fn count<E: de::Error>(&mut self) -> Result<(), E> {
        if self.stop {
            return Err(E::custom("here"));
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            let message = format!("the file contains more than {MAX_VALUES} values");
            let help =
                "aliases (`*name`) count each time they are used; split the file or use fewer aliases".to_owned();
            self.refused = Some(Refused { message, help, at: None });
            return Err(E::custom("refused"));
        }
        Ok(())
    }
}

struct Any<'a, 'b>(&'a mut Survey<'b>);

impl Any<'_, '_> {
    fn count<E: de::Error>(self) -> Result<(), E> {
        self.0.count()
    }
}

impl<'de> DeserializeSeed<'de> for Any<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    visit_plain!(count; visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<(), E> {
        self.0.refuse_long_number()
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<(), E> {
        self.0.refuse_long_number()
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.empty = self.0.values == 0;
        self.0.count()
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.count()?;
        for number in 0.. {
            let item = self.0.within(OwnedStep::Item(number), |survey| list.next_element_seed(Any(survey)))?;
            if item.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.count()?;
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key_seed(Key { survey: self.0, seen: &mut seen })? {
            self.0.within(OwnedStep::Key(key), |survey| map.next_value_seed(Any(survey)))?;
        }
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let (tag, value) = tagged.variant_seed(std::marker::PhantomData::<String>)?;
        if self.0.left_out.contains(&self.0.at) {
            return value.newtype_variant::<IgnoredAny>().map(|_| ());
        }
        Err(self.0.refuse(
            format!("the YAML tag `!{tag}` is not supported"),
            "put a text that begins with `!` in quotes; write `key: value` for a setting",
        ))
    }
}

/// A reader of a key, which refuses duplicate keys and merge keys.
struct Key<'a, 'b> {
    survey: &'a mut Survey<'b>,
    seen: &'a mut HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A_KEY)
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<String, E> {
        let twice = !self.seen.insert(key.to_owned());
        self.survey.within(OwnedStep::Key(key.to_owned()), |survey| {
            if key == "<<" && !survey.left_out.contains(&survey.at) {
                Err(survey.refuse(
                    "merge keys (`<<`) are not supported",
                    "write the keys out; cases of a folder can have their defaults in a suite.yaml",
                ))
            } else if twice {
                survey.refuse_duplicate(key)
            } else {
                Ok(())
            }
        })?;
        Ok(key.to_owned())
    }
}

//! A first pass over a YAML text that knows no types: syntax, duplicate keys, tags, and texts that grow without end.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use serde::de::{self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, Visitor};

use super::{YamlError, locate};

/// Brackets that may be open at once.
const MAX_UNCLOSED: usize = 1_000;
/// What a key is, in the parser's message where something else stands in its place.
const A_KEY: &str = "a text as key";
/// Values that a file may hold once its aliases are written out.
const MAX_VALUES: usize = 200_000;

/// Refuses a text that no type could be read from.
pub(super) fn check(path: &Path, text: &str) -> Result<(), YamlError> {
    if let Some(byte) = unclosed(text) {
        let range = Some(byte..byte + 1);
        return Err(YamlError::at(path, text, range, format!("more than {MAX_UNCLOSED} brackets are open here"))
            .with_help("close them"));
    }
    let mut survey = Survey::default();
    let outcome = Any(&mut survey).deserialize(serde_yaml::Deserializer::from_str(text));
    let Err(error) = outcome else {
        return if survey.empty { Err(empty(path, text)) } else { Ok(()) };
    };
    let place = error.location().map(|place| text.floor_char_boundary(place.index()));
    if let Some((message, help)) = survey.refused {
        let range = place.map(|byte| locate::token(text, byte));
        return Err(YamlError::at(path, text, range, message).with_help(help));
    }
    Err(syntax(path, text, &error, place))
}

/// The bracket that is one too many. The parser looks at every open one again for each further character.
fn unclosed(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > MAX_UNCLOSED
    })
}

fn empty(path: &Path, text: &str) -> YamlError {
    YamlError::at(path, text, Some(0..0), "the file is empty").with_help("write keys into it, or remove it")
}

/// An error of the YAML parser itself.
fn syntax(path: &Path, text: &str, error: &serde_yaml::Error, place: Option<usize>) -> YamlError {
    let message = locate::without_place(error);
    let character = place.and_then(|byte| text.get(byte..)).and_then(|rest| rest.chars().next());
    let range = place.map(|byte| locate::token(text, byte));
    if message.contains("more than one document") {
        let range = second_document(text);
        return YamlError::at(path, text, range, "the file holds more than one YAML document")
            .with_help("keep one document in a file: no `---` after the first key");
    }
    if message.contains(A_KEY) {
        return YamlError::at(path, text, range, "a key must be a text")
            .with_help("put a text with `{` or `[` in quotes");
    }
    if message.contains("recursion limit") {
        return YamlError::at(path, text, range, "values are nested too deeply")
            .with_help("at most 128 levels are read");
    }
    if message.contains("repetition limit") {
        return YamlError::at(path, text, range, "aliases repeat too much").with_help("write the values out");
    }
    if message.contains("control characters") {
        let odd = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
        let found = text.char_indices().find(|(_, c)| odd(*c));
        let range = found.map(|(byte, c)| byte..byte + c.len_utf8());
        let message = match found {
            Some((_, c)) => format!("the file holds a control character, U+{:04X}", u32::from(c)),
            None => "the file holds a control character".to_owned(),
        };
        return YamlError::at(path, text, range, message)
            .with_help("write it as an escape in double quotes, such as \"\\x1b\"");
    }
    let error = YamlError::at(path, text, range, format!("this is not YAML: {message}"));
    match character {
        Some('\t') => error.with_help("indent with spaces; YAML takes no tabs there"),
        Some(c @ ('@' | '`' | '%' | '*' | '&' | '!')) => {
            error.with_help(format!("put a text that begins with `{c}` in quotes"))
        }
        _ if message.contains("alias") || message.contains("anchor") => {
            error.with_help("put a text that begins with `*` or `&` in quotes")
        }
        _ if message.contains("mapping values are not allowed") => {
            error.with_help("put a text that holds `: ` in quotes, or look at the indentation")
        }
        _ if message.contains("unexpected end of stream") || message.contains("did not find expected") => {
            error.with_help("look at the indentation, and for a quote or bracket that is not closed")
        }
        _ => error,
    }
}

/// The line that begins the second document.
fn second_document(text: &str) -> Option<std::ops::Range<usize>> {
    let mut documents = serde_yaml::Deserializer::from_str(text);
    documents.next()?;
    let mut survey = Survey { stop: true, ..Survey::default() };
    let error = Any(&mut survey).deserialize(documents.next()?).err()?;
    let start = error.location()?.index();
    let marker = text.get(..start)?.rfind("---").unwrap_or(start);
    Some(locate::token(text, marker))
}

#[derive(Default)]
struct Survey {
    values: usize,
    empty: bool,
    stop: bool,
    refused: Option<(String, String)>,
}

impl Survey {
    fn refuse<E: de::Error>(&mut self, message: impl Into<String>, help: impl Into<String>) -> E {
        self.refused = Some((message.into(), help.into()));
        E::custom("refused")
    }

    fn count<E: de::Error>(&mut self) -> Result<(), E> {
        if self.stop {
            return Err(E::custom("here"));
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            let message = format!("the file holds more than {MAX_VALUES} values");
            return Err(self.refuse(message, "aliases (`*name`) count as often as they are used; write less"));
        }
        Ok(())
    }
}

struct Any<'a>(&'a mut Survey);

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        self.0.count()
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        self.0.count()
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        self.0.count()
    }

    fn visit_i128<E: de::Error>(self, _: i128) -> Result<(), E> {
        self.0.count()
    }

    fn visit_u128<E: de::Error>(self, _: u128) -> Result<(), E> {
        self.0.count()
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        self.0.count()
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        self.0.count()
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
        while list.next_element_seed(Any(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.count()?;
        let mut seen = HashSet::new();
        while map.next_key_seed(Key { survey: self.0, seen: &mut seen })?.is_some() {
            map.next_value_seed(Any(self.0))?;
        }
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<(), A::Error> {
        let (tag, _) = tagged.variant_seed(std::marker::PhantomData::<String>)?;
        Err(self.0.refuse(
            format!("the YAML tag `!{tag}` means nothing here"),
            "put a text that begins with `!` in quotes; write `key: value` for a setting",
        ))
    }
}

struct Key<'a, 'b> {
    survey: &'a mut Survey,
    seen: &'b mut HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(A_KEY)
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<(), E> {
        if key == "<<" {
            return Err(self
                .survey
                .refuse("merge keys (`<<`) are not read", "write the keys out, or use a suite.yaml"));
        }
        if !self.seen.insert(key.to_owned()) {
            return Err(self.survey.refuse(
                format!("the key `{}` stands here twice", super::words::short(key)),
                "keep one of them; the other would be lost",
            ));
        }
        Ok(())
    }
}

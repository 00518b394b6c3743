//! Tests of reading YAML.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sample {
    prompt: String,
    #[serde(default)]
    number: Option<u32>,
    #[serde(default)]
    list: Vec<Shape>,
    #[serde(default)]
    map: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    Plain,
    ToolCalls(Settings),
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Settings {
    min: u32,
}

fn error(text: &str) -> YamlError {
    parse::<Sample>(Path::new("a.yaml"), text).unwrap_err()
}

fn shown(text: &str) -> (Option<(usize, usize)>, String, String) {
    let error = error(text);
    (error.place(), error.message().to_owned(), error.way_out().unwrap_or_default().to_owned())
}

#[test]
fn enums_stand_as_words_and_as_one_key_maps() {
    let text = "prompt: hé\nlist:\n  - plain\n  - tool-calls: {min: 2}\nmap: {a: 1.10, b: true}\n";
    let sample: Sample = parse(Path::new("a.yaml"), text).unwrap();
    assert_eq!(sample.list, [Shape::Plain, Shape::ToolCalls(Settings { min: 2 })]);
    assert_eq!(sample.map["a"], "1.10", "a text keeps what was written");
}

#[test]
fn errors_stand_at_the_offending_text() {
    let (place, message, help) = shown("prompt: \"ü ü\"\nlist:\n  - tool_calls: {min: 1}\n");
    assert_eq!(place, Some((3, 5)));
    assert_eq!(message, "`tool_calls` is not known in `list[0]`");
    assert!(help.starts_with("did you mean `tool-calls`?"), "{help}");

    let (place, message, _) = shown("prompt: \"ü ü\"\nlist: [plain, {tool-calls: {min: -1}}]\n");
    assert_eq!(place, Some((2, 34)));
    assert_eq!(message, "`list[1].tool-calls.min` must be a whole number from 0, found the number `-1`");

    let (place, message, help) = shown("prompt: a\nnumer: 3\n");
    assert_eq!((place, message.as_str()), (Some((2, 1)), "unknown key `numer`"));
    assert!(help.starts_with("did you mean `number`?"), "{help}");

    let (place, message, _) = shown("# c\r\n\r\nnumber: 3\r\n");
    assert_eq!((place, message.as_str()), (Some((3, 1)), "the key `prompt` is missing"));
}

#[test]
fn a_key_without_a_value_is_refused() {
    for (text, at, wanted) in [
        ("prompt: a\nnumber:\n", (2, 8), "`number` must be a whole number from 0, found nothing"),
        ("prompt: a\nnumber: ~ # unknown\n", (2, 9), "`number` must be a whole number from 0, found nothing"),
        ("number: null\nprompt: a\n", (1, 9), "`number` must be a whole number from 0, found nothing"),
        ("prompt: a\nlist:\n", (2, 6), "`list` must be a list, found nothing"),
        ("prompt: a\nmap:\nnumber: 1\n", (2, 5), "`map` must be a map of keys, found nothing"),
    ] {
        let (place, message, help) = shown(text);
        assert_eq!((place, message.as_str()), (Some(at), wanted), "{text:?}");
        assert!(help.starts_with("write a value after the `:`"), "{text:?}: {help}");
    }
    // The rest is read, and an empty list is one that somebody wrote.
    let parsed = parse_all::<Sample>(Path::new("a.yaml"), "prompt: a\nnumber:\nlist: [plian]\n");
    assert_eq!(parsed.errors.len(), 2, "{:?}", parsed.errors);
    assert!(parse::<Sample>(Path::new("a.yaml"), "prompt: a\nlist: []\nmap: {}\n").unwrap().list.is_empty());
    // The keys of a map are names that the user chose, and a value of any type may be null.
    assert_eq!(parse::<Sample>(Path::new("a.yaml"), "prompt: a\nmap: {a: }\n").unwrap().map["a"], "");
    let any: serde_json::Value = parse(Path::new("a.yaml"), "a: ~\nb:\n").unwrap();
    assert_eq!(any, serde_json::json!({"a": null, "b": null}));
}

#[test]
fn settings_of_any_shape_need_a_value() {
    #[derive(Debug, Default, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct All {
        flag: Option<bool>,
        texts: Option<lists::OneOrList<String>>,
        any: Option<serde_json::Value>,
        word: Option<Shape>,
        inner: Option<Box<All>>,
        all: Vec<All>,
    }
    for (text, wanted) in [
        ("inner: {flag: }", "`inner.flag` must be `true` or `false`, found nothing"),
        ("all: [{}, {flag: }]", "`all[1].flag` must be `true` or `false`, found nothing"),
        ("texts:", "`texts` must be a value or a list of values, found nothing"),
        ("any: ~", "`any` must be a value, found nothing"),
        ("word:", "`word` must be a word, or a map with one key, found nothing"),
        ("inner:", "`inner` must be a map of keys, found nothing"),
        ("inner: {all: }", "`inner.all` must be a list, found nothing"),
    ] {
        let error = parse::<All>(Path::new("a.yaml"), text).unwrap_err();
        assert_eq!((error.message(), error.place().map(|(line, _)| line)), (wanted, Some(1)), "{text}");
    }
    let read: All = parse(Path::new("a.yaml"), "{flag: true, texts: x, any: {a: ~}, word: plain, inner: {}}").unwrap();
    assert!(read.flag.is_some() && read.texts.is_some() && read.any.is_some() && read.all.is_empty());
    assert!(read.word.is_some() && read.inner.is_some());
}

#[test]
fn texts_that_no_type_could_be_read_from_are_refused() {
    for (text, at, wanted) in [
        ("", (1, 1), "the file is empty"),
        ("# nothing\n", (1, 1), "the file is empty"),
        ("prompt: a\nmap:\n  x: 1\n  x: 2\n", (4, 3), "the key `x` occurs twice"),
        ("prompt: a\n---\nprompt: b\n", (2, 1), "more than one YAML document"),
        ("prompt: !shout a\n", (1, 9), "the YAML tag `!shout`"),
        ("prompt: a\n\tlist: []\n", (2, 1), "this is not YAML"),
        ("prompt: a: b\n", (1, 10), "mapping values are not allowed"),
        ("prompt: *.rs\n", (1, 10), "this is not YAML"),
        ("prompt: *nobody\n", (1, 9), "unknown anchor"),
        ("prompt: &a x\nmap:\n  <<: *a\n", (3, 3), "merge keys"),
        ("prompt: a\u{7}b\n", (1, 10), "control character, U+0007"),
        ("prompt: a\n? [x]\n: b\n", (2, 3), "a key must be a text"),
    ] {
        let (place, message, _) = shown(text);
        assert!(message.contains(wanted), "{text:?}: {message}");
        assert_eq!(place, Some(at), "{text:?}: {message}");
    }
}

#[test]
fn after_an_error_the_rest_is_read() {
    let read = |text: &str| {
        let Parsed { value, errors, .. } = parse_all::<Sample>(Path::new("a.yaml"), text);
        let places: Vec<_> = errors.iter().filter_map(YamlError::place).collect();
        (value, places)
    };
    let (value, places) = read(
        "numer: 1\nprompt: p\nlist:\n  - plian\n  - plain\n  - {tool-calls: {mni: 1}}\n  - {tool-calls: {min: 7}}\nnumber: x\nmap: {a: [], b: c, b: d, e: f}\n",
    );
    let value = value.unwrap();
    assert_eq!(value.list, [Shape::Plain, Shape::ToolCalls(Settings { min: 7 })]);
    assert_eq!((value.prompt.as_str(), value.map.len(), value.map["e"].as_str()), ("p", 1, "f"));
    assert_eq!(places.len(), 6, "{places:?}");
    for place in [(1, 1), (4, 5), (6, 19), (8, 9), (9, 10), (9, 20)] {
        assert!(places.contains(&place), "{place:?} is not told: {places:?}");
    }
    // A key that is missing because it is misspelt is reported once.
    let (value, places) = read("promt: p\nnumber: x\n");
    assert!(value.is_none());
    assert_eq!(places, [(1, 1), (2, 9)]);
}

#[test]
fn items_are_counted_as_they_stand_in_the_text() {
    let parsed = parse_all::<Sample>(Path::new("a.yaml"), "prompt: p\nlist: [plian, plain, [], plain]\n");
    let item = |number| parsed.left_out.written(&[Step::Key("list"), Step::Item(number)]);
    assert_eq!(item(0), [Step::Key("list"), Step::Item(1)]);
    assert_eq!(item(1), [Step::Key("list"), Step::Item(3)]);
}

#[test]
fn bombs_are_refused_in_time() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for n in 1..12 {
        let aliases = vec![format!("*a{}", n - 1); 9].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{aliases}]\n"));
    }
    let message = error(&bomb).to_string();
    assert!(message.contains("more than 200000 values") || message.contains("repeat too much"), "{message}");
    for deep in ["[", "{a: ", "- ", "? "] {
        let message = error(&format!("prompt: a\nlist:\n  {}", deep.repeat(200_000))).to_string();
        assert!(
            ["nested too deeply", "not YAML", "a key must", "brackets are open"].iter().any(|m| message.contains(m)),
            "{message}"
        );
    }
    // Line ends of Unicode are white space before a bracket, too.
    let message = error(&format!("list: {}", "[\u{85}".repeat(20_000))).to_string();
    assert!(message.contains("brackets are open"), "{message}");
    assert!(error(&"x".repeat(MAX_BYTES + 1)).message().contains("at most"));
}

#[test]
fn brackets_within_words_of_a_text_are_not_counted() {
    // The log of a terminal with colours.
    let text = format!("prompt: \"{}\"\nlist: [plain]\n", r"\e[32mpassed\e[0m\n".repeat(1_500));
    let read = parse::<Sample>(Path::new("a.yaml"), &text).unwrap();
    assert_eq!((read.prompt.lines().count(), read.list), (1_500, vec![Shape::Plain]));
}

#[test]
fn brackets_of_texts_and_comments_are_not_counted() {
    let lines = "  [0, 1)\n".repeat(1_100);
    for text in [
        format!("prompt: |\n{lines}list: [plain]\n"),
        format!("prompt: >-\n{lines}list: [plain]\n"),
        format!("prompt: a\n{lines}list: [plain]\n"),
        format!("prompt: 'a\n{lines}  '\nlist: [plain]\n"),
        format!("prompt: \"a\n{lines}  \"\nlist: [plain]\n"),
        format!("{}prompt: 0, 1)\nlist: [plain]\n", "# [0, 1)\n".repeat(1_100)),
    ] {
        let read = parse::<Sample>(Path::new("a.yaml"), &text).unwrap();
        assert!(read.prompt.contains("0, 1)"), "{text:.20}");
        assert_eq!(read.list, [Shape::Plain], "{text:.20}");
    }
    // A bracket within quotes closes none.
    let error = error(&format!("list: {}", "[\"]\",".repeat(80_000)));
    assert_eq!((error.message(), error.place()), ("more than 1000 brackets are open here", Some((1, 5_007))));
}

#[test]
fn deep_values_are_read_and_deeper_ones_refused() {
    let nested = |levels: usize| format!("{}x{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse::<serde_json::Value>(Path::new("a.yaml"), &nested(120)).is_ok());
    let error = parse::<serde_json::Value>(Path::new("a.yaml"), &nested(130)).unwrap_err();
    assert_eq!(error.message(), "values are nested too deeply");
}

#[test]
fn a_number_in_another_form_is_no_text() {
    #[derive(Debug, Deserialize)]
    struct Texts {
        text: lists::OneOrList<String>,
    }
    let read = |text: &str| parse::<Texts>(Path::new("a.yaml"), &format!("first: {{a: [0x1]}}\ntext: {text}\n"));
    for number in ["0xDEADBEEF", "0o777", "0b11", "+5", "-0x10", "+0x10"] {
        let error = read(number).unwrap_err();
        assert!(error.message().contains(&format!("the number {number} must be in quotes")), "{error}");
        assert_eq!(error.place(), Some((2, 7)), "{error}");
    }
    for (written, text) in
        [("42", "42"), ("-7", "-7"), ("\"0x10\"", "0x10"), ("[0x10, +5]", "0x10"), ("&a 42", "42"), ("007", "007")]
    {
        assert_eq!(read(written).unwrap().text.0[0], text, "{written}");
    }
}

#[test]
fn a_file_that_is_not_utf_8_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    std::fs::write(&path, b"prompt: a\nlist: \xff\n").unwrap();
    let error = read(&path).unwrap_err();
    assert_eq!(error.place(), Some((2, 7)));
    assert_eq!(error.message(), "the file is not UTF-8: byte 0xff");
    for start in [b"\xff\xfep\0", b"\xfe\xff\0p"] {
        std::fs::write(&path, start).unwrap();
        assert_eq!(read(&path).unwrap_err().message(), "the file is UTF-16, which is not read");
    }
}

#[test]
fn surrogate_pairs_of_json_are_characters() {
    let read = |text: &str| parse::<BTreeMap<String, String>>(Path::new("a.yaml"), text);
    for (written, expected) in [
        (r#"{"a": "x \ud83d\ude00\n\uD83D\uDE00"}"#, "x 😀\n😀"),
        // The backslash is escaped.
        (r#"{"a": "\\ud83d\\ude00"}"#, r"\ud83d\ude00"),
        // Single quotes have no escapes.
        (r"{a: '\ud83d\ude00'}", r"\ud83d\ude00"),
    ] {
        assert_eq!(read(written).unwrap()["a"], expected, "{written}");
    }
    assert!(read(r#"{"a": "\ud83d"}"#).is_err());
}

#[test]
fn values_and_keys_are_found() {
    let text = "prompt: ü\nlist:\n  - plain\n  - {tool-calls: {min: 'a, b'}}\n";
    let at = |steps: &[Step<'_>], part| find(text, steps, part).map(|range| &text[range]);
    let steps = [Step::Key("list"), Step::Item(1), Step::Key("tool-calls"), Step::Key("min")];
    assert_eq!(at(&steps, StepPart::Value), Some("'a, b'"));
    assert_eq!(at(&steps, StepPart::Key), Some("min"));
    assert_eq!(at(&steps[..2], StepPart::Value), Some("{"));
    assert_eq!(at(&[Step::Key("prompt")], StepPart::Value), Some("ü"));
    assert_eq!(at(&[Step::Key("list"), Step::Item(2)], StepPart::Value), None);
    assert_eq!(at(&[Step::Key("nothing")], StepPart::Key), None);
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,80}|[-\\[\\]{}:,&*!|>'\"%@`?#a \t\r\n\u{feff}é]{0,60}") {
        if let Err(error) = parse::<Sample>(Path::new("a.yaml"), &text) {
            let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
            handler.render_report(&mut String::new(), &error).unwrap();
        }
    }
}

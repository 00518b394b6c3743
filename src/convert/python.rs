//! The texts that Python's `str()` makes of values that its readers of JSON and of YAML (PyYAML, YAML 1.1) return.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::numbers;
use super::parts::scalar;

/// The most digits of a whole number that Python converts from a text and to one.
const MAX_DIGITS: usize = 4_300;

/// A text without quotes, as PyYAML reads it.
#[derive(Debug, PartialEq, Eq)]
enum Plain {
    /// The text itself.
    Text,
    /// Another value, with its text in Python.
    Value(String),
    /// Another value whose text is not known, or an error.
    Unknown,
}

/// Whole numbers: binary, octal, decimal, hexadecimal and sexagesimal.
static WHOLE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\A[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)\z").ok()
});
/// Numbers with a point. An exponent needs its sign, and one without digits before the point has no sign.
static DECIMAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\A(?:[-+]?[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?\z").ok());
/// Days, whose text is the one that is written.
static DAY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let all = "(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])";
    let long = "(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31";
    Regex::new(&format!(r"\A[0-9]{{4}}-(?:{all}|{long})\z")).ok()
});
/// Other days, times, sexagesimal numbers with a point, numbers that are not finite, and texts that PyYAML refuses.
static UNKNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let time = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:.*|[0-9]{4}-[0-9]{2}-[0-9]{2}";
    let number = r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)";
    Regex::new(&format!(r"\A(?:{time}|{number}|=|<<)\z")).ok()
});
/// Forms of numbers that the reader of this program and PyYAML may take for different values.
static OTHER_FORM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"0[xob]|[0-9.][eE][-+]?[0-9]|[-+]\.|\+[0-9]|\.(?i:inf|nan)").ok());

/// Returns the text of a scalar of JSON, or `None` for null, a list or a map.
///
/// # Errors
/// Returns the reason if the text is not known.
pub fn text(value: &Value) -> Result<Option<String>, String> {
    match value {
        Value::Bool(is_true) => Ok(Some(truth(*is_true).to_owned())),
        Value::Number(number) => match numbers::python(number) {
            Some(text) => Ok(Some(text)),
            None => Err(format!("the digits of the number {number} are not known here; write it as a text, in quotes")),
        },
        other => Ok(scalar(other)),
    }
}

/// Returns a value of YAML in which a text that only PyYAML reads as true, false or a number, such as `no` or `1_800`, is that
/// value. Such texts in quotes are read in the same way: the caller expects no text.
pub fn of_yaml(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    // Without quotes, this program's reader would have read these, too.
    let is_quoted = ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) || text.parse::<f64>().is_ok();
    match plain(text) {
        _ if is_quoted => value.clone(),
        Plain::Value(read) if read == truth(true) => Value::Bool(true),
        Plain::Value(read) if read == truth(false) => Value::Bool(false),
        Plain::Value(read) => serde_json::from_str(&read).unwrap_or_else(|_| value.clone()),
        Plain::Text | Plain::Unknown => value.clone(),
    }
}

/// Returns true if a YAML text contains forms of numbers for which [`yaml_text`] needs the written text.
pub fn has_other_forms(text: &str) -> bool {
    OTHER_FORM.as_ref().is_none_or(|form| form.is_match(text))
}

/// Returns the text of a scalar of YAML, or `None` for null, a list or a map. `written` returns the text at its place, if
/// it is found, and is called only if it matters. `has_other_forms` is what the function of this name returned for the
/// file.
///
/// # Errors
/// Returns the reason if the text is not known.
pub fn yaml_text(
    value: &Value,
    has_other_forms: bool,
    written: impl FnOnce() -> Option<String>,
) -> Result<Option<String>, String> {
    match value {
        Value::String(text) => {
            let read = plain(text);
            if read == Plain::Text {
                return Ok(Some(text.clone()));
            }
            let written = written().unwrap_or_default();
            match (written.chars().next(), read) {
                (Some('"' | '\'' | '|' | '>'), _) => Ok(Some(text.clone())),
                // A tag, an anchor or an alias may stand before a text in quotes.
                (None | Some('!' | '&' | '*'), _) | (_, Plain::Unknown) => Err(unclear(text)),
                (_, Plain::Value(other)) => Ok(Some(other)),
                (_, Plain::Text) => Ok(Some(text.clone())),
            }
        }
        Value::Number(number) => {
            let own = numbers::python(number).filter(|_| !has_other_forms);
            if own.is_some() {
                return Ok(own);
            }
            let written = written().ok_or_else(|| unclear(&number.to_string()))?;
            match plain(&written) {
                Plain::Value(text) => Ok(Some(text)),
                Plain::Text if written.starts_with(|c: char| c.is_ascii_digit() || "-+.".contains(c)) => {
                    Ok(Some(written))
                }
                _ => Err(unclear(&written)),
            }
        }
        // The value for a number that is not finite is null here.
        Value::Null if has_other_forms => match written() {
            Some(written) if plain(&written) == Plain::Unknown => Err(unclear(&written)),
            _ => Ok(None),
        },
        other => text(other),
    }
}

fn unclear(shown: &str) -> String {
    format!("the source reads `{shown}` as another value, whose text is not known here; write the text in quotes")
}

fn truth(is_true: bool) -> &'static str {
    if is_true { "True" } else { "False" }
}

/// Returns what PyYAML reads for a text without quotes.
fn plain(text: &str) -> Plain {
    let is = |form: &LazyLock<Option<Regex>>| form.as_ref().is_none_or(|form| form.is_match(text));
    let known = |text: Option<String>| text.map_or(Plain::Unknown, Plain::Value);
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Plain::Value(truth(true).to_owned()),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Plain::Value(truth(false).to_owned())
        }
        _ if is(&WHOLE) => known(whole(text)),
        _ if is(&DECIMAL) => known(decimal(text)),
        _ if is(&DAY) => Plain::Text,
        _ if is(&UNKNOWN) => Plain::Unknown,
        _ => Plain::Text,
    }
}

/// Returns the text of a whole number in one of the forms of YAML 1.1.
fn whole(text: &str) -> Option<String> {
    let text = text.replace('_', "");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    let of = |digits: &str, base: u32| u128::from_str_radix(digits, base).ok().map(|number| number.to_string());
    let number = if let Some(digits) = digits.strip_prefix("0b") {
        of(digits, 2)
    } else if let Some(digits) = digits.strip_prefix("0x") {
        of(digits, 16)
    } else if digits.starts_with('0') {
        of(digits, 8)
    } else if digits.contains(':') {
        let sum = digits.split(':').try_fold(0_u128, |sum, part| sum.checked_mul(60)?.checked_add(part.parse().ok()?));
        sum.map(|sum| sum.to_string())
    } else {
        Some(digits.to_owned()).filter(|digits| digits.len() <= MAX_DIGITS)
    }?;
    Some(if number == "0" { number } else { format!("{sign}{number}") })
}

/// Returns the text of a number with a point.
fn decimal(text: &str) -> Option<String> {
    let value = text.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite())?;
    Some(numbers::python_float(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_that_only_yaml_1_1_reads_otherwise_become_their_values() {
        for (text, is) in [
            ("no", json!(false)),
            ("On", json!(true)),
            ("1_800", json!(1800)),
            ("15:00", json!(900)),
            ("true", json!("true")),
            ("360", json!("360")),
            ("1e3", json!("1e3")),
            ("x", json!("x")),
        ] {
            assert_eq!(of_yaml(&json!(text)), is, "{text}");
        }
        assert_eq!(of_yaml(&json!(false)), json!(false));
    }

    #[test]
    fn texts_without_quotes_are_those_that_pyyaml_reads() {
        assert!([&WHOLE, &DECIMAL, &DAY, &UNKNOWN, &OTHER_FORM].iter().all(|form| form.is_some()));
        for (text, value) in [
            ("010", "8"),
            ("yes", "True"),
            ("On", "True"),
            ("off", "False"),
            ("1_000", "1000"),
            ("1:30", "90"),
            ("-1:30", "-90"),
            ("1:2:3", "3723"),
            ("0x1F", "31"),
            ("-0x1F", "-31"),
            ("0b11", "3"),
            ("+1", "1"),
            ("-0", "0"),
            ("0_", "0"),
            ("12345678901234567890123", "12345678901234567890123"),
            (".5", "0.5"),
            ("+.5", "+.5"),
            ("1.", "1.0"),
            ("-1.50", "-1.5"),
            ("1_0.5", "10.5"),
            ("1.5e+3", "1500.0"),
            ("1.0e+22", "1e+22"),
            ("0.00001", "1e-05"),
            ("123456789012345678.5", "1.2345678901234568e+17"),
            ("1e3", "1e3"),
            ("1.5e3", "1.5e3"),
            ("0o17", "0o17"),
            ("08", "08"),
            ("09:30", "09:30"),
            ("-.5", "-.5"),
            ("y", "y"),
            ("2024-01-01", "2024-01-01"),
            ("2024-1-1", "2024-1-1"),
            ("0b_", ""),
            ("1:30.5", ""),
            ("-.Inf", ""),
            (".NaN", ""),
            ("=", ""),
            ("2024-02-30", ""),
            ("2024-01-01 10:00:00", ""),
        ] {
            let read = match plain(text) {
                Plain::Text => text.to_owned(),
                Plain::Value(value) => value,
                Plain::Unknown => String::new(),
            };
            assert_eq!(read, value, "{text}");
        }
    }

    #[test]
    fn the_form_of_a_value_decides_its_text() {
        let of = |value: Value, written: &str| {
            let text = yaml_text(&value, has_other_forms(written), || Some(written.to_owned()));
            text.ok().map(Option::unwrap_or_default)
        };
        for (value, written, text) in [
            (Value::from("yes"), "yes", Some("True")),
            (Value::from("yes"), "'yes'", Some("yes")),
            (Value::from("yes"), "!!str yes", None),
            (Value::from("yes"), "", None),
            (Value::from(1000.0), "1e3", Some("1e3")),
            (Value::from(1000), "1000", Some("1000")),
            (Value::from(15), "0o17", Some("0o17")),
            (Value::from(1), "+1", Some("1")),
            (Value::from(1.5), "&a 1.5", Some("1.5")),
            (Value::from(1e22), "10000000000000000000000.0", Some("1e+22")),
            (Value::from(true), "true", Some("True")),
            (Value::Null, "~", Some("")),
            (Value::Null, ".inf", None),
        ] {
            assert_eq!(of(value, written).as_deref(), text, "{written}");
        }
    }
}

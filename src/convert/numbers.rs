//! Numbers as the languages of other tools write them in a text.

use serde_json::{Map, Number, Value};

/// Returns a number as JavaScript prints it. Each number of JavaScript is a 64-bit float, so 1.0 becomes `1`.
pub fn javascript(number: &Number) -> String {
    let Some(value) = number.as_f64() else { return number.to_string() };
    let Some((is_negative, digits, exponent)) = shortest(value) else { return "0".to_owned() };
    let sign = if is_negative { "-" } else { "" };
    let count = digits.len() as i32;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    // The place of the point, counted from the first digit.
    let point = exponent + 1;
    let text = match point {
        1..=21 if point >= count => format!("{digits}{}", zeros(point - count)),
        1..=21 => with_point(&digits, point),
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let digits = if count > 1 { with_point(&digits, 1) } else { digits };
            format!("{digits}e{}{}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
    };
    format!("{sign}{text}")
}

/// Returns the text of a number of JSON in Python, or `None` if it is not known: JSON's whole numbers have any size there,
/// and those beyond 64 bits are not kept here.
pub fn python(number: &Number) -> Option<String> {
    if number.is_u64() || number.is_i64() {
        return Some(number.to_string());
    }
    number.as_f64().filter(|value| value.abs() < 9e18).map(python_float)
}

/// Returns the text of a finite number with a point in Python.
pub fn python_float(value: f64) -> String {
    let Some((is_negative, digits, exponent)) = shortest(value) else {
        return if value.is_sign_negative() { "-0.0" } else { "0.0" }.to_owned();
    };
    let sign = if is_negative { "-" } else { "" };
    let count = digits.len() as i32;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let text = match exponent {
        0..=15 if exponent + 1 >= count => format!("{digits}{}.0", zeros(exponent + 1 - count)),
        0..=15 => with_point(&digits, exponent + 1),
        -4..=-1 => format!("0.{}{digits}", zeros(-exponent - 1)),
        _ => {
            let digits = if count > 1 { with_point(&digits, 1) } else { digits };
            format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
        }
    };
    format!("{sign}{text}")
}

/// Returns the shortest digits that parse back to this number, and the exponent of the first one. Returns `None` for zero.
fn shortest(value: f64) -> Option<(bool, String, i32)> {
    let text = format!("{:e}", value.abs());
    let (digits, exponent) = text.split_once('e')?;
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    (value != 0.0).then_some((value < 0.0, digits, exponent.parse().ok()?))
}

fn with_point(digits: &str, at: i32) -> String {
    let at = usize::try_from(at).unwrap_or(0).min(digits.len());
    format!("{}.{}", &digits[..at], &digits[at..])
}

/// Returns a value whose numbers are those that JavaScript keeps: 1.0 is 1, and of a large number the first 53 bits count.
pub fn as_in_javascript(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let text = javascript(&number);
            let whole = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
            Value::Number(whole.unwrap_or(number))
        }
        Value::Array(list) => Value::Array(list.into_iter().map(as_in_javascript).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, as_in_javascript(value))).collect::<Map<_, _>>())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_have_the_text_of_each_language() {
        for (json, in_javascript, in_python) in [
            ("1.0", "1", Some("1.0")),
            ("1e3", "1000", Some("1000.0")),
            ("-2.50", "-2.5", Some("-2.5")),
            ("0", "0", Some("0")),
            ("-0.0", "0", Some("-0.0")),
            ("123456789.125", "123456789.125", Some("123456789.125")),
            ("12345678901234567890", "12345678901234567000", Some("12345678901234567890")),
            ("12345678901234567890123", "1.2345678901234568e+22", None),
            ("1e21", "1e+21", None),
            ("1e20", "100000000000000000000", None),
            ("1e16", "10000000000000000", Some("1e+16")),
            ("1e15", "1000000000000000", Some("1000000000000000.0")),
            ("0.000001", "0.000001", Some("1e-06")),
            ("0.0001", "0.0001", Some("0.0001")),
            ("1.5e-7", "1.5e-7", Some("1.5e-07")),
        ] {
            let number = number(json);
            assert_eq!(
                (javascript(&number).as_str(), python(&number).as_deref()),
                (in_javascript, in_python),
                "{json}"
            );
        }
        let value = serde_json::from_str("[1.0, {\"a\": 12345678901234567890, \"b\": 0.5}]").unwrap();
        assert_eq!(as_in_javascript(value).to_string(), r#"[1,{"a":12345678901234567000,"b":0.5}]"#);
    }
}

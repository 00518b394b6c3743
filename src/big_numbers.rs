//! Whole numbers that no 64-bit integer holds become texts, so that the trace keeps their digits.

use std::borrow::Cow;

use memchr::memchr2;

/// The minimum number of digits of a whole number that 64 bits cannot hold: `-9223372036854775809` has 19.
const MIN_DIGITS: usize = 19;

/// Returns a line of JSON in which each whole number that no 64-bit integer holds is a text with the same digits. A reader
/// would take it as a fraction with about 17 digits, so different numbers would be the same.
pub fn as_texts(line: &str) -> Cow<'_, str> {
    if !may_be_in(line) {
        return Cow::Borrowed(line);
    }
    let bytes = line.as_bytes();
    let (mut text, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_text(bytes, at + 1),
            b'-' | b'0'..=b'9' => {
                let is_of_number = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                let length = bytes[at..].iter().take_while(|byte| is_of_number(byte)).count();
                let number = &line[at..at + length];
                if is_big(number) {
                    text.push_str(&line[kept..at]);
                    text.extend(["\"", number, "\""]);
                    kept = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if kept == 0 {
        return Cow::Borrowed(line);
    }
    text.push_str(&line[kept..]);
    Cow::Owned(text)
}

/// Returns true if a text may have a whole number that no 64-bit integer holds: [`MIN_DIGITS`] digits in a row. Every such row
/// includes a byte at a multiple of that number.
fn may_be_in(text: &str) -> bool {
    let bytes = text.as_bytes();
    (MIN_DIGITS - 1..bytes.len()).step_by(MIN_DIGITS).any(|at| {
        let digits = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| byte.is_ascii_digit()).count();
        bytes[at].is_ascii_digit()
            && digits(&mut bytes[..at].iter().rev()) + digits(&mut bytes[at..].iter()) >= MIN_DIGITS
    })
}

/// Returns true for a whole number of JSON that neither `i64` nor `u64` holds.
fn is_big(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.len() >= MIN_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
        && number.parse::<u64>().is_err()
        && number.parse::<i64>().is_err()
}

/// Returns the place after the quotation mark that ends a text.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_whole_numbers_that_are_too_large_become_texts() {
        for (line, is) in [
            (r#"{"a":12345678901234567890123}"#, r#"{"a":"12345678901234567890123"}"#),
            (r#"[18446744073709551615,18446744073709551616]"#, r#"[18446744073709551615,"18446744073709551616"]"#),
            (r#"[-9223372036854775808,-9223372036854775809]"#, r#"[-9223372036854775808,"-9223372036854775809"]"#),
            (r#"{"a":"12345678901234567890123"}"#, r#"{"a":"12345678901234567890123"}"#),
            (r#"{"a":"\"12345678901234567890123"}"#, r#"{"a":"\"12345678901234567890123"}"#),
            (r#"[12345678901234567890123.5,1e400,12345678901234567890123e2]"#, ""),
            (r#"[012345678901234567890123]"#, ""),
            (r#"{"a":"12345678901234567890123"#, ""),
            (r#"["a\\",123456789012345678901]"#, r#"["a\\","123456789012345678901"]"#),
        ] {
            assert_eq!(as_texts(line), if is.is_empty() { line } else { is });
        }
    }

    proptest! {
        #[test]
        fn every_other_line_stays_as_it_is(value in "[\\[\\]{}\",:\\\\0-9a-e. -]{0,80}") {
            let changed = as_texts(&value);
            if let (Ok(before), Cow::Owned(after)) = (serde_json::from_str::<serde_json::Value>(&value), &changed) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(after).is_ok_and(|after| after != before));
            }
        }

        #[test]
        fn digits_are_kept_wherever_they_stand(before in " {0,40}", number in "-?[1-9][0-9]{0,40}") {
            let line = format!("{before}[{number}]");
            let text = as_texts(&line);
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            let kept = read[0].as_str().map_or_else(|| read[0].to_string(), str::to_owned);
            prop_assert_eq!(kept, number);
        }
    }
}

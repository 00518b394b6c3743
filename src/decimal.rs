//! Decimal numbers as written, compared exactly: whole numbers of any size, and fractions without rounding.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// The largest power of ten of a first or last digit. Text beyond this limit is not read as a number.
const MAX_POWER_OF_TEN: i64 = 2000;

/// A decimal number: its digits, the least significant one first, times a power of ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decimal {
    is_negative: bool,
    /// The digits without zeros at either end; empty for zero.
    digits: Vec<u8>,
    power: i64,
}

impl Decimal {
    pub const ZERO: Decimal = Decimal { is_negative: false, digits: Vec::new(), power: 0 };

    /// Parses `-12`, `0.5`, `.5`, `5.` and `1.5e-3`; `None` if the text is anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (number, power) = match rest.split_once(['e', 'E']) {
            Some((number, power)) => (number, power.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if digits().next().is_none() || !digits().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?;
        let digits: Vec<u8> = digits().rev().map(|byte| byte - b'0').collect();
        let number = Self { is_negative, digits, power }.trimmed();
        let top = number.power.checked_add(i64::try_from(number.digits.len()).ok()?)?;
        (number.digits.is_empty() || (number.power >= -MAX_POWER_OF_TEN && top <= MAX_POWER_OF_TEN)).then_some(number)
    }

    /// Returns the number as a float is written: with the fewest digits that identify that float.
    pub fn of_float(number: f64) -> Option<Self> {
        number.is_finite().then(|| Self::parse(&number.to_string()))?
    }

    /// Returns the number in a JSON value: a number, or a text with a number.
    pub fn of_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::parse(&number.to_string()),
            Value::String(text) => Self::parse(&text.trim().replace('\u{2212}', "-")),
            _ => None,
        }
    }

    /// Returns true if the number is below 0.
    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// Returns the number without its sign.
    #[must_use]
    pub fn abs(&self) -> Self {
        Self { is_negative: false, ..self.clone() }
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let power = self.power.min(other.power);
        let (one, two) = (self.digits_from(power), other.digits_from(power));
        let (is_negative, digits) = if self.is_negative == other.is_negative {
            (self.is_negative, sum(&one, &two))
        } else {
            match compare(&one, &two) {
                Ordering::Less => (other.is_negative, difference(&two, &one)),
                _ => (self.is_negative, difference(&one, &two)),
            }
        };
        Self { is_negative, digits, power }.trimmed()
    }

    /// Returns the difference.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.plus(&Self { is_negative: !other.is_negative, ..other.clone() })
    }

    /// Returns the product.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0u8; self.digits.len() + other.digits.len()];
        for (n, one) in self.digits.iter().enumerate() {
            let mut carry = 0u16;
            for (at, digit) in digits.iter_mut().skip(n).enumerate() {
                let two = other.digits.get(at).copied().unwrap_or(0);
                let value = u16::from(*digit) + u16::from(*one) * u16::from(two) + carry;
                *digit = (value % 10) as u8;
                carry = value / 10;
            }
        }
        let is_negative = self.is_negative != other.is_negative;
        Self { is_negative, digits, power: self.power + other.power }.trimmed()
    }

    /// Returns the digits from this power of ten on, which is at most the number's own.
    fn digits_from(&self, power: i64) -> Vec<u8> {
        if self.digits.is_empty() {
            return Vec::new();
        }
        let zeros = usize::try_from(self.power - power).unwrap_or(0);
        std::iter::repeat_n(0, zeros).chain(self.digits.iter().copied()).collect()
    }

    fn trimmed(mut self) -> Self {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        let zeros = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..zeros);
        self.power += zeros as i64;
        if self.digits.is_empty() {
            (self.is_negative, self.power) = (false, 0);
        }
        self
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let difference = self.minus(other);
        match (difference.digits.is_empty(), difference.is_negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_DIGITS: i64 = 40;
        let (count, power) = (self.digits.len() as i64, self.power);
        if self.is_negative {
            f.write_str("-")?;
        }
        let digits: String = self.digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect();
        if digits.is_empty() {
            return f.write_str("0");
        }
        if power > MAX_DIGITS || count + power > MAX_DIGITS || power < -MAX_DIGITS {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{point}{rest}e{}", count + power - 1);
        }
        if power >= 0 {
            return write!(f, "{digits}{}", "0".repeat(power as usize));
        }
        let whole = count + power;
        if whole <= 0 {
            return write!(f, "0.{}{digits}", "0".repeat(whole.unsigned_abs() as usize));
        }
        let (whole, fraction) = digits.split_at(whole as usize);
        write!(f, "{whole}.{fraction}")
    }
}

fn sum(one: &[u8], two: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut digits: Vec<u8> = Vec::with_capacity(one.len().max(two.len()) + 1);
    for n in 0..one.len().max(two.len()) {
        let value = one.get(n).unwrap_or(&0) + two.get(n).unwrap_or(&0) + carry;
        digits.push(value % 10);
        carry = value / 10;
    }
    digits.push(carry);
    digits
}

/// Returns the difference of two numbers; the first must not be the smaller one.
fn difference(large: &[u8], small: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let one = |(n, digit): (usize, &u8)| {
        let less = small.get(n).unwrap_or(&0) + borrow;
        borrow = u8::from(*digit < less);
        digit + 10 * borrow - less
    };
    large.iter().enumerate().map(one).collect()
}

fn compare(one: &[u8], two: &[u8]) -> Ordering {
    let used = |digits: &[u8]| digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    let (one, two) = (&one[..used(one)], &two[..used(two)]);
    one.len().cmp(&two.len()).then_with(|| one.iter().rev().cmp(two.iter().rev()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        for (text, shown) in [
            ("0", "0"),
            ("-0.00", "0"),
            ("007", "7"),
            (".5", "0.5"),
            ("5.", "5"),
            ("-12.340", "-12.34"),
            ("1.5e3", "1500"),
            ("15E-4", "0.0015"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("1e300", "1e300"),
            ("1.25e-300", "1.25e-300"),
        ] {
            assert_eq!(number(text).to_string(), shown, "{text}");
        }
        for text in ["", "-", ".", "e5", "1e", "1.2.3", "1,2", "0x1", " 1", "1e9999", "NaN", "inf", "--1", "1e+"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }

    #[test]
    fn comparison_is_exact() {
        assert_ne!(number("1234567890123"), number("1234567890124"));
        assert_ne!(number("9007199254740992"), number("9007199254740993"));
        assert_eq!(number("1e2"), number("100.00"));
        assert!(number("-5") < number("-4.99") && number("0.1") < number("0.1000000000000001"));
        assert_eq!(number("0.1").plus(&number("0.2")), number("0.3"));
        assert_eq!(number("0.3").minus(&number("1e3")), number("-999.7"));
        assert_eq!(number("-1.5").times(&number("0.02")), number("-0.03"));
        assert_eq!(Decimal::of_float(0.1).unwrap(), number("0.1"));
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_whole_numbers(a in any::<i64>(), b in any::<i64>()) {
            let (one, two) = (number(&a.to_string()), number(&b.to_string()));
            let (a, b) = (i128::from(a), i128::from(b));
            prop_assert_eq!(one.plus(&two).to_string(), (a + b).to_string());
            prop_assert_eq!(one.minus(&two).to_string(), (a - b).to_string());
            prop_assert_eq!(one.times(&two).to_string(), (a * b).to_string());
            prop_assert_eq!(one.cmp(&two), a.cmp(&b));
        }
    }
}

//! Regular expressions that are checked when they are read, and compiled when they are first used.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};

/// The longest text, in bytes, of an expression that is compiled when it is first used.
const SHORT: usize = 300;

/// A regular expression. Its copies share what was compiled.
///
/// Manifests and policies hold many expressions of which a run needs few, and compiling one costs far more than checking
/// it. Expressions that could exceed the limit of size are compiled at once, so that the error is reported where they are
/// read: those above [`SHORT`] and those with `{`, which repeats a part.
#[derive(Debug, Clone)]
pub struct RegexOnce(Arc<Expression>);

#[derive(Debug)]
struct Expression {
    text: String,
    compiled: OnceLock<Regex>,
}

impl RegexOnce {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// Returns those of [`Regex::new`].
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        let is_checked = text.len() <= SHORT && !text.contains('{') && regex_syntax::parse(text).is_ok();
        let compiled = if is_checked { OnceLock::new() } else { OnceLock::from(Regex::new(text)?) };
        Ok(Self(Arc::new(Expression { text: text.to_owned(), compiled })))
    }

    /// Returns the text of the expression.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the compiled expression.
    pub fn regex(&self) -> &Regex {
        let Expression { text, compiled } = &*self.0;
        compiled.get_or_init(|| {
            let compiled = RegexBuilder::new(text).size_limit(usize::MAX).build();
            compiled.expect("an expression whose form was checked compiles without a limit of size")
        })
    }
}

impl fmt::Display for RegexOnce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Deref for RegexOnce {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        self.regex()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{RegexOnce, SHORT};

    #[test]
    fn an_expression_that_is_compiled_later_keeps_the_limit_of_size() {
        for part in [r"\w", r"\W", r"\S", r"\D", r"\pL", r"\PL", r"\b", ".", "[^a]", "(?i:é)", r"\w+?", "(a|é)*"] {
            let text = format!("(?i){}", part.repeat((SHORT - 4) / part.len()));
            assert!(regex::Regex::new(&text).is_ok(), "{text}");
            assert!(RegexOnce::new(&text).unwrap().is_match("") || !text.is_empty());
        }
    }

    #[test]
    fn an_expression_that_is_too_large_is_refused_where_it_is_read() {
        for text in [r"(\w{1000}){1000}".to_owned(), r"\w".repeat(20_000)] {
            let error = RegexOnce::new(&text).unwrap_err();
            assert_eq!(error, regex::Regex::new(&text).unwrap_err());
        }
    }

    proptest! {
        #[test]
        fn texts_are_refused_and_found_as_by_regex(text in r"[a-c(){}|*+?\\wdbpLé\[\]^$.:<>i1-3-]{0,12}") {
            match (RegexOnce::new(&text), regex::Regex::new(&text)) {
                (Ok(read), Ok(plain)) => {
                    prop_assert_eq!(read.as_str(), plain.as_str());
                    for searched in ["", "abc", "é1", "a\nb"] {
                        prop_assert_eq!(read.is_match(searched), plain.is_match(searched));
                    }
                }
                (read, plain) => prop_assert_eq!(read.map(drop), plain.map(drop)),
            }
        }
    }
}

//! Explains invalid arguments that clap explains in the words of a parser.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns the error with a reason that a user understands: the standard library says `invalid digit found in string`
/// of a text that is no number. Other errors are returned unchanged.
pub fn explained(error: Error) -> Error {
    let Some(number) = error.source().and_then(|source| source.downcast_ref::<ParseIntError>()) else { return error };
    let why = match number.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "the number is too large",
        _ => "expected a whole number without a sign, such as 3",
    };
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (Some(argument), Some(value)) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue)) else {
        return error;
    };
    let message = format!("invalid value '{value}' for '{argument}': {why}\n\nFor more information, try '--help'.\n");
    Error::raw(ErrorKind::ValueValidation, message)
}

//! Explains invalid arguments in the words of a user: clap uses those of a parser.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Returns a command whose options take negative numbers as values, so that an error is about the number. clap takes
/// `-1` for an option and explains how to pass it as a positional argument.
pub fn with_numbers(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let takes_value = !argument.is_positional() && argument.get_action().takes_values();
        if takes_value { argument.allow_negative_numbers(true) } else { argument }
    });
    command.mut_subcommands(with_numbers)
}

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

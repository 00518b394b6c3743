//! Explains invalid arguments in the words of a user: clap uses those of a parser.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};

/// Returns a command whose options take negative numbers as values, so that an error is about the number. clap takes
/// `-1` for an option and explains how to pass it as a positional argument.
pub fn with_numbers(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let takes_value = !argument.is_positional() && argument.get_action().takes_values();
        if takes_value { argument.allow_negative_numbers(true) } else { argument }
    });
    command.mut_subcommands(with_numbers)
}

/// Parses the arguments of a command, as [`Command::try_get_matches_from`] does, and refuses each option without an
/// option that it requires.
///
/// # Errors
/// Returns clap's error.
pub fn parsed(mut command: Command, arguments: impl IntoIterator<Item = OsString>) -> Result<ArgMatches, Error> {
    command.build();
    let matches = command.try_get_matches_from_mut(arguments)?;
    let (mut inner, mut given) = (&command, &matches);
    loop {
        all_required(inner, given)?;
        let Some((name, below)) = given.subcommand() else { break };
        let Some(subcommand) = inner.find_subcommand(name) else { break };
        (inner, given) = (subcommand, below);
    }
    Ok(matches)
}

/// Refuses an option without an option that it requires. clap does not check this if the required option conflicts with
/// another given argument, and the first option would be ignored silently: `--rerun` requires `--resume`, which conflicts
/// with the paths of cases. clap does not say what an option requires either, but it refuses the option alone.
fn all_required(command: &Command, given: &ArgMatches) -> Result<(), Error> {
    let is_given = |arg: &Arg| {
        let source = given.value_source(arg.get_id().as_str());
        source.is_some_and(|source| source != ValueSource::DefaultValue)
    };
    for option in command.get_arguments().filter(|arg| is_given(arg)) {
        let Some(word) = as_written(option, given) else { continue };
        let Some((mut refused, mut missing)) = lacks(command, Some(word)) else { continue };
        // What the command requires anyway is not what one of its options requires.
        let always = lacks(command, None).map(|(_, names)| names).unwrap_or_default();
        let is_missing = |name: &str| command.get_arguments().any(|arg| arg.to_string() == name && !is_given(arg));
        missing.retain(|name| !always.contains(name) && is_missing(name));
        if !missing.is_empty() {
            refused.insert(ContextKind::InvalidArg, ContextValue::Strings(missing));
            return Err(refused);
        }
    }
    Ok(())
}

/// Returns the error of a command with this word alone, and the names of the arguments that it lacks. Returns `None` if it
/// lacks none.
fn lacks(command: &Command, word: Option<OsString>) -> Option<(Error, Vec<String>)> {
    let words = std::iter::once(OsString::from(command.get_name())).chain(word);
    let refused = command.clone().try_get_matches_from(words).err()?;
    let names = match (refused.kind(), refused.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(names))) => names.clone(),
        _ => return None,
    };
    Some((refused, names))
}

/// Returns an option with its first value, as one word of a command line. Returns `None` for a positional argument.
fn as_written(option: &Arg, given: &ArgMatches) -> Option<OsString> {
    let mut word = OsString::from(format!("--{}", option.get_long()?));
    let values = option.get_action().takes_values().then(|| given.get_raw(option.get_id().as_str()));
    if let Some(value) = values.flatten().and_then(|mut values| values.next()) {
        word.push("=");
        word.push(value);
    }
    Some(word)
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Evals;

    /// Values of which each argument takes at least one.
    const VALUES: [&str; 7] = ["1", "x", "1/2", "time=2m", "a={}", "auto-approve", "4GiB"];

    fn outcome(command: &Command, words: &[&str]) -> Result<(), ErrorKind> {
        let words = std::iter::once(command.get_name()).chain(words.iter().copied()).map(OsString::from);
        parsed(command.clone(), words).map(drop).map_err(|error| error.kind())
    }

    /// Returns an argument as a word that its command takes, whatever other arguments it requires.
    fn written(command: &Command, arg: &Arg) -> Option<String> {
        let possible: Vec<String> = arg.get_possible_values().iter().map(|it| it.get_name().to_owned()).collect();
        let word = |value: String| match arg.get_long() {
            Some(long) if arg.get_action().takes_values() => format!("--{long}={value}"),
            Some(long) => format!("--{long}"),
            None => value,
        };
        let taken =
            |word: &String| matches!(outcome(command, &[word]), Ok(()) | Err(ErrorKind::MissingRequiredArgument));
        possible.into_iter().chain(VALUES.map(str::to_owned)).map(word).find(taken)
    }

    /// Returns the options of a command that require another one, each with the arguments beside which it is taken.
    fn requiring(command: &Command) -> Vec<(String, Vec<String>)> {
        let args = command.get_arguments().filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()));
        let args: Vec<(&Arg, String)> = args.filter_map(|arg| Some((arg, written(command, arg)?))).collect();
        let with = |given: &[&(&Arg, String)]| {
            // What the command requires anyway is given.
            let always = args.iter().filter(|(arg, _)| arg.is_required_set());
            let others = always.filter(|(arg, _)| given.iter().all(|it| it.0.get_id() != arg.get_id()));
            let words: Vec<&str> = others.chain(given.iter().copied()).map(|it| it.1.as_str()).collect();
            outcome(command, &words)
        };
        let is_requiring = |it: &&(&Arg, String)| {
            it.0.get_long().is_some() && with(&[it]) == Err(ErrorKind::MissingRequiredArgument) && with(&[]).is_ok()
        };
        let taken = |option: &(&Arg, String)| {
            let others = args.iter().filter(|other| other.0.get_id() != option.0.get_id());
            others.filter(|other| with(&[option, other]).is_ok()).map(|other| other.1.clone()).collect()
        };
        args.iter().filter(is_requiring).map(|option| (option.1.clone(), taken(option))).collect()
    }

    fn all_requiring(command: &Command, found: &mut Vec<(String, Vec<String>)>) {
        let named = |(option, taken)| (format!("{} {option}", command.get_name()), taken);
        found.extend(requiring(command).into_iter().map(named));
        command.get_subcommands().filter(|it| it.get_name() != "help").for_each(|below| all_requiring(below, found));
    }

    #[test]
    fn an_option_is_refused_beside_any_argument_but_the_one_that_it_requires() {
        let mut command = with_numbers(Evals::command());
        command.build();
        let mut found = Vec::new();
        all_requiring(&command, &mut found);
        let found: Vec<(&str, Vec<&str>)> =
            found.iter().map(|(option, taken)| (&**option, taken.iter().map(|it| &**it).collect())).collect();
        let expected = [
            ("run --changed=keep", vec!["--resume=1"]),
            ("run --rerun=failed", vec!["--resume=1"]),
            ("run --allow-mounts", vec!["--sandbox=none"]),
            ("run --enforce-model=refuse", vec!["--gateway=observe"]),
            ("import --format=table", vec!["--explain"]),
            ("check --mutants=1", vec!["--audit"]),
            ("check --memory=4GiB", vec!["--audit"]),
            ("check --format=table", vec!["--audit"]),
            ("calibrate --label-only", vec!["--ask=1"]),
            ("init --shards=1", vec!["--ci=github"]),
            ("init --install=1", vec!["--ci=github"]),
        ];
        assert_eq!(found, expected);
    }
}

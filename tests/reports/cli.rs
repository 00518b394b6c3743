//! The other commands, and what everything says to wrong input, through the door that a user uses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod changed;
mod commands;
mod convert;
mod converted;
mod converted_yaml;
mod gates;
mod history;
mod honest;
mod invisible;
mod large;
mod lint_skill;
mod newcomer;
mod older_run;
mod outputs;
mod places;
mod quarantine;
mod reports;
mod terminal;
mod wrong_input;

//! The other commands, and what everything says to wrong input, through the door that a user uses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/project.rs"]
mod project;

#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/gates.rs"]
mod gates;
#[path = "cli/honest.rs"]
mod honest;
#[path = "cli/outputs.rs"]
mod outputs;
#[path = "cli/places.rs"]
mod places;
#[path = "cli/reports.rs"]
mod reports;
#[path = "cli/wrong_input.rs"]
mod wrong_input;

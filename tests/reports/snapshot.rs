//! Golden traces: laws of Shapes and their text form, and the commands through the door that a user uses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod grader;
mod laws;
mod many;
mod pairs;
mod review;
mod runs;
mod shown;
mod traces;

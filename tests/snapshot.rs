//! Golden traces: laws of Shapes and their text form, and the commands through the door that a user uses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/project.rs"]
mod project;

#[path = "snapshot/grader.rs"]
mod grader;
#[path = "snapshot/laws.rs"]
mod laws;
#[path = "snapshot/many.rs"]
mod many;
#[path = "snapshot/pairs.rs"]
mod pairs;
#[path = "snapshot/review.rs"]
mod review;
#[path = "snapshot/runs.rs"]
mod runs;
#[path = "snapshot/shown.rs"]
mod shown;
#[path = "snapshot/traces.rs"]
mod traces;

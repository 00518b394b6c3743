//! Recordings and what is damaged in them become traces; traces become grades.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/laws.rs"]
mod laws;
#[path = "../support/project.rs"]
mod project;
#[path = "../support/properties.rs"]
mod properties;
#[path = "../support/rng.rs"]
mod rng;

mod claude;
mod fuzz;
mod graders;
mod import_acp;
mod import_claude;
mod import_claude_laws;
mod json_stream;
mod notices;
mod sessions;
mod trace_laws;
mod unread;

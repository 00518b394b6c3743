//! The scripted model: over real HTTP as `evals gateway script` serves it, and in trials.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod apis;
mod client;
mod faults;
mod offers;
mod trials;

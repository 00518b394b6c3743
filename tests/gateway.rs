//! The scripted model: over real HTTP as `evals gateway script` serves it, and in trials as agents meet it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/project.rs"]
mod project;

#[path = "gateway/apis.rs"]
mod apis;
#[path = "gateway/client.rs"]
mod client;
#[path = "gateway/faults.rs"]
mod faults;
#[path = "gateway/offers.rs"]
mod offers;
#[path = "gateway/trials.rs"]
mod trials;

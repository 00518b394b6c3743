//! An agent made with the protocol's Rust SDK asks every kind of request in every order, and the engine answers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/laws.rs"]
mod laws;
#[path = "support/live.rs"]
mod live;
#[path = "support/project.rs"]
mod project;

#[path = "sdk_agent/directed.rs"]
mod directed;
#[path = "sdk_agent/exchange.rs"]
mod exchange;
#[path = "sdk_agent/orders.rs"]
mod orders;
#[path = "sdk_agent/script.rs"]
mod script;

//! An agent made with the protocol's Rust SDK asks every kind of request in every order, and the engine answers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod directed;
mod exchange;
mod orders;
mod script;

//! The model gateway: scripts over real HTTP and in trials, requests that go on to a service, recordings.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod apis;
mod by_hand;
mod asks;
pub mod client;
mod conditions;
mod faults;
mod hostile;
mod limits;
mod offers;
mod passing;
mod recording;
mod refused;
mod replaying;
mod service;
pub mod stand;
mod trials;

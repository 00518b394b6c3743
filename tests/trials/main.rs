//! Trials through the real program: fake agents, fake models, judges, and everything that goes wrong.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/laws.rs"]
mod laws;
#[path = "../support/live.rs"]
mod live;
#[path = "../support/project.rs"]
mod project;
#[path = "../support/rng.rs"]
mod rng;

mod conformance;
mod cost;
mod demo_agent;
mod from_session;
mod gateway;
mod hostile;
mod in_ci;
mod judge;
mod kill_loop;
mod mine;
mod mine_runners;
mod protocol;
mod run;
mod sdk_agent;

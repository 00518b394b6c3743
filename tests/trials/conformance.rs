//! `evals harness …` through the door that a user uses: checks of agents with every defect, foreign manifests, parity.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod check;
mod import;
mod parity;
mod recorded;
mod registry;

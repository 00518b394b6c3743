//! `evals harness …` through the door that a user uses: checks of agents with every defect, foreign manifests, parity.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/project.rs"]
mod project;

#[path = "conformance/check.rs"]
mod check;
#[path = "conformance/import.rs"]
mod import;
#[path = "conformance/parity.rs"]
mod parity;
#[path = "conformance/recorded.rs"]
mod recorded;
#[path = "conformance/registry.rs"]
mod registry;

//! Damaged inputs for everything that reads what others wrote: no panic, no endless work, and every promise kept.
//!
//! `EVALS_FUZZ_MS` is the time for each target, `EVALS_FUZZ_SEED` the seed. See docs/fuzzing.md.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "fuzz/corpus.rs"]
mod corpus;
#[path = "fuzz/hunt.rs"]
mod hunt;
#[path = "support/laws.rs"]
mod laws;
#[path = "fuzz/mutate.rs"]
mod mutate;
#[path = "support/project.rs"]
mod project;
#[path = "support/rng.rs"]
mod rng;
#[path = "fuzz/runs.rs"]
mod runs;
#[path = "fuzz/sessions.rs"]
mod sessions;
#[path = "fuzz/written.rs"]
mod written;

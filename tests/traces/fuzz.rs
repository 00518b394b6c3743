//! Damaged inputs for everything that reads what others wrote: no panic, no endless work, and every promise kept.
//!
//! `EVALS_FUZZ_MS` is the time for each target, `EVALS_FUZZ_SEED` the seed. See docs/fuzzing.md.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod corpus;
mod hunt;
mod mutate;
mod runs;
mod sessions;
mod skills;
mod written;

//! Comparisons: through the door that a user uses, and whether their error rates hold, by simulation.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod baselines;
mod claims;
mod commands;
mod evidence;
mod few;
mod gates;
mod prices;
mod refused;
mod rounding;
mod same_cases;
mod simulation;
mod stored;

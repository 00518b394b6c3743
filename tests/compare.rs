//! Comparisons: through the door that a user uses, and whether their error rates hold, by simulation.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/project.rs"]
mod project;

#[path = "compare/baselines.rs"]
mod baselines;
#[path = "compare/commands.rs"]
mod commands;
#[path = "compare/evidence.rs"]
mod evidence;
#[path = "compare/few.rs"]
mod few;
#[path = "compare/gates.rs"]
mod gates;
#[path = "compare/refused.rs"]
mod refused;
#[path = "compare/rounding.rs"]
mod rounding;
#[path = "compare/simulation.rs"]
mod simulation;
#[path = "compare/stored.rs"]
mod stored;

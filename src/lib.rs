//! A trace-grading evaluation engine for coding agents.
//!
//! ```text
//! case → plan → trial → harness → wire log → trace → grades → verdict → record → report
//! ```
//!
//! The modules are listed in this order. `CONTEXT.md` has the glossary, the layers, and where to change what.

// Files that people write.
pub mod yaml;
pub mod values;
pub mod expression;
pub mod paths;
pub mod case;
pub mod limits;
pub mod attachment;
pub mod embedded;

// The plan.
pub mod plan;
pub mod ids;
pub mod runner;

// One trial: its workspace, its environment, its processes.
pub mod trial;
pub mod workspace;
pub mod environment;
mod own_environment;
pub mod secrets;
pub mod sandbox;
pub mod shell;
pub mod process;
pub mod supervisor;
pub mod resources;

// The agent and its model.
pub mod harness;
pub mod driver;
pub mod session;
pub mod interaction;
pub mod gateway;
pub mod models;

// The lines that crossed the process boundary, and the resulting trace.
pub mod wire;
pub mod lines;
pub mod adapter;
pub mod trace;
pub mod price;

// Grading.
pub mod grader;
pub mod matching;
pub mod judgement;
pub mod snapshot;
pub mod judge;
pub mod model_client;
pub mod grade;
pub mod verdict;
pub mod decimal;

// Stored results.
pub mod result;
pub mod run;
pub mod whole_file;
pub mod regular;

// Reports.
pub mod report;
pub mod compare;
pub mod baseline;
pub mod statistics;
pub mod rounding;
pub mod schema;

// Checks of cases and harnesses.
pub mod audit;
pub mod conformance;
pub mod parity;

// The program, and the agent that is built into it.
pub mod cli;
pub mod demo;

//! A trace-grading evaluation engine for coding agents.
//!
//! ```text
//! case → plan → trial → harness → wire log → trace → grades → verdict → record → report
//! ```
//!
//! The program `evals` plans and runs trials. It starts itself again to supervise the processes of a trial, so this part
//! is not in the library. The library reads what trials leave behind: it imports recorded sessions, and grades traces.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let recording = r#"{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"It is 42."}]}}
//! {"type":"result","subtype":"success","is_error":false,"result":"It is 42."}"#;
//! let trace = evals::import("claude-code-stream", recording.as_bytes())?;
//! assert_eq!(trace.events.len(), 2);
//!
//! let grades = evals::grade(&trace, "[{output: {contains: '42'}}, {budget: {cost-usd: 0.10}}]").await?;
//! assert_eq!(grades[0].passed, Some(true));
//! // The session reports no cost, which is not a cost of zero.
//! assert_eq!(grades[1].outcome, evals::Outcome::Ungraded);
//! # Ok::<(), evals::Error>(())
//! # }).unwrap();
//! ```
//!
//! The modules are listed in the order of the pipeline. Those that are hidden from the documentation are used by the
//! program and its tests and are no part of the library's interface, except `statistics`, which is public and hidden
//! (adr/0059). `CONTEXT.md` has the words of the code, the layers, and where to change what.

pub use grade::{GradeRecord, Outcome};
pub use library::{Error, Trace, grade, import};

// Files that people write.
mod yaml;
mod values;
mod expression;
mod paths;
mod project;
mod case;
mod limits;
mod skill;
mod overlay;
mod experiment;
mod attachment;
mod embedded;

// The plan.
mod plan;
mod ids;
mod runner;

// One trial: its workspace, its environment, its processes.
mod trial;
mod workspace;
mod environment;
mod own_environment;
mod proxy;
mod secrets;
mod sandbox;
mod shell;
mod engine_clock;
mod process;
mod supervisor;
mod resources;

// The agent and its model.
mod harness;
mod driver;
mod session;
mod interaction;
mod loopback;
mod gateway;
mod models;

// The lines that crossed the process boundary, and the resulting trace.
mod wire;
mod lines;
mod adapter;
#[warn(missing_docs)]
pub mod trace;
mod price;
mod big_numbers;
mod repeated_key;

// Grading.
mod grader;
mod command_line;
mod matching;
mod matcher;
mod judgement;
mod snapshot;
mod judge;
mod model_client;
#[warn(missing_docs)]
mod grade;
mod verdict;
mod decimal;
mod difference;
mod text;
mod reason_text;
mod word;

// Stored results.
mod result;
mod run;
mod whole_file;
mod regular;

// Reports.
mod report;
mod fold;
mod compare;
mod baseline;
#[doc(hidden)]
pub mod statistics;
mod rounding;
mod schema;
#[cfg(test)]
mod schema_source;

// The server of reports.
mod view;

// Checks of cases and harnesses.
mod audit;
mod mine;
// session → draft: a case from the work in it.
mod from_session;
mod conformance;
mod parity;

// Cases and results in the formats of other tools.
mod export;
mod convert;

// The program, and the agent that is built into it.
mod cli;
mod demo;

// The interface of the library, and what the program and its tests use beside it.
#[warn(missing_docs)]
mod library;
#[doc(hidden)]
pub mod internal;

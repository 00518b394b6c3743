//! A trace-grading evaluation engine for coding agents.
pub mod adapter;
pub mod environment;
pub mod grade;
pub mod harness;
pub mod lines;
pub mod process;
pub mod report;
pub mod result;
pub mod run;
pub mod secrets;
pub mod shell;
pub mod trace;
pub mod values;
pub mod verdict;
pub mod wire;
pub mod workspace;

//! A trace-grading evaluation engine for coding agents.
pub mod adapter;
pub mod case;
pub mod embedded;
pub mod grade;
pub mod grader;
pub mod harness;
pub mod interaction;
pub mod result;
pub mod schema;
pub mod shell;
pub mod trace;
pub mod values;
pub mod verdict;
pub mod wire;
pub mod workspace;
pub mod yaml;

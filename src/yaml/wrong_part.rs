//! A part of a value that is well-formed YAML but cannot be used.

use super::{OwnedStep, Step};

/// A part of a grader that cannot be used, and its place in the grader.
#[derive(Debug, Clone, PartialEq)]
pub struct WrongPart {
    /// The path of keys to the part. If no value is at that path, the part is missing.
    pub at: Vec<OwnedStep>,
    /// The reason. The text continues after the grader's name.
    pub why: String,
}

impl WrongPart {
    /// Makes a wrong part at a place of the grader.
    pub fn new(at: &[Step<'_>], why: impl Into<String>) -> Self {
        Self { at: OwnedStep::all(at), why: why.into() }
    }
}

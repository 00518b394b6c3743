//! Workspaces: the folder an agent works in, made afresh for each Trial, and what became of it.

pub mod change;

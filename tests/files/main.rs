//! What people write is read or refused with its place; schemas, and the rules that the sources keep.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../support/project.rs"]
mod project;
#[path = "../support/properties.rs"]
mod properties;

mod dependencies;
mod house;
mod links;
mod load;
mod reference;
mod schemas;
